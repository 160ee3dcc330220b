/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Builds static archives in the format of the gabi and ar(5), and links their sections into a
 * program's code.
 */
#ifndef SAFESCOPED_TEST_ARCHIVE_KIT_H
#define SAFESCOPED_TEST_ARCHIVE_KIT_H

#include <assert.h>
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define KIT_SECTIONS 16
#define KIT_SYMBOLS  32
#define KIT_RELOCS   32
#define KIT_SIZE     4096 /* of one section */

struct kit_reloc {
	uint32_t at, type, symbol;
	int64_t addend;
};

struct kit_section {
	uint8_t bytes[KIT_SIZE];
	uint32_t size, n_relocs, align;
	struct kit_reloc relocs[KIT_RELOCS];
};

struct kit_symbol {
	char name[64];
	uint32_t section; /* index; UINT32_MAX: defined in another file */
	uint64_t value, size;
	uint8_t type, bind;
};

/* An object file. */
struct kit_object {
	struct kit_section sections[KIT_SECTIONS];
	struct kit_symbol symbols[KIT_SYMBOLS];
	uint32_t n_sections, n_symbols;
};

#define KIT_UNDEFINED UINT32_MAX

/* Fills bytes with pseudo-code that differs for every seed. */
static inline void kit_fill(uint8_t *bytes, size_t n, uint32_t seed)
{
	uint64_t x = seed * 0x9e3779b97f4a7c15ULL + 1;

	for (size_t i = 0; i < n; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		bytes[i] = (uint8_t)(x >> 32);
	}
}

static inline uint32_t kit_add_section(struct kit_object *o, uint32_t size, uint32_t seed)
{
	struct kit_section *s = &o->sections[o->n_sections];

	assert(o->n_sections < KIT_SECTIONS && size <= KIT_SIZE);
	memset(s, 0, sizeof(*s));
	s->size = size;
	s->align = 16;
	kit_fill(s->bytes, size, seed);
	return o->n_sections++;
}

static inline uint32_t kit_add_symbol(struct kit_object *o, const char *name, uint32_t section,
				      uint64_t value, uint64_t size)
{
	struct kit_symbol *s = &o->symbols[o->n_symbols];

	assert(o->n_symbols < KIT_SYMBOLS);
	*s = (struct kit_symbol){.section = section,
				 .value = value,
				 .size = size,
				 .type = STT_FUNC,
				 .bind = STB_GLOBAL};
	snprintf(s->name, sizeof(s->name), "%s", name);
	if (section == KIT_UNDEFINED)
		s->type = STT_NOTYPE;
	return o->n_symbols++;
}

/* Adds a section with one function. */
static inline uint32_t kit_add_function(struct kit_object *o, const char *name, uint32_t size,
					uint32_t seed)
{
	uint32_t section = kit_add_section(o, size, seed);

	kit_add_symbol(o, name, section, 0, size);
	return section;
}

static inline void kit_add_reloc(struct kit_object *o, uint32_t section, uint32_t at, uint32_t type,
				 uint32_t symbol, int64_t addend)
{
	struct kit_section *s = &o->sections[section];

	assert(s->n_relocs < KIT_RELOCS);
	s->relocs[s->n_relocs++] = (struct kit_reloc){at, type, symbol, addend};
}

static inline size_t kit_align(size_t at)
{
	return (at + 15) & ~(size_t)15;
}

/* Writes the object as a file; returns its size. Sections: NULL, code, relocations, symbols,
 * strings. */
static inline size_t kit_write_object(const struct kit_object *o, uint8_t *out)
{
	Elf64_Shdr sh[2 * KIT_SECTIONS + 3] = {0};
	uint32_t n = o->n_sections, symtab = 1 + 2 * n, strtab = symtab + 1, count = strtab + 1;
	size_t at = sizeof(Elf64_Ehdr), strings = 1;
	Elf64_Ehdr eh = {.e_type = ET_REL,
			 .e_machine = EM_X86_64,
			 .e_version = EV_CURRENT,
			 .e_ehsize = sizeof(eh),
			 .e_shentsize = sizeof(Elf64_Shdr),
			 .e_shnum = (uint16_t)count,
			 .e_shstrndx = (uint16_t)strtab};

	memcpy(eh.e_ident, ELFMAG, SELFMAG);
	eh.e_ident[EI_CLASS] = ELFCLASS64;
	eh.e_ident[EI_DATA] = ELFDATA2LSB;
	eh.e_ident[EI_VERSION] = EV_CURRENT;
	for (uint32_t i = 0; i < n; i++) {
		const struct kit_section *s = &o->sections[i];

		at = kit_align(at);
		sh[1 + i] = (Elf64_Shdr){.sh_type = SHT_PROGBITS,
					 .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
					 .sh_offset = at,
					 .sh_size = s->size,
					 .sh_addralign = s->align};
		memcpy(out + at, s->bytes, s->size);
		at += s->size;
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct kit_section *s = &o->sections[i];

		at = kit_align(at);
		sh[1 + n + i] = (Elf64_Shdr){.sh_type = SHT_RELA,
					     .sh_offset = at,
					     .sh_size = s->n_relocs * sizeof(Elf64_Rela),
					     .sh_link = symtab,
					     .sh_info = 1 + i,
					     .sh_addralign = 8,
					     .sh_entsize = sizeof(Elf64_Rela)};
		for (uint32_t k = 0; k < s->n_relocs; k++, at += sizeof(Elf64_Rela)) {
			const struct kit_reloc *r = &s->relocs[k];
			Elf64_Rela rela = {.r_offset = r->at,
					   .r_info = ELF64_R_INFO((uint64_t)r->symbol + 1, r->type),
					   .r_addend = r->addend};

			memcpy(out + at, &rela, sizeof(rela));
		}
	}
	at = kit_align(at);
	sh[symtab] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
				  .sh_offset = at,
				  .sh_size = (1 + o->n_symbols) * sizeof(Elf64_Sym),
				  .sh_link = strtab,
				  .sh_info = 1,
				  .sh_addralign = 8,
				  .sh_entsize = sizeof(Elf64_Sym)};
	memset(out + at, 0, sizeof(Elf64_Sym));
	at += sizeof(Elf64_Sym);
	for (uint32_t i = 0; i < o->n_symbols; i++, at += sizeof(Elf64_Sym)) {
		const struct kit_symbol *s = &o->symbols[i];
		Elf64_Sym sym = {.st_name = (uint32_t)strings,
				 .st_info = ELF64_ST_INFO(s->bind, s->type),
				 .st_shndx =
					 (uint16_t)(s->section == KIT_UNDEFINED ? SHN_UNDEF
										: s->section + 1),
				 .st_value = s->value,
				 .st_size = s->size};

		memcpy(out + at, &sym, sizeof(sym));
		strings += strlen(s->name) + 1;
	}
	sh[strtab] = (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = at, .sh_size = strings};
	out[at++] = '\0';
	for (uint32_t i = 0; i < o->n_symbols; i++) {
		memcpy(out + at, o->symbols[i].name, strlen(o->symbols[i].name) + 1);
		at += strlen(o->symbols[i].name) + 1;
	}
	at = kit_align(at);
	eh.e_shoff = at;
	memcpy(out + at, sh, count * sizeof(*sh));
	memcpy(out, &eh, sizeof(eh));
	return at + count * sizeof(*sh);
}

/* Writes an archive of these objects; returns its size. */
static inline size_t kit_write_archive(const struct kit_object *objects, size_t n, uint8_t *out)
{
	size_t at = 8;

	memcpy(out, "!<arch>\n", 8);
	for (size_t i = 0; i < n; i++) {
		size_t size = kit_write_object(&objects[i], out + at + 60);
		char head[128];

		snprintf(head, sizeof(head), "m%zu.o/%11s%-12d%-6d%-6d%-8o%-10zu`\n", i, "", 0, 0,
			 0, 0100644U, size);
		memcpy(out + at, head, 60);
		at += 60 + size;
		if (at & 1)
			out[at++] = '\n';
	}
	return at;
}

/* Links one section as ld would: copies it to vaddr and relocates it against its object's
 * symbols, whose addresses are in `places`. */
static inline void kit_link(const struct kit_object *o, uint32_t section, const uint64_t *places,
			    uint8_t *code, uint64_t start, uint64_t vaddr)
{
	const struct kit_section *s = &o->sections[section];
	uint8_t *to = code + (vaddr - start);

	memcpy(to, s->bytes, s->size);
	for (uint32_t i = 0; i < s->n_relocs; i++) {
		const struct kit_reloc *r = &s->relocs[i];
		uint64_t value = places[r->symbol] + (uint64_t)r->addend;

		if (r->type == R_X86_64_64) {
			memcpy(to + r->at, &value, 8);
			continue;
		}
		if (r->type != R_X86_64_32S)
			value -= vaddr + r->at;
		memcpy(to + r->at, &value, 4);
	}
}

#endif
