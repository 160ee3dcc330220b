/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_eventlog_ghc: logs written by a real RTS. $GHC (by default ghc) compiles a small program in
 * a temporary directory; without GHC, or without its profiling libraries, tests are skipped with a
 * message.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/base.h"
#include "eventlog_writer.h"

static const char program[] =
	"module Main where\n"
	"import Control.Concurrent\n"
	"import Control.Monad\n"
	"import Debug.Trace\n"
	"import Foreign.C\n"
	"import System.Environment\n"
	"foreign import ccall safe \"usleep\" c_usleep :: CUInt -> IO CInt\n"
	"foreign import ccall safe \"getppid\" c_getppid :: IO CInt\n"
	"fib :: Int -> Integer\n"
	"fib n = {-# SCC \"fib\" #-} if n < 2 then toInteger n else fib (n-1) + fib (n-2)\n"
	"bar :: Int -> Int\n"
	"bar n = {-# SCC \"bar\" #-} sum [ x * y `mod` 7 | x <- [1..n], y <- [1..300] ]\n"
	"main :: IO ()\n"
	"main = do\n"
	"  [a, b, c] <- map read <$> getArgs\n"
	"  traceMarkerIO \"begin\"\n"
	"  mv <- newEmptyMVar\n"
	"  forM_ [1 .. 3 :: Int] $ \\i -> forkIO $ do\n"
	"    traceEventIO (\"START \" ++ show i ++ \" work it\")\n"
	"    replicateM_ b c_getppid\n"
	"    _ <- c_usleep 20000\n"
	"    print (bar (a + i))\n"
	"    traceEventIO (\"STOP \" ++ show i ++ \" work it\")\n"
	"    putMVar mv ()\n"
	"  print (fib c)\n"
	"  replicateM_ 3 (takeMVar mv)\n"
	"  traceMarkerIO \"end\"\n";

static char dir[] = "/tmp/safescoped-test-XXXXXX";
static bool have_plain, have_prof;

static int sh(const char *fmt, ...)
{
	char cmd[2048];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(cmd, sizeof(cmd), fmt, ap);
	va_end(ap);
	assert_true(n > 0 && (size_t)n < sizeof(cmd));
	return system(cmd);
}

static int compile(void **state)
{
	const char *ghc = getenv("GHC") ? getenv("GHC") : "ghc";
	char path[128];
	FILE *f;

	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/P.hs", dir);
	f = fopen(path, "w");
	if (!f)
		return -1;
	fputs(program, f);
	fclose(f);
	if (sh("command -v %s >/dev/null 2>&1", ghc)) {
		printf("no GHC (%s): these tests are skipped\n", ghc);
		return 0;
	}
	have_plain = !sh("cd %s && %s -v0 -O -w -rtsopts -threaded -eventlog -outputdir t -o plain "
			 "P.hs >ghc.out 2>&1",
			 dir, ghc);
	have_prof = !sh("cd %s && %s -v0 -O -w -rtsopts -threaded -eventlog -prof -fprof-auto-top "
			"-outputdir p -o prof P.hs >ghc-prof.out 2>&1",
			dir, ghc);
	if (!have_plain)
		printf("%s cannot compile the test program: see its output:\n", ghc),
			(void)sh("cat %s/ghc.out", dir);
	if (!have_prof)
		printf("%s has no profiling libraries: tests with -p are skipped\n", ghc);
	return 0;
}

static int clean(void **state)
{
	(void)state;
	return sh("rm -rf %s", dir);
}

struct all {
	struct eventlog *log;
	struct el_profile *profile;
	struct el_sched *sched;
	struct el_annot *annot;
	struct el_info *info;
	struct eventlog_stats stats;
};

static void all_read(struct all *a, const char *file)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	assert_int_equal(eventlog__new(NULL, &a->log), 0);
	assert_int_equal(el_profile__new(NULL, &a->profile), 0);
	assert_int_equal(el_sched__new(NULL, &a->sched), 0);
	assert_int_equal(el_annot__new(NULL, el_profile__tree(a->profile), a->sched, &a->annot), 0);
	assert_int_equal(el_info__new(NULL, a->sched, &a->info), 0);
	assert_int_equal(el_profile__attach(a->profile, a->log), 0);
	assert_int_equal(el_sched__attach(a->sched, a->log), 0);
	assert_int_equal(el_annot__attach(a->annot, a->log), 0);
	assert_int_equal(el_info__attach(a->info, a->log), 0);
	assert_int_equal(w_read_path(a->log, path), 0);
	a->stats = *eventlog__stats(a->log);
	assert_int_equal(el_sched__finish(a->sched, a->stats.last_time), 0);
	assert_int_equal(el_annot__finish(a->annot, a->stats.last_time), 0);
}

static void all_free(struct all *a)
{
	eventlog__free(a->log);
	el_profile__free(a->profile);
	el_sched__free(a->sched);
	el_annot__free(a->annot);
	el_info__free(a->info);
}

static void whole(const struct eventlog_stats *st)
{
	assert_true(st->ended);
	assert_int_equal(st->lost_bytes, 0);
	assert_int_equal(st->misfits, 0);
	assert_int_equal(st->unknown, 0);
	assert_int_equal(st->late, 0);
	assert_int_equal(st->header_bytes + st->event_bytes, st->bytes_in);
}

static void t_scheduler(void **state)
{
	(void)state;
	if (!have_plain)
		skip();
	for (int caps = 1; caps <= 2; caps++) {
		struct el_sched_info si;
		struct el_process p;
		struct all a;
		uint64_t calls = 0;
		char path[256], text[32];
		unsigned pid;
		FILE *f;

		assert_int_equal(sh("cd %s && { ./plain 300 2000 15 +RTS -N%d -l -oll.eventlog "
				    ">/dev/null & echo $! >pid; wait $!; }",
				    dir, caps),
				 0);
		snprintf(path, sizeof(path), "%s/pid", dir);
		f = fopen(path, "r");
		assert_non_null(f);
		assert_non_null(fgets(text, sizeof(text), f));
		pid = (unsigned)strtoul(text, NULL, 10);
		fclose(f);
		all_read(&a, "l.eventlog");
		whole(&a.stats);
		si = el_sched__info(a.sched);
		assert_int_equal(si.n_caps, caps);
		assert_int_equal(si.odd, 0);
		assert_true(si.gcs >= 1);
		for (size_t i = 0; i < si.n_caps; i++) {
			const struct el_cap *c = el_sched__cap(a.sched, i);

			assert_true(c->state_ns[CS_HASKELL] > 0);
		}
		for (size_t i = 0; i < si.n_threads; i++)
			calls += el_sched__thread(a.sched, i)->safe_calls;
		/* 3 threads, each with 2000 calls of getppid and one of usleep. */
		assert_true(calls >= 6003 && calls < 6100);
		assert_int_equal(el_annot__info(a.annot).n_spans, 3);
		assert_int_equal(el_annot__info(a.annot).unmatched, 0);
		assert_int_equal(el_annot__info(a.annot).n_sums, 1);
		/* Each includes its usleep. */
		assert_true(el_annot__sum(a.annot, 0)->min_ns >= 20000000);
		p = el_info__process(a.info);
		assert_true(p.wall_known);
		assert_non_null(strstr(p.rts, "rts_thr"));
		assert_non_null(strstr(p.args, "plain 300 2000 15"));
		assert_int_equal(el_info__note(a.info, 0)->id, EL_USER_MARKER);
		assert_string_equal(el_info__string(a.info, el_info__note(a.info, 0)->text),
				    "begin");
		assert_int_equal(p.pid, pid);
		all_free(&a);
	}
}

static uint32_t child_of(struct cctree *tree, uint32_t parent, uint32_t cc)
{
	uint32_t c = cctree__node(tree, parent)->first_child;

	while (c != CC_NO_NODE && cctree__node(tree, c)->cc != cc)
		c = cctree__node(tree, c)->next_sibling;
	return c;
}

/* Maps each node of GHC's report to the log tree's node; CC_NO_NODE if that node had no tick. */
static uint32_t *map_nodes(struct cctree *prof, struct cctree *tree)
{
	uint32_t *map = calloc(cctree__n_nodes(prof), sizeof(*map));

	assert_non_null(map);
	for (uint32_t i = 1; i < cctree__n_nodes(prof); i++) {
		struct cc_node *n = cctree__node(prof, i);
		struct cost_centre c = cctree__cc(prof, n->cc);
		uint32_t cc = cctree__find_cc(tree, c.label, c.module, c.srcloc);

		map[i] = CC_NO_NODE;
		if (map[n->parent] != CC_NO_NODE && cc != CC_NO_NODE)
			map[i] = child_of(tree, map[n->parent], cc);
	}
	return map;
}

static unsigned printed(uint64_t ticks, uint64_t total)
{
	char text[32];

	snprintf(text, sizeof(text), "%.1f", total ? (double)ticks / (double)total * 100.0 : 0.0);
	return (unsigned)(strtod(text, NULL) * 10 + 0.5);
}

/* The number of figures in GHC's report that differ from the log's tree, plus sums of ticks that
 * differ. */
static unsigned differences(const char *file)
{
	struct cctree_totals totals;
	struct cctree *prof, *tree;
	struct prof_info info;
	struct el_input *in;
	uint64_t seen = 0;
	unsigned differ = 0;
	uint32_t *map;
	char path[256];
	struct all a;

	all_read(&a, file);
	whole(&a.stats);
	assert_int_equal(el_profile__info(a.profile).unknown_centres, 0);
	assert_int_equal(el_profile__info(a.profile).interval_ns, 1000000);
	snprintf(path, sizeof(path), "%s/prof.prof", dir);
	assert_int_equal(w_open(path, &in), 0);
	assert_int_equal(prof__read(in, &prof, &info), 0);
	el_input__free(in);
	assert_int_equal(info.skipped, 0);
	assert_int_equal(el_profile__info(a.profile).n_lanes, info.capabilities);
	tree = el_profile__tree(a.profile);
	assert_int_equal(cctree__inherit(tree, &totals), 0);
	assert_true(totals.ticks > 10);
	/* -pj includes the RTS's own centres. */
	differ += totals.ticks + (info.has_ticks ? totals.ignored_ticks : 0) != info.total_ticks;
	map = map_nodes(prof, tree);
	for (uint32_t i = 0; i < cctree__n_nodes(prof); i++) {
		const struct cc_node *n = cctree__node(prof, i);
		uint64_t own = 0, inherited = 0;

		if (map[i] != CC_NO_NODE) {
			own = cctree__node(tree, map[i])->ticks;
			inherited = cctree__node(tree, map[i])->inherited_ticks;
		}
		seen += own;
		if (info.has_ticks)
			differ += own != n->ticks;
		else
			differ += printed(own, totals.ticks) != n->permille_time ||
				  printed(inherited, totals.ticks) != n->permille_inherited_time;
	}
	differ += seen != info.total_ticks;
	free(map);
	cctree__free(prof);
	all_free(&a);
	return differ;
}

/*
 * Compares with the same run's .prof, each figure to the printed digit, or with -pj to the tick. At
 * a tick the RTS reads the current stack twice, once to count it and once to log it
 * (rts/Proftimer.c), and the program may change the stack in between, or end: hence a program that
 * stays in one centre, and up to three tries.
 */
static void prof_equal(const char *flag, const char *caps)
{
	unsigned differ = 1;

	if (!have_prof)
		skip();
	for (int i = 0; i < 3 && differ; i++) {
		assert_int_equal(sh("cd %s && ./prof 30000 100 3 +RTS %s %s -V0.001 -l "
				    "-olp.eventlog >/dev/null",
				    dir, caps, flag),
				 0);
		differ = differences("p.eventlog");
	}
	assert_int_equal(differ, 0);
}

static void t_prof_equal(void **state)
{
	(void)state;
	prof_equal("-p", "-N1");
	prof_equal("-p", "-N2");
}

static void t_pj_equal(void **state)
{
	(void)state;
	prof_equal("-pj", "-N1");
	prof_equal("-pj", "-N2");
}

static int count(void *ctx, const struct el_event *ev)
{
	uint64_t *n = ctx;

	(void)ev;
	(*n)++;
	return 0;
}

/* A real log, truncated at many places and damaged: reading ends, and every byte is accounted
 * for. */
static void t_damaged(void **state)
{
	uint8_t *data = NULL, *copy;
	size_t cap = 0, len = 0;
	uint32_t seed = 7;
	uint64_t lost = 0;
	char path[256];
	FILE *f;

	(void)state;
	if (!have_plain)
		skip();
	assert_int_equal(
		sh("cd %s && ./plain 10 300 5 +RTS -N2 -l -olsmall.eventlog >/dev/null", dir), 0);
	snprintf(path, sizeof(path), "%s/small.eventlog", dir);
	f = fopen(path, "r");
	assert_non_null(f);
	do {
		assert_int_equal(array__reserve((void **)&data, &cap, len + 65536, 64u << 20, 1),
				 0);
		len += fread(data + len, 1, cap - len, f);
	} while (!feof(f));
	fclose(f);
	copy = malloc(len);
	assert_non_null(copy);
	for (unsigned round = 0; round < 600; round++) {
		const struct eventlog_stats *st;
		struct eventlog *log;
		uint64_t n = 0;
		size_t size = len;
		int fd, err;

		memcpy(copy, data, len);
		if (round % 2) {
			size = len * (round / 2) / 300;
		} else {
			for (unsigned i = 0; i < 20; i++) {
				seed = seed * 1664525u + 1013904223u;
				copy[2700 + (seed >> 8) % (len - 2700)] = (uint8_t)(seed >> 3);
			}
		}
		fd = w_file(copy, size);
		assert_int_equal(eventlog__new(NULL, &log), 0);
		assert_int_equal(w_subscribe_all(log, count, &n), 0);
		assert_int_equal(eventlog__open_fd(log, fd), 0);
		err = eventlog__finish(log);
		st = eventlog__stats(log);
		assert_int_equal(err, 0);
		assert_int_equal(st->bytes_in, size);
		assert_int_equal(st->header_bytes + st->event_bytes + st->lost_bytes, size);
		if (!(round % 2))
			lost += st->lost_bytes;
		else
			assert_true(st->lost_bytes < 70000);
		eventlog__free(log);
		close(fd);
	}
	/*
	 * Twenty wrong bytes cost a few hundred on average; if one hits a block's marker, that
	 * block cannot be distinguished from others and is lost.
	 */
	printf("damaged: %.2f %% lost on average\n", 100.0 * (double)lost / (300.0 * (double)len));
	assert_true(lost < 300 * len / 10);
	free(copy);
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_scheduler),
		cmocka_unit_test(t_prof_equal),
		cmocka_unit_test(t_pj_equal),
		cmocka_unit_test(t_damaged),
	};

	return cmocka_run_group_tests(tests, compile, clean);
}
