/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The children that confine has started in this program: how many there are, and which have not
 * died. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

#include "base/base.h"
#include "confine_priv.h"

/* One table for the program, as children are process-wide. */
static struct child {
	pid_t pid; /* 0: free */
	uid_t user;
	bool lost; /* killed, and not reaped yet */
} children[CONFINE_MAX];

static struct child *find(pid_t pid)
{
	for (size_t i = 0; i < ARRAY_SIZE(children); i++)
		if (children[i].pid == pid)
			return &children[i];
	return NULL;
}

size_t confine__reap(void)
{
	size_t lost = 0;

	for (size_t i = 0; i < ARRAY_SIZE(children); i++) {
		struct child *c = &children[i];
		pid_t got;

		if (!c->pid || !c->lost)
			continue;
		got = waitpid(c->pid, NULL, WNOHANG);
		if (got == c->pid || (got < 0 && errno == ECHILD))
			c->pid = 0;
		else
			lost++;
	}
	return lost;
}

static size_t lost_of(uid_t user)
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(children); i++)
		n += children[i].pid && children[i].lost && children[i].user == user;
	return n;
}

int confine_children__fork(const struct confine *how, pid_t *ret_pid)
{
	size_t lost = confine__reap();
	struct child *c = find(0);
	pid_t pid;

	if (!c || lost >= CONFINE_MAX_LOST ||
	    (how->user != CONFINE_NOBODY && lost_of(how->user) >= CONFINE_MAX_LOST_USER))
		return -EBUSY;
	pid = confine_fork();
	if (pid < 0)
		return pid;
	if (pid > 0)
		*c = (struct child){.pid = pid, .user = how->user};
	*ret_pid = pid;
	return 0;
}

void confine_children__gone(pid_t pid)
{
	struct child *c = find(pid);

	if (c)
		c->pid = 0;
}

void confine_children__kill(pid_t pid)
{
	struct child *c = find(pid);

	kill(pid, SIGKILL);
	if (c)
		c->lost = true;
	confine__reap();
}

uint64_t confine_children__cpu_ns(pid_t pid)
{
	struct timespec cpu;
	clockid_t clock;

	if (!pid || clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &cpu))
		return 0;
	return (uint64_t)cpu.tv_sec * 1000000000ULL + (uint64_t)cpu.tv_nsec;
}

/* A sender has one child; kernels without CONFIG_PROC_CHILDREN do not show it. */
static uint64_t cpu_of_its_children(pid_t pid)
{
	char path[64], pids[256], *at = pids, *end;
	uint64_t sum = 0;
	FILE *file;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	n = fread(pids, 1, sizeof(pids) - 1, file);
	fclose(file);
	pids[n] = '\0';
	for (long child = strtol(at, &end, 10); end != at; child = strtol(at, &end, 10)) {
		sum += confine_children__cpu_ns((pid_t)child);
		at = end;
	}
	return sum;
}

uint64_t confine__running_cpu_ns(void)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < ARRAY_SIZE(children); i++)
		if (children[i].pid)
			sum += confine_children__cpu_ns(children[i].pid) +
			       cpu_of_its_children(children[i].pid);
	return sum;
}
