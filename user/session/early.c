/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * early: processes that ended before it was known what they were. If their program later turns out
 * to be one to be profiled, they count as missed.
 */
#include "session_priv.h"

/* NULL: none. A child that has not exec'd has no program of its own: its ino is 0. */
static struct early_program *find(struct early *e, const struct wire_proc_new *rec)
{
	for (size_t i = 0; rec->ino && i < EARLY_PROGRAMS; i++)
		if (e->v[i].n && e->v[i].ino == rec->ino && e->v[i].dev == rec->dev)
			return &e->v[i];
	return NULL;
}

static void ended(struct early *e, const struct wire_proc_new *rec)
{
	struct early_program *p = find(e, rec);

	if (p) {
		p->n++;
	} else if (rec->ino) {
		e->v[e->next] = (struct early_program){.ino = rec->ino, .dev = rec->dev, .n = 1};
		e->next = (e->next + 1) % EARLY_PROGRAMS;
	}
}

void early__missed(struct session *s, const struct wire_proc_new *rec)
{
	if (rec->flags & WIRE_PROC_TARGET)
		s->n_too_short++;
	else
		ended(&s->early, rec);
}

uint64_t early__of(struct early *e, const struct wire_proc_new *rec)
{
	struct early_program *p = find(e, rec);
	uint64_t n = p ? p->n : 0;

	if (p)
		p->n = 0;
	return n;
}
