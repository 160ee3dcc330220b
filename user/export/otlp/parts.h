/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * parts: a lane's account, also divided by capability and Haskell thread. The account's rows record
 * neither: each row's time and samples are divided in proportion to the slices of its state and
 * stack, and its parts add up to it exactly.
 */
#ifndef SAFESCOPED_OTLP_PARTS_H
#define SAFESCOPED_OTLP_PARTS_H

#include "../lanes.h"

struct part {
	const struct pic_row *row;
	uint64_t ns, samples;
	const char *label; /* of the Haskell thread; "": none, or not known */
	uint16_t cap;	   /* NO_CAP: none, or not known */
};

struct parts {
	struct part *v;
	size_t n, cap;
};

int parts__of(const struct views *views, const struct view *view, struct parts *ret_parts);
void parts__free(struct parts *parts);

#endif
