/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cfi_rule: what call frame instructions said, as one of the few rules that the kernel follows. */
#include "cfi_run_priv.h"

#include <string.h>

#include "wire.h"

#define OP_DEREF       0x06
#define OP_PLUS_UCONST 0x23
#define OP_BREG_RBP    0x76
#define OP_BREG_RSP    0x77

#define DWARF_RBP 6
#define DWARF_RSP 7

/* An expression of the shape register + offset [deref [+ constant]]. */
struct shape {
	uint8_t reg;
	int64_t offset;
	bool deref;
	uint64_t plus;
};

static bool take_shape(const struct eh_cursor *section, const struct cfi_expr *expr,
		       struct shape *ret)
{
	struct eh_cursor c = *section;
	uint8_t op;

	memset(ret, 0, sizeof(*ret));
	c.at = expr->at;
	c.end = expr->at + expr->len;
	op = eh_take_u8(&c);
	if (op != OP_BREG_RBP && op != OP_BREG_RSP)
		return false;
	ret->reg = op == OP_BREG_RBP ? DWARF_RBP : DWARF_RSP;
	ret->offset = (int64_t)eh_take_leb128(&c, true);
	if (!c.err && c.at < c.end) {
		if (eh_take_u8(&c) != OP_DEREF)
			return false;
		ret->deref = true;
	}
	if (!c.err && c.at < c.end) {
		if (eh_take_u8(&c) != OP_PLUS_UCONST)
			return false;
		ret->plus = eh_take_leb128(&c, false);
	}
	return !c.err && c.at == c.end;
}

static uint32_t rule(enum wire_cfi kind, int64_t offset, uint32_t bp)
{
	if (offset < 0 || offset % 8 || offset > (int64_t)WIRE_CFI_MAX_OFFSET)
		return WIRE_CFI_UNKNOWN;
	return (uint32_t)kind | (uint32_t)(offset / 8) << 4 | bp << 20;
}

/*
 * What binutils' linker writes for .plt (elf_x86_64_eh_frame_plt in bfd/elf64-x86-64.c): rsp + 8,
 * and 8 more from byte N of a 16-byte entry on.
 */
static bool is_plt(const struct eh_cursor *section, const struct cfi_expr *expr, uint32_t *ret_from)
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

static uint32_t bp_rule(const struct eh_cursor *section, const struct cfi_place *p)
{
	struct shape e;

	switch (p->how) {
	case CFI_UNSAID:
		return 0;
	case CFI_OFFSET:
		if (p->value <= -16 && p->value % 8 == 0 &&
		    p->value >= -8 * (int64_t)WIRE_CFI_MAX_BP)
			return (uint32_t)(-p->value / 8);
		return WIRE_CFI_BP_UNKNOWN;
	case CFI_EXPR:
		/* a frame that realigned its stack: rbp points at the saved one */
		if (take_shape(section, &p->expr, &e) && e.reg == DWARF_RBP && e.offset == 0 &&
		    !e.deref)
			return WIRE_CFI_BP_AT_BP;
		return WIRE_CFI_BP_UNKNOWN;
	default:
		return WIRE_CFI_BP_UNKNOWN;
	}
}

/* Where a register is, relative to rsp: by an offset from CFA = rsp + cfa, or by an expression. */
static bool from_rsp(const struct eh_cursor *section, const struct cfi_place *p,
		     enum cfi_how by_offset, enum cfi_how by_expr, int64_t cfa, int64_t *ret)
{
	struct shape e;

	if (p->how == by_offset) {
		*ret = p->value + cfa;
		return true;
	}
	if (p->how != by_expr || !take_shape(section, &p->expr, &e) || e.reg != DWARF_RSP ||
	    e.deref)
		return false;
	*ret = e.offset;
	return true;
}

/* Signal frames and StgRun: the return address is somewhere else than below the CFA. */
static uint32_t pack_block(const struct eh_cursor *section, const struct cfi_state *s)
{
	int64_t cfa = !s->by_expr && s->reg == DWARF_RSP ? s->offset : 0, ip, bp, sp;
	const struct cfi_place *r = s->regs;

	if (!from_rsp(section, &r[CFI_RA], CFI_OFFSET, CFI_EXPR, cfa, &ip) ||
	    !from_rsp(section, &r[CFI_RBP], CFI_OFFSET, CFI_EXPR, cfa, &bp))
		return WIRE_CFI_UNKNOWN;
	if (ip - bp == WIRE_CFI_SIGNAL_IP - WIRE_CFI_SIGNAL_BP &&
	    from_rsp(section, &r[CFI_RSP], CFI_OFFSET, CFI_EXPR, cfa, &sp) &&
	    ip - sp == WIRE_CFI_SIGNAL_IP - WIRE_CFI_SIGNAL_SP)
		return rule(WIRE_CFI_SIGNAL, ip - WIRE_CFI_SIGNAL_IP, 0);
	if (ip - bp == WIRE_CFI_STGRUN_IP - WIRE_CFI_STGRUN_BP &&
	    from_rsp(section, &r[CFI_RSP], CFI_VAL_OFFSET, CFI_VAL_EXPR, cfa, &sp) && sp - ip == 8)
		return rule(WIRE_CFI_STGRUN, ip - WIRE_CFI_STGRUN_IP, 0);
	return WIRE_CFI_UNKNOWN;
}

static uint32_t pack_expr(const struct eh_cursor *section, const struct cfi_expr *expr, uint32_t bp)
{
	struct shape e;
	uint32_t from;

	if (is_plt(section, expr, &from))
		return rule(WIRE_CFI_PLT, 8 * (int64_t)from, bp);
	if (!take_shape(section, expr, &e))
		return WIRE_CFI_UNKNOWN;
	if (!e.deref)
		return rule(e.reg == DWARF_RSP ? WIRE_CFI_RSP : WIRE_CFI_RBP, e.offset, bp);
	if (e.reg == DWARF_RBP && e.plus == 0 && e.offset > -(1LL << 32) && e.offset <= 0)
		return rule(WIRE_CFI_RBP_DEREF, -e.offset, bp);
	if (e.reg == DWARF_RSP && (e.plus == 0 || e.plus == 8))
		return rule(e.plus ? WIRE_CFI_RSP_DEREF8 : WIRE_CFI_RSP_DEREF, e.offset, bp);
	return WIRE_CFI_UNKNOWN;
}

uint32_t cfi__pack(const struct eh_cursor *section, const struct cfi_state *s)
{
	const struct cfi_place *ra = &s->regs[CFI_RA], *sp = &s->regs[CFI_RSP];
	uint32_t bp;

	if (ra->how == CFI_UNDEFINED)
		return WIRE_CFI_END;
	if (ra->how != CFI_OFFSET || ra->value != -8 || sp->how != CFI_UNSAID)
		return pack_block(section, s);
	bp = bp_rule(section, &s->regs[CFI_RBP]);
	if (s->by_expr)
		return pack_expr(section, &s->expr, bp);
	if (s->reg == DWARF_RSP)
		return rule(WIRE_CFI_RSP, s->offset, bp);
	return s->reg == DWARF_RBP ? rule(WIRE_CFI_RBP, s->offset, bp) : WIRE_CFI_UNKNOWN;
}
