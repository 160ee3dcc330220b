/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * elf_fde: finds which code has unwind rows. Reads all of .eh_frame, since the search table of
 * .eh_frame_hdr may be missing.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/search.h"
#include "confine/confine.h"
#include "elf_eh.h"
#include "elf_priv.h"

static int add_fde(struct elf_lazy *lazy, uint64_t start, uint64_t len)
{
	void *fdes = lazy->fdes;
	int err;

	err = array__reserve(&fdes, &lazy->cap_fdes, lazy->n_fdes + 1, ELF_MAX_FDES,
			     sizeof(*lazy->fdes));
	lazy->fdes = fdes;
	if (err)
		return err;
	lazy->fdes[lazy->n_fdes].start = start;
	lazy->fdes[lazy->n_fdes++].end = start + len;
	return 0;
}

static int collect(const struct elf_file *elf, const struct eh_cursor *section)
{
	struct eh_cie cie = {.at = UINT64_MAX};
	uint64_t at = section->at;
	struct eh_entry e;
	struct eh_fde fde;
	int err;

	for (; section->end - at >= sizeof(uint32_t); at = e.end) {
		if (!eh_take_entry(section, at, &e))
			break;
		/* A linker may leave several zero terminators, one for each crtend.o. */
		if (!eh_take_fde(elf, section, &e, &cie, &fde))
			continue;
		err = add_fde(elf->lazy, fde.start, fde.len);
		if (err)
			return err;
	}
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct elf_fde *x = a, *y = b;

	return CMP(x->start, y->start) ?: CMP(x->end, y->end);
}

/* ── read aside ──────────────────────────────────────────────────────────────────────────── */

struct fdes_out {
	uint64_t n;
	struct elf_fde fdes[];
};

#define OUT_SIZE (sizeof(struct fdes_out) + ELF_MAX_FDES * sizeof(struct elf_fde))

/* Usually runs in a child, which frees its allocations by exiting. */
static int read_fdes(void *ctx, void *ret_out)
{
	const struct elf_file *elf = ctx;
	struct elf_lazy *lazy = elf->lazy;
	struct fdes_out *out = ret_out;
	struct eh_cursor section;
	int err = 0;

	if (eh_find(elf, &section))
		err = collect(elf, &section);
	if (!err && lazy->n_fdes > 0) {
		qsort(lazy->fdes, lazy->n_fdes, sizeof(*lazy->fdes), by_start);
		memcpy(out->fdes, lazy->fdes, lazy->n_fdes * sizeof(*lazy->fdes));
		out->n = lazy->n_fdes;
	}
	/* for when it does not run in a child */
	free(lazy->fdes);
	lazy->fdes = NULL;
	lazy->n_fdes = lazy->cap_fdes = 0;
	return err;
}

bool elf_fdes__check(const struct elf_fde *fdes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (fdes[i].end < fdes[i].start || (i && fdes[i].start < fdes[i - 1].start))
			return false;
	return true;
}

static int take(struct elf_lazy *lazy, const struct fdes_out *out)
{
	if (out->n > ELF_MAX_FDES || !elf_fdes__check(out->fdes, out->n))
		return -EIO;
	if (!out->n)
		return 0;
	lazy->fdes = malloc(out->n * sizeof(*lazy->fdes));
	if (!lazy->fdes)
		return -ENOMEM;
	memcpy(lazy->fdes, out->fdes, out->n * sizeof(*lazy->fdes));
	lazy->n_fdes = lazy->cap_fdes = out->n;
	return 0;
}

int elf__fdes(struct elf_file *elf, const struct elf_fde **ret_fdes, size_t *ret_n)
{
	struct elf_lazy *lazy = elf->lazy;
	struct eh_cursor section;
	void *out = NULL;
	int err = 0;

	if (elf_once__is_due(&lazy->fdes_read)) {
		/* check the headers first: most files without any FDE need no child */
		if (eh_find(elf, &section))
			err = elf__aside(elf, read_fdes, elf, OUT_SIZE, &out);
		if (out)
			err = take(lazy, out);
		confine__free_out(out, OUT_SIZE);
		elf_once__end(&lazy->fdes_read, err);
	}
	if (lazy->fdes_read.err)
		return lazy->fdes_read.err;
	*ret_fdes = lazy->fdes;
	*ret_n = lazy->n_fdes;
	return 0;
}

bool elf__find_fde(struct elf_file *elf, uint64_t vaddr, struct elf_fde *ret_fde)
{
	const struct elf_fde *fdes;
	size_t n, after;

	if (elf__fdes(elf, &fdes, &n))
		return false;
	after = search__first(n, i, fdes[i].start > vaddr);
	if (after == 0 || vaddr >= fdes[after - 1].end)
		return false;
	*ret_fde = fdes[after - 1];
	return true;
}

size_t elf_fdes__starting_at(const struct elf_fde *fdes, size_t n, uint64_t vaddr)
{
	size_t at = search__first(n, i, fdes[i].start >= vaddr);

	return at < n && fdes[at].start == vaddr ? at : n;
}

bool elf__has_fde(struct elf_file *elf, uint64_t vaddr)
{
	struct elf_fde fde;

	return elf__find_fde(elf, vaddr, &fde);
}
