/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "libraries.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

struct libraries {
	const struct pic_place **v; /* a place in each library */
	size_t n, cap;
};

bool libraries__is_one(const char *path)
{
	return strstr(path__base(path), ".so") != NULL;
}

/* Equal strings in a picture have the same address. */
static int add(struct libraries *l, const struct pic_place *place)
{
	int err;

	for (size_t i = 0; i < l->n; i++)
		if (l->v[i]->path == place->path && l->v[i]->build_id == place->build_id)
			return 0;
	err = ARRAY_RESERVE(l->v, l->cap, l->n + 1, EXPORT_MAX_ENTRIES);
	if (!err)
		l->v[l->n++] = place;
	return err;
}

int libraries__new(const struct picture *pic, struct libraries **ret_libraries)
{
	struct libraries *l = calloc(1, sizeof(*l));
	int err = l ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < picture__n_frames(pic) && !err; i++) {
		const struct pic_place *place = picture__place(pic, i);

		if (place && libraries__is_one(place->path))
			err = add(l, place);
	}
	if (err)
		libraries__free(l);
	else
		*ret_libraries = l;
	return err;
}

void libraries__free(struct libraries *l)
{
	if (!l)
		return;
	free(l->v);
	free(l);
}

const struct pic_place *libraries__find(const struct libraries *l, const char *base)
{
	const struct pic_place *found = NULL;

	for (size_t i = 0; i < l->n; i++) {
		if (strcmp(path__base(l->v[i]->path), base) != 0)
			continue;
		if (found)
			return NULL;
		found = l->v[i];
	}
	return found;
}
