/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sampler: a cpu-clock perf event on each CPU that is online.
 *
 * Its period varies, or a program that does the same again and again in a multiple of it (a request
 * that takes 1.8 ms, at 1103 Hz) would be sampled at the same places each time: all of its time is
 * with two functions then. cpu-clock has no random period of its own: it is an hrtimer that keeps
 * the one it has (kernel/events/core.c, perf_swevent_init_hrtimer(), perf_swevent_hrtimer()), and
 * starts again from the moment at which another one is set (__perf_event_period()).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "keeper_priv.h"
#include "kernel_priv.h"
#include "safescope.skel.h"

/* A CPU's period is another one after so many of them, but no sooner than after VARY_EVERY_NS: each
 * change interrupts the CPU. */
#define VARY_PERIODS  16
#define VARY_EVERY_NS 50000000ULL
/* It is this part of the mean one shorter or longer, at the most. */
#define VARY_PART 4

struct sampler {
	int *fds; /* an event for each CPU that is online */
	size_t n;
	uint64_t least_ns, range_ns; /* periods: from, and so much more */
	uint64_t vary_every_ns, varied_ns;
	uint64_t random; /* never 0 */
};

static int open_clock(int cpu, uint64_t period_ns)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period_ns,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

bool sampler__works(void)
{
	int fd = open_clock(0, 1000000000);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

/* ── the period ──────────────────────────────────────────────────────────────────────────── */

/* Good enough for what nobody gains by guessing (Marsaglia's xorshift). */
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
 * So that there are as many samples as without: half a period is lost at each change, and of
 * periods between 1 - 1/VARY_PART and 1 + 1/VARY_PART that are kept equally long there are
 * 1 + 1/(3 VARY_PART²) times as many (the mean of 1/x).
 */
static void choose_periods(struct sampler *s, uint32_t frequency_hz)
{
	uint64_t mean = 1000000000ULL / frequency_hz;

	s->vary_every_ns = MAX(VARY_PERIODS * mean, VARY_EVERY_NS);
	s->range_ns = 2 * mean / VARY_PART;
	s->least_ns = mean + mean / (3ULL * VARY_PART * VARY_PART) -
		      mean * mean / (2 * s->vary_every_ns) - s->range_ns / 2;
}

void sampler__vary(struct sampler *s, uint64_t now_ns)
{
	if (!s || now_ns - s->varied_ns < s->vary_every_ns)
		return;
	s->varied_ns = now_ns;
	for (size_t i = 0; i < s->n; i++) {
		uint64_t period = next_period(s);

		/* of a CPU that has gone offline, it fails */
		ioctl(s->fds[i], PERF_EVENT_IOC_PERIOD, &period);
	}
}

/* ── on and off ──────────────────────────────────────────────────────────────────────────── */

/* -ENODEV: the CPU is offline. */
static int start_on(struct sampler *s, int cpu, struct bpf_program *prog, struct keeper *keeper)
{
	int fd = open_clock(cpu, next_period(s)), link;
	uint32_t id;
	int err;

	if (fd < 0) {
		if (fd != -ENODEV)
			log_error("cpu %d: cannot sample: %s; --doctor shows what is missing", cpu,
				  strerror(-fd));
		return fd;
	}
	s->fds[s->n] = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (s->fds[s->n] < 0) {
		err = -errno;
		log_error("cpu %d: cannot sample: %s", cpu, strerror(-err));
		close(fd);
		return err;
	}
	s->n++;
	err = perf__link(prog, fd, &link);
	if (!err)
		err = keeper__hold(keeper, KEEP_REST, link, &id);
	if (err)
		log_error("cpu %d: cannot attach the sampler: %s; Linux 5.15 or later is needed",
			  cpu, strerror(-err));
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
	choose_periods(s, frequency_hz);
	s->varied_ns = time__monotonic_ns();
	if (getrandom(&s->random, sizeof(s->random), GRND_NONBLOCK) < 0 || !s->random)
		s->random = s->varied_ns | 1;
	s->fds = calloc((size_t)cpus, sizeof(*s->fds));
	if (!s->fds)
		err = -ENOMEM;
	for (int cpu = 0; !err && cpu < cpus; cpu++) {
		err = start_on(s, cpu, prog, keeper);
		if (err == -ENODEV)
			err = 0;
	}
	if (err)
		sampler__free(s);
	else
		*ret_sampler = s;
	return err;
}

void sampler__free(struct sampler *s)
{
	if (!s)
		return;
	for (size_t i = 0; s->fds && i < s->n; i++)
		close(s->fds[i]);
	free(s->fds);
	free(s);
}

void kernel__vary_sampling(struct kernel *kernel, uint64_t now_ns)
{
	sampler__vary(kernel->sampler, now_ns);
}

void kernel__sample_every(struct kernel *kernel, uint32_t n)
{
	kernel->skel->bss->sample_every = n;
}
