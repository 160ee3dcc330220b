/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "balance.h"

/* The most parts that are cut out of a state's slices, which bounds the growth of a lane's file. */
#define MAX_CUTS 512

/* Exact slices are spared if the others are at least this many times as long as what is to be
 * given. */
#define SPARE 2

void balance__begin(struct balance *b, const struct pic_lane *lane, uint64_t grain_ns)
{
	struct walk walk = {.lane = lane, .grain_ns = grain_ns};
	uint64_t exact[LANE_STATES] = {0};
	struct pic_slice slice;

	*b = (struct balance){.kind = lane->kind};
	while (walk__next(&walk, &slice)) {
		uint64_t ns = slice.end_ns - slice.start_ns;

		*(slice.exact ? &exact[slice.state] : &b->of[slice.state].drawn) += ns;
	}
	for (unsigned s = 0; s < LANE_STATES; s++) {
		struct balance_state *state = &b->of[s];
		uint64_t drawn = state->drawn + exact[s], want = lane->states_ns[s];

		state->over = drawn > want ? drawn - want : 0;
		state->under = drawn < want ? want - drawn : 0;
		state->from_exact = state->over > state->drawn / SPARE;
		if (state->from_exact)
			state->drawn = drawn;
	}
}

/* How much of a slice is drawn as another state: in proportion, but not in tiny pieces. */
static uint64_t to_give(struct balance_state *state, uint64_t ns)
{
	uint64_t due, give;

	state->seen += ns;
	due = (uint64_t)((unsigned __int128)state->over * state->seen / state->drawn);
	if (due <= state->given)
		return 0;
	give = MAX(due - state->given, state->over / MAX_CUTS + 1);
	return MIN(MIN(give, state->over - state->given), ns);
}

/* The state that lacks the most time. */
static unsigned taker(const struct balance *b)
{
	unsigned best = 0;

	for (unsigned s = 1; s < LANE_STATES; s++)
		if (b->of[s].under > b->of[best].under)
			best = s;
	return best;
}

unsigned balance__split(struct balance *b, const struct pic_slice *slice,
			struct pic_slice ret_parts[BALANCE_PARTS])
{
	struct balance_state *from = &b->of[slice->state];
	uint64_t give = 0, end = slice->end_ns;
	unsigned n = 0;

	if (from->over && (!slice->exact || from->from_exact))
		give = to_give(from, end - slice->start_ns);
	ret_parts[n] = *slice;
	ret_parts[n++].end_ns = end - give;
	/* each round satisfies one state or is the last */
	while (give && n < BALANCE_PARTS) {
		unsigned to = taker(b);
		uint64_t ns = MIN(give, b->of[to].under);
		struct pic_slice *part = &ret_parts[n];

		if (!ns)
			break;
		*part = *slice;
		part->start_ns = end - give;
		part->end_ns = part->start_ns + ns;
		part->state = (uint8_t)to;
		part->tso = part->stack = part->samples = part->exact = 0;
		if (!state__on_cpu(b->kind, to))
			part->cap = NO_CAP;
		b->of[to].under -= ns;
		from->given += ns;
		give -= ns;
		n++;
	}
	/* what no state lacks goes to the last part */
	ret_parts[n - 1].end_ns = end;
	return n;
}
