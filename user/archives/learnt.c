/* SPDX-License-Identifier: GPL-2.0-or-later */
/* learnt: a growing hash table of names. */
#include "learnt_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BITS 12

static uint32_t hash(const char *name)
{
	uint32_t h = 2166136261U;

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 16777619U;
	return h ^ h >> 15;
}

static struct learnt_name *place_of(const struct learnt *l, const char *name)
{
	uint32_t mask = (1U << l->bits) - 1, i = hash(name) & mask;

	while (l->v[i].name && strcmp(l->v[i].name, name) != 0)
		i = (i + 1) & mask;
	return &l->v[i];
}

int learnt__init(struct learnt *l)
{
	*l = (struct learnt){.bits = FIRST_BITS};
	l->v = calloc(1U << l->bits, sizeof(*l->v));
	return l->v ? 0 : -ENOMEM;
}

void learnt__free(struct learnt *l)
{
	free(l->v);
	memset(l, 0, sizeof(*l));
}

static int grow(struct learnt *l)
{
	struct learnt more = {.bits = l->bits + 1, .n = l->n};

	more.v = calloc(1U << more.bits, sizeof(*more.v));
	if (!more.v)
		return -ENOMEM;
	for (size_t i = 0; i < 1U << l->bits; i++)
		if (l->v[i].name)
			*place_of(&more, l->v[i].name) = l->v[i];
	free(l->v);
	*l = more;
	return 0;
}

int learnt__add(struct learnt *l, const char *name, uint64_t vaddr)
{
	struct learnt_name *place = place_of(l, name);
	int err;

	if (place->name) {
		place->several |= place->vaddr != vaddr;
		return 0;
	}
	if (l->n >= LEARNT_MAX)
		return 0;
	if (l->n >= 1U << (l->bits - 1)) {
		err = grow(l);
		if (err)
			return err;
		place = place_of(l, name);
	}
	*place = (struct learnt_name){.name = name, .vaddr = vaddr};
	l->n++;
	return 0;
}

const struct learnt_name *learnt__find(const struct learnt *l, const char *name)
{
	const struct learnt_name *place = place_of(l, name);

	return place->name ? place : NULL;
}
