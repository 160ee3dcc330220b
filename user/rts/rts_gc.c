/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ends of a collection in a runtime without symbols (rts/Stats.c, 8.10 to 9.14). stat_endGC
 * prints the line of `+RTS -S`, whose format nothing else has; GarbageCollect alone calls it, and
 * also stat_startGC, which rings the bell of `+RTS -B` ("\a"). stat_startGCSync does no more than
 * to note the clock that stat_startGC reads. All of that must be so, or nothing is taken: a probe
 * in another function would tell of collections that there are none.
 */
#include <string.h>

#include "base/base.h"
#include "rts_find_priv.h"

#define END_FORMAT_TAIL "(Gen: %2d)\n"
#define BELL		"\a"

/* GarbageCollect has 5 to 8 kB, stat_startGC less than 200 bytes. */
#define MAX_CALLER (64U << 10)
#define MAX_BELL   1024
/* Functions that ring it and are called by no other; more are not looked at. */
#define MAX_RINGERS 8

/* A gc_thread is about 700 bytes, and as many again for each generation. */
#define MAX_FIELD 4096

#define OP_CALL 0xe8
#define OP_JMP	0xe9

struct code {
	struct elf_file *elf;
	const struct elf_fde *fdes;
	size_t n;
};

static const uint8_t *bytes(const struct code *c, size_t i, size_t *ret_len)
{
	*ret_len = c->fdes[i].end - c->fdes[i].start;
	return elf__at(c->elf, c->fdes[i].start, *ret_len);
}

/* Where the operand of the call or jump at `at` leads; 0: there is none. */
static uint64_t leads_to(const struct elf_fde *fde, const uint8_t *code, size_t at, size_t len)
{
	int32_t rel;

	if ((code[at] != OP_CALL && code[at] != OP_JMP) || at + 5 > len)
		return 0;
	memcpy(&rel, code + at + 1, sizeof(rel));
	return fde->start + at + 5 + (uint64_t)(int64_t)rel;
}

/*
 * The string that an instruction loads as an argument: mov $imm32,%edi (bf), or
 * lea disp32(%rip),%rdi (48 8d 3d). 0: it does no such thing.
 */
static uint64_t loads(const struct elf_fde *fde, const uint8_t *code, size_t at, size_t len)
{
	static const uint8_t lea[] = {0x48, 0x8d, 0x3d};
	uint32_t imm;
	int32_t rel;

	if (at + 7 <= len && memcmp(code + at, lea, sizeof(lea)) == 0) {
		memcpy(&rel, code + at + 3, sizeof(rel));
		return fde->start + at + 7 + (uint64_t)(int64_t)rel;
	}
	if (code[at] != 0xbf || at + 5 > len)
		return 0;
	memcpy(&imm, code + at + 1, sizeof(imm));
	return imm;
}

static bool loads_string(const struct code *c, size_t i, const char *string, size_t size)
{
	size_t len;
	const uint8_t *code = bytes(c, i, &len);

	for (size_t at = 0; code && at < len; at++) {
		uint64_t addr = loads(&c->fdes[i], code, at, len);
		const uint8_t *data = addr ? elf__at(c->elf, addr, size) : NULL;

		if (data && memcmp(data, string, size) == 0)
			return true;
	}
	return false;
}

/* What an instruction refers to: leads_to() or loads(). */
typedef uint64_t (*refers_fn)(const struct elf_fde *fde, const uint8_t *code, size_t at,
			      size_t len);

/* The one function that refers to vaddr, or does so at one place only; n if none or several. */
static size_t only_one(const struct code *c, refers_fn refers, uint64_t vaddr, bool at_one_place)
{
	size_t found = c->n;

	for (size_t i = 0; i < c->n; i++) {
		size_t len;
		const uint8_t *code = bytes(c, i, &len);

		for (size_t at = 0; code && at < len; at++) {
			if (refers(&c->fdes[i], code, at, len) != vaddr)
				continue;
			if (found != c->n && (found != i || at_one_place))
				return c->n;
			found = i;
		}
	}
	return found;
}

/* The one function that loads the string at vaddr. */
static size_t user_of(const struct code *c, uint64_t vaddr)
{
	return only_one(c, loads, vaddr, false);
}

/* The one function that calls that at vaddr, at one place. */
static size_t caller_of(const struct code *c, uint64_t vaddr)
{
	return only_one(c, leads_to, vaddr, true);
}

/* The function that starts at vaddr; n if there is none. */
static size_t starts_at(const struct code *c, uint64_t vaddr)
{
	return elf_fdes__starting_at(c->fdes, c->n, vaddr);
}

/* The one function that is called by `caller`, and nowhere else, and rings the bell. */
static size_t bell_of(const struct code *c, size_t caller)
{
	size_t found = c->n, len, ringers = 0;
	const uint8_t *code = bytes(c, caller, &len);

	for (size_t at = 0; code && len <= MAX_CALLER && at < len; at++) {
		uint64_t to = leads_to(&c->fdes[caller], code, at, len);
		size_t i = to ? starts_at(c, to) : c->n;

		if (i == c->n || i == found || c->fdes[i].end - to > MAX_BELL ||
		    !loads_string(c, i, BELL, sizeof(BELL)))
			continue;
		if (++ringers > MAX_RINGERS)
			return c->n;
		if (caller_of(c, to) != caller)
			continue;
		if (found != c->n)
			return c->n;
		found = i;
	}
	return found;
}

static bool calls(const struct code *c, size_t i, uint64_t vaddr)
{
	size_t len;
	const uint8_t *code = bytes(c, i, &len);

	for (size_t at = 0; code && at < len; at++)
		if (leads_to(&c->fdes[i], code, at, len) == vaddr)
			return true;
	return false;
}

/* What stat_startGCSync does, and no more. */
struct note {
	uint64_t clock; /* the function that it asks for the time */
	uint32_t field; /* of the gc_thread, where it puts that */
};

/* push %rbx; mov %rdi,%rbx; call CLOCK; mov %rax,FIELD(%rbx); pop %rbx; ret. Its length, or 0. */
static size_t notes_clock(uint64_t vaddr, const uint8_t *code, size_t len, struct note *ret_note)
{
	static const uint8_t head[] = {0x53, 0x48, 0x89, 0xfb, OP_CALL};
	static const uint8_t store8[] = {0x48, 0x89, 0x43}, store32[] = {0x48, 0x89, 0x83};
	static const uint8_t tail[] = {0x5b, 0xc3};
	const struct elf_fde at_all = {.start = vaddr};
	size_t at = sizeof(head) + 4;
	struct note note = {0};

	if (!code || len < at + 7 + sizeof(tail) || memcmp(code, head, sizeof(head)) != 0)
		return 0;
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
	note.clock = leads_to(&at_all, code, sizeof(head) - 1, len);
	*ret_note = note;
	return at + sizeof(tail);
}

/* The one function that only notes the clock that `start` reads too; n if none or several. */
static size_t sync_of(const struct code *c, size_t start)
{
	size_t found = c->n;

	for (size_t i = 0; i < c->n; i++) {
		size_t len;
		const uint8_t *code = bytes(c, i, &len);
		struct note note;

		if (i == start || notes_clock(c->fdes[i].start, code, len, &note) != len ||
		    !calls(c, start, note.clock))
			continue;
		if (found != c->n)
			return c->n;
		found = i;
	}
	return found;
}

static void take(struct rts *rts, struct rts_place *place, uint64_t vaddr)
{
	if (place->addr)
		return;
	place->addr = image__addr(rts->image, vaddr);
	place->found = FOUND_STRINGS;
}

void rts_gc__find(struct rts *rts)
{
	struct code c = {.elf = rts->image->elf};
	size_t end, start, collect, sync;
	uint64_t format;

	if (rts->gc_start.addr && rts->gc_end.addr)
		return;
	format = rts_strings__ending_in(c.elf, END_FORMAT_TAIL, sizeof(END_FORMAT_TAIL));
	if (!format || elf__fdes(c.elf, &c.fdes, &c.n) < 0)
		return;
	end = user_of(&c, format);
	collect = end == c.n ? c.n : caller_of(&c, c.fdes[end].start);
	start = collect == c.n ? c.n : bell_of(&c, collect);
	if (start == c.n || start == end)
		return;
	take(rts, &rts->gc_start, c.fdes[start].start);
	take(rts, &rts->gc_end, c.fdes[end].start);
	sync = sync_of(&c, start);
	if (sync != c.n)
		take(rts, &rts->gc_sync, c.fdes[sync].start);
}

/* stat_startGC notes the clock that stat_startGCSync reads, in the field behind that one's. */
static bool notes_start(const uint8_t *code, size_t len, uint32_t field)
{
	/* mov %rax,disp32(REG); of the registers any but rsp, which needs another form */
	for (size_t at = 0; code && at + 7 <= len; at++) {
		uint32_t disp;

		memcpy(&disp, code + at + 3, sizeof(disp));
		if ((code[at] == 0x48 || code[at] == 0x49) && code[at + 1] == 0x89 &&
		    (code[at + 2] & 0xf8) == 0x80 && disp == field)
			return true;
	}
	return false;
}

void rts_gc__clock(struct rts *rts)
{
	struct code c = {.elf = rts->image->elf};
	uint64_t bias = rts->image->bias;
	struct note note;
	size_t sync, start, len;
	const uint8_t *code;

	if (!rts->gc_sync.addr || !rts->gc_start.addr || elf__fdes(c.elf, &c.fdes, &c.n) < 0)
		return;
	sync = starts_at(&c, rts->gc_sync.addr - bias);
	start = starts_at(&c, rts->gc_start.addr - bias);
	if (sync == c.n || start == c.n)
		return;
	code = bytes(&c, sync, &len);
	if (!notes_clock(c.fdes[sync].start, code, len, &note) || !calls(&c, start, note.clock) ||
	    note.field > MAX_FIELD)
		return;
	code = bytes(&c, start, &len);
	if (notes_start(code, len, note.field + 8))
		rts->gct_clock = note.field;
}
