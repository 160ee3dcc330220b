/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The queue of --push: the order of sending, what is kept, and what is dropped when it is full. */
#include "test_push_queue_kit.h"

#include <sys/syscall.h>

static void test_order(void **state)
{
	struct queue *q = open_queue(20);

	(void)state;
	assert_int_equal(hold_first(q), 0);
	put_file(q, 200, 0, 'c', SMALL);
	put_file(q, UINT64_C(1767225600123456789), 0, 'e', SMALL);
	put_file(q, 9, 1, 'b', SMALL);
	put_file(q, 9, 0, 'a', SMALL);
	put_file(q, 1000, 0, 'd', SMALL);
	/* not files of the queue */
	put_text(in_dir("a/queue/notes.txt"), "z", 1);
	put_text(in_dir("a/queue/00000000000000000000-00000.push.part"), "z", 1);
	assert_int_equal(mkdir(in_dir("a/queue/00000000000000000000-00000.push"), 0700), 0);
	assert_int_equal(queue__look(q), 0);
	assert_int_equal(queue__state(q).n, 5);
	assert_int_equal(queue__state(q).bytes, 5 * of_small());
	assert_int_equal(queue__state(q).oldest_unix_ns, 9);
	for (const char *want = "abcde"; *want; want++)
		assert_int_equal(take_first(q), *want);
	assert_int_equal(hold_first(q), 0);
	assert_int_equal(queue__state(q).bytes, 0);
	assert_int_equal(access(in_dir("a/queue/notes.txt"), F_OK), 0);
	queue__free(q);
}

/* A second file of the same time does not replace the first one, which may be in transit. */
static void test_same_time(void **state)
{
	struct queue *q = open_queue(20);

	(void)state;
	put_file(q, 7, 0, 'a', SMALL);
	assert_int_equal(queue__look(q), 0);
	assert_int_equal(hold_first(q), 'a');
	put_file(q, 7, 0, 'b', SMALL);
	queue__let_go(q, true);
	assert_int_equal(queue__look(q), 0);
	assert_int_equal(take_first(q), 'b');
	queue__free(q);
}

/* A file that is let go without being removed comes again. */
static void test_kept(void **state)
{
	struct queue *q = open_queue(20);

	(void)state;
	put_file(q, 1, 0, 'a', SMALL);
	assert_int_equal(queue__look(q), 0);
	assert_int_equal(hold_first(q), 'a');
	queue__let_go(q, false);
	assert_int_equal(hold_first(q), 'a');
	queue__let_go(q, false);
	queue__free(q);
	/* also in the next session */
	q = open_queue(20);
	assert_int_equal(take_first(q), 'a');
	assert_int_equal(hold_first(q), 0);
	queue__free(q);
	q = open_queue(20);
	assert_int_equal(hold_first(q), 0);
	queue__free(q);
}

static void test_oldest_go(void **state)
{
	struct queue *q = open_queue(2);

	(void)state;
	for (unsigned i = 0; i < 5; i++)
		put_file(q, 100 + i, 0, (char)('a' + i), SMALL);
	assert_int_equal(queue__look(q), 0);
	assert_int_equal(queue__state(q).dropped, 3);
	assert_int_equal(queue__state(q).n, 2);
	assert_int_equal(hold_first(q), 'd');
	/* the held file stays, and others are dropped in its place */
	put_file(q, 50, 0, 'x', SMALL);
	put_file(q, 200, 0, 'f', SMALL);
	assert_int_equal(queue__look(q), 0);
	assert_int_equal(queue__state(q).dropped, 5);
	queue__let_go(q, false);
	assert_int_equal(take_first(q), 'd');
	assert_int_equal(take_first(q), 'f');
	assert_int_equal(queue__state(q).dropped, 5);
	queue__free(q);
}

/* The newest file stays, even if there is no room for it. */
static void test_too_large(void **state)
{
	struct queue *q = open_queue_of(100, 1000);

	(void)state;
	put_file(q, 1, 0, 'a', 50);
	put_file(q, 2, 0, 'b', 3000);
	assert_int_equal(queue__look(q), 0);
	assert_int_equal(queue__state(q).dropped, 1);
	assert_int_equal(take_first(q), 'b');
	queue__free(q);
}

/* The held file is removed by somebody else. */
static void test_vanished(void **state)
{
	struct queue *q = open_queue(20);

	(void)state;
	put_file(q, 1, 0, 'a', SMALL);
	put_file(q, 2, 0, 'b', SMALL);
	put_file(q, 3, 0, 'c', SMALL);
	assert_int_equal(queue__look(q), 0);
	assert_int_equal(hold_first(q), 'a');
	assert_int_equal(unlink(in_dir("a/queue/00000000000000000001-00000.push")), 0);
	assert_int_equal(queue__look(q), 0);
	queue__let_go(q, true);
	assert_int_equal(queue__state(q).n, 2);
	assert_int_equal(unlink(in_dir("a/queue/00000000000000000002-00000.push")), 0);
	assert_int_equal(take_first(q), 'c');
	assert_int_equal(queue__state(q).dropped, 0);
	queue__free(q);
}

static void move(const char *from, const char *to)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s", in_dir(from));
	assert_int_equal(rename(path, in_dir(to)), 0);
}

/* If the directory is removed or replaced, the queue goes on in the one that takes its place. */
static void test_replaced(void **state)
{
	struct queue *q = open_queue(2), *other;

	(void)state;
	put_file(q, 1, 0, 'a', SMALL);
	put_file(q, 2, 0, 'b', SMALL);
	assert_int_equal(queue__look(q), 0);
	assert_int_equal(hold_first(q), 'a');
	move("a/queue", "a/away");
	assert_int_equal(queue__look(q), 0);
	assert_int_equal(queue__state(q).removed, 1);
	assert_int_equal(queue__state(q).n, 0);
	queue__let_go(q, true);
	/* the limit applies to the replacement */
	put_file(q, 3, 0, 'c', SMALL);
	put_file(q, 4, 0, 'd', SMALL);
	put_file(q, 5, 0, 'e', SMALL);
	assert_int_equal(queue__look(q), 0);
	assert_int_equal(queue__state(q).n, 2);
	assert_int_equal(queue__state(q).dropped, 1);
	assert_int_equal(queue__open(in_dir("a/queue"), 1000, 1000, &other), -EBUSY);
	assert_int_equal(take_first(q), 'd');
	move("a/away", "a/there");
	move("a/queue", "a/gone");
	move("a/there", "a/queue");
	assert_int_equal(queue__look(q), 0);
	assert_int_equal(take_first(q), 'a');
	assert_int_equal(take_first(q), 'b');
	assert_int_equal(take_first(q), 0);
	queue__free(q);
}

static void test_whose(void **state)
{
	struct queue *q = open_queue(20), *other;

	(void)state;
	assert_int_equal(queue__open(in_dir("a/queue"), 1000, 1000, &other), -EBUSY);
	/* in use by an earlier session, which then ends */
	assert_int_equal(queue__check(in_dir("a/queue")), 0);
	queue__free(q);
	assert_int_equal(chmod(in_dir("a/queue"), 0777), 0);
	assert_int_equal(queue__open(in_dir("a/queue"), 1000, 1000, &other), -EPERM);
	assert_int_equal(queue__check(in_dir("a/queue")), -EPERM);
	put_text(in_dir("file"), "x", 1);
	assert_int_equal(queue__open(in_dir("file"), 1000, 1000, &other), -ENOTDIR);
	assert_int_equal(queue__open(in_dir("file/queue"), 1000, 1000, &other), -ENOTDIR);
}

/* Something else in the directory's place may be gone when it is looked at again. */
static void test_later(void **state)
{
	char path[PATH_MAX];
	struct queue *q;

	(void)state;
	put_text(in_dir("file"), "x", 1);
	assert_int_equal(queue__open_later(in_dir("file/queue"), 1000000, 1000, &q), 0);
	assert_int_equal(queue__look(q), -ENOTDIR);
	assert_int_equal(queue__path(q, 1, 0, path), -ENOENT);
	assert_int_equal(queue__state(q).n, 0);
	assert_int_equal(unlink(in_dir("file")), 0);
	assert_int_equal(queue__look(q), 0);
	put_file(q, 1, 0, 'a', SMALL);
	assert_int_equal(queue__look(q), 0);
	assert_int_equal(queue__state(q).removed, 0);
	assert_int_equal(take_first(q), 'a');
	queue__free(q);
}

/* Files from before the clock was set back: each later window would count as older. */
static void test_ahead(void **state)
{
	uint64_t now = time__realtime_ns(), hour = UINT64_C(3600000000000);
	struct queue *q = open_queue(3);

	(void)state;
	put_file(q, now + hour, 0, 'x', SMALL);
	assert_int_equal(queue__look(q), 0);
	assert_int_equal(hold_first(q), 'x');
	for (unsigned i = 1; i < 4; i++)
		put_file(q, now + hour + i, 0, (char)('x' + i), SMALL);
	put_file(q, now - 2, 0, 'a', SMALL);
	/* there is room for two besides the held one */
	assert_int_equal(queue__look(q), 0);
	assert_int_equal(queue__state(q).dropped, 2);
	put_file(q, now - 1, 0, 'b', SMALL);
	assert_int_equal(queue__look(q), 0);
	assert_int_equal(queue__state(q).dropped, 3);
	queue__let_go(q, true);
	for (const char *want = "ab"; *want; want++)
		assert_int_equal(take_first(q), *want);
	assert_int_equal(hold_first(q), 0);
	/* if there is nothing else, the newest of these stays */
	for (unsigned i = 0; i < 4; i++)
		put_file(q, now + hour + i, 0, (char)('a' + i), SMALL);
	queue__free(q);
	q = open_queue_of(1, 1000);
	assert_int_equal(queue__state(q).n, 1);
	assert_int_equal(take_first(q), 'd');
	queue__free(q);
}

/* However many files there are, and in whatever order they are found, the newest ones stay. */
static void test_many(void **state)
{
	struct queue *q = open_queue_of(UINT64_MAX, 3);

	(void)state;
	put_file(q, 500, 0, 'h', SMALL);
	assert_int_equal(queue__look(q), 0);
	assert_int_equal(hold_first(q), 'h');
	for (unsigned i = 0; i < 100; i++)
		put_file(q, 1 + i * 37 % 100, 0, (char)(1 + i * 37 % 100), SMALL);
	assert_int_equal(queue__look(q), 0);
	assert_int_equal(queue__state(q).n, 3);
	assert_int_equal(queue__state(q).dropped, 98);
	assert_int_equal(queue__state(q).bytes, 3 * of_small());
	queue__let_go(q, false);
	assert_int_equal(take_first(q), 'h');
	assert_int_equal(take_first(q), 99);
	assert_int_equal(take_first(q), 100);
	assert_int_equal(hold_first(q), 0);
	/* also when the queue is opened */
	for (unsigned i = 0; i < 100; i++)
		put_file(q, 100 + i, 0, (char)i, SMALL);
	queue__free(q);
	q = open_queue_of(UINT64_MAX, 3);
	assert_int_equal(queue__state(q).n, 3);
	assert_int_equal(take_first(q), 97);
	queue__free(q);
}

/* Small files take up more of the disk than their length, sparse ones less. */
static void test_disk_space(void **state)
{
	struct queue *q = open_queue(20);
	char path[PATH_MAX];

	(void)state;
	put_file(q, 1, 0, 'a', 1);
	assert_int_equal(queue__path(q, 2, 0, path), 0);
	put_text(path, "b", 1);
	assert_int_equal(truncate(path, 1 << 20), 0);
	queue__free(q);
	q = open_queue_of(UINT64_MAX, 1000);
	assert_int_equal(queue__state(q).bytes,
			 disk_bytes(in_dir("a/queue/00000000000000000001-00000.push")) + (1 << 20));
	queue__free(q);
}

/* A killed writer's leftover where temporary files have names from the beginning. */
static void test_left_over(void **state)
{
	static const char name[] = "a/queue/.safescoped-0123456789abcdef0123456789abcdef";
	const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
	struct queue *q = open_queue(20);

	(void)state;
	put_text(in_dir(name), "x", 1);
	assert_int_equal(utimensat(AT_FDCWD, in_dir(name), times, 0), 0);
	queue__free(q);
	q = open_queue(20);
	assert_int_not_equal(access(in_dir(name), F_OK), 0);
	queue__free(q);
}

/* While this is set, removing a file fails as on a read-only file system. */
static bool read_only;

int unlinkat(int at, const char *name, int flags)
{
	if (read_only) {
		errno = EROFS;
		return -1;
	}
	return (int)syscall(SYS_unlinkat, at, name, flags);
}

/* A delivered file is not sent again, even if it cannot be removed. */
static void test_not_removable(void **state)
{
	struct queue *q = open_queue(20);
	bool again;
	int fd;

	(void)state;
	put_file(q, 2, 0, 'b', SMALL);
	put_file(q, 3, 0, 'c', SMALL);
	assert_int_equal(queue__look(q), 0);
	assert_int_equal(hold_first(q), 'b');
	read_only = true;
	queue__let_go(q, true);
	assert_int_equal(queue__hold_first(q, 1, &fd, &again), -EROFS);
	put_file(q, 1, 0, 'a', SMALL);
	assert_int_equal(queue__look(q), 0);
	assert_int_equal(queue__hold_first(q, 1, &fd, &again), -EROFS);
	assert_int_equal(queue__state(q).n, 3);
	read_only = false;
	assert_int_equal(take_first(q), 'a');
	assert_int_equal(take_first(q), 'c');
	assert_int_equal(hold_first(q), 0);
	assert_int_equal(queue__state(q).bytes, 0);
	assert_int_equal(queue__state(q).dropped, 0);
	queue__free(q);
}

/* A symbolic link is removed: nobody else's file is sent. */
static void test_link(void **state)
{
	const char *first = "a/queue/00000000000000000001-00000.push";
	struct queue *q = open_queue(20);
	char path[PATH_MAX];

	(void)state;
	put_file(q, 1, 0, 'a', SMALL);
	put_file(q, 2, 0, 'b', SMALL);
	put_text(in_dir("other"), "x", 1);
	assert_int_equal(queue__look(q), 0);
	assert_int_equal(unlink(in_dir(first)), 0);
	snprintf(path, sizeof(path), "%s", in_dir("other"));
	assert_int_equal(symlink(path, in_dir(first)), 0);
	assert_int_equal(take_first(q), 'b');
	assert_int_equal(queue__state(q).dropped, 1);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_not_equal(access(in_dir(first), F_OK), 0);
	queue__free(q);
}

/* A file that could not be removed does not count as dropped, however often that is tried. */
static void test_dropped_once(void **state)
{
	struct queue *q = open_queue(2);

	(void)state;
	for (unsigned i = 0; i < 5; i++)
		put_file(q, 100 + i, 0, (char)('a' + i), SMALL);
	read_only = true;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(queue__look(q), 0);
		assert_int_equal(queue__state(q).dropped, 0);
	}
	read_only = false;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(queue__look(q), 0);
		assert_int_equal(queue__state(q).dropped, 3);
	}
	assert_int_equal(take_first(q), 'd');
	queue__free(q);
}

static void test_again(void **state)
{
	struct queue *q = open_queue(20);
	bool again;
	int fd;

	(void)state;
	put_file(q, 2, 0, 'b', SMALL);
	assert_int_equal(queue__look(q), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(queue__hold_first(q, 1, &fd, &again), 0);
		assert_int_equal(again, i);
		close(fd);
		queue__let_go(q, false);
	}
	put_file(q, 1, 0, 'a', SMALL);
	assert_int_equal(queue__look(q), 0);
	assert_int_equal(queue__hold_first(q, 1, &fd, &again), 0);
	assert_false(again);
	close(fd);
	queue__free(q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_DIR(test_order),	   WITH_DIR(test_same_time),
		WITH_DIR(test_kept),	   WITH_DIR(test_oldest_go),
		WITH_DIR(test_too_large),  WITH_DIR(test_vanished),
		WITH_DIR(test_replaced),   WITH_DIR(test_whose),
		WITH_DIR(test_replaced),   WITH_DIR(test_later),
		WITH_DIR(test_ahead),	   WITH_DIR(test_many),
		WITH_DIR(test_disk_space), WITH_DIR(test_not_removable),
		WITH_DIR(test_again),	   WITH_DIR(test_left_over),
		WITH_DIR(test_link),	   WITH_DIR(test_dropped_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
