/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * off: what a thread waited for while it was off the CPU: the foreign function and the system call
 * that it slept in, or the place in the runtime.
 */
#include <stdio.h>

#include "private.h"

#define MAX_REASONS 1024 /* of one thread; further ones are added up by their state */

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

struct off_reason {
	UT_hash_handle hh;
	struct off_key key;
	uint64_t ns;
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

int off__add(struct timeline *tl, const struct target_state *tg, struct thread *th,
	     enum tl_state state, const struct ev *ev, uint64_t ns)
{
	struct off_key key = key_of(tl, tg, state, ev);
	struct off_reason *entry;

	if (HASH_COUNT(th->off_reasons) >= MAX_REASONS) {
		key.syscall = WIRE_NO_SYSCALL;
		key.function = UINT32_MAX;
	}
	HASH_FIND(hh, th->off_reasons, &key, sizeof(key), entry);
	if (!entry) {
		entry = calloc(1, sizeof(*entry));
		if (!entry)
			return -ENOMEM;
		entry->key = key;
		HASH_ADD(hh, th->off_reasons, key, sizeof(entry->key), entry);
		if (!entry->hh.tbl) {
			free(entry);
			return -ENOMEM;
		}
	}
	entry->ns += ns;
	return 0;
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

static void forget_reasons(struct thread *th)
{
	struct off_reason *entry, *next;

	HASH_ITER (hh, th->off_reasons, entry, next) {
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the analyzer loses track of uthash */
		HASH_DEL(th->off_reasons, entry);
		free(entry);
	}
}

int off__finish(struct timeline *tl, struct thread *th)
{
	struct off_reason *entry, *next;
	struct tl_lane *lane = &th->lane;

	th->off_cpu = calloc(HASH_COUNT(th->off_reasons) + 1, sizeof(*th->off_cpu));
	if (!th->off_cpu)
		return -ENOMEM;
	HASH_ITER (hh, th->off_reasons, entry, next)
		/* cppcheck-suppress uninitvar ; set by the loop's head */
		th->off_cpu[lane->n_off_cpu++] =
			(struct tl_off_cpu){.reason = text_of(tl, &entry->key), .ns = entry->ns};
	qsort(th->off_cpu, lane->n_off_cpu, sizeof(*th->off_cpu), by_ns);
	lane->off_cpu = th->off_cpu;
	forget_reasons(th);
	return 0;
}

void off__free(struct thread *th)
{
	forget_reasons(th);
	free(th->off_cpu);
}
