/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * slices: the slices that a lane of any kind is drawn with, in time order and bounded memory. At
 * the limit, neighbours that together span less than merged_ns are merged (picture/merge.h). Totals
 * are never computed from slices.
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
 * Appends a slice, up to `max` in all, or extends the last one if it looks the same. -ENOMEM;
 * -E2BIG: gaps between the slices keep them from being merged far enough.
 */
int slices__put(struct slices *s, enum lane_kind kind, const struct pic_slice *slice, size_t max);
void slices__free(struct slices *s);
/* Moves the slices to the lane; the picture owns them then. On -ENOMEM they stay in *s. */
int slices__give(struct slices *s, struct picture *pic, struct pic_lane *lane);

#endif
