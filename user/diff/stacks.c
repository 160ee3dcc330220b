/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two sessions' folded stacks as one list. Since the numbers of processes and threads differ
 * between sessions, stacks begin with the program's name, followed by their root.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/hash.h"
#include "diff_stacks_priv.h"

struct entry {
	UT_hash_handle hh;
	struct diff_stack stack;
	char path[];
};

/* A program's name as a frame. */
static char *frame_of(const char *comm)
{
	char *safe = text__escaped(comm);

	for (char *p = safe; p && *p; p++)
		if (*p == ' ' || *p == ';')
			*p = *p == ';' ? ':' : '_';
	return safe;
}

/* The pair of the program that a line begins with. */
static const struct diff_pair *pair_of(const struct diff_stacks *s, const struct diff *d, int side,
				       const char *comm, size_t len)
{
	if ((side ? d->b : d->a)->n_programs == 1)
		return &d->pairs[0];
	for (size_t i = 0; i < d->n_pairs; i++)
		if (strlen(s->programs[i]) == len && !memcmp(s->programs[i], comm, len))
			return &d->pairs[i];
	return NULL;
}

static int add(struct diff_stacks *s, const char *comm, const char *frames, size_t len, int side,
	       double sum)
{
	size_t comm_len = strlen(comm), all = comm_len + len;
	struct entry *e = calloc(1, sizeof(*e) + all + 1), *old;
	int err;

	if (!e)
		return -ENOMEM;
	memcpy(e->path, comm, comm_len);
	memcpy(e->path + comm_len, frames, len);
	HASH_FIND(hh, s->entries, e->path, all, old);
	if (old) {
		free(e);
		old->stack.sum[side] += sum;
		return 0;
	}
	e->stack.path = e->path;
	e->stack.sum[side] = sum;
	HASH_ADD_KEYPTR(hh, s->entries, e->path, all, e);
	err = e->hh.tbl ? 0 : -ENOMEM;
	if (err)
		free(e);
	return err;
}

/* "COMM-PID;NAME-TID;root;…;leaf N" */
static int add_line(struct diff_stacks *s, const struct diff *d, int side, const char *line,
		    size_t len)
{
	const char *end = memrchr(line, ' ', len), *first = memchr(line, ';', len), *second, *dash;
	const struct diff_pair *pair;
	uint64_t n;

	if (!end || !first || first > end)
		return 0;
	second = memchr(first + 1, ';', (size_t)(end - first - 1));
	dash = memrchr(line, '-', (size_t)(first - line));
	if (!second || !dash)
		return 0;
	pair = pair_of(s, d, side, line, (size_t)(dash - line));
	n = strtoull(end + 1, NULL, 10);
	if (!pair || !n)
		return 0;
	return add(s, s->programs[pair - d->pairs], second, (size_t)(end - second), side,
		   (double)n * (side ? 1 : pair->work));
}

static int add_folded(struct diff_stacks *s, const struct diff *d, int side, const char *text)
{
	int err = 0;

	while (*text && !err) {
		size_t len = strcspn(text, "\n");

		err = add_line(s, d, side, text, len);
		text += len + (text[len] == '\n');
	}
	return err;
}

static int cmp_paths(const void *pa, const void *pb)
{
	const struct diff_stack *a = pa, *b = pb;

	return strcmp(a->path, b->path);
}

static int name_programs(struct diff_stacks *s, const struct diff *d)
{
	s->programs = calloc(d->n_pairs, sizeof(*s->programs));
	if (!s->programs)
		return -ENOMEM;
	for (; s->n_programs < d->n_pairs; s->n_programs++) {
		s->programs[s->n_programs] = frame_of(d->pairs[s->n_programs].b->comm);
		if (!s->programs[s->n_programs])
			return -ENOMEM;
	}
	return 0;
}

int diff_stacks__new(const struct diff *diff, const char *const folded[2], bool alloc,
		     struct diff_stacks **ret_stacks)
{
	struct diff_stacks *s = calloc(1, sizeof(*s));
	struct entry *e;
	int err = -ENOMEM;

	if (s) {
		s->alloc = alloc;
		err = name_programs(s, diff);
	}
	for (int side = 0; side < 2 && !err; side++)
		err = add_folded(s, diff, side, folded[side]);
	if (!err) {
		s->v = calloc(HASH_COUNT(s->entries) + 1, sizeof(*s->v));
		err = s->v ? 0 : -ENOMEM;
	}
	if (err) {
		diff_stacks__free(s);
		return err;
	}
	for (e = s->entries; e; e = e->hh.next)
		s->v[s->n++] = e->stack;
	qsort(s->v, s->n, sizeof(*s->v), cmp_paths);
	*ret_stacks = s;
	return 0;
}

void diff_stacks__free(struct diff_stacks *stacks)
{
	if (!stacks)
		return;
	HASH_FREE(stacks->entries);
	for (size_t i = 0; i < stacks->n_programs; i++)
		free(stacks->programs[i]);
	free(stacks->programs);
	free(stacks->v);
	free(stacks);
}

int diff_stacks__put_folded(FILE *out, const struct diff_stacks *stacks)
{
	/* the remainder of rounding is carried to the next line, so that the sums stay right */
	double carry[2] = {0.5, 0.5};

	for (size_t i = 0; i < stacks->n; i++) {
		const struct diff_stack *s = &stacks->v[i];
		uint64_t n[2];

		for (int side = 0; side < 2; side++) {
			carry[side] += s->sum[side];
			n[side] = human__whole(carry[side]);
			carry[side] -= (double)n[side];
		}
		if (n[0] || n[1])
			fprintf(out, "%s %" PRIu64 " %" PRIu64 "\n", s->path, n[0], n[1]);
	}
	return ferror(out) ? -EIO : 0;
}
