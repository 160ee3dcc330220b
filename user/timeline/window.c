/* SPDX-License-Identifier: GPL-2.0-or-later */
/* window: finishes a target that is retired, a window, or the session. */
#include "findings/findings.h"
#include "intake/seen.h"
#include "picture/make.h"
#include "timeline_priv.h"

/* ── what goes ───────────────────────────────────────────────────────────────────────────── */

/* The lanes made of a target so far, or new ones, for the caller to free. */
static int take_lanes(struct timeline *tl, struct seen *seen, struct lanes **ret_lanes)
{
	size_t i = 0;

	while (i < tl->n && tl->v[i].no != seen->no)
		i++;
	if (i == tl->n)
		return timeline__new_lanes(tl, seen, ret_lanes);
	*ret_lanes = tl->v[i].lanes;
	tl->v[i].lanes = NULL;
	timeline__free_target(&tl->v[i]);
	tl->n--;
	memmove(&tl->v[i], &tl->v[i + 1], (tl->n - i) * sizeof(*tl->v));
	return 0;
}

int timeline__retire(void *ctx, struct seen *seen)
{
	struct timeline *tl = ctx;
	size_t kept = picture__n_kept(tl->pic);
	struct lanes *lanes = NULL;
	int err = take_lanes(tl, seen, &lanes), err2;

	if (!err)
		err = lanes__finish(lanes, seen->end_ns, MIN_LANE_SLICES);
	if (!err)
		err = timeline__give_figures(tl, lanes, UINT64_MAX, true);
	lanes__free(lanes);
	seen__made(tl->in, seen);
	err2 = picture__retire_target(tl->pic, seen->pub, kept);
	return err ? err : err2;
}

/* ── finish ──────────────────────────────────────────────────────────────────────────────── */

/* Each target was given the run time of the whole kernel side, up to its end: moves it to the
 * session. Of several targets each has what the programs themselves timed. */
static void share_cost(struct timeline *tl)
{
	struct pic_session *session = picture__edit_session(tl->pic);

	for (size_t i = 0; tl->n > 1 && i < tl->n; i++) {
		struct pic_target *pub = tl->v[i].seen->pub;

		if (pub->bpf_ns_known) {
			session->bpf_ns = MAX(session->bpf_ns, pub->bpf_ns);
			session->bpf_ns_known = true;
		}
		pub->bpf_ns = pub->own_bpf_ns;
		pub->bpf_ns_known = pub->own_bpf_ns_known;
	}
}

/* Frees the sources of a target as soon as it is finished. */
static int finish_target(struct timeline *tl, struct target *t, uint64_t end_ns, size_t max_slices)
{
	int err = lanes__finish(t->lanes, end_ns, max_slices);

	if (!err)
		err = timeline__give_figures(tl, t->lanes, UINT64_MAX, true);
	if (!err && t->log)
		err = log_build__join(t->log, seen__end(t->seen, end_ns));
	if (!err)
		err = findings__make(tl->pic, t->seen->pub);
	seen__made(tl->in, t->seen);
	timeline__free_target(t);
	return err;
}

static int finish_alone(struct timeline *tl)
{
	struct pic_target *target;
	int err = log_build__alone(tl->alone, &target);

	return err ? err : findings__make(tl->pic, target);
}

static void warn_of_stacks(const struct timeline *tl)
{
	if (picture__stacks_left_out(tl->pic) || intake__stacks_full(tl->in))
		log_warn("timeline: too many different stacks to keep; the rest are shown as one: "
			 "lower --frequency or the duration");
}

int timeline__finish(struct timeline *tl, uint64_t end_ns)
{
	size_t max;
	int err;

	if (tl->finished)
		return -EINVAL;
	tl->finished = true;
	err = timeline__look(tl);
	if (!err)
		err = intake__close(tl->in, end_ns);
	end_ns = picture__session(tl->pic)->end_ns;
	max = timeline__lane_budget(tl);
	share_cost(tl);
	for (size_t i = 0; !err && i < tl->n; i++)
		err = finish_target(tl, &tl->v[i], end_ns, max);
	if (!err && tl->alone)
		err = finish_alone(tl);
	warn_of_stacks(tl);
	if (!err && tl->spoilt) {
		log_error("some time is missing, or is counted twice: %s", strerror(-tl->spoilt));
		picture__edit_session(tl->pic)->exit_code = EXIT_PARTIAL;
	}
	return err;
}

/* ── windows ─────────────────────────────────────────────────────────────────────────────── */

/* Makes the window's picture as at the end, but keeps what the next window needs. */
static int make_window(struct timeline *tl, uint64_t at_ns)
{
	struct pic_session *session = picture__edit_session(tl->pic);
	size_t max = timeline__lane_budget(tl);
	int err = tl->spoilt;

	tl->spoilt = 0;
	session->end_ns = MAX(at_ns, session->start_ns);
	share_cost(tl);
	for (size_t i = 0; !err && i < tl->n; i++) {
		struct target *t = &tl->v[i];

		log_build__free(t->log);
		t->log = NULL;
		err = ccs__resolve(tl->in, t->seen);
		if (!err)
			err = lanes__window(t->lanes, at_ns, max);
		if (!err)
			err = timeline__give_figures(tl, t->lanes, at_ns, true);
		if (!err)
			err = findings__make(tl->pic, t->seen->pub);
	}
	warn_of_stacks(tl);
	return err;
}

/* Continues all targets in the new picture. */
static int cut(struct timeline *tl, uint64_t at_ns, struct picture *next)
{
	int err = 0;

	for (size_t i = 0; !err && i < tl->n; i++)
		err = lanes__let_go(tl->v[i].lanes, at_ns);
	if (!err)
		err = intake__cut(tl->in, at_ns, next);
	if (!err)
		err = timeline__look(tl);
	for (size_t i = 0; !err && i < tl->n; i++)
		err = lanes__cut(tl->v[i].lanes, at_ns);
	return err;
}

int timeline__window(struct timeline *tl, uint64_t at_ns, struct picture **ret_picture)
{
	const struct pic_session *session = picture__session(tl->pic);
	struct picture *made = tl->pic, *next;
	int err = tl->finished ? -EINVAL : timeline__look(tl), failed;

	at_ns = MAX(at_ns, session->start_ns);
	if (!err)
		err = picture__new(tl->opts.max_stacks, &next);
	if (err)
		return err;
	failed = make_window(tl, at_ns);
	err = timeline__set_session(tl, next, session->version, session->mode, at_ns);
	picture__edit_session(next)->window_no = session->window_no + 1;
	tl->pic = next;
	if (!err)
		err = cut(tl, at_ns, next);
	intake__cut_end(tl->in, err);
	if (err) {
		tl->half = made;
		tl->finished = true;
		return err;
	}
	if (failed) {
		log_error("a window cannot be made: %s", strerror(-failed));
		picture__free(made);
		made = NULL;
	}
	if (tl->next_period_ns)
		timeline__use_period(tl, tl->next_period_ns);
	*ret_picture = made;
	return 0;
}
