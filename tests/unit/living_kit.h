/* SPDX-License-Identifier: GPL-2.0-or-later */
/* living_kit: builds lists of Haskell threads as a runtime has them. */
#ifndef SAFESCOPED_TEST_LIVING_KIT_H
#define SAFESCOPED_TEST_LIVING_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "target/target_priv.h"

#include "mem.bpf.h"
#include "stg.bpf.h"
#include "heap.bpf.h"

#define MAX_TSOS 30000
#define GENS	 2

#define RUNS	 1
#define KILLED	 3
#define COMPLETE 4

/* Offsets of a TSO's fields; global_link comes right before stackobj, what_next right after it. */
enum { AT_LINK = 16, AT_STACKOBJ = 24, AT_WHAT_NEXT = 32, AT_WHY = 34, AT_ID = 40 };

struct living_tso {
	uint64_t words[12];
};

/* A runtime's memory, laid out in this process. */
struct living_heap {
	struct target target;
	uint64_t tables[2][4]; /* info tables: of TSOs, and of the closure that ends their lists */
	uint64_t end[12];
	uint8_t cap[64], gens[GENS][512];
	uint64_t block[8];
	struct living_tso tsos[MAX_TSOS];
	unsigned n_tsos, n_gens;
	size_t gen_size;
};

static inline uint64_t living_addr(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static inline uint64_t living_info(struct living_heap *h, unsigned no)
{
	return living_addr(&h->tables[no][2]);
}

static inline uint8_t *living_gen(struct living_heap *h, unsigned no)
{
	return h->gens[0] + no * h->gen_size;
}

static inline void living_put(uint8_t *at, uint64_t value)
{
	memcpy(at, &value, sizeof(value));
}

static inline void living_old_blocks(struct living_heap *h, unsigned no, uint64_t value)
{
	living_put(living_gen(h, no) + h->gen_size - 80, value);
}

static inline void living_old_threads(struct living_heap *h, unsigned no, uint64_t value)
{
	living_put(living_gen(h, no) + h->gen_size - 16, value);
}

static inline void living_count(struct living_heap *h, unsigned no, uint32_t collections)
{
	memcpy(living_gen(h, no) + 128, &collections, sizeof(collections));
}

static inline struct living_heap *living_heap(unsigned n_gens, size_t gen_size)
{
	struct living_heap *h = calloc(1, sizeof(*h));
	struct wire_layout *l;

	assert_non_null(h);
	h->n_gens = n_gens;
	h->gen_size = gen_size;
	h->tables[0][1] = STG_TSO;
	h->tables[1][1] = 1;
	h->end[0] = living_info(h, 1);
	h->target.info.pid = getpid();
	h->target.info.layout_checked = true;
	h->target.check.n_caps = 1;
	h->target.check.caps[0] = living_addr(h->cap);
	l = &h->target.info.wire.layout;
	l->cap_nursery = 16;
	l->cap_run_queue = 40;
	l->cap_total_allocated = 56;
	l->tso_stackobj = AT_STACKOBJ;
	l->tso_why_blocked = AT_WHY;
	l->tso_id = AT_ID;
	l->tso_id_size = 8;
	living_put(h->cap + 16 + HEAP_CURRENT_NURSERY, living_addr(h->block));
	h->block[HEAP_BD_GEN / 8] = living_addr(living_gen(h, 0));
	for (unsigned i = 0; i < n_gens; i++) {
		living_put(living_gen(h, i) + HEAP_GEN_THREADS, living_addr(h->end));
		living_put(living_gen(h, i) + HEAP_GEN_TO,
			   living_addr(living_gen(h, MIN(i + 1, n_gens - 1))));
		living_old_threads(h, i, living_addr(h->end));
	}
	living_count(h, 0, 5);
	return h;
}

static inline struct living_tso *living_add(struct living_heap *h, unsigned no, uint64_t id,
					    unsigned what_next, unsigned why)
{
	struct living_tso *tso = &h->tsos[h->n_tsos++];
	uint8_t *at = (uint8_t *)tso->words, *list = living_gen(h, no) + HEAP_GEN_THREADS;

	assert_true(h->n_tsos <= MAX_TSOS);
	living_put(at, living_info(h, 0));
	memcpy(at + AT_LINK, list, 8);
	at[AT_WHAT_NEXT] = (uint8_t)what_next;
	at[AT_WHY] = (uint8_t)why;
	living_put(at + AT_ID, id);
	living_put(list, living_addr(tso));
	return tso;
}

/* Threads 3 and 9 are alive, two others are not. */
static inline void living_add_some(struct living_heap *h)
{
	living_add(h, 0, 9, RUNS, 6);
	living_add(h, 0, 4, KILLED, 0);
	living_add(h, h->n_gens - 1, 3, RUNS, 1);
	living_add(h, h->n_gens - 1, 2, COMPLETE, 0);
}

#endif
