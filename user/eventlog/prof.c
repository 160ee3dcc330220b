/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * prof: GHC's own time and allocation reports: the text of -p and -P (rts/ProfilerReport.c).
 *
 * A row of the tree is: as many blanks as it is deep, label, module, source, no., entries, four
 * percentages, and with -P ticks and bytes. The source may hold blanks, so rows are read from
 * both ends.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cctree.h"
#include "prof.h"

#define DEPTH_MAX 65536
#define COLUMNS	  8

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

/* Digits with commas between: "877,424". */
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

/* "total time = 0.01 secs (26 ticks @ 1000 us, 2 processors)", "total alloc = …" */
static void header_line(struct line l, struct prof_info *info)
{
	const char *eq = memchr(l.p, '=', l.len), *end = l.p + l.len, *at;
	char text[64];
	size_t n;

	if (!eq)
		return;
	if (has(l, "total alloc")) {
		info->total_alloc = grouped(eq + 1, end);
		return;
	}
	n = MIN((size_t)(end - eq - 1), sizeof(text) - 1);
	memcpy(text, eq + 1, n);
	text[n] = 0;
	info->total_seconds = strtod(text, NULL);
	at = memchr(eq, '(', (size_t)(end - eq));
	if (at)
		info->total_ticks = grouped(at + 1, end);
	at = memchr(eq, '@', (size_t)(end - eq));
	if (at)
		info->tick_interval_us = grouped(at + 1, end);
	at = memchr(eq, ',', (size_t)(end - eq));
	if (at)
		info->capabilities = (uint32_t)MIN(grouped(at + 1, end), 65535u);
}

static bool is_number(const char *p, size_t len)
{
	bool digit = false;

	for (size_t i = 0; i < len; i++) {
		if (p[i] >= '0' && p[i] <= '9')
			digit = true;
		else if (p[i] != '.')
			return false;
	}
	return digit && len < 32;
}

/* The last numbers of a row into col, in the row's order; their count. */
static unsigned columns(struct line *l, struct line *col)
{
	struct line rev[COLUMNS];
	unsigned n = 0;

	while (n < COLUMNS) {
		size_t end = l->len, start;

		while (end && l->p[end - 1] == ' ')
			end--;
		start = end;
		while (start && l->p[start - 1] != ' ')
			start--;
		if (start == end || !start || !is_number(l->p + start, end - start))
			break;
		rev[n++] = (struct line){l->p + start, end - start};
		l->len = start;
	}
	for (unsigned i = 0; i < n; i++)
		col[i] = rev[n - 1 - i];
	return n;
}

static uint16_t permille(struct line l)
{
	char text[40];
	double v;

	memcpy(text, l.p, l.len);
	text[l.len] = 0;
	v = strtod(text, NULL) * 10 + 0.5;
	return v < 0 || v > 10000 ? 0 : (uint16_t)v;
}

struct row {
	size_t depth;
	char label[1024], module[1024], srcloc[4096];
	uint64_t no, entries, ticks, bytes;
	uint16_t time, alloc, inherited_time, inherited_alloc;
	bool has_ticks;
};

static void copy(char *out, size_t size, const char *p, size_t len)
{
	len = MIN(len, size - 1);
	memcpy(out, p, len);
	out[len] = 0;
}

static bool read_row(struct line l, struct row *r)
{
	struct line col[COLUMNS];
	unsigned n;
	size_t i = 0, k;

	n = columns(&l, col);
	if (n != 6 && n != 8)
		return false;
	r->has_ticks = n == 8;
	r->no = grouped(col[0].p, col[0].p + col[0].len);
	r->entries = grouped(col[1].p, col[1].p + col[1].len);
	r->time = permille(col[2]);
	r->alloc = permille(col[3]);
	r->inherited_time = permille(col[4]);
	r->inherited_alloc = permille(col[5]);
	r->ticks = n == 8 ? grouped(col[6].p, col[6].p + col[6].len) : 0;
	r->bytes = n == 8 ? grouped(col[7].p, col[7].p + col[7].len) : 0;
	while (i < l.len && l.p[i] == ' ')
		i++;
	r->depth = i;
	for (k = i; k < l.len && l.p[k] != ' '; k++)
		;
	copy(r->label, sizeof(r->label), l.p + i, k - i);
	for (i = k; i < l.len && l.p[i] == ' '; i++)
		;
	for (k = i; k < l.len && l.p[k] != ' '; k++)
		;
	copy(r->module, sizeof(r->module), l.p + i, k - i);
	for (i = k; i < l.len && l.p[i] == ' '; i++)
		;
	while (l.len > i && l.p[l.len - 1] == ' ')
		l.len--;
	copy(r->srcloc, sizeof(r->srcloc), l.p + i, l.len - i);
	return *r->label && *r->module && r->depth < DEPTH_MAX;
}

static int add_row(struct cctree *tree, const struct row *r, uint32_t *path, size_t *depth)
{
	uint32_t cc, node = CC_ROOT;
	struct cc_node *n;
	int err;

	/* Row 0 is MAIN; a row deeper than one below the last is malformed: hang it there. */
	if (r->depth) {
		size_t d = MIN(r->depth, *depth + 1);

		err = cctree__cc_by_name(tree, r->label, r->module, r->srcloc, &cc);
		if (!err)
			err = cctree__child(tree, path[d - 1], cc, &node);
		if (err)
			return err;
		path[d] = node;
		*depth = d;
	} else {
		*depth = 0;
		if (strcmp(r->label, "MAIN") != 0) {
			err = cctree__cc_by_name(tree, r->label, r->module, r->srcloc, &cc);
			if (!err)
				err = cctree__child(tree, CC_ROOT, cc, &node);
			if (err)
				return err;
		}
		path[0] = node;
	}
	n = cctree__node(tree, node);
	n->ticks += r->ticks;
	n->entries += r->entries;
	n->alloc += r->bytes;
	n->permille_time = (uint16_t)(n->permille_time + r->time);
	n->permille_alloc = (uint16_t)(n->permille_alloc + r->alloc);
	n->permille_inherited_time = r->inherited_time;
	n->permille_inherited_alloc = r->inherited_alloc;
	return 0;
}

/* Percentages alone: ticks as near as they tell. */
static void ticks_from_percent(struct cctree *tree, const struct prof_info *info)
{
	for (size_t i = 0; i < cctree__n_nodes(tree); i++) {
		struct cc_node *n = cctree__node(tree, (uint32_t)i);

		n->ticks = (uint64_t)((double)n->permille_time * (double)info->total_ticks / 1000 +
				      0.5);
		n->alloc = (uint64_t)((double)n->permille_alloc * (double)info->total_alloc / 1000 +
				      0.5);
	}
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
		} else if (has(l, "total time") || has(l, "total alloc")) {
			header_line(l, info);
		} else if (has(l, "COST CENTRE") && has(l, "entries")) {
			/* The table of centres, above, has no entries. */
			tree_head = true;
		} else if (!tree_head) {
			if (!*info->program && l.len && l.p[0] == '\t')
				copy(info->program, sizeof(info->program), l.p + strspn(l.p, "\t "),
				     l.len - MIN(strspn(l.p, "\t "), l.len));
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
