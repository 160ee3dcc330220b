/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which Haskell thread an OS thread runs, sent when that changes: the label of the next one, and
 * why the previous one stopped. Only if Haskell threads are requested. Between two samples, safe
 * calls and switches an OS thread may run other Haskell threads unseen.
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

/* Reads why the previous Haskell thread stopped, unless it cannot be found any more. */
SS_INLINE void tso_left(const struct wire_target *t, const struct wire_thread *seen,
			struct wire_tso *rec)
{
	const struct wire_layout *l = &t->layout;
	u64 tso, id = 0, why = 0, what = 0;

	rec->left_id = seen->last_tso_id;
	tso = rec->left_id ? tso_moved(seen->last_tso) : 0;
	if (!tso || mem_uint(0, &id, tso + l->tso_id, l->tso_id_size) || id != rec->left_id ||
	    mem_uint(0, &why, tso + l->tso_why_blocked, l->tso_why_size) ||
	    mem_uint(0, &what, tso + l->tso_stackobj + 8, 2))
		return;
	rec->left_why = why;
	rec->left_what_next = what;
}

/* Completes and sends the record in s->rec for a thread that has come to run `tso`; 0: none. */
SS_GLOBAL int tso_send(const struct wire_target *t, struct wire_thread_entry *e, struct scratch *s,
		       u64 tso)
{
	struct wire_tso *rec;

	if (!t || !e || !s)
		return 0;
	rec = (struct wire_tso *)s->rec;
	rec->h.size = sizeof(*rec);
	rec->left_why = WIRE_TSO_UNKNOWN;
	tso_left(t, &e->th, rec);
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
