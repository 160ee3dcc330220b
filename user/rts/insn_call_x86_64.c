/* SPDX-License-Identifier: GPL-2.0-or-later */
/* insn for x86-64: the code of a safe foreign call, as GHC emits it. */
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "insn_x86_64_priv.h"

#define SAFE_CALL_INSNS 96 /* includes the setup of the foreign function's arguments */
#define RELOAD_INSNS	12

/* What is known while a safe call is decoded. */
struct safe_walk {
	struct insn_safe_call call;
	unsigned int calls; /* number seen so far */
	uint32_t since;	    /* number of instructions since the last call */
	bool rdi_is_base, esi_known;
	uint64_t esi;
	unsigned int tso, stack; /* the registers that hold them; 0: not loaded yet */
	bool base_loaded;
};

static bool writes(const cs_insn *i, unsigned int reg64, unsigned int reg32)
{
	const cs_x86_op *op = &i->detail->x86.operands[0];

	if (i->detail->x86.op_count == 0 || op->type != X86_OP_REG || i->id == X86_INS_CMP ||
	    i->id == X86_INS_TEST || i->id == X86_INS_PUSH)
		return false;
	return op->reg == reg64 || op->reg == reg32;
}

/* Tracks the arguments of suspendThread: BaseReg in rdi, and a constant in esi. */
static void track_arguments(const cs_insn *i, struct safe_walk *w)
{
	const cs_x86 *x86 = &i->detail->x86;
	const cs_x86_op *op = x86->operands;

	if (writes(i, X86_REG_RDI, X86_REG_EDI))
		w->rdi_is_base = i->id == X86_INS_MOV && op[1].type == X86_OP_REG &&
				 op[1].reg == X86_REG_R13;
	if (!writes(i, X86_REG_RSI, X86_REG_ESI))
		return;
	w->esi_known = false;
	if (x86->op_count != 2)
		return;
	if (i->id == X86_INS_XOR && op[1].type == X86_OP_REG && op[1].reg == op[0].reg) {
		w->esi = 0;
		w->esi_known = true;
	} else if (i->id == X86_INS_MOV && op[1].type == X86_OP_IMM) {
		w->esi = (uint64_t)op[1].imm;
		w->esi_known = true;
	}
}

/* Matches mov disp(%base),%reg; returns the register, or 0. */
static unsigned int loads_from(const cs_insn *i, unsigned int base, uint32_t *ret_disp)
{
	const cs_x86_op *op = i->detail->x86.operands;

	if (i->id != X86_INS_MOV || i->detail->x86.op_count != 2 || op[0].type != X86_OP_REG ||
	    op[0].size != 8 || op[1].type != X86_OP_MEM || op[1].mem.base != base ||
	    op[1].mem.index != X86_REG_INVALID || op[1].mem.segment != X86_REG_INVALID ||
	    op[1].mem.disp < 0 || op[1].mem.disp > UINT16_MAX)
		return 0;
	*ret_disp = (uint32_t)op[1].mem.disp;
	return op[0].reg;
}

/* Tracks the code after resumeThread. True once Sp has been loaded. */
static bool track_reload(const cs_insn *i, struct safe_walk *w)
{
	const cs_x86_op *op = i->detail->x86.operands;
	uint32_t disp;
	unsigned int reg;

	if (!w->base_loaded) {
		w->base_loaded = i->id == X86_INS_MOV && i->detail->x86.op_count == 2 &&
				 op[0].type == X86_OP_REG && op[0].reg == X86_REG_R13 &&
				 op[1].type == X86_OP_REG && op[1].reg == X86_REG_RAX;
		return false;
	}
	if (!w->tso) {
		w->tso = loads_from(i, X86_REG_R13, &disp);
		if (w->tso)
			w->call.current_tso = disp;
		return false;
	}
	if (!w->stack) {
		w->stack = loads_from(i, w->tso, &disp);
		if (w->stack)
			w->call.stackobj = disp;
		return false;
	}
	reg = loads_from(i, w->stack, &disp);
	if (reg != X86_REG_RBP)
		return false;
	w->call.sp = disp;
	return true;
}

/* False if this call cannot be the next of the three. */
static bool take_call(const cs_insn *i, struct safe_walk *w)
{
	struct insn_call call;

	insn_x86__describe_call(i, &call);
	w->since = 0;
	switch (w->calls++) {
	case 0:
		w->call.suspend = call.target;
		w->call.site = call.next;
		w->call.interruptible = w->esi == 1;
		return call.kind == INSN_CALL_DIRECT && w->rdi_is_base && w->esi_known &&
		       w->esi <= 1;
	case 1:
		w->call.foreign = call;
		return true;
	case 2:
		w->call.resume = call.target;
		return call.kind == INSN_CALL_DIRECT && call.target != w->call.suspend;
	default:
		return false;
	}
}

int insn__safe_call(struct insn *insn, const uint8_t *code, size_t len, uint64_t addr,
		    struct insn_safe_call *ret_call)
{
	struct safe_walk w = {0};
	size_t at = 0;

	ret_call->insns = 0;
	len = MIN(len, (size_t)INSN_SAFE_CALL_WINDOW);
	while (at < len && ret_call->insns < SAFE_CALL_INSNS) {
		const cs_insn *i = insn_x86__decode(insn, code + at, len - at, addr + at);

		ret_call->insns++;
		w.since++;
		if (!i)
			return -ENOENT;
		at += i->size;
		if (insn_x86__is_call(insn, i)) {
			if (!take_call(i, &w))
				return -ENOENT;
		} else if (insn_x86__ends_block(insn, i)) {
			return -ENOENT;
		} else if (w.calls == 0) {
			track_arguments(i, &w);
			if (!w.rdi_is_base)
				return -ENOENT;
		} else if (w.calls == 3) {
			if (w.since > RELOAD_INSNS)
				return -ENOENT;
			if (track_reload(i, &w)) {
				w.call.insns = ret_call->insns;
				*ret_call = w.call;
				return 0;
			}
		}
	}
	return -ENOENT;
}
