/* SPDX-License-Identifier: GPL-2.0-or-later */
/* json_log: what the report says of cost centres and of the eventlog. */
#include "json_priv.h"

#define TEXT_MAX ((size_t)1 << 30)

/* Long arrays are made as text: an object for each number would cost more than all else. */
static void add_text(struct report *r, cJSON *object, const char *key, struct buf *text)
{
	buf__addc(text, ']');
	add(r, object, key, text->err ? NULL : cJSON_CreateRaw(text->data));
	buf__free(text);
}

static void begin_text(struct buf *text)
{
	buf__init(text, TEXT_MAX);
	buf__addc(text, '[');
}

void json__cost_centre_stacks(struct report *r, cJSON *target, const struct tl_target *t)
{
	struct buf text;

	if (!t->n_cc_nodes)
		return;
	begin_text(&text);
	for (size_t i = 0; i < t->n_cc_nodes; i++) {
		const struct tl_cc_node *n = &t->cc_nodes[i];

		buf__addf(&text, "%s{\"centre\":%" PRIu32 ",\"parent\":", i ? ",\n" : "\n",
			  n->centre);
		if (n->parent == UINT32_MAX)
			buf__adds(&text, "null");
		else
			buf__addf(&text, "%" PRIu32, n->parent);
		buf__addf(&text, ",\"ticks\":%" PRIu64 ",\"inherited_ticks\":%" PRIu64 "}",
			  n->ticks, n->inherited_ticks);
	}
	add_text(r, target, "cost_centre_stacks", &text);
}

static void add_marks(struct report *r, cJSON *target, const struct tl_session *session,
		      const struct tl_target *t)
{
	cJSON *list = add_array(r, target, "marks");

	for (size_t i = 0; i < t->n_marks; i++) {
		const struct tl_mark *m = &t->marks[i];
		cJSON *o = add_object(r, list, NULL);

		add_u64(r, o, "ns", since_start(session, m->ns));
		add_string(r, o, "kind", m->kind == MK_USER_MARKER ? "marker" : "message");
		add_string(r, o, "text", m->text);
		add_u64_or_null(r, o, "tso", m->tso ? m->tso : UINT64_MAX);
		add_u64_or_null(r, o, "capability", m->cap == UINT32_MAX ? UINT64_MAX : m->cap);
	}
}

void json__windows(struct report *r, cJSON *target, const struct tl_session *session,
		   const struct tl_target *t)
{
	cJSON *list;

	if (t->n_marks)
		add_marks(r, target, session, t);
	if (!t->n_windows)
		return;
	list = add_array(r, target, "windows");
	for (size_t i = 0; i < t->n_windows; i++) {
		const struct tl_window *w = &t->windows[i];
		cJSON *o = add_object(r, list, NULL);

		add_string(r, o, "label", w->label);
		add_u64(r, o, "count", w->count);
		add_u64(r, o, "total_ns", w->total_ns);
		add_u64_or_null(r, o, "min_ns", w->count ? w->min_ns : UINT64_MAX);
		add_u64_or_null(r, o, "max_ns", w->count ? w->max_ns : UINT64_MAX);
		add_u64(r, o, "unfinished", w->unfinished);
	}
}

static void add_counters(struct report *r, cJSON *object, const char *key,
			 const struct tl_session *session, const struct tl_target *t, unsigned kind)
{
	cJSON *list = add_array(r, object, key);

	for (size_t i = 0; i < t->n_counters; i++) {
		const struct tl_counter *c = &t->counters[i];
		struct buf text;
		cJSON *o;

		if (c->kind != kind)
			continue;
		o = add_object(r, list, NULL);
		add_string(r, o, "name", c->name);
		add_string(r, o, "unit", c->unit);
		add_u64(r, o, "max", c->max_value);
		add_u64(r, o, "last", c->last_value);
		begin_text(&text);
		for (size_t k = 0; k < c->n_points; k++)
			buf__addf(&text, "%s[%" PRIu64 ",%" PRIu64 "]", k ? "," : "",
				  since_start(session, c->points[k].ns), c->points[k].value);
		add_text(r, o, "points", &text);
	}
}

static void add_share(struct report *r, cJSON *object, const char *key, double share)
{
	if (share < 0)
		add_null(r, object, key);
	else
		add_double(r, object, key, share);
}

void json__eventlog(struct report *r, cJSON *target, const struct tl_session *session,
		    const struct tl_target *t)
{
	const struct tl_eventlog *e = &t->eventlog;
	char offset[32];
	cJSON *o, *agreement;

	if (!e->known) {
		add_null(r, target, "eventlog");
		return;
	}
	o = add_object(r, target, "eventlog");
	add_string(r, o, "path", e->path);
	add_u64(r, o, "events", e->events);
	add_u64(r, o, "cost_centres", e->cost_centres);
	add_u64(r, o, "samples", e->samples);
	snprintf(offset, sizeof(offset), "%" PRId64, e->offset_ns);
	add(r, o, "offset_ns", cJSON_CreateRaw(offset));
	add_u64_or_null(r, o, "offset_error_ns", e->offset_error_ns);
	add_u64(r, o, "reaches_ns", since_start(session, e->reaches_ns));
	add_u64(r, o, "damaged_bytes", e->damaged_bytes);
	agreement = add_object(r, o, "agreement");
	add_share(r, agreement, "safe_calls", e->agreement_safe_calls);
	add_share(r, agreement, "ticks", e->agreement_ticks);
	add_share(r, agreement, "capabilities", e->agreement_caps);
	add_share(r, o, "tick_centres_differ", e->tick_centres_differ);
	add_counters(r, o, "heap", session, t, TC_HEAP);
	add_counters(r, o, "heap_profile", session, t, TC_HEAP_PROFILE);
	add_counters(r, o, "ticky", session, t, TC_TICKY);
}
