/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads another process's memory. A read can hang for as long as the target likes (a page backed
 * by FUSE or userfaultfd), and in a way that no signal ends: so the daemon itself never calls
 * mem__read. Whatever reads memory runs in a confined child with a time limit (confine.h), which
 * holds nothing of the daemon's but that memory and is killed when the time is up. One that the
 * kernel does not let die is written off: nobody waits for it.
 */
#ifndef SAFESCOPED_PROCESS_MEM_H
#define SAFESCOPED_PROCESS_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* All `len` bytes or -EFAULT (-ESRCH, -EPERM). Only in a guard's child. */
int mem__read(pid_t pid, uint64_t addr, void *buf, size_t len);
int mem__read_u64(pid_t pid, uint64_t addr, uint64_t *ret_value);
int mem__read_u32(pid_t pid, uint64_t addr, uint32_t *ret_value);

/*
 * A descriptor of its /proc/PID/mem, to be read only: whoever has it reads that process's memory,
 * without any right, and nobody else's. It stays that program's, and reads as -ESRCH once it has
 * ended or become another one by exec(). -ESRCH, -EPERM.
 */
int mem__open(pid_t pid, int *ret_fd);
/*
 * In a guard's child: from now on it is what mem__read() reads, whatever pid it is given. -1: of a
 * process that has ended.
 */
void mem__use(int fd);

/*
 * A confined child that runs fn(ctx, out). `out` is size bytes, zeroed, shared with the child. It
 * has one of these:
 */
enum guard_reads {
	GUARD_MEMORY, /* a descriptor for the process's memory, and no rights */
	GUARD_PROC,   /* memory and /proc of any process (CONFINE_PROC) */
};
struct guard;
typedef int (*guard_fn)(void *ctx, void *out);

/*
 * Starts one that reads process `of`. `ctx` is the child's own copy from here on. -EBUSY: that
 * process's memory hung not long ago, or too many children hang; mem__open()'s and
 * confine__start()'s errors.
 */
int guard__start(pid_t of, enum guard_reads what, int timeout_ms, guard_fn fn, void *ctx,
		 size_t size, struct guard **ret_guard);
/* Readable once it has ended; -1: this kernel has no such descriptor, so ask now and then. */
int guard__fd(const struct guard *guard);
/* When it is killed, CLOCK_MONOTONIC. */
uint64_t guard__due_ns(const struct guard *guard);
/*
 * Never waits. -EINPROGRESS: it goes on. Otherwise it is over, and the guard is freed: fn's result
 * (0, or a negative errno above -4096 but -EAGAIN), with *ret_out the caller's on 0
 * (mem__guard_free); -ETIMEDOUT when it took longer and was killed; -EIO when it died.
 */
int guard__take(struct guard *guard, void **ret_out);
/* Kills it if it has not ended. NULL is fine. */
void guard__free(struct guard *guard);

/* Starts one, and waits for it. */
int mem__guard(pid_t of, enum guard_reads what, int timeout_ms, guard_fn fn, void *ctx, size_t size,
	       void **ret_out);
void mem__guard_free(void *out, size_t size);

/*
 * All guards together shall be over by then (CLOCK_MONOTONIC): each gets a share of what is left,
 * so that one that hangs leaves something for the others. 0: no such limit.
 */
void guard__all_until(uint64_t ns);

#endif
