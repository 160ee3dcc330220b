/* SPDX-License-Identifier: GPL-2.0-or-later */
/* file_job: children that analyse a file, and their results. */
#include "file_job_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/retry.h"
#include "confine/confine.h"
#include "names_priv.h"

static const struct slot_key *key_of(const struct file_jobs *all, const struct names *names)
{
	return &all->keys[names->of.rts->profiled];
}

void file_job__free(void *what)
{
	struct file_job *job = what;

	/* the slot may hold NULL, if there was no memory */
	if (!job)
		return;
	for (size_t i = 0; i < job->all->most; i++)
		if (job->all->running[i] == job)
			job->all->running[i] = NULL;
	confine_job__free(job->job);
	job->all->free_result(job->result);
	free(job);
}

struct file_job *file_job__of(struct file_jobs *all, const struct names *names, struct image *image)
{
	struct slots *slots = &image->file->slots;
	struct file_job *job;
	void *kept;

	if (slots__get(slots, key_of(all, names), &kept))
		return kept;
	job = calloc(1, sizeof(*job));
	if (job)
		job->all = all;
	return slots__put(slots, key_of(all, names), job);
}

struct file_job **file_jobs__place(struct file_jobs *all)
{
	for (size_t i = 0; i < all->most; i++)
		if (!all->running[i] || !all->running[i]->job ||
		    confine_job__is_over(all->running[i]->job))
			return &all->running[i];
	return NULL;
}

int file_jobs__fd(const struct file_jobs *all, const struct names *names, const struct image *image)
{
	const struct file_job *job;
	void *kept;

	if (!image || !slots__get(&image->file->slots, key_of(all, names), &kept) || !kept)
		return -1;
	job = kept;
	return job->job && !confine_job__is_over(job->job) ? confine_job__fd(job->job) : -1;
}

bool file_job__rests(const struct file_job *job, struct names *names)
{
	return job->over || (!job->job && names__pauses(names, &job->pause, time__monotonic_ns()));
}

void *file_job__take(struct file_job *job, int err, struct names *names, const struct image *image)
{
	/* there may be time for it later */
	if (err == -EBUSY) {
		names->incomplete = true;
		return NULL;
	}
	confine_job__free(job->job);
	job->job = NULL;
	if (retry__shows_nothing(err)) {
		names__begin_pause(names, &job->pause, time__monotonic_ns(), err);
		log_verbose("%s: cannot find %s; not trying again for %llu s: %s", image->name,
			    job->all->what,
			    (unsigned long long)(job->pause.retry.ns / 1000000000ULL),
			    strerror(-err));
		return NULL;
	}
	job->over = true;
	if (err && err != -ENOENT)
		log_verbose("%s: cannot find %s: %s", image->name, job->all->what, strerror(-err));
	return job->result;
}
