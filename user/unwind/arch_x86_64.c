/* SPDX-License-Identifier: GPL-2.0-or-later */
/* x86-64: recognises expressions by their bytes, decodes instructions with capstone. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <capstone/capstone.h>

#include "arch_priv.h"

#define OP_DEREF       0x06
#define OP_PLUS_UCONST 0x23
#define OP_BREG_RBP    0x76
#define OP_BREG_RSP    0x77

/* If an instruction moves the stack pointer further than this, it counts as lost. */
#define MAX_MOVE (8LL * 4096)

struct cfi_arch {
	csh handle;
	cs_insn *one;
};

bool cfi_arch__shape(const struct eh_cursor *section, const struct cfi_expr *expr,
		     struct cfi_shape *ret_shape)
{
	struct eh_cursor c = *section;
	struct cfi_shape shape = {0};
	uint8_t op;

	c.at = expr->at;
	c.end = expr->at + expr->len;
	op = eh_take_u8(&c);
	if (op != OP_BREG_RBP && op != OP_BREG_RSP)
		return false;
	shape.reg = op == OP_BREG_RBP ? CFI_FP : CFI_SP;
	shape.offset = (int64_t)eh_take_leb128(&c, true);
	if (!c.err && c.at < c.end) {
		if (eh_take_u8(&c) != OP_DEREF)
			return false;
		shape.deref = true;
	}
	if (!c.err && c.at < c.end) {
		if (eh_take_u8(&c) != OP_PLUS_UCONST)
			return false;
		shape.plus = eh_take_leb128(&c, false);
	}
	if (c.err || c.at != c.end)
		return false;
	*ret_shape = shape;
	return true;
}

/* As written by binutils' linker: elf_x86_64_eh_frame_plt in bfd/elf64-x86-64.c. */
bool cfi_arch__is_plt(const struct eh_cursor *section, const struct cfi_expr *expr,
		      uint32_t *ret_from)
{
	static const uint8_t head[] = {0x77, 8, 0x80, 0, 0x3f, 0x1a},
			     tail[] = {0x2a, 0x33, 0x24, 0x22};
	struct eh_cursor c = *section;
	uint8_t b[sizeof(head) + 1 + sizeof(tail)];

	c.at = expr->at;
	c.end = expr->at + expr->len;
	if (expr->len != sizeof(b))
		return false;
	eh_take(&c, b, sizeof(b));
	if (c.err || memcmp(b, head, sizeof(head)) != 0 ||
	    memcmp(b + sizeof(head) + 1, tail, sizeof(tail)) != 0)
		return false;
	/* DW_OP_lit0 … DW_OP_lit15 */
	if (b[sizeof(head)] < 0x30 || b[sizeof(head)] > 0x3f)
		return false;
	*ret_from = b[sizeof(head)] - 0x30U;
	return true;
}

/* Finds each occurrence of the opcode followed by four bytes: an instruction with a relative
 * address. */
static void each_relative(const uint8_t *code, size_t len, uint64_t addr, uint8_t opcode,
			  bool by_ghc, cfi_arch_call_fn fn, void *ctx)
{
	/* add $imm8,%rsp */
	static const uint8_t realign[] = {0x48, 0x83, 0xc4};
	const uint8_t *p = code, *end = code + len;
	int32_t rel;

	while (end - p >= CFI_ARCH_CALL_SIZE && (p = memchr(p, opcode, (size_t)(end - p) - 4))) {
		memcpy(&rel, p + 1, sizeof(rel));
		p += CFI_ARCH_CALL_SIZE;
		if (!by_ghc || ((size_t)(end - p) >= sizeof(realign) &&
				memcmp(p, realign, sizeof(realign)) == 0))
			fn(ctx, addr + (uint64_t)(p - code) + (uint64_t)(int64_t)rel,
			   addr + (uint64_t)(p - code));
		p -= 4;
	}
}

void cfi_arch__calls(const uint8_t *code, size_t len, uint64_t addr, bool by_ghc,
		     cfi_arch_call_fn fn, void *ctx)
{
	each_relative(code, len, addr, 0xe8, by_ghc, fn, ctx);
	if (!by_ghc)
		each_relative(code, len, addr, 0xe9, false, fn, ctx);
}

/* ── instructions ────────────────────────────────────────────────────────────────────────── */

int cfi_arch__new(struct cfi_arch **ret_arch)
{
	struct cfi_arch *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &a->handle) != CS_ERR_OK) {
		free(a);
		return -ENOMEM;
	}
	if (cs_option(a->handle, CS_OPT_DETAIL, CS_OPT_ON) == CS_ERR_OK)
		a->one = cs_malloc(a->handle);
	if (!a->one) {
		cfi_arch__free(a);
		return -ENOMEM;
	}
	*ret_arch = a;
	return 0;
}

void cfi_arch__free(struct cfi_arch *arch)
{
	if (!arch)
		return;
	if (arch->one)
		cs_free(arch->one, 1);
	cs_close(&arch->handle);
	free(arch);
}

static bool is_rbp(unsigned int reg)
{
	return reg == X86_REG_RBP || reg == X86_REG_EBP || reg == X86_REG_BP || reg == X86_REG_BPL;
}

static bool is_rsp(unsigned int reg)
{
	return reg == X86_REG_RSP || reg == X86_REG_ESP || reg == X86_REG_SP || reg == X86_REG_SPL;
}

/* add, sub or lea on rsp with a constant; false for any other instruction. */
static bool moves_rsp(const cs_insn *i, int64_t *ret_bytes)
{
	const cs_x86 *x = &i->detail->x86;
	const cs_x86_op *src = &x->operands[1];

	if (x->op_count != 2 || x->operands[0].type != X86_OP_REG ||
	    x->operands[0].reg != X86_REG_RSP)
		return false;
	if ((i->id == X86_INS_ADD || i->id == X86_INS_SUB) && src->type == X86_OP_IMM) {
		*ret_bytes = i->id == X86_INS_ADD ? src->imm : -src->imm;
		return src->imm > -MAX_MOVE && src->imm < MAX_MOVE;
	}
	if (i->id == X86_INS_LEA && src->type == X86_OP_MEM && src->mem.base == X86_REG_RSP &&
	    src->mem.index == X86_REG_INVALID) {
		*ret_bytes = src->mem.disp;
		return src->mem.disp > -MAX_MOVE && src->mem.disp < MAX_MOVE;
	}
	return false;
}

/* mov or lea from one of rsp and rbp to the other. */
static bool exchanges(const cs_insn *i, enum cfi_effect *ret_effect, int64_t *ret_bytes)
{
	const cs_x86 *x = &i->detail->x86;
	const cs_x86_op *src = &x->operands[1];
	unsigned int from = X86_REG_INVALID;
	int64_t bytes = 0;

	if (x->op_count != 2 || x->operands[0].type != X86_OP_REG)
		return false;
	if (i->id == X86_INS_MOV && src->type == X86_OP_REG) {
		from = src->reg;
	} else if (i->id == X86_INS_LEA && src->type == X86_OP_MEM &&
		   src->mem.index == X86_REG_INVALID) {
		from = src->mem.base;
		bytes = src->mem.disp;
	}
	*ret_bytes = bytes;
	if (bytes < -MAX_MOVE || bytes > MAX_MOVE)
		return false;
	if (from == X86_REG_RSP && x->operands[0].reg == X86_REG_RBP) {
		*ret_effect = CFI_EFFECT_FP_FROM_SP;
		return true;
	}
	*ret_effect = CFI_EFFECT_SP_FROM_FP;
	return from == X86_REG_RBP && x->operands[0].reg == X86_REG_RSP;
}

/* Notes the addresses that it refers to, besides its effect. */
static void see_operands(const cs_insn *i, struct cfi_insn *insn)
{
	const cs_x86 *x = &i->detail->x86;

	for (uint8_t k = 0; k < x->op_count && k < 4; k++) {
		const cs_x86_op *op = &x->operands[k];

		if (op->type == X86_OP_MEM) {
			insn->fp_base |= is_rbp(op->mem.base);
			if (i->id == X86_INS_LEA && op->mem.base == X86_REG_RIP)
				insn->loads = i->address + i->size + (uint64_t)op->mem.disp;
			if (i->id == X86_INS_JMP && op->mem.base == X86_REG_INVALID &&
			    op->mem.index != X86_REG_INVALID && op->mem.scale == 8)
				insn->table = (uint64_t)op->mem.disp;
		} else if (op->type == X86_OP_IMM && k > 0 && i->id == X86_INS_MOV) {
			insn->loads = (uint64_t)op->imm;
		}
	}
}

static uint32_t compares(const cs_insn *i, bool jumps)
{
	const cs_x86_op *op = &i->detail->x86.operands[1];

	switch (i->id) {
	case X86_INS_CMP:
		return op->type == X86_OP_IMM && op->imm >= 0 && op->imm < CFI_COMPARES_OTHER - 1
			       ? (uint32_t)op->imm + 1
			       : CFI_COMPARES_OTHER;
	case X86_INS_MOV:
	case X86_INS_MOVZX:
	case X86_INS_MOVSX:
	case X86_INS_MOVSXD:
	case X86_INS_LEA:
	case X86_INS_NOP:
		return 0;
	default:
		/* it may set the flags */
		return jumps ? 0 : CFI_COMPARES_OTHER;
	}
}

static enum cfi_effect effect_of(struct cfi_arch *a, const cs_insn *i, struct cfi_insn *insn)
{
	const cs_x86 *x = &i->detail->x86;
	bool word = x->op_count == 1 && x->operands[0].size == 8, fp = false;
	enum cfi_effect exchange;
	cs_regs read, written;
	uint8_t n_read, n_written;

	insn->fp =
		x->op_count == 1 && x->operands[0].type == X86_OP_REG && is_rbp(x->operands[0].reg);
	switch (i->id) {
	case X86_INS_PUSH:
		return word ? CFI_EFFECT_PUSH : CFI_EFFECT_LOST;
	case X86_INS_PUSHFQ:
		return CFI_EFFECT_PUSH;
	case X86_INS_POP:
		return word ? CFI_EFFECT_POP : CFI_EFFECT_LOST;
	case X86_INS_POPFQ:
		return CFI_EFFECT_POP;
	case X86_INS_CALL:
		insn->call = true;
		insn->direct = x->op_count == 1 && x->operands[0].type == X86_OP_IMM;
		insn->target = insn->direct ? (uint64_t)x->operands[0].imm : 0;
		return CFI_EFFECT_NONE;
	case X86_INS_LEAVE:
		return CFI_EFFECT_LEAVE;
	default:
		break;
	}
	if (moves_rsp(i, &insn->bytes))
		return CFI_EFFECT_MOVE;
	if (exchanges(i, &exchange, &insn->bytes))
		return exchange;
	if (cs_regs_access(a->handle, i, read, &n_read, written, &n_written) != CS_ERR_OK)
		return CFI_EFFECT_LOST;
	for (uint8_t k = 0; k < n_written; k++) {
		if (is_rsp(written[k]))
			return CFI_EFFECT_LOST;
		fp |= is_rbp(written[k]);
	}
	return fp ? CFI_EFFECT_FP : CFI_EFFECT_NONE;
}

bool cfi_arch__decode(struct cfi_arch *a, const uint8_t *code, size_t len, uint64_t addr,
		      struct cfi_insn *ret_insn)
{
	struct cfi_insn insn = {.flow = CFI_FLOW_ON};
	const cs_insn *i = a->one;
	const cs_x86 *x;

	if (!cs_disasm_iter(a->handle, &code, &len, &addr, a->one))
		return false;
	/* not in user space */
	if (cs_insn_group(a->handle, i, X86_GRP_PRIVILEGE) && i->id != X86_INS_HLT)
		return false;
	x = &i->detail->x86;
	insn.size = i->size;
	insn.nop = i->id == X86_INS_NOP;
	see_operands(i, &insn);
	insn.compares = compares(i, cs_insn_group(a->handle, i, X86_GRP_JUMP));
	if (cs_insn_group(a->handle, i, X86_GRP_RET)) {
		insn.flow = CFI_FLOW_RET;
	} else if (i->id == X86_INS_UD2 || i->id == X86_INS_HLT) {
		insn.flow = CFI_FLOW_STOP;
	} else if (cs_insn_group(a->handle, i, X86_GRP_JUMP)) {
		insn.flow = CFI_FLOW_JUMP;
		insn.conditional = i->id != X86_INS_JMP;
		insn.above = i->id == X86_INS_JA;
		insn.direct = x->op_count == 1 && x->operands[0].type == X86_OP_IMM;
		insn.target = insn.direct ? (uint64_t)x->operands[0].imm : 0;
	} else {
		insn.effect = effect_of(a, i, &insn);
	}
	*ret_insn = insn;
	return true;
}
