/* SPDX-License-Identifier: GPL-2.0-or-later */
/* dwarf_read: an index of each compilation unit's blocks of code, and what libdw has on them. */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/search.h"
#include "hs_name_priv.h"
#include "names/dwarf_priv.h"
#include "zname_priv.h"

#define MAX_CUS	   (1U << 20)
#define MAX_BLOCKS (8U << 20) /* of one unit */
#define MAX_DEPTH  32
/* Blocks looked at below an address for one that holds it: C's may lie within each other. */
#define MAX_BACK 64
/* Notes of one function that are looked at. */
#define MAX_NOTES 4096
/* Functions of a unit times its blocks: beyond that they are not numbered, which takes too long. */
#define MAX_NUMBERING (1ULL << 27)

/* GHC/CmmToAsm/Dwarf/Constants.hs: a span of source that a block came from */
#define TAG_GHC_SRC_NOTE     0x5b00
#define AT_GHC_SPAN_FILE     0x2b00
#define AT_GHC_SPAN_START    0x2b01
#define LANG_HASKELL	     0x18
#define AT_MIPS_LINKAGE_NAME 0x2007

struct block {
	uint64_t start, end;
	uint64_t below; /* the highest end of all blocks before it:a search backwards may stop */
	Dwarf_Off proc; /* its function's entry */
	Dwarf_Off die;	/* its own */
};

/* A function that GHC made. */
struct proc {
	Dwarf_Off die;
	uint64_t start;
	const char *name; /* "": made up */
	uint32_t line, nth;
	bool exported, inner;
};

struct unit {
	Dwarf_Off die;
	uint64_t start, end; /* of all its code; end 0: not known */
	struct block *blocks;
	size_t n, cap;
	struct proc *procs; /* ascending by die */
	size_t n_procs, procs_cap;
	bool indexed, haskell, numbered;
};

struct dwarf_reader {
	Elf *elf;
	Dwarf *dw;
	struct unit *units;
	size_t n, cap;
};

/* ── the index ───────────────────────────────────────────────────────────────────────────── */

static int add_unit(struct dwarf_reader *r, Dwarf_Die *cu)
{
	ptrdiff_t at = 0;
	Dwarf_Addr base, start, end;
	struct unit u = {.die = dwarf_dieoffset(cu)};
	int err = ARRAY_RESERVE(r->units, r->cap, r->n + 1, MAX_CUS);

	if (err)
		return err;
	u.start = UINT64_MAX;
	while ((at = dwarf_ranges(cu, at, &base, &start, &end)) > 0) {
		if (start >= end)
			continue;
		u.start = MIN(u.start, start);
		u.end = MAX(u.end, end);
	}
	r->units[r->n++] = u;
	return 0;
}

static int list_units(struct dwarf_reader *r)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	uint8_t type;
	int err = 0;

	while (!err && dwarf_get_units(r->dw, cu, &cu, NULL, &type, &die, NULL) == 0)
		if (type == DW_UT_compile)
			err = add_unit(r, &die);
	return err;
}

static int add_blocks(struct unit *u, Dwarf_Die *die, Dwarf_Off proc)
{
	ptrdiff_t at = 0;
	Dwarf_Addr base, start, end;

	while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
		int err;

		if (start >= end)
			continue;
		err = ARRAY_RESERVE(u->blocks, u->cap, u->n + 1, MAX_BLOCKS);
		if (err)
			return err;
		u->blocks[u->n++] = (struct block){
			.start = start, .end = end, .proc = proc, .die = dwarf_dieoffset(die)};
	}
	return 0;
}

/* GHC's blocks lie outside of their function's own range, which is its first block's alone. */
static int index_die(struct unit *u, Dwarf_Die *die, Dwarf_Off proc, unsigned depth)
{
	int tag = dwarf_tag(die), err = 0;
	Dwarf_Die child;

	if (tag == DW_TAG_subprogram)
		proc = dwarf_dieoffset(die);
	if (proc && (tag == DW_TAG_subprogram || tag == DW_TAG_lexical_block))
		err = add_blocks(u, die, proc);
	if (err || depth >= MAX_DEPTH || dwarf_child(die, &child))
		return err;
	do {
		tag = dwarf_tag(&child);
		if (tag == DW_TAG_subprogram || tag == DW_TAG_lexical_block ||
		    tag == DW_TAG_namespace || tag == DW_TAG_class_type ||
		    tag == DW_TAG_structure_type)
			err = index_die(u, &child, proc, depth + 1);
	} while (!err && dwarf_siblingof(&child, &child) == 0);
	return err;
}

static int by_start(const void *a, const void *b)
{
	const struct block *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	/* the outer one first */
	return x->end > y->end ? -1 : x->end < y->end;
}

static int index_unit(struct dwarf_reader *r, struct unit *u)
{
	uint64_t below = 0;
	Dwarf_Die cu;
	int err;

	if (u->indexed)
		return 0;
	u->indexed = true;
	if (!dwarf_offdie(r->dw, u->die, &cu))
		return 0;
	u->haskell = dwarf_srclang(&cu) == LANG_HASKELL;
	err = index_die(u, &cu, 0, 0);
	if (u->n)
		qsort(u->blocks, u->n, sizeof(*u->blocks), by_start);
	for (size_t i = 0; i < u->n; i++) {
		u->blocks[i].below = below;
		below = MAX(below, u->blocks[i].end);
	}
	return err;
}

static const struct block *find_block(const struct unit *u, uint64_t vaddr)
{
	size_t after = search__first(u->n, k, u->blocks[k].start > vaddr);

	for (size_t i = after; i > 0 && after - i < MAX_BACK; i--) {
		const struct block *b = &u->blocks[i - 1];

		if (b->end > vaddr)
			return b;
		if (b->below <= vaddr)
			return NULL;
	}
	return NULL;
}

/*
 * GHC notes only blocks that came from source, and with -g1 only the first one of each function. A
 * function's blocks lie together: what is after one of them, and before another function's, is its
 * own.
 */
static bool find_gap(const struct unit *u, uint64_t vaddr, struct block *ret_block)
{
	size_t after = search__first(u->n, k, u->blocks[k].start > vaddr);

	if (!u->haskell || !after)
		return false;
	*ret_block = u->blocks[after - 1];
	ret_block->end = after < u->n ? u->blocks[after].start : u->end;
	return vaddr < ret_block->end;
}

/* ── one address ─────────────────────────────────────────────────────────────────────────── */

static void copy(char *to, size_t size, const char *from)
{
	size_t len = from ? strnlen(from, size - 1) : 0;

	memcpy(to, from ? from : "", len);
	to[len] = '\0';
}

static const char *string_attr(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attr;

	return dwarf_formstring(dwarf_attr_integrate(die, name, &attr));
}

static uint32_t number_attr(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;

	if (!dwarf_attr(die, name, &attr) || dwarf_formudata(&attr, &value))
		return 0;
	return value > UINT32_MAX ? 0 : (uint32_t)value;
}

/* The first note below an entry, which for GHC is its innermost span. */
static bool first_note(Dwarf_Die *die, unsigned depth, unsigned *left, Dwarf_Die *ret_note)
{
	Dwarf_Die child;

	if (depth >= MAX_DEPTH || dwarf_child(die, &child))
		return false;
	do {
		if (!*left)
			return false;
		--*left;
		if (dwarf_tag(&child) == TAG_GHC_SRC_NOTE) {
			*ret_note = child;
			return true;
		}
		if (dwarf_tag(&child) == DW_TAG_lexical_block &&
		    first_note(&child, depth + 1, left, ret_note))
			return true;
	} while (dwarf_siblingof(&child, &child) == 0);
	return false;
}

/* The path as the compiler was given it. */
static void copy_path(Dwarf_Die *cu, char *to, size_t size, const char *path)
{
	const char *dir = string_attr(cu, DW_AT_comp_dir);
	size_t len = dir ? strlen(dir) : 0;

	if (len && path && strncmp(path, dir, len) == 0 &&
	    (path[len] == '/' || dir[len - 1] == '/'))
		for (path += len; *path == '/';)
			path++;
	copy(to, size, path);
}

static uint32_t line_at(Dwarf_Die *cu, uint64_t vaddr, const char **ret_file)
{
	Dwarf_Line *line = dwarf_getsrc_die(cu, vaddr);
	int no;

	if (!line || dwarf_lineno(line, &no) || no <= 0)
		return 0;
	*ret_file = dwarf_linesrc(line, NULL, NULL);
	return *ret_file ? (uint32_t)no : 0;
}

static void find_line(Dwarf_Die *cu, Dwarf_Die *die, uint64_t vaddr, struct dwarf_place *p)
{
	unsigned left = 1;
	const char *file;
	Dwarf_Die note;

	p->line = line_at(cu, vaddr, &file);
	if (p->line) {
		copy_path(cu, p->file, sizeof(p->file), file);
		return;
	}
	/* the block's own note comes before the blocks in it */
	if (p->haskell && first_note(die, 0, &left, &note)) {
		p->line = number_attr(&note, AT_GHC_SPAN_START);
		copy(p->file, sizeof(p->file), string_attr(&note, AT_GHC_SPAN_FILE));
	}
}

/* The first line of any of a function's blocks: GHC writes notes into few of its releases' files.
 */
static void lowest_line(Dwarf_Die *cu, const struct unit *u, Dwarf_Off proc, struct dwarf_place *p)
{
	const char *file = NULL, *first = NULL;
	unsigned left = MAX_NOTES;

	for (size_t i = 0; i < u->n && left; i++) {
		uint32_t line;

		if (u->blocks[i].proc != proc)
			continue;
		left--;
		/* since 9.4 a block begins one byte before its code */
		line = line_at(cu, u->blocks[i].start + 1, &file);
		first = first ? first : line ? file : NULL;
		if (line && strcmp(file, first) == 0 && (!p->proc_line || line < p->proc_line))
			p->proc_line = line;
	}
	if (p->proc_line)
		copy_path(cu, p->proc_file, sizeof(p->proc_file), first);
}

static void find_proc(Dwarf_Die *cu, const struct unit *u, Dwarf_Die *proc, struct dwarf_place *p)
{
	const char *linkage = string_attr(proc, DW_AT_linkage_name);
	unsigned left = MAX_NOTES;
	Dwarf_Addr low = 0;
	Dwarf_Die note;
	int no;

	if (!linkage)
		linkage = string_attr(proc, AT_MIPS_LINKAGE_NAME);
	copy(p->name, sizeof(p->name), string_attr(proc, DW_AT_name));
	copy(p->linkage, sizeof(p->linkage), linkage);
	if (dwarf_lowpc(proc, &low) == 0)
		p->proc = low;
	if (p->haskell && first_note(proc, 0, &left, &note)) {
		p->proc_line = number_attr(&note, AT_GHC_SPAN_START);
		copy(p->proc_file, sizeof(p->proc_file), string_attr(&note, AT_GHC_SPAN_FILE));
	} else if (dwarf_decl_line(proc, &no) == 0 && no > 0) {
		p->proc_line = (uint32_t)no;
		copy_path(cu, p->proc_file, sizeof(p->proc_file), dwarf_decl_file(proc));
	} else if (p->haskell) {
		lowest_line(cu, u, dwarf_dieoffset(proc), p);
	}
}

/* ── functions of one name ───────────────────────────────────────────────────────────────── */

static int list_procs(struct dwarf_reader *r, struct unit *u, Dwarf_Die *cu)
{
	for (size_t i = 0; i < u->n; i++) {
		const struct block *b = &u->blocks[i];
		struct dwarf_place place = {.haskell = true};
		struct proc *p;
		struct zname z;
		Dwarf_Die die;
		int err;

		if (b->die != b->proc || !dwarf_offdie(r->dw, b->proc, &die))
			continue;
		err = ARRAY_RESERVE(u->procs, u->procs_cap, u->n_procs + 1, MAX_BLOCKS);
		if (err)
			return err;
		find_proc(cu, u, &die, &place);
		p = &u->procs[u->n_procs++];
		*p = (struct proc){.die = b->proc, .start = b->start, .line = place.proc_line};
		p->exported = zname__decode(place.linkage, &z) == 0 && z.is_haskell;
		p->name = hs_name__is_made_up(place.name) ? "" : string_attr(&die, DW_AT_name);
		p->name = p->name ?: "";
	}
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const struct proc *x = a, *y = b;

	return strcmp(x->name, y->name) ?: CMP(x->start, y->start);
}

static int by_line(const void *a, const void *b)
{
	const struct proc *x = a, *y = b;

	return strcmp(x->name, y->name) ?: CMP(x->line, y->line) ?: CMP(x->start, y->start);
}

static int by_proc_die(const void *a, const void *b)
{
	const struct proc *x = a, *y = b;

	return CMP(x->die, y->die);
}

/*
 * GHC names a function after the source binding that its code is from, and so all closures within
 * that binding: it is the one that has a symbol, or else the last one, which the code of what it
 * holds comes before. Those inside are numbered where they begin in the same line.
 */
static void number_procs(struct unit *u)
{
	struct proc *v = u->procs;
	size_t end;

	qsort(v, u->n_procs, sizeof(*v), by_name);
	for (size_t i = 0; i < u->n_procs; i = end) {
		bool has_binding = !v[i].name[0];

		for (end = i; end < u->n_procs && !strcmp(v[end].name, v[i].name); end++)
			has_binding |= v[end].exported;
		for (size_t k = i; k < end; k++)
			v[k].inner = v[k].name[0] && !v[k].exported && (has_binding || k + 1 < end);
	}
	qsort(v, u->n_procs, sizeof(*v), by_line);
	for (size_t i = 0, nth = 0; i < u->n_procs; i++) {
		if (i == 0 || v[i].line != v[i - 1].line || strcmp(v[i].name, v[i - 1].name) != 0)
			nth = 0;
		if (v[i].inner || (!v[i].name[0] && !v[i].exported))
			v[i].nth = (uint32_t)++nth;
	}
	qsort(v, u->n_procs, sizeof(*v), by_proc_die);
}

static void find_number(struct dwarf_reader *r, struct unit *u, Dwarf_Die *cu, Dwarf_Off proc,
			struct dwarf_place *p)
{
	size_t n = 0, at;

	if (!u->numbered) {
		u->numbered = true;
		for (size_t i = 0; i < u->n; i++)
			n += u->blocks[i].die == u->blocks[i].proc;
		if (n > MAX_NUMBERING / (u->n + 1) || list_procs(r, u, cu))
			u->n_procs = 0;
		if (u->n_procs)
			number_procs(u);
	}
	at = search__first(u->n_procs, k, u->procs[k].die >= proc);
	if (at == u->n_procs || u->procs[at].die != proc)
		return;
	p->inner = u->procs[at].inner;
	p->nth = u->procs[at].nth;
}

static int answer(struct dwarf_reader *r, struct unit *u, const struct block *b, uint64_t vaddr,
		  struct dwarf_place *p)
{
	Dwarf_Die cu, proc, die;

	if (!dwarf_offdie(r->dw, u->die, &cu) || !dwarf_offdie(r->dw, b->proc, &proc) ||
	    !dwarf_offdie(r->dw, b->die, &die))
		return -ENOENT;
	memset(p, 0, sizeof(*p));
	p->start = b->start;
	p->end = b->end;
	p->haskell = dwarf_srclang(&cu) == LANG_HASKELL;
	if (u->end) {
		p->cu_start = u->start;
		p->cu_end = u->end;
	}
	find_proc(&cu, u, &proc, p);
	if (p->haskell)
		find_number(r, u, &cu, b->proc, p);
	find_line(&cu, &die, vaddr, p);
	return 0;
}

int dwarf_reader__find(struct dwarf_reader *r, uint64_t vaddr, struct dwarf_place *ret_place)
{
	/* Units without the place of their code are looked through last. */
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < r->n; i++) {
			struct unit *u = &r->units[i];
			const struct block *b;
			struct block gap;
			int err;

			if (pass == 0 ? (!u->end || vaddr < u->start || vaddr >= u->end) : u->end)
				continue;
			err = index_unit(r, u);
			if (err)
				return err;
			b = find_block(u, vaddr);
			if (!b && find_gap(u, vaddr, &gap))
				b = &gap;
			if (b)
				return answer(r, u, b, vaddr, ret_place);
		}
	}
	return -ENOENT;
}

/* Narrows a range around vaddr, which is in no block of the unit, until it has none of them. */
static void leave_out_blocks(const struct unit *u, uint64_t vaddr, uint64_t *start, uint64_t *end)
{
	size_t after = search__first(u->n, k, u->blocks[k].start > vaddr);

	if (after < u->n)
		*end = MIN(*end, u->blocks[after].start);
	if (after)
		*start = MAX(*start, MAX(u->blocks[after - 1].below, u->blocks[after - 1].end));
}

bool dwarf_reader__nothing(const struct dwarf_reader *r, uint64_t vaddr, uint64_t *ret_start,
			   uint64_t *ret_end)
{
	uint64_t start = 0, end = UINT64_MAX;

	for (size_t i = 0; i < r->n; i++) {
		const struct unit *u = &r->units[i];

		if (u->end && vaddr >= u->end) {
			start = MAX(start, u->end);
		} else if (u->end && vaddr < u->start) {
			end = MIN(end, u->start);
		} else {
			if (u->end) {
				start = MAX(start, u->start);
				end = MIN(end, u->end);
			}
			leave_out_blocks(u, vaddr, &start, &end);
		}
	}
	/* blocks that were not all looked through may hold it */
	if (start > vaddr || vaddr >= end)
		return false;
	*ret_start = start;
	*ret_end = end;
	return true;
}

int dwarf_reader__new(void *data, size_t size, struct dwarf_reader **ret_reader)
{
	struct dwarf_reader *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	elf_version(EV_CURRENT);
	r->elf = elf_memory(data, size);
	r->dw = r->elf ? dwarf_begin_elf(r->elf, DWARF_C_READ, NULL) : NULL;
	err = r->dw ? list_units(r) : -ENOENT;
	if (err) {
		dwarf_reader__free(r);
		return err;
	}
	*ret_reader = r;
	return 0;
}

void dwarf_reader__free(struct dwarf_reader *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n; i++) {
		free(r->units[i].blocks);
		free(r->units[i].procs);
	}
	free(r->units);
	dwarf_end(r->dw);
	elf_end(r->elf);
	free(r);
}
