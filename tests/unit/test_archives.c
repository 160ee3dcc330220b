/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finding functions of static archives in code: generated archives and programs, which functions
 * must be found in them, and which must stay unnamed.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "archive_kit.h"
#include "archives/archives.h"
#include "archives/files_priv.h"
#include "archives/known_priv.h"
#include "base/base.h"
#include "confine/confine.h"
#include "elf/elf.h"
#include "elf/symbols.h"

#define TEXT	     0x401000ULL
#define CODE_SIZE    0x8000
#define ARCHIVE_SIZE (256U << 10)
#define MAX_KNOWN    64

/* The archives' objects, the code, and what was found. */
struct world {
	struct kit_object objects[4];
	size_t n_objects;
	uint8_t code[CODE_SIZE];
	uint64_t places[4][KIT_SYMBOLS]; /* addresses of each object's symbols */
	uint8_t archive[ARCHIVE_SIZE];
	size_t archive_size;
	bool haskell;
	struct known_raw known[KNOWN_MAX];
	char strings[KNOWN_MAX_STRINGS];
	struct known_out out;
	int err;
};

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	if (!w)
		return -1;
	w->n_objects = 1;
	/* code that is not from an archive */
	kit_fill(w->code, sizeof(w->code), 99);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static void place(struct world *w, size_t object, uint32_t section, uint64_t vaddr)
{
	struct kit_object *o = &w->objects[object];

	for (uint32_t i = 0; i < o->n_symbols; i++)
		if (o->symbols[i].section == section)
			w->places[object][i] = vaddr + o->symbols[i].value;
	kit_link(o, section, w->places[object], w->code, TEXT, vaddr);
}

static void look(struct world *w)
{
	struct code_range range = {w->code, TEXT, CODE_SIZE};
	const struct code code = {&range, 1};
	struct archive_file file;

	w->archive_size = kit_write_archive(w->objects, w->n_objects, w->archive);
	file = (struct archive_file){.data = w->archive,
				     .size = w->archive_size,
				     .kind = w->haskell ? ARCHIVE_HASKELL : ARCHIVE_OTHER};
	w->out = (struct known_out){.v = w->known, .strings = w->strings};
	w->err = known__read(&file, 1, false, &code, &w->out);
	assert_true(w->err == 0 || w->err == -ENOENT);
	assert_true(known__check(w->known, w->out.n, w->strings, w->out.strings_len));
}

/* NULL if no function begins there. */
static const char *name_at(const struct world *w, uint64_t vaddr)
{
	for (uint32_t i = 0; i < w->out.n; i++)
		if (w->known[i].start == vaddr)
			return w->strings + w->known[i].name;
	return NULL;
}

/* ── what is found ───────────────────────────────────────────────────────────────────────── */

static void finds_a_section_in_which_the_linker_wrote(void **state)
{
	struct world *w = *state;
	struct kit_object *o = &w->objects[0];
	uint32_t s = kit_add_section(o, 256, 1),
		 far = kit_add_symbol(o, "far", KIT_UNDEFINED, 0, 0);

	kit_add_symbol(o, "one", s, 0, 100);
	kit_add_symbol(o, "two", s, 112, 144);
	/* not sorted by offset, as GHC's assembler writes them */
	kit_add_reloc(o, s, 200, R_X86_64_32S, far, 0);
	kit_add_reloc(o, s, 20, R_X86_64_PLT32, far, -4);
	kit_add_reloc(o, s, 60, R_X86_64_64, far, 8);
	w->places[0][far] = 0x12345678;
	place(w, 0, s, TEXT + 0x400);
	look(w);
	assert_int_equal(w->out.n, 2);
	assert_string_equal(name_at(w, TEXT + 0x400), "one");
	assert_string_equal(name_at(w, TEXT + 0x400 + 112), "two");
	assert_int_equal(w->known[1].size, 144);
	assert_int_equal(w->known[1].section, TEXT + 0x400);
	assert_int_equal(w->known[1].section_end, TEXT + 0x500);
}

static void finds_none_that_has_another_byte(void **state)
{
	struct world *w = *state;
	uint32_t s = kit_add_function(&w->objects[0], "one", 256, 1);

	place(w, 0, s, TEXT + 0x400);
	w->code[0x400 + 255] ^= 1;
	look(w);
	assert_int_equal(w->err, -ENOENT);
}

static void finds_none_that_is_not_aligned(void **state)
{
	struct world *w = *state;
	uint32_t s = kit_add_function(&w->objects[0], "one", 256, 1);

	place(w, 0, s, TEXT + 0x408);
	look(w);
	assert_int_equal(w->err, -ENOENT);
}

/* mov far@GOTPCREL(%rip),%rax may have been relaxed to lea far(%rip),%rax: the instruction's
 * bytes must not be matched. */
static void finds_one_with_another_instruction(void **state)
{
	struct world *w = *state;
	struct kit_object *o = &w->objects[0];
	uint32_t s = kit_add_function(o, "one", 256, 1),
		 far = kit_add_symbol(o, "far", KIT_UNDEFINED, 0, 0);

	memcpy(o->sections[s].bytes + 40, "\x48\x8b\x05", 3);
	kit_add_reloc(o, s, 43, R_X86_64_REX_GOTPCRELX, far, -4);
	place(w, 0, s, TEXT + 0x400);
	w->code[0x400 + 41] = 0x8d;
	look(w);
	assert_string_equal(name_at(w, TEXT + 0x400), "one");
}

/* jmp *far@GOTPCREL(%rip) as the first instruction: there is no byte for a prefix before it. */
static void finds_one_that_begins_with_a_jump_through_the_got(void **state)
{
	struct world *w = *state;
	struct kit_object *o = &w->objects[0];
	uint32_t s = kit_add_function(o, "one", 256, 1),
		 far = kit_add_symbol(o, "far", KIT_UNDEFINED, 0, 0);

	memcpy(o->sections[s].bytes, "\xff\x25", 2);
	kit_add_reloc(o, s, 2, R_X86_64_GOTPCRELX, far, -4);
	place(w, 0, s, TEXT + 0x400);
	/* jmp far; nop */
	memcpy(w->code + 0x400, "\xe9\x12\x34\x56\x00\x90", 6);
	look(w);
	assert_string_equal(name_at(w, TEXT + 0x400), "one");
	w->code[0x406] ^= 1;
	look(w);
	assert_null(name_at(w, TEXT + 0x400));
}

/* A small function is found only through its callers. */
static void finds_a_small_one_by_its_caller(void **state)
{
	struct world *w = *state;
	struct kit_object *o = &w->objects[0], *other = &w->objects[1];
	uint32_t caller = kit_add_function(o, "caller", 256, 1),
		 callee = kit_add_symbol(o, "small", KIT_UNDEFINED, 0, 0),
		 small = kit_add_function(other, "small", 12, 2);

	w->n_objects = 2;
	kit_add_reloc(o, caller, 100, R_X86_64_PLT32, callee, -4);
	place(w, 1, small, TEXT + 0x1000);
	w->places[0][callee] = TEXT + 0x1000;
	place(w, 0, caller, TEXT + 0x400);
	look(w);
	assert_string_equal(name_at(w, TEXT + 0x400), "caller");
	assert_string_equal(name_at(w, TEXT + 0x1000), "small");

	/* the code there differs, whatever the archive calls it */
	w->code[0x1000] ^= 1;
	look(w);
	assert_string_equal(name_at(w, TEXT + 0x400), "caller");
	assert_null(name_at(w, TEXT + 0x1000));
}

static void names_no_small_one_that_nobody_calls(void **state)
{
	struct world *w = *state;
	uint32_t s = kit_add_function(&w->objects[0], "small", 12, 1),
		 middle = kit_add_function(&w->objects[0], "middle", 64, 2);

	place(w, 0, s, TEXT + 0x400);
	place(w, 0, middle, TEXT + 0x1000);
	look(w);
	assert_int_equal(w->err, -ENOENT);
}

/* ── what may be another one ─────────────────────────────────────────────────────────────── */

static void names_none_of_two_with_the_same_bytes(void **state)
{
	struct world *w = *state;
	uint32_t s = kit_add_function(&w->objects[0], "one", 256, 1);

	kit_add_function(&w->objects[1], "other", 256, 1);
	w->n_objects = 2;
	place(w, 0, s, TEXT + 0x400);
	look(w);
	assert_int_equal(w->err, -ENOENT);
}

static void names_one_that_two_archives_have(void **state)
{
	struct world *w = *state;
	uint32_t s = kit_add_function(&w->objects[0], "one", 256, 1);

	kit_add_function(&w->objects[1], "one", 256, 1);
	w->n_objects = 2;
	place(w, 0, s, TEXT + 0x400);
	look(w);
	assert_string_equal(name_at(w, TEXT + 0x400), "one");
}

static void names_none_that_is_in_two_places(void **state)
{
	struct world *w = *state;
	uint32_t s = kit_add_function(&w->objects[0], "one", 256, 1);

	place(w, 0, s, TEXT + 0x400);
	place(w, 0, s, TEXT + 0x1000);
	look(w);
	assert_int_equal(w->err, -ENOENT);
}

/* Two functions that differ only in what they call are distinguished where the callee's address
 * is known. */
static void distinguishes_two_by_what_they_call(void **state)
{
	static const char *const names[] = {"first", "second"};
	struct world *w = *state;
	uint32_t callee[2], caller[2];

	w->n_objects = 3;
	for (int i = 0; i < 2; i++) {
		struct kit_object *o = &w->objects[i];

		caller[i] = kit_add_function(o, i ? "calls_second" : "calls_first", 256, 1);
		callee[i] = kit_add_symbol(o, names[i], KIT_UNDEFINED, 0, 0);
		kit_add_reloc(o, caller[i], 100, R_X86_64_PLT32, callee[i], -4);
		place(w, 2, kit_add_function(&w->objects[2], names[i], 256, 10 + (uint32_t)i),
		      TEXT + 0x1000 + 0x1000 * (uint64_t)i);
	}
	w->places[1][callee[1]] = TEXT + 0x2000;
	place(w, 1, caller[1], TEXT + 0x400);
	look(w);
	assert_string_equal(name_at(w, TEXT + 0x1000), "first");
	assert_string_equal(name_at(w, TEXT + 0x400), "calls_second");
}

/* GHC compiles equal expressions to equal code, so that a match counts only next to other
 * matches. */
static void believes_haskell_code_only_among_its_own(void **state)
{
	struct world *w = *state;
	struct kit_object *o = &w->objects[0];
	uint32_t large = kit_add_function(o, "M_large_info", 2048, 1),
		 beside = kit_add_function(o, "M_beside_info", 256, 2),
		 alone = kit_add_function(o, "M_alone_info", 256, 3);

	w->haskell = true;
	place(w, 0, large, TEXT + 0x400);
	place(w, 0, beside, TEXT + 0xc00);
	place(w, 0, alone, TEXT + 0x2000);
	look(w);
	assert_int_equal(w->out.n, 2);
	assert_string_equal(name_at(w, TEXT + 0x400), "M_large_info");
	assert_string_equal(name_at(w, TEXT + 0xc00), "M_beside_info");
}

/* Padding is the same everywhere: functions that consist only of jumps have nothing else to
 * match. */
static void names_none_by_its_padding(void **state)
{
	static const uint8_t jump[16] = {0xe9, 0,    0,	   0,	 0, 0x66, 0x66, 0x2e,
					 0x0f, 0x1f, 0x84, 0x00, 0, 0,	  0,	0};
	struct world *w = *state;
	struct kit_object *o = &w->objects[0];
	uint32_t s = kit_add_section(o, 256, 1),
		 far = kit_add_symbol(o, "far", KIT_UNDEFINED, 0, 0);

	for (uint32_t at = 0; at < 256; at += sizeof(jump)) {
		memcpy(o->sections[s].bytes + at, jump, sizeof(jump));
		kit_add_reloc(o, s, at + 1, R_X86_64_PLT32, far, -4);
	}
	kit_add_symbol(o, "jumps", s, 0, 5);
	place(w, 0, s, TEXT + 0x400);
	look(w);
	assert_int_equal(w->err, -ENOENT);
}

/* ── symbols that the linker may take from elsewhere ─────────────────────────────────────── */

/* A function with a local name of its own and a weak name that another function has too. */
static uint32_t add_yielding(struct world *w)
{
	struct kit_object *o = &w->objects[0];
	uint32_t s = kit_add_section(o, 256, 1), own = kit_add_symbol(o, "own", s, 0, 256),
		 weak = kit_add_symbol(o, "shared", s, 0, 256);

	o->symbols[own].bind = STB_LOCAL;
	o->symbols[weak].bind = STB_WEAK;
	return s;
}

static void names_none_by_a_weak_symbol_that_a_strong_one_replaces(void **state)
{
	struct world *w = *state;
	uint32_t yielding = add_yielding(w),
		 strong = kit_add_function(&w->objects[1], "shared", 256, 2);

	w->n_objects = 2;
	place(w, 0, yielding, TEXT + 0x400);
	/* the local name is used whether or not the other function is found */
	look(w);
	assert_string_equal(name_at(w, TEXT + 0x400), "own");
	place(w, 1, strong, TEXT + 0x1000);
	look(w);
	assert_string_equal(name_at(w, TEXT + 0x400), "own");
	assert_string_equal(name_at(w, TEXT + 0x1000), "shared");
}

/* The strong symbol was not linked: callers of the name lead to the weak one, or to the
 * program's own. */
static void names_by_a_weak_symbol_what_is_called_so(void **state)
{
	struct world *w = *state;
	struct kit_object *o = &w->objects[2];
	uint32_t yielding = add_yielding(w), caller = kit_add_function(o, "caller", 256, 3),
		 callee = kit_add_symbol(o, "shared", KIT_UNDEFINED, 0, 0);

	kit_add_function(&w->objects[1], "shared", 256, 2);
	kit_add_reloc(o, caller, 100, R_X86_64_PLT32, callee, -4);
	w->n_objects = 3;
	place(w, 0, yielding, TEXT + 0x400);
	w->places[2][callee] = TEXT + 0x400;
	place(w, 2, caller, TEXT + 0x2000);
	look(w);
	assert_string_equal(name_at(w, TEXT + 0x400), "shared");
	w->places[2][callee] = TEXT + 0x3000;
	place(w, 2, caller, TEXT + 0x2000);
	look(w);
	assert_string_equal(name_at(w, TEXT + 0x400), "own");
	assert_string_equal(name_at(w, TEXT + 0x2000), "caller");
}

/* The name of an IFUNC may denote lld's entry for it; its resolver is named by the local symbol. */
static void names_what_chooses_a_function_by_its_own_name(void **state)
{
	struct world *w = *state;
	struct kit_object *o = &w->objects[0];
	uint32_t s = kit_add_section(o, 256, 1), chosen = kit_add_symbol(o, "copy", s, 0, 256),
		 own = kit_add_symbol(o, "copy_chooser", s, 0, 256);

	o->symbols[chosen].type = STT_GNU_IFUNC;
	o->symbols[own].bind = STB_LOCAL;
	place(w, 0, s, TEXT + 0x400);
	look(w);
	assert_string_equal(name_at(w, TEXT + 0x400), "copy_chooser");
}

/* ── what others wrote ───────────────────────────────────────────────────────────────────── */

/* However an archive is damaged, nothing crashes and whatever is found passes the check. */
static void survives_damage(void **state)
{
	struct world *w = *state;
	struct kit_object *o = &w->objects[0];
	uint32_t s = kit_add_function(o, "one", 256, 1), far = kit_add_symbol(o, "far", s, 4, 0);
	struct code_range range = {w->code, TEXT, CODE_SIZE};
	const struct code code = {&range, 1};

	kit_add_reloc(o, s, 100, R_X86_64_PLT32, far, -4);
	place(w, 0, s, TEXT + 0x400);
	w->archive_size = kit_write_archive(w->objects, 1, w->archive);
	assert_true(w->archive_size < 2048);
	for (size_t i = 0; i < w->archive_size; i++) {
		struct archive_file file;
		uint8_t *copy = malloc(w->archive_size);

		assert_non_null(copy);
		memcpy(copy, w->archive, w->archive_size);
		copy[i] ^= 0xff;
		/* exact size, so that a sanitizer detects reads beyond the end */
		file = (struct archive_file){
			.data = copy, .size = i & 1 ? w->archive_size : w->archive_size - i / 2};
		if (file.size < w->archive_size) {
			void *cut = realloc(copy, file.size);

			assert_non_null(cut);
			file.data = copy = cut;
		}
		w->out = (struct known_out){.v = w->known, .strings = w->strings};
		w->err = known__read(&file, 1, false, &code, &w->out);
		if (!w->err)
			assert_true(
				known__check(w->known, w->out.n, w->strings, w->out.strings_len));
		free(copy);
	}
}

static void checks_what_a_child_hands_over(void **state)
{
	const char strings[] = "\0one\0two";
	const struct known_raw good[] = {
		{.start = 0x10, .size = 0x10, .section = 0x10, .section_end = 0x40, .name = 1},
		{.start = 0x20, .size = 0x20, .section = 0x10, .section_end = 0x40, .name = 5},
		{.start = 0x40, .size = 0, .section = 0x40, .section_end = 0x41, .name = 5},
	};
	struct known_raw v[3];

	(void)state;
	assert_true(known__check(good, 3, strings, sizeof(strings)));
	assert_false(known__check(good, 3, strings, 3));
	assert_false(known__check(good, 3, "one", 4));
#define BAD(field, value)                                                                          \
	do {                                                                                       \
		memcpy(v, good, sizeof(v));                                                        \
		v[1].field = (value);                                                              \
		assert_false(known__check(v, 3, strings, sizeof(strings)));                        \
	} while (0)
	BAD(start, 0x10);
	BAD(start, 0x40);
	BAD(size, 0x21);
	BAD(size, UINT64_MAX);
	BAD(section, 0x18);
	BAD(section_end, 0x48);
	BAD(name, sizeof(strings));
	BAD(rts, 2);
	BAD(pad, 1);
#undef BAD
}

/* ── files, and the child that reads them ────────────────────────────────────────────────── */

#define HEADERS 0x1000

/* Writes the code as an executable with one segment. */
static size_t write_program(const struct world *w, uint8_t *out)
{
	Elf64_Ehdr eh = {.e_type = ET_EXEC,
			 .e_machine = EM_X86_64,
			 .e_version = EV_CURRENT,
			 .e_phoff = sizeof(eh),
			 .e_ehsize = sizeof(eh),
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_phnum = 1};
	const Elf64_Phdr ph = {.p_type = PT_LOAD,
			       .p_flags = PF_R | PF_X,
			       .p_offset = HEADERS,
			       .p_vaddr = TEXT,
			       .p_filesz = CODE_SIZE,
			       .p_memsz = CODE_SIZE,
			       .p_align = 0x1000};

	memset(out, 0, HEADERS);
	memcpy(eh.e_ident, ELFMAG, SELFMAG);
	eh.e_ident[EI_CLASS] = ELFCLASS64;
	eh.e_ident[EI_DATA] = ELFDATA2LSB;
	eh.e_ident[EI_VERSION] = EV_CURRENT;
	memcpy(out, &eh, sizeof(eh));
	memcpy(out + sizeof(eh), &ph, sizeof(ph));
	memcpy(out + HEADERS, w->code, CODE_SIZE);
	return HEADERS + CODE_SIZE;
}

static void reads_directories_in_a_child(void **state)
{
	static uint8_t program[HEADERS + CODE_SIZE];
	struct world *w = *state;
	char dir[] = "/tmp/safescoped-archives-XXXXXX", path[128];
	const char *dirs[] = {dir}, *none[] = {"/tmp/safescoped-no-such-directory"};
	struct kit_object *o = &w->objects[0];
	uint32_t s = kit_add_section(o, 256, 1);
	struct archives_known *known;
	struct archives *archives;
	struct confine_job *job;
	struct symbols_hit hit;
	struct elf_file *elf;
	size_t size;
	FILE *f;
	int err;

	kit_add_symbol(o, "one", s, 0, 100);
	kit_add_symbol(o, "two", s, 112, 0);
	place(w, 0, s, TEXT + 0x400);
	w->archive_size = kit_write_archive(w->objects, 1, w->archive);
	assert_non_null(mkdtemp(dir));
	assert_int_equal(archives__open(none, 1, &archives), -ENOENT);
	assert_int_equal(archives__open(dirs, 1, &archives), -ENOENT);
	assert_false(archives__are_there(none, 1));
	assert_false(archives__are_there(dirs, 1));
	snprintf(path, sizeof(path), "%s/libone.a", dir);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_int_equal(fwrite(w->archive, 1, w->archive_size, f), w->archive_size);
	assert_int_equal(fclose(f), 0);
	assert_true(archives__are_there(dirs, 1));
	assert_int_equal(archives__open(dirs, 1, &archives), 0);
	size = write_program(w, program);
	assert_int_equal(elf__open_bytes(program, size, "program", &elf), 0);
	assert_int_equal(archives__start(archives, elf, false, &job), 0);
	while ((err = archives__await(archives, elf, job, &known)) == -EBUSY)
		usleep(1000);
	confine_job__free(job);
	assert_int_equal(err, 0);

	assert_int_equal(archives_known__lookup(known, TEXT + 0x410, &hit), 0);
	assert_string_equal(hit.name, "one");
	assert_true(hit.exact && hit.start == TEXT + 0x400 && hit.size == 100);
	assert_int_equal(archives_known__lookup(known, TEXT + 0x400 + 104, &hit), 0);
	assert_string_equal(hit.name, "one");
	assert_false(hit.exact);
	assert_int_equal(archives_known__after(known, TEXT + 0x410, 0, &hit), 0);
	assert_string_equal(hit.name, "two");
	assert_int_equal(archives_known__after(known, TEXT + 0x410, 1, &hit), -ENOENT);
	assert_int_equal(archives_known__lookup(known, TEXT + 0x400 + 112, &hit), 0);
	assert_true(hit.exact && !strcmp(hit.name, "two"));
	assert_int_equal(archives_known__lookup(known, TEXT + 0x3ff, &hit), -ENOENT);
	assert_int_equal(archives_known__lookup(known, TEXT + 0x500, &hit), -ENOENT);
	archives_known__free(known);
	elf__free(elf);
	archives__free(archives);
	unlink(path);
	rmdir(dir);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(finds_a_section_in_which_the_linker_wrote),
		TEST(finds_none_that_has_another_byte),
		TEST(finds_none_that_is_not_aligned),
		TEST(finds_one_with_another_instruction),
		TEST(finds_one_that_begins_with_a_jump_through_the_got),
		TEST(finds_a_small_one_by_its_caller),
		TEST(names_no_small_one_that_nobody_calls),
		TEST(names_none_of_two_with_the_same_bytes),
		TEST(names_one_that_two_archives_have),
		TEST(names_none_that_is_in_two_places),
		TEST(distinguishes_two_by_what_they_call),
		TEST(believes_haskell_code_only_among_its_own),
		TEST(names_none_by_its_padding),
		TEST(names_none_by_a_weak_symbol_that_a_strong_one_replaces),
		TEST(names_by_a_weak_symbol_what_is_called_so),
		TEST(names_what_chooses_a_function_by_its_own_name),
		TEST(survives_damage),
		cmocka_unit_test(checks_what_a_child_hands_over),
		TEST(reads_directories_in_a_child),
	};

	log__set_level(LOG_LVL_QUIET);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
