/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel's own frames, for --kernel-stacks: those of the thread on this CPU. Frames of this
 * profiler (the tracepoint of the switch and its program) are recognised by name in user space.
 */
#ifndef SAFESCOPED_KSTACK_BPF_H
#define SAFESCOPED_KSTACK_BPF_H

#include "maps.bpf.h"

struct kstack_ctx {
	const struct stg *g;
	const struct scratch *s;
	u32 n;
};

static long kstack_frame(u32 i, void *ctx)
{
	const struct kstack_ctx *c = ctx;
	u32 k = i & (KSTACK_FRAMES - 1);

	if (i >= c->n)
		return 1;
	ss_barrier(k);
	/* the first is a program counter, the others are return addresses, named after the call
	 * before */
	stg_put(c->g, WIRE_FRAME_KERNEL, c->s->kernel[k & (KSTACK_FRAMES - 1)] - !!i);
	return 0;
}

/* `ctx`: the context of the program, from which the helper takes registers; `frames`: those of
 * s->walk. */
SS_NOINLINE void kstack_put(void *ctx, struct scratch *s, u64 *frames)
{
	const struct stg g = {.w = &s->walk, .frames = frames};
	struct kstack_ctx c = {.g = &g, .s = s};
	long size = bpf_get_stack(ctx, s->kernel, sizeof(s->kernel), 0);

	if (size <= 0)
		return;
	c.n = (u32)size / sizeof(u64);
	ss_loop(KSTACK_FRAMES, kstack_frame, &c);
}

#endif
