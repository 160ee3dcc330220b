/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How long to wait for a process whose memory may hang. One whose memory hung is left alone for a
 * time, which doubles each time that it hangs again; and what was waited in vain for all processes
 * together is held to a share of the time, so that many of them cannot fill it by turns.
 */
#ifndef SAFESCOPED_PROCESS_PATIENCE_PRIV_H
#define SAFESCOPED_PROCESS_PATIENCE_PRIV_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* How long a process is left alone after it hung for the first time, and at most. */
#define PATIENCE_FIRST_NS   1000000000ULL
#define PATIENCE_LONGEST_NS 60000000000ULL
/*
 * So much may be waited in vain, less than what the watch bears (WIRE_HELD_UP_NS); a fourth of the
 * time that passes is forgiven. Beyond that, waits are short: enough for a process that does not
 * hang.
 */
#define PATIENCE_WAITED_NS 1500000000ULL
#define PATIENCE_SHORT_MS  50

struct patience_entry;

/* Zeroed: nobody has hung yet. */
struct patience {
	struct patience_entry *entries; /* by pid */
	uint64_t waited_ns, forgiven_ns;
};

/*
 * May the process be waited for, and for how long? *ret_ms is timeout_ms or less, and
 * never more than PATIENCE_WAITED_NS. -EBUSY: it hung
 * not long ago.
 */
int patience__ask(struct patience *p, pid_t pid, int timeout_ms, uint64_t now_ns, int *ret_ms);
/* It hung, and was waited for this long. */
void patience__hung(struct patience *p, pid_t pid, uint64_t waited_ns, uint64_t now_ns);
/* It did not hang. */
void patience__well(struct patience *p, pid_t pid);

#endif
