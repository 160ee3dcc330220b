/* SPDX-License-Identifier: GPL-2.0-or-later */
/* timeline: its life, its targets and threads, what the session sets, and finish. */
#include <stdio.h>

#include "log_priv.h"
#include "private.h"

#define DEFAULT_DEPTH	   1000
#define MAX_DEPTH	   4096
#define DEFAULT_STRETCHES  ((size_t)1 << 20)
#define DEFAULT_RECORDS	   ((size_t)1 << 20)
#define DEFAULT_STACKS	   ((size_t)1 << 20)
#define MIN_LANE_STRETCHES 256
#define MAX_MISSING	   1024

static int make_marks(struct timeline *tl)
{
	static const struct {
		enum tl_frame_kind kind;
		const char *name;
	} marks[MARK_MAX] = {
		[MARK_GC] = {TF_STATE, "[GC]"},
		[MARK_RTS] = {TF_STATE, "[RTS]"},
		[MARK_FOREIGN] = {TF_STATE, "[foreign code]"},
		[MARK_NO_STACK] = {TF_MARK, "[no stack]"},
		[MARK_NO_SAMPLE] = {TF_MARK, "[no sample]"},
		[MARK_TRUNCATED] = {TF_MARK, "[truncated]"},
		[MARK_TOO_MANY] = {TF_MARK, "[too many different frames]"},
		[MARK_STG] = {TF_MARK, "[Haskell stack]"},
	};
	char name[64];
	int err = 0, i;

	for (i = 0; !err && i < MARK_MAX; i++)
		err = frames__add_text(&tl->frames, marks[i].kind, marks[i].name, &tl->marks[i]);
	for (i = 0; !err && i < ST_MAX; i++) {
		tl->state_frames[i] = UINT32_MAX;
		/* what runs needs no word for it, and idleness has no stack */
		if (state__on_cpu((enum tl_state)i) || i == ST_IDLE || i == ST_SAFE_CALL)
			continue;
		snprintf(name, sizeof(name), "[%s]", state__title((enum tl_state)i));
		err = frames__add_text(&tl->frames, TF_STATE, name, &tl->state_frames[i]);
	}
	return err;
}

static void default_opts(struct timeline_opts *opts)
{
	if (!opts->max_depth)
		opts->max_depth = DEFAULT_DEPTH;
	opts->max_depth = MIN(MAX(opts->max_depth, 2), MAX_DEPTH);
	if (!opts->max_stretches)
		opts->max_stretches = DEFAULT_STRETCHES;
	if (!opts->max_records)
		opts->max_records = DEFAULT_RECORDS;
	if (!opts->max_stacks)
		opts->max_stacks = DEFAULT_STACKS;
	if (!opts->start_ns)
		opts->start_ns = time__monotonic_ns();
	if (!opts->start_unix_ns)
		opts->start_unix_ns = time__realtime_ns();
}

int timeline__new(const struct timeline_opts *opts, const char *version, const char *mode,
		  struct timeline **ret_timeline)
{
	struct timeline *tl = calloc(1, sizeof(*tl));
	uint32_t full;
	int err;

	if (!tl)
		return -ENOMEM;
	if (opts)
		tl->opts = *opts;
	default_opts(&tl->opts);
	tl->fold_at = tl->opts.max_records;
	err = frames__new(&tl->frames);
	if (!err)
		err = make_marks(tl);
	if (!err)
		err = frames__add_text(&tl->frames, TF_MARK, "[too many different stacks]", &full);
	if (!err)
		err = stacks__new(&tl->stacks, tl->opts.max_stacks, full);
	if (!err)
		err = stacks__new(&tl->parts, tl->opts.max_stacks, full);
	if (err) {
		timeline__free(tl);
		return err;
	}
	tl->session.version = tl__string(tl, version);
	tl->session.mode = tl__string(tl, mode);
	tl->session.start_ns = tl->opts.start_ns;
	tl->session.start_unix_ns = tl->opts.start_unix_ns;
	tl->session.frequency_hz = tl->opts.frequency_hz;
	*ret_timeline = tl;
	return 0;
}

static void free_threads(struct target_state *tg)
{
	struct thread *th = tg->thread_list, *next;

	HASH_CLEAR(hh, tg->threads);
	for (; th; th = next) {
		next = th->next;
		thread__free(th);
	}
}

void target__free_state(struct target_state *tg)
{
	struct addr_name *addr, *next_addr;
	struct site_counters *counters, *next_counters;

	if (!tg)
		return;
	free_threads(tg);
	HASH_ITER (hh, tg->addrs, addr, next_addr) {
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the analyzer loses track of uthash */
		HASH_DEL(tg->addrs, addr);
		free(addr);
	}
	HASH_ITER (hh, tg->counters, counters, next_counters) {
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the analyzer loses track of uthash */
		HASH_DEL(tg->counters, counters);
		free(counters);
	}
	HASH_CLEAR(hh, tg->sites);
	for (size_t i = 0; i < tg->n_sites; i++)
		free(tg->site_v[i]);
	free(tg->site_v);
	free(tg->gcs);
	free(tg->tick_notes);
	free(tg->gc_events);
	caps__free(tg);
	tsos__free(tg);
	flow__free(tg);
	free(tg->prior);
	sums__free(&tg->sums);
	free(tg->calls);
	free(tg->unsafes);
	free(tg->functions);
	free(tg->cost_centres);
	free(tg->cc_nodes);
	ccs__free(&tg->ccs);
	free(tg->missing);
	free(tg->free_owners);
	for (size_t i = 0; tg->lanes && i < tg->pub.n_lanes; i++)
		free((void *)tg->lanes[i].off_cpu);
	free(tg->lanes);
	ledger_accounts__free(tg->accounts, tg->n_accounts);
	ledger_accounts__free(tg->cap_accounts, tg->n_cap_accounts);
	ledger__free(tg->ledger);
	ledger_accounts__free(tg->tso_accounts, tg->n_tso_accounts);
	ledger__free(tg->cap_ledger);
	ledger__free(tg->tso_ledger);
	elog__free(tg->log);
	findings__free(&tg->findings);
	free(tg);
}

void timeline__free(struct timeline *tl)
{
	if (!tl)
		return;
	for (size_t i = 0; i < tl->n_targets; i++)
		target__free_state(tl->targets[i]);
	free(tl->targets);
	stacks__free(&tl->stacks);
	stacks__free(&tl->parts);
	frames__free(&tl->frames);
	free(tl);
}

/* ── targets and threads ─────────────────────────────────────────────────────────────────── */

struct target_state *tl__find(const struct timeline *tl, pid_t pid)
{
	for (size_t i = tl->n_targets; i-- > 0;)
		if (tl->targets[i]->pub.pid == pid)
			return tl->targets[i];
	return NULL;
}

int thread__get(struct target_state *tg, pid_t tid, struct thread **ret_thread)
{
	struct thread *th;

	HASH_FIND_INT(tg->threads, &tid, th);
	if (th) {
		*ret_thread = th;
		return 0;
	}
	if (tg->n_threads >= TL_MAX_THREADS) {
		tg->left_out++;
		return -ENOSPC;
	}
	th = calloc(1, sizeof(*th));
	if (!th)
		return -ENOMEM;
	th->tid = tid;
	th->held = TL_NO_CAP;
	HASH_ADD_INT(tg->threads, tid, th);
	if (!th->hh.tbl) {
		free(th);
		return -ENOMEM;
	}
	th->owner = tg->n_free_owners ? tg->free_owners[--tg->n_free_owners] : ++tg->n_owners;
	th->next = tg->thread_list;
	tg->thread_list = th;
	tg->n_threads++;
	*ret_thread = th;
	return 0;
}

static void copy_info(struct timeline *tl, struct tl_target *pub, const struct target_info *info)
{
	char comm[sizeof(info->comm) + 1] = {0};

	memcpy(comm, info->comm, sizeof(info->comm));
	pub->pid = info->pid;
	pub->ns_pid = info->ns_pid;
	pub->comm = tl__string(tl, comm);
	pub->exe = tl__string(tl, info->exe);
	pub->build_id = tl__string(tl, info->build_id);
	pub->ghc_version = tl__string(tl, info->ghc_version);
	pub->way = tl__string(tl, info->way);
	pub->version_known = info->version_known;
	pub->threaded = info->threaded;
	pub->profiled = info->profiled;
	pub->layout_checked = info->layout_checked;
	pub->found_suspend = rts_found__name(info->suspend.found);
	pub->found_resume = rts_found__name(info->resume.found);
	pub->found_tick = rts_found__name(info->tick.found);
	pub->found_caps = rts_found__name(info->caps_found);
	pub->start_time_ns = info->start_time_ns;
	pub->capabilities = info->capabilities;
	pub->end = "";
}

int target__make_books(struct timeline *tl, struct target_state *tg)
{
	const struct ledger_opts opts = {
		.full_stack = tl->stacks.full,
		.frequency_hz = tl->opts.frequency_hz,
	};
	int err;

	tg->prior = calloc(1, sizeof(*tg->prior));
	err = tg->prior ? ledger__new(&opts, &tg->ledger) : -ENOMEM;
	if (!err)
		err = ledger__new(&opts, &tg->cap_ledger);
	if (!err)
		err = ledger__new(&opts, &tg->tso_ledger);
	return err ? err : caps__new(&tg->caps);
}

int input__add_target(struct timeline *tl, const struct target_info *info,
		      const struct tl_namer *namer, uint64_t attach_ns, uint64_t attach_took_ns)
{
	struct target_state *tg = tl__find(tl, info->pid);
	int err;

	if (tl->finished || !namer->name)
		return -EINVAL;
	if (tg && !tg->ended)
		return -EEXIST;
	err = TL_RESERVE(tl->targets, tl->targets_cap, tl->n_targets + 1, TL_MAX_TARGETS);
	if (err)
		return err;
	tg = calloc(1, sizeof(*tg));
	if (!tg)
		return -ENOMEM;
	err = target__make_books(tl, tg);
	if (err) {
		target__free_state(tg);
		return err;
	}
	copy_info(tl, &tg->pub, info);
	tg->namer = *namer;
	tg->call_record_ns = info->wire.call_record_ns;
	tg->caps_at_attach = info->capabilities;
	tg->has_gc_probes = info->gc_start.found && info->gc_end.found;
	tg->gc_start_addr = info->gc_start.found ? info->gc_start.addr : 0;
	tg->gc_end_addr = info->gc_end.found ? info->gc_end.addr : 0;
	tg->pub.attach_ns = attach_ns;
	tg->pub.attach_took_ns = attach_took_ns;
	tg->no = tl->n_added++;
	tl->targets[tl->n_targets++] = tg;
	return 0;
}

int input__update_target(struct timeline *tl, const struct target_info *info)
{
	struct target_state *tg = tl__find(tl, info->pid);
	const char *end;

	if (!tg || tg->ended)
		return -ENOENT;
	end = tg->pub.end;
	copy_info(tl, &tg->pub, info);
	tg->pub.end = end;
	tg->caps_at_attach = info->capabilities;
	tg->has_gc_probes = info->gc_start.found && info->gc_end.found;
	tg->gc_start_addr = info->gc_start.found ? info->gc_start.addr : 0;
	tg->gc_end_addr = info->gc_end.found ? info->gc_end.addr : 0;
	tg->call_record_ns = info->wire.call_record_ns;
	return 0;
}

/* ── what the session sets ───────────────────────────────────────────────────────────────── */

/* While probes are off nothing is counted: what was, is not all. */
static void mark_paused(struct target_state *tg, const struct tl_session *session)
{
	uint64_t end = tg->ended ? tg->end_ns : session->end_ns;
	uint64_t wall = end > tg->pub.attach_ns ? end - tg->pub.attach_ns : 0;
	uint64_t paused = MIN(tg->pub.probes_paused_ns, wall);

	for (size_t i = 0; tg->calls && i < tg->pub.n_calls; i++) {
		tg->calls[i].exact = !paused;
		tg->calls[i].observed_share = wall ? 1.0 - (double)paused / (double)wall : 1.0;
	}
}

int input__set_cost(struct timeline *tl, pid_t pid, const struct tl_cost *cost)
{
	struct target_state *tg = tl__find(tl, pid);

	if (!tg)
		return -ENOENT;
	tg->pub.probe_hits = cost->probe_hits;
	tg->pub.bpf_ns = cost->bpf_ns;
	tg->pub.bpf_ns_known = cost->bpf_ns_known;
	tg->pub.cost_known = true;
	tg->pub.trap_ns_estimated = cost->trap_ns_estimated;
	tg->pub.user_cpu_ns = cost->user_cpu_ns;
	tg->pub.max_rss_bytes = cost->max_rss_bytes;
	tg->pub.probes_paused_ns = cost->probes_paused_ns;
	mark_paused(tg, &tl->session);
	return 0;
}

static int set_lost(struct timeline *tl, struct target_state *tg, const char *cause, uint64_t n)
{
	size_t i;

	for (i = 0; i < tg->pub.n_lost; i++)
		if (!strcmp(tg->pub.lost[i].cause, cause))
			break;
	if (i == ARRAY_SIZE(tg->pub.lost))
		return -ENOSPC;
	if (i == tg->pub.n_lost)
		tg->pub.lost[tg->pub.n_lost++].cause = tl__string(tl, cause);
	tg->pub.lost[i].n = n;
	return 0;
}

int input__set_lost(struct timeline *tl, pid_t pid, const char *cause, uint64_t n)
{
	struct target_state *tg = tl__find(tl, pid);

	return tg ? set_lost(tl, tg, cause, n) : -ENOENT;
}

int input__set_lost_share(struct timeline *tl, pid_t pid, double share)
{
	struct target_state *tg = tl__find(tl, pid);

	if (!tg)
		return -ENOENT;
	tg->pub.lost_share = share;
	return 0;
}

int input__add_missing(struct timeline *tl, pid_t pid, const char *text)
{
	struct target_state *tg = tl__find(tl, pid);
	int err;

	if (!tg)
		return -ENOENT;
	err = TL_RESERVE(tg->missing, tg->missing_cap, tg->pub.n_missing + 1, MAX_MISSING);
	if (err)
		return err;
	tg->missing[tg->pub.n_missing++] = tl__string(tl, text);
	tg->pub.missing = tg->missing;
	return 0;
}

void input__set_exit_code(struct timeline *tl, int exit_code)
{
	tl->session.exit_code = exit_code;
}

int input__end_target(struct timeline *tl, pid_t pid, const char *end, uint64_t at_ns)
{
	struct target_state *tg = tl__find(tl, pid);

	if (!tg)
		return -ENOENT;
	if (tg->ended)
		return 0;
	tg->ended = true;
	tg->end_ns = at_ns;
	tg->pub.end = tl__string(tl, end);
	return 0;
}

int input__forget_target(struct timeline *tl, pid_t pid)
{
	struct target_state *tg = tl__find(tl, pid);
	size_t i = 0;

	if (tl->finished)
		return -EINVAL;
	if (!tg)
		return -ENOENT;
	if (tg->n_threads || tg->counters || tg->pub.ticks || tg->log)
		return -EBUSY;
	while (tl->targets[i] != tg)
		i++;
	tl->n_targets--;
	memmove(&tl->targets[i], &tl->targets[i + 1], (tl->n_targets - i) * sizeof(*tl->targets));
	target__free_state(tg);
	return 0;
}

/* ── finish ──────────────────────────────────────────────────────────────────────────────── */

static int by_weight(const void *pa, const void *pb)
{
	const struct tl_lane *a = pa, *b = pb;
	uint64_t wa = a->end_ns - a->start_ns - a->states_ns[ST_IDLE];
	uint64_t wb = b->end_ns - b->start_ns - b->states_ns[ST_IDLE];

	if (wa != wb)
		return wa < wb ? 1 : -1;
	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

/* What the account says goes into the lane. */
static int fill_lane(struct timeline *tl, const struct ledger_account *a, struct tl_lane *lane)
{
	lane->rows = a->rows;
	lane->n_rows = a->n;
	for (size_t i = 0; i < a->n; i++)
		lane->states_ns[a->rows[i].state] += a->rows[i].ns;
	return off__finish(tl, a, lane);
}

static int fill_ended(struct timeline *tl, struct target_state *tg)
{
	struct tl_lane *lane = &tg->lanes[tg->pub.n_lanes++];
	const struct ledger_account *a = &tg->accounts[0];

	snprintf(lane->name, sizeof(lane->name), "[ended threads]");
	lane->threads = tg->dropped_threads;
	lane->cpu_ns = a->on_ns;
	lane->start_ns = tg->pub.attach_ns;
	lane->end_ns = lane->start_ns + a->on_ns + a->off_ns;
	return fill_lane(tl, a, lane);
}

static int finish_lanes(struct timeline *tl, struct target_state *tg, uint64_t end_ns,
			size_t max_stretches)
{
	struct thread *th;
	int err;

	tg->lanes = calloc(tg->n_threads + 2, sizeof(*tg->lanes));
	if (!tg->lanes)
		return -ENOMEM;
	tg->pub.lanes = tg->lanes;
	for (th = tg->thread_list; th; th = th->next) {
		thread__sort(th);
		prior__learn(tg, th);
	}
	for (th = tg->thread_list; th; th = th->next) {
		err = lane__build(tl, tg, th, end_ns, max_stretches);
		if (err)
			return err;
	}
	tg->n_accounts = tg->n_owners + 1;
	err = ledger__accounts(tg->ledger, tg->n_accounts, &tg->accounts);
	if (err)
		tg->n_accounts = 0;
	if (!err && tg->dropped_threads)
		err = fill_ended(tl, tg);
	for (th = tg->thread_list; !err && th; th = th->next) {
		struct tl_lane *lane = &tg->lanes[tg->pub.n_lanes];

		*lane = th->lane;
		if (!lane->n_stretches)
			continue;
		lane->threads = 1;
		err = fill_lane(tl, &tg->accounts[th->owner], lane);
		tg->pub.n_lanes++;
	}
	if (err)
		return err;
	qsort(tg->lanes, tg->pub.n_lanes, sizeof(*tg->lanes), by_weight);
	return 0;
}

static int finish_target(struct timeline *tl, struct target_state *tg, uint64_t end_ns,
			 size_t max_stretches)
{
	int err;

	if (tg->ended)
		end_ns = MIN(end_ns, tg->end_ns);
	if (tg->blind_ns)
		end_ns = MIN(end_ns, tg->blind_ns);
	gcs__close(tg);
	err = ccs__resolve(tl, tg);
	if (!err)
		err = finish_lanes(tl, tg, end_ns, max_stretches);
	if (!err)
		err = sums__unsafes(tl, tg);
	if (!err)
		err = caps__build(tl, tg, end_ns, max_stretches);
	if (!err)
		err = gcs__build(tl, tg);
	if (!err)
		err = tsos__build(tl, tg, end_ns, max_stretches);
	if (!err)
		err = flow__build(tg);
	if (!err)
		err = sums__functions(tl, tg);
	if (!err)
		err = sums__unsafe_calls(tl, tg, &tg->sums);
	if (!err)
		err = calls__build(tl, tg, end_ns);
	if (!err)
		err = ccs__sum(tg);
	if (!err)
		err = join__make(tl, tg, end_ns);
	if (err)
		return err;
	mark_paused(tg, &tl->session);
	if (tg->left_out)
		set_lost(tl, tg, "records beyond the memory limit", tg->left_out);
	err = findings__make(tl, &tg->pub, &tg->findings);
	tg->pub.findings = tg->findings.v;
	tg->pub.n_findings = tg->findings.n;
	if (!err)
		err = threads__tell_dropped(tl, tg);
	target__made(tg);
	return err;
}

/* Stretches for each lane. */
static size_t lane_budget(const struct timeline *tl)
{
	size_t n = 0;

	for (size_t i = 0; i < tl->n_targets; i++)
		n += tl->targets[i]->n_threads;
	return MAX(tl->opts.max_stretches / MAX(n, (size_t)1), MIN_LANE_STRETCHES);
}

/*
 * Up to when it is known who held which capability: threads of which there are records still go on
 * where their lanes end; of others nothing has been seen since they left the CPU.
 */
static uint64_t caps_until(const struct target_state *tg)
{
	uint64_t until = UINT64_MAX, latest = 0;

	for (const struct thread *th = tg->thread_list; th; th = th->next) {
		if (th->samples.n || th->offs.n || th->calls.n)
			until = MIN(until, th->done ? th->lane.end_ns : tg->pub.attach_ns);
		latest = MAX(latest, th->lane.end_ns);
	}
	return MIN(until, latest);
}

int tl__fold(struct timeline *tl)
{
	size_t max = lane_budget(tl), before = tl->n_records;
	int err = 0;

	for (size_t i = 0; !err && i < tl->n_targets; i++) {
		struct target_state *tg = tl->targets[i];
		struct thread *th;

		err = ccs__resolve(tl, tg);
		for (th = tg->thread_list; th; th = th->next) {
			thread__sort(th);
			prior__learn(tg, th);
		}
		for (th = tg->thread_list; !err && th; th = th->next)
			err = lane__fold(tl, tg, th, max);
		if (!err)
			err = caps__advance(tl, tg, caps_until(tg), max);
	}
	if (!err)
		err = threads__drop(tl);
	log_debug("timeline: %zu of %zu records became stretches", before - tl->n_records, before);
	return err;
}

/* Each target was told the run time of the whole kernel side, up to its end. */
static void share_cost(struct timeline *tl)
{
	for (size_t i = 0; tl->n_targets > 1 && i < tl->n_targets; i++) {
		struct tl_target *t = &tl->targets[i]->pub;

		if (!t->bpf_ns_known)
			continue;
		tl->session.bpf_ns = MAX(tl->session.bpf_ns, t->bpf_ns);
		tl->session.bpf_ns_known = true;
		t->bpf_ns_known = false;
	}
}

int input__finish(struct timeline *tl, uint64_t end_ns)
{
	size_t max;
	int err = 0;

	if (tl->finished)
		return -EINVAL;
	tl->finished = true;
	tl->session.end_ns = MAX(end_ns, tl->session.start_ns);
	max = lane_budget(tl);
	share_cost(tl);
	for (size_t i = 0; !err && i < tl->n_targets; i++)
		err = tl->targets[i]->log_alone
			      ? elog__build(tl, tl->targets[i])
			      : finish_target(tl, tl->targets[i], tl->session.end_ns, max);
	if (tl->stacks.left_out || tl->parts.left_out)
		log_warn("timeline: more different stacks than are kept; the rest is shown as one: "
			 "lower --frequency or the duration");
	return err;
}

/* ── the readers ─────────────────────────────────────────────────────────────────────────── */

const struct tl_session *timeline__session(const struct timeline *tl)
{
	return &tl->session;
}

size_t timeline__n_targets(const struct timeline *tl)
{
	return tl->n_targets;
}

const struct tl_target *timeline__target(const struct timeline *tl, size_t i)
{
	return i < tl->n_targets ? &tl->targets[i]->pub : NULL;
}

const struct tl_frame *timeline__frame(const struct timeline *tl, uint32_t index)
{
	return index < tl->frames.n ? &tl->frames.v[index] : NULL;
}

uint32_t timeline__n_frames(const struct timeline *tl)
{
	return (uint32_t)tl->frames.n;
}

struct tl_stack timeline__stack(const struct timeline *tl, uint32_t index)
{
	return stacks__get(&tl->stacks, index);
}
