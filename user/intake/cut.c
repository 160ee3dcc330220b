/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cut: ends a session's picture and begins the next one at the same moment. What goes on stays:
 * threads, their open calls and collections, names and places. Numbers of one picture mean nothing
 * in the next, so whatever stays is renumbered; a picture thus contains only its own entries, and a
 * session of any length needs memory only for what is still going on.
 */
#include "intake_priv.h"

/* ── numbers ─────────────────────────────────────────────────────────────────────────────── */

#define NOT_MOVED UINT32_MAX

/* A map of frame numbers, since processes of one program share most frames. Without memory each
 * frame is looked up by its name. */
static void begin_frames(struct intake *in)
{
	uint32_t n = picture__n_frames(in->old_pic);

	in->moved = malloc(n * sizeof(*in->moved) + 1);
	in->n_moved = in->moved ? n : 0;
	for (uint32_t i = 0; i < in->n_moved; i++)
		in->moved[i] = NOT_MOVED;
}

static void end_frames(struct intake *in)
{
	free(in->moved);
	in->moved = NULL;
	in->n_moved = 0;
}

static int move_frame(struct intake *in, uint32_t *frame)
{
	const struct pic_frame *old = picture__frame(in->old_pic, *frame);
	uint32_t *moved = *frame < in->n_moved ? &in->moved[*frame] : NULL;
	const struct pic_place *place;
	int err;

	if (!old)
		return 0;
	if (moved && *moved != NOT_MOVED) {
		*frame = *moved;
		return 0;
	}
	place = picture__place(in->old_pic, *frame);
	err = picture__add_frame(in->pic, old, frame);
	if (!err && place)
		err = picture__set_place(in->pic, *frame, place);
	if (!err && moved)
		*moved = *frame;
	return err;
}

static const char *moved_text(struct intake *in, const char *text)
{
	return picture__string(in->pic, text);
}

static int move_part(struct intake *in, uint32_t *part)
{
	struct pic_stack old = stacks__get(&in->old_parts, *part);
	uint32_t frames[MAX_PART];
	uint32_t n = MIN(old.n, (uint32_t)MAX_PART), kept = 0;
	int err = 0;

	for (uint32_t i = 0; !err && i < n; i++) {
		frames[kept] = intake__shown(in, old.frames[i]);
		if (frames[kept] != UINT32_MAX)
			err = move_frame(in, &frames[kept++]);
	}
	return err ? err : stacks__add(&in->parts, frames, kept, part);
}

int seen__renumber(struct intake *in, struct ev *ev)
{
	int err = ev->hs ? move_part(in, &ev->hs) : 0;

	return err || !ev->c ? err : move_part(in, &ev->c);
}

static int move_events(struct intake *in, struct evs *evs)
{
	int err = 0;

	for (size_t i = 0; !err && i < evs->n; i++)
		err = seen__renumber(in, &evs->v[i]);
	return err;
}

/*
 * Drops addresses that were not met in the window: over months nearly all of a program's addresses
 * are met, and each of them would be in every window. One that is met again is named again.
 */
static int move_names(struct intake *in, struct seen *s)
{
	struct seen_addr *addr, *next;
	int err = 0;

	addrs__forget_recent(s);
	HASH_ITER (hh, s->addrs, addr, next) {
		if (!addr->used) {
			HASH_DEL(s->addrs, addr);
			free(addr);
			continue;
		}
		addr->used = false;
		err = move_frame(in, &addr->frame);
		if (err)
			return err;
		addr->counted[0] = addr->counted[1] = 0;
		addr->changed = false;
	}
	for (size_t i = 0; !err && i < s->n_sites; i++) {
		struct seen_site *site = s->site_v[i];

		err = move_frame(in, &site->function);
		if (!err && site->caller != UINT32_MAX)
			err = move_frame(in, &site->caller);
		site->function_name = moved_text(in, site->function_name);
		site->library = moved_text(in, site->library);
		site->caller_name = moved_text(in, site->caller_name);
		site->place = moved_text(in, site->place);
		/* sites are kept as long as their process, and asked for once per window */
		if (!err && site->partial)
			err = name__site_again(in, s, site);
	}
	return err;
}

/* The keys of the table of centres are strings of the picture. */
static int move_centres(struct intake *in, struct seen_centres *tree)
{
	struct seen_cc *cc, *next, *all = NULL;
	int err = 0;

	HASH_ITER (hh, tree->centres, cc, next) {
		HASH_DEL(tree->centres, cc);
		cc->key = (struct cc_key){moved_text(in, cc->key.label),
					  moved_text(in, cc->key.module),
					  moved_text(in, cc->key.src_loc)};
		if (!err)
			err = move_frame(in, &cc->frame);
		HASH_ADD(hh, all, key, sizeof(cc->key), cc);
		/* stacks refer to cc, so it cannot be freed here */
		if (!cc->hh.tbl)
			return -ENOMEM;
	}
	tree->centres = all;
	/* counts of a stack whose centre is unknown are kept until it is known */
	for (size_t i = 0; i < tree->n; i++)
		if (tree->v[i]->centre)
			tree->v[i]->ticks = tree->v[i]->samples = 0;
	return err;
}

/* ── one target ──────────────────────────────────────────────────────────────────────────── */

/* Copies the facts that hold for the whole life of the process. */
static int move_target(struct intake *in, struct seen *s, uint64_t at_ns)
{
	const struct pic_target *old = s->pub;
	struct pic_target *pub;
	int err = picture__add_target(in->pic, &pub);

	if (err)
		return err;
	*pub = (struct pic_target){
		.pid = old->pid,
		.ns_pid = old->ns_pid,
		.pid_reused = old->pid_reused,
		.comm = moved_text(in, old->comm),
		.exe = moved_text(in, old->exe),
		.build_id = moved_text(in, old->build_id),
		.container = moved_text(in, old->container),
		.pod = moved_text(in, old->pod),
		.service = moved_text(in, old->service),
		.cgroup = moved_text(in, old->cgroup),
		.ghc_version = moved_text(in, old->ghc_version),
		.way = moved_text(in, old->way),
		.version_known = old->version_known,
		.threaded = old->threaded,
		.profiled = old->profiled,
		.layout_checked = old->layout_checked,
		.found_suspend = old->found_suspend,
		.found_resume = old->found_resume,
		.found_tick = old->found_tick,
		.found_caps = old->found_caps,
		.rts_opts = old->rts_opts,
		.exit_code = old->exit_code,
		.exit_signal = old->exit_signal,
		.start_time_ns = old->start_time_ns,
		.capabilities = old->capabilities,
		.attach_ns = MAX(old->attach_ns, at_ns),
		.attach_took_ns = old->attach_took_ns,
		.calls_missed = old->calls_missed,
		/* set if it ended after at_ns; its status may still come */
		.end = moved_text(in, old->end),
	};
	s->pub = pub;
	for (size_t i = 0; !err && i < s->n_missing; i++)
		err = picture__add_missing(in->pic, pub, "%s", old->missing[i]);
	return err;
}

/* Drops what came from the kernel's maps; for an ended thread it came from its own record. */
static void forget_state(struct seen_thread *th)
{
	free(th->final);
	th->final = NULL;
	th->has_final = false;
	th->shorts.known = th->shorts.known && th->end_ns;
}

int intake__forget_states(struct intake *in)
{
	const struct intake_input input = {.kind = TI_CUT};

	for (size_t i = 0; i < in->n_targets; i++)
		for (struct seen_thread *th = in->targets[i]->thread_list; th; th = th->next)
			forget_state(th);
	return tap__report(in, 0, &input);
}

/* Drops the events known ahead: their records are still to come. */
static void forget_ahead(struct intake *in, struct evs *evs)
{
	size_t kept = 0;

	for (size_t i = 0; i < evs->n; i++)
		if (!(evs->v[i].flags & EV_AHEAD))
			evs->v[kept++] = evs->v[i];
	in->n_records -= evs->n - kept;
	evs->n = kept;
}

/*
 * Calls that are recorded already but go on at the cut: notes the part that the window that began
 * at from_ns has, unless it has the whole call. carried.c handles the calls that are in the
 * threads' states.
 */
static void count_parts(struct seen *s, const struct seen_thread *th, uint64_t from_ns,
			uint64_t at_ns)
{
	for (size_t i = 0; i < th->calls.n; i++) {
		const struct ev *ev = &th->calls.v[i];
		int flag = ev->call_flags & WIRE_CALL_INTERRUPTIBLE ? 1 : 0;

		if (ev->site && ev->wake_ns < at_ns && ev->t1 > at_ns &&
		    !seen__has_open(th->before, ev->t0) &&
		    !(seen__counters_are_of(s, at_ns) && seen__is_counted(s, ev, false)))
			s->site_v[ev->site - 1]->before[flag].wall_ns +=
				at_ns - MAX(ev->wake_ns, from_ns);
	}
}

static int cut_thread(struct intake *in, struct seen_thread *th, uint64_t at_ns)
{
	struct ev *kept[] = {&th->at_start, &th->at_end};
	int err = 0;

	seen__forget(in, th, at_ns);
	forget_ahead(in, &th->samples);
	forget_ahead(in, &th->offs);
	forget_ahead(in, &th->calls);
	th->has_end = false;
	free(th->before);
	th->before = th->final;
	th->carried_over = 0;
	th->final = NULL;
	if (th->shorts.known)
		th->shorts_before = th->shorts;
	forget_state(th);
	th->ended_before_call = th->began_same_call = false;
	for (size_t i = 0; !err && i < ARRAY_SIZE(kept); i++)
		err = seen__renumber(in, kept[i]);
	if (!err)
		err = move_events(in, &th->samples);
	if (!err)
		err = move_events(in, &th->offs);
	return err ? err : move_events(in, &th->calls);
}

/* Drops collections, and what is known of them, from before at_ns. */
static void cut_gcs(struct seen *s, uint64_t from_ns, uint64_t at_ns)
{
	struct seen_gcs *gcs = &s->gcs;
	size_t gone = 0;

	while (gone < gcs->n && gc__end(&gcs->v[gone]) <= at_ns)
		gone++;
	s->cut_gcs = gone;
	gcs->n -= gone;
	if (gone && gcs->n)
		memmove(gcs->v, gcs->v + gone, gcs->n * sizeof(*gcs->v));
	for (size_t i = 0; i < gcs->n; i++) {
		gcs->v[i].booked_ns += gc__pause(&gcs->v[i], from_ns, at_ns);
		gcs->v[i].late = false;
	}
	gcs->missed = 0;
	/* else it stays for the window in which the session learns that the process began in it */
	if (s->pub->calls_missed)
		gcs->before = 0;
	/* nothing was missed since the probes are on; if the number was unknown so far, the window
	 * that gets it has the count */
	gcs->before_known |= gcs->known;
	/* there is room for more again */
	if (gcs->full) {
		gcs->full = false;
		gcs->off_ns = gcs->came_off ? at_ns : 0;
	}
}

static void cut_cap_notes(struct seen *s, uint64_t at_ns)
{
	size_t gone = 0;

	/* the last note before at_ns still holds */
	while (gone + 1 < s->n_cap_notes && s->cap_notes[gone + 1].ns <= at_ns)
		gone++;
	s->n_cap_notes -= gone;
	if (gone)
		memmove(s->cap_notes, s->cap_notes + gone, s->n_cap_notes * sizeof(*s->cap_notes));
	s->caps_at_attach = s->pub->capabilities;
}

static size_t cut_points(struct seen_points *points, uint64_t at_ns)
{
	size_t gone = 0;

	while (gone < points->n && points->v[gone].ns < at_ns)
		gone++;
	points->n -= gone;
	if (gone && points->n)
		memmove(points->v, points->v + gone, points->n * sizeof(*points->v));
	return gone;
}

static void cut_notes(struct seen *s, uint64_t from_ns, uint64_t at_ns)
{
	size_t kept = 0;

	cut_gcs(s, from_ns, at_ns);
	cut_cap_notes(s, at_ns);
	cut_points(&s->queued, at_ns);
	s->cut_starved = cut_points(&s->starved, at_ns);
	for (size_t i = 0; i < s->n_flows; i++)
		if (s->flows[i].end_ns > at_ns)
			s->flows[kept++] = s->flows[i];
	s->n_flows = kept;
	for (size_t i = kept = 0; i < s->n_ticks; i++)
		if (s->ticks[i].ns > at_ns)
			s->ticks[kept++] = s->ticks[i];
	s->n_ticks = kept;
}

/* Subtracts what the window's sums covered; what they could not cover, being older, is left for the
 * next sums. */
static void take_part(uint64_t *part, uint64_t value, uint64_t base)
{
	*part -= MIN(*part, value - MIN(base, value));
}

/* If the counters were not read in this window, the next window that reads them has its calls. */
static void cut_counters(struct seen *s, struct seen_counters *counters, uint64_t at_ns)
{
	const struct wire_site *value = &counters->value, *base = &counters->base;
	struct call_part *part;
	struct seen_site *site;

	if (!seen__counters_are_of(s, at_ns))
		return;
	HASH_FIND(hh, s->sites, &counters->key.site, sizeof(counters->key.site), site);
	if (site) {
		part = &site->before[counters->key.flags ? 1 : 0];
		take_part(&part->wall_ns, value->wall_ns, base->wall_ns);
		take_part(&part->blocked_ns, value->blocked_ns, base->blocked_ns);
		take_part(&part->runnable_ns, value->runnable_ns, base->runnable_ns);
		take_part(&part->exit_wall_ns, value->exit_wall_ns, base->exit_wall_ns);
	}
	counters->base = counters->value;
	memset(counters->turns, 0, sizeof(counters->turns));
	counters->base_ns = counters->value_ns;
}

static int cut_target(struct intake *in, struct seen *s, uint64_t at_ns)
{
	struct seen_counters *counters, *next;
	struct tso_info *tso, *next_tso;
	uint64_t from_ns = s->pub->attach_ns;
	int err = move_target(in, s, at_ns);

	if (!err)
		err = move_names(in, s);
	if (!err)
		err = move_centres(in, &s->ccs);
	cut_notes(s, from_ns, at_ns);
	if (!err)
		err = allocs__cut(in, s, at_ns);
	for (size_t i = 0; i < s->n_flows; i++)
		s->flows[i].function = moved_text(in, s->flows[i].function);
	/* before count_parts adds what the next sums must leave out */
	HASH_ITER (hh, s->counters, counters, next)
		cut_counters(s, counters, at_ns);
	for (struct seen_thread *th = s->thread_list; !err && th; th = th->next) {
		err = cut_thread(in, th, at_ns);
		count_parts(s, th, from_ns, at_ns);
	}
	HASH_ITER (hh, s->tso_infos, tso, next_tso)
		tso->label = moved_text(in, tso->label);
	s->cost_before = s->cost;
	s->left_out = s->blind_ns = 0;
	s->was_cut = true;
	return err;
}

/* ── all of them ─────────────────────────────────────────────────────────────────────────── */

int intake__cut(struct intake *in, uint64_t at_ns, struct picture *pic)
{
	const struct intake_input input = {.kind = TI_CUT, .a = at_ns};
	struct stack_table parts;
	int err = 0;

	if (in->closed)
		return -EINVAL;
	tap__report(in, 0, &input);
	for (size_t i = 0; i < in->n_targets; i++) {
		const struct intake_cost *cost = &in->targets[i]->cost;

		in->cpu_before_ns = MAX(in->cpu_before_ns, cost->user_cpu_ns);
		in->bpf_before_ns = MAX(in->bpf_before_ns, cost->bpf_ns);
	}
	for (size_t i = 0; !err && i < in->n_targets;) {
		if (!in->targets[i]->ended || in->targets[i]->end_ns > at_ns) {
			i++;
			continue;
		}
		/* not every thread's end was seen, so this makes room for others' records */
		seen__made(in, in->targets[i]);
		err = target__take_out(in, i);
	}
	if (!err)
		err = parts__new(in, pic, &parts);
	if (err)
		return err;
	in->old_pic = in->pic;
	in->old_parts = in->parts;
	begin_frames(in);
	in->pic = pic;
	in->parts = parts;
	in->room_at = in->opts.max_records;
	in->n_renames = 0;
	for (size_t i = 0; i < in->n_lost; i++)
		in->lost[i].before = in->lost[i].now;
	for (size_t i = 0; !err && i < in->n_targets; i++)
		err = cut_target(in, in->targets[i], at_ns);
	return err;
}

void intake__cut_end(struct intake *in, bool failed)
{
	stacks__free(&in->old_parts);
	rename__free(in);
	end_frames(in);
	in->old_pic = NULL;
	in->closed |= failed;
}
