/* SPDX-License-Identifier: GPL-2.0-or-later */
/* known_read: from archives and code to a list of functions. Runs in a child. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "files_priv.h"
#include "known_priv.h"

/* Longer names are truncated. */
#define MAX_NAME 1024

/*
 * Of several symbols in one place, the one with the highest rank names it, as in elf/symbols.c. But
 * the resolver of an IFUNC gets its own name rather than the IFUNC's, which lld may put at an entry
 * that it generates.
 */
static unsigned rank(const struct member_symbol *sym)
{
	size_t len = strlen(sym->name);
	unsigned r = 0;

	if (sym->type == STT_GNU_IFUNC)
		return 0;
	if (len > 5 && !strcmp(sym->name + len - 5, "_info"))
		r += 32;
	if (sym->bind != STB_LOCAL)
		r += 16;
	if (sym->type == STT_FUNC)
		r += 8;
	else if (sym->type == STT_OBJECT)
		r += 4;
	if (sym->name[0] != '_')
		r += 2;
	return r + (sym->size > 0);
}

struct named {
	struct member_symbol sym;
	uint32_t order;
};

static int by_value(const void *a, const void *b)
{
	const struct named *x = a, *y = b;

	return CMP(x->sym.value, y->sym.value) ?: CMP(y->order, x->order);
}

static int add(struct known_out *out, const struct defs *defs, const struct placed *place,
	       const struct member_symbol *sym)
{
	const struct section *s = &defs->all->v[place->section];
	size_t len = strnlen(sym->name, MAX_NAME);

	if (out->n >= KNOWN_MAX || len >= KNOWN_MAX_STRINGS - out->strings_len)
		return -E2BIG;
	out->v[out->n++] = (struct known_raw){
		.start = place->start + sym->value,
		.size = MIN(sym->size, s->size - sym->value),
		.section = place->start,
		.section_end = place->start + s->size,
		.name = out->strings_len,
		.type = sym->type,
		.bind = sym->bind,
		.rts = section__member(defs->all, s)->rts,
	};
	memcpy(out->strings + out->strings_len, sym->name, len);
	out->strings[out->strings_len + len] = '\0';
	out->strings_len += (uint32_t)len + 1;
	return 0;
}

static int add_section(const struct defs *defs, const struct places *places,
		       const struct placed *place, struct known_out *out)
{
	uint32_t first = defs->first[place->section], end = defs->first[place->section + 1];
	struct named *named = calloc(end - first + 1UL, sizeof(*named));
	size_t n = 0;
	int err = 0;

	if (!named)
		return -ENOMEM;
	for (uint32_t i = first; i < end; i++) {
		if (!places__has_name(places, defs, place, i) ||
		    !defs__symbol(defs, i, &named[n].sym))
			continue;
		named[n].order = rank(&named[n].sym);
		n++;
	}
	qsort(named, n, sizeof(*named), by_value);
	for (size_t i = 0; i < n && !err; i++)
		if (!i || named[i].sym.value != named[i - 1].sym.value)
			err = add(out, defs, place, &named[i].sym);
	free(named);
	return err;
}

static int read_archives(const struct archive_file *files, size_t n, bool profiled,
			 struct sections *all)
{
	int err = 0;

	for (size_t i = 0; i < n && !err; i++) {
		if (files[i].kind != ARCHIVE_OTHER && files[i].profiled != profiled)
			continue;
		err = sections__read(all, files[i].data, files[i].size, files[i].kind);
		/* not an archive, despite its name */
		if (err == -ENOEXEC)
			err = 0;
	}
	return err;
}

int known__read(const struct archive_file *files, size_t n, bool profiled, const struct code *code,
		struct known_out *out)
{
	struct sections all = {0};
	struct matches matches = {0};
	struct places places = {0};
	struct defs defs = {0};
	int err = read_archives(files, n, profiled, &all);

	out->n = 0;
	out->strings[0] = '\0';
	out->strings_len = 1;
	if (!err)
		err = matches__find(&all, code, &matches);
	if (!err)
		err = defs__init(&defs, &all);
	if (!err)
		err = places__find(&defs, code, &matches, &places);
	for (size_t i = 0; i < places.n && !err; i++)
		err = add_section(&defs, &places, &places.v[i], out);
	places__free(&places);
	defs__free(&defs);
	matches__free(&matches);
	sections__free(&all);
	return err ? err : out->n ? 0 : -ENOENT;
}
