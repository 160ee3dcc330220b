/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The C functions of a file, and which of them refer to what. */
#include "rts_code_priv.h"

#include <string.h>

const uint8_t *code__bytes(const struct code *c, size_t i, size_t *ret_len)
{
	*ret_len = c->fdes[i].end - c->fdes[i].start;
	return elf__at(c->elf, c->fdes[i].start, *ret_len);
}

void code__each_branch(const struct code *c, size_t i, rts_arch_branch_fn fn, void *ctx)
{
	size_t len;
	const uint8_t *code = code__bytes(c, i, &len);

	if (code)
		rts_arch__branches(code, len, c->fdes[i].start, RTS_ARCH_CALL | RTS_ARCH_JUMP, fn,
				   ctx);
}

static void each_load(const struct code *c, size_t i, rts_arch_load_fn fn, void *ctx)
{
	size_t len;
	const uint8_t *code = code__bytes(c, i, &len);

	if (code)
		rts_arch__loads(code, len, c->fdes[i].start, fn, ctx);
}

/* What to look for in a function, and how often it was seen. */
struct look {
	const struct elf_file *elf;
	uint64_t vaddr;
	const char *string;
	size_t size;
	size_t seen;
};

static bool on_string(void *ctx, uint64_t target)
{
	struct look *look = ctx;
	const uint8_t *data = elf__at(look->elf, target, look->size);

	look->seen += data && memcmp(data, look->string, look->size) == 0;
	return !look->seen;
}

static bool on_load(void *ctx, uint64_t target)
{
	struct look *look = ctx;

	look->seen += target == look->vaddr;
	return true;
}

static bool on_branch(void *ctx, uint64_t target, uint64_t next)
{
	struct look *look = ctx;

	(void)next;
	look->seen += target == look->vaddr;
	return true;
}

bool code__loads_string(const struct code *c, size_t i, const char *string, size_t size)
{
	struct look look = {.elf = c->elf, .string = string, .size = size};

	each_load(c, i, on_string, &look);
	return look.seen > 0;
}

size_t code__calls(const struct code *c, size_t i, uint64_t vaddr)
{
	struct look look = {.vaddr = vaddr};

	code__each_branch(c, i, on_branch, &look);
	return look.seen;
}

static size_t loads(const struct code *c, size_t i, uint64_t vaddr)
{
	struct look look = {.vaddr = vaddr};

	each_load(c, i, on_load, &look);
	return look.seen;
}

/* How often function i refers to vaddr: code__calls() or loads(). */
typedef size_t (*refers_fn)(const struct code *c, size_t i, uint64_t vaddr);

/* The only function that refers to vaddr (at_one_place: and only once); n if none or several do. */
static size_t only_one(const struct code *c, refers_fn refers, uint64_t vaddr, bool at_one_place)
{
	size_t found = c->n;

	for (size_t i = 0; i < c->n; i++) {
		size_t times = refers(c, i, vaddr);

		if (!times)
			continue;
		if (found != c->n || (at_one_place && times > 1))
			return c->n;
		found = i;
	}
	return found;
}

size_t code__user_of(const struct code *c, uint64_t vaddr)
{
	return only_one(c, loads, vaddr, false);
}

size_t code__caller_of(const struct code *c, uint64_t vaddr)
{
	return only_one(c, code__calls, vaddr, true);
}

size_t code__starts_at(const struct code *c, uint64_t vaddr)
{
	return elf_fdes__starting_at(c->fdes, c->n, vaddr);
}
