/* SPDX-License-Identifier: GPL-2.0-or-later */
/* inputs: the public functions that feed a timeline; what they took is told to the tap. */
#include "private.h"
#include "tap.h"

const char *tl_input__name(enum tl_input_kind kind)
{
	static const char *const names[TI_MAX] = {
		[TI_NONE] = "",
		[TI_TARGET] = "target",
		[TI_UPDATE_TARGET] = "update_target",
		[TI_RECORD] = "record",
		[TI_SNAPSHOT] = "snapshot",
		[TI_SITE_COUNTERS] = "site_counters",
		[TI_THREAD_STATE] = "thread_state",
		[TI_OFF_STACK] = "off_stack",
		[TI_COST] = "cost",
		[TI_LOST] = "lost",
		[TI_LOST_SHARE] = "lost_share",
		[TI_MISSING] = "missing",
		[TI_EXIT_CODE] = "exit_code",
		[TI_END_TARGET] = "end_target",
		[TI_FINISH] = "finish",
		[TI_NAME] = "name",
		[TI_SITE] = "site",
		[TI_CCS] = "ccs",
		[TI_LOG_BYTES] = "log_bytes",
		[TI_LOG] = "log",
		[TI_FORGET_TARGET] = "forget_target",
	};

	return (unsigned)kind < TI_MAX ? names[kind] : "";
}

void timeline__set_tap(struct timeline *tl, tl_tap tap, void *ctx)
{
	tl->tap = tap;
	tl->tap_ctx = ctx;
}

static int told(struct timeline *tl, int err, const struct tl_input *input)
{
	if (tl->tap && err != -EINVAL && err != -ENOENT && err != -EBADMSG)
		tl->tap(tl->tap_ctx, input);
	return err;
}

/* ── answers of a namer ──────────────────────────────────────────────────────────────────── */

void namer__name(struct timeline *tl, struct target_state *tg, uint64_t frame,
		 struct code_name *ret_name)
{
	struct tl_input input = {.kind = TI_NAME, .target = tg->no, .a = frame, .name = ret_name};

	tg->namer.name(tg->namer.ctx, frame, ret_name);
	told(tl, 0, &input);
}

int namer__site(struct timeline *tl, struct target_state *tg, uint64_t addr,
		struct target_site *ret_site)
{
	struct tl_input input = {.kind = TI_SITE, .target = tg->no, .a = addr};
	int err;

	if (!tg->namer.site)
		return -ENOENT;
	err = tg->namer.site(tg->namer.ctx, addr, ret_site);
	input.n = (uint32_t)(err < 0 ? -err : 0);
	input.site = err < 0 ? NULL : ret_site;
	told(tl, 0, &input);
	return err;
}

int namer__ccs(struct timeline *tl, struct target_state *tg, uint64_t addr,
	       struct target_ccs *ret_ccs)
{
	struct tl_input input = {.kind = TI_CCS, .target = tg->no, .a = addr};
	int err = tg->namer.ccs(tg->namer.ctx, addr, ret_ccs);

	input.n = (uint32_t)(err < 0 ? -err : 0);
	input.ccs = err < 0 ? NULL : ret_ccs;
	told(tl, 0, &input);
	return err;
}

/* ── inputs ──────────────────────────────────────────────────────────────────────────────── */

int timeline__add_target(struct timeline *tl, const struct target_info *info,
			 const struct tl_namer *namer, uint64_t attach_ns, uint64_t attach_took_ns)
{
	int err = input__add_target(tl, info, namer, attach_ns, attach_took_ns);
	struct tl_input input = {
		.kind = TI_TARGET,
		.pid = info->pid,
		.info = info,
		.a = attach_ns,
		.b = attach_took_ns,
		.n = (namer->site ? TN_SITE : 0u) | (namer->ccs ? TN_CCS : 0u),
	};

	/* one that was refused makes no target: they are counted */
	return err ? err : told(tl, 0, &input);
}

int timeline__update_target(struct timeline *tl, const struct target_info *info)
{
	struct tl_input input = {.kind = TI_UPDATE_TARGET, .pid = info->pid, .info = info};

	return told(tl, input__update_target(tl, info), &input);
}

int timeline__record(struct timeline *tl, const void *rec, size_t size)
{
	struct tl_input input = {.kind = TI_RECORD, .data = rec, .size = size};

	return told(tl, input__record(tl, rec, size), &input);
}

int timeline__snapshot(struct timeline *tl, pid_t pid, const struct snapshot *snapshot,
		       uint64_t at_ns, bool at_end)
{
	struct tl_input input = {
		.kind = TI_SNAPSHOT, .pid = pid, .snapshot = snapshot, .a = at_ns, .n = at_end};

	return told(tl, input__snapshot(tl, pid, snapshot, at_ns, at_end), &input);
}

int timeline__site_counters(struct timeline *tl, const struct wire_site_key *key,
			    const struct wire_site *site)
{
	struct {
		struct wire_site_key key;
		struct wire_site site;
	} both = {*key, *site};
	struct tl_input input = {.kind = TI_SITE_COUNTERS, .data = &both, .size = sizeof(both)};

	return told(tl, input__site_counters(tl, key, site), &input);
}

int timeline__thread_state(struct timeline *tl, pid_t tid, const struct wire_thread *state)
{
	struct tl_input input = {
		.kind = TI_THREAD_STATE, .tid = tid, .data = state, .size = sizeof(*state)};

	return told(tl, input__thread_state(tl, tid, state), &input);
}

int timeline__thread_off_stack(struct timeline *tl, pid_t pid, pid_t tid,
			       const struct wire_off_stack *stack)
{
	struct tl_input input = {.kind = TI_OFF_STACK,
				 .pid = pid,
				 .tid = tid,
				 .data = stack,
				 .size = sizeof(*stack)};

	return told(tl, input__thread_off_stack(tl, pid, tid, stack), &input);
}

int timeline__set_cost(struct timeline *tl, pid_t pid, const struct tl_cost *cost)
{
	struct tl_input input = {.kind = TI_COST, .pid = pid, .data = cost, .size = sizeof(*cost)};

	return told(tl, input__set_cost(tl, pid, cost), &input);
}

int timeline__set_lost(struct timeline *tl, pid_t pid, const char *cause, uint64_t n)
{
	struct tl_input input = {.kind = TI_LOST, .pid = pid, .text = cause, .a = n};

	return told(tl, input__set_lost(tl, pid, cause, n), &input);
}

int timeline__set_lost_share(struct timeline *tl, pid_t pid, double share)
{
	struct tl_input input = {.kind = TI_LOST_SHARE, .pid = pid, .share = share};

	return told(tl, input__set_lost_share(tl, pid, share), &input);
}

int timeline__add_missing(struct timeline *tl, pid_t pid, const char *text)
{
	struct tl_input input = {.kind = TI_MISSING, .pid = pid, .text = text};

	return told(tl, input__add_missing(tl, pid, text), &input);
}

void timeline__set_exit_code(struct timeline *tl, int exit_code)
{
	struct tl_input input = {.kind = TI_EXIT_CODE, .a = (uint32_t)exit_code};

	input__set_exit_code(tl, exit_code);
	told(tl, 0, &input);
}

int timeline__end_target(struct timeline *tl, pid_t pid, const char *end, uint64_t at_ns)
{
	struct tl_input input = {.kind = TI_END_TARGET, .pid = pid, .text = end, .a = at_ns};

	return told(tl, input__end_target(tl, pid, end, at_ns), &input);
}

int timeline__forget_target(struct timeline *tl, pid_t pid)
{
	struct tl_input input = {.kind = TI_FORGET_TARGET, .pid = pid};
	int err = input__forget_target(tl, pid);

	return err ? err : told(tl, 0, &input);
}

int timeline__finish(struct timeline *tl, uint64_t end_ns)
{
	struct tl_input input = {.kind = TI_FINISH, .a = end_ns};

	return told(tl, input__finish(tl, end_ns), &input);
}
