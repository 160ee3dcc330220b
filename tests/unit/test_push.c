/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What of --push needs no server: the queue, how long to wait, URLs, files of headers. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "confine/confine.h"
#include "picture/make.h"
#include "push/push_priv.h"

static char dir[64];

static int make_dir(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/safescoped-push-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static const char *in_dir(const char *name)
{
	static char path[160];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void put_text(const char *path, const char *text, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), len);
	close(fd);
}

/* ── the queue ───────────────────────────────────────────────────────────────────────────── */

static struct queue *open_queue(uint64_t max)
{
	struct queue *q;

	assert_int_equal(queue__open(in_dir("a/queue"), max, &q), 0);
	return q;
}

/* Of so many bytes, all of one letter. */
static void put_file(const struct queue *q, uint64_t unix_ns, unsigned n, char letter, size_t bytes)
{
	char path[PATH_MAX], text[4096];

	memset(text, letter, sizeof(text));
	assert_int_equal(queue__path(q, unix_ns, n, path), 0);
	put_text(path, text, bytes);
}

/* The letter of the first file, which is held then; 0: there is none. */
static char hold_first(struct queue *q)
{
	char letter = 0;
	int fd;

	if (queue__hold_first(q, &fd))
		return 0;
	assert_int_equal(read(fd, &letter, 1), 1);
	close(fd);
	return letter;
}

static char take_first(struct queue *q)
{
	char letter = hold_first(q);

	queue__let_go(q, true);
	return letter;
}

static void test_order(void **state)
{
	struct queue *q = open_queue(1000);

	(void)state;
	assert_int_equal(hold_first(q), 0);
	put_file(q, 200, 0, 'c', 10);
	put_file(q, UINT64_C(1767225600123456789), 0, 'e', 10);
	put_file(q, 9, 1, 'b', 10);
	put_file(q, 9, 0, 'a', 10);
	put_file(q, 1000, 0, 'd', 10);
	/* these are not the queue's */
	put_text(in_dir("a/queue/notes.txt"), "z", 1);
	put_text(in_dir("a/queue/00000000000000000000-00000.push.part"), "z", 1);
	assert_int_equal(mkdir(in_dir("a/queue/00000000000000000000-00000.push"), 0700), 0);
	assert_int_equal(queue__look(q), 0);
	assert_int_equal(queue__state(q).n, 5);
	assert_int_equal(queue__state(q).bytes, 50);
	assert_int_equal(queue__state(q).oldest_unix_ns, 9);
	for (const char *want = "abcde"; *want; want++)
		assert_int_equal(take_first(q), *want);
	assert_int_equal(hold_first(q), 0);
	assert_int_equal(queue__state(q).bytes, 0);
	assert_int_equal(access(in_dir("a/queue/notes.txt"), F_OK), 0);
	queue__free(q);
}

/* A second file of the same time does not take the place of the first one, which may be on its way.
 */
static void test_same_time(void **state)
{
	struct queue *q = open_queue(1000);

	(void)state;
	put_file(q, 7, 0, 'a', 10);
	assert_int_equal(queue__look(q), 0);
	assert_int_equal(hold_first(q), 'a');
	put_file(q, 7, 0, 'b', 10);
	queue__let_go(q, true);
	assert_int_equal(queue__look(q), 0);
	assert_int_equal(take_first(q), 'b');
	queue__free(q);
}

/* What is let go without being removed comes again. */
static void test_kept(void **state)
{
	struct queue *q = open_queue(1000);

	(void)state;
	put_file(q, 1, 0, 'a', 10);
	assert_int_equal(queue__look(q), 0);
	assert_int_equal(hold_first(q), 'a');
	queue__let_go(q, false);
	assert_int_equal(hold_first(q), 'a');
	queue__let_go(q, false);
	queue__free(q);
	/* and in the next session */
	q = open_queue(1000);
	assert_int_equal(take_first(q), 'a');
	assert_int_equal(hold_first(q), 0);
	queue__free(q);
	q = open_queue(1000);
	assert_int_equal(hold_first(q), 0);
	queue__free(q);
}

static void test_oldest_go(void **state)
{
	struct queue *q = open_queue(1000);

	(void)state;
	for (unsigned i = 0; i < 5; i++)
		put_file(q, 100 + i, 0, (char)('a' + i), 400);
	assert_int_equal(queue__look(q), 0);
	assert_int_equal(queue__state(q).dropped, 3);
	assert_int_equal(queue__state(q).n, 2);
	assert_int_equal(hold_first(q), 'd');
	/* what is held stays, and whatever comes then goes before it */
	put_file(q, 50, 0, 'x', 400);
	put_file(q, 200, 0, 'f', 400);
	assert_int_equal(queue__look(q), 0);
	assert_int_equal(queue__state(q).dropped, 5);
	queue__let_go(q, false);
	assert_int_equal(take_first(q), 'd');
	assert_int_equal(take_first(q), 'f');
	assert_int_equal(queue__state(q).dropped, 5);
	queue__free(q);
}

/* The newest stays, even if there is no room for it. */
static void test_too_large(void **state)
{
	struct queue *q = open_queue(100);

	(void)state;
	put_file(q, 1, 0, 'a', 50);
	put_file(q, 2, 0, 'b', 3000);
	assert_int_equal(queue__look(q), 0);
	assert_int_equal(queue__state(q).dropped, 1);
	assert_int_equal(take_first(q), 'b');
	queue__free(q);
}

/* The held file is removed by somebody else. */
static void test_vanished(void **state)
{
	struct queue *q = open_queue(1000);

	(void)state;
	put_file(q, 1, 0, 'a', 10);
	put_file(q, 2, 0, 'b', 10);
	put_file(q, 3, 0, 'c', 10);
	assert_int_equal(queue__look(q), 0);
	assert_int_equal(hold_first(q), 'a');
	assert_int_equal(unlink(in_dir("a/queue/00000000000000000001-00000.push")), 0);
	assert_int_equal(queue__look(q), 0);
	queue__let_go(q, true);
	assert_int_equal(queue__state(q).n, 2);
	assert_int_equal(unlink(in_dir("a/queue/00000000000000000002-00000.push")), 0);
	assert_int_equal(take_first(q), 'c');
	assert_int_equal(queue__state(q).dropped, 0);
	queue__free(q);
}

static void test_whose(void **state)
{
	struct queue *q = open_queue(1000), *other;

	(void)state;
	assert_int_equal(queue__open(in_dir("a/queue"), 1000, &other), -EBUSY);
	queue__free(q);
	assert_int_equal(chmod(in_dir("a/queue"), 0777), 0);
	assert_int_equal(queue__open(in_dir("a/queue"), 1000, &other), -EPERM);
	put_text(in_dir("file"), "x", 1);
	assert_int_equal(queue__open(in_dir("file"), 1000, &other), -ENOTDIR);
	assert_int_equal(queue__open(in_dir("file/queue"), 1000, &other), -ENOTDIR);
}

/* ── how long to wait ────────────────────────────────────────────────────────────────────── */

static void test_backoff(void **state)
{
	const uint64_t s = 1000000000;

	(void)state;
	assert_int_equal(backoff__ns(1, 0, 0), BACKOFF_FIRST_NS);
	assert_int_equal(backoff__ns(1, UINT32_MAX, 0), BACKOFF_FIRST_NS / 2);
	assert_int_equal(backoff__ns(3, 0, 0), 4 * BACKOFF_FIRST_NS);
	assert_int_equal(backoff__ns(3, UINT32_MAX, 0), 2 * BACKOFF_FIRST_NS);
	assert_int_equal(backoff__ns(UINT32_MAX, 0, 0), BACKOFF_MOST_NS);
	assert_int_equal(backoff__ns(UINT32_MAX, UINT32_MAX, 0), BACKOFF_MOST_NS / 2);
	/* as long as the server asks for, within reason */
	assert_int_equal(backoff__ns(1, 7, 30), 30 * s);
	assert_int_equal(backoff__ns(30, 0, 1), BACKOFF_MOST_NS);
	assert_int_equal(backoff__ns(1, 0, UINT64_MAX), BACKOFF_ASKED_MOST_NS);
	for (unsigned failures = 1; failures < 20; failures++)
		for (uint32_t random = 0; random < UINT32_MAX - (1U << 28); random += 1U << 28)
			assert_true(backoff__ns(failures, random, 0) >=
				    backoff__ns(failures, random + 1, 0));
}

/* ── URLs ────────────────────────────────────────────────────────────────────────────────── */

static void check_url(const char *text, enum push_protocol protocol, const char *request,
		      const char *shown)
{
	struct push_url url;
	const char *why;

	assert_int_equal(push_url__parse(text, &url, &why), 0);
	assert_int_equal(url.protocol, protocol);
	assert_string_equal(url.request, request);
	assert_string_equal(url.shown, shown);
	push_url__free(&url);
}

static void test_urls(void **state)
{
	static const char *const wrong[] = {
		"",
		"http://h",
		"otlp://h",
		"otlp+h",
		"otlp+ftp://h",
		"otlp+file:///etc/passwd",
		"otlp+http://",
		"otlp+http://h:port",
		"otlp+http://h:99999",
		"otlp+http://user@h",
		"otlp+http://user:secret@h",
		"otlp+http://h/?key=secret",
		"otlp+http://h/#f",
		"otlp+http://h\n",
		"OTLP+http://h",
	};

	(void)state;
	check_url("otlp+http://h", PUSH_OTLP, "http://h:4318/v1development/profiles",
		  "otlp+http://h:4318");
	check_url("otlp+https://h:443/", PUSH_OTLP, "https://h:443/v1development/profiles",
		  "otlp+https://h:443");
	check_url("otlp+http://[::1]:99/a/b", PUSH_OTLP,
		  "http://[::1]:99/a/b/v1development/profiles", "otlp+http://[::1]:99/a/b");
	check_url("pyroscope+https://p", PUSH_PYROSCOPE, "https://p:4040/ingest",
		  "pyroscope+https://p:4040");
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		assert_non_null(push__url_error(wrong[i]));
		assert_null(strstr(push__url_error(wrong[i]), "secret"));
	}
	assert_null(push__url_error("otlp+http://h"));
}

/* ── labels ──────────────────────────────────────────────────────────────────────────────── */

static void check_query(const char *comm, const char *host, const char *want)
{
	const struct export_opts opts = {.host_name = host};
	struct pic_target *target;
	struct pic_session *session;
	struct picture *pic;
	struct buf query;

	assert_int_equal(picture__new(16, &pic), 0);
	session = picture__edit_session(pic);
	session->start_ns = 5;
	session->end_ns = 5 + UINT64_C(60000000000);
	session->start_unix_ns = UINT64_C(1767225600900000000);
	assert_int_equal(picture__add_target(pic, &target), 0);
	target->comm = comm;
	target->exe = "/srv/bin/app";
	target->pid = 42;
	target->ghc_version = "9.6.6";
	buf__init(&query, PUSH_QUERY_MAX);
	assert_int_equal(push_labels__query(pic, target, &opts, &query), 0);
	assert_string_equal(query.data, want);
	buf__free(&query);
	picture__free(pic);
}

static void test_labels(void **state)
{
	(void)state;
	check_query("app", "box",
		    "name=app%7Bhost%3Dbox%2Cpid%3D42%2Cexe%3Dapp%2Cghc_version%3D9.6.6%7D"
		    "&from=1767225600&until=1767225661&format=pprof");
	/* of a replay, and what would end a label, or the query */
	check_query("a{b=c}&d,\"\n", NULL,
		    "name=a_b_c_%26d__%5Cu_a_%7Bpid%3D42%2Cexe%3Dapp%2Cghc_version%3D9.6.6%7D"
		    "&from=1767225600&until=1767225661&format=pprof");
}

/* ── headers ─────────────────────────────────────────────────────────────────────────────── */

static int read_headers(const char *text, size_t len, struct push_headers *ret)
{
	put_text(in_dir("headers"), text, len);
	return push_headers__read(in_dir("headers"), (uid_t)-1, ret);
}

static void test_headers(void **state)
{
	static const char text[] = "\n# X: no\nAuthorization: Basic dXNlcg==\r\nX-Empty:\nx:y";
	struct push_headers h;

	(void)state;
	assert_int_equal(read_headers(text, strlen(text), &h), 0);
	assert_int_equal(h.n, 3);
	assert_string_equal(h.lines[0], "Authorization: Basic dXNlcg==");
	assert_string_equal(h.lines[1], "X-Empty:");
	assert_string_equal(h.lines[2], "x:y");
	push_headers__free(&h);
	push_headers__free(&h);
	assert_int_equal(push_headers__read(NULL, (uid_t)-1, &h), 0);
	assert_int_equal(h.n, 0);
	assert_int_equal(read_headers("", 0, &h), 0);
	assert_int_equal(h.n, 0);
	push_headers__free(&h);
}

static void test_bad_headers(void **state)
{
	static const char *const wrong[] = {"x", ":x", "a b: c", "a: b\x01", "a\r: b", "é: x"};
	struct push_headers h;
	char *large = calloc(1, 70000);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(read_headers(wrong[i], strlen(wrong[i]), &h), -EINVAL);
	assert_int_equal(read_headers("a: b\0c: d", 9, &h), -EINVAL);
	assert_non_null(large);
	memset(large, '#', 70000);
	assert_int_equal(read_headers(large, 70000, &h), -EFBIG);
	for (size_t i = 0; i < 70000 / 4; i++)
		memcpy(large + i * 4, "a:b\n", 4);
	assert_int_equal(read_headers(large, 4000, &h), -E2BIG);
	free(large);
	assert_int_equal(push_headers__read(in_dir("none"), (uid_t)-1, &h), -ENOENT);
	assert_int_equal(push_headers__read(dir, (uid_t)-1, &h), -EINVAL);
}

/* ── a sender that was taken over ────────────────────────────────────────────────────────── */

static void send_bytes(int fd, const void *data, size_t len)
{
	if (send(fd, data, len, MSG_NOSIGNAL) != (ssize_t)len)
		_exit(1);
}

static void hostile_sender(void *ctx, int fd)
{
	struct sender_answer a = {.outcome = SENDER_ANSWERED, .id = 1, .rejected = INT64_MIN};
	char rest;

	(void)ctx;
	memset(a.text, 'x', sizeof(a.text));
	send_bytes(fd, &a, sizeof(a));
	a.outcome = SENDER_OUTCOMES;
	send_bytes(fd, &a, sizeof(a));
	send_bytes(fd, &a, sizeof(a) - 1);
	send_bytes(fd, "", 1);
	/* until it is killed */
	while (recv(fd, &rest, 1, 0) > 0)
		;
}

static int next_answer(struct confine_peer *peer, struct sender_answer *ret)
{
	struct pollfd p = {.fd = confine_peer__fd(peer), .events = POLLIN};

	assert_int_equal(poll(&p, 1, 60000), 1);
	return sender__answer(peer, ret);
}

static void test_hostile_answers(void **state)
{
	const struct confine how = {
		.name = "test", .user = CONFINE_NOBODY, .keep = CONFINE_NETWORK};
	struct confine_peer *peer;
	struct sender_answer a;

	(void)state;
	assert_int_equal(confine_peer__start(&how, hostile_sender, NULL, &peer), 0);
	assert_int_equal(next_answer(peer, &a), 0);
	assert_int_equal(strlen(a.text), sizeof(a.text) - 1);
	assert_int_equal(a.rejected, 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(next_answer(peer, &a), -EPIPE);
	assert_int_equal(sender__answer(peer, &a), -EAGAIN);
	confine_peer__free(peer);
}

#define WITH_DIR(test) cmocka_unit_test_setup_teardown(test, make_dir, remove_dir)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_DIR(test_order),
		WITH_DIR(test_same_time),
		WITH_DIR(test_kept),
		WITH_DIR(test_oldest_go),
		WITH_DIR(test_too_large),
		WITH_DIR(test_vanished),
		WITH_DIR(test_whose),
		cmocka_unit_test(test_backoff),
		cmocka_unit_test(test_urls),
		cmocka_unit_test(test_labels),
		WITH_DIR(test_headers),
		WITH_DIR(test_bad_headers),
		cmocka_unit_test(test_hostile_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
