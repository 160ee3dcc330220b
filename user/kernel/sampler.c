/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sampler: a cpu-clock perf event on each CPU that is online. */
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "keeper_priv.h"
#include "kernel_priv.h"
#include "safescope.skel.h"

static int open_clock(int cpu, uint32_t frequency_hz)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.freq = 1,
		.sample_freq = frequency_hz,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

bool sampler__works(void)
{
	int fd = open_clock(0, 1);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

int sampler__start(struct bpf_program *prog, uint32_t frequency_hz, struct keeper *keeper)
{
	int cpus = libbpf_num_possible_cpus();

	if (cpus < 1)
		return -EINVAL;
	for (int cpu = 0; cpu < cpus; cpu++) {
		int fd = open_clock(cpu, frequency_hz), err;
		uint32_t id;

		if (fd == -ENODEV)
			continue; /* offline */
		if (fd < 0) {
			log_error("cpu %d: cannot sample: %s; --doctor shows what is missing", cpu,
				  strerror(-fd));
			return fd;
		}
		err = perf__link(prog, fd, &fd);
		if (!err)
			err = keeper__hold(keeper, KEEP_REST, fd, &id);
		if (err) {
			log_error("cpu %d: cannot attach the sampler: %s; Linux 5.15 or later is "
				  "needed",
				  cpu, strerror(-err));
			return err;
		}
	}
	return 0;
}

void kernel__sample_every(struct kernel *kernel, uint32_t n)
{
	kernel->skel->bss->sample_every = n;
}
