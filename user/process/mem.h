/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads another process's memory. A read can hang for as long as the target likes (a page backed
 * by FUSE or userfaultfd), so the daemon itself never calls mem__read: whatever reads memory runs
 * in a forked child with a time limit, mem__guard(), which hands its result back through a shared
 * mapping and is killed when the time is up.
 */
#ifndef SAFESCOPED_PROCESS_MEM_H
#define SAFESCOPED_PROCESS_MEM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* All `len` bytes or -EFAULT (-ESRCH, -EPERM). Only inside of mem__guard(). */
int mem__read(pid_t pid, uint64_t addr, void *buf, size_t len);
int mem__read_u64(pid_t pid, uint64_t addr, uint64_t *ret_value);
int mem__read_u32(pid_t pid, uint64_t addr, uint32_t *ret_value);

/*
 * Runs fn(ctx, out) in a child process. `out` is size bytes, zeroed, shared with the child; on
 * success the caller owns it (mem__guard_free). fn may read what the parent has but changes
 * nothing in it. Returns fn's result (0 or a negative errno above -4096); -ETIMEDOUT when it took
 * longer and was killed; -EIO when the child died.
 */
int mem__guard(int timeout_ms, int (*fn)(void *ctx, void *out), void *ctx, size_t size,
	       void **ret_out);
void mem__guard_free(void *out, size_t size);

#endif
