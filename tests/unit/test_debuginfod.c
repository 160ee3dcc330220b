/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Downloads and the cache, with a local server that answers as debuginfod does: with this test's
 * own executable, with nothing, with another file, or never.
 */
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
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/base.h"
#include "confine/confine.h"
#include "debuginfod/debuginfod.h"
#include "elf/elf.h"
#include "listening.h"

#define LONG_MS 60000

enum answer { HAS_IT, HAS_NOT, HAS_IT_LATER, HANGS, BREAKS_OFF, COMPRESSES };

struct world {
	char cache[64], url[64], id[41], path[PATH_MAX];
	pid_t server;
	struct debuginfod *debuginfod;
};

static volatile sig_atomic_t is_later;

static void on_later(int signo)
{
	(void)signo;
	is_later = 1;
}

/* `more`: how many bytes too many it announces. */
static void send_file(int to, const char *path, const char *header, long long more)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char buf[65536], head[128];
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st))
		_exit(1);
	n = snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %lld\r\n%s\r\n",
		     (long long)st.st_size + more, header);
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
		if ((answer == HAS_IT || (answer == HAS_IT_LATER && is_later)) &&
		    strncmp(request, want, strlen(want)) == 0)
			send_file(to, path, "", 0);
		else if (answer == COMPRESSES && strncmp(request, want, strlen(want)) == 0)
			send_file(to, path, "Content-Encoding: gzip\r\n", 0);
		else if (answer == BREAKS_OFF)
			for (int i = 0; i < 2; i++)
				send_file(to, path, "", 2000000000);
		else if (write(to, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", 45) != 45)
			_exit(1);
		close(to);
	}
}

static void start_server(struct world *w, enum answer answer, const char *path)
{
	struct sockaddr_in addr;
	int fd = listening(&addr);

	snprintf(w->url, sizeof(w->url), "http://127.0.0.1:%u/", ntohs(addr.sin_port));
	w->server = fork();
	assert_true(w->server >= 0);
	if (w->server == 0) {
		/* so that a failed test does not leave it running */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGPIPE, SIG_IGN);
		signal(SIGUSR1, on_later);
		serve(fd, answer, w->id, path);
	}
	close(fd);
}

static void begin_with(struct world *w, enum answer answer, const char *path, int timeout_ms,
		       int none_ms)
{
	struct debuginfod_opts opts = {.n = 1, .timeout_ms = timeout_ms, .none_ms = none_ms};
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

static void begin(struct world *w, enum answer answer, const char *path, int timeout_ms)
{
	begin_with(w, answer, path, timeout_ms, DEBUGINFOD_NONE_MS);
}

/* Waits for the download. */
static int find(struct world *w, const char *build_id)
{
	debuginfod__wait_until(w->debuginfod, UINT64_MAX, -1);
	return debuginfod__find(w->debuginfod, CONFINE_NOBODY, build_id, w->path);
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
	assert_int_equal(find(&w, w.id), 0);
	assert_true(same_bytes(w.path, self));
	/* without a server the downloaded file is still there, and nothing else */
	stop_server(&w);
	assert_int_equal(stat(w.path, &st), 0);
	assert_int_equal(find(&w, w.id), 0);
	assert_true(find(&w, "0123456789abcdef") < 0);
	finish(&w);
}

/* A caller that does not wait finds the file later: here after the stopped server was resumed. */
static void downloads_meanwhile(void **state)
{
	char self[PATH_MAX] = "";
	struct world w;
	int err;

	(void)state;
	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	begin(&w, HAS_IT, self, LONG_MS);
	assert_int_equal(kill(w.server, SIGSTOP), 0);
	assert_int_equal(debuginfod__find(w.debuginfod, 1000, w.id, w.path), -EAGAIN);
	assert_int_equal(debuginfod__find(w.debuginfod, 1000, "0123456789abcdef", w.path), -EAGAIN);
	assert_int_equal(debuginfod__n_over(w.debuginfod), 0);
	assert_int_equal(kill(w.server, SIGCONT), 0);
	while (debuginfod__n_over(w.debuginfod) < 2) {
		struct pollfd fd = {.fd = debuginfod__fd(w.debuginfod), .events = POLLIN};

		poll(&fd, 1, 50);
		debuginfod__turn(w.debuginfod);
	}
	err = debuginfod__find(w.debuginfod, 1000, w.id, w.path);
	assert_int_equal(err, 0);
	assert_true(same_bytes(w.path, self));
	assert_int_equal(debuginfod__find(w.debuginfod, 1000, "0123456789abcdef", w.path), -ENOENT);
	stop_server(&w);
	finish(&w);
}

/* The executables of one user do not use up the requests of others. */
static void shares(void **state)
{
	struct world w;
	char id[41];

	(void)state;
	begin(&w, HAS_NOT, "", LONG_MS);
	assert_int_equal(kill(w.server, SIGSTOP), 0);
	for (unsigned i = 0; i < DEBUGINFOD_MAX_WANTS_FOR; i++) {
		snprintf(id, sizeof(id), "%040x", i + 1);
		assert_int_equal(debuginfod__find(w.debuginfod, 1000, id, w.path), -EAGAIN);
	}
	assert_int_equal(debuginfod__find(w.debuginfod, 1000, w.id, w.path), -EDQUOT);
	assert_int_equal(debuginfod__find(w.debuginfod, 1001, w.id, w.path), -EAGAIN);
	stop_server(&w);
	finish(&w);
}

static void has_not(void **state)
{
	struct stat st;
	struct world w;

	(void)state;
	begin(&w, HAS_NOT, "", LONG_MS);
	assert_int_equal(find(&w, w.id), -ENOENT);
	assert_int_equal(find(&w, w.id), -ENOENT);
	assert_int_equal(stat(w.path, &st), -1);
	assert_int_equal(find(&w, "../../etc/passwd"), -ENOENT);
	assert_int_equal(find(&w, ""), -ENOENT);
	stop_server(&w);
	finish(&w);
}

/* A file published later than its program is found after the retry interval; until then there is
 * only one request, however often the file is wanted. */
static void has_it_later(void **state)
{
	static const int none_ms[] = {DEBUGINFOD_NONE_MS, 100};
	const struct timespec pause = {.tv_nsec = 150000000L};
	char self[PATH_MAX] = "";
	struct world w;

	(void)state;
	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	for (size_t i = 0; i < ARRAY_SIZE(none_ms); i++) {
		begin_with(&w, HAS_IT_LATER, self, LONG_MS, none_ms[i]);
		assert_int_equal(find(&w, w.id), -ENOENT);
		assert_int_equal(kill(w.server, SIGUSR1), 0);
		nanosleep(&pause, NULL);
		assert_int_equal(find(&w, w.id), i ? 0 : -ENOENT);
		assert_int_equal(debuginfod__n_over(w.debuginfod), i ? 2 : 1);
		if (i)
			assert_true(same_bytes(w.path, self));
		stop_server(&w);
		finish(&w);
	}
}

/* Another program, and a file that is not a program: neither is kept. */
static void another(void **state)
{
	static const char *const paths[] = {"/bin/cat", "/etc/passwd"};
	struct world w;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		char command[PATH_MAX + 64];

		begin(&w, HAS_IT, paths[i], LONG_MS);
		assert_true(find(&w, w.id) < 0);
		snprintf(command, sizeof(command), "test -z \"$(find %s -type f)\"", w.cache);
		assert_int_equal(system(command), 0);
		stop_server(&w);
		finish(&w);
	}
}

/* The beginning of the file, which ends before its section table: it has the build-id, and its
 * symbols are missing, but it is not a file without symbols. */
static void cut_off(void **state)
{
	char path[] = "/tmp/safescoped-cut-XXXXXX", command[256];
	int fd = mkstemp(path);
	struct stat st;
	struct world w;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(stat("/proc/self/exe", &st), 0);
	snprintf(command, sizeof(command), "head -c %lld /proc/%d/exe >%s",
		 (long long)st.st_size / 2, getpid(), path);
	assert_int_equal(system(command), 0);
	begin(&w, HAS_IT, path, LONG_MS);
	assert_null(debuginfod__why_not(w.debuginfod, w.id));
	assert_int_equal(find(&w, w.id), -EMSGSIZE);
	assert_non_null(strstr(debuginfod__why_not(w.debuginfod, w.id), "cut off"));
	stop_server(&w);
	finish(&w);
	close(fd);
	unlink(path);
}

static void hangs(void **state)
{
	struct world w;

	(void)state;
	begin(&w, HANGS, "", 1000);
	assert_int_equal(find(&w, w.id), -ETIMEDOUT);
	stop_server(&w);
	finish(&w);
}

/* The first server hangs, sends another program or something that is no program, or breaks off; the
 * second one has the file. */
static void another_server(void **state)
{
	static const struct {
		enum answer answer;
		const char *path;
		int timeout_ms;
	} firsts[] = {{HANGS, "", 6000},
		      {HAS_IT, "/bin/cat", LONG_MS},
		      {HAS_IT, "/etc/passwd", LONG_MS},
		      {BREAKS_OFF, "/proc/self/exe", LONG_MS}};
	char self[PATH_MAX] = "";
	struct world first, w;

	(void)state;
	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	for (size_t i = 0; i < ARRAY_SIZE(firsts); i++) {
		const struct debuginfod_opts opts = {.urls = {first.url, w.url},
						     .n = 2,
						     .cache = w.cache,
						     .timeout_ms = firsts[i].timeout_ms,
						     .none_ms = LONG_MS};

		begin(&first, firsts[i].answer, firsts[i].path, LONG_MS);
		begin(&w, HAS_IT, self, LONG_MS);
		debuginfod__free(w.debuginfod);
		assert_int_equal(debuginfod__new(&opts, &w.debuginfod), 0);
		assert_int_equal(find(&w, w.id), 0);
		assert_true(same_bytes(w.path, self));
		stop_server(&first);
		finish(&first);
		stop_server(&w);
		finish(&w);
	}
}

/* Whether the file that downloads are written to takes up no space. */
static bool file_is_empty(void)
{
	return system("for f in /proc/$PPID/fd/*; do case $(readlink $f) in *.download-*) "
		      "test ! -s $f || exit 1; esac; done") == 0;
}

/* A proxy that compresses what it was not asked to, and more than can be written in time. */
static void compressed(void **state)
{
	static const char *const sources[] = {"cat /proc/$PPID/exe", "head -c 400M /dev/zero"};
	char gz[] = "/tmp/safescoped-gz-XXXXXX", command[128];
	int fd = mkstemp(gz);
	struct world w;

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	for (int bomb = 0; bomb < 2; bomb++) {
		snprintf(command, sizeof(command), "%s | gzip -1 >%s", sources[bomb], gz);
		assert_int_equal(system(command), 0);
		begin(&w, COMPRESSES, gz, bomb ? 100 : LONG_MS);
		assert_int_equal(find(&w, w.id), bomb ? -ETIMEDOUT : 0);
		assert_true(bomb || same_bytes(w.path, "/proc/$PPID/exe"));
		assert_true(file_is_empty());
		stop_server(&w);
		finish(&w);
	}
	assert_int_equal(unlink(gz), 0);
}

/* A waiting caller returns if another event comes first. */
static void let_go(void **state)
{
	struct world w;
	int fds[2];

	(void)state;
	begin(&w, HANGS, "", LONG_MS);
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], "x", 1), 1);
	debuginfod__wait_until(w.debuginfod, UINT64_MAX, fds[0]);
	assert_int_equal(debuginfod__find(w.debuginfod, 1000, w.id, w.path), -EAGAIN);
	close(fds[0]);
	close(fds[1]);
	stop_server(&w);
	finish(&w);
}

/* Makes a file in the cache that was read and written that many days ago. */
static void put(const struct world *w, const char *name, int read_days, int written_days)
{
	struct timespec times[2] = {{.tv_sec = time(NULL) - read_days * 86400L},
				    {.tv_sec = time(NULL) - written_days * 86400L}};
	char path[PATH_MAX], *slash;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", w->cache, name);
	slash = strrchr(path, '/');
	*slash = '\0';
	mkdir(path, 0700);
	*slash = '/';
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "9999999\n", 8), 8);
	assert_int_equal(futimens(fd, times), 0);
	close(fd);
}

static bool is_there(const struct world *w, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", w->cache, name);
	return !access(path, F_OK);
}

/* Removes files that were neither read nor written for long and stale partial downloads, and
 * nothing else. */
static void trims(void **state)
{
	static const struct {
		const char *name;
		int read_days, written_days;
		bool stays;
	} files[] = {
		{"0123ab/debuginfo", 8, 300, false},	{"0123cd/executable", 8, 8, false},
		{"0123ef/debuginfo", 6, 300, true},	{"0123ef/executable", 300, 300, false},
		{"012345/debuginfo", 300, 6, true},	{"012346/debuginfo.4711", 2, 2, false},
		{"012347/debuginfo.4711", 0, 0, true},	{"012348/debuginfo.bak", 300, 300, true},
		{"012349/source##a.c", 300, 300, true}, {"012349/debuginfo", 300, 300, false},
		{"notes/debuginfo", 300, 300, true},	{"debuginfo", 300, 300, true},
	};
	struct world w;

	(void)state;
	begin(&w, HAS_NOT, "", LONG_MS);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		put(&w, files[i].name, files[i].read_days, files[i].written_days);
	debuginfod__turn(w.debuginfod);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (is_there(&w, files[i].name) != files[i].stays)
			fail_msg("%s %s", files[i].name, files[i].stays ? "is gone" : "is there");
	assert_false(is_there(&w, "0123ab"));
	stop_server(&w);
	finish(&w);
}

/* A file can set another time limit, as with the client library. */
static void trims_later(void **state)
{
	struct world w;

	(void)state;
	begin(&w, HAS_NOT, "", LONG_MS);
	put(&w, "0123ab/debuginfo", 100, 100);
	put(&w, "0123cd/debuginfo", 120, 120);
	put(&w, "max_unused_age_s", 0, 0);
	debuginfod__turn(w.debuginfod);
	assert_true(is_there(&w, "0123ab/debuginfo"));
	assert_false(is_there(&w, "0123cd/debuginfo"));
	stop_server(&w);
	finish(&w);
}

/* ── directories of others ───────────────────────────────────────────────────────────────── */

#define ANNA 1000

static bool is_empty(const char *path)
{
	char command[PATH_MAX + 64];

	snprintf(command, sizeof(command), "test -z \"$(ls -A %s)\"", path);
	return system(command) == 0;
}

/* root stores nothing in another user's directory, and makes no directory there. */
static void not_ours(void **state)
{
	struct debuginfod_opts opts = {
		.urls = {"http://127.0.0.1:1/"}, .n = 1, .timeout_ms = LONG_MS, .none_ms = LONG_MS};
	char home[] = "/tmp/safescoped-home-XXXXXX", cache[64];
	struct debuginfod *d = NULL;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_non_null(mkdtemp(home));
	assert_int_equal(chown(home, ANNA, ANNA), 0);
	snprintf(cache, sizeof(cache), "%s/.cache/debuginfod_client", home);
	opts.cache = cache;
	assert_int_equal(debuginfod__new(&opts, &d), -EPERM);
	assert_null(d);
	assert_true(is_empty(home));
	/* nor in the target of his link */
	snprintf(cache, sizeof(cache), "%s.link", home);
	assert_int_equal(symlink("/root", cache), 0);
	assert_int_equal(lchown(cache, ANNA, ANNA), 0);
	assert_int_equal(debuginfod__new(&opts, &d), -EPERM);
	assert_int_equal(unlink(cache), 0);
	assert_int_equal(rmdir(home), 0);
}

/* In a directory where others may create files, one of their directories or links has the
 * build-id's name. */
static void swapped(void **state)
{
	char self[PATH_MAX] = "", victim[] = "/tmp/safescoped-victim-XXXXXX", path[128];
	struct world w;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	assert_non_null(mkdtemp(victim));
	for (int is_link = 0; is_link < 2; is_link++) {
		begin(&w, HAS_IT, self, LONG_MS);
		assert_int_equal(chmod(w.cache, 01777), 0);
		snprintf(path, sizeof(path), "%s/%s", w.cache, w.id);
		assert_int_equal(is_link ? symlink(victim, path) : mkdir(path, 0777), 0);
		assert_int_equal(lchown(path, ANNA, ANNA), 0);
		assert_true(find(&w, w.id) < 0);
		assert_true(is_empty(victim));
		assert_true(is_link || is_empty(path));
		stop_server(&w);
		finish(&w);
	}
	assert_int_equal(rmdir(victim), 0);
}

/* A cache directory that was removed meanwhile is made again. */
static void removed(void **state)
{
	char self[PATH_MAX] = "", moved[96];
	struct world w;

	(void)state;
	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	for (int keeps = 0; keeps < 2; keeps++) {
		begin(&w, HAS_IT, self, LONG_MS);
		snprintf(moved, sizeof(moved), "%s.moved", w.cache);
		assert_int_equal(keeps ? rename(w.cache, moved) : rmdir(w.cache), 0);
		assert_int_equal(find(&w, w.id), 0);
		assert_true(same_bytes(w.path, self));
		stop_server(&w);
		finish(&w);
	}
	assert_int_equal(rmdir(moved), 0);
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
		cmocka_unit_test(downloads),	cmocka_unit_test(downloads_meanwhile),
		cmocka_unit_test(shares),	cmocka_unit_test(has_not),
		cmocka_unit_test(another),	cmocka_unit_test(hangs),
		cmocka_unit_test(let_go),	cmocka_unit_test(urls),
		cmocka_unit_test(trims),	cmocka_unit_test(trims_later),
		cmocka_unit_test(has_it_later), cmocka_unit_test(not_ours),
		cmocka_unit_test(swapped),	cmocka_unit_test(removed),
		cmocka_unit_test(cut_off),	cmocka_unit_test(another_server),
		cmocka_unit_test(compressed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
