/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * off: what a thread waited for while it was off the CPU: the foreign function and the system call
 * that it slept in, or the place in the runtime.
 */
#include <stdio.h>

#include "private.h"

static const char *const syscall_names[] = {
#include "syscall_names.h"
};

const char *syscall__name(uint32_t nr)
{
	return nr < ARRAY_SIZE(syscall_names) ? syscall_names[nr] : NULL;
}

struct off_key {
	uint32_t state, syscall, function; /* function: a frame; UINT32_MAX: none */
};

static struct off_key key_of(const struct timeline *tl, const struct target_state *tg,
			     enum tl_state state, const struct ev *ev)
{
	struct off_key key = {.state = state, .syscall = WIRE_NO_SYSCALL, .function = UINT32_MAX};

	if (!ev)
		return key;
	switch (state) {
	case ST_SAFE_CALL_BLOCKED:
		key.syscall = ev->syscall;
		if (ev->site)
			key.function = tg->site_v[ev->site - 1]->function;
		break;
	case ST_UNSAFE_CALL_BLOCKED:
		key.syscall = ev->syscall;
		key.function = sums__function(tl, ev);
		break;
	case ST_RTS_BLOCKED:
	case ST_FOREIGN_BLOCKED:
		key.syscall = ev->syscall;
		break;
	default:
		break;
	}
	return key;
}

int off__add(struct timeline *tl, const struct target_state *tg, const struct thread *th,
	     enum tl_state state, const struct ev *ev, uint64_t ns)
{
	struct off_key key = key_of(tl, tg, state, ev);

	return ledger__reason(tg->ledger, th->owner, key.state, key.syscall, key.function,
			      (int64_t)ns);
}

static const char *text_of(struct timeline *tl, const struct off_key *key)
{
	const struct tl_frame *frame = timeline__frame(tl, key->function);
	const char *syscall = syscall__name(key->syscall), *place = NULL;
	char number[32], text[256];

	switch ((enum tl_state)key->state) {
	case ST_SAFE_CALL_BLOCKED:
	case ST_UNSAFE_CALL_BLOCKED:
		place = frame ? frame->name : "";
		break;
	case ST_RTS_BLOCKED:
		place = "runtime";
		break;
	case ST_FOREIGN_BLOCKED:
		place = "";
		break;
	case ST_HASKELL_BLOCKED:
		return "memory (page fault)";
	default:
		return state__title((enum tl_state)key->state);
	}
	if (!syscall && key->syscall != WIRE_NO_SYSCALL) {
		snprintf(number, sizeof(number), "system call %u", key->syscall);
		syscall = number;
	}
	if (!syscall && !*place)
		return state__title((enum tl_state)key->state);
	if (!syscall || !*place || !strcmp(syscall, place))
		return tl__string(tl, syscall ? syscall : place);
	snprintf(text, sizeof(text), "%s: %s", place, syscall);
	return tl__string(tl, text);
}

static int by_ns(const void *pa, const void *pb)
{
	const struct tl_off_cpu *a = pa, *b = pb;

	if (a->ns != b->ns)
		return a->ns < b->ns ? 1 : -1;
	return strcmp(a->reason, b->reason);
}

int off__finish(struct timeline *tl, const struct ledger_account *account, struct tl_lane *lane)
{
	struct tl_off_cpu *v = calloc(account->n_reasons + 1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < account->n_reasons; i++) {
		const struct ledger_reason *r = &account->reasons[i];
		struct off_key key = {r->state, r->syscall, r->function};

		v[i] = (struct tl_off_cpu){.reason = text_of(tl, &key), .ns = r->ns};
	}
	qsort(v, account->n_reasons, sizeof(*v), by_ns);
	lane->off_cpu = v;
	lane->n_off_cpu = account->n_reasons;
	return 0;
}
