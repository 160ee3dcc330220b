/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * held: which capability a thread holds. Samples and off-CPU intervals show it; what lies between
 * two of them, without the capability being given up, is on the same one.
 */
#include "lanes_priv.h"

uint16_t held__cap(enum thread_state state, const struct ev *ev)
{
	switch (state) {
	case ST_HASKELL:
	case ST_UNSAFE_CALL_CPU:
	case ST_HASKELL_BLOCKED:
	case ST_UNSAFE_CALL_BLOCKED:
		if (ev && ev->cap != NO_CAP)
			return ev->cap;
		/* It held the one that it gave away next, or had last. */
		return ev && ev->left != NO_CAP ? ev->left : SOME_CAP;
	case ST_GC_WORK:
		return ev ? ev->cap : SOME_CAP;
	case ST_GC_WAIT:
	case ST_RTS:
	case ST_RTS_BLOCKED:
	case ST_PREEMPTED:
		return ev ? ev->cap : NO_CAP;
	default:
		return NO_CAP;
	}
}

static bool is_known(uint16_t cap)
{
	return cap < MAX_CAPS;
}

/* Pieces that hold a capability without a break get the one known from the previous piece, else
 * from the next. */
void held__resolve(const struct seen *seen, struct piece *v, size_t n, uint16_t before,
		   uint16_t *known)
{
	uint16_t only = seen->pub->capabilities == 1 ? 0 : NO_CAP, near = before;

	for (size_t i = 0; i < n; i++) {
		if (v[i].s.cap == SOME_CAP && near != NO_CAP)
			v[i].s.cap = near;
		near = is_known(v[i].s.cap) ? v[i].s.cap : NO_CAP;
	}
	near = NO_CAP;
	for (size_t i = n; i-- > 0;) {
		if (v[i].s.cap == SOME_CAP && near != NO_CAP)
			v[i].s.cap = near;
		near = is_known(v[i].s.cap) ? v[i].s.cap : NO_CAP;
	}
	near = is_known(*known) ? *known : only;
	for (size_t i = 0; i < n; i++) {
		/* A thread returns to the capability that it had before, if it can. */
		if (v[i].s.cap == SOME_CAP)
			v[i].s.cap = near;
		else if (is_known(v[i].s.cap))
			near = v[i].s.cap;
	}
	*known = near;
}
