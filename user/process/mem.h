/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads another process's memory. A read can hang for as long as the target likes (a page backed by
 * FUSE or userfaultfd), and not even a signal ends it: so the daemon itself never calls
 * mem__read(). Memory is read only in a confined child with a time limit (confine.h), which has
 * access to nothing of the daemon's but that memory and is killed when its time is up. A child that
 * the kernel does not let die is written off: nobody waits for it.
 */
#ifndef SAFESCOPED_PROCESS_MEM_H
#define SAFESCOPED_PROCESS_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Reads all `len` bytes, or returns -EFAULT (-ESRCH, -EPERM). Only in a guard's child. */
int mem__read(pid_t pid, uint64_t addr, void *buf, size_t len);
int mem__read_u64(pid_t pid, uint64_t addr, uint64_t *ret_value);
int mem__read_u32(pid_t pid, uint64_t addr, uint32_t *ret_value);

/*
 * Opens /proc/PID/mem read-only: whoever has the descriptor can read that process's memory without
 * any right, and no other process's. It stays bound to the running program: once that has ended or
 * called exec() it reads as -ESRCH. Fails with -ESRCH or -EPERM.
 */
int mem__open(pid_t pid, int *ret_fd);
/*
 * In a guard's child: makes mem__read() read this descriptor from now on, whatever pid it is given.
 * -1: of a process that has ended.
 */
void mem__use(int fd);

/*
 * A guard is a confined child that runs fn(ctx, out); `out` is `size` bytes, zeroed, shared with
 * the child. It has access to one of these:
 */
enum guard_reads {
	GUARD_MEMORY, /* a descriptor of the process's memory, and no rights */
	GUARD_PROC,   /* memory and /proc of any process (CONFINE_PROC) */
};
struct guard;
typedef int (*guard_fn)(void *ctx, void *out);

/*
 * Starts a guard that reads process `of`. The child has its own copy of `ctx` from here on. -EBUSY:
 * that process's memory hung recently, or too many children hang; mem__open()'s and
 * confine__start()'s errors.
 */
int guard__start(pid_t of, enum guard_reads what, int timeout_ms, guard_fn fn, void *ctx,
		 size_t size, struct guard **ret_guard);
/* Readable once the guard has ended; -1: this kernel has no pidfds, so poll guard__take() now and
 * then. */
int guard__fd(const struct guard *guard);
/* When it will be killed, CLOCK_MONOTONIC. */
uint64_t guard__due_ns(const struct guard *guard);
/*
 * Never blocks. -EINPROGRESS: still running. Otherwise it is over, and the guard is freed: fn's
 * result (0, or a negative errno above -4096 other than -EAGAIN), and on 0 *ret_out belongs to the
 * caller (mem__guard_free()); -ETIMEDOUT if it took too long and was killed; -EIO if it died.
 */
int guard__take(struct guard *guard, void **ret_out);
/* Kills it if it is still running. NULL is fine. */
void guard__free(struct guard *guard);

/* Starts a guard and waits for it. */
int mem__guard(pid_t of, enum guard_reads what, int timeout_ms, guard_fn fn, void *ctx, size_t size,
	       void **ret_out);
void mem__guard_free(void *out, size_t size);

/*
 * All guards together must be over by then (CLOCK_MONOTONIC): each gets a share of the remaining
 * time, so that one that hangs leaves some for the others. 0: no such limit.
 */
void guard__all_until(uint64_t ns);

#endif
