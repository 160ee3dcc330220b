/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The modules of a file without symbols: a small program laid out as GHC does it, and the checks of
 * what a confined reader hands back.
 */
#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/base.h"
#include "elf/elf.h"
#include "confine/confine.h"
#include "names/modules_priv.h"
#include "names/modules_read_priv.h"

#define TEXT	  0x401000ULL
#define RODATA	  0x402000ULL
#define DATA	  0x403000ULL
#define PART	  0x1000
#define FILE_SIZE (PART * 4)

#define CONSTR_2_0   4
#define FUN_STATIC   14
#define THUNK_STATIC 21

/* An executable with three segments, each filled from its start. */
struct world {
	uint8_t bytes[FILE_SIZE];
	uint64_t text, rodata, data;
	uint64_t module_info, name_info; /* of GHC.Types.Module and TrNameS */
};

static uint8_t *at(struct world *w, uint64_t vaddr)
{
	return w->bytes + (vaddr - TEXT) + PART;
}

static void put64(struct world *w, uint64_t *where, uint64_t v)
{
	memcpy(at(w, *where), &v, sizeof(v));
	*where += sizeof(v);
}

static uint64_t string(struct world *w, const char *s)
{
	uint64_t here = w->rodata;

	memcpy(at(w, here), s, strlen(s) + 1);
	w->rodata += strlen(s) + 1;
	return here;
}

/* Puts an info table and `words` words of code; returns the code's address. */
static uint64_t code(struct world *w, uint32_t type, uint64_t extra, unsigned words)
{
	uint64_t here;

	put64(w, &w->text, extra);
	put64(w, &w->text, 0);
	put64(w, &w->text, type);
	here = w->text;
	for (unsigned i = 0; i < words; i++)
		put64(w, &w->text, 0x9090909090909090ULL);
	return here;
}

static uint64_t con(struct world *w, const char *description)
{
	/* relative to the code, which begins after the three words of the info table */
	uint64_t offset = string(w, description) - (w->text + 24);

	return code(w, CONSTR_2_0, offset & 0xffffffff, 1);
}

/* A function and its closure. */
static uint64_t function(struct world *w, unsigned words)
{
	uint64_t here = code(w, FUN_STATIC, 0, words);

	put64(w, &w->data, here);
	return here;
}

/* Makes the code at `from` refer to `to`. */
static void refer(struct world *w, uint64_t from, uint64_t to)
{
	uint32_t v = (uint32_t)to;

	memcpy(at(w, from), &v, sizeof(v));
}

static uint64_t tr_name(struct world *w, const char *name)
{
	uint64_t here = w->data;

	put64(w, &w->data, w->name_info);
	put64(w, &w->data, string(w, name));
	return here + 1;
}

static void tr_module(struct world *w, const char *package, const char *module)
{
	uint64_t p = tr_name(w, package), m = tr_name(w, module);

	put64(w, &w->data, w->module_info);
	put64(w, &w->data, p);
	put64(w, &w->data, m);
	put64(w, &w->data, 3);
}

static void segment(struct world *w, unsigned i, uint32_t flags, uint64_t vaddr)
{
	Elf64_Phdr ph = {.p_type = PT_LOAD,
			 .p_flags = flags,
			 .p_offset = PART + (vaddr - TEXT),
			 .p_vaddr = vaddr,
			 .p_filesz = PART,
			 .p_memsz = PART,
			 .p_align = PART};

	memcpy(w->bytes + sizeof(Elf64_Ehdr) + i * sizeof(ph), &ph, sizeof(ph));
}

static struct world *world_new(void)
{
	struct world *w = calloc(1, sizeof(*w));
	Elf64_Ehdr eh = {.e_type = ET_EXEC,
			 .e_machine = EM_X86_64,
			 .e_version = EV_CURRENT,
			 .e_phoff = sizeof(eh),
			 .e_ehsize = sizeof(eh),
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_phnum = 3};

	assert_non_null(w);
	memcpy(eh.e_ident, ELFMAG, SELFMAG);
	eh.e_ident[EI_CLASS] = ELFCLASS64;
	eh.e_ident[EI_DATA] = ELFDATA2LSB;
	eh.e_ident[EI_VERSION] = EV_CURRENT;
	memcpy(w->bytes, &eh, sizeof(eh));
	segment(w, 0, PF_R | PF_X, TEXT);
	segment(w, 1, PF_R, RODATA);
	segment(w, 2, PF_R | PF_W, DATA);
	w->text = TEXT + 64;
	w->rodata = RODATA;
	w->data = DATA;
	return w;
}

/* GHC.Types comes last, as packages do that others depend on. */
static void put_types(struct world *w)
{
	uint64_t module = w->module_info, name = w->name_info;

	function(w, 4);
	tr_module(w, "ghc-prim", "GHC.Types");
	w->module_info = con(w, "ghc-prim:GHC.Types.Module");
	w->name_info = con(w, "ghc-prim:GHC.Types.TrNameS");
	/* the closures were written before the addresses of their info tables were known */
	for (uint64_t d = DATA; d < w->data; d += 8) {
		uint64_t v;

		memcpy(&v, at(w, d), sizeof(v));
		if (v == module || v == name) {
			v = v == module ? w->module_info : w->name_info;
			memcpy(at(w, d), &v, sizeof(v));
		}
	}
}

/* Alternates between reading in one step and in two. */
static struct modules *read_modules(struct world *w)
{
	static bool in_two;
	struct confine_job *job;
	struct modules *modules;
	struct elf_file *elf;

	assert_int_equal(elf__open_bytes(w->bytes, sizeof(w->bytes), "test", &elf), 0);
	in_two = !in_two;
	if (in_two) {
		assert_int_equal(modules__start(elf, false, &job), 0);
		assert_int_equal(modules__await(elf, job, &modules), 0);
		confine_job__free(job);
	} else {
		assert_int_equal(modules__new(elf, false, &modules), 0);
	}
	elf__free(elf);
	return modules;
}

static void assert_module(const struct modules *m, uint64_t vaddr, const char *package,
			  const char *module)
{
	struct modules_hit hit;

	assert_int_equal(modules__find(m, vaddr, &hit), 0);
	assert_string_equal(hit.package, package);
	assert_string_equal(hit.module, module);
	assert_true(hit.base <= vaddr);
}

/* Constructors end a module: the code after them is the next module's. */
static void test_constructors(void **state)
{
	struct world *w = world_new();
	struct modules *m;
	uint64_t a, b, types;
	struct modules_hit hit;

	(void)state;
	w->module_info = 0x1111;
	w->name_info = 0x2222;
	a = function(w, 8);
	tr_module(w, "main", "A.One");
	con(w, "main:A.One.Red");
	con(w, "main:A.One.:|");
	b = function(w, 8);
	tr_module(w, "pkg-1.0-abc", "B");
	con(w, "pkg-1.0-abc:B.Blue");
	types = w->text + 24;
	put_types(w);
	m = read_modules(w);
	assert_module(m, a, "main", "A.One");
	assert_module(m, a + 56, "main", "A.One");
	assert_module(m, b - 24, "pkg-1.0-abc", "B");
	assert_module(m, b, "pkg-1.0-abc", "B");
	assert_module(m, types, "ghc-prim", "GHC.Types");
	assert_int_equal(modules__find(m, b, &hit), 0);
	assert_false(hit.uncertain);
	assert_int_equal(hit.base, b - 24);
	/* there is nothing after the last one */
	assert_int_equal(modules__find(m, w->text + 8, &hit), -ENOENT);
	modules__free(m);
	free(w);
}

/* Two modules without constructors are separated where no reference crosses. */
static void test_references(void **state)
{
	uint64_t one[6], two[6];
	struct world *w = world_new();
	struct modules *m;

	(void)state;
	w->module_info = 0x1111;
	w->name_info = 0x2222;
	for (int i = 0; i < 6; i++) {
		one[i] = function(w, 8);
		if (i == 1)
			tr_module(w, "main", "One");
	}
	for (int i = 0; i < 6; i++) {
		two[i] = function(w, 8);
		if (i == 4)
			tr_module(w, "main", "Two");
	}
	for (int i = 0; i < 6; i++)
		for (int k = 0; k < 6; k++) {
			refer(w, one[i] + 1 + 8 * (uint64_t)k, one[k]);
			refer(w, two[i] + 1 + 8 * (uint64_t)k, two[k]);
		}
	put_types(w);
	m = read_modules(w);
	for (int i = 0; i < 6; i++) {
		assert_module(m, one[i], "main", "One");
		assert_module(m, two[i], "main", "Two");
	}
	modules__free(m);
	free(w);
}

/* Without $trModule there may be another module in front of the constructors. */
static void test_collected(void **state)
{
	struct world *w = world_new();
	struct modules_hit hit;
	struct modules *m;
	uint64_t f;

	(void)state;
	function(w, 8);
	con(w, "p:A.X");
	f = function(w, 8);
	con(w, "p:B.Y");
	m = read_modules(w);
	assert_module(m, f, "p", "B");
	assert_int_equal(modules__find(m, f, &hit), 0);
	assert_true(hit.uncertain);
	modules__free(m);
	free(w);
}

/* Puts an instruction's address operand, absolute or relative to the instruction's end. */
static void address(struct world *w, uint64_t from, uint64_t to, bool relative)
{
	refer(w, from, relative ? to - (from + 4) : to);
}

/* A 7-byte lea to(%rip),%REG or mov $to,%REG, which ends with the address; reg: 2 rdx, 7 rdi. */
static void load(struct world *w, uint64_t from, unsigned reg, uint64_t to, bool relative)
{
	const uint8_t lea[] = {0x48, 0x8d, (uint8_t)(0x05 | reg << 3)},
		      mov[] = {0x48, 0xc7, (uint8_t)(0xc0 | reg)};

	memcpy(at(w, from), relative ? lea : mov, 3);
	address(w, from + 3, to, relative);
}

static void set_entry(struct world *w, uint64_t entry)
{
	Elf64_Ehdr eh;

	memcpy(&eh, w->bytes, sizeof(eh));
	eh.e_entry = entry;
	memcpy(w->bytes, &eh, sizeof(eh));
}

enum main_is { AFTER_MAIN, IN_FRONT, OF_C };

/*
 * A program in which nothing bears Main's name. Its entry point loads the address of main(). Before
 * that comes an instruction with an immediate that happens to contain the address of a decoy, which
 * loads the address of a Haskell closure. main() lies after Main or in front of all code, and runs
 * a closure of Main's; or it is a C program's.
 */
static struct modules *read_program(struct world *w, enum main_is where, bool relative,
				    uint64_t ret_functions[3])
{
	uint64_t start = w->text, main_at = start + 129, closure, other, decoy;

	memset(at(w, start), 0x90, 768);
	w->text += 768;
	function(w, 8);
	con(w, "own-1.0-exe:Lib.T");
	ret_functions[0] = function(w, 8);
	closure = w->data;
	ret_functions[1] = function(w, 1);
	if (where != IN_FRONT) {
		main_at = w->text + 3;
		memset(at(w, w->text), 0x90, 512);
		w->text += 512;
	}
	ret_functions[2] = function(w, 8);
	con(w, "other-2.0:A.X");
	other = w->data;
	function(w, 8);
	decoy = function(w, 64);
	load(w, decoy, 2, other, relative);
	if (where != OF_C)
		load(w, main_at + 200, 2, closure, relative);
	/* add $…,%eax */
	*at(w, start + 10) = 0x05;
	address(w, start + 12, decoy, relative);
	load(w, start + 30, 7, main_at, relative);
	set_entry(w, start);
	return read_modules(w);
}

/* The modules before main() are the program's, and the last of them is Main. */
static void test_main(void **state)
{
	(void)state;
	for (int relative = 0; relative < 2; relative++) {
		struct world *w = world_new();
		uint64_t functions[3];
		struct modules *m = read_program(w, AFTER_MAIN, relative, functions);
		struct modules_hit hit;

		assert_module(m, functions[0], "own-1.0-exe", "Main");
		assert_int_equal(modules__find(m, functions[0], &hit), 0);
		/* there may be a module without a mark */
		assert_true(hit.uncertain);
		assert_module(m, functions[1], "own-1.0-exe", "Main");
		assert_int_equal(modules__find(m, functions[1], &hit), 0);
		assert_false(hit.uncertain);
		assert_module(m, functions[2], "other-2.0", "A");
		modules__free(m);
		free(w);
	}
}

/* A C main() that starts no closure proves nothing, and neither does one in front of Main. */
static void test_other_main(void **state)
{
	(void)state;
	for (int way = 0; way < 4; way++) {
		struct world *w = world_new();
		uint64_t functions[3];
		struct modules *m = read_program(w, way & 2 ? OF_C : IN_FRONT, way & 1, functions);

		assert_module(m, functions[0], "other-2.0", "A");
		assert_module(m, functions[1], "other-2.0", "A");
		modules__free(m);
		free(w);
	}
}

/* A header may have any entry address. */
static void test_entries(void **state)
{
	static const uint64_t entries[] = {
		0,
		1,
		TEXT - 1,
		TEXT,
		TEXT + 4095,
		TEXT + 4096,
		0x7fffffffffffULL,
		UINT64_MAX - 99,
		UINT64_MAX,
		UINT64_MAX - 63,
		UINT64_MAX - 3,
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
		struct world *w = world_new();
		struct modules *m;
		uint64_t f = function(w, 8);

		con(w, "p:A.X");
		function(w, 8);
		set_entry(w, entries[i]);
		m = read_modules(w);
		assert_module(m, f, "p", "A");
		modules__free(m);
		free(w);
	}
}

/* A module that is known only by a failing pattern match, between two others. */
static void test_source(void **state)
{
	static const struct {
		const char *text, *module; /* module NULL: the next module is found */
	} cases[] = {
		{"src/Foo/Bar.hs:(1,2)-(3,4)|function f", "Foo.Bar"},
		{"Foo.hs:1:2-3|x", "Foo"},
		{"./a/b/Foo/Bar.lhs:1:2-3|x", "Foo.Bar"},
		{"Pattern match failure in do expression at lib/F.hs:1:2-3", "F"},
		{"Data/src/Foo.hs:1:2-3|x", "Foo"},
		{"src/foo.hs:1:2-3|x", NULL},
		{"src/Foo.c:1:2", NULL},
		{"hs:1", NULL},
		{".hs:1", NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct world *w = world_new();
		uint64_t f, g, text;
		struct modules_hit hit;
		struct modules *m;

		function(w, 8);
		con(w, "p:A.X");
		text = string(w, cases[i].text);
		f = function(w, 8);
		address(w, f + 5, text, i & 1);
		g = function(w, 8);
		con(w, "p:B.Y");
		function(w, 1);
		m = read_modules(w);
		assert_module(m, f + 8, "p", cases[i].module ? cases[i].module : "B");
		assert_module(m, g + 64, "p", "B");
		/* there may be another module as well */
		assert_int_equal(modules__find(m, f + 8, &hit), 0);
		assert_true(hit.uncertain);
		modules__free(m);
		free(w);
	}
}

/*
 * An inlined function brings its source places along: if they occur on both sides of a mark, they
 * name no module.
 */
static void test_inlined_source(void **state)
{
	struct world *w = world_new();
	struct modules *m;
	uint64_t f, g, text;

	(void)state;
	text = string(w, "src/Foo.hs:1:2-3|x");
	f = function(w, 8);
	refer(w, f + 5, text);
	con(w, "p:A.X");
	g = function(w, 8);
	refer(w, g + 5, text);
	con(w, "p:B.Y");
	function(w, 1);
	m = read_modules(w);
	assert_module(m, f, "p", "A");
	assert_module(m, g, "p", "B");
	modules__free(m);
	free(w);
}

static void test_nothing(void **state)
{
	struct world *w = world_new();
	struct modules *m;
	struct elf_file *elf;

	(void)state;
	function(w, 8);
	assert_int_equal(elf__open_bytes(w->bytes, sizeof(w->bytes), "test", &elf), 0);
	assert_int_equal(modules__new(elf, false, &m), -ENOENT);
	elf__free(elf);
	free(w);
}

static void test_descriptions(void **state)
{
	static const struct {
		const char *text, *package, *module; /* package NULL: none */
	} cases[] = {
		{"base:GHC.Base.:|", "base", "GHC.Base"},
		{"base:GHC.Base.C:Monad", "base", "GHC.Base"},
		{"text-1.2.5.0:Data.Text.Internal.Text", "text-1.2.5.0", "Data.Text.Internal"},
		{"base:GHC.Generics.:.:", "base", "GHC.Generics"},
		{"main:Main.Foo'_2", "main", "Main"},
		{"ghc-prim:GHC.Tuple.(,)", "ghc-prim", "GHC.Tuple"},
		{"Main", NULL, NULL},
		{":Main.Foo", NULL, NULL},
		{"main:Main", NULL, NULL},
		{"main:Main.", NULL, NULL},
		{"main:foo.Bar", NULL, NULL},
		{"a b:Main.Foo", NULL, NULL},
		{"", NULL, NULL},
	};
	struct mod_name name;
	struct strtab *tab;

	(void)state;
	assert_int_equal(strtab__new(&tab), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *text = cases[i].text;
		bool is = mod_name__of_description(text, strlen(text), tab, &name);

		assert_int_equal(is, cases[i].package != NULL);
		if (!is)
			continue;
		assert_string_equal(strtab__get(tab, name.package), cases[i].package);
		assert_string_equal(strtab__get(tab, name.module), cases[i].module);
	}
	strtab__free(tab);
}

/* What a compromised child may hand back. */
static void test_check(void **state)
{
	const struct modules_raw good[] = {
		{.start = 16, .end = 32, .base = 16, .package = 0, .module = 1},
		{.start = 32, .end = 40, .base = 16, .package = 1, .module = 2, .uncertain = 1},
	};
	struct modules_raw raw[2];
	const char strings[] = "\0a\0b";

	(void)state;
	assert_true(modules__check(good, 2, strings, sizeof(strings)));
	assert_true(modules__check(good, 0, strings, sizeof(strings)));
	assert_false(modules__check(good, 2, strings, 0));
	assert_false(modules__check(good, 2, strings, sizeof(strings) - 1));
#define BAD(field, value)                                                                          \
	memcpy(raw, good, sizeof(raw));                                                            \
	raw[1].field = (value);                                                                    \
	assert_false(modules__check(raw, 2, strings, sizeof(strings)))
	BAD(start, 31);
	BAD(end, 32);
	BAD(end, 0);
	BAD(base, 33);
	BAD(package, sizeof(strings));
	BAD(module, UINT32_MAX);
	BAD(uncertain, 2);
	BAD(pad, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_constructors),   cmocka_unit_test(test_references),
		cmocka_unit_test(test_collected),      cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_descriptions),   cmocka_unit_test(test_check),
		cmocka_unit_test(test_main),	       cmocka_unit_test(test_other_main),
		cmocka_unit_test(test_entries),	       cmocka_unit_test(test_source),
		cmocka_unit_test(test_inlined_source),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
