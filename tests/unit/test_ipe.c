/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Info table provenance in every form, in made-up memory laid out as by GHC's releases
 * (rts/include/rts/IPE.h), compressed by libzstd itself where supported; and arbitrary memory.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include <cmocka.h>

#include "base/base.h"
#include "names/ipe_priv.h"
#include "names/ipe_read_priv.h"

#define CODE 0x400000ULL
#define DATA 0x600000ULL
#define HEAP 0x42000000ULL
#define SIZE 65536
#define N    40

struct world {
	uint8_t data[SIZE], heap[SIZE];
	size_t data_len, heap_len;
	struct ipe_range code, data_range, strings;
	struct ipe_source source;
	struct ipe_out out;
	uint64_t reads;
};

static int world_read(void *ctx, uint64_t addr, void *buf, size_t len)
{
	struct world *w = ctx;

	w->reads++;
	if (addr >= DATA && addr < DATA + SIZE && len <= DATA + SIZE - addr)
		memcpy(buf, w->data + (addr - DATA), len);
	else if (addr >= HEAP && addr < HEAP + SIZE && len <= HEAP + SIZE - addr)
		memcpy(buf, w->heap + (addr - HEAP), len);
	else
		return -EFAULT;
	return 0;
}

static struct world *world_new(void)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->code = (struct ipe_range){CODE, CODE + 0x100000};
	w->data_range = (struct ipe_range){DATA, DATA + SIZE};
	w->strings = (struct ipe_range){HEAP, HEAP + SIZE};
	w->source = (struct ipe_source){.read = world_read,
					.ctx = w,
					.data = &w->data_range,
					.n_data = 1,
					.code = &w->code,
					.n_code = 1,
					.strings = &w->strings,
					.n_strings = 1};
	w->out.max_entries = 1000;
	w->out.max_strings = 100000;
	w->out.entries = calloc(w->out.max_entries, sizeof(*w->out.entries));
	w->out.strings = calloc(w->out.max_strings, 1);
	assert_non_null(w->out.entries);
	assert_non_null(w->out.strings);
	w->data_len = 4096;
	w->heap_len = 64;
	return w;
}

static void world_free(struct world *w)
{
	free(w->out.entries);
	free(w->out.strings);
	free(w);
}

static void put64(uint8_t *p, size_t at, uint64_t v)
{
	memcpy(p + at, &v, 8);
}

static void put32(uint8_t *p, size_t at, uint32_t v)
{
	memcpy(p + at, &v, 4);
}

/* Copies to the heap; returns the address. */
static uint64_t keep(struct world *w, const void *data, size_t len)
{
	uint64_t at = HEAP + w->heap_len;

	assert_true(w->heap_len + len + 8 < SIZE);
	memcpy(w->heap + w->heap_len, data, len);
	w->heap_len += (len + 8) & ~7ULL;
	return at;
}

static uint64_t keep_compressed(struct world *w, const void *data, size_t len)
{
	size_t bound = ZSTD_compressBound(len), n;
	void *packed = malloc(bound);
	uint64_t at;

	assert_non_null(packed);
	n = ZSTD_compress(packed, bound, data, len, 3);
	assert_false(ZSTD_isError(n));
	at = keep(w, packed, n);
	free(packed);
	return at;
}

struct strings {
	char text[8192];
	size_t len;
};

static uint32_t string(struct strings *s, const char *text)
{
	uint32_t at = (uint32_t)s->len;

	memcpy(s->text + s->len, text, strlen(text) + 1);
	s->len += strlen(text) + 1;
	return at;
}

struct fields {
	char table[32], label[32], span[32];
	bool is_return;
};

/* Each function is followed by three of its return points. */
static struct fields fields_of(size_t i)
{
	struct fields f;

	f.is_return = i % 4 != 0;
	snprintf(f.table, sizeof(f.table), f.is_return ? "block_c%zuB_info" : "$wf%zu_r1%zuX_info",
		 i, i);
	snprintf(f.label, sizeof(f.label), "f%zu", i - i % 4);
	if (i % 4 == 3)
		f.label[0] = '\0';
	snprintf(f.span, sizeof(f.span), "%zu:1-9", i + 1);
	return f;
}

static uint64_t info_of(size_t i)
{
	return CODE + 64 * (i + 1);
}

/* Tables of 9.8 (module in the entries) and of 9.10 and later (module in the buffer). */
static void make_tables(struct world *w, bool v910, bool compressed, bool desc_is_number)
{
	size_t size = v910 ? 24 : 32;
	uint8_t entries[N * 32] = {0}, *node = w->data + w->data_len;
	uint64_t infos[N];
	struct strings s = {.len = 0};
	uint32_t stack, fun, module, unit, type, file;

	unit = string(&s, "text-2.1");
	module = string(&s, "Data.Text");
	stack = string(&s, "53");
	fun = string(&s, "14");
	type = string(&s, "Int -> Int");
	file = string(&s, "src/Data/Text.hs");
	for (size_t i = 0; i < N; i++) {
		struct fields f = fields_of(i);
		uint8_t *e = entries + i * size;
		uint32_t number = f.is_return ? 53 : 14;

		infos[i] = info_of(i);
		put32(e, 0, string(&s, f.table));
		put32(e, 4, desc_is_number ? number : f.is_return ? stack : fun);
		put32(e, 8, type);
		put32(e, 12, string(&s, f.label));
		if (!v910)
			put32(e, 16, module);
		put32(e, v910 ? 16 : 20, file);
		put32(e, v910 ? 20 : 24, string(&s, f.span));
	}
	put64(node, 8, compressed);
	put64(node, 16, N);
	put64(node, 24, keep(w, infos, sizeof(infos)));
	put64(node, 32,
	      compressed ? keep_compressed(w, entries, N * size) : keep(w, entries, N * size));
	put64(node, 40, N * size);
	put64(node, 48, compressed ? keep_compressed(w, s.text, s.len) : keep(w, s.text, s.len));
	put64(node, 56, s.len);
	if (v910) {
		put32(node, 64, unit);
		put32(node, 68, module);
	}
	w->data_len += 128;
}

static void make_inline(struct world *w, bool v96)
{
	size_t size = v96 ? 40 : 32;
	uint8_t *node = w->data + w->data_len;
	struct strings s = {.len = 0};
	uint32_t module = string(&s, "Data.Text"), stack = string(&s, "53"), fun = string(&s, "14"),
		 file = string(&s, "src/Data/Text.hs");

	put64(node, 16, N);
	for (size_t i = 0; i < N; i++) {
		struct fields f = fields_of(i);
		uint8_t *e = node + 24 + i * size;
		char both[80];

		put64(e, 0, info_of(i));
		put32(e, 8, string(&s, f.table));
		put32(e, 12, f.is_return ? stack : fun);
		put32(e, 16, file);
		put32(e, 20, string(&s, f.label));
		put32(e, 24, module);
		snprintf(both, sizeof(both), "src/Data/Text.hs:%s", f.span);
		put32(e, 28, v96 ? file : string(&s, both));
		if (v96)
			put32(e, 32, string(&s, f.span));
	}
	put64(node, 8, keep(w, s.text, s.len));
	w->data_len += 24 + N * size;
}

static void make_ents(struct world *w, bool link)
{
	size_t size = link ? 64 : 56;

	for (size_t i = 0; i < N; i++) {
		struct fields f = fields_of(i);
		uint8_t *e = w->data + w->data_len;
		char both[80];

		snprintf(both, sizeof(both), "src/Data/Text.hs:%s", f.span);
		put64(e, 0, info_of(i));
		put64(e, 8, keep(w, f.table, strlen(f.table) + 1));
		put64(e, 16, keep(w, f.is_return ? "53" : "14", 3));
		put64(e, 24, keep(w, "Int", 4));
		put64(e, 32, keep(w, f.label, strlen(f.label) + 1));
		put64(e, 40, keep(w, "Data.Text", 10));
		put64(e, 48, keep(w, both, strlen(both) + 1));
		w->data_len += size;
	}
}

static void check_all(struct world *w, const char *version)
{
	const struct ipe_layout *layout = ipe_layout__find(version);
	const char *s = w->out.strings;

	assert_non_null(layout);
	assert_int_equal(ipe_read(layout, &w->source, &w->out), 0);
	assert_int_equal(w->out.n, N);
	assert_false(w->out.truncated);
	for (size_t i = 0; i < N; i++) {
		const struct ipe_raw *e = &w->out.entries[i];
		struct fields f = fields_of(i);
		char both[160], want[80];

		assert_true(e->info == info_of(i));
		assert_string_equal(s + e->table, f.table);
		assert_string_equal(s + e->label, f.label);
		assert_string_equal(s + e->module, "Data.Text");
		assert_int_equal(e->is_return, f.is_return);
		assert_string_equal(s + e->unit, layout->node_unit == UINT16_MAX ? "" : "text-2.1");
		snprintf(want, sizeof(want), "src/Data/Text.hs:%s", f.span);
		snprintf(both, sizeof(both), "%s%s%s", s + e->file, e->span ? ":" : "",
			 s + e->span);
		assert_string_equal(both, want);
	}
}

static void forms(void **state)
{
	static const struct {
		const char *version;
		int form;
	} cases[] = {{"9.2.8", 0}, {"9.4.2", 1},  {"9.4.3", 2},	 {"9.4.8", 2},	{"9.6.6", 3},
		     {"9.8.4", 4}, {"9.10.1", 5}, {"9.10.3", 6}, {"9.12.2", 6}, {"9.14.1", 6},
		     {"9.8.1", 7}, {"9.10.1", 8}, {"9.10.2", 9}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct world *w = world_new();
		int form = cases[i].form;

		if (form < 2)
			make_ents(w, form == 0);
		else if (form < 4)
			make_inline(w, form == 3);
		else
			make_tables(w, form != 4 && form != 7, form >= 7, form == 6 || form == 9);
		check_all(w, cases[i].version);
		world_free(w);
	}
}

/* Closures between the entries that resemble them: each word points where an entry's would. */
static void not_entries(void **state)
{
	static const struct {
		const char *table, *desc;
	} others[] = {
		{"Data.Text.foo_info", "a pattern"}, {"some text", "14"}, {"", ""},
		{"Data.Text.foo_info", "1400"},	     {"_info", "14"},	  {"\x01\x7f_info", "14"}};
	struct world *w = world_new();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		uint8_t *e = w->data + w->data_len;

		put64(e, 0, CODE + 0x8000 + 64 * i);
		put64(e, 8, keep(w, others[i].table, strlen(others[i].table) + 1));
		put64(e, 16, keep(w, others[i].desc, strlen(others[i].desc) + 1));
		for (size_t at = 24; at <= 48; at += 8)
			put64(e, at, keep(w, "text", 5));
		w->data_len += 56;
	}
	make_ents(w, false);
	check_all(w, "9.4.2");
	world_free(w);
}

static void put_ent(struct world *w, uint64_t info, const char *table)
{
	uint8_t *e = w->data + w->data_len;

	put64(e, 0, info);
	put64(e, 8, keep(w, table, strlen(table) + 1));
	put64(e, 16, keep(w, "30", 3));
	for (size_t at = 24; at <= 48; at += 8)
		put64(e, at, keep(w, "Cmm", 4));
	w->data_len += 56;
}

/* The runtime's Cmm modules share one name: code between two of their entries is not attributed
 * to them. */
static void cmm_modules(void **state)
{
	static const char *const tables[] = {"stg_raise_ret_info", "stg_ap_p_info", "foo_info",
					     "bar_info"};
	struct world *w = world_new();
	const struct ipe_raw *e = w->out.entries;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		put_ent(w, CODE + 0x1000 * i, tables[i]);
	assert_int_equal(ipe_read(ipe_layout__find("9.4.2"), &w->source, &w->out), 0);
	assert_int_equal(w->out.n, ARRAY_SIZE(tables));
	assert_int_not_equal(e[0].node, e[1].node);
	assert_int_equal(e[2].node, e[3].node);
	world_free(w);
}

static void versions(void **state)
{
	static const char *const unknown[] = {"",    "8.10.7", "9.0.2",	 "9.1",
					      "abc", "9.15",   "9.16.1", "10.0.1"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(unknown); i++)
		assert_null(ipe_layout__find(unknown[i]));
	assert_non_null(ipe_layout__find("9.2.1"));
	assert_non_null(ipe_layout__find("9.14.1"));
}

/* Limits on entries and strings, and layouts of other versions. */
static void limits(void **state)
{
	struct world *w = world_new();

	(void)state;
	make_tables(w, true, false, true);
	/* full: what fits is kept, and the truncation is reported */
	w->out.max_entries = N / 2;
	assert_int_equal(ipe_read(ipe_layout__find("9.10.3"), &w->source, &w->out), 0);
	assert_int_equal(w->out.n, N / 2);
	assert_true(w->out.truncated);
	w->out.max_entries = 1000;
	w->out.max_strings = 10;
	assert_int_equal(ipe_read(ipe_layout__find("9.10.3"), &w->source, &w->out), 0);
	assert_int_equal(w->out.n, 0);
	assert_true(w->out.truncated);
	w->out.max_strings = 100000;
	/* another version's format is not mistaken for its own */
	assert_int_equal(ipe_read(ipe_layout__find("9.8.1"), &w->source, &w->out), 0);
	assert_int_equal(w->out.n, 0);
	assert_int_equal(ipe_read(ipe_layout__find("9.6.6"), &w->source, &w->out), 0);
	assert_int_equal(w->out.n, 0);
	world_free(w);
}

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

/* With random bytes of the buffers damaged, reading ends and all offsets are in range. */
static void damage(void **state)
{
	static const char *const all[] = {"9.2.8", "9.4.2", "9.4.8", "9.6.6", "9.8.4", "9.10.3"};
	uint32_t seed = 1;

	(void)state;
	for (int round = 0; round < 1500; round++) {
		struct world *w = world_new();
		const char *version = all[round % ARRAY_SIZE(all)];
		int form = round % (int)ARRAY_SIZE(all);

		if (form < 2)
			make_ents(w, form == 0);
		else if (form < 4)
			make_inline(w, form == 3);
		else
			make_tables(w, form == 5, round % 2, true);
		for (int k = 0; k < 1 + round % 4; k++) {
			uint32_t r = next_random(&seed);
			uint8_t *p = r & 1 ? w->data + 4096 + next_random(&seed) % 600
					   : w->heap + next_random(&seed) % w->heap_len;

			*p = (uint8_t)next_random(&seed);
		}
		assert_int_equal(ipe_read(ipe_layout__find(version), &w->source, &w->out), 0);
		for (uint32_t i = 0; i < w->out.n; i++) {
			const struct ipe_raw *e = &w->out.entries[i];

			assert_true(e->table < w->out.strings_len);
			assert_true(e->label < w->out.strings_len);
			assert_true(e->module < w->out.strings_len);
			assert_true(e->file < w->out.strings_len);
			assert_true(e->span < w->out.strings_len);
			assert_true(e->unit < w->out.strings_len);
			assert_true(e->info >= CODE && e->info < CODE + 0x100000);
		}
		assert_true(w->reads < 100000);
		world_free(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forms),       cmocka_unit_test(not_entries),
		cmocka_unit_test(cmm_modules), cmocka_unit_test(versions),
		cmocka_unit_test(limits),      cmocka_unit_test(damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
