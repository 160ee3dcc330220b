/* SPDX-License-Identifier: GPL-2.0-or-later */
/* decode: the helper processes that decode instructions, and the checks of their answers. */
#include "decode_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "confine/confine.h"

#define HELPER_MEMORY  (32ULL << 20)
#define HELPER_CPU_S   20
#define HELPER_IDLE_MS 5000
/* Decoding dozens of instructions takes microseconds, but the helper has to start. */
#define ANSWER_MS 1000
#define HONEST_NS (20000000ULL * machine__slowness())
/* The longest instruction of x86-64. */
#define MAX_INSN 15

struct decoder {
	struct confine_pool *pool;
	struct insn *insn; /* in the helper */
};

/* ── the helper ──────────────────────────────────────────────────────────────────────────── */

static int look(struct insn *insn, const struct decode_question *q, struct insn_call *ret_call)
{
	size_t len = MIN((size_t)q->len, sizeof(q->code));

	switch (q->what) {
	case DECODE_CALL_TARGET:
		return insn__call_target(insn, q->code, len, q->addr, ret_call);
	case DECODE_CALL_BEFORE:
		return insn__find_call_before(insn, q->code, len, q->addr, ret_call);
	case DECODE_SET_BEFORE:
		*ret_call = (struct insn_call){
			.kind = INSN_CALL_REGISTER, .at = q->addr, .next = q->addr, .reg = q->reg};
		return insn__set_before(insn, q->code, len, ret_call);
	case DECODE_STRAIGHT:
		return insn__is_straight(insn, q->code, len, q->addr) ? 0 : -ENOENT;
	default:
		return -ENOENT;
	}
}

static size_t answer(void *ctx, const void *question, size_t len, void *ret_answer)
{
	struct decoder *d = ctx;
	struct decode_answer a = {.err = -ENOENT};
	struct decode_question q = {0};

	memcpy(&q, question, MIN(len, sizeof(q)));
	if (d->insn || insn__new(&d->insn) == 0)
		a.err = look(d->insn, &q, &a.call);
	memcpy(ret_answer, &a, sizeof(a));
	return sizeof(a);
}

static const struct confine_service service = {
	.how = {.name = "safescoped:insn", .memory = HELPER_MEMORY, .cpu_s = HELPER_CPU_S},
	.answer = answer,
	.max_question = sizeof(struct decode_question),
	.max_answer = sizeof(struct decode_answer),
	.idle_ms = HELPER_IDLE_MS,
};

int decoder__new(struct decoder **ret_decoder)
{
	struct decoder *d = calloc(1, sizeof(*d));
	int err = d ? confine_pool__new(&service, d, &d->pool) : -ENOMEM;

	if (err) {
		free(d);
		return err;
	}
	*ret_decoder = d;
	return 0;
}

void decoder__free(struct decoder *d)
{
	if (!d)
		return;
	confine_pool__free(d->pool);
	insn__free(d->insn);
	free(d);
}

/* ── asking it ───────────────────────────────────────────────────────────────────────────── */

bool decode__check(const struct decode_question *q, const struct decode_answer *a, size_t len)
{
	const struct insn_call *c = &a->call;
	uint64_t size = c->next - c->at;

	if (len != sizeof(*a) || (a->err && a->err != -ENOENT))
		return false;
	if (a->err || q->what == DECODE_STRAIGHT)
		return true;
	if (q->what == DECODE_SET_BEFORE)
		return c->kind == INSN_CALL_DIRECT || c->kind == INSN_CALL_SLOT;
	if ((unsigned int)c->kind < INSN_CALL_DIRECT ||
	    (unsigned int)c->kind > INSN_CALL_REGISTER || size == 0 || size > MAX_INSN)
		return false;
	/* it must be a call within the code that was sent */
	if (q->what == DECODE_CALL_BEFORE)
		return c->next == q->addr && size <= q->len;
	return c->at - q->addr < q->len && size <= q->len - (c->at - q->addr);
}

/* 0: sets *ret_call, unless it is NULL. -ENOENT; -EBUSY: no time. */
static int ask(struct decoder *d, uid_t user, struct decode_question *q, const uint8_t *code,
	       size_t len, struct insn_call *ret_call)
{
	uint64_t began = time__monotonic_ns();
	struct decode_answer a;
	size_t got = 0;
	int err;

	if (len > sizeof(q->code))
		return -ENOENT;
	q->len = (uint32_t)len;
	memcpy(q->code, code, len);
	err = confine_pool__ask(d->pool, user, q, sizeof(*q), ANSWER_MS, HONEST_NS, &a, &got);
	if (confine_pool__had_no_time(err, began, ANSWER_MS))
		return -EBUSY;
	if (err || !decode__check(q, &a, got) || a.err)
		return -ENOENT;
	if (ret_call)
		*ret_call = a.call;
	return 0;
}

int decode__call_target(struct decoder *d, uid_t user, const uint8_t *code, size_t len,
			uint64_t addr, struct insn_call *ret_call)
{
	struct decode_question q = {.what = DECODE_CALL_TARGET, .addr = addr};

	return ask(d, user, &q, code, MIN(len, (size_t)INSN_SITE_WINDOW), ret_call);
}

int decode__call_before(struct decoder *d, uid_t user, const uint8_t *code, size_t len,
			uint64_t ret_addr, struct insn_call *ret_call)
{
	struct decode_question q = {.what = DECODE_CALL_BEFORE, .addr = ret_addr};
	size_t window = MIN(len, (size_t)INSN_SITE_WINDOW);

	return ask(d, user, &q, code + len - window, window, ret_call);
}

int decode__set_before(struct decoder *d, uid_t user, const uint8_t *code, size_t len,
		       struct insn_call *call)
{
	struct decode_question q = {.what = DECODE_SET_BEFORE, .addr = call->at, .reg = call->reg};
	size_t window = MIN(len, (size_t)INSN_SITE_WINDOW);
	struct insn_call set;
	int err = ask(d, user, &q, code + len - window, window, &set);

	if (err)
		return err;
	call->kind = set.kind;
	call->target = set.target;
	return 0;
}

int decode__site_back(struct decoder *d, uid_t user, const uint8_t *code, size_t len,
		      uint64_t ret_addr, bool (*is_suspend)(void *ctx, uint64_t target), void *ctx,
		      uint64_t *ret_site)
{
	size_t back = 0;
	uint64_t site;
	int err;

	while ((back = insn__site_candidate(code, len, ret_addr, back, is_suspend, ctx, &site))) {
		struct decode_question q = {.what = DECODE_STRAIGHT, .addr = site};
		size_t after = (size_t)(ret_addr - site);

		err = ask(d, user, &q, code + len - after, after, NULL);
		/* a later candidate must not win over one that could not be checked */
		if (err == -EBUSY)
			return err;
		if (err)
			continue;
		*ret_site = site;
		return 0;
	}
	return -ENOENT;
}
