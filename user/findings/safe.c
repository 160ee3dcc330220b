/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * findings: safe calls whose overhead exceeds their work, being so short that releasing and
 * reacquiring the capability is most of it; and waits for a capability after safe calls.
 */
#include <inttypes.h>

#include "findings_priv.h"

/*
 * What suspendThread and resumeThread themselves cost when nobody else wants the capability: the
 * difference between a null safe call and a null unsafe call, the minimum of many rounds, as
 * measured by scripts/bench-safe-call. On a 2-core EPYC guest with GHC 9.0.2: 37 to 68 ns with
 * -threaded, median 62; 25 to 40 without, median 29. GHC 9.6.6 and 9.10.3 differ by less than the
 * rounds do. The probes' cost is not included.
 */
#define SAFE_CALL_NS		60
#define SAFE_CALL_UNTHREADED_NS 30

/*
 * Calls that may take longer are not candidates for `unsafe`, however short most of them are: no
 * collection can begin while one lasts. The usual rule is 10 µs; the probes add one or two. Where a
 * trap takes several microseconds, so do the interrupts and samples that one call in a hundred
 * meets.
 */
#define UNSAFE_MOST_NS 12000
#define USUAL_TRAP_NS  1000
/* If a call does more work than this, the overhead is small in comparison. */
#define CHEAP_NS 1000
/* The best possible resolution of a call's time after the probes' own is subtracted. */
#define RESOLUTION_NS 500
/* The overhead's share of the program's own CPU time. That is all CPU time less the probes'
 * estimated cost, and rather too high: the effect of traps on caches is not in the estimate. */
#define OVERHEAD_PERCENT 2
/* A call that is off the CPU, preemption aside, for less than this share of its wall time does not
 * block. */
#define NEVER_BLOCKS_PERCENT 1
/* Rarer calls cannot cost much. */
#define CALLS_PER_SECOND 5000

/* The time that threads waited for a capability: its share of the session, and of the threads' time
 * in and after safe calls. */
#define CAP_WAIT_PERCENT      10
#define CAP_WAIT_CALL_PERCENT 10
#define CAP_WAIT_LEAST_NS     20000000

/* ── calls that are too short to be safe ─────────────────────────────────────────────────── */

/* The estimated cost of one trap, including the BPF program that runs in it. */
static uint64_t trap_ns(const struct pic_target *t)
{
	uint64_t ns = t->trap_ns_estimated + (t->bpf_ns_known ? t->bpf_ns : 0);

	return t->probe_hits ? ns / t->probe_hits : 0;
}

/*
 * What the session's own probes add to each call's wall time: the return from suspendThread's trap
 * plus the entry into resumeThread's, together one trap. The shortest call may be that short only
 * because its traps were: where a trap takes from one to several microseconds, most calls had
 * longer ones.
 */
static uint64_t bias_ns(const struct pic_target *t, const struct pic_call *call)
{
	uint64_t trap = trap_ns(t);

	return MAX(MIN(call->min_ns, 2 * trap), MIN(call->p50_ns, trap));
}

static uint64_t unsafe_most_ns(const struct pic_target *t)
{
	return UNSAFE_MOST_NS / USUAL_TRAP_NS * MAX(USUAL_TRAP_NS, trap_ns(t));
}

/* The uncertainty of a call's work: traps vary by this much with what else runs on the core. */
static uint64_t uncertain_ns(const struct pic_target *t)
{
	return MAX(RESOLUTION_NS, trap_ns(t) / 2);
}

/* The program's CPU time while calls were counted, less what the probes took of it. */
static uint64_t own_cpu_ns(const struct finder *f, const struct pic_call *call)
{
	double seen = (double)f->cpu_ns * MIN(MAX(call->observed_share, 0), 1);
	uint64_t probes = f->t->trap_ns_estimated + (f->t->bpf_ns_known ? f->t->bpf_ns : 0);

	return (uint64_t)seen > probes ? (uint64_t)seen - probes : 0;
}

static void look_for_cheap(struct finder *f, const struct pic_call *call)
{
	uint64_t each = f->t->threaded ? SAFE_CALL_NS : SAFE_CALL_UNTHREADED_NS, work, overhead;
	uint64_t cpu, wall = human__whole((double)f->wall_ns * call->observed_share);
	uint64_t uncertain = uncertain_ns(f->t);
	const char *took, *from = finding__caller(f, call->caller);

	if (!call->calls || !wall || call->called_back || call->p99_ns > unsafe_most_ns(f->t) ||
	    (double)call->calls * 1e9 < (double)CALLS_PER_SECOND * (double)wall ||
	    finding__share(call->blocked_ns, call->wall_ns, NEVER_BLOCKS_PERCENT))
		return;
	/* use the median: other load on the machine makes a few calls long */
	work = call->p50_ns - MIN(call->p50_ns, bias_ns(f->t, call));
	overhead = call->calls * each;
	cpu = MAX(own_cpu_ns(f, call), overhead);
	if (work > CHEAP_NS - RESOLUTION_NS + uncertain ||
	    !finding__share(overhead, cpu, OVERHEAD_PERCENT))
		return;
	/* it is the difference of two times of a microsecond or two */
	took = finding__text(f, work >= uncertain ? "about %s" : "less than %s",
			     human__duration(work >= uncertain ? work : uncertain).s);
	finding__add(f, "safe_call_overhead", overhead, call->site,
		     "The safe call %s%s%s was made %s%s times a second and took %s: leaving and "
		     "taking back the capability costs about %s each time (calibrated, not "
		     "measured here)%s; it never blocked: a "
		     "candidate for `unsafe` if it never calls back into Haskell",
		     call->function, from, *from ? "," : "", call->exact ? "" : "at least ",
		     finding__rate(call->calls, wall).s, took, human__duration(each).s,
		     work < uncertain ? ", maybe as much as the work itself" : "");
}

/* ── waiting for a capability ────────────────────────────────────────────────────────────── */

/* The site with the longest wait that was not for a CPU: on a busy machine, returning threads find
 * many others ready, whatever they called. */
static const struct pic_call *most_waited(const struct pic_target *t)
{
	const struct pic_call *most = NULL;

	for (size_t i = 0; i < t->n_calls; i++) {
		const struct pic_call *call = &t->calls[i];

		if (call->cap_only_ns && (!most || call->cap_only_ns > most->cap_only_ns))
			most = call;
	}
	return most;
}

static void look_for_waits(struct finder *f)
{
	const struct pic_call *most = most_waited(f->t);
	uint64_t wait = f->t->overlaps.cap_wait_ns, calls = 0;

	for (size_t i = 0; i < f->threads->n; i++)
		calls += f->threads->v[i].states_ns[ST_SAFE_CALL_CPU];
	/* sleeping calls are excluded: a server's threads sleep in them most of the time */
	if (wait < CAP_WAIT_LEAST_NS || !finding__share(wait, f->wall_ns, CAP_WAIT_PERCENT) ||
	    !finding__share(wait, wait + calls, CAP_WAIT_CALL_PERCENT))
		return;
	if (!most) {
		finding__add(f, "capability_wait", wait, "",
			     "Threads waited %s for a capability after safe calls",
			     human__duration(wait).s);
		return;
	}
	finding__add(f, "capability_wait", wait, most->site,
		     "Threads waited %s for a capability after safe calls: more of them had "
		     "Haskell code to run than there are capabilities (%" PRIu32
		     "); %s of it after %s%s (%s)",
		     human__duration(wait).s, f->t->capabilities,
		     human__duration(MIN(most->cap_only_ns, wait)).s, most->function,
		     finding__caller(f, most->caller),
		     finding__counted(most->calls, "call", "calls").s);
}

void findings__safe(struct finder *f)
{
	for (size_t i = 0; i < f->t->n_calls && !f->err; i++)
		look_for_cheap(f, &f->t->calls[i]);
	look_for_waits(f);
}
