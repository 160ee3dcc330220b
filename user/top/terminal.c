/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The terminal: taken over for the screen, and restored. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "top_priv.h"

/* Enter the alternate screen, without a cursor; and leave it, resetting colours. */
static const char enter[] = "\033[?1049h\033[?25l\033[2J";
static const char leave[] = "\033[0m\033[?25h\033[?1049l";

/* Global, as the terminal is: signal handlers and atexit() functions get no context. */
static struct termios before;
static volatile sig_atomic_t taken, resumed;

/* Also used in signal handlers, which call nothing but write and tcsetattr. */
static void put(const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(STDOUT_FILENO, text, len);

		if (n < 0 && errno != EINTR)
			return;
		if (n > 0) {
			text += n;
			len -= (size_t)n;
		}
	}
}

void terminal__give_back(void)
{
	int saved = errno;

	if (!taken)
		return;
	taken = 0;
	put(leave, sizeof(leave) - 1);
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
	errno = saved;
}

/* A crash: restores the terminal, then ends as the signal would. */
static void on_crash(int number)
{
	terminal__give_back();
	/* SA_RESETHAND has restored the default action */
	raise(number);
}

/* On SIGTSTP (Ctrl-Z arrives as a key) the shell gets its terminal back until this process is
 * continued. */
static void on_stop(int number)
{
	int saved = errno;

	(void)number;
	terminal__give_back();
	raise(SIGSTOP);
	terminal__take();
	resumed = 1;
	errno = saved;
}

bool terminal__resumed(void)
{
	bool was = resumed;

	resumed = 0;
	return was;
}

int terminal__take(void)
{
	static const int crashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGQUIT};
	static bool registered;
	struct termios raw;

	if (taken)
		return 0;
	if (tcgetattr(STDIN_FILENO, &before))
		return -errno;
	raw = before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG | IEXTEN);
	raw.c_iflag &= ~(tcflag_t)(IXON | ICRNL);
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	if (!registered) {
		const struct sigaction by = {.sa_handler = on_crash, .sa_flags = SA_RESETHAND};
		const struct sigaction stop = {.sa_handler = on_stop, .sa_flags = SA_RESTART};

		for (size_t i = 0; i < ARRAY_SIZE(crashes); i++)
			sigaction(crashes[i], &by, NULL);
		sigaction(SIGTSTP, &stop, NULL);
		registered = atexit(terminal__give_back) == 0;
	}
	taken = 1;
	if (tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw)) {
		int err = -errno;

		taken = 0;
		return err;
	}
	put(enter, sizeof(enter) - 1);
	return 0;
}

void terminal__size(unsigned *ret_columns, unsigned *ret_rows)
{
	struct winsize size;

	*ret_columns = 80;
	*ret_rows = 24;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row) {
		*ret_columns = size.ws_col;
		*ret_rows = size.ws_row;
	}
}
