/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The queue of --push when files cannot be opened. */
#include "test_push_queue_kit.h"

#include <sys/syscall.h>

/* The error with which opening a file named `unreadable_name` for reading fails; 0: none. */
static int unreadable;
static const char *unreadable_name = "";

int openat(int at, const char *name, int flags, ...)
{
	va_list args;
	mode_t mode = 0;

	if (flags & (O_CREAT | __O_TMPFILE)) {
		va_start(args, flags);
		mode = va_arg(args, mode_t);
		va_end(args);
	}
	if (unreadable && flags == (O_RDONLY | O_CLOEXEC | O_NOFOLLOW) &&
	    strstr(name, unreadable_name)) {
		errno = unreadable;
		return -1;
	}
	return (int)syscall(SYS_openat, at, name, flags, mode);
}

/* A file that may become readable stays, whatever is wrong with the disk or its server. */
static void test_unreadable(void **state)
{
	static const int errors[] = {EIO, ESTALE, EINTR, EMFILE, ENFILE, ENOMEM, EPERM, EUCLEAN};
	struct queue *q = open_queue(20);
	bool again;

	(void)state;
	put_file(q, 1, 0, 'a', SMALL);
	put_file(q, 2, 0, 'b', SMALL);
	assert_int_equal(queue__look(q), 0);
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		int fd = -7;

		unreadable = errors[i];
		assert_int_equal(queue__hold_first(q, 1, &fd, &again), -errors[i]);
		assert_int_equal(queue__hold_second(q, &fd), -ENOENT);
		assert_int_equal(fd, -7);
		unreadable = 0;
		assert_int_equal(access(in_dir("a/queue/00000000000000000001-00000.push"), F_OK),
				 0);
		assert_int_equal(queue__state(q).n, 2);
	}
	assert_int_equal(queue__state(q).dropped, 0);
	assert_int_equal(take_first(q), 'a');
	assert_int_equal(take_first(q), 'b');
	queue__free(q);
}

static void begin_stuck(const char *name)
{
	unreadable_name = name;
	unreadable = EIO;
}

static void end_stuck(void)
{
	unreadable_name = "";
	unreadable = 0;
}

/* A file that can never be opened holds up no other, and is dropped after some attempts. */
static void test_stuck(void **state)
{
	const uint64_t s = UINT64_C(1000000000);
	struct queue *q = open_queue(20);
	uint64_t now = s;

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		put_file(q, 1 + i, 0, (char)('a' + i), SMALL);
	assert_int_equal(queue__look(q), 0);
	begin_stuck("001-00000.push");
	/* the others keep their order; any number of attempts at one time counts as one */
	for (int i = 0; i < 20; i++) {
		assert_int_equal(hold_at(q, now), 'b');
		queue__let_go(q, false);
	}
	assert_int_equal(hold_at(q, now), 'b');
	queue__let_go(q, true);
	assert_int_equal(hold_at(q, now), 'c');
	/* a look in between resets nothing */
	assert_int_equal(queue__look(q), 0);
	queue__let_go(q, true);
	assert_int_equal(queue__state(q).n, 2);
	assert_int_equal(queue__state(q).dropped, 0);
	for (; queue__state(q).dropped == 0; now += s) {
		assert_true(now < 20 * s);
		assert_int_equal(hold_at(q, now), 'd');
		queue__let_go(q, false);
		assert_int_equal(queue__look(q), 0);
	}
	assert_true(now > 15 * s);
	assert_int_equal(queue__state(q).n, 1);
	assert_int_equal(queue__state(q).bytes, of_small());
	assert_int_not_equal(access(in_dir("a/queue/00000000000000000001-00000.push"), F_OK), 0);
	assert_int_equal(hold_at(q, now), 'd');
	end_stuck();
	queue__free(q);
}

/* If other files could be opened, that is remembered when the stuck one is alone. */
static void test_stuck_alone(void **state)
{
	const uint64_t s = UINT64_C(1000000000);
	struct queue *q = open_queue(20);
	uint64_t now = s;

	(void)state;
	put_file(q, 1, 0, 'a', SMALL);
	assert_int_equal(queue__look(q), 0);
	begin_stuck("001-00000.push");
	/* it may be the disk's fault */
	for (; now < 100 * s; now += s)
		assert_int_equal(hold_at(q, now), 0);
	put_file(q, 2, 0, 'b', SMALL);
	assert_int_equal(queue__look(q), 0);
	assert_int_equal(hold_at(q, now), 'b');
	queue__let_go(q, true);
	for (; queue__state(q).n; now += s) {
		assert_true(now < 120 * s);
		assert_int_equal(hold_at(q, now), 0);
	}
	assert_int_equal(queue__state(q).dropped, 1);
	assert_int_equal(queue__state(q).bytes, 0);
	end_stuck();
	queue__free(q);
}

/*
 * A temporary error loses nothing; the file to be tried beside the first is the next readable one.
 */
static void test_stuck_passes(void **state)
{
	struct queue *q = open_queue(20);
	char letter;
	int fd;

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		put_file(q, 1 + i, i % 2, (char)('a' + i), SMALL);
	assert_int_equal(queue__look(q), 0);
	begin_stuck("-00000.push");
	assert_int_equal(hold_at(q, 1), 'b');
	queue__let_go(q, false);
	assert_int_equal(queue__hold_second(q, &fd), 0);
	assert_int_equal(read(fd, &letter, 1), 1);
	assert_int_equal(letter, 'd');
	close(fd);
	queue__let_go(q, false);
	end_stuck();
	for (const char *want = "abcd"; *want; want++)
		assert_int_equal(take_first(q), *want);
	assert_int_equal(queue__state(q).dropped, 0);
	queue__free(q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_DIR(test_unreadable),
		WITH_DIR(test_stuck),
		WITH_DIR(test_stuck_alone),
		WITH_DIR(test_stuck_passes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
