/* SPDX-License-Identifier: GPL-2.0-or-later */
/* insn for x86-64: places to probe and calls, with capstone. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "insn_x86_64_priv.h"

#define CALL_REL32	  5 /* bytes: e8 rel32 */
#define MAX_INSNS_TO_CALL 64
#define PROBE_TEXT	  sizeof(((struct insn_choice *)0)->text)

int insn__new(struct insn **ret_insn)
{
	struct insn *insn = calloc(1, sizeof(*insn));

	if (!insn)
		return -ENOMEM;
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &insn->handle) != CS_ERR_OK)
		goto fail;
	insn->open = true;
	if (cs_option(insn->handle, CS_OPT_DETAIL, CS_OPT_ON) != CS_ERR_OK)
		goto fail;
	insn->one = cs_malloc(insn->handle);
	if (!insn->one)
		goto fail;
	*ret_insn = insn;
	return 0;
fail:
	insn__free(insn);
	return -ENOMEM;
}

void insn__free(struct insn *insn)
{
	if (!insn)
		return;
	if (insn->one)
		cs_free(insn->one, 1);
	if (insn->open)
		cs_close(&insn->handle);
	free(insn);
}

const cs_insn *insn_x86__decode(struct insn *insn, const uint8_t *code, size_t len, uint64_t addr)
{
	return cs_disasm_iter(insn->handle, &code, &len, &addr, insn->one) ? insn->one : NULL;
}

static bool in_group(const struct insn *insn, const cs_insn *i, unsigned int group)
{
	return cs_insn_group(insn->handle, i, group);
}

bool insn_x86__is_call(const struct insn *insn, const cs_insn *i)
{
	return in_group(insn, i, X86_GRP_CALL) && i->id == X86_INS_CALL;
}

bool insn_x86__ends_block(const struct insn *insn, const cs_insn *i)
{
	switch (i->id) {
	case X86_INS_UD2:
	case X86_INS_HLT:
	case X86_INS_SYSCALL:
	case X86_INS_SYSENTER:
	case X86_INS_LOOP:
	case X86_INS_LOOPE:
	case X86_INS_LOOPNE:
	case X86_INS_XBEGIN:
	case X86_INS_XABORT:
		return true;
	default:
		return in_group(insn, i, X86_GRP_JUMP) || in_group(insn, i, X86_GRP_CALL) ||
		       in_group(insn, i, X86_GRP_RET) || in_group(insn, i, X86_GRP_IRET) ||
		       in_group(insn, i, X86_GRP_INT);
	}
}

/* ── where to probe ──────────────────────────────────────────────────────────────────────── */

/* By the bytes, as the kernel does it: with any prefix other than push's REX.B it is another
 * instruction. */
static bool is_emulated(const uint8_t *code, size_t size)
{
	if (size == 1)
		return (code[0] >= 0x50 && code[0] <= 0x57) || code[0] == 0x90;
	if (size == 2)
		return (code[0] == 0x41 && code[1] >= 0x50 && code[1] <= 0x57) || /* push %r8… */
		       code[0] == 0xeb || (code[0] >= 0x70 && code[0] <= 0x7f);
	if (size == 5)
		return code[0] == 0xe8 || code[0] == 0xe9;
	if (size == 6)
		return code[0] == 0x0f && code[1] >= 0x80 && code[1] <= 0x8f;
	return false;
}

/* Target of a relative jump or call; false if it has none. */
static bool relative_target(const cs_insn *i, uint64_t *ret_target)
{
	const cs_x86 *x86 = &i->detail->x86;

	if (x86->op_count != 1 || x86->operands[0].type != X86_OP_IMM)
		return false;
	*ret_target = (uint64_t)x86->operands[0].imm;
	return true;
}

/*
 * The lowest offset after the start that a jump in the code goes back to, or `limit` if none: from
 * there on an instruction may run more than once per call of the function.
 */
static size_t first_jumped_to(struct insn *insn, const uint8_t *code, size_t len, uint64_t addr,
			      size_t limit)
{
	size_t at = 0;

	while (at < len) {
		const cs_insn *i = insn_x86__decode(insn, code + at, len - at, addr + at);
		uint64_t target;

		if (!i)
			break;
		if (in_group(insn, i, X86_GRP_JUMP) && relative_target(i, &target) &&
		    target > addr && target - addr < limit)
			limit = (size_t)(target - addr);
		at += i->size;
	}
	return limit;
}

/* Tracks how an instruction moves rsp: adds what it pushes to *stack. False if that is unknown. */
static bool follow_stack(struct insn *insn, const cs_insn *i, uint32_t *stack)
{
	const cs_x86 *x86 = &i->detail->x86;
	const cs_x86_op *op = x86->operands;
	cs_regs read, written;
	uint8_t n_read = 0, n_written = 0, r;
	int64_t delta;

	if (cs_regs_access(insn->handle, i, read, &n_read, written, &n_written) != CS_ERR_OK)
		return false;
	for (r = 0; r < n_written; r++) {
		if (written[r] == X86_REG_RSP || written[r] == X86_REG_ESP)
			break;
	}
	if (r == n_written)
		return true;

	if ((i->id == X86_INS_SUB || i->id == X86_INS_ADD) && x86->op_count == 2 &&
	    op[0].type == X86_OP_REG && op[0].reg == X86_REG_RSP && op[1].type == X86_OP_IMM)
		delta = i->id == X86_INS_SUB ? op[1].imm : -op[1].imm;
	else if (i->id == X86_INS_PUSH && x86->op_count == 1 && op[0].size == 8)
		delta = 8;
	else if (i->id == X86_INS_POP && x86->op_count == 1 && op[0].type == X86_OP_REG &&
		 op[0].size == 8 && op[0].reg != X86_REG_RSP)
		delta = -8;
	else
		return false;
	if (delta < -(int64_t)*stack || delta > (1 << 20) - (int64_t)*stack)
		return false;
	*stack = (uint32_t)((int64_t)*stack + delta);
	return true;
}

static bool writes_argument(struct insn *insn, const cs_insn *i)
{
	static const x86_reg args[] = {
		X86_REG_RDI, X86_REG_EDI, X86_REG_DI,  X86_REG_DIL, X86_REG_RSI, X86_REG_ESI,
		X86_REG_SI,  X86_REG_SIL, X86_REG_RDX, X86_REG_EDX, X86_REG_DX,	 X86_REG_DL,
		X86_REG_DH,  X86_REG_RCX, X86_REG_ECX, X86_REG_CX,  X86_REG_CL,	 X86_REG_CH,
	};
	cs_regs read, written;
	uint8_t n_read = 0, n_written = 0, r;
	size_t a;

	if (cs_regs_access(insn->handle, i, read, &n_read, written, &n_written) != CS_ERR_OK)
		return true;
	for (r = 0; r < n_written; r++) {
		for (a = 0; a < ARRAY_SIZE(args); a++) {
			if (written[r] == args[a])
				return true;
		}
	}
	return false;
}

/* AT&T syntax, with the mnemonics that objdump prints. */
static void print(struct insn *insn, const uint8_t *code, size_t len, uint64_t addr,
		  char out[PROBE_TEXT])
{
	static const char *const plain[] = {"push", "pop", "call", "jmp", "ret", "leave"};
	const char *mnemonic;
	const cs_insn *i;
	size_t m, n;

	cs_option(insn->handle, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT);
	i = insn_x86__decode(insn, code, len, addr);
	cs_option(insn->handle, CS_OPT_SYNTAX, CS_OPT_SYNTAX_INTEL);
	if (!i) {
		snprintf(out, PROBE_TEXT, "(bad)");
		return;
	}
	mnemonic = i->mnemonic;
	for (m = 0; m < ARRAY_SIZE(plain); m++) {
		n = strlen(plain[m]);
		if (strncmp(mnemonic, plain[m], n) == 0 && strcmp(mnemonic + n, "q") == 0)
			mnemonic = plain[m];
	}
	/* Longer texts are truncated. */
	snprintf(out, PROBE_TEXT, "%.11s%s%.35s", mnemonic, i->op_str[0] ? " " : "", i->op_str);
}

/* endbr64 is a nop; older capstones do not know it. */
static size_t endbr64_size(const uint8_t *code, size_t len)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};

	return len >= sizeof(endbr64) && memcmp(code, endbr64, sizeof(endbr64)) == 0
		       ? sizeof(endbr64)
		       : 0;
}

int insn__choose_probe(struct insn *insn, const uint8_t *code, size_t len, uint64_t addr,
		       struct insn_choice *ret_choice)
{
	struct insn_choice choice = {.args_intact = true};
	bool args_intact = true, found = false;
	uint32_t stack = 0;
	size_t at, limit;

	len = MIN(len, (size_t)INSN_PROBE_CODE);
	at = endbr64_size(code, len);
	if (len == 0 || (at == 0 && !insn_x86__decode(insn, code, len, addr)))
		return -EILSEQ;
	limit = first_jumped_to(insn, code, len, addr, MIN(len, (size_t)INSN_PROBE_WINDOW));

	while (at < limit && !found) {
		const cs_insn *i = insn_x86__decode(insn, code + at, len - at, addr + at);

		if (!i)
			break;
		if (is_emulated(code + at, i->size)) {
			choice.offset = at;
			choice.emulated = true;
			choice.stack = stack;
			choice.args_intact = args_intact;
			found = true;
		} else {
			if (insn_x86__ends_block(insn, i) || !follow_stack(insn, i, &stack))
				break;
			args_intact = args_intact && !writes_argument(insn, i);
			at += i->size;
		}
	}
	if (choice.offset == 0 && endbr64_size(code, len) > 0 && !found)
		snprintf(choice.text, sizeof(choice.text), "endbr64");
	else
		print(insn, code + choice.offset, len - choice.offset, addr + choice.offset,
		      choice.text);
	*ret_choice = choice;
	return 0;
}

/* ── what a function does ────────────────────────────────────────────────────────────────── */

static void describe_seen(const struct insn *insn, const cs_insn *i, struct insn_seen *seen)
{
	const cs_x86 *x86 = &i->detail->x86;
	bool flow = in_group(insn, i, X86_GRP_JUMP) || insn_x86__is_call(insn, i);

	memset(seen, 0, sizeof(*seen));
	seen->call = insn_x86__is_call(insn, i);
	seen->branch = flow && !seen->call;
	if (flow) {
		relative_target(i, &seen->target);
		return;
	}
	for (uint8_t n = 0; n < x86->op_count; n++) {
		const cs_x86_op *op = &x86->operands[n];

		if (op->type == X86_OP_IMM && i->id == X86_INS_MOV)
			seen->refers = (uint64_t)op->imm;
		if (op->type != X86_OP_MEM)
			continue;
		if (op->mem.base == X86_REG_RIP) {
			seen->refers = i->address + i->size + (uint64_t)op->mem.disp;
		} else if (op->mem.base != X86_REG_INVALID) {
			seen->has_disp = true;
			seen->disp = (uint32_t)op->mem.disp;
		}
	}
}

void insn__each(struct insn *insn, const uint8_t *code, size_t len, uint64_t addr,
		bool (*fn)(void *ctx, const struct insn_seen *seen), void *ctx)
{
	size_t at = 0;

	while (at < len) {
		size_t skip = endbr64_size(code + at, len - at);
		struct insn_seen seen;
		const cs_insn *i;

		if (skip > 0) {
			at += skip;
			continue;
		}
		i = insn_x86__decode(insn, code + at, len - at, addr + at);
		if (!i)
			return;
		describe_seen(insn, i, &seen);
		if (!fn(ctx, &seen))
			return;
		at += i->size;
	}
}

/* ── calls ───────────────────────────────────────────────────────────────────────────────── */

void insn_x86__describe_call(const cs_insn *i, struct insn_call *call)
{
	const cs_x86 *x86 = &i->detail->x86;
	const cs_x86_op *op = x86->operands;

	memset(call, 0, sizeof(*call));
	call->at = i->address;
	call->next = i->address + i->size;
	call->kind = INSN_CALL_REGISTER;
	if (x86->op_count != 1)
		return;
	if (op->type == X86_OP_IMM) {
		call->kind = INSN_CALL_DIRECT;
		call->target = (uint64_t)op->imm;
	} else if (op->type == X86_OP_REG) {
		call->reg = op->reg;
	} else if (op->type == X86_OP_MEM && op->mem.segment == X86_REG_INVALID &&
		   op->mem.index == X86_REG_INVALID) {
		if (op->mem.base == X86_REG_RIP) {
			call->kind = INSN_CALL_SLOT;
			call->target = call->next + (uint64_t)op->mem.disp;
		} else if (op->mem.base == X86_REG_INVALID) {
			call->kind = INSN_CALL_SLOT;
			call->target = (uint64_t)op->mem.disp;
		}
	}
}

int insn__call_target(struct insn *insn, const uint8_t *code, size_t len, uint64_t addr,
		      struct insn_call *ret_call)
{
	size_t at = 0;
	int n;

	for (n = 0; n < MAX_INSNS_TO_CALL && at < len; n++) {
		const cs_insn *i;
		size_t skip = endbr64_size(code + at, len - at);

		if (skip > 0) {
			at += skip;
			continue;
		}
		i = insn_x86__decode(insn, code + at, len - at, addr + at);
		if (!i)
			return -ENOENT;
		if (insn_x86__is_call(insn, i)) {
			insn_x86__describe_call(i, ret_call);
			return 0;
		}
		if (insn_x86__ends_block(insn, i))
			return -ENOENT;
		at += i->size;
	}
	return -ENOENT;
}

int insn__find_call_before(struct insn *insn, const uint8_t *code, size_t len, uint64_t ret_addr,
			   struct insn_call *ret_call)
{
	/*
	 * The same bytes may end in calls of several lengths (the displacement of a long one may
	 * look like a short one), so those that compilers emit most are tried first. 5: call rel32;
	 * 6: call *slot(%rip); 7: call *slot; then calls through registers. Three bytes with a
	 * prefix come before two, since the last two bytes would name another register.
	 */
	static const size_t sizes[] = {5, 6, 7, 3, 2, 4, 8};
	size_t s;

	for (s = 0; s < ARRAY_SIZE(sizes); s++) {
		size_t size = sizes[s];
		const cs_insn *i;

		if (size > len || size > ret_addr)
			continue;
		i = insn_x86__decode(insn, code + len - size, size, ret_addr - size);
		if (!i || i->size != size || !insn_x86__is_call(insn, i))
			continue;
		insn_x86__describe_call(i, ret_call);
		return 0;
	}
	return -ENOENT;
}

bool insn__is_straight(struct insn *insn, const uint8_t *code, size_t len, uint64_t addr)
{
	size_t at = 0;

	while (at < len) {
		const cs_insn *i = insn_x86__decode(insn, code + at, len - at, addr + at);

		if (!i || (insn_x86__ends_block(insn, i) && !insn_x86__is_call(insn, i)))
			return false;
		at += i->size;
	}
	return at == len;
}

size_t insn__site_candidate(const uint8_t *code, size_t len, uint64_t ret_addr, size_t back,
			    bool (*is_suspend)(void *ctx, uint64_t target), void *ctx,
			    uint64_t *ret_site)
{
	size_t window = MIN(len, (size_t)INSN_SITE_WINDOW);

	for (back = MAX(back + 1, (size_t)CALL_REL32); back <= window && back <= ret_addr; back++) {
		const uint8_t *p = code + len - back;
		uint64_t next = ret_addr - back + CALL_REL32;
		int32_t rel;

		if (p[0] != 0xe8)
			continue;
		memcpy(&rel, p + 1, sizeof(rel));
		if (!is_suspend(ctx, next + (uint64_t)(int64_t)rel))
			continue;
		*ret_site = next;
		return back;
	}
	return 0;
}
