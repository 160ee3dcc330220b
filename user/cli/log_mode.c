/* SPDX-License-Identifier: GPL-2.0-or-later */
/* log_mode: `safescoped --eventlog FILE`: needs no kernel, no privileges, no process. */
#include "modes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "eventlog/eventlog.h"
#include "join/join.h"
#include "logs/logs.h"
#include "names/symfile.h"
#include "picture/picture.h"
#include "timeline/timeline.h"

#define MARKER	  24 /* bytes of a block marker */
#define ADDRS_MAX 64 /* functions used to find out where the executable was mapped */

struct log_mode {
	const struct options *options;
	const char *path;
	int in;
	struct log_alone_read read;
	struct symfile *symbols;
	struct timeline *tl;
	struct outputs *outputs;
	struct progress progress;
	int signal_fd;
	uint64_t end_ns;  /* when to stop reading a stream, by --duration; 0: when it ends */
	bool interrupted; /* by a signal */
	bool partial;	  /* something asked for is missing */
};

/* The stop callback of an el_input. */
static bool is_over(void *ctx)
{
	struct log_mode *m = ctx;

	if (signals__came(&m->signal_fd))
		m->interrupted = true;
	return m->interrupted || (m->end_ns && time__monotonic_ns() >= m->end_ns);
}

static void on_progress(void *ctx, uint64_t done, uint64_t all)
{
	struct log_mode *m = ctx;

	progress__bytes(&m->progress, time__monotonic_ns(), done, all);
}

/* ── reading ─────────────────────────────────────────────────────────────────────────────── */

static int report_unreadable(const struct log_mode *m, int err)
{
	if (err == -ECANCELED)
		log_error("interrupted before the end of the log");
	else if (err == -EIO)
		log_error("%s: the process reading it failed", m->path);
	else
		log_error("%s: cannot be read: %s", m->path, strerror(-err));
	return err;
}

static int report_bad(const struct log_mode *m)
{
	if (m->read.kind == LOG_ALONE_REPORT)
		log_error("%s: starts like a report by GHC, but cannot be read as one", m->path);
	else
		log_error("%s: damaged at the beginning: its list of event types, which the rest "
			  "depends on, cannot be read",
			  m->path);
	return -EBADMSG;
}

static int report_empty(const struct log_mode *m)
{
	if (m->read.stopped)
		log_error("%s: nothing to show: nothing was written to it", m->path);
	else
		log_error("%s: empty; GHC writes a log when its buffers are full, and when the "
			  "program ends",
			  m->path);
	return -ENODATA;
}

static int read_input(struct log_mode *m)
{
	uint64_t duration_ns = m->options->duration_ns;
	const struct log_alone how = {
		.part = m->options->part,
		.stop = is_over,
		.progress = progress__shown(&m->progress) ? on_progress : NULL,
		.ctx = m,
	};
	struct stat st;
	int err;

	m->end_ns = duration_ns ? time__monotonic_ns() + duration_ns : 0;
	m->in = el_input__open_path(m->path, is_over, m);
	if (m->in < 0)
		return report_unreadable(m, m->in);
	/* a file is always read to its end */
	if (!fstat(m->in, &st) && S_ISREG(st.st_mode))
		m->end_ns = 0;
	err = log_alone__read(&how, m->in, &m->read);
	progress__end(&m->progress);
	if (err)
		return report_unreadable(m, err);
	if (m->read.unreadable)
		return report_bad(m);
	if (m->read.damaged)
		log_warn("%s: damaged gzip data; using what could be read", m->path);
	if (m->read.kind == LOG_ALONE_EMPTY)
		return report_empty(m);
	if (m->read.kind == LOG_ALONE_OTHER) {
		log_error("%s: neither an eventlog nor a .prof or -pj report by GHC", m->path);
		return -EINVAL;
	}
	return 0;
}

static int check_log(const struct log_mode *m)
{
	const struct eventlog_stats *stats = log_models__stats(m->read.models);

	if (stats->blocks || stats->lost_bytes <= MARKER)
		return 0;
	log_error("%s: its events are not in blocks as GHC writes them: a tool has rewritten it, "
		  "or it is damaged throughout; use the log as GHC wrote it",
		  m->path);
	return -ENODATA;
}

/* The markers and times of --from and --to must exist in the log. */
static int check_window(struct log_mode *m)
{
	const struct el_window *w = log_models__window(m->read.models);
	uint64_t last = log_models__stats(m->read.models)->last_time;

	if (w->from_marker && !w->opened) {
		log_error("--from %s: no marker or message in the log begins with this; nothing to "
			  "show",
			  w->from_marker);
		return -ENOENT;
	}
	if (w->from > last) {
		log_error("--from: the log ends at %.6f s; nothing to show", (double)last / 1e9);
		return -ENOENT;
	}
	if (w->to && w->to <= w->from) {
		log_error("--to: not after --from; nothing to show");
		return -ENOENT;
	}
	if (w->to_marker && !w->closed) {
		log_warn("--to %s: no marker or message after --from begins with this; showing all "
			 "to the end of the log",
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
	const struct el_annot *annot = log_models__annot(m->read.models);
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

/* A report has ticks but no times, so there is nothing to draw on a time axis. */
static void warn_timeless(const struct log_mode *m)
{
	const struct output_opts *out = &m->options->output;

	for (size_t i = 0; i < out->n_formats; i++)
		if (out->formats[i] == &export_chrome)
			log_warn("chrome: a report by GHC has no times, so there is nothing to "
				 "show; speedscope, folded, pprof and html have its stacks");
}

static void check_report(const struct log_mode *m)
{
	const struct log_part *part = &m->options->part;

	if (part->from_marker || part->from_ns || part->to_marker || part->to_ns)
		log_warn("--from, --to: a report has no times; showing all of it");
	warn_timeless(m);
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
	const struct prof_info *p = m->read.report_info;
	uint64_t ns = p->tick_interval_us ? p->tick_interval_us * 1000 : 1000000;

	log->tree = m->read.report;
	log->interval_ns = ns;
	log->capabilities = p->capabilities;
	log->program = p->program;
	log->no_ticks = !p->has_ticks;
}

/* True if parts of the log are missing. */
static bool has_losses(const struct log_mode *m)
{
	const struct log_models *models = m->read.models;

	return models && (log_models__stats(models)->lost_bytes || log_models__dropped(models));
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
		if (m->read.report)
			fill_report(m, &log);
		else
			log_models__fill(m->read.models, &log);
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

/* The default name of the output: the log's own, without its suffixes. */
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
	if (outputs__plan(&m->options->output, name, 0, &m->outputs) || read_input(m))
		return EXIT_FAILED;
	if (m->read.report)
		check_report(m);
	else if (check_log(m) || check_window(m) || open_symbols(m))
		return EXIT_FAILED;
	if (make_picture(m))
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
	m->signal_fd = m->in = -1;
	progress__init(&m->progress, options->quiet);
	code = run(m);
	timeline__free(m->tl);
	log_alone__free(&m->read);
	outputs__free(m->outputs);
	symfile__free(m->symbols);
	fd__close(&m->in);
	fd__close(&m->signal_fd);
	free(m);
	return code;
}
