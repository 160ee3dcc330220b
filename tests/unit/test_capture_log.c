/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Eventlogs in captures: a session's log is restored, or the report has a note that it is not. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/codec_priv.h"
#include "logs/logs.h"
#include "eventlog_writer.h"
#include "export/export.h"
#include "capture_folder.h"
#include "test_timeline_kit.h"

#define WALL   UINT64_C(1795270032000000000) /* wall clock when CLOCK_MONOTONIC was 0 */
#define OFFSET 500000			     /* CLOCK_MONOTONIC - the log's time */
#define MARKS  100000			     /* enough for several pieces of the log */

static const struct timeline_opts opts = {
	.frequency_hz = 99, .start_ns = T0, .start_unix_ns = WALL + T0, .haskell_lanes = true};
static const struct intake_log_join how = {
	.session_ns = T0, .observed_ns = T0 + 1, .now_ns = END, .now_wall_ns = WALL + END};

/* ── a session with a log ────────────────────────────────────────────────────────────────── */

/* The thread runs from T0 + 100000 on, makes a safe call, and emits `marks` markers. */
static int make_log(unsigned marks)
{
	struct writer w = {0};
	uint64_t t = T0 + 100000 - OFFSET, text = 1;
	char said[40];
	int fd;

	w_header(&w);
	w_block(&w, 0xffff, 1);
	w_event(&w, EL_WALL_CLOCK_TIME, 100, "wlw", 1, (WALL + OFFSET) / 1000000000,
		(uint32_t)((WALL + OFFSET) % 1000000000 + 100));
	w_block_end(&w, END - OFFSET);
	w_block(&w, 0, 2);
	w_event(&w, EL_CREATE_THREAD, 200, "w", 1);
	w_event(&w, EL_THREAD_LABEL, 201, "wt", 1, "the thread");
	w_event(&w, EL_RUN_THREAD, t, "w", 1);
	for (unsigned i = 0; i < marks; i++) {
		/* random, so that it hardly compresses */
		text = text * UINT64_C(6364136223846793005) + 1442695040888963407;
		snprintf(said, sizeof(said), "%016llx", (unsigned long long)text);
		w_event(&w, EL_USER_MARKER, t + i, "t", said);
		if (i % 1000 == 999) {
			w_block_end(&w, t + i);
			w_block(&w, 0, t + i);
		}
	}
	w_event(&w, EL_STOP_THREAD, t + 200000, "whw", 1, EL_STOP_FOREIGN_CALL, 0);
	w_event(&w, EL_RUN_THREAD, t + 300000, "w", 1);
	w_event(&w, EL_STOP_THREAD, t + 400000, "whw", 1, EL_STOP_FINISHED, 0);
	w_block_end(&w, END - OFFSET);
	w_end(&w);
	fd = w_file(w.data, w.len);
	w_free(&w);
	return fd;
}

struct session {
	struct kit kit;
	struct joined_logs logs;
	struct capture *capture;
	int fd;
	uint64_t size; /* of the log */
};

static void session__begin(struct session *s, unsigned marks)
{
	struct stat st;

	unlink(path);
	memset(s, 0, sizeof(*s));
	kit_new_timeline(&s->kit, &opts);
	assert_int_equal(
		capture__create(path, (uid_t)-1, (gid_t)-1, &opts, "0.1.0", "pid", &s->capture), 0);
	intake__set_tap(s->kit.in, capture__take, s->capture);
	kit_add(&s->kit, PID, T0);
	s->fd = make_log(marks);
	assert_int_equal(fstat(s->fd, &st), 0);
	s->size = (uint64_t)st.st_size;
	assert_int_equal(joined_logs__join(&s->logs, s->kit.tl, PID, "/l.eventlog", s->fd, &how),
			 0);
}

static void session__finish(struct session *s)
{
	assert_int_equal(timeline__finish(s->kit.tl, END), 0);
	assert_int_equal(capture__finish(s->capture), 0);
	close(s->fd);
}

static void session__free(struct session *s)
{
	timeline__free(s->kit.tl);
	joined_logs__free(&s->logs);
}

/* ── its replay ──────────────────────────────────────────────────────────────────────────── */

struct again {
	struct joined_logs logs;
	struct replay_hooks hooks;
	struct replay *replay;
	const struct pic_target *target;
};

static void replay(struct again *a)
{
	FILE *in = fopen(path, "r");

	assert_non_null(in);
	memset(a, 0, sizeof(*a));
	a->hooks = (struct replay_hooks){.ctx = &a->logs, .join = joined_logs__join};
	assert_int_equal(replay__read(in, "c", &a->hooks, &a->replay), 0);
	fclose(in);
	a->target = picture__target(replay__picture(a->replay), 0);
	assert_non_null(a->target);
}

static void again_free(struct again *a)
{
	replay__free(a->replay);
	joined_logs__free(&a->logs);
}

static bool is_missing(const struct again *a, const char *text)
{
	for (size_t i = 0; i < a->target->n_missing; i++)
		if (!strcmp(a->target->missing[i], text))
			return true;
	return false;
}

static char *render(const struct picture *pic, const char *format)
{
	const struct export_opts eopts = {.verbose = true};
	const struct export_format *f = export__find(format, strlen(format));
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	assert_int_equal(f->write(out, pic, &eopts), 0);
	fclose(out);
	return text;
}

static void assert_same(const struct picture *a, const struct picture *b)
{
	static const char *const formats[] = {"json", "chrome", "speedscope", "folded", "text"};

	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		char *texts[2] = {render(a, formats[i]), render(b, formats[i])};

		assert_int_equal(strcmp(texts[0], texts[1]), 0);
		free(texts[0]);
		free(texts[1]);
	}
}

/* ── tests ───────────────────────────────────────────────────────────────────────────────── */

static void check_joined(const struct pic_target *t, unsigned marks)
{
	assert_true(t->eventlog.known);
	assert_true(t->eventlog.events > marks);
	assert_int_equal(t->eventlog.offset_ns, OFFSET);
	assert_int_equal(t->eventlog.damaged_bytes, 0);
	assert_int_equal(t->n_marks, marks);
	assert_int_equal(t->marks[0].ns, T0 + 100000);
	assert_int_equal(t->lanes[LANE_HASKELL].n, 1);
	assert_string_equal(t->lanes[LANE_HASKELL].v[0].name, "the thread");
}

static void test_the_same_again(void **state)
{
	static const unsigned sizes[] = {3, MARKS};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct session s;
		struct again a;

		session__begin(&s, sizes[i]);
		capture__take_log(s.capture, PID, "/l.eventlog", s.fd, s.size, &how);
		session__finish(&s);
		check_joined(picture__target(s.kit.pic, 0), sizes[i]);
		replay(&a);
		assert_true(replay__notes(a.replay)->complete);
		assert_int_equal(replay__notes(a.replay)->refused_inputs, 0);
		check_joined(a.target, sizes[i]);
		assert_same(s.kit.pic, replay__picture(a.replay));
		again_free(&a);
		session__free(&s);
	}
}

/* If the bytes cannot be kept, the session goes on, and the capture has a note that they are
 * missing. */
static void test_not_kept(void **state)
{
	static const uint64_t sizes[] = {CAPTURE_MAX_LOG + 1, 1 << 20};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct session s;
		struct again a;

		session__begin(&s, 3);
		assert_true(s.size < sizes[i]);
		capture__take_log(s.capture, PID, "/l.eventlog", s.fd, sizes[i], &how);
		session__finish(&s);
		assert_true(picture__target(s.kit.pic, 0)->eventlog.known);
		replay(&a);
		assert_int_equal(a.target->n_missing, 1);
		assert_true(replay__notes(a.replay)->complete);
		assert_false(a.target->eventlog.known);
		assert_true(is_missing(&a, "the eventlog: it is not in the capture"));
		again_free(&a);
		session__free(&s);
	}
}

/* All logs of a capture share a size limit. */
static void test_limit_of_all(void **state)
{
	struct session s;
	struct again a;
	int big = memfd_create("big", MFD_CLOEXEC);

	(void)state;
	assert_true(big >= 0);
	assert_int_equal(ftruncate(big, (off_t)CAPTURE_MAX_LOG), 0);
	session__begin(&s, 3);
	capture__take_log(s.capture, PID + 1, "/big", big, CAPTURE_MAX_LOG - s.size + 1, &how);
	capture__take_log(s.capture, PID, "/l.eventlog", s.fd, s.size, &how);
	session__finish(&s);
	close(big);
	replay(&a);
	assert_true(is_missing(&a, "the eventlog: it is not in the capture"));
	again_free(&a);
	session__free(&s);
}

/* One of the log's pieces is damaged: an incomplete log is not joined. */
static void test_damaged(void **state)
{
	struct session s;
	struct again a;
	struct stat st;
	uint8_t byte;
	int fd;

	(void)state;
	session__begin(&s, MARKS);
	capture__take_log(s.capture, PID, "/l.eventlog", s.fd, s.size, &how);
	session__finish(&s);
	fd = open(path, O_RDWR);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(pread(fd, &byte, 1, st.st_size / 2), 1);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, st.st_size / 2), 1);
	close(fd);
	replay(&a);
	assert_int_equal(replay__notes(a.replay)->damaged_blocks, 1);
	assert_false(a.target->eventlog.known);
	assert_true(is_missing(&a, "the eventlog: the capture does not have all of it"));
	again_free(&a);
	session__free(&s);
}

/* Pieces without an end, followed by a whole log, do not mix with it. An invalid time is
 * refused. */
static void test_wrong(void **state)
{
	static const char left_out[] =
		"2 of the capture's records contradict others, and are left out";
	const struct intake_input piece = {
		.kind = TI_LOG_BYTES, .pid = PID, .data = "hdrb", .size = 4};
	struct intake_log_join wrong = how;
	struct intake_input log = {.kind = TI_LOG,
				   .pid = PID,
				   .text = "/l.eventlog",
				   .data = &wrong,
				   .size = sizeof(wrong),
				   .a = 4};
	struct session s;
	struct again a;

	(void)state;
	session__begin(&s, 3);
	capture__take(s.capture, &piece);
	capture__take_log(s.capture, PID, "/l.eventlog", s.fd, s.size, &how);
	capture__take(s.capture, &piece);
	wrong.now_ns = UINT64_MAX;
	capture__take(s.capture, &log);
	wrong.now_ns = END;
	log.pid++;
	capture__take(s.capture, &log);
	intake__set_exit_code(s.kit.in, 1);
	session__finish(&s);
	replay(&a);
	check_joined(a.target, 3);
	assert_int_equal(replay__notes(a.replay)->refused_inputs, 2);
	assert_true(is_missing(&a, left_out));
	/* as in the session, apart from that note */
	assert_int_equal(intake__add_missing_once(s.kit.in, PID, left_out), 0);
	assert_same(s.kit.pic, replay__picture(a.replay));
	again_free(&a);
	session__free(&s);
}

/* A capture from a version without the process's start and the system's suspended time. */
static void test_older(void **state)
{
	struct intake_input piece = {.kind = TI_LOG_BYTES, .pid = PID};
	struct intake_input log = {.kind = TI_LOG,
				   .pid = PID,
				   .text = "/l.eventlog",
				   .data = &how,
				   .size = offsetof(struct intake_log_join, start_ns)};
	uint8_t bytes[16384];
	struct session s;
	struct again a;

	(void)state;
	session__begin(&s, 3);
	assert_in_range(s.size, 1, sizeof(bytes));
	assert_int_equal(pread(s.fd, bytes, s.size, 0), s.size);
	piece.data = bytes;
	piece.size = (uint32_t)s.size;
	log.a = s.size;
	capture__take(s.capture, &piece);
	capture__take(s.capture, &log);
	session__finish(&s);
	replay(&a);
	check_joined(a.target, 3);
	assert_int_equal(replay__notes(a.replay)->refused_inputs, 0);
	assert_same(s.kit.pic, replay__picture(a.replay));
	again_free(&a);
	session__free(&s);
}

/* Both kinds of input through the codec. */
static void test_codec(void **state)
{
	const struct intake_input in[2] = {{.kind = TI_LOG_BYTES,
					    .pid = PID,
					    .data = "\0bytes",
					    .size = 6,
					    .a = UINT64_C(1) << 40},
					   {.kind = TI_LOG,
					    .pid = PID,
					    .text = "/l.eventlog",
					    .data = &how,
					    .size = sizeof(how),
					    .a = 6}};
	struct decoded d = {.data = NULL};
	struct buf buf = {.max = 4096};
	struct strtab *strings;
	struct intake_input out;
	struct codec c;
	unsigned kind;

	(void)state;
	assert_int_equal(strtab__new(&strings), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(code__put(&buf, &in[i]), 0);
	c = (struct codec){.in = (const uint8_t *)buf.data,
			   .left = buf.len,
			   .strings = strings,
			   .string_room = 100};
	for (int i = 0; i < 2; i++) {
		assert_int_equal(code__get(&c, &d, &kind, &out), 0);
		assert_int_equal(out.kind, in[i].kind);
		assert_int_equal(out.pid, PID);
		assert_true(out.a == in[i].a);
		assert_int_equal(out.size, in[i].size);
		assert_memory_equal(out.data, in[i].data, out.size);
		if (in[i].text)
			assert_string_equal(out.text, in[i].text);
	}
	assert_int_equal(code__get(&c, &d, &kind, &out), -ENODATA);
	buf__free(&buf);
	decoded__free(&d);
	strtab__free(strings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_same_again), cmocka_unit_test(test_not_kept),
		cmocka_unit_test(test_limit_of_all),   cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_older),	       cmocka_unit_test(test_wrong),
		cmocka_unit_test(test_codec),
	};

	log__set_level(LOG_LVL_QUIET);
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
