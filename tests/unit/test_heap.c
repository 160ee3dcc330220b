/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The heap's own structures, read as on the kernel side, on memory images. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "heap.bpf.h"
#include "image.h"

#define BASE 0x4200000000ULL

struct fixture {
	struct image im;
	struct wire_layout l;
	u64 cap, nursery, block, gens[2], incall, tso_info;
};

static void put32(struct fixture *f, u64 addr, u32 v)
{
	memcpy((char *)f->im.words + (addr - f->im.base), &v, sizeof(v));
}

/* A capability with a nursery of 256 blocks, currently in a half-full one; two generations. */
static struct fixture *make(void)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct image *im;

	assert_non_null(f);
	im = &f->im;
	image_init(im, BASE);
	f->l = image_layout(0);
	f->l.cap_n_run_queue = 992;
	f->l.cap_nursery = 904;
	f->l.cap_run_queue = 976;
	f->l.cap_total_allocated = 1184;
	f->cap = image_alloc(im, 1408 / 8);
	f->nursery = image_alloc(im, 2);
	f->block = image_alloc(im, 8);
	f->gens[0] = image_alloc(im, 48);
	f->gens[1] = image_alloc(im, 48);
	f->incall = image_alloc(im, 9);
	f->tso_info = image_info(im, STG_TSO, 0);
	image_put(im, f->cap + f->l.cap_cccs - HEAP_HP_LIM, 1);
	image_put(im, f->cap + f->l.cap_nursery, f->nursery);
	image_put(im, f->cap + f->l.cap_nursery + HEAP_CURRENT_NURSERY, f->block);
	image_put(im, f->cap + f->l.cap_total_allocated, 1000);
	image_put(im, f->nursery + HEAP_NURSERY_BLOCKS, 256);
	image_put(im, f->block + HEAP_BD_START, 0x5000);
	image_put(im, f->block + HEAP_BD_FREE, 0x5800);
	image_put(im, f->block + HEAP_BD_LINK, f->block);
	image_put(im, f->block + HEAP_BD_GEN, f->gens[0]);
	image_put(im, f->gens[0] + HEAP_GEN_TO, f->gens[1]);
	image_put(im, f->gens[1] + HEAP_GEN_TO, f->gens[1]);
	return f;
}

static u64 add_tso(struct fixture *f)
{
	u64 tso = image_alloc(&f->im, 16);

	image_put(&f->im, tso, f->tso_info);
	return tso;
}

static void queue(struct fixture *f, u64 head, u64 tail, u32 n)
{
	image_put(&f->im, f->cap + f->l.cap_run_queue, head);
	image_put(&f->im, f->cap + f->l.cap_run_queue + 8, tail);
	put32(f, f->cap + f->l.cap_n_run_queue, n);
}

static void test_allocated(void **state)
{
	struct fixture *f = make();
	u64 bytes = 0;

	(void)state;
	assert_int_equal(heap_allocated(&f->im.mem, &f->l, f->cap, &bytes), 0);
	assert_int_equal(bytes, 8000);
	assert_int_equal(heap_in_use(&f->im.mem, &f->l, f->cap), 0x800);
	assert_int_equal(heap_nursery(&f->im.mem, &f->l, f->cap), 1 << 20);
	/* a free pointer beyond the block's end is invalid */
	image_put(&f->im, f->block + HEAP_BD_FREE, 0x6001);
	assert_int_equal(heap_in_use(&f->im.mem, &f->l, f->cap), 0);
	image_put(&f->im, f->block + HEAP_BD_FREE, 0x4fff);
	assert_int_equal(heap_in_use(&f->im.mem, &f->l, f->cap), 0);
	/* and an address is not a valid number of words */
	image_put(&f->im, f->cap + f->l.cap_total_allocated, ~0ULL << 56);
	assert_int_not_equal(heap_allocated(&f->im.mem, &f->l, f->cap, &bytes), 0);
	free(f);
}

static u32 reason(struct fixture *f)
{
	return heap_reason(&f->im.mem, &f->l, f->cap, f->incall);
}

static void test_reasons(void **state)
{
	struct fixture *f = make();
	u64 tso = add_tso(f);

	(void)state;
	/* a worker with a thread to run */
	queue(f, tso, tso, 1);
	assert_int_equal(reason(f), WIRE_ALLOC_OTHER);
	image_put(&f->im, f->gens[0] + HEAP_GEN_NEW_LARGE, 7);
	assert_int_equal(reason(f), WIRE_ALLOC_LARGE);
	assert_int_equal(heap_new_large(&f->im.mem, &f->l, f->cap), 7);
	/* the nursery's last block */
	image_put(&f->im, f->block + HEAP_BD_LINK, 0);
	assert_int_equal(reason(f), WIRE_ALLOC_NURSERY);
	/* called from Haskell, without a thread of its own */
	image_put(&f->im, f->incall + f->l.incall_prev_stack, f->incall);
	assert_int_equal(reason(f), WIRE_ALLOC_FORCED);
	/* a foreign export has a thread */
	image_put(&f->im, f->incall + HEAP_INCALL_TSO, tso);
	assert_int_equal(reason(f), WIRE_ALLOC_NURSERY);
	queue(f, 0, 0, 0);
	assert_int_equal(reason(f), WIRE_ALLOC_IDLE);
	free(f);
}

static void test_who(void **state)
{
	struct fixture *f = make();
	u64 head = add_tso(f), tail = add_tso(f);

	(void)state;
	assert_int_equal(heap_ran_last(&f->im.mem, &f->l, f->cap, 1), 0);
	queue(f, head, tail, 2);
	assert_int_equal(heap_ran_last(&f->im.mem, &f->l, f->cap, 1), head);
	/* it was preempted for another thread to run */
	image_put(&f->im, f->cap + f->l.cap_cccs - HEAP_HP_LIM, 0);
	assert_int_equal(heap_ran_last(&f->im.mem, &f->l, f->cap, 1), tail);
	/* HpLim means nothing once all capabilities are to stop */
	assert_int_equal(heap_ran_last(&f->im.mem, &f->l, f->cap, 0), head);
	image_put(&f->im, head, f->cap);
	assert_int_equal(heap_ran_last(&f->im.mem, &f->l, f->cap, 0), 0);
	free(f);
}

static void test_generations(void **state)
{
	struct wire_heap_gen gens[WIRE_HEAP_GENS] = {{0}};
	struct fixture *f = make();

	(void)state;
	image_put(&f->im, f->gens[1] + HEAP_GEN_BLOCKS, 5);
	image_put(&f->im, f->gens[1] + HEAP_GEN_BLOCKS + 8, 2000);
	image_put(&f->im, f->gens[1] + HEAP_GEN_LARGE, 3);
	image_put(&f->im, f->gens[1] + HEAP_GEN_LARGE + 8, 1500);
	image_put(&f->im, f->gens[1] + HEAP_GEN_COMPACT_BLOCKS, 9);
	assert_int_equal(heap_generations(&f->im.mem, &f->l, f->cap, gens), 2);
	assert_int_equal(gens[0].n_words, 0);
	assert_int_equal(gens[1].n_blocks, 5);
	assert_int_equal(gens[1].n_words, 2000);
	assert_int_equal(gens[1].n_large_blocks, 3);
	assert_int_equal(gens[1].n_large_words, 1500);
	assert_int_equal(gens[1].n_compact_blocks, 9);
	/* a circular list is cut off */
	image_put(&f->im, f->gens[1] + HEAP_GEN_TO, f->gens[0]);
	assert_int_equal(heap_generations(&f->im.mem, &f->l, f->cap, gens), WIRE_HEAP_GENS);
	free(f);
}

/* The threads of both generations; each list ends in a closure of another type. */
static void test_threads(void **state)
{
	struct fixture *f = make();
	u64 end = image_alloc(&f->im, 2), tsos[3];

	(void)state;
	image_put(&f->im, end, image_info(&f->im, 1, 0));
	image_put(&f->im, f->gens[0] + HEAP_GEN_THREADS, end);
	image_put(&f->im, f->gens[1] + HEAP_GEN_THREADS, end);
	assert_int_equal(heap_count_threads(&f->im.mem, &f->l, f->cap), 0);
	for (int i = 0; i < 3; i++) {
		tsos[i] = add_tso(f);
		image_put(&f->im, tsos[i] + f->l.tso_stackobj - 8, end);
	}
	image_put(&f->im, tsos[0] + f->l.tso_stackobj - 8, tsos[1]);
	image_put(&f->im, f->gens[0] + HEAP_GEN_THREADS, tsos[0]);
	image_put(&f->im, f->gens[1] + HEAP_GEN_THREADS, tsos[2]);
	assert_int_equal(heap_count_threads(&f->im.mem, &f->l, f->cap), 3);
	/* a list that leads nowhere; one without an end */
	image_put(&f->im, tsos[2] + f->l.tso_stackobj - 8, 8);
	assert_int_equal(heap_count_threads(&f->im.mem, &f->l, f->cap), 0);
	image_put(&f->im, tsos[2] + f->l.tso_stackobj - 8, tsos[2]);
	assert_int_equal(heap_count_threads(&f->im.mem, &f->l, f->cap), WIRE_HEAP_THREADS);
	/* a circular list of generations */
	image_put(&f->im, tsos[2] + f->l.tso_stackobj - 8, end);
	image_put(&f->im, f->gens[1] + HEAP_GEN_TO, f->gens[0]);
	assert_int_equal(heap_count_threads(&f->im.mem, &f->l, f->cap), 0);
	free(f);
}

/* A value that is not a whole number of megablocks, or exceeds the maximum ever held, means
 * another release's layout. */
static void test_held(void **state)
{
	struct fixture *f = make();
	u64 stats = image_alloc(&f->im, 32);

	(void)state;
	image_put(&f->im, stats + HEAP_STATS_HELD, 5 << 20);
	image_put(&f->im, stats + HEAP_STATS_MOST, 7 << 20);
	assert_int_equal(heap_held(&f->im.mem, stats), 5);
	assert_int_equal(heap_held(&f->im.mem, 0), 0);
	assert_int_equal(heap_held(&f->im.mem, 8), 0);
	image_put(&f->im, stats + HEAP_STATS_HELD, (5 << 20) + 1);
	assert_int_equal(heap_held(&f->im.mem, stats), 0);
	image_put(&f->im, stats + HEAP_STATS_HELD, 8 << 20);
	assert_int_equal(heap_held(&f->im.mem, stats), 0);
	image_put(&f->im, stats + HEAP_STATS_HELD, 1ULL << 60);
	image_put(&f->im, stats + HEAP_STATS_MOST, 1ULL << 60);
	assert_int_equal(heap_held(&f->im.mem, stats), 0);
	free(f);
}

/* The function or thunk in which a heap check failed, if its frame holds it. */
static void test_checked_code(void **state)
{
	struct fixture *f = make();
	u64 sp = image_alloc(&f->im, 3), object = image_alloc(&f->im, 2);
	u64 fun = image_info(&f->im, 9, 0), thunk = image_info(&f->im, HEAP_THUNK, 0);
	u64 constructor = image_info(&f->im, 1, 0);

	(void)state;
	image_put(&f->im, sp, image_info(&f->im, STG_RET_FUN, 0));
	image_put(&f->im, sp + 16, object | 1);
	image_put(&f->im, object, fun);
	assert_int_equal(heap_checked_code(&f->im.mem, sp), fun);
	image_put(&f->im, sp, image_info(&f->im, STG_RET_SMALL, 1));
	image_put(&f->im, sp + 8, object);
	image_put(&f->im, object, thunk);
	assert_int_equal(heap_checked_code(&f->im.mem, sp), thunk);
	/* the value that a case expression got back, and a number */
	image_put(&f->im, object, constructor);
	assert_int_equal(heap_checked_code(&f->im.mem, sp), 0);
	image_put(&f->im, sp + 8, 12345 * 8);
	assert_int_equal(heap_checked_code(&f->im.mem, sp), 0);
	assert_int_equal(heap_checked_code(&f->im.mem, 8), 0);
	free(f);
}

static void test_in_primitive(void **state)
{
	struct fixture *f = make();
	u64 sp = image_alloc(&f->im, 4), info = image_info(&f->im, STG_RET_SMALL, 2);

	(void)state;
	image_put(&f->im, sp, info);
	assert_false(heap_in_primitive(&f->im.mem, sp));
	image_put(&f->im, sp + 16, info + 4096);
	assert_true(heap_in_primitive(&f->im.mem, sp));
	image_put(&f->im, sp + 16, info + 2 * HEAP_NEAR);
	assert_false(heap_in_primitive(&f->im.mem, sp));
	/* the word after the frame belongs to another frame */
	image_put(&f->im, sp + 24, info);
	assert_false(heap_in_primitive(&f->im.mem, sp));
	image_put(&f->im, sp, image_info(&f->im, STG_RET_FUN, 2));
	assert_false(heap_in_primitive(&f->im.mem, sp));
	free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_allocated),    cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_who),	     cmocka_unit_test(test_generations),
		cmocka_unit_test(test_checked_code), cmocka_unit_test(test_in_primitive),
		cmocka_unit_test(test_held),	     cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
