/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The comparison as a page for a browser: the flame graph of the second session, coloured by
 * change, and the text below it. Names are in it only as JSON in a non-executable element, or as
 * text.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "diff_stacks_priv.h"

/* Nodes below 1/LEAST of the whole are not shown. */
#define LEAST	  20000
#define MAX_NODES ((size_t)1 << 22)
#define WIDTH	  130
#define NO_LIMIT  1e9

/* page.css and page.js from this folder, included verbatim by the assembler: the build runs in the
 * top folder. */
extern const char diff_css[], diff_js[];
/* clang-format off */
__asm__(".pushsection .rodata\n"
	".globl diff_css, diff_js\n"
	"diff_css: .incbin \"user/diff/page.css\"\n"
	".byte 0\n"
	"diff_js: .incbin \"user/diff/page.js\"\n"
	".byte 0\n"
	".popsection\n");
/* clang-format on */

struct node {
	uint32_t depth, name, parent;
	double sum[2], left[2]; /* sum: with all children; left: without those that are shown */
};

struct tree {
	struct strtab *names;
	struct node *v;
	size_t n, cap;
	uint32_t *open; /* the nodes from the root to the last one */
	size_t n_open, cap_open;
	double whole[2];
};

/* Writes a string within the script element, so that nothing in it can end that. */
static void put_string(FILE *out, const char *s)
{
	fputc('"', out);
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < ' ' || c == '<' || c == '>' || c == '&' || c == 0x7f)
			fprintf(out, "\\u%04x", c);
		else
			fputc(c, out);
	}
	fputc('"', out);
}

static int open_node(struct tree *t, const char *name, size_t len)
{
	struct node *node;
	uint32_t id;
	int err = strtab__add(t->names, name, MIN(len, (size_t)STRTAB_MAX_STRING), &id);

	if (!err)
		err = ARRAY_RESERVE(t->v, t->cap, t->n + 1, MAX_NODES);
	if (!err)
		err = ARRAY_RESERVE(t->open, t->cap_open, t->n_open + 1, MAX_NODES);
	if (err)
		return err;
	node = &t->v[t->n];
	*node = (struct node){.depth = (uint32_t)t->n_open,
			      .name = id,
			      .parent = t->n_open ? t->open[t->n_open - 1] : UINT32_MAX};
	t->open[t->n_open++] = (uint32_t)t->n++;
	return 0;
}

/* Adds a stack. Stacks are sorted by path, so those with a common beginning are adjacent. */
static int add_stack(struct tree *t, const struct diff_stack *stack)
{
	const char *at = stack->path;
	size_t depth = 0;
	int err = 0;

	while (!err) {
		size_t len = strcspn(at, ";");
		const char *open =
			depth < t->n_open ? strtab__get(t->names, t->v[t->open[depth]].name) : "";

		if (depth >= t->n_open || strlen(open) != len || memcmp(open, at, len) != 0) {
			t->n_open = depth;
			err = open_node(t, at, len);
		}
		depth++;
		if (!at[len])
			break;
		at += len + 1;
	}
	t->n_open = depth;
	for (int side = 0; side < 2 && !err; side++) {
		t->v[t->open[depth - 1]].sum[side] += stack->sum[side];
		t->whole[side] += stack->sum[side];
	}
	return err;
}

static int build(struct tree *t, const struct diff_stacks *stacks)
{
	int err = strtab__new(&t->names);

	for (size_t i = 0; i < stacks->n && !err; i++)
		err = add_stack(t, &stacks->v[i]);
	for (size_t i = t->n; i-- > 0 && !err;)
		for (int side = 0; side < 2; side++) {
			t->v[i].left[side] += t->v[i].sum[side];
			if (t->v[i].parent != UINT32_MAX)
				t->v[t->v[i].parent].sum[side] += t->v[i].sum[side];
		}
	return err;
}

static bool is_shown(const struct tree *t, const struct node *node)
{
	return (node->sum[0] + node->sum[1]) * LEAST >= t->whole[0] + t->whole[1];
}

/* Writes four numbers for each node: depth, name, and the amount of either session that is not in
 * its shown children, in µs or bytes. */
static void put_tree(FILE *out, struct tree *t)
{
	const char *comma = "";

	for (size_t i = 0; i < t->n; i++)
		for (int side = 0; side < 2; side++)
			t->v[i].left[side] = t->v[i].sum[side];
	for (size_t i = t->n; i-- > 0;)
		for (int side = 0; side < 2 && is_shown(t, &t->v[i]); side++)
			if (t->v[i].parent != UINT32_MAX)
				t->v[t->v[i].parent].left[side] -= t->v[i].sum[side];
	fputs("\"names\":[", out);
	for (uint32_t i = 0; i < strtab__count(t->names); i++) {
		fputs(i ? ",\n" : "\n", out);
		put_string(out, strtab__get(t->names, i));
	}
	fputs("],\n\"nodes\":[", out);
	for (size_t i = 0; i < t->n; i++) {
		const struct node *node = &t->v[i];

		if (!is_shown(t, node))
			continue;
		fprintf(out, "%s%" PRIu32 ",%" PRIu32 ",%.0f,%.0f", comma, node->depth, node->name,
			MAX(node->left[0], 0), MAX(node->left[1], 0));
		comma = ",";
	}
	fputs("],\n", out);
}

/* Writes what the page needs to distinguish noise from change, in the order of the programs. */
static void put_programs(FILE *out, const struct diff *d, const struct diff_stacks *stacks)
{
	double unit = stacks->alloc ? 1 : 1e3;

	fprintf(out, "\"bytes\":%s,\n\"programs\":[", stacks->alloc ? "true" : "false");
	for (size_t i = 0; i < d->n_pairs; i++) {
		const struct diff_pair *p = &d->pairs[i];
		const struct diff_measure *by = stacks->alloc ? &p->alloc : &p->cpu;

		/* without a limit nothing can be judged */
		fprintf(out,
			"%s{\"limit\":%.3f,\"each\":[%.3f,%.3f],\"varies\":%.4f,"
			"\"spins_varies\":%.4f,\"unknown\":%.4f,\"name\":",
			i ? "," : "", by->limit > 0 ? by->limit : NO_LIMIT,
			by->spread * by->each[0] / unit * p->work, by->spread * by->each[1] / unit,
			stacks->alloc ? p->alloc_varies : p->varies,
			stacks->alloc ? p->alloc_varies : p->spins_varies, p->unknown);
		put_string(out, stacks->programs[i]);
		fputc('}', out);
	}
	fputs("]", out);
}

static int put_report(FILE *out, const struct diff *d, const char *const names[2])
{
	char *text = NULL;
	size_t len = 0;
	FILE *memory = open_memstream(&text, &len);
	int err;

	if (!memory)
		return -ENOMEM;
	err = diff__put_text(memory, d, names, false, false, WIDTH);
	if (fclose(memory) && !err)
		err = -ENOMEM;
	for (size_t i = 0; i < len && !err; i++)
		switch (text[i]) {
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '&':
			fputs("&amp;", out);
			break;
		default:
			fputc(text[i], out);
		}
	free(text);
	return err;
}

int diff__put_page(FILE *out, const struct diff *diff, const struct diff_stacks *stacks,
		   const char *const names[2])
{
	struct tree t = {0};
	int err = build(&t, stacks);

	if (!err) {
		fprintf(out,
			"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
			"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
			"'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri "
			"'none'; form-action 'none'\">\n"
			"<meta name=\"viewport\" content=\"width=device-width\">\n"
			"<title>safescoped: what changed</title>\n<style>\n%s</style>\n</head>\n"
			"<body>\n<h1>What changed from A to B</h1>\n<div id=\"bar\"></div>\n"
			"<div id=\"look\" role=\"status\"></div>\n<div id=\"graph\"></div>\n<pre>",
			diff_css);
		err = put_report(out, diff, names);
	}
	if (!err) {
		fputs("</pre>\n<script type=\"application/json\" id=\"data\">\n{", out);
		put_tree(out, &t);
		put_programs(out, diff, stacks);
		fprintf(out, "}\n</script>\n<script>\n%s</script>\n</body>\n</html>\n", diff_js);
	}
	strtab__free(t.names);
	free(t.v);
	free(t.open);
	return err ? err : ferror(out) ? -EIO : 0;
}
