/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Confirms the finder's addresses and the layout in the live process. */
#include "check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check_alloc_priv.h"
#include "check_caps_priv.h"
#include "check_tls_priv.h"
#include "confine/confine.h"
#include "process/mem.h"

/* rts/include/rts/storage/ClosureTypes.h, the same numbers from 8.10 to 9.14 */
#define CLOSURE_TSO   52
#define CLOSURE_STACK 53

/* The process runs while it is read, so a mismatch counts only if it persists. */
#define TRIES	    40
#define TRY_WAIT_NS 500000

struct check_ctx {
	pid_t pid;
	const struct rts *rts;
	const struct images *images;
	struct layout layouts[LAYOUT_VARIANTS];
	bool have[LAYOUT_VARIANTS];
	bool patient;
	struct task_list *list;
};

/* Type of the closure at addr; -1 if it or its info table cannot be read (or the closure is
 * forwarded). */
static int closure_type(pid_t pid, uint64_t addr)
{
	uint64_t info;
	uint32_t type;

	if (!addr || (addr & 7) || mem__read_u64(pid, addr, &info) < 0)
		return -1;
	if (!info || (info & 7) || mem__read_u32(pid, info - 8, &type) < 0)
		return -1;
	return (int)type;
}

bool check__tso(pid_t pid, const struct layout *l, uint64_t tso)
{
	uint64_t stack, sp, low;
	uint32_t words;

	if (closure_type(pid, tso) != CLOSURE_TSO ||
	    mem__read_u64(pid, tso + l->wire.tso_stackobj, &stack) < 0 ||
	    closure_type(pid, stack) != CLOSURE_STACK ||
	    mem__read_u32(pid, stack + l->wire.stack_size, &words) < 0 ||
	    mem__read_u64(pid, stack + l->wire.stack_sp, &sp) < 0)
		return false;
	low = stack + l->wire.stack_stack;
	return sp >= low && sp <= low + 8ULL * words && (sp & 7) == 0;
}

static void add_task(struct task_list *list, uint64_t task)
{
	if (!task || (task & 7) || list->n == CHECK_MAX_TASKS)
		return;
	for (uint32_t i = 0; i < list->n; i++)
		if (list->tasks[i] == task)
			return;
	list->tasks[list->n++] = task;
}

/* Follows a list whose elements have their link at offset `next`, for at most CHECK_MAX_TASKS
 * elements. */
static void add_list(pid_t pid, struct task_list *list, uint64_t head, uint16_t next)
{
	for (uint32_t i = 0; head && i < CHECK_MAX_TASKS; i++) {
		add_task(list, head);
		if (mem__read_u64(pid, head + next, &head) < 0)
			return;
	}
}

static void add_of_cap(pid_t pid, const struct layout *l, uint64_t cap, struct task_list *list)
{
	uint64_t value, incall;

	if (mem__read_u64(pid, cap + l->wire.cap_running_task, &value) == 0)
		add_task(list, value);
	if (l->cap_spare_workers && mem__read_u64(pid, cap + l->cap_spare_workers, &value) == 0)
		add_list(pid, list, value, l->task_next);
	if (l->cap_returning_tasks && mem__read_u64(pid, cap + l->cap_returning_tasks, &value) == 0)
		add_list(pid, list, value, l->task_next);
	if (mem__read_u64(pid, cap + l->cap_suspended_ccalls, &incall) < 0)
		return;
	for (uint32_t i = 0; incall && i < CHECK_MAX_TASKS; i++) {
		if (mem__read_u64(pid, incall + l->wire.incall_task, &value) == 0)
			add_task(list, value);
		if (mem__read_u64(pid, incall + l->incall_next, &incall) < 0)
			break;
	}
}

/*
 * All Tasks are in one doubly linked list (rts/Task.h: all_next, then all_prev): from any of them
 * all others can be reached, even if `all_tasks` has no symbol.
 */
static void add_neighbours(pid_t pid, const struct layout *l, struct task_list *list)
{
	for (uint32_t i = 0; i < list->n; i++) {
		uint64_t links[2];

		if (mem__read(pid, list->tasks[i] + l->task_all_next, links, sizeof(links)) < 0)
			continue;
		add_task(list, links[0]);
		add_task(list, links[1]);
	}
}

void check__tasks(pid_t pid, const struct rts *rts, const struct layout *layout,
		  const uint64_t *caps, uint32_t n_caps, struct task_list *ret_list)
{
	uint64_t head;

	ret_list->n = 0;
	if (rts->all_tasks.addr && mem__read_u64(pid, rts->all_tasks.addr, &head) == 0)
		add_list(pid, ret_list, head, layout->task_all_next);
	for (uint32_t i = 0; i < n_caps; i++)
		add_of_cap(pid, layout, caps[i], ret_list);
	add_neighbours(pid, layout, ret_list);
}

/*
 * Task.incall.task must be the Task itself. A Task may have no InCall at the moment, which neither
 * confirms nor refutes the layout.
 */
static bool task_agrees(pid_t pid, const struct layout *l, uint64_t task)
{
	uint64_t incall, back;

	return mem__read_u64(pid, task + l->wire.task_incall, &incall) == 0 && incall &&
	       (incall & 7) == 0 && mem__read_u64(pid, incall + l->wire.incall_task, &back) == 0 &&
	       back == task;
}

/* How many Tasks confirm this layout. Fills in the result's fields on Tasks. */
static uint32_t try_tasks(struct check_ctx *c, const struct layout *l, struct check_result *r)
{
	struct task_list *list = c->list;
	struct check_tls tls = {0};
	uint32_t agree = 0;

	check__tasks(c->pid, c->rts, l, r->caps, r->n_caps, list);
	for (uint32_t i = 0; i < list->n; i++)
		if (task_agrees(c->pid, l, list->tasks[i]))
			list->tasks[agree++] = list->tasks[i];
	list->n = agree;
	if (c->rts->threaded)
		check__tls(c->pid, c->rts, l, list->tasks, agree, &tls);
	r->tasks = agree;
	/* A Task whose thread has ended keeps its id, so not every one has to agree. */
	r->tls_checked = tls.agree * 2 > agree;
	r->my_task_tls = r->tls_checked ? tls.offset : 0;
	r->my_task_module = r->tls_checked ? tls.module : 0;
	return c->rts->threaded && (tls.agree || c->rts->tls_known) ? tls.agree : agree;
}

/* Checks the TSOs that the capabilities and suspended calls refer to: current ones must be TSOs. */
static bool check_tsos(struct check_ctx *c, const struct layout *l, struct check_result *r)
{
	r->tsos = 0;
	for (uint32_t i = 0; i < r->n_caps; i++) {
		uint64_t slot = r->caps[i] + l->wire.cap_current_tso, before, after, incall;

		if (mem__read_u64(c->pid, slot, &before) < 0)
			return false;
		if (before && !check__tso(c->pid, l, before)) {
			/* Not an error if the capability holds another one by now: the TSO may
			 * have moved in between. */
			if (mem__read_u64(c->pid, slot, &after) < 0 || after == before)
				return false;
		} else if (before) {
			r->tsos++;
		}
		if (mem__read_u64(c->pid, r->caps[i] + l->cap_suspended_ccalls, &incall) < 0)
			return false;
		for (uint32_t n = 0; incall && n < 64; n++) {
			slot = incall + l->wire.incall_suspended_tso;
			if (mem__read_u64(c->pid, slot, &before) == 0 && before &&
			    check__tso(c->pid, l, before))
				r->tsos++;
			if (mem__read_u64(c->pid, incall + l->incall_next, &incall) < 0)
				break;
		}
	}
	return true;
}

/*
 * Without -threaded a Task exists only during hs_init and calls of Haskell (rts/RtsAPI.c,
 * rts_unlock). While the C code that called hs_init is outside of them, the capability still points
 * at the last one, which was freed.
 */
static bool has_no_task(const struct check_ctx *c)
{
	uint64_t head;

	return !c->rts->threaded && c->rts->all_tasks.addr &&
	       mem__read_u64(c->pid, c->rts->all_tasks.addr, &head) == 0 && head == 0;
}

/* One look at the process. */
static void look(struct check_ctx *c, struct check_result *r)
{
	struct check_result best = {.verdict = CHECK_FAILED};
	uint32_t most = 0;

	snprintf(r->why, sizeof(r->why), "no layout for this RTS way");
	for (int v = 0; v < LAYOUT_VARIANTS; v++) {
		const struct layout *l = &c->layouts[v];
		uint32_t n;

		if (!c->have[v])
			continue;
		r->verdict = check__caps(c->pid, c->rts, c->images, l, r);
		if (r->verdict != CHECK_OK)
			return;
		n = try_tasks(c, l, r);
		if (n > most) {
			most = n;
			best = *r;
			best.variant = (enum layout_variant)v;
			best.layout = *l;
		}
	}
	if (most == 0) {
		/* In the middle of hs_init there are capabilities, but no thread to run in them
		 * yet. */
		bool unused = has_no_task(c) || !check__has_heap(c->images);

		r->verdict = c->list->n == 0 && unused ? CHECK_NOT_READY : CHECK_FAILED;
		snprintf(r->why, sizeof(r->why),
			 "no Task confirms the offsets (%u capabilities, %u Tasks checked)",
			 r->n_caps, c->list->n);
		return;
	}
	*r = best;
	r->verdict = CHECK_OK;
	if (!check_tsos(c, &r->layout, r)) {
		r->verdict = CHECK_FAILED;
		snprintf(r->why, sizeof(r->why),
			 "rCurrentTSO of a capability is not a TSO with a STACK");
	}
}

/* The first member of rtsConfig (rts/include/RtsAPI.h). */
static uint8_t read_rts_opts(const struct check_ctx *c)
{
	uint32_t opts;

	if (!c->rts->config.addr || mem__read_u32(c->pid, c->rts->config.addr, &opts) < 0)
		return 0;
	return opts < RTS_OPTS_KINDS ? (uint8_t)(opts + 1) : 0;
}

/* Runs in the child. */
static int run(void *ctx, void *out)
{
	struct check_ctx *c = ctx;
	struct check_result *r = out;
	struct timespec wait = {.tv_nsec = TRY_WAIT_NS};
	uint64_t word;
	int err;

	c->list = calloc(1, sizeof(*c->list));
	if (!c->list)
		return -ENOMEM;
	/* Checks that the process may be read at all; any mapping will do. */
	for (size_t i = 0; i < c->images->n_maps; i++) {
		err = mem__read_u64(c->pid, c->images->maps[i].start, &word);
		if (err == -EPERM || err == -ESRCH)
			return err;
		if (err == 0)
			break;
	}
	for (int i = 0; i < TRIES; i++) {
		look(c, r);
		if (r->verdict == CHECK_OK) {
			for (int k = 0; k < TRIES && !r->alloc_checked; k++)
				r->alloc_checked = check__alloc(c->pid, c->rts, r);
			r->rts_opts = read_rts_opts(c);
			r->n_capabilities = c->rts->n_capabilities.addr;
			if (!r->n_capabilities && c->rts->threaded)
				r->n_capabilities = check__scan_n_caps(c->pid, c->rts, r);
		}
		if (r->verdict != CHECK_FAILED || !c->patient)
			return 0;
		nanosleep(&wait, NULL);
	}
	return 0;
}

bool check_result__is_one(const struct check_result *r)
{
	return (unsigned int)r->verdict <= CHECK_FAILED &&
	       (unsigned int)r->variant < LAYOUT_VARIANTS && r->n_caps <= CHECK_MAX_CAPS &&
	       (unsigned int)r->caps_found <= FOUND_CODE && r->rts_opts <= RTS_OPTS_KINDS &&
	       confine__is_bool(&r->caps_array) && confine__is_bool(&r->tls_checked) &&
	       confine__is_bool(&r->alloc_checked) && memchr(r->why, 0, sizeof(r->why));
}

/* True unless the offsets in the code's operands, if any were found, contradict the layout. */
static bool code_agrees(const struct rts *rts, const struct layout *l)
{
	const struct callsites_offsets *o = &rts->callsites.offsets;

	return rts->callsites.offset_votes == 0 ||
	       (o->current_tso == (uint32_t)(l->wire.cap_current_tso - l->wire.cap_r) &&
		o->stackobj == l->wire.tso_stackobj && o->sp == l->wire.stack_sp);
}

/* The result when the table's layout contradicts the code. */
static void disagree(const struct rts *rts, const struct layout *l, struct check_result *r)
{
	const struct callsites_offsets *o = &rts->callsites.offsets;

	memset(r, 0, sizeof(*r));
	r->verdict = CHECK_FAILED;
	snprintf(r->why, sizeof(r->why),
		 "its code has rCurrentTSO at %u, stackobj at %u and sp at %u; the table has %d, "
		 "%u and %u",
		 o->current_tso, o->stackobj, o->sp, l->wire.cap_current_tso - l->wire.cap_r,
		 l->wire.tso_stackobj, l->wire.stack_sp);
}

/* Chooses the layouts. *ret_other: an example if none of the table's layouts agrees with the
 * code. */
static int prepare(struct check_ctx *c, const char *version, const struct layout **ret_other,
		   bool *ret_version_known)
{
	const struct rts *rts = c->rts;
	const struct layout *other = NULL;

	for (int v = 0; v < LAYOUT_VARIANTS; v++)
		c->have[v] =
			layout__find(version, rts->threaded, rts->profiled, (enum layout_variant)v,
				     &c->layouts[v], ret_version_known) == 0;
	for (int v = 0; v < LAYOUT_VARIANTS; v++) {
		if (!c->have[v] || code_agrees(rts, &c->layouts[v]))
			continue;
		c->have[v] = false;
		other = &c->layouts[v];
	}
	if (c->have[LAYOUT_CLK] || c->have[LAYOUT_NOCLK])
		other = NULL;
	else if (!other)
		return -ENOTSUP;
	*ret_other = other;
	return 0;
}

/* Validates and takes the result of the child, which read hostile memory; frees it. -EIO: not a
 * valid result. */
static int believe(const struct check_ctx *c, void *out, struct check_result *ret_result)
{
	struct check_result *result = out;
	int err = -EIO;

	if (check_result__is_one(result) &&
	    (result->verdict != CHECK_OK || c->have[result->variant])) {
		/* the offsets are the table's, whatever the child wrote */
		result->layout = c->layouts[result->variant];
		*ret_result = *result;
		err = 0;
	}
	mem__guard_free(out, sizeof(struct check_result));
	return err;
}

int check__run(pid_t pid, const struct rts *rts, const struct images *images, const char *version,
	       int timeout_ms, bool patient, struct check_result *ret_result,
	       bool *ret_version_known)
{
	struct check_ctx c = {.pid = pid, .rts = rts, .images = images, .patient = patient};
	const struct layout *other = NULL;
	bool known = false;
	void *out;
	int err;

	err = prepare(&c, version, &other, &known);
	if (!err && other)
		disagree(rts, other, ret_result);
	else if (!err)
		err = mem__guard(pid, GUARD_MEMORY, timeout_ms, run, &c,
				 sizeof(struct check_result), &out);
	if (!err && !other)
		err = believe(&c, out, ret_result);
	if (!err)
		*ret_version_known = known;
	return err;
}

/* ── without waiting ─────────────────────────────────────────────────────────────────────── */

struct check {
	struct check_ctx ctx;
	struct guard *guard; /* NULL: `made` is the result */
	struct check_result *made;
	bool known;
};

int check__start(pid_t pid, const struct rts *rts, const struct images *images, const char *version,
		 int timeout_ms, bool patient, struct check **ret_check)
{
	struct check *check = calloc(1, sizeof(*check));
	const struct layout *other = NULL;
	int err;

	if (!check)
		return -ENOMEM;
	check->ctx =
		(struct check_ctx){.pid = pid, .rts = rts, .images = images, .patient = patient};
	err = prepare(&check->ctx, version, &other, &check->known);
	if (!err && other) {
		check->made = malloc(sizeof(*check->made));
		if (check->made)
			disagree(rts, other, check->made);
		else
			err = -ENOMEM;
	} else if (!err) {
		err = guard__start(pid, GUARD_MEMORY, timeout_ms, run, &check->ctx,
				   sizeof(struct check_result), &check->guard);
	}
	if (err)
		free(check);
	else
		*ret_check = check;
	return err;
}

int check__fd(const struct check *check)
{
	return check->guard ? guard__fd(check->guard) : -1;
}

int check__take(struct check *check, struct check_result *ret_result, bool *ret_version_known)
{
	void *out;
	int err = 0;

	if (check->guard)
		err = guard__take(check->guard, &out);
	if (err == -EINPROGRESS)
		return err;
	if (!err && check->guard)
		err = believe(&check->ctx, out, ret_result);
	else if (!err)
		*ret_result = *check->made;
	if (!err)
		*ret_version_known = check->known;
	check->guard = NULL;
	check__free(check);
	return err;
}

void check__free(struct check *check)
{
	if (!check)
		return;
	guard__free(check->guard);
	free(check->made);
	free(check);
}
