/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is downloaded and kept, from a server of our own that answers as debuginfod does: this
 * test's own executable, nothing, another file, or no end.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/base.h"
#include "confine/confine.h"
#include "debuginfod/debuginfod.h"
#include "elf/elf.h"

#define LONG_MS 60000

enum answer { HAS_IT, HAS_NOT, HANGS };

struct world {
	char cache[64], url[64], id[41], path[PATH_MAX];
	pid_t server;
	struct debuginfod *debuginfod;
};

static void send_file(int to, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char buf[65536], head[128];
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st))
		_exit(1);
	n = snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %lld\r\n\r\n",
		     (long long)st.st_size);
	if (write(to, head, (size_t)n) != n)
		_exit(1);
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		if (write(to, buf, (size_t)n) != n)
			break;
	close(fd);
}

/* Each connection is one request, whose first line must ask for `id`. */
static void serve(int listener, enum answer answer, const char *id, const char *path)
{
	char want[128], request[4096];

	snprintf(want, sizeof(want), "GET /buildid/%s/debuginfo HTTP/1.1\r\n", id);
	for (;;) {
		int to = accept(listener, NULL, NULL);
		size_t len = 0;
		ssize_t n;

		if (to < 0)
			_exit(1);
		while (len + 1 < sizeof(request) &&
		       (n = read(to, request + len, sizeof(request) - 1 - len)) > 0) {
			len += (size_t)n;
			request[len] = '\0';
			if (strstr(request, "\r\n\r\n"))
				break;
		}
		if (answer == HANGS)
			pause();
		if (answer == HAS_IT && strncmp(request, want, strlen(want)) == 0)
			send_file(to, path);
		else if (write(to, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", 45) != 45)
			_exit(1);
		close(to);
	}
}

static void start_server(struct world *w, enum answer answer, const char *path)
{
	struct sockaddr_in addr = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, len), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
	snprintf(w->url, sizeof(w->url), "http://127.0.0.1:%u/", ntohs(addr.sin_port));
	w->server = fork();
	assert_true(w->server >= 0);
	if (w->server == 0) {
		signal(SIGPIPE, SIG_IGN);
		serve(fd, answer, w->id, path);
	}
	close(fd);
}

static void begin(struct world *w, enum answer answer, const char *path, int timeout_ms)
{
	struct debuginfod_opts opts = {.n = 1, .timeout_ms = timeout_ms};
	struct elf_file *elf;

	memset(w, 0, sizeof(*w));
	strcpy(w->cache, "/tmp/safescoped-info-XXXXXX");
	assert_non_null(mkdtemp(w->cache));
	assert_int_equal(elf__open_fd(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "self", &elf),
			 0);
	assert_true(elf__build_id(elf, w->id));
	elf__free(elf);
	start_server(w, answer, path);
	opts.urls[0] = w->url;
	opts.cache = w->cache;
	assert_int_equal(debuginfod__new(&opts, &w->debuginfod), 0);
}

static void stop_server(struct world *w)
{
	kill(w->server, SIGKILL);
	waitpid(w->server, NULL, 0);
}

static void finish(struct world *w)
{
	char command[128];

	debuginfod__free(w->debuginfod);
	snprintf(command, sizeof(command), "rm -rf %s", w->cache);
	assert_int_equal(system(command), 0);
}

static bool same_bytes(const char *a, const char *b)
{
	char command[PATH_MAX + 64];

	snprintf(command, sizeof(command), "cmp -s %s %s", a, b);
	return system(command) == 0;
}

static void downloads(void **state)
{
	char self[PATH_MAX] = "";
	struct stat st;
	struct world w;

	(void)state;
	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	begin(&w, HAS_IT, self, LONG_MS);
	assert_int_equal(debuginfod__fetch(w.debuginfod, w.id, DEBUGINFOD_DEBUGINFO, w.path), 0);
	assert_true(same_bytes(w.path, self));
	assert_int_equal(debuginfod__fetch(w.debuginfod, w.id, DEBUGINFOD_EXECUTABLE, w.path),
			 -ENOENT);
	assert_int_equal(debuginfod__fetch(w.debuginfod, w.id, DEBUGINFOD_DEBUGINFO, w.path), 0);
	/* with nobody to ask any more, it is still there; anything else is not */
	stop_server(&w);
	assert_int_equal(stat(w.path, &st), 0);
	assert_int_equal(debuginfod__fetch(w.debuginfod, w.id, DEBUGINFOD_DEBUGINFO, w.path), 0);
	assert_true(debuginfod__fetch(w.debuginfod, "0123456789abcdef", DEBUGINFOD_DEBUGINFO,
				      w.path) < 0);
	finish(&w);
}

static void has_not(void **state)
{
	struct stat st;
	struct world w;

	(void)state;
	begin(&w, HAS_NOT, "", LONG_MS);
	assert_int_equal(debuginfod__fetch(w.debuginfod, w.id, DEBUGINFOD_DEBUGINFO, w.path),
			 -ENOENT);
	assert_int_equal(debuginfod__fetch(w.debuginfod, w.id, DEBUGINFOD_DEBUGINFO, w.path),
			 -ENOENT);
	assert_int_equal(stat(w.path, &st), -1);
	assert_int_equal(
		debuginfod__fetch(w.debuginfod, "../../etc/passwd", DEBUGINFOD_DEBUGINFO, w.path),
		-ENOENT);
	assert_int_equal(debuginfod__fetch(w.debuginfod, "", DEBUGINFOD_DEBUGINFO, w.path),
			 -ENOENT);
	stop_server(&w);
	finish(&w);
}

/* Another program, and no program at all: neither is kept. */
static void another(void **state)
{
	static const char *const paths[] = {"/bin/cat", "/etc/passwd"};
	struct world w;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		char command[PATH_MAX + 64];

		begin(&w, HAS_IT, paths[i], LONG_MS);
		assert_true(debuginfod__fetch(w.debuginfod, w.id, DEBUGINFOD_DEBUGINFO, w.path) <
			    0);
		snprintf(command, sizeof(command), "test -z \"$(find %s -type f)\"", w.cache);
		assert_int_equal(system(command), 0);
		stop_server(&w);
		finish(&w);
	}
}

static void hangs(void **state)
{
	struct world w;

	(void)state;
	begin(&w, HANGS, "", 1000);
	assert_int_equal(debuginfod__fetch(w.debuginfod, w.id, DEBUGINFOD_DEBUGINFO, w.path),
			 -ETIMEDOUT);
	stop_server(&w);
	finish(&w);
}

static void urls(void **state)
{
	(void)state;
	assert_null(debuginfod__url_error("https://debuginfod.debian.net"));
	assert_null(debuginfod__url_error("http://127.0.0.1:8002/"));
	assert_non_null(debuginfod__url_error("file:///etc/passwd"));
	assert_non_null(debuginfod__url_error(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(downloads), cmocka_unit_test(has_not), cmocka_unit_test(another),
		cmocka_unit_test(hangs),     cmocka_unit_test(urls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
