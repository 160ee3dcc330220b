/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Code between functions whose labels are known. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "names/module_runs_priv.h"
#include "names/modules_priv.h"

static struct module_runs *runs_new(void)
{
	struct module_runs *runs;

	assert_int_equal(module_runs__new(&runs), 0);
	return runs;
}

static void add(struct module_runs *runs, const char *symbol, uint64_t start, uint64_t end)
{
	assert_int_equal(module_runs__add(runs, symbol, start, end), 0);
}

static void assert_at(const struct module_runs *runs, uint64_t vaddr, const char *package,
		      const char *module)
{
	struct modules_hit hit;

	assert_int_equal(module_runs__find(runs, vaddr, &hit), 0);
	assert_string_equal(hit.package, package);
	assert_string_equal(hit.module, module);
	assert_false(hit.uncertain);
}

static void assert_nothing_at(const struct module_runs *runs, uint64_t vaddr)
{
	struct modules_hit hit;

	assert_int_equal(module_runs__find(runs, vaddr, &hit), -ENOENT);
}

static void test_between(void **state)
{
	struct module_runs *runs = runs_new();

	(void)state;
	add(runs, "base_GHCziList_reverse_info", 0x100, 0x140);
	add(runs, "base_GHCziList_filter_info", 0x400, 0x420);
	add(runs, "base_GHCziMaybe_Just_con_info", 0x800, 0x810);
	assert_nothing_at(runs, 0xff);
	assert_at(runs, 0x100, "base", "GHC.List");
	assert_at(runs, 0x200, "base", "GHC.List");
	assert_at(runs, 0x41f, "base", "GHC.List");
	/* could be of either module */
	assert_nothing_at(runs, 0x420);
	assert_nothing_at(runs, 0x7ff);
	assert_at(runs, 0x800, "base", "GHC.Maybe");
	assert_nothing_at(runs, 0x810);
	module_runs__free(runs);
}

/* C code and the runtime's code lie within a module's range; neither ends it. */
static void test_others_among(void **state)
{
	struct module_runs *runs = runs_new();

	(void)state;
	add(runs, "base_GHCziList_reverse_info", 0x100, 0x140);
	add(runs, "memcpy", 0x180, 0x190);
	add(runs, "stg_upd_frame_info", 0x1a0, 0x1b0);
	add(runs, "Foo_bar", 0x1c0, 0x1d0);
	add(runs, "", 0x1e0, 0x1f0);
	add(runs, "base_GHCziList_filter_info", 0x400, 0x420);
	assert_at(runs, 0x1a8, "base", "GHC.List");
	assert_at(runs, 0x300, "base", "GHC.List");
	module_runs__free(runs);
}

/* The same module in another package is a different one; a hash is not part of a package's name. */
static void test_packages(void **state)
{
	struct module_runs *runs = runs_new();

	(void)state;
	add(runs, "textzm2zi1zm4fAbCdEf0123456789abcd_DataziText_map_info", 0x100, 0x110);
	add(runs, "textzm2zi1_DataziText_zip_info", 0x200, 0x210);
	add(runs, "textzm1zi2_DataziText_zip_info", 0x300, 0x310);
	assert_at(runs, 0x180, "text-2.1", "Data.Text");
	assert_nothing_at(runs, 0x280);
	assert_at(runs, 0x300, "text-1.2", "Data.Text");
	module_runs__free(runs);
}

static void test_base(void **state)
{
	struct module_runs *runs = runs_new();
	struct modules_hit hit;

	(void)state;
	add(runs, "base_GHCziList_reverse_info", 0x100, 0x140);
	add(runs, "base_GHCziMaybe_maybe_info", 0x200, 0x240);
	add(runs, "base_GHCziList_filter_info", 0x400, 0x420);
	assert_int_equal(module_runs__base(runs, "base", "GHC.List"), 0x100);
	assert_int_equal(module_runs__base(runs, "base", "GHC.Maybe"), 0x200);
	assert_true(module_runs__base(runs, "base", "GHC.Base") == UINT64_MAX);
	assert_true(module_runs__base(runs, "rest", "GHC.List") == UINT64_MAX);
	assert_int_equal(module_runs__find(runs, 0x410, &hit), 0);
	assert_int_equal(hit.base, 0x400);
	assert_nothing_at(runs, 0x300);
	module_runs__free(runs);
}

static void test_many(void **state)
{
	struct module_runs *runs = runs_new();
	uint64_t at = 0x1000;

	(void)state;
	for (unsigned int i = 0; i < MODULE_RUNS_MAX; i++, at += 16)
		add(runs, i % 2 ? "base_GHCziList_map_info" : "base_GHCziBase_map_info", at,
		    at + 16);
	assert_int_equal(module_runs__add(runs, "base_GHCziBase_map_info", at, at + 16), -E2BIG);
	assert_at(runs, at - 1, "base", "GHC.List");
	module_runs__free(runs);
	module_runs__free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_between),	 cmocka_unit_test(test_others_among),
		cmocka_unit_test(test_packages), cmocka_unit_test(test_base),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
