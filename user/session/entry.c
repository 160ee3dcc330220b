/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * entry: a second stop for a program that the session has started. At its exec only the program and
 * the dynamic linker are mapped; at its own first instruction, which the file's header names, its
 * libraries are mapped too. A debug register of the processor stops it there, so nothing is written
 * into its memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"

#include "command_priv.h"

#if defined(__x86_64__)

/* Intel SDM 3B, 18.2.4: breakpoint register 0, for execution, in this thread. */
#define DR7_EXECUTE_0 1UL

static int poke(pid_t pid, int reg, unsigned long value)
{
	size_t at = offsetof(struct user, u_debugreg) + (size_t)reg * sizeof(value);

	return ptrace(PTRACE_POKEUSER, pid, at, value) ? -errno : 0;
}

/* Entry address from the auxiliary vector, pairs of key and value. -ENOENT: no dynamic linker. */
static int entry_of(pid_t pid, unsigned long *ret_entry)
{
	unsigned long pair[2], entry = 0, linker = 0;
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/auxv", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (read(fd, pair, sizeof(pair)) == sizeof(pair) && pair[0] != AT_NULL) {
		if (pair[0] == AT_ENTRY)
			entry = pair[1];
		else if (pair[0] == AT_BASE)
			linker = pair[1];
	}
	close(fd);
	if (!entry || !linker)
		return -ENOENT;
	*ret_entry = entry;
	return 0;
}

int entry__set(pid_t pid)
{
	unsigned long entry = 0;
	int err = entry_of(pid, &entry);

	if (!err)
		err = poke(pid, 0, entry);
	return err ? err : poke(pid, 7, DR7_EXECUTE_0);
}

void entry__clear(pid_t pid)
{
	int err = poke(pid, 7, 0);

	if (err && err != -ESRCH)
		log_debug("pid %d: its debug registers cannot be cleared: %d", (int)pid, err);
}

__attribute__((noinline)) static void stop_here(void)
{
	/* keeps the compiler from removing the call */
	__asm__ volatile("");
}

/* Waits until it stops or ends, without reaping it; true if it was trapped by this signal. */
static bool stops_by(pid_t pid, int sig)
{
	siginfo_t info = {0};

	return waitid(P_PID, (id_t)pid, &info, WSTOPPED | WEXITED | WNOWAIT) == 0 &&
	       info.si_code == CLD_TRAPPED && info.si_status == sig;
}

bool entry__works(void)
{
	pid_t pid = fork();
	bool works;

	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, 0, 0) == 0 && raise(SIGSTOP) == 0)
			stop_here();
		_exit(0);
	}
	if (pid < 0)
		return false;
	works = stops_by(pid, SIGSTOP) && !poke(pid, 0, (unsigned long)stop_here) &&
		!poke(pid, 7, DR7_EXECUTE_0) && ptrace(PTRACE_CONT, pid, 0, 0) == 0 &&
		stops_by(pid, SIGTRAP);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return works;
}

#else

bool entry__works(void)
{
	return false;
}

int entry__set(pid_t pid)
{
	(void)pid;
	return -ENOTSUP;
}

void entry__clear(pid_t pid)
{
	(void)pid;
}

#endif
