/* SPDX-License-Identifier: GPL-2.0-or-later */
/* answers: what a session's targets answered about code and cost centres, given again to the same
 * questions. Private to the room. */
#ifndef SAFESCOPED_CAPTURE_ANSWERS_H
#define SAFESCOPED_CAPTURE_ANSWERS_H

#include "intake/tap.h"

struct answers;

int answers__new(struct answers **ret_answers);
void answers__free(struct answers *a);

/* One more answer of the capture: TI_NAME, TI_SITE or TI_CCS. -EBADMSG: it makes no sense, or they
 * are too many. */
int answers__take(struct answers *a, const struct intake_input *in);

/* One more target, and a namer that gives its answers for as long as `a` lives. parts: TN_… */
int answers__add_target(struct answers *a, unsigned parts, struct namer *ret_namer);
/* The one that was added last is none after all. */
void answers__drop_target(struct answers *a);

#endif
