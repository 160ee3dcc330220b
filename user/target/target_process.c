/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether it is still the same process, and its current maps. */
#include <errno.h>
#include <poll.h>

#include "base/base.h"
#include "base/retry.h"
#include "names/names.h"
#include "process/proc.h"
#include "target_priv.h"

bool target__alive(const struct target *target)
{
	struct pollfd pfd = {.fd = target->pidfd, .events = POLLIN};
	struct proc_stat st;
	int err;

	if (poll(&pfd, 1, 0) != 0)
		return false;
	err = proc__stat(target->info.pid, 0, &st);
	/* nothing can be opened or read: only the pidfd shows that it has not ended */
	if (retry__shows_nothing(err))
		return true;
	return err == 0 && st.start_ticks == target->first.start_ticks;
}

bool target__runs_same(const struct target *target)
{
	const struct proc_stat *first = &target->first;
	struct proc_stat now;

	if (proc__stat(target->info.pid, 0, &now) || !first->start_stack || !now.start_stack)
		return true;
	return now.start_code == first->start_code && now.end_code == first->end_code &&
	       now.start_stack == first->start_stack;
}

int target__refresh_maps(struct target *target)
{
	/* names in earlier ranges were forgotten already; only the last range may have grown */
	size_t first = MIN(target->images.n_retaken, (size_t)IMAGES_RETAKEN_MAX - 1);
	int err =
		target__alive(target) ? images__refresh(&target->images, target->info.pid) : -ESRCH;

	/* checked again: the maps may be those of another process that has reused the pid
	 * meanwhile */
	if (err == 0 && !target__alive(target))
		err = -ESRCH;
	for (size_t i = first; target->names && i < target->images.n_retaken; i++)
		names__forget(target->names, target->images.retaken[i].start,
			      target->images.retaken[i].end);
	return err;
}

bool target__may_come_later(const struct target *target)
{
	return images__may_come_later(&target->images);
}

bool target__take_retaken(struct target *target, uint64_t *ret_start, uint64_t *ret_end)
{
	struct image_place place;

	if (!images__take_retaken(&target->images, &place))
		return false;
	*ret_start = place.start;
	*ret_end = place.end;
	return true;
}
