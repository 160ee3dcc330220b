/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elf: opening a file, its segments, sections and notes. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "arch.h"
#include "confine/confine.h"
#include "elf_priv.h"

#define SPARSE_MIN_SIZE (32LL << 20)
#define SPARSE_PART	16

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

static void add_segment(struct elf_file *elf, const Elf64_Phdr *p)
{
	struct elf_segment *seg;
	struct elf_range range = clip(elf, p->p_offset, p->p_filesz);
	uint64_t end;

	if (elf->n_segments == ELF_MAX_SEGMENTS || p->p_memsz == 0 ||
	    __builtin_add_overflow(p->p_vaddr, p->p_memsz, &end))
		return;
	seg = &elf->segments[elf->n_segments++];
	seg->vaddr = p->p_vaddr;
	seg->memsz = p->p_memsz;
	seg->offset = range.offset;
	seg->filesz = MIN(range.size, p->p_memsz);
	seg->exec = (p->p_flags & PF_X) != 0;
	seg->write = (p->p_flags & PF_W) != 0;
}

static int read_segments(struct elf_file *elf, const Elf64_Ehdr *h)
{
	size_t i;

	if (h->e_phentsize != sizeof(Elf64_Phdr) || h->e_phnum > ELF_MAX_PHDRS)
		return -EINVAL;
	for (i = 0; i < h->e_phnum; i++) {
		Elf64_Phdr p;
		uint64_t at;

		if (__builtin_add_overflow(h->e_phoff, i * sizeof(p), &at) ||
		    !elf_get(elf, at, &p, sizeof(p)))
			break;
		if (p.p_type == PT_LOAD) {
			add_segment(elf, &p);
		} else if (p.p_type == PT_NOTE && elf->n_notes < ARRAY_SIZE(elf->notes)) {
			elf->note_aligns[elf->n_notes] = p.p_align;
			elf->notes[elf->n_notes++] = clip(elf, p.p_offset, p.p_filesz);
		} else if (p.p_type == PT_DYNAMIC) {
			elf->dynamic = clip(elf, p.p_offset, p.p_filesz);
		} else if (p.p_type == PT_GNU_EH_FRAME) {
			elf->eh_frame_hdr = p.p_vaddr;
		} else if (p.p_type == PT_TLS) {
			elf->has_tls = true;
			elf->tls_memsz = p.p_memsz;
			elf->tls_align = p.p_align;
		}
	}
	return elf->n_segments > 0 ? 0 : -EINVAL;
}

/* Sections are a help, not a need: a file whose section table is damaged has none. */
static int read_sections(struct elf_file *elf, const Elf64_Ehdr *h)
{
	uint64_t n = h->e_shnum, names = h->e_shstrndx;
	Elf64_Shdr first, *names_section;

	if (h->e_shoff == 0 || h->e_shentsize != sizeof(Elf64_Shdr) ||
	    !elf_get(elf, h->e_shoff, &first, sizeof(first)))
		return 0;
	/* Numbers that do not fit into the header stand in section 0. */
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
	elf->n_sections = n;
	if (names < n) {
		names_section = &elf->sections[names];
		if (names_section->sh_type == SHT_STRTAB)
			elf->section_names =
				clip(elf, names_section->sh_offset, names_section->sh_size);
	}
	return 0;
}

static int parse(struct elf_file *elf)
{
	Elf64_Ehdr h;
	int err;

	err = check_header(elf, &h);
	if (err)
		return err;
	elf->type = h.e_type;
	err = read_segments(elf, &h);
	if (err)
		return err;
	err = read_sections(elf, &h);
	if (err)
		return err;
	elf_symbols__init(elf);
	return 0;
}

static int new_elf(const char *name, struct elf_file **ret_elf)
{
	struct elf_file *elf = calloc(1, sizeof(*elf));

	if (!elf)
		return -ENOMEM;
	elf->map.slot = elf->map.fd = -1;
	elf->name = strndup(name ? name : "", ELF_MAX_NAME);
	elf->lazy = calloc(1, sizeof(*elf->lazy));
	if (!elf->name || !elf->lazy) {
		elf__free(elf);
		return -ENOMEM;
	}
	*ret_elf = elf;
	return 0;
}

static bool has_debug_info(const struct elf_file *elf)
{
	struct elf_section section;

	return elf__section(elf, ".debug_info", &section) == 0 ||
	       elf__section(elf, ".zdebug_info", &section) == 0;
}

/*
 * A large file that is nearly all holes: no linker makes one, and reading it takes the time and the
 * page cache of a large file. File systems that compress make executables smaller by far less.
 */
static bool is_nearly_empty(const struct stat *st)
{
	return st->st_size >= SPARSE_MIN_SIZE && st->st_blocks < st->st_size / 512 / SPARSE_PART;
}

int elf__open_fd(int fd, const char *name, struct elf_file **ret_elf)
{
	struct elf_file *elf = NULL;
	struct stat st;
	int err;

	if (fd < 0)
		return -EBADF;
	if (fstat(fd, &st)) {
		err = -errno;
		goto out;
	}
	if (!S_ISREG(st.st_mode)) {
		err = -EINVAL;
		goto out;
	}
	if (st.st_size <= 0) {
		err = -ENOEXEC;
		goto out;
	}
	if ((uint64_t)st.st_size > ELF_MAX_FILE) {
		err = -EFBIG;
		goto out;
	}
	if (is_nearly_empty(&st)) {
		err = -EFBIG;
		goto out;
	}
	err = new_elf(name, &elf);
	if (err)
		goto out;
	elf->user = st.st_uid;
	elf->stored = MIN((uint64_t)st.st_blocks * 512, (uint64_t)st.st_size);
	err = elf_map__open(fd, (size_t)st.st_size, &elf->map);
	if (err)
		goto out;
	elf->data = elf->map.data;
	elf->size = elf->map.size;
	err = parse(elf);
	/* the reader of DWARF changes it, in a copy */
	if (!err && has_debug_info(elf)) {
		elf->map.fd = fd;
		fd = -1;
	}
out:
	fd__close(&fd);
	if (err)
		elf__free(elf);
	else
		*ret_elf = elf;
	return err;
}

int elf__open_bytes(const void *data, size_t size, const char *name, struct elf_file **ret_elf)
{
	struct elf_file *elf = NULL;
	int err;

	if (size > ELF_MAX_FILE)
		return -EFBIG;
	err = new_elf(name, &elf);
	if (err)
		return err;
	elf->data = data;
	elf->size = elf->stored = size;
	elf->user = CONFINE_NOBODY;
	err = parse(elf);
	if (err)
		elf__free(elf);
	else
		*ret_elf = elf;
	return err;
}

void elf__free(struct elf_file *elf)
{
	if (!elf)
		return;
	if (elf->lazy) {
		free(elf->lazy->got);
		free(elf->lazy->fdes);
		free(elf->lazy);
	}
	free(elf->sections);
	free(elf->name);
	elf_map__free(&elf->map);
	free(elf);
}

int elf__peek(int fd, uint16_t *ret_machine, uint8_t *ret_class)
{
	uint8_t h[offsetof(Elf64_Ehdr, e_version)];
	const uint8_t *machine = h + offsetof(Elf64_Ehdr, e_machine);
	ssize_t n;

	do {
		n = pread(fd, h, sizeof(h), 0);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if ((size_t)n != sizeof(h) || memcmp(h, ELFMAG, SELFMAG) != 0)
		return -ENOEXEC;
	if (h[EI_DATA] == ELFDATA2MSB)
		*ret_machine = (uint16_t)(machine[0] << 8 | machine[1]);
	else
		*ret_machine = (uint16_t)(machine[1] << 8 | machine[0]);
	*ret_class = h[EI_CLASS];
	return 0;
}

const char *elf__name(const struct elf_file *elf)
{
	return elf->name;
}

int elf__writable(const struct elf_file *elf, void **ret_data, size_t *ret_size)
{
	int err = elf_map__make_writable(&elf->map);

	if (err < 0)
		return err;
	*ret_data = (void *)elf->data;
	*ret_size = elf->size;
	return 0;
}

bool elf__has_sections(const struct elf_file *elf)
{
	return elf->n_sections > 1;
}

bool elf__is_pie_or_dso(const struct elf_file *elf)
{
	return elf->type == ET_DYN;
}

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

bool elf__build_id(const struct elf_file *elf, char out[41])
{
	size_t i;

	for (i = 0; i < elf->n_notes; i++) {
		if (find_build_id(elf, elf->notes[i], elf->note_aligns[i], out))
			return true;
	}
	/* A separate debug file's segments may point anywhere: its sections have it. */
	for (i = 0; i < elf->n_sections; i++) {
		const Elf64_Shdr *s = &elf->sections[i];

		if (s->sh_type == SHT_NOTE &&
		    find_build_id(elf, clip(elf, s->sh_offset, s->sh_size), s->sh_addralign, out))
			return true;
	}
	return false;
}

size_t elf__n_segments(const struct elf_file *elf)
{
	return elf->n_segments;
}

const struct elf_segment *elf__segment(const struct elf_file *elf, size_t i)
{
	return i < elf->n_segments ? &elf->segments[i] : NULL;
}

void elf__done_with(const struct elf_file *elf, uint64_t vaddr, size_t len)
{
	const uint8_t *at = elf__at(elf, vaddr, len);

	if (at)
		elf_map__drop(&elf->map, (size_t)(at - elf->data), len);
}

void elf__done(const struct elf_file *elf)
{
	elf_map__drop(&elf->map, 0, elf->size);
}

bool elf__tls(const struct elf_file *elf, uint64_t *ret_memsz, uint64_t *ret_align)
{
	if (!elf->has_tls)
		return false;
	*ret_memsz = elf->tls_memsz;
	*ret_align = elf->tls_align;
	return true;
}

int elf__section(const struct elf_file *elf, const char *name, struct elf_section *ret_section)
{
	const char *names = (const char *)elf->data + elf->section_names.offset;
	size_t len = strlen(name), i;

	for (i = 0; i < elf->n_sections; i++) {
		const Elf64_Shdr *s = &elf->sections[i];

		if (s->sh_type == SHT_NULL || s->sh_name >= elf->section_names.size ||
		    elf->section_names.size - s->sh_name <= len ||
		    memcmp(names + s->sh_name, name, len + 1) != 0)
			continue;
		ret_section->vaddr = s->sh_addr;
		ret_section->offset = s->sh_offset;
		ret_section->size = s->sh_size;
		ret_section->data = NULL;
		if (s->sh_type != SHT_NOBITS && !(s->sh_flags & SHF_COMPRESSED) &&
		    elf_in_file(elf, s->sh_offset, s->sh_size))
			ret_section->data = elf->data + s->sh_offset;
		return 0;
	}
	return -ENOENT;
}
