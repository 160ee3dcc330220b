/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The text report without -v: a one-screen overview of one process or of all of them. What stands
 * out, where the time went, what used the CPU, which calls took long, and whether that can be
 * trusted.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "text_priv.h"

#define THREADS	     3
#define CAPABILITIES 4
#define PROCESSES    15
#define ALL_THREADS  3 /* across all processes */

/* A part of the overview, and the number of rows in its table. */
struct part {
	text_part *put;
	size_t rows;
};

static int put_parts(const struct text *t, const struct part *parts, size_t n)
{
	int err = 0;

	for (size_t i = 0; i < n && !err; i++) {
		struct text part = *t;

		part.rows = parts[i].rows;
		err = parts[i].put(&part);
	}
	return err;
}

static struct account account_of(const struct pic_lane *const *v, size_t n)
{
	struct account sum = {0};

	for (size_t i = 0; i < n; i++)
		account__add(&sum, v[i]);
	return sum;
}

static void add_bar(struct bars *b, enum lane_kind kind, const struct pic_lane *const *v, size_t n,
		    bool counted, const char *label)
{
	const struct account sum = account_of(v, n);

	bars__add(b, kind, &sum, counted, "", label);
}

/* ── one process ─────────────────────────────────────────────────────────────────────────── */

/* Adds a bar for all awake threads, one for each of the busiest, and one for the mostly idle
 * ones. */
static void add_threads(struct bars *b, const struct pic_lane *const *v, size_t n, size_t awake)
{
	size_t shown = awake <= THREADS + 1 ? awake : THREADS;
	char label[96];

	snprintf(label, sizeof(label), awake < n ? "%zu busy threads" : "all %zu threads", awake);
	if (awake > 1)
		add_bar(b, LANE_THREAD, v, awake, true, label);
	for (size_t i = 0; i < shown; i++) {
		snprintf(label, sizeof(label), "%d %.16s", (int)v[i]->tid, or_empty(v[i]->name));
		add_bar(b, LANE_THREAD, v + i, 1, awake == 1, label);
	}
	snprintf(label, sizeof(label), "%zu more", awake - shown);
	if (shown < awake)
		add_bar(b, LANE_THREAD, v + shown, awake - shown, false, label);
	snprintf(label, sizeof(label), "%zu mostly idle", n - awake);
	if (awake < n)
		add_bar(b, LANE_THREAD, v + awake, n - awake, !awake, label);
}

static int add_capabilities(struct bars *b, const struct text *t)
{
	const struct pic_lanes *caps = &t->target->lanes[LANE_CAPABILITY];
	const struct pic_lane **v = calloc(caps->n + 1, sizeof(struct pic_lane *));
	bool alone = !export__shows(t->opts, LANE_THREAD);
	char label[96];

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < caps->n; i++)
		v[i] = &caps->v[i];
	for (size_t i = 0; i < caps->n && caps->n <= CAPABILITIES; i++) {
		snprintf(label, sizeof(label), "capability %" PRIu32, v[i]->cap);
		add_bar(b, LANE_CAPABILITY, v + i, 1, alone, label);
	}
	snprintf(label, sizeof(label), "all %zu capabilities", caps->n);
	if (caps->n > CAPABILITIES)
		add_bar(b, LANE_CAPABILITY, v, caps->n, alone, label);
	free(v);
	return 0;
}

static int put_time(const struct text *t)
{
	size_t n = t->target->lanes[LANE_THREAD].n, awake = 0;
	const struct pic_lane **v = NULL;
	struct bars *b;
	int err = bars__new(t, THREADS + CAPABILITIES + 4, &b);

	if (err)
		return err;
	if (export__shows(t->opts, LANE_THREAD)) {
		err = text__order_threads(t->target, &v, &awake);
		if (!err)
			add_threads(b, v, n, awake);
	}
	if (!err && export__shows(t->opts, LANE_CAPABILITY))
		err = add_capabilities(b, t);
	if (!err)
		err = bars__print(b, "Where the time went", "thread");
	if (!err && v)
		err = text__waits(t, v, awake);
	free(v);
	bars__free(b);
	return err;
}

int text__overview(const struct text *t)
{
	static const struct part parts[] = {
		{text__findings, 4},	 {put_time, 0},		  {text__haskell_threads, 5},
		{text__functions, 7},	 {text__cost_centres, 5}, {text__safe_calls, 4},
		{text__unsafe_calls, 3}, {text__gc, 0},		  {text__allocation, 5},
		{text__heap_curves, 8},	 {text__windows, 3},	  {text__heap, 3},
		{text__brief_trust, 0},
	};
	const struct pic_target *const of[] = {t->target};
	struct text one = *t;

	one.of = of;
	one.n_of = 1;
	return put_parts(&one, parts, ARRAY_SIZE(parts));
}

/* ── several ─────────────────────────────────────────────────────────────────────────────── */

struct process {
	const struct pic_target *target;
	struct account sum;
};

static int by_cpu(const void *pa, const void *pb)
{
	const struct process *a = pa, *b = pb;

	return CMP(b->sum.cpu, a->sum.cpu) ?: CMP(a->target->pid, b->target->pid);
}

#define MOST_OF_WHERE 16

/* " @nginx", " @user@1000/app": the service or the shortened container, as far as a row has room
 * for it. */
static void put_where(const struct pic_target *target, char *out, size_t room)
{
	const char *service = or_empty(target->service), *container = or_empty(target->container);
	const char *all = *service ? service : container;
	size_t n = 0, most = MIN(room, (size_t)MOST_OF_WHERE + sizeof(" @"));

	out[0] = '\0';
	if (*all)
		n = (size_t)snprintf(out, most, " @");
	while (*all && n < most) {
		size_t len = strcspn(all, "/");
		size_t shown =
			all[len] || *service ? service__stem(all, len) : container__shown(all);

		n += (size_t)snprintf(out + n, most - n, "%.*s%s", (int)shown, all,
				      all[len] ? "/" : "");
		all += len + (all[len] == '/');
	}
}

static void add_process(struct bars *b, const struct process *p)
{
	const struct pic_gc *gc = &p->target->gc;
	char label[96], where[32], pause[40] = "";

	put_where(p->target, where, sizeof(where));
	snprintf(label, sizeof(label), "%d %.16s%s", (int)p->target->pid, or_empty(p->target->comm),
		 where);
	if (gc->known && gc->pause_ns)
		snprintf(pause, sizeof(pause), "%s%s",
			 gc->inferred			     ? "≤ "
			 : pic_target__gcs_missed(p->target) ? "≥ "
							     : "",
			 human__duration(gc->pause_ns).s);
	bars__add(b, LANE_THREAD, &p->sum, true, pause, label);
}

/* The processes of which any thread was seen, by CPU time. */
static int put_processes(const struct text *t)
{
	struct process *v = calloc(t->n_of + 1, sizeof(*v));
	size_t n = 0, shown;
	struct bars *b;
	int err = v ? bars__new(t, PROCESSES, &b) : -ENOMEM;

	if (err)
		goto out;
	for (size_t i = 0; i < t->n_of; i++) {
		const struct pic_lanes *threads = &t->of[i]->lanes[LANE_THREAD];

		if (!threads->n)
			continue;
		v[n] = (struct process){.target = t->of[i]};
		for (size_t k = 0; k < threads->n; k++)
			account__add(&v[n].sum, &threads->v[k]);
		n++;
	}
	qsort(v, n, sizeof(*v), by_cpu);
	shown = MIN(n, (size_t)PROCESSES);
	for (size_t i = 0; i < shown; i++)
		add_process(b, &v[i]);
	err = bars__print(b, "Where the time went, by process", "process");
	if (!err && shown < n)
		fprintf(t->out, "  … and %zu more processes\n", n - shown);
	if (!err && n < t->n_of)
		fprintf(t->out, "  %zu more, with no thread seen\n", t->n_of - n);
	bars__free(b);
out:
	free(v);
	return err;
}

struct thread {
	const struct pic_target *target;
	const struct pic_lane *lane;
};

static int by_busy(const void *pa, const void *pb)
{
	const struct thread *a = pa, *b = pb;

	return CMP(lane__busy_ns(b->lane), lane__busy_ns(a->lane))
		       ?: CMP(a->lane->tid, b->lane->tid);
}

static int put_busiest(const struct text *t)
{
	size_t n = 0, max = 0;
	struct thread *v;
	struct bars *b;
	int err;

	for (size_t i = 0; i < t->n_of; i++)
		max += t->of[i]->lanes[LANE_THREAD].n;
	v = calloc(max + 1, sizeof(*v));
	err = v ? bars__new(t, ALL_THREADS, &b) : -ENOMEM;
	if (err)
		goto out;
	for (size_t i = 0; i < t->n_of; i++)
		for (size_t k = 0; k < t->of[i]->lanes[LANE_THREAD].n; k++)
			v[n++] = (struct thread){t->of[i], &t->of[i]->lanes[LANE_THREAD].v[k]};
	qsort(v, n, sizeof(*v), by_busy);
	for (size_t i = 0; i < MIN(n, (size_t)ALL_THREADS) && !v[i].lane->asleep; i++) {
		char label[96];

		snprintf(label, sizeof(label), "%d %.16s of %d", (int)v[i].lane->tid,
			 or_empty(v[i].lane->name), (int)v[i].target->pid);
		add_bar(b, LANE_THREAD, &v[i].lane, 1, false, label);
	}
	err = bars__print(b, NULL, "busiest threads");
	bars__free(b);
out:
	free(v);
	return err;
}

int text__overview_of_all(const struct text *t)
{
	static const struct part parts[] = {
		{text__findings, 3},  {put_processes, 0},     {put_busiest, 0},
		{text__functions, 5}, {text__safe_calls, 4},  {text__unsafe_calls, 2},
		{text__ended, 3},     {text__brief_trust, 0},
	};
	size_t n = picture__n_targets(t->pic);
	const struct pic_target **of = calloc(n + 1, sizeof(struct pic_target *));
	struct text all = *t;
	int err;

	if (!of)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		of[i] = picture__target(t->pic, i);
	all.of = of;
	all.n_of = n;
	err = put_parts(&all, parts, ARRAY_SIZE(parts));
	free(of);
	return err;
}
