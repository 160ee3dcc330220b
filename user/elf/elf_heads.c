/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elf_heads: a file's header, segments, sections and build-id. */
#include <errno.h>
#include <stdlib.h>

#include "arch.h"
#include "base/base.h"
#include "confine/confine.h"
#include "elf_priv.h"

#define MAX_NOTES 8

static int check_header(const struct elf_file *elf, Elf64_Ehdr *ret_header)
{
	Elf64_Ehdr h;

	if (!elf_get(elf, 0, h.e_ident, EI_NIDENT) || memcmp(h.e_ident, ELFMAG, SELFMAG) != 0)
		return -ENOEXEC;
	if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_ident[EI_DATA] != ELFDATA2LSB)
		return -EMEDIUMTYPE;
	if (!elf_get(elf, 0, &h, sizeof(h)))
		return -EINVAL;
	if (!elf_arch__is_ours(h.e_machine))
		return -EMEDIUMTYPE;
	if (h.e_type != ET_EXEC && h.e_type != ET_DYN)
		return -EINVAL;
	*ret_header = h;
	return 0;
}

/* The part of a range that is in the file; size 0 if none is. */
static struct elf_range clip(const struct elf_file *elf, uint64_t offset, uint64_t size)
{
	struct elf_range range = {0};

	if (offset < elf->size) {
		range.offset = offset;
		range.size = MIN(size, elf->size - offset);
	}
	return range;
}

/* ── the build-id ────────────────────────────────────────────────────────────────────────── */

/* Looks for NT_GNU_BUILD_ID among the notes in a range. */
static bool find_build_id(const struct elf_file *elf, struct elf_range range, uint64_t align,
			  char out[41])
{
	uint64_t at = range.offset, end = range.offset + range.size;

	align = align == 8 ? 8 : 4;
	while (end - at >= sizeof(Elf64_Nhdr)) {
		static const char digits[] = "0123456789abcdef";
		uint64_t name, desc, next;
		Elf64_Nhdr note;
		size_t i, n;

		if (!elf_get(elf, at, &note, sizeof(note)))
			return false;
		/* n_namesz and n_descsz are 32 bits wide and the file ends below 2^30: no overflow.
		 */
		name = at + sizeof(note);
		desc = name + (((uint64_t)note.n_namesz + align - 1) & ~(align - 1));
		next = desc + (((uint64_t)note.n_descsz + align - 1) & ~(align - 1));
		if (desc + note.n_descsz > end)
			return false;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && note.n_descsz > 0 &&
		    memcmp(elf->data + name, "GNU", 4) == 0) {
			n = MIN((size_t)note.n_descsz, (size_t)20);
			for (i = 0; i < n; i++) {
				uint8_t byte = elf->data[desc + i];

				out[2 * i] = digits[byte >> 4];
				out[2 * i + 1] = digits[byte & 15];
			}
			out[2 * n] = '\0';
			return true;
		}
		if (next > end)
			return false;
		at = next;
	}
	return false;
}

/* The segments of a separate debug file may point anywhere, but its sections have the build-id. */
static void find_in_sections(struct elf_file *elf)
{
	for (size_t i = 0; i < elf->heads.n_sections && !elf->heads.build_id[0]; i++) {
		const Elf64_Shdr *s = &elf->sections[i];

		if (s->sh_type == SHT_NOTE)
			find_build_id(elf, clip(elf, s->sh_offset, s->sh_size), s->sh_addralign,
				      elf->heads.build_id);
	}
}

/* ── segments and sections ───────────────────────────────────────────────────────────────── */

static void add_segment(struct elf_file *elf, const Elf64_Phdr *p)
{
	struct elf_range range = clip(elf, p->p_offset, p->p_filesz);
	struct elf_heads *heads = &elf->heads;
	struct elf_segment *seg;
	uint64_t end;

	if (heads->n_segments == ELF_MAX_SEGMENTS || p->p_memsz == 0 ||
	    __builtin_add_overflow(p->p_vaddr, p->p_memsz, &end))
		return;
	seg = &heads->segments[heads->n_segments++];
	seg->vaddr = p->p_vaddr;
	seg->memsz = p->p_memsz;
	seg->offset = range.offset;
	seg->filesz = MIN(range.size, p->p_memsz);
	seg->exec = (p->p_flags & PF_X) != 0;
	seg->write = (p->p_flags & PF_W) != 0;
}

static int read_segments(struct elf_file *elf, const Elf64_Ehdr *h)
{
	struct elf_heads *heads = &elf->heads;
	size_t n_notes = 0;

	if (h->e_phentsize != sizeof(Elf64_Phdr) || h->e_phnum > ELF_MAX_PHDRS)
		return -EINVAL;
	for (size_t i = 0; i < h->e_phnum; i++) {
		Elf64_Phdr p;
		uint64_t at;

		if (__builtin_add_overflow(h->e_phoff, i * sizeof(p), &at) ||
		    !elf_get(elf, at, &p, sizeof(p)))
			break;
		if (p.p_type == PT_LOAD) {
			add_segment(elf, &p);
		} else if (p.p_type == PT_NOTE && !heads->build_id[0] && n_notes++ < MAX_NOTES) {
			find_build_id(elf, clip(elf, p.p_offset, p.p_filesz), p.p_align,
				      heads->build_id);
		} else if (p.p_type == PT_DYNAMIC) {
			heads->dynamic = clip(elf, p.p_offset, p.p_filesz);
		} else if (p.p_type == PT_GNU_EH_FRAME) {
			heads->eh_frame_hdr = p.p_vaddr;
		} else if (p.p_type == PT_TLS) {
			heads->has_tls = true;
			heads->tls_memsz = p.p_memsz;
			heads->tls_align = p.p_align;
		}
	}
	return heads->n_segments > 0 ? 0 : -EINVAL;
}

/* Sections are optional: a file with a damaged section table is treated as having none. */
static int read_sections(struct elf_file *elf, const Elf64_Ehdr *h)
{
	uint64_t n = h->e_shnum, names = h->e_shstrndx;
	Elf64_Shdr first, *names_section;

	elf->heads.is_cut = !elf_in_file(elf, h->e_shoff, n * sizeof(Elf64_Shdr));
	if (h->e_shoff == 0 || h->e_shentsize != sizeof(Elf64_Shdr) ||
	    !elf_get(elf, h->e_shoff, &first, sizeof(first)))
		return 0;
	/* numbers that do not fit into the header are in section 0 */
	if (n == 0)
		n = first.sh_size;
	if (names == SHN_XINDEX)
		names = first.sh_link;
	if (n == 0 || n > ELF_MAX_SECTIONS || !elf_in_file(elf, h->e_shoff, n * sizeof(Elf64_Shdr)))
		return 0;

	elf->sections = calloc(n, sizeof(Elf64_Shdr));
	if (!elf->sections)
		return -ENOMEM;
	memcpy(elf->sections, elf->data + h->e_shoff, n * sizeof(Elf64_Shdr));
	elf->heads.n_sections = n;
	if (names < n) {
		names_section = &elf->sections[names];
		if (names_section->sh_type == SHT_STRTAB)
			elf->heads.section_names =
				clip(elf, names_section->sh_offset, names_section->sh_size);
	}
	return 0;
}

int elf_heads__parse(struct elf_file *elf)
{
	Elf64_Ehdr h;
	int err;

	err = check_header(elf, &h);
	if (err)
		return err;
	elf->heads.type = h.e_type;
	elf->heads.entry = h.e_entry;
	err = read_segments(elf, &h);
	if (err)
		return err;
	err = read_sections(elf, &h);
	if (err)
		return err;
	find_in_sections(elf);
	elf_symbols__init(elf);
	return 0;
}

/* ── in a child ──────────────────────────────────────────────────────────────────────────── */

struct heads_out {
	struct elf_heads heads;
	Elf64_Shdr sections[ELF_MAX_SECTIONS];
};

static int parse_here(void *ctx, void *ret_out)
{
	/* a private copy, also outside of a child */
	struct elf_file elf = *(const struct elf_file *)ctx;
	struct heads_out *out = ret_out;
	int err = elf_heads__parse(&elf);

	if (!err) {
		out->heads = elf.heads;
		if (elf.heads.n_sections)
			memcpy(out->sections, elf.sections,
			       elf.heads.n_sections * sizeof(*elf.sections));
	}
	free(elf.sections);
	return err;
}

static bool in_file(struct elf_range range, uint64_t size)
{
	return range.offset <= size && range.size <= size - range.offset;
}

static bool is_hex(const char *text, size_t size)
{
	size_t len = strnlen(text, size);

	return len < size && strspn(text, "0123456789abcdef") == len;
}

static bool segment_is_sound(const struct elf_segment *s, uint64_t size)
{
	uint64_t end;

	return in_file((struct elf_range){s->offset, s->filesz}, size) && s->filesz <= s->memsz &&
	       !__builtin_add_overflow(s->vaddr, s->memsz, &end);
}

bool elf_heads__check(const struct elf_heads *h, uint64_t size)
{
	if (h->n_segments == 0 || h->n_segments > ELF_MAX_SEGMENTS ||
	    h->n_sections > ELF_MAX_SECTIONS || !is_hex(h->build_id, sizeof(h->build_id)) ||
	    (h->type != ET_EXEC && h->type != ET_DYN) || !in_file(h->section_names, size) ||
	    !in_file(h->dynamic, size))
		return false;
	for (size_t i = 0; i < h->n_segments; i++)
		if (!segment_is_sound(&h->segments[i], size))
			return false;
	for (size_t i = 0; i < ARRAY_SIZE(h->symtabs); i++)
		if (!in_file(h->symtabs[i].syms, size) || !in_file(h->symtabs[i].strs, size) ||
		    h->symtabs[i].syms.size / sizeof(Elf64_Sym) > ELF_MAX_SYMBOLS)
			return false;
	return in_file(h->relocs[0], size) && in_file(h->relocs[1], size);
}

static int take(struct elf_file *elf, const struct heads_out *out)
{
	size_t n = out->heads.n_sections;

	if (!elf_heads__check(&out->heads, elf->size))
		return -EINVAL;
	elf->sections = n ? malloc(n * sizeof(*elf->sections)) : NULL;
	if (n && !elf->sections)
		return -ENOMEM;
	if (n)
		memcpy(elf->sections, out->sections, n * sizeof(*elf->sections));
	elf->heads = out->heads;
	return 0;
}

int elf_heads__parse_aside(struct elf_file *elf)
{
	void *out = NULL;
	int err = elf__aside(elf, parse_here, elf, sizeof(struct heads_out), &out);

	if (!err)
		err = take(elf, out);
	confine__free_out(out, sizeof(struct heads_out));
	return err;
}
