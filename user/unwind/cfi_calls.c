/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cfi_calls: finds bytes that look like a call, and in C code are the start of an instruction. */
#include "cfi_calls_priv.h"

#include "arch_priv.h"
#include "base/base.h"

#define CODE_RANGES 64

/* A function whose calls are examined. */
struct caller {
	const struct cfi_calls *calls;
	const struct elf_fde *function;
	uint64_t last; /* start of the instruction decoded last */
	uint64_t next; /* start of the one after it */
	int err;
};

/*
 * Whether an instruction starts there, found by decoding the function from its start: otherwise the
 * byte may be part of an operand, and following its apparent target could lead into the middle of a
 * function. True if the function cannot be decoded.
 */
static bool is_insn(struct caller *c, uint64_t vaddr)
{
	const struct cfi_calls *calls = c->calls;

	if (vaddr < c->last)
		c->last = c->next = c->function->start;
	while (c->next <= vaddr) {
		size_t len = c->function->end - c->next;
		const uint8_t *code = elf__at(calls->elf, c->next, len);
		struct cfi_insn i;

		if (!code || !cfi_arch__decode(calls->arch, code, len, c->next, &i))
			return true;
		c->last = c->next;
		c->next += i.size;
	}
	return c->last == vaddr;
}

static void on_call_of_c(void *ctx, uint64_t target, uint64_t next)
{
	struct caller *c = ctx;
	int wanted = c->err ? 0 : c->calls->fn(c->calls->ctx, target, false);

	if (wanted > 0 && is_insn(c, next - CFI_ARCH_CALL_SIZE))
		wanted = c->calls->fn(c->calls->ctx, target, true);
	if (wanted < 0)
		c->err = wanted;
}

int cfi_calls__of_c(const struct cfi_calls *calls)
{
	int err = 0;

	for (size_t i = 0; i < calls->n_fdes && !err; i++) {
		const struct elf_fde *function = &calls->fdes[i];
		struct caller c = {calls, function, function->start, function->start, 0};
		uint64_t len = function->end - function->start;
		const uint8_t *code = len ? elf__at(calls->elf, function->start, len) : NULL;

		if (code)
			cfi_arch__calls(code, len, function->start, false, on_call_of_c, &c);
		err = c.err;
	}
	return err;
}

static void on_call_of_haskell(void *ctx, uint64_t target, uint64_t next)
{
	struct caller *c = ctx;
	int wanted = c->err ? 0 : c->calls->fn(c->calls->ctx, target, true);

	(void)next;
	if (wanted < 0)
		c->err = wanted;
}

static int look_at(const struct cfi_calls *calls, uint64_t start, uint64_t end)
{
	const uint8_t *code = end > start ? elf__at(calls->elf, start, end - start) : NULL;
	struct caller c = {.calls = calls};

	if (code)
		cfi_arch__calls(code, end - start, start, true, on_call_of_haskell, &c);
	return c.err;
}

int cfi_calls__of_haskell(const struct cfi_calls *calls)
{
	struct elf_code ranges[CODE_RANGES];
	size_t n = MIN(elf__code_ranges(calls->elf, ranges, CODE_RANGES), (size_t)CODE_RANGES);
	size_t k = 0;
	int err = 0;

	for (size_t i = 0; i < n && !err; i++) {
		uint64_t at = ranges[i].start;

		while (k < calls->n_fdes && calls->fdes[k].end <= at)
			k++;
		for (; k < calls->n_fdes && calls->fdes[k].start < ranges[i].end && !err; k++) {
			err = look_at(calls, at, calls->fdes[k].start);
			at = MAX(at, calls->fdes[k].end);
		}
		if (!err)
			err = look_at(calls, at, ranges[i].end);
	}
	return err;
}
