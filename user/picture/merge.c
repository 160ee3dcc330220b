/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "merge.h"

void merge__begin(struct merge *m, enum lane_kind kind, uint64_t start_ns)
{
	m->kind = kind;
	m->start_ns = m->end_ns = start_ns;
	m->n_parts = 0;
	m->n = 0;
	for (unsigned i = 0; i < MERGE_PARTS; i++) {
		m->parts[i].n_faces = 0;
		m->parts[i].ns = 0;
		m->parts[i].samples = 0;
	}
}

void merge__add(struct merge *m, const struct pic_slice *slice)
{
	unsigned no = state__part(m->kind, slice->state), k = 0;
	struct merge_part *part = &m->parts[no];
	uint64_t ns = slice->end_ns - m->end_ns;

	if (!part->n_faces)
		m->order[m->n_parts++] = no;
	while (k < part->n_faces && !slice__alike(&part->faces[k], slice))
		k++;
	if (k == part->n_faces && k < MERGE_FACES) {
		part->faces[k] = *slice;
		part->faces_ns[k] = 0;
		part->n_faces++;
	}
	if (k < MERGE_FACES)
		part->faces_ns[k] += ns;
	part->ns += ns;
	part->samples += slice->samples;
	m->end_ns = slice->end_ns;
	m->n++;
}

unsigned merge__end(const struct merge *m, struct pic_slice ret_slices[MERGE_PARTS])
{
	uint64_t at = m->start_ns;

	for (unsigned i = 0; i < m->n_parts; i++) {
		const struct merge_part *part = &m->parts[m->order[i]];
		struct pic_slice *s = &ret_slices[i];
		unsigned best = 0;

		for (unsigned k = 1; k < part->n_faces; k++)
			if (part->faces_ns[k] > part->faces_ns[best])
				best = k;
		*s = part->faces[best];
		s->start_ns = at;
		s->end_ns = at += part->ns;
		s->samples = part->samples;
		if (m->n > 1)
			s->exact = 0;
	}
	return m->n_parts;
}
