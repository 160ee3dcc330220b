/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * output: what a mode produces for its user: which format goes into which file, writing them, and
 * the progress line on the terminal in the meantime.
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
	const struct export_format *formats[OUTPUT_MAX_FORMATS]; /* all different */
	size_t n_formats;
	const char *path; /* a file, a directory, a stem or "-"; NULL: a stem made from the
			     process's name and pid */
	/* Standard output belongs to a command: output for it goes to standard error. */
	bool beside_command;
	enum export_weight weight;
	unsigned lanes; /* EXPORT_LANES_… */
	bool verbose;
	bool of_this_host;     /* the session was recorded on this host, which formats may name */
	const char *host_name; /* the recording host's name; NULL: the machine's own */
	/* Each window gets its own files in the directory `path` (NULL: the working directory),
	 * named after its start time; or windows follow each other on "-". */
	bool windows;
	/* If the output's place cannot be written at first, go on and try again for each window, as
	 * with a disk that is full later. */
	bool place_may_come;
	/* The newest windows are kept: at most this many, of this many bytes in all, no older than
	 * this; 0: no limit. The files of all others are removed. */
	uint64_t keep, keep_bytes, keep_for_ns;
	/* Called for each file that was written; may be NULL. */
	void (*written)(void *ctx, const struct export_format *format, const char *path);
	void *written_ctx;
};

struct outputs;

/*
 * Checks that a file of the format (NULL: a capture) may replace what is at the path: nothing, an
 * empty file, or an earlier file of that kind. -EEXIST, with a line, if not.
 */
int output__may_replace(const char *path, const struct export_format *format);
/* Checks that windows have a directory for their files. -ENOTDIR, with a line, if not. */
int outputs__check(const struct output_opts *opts);
/*
 * Chooses the paths for a session of this program and pid ("" and 0: several), and tries whether
 * each can be written, before anything is attached. `opts` must outlive the outputs. Prints a line
 * on failure; with place_may_come an unwritable place is not a failure.
 */
int outputs__plan(const struct output_opts *opts, const char *comm, pid_t pid,
		  struct outputs **ret_outputs);
void outputs__free(struct outputs *outputs);
/* The options for the formats; valid as long as the outputs. */
struct export_opts outputs__export_opts(const struct outputs *outputs);
/*
 * Writes all outputs. If one fails the others are still written, and the first error is returned.
 * `stop` (may be NULL) is called before each one, and before a file gets its name: -ECANCELED if it
 * returns true. Prints a line on failure; and one, except for windows, if the picture is incomplete
 * (EXIT_PARTIAL) and no text report is written, which would give the reasons.
 */
int outputs__write(const struct outputs *outputs, const struct picture *pic,
		   bool (*stop)(void *ctx), void *ctx);

/* The same for something other than a picture: `write` writes it in one format. */
typedef int output_write(void *ctx, const struct export_format *format, FILE *out,
			 const struct export_opts *opts);
int outputs__write_by(const struct outputs *outputs, output_write *write, void *ctx);

/*
 * The same for one window, whose files are named after its start, in a live session after the next
 * millisecond whose names are free: writes all of them or none, and may remove older windows'
 * files. -EPIPE, without a line: it goes to standard output, which has no reader left.
 */
int outputs__write_window(struct outputs *outputs, const struct picture *pic);
/* Whether removing older windows' files failed, which is reported only once until it succeeds. A
 * process that writes a window for another one gets this from that process, and passes it back. */
bool outputs__old_stay(const struct outputs *outputs);
void outputs__set_old_stay(struct outputs *outputs, bool old_stay);

/*
 * The user who gets the files and runs commands: the one who ran sudo, by SUDO_UID and SUDO_GID;
 * both -1: nobody did. -EINVAL if these are not two valid ids; prints a line.
 */
int output__owner(uid_t *ret_owner, gid_t *ret_group);
/* The same without the line. */
int output__find_owner(uid_t *ret_owner, gid_t *ret_group);
/* In a child: switches to that user, with the user's groups and home. */
int output__become(uid_t uid, gid_t gid);
/* The width of the terminal at fd; 0: it is not a terminal. */
unsigned output__terminal_width(int fd);
/* The same; if it is not a terminal, COLUMNS from the environment, if that is a number. */
unsigned output__page_width(int fd);
/* Whether to use colour on a terminal of this width: not if it is 0 or NO_COLOR is set. */
bool output__has_colour(unsigned width);
/* Flushes the stream. Returns the error if something could not be written to it, now or earlier;
 * -EIO if the cause is not known. */
int output__flush(FILE *out);

/* ── progress ────────────────────────────────────────────────────────────────────────────── */

/* The fields are private to progress.c. */
struct progress {
	bool shown;	/* standard error is a terminal, and progress is wanted */
	bool plain;	/* it is not, but -v was given: an occasional line */
	bool on_screen; /* a line is on the screen and must be wiped */
	uint64_t last_ns;
};

void progress__init(struct progress *p, bool quiet);
/* Shows on a terminal what is being done, for steps that may take long, until the next call or any
 * message; NULL: nothing. */
void progress__task(bool quiet, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* False if no update will draw anything. */
bool progress__shown(const struct progress *p);
/* True if an update now would draw: if not, its figures need not be read. */
bool progress__due(const struct progress *p, uint64_t now_ns);
/* Draws at most twice a second, or prints at most every 30 seconds. duration_ns 0: no end is
 * set. */
void progress__update(struct progress *p, uint64_t now_ns, uint64_t elapsed_ns,
		      uint64_t duration_ns, uint64_t samples, uint64_t probe_hits, uint64_t lost);
/* The same while a log is read: bytes read, and bytes available so far. */
void progress__bytes(struct progress *p, uint64_t now_ns, uint64_t done, uint64_t total);
/* Wipes the line. */
void progress__end(struct progress *p);

#endif
