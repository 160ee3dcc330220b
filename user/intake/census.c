/* SPDX-License-Identifier: GPL-2.0-or-later */
/* census: names what a process's heap was found to consist of. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "census/census.h"
#include "intake_priv.h"
#include "picture/make.h"

#define MAX_BYTES (1ULL << 48)

/* As in GHC's heap profiles by closure type (rts/ClosureFlags.c, closure_type_names). */
static const char *const type_names[CLOSURE_TYPES] = {
	[CLOSURE_THUNK_SELECTOR] = "THUNK_SELECTOR",
	[CLOSURE_BCO] = "BCO",
	[CLOSURE_AP] = "AP",
	[CLOSURE_PAP] = "PAP",
	[CLOSURE_AP_STACK] = "AP_STACK",
	[CLOSURE_IND] = "IND",
	[CLOSURE_BLOCKING_QUEUE] = "BLOCKING_QUEUE",
	[CLOSURE_BLACKHOLE] = "BLACKHOLE",
	[CLOSURE_MVAR_CLEAN] = "MVAR_CLEAN",
	[CLOSURE_MVAR_CLEAN + 1] = "MVAR_DIRTY",
	[CLOSURE_TVAR] = "TVAR",
	[CLOSURE_ARR_WORDS] = "ARR_WORDS",
	[CLOSURE_MUT_ARR_PTRS_CLEAN] = "MUT_ARR_PTRS_CLEAN",
	[CLOSURE_MUT_ARR_PTRS_CLEAN + 1] = "MUT_ARR_PTRS_DIRTY",
	[CLOSURE_MUT_ARR_PTRS_CLEAN + 2] = "MUT_ARR_PTRS_FROZEN_DIRTY",
	[CLOSURE_MUT_ARR_PTRS_FROZEN_CLEAN] = "MUT_ARR_PTRS_FROZEN_CLEAN",
	[CLOSURE_MUT_VAR_CLEAN] = "MUT_VAR_CLEAN",
	[CLOSURE_MUT_VAR_DIRTY] = "MUT_VAR_DIRTY",
	[CLOSURE_WEAK] = "WEAK",
	[CLOSURE_PRIM] = "PRIM",
	[CLOSURE_MUT_PRIM] = "MUT_PRIM",
	[CLOSURE_TSO] = "TSO",
	[CLOSURE_STACK] = "STACK",
	[CLOSURE_TREC_CHUNK] = "TREC_CHUNK",
	[CLOSURE_SMALL_MUT_ARR_PTRS_CLEAN] = "SMALL_MUT_ARR_PTRS_CLEAN",
	[CLOSURE_SMALL_MUT_ARR_PTRS_CLEAN + 1] = "SMALL_MUT_ARR_PTRS_DIRTY",
	[CLOSURE_SMALL_MUT_ARR_PTRS_CLEAN + 2] = "SMALL_MUT_ARR_PTRS_FROZEN_DIRTY",
	[CLOSURE_SMALL_MUT_ARR_PTRS_FROZEN_CLEAN] = "SMALL_MUT_ARR_PTRS_FROZEN_CLEAN",
	[CLOSURE_COMPACT_NFDATA] = "COMPACT_NFDATA",
	[CLOSURE_CONTINUATION] = "CONTINUATION",
};

static enum pic_closure_kind kind_of(uint32_t type)
{
	if (type >= CLOSURE_CONSTR && type <= CLOSURE_CONSTR_NOCAF)
		return PC_CONSTRUCTOR;
	if ((type >= CLOSURE_FUN && type <= CLOSURE_FUN_0_2) || type == CLOSURE_PAP)
		return PC_FUNCTION;
	if ((type >= CLOSURE_THUNK && type <= CLOSURE_THUNK_SELECTOR) || type == CLOSURE_AP ||
	    type == CLOSURE_AP_STACK || type == CLOSURE_BLACKHOLE)
		return PC_THUNK;
	if ((type >= CLOSURE_ARR_WORDS && type <= CLOSURE_MUT_ARR_PTRS_FROZEN_CLEAN) ||
	    (type >= CLOSURE_SMALL_MUT_ARR_PTRS_CLEAN &&
	     type <= CLOSURE_SMALL_MUT_ARR_PTRS_FROZEN_CLEAN))
		return PC_ARRAY;
	return type == CLOSURE_TSO || type == CLOSURE_STACK ? PC_THREAD : PC_OTHER;
}

/* "package:Module.Name". The package is left out for the program itself, as in names of code. */
static void name_constructor(struct picture *pic, const char *text, struct pic_closure *c)
{
	const char *colon = strchr(text, ':'), *name = colon ? colon + 1 : text;
	char part[TARGET_CENSUS_CONSTRUCTOR];
	size_t len = 0;

	if (colon && strncmp(text, "main:", 5) != 0) {
		snprintf(part, sizeof(part), "%.*s", (int)(colon - text), text);
		c->package = picture__string(pic, part);
	}
	c->name = picture__string(pic, name);
	/* the module is everything before the last part; an operator may have dots itself */
	for (const char *at = name; *at >= 'A' && *at <= 'Z';) {
		at += strcspn(at, ".");
		if (!*at)
			break;
		len = (size_t)(at++ - name);
	}
	snprintf(part, sizeof(part), "%.*s", (int)len, name);
	c->module = picture__string(pic, part);
}

static int name_closure(struct intake *in, struct seen *s, const struct target_census_entry *e,
			struct pic_closure *c)
{
	bool code = (e->type >= CLOSURE_FUN && e->type <= CLOSURE_FUN_0_2) ||
		    (e->type >= CLOSURE_THUNK && e->type <= CLOSURE_THUNK_0_2);
	const struct pic_frame *frame;
	struct seen_addr addr;
	int err;

	*c = (struct pic_closure){.name = "",
				  .module = "",
				  .package = "",
				  .kind = kind_of(e->type),
				  .count = e->count,
				  .bytes = e->bytes};
	if (e->constructor[0]) {
		name_constructor(in->pic, e->constructor, c);
		return 0;
	}
	if (!code) {
		const char *name = e->type < CLOSURE_TYPES ? type_names[e->type] : NULL;

		c->name = picture__string(in->pic, name ? name : "[constructor]");
		return 0;
	}
	err = name__addr(in, s,
			 (e->info & WIRE_FRAME_ADDR_MASK) | (uint64_t)WIRE_FRAME_HS_IP
								    << WIRE_FRAME_KIND_SHIFT,
			 &addr);
	if (err)
		return err;
	frame = picture__frame(in->pic, addr.frame);
	c->name = frame->name;
	c->module = frame->module;
	c->package = frame->package;
	return 0;
}

/* Compares pointers: texts are interned. */
static bool is_same(const struct pic_closure *a, const struct pic_closure *b)
{
	return a->name == b->name && a->package == b->package && a->kind == b->kind;
}

static void add_closure(struct pic_closure *v, size_t *n, const struct pic_closure *c)
{
	for (size_t i = 0; i < *n; i++) {
		if (!is_same(&v[i], c))
			continue;
		v[i].count += c->count;
		v[i].bytes += c->bytes;
		return;
	}
	v[(*n)++] = *c;
}

/* How many bytes of it there were at the picture's first census, which may be this one. */
static uint64_t bytes_at_first(const struct pic_census *before, const struct pic_closure *c)
{
	if (!before->at_ns)
		return c->bytes;
	for (size_t i = 0; i < before->n; i++)
		if (is_same(&before->v[i], c))
			return before->v[i].first_bytes;
	return 0;
}

static int by_bytes(const void *pa, const void *pb)
{
	const struct pic_closure *a = pa, *b = pb;

	return CMP(b->bytes, a->bytes) ?: strcmp(a->name, b->name);
}

static int make(struct intake *in, struct seen *s, uint64_t at_ns, const struct target_census *c,
		struct pic_census *ret_census)
{
	struct pic_closure *v = picture__alloc(in->pic, c->n + 1, sizeof(*v));
	const struct pic_census *before = &s->pub->census;
	size_t n = 0;
	int err = v ? 0 : -ENOMEM;

	for (uint32_t i = 0; !err && i < c->n; i++) {
		struct pic_closure closure;

		err = name_closure(in, s, &c->entries[i], &closure);
		if (!err)
			add_closure(v, &n, &closure);
	}
	if (err)
		return err;
	for (size_t i = 0; i < n; i++)
		v[i].first_bytes = bytes_at_first(before, &v[i]);
	array__sort(v, n, sizeof(*v), by_bytes);
	*ret_census = (struct pic_census){
		.at_ns = at_ns,
		.first_ns = before->at_ns ? before->first_ns : at_ns,
		.blocks_bytes = c->blocks_bytes,
		.walked_bytes = c->walked_bytes,
		.counted_bytes = c->counted_bytes,
		.gap_bytes = c->gap_bytes,
		.unknown_bytes = c->unknown_bytes,
		.large_bytes = c->large_bytes,
		.compact_bytes = c->compact_bytes,
		.pinned_bytes = c->pinned_bytes,
		.mutable_bytes = c->mutable_bytes,
		.live_bytes = c->live_bytes,
		.frozen_ns = c->frozen_ns,
		.frozen_whole = c->frozen_whole != 0,
		.others_count = c->others_count,
		.others_bytes = c->others_bytes,
		.cut = c->cut,
		.v = v,
		.n = n,
	};
	return 0;
}

/* Whether all values are within bounds; no sum of them can overflow. */
static bool is_sane(const struct target_census *c)
{
	const uint64_t all[] = {c->blocks_bytes,  c->walked_bytes,  c->counted_bytes,
				c->gap_bytes,	  c->unknown_bytes, c->large_bytes,
				c->compact_bytes, c->live_bytes,    c->pinned_bytes,
				c->mutable_bytes, c->frozen_ns,	    c->others_count,
				c->others_bytes};

	if (c->n > TARGET_CENSUS_MAX)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (all[i] >= MAX_BYTES)
			return false;
	for (uint32_t i = 0; i < c->n; i++)
		if (c->entries[i].count >= MAX_BYTES || c->entries[i].bytes >= MAX_BYTES ||
		    !memchr(c->entries[i].constructor, '\0', TARGET_CENSUS_CONSTRUCTOR))
			return false;
	return true;
}

int intake__census(struct intake *in, pid_t pid, const struct target_census *census, uint64_t at_ns)
{
	const struct intake_input input = {.kind = TI_CENSUS,
					   .pid = pid,
					   .a = at_ns,
					   .data = census,
					   .size = offsetof(struct target_census, entries) +
						   MIN(census->n, (uint32_t)TARGET_CENSUS_MAX) *
							   sizeof(census->entries[0])};
	struct seen *s = intake__find(in, pid);
	struct pic_census now;
	int err;

	if (!s)
		return -ENOENT;
	if (!at_ns || !is_sane(census))
		return -EBADMSG;
	err = make(in, s, at_ns, census, &now);
	if (!err)
		s->pub->census = now;
	return tap__report(in, err, &input);
}
