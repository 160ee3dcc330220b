/* SPDX-License-Identifier: GPL-2.0-or-later */
/* log: makes the picture of a process from its eventlog, or from a report written by GHC. */
#include <stdio.h>

#include "join_priv.h"

/* ── which process it was ────────────────────────────────────────────────────────────────── */

/* "GHC-9.0.2 rts_thr_p" */
static void take_rts(struct log_build *b, const char *rts)
{
	struct pic_target *pub = b->pub;
	char version[64];
	const char *blank = strchr(rts, ' ');

	if (strncmp(rts, "GHC-", 4) != 0)
		return;
	snprintf(version, sizeof(version), "%.*s", blank ? (int)MIN(blank - rts - 4, 63) : 63,
		 rts + 4);
	pub->ghc_version = picture__string(b->pic, version);
	pub->version_known = true;
	if (!blank)
		return;
	pub->way = picture__string(b->pic, blank + 1);
	pub->threaded = strstr(pub->way, "_thr") != NULL;
	pub->profiled = strlen(pub->way) > 2 && strstr(pub->way + 3, "_p") != NULL;
}

static void take_process(struct log_build *b)
{
	struct el_process process = {.rts = "", .program = "", .args = ""};
	struct pic_session *session = picture__edit_session(b->pic);
	const struct join_log *in = &b->in;
	struct pic_target *pub = b->pub;
	char program[4096];

	if (in->info)
		process = el_info__process(in->info);
	/* A report has the whole command line. */
	snprintf(program, sizeof(program), "%s", in->program ? in->program : process.program);
	if (in->program)
		program[strcspn(program, " ")] = '\0';
	pub->pid = (pid_t)MIN(process.pid, (uint32_t)INT32_MAX);
	pub->comm = picture__string(b->pic, *program ? path__base(program) : path__base(in->path));
	pub->exe = picture__string(b->pic, *program == '/' ? program : "");
	pub->build_id = pub->ghc_version = pub->way = pub->end = "";
	pub->exit_code = -1;
	pub->found_suspend = pub->found_resume = pub->found_tick = pub->found_caps = "";
	take_rts(b, process.rts);
	if (in->tree)
		pub->profiled = true;
	session->start_unix_ns = 0;
	if (process.wall_known && process.wall_time_ns + in->from_ns >= process.wall_at)
		session->start_unix_ns = process.wall_time_ns + in->from_ns - process.wall_at;
	session->start_ns = elog__time(b, in->from_ns);
}

/* ── life ────────────────────────────────────────────────────────────────────────────────── */

int log_build__new(const struct join_opts *opts, const struct join_log *log, struct picture *pic,
		   const struct seen *seen, struct log_build **ret_build)
{
	const struct ledger_opts books = {.full_stack = picture__full_stack(pic),
					  .period_ns = opts->period_ns};
	struct log_build *b = calloc(1, sizeof(*b));
	int err = 0;

	if (!b)
		return -ENOMEM;
	b->opts = *opts;
	b->in = *log;
	b->pic = pic;
	b->seen = seen;
	b->pub = seen ? seen->pub : NULL;
	for (unsigned k = 0; !err && k < LANE_KINDS; k++)
		err = ledger__new(&books, &b->ledger[k]);
	if (!err && !seen)
		err = picture__add_target(pic, &b->pub);
	if (err) {
		log_build__free(b);
		return err;
	}
	/* a process with a log is kept in the picture */
	b->pub->eventlog.known = true;
	if (!seen)
		take_process(b);
	*ret_build = b;
	return 0;
}

void log_build__free(struct log_build *b)
{
	if (!b)
		return;
	for (unsigned k = 0; k < LANE_KINDS; k++)
		ledger__free(b->ledger[k]);
	free(b->map);
	free(b->node_stacks);
	cctree__free(b->filtered);
	free(b);
}

/* ── the picture ─────────────────────────────────────────────────────────────────────────── */

void elog__fill(struct log_build *b)
{
	const struct eventlog_stats *stats = b->in.stats;
	struct pic_eventlog *e = &b->pub->eventlog;

	e->known = true;
	e->path = picture__string(b->pic, b->in.path);
	e->cost_centres = b->tree ? cctree__n_ccs(b->tree) : 0;
	e->samples = b->in.profile ? el_profile__info(b->in.profile).samples : 0;
	e->offset_ns = b->in.offset_ns;
	e->offset_error_ns = b->in.offset_error_ns;
	e->agreement_safe_calls = e->agreement_ticks = e->agreement_caps = -1;
	e->tick_centres_differ = -1;
	if (!stats)
		return;
	e->events = stats->events;
	e->damaged_bytes = stats->lost_bytes;
	/* A complete log reaches to its last event; another as far as all its buffers. */
	e->reaches_ns = elog__time(b, stats->ended ? stats->last_time : stats->reaches);
}

/* Reports what the log lacks, and how to get it. */
static int report_missing(struct log_build *b)
{
	const struct eventlog_stats *stats = b->in.stats;
	struct pic_target *pub = b->pub;
	int err = 0;

	if (!stats)
		return b->in.no_ticks
			       ? picture__add_missing(b->pic, b->pub,
						      "ticks: the report has percentages only, to "
						      "one digit; +RTS -P or -pj writes ticks")
			       : 0;
	if (!stats->ended)
		err = picture__add_missing(
			b->pic, b->pub,
			"the log has no end mark: its program was killed, or is still running");
	if (!err && !stats->by_id[EL_RUN_THREAD])
		err = picture__add_missing(
			b->pic, b->pub,
			"scheduler events (which thread ran when, safe calls): the "
			"program was not run with +RTS -l");
	if (!err && !stats->by_id[EL_PROF_SAMPLE_COST_CENTRE])
		err = picture__add_missing(
			b->pic, b->pub,
			"cost centres: the program was not built with -prof, or not run "
			"with +RTS -p -l");
	if (!err && stats->by_id[EL_RUN_THREAD] && pub->n_calls)
		err = picture__add_missing(b->pic, b->pub,
					   "waiting for a capability after a safe call: a log "
					   "alone cannot distinguish it from the call");
	return err;
}

static int fill_losses(struct log_build *b)
{
	const struct eventlog_stats *stats = b->in.stats;
	struct pic_target *pub = b->pub;
	const struct {
		const char *cause;
		uint64_t n;
	} losses[] = {
		{"damaged_bytes", stats ? stats->lost_bytes : 0},
		{"damaged_places", stats && stats->lost_bytes ? stats->damages : 0},
		{"events_of_wrong_size", stats ? stats->misfits : 0},
		{"beyond_the_memory_limit", b->in.left_out},
	};
	int err = 0;

	for (size_t i = 0; !err && i < ARRAY_SIZE(losses); i++)
		if (losses[i].n)
			err = picture__set_lost(b->pic, pub, losses[i].cause, losses[i].n);
	if (stats && stats->bytes_in)
		pub->lost_share = (double)stats->lost_bytes / (double)stats->bytes_in;
	/* each record that did not fit was an event, as a rule */
	if (stats && stats->events)
		pub->lost_share += (double)b->in.left_out / (double)stats->events;
	pub->lost_share = MIN(pub->lost_share, 1);
	return err;
}

static void fill_cost(struct log_build *b)
{
	if (!b->in.own_cost)
		return;
	/* including the process that read the log */
	usage__own(&b->pub->user_cpu_ns, &b->pub->max_rss_bytes);
	b->pub->user_cpu_ns += usage__children_cpu_ns();
	b->pub->max_rss_bytes = MAX(b->pub->max_rss_bytes, usage__children_max_rss_bytes());
	b->pub->cost_known = true;
}

/* In a log that was cut off: the least number of collections that are known only from capabilities
 * that took part, since their leader's part of the log was not written. */
static uint64_t gcs_without_leader(const struct log_build *b, const struct el_sched_info *info)
{
	uint64_t most = 0;

	for (size_t i = 0; i < info->n_caps && !b->in.stats->ended; i++)
		most = MAX(most, el_sched__cap(b->in.sched, i)->gcs);
	return most - MIN(most, info->gcs);
}

static void fill_gc_sums(struct log_build *b)
{
	const struct eventlog_stats *stats = b->in.stats;
	struct el_sched_info info;

	if (!b->in.sched || !stats || !stats->by_id[EL_GC_START])
		return;
	info = el_sched__info(b->in.sched);
	b->pub->gc.known = true;
	b->pub->gc.count = info.gcs;
	b->pub->gc.missed = gcs_without_leader(b, &info);
	b->pub->gc.pause_ns = info.gc_pause_ns;
	b->pub->gc.max_pause_ns = info.gc_max_pause_ns;
}

static uint64_t all_ticks(const struct log_build *b)
{
	uint64_t n = 0;

	for (size_t i = 0; b->tree && i < cctree__n_nodes(b->tree); i++)
		n += cctree__node(b->tree, (uint32_t)i)->ticks;
	return n;
}

int log_build__alone(struct log_build *b, struct pic_target **ret_target)
{
	struct pic_session *session = picture__edit_session(b->pic);
	int err;

	b->from_ns = elog__time(b, b->in.from_ns);
	b->to_ns = MAX(elog__time(b, b->in.to_ns), b->from_ns);
	session->start_ns = b->from_ns;
	session->end_ns = b->to_ns;
	err = elog__centres(b);
	if (!err)
		err = elog__caps(b);
	if (!err)
		err = elog__haskell(b);
	if (!err)
		err = elog__calls(b);
	if (!err)
		err = elog__gcs(b);
	if (!err)
		err = elog__marks(b);
	if (!err)
		err = elog__windows(b);
	if (!err)
		err = elog__counters(b);
	if (err)
		return err;
	b->pub->ticks = all_ticks(b);
	fill_gc_sums(b);
	elog__fill(b);
	fill_cost(b);
	err = fill_losses(b);
	*ret_target = b->pub;
	return err ? err : report_missing(b);
}
