/* SPDX-License-Identifier: GPL-2.0-or-later */
/* replay_looks: the results of looks into memory, copied to aligned arrays. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "replay_priv.h"

int replay__census(struct replay *r, const struct intake_input *in)
{
	const size_t head = offsetof(struct target_census, entries);
	struct target_census *census;
	int err;

	if (in->size < head || in->size > sizeof(*census))
		return -EBADMSG;
	census = calloc(1, sizeof(*census));
	if (!census)
		return -ENOMEM;
	memcpy(census, in->data, in->size);
	err = census->n == (in->size - head) / sizeof(census->entries[0])
		      ? intake__census(r->in, in->pid, census, in->a)
		      : -EBADMSG;
	free(census);
	return err;
}

int replay__living(struct replay *r, const struct intake_input *in)
{
	struct target_living_thread *v;
	int err;

	if (in->size % sizeof(*v))
		return -EBADMSG;
	/* a replay in windows has known it from the start */
	if (r->windows.every_ns)
		return 0;
	v = malloc(in->size + sizeof(*v));
	if (!v)
		return -ENOMEM;
	if (in->size)
		memcpy(v, in->data, in->size);
	err = intake__living(r->in, in->pid, v, in->size / sizeof(*v), in->b, in->a);
	free(v);
	return err;
}
