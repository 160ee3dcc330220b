/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where symbols are in the program, as its code refers to them: functions and data. Shared by the
 * files of this room only.
 */
#ifndef SAFESCOPED_ARCHIVES_LEARNT_PRIV_H
#define SAFESCOPED_ARCHIVES_LEARNT_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LEARNT_MAX (1U << 20)

struct learnt_name {
	const char *name; /* NULL: the place is free */
	uint64_t vaddr;
	bool several; /* it has been seen in several places, and is no mark */
};

struct learnt {
	struct learnt_name *v;
	size_t n;
	unsigned bits;
};

int learnt__init(struct learnt *learnt);
void learnt__free(struct learnt *learnt);
/* The name lives as long as the table. -ENOMEM; beyond LEARNT_MAX names nothing is learnt. */
int learnt__add(struct learnt *learnt, const char *name, uint64_t vaddr);
/* NULL: nothing is known of it. */
const struct learnt_name *learnt__find(const struct learnt *learnt, const char *name);

#endif
