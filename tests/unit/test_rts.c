/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finding the runtime in real programs, which are compiled here by the installed GHC in all ways,
 * and which run while they are examined. Without GHC these tests are skipped.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "process/image.h"
#include "rts/rts_find_priv.h"
#include "target/target.h"
#include "target/target_priv.h"

static char dir[] = "/tmp/safescoped-test-rts-XXXXXX";

static const char haskell[] =
	"{-# LANGUAGE ForeignFunctionInterface, InterruptibleFFI #-}\n"
	"module Main where\n"
	"import Control.Concurrent\n"
	"import Control.Monad\n"
	"import Foreign.C.Types\n"
	"import System.IO\n"
	"foreign import ccall safe \"test_sleep\" testSleep :: CInt -> IO ()\n"
	"foreign import ccall unsafe \"test_spin\" testSpin :: CInt -> IO CInt\n"
	"sleeper :: IO ()\n"
	"sleeper = testSleep 600 >> putStrLn \"slept\"\n"
	"{-# NOINLINE sleeper #-}\n"
	"main :: IO ()\n"
	"main = do\n"
	"  hSetBuffering stdout LineBuffering\n"
	"  when rtsSupportsBoundThreads $ void (forkIO sleeper)\n"
	"  threadDelay 1000\n"
	"  _ <- testSpin 3\n"
	"  putStrLn \"ready\"\n"
	"  sleeper\n";

static const char c_part[] =
	"#include <unistd.h>\n"
	"/* the RTS timer of the non-threaded way interrupts it */\n"
	"void test_sleep(int s) { while (s > 0) s = (int)sleep((unsigned)s); }\n"
	"int test_spin(int n) { volatile int x = n; return x * 2; }\n";

struct way {
	const char *name, *flags, *rts, *want;
	bool threaded, profiled, debug, dynamic;
	uint32_t caps;
};

static const struct way ways[] = {
	{"v", "", "", "rts_v", false, false, false, false, 1},
	{"thr", "-threaded", "", "rts_thr", true, false, false, false, 1},
	{"thr2", "-threaded", "-N3", "rts_thr", true, false, false, false, 3},
	{"debug", "-threaded -debug", "", "rts_thr_debug", true, false, true, false, 1},
	{"dyn", "-threaded -dynamic", "-N2", "rts_thr_dyn", true, false, false, true, 2},
	{"p", "-prof", "", "rts_p", false, true, false, false, 1},
	{"thr_p", "-threaded -prof", "", "rts_thr_p", true, true, false, false, 1},
	/* mold puts mergeable strings into a section of their own */
	{"mold", "-threaded -optl-fuse-ld=mold", "", "rts_thr", true, false, false, false, 1},
};

static bool run(const char *command)
{
	int status = system(command);

	return status == 0;
}

static void write_file(const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static bool have_ghc(void)
{
	return run("ghc --version >/dev/null 2>&1");
}

static int setup(void **state)
{
	(void)state;
	if (!have_ghc())
		return 0;
	if (!mkdtemp(dir))
		return -1;
	write_file("Main.hs", haskell);
	write_file("part.c", c_part);
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	run(command);
	return 0;
}

/*
 * Compiles Main.hs, starts it and waits until it prints that it is ready. Returns 0 if it cannot be
 * compiled.
 */
static pid_t start(const struct way *way)
{
	char command[1024], exe[256], line[16] = "";
	int out[2];
	pid_t pid;
	FILE *f;

	snprintf(command, sizeof(command),
		 "cd %s && mkdir -p o.%s && ghc -v0 -O1 -rtsopts -outputdir o.%s %s Main.hs part.c "
		 "-o %s >/dev/null 2>&1",
		 dir, way->name, way->name, way->flags, way->name);
	if (!run(command))
		return 0;
	snprintf(exe, sizeof(exe), "%s/%s", dir, way->name);
	assert_int_equal(pipe(out), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(out[1], 1);
		close(out[0]);
		close(out[1]);
		if (way->rts[0])
			execl(exe, exe, "+RTS", way->rts, "-RTS", (char *)NULL);
		else
			execl(exe, exe, (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	f = fdopen(out[0], "r");
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f));
	assert_string_equal(line, "ready\n");
	fclose(f);
	return pid;
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static uint64_t symbol(const struct target *t, const char *name)
{
	const struct image *exe = images__exe(&t->images);
	struct elf_sym sym;

	if (!exe || elf__find_symbol(exe->elf, name, &sym, NULL) < 0)
		return 0;
	return image__addr(exe, sym.value);
}

static void check_class(struct target *t, const char *name, enum code_class want)
{
	uint64_t addr = symbol(t, name);
	struct code_name n;

	assert_true(addr != 0);
	target__name(t, addr | ((uint64_t)WIRE_FRAME_C_IP << WIRE_FRAME_KIND_SHIFT), &n);
	if (n.code != want)
		fail_msg("%s is of class %d, not %d", name, n.code, want);
	assert_true(n.source == NAME_EXACT);
}

static void check_names(struct target *t, const struct way *way)
{
	struct code_name n, again;
	uint64_t addr;

	check_class(t, "test_spin", CODE_C);
	check_class(t, "test_sleep", CODE_C);
	check_class(t, "Main_main_info", CODE_HASKELL);
	if (!way->dynamic) {
		check_class(t, "suspendThread", CODE_RTS);
		check_class(t, "scheduleWaitThread", CODE_RTS);
		check_class(t, "newCAF", CODE_RTS);
		check_class(t, "GarbageCollect", CODE_GC);
		check_class(t, "evacuate", CODE_GC);
		check_class(t, "stg_upd_frame_info", CODE_HASKELL);
	}
	addr = symbol(t, "Main_main_info");
	target__name(t, addr | ((uint64_t)WIRE_FRAME_HS_RET << WIRE_FRAME_KIND_SHIFT), &n);
	assert_string_equal(n.name, "main");
	assert_string_equal(n.module, "Main");
	assert_string_equal(n.file, way->name);
	target__name(t, addr, &again);
	assert_ptr_equal(n.name, again.name);
	assert_ptr_equal(n.module, again.module);
	target__name(t, 16, &n);
	assert_string_equal(n.name, "[unmapped]");
}

/* The kernel shows no registers of a running thread. */
static bool all_asleep(const struct snapshot *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->threads[i].rts.where == WIRE_WHERE_SAFE_CALL &&
		    (s->threads[i].state == 'R' || s->threads[i].syscall == WIRE_NO_SYSCALL))
			return false;
	return true;
}

static int snapshot_of(struct target *t, struct snapshot *ret_snapshot)
{
	int err = target__start_snapshot(t, 5000);

	if (err)
		return err;
	while ((err = target__take_snapshot(t, ret_snapshot)) == -EINPROGRESS) {
		struct pollfd p = {.fd = target__look_fd(t), .events = POLLIN};

		assert_true(target__looks(t));
		poll(&p, 1, 100);
	}
	assert_false(target__looks(t));
	return err;
}

/*
 * Without -threaded the runtime's timer keeps waking the sleeper: the snapshot is repeated if it
 * came at such a moment.
 */
static void take_snapshot(struct target *t, struct snapshot *ret_snapshot)
{
	const struct timespec again = {.tv_nsec = 20000000};

	for (int tries = 0; tries < 500; tries++) {
		assert_int_equal(snapshot_of(t, ret_snapshot), 0);
		if (all_asleep(ret_snapshot))
			return;
		snapshot__free(ret_snapshot);
		nanosleep(&again, NULL);
	}
	fail_msg("the program's thread never slept");
}

/* Checks how the snapshot shows the thread that sleeps in test_sleep. */
static void check_snapshot(struct target *t)
{
	const struct target_info *info = target__info(t);
	struct snapshot s;
	size_t sleepers = 0;

	take_snapshot(t, &s);
	assert_true(s.n >= 1);
	for (size_t i = 0; i < s.n; i++) {
		const struct snap_thread *th = &s.threads[i];
		struct target_site site;
		struct code_name n;

		if (th->rts.where != WIRE_WHERE_SAFE_CALL)
			continue;
		assert_true(th->rts.tso_id > 0);
		assert_int_equal(th->stack.end, WIRE_END_COMPLETE);
		assert_true(th->incall != 0);
		if (!th->site)
			fail_msg("tid %d (%s, state %c, system call %u): no site", th->tid,
				 th->comm, th->state, th->syscall);
		assert_int_equal(target__site(t, th->site, &site), 0);
		if (strcmp(site.function, "test_sleep") != 0)
			continue;
		sleepers++;
		assert_true(site.site == th->site);
		assert_true(site.caller.code == CODE_HASKELL);
		assert_string_equal(site.file, site.library);
		/* leaf first: the call, then Haskell frames down to the end of the thread */
		target__name(t, th->frames[0], &n);
		assert_string_equal(n.name, "test_sleep");
		target__name(t, th->frames[th->stack.nframes - 1], &n);
		assert_non_null(strstr(n.name, "stg_stop_thread"));
	}
	assert_int_equal(sleepers, info->threaded ? 2 : 1);
	snapshot__free(&s);
}

static void check_probe(const struct target_probe *p, enum rts_found found)
{
	assert_int_equal(p->found, found);
	assert_true(p->offset != 0 && p->addr != 0);
	assert_int_equal(access(p->path, R_OK), 0);
}

static void check_way(const struct way *way, pid_t pid)
{
	enum rts_found found = way->dynamic ? FOUND_DYNSYM : FOUND_SYMTAB;
	enum target_verdict verdict = TARGET_NOT_READY;
	const struct target_info *info;
	struct target *t = NULL;

	assert_int_equal(target__open(pid, NULL, &t, &verdict), 0);
	assert_int_equal(verdict, TARGET_OK);
	info = target__info(t);
	assert_int_equal(info->pid, pid);
	assert_string_equal(info->comm, way->name);
	assert_string_equal(info->way, way->want);
	assert_int_equal(info->threaded, way->threaded);
	assert_int_equal(info->profiled, way->profiled);
	assert_int_equal(info->debug, way->debug);
	assert_int_equal(info->dynamic_rts, way->dynamic);
	assert_int_equal(info->capabilities, way->caps);
	assert_true(info->version_known && info->layout_checked);
	check_probe(&info->suspend, found);
	check_probe(&info->resume, found);
	/* the kernel must not have to single-step: rdi, rsi and the stack are those at the call */
	assert_true(info->suspend.emulated && info->resume.emulated);
	/*
	 * the ticker thread shows the ticks, if there is one and not every tick has to be counted
	 */
	if (way->threaded && !way->profiled) {
		assert_int_equal(info->tick.found, FOUND_TICKER);
	} else if (!way->dynamic) {
		check_probe(&info->tick, found);
		assert_true(info->tick.emulated);
	}
	if (!way->dynamic) {
		check_probe(&info->gc_start, found);
		check_probe(&info->gc_end, found);
		assert_int_equal(info->wire.capabilities, symbol(t, "capabilities"));
		assert_int_equal(info->wire.n_capabilities, symbol(t, "n_capabilities"));
	}
	assert_true(info->wire.stgrun_ret != 0);
	assert_int_equal(info->wire.my_task_tls < 0 || info->wire.my_task_module, way->threaded);
	/* a library's TLS block is reached through the DTV */
	assert_int_equal(info->wire.my_task_module != 0, way->threaded && way->dynamic);
	if (!way->threaded)
		assert_int_equal(info->wire.main_cap, symbol(t, "MainCapability"));
	assert_true(target__alive(t));
	check_names(t, way);
	check_snapshot(t);
	assert_int_equal(target__refresh_maps(t), 0);
	stop(pid);
	assert_false(target__alive(t));
	target__free(t);
}

static struct target *open_file(const char *way, const char *suffix)
{
	struct target *t = NULL;
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s%s", dir, way, suffix);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(target__open_file(fd, path, NULL, &t), 0);
	close(fd);
	return t;
}

static void same_place(const struct target_probe *want, const struct target_probe *got)
{
	assert_int_equal(want->found, FOUND_SYMTAB);
	assert_int_equal(got->found, FOUND_STRINGS);
	assert_int_equal(got->offset, want->offset);
}

/* Without symbols the end of a collection is found at the same places; runs after test_ways. */
static void test_gc_without_symbols(void **state)
{
	static const char *const names[] = {"v", "thr", "p", "thr_p", "mold"};
	char command[1024];
	size_t done = 0;

	(void)state;
	if (!have_ghc())
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct target *whole, *bare;

		snprintf(command, sizeof(command), "cd %s && strip -o %s.bare %s 2>/dev/null", dir,
			 names[i], names[i]);
		if (!run(command))
			continue;
		whole = open_file(names[i], "");
		bare = open_file(names[i], ".bare");
		same_place(&target__info(whole)->gc_start, &target__info(bare)->gc_start);
		same_place(&target__info(whole)->gc_end, &target__info(bare)->gc_end);
		assert_int_equal(whole->rts.stats.found, FOUND_SYMTAB);
		assert_int_equal(bare->rts.stats.found, FOUND_CODE);
		assert_int_equal(bare->rts.stats.addr, whole->rts.stats.addr);
		/* only the threads of a threaded runtime have to be synchronised */
		if (target__info(whole)->threaded)
			same_place(&target__info(whole)->gc_sync, &target__info(bare)->gc_sync);
		target__free(bare);
		target__free(whole);
		done++;
	}
	assert_true(done >= 2);
	/* with another string nothing is mistaken for the function */
	snprintf(command, sizeof(command),
		 "cd %s && sed 's/(Gen: %%2d)/(gen: %%2d)/' thr.bare >thr.other", dir);
	assert_true(run(command));
	{
		struct target *other = open_file("thr", ".other");

		assert_int_equal(target__info(other)->gc_start.found, FOUND_NONE);
		assert_int_equal(target__info(other)->gc_end.found, FOUND_NONE);
		assert_int_equal(target__info(other)->gc_sync.found, FOUND_NONE);
		assert_int_equal(other->rts.stats.found, FOUND_NONE);
		target__free(other);
	}
}

static void test_ways(void **state)
{
	struct timespec settle = {.tv_nsec = 100000000};
	size_t done = 0;

	(void)state;
	if (!have_ghc())
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		pid_t pid = start(&ways[i]);

		if (!pid) {
			print_message("no GHC libraries, or no linker, for way %s: left out\n",
				      ways[i].name);
			continue;
		}
		nanosleep(&settle, NULL);
		print_message("way %s\n", ways[i].name);
		check_way(&ways[i], pid);
		done++;
	}
	/* every GHC comes with the plain and threaded ways */
	assert_true(done >= 3);
}

static void test_not_ghc(void **state)
{
	enum target_verdict verdict;
	struct target *t = NULL;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	assert_int_equal(target__open(pid, NULL, &t, &verdict), -ENOEXEC);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(target__open(pid, NULL, &t, &verdict), -ESRCH);
	assert_int_equal(target__open(0, NULL, &t, &verdict), -ESRCH);
	assert_int_equal(target__open(-5, NULL, &t, &verdict), -ESRCH);
	assert_null(t);
}

static void check_name_way(const char *way, bool threaded, bool profiled, bool debug)
{
	struct rts rts = {0};

	rts_strings__set_way(&rts, way);
	assert_int_equal(rts.threaded, threaded);
	assert_int_equal(rts.profiled, profiled);
	assert_int_equal(rts.debug, debug);
}

static void test_way_names(void **state)
{
	(void)state;
	check_name_way("rts_v", false, false, false);
	check_name_way("rts_thr", true, false, false);
	check_name_way("rts_p", false, true, false);
	check_name_way("rts_thr_p", true, true, false);
	check_name_way("rts_thr_debug_p", true, true, true);
	check_name_way("rts_thr_l", true, false, false);
	check_name_way("rts_debug_dyn", false, false, true);
	check_name_way("rts_thr_p_dyn", true, true, false);
}

/* What a process that reads a file may hand back about where its functions are probed. */
static void test_probes_handed_over(void **state)
{
	const struct rts_probe good = {.known = true,
				       .choice = {.offset = INSN_PROBE_WINDOW - 1,
						  .emulated = true,
						  .stack = 8,
						  .text = "push %r15"}};
	const uint8_t two = 2;
	struct rts rts = {.probes = {good}};

	(void)state;
	assert_true(rts__check_read(&rts, NULL));
	rts.probes[0].choice.offset++;
	assert_false(rts__check_read(&rts, NULL));
	rts.probes[0] = good;
	memset(rts.probes[0].choice.text, 'x', sizeof(rts.probes[0].choice.text));
	assert_false(rts__check_read(&rts, NULL));
	rts.probes[0] = good;
	rts.probes[0].choice.text[0] = '\x1b';
	assert_false(rts__check_read(&rts, NULL));
	rts.probes[0] = good;
	memcpy(&rts.probes[0].choice.args_intact, &two, 1);
	assert_false(rts__check_read(&rts, NULL));
	rts.probes[0] = good;
	memcpy(&rts.probes[RTS_PROBED - 1].known, &two, 1);
	assert_false(rts__check_read(&rts, NULL));
}

/* What it may hand back about what it found in a process's memory. */
static void test_check_handed_over(void **state)
{
	const uint8_t two = 2;
	struct check_result good = {.variant = LAYOUT_NOCLK, .n_caps = CHECK_MAX_CAPS}, r = good;

	(void)state;
	assert_true(check_result__is_one(&r));
	r.n_caps++;
	assert_false(check_result__is_one(&r));
	r = good;
	r.variant = LAYOUT_VARIANTS;
	assert_false(check_result__is_one(&r));
	r = good;
	r.verdict = CHECK_FAILED + 1;
	assert_false(check_result__is_one(&r));
	r = good;
	r.caps_found = FOUND_CODE + 1;
	assert_false(check_result__is_one(&r));
	r = good;
	memcpy(&r.tls_checked, &two, 1);
	assert_false(check_result__is_one(&r));
	r = good;
	memset(r.why, 'x', sizeof(r.why));
	assert_false(check_result__is_one(&r));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_way_names),
		cmocka_unit_test(test_not_ghc),
		cmocka_unit_test(test_ways),
		cmocka_unit_test(test_gc_without_symbols),
		cmocka_unit_test(test_probes_handed_over),
		cmocka_unit_test(test_check_handed_over),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
