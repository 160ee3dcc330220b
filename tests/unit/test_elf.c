/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ELF reader on a small known file, on this test's own executable, and on damaged files. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/base.h"
#include "confine/confine.h"
#include "elf/elf_priv.h"

#include "elf_exercise.h"
#include "elf_files.h"

#define TINY "tests/data/tiny.elf" /* see tiny.c next to it */

/* Addresses in tiny.elf as readelf and objdump print them. */
#define TINY_HASKELL  0x480
#define TINY_LOCAL    0x484
#define TINY_CALLS    0x489
#define TINY_PLT      0x470
#define TINY_GOT_DATA 0x16d8
#define TINY_OBJECT   0x1718

struct tiny {
	uint8_t *data;
	size_t size;
};

static int load_tiny(void **state)
{
	struct tiny *tiny = calloc(1, sizeof(*tiny));
	int fd = open(TINY, O_RDONLY | O_CLOEXEC);
	bool good = false;
	struct stat st;

	if (tiny && fd >= 0 && !fstat(fd, &st)) {
		tiny->size = (size_t)st.st_size;
		tiny->data = malloc(tiny->size);
		good = tiny->data && read(fd, tiny->data, tiny->size) == st.st_size;
	}
	if (fd >= 0)
		close(fd);
	if (good) {
		*state = tiny;
		return 0;
	}
	if (tiny)
		free(tiny->data);
	free(tiny);
	return -1;
}

static int free_tiny(void **state)
{
	struct tiny *tiny = *state;

	free(tiny->data);
	free(tiny);
	return 0;
}

static void header_and_segments(void **state)
{
	struct elf_file *elf = open_path(TINY);
	const struct elf_segment *seg;
	struct tiny *tiny = *state;
	uint64_t offset, memsz, align;
	char id[41];

	assert_string_equal(elf__name(elf), TINY);
	assert_true(elf__is_pie_or_dso(elf));
	assert_true(elf__build_id(elf, id));
	assert_string_equal(id, "07878fe04d7968bbfbae4daa4eed12d06d576cb6");
	assert_int_equal(elf__n_segments(elf), 2);
	seg = elf__segment(elf, 0);
	assert_true(seg->exec && !seg->write);
	assert_int_equal(seg->filesz, 0x584);
	seg = elf__segment(elf, 1);
	assert_true(!seg->exec && seg->write);
	assert_null(elf__segment(elf, 2));
	assert_true(elf__vaddr_to_offset(elf, TINY_OBJECT, &offset));
	assert_int_equal(offset, 0x718);
	assert_false(elf__vaddr_to_offset(elf, 0x584, &offset));
	assert_memory_equal(elf__at(elf, TINY_OBJECT, 4), "\7\0\0\0", 4);
	assert_null(elf__at(elf, TINY_OBJECT, 5));
	assert_null(elf__at(elf, 0x583, 2));
	assert_non_null(elf__at(elf, 0x583, 1));
	assert_memory_equal(elf__at(elf, 0, 0x584), tiny->data, 0x584);
	assert_true(elf__tls(elf, &memsz, &align));
	assert_int_equal(memsz, 24);
	assert_int_equal(align, 16);
	elf__free(elf);
}

static void sections(void **state)
{
	struct elf_file *elf = open_path(TINY);
	struct elf_section s;

	(void)state;
	assert_int_equal(elf__section(elf, ".rodata", &s), 0);
	assert_int_equal(s.vaddr, 0x4c8);
	assert_int_equal(s.offset, 0x4c8);
	assert_int_equal(s.size, 10);
	assert_memory_equal(s.data, "rts_thr_p", 10);
	assert_int_equal(elf__section(elf, ".shstrtab", &s), 0);
	assert_int_equal(elf__section(elf, ".rodat", &s), -ENOENT);
	assert_int_equal(elf__section(elf, ".rodata2", &s), -ENOENT);
	elf__free(elf);
}

struct seen {
	size_t n, undefined;
	bool local;
	size_t stop_after;
};

static int see(void *ctx, const struct elf_sym *sym)
{
	struct seen *seen = ctx;

	seen->n++;
	seen->undefined += sym->shndx == 0;
	if (strcmp(sym->name, "tiny_local") == 0)
		seen->local = true;
	return seen->n == seen->stop_after ? 42 : 0;
}

static void symbols(void **state)
{
	struct elf_file *elf = open_path(TINY);
	struct seen seen = {0};
	struct elf_sym sym;
	enum elf_symtab which;

	(void)state;
	assert_int_equal(elf__n_symbols(elf, ELF_SYMTAB), 16);
	assert_int_equal(elf__n_symbols(elf, ELF_DYNSYM), 10);
	assert_int_equal(elf__symbols(elf, ELF_SYMTAB, see, &seen), 0);
	assert_int_equal(seen.n, 15);
	assert_int_equal(seen.undefined, 3);
	assert_true(seen.local);
	memset(&seen, 0, sizeof(seen));
	seen.stop_after = 4;
	assert_int_equal(elf__symbols(elf, ELF_DYNSYM, see, &seen), 42);
	assert_int_equal(seen.n, 4);
	assert_int_equal(elf__find_symbol(elf, "tiny_calls", &sym, &which), 0);
	assert_int_equal(which, ELF_SYMTAB);
	assert_int_equal(sym.value, TINY_CALLS);
	assert_int_equal(sym.size, 30);
	assert_int_equal(sym.type, STT_FUNC);
	assert_int_equal(sym.bind, STB_GLOBAL);
	assert_int_equal(elf__find_symbol(elf, "imported", &sym, NULL), -ENOENT);
	assert_int_equal(elf__find_symbol(elf, "tiny_call", &sym, NULL), -ENOENT);
	assert_int_equal(elf__find_symbol(elf, "nowhere", &sym, NULL), -ENOENT);
	elf__free(elf);
}

static void plt_and_got(void **state)
{
	struct elf_file *elf = open_path(TINY);

	(void)state;
	assert_string_equal(elf__plt_symbol(elf, TINY_PLT), "imported");
	assert_string_equal(elf__plt_symbol(elf, 0x460), "__tls_get_addr");
	assert_null(elf__plt_symbol(elf, 0x450)); /* PLT0 */
	assert_null(elf__plt_symbol(elf, TINY_CALLS));
	assert_null(elf__plt_symbol(elf, 0x99999));
	assert_string_equal(elf__got_symbol(elf, TINY_GOT_DATA), "imported_data");
	assert_string_equal(elf__got_symbol(elf, 0x1710), "imported");
	assert_null(elf__got_symbol(elf, 0x1711));
	elf__free(elf);
}

static void unwind_ranges(void **state)
{
	struct elf_file *elf = open_path(TINY);
	const struct elf_fde *fdes;
	size_t n;

	(void)state;
	assert_int_equal(elf__fdes(elf, &fdes, &n), 0);
	assert_int_equal(n, 4);
	assert_int_equal(fdes[0].start, 0x450);
	assert_int_equal(fdes[0].end, 0x480);
	assert_int_equal(fdes[3].start, 0x4a7);
	assert_int_equal(fdes[3].end, 0x4c4);
	assert_false(elf__has_fde(elf, 0x44f));
	assert_true(elf__has_fde(elf, 0x450));
	assert_false(elf__has_fde(elf, TINY_HASKELL));
	assert_false(elf__has_fde(elf, TINY_LOCAL - 1));
	assert_true(elf__has_fde(elf, TINY_LOCAL));
	assert_true(elf__has_fde(elf, 0x4c3));
	assert_false(elf__has_fde(elf, 0x4c4));
	elf__free(elf);
}

/* Without a section table everything is still found by PT_DYNAMIC and PT_GNU_EH_FRAME. */
static void without_sections(void **state)
{
	struct tiny *tiny = *state;
	const struct elf_fde *fdes;
	struct elf_file *elf = NULL;
	enum elf_symtab which;
	struct elf_sym sym;
	size_t n, with_hash;
	char id[41];
	int round;

	/* Round 0 counts the symbols by DT_HASH, round 1 by DT_GNU_HASH. */
	for (round = 0, with_hash = 0; round < 2; round++) {
		uint8_t *copy = malloc(tiny->size);
		size_t at;

		assert_non_null(copy);
		memcpy(copy, tiny->data, tiny->size);
		memset(copy + 0x28, 0, 8); /* e_shoff */
		for (at = 0x5a8; round == 1 && at < 0x5a8 + 0x130; at += 16) {
			if (copy[at] == DT_HASH && copy[at + 1] == 0) {
				copy[at] = 0x77;
				with_hash++;
			}
		}
		assert_int_equal(elf__open_bytes(copy, tiny->size, "bare", &elf), 0);
		assert_int_equal(elf__n_symbols(elf, ELF_SYMTAB), 0);
		assert_int_equal(elf__n_symbols(elf, ELF_DYNSYM), 10);
		assert_int_equal(elf__find_symbol(elf, "tiny_calls", &sym, &which), 0);
		assert_int_equal(which, ELF_DYNSYM);
		assert_string_equal(elf__plt_symbol(elf, TINY_PLT), "imported");
		assert_true(elf__build_id(elf, id));
		assert_int_equal(elf__fdes(elf, &fdes, &n), 0);
		assert_int_equal(n, 4);
		elf__free(elf);
		free(copy);
	}
	assert_int_equal(with_hash, 1);
}

static int known_function(int x)
{
	return x + getpid();
}

static int first_object(struct dl_phdr_info *info, size_t size, void *ctx)
{
	(void)size;
	*(uintptr_t *)ctx = info->dlpi_addr;
	return 1;
}

/* This executable compared with itself in memory. */
static void own_executable(void **state)
{
	struct elf_file *elf = open_path("/proc/self/exe");
	uintptr_t base = 0, here = (uintptr_t)known_function;
	const uint8_t *bytes;
	struct elf_sym sym;

	(void)state;
	dl_iterate_phdr(first_object, &base);
	assert_int_equal(elf__find_symbol(elf, "known_function", &sym, NULL), 0);
	assert_int_equal(sym.value + base, here);
	assert_true(sym.size > 0);
	bytes = elf__at(elf, sym.value, sym.size);
	assert_non_null(bytes);
	assert_memory_equal(bytes, (void *)here, sym.size);
	assert_true(elf__has_fde(elf, sym.value));
	assert_true(elf__has_fde(elf, sym.value + sym.size - 1));
	assert_true(elf_exercise(elf) > 0);
	elf__free(elf);
}

/* What was not read because of a timeout or an I/O error is read after a pause; a broken file is
 * not retried. */
static void reads_again(void **state)
{
	static const int errs[] = {-ETIMEDOUT, -EIO, -ENOEXEC};
	const struct elf_fde *fdes;
	size_t n;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(errs); i++) {
		struct elf_file *elf = open_path(TINY);

		elf_once__end(&elf->lazy->fdes_read, errs[i]);
		assert_int_equal(elf__fdes(elf, &fdes, &n), errs[i]);
		elf->lazy->fdes_read.again.until_ns = 0;
		assert_int_equal(elf__fdes(elf, &fdes, &n), i < 2 ? 0 : errs[i]);
		elf__free(elf);
	}
}

/* tiny.elf's .dynsym as readelf prints it, and this executable's dynamic linker. */
static void exports_and_needs(void **state)
{
	struct tiny *tiny = *state;
	struct elf_needs needs = {.library = "unchanged"};
	struct elf_file *elf;

	assert_int_equal(elf__open_bytes(tiny->data, tiny->size, "tiny", &elf), 0);
	assert_true(elf__exports(elf, "tiny_calls"));
	assert_true(elf__exports(elf, "tiny_object"));
	assert_true(elf__exports(elf, "tiny_string"));
	assert_false(elf__exports(elf, "imported"));
	assert_false(elf__exports(elf, "tiny_local"));
	assert_false(elf__exports(elf, "tiny_call"));
	assert_false(elf__exports(elf, ""));
	assert_true(elf__mentions(elf, "imported_data"));
	assert_false(elf__mentions(elf, "libc"));
	assert_int_equal(elf__needs(elf, "tiny_", &needs), -ENOENT);
	assert_string_equal(needs.library, "unchanged");
	elf__free(elf);
	elf = open_path("/proc/self/exe");
	assert_int_equal(elf__needs(elf, "libcmocka", &needs), 0);
	assert_string_equal(needs.library, "libcmocka.so.0");
	assert_non_null(dlopen(needs.library, RTLD_LAZY | RTLD_NOLOAD));
	assert_int_equal(elf__needs(elf, "libHSrts", &needs), -ENOENT);
	elf__free(elf);
}

static void what_is_no_elf(void **state)
{
	struct tiny *tiny = *state;
	struct elf_file *elf = NULL;
	uint8_t *copy = malloc(tiny->size);
	uint16_t machine = 0;
	uint8_t class = 0;
	char path[] = "/tmp/test_elf.XXXXXX";
	int fd;

	assert_non_null(copy);
	assert_int_equal(elf__open_fd(-1, "x", &elf), -EBADF);
	assert_int_equal(elf__open_fd(open("/", O_RDONLY), "/", &elf), -EINVAL);
	assert_int_equal(elf__open_fd(open("/dev/null", O_RDONLY), "null", &elf), -EINVAL);
	assert_int_equal(elf__open_bytes("", 0, "empty", &elf), -ENOEXEC);
	assert_int_equal(elf__open_bytes("\177ELF", 4, "short", &elf), -ENOEXEC);
	assert_int_equal(elf__open_bytes("#!/bin/sh\nexec true\n", 20, "sh", &elf), -ENOEXEC);

	memcpy(copy, tiny->data, tiny->size);
	copy[4] = 1; /* 32 bits */
	assert_int_equal(elf__open_bytes(copy, tiny->size, "32", &elf), -EMEDIUMTYPE);
	memcpy(copy, tiny->data, tiny->size);
	copy[0x12] = 183; /* aarch64 */
	assert_int_equal(elf__open_bytes(copy, tiny->size, "arm", &elf), -EMEDIUMTYPE);
	fd = mkstemp(path);
	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(elf__peek(fd, &machine, &class), -ENOEXEC);
	assert_int_equal(write(fd, copy, tiny->size), tiny->size);
	assert_int_equal(elf__peek(fd, &machine, &class), 0);
	assert_int_equal(machine, 183);
	assert_int_equal(class, 2);
	assert_int_equal(ftruncate(fd, (off_t)(ELF_MAX_FILE + 1)), 0);
	assert_int_equal(elf__open_fd(fd, "big", &elf), -EFBIG);
	assert_int_equal(fcntl(fd, F_GETFD), -1); /* closed, even on failure */
	assert_null(elf);
	free(copy);
}

/* A file truncated to every length, in a block of exactly that size so that a read beyond it is
 * caught. */
static void truncated_anywhere(void **state)
{
	struct tiny *tiny = *state;
	size_t size, opened = 0;

	for (size = 0; size < tiny->size; size++) {
		uint8_t *copy = malloc(size ? size : 1);
		struct elf_file *elf = NULL;

		assert_non_null(copy);
		memcpy(copy, tiny->data, size);
		if (elf__open_bytes(copy, size, "cut", &elf) == 0) {
			elf_exercise(elf);
			elf__free(elf);
			opened++;
		}
		free(copy);
	}
	assert_true(opened > 1000);
}

static uint32_t next_random(uint32_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	*seed ^= *seed << 5;
	return *seed;
}

static void bytes_changed_at_random(void **state)
{
	static const uint8_t edges[] = {0, 1, 0x7f, 0x80, 0xff};
	struct tiny *tiny = *state;
	uint8_t *copy = malloc(tiny->size);
	uint32_t seed = 0x5afe5c0e;
	size_t round, opened = 0;

	assert_non_null(copy);
	for (round = 0; round < 20000; round++) {
		uint32_t changes = 1 + next_random(&seed) % 8;
		struct elf_file *elf = NULL;

		memcpy(copy, tiny->data, tiny->size);
		while (changes-- > 0) {
			uint32_t at = next_random(&seed) % (uint32_t)tiny->size;

			/* half of the changes go where one byte matters most: the file's header
			 * tables */
			if (next_random(&seed) & 1)
				at %= 0x1c8;
			copy[at] = next_random(&seed) & 1 ? (uint8_t)next_random(&seed)
							  : edges[next_random(&seed) % 5];
		}
		if (elf__open_bytes(copy, tiny->size, "changed", &elf) == 0) {
			elf_exercise(elf);
			elf__free(elf);
			opened++;
		}
	}
	assert_true(opened > 2000);
	free(copy);
}

/* Truncated while mapped: the lost pages read as zeros, and the process survives. */
static void shrinks_while_open(void **state)
{
	struct tiny *tiny = *state;
	char path[] = "/tmp/test_elf.XXXXXX";
	struct elf_file *elf = NULL, *other = open_path(TINY);
	const size_t big = 1 << 20;
	struct elf_section s;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(write(fd, tiny->data, tiny->size), tiny->size);
	assert_int_equal(ftruncate(fd, (off_t)big), 0);
	assert_int_equal(elf__open_fd(dup(fd), "shrinks", &elf), 0);
	assert_int_equal(elf__section(elf, ".rodata", &s), 0);
	assert_memory_equal(s.data, "rts_thr_p", 10);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_memory_equal(s.data, "\0\0\0\0\0\0\0\0\0\0", 10);
	elf_exercise(elf);
	elf__free(elf);
	/* other files are not affected */
	assert_int_equal(elf__section(other, ".rodata", &s), 0);
	assert_memory_equal(s.data, "rts_thr_p", 10);
	elf__free(other);
	close(fd);
}

/* A SIGBUS that is not from a mapped ELF file still kills the process. */
static void foreign_sigbus_still_kills(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0) {
		struct elf_file *elf = NULL;

		signal(SIGBUS, SIG_DFL); /* reset the sanitizer's handler */
		if (elf__open_fd(open(TINY, O_RDONLY), TINY, &elf) == 0)
			kill(getpid(), SIGBUS);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGBUS);
}

/* Only as many files as there are slots can be open, with -ENFILE beyond that and no fallback to
 * copies; closing frees the slot. */
static void many_files(void **state)
{
	static struct elf_file *elfs[16384];
	struct elf_sym sym;
	size_t i, n, first = 0;

	(void)state;
	for (int round = 0; round < 2; round++) {
		int err = 0;

		for (n = 0; !err && n < ARRAY_SIZE(elfs); n += !err)
			err = elf__open_fd(open(TINY, O_RDONLY | O_CLOEXEC), TINY, &elfs[n]);
		assert_int_equal(err, -ENFILE);
		assert_true(n > 8192);
		assert_true(!first || n == first);
		first = n;
		for (i = 0; i < n; i++) {
			assert_int_equal(elf__find_symbol(elfs[i], "tiny_local", &sym, NULL), 0);
			assert_int_equal(sym.value, TINY_LOCAL);
			elf__free(elfs[i]);
		}
	}
	elf__free(NULL);
}

/* A child's results are validated: each offset must be within the file, each count within its
 * bounds. */
static void heads_are_checked(void **state)
{
	struct elf_file *elf;
	struct elf_heads h = {0};
	uint64_t *const offsets[] = {&h.segments[0].offset,
				     &h.segments[0].filesz,
				     &h.section_names.offset,
				     &h.section_names.size,
				     &h.dynamic.offset,
				     &h.symtabs[0].syms.offset,
				     &h.symtabs[0].strs.size,
				     &h.symtabs[1].syms.size,
				     &h.symtabs[1].strs.offset,
				     &h.relocs[0].offset,
				     &h.relocs[1].size,
				     &h.n_segments,
				     &h.n_sections};
	uint64_t size;

	(void)state;
	assert_int_equal(elf__open_fd(open(TINY, O_RDONLY | O_CLOEXEC), TINY, &elf), 0);
	size = elf->size;
	assert_true(elf_heads__check(&elf->heads, size));
	for (size_t i = 0; i < ARRAY_SIZE(offsets); i++) {
		h = elf->heads;
		*offsets[i] = UINT64_MAX;
		assert_false(elf_heads__check(&h, size));
		*offsets[i] = size + 1;
		assert_false(elf_heads__check(&h, size) && i < 11);
	}
	h = elf->heads;
	h.segments[0].vaddr = UINT64_MAX;
	assert_false(elf_heads__check(&h, size));
	h = elf->heads;
	memset(h.build_id, 'a', sizeof(h.build_id));
	assert_false(elf_heads__check(&h, size));
	h.build_id[40] = '\0';
	assert_true(elf_heads__check(&h, size));
	h.build_id[3] = 'g';
	assert_false(elf_heads__check(&h, size));
	h = elf->heads;
	h.n_segments = 0;
	assert_false(elf_heads__check(&h, size));
	h = elf->heads;
	h.type = ET_REL;
	assert_false(elf_heads__check(&h, size));
	elf__free(elf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {

		cmocka_unit_test(foreign_sigbus_still_kills),
		cmocka_unit_test(header_and_segments),
		cmocka_unit_test(sections),
		cmocka_unit_test(symbols),
		cmocka_unit_test(plt_and_got),
		cmocka_unit_test(unwind_ranges),
		cmocka_unit_test(without_sections),
		cmocka_unit_test(own_executable),
		cmocka_unit_test(reads_again),
		cmocka_unit_test(exports_and_needs),
		cmocka_unit_test(what_is_no_elf),
		cmocka_unit_test(truncated_anywhere),
		cmocka_unit_test(bytes_changed_at_random),
		cmocka_unit_test(shrinks_while_open),
		cmocka_unit_test(many_files),
		cmocka_unit_test(heads_are_checked),
	};

	/* thousands of damaged files: a process for each would take minutes with sanitizers */
	confine__run_inside();
	return cmocka_run_group_tests(tests, load_tiny, free_tiny);
}
