/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * prof: GHC's own time and allocation reports: the text of -p and -P (rts/ProfilerReport.c).
 *
 * A row of the tree has as many blanks as its depth, then label, module, source, no., entries, four
 * percentages, and with -P ticks and bytes. The source may contain blanks, so rows are parsed from
 * both ends.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cctree.h"
#include "pack_priv.h"
#include "prof_priv.h"

#define DEPTH_MAX 65536

struct line {
	const char *p;
	size_t len;
};

static bool next_line(const char **pos, const char *end, struct line *ret)
{
	const char *nl;

	if (*pos >= end)
		return false;
	nl = memchr(*pos, '\n', (size_t)(end - *pos));
	ret->p = *pos;
	ret->len = (size_t)((nl ? nl : end) - *pos);
	*pos = nl ? nl + 1 : end;
	if (ret->len && ret->p[ret->len - 1] == '\r')
		ret->len--;
	return true;
}

static bool has(struct line l, const char *what)
{
	return memmem(l.p, l.len, what, strlen(what)) != NULL;
}

/* Digits grouped by commas: "877,424". */
static uint64_t grouped(const char *p, const char *end)
{
	uint64_t n = 0;

	while (p < end && *p == ' ')
		p++;
	for (; p < end && ((*p >= '0' && *p <= '9') || *p == ','); p++)
		if (*p != ',')
			n = n > UINT64_MAX / 10 - 1 ? n : n * 10 + (uint64_t)(*p - '0');
	return n;
}

/* "total time = 0.01 secs (26 ticks @ 1000 us, 2 processors)" */
static void time_line(struct line l, struct prof_info *info)
{
	const char *end = l.p + l.len, *at;

	at = memchr(l.p, '(', l.len);
	if (at)
		info->total_ticks = grouped(at + 1, end);
	at = memchr(l.p, '@', l.len);
	if (at)
		info->tick_interval_us = grouped(at + 1, end);
	at = memchr(l.p, ',', l.len);
	if (at)
		info->capabilities = (uint32_t)MIN(grouped(at + 1, end), 65535u);
}

static void trim_end(struct line *l)
{
	while (l->len && l->p[l->len - 1] == ' ')
		l->len--;
}

/* Removes blanks from both ends; returns how many there were in front. */
static size_t trim(struct line *l)
{
	size_t blanks = 0;

	while (blanks < l->len && l->p[blanks] == ' ')
		blanks++;
	l->p += blanks;
	l->len -= blanks;
	trim_end(l);
	return blanks;
}

static void take_word(struct line *l, char *out, size_t size)
{
	size_t n = 0;

	trim(l);
	while (n < l->len && l->p[n] != ' ')
		n++;
	snprintf(out, size, "%.*s", (int)MIN(n, size), l->p);
	l->p += n;
	l->len -= n;
}

/* Takes the number at the end of the line. False: there is none, and the line is unchanged. */
static bool take_number(struct line *l, double *ret)
{
	struct line rest = *l;
	char text[32];
	size_t n;

	trim_end(&rest);
	for (n = 0; n < rest.len && strchr("0123456789.", rest.p[rest.len - n - 1]); n++)
		;
	if (!n || n >= sizeof(text) || n == rest.len || rest.p[rest.len - n - 1] != ' ')
		return false;
	rest.len -= n;
	memcpy(text, rest.p + rest.len, n);
	text[n] = 0;
	*ret = strtod(text, NULL);
	*l = rest;
	return true;
}

static uint16_t permille(double percent)
{
	return percent <= 1000 ? (uint16_t)lround(percent * 10) : 0;
}

struct row {
	size_t depth;
	char label[1024], module[1024], srcloc[4096];
	uint64_t ticks;
	uint16_t time, inherited_time;
	bool has_ticks;
};

/* Parses from the end: [bytes, ticks,] inherited %alloc, %time, own %alloc, %time, entries, no. */
static bool read_row(struct line l, struct row *r)
{
	double col[8];
	unsigned n = 0;

	while (n < ARRAY_SIZE(col) && take_number(&l, &col[n]))
		n++;
	if (n != 6 && n != 8)
		return false;
	r->has_ticks = n == 8;
	r->ticks = r->has_ticks && col[1] < 1e15 ? (uint64_t)col[1] : 0;
	r->inherited_time = permille(col[n - 5]);
	r->time = permille(col[n - 3]);
	r->depth = trim(&l);
	take_word(&l, r->label, sizeof(r->label));
	take_word(&l, r->module, sizeof(r->module));
	trim(&l);
	snprintf(r->srcloc, sizeof(r->srcloc), "%.*s", (int)MIN(l.len, sizeof(r->srcloc)), l.p);
	return *r->label && *r->module && r->depth < DEPTH_MAX;
}

static int add_row(struct cctree *tree, const struct row *r, uint32_t *path, size_t *depth)
{
	uint32_t cc, node = CC_ROOT;
	struct cc_node *n;
	int err = 0;

	/* Row 0 is MAIN; a row too deep for the previous one is malformed: hang it below it. */
	*depth = r->depth ? MIN(r->depth, *depth + 1) : 0;
	if (*depth || strcmp(r->label, "MAIN") != 0) {
		err = cctree__cc_by_name(tree, r->label, r->module, r->srcloc, &cc);
		if (!err)
			err = cctree__child(tree, *depth ? path[*depth - 1] : CC_ROOT, cc, &node);
	}
	if (err)
		return err;
	path[*depth] = node;
	n = cctree__node(tree, node);
	n->ticks += r->ticks;
	n->permille_time = (uint16_t)(n->permille_time + r->time);
	n->permille_inherited_time = r->inherited_time;
	return 0;
}

/* From percentages alone: ticks as accurate as they allow. */
static void ticks_from_percent(struct cctree *tree, const struct prof_info *info)
{
	for (size_t i = 0; i < cctree__n_nodes(tree); i++) {
		struct cc_node *n = cctree__node(tree, (uint32_t)i);

		n->ticks = (uint64_t)((double)n->permille_time * (double)info->total_ticks / 1000 +
				      0.5);
	}
}

/* The first indented line after the title. */
static void take_program(struct line l, struct prof_info *info)
{
	size_t blanks = 0;

	while (blanks < l.len && (l.p[blanks] == '\t' || l.p[blanks] == ' '))
		blanks++;
	if (!*info->program && l.len && l.p[0] == '\t')
		snprintf(info->program, sizeof(info->program), "%.*s",
			 (int)MIN(l.len - blanks, sizeof(info->program)), l.p + blanks);
}

static int parse_text(const char *data, size_t len, struct cctree *tree, struct prof_info *info)
{
	const char *pos = data, *end = data + len;
	uint32_t *path = calloc(DEPTH_MAX + 1, sizeof(*path));
	bool title = false, tree_head = false;
	struct row *row = malloc(sizeof(*row));
	size_t depth = 0, rows = 0;
	struct line l;
	int err = path && row ? 0 : -ENOMEM;

	while (!err && next_line(&pos, end, &l)) {
		if (!title) {
			title = has(l, "Time and Allocation Profiling Report");
		} else if (has(l, "total time")) {
			time_line(l, info);
		} else if (has(l, "COST CENTRE") && has(l, "entries")) {
			/* The table of centres, which comes before, has no entries. */
			tree_head = true;
		} else if (!tree_head) {
			take_program(l, info);
		} else if (!l.len) {
			continue;
		} else if (read_row(l, row)) {
			err = add_row(tree, row, path, &depth);
			info->has_ticks = row->has_ticks;
			rows++;
		} else {
			info->skipped++;
		}
	}
	if (!err && !rows)
		err = -EBADMSG;
	if (!err && !info->has_ticks)
		ticks_from_percent(tree, info);
	free(path);
	free(row);
	return err;
}

int prof__parse(const char *data, size_t len, struct cctree **ret_tree, struct prof_info *ret_info)
{
	struct prof_info *info = calloc(1, sizeof(*info));
	struct cctree *tree = NULL;
	size_t i = 0;
	int err;

	if (!info)
		return -ENOMEM;
	err = cctree__new(&tree);
	if (err)
		goto out;
	while (i < len && strchr(" \t\r\n", data[i]))
		i++;
	if (i < len && data[i] == '{')
		err = prof__parse_json(data + i, len - i, tree, info);
	else
		err = parse_text(data, len, tree, info);
	if (err)
		goto out;
	*ret_tree = tree;
	*ret_info = *info;
	tree = NULL;
out:
	cctree__free(tree);
	free(info);
	return err;
}

/* ── packing ─────────────────────────────────────────────────────────────────────────────── */

void prof__pack(const struct cctree *tree, const struct prof_info *info, struct pack *p)
{
	PACK(p, *info);
	cctree__pack(tree, p);
}

int prof__unpack(struct unpack *u, struct cctree **ret_tree, struct prof_info *ret_info)
{
	struct prof_info info;
	int err;

	UNPACK(u, info);
	unpack__flag(u, &info.has_ticks);
	unpack__require(u, memchr(info.program, 0, sizeof(info.program)) != NULL &&
				   info.capabilities <= UINT16_MAX);
	err = cctree__unpack(u, ret_tree);
	if (!err)
		*ret_info = info;
	return err;
}
