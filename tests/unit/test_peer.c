/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a confined process that may use the network can and cannot do. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <linux/landlock.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "confine/confine.h"

#define LONG_MS 60000

/* 0 if the attempt worked, else the error. */
struct findings {
	int connect, unix_socket, packet_socket, sctp_socket, bind;
	int thread, namespace, exec, trace, kill_parent;
	int read_allowed, read_other, write_allowed, list_allowed, list_other;
	uid_t uid;
};

static char allowed[64], other[64];
static uint16_t port;
static bool has_landlock;

static int in_dir(const char *folder, const char *name, int flags)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, flags | O_CLOEXEC, 0666);
	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static int try_connect(void)
{
	const struct sockaddr_in to = {.sin_family = AF_INET,
				       .sin_port = htons(port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int err = fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof(to)) ? errno : 0;

	fd__close(&fd);
	return err;
}

static int try_socket(int family, int protocol)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, protocol), err = fd < 0 ? errno : 0;

	fd__close(&fd);
	return err;
}

static int try_bind(void)
{
	const struct sockaddr_in to = {.sin_family = AF_INET};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int err = fd < 0 || bind(fd, (const struct sockaddr *)&to, sizeof(to)) ? errno : 0;

	fd__close(&fd);
	return err;
}

static void *nothing(void *arg)
{
	return arg;
}

static int try_thread(void)
{
	pthread_t thread;
	int err = pthread_create(&thread, NULL, nothing, NULL);

	return err ? err : pthread_join(thread, NULL);
}

static int failed(long result)
{
	return result < 0 ? errno : 0;
}

static void look(void *ctx, int in, int out)
{
	char *const argv[] = {(char *)"true", NULL};
	struct findings f = {
		.connect = try_connect(),
		.unix_socket = try_socket(AF_UNIX, 0),
		.packet_socket = try_socket(AF_PACKET, 0),
		.sctp_socket = try_socket(AF_INET, IPPROTO_SCTP),
		.bind = try_bind(),
		.thread = try_thread(),
		.namespace = failed(unshare(CLONE_NEWNET)),
		.exec = failed(execv("/bin/true", argv)),
		.trace = failed(ptrace(PTRACE_TRACEME, 0, NULL, NULL)),
		.kill_parent = failed(kill(getppid(), 0)),
		.read_allowed = in_dir(allowed, "file", O_RDONLY),
		.read_other = in_dir(other, "file", O_RDONLY),
		.write_allowed = in_dir(allowed, "new", O_WRONLY | O_CREAT),
		.list_allowed = in_dir(allowed, ".", O_RDONLY | O_DIRECTORY),
		.list_other = in_dir(other, ".", O_RDONLY | O_DIRECTORY),
		.uid = getuid(),
	};

	(void)ctx;
	(void)in;
	if (write(out, &f, sizeof(f)) != sizeof(f))
		_exit(1);
	/* the process ends, which the daemon must notice */
}

static void make_folder(char path[64])
{
	char file[128];
	int fd;

	snprintf(path, 64, "/tmp/safescoped-peer-XXXXXX");
	assert_non_null(mkdtemp(path));
	assert_int_equal(chmod(path, 0755), 0);
	snprintf(file, sizeof(file), "%s/file", path);
	fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, 0644), 0);
	close(fd);
}

static void remove_folder(const char *path)
{
	char file[128];

	snprintf(file, sizeof(file), "%s/file", path);
	unlink(file);
	assert_int_equal(rmdir(path), 0);
}

/* Whether the kernel has Landlock, by asking for its version. */
static bool find_landlock(void)
{
	return syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) >= 1;
}

static void wait_readable(const struct confine_peer *peer)
{
	struct pollfd p = {.fd = confine_peer__fd(peer), .events = POLLIN};

	assert_int_equal(poll(&p, 1, LONG_MS), 1);
}

static int listen_somewhere(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 5), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	port = ntohs(at.sin_port);
	return fd;
}

static void test_what_it_can_do(void **state)
{
	const char *const reads[] = {allowed, "/nonexistent", NULL};
	const struct confine how = {
		.name = "test", .user = CONFINE_NOBODY, .keep = CONFINE_NETWORK, .reads = reads};
	struct confine_peer *peer;
	struct findings f;
	int fd = listen_somewhere();

	(void)state;
	has_landlock = find_landlock();
	make_folder(allowed);
	make_folder(other);
	assert_int_equal(confine_peer__start(&how, look, NULL, &peer), 0);
	wait_readable(peer);
	assert_int_equal(confine_peer__take(peer, &f, sizeof(f)), 0);
	assert_int_equal(f.connect, 0);
	assert_int_equal(f.thread, 0);
	assert_int_equal(f.read_allowed, 0);
	assert_int_equal(f.list_allowed, 0);
#if !defined(SANITIZED)
	assert_int_equal(f.unix_socket, EPERM);
	assert_int_equal(f.packet_socket, EPERM);
	assert_int_equal(f.sctp_socket, EPERM);
	assert_int_equal(f.bind, EPERM);
	assert_int_equal(f.namespace, EPERM);
	assert_int_equal(f.exec, EPERM);
	assert_int_equal(f.trace, EPERM);
	assert_int_equal(f.kill_parent, EPERM);
	assert_int_equal(f.write_allowed, EPERM);
#endif
	if (has_landlock) {
		assert_int_equal(f.read_other, EACCES);
		assert_int_equal(f.list_other, EACCES);
	}
	if (getuid() == 0)
		assert_true(f.uid >= 65534);
	/* the peer's end is noticed */
	wait_readable(peer);
	assert_int_equal(confine_peer__take(peer, &f, sizeof(f)), -EPIPE);
	confine_peer__free(peer);
	close(fd);
	remove_folder(allowed);
	remove_folder(other);
}

static void echo(void *ctx, int in, int out)
{
	char text[16];
	ssize_t n;

	(void)ctx;
	while ((n = recv(in, text, sizeof(text), 0)) > 0)
		if (write(out, text, (size_t)n) != n)
			_exit(1);
}

/* Both sides send at any time; the daemon's side never blocks; a freed peer is gone. */
static void test_messages(void **state)
{
	const struct confine how = {
		.name = "test", .user = CONFINE_NOBODY, .keep = CONFINE_NETWORK};
	struct confine_peer *peer;
	char text[3];

	(void)state;
	assert_int_equal(confine_peer__start(&how, echo, NULL, &peer), 0);
	assert_int_equal(confine_peer__take(peer, text, sizeof(text)), -EAGAIN);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(confine_peer__send(peer, "abc", 3, -1, 0), 0);
		wait_readable(peer);
		assert_int_equal(confine_peer__take(peer, text, sizeof(text)), 0);
		assert_memory_equal(text, "abc", 3);
	}
	/* messages keep their boundaries, whatever else is in the pipe */
	for (int i = 0; i < 2; i++)
		assert_int_equal(confine_peer__send(peer, "ab", 2, -1, 0), 0);
	for (int i = 0; i < 2; i++) {
		wait_readable(peer);
		assert_int_equal(confine_peer__take(peer, text, sizeof(text)), -EBADMSG);
	}
	assert_int_equal(confine_peer__take(peer, text, sizeof(text)), -EAGAIN);
	confine_peer__free(peer);
	confine_peer__free(NULL);
	for (int i = 0; i < 1000 && confine__reap(); i++)
		poll(NULL, 0, 10);
	assert_int_equal(confine__reap(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_it_can_do),
		cmocka_unit_test(test_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
