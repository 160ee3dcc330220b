/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * held: which capability a thread holds. Samples and stays off the CPU say it; what is between two
 * of them, without the capability given away, is on the same one.
 */
#include "private.h"

uint16_t held__cap(enum tl_state state, const struct ev *ev)
{
	switch (state) {
	case ST_HASKELL:
	case ST_UNSAFE_CALL_CPU:
	case ST_HASKELL_BLOCKED:
	case ST_UNSAFE_CALL_BLOCKED:
		if (ev && ev->cap != TL_NO_CAP)
			return ev->cap;
		/* What it gave away next, or had last, is what it held. */
		return ev && ev->left != TL_NO_CAP ? ev->left : TL_SOME_CAP;
	case ST_GC_WORK:
		return ev ? ev->cap : TL_SOME_CAP;
	case ST_GC_WAIT:
	case ST_RTS:
	case ST_RTS_BLOCKED:
	case ST_PREEMPTED:
		return ev ? ev->cap : TL_NO_CAP;
	default:
		return TL_NO_CAP;
	}
}

static bool same_face(const struct tl_stretch *a, const struct tl_stretch *b)
{
	return a->state == b->state && a->stack == b->stack && a->cap == b->cap && a->tso == b->tso;
}

/* Of neighbours that hold one without a break: what the last one, else the next one is known by. */
void held__resolve(const struct target_state *tg, struct tl_stretch *v, size_t *n, uint16_t before,
		   uint16_t *known)
{
	uint16_t only = tg->pub.capabilities == 1 ? 0 : TL_NO_CAP, near = before;
	size_t kept = 0;

	for (size_t i = 0; i < *n; i++) {
		if (v[i].cap == TL_SOME_CAP && near != TL_NO_CAP)
			v[i].cap = near;
		near = v[i].cap < TL_MAX_CAPS ? v[i].cap : TL_NO_CAP;
	}
	near = TL_NO_CAP;
	for (size_t i = *n; i-- > 0;) {
		if (v[i].cap == TL_SOME_CAP && near != TL_NO_CAP)
			v[i].cap = near;
		near = v[i].cap < TL_MAX_CAPS ? v[i].cap : TL_NO_CAP;
	}
	near = *known < TL_MAX_CAPS ? *known : only;
	for (size_t i = 0; i < *n; i++) {
		/* A thread comes back to the capability that it had before, if it can. */
		if (v[i].cap == TL_SOME_CAP)
			v[i].cap = near;
		else if (v[i].cap < TL_MAX_CAPS)
			near = v[i].cap;
	}
	*known = near;
	for (size_t i = 0; i < *n; i++) {
		if (kept && same_face(&v[kept - 1], &v[i])) {
			v[kept - 1].end_ns = v[i].end_ns;
			v[kept - 1].samples += v[i].samples;
			v[kept - 1].exact = v[kept - 1].exact && v[i].exact;
		} else {
			v[kept++] = v[i];
		}
	}
	*n = kept;
}
