/* SPDX-License-Identifier: GPL-2.0-or-later */
/* log_mode: `safescoped --eventlog FILE`: no kernel, no privilege, no process. */
#include "modes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "eventlog/eventlog.h"
#include "join/join.h"
#include "logs/logs.h"
#include "names/symfile.h"
#include "picture/picture.h"
#include "timeline/timeline.h"

#define MARKER	  24 /* bytes of a block marker */
#define ADDRS_MAX 64 /* functions by which it is found where an executable was mapped */

struct log_mode {
	const struct options *options;
	const char *path;
	struct el_input *in;
	struct log_models *models; /* NULL: a report of GHC's was read, no log */
	struct symfile *symbols;
	/* of a report */
	struct cctree *tree;
	struct prof_info prof;
	struct timeline *tl;
	struct outputs *outputs;
	struct progress progress;
	int signal_fd;
	uint64_t end_ns;  /* when a stream is read no longer, by --duration; 0: when it ends */
	bool interrupted; /* by a signal */
	bool partial;	  /* something that was asked for is missing */
};

/* An el_input's stop. */
static bool is_over(void *ctx)
{
	struct log_mode *m = ctx;

	if (signals__came(&m->signal_fd))
		m->interrupted = true;
	return m->interrupted || (m->end_ns && time__monotonic_ns() >= m->end_ns);
}

/* A signal ends the reading. What came of a stream is shown then; of a file all or nothing is. */
static int on_block(void *ctx, const struct el_event *ev)
{
	struct log_mode *m = ctx;
	const struct eventlog_stats *stats = eventlog__stats(log_models__reader(m->models));

	(void)ev;
	if (progress__shown(&m->progress))
		progress__bytes(&m->progress, time__monotonic_ns(),
				stats->header_bytes + stats->event_bytes + stats->lost_bytes,
				stats->bytes_in);
	if (!el_input__is_stream(m->in) && signals__came(&m->signal_fd))
		return -ECANCELED;
	return 0;
}

/* ── reading ─────────────────────────────────────────────────────────────────────────────── */

static int report_unreadable(const struct log_mode *m, int err)
{
	if (err == -ECANCELED)
		log_error("interrupted: the log was not read to its end");
	else if (err == -EBADMSG)
		log_error("%s: damaged at its beginning: its list of event types cannot be read, "
			  "and nothing in it without that",
			  m->path);
	else
		log_error("%s: cannot be read: %s", m->path, strerror(-err));
	return err;
}

static int open_input(struct log_mode *m)
{
	uint64_t duration_ns = m->options->duration_ns;
	int err;

	m->end_ns = duration_ns ? time__monotonic_ns() + duration_ns : 0;
	err = el_input__open(m->path, is_over, m, &m->in);
	if (err)
		return report_unreadable(m, err);
	switch (el_input__kind(m->in)) {
	case EL_INPUT_EMPTY:
		if (el_input__stopped(m->in)) {
			log_error("%s: nothing to show: nobody wrote to it", m->path);
			return -ENODATA;
		}
		log_error("%s: is empty; GHC writes a log when its buffers are full, and at the "
			  "program's end",
			  m->path);
		return -ENODATA;
	case EL_INPUT_OTHER:
		log_error("%s: neither an eventlog nor a .prof or -pj report of GHC's", m->path);
		return -EINVAL;
	default:
		return 0;
	}
}

static int read_log(struct log_mode *m)
{
	static const uint16_t ids[] = {EL_BLOCK_MARKER};
	int err = log_models__new(&m->options->part, &m->models);
	struct eventlog *log = err ? NULL : log_models__reader(m->models);
	const struct eventlog_stats *stats;

	if (!err)
		err = eventlog__subscribe(log, ids, ARRAY_SIZE(ids), on_block, m);
	if (!err)
		err = eventlog__read(log, m->in);
	/* compressed, it is read as a stream is */
	if (!err && m->interrupted && !el_input__is_stream(m->in))
		err = -ECANCELED;
	if (!err)
		err = log_models__finish(m->models);
	progress__end(&m->progress);
	if (err)
		return report_unreadable(m, err);
	stats = eventlog__stats(log);
	if (!stats->blocks && stats->lost_bytes > MARKER) {
		log_error("%s: its events are in no blocks, which GHC always makes; a tool has "
			  "rewritten it, or it is damaged all over: give the log as GHC wrote it",
			  m->path);
		return -ENODATA;
	}
	return 0;
}

/* What was asked for by --from and --to must be there. */
static int check_window(struct log_mode *m)
{
	const struct el_window *w = log_models__window(m->models);
	uint64_t last = eventlog__stats(log_models__reader(m->models))->last_time;

	if (w->from_marker && !w->opened) {
		log_error("--from %s: no marker or message of the log begins with it; "
			  "nothing to show",
			  w->from_marker);
		return -ENOENT;
	}
	if (w->from > last) {
		log_error("--from: the log ends at %.6f s; nothing to show", (double)last / 1e9);
		return -ENOENT;
	}
	if (w->to && w->to <= w->from) {
		log_error("--to: is not after --from; nothing to show");
		return -ENOENT;
	}
	if (w->to_marker && !w->closed) {
		log_warn("--to %s: no marker or message after --from begins with it: shown up to "
			 "the log's end",
			 w->to_marker);
		m->partial = true;
	}
	return 0;
}

static bool name_function(void *ctx, uint64_t addr, struct code_name *ret_name)
{
	const struct log_mode *m = ctx;

	return symfile__name(m->symbols, addr, ret_name);
}

static int open_symbols(struct log_mode *m)
{
	const struct el_annot *annot = log_models__annot(m->models);
	size_t n = el_annot__info(annot).n_ccalls, n_addrs = MIN(n, (size_t)ADDRS_MAX);
	uint64_t addrs[ADDRS_MAX];
	int err;

	if (!m->options->symbols)
		return 0;
	err = symfile__open(m->options->symbols, &m->symbols);
	if (err) {
		log_error("--symbols %s: %s", m->options->symbols,
			  err == -ENODATA ? "it has no symbols; give the unstripped executable"
					  : strerror(-err));
		return err;
	}
	for (size_t i = 0; i < n_addrs; i++)
		addrs[i] = el_annot__ccall(annot, i * (n / n_addrs))->fn;
	symfile__place(m->symbols, addrs, n_addrs);
	return 0;
}

/* Ticks without times: there is nothing to draw on a time axis. */
static void warn_timeless(const struct log_mode *m)
{
	const struct output_opts *out = &m->options->output;

	for (size_t i = 0; i < out->n_formats; i++)
		if (out->formats[i] == &export_chrome)
			log_warn("chrome: a report of GHC's has no times: nothing to show in it; "
				 "speedscope, folded, pprof and html have its stacks");
}

static int read_report(struct log_mode *m)
{
	const struct log_part *part = &m->options->part;
	int err = prof__read(m->in, &m->tree, &m->prof);

	if (err == -EBADMSG)
		log_error("%s: begins like a report of GHC's, but cannot be read as one", m->path);
	else if (err)
		report_unreadable(m, err);
	else if (part->from_marker || part->from_ns || part->to_marker || part->to_ns)
		log_warn("--from, --to: a report has no times; all of it is shown");
	if (!err)
		warn_timeless(m);
	return err;
}

/* ── the picture ─────────────────────────────────────────────────────────────────────────── */

static void fill_common(struct log_mode *m, struct join_log *log)
{
	const struct options *o = m->options;

	log->path = m->path;
	log->own_cost = true;
	log->hide = o->hide;
	log->n_hide = o->n_hide;
	log->only = o->only;
	log->n_only = o->n_only;
}

static void fill_report(struct log_mode *m, struct join_log *log)
{
	const struct prof_info *p = &m->prof;
	uint64_t ns = p->tick_interval_us ? p->tick_interval_us * 1000 : 1000000;

	log->tree = m->tree;
	log->interval_ns = ns;
	log->capabilities = p->capabilities;
	log->program = p->program;
	log->no_ticks = !p->has_ticks;
}

/* Whether something of the log is missing. */
static bool has_losses(const struct log_mode *m)
{
	return m->models && (eventlog__stats(log_models__reader(m->models))->lost_bytes ||
			     log_models__dropped(m->models));
}

static int make_picture(struct log_mode *m)
{
	const struct timeline_opts opts = {
		.start_unix_ns = 1,
		.haskell_lanes = m->options->output.lanes & EXPORT_LANES_HASKELL,
	};
	struct join_log log = {0};
	int err = timeline__new(&opts, SAFESCOPED_VERSION, options__mode(m->options->mode), &m->tl);

	if (!err) {
		fill_common(m, &log);
		if (m->tree)
			fill_report(m, &log);
		else
			log_models__fill(m->models, &log);
		if (m->symbols) {
			log.function = name_function;
			log.ctx = m;
		}
		err = timeline__add_log_target(m->tl, &log);
	}
	if (!err)
		err = timeline__finish(m->tl, 0);
	if (err)
		log_error("the profile cannot be made: %s", strerror(-err));
	else if (m->partial || has_losses(m))
		intake__set_exit_code(timeline__intake(m->tl), EXIT_PARTIAL);
	return err;
}

/* ── the whole ───────────────────────────────────────────────────────────────────────────── */

/* The output's default name: the log's own, without its suffixes. */
static void name_of(const char *path, char *out, size_t size)
{
	const char *base = path__base(path);
	static const char *const ends[] = {".gz", ".eventlog", ".prof"};
	size_t len = strlen(base);

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		size_t n = strlen(ends[i]);

		if (len > n && !strncmp(base + len - n, ends[i], n))
			len -= n;
	}
	len = MIN(len, size - 1);
	memcpy(out, base, len);
	out[len] = '\0';
	if (!strcmp(out, "-"))
		memcpy(out, "stdin", MIN(sizeof("stdin"), size));
}

static int run(struct log_mode *m)
{
	const struct picture *pic;
	char name[64];
	int err;

	err = signals__open(&m->signal_fd);
	if (err) {
		log_error("signals: %s", strerror(-err));
		return EXIT_FAILED;
	}
	name_of(m->path, name, sizeof(name));
	if (outputs__plan(&m->options->output, name, 0, &m->outputs) || open_input(m))
		return EXIT_FAILED;
	if (el_input__kind(m->in) == EL_INPUT_REPORT)
		err = read_report(m);
	else if (!(err = read_log(m)) && !(err = check_window(m)))
		err = open_symbols(m);
	if (err || make_picture(m))
		return EXIT_FAILED;
	pic = timeline__picture(m->tl);
	err = outputs__write(m->outputs, pic, signals__came, &m->signal_fd);
	return err ? EXIT_FAILED : picture__session(pic)->exit_code;
}

int log_mode__run(const struct options *options)
{
	struct log_mode *m = calloc(1, sizeof(*m));
	int code;

	if (!m) {
		log_error("no memory");
		return EXIT_FAILED;
	}
	m->options = options;
	m->path = options->eventlog;
	m->signal_fd = -1;
	progress__init(&m->progress, options->quiet);
	code = run(m);
	timeline__free(m->tl);
	log_models__free(m->models);
	outputs__free(m->outputs);
	cctree__free(m->tree);
	symfile__free(m->symbols);
	el_input__free(m->in);
	fd__close(&m->signal_fd);
	free(m);
	return code;
}
