/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cost-centre stacks: the reader on made-up memory, and what the timeline does with the stacks. */
#include "names/ccs.h"
#include "test_timeline_kit.h"

/* ── a memory ────────────────────────────────────────────────────────────────────────────── */

#define BASE  0x10000ULL
#define WORDS 65536

struct memory {
	uint64_t words[WORDS];
	size_t used; /* words */
	size_t reads, max_reads;
};

static int memory__read(void *ctx, uint64_t addr, void *buf, size_t len)
{
	struct memory *m = ctx;

	m->reads++;
	if (addr < BASE || addr - BASE > sizeof(m->words) ||
	    len > sizeof(m->words) - (addr - BASE) || (m->max_reads && m->reads > m->max_reads))
		return -1;
	memcpy(buf, (const char *)m->words + (addr - BASE), len);
	return 0;
}

static uint64_t room(struct memory *m, size_t words)
{
	uint64_t addr = BASE + 8 * m->used;

	m->used += words;
	assert_true(m->used <= WORDS);
	return addr;
}

static uint64_t *at(struct memory *m, uint64_t addr)
{
	return &m->words[(addr - BASE) / 8];
}

static uint64_t text(struct memory *m, const char *s)
{
	uint64_t addr = room(m, strlen(s) / 8 + 1);

	memcpy(at(m, addr), s, strlen(s) + 1);
	return addr;
}

static uint64_t centre(struct memory *m, const char *label, const char *module)
{
	uint64_t cc = room(m, 8);

	at(m, cc)[1] = text(m, label);
	at(m, cc)[2] = text(m, module);
	at(m, cc)[3] = text(m, "A.hs:1:1-9");
	return cc;
}

static uint64_t stack(struct memory *m, uint64_t cc, uint64_t prev)
{
	uint64_t ccs = room(m, 12), entry;

	at(m, ccs)[1] = cc;
	at(m, ccs)[2] = prev;
	if (prev) {
		entry = room(m, 4);
		at(m, entry)[0] = cc;
		at(m, entry)[1] = ccs;
		at(m, entry)[2] = at(m, prev)[3];
		at(m, prev)[3] = entry;
	}
	return ccs;
}

struct fixture {
	struct memory m;
	struct ccs_found found;
	struct ccs_reader reader;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->reader = (struct ccs_reader){memory__read, &f->m};
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static const struct ccs_node *node_of(const struct ccs_found *f, uint64_t addr)
{
	for (uint32_t i = 0; i < f->n_nodes; i++)
		if (f->nodes[i].addr == addr)
			return &f->nodes[i];
	return NULL;
}

static uint64_t soon(void)
{
	return time__monotonic_ns() + 5000000000ULL;
}

/* ── reading ─────────────────────────────────────────────────────────────────────────────── */

static void test_path(void **state)
{
	struct fixture *f = *state;
	uint64_t root = stack(&f->m, centre(&f->m, "MAIN", "MAIN"), 0);
	uint64_t fib = stack(&f->m, centre(&f->m, "fib", "Main"), root);
	uint64_t go = stack(&f->m, centre(&f->m, "fib.go", "Main"), fib);
	const struct ccs_node *node;

	assert_int_equal(ccs__collect(&f->reader, &go, 1, 0, &f->found), 0);
	assert_int_equal(f->found.n_nodes, 3);
	assert_int_equal(f->found.nodes[0].addr, root);
	assert_int_equal(f->found.nodes[0].parent, 0);
	node = node_of(&f->found, go);
	assert_non_null(node);
	assert_int_equal(node->parent, fib);
	assert_string_equal(f->found.text + f->found.centres[node->centre].label, "fib.go");
	assert_string_equal(f->found.text + f->found.centres[node->centre].module, "Main");
	assert_string_equal(f->found.text + f->found.centres[node->centre].src_loc, "A.hs:1:1-9");
}

static void test_whole_tree(void **state)
{
	struct fixture *f = *state;
	uint64_t cc = centre(&f->m, "f", "Main"), root = stack(&f->m, cc, 0), other, entry;
	uint64_t a = stack(&f->m, cc, root), b = stack(&f->m, cc, root), c = stack(&f->m, cc, b);

	/* a back edge leads up and is not a child */
	other = stack(&f->m, cc, 0);
	entry = room(&f->m, 4);
	at(&f->m, entry)[1] = other;
	at(&f->m, entry)[3] = 1;
	at(&f->m, a)[3] = entry;
	assert_int_equal(ccs__collect(&f->reader, &a, 1, soon(), &f->found), 0);
	assert_int_equal(f->found.n_nodes, 4);
	assert_int_equal(f->found.n_centres, 1);
	assert_non_null(node_of(&f->found, b));
	assert_int_equal(node_of(&f->found, c)->parent, b);
	assert_null(node_of(&f->found, other));
}

static void test_cycles(void **state)
{
	struct fixture *f = *state;
	uint64_t cc = centre(&f->m, "f", "Main"), root = stack(&f->m, cc, 0);
	uint64_t a = stack(&f->m, cc, root), b = stack(&f->m, cc, a), entry;
	uint64_t addrs[] = {a, b, root};

	/* a and b are each other's parent */
	at(&f->m, a)[2] = b;
	/* and a circular list of children */
	entry = at(&f->m, root)[3];
	at(&f->m, entry)[2] = entry;
	assert_int_equal(ccs__collect(&f->reader, addrs, 3, soon(), &f->found), 0);
	assert_int_equal(f->found.n_nodes, 1);
	assert_int_equal(f->found.nodes[0].addr, root);
}

static void test_unreadable(void **state)
{
	struct fixture *f = *state;
	uint64_t cc = centre(&f->m, "f", "Main"), bad = centre(&f->m, "g", "Main");
	uint64_t root = stack(&f->m, cc, 0), broken = stack(&f->m, bad, root),
		 below = stack(&f->m, cc, broken);
	uint64_t addrs[] = {below, root + 1, 8, UINT64_MAX, UINT64_MAX - 7, 0, root};

	at(&f->m, bad)[1] = 16;
	assert_int_equal(ccs__collect(&f->reader, addrs, 7, soon(), &f->found), 0);
	assert_int_equal(f->found.n_nodes, 1);
}

static void test_long_strings(void **state)
{
	struct fixture *f = *state;
	uint64_t cc = centre(&f->m, "f", "Main"), root = stack(&f->m, cc, 0), label;

	label = room(&f->m, 400);
	memset(at(&f->m, label), 'x', 400 * 8);
	at(&f->m, cc)[1] = label + 3;
	assert_int_equal(ccs__collect(&f->reader, &root, 1, 0, &f->found), 0);
	assert_int_equal(f->found.n_nodes, 1);
	assert_int_equal(strlen(f->found.text + f->found.centres[0].label), CCS_MAX_STRING);
}

/* The greatest depth that is accepted, and one more. */
static void test_depth(void **state)
{
	struct fixture *f = *state;
	uint64_t cc = centre(&f->m, "f", "Main"), ccs = stack(&f->m, cc, 0);

	for (int i = 1; i < CCS_MAX_DEPTH; i++)
		ccs = stack(&f->m, cc, ccs);
	assert_int_equal(ccs__collect(&f->reader, &ccs, 1, 0, &f->found), 0);
	assert_int_equal(f->found.n_nodes, CCS_MAX_DEPTH);
	memset(&f->found, 0, sizeof(f->found));
	ccs = stack(&f->m, cc, ccs);
	assert_int_equal(ccs__collect(&f->reader, &ccs, 1, 0, &f->found), 0);
	assert_int_equal(f->found.n_nodes, 0);
}

/* ── the timeline ────────────────────────────────────────────────────────────────────────── */

/* MAIN (8) > main (16) > work (24) and idle (32), GC (40) below MAIN; 48 cannot be read. */
static unsigned reads;

static int kit_read_ccs(void *ctx, const uint64_t *addrs, size_t n)
{
	(void)ctx;
	(void)addrs;
	reads += n > 0;
	return 0;
}

static int kit_ccs(void *ctx, uint64_t addr, struct target_ccs *ret)
{
	static const struct target_ccs all[] = {
		{8, 0, "MAIN", "MAIN", "<built-in>"},
		{16, 8, "main", "Main", "M.hs:1"},
		{24, 16, "work", "Main", "M.hs:2"},
		{32, 8, "IDLE", "IDLE", "<built-in>"},
		{40, 8, "GC", "GC", "<built-in>"},
		{56, 24, "main", "Main", "M.hs:1"},
		{64, 8, "call", "Main", "<no location info>"},
		{72, 80, "CAF", "A", "<entire-module>"},
		{80, 72, "CAF", "B", "<entire-module>"},
	};

	(void)ctx;
	for (size_t i = 0; reads && i < ARRAY_SIZE(all); i++)
		if (all[i].addr == addr) {
			*ret = all[i];
			return 0;
		}
	return -ENOENT;
}

static void new_profiled(struct kit *kit, enum intake_stacks stacks)
{
	struct timeline_opts opts = {.stacks = stacks};
	struct target_info info = {.pid = PID + 1, .profiled = true, .threaded = true};
	struct namer namer;

	reads = 0;
	kit_new_opts(kit, &opts);
	namer = (struct namer){kit, kit_name, kit_site, kit_read_ccs, kit_ccs};
	assert_int_equal(intake__add_target(kit->in, &info, &namer, T0, 0), 0);
}

static void put_profiled(struct kit *kit, union rec *r, uint64_t cccs)
{
	r->h.tgid = PID + 1;
	if (r->h.type == WIRE_SAMPLE)
		r->sample.rts.cccs = cccs;
	put(kit, r);
}

static const struct pic_target *finish_profiled(struct kit *kit)
{
	finish(kit);
	return picture__target(kit->pic, 1);
}

static const char *first_stack(struct kit *kit, const struct pic_target *t, size_t i)
{
	return stack_text(kit->pic, lane_of(t, 1)->slices[i].stack);
}

static void test_stacks(void **state)
{
	static const struct {
		enum intake_stacks stacks;
		const char *want, *caller;
	} cases[] = {
		{STACKS_AUTO, "MAIN;Main.main;Main.work;c1", "Main.work"},
		{STACKS_STG, "Main.h2;Main.h1;c1", "Main.h1"},
		{STACKS_CCS, "MAIN;Main.main;Main.work;c1", "Main.work"},
		{STACKS_BOTH, "MAIN;Main.main;Main.work;[Haskell stack];Main.h2;Main.h1;c1",
		 "Main.h1"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct pic_target *t;
		struct kit kit;
		union rec r;

		new_profiled(&kit, cases[i].stacks);
		mk_sample(&r, 1, T0 + 10, WIRE_WHERE_HASKELL, CFN(1), CIP(CFN(1)), CALLED(HS(1)),
			  RET(HS(2)), STOP);
		put_profiled(&kit, &r, 24);
		t = finish_profiled(&kit);
		assert_string_equal(first_stack(&kit, t, 0), cases[i].want);
		/* the caller is taken from the stack that is shown */
		assert_int_equal(t->n_unsafe_calls, 1);
		assert_string_equal(t->unsafe_calls[0].caller, cases[i].caller);
		timeline__free(kit.tl);
	}
}

/* The stack of a sample in this cost-centre stack, whose Haskell frames are h2 and h1. */
static void assert_stack(enum intake_stacks stacks, uint64_t cccs, const char *want)
{
	const struct pic_target *t;
	struct kit kit;
	union rec r;

	new_profiled(&kit, stacks);
	mk_sample(&r, 1, T0 + 10, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), RET(HS(2)), STOP);
	put_profiled(&kit, &r, cccs);
	t = finish_profiled(&kit);
	assert_string_equal(first_stack(&kit, t, 0), want);
	timeline__free(kit.tl);
}

/* A program without cost centres of its own: by default the frames follow MAIN, which alone would
 * show nothing. */
static void test_no_centres(void **state)
{
	(void)state;
	assert_stack(STACKS_AUTO, 8, "MAIN;[Haskell stack];Main.h2;Main.h1");
	assert_stack(STACKS_STG, 8, "Main.h2;Main.h1");
	assert_stack(STACKS_CCS, 8, "MAIN");
}

/* A centre without a place, as -fprof-callers makes them, is the program's. */
static void test_no_location(void **state)
{
	(void)state;
	assert_stack(STACKS_AUTO, 64, "MAIN;Main.call");
}

/* Centres that enclose each other, which no program has: the path is cut. */
static void test_cycle_of_parents(void **state)
{
	(void)state;
	assert_stack(STACKS_AUTO, 72, "B.CAF;A.CAF;[Haskell stack];Main.h2;Main.h1");
}

/* Below a callback is another, waiting Haskell thread: its frames stay as they are. */
static void test_callback(void **state)
{
	const struct pic_target *t;
	struct kit kit;
	union rec r;

	(void)state;
	new_profiled(&kit, STACKS_AUTO);
	mk_sample(&r, 1, T0 + 10, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), RET(HS(2)), CRET(CFN(3)),
		  FR(WIRE_FRAME_SITE, SITE(4)), RET(HS(5)), STOP);
	put_profiled(&kit, &r, 24);
	t = finish_profiled(&kit);
	assert_string_equal(first_stack(&kit, t, 0), "Main.h5;c4;c3;MAIN;Main.main;Main.work");
	timeline__free(kit.tl);
}

/* If the cost centres cannot be read, the Haskell stack is shown instead. */
static void test_not_known(void **state)
{
	const struct pic_target *t;
	struct kit kit;
	union rec r;

	(void)state;
	new_profiled(&kit, STACKS_CCS);
	mk_sample(&r, 1, T0 + 10, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), RET(HS(2)), STOP);
	put_profiled(&kit, &r, 48);
	t = finish_profiled(&kit);
	assert_string_equal(first_stack(&kit, t, 0), "Main.h2;Main.h1");
	assert_int_equal(t->n_cost_centres, 0);
	timeline__free(kit.tl);
}

/* For a thread that was preempted in C code only the program counter may be known. */
static void test_no_walk(void **state)
{
	const struct pic_lane *lane;
	struct kit kit;
	union rec r;

	(void)state;
	new_profiled(&kit, STACKS_AUTO);
	mk_off(&r, 1, T0 + 100, T0 + 100, T0 + 1000, WIRE_WHERE_HASKELL, STOP);
	r.off.ip = CFN(1);
	r.off.rts.cccs = 24;
	r.off.prev_state = 0;
	put_profiled(&kit, &r, 0);
	lane = lane_of(finish_profiled(&kit), 1);
	for (size_t i = 0; i < lane->n_slices; i++)
		if (lane->slices[i].state == ST_PREEMPTED)
			assert_string_equal(stack_text(kit.pic, lane->slices[i].stack),
					    "MAIN;Main.main;Main.work;c1;[no stack];[preempted]");
	assert_true(lane->states_ns[ST_PREEMPTED] > 0);
	timeline__free(kit.tl);
}

static void put_tick(struct kit *kit, uint64_t ns, const uint64_t *cccs, uint32_t n)
{
	struct wire_tick_cap cap = {0};
	union rec r;

	rec_head(&r, WIRE_TICK, 9, ns, sizeof(r.tick) + n * sizeof(cap));
	r.tick.ncaps = r.tick.enabled = n;
	for (uint32_t i = 0; i < n; i++) {
		cap.no = i;
		cap.cccs = cccs[i];
		memcpy(r.bytes + sizeof(r.tick) + i * sizeof(cap), &cap, sizeof(cap));
	}
	put_profiled(kit, &r, 0);
}

static const struct pic_cost_centre *cc_of(const struct pic_target *t, const char *label)
{
	for (size_t i = 0; i < t->n_cost_centres; i++)
		if (!strcmp(t->cost_centres[i].label, label))
			return &t->cost_centres[i];
	fail_msg("no cost centre %s", label);
	return NULL;
}

/* Each capability counts at each tick; a centre that occurs twice in a path counts once. */
static void test_ticks(void **state)
{
	const uint64_t one[] = {24, 32}, two[] = {56, 40}, three[] = {24, 48};
	const struct pic_target *t;
	struct kit kit;
	union rec r;

	(void)state;
	new_profiled(&kit, STACKS_AUTO);
	mk_sample(&r, 1, T0 + 10, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP);
	put_profiled(&kit, &r, 16);
	put_tick(&kit, T0 + 100, one, 2);
	put_tick(&kit, T0 + 200, two, 2);
	put_tick(&kit, T0 + 300, three, 2);
	t = finish_profiled(&kit);
	assert_int_equal(cc_of(t, "work")->self_ticks, 2);
	assert_int_equal(cc_of(t, "work")->total_ticks, 3);
	assert_int_equal(cc_of(t, "main")->self_ticks, 1);
	assert_int_equal(cc_of(t, "main")->total_ticks, 3);
	assert_int_equal(cc_of(t, "MAIN")->total_ticks, 3);
	assert_int_equal(cc_of(t, "IDLE")->self_ticks, 1);
	assert_string_equal(cc_of(t, "GC")->kind, "gc");
	assert_true(cost_centre__is_overhead(cc_of(t, "GC")));
	assert_false(cost_centre__is_overhead(cc_of(t, "MAIN")));
	assert_false(cc_of(t, "work")->from_samples);
	/* the tree: parents come first, inherited ticks add up, the runtime's own ticks are
	 * inherited by none */
	assert_int_equal(t->n_cc_nodes, 6);
	assert_int_equal(t->cc_nodes[0].parent, UINT32_MAX);
	assert_int_equal(t->cc_nodes[0].inherited_ticks, 3);
	for (size_t i = 1; i < t->n_cc_nodes; i++)
		assert_true(t->cc_nodes[i].parent < i);
	timeline__free(kit.tl);
}

/* More cost-centre stacks than there is room for: one of them then has no parent, and the others
 * are still known. */
static void test_too_many(void **state)
{
	const uint64_t known[] = {24, 32};
	uint64_t addrs[WIRE_TICK_CAPS];
	const struct pic_target *t;
	struct kit kit;
	union rec r;

	(void)state;
	new_profiled(&kit, STACKS_AUTO);
	mk_sample(&r, 1, T0 + 10, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP);
	put_profiled(&kit, &r, 24);
	put_tick(&kit, T0 + 20, known, 2);
	for (uint64_t at = 1000; at < 1000 + (1 << 18); at += ARRAY_SIZE(addrs)) {
		for (size_t i = 0; i < ARRAY_SIZE(addrs); i++)
			addrs[i] = 8 * (at + i);
		put_tick(&kit, T0 + 30, addrs, ARRAY_SIZE(addrs));
	}
	t = finish_profiled(&kit);
	assert_string_equal(first_stack(&kit, t, 0), "Main.work");
	assert_int_equal(t->n_cost_centres, 2);
	assert_int_equal(cc_of(t, "work")->self_ticks, 1);
	assert_int_equal(cc_of(t, "IDLE")->self_ticks, 1);
	timeline__free(kit.tl);
}

static void test_samples(void **state)
{
	const struct pic_target *t;
	struct kit kit;
	union rec r;

	(void)state;
	new_profiled(&kit, STACKS_AUTO);
	mk_sample(&r, 1, T0 + 10, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP);
	put_profiled(&kit, &r, 24);
	/* in a safe call the capability may belong to another thread */
	mk_sample(&r, 1, T0 + 20, WIRE_WHERE_SAFE_CALL, CFN(1), CIP(CFN(1)), STOP);
	put_profiled(&kit, &r, 24);
	t = finish_profiled(&kit);
	assert_int_equal(cc_of(t, "work")->self_ticks, 1);
	assert_true(cc_of(t, "work")->from_samples);
	timeline__free(kit.tl);
}

/* In a program that is not profiled the word has no meaning. */
static void test_not_profiled(void **state)
{
	const struct pic_target *t;
	struct kit kit;
	union rec r;

	(void)state;
	new_profiled(&kit, STACKS_CCS);
	mk_sample(&r, 1, T0 + 10, WIRE_WHERE_HASKELL, HS(1), IP(HS(1)), STOP);
	r.sample.rts.cccs = 24;
	put(&kit, &r);
	finish(&kit);
	t = picture__target(kit.pic, 0);
	assert_string_equal(first_stack(&kit, t, 0), "Main.h1");
	assert_int_equal(reads, 0);
	timeline__free(kit.tl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_path, setup, teardown),
		cmocka_unit_test_setup_teardown(test_whole_tree, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cycles, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unreadable, setup, teardown),
		cmocka_unit_test_setup_teardown(test_long_strings, setup, teardown),
		cmocka_unit_test_setup_teardown(test_depth, setup, teardown),
		cmocka_unit_test(test_stacks),
		cmocka_unit_test(test_no_centres),
		cmocka_unit_test(test_no_location),
		cmocka_unit_test(test_cycle_of_parents),
		cmocka_unit_test(test_callback),
		cmocka_unit_test(test_not_known),
		cmocka_unit_test(test_no_walk),
		cmocka_unit_test(test_ticks),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_samples),
		cmocka_unit_test(test_not_profiled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
