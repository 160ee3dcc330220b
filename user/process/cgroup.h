/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cgroup: where a process runs, by its control group: a container, a pod, a service. */
#ifndef SAFESCOPED_PROCESS_CGROUP_H
#define SAFESCOPED_PROCESS_CGROUP_H

#include <stddef.h>
#include <sys/types.h>

#define CGROUP_PATH_SIZE 1024

struct cgroup {
	char path[CGROUP_PATH_SIZE]; /* in a hierarchy where it is in a container or a pod, else in
					the unified one, else in systemd's */
	char container[65];	     /* 64 hexadecimal digits, as Docker, containerd, CRI-O and
					Podman name their groups; "": none */
	char pod[37];		     /* uid of the Kubernetes pod, with dashes; "": none */
	char service[128];	     /* of systemd: "nginx.service"; "": none. What runs the
					container, or all of a user's processes, is none */
};

/* The text of a file /proc/PID/cgroup, of any bytes. -ENOENT: no line is one; -ENAMETOOLONG. */
int cgroup__parse(const char *text, size_t len, struct cgroup *ret_cgroup);
/* Of a process. -ESRCH. */
int cgroup__of(pid_t pid, struct cgroup *ret_cgroup);

#endif
