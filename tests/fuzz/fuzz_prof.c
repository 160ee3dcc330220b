/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fuzz_prof: any bytes as one of GHC's reports (-p, -P, -pj), and the picture that is made of it.
 * The nodes' ticks must add up to the tree's total, whatever is hidden.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eventlog/eventlog.h"
#include "eventlog/pack.h"
#include "export/export.h"
#include "join/join.h"
#include "picture/picture.h"
#include "timeline/timeline.h"

static void check(bool good)
{
	if (!good)
		abort();
}

static void tree_check(struct cctree *tree)
{
	struct cctree_totals totals;
	uint64_t ticks = 0;

	check(!cctree__inherit(tree, &totals));
	check(cctree__node(tree, CC_ROOT)->inherited_ticks == totals.ticks);
	for (size_t i = 0; i < cctree__n_nodes(tree); i++) {
		const struct cc_node *n = cctree__node(tree, (uint32_t)i);

		ticks += n->ticks;
		check(i ? n->parent < i : n->parent == CC_NO_NODE);
		check(n->cc < cctree__n_ccs(tree));
	}
	check(ticks == totals.ticks + totals.ignored_ticks);
}

static void picture_check(struct cctree *tree, const struct prof_info *info)
{
	static const char *const hide[] = {"*a*"};
	const struct export_opts all = {.verbose = true};
	const struct timeline_opts opts = {.start_unix_ns = 1};
	const struct join_log in = {.path = "x.prof",
				    .tree = tree,
				    .interval_ns = info->tick_interval_us * 1000,
				    .capabilities = info->capabilities,
				    .program = info->program,
				    .no_ticks = !info->has_ticks,
				    .hide = hide,
				    .n_hide = info->capabilities % 2};
	FILE *null = fopen("/dev/null", "w");
	struct timeline *tl = NULL;

	check(null && !timeline__new(&opts, "0", "eventlog", &tl));
	check(!timeline__add_log_target(tl, &in));
	check(!timeline__finish(tl, 0));
	check(!export_json.write(null, timeline__picture(tl), &all));
	check(!export_speedscope.write(null, timeline__picture(tl), &all));
	check(!export_text.write(null, timeline__picture(tl), &all));
	timeline__free(tl);
	fclose(null);
}

/*
 * As from an unprivileged process: unchanged it must be accepted. Every second input changes a
 * byte.
 */
static bool hand_over(struct cctree **tree, struct prof_info *info, const uint8_t *data,
		      size_t size)
{
	static uint8_t bytes[16 << 20];
	struct pack p = {.data = bytes, .size = sizeof(bytes)};
	struct cctree *over;
	struct unpack u;
	size_t where = 0;
	int err;

	prof__pack(*tree, info, &p);
	check(!p.full);
	if (size > 4 && size % 2) {
		where = (data[size - 1] | (size_t)data[size - 2] << 8) % p.len;
		bytes[p.len - 1 - where] ^= data[size - 3];
	}
	u = (struct unpack){.data = bytes, .left = p.len};
	err = prof__unpack(&u, &over, info);
	check(err == 0 || (err == -EBADMSG && size % 2));
	if (err)
		return false;
	cctree__free(*tree);
	*tree = over;
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct prof_info info;
	struct cctree *tree;

	if (prof__parse((const char *)data, size, &tree, &info))
		return 0;
	check(memchr(info.program, 0, sizeof(info.program)) != NULL);
	tree_check(tree);
	if (hand_over(&tree, &info, data, size)) {
		tree_check(tree);
		picture_check(tree, &info);
	}
	cctree__free(tree);
	return 0;
}
