/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * modules_main: GHC makes a C file with main(), which gives the closure `:Main.main` of the module
 * Main to hs_main(), and links it after the program's own modules, of which Main is the last one,
 * and before all libraries (GHC.Linker.Static,
 * GHC.SysTools.ExtraObj.mkExtraObjToLinkIntoBinary; 8.10 to 9.14). So it shows where the program's
 * own package ends, even where nothing has Main's name.
 */
#include <string.h>

#include "base/base.h"
#include "base/search.h"
#include "elf/elf.h"
#include "modules_read_priv.h"

/* The instructions of _start, and of musl's _start_c, that are looked at. */
#define START_CODE 96
/* GHC's main() copies defaultRtsConfig, a field at a time: 200 to 320 bytes. */
#define MAIN_CODE 400
/* No code is that near in front of main() but Haskell's: its last function, and what aligns main().
 */
#define MAX_BEFORE (64U << 10)

struct search {
	const struct mod_image *img;
	const struct mod_marks *marks;
	struct mod_main *ret;
};

static uint32_t word32(const struct mod_image *img, uint64_t vaddr)
{
	uint32_t v;

	memcpy(&v, img->text + (vaddr - img->text_start), sizeof(v));
	return v;
}

/* The static closure at vaddr whose code is shortly before `at`; NULL. */
static const struct mod_static *closure_before(const struct mod_marks *m, uint64_t vaddr,
					       uint64_t at)
{
	size_t i = search__first(m->n_statics, k, m->statics[k].data >= vaddr);

	if (i >= m->n_statics || m->statics[i].data != vaddr || m->statics[i].code >= at ||
	    at - m->statics[i].code > MAX_BEFORE)
		return NULL;
	return &m->statics[i];
}

/* A function's code at `at` refers to a closure whose code is before it: as a number, or from here.
 */
static bool is_main(const struct search *s, uint64_t at)
{
	uint64_t end = at + MAIN_CODE;

	if (at < s->img->text_start || end + 4 > s->img->text_end)
		return false;
	for (uint64_t p = at; p < end; p++) {
		uint32_t v = word32(s->img, p);
		const struct mod_static *c = closure_before(s->marks, v, at);

		if (!c)
			c = closure_before(s->marks, p + 4 + (uint64_t)(int64_t)(int32_t)v, at);
		if (c) {
			*s->ret = (struct mod_main){.at = at, .data = c->data};
			return true;
		}
	}
	return false;
}

/* Calls fn for each address that the code at `from` may have, until it returns true. */
static bool each_address(const struct search *s, uint64_t from,
			 bool (*fn)(const struct search *s, uint64_t to))
{
	uint64_t end = from + START_CODE;

	if (from < s->img->text_start || end + 4 > s->img->text_end)
		return false;
	for (uint64_t p = from; p < end; p++) {
		uint32_t v = word32(s->img, p);

		if (fn(s, v) || fn(s, p + 4 + (uint64_t)(int64_t)(int32_t)v))
			return true;
	}
	return false;
}

/* musl's _start calls the function that has main()'s address. */
static bool calls_main(const struct search *s, uint64_t at)
{
	return each_address(s, at, is_main);
}

void mod_main__find(const struct mod_image *img, const struct mod_marks *marks,
		    struct mod_main *ret)
{
	struct search s = {.img = img, .marks = marks, .ret = ret};
	uint64_t entry = elf__entry(img->elf);

	*ret = (struct mod_main){0};
	if (!each_address(&s, entry, is_main))
		each_address(&s, entry, calls_main);
}
