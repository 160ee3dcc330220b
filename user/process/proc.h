/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads /proc files of a process. Their texts contain bytes that the process chose (its name, the
 * paths it maps), so every parser here accepts any bytes.
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

/* Whether a file system of this kind (linux/magic.h) is mounted there: a container, or a root
 * directory of one's own, may lack /proc. Also true if this cannot be found out. */
bool proc__is_mounted(const char *path, uint32_t magic);
/* Reads a whole file of /proc or /sys, up to `max` bytes (-EFBIG); NUL-terminated, the caller
 * frees. -ESRCH: no such file. */
int proc__text(const char *path, size_t max, char **ret_text, size_t *ret_len);
/* The same for a file of a process, or of one of its threads (tid > 0); up to 1 MB. */
int proc__text_of(pid_t pid, pid_t tid, const char *name, char **ret_text, size_t *ret_len);

struct proc_stat {
	char comm[16];
	char state;
	bool kernel_thread;
	uint64_t start_ticks; /* since boot, in clock ticks */
	uint64_t cpu_ticks;   /* user and kernel mode; of a process: all its threads */
	/* Addresses of the program, which exec changes. 0: none (any more); some are 0 or 1 for
	 * readers that may not trace the process. */
	uint64_t start_code, end_code, start_stack;
};
/* Parses the text of a stat file. -EINVAL. */
int proc__parse_stat(const char *text, size_t len, struct proc_stat *ret_stat);
/* Of a thread; tid 0: of the process. -ESRCH if it is gone. */
int proc__stat(pid_t pid, pid_t tid, struct proc_stat *ret_stat);
uint64_t proc__ticks_to_ns(uint64_t ticks);
/* The exit code at the end of a stat file's text, in the format of wait(). -EINVAL. */
int proc__parse_exit(const char *text, size_t len, int *ret_status);
/*
 * The exit status, in the format of wait(), of a process that its pidfd shows to have ended: read
 * from its stat file while it is a zombie, and after that, since Linux 6.15, from its pidfd.
 * -ESRCH: not known any more.
 */
int proc__exit_status(pid_t pid, int pidfd, int *ret_status);
/*
 * The reason why /proc/PID may not be read (EACCES), for the user, with a remedy: a capability, a
 * namespace or a security module.
 */
struct proc_denied {
	char s[256];
};
struct proc_denied proc__why_denied(pid_t pid);
/* True if our user namespace is the host's, or unknown. */
bool proc__has_host_users(void);

/* Parses the monotonic line of a timens_offsets file. -EINVAL. */
int proc__parse_clock(const char *text, size_t len, int64_t *ret_ns);
/*
 * How far a process's CLOCK_MONOTONIC is ahead of the kernel's own because of its time namespace.
 * Fixed for as long as it runs one program. -ENOTSUP: unknown, since its namespace for children is
 * not its own.
 */
int proc__clock_ahead(pid_t pid, int64_t *ret_ns);

/* The innermost pid in the NSpid line of a status file's text. -ENOENT. */
int proc__parse_ns_pid(const char *text, size_t len, pid_t *ret_pid);
/* Of a thread; tid 0: of the process. */
int proc__ns_pid(pid_t pid, pid_t tid, pid_t *ret_pid);

/* The four user ids in the Uid line of a status file: real, effective, saved, file system. */
#define PROC_UIDS 4
int proc__parse_uids(const char *text, size_t len, uid_t ret_uids[PROC_UIDS]);
/* Of a process. -ESRCH; -ENOENT: no such line. */
int proc__uids(pid_t pid, uid_t ret_uids[PROC_UIDS]);

/* The parent in the PPid line of a status file; 0: none in this namespace. -ENOENT. */
int proc__parse_parent(const char *text, size_t len, pid_t *ret_pid);
/* The outside id of the first id in a uid_map file's text. -ENODATA: none is mapped. */
int proc__parse_uid_map(const char *text, size_t len, uid_t *ret_uid);

struct proc_map {
	uint64_t start, end, offset, ino;
	uint32_t dev_major, dev_minor;
	bool read, write, exec, deleted;
	const char *path; /* in proc_maps.text; "" for anonymous memory */
};
struct proc_maps {
	struct proc_map *maps; /* ascending, without overlap */
	size_t n, cap;
	char *text;
};
/* Takes over the malloc'ed text, also on failure; damaged lines are left out. */
int proc__parse_maps(char *text, size_t len, struct proc_maps *ret_maps);
int proc__maps(pid_t pid, struct proc_maps *ret_maps);
void proc_maps__free(struct proc_maps *maps);
const struct proc_map *proc_maps__at(const struct proc_maps *maps, uint64_t addr);

/*
 * Opens the very file that is mapped, as an O_PATH descriptor: by map_files, or, if that is not
 * allowed, by exe or by the path in the process's root, provided that device and inode match the
 * mapping. The file must be regular. ret_path opens the same file again. Waits for no server:
 * -EREMOTEIO if the path could not be looked up in time.
 */
int proc__open_map(pid_t pid, const struct proc_map *map, char ret_path[PROC_PATH_LEN], int *ret_fd,
		   uint64_t *ret_dev, uint64_t *ret_ino);

/* The target of /proc/PID/exe, NUL-terminated. For a file that was removed or replaced, its former
 * path without the suffix that the kernel adds. */
int proc__exe(pid_t pid, char *buf, size_t size);

/* All thread ids; the caller frees. */
int proc__threads(pid_t pid, pid_t **ret_tids, size_t *ret_n);
/*
 * A living thread of a process whose main thread has exited: /proc still shows the program and the
 * mappings under that thread's id, but not under the process's own. -ESRCH: the main thread lives,
 * or the whole process has ended.
 */
int proc__living_thread(pid_t pid, pid_t *ret_tid);

struct proc_syscall {
	bool running; /* on a CPU or runnable: nothing else is known */
	uint32_t nr;  /* WIRE_NO_SYSCALL: stopped outside a system call */
	uint64_t sp, pc;
};
int proc__parse_syscall(const char *text, size_t len, struct proc_syscall *ret_syscall);
int proc__syscall(pid_t pid, pid_t tid, struct proc_syscall *ret_syscall);

int proc__pidfd(pid_t pid, int *ret_fd);

/*
 * The user that a process is charged to: its real user, or, if it is in another user namespace,
 * whoever made the outermost one, as all ids mapped into it are his. If root made it, as the host's
 * daemon does for a container, it is the user mapped to the first id there: 0 only for a process
 * that may act as root outside as well.
 */
int proc__account(pid_t pid, uid_t *ret_uid);

#endif
