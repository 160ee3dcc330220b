/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * by_archive: the functions that a file without symbols has of static archives. Looking for them
 * takes a second, so it is begun before any frame is to be named.
 */
#include "names_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "archives/archives.h"
#include "base/base.h"
#include "confine/confine.h"

/* Of one file. */
struct known {
	struct confine_job *job; /* NULL: it is over, or was never begun */
	struct archives_known *functions;
	bool over;
};

/* Searches at a time, of all files: each takes a processor and a hundred megabytes. */
#define MAX_RUNNING 2
static struct known *running[MAX_RUNNING];

static struct known **free_place(void)
{
	for (size_t i = 0; i < MAX_RUNNING; i++)
		if (!running[i] || !running[i]->job || confine_job__is_over(running[i]->job))
			return &running[i];
	return NULL;
}

static void free_known(void *what)
{
	struct known *known = what;

	for (size_t i = 0; i < MAX_RUNNING; i++)
		if (running[i] == known)
			running[i] = NULL;
	confine_job__free(known->job);
	archives_known__free(known->functions);
	free(known);
}

/* By the runtime's way: the profiled one has archives of its own. */
static const struct slot_key keys[2] = {{.free = free_known}, {.free = free_known}};

static const struct slot_key *key_of(const struct names *names)
{
	return &keys[names->of.rts->profiled];
}

/* Where a program's own code and the runtime are: other files are not linked from archives. */
static bool may_have_some(const struct names *names, const struct image *image)
{
	return names->of.archives && image && image->elf &&
	       (image->is_exe || image == names->of.rts->image) &&
	       elf__n_symbols(image->elf, ELF_SYMTAB) <= 1 && !image->debug;
}

/* NULL: there is no memory for it. */
static struct known *known_of(const struct names *names, struct image *image)
{
	struct slots *slots = &image->file->slots;
	void *known;

	if (slots__get(slots, key_of(names), &known))
		return known;
	return slots__put(slots, key_of(names), calloc(1, sizeof(struct known)));
}

/* -EBUSY: there are too many. */
static int start(const struct names *names, struct image *image, struct known *known)
{
	struct known **place;
	int err;

	if (known->over || known->job)
		return 0;
	place = free_place();
	if (!place)
		return -EBUSY;
	err = archives__start(names->of.archives, image->elf, names->of.rts->profiled, &known->job);
	if (!err)
		*place = known;
	return err;
}

void names__start_archives(struct names *names)
{
	struct image *image = names->of.rts->image;
	struct known *known = may_have_some(names, image) ? known_of(names, image) : NULL;

	/* if that fails it is tried again when a frame is to be named */
	if (known)
		(void)start(names, image, known);
}

int names__archives_fd(const struct names *names)
{
	struct image *image = names->of.rts->image;
	struct known *known;
	void *what;

	if (!may_have_some(names, image) ||
	    !slots__get(&image->file->slots, key_of(names), &what) || !what)
		return -1;
	known = what;
	return known->job && !confine_job__is_over(known->job) ? confine_job__fd(known->job) : -1;
}

const struct archives_known *names__archives(struct names *names, struct image *image)
{
	struct known *known = may_have_some(names, image) ? known_of(names, image) : NULL;
	int err;

	if (!known || known->over)
		return known ? known->functions : NULL;
	err = start(names, image, known);
	if (!err)
		err = archives__await(names->of.archives, image->elf, known->job,
				      &known->functions);
	/* there may be time for it later */
	if (err == -EBUSY) {
		names->incomplete = true;
		return NULL;
	}
	confine_job__free(known->job);
	known->job = NULL;
	known->over = true;
	if (err && err != -ENOENT)
		log_verbose("%s: functions of archives cannot be looked for: %s", image->name,
			    strerror(-err));
	return known->functions;
}
