/* SPDX-License-Identifier: GPL-2.0-or-later */
/* log: cost centres and the eventlog in the report. */
#include "json_priv.h"

void json__cost_centre_stacks(struct report *r, cJSON *target, const struct pic_target *t)
{
	struct buf text;

	if (!t->n_cc_nodes)
		return;
	begin_text(&text);
	for (size_t i = 0; i < t->n_cc_nodes; i++) {
		const struct pic_cc_node *n = &t->cc_nodes[i];

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

static void add_marks(struct report *r, cJSON *target, const struct pic_target *t)
{
	cJSON *list = add_array(r, target, "marks");

	for (size_t i = 0; i < t->n_marks; i++) {
		const struct pic_mark *m = &t->marks[i];
		cJSON *o = add_object(r, list, NULL);

		add_time(r, o, "ns", m->ns);
		add_string(r, o, "kind", m->kind == MK_USER_MARKER ? "marker" : "message");
		add_string(r, o, "text", m->text);
		add_known(r, o, "tso", known_if(m->tso, m->tso));
		add_known(r, o, "capability", known_if(m->cap != UINT32_MAX, m->cap));
	}
}

void json__windows(struct report *r, cJSON *target, const struct pic_target *t)
{
	cJSON *list;

	if (t->n_marks)
		add_marks(r, target, t);
	if (!t->n_windows)
		return;
	list = add_array(r, target, "windows");
	for (size_t i = 0; i < t->n_windows; i++) {
		const struct pic_window *w = &t->windows[i];
		cJSON *o = add_object(r, list, NULL);

		add_string(r, o, "label", w->label);
		add_u64(r, o, "count", w->count);
		add_u64(r, o, "total_ns", w->total_ns);
		add_known(r, o, "min_ns", known_if(w->count, w->min_ns));
		add_known(r, o, "max_ns", known_if(w->count, w->max_ns));
		add_u64(r, o, "unfinished", w->unfinished);
	}
}

static void add_counters(struct report *r, cJSON *object, const char *key,
			 const struct pic_target *t, unsigned kind)
{
	cJSON *list = add_array(r, object, key);

	for (size_t i = 0; i < t->n_counters; i++) {
		const struct pic_counter *c = &t->counters[i];
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
		for (size_t k = 0; k < c->n_points; k++) {
			uint64_t ns = c->points[k].ns;

			buf__addf(&text, "%s[%" PRIu64 ",%" PRIu64 "]", k ? "," : "",
				  ns - MIN(ns, r->session->start_ns), c->points[k].value);
		}
		add_text(r, o, "points", &text);
	}
}

void json__eventlog(struct report *r, cJSON *target, const struct pic_target *t)
{
	const struct pic_eventlog *e = &t->eventlog;
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
	add_known(r, o, "offset_error_ns", e->offset_error_ns);
	add_time(r, o, "reaches_ns", e->reaches_ns);
	add_u64(r, o, "damaged_bytes", e->damaged_bytes);
	agreement = add_object(r, o, "agreement");
	add_real(r, agreement, "safe_calls", e->agreement_safe_calls);
	add_real(r, agreement, "ticks", e->agreement_ticks);
	add_real(r, agreement, "capabilities", e->agreement_caps);
	add_real(r, o, "tick_centres_differ", e->tick_centres_differ);
	add_counters(r, o, "heap", t, TC_HEAP);
	add_counters(r, o, "heap_profile", t, TC_HEAP_PROFILE);
	add_counters(r, o, "ticky", t, TC_TICKY);
}
