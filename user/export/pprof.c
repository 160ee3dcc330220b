/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pprof (profile.proto, gzipped), for `go tool pprof` and what reads its files. A sample is a stack
 * of one thread, with its samples, its time on the CPU and its wall time; idle time is left out.
 *
 * Protobuf messages may be written in pieces, which their reader puts together: each sample,
 * location and string is a piece, and no more than one is in memory at a time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "pprof.pb-c.h"
#include "view.h"

/* ── gzip ────────────────────────────────────────────────────────────────────────────────── */

struct zipped {
	ProtobufCBuffer base; /* first: what protobuf-c appends to */
	FILE *out;
	z_stream stream;
	int err;
	uint8_t room[16384];
};

static void deflate_all(struct zipped *z, const uint8_t *data, size_t len, int flush)
{
	int done = Z_OK;

	z->stream.next_in = (uint8_t *)data;
	z->stream.avail_in = (uInt)len;
	while (!z->err) {
		size_t n;

		z->stream.next_out = z->room;
		z->stream.avail_out = sizeof(z->room);
		done = deflate(&z->stream, flush);
		n = sizeof(z->room) - z->stream.avail_out;
		if (done == Z_STREAM_ERROR || fwrite(z->room, 1, n, z->out) != n)
			z->err = -EIO;
		if (z->stream.avail_out && (flush != Z_FINISH || done == Z_STREAM_END))
			return;
	}
}

static void append(ProtobufCBuffer *buffer, size_t len, const uint8_t *data)
{
	deflate_all((struct zipped *)buffer, data, len, Z_NO_FLUSH);
}

/* ── what is added up ────────────────────────────────────────────────────────────────────── */

enum { VALUE_SAMPLES, VALUE_CPU, VALUE_WALL, VALUES };

static const enum export_weight value_weights[VALUES] = {
	[VALUE_SAMPLES] = WEIGHT_SAMPLES,
	[VALUE_CPU] = WEIGHT_CPU,
	[VALUE_WALL] = WEIGHT_WALL,
};

struct entry {
	uint32_t view, stack;
	int64_t values[VALUES];
};

struct writer {
	struct zipped zipped;
	const struct timeline *tl;
	struct views views;
	struct strtab *strings;
	struct entry *entries;
	size_t n, cap;
	uint32_t *map; /* of a timeline's frame: its location, from 0 */
	uint32_t n_locations;
	int err;
};

static int64_t string_of(struct writer *w, const char *s)
{
	char *clean = utf8__clean(s ? s : "");
	uint32_t id = 0;
	int err = clean ? strtab__add(w->strings, clean, MIN(strlen(clean), STRTAB_MAX_STRING), &id)
			: -ENOMEM;

	free(clean);
	if (err && !w->err)
		w->err = err;
	return id;
}

static int by_stack(const void *pa, const void *pb)
{
	const struct entry *a = pa, *b = pb;

	if (a->view != b->view)
		return a->view < b->view ? -1 : 1;
	return (a->stack > b->stack) - (a->stack < b->stack);
}

static void merge(struct writer *w)
{
	size_t kept = 0;

	if (!w->n)
		return;
	qsort(w->entries, w->n, sizeof(*w->entries), by_stack);
	for (size_t i = 1; i < w->n; i++) {
		if (by_stack(&w->entries[kept], &w->entries[i])) {
			w->entries[++kept] = w->entries[i];
			continue;
		}
		for (int k = 0; k < VALUES; k++)
			w->entries[kept].values[k] += w->entries[i].values[k];
	}
	w->n = kept + 1;
}

static int add_row(struct writer *w, uint32_t view, const struct ledger_row *row)
{
	struct entry entry = {.view = view, .stack = row->stack};

	for (int k = 0; k < VALUES; k++)
		entry.values[k] = (int64_t)view__weight(&w->views.v[view], row, value_weights[k]);
	if ((!entry.values[VALUE_SAMPLES] && !entry.values[VALUE_WALL]) ||
	    (!timeline__stack(w->tl, row->stack).n && !row->samples))
		return 0;
	if (w->n == w->cap) {
		int err;

		merge(w);
		err = array__reserve((void **)&w->entries, &w->cap, MAX(w->n * 2, (size_t)256),
				     EXPORT_MAX_ENTRIES, sizeof(*w->entries));
		if (err)
			return err;
	}
	w->entries[w->n++] = entry;
	return 0;
}

/* OS threads; of a log alone, which knows of none but in annotated calls, capabilities too. */
static int collect(struct writer *w)
{
	int err = views__collect(w->tl, 0, &w->views);

	for (size_t i = 0; !err && i < w->views.n; i++) {
		const struct lane_view *view = &w->views.v[i];
		const struct ledger_row *rows;
		size_t n;

		if (view->kind == LANE_HASKELL ||
		    (view->kind == LANE_CAPABILITY && view->target->n_lanes &&
		     !session__log_alone(w->tl)))
			continue;
		rows = view__rows(view, &n);
		for (size_t k = 0; !err && k < n; k++)
			err = add_row(w, (uint32_t)i, &rows[k]);
	}
	merge(w);
	return err;
}

/* ── pieces ──────────────────────────────────────────────────────────────────────────────── */

static void put(struct writer *w, const Pprof__Profile *piece)
{
	pprof__profile__pack_to_buffer(piece, &w->zipped.base);
}

static void put_head(struct writer *w, enum export_weight weight)
{
	static const char *const types[VALUES][2] = {[VALUE_SAMPLES] = {"samples", "count"},
						     [VALUE_CPU] = {"cpu", "nanoseconds"},
						     [VALUE_WALL] = {"wall", "nanoseconds"}};
	static const int by_default[] = {[WEIGHT_WALL] = VALUE_WALL,
					 [WEIGHT_CPU] = VALUE_CPU,
					 [WEIGHT_SAMPLES] = VALUE_SAMPLES};
	const struct tl_session *session = timeline__session(w->tl);
	Pprof__Profile head = PPROF__PROFILE__INIT;
	Pprof__ValueType type[VALUES], *all[VALUES];
	char comment[128];
	int64_t comment_id;

	for (int i = 0; i < VALUES; i++) {
		pprof__value_type__init(&type[i]);
		type[i].type = string_of(w, types[i][0]);
		type[i].unit = string_of(w, types[i][1]);
		all[i] = &type[i];
	}
	snprintf(comment, sizeof(comment), "safescoped %s, %s", session->version, session->mode);
	comment_id = string_of(w, comment);
	head.n_sample_type = VALUES;
	head.sample_type = all;
	head.default_sample_type = type[by_default[weight]].type;
	head.time_nanos = (int64_t)session->start_unix_ns;
	head.duration_nanos = (int64_t)(session->end_ns - session->start_ns);
	if (session->frequency_hz) {
		head.period_type = &type[VALUE_CPU];
		head.period = 1000000000 / session->frequency_hz;
	}
	head.n_comment = 1;
	head.comment = &comment_id;
	put(w, &head);
}

static void put_mappings(struct writer *w)
{
	for (size_t i = 0; i < timeline__n_targets(w->tl); i++) {
		const struct tl_target *target = timeline__target(w->tl, i);
		Pprof__Profile piece = PPROF__PROFILE__INIT;
		Pprof__Mapping mapping = PPROF__MAPPING__INIT, *one = &mapping;

		mapping.id = i + 1;
		mapping.filename = string_of(w, target->exe);
		mapping.build_id = string_of(w, target->build_id);
		mapping.has_functions = true;
		piece.n_mapping = 1;
		piece.mapping = &one;
		put(w, &piece);
	}
}

/* "src/Data/Fib.hs:7" → "src/Data/Fib.hs", 7 */
static int64_t split_src(struct writer *w, const char *src, int64_t *ret_line)
{
	const char *colon = src ? strrchr(src, ':') : NULL;
	char *end, file[4096];
	long line;

	*ret_line = 0;
	if (!colon || colon[1] < '0' || colon[1] > '9')
		return string_of(w, src);
	line = strtol(colon + 1, &end, 10);
	if (*end || line < 0 || line > INT32_MAX || (size_t)(colon - src) >= sizeof(file))
		return string_of(w, src);
	snprintf(file, sizeof(file), "%.*s", (int)(colon - src), src);
	*ret_line = line;
	return string_of(w, file);
}

static void put_location(struct writer *w, uint32_t index, uint32_t number)
{
	const struct tl_frame *frame = timeline__frame(w->tl, index);
	Pprof__Profile piece = PPROF__PROFILE__INIT;
	Pprof__Location location = PPROF__LOCATION__INIT, *one_location = &location;
	Pprof__Function function = PPROF__FUNCTION__INIT, *one_function = &function;
	Pprof__Line line = PPROF__LINE__INIT, *one_line = &line;

	function.id = location.id = line.function_id = (uint64_t)number + 1;
	function.name = string_of(w, frame->name && *frame->name ? frame->name : "[unknown]");
	function.system_name = function.name;
	function.filename = frame->src && *frame->src ? split_src(w, frame->src, &line.line)
						      : string_of(w, frame->file);
	location.n_line = 1;
	location.line = &one_line;
	/* one process: its executable stands for all that it maps */
	location.mapping_id = timeline__n_targets(w->tl) == 1;
	piece.n_location = 1;
	piece.location = &one_location;
	piece.n_function = 1;
	piece.function = &one_function;
	put(w, &piece);
}

/* Equal in all that the file shows. */
static int cmp_frames(uint32_t a, uint32_t b, void *ctx)
{
	const struct tl_frame *x = timeline__frame(ctx, a), *y = timeline__frame(ctx, b);
	int diff = strcmp(x->name ? x->name : "", y->name ? y->name : "");

	if (!diff)
		diff = strcmp(x->src ? x->src : "", y->src ? y->src : "");
	return diff ? diff : strcmp(x->file ? x->file : "", y->file ? y->file : "");
}

static void label_text(struct writer *w, Pprof__Label *label, const char *key, const char *text)
{
	pprof__label__init(label);
	label->key = string_of(w, key);
	label->str = string_of(w, text);
}

static void label_number(struct writer *w, Pprof__Label *label, const char *key, int64_t n)
{
	pprof__label__init(label);
	label->key = string_of(w, key);
	label->num = n;
}

static void put_sample(struct writer *w, const struct entry *entry, uint64_t *ids)
{
	const struct lane_view *view = &w->views.v[entry->view];
	struct tl_stack stack = timeline__stack(w->tl, entry->stack);
	Pprof__Profile piece = PPROF__PROFILE__INIT;
	Pprof__Sample sample = PPROF__SAMPLE__INIT, *one = &sample;
	Pprof__Label labels[4], *all[4];
	char name[224];

	for (uint32_t i = 0; i < stack.n; i++)
		ids[i] = (uint64_t)w->map[stack.frames[stack.n - 1 - i]] + 1;
	view__name(view, false, name, sizeof(name));
	label_text(w, &labels[0], "process", view->target->comm);
	label_number(w, &labels[1], "process_id", view->target->pid);
	if (view->kind == LANE_THREAD) {
		snprintf(name, sizeof(name), "%.16s", view->thread->name);
		label_text(w, &labels[2], "thread", name);
		label_number(w, &labels[3], "thread_id", view->thread->tid);
	} else {
		label_text(w, &labels[2], "thread", name);
		label_number(w, &labels[3], "capability", view->cap->no);
	}
	for (size_t i = 0; i < ARRAY_SIZE(labels); i++)
		all[i] = &labels[i];
	sample.n_location_id = stack.n;
	sample.location_id = ids;
	sample.n_value = VALUES;
	sample.value = (int64_t *)entry->values;
	sample.n_label = ARRAY_SIZE(labels);
	sample.label = all;
	piece.n_sample = 1;
	piece.sample = &one;
	put(w, &piece);
}

static int put_samples(struct writer *w)
{
	uint32_t deepest = 0;
	uint64_t *ids;

	for (size_t i = 0; i < w->n; i++)
		deepest = MAX(deepest, timeline__stack(w->tl, w->entries[i].stack).n);
	ids = calloc((size_t)deepest + 1, sizeof(*ids));
	if (!ids)
		return -ENOMEM;
	for (size_t i = 0; i < w->n && !w->zipped.err; i++)
		put_sample(w, &w->entries[i], ids);
	free(ids);
	return 0;
}

/* All others have put theirs by now. */
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

static int put_all(struct writer *w, enum export_weight weight)
{
	int err = collect(w);

	if (!err)
		err = frames__number(timeline__n_frames(w->tl), cmp_frames, (void *)w->tl, true,
				     &w->map, &w->n_locations);
	if (err)
		return err;
	put_head(w, weight);
	put_mappings(w);
	for (uint32_t i = 0, next = 0; i < timeline__n_frames(w->tl); i++)
		/* numbered in order of first use, so a new number is always the next one */
		if (w->map[i] == next)
			put_location(w, i, next++);
	err = put_samples(w);
	put_strings(w);
	deflate_all(&w->zipped, NULL, 0, Z_FINISH);
	return err ? err : w->err ? w->err : w->zipped.err;
}

static int pprof__write(FILE *out, const struct timeline *tl, const struct export_opts *opts)
{
	struct writer *w;
	int err;

	if (!timeline__session(tl))
		return -EINVAL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->tl = tl;
	w->zipped.base.append = append;
	w->zipped.out = out;
	/* 16 more than the window's bits: gzip's header, without a name or a time */
	err = deflateInit2(&w->zipped.stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8,
			   Z_DEFAULT_STRATEGY) == Z_OK
		      ? strtab__new(&w->strings)
		      : -ENOMEM;
	if (!err)
		err = put_all(w, opts ? opts->weight : WEIGHT_WALL);
	deflateEnd(&w->zipped.stream);
	views__free(&w->views);
	strtab__free(w->strings);
	free(w->entries);
	free(w->map);
	free(w);
	if (!err && ferror(out))
		err = -EIO;
	return err;
}

const struct export_format export_pprof = {
	.name = "pprof",
	.suffix = ".pb.gz",
	.write = pprof__write,
};
