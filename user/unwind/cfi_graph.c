/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cfi_graph: follows code from function entries. Each instruction is a node; it is visited again
 * only by a path with a better claim. Claims only improve, so it terminates; a limit on all visits
 * together ends it earlier.
 */
#include "cfi_graph_priv.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "arch_priv.h"
#include "base/base.h"
#include "cfi_calls_priv.h"
#include "cfi_node_priv.h"
#include "wire.h"

#define MAX_VISITS  (2U * CFI_GRAPH_MAX_INSNS)
#define MAX_DEPTH   4096U /* words */
#define MAX_TABLE   1024U /* targets of one indirect jump */
#define MAX_WORK    (4U * CFI_GRAPH_MAX_INSNS)
#define MAX_LOADS   (1U << 18)
#define MAX_ROUNDS  16
#define MAX_INSNS   8192 /* of a function: more must be data taken for code */
#define HASH_SLOTS  (2U * CFI_GRAPH_MAX_INSNS)
#define MAX_CALLS   UINT16_MAX /* passed on the way to an instruction */
#define NEAR	    65536ULL   /* no function is longer */
#define CODE_RANGES 64
/* This much C code without rows shows that the file was compiled that way: then it is looked for
 * everywhere. */
#define ENOUGH_BYTES 256
/* … as it is in a small program without that condition. */
#define LITTLE_CODE (8ULL << 20)

static const struct graph_state entry_state = {.depth = 1};

struct cfi_graph {
	struct elf_file *elf;
	struct cfi_arch *arch;
	const struct elf_fde *fdes;
	size_t n_fdes;
	uint64_t base;
	uint64_t gap_start, gap_end; /* last range found to be code without rows */
	struct graph_node *nodes;
	size_t n, cap;
	uint32_t *slots; /* hash table by address: node number + 1 */
	uint32_t *work;
	size_t n_work, cap_work;
	/* addresses loaded by code may be functions: examined for believed code */
	struct load {
		uint32_t by;
		uint64_t target;
	} * loads;
	size_t n_loads, cap_loads;
	bool haskell_due; /* functions called by Haskell code have not been added yet */
	size_t visits;
	int err;
};

int cfi_graph__new(struct elf_file *elf, const struct elf_fde *fdes, size_t n_fdes, uint64_t base,
		   struct cfi_graph **ret_graph)
{
	struct cfi_graph *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->elf = elf;
	f->base = base;
	f->slots = calloc(HASH_SLOTS, sizeof(*f->slots));
	if (!f->slots || cfi_arch__new(&f->arch) < 0) {
		cfi_graph__free(f);
		return -ENOMEM;
	}
	f->fdes = fdes;
	f->n_fdes = n_fdes;
	*ret_graph = f;
	return 0;
}

void cfi_graph__free(struct cfi_graph *f)
{
	if (!f)
		return;
	cfi_arch__free(f->arch);
	free(f->slots);
	free(f->nodes);
	free(f->work);
	free(f->loads);
	free(f);
}

/* ── nodes ───────────────────────────────────────────────────────────────────────────────── */

/* Whether vaddr is code without rows. */
static bool is_free(struct cfi_graph *f, uint64_t vaddr)
{
	size_t lo = 0, hi = f->n_fdes;

	if (vaddr >= f->gap_start && vaddr < f->gap_end)
		return true;
	if (vaddr < f->base || vaddr - f->base >= UINT32_MAX || !elf__in_code(f->elf, vaddr, 1))
		return false;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (f->fdes[mid].start <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo && vaddr < f->fdes[lo - 1].end)
		return false;
	f->gap_start = vaddr;
	f->gap_end = vaddr + 1;
	/* up to the end of the page, if that is code as well */
	f->gap_end = (vaddr | 4095) + 1;
	if (lo < f->n_fdes)
		f->gap_end = MIN(f->gap_end, f->fdes[lo].start);
	if (!elf__in_code(f->elf, vaddr, f->gap_end - vaddr))
		f->gap_end = vaddr + 1;
	return true;
}

static uint32_t *slot_of(const struct cfi_graph *f, uint32_t at)
{
	uint32_t i = at * 2654435761U;

	for (;; i++) {
		uint32_t *slot = &f->slots[i & (HASH_SLOTS - 1)];

		if (!*slot || f->nodes[*slot - 1].at == at)
			return slot;
	}
}

static uint32_t find(const struct cfi_graph *f, uint64_t vaddr)
{
	/* an empty slot gives CFI_NO_NODE */
	return *slot_of(f, (uint32_t)(vaddr - f->base)) - 1;
}

/* CFI_NO_NODE: too many nodes, or no memory. */
static uint32_t make_node(struct cfi_graph *f, uint64_t vaddr)
{
	uint32_t at = (uint32_t)(vaddr - f->base);
	int err;

	if (f->n == CFI_GRAPH_MAX_INSNS)
		return CFI_NO_NODE;
	err = ARRAY_RESERVE(f->nodes, f->cap, f->n + 1, CFI_GRAPH_MAX_INSNS);
	if (err) {
		f->err = err;
		return CFI_NO_NODE;
	}
	*slot_of(f, at) = (uint32_t)f->n + 1;
	f->nodes[f->n] = (struct graph_node){.at = at, .tail = CFI_NO_NODE};
	return (uint32_t)f->n++;
}

static void push(struct cfi_graph *f, uint32_t node)
{
	int err = ARRAY_RESERVE(f->work, f->cap_work, f->n_work + 1, MAX_WORK);

	if (err == -ENOMEM)
		f->err = err;
	else if (!err)
		f->work[f->n_work++] = node;
}

/* The entry from which a node was reached. Terminates, since each call on the way was itself
 * reached through fewer calls. */
static uint32_t root_of(const struct cfi_graph *f, uint32_t origin)
{
	while (origin & 1)
		origin = f->nodes[origin / 2].origin;
	return origin / 2;
}

static bool same(const struct graph_state *a, const struct graph_state *b)
{
	return a->depth == b->depth && a->slot == b->slot && a->fp == b->fp;
}

/*
 * A path reaches an instruction. Returns the node if it must be followed from here. CFI_NO_NODE: a
 * path with at least as good a claim has been there, or the code has rows.
 */
static uint32_t reach(struct cfi_graph *f, uint64_t vaddr, const struct graph_state *state,
		      uint32_t calls, uint32_t origin)
{
	struct graph_node *node;
	uint32_t n;

	if (!is_free(f, vaddr) || calls >= MAX_CALLS)
		return CFI_NO_NODE;
	n = find(f, vaddr);
	if (n == CFI_NO_NODE) {
		n = make_node(f, vaddr);
		if (n == CFI_NO_NODE)
			return CFI_NO_NODE;
	} else {
		uint32_t theirs = root_of(f, f->nodes[n].origin), ours = root_of(f, origin);

		if (theirs != ours && same(&f->nodes[n].state, state))
			f->nodes[ours].tail = theirs;
		if (f->nodes[n].calls <= calls)
			return CFI_NO_NODE;
	}
	node = &f->nodes[n];
	node->state = *state;
	node->calls = (uint16_t)calls;
	node->origin = origin;
	node->end = END_NONE;
	return n;
}

int cfi_graph__add(struct cfi_graph *f, uint64_t vaddr)
{
	uint32_t n;

	if (!is_free(f, vaddr))
		return 0;
	n = find(f, vaddr);
	if (n == CFI_NO_NODE)
		n = make_node(f, vaddr);
	else if (f->nodes[n].calls == 0 && f->nodes[n].origin == CFI_BY_ENTRY(n))
		return 0;
	if (n == CFI_NO_NODE)
		return f->err;
	f->nodes[n].state = entry_state;
	f->nodes[n].calls = 0;
	f->nodes[n].origin = CFI_BY_ENTRY(n);
	f->nodes[n].end = END_NONE;
	push(f, n);
	return f->err;
}

static int on_call(void *ctx, uint64_t target, bool add)
{
	struct cfi_graph *f = ctx;
	int err = add ? cfi_graph__add(f, target) : 0;

	return err ? err : is_free(f, target);
}

int cfi_graph__add_called(struct cfi_graph *f)
{
	const struct cfi_calls calls = {f->elf, f->fdes, f->n_fdes, f->arch, on_call, f};

	f->haskell_due = true;
	return cfi_calls__of_c(&calls);
}

static void add_haskell_calls(struct cfi_graph *f)
{
	const struct cfi_calls calls = {f->elf, f->fdes, f->n_fdes, f->arch, on_call, f};

	f->haskell_due = false;
	f->err = cfi_calls__of_haskell(&calls);
}

/* ── what an instruction does ────────────────────────────────────────────────────────────── */

static bool pop(struct graph_state *s, bool fp)
{
	if (!s->depth)
		return !fp;
	/* refuse to pop the return address, the caller's frame pointer into another register, or
	 * another word into an unsaved frame pointer */
	if (s->depth == 1 || (s->slot == s->depth && !fp) || (fp && !s->slot))
		return false;
	if (s->slot == s->depth)
		s->slot = 0;
	if (fp)
		s->fp = 0;
	s->depth--;
	return true;
}

static bool set_depth(struct graph_state *s, int64_t depth)
{
	if (depth < 1 || depth > (int64_t)MAX_DEPTH || depth < s->slot)
		return false;
	s->depth = (uint16_t)depth;
	return true;
}

/* Applies the instruction's effect. False: the code after it cannot be followed. */
static bool apply(const struct cfi_insn *i, struct graph_state *s)
{
	int64_t words = i->bytes / 8;

	switch (i->effect) {
	case CFI_EFFECT_NONE:
		return true;
	case CFI_EFFECT_PUSH:
		if (s->depth && !set_depth(s, s->depth + 1))
			return false;
		if (i->fp && !s->slot)
			s->slot = s->depth;
		return true;
	case CFI_EFFECT_POP:
		return pop(s, i->fp);
	case CFI_EFFECT_MOVE:
		return !s->depth || (i->bytes % 8 == 0 && set_depth(s, s->depth - words));
	case CFI_EFFECT_FP:
		s->fp = 0;
		/* without either pointer no rule is possible */
		return s->slot && s->depth;
	case CFI_EFFECT_FP_FROM_SP:
		if (!s->slot || !s->depth)
			return false;
		/* the address of a variable is not a frame */
		s->fp = i->bytes % 8 || s->depth - words < 1 ? 0 : (uint16_t)(s->depth - words);
		return true;
	case CFI_EFFECT_SP_FROM_FP:
		return s->fp && i->bytes % 8 == 0 && set_depth(s, s->fp - words);
	case CFI_EFFECT_LEAVE:
		if (!s->fp || s->fp != s->slot || s->fp < 2)
			return false;
		*s = (struct graph_state){.depth = (uint16_t)(s->fp - 1)};
		return true;
	case CFI_EFFECT_LOST:
		s->depth = 0;
		return s->fp != 0;
	}
	return false;
}

/* ── following ───────────────────────────────────────────────────────────────────────────── */

/* A straight-line sequence of instructions. */
struct line {
	struct graph_state state;
	uint32_t calls, origin;
	uint64_t at;
	uint64_t loaded;	  /* the last address that was loaded; 0: none */
	uint32_t compared, bound; /* the last comparison's constant + 1; a switch's bound */
};

static void go_to(struct cfi_graph *f, const struct line *l, uint64_t target)
{
	uint32_t n = reach(f, target, &l->state, l->calls, l->origin);

	if (n != CFI_NO_NODE)
		push(f, n);
}

/*
 * Follows the targets in a table of addresses, or of offsets relative to the table (a compiled
 * switch). The table ends at the bound that the switch compares with, if known, and at the first
 * target that is not nearby code without rows.
 */
static void follow_table(struct cfi_graph *f, const struct line *l, uint64_t table, bool relative)
{
	uint64_t n = l->bound ? MIN(l->bound, MAX_TABLE) : MAX_TABLE;

	for (uint64_t k = 0; k < n; k++) {
		const uint8_t *p =
			elf__at(f->elf, table + (relative ? 4 : 8) * k, relative ? 4 : 8);
		uint64_t target = 0;
		int32_t offset;

		if (!p)
			return;
		if (relative) {
			memcpy(&offset, p, sizeof(offset));
			target = table + (uint64_t)(int64_t)offset;
		} else {
			memcpy(&target, p, sizeof(target));
		}
		if (target - l->at + NEAR > 2 * NEAR || !is_free(f, target))
			return;
		go_to(f, l, target);
	}
}

/* False: the line ends. */
static bool follow_jump(struct cfi_graph *f, struct line *l, uint32_t n, const struct cfi_insn *i)
{
	if (i->direct) {
		/* a jump to code with rows, in the state of the entry, is a tail call of C */
		if (!is_free(f, i->target) && same(&l->state, &entry_state) &&
		    elf__in_code(f->elf, i->target, 1))
			f->nodes[n].end = END_RETURN;
		go_to(f, l, i->target);
	} else if (i->table) {
		follow_table(f, l, i->table, false);
	} else if (l->loaded && !same(&l->state, &entry_state)) {
		follow_table(f, l, l->loaded, true);
	}
	l->bound = i->above ? l->compared : 0;
	return i->conditional;
}

static void note_load(struct cfi_graph *f, struct line *l, uint32_t n, uint64_t target)
{
	int err;

	l->loaded = target;
	if (!is_free(f, target))
		return;
	err = ARRAY_RESERVE(f->loads, f->cap_loads, f->n_loads + 1, MAX_LOADS);
	if (err == -ENOMEM)
		f->err = err;
	else if (!err)
		f->loads[f->n_loads++] = (struct load){.by = n, .target = target};
}

/* Follows one instruction; false: the line ends. */
static bool follow(struct cfi_graph *f, struct line *l, uint32_t n)
{
	struct cfi_insn i;
	const uint8_t *code;
	size_t len = 16;

	while (len && !(code = elf__at(f->elf, l->at, len)))
		len--;
	/* C code does not use its caller's frame pointer; in Haskell code that register is Sp */
	if (!len || !cfi_arch__decode(f->arch, code, len, l->at, &i) ||
	    (i.fp_base && !l->state.slot)) {
		f->nodes[n].end = END_ODD;
		return false;
	}
	f->nodes[n].size = (uint8_t)i.size;
	if (i.loads)
		note_load(f, l, n, i.loads);
	if (i.compares)
		l->compared = i.compares;
	switch (i.flow) {
	case CFI_FLOW_RET:
		f->nodes[n].end = same(&l->state, &entry_state) ? END_RETURN : END_ODD;
		return false;
	case CFI_FLOW_STOP:
		return false;
	case CFI_FLOW_JUMP:
		if (!follow_jump(f, l, n, &i))
			return false;
		break;
	case CFI_FLOW_ON:
		if (i.call && i.direct)
			cfi_graph__add(f, i.target);
		if (i.call) {
			l->bound = 0;
			l->calls++;
			l->origin = CFI_BY_CALL(n);
		}
		if (!apply(&i, &l->state)) {
			if (i.effect == CFI_EFFECT_POP ||
			    (i.effect == CFI_EFFECT_FP && !l->state.slot))
				f->nodes[n].end = END_ODD;
			return false;
		}
		break;
	}
	l->at += i.size;
	return true;
}

static void follow_line(struct cfi_graph *f, uint32_t n)
{
	struct line l = {.state = f->nodes[n].state,
			 .calls = f->nodes[n].calls,
			 .origin = f->nodes[n].origin,
			 .at = f->base + f->nodes[n].at};
	uint32_t root = root_of(f, l.origin);

	while (n != CFI_NO_NODE && !f->err && f->visits++ < MAX_VISITS) {
		if (f->nodes[root].insns++ > MAX_INSNS)
			f->nodes[n].end = END_ODD;
		if (f->nodes[n].end || !follow(f, &l, n))
			break;
		n = reach(f, l.at, &l.state, l.calls, l.origin);
	}
}

static uint32_t rule_of(const struct graph_state *s)
{
	uint32_t bp = s->slot <= WIRE_CFI_MAX_BP ? s->slot : WIRE_CFI_BP_UNKNOWN;

	return (s->depth ? WIRE_CFI_RSP | (uint32_t)s->depth << 4
			 : WIRE_CFI_RBP | (uint32_t)s->fp << 4) |
	       bp << 20;
}

/* Adds addresses loaded by believed code, which may be functions. */
static void add_loads(struct cfi_graph *f)
{
	size_t kept = 0;

	for (size_t i = 0; i < f->n_loads && !f->err; i++) {
		struct load *load = &f->loads[i];

		if (find(f, load->target) != CFI_NO_NODE)
			continue;
		if (cfi_judge__believes(f->nodes, f->nodes[load->by].origin))
			cfi_graph__add(f, load->target);
		else
			f->loads[kept++] = *load;
	}
	f->n_loads = kept;
}

static bool is_enough(const struct cfi_graph *f)
{
	struct elf_code ranges[CODE_RANGES];
	size_t n = MIN(elf__code_ranges(f->elf, ranges, CODE_RANGES), (size_t)CODE_RANGES);
	uint64_t code = 0;
	size_t bytes = 0;

	for (size_t i = 0; i < n; i++)
		code += ranges[i].end - ranges[i].start;
	if (code <= LITTLE_CODE)
		return true;
	for (size_t i = 0; i < f->n && bytes < ENOUGH_BYTES; i++)
		if (cfi_judge__believes(f->nodes, f->nodes[i].origin))
			bytes += f->nodes[i].size;
	return bytes >= ENOUGH_BYTES;
}

/* Follows what was added; functions that it is found to call or load are followed in the next
 * round. */
static int follow_all(struct cfi_graph *f)
{
	for (int round = 0; round < MAX_ROUNDS && !f->err; round++) {
		while (!f->err && f->n_work)
			follow_line(f, f->work[--f->n_work]);
		cfi_judge(f->nodes, f->n);
		add_loads(f);
		/* Haskell code is much larger, and takes time to search */
		if (!f->n_work && f->haskell_due && is_enough(f)) {
			add_haskell_calls(f);
		}
		if (!f->n_work)
			break;
	}
	return f->err ? f->err : cfi_judge__keep(f->nodes, &f->n);
}

int cfi_graph__run(struct cfi_graph *f, cfi_graph_fn fn, void *ctx)
{
	uint64_t start = 0, end = 0;
	uint32_t rule = WIRE_CFI_NONE;

	f->err = follow_all(f);
	for (size_t i = 0; !f->err && i < f->n; i++) {
		const struct graph_node *node = &f->nodes[i];
		uint64_t at = f->base + node->at;

		/* overlaps another instruction */
		if (at < end)
			continue;
		if (at != end || rule_of(&node->state) != rule) {
			if (end > start)
				f->err = fn(ctx, start, end, rule);
			start = at;
			rule = rule_of(&node->state);
		}
		end = at + node->size;
	}
	if (!f->err && end > start)
		f->err = fn(ctx, start, end, rule);
	return f->err;
}
