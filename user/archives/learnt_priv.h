/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where symbols, of functions and of data, are in the program, as its code refers to them. For the
 * files of this room only.
 */
#ifndef SAFESCOPED_ARCHIVES_LEARNT_PRIV_H
#define SAFESCOPED_ARCHIVES_LEARNT_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LEARNT_MAX (1U << 20)

struct learnt_name {
	const char *name; /* NULL: the slot is free */
	uint64_t vaddr;
	bool several; /* seen at several addresses, so it proves nothing */
};

struct learnt {
	struct learnt_name *v;
	size_t n;
	unsigned bits;
};

int learnt__init(struct learnt *learnt);
void learnt__free(struct learnt *learnt);
/* The name must live as long as the table. -ENOMEM; beyond LEARNT_MAX names nothing is added. */
int learnt__add(struct learnt *learnt, const char *name, uint64_t vaddr);
/* NULL: unknown. */
const struct learnt_name *learnt__find(const struct learnt *learnt, const char *name);

#endif
