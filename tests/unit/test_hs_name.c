/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Haskell names from provenance, DWARF and descriptions; C++ names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/base.h"
#include "confine/confine.h"
#include "names/demangle_priv.h"
#include "names/hs_name_priv.h"

static struct demangler *demangler;

static int begin(void **state)
{
	(void)state;
	return demangler__new(&demangler);
}

static int end(void **state)
{
	(void)state;
	demangler__free(demangler);
	return 0;
}

/* Labels as GHC 9.6.6 and 9.10.3 write them into their maps. */
static void occurrences(void **state)
{
	static const char *const cases[][2] = {
		{"outer_info", "outer"},
		{"$wmiddle_r10Q_info", "$wmiddle"},
		{"loop_r10O_info", "loop"},
		{"$wpoly_create_r3cV_info", "$wpoly_create"},
		{"$sfromList1_info", "$sfromList1"},
		{"go3_s3fX_info", "go3"},
		{"sat_s148_info", "sat_s148"},
		{"lvl8_s13O_info", "lvl8"},
		{"lvl_s13O_info", "lvl_s13O"},
		{"block_c154_info", "block_c154"},
		{"Foo_con_info", "Foo"},
		/* not uniques: all lower case, or nothing before it */
		{"from_list_info", "from_list"},
		{"$wpoly_go8_info", "$wpoly_go8"},
		{"_x1_info", "_x1"},
		{"", ""},
		{"_info", "_info"},
	};
	char out[HS_NAME_LEN];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		hs_name__occurrence(cases[i][0], out);
		assert_string_equal(out, cases[i][1]);
	}
}

static void combinations(void **state)
{
	static const char *const cases[][3] = {
		{"outer", "$wouter", "$wouter"},
		{"main.go", "$wgo", "main.$wgo"},
		{"main.go.x", "$wgo", "main.go.x"},
		{"inner.loop", "sat_s148", "inner.loop"},
		{"go", "$w$sgo", "$w$sgo"},
		{"Foo.bar.+++", "$c+++", "Foo.bar.$c+++"},
		{".", "$w.", "$w."},
		{"", "poly_go2", "poly_go2"},
		{"main", "", "main"},
		{"", "", ""},
	};
	char out[HS_NAME_LEN];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		hs_name__combine(cases[i][0], cases[i][1], out);
		assert_string_equal(out, cases[i][2]);
	}
}

/* Tables and bindings of maps that GHC 9.6.6 and 9.10.3 wrote. */
static void tables(void **state)
{
	static const char *const cases[][3] = {
		{"go1_samc_info", "", "go1"},
		{"go1_sbae_info", "", "go1"},
		{"$wgo_sabcd_info", "", "$wgo"},
		{"go5_r6Qp_info", "", "go5"},
		{"lvl_r8Nv_info", "", "lvl_r8Nv"},
		{"sat_sano_info", "", "sat_sano"},
		{"sat_s2rJ_info", "outer.go", "outer.go"},
		{"block_caul_info", "", "block_caul"},
		{"$wgo_samc_info", "main.go", "main.$wgo"},
		{"$wcopy_r3_info", "copy_r3", "$wcopy_r3"},
		{"$wcopy_r3_s4gX_info", "main.copy_r3", "main.$wcopy_r3"},
		{"my_sA1_info", "my_sA1", "my_sA1"},
		{"$wread_rows_info", "read_rows", "$wread_rows"},
		/* words */
		{"$sread_rows_info", "", "$sread_rows"},
		{"$fShapeCircle_go_info", "", "$fShapeCircle_go"},
		{"from_list_info", "", "from_list"},
		{"_pos_info", "", "_pos"},
		{"", "", ""},
	};
	char out[HS_NAME_LEN];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		hs_name__of_table(cases[i][0], cases[i][1], out);
		assert_string_equal(out, cases[i][2]);
	}
}

static void made_up(void **state)
{
	(void)state;
	assert_true(hs_name__is_made_up("c1Tx", NULL));
	assert_true(hs_name__is_made_up("c4lv", NULL));
	assert_true(hs_name__is_made_up("L7133701809754869848", NULL));
	assert_true(hs_name__is_made_up("L7133701809754869848", "_L7133701809754869849"));
	assert_false(hs_name__is_made_up("main", NULL));
	assert_false(hs_name__is_made_up("inner.loop", NULL));
	assert_false(hs_name__is_made_up("collect", NULL));
	assert_false(hs_name__is_made_up("cjzv", NULL));
	assert_false(hs_name__is_made_up("checkAll", NULL));
	assert_false(hs_name__is_made_up("L1", NULL));
	assert_false(hs_name__is_made_up("c", NULL));
	assert_false(hs_name__is_made_up("", NULL));
	/* numbers of one sequence */
	assert_true(hs_name__is_made_up("cjzv", "_cjzw"));
	assert_true(hs_name__is_made_up("c1Tx", "_c1U0"));
	assert_true(hs_name__is_made_up("cjzv", "cjA0"));
	assert_false(hs_name__is_made_up("copy", "_cjzw"));
	assert_false(hs_name__is_made_up("cmpK", "_c1Tx"));
	assert_false(hs_name__is_made_up("checkAll", "_c1Tx"));
	assert_false(hs_name__is_made_up("cjzv", "clbs_info"));
}

static void descriptions(void **state)
{
	static const struct {
		const char *text, *module, *name;
	} cases[] = {
		{"<TreeA.$wloop_r1M3>", "TreeA", "$wloop"},
		{"<Data.Map.Internal.sat_s1P8>", "Data.Map.Internal", "sat_s1P8"},
		{"<$wpoly_go8>", "", "$wpoly_go8"},
		{"<$walpha_r1M3>", "", "$walpha"},
		{"<$l$wgo_g3FF>", "", "$l$wgo"},
		{"<main>", "", "main"},
		{"<main:Main.lvl3>", "Main", "lvl3"},
		{"<ghc-prim:GHC.Types.:>", "GHC.Types", ":"},
		/* with its package a name always has a unique, however short and of any origin */
		{"<main:NamesB.$wdelta_rc>", "NamesB", "$wdelta"},
		{"<main:Main.to_end_r3>", "Main", "to_end"},
		{"<base:GHC.Base.++_04>", "GHC.Base", "++"},
		{"<main:Main.sat_sym>", "Main", "sat_sym"},
		{"<main:Main.sat_r3mf>", "Main", "sat"},
		{"<main:Main.block_r9>", "Main", "block"},
		{"<main:Main.lvl_r3mf>", "Main", "lvl_r3mf"},
		{"<main:Main.bracket__rGn>", "Main", "bracket_"},
		{"<main::Main.main_01D>", ":Main", "main"},
		{"<:Main.main>", ":Main", "main"},
		/* so does one with a module alone, which is not exported */
		{"<Main.go1_shck>", "Main", "go1"},
		{"<Main.copy_r3_sA1>", "Main", "copy_r3"},
		{"<Main.sat_shdp>", "Main", "sat_shdp"},
		/* without a module it may be part of the name */
		{"<to_end>", "", "to_end"},
		{"<copy_r3>", "", "copy_r3"},
		{"<:>", "", ":"},
		{"<::>", "", "::"},
		{"<:.:>", "", ":.:"},
		{"<Data.Function..>", "Data.Function", "."},
		{"<Main.D:Foo_s1a2>", "Main", "D:Foo"},
		{"<D:Foo_s1a2>", "", "D:Foo"},
		{"<.>", "", "."},
		{"<Foo>", "", "Foo"},
		/* only the low byte of each character is there */
		{"<lib-0.2.1-5v3kPq8z:Gr\xf6\xdf\x65.T\xfcr.$w\xf6\x66\x66ne_rz>", "Größe.Tür",
		 "$wöffne"},
		{"<\xd6l.Main.fl\xf6\xdf_s1a2>", "Öl.Main", "flöß"},
		{"<main:Main.\x18\x18_r3>", "Main", "\xef\xbf\xbd\xef\xbf\xbd"},
		{"<main:Main.\xb1\xb2_x_r3>", "Main", "\xef\xbf\xbd\xef\xbf\xbd_x"},
		{"<main:Größe.öffne_r3>", "Größe", "öffne"},
	};
	static const struct {
		const char *text, *package;
	} packages[] = {
		{"<main:Main.lvl3_r3>", "main"},
		{"<ghc-prim:GHC.Types.:_04>", "ghc-prim"},
		{"<text-1.2.5.0-5v3kPq8zXyWAbCdE:Data.Text.pack_r3>",
		 "text-1.2.5.0-5v3kPq8zXyWAbCdE"},
		{"<Main.lvl3>", ""},
		{"<main>", ""},
		{"<:Main.main>", ""},
	};
	static const char *const bad[] = {"", "<", "<>", "BLACKHOLE", "<a", "a>"};
	char lengthy[2 * HS_NAME_LEN], text[HS_NAME_LEN];
	struct hs_description d;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_true(hs_name__description(cases[i].text, &d));
		assert_string_equal(d.module, cases[i].module);
		assert_string_equal(d.name, cases[i].name);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(hs_name__description(bad[i], &d));
	memset(lengthy, 'x', sizeof(lengthy));
	lengthy[0] = '<';
	lengthy[sizeof(lengthy) - 2] = '>';
	lengthy[sizeof(lengthy) - 1] = '\0';
	assert_false(hs_name__description(lengthy, &d));
	for (size_t i = 0; i < ARRAY_SIZE(packages); i++) {
		assert_true(hs_name__description(packages[i].text, &d));
		assert_string_equal(d.package, packages[i].package);
	}
	/* packages and modules that do not fit are rejected */
	memset(lengthy, 'x', sizeof(lengthy));
	snprintf(text, sizeof(text), "<M%.254s.insert>", lengthy);
	assert_true(hs_name__description(text, &d));
	snprintf(text, sizeof(text), "<M%.255s.insert>", lengthy);
	assert_false(hs_name__description(text, &d));
	snprintf(text, sizeof(text), "<%.159s:M.insert_r3>", lengthy);
	assert_true(hs_name__description(text, &d));
	snprintf(text, sizeof(text), "<%.160s:M.insert_r3>", lengthy);
	assert_false(hs_name__description(text, &d));
}

static void cxx(void **state)
{
	char buf[256], deep[4096];
	bool later = false;

	(void)state;
	assert_string_equal(
		demangle(demangler, CONFINE_NOBODY, "_ZN3foo3barEi", buf, sizeof(buf), &later),
		"foo::bar(int)");
	assert_string_equal(demangle(demangler, CONFINE_NOBODY, "_ZNSt6vectorIiSaIiEE9push_backEOi",
				     buf, sizeof(buf), &later),
			    "std::vector<int, std::allocator<int> >::push_back(int&&)");
	assert_string_equal(demangle(demangler, CONFINE_NOBODY, "malloc", buf, sizeof(buf), &later),
			    "malloc");
	assert_string_equal(demangle(demangler, CONFINE_NOBODY, "_start", buf, sizeof(buf), &later),
			    "_start");
	assert_string_equal(
		demangle(demangler, CONFINE_NOBODY, "_Znonsense", buf, sizeof(buf), &later),
		"_Znonsense");
	/* crafted deep recursion ends */
	memset(deep, 'P', sizeof(deep));
	memcpy(deep, "_Z1fP", 5);
	deep[2000] = 'i';
	deep[2001] = '\0';
	assert_non_null(demangle(demangler, CONFINE_NOBODY, deep, buf, sizeof(buf), &later));
	deep[2000] = 'P';
	deep[2001] = 'P';
	deep[sizeof(deep) - 1] = '\0';
	assert_string_equal(demangle(demangler, CONFINE_NOBODY, deep, buf, sizeof(buf), &later),
			    deep);
}

/* Makes a symbol whose text doubles with each repetition: f<A<B, B>, A<B, B>>, … */
static void exponential(char *out, size_t size, unsigned int times)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char substitution[8] = "S_";
	size_t n;

	/* S_ is the first "1A", then each "PFvXXE" has two of the previous one: */
	n = (size_t)snprintf(out, size, "_Z1f1A");
	for (unsigned int i = 0; i < times && n < size - 16; i++) {
		/* void (A, A), whose function type and pointer are two more substitutions */
		n += (size_t)snprintf(out + n, size - n, "PFv%s%sE", substitution, substitution);
		if (2 * i + 1 < 36)
			snprintf(substitution, sizeof(substitution), "S%c_", digits[2 * i + 1]);
		else
			snprintf(substitution, sizeof(substitution), "S%c%c_",
				 digits[(2 * i + 1) / 36], digits[(2 * i + 1) % 36]);
	}
}

static void cxx_without_end(void **state)
{
	char name[1024], buf[256];
	uint64_t own, most_before, most_after;
	bool later = false;

	(void)state;
	usage__own(&own, &most_before);
	/* a short one is demangled */
	exponential(name, sizeof(name), 2);
	assert_string_not_equal(demangle(demangler, CONFINE_NOBODY, name, buf, sizeof(buf), &later),
				name);
	assert_non_null(strstr(buf, "void (*)(A, A)"));
	for (unsigned int times = 30; times < 60; times++) {
		exponential(name, sizeof(name), times);
		assert_true(strlen(name) < 700);
		assert_string_equal(
			demangle(demangler, CONFINE_NOBODY, name, buf, sizeof(buf), &later), name);
	}
	usage__own(&own, &most_after);
	assert_in_range(most_after - most_before, 0, 8U << 20);
	/* a retry would not help: it had all the time that is available */
	assert_false(later);
	/* and the next symbol is demangled */
	assert_string_equal(
		demangle(demangler, CONFINE_NOBODY, "_ZN3foo3bazEi", buf, sizeof(buf), &later),
		"foo::baz(int)");
}

/* A user whose time is used up: that user's symbols stay mangled until there is time again. */
static void cxx_without_time(void **state)
{
	const uid_t slow = 70003;
	bool later = false;
	char buf[256];

	(void)state;
	assert_string_equal(demangle(demangler, slow, "_ZN3foo3barEi", buf, sizeof(buf), &later),
			    "foo::bar(int)");
	assert_false(later);
	confine__waited(slow, 1000000000000ULL, 0);
	assert_string_equal(demangle(demangler, slow, "_ZN3foo3bazEi", buf, sizeof(buf), &later),
			    "_ZN3foo3bazEi");
	assert_true(later);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(occurrences),	   cmocka_unit_test(combinations),
		cmocka_unit_test(tables),	   cmocka_unit_test(made_up),
		cmocka_unit_test(descriptions),	   cmocka_unit_test(cxx),
		cmocka_unit_test(cxx_without_end), cmocka_unit_test(cxx_without_time),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
