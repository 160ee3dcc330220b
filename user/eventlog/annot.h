/* SPDX-License-Identifier: GPL-2.0-or-later */
/* annot: what annot.c and annot_text.c share. Not for other rooms. */
#ifndef SAFESCOPED_EVENTLOG_ANNOT_H
#define SAFESCOPED_EVENTLOG_ANNOT_H

#include "eventlog.h"

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

/* The verb that it begins with, and what is behind; AV_NONE: any other message. */
enum annot_verb annot__verb(struct el_str text, struct el_str *ret_rest);
/* Its words too; AV_MALFORMED if they make no sense. */
enum annot_verb annot__words(struct el_str text, struct annot_words *w);
/* The node of ["Main.main (loc)","Main.bar (loc)"], root first. */
int annot__stack_node(struct cctree *tree, const char *list, size_t len, uint32_t *ret_node);

#endif
