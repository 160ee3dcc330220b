/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Distinguishes the runtime's own C functions, and the collector's, from other C code in its file.
 */
#include "rts_text.h"

#include <errno.h>
#include <linux/elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/retry.h"
#include "base/base.h"
#include "base/search.h"
#include "confine/confine.h"
#include "rts_graph_priv.h"
#include "rts_named_priv.h"
#include "rts_names_table_priv.h"

/* Up to this many unlisted functions in a row between listed ones count as the runtime's. */
#define MAX_UNLISTED 24
/* A shorter name may be anybody's ("copy", "sweep"): its neighbours must be listed too. */
#define SPECIFIC_NAME 9
#define NEIGHBOURS    4
/* A gap between functions larger than this is not padding but code without unwind rows. */
#define MAX_PADDING 64

/* The runtime's Cmm code has some 100 kB in all. */
#define MAX_CMM (256U << 10)

struct rts_text {
	const struct elf_fde *fdes;
	size_t n;
	uint8_t *part;	    /* enum rts_part of each FDE */
	uint16_t *name;	    /* rts_named_priv.h; 0 if there are symbols */
	uint64_t stgreturn; /* 0: unknown */
};

enum listed { UNLISTED = 0, LISTED_RTS, LISTED_GC };

static int compare_name(const void *key, const void *element)
{
	return strcmp(key, *(const char *const *)element);
}

static enum listed listed(const char *name)
{
	if (bsearch(name, rts_names_gc, ARRAY_SIZE(rts_names_gc), sizeof(char *), compare_name))
		return LISTED_GC;
	if (bsearch(name, rts_names_mutator, ARRAY_SIZE(rts_names_mutator), sizeof(char *),
		    compare_name))
		return LISTED_RTS;
	return UNLISTED;
}

/* Collector functions of versions that the list was not generated from (rts/sm, 9.2 to 9.14). */
static bool is_gc_name(const char *name)
{
	static const char *const prefixes[] = {"evacuate",   "scavenge",   "nonmoving", "traverse_",
					       "alloc_todo", "todo_block", "gcThread",	"gcWorker"};

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

struct marks {
	struct rts_text *text;
	uint8_t *listed; /* enum listed of each FDE */
	uint8_t *specific;
	size_t n_listed;
};

/* The FDE that covers vaddr; n if there is none. */
static size_t fde_at(const struct rts_text *text, uint64_t vaddr)
{
	size_t i = search__first(text->n, k, text->fdes[k].start > vaddr);

	return i && vaddr < text->fdes[i - 1].end ? i - 1 : text->n;
}

static int on_symbol(void *ctx, const struct elf_sym *sym)
{
	struct marks *m = ctx;
	char name[128];
	size_t i, len;
	enum listed l;

	if (sym->shndx == SHN_UNDEF || (sym->type != STT_FUNC && sym->type != STT_NOTYPE))
		return 0;
	i = fde_at(m->text, sym->value);
	if (i == m->text->n || m->text->fdes[i].start != sym->value)
		return 0;
	/* evacuate.part.0, scavenge_block.cold: parts that compilers split off a function */
	len = strcspn(sym->name, ".");
	if (len == 0 || len >= sizeof(name))
		return 0;
	memcpy(name, sym->name, len);
	name[len] = '\0';
	l = listed(name);
	if (l == UNLISTED)
		return 0;
	m->n_listed += m->listed[i] == UNLISTED;
	if (l > m->listed[i])
		m->listed[i] = (uint8_t)l;
	m->specific[i] |= len >= SPECIFIC_NAME;
	return 0;
}

static bool adjacent(const struct elf_fde *a, const struct elf_fde *b)
{
	return b->start - a->end <= MAX_PADDING;
}

/* A short name counts only if there are specific names of the runtime around it. */
static bool is_anchor(const struct marks *m, size_t i)
{
	if (m->listed[i] == UNLISTED)
		return false;
	if (m->specific[i])
		return true;
	for (size_t d = 1; d <= NEIGHBOURS && i >= d; d++) {
		if (!adjacent(&m->text->fdes[i - d], &m->text->fdes[i - d + 1]))
			break;
		if (m->specific[i - d])
			return true;
	}
	for (size_t d = 1; d <= NEIGHBOURS && i + d < m->text->n; d++) {
		if (!adjacent(&m->text->fdes[i + d - 1], &m->text->fdes[i + d]))
			break;
		if (m->specific[i + d])
			return true;
	}
	return false;
}

static void classify(struct marks *m)
{
	struct rts_text *t = m->text;
	size_t last = 0;
	bool have_last = false;

	for (size_t i = 0; i < t->n; i++) {
		if (i > 0 && !adjacent(&t->fdes[i - 1], &t->fdes[i]))
			have_last = false;
		if (!is_anchor(m, i))
			continue;
		t->part[i] = m->listed[i] == LISTED_GC ? RTS_PART_GC : RTS_PART_RTS;
		if (have_last && i - last - 1 <= MAX_UNLISTED) {
			bool gc = t->part[last] == RTS_PART_GC && t->part[i] == RTS_PART_GC;

			for (size_t k = last + 1; k < i; k++)
				t->part[k] = gc ? RTS_PART_GC : RTS_PART_RTS;
		}
		last = i;
		have_last = true;
	}
}

/* Without a symbol table: classifies by strings and by who calls whom, starting from what is
 * known. */
static int by_calls(struct rts_text *t, const struct rts *rts, uint8_t *mark, uint8_t *gc)
{
	uint64_t bias = rts->image->bias;
	const uint64_t seeds[] = {rts->suspend.addr - bias, rts->resume.addr - bias};
	struct rts_graph *graph;
	int err = rts_graph__new(rts->image->elf, t->fdes, t->n, &graph);

	if (err)
		return err == -E2BIG ? 0 : err;
	err = rts_named__find(rts, t->fdes, t->n, graph, t->name);
	for (size_t i = 0; i < t->n && !err; i++) {
		const char *name = rts_named__text(t->name[i]);

		mark[i] = name || t->part[i] != RTS_PART_C;
		gc[i] = t->part[i] == RTS_PART_GC || (name && listed(name) == LISTED_GC);
	}
	if (!err && rts->suspend.addr && rts->resume.addr)
		err = rts_graph__mark(graph, seeds, ARRAY_SIZE(seeds), mark);
	if (!err)
		err = rts_graph__enclose(graph, mark, gc);
	rts_graph__free(graph);
	for (size_t i = 0; i < t->n && !err; i++)
		if (mark[i])
			t->part[i] = gc[i] ? RTS_PART_GC : RTS_PART_RTS;
	return err == -E2BIG ? 0 : err;
}

/* ── read aside ──────────────────────────────────────────────────────────────────────────── */

static size_t size_of(size_t n)
{
	return (n + 1) * (sizeof(uint8_t) + sizeof(uint16_t));
}

/* The names come first, then the parts. */
static void lay_out(struct rts_text *t, void *out)
{
	t->name = out;
	t->part = (uint8_t *)(t->name + t->n + 1);
}

struct job {
	const struct rts *rts;
	const struct elf_fde *fdes;
	size_t n;
};

static bool has_table(const struct image *image)
{
	return elf__n_symbols(image->elf, ELF_SYMTAB) > 1 || (image->debug && !image->debug_is_own);
}

/* Runs in the child. */
static int read_text(void *ctx, void *out)
{
	const struct job *job = ctx;
	const struct image *image = job->rts->image;
	struct rts_text t = {.fdes = job->fdes, .n = job->n};
	struct marks m = {.text = &t};
	int err = -ENOMEM;

	lay_out(&t, out);
	m.listed = calloc(t.n + 1, 1);
	m.specific = calloc(t.n + 1, 1);
	if (!m.listed || !m.specific)
		goto out;
	err = 0;
	memset(t.part, strncmp(image->base, "libHSrts", 8) == 0 ? RTS_PART_RTS : RTS_PART_C,
	       t.n + 1);
	elf__symbols(image->elf, ELF_SYMTAB, on_symbol, &m);
	elf__symbols(image->elf, ELF_DYNSYM, on_symbol, &m);
	if (image->debug && !image->debug_is_own)
		elf__symbols(image->debug, ELF_SYMTAB, on_symbol, &m);
	classify(&m);
	if (!has_table(image))
		err = by_calls(&t, job->rts, m.listed, m.specific);
out:
	free(m.listed);
	free(m.specific);
	return err;
}

bool rts_text__check(const uint8_t *parts, const uint16_t *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (parts[i] > RTS_PART_GC || names[i] > rts_named__last())
			return false;
	return true;
}

int rts_text__new(const struct rts *rts, struct rts_text **ret_text)
{
	struct rts_text *t = calloc(1, sizeof(*t));
	struct job job = {.rts = rts};
	void *out = NULL, *kept;
	int err;

	if (!t)
		return -ENOMEM;
	err = elf__fdes(rts->image->elf, &t->fdes, &t->n);
	if (retry__shows_nothing(err))
		goto out;
	/* Without unwind rows everything is unknown, which is not an error. */
	if (err)
		t->n = 0;
	if (rts->stgreturn)
		t->stgreturn = rts->stgreturn - rts->image->bias;
	job.fdes = t->fdes;
	job.n = t->n;
	err = elf__aside(rts->image->elf, read_text, &job, size_of(t->n), &out);
	if (err)
		goto out;
	kept = malloc(size_of(t->n));
	if (kept) {
		memcpy(kept, out, size_of(t->n));
		lay_out(t, kept);
	}
	confine__free_out(out, size_of(t->n));
	err = !kept ? -ENOMEM : rts_text__check(t->part, t->name, t->n) ? 0 : -EIO;
	if (err)
		goto out;
	*ret_text = t;
	t = NULL;
out:
	rts_text__free(t);
	return err;
}

void rts_text__free(struct rts_text *text)
{
	if (!text)
		return;
	free(text->name); /* includes the parts */
	free(text);
}

static bool is_rts(const struct rts_text *text, size_t i)
{
	return text->part[i] == RTS_PART_RTS || text->part[i] == RTS_PART_GC;
}

bool rts_text__is_cmm(const struct rts_text *text, uint64_t vaddr)
{
	size_t after = search__first(text->n, k, text->fdes[k].start > vaddr);

	if (!after || after >= text->n || vaddr < text->fdes[after - 1].end ||
	    text->fdes[after].start - text->fdes[after - 1].end > MAX_CMM ||
	    !is_rts(text, after - 1))
		return false;
	/*
	 * Hot functions of the runtime, but not StgRun, may come before all Haskell code. Since 9.4
	 * the Cmm code comes last in the archive, and is followed by what C libraries bring.
	 */
	return is_rts(text, after) || (text->stgreturn && vaddr > text->stgreturn);
}

const char *rts_text__name(const struct rts_text *text, uint64_t vaddr)
{
	size_t i = fde_at(text, vaddr);
	const char *name = i == text->n ? NULL : rts_named__text(text->name[i]);

	/* StgReturn has no unwind rows of its own, but a symbol table would have it */
	if (name && vaddr >= text->stgreturn && fde_at(text, text->stgreturn) == i)
		return "StgReturn";
	return name;
}

enum rts_part rts_text__part_of(const char *name)
{
	char plain[128];
	size_t len = strcspn(name, ".");

	if (len >= sizeof(plain))
		return RTS_PART_RTS;
	memcpy(plain, name, len);
	plain[len] = '\0';
	return listed(plain) == LISTED_GC || is_gc_name(plain) ? RTS_PART_GC : RTS_PART_RTS;
}

enum rts_part rts_text__part(const struct rts_text *text, uint64_t vaddr, const char *name)
{
	size_t i = fde_at(text, vaddr);

	if (i == text->n)
		return RTS_PART_UNKNOWN;
	if (text->part[i] == RTS_PART_RTS && is_gc_name(name))
		return RTS_PART_GC;
	return (enum rts_part)text->part[i];
}
