/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cfi_rule: translates a state of call frame instructions into one of the few rules that the kernel
 * side applies. */
#include "cfi_run_priv.h"

#include "arch_priv.h"
#include "wire.h"

static uint32_t rule(enum wire_cfi kind, int64_t offset, uint32_t bp)
{
	if (offset < 0 || offset % 8 || offset > (int64_t)WIRE_CFI_MAX_OFFSET)
		return WIRE_CFI_UNKNOWN;
	return (uint32_t)kind | (uint32_t)(offset / 8) << 4 | bp << 20;
}

static uint32_t bp_rule(const struct eh_cursor *section, const struct cfi_place *p)
{
	struct cfi_shape e;

	switch (p->how) {
	case CFI_UNSAID:
		return 0;
	case CFI_OFFSET:
		if (p->value <= -16 && p->value % 8 == 0 &&
		    p->value >= -8 * (int64_t)WIRE_CFI_MAX_BP)
			return (uint32_t)(-p->value / 8);
		return WIRE_CFI_BP_UNKNOWN;
	case CFI_EXPR:
		/* a frame that realigned its stack: the frame pointer points to the saved one */
		if (cfi_arch__shape(section, &p->expr, &e) && e.reg == CFI_FP && e.offset == 0 &&
		    !e.deref)
			return WIRE_CFI_BP_AT_BP;
		return WIRE_CFI_BP_UNKNOWN;
	default:
		return WIRE_CFI_BP_UNKNOWN;
	}
}

/*
 * The place of a register relative to the stack pointer: by an offset from CFA = stack pointer +
 * cfa, or by an expression.
 */
static bool from_sp(const struct eh_cursor *section, const struct cfi_place *p,
		    enum cfi_how by_offset, enum cfi_how by_expr, int64_t cfa, int64_t *ret)
{
	struct cfi_shape e;

	if (p->how == by_offset) {
		*ret = p->value + cfa;
		return true;
	}
	if (p->how != by_expr || !cfi_arch__shape(section, &p->expr, &e) || e.reg != CFI_SP ||
	    e.deref)
		return false;
	*ret = e.offset;
	return true;
}

/* Signal frames and StgRun: the return address is not right below the CFA. */
static uint32_t pack_block(const struct eh_cursor *section, const struct cfi_state *s)
{
	bool by_sp = !s->by_expr && cfi_arch__reg(s->reg) == CFI_SP;
	int64_t cfa = by_sp ? s->offset : 0, ip, bp, sp;
	const struct cfi_place *r = s->regs;

	if (!from_sp(section, &r[CFI_RA], CFI_OFFSET, CFI_EXPR, cfa, &ip) ||
	    !from_sp(section, &r[CFI_FP], CFI_OFFSET, CFI_EXPR, cfa, &bp))
		return WIRE_CFI_UNKNOWN;
	if (ip - bp == WIRE_CFI_SIGNAL_IP - WIRE_CFI_SIGNAL_BP &&
	    from_sp(section, &r[CFI_SP], CFI_OFFSET, CFI_EXPR, cfa, &sp) &&
	    ip - sp == WIRE_CFI_SIGNAL_IP - WIRE_CFI_SIGNAL_SP)
		return rule(WIRE_CFI_SIGNAL, ip - WIRE_CFI_SIGNAL_IP, 0);
	if (ip - bp == WIRE_CFI_STGRUN_IP - WIRE_CFI_STGRUN_BP &&
	    from_sp(section, &r[CFI_SP], CFI_VAL_OFFSET, CFI_VAL_EXPR, cfa, &sp) &&
	    sp - ip == -CFI_ARCH_RA_AT)
		return rule(WIRE_CFI_STGRUN, ip - WIRE_CFI_STGRUN_IP, 0);
	return WIRE_CFI_UNKNOWN;
}

/* A return address in a register. */
static uint32_t pack_leaf(const struct cfi_state *s)
{
	const struct cfi_place *r = s->regs;

	if (r[CFI_RA].value != CFI_ARCH_COLUMN_RA || r[CFI_FP].how != CFI_UNSAID ||
	    r[CFI_SP].how != CFI_UNSAID || s->by_expr || cfi_arch__reg(s->reg) != CFI_SP)
		return WIRE_CFI_UNKNOWN;
	return rule(WIRE_CFI_LEAF_RDI, s->offset, 0);
}

static uint32_t pack_expr(const struct eh_cursor *section, const struct cfi_expr *expr, uint32_t bp)
{
	struct cfi_shape e;
	uint32_t from;

	if (cfi_arch__is_plt(section, expr, &from))
		return rule(WIRE_CFI_PLT, 8 * (int64_t)from, bp);
	if (!cfi_arch__shape(section, expr, &e))
		return WIRE_CFI_UNKNOWN;
	if (!e.deref)
		return rule(e.reg == CFI_SP ? WIRE_CFI_RSP : WIRE_CFI_RBP, e.offset, bp);
	if (e.reg == CFI_FP && e.plus == 0 && e.offset > -(1LL << 32) && e.offset <= 0)
		return rule(WIRE_CFI_RBP_DEREF, -e.offset, bp);
	if (e.reg == CFI_SP && (e.plus == 0 || e.plus == 8))
		return rule(e.plus ? WIRE_CFI_RSP_DEREF8 : WIRE_CFI_RSP_DEREF, e.offset, bp);
	return WIRE_CFI_UNKNOWN;
}

uint32_t cfi__pack(const struct eh_cursor *section, const struct cfi_state *s)
{
	const struct cfi_place *ra = &s->regs[CFI_RA], *sp = &s->regs[CFI_SP];
	uint32_t bp;

	if (ra->how == CFI_UNDEFINED)
		return WIRE_CFI_END;
	if (ra->how == CFI_OTHER)
		return pack_leaf(s);
	if (ra->how != CFI_OFFSET || ra->value != CFI_ARCH_RA_AT || sp->how != CFI_UNSAID)
		return pack_block(section, s);
	bp = bp_rule(section, &s->regs[CFI_FP]);
	if (s->by_expr)
		return pack_expr(section, &s->expr, bp);
	switch (cfi_arch__reg(s->reg)) {
	case CFI_SP:
		return rule(WIRE_CFI_RSP, s->offset, bp);
	case CFI_FP:
		return rule(WIRE_CFI_RBP, s->offset, bp);
	default:
		return WIRE_CFI_UNKNOWN;
	}
}
