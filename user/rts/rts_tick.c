/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the function that the timer calls in a non-threaded runtime without symbols. In such a
 * runtime the timer has no thread, by whose name ticks are otherwise recognised, but a signal
 * (SIGVTALRM by timer_create(); rts/posix/Itimer.c, in 9.0 and before). initTicker creates the
 * timer and prints "timer_create" if that fails; only initTimer (rts/Timer.c) calls it, and passes
 * it the address of a single function: handle_tick.
 */
#include <string.h>

#include "rts_code_priv.h"
#include "rts_find_priv.h"

#define FAILURE "timer_create"
/* initTimer has 60 bytes. */
#define MAX_INIT_TIMER 512

/* The functions whose address initTimer takes. */
struct taken {
	const struct code *c;
	size_t function, n;
};

static bool on_address(void *ctx, uint64_t target)
{
	struct taken *t = ctx;
	size_t i = code__starts_at(t->c, target);

	if (i != t->c->n && i != t->function) {
		t->function = i;
		t->n++;
	}
	return true;
}

void rts_tick__find(struct rts *rts)
{
	struct code c = {.elf = rts->image->elf};
	size_t init_ticker, init_timer, len;
	uint64_t failure;
	const uint8_t *code;
	struct taken taken;

	if (rts->tick.addr || rts->threaded || !rts->way[0])
		return;
	failure = rts_strings__ending_in(c.elf, FAILURE, sizeof(FAILURE));
	if (!failure || elf__fdes(c.elf, &c.fdes, &c.n) < 0 || !c.n)
		return;
	init_ticker = code__user_of(&c, failure);
	init_timer = init_ticker == c.n ? c.n : code__caller_of(&c, c.fdes[init_ticker].start);
	code = init_timer == c.n ? NULL : code__bytes(&c, init_timer, &len);
	if (!code || len > MAX_INIT_TIMER)
		return;
	taken = (struct taken){.c = &c, .function = c.n};
	rts_arch__addresses(code, len, c.fdes[init_timer].start, c.fdes[0].start,
			    c.fdes[c.n - 1].start, on_address, &taken);
	if (taken.n != 1)
		return;
	rts->tick.addr = image__addr(rts->image, c.fdes[taken.function].start);
	rts->tick.found = FOUND_STRINGS;
}
