/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * OTLP profiles: the body of a request to an OpenTelemetry receiver, gzipped, as --push sends it.
 * Each process is a resource, with a profile for each type of value.
 *
 * Protobuf messages may be written in pieces, which readers merge: each process is a piece, and the
 * dictionary, which holds everything that they refer to, is the last one. A picture larger than
 * receivers accept at once becomes several requests, each with its own dictionary; they are divided
 * between processes, or between the samples of one.
 */
#include <stdlib.h>
#include <string.h>

#include "../packed.h"
#include "samples.h"

#define MAX_ATTRIBUTES 16

/*
 * What one sample stands for. Pyroscope names a profile after the period's type, and refuses the
 * rest of a request if there is none, except that it accepts off_cpu without one
 * (newProfileBuilder() in its convert.go). It derives process_cpu from samples times their period,
 * in addition to cpu, which is exact.
 */
enum period { PERIOD_NONE, PERIOD_SAMPLING, PERIOD_ONE };
static const struct {
	const char *name, *unit;
	enum period period;
} types[OTLP_TYPES] = {
	[OTLP_SAMPLES] = {"samples", "count", PERIOD_SAMPLING},
	[OTLP_CPU] = {"cpu", "nanoseconds", PERIOD_SAMPLING},
	[OTLP_OFF_CPU] = {"off_cpu", "nanoseconds", PERIOD_NONE},
	[OTLP_SAFE_CALL] = {"safe_call", "nanoseconds", PERIOD_ONE},
	[OTLP_ALLOC] = {"alloc_space", "bytes", PERIOD_ONE},
};

struct writer {
	const struct picture *pic;
	const struct export_opts *opts;
	struct packed *packed;
	struct views views;
	struct dict *dict;
	Otlp__ValueType type[OTLP_TYPES];
	uint64_t max_bytes;
	bool any; /* a profile has been written */
};

static void put(struct writer *w, const Otlp__ExportRequest *piece)
{
	otlp__export_request__pack_to_buffer(piece, packed__buffer(w->packed));
}

/* ── the resource ────────────────────────────────────────────────────────────────────────── */

struct resource {
	Otlp__Resource message;
	Otlp__KeyValue pairs[MAX_ATTRIBUTES], *all[MAX_ATTRIBUTES];
	Otlp__AnyValue values[MAX_ATTRIBUTES];
	char *texts[MAX_ATTRIBUTES]; /* the values' texts, freed with the resource */
	int err;
};

static Otlp__AnyValue *add_pair(struct resource *r, const char *key)
{
	size_t i = r->message.n_attributes++;

	otlp__key_value__init(&r->pairs[i]);
	otlp__any_value__init(&r->values[i]);
	r->pairs[i].key = (char *)key;
	r->pairs[i].value = &r->values[i];
	r->all[i] = &r->pairs[i];
	return &r->values[i];
}

/* Adds a text attribute unless `text` is empty. */
static void add_text(struct resource *r, const char *key, const char *text)
{
	char *safe = *or_empty(text) ? text__escaped(text) : NULL;
	Otlp__AnyValue *value;

	if (!*or_empty(text))
		return;
	if (!safe) {
		r->err = -ENOMEM;
		return;
	}
	r->texts[r->message.n_attributes] = safe;
	value = add_pair(r, key);
	value->value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
	value->string_value = safe;
}

static void add_number(struct resource *r, const char *key, int64_t n)
{
	Otlp__AnyValue *value = add_pair(r, key);

	value->value_case = OTLP__ANY_VALUE__VALUE_INT_VALUE;
	value->int_value = n;
}

/* The service of "nginx.service" is nginx, that of "user@1000.service/app.service"
 * user@1000.service/app. */
static void add_service(struct resource *r, const struct pic_target *target)
{
	const char *unit = or_empty(target->service);
	char name[512];

	snprintf(name, sizeof(name), "%.*s", (int)service__stem(unit, strlen(unit)), unit);
	add_text(r, "service.name", *name ? name : pic_target__program(target).s);
}

static void make_resource(const struct writer *w, const struct pic_target *target,
			  struct resource *r)
{
	const char *program = path__base(or_empty(target->exe));

	otlp__resource__init(&r->message);
	r->message.attributes = r->all;
	add_service(r, target);
	add_text(r, "host.name", w->opts->host_name);
	add_text(r, "host.id", w->opts->host_id);
	if (target->pid)
		add_number(r, "process.pid", target->pid);
	add_text(r, "process.executable.name", program);
	add_text(r, "process.executable.path", target->exe);
	add_text(r, "process.runtime.name", "ghc");
	add_text(r, "process.runtime.version", target->ghc_version);
	add_text(r, "container.id", target->container);
	add_text(r, "k8s.pod.uid", target->pod);
}

static void free_resource(struct resource *r)
{
	for (size_t i = 0; i < MAX_ATTRIBUTES; i++)
		free(r->texts[i]);
}

/* ── a profile ───────────────────────────────────────────────────────────────────────────── */

struct profile {
	Otlp__Profile message;
	Otlp__Sample *samples, **all;
	uint64_t id[2];
	int32_t attribute; /* the only one, if any */
};

/* A step of splitmix64: each input bit changes half of the output bits. */
static uint64_t mix(uint64_t seed, uint64_t n)
{
	uint64_t z = seed + n * 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static uint64_t mix_text(uint64_t id, const char *text)
{
	for (const char *c = or_empty(text); *c; c++)
		id = mix(id, (unsigned char)*c);
	return id;
}

/*
 * A profile's id: the same however often it is sent, and unique to it. from: where it begins, if a
 * process is split across requests. A report that GHC wrote has neither a time nor a process, and
 * parts of an eventlog begin at the same time: hence the program, the duration and the values.
 */
static void make_id(const struct writer *w, const struct pic_target *target,
		    const struct otlp_part *from, enum otlp_type type, struct profile *p)
{
	const struct pic_session *session = picture__session(w->pic);

	for (uint64_t half = 0; half < 2; half++) {
		uint64_t id = mix(half, session->start_unix_ns);

		id = mix(id, p->message.duration_nano);
		for (size_t i = 0; i < p->message.n_samples; i++)
			id = mix(id, (uint64_t)p->message.samples[i]->values[0]);
		id = mix_text(id, target->comm);
		id = mix(id, target->start_time_ns);
		id = mix(id, (uint64_t)target->pid);
		/* an exec may change none of the values above */
		id = mix(id, target->attach_ns);
		id = mix(id, type + 1);
		if (from->lane)
			id = mix(id, from->lane);
		if (from->part)
			id = mix(mix(id, OTLP_TYPES + 1), from->part);
		p->id[half] = mix_text(id, w->opts->host_id);
	}
}

static int make_samples(struct otlp_samples *samples, enum otlp_type type, struct profile *p)
{
	size_t n = 0;

	for (size_t i = 0; i < samples->n; i++)
		n += samples->v[i].values[type] != 0;
	p->samples = calloc(n + 1, sizeof(*p->samples));
	p->all = calloc(n + 1, sizeof(*p->all));
	if (!p->samples || !p->all)
		return -ENOMEM;
	n = 0;
	for (size_t i = 0; i < samples->n; i++) {
		struct otlp_sample *s = &samples->v[i];
		Otlp__Sample *to = &p->samples[n];

		if (!s->values[type])
			continue;
		otlp__sample__init(to);
		to->stack_index = s->stack;
		to->attribute_indices = s->attributes;
		while (to->n_attribute_indices < OTLP_ATTRIBUTES &&
		       s->attributes[to->n_attribute_indices])
			to->n_attribute_indices++;
		to->values = &s->values[type];
		to->n_values = 1;
		p->all[n++] = to;
	}
	p->message.samples = p->all;
	p->message.n_samples = n;
	return 0;
}

/* Adds the part of the time that was observed, under the name that the JSON report uses. */
static void mark_observed(struct writer *w, const struct pic_alloc *alloc, struct profile *p)
{
	if (!alloc->observed_ns || !p->message.n_samples)
		return;
	p->attribute =
		dict__number(w->dict, "ghc.allocation.observed_ns", (int64_t)alloc->observed_ns);
	p->message.attribute_indices = &p->attribute;
	p->message.n_attribute_indices = 1;
}

/* Adds a type's names to the dictionary when a profile needs them. */
static Otlp__ValueType *type_of(struct writer *w, enum otlp_type type)
{
	Otlp__ValueType *its = &w->type[type];

	if (!its->type_strindex) {
		its->type_strindex = dict__string(w->dict, types[type].name);
		its->unit_strindex = dict__string(w->dict, types[type].unit);
	}
	return its;
}

static void put_types(struct writer *w, enum otlp_type type, Otlp__Profile *message)
{
	const struct pic_session *session = picture__session(w->pic);

	message->sample_type = type_of(w, type);
	if (types[type].period == PERIOD_SAMPLING && session->period_ns) {
		message->period_type = type_of(w, OTLP_CPU);
		message->period = (int64_t)session->period_ns;
	} else if (types[type].period != PERIOD_NONE) {
		/* every one of them is counted */
		message->period_type = type_of(w, type);
		message->period = 1;
	}
}

static int make_profile(struct writer *w, const struct pic_target *target,
			const struct otlp_part *from, struct otlp_samples *samples,
			enum otlp_type type, struct profile *p)
{
	const struct pic_session *session = picture__session(w->pic);
	int err;

	otlp__profile__init(&p->message);
	p->message.time_unix_nano = session->start_unix_ns;
	p->message.duration_nano = session->end_ns - MIN(session->start_ns, session->end_ns);
	p->message.profile_id.data = (uint8_t *)p->id;
	p->message.profile_id.len = sizeof(p->id);
	err = make_samples(samples, type, p);
	if (!err)
		make_id(w, target, from, type, p);
	if (!err && p->message.n_samples)
		put_types(w, type, &p->message);
	if (!err && type == OTLP_ALLOC)
		mark_observed(w, &target->alloc, p);
	return err;
}

/* ── a process ───────────────────────────────────────────────────────────────────────────── */

static void put_process(struct writer *w, struct resource *resource, struct profile *profiles)
{
	Otlp__ExportRequest piece = OTLP__EXPORT_REQUEST__INIT;
	Otlp__ResourceProfiles its = OTLP__RESOURCE_PROFILES__INIT, *all_its = &its;
	Otlp__ScopeProfiles scoped = OTLP__SCOPE_PROFILES__INIT, *all_scoped = &scoped;
	Otlp__InstrumentationScope scope = OTLP__INSTRUMENTATION_SCOPE__INIT;
	Otlp__Profile *all[OTLP_TYPES];

	for (size_t i = 0; i < OTLP_TYPES; i++)
		if (profiles[i].message.n_samples)
			all[scoped.n_profiles++] = &profiles[i].message;
	if (!scoped.n_profiles)
		return;
	w->any = true;
	scope.name = (char *)"safescoped";
	scope.version = (char *)picture__session(w->pic)->version;
	scoped.scope = &scope;
	scoped.profiles = all;
	its.resource = &resource->message;
	its.n_scope_profiles = 1;
	its.scope_profiles = &all_scoped;
	piece.n_resource_profiles = 1;
	piece.resource_profiles = &all_its;
	put(w, &piece);
}

static bool has_room(const struct writer *w)
{
	return packed__bytes(w->packed) + dict__bytes(w->dict) < w->max_bytes;
}

static int write_part(struct writer *w, struct otlp_part *part)
{
	const struct pic_target *target = picture__target(w->pic, part->target_no);
	struct profile profiles[OTLP_TYPES] = {0};
	struct resource resource = {.err = 0};
	struct otlp_samples samples = {0};
	const struct otlp_part from = *part;
	int err;

	part->bytes = w->max_bytes - MIN(packed__bytes(w->packed), w->max_bytes);
	make_resource(w, target, &resource);
	err = resource.err;
	if (!err)
		err = otlp_samples__collect(w->pic, &w->views, part, w->dict, &samples);
	for (unsigned i = 0; !err && i < OTLP_TYPES; i++)
		err = make_profile(w, target, &from, &samples, (enum otlp_type)i, &profiles[i]);
	if (!err)
		put_process(w, &resource, profiles);
	for (size_t i = 0; i < OTLP_TYPES; i++) {
		free(profiles[i].samples);
		free(profiles[i].all);
	}
	otlp_samples__free(&samples);
	free_resource(&resource);
	return err;
}

/* ── all of them ─────────────────────────────────────────────────────────────────────────── */

static int write_request(struct writer *w, struct export_cursor *at)
{
	Otlp__ExportRequest piece = OTLP__EXPORT_REQUEST__INIT;
	size_t n = picture__n_targets(w->pic);
	Otlp__ProfilesDictionary dictionary;
	bool whole = true;
	int err = 0;

	for (size_t i = 0; i < OTLP_TYPES; i++)
		otlp__value_type__init(&w->type[i]);
	while (!err && whole && at->target < n && (!w->any || has_room(w))) {
		struct otlp_part part = {
			.target_no = at->target, .lane = at->lane, .part = at->part};

		err = write_part(w, &part);
		if (!err)
			err = packed__error(w->packed);
		whole = part.last;
		at->target += whole;
		at->lane = whole ? 0 : part.lane;
		at->part = whole ? 0 : part.part;
	}
	at->done = at->target >= n;
	at->empty = !w->any;
	if (!err)
		err = dict__message(w->dict, &dictionary);
	if (err)
		return err;
	piece.dictionary = &dictionary;
	put(w, &piece);
	return packed__finish(w->packed);
}

int export_otlp__write_next(FILE *out, const struct picture *pic, const struct export_opts *opts,
			    uint64_t max_bytes, struct export_cursor *at)
{
	struct writer w = {.pic = pic, .opts = opts, .max_bytes = max_bytes};
	struct export_cursor next = *at;
	int err = packed__new(out, &w.packed);

	if (!err)
		err = dict__new(pic, &w.dict);
	if (!err)
		err = views__collect(pic, &w.views);
	if (!err)
		err = write_request(&w, &next);
	views__free(&w.views);
	dict__free(w.dict);
	packed__free(w.packed);
	err = export__result(out, err);
	if (!err)
		*at = next;
	return err;
}

int otlp__write(FILE *out, const struct picture *pic, const struct export_opts *opts)
{
	struct export_cursor at = {0};

	return export_otlp__write_next(out, pic, opts, UINT64_MAX, &at);
}
