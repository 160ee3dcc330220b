/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Every event type is read, with all of its fields. */
#include "eventlog_reading.h"

struct every {
	unsigned seen[EL_IDS];
};

#define STR_IS(str, text)                                                                          \
	(assert_int_equal((str).len, strlen(text)),                                                \
	 assert_memory_equal((str).s, text, strlen(text)))

static void check_scheduler(const struct el_event *ev)
{
	switch (ev->id) {
	case EL_CREATE_THREAD:
	case EL_RUN_THREAD:
	case EL_THREAD_RUNNABLE:
		assert_int_equal(ev->thread.tid, 0x01020304);
		break;
	case EL_STOP_THREAD:
		assert_int_equal(ev->stop.tid, 5);
		assert_int_equal(ev->stop.status, EL_STOP_BLACKHOLE);
		assert_int_equal(ev->stop.info, 9);
		break;
	case EL_MIGRATE_THREAD:
	case EL_THREAD_WAKEUP:
		assert_int_equal(ev->thread.tid, 6);
		assert_int_equal(ev->thread.cap, 3);
		break;
	case EL_THREAD_LABEL:
		assert_int_equal(ev->label.tid, 8);
		STR_IS(ev->label.label, "worker");
		break;
	case EL_CAP_CREATE:
	case EL_CAP_DELETE:
	case EL_CAP_DISABLE:
	case EL_CAP_ENABLE:
		assert_int_equal(ev->cap_no, 11);
		break;
	default:
		break;
	}
}

static void check_process(const struct el_event *ev)
{
	switch (ev->id) {
	case EL_USER_MSG:
	case EL_USER_MARKER:
		STR_IS(ev->text, "text");
		break;
	case EL_RTS_IDENTIFIER:
		STR_IS(ev->text, "GHC-9.0.2 rts_thr_p");
		break;
	case EL_PROGRAM_ARGS:
		assert_int_equal(ev->text.len, 6);
		break;
	case EL_OSPROCESS_PID:
		assert_int_equal(ev->pid, 4242);
		break;
	case EL_WALL_CLOCK_TIME:
		assert_int_equal(ev->wall.sec, 1700000000);
		assert_int_equal(ev->wall.ns, 5);
		break;
	default:
		break;
	}
}

static void check_heap(const struct el_event *ev)
{
	switch (ev->id) {
	case EL_HEAP_ALLOCATED:
	case EL_HEAP_SIZE:
	case EL_HEAP_LIVE:
	case EL_BLOCKS_SIZE:
		assert_int_equal(ev->bytes, 1ull << 33);
		break;
	case EL_GC_STATS_GHC:
		assert_int_equal(ev->gen, 1);
		break;
	case EL_HEAP_PROF_SAMPLE_COST_CENTRE:
		assert_int_equal(ev->band.bytes, 99);
		assert_int_equal(ev->band.ccs.n, 2);
		assert_int_equal(el_u32s__get(ev->band.ccs, 1), 300);
		break;
	case EL_HEAP_PROF_SAMPLE_STRING:
		STR_IS(ev->band.name, "ARR_WORDS");
		break;
	case EL_HEAP_BIO_PROF_SAMPLE_BEGIN:
		assert_int_equal(ev->sample_time, 6);
		break;
	default:
		break;
	}
}

static int check_one(void *ctx, const struct el_event *ev)
{
	struct every *e = ctx;

	e->seen[ev->id]++;
	check_scheduler(ev);
	check_process(ev);
	check_heap(ev);
	switch (ev->id) {
	case EL_HEAP_PROF_COST_CENTRE:
		assert_int_equal(ev->cc.id, 200);
		STR_IS(ev->cc.label, "fib");
		STR_IS(ev->cc.module, "Main");
		STR_IS(ev->cc.srcloc, "Main.hs:1:1-9");
		assert_true(ev->cc.is_caf);
		break;
	case EL_PROF_SAMPLE_COST_CENTRE:
		assert_int_equal(ev->prof_sample.cap, 1);
		assert_int_equal(ev->prof_sample.ccs.n, 3);
		assert_int_equal(el_u32s__get(ev->prof_sample.ccs, 2), 202);
		break;
	case EL_PROF_BEGIN:
		assert_int_equal(ev->prof_interval, 1000000);
		break;
	case EL_TICKY_COUNTER_DEF:
		STR_IS(ev->ticky.name, "f{v r1}");
		assert_int_equal(ev->ticky.id, 9);
		break;
	case EL_TICKY_COUNTER_SAMPLE:
		assert_int_equal(ev->ticky.entries, 2);
		assert_int_equal(ev->ticky.allocs, 3);
		break;
	default:
		break;
	}
	return 0;
}

static void write_fixed(struct writer *w, uint64_t t)
{
	static const uint16_t empty[] = {9,  10, 11, 12, 20,  21,  22,	35,  36,  37, 38,
					 40, 41, 54, 59, 200, 202, 203, 204, 205, 212};
	static const uint16_t threads[] = {0, 1, 3, 15}, caps[] = {39, 45, 46, 47, 48, 206};
	static const uint16_t bytes[] = {49, 50, 51, 91};

	for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++)
		w_event(w, empty[i], t, "");
	for (size_t i = 0; i < 4; i++)
		w_event(w, threads[i], t, "w", 0x01020304);
	for (size_t i = 0; i < 6; i++)
		w_event(w, caps[i], t, "h", 11);
	for (size_t i = 0; i < 4; i++)
		w_event(w, bytes[i], t, "wl", 1, 1ull << 33);
	w_event(w, 2, t, "whw", 5, 8, 9);
	w_event(w, 4, t, "wh", 6, 3);
	w_event(w, 8, t, "wh", 6, 3);
	w_event(w, 25, t, "wh", 1, 2);
	w_event(w, 26, t, "w", 1);
	w_event(w, 27, t, "wh", 1, 4);
	w_event(w, 28, t, "wh", 1, 4);
	w_event(w, 32, t, "ww", 1, 4242);
	w_event(w, 33, t, "ww", 1, 4242);
	w_event(w, 34, t, "lllllll", 1ul, 2ul, 3ul, 4ul, 5ul, 6ul, 7ul);
	w_event(w, 43, t, "wlw", 1, 1700000000ul, 5);
	w_event(w, 52, t, "whllll", 1, 2, 1ul, 2ul, 3ul, 4096ul);
	w_event(w, 53, t, "whlllwlll", 1, 1, 10ul, 11ul, 12ul, 2, 13ul, 14ul, 15ul);
	w_event(w, 55, t, "lhl", 0x7fff00001111ul, 2, 4321ul);
	w_event(w, 56, t, "lhh", 77ul, 1, 2);
	w_event(w, 57, t, "l", 78ul);
	w_event(w, 90, t, "wwww", 1, 1, 2, 3);
}

static void write_profile(struct writer *w, uint64_t t)
{
	w_event(w, 16, t, "t", "text");
	w_event(w, 19, t, "t", "text");
	w_event(w, 58, t, "t", "text");
	w_event(w, 29, t, "wt", 1, "GHC-9.0.2 rts_thr_p");
	w_event(w, 30, t, "wss", 1, "ab", "cd");
	w_event(w, 31, t, "ws", 1, "A=1");
	w_event(w, 42, t, "sw", "abc", 3);
	w_event(w, 44, t, "wt", 8, "worker");
	w_event(w, 160, t, "blwsssssss", 0, 100ul, 5, "a", "b", "c", "d", "e", "f", "g");
	w_event(w, 161, t, "wsssb", 200, "fib", "Main", "Main.hs:1:1-9", 1);
	w_event(w, 162, t, "l", 5ul);
	w_event(w, 163, t, "blbww", 0, 99ul, 2, 200, 300);
	w_event(w, 164, t, "bls", 0, 99ul, "ARR_WORDS");
	w_event(w, 165, t, "l", 5ul);
	w_event(w, 166, t, "ll", 5ul, 6ul);
	w_event(w, 167, t, "wlbwww", 1, 17ul, 3, 200, 201, 202);
	w_event(w, 168, t, "l", 1000000ul);
	w_event(w, 169, t, "lssssss", 0x400100ul, "x_info", "1", "t", "main.go", "Main",
		"Main.hs:3:4-5");
	w_event(w, 181, t, "bbb", 1, 0, 2);
	w_event(w, 201, t, "w", 12);
	w_event(w, 207, t, "hwww", 16, 1, 2, 3);
	w_event(w, 208, t, "ww", 1, 2);
	w_event(w, 210, t, "lhssls", 9ul, 2, "pp", "f{v r1}", 0x400200ul, "{}");
	w_event(w, 211, t, "llll", 9ul, 2ul, 3ul, 4ul);
}

static void t_every_type(void **state)
{
	struct writer w = {0};
	struct every e = {0};
	struct eventlog *log;

	(void)state;
	w_header(&w);
	w_block(&w, 5, 100);
	write_fixed(&w, 110);
	write_profile(&w, 120);
	w_block_end(&w, 200);
	w_end(&w);
	assert_int_equal(eventlog__new(NULL, &log), 0);
	assert_int_equal(w_subscribe_all(log, check_one, &e), 0);
	assert_int_equal(eventlog__feed(log, w.data, w.len), 0);
	assert_int_equal(eventlog__finish(log), 0);
	assert_int_equal(eventlog__stats(log)->misfits, 0);
	assert_int_equal(eventlog__stats(log)->lost_bytes, 0);
	for (unsigned id = 0; id < EL_IDS; id++)
		assert_int_equal(e.seen[id], w_size((uint16_t)id) < 0 ? 0 : 1);
	eventlog__free(log);
	w_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_every_type),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
