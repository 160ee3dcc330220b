/* SPDX-License-Identifier: GPL-2.0-or-later */
/* module_runs: ranges of code between functions of one module. */
#include "module_runs_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/search.h"
#include "modules_priv.h"
#include "zname_priv.h"

struct run {
	uint64_t start, end;
	uint32_t package, module; /* ids in `strings` */
};

struct module_runs {
	struct run *v; /* ascending; adjacent runs belong to different modules */
	size_t n, cap;
	struct strtab *strings;
};

int module_runs__new(struct module_runs **ret_runs)
{
	struct module_runs *runs = calloc(1, sizeof(*runs));

	if (!runs || strtab__new(&runs->strings)) {
		module_runs__free(runs);
		return -ENOMEM;
	}
	*ret_runs = runs;
	return 0;
}

void module_runs__free(struct module_runs *runs)
{
	if (!runs)
		return;
	free(runs->v);
	strtab__free(runs->strings);
	free(runs);
}

int module_runs__add(struct module_runs *runs, const char *symbol, uint64_t start, uint64_t end)
{
	struct run *last = runs->n ? &runs->v[runs->n - 1] : NULL;
	struct run run = {.start = start, .end = end};
	struct zname z;
	int err;

	/* C's Foo_bar may look like a label, except for the suffix */
	if (zname__decode(symbol, &z) || !z.is_haskell || z.truncated ||
	    (z.kind != ZNAME_INFO && z.kind != ZNAME_CON_INFO))
		return 0;
	zname__drop_hash(z.package);
	err = strtab__add(runs->strings, z.package, strlen(z.package), &run.package);
	if (!err)
		err = strtab__add(runs->strings, z.module, strlen(z.module), &run.module);
	if (err)
		return err;
	if (last && last->package == run.package && last->module == run.module) {
		last->end = MAX(last->end, end);
		return 0;
	}
	err = ARRAY_RESERVE(runs->v, runs->cap, runs->n + 1, MODULE_RUNS_MAX);
	if (!err)
		runs->v[runs->n++] = run;
	return err;
}

int module_runs__find(const struct module_runs *runs, uint64_t vaddr, struct modules_hit *ret_hit)
{
	size_t after = search__first(runs->n, i, runs->v[i].start > vaddr);
	const struct run *run = after ? &runs->v[after - 1] : NULL;

	if (!run || vaddr >= run->end)
		return -ENOENT;
	*ret_hit = (struct modules_hit){
		.package = strtab__get(runs->strings, run->package),
		.module = strtab__get(runs->strings, run->module),
		.base = run->start,
	};
	return 0;
}

uint64_t module_runs__base(const struct module_runs *runs, const char *package, const char *module)
{
	for (size_t i = 0; i < runs->n; i++)
		if (!strcmp(strtab__get(runs->strings, runs->v[i].module), module) &&
		    !strcmp(strtab__get(runs->strings, runs->v[i].package), package))
			return runs->v[i].start;
	return UINT64_MAX;
}

void module_runs__log(const struct module_runs *runs, const char *file)
{
	if (log__level() < LOG_LVL_DEBUG)
		return;
	for (size_t i = 0; i < runs->n; i++) {
		const struct run *r = &runs->v[i];
		const char *package = strtab__get(runs->strings, r->package);
		const char *module = strtab__get(runs->strings, r->module);

		log_debug("%s: code of %s:%s at 0x%llx, counted from 0x%llx, by archives", file,
			  *package ? package : "main", module, (unsigned long long)r->start,
			  (unsigned long long)module_runs__base(runs, package, module));
	}
}
