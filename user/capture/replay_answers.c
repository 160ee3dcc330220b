/* SPDX-License-Identifier: GPL-2.0-or-later */
/* replay_answers: gives the answers of a session's namers again. */
#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "replay_priv.h"

#define MAX_ANSWERS   ((size_t)1 << 22)
#define MAX_CCS_DEPTH 4096

/* The answers to one question, in the order in which they were given. */
struct answer {
	struct answer *next;
	int err;
	uint32_t retaken; /* how often code had been replaced by then */
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

struct answers {
	UT_hash_handle hh;
	struct question question;
	struct answer *at, *last; /* the next one; after the last one, the last one again */
	bool given;		  /* `at` was given */
};

static struct answers *find(const struct replay *r, uint32_t target, unsigned kind, uint64_t what)
{
	const struct question question = {.what = what, .target = target, .kind = kind};
	struct answers *answers;

	HASH_FIND(hh, r->answers, &question, sizeof(question), answers);
	return answers;
}

static bool is_due(const struct replay *r, const struct answer *answer)
{
	return answer && answer->retaken <= r->n_retaken;
}

static const struct answer *ask(struct replay_target *t, unsigned kind, uint64_t what)
{
	struct answers *answers = find(t->replay, t->no, kind, what);
	const struct answer *answer;

	if (!answers)
		return NULL;
	/* in windows there are more questions than in the session: give the answer about the
	 * current code */
	while (is_due(t->replay, answers->at->next) &&
	       answers->at->next->retaken > answers->at->retaken)
		answers->at = answers->at->next;
	answer = answers->at;
	answers->given = !answer->next;
	if (is_due(t->replay, answer->next))
		answers->at = answer->next;
	return answer;
}

void replay__name(void *ctx, uint64_t frame, struct code_name *ret_name)
{
	const struct answer *answer = ask(ctx, TI_NAME, frame);
	const struct replay_target *t = ctx;
	const struct replay_hooks *hooks = &t->replay->hooks;

	*ret_name = (struct code_name){.name = "[not in the capture]",
				       .module = "",
				       .package = "",
				       .file = "",
				       .src = "",
				       .source = NAME_NONE};
	if (!answer)
		return;
	*ret_name = answer->name;
	if (hooks->name)
		hooks->name(hooks->ctx, &t->info, frame, ret_name);
}

int replay__site(void *ctx, uint64_t addr, struct target_site *ret_site)
{
	const struct answer *answer = ask(ctx, TI_SITE, addr);
	const struct replay_target *t = ctx;
	const struct replay_hooks *hooks = &t->replay->hooks;

	if (!answer || answer->err)
		return answer ? answer->err : -ENOENT;
	*ret_site = answer->site;
	if (hooks->site)
		hooks->site(hooks->ctx, &t->info, addr, ret_site);
	return 0;
}

int replay__ccs(void *ctx, uint64_t addr, struct target_ccs *ret_ccs)
{
	const struct answer *answer = ask(ctx, TI_CCS, addr);

	if (!answer || answer->err)
		return answer ? answer->err : -ENOENT;
	*ret_ccs = answer->ccs;
	return 0;
}

/* Nothing to read: the answers are given one by one. */
int replay__read_ccs(void *ctx, const uint64_t *addrs, size_t n)
{
	(void)ctx;
	(void)addrs;
	(void)n;
	return 0;
}

/* Whether a cost-centre stack is its own ancestor, which no program makes. */
static bool is_own_ancestor(const struct replay *r, uint32_t target, const struct target_ccs *ccs)
{
	uint64_t addr = ccs->parent;

	for (unsigned depth = 0; addr; depth++) {
		const struct answers *answers;

		if (addr == ccs->addr || depth == MAX_CCS_DEPTH)
			return true;
		answers = find(r, target, TI_CCS, addr);
		addr = answers && !answers->last->err ? answers->last->ccs.parent : 0;
	}
	return false;
}

static int keep_answer(struct replay *r, const struct question *question, struct answer *answer)
{
	struct answers *answers = find(r, question->target, question->kind, question->what);

	if (answers) {
		answers->last->next = answer;
		answers->last = answer;
		if (answers->given)
			answers->at = answer;
		answers->given = false;
		return 0;
	}
	answers = calloc(1, sizeof(*answers));
	if (!answers)
		return -ENOMEM;
	answers->question = *question;
	answers->at = answers->last = answer;
	return HASH_INSERT(r->answers, question, sizeof(answers->question), answers);
}

int replay__take_answer(struct replay *r, const struct intake_input *in)
{
	const struct question question = {.what = in->a, .target = in->target, .kind = in->kind};
	struct answer *answer;
	int err = in->n ? -(int)MIN(in->n, 4095u) : 0;

	if (in->target >= r->n_targets && !r->looking_ahead)
		return -EBADMSG;
	if (!err && !in->name && !in->site && !in->ccs)
		return -EBADMSG;
	if (r->n_all >= (r->hooks.max_kept ? MIN(r->hooks.max_kept, MAX_ANSWERS) : MAX_ANSWERS))
		return -E2BIG;
	if (ARRAY_RESERVE(r->all, r->all_cap, r->n_all + 1, MAX_ANSWERS))
		return -ENOMEM;
	answer = calloc(1, sizeof(*answer));
	if (!answer)
		return -ENOMEM;
	r->all[r->n_all++] = answer;
	answer->err = err;
	answer->retaken = r->looking_ahead ? r->n_retaken_ahead : r->n_retaken;
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
		if (is_own_ancestor(r, in->target, &answer->ccs))
			return -EBADMSG;
	}
	return keep_answer(r, &question, answer);
}

void replay__free_answers(struct replay *r)
{
	HASH_FREE(r->answers);
	for (size_t i = 0; i < r->n_all; i++)
		free(r->all[i]);
	free(r->all);
}
