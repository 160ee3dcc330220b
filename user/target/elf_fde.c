/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * elf_fde: which code has unwind rows. .eh_frame is read from its start to its end: the search
 * table of .eh_frame_hdr may be missing. Format: Linux Standard Base Core 5.0, "Exception
 * Frames", and DWARF's Common and Frame Description Entries.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/base.h"
#include "elf_priv.h"

#define DW_EH_PE_ABSPTR	  0x00
#define DW_EH_PE_ULEB128  0x01
#define DW_EH_PE_UDATA2	  0x02
#define DW_EH_PE_UDATA4	  0x03
#define DW_EH_PE_UDATA8	  0x04
#define DW_EH_PE_SLEB128  0x09
#define DW_EH_PE_SDATA2	  0x0a
#define DW_EH_PE_SDATA4	  0x0b
#define DW_EH_PE_SDATA8	  0x0c
#define DW_EH_PE_FORMAT	  0x0f
#define DW_EH_PE_PCREL	  0x10
#define DW_EH_PE_APPLY	  0x70
#define DW_EH_PE_INDIRECT 0x80
#define DW_EH_PE_OMIT	  0xff

#define MAX_AUGMENTATION 16

/* A place in .eh_frame; `err` is kept, and everything read after it is 0. */
struct cursor {
	const uint8_t *data; /* of the section */
	uint64_t vaddr;	     /* of data[0] */
	uint64_t at, end;    /* offsets; end <= the section's size */
	bool err;
};

static void take(struct cursor *c, void *out, size_t len)
{
	memset(out, 0, len);
	if (c->err || c->at > c->end || len > c->end - c->at) {
		c->err = true;
		return;
	}
	memcpy(out, c->data + c->at, len);
	c->at += len;
}

static uint8_t take_u8(struct cursor *c)
{
	uint8_t v;

	take(c, &v, sizeof(v));
	return v;
}

static uint64_t take_leb128(struct cursor *c, bool is_signed)
{
	uint64_t value = 0;
	unsigned int shift = 0;
	uint8_t byte = 0;

	do {
		byte = take_u8(c);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
		if (shift > 70)
			c->err = true;
	} while (!c->err && (byte & 0x80));
	if (is_signed && shift < 64 && (byte & 0x40))
		value |= ~(uint64_t)0 << shift;
	return value;
}

/* The bare value, without its base. */
static uint64_t take_format(struct cursor *c, uint8_t encoding)
{
	union {
		uint16_t u2;
		int16_t s2;
		uint32_t u4;
		int32_t s4;
		uint64_t u8;
	} v;

	switch (encoding & DW_EH_PE_FORMAT) {
	case DW_EH_PE_ABSPTR:
	case DW_EH_PE_UDATA8:
	case DW_EH_PE_SDATA8:
		take(c, &v.u8, sizeof(v.u8));
		return v.u8;
	case DW_EH_PE_ULEB128:
		return take_leb128(c, false);
	case DW_EH_PE_SLEB128:
		return take_leb128(c, true);
	case DW_EH_PE_UDATA2:
		take(c, &v.u2, sizeof(v.u2));
		return v.u2;
	case DW_EH_PE_SDATA2:
		take(c, &v.s2, sizeof(v.s2));
		return (uint64_t)(int64_t)v.s2;
	case DW_EH_PE_UDATA4:
		take(c, &v.u4, sizeof(v.u4));
		return v.u4;
	case DW_EH_PE_SDATA4:
		take(c, &v.s4, sizeof(v.s4));
		return (uint64_t)(int64_t)v.s4;
	default:
		c->err = true;
		return 0;
	}
}

/* An address: absolute or relative to its own place, as code addresses on x86-64 always are. */
static uint64_t take_address(struct cursor *c, uint8_t encoding)
{
	uint64_t base = c->vaddr + c->at, value;

	if (encoding & DW_EH_PE_INDIRECT) {
		c->err = true;
		return 0;
	}
	value = take_format(c, encoding);
	switch (encoding & DW_EH_PE_APPLY) {
	case 0:
		return value;
	case DW_EH_PE_PCREL:
		return base + value;
	default:
		c->err = true;
		return 0;
	}
}

struct entry {
	uint64_t id_at; /* offset of the id field */
	uint32_t id;	/* 0: a CIE; else how far before id_at its CIE begins */
	uint64_t body;	/* offset behind the id */
	uint64_t end;
	bool terminator;
};

/* Reads the head of the entry at `at`; false if it does not fit into the section. */
static bool take_entry(const struct cursor *section, uint64_t at, struct entry *ret)
{
	struct cursor c = *section;
	uint32_t length;
	uint64_t size;

	c.at = at;
	take(&c, &length, sizeof(length));
	size = length;
	if (length == 0xffffffff)
		take(&c, &size, sizeof(size));
	memset(ret, 0, sizeof(*ret));
	if (c.err || size > c.end - c.at)
		return false;
	ret->end = c.at + size;
	if (size < sizeof(ret->id)) {
		ret->terminator = true;
		return true;
	}
	ret->id_at = c.at;
	take(&c, &ret->id, sizeof(ret->id));
	ret->body = c.at;
	return !c.err;
}

/* How the FDEs of the CIE at `at` encode addresses; DW_EH_PE_OMIT if that cannot be told. */
static uint8_t cie_encoding(const struct cursor *section, uint64_t at)
{
	char augmentation[MAX_AUGMENTATION];
	struct cursor c = *section;
	struct entry e;
	uint8_t version, personality;
	size_t i = 0;

	if (!take_entry(section, at, &e) || e.terminator || e.id != 0)
		return DW_EH_PE_OMIT;
	c.at = e.body;
	c.end = e.end;
	version = take_u8(&c);
	do {
		if (i == sizeof(augmentation))
			return DW_EH_PE_OMIT;
		augmentation[i] = (char)take_u8(&c);
	} while (augmentation[i++] != '\0');
	if (c.err || (version != 1 && version != 3))
		return DW_EH_PE_OMIT;
	if (augmentation[0] == '\0')
		return DW_EH_PE_ABSPTR;
	if (augmentation[0] != 'z')
		return DW_EH_PE_OMIT;

	take_leb128(&c, false); /* code alignment */
	take_leb128(&c, true);	/* data alignment */
	if (version == 1)
		take_u8(&c); /* return address register */
	else
		take_leb128(&c, false);
	take_leb128(&c, false); /* length of the augmentation data */
	for (i = 1; augmentation[i] != '\0'; i++) {
		switch (augmentation[i]) {
		case 'R':
			version = take_u8(&c);
			return c.err ? DW_EH_PE_OMIT : version;
		case 'L':
			take_u8(&c);
			break;
		case 'P':
			personality = take_u8(&c);
			take_format(&c, personality);
			break;
		case 'S':
		case 'B':
			break;
		default:
			return DW_EH_PE_OMIT;
		}
	}
	return c.err ? DW_EH_PE_OMIT : DW_EH_PE_ABSPTR;
}

static int add_fde(struct elf_lazy *lazy, uint64_t start, uint64_t len)
{
	void *fdes = lazy->fdes;
	int err;

	err = array__reserve(&fdes, &lazy->cap_fdes, lazy->n_fdes + 1, ELF_MAX_FDES,
			     sizeof(*lazy->fdes));
	lazy->fdes = fdes;
	if (err)
		return err;
	lazy->fdes[lazy->n_fdes].start = start;
	lazy->fdes[lazy->n_fdes++].end = start + len;
	return 0;
}

static int collect(const struct elf_file *elf, const struct cursor *section)
{
	uint64_t at = section->at, cie_at = UINT64_MAX;
	uint8_t encoding = DW_EH_PE_OMIT;
	struct entry e;
	int err;

	for (; section->end - at >= sizeof(uint32_t); at = e.end) {
		struct cursor c = *section;
		uint64_t start, len;

		if (!take_entry(section, at, &e))
			break;
		/* A linker may leave several zero terminators, one for each crtend.o. */
		if (e.terminator || e.id == 0 || e.id > e.id_at)
			continue;
		if (cie_at != e.id_at - e.id) {
			cie_at = e.id_at - e.id;
			encoding = cie_encoding(section, cie_at);
		}
		if (encoding == DW_EH_PE_OMIT)
			continue;
		c.at = e.body;
		c.end = e.end;
		start = take_address(&c, encoding);
		len = take_format(&c, encoding);
		/* A function that the linker discarded leaves an FDE for address 0. */
		if (c.err || len == 0 || !elf_in_code(elf, start, len))
			continue;
		err = add_fde(elf->lazy, start, len);
		if (err)
			return err;
	}
	return 0;
}

/* .eh_frame by its section, else where .eh_frame_hdr says, up to its segment's end. */
static bool find_section(const struct elf_file *elf, struct cursor *ret_section)
{
	struct elf_section s;
	struct cursor hdr = {0};
	uint8_t head[4];
	const uint8_t *data;
	uint64_t vaddr;
	size_t i;

	memset(ret_section, 0, sizeof(*ret_section));
	if (elf__section(elf, ".eh_frame", &s) == 0) {
		ret_section->data = s.data;
		ret_section->vaddr = s.vaddr;
		ret_section->end = s.data ? s.size : 0;
		return s.data != NULL;
	}
	data = elf->eh_frame_hdr ? elf__at(elf, elf->eh_frame_hdr, 16) : NULL;
	if (!data)
		return false;
	hdr.data = data;
	hdr.vaddr = elf->eh_frame_hdr;
	hdr.end = 16;
	take(&hdr, head, sizeof(head)); /* version, then three encodings */
	vaddr = take_address(&hdr, head[1]);
	if (hdr.err || head[0] != 1)
		return false;
	for (i = 0; i < elf->n_segments; i++) {
		const struct elf_segment *seg = &elf->segments[i];

		if (vaddr < seg->vaddr || vaddr - seg->vaddr >= seg->filesz)
			continue;
		ret_section->data = elf->data + seg->offset + (vaddr - seg->vaddr);
		ret_section->vaddr = vaddr;
		ret_section->end = seg->filesz - (vaddr - seg->vaddr);
		return true;
	}
	return false;
}

static int by_start(const void *a, const void *b)
{
	const struct elf_fde *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->end > y->end) - (x->end < y->end);
}

int elf__fdes(struct elf_file *elf, const struct elf_fde **ret_fdes, size_t *ret_n)
{
	struct elf_lazy *lazy = elf->lazy;
	struct cursor section;

	if (!lazy->fdes_done) {
		lazy->fdes_done = true;
		if (find_section(elf, &section))
			lazy->fdes_err = collect(elf, &section);
		if (lazy->n_fdes > 0)
			qsort(lazy->fdes, lazy->n_fdes, sizeof(*lazy->fdes), by_start);
	}
	if (lazy->fdes_err)
		return lazy->fdes_err;
	*ret_fdes = lazy->fdes;
	*ret_n = lazy->n_fdes;
	return 0;
}

bool elf__has_fde(struct elf_file *elf, uint64_t vaddr)
{
	const struct elf_fde *fdes;
	size_t n, low = 0, high;

	if (elf__fdes(elf, &fdes, &n) || n == 0)
		return false;
	high = n; /* the first FDE that begins above vaddr is in [low, high] */
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (fdes[mid].start <= vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	return low > 0 && vaddr < fdes[low - 1].end;
}
