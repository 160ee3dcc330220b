/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cost centres: their tree and samples in a log and in GHC's own reports. */
#include "eventlog_models.h"

static void write_samples(struct writer *w)
{
	uint64_t t = 1000000;

	w_header(w);
	w_block(w, EL_CAP_GLOBAL, 5);
	w_event(w, EL_PROF_BEGIN, 6, "l", 1000000ul);
	write_centres(w);
	for (unsigned i = 0; i < 6; i++, t += 1000000) {
		uint64_t at = t + (i == 3 ? 7 : 0); /* jitter */

		if (i == 0)
			w_event(w, EL_PROF_SAMPLE_COST_CENTRE, at, "wlbw", 0, 1ul, 1, 4);
		else if (i < 4)
			w_event(w, EL_PROF_SAMPLE_COST_CENTRE, at, "wlbww", 0, 1ul, 2, 3, 4);
		else
			w_event(w, EL_PROF_SAMPLE_COST_CENTRE, at, "wlbwww", 0, 1ul, 3, 2, 3, 4);
		w_event(w, EL_PROF_SAMPLE_COST_CENTRE, at, "wlbw", 1, 1ul, 1, i == 2 ? 19 : 20);
	}
	/* Eight missed ticks, then a sample with an empty stack, which is MAIN. */
	w_event(w, EL_PROF_SAMPLE_COST_CENTRE, t + 8000000, "wlb", 0, 2ul, 0);
	w_block_end(w, t + 9000000);
	w_end(w);
}

static const struct cc_node *node_of(struct cctree *tree, const char *label, uint32_t *ret)
{
	for (uint32_t i = 0; i < cctree__n_nodes(tree); i++) {
		struct cc_node *n = cctree__node(tree, i);

		if (!strcmp(cctree__cc(tree, n->cc).label, label)) {
			if (ret)
				*ret = i;
			return n;
		}
	}
	return NULL;
}

static void t_profile(void **state)
{
	struct eventlog *log = log_new();
	struct writer w = {0};
	struct el_profile *p;
	struct el_profile_info info;
	struct cctree_totals totals;
	struct cctree *tree;
	const struct slices *lane;

	(void)state;
	write_samples(&w);
	assert_int_equal(el_profile__new(NULL, &p), 0);
	assert_int_equal(el_profile__attach(p, log), 0);
	log_read(log, &w);
	info = el_profile__info(p);
	assert_int_equal(info.samples, 13);
	assert_int_equal(info.interval_ns, 1000000);
	assert_int_equal(info.n_lanes, 2);
	assert_int_equal(info.unknown_centres, 0);
	tree = el_profile__tree(p);
	assert_int_equal(cctree__inherit(tree, &totals), 0);
	assert_int_equal(totals.ticks, 7);
	assert_int_equal(totals.ignored_ticks, 6);
	assert_int_equal(totals.kind_ticks[CCK_IDLE], 5);
	assert_int_equal(totals.kind_ticks[CCK_GC], 1);
	assert_int_equal(totals.kind_ticks[CCK_MAIN], 1);
	assert_int_equal(cctree__node(tree, CC_ROOT)->inherited_ticks, 7);
	assert_int_equal(node_of(tree, "main", NULL)->ticks, 1);
	assert_int_equal(node_of(tree, "main", NULL)->inherited_ticks, 6);
	assert_int_equal(node_of(tree, "fib", NULL)->ticks, 3);
	assert_int_equal(node_of(tree, "fib", NULL)->inherited_ticks, 5);
	/* Equal neighbours are one slice, with true times; missed ticks leave a gap. */
	lane = el_profile__lane(p, 0)->lane;
	assert_int_equal(lane->n, 4);
	assert_int_equal(lane->v[0].start_ns, 0);
	assert_int_equal(lane->v[0].end_ns, 1000000);
	assert_int_equal(lane->v[1].end_ns, 4000007);
	assert_int_equal(lane->v[2].end_ns, 6000000);
	assert_int_equal(lane->v[3].start_ns, 14000000);
	assert_int_equal(lane->v[3].end_ns, 15000000);
	assert_int_equal(lane->v[3].stack, CC_ROOT);
	lane = el_profile__lane(p, 1)->lane;
	assert_int_equal(lane->n, 3);
	assert_int_equal(lane->v[1].state, CS_GC);
	el_profile__free(p);
	eventlog__free(log);
	w_free(&w);
}

static void t_filter(void **state)
{
	static const char *const fib[] = {"fib"}, *const thing[] = {"Data.*"},
				 *const full[] = {"Main.fib"}, *const idle[] = {"IDLE"};
	struct eventlog *log = log_new();
	struct writer w = {0};
	struct el_profile *p;
	struct cctree *tree, *less;
	struct cctree_totals totals;
	uint32_t *map, from, to;

	(void)state;
	write_samples(&w);
	assert_int_equal(el_profile__new(NULL, &p), 0);
	assert_int_equal(el_profile__attach(p, log), 0);
	log_read(log, &w);
	tree = el_profile__tree(p);

	for (int i = 0; i < 2; i++) {
		assert_int_equal(cctree__filter(tree, i ? full : fib, 1, NULL, 0, &less, &map), 0);
		assert_null(node_of(less, "fib", NULL));
		assert_int_equal(node_of(less, "main", &to)->ticks, 4);
		assert_non_null(node_of(tree, "fib", &from));
		assert_int_equal(map[from], to);
		assert_int_equal(node_of(less, "$wgo", NULL)->ticks, 2);
		assert_int_equal(cctree__inherit(less, &totals), 0);
		assert_int_equal(totals.ticks, 7);
		assert_int_equal(cctree__cc(less, node_of(less, "main", NULL)->cc).id, 4);
		cctree__free(less);
		free(map);
	}
	/* Only one module: the rest of the program is added to the root, the RTS's own centres
	 * stay. */
	assert_int_equal(cctree__filter(tree, NULL, 0, thing, 1, &less, &map), 0);
	assert_null(node_of(less, "main", NULL));
	assert_int_equal(node_of(less, "$wgo", NULL)->ticks, 2);
	assert_int_equal(cctree__node(less, CC_ROOT)->ticks, 5);
	assert_int_equal(node_of(less, "IDLE", NULL)->ticks, 5);
	cctree__free(less);
	free(map);
	assert_int_equal(cctree__filter(tree, idle, 1, NULL, 0, &less, &map), 0);
	assert_int_equal(node_of(less, "IDLE", NULL)->ticks, 5);
	cctree__free(less);
	free(map);
	el_profile__free(p);
	eventlog__free(log);
	w_free(&w);
}

static void t_kinds(void **state)
{
	static const enum cc_kind want[] = {CCK_IDLE,	  CCK_GC,     CCK_SYSTEM,  CCK_MAIN,
					    CCK_OVERHEAD, CCK_CAF,    CCK_PROGRAM, CCK_PROGRAM,
					    CCK_PROGRAM,  CCK_PROGRAM};
	struct cctree *tree;
	uint32_t cc, again;

	(void)state;
	assert_int_equal(cctree__new(&tree), 0);
	for (size_t i = 0; i < ARRAY_SIZE(centres); i++) {
		assert_int_equal(cctree__define(tree, centres[i].id, centres[i].label,
						strlen(centres[i].label), centres[i].module,
						strlen(centres[i].module), centres[i].src,
						strlen(centres[i].src), centres[i].caf),
				 0);
		assert_int_equal(cctree__cc_by_id(tree, centres[i].id, &cc), 0);
		assert_int_equal(cctree__cc(tree, cc).kind, want[i]);
		assert_int_equal(cctree__cc_by_name(tree, centres[i].label, centres[i].module,
						    centres[i].src, &again),
				 0);
		assert_int_equal(cc, again);
	}
	/* MAIN counts as the root's own centre. */
	assert_int_equal(cctree__n_ccs(tree), ARRAY_SIZE(centres));
	/* Used before it is defined. */
	assert_int_equal(cctree__cc_by_id(tree, 99, &cc), 0);
	assert_false(cctree__cc(tree, cc).known);
	assert_string_equal(cctree__cc(tree, cc).label, "cost centre 99");
	assert_int_equal(cctree__define(tree, 99, "late", 4, "M", 1, "M.hs", 4, false), 0);
	assert_int_equal(cctree__cc_by_id(tree, 99, &again), 0);
	assert_int_equal(cc, again);
	assert_string_equal(cctree__cc(tree, cc).label, "late");
	assert_int_equal(cctree__find_cc(tree, "late", "M", NULL), cc);
	assert_int_equal(cctree__find_cc(tree, "late", "M", "other"), CC_NO_NODE);
	cctree__free(tree);
}

/* ── GHC's reports ───────────────────────────────────────────────────────────────────────── */

static const char prof_text[] =
	"\tSat Nov 21 10:06 2026 Time and Allocation Profiling Report  (Final)\n\n"
	"\t   Pp +RTS -N2 -p -RTS 3000\n\n"
	"\ttotal time  =        0.50 secs   (1000 ticks @ 1000 us, 2 processors)\n"
	"\ttotal alloc =     877,424 bytes  (excludes profiling overheads)\n\n"
	"COST CENTRE MODULE           SRC                  %time %alloc\n\n"
	"bar         Main             P.hs:12:27-76         50.0    0.0\n\n\n"
	"                                                   individual      inherited\n"
	"COST CENTRE  MODULE   SRC              no.     entries  %time %alloc   %time %alloc\n\n"
	"MAIN         MAIN     <built-in>       126           0    0.6    4.3   100.0  100.0\n"
	" CAF         Main     <entire-module>  251           0    0.0    0.1     0.6   84.7\n"
	"  main       Main     my dir/P.hs:(14,1)-(27,21) 252  1   25.0    0.0     0.6   84.5\n"
	"   fib       Main     P.hs:10:1-78     254       57313    0.6    0.0     0.6   84.5\n"
	"garbage\n"
	" main        Main     my dir/P.hs:(14,1)-(27,21) 253  0   73.8   95.6    74.0   15.3\n";

static void t_prof_text(void **state)
{
	struct prof_info info;
	struct cctree *tree;
	struct cc_node *n;
	char *cut;

	(void)state;
	assert_int_equal(prof__parse(prof_text, strlen(prof_text), &tree, &info), 0);
	assert_string_equal(info.program, "Pp +RTS -N2 -p -RTS 3000");
	assert_int_equal(info.total_ticks, 1000);
	assert_int_equal(info.tick_interval_us, 1000);
	assert_int_equal(info.capabilities, 2);
	assert_false(info.has_ticks);
	assert_int_equal(info.skipped, 1);
	assert_int_equal(cctree__n_nodes(tree), 5);
	n = cctree__node(tree, 2);
	assert_string_equal(cctree__cc(tree, n->cc).srcloc, "my dir/P.hs:(14,1)-(27,21)");
	assert_int_equal(n->ticks, 250);
	assert_int_equal(n->permille_inherited_time, 6);
	assert_int_equal(cctree__node(tree, 3)->ticks, 6);
	assert_int_equal(cctree__node(tree, 4)->parent, CC_ROOT);
	assert_int_equal(cctree__node(tree, 4)->cc, n->cc);
	assert_int_equal(cctree__kind(tree, 1), CCK_CAF);
	cctree__free(tree);
	/* Truncated anywhere, it is either refused or read, and nothing crashes. */
	for (size_t len = 0; len < strlen(prof_text); len++) {
		cut = malloc(len + 1);
		memcpy(cut, prof_text, len);
		if (!prof__parse(cut, len, &tree, &info))
			cctree__free(tree);
		free(cut);
	}
}

static void t_prof_json(void **state)
{
	static const char text[] =
		"{\"program\": \"Pp\", \"total_time\": 0.01, \"total_ticks\": 26,"
		"\"tick_interval\": 1000, \"total_alloc\":1009072, \"initial_capabilities\": 2,"
		"\"cost_centres\": [{\"id\": 3, \"label\": \"MAIN\", \"module\": \"MAIN\","
		"\"src_loc\": \"<built-in>\", \"is_caf\": false}, {\"id\": 2, \"label\": \"fib\","
		"\"module\": \"Main\", \"src_loc\": \"P.hs:1\", \"is_caf\": false}],"
		"\"profile\": {\"id\": 3, \"entries\": 0, \"alloc\": 5, \"ticks\": 1, \"children\":"
		"[{\"id\": 2, \"entries\": 4, \"alloc\": 6, \"ticks\": 25, \"children\": []}]}}";
	static const char *const bad[] = {"", "{", "{}", "[1]", "{\"profile\": 3}", "hello\n"};
	struct prof_info info;
	struct cctree *tree;

	(void)state;
	assert_int_equal(prof__parse(text, strlen(text), &tree, &info), 0);
	assert_true(info.has_ticks);
	assert_int_equal(info.total_ticks, 26);
	assert_int_equal(cctree__n_nodes(tree), 2);
	assert_int_equal(cctree__node(tree, 0)->ticks, 1);
	assert_int_equal(cctree__node(tree, 1)->ticks, 25);
	assert_string_equal(cctree__cc(tree, cctree__node(tree, 1)->cc).label, "fib");
	cctree__free(tree);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(prof__parse(bad[i], strlen(bad[i]), &tree, &info), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_profile),   cmocka_unit_test(t_filter),
		cmocka_unit_test(t_kinds),     cmocka_unit_test(t_prof_text),
		cmocka_unit_test(t_prof_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
