/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * StgRun is the door from C into Haskell code, and schedule() calls it at one place: the return
 * address of that call is a constant of the process, by which the C frames below Haskell code are
 * found (rts/StgCRun.c).
 */
#include <string.h>

#include "base/base.h"
#include "rts_find_priv.h"

/*
 * rts/StgCRun.c reserves RESERVED_C_STACK_BYTES (16384): sub $0x4000,%rsp on the way in, add
 * $0x4000,%rsp on the way out; the jump into Haskell between them is jmp *%rax.
 */
static const uint8_t sub_rsp[] = {0x48, 0x81, 0xec, 0x00, 0x40, 0x00, 0x00};
static const uint8_t add_rsp[] = {0x48, 0x81, 0xc4, 0x00, 0x40, 0x00, 0x00};
static const uint8_t jmp_rax[] = {0xff, 0xe0};

#define STGRUN_MAX 256

static bool is_stgrun(const uint8_t *code, size_t len)
{
	const uint8_t *in, *jump;

	if (len > STGRUN_MAX)
		return false;
	in = memmem(code, len, sub_rsp, sizeof(sub_rsp));
	if (!in)
		return false;
	jump = memmem(in, len - (size_t)(in - code), jmp_rax, sizeof(jmp_rax));
	return jump && memmem(jump, len - (size_t)(jump - code), add_rsp, sizeof(add_rsp));
}

static void by_code(struct rts *rts, const struct elf_fde *fdes, size_t n)
{
	uint64_t found = 0;

	for (size_t i = 0; i < n; i++) {
		size_t len = fdes[i].end - fdes[i].start;
		const uint8_t *code = elf__at(rts->image->elf, fdes[i].start, len);

		if (!code || !is_stgrun(code, len))
			continue;
		if (found)
			return;
		found = fdes[i].start;
	}
	if (found) {
		rts->stgrun.addr = image__addr(rts->image, found);
		rts->stgrun.found = FOUND_CALLSITES;
	}
}

/* The one direct call of `target` in code that has unwind rows; 0 if there is none or several. */
static uint64_t only_call(const struct elf_file *elf, const struct elf_fde *fdes, size_t n,
			  uint64_t target)
{
	uint64_t ret = 0;

	for (size_t i = 0; i < n; i++) {
		size_t len = fdes[i].end - fdes[i].start;
		const uint8_t *code = elf__at(elf, fdes[i].start, len);

		for (size_t at = 0; code && at + 5 <= len; at++) {
			uint64_t after = fdes[i].start + at + 5;
			int32_t rel;

			if (code[at] != 0xe8)
				continue;
			memcpy(&rel, code + at + 1, sizeof(rel));
			if (after + (uint64_t)(int64_t)rel != target)
				continue;
			if (ret && ret != after)
				return 0;
			ret = after;
		}
	}
	return ret;
}

void rts_stgrun__find(struct rts *rts)
{
	const struct elf_fde *fdes;
	uint64_t ret;
	size_t n;

	if (elf__fdes(rts->image->elf, &fdes, &n) < 0 || n == 0)
		return;
	if (!rts->stgrun.addr)
		by_code(rts, fdes, n);
	if (!rts->stgrun.addr)
		return;
	ret = only_call(rts->image->elf, fdes, n, rts->stgrun.addr - rts->image->bias);
	if (ret)
		rts->stgrun_ret = image__addr(rts->image, ret);
}
