/* SPDX-License-Identifier: GPL-2.0-or-later */
/* intake: life cycle, targets, and what the session sets. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "intake_priv.h"
#include "rts/found.h"

#define MAX_TARGETS 65536

/* ── its life ────────────────────────────────────────────────────────────────────────────── */

int parts__new(const struct intake *in, struct picture *pic, struct stack_table *ret_parts)
{
	uint32_t full;
	int err = picture__add_text(pic, TF_MARK, "[too many different stacks]", &full);

	return err ? err : stacks__new(ret_parts, in->opts.max_stacks, full);
}

int intake__new(const struct intake_opts *opts, struct picture *pic, struct intake **ret_intake)
{
	struct intake *in = calloc(1, sizeof(*in));
	int err;

	if (!in)
		return -ENOMEM;
	in->opts = *opts;
	in->pic = pic;
	in->room_at = opts->max_records;
	err = parts__new(in, pic, &in->parts);
	if (err) {
		intake__free(in);
		return err;
	}
	*ret_intake = in;
	return 0;
}

static void free_seen(struct seen *s)
{
	struct seen_thread *th, *next;

	HASH_CLEAR(hh, s->threads);
	for (th = s->thread_list; th; th = next) {
		next = th->next;
		free(th->samples.v);
		free(th->offs.v);
		free(th->calls.v);
		free(th->final);
		free(th->before);
		free(th);
	}
	addrs__free(s);
	HASH_FREE(s->counters);
	HASH_FREE(s->tso_infos);
	HASH_CLEAR(hh, s->sites);
	for (size_t i = 0; i < s->n_sites; i++)
		free(s->site_v[i]);
	free(s->site_v);
	ccs__free(&s->ccs);
	free(s->free_numbers);
	free(s->ticks);
	free(s->gcs.v);
	free(s->allocs.v);
	free(s->allocs.readings);
	free(s->cap_notes);
	free(s->tso_notes);
	free(s->flows);
	free(s->queued.v);
	free(s->starved.v);
	free(s);
}

void intake__free(struct intake *in)
{
	if (!in)
		return;
	HASH_CLEAR(hh, in->by_pid);
	for (size_t i = 0; i < in->n_targets; i++)
		free_seen(in->targets[i]);
	free(in->targets);
	stacks__free(&in->parts);
	stacks__free(&in->old_parts);
	rename__free(in);
	free(in);
}

int intake__close(struct intake *in, uint64_t end_ns)
{
	struct pic_session *session = picture__edit_session(in->pic);
	const struct intake_input input = {.kind = TI_FINISH, .a = end_ns};
	int err = 0;

	if (in->closed)
		return -EINVAL;
	in->closed = true;
	session->end_ns = MAX(end_ns, session->start_ns);
	for (size_t i = 0; !err && i < in->n_targets; i++)
		err = ccs__resolve(in, in->targets[i]);
	return tap__report(in, err, &input);
}

uint64_t seen__end(const struct seen *s, uint64_t end_ns)
{
	if (s->ended)
		end_ns = MIN(end_ns, s->end_ns);
	if (s->blind_ns)
		end_ns = MIN(end_ns, s->blind_ns);
	return end_ns;
}

struct seen *intake__find(const struct intake *in, pid_t pid)
{
	struct seen *s;

	HASH_FIND_INT(in->by_pid, &pid, s);
	return s;
}

size_t intake__n_targets(const struct intake *in)
{
	return in->n_targets;
}

struct seen *intake__target(const struct intake *in, size_t i)
{
	return in->targets[i];
}

struct picture *intake__picture(const struct intake *in)
{
	return in->pic;
}

size_t intake__n_records(const struct intake *in)
{
	return in->n_records;
}

bool intake__stacks_full(const struct intake *in)
{
	return in->parts.left_out != 0;
}

struct pic_stack intake__part(const struct intake *in, uint32_t part)
{
	return stacks__get(&in->parts, part);
}

/* ── targets ─────────────────────────────────────────────────────────────────────────────── */

/* NULL if the capture is older than the member. */
static const char *text_of(struct intake *in, const char *text)
{
	return picture__string(in->pic, text ? text : "");
}

static void take_probed(struct seen *s, const struct target_info *info)
{
	const struct target_probe *const probes[] = {&info->suspend,  &info->resume,
						     &info->tick,     &info->gc_sync,
						     &info->gc_start, &info->gc_end};

	_Static_assert(ARRAY_SIZE(probes) == ARRAY_SIZE(s->probed), "a place for each");
	for (size_t i = 0; i < ARRAY_SIZE(probes); i++)
		s->probed[i] = probes[i]->found ? probes[i]->addr : 0;
}

static void take_info(struct intake *in, struct seen *s, const struct target_info *info)
{
	char comm[sizeof(info->comm) + 1] = {0};
	struct pic_target *pub = s->pub;

	memcpy(comm, info->comm, sizeof(info->comm));
	pub->pid = info->pid;
	pub->ns_pid = info->ns_pid;
	pub->comm = picture__string(in->pic, comm);
	pub->exe = picture__string(in->pic, info->exe);
	pub->build_id = picture__string(in->pic, info->build_id);
	pub->container = text_of(in, info->container);
	pub->pod = text_of(in, info->pod);
	pub->service = text_of(in, info->service);
	pub->cgroup = text_of(in, info->cgroup);
	pub->ghc_version = picture__string(in->pic, info->ghc_version);
	pub->way = picture__string(in->pic, info->way);
	pub->version_known = info->version_known;
	pub->threaded = info->threaded;
	pub->profiled = info->profiled;
	pub->layout_checked = info->layout_checked;
	pub->rts_opts = info->rts_opts <= RTS_OPTS_ALL ? (enum pic_rts_opts)info->rts_opts
						       : RTS_OPTS_UNKNOWN;
	pub->found_suspend = rts_found__name(info->suspend.found);
	pub->found_resume = rts_found__name(info->resume.found);
	pub->found_tick = rts_found__name(info->tick.found);
	pub->found_caps = rts_found__name(info->caps_found);
	pub->start_time_ns = info->start_time_ns;
	pub->capabilities = info->capabilities;
	s->caps_at_attach = info->capabilities;
	s->call_record_ns = info->wire.call_record_ns;
	take_probed(s, info);
	s->gcs.has_probes = info->gc_start.found && info->gc_end.found;
	s->gcs.start_addr = info->gc_start.found ? info->gc_start.addr : 0;
	s->gcs.end_addr = info->gc_end.found ? info->gc_end.addr : 0;
}

/* intake__find returns the newest target of a pid. */
static int add_target(struct intake *in, struct seen *s)
{
	struct seen *before = intake__find(in, s->pid);
	int err = ARRAY_RESERVE(in->targets, in->targets_cap, in->n_targets + 1, MAX_TARGETS);

	if (err)
		return err;
	if (before)
		HASH_DEL(in->by_pid, before);
	HASH_ADD_INT(in->by_pid, pid, s);
	if (!s->hh.tbl) {
		if (before)
			HASH_ADD_INT(in->by_pid, pid, before);
		return -ENOMEM;
	}
	if (before)
		before->pub->pid_reused = true;
	s->no = in->n_added++;
	in->targets[in->n_targets++] = s;
	return 0;
}

int intake__add_target(struct intake *in, const struct target_info *info, const struct namer *namer,
		       uint64_t attach_ns, uint64_t attach_took_ns)
{
	const struct intake_input input = {
		.kind = TI_TARGET,
		.pid = info->pid,
		.info = info,
		.a = attach_ns,
		.b = attach_took_ns,
		.n = (namer->site ? TN_SITE : 0u) | (namer->ccs ? TN_CCS : 0u),
	};
	struct seen *s = intake__find(in, info->pid);
	int err;

	if (in->closed || !namer->name)
		return -EINVAL;
	if (s && !s->ended)
		return -EEXIST;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->pid = info->pid;
	s->namer = *namer;
	s->n_numbers = 1;
	err = picture__add_target(in->pic, &s->pub);
	if (!err)
		err = add_target(in, s);
	if (err) {
		if (s->pub)
			picture__remove_target(in->pic, s->pub);
		free(s);
		return err;
	}
	take_info(in, s, info);
	s->pub->end = "";
	s->pub->exit_code = -1;
	s->pub->attach_ns = s->joined_ns = attach_ns;
	s->pub->attach_took_ns = attach_took_ns;
	return tap__report(in, 0, &input);
}

int intake__update_target(struct intake *in, const struct target_info *info)
{
	const struct intake_input input = {
		.kind = TI_UPDATE_TARGET, .pid = info->pid, .info = info};
	struct seen *s = intake__find(in, info->pid);

	if (!s || s->ended)
		return -ENOENT;
	s->from_start = true;
	take_info(in, s, info);
	return tap__report(in, 0, &input);
}

/* "killed 9": a word, then a number. */
static void take_end(struct intake *in, struct pic_target *pub, const char *end)
{
	size_t len = strcspn(end, " ");
	const char *digits = end[len] ? end + len + 1 : "";
	bool number = *digits && strlen(digits) < 4 && !digits[strspn(digits, "0123456789")];
	char word[32];

	snprintf(word, sizeof(word), "%.*s", (int)MIN(len, sizeof(word) - 1), end);
	pub->end = picture__string(in->pic, word);
	if (number && !strcmp(word, "exited"))
		pub->exit_code = (int)strtoul(digits, NULL, 10);
	else if (number && !strcmp(word, "killed"))
		pub->exit_signal = (int)strtoul(digits, NULL, 10);
}

int target__end(struct intake *in, struct seen *s, const char *end, uint64_t at_ns)
{
	/* the kernel's record of the end has no status, which comes later */
	if (s->ended && s->pub->exit_code < 0 && !strcmp(s->pub->end, "exited") &&
	    (!strncmp(end, "exited ", 7) || !strncmp(end, "killed ", 7)))
		take_end(in, s->pub, end);
	if (s->ended)
		return 0;
	s->ended = true;
	addrs__forget_recent(s);
	/* an end reported after a cut may have happened before it */
	s->end_ns = s->was_cut ? MAX(at_ns, s->pub->attach_ns) : at_ns;
	take_end(in, s->pub, end);
	return 0;
}

int intake__end_target(struct intake *in, pid_t pid, const char *end, uint64_t at_ns)
{
	const struct intake_input input = {
		.kind = TI_END_TARGET, .pid = pid, .text = end, .a = at_ns};
	struct seen *s = intake__find(in, pid);

	return tap__report(in, s ? target__end(in, s, end, at_ns) : -ENOENT, &input);
}

int intake__settle_target(struct intake *in, pid_t pid, bool keep)
{
	const struct intake_input input = {.kind = TI_SETTLE_TARGET, .pid = pid, .n = keep};
	struct seen *s = intake__find(in, pid);
	int err;

	if (in->closed)
		return -EINVAL;
	if (!s || !s->ended)
		return -ENOENT;
	err = ccs__resolve(in, s);
	s->settled = !keep;
	s->namer = (struct namer){0};
	addrs__free(s);
	for (struct seen_thread *th = s->thread_list; th; th = th->next)
		seen__fit(th);
	return tap__report(in, err, &input);
}

/* Makes the previous target of the pid, which has ended, the one that is found. */
static int find_older(struct intake *in, pid_t pid)
{
	for (size_t i = in->n_targets; i-- > 0;) {
		struct seen *s = in->targets[i];

		if (s->pid != pid)
			continue;
		HASH_ADD_INT(in->by_pid, pid, s);
		return s->hh.tbl ? 0 : -ENOMEM;
	}
	return 0;
}

int target__take_out(struct intake *in, size_t i)
{
	struct seen *s = in->targets[i], *newest = intake__find(in, s->pid);
	pid_t pid = s->pid;

	in->n_targets--;
	memmove(&in->targets[i], &in->targets[i + 1], (in->n_targets - i) * sizeof(*in->targets));
	if (newest == s)
		HASH_DEL(in->by_pid, s);
	free_seen(s);
	return newest == s ? find_older(in, pid) : 0;
}

int intake__retire_settled(struct intake *in, size_t stay)
{
	const struct intake_input input = {.kind = TI_RETIRE_SETTLED, .a = stay};
	size_t n = 0, i = 0;
	int err = 0, err2;

	if (in->closed || !in->opts.retire)
		return -EINVAL;
	for (size_t k = 0; k < in->n_targets; k++)
		n += in->targets[k]->settled;
	while (!err && n > stay && i < in->n_targets) {
		if (!in->targets[i]->settled) {
			i++;
			continue;
		}
		err = in->opts.retire(in->opts.ctx, in->targets[i]);
		err2 = target__take_out(in, i);
		err = err ? err : err2;
		n--;
	}
	return tap__report(in, err, &input);
}

int intake__forget_target(struct intake *in, pid_t pid)
{
	const struct intake_input input = {.kind = TI_FORGET_TARGET, .pid = pid};
	struct seen *s = intake__find(in, pid);
	size_t i = 0;
	int err;

	if (in->closed)
		return -EINVAL;
	if (!s)
		return -ENOENT;
	if (s->n_threads || s->counters || s->pub->ticks || s->pub->eventlog.known)
		return -EBUSY;
	while (in->targets[i] != s)
		i++;
	picture__remove_target(in->pic, s->pub);
	err = target__take_out(in, i);
	return err ? err : tap__report(in, 0, &input);
}

/* ── threads ─────────────────────────────────────────────────────────────────────────────── */

int target__thread(struct seen *s, pid_t tid, struct seen_thread **ret_thread)
{
	struct seen_thread *th;
	int err;

	HASH_FIND_INT(s->threads, &tid, th);
	if (th) {
		*ret_thread = th;
		return 0;
	}
	if (s->n_threads >= SEEN_MAX_THREADS) {
		s->left_out++;
		return -ENOSPC;
	}
	th = calloc(1, sizeof(*th));
	if (!th)
		return -ENOMEM;
	th->tid = tid;
	err = HASH_INSERT(s->threads, tid, sizeof(th->tid), th);
	if (err)
		return err;
	th->no = s->n_free_numbers ? s->free_numbers[--s->n_free_numbers] : s->n_numbers++;
	th->next = s->thread_list;
	s->thread_list = th;
	s->n_threads++;
	*ret_thread = th;
	return 0;
}

/* ── what the session sets ───────────────────────────────────────────────────────────────── */

void intake__set_period(struct intake *in, uint64_t period_ns)
{
	in->period_ns = period_ns;
}

static uint64_t since(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

int intake__set_cost(struct intake *in, pid_t pid, const struct intake_cost *cost)
{
	const struct intake_input input = {
		.kind = TI_COST, .pid = pid, .data = cost, .size = sizeof(*cost)};
	struct seen *s = intake__find(in, pid);
	const struct intake_cost *before;

	if (!s)
		return -ENOENT;
	before = &s->cost_before;
	s->cost = *cost;
	s->pub->probe_hits = since(cost->probe_hits, before->probe_hits);
	/* of all processes together, as is the daemon's own time */
	s->pub->bpf_ns = since(cost->bpf_ns, in->bpf_before_ns);
	s->pub->bpf_ns_known = cost->bpf_ns_known;
	s->pub->own_bpf_ns = since(cost->own_bpf_ns, before->own_bpf_ns);
	s->pub->own_bpf_ns_known = cost->own_bpf_ns_known;
	s->pub->cost_known = true;
	s->pub->trap_ns_estimated = since(cost->trap_ns_estimated, before->trap_ns_estimated);
	s->pub->user_cpu_ns = since(cost->user_cpu_ns, in->cpu_before_ns);
	s->pub->max_rss_bytes = cost->max_rss_bytes;
	s->pub->probes_paused_ns = since(cost->probes_paused_ns, before->probes_paused_ns);
	s->pub->held_up_until_ns = cost->held_up_until_ns;
	s->pub->calls_missed = cost->calls_missed;
	picture__mark_paused(in->pic, s->pub, s->ended ? s->end_ns : UINT64_MAX);
	return tap__report(in, 0, &input);
}

int intake__known_ahead(struct intake *in, pid_t pid, bool calls_missed, uint32_t capabilities)
{
	struct seen *s = intake__find(in, pid);

	if (!s)
		return -ENOENT;
	s->pub->calls_missed |= calls_missed;
	s->pub->capabilities = MAX(s->pub->capabilities, capabilities);
	s->caps_at_attach = MAX(s->caps_at_attach, capabilities);
	return 0;
}

void intake__calls_uncounted(struct intake *in)
{
	for (size_t i = 0; i < intake__n_targets(in); i++)
		if (!intake__target(in, i)->ended)
			intake__target(in, i)->pub->calls_uncounted = true;
}

/* Notes that n are lost now, and returns how many were lost at the last cut. */
static uint64_t lost_before(struct intake *in, const char *cause, uint64_t n)
{
	size_t i = 0;

	while (i < in->n_lost && strncmp(in->lost[i].cause, cause, sizeof(in->lost[i].cause)) != 0)
		i++;
	if (i == ARRAY_SIZE(in->lost))
		return 0;
	if (i == in->n_lost) {
		in->lost[in->n_lost++] = (struct lost_before){0};
		strncpy(in->lost[i].cause, cause, sizeof(in->lost[i].cause) - 1);
	}
	in->lost[i].now = n;
	return in->lost[i].before;
}

int intake__set_lost(struct intake *in, pid_t pid, const char *cause, uint64_t n)
{
	const struct intake_input input = {.kind = TI_LOST, .pid = pid, .text = cause, .a = n};
	struct seen *s = intake__find(in, pid);
	uint64_t before = lost_before(in, cause, n);
	int err = s ? 0 : -ENOENT;

	if (!err && n > before)
		err = picture__set_lost(in->pic, s->pub, cause, n - before);
	return tap__report(in, err, &input);
}

int intake__set_lost_share(struct intake *in, pid_t pid, double share)
{
	const struct intake_input input = {.kind = TI_LOST_SHARE, .pid = pid, .share = share};
	struct seen *s = intake__find(in, pid);

	if (!s)
		return -ENOENT;
	s->pub->lost_share = share;
	return tap__report(in, 0, &input);
}

/* Whether text is one of the first n sentences, or is no longer true. A process that execs
 * repeatedly is many members with one pid, and the pid finds the newest. */
static bool has_missing(const struct seen *s, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(s->pub->missing[i], text))
			return true;
	return s->has_symbols && !strcmp(text, INTAKE_NO_SYMBOLS);
}

int intake__add_missing(struct intake *in, pid_t pid, const char *text)
{
	const struct intake_input input = {.kind = TI_MISSING, .pid = pid, .text = text};
	struct seen *s = intake__find(in, pid);
	int err;

	if (s && has_missing(s, s->n_missing, text))
		return 0;
	err = s ? picture__add_missing(in->pic, s->pub, "%s", text) : -ENOENT;
	if (!err)
		s->n_missing++;
	return tap__report(in, err, &input);
}

int intake__add_missing_once(struct intake *in, pid_t pid, const char *text)
{
	struct seen *s = intake__find(in, pid);

	if (s && has_missing(s, s->pub->n_missing, text))
		return 0;
	return s ? picture__add_missing(in->pic, s->pub, "%s", text) : -ENOENT;
}

int intake__set_pushes(struct intake *in, const struct pic_push *pushes, size_t n)
{
	struct pic_session *session = picture__edit_session(in->pic);
	struct pic_push *copy = n ? picture__alloc(in->pic, n, sizeof(*copy)) : NULL;

	if (n && !copy)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		copy[i] = pushes[i];
		copy[i].url = picture__string(in->pic, pushes[i].url);
	}
	session->pushes = copy;
	session->n_pushes = n;
	return 0;
}

void intake__set_exit_code(struct intake *in, int exit_code)
{
	const struct intake_input input = {.kind = TI_EXIT_CODE, .a = (uint32_t)exit_code};

	picture__edit_session(in->pic)->exit_code = exit_code;
	tap__report(in, 0, &input);
}
