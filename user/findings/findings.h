/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * findings: what is wrong with a program, as far as its finished picture shows it. A finding is
 * reported only if there is evidence for it: each threshold is a named constant with its reason,
 * and a program with nothing wrong has no findings.
 */
#ifndef SAFESCOPED_FINDINGS_H
#define SAFESCOPED_FINDINGS_H

#include "picture/make.h"

/* Makes the findings of a target that is otherwise complete; the picture owns them. -ENOMEM. */
int findings__make(struct picture *pic, struct pic_target *target);

#endif
