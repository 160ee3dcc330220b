/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The foreign functions of Forks.hs. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tally.h"

static uint64_t begun_ns;
static struct tally work = {.name = "forks_work"};

void forks_begin(void);
void forks_begin(void)
{
	begun_ns = tally__clock(CLOCK_MONOTONIC);
	work.calls = work.wall_ns = work.cpu_ns = 0;
}

/* 3 ms on the CPU, 5 ms asleep. */
void forks_work(void);
void forks_work(void)
{
	struct tally_start s = tally__begin();

	tally__spin(3000000);
	tally__sleep(5000000);
	tally__end(&work, s);
}

/* Prints one line: the process's own clocks since it began, and those of its calls. */
void forks_print(const char *who);
void forks_print(const char *who)
{
	char line[256];
	int n = snprintf(line, sizeof(line),
			 "{\"who\": \"%s\", \"pid\": %d, \"begun_ns\": %llu, \"wall_ns\": %llu, "
			 "\"cpu_ns\": %llu, \"calls\": %llu, \"call_wall_ns\": %llu, "
			 "\"call_cpu_ns\": %llu}\n",
			 who, (int)getpid(), (unsigned long long)begun_ns,
			 (unsigned long long)(tally__clock(CLOCK_MONOTONIC) - begun_ns),
			 (unsigned long long)tally__clock(CLOCK_PROCESS_CPUTIME_ID),
			 (unsigned long long)work.calls, (unsigned long long)work.wall_ns,
			 (unsigned long long)work.cpu_ns);

	if (write(1, line, (size_t)n) != n)
		abort();
}

int forks_live(int ms);
int forks_live(int ms)
{
	uint64_t end;
	pid_t child = fork();

	if (child < 0)
		abort();
	if (child)
		return child;
	forks_begin();
	end = begun_ns + (uint64_t)ms * 1000000;
	while (tally__clock(CLOCK_MONOTONIC) < end)
		forks_work();
	forks_print("child");
	_exit(0);
}

void forks_wait(int pid);
void forks_wait(int pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		;
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		abort();
}
