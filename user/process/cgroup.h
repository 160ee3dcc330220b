/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cgroup: where a process runs, by its control group: a container, a pod, a service. */
#ifndef SAFESCOPED_PROCESS_CGROUP_H
#define SAFESCOPED_PROCESS_CGROUP_H

#include <stddef.h>
#include <sys/types.h>

#define CGROUP_PATH_SIZE 1024
#define CGROUP_NAME_SIZE 320
#define CGROUP_SHORT_ID	 12 /* of a container's digits, as engines show it */

/*
 * A service of the host's system manager has no slash. Whoever was given a group calls those below
 * as he likes, so what may be such a name is after whose it is: a user's manager's containers and
 * services after the manager ("user@1000.service/app.service"), services within a container after
 * its first digits ("1f2e3d4c5b6a/nginx.service"), those within another unit, or a group that is
 * none, after that ("machine-a.scope/nginx.service").
 */
struct cgroup {
	char path[CGROUP_PATH_SIZE]; /* in a hierarchy where it is in a container or a pod, else in
					the unified one, else in systemd's */
	char container[CGROUP_NAME_SIZE]; /* 64 hexadecimal digits, as Docker, containerd, CRI-O and
					     Podman name their groups; of several the outermost; "":
					     none */
	char pod[37];			  /* uid of the Kubernetes pod, with dashes; "": none, as
					     for all that users have, or is within a container */
	char service[CGROUP_NAME_SIZE];	  /* of systemd: "nginx.service"; "": none. What runs the
					     container, or all of a user's processes, is none */
};

/* The text of a file /proc/PID/cgroup, of any bytes. -ENOENT: no line is one; -ENAMETOOLONG. */
int cgroup__parse(const char *text, size_t len, struct cgroup *ret_cgroup);
/* Of a process. -ESRCH. */
int cgroup__of(pid_t pid, struct cgroup *ret_cgroup);

#endif
