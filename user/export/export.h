/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * export: a picture in one format a file. Exporters know the picture and nothing else.
 */
#ifndef SAFESCOPED_EXPORT_H
#define SAFESCOPED_EXPORT_H

#include <stdio.h>

#include "picture/picture.h"

/* Nanoseconds but for idleness, nanoseconds on the CPU, samples; bytes allocated. */
enum export_weight { WEIGHT_WALL, WEIGHT_CPU, WEIGHT_SAMPLES, WEIGHT_ALLOC, WEIGHTS };

/* Kinds of lanes. */
#define EXPORT_LANES_THREAD	(1U << LANE_THREAD)
#define EXPORT_LANES_CAPABILITY (1U << LANE_CAPABILITY)
#define EXPORT_LANES_HASKELL	(1U << LANE_HASKELL)

struct export_opts {
	/* Which are shown, in all formats alike; 0, the default: all that there are. Those of
	 * Haskell threads are made only when asked for, but of a log alone always. */
	unsigned lanes;
	enum export_weight weight;
	bool window;	/* it is one of a session's windows */
	bool verbose;	/* -v: frames that are folded away by default, more rows */
	bool colour;	/* text only; the caller has looked at NO_COLOR and the terminal */
	unsigned width; /* of the page that text is for; 0: not known */
	/* pprof only: of this process alone, by its number in the picture plus 1; 0: of all. */
	uint32_t target;
	/* pprof only: for Pyroscope, which files a profile by what its types are called, and has a
	 * series for each set of labels. */
	bool for_pyroscope;
	/* The machine that the session was on; NULL: not known, a replay may be on another one. */
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

/* Where in a picture the next request of several begins; zeroed at first. */
struct export_cursor {
	uint32_t target;
	size_t lane, part; /* part: of the lane, or of what is of none */
	bool done;	   /* there is nothing left */
	bool empty;	   /* there was no profile in the last one */
};
/* One request of export_otlp's, to which nothing is added once it has max_bytes before it is
 * gzipped: it has no more than that and a sample. */
int export_otlp__write_next(FILE *out, const struct picture *pic, const struct export_opts *opts,
			    uint64_t max_bytes, struct export_cursor *at);
/* What export_pprof's files are made of: once for those of each process. */
struct pprof_source;
int export_pprof__gather(const struct picture *pic, struct pprof_source **ret_source);
void export_pprof__free(struct pprof_source *source);
/* As export_pprof's; *ret_any (NULL: not asked for): it has a sample of something. */
int export_pprof__write_any(FILE *out, struct pprof_source *source, const struct export_opts *opts,
			    bool *ret_any);

/* NULL if there is no such format. */
const struct export_format *export__find(const char *name, size_t len);
/* All of their names: "speedscope, folded, …". export__names().s lives as long as the expression
 * that it is in. */
struct export_names {
	char s[256];
};
struct export_names export__names(void);

/*
 * A file that appears whole or not at all: a file without a name in the same directory (0600),
 * fsync, link, rename; given to `owner`/`group` unless they are -1. The directory is reached by
 * dir__open_of: through no link but root's, ours and `owner`'s.
 */
struct outfile;
/* Prints one line on failure, and so does outfile__commit. */
int outfile__open(const char *path, uid_t owner, gid_t group, struct outfile **ret_out);
FILE *outfile__stream(struct outfile *out);
/* Why writing to the stream failed; 0 while it has not. */
int outfile__error(const struct outfile *out);
/* Flushes, syncs, renames and frees. On failure nothing is left behind and the errno is returned.
 */
int outfile__commit(struct outfile *out);
/* Removes the temporary file and frees. NULL is fine. */
void outfile__abort(struct outfile *out);
/*
 * Removes what killed writers left in the directory: our own temporary files and those of `owner`,
 * to which nobody has written for an hour. Where the file system has files without a name they
 * leave hardly any.
 */
void outfile__sweep(int dir, uid_t owner);

/* ── tables (table.c) ────────────────────────────────────────────────────────────────────── */

enum {
	COL_LEFT = 0,
	COL_RIGHT = 1,
	COL_FLEX = 2,	  /* may be cut in the middle to fit */
	COL_SPARE = 4,	  /* may be left out to fit, the least worth first; a note reports it */
	COL_SAMPLED = 8,  /* `~` in front of the title */
	COL_PAINTED = 16, /* in colours, if there are any */
};

struct table_column {
	const char *title;
	int flags;
	const char *group; /* a title over neighbouring columns that have the same; NULL: none */
	uint64_t worth;
};

struct table;

/* `columns` must live as long as the table. */
int table__new(const struct table_column *columns, size_t n, struct table **ret_table);
void table__free(struct table *t);
/* The escape sequence, in `out` or constant, that a character of a painted column is preceded by.
 */
typedef const char *table_painter(uint32_t cp, char *out, size_t size);
void table__paint(struct table *t, table_painter *paint);
/* Cells are added from left to right, row by row. Errors are kept until table__print. */
void table__cell(struct table *t, const char *text);
void table__cellf(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Columns without a text in any row are left out. */
int table__print(struct table *t, FILE *out, unsigned width, bool colour);

/* ── bars (text/bars.c) ──────────────────────────────────────────────────────────────────── */

struct buf;
/* Sets *bar to so many letters, one for each state, in proportion to the times. -ENOMEM. */
int export__bar(struct buf *bar, enum lane_kind kind, const uint64_t *states_ns, size_t width);
/* The escape sequence, in `out` or constant, with which a letter of it is in colours. */
const char *export__bar_colour(uint32_t letter, char *out, size_t size);

/* ── text (utf8.c) ───────────────────────────────────────────────────────────────────────── */

/* The string as valid UTF-8; NULL without memory. The caller frees. */
char *utf8__clean(const char *s);
/* Writes JSON that is whole and in UTF-8, with what text__is_hidden in its strings as `\u` escapes:
 * it may be shown on a terminal. */
void json__put_text(FILE *out, const char *json);

#endif
