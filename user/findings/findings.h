/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * findings: what is wrong with a program, as far as its finished picture shows it. A finding is
 * made only where there is evidence for it: each threshold is a named constant with its reason, and
 * a program with nothing wrong has no findings.
 */
#ifndef SAFESCOPED_FINDINGS_H
#define SAFESCOPED_FINDINGS_H

#include "picture/make.h"

/* Gives a target that is complete but for them its findings, which the picture owns. -ENOMEM. */
int findings__make(struct picture *pic, struct pic_target *target);

#endif
