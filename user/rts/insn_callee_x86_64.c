/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * insn for x86-64: the target of a call through a register, by where the register was set. Without
 * optimisation GHC loads the address of a safe call's function at the start of the block and keeps
 * it in a register that suspendThread preserves.
 */
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "insn_x86_64_priv.h"

#define REGS 16

/* What a register holds. */
struct held {
	enum insn_call_kind kind; /* INSN_CALL_DIRECT, INSN_CALL_SLOT; 0: unknown */
	uint64_t value;
};

/* Number of the general-purpose register, rax to r15, that `reg` is or is part of; REGS: another
 * register. */
static unsigned int number_of(unsigned int reg)
{
	static const uint16_t names[REGS][5] = {
		{X86_REG_RAX, X86_REG_EAX, X86_REG_AX, X86_REG_AL, X86_REG_AH},
		{X86_REG_RCX, X86_REG_ECX, X86_REG_CX, X86_REG_CL, X86_REG_CH},
		{X86_REG_RDX, X86_REG_EDX, X86_REG_DX, X86_REG_DL, X86_REG_DH},
		{X86_REG_RBX, X86_REG_EBX, X86_REG_BX, X86_REG_BL, X86_REG_BH},
		{X86_REG_RSP, X86_REG_ESP, X86_REG_SP, X86_REG_SPL},
		{X86_REG_RBP, X86_REG_EBP, X86_REG_BP, X86_REG_BPL},
		{X86_REG_RSI, X86_REG_ESI, X86_REG_SI, X86_REG_SIL},
		{X86_REG_RDI, X86_REG_EDI, X86_REG_DI, X86_REG_DIL},
		{X86_REG_R8, X86_REG_R8D, X86_REG_R8W, X86_REG_R8B},
		{X86_REG_R9, X86_REG_R9D, X86_REG_R9W, X86_REG_R9B},
		{X86_REG_R10, X86_REG_R10D, X86_REG_R10W, X86_REG_R10B},
		{X86_REG_R11, X86_REG_R11D, X86_REG_R11W, X86_REG_R11B},
		{X86_REG_R12, X86_REG_R12D, X86_REG_R12W, X86_REG_R12B},
		{X86_REG_R13, X86_REG_R13D, X86_REG_R13W, X86_REG_R13B},
		{X86_REG_R14, X86_REG_R14D, X86_REG_R14W, X86_REG_R14B},
		{X86_REG_R15, X86_REG_R15D, X86_REG_R15W, X86_REG_R15B},
	};

	for (unsigned int n = 0; reg != X86_REG_INVALID && n < REGS; n++)
		for (size_t k = 0; k < ARRAY_SIZE(names[n]); k++)
			if (names[n][k] == reg)
				return n;
	return REGS;
}

/* True for registers that calls preserve in the System V ABI: rbx, rsp, rbp, r12 to r15. */
static bool is_kept(unsigned int n)
{
	return (n >= 3 && n <= 5) || n >= 12;
}

/* The value that an instruction puts into its first operand. */
static struct held put_by(const cs_insn *i, const struct held regs[REGS])
{
	const cs_x86 *x = &i->detail->x86;
	const cs_x86_op *src = &x->operands[1];
	uint64_t relative = i->address + i->size + (uint64_t)src->mem.disp;

	if (x->op_count != 2 ||
	    (i->id != X86_INS_MOV && i->id != X86_INS_LEA && i->id != X86_INS_MOVABS))
		return (struct held){0};
	if (src->type == X86_OP_IMM)
		return (struct held){INSN_CALL_DIRECT, (uint64_t)src->imm};
	if (src->type == X86_OP_REG && number_of(src->reg) < REGS && src->size == 8)
		return regs[number_of(src->reg)];
	if (src->type != X86_OP_MEM || src->mem.base != X86_REG_RIP ||
	    src->mem.index != X86_REG_INVALID || x->operands[0].size != 8)
		return (struct held){0};
	return (struct held){i->id == X86_INS_LEA ? INSN_CALL_DIRECT : INSN_CALL_SLOT, relative};
}

/* Tracks one instruction. False: control flow cannot be followed. */
static bool step(struct insn *insn, const cs_insn *i, struct held regs[REGS])
{
	const cs_x86 *x = &i->detail->x86;
	unsigned int n;
	cs_regs read, written;
	uint8_t n_read, n_written;
	struct held held = {0};

	if (insn_x86__is_call(insn, i)) {
		for (n = 0; n < REGS; n++)
			if (!is_kept(n))
				regs[n] = held;
		return true;
	}
	if (insn_x86__ends_block(insn, i) ||
	    cs_regs_access(insn->handle, i, read, &n_read, written, &n_written) != CS_ERR_OK)
		return false;
	held = put_by(i, regs);
	for (uint8_t k = 0; k < n_written; k++) {
		n = number_of(written[k]);
		if (n < REGS)
			regs[n] = (struct held){0};
	}
	n = x->op_count && x->operands[0].type == X86_OP_REG ? number_of(x->operands[0].reg) : REGS;
	if (held.kind && n < REGS)
		regs[n] = held;
	return true;
}

/* Decodes from `code` up to the call, which must be hit exactly; returns what `reg` holds there. */
static struct held look(struct insn *insn, const uint8_t *code, size_t len, uint64_t addr,
			unsigned int reg)
{
	struct held regs[REGS] = {0};
	size_t at = 0;

	while (at < len) {
		const cs_insn *i = insn_x86__decode(insn, code + at, len - at, addr + at);

		if (!i || !step(insn, i, regs))
			return (struct held){0};
		at += i->size;
	}
	return regs[reg];
}

int insn__set_before(struct insn *insn, const uint8_t *code, size_t len, struct insn_call *call)
{
	unsigned int reg = number_of(call->reg);
	size_t window = MIN(len, (size_t)INSN_SITE_WINDOW);

	if (call->kind != INSN_CALL_REGISTER || reg == REGS)
		return -ENOENT;
	/* start ever farther back: the nearest start that yields a value is where the register
	 * is set */
	for (size_t back = 1; back <= window && back <= call->at; back++) {
		struct held held = look(insn, code + len - back, back, call->at - back, reg);

		if (!held.kind)
			continue;
		call->kind = held.kind;
		call->target = held.value;
		return 0;
	}
	return -ENOENT;
}
