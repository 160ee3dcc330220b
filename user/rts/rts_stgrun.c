/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * StgRun is the way from C into Haskell code, and schedule() calls it in one place (rts/StgCRun.c).
 * The return address of that call is constant in a process, and is used to find the C frames below
 * Haskell code.
 */
#include "arch_priv.h"
#include "base/base.h"
#include "rts_find_priv.h"

/* A function longer than this is not StgRun. */
#define STGRUN_MAX 256

static void by_code(struct rts *rts, const struct elf_fde *fdes, size_t n)
{
	uint64_t found = 0;

	for (size_t i = 0; i < n; i++) {
		size_t len = fdes[i].end - fdes[i].start;
		const uint8_t *code = elf__at(rts->image->elf, fdes[i].start, len);

		if (!code || len > STGRUN_MAX || !rts_arch__stgreturn(code, len))
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

static uint64_t stgreturn(const struct elf_file *elf, const struct elf_fde *fdes, size_t n,
			  uint64_t stgrun)
{
	size_t i = elf_fdes__starting_at(fdes, n, stgrun), len, at;
	const uint8_t *code;

	if (i == n)
		return 0;
	len = MIN(fdes[i].end - fdes[i].start, STGRUN_MAX);
	code = elf__at(elf, stgrun, len);
	at = code ? rts_arch__stgreturn(code, len) : 0;
	return at ? stgrun + at : 0;
}

struct calls {
	uint64_t target;
	uint64_t ret; /* return address of the call seen; 0: none yet */
	bool several;
};

static bool on_call(void *ctx, uint64_t target, uint64_t next)
{
	struct calls *c = ctx;

	if (target != c->target)
		return true;
	c->several = c->ret && c->ret != next;
	c->ret = next;
	return !c->several;
}

/* The return address of the only direct call of `target` in code with unwind rows; 0 if none or
 * several. */
static uint64_t only_call(const struct elf_file *elf, const struct elf_fde *fdes, size_t n,
			  uint64_t target)
{
	struct calls c = {.target = target};

	for (size_t i = 0; i < n && !c.several; i++) {
		size_t len = fdes[i].end - fdes[i].start;
		const uint8_t *code = elf__at(elf, fdes[i].start, len);

		if (code)
			rts_arch__branches(code, len, fdes[i].start, RTS_ARCH_CALL, on_call, &c);
	}
	return c.several ? 0 : c.ret;
}

void rts_stgrun__find(struct rts *rts)
{
	const struct elf_fde *fdes;
	uint64_t ret, at;
	size_t n;

	if (elf__fdes(rts->image->elf, &fdes, &n) < 0 || n == 0)
		return;
	if (!rts->stgrun.addr)
		by_code(rts, fdes, n);
	if (!rts->stgrun.addr)
		return;
	at = stgreturn(rts->image->elf, fdes, n, rts->stgrun.addr - rts->image->bias);
	if (at)
		rts->stgreturn = image__addr(rts->image, at);
	ret = only_call(rts->image->elf, fdes, n, rts->stgrun.addr - rts->image->bias);
	if (ret)
		rts->stgrun_ret = image__addr(rts->image, ret);
}
