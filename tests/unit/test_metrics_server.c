/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The endpoint as clients see it, over real sockets: its answers, and what a hostile client can do
 * to it. The test plays both the daemon and the client.
 */
#include "test_metrics_kit.h"

#include <fcntl.h>
#include <microhttpd.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include "metrics/server_priv.h"

/* ── what is answered ────────────────────────────────────────────────────────────────────── */

static void health_and_readiness(void **state)
{
	struct kit *kit = *state;

	/* the daemon has not reached its loop */
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
	/* the daemon hangs */
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
	/* the text is still fresh: the daemon is not asked */
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

/* The largest text that is allowed, and one that is too large. */
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
	/* the server waited for a newer text first */
	assert_true(time__monotonic_ns() - began >= SECOND_NS);
}

static enum MHD_Result answer_with(void *served, struct MHD_Connection *connection, const char *url,
				   const char *method, const char *version, const char *data,
				   size_t *size, void **request)
{
	(void)version;
	(void)data;
	(void)size;
	(void)request;
	return http__answer(served, connection, method, url, true) == HTTP_ANSWERED ? MHD_YES
										    : MHD_NO;
}

/* The status with a text of this age, when it is too late to wait for another one. */
static int status_at(uint64_t age_ns, uint64_t fresh_ns)
{
	struct served served = {.text = MHD_create_response_from_buffer(4, (void *)(size_t) "a 1\n",
									MHD_RESPMEM_PERSISTENT),
				.text_ns = time__monotonic_ns() - age_ns,
				.fresh_ns = fresh_ns};
	struct kit kit = {.silent = true,
			  .addr = {.sin_family = AF_INET,
				   .sin_port = htons(free_port()),
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}};
	struct MHD_Daemon *mhd =
		MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, answer_with,
				 &served, MHD_OPTION_SOCK_ADDR, &kit.addr, MHD_OPTION_END);
	int status;

	assert_non_null(served.text);
	assert_non_null(mhd);
	status = status_of(get(&kit, "/metrics"));
	MHD_stop_daemon(mhd);
	MHD_destroy_response(served.text);
	free(kit.answer);
	return status;
}

/* If reading takes long, the text is served for as long as it is fresh. */
static void old_texts(void **state)
{
	(void)state;
	assert_int_equal(status_at(SECOND_NS, 5 * SECOND_NS), 200);
	assert_int_equal(status_at(61 * SECOND_NS, 120 * SECOND_NS), 200);
	assert_int_equal(status_at(125 * SECOND_NS, 120 * SECOND_NS), 200);
	assert_int_equal(status_at(70 * SECOND_NS, 5 * SECOND_NS), 503);
	assert_int_equal(status_at(200 * SECOND_NS, 120 * SECOND_NS), 503);
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

#define TEN "0123456789"

static void addresses(void **state)
{
	static const char *const good[] = {"9464",	":9464",       "127.0.0.1:9464",
					   "[::1]:1",	"localhost:0", "0.0.0.0:65535",
					   "unix:/a/b", "unix:a",      "[fe80::1%lo]:1"};
	static const char *const bad[] = {"",
					  ":",
					  "a",
					  "65536",
					  "::1:80",
					  "[::1]",
					  "1:a",
					  "unix:",
					  "-1",
					  "example.org:80",
					  "1 ",
					  ":+1",
					  "[]:80",
					  "[a]:80",
					  "127.0.0.1",
					  "::",
					  "[fe80::1]:80",
					  "unix:/a/",
					  "unix:..",
					  "unix:/a/" TEN TEN TEN TEN TEN TEN TEN TEN TEN};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_true(metrics_server__is_address(good[i]));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(metrics_server__is_address(bad[i]));
	assert_false(metrics_server__needs_right("0"));
	assert_false(metrics_server__needs_right("[::]:65535"));
	assert_false(metrics_server__needs_right("unix:/1"));
}

/* A port alone listens on the loopback address only, according to the kernel. */
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

static bool connects(int family, const void *addr, socklen_t len)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool done = fd >= 0 && connect(fd, addr, len) == 0;

	close(fd);
	return done;
}

/*
 * Runs in a network namespace of its own, where the kernel's default is that an IPv6 socket does
 * not take IPv4. Returns 2 if there can be no such namespace.
 */
static int take_both(void)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	socklen_t len = sizeof(v6);
	struct listener l;
	int fd;

	if (unshare(CLONE_NEWNET))
		return 2;
	fd = open("/proc/sys/net/ipv6/bindv6only", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "1", 1) != 1)
		return 2;
	close(fd);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo))
		return 2;
	close(fd);
	if (listener__open("[::]:0", &l) || getsockname(l.fd, (struct sockaddr *)&v6, &len))
		return 1;
	v6.sin6_addr = in6addr_loopback;
	v4.sin_port = v6.sin6_port;
	return !connects(AF_INET6, &v6, sizeof(v6)) || !connects(AF_INET, &v4, sizeof(v4));
}

/* "[::]" is all addresses: a cluster's pods have IPv4 addresses, IPv6 addresses, or both. */
static void all_addresses(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	assert_true(pid >= 0);
	if (!pid)
		_exit(take_both());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 2)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void port_in_use(void **state)
{
	struct kit *kit = *state;
	struct metrics_server *second;
	char address[32];

	snprintf(address, sizeof(address), "%u", ntohs(kit->addr.sin_port));
	assert_int_equal(metrics_server__open(address, &second), -EADDRINUSE);
}

/* The port can be taken again though the process that answered may still have the socket. */
static void port_is_free_at_once(void **state)
{
	struct kit *kit = *state;
	char address[32];

	snprintf(address, sizeof(address), "0.0.0.0:%u", ntohs(kit->addr.sin_port));
	assert_int_equal(status_of(get(kit, "/metrics")), 200);
	for (int i = 0; i < 20; i++) {
		metrics_server__free(kit->server);
		assert_int_equal(metrics_server__open(address, &kit->server), 0);
	}
	assert_int_equal(status_of(get(kit, "/metrics")), 200);
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
	/* the socket of a killed daemon */
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

/* If somebody has removed the socket, the path may be another daemon's by the time this one ends.
 */
static void path_of_another(void **state)
{
	char dir[] = "/tmp/test_metrics.XXXXXX", address[96], path[64];
	struct metrics_server *first, *second;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/socket", dir);
	snprintf(address, sizeof(address), "unix:%s", path);
	assert_int_equal(metrics_server__open(address, &first), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(metrics_server__open(address, &second), 0);
	metrics_server__free(first);
	assert_int_equal(access(path, F_OK), 0);
	metrics_server__free(second);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(rmdir(dir), 0);
}

/* An existing file that is not a socket is left alone. */
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

/* The daemon gets the error once, and goes on. */
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

/* Nobody reads the daemon's messages: it does not block, and gets an error. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(health_and_readiness),
		TEST(the_text_when_it_is_wanted),
		TEST(a_new_text_for_each),
		TEST(large_texts),
		TEST(without_a_text),
		cmocka_unit_test(old_texts),
		TEST(other_requests),
		cmocka_unit_test(addresses),
		cmocka_unit_test(all_addresses),
		TEST(loopback_only),
		TEST(port_in_use),
		TEST(port_is_free_at_once),
		cmocka_unit_test(socket_with_a_path),
		cmocka_unit_test(path_of_another),
		cmocka_unit_test(path_of_a_file),
		TEST(it_has_no_rights),
		TEST(it_ends),
		TEST(it_hangs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
