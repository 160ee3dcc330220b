/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cached answers from a file's DWARF, and the addresses that they apply to. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/base.h"
#include "names/dwarf_kept_priv.h"

/* Answers are returned unchanged; the cache is bounded. */
static void kept_answers(void **state)
{
	struct dwarf_place in = {.start = 1, .cu_end = UINT64_MAX, .nth = 7, .haskell = true}, out;
	struct dwarf_kept kept = {0};

	(void)state;
	memset(in.name, 'n', sizeof(in.name) - 1);
	snprintf(in.file, sizeof(in.file), "Main.hs");
	memset(in.proc_file, 'f', sizeof(in.proc_file) - 1);
	assert_int_equal(dwarf_kept__find(&kept, 0, &out), -ESRCH);
	for (uint64_t at = 0; at < DWARF_KEPT_MAX; at++) {
		in.end = at;
		if (at % 2)
			dwarf_kept__add(&kept, at, &in);
		else
			dwarf_kept__add_nothing(&kept, at, 0, 0);
	}
	for (uint64_t at = 0; at < DWARF_KEPT_MAX; at++) {
		memset(&out, at % 4 < 2 ? 0xa5 : 0, sizeof(out));
		assert_int_equal(dwarf_kept__find(&kept, at, &out), at % 2 ? 0 : -ENOENT);
		if (at % 2 == 0)
			continue;
		in.end = at;
		assert_memory_equal(&out, &in, offsetof(struct dwarf_place, name));
		assert_string_equal(out.name, in.name);
		assert_string_equal(out.linkage, "");
		assert_string_equal(out.file, "Main.hs");
		assert_string_equal(out.proc_file, in.proc_file);
	}
	dwarf_kept__add_nothing(&kept, DWARF_KEPT_MAX, 0, 0);
	assert_int_equal(dwarf_kept__find(&kept, 1, &out), -ESRCH);
	assert_int_equal(dwarf_kept__find(&kept, DWARF_KEPT_MAX, &out), -ENOENT);
	dwarf_kept__clear(&kept);
	dwarf_kept__clear(&kept);
}

/* In C code an answer applies to its whole block, the innermost one with an answer; in Haskell
 * code only to its address. */
static void kept_blocks(void **state)
{
	struct dwarf_place in = {0}, out;
	struct dwarf_kept kept = {0};
	static const struct {
		uint64_t start, end, at;
		bool haskell;
	} blocks[] = {
		{100, 200, 150, false}, {300, 400, 310, false}, {100, 120, 110, false},
		{340, 350, 345, false}, {360, 370, 365, false}, {500, 600, 550, true},
	};
	static const struct {
		uint64_t at, start; /* start 0: no answer is cached */
		uint64_t end;
	} asked[] = {{99, 0, 0},      {100, 100, 120},	 {119, 100, 120}, {120, 100, 200},
		     {199, 100, 200}, {200, 0, 0},	 {299, 0, 0},	  {345, 340, 350},
		     {355, 300, 400}, {399, 300, 400},	 {400, 0, 0},	  {550, 500, 600},
		     {551, 0, 0},     {UINT64_MAX, 0, 0}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(blocks); i++) {
		in = (struct dwarf_place){.start = blocks[i].start,
					  .end = blocks[i].end,
					  .haskell = blocks[i].haskell};
		dwarf_kept__add(&kept, blocks[i].at, &in);
	}
	for (size_t i = 0; i < ARRAY_SIZE(asked); i++) {
		assert_int_equal(dwarf_kept__find(&kept, asked[i].at, &out),
				 asked[i].start ? 0 : -ESRCH);
		if (!asked[i].start)
			continue;
		assert_int_equal(out.start, asked[i].start);
		assert_int_equal(out.end, asked[i].end);
	}
	for (uint64_t i = 0; i < 2 * DWARF_KEPT_MAX; i++) {
		in = (struct dwarf_place){.start = 1000 - i % 1000, .end = 1000 + i};
		dwarf_kept__add(&kept, 10000 + i, &in);
	}
	assert_int_equal(dwarf_kept__find(&kept, 110, &out), -ESRCH);
	dwarf_kept__clear(&kept);
}

/* An address without a function is asked only once, up to the next block. */
static void kept_nothing(void **state)
{
	struct dwarf_place in = {.start = 200, .end = 300, .line = 7}, out;
	struct dwarf_kept kept = {0};

	(void)state;
	dwarf_kept__add(&kept, 250, &in);
	dwarf_kept__add_nothing(&kept, 150, 100, 200);
	dwarf_kept__add_nothing(&kept, 320, 0, 0);
	for (uint64_t at = 90; at < 330; at++) {
		bool has = at >= 200 && at < 300, nothing = (at >= 100 && at < 200) || at == 320;

		assert_int_equal(dwarf_kept__find(&kept, at, &out), has	      ? 0
								    : nothing ? -ENOENT
									      : -ESRCH);
		if (has)
			assert_int_equal(out.line, 7);
	}
	dwarf_kept__add_nothing(&kept, 400, 300, UINT64_MAX);
	assert_int_equal(dwarf_kept__find(&kept, UINT64_MAX - 1, &out), -ENOENT);
	assert_int_equal(dwarf_kept__find(&kept, UINT64_MAX, &out), -ESRCH);
	dwarf_kept__clear(&kept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(kept_answers),
					   cmocka_unit_test(kept_blocks),
					   cmocka_unit_test(kept_nothing)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
