/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elf_aside: what parses a file runs in a process without rights. */
#include <errno.h>

#include "base/base.h"
#include "confine/confine.h"
#include "elf_priv.h"

/* The largest programs take half a second on an idle processor. */
#define ASIDE_MS     4000
#define ASIDE_MEMORY (1ULL << 30)
/* What reading an honest megabyte takes. The holes of a sparse file are none. */
#define NS_PER_MB 2000000ULL

uid_t elf__user(const struct elf_file *elf)
{
	return elf->user;
}

int elf__aside(const struct elf_file *elf, int (*fn)(void *ctx, void *out), void *ctx, size_t size,
	       void **ret_out)
{
	const struct confine how = {
		.name = "safescoped:elf", .memory = ASIDE_MEMORY, .user = elf->user};

	return confine__aside(&how, ASIDE_MS, CONFINE_HONEST_NS + (elf->stored >> 20) * NS_PER_MB,
			      fn, ctx, size, ret_out);
}
