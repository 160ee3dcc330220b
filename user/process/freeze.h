/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stops a process for a while, so that its memory can be read as of one moment. A separate child
 * traces and stops all its threads (ptrace(2), PTRACE_SEIZE and PTRACE_INTERRUPT). The child reads
 * none of the process's memory, and resumes it only by exiting: then the kernel resumes all
 * threads, with the signals that have arrived meanwhile (kernel/ptrace.c, exit_ptrace()). It exits
 * when freeze__end() closes its connection, when the time is up (a kernel timer), and when the
 * daemon ends. So nothing can leave the process stopped.
 *
 * As after SIGSTOP and SIGCONT, a system call in which a thread waited may return EINTR
 * (signal(7)); unlike these, the parent does not notice.
 */
#ifndef SAFESCOPED_PROCESS_FREEZE_H
#define SAFESCOPED_PROCESS_FREEZE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct freeze;

/*
 * Waits up to FREEZE_WAIT_MS until all threads are stopped; they stay stopped until most_ms from
 * now at the latest. -EPERM: somebody else traces it, or it may not be traced; -ESRCH; -ETIMEDOUT:
 * not all of them stopped; -EIO; confine_peer__start()'s errors.
 */
#define FREEZE_WAIT_MS 200
int freeze__start(pid_t pid, int most_ms, struct freeze **ret_freeze);

/*
 * Resumes the process and frees `freeze`. *ret_ns: upper bound of the time it was stopped;
 * *ret_until_now: whether it was still stopped until this call. NULL is fine, and sets nothing.
 */
void freeze__end(struct freeze *freeze, uint64_t *ret_ns, bool *ret_until_now);
void freeze__free(struct freeze *freeze);

#endif
