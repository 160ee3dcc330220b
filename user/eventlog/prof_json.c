/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * prof_json: the report of -pj (rts/ProfilerReportJson.c).
 *
 * The profile is nested as deep as stacks are; cJSON limits nesting to 1000 levels
 * (CJSON_NESTING_LIMIT), which two levels per frame exhaust at depth 500: deeper reports are
 * refused, not truncated.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "prof_priv.h"

#define DEPTH_MAX 1024

static uint64_t number(const cJSON *obj, const char *key)
{
	const cJSON *v = cJSON_GetObjectItemCaseSensitive(obj, key);

	if (!cJSON_IsNumber(v) || !(v->valuedouble >= 0) || v->valuedouble > 9e15)
		return 0;
	return (uint64_t)v->valuedouble;
}

static const char *string(const cJSON *obj, const char *key)
{
	const cJSON *v = cJSON_GetObjectItemCaseSensitive(obj, key);

	return cJSON_IsString(v) ? v->valuestring : "";
}

static int add_centres(const cJSON *list, struct cctree *tree)
{
	const cJSON *item;
	int err;

	cJSON_ArrayForEach (item, list) {
		const char *label = string(item, "label"), *module = string(item, "module");
		const char *srcloc = string(item, "src_loc");

		err = cctree__define(
			tree, (uint32_t)MIN(number(item, "id"), UINT32_MAX), label, strlen(label),
			module, strlen(module), srcloc, strlen(srcloc),
			cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(item, "is_caf")));
		if (err)
			return err;
	}
	return 0;
}

static int add_node(const cJSON *item, struct cctree *tree, uint32_t parent, unsigned depth)
{
	const cJSON *child;
	uint32_t cc, node = CC_ROOT;
	struct cc_node *n;
	int err;

	if (depth > DEPTH_MAX)
		return -E2BIG;
	if (depth) {
		err = cctree__cc_by_id(tree, (uint32_t)MIN(number(item, "id"), UINT32_MAX), &cc);
		if (!err)
			err = cctree__child(tree, parent, cc, &node);
		if (err)
			return err;
	}
	n = cctree__node(tree, node);
	n->ticks += number(item, "ticks");
	cJSON_ArrayForEach (child, cJSON_GetObjectItemCaseSensitive(item, "children")) {
		err = add_node(child, tree, node, depth + 1);
		if (err)
			return err;
	}
	return 0;
}

int prof__parse_json(const char *data, size_t len, struct cctree *tree, struct prof_info *info)
{
	cJSON *root = cJSON_ParseWithLength(data, len);
	const cJSON *profile;
	const char *program;
	int err = -EBADMSG;

	if (!root)
		return -EBADMSG;
	profile = cJSON_GetObjectItemCaseSensitive(root, "profile");
	if (!cJSON_IsObject(profile))
		goto out;
	program = string(root, "program");
	memcpy(info->program, program, MIN(strlen(program), sizeof(info->program) - 1));
	info->total_ticks = number(root, "total_ticks");
	info->tick_interval_us = number(root, "tick_interval");
	info->capabilities = (uint32_t)MIN(number(root, "initial_capabilities"), 65535u);
	info->has_ticks = true;
	err = add_centres(cJSON_GetObjectItemCaseSensitive(root, "cost_centres"), tree);
	if (!err)
		err = add_node(profile, tree, CC_ROOT, 0);
out:
	cJSON_Delete(root);
	return err;
}
