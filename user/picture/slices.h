/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * slices: what a lane of any kind is drawn with: slices in time order in bounded memory. At the
 * limit neighbours are merged (picture/merge.h), as far as they span less than merged_ns together.
 * Nothing is ever added up from them.
 */
#ifndef SAFESCOPED_PICTURE_SLICES_H
#define SAFESCOPED_PICTURE_SLICES_H

#include "picture.h"

struct slices {
	struct pic_slice *v;
	size_t n, cap;
	uint64_t merged_ns; /* 0: none were merged */
};

/*
 * Adds one after the others, at most `max` of them; it continues the last one where that looks the
 * same. -ENOMEM; -E2BIG: with holes between them they cannot be merged far enough.
 */
int slices__put(struct slices *s, enum lane_kind kind, const struct pic_slice *slice, size_t max);
void slices__free(struct slices *s);
/* They become the lane's, and the picture's. -ENOMEM: they stay whose they were. */
int slices__give(struct slices *s, struct picture *pic, struct pic_lane *lane);

#endif
