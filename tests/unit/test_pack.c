/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_pack: the parts of a model's message that a hostile sender could choose. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/base.h"
#include "eventlog/eventlog.h"
#include "eventlog/pack_priv.h"
#include "message_kit.h"

static const struct pic_slice good_slices[] = {
	{.start_ns = 10, .end_ns = 20, .state = 1, .stack = 2},
	{.start_ns = 20, .end_ns = 30, .state = 2, .stack = 0, .exact = 1},
};

static int try_slices(size_t i, struct pic_slice slice)
{
	static const struct slices_kind kind = {.states = 3, .stacks = 3, .max = 2};
	struct pic_slice v[2];
	struct slices in = {.v = v, .n = 2}, out;
	struct message msg = message_new();
	struct unpack u;
	int err;

	memcpy(v, good_slices, sizeof(v));
	v[i] = slice;
	pack__slices(&msg.p, &in);
	u = message_end(&msg);
	err = unpack__slices(&u, &kind, &out);
	slices__free(&out);
	free(msg.p.data);
	return err;
}

static void test_slices(void **state)
{
	struct pic_slice s;

	(void)state;
	assert_int_equal(try_slices(0, good_slices[0]), 0);
#define REFUSED(i, field, value)                                                                   \
	do {                                                                                       \
		s = good_slices[i];                                                                \
		s.field = (value);                                                                 \
		assert_int_equal(try_slices(i, s), -EBADMSG);                                      \
	} while (0)
	REFUSED(1, start_ns, 19);
	REFUSED(1, end_ns, 20);
	REFUSED(0, start_ns, 20);
	REFUSED(0, state, 3);
	REFUSED(0, stack, 3);
	REFUSED(1, tid, 1);
#undef REFUSED
}

/* A bool is a byte of 0 or 1, and nothing else may be read as one. */
static void test_flags(void **state)
{
	(void)state;
	for (unsigned v = 0; v < 256; v++) {
		const uint8_t byte = (uint8_t)v;
		struct unpack u = {0};
		bool flag;

		memcpy(&flag, &byte, 1);
		unpack__flag(&u, &flag);
		assert_int_equal(u.bad, v > 1);
	}
}

static int try_tree(uint32_t n_ccs, uint32_t cc, uint32_t root_parent, uint32_t parent)
{
	/* as cctree.c packs it: centres (id, flags, three texts), then nodes */
	struct {
		uint64_t ticks;
		uint32_t cc, parent;
		uint16_t permille[2];
	} nodes[2] = {{.parent = root_parent}, {.cc = cc, .parent = parent}};
	const struct {
		uint32_t id;
		uint8_t flags[3];
	} centre = {.flags = {1, 0, 1}};
	struct message msg = message_new();
	struct cctree *tree;
	struct unpack u;
	size_t n = n_ccs;
	int err;

	PACK(&msg.p, n);
	for (size_t i = 0; i < n; i++) {
		PACK(&msg.p, centre);
		for (int k = 0; k < 3; k++)
			pack__text(&msg.p, "x");
	}
	n = ARRAY_SIZE(nodes);
	PACK(&msg.p, n);
	pack__bytes(&msg.p, nodes, sizeof(nodes));
	u = message_end(&msg);
	err = cctree__unpack(&u, &tree);
	if (!err) {
		assert_int_equal(u.left, 0);
		cctree__free(tree);
	}
	free(msg.p.data);
	return err;
}

static void test_tree(void **state)
{
	(void)state;
	assert_int_equal(try_tree(2, 1, CC_NO_NODE, 0), 0);
	assert_int_equal(try_tree(2, 2, CC_NO_NODE, 0), -EBADMSG); /* no such centre */
	assert_int_equal(try_tree(2, 1, 0, 0), -EBADMSG);	   /* the root has a parent */
	assert_int_equal(try_tree(2, 1, CC_NO_NODE, 1), -EBADMSG); /* its own parent */
	assert_int_equal(try_tree(2, 1, CC_NO_NODE, CC_NO_NODE), -EBADMSG); /* a second root */
	assert_int_equal(try_tree(0, 0, CC_NO_NODE, 0), -EBADMSG);
}

static void test_texts(void **state)
{
	static const struct {
		const char *strings[2];
		int err;
	} tables[] = {{{"a", "b"}, 0}, {{"a", "a"}, -EBADMSG}, {{"", "b"}, -EBADMSG}};
	struct message msg = message_new();
	struct unpack u;
	size_t len = 1;
	uint32_t n = 3;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		struct strtab *tab;

		assert_int_equal(strtab__new(&tab), 0);
		msg.p.len = 0;
		PACK(&msg.p, n);
		pack__text(&msg.p, tables[i].strings[0]);
		pack__text(&msg.p, tables[i].strings[1]);
		u = message_end(&msg);
		assert_int_equal(unpack__strings(&u, tab), tables[i].err);
		strtab__free(tab);
	}
	/* a text with a NUL inside, and one that is longer than the message */
	msg.p.len = 0;
	pack__text(&msg.p, "abc");
	msg.p.data[5] = 0;
	u = message_end(&msg);
	assert_string_equal(unpack__text(&u, &len), "");
	assert_true(u.bad && !len);
	msg.p.data[5] = 'b';
	u = message_end(&msg);
	u.left--;
	assert_string_equal(unpack__text(&u, &len), "");
	assert_true(u.bad && !len);
	free(msg.p.data);
}

static int try_match(uint64_t start, uint64_t end, uint64_t tick, uint64_t gc)
{
	const struct el_match_call call = {.start = start, .end = end};
	const struct el_match_tick at = {.time = tick};
	const uint64_t calls = 1, dropped = 0;
	struct message msg = message_new();
	struct el_match *match;
	struct unpack u;
	int err;

	PACK(&msg.p, calls);
	PACK(&msg.p, dropped);
	pack__array(&msg.p, &call, 1, sizeof(call));
	pack__array(&msg.p, &at, 1, sizeof(at));
	pack__array(&msg.p, &gc, 1, sizeof(gc));
	u = message_end(&msg);
	err = el_match__unpack(&u, &match);
	if (!err) {
		assert_int_equal(u.left, 0);
		el_match__free(match);
	}
	free(msg.p.data);
	return err;
}

/* Clocks are compared by signed differences, which must not overflow. */
static void test_match(void **state)
{
	const uint64_t latest = INT64_MAX / 2, never = UINT64_MAX;
	struct el_match *match;

	(void)state;
	assert_int_equal(try_match(1, latest, latest, latest), 0);
	assert_int_equal(try_match(2, 1, 1, 1), -EBADMSG);
	assert_int_equal(try_match(1, latest + 1, 1, 1), -EBADMSG);
	assert_int_equal(try_match(1, 2, never, 1), -EBADMSG);
	assert_int_equal(try_match(1, 2, 1, never), -EBADMSG);
	/* such times are left out when a log is read */
	assert_int_equal(el_match__new(NULL, &match), 0);
	assert_int_equal(el_match__on_call(match, 1, 5, 6, 0, 0), 0);
	assert_int_equal(el_match__on_call(match, 1, 5, never, 0, 0), 0);
	assert_int_equal(el_match__info(match).n_calls, 1);
	assert_int_equal(el_match__info(match).calls, 2);
	assert_int_equal(el_match__info(match).dropped, 1);
	el_match__free(match);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slices), cmocka_unit_test(test_flags),
		cmocka_unit_test(test_tree),   cmocka_unit_test(test_texts),
		cmocka_unit_test(test_match),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
