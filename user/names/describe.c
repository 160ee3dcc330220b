/* SPDX-License-Identifier: GPL-2.0-or-later */
/* describe: reads info tables out of a file's code. */
#include "describe_priv.h"

#include <string.h>

#include "base/base.h"
#include "base/search.h"

/* rts/include/rts/storage/ClosureTypes.h: the same numbers from 8.10 to 9.14 */
#define TYPE_FUN	  8
#define TYPE_THUNK	  15
#define TYPE_THUNK_LAST	  22 /* THUNK_SELECTOR */
#define TYPE_RET_SMALL	  30
#define TYPE_RET_BIG	  31
#define TYPE_UPDATE_FRAME 33
#define TYPE_CATCH_FRAME  34
#define TYPE_STOP_FRAME	  36
#define TYPE_LAST	  66
#define MAX_TEXT	  400
#define MAX_FIELDS	  1024
#define BLOCK_MAX_BACK	  4096

/* InfoTables.h, StgInfoTable with StgProfInfo and tables next to code, before the entry code */
struct prof_table {
	int32_t type_off;
	uint32_t pad0;
	int32_t desc_off;
	uint32_t pad1;
	uint64_t layout;
	uint32_t type;
	int32_t srt;
};

uint32_t describe__type(const struct elf_file *elf, uint64_t vaddr)
{
	const uint8_t *p = vaddr < 8 || (vaddr & 7) ? NULL : elf__at(elf, vaddr - 8, 8);
	uint32_t type = 0;

	if (p)
		memcpy(&type, p, sizeof(type));
	return type > TYPE_LAST ? 0 : type;
}

bool describe__is_plumbing(uint32_t type)
{
	return type == TYPE_UPDATE_FRAME || type == TYPE_CATCH_FRAME || type == TYPE_STOP_FRAME;
}

bool describe__is_thunk(uint32_t type)
{
	return type >= TYPE_THUNK && type <= TYPE_THUNK_LAST;
}

/* Printable and ended; NULL. */
static const char *text_at(const struct elf_file *elf, uint64_t vaddr)
{
	const char *s = (const char *)elf__at(elf, vaddr, 1);
	size_t len;

	if (!s || !*s)
		return NULL;
	for (len = 0; len < MAX_TEXT && elf__at(elf, vaddr, len + 1); len++) {
		if (!s[len])
			return s;
		if ((unsigned char)s[len] < 0x20)
			return NULL;
	}
	return NULL;
}

/* The description of the info table whose entry code is at vaddr, whatever closure it is of. */
static const char *description_at(const struct elf_file *elf, uint64_t vaddr, uint32_t *ret_type)
{
	const uint8_t *p = vaddr < sizeof(struct prof_table)
				   ? NULL
				   : elf__at(elf, vaddr - sizeof(struct prof_table),
					     sizeof(struct prof_table));
	struct prof_table t;

	if (!p)
		return NULL;
	memcpy(&t, p, sizeof(t));
	if (t.pad0 || t.pad1 || !t.desc_off || !t.type_off || !t.type || t.type > TYPE_LAST)
		return NULL;
	*ret_type = t.type;
	return text_at(elf, vaddr + (uint64_t)(int64_t)t.desc_off);
}

/* C code lies between them, or is meant: its functions have unwind rows. */
static bool parted_by_c(struct elf_file *elf, uint64_t from, uint64_t vaddr)
{
	const struct elf_fde *fdes;
	size_t n, after;

	if (elf__fdes(elf, &fdes, &n))
		return false;
	after = search__first(n, i, fdes[i].start > vaddr);
	return after > 0 && fdes[after - 1].start > from;
}

const char *describe__closure(struct elf_file *elf, uint64_t vaddr)
{
	for (uint64_t at = vaddr & ~7ULL; at + DESCRIBE_MAX_BACK > vaddr && at >= 64; at -= 8) {
		uint32_t type = 0;
		const char *text = description_at(elf, at, &type);

		if (!text)
			continue;
		/* the runtime's own closures have no brackets, and what follows is its own */
		if (text[0] != '<' || type < TYPE_FUN || type > TYPE_THUNK_LAST)
			return NULL;
		return parted_by_c(elf, at, vaddr) ? NULL : text;
	}
	return NULL;
}

/* The two words before entry code: layout; type and SRT (StgInfoTable with tables next to code). */
static bool looks_like_table(const struct elf_file *elf, uint64_t vaddr)
{
	const uint8_t *p = elf__at(elf, vaddr - 16, 16);
	uint64_t layout, size;
	uint32_t type;
	int32_t srt;

	if (!p)
		return false;
	memcpy(&layout, p, sizeof(layout));
	memcpy(&type, p + 8, sizeof(type));
	memcpy(&srt, p + 12, sizeof(srt));
	/* an SRT is a closure, hence aligned as info tables are */
	if (srt & 7)
		return false;
	if (type >= TYPE_FUN && type <= TYPE_THUNK_LAST)
		return (layout & 0xffffffff) < MAX_FIELDS && layout >> 32 < MAX_FIELDS;
	if (type == TYPE_RET_BIG)
		return layout && layout <= INT32_MAX;
	if (type != TYPE_RET_SMALL && !describe__is_plumbing(type))
		return false;
	/* the bitmap: its size in the low six bits, nothing beyond that */
	size = layout & 0x3f;
	return size <= 58 && layout >> 6 >> size == 0;
}

uint64_t describe__block(struct elf_file *elf, uint64_t vaddr)
{
	for (uint64_t at = vaddr & ~7ULL; at + BLOCK_MAX_BACK > vaddr && at >= 64; at -= 8)
		if (looks_like_table(elf, at))
			return parted_by_c(elf, at, vaddr) ? vaddr : at;
	return vaddr;
}
