/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Folded stacks: `COMM-PID;NAME-TID;root;…;leaf N`, read by flamegraph.pl, inferno, speedscope.
 *
 * N is in microseconds (samples or bytes with --weight samples, alloc). Idle time is left out: a
 * flame graph whose widest tower is sleeping worker threads hides everything else. For an eventlog
 * alone the capabilities' stacks are added (`COMM-PID;capability-N`), for a report that GHC wrote
 * the cost centres' (`COMM-PID`), since no OS thread's lane has them. Long names and deep paths
 * lose their middle, unless -v asks for all.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sums.h"

struct writer {
	FILE *out;
	const struct picture *pic;
	enum export_weight weight;
	bool all;	 /* -v: paths are complete, however deep */
	char **names;	 /* of a picture's frames, as printed */
	uint32_t *map;	 /* maps a picture's frame to a number, in order of the names */
	char **prefixes; /* of an owner: "COMM-PID;NAME-TID" */
	size_t n_prefixes;
	struct sums sums;
	struct views views;
};

/* Names from C++, or of type class dictionaries, may be longer than a page: only their ends are
 * shown. */
#define NAME_MAX_SHOWN 120
#define NAME_HEAD      80
/* Deeper paths show PATH_HEAD frames from the root, a mark, and the rest down to the leaf: what
 * lies in between is a recursion, or does not fit on a screen. */
#define PATH_MAX_SHOWN 96
#define PATH_HEAD      32

/* ── names ───────────────────────────────────────────────────────────────────────────────── */

static bool is_number(const char *s)
{
	size_t digits = strspn(s, "0123456789");

	if (!digits)
		return false;
	s += digits;
	if (*s == '.')
		s += 1 + strspn(s + 1, "0123456789");
	return !*s;
}

/* True for the first byte of a UTF-8 character, or a byte that is not UTF-8. */
static bool begins_character(char c)
{
	return ((unsigned char)c & 0xc0) != 0x80;
}

/* Returns the name, or its two ends with … in between if it is long. */
static const char *shorten(const char *name, char *out, size_t size)
{
	size_t len = strlen(name), head = NAME_HEAD, tail = NAME_MAX_SHOWN - NAME_HEAD;

	if (len <= NAME_MAX_SHOWN)
		return name;
	while (head && !begins_character(name[head]))
		head--;
	while (tail && !begins_character(name[len - tail]))
		tail--;
	snprintf(out, size, "%.*s…%s", (int)head, name, name + len - tail);
	return out;
}

/*
 * Returns a name that no reader can misparse: without separators or line ends, without blanks at
 * the ends, and without a number after the last blank (flamegraph.pl reads "leaf 12 34" as two
 * columns, the mark of a differential profile). Spaces inside are kept: all readers split at the
 * last one.
 */
static char *safe_name(const char *full, const char *suffix, bool whole)
{
	char shorter[4 * NAME_MAX_SHOWN + 16];
	const char *name = whole ? full : shorten(full, shorter, sizeof(shorter));
	size_t len = text__escape(name, strlen(name), NULL, 0);
	char *safe = malloc(len + strlen(suffix) + 1), *blank;

	if (!safe)
		return NULL;
	text__escape(name, strlen(name), safe, len + 1);
	for (char *p = safe; (p = strchr(p, ';'));)
		*p = ':';
	for (size_t i = 0; i < len && safe[i] == ' '; i++)
		safe[i] = '_';
	for (size_t i = len; i && safe[i - 1] == ' '; i--)
		safe[i - 1] = '_';
	memcpy(safe + len, suffix, strlen(suffix) + 1);
	blank = strrchr(safe, ' ');
	if (blank && is_number(blank + 1))
		*blank = '_';
	return safe;
}

/*
 * Returns the first frames of a lane's stacks: the process and the lane (NULL: none). Blanks in a
 * comm become `_`, as in stackcollapse-perf.pl.
 */
static char *make_prefix(const struct pic_target *target, const struct pic_lane *lane)
{
	const char *name = lane && lane->kind == LANE_THREAD ? or_empty(lane->name) : "capability";
	char *comm = safe_name(or_empty(target->comm), "", true), *safe = safe_name(name, "", true);
	char *prefix = NULL;
	int n = -1;

	if (comm && safe && lane)
		n = asprintf(&prefix, "%s-%d;%s-%ld", comm, (int)target->pid, safe,
			     lane->kind == LANE_THREAD ? (long)lane->tid : (long)lane->cap);
	else if (comm && safe)
		n = asprintf(&prefix, "%s-%d", comm, (int)target->pid);
	if (n < 0)
		prefix = NULL;
	for (char *p = prefix; p && *p; p++)
		if (*p == ' ')
			*p = '_';
	free(comm);
	free(safe);
	return prefix;
}

static int cmp_names(uint32_t a, uint32_t b, void *ctx)
{
	const struct writer *w = ctx;

	return strcmp(w->names[a], w->names[b]);
}

static int name_frames(struct writer *w)
{
	uint32_t n = picture__n_frames(w->pic), distinct;

	w->names = calloc((size_t)n + 1, sizeof(*w->names));
	if (!w->names)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		const struct pic_frame *frame = picture__frame(w->pic, i);

		/* flamegraph.pl colours kernel frames by this suffix. */
		w->names[i] = safe_name(frame__name(frame), frame->kind == TF_KERNEL ? "_[k]" : "",
					w->all);
		if (!w->names[i])
			return -ENOMEM;
	}
	return frames__number(n, cmp_names, w, false, &w->map, &distinct);
}

/* Makes the prefixes of all lanes, followed by those of the processes. */
static int name_owners(struct writer *w)
{
	size_t lanes = w->views.n, n = lanes + picture__n_targets(w->pic);

	w->prefixes = calloc(n + 1, sizeof(*w->prefixes));
	if (!w->prefixes)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		char *prefix = i < lanes ? make_prefix(w->views.v[i].target, w->views.v[i].lane)
					 : make_prefix(picture__target(w->pic, i - lanes), NULL);

		if (!prefix)
			return -ENOMEM;
		w->prefixes[w->n_prefixes++] = prefix;
	}
	return 0;
}

/* ── lines ───────────────────────────────────────────────────────────────────────────────── */

/* The number of frames of a stack that are shown. */
static uint32_t shown(const struct writer *w, struct pic_stack stack)
{
	return w->all ? stack.n : MIN(stack.n, (uint32_t)PATH_MAX_SHOWN);
}

/* The i-th of the `n` frames that are shown. */
static uint32_t shown_frame(struct pic_stack stack, uint32_t n, uint32_t i)
{
	return stack.frames[i < PATH_HEAD ? i : stack.n - n + i];
}

/* Paths that differ only in omitted frames compare equal. */
static int cmp_paths(const struct writer *w, struct pic_stack a, struct pic_stack b)
{
	uint32_t n_a = shown(w, a), n_b = shown(w, b);
	bool cut_a = n_a < a.n, cut_b = n_b < b.n;

	for (uint32_t i = 0; i < MIN(n_a, n_b); i++) {
		uint32_t x = w->map[shown_frame(a, n_a, i)], y = w->map[shown_frame(b, n_b, i)];

		if (x != y)
			return x < y ? -1 : 1;
	}
	return CMP(n_a, n_b) ?: CMP(cut_a, cut_b);
}

static int cmp_lines(const void *pa, const void *pb, void *arg)
{
	const struct sum *a = pa, *b = pb;
	const struct writer *w = arg;
	int diff = strcmp(w->prefixes[a->owner], w->prefixes[b->owner]);

	return diff ? diff
		    : cmp_paths(w, picture__stack(w->pic, a->stack),
				picture__stack(w->pic, b->stack));
}

static void put_line(const struct writer *w, const struct sum *sum, uint64_t n)
{
	struct pic_stack stack = picture__stack(w->pic, sum->stack);
	uint32_t n_shown = shown(w, stack);

	fputs(w->prefixes[sum->owner], w->out);
	for (uint32_t i = 0; i < n_shown; i++) {
		if (i == PATH_HEAD && n_shown < stack.n)
			fputs_unlocked(";[frames left out]", w->out);
		fputc_unlocked(';', w->out);
		fputs_unlocked(w->names[shown_frame(stack, n_shown, i)], w->out);
	}
	fprintf(w->out, " %" PRIu64 "\n", n);
}

/* The remainder of each division is carried to the next line, so that the sum of all lines stays
 * right. */
static void put_lines(struct writer *w)
{
	uint64_t unit = w->weight == WEIGHT_SAMPLES || w->weight == WEIGHT_ALLOC ? 1 : 1000;
	uint64_t carry = unit / 2; /* rounds the running sum to the nearest unit */
	bool log_alone = session__log_alone(w->pic);
	struct sum *v = w->sums.v;

	if (w->sums.n)
		qsort_r(v, w->sums.n, sizeof(*v), cmp_lines, w);
	for (size_t i = 0; i < w->sums.n;) {
		uint64_t ns = 0, n;
		size_t k = i;

		for (; k < w->sums.n && !cmp_lines(&v[i], &v[k], w); k++)
			/* time that a log alone does not record has no stack */
			if (v[k].stack || !log_alone)
				ns += v[k].by[w->weight];
		n = (ns + carry) / unit;
		carry = (ns + carry) % unit;
		if (n)
			put_line(w, &v[i], n);
		i = k;
	}
}

int folded__write(FILE *out, const struct picture *pic, const struct export_opts *opts)
{
	struct writer w = {.out = out, .pic = pic, .weight = opts->weight, .all = opts->verbose};
	const char *title;
	int err = views__collect(pic, &w.views);

	if (!err)
		err = sums__collect(pic, &w.views, SUMS_BY_LANE, &w.sums, &title);
	if (!err)
		err = name_frames(&w);
	if (!err)
		err = name_owners(&w);
	if (!err)
		put_lines(&w);
	for (uint32_t i = 0; w.names && i < picture__n_frames(pic); i++)
		free(w.names[i]);
	for (size_t i = 0; i < w.n_prefixes; i++)
		free(w.prefixes[i]);
	free(w.names);
	free(w.prefixes);
	free(w.map);
	sums__free(&w.sums);
	views__free(&w.views);
	return export__result(out, err);
}
