/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parts of --push that need no server, or a failing one: waits, URLs, headers, labels, answers.
 */
#include "test_push_kit.h"

#include <arpa/inet.h>
#include <sys/resource.h>

#include "listening.h"

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
	/* as long as the server asks for, within limits */
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
		"otlp+http://h:0",
		"otlp+https://h:00/a",
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

static void write_message(int fd, const void *data, size_t len)
{
	if (write(fd, data, len) != (ssize_t)len)
		_exit(1);
}

static void hostile_sender(void *ctx, int in, int out)
{
	struct sender_answer a = {.outcome = SENDER_ANSWERED, .id = 1, .rejected = INT64_MIN};
	char rest;

	(void)ctx;
	memset(a.text, 'x', sizeof(a.text));
	write_message(out, &a, sizeof(a));
	a.outcome = SENDER_OUTCOMES;
	write_message(out, &a, sizeof(a));
	write_message(out, &a, sizeof(a) - 1);
	write_message(out, "", 1);
	/* until it is killed */
	while (recv(in, &rest, 1, 0) > 0)
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

/* ── a destination ───────────────────────────────────────────────────────────────────────── */

static struct destination *open_destination(uint16_t port)
{
	char url[64];
	const struct push_to to = {.url = url};
	const struct push_opts opts = {.queue_dir = in_dir("queues"), .owner = (uid_t)-1};
	struct destination *d;

	snprintf(url, sizeof(url), "otlp+http://127.0.0.1:%u", port);
	assert_int_equal(destination__open(&to, &opts, &d), 0);
	return d;
}

static void put_body(struct destination *d, uint16_t port, unsigned unix_ns, const char *body)
{
	char name[96];

	snprintf(name, sizeof(name), "queues/otlp+http___127.0.0.1_%u/%020u-00000.push", port,
		 unix_ns);
	put_text(in_dir(name), body, strlen(body));
	destination__look(d);
}

static void put_in_queue(struct destination *d, uint16_t port, unsigned unix_ns)
{
	put_body(d, port, unix_ns, "\nbody");
}

static void wait_for(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	assert_int_equal(poll(&p, 1, 60000), 1);
}

/*
 * Answers the file that the destination sends with `answer`, or with `to_marked` if the body is
 * marked; returns when the next attempt is due.
 */
static uint64_t answer_one(struct destination *d, int server, uint64_t now, const char *answer,
			   const char *to_marked)
{
	char request[4096] = "";
	size_t len = 0;
	int fd;

	destination__turn(d, now);
	assert_int_equal(destination__next_due(d), 0);
	wait_for(server);
	fd = accept(server, NULL, NULL);
	assert_true(fd >= 0);
	while (!strstr(request, "\r\n\r\nbody")) {
		ssize_t n = recv(fd, request + len, sizeof(request) - 1 - len, 0);

		assert_true(n > 0);
		len += (size_t)n;
	}
	if (strstr(request, "bodymarked"))
		answer = to_marked;
	assert_int_equal(send(fd, answer, strlen(answer), MSG_NOSIGNAL), strlen(answer));
	close(fd);
	wait_for(destination__fd(d));
	/* any wait is counted from this time */
	destination__turn(d, now);
	return destination__next_due(d);
}

static uint64_t fail_at_one(struct destination *d, int server, uint64_t now)
{
	static const char answer[] = "HTTP/1.1 500 no\r\nContent-Length: 0\r\nRetry-After: 300\r\n"
				     "Connection: close\r\n\r\n";

	return answer_one(d, server, now, answer, answer);
}

static uint64_t refused(const struct destination *d)
{
	struct push_stats stats;

	destination__stats(d, &stats);
	return stats.refused;
}

/* The status decides, even if the rest of the answer never comes. */
static void test_cut_off_answers(void **state)
{
	static const char taken[] = "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nsome",
			  no[] = "HTTP/1.1 400 no\r\nContent-Length: 500\r\n\r\nsome",
			  none[] = "HTTP/1.1 ";
	struct sockaddr_in addr;
	int server = listening(&addr);
	uint16_t port = ntohs(addr.sin_port);
	struct destination *d = open_destination(port);
	struct push_stats stats;

	(void)state;
	for (unsigned i = 1; i <= 3; i++)
		put_in_queue(d, port, i);
	answer_one(d, server, 1, taken, taken);
	destination__stats(d, &stats);
	assert_int_equal(stats.delivered, 1);
	answer_one(d, server, 1, no, no);
	destination__stats(d, &stats);
	assert_int_equal(stats.refused, 1);
	assert_int_equal(stats.queued, 1);
	answer_one(d, server, 1, none, none);
	destination__stats(d, &stats);
	assert_int_equal(stats.delivered + stats.refused, 2);
	assert_int_equal(stats.failures, 1);
	assert_int_equal(stats.queued, 1);
	destination__free(d);
	close(server);
}

/*
 * A server that fails whatever it is sent is given its time, even after a file has been given up.
 */
static void test_always_500(void **state)
{
	const uint64_t wait = UINT64_C(300000000000);
	struct sockaddr_in addr;
	int server = listening(&addr);
	uint16_t port = ntohs(addr.sin_port);
	struct destination *d = open_destination(port);
	uint64_t now = 1000, due;

	(void)state;
	put_in_queue(d, port, 5);
	put_in_queue(d, port, 6);
	for (unsigned i = 1; i <= 8; i++, now = due) {
		due = fail_at_one(d, server, now);
		assert_true(due >= now + wait);
		assert_int_equal(refused(d), i / 5);
	}
	/* an older file gets as many attempts as any other one */
	put_in_queue(d, port, 1);
	for (unsigned i = 1; i <= 5; i++, now = due) {
		due = fail_at_one(d, server, now);
		assert_int_equal(refused(d), 1 + i / 5);
	}
	destination__free(d);
	close(server);
}

/*
 * A single file never arrives, as something on the way takes too long: it is dropped, and the
 * others have not waited for it. As long as no file arrives, none is dropped.
 */
static void test_one_never_arrives(void **state)
{
	static const char no[] = "HTTP/1.1 504 no\r\nContent-Length: 0\r\n"
				 "Connection: close\r\n\r\n",
			  busy[] = "HTTP/1.1 503 busy\r\nContent-Length: 0\r\n"
				   "Connection: close\r\n\r\n",
			  yes[] = "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\n"
				  "Content-Length: 0\r\nConnection: close\r\n\r\n";
	struct sockaddr_in addr;
	int server = listening(&addr);
	uint16_t port = ntohs(addr.sin_port);
	struct destination *d = open_destination(port);
	struct push_stats stats;
	uint64_t now = 1000, due;
	unsigned n;

	(void)state;
	put_body(d, port, 1, "\nbodymarked");
	for (unsigned i = 2; i <= 9; i++)
		put_in_queue(d, port, i);
	for (n = 0; n < 20; n++) {
		due = answer_one(d, server, now, no, no);
		now = MAX(due, now + 1);
	}
	destination__stats(d, &stats);
	assert_int_equal(stats.queued, 9);
	assert_int_equal(stats.refused, 0);
	/* a server that is only busy takes the file later */
	for (n = 0; n < 12; n++) {
		due = answer_one(d, server, now, yes, busy);
		now = MAX(due, now + 1);
	}
	destination__stats(d, &stats);
	assert_true(stats.delivered >= 4);
	assert_int_equal(stats.refused, 0);
	for (n = 0; n < 40 && !destination__is_idle(d); n++) {
		due = answer_one(d, server, now, yes, no);
		now = MAX(due, now + 1);
	}
	destination__stats(d, &stats);
	assert_int_equal(stats.delivered, 8);
	assert_int_equal(stats.refused, 1);
	assert_int_equal(stats.queued, 0);
	destination__free(d);
	close(server);
}

/* Nothing can be opened: the destination does not retry in each turn. */
static void test_no_descriptors(void **state)
{
	struct rlimit limit, none = {0};
	struct destination *d = open_destination(9);
	uint64_t now = 1000;

	(void)state;
	put_in_queue(d, 9, 1);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none.rlim_max = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	destination__turn(d, now);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(destination__next_due(d), now + BACKOFF_FIRST_NS);
	/* the file is still there */
	destination__turn(d, now + BACKOFF_FIRST_NS);
	assert_int_equal(destination__next_due(d), 0);
	destination__free(d);
}

/* Redirects standard error to a file, until count_lines() counts the lines that contain `what`. */
static int begin_lines(int *ret_kept)
{
	int file = open(in_dir("lines"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(file >= 0);
	*ret_kept = dup(STDERR_FILENO);
	assert_int_equal(dup2(file, STDERR_FILENO), STDERR_FILENO);
	return file;
}

static unsigned count_lines(int file, int kept, const char *what)
{
	static char text[65536];
	ssize_t len = pread(file, text, sizeof(text) - 1, 0);
	unsigned n = 0;

	assert_int_equal(dup2(kept, STDERR_FILENO), STDERR_FILENO);
	close(kept);
	close(file);
	assert_true(len >= 0);
	text[len] = '\0';
	for (const char *at = text; (at = strstr(at, what)); at++)
		n++;
	return n;
}

/* A server is down for a long time: dropped files are logged only now and then. */
static void test_full_for_long(void **state)
{
	char url[] = "otlp+http://127.0.0.1:9";
	const struct push_to to = {.url = url};
	const struct push_opts opts = {
		.queue_dir = in_dir("queues"), .owner = (uid_t)-1, .queue_bytes = 1};
	struct push_stats stats;
	struct destination *d;
	int file, kept;

	(void)state;
	assert_int_equal(destination__open(&to, &opts, &d), 0);
	file = begin_lines(&kept);
	for (unsigned i = 1; i <= 301; i++)
		put_in_queue(d, 9, i);
	/* the 1st, the 10th and the 100th */
	assert_int_equal(count_lines(file, kept, "the queue is full: 1 of its oldest"), 3);
	destination__stats(d, &stats);
	assert_int_equal(stats.dropped, 300);
	destination__free(d);
}

/* A broken queue directory stays broken until somebody repairs it: one line is enough. */
static void test_no_queue_for_long(void **state)
{
	const char *queue = "queues/otlp+http___127.0.0.1_9";
	struct destination *d = open_destination(9);
	int file, kept;

	(void)state;
	file = begin_lines(&kept);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(rmdir(in_dir(queue)), 0);
		put_text(in_dir(queue), "", 0);
		for (int j = 0; j < 10; j++)
			destination__look(d);
		assert_int_equal(unlink(in_dir(queue)), 0);
		destination__look(d);
	}
	assert_int_equal(count_lines(file, kept, "its queue can"), 4);
	destination__free(d);
}

/* Each file is accepted except for three of its profiles. */
static void test_rejected_for_long(void **state)
{
	static const char some[] =
		"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\n"
		"Content-Length: 9\r\nConnection: close\r\n\r\n\x0a\x07\x08\x03\x12\x03old";
	struct sockaddr_in addr;
	int server = listening(&addr), file, kept;
	uint16_t port = ntohs(addr.sin_port);
	struct destination *d = open_destination(port);
	struct push_stats stats;

	(void)state;
	file = begin_lines(&kept);
	for (unsigned i = 1; i <= 40; i++) {
		put_in_queue(d, port, i);
		answer_one(d, server, i, some, some);
	}
	/* at 3, 12 and 102 of them */
	assert_int_equal(count_lines(file, kept, "3 profiles were rejected: old ("), 3);
	destination__stats(d, &stats);
	assert_int_equal(stats.delivered, 40);
	assert_int_equal(stats.rejected, 120);
	destination__free(d);
	close(server);
}

static void check_is_bad(struct post *post, int file)
{
	struct sender_answer answer;

	assert_non_null(post);
	assert_true(file >= 0);
	post__file(post, file, &answer);
	assert_int_equal(answer.outcome, SENDER_BAD_FILE);
	close(file);
}

/*
 * A file that can never be read, or that is no valid request after a disk failure, does not hold up
 * the others.
 */
static void test_unreadable(void **state)
{
	static const char *const texts[] = {"",		 "body",       "a b\nbody",
					    "a\r\nbody", "\x7f\nbody", "n\xc3\xa4me\nbody"};
	/* its reported size is a page, but fewer bytes can be read */
	int file = open("/sys/devices/system/cpu/online", O_RDONLY | O_CLOEXEC);
	const struct push_headers headers = {.n = 0};
	struct sockaddr_in addr;
	int server = listening(&addr);
	char url[64];
	struct post *post = post__new(&(struct sender_opts){
		.url = url, .content_type = "a/b", .headers = &headers, .timeout_ms = 10000});

	(void)state;
	snprintf(url, sizeof(url), "http://127.0.0.1:%u/", ntohs(addr.sin_port));
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		put_text(in_dir("file"), texts[i], strlen(texts[i]));
		check_is_bad(post, open(in_dir("file"), O_RDONLY | O_CLOEXEC));
	}
	if (file < 0)
		skip();
	check_is_bad(post, file);
	close(server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_backoff),
		cmocka_unit_test(test_urls),
		WITH_DIR(test_headers),
		WITH_DIR(test_bad_headers),
		cmocka_unit_test(test_hostile_answers),
		WITH_DIR(test_always_500),
		WITH_DIR(test_no_descriptors),
		WITH_DIR(test_one_never_arrives),
		WITH_DIR(test_cut_off_answers),
		WITH_DIR(test_unreadable),
		WITH_DIR(test_full_for_long),
		WITH_DIR(test_rejected_for_long),
		WITH_DIR(test_no_queue_for_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
