/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "binaries.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "export_priv.h"

/* Equal strings in a picture have the same address, so a key compares as bytes. */
struct known {
	UT_hash_handle hh;
	struct known_key {
		uint64_t start, end, offset;
		const char *path, *build_id;
	} key;
	uint32_t no;
};

static int add(struct binaries *m, const struct binary *mapping)
{
	int err = ARRAY_RESERVE(m->v, m->cap, m->n + 1, EXPORT_MAX_ENTRIES);

	if (!err)
		m->v[m->n++] = *mapping;
	return err;
}

static bool same_file(const struct binary *a, const char *path, const char *build_id)
{
	return !strcmp(a->path, path) && !strcmp(a->build_id, build_id);
}

static int add_executables(const struct picture *pic, struct binaries *m)
{
	int err = 0;

	for (size_t i = 0; i < picture__n_targets(pic) && !err; i++) {
		const struct pic_target *target = picture__target(pic, i);
		const struct binary exe = {.path = or_empty(target->exe),
					   .build_id = or_empty(target->build_id)};
		size_t k = 0;

		if (!*exe.path)
			continue;
		while (k < m->n && !same_file(&m->v[k], exe.path, exe.build_id))
			k++;
		m->of_target[i] = (uint32_t)k + 1;
		if (k == m->n)
			err = add(m, &exe);
	}
	return err;
}

/* Fills in an executable's entry when its first mapping is seen, or adds an entry. */
static int place(struct binaries *m, size_t n_executables, const struct known_key *key,
		 uint32_t *ret_no)
{
	const struct binary mapping = {.start = key->start,
				       .end = key->end,
				       .offset = key->offset,
				       .path = key->path,
				       .build_id = key->build_id};

	for (size_t i = 0; i < n_executables; i++)
		if (!m->v[i].end && same_file(&m->v[i], key->path, key->build_id)) {
			m->v[i] = mapping;
			*ret_no = (uint32_t)i + 1;
			return 0;
		}
	*ret_no = (uint32_t)m->n + 1;
	return add(m, &mapping);
}

static int add_frames(const struct picture *pic, struct binaries *m)
{
	size_t n_executables = m->n;
	struct known *all = NULL, *known;
	int err = 0;

	for (uint32_t i = 0; i < picture__n_frames(pic) && !err; i++) {
		const struct pic_place *p = picture__place(pic, i);
		struct known_key key;

		if (!p)
			continue;
		memset(&key, 0, sizeof(key));
		key = (struct known_key){p->start, p->end, p->offset, p->path, p->build_id};
		HASH_FIND(hh, all, &key, sizeof(key), known);
		if (!known) {
			known = calloc(1, sizeof(*known));
			if (!known) {
				err = -ENOMEM;
				break;
			}
			known->key = key;
			err = place(m, n_executables, &key, &known->no);
			if (err) {
				free(known);
				break;
			}
			err = HASH_INSERT(all, key, sizeof(known->key), known);
			if (err)
				break;
		}
		m->of_frame[i] = known->no;
	}
	HASH_FREE(all);
	return err;
}

int binaries__collect(const struct picture *pic, struct binaries *ret_binaries)
{
	struct binaries m = {
		.of_frame = calloc((size_t)picture__n_frames(pic) + 1, sizeof(*m.of_frame)),
		.of_target = calloc(picture__n_targets(pic) + 1, sizeof(*m.of_target)),
	};
	int err = m.of_frame && m.of_target ? add_executables(pic, &m) : -ENOMEM;

	if (!err)
		err = add_frames(pic, &m);
	if (err)
		binaries__free(&m);
	else
		*ret_binaries = m;
	return err;
}

void binaries__free(struct binaries *binaries)
{
	free(binaries->v);
	free(binaries->of_frame);
	free(binaries->of_target);
	*binaries = (struct binaries){0};
}
