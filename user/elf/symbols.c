/* SPDX-License-Identifier: GPL-2.0-or-later */
/* symbols: the index, and the choice of the symbol that names an address best. */
#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/search.h"
#include "confine/confine.h"
#include "symbols.h"

#define MAX_RANGES   64
#define MAX_BACK     64 /* symbols examined for one that covers the address */
#define MAX_NAME_LEN 65535
#define MAX_UNIQUE   16 /* a letter, and 64 bits in base 62 */

/* Addresses are relative to `base`: four bytes suffice for any file within ELF_MAX_FILE. */
struct entry {
	uint32_t start;
	uint32_t size;
	uint32_t index; /* into the symbol table; in the child also with one of these */
#define UNIQUE_CLOSURE (1U << 31)
#define UNIQUE_RETURN  (1U << 30)
};

struct symbols {
	const struct elf_file *source;
	enum elf_symtab which;
	struct elf_code ranges[MAX_RANGES];
	size_t n_ranges;
	uint64_t base;
	struct entry *entries;
	size_t n, cap;
};

static const struct elf_code *range_of(const struct symbols *s, uint64_t vaddr)
{
	size_t i;

	for (i = 0; i < s->n_ranges; i++) {
		if (vaddr >= s->ranges[i].start && vaddr < s->ranges[i].end)
			return &s->ranges[i];
	}
	return NULL;
}

/*
 * GHC's LLVM backend leaves a symbol for each local closure and return point, which has nothing but
 * its unique: "s58w_info$def", "c7px_info$def". The native backend leaves none: the binding's
 * name means more. 0: another symbol.
 */
static uint32_t unique_only(const struct elf_sym *sym)
{
	/* a block that is jumped to has no table: "_c2JW$def" */
	const char *name = sym->name + (sym->name[0] == '_');
	size_t len = 0;

	if (sym->bind != STB_LOCAL || sym->type != STT_OBJECT)
		return 0;
	while (len <= MAX_UNIQUE && isalnum((unsigned char)name[len]))
		len++;
	if (!len || len > MAX_UNIQUE ||
	    (strcmp(name + len, "_info$def") != 0 && strcmp(name + len, "$def") != 0))
		return 0;
	/* the code generator's own uniques begin with c or u */
	return name[0] == 'c' || name[0] == 'u' ? UNIQUE_RETURN : UNIQUE_CLOSURE;
}

static int add(struct symbols *s, const struct elf_sym *sym, size_t index)
{
	const struct elf_code *range;
	void *entries = s->entries;
	struct entry *entry;
	uint64_t size;
	int err;

	if (sym->type != STT_FUNC && sym->type != STT_OBJECT && sym->type != STT_NOTYPE &&
	    sym->type != STT_GNU_IFUNC)
		return 0;
	if (sym->shndx == SHN_UNDEF || sym->shndx == SHN_ABS || sym->shndx == SHN_COMMON ||
	    sym->name[0] == '\0')
		return 0;
	range = range_of(s, sym->value);
	if (!range || sym->value - s->base > UINT32_MAX)
		return 0;
	err = array__reserve(&entries, &s->cap, s->n + 1, ELF_MAX_SYMBOLS, sizeof(*s->entries));
	s->entries = entries;
	if (err)
		return err;
	size = MIN(sym->size, range->end - sym->value);
	entry = &s->entries[s->n++];
	entry->start = (uint32_t)(sym->value - s->base);
	entry->size = (uint32_t)MIN(size, (uint64_t)UINT32_MAX);
	entry->index = (uint32_t)index | unique_only(sym);
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return CMP(x->start, y->start) ?: CMP(x->index, y->index);
}

/* Of several symbols at one address the one with the highest rank is used. */
static unsigned int rank(const struct elf_sym *sym)
{
	size_t len = strnlen(sym->name, MAX_NAME_LEN);
	unsigned int r = 0;

	/* the name shown by GHC's own tools; X_entry, X_slow and aliases denote the same code */
	if (len > 5 && memcmp(sym->name + len - 5, "_info", 5) == 0)
		r += 32;
	if (sym->bind != STB_LOCAL)
		r += 16;
	if (sym->type == STT_FUNC || sym->type == STT_GNU_IFUNC)
		r += 8;
	else if (sym->type == STT_OBJECT)
		r += 4;
	if (sym->name[0] != '_') /* puts, not _IO_puts */
		r += 2;
	if (sym->size > 0)
		r += 1;
	return r;
}

/* The best of n > 1 entries at one address. */
static struct entry best_of(const struct symbols *s, const struct entry *entries, size_t n)
{
	struct entry best = entries[0];
	unsigned int best_rank = 0;
	uint32_t size = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		struct elf_sym sym;
		unsigned int r;

		size = MAX(size, entries[i].size);
		if (elf__symbol(s->source, s->which, entries[i].index, &sym))
			continue;
		r = rank(&sym) + 1;
		if (r > best_rank) {
			best_rank = r;
			best = entries[i];
		}
	}
	if (best.size == 0)
		best.size = size;
	return best;
}

/* Keeps one symbol per address. Reads names only to choose between several. */
static void drop_aliases(struct symbols *s)
{
	size_t kept = 0, i, end;

	for (i = 0; i < s->n; i = end) {
		for (end = i + 1; end < s->n && s->entries[end].start == s->entries[i].start;)
			end++;
		s->entries[kept++] =
			end - i > 1 ? best_of(s, &s->entries[i], end - i) : s->entries[i];
	}
	s->n = kept;
}

/* A binding's return points follow it, and become part of it; its local closures precede it. */
static void drop_uniques(struct symbols *s)
{
	struct entry *owner = NULL;
	size_t kept = 0;

	for (size_t i = 0; i < s->n; i++) {
		struct entry e = s->entries[i];

		if (e.index & UNIQUE_CLOSURE) {
			owner = NULL;
		} else if (!(e.index & UNIQUE_RETURN)) {
			owner = &s->entries[kept++];
			*owner = e;
		} else if (owner) {
			owner->size = e.start - owner->start + e.size;
		}
	}
	s->n = kept;
}

static void choose_source(struct symbols *s, const struct elf_file *elf,
			  const struct elf_file *debug)
{
	s->source = elf;
	s->which = ELF_SYMTAB;
	if (elf__n_symbols(elf, ELF_SYMTAB) > 0)
		return;
	if (debug && elf__n_symbols(debug, ELF_SYMTAB) > 0)
		s->source = debug;
	else
		s->which = ELF_DYNSYM;
}

/* ── read aside ──────────────────────────────────────────────────────────────────────────── */

struct symbols_out {
	uint64_t n;
	struct entry entries[];
};

/* In the child: reads the whole table, sorted, with one entry per address. */
static int read_entries(void *ctx, void *ret_out)
{
	struct symbols_out *out = ret_out;
	struct symbols *s = ctx;
	size_t n = elf__n_symbols(s->source, s->which);
	int err = 0;

	for (size_t i = 1; i < n && !err; i++) {
		struct elf_sym sym;

		if (elf__symbol(s->source, s->which, i, &sym) == 0)
			err = add(s, &sym, i);
	}
	if (!err && s->n > 0) {
		qsort(s->entries, s->n, sizeof(*s->entries), by_start);
		drop_aliases(s);
		drop_uniques(s);
		memcpy(out->entries, s->entries, s->n * sizeof(*s->entries));
		out->n = s->n;
	}
	/* for when it does not run in a child */
	free(s->entries);
	s->entries = NULL;
	s->n = s->cap = 0;
	elf__done(s->source);
	return err;
}

bool symbols__check(const void *entries, size_t n, size_t n_symbols)
{
	const struct entry *e = entries;

	for (size_t i = 0; i < n; i++)
		if (e[i].index >= n_symbols || (i && e[i].start <= e[i - 1].start))
			return false;
	return true;
}

static int take(struct symbols *s, const struct symbols_out *out, size_t n_symbols)
{
	if (out->n > n_symbols || !symbols__check(out->entries, out->n, n_symbols))
		return -EIO;
	if (!out->n)
		return 0;
	s->entries = malloc(out->n * sizeof(*s->entries));
	if (!s->entries)
		return -ENOMEM;
	memcpy(s->entries, out->entries, out->n * sizeof(*s->entries));
	s->n = s->cap = out->n;
	return 0;
}

int symbols__new_debug(const struct elf_file *elf, const struct elf_file *debug,
		       struct symbols **ret_symbols)
{
	struct symbols *s = calloc(1, sizeof(*s));
	size_t n, size;
	void *out = NULL;
	int err = 0;

	if (!s)
		return -ENOMEM;
	choose_source(s, elf, debug);
	s->n_ranges = elf__code_ranges(elf, s->ranges, MAX_RANGES);
	s->base = s->n_ranges > 0 ? s->ranges[0].start : 0;
	n = elf__n_symbols(s->source, s->which);
	size = sizeof(struct symbols_out) + n * sizeof(struct entry);
	if (n > 1)
		err = elf__aside(s->source, read_entries, s, size, &out);
	if (out)
		err = take(s, out, n);
	confine__free_out(out, size);
	if (err) {
		symbols__free(s);
		return err;
	}
	*ret_symbols = s;
	return 0;
}

int symbols__new(const struct elf_file *elf, struct symbols **ret_symbols)
{
	return symbols__new_debug(elf, NULL, ret_symbols);
}

void symbols__free(struct symbols *symbols)
{
	if (!symbols)
		return;
	free(symbols->entries);
	free(symbols);
}

size_t symbols__count(const struct symbols *symbols)
{
	return symbols->n;
}

/* The number of entries that begin at or below `at`. */
static size_t count_up_to(const struct symbols *s, uint32_t at)
{
	return search__first(s->n, i, s->entries[i].start > at);
}

static int fill(const struct symbols *s, const struct entry *entry, bool exact,
		struct symbols_hit *ret_hit)
{
	struct elf_sym sym;

	if (elf__symbol(s->source, s->which, entry->index, &sym))
		return -ENOENT;
	ret_hit->name = sym.name;
	ret_hit->name_len = strnlen(sym.name, MAX_NAME_LEN);
	ret_hit->start = s->base + entry->start;
	ret_hit->size = entry->size;
	ret_hit->exact = exact;
	ret_hit->type = sym.type;
	ret_hit->bind = sym.bind;
	return 0;
}

static bool is_local(const struct symbols *s, const struct entry *entry)
{
	struct elf_sym sym;

	return elf__symbol(s->source, s->which, entry->index, &sym) || sym.bind == STB_LOCAL;
}

int symbols__after(const struct symbols *s, uint64_t vaddr, size_t skip,
		   struct symbols_hit *ret_hit)
{
	const struct elf_code *range = range_of(s, vaddr);
	size_t i;

	if (!range || vaddr - s->base > UINT32_MAX)
		return -ENOENT;
	i = count_up_to(s, (uint32_t)(vaddr - s->base));
	if (skip >= s->n - i)
		return -ENOENT;
	i += skip;
	if (s->base + s->entries[i].start >= range->end ||
	    s->base + s->entries[i].start - vaddr > SYMBOLS_MAX_DISTANCE)
		return -ENOENT;
	return fill(s, &s->entries[i], false, ret_hit);
}

int symbols__lookup(const struct symbols *s, uint64_t vaddr, struct symbols_hit *ret_hit)
{
	const struct elf_code *range = range_of(s, vaddr);
	const struct entry *near;
	uint32_t at, lowest;
	size_t i, end;

	if (!range || vaddr - s->base > UINT32_MAX)
		return -ENOENT;
	at = (uint32_t)(vaddr - s->base);
	lowest = (uint32_t)(range->start - s->base);
	end = count_up_to(s, at);
	if (end == 0 || s->entries[end - 1].start < lowest)
		return -ENOENT;
	near = &s->entries[end - 1];
	if (near->start == at || (near->size > 0 && at - near->start < near->size))
		return fill(s, near, true, ret_hit);

	/*
	 * A function with a size may contain labels; a global label (StgReturn) is the better name.
	 */
	for (i = end - 1; i > 0 && end - i <= MAX_BACK; i--) {
		const struct entry *entry = &s->entries[i - 1];

		if (entry->start < lowest)
			break;
		if (entry->size == 0 || at - entry->start >= entry->size)
			continue;
		if (near->size == 0 && !is_local(s, near))
			entry = near;
		return fill(s, entry, true, ret_hit);
	}
	if (at - near->start > SYMBOLS_MAX_DISTANCE)
		return -ENOENT;
	return fill(s, near, false, ret_hit);
}
