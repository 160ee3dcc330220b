/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * notify: what a service manager learns of the daemon, by sd_notify(3). Where none is
 * (NOTIFY_SOCKET is not set) nothing happens. Private to the cli room.
 */
#ifndef SAFESCOPED_CLI_NOTIFY_H
#define SAFESCOPED_CLI_NOTIFY_H

#include <stdint.h>

/* It works, or has taken its new configuration; `status` is what systemctl shows. */
void notify__ready(const char *status);
/* What systemctl shows, of one that is ready. */
void notify__status(const char *status);
/* It reads its configuration; notify__ready() follows, whatever became of it. */
void notify__reloading(void);
void notify__stopping(void);
/* It is alive; has to come more often than … */
void notify__alive(void);
/* … this, in ns; 0: nobody waits for it. */
uint64_t notify__alive_every_ns(void);

#endif
