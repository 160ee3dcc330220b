/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pprof (profile.proto, gzipped), for `go tool pprof` and other readers of its files. A sample is a
 * stack of one thread in one state, with its samples, its time on the CPU, its wall time, and the
 * part of that in safe calls; idle time is left out. The account does not record which capability
 * the thread had and which Haskell thread it ran: its time is divided in proportion to the thread's
 * slices. Allocation by Haskell threads is in samples of the process without other values, and so
 * is the census of the heap: a closure type is a stack of one frame.
 *
 * Protobuf messages may be written in pieces, which readers merge: each sample, location and string
 * is a piece, and no more than one is in memory at a time.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "gathered.h"
#include "packed.h"
#include "pprof.pb-c.h"
#include "series.h"

/* ── what is added up ────────────────────────────────────────────────────────────────────── */

#define CPU_VALUE  1
#define WALL_VALUE 2
/* If a type is called "wall", Pyroscope files the whole profile under "wall" (its metricName()),
 * and its CPU time is not where users look for it. */
#define PYROSCOPE_WALL "wall_time"
/* What a value is taken from. */
enum part { ALL, SAFE_CALLS, ALLOCATION, CENSUS_COUNT, CENSUS_BYTES };
static const struct {
	enum export_weight weight;
	const char *name, *unit;
	enum part of;
} values[] = {{WEIGHT_SAMPLES, "samples", "count", ALL},
	      [CPU_VALUE] = {WEIGHT_CPU, "cpu", "nanoseconds", ALL},
	      [WALL_VALUE] = {WEIGHT_WALL, "wall", "nanoseconds", ALL},
	      {WEIGHT_WALL, "safe_call", "nanoseconds", SAFE_CALLS},
	      /* named as in Go's profiles; left out if there is no such data */
	      {WEIGHT_ALLOC, "alloc_space", "bytes", ALLOCATION},
	      {WEIGHTS, "inuse_objects", "count", CENSUS_COUNT},
	      {WEIGHTS, "inuse_space", "bytes", CENSUS_BYTES}};

struct writer {
	struct packed *packed;
	struct pprof_source *source;
	const struct picture *pic;
	struct strtab *strings;
	uint32_t only; /* the number of a process, or EVERY_TARGET */
	/* for Pyroscope: threads' names and labels of process `named` - 1, if it has few */
	bool for_pyroscope;
	uint32_t named;
	struct series_names threads, labels;
	uint8_t value[ARRAY_SIZE(values)]; /* indices into values[] of those written */
	size_t n_values;
	bool any; /* some sample has a nonzero value */
	int err;
};

static int64_t string_of(struct writer *w, const char *s)
{
	/* readers print names to a terminal unescaped */
	uint32_t id = 0;
	int err = strtab__add_escaped(w->strings, s, &id);

	if (err && !w->err)
		w->err = err;
	return id;
}

/* ── pieces ──────────────────────────────────────────────────────────────────────────────── */

static void put(struct writer *w, const Pprof__Profile *piece)
{
	pprof__profile__pack_to_buffer(piece, packed__buffer(w->packed));
}

static void put_head(struct writer *w, enum export_weight weight)
{
	const struct pic_session *session = picture__session(w->pic);
	Pprof__Profile head = PPROF__PROFILE__INIT;
	Pprof__ValueType type[ARRAY_SIZE(values)], *all[ARRAY_SIZE(values)];
	const struct alloc_part part = alloc__part_of(w->pic, w->only);
	int64_t comments[2], cpu = 0;
	char comment[128];

	for (size_t i = 0; i < w->n_values; i++) {
		uint8_t k = w->value[i];

		pprof__value_type__init(&type[i]);
		type[i].type = string_of(w, k == WALL_VALUE && w->for_pyroscope ? PYROSCOPE_WALL
										: values[k].name);
		type[i].unit = string_of(w, values[k].unit);
		all[i] = &type[i];
		if (values[k].weight == weight && values[k].of != SAFE_CALLS)
			head.default_sample_type = type[i].type;
		if (k == CPU_VALUE)
			cpu = type[i].type;
	}
	/* readers would take the last one */
	if (!head.default_sample_type)
		head.default_sample_type = cpu;
	snprintf(comment, sizeof(comment), "safescoped %s, mode: %s", session->version,
		 session->mode);
	comments[0] = string_of(w, comment);
	head.n_sample_type = w->n_values;
	head.sample_type = all;
	head.time_nanos = (int64_t)session->start_unix_ns;
	head.duration_nanos = (int64_t)(session->end_ns - session->start_ns);
	if (session->period_ns) {
		head.period_type = &type[CPU_VALUE];
		head.period = (int64_t)session->period_ns;
	}
	comments[1] = string_of(w, part.s);
	head.n_comment = *part.s ? 2 : 1;
	head.comment = comments;
	put(w, &head);
}

static bool is_wanted(const struct writer *w, uint32_t target)
{
	return w->only == EVERY_TARGET || w->only == target;
}

static void put_mapping(struct writer *w, uint32_t no)
{
	const struct binary *its = &w->source->binaries.v[no];
	Pprof__Profile piece = PPROF__PROFILE__INIT;
	Pprof__Mapping mapping = PPROF__MAPPING__INIT, *one = &mapping;

	mapping.id = (uint64_t)no + 1;
	mapping.memory_start = its->start;
	mapping.memory_limit = its->end;
	mapping.file_offset = its->offset;
	mapping.filename = string_of(w, its->path);
	mapping.build_id = string_of(w, its->build_id);
	mapping.has_functions = true;
	piece.n_mapping = 1;
	piece.mapping = &one;
	put(w, &piece);
}

/* Writes the executable first, since readers take the first mapping for it. */
static void put_mappings(struct writer *w, const struct numbers *used)
{
	uint32_t exe = w->only == EVERY_TARGET ? 0 : w->source->binaries.of_target[w->only];

	if (exe)
		put_mapping(w, exe - 1);
	for (size_t i = 0; i < used->n; i++)
		if (used->v[i] + 1 != exe)
			put_mapping(w, used->v[i]);
}

/* Writes a location with its only function. */
static void put_code(struct writer *w, uint64_t id, Pprof__Location location,
		     Pprof__Function function, int64_t line_no)
{
	Pprof__Profile piece = PPROF__PROFILE__INIT;
	Pprof__Location *one_location = &location;
	Pprof__Function *one_function = &function;
	Pprof__Line line = PPROF__LINE__INIT, *one_line = &line;

	function.id = location.id = line.function_id = id;
	line.line = line_no;
	location.n_line = 1;
	location.line = &one_line;
	piece.n_location = 1;
	piece.location = &one_location;
	piece.n_function = 1;
	piece.function = &one_function;
	put(w, &piece);
}

static void put_location(struct writer *w, uint32_t number)
{
	uint32_t index = w->source->frame[number];
	const struct pic_frame *frame = picture__frame(w->pic, index);
	const struct pic_place *place = picture__place(w->pic, index);
	Pprof__Location location = PPROF__LOCATION__INIT;
	Pprof__Function function = PPROF__FUNCTION__INIT;
	char file[4096];
	size_t len;
	uint32_t line = src__line(frame->src, &len);

	function.name = string_of(w, frame__name(frame));
	snprintf(file, sizeof(file), "%.*s", (int)MIN(len, sizeof(file)), frame->src);
	function.filename = string_of(w, len ? file : frame->file);
	location.mapping_id = w->source->binaries.of_frame[index];
	if (place)
		location.address = place->address;
	put_code(w, w->source->id[number], location, function, line);
}

/* text: NULL if the label is a number. */
static void add_label(struct writer *w, Pprof__Sample *sample, const char *key, const char *text,
		      int64_t n)
{
	Pprof__Label *label = sample->label[sample->n_label++];

	pprof__label__init(label);
	label->key = string_of(w, key);
	label->str = text ? string_of(w, text) : 0;
	label->num = n;
}

/* ── samples ─────────────────────────────────────────────────────────────────────────────── */

#define LABELS 10

/* The owner of a sample's values. */
struct whose {
	const struct sum *sum;
	const struct carrier *carrier; /* NULL: not known */
	const char *few;	       /* for Pyroscope: the Haskell thread's label; "": none */
};

static void add_state(struct writer *w, Pprof__Sample *sample, const struct whose *whose,
		      enum lane_kind kind)
{
	add_label(w, sample, "state", state__name(kind, whose->sum->owner % LANE_STATES), 0);
}

static void add_lane_labels(struct writer *w, Pprof__Sample *sample, const struct whose *whose,
			    const struct view *view)
{
	const struct carrier *carrier = whose->carrier;
	uint32_t cap = UINT32_MAX;
	char name[32];

	if (view->lane->kind == LANE_THREAD) {
		snprintf(name, sizeof(name), "%.16s", or_empty(view->lane->name));
		add_label(w, sample, "thread", name, 0);
		add_label(w, sample, "thread_id", NULL, view->lane->tid);
	} else {
		add_label(w, sample, "thread", view__name(view, false).s, 0);
		cap = view->lane->cap;
	}
	add_state(w, sample, whose, view->lane->kind);
	if (carrier && carrier->cap != NO_CAP)
		cap = carrier->cap;
	/* as text, since readers take a numeric 0 for no value */
	snprintf(name, sizeof(name), "%" PRIu32, cap);
	if (cap != UINT32_MAX)
		add_label(w, sample, "capability", name, 0);
	if (carrier && carrier->tso)
		add_label(w, sample, "haskell_thread",
			  views__thread(&w->source->views, view->target_no, carrier->tso).s, 0);
}

/* Pyroscope makes a series of each set of text labels (its VisitSampleSeries()), so only names that
 * are few and recur in each window are used. Capabilities would multiply the others. */
static void add_few_labels(struct writer *w, Pprof__Sample *sample, const struct whose *whose,
			   const struct view *view)
{
	if (view->lane->kind == LANE_THREAD && series__find(&w->threads, view->lane->name))
		add_label(w, sample, "thread", view->lane->name, 0);
	add_state(w, sample, whose, view->lane->kind);
	if (*whose->few)
		add_label(w, sample, "haskell_thread", whose->few, 0);
}

static void add_labels(struct writer *w, Pprof__Sample *sample, const struct whose *whose)
{
	uint32_t owner = whose->sum->owner / LANE_STATES;
	const struct pic_target *target =
		picture__target(w->pic, pprof_source__target(w->source, whose->sum));

	add_label(w, sample, "process", pic_target__program(target).s, 0);
	add_label(w, sample, "process_id", NULL, target->pid);
	if (*or_empty(target->service))
		add_label(w, sample, "service", target->service, 0);
	if (*or_empty(target->container))
		add_label(w, sample, "container", target->container, 0);
	if (*or_empty(target->pod))
		add_label(w, sample, "pod", target->pod, 0);
	if (owner < w->source->views.n && w->for_pyroscope)
		add_few_labels(w, sample, whose, &w->source->views.v[owner]);
	else if (owner < w->source->views.n)
		add_lane_labels(w, sample, whose, &w->source->views.v[owner]);
}

static void put_values(struct writer *w, const struct whose *whose, const int64_t *v, uint64_t *ids,
		       size_t n_ids)
{
	Pprof__Profile piece = PPROF__PROFILE__INIT;
	Pprof__Sample sample = PPROF__SAMPLE__INIT, *one = &sample;
	Pprof__Label labels[LABELS], *all[LABELS];

	for (size_t i = 0; i < LABELS; i++)
		all[i] = &labels[i];
	sample.label = all;
	add_labels(w, &sample, whose);
	sample.n_location_id = n_ids;
	sample.location_id = ids;
	sample.n_value = w->n_values;
	sample.value = (int64_t *)v;
	for (size_t k = 0; k < w->n_values; k++)
		w->any |= v[k] != 0;
	piece.n_sample = 1;
	piece.sample = &one;
	put(w, &piece);
}

/* Values by Haskell thread label; those of threads without one come first. */
struct few {
	int64_t v[SERIES_NAMES + 1][ARRAY_SIZE(values)];
	bool any[SERIES_NAMES + 1];
};

static void add_few(struct writer *w, struct few *few, uint32_t target, const struct carrier *its,
		    const int64_t *part)
{
	size_t label = series__find(&w->labels, views__label(&w->source->views, target, its->tso));

	for (size_t k = 0; k < w->n_values; k++) {
		few->v[label][k] += part[k];
		few->any[label] |= part[k] != 0;
	}
}

static void put_few(struct writer *w, const struct sum *sum, const struct few *few, uint64_t *ids,
		    size_t n_ids)
{
	for (size_t i = 0; i <= w->labels.n; i++) {
		const struct whose whose = {.sum = sum, .few = i ? w->labels.v[i - 1] : ""};

		if (few->any[i])
			put_values(w, &whose, few->v[i], ids, n_ids);
	}
}

/* Divides the values among capabilities and Haskell threads as the lane's slices are. */
static void put_divided(struct writer *w, const struct sum *sum, const int64_t *v, uint64_t *ids,
			size_t n_ids)
{
	struct whose whose = {.sum = sum, .few = ""};
	uint32_t owner = sum->owner / LANE_STATES;
	const struct carrier *its = NULL;
	struct few few = {.any = {false}};
	struct division d;
	size_t n = 0;

	if (owner < w->source->views.n && (!w->for_pyroscope || w->labels.n))
		its = carriers__find(&w->source->carriers[owner], sum->owner % LANE_STATES,
				     sum->stack, &n);
	if (!n)
		put_values(w, &whose, v, ids, n_ids);
	d = carriers__divide(its, n);
	while ((whose.carrier = division__next(&d))) {
		int64_t part[ARRAY_SIZE(values)], any = 0;

		for (size_t k = 0; k < w->n_values; k++) {
			bool counted = values[w->value[k]].weight == WEIGHT_SAMPLES;

			part[k] = (int64_t)(counted ? division__samples(&d, (uint64_t)v[k])
						    : division__time(&d, (uint64_t)v[k]));
			any |= part[k];
		}
		if (w->for_pyroscope)
			add_few(w, &few, w->source->views.v[owner].target_no, whose.carrier, part);
		else if (any)
			put_values(w, &whose, part, ids, n_ids);
	}
	put_few(w, sum, &few, ids, n_ids);
}

static int64_t value_of(uint8_t value, const struct pic_lane *lane, const struct sum *sum)
{
	enum part of = values[value].of;

	if (of >= CENSUS_COUNT)
		return 0;
	if (of == SAFE_CALLS &&
	    !(lane && state__in_safe_call(lane->kind, sum->owner % LANE_STATES)))
		return 0;
	return (int64_t)sum->by[values[value].weight];
}

static void look_at_names(struct writer *w, uint32_t target_no)
{
	const struct pic_target *target = picture__target(w->pic, target_no);

	if (!w->for_pyroscope || w->named == target_no + 1)
		return;
	w->named = target_no + 1;
	w->threads = series__names(&target->lanes[LANE_THREAD]);
	w->labels = series__names(&target->lanes[LANE_HASKELL]);
}

static void put_sample(struct writer *w, const struct sum *sum, uint64_t *ids)
{
	uint32_t owner = sum->owner / LANE_STATES;
	const struct pic_lane *lane =
		owner < w->source->views.n ? w->source->views.v[owner].lane : NULL;
	struct pic_stack stack = picture__stack(w->pic, sum->stack);
	int64_t v[ARRAY_SIZE(values)] = {0};

	if (!stack.n && !sum->by[WEIGHT_SAMPLES] && !sum->by[WEIGHT_ALLOC])
		return;
	for (uint32_t i = 0; i < stack.n; i++)
		ids[i] = w->source->id[w->source->map[stack.frames[stack.n - 1 - i]]];
	for (size_t k = 0; k < w->n_values; k++)
		v[k] = value_of(w->value[k], lane, sum);
	look_at_names(w, pprof_source__target(w->source, sum));
	put_divided(w, sum, v, ids, stack.n);
}

static int put_samples(struct writer *w)
{
	const struct pprof_source *s = w->source;
	size_t n = pprof_source__n_sums(s, w->only);
	uint32_t deepest = 0;
	uint64_t *ids;

	for (size_t i = 0; i < n; i++)
		deepest = MAX(deepest,
			      picture__stack(w->pic, pprof_source__sum(s, w->only, i)->stack).n);
	ids = calloc((size_t)deepest + 1, sizeof(*ids));
	if (!ids)
		return -ENOMEM;
	for (size_t i = 0; i < n && !packed__error(w->packed); i++)
		put_sample(w, pprof_source__sum(s, w->only, i), ids);
	free(ids);
	return 0;
}

static void put_locations(struct writer *w, const struct numbers *used)
{
	for (size_t i = 0; i < used->n; i++)
		put_location(w, used->v[i]);
}

/* ── the census ──────────────────────────────────────────────────────────────────────────── */

static void put_closure(struct writer *w, uint32_t target, const struct pic_closure *closure,
			uint64_t id)
{
	const struct sum sum = {.owner = ((uint32_t)w->source->views.n + target) * LANE_STATES};
	Pprof__Location location = PPROF__LOCATION__INIT;
	Pprof__Function function = PPROF__FUNCTION__INIT;
	int64_t v[ARRAY_SIZE(values)] = {0};

	function.name = string_of(w, closure->name);
	function.filename = string_of(w, closure->module);
	put_code(w, id, location, function, 0);
	for (size_t k = 0; k < w->n_values; k++)
		v[k] = values[w->value[k]].of == CENSUS_COUNT	? (int64_t)closure->count
		       : values[w->value[k]].of == CENSUS_BYTES ? (int64_t)closure->bytes
								: 0;
	put_values(w, &(struct whose){.sum = &sum, .few = ""}, v, &id, 1);
}

/* Closure types are numbered after the frames' locations, of which there are n. */
static void put_censuses(struct writer *w, size_t n)
{
	uint64_t id = n;

	for (uint32_t t = 0; t < picture__n_targets(w->pic); t++) {
		const struct pic_census *census = &picture__target(w->pic, t)->census;

		for (size_t i = 0; is_wanted(w, t) && i < census->n; i++)
			put_closure(w, t, &census->v[i], ++id);
	}
}

/* Comes last, when all strings are known. */
static void put_strings(struct writer *w)
{
	for (uint32_t i = 0; i < strtab__count(w->strings); i++) {
		Pprof__Profile piece = PPROF__PROFILE__INIT;
		char *one = (char *)strtab__get(w->strings, i);

		piece.n_string_table = 1;
		piece.string_table = &one;
		put(w, &piece);
	}
}

/* ── the file ────────────────────────────────────────────────────────────────────────────── */

static void choose_values(struct writer *w)
{
	bool alloc = false, census = false;

	for (size_t i = 0; i < picture__n_targets(w->pic); i++) {
		alloc |= picture__target(w->pic, i)->alloc.known;
		census |= picture__target(w->pic, i)->census.at_ns != 0;
	}
	for (size_t k = 0; k < ARRAY_SIZE(values); k++)
		if (values[k].of <= SAFE_CALLS || (values[k].of == ALLOCATION ? alloc : census))
			w->value[w->n_values++] = (uint8_t)k;
}

static int put_all(struct writer *w, enum export_weight weight)
{
	struct numbers locations = {0}, binaries = {0};
	int err = pprof_source__used(w->source, w->only, &locations, &binaries);

	if (err)
		return err;
	choose_values(w);
	put_head(w, weight);
	put_mappings(w, &binaries);
	put_locations(w, &locations);
	free(locations.v);
	free(binaries.v);
	err = put_samples(w);
	put_censuses(w, locations.n);
	put_strings(w);
	if (!err)
		err = w->err;
	return err ? err : packed__finish(w->packed);
}

int export_pprof__write_any(FILE *out, struct pprof_source *source, const struct export_opts *opts,
			    bool *ret_any)
{
	struct writer *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return -ENOMEM;
	w->source = source;
	w->pic = source->pic;
	w->only = opts->target - 1;
	w->for_pyroscope = opts->for_pyroscope;
	err = packed__new(out, &w->packed);
	if (!err)
		err = strtab__new(&w->strings);
	if (!err)
		err = put_all(w, opts->weight);
	packed__free(w->packed);
	strtab__free(w->strings);
	err = export__result(out, err);
	if (!err && ret_any)
		*ret_any = w->any;
	free(w);
	return err;
}

int pprof__write(FILE *out, const struct picture *pic, const struct export_opts *opts)
{
	struct pprof_source *source = NULL;
	int err = export_pprof__gather(pic, &source);

	if (!err)
		err = export_pprof__write_any(out, source, opts, NULL);
	export_pprof__free(source);
	return err;
}
