/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A window's figures for the screen, as one struct. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/calls.h"
#include "top_priv.h"

/* No count is shown if calls were counted for less than this share of the window. */
#define LEAST_SEEN 0.01

/* Global, as a process has only one screen. */
static struct {
	bool *wanted; /* in memory shared by both processes */
	int (*report)(void *ctx, const struct picture *pic);
	void *ctx;
} wish;

void top_report__set(bool *wanted, int (*report)(void *ctx, const struct picture *pic), void *ctx)
{
	wish.wanted = wanted;
	wish.report = report;
	wish.ctx = ctx;
}

/* Copies as much as fits, without cutting a character in half. */
static void copy(char *to, size_t size, const char *from)
{
	size_t len = from ? strnlen(from, size - 1) : 0;

	while (len && from[len] && ((unsigned char)from[len] & 0xc0) == 0x80)
		len--;
	if (len)
		memcpy(to, from, len);
	to[len] = '\0';
}

static int by_self(const void *pa, const void *pb)
{
	const struct pic_function *a = *(const struct pic_function *const *)pa,
				  *b = *(const struct pic_function *const *)pb;

	return CMP(b->self_ns, a->self_ns) ?: CMP(b->total_ns, a->total_ns) ?: CMP(a, b);
}

static int take_functions(struct top_process *p, const struct pic_target *t)
{
	const struct pic_function **all =
		calloc(t->n_functions + 1, sizeof(const struct pic_function *));
	size_t n = 0;

	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < t->n_functions; i++)
		if (t->functions[i].kind < TF_STATE && t->functions[i].self_ns)
			all[n++] = &t->functions[i];
	if (n)
		qsort(all, n, sizeof(const struct pic_function *), by_self);
	for (size_t i = 0; i < MIN(n, (size_t)TOP_FUNCTIONS); i++) {
		struct top_function *f = &p->functions[p->n_functions++];
		bool rts = picture__is_rts(all[i]->kind, all[i]->package);

		copy(f->name, sizeof(f->name), all[i]->name);
		copy(f->module, sizeof(f->module),
		     rts				 ? "(RTS)"
		     : all[i]->module && *all[i]->module ? all[i]->module
							 : all[i]->file);
		f->self = all[i]->self_ns;
		f->total = all[i]->total_ns;
	}
	free(all);
	return 0;
}

/* The picture's allocators are already sorted. */
static void take_allocation(struct top_process *p, const struct picture *pic,
			    const struct pic_target *t)
{
	const struct pic_alloc *alloc = &t->alloc;

	p->live_bytes = t->heap.known ? t->heap.last.live_bytes : 0;
	if (!alloc->known || alloc->to_ns <= alloc->from_ns)
		return;
	p->alloc_known = true;
	p->alloc_rate = pic_alloc__rate(alloc);
	p->alloc_bytes = alloc->sampled_bytes + alloc->unsampled_bytes;
	for (size_t i = 0; i < alloc->n_allocators && p->n_allocators < TOP_FUNCTIONS; i++) {
		const struct pic_allocator *a = &alloc->allocators[i];
		const struct pic_frame *frame = picture__frame(pic, a->frame);
		struct top_function *f = &p->allocators[p->n_allocators];

		if (frame->kind >= TF_STATE || !a->self_bytes)
			continue;
		p->n_allocators++;
		copy(f->name, sizeof(f->name), frame->name);
		copy(f->module, sizeof(f->module),
		     picture__is_rts(frame->kind, frame->package) ? "(RTS)" : frame->module);
		f->self = a->self_bytes;
		f->total = a->total_bytes;
	}
}

static enum top_seen seen_of(bool exact, double share)
{
	if (exact)
		return TOP_SEEN_ALL;
	return share < LEAST_SEEN ? TOP_SEEN_NONE : TOP_SEEN_SOME;
}

static void take_safe(struct top_call *to, const struct pic_call *from)
{
	to->safe = true;
	to->seen = seen_of(from->exact || from->observed_share >= 1, from->observed_share);
	copy(to->function, sizeof(to->function), from->function);
	copy(to->caller, sizeof(to->caller), from->caller);
	to->n = from->calls;
	to->ended_ns = from->wall_ns;
	to->total_ns = call__ns(from);
	to->cpu_ns = from->cpu_ns;
	to->blocked_ns = from->blocked_ns;
}

static void take_unsafe(struct top_call *to, const struct pic_unsafe *from)
{
	copy(to->function, sizeof(to->function), from->function);
	copy(to->caller, sizeof(to->caller), from->caller);
	to->n = from->samples;
	to->ended_ns = UINT64_MAX;
	to->total_ns = from->cpu_ns + from->blocked_ns;
	to->cpu_ns = from->cpu_ns;
	to->blocked_ns = from->blocked_ns;
}

/* Merges both lists, which are sorted by time. */
static void take_calls(struct top_process *p, const struct pic_target *t)
{
	size_t safe = 0, unsafe = 0;

	while (p->n_calls < TOP_CALLS) {
		struct top_call a = {0}, b = {0};

		if (safe < t->n_calls)
			take_safe(&a, &t->calls[safe]);
		if (unsafe < t->n_unsafe_calls)
			take_unsafe(&b, &t->unsafe_calls[unsafe]);
		if (!a.total_ns && !b.total_ns)
			break;
		p->list[p->n_calls++] = a.total_ns >= b.total_ns ? a : b;
		safe += a.total_ns >= b.total_ns;
		unsafe += a.total_ns < b.total_ns;
	}
}

static double calls_share(const struct picture *pic, const struct pic_target *t)
{
	const struct pic_session *session = picture__session(pic);
	uint64_t wall = session->end_ns - session->start_ns;

	return wall ? 1 - (double)MIN(t->probes_paused_ns, wall) / (double)wall : 1;
}

static int take_process(struct top_process *p, const struct picture *pic,
			const struct pic_target *t)
{
	const struct pic_lanes *threads = &t->lanes[LANE_THREAD];

	copy(p->comm, sizeof(p->comm), t->comm);
	p->pid = t->pid;
	for (size_t i = 0; i < threads->n; i++) {
		const struct pic_lane *lane = &threads->v[i];

		p->threads += (uint32_t)lane->threads;
		p->cpu_ns += lane->cpu_ns == UINT64_MAX ? 0 : lane->cpu_ns;
		for (unsigned s = 0; s < ST_MAX && !lane->housekeeping; s++)
			p->states_ns[s] += lane->states_ns[s];
	}
	for (size_t i = 0; i < t->n_calls; i++) {
		p->calls += t->calls[i].calls;
		if (__builtin_add_overflow(p->call_ns, call__ns(&t->calls[i]), &p->call_ns))
			p->call_ns = UINT64_MAX;
	}
	p->calls_seen = !t->found_suspend || strcmp(t->found_suspend, "none") != 0
				? seen_of(!t->probes_paused_ns, calls_share(pic, t))
				: TOP_SEEN_NONE;
	p->gcs = t->gc.count;
	p->gc_known = t->gc.known || t->gc.quiet;
	p->gcs_seen = !p->gc_known || t->gc.inferred ? TOP_SEEN_NONE : TOP_SEEN_ALL;
	p->gc_ns = t->gc.pause_ns;
	take_calls(p, t);
	take_allocation(p, pic, t);
	return take_functions(p, t);
}

struct busy {
	uint64_t cpu_ns;
	const struct pic_target *target;
};

static int by_cpu(const void *pa, const void *pb)
{
	const struct busy *a = pa, *b = pb;

	return CMP(b->cpu_ns, a->cpu_ns) ?: CMP(a->target, b->target);
}

static int take_processes(struct top_frame *frame, const struct picture *pic)
{
	size_t n = picture__n_targets(pic);
	struct busy *busy = calloc(n + 1, sizeof(*busy));
	int err = 0;

	if (!busy)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct pic_lanes *threads;

		busy[i].target = picture__target(pic, i);
		threads = &busy[i].target->lanes[LANE_THREAD];
		for (size_t k = 0; k < threads->n; k++)
			if (threads->v[k].cpu_ns != UINT64_MAX)
				busy[i].cpu_ns += threads->v[k].cpu_ns;
	}
	if (n)
		qsort(busy, n, sizeof(*busy), by_cpu);
	frame->n_all = (uint32_t)n;
	for (size_t i = 0; i < MIN(n, (size_t)TOP_PROCESSES) && !err; i++)
		err = take_process(&frame->processes[frame->n_processes++], pic, busy[i].target);
	free(busy);
	return err;
}

static int write_frame(FILE *out, const struct picture *pic, const struct export_opts *opts)
{
	const struct pic_session *session = picture__session(pic);
	struct top_frame *frame = calloc(1, sizeof(*frame));
	int err = frame ? 0 : -ENOMEM;

	(void)opts;
	if (!err)
		err = take_processes(frame, pic);
	if (!err) {
		frame->magic = TOP_MAGIC;
		frame->start_unix_ns = session->start_unix_ns;
		frame->length_ns = session->end_ns - session->start_ns;
		frame->frequency_hz = session->frequency_hz;
		if (fwrite(frame, sizeof(*frame), 1, out) != 1 || fflush(out))
			err = -EIO;
	}
	free(frame);
	if (wish.wanted && __atomic_exchange_n(wish.wanted, false, __ATOMIC_ACQ_REL))
		wish.report(wish.ctx, pic);
	return err;
}

const struct export_format export_top = {"top", ".top", write_frame};

static void end_names(struct top_function *functions, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		functions[i].name[sizeof(functions[i].name) - 1] = '\0';
		functions[i].module[sizeof(functions[i].module) - 1] = '\0';
	}
}

bool top_frame__check(struct top_frame *frame)
{
	if (frame->magic != TOP_MAGIC || frame->n_processes > TOP_PROCESSES || !frame->length_ns)
		return false;
	for (uint32_t i = 0; i < frame->n_processes; i++) {
		struct top_process *p = &frame->processes[i];

		if (p->n_functions > TOP_FUNCTIONS || p->n_allocators > TOP_FUNCTIONS ||
		    p->n_calls > TOP_CALLS)
			return false;
		p->comm[sizeof(p->comm) - 1] = '\0';
		end_names(p->functions, p->n_functions);
		end_names(p->allocators, p->n_allocators);
		for (uint32_t k = 0; k < p->n_calls; k++) {
			p->list[k].function[sizeof(p->list[k].function) - 1] = '\0';
			p->list[k].caller[sizeof(p->list[k].caller) - 1] = '\0';
		}
	}
	return true;
}
