/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * When the loop has not turned for two seconds, the keeper takes the probes off. This file puts
 * them on again once the loop turns, after a pause that grows each time this happens soon after the
 * last time.
 */
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "base/retry.h"
#include "keeper_priv.h"
#include "kernel_priv.h"
#include "safescope.skel.h"

#define PAUSE_FIRST_NS	 1000000000ULL
#define PAUSE_LONGEST_NS 30000000000ULL
/* Hold-ups that are longer ago do not make the pause grow. */
#define FORGOTTEN_NS 60000000000ULL

static void beat(struct kernel *kernel, uint64_t now)
{
	kernel->beat_ns = now;
	kernel->skel->bss->beat_ns = now;
	keeper__beat(kernel->keeper);
}

static void hold_up(struct kernel *kernel, uint64_t now)
{
	struct attached *a = NULL;
	uint64_t since = kernel->beat_ns, pause = PAUSE_FIRST_NS;

	/* if the probes are still off since the last time, that pause is extended */
	if (!kernel->held_up_until_ns) {
		if (kernel->held_up.times && since - kernel->held_up_since_ns < FORGOTTEN_NS)
			pause = retry__longer(kernel->held_up_pause_ns, pause, PAUSE_LONGEST_NS);
		kernel->held_up_pause_ns = pause;
		kernel->held_up_since_ns = since;
		kernel->held_up.times++;
		log_warn("held up for %.1f s: the probes were switched off meanwhile, and will be "
			 "switched back on in %.0f s",
			 (double)(now - since) / 1e9, (double)pause / 1e9);
	}
	kernel->held_up_until_ns = now + kernel->held_up_pause_ns;
	while ((a = kernel__next(kernel, a))) {
		if (a->state != PROBES_ON && a->state != PROBES_TRIAL)
			continue;
		target__put_seen(kernel, a, false);
		/* a target attached in the middle of it has lost no more time than since then */
		budget__enter(kernel, a, PROBES_HELD_UP, MAX(since, a->since_ns));
	}
	/* the keeper has already done so, except for probes that it was given since */
	for (struct probe *p = kernel->probes; p; p = p->hh.next) {
		bool was_on = p->held_up || p->on;

		probe__off(kernel, p);
		p->held_up = was_on;
	}
}

/* False: a probe is still being detached. */
static bool may_come_back(const struct kernel *kernel)
{
	for (const struct probe *p = kernel->probes; p; p = p->hh.next)
		if (p->held_up && !probe__may_be_on(kernel, p))
			return false;
	return true;
}

/* The probe's file was overwritten, so it stays off; reports that for all targets that use it. */
static void give_up(struct kernel *kernel, const struct probe *p)
{
	struct attached *a = NULL;

	if (p->key.kind < PROBE_GC_SYNC)
		return;
	while ((a = kernel__next(kernel, a)))
		if (a->probes[p->key.kind] == p)
			a->gc_off |= gc_probes__are_off(a);
	kernel->gc_off_new = true;
}

/*
 * Switches the probes that were on back on. Returns how many are left for later; that excludes call
 * probes, which budget.c tries again, and probes that nobody uses, which come on for their next
 * user.
 */
static size_t put_on(struct kernel *kernel, int *ret_err)
{
	size_t left = 0;

	for (struct probe *p = kernel->probes; p; p = p->hh.next) {
		int err = p->held_up ? probe__on(kernel, p) : 0;

		if (!err)
			continue;
		p->held_up = err != -ESTALE && p->key.kind >= PROBE_TICK && p->refs;
		if (err == -ESTALE)
			give_up(kernel, p);
		else
			*ret_err = err;
		left += p->held_up;
	}
	return left;
}

static void come_back(struct kernel *kernel, uint64_t now)
{
	struct attached *a = NULL;
	int err = 0;
	size_t left = put_on(kernel, &err);

	if (err)
		log_warn("cannot switch some probes back on: %s%s", strerror(-err),
			 left ? "; trying again later" : "");
	retry__end(&kernel->left);
	if (left)
		retry__begin(&kernel->left, now, PAUSE_FIRST_NS, PAUSE_LONGEST_NS);
	while ((a = kernel__next(kernel, a))) {
		bool on;

		if (a->state != PROBES_HELD_UP)
			continue;
		on = a->probes[PROBE_SUSPEND]->on && a->probes[PROBE_RESUME]->on;
		if (on)
			target__put_seen(kernel, a, true);
		else
			a->retry_ns = PAUSE_FIRST_NS;
		budget__enter(kernel, a, on ? PROBES_ON : PROBES_OFF, now);
	}
	kernel->held_up.ns += now - kernel->held_up_since_ns;
	kernel->held_up_until_ns = 0;
	kernel->held_up_ended_ns = now;
}

/* At growing intervals, as in budget.c. */
static void try_left(struct kernel *kernel, uint64_t now)
{
	int err = 0;
	size_t left = put_on(kernel, &err);

	if (left) {
		retry__begin(&kernel->left, now, PAUSE_FIRST_NS, PAUSE_LONGEST_NS);
		log_debug("cannot switch %zu probes back on: %s", left, strerror(-err));
	} else {
		retry__end(&kernel->left);
		log_verbose("no more probes to switch back on");
	}
}

static bool was_held_up(const struct kernel *kernel, uint64_t taken, uint64_t now)
{
	/* by then the programs have noticed it by themselves (target_of() in bpf/maps.bpf.h) */
	return taken != kernel->times_taken ||
	       (now > kernel->beat_ns &&
		now - kernel->beat_ns > WIRE_HELD_UP_NS * machine__slowness());
}

/*
 * What the keeper has taken off since the last turn must be noticed before the next beat: the time
 * of the last beat is the only record of when it happened.
 */
static void turn(struct kernel *kernel, uint64_t now)
{
	uint64_t taken = keeper__times_taken(kernel->keeper);

	if (was_held_up(kernel, taken, now))
		hold_up(kernel, now);
	kernel->times_taken = taken;
	beat(kernel, now);
}

uint64_t held_up__unnoticed(const struct kernel *kernel, uint64_t now)
{
	if (!kernel->beat_ns || !was_held_up(kernel, keeper__times_taken(kernel->keeper), now))
		return 0;
	return kernel->beat_ns;
}

void held_up__begin(struct kernel *kernel)
{
	uint64_t now = time__monotonic_ns();

	if (kernel->beat_ns)
		turn(kernel, now);
	else
		beat(kernel, now);
}

int kernel__beat(struct kernel *kernel)
{
	uint64_t now = time__monotonic_ns();

	if (!keeper__works(kernel->keeper))
		return -ENOLINK;
	turn(kernel, now);
	leases__turn(kernel, now);
	if (kernel->held_up_until_ns && now >= kernel->held_up_until_ns && may_come_back(kernel))
		come_back(kernel, now);
	if (retry__has_begun(&kernel->left) && !retry__waits(&kernel->left, now) &&
	    !kernel->held_up_until_ns)
		try_left(kernel, now);
	return 0;
}

int kernel__watch_fd(const struct kernel *kernel)
{
	return keeper__fd(kernel->keeper);
}

void kernel__held_up(const struct kernel *kernel, struct kernel_held_up *ret_held_up)
{
	*ret_held_up = kernel->held_up;
	if (kernel->held_up_until_ns)
		ret_held_up->ns += time__monotonic_ns() - kernel->held_up_since_ns;
}
