/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Looks for Haskell threads that a capture has (intake__living), for a replay in windows: it cuts
 * where none was made, and which threads wait on at a cut is what the looks after it have shown.
 * Shared by the files of this room only.
 */
#ifndef SAFESCOPED_AHEAD_LIVING_PRIV_H
#define SAFESCOPED_AHEAD_LIVING_PRIV_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct intake;
struct intake_input;
struct living_look;

struct ahead_living {
	struct living_look *v;
	size_t n, cap;
};

void ahead_living__free(struct ahead_living *living);
/* Keeps a look (TI_LIVING) of the target with this number. -E2BIG, -ENOMEM. */
int ahead_living__add(struct ahead_living *living, size_t no, const struct intake_input *input);
/* Gives the target's looks to the intake, which has just taken it. -ENOMEM. */
int ahead_living__give(const struct ahead_living *living, size_t no, struct intake *in, pid_t pid);

#endif
