/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * output: what a mode leaves for its user: which format goes into which file, writing them, and
 * the progress line on a terminal meanwhile.
 */
#ifndef SAFESCOPED_OUTPUT_H
#define SAFESCOPED_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "export/export.h"

/* ── files ───────────────────────────────────────────────────────────────────────────────── */

#define OUTPUT_MAX_FORMATS 8

/* What the command line asks for. */
struct output_opts {
	const struct export_format *formats[OUTPUT_MAX_FORMATS]; /* no two are the same */
	size_t n_formats;
	const char *path; /* a file, a directory, a stem or "-"; NULL: a stem made from the names */
	/* Standard output is a command's: what would go there goes to standard error. */
	bool beside_command;
	enum export_weight weight;
	unsigned lanes; /* EXPORT_LANES_… */
	bool verbose;
	bool of_this_host;     /* what is shown was seen here: formats that name the host name it */
	const char *host_name; /* by this name, wherever it was seen; NULL: the machine's own */
	/* Each window gets files of its own in the directory `path` (NULL: the working one), named
	 * after the time at which it began; or windows follow each other on "-". */
	bool windows;
	/* The first window may have no place: it is tried again for each of them, as for a later
	 * one, whose disk is full. */
	bool place_may_come;
	/* The newest windows are kept: at most this many, of this many bytes in all, no older than
	 * this; 0: no limit. The files of others are removed. */
	uint64_t keep, keep_bytes, keep_for_ns;
	/* Called for each file that was written; NULL: nobody wants to know. */
	void (*written)(void *ctx, const struct export_format *format, const char *path);
	void *written_ctx;
};

struct outputs;

/*
 * Whether a file of the format (NULL: a capture) may take the place of what is at the path:
 * nothing, an empty file, or such a file of ours. -EEXIST, with a line, if it may not.
 */
int output__may_replace(const char *path, const struct export_format *format);
/* Whether windows have a directory for their files. -ENOTDIR, with a line, if they do not. */
int outputs__check(const struct output_opts *opts);
/*
 * Decides the paths for a session of this program and pid (0: several), and tries whether each
 * can be written: before anything is attached. `opts` must live as long as the outputs. Prints a
 * line on failure, which place_may_come then makes none.
 */
int outputs__plan(const struct output_opts *opts, const char *comm, pid_t pid,
		  struct outputs **ret_outputs);
void outputs__free(struct outputs *outputs);
/* What the formats are made with; valid while the outputs are there. */
struct export_opts outputs__export_opts(const struct outputs *outputs);
/*
 * Writes all of them; one that fails does not keep the others from being written, and its error is
 * returned. `stop` (may be NULL) is asked before each, and before a file takes its name:
 * -ECANCELED if it returns true. Prints a line on failure; and one, outside of windows, if the
 * picture is not complete (EXIT_PARTIAL) and there is no text, which has the reasons.
 */
int outputs__write(const struct outputs *outputs, const struct picture *pic,
		   bool (*stop)(void *ctx), void *ctx);

/* The same for what is no picture: `write` puts it in one format. */
typedef int output_write(void *ctx, const struct export_format *format, FILE *out,
			 const struct export_opts *opts);
int outputs__write_by(const struct outputs *outputs, output_write *write, void *ctx);

/*
 * The same for one window, whose files are named after its start: all of them, or none. May remove
 * older windows' files. -EPIPE, without a line: it goes to standard output, which nobody reads any
 * more.
 */
int outputs__write_window(struct outputs *outputs, const struct picture *pic);
/* Whether older windows' files could not be removed then: reported once, until they can. A process
 * that writes a window for another one has it from there, and hands it back. */
bool outputs__old_stay(const struct outputs *outputs);
void outputs__set_old_stay(struct outputs *outputs, bool old_stay);

/*
 * The user who gets the files, and as whom a command runs: the one who ran sudo, by SUDO_UID and
 * SUDO_GID; both -1: nobody did. -EINVAL if these are not two numbers of sudo's; prints a line.
 */
int output__owner(uid_t *ret_owner, gid_t *ret_group);
/* The same without the line. */
int output__find_owner(uid_t *ret_owner, gid_t *ret_group);
/* In a child: becomes that user, with his groups and home. */
int output__become(uid_t uid, gid_t gid);
/* Width of the terminal that fd is; 0: it is none. */
unsigned output__terminal_width(int fd);
/* The same; if it is not a terminal, COLUMNS of the environment, if that is a number. */
unsigned output__page_width(int fd);
/* Whether a terminal of this width is to be coloured: there is one, and NO_COLOR is not set. */
bool output__has_colour(unsigned width);
/* Flushes the stream. The error if something could not be written to it, now or earlier; -EIO if
 * the cause is not known. */
int output__flush(FILE *out);

/* ── progress ────────────────────────────────────────────────────────────────────────────── */

/* The fields are progress.c's. */
struct progress {
	bool shown;	/* standard error is a terminal, and progress is wanted */
	bool plain;	/* it is not, but -v was given: a line of its own now and then */
	bool on_screen; /* there is a line to wipe */
	uint64_t last_ns;
};

void progress__init(struct progress *p, bool quiet);
/* Shows on a terminal what is being done, until the next call or any message; NULL: nothing. For
 * what sometimes takes long. */
void progress__task(bool quiet, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* False: no update will draw anything. */
bool progress__shown(const struct progress *p);
/* True if an update now would draw: otherwise what it shows need not be read. */
bool progress__due(const struct progress *p, uint64_t now_ns);
/* Draws at most twice a second, or prints at most every 30 seconds. duration_ns 0: no end is set.
 */
void progress__update(struct progress *p, uint64_t now_ns, uint64_t elapsed_ns,
		      uint64_t duration_ns, uint64_t samples, uint64_t probe_hits, uint64_t lost);
/* The same while a log is read: bytes read, and how many there are so far. */
void progress__bytes(struct progress *p, uint64_t now_ns, uint64_t done, uint64_t total);
/* Wipes the line. */
void progress__end(struct progress *p);

#endif
