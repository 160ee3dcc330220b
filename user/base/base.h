/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * base: what every room uses. Logging, growing arrays and buffers with a hard maximum, an
 * intern table for strings, signals, clocks.
 *
 * Conventions of the whole user side: functions return 0 or a negative errno; outputs called
 * ret_… are set only on success; `__free` takes NULL; the message is printed where the decision
 * is made.
 */
#ifndef SAFESCOPED_BASE_H
#define SAFESCOPED_BASE_H

#include <dirent.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct rusage;

#define SAFESCOPED_VERSION "0.1.0"

/* The program's exit codes; 64 is wrong usage. */
enum {
	EXIT_COMPLETE = 0,
	EXIT_PARTIAL = 1, /* finished, but something was lost or could not be done */
	EXIT_FAILED = 2,
};

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b)     ((a) < (b) ? (a) : (b))
#define MAX(a, b)     ((a) > (b) ? (a) : (b))
/* For orders: CMP(a->x, b->x) ?: CMP(a->y, b->y) is negative if a comes before b, by x and then y.
 */
#define CMP(a, b) (((a) > (b)) - ((a) < (b)))

/* ── log ─────────────────────────────────────────────────────────────────────────────────── */

enum log_level { LOG_LVL_QUIET, LOG_LVL_WARN, LOG_LVL_INFO, LOG_LVL_VERBOSE, LOG_LVL_DEBUG };

/* Set once, at start. The default is LOG_LVL_INFO. */
void log__set_level(enum log_level level);
enum log_level log__level(void);
/* Where standard error is the journal's, messages have their level in front from now on and not the
 * program's name, which the journal knows (sd-daemon(3)). */
void log__find_journal(void);
/*
 * Whether standard error takes a line now; waits half a second for it, unless a line waited so long
 * in vain before: then only one that `matters` does, once in some seconds. A full pipe and a
 * stopped terminal do not: lines are left out then, and counted, since a session that waits for its
 * reader would stand still.
 */
bool log__has_room(bool matters);
/* A line without an end is on the terminal, or no more: the next message wipes it. */
void log__set_line(bool shown);
/* Whether log_error() has reported a failure to the user. */
bool log__said_error(void);

/*
 * One line on standard error, `safescoped: ` in front, newline added; what is not printable in the
 * whole text (a target's path may hold anything) is shown by text__escape. log_error is never
 * suppressed.
 */
void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_verbose(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ── text of somebody else's ─────────────────────────────────────────────────────────────── */

/*
 * Whatever is shown to a person goes through text__escape: a message by log_…, a cell of a table
 * by table__cell, and so on. What a terminal would obey, or nobody would see, appears as `\u{9b}`
 * (a code point) or `\x9b` (a byte that is not UTF-8): control characters, bidirectional controls,
 * characters of no width, separators of lines and paragraphs. A backslash stays as it is.
 */

/* One of those. */
bool text__is_hidden(uint32_t cp);
/* How many bytes the character of UTF-8 at s has; 0: there is none, or the bytes are not one. */
size_t text__decode(const char *s, size_t len, uint32_t *ret_cp);
/*
 * Writes the escaped text to out, as much of it as fits into `size` bytes with the NUL, and no part
 * of a character or an escape. Returns how long all of it is. `out` is NULL if size is 0.
 */
size_t text__escape(const char *s, size_t len, char *out, size_t size);
/* The whole string escaped; the caller frees. NULL without memory. */
char *text__escaped(const char *s);
/* Columns of a terminal; a byte that is not UTF-8 counts as one. main() sets the locale for it. */
size_t text__width(const char *s, size_t len);
size_t text__width_of(uint32_t cp);
/* The part after the last slash; points into path. */
const char *path__base(const char *path);

/* ── growing arrays ──────────────────────────────────────────────────────────────────────── */

/*
 * Makes room for `need` elements of `elem` bytes in *array, whose capacity is *cap elements.
 * Never more than `max` elements: -E2BIG then, -ENOMEM without memory; *array is unchanged on
 * failure. New room is not cleared.
 */
int array__reserve(void **array, size_t *cap, size_t need, size_t max, size_t elem);
/* The same of a typed pointer, through void * as the aliasing rules want it. */
#define ARRAY_RESERVE(array, cap, need, max)                                                       \
	({                                                                                         \
		void *reserve_ptr_ = (array);                                                      \
		int reserve_err_ =                                                                 \
			array__reserve(&reserve_ptr_, &(cap), (need), (max), sizeof(*(array)));    \
		(array) = reserve_ptr_;                                                            \
		reserve_err_;                                                                      \
	})

/* In order of their keys; equal ones keep theirs. Linear time; `tmp` has room for n too. */
struct keyed {
	uint64_t key;
	uint32_t index; /* of what it is the key of */
};
void keyed__sort(struct keyed *v, struct keyed *tmp, size_t n);

/* For what is in order already, or is made of pieces that are: fast then, else as qsort. */
void array__sort(void *array, size_t n, size_t elem, int (*cmp)(const void *a, const void *b));

/* ── byte buffer (the caller's is zeroed, or buf__init'ed) ───────────────────────────────── */

#define BUF_DEFAULT_MAX (64U << 20) /* for a zeroed struct buf, whose max is 0 */

struct buf {
	char *data; /* always NUL-terminated once something was added; NULL before */
	size_t len;
	size_t cap;
	size_t max; /* hard maximum of len */
	int err;    /* first failure, kept: later calls do nothing and return it */
};

void buf__init(struct buf *b, size_t max);
void buf__free(struct buf *b);
void buf__reset(struct buf *b); /* len = 0, err = 0; keeps the memory */
int buf__add(struct buf *b, const void *data, size_t len);
int buf__adds(struct buf *b, const char *s);
int buf__addc(struct buf *b, char c);
int buf__addf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ── interned strings ────────────────────────────────────────────────────────────────────── */

/* Strings stored once; ids count from 0 in order of first use. id 0 is always "". */
struct strtab;

#define STRTAB_MAX_STRING 65536

int strtab__new(struct strtab **ret_tab);
void strtab__free(struct strtab *tab);
/* From now on all strings together take at most so much memory, what finds them included. */
void strtab__set_max(struct strtab *tab, size_t bytes);
/* -E2BIG for a string longer than STRTAB_MAX_STRING, or too many strings. Ends at a NUL in s. */
int strtab__add(struct strtab *tab, const char *s, size_t len, uint32_t *ret_id);
/* Valid while the table lives. "" for an id that was never given out. */
const char *strtab__get(const struct strtab *tab, uint32_t id);
uint32_t strtab__count(const struct strtab *tab);
/* What strtab__set_max() limits. */
size_t strtab__bytes(const struct strtab *tab);

/* ── numbers for people (human.c) ────────────────────────────────────────────────────────── */

/* For one printf: human__duration(ns).s lives as long as the expression that it is in. */
struct human {
	char s[32];
};
/* "1.23 ms", "45.6 µs", "12 min 3 s". */
struct human human__duration(uint64_t ns);
/* Groups of three, parted by a space: "1 234 567". */
struct human human__count(uint64_t n);
/* "12.3 MB" */
struct human human__bytes(uint64_t bytes);
/* part of whole in percent; 0 if there is no whole. */
double human__percent(uint64_t part, uint64_t whole);
/* Without its fraction; from 0 to 10^18, to which numbers beyond are cut. 0 for what is none. */
uint64_t human__whole(double number);

/* ── signals ─────────────────────────────────────────────────────────────────────────────── */

/* A reader of our output that goes away is then an error of a write, not our end. */
void signals__ignore_pipe(void);
/* So is a file that becomes larger than allowed (ulimit -f), and SIGUSR1 and SIGUSR2, which mean
 * nothing here, end nothing. */
void signals__ignore_harmless(void);
/* Undoes both, for a program that is started. */
void signals__reset(void);
/* Before anything else: SIGHUP and SIGUSR1 wait, since they may mean something to a daemon, which
 * takes them once it has begun. */
void signals__hold(void);
/* For what is no daemon: both have the meaning that they had before. */
void signals__release(void);
/*
 * SIGINT, SIGTERM and SIGHUP are blocked and come by *ret_fd (readable, never blocks; the caller
 * closes it) from now on; SIGPIPE is ignored. So stays a SIGHUP that whoever started us had ignored
 * (nohup).
 */
int signals__open(int *ret_fd);
bool signals__ignores_hangup(void);
/* SIGUSR1 comes by a descriptor of its own: whoever looks at the other one ends for what is there.
 */
int signals__open_usr1(int *ret_fd);
/* SIGUSR1 comes by it, too, and SIGHUP in any case. */
int signals__add_services(int fd);

struct signal_taken {
	int number;
	bool by_terminal; /* every process in the terminal's foreground got it as well */
};
/* Takes one signal off the descriptor. False: none came. */
bool signals__take(int fd, struct signal_taken *ret_signal);
/* The same as a callback that asks whether to stop. `fd` points at the descriptor (int). */
bool signals__came(void *fd);

/* ── descriptors ─────────────────────────────────────────────────────────────────────────── */

/* Closes *fd unless it is negative, and sets it to -1; errno is kept. */
void fd__close(int *fd);
/*
 * Opens a regular file for reading, and does nothing to whatever else may be at the path. The
 * descriptor never blocks. -EINVAL: not a regular file; else open()'s errors.
 */
int fd__open_regular(const char *path, int *ret_fd);
/*
 * The same of a file that says what we are to do: root's, our own user's, or `user`'s ((uid_t)-1:
 * nobody's), and writable by nobody else: else -EPERM.
 */
int fd__open_own(const char *path, uid_t user, int *ret_fd);
/* As many descriptors as this process may have (RLIMIT_NOFILE), from now on: a host has more
 * processes and files than the usual limit lets a program open. */
void fd__raise_limit(void);
/* What the limit was before: for a program that is started. */
void fd__restore_limit(void);
/* How many may be open. */
uint64_t fd__limit(void);
/* Whether so many more can be opened now, FD_ROOM_MAX at most. */
#define FD_ROOM_MAX 128U
bool fd__has_room(unsigned n);

/* ── directories (dir.c) ─────────────────────────────────────────────────────────────────── */

/*
 * Opens the directory in which a file is to be written, for all that is done there (openat,
 * renameat), and points *ret_name at the file's name, in `path`. No symbolic link on the way is
 * followed but root's, our own user's and that of `user` ((uid_t)-1: nobody's): the daemon writes
 * as root where others may put links. -EPERM: there is another user's; -EISDIR: no name of a file;
 * else open()'s errors.
 */
int dir__open_of(const char *path, uid_t user, int *ret_dir, const char **ret_name);

/*
 * Opens a directory into which, and in whose place, nobody but root and our own user can put
 * anything: each one on the way is theirs, and others may write there only where it is sticky. What
 * of it is not there is made, the last part for our user alone. -EPERM: another user could; else
 * open()'s errors.
 */
int dir__open_own(const char *path, int *ret_dir);
/* A stream of what is in the directory, which stays open; the caller ends it by closedir(). */
int dir__stream(int dir, DIR **ret_stream);

/* ── clocks and resources ────────────────────────────────────────────────────────────────── */

/* CLOCK_MONOTONIC and CLOCK_REALTIME, in nanoseconds. */
uint64_t time__monotonic_ns(void);
uint64_t time__realtime_ns(void);
/* CPU time of this process so far, by a call that confined children may make (confine/filter.c). */
uint64_t time__cpu_ns(void);
/*
 * The CLOCK_MONOTONIC time of a CLOCK_BOOTTIME one, which goes on while the machine is suspended;
 * of a time before the last such pause it is early by that pause. 0: before either clock began.
 */
uint64_t time__of_boottime_ns(uint64_t boottime_ns);
/* For how long the system was suspended since it booted. */
uint64_t time__suspended_ns(void);
/* Both clocks at one instant, to half a millisecond. -EAGAIN: something else ran between them. */
int time__both_ns(uint64_t *ret_monotonic_ns, uint64_t *ret_realtime_ns);
/*
 * How many times slower than any real machine this one is (an emulated processor): the environment
 * variable SAFESCOPED_SLOWNESS, from 1 to 100. Time limits are so much longer.
 */
unsigned int machine__slowness(void);

/* User and system time together. */
uint64_t usage__cpu_ns(const struct rusage *usage);
/* Of this process so far: its CPU time, and the most memory that it had resident. */
void usage__own(uint64_t *ret_cpu_ns, uint64_t *ret_max_rss_bytes);
/* CPU time of those children that have ended and were waited for. */
uint64_t usage__children_cpu_ns(void);
/* The most memory that one of them had resident. */
uint64_t usage__children_max_rss_bytes(void);

#endif
