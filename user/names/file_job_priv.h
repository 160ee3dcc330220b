/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * file_job: a child's analysis of a file, done once for all processes that map it. It is started
 * before it is needed, polled until it is over, and kept with the file. Shared by the files of this
 * room only.
 */
#ifndef SAFESCOPED_NAMES_FILE_JOB_PRIV_H
#define SAFESCOPED_NAMES_FILE_JOB_PRIV_H

#include <stdbool.h>
#include <stddef.h>

#include "pause_priv.h"
#include "process/slots.h"

struct confine_job;
struct image;
struct names;

#define FILE_JOBS_MOST 4

/* All jobs of one kind. */
struct file_jobs {
	/* One key for each way of the runtime, which may differ between processes that map a file;
	 * each frees with file_job__free. */
	const struct slot_key keys[2];
	void (*free_result)(void *result);
	const char *what; /* what is looked for, for messages */
	size_t most;	  /* how many may run at a time, up to FILE_JOBS_MOST */
	struct file_job *running[FILE_JOBS_MOST];
};

/* The job of one file. */
struct file_job {
	struct file_jobs *all;
	struct confine_job *job; /* NULL: over, or never started */
	void *result;		 /* NULL: none */
	bool over;
	struct names_pause pause; /* after a job took too long or was killed */
};

/* For a slot_key. */
void file_job__free(void *job);
/* Returns the file's job, which the file owns. NULL: no memory. */
struct file_job *file_job__of(struct file_jobs *all, const struct names *names,
			      struct image *image);
/* Whether there is nothing to start or to wait for: the job is over, or must not be tried yet. */
bool file_job__rests(const struct file_job *job, struct names *names);
/* A free place to note the next job that is started. NULL: as many run as may. */
struct file_job **file_jobs__place(struct file_jobs *all);
/* The descriptor of the running job of that file; -1: none. */
int file_jobs__fd(const struct file_jobs *all, const struct names *names,
		  const struct image *image);
/*
 * Takes the outcome `err` of waiting for the job, and returns the result. NULL on -EBUSY: the job
 * still runs, or it took too long or was killed, and another one starts after a pause; either makes
 * the names incomplete. Any other error is final.
 */
void *file_job__take(struct file_job *job, int err, struct names *names, const struct image *image);

#endif
