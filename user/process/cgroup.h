/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cgroup: identifies the container, pod or service that a process runs in, by its control group. */
#ifndef SAFESCOPED_PROCESS_CGROUP_H
#define SAFESCOPED_PROCESS_CGROUP_H

#include <stddef.h>
#include <sys/types.h>

#define CGROUP_PATH_SIZE 1024
#define CGROUP_NAME_SIZE 320
#define CGROUP_SHORT_ID	 12 /* digits of a container id that are shown, as engines do */

/*
 * A service of the host's system manager has a name without a slash. Whoever owns a group names the
 * groups below it freely, so any other name is prefixed with its owner: containers and services of
 * a user's manager with the manager ("user@1000.service/app.service"), services within a container
 * with its first digits ("1f2e3d4c5b6a/nginx.service"), those within another unit or a plain group
 * with that ("machine-a.scope/nginx.service").
 */
struct cgroup {
	char path[CGROUP_PATH_SIZE]; /* in the hierarchy that shows a container or pod, else in the
					unified one, else in systemd's */
	char container[CGROUP_NAME_SIZE]; /* 64 hexadecimal digits, as Docker, containerd, CRI-O and
					     Podman name their groups; the outermost if nested; "":
					     none */
	char pod[37]; /* uid of the Kubernetes pod, with dashes, or a static pod's 32 digits; "":
			 none. Not looked for in users' groups or within a container */
	char service[CGROUP_NAME_SIZE]; /* of systemd: "nginx.service"; "": none. Does not count the
					   service that runs the container or all of a user's
					   processes */
};

/* Parses the text of /proc/PID/cgroup, which may be any bytes. -ENOENT: no valid line;
 * -ENAMETOOLONG. */
int cgroup__parse(const char *text, size_t len, struct cgroup *ret_cgroup);
/* The control group of a process. -ESRCH. */
int cgroup__of(pid_t pid, struct cgroup *ret_cgroup);

#endif
