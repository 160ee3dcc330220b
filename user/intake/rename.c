/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rename: better names for what was named too early, because the file with its symbols was still
 * being downloaded, or there was no time to read it. Parts of stacks that are already recorded keep
 * their frame numbers, and each is replaced when whole stacks are composed.
 */
#include <stdlib.h>

#include "intake_priv.h"

/* NOT_SHOWN: by its better name the frame is not shown (seen_addr.fold). NONE: no better name. */
#define NOT_SHOWN UINT32_MAX
#define NONE	  (UINT32_MAX - 1)
/* Names may improve more than once. */
#define MAX_STEPS 4
/* Per window, since each pass visits all addresses. */
#define MAX_RENAMES 4096

uint32_t intake__shown(const struct intake *in, uint32_t frame)
{
	for (int i = 0; i < MAX_STEPS && frame < in->renamed.n; i++) {
		uint32_t better = in->renamed.v[frame];

		if (better == NONE)
			break;
		frame = better;
	}
	return frame;
}

void rename__free(struct intake *in)
{
	free(in->renamed.v);
	in->renamed.v = NULL;
	in->renamed.n = 0;
}

/* A frame that has become two stays as it was. */
static void note(uint32_t *fresh, uint32_t n, uint32_t old, uint32_t better)
{
	if (old < n)
		fresh[old] = fresh[old] == NONE || fresh[old] == better ? better : old;
}

/* A folded address is in no stack. */
static int rename_addr(struct intake *in, struct seen *s, struct seen_addr *addr, uint32_t *fresh,
		       uint32_t n)
{
	int err = addr->partial ? name__again(in, s, addr) : 0;

	if (err)
		return err;
	if (addr->changed && !addr->was_folded)
		note(fresh, n, addr->was, addr->fold ? NOT_SHOWN : addr->frame);
	addr->changed = false;
	return 0;
}

static int rename_site(struct intake *in, struct seen *s, struct seen_site *site, uint32_t *fresh,
		       uint32_t n)
{
	const struct seen_site old = *site;
	int err = name__site_again(in, s, site);

	if (err)
		return err;
	note(fresh, n, old.function, site->function);
	if (old.caller != UINT32_MAX && site->caller != UINT32_MAX)
		note(fresh, n, old.caller, site->caller);
	return 0;
}

static int rename_target(struct intake *in, struct seen *s, uint32_t *fresh, uint32_t n)
{
	struct seen_addr *addr, *next;
	int err = 0;

	HASH_ITER (hh, s->addrs, addr, next) {
		if (!err && (addr->partial || addr->changed))
			err = rename_addr(in, s, addr, fresh, n);
	}
	for (size_t i = 0; !err && i < s->n_sites; i++)
		if (s->site_v[i]->partial)
			err = rename_site(in, s, s->site_v[i], fresh, n);
	return err;
}

/* A frame that another address or site still uses stays as it was, too. */
static void keep_others(const struct seen *s, uint32_t *fresh, uint32_t n)
{
	const struct seen_addr *addr, *next;

	HASH_ITER (hh, s->addrs, addr, next) {
		if (addr->frame < n && fresh[addr->frame] != NONE)
			fresh[addr->frame] = addr->frame;
	}
	for (size_t i = 0; i < s->n_sites; i++) {
		const struct seen_site *site = s->site_v[i];

		if (site->function < n && fresh[site->function] != NONE)
			fresh[site->function] = site->function;
		if (site->caller < n && fresh[site->caller] != NONE)
			fresh[site->caller] = site->caller;
	}
}

/* Keeps earlier replacements: what gets a better name now had one that was good enough. */
static void merge(struct intake *in, uint32_t *fresh, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (fresh[i] == i)
			fresh[i] = NONE;
		if (i < in->renamed.n && fresh[i] == NONE)
			fresh[i] = in->renamed.v[i];
	}
	free(in->renamed.v);
	in->renamed.v = fresh;
	in->renamed.n = n;
}

static bool has_work(const struct intake *in)
{
	for (size_t i = 0; i < in->n_targets; i++) {
		const struct seen *s = in->targets[i];
		const struct seen_addr *addr, *next;

		if (!s->namer.name)
			continue;
		HASH_ITER (hh, s->addrs, addr, next) {
			if (addr->partial || addr->changed)
				return true;
		}
		for (size_t k = 0; k < s->n_sites; k++)
			if (s->site_v[k]->partial)
				return true;
	}
	return false;
}

int intake__rename(struct intake *in)
{
	const struct intake_input input = {.kind = TI_RENAME};
	uint32_t n = picture__n_frames(in->pic), *fresh;
	int err = 0;

	if (in->closed)
		return -EINVAL;
	if (in->n_renames >= MAX_RENAMES || !has_work(in))
		return 0;
	fresh = malloc((n + 1) * sizeof(*fresh));
	if (!fresh)
		return -ENOMEM;
	in->n_renames++;
	for (uint32_t i = 0; i < n; i++)
		fresh[i] = NONE;
	for (size_t i = 0; !err && i < in->n_targets; i++)
		if (in->targets[i]->namer.name)
			err = rename_target(in, in->targets[i], fresh, n);
	for (size_t i = 0; !err && i < in->n_targets; i++)
		keep_others(in->targets[i], fresh, n);
	if (err)
		free(fresh);
	else
		merge(in, fresh, n);
	return tap__report(in, err, &input);
}
