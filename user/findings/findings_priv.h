/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the families of findings share. They know only the picture, not how it was made. */
#ifndef SAFESCOPED_FINDINGS_PRIV_H
#define SAFESCOPED_FINDINGS_PRIV_H

#include "base/base.h"
#include "findings.h"

#define MAX_FINDINGS 256

struct finder {
	const struct picture *pic;
	const struct pic_target *t;
	const struct pic_lanes *threads, *caps, *haskell; /* of the target */
	uint64_t wall_ns;	 /* the time for which the process was observed */
	uint64_t cpu_ns;	 /* of all its threads; 0: none is known */
	struct picture *strings; /* owns the texts */
	struct pic_finding v[MAX_FINDINGS];
	size_t n;
	struct pic_moment longest; /* of the next finding, if its family knows it */
	int err;		   /* the first error; no further findings are made */
};

/* Text that lives as long as the picture; "" on allocation failure, and f->err is set. */
const char *finding__text(struct finder *f, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* `where`: NULL or "" if there is no place. The text is one sentence without a full stop. */
void finding__add(struct finder *f, const char *kind, uint64_t ns, const char *where,
		  const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/*
 * Why most major collections with a known reason took place: GC_REASON_FORCED or GC_REASON_IDLE,
 * which no limit of the heap makes fewer; GC_REASON_UNKNOWN: neither, or not known.
 */
enum pic_gc_reason finding__majors_reason(const struct pic_heap *heap);

/* How to give this program an option of the runtime: "+RTS -A64m", or, if it refuses that, what to
 * do about it. */
const char *finding__rts(struct finder *f, const char *option);

/* "1 call", "2 calls" */
struct counted {
	char s[64];
};
struct counted finding__counted(uint64_t n, const char *one, const char *many);
/* "1 200": n per second of `ns`, rounded */
struct human finding__rate(uint64_t n, uint64_t ns);

/* part / whole >= percent / 100, without overflow */
bool finding__share(uint64_t part, uint64_t whole, unsigned percent);

/* The time that all capabilities spent in the state; *ret_busy_ns: not idle, and in a known state.
 */
uint64_t finding__cap_ns(const struct finder *f, enum cap_state state, uint64_t *ret_busy_ns);

/* ", called from Foo.bar"; "" without a caller. */
const char *finding__caller(struct finder *f, const char *caller);
/* The frame's place: "Foo.bar (src/Foo.hs:12)", or only its name; "" without a frame. */
const char *finding__place(struct finder *f, const struct pic_frame *frame);

/* "GC waited 5 ms in 2 collections for capability 1 (longest 3 ms)" */
const char *finding__gc_waited(struct finder *f, uint64_t ns, uint64_t gcs, const char *caps,
			       uint64_t longest_ns);

/* The leafmost frame that is Haskell code or, if `c`, C code in user space; UINT32_MAX: none. */
uint32_t finding__leaf(const struct picture *pic, uint32_t stack, bool c);

/* The longest slice in one of these states (a bit for each) among the target's lanes of a kind. */
struct pic_moment finding__longest(const struct finder *f, enum lane_kind lanes, uint32_t states);
/* Sets the longest moment of findings that have none yet (moments.c). */
void findings__find_moments(struct finder *f);

void findings__unsafe(struct finder *f);       /* unsafe.c */
void findings__loops(struct finder *f);	       /* loops.c */
void findings__safe(struct finder *f);	       /* safe.c */
void findings__gc(struct finder *f);	       /* gc.c */
void findings__heap(struct finder *f);	       /* heap.c */
void findings__nursery(struct finder *f);      /* nursery.c; after findings__gc */
void findings__capabilities(struct finder *f); /* caps.c */
void findings__haskell(struct finder *f);      /* haskell.c */

#endif
