/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sampler: a cpu-clock perf event on each CPU that is online. */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "kernel_priv.h"

struct sampler {
	struct bpf_link **links;
	int n;
};

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

int sampler__new(struct bpf_program *prog, uint32_t frequency_hz, struct sampler **ret_sampler)
{
	int cpus = libbpf_num_possible_cpus(), err = 0;
	struct sampler *sampler = calloc(1, sizeof(*sampler));

	if (!sampler)
		return -ENOMEM;
	if (cpus < 1) {
		err = -EINVAL;
		goto fail;
	}
	sampler->links = calloc((size_t)cpus, sizeof(struct bpf_link *));
	if (!sampler->links) {
		err = -ENOMEM;
		goto fail;
	}
	for (int cpu = 0; cpu < cpus; cpu++) {
		int fd = open_clock(cpu, frequency_hz);

		if (fd == -ENODEV)
			continue; /* offline */
		if (fd < 0) {
			err = fd;
			log_error("cpu %d: cannot sample: %s; --doctor shows what is missing", cpu,
				  strerror(-err));
			goto fail;
		}
		sampler->links[sampler->n] = bpf_program__attach_perf_event(prog, fd);
		if (!sampler->links[sampler->n]) {
			err = -errno;
			close(fd);
			log_error("cpu %d: cannot attach the sampler: %s; Linux 5.15 or later is "
				  "needed",
				  cpu, strerror(-err));
			goto fail;
		}
		sampler->n++;
	}
	*ret_sampler = sampler;
	return 0;
fail:
	sampler__free(sampler);
	return err;
}

void sampler__free(struct sampler *sampler)
{
	if (!sampler)
		return;
	for (int i = 0; i < sampler->n; i++)
		bpf_link__destroy(sampler->links[i]);
	free(sampler->links);
	free(sampler);
}
