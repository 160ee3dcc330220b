/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Folded stacks: `COMM-PID;NAME-TID;root;…;leaf N`, read by flamegraph.pl, inferno, speedscope.
 *
 * N is in microseconds (samples with --weight samples). Idle time is left out: a flame graph in
 * which sleeping worker threads are the widest tower hides all that happened. Of an eventlog alone
 * the capabilities' stacks are there too (`COMM-PID;capability-N`), of a report that GHC wrote the
 * cost centres' (`COMM-PID`): no OS thread's lane has them.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export.h"
#include "view.h"

struct writer {
	FILE *out;
	const struct timeline *tl;
	bool log_alone;	 /* no process: a log or a report is all there is */
	char **names;	 /* of a timeline's frame: as printed */
	uint32_t *map;	 /* of a timeline's frame: number, in the names' order */
	char **prefixes; /* of an owner: "COMM-PID;NAME-TID" */
	size_t n_prefixes, prefixes_cap;
	struct weights weights;
	struct views views;
};

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

/*
 * A name that a reader cannot take for anything else: no separator, no line end, no blank at the
 * ends, and no number after the last blank (flamegraph.pl reads "leaf 12 34" as two columns, the
 * mark of a differential profile). Spaces inside stay: all readers cut at the last one.
 */
static char *safe_name(const char *name, const char *suffix)
{
	size_t size, len = 0;
	char *safe, *blank;
	uint32_t cp;

	if (!name || !*name)
		name = "[unknown]";
	size = strlen(name) * 3 + strlen(suffix) + 1;
	safe = malloc(size);
	if (!safe)
		return NULL;
	while ((cp = utf8__next(&name))) {
		if (cp == ';')
			cp = ':';
		/* U+2028 and U+2029 end a line for readers in JavaScript. */
		else if (utf8__is_control(cp) || cp == 0x2028 || cp == 0x2029)
			cp = '_';
		len += utf8__put(safe + len, cp);
	}
	safe[len] = '\0';
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
 * The first frames of a lane's stacks: the process, and what the lane is (NULL: none).
 * stackcollapse-perf.pl writes blanks of a comm as `_`.
 */
static char *make_prefix(const struct tl_target *target, const char *name, long number)
{
	char *comm = safe_name(target->comm, ""), *safe = name ? safe_name(name, "") : NULL;
	char *prefix = NULL;
	int n = -1;

	if (comm && safe)
		n = asprintf(&prefix, "%s-%d;%s-%ld", comm, (int)target->pid, safe, number);
	else if (comm && !name)
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
	uint32_t n = timeline__n_frames(w->tl), distinct;

	w->names = calloc((size_t)n + 1, sizeof(*w->names));
	if (!w->names)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		const struct tl_frame *frame = timeline__frame(w->tl, i);

		/* The mark that flamegraph.pl colours kernel frames by. */
		w->names[i] = safe_name(frame->name, frame->kind == TF_KERNEL ? "_[k]" : "");
		if (!w->names[i])
			return -ENOMEM;
	}
	return frames__number(n, cmp_names, w, false, &w->map, &distinct);
}

/* ── weights ─────────────────────────────────────────────────────────────────────────────── */

static int add_owner(struct writer *w, char *prefix, uint32_t *ret_owner)
{
	int err = prefix ? array__reserve((void **)&w->prefixes, &w->prefixes_cap,
					  w->n_prefixes + 1, UINT32_MAX, sizeof(*w->prefixes))
			 : -ENOMEM;

	if (err) {
		free(prefix);
		return err;
	}
	*ret_owner = (uint32_t)w->n_prefixes;
	w->prefixes[w->n_prefixes++] = prefix;
	return 0;
}

/* OS threads; of a log alone capabilities, too: no OS thread's lane has their stacks. */
static int collect_view(struct writer *w, const struct lane_view *view, enum export_weight weight)
{
	char thread[sizeof(view->thread->name) + 1] = "";
	const struct ledger_row *rows;
	uint32_t owner;
	char *prefix;
	size_t n;
	int err;

	if (view->kind == LANE_HASKELL || (view->kind == LANE_CAPABILITY && !w->log_alone))
		return 0;
	rows = view__rows(view, &n);
	if (view->kind == LANE_THREAD) {
		memcpy(thread, view->thread->name, sizeof(view->thread->name));
		prefix = make_prefix(view->target, thread, view->thread->tid);
	} else {
		prefix = make_prefix(view->target, "capability", view->cap->no);
	}
	err = add_owner(w, prefix, &owner);
	for (size_t i = 0; i < n && !err; i++)
		/* what a log alone does not tell has no stack at all */
		if (rows[i].stack || !w->log_alone)
			err = weights__add(&w->weights, owner, rows[i].stack,
					   view__weight(view, &rows[i], weight));
	return err;
}

/* A report without times: its ticks, each worth the time between two. */
static int collect_centres(struct writer *w, const struct tl_target *target,
			   enum export_weight weight)
{
	uint64_t unit = weight == WEIGHT_SAMPLES ? 1 : target->tick_ns;
	uint32_t owner;
	int err = add_owner(w, make_prefix(target, NULL, 0), &owner);

	for (size_t i = 0; i < target->n_cc_nodes && !err; i++)
		if (target->cc_nodes[i].ticks && target->cc_nodes[i].stack)
			err = weights__add(&w->weights, owner, target->cc_nodes[i].stack,
					   target->cc_nodes[i].ticks * unit);
	return err;
}

static int collect(struct writer *w, enum export_weight weight)
{
	int err = views__collect(w->tl, EXPORT_LANES_THREAD | EXPORT_LANES_CAPABILITY, &w->views);

	for (size_t i = 0; i < w->views.n && !err; i++)
		err = collect_view(w, &w->views.v[i], weight);
	for (size_t t = 0; t < timeline__n_targets(w->tl) && !err; t++) {
		const struct tl_target *target = timeline__target(w->tl, t);

		if (w->log_alone && !target->n_cap_lanes)
			err = collect_centres(w, target, weight);
	}
	if (!err)
		weights__merge(&w->weights);
	return err;
}

/* ── lines ───────────────────────────────────────────────────────────────────────────────── */

static int cmp_lines(const void *pa, const void *pb, void *arg)
{
	const struct weighted *a = pa, *b = pb;
	const struct writer *w = arg;
	int diff = strcmp(w->prefixes[a->owner], w->prefixes[b->owner]);

	return diff ? diff
		    : stacks__cmp(timeline__stack(w->tl, a->stack),
				  timeline__stack(w->tl, b->stack), w->map);
}

static void put_line(const struct writer *w, const struct weighted *item, uint64_t n)
{
	struct tl_stack stack = timeline__stack(w->tl, item->stack);

	fputs(w->prefixes[item->owner], w->out);
	for (uint32_t i = 0; i < stack.n; i++) {
		fputc_unlocked(';', w->out);
		fputs_unlocked(w->names[stack.frames[i]], w->out);
	}
	fprintf(w->out, " %" PRIu64 "\n", n);
}

/* What is left of a division goes to the next line, so that the sum of all lines stays right. */
static void put_lines(struct writer *w, uint64_t unit)
{
	struct weighted *items = w->weights.items;
	uint64_t carry = unit / 2; /* rounds the sum so far to the nearest unit */

	if (w->weights.n)
		qsort_r(items, w->weights.n, sizeof(*items), cmp_lines, w);
	for (size_t i = 0; i < w->weights.n;) {
		uint64_t sum = 0, n;
		size_t k = i;

		while (k < w->weights.n && !cmp_lines(&items[i], &items[k], w))
			sum += items[k++].weight;
		n = sum / unit;
		carry += sum % unit;
		if (carry >= unit) {
			n++;
			carry -= unit;
		}
		if (n)
			put_line(w, &items[i], n);
		i = k;
	}
}

static int folded__write(FILE *out, const struct timeline *tl, const struct export_opts *opts)
{
	enum export_weight weight = opts ? opts->weight : WEIGHT_WALL;
	struct writer w = {.out = out, .tl = tl};
	int err;

	if (!timeline__session(tl))
		return -EINVAL;
	w.log_alone = session__log_alone(tl);
	err = name_frames(&w);
	if (!err)
		err = collect(&w, weight);
	if (!err) {
		put_lines(&w, weight == WEIGHT_SAMPLES ? 1 : 1000);
		err = ferror(out) ? -EIO : 0;
	}
	for (uint32_t i = 0; w.names && i < timeline__n_frames(tl); i++)
		free(w.names[i]);
	for (size_t i = 0; i < w.n_prefixes; i++)
		free(w.prefixes[i]);
	free(w.names);
	free(w.prefixes);
	free(w.map);
	weights__free(&w.weights);
	views__free(&w.views);
	return err;
}

const struct export_format export_folded = {
	.name = "folded",
	.suffix = ".folded",
	.write = folded__write,
};
