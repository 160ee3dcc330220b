/* SPDX-License-Identifier: GPL-2.0-or-later */
/* export: writes a picture to a file in one format. Exporters know only the picture. */
#ifndef SAFESCOPED_EXPORT_H
#define SAFESCOPED_EXPORT_H

#include <stdio.h>

#include "picture/picture.h"

/* Nanoseconds without idle time, nanoseconds on the CPU, samples; bytes allocated. */
enum export_weight { WEIGHT_WALL, WEIGHT_CPU, WEIGHT_SAMPLES, WEIGHT_ALLOC, WEIGHTS };

/* Bits for the kinds of lanes. */
#define EXPORT_LANES_THREAD	(1U << LANE_THREAD)
#define EXPORT_LANES_CAPABILITY (1U << LANE_CAPABILITY)
#define EXPORT_LANES_HASKELL	(1U << LANE_HASKELL)

struct export_opts {
	/* The kinds of lanes shown, in all formats; 0, the default: all that exist. Those of
	 * Haskell threads are made only on request, but always for a log alone. */
	unsigned lanes;
	enum export_weight weight;
	bool window;	/* the picture is one of a session's windows */
	bool verbose;	/* -v: show frames that are folded away by default, and more rows */
	bool colour;	/* text only; the caller has checked NO_COLOR and the terminal */
	unsigned width; /* of the page that the text is for; 0: not known */
	/* pprof only: write this process alone, given by its number in the picture plus 1; 0:
	 * all. */
	uint32_t target;
	/* pprof only: write for Pyroscope, which files a profile by the names of its types and
	 * creates a series for each set of labels. */
	bool for_pyroscope;
	/* The machine that the session ran on; NULL: not known, since a replay may be on another
	 * one. */
	const char *host_name, *host_id;
};

/* One format. write returns 0 or a negative errno and leaves the stream open. */
struct export_format {
	const char *name;   /* "speedscope" */
	const char *suffix; /* ".speedscope.json" */
	int (*write)(FILE *out, const struct picture *pic, const struct export_opts *opts);
};

extern const struct export_format export_speedscope;
extern const struct export_format export_folded;
extern const struct export_format export_json;
extern const struct export_format export_text;
extern const struct export_format export_chrome;
extern const struct export_format export_pprof;
extern const struct export_format export_html;
extern const struct export_format export_otlp;

/* Where in a picture the next of several requests begins; zero it before the first. */
struct export_cursor {
	uint32_t target;
	size_t lane, part; /* part: of the lane, or of what belongs to no lane */
	bool done;	   /* nothing is left to write */
	bool empty;	   /* the last request had no profile */
};
/* Writes one of export_otlp's requests. Nothing is added to it once it has max_bytes before
 * compression, so it exceeds that by one sample at most. */
int export_otlp__write_next(FILE *out, const struct picture *pic, const struct export_opts *opts,
			    uint64_t max_bytes, struct export_cursor *at);
/* What export_pprof's files are made of, gathered once for the files of all processes. */
struct pprof_source;
int export_pprof__gather(const struct picture *pic, struct pprof_source **ret_source);
void export_pprof__free(struct pprof_source *source);
/* Like export_pprof's write; sets *ret_any (may be NULL) to whether any sample has a value. */
int export_pprof__write_any(FILE *out, struct pprof_source *source, const struct export_opts *opts,
			    bool *ret_any);

/* NULL if there is no such format. */
const struct export_format *export__find(const char *name, size_t len);
/* All format names: "speedscope, folded, …". export__names().s lives as long as the enclosing
 * expression. */
struct export_names {
	char s[256];
};
struct export_names export__names(void);

/*
 * A file that appears complete or not at all: an unnamed file in the same directory (0600), then
 * fsync, link and rename. It is given to `owner`/`group` unless they are -1. The directory is
 * opened by dir__open_of, which follows no links but root's, this process's and `owner`'s.
 */
struct outfile;
/* Logs one line on failure, as does outfile__commit. */
int outfile__open(const char *path, uid_t owner, gid_t group, struct outfile **ret_out);
FILE *outfile__stream(struct outfile *out);
/* The first write error on the stream; 0: none so far. */
int outfile__error(const struct outfile *out);
/* Flushes, syncs, renames and frees. On failure nothing is left in the directory; returns the
 * negative errno. */
int outfile__commit(struct outfile *out);
/* Removes the temporary file and frees. NULL is allowed. */
void outfile__abort(struct outfile *out);
/*
 * Removes temporary files that killed writers left in the directory: those owned by this user or
 * `owner` and not written to for an hour. Where the file system supports unnamed files, hardly any
 * are left.
 */
void outfile__sweep(int dir, uid_t owner);

/* ── tables (table.c) ────────────────────────────────────────────────────────────────────── */

enum {
	COL_LEFT = 0,
	COL_RIGHT = 1,
	COL_FLEX = 2,  /* may be cut in the middle to fit */
	COL_SPARE = 4, /* may be left out to fit, in order of increasing worth; a note lists them */
	COL_SAMPLED = 8,  /* `~` in front of the title */
	COL_PAINTED = 16, /* in colours, if the output has any */
};

struct table_column {
	const char *title;
	int flags;
	const char *group; /* a title over neighbouring columns with the same group; NULL: none */
	uint64_t worth;
};

struct table;

/* `columns` must live as long as the table. */
int table__new(const struct table_column *columns, size_t n, struct table **ret_table);
void table__free(struct table *t);
/* Returns the escape sequence, in `out` or constant, to print before a character in a painted
 * column. */
typedef const char *table_painter(uint32_t cp, char *out, size_t size);
void table__paint(struct table *t, table_painter *paint);
/* Adds a cell, from left to right, row by row. Errors are kept until table__print. */
void table__cell(struct table *t, const char *text);
void table__cellf(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Columns that are empty in all rows are left out. */
int table__print(struct table *t, FILE *out, unsigned width, bool colour);

/* ── bars (text/bars.c) ──────────────────────────────────────────────────────────────────── */

struct buf;
/* Sets *bar to `width` letters, divided among the states in proportion to their times. -ENOMEM. */
int export__bar(struct buf *bar, enum lane_kind kind, const uint64_t *states_ns, size_t width);
/* Returns the escape sequence, in `out` or constant, that colours a letter of a bar. */
const char *export__bar_colour(uint32_t letter, char *out, size_t size);

/* ── text (utf8.c) ───────────────────────────────────────────────────────────────────────── */

/* Returns the string as valid UTF-8, which the caller frees; NULL on allocation failure. */
char *utf8__clean(const char *s);
/* Writes a complete JSON text in UTF-8; characters for which text__is_hidden is true become `\u`
 * escapes in its strings, so that it is safe to print on a terminal. */
void json__put_text(FILE *out, const char *json);

#endif
