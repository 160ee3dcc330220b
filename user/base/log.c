/* SPDX-License-Identifier: GPL-2.0-or-later */
/* log: one line per message on standard error, safe to show on a terminal whatever it contains. */
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base.h"

#define LOG_PREFIX   "safescoped: "
#define MAX_PREFIX   32
#define LOG_MAX_LINE 4096 /* PIPE_BUF: a pipe that is writable has room for it (pipe(7)) */
#define WIPE	     "\r\033[K"

/* The process's only setting: every room logs, and a context cannot be passed to all of them. */
static _Atomic int log_level_now = LOG_LVL_INFO;
static _Atomic bool error_said;
/* An unterminated line is on the terminal. */
static _Atomic bool line_shown;
static _Atomic bool to_journal;
/* Lines left out since the last one that was printed. */
static _Atomic unsigned lost;

/* How long a line waits for a reader. After a wait in vain only errors wait, and only after a
 * while: many waits would hold up everything. */
#define WAIT_MS	 500
#define AGAIN_NS 5000000000ULL

void log__set_level(enum log_level level)
{
	atomic_store_explicit(&log_level_now, (int)level, memory_order_relaxed);
}

enum log_level log__level(void)
{
	return (enum log_level)atomic_load_explicit(&log_level_now, memory_order_relaxed);
}

bool log__has_room(bool matters)
{
	/* time of the last wait in vain; 0: none since there was room */
	static _Atomic uint64_t stuck_ns;
	struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
	uint64_t stuck = atomic_load(&stuck_ns);
	bool waits = !stuck || (matters && time__monotonic_ns() - stuck >= AGAIN_NS);
	int n = poll(&p, 1, waits ? WAIT_MS : 0);
	/* a descriptor that cannot be polled counts as having room */
	bool room = n > 0 || (n < 0 && errno != EINTR);

	if (room)
		atomic_store(&stuck_ns, 0);
	else if (waits)
		atomic_store(&stuck_ns, time__monotonic_ns());
	return room;
}

/* A single write(2) if possible, so that lines of several threads or processes do not mix. */
static void put(const char *line, size_t len)
{
	while (len > 0) {
		ssize_t n = write(STDERR_FILENO, line, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		line += n;
		len -= (size_t)n;
	}
}

/* The levels of syslog(3): <3> is an error. */
static int journal_level(enum log_level level)
{
	switch (level) {
	case LOG_LVL_QUIET:
		return 3;
	case LOG_LVL_WARN:
		return 4;
	case LOG_LVL_INFO:
	case LOG_LVL_VERBOSE:
		return 6;
	case LOG_LVL_DEBUG:
		break;
	}
	return 7;
}

/* JOURNAL_STREAM has the journal's stream as "DEVICE:INODE" (systemd.exec(5)). */
void log__find_journal(void)
{
	const char *where = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;
	char *end;

	if (!where || fstat(STDERR_FILENO, &st))
		return;
	dev = strtoull(where, &end, 10);
	ino = *end == ':' ? strtoull(end + 1, NULL, 10) : 0;
	atomic_store(&to_journal, st.st_dev == dev && ino && st.st_ino == ino);
}

static size_t begin_line(char line[LOG_MAX_LINE], enum log_level level)
{
	if (atomic_load(&to_journal))
		return (size_t)snprintf(line, MAX_PREFIX, "<%d>", journal_level(level));
	return (size_t)snprintf(line, MAX_PREFIX, LOG_PREFIX);
}

/* Printed before the next line for which there is room. */
static void report_lost(void)
{
	char line[LOG_MAX_LINE];
	unsigned n = atomic_exchange(&lost, 0);
	size_t prefix = begin_line(line, LOG_LVL_WARN);
	int len;

	if (!n)
		return;
	len = snprintf(line + prefix, sizeof(line) - prefix,
		       "%u %s left out here: not read in time\n", n,
		       n == 1 ? "line was" : "lines were");
	put(line, prefix + (size_t)len);
}

/* LOG_LVL_QUIET stands for an error, which is never suppressed. */
static void __attribute__((format(printf, 2, 0)))
vlog(enum log_level level, const char *fmt, va_list ap)
{
	char text[LOG_MAX_LINE], line[LOG_MAX_LINE];
	size_t len, prefix = begin_line(line, level);
	bool matters = level == LOG_LVL_QUIET;
	int saved = errno, n;

	n = vsnprintf(text, sizeof(text), fmt, ap);
	if (n < 0)
		n = 0;
	len = MIN((size_t)n, sizeof(text) - 1);
	while (len > 0 && text[len - 1] == '\n')
		len--;
	text__escape(text, len, line + prefix, sizeof(line) - prefix - 1);
	len = strlen(line);
	line[len] = '\n';
	if (atomic_load(&lost) && log__has_room(matters))
		report_lost();
	if (log__has_room(matters)) {
		if (atomic_exchange(&line_shown, false))
			put(WIPE, sizeof(WIPE) - 1);
		put(line, len + 1);
	} else {
		atomic_fetch_add(&lost, 1);
	}
	errno = saved;
}

void log__set_line(bool shown)
{
	atomic_store(&line_shown, shown);
}

bool log__said_error(void)
{
	return atomic_load_explicit(&error_said, memory_order_relaxed);
}

void log_error(const char *fmt, ...)
{
	va_list ap;

	atomic_store_explicit(&error_said, true, memory_order_relaxed);
	va_start(ap, fmt);
	vlog(LOG_LVL_QUIET, fmt, ap);
	va_end(ap);
}

#define DEFINE_LOG(NAME, MIN_LEVEL)                                                                \
	void NAME(const char *fmt, ...)                                                            \
	{                                                                                          \
		va_list ap;                                                                        \
                                                                                                   \
		if ((int)log__level() < (int)(MIN_LEVEL))                                          \
			return;                                                                    \
		va_start(ap, fmt);                                                                 \
		vlog(MIN_LEVEL, fmt, ap);                                                          \
		va_end(ap);                                                                        \
	}

DEFINE_LOG(log_warn, LOG_LVL_WARN)
DEFINE_LOG(log_info, LOG_LVL_INFO)
DEFINE_LOG(log_verbose, LOG_LVL_VERBOSE)
DEFINE_LOG(log_debug, LOG_LVL_DEBUG)
