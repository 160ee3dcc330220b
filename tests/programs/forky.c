/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The foreign functions of Forky.hs. */
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tally.h"

static struct tally tally = {.name = "forky_fork_1ms"};

void forky_fork_1ms(void);
void forky_fork_1ms(void)
{
	struct tally_start s = tally__begin();
	pid_t child = fork();

	if (child == 0) {
		tally__spin(1000000);
		_exit(0);
	}
	if (child < 0)
		abort();
	while (waitpid(child, NULL, 0) < 0)
		;
	tally__end(&tally, s);
}

void forky_short(void);
void forky_short(void)
{
	tally__spin(2000);
}

void forky_sleep(void);
void forky_sleep(void)
{
	sleep(100);
}

void forky_exec(void);
void forky_exec(void)
{
	execl("/bin/sleep", "sleep", "1", (char *)NULL);
	abort();
}

void forky_exec_shell(void);
void forky_exec_shell(void)
{
	execl("/bin/sh", "sh", "-c", "exec $FORKY_NEXT", (char *)NULL);
	abort();
}

void forky_exec_self(void);
void forky_exec_self(void)
{
	char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (len < 0)
		abort();
	/* by its own path, for the kernel names the process by that of the exec */
	path[len] = '\0';
	execl(path, "Forky", "fork", "50", (char *)NULL);
	abort();
}

void forky_crash(void);
void forky_crash(void)
{
	const struct rlimit none = {0, 0};

	setrlimit(RLIMIT_CORE, &none);
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
}

void forky_print(void);
void forky_print(void)
{
	tally__print(&tally, 1);
}
