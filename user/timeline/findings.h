/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * findings: what is wrong with a program, as far as its finished picture shows it. Pure functions
 * over the picture; nothing in it is changed. A finding is made only where its evidence is there:
 * each threshold is a named constant with its reason, and a program with nothing to tell of has no
 * findings.
 */
#ifndef SAFESCOPED_TIMELINE_FINDINGS_H
#define SAFESCOPED_TIMELINE_FINDINGS_H

#include "timeline.h"

/* By ns, descending. Owns its strings. */
struct findings {
	struct tl_finding *v;
	size_t n, cap;
};

/* `t` is one of tl's, with all of its picture but the findings. -ENOMEM; *out is freed by the
 * caller in any case. */
int findings__make(const struct timeline *tl, const struct tl_target *t, struct findings *out);
void findings__free(struct findings *f);

#endif
