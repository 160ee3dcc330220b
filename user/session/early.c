/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * early: processes that ended before it was known what they were. They count as missed if their
 * program is one to be profiled, or turns out to be one later.
 */
#include "session_priv.h"

/* NULL: none. A child that has not exec'd has no program of its own: its ino is 0. */
static struct early_program *find(struct early *e, const struct wire_proc_new *rec)
{
	for (size_t i = 0; rec->ino && i < EARLY_PROGRAMS; i++)
		if (e->v[i].used && e->v[i].ino == rec->ino && e->v[i].dev == rec->dev)
			return &e->v[i];
	return NULL;
}

/* The program's entry. A new one takes the place of the one that was used the longest ago. NULL: it
 * has no program. */
static struct early_program *entry(struct early *e, const struct wire_proc_new *rec)
{
	struct early_program *p = find(e, rec);

	if (!rec->ino)
		return NULL;
	if (!p) {
		p = &e->v[0];
		for (size_t i = 1; i < EARLY_PROGRAMS; i++)
			if (e->v[i].used < p->used)
				p = &e->v[i];
		*p = (struct early_program){.ino = rec->ino, .dev = rec->dev};
	}
	p->used = ++e->uses;
	return p;
}

void early__missed(struct session *s, const struct wire_proc_new *rec)
{
	struct early_program *p;

	if (rec->flags & WIRE_PROC_TARGET) {
		s->n_too_short++;
		return;
	}
	p = entry(&s->early, rec);
	if (p && p->profiled)
		s->n_too_short++;
	else if (p)
		p->n++;
}

void early__profiled(struct session *s, const struct wire_proc_new *program)
{
	struct early_program *p = entry(&s->early, program);

	if (!p)
		return;
	p->profiled = true;
	s->n_too_short += p->n;
	p->n = 0;
}
