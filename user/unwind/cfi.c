/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cfi: sorts all FDEs of a file, runs them, and merges their rows into one table with buckets. */
#include "cfi.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cfi_asm_priv.h"
#include "cfi_graph_priv.h"
#include "cfi_run_priv.h"
#include "confine/confine.h"
#include "wire.h"

/* Padding between functions, up to the next 16 bytes, is never executed. */
#define PADDING 15

/* Limit of functions without rows that are followed in one file. */
#define MAX_ASM 16384

/* An FDE, or a function without one. */
struct fde_ref {
	uint64_t start;
	uint64_t at;  /* offset of its entry in the section; IS_ASM, IS_RULE */
	uint64_t len; /* IS_ASM: length of the function; IS_RULE: of the code with this rule */
	uint32_t rule;
};

#define IS_ASM	UINT64_MAX
#define IS_RULE (UINT64_MAX - 1)

struct builder {
	struct eh_cursor section;
	struct elf_file *elf;
	struct fde_ref *fdes;
	size_t n_fdes, cap_fdes;
	size_t n_asm;
	struct cfi_asm *assembly; /* NULL: not needed */
	uint64_t base;
	uint64_t end; /* end of the code that has rows so far; 0: none */
	uint64_t *rows;
	size_t n, cap;
};

static int add_ref(struct builder *b, const struct fde_ref *ref)
{
	int err = ARRAY_RESERVE(b->fdes, b->cap_fdes, b->n_fdes + 1, ELF_MAX_FDES);

	if (!err)
		b->fdes[b->n_fdes++] = *ref;
	return err;
}

/* Adds a function symbol without rows; a callback of elf__symbols(). */
static int on_symbol(void *ctx, const struct elf_sym *sym)
{
	struct fde_ref ref = {.start = sym->value, .at = IS_ASM, .len = sym->size};
	struct builder *b = ctx;

	if (sym->type != STT_FUNC || sym->shndx == SHN_UNDEF || !sym->size ||
	    sym->size > CFI_ASM_MAX_LEN || elf__has_fde(b->elf, sym->value) ||
	    !elf__in_code(b->elf, sym->value, sym->size))
		return 0;
	return b->n_asm++ < MAX_ASM ? add_ref(b, &ref) : 0;
}

static int collect_asm(struct builder *b)
{
	int err = elf__symbols(b->elf, ELF_SYMTAB, on_symbol, b);

	if (!err)
		err = elf__symbols(b->elf, ELF_DYNSYM, on_symbol, b);
	return err || !b->n_asm ? err : cfi_asm__new(&b->assembly);
}

static int on_rule(void *ctx, uint64_t start, uint64_t end, uint32_t rule)
{
	return add_ref(
		ctx,
		&(struct fde_ref){.start = start, .at = IS_RULE, .len = end - start, .rule = rule});
}

/* For a file with Haskell code: collects C code without rows, by its callers. */
static int collect_called(struct builder *b)
{
	const struct elf_fde *fdes;
	struct cfi_graph *graph;
	size_t n;
	int err = elf__fdes(b->elf, &fdes, &n);

	if (!err)
		err = cfi_graph__new(b->elf, fdes, n, b->base, &graph);
	if (err)
		return err;
	err = cfi_graph__add_called(graph);
	if (!err)
		err = cfi_graph__run(graph, on_rule, b);
	cfi_graph__free(graph);
	return err;
}

static int collect(struct builder *b, const struct elf_file *elf)
{
	struct eh_cie cie = {.at = UINT64_MAX};
	uint64_t at = b->section.at;
	struct eh_entry e;
	struct eh_fde fde;
	int err;

	for (; b->section.end - at >= sizeof(uint32_t); at = e.end) {
		if (!eh_take_entry(&b->section, at, &e))
			break;
		if (!eh_take_fde(elf, &b->section, &e, &cie, &fde))
			continue;
		err = add_ref(b, &(struct fde_ref){.start = fde.start, .at = at});
		if (err)
			return err;
	}
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct fde_ref *x = a, *y = b;

	return CMP(x->start, y->start) ?: CMP(x->at, y->at);
}

static int put(struct builder *b, uint64_t vaddr, uint32_t rule)
{
	uint64_t rel = vaddr - b->base;
	int err;

	/* if code spans more than 4 GB, only the first part gets rows */
	if (vaddr < b->base || rel > UINT32_MAX)
		return 0;
	if (b->n && (uint32_t)b->rows[b->n - 1] == rule)
		return 0;
	/* no code in between: the later rule applies */
	if (b->n && b->rows[b->n - 1] >> 32 == rel)
		b->n--;
	err = ARRAY_RESERVE(b->rows, b->cap, b->n + 1, CFI_MAX_ROWS);
	if (err)
		return err;
	b->rows[b->n++] = rel << 32 | rule;
	return 0;
}

static int add_range(void *ctx, uint64_t start, uint64_t end, uint32_t rule)
{
	struct builder *b = ctx;
	int err = 0;

	/* if two FDEs cover the same code, the first is used */
	start = MAX(start, b->end);
	if (start >= end)
		return 0;
	if (b->end && start > b->end + PADDING)
		err = put(b, b->end, WIRE_CFI_NONE);
	if (!err)
		err = put(b, start, rule);
	b->end = end;
	return err;
}

static int on_row(void *ctx, uint64_t start, uint64_t end, const struct cfi_state *state)
{
	struct builder *b = ctx;

	return add_range(b, start, end, cfi__pack(&b->section, state));
}

static int run_asm(struct builder *b, const struct fde_ref *ref)
{
	const uint8_t *code = elf__at(b->elf, ref->start, ref->len);
	int err = -EILSEQ;

	/* else another symbol of the same function came first */
	if (code && ref->start >= b->end)
		err = cfi_asm__run(b->assembly, code, ref->len, ref->start, add_range, b);
	return err == -EILSEQ ? 0 : err;
}

static int run_all(struct builder *b, const struct elf_file *elf)
{
	struct eh_cie cie = {.at = UINT64_MAX};
	struct eh_entry e;
	struct eh_fde fde;
	int err;

	for (size_t i = 0; i < b->n_fdes; i++) {
		if (b->fdes[i].at >= IS_RULE) {
			const struct fde_ref *r = &b->fdes[i];

			err = r->at == IS_ASM ? run_asm(b, r)
					      : add_range(b, r->start, r->start + r->len, r->rule);
			if (err)
				return err;
			continue;
		}
		/* the file may have changed since it was first read */
		if (!eh_take_entry(&b->section, b->fdes[i].at, &e) ||
		    !eh_take_fde(elf, &b->section, &e, &cie, &fde) || fde.start != b->fdes[i].start)
			continue;
		err = cfi__run(&b->section, &cie, &fde, on_row, b);
		if (err == -ENOMEM || err == -E2BIG)
			return err;
	}
	return b->end ? put(b, b->end, WIRE_CFI_NONE) : 0;
}

/* ── read aside ──────────────────────────────────────────────────────────────────────────── */

struct rows_out {
	uint64_t base;
	uint32_t n_buckets, n_rows;
	uint64_t words[];
};

/* For the 4 GB that rows can cover. */
#define MAX_BUCKETS (1U << (32 - WIRE_UNWIND_BUCKET_SHIFT))
#define OUT_SIZE                                                                                   \
	(sizeof(struct rows_out) + ((uint64_t)MAX_BUCKETS + CFI_MAX_ROWS) * sizeof(uint64_t))

/* Writes buckets and rows into one array. */
static void lay_out(const struct builder *b, struct rows_out *out)
{
	uint32_t n_buckets = (uint32_t)((b->rows[b->n - 1] >> (32 + WIRE_UNWIND_BUCKET_SHIFT)) + 1);
	size_t row = 0;

	for (uint32_t k = 0; k < n_buckets; k++) {
		size_t first = row;

		while (row < b->n && b->rows[row] >> (32 + WIRE_UNWIND_BUCKET_SHIFT) == k)
			row++;
		out->words[k] = (uint64_t)(row - first) << 32 | first;
	}
	memcpy(out->words + n_buckets, b->rows, b->n * sizeof(*b->rows));
	out->base = b->base;
	out->n_buckets = n_buckets;
	out->n_rows = (uint32_t)b->n;
}

bool cfi_rows__check(const struct cfi_rows *rows)
{
	const uint64_t *row = rows->words + rows->n_buckets;
	size_t next = 0;

	if (!rows->n_buckets || rows->n_buckets > MAX_BUCKETS || !rows->n_rows ||
	    rows->n_rows > CFI_MAX_ROWS)
		return false;
	for (uint32_t k = 0; k < rows->n_buckets; k++) {
		size_t n = rows->words[k] >> 32;

		/* buckets must partition the rows in order */
		if ((uint32_t)rows->words[k] != next || n > rows->n_rows - next)
			return false;
		for (size_t end = next + n; next < end; next++)
			if (row[next] >> (32 + WIRE_UNWIND_BUCKET_SHIFT) != k ||
			    (next && row[next] >> 32 <= row[next - 1] >> 32))
				return false;
	}
	return next == rows->n_rows;
}

static int take(const struct rows_out *out, struct cfi_rows *ret_rows)
{
	/* checked in place: the child is gone, so nobody can change it any more */
	struct cfi_rows rows = {.base = out->base,
				.words = (uint64_t *)out->words,
				.n_buckets = out->n_buckets,
				.n_rows = out->n_rows};
	size_t bytes;

	if (!cfi_rows__check(&rows))
		return -EIO;
	bytes = ((size_t)rows.n_buckets + rows.n_rows) * sizeof(*rows.words);
	rows.words = malloc(bytes);
	if (!rows.words)
		return -ENOMEM;
	memcpy(rows.words, out->words, bytes);
	*ret_rows = rows;
	return 0;
}

static uint64_t first_code_page(const struct elf_file *elf)
{
	uint64_t base = UINT64_MAX;

	for (size_t i = 0; i < elf__n_segments(elf); i++) {
		const struct elf_segment *seg = elf__segment(elf, i);

		if (seg->exec)
			base = MIN(base, seg->vaddr);
	}
	return base & ~((1ULL << WIRE_UNWIND_BUCKET_SHIFT) - 1);
}

struct job {
	struct elf_file *elf;
	bool c_only;
};

static int read_rows(void *ctx, void *ret_out)
{
	const struct job *job = ctx;
	struct builder b = {.elf = job->elf, .base = first_code_page(job->elf)};
	int err;

	if (!eh_find(job->elf, &b.section))
		return -ENOENT;
	err = collect(&b, job->elf);
	if (!err && job->c_only)
		err = collect_asm(&b);
	else if (!err)
		err = collect_called(&b);
	if (!err && b.n_fdes) {
		qsort(b.fdes, b.n_fdes, sizeof(*b.fdes), by_start);
		err = run_all(&b, job->elf);
	}
	if (!err && !b.n)
		err = -ENOENT;
	if (!err)
		lay_out(&b, ret_out);
	cfi_asm__free(b.assembly);
	free(b.fdes);
	free(b.rows);
	return err;
}

int cfi__new(struct elf_file *elf, bool c_only, struct cfi_rows *ret_rows)
{
	struct job job = {.elf = elf, .c_only = c_only};
	struct eh_cursor section;
	void *out;
	int err;

	if (!eh_find(elf, &section))
		return -ENOENT;
	err = elf__aside(elf, read_rows, &job, OUT_SIZE, &out);
	if (err)
		return err;
	err = take(out, ret_rows);
	confine__free_out(out, OUT_SIZE);
	return err;
}

void cfi_rows__free(struct cfi_rows *rows)
{
	free(rows->words);
	memset(rows, 0, sizeof(*rows));
}
