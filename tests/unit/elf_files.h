/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elf_files: opens an ELF file by its path and finds its functions. Include after cmocka.h. */
#ifndef SAFESCOPED_TEST_ELF_FILES_H
#define SAFESCOPED_TEST_ELF_FILES_H

#include <fcntl.h>

#include "elf/elf.h"

static inline struct elf_file *open_path(const char *path)
{
	struct elf_file *elf = NULL;

	assert_int_equal(elf__open_fd(open(path, O_RDONLY | O_CLOEXEC), path, &elf), 0);
	assert_non_null(elf);
	return elf;
}

static inline uint64_t address(const struct elf_file *elf, const char *name)
{
	struct elf_sym sym;

	assert_int_equal(elf__find_symbol(elf, name, &sym, NULL), 0);
	return sym.value;
}

#endif
