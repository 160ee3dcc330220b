/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * by_module: names Haskell code by its module, where strip left no more. What the modules are takes
 * a large program half a second to find, so it is begun before any frame is to be named.
 */
#include "names_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "confine/confine.h"
#include "modules_priv.h"

/* Of one file. */
struct known {
	struct confine_job *job; /* looks for the modules; NULL: it is over, or was never begun */
	struct modules *modules; /* NULL: not known */
	bool over;
};

/*
 * Files that are looked through ahead of their first frame, at a time: children are for others,
 * too. Beyond these the first frame waits.
 */
#define MAX_AHEAD 4
static struct known *ahead[MAX_AHEAD];

static struct known **place_ahead(void)
{
	for (size_t i = 0; i < MAX_AHEAD; i++)
		if (!ahead[i] || !ahead[i]->job || confine_job__is_over(ahead[i]->job))
			return &ahead[i];
	return NULL;
}

static void free_known(void *what)
{
	struct known *known = what;

	for (size_t i = 0; i < MAX_AHEAD; i++)
		if (ahead[i] == known)
			ahead[i] = NULL;
	confine_job__free(known->job);
	modules__free(known->modules);
	free(known);
}

/* By the runtime's way: that is another file's, and not of all processes the same that map this. */
static const struct slot_key keys[2] = {{.free = free_known}, {.free = free_known}};

/* NULL: there is no memory for it. */
static struct known *known_of(const struct names *names, struct image *image)
{
	const struct slot_key *key = &keys[names->of.rts->profiled];
	struct slots *slots = &image->file->slots;
	void *known;

	if (slots__get(slots, key, &known))
		return known;
	return slots__put(slots, key, calloc(1, sizeof(struct known)));
}

static const struct modules *modules_of(struct names *names, struct image *image)
{
	struct known *known = known_of(names, image);
	int err;

	if (!known || known->over)
		return known ? known->modules : NULL;
	if (known->job)
		err = modules__await(image->elf, known->job, &known->modules);
	else
		err = modules__new(image->elf, names->of.rts->profiled, &known->modules);
	/* there may be time for it later */
	if (err == -EBUSY) {
		names->incomplete = true;
		return NULL;
	}
	confine_job__free(known->job);
	known->job = NULL;
	known->over = true;
	if (err && err != -ENOENT)
		log_verbose("%s: its modules cannot be found: %s", image->name, strerror(-err));
	return known->modules;
}

static void start_modules(struct names *names)
{
	struct image *image = names->of.rts->image;
	struct known **place = place_ahead();
	struct known *known;

	/* what has symbols may need none of it */
	if (!place || !image || elf__n_symbols(image->elf, ELF_SYMTAB) > 1 || image->debug)
		return;
	known = known_of(names, image);
	if (known && !known->over && !known->job &&
	    modules__start(image->elf, names->of.rts->profiled, &known->job) == 0)
		*place = known;
}

void names__prepare(struct names *names)
{
	start_modules(names);
	names__start_archives(names);
}

int names__preparing(const struct names *names)
{
	struct image *image = names->of.rts->image;
	void *known;
	struct confine_job *job = NULL;

	if (image && slots__get(&image->file->slots, &keys[names->of.rts->profiled], &known) &&
	    known)
		job = ((struct known *)known)->job;
	return job && !confine_job__is_over(job) ? confine_job__fd(job) : names__archives_fd(names);
}

bool names__has_modules(struct names *names, struct image *image)
{
	return modules_of(names, image) != NULL;
}

bool names__by_module(struct names *names, struct image *image, uint64_t vaddr, struct code_name *n)
{
	const struct modules *modules = modules_of(names, image);
	struct modules_hit hit;
	char text[400];

	if (!modules || modules__find(modules, vaddr, &hit))
		return false;
	vaddr = MAX(names__block(names, image, vaddr), hit.base);
	snprintf(text, sizeof(text), "%.300s+0x%llx", hit.module,
		 (unsigned long long)(vaddr - hit.base));
	n->name = intern(names, text);
	n->module = intern(names, hit.module);
	snprintf(text, sizeof(text), "%s", strcmp(hit.package, "main") != 0 ? hit.package : "");
	zname__drop_hash(text);
	n->package = intern(names, text);
	n->source = hit.uncertain ? NAME_MODULE_NEAR : NAME_MODULE;
	return true;
}
