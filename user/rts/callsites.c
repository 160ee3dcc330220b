/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the sites of safe foreign calls by a byte pattern, checks each by decoding it, and
 * counts the votes. */
#include "callsites.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arch_priv.h"
#include "base/base.h"
#include "base/search.h"
#include "insn.h"
#include "layout.h"
#include "rts_find_priv.h"

#define MAX_RANGES 64
/* Scanned in one go; pages that have been read are released, so that a big file takes little
 * memory. */
#define CHUNK (8U << 20)
/*
 * A file of nothing but patterns would keep the decoder busy for minutes. Debian's pandoc, with 172
 * MB, takes 9000 instructions.
 */
#define MAX_DECODED (2U << 20)

struct scan {
	struct elf_file *elf;
	struct insn *insn;
	struct callsite *sites;
	size_t n, cap;
	uint32_t decoded;
};

/* suspendThread and resumeThread are C functions: their unwind rows begin at their first
 * instruction. */
static bool is_c_function(struct elf_file *elf, uint64_t vaddr)
{
	const struct elf_fde *fdes;
	size_t n;

	return elf__fdes(elf, &fdes, &n) == 0 && elf_fdes__starting_at(fdes, n, vaddr) < n;
}

static int consider(struct scan *s, const uint8_t *code, size_t len, uint64_t addr)
{
	struct insn_safe_call call;
	struct callsite *site;
	int err;

	err = insn__safe_call(s->insn, code, len, addr, &call);
	s->decoded += call.insns;
	if (err < 0 || !is_c_function(s->elf, call.suspend) || !is_c_function(s->elf, call.resume))
		return 0;
	/* Another such instruction before the same call is the same site. */
	if (s->n > 0 && s->sites[s->n - 1].site == call.site)
		return 0;
	err = ARRAY_RESERVE(s->sites, s->cap, s->n + 1, CALLSITES_MAX);
	if (err < 0)
		return err;
	site = &s->sites[s->n++];
	memset(site, 0, sizeof(*site));
	site->site = call.site;
	site->suspend = call.suspend;
	site->resume = call.resume;
	site->foreign = call.foreign.target;
	site->by_slot = call.foreign.kind == INSN_CALL_SLOT;
	site->interruptible = call.interruptible;
	site->current_tso = (uint16_t)call.current_tso;
	site->stackobj = (uint16_t)call.stackobj;
	site->sp = (uint16_t)call.sp;
	return 0;
}

static int scan_range(struct scan *s, const struct elf_code *range)
{
	uint64_t at = range->start;

	while (at < range->end && s->decoded < MAX_DECODED) {
		size_t len = MIN(range->end - at, (uint64_t)CHUNK), rest = range->end - at;
		const uint8_t *chunk = elf__at(s->elf, at, rest), *p, *end;
		int err = 0;

		if (!chunk)
			return 0;
		/* A pattern that begins in this chunk may end in the next. */
		end = chunk + MIN(len + RTS_ARCH_SAFE_CALL - 1, rest);
		for (p = rts_arch__find_safe_call(chunk, end);
		     p != end && err == 0 && s->decoded < MAX_DECODED;
		     p = rts_arch__find_safe_call(p + 1, end)) {
			size_t before = (size_t)(p - chunk);

			err = consider(s, p, rest - before, at + before);
		}
		if (err < 0)
			return err;
		elf__done_with(s->elf, at, len);
		at += len;
	}
	return 0;
}

static int by_pair(const void *a, const void *b)
{
	const struct callsite *x = a, *y = b;

	return CMP(x->suspend, y->suspend) ?: CMP(x->resume, y->resume) ?: CMP(x->site, y->site);
}

static bool same_pair(const struct callsite *a, const struct callsite *b)
{
	return a->suspend == b->suspend && a->resume == b->resume;
}

bool callsites__clear(uint32_t votes, uint32_t runner_up)
{
	return votes >= CALLSITES_MIN_VOTES && votes / 4 >= runner_up;
}

static int by_offsets(const void *a, const void *b)
{
	const struct callsite *x = a, *y = b;

	return CMP(x->current_tso, y->current_tso) ?: CMP(x->stackobj, y->stackobj) ?: CMP(x->sp, y->sp);
}

static void count_offsets(struct callsites *c)
{
	size_t start = 0;

	qsort(c->sites, c->n, sizeof(*c->sites), by_offsets);
	for (size_t i = 1; i <= c->n; i++) {
		const struct callsite *first = &c->sites[start];

		if (i < c->n && by_offsets(first, &c->sites[i]) == 0)
			continue;
		if (i - start > c->offset_votes) {
			c->offset_votes = (uint32_t)(i - start);
			c->offsets.current_tso = first->current_tso;
			c->offsets.stackobj = first->stackobj;
			c->offsets.sp = first->sp;
		}
		start = i;
	}
}

/* Keeps the sites of the pair that most sites call. */
static void elect(struct callsites *c)
{
	size_t start = 0, best = 0;

	qsort(c->sites, c->n, sizeof(*c->sites), by_pair);
	for (size_t i = 1; i <= c->n; i++) {
		uint32_t votes = (uint32_t)(i - start);

		if (i < c->n && same_pair(&c->sites[start], &c->sites[i]))
			continue;
		if (votes > c->votes) {
			c->runner_up = c->votes;
			c->votes = votes;
			best = start;
		} else if (votes > c->runner_up) {
			c->runner_up = votes;
		}
		start = i;
	}
	if (callsites__clear(c->votes, c->runner_up)) {
		c->suspend = c->sites[best].suspend;
		c->resume = c->sites[best].resume;
		memmove(c->sites, c->sites + best, c->votes * sizeof(*c->sites));
		c->n = c->votes;
		count_offsets(c);
		qsort(c->sites, c->n, sizeof(*c->sites), by_pair);
	} else {
		c->n = 0;
	}
}

int callsites__scan(struct elf_file *elf, struct callsites *ret_sites)
{
	struct elf_code ranges[MAX_RANGES];
	struct scan s = {.elf = elf};
	struct callsites c = {0};
	size_t n;
	int err;

	err = insn__new(&s.insn);
	if (err < 0)
		return err;
	n = elf__code_ranges(elf, ranges, MAX_RANGES);
	for (size_t i = 0; i < n && err == 0; i++)
		err = scan_range(&s, &ranges[i]);
	insn__free(s.insn);
	/* If there was no room for all sites, those that were kept still vote. */
	if (err < 0 && err != -E2BIG) {
		free(s.sites);
		return err;
	}
	if (s.n == 0)
		return -ENOENT;
	c.sites = s.sites;
	c.n = s.n;
	elect(&c);
	*ret_sites = c;
	return 0;
}

void callsites__free(struct callsites *sites)
{
	if (!sites)
		return;
	free(sites->sites);
	memset(sites, 0, sizeof(*sites));
}

const struct callsite *callsites__at(const struct callsites *sites, uint64_t site)
{
	size_t at = search__first(sites->n, i, sites->sites[i].site >= site);

	return at < sites->n && sites->sites[at].site == site ? &sites->sites[at] : NULL;
}

/* True if the table has this version's offsets; if not, those in the code are needed too. */
static bool is_known(const struct rts *rts)
{
	struct layout layout;
	bool known = false;

	return layout__find(rts->version, rts->threaded, rts->profiled, LAYOUT_CLK, &layout,
			    &known) == 0 &&
	       known;
}

/* True if the code itself has suspendThread and resumeThread where the debug file has them. */
static bool code_confirms(const struct rts *rts)
{
	const struct callsites *c = &rts->callsites;
	struct elf_file *elf = rts->image->elf;

	if (c->suspend)
		return rts->suspend.addr == image__addr(rts->image, c->suspend) &&
		       rts->resume.addr == image__addr(rts->image, c->resume);
	return is_c_function(elf, rts->suspend.addr - rts->image->bias) &&
	       is_c_function(elf, rts->resume.addr - rts->image->bias);
}

/*
 * A debug file may be another build's (--force, a hostile .gnu_debuglink), and a probe in the
 * middle of an instruction would crash the target.
 */
static void forget_debugfile(struct rts *rts)
{
	struct rts_place *places[] = {
		&rts->suspend,	    &rts->resume,	  &rts->tick,	  &rts->gc_start,
		&rts->gc_end,	    &rts->stgrun,	  &rts->main_cap, &rts->all_tasks,
		&rts->capabilities, &rts->n_capabilities, &rts->gc_sync,  &rts->stats,
		&rts->prof_tick,
	};

	log_warn("%s: its debug file places suspendThread and resumeThread where the code has "
		 "something else; using only its names",
		 elf__name(rts->image->elf));
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (places[i]->found == FOUND_DEBUGFILE)
			memset(places[i], 0, sizeof(*places[i]));
	rts->tls_known = false;
}

static void log_unclear(const struct rts *rts)
{
	log_warn("%s: no clear majority among its safe calls (%u votes, the next has %u): they do "
		 "not show where suspendThread and resumeThread are",
		 elf__name(rts->image->elf), rts->callsites.votes, rts->callsites.runner_up);
}

void rts_callsites__find(struct rts *rts)
{
	struct callsites *c = &rts->callsites;
	bool by_debug = rts->suspend.found == FOUND_DEBUGFILE;
	bool wanted = !rts->suspend.addr || !rts->resume.addr;
	bool scanned;

	if (!wanted && !by_debug && is_known(rts))
		return;
	scanned = callsites__scan(rts->image->elf, c) == 0;
	if (by_debug && !code_confirms(rts)) {
		forget_debugfile(rts);
		wanted = true;
	}
	if (!scanned || !wanted)
		return;
	if (!c->suspend) {
		log_unclear(rts);
		return;
	}
	rts->suspend.addr = image__addr(rts->image, c->suspend);
	rts->resume.addr = image__addr(rts->image, c->resume);
	rts->suspend.found = rts->resume.found = FOUND_CALLSITES;
}
