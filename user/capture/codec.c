/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inputs of a timeline as bytes and back. */
#include "codec_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_THREADS (1u << 22)

/* ── members ─────────────────────────────────────────────────────────────────────────────── */

static void code_raw(struct codec *c, void *v, size_t size)
{
	if (c->out) {
		buf__add(c->out, v, size);
		return;
	}
	if (c->left < size) {
		/* members unknown to the writer are 0; half a member is damage */
		c->bad = c->bad || c->left;
		c->left = 0;
		memset(v, 0, size);
		return;
	}
	memcpy(v, c->in, size);
	c->in += size;
	c->left -= size;
}

#define CODE(c, member) code_raw(c, &(member), sizeof(member))

static void code_bool(struct codec *c, bool *v)
{
	uint8_t byte = *v;

	CODE(c, byte);
	if (byte > 1)
		c->bad = true;
	*v = byte == 1;
}

/* Codes an enum whose largest value is `last`. */
#define CODE_ENUM(c, member, last)                                                                 \
	do {                                                                                       \
		uint32_t value_ = (uint32_t)(member);                                              \
		CODE(c, value_);                                                                   \
		if (value_ > (uint32_t)(last)) {                                                   \
			(c)->bad = true;                                                           \
			value_ = 0;                                                                \
		}                                                                                  \
		(member) = value_;                                                                 \
	} while (0)

/* Codes a char array, which is NUL-terminated whatever the file has. */
#define CODE_TEXT(c, member)                                                                       \
	do {                                                                                       \
		CODE(c, member);                                                                   \
		if (!(c)->out)                                                                     \
			(member)[sizeof(member) - 1] = '\0';                                       \
	} while (0)

#define NO_STRING UINT32_MAX

static void code_string(struct codec *c, const char **s)
{
	uint32_t len =
		c->out && *s ? (uint32_t)MIN(strlen(*s), (size_t)STRTAB_MAX_STRING) : NO_STRING;
	uint32_t id;

	if (!c->out && !c->left) {
		*s = NULL;
		return;
	}
	CODE(c, len);
	if (len == NO_STRING) {
		*s = NULL;
		return;
	}
	if (c->out) {
		buf__add(c->out, *s, len);
		return;
	}
	*s = "";
	if (len > c->left || len > STRTAB_MAX_STRING) {
		c->bad = true;
		return;
	}
	if (len <= c->string_room && !strtab__add(c->strings, (const char *)c->in, len, &id)) {
		*s = strtab__get(c->strings, id);
		c->string_room -= len;
	} else {
		c->n_left_out++;
	}
	c->in += len;
	c->left -= len;
}

/* ── structs ─────────────────────────────────────────────────────────────────────────────── */

/*
 * These sizes make sure that a new member is not forgotten: add it at the end of the list (readers
 * must accept NULL strings), then update the size.
 */
#define MEMBERS_OF(type, size)                                                                     \
	_Static_assert(sizeof(type) == (size),                                                     \
		       "a member of " #type " was added: list it below, then change the size")

MEMBERS_OF(struct target_probe, 152);
MEMBERS_OF(struct target_info, 1232);
MEMBERS_OF(struct code_name, 104);
MEMBERS_OF(struct target_site, 144);
MEMBERS_OF(struct target_ccs, 40);
MEMBERS_OF(struct snap_thread, 1648);

static void code_probe(struct codec *c, struct target_probe *p)
{
	CODE_TEXT(c, p->path);
	CODE(c, p->offset);
	CODE(c, p->addr);
	CODE(c, p->dev);
	CODE(c, p->ino);
	CODE_ENUM(c, p->found, FOUND_CODE);
	code_bool(c, &p->emulated);
	CODE_TEXT(c, p->insn);
}

static void code_info(struct codec *c, struct target_info *i)
{
	CODE(c, i->pid);
	CODE(c, i->ns_pid);
	CODE(c, i->start_time_ns);
	CODE(c, i->comm);
	code_string(c, &i->exe);
	code_string(c, &i->build_id);
	code_string(c, &i->ghc_version);
	code_bool(c, &i->version_known);
	code_string(c, &i->way);
	code_bool(c, &i->threaded);
	code_bool(c, &i->profiled);
	code_bool(c, &i->debug);
	code_bool(c, &i->dynamic_rts);
	code_bool(c, &i->layout_checked);
	CODE(c, i->capabilities);
	CODE_ENUM(c, i->caps_found, FOUND_CODE);
	code_probe(c, &i->suspend);
	code_probe(c, &i->resume);
	code_probe(c, &i->tick);
	code_probe(c, &i->gc_sync);
	code_probe(c, &i->gc_start);
	code_probe(c, &i->gc_end);
	/* probe_file, reach, in_overlay and no_probes serve to place probes, and the clock serves
	 * to correct records, which is done already */
	CODE(c, i->wire);
	code_string(c, &i->only_sampled);
	CODE(c, i->rts_opts);
	code_string(c, &i->container);
	code_string(c, &i->pod);
	code_string(c, &i->service);
	code_string(c, &i->cgroup);
}

static void code_name(struct codec *c, struct code_name *n)
{
	uint8_t flags;

	code_string(c, &n->name);
	code_string(c, &n->module);
	code_string(c, &n->package);
	code_string(c, &n->file);
	code_string(c, &n->src);
	CODE_ENUM(c, n->source, NAME_DESCRIPTION_NEAR);
	CODE_ENUM(c, n->code, CODE_KERNEL);
	flags = (uint8_t)(n->plumbing | n->partial << 1);
	CODE(c, flags);
	if (flags > 3)
		c->bad = true;
	n->plumbing = flags & 1;
	n->partial = flags & 2;
}

/* Comes last, and is not written if it is empty. */
static void code_at(struct codec *c, struct code_at *at)
{
	if (c->out && !at->end)
		return;
	CODE(c, at->address);
	CODE(c, at->start);
	CODE(c, at->end);
	CODE(c, at->offset);
	code_string(c, &at->path);
	code_string(c, &at->build_id);
}

static void code_site(struct codec *c, struct target_site *s)
{
	code_string(c, &s->function);
	code_string(c, &s->library);
	code_name(c, &s->caller);
	code_string(c, &s->file);
	CODE(c, s->offset);
	CODE(c, s->site);
	code_at(c, &s->caller.at);
}

static void code_ccs(struct codec *c, struct target_ccs *s)
{
	CODE(c, s->addr);
	CODE(c, s->parent);
	code_string(c, &s->label);
	code_string(c, &s->module);
	code_string(c, &s->src_loc);
	if (!c->out) {
		s->label = s->label ? s->label : "";
		s->module = s->module ? s->module : "";
		s->src_loc = s->src_loc ? s->src_loc : "";
	}
}

/* Codes only the frames in use. */
static void code_thread(struct codec *c, struct snap_thread *t)
{
	CODE(c, t->tid);
	CODE(c, t->comm);
	CODE(c, t->rts);
	CODE(c, t->start_time_ns);
	CODE(c, t->site);
	CODE(c, t->incall);
	CODE(c, t->syscall);
	CODE(c, t->state);
	CODE(c, t->stack);
	if (t->stack.nframes > WIRE_OFF_FRAMES) {
		c->bad = true;
		return;
	}
	code_raw(c, t->frames, sizeof(t->frames[0]) * t->stack.nframes);
}

/* The least bytes of a thread. */
#define LEAST_THREAD 60

static void code_snapshot(struct codec *c, struct snapshot *s, struct decoded *d)
{
	uint32_t n = (uint32_t)MIN(s->n, (size_t)UINT32_MAX);

	CODE(c, n);
	if (!c->out) {
		if (n > MAX_THREADS || n > c->left / LEAST_THREAD ||
		    ARRAY_RESERVE(d->snapshot.threads, d->threads_cap, n, MAX_THREADS)) {
			c->bad = true;
			return;
		}
		if (n)
			memset(d->snapshot.threads, 0, n * sizeof(*d->snapshot.threads));
		d->snapshot.n = n;
		s = &d->snapshot;
	}
	for (uint32_t i = 0; i < n && !c->bad; i++)
		code_thread(c, &s->threads[i]);
}

static void code_data(struct codec *c, struct intake_input *in, struct decoded *d)
{
	uint32_t size = (uint32_t)in->size;

	CODE(c, size);
	if (c->out) {
		buf__add(c->out, in->data, size);
		return;
	}
	if (size > c->left ||
	    array__reserve(&d->data, &d->data_cap, (size_t)size + 1, CAPTURE_MAX_BLOCK, 1)) {
		c->bad = true;
		return;
	}
	memcpy(d->data, c->in, size);
	c->in += size;
	c->left -= size;
	in->data = d->data;
	in->size = size;
}

/* ── inputs ──────────────────────────────────────────────────────────────────────────────── */

enum field {
	FIELD_PID,
	FIELD_TID,
	FIELD_TARGET,
	FIELD_N,
	FIELD_A,
	FIELD_B,
	FIELD_SHARE,
	FIELD_TEXT,
	FIELD_DATA,
	FIELD_INFO,
	FIELD_SNAPSHOT,
	FIELD_NAME,
	FIELD_SITE,
	FIELD_CCS,
	FIELDS,
};

struct entry_head {
	uint16_t kind, fields;
	uint32_t size;
};

/* Fields that are 0 are not written. */
static uint16_t fields_of(const struct intake_input *in)
{
	const bool there[FIELDS] = {
		[FIELD_PID] = in->pid,
		[FIELD_TID] = in->tid,
		[FIELD_TARGET] = in->target,
		[FIELD_N] = in->n,
		[FIELD_A] = in->a,
		[FIELD_B] = in->b,
		[FIELD_SHARE] = in->share != 0,
		[FIELD_TEXT] = in->text,
		[FIELD_DATA] = in->data,
		[FIELD_INFO] = in->info,
		[FIELD_SNAPSHOT] = in->snapshot,
		[FIELD_NAME] = in->name,
		[FIELD_SITE] = in->site,
		[FIELD_CCS] = in->ccs,
	};
	uint16_t fields = 0;

	for (unsigned i = 0; i < FIELDS; i++)
		fields |= (uint16_t)(there[i] << i);
	return fields;
}

/* d has what the pointers point at; copies when writing, so that one function does both. */
static void code_input(struct codec *c, uint16_t fields, struct intake_input *in, struct decoded *d)
{
#define HAS(field) (fields >> (field)&1)
	if (HAS(FIELD_PID))
		CODE(c, in->pid);
	if (HAS(FIELD_TID))
		CODE(c, in->tid);
	if (HAS(FIELD_TARGET))
		CODE(c, in->target);
	if (HAS(FIELD_N))
		CODE(c, in->n);
	if (HAS(FIELD_A))
		CODE(c, in->a);
	if (HAS(FIELD_B))
		CODE(c, in->b);
	if (HAS(FIELD_SHARE))
		CODE(c, in->share);
	if (HAS(FIELD_TEXT))
		code_string(c, &in->text);
	if (HAS(FIELD_DATA))
		code_data(c, in, d);
	if (HAS(FIELD_INFO))
		code_info(c, &d->info);
	if (HAS(FIELD_SNAPSHOT))
		code_snapshot(c, &d->snapshot, d);
	if (HAS(FIELD_NAME)) {
		code_name(c, &d->name);
		code_at(c, &d->name.at);
	}
	if (HAS(FIELD_SITE))
		code_site(c, &d->site);
	if (HAS(FIELD_CCS))
		code_ccs(c, &d->ccs);
	if (c->out)
		return;
	in->info = HAS(FIELD_INFO) ? &d->info : NULL;
	in->snapshot = HAS(FIELD_SNAPSHOT) ? &d->snapshot : NULL;
	in->name = HAS(FIELD_NAME) ? &d->name : NULL;
	in->site = HAS(FIELD_SITE) ? &d->site : NULL;
	in->ccs = HAS(FIELD_CCS) ? &d->ccs : NULL;
#undef HAS
}

int code__put(struct buf *out, const struct intake_input *input)
{
	struct codec c = {.out = out};
	struct intake_input in = *input;
	struct decoded d = {.data = NULL};
	struct entry_head head = {.kind = (uint16_t)input->kind, .fields = fields_of(input)};
	size_t at = out->len;

	if (input->size > CAPTURE_MAX_BLOCK)
		return -E2BIG;
	if (input->info)
		d.info = *input->info;
	if (input->snapshot)
		d.snapshot = *input->snapshot;
	if (input->name)
		d.name = *input->name;
	if (input->site)
		d.site = *input->site;
	if (input->ccs)
		d.ccs = *input->ccs;
	buf__add(out, &head, sizeof(head));
	code_input(&c, head.fields, &in, &d);
	if (out->err)
		return out->err;
	head.size = (uint32_t)(out->len - at - sizeof(head));
	memcpy(out->data + at, &head, sizeof(head));
	return 0;
}

int code__get(struct codec *c, struct decoded *d, unsigned *ret_kind,
	      struct intake_input *ret_input)
{
	struct codec inner = *c;
	struct entry_head head;

	memset(ret_input, 0, sizeof(*ret_input));
	if (!c->left)
		return -ENODATA;
	if (c->left < sizeof(head))
		return -EBADMSG;
	memcpy(&head, c->in, sizeof(head));
	if (head.size > c->left - sizeof(head))
		return -EBADMSG;
	inner.in = c->in + sizeof(head);
	inner.left = head.size;
	inner.bad = false;
	c->in += sizeof(head) + head.size;
	c->left -= sizeof(head) + head.size;
	*ret_kind = head.kind;
	if (head.fields >> FIELDS)
		return 0;
	d->snapshot.n = 0;
	memset(&d->info, 0, sizeof(d->info));
	memset(&d->name, 0, sizeof(d->name));
	memset(&d->site, 0, sizeof(d->site));
	memset(&d->ccs, 0, sizeof(d->ccs));
	code_input(&inner, head.fields, ret_input, d);
	c->string_room = inner.string_room;
	c->n_left_out = inner.n_left_out;
	ret_input->kind = inner.bad ? TI_NONE : head.kind;
	return 0;
}

void decoded__free(struct decoded *d)
{
	free(d->snapshot.threads);
	free(d->data);
	memset(d, 0, sizeof(*d));
}
