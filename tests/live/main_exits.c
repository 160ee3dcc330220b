/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For LD_PRELOAD: half a second after the program starts, its main thread exits; others go on. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void leave(int number)
{
	(void)number;
	/* NOLINTNEXTLINE(bugprone-signal-handler): it is nothing but the system call */
	syscall(SYS_exit, 0);
}

static void *make_it_leave(void *arg)
{
	(void)arg;
	usleep(500000);
	signal(SIGUSR2, leave);
	syscall(SYS_tgkill, getpid(), getpid(), SIGUSR2);
	return NULL;
}

static void __attribute__((constructor)) begin(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, make_it_leave, NULL))
		abort();
}
