/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elf_aside: runs parsers of a file in a process without rights. */
#include <errno.h>

#include "base/base.h"
#include "confine/confine.h"
#include "elf_priv.h"

/* The largest programs take half a second on an idle processor. */
#define ASIDE_MS     4000
#define ASIDE_MEMORY (1ULL << 30)
/* Time to read an honest megabyte; holes of a sparse file do not count. */
#define NS_PER_MB 2000000ULL

uid_t elf__user(const struct elf_file *elf)
{
	return elf->user;
}

static struct confine how_of(const struct elf_file *elf)
{
	return (struct confine){
		.name = "safescoped:elf", .memory = ASIDE_MEMORY, .user = elf->user};
}

static uint64_t honest_ns(const struct elf_file *elf)
{
	return CONFINE_HONEST_NS + (elf->stored >> 20) * NS_PER_MB;
}

int elf__aside(const struct elf_file *elf, int (*fn)(void *ctx, void *out), void *ctx, size_t size,
	       void **ret_out)
{
	const struct confine how = how_of(elf);

	return confine__aside(&how, ASIDE_MS, honest_ns(elf), fn, ctx, size, ret_out);
}

int elf__start(const struct elf_file *elf, int (*fn)(void *ctx, void *out), void *ctx, size_t size,
	       struct confine_job **ret_job)
{
	const struct confine how = how_of(elf);

	return confine__start(&how, ASIDE_MS, fn, ctx, size, ret_job);
}

int elf__await(const struct elf_file *elf, struct confine_job *job, void **ret_out)
{
	return confine_job__await(job, elf->user, honest_ns(elf), ret_out);
}

bool elf_once__is_due(const struct elf_once *once)
{
	return !once->done ||
	       (retry__is_worth_it(once->err) && !retry__waits(&once->again, time__monotonic_ns()));
}

void elf_once__end(struct elf_once *once, int err)
{
	/* after -EBUSY there was no time, so it counts as not read */
	once->done = err != -EBUSY;
	once->err = err;
	if (retry__is_worth_it(err))
		retry__begin(&once->again, time__monotonic_ns(), RETRY_NS, RETRY_LONGEST_NS);
}
