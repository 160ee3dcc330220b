/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the tests of the metrics server: a server with a daemon whose loop turns, and a
 * client. */
#ifndef SAFESCOPED_TEST_METRICS_KIT_H
#define SAFESCOPED_TEST_METRICS_KIT_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <arpa/inet.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/base.h"
#include "metrics/metrics.h"
#include "metrics/server_priv.h"
#include "process/proc.h"
#include "listening.h"

#define LONG_NS	   60000000000ULL
#define SECOND_NS  1000000000ULL
#define FRESH_LONG (1000 * SECOND_NS)

struct kit {
	struct metrics_server *server;
	struct sockaddr_in addr;
	bool ready, silent; /* silent: the daemon's loop does not turn */
	const char *text;   /* given to the server when it wants a text; NULL: nothing is given */
	size_t len;
	uint64_t fresh_ns;
	unsigned given;
	char *answer;
};

/* ── the daemon ──────────────────────────────────────────────────────────────────────────── */

/* A port that was free a moment ago. */
static inline uint16_t free_port(void)
{
	struct sockaddr_in addr;

	close(listening(&addr));
	return ntohs(addr.sin_port);
}

static inline void turn(struct kit *kit)
{
	if (kit->silent)
		return;
	assert_int_equal(metrics_server__turn(kit->server, kit->ready, time__monotonic_ns()), 0);
	if (!kit->text || !metrics_server__wanted(kit->server))
		return;
	assert_int_equal(metrics_server__give(kit->server, kit->text, kit->len, kit->fresh_ns), 0);
	kit->given++;
}

static inline int setup(void **state)
{
	struct kit *kit = calloc(1, sizeof(*kit));
	uint16_t port = free_port();
	char address[32];

	assert_non_null(kit);
	snprintf(address, sizeof(address), ":%u", port);
	assert_int_equal(metrics_server__open(address, &kit->server), 0);
	kit->addr = (struct sockaddr_in){.sin_family = AF_INET,
					 .sin_port = htons(port),
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	kit->text = "a 1\n";
	kit->len = strlen(kit->text);
	kit->fresh_ns = FRESH_LONG;
	kit->ready = true;
	*state = kit;
	return 0;
}

static inline int teardown(void **state)
{
	struct kit *kit = *state;

	metrics_server__free(kit->server);
	free(kit->answer);
	free(kit);
	return 0;
}

/* ── the client ──────────────────────────────────────────────────────────────────────────── */

/* Returns -1 if nobody accepts at the moment. */
static inline int try_to_connect(const struct kit *kit)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	if (connect(fd, (const struct sockaddr *)&kit->addr, sizeof(kit->addr)) &&
	    errno != EINPROGRESS)
		fd__close(&fd);
	return fd;
}

static inline bool send_all(int fd, const char *text, size_t len)
{
	while (len) {
		struct pollfd p = {.fd = fd, .events = POLLOUT};
		ssize_t n;

		if (poll(&p, 1, 20000) <= 0)
			return false;
		n = send(fd, text, len, MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN)
			return false;
		text += MAX(n, 0);
		len -= (size_t)MAX(n, 0);
	}
	return true;
}

/* Reads until the end, for at most a minute, while the daemon's loop turns; returns NULL if
 * nothing arrives. */
static inline char *read_all(struct kit *kit, int fd)
{
	uint64_t until = time__monotonic_ns() + LONG_NS;
	struct buf got = {0};

	while (time__monotonic_ns() < until) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		char part[65536];
		ssize_t n;

		turn(kit);
		if (poll(&p, 1, 10) <= 0)
			continue;
		n = recv(fd, part, sizeof(part), 0);
		if (n < 0 && errno == EAGAIN)
			continue;
		if (n <= 0)
			break;
		assert_int_equal(buf__add(&got, part, (size_t)n), 0);
	}
	return got.data;
}

/* The answer to these bytes; "" if the connection was closed without one. */
static inline const char *answer_to(struct kit *kit, const char *request, size_t len)
{
	int fd = try_to_connect(kit);

	free(kit->answer);
	assert_true(fd >= 0);
	send_all(fd, request, len);
	kit->answer = read_all(kit, fd);
	close(fd);
	return kit->answer ? kit->answer : "";
}

static inline const char *get(struct kit *kit, const char *path)
{
	char request[256];

	snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path);
	return answer_to(kit, request, strlen(request));
}

static inline int status_of(const char *answer)
{
	return !strncmp(answer, "HTTP/1.1 ", 9) ? (int)strtol(answer + 9, NULL, 10) : 0;
}

static inline const char *body_of(const char *answer)
{
	const char *body = strstr(answer, "\r\n\r\n");

	return body ? body + 4 : "";
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
