/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages with descriptors between two processes, including ill-formed ones. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/pass.h"

struct ends {
	int a, b;
};

static int make_ends(void **state)
{
	static struct ends ends;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -1;
	ends = (struct ends){pair[0], pair[1]};
	*state = &ends;
	return 0;
}

static int close_ends(void **state)
{
	struct ends *ends = *state;

	fd__close(&ends->a);
	fd__close(&ends->b);
	return 0;
}

static bool same_file(int a, int b)
{
	struct stat x, y;

	assert_int_equal(fstat(a, &x), 0);
	assert_int_equal(fstat(b, &y), 0);
	return x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static void test_with_and_without(void **state)
{
	struct ends *ends = *state;
	int file = -1, got = -2;
	uint64_t n = 0;

	assert_int_equal(pass__memory("test", &file), 0);
	assert_int_equal(pass__send(ends->a, &(uint64_t){7}, sizeof(n), file, 0), 0);
	assert_int_equal(pass__send(ends->a, &(uint64_t){8}, sizeof(n), -1, MSG_DONTWAIT), 0);
	assert_int_equal(pass__take(ends->b, &n, sizeof(n), MSG_DONTWAIT, &got), 0);
	assert_int_equal(n, 7);
	assert_true(got != file && same_file(got, file));
	assert_true(fcntl(got, F_GETFD) & FD_CLOEXEC);
	fd__close(&got);
	assert_int_equal(pass__take(ends->b, &n, sizeof(n), MSG_DONTWAIT, &got), 0);
	assert_int_equal(n, 8);
	assert_int_equal(got, -1);
	assert_int_equal(pass__take(ends->b, &n, sizeof(n), MSG_DONTWAIT, &got), -EAGAIN);
	fd__close(&file);
}

/* No descriptor of a refused message stays open. */
static void test_refused(void **state)
{
	struct ends *ends = *state;
	char bytes[16] = {0};
	int got = -2, next, file = -1;

	assert_int_equal(pass__memory("test", &file), 0);
	assert_int_equal(pass__send(ends->a, bytes, 7, file, 0), 0);
	assert_int_equal(pass__send(ends->a, bytes, 9, file, 0), 0);
	next = dup(file);
	close(next);
	assert_int_equal(pass__take(ends->b, bytes, 8, MSG_DONTWAIT, &got), -EBADMSG);
	assert_int_equal(pass__take(ends->b, bytes, 8, MSG_DONTWAIT, &got), -EBADMSG);
	assert_int_equal(got, -2);
	/* the lowest free descriptor number is unchanged */
	got = dup(file);
	assert_int_equal(got, next);
	fd__close(&got);
	fd__close(&file);
}

/* A message with more than one descriptor, which this process never sends. */
static void test_two_descriptors(void **state)
{
	struct ends *ends = *state;
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(2 * sizeof(int))];
	} control = {.head = {.cmsg_len = CMSG_LEN(2 * sizeof(int)),
			      .cmsg_level = SOL_SOCKET,
			      .cmsg_type = SCM_RIGHTS}};
	char byte = 0;
	struct iovec iov = {.iov_base = &byte, .iov_len = 1};
	struct msghdr head = {.msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control)};
	int got = -2, next = dup(ends->a);

	close(next);
	memcpy(CMSG_DATA(&control.head), (int[]){ends->a, ends->a}, 2 * sizeof(int));
	assert_int_equal(sendmsg(ends->a, &head, 0), 1);
	assert_int_equal(pass__take(ends->b, &byte, 1, MSG_DONTWAIT, &got), -EBADMSG);
	assert_int_equal(got, -2);
	got = dup(ends->a);
	assert_int_equal(got, next);
	fd__close(&got);
}

static void test_the_other_is_gone(void **state)
{
	struct ends *ends = *state;
	char byte;
	int got = -2;

	fd__close(&ends->a);
	assert_int_equal(pass__take(ends->b, &byte, 1, MSG_DONTWAIT, &got), -EPIPE);
	assert_int_equal(pass__send(ends->b, "", 1, -1, 0), -EPIPE);
	assert_int_equal(got, -2);
}

static void test_sealed(void **state)
{
	int fd = -1;
	char text[8] = "";

	(void)state;
	assert_int_equal(pass__memory("test", &fd), 0);
	assert_int_equal(pass__write(fd, "hello", 5), 0);
	assert_int_equal(pass__seal(fd), 0);
	assert_int_equal(pass__write(fd, "more", 4), -EPERM);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(pread(fd, text, sizeof(text), 0), 5);
	assert_string_equal(text, "hello");
	fd__close(&fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_with_and_without, make_ends, close_ends),
		cmocka_unit_test_setup_teardown(test_refused, make_ends, close_ends),
		cmocka_unit_test_setup_teardown(test_two_descriptors, make_ends, close_ends),
		cmocka_unit_test_setup_teardown(test_the_other_is_gone, make_ends, close_ends),
		cmocka_unit_test(test_sealed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
