/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the findings share. They know the picture, and nothing of how it is made. */
#ifndef SAFESCOPED_TIMELINE_FINDINGS_PRIV_H
#define SAFESCOPED_TIMELINE_FINDINGS_PRIV_H

#include "base/base.h"
#include "findings.h"

struct finder {
	const struct timeline *tl;
	const struct tl_target *t;
	uint64_t wall_ns; /* what was seen of the process */
	uint64_t cpu_ns;  /* of all its threads */
	struct findings *out;
	int err; /* the first; later findings are not made */
};

/* `where`: NULL or "" if there is no place. The text is one sentence without a full stop. */
void finding__add(struct finder *f, const char *kind, uint64_t ns, const char *where,
		  const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Numbers in sentences: said(…).s is for one printf. */
struct said {
	char s[64];
};
struct said said__ns(uint64_t ns);
struct said said__count(uint64_t n, const char *one, const char *many); /* "1 call", "2 calls" */
/* "1 200": per second of `ns`, rounded */
struct said said__rate(uint64_t n, uint64_t ns);

/* part / whole >= percent / 100, without overflow */
bool finding__share(uint64_t part, uint64_t whole, unsigned percent);

/* ", called from Foo.bar": NULL without memory; "" without a caller. The caller frees. */
char *finding__caller(const char *caller);
/* The frame's place: "Foo.bar (src/Foo.hs:12)", else its name. NULL without memory. */
char *finding__place(const struct tl_frame *frame);

/* The frames of a stretch in which C code was called from Haskell code; UINT32_MAX: none.
 * *ret_function is the outermost C function, the one that Haskell called. */
void finding__call_of(const struct timeline *tl, uint32_t stack, uint32_t *ret_function,
		      uint32_t *ret_caller);
/* NULL for UINT32_MAX. */
const struct tl_frame *finding__frame(const struct timeline *tl, uint32_t id);
/* The leaf frame that is code in user space; NULL: none. */
const struct tl_frame *finding__leaf(const struct timeline *tl, uint32_t stack);

/* When the collection was asked for: its start, if that is not known. */
uint64_t finding__requested_ns(const struct tl_gc_event *gc);
/*
 * So much of start…end is in the wait for a collection, from its request to its start. *at is 0 for
 * the first of a row of calls whose starts do not decrease.
 */
uint64_t finding__in_sync(const struct tl_target *t, size_t *at, uint64_t start, uint64_t end);

/* Times that may overlap until they are joined; then they are in order. The caller frees v. */
struct span {
	uint64_t start, end;
};
struct spans {
	struct span *v;
	size_t n, cap;
};
int spans__add(struct spans *s, uint64_t start, uint64_t end);
void spans__join(struct spans *s);
/* Of joined ones; *at as above. */
uint64_t spans__overlap(const struct spans *s, size_t *at, uint64_t start, uint64_t end);

void findings__unsafe(struct finder *f);       /* findings_unsafe.c */
void findings__loops(struct finder *f);	       /* findings_loops.c */
void findings__safe(struct finder *f);	       /* findings_safe.c */
void findings__gc(struct finder *f);	       /* findings_gc.c */
void findings__capabilities(struct finder *f); /* findings_caps.c */
void findings__haskell(struct finder *f);      /* findings_haskell.c */

#endif
