/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_log_aside: logs and reports read by a process without rights. The result must be the same as
 * when read in this process, and forged results are refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/base.h"
#include "confine/confine.h"
#include "eventlog/lane_priv.h"
#include "eventlog/pack_priv.h"
#include "message_kit.h"
#include "eventlog_writer.h"
#include "export/export.h"
#include "intake/tap.h"
#include "join/join.h"
#include "logs/logs_priv.h"
#include "timeline/timeline.h"

#define MS   UINT64_C(1000000)
#define WALL UINT64_C(1700000000)

/* ── a log with something for every model ────────────────────────────────────────────────── */

static void write_process(struct writer *w)
{
	w_event(w, EL_WALL_CLOCK_TIME, 1, "wlw", 1, WALL, 0);
	w_event(w, EL_OSPROCESS_PID, 2, "ww", 0, 4711);
	w_event(w, EL_RTS_IDENTIFIER, 3, "wt", 0, "GHC-9.10.1 rts_thr_p");
	w_event(w, EL_PROGRAM_ARGS, 4, "wst", 0, "program", "-x");
	w_event(w, EL_PROF_BEGIN, 5, "l", MS);
	w_event(w, EL_HEAP_PROF_COST_CENTRE, 6, "wsssb", 4, "main", "Main", "Main.hs:1:1", 0);
	w_event(w, EL_HEAP_PROF_COST_CENTRE, 6, "wsssb", 3, "fib", "Main", "Main.hs:2:1", 0);
	w_event(w, EL_HEAP_PROF_COST_CENTRE, 6, "wsssb", 7, "MAIN", "MAIN", "<built-in>", 0);
}

static void write_work(struct writer *w, unsigned i, uint64_t at)
{
	unsigned tid = 1 + i % 7;

	w_event(w, EL_CREATE_THREAD, at, "w", tid);
	w_event(w, EL_THREAD_LABEL, at, "wt", tid, i % 2 ? "worker" : "größer");
	w_event(w, EL_RUN_THREAD, at + 10, "w", tid);
	w_event(w, EL_USER_MSG, at + 20, "t", "START 1 query");
	w_event(w, EL_USER_MSG, at + 25, "t", "ANN_CALL_TO 4096 8192 99");
	w_event(w, EL_USER_MSG, at + 30, "t", "ANN_CCS 1 query [\"Main.main (a)\",\"Main.q (b)\"]");
	w_event(w, EL_USER_MSG, at + 40, "t", "STOP 1 query");
	w_event(w, EL_USER_MSG, at + 45, "t", "ANN_CALL_RET 4096 8192 99");
	w_event(w, EL_USER_MARKER, at + 50, "t", i % 3 ? "tick" : "tock");
	w_event(w, EL_STOP_THREAD, at + 60, "whw", tid, EL_STOP_FOREIGN_CALL, 0);
	w_event(w, EL_RUN_THREAD, at + 90, "w", tid);
	w_event(w, EL_PROF_SAMPLE_COST_CENTRE, at + 95, "wlbww", i % 2, 1ul, 2, 3, 4);
	w_event(w, EL_STOP_THREAD, at + 100, "whw", tid, EL_STOP_FINISHED, 0);
	w_event(w, EL_GC_START, at + 110, "");
	w_event(w, EL_GC_STATS_GHC, at + 115, "whlllwlll", 0, 1, 0ul, 0ul, 0ul, 1, 0ul, 0ul, 0ul);
	w_event(w, EL_GC_END, at + 120, "");
	w_event(w, EL_HEAP_SIZE, at + 130, "wl", 0, (uint64_t)i << 20);
	w_event(w, EL_HEAP_LIVE, at + 131, "wl", 0, (uint64_t)i << 19);
}

static void write_all(struct writer *w)
{
	w_header(w);
	w_block(w, 0, 1);
	write_process(w);
	for (unsigned i = 0; i < 200; i++)
		write_work(w, i, 1000 + i * MS);
	w_block_end(w, 1000 + 200 * MS);
	w_end(w);
}

static int log_file(void)
{
	struct writer w = {0};
	int fd;

	write_all(&w);
	fd = w_file(w.data, w.len);
	lseek(fd, 0, SEEK_SET);
	w_free(&w);
	return fd;
}

static int text_file(const char *text)
{
	int fd = w_file((const uint8_t *)text, strlen(text));

	lseek(fd, 0, SEEK_SET);
	return fd;
}

static const struct intake_log_join joined_how = {
	.session_ns = 1, .now_ns = 1000000 * MS, .now_wall_ns = (WALL + 10) * 1000 * MS};

static struct log_models *read_here(int fd)
{
	struct log_models *m;
	uint64_t lost;

	assert_int_equal(log_models__new_joined(&joined_how, &m), 0);
	assert_int_equal(log_models__read(m, fd, false, &lost), 0);
	assert_int_equal(lost, 0);
	return m;
}

/* ── the same comes of it ────────────────────────────────────────────────────────────────── */

/* Without the cost of reading, which varies. */
static char *report(const struct join_log *in)
{
	const struct timeline_opts opts = {.start_unix_ns = 1, .haskell_lanes = true};
	const struct export_opts all = {.verbose = true};
	struct join_log log = *in;
	struct timeline *tl;
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	log.path = "some.eventlog";
	assert_non_null(f);
	assert_int_equal(timeline__new(&opts, "0", "eventlog", &tl), 0);
	assert_int_equal(timeline__add_log_target(tl, &log), 0);
	assert_int_equal(timeline__finish(tl, 0), 0);
	assert_int_equal(export_json.write(f, timeline__picture(tl), &all), 0);
	timeline__free(tl);
	fclose(f);
	return text;
}

static char *report_of(const struct log_models *m)
{
	struct join_log log = {0};

	log_models__fill(m, &log);
	log.offset_ns = 0;
	return report(&log);
}

static void assert_same_match(const struct el_match *a, const struct el_match *b)
{
	struct el_match_info x = el_match__info(a), y = el_match__info(b);

	assert_memory_equal(&x, &y, sizeof(x));
	assert_true(x.n_calls == 200 && x.n_ticks == 200 && x.n_gcs == 200);
	assert_memory_equal(el_match__calls(a), el_match__calls(b),
			    x.n_calls * sizeof(struct el_match_call));
	for (size_t i = 0; i < x.n_ticks; i++) {
		const struct el_match_tick *t = &el_match__ticks(a)[i], *v = &el_match__ticks(b)[i];

		assert_true(t->time == v->time && t->centre == v->centre && t->cap == v->cap);
	}
	assert_memory_equal(el_match__gcs(a), el_match__gcs(b), x.n_gcs * sizeof(uint64_t));
}

static void test_joined(void **state)
{
	int fd = log_file();
	struct log_models *here = read_here(fd), *aside;
	char *a, *b;
	uint64_t lost = 1;

	(void)state;
	assert_int_equal(log_models__read_aside(&joined_how, fd, false, 0, &aside, &lost), 0);
	assert_int_equal(lost, 0);
	assert_true(log_models__has_clock(aside));
	assert_null(log_models__reader(aside));
	assert_int_equal(aside->guess_ns, here->guess_ns);
	assert_int_equal(aside->window.from, here->window.from);
	assert_same_match(here->match, aside->match);
	assert_int_equal(log_models__stats(aside)->events, log_models__stats(here)->events);
	a = report_of(here);
	b = report_of(aside);
	assert_non_null(strstr(a, "\"query\""));
	assert_string_equal(a, b);
	free(a);
	free(b);
	/* a cost centre is found by its number and by its names, as in the original tree */
	for (int i = 0; i < 2; i++) {
		struct cctree *t = el_profile__tree(i ? aside->profile : here->profile);
		uint32_t at, by_name = cctree__find_cc(t, "fib", "Main", NULL);

		assert_int_equal(cctree__cc_by_id(t, 3, &at), 0);
		assert_int_equal(at, by_name);
		assert_int_equal(cctree__cc_by_id(t, 7, &at), 0);
		assert_int_equal(at, cctree__node(t, CC_ROOT)->cc);
	}
	assert_non_null(el_sched__find_thread(aside->sched, 7));
	assert_string_equal(el_sched__find_thread(aside->sched, 2)->label, "worker");
	assert_null(el_sched__find_thread(aside->sched, 8));
	log_models__free(here);
	log_models__free(aside);
	close(fd);
}

static bool never(void *ctx)
{
	(void)ctx;
	return false;
}

static void test_alone(void **state)
{
	const struct log_alone how = {.part = {.from_marker = "tock", .to_ns = 150 * MS},
				      .stop = never};
	int fd = log_file();
	struct log_alone_read read;
	struct log_models *here;
	char *a, *b;

	(void)state;
	assert_int_equal(log_models__new(&how.part, &here), 0);
	assert_int_equal(eventlog__open_fd(log_models__reader(here), fd), 0);
	assert_int_equal(eventlog__finish(log_models__reader(here)), 0);
	assert_int_equal(log_models__finish(here), 0);
	assert_int_equal(log_alone__read(&how, fd, &read), 0);
	assert_int_equal(read.kind, LOG_ALONE_LOG);
	assert_false(read.stopped || read.damaged || read.unreadable);
	assert_true(log_models__window(read.models)->opened);
	assert_string_equal(log_models__window(read.models)->from_marker, "tock");
	a = report_of(here);
	b = report_of(read.models);
	assert_string_equal(a, b);
	free(a);
	free(b);
	log_models__free(here);
	log_alone__free(&read);
	close(fd);
}

static const char json_report[] =
	"{\"program\":\"p\",\"total_ticks\":7,\"tick_interval\":1000,\"initial_capabilities\":2,"
	"\"cost_centres\":[{\"id\":1,\"label\":\"main\",\"module\":\"Main\",\"src_loc\":\"M.hs:1\","
	"\"is_caf\":false}],\"profile\":{\"id\":9,\"ticks\":3,\"children\":[{\"id\":1,\"ticks\":4,"
	"\"children\":[]}]}}";

static void test_report(void **state)
{
	const struct log_alone how = {.stop = never};
	struct log_alone_read read;
	int fd = text_file(json_report);

	(void)state;
	assert_int_equal(log_alone__read(&how, fd, &read), 0);
	assert_int_equal(read.kind, LOG_ALONE_REPORT);
	assert_string_equal(read.report_info->program, "p");
	assert_int_equal(read.report_info->total_ticks, 7);
	assert_int_equal(read.report_info->capabilities, 2);
	assert_int_equal(cctree__n_nodes(read.report), 2);
	assert_int_equal(cctree__node(read.report, 0)->ticks, 3);
	assert_int_equal(cctree__node(read.report, 1)->ticks, 4);
	assert_string_equal(cctree__cc(read.report, cctree__node(read.report, 1)->cc).label,
			    "main");
	log_alone__free(&read);
	close(fd);
}

static void test_what_it_is(void **state)
{
	static const struct {
		const char *text;
		enum log_alone_kind kind;
		bool unreadable;
	} files[] = {
		{"", LOG_ALONE_EMPTY, false},
		{"neither", LOG_ALONE_OTHER, false},
		{"hdrbnonsense that is long enough for a header", LOG_ALONE_LOG, true},
		{"{\"profile\":", LOG_ALONE_REPORT, true},
	};
	const struct log_alone how = {.stop = never};
	struct log_alone_read read;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		int fd = text_file(files[i].text);

		assert_int_equal(log_alone__read(&how, fd, &read), 0);
		assert_int_equal(read.kind, files[i].kind);
		assert_int_equal(read.unreadable, files[i].unreadable);
		assert_true(!read.models && !read.report);
		log_alone__free(&read);
		close(fd);
	}
}

/* ── a stream, and the reader's end ──────────────────────────────────────────────────────── */

struct asked {
	unsigned times, enough;
	int kill; /* signal to send to the reader then */
};

/* The only child. */
static pid_t reader(void)
{
	FILE *f = fopen("/proc/thread-self/children", "re");
	char text[32];
	pid_t pid;

	assert_non_null(f);
	assert_non_null(fgets(text, sizeof(text), f));
	pid = (pid_t)strtol(text, NULL, 10);
	assert_true(pid > 1);
	fclose(f);
	return pid;
}

static bool on_asked(void *ctx)
{
	struct asked *a = ctx;

	if (++a->times < a->enough)
		return false;
	if (a->kill)
		kill(reader(), a->kill);
	return !a->kill;
}

static void test_stream_is_stopped(void **state)
{
	struct asked asked = {.enough = 4};
	const struct log_alone how = {.stop = on_asked, .ctx = &asked};
	struct log_alone_read read;
	struct writer w = {0};
	int fds[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	w_header(&w);
	w_block(&w, 0, 1);
	write_process(&w);
	w_block_end(&w, 10);
	assert_int_equal(write(fds[1], w.data, w.len), w.len);
	assert_int_equal(log_alone__read(&how, fds[0], &read), 0);
	assert_true(read.stopped);
	assert_int_equal(read.kind, LOG_ALONE_LOG);
	assert_int_equal(log_models__stats(read.models)->bytes_in, w.len);
	assert_int_equal(el_info__process(read.models->info).pid, 4711);
	log_alone__free(&read);
	close(fds[0]);
	close(fds[1]);
	w_free(&w);
}

static void test_reader_dies(void **state)
{
	static const int signals[] = {SIGKILL, SIGSEGV};
	struct log_alone_read read;
	int fds[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		struct asked asked = {.enough = 2, .kill = signals[i]};
		const struct log_alone how = {.stop = on_asked, .ctx = &asked};

		assert_int_equal(log_alone__read(&how, fds[0], &read), -EIO);
	}
	close(fds[0]);
	close(fds[1]);
}

/* A file is read completely or not at all. */
static void test_file_is_stopped(void **state)
{
	struct asked asked = {.enough = 1};
	const struct log_alone how = {.stop = on_asked, .ctx = &asked};
	struct log_alone_read read;
	int fd = log_file();

	(void)state;
	/* sparse, and long enough that the stop callback is called */
	assert_int_equal(ftruncate(fd, (off_t)1 << 33), 0);
	assert_int_equal(log_alone__read(&how, fd, &read), -ECANCELED);
	close(fd);
}

/* ── what a taken-over reader could hand over ────────────────────────────────────────────── */

/* A log's message, truncated anywhere or with changed bytes: it is refused or still valid. */
static void test_changed_messages(void **state)
{
	int fd = log_file();
	struct log_models *here = read_here(fd), *m;
	struct message msg = message_new();
	uint32_t random = 1;
	unsigned refused = 0;

	(void)state;
	log_models__pack(here, &msg.p);
	assert_true(!msg.p.full && msg.p.len);
	for (size_t len = 0; len < msg.p.len; len += 1 + len / 16) {
		struct unpack u = {.data = msg.p.data, .left = len};

		assert_int_equal(log_models__unpack(&u, NULL, &m), -EBADMSG);
	}
	for (unsigned i = 0; i < 400; i++) {
		struct unpack u = message_end(&msg);
		uint8_t *byte, was;
		int err;

		random = random * 1664525 + 1013904223;
		byte = &msg.p.data[random % msg.p.len];
		was = *byte;
		*byte ^= (uint8_t)(1 + (random >> 24) % 255);
		err = log_models__unpack(&u, NULL, &m);
		*byte = was;
		assert_true(err == 0 || err == -EBADMSG);
		refused += err != 0;
		if (!err) {
			free(report_of(m));
			log_models__free(m);
		}
	}
	assert_true(refused > 40);
	free(msg.p.data);
	log_models__free(here);
	close(fd);
}

/* Either a joined log's message or that of a log alone is expected; the other is refused. */
static void test_wrong_message(void **state)
{
	const struct log_part all = {0};
	int fd = log_file();
	struct log_models *here = read_here(fd), *m;
	struct message msg = message_new();
	struct unpack u;

	(void)state;
	log_models__pack(here, &msg.p);
	u = message_end(&msg);
	assert_int_equal(log_models__unpack(&u, &all, &m), -EBADMSG);
	u = message_end(&msg);
	assert_int_equal(log_models__unpack(&u, NULL, &m), 0);
	log_models__free(m);
	/* one byte too many */
	PACK(&msg.p, (uint8_t){0});
	u = message_end(&msg);
	assert_int_equal(log_models__unpack(&u, NULL, &m), -EBADMSG);
	free(msg.p.data);
	log_models__free(here);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_joined),
		cmocka_unit_test(test_alone),
		cmocka_unit_test(test_report),
		cmocka_unit_test(test_what_it_is),
		cmocka_unit_test(test_stream_is_stopped),
		cmocka_unit_test(test_reader_dies),
		cmocka_unit_test(test_file_is_stopped),
		cmocka_unit_test(test_changed_messages),
		cmocka_unit_test(test_wrong_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
