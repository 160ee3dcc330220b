/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * by_archive: finds functions of static archives in a file without symbols, and the modules whose
 * code lies around them. The search takes a second, so it is started before any frame has to be
 * named.
 */
#include "names_priv.h"

#include <errno.h>
#include <stdlib.h>

#include "archives/archives.h"
#include "file_job_priv.h"
#include "module_runs_priv.h"

struct functions {
	struct archives_known *known;
	struct module_runs *runs; /* NULL: no memory for it */
};

static void free_functions(void *functions)
{
	struct functions *f = functions;

	if (!f)
		return;
	archives_known__free(f->known);
	module_runs__free(f->runs);
	free(f);
}

/* Stops at the first failure; the runs found so far remain usable. */
static struct module_runs *runs_of(const struct archives_known *known, const char *file)
{
	struct module_runs *runs;
	struct symbols_hit hit;
	uint64_t end;

	if (module_runs__new(&runs))
		return NULL;
	for (size_t i = 0; archives_known__at(known, i, &hit, &end) == 0; i++)
		if (module_runs__add(runs, hit.name, hit.start, end))
			break;
	module_runs__log(runs, file);
	return runs;
}

/* Takes over `known`. NULL: no memory. */
static struct functions *functions_of(struct archives_known *known, const char *file)
{
	struct functions *f = calloc(1, sizeof(*f));

	if (f)
		*f = (struct functions){.known = known, .runs = runs_of(known, file)};
	else
		archives_known__free(known);
	return f;
}

/* Each takes a CPU and a hundred megabytes. */
static struct file_jobs searches = {
	.keys = {{.free = file_job__free}, {.free = file_job__free}},
	.free_result = free_functions,
	.what = "functions of archives",
	.most = 2,
};

/* Only the program's own file and the runtime's: other files are not linked from archives. */
static bool may_have_some(const struct names *names, const struct image *image)
{
	return names->of.archives && image && image->elf &&
	       (image->is_exe || image == names->of.rts->image) &&
	       elf__n_symbols(image->elf, ELF_SYMTAB) <= 1 && !image->debug;
}

/* -EBUSY: too many are running. */
static int start(const struct names *names, struct image *image, struct file_job *job)
{
	struct file_job **place;
	int err;

	if (job->job)
		return 0;
	place = file_jobs__place(&searches);
	if (!place)
		return -EBUSY;
	err = archives__start(names->of.archives, image->elf, names->of.rts->profiled, &job->job);
	if (!err)
		*place = job;
	return err;
}

static struct file_job *job_of(const struct names *names, struct image *image)
{
	return may_have_some(names, image) ? file_job__of(&searches, names, image) : NULL;
}

void names__start_archives(struct names *names)
{
	struct image *image = names->of.rts->image;
	struct file_job *job = job_of(names, image);

	/* on failure it is retried when a frame has to be named */
	if (job && !file_job__rests(job, names))
		(void)start(names, image, job);
}

int names__archives_fd(const struct names *names)
{
	const struct image *image = names->of.rts->image;

	return may_have_some(names, image) ? file_jobs__fd(&searches, names, image) : -1;
}

static const struct functions *functions_in(struct names *names, struct image *image)
{
	struct file_job *job = job_of(names, image);
	struct archives_known *known;
	int err;

	if (!job || file_job__rests(job, names))
		return job ? job->result : NULL;
	err = start(names, image, job);
	if (!err)
		err = archives__await(names->of.archives, image->elf, job->job, &known);
	if (!err) {
		job->result = functions_of(known, elf__name(image->elf));
		if (!job->result)
			err = -ENOMEM;
	}
	return file_job__take(job, err, names, image);
}

const struct archives_known *names__archives(struct names *names, struct image *image)
{
	const struct functions *functions = functions_in(names, image);

	return functions ? functions->known : NULL;
}

const struct module_runs *names__module_runs(struct names *names, struct image *image)
{
	const struct functions *functions = functions_in(names, image);

	return functions ? functions->runs : NULL;
}
