/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * modules: starts a child that finds the modules' code, checks its result, and looks up addresses.
 */
#include "modules_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/search.h"
#include "confine/confine.h"
#include "elf/elf.h"
#include "modules_read_priv.h"

struct modules {
	struct modules_raw *pieces; /* ascending */
	char *strings;
	size_t n;
};

/* At the start of the child's shared memory; followed by the pieces, then the strings. */
struct shared {
	uint32_t n, strings_len;
};

#define PIECES_AT   64
#define STRINGS_AT  (PIECES_AT + (size_t)MODULES_MAX * sizeof(struct modules_raw))
#define SHARED_SIZE (STRINGS_AT + MODULES_MAX_STRINGS)

_Static_assert(sizeof(struct shared) <= PIECES_AT, "no room for the head");

struct job {
	const struct elf_file *elf;
	bool profiled;
};

/* In the child. */
static int run(void *ctx, void *shared)
{
	const struct job *job = ctx;
	struct shared *head = shared;
	struct modules_out out = {
		.pieces = (struct modules_raw *)((char *)shared + PIECES_AT),
		.strings = (char *)shared + STRINGS_AT,
		.max_pieces = MODULES_MAX,
		.max_strings = MODULES_MAX_STRINGS,
	};
	int err = modules_read(job->elf, job->profiled, &out);

	head->n = out.n;
	head->strings_len = out.strings_len;
	return err;
}

bool modules__check(const struct modules_raw *raw, size_t n, const char *strings, size_t len)
{
	uint64_t end = 0;

	if (!len || strings[len - 1])
		return false;
	for (size_t i = 0; i < n; i++) {
		if (raw[i].start < end || raw[i].end <= raw[i].start ||
		    raw[i].base > raw[i].start || raw[i].uncertain > 1 || raw[i].pad ||
		    raw[i].package >= len || raw[i].module >= len)
			return false;
		end = raw[i].end;
	}
	return true;
}

static int take(const struct shared *head, struct modules **ret_modules)
{
	const struct modules_raw *pieces = (const void *)((const char *)head + PIECES_AT);
	const char *strings = (const char *)head + STRINGS_AT;
	struct modules *m;

	if (head->n > MODULES_MAX || head->strings_len > MODULES_MAX_STRINGS ||
	    !modules__check(pieces, head->n, strings, head->strings_len))
		return -EIO;
	if (!head->n)
		return -ENOENT;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->n = head->n;
	m->pieces = malloc(m->n * sizeof(*pieces));
	m->strings = malloc(head->strings_len);
	if (!m->pieces || !m->strings) {
		modules__free(m);
		return -ENOMEM;
	}
	memcpy(m->pieces, pieces, m->n * sizeof(*pieces));
	memcpy(m->strings, strings, head->strings_len);
	*ret_modules = m;
	return 0;
}

/* Prints where each piece lies, for comparison with a file that has symbols. */
static void log_pieces(const struct elf_file *elf, const struct modules *m)
{
	if (log__level() < LOG_LVL_DEBUG)
		return;
	for (size_t i = 0; i < m->n; i++) {
		const struct modules_raw *p = &m->pieces[i];

		log_debug("%s: code of %s:%s at 0x%llx, counted from 0x%llx%s", elf__name(elf),
			  m->strings + p->package, m->strings + p->module,
			  (unsigned long long)p->start, (unsigned long long)p->base,
			  p->uncertain ? ", uncertain" : "");
	}
}

/* Also frees what the child shared. */
static int take_out(const struct elf_file *elf, void *shared, struct modules **ret_modules)
{
	int err = take(shared, ret_modules);

	confine__free_out(shared, SHARED_SIZE);
	if (!err)
		log_pieces(elf, *ret_modules);
	return err;
}

int modules__new(const struct elf_file *elf, bool profiled, struct modules **ret_modules)
{
	struct job job = {.elf = elf, .profiled = profiled};
	void *shared;
	int err = elf__aside(elf, run, &job, SHARED_SIZE, &shared);

	return err ? err : take_out(elf, shared, ret_modules);
}

int modules__start(const struct elf_file *elf, bool profiled, struct confine_job **ret_job)
{
	struct job job = {.elf = elf, .profiled = profiled};

	/* the child has its own copy of `job` */
	return elf__start(elf, run, &job, SHARED_SIZE, ret_job);
}

int modules__await(const struct elf_file *elf, struct confine_job *job,
		   struct modules **ret_modules)
{
	void *shared;
	int err = elf__await(elf, job, &shared);

	return err ? err : take_out(elf, shared, ret_modules);
}

void modules__free(struct modules *modules)
{
	if (!modules)
		return;
	free(modules->pieces);
	free(modules->strings);
	free(modules);
}

static struct modules_hit hit_of(const struct modules *modules, const struct modules_raw *piece)
{
	return (struct modules_hit){
		.package = modules->strings + piece->package,
		.module = modules->strings + piece->module,
		.base = piece->base,
		.uncertain = piece->uncertain,
	};
}

int modules__find(const struct modules *modules, uint64_t vaddr, struct modules_hit *ret_hit)
{
	size_t after = search__first(modules->n, i, modules->pieces[i].start > vaddr);

	if (!after || modules->pieces[after - 1].end <= vaddr)
		return -ENOENT;
	*ret_hit = hit_of(modules, &modules->pieces[after - 1]);
	return 0;
}

void modules__each(const struct modules *modules,
		   void (*meet)(void *ctx, const struct modules_hit *piece), void *ctx)
{
	for (size_t i = 0; i < modules->n; i++) {
		struct modules_hit hit = hit_of(modules, &modules->pieces[i]);

		meet(ctx, &hit);
	}
}
