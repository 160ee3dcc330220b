/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the html format share: page.c (the page and its flame graphs), tree.c (stacks
 * as trees of bounded size), tables.c (the tables), source.c (page.css, page.js).
 */
#ifndef SAFESCOPED_EXPORT_HTML_H
#define SAFESCOPED_EXPORT_HTML_H

#include "export/sums.h"

/* The page's style and its program, as they are in the source: strings. */
extern const char html_css[], html_js[];

/* In place of a frame: what is too small to show. */
#define HTML_SMALL UINT32_MAX

/* A frame of a tree, which is a list of these: parents come before their children. */
struct html_node {
	uint32_t depth; /* 0: a root */
	uint32_t frame; /* its number in the map; HTML_SMALL */
	uint64_t self;	/* of the weights' unit */
};

struct html_tree {
	struct html_node *nodes;
	size_t n, cap;
	uint64_t total;
};

/*
 * Sums of one owner, arranged (sums__arrange), as a tree of at most `most` nodes (and no less than
 * one stack's): subtrees that are too small become one HTML_SMALL beside their brothers, so that
 * the whole stays right. -ENOMEM, -E2BIG.
 */
int html_tree__build(const struct picture *pic, const struct sum *sums, size_t n,
		     enum export_weight weight, const uint32_t *map, size_t most,
		     struct html_tree *ret_tree);
void html_tree__free(struct html_tree *tree);

/* "targets":[…],"more_targets":N: what they are, findings, tables, what is missing. */
void html__put_targets(FILE *out, const struct picture *pic, const struct views *views);

#endif
