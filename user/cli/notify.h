/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * notify: informs the service manager of the daemon's state, by sd_notify(3). Does nothing without
 * a service manager (NOTIFY_SOCKET is unset). Private to the cli room.
 */
#ifndef SAFESCOPED_CLI_NOTIFY_H
#define SAFESCOPED_CLI_NOTIFY_H

#include <stdint.h>

/* The daemon is running, or has taken its new configuration. systemctl shows `status`. */
void notify__ready(const char *status);
/* Changes the status that systemctl shows of a running daemon. */
void notify__status(const char *status);
/* The daemon is reading its configuration; notify__ready() must follow in any case. */
void notify__reloading(void);
void notify__stopping(void);
/* Pings the watchdog; must be called more often than every … */
void notify__alive(void);
/* … this many ns; 0: there is no watchdog. */
uint64_t notify__alive_every_ns(void);

#endif
