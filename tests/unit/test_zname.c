/* SPDX-License-Identifier: GPL-2.0-or-later */
/* GHC's labels: what they show, and that nothing overflows. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/base.h"
#include "names/zname_priv.h"

static void escapes(void **state)
{
	static const struct {
		const char *enc, *dec;
	} cases[] = {
		{"", ""},
		{"foo", "foo"},
		{"zpzp", "++"},
		{"zgzgze", ">>="},
		{"zdwgo", "$wgo"},
		{"GHCziBase", "GHC.Base"},
		{"ghczmprim", "ghc-prim"},
		{"ZLZRZMZNZCZZ", "()[]:Z"},
		{"zzzazbzczdzezgzhzizlzmznzpzqzrzsztzuzv", "z&|^$=>#.<-!+'\\/*_%"},
		{"Z0T", "()"},
		{"Z2T", "(,)"},
		{"Z5T", "(,,,,)"},
		{"Z0H", "(##)"},
		{"Z1H", "(# #)"},
		{"Z3H", "(#,,#)"},
		{"ZLzhz20UzhZR", "(# #)"}, /* as 9.14 writes it */
		{"z39UpH", "9pH"},
		{"z3b1U", "\xce\xb1"}, /* alpha */
		{"z0e9U", "\xc3\xa9"},
		{"z1d4b3U", "\xf0\x9d\x92\xb3"},
		{"z0a0U", "\xc2\xa0"},
		/* no valid escapes */
		{"z", "z"},
		{"Z", "Z"},
		{"zy", "y"},
		{"ZA", "A"},
		{"z12", "z12"},
		{"z12T", "z12T"},
		{"Z12", "Z12"},
		{"Z999T", "Z999T"},
		{"z1bU", "\xef\xbf\xbd"}, /* ESC is replaced */
		{"zd800U", "$800U"},
		{"z0d800U", "\xef\xbf\xbd"},
		{"z110000U", "\xef\xbf\xbd"},
		{"z99999999999U", "z99999999999U"},
	};
	char out[64];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_true(zname__zdecode(cases[i].enc, strlen(cases[i].enc), out, sizeof(out)));
		assert_string_equal(out, cases[i].dec);
	}
}

static void decoding_is_bounded(void **state)
{
	char out[4];

	(void)state;
	assert_true(zname__zdecode("abc", 3, out, 4));
	assert_false(zname__zdecode("abcd", 4, out, 4));
	assert_string_equal(out, "abc");
	assert_false(zname__zdecode("abz3b1U", 7, out, 4)); /* never half a character */
	assert_string_equal(out, "ab");
	assert_false(zname__zdecode("abz3b1Uc", 8, out, 4)); /* nor one after a gap */
	assert_string_equal(out, "ab");
	assert_false(zname__zdecode("a", 1, out, 1));
	assert_string_equal(out, "");
}

struct label {
	const char *sym;
	const char *package, *module, *name;
	enum zname_kind kind;
	const char *unique;
};

static const struct label haskell[] = {
	{"base_GHCziBase_zpzp_info", "base", "GHC.Base", "++", ZNAME_INFO, ""},
	{"base_GHCziBase_zgzgze_slow", "base", "GHC.Base", ">>=", ZNAME_SLOW, ""},
	{"Main_zdwdeep_info", "", "Main", "$wdeep", ZNAME_INFO, ""},
	{"Main_work_info", "", "Main", "work", ZNAME_INFO, ""},
	{"Main_main7_info", "", "Main", "main7", ZNAME_INFO, ""},
	{"ZCMain_main_info", "", ":Main", "main", ZNAME_INFO, ""},
	{"ZCMain_main_closure", "", ":Main", "main", ZNAME_CLOSURE, ""},
	{"containerszm0zi6zi4zi1_DataziMapziInternal_zdwgo_info", "containers-0.6.4.1",
	 "Data.Map.Internal", "$wgo", ZNAME_INFO, ""},
	{"textzm1zi2zi5zi0zm6F7aQx9bT2mKpL3dZZwR8eN_DataziText_unpack_closure", "text-1.2.5.0",
	 "Data.Text", "unpack", ZNAME_CLOSURE, ""},
	{"mylibzm0zi1zi0zi0zminplace_MyziLib_run_info", "mylib-0.1.0.0", "My.Lib", "run",
	 ZNAME_INFO, ""},
	{"HUnitzm1zi6zi2zi0_TestziHUnitziBase_assert_info", "HUnit-1.6.2.0", "Test.HUnit.Base",
	 "assert", ZNAME_INFO, ""},
	{"ghczmprim_GHCziTuple_Z2T_con_info", "ghc-prim", "GHC.Tuple", "(,)", ZNAME_CON_INFO, ""},
	{"ghczmprim_GHCziTypes_ZC_con_info", "ghc-prim", "GHC.Types", ":", ZNAME_CON_INFO, ""},
	{"ghczmprim_GHCziTypes_ZMZN_closure", "ghc-prim", "GHC.Types", "[]", ZNAME_CLOSURE, ""},
	{"ghczmprim_GHCziTypes_Bool_closure_tbl", "ghc-prim", "GHC.Types", "Bool",
	 ZNAME_CLOSURE_TBL, ""},
	{"ghczminternal_GHCziInternalziBase_map_info", "ghc-internal", "GHC.Internal.Base", "map",
	 ZNAME_INFO, ""},
	{"Main_zdfShowFoozuzdcshow_info", "", "Main", "$fShowFoo_$cshow", ZNAME_INFO, ""},
	{"Main_fzq_info", "", "Main", "f'", ZNAME_INFO, ""},
	{"Main_deep_HPC_cc", "", "Main", "deep", ZNAME_CC, ""},
	{"Main_deep_EXPR_cc", "", "Main", "deep", ZNAME_CC, ""},
	{"Main_CAFs_cc_ccs", "", "Main", "CAFs", ZNAME_CCS, ""},
	{"Main_Foo_con_entry", "", "Main", "Foo", ZNAME_CON_ENTRY, ""},
	{"Main_Just_Main_12_con_info", "", "Main", "Just", ZNAME_CON_INFO, ""},
	{"base_GHCziMaybe_Just_Main_12_con_info", "base", "GHC.Maybe", "Just", ZNAME_CON_INFO, ""},
	{"Main_x_bytes", "", "Main", "x", ZNAME_BYTES, ""},
	{"Main_x_ct", "", "Main", "x", ZNAME_TICKY, ""},
	{"Main_ipe_buf", "", "Main", "", ZNAME_IPE, ""},
	{"_Main_sat_s3g1_entry", "", "Main", "sat", ZNAME_ENTRY, "s3g1"},
	{"_Main_lvl4_r3bZ_entry", "", "Main", "lvl4", ZNAME_ENTRY, "r3bZ"},
	{"_Main_zdwgo_s1xY_info", "", "Main", "$wgo", ZNAME_INFO, "s1xY"},
	{"Main_go_info$def", "", "Main", "go", ZNAME_INFO, ""},
};

static void haskell_labels(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(haskell); i++) {
		const struct label *l = &haskell[i];
		struct zname z;

		print_message("%s\n", l->sym);
		assert_int_equal(zname__decode(l->sym, &z), 0);
		assert_true(z.is_haskell);
		assert_false(z.is_rts);
		assert_false(z.truncated);
		assert_string_equal(z.package, l->package);
		assert_string_equal(z.module, l->module);
		assert_string_equal(z.name, l->name);
		assert_string_equal(z.unique, l->unique);
		assert_int_equal(z.kind, l->kind);
	}
}

static void rts_labels_keep_their_name(void **state)
{
	static const struct {
		const char *sym;
		enum zname_kind kind;
	} cases[] = {
		{"stg_ap_p_info", ZNAME_INFO},	     {"stg_upd_frame_info", ZNAME_INFO},
		{"stg_TSO_info", ZNAME_INFO},	     {"stg_ap_0_fast", ZNAME_FAST},
		{"stg_newByteArrayzh", ZNAME_OTHER}, {"__stg_gc_enter_1", ZNAME_OTHER},
		{"stg_Z2T_info", ZNAME_INFO},
	};
	struct zname z;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(zname__decode(cases[i].sym, &z), 0);
		assert_true(z.is_rts);
		assert_false(z.is_haskell);
		assert_string_equal(z.name, cases[i].sym);
		assert_string_equal(z.package, "rts");
		assert_string_equal(z.module, "");
		assert_int_equal(z.kind, cases[i].kind);
	}
}

static void other_symbols_keep_their_name(void **state)
{
	static const char *const cases[] = {
		"",
		"_",
		"__",
		"_info",
		"suspendThread",
		"malloc",
		"usleep",
		"__libc_start_main",
		"main",
		"get_cpu_info",
		"foo_entry",
		"Foo_info",
		"Main__info",
		"_Main_info",
		"a.b_C_d_info",
		"x_y_z_w_info",
		"Main_a_b_c_info",
		"z_Main_",
		"_ZNSt6vectorIiSaIiEE9push_backEOi",
	};
	struct zname z;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("%s\n", cases[i]);
		assert_int_equal(zname__decode(cases[i], &z), -ENOENT);
		assert_false(z.is_haskell || z.is_rts);
		assert_string_equal(z.name, cases[i]);
		assert_string_equal(z.package, "");
		assert_string_equal(z.module, "");
		assert_string_equal(z.unique, "");
	}
	assert_int_equal(zname__decode("ghczuwrapperZC0ZCmainZCMainZCusleep", &z), -ENOENT);
	assert_string_equal(z.name, "ghc_wrapper:0:main:Main:usleep");
}

/* The symbols are those that GHC 9.0 and 9.10 gave such imports. */
static void wrappers(void **state)
{
	static const struct {
		const char *sym, *package, *module, *name;
	} cases[] = {
		{"zdmainzdMainzdMainzuwrapCallback", "", "Main", "wrapCallback"},
		{"zdacmezmstorezm0zi1zdAcmeziStoreziNativezdacmezzmstorezzm0zzi1zu"
		 "AcmezziStorezziNativezumkCb",
		 "acme-store-0.1", "Acme.Store.Native", "mkCb"},
		{"zdmainzdMainzdMainzumkzzuwrapzzq", "", "Main", "mk_wrap'"},
	};
	static const char *const others[] = {
		"",
		"zd",
		"zdmain",
		"zdmainzdMain",
		"zdmainzdMainzdMain",
		"zdmainzdMainzdMainzu",
		"zdzdzdzu",
		"zdmainzdmainzdmainzuwrap",
		"zdmainzdMainzdMainzdMainzuwrap",
		"usleep",
	};
	char longest[4096] = "zdmainzdMainzdMainzu";
	struct zname z = {.name = "kept"};

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		assert_false(zname__wrapper(others[i], &z));
		assert_string_equal(z.name, "kept");
	}
	memset(longest + strlen(longest), 'a', sizeof(longest) - strlen(longest) - 1);
	assert_false(zname__wrapper(longest, &z));
	longest[700] = '\0';
	assert_false(zname__wrapper(longest, &z));
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_true(zname__wrapper(cases[i].sym, &z));
		assert_string_equal(z.package, cases[i].package);
		assert_string_equal(z.module, cases[i].module);
		assert_string_equal(z.name, cases[i].name);
	}
}

static void long_labels_are_cut(void **state)
{
	char *sym = malloc(20000);
	struct zname z;

	(void)state;
	assert_non_null(sym);
	memset(sym, 'a', 20000);
	memcpy(sym, "Main_", 5);
	memcpy(sym + 3000, "_info", 6);
	assert_int_equal(zname__decode(sym, &z), 0);
	assert_true(z.is_haskell && z.truncated);
	assert_string_equal(z.module, "Main");
	assert_int_equal(strlen(z.name), sizeof(z.name) - 1);
	memset(sym, 'a', 19999);
	sym[19999] = '\0';
	assert_int_equal(zname__decode(sym, &z), -ENOENT);
	assert_true(z.truncated);
	assert_int_equal(strlen(z.name), sizeof(z.name) - 1);
	/* a unique that would not fit */
	assert_int_equal(zname__decode("_Main_x_sAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA_info", &z),
			 -ENOENT);
	free(sym);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(escapes),
		cmocka_unit_test(decoding_is_bounded),
		cmocka_unit_test(haskell_labels),
		cmocka_unit_test(rts_labels_keep_their_name),
		cmocka_unit_test(other_symbols_keep_their_name),
		cmocka_unit_test(wrappers),
		cmocka_unit_test(long_labels_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
