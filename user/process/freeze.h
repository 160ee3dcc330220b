/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stops a process for a while, so that its memory can be read as it is at one moment. A child of
 * its own traces all its threads and stops them (ptrace(2), PTRACE_SEIZE and PTRACE_INTERRUPT); it
 * reads none of its memory, and the only way by which it lets go is its end: then the kernel lets
 * all of them run on, with the signals that have come meanwhile (kernel/ptrace.c, exit_ptrace()).
 * It ends when freeze__end() closes its connection, when the time is up (a timer of the kernel's),
 * and when the daemon ends. So nothing keeps the process stopped.
 *
 * As after SIGSTOP and SIGCONT, a system call in which a thread waited may return EINTR
 * (signal(7)); unlike these, it is not seen by the parent.
 */
#ifndef SAFESCOPED_PROCESS_FREEZE_H
#define SAFESCOPED_PROCESS_FREEZE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct freeze;

/*
 * Waits until all threads are stopped, FREEZE_WAIT_MS at most; they stay so no longer than most_ms
 * from now. -EPERM: it is traced by somebody else, or may not be traced; -ESRCH; -ETIMEDOUT: not
 * all of them have stopped; -EIO; confine_peer__start()'s errors.
 */
#define FREEZE_WAIT_MS 200
int freeze__start(pid_t pid, int most_ms, struct freeze **ret_freeze);

/*
 * Lets it go. *ret_ns: how long it was stopped, at most; *ret_until_now: it was not let go before.
 * NULL is fine: it sets nothing.
 */
void freeze__end(struct freeze *freeze, uint64_t *ret_ns, bool *ret_until_now);
void freeze__free(struct freeze *freeze);

#endif
