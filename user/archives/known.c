/* SPDX-License-Identifier: GPL-2.0-or-later */
/* known: lets a child find the functions, validates its result, and looks functions up. */
#include "known_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "archives.h"
#include "base/base.h"
#include "base/search.h"
#include "confine/confine.h"
#include "elf/symbols.h"
#include "files_priv.h"

/* All of GHC's own libraries take two seconds on an idle processor. */
#define TIMEOUT_MS 15000
#define CPU_S	   15
#define MEMORY	   (1ULL << 30)
/* The time to read an honest megabyte of archives. */
#define NS_PER_MB  5000000ULL
#define MAX_RANGES 64

struct archives_known {
	struct known_raw *v; /* ascending */
	char *strings;
	size_t n;
};

/* The head of the shared memory; the functions follow, then the strings. */
struct shared {
	uint32_t n, strings_len;
};

#define LIST_AT	    64
#define STRINGS_AT  (LIST_AT + (size_t)KNOWN_MAX * sizeof(struct known_raw))
#define SHARED_SIZE (STRINGS_AT + KNOWN_MAX_STRINGS)

_Static_assert(sizeof(struct shared) <= LIST_AT, "no room for the head");

struct job {
	const struct archives *archives;
	const struct elf_file *elf;
	bool profiled;
};

static size_t ranges_of(const struct elf_file *elf, struct code_range *ranges)
{
	struct elf_code codes[MAX_RANGES];
	size_t n = elf__code_ranges(elf, codes, MAX_RANGES), kept = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t len = codes[i].end - codes[i].start;
		const uint8_t *bytes = elf__at(elf, codes[i].start, len);

		if (bytes)
			ranges[kept++] = (struct code_range){bytes, codes[i].start, len};
	}
	return kept;
}

/* Runs in the child. */
static int run(void *ctx, void *shared)
{
	const struct job *job = ctx;
	struct shared *head = shared;
	struct code_range ranges[MAX_RANGES];
	const struct code code = {.ranges = ranges, .n = ranges_of(job->elf, ranges)};
	struct known_out out = {
		.v = (struct known_raw *)((char *)shared + LIST_AT),
		.strings = (char *)shared + STRINGS_AT,
	};
	int err = known__read(job->archives->files, job->archives->n, job->profiled, &code, &out);

	head->n = out.n;
	head->strings_len = out.strings_len;
	return err;
}

int archives__start(const struct archives *archives, const struct elf_file *elf, bool profiled,
		    struct confine_job **ret_job)
{
	const struct confine how = {.name = "safescoped:ar",
				    .memory = MEMORY,
				    .cpu_s = CPU_S,
				    .user = elf__user(elf),
				    .nice = 5};
	struct job job = {.archives = archives, .elf = elf, .profiled = profiled};

	/* the child has its own copy of `job` */
	return confine__start(&how, TIMEOUT_MS, run, &job, SHARED_SIZE, ret_job);
}

bool known__check(const struct known_raw *v, size_t n, const char *strings, size_t len)
{
	if (!len || strings[0] || strings[len - 1])
		return false;
	for (size_t i = 0; i < n; i++) {
		const struct known_raw *r = &v[i];

		if (r->section >= r->section_end || r->start < r->section ||
		    r->start >= r->section_end || r->size > r->section_end - r->start ||
		    r->name >= len || r->rts > 1 || r->pad)
			return false;
		if (i && (r->start <= r[-1].start ||
			  (r->section != r[-1].section && r->section < r[-1].section_end) ||
			  (r->section == r[-1].section && r->section_end != r[-1].section_end)))
			return false;
	}
	return true;
}

static int take(const struct shared *head, struct archives_known **ret_known)
{
	const struct known_raw *v = (const void *)((const char *)head + LIST_AT);
	const char *strings = (const char *)head + STRINGS_AT;
	struct archives_known *k;

	if (head->n > KNOWN_MAX || head->strings_len > KNOWN_MAX_STRINGS || !head->n ||
	    !known__check(v, head->n, strings, head->strings_len))
		return -EIO;
	k = calloc(1, sizeof(*k));
	if (!k)
		return -ENOMEM;
	k->n = head->n;
	k->v = malloc(k->n * sizeof(*v));
	k->strings = malloc(head->strings_len);
	if (!k->v || !k->strings) {
		archives_known__free(k);
		return -ENOMEM;
	}
	memcpy(k->v, v, k->n * sizeof(*v));
	memcpy(k->strings, strings, head->strings_len);
	*ret_known = k;
	return 0;
}

/* Logs the names, for comparison with the truth. */
static void log_known(const struct elf_file *elf, const struct archives_known *k)
{
	log_verbose("%s: %zu functions are from archives", elf__name(elf), k->n);
	if (log__level() < LOG_LVL_DEBUG)
		return;
	for (size_t i = 0; i < k->n; i++)
		log_debug("%s: by archives: 0x%llx %s", elf__name(elf),
			  (unsigned long long)k->v[i].start, k->strings + k->v[i].name);
}

int archives__await(const struct archives *archives, const struct elf_file *elf,
		    struct confine_job *job, struct archives_known **ret_known)
{
	uint64_t honest_ns = CONFINE_HONEST_NS + (archives->bytes >> 20) * NS_PER_MB;
	void *shared;
	int err = confine_job__await(job, elf__user(elf), honest_ns, &shared);

	if (err)
		return err;
	err = take(shared, ret_known);
	confine__free_out(shared, SHARED_SIZE);
	if (!err)
		log_known(elf, *ret_known);
	return err;
}

void archives_known__free(struct archives_known *known)
{
	if (!known)
		return;
	free(known->v);
	free(known->strings);
	free(known);
}

/* The number of functions that begin at vaddr or below. */
static size_t up_to(const struct archives_known *known, uint64_t vaddr)
{
	return search__first(known->n, i, known->v[i].start > vaddr);
}

static struct symbols_hit hit_of(const struct archives_known *known, const struct known_raw *r,
				 bool exact)
{
	const char *name = known->strings + r->name;

	return (struct symbols_hit){.name = name,
				    .name_len = strlen(name),
				    .start = r->start,
				    .size = r->size,
				    .exact = exact,
				    .type = r->type,
				    .bind = r->bind};
}

static int fill(const struct archives_known *known, const struct known_raw *r, bool exact,
		struct symbols_hit *ret_hit)
{
	struct symbols_hit hit = hit_of(known, r, exact);

	if (!*hit.name)
		return -ENOENT;
	*ret_hit = hit;
	return 0;
}

int archives_known__at(const struct archives_known *known, size_t i, struct symbols_hit *ret_hit,
		       uint64_t *ret_end)
{
	const struct known_raw *r = i < known->n ? &known->v[i] : NULL;

	if (!r)
		return -ENOENT;
	*ret_end = r->section_end;
	if (i + 1 < known->n)
		*ret_end = MIN(*ret_end, r[1].start);
	*ret_hit = hit_of(known, r, true);
	return 0;
}

int archives_known__lookup(const struct archives_known *known, uint64_t vaddr,
			   struct symbols_hit *ret_hit)
{
	size_t after = up_to(known, vaddr);
	const struct known_raw *r = after ? &known->v[after - 1] : NULL;

	if (!r || vaddr >= r->section_end)
		return -ENOENT;
	return fill(known, r, r->start == vaddr || vaddr - r->start < r->size, ret_hit);
}

bool archives_known__is_rts(const struct archives_known *known, uint64_t vaddr)
{
	size_t after = up_to(known, vaddr);

	return after && vaddr < known->v[after - 1].section_end && known->v[after - 1].rts;
}

int archives_known__after(const struct archives_known *known, uint64_t vaddr, size_t skip,
			  struct symbols_hit *ret_hit)
{
	size_t after = up_to(known, vaddr);
	const struct known_raw *r;

	if (skip >= known->n - after)
		return -ENOENT;
	r = &known->v[after + skip];
	if (r->section > vaddr)
		return -ENOENT;
	return fill(known, r, false, ret_hit);
}
