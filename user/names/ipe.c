/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ipe: starts a child that reads the provenance, checks its result, and looks up addresses. */
#include "ipe_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/search.h"
#include "ipe_read_priv.h"
#include "process/mem.h"
#include "rts/ghc_version.h"

#define MAX_RANGES 4096

struct ipe {
	struct ipe_raw *entries; /* ascending by info */
	char *strings;		 /* the last byte is NUL */
	uint32_t n, strings_len;
	bool truncated;
};

struct ranges {
	struct ipe_range *v;
	size_t n, cap;
};

struct job {
	pid_t pid;
	const struct images *images;
	const struct ipe_layout *layout;
	struct ranges data, code, strings;
};

/* At the start of the child's shared memory; followed by the entries, then the strings. */
struct shared {
	uint32_t n, strings_len;
	uint32_t truncated;
	uint32_t _pad;
};

#define ENTRIES_AT  64
#define STRINGS_AT  (ENTRIES_AT + (size_t)IPE_MAX_ENTRIES * sizeof(struct ipe_raw))
#define SHARED_SIZE (STRINGS_AT + IPE_MAX_STRINGS)

_Static_assert(sizeof(struct shared) <= ENTRIES_AT, "no room for the head");

static int add_range(struct ranges *r, uint64_t start, uint64_t end)
{
	int err;

	if (r->n && r->v[r->n - 1].end == start) {
		r->v[r->n - 1].end = end;
		return 0;
	}
	err = ARRAY_RESERVE(r->v, r->cap, r->n + 1, MAX_RANGES);
	if (err)
		return err == -E2BIG ? 0 : err;
	r->v[r->n++] = (struct ipe_range){start, end};
	return 0;
}

static const struct image *image_named(const struct images *images, const char *path)
{
	for (size_t i = 0; i < images->n; i++)
		if (strcmp(images->images[i]->name, path) == 0)
			return images->images[i];
	return NULL;
}

/*
 * Sorts the mappings of executable files by what they may contain: buffers, info tables, strings.
 */
static int sort_maps(struct job *job)
{
	const struct proc_maps *maps = &job->images->proc;
	const struct image *image = NULL;
	int err = 0;

	for (size_t i = 0; i < maps->n && !err; i++) {
		const struct proc_map *m = &maps->maps[i];

		if (!m->path[0] || !m->read)
			continue;
		if (!image || strcmp(image->name, m->path) != 0)
			image = image_named(job->images, m->path);
		if (!image)
			continue;
		if (m->exec)
			err = add_range(&job->code, m->start, m->end);
		else if (m->write)
			err = add_range(&job->data, m->start, m->end);
		else
			err = add_range(&job->strings, m->start, m->end);
		/* a linker may put constants and code into one segment */
		if (!err && m->exec)
			err = add_range(&job->strings, m->start, m->end);
	}
	return err;
}

/* Reads from the files if the process has ended: same contents, unless the file is
 * position-independent. */
static int read_file(const struct images *images, uint64_t addr, void *buf, size_t len)
{
	for (size_t i = 0; i < images->n; i++) {
		const struct image *image = images->images[i];
		const uint8_t *p;

		if (!image->elf || elf__is_pie_or_dso(image->elf))
			continue;
		p = elf__at(image->elf, addr - image->bias, len);
		if (p) {
			memcpy(buf, p, len);
			return 0;
		}
	}
	return -EFAULT;
}

static int read_memory(void *ctx, uint64_t addr, void *buf, size_t len)
{
	const struct job *job = ctx;
	int err = mem__read(job->pid, addr, buf, len);

	return err == -ESRCH ? read_file(job->images, addr, buf, len) : err;
}

/* In the child. */
static int run(void *ctx, void *shared)
{
	struct job *job = ctx;
	struct shared *head = shared;
	const struct ipe_source source = {
		.read = read_memory,
		.ctx = job,
		.data = job->data.v,
		.n_data = job->data.n,
		.code = job->code.v,
		.n_code = job->code.n,
		.strings = job->strings.v,
		.n_strings = job->strings.n,
	};
	struct ipe_out out = {
		.max_entries = IPE_MAX_ENTRIES,
		.max_strings = IPE_MAX_STRINGS,
		.entries = (struct ipe_raw *)((char *)shared + ENTRIES_AT),
		.strings = (char *)shared + STRINGS_AT,
	};
	int err = ipe_read(job->layout, &source, &out);

	head->n = out.n;
	head->strings_len = out.strings_len;
	head->truncated = out.truncated;
	return err;
}

/* Strings out of bounds are replaced by "". */
static void check_entry(struct ipe_raw *e, uint32_t strings_len)
{
	uint32_t *const offsets[] = {&e->table, &e->label, &e->module,
				     &e->unit,	&e->file,  &e->span};

	for (size_t i = 0; i < ARRAY_SIZE(offsets); i++)
		if (*offsets[i] >= strings_len)
			*offsets[i] = 0;
}

static int take(const void *shared, struct ipe **ret_ipe)
{
	const struct shared *head = shared;
	uint32_t n = MIN(head->n, IPE_MAX_ENTRIES), len = MIN(head->strings_len, IPE_MAX_STRINGS);
	struct ipe *ipe;

	if (!n || !len)
		return -ENOENT;
	ipe = calloc(1, sizeof(*ipe));
	if (!ipe)
		return -ENOMEM;
	ipe->n = n;
	ipe->strings_len = len;
	ipe->truncated = head->truncated;
	ipe->entries = malloc((size_t)n * sizeof(*ipe->entries));
	ipe->strings = malloc(len);
	if (!ipe->entries || !ipe->strings) {
		ipe__free(ipe);
		return -ENOMEM;
	}
	memcpy(ipe->entries, (const char *)shared + ENTRIES_AT, (size_t)n * sizeof(*ipe->entries));
	memcpy(ipe->strings, (const char *)shared + STRINGS_AT, len);
	ipe->strings[0] = ipe->strings[len - 1] = '\0';
	for (uint32_t i = 0; i < n; i++)
		check_entry(&ipe->entries[i], len);
	*ret_ipe = ipe;
	return 0;
}

int ipe__new(pid_t pid, const char *ghc_version, const struct images *images, int timeout_ms,
	     struct ipe **ret_ipe)
{
	struct job job = {.pid = pid, .images = images, .layout = ipe_layout__find(ghc_version)};
	void *shared;
	int err;

	if (!job.layout)
		return ghc_version__of(ghc_version) < GHC_VERSION(9, 2, 0) ? -ENOENT : -ENOTSUP;
	err = sort_maps(&job);
	if (!err)
		err = mem__guard(pid, GUARD_MEMORY, timeout_ms, run, &job, SHARED_SIZE, &shared);
	free(job.data.v);
	free(job.code.v);
	free(job.strings.v);
	if (err)
		return err;
	err = take(shared, ret_ipe);
	mem__guard_free(shared, SHARED_SIZE);
	return err;
}

void ipe__free(struct ipe *ipe)
{
	if (!ipe)
		return;
	free(ipe->entries);
	free(ipe->strings);
	free(ipe);
}

size_t ipe__count(const struct ipe *ipe)
{
	return ipe->n;
}

bool ipe__truncated(const struct ipe *ipe)
{
	return ipe->truncated;
}

static void fill(const struct ipe *ipe, const struct ipe_raw *raw, struct ipe_entry *ret)
{
	*ret = (struct ipe_entry){
		.info = raw->info,
		.table = ipe->strings + raw->table,
		.label = ipe->strings + raw->label,
		.module = ipe->strings + raw->module,
		.unit = ipe->strings + raw->unit,
		.file = ipe->strings + raw->file,
		.span = ipe->strings + raw->span,
		.is_return = raw->is_return,
	};
}

int ipe__find(const struct ipe *ipe, uint64_t addr, uint64_t symbol, struct ipe_entry *ret_entry,
	      struct ipe_entry *ret_closure)
{
	const struct ipe_raw *e = ipe->entries;
	size_t after = search__first(ipe->n, k, e[k].info > addr), i, holder;

	if (after == 0)
		return -ENOENT;
	i = after - 1;
	/* other code follows a module's last info table */
	if (symbol ? e[i].info < symbol
		   : e[i].info != addr && (after == ipe->n || e[after].node != e[i].node))
		return -ENOENT;
	for (holder = i; e[holder].is_return && holder > 0 && e[holder - 1].node == e[i].node;)
		holder--;
	fill(ipe, &e[i], ret_entry);
	fill(ipe, &e[e[holder].is_return ? i : holder], ret_closure);
	return 0;
}
