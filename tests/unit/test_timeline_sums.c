/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The timeline's stacks and sums: calls, functions, quality, limits. */
#include "test_timeline_kit.h"

/* The lane of a thread that exists just long enough for one sample. */
static const struct pic_lane *one(struct kit *kit, const union rec *sample)
{
	union rec r;

	put(kit, mk_event(&r, WIRE_THREAD_NEW, 7, END - 1000));
	put(kit, sample);
	finish(kit);
	return lane_of(picture__target(kit->pic, 0), 7);
}

static void check_stack(struct kit *kit, const union rec *sample, const char *expect)
{
	const struct pic_lane *lane = one(kit, sample);

	assert_int_equal(lane->n_slices, 1);
	assert_string_equal(stack_text(kit->pic, lane->slices[0].stack), expect);
	timeline__free(kit->tl);
}

/* Code that interrupted Haskell code, or ran before it, was not called by it. */
static void test_no_unsafe_calls(void **state)
{
	static const struct {
		uint64_t ip, frames[4];
		enum thread_state state;
		const char *function; /* of the unsafe call; NULL: there is none */
	} cases[] = {
		/* the runtime's signal handler, on top of Haskell code */
		{CFN(2),
		 {CIP(CFN(2)), CRET(RTS(1)), CRET(SIGRET), CALLED(HS(1))},
		 ST_HASKELL,
		 NULL},
		/* another signal handler */
		{CFN(2),
		 {CIP(CFN(2)), CRET(CFN(1)), CRET(SIGRET), CALLED(HS(1))},
		 ST_UNSAFE_CALL_CPU,
		 "c1"},
		/* a function that Haskell code called was interrupted */
		{CFN(4),
		 {CIP(CFN(4)), CRET(SIGRET), CRET(CFN(3)), CALLED(HS(1))},
		 ST_UNSAFE_CALL_CPU,
		 "c3"},
		/* no Haskell code below, down to the start of the thread */
		{CFN(2), {CIP(CFN(2)), CRET(RTS(1)), CRET(CFN(5))}, ST_HASKELL, NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const uint64_t *f = cases[i].frames;
		const struct pic_target *t;
		struct kit kit;
		union rec r;

		kit_new(&kit);
		mk_sample(&r, 7, END - 500, WIRE_WHERE_HASKELL, cases[i].ip, f[0], f[1], f[2], f[3],
			  STOP);
		assert_int_equal(one(&kit, &r)->slices[0].state, cases[i].state);
		t = picture__target(kit.pic, 0);
		assert_int_equal(t->n_unsafe_calls, cases[i].function ? 1 : 0);
		if (cases[i].function)
			assert_string_equal(t->unsafe_calls[0].function, cases[i].function);
		timeline__free(kit.tl);
	}
}

static void test_stacks(void **state)
{
	const uint64_t now = END - 500;
	struct kit kit;
	union rec r;

	(void)state;
	/* The leaf's own return frame is the same function; recursion below it is not folded. */
	kit_new(&kit);
	mk_sample(&r, 7, now, WIRE_WHERE_HASKELL, HS(1) + 8, IP(HS(1) + 8), RET(HS(1) + 4),
		  RET(HS(1) + 4), RET(HS(2)), STOP);
	check_stack(&kit, &r, "Main.h2;Main.h1;Main.h1");

	/* A program counter that is not among the frames is put on top. */
	kit_new(&kit);
	mk_sample(&r, 7, now, WIRE_WHERE_HASKELL, HS(3), RET(HS(2)), STOP);
	check_stack(&kit, &r, "Main.h2;Main.h3");

	/* Folded frames, an updated thunk, elided chunks, the nearest symbol. */
	kit_new(&kit);
	mk_sample(&r, 7, now, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), RET(UPD),
		  FR(WIRE_FRAME_UPDATEE, HS(1)), RET(NEAR(4)), RET(UPD),
		  FR(WIRE_FRAME_UPDATEE, HS(5)), FR(WIRE_FRAME_ELIDED, 12), RET(HS(6)), STOP);
	check_stack(&kit, &r, "Main.h6;[12 chunks left out];Main.h5;~Main.h4;Main.h1");

	/* An unsafe call with its C frames. */
	kit_new(&kit);
	mk_sample(&r, 7, now, WIRE_WHERE_HASKELL, CFN(2), CIP(CFN(2)), CRET(CFN(1)), CALLED(HS(1)),
		  RET(HS(1)), RET(HS(2)), STOP);
	check_stack(&kit, &r, "Main.h2;Main.h1;c1;c2");

	/* A safe call: the site's function occurs once, even if it was unwound as well. */
	kit_new(&kit);
	mk_sample(&r, 7, now, WIRE_WHERE_SAFE_CALL, CFN(2), CIP(CFN(2)), CRET(CFN(1)),
		  FR(WIRE_FRAME_SITE, SITE(1)), RET(HS(2)), STOP);
	check_stack(&kit, &r, "Main.h2;c1;c2");

	/* A safe call of which only the site is known. */
	kit_new(&kit);
	mk_sample(&r, 7, now, WIRE_WHERE_SAFE_CALL, CFN(1), STOP);
	r.sample.site = SITE(1);
	check_stack(&kit, &r, "Main.h1;c1");

	/* A site of which nothing is known. */
	kit_new(&kit);
	mk_sample(&r, 7, now, WIRE_WHERE_SAFE_CALL, CFN(1), STOP);
	r.sample.site = NO_SITE;
	check_stack(&kit, &r, "[unknown function];c1");

	/* C called back into Haskell. */
	kit_new(&kit);
	mk_sample(&r, 7, now, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), RET(HS(2)), CRET(CFN(3)),
		  FR(WIRE_FRAME_SITE, SITE(4)), RET(HS(5)), STOP);
	check_stack(&kit, &r, "Main.h5;c4;c3;Main.h2;Main.h1");

	kit_new(&kit);
	mk_sample(&r, 7, now, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP);
	r.sample.stack.end = WIRE_END_BROKEN;
	r.sample.stack.cause = WIRE_CAUSE_FAULT;
	check_stack(&kit, &r, "[broken: memory not readable];Main.h1");

	kit_new(&kit);
	mk_sample(&r, 7, now, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP);
	r.sample.stack.end = WIRE_END_TRUNCATED;
	check_stack(&kit, &r, "[truncated];Main.h1");

	kit_new(&kit);
	mk_sample(&r, 7, now, WIRE_WHERE_RTS, RTS(2), CIP(RTS(2)), CRET(RTS(1)), STOP);
	check_stack(&kit, &r, "[RTS];r1;r2");

	kit_new(&kit);
	mk_sample(&r, 7, now, WIRE_WHERE_RTS, CFN(2), CIP(CFN(2)), CRET(GCFN(1)), STOP);
	check_stack(&kit, &r, "[GC];g1;c2");
}

static void test_depth_cap(void **state)
{
	struct timeline_opts opts = {.max_depth = 4};
	struct kit kit;
	union rec r;

	(void)state;
	kit_new_opts(&kit, &opts);
	mk_sample(&r, 7, END - 1, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), RET(HS(2)), RET(HS(3)),
		  RET(HS(4)), RET(HS(5)), STOP);
	/* The leaf side is kept, and a frame shows that there was more. */
	check_stack(&kit, &r, "[truncated];Main.h3;Main.h2;Main.h1");
}

static const struct pic_frame *frame_named(const struct picture *pic, const char *name)
{
	for (uint32_t i = 0; i < picture__n_frames(pic); i++)
		if (!strcmp(picture__frame(pic, i)->name, name))
			return picture__frame(pic, i);
	fail_msg("no frame called %s", name);
	return NULL;
}

/* A name that there was no time for is requested again, more and more rarely. */
static void test_partial_names(void **state)
{
	struct kit kit;
	union rec r;

	(void)state;
	kit_new(&kit);
	mk_sample(&r, 7, T0 + 10, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP);
	kit.hurried = true;
	for (unsigned i = 0; i < 9; i++) {
		r.h.ns += 10;
		put(&kit, &r);
	}
	/* at first, and after 1, 2, 4, 8 and 16 more lookups: a sample looks its leaf up twice */
	assert_int_equal(kit.named, 6);
	kit.hurried = false;
	for (unsigned i = 0; i < 9; i++) {
		r.h.ns += 10;
		put(&kit, &r);
	}
	assert_int_equal(kit.named, 7);
	finish(&kit);
	assert_int_equal(frame_named(kit.pic, "[prog]+0x10")->kind, TF_HASKELL);
	assert_int_equal(frame_named(kit.pic, "Main.h1")->kind, TF_HASKELL);
	timeline__free(kit.tl);
}

static void test_frames(void **state)
{
	const struct pic_target *t;
	const struct pic_frame *f;
	struct kit kit;
	unsigned named;
	union rec r;

	(void)state;
	kit_new(&kit);
	mk_sample(&r, 7, T0 + 10, WIRE_WHERE_HASKELL, CFN(1), CIP(CFN(1)), CALLED(NEAR(2)),
		  RET(HS(1)), STOP);
	put(&kit, &r);
	named = kit.named;
	r.h.ns += 10;
	put(&kit, &r);
	assert_int_equal(kit.named, named); /* each address once */
	t = finish(&kit);
	f = frame_named(kit.pic, "~Main.h2");
	assert_true(f->approximate);
	assert_string_equal(f->module, "Main");
	assert_string_equal(f->file, "Main");
	assert_int_equal(f->kind, TF_HASKELL);
	f = frame_named(kit.pic, "c1");
	assert_string_equal(f->file, "libc.so");
	assert_int_equal(f->kind, TF_FOREIGN);
	f = frame_named(kit.pic, "[preempted]");
	assert_string_equal(f->file, "state");
	assert_int_equal(f->kind, TF_STATE);
	/* in two stacks; folded frames do not count */
	assert_int_equal(t->names.nearest, 2);
	assert_int_equal(t->names.exact, 4);
	assert_null(picture__frame(kit.pic, picture__n_frames(kit.pic)));
	assert_int_equal(picture__stack(kit.pic, 0).n, 0);
	assert_int_equal(picture__stack(kit.pic, UINT32_MAX).n, 0);
	timeline__free(kit.tl);
}

static void test_calls(void **state)
{
	struct wire_site_key key = {.site = SITE(1), .tgid = PID};
	struct wire_site site = {.calls = 1, .min_ns = ~0ULL};
	const struct pic_target *t;
	struct intake_cost cost = {.probes_paused_ns = (END - T0) / 4};
	struct kit kit;

	(void)state;
	kit_new(&kit);
	assert_int_equal(intake__site_counters(kit.in, &key, &site, 0), 0);
	site.calls = 100;
	site.wall_ns = 100000;
	site.blocked_ns = 60000;
	site.runnable_ns = 10000;
	site.cap_wait_ns = 5000;
	site.min_ns = 900;
	site.max_ns = 1100;
	site.abandoned = 2;
	site.hist[1 + (9 - 4) * 8 + 7] = 100; /* 960 … 1023 */
	/* Later values replace earlier ones. */
	assert_int_equal(intake__site_counters(kit.in, &key, &site, 0), 0);
	key.flags = WIRE_CALL_INTERRUPTIBLE;
	site.wall_ns = 10;
	site.blocked_ns = 1000; /* damaged: longer than the calls */
	assert_int_equal(intake__site_counters(kit.in, &key, &site, 0), 0);
	key.tgid = 1;
	assert_int_equal(intake__site_counters(kit.in, &key, &site, 0), -ENOENT);
	t = finish(&kit);
	assert_int_equal(t->n_calls, 2);
	assert_string_equal(t->calls[0].function, "c1");
	assert_string_equal(t->calls[0].library, "libc.so");
	assert_string_equal(t->calls[0].caller, "Main.h1");
	assert_string_equal(t->calls[0].site, "prog+0x1000");
	assert_false(t->calls[0].interruptible);
	assert_int_equal(t->calls[0].calls, 100);
	assert_int_equal(t->calls[0].wall_ns, 100000);
	assert_int_equal(t->calls[0].cpu_ns, 30000);
	assert_int_equal(t->calls[0].blocked_ns, 60000);
	assert_int_equal(t->calls[0].cap_wait_ns, 5000);
	assert_int_equal(t->calls[0].min_ns, 900);
	assert_int_equal(t->calls[0].p50_ns, 992);
	assert_int_equal(t->calls[0].p99_ns, 992);
	assert_int_equal(t->calls[0].max_ns, 1100);
	assert_true(t->calls[0].quantile_error == 1.0 / 16);
	assert_int_equal(t->calls[0].abandoned, 2);
	assert_true(t->calls[0].exact);
	assert_true(t->calls[1].interruptible);
	assert_int_equal(t->calls[1].cpu_ns, 0);
	/* Nothing was counted while the probes were off. */
	assert_int_equal(intake__set_cost(kit.in, PID, &cost), 0);
	assert_false(t->calls[0].exact);
	assert_true(t->calls[0].observed_share == 0.75);
	/* and the pause went on after the process's end */
	cost.probes_paused_ns = END - T0;
	cost.held_up_until_ns = END + (END - T0) / 2;
	assert_int_equal(intake__set_cost(kit.in, PID, &cost), 0);
	assert_false(t->calls[0].exact);
	assert_true(t->calls[0].observed_share == 0.5);
	timeline__free(kit.tl);
}

/* What was missed of a program before an exec is not known: what comes at the end is the new one's.
 */
static void test_calls_before_exec(void **state)
{
	const struct wire_site_key key = {.site = SITE(1), .tgid = PID};
	const struct wire_site site = {.calls = 1, .min_ns = 5, .max_ns = 5};
	const struct intake_cost cost = {.probe_hits = 2};
	struct kit kit;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		bool again = i & 1;

		kit_new(&kit);
		assert_int_equal(intake__site_counters(kit.in, &key, &site, 0), 0);
		assert_int_equal(
			intake__end_target(kit.in, PID, i & 2 ? "exited 0" : "exec", T0 + 50), 0);
		if (again)
			kit_add(&kit, PID, T0 + 60);
		assert_int_equal(intake__set_cost(kit.in, PID, &cost), 0);
		finish(&kit);
		assert_int_equal(picture__target(kit.pic, 0)->n_calls, 1);
		assert_int_equal(picture__target(kit.pic, 0)->calls[0].exact, !again);
		timeline__free(kit.tl);
	}
}

static void test_unsafe_calls(void **state)
{
	const struct pic_target *t;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	/* memcpy inside the function that Haskell called counts for that function. */
	put(&kit, mk_sample(&r, 7, T0 + 100, WIRE_WHERE_HASKELL, CFN(2), CIP(CFN(2)), CRET(CFN(1)),
			    CALLED(HS(1)), RET(HS(2)), STOP));
	put(&kit, mk_sample(&r, 7, T0 + 200, WIRE_WHERE_HASKELL, CFN(1), IP(CFN(1)), RET(HS(1)),
			    RET(HS(2)), STOP));
	/* libc called by the RTS on the mutator's behalf is no unsafe call. */
	put(&kit, mk_sample(&r, 7, T0 + 300, WIRE_WHERE_HASKELL, CFN(2), CIP(CFN(2)), CRET(RTS(1)),
			    CALLED(HS(1)), STOP));
	mk_off(&r, 7, T0 + 400, T0 + 500, T0 + 500, WIRE_WHERE_HASKELL, CIP(CFN(1)), CALLED(HS(1)),
	       STOP);
	r.off.syscall = 35;
	r.off.ip = CFN(1);
	put(&kit, &r);
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 500));
	t = finish(&kit);
	assert_int_equal(t->n_unsafe_calls, 1);
	assert_string_equal(t->unsafe_calls[0].function, "c1");
	assert_string_equal(t->unsafe_calls[0].library, "libc.so");
	assert_string_equal(t->unsafe_calls[0].caller, "Main.h1");
	assert_int_equal(t->unsafe_calls[0].samples, 2);
	assert_int_equal(t->unsafe_calls[0].cpu_ns, 267);
	assert_int_equal(t->unsafe_calls[0].blocked_ns, 100);
	assert_int_equal(lane_of(t, 7)->states_ns[ST_HASKELL], 133);
	timeline__free(kit.tl);
}

static void test_functions(void **state)
{
	const struct pic_target *t;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new(&kit);
	put(&kit, mk_event(&r, WIRE_THREAD_NEW, 7, T0));
	/* Recursion counts once for each stack. */
	put(&kit, mk_sample(&r, 7, T0 + 100, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), RET(HS(2)),
			    RET(HS(1)), RET(HS(3)), STOP));
	put(&kit,
	    mk_sample(&r, 7, T0 + 200, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), RET(HS(3)), STOP));
	put(&kit,
	    mk_sample(&r, 7, T0 + 300, WIRE_WHERE_HASKELL, HS(2), IP(HS(2)), RET(HS(3)), STOP));
	put(&kit, mk_event(&r, WIRE_THREAD_EXIT, 7, T0 + 400));
	t = finish(&kit);
	assert_int_equal(t->n_functions, 3);
	assert_string_equal(t->functions[0].name, "Main.h1");
	assert_string_equal(t->functions[0].module, "Main");
	assert_int_equal(t->functions[0].self_samples, 2);
	assert_int_equal(t->functions[0].total_samples, 2);
	assert_int_equal(t->functions[0].self_ns, 266);
	assert_int_equal(t->functions[0].total_ns, 266);
	assert_string_equal(t->functions[1].name, "Main.h2");
	assert_int_equal(t->functions[1].self_samples, 1);
	assert_int_equal(t->functions[1].total_samples, 2);
	assert_string_equal(t->functions[2].name, "Main.h3");
	assert_int_equal(t->functions[2].self_samples, 0);
	assert_int_equal(t->functions[2].total_samples, 3);
	assert_int_equal(t->functions[2].total_ns, 400);
	timeline__free(kit.tl);
}

static void test_quality(void **state)
{
	const struct pic_quality *q;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new(&kit);
	mk_sample(&r, 7, T0 + 100, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP);
	put(&kit, &r);
	r.sample.stack.elided = 1;
	r.sample.stack.resync = 3;
	put(&kit, &r);
	r.sample.stack.end = WIRE_END_TRUNCATED;
	put(&kit, &r);
	r.sample.stack.end = WIRE_END_BROKEN;
	r.sample.stack.cause = WIRE_CAUSE_GC_RACE;
	put(&kit, &r);
	r.sample.stack.cause = 200;
	put(&kit, &r);
	put(&kit, mk_sample(&r, 7, T0 + 100, WIRE_WHERE_RTS, RTS(1), STOP));
	q = &finish(&kit)->quality;
	assert_int_equal(q->samples, 6);
	assert_int_equal(q->haskell_samples, 5);
	assert_int_equal(q->complete, 1);
	assert_int_equal(q->elided, 1);
	assert_int_equal(q->haskell_complete, 2);
	assert_int_equal(q->resynchronised, 4);
	assert_int_equal(q->truncated, 1);
	assert_int_equal(q->broken[WIRE_CAUSE_GC_RACE], 1);
	assert_int_equal(q->broken[0], 1);
	assert_int_equal(q->none, 1);
	timeline__free(kit.tl);
}

static void check_cut(struct kit *kit, size_t n, const pid_t *pids)
{
	struct timeline_cut cut;

	assert_int_equal(timeline__cut(kit->tl, END, &cut), 0);
	assert_int_equal(cut.n, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(cut.v[i].pid, pids[i]);
	timeline_cut__free(&cut);
}

/* What was forgotten after a cut does not appear in later windows. */
static void test_cuts(void **state)
{
	struct timeline_cut cut;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new(&kit);
	kit_add(&kit, PID + 1, T0);
	kit_add(&kit, PID + 2, T0);
	check_cut(&kit, 3, (const pid_t[]){PID, PID + 1, PID + 2});
	assert_int_equal(intake__forget_target(kit.in, PID + 1), 0);
	check_cut(&kit, 2, (const pid_t[]){PID, PID + 2});
	assert_int_equal(intake__forget_target(kit.in, PID + 2), 0);
	kit_add(&kit, PID + 2, T0);
	put(&kit, mk_sample(&r, 7, T0 + 500, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP));
	check_cut(&kit, 2, (const pid_t[]){PID, PID + 2});
	assert_int_equal(finish(&kit)->lanes[LANE_THREAD].n, 1);
	assert_int_equal(timeline__cut(kit.tl, END, &cut), -EINVAL);
	timeline__free(kit.tl);
}

/* A forgotten target leaves nothing, and does not get mixed up with a later one of the same pid. */
static void test_forget(void **state)
{
	struct timeline_opts opts = {.frequency_hz = 999};
	const struct pic_target *t;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new_opts(&kit, &opts);
	assert_int_equal(intake__forget_target(kit.in, 1), -ENOENT);
	assert_int_equal(intake__forget_target(kit.in, PID), 0);
	assert_int_equal(intake__forget_target(kit.in, PID), -ENOENT);
	assert_int_equal(picture__n_targets(kit.pic), 0);
	kit_add(&kit, PID, T0);
	rec_head(&r, WIRE_TICK, 7, T0 + 1, sizeof(r.tick));
	r.tick.enabled = 4;
	put(&kit, &r);
	assert_int_equal(intake__forget_target(kit.in, PID), -EBUSY);
	t = finish(&kit);
	assert_int_equal(t->ticks, 1);
	assert_int_equal(picture__n_targets(kit.pic), 1);
	assert_int_equal(intake__forget_target(kit.in, PID), -EINVAL);
	timeline__free(kit.tl);
}

/* The kernel's account is that of all targets; each has what the programs timed for it, which an
 * older capture does not have. */
static void test_cost_of_several(void **state)
{
	const struct intake_cost cost = {.probe_hits = 3,
					 .bpf_ns = 70,
					 .bpf_ns_known = true,
					 .own_bpf_ns = 50,
					 .own_bpf_ns_known = true};
	const struct intake_cost later = {.probe_hits = 4, .bpf_ns = 80, .bpf_ns_known = true};
	const struct pic_target *t;
	struct kit kit;

	(void)state;
	kit_new(&kit);
	assert_int_equal(intake__set_cost(kit.in, PID, &cost), 0);
	t = finish(&kit);
	assert_true(t->cost_known && t->bpf_ns_known);
	assert_int_equal(t->bpf_ns, 70);
	assert_false(picture__session(kit.pic)->bpf_ns_known);
	timeline__free(kit.tl);

	kit_new(&kit);
	kit_add(&kit, PID + 1, T0);
	kit_add(&kit, PID + 2, T0);
	assert_int_equal(intake__set_cost(kit.in, PID, &cost), 0);
	assert_int_equal(intake__set_cost(kit.in, PID + 1, &later), 0);
	t = finish(&kit);
	assert_true(t->cost_known && t->bpf_ns_known);
	assert_int_equal(t->bpf_ns, 50);
	assert_int_equal(t->probe_hits, 3);
	assert_false(picture__target(kit.pic, 1)->bpf_ns_known);
	assert_false(picture__target(kit.pic, 2)->cost_known);
	assert_true(picture__session(kit.pic)->bpf_ns_known);
	assert_int_equal(picture__session(kit.pic)->bpf_ns, 80);
	timeline__free(kit.tl);
}

static void test_session(void **state)
{
	struct timeline_opts opts = {.frequency_hz = 999};
	const struct pic_target *t;
	struct kit kit;
	union rec r;

	(void)state;
	kit_new_opts(&kit, &opts);
	rec_head(&r, WIRE_TICK, 7, T0 + 1, sizeof(r.tick));
	r.tick.enabled = 4;
	put(&kit, &r);
	assert_int_equal(intake__set_lost(kit.in, PID, "ring", 3), 0);
	assert_int_equal(intake__set_lost(kit.in, PID, "ring", 4), 0);
	assert_int_equal(intake__set_lost(kit.in, 1, "ring", 4), -ENOENT);
	assert_int_equal(intake__set_lost_share(kit.in, PID, 0.5), 0);
	assert_int_equal(intake__add_missing(kit.in, PID, "tick"), 0);
	intake__set_exit_code(kit.in, 1);
	assert_int_equal(intake__end_target(kit.in, PID, "exited", T0 + 100), 0);
	assert_int_equal(intake__end_target(kit.in, PID, "exec", T0 + 50), 0);
	t = finish(&kit);
	assert_int_equal(timeline__finish(kit.tl, END), -EINVAL);
	assert_int_equal(intake__record(kit.in, &r, r.h.size), -EINVAL);
	assert_int_equal(t->ticks, 1);
	assert_int_equal(t->capabilities, 4);
	assert_int_equal(t->n_lost, 1);
	assert_string_equal(t->lost[0].cause, "ring");
	assert_int_equal(t->lost[0].n, 4);
	assert_int_equal(t->n_missing, 1);
	assert_string_equal(t->missing[0], "tick");
	assert_string_equal(t->end, "exited");
	assert_string_equal(t->comm, "prog");
	assert_int_equal(t->attach_took_ns, 5);
	assert_int_equal(picture__session(kit.pic)->exit_code, 1);
	assert_int_equal(picture__session(kit.pic)->frequency_hz, 999);
	assert_string_equal(picture__session(kit.pic)->mode, "pid");
	assert_int_equal(picture__n_targets(kit.pic), 1);
	assert_null(picture__target(kit.pic, 1));
	timeline__free(kit.tl);
	timeline__free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stacks),
		cmocka_unit_test(test_no_unsafe_calls),
		cmocka_unit_test(test_depth_cap),
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_partial_names),
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_calls_before_exec),
		cmocka_unit_test(test_unsafe_calls),
		cmocka_unit_test(test_functions),
		cmocka_unit_test(test_quality),
		cmocka_unit_test(test_cost_of_several),
		cmocka_unit_test(test_session),
		cmocka_unit_test(test_forget),
		cmocka_unit_test(test_cuts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
