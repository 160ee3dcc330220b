/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cfi_run: an interpreter of call frame instructions (DWARF 5, section 6.4.2). Each instruction
 * takes at least one byte of its entry and there are no jumps, so a run is bounded by the entry's
 * length; the stack of remembered states is an array.
 */
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "arch_priv.h"
#include "cfi_run_priv.h"

#define OP_ADVANCE	       0x40 /* the low six bits are an operand */
#define OP_OFFSET	       0x80
#define OP_RESTORE	       0xc0
#define OP_NOP		       0x00
#define OP_SET_LOC	       0x01
#define OP_ADVANCE1	       0x02
#define OP_ADVANCE2	       0x03
#define OP_ADVANCE4	       0x04
#define OP_OFFSET_EXTENDED     0x05
#define OP_RESTORE_EXTENDED    0x06
#define OP_UNDEFINED	       0x07
#define OP_SAME_VALUE	       0x08
#define OP_REGISTER	       0x09
#define OP_REMEMBER_STATE      0x0a
#define OP_RESTORE_STATE       0x0b
#define OP_DEF_CFA	       0x0c
#define OP_DEF_CFA_REGISTER    0x0d
#define OP_DEF_CFA_OFFSET      0x0e
#define OP_DEF_CFA_EXPRESSION  0x0f
#define OP_EXPRESSION	       0x10
#define OP_OFFSET_EXTENDED_SF  0x11
#define OP_DEF_CFA_SF	       0x12
#define OP_DEF_CFA_OFFSET_SF   0x13
#define OP_VAL_OFFSET	       0x14
#define OP_VAL_OFFSET_SF       0x15
#define OP_VAL_EXPRESSION      0x16
#define OP_GNU_ARGS_SIZE       0x2e
#define OP_GNU_NEGATIVE_OFFSET 0x2f

/* Compilers nest them once. */
#define MAX_REMEMBERED 16
/* The CIE's instructions are run for each of its FDEs: compilers emit three of them. */
#define MAX_CIE_BYTES 256
/* Larger than any stack's offsets; keeps sums from overflowing. */
#define MAX_OFFSET (1LL << 40)

struct run {
	struct eh_cursor c;
	const struct eh_cie *cie;
	uint64_t at, end; /* code */
	struct cfi_state now, first;
	struct cfi_state stack[MAX_REMEMBERED];
	size_t depth;
	bool in_cie;
	cfi_row_fn fn;
	void *ctx;
};

static struct cfi_place *place_of(struct run *r, struct cfi_state *s, uint64_t column)
{
	enum cfi_reg reg = cfi_arch__reg(column);

	if (reg != CFI_REGS)
		return &s->regs[reg];
	return column == r->cie->ra ? &s->regs[CFI_RA] : NULL;
}

static int bounded(int64_t v)
{
	return v > -MAX_OFFSET && v < MAX_OFFSET ? 0 : -EBADMSG;
}

static int factored(struct run *r, int64_t v, int64_t *ret)
{
	if (__builtin_mul_overflow(v, r->cie->data_align, ret))
		return -EBADMSG;
	return bounded(*ret);
}

static int set_place(struct run *r, uint64_t column, enum cfi_how how, int64_t value)
{
	struct cfi_place *p = place_of(r, &r->now, column);

	if (p)
		*p = (struct cfi_place){.how = how, .value = value};
	return 0;
}

static int set_offset(struct run *r, uint64_t column, enum cfi_how how, int64_t operand)
{
	int64_t value;
	int err = factored(r, operand, &value);

	return err ? err : set_place(r, column, how, value);
}

static int restore(struct run *r, uint64_t column)
{
	struct cfi_place *p = place_of(r, &r->now, column), *first = place_of(r, &r->first, column);

	if (p && first)
		*p = *first;
	return 0;
}

static int take_expr(struct run *r, struct cfi_expr *ret)
{
	uint64_t len = eh_take_leb128(&r->c, false);

	if (r->c.err || len > r->c.end - r->c.at || len > UINT32_MAX)
		return -EBADMSG;
	ret->at = r->c.at;
	ret->len = (uint32_t)len;
	r->c.at += len;
	return 0;
}

static int set_expr(struct run *r, enum cfi_how how)
{
	uint64_t column = eh_take_leb128(&r->c, false);
	struct cfi_place *p = place_of(r, &r->now, column), other = {0};

	p = p ? p : &other;
	*p = (struct cfi_place){.how = how};
	return take_expr(r, &p->expr);
}

/* Reports the state up to here; the next one holds from here on. */
static int advance(struct run *r, uint64_t to)
{
	int err = 0;

	if (r->in_cie || to < r->at)
		return -EBADMSG;
	to = MIN(to, r->end);
	if (to > r->at)
		err = r->fn(r->ctx, r->at, to, &r->now);
	r->at = to;
	return err;
}

static int advance_by(struct run *r, uint64_t n)
{
	uint64_t delta, to;

	if (__builtin_mul_overflow(n, r->cie->code_align, &delta) ||
	    __builtin_add_overflow(r->at, delta, &to))
		return -EBADMSG;
	return advance(r, to);
}

static int define_cfa(struct run *r, uint64_t reg, int64_t offset)
{
	r->now.by_expr = false;
	r->now.reg = reg;
	r->now.offset = offset;
	return bounded(offset);
}

static int remember(struct run *r)
{
	if (r->depth == MAX_REMEMBERED)
		return -EBADMSG;
	r->stack[r->depth++] = r->now;
	return 0;
}

static int recall(struct run *r)
{
	if (r->depth == 0)
		return -EBADMSG;
	r->now = r->stack[--r->depth];
	return 0;
}

static int run_cfa_op(struct run *r, uint8_t op)
{
	uint64_t reg = r->now.reg;
	int64_t offset = r->now.offset;
	int err = 0;

	if (op == OP_DEF_CFA_EXPRESSION) {
		r->now.by_expr = true;
		return take_expr(r, &r->now.expr);
	}
	/* these change one part of a register + offset rule, which must exist */
	if (op != OP_DEF_CFA && op != OP_DEF_CFA_SF && r->now.by_expr)
		return -EBADMSG;
	if (op == OP_DEF_CFA || op == OP_DEF_CFA_SF || op == OP_DEF_CFA_REGISTER)
		reg = eh_take_leb128(&r->c, false);
	if (op == OP_DEF_CFA || op == OP_DEF_CFA_OFFSET)
		offset = (int64_t)eh_take_leb128(&r->c, false);
	else if (op == OP_DEF_CFA_SF || op == OP_DEF_CFA_OFFSET_SF)
		err = factored(r, (int64_t)eh_take_leb128(&r->c, true), &offset);
	return err ? err : define_cfa(r, reg, offset);
}

static int run_reg_op(struct run *r, uint8_t op)
{
	uint64_t column;

	if (op == OP_EXPRESSION || op == OP_VAL_EXPRESSION)
		return set_expr(r, op == OP_EXPRESSION ? CFI_EXPR : CFI_VAL_EXPR);
	column = eh_take_leb128(&r->c, false);
	switch (op) {
	case OP_OFFSET_EXTENDED:
		return set_offset(r, column, CFI_OFFSET, (int64_t)eh_take_leb128(&r->c, false));
	case OP_OFFSET_EXTENDED_SF:
		return set_offset(r, column, CFI_OFFSET, (int64_t)eh_take_leb128(&r->c, true));
	case OP_GNU_NEGATIVE_OFFSET:
		/* the operand has the opposite sign; no current compiler emits it */
		eh_take_leb128(&r->c, false);
		return set_place(r, column, CFI_OTHER, 0);
	case OP_VAL_OFFSET:
		return set_offset(r, column, CFI_VAL_OFFSET, (int64_t)eh_take_leb128(&r->c, false));
	case OP_VAL_OFFSET_SF:
		return set_offset(r, column, CFI_VAL_OFFSET, (int64_t)eh_take_leb128(&r->c, true));
	case OP_RESTORE_EXTENDED:
		return restore(r, column);
	case OP_UNDEFINED:
		return set_place(r, column, CFI_UNDEFINED, 0);
	case OP_SAME_VALUE:
		return set_place(r, column, CFI_UNSAID, 0);
	case OP_REGISTER:
		return set_place(r, column, CFI_OTHER, (int64_t)eh_take_leb128(&r->c, false));
	default:
		return -EBADMSG;
	}
}

static int run_op(struct run *r)
{
	uint8_t op = eh_take_u8(&r->c), low = op & 0x3f;

	switch (op & 0xc0) {
	case OP_ADVANCE:
		return advance_by(r, low);
	case OP_OFFSET:
		return set_offset(r, low, CFI_OFFSET, (int64_t)eh_take_leb128(&r->c, false));
	case OP_RESTORE:
		return restore(r, low);
	default:
		break;
	}
	switch (op) {
	case OP_NOP:
		return 0;
	case OP_GNU_ARGS_SIZE:
		eh_take_leb128(&r->c, false);
		return 0;
	case OP_SET_LOC:
		return advance(r, eh_take_address(&r->c, r->cie->encoding));
	case OP_ADVANCE1:
		return advance_by(r, eh_take_u8(&r->c));
	case OP_ADVANCE2:
		return advance_by(r, eh_take_format(&r->c, DW_EH_PE_UDATA2));
	case OP_ADVANCE4:
		return advance_by(r, eh_take_format(&r->c, DW_EH_PE_UDATA4));
	case OP_REMEMBER_STATE:
		return remember(r);
	case OP_RESTORE_STATE:
		return recall(r);
	case OP_DEF_CFA:
	case OP_DEF_CFA_SF:
	case OP_DEF_CFA_REGISTER:
	case OP_DEF_CFA_OFFSET:
	case OP_DEF_CFA_OFFSET_SF:
	case OP_DEF_CFA_EXPRESSION:
		return run_cfa_op(r, op);
	default:
		return run_reg_op(r, op);
	}
}

static int run_ops(struct run *r, uint64_t at, uint64_t end)
{
	int err = 0;

	r->c.at = at;
	r->c.end = end;
	while (!err && r->c.at < r->c.end) {
		err = run_op(r);
		if (!err && r->c.err)
			err = -EBADMSG;
	}
	return err;
}

int cfi__run(const struct eh_cursor *section, const struct eh_cie *cie, const struct eh_fde *fde,
	     cfi_row_fn fn, void *ctx)
{
	struct run r;
	int err;

	if (cie->end - cie->body > MAX_CIE_BYTES)
		return -EBADMSG;
	/* leaves out the array of remembered states: this runs for each function of a file */
	memset(&r.now, 0, sizeof(r.now));
	memset(&r.first, 0, sizeof(r.first));
	r.c = *section;
	r.cie = cie;
	r.at = fde->start;
	r.end = fde->start + fde->len;
	r.depth = 0;
	r.fn = fn;
	r.ctx = ctx;
	r.in_cie = true;
	err = run_ops(&r, cie->body, cie->end);
	if (err)
		return err;
	r.in_cie = false;
	r.first = r.now;
	err = run_ops(&r, fde->body, fde->end);
	return err ? err : advance(&r, r.end);
}
