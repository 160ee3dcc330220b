/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of a target's frames and sites. */
#include "base/base.h"
#include "names/names.h"
#include "sources.h"
#include "target_priv.h"

#define MAPS_WANTED_EVERY_NS 50000000ULL

/*
 * Called before an address is looked up: an address in no mapping may have been mapped since
 * (dlopen), so the maps are read again, but not all the time.
 */
static void want_mapped(void *ctx, uint64_t addr)
{
	struct target *target = ctx;
	uint64_t now;

	if (!addr || !target->info.pid || images__ever_at(&target->images, addr - 1))
		return;
	now = time__monotonic_ns();
	if (now - target->maps_wanted_ns < MAPS_WANTED_EVERY_NS)
		return;
	target->maps_wanted_ns = now;
	target__refresh_maps(target);
}

static void kernel_names(void *ctx, uint64_t addr, struct names_kernel *ret_kernel)
{
	target_cache__kernel(((struct target *)ctx)->cache, addr, time__monotonic_ns(), ret_kernel);
}

int target__open_names(struct target *t)
{
	const struct names_of of = {
		.pid = t->info.pid,
		.images = &t->images,
		.rts = &t->rts,
		.want_mapped = want_mapped,
		.kernel = kernel_names,
		.archives = target_cache__archives(t->cache),
		.debuginfod = target_cache__debuginfod(t->cache),
		.helpers = target_cache__helpers(t->cache),
		.ctx = t,
	};

	return names__new(&of, &t->names);
}

void target__prepare_names(struct target *target)
{
	names__prepare(target->names);
}

void target__name(struct target *target, uint64_t frame, struct code_name *ret_name)
{
	names__frame(target->names, frame, ret_name);
}

unsigned target__name_sources(struct target *target)
{
	return target->names ? names__sources(target->names) : 0;
}

int target__site(struct target *target, uint64_t ret_addr, struct target_site *ret_site)
{
	return names__site(target->names, ret_addr, ret_site);
}
