/* SPDX-License-Identifier: GPL-2.0-or-later */
/* GHC's own DWARF for code compiled here. */
#include <errno.h>
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
#include "dwarf_kit.h"
#include "elf_files.h"

/* Compiles the source by GHC with -O and these flags; returns NULL if there is no GHC. */
static struct elf_file *compile_with(const char *flags, const char *source)
{
	char dir[] = "/tmp/safescoped-dwarf-XXXXXX", command[256], path[64];
	struct elf_file *elf = NULL;
	FILE *f;
	bool have;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/T.hs", dir);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(source, f);
	fclose(f);
	snprintf(command, sizeof(command), "cd %s && ghc -v0 -O %s T.hs -o T >/dev/null 2>&1", dir,
		 flags);
	have = system(command) == 0;
	snprintf(path, sizeof(path), "%s/T", dir);
	if (have)
		assert_int_equal(elf__open_fd(open(path, O_RDONLY | O_CLOEXEC), path, &elf), 0);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
	return elf;
}

static struct elf_file *compile(const char *source)
{
	return compile_with("-g1", source);
}

/*
 * With -g1 GHC records only the first block of a function: the code up to the next function still
 * belongs to it and has lines.
 */
static void ghc_blocks(void **state)
{
	struct elf_file *elf = compile("module Main (main, work) where\n"
				       "import System.IO\n"
				       "work :: Handle -> [String] -> IO Int\n"
				       "work h xs = do\n"
				       "  mapM_ (hPutStrLn h) xs\n"
				       "  n <- hFileSize h\n"
				       "  pure (fromIntegral n + length xs)\n"
				       "{-# NOINLINE work #-}\n"
				       "main :: IO ()\n"
				       "main = work stderr [] >>= print\n");
	static const char *const workers[] = {"Main_zdwwork_info", "Main_work1_info",
					      "Main_main2_info"};
	const char *worker = NULL;
	struct dwarf_place place;
	struct elf_sym sym = {0};
	struct dwarf *dwarf;
	size_t lines = 0, n = 0;
	uint64_t from;

	(void)state;
	if (!elf)
		skip();
	assert_int_equal(dwarf__new(elf, &dwarf), 0);
	/* the name that optimisation leaves, which depends on GHC's version */
	for (size_t i = 0; i < ARRAY_SIZE(workers) && !worker; i++)
		if (elf__find_symbol(elf, workers[i], &sym, NULL) == 0)
			worker = workers[i];
	assert_non_null(worker);
	from = sym.value;
	/* well beyond its first block, which ends at its first call */
	for (; n < 160; n += 16) {
		assert_int_equal(dwarf__find(dwarf, helpers, from + n, &place), 0);
		assert_true(place.haskell);
		assert_int_equal(place.proc, from);
		assert_string_equal(place.linkage, worker);
		lines += place.line >= 3 && place.line <= 7;
	}
	assert_true(lines >= 5);
	dwarf__free(dwarf);
	elf__free(elf);
}

/* Reads the DWARF of the file; *ret_main: a place in Main's unit. */
static struct dwarf_reader *read_main(struct elf_file *elf, struct dwarf_place *ret_main)
{
	struct dwarf_reader *reader;
	struct elf_sym sym;
	size_t size;
	void *data;

	assert_int_equal(elf__find_symbol(elf, "Main_main_info", &sym, NULL), 0);
	assert_int_equal(elf__writable(elf, &data, &size), 0);
	assert_int_equal(dwarf_reader__new(data, size, &reader), 0);
	assert_int_equal(dwarf_reader__find(reader, sym.value, ret_main), 0);
	return reader;
}

#define MAX_PLACES 256

/* Returns true if both places would get the same name. */
static bool same_name(const struct dwarf_place *a, const struct dwarf_place *b)
{
	if (strcmp(a->name, b->name) != 0 || a->inner != b->inner)
		return false;
	return !a->inner || (a->proc_line == b->proc_line && a->nth == b->nth);
}

/* Closures inside a binding, three of which begin in one line, have different names. */
static void ghc_closures(void **state)
{
	struct elf_file *elf =
		compile("module Main (main, serve) where\n"
			"import Control.Concurrent\n"
			"import System.IO\n"
			"serve :: Int -> IO Int\n"
			"serve n = do\n"
			"  r <- newEmptyMVar\n"
			"  _ <- forkIO (hPrint stderr n); _ <- forkIO (hPrint stdout (n + 1)); "
			"_ <- forkIO (putMVar r n)\n"
			"  _ <- forkIO $ do\n"
			"    hPrint stderr (n * 2)\n"
			"    putMVar r 3\n"
			"  takeMVar r\n"
			"{-# NOINLINE serve #-}\n"
			"main :: IO ()\n"
			"main = serve 10 >>= print\n");
	struct dwarf_place *places, place;
	size_t n = 0, inner = 0, more = 0;
	struct dwarf_reader *reader;
	uint64_t end;

	(void)state;
	if (!elf)
		skip();
	places = calloc(MAX_PLACES, sizeof(*places));
	assert_non_null(places);
	reader = read_main(elf, &place);
	end = place.cu_end;
	for (uint64_t at = place.cu_start; at < end; at++) {
		if (dwarf_reader__find(reader, at, &place) ||
		    (n && places[n - 1].proc == place.proc))
			continue;
		assert_true(n < MAX_PLACES);
		places[n++] = place;
	}
	for (size_t i = 0; i < n; i++) {
		const struct dwarf_place *p = &places[i];

		inner += p->inner && !strcmp(p->name, "serve");
		more += p->inner && p->nth > 1;
		for (size_t k = 0; k < i; k++)
			assert_false(p->inner && p->proc != places[k].proc &&
				     same_name(p, &places[k]));
	}
	/* the forked closures of lines 7 and 8, and what they print */
	assert_true(inner >= 4);
	assert_true(more >= 1);
	dwarf_reader__free(reader);
	free(places);
	elf__free(elf);
}

/* Names that look like labels are kept, and labels that look like names are no names. */
static void ghc_names_like_labels(void **state)
{
	struct elf_file *elf = compile_with(
		"-g", "module Main (main) where\n"
		      "import qualified Data.Map as M\n"
		      "checkAll, cmpKeys :: Int -> Int -> Int\n"
		      "checkAll k n = if n < k then cmpKeys n k else cmpKeys k n + 1\n"
		      "{-# NOINLINE checkAll #-}\n"
		      "cmpKeys a b = length (show (M.fromListWith (+) (zip (show a) [b ..])))\n"
		      "{-# NOINLINE cmpKeys #-}\n"
		      "copy :: Int -> Int -> Int\n"
		      "copy a b = if even a then checkAll a b + 1 else checkAll b a\n"
		      "{-# NOINLINE copy #-}\n"
		      "main :: IO ()\n"
		      "main = getLine >>= print . copy 3 . read\n");
	static const char *const names[] = {"checkAll", "cmpKeys", "copy"};
	bool seen[ARRAY_SIZE(names)] = {0};
	struct dwarf_reader *reader;
	struct dwarf_place place;
	uint64_t end;

	(void)state;
	if (!elf)
		skip();
	reader = read_main(elf, &place);
	end = place.cu_end;
	for (uint64_t at = place.cu_start; at < end; at++) {
		if (dwarf_reader__find(reader, at, &place) || !place.name[0])
			continue;
		for (size_t i = 0; i < ARRAY_SIZE(names); i++)
			seen[i] |= !strcmp(place.name, names[i]);
		/* the program has no other name of this length that begins so */
		assert_false(place.name[0] == 'c' && strlen(place.name) <= 5 &&
			     strcmp(place.name, "copy") != 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_true(seen[i]);
	dwarf_reader__free(reader);
	elf__free(elf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ghc_blocks),
		cmocka_unit_test(ghc_closures),
		cmocka_unit_test(ghc_names_like_labels),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
