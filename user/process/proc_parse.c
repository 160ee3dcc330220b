/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parsers of /proc files; they accept any bytes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/search.h"
#include "proc.h"
#include "wire.h"

#define NS_PER_SEC 1000000000ULL

/* One unsigned number; moves *p past it. False if there is none or it does not fit. */
static bool take_number(const char **p, const char *end, unsigned int base, uint64_t *ret_value)
{
	const char *start = *p;
	uint64_t value = 0;

	for (; *p < end; (*p)++) {
		unsigned char c = (unsigned char)**p;
		unsigned int digit;

		if (c >= '0' && c <= '9')
			digit = c - '0';
		else if (base == 16 && c >= 'a' && c <= 'f')
			digit = c - 'a' + 10U;
		else
			break;
		if (value > (UINT64_MAX - digit) / base)
			return false;
		value = value * base + digit;
	}
	*ret_value = value;
	return *p > start;
}

static bool take_char(const char **p, const char *end, char c)
{
	if (*p >= end || **p != c)
		return false;
	(*p)++;
	return true;
}

static void skip_spaces(const char **p, const char *end)
{
	while (*p < end && **p == ' ')
		(*p)++;
}

/* Also skips the spaces after them. */
static void skip_fields(const char **p, const char *end, int n)
{
	for (int i = 0; i < n; i++) {
		skip_spaces(p, end);
		while (*p < end && **p != ' ')
			(*p)++;
	}
	skip_spaces(p, end);
}

#define PF_KTHREAD 0x200000 /* include/linux/sched.h */

int proc__parse_stat(const char *text, size_t len, struct proc_stat *ret_stat)
{
	const char *end = text + len;
	const char *open = memchr(text, '(', len);
	/* The name is not escaped and may contain ") R 1 …": it ends at the last parenthesis. */
	const char *close = memrchr(text, ')', len);
	struct proc_stat st = {0};
	uint64_t flags, user, system;
	const char *p;
	size_t n;

	if (!open || !close || close < open || end - close < 4)
		return -EINVAL;
	n = MIN((size_t)(close - open - 1), sizeof(st.comm) - 1);
	memcpy(st.comm, open + 1, n);
	st.state = close[2];

	/* state is field 3, flags 9, utime 14, stime 15, starttime 22 (proc(5)) */
	p = close + 1;
	skip_fields(&p, end, 9 - 3);
	if (!take_number(&p, end, 10, &flags))
		return -EINVAL;
	st.kernel_thread = flags & PF_KTHREAD;
	skip_fields(&p, end, 14 - 10);
	if (!take_number(&p, end, 10, &user) || !take_char(&p, end, ' ') ||
	    !take_number(&p, end, 10, &system) ||
	    __builtin_add_overflow(user, system, &st.cpu_ticks))
		return -EINVAL;
	skip_fields(&p, end, 22 - 16);
	if (!take_number(&p, end, 10, &st.start_ticks))
		return -EINVAL;
	/* from field 26: startcode, endcode, startstack */
	skip_fields(&p, end, 26 - 23);
	if (take_number(&p, end, 10, &st.start_code) && take_char(&p, end, ' ') &&
	    take_number(&p, end, 10, &st.end_code) && take_char(&p, end, ' '))
		take_number(&p, end, 10, &st.start_stack);
	*ret_stat = st;
	return 0;
}

int proc__parse_exit(const char *text, size_t len, int *ret_status)
{
	const char *p = memrchr(text, ')', len), *end = text + len;
	uint64_t v;

	if (!p)
		return -EINVAL;
	/* state is field 3, exit_code field 52, the last one (proc(5)) */
	p++;
	skip_fields(&p, end, 52 - 3);
	if (!take_number(&p, end, 10, &v) || v > 0xffff)
		return -EINVAL;
	*ret_status = (int)v;
	return 0;
}

/*
 * The text after a key ("\nUid:") of a status file; NULL: no such key. The Name line comes first
 * and has its line breaks escaped, so any line found is the kernel's own.
 */
static const char *after_key(const char *text, size_t len, const char *key)
{
	const char *p = memmem(text, len, key, strlen(key));

	return p ? p + strlen(key) : NULL;
}

int proc__parse_ns_pid(const char *text, size_t len, pid_t *ret_pid)
{
	const char *end = text + len, *p = after_key(text, len, "\nNSpid:");
	uint64_t value = 0;
	bool found = false;

	if (!p)
		return -ENOENT;
	while (p < end && *p != '\n') {
		if (*p == ' ' || *p == '\t') {
			p++;
			continue;
		}
		if (!take_number(&p, end, 10, &value))
			return -ENOENT;
		found = true;
	}
	if (!found || value == 0 || value > INT32_MAX)
		return -ENOENT;
	*ret_pid = (pid_t)value;
	return 0;
}

int proc__parse_uids(const char *text, size_t len, uid_t ret_uids[PROC_UIDS])
{
	const char *end = text + len, *p = after_key(text, len, "\nUid:");
	uid_t uids[PROC_UIDS];

	if (!p)
		return -ENOENT;
	for (size_t i = 0; i < PROC_UIDS; i++) {
		uint64_t value = 0;

		while (p < end && (*p == ' ' || *p == '\t'))
			p++;
		if (!take_number(&p, end, 10, &value) || value > UINT32_MAX)
			return -ENOENT;
		uids[i] = (uid_t)value;
	}
	memcpy(ret_uids, uids, sizeof(uids));
	return 0;
}

int proc__parse_clock(const char *text, size_t len, int64_t *ret_ns)
{
	static const char key[] = "monotonic ";
	const char *end = text + len, *p = text + sizeof(key) - 1;
	uint64_t seconds, ns;
	int64_t all;
	bool behind;

	if (len < sizeof(key) - 1 || memcmp(text, key, sizeof(key) - 1) != 0)
		return -EINVAL;
	skip_spaces(&p, end);
	behind = take_char(&p, end, '-');
	if (!take_number(&p, end, 10, &seconds) || !take_char(&p, end, ' '))
		return -EINVAL;
	skip_spaces(&p, end);
	/* the sum of both: the nanoseconds are never negative */
	if (!take_number(&p, end, 10, &ns) || ns >= NS_PER_SEC || seconds > INT64_MAX ||
	    __builtin_mul_overflow(behind ? -(int64_t)seconds : (int64_t)seconds,
				   (int64_t)NS_PER_SEC, &all) ||
	    __builtin_add_overflow(all, (int64_t)ns, &all))
		return -EINVAL;
	*ret_ns = all;
	return 0;
}

int proc__parse_parent(const char *text, size_t len, pid_t *ret_pid)
{
	const char *end = text + len, *p = after_key(text, len, "\nPPid:\t");
	uint64_t value = 0;

	if (!p)
		return -ENOENT;
	if (!take_number(&p, end, 10, &value) || value > INT32_MAX)
		return -ENOENT;
	*ret_pid = (pid_t)value;
	return 0;
}

int proc__parse_uid_map(const char *text, size_t len, uid_t *ret_uid)
{
	const char *p = text, *end = text + len;
	uint64_t first = UINT64_MAX;

	while (p < end) {
		const char *line_end = memchr(p, '\n', (size_t)(end - p)) ?: end;
		uint64_t inside, outside;

		skip_spaces(&p, line_end);
		if (take_number(&p, line_end, 10, &inside) && inside < first) {
			skip_spaces(&p, line_end);
			/* (uid_t)-1: not an id in our namespace */
			if (take_number(&p, line_end, 10, &outside) && outside < UINT32_MAX) {
				first = inside;
				*ret_uid = (uid_t)outside;
			}
		}
		p = line_end < end ? line_end + 1 : end;
	}
	return first == UINT64_MAX ? -ENODATA : 0;
}

/* seq_path() (fs/seq_file.c) escapes a line break in a path as \012, and nothing else. */
static void unescape(char *path)
{
	char *out = path;

	for (const char *in = path; *in; out++) {
		if (strncmp(in, "\\012", 4) == 0) {
			*out = '\n';
			in += 4;
		} else {
			*out = *in++;
		}
	}
	*out = '\0';
}

static bool parse_map(char *line, char *line_end, struct proc_map *ret_map)
{
	static const char deleted[] = " (deleted)";
	const char *p = line, *end = line_end;
	struct proc_map m = {.path = ""};
	uint64_t major, minor;

	if (!take_number(&p, end, 16, &m.start) || !take_char(&p, end, '-') ||
	    !take_number(&p, end, 16, &m.end) || !take_char(&p, end, ' ') || end - p < 5)
		return false;
	m.read = p[0] == 'r';
	m.write = p[1] == 'w';
	m.exec = p[2] == 'x';
	p += 4;
	if (!take_char(&p, end, ' ') || !take_number(&p, end, 16, &m.offset) ||
	    !take_char(&p, end, ' ') || !take_number(&p, end, 16, &major) ||
	    !take_char(&p, end, ':') || !take_number(&p, end, 16, &minor) ||
	    !take_char(&p, end, ' ') || !take_number(&p, end, 10, &m.ino))
		return false;
	if (m.start >= m.end || major > UINT32_MAX || minor > UINT32_MAX)
		return false;
	m.dev_major = (uint32_t)major;
	m.dev_minor = (uint32_t)minor;
	skip_spaces(&p, end);
	if (p < end) {
		char *path = line + (p - line);
		size_t len;

		*line_end = '\0';
		len = strlen(path);
		if (len > sizeof(deleted) - 1 &&
		    strcmp(path + len - (sizeof(deleted) - 1), deleted) == 0) {
			m.deleted = true;
			path[len - (sizeof(deleted) - 1)] = '\0';
		}
		unescape(path);
		m.path = path;
	}
	*ret_map = m;
	return true;
}

int proc__parse_maps(char *text, size_t len, struct proc_maps *ret_maps)
{
	struct proc_maps out = {.text = text};
	char *p = text, *end = text + len;
	uint64_t last_end = 0;
	int err;

	while (p < end) {
		char *line_end = memchr(p, '\n', (size_t)(end - p));
		struct proc_map m;

		/* a last line without a line break was truncated */
		if (!line_end)
			break;
		if (parse_map(p, line_end, &m) && m.start >= last_end) {
			err = ARRAY_RESERVE(out.maps, out.cap, out.n + 1, PROC_MAX_MAPS);
			if (err < 0) {
				proc_maps__free(&out);
				return err;
			}
			out.maps[out.n++] = m;
			last_end = m.end;
		}
		p = line_end + 1;
	}
	*ret_maps = out;
	return 0;
}

void proc_maps__free(struct proc_maps *maps)
{
	free(maps->maps);
	free(maps->text);
	memset(maps, 0, sizeof(*maps));
}

const struct proc_map *proc_maps__at(const struct proc_maps *maps, uint64_t addr)
{
	size_t at = search__first(maps->n, i, maps->maps[i].end > addr);

	return at < maps->n && maps->maps[at].start <= addr ? &maps->maps[at] : NULL;
}

int proc__parse_syscall(const char *text, size_t len, struct proc_syscall *ret_syscall)
{
	static const char running[] = "running";
	struct proc_syscall sc = {.nr = WIRE_NO_SYSCALL};
	const char *p = text, *end = text + len;
	bool outside = false;
	uint64_t nr = 0;
	/* "NR ARG×6 SP PC", or "-1 SP PC" outside a system call (fs/proc/base.c) */
	int args = 6;

	if (len >= sizeof(running) - 1 && memcmp(text, running, sizeof(running) - 1) == 0) {
		sc.running = true;
		*ret_syscall = sc;
		return 0;
	}
	if (take_char(&p, end, '-')) {
		outside = true;
		args = 0;
	}
	if (!take_number(&p, end, 10, &nr))
		return -EINVAL;
	if (!outside && nr < WIRE_NO_SYSCALL)
		sc.nr = (uint32_t)nr;
	for (int i = 0; i < args + 2; i++) {
		uint64_t value;

		skip_spaces(&p, end);
		if (!take_char(&p, end, '0') || !take_char(&p, end, 'x') ||
		    !take_number(&p, end, 16, &value))
			return -EINVAL;
		if (i == args)
			sc.sp = value;
		else if (i == args + 1)
			sc.pc = value;
	}
	*ret_syscall = sc;
	return 0;
}
