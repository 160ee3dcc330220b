/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where a thread keeps my_task. In an executable it is at a fixed offset below the thread pointer.
 * A library's block is reached through the thread's DTV, because a thread that existed before the
 * dlopen() has it on the heap; the loader has written the index in the DTV into the library's GOT.
 * Whatever is found counts only if the Tasks' own ids prove it.
 */
#include <string.h>

#include "base/base.h"
#include "check_tls_priv.h"
#include "process/mem.h"

#include "mem.bpf.h"
#include "rts.bpf.h"

/* How far below the thread pointer to search if no file has the length of the block. */
#define TLS_SCAN  4096
#define TLS_SLOTS 64
/* A runtime has a few words of thread-local data at most. */
#define TLS_BLOCK_MAX 512

struct tls_mem {
	struct mem mem; /* first: the walker's handle */
	pid_t pid;
};

struct tls_search {
	struct tls_mem mem;
	const struct rts *rts;
	const struct layout *l;
	const uint64_t *tasks;
	uint32_t n;
	struct check_tls best;
};

static int read_mem(struct mem *mem, void *dst, u32 size, u64 addr)
{
	return mem__read(((struct tls_mem *)mem)->pid, addr, dst, size);
}

/* Counts the Tasks whose thread has a pointer back to the Task at this place. */
static void try_place(struct tls_search *s, uint32_t module, int64_t offset)
{
	const struct wire_target t = {.my_task_tls = (int32_t)offset, .my_task_module = module};
	uint32_t agree = 0;

	if (offset != t.my_task_tls)
		return;
	for (uint32_t i = 0; i < s->n; i++) {
		uint64_t id, task = 0;

		if (mem__read_u64(s->mem.pid, s->tasks[i] + s->l->wire.task_id, &id) == 0 && id &&
		    (id & 7) == 0 && rts_my_task(&s->mem.mem, &t, id, &task) == 0 &&
		    task == s->tasks[i])
			agree++;
	}
	if (agree > s->best.agree)
		s->best = (struct check_tls){.agree = agree, .module = module, .offset = offset};
}

static void by_slots(struct tls_search *s)
{
	const struct image *image = s->rts->image;
	struct elf_tls_slot slots[TLS_SLOTS];
	uint64_t memsz = 0, align, words[2];
	size_t n = elf__tls_slots(image->elf, slots, ARRAY_SIZE(slots));

	if (!elf__tls(image->elf, &memsz, &align))
		return;
	for (size_t i = 0; i < n; i++) {
		uint64_t slot = image__addr(image, slots[i].vaddr);

		if (mem__read(s->mem.pid, slot, words, sizeof(words)) < 0)
			continue;
		if (!slots[i].module) {
			try_place(s, 0, (int64_t)words[0]);
			continue;
		}
		if (words[0] == 0 || words[0] > UINT16_MAX)
			continue;
		for (uint64_t at = 0; at + 8 <= MIN(memsz, (uint64_t)TLS_BLOCK_MAX); at += 8)
			try_place(s, (uint32_t)words[0], (int64_t)at);
	}
}

/* Searches below the thread pointer of one Task's thread, within its block if the size is known. */
static void scan(struct tls_search *s, uint64_t task)
{
	uint64_t id, memsz, align, words[TLS_SCAN / 8];
	size_t len = sizeof(words);

	/* an executable's block ends at the thread pointer, and its size is in the file */
	if (s->rts->image->is_exe && elf__tls(s->rts->image->elf, &memsz, &align)) {
		if (memsz > sizeof(words) || align > sizeof(words))
			return;
		align = MAX(align, (uint64_t)8);
		len = MIN((memsz + align - 1) / align * align, (uint64_t)sizeof(words));
	}
	if (mem__read_u64(s->mem.pid, task + s->l->wire.task_id, &id) < 0 || !id || (id & 7))
		return;
	/* The page below the thread pointer's own may be unmapped: try ever smaller lengths. */
	for (; len >= 8; len = len / 2 & ~(size_t)7)
		if (mem__read(s->mem.pid, id - len, words, len) == 0)
			break;
	for (size_t n = len / 8; n > 0; n--)
		if (words[n - 1] == task)
			try_place(s, 0, (int64_t)((n - 1) * 8) - (int64_t)len);
}

void check__tls(pid_t pid, const struct rts *rts, const struct layout *l, const uint64_t *tasks,
		uint32_t n, struct check_tls *ret_tls)
{
	struct tls_search s = {
		.mem = {.mem = {.read = read_mem}, .pid = pid},
		.rts = rts,
		.l = l,
		.tasks = tasks,
		.n = n,
	};

	if (rts->tls_known)
		try_place(&s, 0, rts->my_task_tls);
	else
		by_slots(&s);
	for (uint32_t i = 0; i < n && !rts->tls_known && !s.best.agree; i++)
		scan(&s, tasks[i]);
	*ret_tls = s.best;
}
