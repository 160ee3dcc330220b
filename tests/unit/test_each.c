/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Iterating over a kernel hash map while elements are added and removed. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

#include <bpf/bpf.h>

#include "base/base.h"
#include "kernel/kernel_priv.h"

#define KEYS 5000U

struct visits {
	int fd;
	uint32_t n, stop_at;
	bool removes;
	uint8_t seen[2 * KEYS], gone[2 * KEYS];
};

static int make_map(uint32_t n)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_HASH, "each", sizeof(uint32_t), sizeof(uint64_t),
				2 * KEYS, NULL);

	if (fd == -EPERM)
		skip();
	assert_true(fd >= 0);
	for (uint32_t key = 0; key < n; key++) {
		uint64_t value = 3 * key;

		assert_int_equal(bpf_map_update_elem(fd, &key, &value, BPF_NOEXIST), 0);
	}
	return fd;
}

static int visit(void *ctx, const void *key, void *value)
{
	struct visits *v = ctx;
	uint32_t at = *(const uint32_t *)key, other = (at * 7919 + 1) % KEYS, added = KEYS + at;
	uint64_t zero = 0;

	assert_true(at < 2 * KEYS);
	assert_int_equal(*(uint64_t *)value, at < KEYS ? 3 * at : 0);
	assert_int_equal(v->seen[at]++, 0);
	v->n++;
	if (v->stop_at && v->n == v->stop_at)
		return -ECANCELED;
	if (!v->removes || at >= KEYS)
		return 0;
	/* remove this one and often one still to come; add one that is not known */
	if (!bpf_map_delete_elem(v->fd, &at))
		v->gone[at] = 1;
	if (at % 3 == 0 && !bpf_map_delete_elem(v->fd, &other))
		v->gone[other] = 1;
	if (at % 5 == 0)
		bpf_map_update_elem(v->fd, &added, &zero, BPF_ANY);
	return 0;
}

static int each(struct visits *v)
{
	return map__each(v->fd, sizeof(uint32_t), sizeof(uint64_t), visit, v);
}

static void each_once(void **state)
{
	static const uint32_t sizes[] = {0, 1, 63, 64, 65, KEYS};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct visits v = {.fd = make_map(sizes[i])};

		assert_int_equal(each(&v), 0);
		assert_int_equal(v.n, sizes[i]);
		close(v.fd);
	}
}

/* No element is visited twice, and none that is present throughout is skipped. */
static void while_others_go(void **state)
{
	struct visits v = {.fd = make_map(KEYS), .removes = true};

	(void)state;
	assert_int_equal(each(&v), 0);
	for (uint32_t key = 0; key < KEYS; key++)
		assert_true(v.seen[key] || v.gone[key]);
	close(v.fd);
}

static void ends_by_an_error(void **state)
{
	struct visits v = {.fd = make_map(KEYS), .stop_at = 100};

	(void)state;
	assert_int_equal(each(&v), -ECANCELED);
	assert_int_equal(v.n, 100);
	close(v.fd);
	v.fd = -1;
	assert_int_equal(each(&v), -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_once),
		cmocka_unit_test(while_others_go),
		cmocka_unit_test(ends_by_an_error),
	};

	return cmocka_run_group_tests_name("each", tests, NULL, NULL);
}
