/* SPDX-License-Identifier: GPL-2.0-or-later */
/* replay_windows: cuts a replayed session as the live one would have been cut. */
#include "replay_windows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "intake/tap.h"
#include "timeline/timeline.h"

/* Without any record for so many the capture is damaged: at 60 s it is two months. */
#define MAX_AT_ONCE 100000
/* What goes on at cuts, of all of them; beyond it nothing is known of the rest. */
#define MAX_CROSSINGS ((size_t)1 << 20)
#define MAX_BYTES     ((size_t)256 << 20)

/* A safe call or an off-CPU interval that goes on at one cut or more. */
struct crossing {
	uint64_t start, end;
	pid_t tgid, tid;
	bool off;
	struct wire_open call;
	/* off the CPU */
	uint64_t wake_ns, ip, site, short_cpu_ns;
	uint32_t syscall, prev_state;
	struct wire_rts rts;
	struct wire_stack head;
	uint64_t frames[];
};

void replay_windows__free(struct replay_windows *w)
{
	for (size_t i = 0; i < w->n; i++)
		free(w->v[i]);
	free(w->v);
	*w = (struct replay_windows){0};
}

static size_t bytes_of(const struct crossing *c)
{
	return sizeof(*c) + c->head.nframes * sizeof(uint64_t);
}

/* ── the first pass ──────────────────────────────────────────────────────────────────────── */

static bool crosses(const struct replay_windows *w, uint64_t start, uint64_t end)
{
	uint64_t cut = w->next_ns;

	if (start >= cut)
		cut += ((start - cut) / w->every_ns + 1) * w->every_ns;
	return end > cut;
}

/* With the first n of these frames. */
static int add(struct replay_windows *w, const struct crossing *crossing, const void *frames,
	       uint16_t n)
{
	size_t bytes = (size_t)MIN(n, (uint16_t)WIRE_OFF_FRAMES) * sizeof(uint64_t);
	struct crossing *c;
	int err;

	if (w->bytes > MAX_BYTES || !crosses(w, crossing->start, crossing->end))
		return 0;
	err = ARRAY_RESERVE(w->v, w->cap, w->n + 1, MAX_CROSSINGS);
	if (err)
		return err == -E2BIG ? 0 : err;
	c = malloc(sizeof(*c) + bytes);
	if (!c)
		return -ENOMEM;
	*c = *crossing;
	if (bytes)
		memcpy(c->frames, frames, bytes);
	c->head.nframes = (uint16_t)(bytes / sizeof(uint64_t));
	w->v[w->n++] = c;
	w->bytes += bytes_of(c);
	return 0;
}

static int look_at_off(struct replay_windows *w, const struct intake_input *input)
{
	struct wire_off rec;
	struct crossing c;

	if (input->size < sizeof(rec))
		return 0;
	memcpy(&rec, input->data, sizeof(rec));
	if (input->size - sizeof(rec) < rec.stack.nframes * sizeof(uint64_t))
		return 0;
	c = (struct crossing){
		.start = rec.out_ns,
		.end = rec.h.ns,
		.tgid = (pid_t)rec.h.tgid,
		.tid = (pid_t)rec.h.tid,
		.off = true,
		.wake_ns = rec.wake_ns,
		.ip = rec.ip,
		.site = rec.site,
		.short_cpu_ns = rec.short_cpu_ns,
		.syscall = rec.syscall,
		.prev_state = rec.prev_state,
		.rts = rec.rts,
		.head = rec.stack,
	};
	return add(w, &c, (const char *)input->data + sizeof(rec), rec.stack.nframes);
}

static int look_at_call(struct replay_windows *w, const struct intake_input *input)
{
	struct wire_call rec;
	struct crossing c;

	if (input->size < sizeof(rec))
		return 0;
	memcpy(&rec, input->data, sizeof(rec));
	if (rec.flags & WIRE_CALL_UNMATCHED)
		return 0;
	c = (struct crossing){
		.start = rec.start_ns,
		.end = rec.h.ns,
		.tgid = (pid_t)rec.h.tgid,
		.tid = (pid_t)rec.h.tid,
		.rts = rec.rts,
		.call = {.start_ns = rec.start_ns,
			 .site = rec.site,
			 .flags = rec.flags,
			 .cap_no = rec.rts.cap_no},
	};
	return add(w, &c, NULL, 0);
}

/* What never ended. */
static int look_at_state(struct replay_windows *w, const struct intake_input *input)
{
	struct wire_thread state;
	struct crossing c;
	int err = 0;

	if (input->size != sizeof(state))
		return 0;
	memcpy(&state, input->data, sizeof(state));
	c = (struct crossing){.end = UINT64_MAX, .tgid = (pid_t)state.tgid, .tid = input->tid};
	for (uint32_t i = 0; !err && i < MIN(state.depth, (uint32_t)WIRE_OPEN_MAX); i++) {
		c.start = state.open[i].start_ns;
		c.call = state.open[i];
		err = add(w, &c, NULL, 0);
	}
	if (err || !state.off_since_ns)
		return err;
	c.start = state.off_since_ns;
	c.off = true;
	c.wake_ns = state.wake_ns;
	c.ip = state.off_ip;
	c.site = state.resume_incall ? state.resume_site : 0;
	c.short_cpu_ns = state.short_wall_ns -
			 MIN(state.short_wall_ns, state.short_blocked_ns + state.short_runnable_ns);
	c.syscall = state.off_syscall;
	c.prev_state = state.off_state;
	c.rts = state.off_rts;
	return add(w, &c, NULL, 0);
}

/* That of the interval that came last. */
static int look_at_stack(struct replay_windows *w, const struct intake_input *input)
{
	struct wire_off_stack stack;
	struct crossing *last = w->n ? w->v[w->n - 1] : NULL, c;

	if (input->size != sizeof(stack) || !last || !last->off || last->tid != input->tid ||
	    last->end != UINT64_MAX)
		return 0;
	memcpy(&stack, input->data, sizeof(stack));
	c = *last;
	c.head = stack.stack;
	w->bytes -= bytes_of(last);
	free(last);
	w->n--;
	return add(w, &c, stack.frames, stack.stack.nframes);
}

/* They were of a cut of the live session; how it went on is in the records. */
static void forget_states(struct replay_windows *w)
{
	size_t kept = 0;

	for (size_t i = 0; i < w->n; i++) {
		if (w->v[i]->end != UINT64_MAX) {
			w->v[kept++] = w->v[i];
			continue;
		}
		w->bytes -= bytes_of(w->v[i]);
		free(w->v[i]);
	}
	w->n = kept;
}

int replay_windows__look(struct replay_windows *w, const struct intake_input *input)
{
	struct wire_hdr h;

	switch (input->kind) {
	case TI_CUT:
		forget_states(w);
		return 0;
	case TI_FINISH:
		w->end_ns = input->a;
		return 0;
	case TI_RECORD:
		if (input->size < sizeof(h))
			return 0;
		memcpy(&h, input->data, sizeof(h));
		if (h.type == WIRE_OFF)
			return look_at_off(w, input);
		return h.type == WIRE_CALL ? look_at_call(w, input) : 0;
	case TI_THREAD_STATE:
		return look_at_state(w, input);
	case TI_OFF_STACK:
		return look_at_stack(w, input);
	default:
		return 0;
	}
}

static int by_start(const void *pa, const void *pb)
{
	const struct crossing *a = *(struct crossing *const *)pa;
	const struct crossing *b = *(struct crossing *const *)pb;

	return CMP(a->start, b->start) ?: CMP(b->end, a->end);
}

void replay_windows__looked(struct replay_windows *w)
{
	if (w->n)
		qsort(w->v, w->n, sizeof(*w->v), by_start);
}

/* ── at a cut ────────────────────────────────────────────────────────────────────────────── */

static int by_thread(const void *pa, const void *pb)
{
	const struct crossing *a = *(struct crossing *const *)pa;
	const struct crossing *b = *(struct crossing *const *)pb;

	return CMP(a->tgid, b->tgid) ?: CMP(a->tid, b->tid) ?: by_start(pa, pb);
}

/* The n of them that are one thread's, as the kernel's maps would have had them at `ns`. */
static int give_thread(struct intake *in, struct crossing *const *v, size_t n, uint64_t ns)
{
	struct wire_thread state = {
		.tgid = (uint32_t)v[0]->tgid, .on_since_ns = 1, .epoch = 1, .wake_ns = 0};
	struct wire_off_stack stack = {0};
	bool has_stack = false;
	int err;

	for (size_t i = 0; i < n; i++) {
		const struct crossing *c = v[i];

		if (!c->off) {
			if (state.depth < WIRE_OPEN_MAX)
				state.open[state.depth++] = c->call;
			continue;
		}
		/* not seen yet: the snapshot says what it does, and the kernel knows nothing */
		if (!c->start)
			return 0;
		state.off_since_ns = c->start;
		state.wake_ns = c->wake_ns < ns ? c->wake_ns : 0;
		state.off_ip = c->ip;
		state.resume_site = c->site;
		state.off_state = c->prev_state;
		state.off_syscall = c->syscall;
		state.off_rts = c->rts;
		state.short_wall_ns = c->short_cpu_ns;
		stack.stack = c->head;
		memcpy(stack.frames, c->frames, c->head.nframes * sizeof(uint64_t));
		has_stack = c->head.nframes || c->head.end;
	}
	state.resume_incall = !state.depth && state.resume_site;
	err = intake__thread_state(in, v[0]->tid, &state);
	if (!err && state.off_since_ns && has_stack)
		err = intake__off_stack(in, v[0]->tgid, v[0]->tid, &stack);
	/* what was not taken is not known, as without it */
	return err == -ENOMEM ? err : 0;
}

static int give_states(struct replay_windows *w, struct intake *in, uint64_t ns)
{
	struct crossing **now = NULL;
	size_t n = 0, to;
	int err = 0;

	while (w->first < w->n && w->v[w->first]->end <= ns)
		w->first++;
	for (size_t i = w->first; i < w->n && w->v[i]->start < ns; i++)
		n += w->v[i]->end > ns;
	now = calloc(n + 1, sizeof(*now));
	if (!now)
		return -ENOMEM;
	n = 0;
	for (size_t i = w->first; i < w->n && w->v[i]->start < ns; i++)
		if (w->v[i]->end > ns)
			now[n++] = w->v[i];
	qsort(now, n, sizeof(*now), by_thread);
	for (size_t from = 0; !err && from < n; from = to) {
		for (to = from;
		     to < n && now[to]->tid == now[from]->tid && now[to]->tgid == now[from]->tgid;)
			to++;
		err = give_thread(in, &now[from], to - from, ns);
	}
	free(now);
	return err;
}

int replay_windows__until(struct replay_windows *w, struct timeline *tl, uint64_t ns)
{
	struct picture *pic;

	if (!w->every_ns || ns <= w->next_ns)
		return 0;
	if ((ns - w->next_ns) / w->every_ns > MAX_AT_ONCE)
		return -EBADMSG;
	while (!w->stopped && ns > w->next_ns) {
		w->stopped = give_states(w, timeline__intake(tl), w->next_ns);
		if (!w->stopped)
			w->stopped = timeline__window(tl, w->next_ns, &pic);
		w->next_ns += w->every_ns;
		if (!w->stopped && pic)
			w->stopped = w->take(w->ctx, pic);
	}
	return w->stopped;
}
