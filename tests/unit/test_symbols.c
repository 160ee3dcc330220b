/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The index of code symbols: for labels that this test defines, tiny.elf, and a GHC program. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/base.h"
#include "confine/confine.h"
#include "elf/elf_priv.h"
#include "elf/symbols.h"
#include "elf_files.h"

#define TINY "tests/data/tiny.elf" /* see tiny.c beside it */

/* Symbols as compilers and assembly code leave them. One nop is one byte. */
__asm__(".text\n"
	".type tsym_local, @function\n"
	"tsym_local:\n\t.skip 8, 0x90\n"
	".size tsym_local, 8\n"
	".skip 8, 0x90\n" /* after its end: part of no symbol */
	".globl tsym_Outer\n.type tsym_Outer, @function\n"
	"tsym_Outer:\n\t.skip 8, 0x90\n"
	"tsym_inner_label:\n\t.skip 8, 0x90\n" /* local: the function is a better name */
	".globl tsym_Inner\n"
	"tsym_Inner:\n\t.skip 8, 0x90\n" /* global, without size: like StgReturn */
	".size tsym_Outer, . - tsym_Outer\n"
	/* one address, four names; the size belongs to another name than the best one */
	".globl tsym_M_f_info, tsym_M_f_entry, _tsym_alias\n"
	".type tsym_M_f_entry, @function\n.type _tsym_alias, @function\n"
	"tsym_M_f_entry:\n_tsym_alias:\ntsym_M_f_info:\ntsym_a_local:\n\t.skip 8, 0x90\n"
	".size tsym_M_f_entry, 8\n"
	/* a weak and a global function at one address */
	".globl _tsym_IO_puts\n.weak tsym_puts\n"
	".type _tsym_IO_puts, @function\n.type tsym_puts, @function\n"
	"_tsym_IO_puts:\ntsym_puts:\n\t.skip 8, 0x90\n"
	".size _tsym_IO_puts, 8\n.size tsym_puts, 8\n"
	/* a function without a size */
	".globl tsym_sizeless\n.type tsym_sizeless, @function\n"
	"tsym_sizeless:\n\t.skip 8, 0x90\n"
	/* from GHC's LLVM backend: a binding and its return point, a closure and its return
	 * point, and a local binding with a name */
	".globl tsym_llvm_info\n.type tsym_llvm_info, @object\n"
	"tsym_llvm_info:\n\t.skip 8, 0x90\n.size tsym_llvm_info, 8\n"
	".type \"c7px_info$def\", @object\n"
	"\"c7px_info$def\":\n\t.skip 8, 0x90\n.size \"c7px_info$def\", 8\n"
	".type \"_c2JW$def\", @object\n"
	"\"_c2JW$def\":\n\t.skip 8, 0x90\n.size \"_c2JW$def\", 8\n"
	".type \"s58w_info$def\", @object\n"
	"\"s58w_info$def\":\n\t.skip 8, 0x90\n.size \"s58w_info$def\", 8\n"
	".type \"c8aB_info$def\", @object\n"
	"\"c8aB_info$def\":\n\t.skip 8, 0x90\n.size \"c8aB_info$def\", 8\n"
	".type \"tsym_go_info$def\", @object\n"
	"\"tsym_go_info$def\":\n\t.skip 8, 0x90\n.size \"tsym_go_info$def\", 8\n"
	".globl tsym_end\ntsym_end:\n\tud2\n"
	".section .tsym_alone, \"ax\", @progbits\n\t.skip 16, 0x90\n"
	".globl tsym_in_alone\ntsym_in_alone:\n\t.skip 16, 0x90\n"
	".section .tsym_far, \"ax\", @progbits\n"
	".globl tsym_far\n.type tsym_far, @function\n"
	"tsym_far:\n\t.skip 2097152, 0x90\n"
	".size tsym_far, 16\n"
	".text\n");

enum match { NEAREST, EXACT };

static void expect(const struct symbols *s, uint64_t vaddr, const char *name, enum match match)
{
	struct symbols_hit hit = {0};

	assert_int_equal(symbols__lookup(s, vaddr, &hit), 0);
	assert_string_equal(hit.name, name);
	assert_int_equal(hit.name_len, strlen(name));
	assert_int_equal(hit.exact, match == EXACT);
	assert_true(hit.start <= vaddr);
}

static void best_of_several(void **state)
{
	struct elf_file *elf = open_path("/proc/self/exe");
	struct symbols *s = NULL;
	struct symbols_hit hit;
	uint64_t at;

	(void)state;
	assert_int_equal(symbols__new(elf, &s), 0);
	assert_true(symbols__count(s) > 10);

	at = address(elf, "tsym_local");
	expect(s, at, "tsym_local", EXACT);
	expect(s, at + 7, "tsym_local", EXACT);
	expect(s, at + 8, "tsym_local", NEAREST);
	expect(s, at + 15, "tsym_local", NEAREST);
	at = address(elf, "tsym_Outer");
	expect(s, at, "tsym_Outer", EXACT);
	expect(s, at + 8, "tsym_inner_label", EXACT);
	expect(s, at + 9, "tsym_Outer", EXACT);
	expect(s, at + 16, "tsym_Inner", EXACT);
	expect(s, at + 17, "tsym_Inner", EXACT);

	at = address(elf, "tsym_M_f_entry");
	expect(s, at, "tsym_M_f_info", EXACT);
	expect(s, at + 7, "tsym_M_f_info", EXACT);
	assert_int_equal(symbols__lookup(s, at + 7, &hit), 0);
	assert_int_equal(hit.size, 8);
	assert_int_equal(hit.start, at);
	expect(s, address(elf, "_tsym_IO_puts"), "tsym_puts", EXACT);
	at = address(elf, "tsym_llvm_info");
	expect(s, at - 1, "tsym_sizeless", NEAREST);
	expect(s, at + 7, "tsym_llvm_info", EXACT);
	expect(s, at + 23, "tsym_llvm_info", EXACT);
	expect(s, at + 24, "tsym_llvm_info", NEAREST);
	expect(s, at + 39, "tsym_llvm_info", NEAREST);
	expect(s, at + 40, "tsym_go_info$def", EXACT);
	expect(s, (uint64_t)(address(elf, "best_of_several") + 1), "best_of_several", EXACT);
	symbols__free(s);
	elf__free(elf);
}

static void not_across_sections(void **state)
{
	struct elf_file *elf = open_path("/proc/self/exe");
	struct symbols *s = NULL;
	struct symbols_hit hit;
	struct elf_section sec;
	uint64_t at;

	(void)state;
	assert_int_equal(symbols__new(elf, &s), 0);
	at = address(elf, "tsym_in_alone");
	assert_int_equal(symbols__lookup(s, at - 1, &hit), -ENOENT);
	expect(s, at, "tsym_in_alone", EXACT);
	expect(s, at + 15, "tsym_in_alone", NEAREST);
	at = address(elf, "tsym_far");
	expect(s, at + 16, "tsym_far", NEAREST);
	expect(s, at + SYMBOLS_MAX_DISTANCE, "tsym_far", NEAREST);
	assert_int_equal(symbols__lookup(s, at + SYMBOLS_MAX_DISTANCE + 1, &hit), -ENOENT);
	/* not code: data, and nothing at all */
	assert_int_equal(elf__section(elf, ".data", &sec), 0);
	assert_int_equal(symbols__lookup(s, sec.vaddr, &hit), -ENOENT);
	assert_int_equal(symbols__lookup(s, 0, &hit), -ENOENT);
	assert_int_equal(symbols__lookup(s, UINT64_MAX, &hit), -ENOENT);
	symbols__free(s);
	symbols__free(NULL);
	elf__free(elf);
}

static void known_file(void **state)
{
	struct elf_file *elf = open_path(TINY);
	struct symbols *s = NULL;
	struct symbols_hit hit;

	(void)state;
	assert_int_equal(symbols__new(elf, &s), 0);
	/* tiny_string and tiny_tls (0) are in the executable segment, but not in code */
	assert_int_equal(symbols__count(s), 4);
	expect(s, 0x480, "tiny_Haskell_info", EXACT);
	expect(s, 0x482, "tiny_Haskell_info", NEAREST);
	expect(s, 0x484, "tiny_local", EXACT);
	expect(s, 0x4c3, "tiny_tls_sum", EXACT);
	assert_int_equal(symbols__lookup(s, 0x470, &hit), -ENOENT); /* .plt */
	assert_int_equal(symbols__lookup(s, 0x4c8, &hit), -ENOENT); /* .rodata */
	symbols__free(s);
	elf__free(elf);
}

/* With the name of the section table's .symtab entry removed, as `strip` leaves it. */
static void stripped_and_debug_file(void **state)
{
	struct elf_file *elf = NULL, *debug = open_path(TINY);
	struct symbols *s = NULL;
	static uint8_t copy[8192];
	int fd = open(TINY, O_RDONLY | O_CLOEXEC);
	ssize_t size = read(fd, copy, sizeof(copy));

	(void)state;
	close(fd);
	assert_true(size > 0xa30 + 20 * 64);
	copy[0xa30 + 19 * 64 + 4] = SHT_PROGBITS;
	assert_int_equal(elf__open_bytes(copy, (size_t)size, "stripped", &elf), 0);
	assert_int_equal(elf__n_symbols(elf, ELF_SYMTAB), 0);

	assert_int_equal(symbols__new(elf, &s), 0);
	assert_int_equal(symbols__count(s), 3);
	expect(s, 0x484, "tiny_Haskell_info", NEAREST);
	expect(s, 0x489, "tiny_calls", EXACT);
	symbols__free(s);
	assert_int_equal(symbols__new_debug(elf, debug, &s), 0);
	assert_int_equal(symbols__count(s), 4);
	expect(s, 0x484, "tiny_local", EXACT);
	symbols__free(s);
	elf__free(elf);
	elf__free(debug);
}

static const char ghc_source[] =
	"module Main (main, spin) where\n"
	"import Foreign.C\n"
	"foreign import ccall safe \"usleep\" c_usleep :: CUInt -> IO CInt\n"
	"spin :: Int -> Int\n"
	"spin 0 = 0\n"
	"spin n = n + spin (n - 1)\n"
	"{-# NOINLINE spin #-}\n"
	"main :: IO ()\n"
	"main = print (spin 10) >> c_usleep 1 >> return ()\n";

/* A real GHC program: names as GHC makes them, unwind rows only for C code. */
static void ghc_program(void **state)
{
	char dir[] = "/tmp/test_symbols.XXXXXX", path[64], command[256];
	struct elf_file *elf;
	struct symbols *s = NULL;
	uint64_t at;
	FILE *f;
	int failed;

	(void)state;
	if (system("command -v ghc >/dev/null 2>&1") != 0)
		skip();
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/T.hs", dir);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(ghc_source, f);
	fclose(f);
	snprintf(command, sizeof(command), "cd %s && ghc -v0 -O -threaded T.hs -o T", dir);
	failed = system(command);
	snprintf(path, sizeof(path), "%s/T", dir);
	elf = failed ? NULL : open_path(path);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	assert_int_equal(system(command), 0); /* the file stays open */
	assert_int_equal(failed, 0);

	assert_int_equal(symbols__new(elf, &s), 0);
	at = address(elf, "Main_zdwspin_info");
	expect(s, at, "Main_zdwspin_info", EXACT);
	assert_false(elf__has_fde(elf, at));
	at = address(elf, "base_GHCziBase_zpzp_info");
	expect(s, at, "base_GHCziBase_zpzp_info", EXACT);
	at = address(elf, "suspendThread");
	expect(s, at + 5, "suspendThread", EXACT);
	assert_true(elf__has_fde(elf, at));
	/* a global label inside a local function that has a size */
	at = address(elf, "StgReturn");
	expect(s, at, "StgReturn", EXACT);
	expect(s, at + 1, "StgReturn", EXACT);
	assert_true(elf__has_fde(elf, at));
	symbols__free(s);
	elf__free(elf);
}

/* ── heads from a process without rights ─────────────────────────────────────────────────── */

static void same_heads(const char *path)
{
	struct elf_file *here, *aside;

	assert_int_equal(elf__open_fd_for(open(path, O_RDONLY | O_CLOEXEC), path, ELF_OF_HOST,
					  CONFINE_NOBODY, &here),
			 0);
	assert_int_equal(
		elf__open_fd_for(open(path, O_RDONLY | O_CLOEXEC), path, ELF_COPY, 4711, &aside),
		0);
	assert_int_equal(elf__user(aside), 4711);
	assert_false(aside->roots);
	assert_memory_equal(&here->heads, &aside->heads, sizeof(here->heads));
	assert_memory_equal(here->sections, aside->sections,
			    here->heads.n_sections * sizeof(*here->sections));
	elf__free(here);
	elf__free(aside);
}

/*
 * Files owned by other ids of a user namespace are charged to the namespace's user. That root owns
 * a file counts only on a file system that the host mounted.
 */
static void paid_by(void **state)
{
	const struct {
		enum elf_source source;
		uid_t owner, account, pays;
		bool roots;
	} cases[] = {
		{ELF_OF_ANYBODY, 100001, 4242, 4242, false},
		{ELF_OF_ANYBODY, 100001, CONFINE_NOBODY, 100001, false},
		{ELF_OF_ANYBODY, 100001, 0, 100001, false},
		{ELF_OF_ANYBODY, 0, 4242, 4242, false},
		{ELF_OF_ANYBODY, 0, CONFINE_NOBODY, CONFINE_NOBODY, false},
		{ELF_OF_ANYBODY, 0, 0, 0, false},
		{ELF_OF_HOST, 100001, 4242, 4242, false},
		{ELF_OF_HOST, 0, 4242, 0, true},
		{ELF_COPY, 0, 4242, 4242, false},
	};

	(void)state;
	if (geteuid() != 0)
		skip();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char path[] = "/tmp/safescoped-paid-XXXXXX", command[128];
		struct elf_file *elf;
		int fd = mkstemp(path);

		assert_true(fd >= 0);
		snprintf(command, sizeof(command), "cp /bin/true %s", path);
		assert_int_equal(system(command), 0);
		assert_int_equal(fchown(fd, cases[i].owner, 0), 0);
		assert_int_equal(unlink(path), 0);
		assert_int_equal(
			elf__open_fd_for(fd, path, cases[i].source, cases[i].account, &elf), 0);
		assert_int_equal(elf__user(elf), cases[i].pays);
		assert_int_equal(elf->roots, cases[i].roots);
		elf__free(elf);
	}
}

static void heads_aside(void **state)
{
	struct elf_file *elf = NULL;
	int fd = memfd_create("none", MFD_CLOEXEC);

	(void)state;
	same_heads("tests/data/tiny.elf");
	same_heads("/proc/self/exe");
	assert_int_equal(write(fd, "#!/bin/sh", 9), 9);
	assert_int_equal(elf__open_fd_for(fd, "script", ELF_COPY, 4711, &elf), -ENOEXEC);
	assert_null(elf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(best_of_several), cmocka_unit_test(not_across_sections),
		cmocka_unit_test(known_file),	   cmocka_unit_test(stripped_and_debug_file),
		cmocka_unit_test(ghc_program),	   cmocka_unit_test(heads_aside),
		cmocka_unit_test(paid_by),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
