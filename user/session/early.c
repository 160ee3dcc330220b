/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * early: processes that ended before anybody knew what they were. If one of their program's turns
 * out to be to be profiled, they count as missed.
 */
#include "session_priv.h"

void early__ended(struct early *e, const struct wire_proc_new *rec)
{
	struct early_program *p = &e->v[e->next];

	for (size_t i = 0; i < EARLY_PROGRAMS; i++) {
		if (e->v[i].n && e->v[i].ino == rec->ino && e->v[i].dev == rec->dev) {
			e->v[i].n++;
			return;
		}
	}
	*p = (struct early_program){.ino = rec->ino, .dev = rec->dev, .n = 1};
	e->next = (e->next + 1) % EARLY_PROGRAMS;
}

uint64_t early__of(struct early *e, const struct wire_proc_new *rec)
{
	for (size_t i = 0; i < EARLY_PROGRAMS; i++) {
		if (e->v[i].n && e->v[i].ino == rec->ino && e->v[i].dev == rec->dev) {
			uint64_t n = e->v[i].n;

			e->v[i].n = 0;
			return n;
		}
	}
	return 0;
}
