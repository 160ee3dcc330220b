/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Perf events of one CPU, for all processes that run on it. */
#include <errno.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "keeper_priv.h"
#include "kernel_priv.h"

static int perf_event_open(struct perf_event_attr *attr, int cpu)
{
	int fd = (int)syscall(SYS_perf_event_open, attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int cpu_event__open_here(enum cpu_event what, int cpu, uint64_t period_ns)
{
	struct perf_event_attr clock = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(clock),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period_ns,
	};
	struct perf_event_attr mappings = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(mappings),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_period = 1,
		.mmap = 1,
		.mmap2 = 1,
		.exclude_kernel = 1,
		.watermark = 1,
		.wakeup_watermark = 1,
	};

	switch (what) {
	case CPU_EVENT_CLOCK:
		return perf_event_open(&clock, cpu);
	case CPU_EVENT_MAPPINGS:
		return perf_event_open(&mappings, cpu);
	}
	return -EINVAL;
}

int cpu_event__open(struct keeper *keeper, enum cpu_event what, int cpu, uint64_t period_ns)
{
	int fd = cpu_event__open_here(what, cpu, period_ns), by_keeper;

	if ((fd != -EACCES && fd != -EPERM) || !keeper)
		return fd;
	by_keeper = keeper__open_event(keeper, what, cpu, period_ns);
	/* report the original refusal, not that there is no keeper */
	return by_keeper == -EPIPE ? fd : by_keeper;
}
