/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * modules_workers: the function closures of constructors. GHC emits them for all of a module's
 * constructors together, before its other bindings up to 9.0 and after them from 9.2 on
 * (GHC.CoreToStg.Prep, mkDataConWorkers). If they come first they show where the module begins.
 */
#include <string.h>

#include "base/search.h"
#include "modules_read_priv.h"

/* Size of one function: a heap check, stores of the fields, a return. */
#define WORKER_CODE	 160
#define TYPE_CONSTR_LAST 7
#define TYPE_FUN_STATIC	 14
/* This many in a row are no coincidence. */
#define SURELY 3

/* Whether vaddr is the code of one of these constructors. */
static bool is_con(const struct mod_image *img, const struct mod_cons *cons, uint64_t vaddr)
{
	uint32_t type;

	if (vaddr < cons->start || vaddr >= cons->end)
		return false;
	type = mod_image__type(img, vaddr);
	return type >= 1 && type <= TYPE_CONSTR_LAST;
}

/* Whether the function at `code` allocates one of these constructors. */
static bool is_worker(const struct mod_image *img, const struct mod_cons *cons, uint64_t code)
{
	if (mod_image__type(img, code) != TYPE_FUN_STATIC)
		return false;
	for (uint64_t at = code; at < code + WORKER_CODE && at + 4 < cons->start; at++) {
		int32_t v;

		memcpy(&v, img->text + (at - img->text_start), sizeof(v));
		if (is_con(img, cons, (uint32_t)v) ||
		    is_con(img, cons, at + 4 + (uint64_t)(int64_t)v))
			return true;
		/* the next procedure */
		if (at > code && mod_image__is_static(mod_image__type(img, at)))
			return false;
	}
	return false;
}

/* How many consecutive closures, from the one at `data` on, belong to these constructors. */
static uint32_t run_from(const struct mod_image *img, const struct mod_cons *cons, uint64_t data)
{
	size_t w = mod_image__word(img, data);
	uint32_t n = 0;

	for (; w < img->n_words && n < cons->n; w++, n++) {
		uint64_t info = img->words[w];

		if (info >= cons->start ? !is_con(img, cons, info) : !is_worker(img, cons, info))
			break;
	}
	return n;
}

int mod_workers__behind(const struct mod_image *img, const struct mod_marks *marks,
			const struct mod_cons *cons)
{
	const struct mod_static *s = marks->statics;
	size_t i = search__first(marks->n_statics, k, s[k].code >= cons->start);

	if (cons->n < SURELY || i < SURELY)
		return -1;
	for (size_t k = 1; k <= SURELY; k++)
		if (!is_worker(img, cons, s[i - k].code))
			return 0;
	return 1;
}

bool mod_workers__find(const struct mod_image *img, const struct mod_marks *marks,
		       const struct mod_cons *cons, uint64_t from, struct mod_workers *ret_workers)
{
	const struct mod_static *s = marks->statics;
	size_t i = search__first(marks->n_statics, k, s[k].code >= from);

	for (; i < marks->n_statics && s[i].code < cons->start; i++) {
		uint64_t first = s[i].data;
		size_t w = mod_image__word(img, first);
		uint32_t n;

		if (s[i].code < from || !is_worker(img, cons, s[i].code))
			continue;
		/* constructors without fields have no function, only a closure */
		while (w > 0 && is_con(img, cons, img->words[w - 1]))
			w--;
		first = img->data_start + 8 * w;
		n = run_from(img, cons, first);
		if (n < cons->n && n < SURELY)
			continue;
		*ret_workers = (struct mod_workers){
			.code = s[i].code - mod_image__table_size(img, TYPE_FUN_STATIC),
			.data = first,
			.n = n,
		};
		return true;
	}
	return false;
}
