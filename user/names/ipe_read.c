/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ipe_read: searches data for provenance buffers, word by word, and parses them. */
#include "ipe_read_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/base.h"
#include "base/search.h"
#include "ipe_priv.h"

#define NONE	   UINT16_MAX
#define CHUNK	   (1U << 20)
#define CHUNK_SLOP 256 /* bytes after a chunk that its last words may need */
#define MAX_DATA   (1ULL << 30)
#define MAX_BLOCK  (64U << 20) /* strings or entries of a module */
#define MAX_STRING 1024
#define PAGE	   4096
/* rts/include/rts/storage/ClosureTypes.h: return points have type STACK */
#define TYPE_STACK 53

struct reader {
	const struct ipe_layout *l;
	const struct ipe_source *src;
	struct ipe_out *out;
	uint8_t *chunk;
	uint64_t skip_until; /* lower addresses belong to a buffer that was parsed already */
};

static uint64_t word(const uint8_t *p, size_t at)
{
	uint64_t v;

	memcpy(&v, p + at, sizeof(v));
	return v;
}

static uint32_t half(const uint8_t *p, size_t at)
{
	uint32_t v;

	memcpy(&v, p + at, sizeof(v));
	return v;
}

static bool in_ranges(const struct ipe_range *ranges, size_t n, uint64_t addr)
{
	size_t at = search__first(n, i, ranges[i].end > addr);

	return at < n && ranges[at].start <= addr;
}

static bool is_code(const struct reader *r, uint64_t addr)
{
	return in_ranges(r->src->code, r->src->n_code, addr);
}

static int get(const struct reader *r, uint64_t addr, void *buf, size_t len)
{
	return r->src->read(r->src->ctx, addr, buf, len);
}

/* Reads up to len bytes, stopping at the first unreadable page; returns how many. Usually one read
 * suffices. */
static size_t get_some(const struct reader *r, uint64_t addr, uint8_t *buf, size_t len)
{
	size_t done = get(r, addr, buf, len) ? 0 : len;

	while (done < len) {
		size_t step = MIN(len - done, PAGE - ((addr + done) & (PAGE - 1)));

		if (get(r, addr + done, buf + done, step))
			break;
		done += step;
	}
	return done;
}

/* ── putting it out ──────────────────────────────────────────────────────────────────────── */

/* Appends len bytes of strings and a NUL; UINT32_MAX: full. */
static uint32_t put_strings(struct ipe_out *out, const void *data, size_t len)
{
	uint32_t at = out->strings_len;

	if (len >= out->max_strings - at) {
		out->truncated = true;
		return UINT32_MAX;
	}
	memcpy(out->strings + at, data, len);
	out->strings[at + len] = '\0';
	out->strings_len = at + (uint32_t)len + 1;
	return at;
}

static struct ipe_raw *new_entry(struct ipe_out *out)
{
	struct ipe_raw *e;

	if (out->n >= out->max_entries) {
		out->truncated = true;
		return NULL;
	}
	e = &out->entries[out->n++];
	memset(e, 0, sizeof(*e));
	return e;
}

/* A module's strings: offset in the output, and length. */
struct strings {
	uint32_t at, len;
};

static uint32_t string_at(const struct strings *s, uint32_t offset)
{
	return offset < s->len ? s->at + offset : 0;
}

static uint32_t string_of(const struct strings *s, const uint8_t *entry, uint16_t field)
{
	return field == NONE ? 0 : string_at(s, half(entry, field));
}

/* From 9.10.2 on the closure's type is a number, before that a string. */
static bool is_return(const struct ipe_out *out, const struct strings *s, uint32_t desc)
{
	uint32_t at = string_at(s, desc);

	return desc == TYPE_STACK || (at && strcmp(out->strings + at, "53") == 0);
}

static bool is_block_name(const char *name)
{
	return strncmp(name, "block_", 6) == 0;
}

static void put_entry(struct reader *r, uint32_t node, uint64_t info, const uint8_t *entry,
		      const struct strings *s, uint32_t unit, uint32_t module)
{
	const struct ipe_layout *l = r->l;
	struct ipe_raw *e = new_entry(r->out);

	if (!e)
		return;
	e->info = info;
	e->node = node;
	e->table = string_of(s, entry, l->table);
	e->label = string_of(s, entry, l->label);
	e->module = l->module == NONE ? module : string_of(s, entry, l->module);
	e->unit = unit;
	e->file = string_of(s, entry, l->file);
	e->span = string_of(s, entry, l->span);
	e->is_return = is_return(r->out, s, half(entry, l->desc)) &&
		       (!e->table || is_block_name(r->out->strings + e->table));
}

/* ── buffers with tables: 9.8 and later ──────────────────────────────────────────────────── */

#define T_COMPRESSED   8
#define T_COUNT	       16
#define T_TABLES       24
#define T_ENTRIES      32
#define T_ENTRIES_SIZE 40
#define T_STRINGS      48
#define T_STRINGS_SIZE 56

/*
 * Reads len bytes, which may be compressed (GHC configured with --enable-ipe-data-compression); the
 * compressed length is only in the frame's own header. malloc'ed; NULL on failure.
 */
static uint8_t *read_block(const struct reader *r, uint64_t addr, size_t len, bool compressed)
{
	size_t bound = compressed ? ZSTD_compressBound(len) : len, have, frame;
	uint8_t *raw = malloc(bound + 1), *plain;

	if (!raw)
		return NULL;
	have = get_some(r, addr, raw, bound);
	if (!compressed) {
		if (have == len)
			return raw;
		free(raw);
		return NULL;
	}
	plain = malloc(len + 1);
	frame = ZSTD_findFrameCompressedSize(raw, have);
	if (plain && (ZSTD_isError(frame) || ZSTD_decompress(plain, len, raw, frame) != len)) {
		free(plain);
		plain = NULL;
	}
	free(raw);
	return plain;
}

static bool looks_like_tables(const struct reader *r, const uint8_t *p)
{
	uint64_t count = word(p, T_COUNT), strings = word(p, T_STRINGS_SIZE);
	uint64_t first;

	if (word(p, T_COMPRESSED) > 1 || !count || count > IPE_MAX_NODE ||
	    word(p, T_ENTRIES_SIZE) != count * r->l->size)
		return false;
	if (!strings || strings > MAX_BLOCK || !word(p, T_TABLES) || (word(p, T_TABLES) & 7) ||
	    !word(p, T_ENTRIES) || !word(p, T_STRINGS))
		return false;
	if (r->l->node_unit != NONE &&
	    (half(p, r->l->node_unit) >= strings || half(p, r->l->node_module) >= strings))
		return false;
	return !get(r, word(p, T_TABLES), &first, sizeof(first)) && is_code(r, first);
}

static void take_tables(struct reader *r, const uint8_t *p, uint64_t addr)
{
	size_t count = word(p, T_COUNT), len = word(p, T_STRINGS_SIZE);
	bool compressed = word(p, T_COMPRESSED) == 1;
	uint8_t *entries = read_block(r, word(p, T_ENTRIES), count * r->l->size, compressed);
	uint8_t *text = read_block(r, word(p, T_STRINGS), len, compressed);
	uint64_t *infos = malloc(count * sizeof(*infos));
	struct strings s = {.len = (uint32_t)len};
	uint32_t unit = 0, module = 0;

	if (!entries || !text || !infos || get(r, word(p, T_TABLES), infos, count * sizeof(*infos)))
		goto out;
	s.at = put_strings(r->out, text, len);
	if (s.at == UINT32_MAX)
		goto out;
	if (r->l->node_unit != NONE) {
		unit = string_at(&s, half(p, r->l->node_unit));
		module = string_at(&s, half(p, r->l->node_module));
	}
	for (size_t i = 0; i < count; i++)
		if (is_code(r, infos[i]))
			put_entry(r, r->out->n_nodes, infos[i], entries + i * r->l->size, &s, unit,
				  module);
	r->out->n_nodes++;
	r->skip_until = addr + r->l->node_size;
out:
	free(infos);
	free(text);
	free(entries);
}

/* ── buffers with entries in them: 9.4.3 to 9.6 ──────────────────────────────────────────── */

#define I_STRINGS	8
#define I_COUNT		16
#define INLINE_FIRST	4 /* entries that are sure to be within the chunk */
#define INLINE_LOOK	8
#define INLINE_MAX_SIZE 40
#define INLINE_NAME	512

static bool looks_like_inline(const struct reader *r, const uint8_t *p)
{
	const uint8_t *e = p + r->l->node_size;
	uint64_t count = word(p, I_COUNT);

	if (!count || count > IPE_MAX_NODE || !word(p, I_STRINGS))
		return false;
	/* a constructor and its static link, 3, look like this; the closures after it are not
	 * spaced like entries */
	for (uint64_t i = 0; i < MIN(count, (uint64_t)INLINE_FIRST); i++, e += r->l->size)
		if (!is_code(r, word(e, 0)) || half(e, r->l->table) >= MAX_BLOCK ||
		    half(e, r->l->label) >= MAX_BLOCK ||
		    (r->l->padding != NONE && half(e, r->l->padding)))
			return false;
	return true;
}

/* The highest string offset in the entries; UINT32_MAX: not entries. */
static uint32_t highest_offset(const struct reader *r, const uint8_t *entries, size_t count)
{
	const struct ipe_layout *l = r->l;
	const uint16_t fields[] = {l->table, l->desc, l->label, l->module, l->file, l->span};
	uint32_t highest = 0;

	for (size_t i = 0; i < count; i++) {
		const uint8_t *e = entries + i * l->size;

		if (!is_code(r, word(e, 0)) || (l->padding != NONE && half(e, l->padding)))
			return UINT32_MAX;
		for (size_t f = 0; f < ARRAY_SIZE(fields); f++)
			if (fields[f] != NONE)
				highest = MAX(highest, half(e, fields[f]));
	}
	return highest;
}

/* Each offset must be the start of a string, so a NUL must precede it. */
static bool offsets_fit(const struct reader *r, const uint8_t *entries, size_t count,
			const uint8_t *text)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t table = half(entries + i * r->l->size, r->l->table);

		if (table && text[table - 1])
			return false;
	}
	return true;
}

/*
 * Checks a few entries before reading all: closures in static data often look like a buffer's
 * header.
 */
static bool begins_with_entries(const struct reader *r, const uint8_t *p, uint64_t addr)
{
	uint8_t few[INLINE_LOOK * INLINE_MAX_SIZE];
	size_t n = MIN(word(p, I_COUNT), (uint64_t)INLINE_LOOK), have;
	char name[INLINE_NAME];

	if (get(r, addr + r->l->node_size, few, n * r->l->size) ||
	    highest_offset(r, few, n) >= MAX_BLOCK)
		return false;
	/* an info table's name ends in "_info" */
	have = get_some(r, word(p, I_STRINGS) + half(few, r->l->table), (uint8_t *)name,
			sizeof(name));
	have = have ? strnlen(name, have) : 0;
	return have > 5 && memcmp(name + have - 5, "_info", 5) == 0;
}

static void take_inline(struct reader *r, const uint8_t *p, uint64_t addr)
{
	size_t count = word(p, I_COUNT), bytes = count * r->l->size, len = 0;
	uint8_t *entries, *text = NULL;
	struct strings s;
	uint32_t highest;

	if (!begins_with_entries(r, p, addr))
		return;
	entries = malloc(bytes);
	if (!entries || get(r, addr + r->l->node_size, entries, bytes))
		goto out;
	highest = highest_offset(r, entries, count);
	if (highest >= MAX_BLOCK)
		goto out;
	/* the length of the strings is not stored: read up to the end of the last one */
	text = malloc(highest + MAX_STRING);
	if (text)
		len = get_some(r, word(p, I_STRINGS), text, highest + MAX_STRING);
	if (len <= highest || !offsets_fit(r, entries, count, text))
		goto out;
	len = highest + strnlen((const char *)text + highest, len - highest);
	s.len = (uint32_t)len;
	s.at = put_strings(r->out, text, len);
	if (s.at == UINT32_MAX)
		goto out;
	for (size_t i = 0; i < count; i++)
		put_entry(r, r->out->n_nodes, word(entries, i * r->l->size),
			  entries + i * r->l->size, &s, 0, 0);
	r->out->n_nodes++;
	r->skip_until = addr + r->l->node_size + bytes;
out:
	free(text);
	free(entries);
}

/* ── single entries: 9.2 to 9.4.2 ────────────────────────────────────────────────────────── */

static bool looks_like_ent(const struct reader *r, const uint8_t *p)
{
	if (!is_code(r, word(p, 0)))
		return false;
	/* table name, description, type, label, module, source */
	for (size_t at = 8; at <= 48; at += 8)
		if (!in_ranges(r->src->strings, r->src->n_strings, word(p, at)))
			return false;
	return true;
}

/* False: not printable, or not terminated. */
static bool get_string(const struct reader *r, uint64_t addr, char text[MAX_STRING])
{
	size_t have = get_some(r, addr, (uint8_t *)text, MAX_STRING - 1), len;

	text[have] = '\0';
	len = strlen(text);
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return false;
	return len < have;
}

/* Closures in static data may look like an entry, six pointers in a row, but the strings then do
 * not fit. */
static bool is_ent(const struct reader *r, const uint8_t *p)
{
	char text[MAX_STRING];
	size_t len;

	/* the closure's type as a number */
	if (!get_string(r, word(p, r->l->desc), text))
		return false;
	len = strlen(text);
	if (!len || len > 3 || strspn(text, "0123456789") != len)
		return false;
	if (!get_string(r, word(p, r->l->table), text))
		return false;
	len = strlen(text);
	return len > 5 && strcmp(text + len - 5, "_info") == 0;
}

static void take_ent(struct reader *r, const uint8_t *p, uint64_t addr)
{
	const uint16_t fields[] = {r->l->table, r->l->label, r->l->module, r->l->file, r->l->desc};
	uint32_t at[ARRAY_SIZE(fields)];
	char text[MAX_STRING] = "";
	struct ipe_raw *e;

	if (!is_ent(r, p))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		if (!get_string(r, word(p, fields[i]), text))
			return;
		at[i] = fields[i] == r->l->desc ? 0 : put_strings(r->out, text, strlen(text));
		if (at[i] == UINT32_MAX)
			return;
	}
	e = new_entry(r->out);
	if (!e)
		return;
	e->info = word(p, 0);
	e->table = at[0];
	e->label = at[1];
	e->module = at[2];
	e->file = at[3];
	e->is_return = strcmp(text, "53") == 0 && is_block_name(r->out->strings + at[0]);
	r->skip_until = addr + r->l->size;
}

/* ── looking for them ────────────────────────────────────────────────────────────────────── */

static void look_at(struct reader *r, const uint8_t *p, uint64_t addr)
{
	switch (r->l->form) {
	case IPE_TABLES:
		if (looks_like_tables(r, p))
			take_tables(r, p, addr);
		break;
	case IPE_INLINE:
		if (looks_like_inline(r, p))
			take_inline(r, p, addr);
		break;
	case IPE_ENTS:
		if (looks_like_ent(r, p))
			take_ent(r, p, addr);
		break;
	}
}

static void look_through(struct reader *r, const struct ipe_range *range)
{
	for (uint64_t at = (range->start + 7) & ~7ULL; at < range->end; at += CHUNK) {
		size_t want = MIN((uint64_t)CHUNK + CHUNK_SLOP, range->end - at);
		size_t have = get_some(r, at, r->chunk, want), scan;

		memset(r->chunk + have, 0, MIN((size_t)CHUNK_SLOP, CHUNK + CHUNK_SLOP - have));
		scan = MIN(have, (size_t)CHUNK);
		for (size_t i = 0; i + 8 <= scan && !r->out->truncated; i += 8)
			if (at + i >= r->skip_until)
				look_at(r, r->chunk + i, at + i);
	}
}

static int by_info(const void *a, const void *b)
{
	const struct ipe_raw *x = a, *y = b;

	return x->info < y->info ? -1 : x->info > y->info;
}

/* Whether the entry is from the runtime's Cmm code, whose labels all have this prefix. */
static bool is_runtimes(const struct ipe_out *out, const struct ipe_raw *e)
{
	return strncmp(out->strings + e->table, "stg_", 4) == 0;
}

/*
 * Single entries do not refer to their buffer, so the module name identifies it. The runtime's Cmm
 * modules all have the same name, and code between two of them may be anybody's, so each of their
 * entries counts as a module.
 */
static void number_modules(struct ipe_out *out)
{
	for (uint32_t i = 0; i < out->n; i++) {
		if (i == 0 || is_runtimes(out, &out->entries[i]) ||
		    strcmp(out->strings + out->entries[i].module,
			   out->strings + out->entries[i - 1].module) != 0)
			out->n_nodes++;
		out->entries[i].node = out->n_nodes;
	}
}

int ipe_read(const struct ipe_layout *layout, const struct ipe_source *source, struct ipe_out *out)
{
	struct reader r = {.l = layout, .src = source, .out = out};
	uint64_t looked = 0;

	out->n = out->n_nodes = 0;
	out->truncated = false;
	out->strings_len = 1;
	out->strings[0] = '\0';
	r.chunk = malloc(CHUNK + CHUNK_SLOP);
	if (!r.chunk)
		return -ENOMEM;
	for (size_t i = 0; i < source->n_data && looked < MAX_DATA; i++) {
		look_through(&r, &source->data[i]);
		looked += source->data[i].end - source->data[i].start;
	}
	free(r.chunk);
	if (looked >= MAX_DATA)
		out->truncated = true;
	qsort(out->entries, out->n, sizeof(*out->entries), by_info);
	if (layout->form == IPE_ENTS)
		number_modules(out);
	return 0;
}
