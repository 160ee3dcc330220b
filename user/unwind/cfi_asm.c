/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cfi_asm: a flow analysis of one function. Each byte of it is decoded once at most as the begin
 * of an instruction, so it ends; what it cannot follow (rsp from a register, a frame pointer)
 * makes it give up the function.
 *
 * Where an indirect jump leads is not known. Unrolled loops are entered by one: the code that
 * nothing else leads to is taken to be entered with the depth that all indirect jumps of the
 * function have, and must then agree with everything else as above.
 */
#include "cfi_asm_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <capstone/capstone.h>

#include "base/base.h"
#include "wire.h"

/* What is known at a byte: 0 nothing, INSIDE an instruction, else KNOWN | depth | rbp's slot. */
#define KNOWN	    0x80000000U
#define INSIDE	    1U
#define DEPTH(s)    ((s)&0xffffU)
#define SLOT(s)	    (((s) >> 16) & 0xfffU)
#define MAX_DEPTH   4096U /* words */
#define STATE(d, s) (KNOWN | (uint32_t)(d) | (uint32_t)(s) << 16)
/* At the entry: the return address alone. */
#define ENTRY STATE(1, 0)

struct cfi_asm {
	csh handle;
	cs_insn *one;
	uint32_t state[CFI_ASM_MAX_LEN];
	uint32_t work[CFI_ASM_MAX_LEN]; /* offsets still to be followed */
	size_t n_work;
	const uint8_t *code;
	size_t len;
	uint64_t addr;
	uint32_t indirect; /* the state at indirect jumps; 0: none was met */
};

int cfi_asm__new(struct cfi_asm **ret_asm)
{
	struct cfi_asm *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &a->handle) != CS_ERR_OK) {
		free(a);
		return -ENOMEM;
	}
	if (cs_option(a->handle, CS_OPT_DETAIL, CS_OPT_ON) == CS_ERR_OK)
		a->one = cs_malloc(a->handle);
	if (!a->one) {
		cfi_asm__free(a);
		return -ENOMEM;
	}
	*ret_asm = a;
	return 0;
}

void cfi_asm__free(struct cfi_asm *a)
{
	if (!a)
		return;
	if (a->one)
		cs_free(a->one, 1);
	cs_close(&a->handle);
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

static bool is_rbp(unsigned int reg)
{
	return reg == X86_REG_RBP || reg == X86_REG_EBP || reg == X86_REG_BP || reg == X86_REG_BPL;
}

static bool is_rsp(unsigned int reg)
{
	return reg == X86_REG_RSP || reg == X86_REG_ESP || reg == X86_REG_SP || reg == X86_REG_SPL;
}

/* rbp is the caller's at slot 0, else it was pushed there. 0: cannot be followed. */
static uint32_t pushed(uint32_t s, bool rbp)
{
	uint32_t depth = DEPTH(s) + 1;

	if (depth > MAX_DEPTH)
		return 0;
	return STATE(depth, rbp && !SLOT(s) ? depth : SLOT(s));
}

static uint32_t popped(uint32_t s, bool rbp)
{
	uint32_t depth = DEPTH(s), slot = SLOT(s);

	if (depth <= 1)
		return 0;
	if (slot == depth)
		return rbp ? STATE(depth - 1, 0) : 0;
	/* another word into rbp: fine while the caller's is kept */
	return rbp && !slot ? 0 : STATE(depth - 1, slot);
}

static uint32_t moved(uint32_t s, int64_t bytes)
{
	int64_t depth = (int64_t)DEPTH(s) - bytes / 8;

	if (bytes % 8 || depth < 1 || depth > (int64_t)MAX_DEPTH || (uint32_t)depth < SLOT(s))
		return 0;
	return STATE(depth, SLOT(s));
}

/* add, sub or lea on rsp by a constant; false if the instruction is none of these. */
static bool moves_rsp(const cs_insn *i, int64_t *ret_bytes)
{
	const cs_x86 *x = &i->detail->x86;
	const cs_x86_op *src = &x->operands[1];

	if (x->op_count != 2 || x->operands[0].type != X86_OP_REG ||
	    x->operands[0].reg != X86_REG_RSP)
		return false;
	if ((i->id == X86_INS_ADD || i->id == X86_INS_SUB) && src->type == X86_OP_IMM) {
		*ret_bytes = i->id == X86_INS_ADD ? src->imm : -src->imm;
		return src->imm > -(8LL * MAX_DEPTH) && src->imm < 8LL * MAX_DEPTH;
	}
	if (i->id == X86_INS_LEA && src->type == X86_OP_MEM && src->mem.base == X86_REG_RSP &&
	    src->mem.index == X86_REG_INVALID) {
		*ret_bytes = src->mem.disp;
		return src->mem.disp > -(8LL * MAX_DEPTH) && src->mem.disp < 8LL * MAX_DEPTH;
	}
	return false;
}

/* The state behind an instruction that is no jump; 0: cannot be followed. */
static uint32_t after(const struct cfi_asm *a, const cs_insn *i, uint32_t s)
{
	const cs_x86 *x = &i->detail->x86;
	bool rbp =
		x->op_count == 1 && x->operands[0].type == X86_OP_REG && is_rbp(x->operands[0].reg);
	cs_regs read, written;
	uint8_t n_read, n_written;
	int64_t bytes;

	switch (i->id) {
	case X86_INS_PUSH:
		return x->op_count == 1 && x->operands[0].size == 8 ? pushed(s, rbp) : 0;
	case X86_INS_PUSHFQ:
		return pushed(s, false);
	case X86_INS_POP:
		return x->op_count == 1 && x->operands[0].size == 8 ? popped(s, rbp) : 0;
	case X86_INS_POPFQ:
		return popped(s, false);
	case X86_INS_CALL:
		return s;
	default:
		break;
	}
	if (moves_rsp(i, &bytes))
		return moved(s, bytes);
	if (cs_regs_access(a->handle, i, read, &n_read, written, &n_written) != CS_ERR_OK)
		return 0;
	for (uint8_t k = 0; k < n_written; k++)
		if (is_rsp(written[k]) || (is_rbp(written[k]) && !SLOT(s)))
			return 0;
	return s;
}

static int follow_jump(struct cfi_asm *a, const cs_insn *i, uint64_t next, uint32_t s)
{
	const cs_x86 *x = &i->detail->x86;
	uint64_t to;
	int err = 0;

	if (x->op_count == 1 && x->operands[0].type == X86_OP_IMM) {
		to = (uint64_t)x->operands[0].imm - a->addr;
		if (to < a->len)
			err = reach(a, to, s);
		else if (s != ENTRY) /* a tail call */
			err = -EILSEQ;
	} else if (i->id == X86_INS_JMP && s != ENTRY) {
		if (a->indirect && a->indirect != s)
			return -EILSEQ;
		a->indirect = s;
	} else if (i->id == X86_INS_JMP && !a->indirect) {
		/* a tail call, or a jump into the function's own code with nothing pushed */
		a->indirect = s;
	}
	if (!err && i->id != X86_INS_JMP)
		err = reach(a, next, s);
	return err;
}

static int follow(struct cfi_asm *a, uint64_t at)
{
	const uint8_t *code = a->code + at;
	size_t left = a->len - at;
	uint64_t addr = a->addr + at, next;
	uint32_t s = a->state[at];
	const cs_insn *i = a->one;

	if (!cs_disasm_iter(a->handle, &code, &left, &addr, a->one))
		return -EILSEQ;
	next = at + i->size;
	for (uint64_t k = at + 1; k < next; k++) {
		if (a->state[k] && a->state[k] != INSIDE)
			return -EILSEQ;
		a->state[k] = INSIDE;
	}
	if (cs_insn_group(a->handle, i, X86_GRP_RET))
		return s == ENTRY ? 0 : -EILSEQ;
	if (i->id == X86_INS_UD2 || i->id == X86_INS_HLT)
		return 0;
	if (cs_insn_group(a->handle, i, X86_GRP_JUMP))
		return follow_jump(a, i, next, s);
	s = after(a, i, s);
	return s ? reach(a, next, s) : -EILSEQ;
}

static int follow_all(struct cfi_asm *a)
{
	int err = 0;

	while (!err && a->n_work)
		err = follow(a, a->work[--a->n_work]);
	return err;
}

/* The length of the no-operation at an offset: padding, if nothing leads there. 0: there is none.
 */
static size_t padding(struct cfi_asm *a, size_t at)
{
	const uint8_t *code = a->code + at;
	size_t left = a->len - at;
	uint64_t addr = a->addr + at;

	if (!cs_disasm_iter(a->handle, &code, &left, &addr, a->one))
		return 0;
	return a->one->id == X86_INS_NOP ? a->one->size : 0;
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
