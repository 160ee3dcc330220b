/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sources of logs: files, gzip, FIFOs, sockets, a growing file; and logs too large to hold at
 * once. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <zlib.h>

#include "eventlog_reading.h"

struct feeder {
	int fd;
	const uint8_t *data;
	size_t len;
};

static void *feed_fd(void *arg)
{
	struct feeder *f = arg;
	size_t at = 0;

	while (at < f->len) {
		size_t n = f->len - at < 777 ? f->len - at : 777;
		ssize_t got = write(f->fd, f->data + at, n);

		if (got <= 0)
			break;
		at += (size_t)got;
	}
	close(f->fd);
	return NULL;
}

static uint64_t sum_of_path(const char *path)
{
	struct seen a;
	struct eventlog *log;

	memset(&a, 0, sizeof(a));
	assert_int_equal(eventlog__new(NULL, &log), 0);
	assert_int_equal(w_subscribe_all(log, on_any, &a), 0);
	assert_int_equal(w_read_path(log, path), 0);
	assert_int_equal(eventlog__stats(log)->lost_bytes, 0);
	eventlog__free(log);
	return a.sum;
}

static void *serve(void *arg)
{
	struct feeder *f = arg;
	int conn = accept(f->fd, NULL, NULL);

	close(f->fd);
	f->fd = conn;
	return conn < 0 ? NULL : feed_fd(f);
}

static void t_ways_in(void **state)
{
	char dir[] = "/tmp/safescoped-test-XXXXXX", path[128];
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct writer w = {0};
	struct feeder f;
	pthread_t thread;
	struct seen a;
	gzFile gz;
	FILE *out;

	(void)state;
	sample_log(&w, 30, 60);
	read_file(w.data, w.len, &a);
	assert_non_null(mkdtemp(dir));

	snprintf(path, sizeof(path), "%s/plain", dir);
	out = fopen(path, "w");
	assert_int_equal(fwrite(w.data, 1, w.len, out), w.len);
	fclose(out);
	assert_int_equal(sum_of_path(path), a.sum);
	unlink(path);

	/* Two gzip members, as in concatenated files. */
	snprintf(path, sizeof(path), "%s/gz", dir);
	gz = gzopen(path, "wb");
	gzwrite(gz, w.data, 5000);
	gzclose(gz);
	gz = gzopen(path, "ab");
	gzwrite(gz, w.data + 5000, (unsigned)(w.len - 5000));
	gzclose(gz);
	assert_int_equal(sum_of_path(path), a.sum);
	unlink(path);

	snprintf(path, sizeof(path), "%s/fifo", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	f = (struct feeder){open(path, O_RDWR), w.data, w.len};
	assert_int_equal(pthread_create(&thread, NULL, feed_fd, &f), 0);
	assert_int_equal(sum_of_path(path), a.sum);
	pthread_join(thread, NULL);
	unlink(path);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/sock", dir);
	f = (struct feeder){socket(AF_UNIX, SOCK_STREAM, 0), w.data, w.len};
	assert_int_equal(bind(f.fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(f.fd, 1), 0);
	assert_int_equal(pthread_create(&thread, NULL, serve, &f), 0);
	assert_int_equal(sum_of_path(addr.sun_path), a.sum);
	pthread_join(thread, NULL);
	unlink(addr.sun_path);
	rmdir(dir);
	w_free(&w);
}

static void t_growing_file(void **state)
{
	const struct eventlog_opts opts = {.prompt = true};
	struct writer w = {0};
	static struct seen a, b;
	struct eventlog *log;
	int fd = w_file("", 0);
	size_t at = 0, early = 0;

	(void)state;
	sample_log(&w, 20, 30);
	read_file(w.data, w.len, &a);
	memset(&b, 0, sizeof(b));
	assert_int_equal(eventlog__new(&opts, &log), 0);
	assert_int_equal(w_subscribe_all(log, on_any, &b), 0);
	assert_int_equal(eventlog__open_fd(log, fd), 0);
	while (at < w.len) {
		/* The first piece has blocks of all buffers: a buffer that is not yet known is
		 * not waited for. */
		size_t some = at ? 1234 : 8000, n = w.len - at < some ? w.len - at : some;

		assert_int_equal(write(fd, w.data + at, n), (ssize_t)n);
		at += n;
		assert_int_equal(eventlog__poll(log), 0);
		if (at < w.len * 3 / 4)
			early = b.n;
	}
	/* Events come out in order as the file grows, and the rest at the end. */
	assert_true(early > a.n / 2);
	assert_int_equal(eventlog__finish(log), 0);
	assert_int_equal(b.n, a.n);
	assert_int_equal(b.sum, a.sum);
	assert_int_equal(eventlog__stats(log)->late, 0);
	settled(eventlog__stats(log), w.len);
	eventlog__free(log);
	close(fd);
	w_free(&w);
}

/* A log much larger than what may be held back. */
static void t_bounded_stream(void **state)
{
	const struct eventlog_opts opts = {.hold_max = 20000};
	struct writer w = {0};
	static struct seen a, b;
	struct eventlog_stats st;

	(void)state;
	sample_log(&w, 200, 100);
	read_file(w.data, w.len, &a);
	st = read_stream(w.data, w.len, 4096, &opts, &b);
	assert_int_equal(st.lost_bytes, 0);
	assert_int_equal(b.n, a.n);
	/* The buffers of this log are at most one block apart. */
	assert_int_equal(st.late, 0);
	assert_int_equal(b.sum, a.sum);
	w_free(&w);
}

/* More blocks than are indexed at once: read window by window, nothing is lost. */
static void t_many_blocks(void **state)
{
	const unsigned n = EVENTLOG_WINDOW_BLOCKS * 5 / 4;
	struct writer w = {0};
	struct eventlog_stats st;
	static struct seen a;

	(void)state;
	w_header(&w);
	for (unsigned i = 0; i < n; i++) {
		w_block(&w, i % 2, i * 10);
		w_event(&w, EL_GC_START, i * 10 + 1, "");
		w_block_end(&w, i * 10 + 2);
	}
	w_end(&w);
	st = read_file(w.data, w.len, &a);
	assert_true(st.ended);
	assert_int_equal(st.lost_bytes, 0);
	assert_int_equal(st.blocks, n);
	assert_int_equal(a.n, 2 * n);
	assert_int_equal(st.late, 0);
	w_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_ways_in),
		cmocka_unit_test(t_growing_file),
		cmocka_unit_test(t_bounded_stream),
		cmocka_unit_test(t_many_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
