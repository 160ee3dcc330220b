/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Clients that attack the metrics server: all others are still served. */
#include "test_metrics_kit.h"

static uint64_t resident_kb(pid_t pid)
{
	char path[64], *text, *at;
	uint64_t kb;
	size_t len;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	assert_int_equal(proc__text(path, 65536, &text, &len), 0);
	at = strstr(text, "\nRssAnon:");
	assert_non_null(at);
	kb = strtoull(at + strlen("\nRssAnon:"), NULL, 10);
	free(text);
	return kb;
}

static size_t open_fds(pid_t pid)
{
	char path[64];
	size_t n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	/* an ordinary user may not read the directory */
	if (!dir)
		return 0;
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* The kernel drops connections beyond its backlog, so a client may have to try again. */
static bool is_served_soon(struct kit *kit)
{
	uint64_t until = time__monotonic_ns() + LONG_NS;

	while (status_of(get(kit, "/metrics")) != 200)
		if (time__monotonic_ns() >= until)
			return false;
	return true;
}

/* As many connections as there is room for: none of them is closed in favour of another one. */
static void as_many_as_there_may_be(void **state)
{
	static const char request[] = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
	struct kit *kit = *state;
	int fds[SERVER_CONNECTIONS];

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = try_to_connect(kit);
		assert_true(fds[i] >= 0);
		/* one at a time */
		usleep(1000);
	}
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		assert_true(send_all(fds[i], request, strlen(request)));
		free(kit->answer);
		kit->answer = read_all(kit, fds[i]);
		assert_non_null(kit->answer);
		assert_int_equal(status_of(kit->answer), 200);
		close(fds[i]);
	}
}

/* Requests that are never finished: complete ones are still served, and the others are closed. */
static void slow_requests(void **state)
{
	static const char half[] = "GET /metrics HTTP/1.1\r\nHost: ";
	struct kit *kit = *state;
	int fds[3 * SERVER_CONNECTIONS];
	uint64_t until;
	size_t left;

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = try_to_connect(kit);
		if (fds[i] >= 0)
			(void)!send(fds[i], half, strlen(half), MSG_NOSIGNAL);
		if (i % SERVER_CONNECTIONS == SERVER_CONNECTIONS / 2)
			assert_true(is_served_soon(kit));
	}
	assert_true(is_served_soon(kit));
	until = time__monotonic_ns() + SERVER_CONNECTION_MS * 1000000ULL + LONG_NS;
	do {
		left = 0;
		for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
			char byte;

			if (fds[i] < 0)
				continue;
			/* a byte now and then does not keep a connection open */
			(void)!send(fds[i], "x", 1, MSG_NOSIGNAL);
			if (recv(fds[i], &byte, 1, 0) >= 0 || errno != EAGAIN)
				fd__close(&fds[i]);
			else
				left++;
		}
		turn(kit);
		usleep(100000);
	} while (left && time__monotonic_ns() < until);
	assert_int_equal(left, 0);
	assert_int_equal(status_of(get(kit, "/metrics")), 200);
}

/* Large texts that nobody reads, a different one for each connection. */
static void slow_readers(void **state)
{
	static const char request[] = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
	struct kit *kit = *state;
	int fds[2 * SERVER_CONNECTIONS];
	uint64_t until = time__monotonic_ns() + LONG_NS;
	size_t len = 4 << 20;
	char *text = malloc(len);

	assert_non_null(text);
	memset(text, 'x', len);
	kit->text = text;
	kit->len = len;
	kit->fresh_ns = 0;
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = try_to_connect(kit);
		if (fds[i] >= 0)
			send_all(fds[i], request, strlen(request));
		turn(kit);
	}
	/* a slow client may lose its place to later ones, and has to try again */
	while (strlen(body_of(get(kit, "/metrics"))) != len)
		assert_true(time__monotonic_ns() < until);
	assert_true(is_served_soon(kit));
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fd__close(&fds[i]);
	free(text);
}

static void ten_thousand_connections(void **state)
{
	struct kit *kit = *state;
	pid_t pid = metrics_server__pid(kit->server);
	uint64_t before, after;
	size_t most = 0;
	int held[500];

	assert_int_equal(status_of(get(kit, "/metrics")), 200);
	before = resident_kb(pid);
	for (size_t i = 0; i < ARRAY_SIZE(held); i++)
		held[i] = -1;
	for (int i = 0; i < 10000; i++) {
		int *fd = &held[(size_t)i % ARRAY_SIZE(held)];

		fd__close(fd);
		*fd = try_to_connect(kit);
		if (*fd >= 0 && i % 3)
			(void)!send(*fd, "GET /metrics HTTP/1.1\r\n\r\n", (size_t)(i % 26),
				    MSG_NOSIGNAL);
		if (i % 1000 == 0) {
			assert_true(is_served_soon(kit));
			most = MAX(most, open_fds(pid));
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(held); i++)
		fd__close(&held[i]);
	assert_true(is_served_soon(kit));
	after = resident_kb(pid);
	assert_true(most <= SERVER_CONNECTIONS + 16);
#ifndef __SANITIZE_ADDRESS__
	/* kB that the allocator keeps after the maximum number of connections */
	assert_true(after < before + 4096);
#endif
	(void)before;
	(void)after;
}

static void garbage(void **state)
{
	struct kit *kit = *state;
	unsigned seed = 20261122;
	char bytes[20000];

	for (int i = 0; i < 200; i++) {
		size_t len = 1 + (size_t)rand_r(&seed) % sizeof(bytes);
		int status;

		for (size_t k = 0; k < len; k++)
			bytes[k] = (char)rand_r(&seed);
		if (i % 2)
			memcpy(bytes, "GET /metrics HTTP/1.1\r\n", MIN(len, (size_t)23));
		/* ensures that the request line ends */
		bytes[len - 1] = '\n';
		{
			int fd = try_to_connect(kit);

			assert_true(fd >= 0);
			send_all(fd, bytes, len);
			shutdown(fd, SHUT_WR);
			free(kit->answer);
			kit->answer = read_all(kit, fd);
			close(fd);
		}
		status = status_of(kit->answer ? kit->answer : "");
		/* 200 if what follows the first line happens to be valid headers */
		assert_true(status == 0 || status == 200 || status >= 400);
	}
	assert_int_equal(status_of(get(kit, "/metrics")), 200);
}

static void headers_without_end(void **state)
{
	struct kit *kit = *state;
	size_t len = 1 << 20;
	char *request = malloc(len);
	int n, status;

	assert_non_null(request);
	n = snprintf(request, len, "GET /metrics HTTP/1.1\r\nX: ");
	memset(request + n, 'a', len - (size_t)n);
	status = status_of(answer_to(kit, request, len));
	assert_true(status == 0 || status == 413 || status == 431);
	assert_int_equal(status_of(get(kit, "/metrics")), 200);
	free(request);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(as_many_as_there_may_be),	TEST(slow_requests), TEST(slow_readers),
		TEST(ten_thousand_connections), TEST(garbage),	     TEST(headers_without_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
