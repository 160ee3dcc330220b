/* SPDX-License-Identifier: GPL-2.0-or-later */
/* live: the check against the live process, synchronous or asynchronous. */
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "names/names.h"
#include "process/mem.h"
#include "target_priv.h"

#define CHECK_TIMEOUT_MS 2000

/* Returns 0 with a verdict, or a negative errno after reporting its line. */
static int judge(struct target *t, bool last, enum target_verdict *ret_verdict)
{
	if (t->check.verdict == CHECK_OK && !t->info.version_known && t->check.tsos == 0) {
		/* A version without a measured layout must confirm more than a known one. */
		if (!last) {
			*ret_verdict = TARGET_NOT_READY;
			return 0;
		}
		target__refuse(t,
			       "GHC %s (%s): unknown version, and no Haskell thread to confirm its "
			       "offsets with; try again while it is busy",
			       t->rts.version, t->rts.way);
		return -ENOTSUP;
	}
	if (t->check.verdict == CHECK_FAILED && last) {
		target__refuse(t,
			       "GHC %s (%s): the live process does not confirm the layout: %s; "
			       "nothing was "
			       "attached",
			       t->rts.version, t->rts.way, t->check.why);
		return -ENOTSUP;
	}
	if (t->check.verdict == CHECK_OK && !t->info.version_known && !t->reason)
		log_info("pid %d: GHC %s (%s): unknown version, offsets confirmed live (by %u "
			 "Tasks, %u Haskell threads and %u safe calls in its code)",
			 t->info.pid, t->rts.version, t->rts.way, t->check.tasks, t->check.tsos,
			 t->rts.callsites.offset_votes);
	*ret_verdict = t->check.verdict == CHECK_OK ? TARGET_OK : TARGET_NOT_READY;
	return 0;
}

/* Reports the line for a check that was not possible. Returns err. */
static int explain(struct target *t, int err)
{
	if (err == -EPERM || err == -EACCES)
		target__refuse(t, "cannot read its memory: %s; %s", strerror(-err),
			       proc__why_denied(t->info.pid).s);
	else if (err == -ENOTSUP)
		target__refuse(t,
			       "GHC %s (%s): the layout of this version is not known; see the "
			       "README for the supported versions",
			       t->rts.version, t->rts.way);
	else if (err == -ETIMEDOUT || err == -EBUSY)
		target__refuse(t, "its runtime could not be checked within %d s; try again",
			       CHECK_TIMEOUT_MS / 1000);
	else
		target__refuse(t, "cannot check its runtime: %s; is it still running?",
			       strerror(-err));
	return err;
}

static int known_version(struct target *t)
{
	if (t->rts.version[0])
		return 0;
	target__refuse(t, "a GHC program of unknown version (%s); its offsets are unknown", t->exe);
	return -ENOTSUP;
}

int live__check(struct target *t, enum target_verdict *ret_verdict)
{
	int err = known_version(t);

	if (err)
		return err;
	err = check__run(t->info.pid, &t->rts, &t->images, t->rts.version, CHECK_TIMEOUT_MS, true,
			 &t->check, &t->info.version_known);
	return err ? explain(t, err) : judge(t, true, ret_verdict);
}

/* ── looks that nobody waits for ─────────────────────────────────────────────────────────── */

/*
 * Like explain(), for a process that was to be followed: the log gets no line if it has ended, as
 * short programs do, or if it will be checked again.
 */
static int explain_looked_at(struct target *t, bool last, int err)
{
	bool passing = err == -ESRCH || err == -ETIMEDOUT || err == -EBUSY;

	if (!t->reason && ((passing && !last) || !target__alive(t))) {
		log_debug("pid %d: not checked: %s", t->info.pid, strerror(-err));
		return err;
	}
	return explain(t, err);
}

static int start(struct target *t, bool last)
{
	int err = target__refresh_maps(t);

	if (!err)
		err = known_version(t);
	if (err)
		return err;
	target__cancel(t);
	t->check_last = last;
	err = check__start(t->info.pid, &t->rts, &t->images, t->rts.version, CHECK_TIMEOUT_MS, last,
			   &t->checking);
	/* -EBUSY shows nothing about the process */
	return err && err != -EBUSY ? explain_looked_at(t, last, err) : err;
}

int target__start_check(struct target *t, bool last, char *reason, size_t reason_size)
{
	int err;

	t->reason = reason;
	t->reason_size = reason_size;
	err = start(t, last);
	t->reason = NULL;
	return err;
}

int target__take_check(struct target *t, char *reason, size_t reason_size,
		       enum target_verdict *ret_verdict)
{
	enum target_verdict verdict = TARGET_NOT_READY;
	int err;

	if (!t->checking)
		return -EINVAL;
	err = check__take(t->checking, &t->check, &t->info.version_known);
	if (err == -EINPROGRESS)
		return err;
	t->checking = NULL;
	t->reason = reason;
	t->reason_size = reason_size;
	err = err ? explain_looked_at(t, t->check_last, err) : judge(t, t->check_last, &verdict);
	t->reason = NULL;
	if (err)
		return err;
	if (verdict == TARGET_OK)
		target__fill_wire(t);
	*ret_verdict = verdict;
	return 0;
}

/* -1 unless a snapshot is waiting for what names need. */
int target__names_fd(const struct target *t)
{
	if (!t->snapshot || time__monotonic_ns() >= snapshot_look__due_ns(t->snapshot))
		return -1;
	return names__preparing(t->names);
}

int target__look_fd(const struct target *t)
{
	int names_fd = target__names_fd(t);

	if (t->checking)
		return check__fd(t->checking);
	if (names_fd >= 0)
		return names_fd;
	if (t->snapshot)
		return snapshot_look__fd(t->snapshot);
	if (t->living)
		return guard__fd(t->living);
	return t->census ? census_look__fd(t->census) : -1;
}

bool target__looks(const struct target *t)
{
	return t->checking || t->snapshot || t->census || t->living;
}
