/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Replays a capture's inputs into a timeline, and answers its questions from the capture. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "blocks_priv.h"
#include "picture/picture.h"
#include "replay_priv.h"

#define MAX_STRING_BYTES ((size_t)512 << 20)

/* ── inputs ──────────────────────────────────────────────────────────────────────────────── */

static int add_target(struct replay *r, const struct intake_input *in)
{
	struct replay_target *t;
	struct namer namer = {.name = replay__name};
	int err;

	if (!in->info || in->pid != in->info->pid)
		return -EBADMSG;
	err = ARRAY_RESERVE(r->targets, r->targets_cap, r->n_targets + 1, 65536);
	if (err)
		return err;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->replay = r;
	t->no = (uint32_t)r->n_targets;
	t->info = *in->info;
	namer.ctx = t;
	if (in->n & TN_SITE)
		namer.site = replay__site;
	if (in->n & TN_CCS) {
		namer.read_ccs = replay__read_ccs;
		namer.ccs = replay__ccs;
	}
	err = intake__add_target(r->in, in->info, &namer, in->a, in->b);
	if (err) {
		free(t);
		return err;
	}
	r->targets[r->n_targets++] = t;
	replay__report_no_lanes(r, in->pid);
	return replay_windows__joined(&r->windows, r->tl, in->pid);
}

static int update_target(struct replay *r, const struct intake_input *in)
{
	if (!in->info)
		return -EBADMSG;
	/* the latest one with that pid */
	for (size_t i = r->n_targets; i > 0; i--) {
		if (r->targets[i - 1]->info.pid != in->info->pid)
			continue;
		r->targets[i - 1]->info = *in->info;
		break;
	}
	return intake__update_target(r->in, in->info);
}

static int add_site_counters(struct replay *r, const struct intake_input *in)
{
	struct wire_site_key key;
	struct wire_site site = {0};
	int err;

	/* as in header.c: older ones lack the last field */
	if (in->size != sizeof(key) + sizeof(site) &&
	    in->size != sizeof(key) + offsetof(struct wire_site, exit_wall_ns))
		return -EBADMSG;
	memcpy(&key, in->data, sizeof(key));
	memcpy(&site, (const char *)in->data + sizeof(key), in->size - sizeof(key));
	err = intake__site_counters(r->in, &key, &site, in->a);
	return err ? err : replay__counters(r, &key, &site, in->a);
}

static int set_cost(struct replay *r, const struct intake_input *in)
{
	const unsigned char *bytes = in->data;
	struct intake_cost cost = {0};

	/* as in header.c: older ones lack the last fields */
	if (in->size != sizeof(cost) && in->size != offsetof(struct intake_cost, own_bpf_ns) &&
	    in->size != offsetof(struct intake_cost, held_up_until_ns))
		return -EBADMSG;
	memcpy(&cost, in->data, in->size);
	/* a byte of the file may be no valid bool */
	cost.bpf_ns_known = bytes[offsetof(struct intake_cost, bpf_ns_known)] == 1;
	cost.calls_missed = bytes[offsetof(struct intake_cost, calls_missed)] == 1;
	cost.own_bpf_ns_known = in->size == sizeof(cost);
	return intake__set_cost(r->in, in->pid, &cost);
}

static void has_come_to(struct replay *r, uint64_t ns, bool last)
{
	if (r->hooks.at)
		r->hooks.at(r->hooks.ctx, r->tl, ns, last);
}

static int finish(struct replay *r, uint64_t end_ns)
{
	/* if the capture has the session's end, it has what goes on there for the last window */
	int err = r->ending ? 0 : replay_windows__end(&r->windows, r->tl, end_ns);

	if (err)
		return err;
	has_come_to(r, end_ns, true);
	r->finished = true;
	return timeline__finish(r->tl, end_ns);
}

/* The capture ends without the session's end. */
static int finish_early(struct replay *r)
{
	int err = r->ending ? 0 : replay_windows__end(&r->windows, r->tl, r->last_ns);

	if (!err)
		err = replay__count_calls(r);
	return err ? err : finish(r, r->last_ns);
}

static int add_snapshot(struct replay *r, const struct intake_input *in)
{
	int err;

	if (!in->snapshot)
		return -EBADMSG;
	r->ending |= in->n != 0;
	err = replay_windows__snapshot(&r->windows, r->tl, in);
	if (err != -ENOENT)
		return err;
	return intake__snapshot(r->in, in->pid, in->snapshot, in->a, in->n);
}

/* A record that the intake refuses leaves the thread as it was. */
static int fill_gap(struct replay *r, const struct wire_off *off)
{
	int err = replay_windows__record(&r->windows, r->tl, off->h.ns);

	if (!err)
		err = intake__record(r->in, off, sizeof(*off));
	return err == -ENOMEM ? err : 0;
}

static int add_record(struct replay *r, const struct intake_input *in)
{
	const void *data = in->data;
	const struct wire_hdr *h = data;
	struct wire_thread_event begin;
	struct wire_off off;
	int err;

	if (in->size < sizeof(*h))
		return -EBADMSG;
	err = h->ns <= MAX_TIME ? gaps__record(&r->gaps, in, &off) : 0;
	if (err > 0)
		err = fill_gap(r, &off);
	if (!err)
		err = replay_windows__record(&r->windows, r->tl,
					     h->ns <= MAX_TIME ? h->ns : UINT64_MAX);
	if (!err && h->type == WIRE_THREAD_NEW && h->ns <= MAX_TIME && in->size == sizeof(begin)) {
		memcpy(&begin, in->data, sizeof(begin));
		data = &begin;
		err = replay_windows__begin(&r->windows, r->tl, &begin);
	}
	if (!err)
		err = intake__record(r->in, data, in->size);
	if (!err && h->ns < MAX_TIME) {
		r->last_ns = MAX(r->last_ns, h->ns);
		has_come_to(r, r->last_ns, false);
	}
	if (!err && h->type == WIRE_CALL && h->ns <= MAX_TIME)
		err = replay__call(r, in);
	return err;
}

/*
 * Takes what threads were doing at a cut of the session. A replay in windows has its own cuts, and
 * one that comes after the state was read but before the session's cut would get it for a wrong
 * time.
 */
static int add_state(struct replay *r, const struct intake_input *in)
{
	struct wire_thread thread;
	struct wire_off off;
	int err;

	if (r->windows.n_live_cuts)
		return 0;
	if (in->kind == TI_OFF_STACK)
		return in->size == sizeof(struct wire_off_stack)
			       ? intake__off_stack(r->in, in->pid, in->tid, in->data)
			       : -EBADMSG;
	if (in->size != sizeof(struct wire_thread))
		return -EBADMSG;
	memcpy(&thread, in->data, sizeof(thread));
	err = gaps__state(&r->gaps, in->tid, &thread, &off);
	/* windows that are over had it from the first pass */
	if (err > 0)
		err = replay_windows__is_over(&r->windows, off.h.ns) ? 0 : fill_gap(r, &off);
	return err ? err : intake__thread_state(r->in, in->tid, &thread);
}

static int forget_states(struct replay *r)
{
	if (r->windows.n_live_cuts)
		r->windows.n_live_cuts--;
	return intake__forget_states(r->in);
}

/* Calls the function of intake.h that was reported to the tap. */
static int apply(struct replay *r, const struct intake_input *in)
{
	switch (in->kind) {
	case TI_TARGET:
		return add_target(r, in);
	case TI_UPDATE_TARGET:
		return update_target(r, in);
	case TI_RECORD:
		return add_record(r, in);
	case TI_SNAPSHOT:
		return add_snapshot(r, in);
	case TI_SITE_COUNTERS:
		return add_site_counters(r, in);
	case TI_THREAD_STATE:
	case TI_OFF_STACK:
		return add_state(r, in);
	case TI_CENSUS:
		return replay__census(r, in);
	case TI_COST:
		return set_cost(r, in);
	case TI_LOST:
		return in->text ? intake__set_lost(r->in, in->pid, in->text, in->a) : -EBADMSG;
	case TI_LOST_SHARE:
		return intake__set_lost_share(r->in, in->pid, in->share);
	case TI_MISSING:
		return in->text ? intake__add_missing(r->in, in->pid, in->text) : -EBADMSG;
	case TI_EXIT_CODE:
		intake__set_exit_code(r->in, (int)MIN(in->a, (uint64_t)255));
		return 0;
	case TI_END_TARGET:
		return in->text ? intake__end_target(r->in, in->pid, in->text, in->a) : -EBADMSG;
	case TI_FORGET_TARGET:
		return intake__forget_target(r->in, in->pid);
	case TI_SETTLE_TARGET:
		return intake__settle_target(r->in, in->pid, in->n);
	case TI_RETIRE_SETTLED:
		return intake__retire_settled(r->in, in->a);
	case TI_RENAME:
		return intake__rename(r->in);
	case TI_RETAKEN:
		r->n_retaken++;
		return intake__retaken(r->in, in->pid, in->a, in->b);
	case TI_LIVING:
		return replay__living(r, in);
	case TI_CUT:
		return forget_states(r);
	case TI_FINISH:
		return r->finished ? -EINVAL : finish(r, in->a);
	case TI_NAME:
	case TI_SITE:
	case TI_CCS:
		/* in windows, names are needed for what goes on at a window's end: all answers were
		 * taken in the first pass */
		return r->windows.every_ns ? 0 : replay__take_answer(r, in);
	case TI_LOG_BYTES:
		return replay__log_bytes(r, in);
	case TI_LOG:
		return replay__log(r, in);
	case TI_NONE:
	case TI_MAX:
		break;
	}
	return -EBADMSG;
}

/* Whether the input belongs to the moment at which it was reported, rather than to a record. */
static bool is_of_its_moment(enum intake_input_kind kind)
{
	switch (kind) {
	case TI_RECORD:
	case TI_TARGET:
	case TI_UPDATE_TARGET:
	case TI_END_TARGET:
	case TI_FORGET_TARGET:
	case TI_SETTLE_TARGET:
	case TI_RETIRE_SETTLED:
	case TI_RENAME:
	case TI_RETAKEN:
	case TI_CCS:
		return false;
	default:
		return true;
	}
}

static int take(struct replay *r, const struct intake_input *in)
{
	r->n_inputs++;
	if (!r->windows.every_ns)
		return apply(r, in);
	if (in->kind == TI_SNAPSHOT && in->n && !r->end_at)
		r->end_at = r->n_inputs;
	if (r->after_records)
		return r->n_inputs >= r->end_at && is_of_its_moment(in->kind) ? apply(r, in) : 0;
	return r->end_at && is_of_its_moment(in->kind) ? 0 : apply(r, in);
}

/*
 * True for the cost of a process that ended and was released at the next cut of the replay, earlier
 * than at the session's own next cut or end: its last cost belongs to none of the windows that have
 * the process, which is not a contradiction.
 */
static bool is_cost_of_gone(const struct replay *r, const struct intake_input *in)
{
	if (!r->windows.every_ns || (in->kind != TI_COST && in->kind != TI_LOST_SHARE))
		return false;
	for (size_t i = r->n_targets; i > 0; i--)
		if (r->targets[i - 1]->info.pid == in->pid)
			return true;
	return false;
}

static void count_error(struct replay_notes *notes, int err)
{
	notes->no_room += err == -E2BIG;
	notes->too_far += err == -ERANGE;
	/* -ENOSPC happened in the session as well */
	notes->refused_inputs += err && err != -E2BIG && err != -ERANGE && err != -ENOSPC;
}

static int take_block(struct replay *r, struct codec *c, struct decoded *d)
{
	struct intake_input in;
	unsigned kind;
	int err;

	while (!(err = code__get(c, d, &kind, &in))) {
		if (kind == CAPTURE_END_MARK) {
			r->notes.complete = true;
			continue;
		}
		if (capture_header__own_kind(&r->header, kind) == TI_NONE) {
			r->notes.unknown_inputs += !r->after_records;
			continue;
		}
		in.kind = in.kind == TI_NONE ? TI_NONE : capture_header__own_kind(&r->header, kind);
		err = take(r, &in);
		if (err == -ENOMEM || r->windows.stopped)
			return err;
		if (err == -ENOENT && is_cost_of_gone(r, &in))
			err = 0;
		count_error(&r->notes, err);
	}
	if (err == -EBADMSG)
		r->notes.refused_inputs += !r->after_records;
	return 0;
}

/* Takes one input of the first pass; `lost`: blocks lost before it. -ENOMEM. */
static int look_at(struct replay *r, const struct intake_input *input, uint64_t lost)
{
	int err = 0;

	if (input->kind == TI_NAME || input->kind == TI_SITE || input->kind == TI_CCS)
		err = replay__take_answer(r, input);
	else if (input->kind == TI_RETAKEN)
		r->n_retaken_ahead++;
	else
		return replay_windows__look(&r->windows, input, lost);
	/* an answer is not taken again in the second pass */
	if (err != -ENOMEM)
		count_error(&r->notes, err);
	return err == -ENOMEM ? err : 0;
}

/* The first pass of a replay in windows; restores the file's position. */
static int look_ahead(struct replay *r, FILE *in)
{
	struct codec c = {.strings = r->strings, .string_room = MAX_STRING_BYTES};
	struct blocks blocks = {.in = in};
	struct decoded d = {.data = NULL};
	struct intake_input input;
	off_t begin = ftello(in);
	unsigned kind;
	int err = 0;

	r->looking_ahead = true;
	while (!err && !(err = blocks__next(&blocks, &c.in, &c.left))) {
		while (!err && !(err = code__get(&c, &d, &kind, &input))) {
			if (input.kind == TI_NONE ||
			    capture_header__own_kind(&r->header, kind) == TI_NONE)
				continue;
			input.kind = capture_header__own_kind(&r->header, kind);
			err = look_at(r, &input, blocks.lost);
		}
		/* what makes no sense is skipped, as in the second pass */
		err = err == -ENODATA || err == -EBADMSG ? 0 : err;
	}
	if (replay_windows__looked(&r->windows))
		err = -ENOMEM;
	r->notes.short_ahead = replay_windows__lacks(&r->windows);
	r->looking_ahead = false;
	blocks__free(&blocks);
	decoded__free(&d);
	if (err && err != -ENODATA)
		return err;
	return begin < 0 || fseeko(in, begin, SEEK_SET) ? -errno : 0;
}

static int take_blocks(struct replay *r, FILE *in)
{
	struct codec c = {.strings = r->strings, .string_room = MAX_STRING_BYTES};
	struct blocks blocks = {.in = in};
	struct decoded d = {.data = NULL};
	int err;

	while (!(err = blocks__next(&blocks, &c.in, &c.left))) {
		gaps__lost(&r->gaps, blocks.lost);
		err = take_block(r, &c, &d);
		if (err)
			break;
	}
	r->notes.no_room += r->after_records ? 0 : c.n_left_out;
	r->notes.damaged_blocks = blocks.lost;
	/* blocks at the end cannot be counted; if the file was truncated, it is not damage */
	if (blocks.damaged && !blocks.lost && r->notes.complete)
		r->notes.damaged_blocks = UINT64_MAX;
	blocks__free(&blocks);
	decoded__free(&d);
	return err == -ENODATA ? 0 : err;
}

/* In windows, inputs that belong to the end are taken after all records, and after the last cut. */
static int take_all(struct replay *r, FILE *in)
{
	off_t begin = ftello(in);
	int err = take_blocks(r, in);

	if (err || !r->end_at)
		return err;
	err = replay_windows__end(&r->windows, r->tl, UINT64_MAX);
	if (!err && (begin < 0 || fseeko(in, begin, SEEK_SET)))
		err = -errno;
	if (err)
		return err;
	r->n_inputs = 0;
	r->after_records = true;
	return take_blocks(r, in);
}

/* ── the whole ───────────────────────────────────────────────────────────────────────────── */

static int begin(struct replay *r, FILE *in, const char *name)
{
	char *json = NULL;
	int err = blocks__header(in, &json);

	if (!err)
		err = capture_header__parse(json, &r->header);
	free(json);
	if (err == -ENOTSUP)
		log_error("%s: made by safescoped %s, whose records differ; use that version", name,
			  r->header.version);
	else if (err == -EBADMSG)
		log_error("%s: not a capture of safescoped --save, or its beginning is damaged",
			  name);
	else if (err)
		log_error("%s: %s", name, strerror(-err));
	if (err)
		return err;
	err = strtab__new(&r->strings);
	if (!err)
		err = timeline__new(&r->header.opts, r->header.version, r->header.mode, &r->tl);
	if (!err)
		r->in = timeline__intake(r->tl);
	else
		log_error("%s: cannot be replayed: %s", name, strerror(-err));
	return err;
}

int replay__read(FILE *in, const char *name, const struct replay_hooks *hooks,
		 struct replay **ret_replay)
{
	struct replay *r = calloc(1, sizeof(*r));
	int err;

	if (!r) {
		log_error("no memory");
		return -ENOMEM;
	}
	r->log.fd = -1;
	if (hooks)
		r->hooks = *hooks;
	err = begin(r, in, name);
	if (err)
		goto fail;
	r->last_ns = r->gaps.start_ns = r->header.opts.start_ns;
	r->windows = (struct replay_windows){.every_ns = r->hooks.window_ns,
					     .haskell = r->header.opts.haskell_lanes,
					     .max_kept = r->hooks.max_kept,
					     .next_ns = r->last_ns + r->hooks.window_ns,
					     .take = r->hooks.window,
					     .ctx = r->hooks.ctx};
	if (r->windows.every_ns) {
		err = look_ahead(r, in);
		intake__looks_ahead(r->in);
	}
	if (!err)
		err = take_all(r, in);
	if (!err) {
		replay__report(r);
		if (!r->finished)
			err = finish_early(r);
		if (!err)
			replay__report_lanes(r);
	}
	/* a caller that cancelled it has reported why */
	if (err && err != -ECANCELED)
		log_error("%s: cannot be replayed: %s", name, strerror(-err));
	if (err)
		goto fail;
	*ret_replay = r;
	return 0;
fail:
	replay__free(r);
	return err;
}

void replay__free(struct replay *r)
{
	if (!r)
		return;
	timeline__free(r->tl);
	replay_windows__free(&r->windows);
	replay__free_answers(r);
	for (size_t i = 0; i < r->n_targets; i++)
		free(r->targets[i]);
	fd__close(&r->log.fd);
	free(r->targets);
	replay__free_calls(r);
	gaps__free(&r->gaps);
	strtab__free(r->strings);
	free(r);
}

const struct picture *replay__picture(const struct replay *r)
{
	return timeline__picture(r->tl);
}

const struct replay_notes *replay__notes(const struct replay *r)
{
	return &r->notes;
}
