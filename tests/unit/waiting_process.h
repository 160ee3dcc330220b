/* SPDX-License-Identifier: GPL-2.0-or-later */
/* waiting_process: another process, which only waits. Include after cmocka.h. */
#ifndef SAFESCOPED_TEST_WAITING_PROCESS_H
#define SAFESCOPED_TEST_WAITING_PROCESS_H

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static inline pid_t waiting_process(void)
{
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			pause();
	assert_true(pid > 0);
	return pid;
}

static inline void end_process(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

#endif
