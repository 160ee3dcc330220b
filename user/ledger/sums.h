/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sums: functions, unsafe calls and cost centres of a process, added up from its accounts. */
#ifndef SAFESCOPED_LEDGER_SUMS_H
#define SAFESCOPED_LEDGER_SUMS_H

#include <stdint.h>

struct pic_target;
struct picture;
struct seen;

/* By the rows of the threads' lanes, which are in the picture already; so are the next ones. */
int functions__fill(struct picture *pic, struct pic_target *target);

/* Unsafe calls by function and caller, and how long collections waited for them. */
struct unsafe_sums;
int unsafe_sums__new(struct picture *pic, struct pic_target *target, struct unsafe_sums **ret_sums);
void unsafe_sums__free(struct unsafe_sums *sums);
/* It was looked for what collections waited for. */
void unsafe_sums__know_gcs(struct unsafe_sums *sums);
/* A collection waited so long for the unsafe call with this stack. */
void unsafe_sums__held_up(struct unsafe_sums *sums, uint32_t stack, uint64_t ns);
int unsafe_sums__fill(struct unsafe_sums *sums);

/* Cost centres, and the tree of their stacks. */
int centres__fill(struct picture *pic, const struct seen *seen);

#endif
