/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Learnt programs: which of them make room for others, and which are forgotten with their probes.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include <bpf/bpf.h>

#include "kernel/kernel_priv.h"

enum { ANNA = 1000, BERT = 1001, MAX = 64 };

struct learnt {
	int map;
	struct programs *programs;
};

static int setup(void **state)
{
	static struct learnt l;

	/* only root may create maps */
	*state = NULL;
	if (geteuid() != 0)
		return 0;
	l.map = bpf_map_create(BPF_MAP_TYPE_HASH, "programs", sizeof(struct wire_program_key),
			       sizeof(struct wire_target), MAX, NULL);
	assert_true(l.map >= 0);
	assert_int_equal(programs__new(l.map, MAX, &l.programs), 0);
	*state = &l;
	return 0;
}

static int teardown(void **state)
{
	struct learnt *l = *state;

	if (!l)
		return 0;
	programs__free(l->programs);
	close(l->map);
	return 0;
}

static struct learnt *get(void **state)
{
	static struct learnt none;

	if (!*state)
		skip();
	return *state ? *state : &none;
}

static struct wire_program_key key_of(uint64_t ino)
{
	return (struct wire_program_key){.ino = ino, .dev = 7};
}

static int learn_with(struct learnt *l, uint64_t ino, uid_t uid, const struct probe *suspend,
		      const struct probe *resume)
{
	const struct wire_program_key key = key_of(ino);
	const struct wire_target wire = {0};

	return programs__learn(l->programs, &key, &wire, uid, suspend, resume);
}

static int learn(struct learnt *l, uint64_t ino, uid_t uid)
{
	return learn_with(l, ino, uid, NULL, NULL);
}

static bool is_learnt(const struct learnt *l, uint64_t ino)
{
	const struct wire_program_key key = key_of(ino);
	struct wire_target wire;

	return bpf_map_lookup_elem(l->map, &key, &wire) == 0;
}

/* Each build of a program is another file: the oldest ones are forgotten. */
static void t_oldest_goes(void **state)
{
	struct learnt *l = get(state);

	for (uint64_t i = 1; i <= 10 * MAX; i++) {
		assert_int_equal(learn(l, i, ANNA), 0);
		/* in use all the time */
		assert_int_equal(learn(l, 1, ANNA), 0);
	}
	assert_true(is_learnt(l, 1));
	for (uint64_t i = 10 * MAX - MAX / 2 + 2; i <= 10 * MAX; i++)
		assert_true(is_learnt(l, i));
	assert_false(is_learnt(l, 10 * MAX - MAX / 2 + 1));
	assert_false(is_learnt(l, 2));
	/* another user's programs take nothing away from the first user's */
	assert_int_equal(learn(l, 5000, BERT), 0);
	assert_true(is_learnt(l, 5000));
	assert_true(is_learnt(l, 1));
	/* nor do many of them */
	for (uint64_t i = 1; i <= 10 * MAX; i++)
		assert_int_equal(learn(l, 6000 + i, BERT), 0);
	assert_true(is_learnt(l, 1));
	assert_true(is_learnt(l, 10 * MAX));
}

static void t_unlearnt(void **state)
{
	struct learnt *l = get(state);
	const struct wire_program_key key = key_of(1), other = key_of(2);

	assert_int_equal(learn(l, 1, ANNA), 0);
	programs__unlearn(l->programs, &other);
	assert_true(is_learnt(l, 1));
	programs__unlearn(l->programs, &key);
	assert_false(is_learnt(l, 1));
	programs__unlearn(l->programs, &key);
	for (uint64_t i = 1; i <= MAX / 2; i++)
		assert_int_equal(learn(l, i, ANNA), 0);
	assert_true(is_learnt(l, 1));
}

/* Programs that share a library share its probes. */
static void t_probe_gone(void **state)
{
	const struct probe a = {0}, b = {0}, c = {0}, d = {0};
	struct learnt *l = get(state);

	assert_int_equal(learn_with(l, 1, ANNA, &a, &b), 0);
	assert_int_equal(learn_with(l, 2, BERT, &a, &b), 0);
	assert_int_equal(learn_with(l, 3, ANNA, &c, &d), 0);
	programs__probe_gone(l->programs, &b);
	assert_false(is_learnt(l, 1));
	assert_false(is_learnt(l, 2));
	assert_true(is_learnt(l, 3));
	/* learnt again, with other probes */
	assert_int_equal(learn_with(l, 3, ANNA, &a, &b), 0);
	programs__probe_gone(l->programs, &c);
	assert_true(is_learnt(l, 3));
	programs__probe_gone(l->programs, &a);
	assert_false(is_learnt(l, 3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(t_oldest_goes, setup, teardown),
		cmocka_unit_test_setup_teardown(t_unlearnt, setup, teardown),
		cmocka_unit_test_setup_teardown(t_probe_gone, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
