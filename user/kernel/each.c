/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Iterates over a hash map. Asking for the key after one that has been removed meanwhile starts
 * again at the first key (htab_map_get_next_key(), kernel/bpf/hashtab.c), so that some elements
 * would come twice; batches go from bucket to bucket.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <bpf/bpf.h>

#include "base/base.h"
#include "kernel_priv.h"

#define BATCH_FIRST 64U
/* More than any bucket holds: there are at least as many buckets as elements. */
#define BATCH_MOST 4096U

struct batch {
	uint32_t key_size, value_size;
	uint32_t most;
	uint8_t *keys, *values;
};

static void release(struct batch *b)
{
	free(b->keys);
	free(b->values);
	b->keys = b->values = NULL;
}

static int make(struct batch *b, uint32_t most)
{
	release(b);
	b->most = most;
	b->keys = calloc(most, b->key_size);
	b->values = calloc(most, b->value_size);
	return b->keys && b->values ? 0 : -ENOMEM;
}

int map__each(int fd, uint32_t key_size, uint32_t value_size,
	      int (*fn)(void *ctx, const void *key, void *value), void *ctx)
{
	struct batch b = {.key_size = key_size, .value_size = value_size};
	/* a bucket number */
	__u32 at = 0, next = 0;
	bool begun = false, last = false;
	int err = make(&b, BATCH_FIRST);

	while (!err && !last) {
		__u32 n = b.most;

		err = bpf_map_lookup_batch(fd, begun ? &at : NULL, &next, b.keys, b.values, &n,
					   NULL);
		/* a bucket has more elements than the buffers have room for */
		if (err == -ENOSPC && b.most < BATCH_MOST) {
			err = make(&b, 2 * b.most);
			continue;
		}
		last = err == -ENOENT;
		if (last)
			err = 0;
		for (__u32 i = 0; !err && i < MIN(n, b.most); i++)
			err = fn(ctx, b.keys + (size_t)i * key_size,
				 b.values + (size_t)i * value_size);
		at = next;
		begun = true;
	}
	release(&b);
	return err;
}
