/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cfi_asm: a flow analysis of one function. Each byte is decoded at most once as the start of an
 * instruction, so it terminates. It gives up a function that it cannot follow (stack pointer set
 * from a register, or from a frame pointer).
 *
 * The target of an indirect jump is not known. Unrolled loops are entered through one: code that
 * nothing else leads to is assumed to be entered with the depth that all indirect jumps of the
 * function share, and must then be consistent with everything else.
 */
#include "cfi_asm_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arch_priv.h"
#include "wire.h"

/* The state at each byte: 0 unknown, INSIDE an instruction, else KNOWN | depth | slot of the frame
 * pointer. */
#define KNOWN	    0x80000000U
#define INSIDE	    1U
#define DEPTH(s)    ((s)&0xffffU)
#define SLOT(s)	    (((s) >> 16) & 0xfffU)
#define MAX_DEPTH   4096U /* words */
#define STATE(d, s) (KNOWN | (uint32_t)(d) | (uint32_t)(s) << 16)
/* At the entry only the return address is on the stack. */
#define ENTRY STATE(1, 0)

struct cfi_asm {
	struct cfi_arch *arch;
	uint32_t state[CFI_ASM_MAX_LEN];
	uint32_t work[CFI_ASM_MAX_LEN]; /* offsets that remain to be followed */
	size_t n_work;
	const uint8_t *code;
	size_t len;
	uint64_t addr;
	uint32_t indirect; /* the state at indirect jumps; 0: none seen */
};

int cfi_asm__new(struct cfi_asm **ret_asm)
{
	struct cfi_asm *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	if (cfi_arch__new(&a->arch) < 0) {
		free(a);
		return -ENOMEM;
	}
	*ret_asm = a;
	return 0;
}

void cfi_asm__free(struct cfi_asm *a)
{
	if (!a)
		return;
	cfi_arch__free(a->arch);
	free(a);
}

static int reach(struct cfi_asm *a, uint64_t at, uint32_t state)
{
	if (at >= a->len)
		return -EILSEQ;
	if (a->state[at])
		return a->state[at] == state ? 0 : -EILSEQ;
	a->state[at] = state;
	a->work[a->n_work++] = (uint32_t)at;
	return 0;
}

/* Slot 0: the frame pointer still is the caller's; else it was pushed there. Returns 0 if it cannot
 * be followed. */
static uint32_t pushed(uint32_t s, bool fp)
{
	uint32_t depth = DEPTH(s) + 1;

	if (depth > MAX_DEPTH)
		return 0;
	return STATE(depth, fp && !SLOT(s) ? depth : SLOT(s));
}

static uint32_t popped(uint32_t s, bool fp)
{
	uint32_t depth = DEPTH(s), slot = SLOT(s);

	if (depth <= 1)
		return 0;
	if (slot == depth)
		return fp ? STATE(depth - 1, 0) : 0;
	/* loading another word into the frame pointer is fine if the caller's was saved */
	return fp && !slot ? 0 : STATE(depth - 1, slot);
}

static uint32_t moved(uint32_t s, int64_t bytes)
{
	int64_t depth = (int64_t)DEPTH(s) - bytes / 8;

	if (bytes % 8 || depth < 1 || depth > (int64_t)MAX_DEPTH || (uint32_t)depth < SLOT(s))
		return 0;
	return STATE(depth, SLOT(s));
}

/* The state after an instruction other than a jump; 0: cannot be followed. */
static uint32_t after(const struct cfi_insn *i, uint32_t s)
{
	switch (i->effect) {
	case CFI_EFFECT_NONE:
		return s;
	case CFI_EFFECT_PUSH:
		return pushed(s, i->fp);
	case CFI_EFFECT_POP:
		return popped(s, i->fp);
	case CFI_EFFECT_MOVE:
		return moved(s, i->bytes);
	case CFI_EFFECT_FP:
	case CFI_EFFECT_FP_FROM_SP:
		/* fine if the caller's was saved */
		return SLOT(s) ? s : 0;
	case CFI_EFFECT_LEAVE:
	case CFI_EFFECT_SP_FROM_FP:
	case CFI_EFFECT_LOST:
		break;
	}
	return 0;
}

static int follow_jump(struct cfi_asm *a, const struct cfi_insn *i, uint64_t next, uint32_t s)
{
	uint64_t to;
	int err = 0;

	if (i->direct) {
		to = i->target - a->addr;
		if (to < a->len)
			err = reach(a, to, s);
		else if (s != ENTRY) /* a tail call */
			err = -EILSEQ;
	} else if (!i->conditional && s != ENTRY) {
		if (a->indirect && a->indirect != s)
			return -EILSEQ;
		a->indirect = s;
	} else if (!i->conditional && !a->indirect) {
		/* a tail call, or a jump into the function's own code with nothing pushed */
		a->indirect = s;
	}
	if (!err && i->conditional)
		err = reach(a, next, s);
	return err;
}

static int follow(struct cfi_asm *a, uint64_t at)
{
	uint32_t s = a->state[at];
	struct cfi_insn i;
	uint64_t next;

	if (!cfi_arch__decode(a->arch, a->code + at, a->len - at, a->addr + at, &i))
		return -EILSEQ;
	next = at + i.size;
	for (uint64_t k = at + 1; k < next; k++) {
		if (a->state[k] && a->state[k] != INSIDE)
			return -EILSEQ;
		a->state[k] = INSIDE;
	}
	switch (i.flow) {
	case CFI_FLOW_RET:
		return s == ENTRY ? 0 : -EILSEQ;
	case CFI_FLOW_STOP:
		return 0;
	case CFI_FLOW_JUMP:
		return follow_jump(a, &i, next, s);
	case CFI_FLOW_ON:
		break;
	}
	s = after(&i, s);
	return s ? reach(a, next, s) : -EILSEQ;
}

static int follow_all(struct cfi_asm *a)
{
	int err = 0;

	while (!err && a->n_work)
		err = follow(a, a->work[--a->n_work]);
	return err;
}

/* The length of the no-op at an offset, which is padding if nothing leads there. 0: no no-op. */
static size_t padding(struct cfi_asm *a, size_t at)
{
	struct cfi_insn i;

	return cfi_arch__decode(a->arch, a->code + at, a->len - at, a->addr + at, &i) && i.nop
		       ? i.size
		       : 0;
}

static int analyse(struct cfi_asm *a)
{
	size_t skip;

	int err = reach(a, 0, ENTRY);

	if (!err)
		err = follow_all(a);
	for (size_t at = 0; !err && a->indirect && at < a->len; at++) {
		skip = a->state[at] ? 1 : padding(a, at);
		if (skip) {
			at += skip - 1;
			continue;
		}
		err = reach(a, at, a->indirect);
		if (!err)
			err = follow_all(a);
	}
	return err;
}

static uint32_t rule_of(uint32_t s)
{
	return WIRE_CFI_RSP | DEPTH(s) << 4 | SLOT(s) << 20;
}

int cfi_asm__run(struct cfi_asm *a, const uint8_t *code, size_t len, uint64_t addr, cfi_asm_fn fn,
		 void *ctx)
{
	int err;

	if (len == 0 || len > CFI_ASM_MAX_LEN)
		return -EILSEQ;
	a->code = code;
	a->len = len;
	a->addr = addr;
	a->n_work = 0;
	a->indirect = 0;
	memset(a->state, 0, len * sizeof(a->state[0]));
	err = analyse(a);
	for (size_t at = 0, end; !err && at < len; at = end) {
		uint32_t s = a->state[at];

		for (end = at + 1; end < len && (a->state[end] == s || a->state[end] == INSIDE);)
			end++;
		if (s)
			err = fn(ctx, addr + at, addr + end, rule_of(s));
	}
	return err;
}
