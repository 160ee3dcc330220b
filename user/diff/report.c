/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads a JSON report, which is untrusted, in a process without rights. The result is one struct
 * with room for everything, and is checked.
 */
#include <errno.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/base.h"
#include "confine/confine.h"
#include "diff.h"

#define TIMEOUT_MS 120000
/* cJSON needs about twenty times the size of the text. */
#define MEMORY ((uint64_t)8 << 30)
/* The largest count or time, so that sums over a whole report do not overflow. */
#define MAX_VALUE ((uint64_t)1 << 48)

struct source {
	const char *json;
	size_t len;
};

/* ── in the process that reads ───────────────────────────────────────────────────────────── */

static uint64_t value_of(const cJSON *item)
{
	if (!cJSON_IsNumber(item) || !(item->valuedouble > 0))
		return 0;
	return item->valuedouble < (double)MAX_VALUE ? (uint64_t)item->valuedouble : MAX_VALUE;
}

static uint64_t number(const cJSON *object, const char *key)
{
	return value_of(cJSON_GetObjectItemCaseSensitive(object, key));
}

static const char *string(const cJSON *object, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

	return cJSON_IsString(item) ? item->valuestring : "";
}

static void copy(char *to, size_t size, const char *from)
{
	size_t len = strnlen(from, size - 1);

	/* do not cut a character in half */
	while (from[len] && len && ((unsigned char)from[len] & 0xc0) == 0x80)
		len--;
	memcpy(to, from, len);
	to[len] = '\0';
}

size_t diff__place(const char *name)
{
	const char *plus = strrchr(name, '+');

	if (!plus || strncmp(plus, "+0x", 3) != 0 || !plus[3] ||
	    plus[3 + strspn(plus + 3, "0123456789abcdef")])
		return 0;
	return (size_t)(plus - name);
}

/* Sets the module of code without a name to its file. */
static void add_file(struct diff_function *f)
{
	char file[sizeof(f->name)];
	size_t len = diff__place(f->name);

	if (*f->module || f->kind != DIFF_FOREIGN || !len)
		return;
	memcpy(file, f->name, len);
	file[len] = '\0';
	copy(f->module, sizeof(f->module), file);
}

static void read_lanes(struct diff_program *p, const cJSON *target)
{
	const cJSON *lane;

	cJSON_ArrayForEach (lane, cJSON_GetObjectItemCaseSensitive(target, "lanes")) {
		const cJSON *states = cJSON_GetObjectItemCaseSensitive(lane, "states");

		if (strcmp(string(lane, "kind"), "thread") != 0)
			continue;
		p->cpu_ns += number(lane, "cpu_ns");
		p->preempted_ns += number(states, "preempted");
		p->gc_cpu_ns += number(states, "gc_work");
	}
}

/* Reads functions into a list with room for `max`. False: there are more. */
static bool read_functions(struct diff_function *list, uint32_t *n, uint32_t max, uint32_t program,
			   const cJSON *functions, const char *sum)
{
	static const char *const kinds[DIFF_KINDS] = {"haskell", "foreign", "rts", "gc", "kernel"};
	const cJSON *f;

	cJSON_ArrayForEach (f, functions) {
		struct diff_function *to = &list[*n];
		uint32_t kind = 0;

		while (kind < DIFF_KINDS && strcmp(string(f, "kind"), kinds[kind]) != 0)
			kind++;
		if (kind == DIFF_KINDS || !number(f, sum))
			continue;
		if (*n == max)
			return false;
		++*n;
		to->program = program;
		to->kind = kind;
		copy(to->name, sizeof(to->name), string(f, "name"));
		copy(to->module, sizeof(to->module), string(f, "module"));
		/* the runtime's Cmm code, as in other outputs */
		if (!strcmp(string(f, "package"), "rts"))
			copy(to->module, sizeof(to->module), DIFF_MODULE_RTS);
		add_file(to);
		to->samples = number(f, "self_samples");
		to->sum = number(f, sum);
	}
	return true;
}

static void read_allocation(struct diff_report *r, uint32_t program, const cJSON *target)
{
	const cJSON *alloc = cJSON_GetObjectItemCaseSensitive(target, "allocation"), *reason;
	struct diff_program *p = &r->programs[program];

	p->alloc_in_part |= number(alloc, "observed_ns") != 0 ||
			    cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(alloc, "exact"));
	p->alloc_bytes += number(alloc, "bytes");
	p->alloc_sampled += number(alloc, "sampled_bytes");
	p->alloc_samples += number(alloc, "samples");
	p->large_bytes += number(alloc, "large_bytes");
	p->large_of_bytes += number(alloc, "large_of_bytes");
	cJSON_ArrayForEach (reason, cJSON_GetObjectItemCaseSensitive(alloc, "collections"))
		p->alloc_gcs += value_of(reason);
	r->cut |=
		!read_functions(r->allocators, &r->n_allocators, DIFF_MAX_ALLOCATORS, program,
				cJSON_GetObjectItemCaseSensitive(alloc, "functions"), "self_bytes");
}

/* The share of the time in which calls were not counted, in millionths. Older reports do not have
 * it. */
static uint32_t unseen_of(const cJSON *call)
{
	const cJSON *share = cJSON_GetObjectItemCaseSensitive(call, "observed_share");

	if (!cJSON_IsNumber(share) || !(share->valuedouble < 1))
		return 0;
	return share->valuedouble > 0 ? (uint32_t)((1 - share->valuedouble) * DIFF_WHOLE)
				      : DIFF_WHOLE;
}

static void read_calls(struct diff_report *r, uint32_t program, const cJSON *target, bool safe)
{
	const cJSON *c;

	cJSON_ArrayForEach (
		c, cJSON_GetObjectItemCaseSensitive(target, safe ? "safe_calls" : "unsafe_calls")) {
		struct diff_call *to = &r->calls[r->n_calls];

		if (r->n_calls == DIFF_MAX_CALLS) {
			r->cut = true;
			return;
		}
		r->n_calls++;
		to->program = program;
		to->safe = safe;
		copy(to->function, sizeof(to->function), string(c, "function"));
		copy(to->caller, sizeof(to->caller), string(c, "caller"));
		to->calls = number(c, "calls");
		to->cpu_ns = number(c, "cpu_ns");
		to->p50_ns = number(c, "p50_ns");
		to->samples = number(c, "samples");
		if (!safe)
			continue;
		to->unseen = to->unsure = unseen_of(c);
		/* an unknown number of calls was missed */
		if (!to->unseen && cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(c, "exact")))
			to->unsure = DIFF_WHOLE;
		r->programs[program].calls_unsure =
			MAX(r->programs[program].calls_unsure, to->unsure);
	}
}

/* Collections that were not seen are assumed to have been as long as the others; if their number is
 * not known, the process's collections are left out. */
static void add_gcs(struct diff_program *p, const cJSON *gc)
{
	uint64_t n = number(gc, "count"), missed = number(gc, "missed");
	double each = (double)number(gc, "pause_ns") / (double)MAX(n, 1U);

	if (cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(gc, "exact")) && !missed) {
		p->gcs_missed |= number(gc, "observed_count") > 0;
		return;
	}
	p->gcs += n + missed;
	p->gc_pause_ns += (uint64_t)(each * (double)(n + missed));
}

/* Drops allocation that covers only a part of a session, which cannot be compared. */
static void leave_out_parts(struct diff_report *r)
{
	for (uint32_t i = 0; i < r->n_programs; i++) {
		struct diff_program *p = &r->programs[i];

		if (p->alloc_in_part)
			p->alloc_bytes = p->alloc_sampled = p->alloc_samples = p->alloc_gcs =
				p->large_bytes = p->large_of_bytes = 0;
	}
}

/* The time from the first to the last moment at which any thread was seen, as in the text report.
 * The lane that sums up many ended threads is skipped. 0: there is none. */
static uint64_t seen_ns(const cJSON *target)
{
	const cJSON *lane;
	uint64_t start = UINT64_MAX, end = 0;

	cJSON_ArrayForEach (lane, cJSON_GetObjectItemCaseSensitive(target, "lanes")) {
		if (strcmp(string(lane, "kind"), "thread") != 0 || !number(lane, "tid"))
			continue;
		start = MIN(start, number(lane, "start_ns"));
		end = MAX(end, number(lane, "end_ns"));
	}
	return end > start ? end - start : 0;
}

static void read_target(struct diff_report *r, const cJSON *target)
{
	const cJSON *gc = cJSON_GetObjectItemCaseSensitive(target, "gc");
	const cJSON *cost = cJSON_GetObjectItemCaseSensitive(target, "cost");
	char comm[sizeof(r->programs[0].comm)];
	struct diff_program *p;
	uint64_t ns = seen_ns(target);
	double paused;
	uint32_t i = 0;

	copy(comm, sizeof(comm), string(target, "comm"));
	while (i < r->n_programs && strcmp(r->programs[i].comm, comm) != 0)
		i++;
	if (i == DIFF_MAX_PROGRAMS) {
		r->cut = true;
		return;
	}
	r->n_programs = MAX(r->n_programs, i + 1);
	p = &r->programs[i];
	memcpy(p->comm, comm, sizeof(comm));
	if (!p->processes++)
		copy(p->build_id, sizeof(p->build_id), string(target, "build_id"));
	else if (strcmp(p->build_id, string(target, "build_id")) != 0)
		p->build_id[0] = '\0';
	p->parallel |= number(target, "capabilities") > 1;
	add_gcs(p, gc);
	/* for calls that were never seen as well */
	paused = (double)number(cost, "probes_paused_ns") / (double)MAX(ns ?: r->duration_ns, 1U);
	p->calls_unsure = MAX(p->calls_unsure, (uint32_t)(MIN(paused, 1) * DIFF_WHOLE));
	read_lanes(p, target);
	r->cut |= !read_functions(r->functions, &r->n_functions, DIFF_MAX_FUNCTIONS, i,
				  cJSON_GetObjectItemCaseSensitive(target, "functions"), "self_ns");
	read_allocation(r, i, target);
	read_calls(r, i, target, true);
	read_calls(r, i, target, false);
}

static int read_report(void *ctx, void *out)
{
	const struct source *source = ctx;
	struct diff_report *r = out;
	cJSON *root = cJSON_ParseWithLength(source->json, source->len);
	const cJSON *session = cJSON_GetObjectItemCaseSensitive(root, "session"), *target;
	const cJSON *targets = cJSON_GetObjectItemCaseSensitive(root, "targets");
	uint64_t ns;

	if (!cJSON_IsObject(cJSON_GetObjectItemCaseSensitive(root, "safescope")) ||
	    !cJSON_IsArray(targets)) {
		cJSON_Delete(root);
		return -EBADMSG;
	}
	r->duration_ns = number(session, "duration_ns");
	r->frequency_hz = number(session, "frequency_hz");
	cJSON_ArrayForEach (target, targets)
		read_target(r, target);
	/* the session began before the probes were attached, and may have outlasted the process */
	ns = cJSON_GetArraySize(targets) == 1 ? seen_ns(cJSON_GetArrayItem(targets, 0)) : 0;
	r->duration_ns = ns ?: r->duration_ns;
	leave_out_parts(r);
	cJSON_Delete(root);
	return 0;
}

/* ── here ────────────────────────────────────────────────────────────────────────────────── */

static void limit(uint64_t *value)
{
	*value = MIN(*value, MAX_VALUE);
}

static int check_functions(const struct diff_report *r, struct diff_function *list, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct diff_function *f = &list[i];

		f->name[sizeof(f->name) - 1] = f->module[sizeof(f->module) - 1] = '\0';
		limit(&f->samples);
		limit(&f->sum);
		if (f->program >= r->n_programs || f->kind >= DIFF_KINDS)
			return -EIO;
	}
	return 0;
}

/* Checks the struct, in which nothing is trusted. */
static int check(struct diff_report *r)
{
	uint64_t cpu_ns = 0;

	if (r->n_programs > DIFF_MAX_PROGRAMS || r->n_functions > DIFF_MAX_FUNCTIONS ||
	    r->n_allocators > DIFF_MAX_ALLOCATORS || r->n_calls > DIFF_MAX_CALLS)
		return -EIO;
	for (uint32_t i = 0; i < r->n_programs; i++) {
		struct diff_program *p = &r->programs[i];

		p->comm[sizeof(p->comm) - 1] = p->build_id[sizeof(p->build_id) - 1] = '\0';
		p->calls_unsure = MIN(p->calls_unsure, (uint32_t)DIFF_WHOLE);
		limit(&p->cpu_ns);
		limit(&p->preempted_ns);
		limit(&p->gc_cpu_ns);
		limit(&p->gcs);
		limit(&p->gc_pause_ns);
		limit(&p->alloc_bytes);
		limit(&p->alloc_sampled);
		limit(&p->alloc_samples);
		limit(&p->alloc_gcs);
		limit(&p->large_bytes);
		limit(&p->large_of_bytes);
		cpu_ns += p->cpu_ns;
	}
	if (check_functions(r, r->functions, r->n_functions) ||
	    check_functions(r, r->allocators, r->n_allocators))
		return -EIO;
	for (uint32_t i = 0; i < r->n_calls; i++) {
		struct diff_call *c = &r->calls[i];

		c->function[sizeof(c->function) - 1] = c->caller[sizeof(c->caller) - 1] = '\0';
		limit(&c->calls);
		limit(&c->cpu_ns);
		limit(&c->p50_ns);
		limit(&c->samples);
		c->unseen = MIN(c->unseen, (uint32_t)DIFF_WHOLE);
		c->unsure = MIN(c->unsure, (uint32_t)DIFF_WHOLE);
		if (c->program >= r->n_programs)
			return -EIO;
	}
	return cpu_ns ? 0 : -EINVAL;
}

int diff_report__read(const char *json, size_t len, struct diff_report **ret_report)
{
	struct source source = {.json = json, .len = len};
	const struct confine by = {
		.name = "safescoped:diff", .memory = MEMORY, .cpu_s = 120, .user = CONFINE_NOBODY};
	void *out;
	int err;

	if (len > DIFF_MAX_REPORT)
		return -EFBIG;
	/* blocking is fine, as nothing else waits meanwhile */
	err = confine__aside(&by, TIMEOUT_MS, TIMEOUT_MS * 1000000ULL, read_report, &source,
			     sizeof(struct diff_report), &out);
	if (err)
		return err;
	err = check(out);
	if (err)
		diff_report__free(out);
	else
		*ret_report = out;
	return err;
}

void diff_report__free(struct diff_report *report)
{
	if (report)
		confine__free_out(report, sizeof(*report));
}
