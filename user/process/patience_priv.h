/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How long to wait for a process whose memory may hang. A process whose memory hung is left alone
 * for a time that doubles with each further hang. The time waited in vain for all processes
 * together is limited to a share of the time that passes, so that many processes hanging in turn
 * cannot use it all up.
 */
#ifndef SAFESCOPED_PROCESS_PATIENCE_PRIV_H
#define SAFESCOPED_PROCESS_PATIENCE_PRIV_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* How long a process is left alone after its first hang, and at most. */
#define PATIENCE_FIRST_NS   1000000000ULL
#define PATIENCE_LONGEST_NS 60000000000ULL
/*
 * Limit of the time waited in vain, less than the watch tolerates (WIRE_HELD_UP_NS); a fourth of
 * the time that passes is given back. Beyond the limit waits are short, but enough for a process
 * that does not hang.
 */
#define PATIENCE_WAITED_NS 1500000000ULL
#define PATIENCE_SHORT_MS  50

struct patience_entry;

/* Zeroed: no process has hung. */
struct patience {
	struct patience_entry *entries; /* by pid */
	uint64_t waited_ns, forgiven_ns;
};

/*
 * Whether the process may be waited for, and how long: *ret_ms is at most timeout_ms, and never
 * more than PATIENCE_WAITED_NS. -EBUSY: it hung recently.
 */
int patience__ask(struct patience *p, pid_t pid, int timeout_ms, uint64_t now_ns, int *ret_ms);
/* It hung after waiting this long. */
void patience__hung(struct patience *p, pid_t pid, uint64_t waited_ns, uint64_t now_ns);
/* It did not hang. */
void patience__well(struct patience *p, pid_t pid);

#endif
