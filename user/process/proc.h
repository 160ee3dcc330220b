/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What /proc has of a process. Its texts hold bytes that the process chose (its name, the
 * paths it maps), so every parser here takes any bytes.
 */
#ifndef SAFESCOPED_PROCESS_PROC_H
#define SAFESCOPED_PROCESS_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROC_MAX_MAPS	 (1U << 20)
#define PROC_MAX_THREADS (1U << 20)
#define PROC_MAX_TEXT	 (128U << 20)
#define PROC_PATH_LEN	 64 /* room for "/proc/PID/map_files/START-END" */

/* Reads a whole file of /proc or /sys, of at most `max` bytes (-EFBIG); NUL-terminated, the caller
 * frees. -ESRCH: there is none. */
int proc__text(const char *path, size_t max, char **ret_text, size_t *ret_len);
/* The same of one of the files of a process, or of one of its threads (tid > 0); a MB at most. */
int proc__text_of(pid_t pid, pid_t tid, const char *name, char **ret_text, size_t *ret_len);

struct proc_stat {
	char comm[16];
	char state;
	uint64_t start_ticks; /* since boot, in clock ticks */
	uint64_t cpu_ticks;   /* on a CPU so far, in user and kernel mode; of a process: all its
				 threads */
	/* Of the program: an exec changes them. 0: there is none (any more); some are 0 or 1 for
	 * whoever may not trace the process. */
	uint64_t start_code, end_code, start_stack;
};
/* The text of a stat file. -EINVAL. */
int proc__parse_stat(const char *text, size_t len, struct proc_stat *ret_stat);
/* Of a thread; tid 0: of the process. -ESRCH if it is gone. */
int proc__stat(pid_t pid, pid_t tid, struct proc_stat *ret_stat);
uint64_t proc__ticks_to_ns(uint64_t ticks);
/* The exit code at the end of a stat file's text, as wait() gives it. -EINVAL. */
int proc__parse_exit(const char *text, size_t len, int *ret_status);
/*
 * How a process ended of which the pidfd shows that it has, as wait() gives it: while it is a
 * zombie by its stat file, after that by its pidfd, since Linux 6.15. -ESRCH: nobody knows any
 * more.
 */
int proc__exit_status(pid_t pid, int pidfd, int *ret_status);
/*
 * Why /proc/PID may not be looked into (EACCES), for its user and with what would help: a
 * capability, a namespace or a security module.
 */
struct proc_denied {
	char s[256];
};
struct proc_denied proc__why_denied(pid_t pid);

/* The monotonic line of a timens_offsets file's text. -EINVAL. */
int proc__parse_clock(const char *text, size_t len, int64_t *ret_ns);
/*
 * How far a process's CLOCK_MONOTONIC is ahead of the kernel's own, by its time namespace. That is
 * so for as long as it runs one program. -ENOTSUP: nobody knows, as it has a namespace for its
 * children that is not its own.
 */
int proc__clock_ahead(pid_t pid, int64_t *ret_ns);

/* The innermost pid in an NSpid line of a status file's text. -ENOENT. */
int proc__parse_ns_pid(const char *text, size_t len, pid_t *ret_pid);
/* Of a thread; tid 0: of the process. */
int proc__ns_pid(pid_t pid, pid_t tid, pid_t *ret_pid);

/* The four user ids in the Uid line of a status file's text: real, effective, saved, file system.
 */
#define PROC_UIDS 4
int proc__parse_uids(const char *text, size_t len, uid_t ret_uids[PROC_UIDS]);
/* Of a process. -ESRCH; -ENOENT: no such line. */
int proc__uids(pid_t pid, uid_t ret_uids[PROC_UIDS]);

/* The parent in the PPid line of a status file's text; 0: it has none here. -ENOENT. */
int proc__parse_parent(const char *text, size_t len, pid_t *ret_pid);
/* The id outside of the first one in a uid_map file's text. -ENODATA: none is mapped. */
int proc__parse_uid_map(const char *text, size_t len, uid_t *ret_uid);

struct proc_map {
	uint64_t start, end, offset, ino;
	uint32_t dev_major, dev_minor;
	bool read, write, exec, deleted;
	const char *path; /* in proc_maps.text; "" for anonymous memory */
};
struct proc_maps {
	struct proc_map *maps; /* ascending, none overlaps another */
	size_t n, cap;
	char *text;
};
/* Takes the malloc'ed text over (also on failure); lines that are damaged are left out. */
int proc__parse_maps(char *text, size_t len, struct proc_maps *ret_maps);
int proc__maps(pid_t pid, struct proc_maps *ret_maps);
void proc_maps__free(struct proc_maps *maps);
const struct proc_map *proc_maps__at(const struct proc_maps *maps, uint64_t addr);

/*
 * The very file that is mapped, as an O_PATH descriptor: by map_files, else (when it is not
 * allowed) by exe or the path in the process's root, then only if device and inode are those of the
 * mapping. The file must be regular. ret_path opens the same file again. Waits for no server:
 * -EREMOTEIO if the path could not be looked up in time.
 */
int proc__open_map(pid_t pid, const struct proc_map *map, char ret_path[PROC_PATH_LEN], int *ret_fd,
		   uint64_t *ret_dev, uint64_t *ret_ino);

/* What /proc/PID/exe points at; NUL-terminated. Of a file that was removed or replaced it is the
 * path that it had, without what the kernel adds. */
int proc__exe(pid_t pid, char *buf, size_t size);

/* All thread ids; the caller frees. */
int proc__threads(pid_t pid, pid_t **ret_tids, size_t *ret_n);
/*
 * Another thread of a process whose main thread has exited: by its number /proc shows the program
 * and the mappings, and by the process's own no more. -ESRCH: it is no such process, or all of it
 * has ended.
 */
int proc__living_thread(pid_t pid, pid_t *ret_tid);

struct proc_syscall {
	bool running; /* on a CPU or runnable: nothing else is known then */
	uint32_t nr;  /* WIRE_NO_SYSCALL: stopped outside of a system call */
	uint64_t sp, pc;
};
int proc__parse_syscall(const char *text, size_t len, struct proc_syscall *ret_syscall);
int proc__syscall(pid_t pid, pid_t tid, struct proc_syscall *ret_syscall);

int proc__pidfd(pid_t pid, int *ret_fd);

/*
 * The user on whose account a process runs: its real user, or, in a user namespace of its own,
 * whoever made the outermost one. There all the ids that are mapped into it are his. If root made
 * it, as the host's daemon does for a container, it is the user that is the first one there: 0 only
 * for what root may do outside, too.
 */
int proc__account(pid_t pid, uid_t *ret_uid);

#endif
