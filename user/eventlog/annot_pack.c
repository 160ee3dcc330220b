/* SPDX-License-Identifier: GPL-2.0-or-later */
/* annot_pack: hands a program's annotations over from the process that read the log. */
#include <errno.h>

#include "annot_priv.h"
#include "base/base.h"
#include "pack_priv.h"

void el_annot__pack(const struct el_annot *a, struct pack *p)
{
	PACK(p, a->info);
	pack__strings(p, a->strings);
	pack__array(p, a->spans, a->info.n_spans, sizeof(*a->spans));
	pack__array(p, a->sums, a->info.n_sums, sizeof(*a->sums));
	pack__array(p, a->ccalls, a->info.n_ccalls, sizeof(*a->ccalls));
}

/* Spans must be sorted by start, since readers sweep over them once. */
static void check_spans(const struct el_annot *a, struct unpack *u, uint32_t n_strings)
{
	size_t n_nodes = a->tree ? cctree__n_nodes(a->tree) : 0;
	uint64_t at = 0;

	for (size_t i = 0; i < a->info.n_spans; i++) {
		const struct el_span *s = &a->spans[i];

		unpack__flag(u, &s->open_end);
		unpack__require(u, s->start >= at && s->end > s->start && s->label < n_strings &&
					   (s->node == CC_NO_NODE || s->node < n_nodes));
		at = s->start;
	}
}

static void check_ccalls(const struct el_annot *a, struct unpack *u)
{
	uint64_t at = 0;

	for (size_t i = 0; i < a->info.n_ccalls; i++) {
		const struct el_ccall *c = &a->ccalls[i];

		unpack__flag(u, &c->open_end);
		unpack__require(u, c->start >= at && c->end > c->start);
		at = c->start;
	}
}

int el_annot__unpack(struct unpack *u, struct cctree *tree, struct el_annot **ret_a)
{
	struct el_annot_info info;
	struct el_annot *a;
	uint32_t n;
	int err = el_annot__new(NULL, tree, NULL, &a);

	if (err)
		return err;
	UNPACK(u, info);
	a->info = info;
	a->info.n_spans = a->info.n_sums = a->info.n_ccalls = 0;
	err = unpack__strings(u, a->strings);
	n = strtab__count(a->strings);
	if (!err)
		err = UNPACK_ARRAY(u, a->spans, a->info.n_spans, SPANS_MAX);
	if (!err)
		err = UNPACK_ARRAY(u, a->sums, a->info.n_sums, SUMS_MAX);
	if (!err)
		err = UNPACK_ARRAY(u, a->ccalls, a->info.n_ccalls, CCALLS_MAX);
	for (size_t i = 0; i < a->info.n_sums; i++)
		unpack__require(u, a->sums[i].label < n && a->sums[i].count);
	check_spans(a, u, n);
	check_ccalls(a, u);
	if (!err && u->bad)
		err = -EBADMSG;
	if (err)
		el_annot__free(a);
	else
		*ret_a = a;
	return err;
}
