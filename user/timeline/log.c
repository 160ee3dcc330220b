/* SPDX-License-Identifier: GPL-2.0-or-later */
/* log: a target whose picture is made of its eventlog, or of a report that GHC wrote. */
#include <stdio.h>

#include "log_priv.h"

#define OWNED_MAX (1u << 20)

void *elog__alloc(struct log_build *b, size_t n, size_t size)
{
	void *p;

	if (TL_RESERVE(b->owned, b->owned_cap, b->n_owned + 1, OWNED_MAX))
		return NULL;
	p = calloc(n ? n : 1, size);
	if (p)
		b->owned[b->n_owned++] = p;
	return p;
}

void *elog__keep(struct log_build *b, void *array, size_t n, size_t size)
{
	void *p;

	if (TL_RESERVE(b->owned, b->owned_cap, b->n_owned + 1, OWNED_MAX))
		return NULL;
	/* It shrinks, or at worst stays as it is. */
	p = realloc(array, (n ? n : 1) * size);
	if (p)
		b->owned[b->n_owned++] = p;
	return p;
}

void elog__free(struct log_build *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < b->n_owned; i++)
		free(b->owned[i]);
	free(b->owned);
	free(b->map);
	free(b->node_stacks);
	cctree__free(b->filtered);
	free(b);
}

int elog__fit_rows(struct log_build *b, const struct ledger_account *account,
		   struct tl_cap_lane *lane)
{
	uint64_t states_ns[LEDGER_STATES] = {0};
	struct ledger_row *rows;
	size_t n;
	int err;

	memcpy(states_ns, lane->states_ns, sizeof(lane->states_ns));
	err = ledger_rows__fit(account->rows, account->n, states_ns, 0, &rows, &n);
	if (err)
		return err;
	lane->n_rows = n;
	lane->rows = elog__keep(b, rows, n, sizeof(*rows));
	if (lane->rows)
		return 0;
	free(rows);
	lane->n_rows = 0;
	return -ENOMEM;
}

uint64_t elog__time(const struct log_build *b, uint64_t log_ns)
{
	int64_t offset = b->in.offset_ns;

	if (offset < 0)
		return log_ns > -(uint64_t)offset ? log_ns - -(uint64_t)offset : 0;
	return log_ns > UINT64_MAX - (uint64_t)offset ? UINT64_MAX : log_ns + (uint64_t)offset;
}

bool elog__clip(const struct log_build *b, uint64_t *start_ns, uint64_t *end_ns)
{
	*start_ns = MAX(*start_ns, b->from_ns);
	*end_ns = MIN(*end_ns, b->to_ns);
	return *start_ns < *end_ns;
}

int elog__missing(struct timeline *tl, struct target_state *tg, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* no input: it follows from the log */
	return input__add_missing(tl, tg->pub.pid, text);
}

/* ── which process it was ────────────────────────────────────────────────────────────────── */

/* "GHC-9.0.2 rts_thr_p" */
static void take_rts(struct timeline *tl, struct tl_target *pub, const char *rts)
{
	char version[64];
	const char *blank = strchr(rts, ' ');

	if (strncmp(rts, "GHC-", 4) != 0)
		return;
	snprintf(version, sizeof(version), "%.*s", blank ? (int)MIN(blank - rts - 4, 63) : 63,
		 rts + 4);
	pub->ghc_version = tl__string(tl, version);
	pub->version_known = true;
	if (!blank)
		return;
	pub->way = tl__string(tl, blank + 1);
	pub->threaded = strstr(pub->way, "_thr") != NULL;
	pub->profiled = strlen(pub->way) > 2 && strstr(pub->way + 3, "_p") != NULL;
}

static void take_process(struct timeline *tl, struct target_state *tg, const struct tl_log *in)
{
	struct el_process process = {.rts = "", .program = "", .args = ""};
	struct tl_target *pub = &tg->pub;
	char program[4096];

	if (in->info)
		process = el_info__process(in->info);
	/* A report has the whole command line. */
	snprintf(program, sizeof(program), "%s", in->program ? in->program : process.program);
	if (in->program)
		program[strcspn(program, " ")] = '\0';
	pub->pid = (pid_t)MIN(process.pid, (uint32_t)INT32_MAX);
	pub->comm = tl__string(tl, *program ? path__base(program) : path__base(in->path));
	pub->exe = tl__string(tl, *program == '/' ? program : "");
	pub->build_id = pub->ghc_version = pub->way = pub->end = "";
	pub->found_suspend = pub->found_resume = pub->found_tick = pub->found_caps = "";
	take_rts(tl, pub, process.rts);
	if (in->tree)
		pub->profiled = true;
	tl->session.start_unix_ns = 0;
	if (process.wall_known && process.wall_time_ns + in->from_ns >= process.wall_at)
		tl->session.start_unix_ns = process.wall_time_ns + in->from_ns - process.wall_at;
}

int timeline__add_log_target(struct timeline *tl, const struct tl_log *log)
{
	struct target_state *tg;
	int err;

	if (tl->finished || tl->n_targets)
		return tl->finished ? -EINVAL : -EEXIST;
	err = TL_RESERVE(tl->targets, tl->targets_cap, tl->n_targets + 1, TL_MAX_TARGETS);
	if (err)
		return err;
	tg = calloc(1, sizeof(*tg));
	if (!tg)
		return -ENOMEM;
	tg->log = calloc(1, sizeof(*tg->log));
	if (!tg->log) {
		target__free_state(tg);
		return -ENOMEM;
	}
	tg->log->in = *log;
	tg->log_alone = true;
	err = target__make_books(tl, tg);
	if (err) {
		target__free_state(tg);
		return err;
	}
	take_process(tl, tg, log);
	tl->session.start_ns = elog__time(tg->log, log->from_ns);
	tl->targets[tl->n_targets++] = tg;
	return 0;
}

int timeline__join_log(struct timeline *tl, pid_t pid, const struct tl_log *log)
{
	struct target_state *tg = tl__find(tl, pid);

	if (tl->finished)
		return -EINVAL;
	if (!tg)
		return -ENOENT;
	if (tg->log)
		return -EEXIST;
	tg->log = calloc(1, sizeof(*tg->log));
	if (!tg->log)
		return -ENOMEM;
	tg->log->in = *log;
	return 0;
}

/* ── the picture ─────────────────────────────────────────────────────────────────────────── */

void elog__fill(struct timeline *tl, struct target_state *tg, const struct log_build *b)
{
	const struct eventlog_stats *stats = b->in.stats;
	struct tl_eventlog *e = &tg->pub.eventlog;

	e->known = true;
	e->path = tl__string(tl, b->in.path);
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
	/* A log that is whole reaches its last event; another, what all its buffers reach. */
	e->reaches_ns = elog__time(b, stats->ended ? stats->last_time : stats->reaches);
}

/* What the log lacks, and what would bring it. */
static int tell_missing(struct timeline *tl, struct target_state *tg, const struct log_build *b)
{
	const struct eventlog_stats *stats = b->in.stats;
	struct tl_target *pub = &tg->pub;
	int err = 0;

	if (!stats)
		return b->in.no_ticks ? elog__missing(tl, tg,
						      "ticks: the report has percentages only, to "
						      "one digit; +RTS -P or -pj writes ticks")
				      : 0;
	if (!stats->ended)
		err = elog__missing(tl, tg,
				    "the log has no end mark: its program was killed, or runs on");
	if (!err && !stats->by_id[EL_RUN_THREAD])
		err = elog__missing(tl, tg,
				    "scheduler events (which thread ran when, safe calls): the "
				    "program was not run with +RTS -l");
	if (!err && !stats->by_id[EL_PROF_SAMPLE_COST_CENTRE])
		err = elog__missing(
			tl, tg,
			"cost centres: the program was not built with -prof, or not run "
			"with +RTS -p -l");
	if (!err && stats->by_id[EL_RUN_THREAD] && pub->n_calls)
		err = elog__missing(tl, tg,
				    "waiting for a capability after a safe call: a log alone does "
				    "not tell it from the call");
	return err;
}

static void fill_gc_sums(struct target_state *tg, const struct log_build *b)
{
	const struct eventlog_stats *stats = b->in.stats;
	struct el_sched_info info;

	if (!b->in.sched || !stats || !stats->by_id[EL_GC_START])
		return;
	info = el_sched__info(b->in.sched);
	tg->pub.gc.known = true;
	tg->pub.gc.count = info.gcs;
	tg->pub.gc.pause_ns = info.gc_pause_ns;
	tg->pub.gc.max_pause_ns = info.gc_max_pause_ns;
}

static uint64_t all_ticks(const struct log_build *b)
{
	uint64_t n = 0;

	for (size_t i = 0; b->tree && i < cctree__n_nodes(b->tree); i++)
		n += cctree__node(b->tree, (uint32_t)i)->ticks;
	return n;
}

int elog__build(struct timeline *tl, struct target_state *tg)
{
	struct log_build *b = tg->log;
	int err;

	b->from_ns = elog__time(b, b->in.from_ns);
	b->to_ns = MAX(elog__time(b, b->in.to_ns), b->from_ns);
	tl->session.start_ns = b->from_ns;
	tl->session.end_ns = b->to_ns;
	err = elog__centres(tl, tg, b);
	if (!err)
		err = elog__caps(tl, tg, b);
	if (!err)
		err = elog__tsos(tl, tg, b);
	if (!err)
		err = elog__calls(tl, tg, b);
	if (!err)
		err = elog__gcs(tg, b);
	if (!err)
		err = elog__marks(tl, tg, b);
	if (!err)
		err = elog__windows(tl, tg, b);
	if (!err)
		err = elog__counters(tl, tg, b);
	if (err)
		return err;
	tg->pub.ticks = all_ticks(b);
	fill_gc_sums(tg, b);
	elog__fill(tl, tg, b);
	return tell_missing(tl, tg, b);
}
