/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The capabilities of this process. */
#include "caps.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int caps__permitted(uint64_t *ret_caps)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};

	if (syscall(SYS_capget, &head, data))
		return -errno;
	*ret_caps = (uint64_t)data[1].permitted << 32 | data[0].permitted;
	return 0;
}

int caps__reduce_to(uint64_t caps)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {{0}};
	uint64_t have = 0;
	int err = caps__permitted(&have);

	if (err)
		return err;
	caps &= have;
	data[0].effective = data[0].permitted = (uint32_t)caps;
	data[1].effective = data[1].permitted = (uint32_t)(caps >> 32);
	/* fails only on kernels without ambient capabilities */
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	return syscall(SYS_capset, &head, data) ? -errno : 0;
}
