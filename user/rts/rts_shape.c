/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checks that the code at a symbol's address is that of the expected function. A symbol may be
 * forged, or of another build, and a probe in the middle of an instruction breaks every process
 * that maps the file. What is required of each function is in its source in all versions from 8.10
 * to 9.14, and cannot be optimised away.
 */
#include <string.h>

#include "base/base.h"
#include "insn.h"
#include "layout.h"
#include "rts_find_priv.h"

#define MAX_FUNCTION (64U << 10)
/* stat_startGCSync is 18 bytes long in optimised code. */
#define MAX_NOTE 128

struct shape {
	const struct elf_file *elf;
	/* what to look for */
	uint32_t disps[2];
	const char *string; /* the end of the string, with its NUL */
	size_t string_size;
	uint64_t callee;
	/* what was seen */
	bool disp, string_seen, branches;
	uint64_t first_call;
	uint32_t calls;
};

/* True if the string at vaddr is, or ends in, the one to look for. */
static bool is_string(const struct shape *s, uint64_t vaddr)
{
	const uint8_t *p = elf__at(s->elf, vaddr, s->string_size);
	size_t len = 0;

	for (; p && len < 256; len++, p = elf__at(s->elf, vaddr + len, s->string_size))
		if (memcmp(p, s->string, s->string_size) == 0)
			return true;
		else if (*p == '\0')
			return false;
	return false;
}

static bool see(void *ctx, const struct insn_seen *seen)
{
	struct shape *s = ctx;

	s->disp |= seen->has_disp && (seen->disp == s->disps[0] || seen->disp == s->disps[1]);
	s->branches |= seen->branch;
	if (seen->refers && s->string && !s->string_seen)
		s->string_seen = is_string(s, seen->refers);
	if (seen->call && s->calls++ == 0)
		s->first_call = seen->target;
	return true;
}

/* Decodes the function that begins at the place; false: no function begins there. */
static bool look(struct insn *insn, const struct rts *rts, const struct rts_place *place,
		 struct shape *shape, size_t *ret_len)
{
	struct elf_file *elf = rts->image->elf;
	uint64_t vaddr = place->addr - rts->image->bias;
	struct elf_fde fde;
	const uint8_t *code;

	if (!elf__find_fde(elf, vaddr, &fde) || fde.start != vaddr ||
	    fde.end - vaddr > MAX_FUNCTION)
		return false;
	code = elf__at(elf, vaddr, fde.end - vaddr);
	if (!code)
		return false;
	shape->elf = elf;
	insn__each(insn, code, fde.end - vaddr, vaddr, see, shape);
	*ret_len = fde.end - vaddr;
	return true;
}

/* rts/Schedule.c: both functions access the capability's rCurrentTSO, to suspend or resume its
 * thread. */
static bool moves_thread(struct insn *insn, const struct rts *rts, const struct rts_place *place)
{
	struct shape s = {0};
	struct layout layout;
	bool known;
	size_t len;

	if (layout__find(rts->version, rts->threaded, rts->profiled, LAYOUT_CLK, &layout, &known) <
	    0)
		return false;
	s.disps[0] = layout.wire.cap_current_tso;
	s.disps[1] = layout.wire.cap_current_tso - layout.wire.cap_r;
	return look(insn, rts, place, &s, &len) && s.disp;
}

/* rts/Stats.c: rings the bell of `+RTS -B`. */
static bool rings(struct insn *insn, const struct rts *rts, const struct rts_place *place)
{
	struct shape s = {.string = "\a", .string_size = 2};
	size_t len;

	return look(insn, rts, place, &s, &len) && s.string_seen;
}

/* rts/Stats.c: prints the line of `+RTS -S`. */
static bool prints_line(struct insn *insn, const struct rts *rts, const struct rts_place *place)
{
	struct shape s = {.string = "(Gen: %2d)\n", .string_size = sizeof("(Gen: %2d)\n")};
	size_t len;

	return look(insn, rts, place, &s, &len) && s.string_seen;
}

/* rts/Stats.c: stores the time, and does nothing else. */
static bool notes(struct insn *insn, const struct rts *rts, const struct rts_place *place)
{
	struct shape s = {0};
	size_t len;

	return look(insn, rts, place, &s, &len) && s.calls == 1 && !s.branches && len <= MAX_NOTE;
}

/* rts/Timer.c: its first call is of handleProfTick. */
static bool ticks(struct insn *insn, const struct rts *rts, const struct rts_place *place)
{
	struct shape s = {0};
	size_t len;

	return look(insn, rts, place, &s, &len) && rts->prof_tick.addr &&
	       s.first_call == rts->prof_tick.addr - rts->image->bias;
}

void rts_shape__check(struct rts *rts)
{
	const struct {
		struct rts_place *place;
		const char *name;
		bool (*fits)(struct insn *insn, const struct rts *rts,
			     const struct rts_place *place);
	} all[] = {
		{&rts->suspend, "suspendThread", moves_thread},
		{&rts->resume, "resumeThread", moves_thread},
		{&rts->tick, "handle_tick", ticks},
		{&rts->gc_sync, "stat_startGCSync", notes},
		{&rts->gc_start, "stat_startGC", rings},
		{&rts->gc_end, "stat_endGC", prints_line},
	};
	struct insn *insn;

	if (insn__new(&insn) < 0)
		insn = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		struct rts_place *p = all[i].place;

		if (!p->addr || (insn && all[i].fits(insn, rts, p)))
			continue;
		log_warn("%s: %s is not where its symbol places it (%s): no probe is placed there",
			 elf__name(rts->image->elf), all[i].name, rts_found__name(p->found));
		memset(p, 0, sizeof(*p));
	}
	insn__free(insn);
}
