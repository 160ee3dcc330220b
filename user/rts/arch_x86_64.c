/* SPDX-License-Identifier: GPL-2.0-or-later */
/* x86-64: rbp is Sp, r13 is BaseReg (rts/include/stg/MachRegs.h, 8.10 to 9.14). */
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "arch_priv.h"

#define OP_CALL 0xe8
#define OP_JMP	0xe9

/* ── who refers to what ──────────────────────────────────────────────────────────────────── */

/* The kind of branch whose four-byte operand follows code[at]; 0: none. */
static unsigned int branch_at(const uint8_t *code, size_t at)
{
	if (code[at] == OP_CALL)
		return RTS_ARCH_CALL;
	if (code[at] == OP_JMP)
		return RTS_ARCH_JUMP;
	/* 0f 8x: jcc rel32 */
	return (code[at] & 0xf0) == 0x80 && at > 0 && code[at - 1] == 0x0f ? RTS_ARCH_COND : 0;
}

void rts_arch__branches(const uint8_t *code, size_t len, uint64_t addr, unsigned int kinds,
			rts_arch_branch_fn fn, void *ctx)
{
	for (size_t at = 0; at + 5 <= len; at++) {
		uint64_t next = addr + at + 5;
		int32_t rel;

		if (!(branch_at(code, at) & kinds))
			continue;
		memcpy(&rel, code + at + 1, sizeof(rel));
		if (!fn(ctx, next + (uint64_t)(int64_t)rel, next))
			return;
	}
}

/* mov $imm32,%edi (bf), or lea disp32(%rip),%rdi (48 8d 3d). */
void rts_arch__loads(const uint8_t *code, size_t len, uint64_t addr, rts_arch_load_fn fn, void *ctx)
{
	static const uint8_t lea[] = {0x48, 0x8d, 0x3d};

	for (size_t at = 0; at + 5 <= len; at++) {
		uint64_t target;

		if (code[at] == 0xbf) {
			uint32_t imm;

			memcpy(&imm, code + at + 1, sizeof(imm));
			target = imm;
		} else if (at + 7 <= len && memcmp(code + at, lea, sizeof(lea)) == 0) {
			int32_t rel;

			memcpy(&rel, code + at + 3, sizeof(rel));
			target = addr + at + 7 + (uint64_t)(int64_t)rel;
		} else {
			continue;
		}
		if (target && !fn(ctx, target))
			return;
	}
}

/* lea disp32(%rip),%r64: REX.W, 8d, a modrm of mod 00 and rm 101. */
static bool is_lea(const uint8_t *code, size_t operand)
{
	return operand >= 3 && (code[operand - 3] & 0xfb) == 0x48 && code[operand - 2] == 0x8d &&
	       (code[operand - 1] & 0xc7) == 0x05;
}

void rts_arch__addresses(const uint8_t *code, size_t len, uint64_t addr, uint64_t lo, uint64_t hi,
			 rts_arch_load_fn fn, void *ctx)
{
	for (size_t at = 1; at + RTS_ARCH_OPERAND <= len; at++) {
		uint64_t targets[2];

		rts_arch__operand(code + at, addr + at, targets);
		if (targets[0] >= lo && targets[0] <= hi && !fn(ctx, targets[0]))
			return;
		if (targets[1] >= lo && targets[1] <= hi && is_lea(code, at) &&
		    !fn(ctx, targets[1]))
			return;
	}
}

/* Counts 8-byte xchg, and lock cmpxchg (f0, REX or none, 0f b1). */
size_t rts_arch__n_exchanges(const uint8_t *code, size_t len)
{
	size_t n = 0;

	for (size_t at = 0; at + 4 <= len; at++) {
		const uint8_t *op = code + at + 1;

		/* 8-byte xchg %reg,mem */
		n += (code[at] & 0xf8) == 0x48 && op[0] == 0x87 && op[1] < 0xc0;
		if (code[at] != 0xf0)
			continue;
		/* lock cmpxchg */
		op += (*op & 0xf0) == 0x40;
		n += op[0] == 0x0f && op + 1 < code + len && op[1] == 0xb1;
	}
	return n;
}

/* The operand is absolute, or relative to its own end. */
void rts_arch__operand(const uint8_t *code, uint64_t addr, uint64_t ret_targets[2])
{
	int32_t value;

	memcpy(&value, code, sizeof(value));
	ret_targets[0] = (uint32_t)value;
	ret_targets[1] = addr + sizeof(value) + (uint64_t)(int64_t)value;
}

size_t rts_arch__find_operand(const uint8_t *code, size_t len, uint64_t addr, uint64_t target,
			      size_t from)
{
	for (size_t at = from; at + RTS_ARCH_OPERAND <= len; at++) {
		uint32_t value;

		memcpy(&value, code + at, sizeof(value));
		if (value == (uint32_t)target ||
		    addr + at + 4 + (uint64_t)(int64_t)(int32_t)value == target)
			return at;
	}
	return len;
}

/* ── functions of the runtime ────────────────────────────────────────────────────────────── */

/* mov %r13,%rdi. Rare: 750 in 90 MB of code. */
static const uint8_t safe_call[RTS_ARCH_SAFE_CALL] = {0x4c, 0x89, 0xef};

const uint8_t *rts_arch__find_safe_call(const uint8_t *p, const uint8_t *end)
{
#ifdef __SSE2__
	const __m128i b0 = _mm_set1_epi8((char)safe_call[0]);
	const __m128i b2 = _mm_set1_epi8((char)safe_call[2]);

	for (; end - p >= 16 + 2; p += 16) {
		__m128i first = _mm_cmpeq_epi8(_mm_loadu_si128((const void *)p), b0);
		__m128i third = _mm_cmpeq_epi8(_mm_loadu_si128((const void *)(p + 2)), b2);
		unsigned int hits = (unsigned int)_mm_movemask_epi8(_mm_and_si128(first, third));

		for (; hits; hits &= hits - 1) {
			const uint8_t *at = p + __builtin_ctz(hits);

			if (at[1] == safe_call[1])
				return at;
		}
	}
#endif
	p = memmem(p, (size_t)(end - p), safe_call, sizeof(safe_call));
	return p ? p : end;
}

/*
 * StgRun reserves RESERVED_C_STACK_BYTES (16384): sub $0x4000,%rsp on the way in, add $0x4000,%rsp
 * on the way out; the jump into Haskell between them is jmp *%rax.
 */
size_t rts_arch__stgreturn(const uint8_t *code, size_t len)
{
	static const uint8_t sub_rsp[] = {0x48, 0x81, 0xec, 0x00, 0x40, 0x00, 0x00};
	static const uint8_t add_rsp[] = {0x48, 0x81, 0xc4, 0x00, 0x40, 0x00, 0x00};
	static const uint8_t jmp_rax[] = {0xff, 0xe0};
	const uint8_t *in, *jump;

	in = memmem(code, len, sub_rsp, sizeof(sub_rsp));
	if (!in)
		return 0;
	jump = memmem(in, len - (size_t)(in - code), jmp_rax, sizeof(jmp_rax));
	if (!jump || !memmem(jump, len - (size_t)(jump - code), add_rsp, sizeof(add_rsp)))
		return 0;
	return (size_t)(jump - code) + sizeof(jmp_rax);
}

/* push %rbx; mov %rdi,%rbx; call CLOCK; mov %rax,FIELD(%rbx); pop %rbx; ret */
size_t rts_arch__note(const uint8_t *code, size_t len, uint64_t addr,
		      struct rts_arch_note *ret_note)
{
	static const uint8_t head[] = {0x53, 0x48, 0x89, 0xfb, OP_CALL};
	static const uint8_t store8[] = {0x48, 0x89, 0x43}, store32[] = {0x48, 0x89, 0x83};
	static const uint8_t tail[] = {0x5b, 0xc3};
	size_t at = sizeof(head) + 4;
	struct rts_arch_note note;
	int32_t rel;

	if (len < at + 7 + sizeof(tail) || memcmp(code, head, sizeof(head)) != 0)
		return 0;
	memcpy(&rel, code + sizeof(head), sizeof(rel));
	note.clock = addr + at + (uint64_t)(int64_t)rel;
	if (memcmp(code + at, store8, sizeof(store8)) == 0) {
		note.field = code[at + 3];
		at += 4;
	} else if (memcmp(code + at, store32, sizeof(store32)) == 0) {
		memcpy(&note.field, code + at + 3, sizeof(note.field));
		at += 7;
	} else {
		return 0;
	}
	if (memcmp(code + at, tail, sizeof(tail)) != 0)
		return 0;
	*ret_note = note;
	return at + sizeof(tail);
}

/* addl $1,disp32(%rip) */
void rts_arch__counts(const uint8_t *code, size_t len, uint64_t addr, rts_arch_load_fn fn,
		      void *ctx)
{
	static const uint8_t add[] = {0x83, 0x05};
	const size_t size = sizeof(add) + 4 + 1;

	for (size_t at = 0; at + size <= len; at++) {
		int32_t rel;

		if (memcmp(code + at, add, sizeof(add)) != 0 || code[at + size - 1] != 1)
			continue;
		memcpy(&rel, code + at + sizeof(add), sizeof(rel));
		if (!fn(ctx, addr + at + size + (uint64_t)(int64_t)rel))
			return;
	}
}

/* mov %rax,disp32(REG), for any REG but rsp, which needs another encoding */
bool rts_arch__stores_result(const uint8_t *code, size_t len, uint32_t field)
{
	for (size_t at = 0; at + 7 <= len; at++) {
		uint32_t disp;

		memcpy(&disp, code + at + 3, sizeof(disp));
		if ((code[at] == 0x48 || code[at] == 0x49) && code[at + 1] == 0x89 &&
		    (code[at + 2] & 0xf8) == 0x80 && disp == field)
			return true;
	}
	return false;
}
