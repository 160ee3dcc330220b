/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The budget: compares what the probes cost a target with --max-overhead. The trap is most of a
 * probe's cost, so filtering in the program would save nothing: a target over the budget loses its
 * call probes and is only sampled. While they are off their rate cannot be seen, so they are tried
 * again for a moment at growing intervals.
 */
#include <errno.h>
#include <string.h>

#include <bpf/bpf.h>

#include "base/base.h"
#include "base/retry.h"
#include "kernel_priv.h"
#include "safescope.skel.h"

#define BUDGET_WINDOW_NS 100000000ULL
/* How often to check which targets are due. */
#define BUDGET_TURN_NS 20000000ULL
/* The window of sparse sessions: with many targets, checking each one has a cost, too. */
#define BUDGET_SPARSE_NS  1000000000ULL
#define BUDGET_FIRST_NS	  1000000000ULL
#define BUDGET_LONGEST_NS 30000000000ULL
/* A single burst is no reason to take probes off; this many consecutive windows are, … */
#define BUDGET_WINDOWS_OVER 3
/* … and so are bursts that cost more beyond the budget than it allows in this time. */
#define BUDGET_DEBT_NS 5000000000ULL
/* The hits on calls from which a target's own price is taken: one in 16 is timed. */
#define PRICE_HITS 512
/* Share of the budget above which the three probes per collection become two, … */
#define GC_LIGHT_SHARE 0.25
/* share above which the two become one, … */
#define GC_LIGHTER_SHARE 0.5
/* … and how many windows in a row must be below half the first share before there are three
 * again. */
#define GC_WINDOWS_CALM 20

static struct wire_cost cost_of(struct kernel *kernel, pid_t pid)
{
	struct wire_heap_state heap = {};
	struct wire_cost cost = {};
	__u32 key = (__u32)pid;

	bpf_map_lookup_elem(bpf_map__fd(kernel->skel->maps.costs), &key, &cost);
	bpf_map_lookup_elem(bpf_map__fd(kernel->skel->maps.heaps), &key, &heap);
	cost.probe_hits += heap.hits;
	cost.gc_hits += heap.hits;
	return cost;
}

/* Hits of all probes except those on collections. */
static uint64_t call_hits(const struct wire_cost *cost)
{
	return cost->probe_hits - MIN(cost->gc_hits, cost->probe_hits);
}

/* The cost of one hit: the trap, and the programs' mean run time. */
static uint64_t cost_per_hit(struct kernel *kernel, struct bpf_program *const *programs, size_t n)
{
	return kernel->trap_ns + run_time__mean(kernel->run_time, programs, n);
}

/* True if calls are missed in this state. */
static bool are_off(enum probe_state state)
{
	return state != PROBES_ON && state != PROBES_TRIAL;
}

static void enter(struct attached *a, enum probe_state state, uint64_t now)
{
	uint64_t spent = now > a->since_ns ? now - a->since_ns : 0;

	if (are_off(a->state))
		a->off_ns += spent;
	else
		a->on_ns += spent;
	a->state = state;
	a->since_ns = now;
	a->over = 0;
	a->debt_ns = 0;
}

void budget__enter(struct kernel *kernel, struct attached *a, enum probe_state state,
		   uint64_t now_ns)
{
	struct wire_cost cost = cost_of(kernel, a->pid);

	enter(a, state, now_ns);
	a->checked_ns = now_ns;
	a->checked_hits = call_hits(&cost);
	a->gc_checked_ns = now_ns;
	a->gc_checked_hits = cost.gc_hits;
	a->gc_checked_run_ns = cost.gc_ns;
}

/* Targets that share the probes change state with the first one, and wait for it to try again. */
static void enter_group(struct kernel *kernel, struct attached *a, enum probe_state state,
			uint64_t now)
{
	struct attached *b = NULL;

	while ((b = kernel__next(kernel, b))) {
		if (!attached__share(a, b) || b->state == PROBES_ABSENT)
			continue;
		budget__enter(kernel, b, state, now);
		if (b != a && state == PROBES_OFF)
			b->retry_ns = UINT64_MAX;
	}
}

static void take_off(struct kernel *kernel, struct attached *a, uint64_t now, double percent)
{
	const struct attached *b = NULL;
	uint64_t last = 0;

	while ((b = kernel__next(kernel, b)))
		if (attached__share(a, b) && b->retry_ns != UINT64_MAX)
			last = MAX(last, b->retry_ns);
	if (!last) {
		a->retry_ns = BUDGET_FIRST_NS;
		log_warn("pid %d: the call probes cost %.1f %% of a CPU, more than --max-overhead "
			 "%g: switched off for now, sampling continues",
			 a->pid, percent, kernel->max_overhead_percent);
	} else {
		a->retry_ns = retry__longer(last, BUDGET_FIRST_NS, BUDGET_LONGEST_NS);
	}
	call_probes__off(kernel, a);
	enter_group(kernel, a, PROBES_OFF, now);
}

void budget__stop(struct kernel *kernel, struct attached *a, enum probe_kind kind, uint64_t now_ns)
{
	struct attached *b = NULL;

	if (kind >= PROBE_GC_SYNC) {
		gc_probes__off(kernel, a);
		return;
	}
	if (kind == PROBE_TICK) {
		probe__off(kernel, a->probes[kind]);
		return;
	}
	call_probes__off(kernel, a);
	enter_group(kernel, a, PROBES_OFF, now_ns);
	while ((b = kernel__next(kernel, b)))
		if (attached__share(a, b))
			b->retry_ns = UINT64_MAX;
}

/* The mean cost of one hit of each kind, over all targets; computed once a turn. */
struct prices {
	bool known;
	uint64_t call_ns; /* without the trap: for targets that have few hits so far */
	struct gc_prices gc;
};

static void ask_prices(struct kernel *kernel, struct prices *prices)
{
	struct bpf_program *const calls[] = {kernel->skel->progs.on_suspend,
					     kernel->skel->progs.on_resume};
	struct bpf_program *const gcs[] = {kernel->skel->progs.on_gc_sync,
					   kernel->skel->progs.on_gc_start,
					   kernel->skel->progs.on_gc_end};
	struct gc_prices *gc = &prices->gc;

	if (prices->known)
		return;
	prices->call_ns = run_time__mean(kernel->run_time, calls, ARRAY_SIZE(calls));
	gc->sync_ns = cost_per_hit(kernel, &gcs[0], 1);
	gc->start_ns = cost_per_hit(kernel, &gcs[1], 1);
	gc->end_ns = cost_per_hit(kernel, &gcs[2], 1);
	prices->known = true;
}

uint64_t budget__call_price(struct call_price *price, const struct wire_cost *cost, uint64_t shared)
{
	uint64_t hits = call_hits(cost);

	if (hits - price->hits >= PRICE_HITS) {
		price->each_ns = (cost->call_ns - price->ns) / (hits - price->hits);
		price->hits = hits;
		price->ns = cost->call_ns;
	}
	return price->each_ns ? price->each_ns : shared;
}

bool budget__in_debt(double *debt_ns, double percent, double max_percent, uint64_t window_ns)
{
	*debt_ns = MAX(*debt_ns + (percent - max_percent) / 100 * (double)window_ns, 0.0);
	return *debt_ns > max_percent / 100 * (double)BUDGET_DEBT_NS;
}

static void check(struct kernel *kernel, struct attached *a, uint64_t hits, uint64_t each,
		  uint64_t now)
{
	uint64_t window = now - a->checked_ns;
	double percent = 100.0 * (double)(hits - a->checked_hits) * (double)each / (double)window;
	bool over = percent > kernel->max_overhead_percent;
	bool debt = budget__in_debt(&a->debt_ns, percent, kernel->max_overhead_percent, window);

	a->checked_ns = now;
	a->checked_hits = hits;
	a->over = over ? a->over + 1 : 0;
	if (a->state == PROBES_TRIAL) {
		if (over) {
			take_off(kernel, a, now, percent);
		} else {
			a->retry_ns = BUDGET_FIRST_NS;
			enter(a, PROBES_ON, now);
		}
	} else if (a->over >= BUDGET_WINDOWS_OVER || debt) {
		take_off(kernel, a, now, percent);
	}
}

/* What one collection costs with these probes. */
static uint64_t price_of(const struct gc_prices *prices, enum gc_probes probes)
{
	return prices->end_ns + (probes != GC_PROBES_ENDS ? prices->sync_ns : 0) +
	       (probes == GC_PROBES_ALL ? prices->start_ns : 0);
}

double budget__gc_percent(const struct gc_prices *prices, enum gc_probes on, enum gc_probes would,
			  uint64_t spent_ns, uint64_t window_ns)
{
	uint64_t price = price_of(prices, on);
	double ratio = price ? (double)price_of(prices, would) / (double)price : 1;

	return 100.0 * (double)spent_ns * ratio / (double)window_ns;
}

/*
 * When there are that many collections, most are short, and the probe on their ends alone shows as
 * much for a third of the cost: the runtime itself notes when each began. Samples of allocation
 * also need the probe on the request, so that one stays on for longer. `percent` is the current
 * cost, `all` that of all three.
 */
static void lighten(struct kernel *kernel, struct attached *a, double percent, double all)
{
	enum gc_probes now = gc_probes__set_now(a);
	double max = kernel->max_overhead_percent;
	bool samples = a->wire.layout.cap_nursery && a->probes[PROBE_GC_SYNC];
	const struct attached *b = NULL;

	if (!a->wire.gct_clock || a->gc_off || !a->probes[PROBE_GC_END])
		return;
	a->gc_calm = all > GC_LIGHT_SHARE / 2 * max ? 0 : a->gc_calm + 1;
	/* who allocates is still known at the end, only not how much they had used up */
	if (kernel->sparse) {
		if (now != GC_PROBES_ENDS)
			gc_probes__set(kernel, a, GC_PROBES_ENDS);
		return;
	}
	if (now == GC_PROBES_ALL && all > GC_LIGHT_SHARE * max)
		gc_probes__set(kernel, a, samples ? GC_PROBES_REQUESTS : GC_PROBES_ENDS);
	else if (now == GC_PROBES_REQUESTS && percent > GC_LIGHTER_SHARE * max)
		gc_probes__set(kernel, a, GC_PROBES_ENDS);
	if (now == GC_PROBES_ALL)
		return;
	while ((b = kernel__next(kernel, b)))
		if (b->probes[PROBE_GC_START] == a->probes[PROBE_GC_START] &&
		    b->gc_calm < GC_WINDOWS_CALM)
			return;
	gc_probes__set(kernel, a, GC_PROBES_ALL);
}

static void check_gc(struct kernel *kernel, struct attached *a, const struct wire_cost *cost,
		     const struct gc_prices *prices, uint64_t now)
{
	uint64_t spent = cost->gc_ns - a->gc_checked_run_ns +
			 (cost->gc_hits - a->gc_checked_hits) * kernel->trap_ns;
	enum gc_probes on = gc_probes__set_now(a);
	uint64_t window = now - a->gc_checked_ns;
	double percent = budget__gc_percent(prices, on, on, spent, window);
	bool over = percent > kernel->max_overhead_percent;
	bool debt = budget__in_debt(&a->gc_debt_ns, percent, kernel->max_overhead_percent, window);

	lighten(kernel, a, percent, budget__gc_percent(prices, on, GC_PROBES_ALL, spent, window));
	a->gc_checked_ns = now;
	a->gc_checked_hits = cost->gc_hits;
	a->gc_checked_run_ns = cost->gc_ns;
	a->gc_over = over ? a->gc_over + 1 : 0;
	/* what more probes cost is no reason to take off those that are left */
	if (gc_probes__set_now(a) != on) {
		a->gc_over = 0;
		a->gc_debt_ns = 0;
		return;
	}
	if (a->gc_over < BUDGET_WINDOWS_OVER && !debt)
		return;
	log_warn("pid %d: the probes on collections cost %.1f %% of a CPU, more than "
		 "--max-overhead %g: switched off from now on",
		 a->pid, percent, kernel->max_overhead_percent);
	gc_probes__off(kernel, a);
}

pid_t kernel__next_gc_off(struct kernel *kernel)
{
	struct attached *a = NULL;

	while (kernel->gc_off_new && (a = kernel__next(kernel, a))) {
		if (!a->gc_off || a->gc_off_reported)
			continue;
		a->gc_off_reported = true;
		return a->pid;
	}
	kernel->gc_off_new = false;
	return 0;
}

static void try_again(struct kernel *kernel, struct attached *a, uint64_t now)
{
	int err = call_probes__on(kernel, a);

	/* tried again at the next turn */
	if (err == -EBUSY)
		return;
	if (err) {
		a->retry_ns = err == -ESTALE ? UINT64_MAX
					     : retry__longer(a->retry_ns, BUDGET_FIRST_NS,
							     BUDGET_LONGEST_NS);
		enter(a, PROBES_OFF, now);
		return;
	}
	enter_group(kernel, a, PROBES_TRIAL, now);
}

static bool is_due(const struct kernel *kernel, const struct attached *a, uint64_t now)
{
	/* the first check comes soon, and so does one after a check that was over the budget */
	bool calm = kernel->sparse && !a->over && a->checked_ns > a->since_ns;

	return (a->state == PROBES_ON &&
		now - a->checked_ns >= (calm ? BUDGET_SPARSE_NS : BUDGET_WINDOW_NS)) ||
	       (a->state == PROBES_TRIAL && now - a->checked_ns >= BUDGET_WINDOW_NS);
}

static bool is_gc_due(const struct kernel *kernel, const struct attached *a, uint64_t now)
{
	bool calm = kernel->sparse && !a->gc_over &&
		    (gc_probes__set_now(a) == GC_PROBES_ENDS || !a->wire.gct_clock);

	return attached__has_gc(a) &&
	       now - a->gc_checked_ns >= (calm ? BUDGET_SPARSE_NS : BUDGET_WINDOW_NS);
}

void kernel__budget(struct kernel *kernel, uint64_t now_ns)
{
	struct prices prices = {0};
	struct attached *a = NULL;

	run_time__turn(kernel->run_time, now_ns);
	probes__turn(kernel, now_ns);
	if (now_ns - kernel->budget_ns < BUDGET_TURN_NS)
		return;
	kernel->budget_ns = now_ns;
	while ((a = kernel__next(kernel, a))) {
		struct wire_cost cost = {};
		bool known = false;

		if (a->state == PROBES_OFF && now_ns - a->since_ns >= a->retry_ns) {
			try_again(kernel, a, now_ns);
		} else if (is_due(kernel, a, now_ns)) {
			ask_prices(kernel, &prices);
			cost = cost_of(kernel, a->pid);
			known = true;
			check(kernel, a, call_hits(&cost),
			      kernel->trap_ns +
				      budget__call_price(&a->price, &cost, prices.call_ns),
			      now_ns);
		}
		/* not if the other check has just begun both periods anew */
		if (is_gc_due(kernel, a, now_ns)) {
			ask_prices(kernel, &prices);
			if (!known)
				cost = cost_of(kernel, a->pid);
			check_gc(kernel, a, &cost, &prices.gc, now_ns);
		}
	}
}

void budget__times(const struct kernel *kernel, const struct attached *a, uint64_t now_ns,
		   struct kernel_cost *cost)
{
	uint64_t spent = now_ns > a->since_ns ? now_ns - a->since_ns : 0, off = 0;
	/* a process may end in the same turn of the loop */
	uint64_t since = held_up__unnoticed(kernel, now_ns);
	struct kernel_held_up held_up;

	if (are_off(a->state))
		off = spent;
	else if (since)
		off = now_ns - MIN(MAX(since, a->since_ns), now_ns);
	cost->paused_ns = a->off_ns + off;
	cost->observed_ns = a->on_ns + spent - off;
	kernel__held_up(kernel, &held_up);
	if (since || kernel->held_up_until_ns)
		cost->held_up_until_ns = now_ns;
	else if (held_up.ns > a->held_up_before_ns)
		cost->held_up_until_ns = kernel->held_up_ended_ns;
}

void kernel__cost(struct kernel *kernel, pid_t pid, uint64_t now_ns, struct kernel_cost *ret_cost)
{
	struct attached *a = kernel__find(kernel, pid);
	struct kernel_cost cost = {};
	struct wire_cost counted;

	cost.bpf_known = run_time__sum(kernel->run_time, now_ns, &cost.bpf_ns);
	if (a) {
		counted = cost_of(kernel, pid);
		cost.probe_hits = counted.probe_hits;
		cost.own_bpf_ns = counted.bpf_ns;
		cost.trap_ns = cost.probe_hits * kernel->trap_ns;
		budget__times(kernel, a, now_ns, &cost);
	}
	*ret_cost = cost;
}
