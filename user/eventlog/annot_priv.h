/* SPDX-License-Identifier: GPL-2.0-or-later */
/* annot: what annot.c, annot_text.c and annot_pack.c share. Not for other rooms. */
#ifndef SAFESCOPED_EVENTLOG_ANNOT_PRIV_H
#define SAFESCOPED_EVENTLOG_ANNOT_PRIV_H

#include "eventlog.h"
#include "u64map_priv.h"

#define ANNOT_TEXT_MAX (16u << 20) /* bytes of all texts, with what finds them */
#define ANNOT_NONE     UINT32_MAX

#define SPANS_MAX  (1u << 18)
#define SUMS_MAX   (1u << 13)
#define CCALLS_MAX (1u << 18)
#define RECENT	   64 /* a program's annotated calls are few, and logged again and again */

/* An interval, or a C call, that has not ended. */
struct open {
	union {
		struct el_span span;
		struct el_ccall call;
	};
	uint64_t key;
	uint32_t stack; /* string, of an interval */
	uint32_t below; /* older one of the same key; of what is closed: the next that is */
	bool open;
};

struct opens {
	struct open *v;
	size_t n, cap;
	uint32_t closed; /* list of those that can be used again */
	struct u64map by_key;
};

/* A text that was seen before, found without hashing all of it. */
struct recent {
	uint32_t id, len; /* len 0: none */
};

struct el_annot {
	const struct el_window *window;
	struct cctree *tree;
	const struct el_sched *sched;
	struct strtab *strings;
	size_t forget_at; /* bytes of strings: then those that nothing has any more go */
	struct recent recent[RECENT];
	struct opens open;  /* intervals, by label and number */
	struct opens calls; /* by thread */
	struct u64map sum_by_label;
	struct el_span *spans;
	struct el_ccall *ccalls;
	struct el_span_sum *sums;
	uint32_t *stacks; /* string of the stack for each span, until finish */
	uint32_t others;  /* the label that stands for those beyond SUMS_MAX */
	size_t spans_cap, ccalls_cap, sums_cap, stacks_cap;
	struct el_annot_info info;
};

enum annot_verb {
	AV_NONE,
	AV_START,
	AV_STOP,
	AV_STACK,
	AV_THREAD,
	AV_CALL_TO,
	AV_CALL_RET,
	AV_MALFORMED,
};

struct annot_words {
	uint64_t n;
	struct el_str label;
	struct el_str stack; /* from its [ on */
	uint64_t fn, site, tid;
};

/* Texts of what lay outside the window go; the others get new numbers. -ENOMEM: it is unusable. */
int annot__forget_texts(struct el_annot *a);
/* The verb that it begins with, and what follows it; AV_NONE: any other message. */
enum annot_verb annot__verb(struct el_str text, struct el_str *ret_rest);
/* Its words too; AV_MALFORMED if they make no sense. */
enum annot_verb annot__words(struct el_str text, struct annot_words *w);
/* The node of ["Main.main (loc)","Main.bar (loc)"], root first. */
int annot__stack_node(struct cctree *tree, const char *list, size_t len, uint32_t *ret_node);

#endif
