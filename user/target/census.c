/* SPDX-License-Identifier: GPL-2.0-or-later */
/* census: a heap census of the process, taken in a killable child (census/census.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "census/census.h"
#include "names/names.h"
#include "process/freeze.h"
#include "process/mem.h"
#include "target_priv.h"

#include "mem.bpf.h"
#include "stg.bpf.h"
#include "rts.bpf.h"
#include "heap.bpf.h"

/* Limit on bytes of blocks that are read; beyond it a part of the blocks stands for all. */
#define MOST_BYTES (256ULL << 20)
/* A constructor's table starts with the offset of its description, followed by the profiler's two
 * words if profiled (rts/include/rts/storage/InfoTables.h, StgConInfoTable): a signed 32-bit
 * number, and 32 unused bits. Some linkers put the text below the table. */
#define CON_DESC	  24
#define CON_DESC_PROFILED 40

struct census_mem {
	struct mem mem; /* first: the walker's handle */
	pid_t pid;
};

struct census_job {
	struct census_mem mem;
	struct census_opts opts;
	struct wire_layout layout;
	uint64_t cap, mut_lists[CHECK_MAX_CAPS];
};

struct census_look {
	struct guard *guard;
	struct freeze *freeze; /* NULL: the process runs on */
};

static int read_mem(struct mem *mem, void *dst, u32 size, u64 addr)
{
	return mem__read(((struct census_mem *)mem)->pid, addr, dst, size);
}

static int read_heap(void *ctx, uint64_t addr, void *buf, size_t len)
{
	return mem__read(((struct census_job *)ctx)->mem.pid, addr, buf, len);
}

/* ── in the child ────────────────────────────────────────────────────────────────────────── */

static int find_generations(struct census_job *job)
{
	uint64_t gen = heap_youngest(&job->mem.mem, &job->layout, job->cap), to;

	while (gen && job->opts.n_generations < CENSUS_MAX_GENERATIONS) {
		job->opts.generations[job->opts.n_generations++] = gen;
		if (mem__read_u64(job->mem.pid, gen + HEAP_GEN_TO, &to) < 0)
			return -EFAULT;
		if (to == gen)
			return 0;
		gen = to;
	}
	return -EFAULT;
}

/* Reads as much as fits; "" if there is no description. */
static void read_description(const struct census_job *job, uint64_t info, char *text, size_t size)
{
	uint64_t at = info - (job->opts.profiled ? CON_DESC_PROFILED : CON_DESC);
	int32_t offset;
	/* the next page may not be mapped */
	size_t len, first;

	text[0] = '\0';
	if (mem__read(job->mem.pid, at, &offset, sizeof(offset)) < 0 || !offset)
		return;
	at = info + (uint64_t)(int64_t)offset;
	first = MIN(size - 1, (size_t)(4096 - at % 4096));
	if (mem__read(job->mem.pid, at, text, first) < 0)
		first = 0;
	else if (first < size - 1 && !memchr(text, '\0', first) &&
		 mem__read(job->mem.pid, at + first, text + first, size - 1 - first) == 0)
		first = size - 1;
	text[first] = '\0';
	len = strlen(text);
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] <= ' ')
			text[i] = '\0';
}

static bool is_constructor(uint8_t type)
{
	return type >= CLOSURE_CONSTR && type <= CLOSURE_CONSTR_NOCAF;
}

static void put_out(const struct census_job *job, const struct census *c, struct target_census *out)
{
	out->blocks_bytes = c->blocks_bytes;
	out->walked_bytes = c->walked_bytes;
	out->counted_bytes = c->counted_bytes;
	out->gap_bytes = c->gap_bytes;
	out->unknown_bytes = c->unknown_bytes;
	out->large_bytes = c->large_bytes;
	out->compact_bytes = c->compact_bytes;
	out->pinned_bytes = c->pinned_bytes;
	out->mutable_bytes = c->mutable_bytes;
	out->cut = c->cut;
	for (uint32_t i = 0; i < c->n; i++) {
		const struct census_entry *from = &c->entries[i];
		struct target_census_entry *to = &out->entries[out->n];

		if (out->n == TARGET_CENSUS_MAX || !from->info) {
			out->others_count += from->count;
			out->others_bytes += from->bytes;
			continue;
		}
		out->n++;
		to->info = from->info;
		to->count = from->count;
		to->bytes = from->bytes;
		to->type = from->type;
		if (is_constructor(from->type))
			read_description(job, from->info, to->constructor, sizeof(to->constructor));
	}
}

static int run(void *ctx, void *out)
{
	struct census_job *job = ctx;
	struct census *census = malloc(sizeof(*census));
	int err = census ? find_generations(job) : -ENOMEM;

	job->opts.ctx = job;
	job->opts.mut_lists = job->mut_lists;
	if (!err)
		err = census__walk(&job->opts, census);
	if (!err)
		put_out(job, census, out);
	free(census);
	return err;
}

/* ── outside ─────────────────────────────────────────────────────────────────────────────── */

/* Merges adjacent mappings of code; beyond CENSUS_MAX_RANGES, gaps are included as well. */
static void add_code(struct census_opts *opts, const struct image_map *map)
{
	struct census_range *last = opts->n_code ? &opts->code[opts->n_code - 1] : NULL;

	if (!map->image)
		return;
	if (last && (last->end == map->start || opts->n_code == CENSUS_MAX_RANGES))
		last->end = map->end;
	else
		opts->code[opts->n_code++] = (struct census_range){map->start, map->end};
}

/* Stops the process; if that is not possible, the census is taken while it runs on. */
static void freeze(struct target *t, int most_ms, struct census_look *look)
{
	int err = most_ms ? freeze__start(t->info.pid, most_ms, &look->freeze) : 0;

	if (!err || err == -ESRCH || t->no_freeze)
		return;
	t->no_freeze = true;
	log_warn("pid %d: cannot stop it for its heap census, which is taken while it runs: %s",
		 t->info.pid,
		 err == -EPERM ? "another process traces it, or a security module or a system call "
				 "filter forbids it"
			       : strerror(-err));
}

int target__start_census(struct target *t, int timeout_ms, int freeze_ms)
{
	struct census_job job = {
		.mem = {.mem = {.read = read_mem}, .pid = t->info.pid},
		.opts = {.read = read_heap, .profiled = t->rts.profiled, .most_bytes = MOST_BYTES},
		.layout = t->info.wire.layout,
		.cap = t->check.caps[0],
	};
	struct census_look *look;
	int err;

	if (!t->info.layout_checked)
		return -EAGAIN;
	if (!heap_known(&job.layout) || !t->check.n_caps)
		return -ENOTSUP;
	for (uint32_t i = 0; i < t->check.n_caps; i++)
		job.mut_lists[job.opts.n_mut_lists++] =
			t->check.caps[i] + job.layout.cap_run_queue + HEAP_CAP_MUT_LISTS;
	job.opts.stack_size = job.layout.stack_size;
	job.opts.stack_stack = job.layout.stack_stack;
	for (size_t i = 0; i < t->images.n_maps; i++)
		add_code(&job.opts, &t->images.maps[i]);
	look = calloc(1, sizeof(*look));
	if (!look)
		return -ENOMEM;
	target__cancel(t);
	freeze(t, freeze_ms, look);
	err = guard__start(t->info.pid, GUARD_MEMORY, timeout_ms, run, &job,
			   sizeof(struct target_census), &look->guard);
	if (err)
		census_look__free(look);
	else
		t->census = look;
	return err;
}

/* Removes the hash from "package-version-hash:Module.Name". */
static void tidy_name(char *name)
{
	char *colon = strchr(name, ':'), *end = name;

	if (!colon)
		return;
	*colon = '\0';
	names__drop_hash(name);
	end += strlen(name);
	*colon = ':';
	memmove(end, colon, strlen(colon) + 1);
}

/* The child has read hostile memory, so its result is bounded once more. */
static void bound(struct target_census *c)
{
	c->n = MIN(c->n, (uint32_t)TARGET_CENSUS_MAX);
	for (uint32_t i = 0; i < c->n; i++) {
		c->entries[i].constructor[sizeof(c->entries[i].constructor) - 1] = '\0';
		tidy_name(c->entries[i].constructor);
	}
}

int target__take_census(struct target *t, struct target_census **ret_census)
{
	struct target_census *census = NULL;
	uint64_t frozen_ns = 0;
	bool whole = false;
	void *out;
	int err;

	if (!t->census)
		return -EINVAL;
	err = guard__take(t->census->guard, &out);
	if (err == -EINPROGRESS)
		return err;
	t->census->guard = NULL;
	freeze__end(t->census->freeze, &frozen_ns, &whole);
	t->census->freeze = NULL;
	census_look__free(t->census);
	t->census = NULL;
	if (err)
		return err;
	census = malloc(sizeof(*census));
	if (census) {
		memcpy(census, out, sizeof(*census));
		census->frozen_ns = frozen_ns;
		census->frozen_whole = whole;
		bound(census);
		*ret_census = census;
	}
	mem__guard_free(out, sizeof(*census));
	return census ? 0 : -ENOMEM;
}

int census_look__fd(const struct census_look *look)
{
	return guard__fd(look->guard);
}

void census_look__free(struct census_look *look)
{
	if (!look)
		return;
	freeze__free(look->freeze);
	guard__free(look->guard);
	free(look);
}
