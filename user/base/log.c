/* SPDX-License-Identifier: GPL-2.0-or-later */
/* log: one line a message on standard error, safe to show on a terminal whatever the text holds. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base.h"

#define LOG_PREFIX   "safescoped: "
#define LOG_MAX_LINE 4096
#define WIPE	     "\r\033[K"

/* The one setting of the process: every room logs, none of them can be handed a context for it. */
static _Atomic int log_level_now = LOG_LVL_INFO;
static _Atomic bool error_said;
/* A line without an end is on the terminal. */
static _Atomic bool line_shown;

void log__set_level(enum log_level level)
{
	atomic_store_explicit(&log_level_now, (int)level, memory_order_relaxed);
}

enum log_level log__level(void)
{
	return (enum log_level)atomic_load_explicit(&log_level_now, memory_order_relaxed);
}

/* One write(2) where possible: lines of several threads or processes do not mix. */
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

static void __attribute__((format(printf, 1, 0))) vlog(const char *fmt, va_list ap)
{
	char text[LOG_MAX_LINE], line[LOG_MAX_LINE] = LOG_PREFIX;
	const size_t prefix = sizeof(LOG_PREFIX) - 1;
	int saved = errno;
	size_t len;
	int n;

	n = vsnprintf(text, sizeof(text), fmt, ap);
	if (n < 0)
		n = 0;
	len = MIN((size_t)n, sizeof(text) - 1);
	while (len > 0 && text[len - 1] == '\n')
		len--;
	text__escape(text, len, line + prefix, sizeof(line) - prefix - 1);
	len = strlen(line);
	line[len] = '\n';
	if (atomic_exchange(&line_shown, false))
		put(WIPE, sizeof(WIPE) - 1);
	put(line, len + 1);
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
	vlog(fmt, ap);
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
		vlog(fmt, ap);                                                                     \
		va_end(ap);                                                                        \
	}

DEFINE_LOG(log_warn, LOG_LVL_WARN)
DEFINE_LOG(log_info, LOG_LVL_INFO)
DEFINE_LOG(log_verbose, LOG_LVL_VERBOSE)
DEFINE_LOG(log_debug, LOG_LVL_DEBUG)
