/* SPDX-License-Identifier: GPL-2.0-or-later */
/* annot: declarations shared by annot.c, annot_text.c and annot_pack.c. Not for other rooms. */
#ifndef SAFESCOPED_EVENTLOG_ANNOT_PRIV_H
#define SAFESCOPED_EVENTLOG_ANNOT_PRIV_H

#include "eventlog.h"
#include "u64map_priv.h"

#define ANNOT_TEXT_MAX (16u << 20) /* bytes of all texts, with their index */
#define ANNOT_NONE     UINT32_MAX

#define SPANS_MAX  (1u << 18)
#define SUMS_MAX   (1u << 13)
#define CCALLS_MAX (1u << 18)
#define RECENT	   64 /* a program has few annotated calls, and logs them again and again */

/* An interval, or a C call, that has not ended. */
struct open {
	union {
		struct el_span span;
		struct el_ccall call;
	};
	uint64_t key;
	uint32_t stack; /* string, of an interval */
	uint32_t below; /* an older one with the same key; in a closed entry: the next closed one */
	bool open;
};

struct opens {
	struct open *v;
	size_t n, cap;
	uint32_t closed; /* list of entries that can be reused */
	struct u64map by_key;
};

/* A cache of texts seen before, which avoids hashing all of a text. */
struct recent {
	uint32_t id, len; /* len 0: none */
};

struct el_annot {
	const struct el_window *window;
	struct cctree *tree;
	const struct el_sched *sched;
	struct strtab *strings;
	size_t forget_at; /* bytes of strings at which the unused ones are dropped */
	struct recent recent[RECENT];
	struct opens open;  /* intervals, by label and number */
	struct opens calls; /* by thread */
	struct u64map sum_by_label;
	struct el_span *spans;
	struct el_ccall *ccalls;
	struct el_span_sum *sums;
	uint32_t *stacks; /* string of each span's stack, until el_annot__finish */
	uint32_t others;  /* the label for those beyond SUMS_MAX */
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

/* Drops the texts of intervals outside the window; renumbers the rest. -ENOMEM: a is unusable. */
int annot__forget_texts(struct el_annot *a);
/* Returns the verb that the text begins with, and the rest; AV_NONE: any other message. */
enum annot_verb annot__verb(struct el_str text, struct el_str *ret_rest);
/* As annot__verb, with the arguments; AV_MALFORMED if they make no sense. */
enum annot_verb annot__words(struct el_str text, struct annot_words *w);
/* The node of a list like ["Main.main (loc)","Main.bar (loc)"], root first. */
int annot__stack_node(struct cctree *tree, const char *list, size_t len, uint32_t *ret_node);

#endif
