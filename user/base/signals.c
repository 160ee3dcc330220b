/* SPDX-License-Identifier: GPL-2.0-or-later */
/* signals: signals that end the program arrive through a descriptor, which every wait can
 * include. */
#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base.h"

void signals__ignore_pipe(void)
{
	signal(SIGPIPE, SIG_IGN);
}

void signals__ignore_harmless(void)
{
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGUSR1, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
}

void signals__reset(void)
{
	sigset_t none;

	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	signal(SIGUSR1, SIG_DFL);
	signal(SIGUSR2, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Global, since the mask belongs to the process. */
static sigset_t before_hold;

void signals__hold(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, &before_hold);
}

void signals__release(void)
{
	sigprocmask(SIG_SETMASK, &before_hold, NULL);
}

bool signals__ignores_hangup(void)
{
	struct sigaction action;

	return sigaction(SIGHUP, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

int signals__open(int *ret_fd)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	/* a blocked signal arrives through the descriptor even if it is ignored */
	if (!signals__ignores_hangup())
		sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return -errno;
	signals__ignore_pipe();
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

int signals__open_usr1(int *ret_fd)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return -errno;
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

int signals__add_services(int fd)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return -errno;
	return signalfd(fd, &set, SFD_CLOEXEC | SFD_NONBLOCK) < 0 ? -errno : 0;
}

bool signals__take(int fd, struct signal_taken *ret_signal)
{
	struct signalfd_siginfo info;

	if (read(fd, &info, sizeof(info)) != sizeof(info))
		return false;
	*ret_signal = (struct signal_taken){.number = (int)info.ssi_signo,
					    .by_terminal = info.ssi_code == SI_KERNEL};
	return true;
}

bool signals__came(void *fd)
{
	struct signal_taken taken;

	return signals__take(*(const int *)fd, &taken);
}
