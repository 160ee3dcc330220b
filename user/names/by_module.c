/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * by_module: names Haskell code by its module, if strip left nothing better. Finding the modules of
 * a large program takes half a second, so it is started before any frame has to be named.
 */
#include "names_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "file_job_priv.h"
#include "module_runs_priv.h"
#include "modules_priv.h"

#define PACKAGE_SIZE 400

static void free_modules(void *modules)
{
	modules__free(modules);
}

/*
 * Limits the files analysed ahead of their first frame, since other users need children too. For
 * any further file the first frame waits.
 */
static struct file_jobs looks = {
	.keys = {{.free = file_job__free}, {.free = file_job__free}},
	.free_result = free_modules,
	.what = "its modules",
	.most = 4,
};

static const struct modules *modules_of(struct names *names, struct image *image)
{
	struct file_job *job = file_job__of(&looks, names, image);
	struct modules *modules;
	int err;

	if (!job || file_job__rests(job, names))
		return job ? job->result : NULL;
	if (job->job)
		err = modules__await(image->elf, job->job, &modules);
	else
		err = modules__new(image->elf, names->of.rts->profiled, &modules);
	if (!err)
		job->result = modules;
	return file_job__take(job, err, names, image);
}

static void start_modules(struct names *names)
{
	struct image *image = names->of.rts->image;
	struct file_job **place = file_jobs__place(&looks);
	struct file_job *job;

	/* a file with symbols may not need its modules */
	if (!place || !image || elf__n_symbols(image->elf, ELF_SYMTAB) > 1 || image->debug)
		return;
	job = file_job__of(&looks, names, image);
	if (job && !file_job__rests(job, names) && !job->job &&
	    modules__start(image->elf, names->of.rts->profiled, &job->job) == 0)
		*place = job;
}

void names__prepare(struct names *names)
{
	struct image *image = names->of.rts->image;

	if (image && image->elf && image->file)
		(void)names__awaits_download(names, image);
	start_modules(names);
	names__start_archives(names);
}

int names__preparing(const struct names *names)
{
	int fd = file_jobs__fd(&looks, names, names->of.rts->image);

	return fd >= 0 ? fd : names__archives_fd(names);
}

bool names__has_modules(struct names *names, struct image *image)
{
	return modules_of(names, image) != NULL;
}

void names__package_text(const char *package, char *text, size_t size)
{
	snprintf(text, size, "%s", strcmp(package, "main") != 0 ? package : "");
	zname__drop_hash(text);
}

struct named {
	const char *module;
	const char *package; /* NULL: no such module yet */
};

static void meet_named(void *ctx, const struct modules_hit *piece)
{
	struct named *named = ctx;

	if (!named->package && strcmp(piece->module, named->module) == 0)
		named->package = piece->package;
}

void names__package_by_modules(struct names *names, struct image *image, uint64_t vaddr,
			       struct code_name *n)
{
	const struct modules *modules = modules_of(names, image);
	struct named named = {.module = n->module};
	char package[PACKAGE_SIZE];
	struct modules_hit hit;
	bool found;

	if (!modules)
		return;
	found = modules__find(modules, vaddr, &hit) == 0;
	if (found && !hit.uncertain && !n->module[0])
		n->module = named.module = intern(names, hit.module);
	/* another package may have a module of that name */
	if (n->module[0] && !(found && strcmp(hit.module, n->module) == 0))
		modules__each(modules, meet_named, &named);
	/* a module that left no name usually lies beside others of its package */
	if (!named.package && found)
		named.package = hit.package;
	if (!named.package)
		return;
	names__package_text(named.package, package, sizeof(package));
	n->package = intern(names, package);
}

struct base_of {
	const char *package, *module; /* in the form that is shown */
	uint64_t base;
};

/* Lowers the base to that of a piece of the same module found by the file's own marks. */
static void meet_piece(void *ctx, const struct modules_hit *piece)
{
	struct base_of *of = ctx;
	char package[PACKAGE_SIZE];

	if (piece->base >= of->base || strcmp(piece->module, of->module) != 0)
		return;
	names__package_text(piece->package, package, sizeof(package));
	if (!strcmp(package, of->package))
		of->base = piece->base;
}

/*
 * Uses the functions of archives around vaddr, if they are of one module and the file's own marks
 * leave the module uncertain; else those marks.
 */
static int find_module(const struct modules *modules, const struct module_runs *runs,
		       uint64_t vaddr, struct modules_hit *ret_hit)
{
	int err = modules ? modules__find(modules, vaddr, ret_hit) : -ENOENT;

	if (runs && (err || ret_hit->uncertain) && module_runs__find(runs, vaddr, ret_hit) == 0)
		return 0;
	return err;
}

bool names__by_module(struct names *names, struct image *image, uint64_t vaddr, struct code_name *n)
{
	const struct modules *modules = modules_of(names, image);
	const struct module_runs *runs = names__module_runs(names, image);
	char text[400], package[PACKAGE_SIZE];
	struct modules_hit hit;
	struct base_of of;

	if (find_module(modules, runs, vaddr, &hit))
		return false;
	names__package_text(hit.package, package, sizeof(package));
	/* one base for all of a module's code, or two places in it could get the same name */
	of = (struct base_of){.package = package, .module = hit.module, .base = hit.base};
	if (runs) {
		of.base = MIN(of.base, module_runs__base(runs, package, hit.module));
		if (modules)
			modules__each(modules, meet_piece, &of);
	}
	vaddr = MAX(names__block(names, image, vaddr), of.base);
	snprintf(text, sizeof(text), "%.300s+0x%llx", hit.module,
		 (unsigned long long)(vaddr - of.base));
	n->name = intern(names, text);
	n->module = intern(names, hit.module);
	n->package = intern(names, package);
	n->source = hit.uncertain ? NAME_MODULE_NEAR : NAME_MODULE;
	return true;
}
