/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "answers.h"

#include <errno.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/hash.h"

#define MAX_ANSWERS   (1u << 22)
#define MAX_TARGETS   65536
#define MAX_CCS_DEPTH 4096

/* What was answered to one question, in the order in which it was asked. */
struct answer {
	struct answer *next;
	int err;
	union {
		struct code_name name;
		struct target_site site;
		struct target_ccs ccs;
	};
};

struct question {
	uint64_t what;
	uint32_t target;
	uint32_t kind; /* enum intake_input_kind */
};

struct asked {
	UT_hash_handle hh;
	struct question question;
	struct answer *at, *last; /* what comes next; after the last one that one again */
};

/* Whom a namer asks. */
struct answerer {
	struct answers *answers;
	uint32_t target;
};

struct answers {
	struct asked *asked; /* by question */
	struct answer **all; /* to be freed */
	size_t n_all, all_cap;
	struct answerer **targets;
	size_t n_targets, targets_cap;
};

static struct asked *find(const struct answers *a, uint32_t target, unsigned kind, uint64_t what)
{
	const struct question question = {.what = what, .target = target, .kind = kind};
	struct asked *asked;

	HASH_FIND(hh, a->asked, &question, sizeof(question), asked);
	return asked;
}

static const struct answer *ask(struct answerer *who, unsigned kind, uint64_t what)
{
	struct asked *asked = find(who->answers, who->target, kind, what);
	const struct answer *answer;

	if (!asked)
		return NULL;
	answer = asked->at;
	if (answer->next)
		asked->at = answer->next;
	return answer;
}

static void answer_name(void *ctx, uint64_t frame, struct code_name *ret_name)
{
	const struct answer *answer = ask(ctx, TI_NAME, frame);

	*ret_name = (struct code_name){.name = "[not in the capture]",
				       .module = "",
				       .package = "",
				       .file = "",
				       .src = "",
				       .source = NAME_NONE};
	if (answer)
		*ret_name = answer->name;
}

static int answer_site(void *ctx, uint64_t addr, struct target_site *ret_site)
{
	const struct answer *answer = ask(ctx, TI_SITE, addr);

	if (!answer || answer->err)
		return answer ? answer->err : -ENOENT;
	*ret_site = answer->site;
	return 0;
}

static int answer_ccs(void *ctx, uint64_t addr, struct target_ccs *ret_ccs)
{
	const struct answer *answer = ask(ctx, TI_CCS, addr);

	if (!answer || answer->err)
		return answer ? answer->err : -ENOENT;
	*ret_ccs = answer->ccs;
	return 0;
}

/* What was read then is answered one by one. */
static int read_no_ccs(void *ctx, const uint64_t *addrs, size_t n)
{
	(void)ctx;
	(void)addrs;
	(void)n;
	return 0;
}

/* A cost-centre stack that is its own ancestor, as no program makes it. */
static bool is_own_ancestor(const struct answers *a, uint32_t target, const struct target_ccs *ccs)
{
	uint64_t addr = ccs->parent;

	for (unsigned depth = 0; addr; depth++) {
		const struct asked *asked;

		if (addr == ccs->addr || depth == MAX_CCS_DEPTH)
			return true;
		asked = find(a, target, TI_CCS, addr);
		addr = asked && !asked->last->err ? asked->last->ccs.parent : 0;
	}
	return false;
}

static int keep(struct answers *a, const struct question *question, struct answer *answer)
{
	struct asked *asked = find(a, question->target, question->kind, question->what);

	if (asked) {
		/* all earlier ones were given already: only the last one may be asked for again */
		asked->last->next = answer;
		asked->last = answer;
		return 0;
	}
	asked = calloc(1, sizeof(*asked));
	if (!asked)
		return -ENOMEM;
	asked->question = *question;
	asked->at = asked->last = answer;
	return HASH_INSERT(a->asked, question, sizeof(asked->question), asked);
}

int answers__take(struct answers *a, const struct intake_input *in)
{
	const struct question question = {.what = in->a, .target = in->target, .kind = in->kind};
	struct answer *answer;
	int err = in->n ? -(int)MIN(in->n, 4095u) : 0;

	if (in->target >= a->n_targets || a->n_all >= MAX_ANSWERS)
		return -EBADMSG;
	if (!err && !in->name && !in->site && !in->ccs)
		return -EBADMSG;
	if (ARRAY_RESERVE(a->all, a->all_cap, a->n_all + 1, MAX_ANSWERS))
		return -ENOMEM;
	answer = calloc(1, sizeof(*answer));
	if (!answer)
		return -ENOMEM;
	a->all[a->n_all++] = answer;
	answer->err = err;
	if (in->kind == TI_NAME && in->name)
		answer->name = *in->name;
	else if (in->kind == TI_SITE && in->site)
		answer->site = *in->site;
	else if (in->kind == TI_CCS && in->ccs)
		answer->ccs = *in->ccs;
	else if (!err)
		return -EBADMSG;
	if (in->kind == TI_CCS && !err) {
		answer->ccs.addr = in->a;
		if (is_own_ancestor(a, in->target, &answer->ccs))
			return -EBADMSG;
	}
	return keep(a, &question, answer);
}

int answers__add_target(struct answers *a, unsigned parts, struct namer *ret_namer)
{
	int err = ARRAY_RESERVE(a->targets, a->targets_cap, a->n_targets + 1, MAX_TARGETS);
	struct answerer *who;

	if (err)
		return err;
	who = calloc(1, sizeof(*who));
	if (!who)
		return -ENOMEM;
	*who = (struct answerer){.answers = a, .target = (uint32_t)a->n_targets};
	a->targets[a->n_targets++] = who;
	*ret_namer = (struct namer){.ctx = who, .name = answer_name};
	if (parts & TN_SITE)
		ret_namer->site = answer_site;
	if (parts & TN_CCS) {
		ret_namer->read_ccs = read_no_ccs;
		ret_namer->ccs = answer_ccs;
	}
	return 0;
}

void answers__drop_target(struct answers *a)
{
	free(a->targets[--a->n_targets]);
}

int answers__new(struct answers **ret_answers)
{
	struct answers *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	*ret_answers = a;
	return 0;
}

void answers__free(struct answers *a)
{
	if (!a)
		return;
	HASH_FREE(a->asked);
	for (size_t i = 0; i < a->n_all; i++)
		free(a->all[i]);
	for (size_t i = 0; i < a->n_targets; i++)
		free(a->targets[i]);
	free(a->all);
	free(a->targets);
	free(a);
}
