/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * file_job: what a child finds in a file, once for all processes that map it: begun before it is
 * needed, asked for until it is over, and kept with the file. Shared by the files of this room
 * only.
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

/* Those of one kind. */
struct file_jobs {
	/* by the runtime's way, which is not the same in all processes that map a file; each with
	 * file_job__free */
	const struct slot_key keys[2];
	void (*free_result)(void *result);
	const char *what; /* for a message: what is looked for */
	size_t most;	  /* that run at a time, up to FILE_JOBS_MOST */
	struct file_job *running[FILE_JOBS_MOST];
};

/* Of one file. */
struct file_job {
	struct file_jobs *all;
	struct confine_job *job; /* NULL: it is over, or was never begun */
	void *result;		 /* NULL: none */
	bool over;
	struct names_pause pause; /* after one that took too long, or was killed */
};

/* For a slot. */
void file_job__free(void *job);
/* The file's, which keeps it. NULL: there is no memory for it. */
struct file_job *file_job__of(struct file_jobs *all, const struct names *names,
			      struct image *image);
/* Whether there is nothing to begin or to wait for: it is over, or is not to be tried now. */
bool file_job__rests(const struct file_job *job, struct names *names);
/* Where the next one that is begun is to be noted. NULL: as many run as may. */
struct file_job **file_jobs__place(struct file_jobs *all);
/* The descriptor of the one of that file that runs; -1: none. */
int file_jobs__fd(const struct file_jobs *all, const struct names *names,
		  const struct image *image);
/*
 * After it was waited for, with what came of that: the result. -EBUSY: not yet, and NULL is
 * returned; so it is where it took too long, or was killed: another one is begun after a pause.
 * Both make the names incomplete. Anything else ends it.
 */
void *file_job__take(struct file_job *job, int err, struct names *names, const struct image *image);

#endif
