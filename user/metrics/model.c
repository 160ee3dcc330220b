/* SPDX-License-Identifier: GPL-2.0-or-later */
/* model: what has been seen of each process so far. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "metrics_priv.h"

/* How often the busiest places of safe calls are chosen, at most. */
#define CHOOSE_EVERY_NS 60000000000ULL

int metrics__new(struct metrics **ret_metrics)
{
	struct metrics *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	*ret_metrics = m;
	return 0;
}

/* ── users ───────────────────────────────────────────────────────────────────────────────── */

static struct model_user *user_of(const struct metrics *m, uid_t id)
{
	struct model_user *u;

	HASH_FIND(hh, m->users, &id, sizeof(id), u);
	return u;
}

static size_t count_of(const struct metrics *m, uid_t id)
{
	const struct model_user *u = user_of(m, id);

	return u ? u->n : 0;
}

static int count_up(struct metrics *m, uid_t id)
{
	struct model_user *u = user_of(m, id);

	if (u) {
		u->n++;
		return 0;
	}
	u = calloc(1, sizeof(*u));
	if (!u)
		return -ENOMEM;
	u->id = id;
	u->n = 1;
	return HASH_INSERT(m->users, id, sizeof(u->id), u);
}

static void count_down(struct metrics *m, uid_t id)
{
	struct model_user *u = user_of(m, id);

	if (!u || --u->n)
		return;
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it loses track of uthash */
	HASH_DEL(m->users, u);
	free(u);
}

/* ── their processes ─────────────────────────────────────────────────────────────────────── */

static void free_target(struct model_target *t)
{
	sites__free(&t->sites);
	free(t->labels);
	free(t->info);
	free(t);
}

static void forget(struct metrics *m, struct model_target *t)
{
	count_down(m, t->user);
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it loses track of uthash */
	HASH_DEL(m->targets, t);
	free_target(t);
}

void metrics__free(struct metrics *m)
{
	struct model_target *t, *next;

	if (!m)
		return;
	HASH_ITER (hh, m->targets, t, next)
		forget(m, t);
	free(m);
}

void metrics__set_places(struct metrics *m, metrics_place_fn place, metrics_user_fn user, void *ctx)
{
	m->place = place;
	m->user = user;
	m->place_ctx = ctx;
}

void metrics__set(struct metrics *m, enum metrics_value which, uint64_t value)
{
	m->values[which] = daemon__grows(which) ? MAX(m->values[which], value) : value;
	m->known[which] = true;
}

void metrics__set_labelled(struct metrics *m, enum metrics_group which, const char *label,
			   uint64_t value)
{
	struct labelled *l = m->labelled;

	while (l < m->labelled + m->n_labelled &&
	       (l->group != which || strcmp(l->label, label) != 0))
		l++;
	if (l == m->labelled + METRICS_MAX_LABELLED || strlen(label) >= sizeof(l->label))
		return;
	if (l == m->labelled + m->n_labelled)
		m->n_labelled++;
	l->group = which;
	snprintf(l->label, sizeof(l->label), "%s", label);
	l->value = value;
}

/* ── labels ──────────────────────────────────────────────────────────────────────────────── */

static void add_label_by(void (*add)(struct buf *, const char *), struct buf *out, const char *name,
			 const char *value)
{
	if (!value || !*value)
		return;
	if (out->len)
		buf__addc(out, ',');
	buf__addf(out, "%s=\"", name);
	add(out, value);
	buf__addc(out, '"');
}

static void add_label(struct buf *out, const char *name, const char *value)
{
	add_label_by(label__add, out, name, value);
}

static char *labels_of(const struct pic_target *pub)
{
	struct buf out = {0};

	buf__addf(&out, "pid=\"%d\"", pub->pid);
	add_label(&out, "program", pic_target__program(pub).s);
	if (out.err)
		buf__free(&out);
	return out.data;
}

/* Has at least one label, since it is appended after others. */
static char *info_of(const struct metrics *m, const struct pic_target *pub)
{
	struct metrics_place place = {"", "", ""};
	struct buf out = {0};

	if (m->place)
		m->place(m->place_ctx, pub->pid, &place);
	buf__adds(&out, "way=\"");
	label__add(&out, pub->way ? pub->way : "");
	buf__addc(&out, '"');
	add_label(&out, "ghc_version", pub->ghc_version);
	add_label_by(label__add_end, &out, "exe", pub->exe);
	add_label(&out, "service", place.service);
	add_label(&out, "container", place.container);
	add_label(&out, "pod", place.pod);
	if (out.err)
		buf__free(&out);
	return out.data;
}

/* ── processes ───────────────────────────────────────────────────────────────────────────── */

/* When it ended, as far as that is known by now. */
static uint64_t end_of(const struct model_target *t)
{
	return t->ended_ns ? t->ended_ns : UINT64_MAX;
}

/* Of processes that have ended the last values of the first one are the likeliest to have been
 * scraped. */
static bool goes_before(const struct model_target *a, const struct model_target *b, bool ended)
{
	return ended ? end_of(a) < end_of(b) : a->no > b->no;
}

/* Of the user with the most: the one that ended first or, of all, the newest one. NULL: none. */
static struct model_target *first_to_go(const struct metrics *m, bool ended)
{
	struct model_target *t, *next, *best = NULL;
	size_t most = 0;

	HASH_ITER (hh, m->targets, t, next) {
		size_t n = count_of(m, t->user);

		if ((ended && !t->ended) || n < most ||
		    (best && n == most && !goes_before(t, best, ended)))
			continue;
		best = t;
		most = n;
	}
	return best;
}

/*
 * Makes room for one more process of the user's. Ended processes go first. Otherwise the user with
 * the most processes gives one up, unless this user would then have more than that one. False:
 * there is no room.
 */
static bool make_room(struct metrics *m, uid_t user)
{
	struct model_target *t;

	if (HASH_COUNT(m->targets) < METRICS_MAX_TARGETS)
		return true;
	t = first_to_go(m, true);
	if (!t) {
		t = first_to_go(m, false);
		if (!t || count_of(m, t->user) <= count_of(m, user) + 1)
			return false;
	}
	forget(m, t);
	return true;
}

/* The series of *before go on as those of *t. Gauges begin anew. */
static void go_on(struct model_target *t, struct model_target *before)
{
	for (unsigned i = 0; i < ST_MAX; i++)
		sum__go_on(&t->thread_ns[i], &before->thread_ns[i]);
	for (unsigned i = 0; i < CS_MAX; i++)
		sum__go_on(&t->cap_ns[i], &before->cap_ns[i]);
	for (unsigned i = 0; i <= FIGURES_GENERATIONS; i++) {
		sum__go_on(&t->gc[i].count, &before->gc[i].count);
		sum__go_on(&t->gc[i].pause_ns, &before->gc[i].pause_ns);
		sum__go_on(&t->gc[i].sync_ns, &before->gc[i].sync_ns);
	}
	sum__go_on(&t->gc_off_ns, &before->gc_off_ns);
	sum__go_on(&t->gc_missed, &before->gc_missed);
	sum__go_on(&t->allocated_bytes, &before->allocated_bytes);
	t->probes_off_ns = t->probes_off_before_ns = before->probes_off_ns;
	t->cost_ns = t->cost_before_ns = before->cost_ns;
	sites__go_on(&t->sites, &before->sites);
}

/*
 * The process of *new has exec'ed its program, or the pid is in use again. What the previous
 * program did stays until it is stale, as that of any process that has ended, unless both have the
 * same labels: their series are the same, and a counter that began anew would lose what it counted
 * since it was last scraped.
 */
static void end_pid(struct metrics *m, struct model_target *new)
{
	struct model_target *t, *next;

	HASH_ITER (hh, m->targets, t, next) {
		if (t->pid != new->pid)
			continue;
		t->ended = true;
		if (strcmp(t->labels, new->labels) != 0)
			continue;
		go_on(new, t);
		forget(m, t);
	}
}

static int add_target(struct metrics *m, const struct figures *f, struct model_target **ret_target)
{
	struct model_target *t = calloc(1, sizeof(*t));
	int err = -ENOMEM;

	if (!t)
		return err;
	t->no = f->no;
	t->pid = f->target->pid;
	t->user = m->user ? m->user(m->place_ctx, t->pid) : 0;
	t->labels = labels_of(f->target);
	t->part_ns = t->chosen_ns = time__monotonic_ns();
	if (!t->labels)
		goto out;
	end_pid(m, t);
	if (!make_room(m, t->user)) {
		err = -E2BIG;
		goto out;
	}
	t->info = info_of(m, f->target);
	if (!t->info || count_up(m, t->user))
		goto out;
	HASH_ADD(hh, m->targets, no, sizeof(t->no), t);
	if (!t->hh.tbl) {
		count_down(m, t->user);
		goto out;
	}
	*ret_target = t;
	return 0;
out:
	free_target(t);
	return err;
}

static void take_gc(struct gc_sums *to, const struct figures_gc *gc, bool closed)
{
	sum__take(&to->count, gc->count, closed);
	sum__take(&to->pause_ns, gc->pause_ns, closed);
	sum__take(&to->sync_ns, gc->sync_ns, closed);
}

static void take_sites(struct model_target *t, const struct figures *f, bool closed)
{
	uint64_t now = time__monotonic_ns(), since = closed ? 0 : t->part_ns;

	if (now - MAX(t->chosen_ns, since) >= CHOOSE_EVERY_NS) {
		sites__choose(&t->sites, f);
		t->chosen_ns = now;
	}
	sites__take(&t->sites, f, closed);
	if (closed)
		t->part_ns = now;
}

/*
 * Time by state, of which no counter may decrease. How time on the CPU is divided is an estimate,
 * but the total of these states is exact. If a state has too much, because an earlier reading
 * attributed time to it that turned out to be another state's, the others grow by that much less.
 */
static void take_states(enum lane_kind kind, struct sum *v, const uint64_t *part, bool closed)
{
	uint64_t over = 0, growth = 0;

	for (unsigned i = 0; i < state__count(kind); i++) {
		uint64_t now = v[i].closed + part[i];

		if (!state__on_cpu(kind, i))
			continue;
		over += v[i].shown - MIN(now, v[i].shown);
		growth += now - MIN(now, v[i].shown);
	}
	for (unsigned i = 0; i < state__count(kind); i++) {
		uint64_t now = v[i].closed + part[i], grows = now - MIN(now, v[i].shown);

		if (state__on_cpu(kind, i) && grows)
			grows = over < growth ? grows - (uint64_t)((unsigned __int128)grows * over /
								   growth)
					      : 0;
		v[i].shown += grows;
		if (closed)
			v[i].closed = now;
	}
}

void metrics__take(void *metrics, const struct figures *f, bool closed)
{
	struct metrics *m = metrics;
	struct model_target *t;

	HASH_FIND(hh, m->targets, &f->no, sizeof(f->no), t);
	/* a process that has ended, and was forgotten or never shown, is not added again */
	if (!t && f->ended)
		return;
	if (!t && add_target(m, f, &t)) {
		m->hidden += !closed;
		return;
	}
	t->ended = f->ended;
	if (f->ended_ns)
		t->ended_ns = f->ended_ns;
	take_states(LANE_THREAD, t->thread_ns, f->thread_ns, closed);
	take_states(LANE_CAPABILITY, t->cap_ns, f->cap_ns, closed);
	for (unsigned i = 0; i < FIGURES_GENERATIONS; i++)
		take_gc(&t->gc[i], &f->gc[i], closed);
	take_gc(&t->gc[FIGURES_GENERATIONS], &f->gc_unknown, closed);
	sum__take(&t->gc_off_ns, f->gc_off_ns, closed);
	sum__take(&t->gc_missed, f->gc_missed, closed);
	t->gc_counted |= f->gc_counted;
	t->gc_off |= f->gc_off;
	take_sites(t, f, closed);
	sum__take(&t->allocated_bytes, f->allocated_bytes, closed);
	t->live_known |= f->live_known;
	if (f->live_known)
		t->live_bytes = f->live_bytes;
	if (f->held_bytes)
		t->held_bytes = f->held_bytes;
	if (f->haskell_threads)
		t->haskell_threads = f->haskell_threads;
	t->queued_known |= f->queued_known;
	if (f->queued_known)
		t->queued = f->queued;
}

void metrics__set_probes(struct metrics *m, pid_t pid, uint64_t off_ns, uint64_t cost_ns)
{
	struct model_target *t, *next;

	HASH_ITER (hh, m->targets, t, next) {
		if (t->pid != pid || t->ended)
			continue;
		t->probes_off_ns = MAX(t->probes_off_ns, t->probes_off_before_ns + off_ns);
		t->cost_ns = MAX(t->cost_ns, t->cost_before_ns + cost_ns);
	}
}

void metrics__forget_stale(struct metrics *m, uint64_t now_ns)
{
	struct model_target *t, *next;

	metrics__set(m, METRICS_TARGETS_HIDDEN, m->hidden);
	m->hidden = 0;
	HASH_ITER (hh, m->targets, t, next) {
		if (!t->ended)
			continue;
		t->ended_ns = t->ended_ns ?: now_ns;
		/* a process that ended while figures were read has an ended_ns after now_ns */
		if (now_ns >= t->ended_ns && now_ns - t->ended_ns >= METRICS_STALE_NS)
			forget(m, t);
	}
}
