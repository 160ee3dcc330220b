/* SPDX-License-Identifier: GPL-2.0-or-later */
/* snapshot: takes what was read at one instant: threads, and the contents of the kernel's maps. */
#include "intake_priv.h"

#define TASK_DEAD 0x80 /* include/linux/sched.h; the same since Linux 4.14 */

static int take_snap(struct intake *in, struct seen *s, const struct snap_thread *snap,
		     uint64_t at_ns, struct ev *ret_ev)
{
	struct ev ev = {.t0 = at_ns, .t1 = at_ns, .syscall = snap->syscall};
	struct raw_stack raw = {
		.head = &snap->stack,
		.frames = snap->frames,
		.rts = &snap->rts,
		.site = snap->site,
	};
	int err;

	if (snap->stack.nframes > WIRE_OFF_FRAMES)
		return -EBADMSG;
	if (snap->state != 'R')
		ev.flags |= EV_SLEEPS;
	ev__take_rts(&ev, &snap->rts);
	err = stack__take(in, s, &raw, &ev);
	if (!err)
		*ret_ev = ev;
	return err;
}

static int snap_thread(struct intake *in, struct seen *s, const struct snap_thread *snap,
		       uint64_t at_ns, bool at_end)
{
	struct seen_site *unknown;
	struct seen_thread *th;
	int err = target__thread(s, snap->tid, &th);

	if (err)
		return err;
	thread__take_name(th, snap->comm);
	if (at_end && !th->has_start && !th->born && !th->start_ns && s->has_snapshot &&
	    !th->had_records)
		th->start_ns = MIN(MAX(snap->start_time_ns, s->pub->attach_ns), at_ns);
	err = take_snap(in, s, snap, at_ns, at_end ? &th->at_end : &th->at_start);
	if (err)
		return err;
	if (at_end) {
		th->has_end = true;
	} else {
		th->has_start = true;
		th->shown_ns = snap->start_time_ns;
		/* a row for such calls, until their own records have their sites */
		if (th->at_start.where == WIRE_WHERE_SAFE_CALL && !th->at_start.site)
			err = name__site(in, s, 0, &unknown);
	}
	return err == -E2BIG ? 0 : err;
}

void snapshot__compare(struct seen_thread *th, const struct ev *call)
{
	struct ev *first = &th->at_start;
	bool before = call->call_flags & WIRE_CALL_OPEN_AT_START;

	if (!th->has_start || first->where != WIRE_WHERE_SAFE_CALL)
		return;
	/* the snapshot did not find the site, but the call's own record has it */
	if (!first->site && (before || (call->t0 <= first->t0 && call->t1 > first->t0)))
		first->site = call->site;
	if (!call->site || call->site != first->site)
		return;
	if (before)
		th->ended_before_call = true;
	else
		th->began_same_call = true;
}

static int take_snapshot(struct intake *in, pid_t pid, const struct snapshot *snapshot,
			 uint64_t at_ns, bool at_end)
{
	struct seen *s = intake__find(in, pid);
	int err;

	if (in->closed)
		return -EINVAL;
	if (!s)
		return -ENOENT;
	for (size_t i = 0; i < snapshot->n; i++) {
		err = snap_thread(in, s, &snapshot->threads[i], at_ns, at_end);
		if (err)
			return err;
	}
	if (!at_end) {
		s->has_snapshot = true;
		s->snap_ns = at_ns;
	}
	return 0;
}

/*
 * Whether the state is of a thread that has ended: an entry may outlive its thread. If the thread
 * was dropped with an earlier window, it would be taken for a new one. A thread that is off the CPU
 * since before the window began was known then, and is not new.
 */
static bool has_gone(const struct seen *s, pid_t tid, const struct wire_thread *state)
{
	const struct seen_thread *th;

	HASH_FIND_INT(s->threads, &tid, th);
	return !th && s->was_cut && state->off_since_ns &&
	       (state->off_state & TASK_DEAD || state->off_since_ns <= s->pub->attach_ns);
}

static int take_state(struct intake *in, pid_t tid, const struct wire_thread *state)
{
	struct seen *s = intake__find(in, (pid_t)state->tgid);
	struct wire_stack no_frames = {0};
	struct raw_stack raw = {.head = &no_frames, .rts = &state->off_rts, .ip = state->off_ip};
	struct ev ev = {.t0 = state->off_since_ns,
			.t1 = UINT64_MAX,
			.wake_ns = state->wake_ns,
			.syscall = state->off_syscall};
	const struct wire_open *top;
	struct seen_thread *th;
	struct seen_site *site;
	int err;

	if (in->closed)
		return -EINVAL;
	if (!s)
		return -ENOENT;
	if (state->depth > WIRE_OPEN_MAX || state->off_since_ns > MAX_TIME)
		return -EBADMSG;
	if (has_gone(s, tid, state))
		return 0;
	err = target__thread(s, tid, &th);
	for (uint32_t i = 0; !err && i < state->depth; i++)
		err = name__site(in, s, state->open[i].site, &site);
	if (err && err != -E2BIG)
		return err;
	if (!th->final)
		th->final = malloc(sizeof(*th->final));
	if (!th->final)
		return -ENOMEM;
	*th->final = *state;
	carried__state(s, th, state);
	/* for a thread that has ended its own record has them; a replay has none as of a cut */
	if (!th->end_ns)
		th->shorts = (struct short_calls){
			!in->looks_ahead || state->short_calls, state->short_calls,
			state->short_wall_ns, state->short_blocked_ns, state->short_runnable_ns};
	top = state->depth ? &state->open[state->depth - 1] : NULL;
	if (top) {
		ev.call_start_ns = top->start_ns;
		raw.site = top->site;
	} else if (state->resume_incall) {
		/* it waits for a capability in order to return from there */
		raw.site = state->resume_site;
	}
	if (!state->off_state)
		ev.flags |= EV_RUNNABLE;
	ev__take_rts(&ev, &state->off_rts);
	err = stack__take(in, s, &raw, &ev);
	if (err)
		return err;
	th->final_off = ev;
	th->has_final = true;
	return 0;
}

static int take_off_stack(struct intake *in, pid_t pid, pid_t tid,
			  const struct wire_off_stack *stack)
{
	struct seen *s = intake__find(in, pid);
	uint64_t frames[WIRE_OFF_FRAMES];
	struct raw_stack raw = {.head = &stack->stack, .frames = frames};
	struct seen_thread *th;
	struct ev ev;
	int err;

	if (in->closed)
		return -EINVAL;
	if (!s)
		return -ENOENT;
	HASH_FIND_INT(s->threads, &tid, th);
	if (!th || !th->has_final)
		return -ENOENT;
	if (stack->stack.nframes > WIRE_OFF_FRAMES)
		return -EBADMSG;
	memcpy(frames, stack->frames, sizeof(frames));
	ev = th->final_off;
	ev.hs = ev.c = 0;
	/* these were set while nothing was known of the stack */
	ev.flags &= (uint16_t) ~(EV_NO_WALK | EV_GAP);
	raw.rts = &th->final->off_rts;
	raw.ip = th->final->off_ip;
	err = stack__take(in, s, &raw, &ev);
	if (!err)
		th->final_off = ev;
	return err;
}

int intake__snapshot(struct intake *in, pid_t pid, const struct snapshot *snapshot, uint64_t at_ns,
		     bool at_end)
{
	const struct intake_input input = {
		.kind = TI_SNAPSHOT, .pid = pid, .snapshot = snapshot, .a = at_ns, .n = at_end};

	return tap__report(in, take_snapshot(in, pid, snapshot, at_ns, at_end), &input);
}

int intake__thread_state(struct intake *in, pid_t tid, const struct wire_thread *state)
{
	const struct intake_input input = {
		.kind = TI_THREAD_STATE, .tid = tid, .data = state, .size = sizeof(*state)};

	return tap__report(in, take_state(in, tid, state), &input);
}

int intake__off_stack(struct intake *in, pid_t pid, pid_t tid, const struct wire_off_stack *stack)
{
	const struct intake_input input = {.kind = TI_OFF_STACK,
					   .pid = pid,
					   .tid = tid,
					   .data = stack,
					   .size = sizeof(*stack)};

	return tap__report(in, take_off_stack(in, pid, tid, stack), &input);
}

/* ── safe calls' counters ────────────────────────────────────────────────────────────────── */

/*
 * Detects wrapped counts: no count grows by half its range between two readings, so one that has
 * dropped by more than that has wrapped.
 */
static void count_turns(struct seen_counters *entry, const struct wire_site *value)
{
	for (unsigned i = 0; i < WIRE_HIST_SLOTS; i++) {
		uint32_t before = entry->value.hist[i] - entry->base.hist[i],
			 now = value->hist[i] - entry->base.hist[i];

		if (now < before && before - now > UINT32_MAX / 2 && entry->turns[i] < UINT16_MAX)
			entry->turns[i]++;
	}
}

static int take_counters(struct intake *in, const struct wire_site_key *key,
			 const struct wire_site *value)
{
	struct seen *s = intake__find(in, (pid_t)key->tgid);
	struct seen_counters *entry;
	struct wire_site_key clean = *key;
	struct seen_site *named;
	int err;

	if (in->closed)
		return -EINVAL;
	if (!s)
		return -ENOENT;
	clean.flags &= WIRE_CALL_INTERRUPTIBLE;
	/* Name the site now, while the process exists. */
	err = name__site(in, s, clean.site, &named);
	if (err)
		return err;
	if (value->calls_back)
		site__calls_back(named);
	HASH_FIND(hh, s->counters, &clean, sizeof(clean), entry);
	if (entry) {
		count_turns(entry, value);
		entry->value = *value;
		entry->value_ns = s->last_call_ns;
		return 0;
	}
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	entry->key = clean;
	entry->value = *value;
	entry->value_ns = s->last_call_ns;
	return HASH_INSERT(s->counters, key, sizeof(entry->key), entry);
}

int intake__site_counters(struct intake *in, const struct wire_site_key *key,
			  const struct wire_site *site, uint64_t at_ns)
{
	const struct {
		struct wire_site_key key;
		struct wire_site site;
	} both = {*key, *site};
	const struct intake_input input = {
		.kind = TI_SITE_COUNTERS, .data = &both, .size = sizeof(both), .a = at_ns};

	return tap__report(in, take_counters(in, key, site), &input);
}

const struct seen_counters *seen__counters(const struct seen *s, uint64_t site, bool interruptible)
{
	const struct wire_site_key key = {.site = site,
					  .tgid = (uint32_t)s->pid,
					  .flags = interruptible ? WIRE_CALL_INTERRUPTIBLE : 0};
	const struct seen_counters *entry;

	HASH_FIND(hh, s->counters, &key, sizeof(key), entry);
	return entry;
}

bool seen__is_counted(const struct seen *s, const struct ev *call, bool base)
{
	const struct seen_site *site = seen__site(s, call->site);
	const struct seen_counters *entry = NULL;

	if (site && !(call->flags & EV_AHEAD))
		entry = seen__counters(s, site->addr, call->call_flags & WIRE_CALL_INTERRUPTIBLE);
	return entry && call->t1 <= (base ? entry->base_ns : entry->value_ns);
}
