/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elf_eh: reading .eh_frame. Every offset is checked against the section before it is used. */
#include "elf_eh.h"

#include <string.h>

#include "elf_priv.h"

#define MAX_AUGMENTATION 16

void eh_take(struct eh_cursor *c, void *out, size_t len)
{
	memset(out, 0, len);
	if (c->err || c->at > c->end || len > c->end - c->at) {
		c->err = true;
		return;
	}
	memcpy(out, c->data + c->at, len);
	c->at += len;
}

uint8_t eh_take_u8(struct eh_cursor *c)
{
	uint8_t v;

	eh_take(c, &v, sizeof(v));
	return v;
}

uint64_t eh_take_leb128(struct eh_cursor *c, bool is_signed)
{
	uint64_t value = 0;
	unsigned int shift = 0;
	uint8_t byte = 0;

	do {
		byte = eh_take_u8(c);
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

/* Reads a value without adding its base. */
uint64_t eh_take_format(struct eh_cursor *c, uint8_t encoding)
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
		eh_take(c, &v.u8, sizeof(v.u8));
		return v.u8;
	case DW_EH_PE_ULEB128:
		return eh_take_leb128(c, false);
	case DW_EH_PE_SLEB128:
		return eh_take_leb128(c, true);
	case DW_EH_PE_UDATA2:
		eh_take(c, &v.u2, sizeof(v.u2));
		return v.u2;
	case DW_EH_PE_SDATA2:
		eh_take(c, &v.s2, sizeof(v.s2));
		return (uint64_t)(int64_t)v.s2;
	case DW_EH_PE_UDATA4:
		eh_take(c, &v.u4, sizeof(v.u4));
		return v.u4;
	case DW_EH_PE_SDATA4:
		eh_take(c, &v.s4, sizeof(v.s4));
		return (uint64_t)(int64_t)v.s4;
	default:
		c->err = true;
		return 0;
	}
}

/* Reads an address: absolute or relative to its own position, as code addresses always are. */
uint64_t eh_take_address(struct eh_cursor *c, uint8_t encoding)
{
	uint64_t base = c->vaddr + c->at, value;

	if (encoding & DW_EH_PE_INDIRECT) {
		c->err = true;
		return 0;
	}
	value = eh_take_format(c, encoding);
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

/* Reads the header of the entry at `at`; false if the entry does not fit into the section. */
bool eh_take_entry(const struct eh_cursor *section, uint64_t at, struct eh_entry *ret)
{
	struct eh_cursor c = *section;
	uint32_t length;
	uint64_t size;

	c.at = at;
	eh_take(&c, &length, sizeof(length));
	size = length;
	if (length == 0xffffffff)
		eh_take(&c, &size, sizeof(size));
	memset(ret, 0, sizeof(*ret));
	if (c.err || size > c.end - c.at)
		return false;
	ret->end = c.at + size;
	if (size < sizeof(ret->id)) {
		ret->terminator = true;
		return true;
	}
	ret->id_at = c.at;
	eh_take(&c, &ret->id, sizeof(ret->id));
	ret->body = c.at;
	return !c.err;
}

/* Interprets the letters after 'z'. False: an unknown letter. */
static bool take_augmentation(struct eh_cursor *c, const char *letters, struct eh_cie *cie)
{
	uint8_t personality;

	for (; *letters != '\0'; letters++) {
		switch (*letters) {
		case 'R':
			cie->encoding = eh_take_u8(c);
			break;
		case 'L':
			eh_take_u8(c);
			break;
		case 'P':
			personality = eh_take_u8(c);
			eh_take_format(c, personality);
			break;
		case 'S':
		case 'B':
			break;
		default:
			return false;
		}
	}
	return !c->err;
}

static bool take_cie(const struct eh_cursor *section, uint64_t at, struct eh_cie *cie)
{
	char augmentation[MAX_AUGMENTATION];
	struct eh_cursor c = *section;
	struct eh_entry e;
	uint64_t len = 0;
	uint8_t version;
	size_t i = 0;

	memset(cie, 0, sizeof(*cie));
	cie->at = at;
	cie->encoding = DW_EH_PE_ABSPTR;
	if (!eh_take_entry(section, at, &e) || e.terminator || e.id != 0)
		return false;
	c.at = e.body;
	c.end = e.end;
	version = eh_take_u8(&c);
	do {
		if (i == sizeof(augmentation))
			return false;
		augmentation[i] = (char)eh_take_u8(&c);
	} while (augmentation[i++] != '\0');
	if (c.err || (version != 1 && version != 3))
		return false;
	cie->code_align = eh_take_leb128(&c, false);
	cie->data_align = (int64_t)eh_take_leb128(&c, true);
	cie->ra = version == 1 ? eh_take_u8(&c) : eh_take_leb128(&c, false);
	cie->augmented = augmentation[0] == 'z';
	if (cie->augmented) {
		len = eh_take_leb128(&c, false);
		if (c.err || len > c.end - c.at)
			return false;
	} else if (augmentation[0] != '\0') {
		return false;
	}
	cie->body = c.at + len;
	cie->end = e.end;
	c.end = cie->body;
	return !c.err && (!cie->augmented || take_augmentation(&c, augmentation + 1, cie));
}

bool eh_take_fde(const struct elf_file *elf, const struct eh_cursor *section,
		 const struct eh_entry *e, struct eh_cie *cie, struct eh_fde *ret_fde)
{
	struct eh_cursor c = *section;
	uint64_t skip;

	if (e->terminator || e->id == 0 || e->id > e->id_at)
		return false;
	if (cie->at != e->id_at - e->id)
		cie->valid = take_cie(section, e->id_at - e->id, cie);
	if (!cie->valid)
		return false;
	c.at = e->body;
	c.end = e->end;
	ret_fde->start = eh_take_address(&c, cie->encoding);
	ret_fde->len = eh_take_format(&c, cie->encoding);
	/* A function that the linker discarded leaves an FDE for address 0. */
	if (c.err || ret_fde->len == 0 || !elf__in_code(elf, ret_fde->start, ret_fde->len))
		return false;
	if (cie->augmented) {
		skip = eh_take_leb128(&c, false);
		if (c.err || skip > c.end - c.at)
			skip = c.end - c.at;
		c.at += skip;
	}
	ret_fde->body = c.at;
	ret_fde->end = e->end;
	return true;
}

/* Finds .eh_frame by its section, else by .eh_frame_hdr, then up to its segment's end. */
bool eh_find(const struct elf_file *elf, struct eh_cursor *ret_section)
{
	struct elf_section s;
	struct eh_cursor hdr = {0};
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
	data = elf->heads.eh_frame_hdr ? elf__at(elf, elf->heads.eh_frame_hdr, 16) : NULL;
	if (!data)
		return false;
	hdr.data = data;
	hdr.vaddr = elf->heads.eh_frame_hdr;
	hdr.end = 16;
	eh_take(&hdr, head, sizeof(head)); /* version, then three encodings */
	vaddr = eh_take_address(&hdr, head[1]);
	if (hdr.err || head[0] != 1)
		return false;
	for (i = 0; i < elf->heads.n_segments; i++) {
		const struct elf_segment *seg = &elf->heads.segments[i];

		if (vaddr < seg->vaddr || vaddr - seg->vaddr >= seg->filesz)
			continue;
		ret_section->data = elf->data + seg->offset + (vaddr - seg->vaddr);
		ret_section->vaddr = vaddr;
		ret_section->end = seg->filesz - (vaddr - seg->vaddr);
		return true;
	}
	return false;
}
