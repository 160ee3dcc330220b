/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What of the JSON report is about allocation. */
#include "export/alloc.h"
#include "json_priv.h"

const char *json__frame_kind(enum pic_frame_kind kind)
{
	static const char *const kinds[] = {
		[TF_HASKELL] = "haskell", [TF_FOREIGN] = "foreign", [TF_RTS] = "rts",
		[TF_GC] = "gc",		  [TF_KERNEL] = "kernel",   [TF_STATE] = "state",
		[TF_MARK] = "mark",
	};

	return (size_t)kind < ARRAY_SIZE(kinds) ? kinds[kind] : NULL;
}

static void add_collections(struct report *r, cJSON *o, const struct pic_alloc *alloc)
{
	static const char *const names[GC_REASONS] = {
		[GC_REASON_UNKNOWN] = "unknown", [GC_REASON_NURSERY] = "nursery",
		[GC_REASON_LARGE] = "large",	 [GC_REASON_FORCED] = "forced",
		[GC_REASON_IDLE] = "idle",	 [GC_REASON_OTHER] = "other",
	};
	cJSON *reasons = add_object(r, o, "collections");

	for (unsigned i = 0; i < GC_REASONS; i++)
		add_u64(r, reasons, names[i], alloc->reasons[i]);
}

static void add_allocator(struct report *r, cJSON *functions, const struct pic_allocator *a)
{
	const struct pic_frame *frame = picture__frame(r->pic, a->frame);
	cJSON *o = add_object(r, functions, NULL);

	add_string(r, o, "name", frame__name(frame));
	add_name(r, o, "module", frame->module);
	add_name(r, o, "package", frame->package);
	add_string(r, o, "kind", json__frame_kind(frame->kind));
	add_u64(r, o, "self_bytes", a->self_bytes);
	add_u64(r, o, "total_bytes", a->total_bytes);
	add_u64(r, o, "self_samples", a->self_samples);
	add_u64(r, o, "total_samples", a->total_samples);
	add_bool(r, o, "approximate", frame->approximate);
}

void json__allocation(struct report *r, cJSON *target, const struct pic_target *t)
{
	const struct pic_alloc *alloc = &t->alloc;
	cJSON *o, *list;

	if (!alloc->known)
		return;
	o = add_object(r, target, "allocation");
	add_time(r, o, "from_ns", alloc->from_ns);
	add_time(r, o, "to_ns", alloc->to_ns);
	add_u64(r, o, "bytes", alloc->bytes);
	add_u64(r, o, "large_bytes", alloc->large_bytes);
	add_collections(r, o, alloc);
	add_u64(r, o, "samples", alloc->samples);
	add_u64(r, o, "whole_stacks", alloc->whole_stacks);
	add_u64(r, o, "sampled_bytes", alloc->sampled_bytes);
	add_u64(r, o, "unsampled_bytes", alloc->unsampled_bytes);
	add_known(r, o, "bytes_per_sample",
		  known_if(alloc->samples, alloc->sampled_bytes / MAX(alloc->samples, 1)));
	add_real(r, o, "error", alloc__error(alloc));
	list = add_array(r, o, "functions");
	for (size_t i = 0; i < alloc->n_allocators; i++)
		add_allocator(r, list, &alloc->allocators[i]);
	list = add_array(r, o, "modules");
	for (size_t i = 0; i < alloc->n_modules; i++) {
		cJSON *module = add_object(r, list, NULL);

		add_name(r, module, "module", alloc->modules[i].module);
		add_name(r, module, "package", alloc->modules[i].package);
		add_u64(r, module, "bytes", alloc->modules[i].bytes);
		add_u64(r, module, "samples", alloc->modules[i].samples);
	}
}
