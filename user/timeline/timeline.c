/* SPDX-License-Identifier: GPL-2.0-or-later */
/* timeline: owns a session's rooms, and calls them in order. */
#include "intake/seen.h"
#include "picture/figures.h"
#include "picture/make.h"
#include "timeline_priv.h"

#define DEFAULT_DEPTH	1000
#define MAX_DEPTH	4096
#define DEFAULT_SLICES	((size_t)1 << 20)
#define DEFAULT_RECORDS ((size_t)1 << 20)
#define DEFAULT_STACKS	((size_t)1 << 20)
#define MAX_TARGETS	65536
/* Limit on ended threads that keep lanes of their own when records become slices. */
#define MAX_ENDED ((size_t)1 << 16)

/* ── its life ────────────────────────────────────────────────────────────────────────────── */

static int make_room(void *ctx);

static void default_opts(struct timeline_opts *opts)
{
	if (!opts->max_depth)
		opts->max_depth = DEFAULT_DEPTH;
	opts->max_depth = MIN(MAX(opts->max_depth, 2), MAX_DEPTH);
	if (!opts->max_slices)
		opts->max_slices = DEFAULT_SLICES;
	if (!opts->max_records)
		opts->max_records = DEFAULT_RECORDS;
	if (!opts->max_stacks)
		opts->max_stacks = DEFAULT_STACKS;
	if (!opts->start_ns)
		opts->start_ns = time__monotonic_ns();
	if (!opts->start_unix_ns)
		opts->start_unix_ns = time__realtime_ns();
}

static int make_rooms(struct timeline *tl)
{
	const struct intake_opts opts = {
		.max_depth = tl->opts.max_depth,
		.plumbing = tl->opts.plumbing,
		.haskell = tl->opts.haskell_lanes,
		.stacks = tl->opts.stacks,
		.max_records = tl->opts.max_records,
		.max_stacks = tl->opts.max_stacks,
		.make_room = make_room,
		.retire = timeline__retire,
		.ctx = tl,
	};
	int err = picture__new(tl->opts.max_stacks, &tl->pic);

	return err ? err : intake__new(&opts, tl->pic, &tl->in);
}

uint64_t timeline__unix_ns(const struct timeline *tl, uint64_t monotonic_ns)
{
	return tl->opts.start_unix_ns + (monotonic_ns - tl->opts.start_ns);
}

void timeline__set_clock(struct timeline *tl, uint64_t monotonic_ns, uint64_t unix_ns)
{
	struct pic_session *session = picture__edit_session(tl->pic);

	tl->opts.start_unix_ns = unix_ns - (monotonic_ns - tl->opts.start_ns);
	session->start_unix_ns = timeline__unix_ns(tl, session->start_ns);
}

/* Initialises the session of a picture that starts at start_ns. -ENOMEM. */
int timeline__set_session(const struct timeline *tl, struct picture *pic, const char *version,
			  const char *mode, uint64_t start_ns)
{
	struct pic_session *session = picture__edit_session(pic);

	session->version = picture__string(pic, version);
	session->mode = picture__string(pic, mode);
	session->start_ns = start_ns;
	session->start_unix_ns = timeline__unix_ns(tl, start_ns);
	picture__set_period(pic, tl->period_ns);
	/* "" means no memory; every report must have them */
	return !session->mode[0] != !mode[0] || !session->version[0] != !version[0] ? -ENOMEM : 0;
}

int timeline__new(const struct timeline_opts *opts, const char *version, const char *mode,
		  struct timeline **ret_timeline)
{
	struct timeline *tl = calloc(1, sizeof(*tl));
	int err;

	if (!tl)
		return -ENOMEM;
	if (opts)
		tl->opts = *opts;
	default_opts(&tl->opts);
	if (tl->opts.frequency_hz)
		tl->period_ns = 1000000000ULL / tl->opts.frequency_hz;
	err = make_rooms(tl);
	if (err)
		goto fail;
	intake__set_period(tl->in, tl->period_ns);
	err = timeline__set_session(tl, tl->pic, version, mode, tl->opts.start_ns);
	if (err)
		goto fail;
	*ret_timeline = tl;
	return 0;
fail:
	timeline__free(tl);
	return err;
}

void timeline__use_period(struct timeline *tl, uint64_t period_ns)
{
	tl->period_ns = period_ns;
	intake__set_period(tl->in, period_ns);
	picture__set_period(tl->pic, period_ns);
	for (size_t i = 0; i < tl->n; i++)
		lanes__set_period(tl->v[i].lanes, period_ns);
}

void timeline__set_period(struct timeline *tl, uint64_t period_ns)
{
	tl->next_period_ns = period_ns;
	if (period_ns > tl->period_ns)
		timeline__use_period(tl, period_ns);
}

void timeline__free_target(struct target *t)
{
	lanes__free(t->lanes);
	log_build__free(t->log);
	*t = (struct target){0};
}

void timeline__free(struct timeline *tl)
{
	if (!tl)
		return;
	for (size_t i = 0; i < tl->n; i++)
		timeline__free_target(&tl->v[i]);
	free(tl->v);
	log_build__free(tl->alone);
	intake__free(tl->in);
	picture__free(tl->pic);
	picture__free(tl->half);
	free(tl);
}

struct intake *timeline__intake(const struct timeline *tl)
{
	return tl->in;
}

const struct picture *timeline__picture(const struct timeline *tl)
{
	return tl->pic;
}

/* ── targets ─────────────────────────────────────────────────────────────────────────────── */

int timeline__new_lanes(const struct timeline *tl, struct seen *seen, struct lanes **ret_lanes)
{
	const struct lanes_opts opts = {
		.period_ns = tl->period_ns,
		.haskell = tl->opts.haskell_lanes,
	};

	return lanes__new(&opts, tl->in, seen, ret_lanes);
}

static int add_target(struct timeline *tl, struct seen *seen)
{
	struct target t = {.seen = seen, .no = seen->no};
	int err = ARRAY_RESERVE(tl->v, tl->cap, tl->n + 1, MAX_TARGETS);

	if (!err)
		err = timeline__new_lanes(tl, seen, &t.lanes);
	if (!err)
		tl->v[tl->n++] = t;
	return err;
}

/* Updates v: the intake may have new targets, which come last, and may have forgotten others. */
int timeline__look(struct timeline *tl)
{
	size_t kept = 0;
	int err = 0;

	for (size_t i = 0; i < tl->n; i++) {
		if (kept < intake__n_targets(tl->in) &&
		    intake__target(tl->in, kept)->no == tl->v[i].no)
			tl->v[kept++] = tl->v[i];
		else
			timeline__free_target(&tl->v[i]);
	}
	tl->n = kept;
	while (!err && tl->n < intake__n_targets(tl->in))
		err = add_target(tl, intake__target(tl->in, tl->n));
	return err;
}

static int new_log(struct timeline *tl, const struct join_log *log, const struct seen *seen,
		   struct log_build **ret_build)
{
	const struct join_opts opts = {
		.max_depth = tl->opts.max_depth,
		.period_ns = tl->period_ns,
		.haskell = tl->opts.haskell_lanes,
	};

	return log_build__new(&opts, log, tl->pic, seen, ret_build);
}

int timeline__add_log_target(struct timeline *tl, const struct join_log *log)
{
	if (tl->finished)
		return -EINVAL;
	if (picture__n_targets(tl->pic))
		return -EEXIST;
	return new_log(tl, log, NULL, &tl->alone);
}

int timeline__join_log(struct timeline *tl, pid_t pid, const struct join_log *log)
{
	const struct seen *seen = intake__find(tl->in, pid);
	int err;

	if (tl->finished)
		return -EINVAL;
	if (!seen)
		return -ENOENT;
	err = timeline__look(tl);
	for (size_t i = 0; !err && i < tl->n; i++) {
		struct target *t = &tl->v[i];

		if (t->seen == seen)
			err = t->log ? -EEXIST : new_log(tl, log, seen, &t->log);
	}
	return err;
}

/* ── while records come ──────────────────────────────────────────────────────────────────── */

/* Number of slices for each lane. */
size_t timeline__lane_budget(const struct timeline *tl)
{
	size_t n = 0;

	for (size_t i = 0; i < tl->n; i++)
		n += tl->v[i].seen->n_threads;
	return MAX(tl->opts.max_slices / MAX(n, (size_t)1), MIN_LANE_SLICES);
}

static int descending(const void *pa, const void *pb)
{
	uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;

	return (a < b) - (a > b);
}

/* If threads come and go by the hundred thousand, those that did the least lose their own lanes. */
static int drop_ended(struct timeline *tl)
{
	uint64_t *weights, most;
	size_t n = 0, left;
	int err = 0;

	for (size_t i = 0; i < tl->n; i++)
		n += lanes__ended(tl->v[i].lanes, NULL);
	if (n <= MAX_ENDED)
		return 0;
	weights = calloc(n, sizeof(*weights));
	if (!weights)
		return -ENOMEM;
	n = 0;
	for (size_t i = 0; i < tl->n; i++)
		n += lanes__ended(tl->v[i].lanes, weights + n);
	qsort(weights, n, sizeof(*weights), descending);
	/* keeps half of the limit, so that this is rare */
	most = weights[MAX_ENDED / 2];
	left = n - MAX_ENDED / 2;
	free(weights);
	for (size_t i = 0; !err && left && i < tl->n; i++)
		err = lanes__drop_ended(tl->v[i].lanes, most, &left);
	return err;
}

/* A callback for the intake: makes lanes of its records. */
static int make_room(void *ctx)
{
	struct timeline *tl = ctx;
	size_t before = intake__n_records(tl->in), max;
	int err = timeline__look(tl);

	max = timeline__lane_budget(tl);
	for (size_t i = 0; !err && i < tl->n; i++)
		err = lanes__fold(tl->v[i].lanes, max);
	if (!err)
		err = drop_ended(tl);
	/* after an error, some of the time may be in the lanes twice, or missing */
	tl->spoilt = tl->spoilt ? tl->spoilt : err;
	log_debug("timeline: %zu of %zu records became slices", before - intake__n_records(tl->in),
		  before);
	return err;
}

/* ── figures ─────────────────────────────────────────────────────────────────────────────── */

void timeline__set_figures(struct timeline *tl, timeline_figures_fn fn, void *ctx)
{
	tl->figures = fn;
	tl->figures_ctx = ctx;
}

int timeline__give_figures(const struct timeline *tl, const struct lanes *lanes, uint64_t at_ns,
			   bool closed)
{
	struct figures figures;
	int err = tl->figures ? lanes__figures(lanes, at_ns, closed, &figures) : -ENOENT;

	if (err)
		return err == -ENOENT ? 0 : err;
	tl->figures(tl->figures_ctx, &figures, closed);
	figures__free(&figures);
	return 0;
}

int timeline__figures(struct timeline *tl, uint64_t at_ns)
{
	int err = tl->finished ? -EINVAL : timeline__look(tl);

	for (size_t i = 0; !err && i < tl->n; i++) {
		struct target *t = &tl->v[i];

		if (!t->figures_final)
			err = timeline__give_figures(tl, t->lanes, at_ns, false);
		t->figures_final = t->seen->settled;
	}
	return err;
}

int timeline__fold(struct timeline *tl)
{
	return tl->finished ? -EINVAL : make_room(tl);
}

int timeline__fold_at(struct timeline *tl, size_t n)
{
	int err;

	if (intake__n_records(tl->in) < MAX(n, 2 * tl->left))
		return 0;
	err = timeline__fold(tl);
	tl->left = intake__n_records(tl->in);
	return err;
}

/* ── readings ────────────────────────────────────────────────────────────────────────────── */

int timeline__cut(struct timeline *tl, uint64_t at_ns, struct timeline_cut *ret_cut)
{
	struct timeline_cut cut = {0};
	int err = tl->finished ? -EINVAL : timeline__look(tl);

	if (err)
		return err;
	cut.v = calloc(tl->n + 1, sizeof(*cut.v));
	if (!cut.v)
		return -ENOMEM;
	for (; !err && cut.n < tl->n; cut.n++) {
		const struct target *t = &tl->v[cut.n];

		cut.v[cut.n].no = t->no;
		cut.v[cut.n].pid = t->seen->pid;
		err = lanes__read(t->lanes, at_ns, &cut.v[cut.n].reading);
	}
	if (err)
		timeline_cut__free(&cut);
	else
		*ret_cut = cut;
	return err;
}

void timeline_cut__free(struct timeline_cut *cut)
{
	for (size_t i = 0; i < cut->n; i++)
		reading__free(&cut->v[i].reading);
	free(cut->v);
	*cut = (struct timeline_cut){0};
}
