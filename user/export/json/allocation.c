/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of the JSON report about allocation and the heap. */
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
	add_known(r, o, "observed_ns", known_if(alloc->observed_ns, alloc->observed_ns));
	add_bool(r, o, "exact", alloc__exact(t));
	add_known(r, o, "rate_per_s",
		  known_if(alloc->to_ns > alloc->from_ns, pic_alloc__rate(alloc)));
	add_known(r, o, "large_objects_bytes", known_if(alloc->large_of_bytes, alloc->large_bytes));
	add_u64(r, o, "large_bytes", alloc->large_bytes);
	add_u64(r, o, "large_of_bytes", alloc->large_of_bytes);
	add_collections(r, o, alloc);
	add_u64(r, o, "samples", alloc->samples);
	add_u64(r, o, "whole_stacks", alloc->whole_stacks);
	add_u64(r, o, "sampled_bytes", alloc->sampled_bytes);
	add_u64(r, o, "stopped_bytes", alloc->stopped_bytes);
	add_u64(r, o, "tick_samples", alloc->tick_samples);
	add_u64(r, o, "tick_bytes", alloc->tick_bytes);
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

/* ── the heap ────────────────────────────────────────────────────────────────────────────── */

static void add_points(struct report *r, cJSON *o, const struct pic_heap *heap)
{
	struct buf text;

	begin_text(&text);
	for (size_t i = 0; i < heap->n_points; i++) {
		const struct pic_heap_point *p = &heap->points[i];

		buf__addf(&text, "%s[%" PRIu64 ",%" PRIu64 ",%d", i ? "," : "",
			  p->ns - MIN(p->ns, r->session->start_ns), p->live_bytes, p->major);
		for (uint32_t g = 0; g < heap->n_gens; g++)
			buf__addf(&text, ",%" PRIu64, p->gens[g]);
		buf__addf(&text, ",%" PRIu64 "]", p->held_bytes);
	}
	add_text(r, o, "points", &text);
}

static void add_census(struct report *r, cJSON *o, const struct pic_census *c)
{
	static const char *const kinds[PC_KINDS] = {"constructor", "function", "thunk",
						    "array",	   "thread",   "other"};
	cJSON *read, *list;

	if (!c->at_ns) {
		add_null(r, o, "census_read");
		add_array(r, o, "census");
		return;
	}
	read = add_object(r, o, "census_read");
	add_time(r, read, "at_ns", c->at_ns);
	add_time(r, read, "first_ns", c->first_ns);
	add_u64(r, read, "blocks_bytes", c->blocks_bytes);
	add_u64(r, read, "walked_bytes", c->walked_bytes);
	add_u64(r, read, "counted_bytes", c->counted_bytes);
	add_u64(r, read, "gap_bytes", c->gap_bytes);
	add_u64(r, read, "unknown_bytes", c->unknown_bytes);
	add_u64(r, read, "large_bytes", c->large_bytes);
	add_u64(r, read, "pinned_bytes", c->pinned_bytes);
	add_u64(r, read, "compact_bytes", c->compact_bytes);
	add_u64(r, read, "mutable_bytes", c->mutable_bytes);
	add_u64(r, read, "live_bytes", c->live_bytes);
	add_u64(r, read, "others_count", c->others_count);
	add_u64(r, read, "others_bytes", c->others_bytes);
	add_bool(r, read, "cut", c->cut);
	add_u64(r, read, "frozen_ns", c->frozen_ns);
	add_bool(r, read, "frozen_whole", c->frozen_whole);
	list = add_array(r, o, "census");
	for (size_t i = 0; i < c->n; i++) {
		const struct pic_closure *v = &c->v[i];
		bool near = v->name[0] == '~';
		cJSON *closure = add_object(r, list, NULL);
		struct buf name;

		buf__init(&name, STRTAB_MAX_STRING);
		buf__addf(&name, "%s%s%s%s", near ? "~" : "", v->package, v->package[0] ? ":" : "",
			  v->name + near);
		r->failed |= name.err != 0;
		add_string(r, closure, "closure", name.err ? "" : name.data);
		buf__free(&name);
		add_name(r, closure, "module", v->module);
		add_string(r, closure, "kind", kinds[v->kind]);
		add_u64(r, closure, "count", v->count);
		add_u64(r, closure, "bytes", v->bytes);
		add_u64(r, closure, "first_bytes", v->first_bytes);
	}
}

/* Adds the collections whose oldest generation was this one. */
static void add_collected(struct report *r, cJSON *o, const struct pic_target *t, uint32_t no)
{
	bool exact = t->gc.known && !t->gc.inferred && t->n_gcs == t->gc.count &&
		     !pic_target__gcs_missed(t);
	uint64_t n = 0, ns = 0;

	for (size_t i = 0; i < t->n_gcs; i++) {
		const struct pic_gc_event *gc = &t->gcs[i];

		if (gc->generation < 0)
			exact = false;
		if (gc->generation != (int32_t)no)
			continue;
		n++;
		ns += gc->end_ns - gc->start_ns;
	}
	add_known(r, o, "collections", known_if(exact, n));
	add_known(r, o, "pause_ns", known_if(exact, ns));
}

void json__heap(struct report *r, cJSON *target, const struct pic_target *t)
{
	const struct pic_heap *heap = &t->heap;
	cJSON *o, *list, *growth;

	if (!heap->known)
		return;
	o = add_object(r, target, "heap");
	add_known(r, o, "observed_ns", known_if(t->alloc.observed_ns, t->alloc.observed_ns));
	add_u64(r, o, "majors", heap->majors);
	add_bool(r, o, "after_major", heap->last.major);
	add_time(r, o, "live_ns", heap->last.ns);
	add_u64(r, o, "live_bytes", heap->last.live_bytes);
	add_u64(r, o, "most_live_bytes", heap->most_live_bytes);
	add_u64(r, o, "live_max_bytes", heap->most_live_bytes);
	add_known(r, o, "most_major_bytes", known_if(heap->majors, heap->most_major_bytes));
	add_u64(r, o, "slop_bytes", heap->slop_bytes);
	add_known(r, o, "nursery_bytes", known_if(heap->nursery_bytes, heap->nursery_bytes));
	add_known(r, o, "held_bytes", known_if(heap->held_bytes, heap->held_bytes));
	add_known(r, o, "most_held_bytes", known_if(heap->held_bytes, heap->most_held_bytes));
	add_known(r, o, "haskell_threads", known_if(heap->haskell_threads, heap->haskell_threads));
	add_known(r, o, "most_haskell_threads",
		  known_if(heap->haskell_threads, heap->most_haskell_threads));
	add_u64(r, o, "copied_bytes", heap->copied_bytes);
	add_real(r, o, "survival", heap__survival(heap));
	add_u64(r, o, "futile_majors", heap->futile_majors);
	if (heap->growth_known) {
		add(r, o, "growth_per_min", cJSON_CreateNumber(heap->growth));
		add(r, o, "growth_error", cJSON_CreateNumber(heap->growth_error));
		growth = add_object(r, o, "growth");
		add(r, growth, "bytes_per_minute", cJSON_CreateNumber(heap->growth));
		add(r, growth, "error", cJSON_CreateNumber(heap->growth_error));
	} else {
		add_null(r, o, "growth_per_min");
		add_null(r, o, "growth_error");
		add_null(r, o, "growth");
	}
	list = add_array(r, o, "generations");
	for (uint32_t i = 0; i < heap->n_gens; i++) {
		cJSON *gen = add_object(r, list, NULL);

		add_u64(r, gen, "no", i);
		add_collected(r, gen, t, i);
		add_u64(r, gen, "live_bytes", heap->gens[i].live_bytes);
		add_u64(r, gen, "large_bytes", heap->gens[i].large_bytes);
		add_u64(r, gen, "block_bytes", heap->gens[i].block_bytes);
		add_u64(r, gen, "compact_bytes", heap->gens[i].compact_bytes);
	}
	add_points(r, o, heap);
	add_census(r, o, &t->census);
}
