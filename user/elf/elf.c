/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elf: opens a file, and gives access to its headers. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "confine/confine.h"
#include "elf_priv.h"

#define SPARSE_MIN_SIZE (32LL << 20)
#define SPARSE_PART	16

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
 * A large file that is nearly all holes: no linker creates one, and reading it takes the time and
 * the page cache of a large file. Compressing file systems shrink executables by far less.
 */
static bool is_nearly_empty(const struct stat *st)
{
	return st->st_size >= SPARSE_MIN_SIZE && st->st_blocks < st->st_size / 512 / SPARSE_PART;
}

/*
 * Root is trusted (see user/README.md, "Threat model"): a file that only root can have written is
 * no attack, and most of what a host runs is such a file. On a file system that somebody else
 * brought, he decided who owns the file.
 */
static bool is_roots(const struct stat *st, enum elf_source source)
{
	return source == ELF_OF_HOST && st->st_uid == 0 && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/*
 * `account`: of the process that maps it, or CONFINE_NOBODY. Root's own files are charged to root,
 * which has no limit; a file that a process of root's maps is charged to its owner.
 */
static uid_t payer(const struct stat *st, bool roots, uid_t account)
{
	if (roots)
		return 0;
	return account && (account != CONFINE_NOBODY || !st->st_uid) ? account : st->st_uid;
}

static int open_fd(int fd, const char *name, enum elf_source source, uid_t account,
		   struct elf_file **ret_elf)
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
	elf->roots = is_roots(&st, source);
	elf->user = source == ELF_COPY ? account : payer(&st, elf->roots, account);
	elf->stored = MIN((uint64_t)st.st_blocks * 512, (uint64_t)st.st_size);
	err = elf_map__open(fd, (size_t)st.st_size, &elf->map);
	if (err)
		goto out;
	elf->data = elf->map.data;
	elf->size = elf->map.size;
	err = elf->roots ? elf_heads__parse(elf) : elf_heads__parse_aside(elf);
	/* the DWARF reader modifies it, in a private mapping */
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

int elf__open_fd(int fd, const char *name, struct elf_file **ret_elf)
{
	return open_fd(fd, name, ELF_OF_ANYBODY, CONFINE_NOBODY, ret_elf);
}

int elf__open_fd_for(int fd, const char *name, enum elf_source source, uid_t account,
		     struct elf_file **ret_elf)
{
	return open_fd(fd, name, source, account, ret_elf);
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
	elf->roots = true;
	err = elf_heads__parse(elf);
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
		free(elf->lazy->exports);
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
	return elf->heads.n_sections > 1;
}

bool elf__is_pie_or_dso(const struct elf_file *elf)
{
	return elf->heads.type == ET_DYN;
}

uint64_t elf__entry(const struct elf_file *elf)
{
	return elf->heads.entry;
}

bool elf__build_id(const struct elf_file *elf, char out[41])
{
	memcpy(out, elf->heads.build_id, sizeof(elf->heads.build_id));
	return out[0] != '\0';
}

bool elf__is_cut(const struct elf_file *elf)
{
	return elf->heads.is_cut;
}

size_t elf__n_segments(const struct elf_file *elf)
{
	return elf->heads.n_segments;
}

const struct elf_segment *elf__segment(const struct elf_file *elf, size_t i)
{
	return i < elf->heads.n_segments ? &elf->heads.segments[i] : NULL;
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
	if (!elf->heads.has_tls)
		return false;
	*ret_memsz = elf->heads.tls_memsz;
	*ret_align = elf->heads.tls_align;
	return true;
}

/* Whether the section's name begins with these bytes; if they include the NUL, it is the whole
 * name. */
static bool is_named(const struct elf_file *elf, const Elf64_Shdr *s, const char *begins,
		     size_t len)
{
	const char *names = (const char *)elf->data + elf->heads.section_names.offset;

	return s->sh_type != SHT_NULL && s->sh_name < elf->heads.section_names.size &&
	       elf->heads.section_names.size - s->sh_name >= len &&
	       memcmp(names + s->sh_name, begins, len) == 0;
}

static void set_section(const struct elf_file *elf, const Elf64_Shdr *s,
			struct elf_section *ret_section)
{
	ret_section->vaddr = s->sh_addr;
	ret_section->offset = s->sh_offset;
	ret_section->size = s->sh_size;
	ret_section->data = NULL;
	if (s->sh_type != SHT_NOBITS && !(s->sh_flags & SHF_COMPRESSED) &&
	    elf_in_file(elf, s->sh_offset, s->sh_size))
		ret_section->data = elf->data + s->sh_offset;
}

int elf__section(const struct elf_file *elf, const char *name, struct elf_section *ret_section)
{
	for (size_t i = 0; i < elf->heads.n_sections; i++) {
		if (!is_named(elf, &elf->sections[i], name, strlen(name) + 1))
			continue;
		set_section(elf, &elf->sections[i], ret_section);
		return 0;
	}
	return -ENOENT;
}

size_t elf__constants(const struct elf_file *elf, const char *begins, struct elf_section *sections,
		      size_t max)
{
	const uint64_t kind = SHF_ALLOC | SHF_WRITE | SHF_EXECINSTR;
	size_t n = 0;

	for (size_t i = 0; i < elf->heads.n_sections; i++) {
		const Elf64_Shdr *s = &elf->sections[i];
		struct elf_section section;

		if (s->sh_type != SHT_PROGBITS || (s->sh_flags & kind) != SHF_ALLOC ||
		    !is_named(elf, s, begins, strlen(begins)))
			continue;
		set_section(elf, s, &section);
		if (!section.data)
			continue;
		if (n < max)
			sections[n] = section;
		n++;
	}
	return n;
}
