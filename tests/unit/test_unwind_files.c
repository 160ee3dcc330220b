/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * When a file's unwind rows are made, and when they are made again. The files, the kernel's maps
 * and the clock are simulated.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include <bpf/bpf.h>

#include "base/base.h"
#include "base/shares.h"
#include "kernel/kernel_priv.h"
#include "safescope.skel.h"
#include "target/target.h"
#include "unwind/cfi.h"

#define S	1000000000ULL
#define FILES	2
#define FOREVER UINT64_MAX

/* What every process maps, and the results of reading it. */
static struct {
	int err[FILES];
	unsigned reads[FILES];
	uint64_t passed_ns;
	struct target_info info;
	struct wire_unwind_maps maps; /* as the last process has them */
	bool one_by_one;	      /* the kernel supports no batches */
	__u32 singles;		      /* elements of such a batch still to come one by one */
	__u32 full_at;		      /* there is no memory for the rows of this file */
	unsigned put[FILES + 1];      /* how often a file's rows were put into the map of maps */
} world;

/* ── in place of what is elsewhere ───────────────────────────────────────────────────────── */

int clock_gettime(clockid_t id, struct timespec *ts)
{
	int err = (int)syscall(SYS_clock_gettime, id, ts);

	if (id == CLOCK_MONOTONIC)
		ts->tv_sec += (time_t)(world.passed_ns / S);
	return err;
}

size_t target__n_code(const struct target *target)
{
	(void)target;
	return FILES;
}

int target__code_at(const struct target *target, size_t i, struct target_code *ret_code)
{
	(void)target;
	*ret_code = (struct target_code){
		.start = 0x1000 * (i + 1), .end = 0x1000 * (i + 2), .dev = 1, .ino = i + 1};
	return 0;
}

int target__rows(const struct target *target, size_t i, struct cfi_rows *ret_rows)
{
	(void)target;
	world.reads[i]++;
	if (world.err[i])
		return world.err[i];
	*ret_rows = (struct cfi_rows){
		.words = calloc(2, sizeof(uint64_t)), .n_buckets = 1, .n_rows = 1};
	assert_non_null(ret_rows->words);
	return 0;
}

const struct target_info *target__info(const struct target *target)
{
	(void)target;
	return &world.info;
}

uid_t target__account(const struct target *target)
{
	(void)target;
	return 1000;
}

int bpf_map__fd(const struct bpf_map *map)
{
	(void)map;
	return -1;
}

int bpf_map_create(enum bpf_map_type type, const char *name, __u32 key_size, __u32 value_size,
		   __u32 n, const struct bpf_map_create_opts *opts)
{
	int fd = memfd_create(name, MFD_CLOEXEC);

	(void)type;
	(void)key_size;
	(void)opts;
	return fd < 0 || ftruncate(fd, (off_t)n * value_size) ? -ENOMEM : fd;
}

int bpf_map_update_batch(int fd, const void *keys, const void *values, __u32 *n,
			 const struct bpf_map_batch_opts *opts)
{
	const __u32 *ids = keys;

	(void)fd;
	(void)values;
	(void)opts;
	if (world.one_by_one) {
		world.singles = *n;
		return -ENOTSUP;
	}
	for (__u32 i = 0; i < *n; i++)
		world.put[ids[i]]++;
	return 0;
}

int bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	const __u32 *id = key;

	(void)fd;
	(void)flags;
	if (world.singles) {
		world.singles--;
		if (*id == world.full_at)
			return -ENOMEM;
		world.put[*id]++;
		return 0;
	}
	memcpy(&world.maps, value, sizeof(world.maps));
	return 0;
}

int bpf_map_delete_elem(int fd, const void *key)
{
	(void)fd;
	(void)key;
	return 0;
}

/* ── the tests ───────────────────────────────────────────────────────────────────────────── */

struct fixture {
	struct safescope_bpf skel;
	struct kernel kernel;
};

static struct fixture *begin(void)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	memset(&world, 0, sizeof(world));
	f->kernel.skel = &f->skel;
	assert_int_equal(unwind__new(&f->kernel.unwind), 0);
	return f;
}

static void end(struct fixture *f)
{
	unwind__free(f->kernel.unwind);
	free(f);
}

/* Looks at a process for the first time, or again. */
static int look(struct fixture *f, pid_t pid)
{
	world.info.pid = pid;
	return kernel__unwind(&f->kernel, NULL, FOREVER);
}

/*
 * No process gets the rows before the pause is over, and each pause is longer; then all of them do.
 */
static void test_again(void **state)
{
	static const int errs[] = {-ETIMEDOUT, -EIO, -ENOMEM, -EMFILE, -ENFILE};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(errs); i++) {
		struct fixture *f = begin();
		uint64_t pause = 10;

		world.err[1] = errs[i];
		for (unsigned k = 1; k <= 10; k++) {
			assert_int_equal(look(f, 1), errs[i]);
			assert_int_equal(look(f, 2), errs[i]);
			assert_int_equal(world.reads[1], k);
			assert_int_equal(world.maps.n, 1);
			world.passed_ns += (pause - 1) * S;
			assert_int_equal(look(f, 2), errs[i]);
			assert_int_equal(world.reads[1], k);
			world.passed_ns += 1 * S;
			pause = MIN(2 * pause, (uint64_t)600);
		}
		world.err[1] = 0;
		for (pid_t pid = 1; pid <= 2; pid++) {
			assert_int_equal(look(f, pid), 0);
			assert_int_equal(world.maps.n, 2);
			assert_int_equal(world.maps.v[1].buckets, 1);
			assert_int_equal(world.maps.v[1].start, 0x2000);
		}
		assert_int_equal(world.reads[0], 1);
		assert_int_equal(world.reads[1], 11);
		end(f);
	}
}

/* A broken file is read once, and reported for every process that maps it. */
static void test_broken(void **state)
{
	struct fixture *f = begin();

	(void)state;
	world.err[1] = -EBADMSG;
	assert_int_equal(look(f, 1), -EBADMSG);
	assert_int_equal(look(f, 2), -EBADMSG);
	assert_int_equal(world.maps.n, 1);
	world.passed_ns += 86400 * S;
	assert_int_equal(look(f, 1), -EBADMSG);
	assert_int_equal(world.reads[1], 1);
	end(f);
}

/* A file without rows lacks nothing. */
static void test_without(void **state)
{
	struct fixture *f = begin();

	(void)state;
	world.err[0] = -ENOENT;
	for (pid_t pid = 1; pid <= 2; pid++) {
		assert_int_equal(look(f, pid), 0);
		assert_int_equal(world.maps.n, 2);
		assert_int_equal(world.maps.v[0].buckets, 0);
		assert_int_equal(world.maps.v[1].buckets, 1);
	}
	assert_int_equal(world.reads[0], 1);
	end(f);
}

/*
 * The kernel has no memory for one file's rows: the others are put, and this one at the next look.
 */
static void test_full(void **state)
{
	struct fixture *f = begin();

	(void)state;
	world.one_by_one = true;
	world.full_at = 1;
	assert_int_equal(look(f, 1), -ENOMEM);
	assert_int_equal(world.put[1], 0);
	assert_int_equal(world.put[2], 1);
	world.full_at = 0;
	assert_int_equal(look(f, 1), 0);
	assert_int_equal(world.put[1], 1);
	assert_int_equal(world.put[2], 1);
	assert_int_equal(look(f, 2), 0);
	assert_int_equal(world.put[1], 1);
	assert_int_equal(world.reads[0] + world.reads[1], 2);
	end(f);
}

/* Lack of time comes before all other errors: the file is tried again in the next turn. */
static void test_busy(void **state)
{
	struct fixture *f = begin();

	(void)state;
	world.err[0] = -EBUSY;
	world.err[1] = -ETIMEDOUT;
	assert_int_equal(look(f, 1), -EBUSY);
	assert_int_equal(look(f, 1), -EBUSY);
	assert_int_equal(world.reads[0], 2);
	assert_int_equal(world.reads[1], 1);
	world.err[0] = 0;
	assert_int_equal(look(f, 1), -ETIMEDOUT);
	assert_int_equal(world.maps.n, 1);
	/* its rows come while the other file is being retried */
	world.passed_ns += 10 * S;
	world.err[1] = -EBUSY;
	assert_int_equal(look(f, 1), -EBUSY);
	world.err[1] = 0;
	assert_int_equal(look(f, 1), 0);
	assert_int_equal(world.maps.n, 2);
	end(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_again),	cmocka_unit_test(test_broken),
		cmocka_unit_test(test_without), cmocka_unit_test(test_full),
		cmocka_unit_test(test_busy),
	};

	return cmocka_run_group_tests_name("unwind_files", tests, NULL, NULL);
}
