/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A compromised unprivileged process may hand back anything: what the daemon accepts of it must
 * satisfy whatever the rest of the program takes for granted. The first byte selects the kind of
 * message, the rest is the message.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/cfi_rule.h"
#include "elf/elf_priv.h"
#include "elf/symbols.h"
#include "names/decode_priv.h"
#include "rts/rts.h"
#include "rts/rts_named_priv.h"
#include "rts/rts_text.h"
#include "unwind/cfi.h"
#include "wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool good)
{
	if (!good)
		abort();
}

/* Looks up the addresses on both sides of each bucket's limits, and every row. */
static void try_rows(void *data, size_t size)
{
	struct cfi_rows rows = {0};
	uint32_t head[2];
	uint64_t words;

	if (size < sizeof(head) + 8)
		return;
	memcpy(head, data, sizeof(head));
	words = (size - sizeof(head)) / 8;
	rows.words = (uint64_t *)((char *)data + sizeof(head));
	rows.n_buckets = head[0] % (words + 1);
	rows.n_rows = (uint32_t)(words - rows.n_buckets);
	rows.base = head[1];
	if (!cfi_rows__check(&rows))
		return;
	for (uint64_t k = 0; k <= rows.n_buckets; k++)
		for (int d = -1; d <= 1; d++)
			cfi_rule(&rows, rows.base + (k << WIRE_UNWIND_BUCKET_SHIFT) + d);
	for (uint32_t i = 0; i < rows.n_rows; i++) {
		uint64_t row = rows.words[rows.n_buckets + i];

		/* the lookup finds the row that was put in */
		require(cfi_rule(&rows, rows.base + (row >> 32)) == (uint32_t)row);
	}
}

static void try_fdes(const void *data, size_t size)
{
	const struct elf_fde *fdes = data;
	size_t n = size / sizeof(*fdes);

	if (!elf_fdes__check(fdes, n))
		return;
	for (size_t i = 0; i < n; i++) {
		size_t at = elf_fdes__starting_at(fdes, n, fdes[i].start);

		require(at < n && fdes[at].start == fdes[i].start);
		require(fdes[i].end >= fdes[i].start);
	}
}

static void try_symbols(const void *data, size_t size)
{
	size_t n = size / SYMBOLS_ENTRY_SIZE;
	const uint32_t *words = data;

	if (!symbols__check(data, n, 1000))
		return;
	for (size_t i = 0; i < n; i++) {
		require(words[3 * i + 2] < 1000);
		require(!i || words[3 * i] > words[3 * i - 3]);
	}
}

static void try_rts(const void *data, size_t size)
{
	const struct callsite *sites;
	struct rts rts;

	if (size < sizeof(rts))
		return;
	memcpy(&rts, data, sizeof(rts));
	sites = (const struct callsite *)((const char *)data + sizeof(rts));
	rts.callsites.n %= (size - sizeof(rts)) / sizeof(*sites) + 1;
	if (!rts__check_read(&rts, sites))
		return;
	require(strlen(rts.version) < RTS_NAME_LEN && strlen(rts.way) < RTS_NAME_LEN);
	require(rts_found__name(rts.suspend.found) && rts_found__name(rts.gc_end.found));
	for (int i = 0; i < RTS_PROBED; i++)
		require(!rts.probes[i].known ||
			(rts.probes[i].choice.offset < INSN_PROBE_WINDOW &&
			 strlen(rts.probes[i].choice.text) < sizeof(rts.probes[i].choice.text)));
	rts.callsites.sites = (struct callsite *)sites;
	for (size_t i = 0; i < rts.callsites.n; i++)
		require(callsites__at(&rts.callsites, sites[i].site) == &sites[i]);
}

/* Names come first, and then as many parts. */
static void try_rts_text(const void *data, size_t size)
{
	size_t n = size / (sizeof(uint16_t) + 1);
	const uint16_t *names = data;
	const uint8_t *parts = (const uint8_t *)(names + n);

	if (!rts_text__check(parts, names, n))
		return;
	for (size_t i = 0; i < n; i++) {
		require(parts[i] <= RTS_PART_GC);
		require(!names[i] || rts_named__text(names[i]));
	}
}

static void try_decoded(const void *data, size_t size)
{
	struct decode_question q = {.what = (uint32_t)size % 3, .len = 64, .addr = 1ULL << 40};
	const struct insn_call *c;
	struct decode_answer a;

	if (size < sizeof(a))
		return;
	memcpy(&a, data, sizeof(a));
	if (!decode__check(&q, &a, size) || a.err || q.what == DECODE_STRAIGHT)
		return;
	c = &a.call;
	require(c->next - c->at <= 15 && c->next > c->at);
	if (q.what == DECODE_CALL_BEFORE)
		require(c->next == q.addr);
	else
		require(c->at >= q.addr && c->next <= q.addr + q.len);
}

/* For a file that is all zeros: whatever passes leads nowhere else. */
static void try_heads(const void *data, size_t size)
{
	static const uint8_t file[1 << 16];
	struct elf_lazy lazy = {0};
	struct elf_file elf = {.data = file, .size = sizeof(file), .lazy = &lazy, .roots = true};
	struct elf_section section;
	struct elf_sym sym;

	if (size < sizeof(elf.heads))
		return;
	memcpy(&elf.heads, data, sizeof(elf.heads));
	if (!elf_heads__check(&elf.heads, elf.size))
		return;
	elf.heads.n_sections = 0;
	require(strlen(elf.heads.build_id) <= 40);
	for (size_t i = 0; i < elf.heads.n_segments; i++) {
		const struct elf_segment *s = elf__segment(&elf, i);

		elf__at(&elf, s->vaddr, s->filesz ? 1 : 0);
		require(s->offset + s->filesz <= sizeof(file));
	}
	for (int t = ELF_SYMTAB; t <= ELF_DYNSYM; t++)
		for (size_t i = 0; i < elf__n_symbols(&elf, t); i++)
			if (elf__symbol(&elf, t, i, &sym) == 0)
				require(sym.name >= (const char *)file &&
					sym.name < (const char *)file + sizeof(file));
	require(elf__section(&elf, ".text", &section) == -ENOENT);
	elf__got_symbol(&elf, 0);
	free(lazy.got);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* a copy that is aligned, and ends where the message does */
	uint8_t *copy = size > 1 ? malloc(size - 1) : NULL;

	if (!copy)
		return 0;
	memcpy(copy, data + 1, size - 1);
	switch (data[0] & 7) {
	case 0:
		try_rows(copy, size - 1);
		break;
	case 1:
		try_fdes(copy, size - 1);
		break;
	case 2:
		try_symbols(copy, size - 1);
		break;
	case 3:
		try_heads(copy, size - 1);
		break;
	case 4:
		try_decoded(copy, size - 1);
		break;
	case 5:
		try_rts_text(copy, size - 1);
		break;
	default:
		try_rts(copy, size - 1);
		break;
	}
	free(copy);
	return 0;
}
