/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sampler: a cpu-clock perf event on each online CPU.
 *
 * Its period varies. Otherwise a program that repeats something at a multiple of the period (a
 * request that takes 1.8 ms, at 1103 Hz) would be sampled at the same places each time, and all of
 * its time would be attributed to two functions. cpu-clock cannot randomise its period: it is an
 * hrtimer that keeps the period it has (kernel/events/core.c, perf_swevent_init_hrtimer(),
 * perf_swevent_hrtimer()), and restarts at the moment when another one is set
 * (__perf_event_period()).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/base.h"
#include "base/limit.h"
#include "keeper_priv.h"
#include "kernel_priv.h"
#include "safescope.skel.h"

/* A CPU's period changes after this many periods, but no sooner than after VARY_EVERY_NS, since
 * each change interrupts the CPU. */
#define VARY_PERIODS  16
#define VARY_EVERY_NS 50000000ULL
/* Periods differ from the mean by at most 1/VARY_PART of it. */
#define VARY_PART 4

/* How often events are checked. */
#define LOOK_EVERY_NS 5000000000ULL
/* How many offline CPUs are tried at each check: a virtual machine may have room for hundreds. */
#define ABSENT_AT_ONCE 4

/* One CPU's event. */
struct clock {
	int fd;		 /* the event; -1: none, the CPU is offline */
	uint32_t link;	 /* the keeper's id of the link that runs the program */
	uint64_t count;	 /* ns that the event had run for at the last check */
	bool failed;	 /* a failure has been reported */
	bool unreported; /* the CPU came online, and the mappings there are not reported yet */
};

struct sampler {
	struct bpf_program *prog;
	struct keeper *keeper;
	struct clock *clocks; /* by CPU */
	int n;
	int absent; /* the CPU from which on offline ones are tried next */
	uint64_t looked_ns;
	uint64_t least_ns, range_ns; /* periods: the shortest, and how much longer they may be */
	uint64_t vary_every_ns, varied_ns;
	uint64_t random; /* never 0 */
};

bool sampler__works(void)
{
	int fd = cpu_event__open_here(CPU_EVENT_CLOCK, 0, 1000000000);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

/* ── the period ──────────────────────────────────────────────────────────────────────────── */

/* Marsaglia's xorshift; good enough, since nobody gains by guessing the period. */
static uint64_t next_random(struct sampler *s)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return s->random;
}

static uint64_t next_period(struct sampler *s)
{
	return s->least_ns + next_random(s) % (s->range_ns + 1);
}

/*
 * Keeps the mean sampling rate what it would be with a constant period: half a period is lost at
 * each change, and periods between 1 - 1/VARY_PART and 1 + 1/VARY_PART, each kept equally long,
 * yield 1 + 1/(3 VARY_PART²) times as many samples (the mean of 1/x).
 */
static void choose_periods(struct sampler *s, uint32_t frequency_hz)
{
	uint64_t mean = 1000000000ULL / frequency_hz;

	s->vary_every_ns = MAX(VARY_PERIODS * mean, VARY_EVERY_NS);
	s->range_ns = 2 * mean / VARY_PART;
	s->least_ns = mean + mean / (3ULL * VARY_PART * VARY_PART) -
		      mean * mean / (2 * s->vary_every_ns) - s->range_ns / 2;
}

/* From time to time changes each CPU's period. NULL: does nothing. */
static void vary(struct sampler *s, uint64_t now_ns)
{
	if (!s || now_ns - s->varied_ns < s->vary_every_ns)
		return;
	s->varied_ns = now_ns;
	for (int cpu = 0; cpu < s->n; cpu++) {
		uint64_t period = next_period(s);

		/* fails if the CPU has gone offline */
		if (s->clocks[cpu].fd >= 0)
			ioctl(s->clocks[cpu].fd, PERF_EVENT_IOC_PERIOD, &period);
	}
}

/* ── on and off ──────────────────────────────────────────────────────────────────────────── */

static void report_failure(struct clock *c, int cpu, const char *what, int err)
{
	if (!c->failed)
		log_error("cpu %d: cannot %s: %s%s", cpu, what, strerror(-err),
			  err == -EMFILE || err == -ENOMEM
				  ? limit__why(err).text
				  : "; Linux 5.15 or later is needed, and --doctor shows what is "
				    "missing");
	c->failed = true;
}

static void stop_on(struct sampler *s, struct clock *c)
{
	keeper__drop(s->keeper, c->link, NULL);
	c->link = 0;
	c->count = 0;
	fd__close(&c->fd);
}

/* -ENODEV: the CPU is offline; -ETIMEDOUT: the keeper is busy. */
static int start_on(struct sampler *s, int cpu)
{
	struct clock *c = &s->clocks[cpu];
	int fd = cpu_event__open(s->keeper, CPU_EVENT_CLOCK, cpu, next_period(s)), link, err;

	if (fd < 0) {
		if (fd != -ENODEV && fd != -ETIMEDOUT)
			report_failure(c, cpu, "sample", fd);
		return fd;
	}
	c->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (c->fd < 0) {
		err = -errno;
		report_failure(c, cpu, "sample", err);
		close(fd);
		return err;
	}
	err = perf__link(s->prog, fd, 0, &link);
	if (!err)
		err = keeper__hold(s->keeper, KEEP_REST, link, &c->link);
	if (err) {
		report_failure(c, cpu, "attach the sampler", err);
		stop_on(s, c);
	}
	return err;
}

int sampler__start(struct bpf_program *prog, uint32_t frequency_hz, struct keeper *keeper,
		   struct sampler **ret_sampler)
{
	int cpus = libbpf_num_possible_cpus(), err = 0;
	struct sampler *s;

	if (cpus < 1 || !frequency_hz)
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->prog = prog;
	s->keeper = keeper;
	choose_periods(s, frequency_hz);
	s->varied_ns = s->looked_ns = time__monotonic_ns();
	if (getrandom(&s->random, sizeof(s->random), GRND_NONBLOCK) < 0 || !s->random)
		s->random = s->varied_ns | 1;
	s->clocks = calloc((size_t)cpus, sizeof(*s->clocks));
	if (!s->clocks)
		err = -ENOMEM;
	for (int cpu = 0; s->clocks && cpu < cpus; cpu++)
		s->clocks[s->n++].fd = -1;
	for (int cpu = 0; !err && cpu < cpus; cpu++) {
		err = start_on(s, cpu);
		if (err == -ENODEV)
			err = 0;
	}
	if (err)
		sampler__free(s);
	else
		*ret_sampler = s;
	return err;
}

/*
 * True if the event still runs. The kernel removes a CPU's events when it goes offline, as all CPUs
 * but one do when the machine is suspended, and does not restore them (kernel/events/core.c,
 * perf_event_exit_cpu()).
 */
static bool goes_on(struct clock *c)
{
	uint64_t before = c->count;
	ssize_t len = read(c->fd, &c->count, sizeof(c->count));

	return len < 0 || (len == sizeof(c->count) && c->count != before);
}

/* Has new mappings on a CPU that came online reported. If that fails the CPU is sampled all the
 * same, and it is tried again at a later check. */
static int revive(struct clock *c, int cpu, struct mappings *mappings)
{
	int err = mappings__revive(mappings, cpu);

	if (err && !c->unreported)
		log_verbose("cpu %d: sampled, but new mappings there are not reported yet: %s", cpu,
			    strerror(-err));
	c->unreported = err != 0;
	return err;
}

/* From time to time starts sampling on CPUs that have come online, for the first time or again.
 * NULL: does nothing. */
static void look_for_cpus(struct sampler *s, uint64_t now_ns, struct mappings *mappings)
{
	int first = s ? s->absent : 0, tried = 0, err;

	if (!s || now_ns - s->looked_ns < LOOK_EVERY_NS)
		return;
	s->looked_ns = now_ns;
	for (int i = 0; i < s->n; i++) {
		int cpu = (first + i) % s->n;
		struct clock *c = &s->clocks[cpu];
		bool runs = c->fd >= 0 && goes_on(c);

		if (runs && !c->unreported)
			continue;
		if (c->fd >= 0 && !runs)
			stop_on(s, c);
		if (tried == ABSENT_AT_ONCE)
			continue;
		err = runs ? 0 : start_on(s, cpu);
		if (!err && !runs)
			log_verbose("cpu %d: online, and sampled from now on", cpu);
		if (!err)
			err = revive(c, cpu, mappings);
		/* the keeper is busy: try again at the next check, and not once for each CPU */
		if (err == -ETIMEDOUT)
			return;
		if (err) {
			tried++;
			s->absent = (cpu + 1) % s->n;
		}
	}
}

void sampler__free(struct sampler *s)
{
	if (!s)
		return;
	for (int cpu = 0; cpu < s->n; cpu++)
		fd__close(&s->clocks[cpu].fd);
	free(s->clocks);
	free(s);
}

void kernel__turn_sampling(struct kernel *kernel, uint64_t now_ns)
{
	vary(kernel->sampler, now_ns);
	look_for_cpus(kernel->sampler, now_ns, kernel->mappings);
}

void kernel__sample_every(struct kernel *kernel, uint32_t n)
{
	kernel->skel->bss->sample_every = n;
}
