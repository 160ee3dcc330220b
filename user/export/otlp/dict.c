/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "dict.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "libraries.h"

/* ── places by what they have ────────────────────────────────────────────────────────────── */

struct key {
	uint64_t a, b;
};

struct known {
	UT_hash_handle hh;
	struct key key;
	int32_t place;
};

/* The entries of one table, by their keys; v holds them, place 0 included. */
struct places {
	struct known *hash;
	void *v;
	size_t n, cap;
};

struct attribute {
	int32_t key, text;
	int64_t number;
	bool is_text;
};

struct mapping {
	int32_t path, build_id; /* build_id: an attribute */
};

struct function {
	int32_t name, file;
};

struct location {
	int32_t mapping, function, type; /* type: an attribute */
	int64_t line;
};

/* A stack's locations are a slice of `frames`. */
struct stack {
	size_t at;
	uint32_t n;
};

struct dict {
	const struct picture *pic;
	struct libraries *libraries;
	struct strtab *strings, *texts; /* texts: values of attributes, which are not indices */
	struct places attributes, mappings, functions, locations, stacks;
	int32_t *frames;
	size_t n_frames, cap_frames;
	uint64_t string_bytes;
	void *messages[16]; /* the arrays that the message points to */
	size_t n_messages;
	int err;
};

static int32_t failed(struct dict *d, int err)
{
	if (!d->err)
		d->err = err;
	return 0;
}

static bool is_known(const struct places *t, struct key key, int32_t *ret_place)
{
	struct known *known;

	HASH_FIND(hh, t->hash, &key, sizeof(key), known);
	if (known)
		*ret_place = known->place;
	return known != NULL;
}

/* Records that the entry at `place` also has that key. */
static int remember(struct places *t, struct key key, int32_t place)
{
	struct known *known = calloc(1, sizeof(*known));

	if (!known)
		return -ENOMEM;
	known->key = key;
	known->place = place;
	return HASH_INSERT(t->hash, key, sizeof(known->key), known);
}

/* Finds or adds an entry. True: it exists, or (*ret_place 0) could not be added. False: it was
 * added at *ret_place, and the caller fills it in. */
static bool find(struct dict *d, struct places *t, struct key key, size_t size, int32_t *ret_place)
{
	int err;

	if (is_known(t, key, ret_place))
		return true;
	*ret_place = 0;
	err = array__reserve(&t->v, &t->cap, t->n + 1, EXPORT_MAX_ENTRIES, size);
	if (!err)
		err = remember(t, key, (int32_t)t->n);
	if (err) {
		failed(d, err);
		return true;
	}
	*ret_place = (int32_t)t->n++;
	return false;
}

/* Adds place 0 of a table. */
static int add_zero(struct places *t, size_t size)
{
	int err = array__reserve(&t->v, &t->cap, 1, EXPORT_MAX_ENTRIES, size);

	if (!err) {
		memset(t->v, 0, size);
		t->n = 1;
	}
	return err;
}

static void free_places(struct places *t)
{
	HASH_FREE(t->hash);
	free(t->v);
}

/* The maximum sizes of entries in the message: a number takes one byte plus up to five, an embedded
 * message two more, a string its length as well. */
#define STRING_BYTES	5
#define ATTRIBUTE_BYTES 24
#define MAPPING_BYTES	16
#define FUNCTION_BYTES	20
#define LOCATION_BYTES	40
#define STACK_BYTES	12
#define FRAME_BYTES	5

uint64_t dict__bytes(const struct dict *d)
{
	return d->string_bytes + (uint64_t)d->attributes.n * ATTRIBUTE_BYTES +
	       (uint64_t)d->mappings.n * MAPPING_BYTES + (uint64_t)d->functions.n * FUNCTION_BYTES +
	       (uint64_t)d->locations.n * LOCATION_BYTES + (uint64_t)d->stacks.n * STACK_BYTES +
	       (uint64_t)d->n_frames * FRAME_BYTES;
}

/* ── strings and attributes ──────────────────────────────────────────────────────────────── */

static int32_t add_string(struct dict *d, struct strtab *tab, const char *s)
{
	uint32_t id, before = strtab__count(tab);
	int err = strtab__add_escaped(tab, s, &id);

	if (strtab__count(tab) > before)
		d->string_bytes += strlen(strtab__get(tab, id)) + STRING_BYTES;
	return err ? failed(d, err) : (int32_t)id;
}

int32_t dict__string(struct dict *d, const char *s)
{
	return add_string(d, d->strings, s);
}

static int32_t add_attribute(struct dict *d, const struct attribute *a)
{
	const struct key key = {.a = (uint64_t)(uint32_t)a->key << 1 | a->is_text,
				.b = a->is_text ? (uint64_t)a->text : (uint64_t)a->number};
	int32_t place;

	if (!find(d, &d->attributes, key, sizeof(*a), &place))
		((struct attribute *)d->attributes.v)[place] = *a;
	return place;
}

int32_t dict__text(struct dict *d, const char *key, const char *value)
{
	const struct attribute a = {.key = dict__string(d, key),
				    .text = add_string(d, d->texts, value),
				    .is_text = true};

	return add_attribute(d, &a);
}

int32_t dict__number(struct dict *d, const char *key, int64_t value)
{
	const struct attribute a = {.key = dict__string(d, key), .number = value};

	return add_attribute(d, &a);
}

/* ── code ────────────────────────────────────────────────────────────────────────────────── */

int32_t dict__mapping(struct dict *d, const char *path, const char *build_id)
{
	const char *name = "process.executable.build_id.gnu";
	struct mapping m;
	struct key key;
	int32_t place;

	if (!*or_empty(path))
		return 0;
	m.path = dict__string(d, path);
	m.build_id = *or_empty(build_id) ? dict__text(d, name, build_id) : 0;
	key = (struct key){.a = (uint64_t)m.path, .b = (uint64_t)m.build_id};
	if (!find(d, &d->mappings, key, sizeof(m), &place))
		((struct mapping *)d->mappings.v)[place] = m;
	return place;
}

/* Of OTLP's well-known values, "native" and "kernel" fit; there is none for Haskell, and none for a
 * frame that is not code. */
static const char *type_of(const struct pic_frame *frame)
{
	switch (frame->kind) {
	case TF_HASKELL:
		return "haskell";
	case TF_FOREIGN:
	case TF_RTS:
	case TF_GC:
		return "native";
	case TF_KERNEL:
		return "kernel";
	case TF_STATE:
	case TF_MARK:
		break;
	}
	return "synthetic";
}

/*
 * The mapping of the library that the frame's code was seen in. Several programs may have a frame
 * of that name, and then it is the process's own. If no place was seen and the frame has no module,
 * its `file` is the base name of the library or program that the code is from.
 */
static int32_t mapping_of(struct dict *d, uint32_t index, int32_t mapping, const char *exe)
{
	const struct pic_frame *frame = picture__frame(d->pic, index);
	const struct pic_place *seen = picture__place(d->pic, index);
	bool native = frame->kind == TF_FOREIGN || frame->kind == TF_RTS || frame->kind == TF_GC;

	if (frame->kind != TF_HASKELL && !native)
		return 0;
	if (seen && libraries__is_one(seen->path))
		return dict__mapping(d, seen->path, seen->build_id);
	if (!native || *or_empty(frame->module) || !*or_empty(frame->file) ||
	    !strcmp(frame->file, exe))
		return mapping;
	if (!libraries__is_one(frame->file))
		return mapping;
	seen = libraries__find(d->libraries, frame->file);
	return seen ? dict__mapping(d, seen->path, seen->build_id)
		    : dict__mapping(d, frame->file, "");
}

static int32_t function_of(struct dict *d, const struct pic_frame *frame, int64_t *ret_line)
{
	size_t len;
	char *file;
	struct function f = {.name = dict__string(d, frame__name(frame))};
	struct key key;
	int32_t place;

	*ret_line = src__line(frame->src, &len);
	file = len ? strndup(frame->src, len) : strdup(or_empty(frame->file));
	if (!file)
		return failed(d, -ENOMEM);
	f.file = dict__string(d, file);
	free(file);
	key = (struct key){.a = (uint64_t)f.name, .b = (uint64_t)f.file};
	if (!find(d, &d->functions, key, sizeof(f), &place))
		((struct function *)d->functions.v)[place] = f;
	return place;
}

/* In a key instead of the executable's mapping: the entry is the same for all processes. */
#define SHARED ((uint64_t)1 << 32)

static int32_t location_of(struct dict *d, uint32_t index, int32_t mapping, const char *exe)
{
	const struct pic_frame *frame = picture__frame(d->pic, index);
	const struct key asked = {.a = index, .b = (uint64_t)mapping};
	struct location l;
	struct key key;
	int32_t place;
	int err;

	if (!frame)
		return 0;
	if (is_known(&d->locations, asked, &place))
		return place;
	l.mapping = mapping_of(d, index, mapping, exe);
	key = (struct key){.a = index, .b = SHARED | (uint64_t)l.mapping};
	if (!find(d, &d->locations, key, sizeof(l), &place)) {
		l.function = function_of(d, frame, &l.line);
		l.type = dict__text(d, "profile.frame.type", type_of(frame));
		((struct location *)d->locations.v)[place] = l;
	}
	err = remember(&d->locations, asked, place);
	return err ? failed(d, err) : place;
}

/* Appends the stack's locations; *ret_own: one of them is in the executable. */
static int add_frames(struct dict *d, const struct pic_stack *frames, int32_t mapping,
		      const char *exe, bool *ret_own)
{
	int err = ARRAY_RESERVE(d->frames, d->cap_frames, d->n_frames + frames->n,
				EXPORT_MAX_ENTRIES);

	if (err)
		return err;
	*ret_own = false;
	for (uint32_t i = frames->n; i-- > 0;) {
		int32_t at = location_of(d, frames->frames[i], mapping, exe);

		d->frames[d->n_frames++] = at;
		*ret_own |= mapping && ((struct location *)d->locations.v)[at].mapping == mapping;
	}
	return 0;
}

int32_t dict__stack(struct dict *d, uint32_t stack, int32_t mapping, const char *exe)
{
	const struct pic_stack frames = picture__stack(d->pic, stack);
	const struct key asked = {.a = stack, .b = (uint64_t)mapping};
	const size_t at = d->n_frames;
	struct key key = asked;
	int32_t place;
	bool own;
	int err;

	if (!frames.n || is_known(&d->stacks, asked, &place))
		return frames.n ? place : 0;
	err = add_frames(d, &frames, mapping, exe, &own);
	if (err)
		return failed(d, err);
	if (!own)
		key.b = SHARED;
	if (find(d, &d->stacks, key, sizeof(struct stack), &place))
		d->n_frames = at;
	else
		((struct stack *)d->stacks.v)[place] = (struct stack){at, frames.n};
	err = own ? 0 : remember(&d->stacks, asked, place);
	return err ? failed(d, err) : place;
}

/* ── the message ─────────────────────────────────────────────────────────────────────────── */

/* Returns a zeroed array, freed with the dictionary; NULL on allocation failure. */
static void *new_array(struct dict *d, size_t n, size_t size)
{
	void *v = d->n_messages < ARRAY_SIZE(d->messages) ? calloc(n + 1, size) : NULL;

	if (v)
		d->messages[d->n_messages++] = v;
	else
		failed(d, -ENOMEM);
	return v;
}

/*
 * Allocates a table's messages and the array of pointers to them that protobuf-c wants in one
 * block: TYPE **, then the TYPEs. NULL on allocation failure.
 */
#define NEW_MESSAGES(d, table, type)                                                               \
	((type **)new_array(d, (table)->n, sizeof(type *) + sizeof(type)))
#define MESSAGES_OF(pointers, table, type) ((type *)((pointers) + (table)->n + 1))

static int put_attributes(struct dict *d, Otlp__ProfilesDictionary *m)
{
	const struct attribute *v = d->attributes.v;
	Otlp__KeyValueAndUnit **all = NEW_MESSAGES(d, &d->attributes, Otlp__KeyValueAndUnit);
	Otlp__AnyValue *values = new_array(d, d->attributes.n, sizeof(*values));

	if (!all || !values)
		return d->err;
	for (size_t i = 0; i < d->attributes.n; i++) {
		Otlp__KeyValueAndUnit *one =
			&MESSAGES_OF(all, &d->attributes, Otlp__KeyValueAndUnit)[i];

		otlp__key_value_and_unit__init(one);
		all[i] = one;
		if (!i)
			continue;
		otlp__any_value__init(&values[i]);
		one->key_strindex = v[i].key;
		one->value = &values[i];
		if (v[i].is_text) {
			values[i].value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
			values[i].string_value = (char *)strtab__get(d->texts, (uint32_t)v[i].text);
		} else {
			values[i].value_case = OTLP__ANY_VALUE__VALUE_INT_VALUE;
			values[i].int_value = v[i].number;
		}
	}
	m->attribute_table = all;
	m->n_attribute_table = d->attributes.n;
	return 0;
}

static int put_mappings(struct dict *d, Otlp__ProfilesDictionary *m)
{
	struct mapping *v = d->mappings.v;
	Otlp__Mapping **all = NEW_MESSAGES(d, &d->mappings, Otlp__Mapping);

	if (!all)
		return d->err;
	for (size_t i = 0; i < d->mappings.n; i++) {
		Otlp__Mapping *one = &MESSAGES_OF(all, &d->mappings, Otlp__Mapping)[i];

		otlp__mapping__init(one);
		one->filename_strindex = v[i].path;
		one->attribute_indices = &v[i].build_id;
		one->n_attribute_indices = v[i].build_id != 0;
		all[i] = one;
	}
	m->mapping_table = all;
	m->n_mapping_table = d->mappings.n;
	return 0;
}

static int put_functions(struct dict *d, Otlp__ProfilesDictionary *m)
{
	const struct function *v = d->functions.v;
	Otlp__Function **all = NEW_MESSAGES(d, &d->functions, Otlp__Function);

	if (!all)
		return d->err;
	for (size_t i = 0; i < d->functions.n; i++) {
		Otlp__Function *one = &MESSAGES_OF(all, &d->functions, Otlp__Function)[i];

		otlp__function__init(one);
		one->name_strindex = one->system_name_strindex = v[i].name;
		one->filename_strindex = v[i].file;
		all[i] = one;
	}
	m->function_table = all;
	m->n_function_table = d->functions.n;
	return 0;
}

static int put_locations(struct dict *d, Otlp__ProfilesDictionary *m)
{
	struct location *v = d->locations.v;
	Otlp__Location **all = NEW_MESSAGES(d, &d->locations, Otlp__Location);
	Otlp__Line **lines = NEW_MESSAGES(d, &d->locations, Otlp__Line);

	if (!all || !lines)
		return d->err;
	for (size_t i = 0; i < d->locations.n; i++) {
		Otlp__Location *one = &MESSAGES_OF(all, &d->locations, Otlp__Location)[i];

		otlp__location__init(one);
		all[i] = one;
		if (!i)
			continue;
		lines[i] = &MESSAGES_OF(lines, &d->locations, Otlp__Line)[i];
		otlp__line__init(lines[i]);
		lines[i]->function_index = v[i].function;
		lines[i]->line = v[i].line;
		one->mapping_index = v[i].mapping;
		one->lines = &lines[i];
		one->n_lines = 1;
		one->attribute_indices = &v[i].type;
		one->n_attribute_indices = 1;
	}
	m->location_table = all;
	m->n_location_table = d->locations.n;
	return 0;
}

static int put_stacks(struct dict *d, Otlp__ProfilesDictionary *m)
{
	const struct stack *v = d->stacks.v;
	Otlp__Stack **all = NEW_MESSAGES(d, &d->stacks, Otlp__Stack);

	if (!all)
		return d->err;
	for (size_t i = 0; i < d->stacks.n; i++) {
		Otlp__Stack *one = &MESSAGES_OF(all, &d->stacks, Otlp__Stack)[i];

		otlp__stack__init(one);
		one->location_indices = v[i].n ? d->frames + v[i].at : NULL;
		one->n_location_indices = v[i].n;
		all[i] = one;
	}
	m->stack_table = all;
	m->n_stack_table = d->stacks.n;
	return 0;
}

/* Must come after everything that adds strings. */
static int put_strings(struct dict *d, Otlp__ProfilesDictionary *m)
{
	uint32_t n = strtab__count(d->strings);
	char **all = new_array(d, n, sizeof(*all));

	if (!all)
		return d->err;
	for (uint32_t i = 0; i < n; i++)
		all[i] = (char *)strtab__get(d->strings, i);
	m->string_table = all;
	m->n_string_table = n;
	return 0;
}

static int put_no_links(struct dict *d, Otlp__ProfilesDictionary *m)
{
	Otlp__Link **all = new_array(d, 1, sizeof(*all));
	Otlp__Link *zero = new_array(d, 1, sizeof(*zero));

	if (!all || !zero)
		return d->err;
	otlp__link__init(zero);
	all[0] = zero;
	m->link_table = all;
	m->n_link_table = 1;
	return 0;
}

int dict__message(struct dict *d, Otlp__ProfilesDictionary *ret_message)
{
	static int (*const puts[])(struct dict * d, Otlp__ProfilesDictionary * m) = {
		put_attributes, put_mappings, put_functions, put_locations,
		put_stacks,	put_strings,  put_no_links,
	};
	Otlp__ProfilesDictionary m = OTLP__PROFILES_DICTIONARY__INIT;
	int err = d->err;

	for (size_t i = 0; i < ARRAY_SIZE(puts) && !err; i++)
		err = puts[i](d, &m);
	if (!err)
		*ret_message = m;
	return err;
}

/* ── life ────────────────────────────────────────────────────────────────────────────────── */

int dict__new(const struct picture *pic, struct dict **ret_dict)
{
	struct dict *d = calloc(1, sizeof(*d));
	int err;

	if (!d)
		return -ENOMEM;
	d->pic = pic;
	err = libraries__new(pic, &d->libraries);
	if (!err)
		err = strtab__new(&d->strings);
	if (!err)
		err = strtab__new(&d->texts);
	if (!err)
		err = add_zero(&d->attributes, sizeof(struct attribute));
	if (!err)
		err = add_zero(&d->mappings, sizeof(struct mapping));
	if (!err)
		err = add_zero(&d->functions, sizeof(struct function));
	if (!err)
		err = add_zero(&d->locations, sizeof(struct location));
	if (!err)
		err = add_zero(&d->stacks, sizeof(struct stack));
	if (err) {
		dict__free(d);
		return err;
	}
	*ret_dict = d;
	return 0;
}

void dict__free(struct dict *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->n_messages; i++)
		free(d->messages[i]);
	free_places(&d->attributes);
	free_places(&d->mappings);
	free_places(&d->functions);
	free_places(&d->locations);
	free_places(&d->stacks);
	free(d->frames);
	libraries__free(d->libraries);
	strtab__free(d->strings);
	strtab__free(d->texts);
	free(d);
}

int dict__error(const struct dict *d)
{
	return d->err;
}
