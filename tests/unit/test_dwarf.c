/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * DWARF of this program's functions, whose lines the preprocessor knows; and damaged files: the
 * helper process may die of them, but nothing else.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/base.h"
#include "elf/elf.h"
#include "dwarf_kit.h"
#include "elf_files.h"

#define SELF "/proc/self/exe"

enum { LINE_OF_IT = __LINE__ + 1 };
__attribute__((noinline, noclone, used)) static int dwarf_test_function(int x)
{
	return x * 3 + getpid();
}

static void check_place(const struct dwarf_place *p)
{
	assert_string_equal(p->name, "dwarf_test_function");
	assert_false(p->haskell);
	assert_int_equal(p->proc_line, LINE_OF_IT);
	assert_in_range(p->line, LINE_OF_IT, LINE_OF_IT + 3);
	assert_non_null(strstr(p->file, "test_dwarf.c"));
	assert_non_null(strstr(p->proc_file, "test_dwarf.c"));
}

/* The most recent child; one that has ended counts until it is reaped. */
static pid_t newest_child(void)
{
	char path[64], pids[256];
	size_t len;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	f = fopen(path, "re");
	assert_non_null(f);
	len = fread(pids, 1, sizeof(pids) - 1, f);
	fclose(f);
	assert_true(len > 1);
	pids[len - 1] = '\0'; /* each pid is followed by a blank */
	return (pid_t)strtol(strrchr(pids, ' ') ?: pids, NULL, 10);
}

static void by_helper(void **state)
{
	struct elf_file *elf = open_path(SELF);
	pid_t helper;
	struct dwarf_place place;
	struct dwarf *dwarf;

	(void)state;
	assert_int_not_equal(dwarf_test_function(1), 0);
	if (!dwarf__is_in(elf)) {
		elf__free(elf);
		skip();
	}
	assert_int_equal(dwarf__new(elf, &dwarf), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(dwarf__find(dwarf, helpers,
					     address(elf, "dwarf_test_function") + (i > 1), &place),
				 0);
		check_place(&place);
	}
	/* addresses outside all functions are not found, and the next question is answered */
	assert_int_equal(dwarf__find(dwarf, helpers, 0, &place), -ENOENT);
	assert_int_equal(dwarf__find(dwarf, helpers, UINT64_MAX, &place), -ENOENT);
	assert_int_equal(dwarf__find(dwarf, helpers, address(elf, "dwarf_test_function"), &place),
			 0);
	check_place(&place);
	/* cached answers need neither a helper nor the file */
	helper = newest_child();
	assert_int_equal(kill(helper, SIGKILL), 0);
	assert_int_equal(
		dwarf__find(dwarf, helpers, address(elf, "dwarf_test_function") + 1, &place), 0);
	check_place(&place);
	assert_int_equal(dwarf__find(dwarf, helpers, 0, &place), -ENOENT);
	assert_int_equal(newest_child(),
			 helper); /* the dead helper was neither reaped nor replaced */
	dwarf__free(dwarf);
	dwarf__free(NULL);
	elf__free(elf);
}

/* A killed helper is not held against its file: it will be asked again. */
static void helper_ends(void **state)
{
	struct elf_file *elf = open_path(SELF);
	uint64_t at = address(elf, "dwarf_test_function");
	struct dwarf_place place;
	struct dwarf *dwarf;

	(void)state;
	if (!dwarf__is_in(elf)) {
		elf__free(elf);
		skip();
	}
	assert_int_equal(dwarf__new(elf, &dwarf), 0);
	assert_int_equal(dwarf__find(dwarf, helpers, at, &place), 0);
	assert_int_equal(kill(newest_child(), SIGKILL), 0);
	assert_int_equal(dwarf__find(dwarf, helpers, 0, &place), -EBUSY);
	/* until the pause is over no other helper is started, and cached answers remain */
	assert_int_equal(dwarf__find(dwarf, helpers, 0, &place), -EBUSY);
	assert_int_equal(dwarf__find(dwarf, helpers, at, &place), 0);
	dwarf__free(dwarf);
	elf__free(elf);
}

/* Time that was used up is regained, up to the maximum. */
static void budget_comes_back(void **state)
{
	const uint64_t ms = 1000000, most = DWARF_FILE_MS * ms, answer = DWARF_ANSWER_MS * ms;
	struct dwarf_budget b = {.most_ms = DWARF_FILE_MS, .part = DWARF_FILE_PART};
	uint64_t now = 1000 * ms;

	(void)state;
	for (uint64_t used = 0; used < most; used += answer) {
		assert_true(dwarf_budget__is_left(&b, now));
		dwarf_budget__use(&b, answer);
	}
	assert_false(dwarf_budget__is_left(&b, now));
	assert_false(dwarf_budget__is_left(&b, now + DWARF_FILE_PART * answer / 2));
	assert_true(dwarf_budget__is_left(&b, now + DWARF_FILE_PART * answer));
	assert_true(dwarf_budget__is_left(&b, now + 1000 * DWARF_FILE_PART * most));
	assert_int_equal(b.left_ns, most);
	dwarf_budget__use(&b, 2 * most);
	assert_int_equal(b.left_ns, 0);
}

/*
 * As distributions ship debug files: only the DWARF is compressed, symbols never are (objcopy, and
 * ld --compress-debug-sections). Compression that libdw does not support (zstd before elfutils
 * 0.189) yields no lines.
 */
static void compressed(void **state)
{
	static const char *const ways[] = {"zlib", "zlib-gnu", "zstd"};
	struct elf_file *elf = open_path(SELF), *copy = NULL;
	char path[] = "/tmp/safescoped-dwarf-XXXXXX", command[256];
	uint64_t at = address(elf, "dwarf_test_function");
	struct dwarf_place place;
	struct dwarf *dwarf;
	int err, tried = 0;

	(void)state;
	close(mkstemp(path));
	for (size_t i = 0; dwarf__is_in(elf) && i < ARRAY_SIZE(ways); i++) {
		snprintf(command, sizeof(command),
			 "objcopy --compress-debug-sections=%s /proc/%d/exe %s 2>/dev/null",
			 ways[i], getpid(), path);
		if (system(command) != 0)
			continue;
		assert_int_equal(elf__open_fd(open(path, O_RDONLY | O_CLOEXEC), path, &copy), 0);
		assert_int_equal(address(copy, "dwarf_test_function"), at);
		err = dwarf__is_in(copy) ? dwarf__new(copy, &dwarf) : -ENOENT;
		if (!err) {
			err = dwarf__find(dwarf, helpers, at, &place);
			dwarf__free(dwarf);
		}
		if (!err)
			check_place(&place);
		print_message("%s: %d\n", ways[i], err);
		if (strcmp(ways[i], "zlib") == 0)
			assert_int_equal(err, 0);
		tried++;
		elf__free(copy);
	}
	unlink(path);
	elf__free(elf);
	if (!tried)
		skip();
}

/*
 * Writes a copy of this program whose compressed .debug_info announces a size of `bytes`.
 * Returns false if no tool can compress it.
 */
static bool write_boast(const char *path, uint64_t bytes)
{
	char command[256];
	Elf64_Ehdr h;
	Elf64_Shdr s;
	Elf64_Chdr c;
	bool found = false;
	int fd;

	snprintf(command, sizeof(command),
		 "objcopy --compress-debug-sections=zlib /proc/%d/exe %s 2>/dev/null", getpid(),
		 path);
	if (system(command) != 0)
		return false;
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(pread(fd, &h, sizeof(h), 0), sizeof(h));
	for (size_t i = 0; i < h.e_shnum && !found; i++) {
		off_t at = (off_t)(h.e_shoff + i * sizeof(s));

		assert_int_equal(pread(fd, &s, sizeof(s), at), sizeof(s));
		found = (s.sh_flags & SHF_COMPRESSED) && s.sh_size > 4096;
	}
	if (found) {
		assert_int_equal(pread(fd, &c, sizeof(c), (off_t)s.sh_offset), sizeof(c));
		c.ch_size = bytes;
		assert_int_equal(pwrite(fd, &c, sizeof(c), (off_t)s.sh_offset), sizeof(c));
	}
	close(fd);
	return found;
}

/* The claimed size is checked before anything is inflated. */
static void boasts(void **state)
{
	static const uint64_t sizes[] = {100ULL << 20, 200ULL << 20, 1ULL << 40, UINT64_MAX};
	struct elf_file *elf = open_path(SELF), *bad = NULL;
	char path[] = "/tmp/safescoped-dwarf-XXXXXX";
	uint64_t at = address(elf, "dwarf_test_function");
	struct dwarf_place place;
	struct dwarf *dwarf;

	(void)state;
	close(mkstemp(path));
	for (size_t i = 0; dwarf__is_in(elf) && i < ARRAY_SIZE(sizes); i++) {
		struct elf_debug_size size;

		if (!write_boast(path, sizes[i]))
			break;
		assert_int_equal(elf__open_fd(open(path, O_RDONLY | O_CLOEXEC), path, &bad), 0);
		elf__debug_size(bad, &size);
		assert_true(size.inflated >= sizes[i]);
		assert_int_equal(dwarf__new(bad, &dwarf), 0);
		assert_true(dwarf__find(dwarf, helpers, at, &place) < 0);
		if (sizes[i] > 128ULL << 20)
			assert_int_equal(dwarf__find(dwarf, helpers, at, &place), -E2BIG);
		dwarf__free(dwarf);
		elf__free(bad);
	}
	unlink(path);
	elf__free(elf);
}

/*
 * Ranges that the reader reports as empty are empty: checked at each address of the program's code.
 * Beyond their ends is a function or another unit.
 */
static void nothing_there(void **state)
{
	struct elf_file *elf = open_path(SELF);
	struct elf_section text;
	struct dwarf_place place;
	struct dwarf_reader *reader;
	uint64_t longest = 0, start = 0, end = 0;
	size_t size;
	void *data;

	(void)state;
	if (!dwarf__is_in(elf)) {
		elf__free(elf);
		skip();
	}
	assert_int_equal(elf__section(elf, ".text", &text), 0);
	assert_int_equal(elf__writable(elf, &data, &size), 0);
	assert_int_equal(dwarf_reader__new(data, size, &reader), 0);
	for (uint64_t at = text.vaddr; at < text.vaddr + text.size; at++) {
		int err = dwarf_reader__find(reader, at, &place);

		if (err == 0) {
			assert_true(at >= end); /* no range reported as empty contains it */
			assert_true(place.start <= at && at < place.end);
			at = place.end - 1;
			continue;
		}
		assert_int_equal(err, -ENOENT);
		if (at < end)
			continue;
		assert_true(dwarf_reader__nothing(reader, at, &start, &end));
		assert_true(start <= at && at < end);
		longest = MAX(longest, end - at);
		for (uint64_t before = at; before-- > MAX(start, text.vaddr);)
			assert_int_equal(dwarf_reader__find(reader, before, &place), -ENOENT);
	}
	assert_true(longest > 1);
	/* below and above all code */
	assert_int_equal(dwarf_reader__find(reader, 0, &place), -ENOENT);
	assert_true(dwarf_reader__nothing(reader, 0, &start, &end));
	assert_int_equal(start, 0);
	assert_in_range(end, 1, text.vaddr + text.size);
	assert_int_equal(dwarf_reader__find(reader, UINT64_MAX - 1, &place), -ENOENT);
	assert_true(dwarf_reader__nothing(reader, UINT64_MAX - 1, &start, &end));
	assert_true(start >= text.vaddr && end == UINT64_MAX);
	dwarf_reader__free(reader);
	elf__free(elf);
}

/* More files than there can be helpers: all questions are answered, each from the right file. */
static void many(void **state)
{
	struct elf_file *elf[40];
	struct dwarf *dwarf[40];
	struct dwarf_place place;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(elf); i++) {
		elf[i] = open_path(SELF);
		assert_int_equal(dwarf__new(elf[i], &dwarf[i]), 0);
	}
	for (size_t i = 0; dwarf__is_in(elf[0]) && i < 2 * ARRAY_SIZE(elf); i++) {
		size_t k = i % ARRAY_SIZE(elf);

		assert_int_equal(dwarf__find(dwarf[k], helpers,
					     address(elf[k], "dwarf_test_function") + (i != k),
					     &place),
				 0);
		check_place(&place);
	}
	for (size_t i = 0; i < ARRAY_SIZE(elf); i++) {
		dwarf__free(dwarf[i]);
		elf__free(elf[i]);
	}
}

/* Writes a copy of this program with some bytes of its debug sections overwritten. */
static void write_damaged(const struct elf_file *elf, const char *path, uint32_t seed)
{
	static const char *const names[] = {".debug_info", ".debug_abbrev", ".debug_line",
					    ".debug_aranges", ".debug_rnglists"};
	struct elf_section s;
	struct stat st;
	uint8_t *copy;
	int fd = open(SELF, O_RDONLY | O_CLOEXEC);

	assert_int_equal(fstat(fd, &st), 0);
	copy = malloc((size_t)st.st_size);
	assert_non_null(copy);
	assert_int_equal(read(fd, copy, (size_t)st.st_size), st.st_size);
	close(fd);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (elf__section(elf, names[i], &s) || !s.size)
			continue;
		for (int k = 0; k < 64; k++) {
			seed = seed * 1664525u + 1013904223u;
			copy[s.offset + (seed >> 8) % s.size] = (uint8_t)(seed >> 3);
		}
	}
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, copy, (size_t)st.st_size), st.st_size);
	close(fd);
	free(copy);
}

static void damaged(void **state)
{
	struct elf_file *elf = open_path(SELF), *bad = NULL;
	char path[] = "/tmp/safescoped-dwarf-XXXXXX";
	struct dwarf_place place;
	struct dwarf *dwarf;
	uint64_t at = address(elf, "dwarf_test_function");

	(void)state;
	if (!dwarf__is_in(elf)) {
		elf__free(elf);
		skip();
	}
	close(mkstemp(path));
	for (uint32_t seed = 1; seed <= 12; seed++) {
		write_damaged(elf, path, seed);
		assert_int_equal(elf__open_fd(open(path, O_RDONLY | O_CLOEXEC), path, &bad), 0);
		assert_int_equal(dwarf__new(bad, &dwarf), 0);
		for (uint64_t k = 0; k < 64; k++)
			dwarf__find(dwarf, helpers, at + 256 * k, &place);
		dwarf__free(dwarf);
		elf__free(bad);
	}
	unlink(path);
	elf__free(elf);
}

/* The file is truncated while the helper reads it. */
static void shrinks(void **state)
{
	struct elf_file *elf = open_path(SELF), *bad = NULL;
	char path[] = "/tmp/safescoped-dwarf-XXXXXX";
	struct dwarf_place place;
	struct dwarf *dwarf;

	(void)state;
	close(mkstemp(path));
	write_damaged(elf, path, 1);
	assert_int_equal(elf__open_fd(open(path, O_RDONLY | O_CLOEXEC), path, &bad), 0);
	assert_int_equal(dwarf__new(bad, &dwarf), 0);
	assert_int_equal(truncate(path, 8192), 0);
	for (uint64_t k = 0; k < 16; k++)
		dwarf__find(dwarf, helpers, address(elf, "dwarf_test_function") + 256 * k, &place);
	dwarf__free(dwarf);
	elf__free(bad);
	unlink(path);
	elf__free(elf);
}

/* A file can be asked through one set of helpers, then another, and also after both sets are
 * freed. */
static void by_other_helpers(void **state)
{
	struct elf_file *elf = open_path(SELF);
	struct dwarf_helpers *first, *second;
	struct dwarf_place place;
	struct dwarf *dwarf;
	uint64_t at;

	(void)state;
	if (!dwarf__is_in(elf)) {
		elf__free(elf);
		skip();
	}
	at = address(elf, "dwarf_test_function");
	assert_int_equal(dwarf_helpers__new(&first), 0);
	assert_int_equal(dwarf_helpers__new(&second), 0);
	assert_int_equal(dwarf__new(elf, &dwarf), 0);
	assert_int_equal(dwarf__find(dwarf, first, at, &place), 0);
	assert_int_equal(dwarf__find(dwarf, second, address(elf, "main"), &place), 0);
	assert_string_equal(place.name, "main");
	dwarf_helpers__free(first);
	assert_int_equal(dwarf__find(dwarf, second, 0, &place), -ENOENT);
	dwarf_helpers__free(second);
	assert_int_equal(dwarf__find(dwarf, helpers, address(elf, "dwarf__find"), &place), 0);
	assert_string_equal(place.name, "dwarf__find");
	dwarf__free(dwarf);
	elf__free(elf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_helper),	    cmocka_unit_test(compressed),
		cmocka_unit_test(boasts),	    cmocka_unit_test(many),
		cmocka_unit_test(damaged),	    cmocka_unit_test(shrinks),
		cmocka_unit_test(nothing_there),    cmocka_unit_test(helper_ends),
		cmocka_unit_test(by_other_helpers), cmocka_unit_test(budget_comes_back),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
