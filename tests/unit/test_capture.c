/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Captures: the round trip, and the effects of damage, truncation and hostile files. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/codec_priv.h"
#include "export/export.h"
#include "capture_kit.h"
#include "picture/lost.h"
#include "picture/make.h"

/* ── a session with everything in it ─────────────────────────────────────────────────────── */

static const struct timeline_opts opts = {
	.frequency_hz = 99, .start_ns = T0, .start_unix_ns = UINT64_C(1795270032155432149)};

static void put_thread(struct kit *kit, pid_t tid, unsigned rounds)
{
	union rec r;

	put(kit, mk_event(&r, WIRE_THREAD_NEW, tid, T0 + 10));
	for (unsigned i = 0; i < rounds; i++) {
		uint64_t at = T0 + 1000 + i * 100;

		put(kit, mk_sample(&r, tid, at, WIRE_WHERE_HASKELL, HS(i % 7), IP(HS(i % 7)),
				   RET(HS(3)), STOP));
		put(kit, mk_off(&r, tid, at + 20, at + 30, at + 40, WIRE_WHERE_NO_CAP,
				CIP(CFN(i % 3)), STOP));
	}
	put(kit, mk_call(&r, tid, T0 + 500, T0 + 900, SITE(2), RET(HS(4)), RET(UPD), STOP));
}

static void put_session(struct kit *kit, unsigned rounds)
{
	struct snap_thread snaps[2] = {kit_snap(11, WIRE_WHERE_SAFE_CALL, 'S'),
				       kit_snap(12, WIRE_WHERE_NO_CAP, 'S')};
	struct wire_site_key key = {.site = SITE(2), .tgid = PID};
	struct wire_site site = {
		.calls = 7, .wall_ns = 4000, .blocked_ns = 100, .min_ns = 100, .max_ns = 900};
	struct wire_thread final = {.tgid = PID, .short_calls = 3, .short_wall_ns = 30};
	struct wire_off_stack stack = {.stack = {.nframes = 1, .end = WIRE_END_COMPLETE},
				       .frames = {RET(HS(5))}};
	struct intake_cost cost = {.probe_hits = 5, .bpf_ns = 6, .bpf_ns_known = true};
	struct target_info info = {.pid = PID,
				   .comm = "prog",
				   .exe = "/bin/prog",
				   .way = "rts_thr",
				   .ghc_version = "9.0.2",
				   .build_id = "",
				   .capabilities = 3};
	union rec r;

	snaps[0].stack = (struct wire_stack){.nframes = 2, .end = WIRE_END_COMPLETE};
	snaps[0].frames[0] = RET(HS(1));
	snaps[0].frames[1] = RET(NO_SITE);
	snaps[0].site = SITE(1);
	put_snap(kit, snaps, 2, false);
	assert_int_equal(intake__update_target(kit->in, &info), 0);
	put_thread(kit, 20, rounds);
	put(kit, mk_gc(&r, 20, WIRE_GC_START, T0 + 600000));
	put(kit, mk_gc(&r, 20, WIRE_GC_END, T0 + 600500));
	put_thread(kit, 21, rounds);
	put(kit, mk_event(&r, WIRE_THREAD_EXIT, 21, T0 + 700000));
	assert_int_equal(intake__site_counters(kit->in, &key, &site, 0), 0);
	final.off_since_ns = T0 + 800000;
	final.has_stack = 1;
	assert_int_equal(intake__thread_state(kit->in, 20, &final), 0);
	assert_int_equal(intake__off_stack(kit->in, PID, 20, &stack), 0);
	put_snap(kit, snaps, 2, true);
	assert_int_equal(intake__set_cost(kit->in, PID, &cost), 0);
	assert_int_equal(intake__set_lost(kit->in, PID, "ring", 4), 0);
	assert_int_equal(intake__set_lost_share(kit->in, PID, 0.25), 0);
	assert_int_equal(intake__add_missing(kit->in, PID, "a thing"), 0);
	intake__set_exit_code(kit->in, 1);
}

/* Records the session while capturing it. *kit has the original. */
static void record(struct kit *kit, unsigned rounds, bool finish)
{
	struct capture *capture;

	kit_capture(kit, &opts, &capture);
	/* inputs name a target by its number; a forgotten target has used one up */
	kit_add(kit, PID, T0);
	assert_int_equal(intake__forget_target(kit->in, PID), 0);
	kit_add(kit, PID, T0);
	put_session(kit, rounds);
	if (finish) {
		assert_int_equal(timeline__finish(kit->tl, END), 0);
		assert_int_equal(capture__finish(capture), 0);
		assert_int_equal(access(partial, F_OK), -1);
	} else {
		capture__abort(capture, true);
		assert_int_equal(rename(partial, path), 0);
	}
}

static int replay(struct replay **ret_replay)
{
	return read_capture(NULL, ret_replay);
}

static void assert_same(const struct picture *a, const struct picture *b)
{
	static const char *const formats[] = {"speedscope", "folded", "json", "text",
					      "chrome",	    "pprof",  "html", "otlp"};
	const struct export_opts eopts = {.verbose = true};

	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		const struct export_format *f = export__find(formats[i], strlen(formats[i]));
		const struct picture *pics[2] = {a, b};
		char *text[2];
		size_t len[2];

		for (int k = 0; k < 2; k++) {
			FILE *out = open_memstream(&text[k], &len[k]);

			assert_non_null(out);
			assert_int_equal(f->write(out, pics[k], &eopts), 0);
			fclose(out);
		}
		assert_true(len[0] > 100);
		assert_int_equal(len[0], len[1]);
		assert_memory_equal(text[0], text[1], len[0]);
		free(text[0]);
		free(text[1]);
	}
}

/* ── tests ───────────────────────────────────────────────────────────────────────────────── */

static void test_the_same_again(void **state)
{
	struct replay *r;
	struct kit kit;
	struct stat st;

	(void)state;
	record(&kit, 300, true);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(replay(&r), 0);
	assert_true(replay__notes(r)->complete);
	assert_int_equal(replay__notes(r)->damaged_blocks, 0);
	assert_int_equal(replay__notes(r)->refused_inputs, 0);
	assert_int_equal(replay__notes(r)->unknown_inputs, 0);
	assert_same(kit.pic, replay__picture(r));
	replay__free(r);
	timeline__free(kit.tl);
}

static void test_unfinished(void **state)
{
	const struct pic_target *target;
	struct replay *r;
	struct kit kit;

	(void)state;
	record(&kit, 300, false);
	assert_int_equal(replay(&r), 0);
	assert_false(replay__notes(r)->complete);
	assert_int_equal(replay__notes(r)->damaged_blocks, 0);
	target = picture__target(replay__picture(r), 0);
	/* the session ends at the latest record's time */
	assert_int_equal(picture__session(replay__picture(r))->end_ns, T0 + 700000);
	assert_int_equal(picture__session(replay__picture(r))->exit_code, 1);
	assert_int_equal(target->quality.samples, 600);
	assert_string_equal(target->missing[1], "the capture was not finished: what came after "
						"0.001 s is not in it");
	for (size_t i = 0; i < target->lanes[LANE_THREAD].n; i++)
		check_lane(replay__picture(r), &target->lanes[LANE_THREAD].v[i]);
	replay__free(r);
	timeline__free(kit.tl);
}

/* Truncated anywhere: everything before that point is restored. */
static void test_truncated(void **state)
{
	uint64_t samples = 0;
	size_t size, header;
	struct kit kit;
	char *data;

	(void)state;
	record(&kit, 3000, true);
	data = load(&size);
	header = (size_t)((char *)memmem(data, size, "SCBK", 4) - data);
	for (size_t cut = size - 1; cut > header; cut -= MIN(cut - header, size / 40 + 1)) {
		struct replay *r;
		const struct pic_target *target;

		assert_int_equal(read_bytes(data, cut, NULL, &r), 0);
		assert_false(replay__notes(r)->complete);
		target = picture__target(replay__picture(r), 0);
		if (target)
			samples = MAX(samples, target->quality.samples);
		for (size_t i = 0; target && i < target->lanes[LANE_THREAD].n; i++)
			check_lane(replay__picture(r), &target->lanes[LANE_THREAD].v[i]);
		replay__free(r);
	}
	/* all but the last block */
	assert_in_range(samples, 3000, 6000);
	free(data);
	timeline__free(kit.tl);
}

static uint64_t cpu_of(const struct replay *r, uint64_t *ret_unknown)
{
	const struct pic_lanes *threads =
		&picture__target(replay__picture(r), 0)->lanes[LANE_THREAD];
	uint64_t ns = 0;

	*ret_unknown = 0;
	for (size_t i = 0; i < threads->n; i++) {
		ns += threads->v[i].cpu_ns;
		*ret_unknown += threads->v[i].states_ns[ST_UNKNOWN];
	}
	return ns;
}

/* A damaged block in the middle, in its bytes or its header, is left out; the rest is restored. */
static void test_damaged(void **state)
{
	static const size_t where[] = {4, 17, 60};
	struct kit kit;
	struct replay *r;
	uint64_t cpu_ns, unknown_ns, gap_ns;
	size_t size;
	char *data;

	(void)state;
	record(&kit, 3000, true);
	data = load(&size);
	assert_int_equal(read_bytes(data, size, NULL, &r), 0);
	cpu_ns = cpu_of(r, &unknown_ns);
	replay__free(r);
	for (size_t i = 0; i < ARRAY_SIZE(where); i++) {
		size_t at = find_block(data, size, 1) + where[i];

		data[at] ^= 1;
		assert_int_equal(read_bytes(data, size, NULL, &r), 0);
		assert_true(replay__notes(r)->complete);
		assert_int_equal(replay__notes(r)->damaged_blocks, 1);
		assert_int_equal(picture__session(replay__picture(r))->exit_code, 1);
		assert_string_equal(picture__target(replay__picture(r), 0)->missing[1],
				    "the capture is damaged: 1 of its blocks are left out");
		assert_false(pic_target__lost_known(picture__target(replay__picture(r), 0)));
		/* nobody ran for the time of the lost records */
		assert_true(cpu_of(r, &gap_ns) < cpu_ns);
		assert_true(gap_ns > unknown_ns);
		replay__free(r);
		data[at] ^= 1;
	}
	free(data);
	timeline__free(kit.tl);
}

static void test_no_capture(void **state)
{
	struct replay *r;
	struct kit kit;
	size_t size;
	char *data, *sizes;

	(void)state;
	assert_int_equal(read_bytes("safescoped capture 2\n{}\n", 24, NULL, &r), -EBADMSG);
	assert_int_equal(read_bytes("", 0, NULL, &r), -EBADMSG);
	record(&kit, 1, true);
	data = load(&size);
	/* any bit of the header */
	data[40] ^= 4;
	assert_int_equal(read_bytes(data, size, NULL, &r), -EBADMSG);
	free(data);
	timeline__free(kit.tl);
	/* recorded when a sample had another size */
	data = capture_header__make(&opts, "9.9", "pid");
	assert_non_null(data);
	sizes = strstr(data, "\"sample\":");
	assert_non_null(sizes);
	sizes[9] ^= 1;
	{
		struct header header;

		assert_int_equal(capture_header__parse(data, &header), -ENOTSUP);
		assert_string_equal(header.version, "9.9");
		sizes[9] ^= 1;
		assert_int_equal(capture_header__parse(data, &header), 0);
		assert_int_equal(header.opts.start_unix_ns, opts.start_unix_ns);
		assert_int_equal(header.kinds[TI_RECORD], TI_RECORD);
		assert_int_equal(capture_header__parse("[1", &header), -EBADMSG);
	}
	free(data);
}

static void test_one_at_a_time(void **state)
{
	struct capture *a, *b;

	(void)state;
	unlink(path);
	assert_int_equal(capture__create(path, (uid_t)-1, (gid_t)-1, &opts, "1", "pid", &a), 0);
	assert_int_equal(capture__create(path, (uid_t)-1, (gid_t)-1, &opts, "1", "pid", &b),
			 -EEXIST);
	capture__abort(a, false);
	assert_int_equal(access(partial, F_OK), -1);
	assert_int_equal(capture__create(folder, (uid_t)-1, (gid_t)-1, &opts, "1", "pid", &b),
			 -EINVAL);
	assert_int_equal(
		capture__create("/nonexistent/x", (uid_t)-1, (gid_t)-1, &opts, "1", "pid", &b),
		-ENOENT);
}

/* Disk full: the session goes on, and what is in the file can be replayed. */
static void test_disk_full(void **state)
{
	struct rlimit old, small = {.rlim_cur = 40000};
	struct capture *capture;
	struct replay *r;
	struct kit kit = {.tl = NULL};

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	small.rlim_max = old.rlim_max;
	kit_new_timeline(&kit, &opts);
	assert_int_equal(
		capture__create(path, (uid_t)-1, (gid_t)-1, &opts, "0.1.0", "pid", &capture), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	intake__set_tap(kit.in, capture__take, capture);
	kit_add(&kit, PID, T0);
	put_session(&kit, 4000);
	assert_int_equal(timeline__finish(kit.tl, END), 0);
	assert_int_equal(capture__finish(capture), -EFBIG);
	setrlimit(RLIMIT_FSIZE, &old);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(rename(partial, path), 0);
	assert_int_equal(replay(&r), 0);
	assert_false(replay__notes(r)->complete);
	assert_true(picture__target(replay__picture(r), 0)->quality.samples > 1000);
	replay__free(r);
	timeline__free(kit.tl);
}

/* Strings, numbers and structs are restored exactly; a truncated input is rejected. */
static void test_codec(void **state)
{
	const struct code_name name = {
		.name = "n", .module = "", .source = NAME_EXACT, .code = CODE_C};
	const struct intake_input in = {
		.kind = TI_NAME, .target = 3, .a = UINT64_MAX, .name = &name};
	struct decoded d = {.data = NULL};
	struct strtab *strings;
	struct intake_input out;
	struct codec c;
	struct buf buf = {.max = 4096};
	unsigned kind;

	(void)state;
	assert_int_equal(strtab__new(&strings), 0);
	assert_int_equal(code__put(&buf, &in), 0);
	c = (struct codec){.in = (const uint8_t *)buf.data,
			   .left = buf.len,
			   .strings = strings,
			   .string_room = 100};
	assert_int_equal(code__get(&c, &d, &kind, &out), 0);
	assert_int_equal(kind, TI_NAME);
	assert_int_equal(out.kind, TI_NAME);
	assert_int_equal(out.target, 3);
	assert_true(out.a == UINT64_MAX);
	assert_string_equal(out.name->name, "n");
	assert_string_equal(out.name->module, "");
	assert_null(out.name->package);
	assert_int_equal(out.name->code, CODE_C);
	assert_int_equal(code__get(&c, &d, &kind, &out), -ENODATA);
	assert_int_equal(c.n_left_out, 0);
	/* a string for which there is no room */
	c = (struct codec){.in = (const uint8_t *)buf.data, .left = buf.len, .strings = strings};
	assert_int_equal(code__get(&c, &d, &kind, &out), 0);
	assert_string_equal(out.name->name, "");
	assert_int_equal(c.n_left_out, 1);
	c.string_room = 100;
	for (size_t cut = 1; cut < buf.len; cut++) {
		c.in = (const uint8_t *)buf.data;
		c.left = cut;
		assert_int_equal(code__get(&c, &d, &kind, &out), -EBADMSG);
	}
	/* an enum value that does not exist */
	buf.data[buf.len - 1] = 99;
	c.in = (const uint8_t *)buf.data;
	c.left = buf.len;
	assert_int_equal(code__get(&c, &d, &kind, &out), 0);
	assert_int_equal(out.kind, TI_NONE);
	buf__free(&buf);
	decoded__free(&d);
	strtab__free(strings);
}

/* ── collections that were missed ────────────────────────────────────────────────────────── */

struct missed {
	uint64_t count, missed;
	unsigned unknown; /* windows that have collections, but do not know how many were missed */
};

static void add_missed(void *ctx, const struct picture *pic)
{
	struct missed *sum = ctx;

	for (size_t i = 0; i < picture__n_targets(pic); i++) {
		const struct pic_target *t = picture__target(pic, i);
		uint64_t missed = pic_target__gcs_missed(t);

		sum->count += t->gc.count;
		if (missed != PIC_GCS_UNKNOWN)
			sum->missed += missed;
		else
			sum->unknown += t->gc.known;
	}
}

static struct missed missed_of(uint64_t window_ns)
{
	struct missed sum = {0};

	replay_windows(window_ns, false, add_missed, &sum);
	return sum;
}

/* 40 collections: 30 are seen, 20 of them before the numbering is known. */
static void record_gcs(bool calls_missed)
{
	const struct intake_cost cost = {.calls_missed = calls_missed};
	struct capture *capture;
	struct kit kit;
	union rec r;

	kit_capture(&kit, &opts, &capture);
	kit_add(&kit, PID, T0);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	for (unsigned i = 0; i < 30; i++) {
		uint64_t at = T0 + (i + 1) * (END - T0) / 32;

		put(&kit, mk_gc(&r, 7, WIRE_GC_START, at));
		mk_gc(&r, 7, WIRE_GC_END, at + 1000);
		r.gc.number = i < 20 ? WIRE_GC_NO_NUMBER : i + 10;
		put(&kit, &r);
	}
	put_snap(&kit, NULL, 0, true);
	assert_int_equal(intake__set_cost(kit.in, PID, &cost), 0);
	assert_int_equal(timeline__finish(kit.tl, END), 0);
	assert_int_equal(capture__finish(capture), 0);
	timeline__free(kit.tl);
}

/* Only the capture's end shows whether the process began during the session, but each window must
 * know it. */
static void test_missed_in_windows(void **state)
{
	struct missed one, many;

	(void)state;
	for (int began = 0; began < 2; began++) {
		record_gcs(began);
		one = missed_of(0);
		assert_int_equal(one.count, 30);
		assert_int_equal(one.missed, began ? 10 : 0);
		assert_int_equal(one.unknown, 0);
		for (uint64_t n = 2; n < 50; n++) {
			many = missed_of((END - T0) / n);
			assert_int_equal(many.count, one.count);
			assert_int_equal(many.missed, one.missed);
			/* the first window with collections, none of which has a number */
			assert_int_equal(many.unknown, began);
		}
	}
}

/* Captures from versions whose costs have fewer fields: each lacks what these are for. */
static void test_older_costs(void **state)
{
	static const uint32_t sizes[] = {offsetof(struct intake_cost, held_up_until_ns),
					 offsetof(struct intake_cost, own_bpf_ns),
					 sizeof(struct intake_cost)};
	const struct intake_cost cost = {.probe_hits = 3,
					 .bpf_ns = 70,
					 .bpf_ns_known = true,
					 .own_bpf_ns = 50,
					 .own_bpf_ns_known = true,
					 .held_up_until_ns = T0 + 1};
	struct intake_input input = {.kind = TI_COST, .data = &cost};
	struct capture *capture;
	struct replay *again;
	struct kit kit;

	(void)state;
	kit_capture(&kit, &opts, &capture);
	for (pid_t i = 0; i < (pid_t)ARRAY_SIZE(sizes); i++)
		kit_add(&kit, PID + i, T0);
	for (pid_t i = 0; i < (pid_t)ARRAY_SIZE(sizes); i++) {
		input.pid = PID + i;
		input.size = sizes[i];
		capture__take(capture, &input);
	}
	assert_int_equal(timeline__finish(kit.tl, END), 0);
	assert_int_equal(capture__finish(capture), 0);
	assert_int_equal(replay(&again), 0);
	assert_int_equal(picture__session(replay__picture(again))->bpf_ns, 70);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		const struct pic_target *t = picture__target(replay__picture(again), i);

		assert_int_equal(t->probe_hits, 3);
		assert_int_equal(t->held_up_until_ns, i > 0 ? T0 + 1 : 0);
		assert_int_equal(t->bpf_ns_known, i > 1);
		assert_true(!t->bpf_ns_known || t->bpf_ns == 50);
	}
	replay__free(again);
	timeline__free(kit.tl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_same_again),	  cmocka_unit_test(test_unfinished),
		cmocka_unit_test(test_truncated),	  cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_no_capture),	  cmocka_unit_test(test_one_at_a_time),
		cmocka_unit_test(test_disk_full),	  cmocka_unit_test(test_codec),
		cmocka_unit_test(test_missed_in_windows), cmocka_unit_test(test_older_costs),
	};

	log__set_level(LOG_LVL_QUIET);
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
