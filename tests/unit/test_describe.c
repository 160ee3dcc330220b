/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Info tables found in code, compared with nm's output for a program that GHC has compiled: each
 * label of a function, thunk or frame begins a block. In a profiled program, functions that are not
 * exported have no symbols and are found by their descriptions. Skipped without GHC.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/base.h"
#include "elf/elf.h"
#include "names/describe_priv.h"

#define MANY 100

static char dir[] = "/tmp/safescoped-test-XXXXXX";

static const char program[] = "module Main (main, gamma) where\n"
			      "import qualified Data.Map as M\n"
			      "alpha :: Int -> Int\n"
			      "alpha n = if n < 1 then 0 else n + beta (n - 1)\n"
			      "{-# NOINLINE alpha #-}\n"
			      "beta :: Int -> Int\n"
			      "beta n = length (show n) + alpha (n - 1)\n"
			      "{-# NOINLINE beta #-}\n"
			      "gamma :: M.Map Int String -> IO ()\n"
			      "gamma m = mapM_ (\\k -> print (M.lookup k m)) [1 .. 9]\n"
			      "{-# NOINLINE gamma #-}\n"
			      "(∘∘) :: Int -> Int -> Int\n"
			      "a ∘∘ b = if a < 1 then b else alpha (a ∘∘ (b - 1))\n"
			      "{-# NOINLINE (∘∘) #-}\n"
			      "main :: IO ()\n"
			      "main = print (alpha 9 ∘∘ 1) >> gamma (M.fromList [(1, \"x\")])\n";

__attribute__((format(printf, 1, 2))) static int sh(const char *format, ...)
{
	char command[512];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	return n < 0 || (size_t)n >= sizeof(command) ? -1 : system(command);
}

static struct elf_file *compiled(const char *flags)
{
	struct elf_file *elf = NULL;
	char path[64];

	if (system("command -v ghc nm >/dev/null 2>&1") != 0)
		return NULL;
	if (sh("cd %s && ghc -v0 -fforce-recomp %s -o T Main.hs >/dev/null 2>&1 && nm T >symbols",
	       dir, flags))
		return NULL;
	snprintf(path, sizeof(path), "%s/T", dir);
	assert_int_equal(elf__open_fd(open(path, O_RDONLY | O_CLOEXEC), path, &elf), 0);
	return elf;
}

/* Of the runtime: its frames of all kinds, and closures that run code when they are entered. */
static bool is_runtimes(const char *label)
{
	static const char *const labels[] = {
		"stg_catch_frame_info",
		"stg_catch_retry_frame_info",
		"stg_atomically_frame_info",
		"stg_atomically_waiting_frame_info",
		"stg_catch_stm_frame_info",
		"stg_stack_underflow_frame_info",
		"stg_gc_fun_info",
		"stg_ctoi_R1p_info",
		"stg_apply_interp_info",
		"stg_upd_frame_info",
		"stg_stop_thread_info",
		"stg_AP_info",
		"stg_PAP_info",
		"stg_AP_STACK_info",
		"stg_BCO_info",
		"stg_IND_info",
		"stg_IND_STATIC_info",
		"stg_BLACKHOLE_info",
	};

	for (size_t i = 0; i < ARRAY_SIZE(labels); i++)
		if (strcmp(label, labels[i]) == 0)
			return true;
	return false;
}

/* Of the base library: "base_GHCziBase_map_info". */
static bool is_bases(const char *label)
{
	size_t len = strlen(label);

	return len >= 10 && strncmp(label, "base_", 5) == 0 &&
	       strcmp(label + len - 5, "_info") == 0 && !strstr(label, "_con_info");
}

/* The next label of either: "0000000000409d48 T base_GHCziBase_map_info". */
static bool next_label(FILE *symbols, uint64_t *ret_at)
{
	char line[2048];

	while (fgets(line, sizeof(line), symbols)) {
		char *label;
		uint64_t at = strtoull(line, &label, 16);

		label[strcspn(label, "\n")] = '\0';
		if (strlen(label) < 3 || (!is_bases(label + 3) && !is_runtimes(label + 3)))
			continue;
		*ret_at = at;
		return true;
	}
	return false;
}

static FILE *open_symbols(void)
{
	char path[64];
	FILE *symbols;

	snprintf(path, sizeof(path), "%s/symbols", dir);
	symbols = fopen(path, "re");
	assert_non_null(symbols);
	return symbols;
}

static void check_blocks(struct elf_file *elf, const struct describe *d)
{
	FILE *symbols = open_symbols();
	uint64_t at;
	int n = 0;

	while (next_label(symbols, &at)) {
		for (unsigned i = 0; i < 8; i++)
			assert_int_equal(describe__block(d, elf, at + i), at);
		n++;
	}
	fclose(symbols);
	assert_true(n >= MANY);
	assert_int_equal(describe__block(d, elf, 0), 0);
	assert_int_equal(describe__block(d, elf, 5), 5);
	assert_int_equal(describe__block(d, elf, UINT64_MAX), UINT64_MAX);
}

static void blocks(void **state)
{
	struct elf_file *elf = compiled("");
	struct describe *d = NULL;
	struct describe_name name;
	struct elf_code code;

	(void)state;
	if (!elf)
		skip();
	assert_int_equal(describe__new(elf, false, &d), 0);
	check_blocks(elf, d);
	assert_true(elf__code_ranges(elf, &code, 1) == 1);
	assert_false(describe__closure(d, elf, code.start, &name));
	describe__free(d);
	elf__free(elf);
}

/* The function itself or its worker. */
static bool is_called(const char *name, const char *wanted)
{
	return strcmp(name + (strncmp(name, "$w", 2) == 0 ? 2 : 0), wanted) == 0;
}

static void closures(void **state)
{
	static const char *const wanted[] = {"alpha", "beta", "gamma", "\xef\xbf\xbd\xef\xbf\xbd"};
	struct elf_code ranges[16];
	struct elf_file *elf = compiled("-prof");
	struct describe *d = NULL;
	struct describe_name name;
	bool seen[ARRAY_SIZE(wanted)] = {false};
	size_t n;

	(void)state;
	/* GHC's profiling libraries are a separate package */
	if (!elf)
		skip();
	assert_int_equal(describe__new(elf, true, &d), 0);
	check_blocks(elf, d);
	n = elf__code_ranges(elf, ranges, ARRAY_SIZE(ranges));
	for (size_t i = 0; i < n; i++)
		for (uint64_t at = ranges[i].start; at < ranges[i].end; at++)
			for (size_t k = 0; k < ARRAY_SIZE(wanted); k++)
				seen[k] |= describe__closure(d, elf, at, &name) &&
					   !strcmp(name.module, "Main") &&
					   is_called(name.name, wanted[k]);
	for (size_t k = 0; k < ARRAY_SIZE(wanted); k++)
		assert_true(seen[k]);
	assert_false(describe__closure(d, elf, 0, &name));
	describe__free(d);
	elf__free(elf);
}

/* A closure without a name of its own is in the next one that has one, of the same module. */
static void enclosing(void **state)
{
	struct elf_file *elf = compiled("-O -prof");
	struct describe *d = NULL;
	struct describe_name name, outer;
	struct elf_code ranges[16];
	bool seen = false;
	size_t n;

	(void)state;
	if (!elf)
		skip();
	assert_int_equal(describe__new(elf, true, &d), 0);
	n = elf__code_ranges(elf, ranges, ARRAY_SIZE(ranges));
	for (size_t i = 0; i < n; i++)
		for (uint64_t at = ranges[i].start; at < ranges[i].end; at++) {
			if (!describe__closure(d, elf, at, &name) ||
			    strcmp(name.module, "Main") != 0 || strncmp(name.name, "sat_", 4) != 0)
				continue;
			assert_true(describe__enclosing(d, at, name.module, &outer));
			assert_string_equal(outer.module, "Main");
			assert_null(strstr(outer.name, "sat"));
			assert_false(describe__enclosing(d, at, "Other", &outer));
			seen = true;
		}
	assert_true(seen);
	describe__free(d);
	elf__free(elf);
}

static int setup(void **state)
{
	char path[64];
	FILE *out;

	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/Main.hs", dir);
	out = fopen(path, "we");
	if (!out)
		return -1;
	fputs(program, out);
	return fclose(out);
}

static int teardown(void **state)
{
	(void)state;
	return sh("rm -rf %s", dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks),
		cmocka_unit_test(closures),
		cmocka_unit_test(enclosing),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
