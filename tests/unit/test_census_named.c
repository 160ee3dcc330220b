/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A census arrives: closures get names, those with the same name are merged, and the first
 * census is kept for comparison. */
#include "census/census.h"
#include "intake/tap.h"
#include "test_timeline_kit.h"

static struct target_census *census_new(void)
{
	struct target_census *c = calloc(1, sizeof(*c));

	assert_non_null(c);
	c->blocks_bytes = c->walked_bytes = c->counted_bytes = 100000;
	return c;
}

static void enter(struct target_census *c, uint64_t info, uint32_t type, const char *constructor,
		  uint64_t count, uint64_t bytes)
{
	struct target_census_entry *e = &c->entries[c->n++];

	*e = (struct target_census_entry){
		.info = info, .count = count, .bytes = bytes, .type = type};
	snprintf(e->constructor, sizeof(e->constructor), "%s", constructor);
}

static void check_closure(const struct pic_closure *c, const char *package, const char *module,
			  const char *name, enum pic_closure_kind kind, uint64_t bytes)
{
	assert_string_equal(c->name, name);
	assert_string_equal(c->module, module);
	assert_string_equal(c->package, package);
	assert_int_equal(c->kind, kind);
	assert_int_equal(c->bytes, bytes);
}

static void test_names(void **state)
{
	struct target_census *c = census_new();
	const struct pic_census *got;
	struct kit kit;

	(void)state;
	kit_new(&kit);
	enter(c, HS(1), CLOSURE_CONSTR, "containers-0.6.4.1:Data.Map.Internal.Bin", 10, 480);
	/* the same name at another address: a constructor that both a library and the program
	 * contain */
	enter(c, HS(2), CLOSURE_CONSTR, "containers-0.6.4.1:Data.Map.Internal.Bin", 1, 48);
	enter(c, HS(3), CLOSURE_CONSTR + 3, "ghc-prim:GHC.Types.:", 5, 120);
	enter(c, HS(4), CLOSURE_CONSTR, "main:Main.:.:", 4, 96);
	enter(c, HS(5), CLOSURE_THUNK, "", 3, 72);
	enter(c, NEAR(6), CLOSURE_FUN, "", 2, 32);
	enter(c, HS(7), CLOSURE_ARR_WORDS, "", 1, 16);
	enter(c, HS(8), CLOSURE_STACK, "", 1, 8);
	enter(c, HS(9), 200, "", 1, 4);
	c->others_count = 2;
	c->others_bytes = 3;
	assert_int_equal(intake__census(kit.in, PID, c, T0 + 10), 0);
	got = &picture__target(kit.pic, 0)->census;
	assert_int_equal(got->at_ns, T0 + 10);
	assert_int_equal(got->first_ns, T0 + 10);
	assert_int_equal(got->n, 8);
	assert_int_equal(got->others_bytes, 3);
	check_closure(&got->v[0], "containers-0.6.4.1", "Data.Map.Internal",
		      "Data.Map.Internal.Bin", PC_CONSTRUCTOR, 528);
	assert_int_equal(got->v[0].count, 11);
	assert_int_equal(got->v[0].first_bytes, 528);
	check_closure(&got->v[1], "ghc-prim", "GHC.Types", "GHC.Types.:", PC_CONSTRUCTOR, 120);
	check_closure(&got->v[2], "", "Main", "Main.:.:", PC_CONSTRUCTOR, 96);
	assert_int_equal(got->v[3].kind, PC_THUNK);
	assert_int_equal(got->v[4].kind, PC_FUNCTION);
	assert_true(got->v[4].name[0] == '~');
	check_closure(&got->v[5], "", "", "ARR_WORDS", PC_ARRAY, 16);
	check_closure(&got->v[6], "", "", "STACK", PC_THREAD, 8);
	assert_int_equal(got->v[7].kind, PC_OTHER);
	finish(&kit);
	timeline__free(kit.tl);
	free(c);
}

static void test_growth(void **state)
{
	struct target_census *c = census_new();
	const struct pic_census *got;
	struct kit kit;

	(void)state;
	kit_new(&kit);
	enter(c, HS(1), CLOSURE_CONSTR, "main:Main.Kept", 10, 100);
	enter(c, HS(2), CLOSURE_CONSTR, "main:Main.Gone", 10, 90);
	assert_int_equal(intake__census(kit.in, PID, c, T0 + 10), 0);
	c->n = 0;
	enter(c, HS(1), CLOSURE_CONSTR, "main:Main.Kept", 10, 300);
	enter(c, HS(3), CLOSURE_CONSTR, "main:Main.New", 10, 50);
	assert_int_equal(intake__census(kit.in, PID, c, T0 + 20), 0);
	c->entries[0].bytes = 400;
	assert_int_equal(intake__census(kit.in, PID, c, T0 + 30), 0);
	got = &picture__target(kit.pic, 0)->census;
	assert_int_equal(got->first_ns, T0 + 10);
	assert_int_equal(got->at_ns, T0 + 30);
	assert_int_equal(got->n, 2);
	assert_int_equal(got->v[0].bytes, 400);
	assert_int_equal(got->v[0].first_bytes, 100);
	assert_int_equal(got->v[1].first_bytes, 0);
	finish(&kit);
	timeline__free(kit.tl);
	free(c);
}

static void test_refused(void **state)
{
	struct target_census *c = census_new();
	struct kit kit;

	(void)state;
	kit_new(&kit);
	assert_int_equal(intake__census(kit.in, PID + 1, c, T0), -ENOENT);
	assert_int_equal(intake__census(kit.in, PID, c, 0), -EBADMSG);
	c->n = TARGET_CENSUS_MAX + 1;
	assert_int_equal(intake__census(kit.in, PID, c, T0), -EBADMSG);
	c->n = 0;
	enter(c, HS(1), CLOSURE_CONSTR, "main:Main.Kept", 1, UINT64_MAX);
	assert_int_equal(intake__census(kit.in, PID, c, T0), -EBADMSG);
	assert_int_equal(picture__target(kit.pic, 0)->census.at_ns, 0);
	finish(&kit);
	timeline__free(kit.tl);
	free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_growth),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests_name("census_named", tests, NULL, NULL);
}
