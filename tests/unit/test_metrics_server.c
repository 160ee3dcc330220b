/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The endpoint as clients see it, over real sockets: what is answered, and what a hostile client
 * can do to it. The test is the daemon, and the client.
 */
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

#define LONG_NS	   60000000000ULL
#define SECOND_NS  1000000000ULL
#define FRESH_LONG (1000 * SECOND_NS)

struct kit {
	struct metrics_server *server;
	struct sockaddr_in addr;
	bool ready, silent; /* silent: the daemon's loop does not turn */
	const char *text;   /* what is given when it is wanted; NULL: nothing */
	size_t len;
	uint64_t fresh_ns;
	unsigned given;
	char *answer;
};

/* ── the daemon ──────────────────────────────────────────────────────────────────────────── */

/* A port that was free a moment ago. */
static uint16_t free_port(void)
{
	struct sockaddr_in addr = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
	close(fd);
	return ntohs(addr.sin_port);
}

static void turn(struct kit *kit)
{
	if (kit->silent)
		return;
	assert_int_equal(metrics_server__turn(kit->server, kit->ready, time__monotonic_ns()), 0);
	if (!kit->text || !metrics_server__wanted(kit->server))
		return;
	assert_int_equal(metrics_server__give(kit->server, kit->text, kit->len, kit->fresh_ns), 0);
	kit->given++;
}

static int setup(void **state)
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

static int teardown(void **state)
{
	struct kit *kit = *state;

	metrics_server__free(kit->server);
	free(kit->answer);
	free(kit);
	return 0;
}

/* ── the client ──────────────────────────────────────────────────────────────────────────── */

/* -1: nobody takes it now. */
static int try_to_connect(const struct kit *kit)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	if (connect(fd, (const struct sockaddr *)&kit->addr, sizeof(kit->addr)) &&
	    errno != EINPROGRESS)
		fd__close(&fd);
	return fd;
}

static bool send_all(int fd, const char *text, size_t len)
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

/* What comes until its end, while the daemon goes on; NULL: nothing within a minute. */
static char *read_all(struct kit *kit, int fd)
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

/* The answer to these bytes; "" if the connection was just ended. */
static const char *answer_to(struct kit *kit, const char *request, size_t len)
{
	int fd = try_to_connect(kit);

	free(kit->answer);
	assert_true(fd >= 0);
	send_all(fd, request, len);
	kit->answer = read_all(kit, fd);
	close(fd);
	return kit->answer ? kit->answer : "";
}

static const char *get(struct kit *kit, const char *path)
{
	char request[256];

	snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path);
	return answer_to(kit, request, strlen(request));
}

static int status_of(const char *answer)
{
	return !strncmp(answer, "HTTP/1.1 ", 9) ? (int)strtol(answer + 9, NULL, 10) : 0;
}

static const char *body_of(const char *answer)
{
	const char *body = strstr(answer, "\r\n\r\n");

	return body ? body + 4 : "";
}

/* ── what is answered ────────────────────────────────────────────────────────────────────── */

static void health_and_readiness(void **state)
{
	struct kit *kit = *state;

	/* the daemon has not come to its loop */
	kit->silent = true;
	assert_int_equal(status_of(get(kit, "/healthz")), 503);
	assert_int_equal(status_of(get(kit, "/readyz")), 503);
	kit->silent = false;
	kit->ready = false;
	turn(kit);
	assert_int_equal(status_of(get(kit, "/healthz")), 200);
	assert_int_equal(status_of(get(kit, "/readyz")), 503);
	kit->ready = true;
	turn(kit);
	assert_int_equal(status_of(get(kit, "/readyz")), 200);
	/* it hangs */
	kit->silent = true;
	usleep((SERVER_STALLED_NS + SECOND_NS) / 1000);
	assert_int_equal(status_of(get(kit, "/healthz")), 503);
	assert_int_equal(status_of(get(kit, "/readyz")), 503);
	kit->silent = false;
	turn(kit);
	assert_int_equal(status_of(get(kit, "/healthz")), 200);
}

static void the_text_when_it_is_wanted(void **state)
{
	struct kit *kit = *state;
	const char *answer = get(kit, "/metrics");

	assert_int_equal(status_of(answer), 200);
	assert_string_equal(body_of(answer), "a 1\n");
	assert_non_null(strcasestr(answer, "\r\nContent-Type: text/plain; version=0.0.4"));
	assert_int_equal(kit->given, 1);
	/* fresh for a while: the daemon is not asked */
	kit->text = "a 2\n";
	assert_string_equal(body_of(get(kit, "/metrics")), "a 1\n");
	assert_int_equal(kit->given, 1);
}

static void a_new_text_for_each(void **state)
{
	struct kit *kit = *state;
	char text[32];

	kit->fresh_ns = 0;
	for (int i = 0; i < 50; i++) {
		kit->len = (size_t)snprintf(text, sizeof(text), "a %d\n", i);
		kit->text = text;
		assert_string_equal(body_of(get(kit, "/metrics")), text);
	}
	assert_int_equal(kit->given, 50);
}

/* The largest there may be, and one that is too large. */
static void large_texts(void **state)
{
	struct kit *kit = *state;
	size_t len = METRICS_MAX_TEXT;
	char *text = malloc(len + 2);
	const char *answer;

	assert_non_null(text);
	memset(text, 'x', len + 1);
	text[len + 1] = '\0';
	kit->text = text;
	kit->len = len;
	kit->fresh_ns = 0;
	for (int i = 0; i < 3; i++) {
		answer = get(kit, "/metrics");
		assert_int_equal(status_of(answer), 200);
		assert_int_equal(strlen(body_of(answer)), len);
	}
	kit->len = len + 1;
	answer = get(kit, "/metrics");
	assert_int_equal(strlen(body_of(answer)), len);
	free(text);
}

static void without_a_text(void **state)
{
	struct kit *kit = *state;
	uint64_t began = time__monotonic_ns();

	kit->text = NULL;
	assert_int_equal(status_of(get(kit, "/metrics")), 503);
	/* it has waited for one */
	assert_true(time__monotonic_ns() - began >= SECOND_NS);
}

static void other_requests(void **state)
{
	static const char head[] = "HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
	static const char post[] = "POST /metrics HTTP/1.1\r\nHost: x\r\n"
				   "Content-Length: 1000000000\r\n\r\nabc";
	static const char trace[] = "TRACE / HTTP/1.1\r\nHost: x\r\n\r\n";
	static const char body[] = "GET /metrics HTTP/1.1\r\nHost: x\r\n"
				   "Transfer-Encoding: chunked\r\n\r\nffffffff\r\nabc";
	struct kit *kit = *state;
	const char *answer;

	assert_int_equal(status_of(get(kit, "/")), 404);
	assert_int_equal(status_of(get(kit, "/metrics/")), 404);
	assert_int_equal(status_of(get(kit, "/../etc/passwd")), 404);
	answer = answer_to(kit, head, strlen(head));
	assert_int_equal(status_of(answer), 200);
	assert_string_equal(body_of(answer), "");
	answer = answer_to(kit, post, strlen(post));
	assert_int_equal(status_of(answer), 405);
	assert_non_null(strcasestr(answer, "\r\nAllow: GET, HEAD\r\n"));
	assert_int_equal(status_of(answer_to(kit, trace, strlen(trace))), 405);
	assert_string_equal(body_of(answer_to(kit, body, strlen(body))), "a 1\n");
	assert_string_equal(body_of(get(kit, "/metrics?a=%00%ff")), "a 1\n");
}

/* ── addresses ───────────────────────────────────────────────────────────────────────────── */

static void addresses(void **state)
{
	static const char *const good[] = {"9464",	":9464",       "127.0.0.1:9464",
					   "[::1]:1",	"localhost:0", "0.0.0.0:65535",
					   "unix:/a/b", "unix:a"};
	static const char *const bad[] = {"",	   ":",	  "a",	   "65536",  "::1:80",
					  "[::1]", "1:a", "unix:", "-1",     "example.org:80",
					  "1 ",	   ":+1", "[]:80", "[a]:80", "127.0.0.1",
					  "::"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_true(metrics_server__is_address(good[i]));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(metrics_server__is_address(bad[i]));
}

/* A port alone is this host's only: the kernel says where it listens. */
static void loopback_only(void **state)
{
	struct kit *kit = *state;
	char *text, want[64];
	size_t len;

	snprintf(want, sizeof(want), " 0100007F:%04X 00000000:0000 0A ", ntohs(kit->addr.sin_port));
	assert_int_equal(proc__text("/proc/net/tcp", 1 << 24, &text, &len), 0);
	assert_non_null(strstr(text, want));
	free(text);
}

static void port_in_use(void **state)
{
	struct kit *kit = *state;
	struct metrics_server *second;
	char address[32];

	snprintf(address, sizeof(address), "%u", ntohs(kit->addr.sin_port));
	assert_int_equal(metrics_server__open(address, &second), -EADDRINUSE);
}

static void socket_with_a_path(void **state)
{
	char dir[] = "/tmp/test_metrics.XXXXXX", address[96], path[64];
	static const char request[] = "GET /readyz HTTP/1.0\r\n\r\n";
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct kit kit = {.ready = true};
	struct stat st;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/socket", dir);
	snprintf(address, sizeof(address), "unix:%s", path);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	/* what a killed daemon left */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(fd);
	assert_int_equal(metrics_server__open(address, &kit.server), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	turn(&kit);
	assert_true(send_all(fd, request, strlen(request)));
	kit.answer = read_all(&kit, fd);
	assert_non_null(kit.answer);
	assert_non_null(strstr(kit.answer, " 200 OK"));
	free(kit.answer);
	close(fd);
	metrics_server__free(kit.server);
	assert_int_equal(rmdir(dir), 0);
}

/* It is not ours, whatever it is. */
static void path_of_a_file(void **state)
{
	char path[] = "/tmp/test_metrics.XXXXXX", address[64];
	struct metrics_server *server;
	int fd = mkstemp(path);

	(void)state;
	snprintf(address, sizeof(address), "unix:%s", path);
	assert_int_equal(metrics_server__open(address, &server), -EADDRINUSE);
	assert_int_equal(unlink(path), 0);
	close(fd);
}

/* ── hostile clients ─────────────────────────────────────────────────────────────────────── */

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
	/* an ordinary user may not look */
	if (!dir)
		return 0;
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* Where more connections wait than the kernel keeps it drops some: who is dropped comes again. */
static bool is_served_soon(struct kit *kit)
{
	uint64_t until = time__monotonic_ns() + LONG_NS;

	while (status_of(get(kit, "/metrics")) != 200)
		if (time__monotonic_ns() >= until)
			return false;
	return true;
}

/* No request is ever finished: whoever has one is served all the same, and they are hung up on. */
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
			/* a byte now and then keeps nothing alive */
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

/* Large texts that nobody reads, each another one. */
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
	/* one that takes its time may have to make room for those that come after it, and comes
	 * again */
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
	/* what the allocator keeps of as many connections as there may be */
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
		/* so that there is an end in any case */
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
		/* 200: what came after the first line was headers, after all */
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

/* ── the other process ───────────────────────────────────────────────────────────────────── */

static void it_has_no_rights(void **state)
{
	struct kit *kit = *state;
	char path[64], *text;
	size_t len;

	turn(kit);
	assert_int_equal(status_of(get(kit, "/healthz")), 200);
	snprintf(path, sizeof(path), "/proc/%d/status", metrics_server__pid(kit->server));
	assert_int_equal(proc__text(path, 65536, &text, &len), 0);
	assert_non_null(strstr(text, "\nCapPrm:\t0000000000000000\n"));
	assert_non_null(strstr(text, "\nNoNewPrivs:\t1\n"));
#ifndef __SANITIZE_ADDRESS__
	assert_non_null(strstr(text, "\nSeccomp:\t2\n"));
#endif
	if (getuid() == 0)
		assert_null(strstr(text, "\nUid:\t0\t"));
	free(text);
}

/* The daemon is told once, and goes on. */
static void it_ends(void **state)
{
	struct kit *kit = *state;
	uint64_t until = time__monotonic_ns() + LONG_NS;
	int err = 0;

	turn(kit);
	assert_int_equal(status_of(get(kit, "/healthz")), 200);
	kill(metrics_server__pid(kit->server), SIGKILL);
	while (!err && time__monotonic_ns() < until) {
		err = metrics_server__turn(kit->server, true, time__monotonic_ns());
		usleep(10000);
	}
	assert_int_equal(err, -EPIPE);
	assert_int_equal(metrics_server__turn(kit->server, true, time__monotonic_ns()), 0);
	assert_false(metrics_server__wanted(kit->server));
	assert_true(metrics_server__give(kit->server, "a 1\n", 4, 0) < 0);
}

/* Nobody reads the daemon's messages: it does not wait, and gets its errors. */
static void it_hangs(void **state)
{
	struct kit *kit = *state;
	pid_t pid = metrics_server__pid(kit->server);
	uint64_t now = time__monotonic_ns();
	int err = 0;

	kill(pid, SIGSTOP);
	for (int i = 0; i < 100000 && !err; i++) {
		assert_int_equal(metrics_server__turn(kit->server, true, now += 2 * SECOND_NS), 0);
		err = metrics_server__give(kit->server, "a 1\n", 4, 0);
	}
	assert_true(err == -EAGAIN || err == -ETOOMANYREFS);
	kill(pid, SIGCONT);
	assert_int_equal(status_of(get(kit, "/metrics")), 200);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(health_and_readiness),
		TEST(the_text_when_it_is_wanted),
		TEST(a_new_text_for_each),
		TEST(large_texts),
		TEST(without_a_text),
		TEST(other_requests),
		cmocka_unit_test(addresses),
		TEST(loopback_only),
		TEST(port_in_use),
		cmocka_unit_test(socket_with_a_path),
		cmocka_unit_test(path_of_a_file),
		TEST(slow_requests),
		TEST(slow_readers),
		TEST(ten_thousand_connections),
		TEST(garbage),
		TEST(headers_without_end),
		TEST(it_has_no_rights),
		TEST(it_ends),
		TEST(it_hangs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
