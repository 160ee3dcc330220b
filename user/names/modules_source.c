/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * modules_source: finds code that refers to a position in a source file. GHC compiles a
 * pattern-match failure with a string like "src/Data/Foo.hs:(12,3)-(14,20)|function bar", which has
 * the file's path as passed to the compiler (GHC.HsToCore.Utils.mkErrorAppDs, GHC.HsToCore.Match).
 * The path of a module's source ends with the module's name.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/search.h"
#include "elf/elf.h"
#include "modules_read_priv.h"

#define MAX_STRINGS (1U << 16)
#define MAX_REFS    (1U << 20)
#define MAX_PATH    300

/* A string with a source position, and the module of that source file. */
struct place {
	uint64_t vaddr;
	uint32_t module;
};

struct ref {
	uint32_t module;
	uint64_t code;
};

struct sources {
	const struct mod_image *img;
	struct strtab *names;
	struct place *places; /* ascending */
	size_t n_places, cap_places;
	struct ref *refs;
	size_t n_refs, cap_refs;
};

/* ── the strings ─────────────────────────────────────────────────────────────────────────── */

/*
 * The module of a source path that ends at `end`: the file's name, and the last directories that
 * can be part of a module's name. -ENOENT: not a module's.
 */
static int module_of_path(const char *path, const char *end, struct strtab *names, uint32_t *ret_id)
{
	char name[MAX_PATH];
	const char *from = end;
	size_t len;

	for (const char *p = end; p > path;) {
		const char *part = p;

		while (part > path && part[-1] != '/')
			part--;
		if (memchr(part, '.', (size_t)(p - part)) ||
		    !mod_name__is_module(part, (size_t)(p - part)))
			break;
		from = part;
		p = part > path ? part - 1 : path;
	}
	len = (size_t)(end - from);
	if (!len || len > sizeof(name))
		return -ENOENT;
	for (size_t i = 0; i < len; i++)
		name[i] = from[i] == '/' ? '.' : from[i];
	return strtab__add(names, name, len, ret_id);
}

/* The end of the path before the "hs:" at `at`, without the file's extension; NULL: not a source
 * file. */
static const char *end_of_path(const char *start, const char *at)
{
	if (at - start >= 2 && at[-1] == '.')
		return at - 1;
	return at - start >= 3 && at[-1] == 'l' && at[-2] == '.' ? at - 2 : NULL;
}

/* Takes a string with "hs:" at `at`; its path ends at `end`, and `start`, the start of the text,
 * has the address vaddr. */
static int take_string(struct sources *s, const char *start, const char *at, const char *end,
		       uint64_t vaddr)
{
	const char *string = at, *path;
	struct place place;
	int err;

	while (string > start && at - string < MAX_PATH && string[-1] >= ' ' && string[-1] <= '~')
		string--;
	/* "Pattern match failure in do expression at src/Foo.hs:…" */
	for (path = end; path > string && path[-1] != ' ';)
		path--;
	if (string > start && string[-1])
		return 0;
	err = ARRAY_RESERVE(s->places, s->cap_places, s->n_places + 1, MAX_STRINGS);
	if (!err)
		err = module_of_path(path, end, s->names, &place.module);
	if (err)
		return err == -ENOENT ? 0 : err;
	place.vaddr = vaddr + (uint64_t)(string - start);
	s->places[s->n_places++] = place;
	return 0;
}

/* Takes only the first position in a string. */
static int find_strings(struct sources *s, uint64_t from, uint64_t to)
{
	const char *start = (const char *)elf__at(s->img->elf, from, to - from), *end, *at = start;
	int err = 0;

	if (!start)
		return 0;
	end = start + (to - from);
	while (!err && at && (at = memmem(at, (size_t)(end - at), "hs:", 3))) {
		const char *path_end = end_of_path(start, at);

		if (path_end)
			err = take_string(s, start, at, path_end, from);
		at = path_end ? memchr(at, '\0', (size_t)(end - at)) : at + 1;
	}
	return err == -E2BIG ? 0 : err;
}

/* Constants may be in the same segment as the code, before or after it. */
static int find_places(struct sources *s)
{
	const struct mod_image *img = s->img;
	int err = 0;

	for (size_t i = 0; i < elf__n_segments(img->elf) && !err; i++) {
		const struct elf_segment *seg = elf__segment(img->elf, i);
		uint64_t end = seg->vaddr + seg->filesz;

		if (seg->write || !seg->filesz || end < seg->vaddr)
			continue;
		if (img->text_start < seg->vaddr || img->text_start >= end) {
			err = find_strings(s, seg->vaddr, end);
			continue;
		}
		if (img->text_start > seg->vaddr)
			err = find_strings(s, seg->vaddr, img->text_start);
		if (!err && img->text_end < end)
			err = find_strings(s, img->text_end, end);
	}
	return err;
}

static int by_vaddr(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return CMP(x->vaddr, y->vaddr) ?: CMP(x->module, y->module);
}

/* ── the code ────────────────────────────────────────────────────────────────────────────── */

static int refer(struct sources *s, uint64_t code, uint64_t vaddr)
{
	size_t i = search__first(s->n_places, k, s->places[k].vaddr >= vaddr);
	int err;

	if (i >= s->n_places || s->places[i].vaddr != vaddr)
		return 0;
	err = ARRAY_RESERVE(s->refs, s->cap_refs, s->n_refs + 1, MAX_REFS);
	if (err)
		return err == -E2BIG ? 0 : err;
	s->refs[s->n_refs++] = (struct ref){s->places[i].module, code};
	return 0;
}

/* Tries every offset as an absolute address and as one relative to the next byte, whatever the
 * instruction. */
static int find_refs(struct sources *s)
{
	const struct mod_image *img = s->img;
	uint64_t low = s->places[0].vaddr, span = s->places[s->n_places - 1].vaddr - low;
	int err = 0;

	for (uint64_t at = img->text_start; at + 4 < img->text_end && !err; at++) {
		uint64_t relative;
		uint32_t v;

		memcpy(&v, img->text + (at - img->text_start), sizeof(v));
		relative = at + 4 + (uint64_t)(int64_t)(int32_t)v;
		if (v - low <= span)
			err = refer(s, at, v);
		if (!err && relative - low <= span)
			err = refer(s, at, relative);
	}
	return err;
}

static int by_module(const void *a, const void *b)
{
	const struct ref *x = a, *y = b;

	return CMP(x->module, y->module) ?: CMP(x->code, y->code);
}

/* One entry per module, from its first to its last reference. */
static int put_modules(const struct sources *s, struct mod_source **ret_sources, size_t *ret_n)
{
	struct mod_source *found = calloc(s->n_refs + 1, sizeof(*found));
	size_t n = 0;

	if (!found)
		return -ENOMEM;
	if (s->n_refs)
		qsort(s->refs, s->n_refs, sizeof(*s->refs), by_module);
	for (size_t i = 0; i < s->n_refs; i++) {
		const struct ref *ref = &s->refs[i];

		if (!n || found[n - 1].module != ref->module)
			found[n++] = (struct mod_source){.module = ref->module, .first = ref->code};
		found[n - 1].last = ref->code;
	}
	*ret_sources = found;
	*ret_n = n;
	return 0;
}

int mod_sources__find(const struct mod_image *img, struct strtab *names,
		      struct mod_source **ret_sources, size_t *ret_n)
{
	struct sources s = {.img = img, .names = names};
	int err = find_places(&s);

	if (!err && s.n_places) {
		qsort(s.places, s.n_places, sizeof(*s.places), by_vaddr);
		err = find_refs(&s);
	}
	if (!err)
		err = put_modules(&s, ret_sources, ret_n);
	free(s.places);
	free(s.refs);
	return err;
}
