/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which Haskell thread an OS thread runs, sent when that changes: the label of the next one, and
 * why the previous one stopped; and what those that stopped wait for later. Only if Haskell threads
 * are requested. Between two samples, safe calls and switches an OS thread may run other Haskell
 * threads unseen.
 */
#ifndef SAFESCOPED_TSO_BPF_H
#define SAFESCOPED_TSO_BPF_H

#include "maps.bpf.h"

/*
 * Reads the label: an StgArrBytes (header, bytes, words) without a NUL, since GHC 9.6
 * (rts/include/rts/storage/TSO.h).
 */
SS_INLINE void tso_label(const struct wire_target *t, u64 tso, struct wire_tso *rec)
{
	u32 header = t->flags & WIRE_TARGET_PROFILED ? 24 : 8;
	u64 label = 0, bytes = 0;
	u32 n;

	if (!t->layout.tso_label || mem_u64(0, &label, tso + t->layout.tso_label) || !label ||
	    mem_u64(0, &bytes, label + header))
		return;
	n = bytes < sizeof(rec->label) - 1 ? bytes : sizeof(rec->label) - 1;
	ss_barrier(n);
	n &= sizeof(rec->label) - 1;
	if (n)
		mem_read(0, rec->label, n, label + header + 8);
}

/*
 * Where the TSO is now if it was at `tso` before: the collector leaves the new address in the old
 * object, which stays readable until its block is used again. 0: there is no TSO any more.
 */
SS_INLINE u64 tso_moved(u64 tso)
{
	tso = stg_unforward(0, stg_unforward(0, tso));
	return stg_object_type(0, tso) == STG_TSO ? tso : 0;
}

/*
 * Finds the TSO that was at `tso` before, and reads why it is blocked and whether it has ended.
 * Returns where it is now; 0: it cannot be found any more.
 */
SS_INLINE u64 tso_find(const struct wire_layout *l, u64 tso, u64 id, u64 *ret_why, u64 *ret_what)
{
	u64 found = 0;

	tso = tso ? tso_moved(tso) : 0;
	if (!tso || mem_uint(0, &found, tso + l->tso_id, l->tso_id_size) || found != id ||
	    mem_uint(0, ret_why, tso + l->tso_why_blocked, l->tso_why_size) ||
	    mem_uint(0, ret_what, tso + l->tso_stackobj + 8, 2))
		return 0;
	return tso;
}

/* ── between its turns ───────────────────────────────────────────────────────────────────── */

/* The most TSOs that a sample looks at, and the most places in which it searches for them. */
#define TSO_LOOKS  16
#define TSO_PLACES 64

/* BlockedOnCCall and BlockedOnCCall_Interruptible (rts/include/rts/Constants.h, 8.10 to 9.14): the
 * call has records of its own. */
SS_INLINE int tso_is_called(u64 why)
{
	return why == 10 || why == 11;
}

SS_INLINE struct wire_off_tsos *tso_offs(u32 tgid)
{
	struct wire_off_tsos *offs = bpf_map_lookup_elem(&off_tsos, &tgid), *zero;
	u32 key = 0;

	if (offs)
		return offs;
	zero = bpf_map_lookup_elem(&zero_off_tsos, &key);
	if (!zero || bpf_map_update_elem(&off_tsos, &tgid, zero, BPF_NOEXIST))
		return 0;
	return bpf_map_lookup_elem(&off_tsos, &tgid);
}

SS_INLINE struct wire_off_tso *tso_place(struct wire_off_tsos *offs, u64 i)
{
	i &= WIRE_OFF_TSOS - 1;
	ss_barrier(i);
	return &offs->v[i & (WIRE_OFF_TSOS - 1)];
}

/* The TSO at `left` has stopped (0: it cannot be found), and rec->id runs. Other CPUs may be about
 * to change the same places: a TSO that does not have the id of its place is not believed. */
SS_INLINE void tso_keep(const struct wire_tso *rec, u64 left)
{
	struct wire_off_tsos *offs = tso_offs(rec->h.tgid);
	struct wire_off_tso *place;

	if (!offs)
		return;
	place = tso_place(offs, rec->id);
	if (rec->id && place->id == rec->id)
		place->id = 0;
	if (!left || tso_is_called(rec->left_why) || wire_tso_has_ended(rec->left_what_next))
		return;
	place = tso_place(offs, rec->left_id);
	place->tso = left;
	place->why = rec->left_why;
	place->looked_ns = rec->h.ns;
	place->id = rec->left_id;
}

struct tso_looks {
	const struct wire_target *t;
	struct wire_off_tsos *offs;
	struct wire_tso_waits *rec;
	u32 first, visited, looked;
};

/* A callback of ss_loop. */
static long tso_look(u32 i, void *ctx)
{
	struct tso_looks *c = ctx;
	struct wire_off_tso *place = tso_place(c->offs, c->first + i);
	struct wire_tso_waits *rec = c->rec;
	u64 why = 0, what = 0;

	c->visited = i + 1;
	if (!place->id)
		return 0;
	place->tso = tso_find(&c->t->layout, place->tso, place->id, &why, &what);
	if (!place->tso || tso_is_called(why)) {
		place->id = 0;
		return 0;
	}
	/* one that is ready may have run since: its capability may have had nothing to do */
	if (why != place->why || !why || wire_tso_has_ended(what)) {
		rec->id = place->id;
		rec->since_ns = place->looked_ns;
		rec->why = why;
		rec->what_next = what;
		ring_put(rec, sizeof(*rec), ring_wakeup());
	}
	place->why = why;
	place->looked_ns = rec->h.ns;
	if (wire_tso_has_ended(what))
		place->id = 0;
	return ++c->looked >= TSO_LOOKS;
}

/* Looks at some of the target's TSOs that do not run, and reports those that wait for something
 * else than before, or for nothing, or have ended. Overwrites s->rec. */
SS_GLOBAL int tso_look_round(const struct wire_target *t, struct scratch *s, u64 pid_tgid, u64 now)
{
	u32 tgid = pid_tgid >> 32;
	struct tso_looks c = {};

	if (!t || !s)
		return 0;
	c.offs = bpf_map_lookup_elem(&off_tsos, &tgid);
	if (!c.offs)
		return 0;
	c.t = t;
	c.first = c.offs->next;
	c.rec = (struct wire_tso_waits *)s->rec;
	__builtin_memset(c.rec, 0, sizeof(*c.rec));
	fill_header(&c.rec->h, WIRE_TSO_WAITS, now, tgid, pid_tgid);
	c.rec->h.size = sizeof(*c.rec);
	ss_loop(TSO_PLACES, tso_look, &c);
	c.offs->next = c.first + c.visited;
	return 0;
}

/* ── its turn ────────────────────────────────────────────────────────────────────────────── */

/* Reads why the previous Haskell thread stopped. Returns where it is; 0: it cannot be found. */
SS_INLINE u64 tso_left(const struct wire_target *t, const struct wire_thread *seen,
		       struct wire_tso *rec)
{
	u64 tso, why = 0, what = 0;

	rec->left_id = seen->last_tso_id;
	tso = rec->left_id ? tso_find(&t->layout, seen->last_tso, rec->left_id, &why, &what) : 0;
	if (!tso)
		return 0;
	rec->left_why = why;
	rec->left_what_next = what;
	return tso;
}

/* Completes and sends the record in s->rec for a thread that has come to run `tso`; 0: none. */
SS_GLOBAL int tso_send(const struct wire_target *t, struct wire_thread_entry *e, struct scratch *s,
		       u64 tso)
{
	struct wire_tso *rec;
	u64 left;

	if (!t || !e || !s)
		return 0;
	rec = (struct wire_tso *)s->rec;
	rec->h.size = sizeof(*rec);
	rec->left_why = WIRE_TSO_UNKNOWN;
	left = tso_left(t, &e->th, rec);
	tso_keep(rec, left);
	if (rec->id)
		tso_label(t, tso, rec);
	e->th.last_tso = tso;
	e->th.last_tso_id = rec->id;
	ring_put(rec, sizeof(*rec), ring_wakeup());
	return 0;
}

/* Sends WIRE_TSO if the Haskell thread has changed. `s`: a scratch slot owned by the caller. */
SS_INLINE void tso_note(struct wire_target *t, struct wire_thread *seen, struct scratch *s,
			const struct wire_rts *rts, u32 tgid, u32 tid, u64 now)
{
	struct wire_tso *rec = (struct wire_tso *)s->rec;
	u64 id = rts->tso ? rts->tso_id : 0;

	if (!follow_tsos)
		return;
	if (id == seen->last_tso_id) {
		/* the collector may have moved it */
		seen->last_tso = id ? rts->tso : 0;
		return;
	}
	__builtin_memset(rec, 0, sizeof(*rec));
	fill_header(&rec->h, WIRE_TSO, now, tgid, tid);
	rec->id = id;
	rec->bound = id && rts->bound;
	tso_send(t, thread_entry(seen), s, rts->tso);
}

#endif
