/* SPDX-License-Identifier: GPL-2.0-or-later */
/* looks: looks into the memory of targets, which run while the loop turns. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "base/shares.h"
#include "session_priv.h"

struct looks {
	struct shares *shares; /* of looks in progress, by the target's address */
	struct target *going[LOOKS_MAX];
	size_t n;
};

int looks__new(struct looks **ret_looks)
{
	struct looks *looks = calloc(1, sizeof(*looks));
	int err;

	if (!looks)
		return -ENOMEM;
	err = shares__new(LOOKS_MAX, UINT64_MAX, &looks->shares);
	if (err) {
		free(looks);
		return err;
	}
	*ret_looks = looks;
	return 0;
}

void looks__free(struct looks *looks)
{
	if (!looks)
		return;
	shares__free(looks->shares);
	free(looks);
}

static int begin(struct looks *looks, struct target *target)
{
	int err = shares__use(looks->shares, (uintptr_t)target, target__account(target), 0);

	if (err)
		target__cancel(target);
	else
		looks->going[looks->n++] = target;
	return err;
}

static void over(struct looks *looks, const struct target *target)
{
	for (size_t i = 0; i < looks->n; i++) {
		if (looks->going[i] != target)
			continue;
		shares__leave(looks->shares, (uintptr_t)target, target__account(target));
		looks->going[i] = looks->going[--looks->n];
		return;
	}
}

int looks__check(struct looks *looks, struct target *target, bool last, char *reason,
		 size_t reason_size)
{
	int err = shares__ask(looks->shares, target__account(target), 0);

	if (!err)
		err = target__start_check(target, last, reason, reason_size);
	return err ? err : begin(looks, target);
}

int looks__checked(struct looks *looks, struct target *target, char *reason, size_t reason_size,
		   enum target_verdict *ret_verdict)
{
	int err = target__take_check(target, reason, reason_size, ret_verdict);

	if (err != -EINPROGRESS)
		over(looks, target);
	return err;
}

int looks__snapshot(struct looks *looks, struct target *target, int timeout_ms)
{
	int err = shares__ask(looks->shares, target__account(target), 0);

	if (!err)
		err = target__start_snapshot(target, timeout_ms);
	return err ? err : begin(looks, target);
}

int looks__snapshot_taken(struct looks *looks, struct target *target, struct snapshot *ret_snapshot)
{
	int err = target__take_snapshot(target, ret_snapshot);

	if (err != -EINPROGRESS)
		over(looks, target);
	return err;
}

int looks__census(struct looks *looks, struct target *target, int timeout_ms, int freeze_ms)
{
	int err = shares__ask(looks->shares, target__account(target), 0);

	if (!err)
		err = target__start_census(target, timeout_ms, freeze_ms);
	return err ? err : begin(looks, target);
}

int looks__census_taken(struct looks *looks, struct target *target,
			struct target_census **ret_census)
{
	int err = target__take_census(target, ret_census);

	if (err != -EINPROGRESS)
		over(looks, target);
	return err;
}

int looks__living(struct looks *looks, struct target *target, int timeout_ms)
{
	int err = shares__ask(looks->shares, target__account(target), 0);

	if (!err)
		err = target__start_living(target, timeout_ms);
	return err ? err : begin(looks, target);
}

int looks__living_taken(struct looks *looks, struct target *target,
			struct target_living **ret_living)
{
	int err = target__take_living(target, ret_living);

	if (err != -EINPROGRESS)
		over(looks, target);
	return err;
}

void looks__cancel(struct looks *looks, struct target *target)
{
	over(looks, target);
	target__cancel(target);
}

size_t looks__count(const struct looks *looks)
{
	return looks->n;
}

int looks__fd(const struct looks *looks, size_t i)
{
	return target__look_fd(looks->going[i]);
}

bool looks__wait(const struct looks *looks, int signal_fd, int timeout_ms)
{
	struct pollfd fds[LOOKS_MAX + 1];

	for (size_t i = 0; i < looks->n; i++)
		fds[i] = (struct pollfd){.fd = looks__fd(looks, i), .events = POLLIN};
	fds[looks->n] = (struct pollfd){.fd = signal_fd, .events = POLLIN};
	return poll(fds, looks->n + 1, timeout_ms) > 0 && fds[looks->n].revents;
}
