/* SPDX-License-Identifier: GPL-2.0-or-later */
/* notify: talks to the service manager through libsystemd. */
#include "notify.h"

#include <systemd/sd-daemon.h>

#include "base/base.h"

void notify__ready(const char *status)
{
	sd_notifyf(0, "READY=1\nSTATUS=%s", status);
}

void notify__status(const char *status)
{
	sd_notifyf(0, "STATUS=%s", status);
}

void notify__reloading(void)
{
	/* the time distinguishes this reload's READY=1 from an earlier one's (sd_notify(3)) */
	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu\nSTATUS=Reading the configuration",
		   (unsigned long long)(time__monotonic_ns() / 1000));
}

void notify__stopping(void)
{
	sd_notify(0, "STOPPING=1");
}

void notify__alive(void)
{
	sd_notify(0, "WATCHDOG=1");
}

uint64_t notify__alive_every_ns(void)
{
	uint64_t us;

	return sd_watchdog_enabled(0, &us) > 0 ? us * 1000 : 0;
}
