/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The stacks of all slices as one tree of frames, to which slices refer by the number of their
 * leaf: `stackFrames` and `sf` of the format. catapult reads it; Perfetto ignores it.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/hash.h"
#include "chrome_priv.h"

struct node_key {
	uint32_t parent, frame;
};

struct chrome_node {
	UT_hash_handle hh; /* in insertion order: parents first */
	struct node_key key;
	uint32_t id; /* from 1 */
};

static int child_of(struct chrome *w, uint32_t parent, uint32_t frame, uint32_t *ret_id)
{
	const struct node_key key = {parent, frame};
	struct chrome_node *node;
	uint32_t n;
	int err;

	HASH_FIND(hh, w->nodes, &key, sizeof(key), node);
	if (node) {
		*ret_id = node->id;
		return 0;
	}
	n = HASH_COUNT(w->nodes);
	if (n >= CHROME_MAX_NODES)
		return -E2BIG;
	node = calloc(1, sizeof(*node));
	if (!node)
		return -ENOMEM;
	node->key = key;
	node->id = n + 1;
	err = HASH_INSERT(w->nodes, key, sizeof(node->key), node);
	if (!err)
		*ret_id = n + 1;
	return err;
}

/* The number of the stack's leaf; 0: it is empty, or there are too many frames. */
static uint32_t number_of(struct chrome *w, struct pic_stack stack)
{
	uint32_t id = 0;

	for (uint32_t i = 0; i < stack.n; i++) {
		int err = child_of(w, id, stack.frames[i], &id);

		if (err == -ENOMEM)
			w->err = err;
		if (err)
			return 0;
	}
	return id;
}

void chrome__put_stacks(struct chrome *w)
{
	const struct chrome_node *node;

	fputs("\"stackFrames\":{", w->out);
	for (node = w->nodes; node; node = node->hh.next) {
		const struct pic_frame *frame = picture__frame(w->pic, node->key.frame);

		fprintf(w->out, "%s\n\"%" PRIu32 "\":{\"name\":", node == w->nodes ? "" : ",",
			node->id);
		json__put_string(w->out, frame__name(frame));
		if (*frame->file) {
			fputs(",\"category\":", w->out);
			json__put_string(w->out, frame->file);
		}
		if (node->key.parent)
			fprintf(w->out, ",\"parent\":\"%" PRIu32 "\"", node->key.parent);
		fputc('}', w->out);
	}
	fputs("\n}", w->out);
}

void chrome__free_stacks(struct chrome *w)
{
	HASH_FREE(w->nodes);
}

void chrome__put_stack(struct chrome *w, struct pic_stack stack)
{
	uint32_t sf = number_of(w, stack);

	if (sf)
		fprintf(w->out, ",\"sf\":%" PRIu32, sf);
}

void chrome__put_callers(struct chrome *w, struct pic_stack stack)
{
	uint32_t callers = stack.n ? stack.n - 1 : 0;
	uint32_t end = callers > CHROME_CALLERS ? callers - CHROME_CALLERS : 0;

	fputs("\"called_from\":[", w->out);
	for (uint32_t i = callers; i > end; i--) {
		if (i < callers)
			fputc_unlocked(',', w->out);
		json__put_string(w->out, frame__name(picture__frame(w->pic, stack.frames[i - 1])));
	}
	if (end)
		fprintf(w->out, ",\"%" PRIu32 " more\"", end);
	fputc_unlocked(']', w->out);
}
