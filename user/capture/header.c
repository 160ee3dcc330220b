/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The header line of a capture: JSON, with 64-bit numbers as strings. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "codec_priv.h"

/* The sizes of the structs in records and in the kernel's maps: other sizes mean other records. A
 * capture without the `newer` ones may be older than these. */
static const struct {
	const char *name;
	uint32_t size;
	bool newer;
	uint32_t least; /* size in the oldest captures, without what was added at its end; 0: as now
			 */
} sizes[] = {
	{"hdr", sizeof(struct wire_hdr), false, 0},
	{"rts", sizeof(struct wire_rts), false, 0},
	{"stack", sizeof(struct wire_stack), false, 0},
	{"sample", sizeof(struct wire_sample), false, 0},
	{"off", sizeof(struct wire_off), false, 0},
	{"call", sizeof(struct wire_call), false, 0},
	{"tick", sizeof(struct wire_tick), false, 0},
	{"tick_cap", sizeof(struct wire_tick_cap), false, 0},
	{"thread_event", sizeof(struct wire_thread_event), false, 0},
	{"gc", sizeof(struct wire_gc), false, 0},
	{"site_key", sizeof(struct wire_site_key), false, 0},
	{"site", sizeof(struct wire_site), false, offsetof(struct wire_site, exit_wall_ns)},
	{"thread", sizeof(struct wire_thread), false, 0},
	{"off_stack", sizeof(struct wire_off_stack), false, 0},
	{"target", sizeof(struct wire_target), false, 0},
	{"cost", sizeof(struct intake_cost), false, offsetof(struct intake_cost, held_up_until_ns)},
	{"alloc", sizeof(struct wire_alloc), true, 0},
	{"heap", sizeof(struct wire_heap), true, 0},
	{"allocated", sizeof(struct wire_allocated), true, 0},
	{"census", sizeof(struct target_census), true, 0},
	{"living_thread", sizeof(struct target_living_thread), true, 0},
};

/* A session's options; `max` bounds the memory that they take. */
static const struct {
	const char *name;
	size_t at, size;
	uint64_t max;
} options[] = {
#define OPTION(member, most)                                                                       \
	{                                                                                          \
#member, offsetof(struct timeline_opts, member),                                   \
			sizeof(((struct timeline_opts *)NULL)->member), most                       \
	}
	OPTION(max_depth, 65536),
	OPTION(frequency_hz, 1000000),
	OPTION(plumbing, 1),
	OPTION(stacks, STACKS_BOTH),
	OPTION(max_slices, 1u << 22),
	OPTION(max_records, 1u << 23),
	OPTION(max_stacks, 1u << 22),
	OPTION(start_ns, UINT64_C(1) << 62),
	OPTION(start_unix_ns, UINT64_MAX),
	OPTION(haskell_lanes, 1),
};
_Static_assert(sizeof(struct timeline_opts) == 64, "an option was added: list it above");

static void add_u64(cJSON *object, const char *name, uint64_t v)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, v);
	cJSON_AddStringToObject(object, name, text);
}

static uint64_t get_option(const struct timeline_opts *opts, size_t i)
{
	uint64_t v = 0;

	memcpy(&v, (const char *)opts + options[i].at, options[i].size);
	return v;
}

char *capture_header__make(const struct timeline_opts *opts, const char *version, const char *mode)
{
	cJSON *root = cJSON_CreateObject(), *part;
	char *text;

	cJSON_AddStringToObject(root, "safescoped", version);
	cJSON_AddStringToObject(root, "mode", mode);
	part = cJSON_AddObjectToObject(root, "options");
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		add_u64(part, options[i].name, get_option(opts, i));
	part = cJSON_AddObjectToObject(root, "inputs");
	for (int kind = TI_NONE + 1; kind < TI_MAX; kind++)
		cJSON_AddNumberToObject(part, intake_input__name((enum intake_input_kind)kind),
					kind);
	cJSON_AddNumberToObject(part, "end", CAPTURE_END_MARK);
	part = cJSON_AddObjectToObject(root, "sizes");
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		cJSON_AddNumberToObject(part, sizes[i].name, sizes[i].size);
	text = cJSON_PrintUnformatted(root);
	cJSON_Delete(root);
	return text;
}

static uint64_t get_u64(const cJSON *object, const char *name)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));

	return text ? strtoull(text, NULL, 10) : 0;
}

static void get_text(const cJSON *root, const char *name, char *out, size_t size)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(root, name));

	snprintf(out, size, "%s", text ? text : "");
}

static int parse(const cJSON *root, struct header *h)
{
	const cJSON *part = cJSON_GetObjectItemCaseSensitive(root, "sizes"), *item;
	uint32_t least;

	get_text(root, "safescoped", h->version, sizeof(h->version));
	get_text(root, "mode", h->mode, sizeof(h->mode));
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		item = cJSON_GetObjectItemCaseSensitive(part, sizes[i].name);
		if (!item) {
			if (!sizes[i].newer)
				return -EBADMSG;
			continue;
		}
		if (!cJSON_IsNumber(item))
			return -EBADMSG;
		least = sizes[i].least ? sizes[i].least : sizes[i].size;
		if (item->valuedouble < least || item->valuedouble > sizes[i].size)
			return -ENOTSUP;
	}
	part = cJSON_GetObjectItemCaseSensitive(root, "inputs");
	for (int kind = TI_NONE + 1; kind < TI_MAX; kind++) {
		item = cJSON_GetObjectItemCaseSensitive(
			part, intake_input__name((enum intake_input_kind)kind));
		if (cJSON_IsNumber(item) && item->valuedouble > 0 && item->valuedouble < 0xffff)
			h->kinds[kind] = (uint16_t)item->valuedouble;
	}
	part = cJSON_GetObjectItemCaseSensitive(root, "options");
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		uint64_t v = MIN(get_u64(part, options[i].name), options[i].max);

		memcpy((char *)&h->opts + options[i].at, &v, options[i].size);
	}
	return 0;
}

int capture_header__parse(const char *json, struct header *ret_header)
{
	cJSON *root = cJSON_Parse(json);
	int err;

	memset(ret_header, 0, sizeof(*ret_header));
	err = cJSON_IsObject(root) ? parse(root, ret_header) : -EBADMSG;
	cJSON_Delete(root);
	return err;
}

enum intake_input_kind capture_header__own_kind(const struct header *header, unsigned kind)
{
	for (int k = TI_NONE + 1; k < TI_MAX; k++)
		if (header->kinds[k] == kind)
			return (enum intake_input_kind)k;
	return TI_NONE;
}
