/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Attaches a program to a perf event. libbpf's own link would keep a second reference to the
 * event. */
#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>

#include <bpf/bpf.h>

#include "base/base.h"
#include "kernel_priv.h"

int perf__link(struct bpf_program *prog, int event_fd, uint64_t cookie, int *ret_fd)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .perf_event.bpf_cookie = cookie);
	int fd = bpf_link_create(bpf_program__fd(prog), event_fd, BPF_PERF_EVENT, &opts);
	int err = fd < 0 || ioctl(event_fd, PERF_EVENT_IOC_ENABLE, 0) ? -errno : 0;

	fd__close(&event_fd);
	if (err)
		fd__close(&fd);
	else
		*ret_fd = fd;
	return err;
}
