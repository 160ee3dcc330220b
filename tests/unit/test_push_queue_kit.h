/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the tests of --push's queue: small files that consist of a single letter. */
#ifndef SAFESCOPED_TEST_PUSH_QUEUE_KIT_H
#define SAFESCOPED_TEST_PUSH_QUEUE_KIT_H

#include "test_push_kit.h"

/* The size of a small file in bytes, which is also the least disk space it takes on any file
 * system. */
#define SMALL 10

static inline uint64_t disk_bytes(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return MAX((uint64_t)st.st_size, (uint64_t)st.st_blocks * 512);
}

/* The disk space of a small file, which is not its size. */
static inline uint64_t of_small(void)
{
	char text[SMALL] = "";

	put_text(in_dir("small"), text, sizeof(text));
	return disk_bytes(in_dir("small"));
}

static inline struct queue *open_queue_of(uint64_t max_bytes, size_t max_files)
{
	struct queue *q;

	assert_int_equal(queue__open(in_dir("a/queue"), max_bytes, max_files, &q), 0);
	return q;
}

/* Opens the queue with room for that many small files. */
static inline struct queue *open_queue(unsigned files)
{
	return open_queue_of(files * of_small(), 1000);
}

/* Writes `bytes` bytes, all of the same letter. */
static inline void put_file(const struct queue *q, uint64_t unix_ns, unsigned n, char letter,
			    size_t bytes)
{
	char path[PATH_MAX], text[4096];

	memset(text, letter, sizeof(text));
	assert_int_equal(queue__path(q, unix_ns, n, path), 0);
	put_text(path, text, bytes);
}

/* Holds the first file and returns its letter; 0 if there is none. */
static inline char hold_at(struct queue *q, uint64_t now)
{
	char letter = 0;
	bool again;
	int fd;

	if (queue__hold_first(q, now, &fd, &again))
		return 0;
	assert_int_equal(read(fd, &letter, 1), 1);
	close(fd);
	return letter;
}

static inline char hold_first(struct queue *q)
{
	return hold_at(q, 1);
}

static inline char take_first(struct queue *q)
{
	char letter = hold_first(q);

	queue__let_go(q, true);
	return letter;
}

#endif
