/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * base: what every room uses. Logging, growing arrays and buffers with a hard maximum, an intern
 * table for strings, signals, clocks.
 *
 * Conventions of the whole user side: functions return 0 or a negative errno; outputs called ret_…
 * are set only on success; `__free` accepts NULL; a message is printed where the decision is made.
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

/* The program's exit codes; 64 is used for wrong usage. */
enum {
	EXIT_COMPLETE = 0,
	EXIT_PARTIAL = 1, /* finished, but something was lost or could not be done */
	EXIT_FAILED = 2,
};

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b)     ((a) < (b) ? (a) : (b))
#define MAX(a, b)     ((a) > (b) ? (a) : (b))
/* For comparison functions: CMP(a->x, b->x) ?: CMP(a->y, b->y) is negative if a comes before b, by
 * x and then y. */
#define CMP(a, b) (((a) > (b)) - ((a) < (b)))

/* ── log ─────────────────────────────────────────────────────────────────────────────────── */

enum log_level { LOG_LVL_QUIET, LOG_LVL_WARN, LOG_LVL_INFO, LOG_LVL_VERBOSE, LOG_LVL_DEBUG };

/* To be called once, at start. The default is LOG_LVL_INFO. */
void log__set_level(enum log_level level);
enum log_level log__level(void);
/* If standard error is connected to the journal, messages start with their level from now on, and
 * not with the program's name, which the journal adds itself (sd-daemon(3)). */
void log__find_journal(void);
/*
 * True if standard error accepts a line now. Waits half a second for that; once such a wait has
 * failed, only a line that `matters` waits, once in five seconds. A full pipe or a stopped terminal
 * may block forever: lines are then left out and counted, since otherwise the session would stand
 * still.
 */
bool log__has_room(bool matters);
/* Notes whether an unterminated line is on the terminal; the next message then wipes it. */
void log__set_line(bool shown);
/* True if log_error() has reported a failure to the user. */
bool log__said_error(void);

/*
 * Prints one line on standard error, with `safescoped: ` in front and a newline added. The whole
 * text goes through text__escape, since a target's path, for example, may contain anything.
 * log_error is never suppressed.
 */
void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_verbose(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ── text of somebody else's ─────────────────────────────────────────────────────────────── */

/*
 * Everything shown to a person goes through text__escape: a message by log_…, a cell of a table by
 * table__cell, and so on. Whatever a terminal would interpret, and whatever is invisible, appears
 * as `\u{9b}` (a code point) or `\x9b` (a byte that is not UTF-8): control characters,
 * bidirectional controls, zero-width characters, separators of lines and paragraphs. A backslash is
 * not escaped.
 */

/* True for a code point that is escaped. */
bool text__is_hidden(uint32_t cp);
/* Length in bytes of the UTF-8 character at s; 0: the end, or not valid UTF-8. */
size_t text__decode(const char *s, size_t len, uint32_t *ret_cp);
/* Writes a code point in UTF-8, without a NUL; returns its length. Surrogates, and what is beyond
 * U+10FFFF, are written as U+FFFD. */
size_t text__encode(uint32_t cp, char out[4]);
/*
 * Writes the escaped text to out, as much as fits into `size` bytes with the NUL, without splitting
 * a character or an escape. Returns the length of the whole escaped text. `out` may be NULL if size
 * is 0.
 */
size_t text__escape(const char *s, size_t len, char *out, size_t size);
/* The whole string escaped, to be freed by the caller. NULL if there is no memory. */
char *text__escaped(const char *s);
/* The string quoted as one word of a shell, for commands that are shown; to be freed by the caller.
 * NULL if there is no memory. */
char *text__shell_word(const char *s);
/* Columns on a terminal; a byte that is not UTF-8 counts as one. Needs the locale, set by
 * main(). */
size_t text__width(const char *s, size_t len);
size_t text__width_of(uint32_t cp);
/* Whether `len` bytes of text begin, or end, with a string. */
bool text__starts_with(const char *s, size_t len, const char *prefix);
bool text__ends_with(const char *s, size_t len, const char *suffix);
/* The part after the last slash; points into path. */
const char *path__base(const char *path);

/* ── growing arrays ──────────────────────────────────────────────────────────────────────── */

/*
 * Makes room for `need` elements of `elem` bytes in *array, whose capacity is *cap elements. -E2BIG
 * for more than `max` elements, -ENOMEM without memory; *array is unchanged on failure. Added room
 * is not cleared.
 */
int array__reserve(void **array, size_t *cap, size_t need, size_t max, size_t elem);
/* The same for a typed pointer, by way of void * because of the aliasing rules. Inline if there is
 * an array with room. */
#define ARRAY_RESERVE(array, cap, need, max)                                                       \
	({                                                                                         \
		size_t reserve_need_ = (need);                                                     \
		int reserve_err_ = 0;                                                              \
		if (!(array) || reserve_need_ > (cap)) {                                           \
			void *reserve_ptr_ = (array);                                              \
			reserve_err_ = array__reserve(&reserve_ptr_, &(cap), reserve_need_, (max), \
						      sizeof(*(array)));                           \
			(array) = reserve_ptr_;                                                    \
		}                                                                                  \
		reserve_err_;                                                                      \
	})

/* Sorts by key; stable, in linear time. `tmp` must have room for n as well. */
struct keyed {
	uint64_t key;
	uint32_t index; /* of the element that has this key */
};
void keyed__sort(struct keyed *v, struct keyed *tmp, size_t n);

/* Fast for arrays that consist of a few sorted runs; otherwise like qsort(). */
void array__sort(void *array, size_t n, size_t elem, int (*cmp)(const void *a, const void *b));

/* ── byte buffer (the caller's is zeroed, or buf__init'ed) ───────────────────────────────── */

#define BUF_DEFAULT_MAX (64U << 20) /* for a zeroed struct buf, in which max is 0 */

struct buf {
	char *data; /* NUL-terminated once something was added; NULL before */
	size_t len;
	size_t cap;
	size_t max; /* hard maximum of len */
	int err;    /* first failure: later calls do nothing and return it */
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
/* Limits the memory of all strings together, including the index. */
void strtab__set_max(struct strtab *tab, size_t bytes);
/* -E2BIG if the string is longer than STRTAB_MAX_STRING, or there are too many. Ends at a NUL in
 * s. */
int strtab__add(struct strtab *tab, const char *s, size_t len, uint32_t *ret_id);
/* Adds s as text__escape shows it, at most STRTAB_MAX_STRING bytes of that, cut between characters.
 * NULL counts as "". -E2BIG: there are too many. */
int strtab__add_escaped(struct strtab *tab, const char *s, uint32_t *ret_id);
/* Valid while the table lives. "" for an unknown id. */
const char *strtab__get(const struct strtab *tab, uint32_t id);
uint32_t strtab__count(const struct strtab *tab);
/* The memory limited by strtab__set_max(). */
size_t strtab__bytes(const struct strtab *tab);

/* ── numbers for people (human.c) ────────────────────────────────────────────────────────── */

/* For use in one printf: human__duration(ns).s is valid within the full expression. */
struct human {
	char s[32];
};
/* "1.23 ms", "45.6 µs", "12 min 3 s". */
struct human human__duration(uint64_t ns);
/* Groups of three digits, separated by a space: "1 234 567". */
struct human human__count(uint64_t n);
/* "12.3 MB" */
struct human human__bytes(uint64_t bytes);
/* part of whole in percent; 0 if whole is 0. */
double human__percent(uint64_t part, uint64_t whole);
/* Truncates to an integer, clamped to 0 … 10^18. 0 for NaN. */
uint64_t human__whole(double number);
/* How many a second, truncated and clamped in the same way; 0 if ns is 0. */
uint64_t human__per_second(uint64_t n, uint64_t ns);

/* ── signals ─────────────────────────────────────────────────────────────────────────────── */

/* A reader that closes our output then causes a write error instead of ending the program. */
void signals__ignore_pipe(void);
/* The same for a file that exceeds the size limit (ulimit -f); and SIGUSR1 and SIGUSR2, which have
 * no meaning here, do not end the program. */
void signals__ignore_harmless(void);
/* Undoes both, for a program that is to be started. */
void signals__reset(void);
/* Blocks SIGHUP and SIGUSR1, to be called before anything else: they may be meant for a daemon,
 * which takes them once it has started. */
void signals__hold(void);
/* For a program that is not a daemon: restores the mask from before signals__hold(). */
void signals__release(void);
/*
 * Blocks SIGINT, SIGTERM and SIGHUP and delivers them through *ret_fd (readable, never blocks; the
 * caller closes it) from now on; ignores SIGPIPE. If SIGHUP was ignored when the program was
 * started (nohup), it stays so.
 */
int signals__open(int *ret_fd);
bool signals__ignores_hangup(void);
/* SIGUSR1 has a descriptor of its own, because readers of the other one take any signal as a
 * request to end. */
int signals__open_usr1(int *ret_fd);
/* Adds SIGUSR1 to the descriptor, and SIGHUP even if it was ignored. */
int signals__add_services(int fd);

struct signal_taken {
	int number;
	bool by_terminal; /* every process in the terminal's foreground received it as well */
};
/* Takes one signal from the descriptor. False: there is none. */
bool signals__take(int fd, struct signal_taken *ret_signal);
/* The same as a callback that asks whether to stop. `fd` points to the descriptor (int). */
bool signals__came(void *fd);

/* ── descriptors ─────────────────────────────────────────────────────────────────────────── */

/* Closes *fd unless it is negative, and sets it to -1; preserves errno. */
void fd__close(int *fd);
/*
 * Opens a regular file for reading, without side effects if the path is anything else. Reading the
 * descriptor never blocks. -EINVAL: not a regular file; otherwise open()'s errors.
 */
int fd__open_regular(const char *path, int *ret_fd);
/*
 * The same for a file that controls what we do: it must belong to root, to our own user, or to
 * `user` ((uid_t)-1: nobody), and be writable by nobody else; otherwise -EPERM.
 */
int fd__open_own(const char *path, uid_t user, int *ret_fd);
/* Raises the limit on descriptors (RLIMIT_NOFILE) to its maximum: a host has more processes and
 * files than the usual limit allows to open. */
void fd__raise_limit(void);
/* Restores the limit, for a program that is to be started. */
void fd__restore_limit(void);
/* The current limit. */
uint64_t fd__limit(void);
/* True if n more descriptors can be opened now; n is limited to FD_ROOM_MAX. */
#define FD_ROOM_MAX 128U
bool fd__has_room(unsigned n);

/* ── directories (dir.c) ─────────────────────────────────────────────────────────────────── */

/*
 * Opens the directory in which a file is to be written, for all further steps (openat, renameat),
 * and sets *ret_name to the file's name within `path`. Symbolic links on the way are followed only
 * if they belong to root, our own user, or `user` ((uid_t)-1: nobody): the daemon writes as root
 * where others may create links. -EPERM: a link of another user; -EISDIR: the path has no file
 * name; otherwise open()'s errors.
 */
int dir__open_of(const char *path, uid_t user, int *ret_dir, const char **ret_name);

/*
 * Opens a directory that only root and our own user can write to or replace: each directory on the
 * way belongs to one of them, and may be writable by others only if it is sticky. Missing parts are
 * created, the last one accessible only to our user. -EPERM: another user could interfere;
 * otherwise open()'s errors.
 */
int dir__open_own(const char *path, int *ret_dir);
/* A stream of the directory's entries, to be closed with closedir(); `dir` stays open. */
int dir__stream(int dir, DIR **ret_stream);

/* ── clocks and resources ────────────────────────────────────────────────────────────────── */

/* CLOCK_MONOTONIC and CLOCK_REALTIME, in nanoseconds. */
uint64_t time__monotonic_ns(void);
uint64_t time__realtime_ns(void);
/* CPU time of this process so far, by a system call that confined children may use
 * (confine/filter.c). */
uint64_t time__cpu_ns(void);
/*
 * Converts a CLOCK_BOOTTIME time to CLOCK_MONOTONIC, which stops while the machine is suspended. A
 * time before the last suspension comes out too early by its duration. 0: before the clocks
 * started.
 */
uint64_t time__of_boottime_ns(uint64_t boottime_ns);
/* How long the system has been suspended since it booted. */
uint64_t time__suspended_ns(void);
/* Both clocks at one instant, to half a millisecond. -EAGAIN: interrupted between the reads each
 * time. */
int time__both_ns(uint64_t *ret_monotonic_ns, uint64_t *ret_realtime_ns);
/*
 * How many times slower than a real machine this one is (an emulated processor), from the
 * environment variable SAFESCOPED_SLOWNESS, 1 to 100. Time limits are to be multiplied by it.
 */
unsigned int machine__slowness(void);

/* User and system time together. */
uint64_t usage__cpu_ns(const struct rusage *usage);
/* CPU time of this process so far, and its maximum resident size. */
void usage__own(uint64_t *ret_cpu_ns, uint64_t *ret_max_rss_bytes);
/* CPU time of the children that have ended and were waited for. */
uint64_t usage__children_cpu_ns(void);
/* The largest resident size of any of these children. */
uint64_t usage__children_max_rss_bytes(void);

#endif
