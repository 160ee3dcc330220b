/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A long-lived process with a listening socket: what it can do with the socket, and that it can do
 * nothing else, by the kernel's errors.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/base.h"
#include "base/pass.h"
#include "confine/confine.h"
#include "listening.h"

#define LONG_MS 60000

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static struct confine how_to_listen(const int *fd)
{
	return (struct confine){.name = "test",
				.user = CONFINE_NOBODY,
				.keep = CONFINE_LISTEN,
				.cpu_s = CONFINE_NO_END,
				.more_fds = 4,
				.fds = fd,
				.n_fds = 1};
}

/* Returns false if it has ended, or has sent nothing for a minute. */
static bool heard(struct confine_peer *r, void *message, size_t size)
{
	struct pollfd p = {.fd = confine_peer__fd(r), .events = POLLIN};

	return poll(&p, 1, LONG_MS) > 0 && !confine_peer__take(r, message, size);
}

static void wait_for(int fd, short events)
{
	struct pollfd p = {.fd = fd, .events = events};

	while (poll(&p, 1, -1) < 0)
		;
}

/* ── what it can do ──────────────────────────────────────────────────────────────────────── */

/* Accepts connections and echoes what they send; ends when the daemon closes the channel. */
static void echo(void *ctx, int in, int out)
{
	int listen_fd = *(int *)ctx;

	(void)out;
	for (;;) {
		struct pollfd p[] = {{.fd = in, .events = POLLIN},
				     {.fd = listen_fd, .events = POLLIN}};
		struct sockaddr_in from;
		socklen_t len = sizeof(from);
		char text[16];
		ssize_t n;
		int fd;

		if (poll(p, 2, -1) < 0)
			continue;
		if (p[0].revents)
			return;
		fd = accept4(listen_fd, (struct sockaddr *)&from, &len,
			     SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0)
			return;
		wait_for(fd, POLLIN);
		n = recv(fd, text, sizeof(text), 0);
		if (n > 0)
			n = send(fd, text, (size_t)n, MSG_NOSIGNAL);
		shutdown(fd, SHUT_RDWR);
		close(fd);
		if (n < 0)
			return;
	}
}

static void takes_connections(void **state)
{
	struct sockaddr_in addr;
	int fd = listening(&addr), client;
	struct confine how = how_to_listen(&fd);
	struct confine_peer *r;
	char text[8] = "";

	(void)state;
	assert_int_equal(confine_peer__start(&how, echo, &fd, &r), 0);
	for (int i = 0; i < 20; i++) {
		client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_int_equal(connect(client, (struct sockaddr *)&addr, sizeof(addr)), 0);
		assert_int_equal(send(client, "hello", 5, 0), 5);
		assert_int_equal(recv(client, text, sizeof(text), MSG_WAITALL), 5);
		assert_memory_equal(text, "hello", 5);
		close(client);
	}
	confine_peer__free(r);
	close(fd);
}

/* ── what it cannot ──────────────────────────────────────────────────────────────────────── */

struct tried {
	int make_socket, pair, bind, connect, open_file, fork_one, kill_parent, read_parent, exec,
		duplicate, many_fds;
};

static int error_of(long result)
{
	return result < 0 ? errno : 0;
}

static void try_all(void *ctx, int in, int out)
{
	int listen_fd = *(int *)ctx, fds[2], n = 0;
	struct sockaddr_in addr = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct iovec iov = {0};
	struct tried t = {
		.make_socket = error_of(socket(AF_INET, SOCK_STREAM, 0)),
		.pair = error_of(socketpair(AF_UNIX, SOCK_STREAM, 0, fds)),
		.bind = error_of(bind(listen_fd, (struct sockaddr *)&addr, sizeof(addr))),
		.connect = error_of(connect(listen_fd, (struct sockaddr *)&addr, sizeof(addr))),
		.open_file = error_of(open("/etc/hostname", O_RDONLY)),
		.fork_one = error_of(syscall(SYS_fork)),
		.kill_parent = error_of(kill(getppid(), 0)),
		.read_parent = error_of(
			syscall(SYS_process_vm_readv, getppid(), &iov, 1UL, &iov, 1UL, 0UL)),
		.exec = error_of(execl("/bin/true", "true", NULL)),
		.duplicate = error_of(fcntl(listen_fd, F_DUPFD, 0)),
	};

	(void)in;
	while (n < 64 && syscall(SYS_eventfd2, 0, 0) >= 0)
		n++;
	t.many_fds = n;
	(void)!write(out, &t, sizeof(t));
}

static void nothing_else(void **state)
{
	struct sockaddr_in addr;
	int fd = listening(&addr);
	struct confine how = how_to_listen(&fd);
	struct confine_peer *r;
	struct tried t;

	(void)state;
	if (SANITIZED)
		skip();
	assert_int_equal(confine_peer__start(&how, try_all, &fd, &r), 0);
	assert_true(heard(r, &t, sizeof(t)));
	assert_int_equal(t.make_socket, EPERM);
	assert_int_equal(t.pair, EPERM);
	assert_int_equal(t.bind, EPERM);
	assert_int_equal(t.connect, EPERM);
	assert_int_not_equal(t.open_file, 0);
	assert_int_equal(t.fork_one, EPERM);
	assert_int_equal(t.kill_parent, EPERM);
	assert_int_equal(t.read_parent, EPERM);
	assert_int_equal(t.exec, EPERM);
	assert_int_equal(t.duplicate, EPERM);
	/* those that it may open beside its own, and unused numbers below those */
	assert_true(t.many_fds >= 4 && t.many_fds < 64);
	confine_peer__free(r);
	close(fd);
}

/* A process that only reads other people's bytes cannot accept. */
static int fn_accept(void *ctx, void *out)
{
	struct sockaddr_in from;
	socklen_t len = sizeof(from);

	*(int *)out = error_of(accept4(*(int *)ctx, (struct sockaddr *)&from, &len, 0));
	return 0;
}

static void others_cannot_listen(void **state)
{
	struct sockaddr_in addr;
	int fd = listening(&addr);
	struct confine how = how_to_listen(&fd);
	void *out;

	(void)state;
	if (SANITIZED)
		skip();
	how.keep = 0;
	how.cpu_s = 0;
	assert_int_equal(confine__aside(&how, LONG_MS, 0, fn_accept, &fd, sizeof(int), &out), 0);
	assert_int_equal(*(int *)out, EPERM);
	confine__free_out(out, sizeof(int));
	close(fd);
}

/* ── messages, and its end ───────────────────────────────────────────────────────────────── */

/* Reads the file whose descriptor it receives, and sends the content. */
static void read_handed(void *ctx, int in, int out)
{
	char text[16] = "", byte;
	int fd;

	(void)ctx;
	if (pass__take(in, &byte, sizeof(byte), 0, &fd))
		return;
	if (pread(fd, text, sizeof(text), 0) < 0)
		return;
	(void)!write(out, text, sizeof(text));
}

static void is_handed_a_file(void **state)
{
	struct sockaddr_in addr;
	int fd = listening(&addr), file = memfd_create("test", MFD_CLOEXEC);
	struct confine how = how_to_listen(&fd);
	struct confine_peer *r;
	char text[16] = "";

	(void)state;
	assert_int_equal(write(file, "handed over", 11), 11);
	assert_int_equal(confine_peer__start(&how, read_handed, NULL, &r), 0);
	assert_int_equal(confine_peer__send(r, "x", 1, file, 0), 0);
	assert_true(heard(r, text, sizeof(text)));
	assert_string_equal(text, "handed over");
	confine_peer__free(r);
	close(file);
	close(fd);
}

static bool has_ended(pid_t pid)
{
	siginfo_t info = {0};

	/* it may have been reaped already */
	while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT))
		if (errno != EINTR)
			return errno == ECHILD;
	return info.si_pid == pid;
}

static void ends_when_it_is_freed(void **state)
{
	struct sockaddr_in addr;
	int fd = listening(&addr);
	struct confine how = how_to_listen(&fd);
	struct confine_peer *r;
	pid_t pid;

	(void)state;
	assert_int_equal(confine_peer__start(&how, echo, &fd, &r), 0);
	pid = confine_peer__pid(r);
	confine_peer__free(r);
	assert_true(has_ended(pid));
	while (confine__reap())
		usleep(1000);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_connections),	 cmocka_unit_test(nothing_else),
		cmocka_unit_test(others_cannot_listen),	 cmocka_unit_test(is_handed_a_file),
		cmocka_unit_test(ends_when_it_is_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
