/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A compromised process with network access, or with connections: it can neither hold up the daemon
 * nor escape.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/pass.h"
#include "confine/confine.h"
#include "listening.h"

#define LONG_MS 60000
/* The time that the last close of the connection blocks, and one that is well below it. */
#define LINGER_S 8
#define SOON_NS	 3000000000ULL

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static int error_of(long result)
{
	return result < 0 ? errno : 0;
}

static void wait_readable(const struct confine_peer *peer)
{
	struct pollfd p = {.fd = confine_peer__fd(peer), .events = POLLIN};

	assert_int_equal(poll(&p, 1, LONG_MS), 1);
}

static void next_message(struct confine_peer *peer, void *ret, size_t size)
{
	wait_readable(peer);
	assert_int_equal(confine_peer__take(peer, ret, size), 0);
}

static void all_have_died(void)
{
	for (int i = 0; i < 1000 && confine__reap(); i++)
		poll(NULL, 0, 10);
	assert_int_equal(confine__reap(), 0);
}

/* ── a descriptor whose last close waits ─────────────────────────────────────────────────── */

/* How the process gets a connection. */
struct source {
	int listen_fd; /* -1: it connects to `to` */
	struct sockaddr_in to;
};

/* The results of setting options and of sending; 0 or the error. */
struct sent {
	int linger, high_bits, protocol, no_delay, by_in, by_out;
};

static int connection_of(const struct source *s)
{
	struct sockaddr_in addr = s->to;
	socklen_t len = sizeof(addr);
	int fd;

	if (s->listen_fd >= 0)
		return accept4(s->listen_fd, (struct sockaddr *)&addr, &len, SOCK_CLOEXEC);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)) ? -1 : fd;
}

/* Closes its own copy of a connection that has more to send than the other side accepts. */
static void send_connection(void *ctx, int in, int out)
{
	static char bytes[65536];
	const struct linger linger = {.l_onoff = 1, .l_linger = LINGER_S};
	struct sent sent = {0};
	int fd = connection_of(ctx);

	if (fd < 0)
		_exit(1);
	sent.linger = error_of(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	/* the kernel's parameters are ints */
	sent.high_bits = error_of(syscall(SYS_setsockopt, fd, SOL_SOCKET | 1L << 32,
					  SO_LINGER | 1L << 32, &linger, sizeof(linger)));
	sent.protocol = error_of(setsockopt(fd, IPPROTO_TCP, TCP_ULP, "smc", 3));
	sent.no_delay = error_of(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)));
	while (send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
		;
	sent.by_in = -pass__send(in, &sent, sizeof(sent), fd, MSG_DONTWAIT);
	sent.by_out = -pass__send(out, &sent, sizeof(sent), fd, MSG_DONTWAIT);
	close(fd);
	if (write(out, &sent, sizeof(sent)) != sizeof(sent))
		_exit(1);
	poll(NULL, 0, -1);
}

static void holds_nobody_up(uint32_t keep)
{
	struct source source = {.listen_fd = -1};
	int listen_fd = listening(&source.to), client = -1;
	struct confine how = {
		.name = "test", .user = CONFINE_NOBODY, .keep = keep, .more_fds = 8, .n_fds = 1};
	struct confine_peer *peer;
	struct sent sent;
	uint64_t began;

	how.fds = &listen_fd;
	if (keep == CONFINE_LISTEN) {
		source.listen_fd = listen_fd;
		client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_int_equal(connect(client, (struct sockaddr *)&source.to, sizeof(source.to)),
				 0);
	}
	assert_int_equal(confine_peer__start(&how, send_connection, &source, &peer), 0);
	/* if it may set SO_LINGER, its own close blocks */
	wait_readable(peer);
	began = time__monotonic_ns();
	next_message(peer, &sent, sizeof(sent));
	confine_peer__free(peer);
	assert_true(time__monotonic_ns() - began < SOON_NS * machine__slowness());
	assert_int_equal(sent.by_in, EPIPE);
	assert_int_equal(sent.by_out, ENOTSOCK);
	assert_int_equal(sent.no_delay, 0);
	if (!SANITIZED) {
		assert_int_equal(sent.linger, EPERM);
		assert_int_equal(sent.high_bits, EPERM);
		assert_int_equal(sent.protocol, EPERM);
	}
	all_have_died();
	fd__close(&client);
	close(listen_fd);
}

static void descriptor_of_a_client(void **state)
{
	(void)state;
	holds_nobody_up(CONFINE_NETWORK);
}

static void descriptor_of_a_server(void **state)
{
	(void)state;
	holds_nobody_up(CONFINE_LISTEN);
}

/* ── datagrams to whoever has a name ─────────────────────────────────────────────────────── */

struct pairs {
	int stream, flags, datagram, raw, packets, other_family, sent;
};

static int try_pair(int family, int type)
{
	int fds[2], err = error_of(socketpair(family, type, 0, fds));

	if (!err) {
		close(fds[0]);
		close(fds[1]);
	}
	return err;
}

static void try_pairs(void *ctx, int in, int out)
{
	struct pairs p = {
		.stream = try_pair(AF_UNIX, SOCK_STREAM),
		.flags = try_pair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK),
		.datagram = try_pair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC),
		.raw = try_pair(AF_UNIX, SOCK_RAW),
		.packets = try_pair(AF_UNIX, SOCK_SEQPACKET),
		.other_family = try_pair(AF_TIPC, SOCK_STREAM),
	};
	int fds[2];

	(void)in;
	if (!socketpair(AF_UNIX, SOCK_DGRAM, 0, fds))
		p.sent = sendto(fds[0], "x", 1, 0, ctx, sizeof(struct sockaddr_un)) == 1;
	if (write(out, &p, sizeof(p)) != sizeof(p))
		_exit(1);
}

static void pairs_of_streams_only(void **state)
{
	const struct confine how = {
		.name = "test", .user = CONFINE_NOBODY, .keep = CONFINE_NETWORK, .more_fds = 8};
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	struct confine_peer *peer;
	struct pairs p;
	char byte;
	int fd;

	(void)state;
	if (SANITIZED)
		skip();
	/* an abstract address: no permission on any file is needed */
	snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, "safescoped-test-%d", getpid());
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(confine_peer__start(&how, try_pairs, &at, &peer), 0);
	next_message(peer, &p, sizeof(p));
	assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(p.sent, 0);
	assert_int_equal(p.stream, 0);
	assert_int_equal(p.flags, 0);
	assert_int_equal(p.datagram, EPERM);
	assert_int_equal(p.raw, EPERM);
	assert_int_equal(p.packets, EPERM);
	assert_int_equal(p.other_family, EPERM);
	confine_peer__free(peer);
	all_have_died();
	close(fd);
}

/* ── copies of itself ────────────────────────────────────────────────────────────────────── */

struct copies {
	int32_t fork, clone, pdeathsig, filter;
	int32_t pid; /* of the copy; 0: none */
};

/* Tries to fork, and to make the copy live as long as it can. */
static void try_copies(struct copies *c, int out)
{
	pid_t pid;

	c->pdeathsig = error_of(prctl(PR_SET_PDEATHSIG, 0));
	c->filter = error_of(prctl(PR_SET_SECCOMP, 2, NULL));
	c->clone = error_of(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
	if (!c->clone && !c->pid)
		c->pid = getpid();
	pid = fork();
	c->fork = error_of(pid);
	if (write(out, c, sizeof(*c)) != sizeof(*c))
		_exit(1);
	poll(NULL, 0, -1);
}

static void copy_alone(void *ctx, int in, int out)
{
	struct copies c = {0};

	(void)ctx;
	(void)in;
	try_copies(&c, out);
}

static void copy_of_copy(void *ctx, int in, int out)
{
	struct copies c = {0};
	pid_t pid;

	(void)ctx;
	(void)in;
	if (confine__fork(&pid))
		_exit(1);
	if (pid)
		poll(NULL, 0, -1);
	c.pid = getpid();
	try_copies(&c, out);
}

static void expect_refused(const struct copies *c)
{
	assert_int_equal(c->fork, EPERM);
	assert_int_equal(c->clone, EPERM);
	assert_int_equal(c->pdeathsig, EPERM);
	assert_int_equal(c->filter, EPERM);
}

static void no_copy(void **state)
{
	static const uint32_t keeps[] = {CONFINE_NETWORK, CONFINE_LISTEN};

	(void)state;
	if (SANITIZED)
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(keeps); i++) {
		const struct confine how = {
			.name = "test", .user = CONFINE_NOBODY, .keep = keeps[i]};
		struct confine_peer *peer;
		struct copies c;

		assert_int_equal(confine_peer__start(&how, copy_alone, NULL, &peer), 0);
		next_message(peer, &c, sizeof(c));
		expect_refused(&c);
		confine_peer__free(peer);
		all_have_died();
	}
}

/* The only copy that the process may make cannot fork itself, and dies with it. */
static void one_copy_that_goes(void **state)
{
	const struct confine how = {
		.name = "test", .user = CONFINE_NOBODY, .keep = CONFINE_NETWORK | CONFINE_FORK};
	struct confine_peer *peer;
	struct copies c;
	int i = 0;

	(void)state;
	assert_int_equal(confine_peer__start(&how, copy_of_copy, NULL, &peer), 0);
	if (SANITIZED) {
		confine_peer__free(peer);
		skip();
	}
	next_message(peer, &c, sizeof(c));
	expect_refused(&c);
	assert_int_equal(kill(c.pid, 0), 0);
	confine_peer__free(peer);
	all_have_died();
	/* the process that adopted it reaps it at some point */
	for (; i < 1000 && kill(c.pid, 0) == 0; i++)
		poll(NULL, 0, 10);
	assert_true(i < 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(descriptor_of_a_client), cmocka_unit_test(descriptor_of_a_server),
		cmocka_unit_test(pairs_of_streams_only),  cmocka_unit_test(no_copy),
		cmocka_unit_test(one_copy_that_goes),
	};

	return cmocka_run_group_tests_name("peer_hostile", tests, NULL, NULL);
}
