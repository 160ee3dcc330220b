/* SPDX-License-Identifier: GPL-2.0-or-later */
/* select: chooses the processes to profile, by their /proc files. */
#ifndef SAFESCOPED_PROCESS_SELECT_H
#define SAFESCOPED_PROCESS_SELECT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum select_kind {
	SELECT_COMM,   /* its name */
	SELECT_EXE,    /* the path of its program */
	SELECT_USER,   /* the user that it is charged to */
	SELECT_CGROUP, /* the path of its control group */
	SELECT_KINDS,
};

#define SELECT_MAX_RULES 64
/*
 * Length of the name that the kernel keeps of a process: TASK_COMM_LEN without the NUL (sched.h).
 */
#define SELECT_COMM_MOST 15

struct select_rule {
	enum select_kind kind;
	bool exclude;
	const char *glob; /* fnmatch(3), where `*` matches a slash too */
	uid_t user;	  /* SELECT_USER */
};

/* A process is wanted if for each kind that has rules one of them matches, and no excluding rule
 * does. */
struct select_rules {
	struct select_rule v[SELECT_MAX_RULES];
	size_t n;
};

/*
 * Adds a rule; `text`, a glob, or a user's name or number, must live as long as the rules. -ENOENT:
 * no such user; -EINVAL: empty; -ENAMETOOLONG: longer than any process's name; -EDOM: does not
 * begin like a path; -E2BIG.
 */
int select__add(struct select_rules *rules, enum select_kind kind, const char *text, bool exclude);
/* "comm", … */
const char *select__kind_name(enum select_kind kind);
/* The kind with that name ("comm"); SELECT_KINDS: none. */
enum select_kind select__kind(const char *name, size_t len);
/* 1: the process is wanted; 0: it is not, or it is gone and there are rules. One of
 * retry__shows_nothing()'s errors: there was no descriptor or memory to look. */
int select__wants(const struct select_rules *rules, pid_t pid);

#endif
