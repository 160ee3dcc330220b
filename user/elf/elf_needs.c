/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elf_needs: the libraries that the dynamic linker has to load, and where it looks for them. */
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "confine/confine.h"
#include "elf_priv.h"

/* How much of the string table is searched: the largest programs have one or two megabytes. */
#define STRINGS_MOST (8U << 20)

static struct elf_range strings_of(const struct elf_file *elf)
{
	struct elf_range strs = elf->heads.symtabs[ELF_DYNSYM].strs;

	strs.size = MIN(strs.size, (uint64_t)STRINGS_MOST);
	return strs;
}

bool elf__mentions(const struct elf_file *elf, const char *text)
{
	const struct elf_range strs = strings_of(elf);

	return strs.size && memmem(elf->data + strs.offset, strs.size, text, strlen(text));
}

/* Copies the string at an offset of the table; false: none there, or too long. */
static bool copy_string(const struct elf_file *elf, uint64_t at, char *out, size_t size)
{
	const struct elf_range strs = strings_of(elf);
	const char *s;
	size_t most, len;

	if (at >= strs.size)
		return false;
	s = (const char *)elf->data + strs.offset + at;
	most = MIN((uint64_t)size, strs.size - at);
	len = strnlen(s, most);
	if (!len || len == most)
		return false;
	memcpy(out, s, len);
	out[len] = '\0';
	return true;
}

struct job {
	const struct elf_file *elf;
	const char *begins;
};

/* In the child. */
static int read_needs(void *ctx, void *ret_out)
{
	const struct job *job = ctx;
	const struct elf_file *elf = job->elf;
	struct elf_needs *needs = ret_out;
	char name[sizeof(needs->library)];
	Elf64_Dyn dyn;

	for (size_t i = 0; i < ELF_MAX_DYNAMIC && i < elf->heads.dynamic.size / sizeof(dyn); i++) {
		if (!elf_get(elf, elf->heads.dynamic.offset + i * sizeof(dyn), &dyn, sizeof(dyn)) ||
		    dyn.d_tag == DT_NULL)
			break;
		if (dyn.d_tag == DT_NEEDED && !needs->library[0] &&
		    copy_string(elf, dyn.d_un.d_val, name, sizeof(name)) &&
		    !strncmp(name, job->begins, strlen(job->begins)))
			memcpy(needs->library, name, sizeof(name));
		else if (dyn.d_tag == DT_RUNPATH || (dyn.d_tag == DT_RPATH && !needs->path[0]))
			copy_string(elf, dyn.d_un.d_val, needs->path, sizeof(needs->path));
	}
	return needs->library[0] ? 0 : -ENOENT;
}

int elf__needs(const struct elf_file *elf, const char *begins, struct elf_needs *ret_needs)
{
	struct job job = {.elf = elf, .begins = begins};
	struct elf_needs *needs;
	void *out;
	int err;

	if (!elf__mentions(elf, begins))
		return -ENOENT;
	err = elf__aside(elf, read_needs, &job, sizeof(*needs), &out);
	if (err)
		return err;
	needs = out;
	needs->library[sizeof(needs->library) - 1] = '\0';
	needs->path[sizeof(needs->path) - 1] = '\0';
	/* it becomes the last component of a path */
	if (strchr(needs->library, '/'))
		err = -EIO;
	else
		*ret_needs = *needs;
	confine__free_out(out, sizeof(*needs));
	return err;
}
