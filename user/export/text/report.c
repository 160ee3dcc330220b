/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The report for people: what was profiled, where the time went, which functions and calls took it,
 * and how far the results can be trusted.
 */
#include <stdlib.h>
#include <string.h>

#include "export/totals.h"
#include "text_priv.h"

#define WIDTH_OF_A_FILE 160 /* not a terminal: long names matter more than a narrow page */
#define WIDTH_MIN	60
#define ROWS		15
#define ROWS_VERBOSE	50

static uint64_t session_ns(const struct pic_session *session)
{
	return session->end_ns > session->start_ns ? session->end_ns - session->start_ns : 0;
}

/* ── what was profiled ───────────────────────────────────────────────────────────────────── */

static void put_sampling(const struct text *t)
{
	fputs(human__duration(t->wall_ns).s, t->out);
	if (t->session->frequency_hz)
		fprintf(t->out, " at %" PRIu32 " Hz", t->session->frequency_hz);
}

static void put_end(const struct text *t)
{
	const struct pic_target *target = t->target;
	const char *end = or_empty(target->end);

	if (!*end)
		return;
	if (target->exit_signal)
		fprintf(t->out, "; killed by signal %d (%s)", target->exit_signal,
			strsignal(target->exit_signal));
	else if (!strcmp(end, "exited") && target->exit_code >= 0)
		fprintf(t->out, "; exited with %d", target->exit_code);
	else if (!strcmp(end, "exec"))
		fputs("; it became another program", t->out);
	else if (!strcmp(end, "left"))
		fputs("; its runtime could not be confirmed", t->out);
	else
		fputs("; it ended", t->out);
}

static void put_attached(const struct text *t)
{
	const struct pic_target *target = t->target;
	const struct pic_lanes *threads = &target->lanes[LANE_THREAD];
	uint64_t cpu = 0;

	for (size_t i = 0; i < threads->n; i++)
		cpu += threads->v[i].cpu_ns;
	fputs("\n  ", t->out);
	put_sampling(t);
	fprintf(t->out, ": %s %s, %s %s, %s of CPU time", human__count(target->quality.samples).s,
		plural(target->quality.samples, "sample", "samples"), human__count(threads->n).s,
		plural(threads->n, "thread", "threads"), human__duration(cpu).s);
	put_end(t);
	fputc('\n', t->out);
	if (!target->layout_checked)
		fputs("  the runtime's layout could not be checked against the process\n", t->out);
}

static void put_header(const struct text *t)
{
	const struct pic_target *target = t->target;

	fprintf(t->out, "safescoped: %s", text__safe(t, target->comm));
	if (target->pid)
		fprintf(t->out, " (pid %d)", (int)target->pid);
	if (target->ghc_version && *target->ghc_version)
		fprintf(t->out, ", GHC %s%s", text__safe(t, target->ghc_version),
			target->version_known ? "" : " (not in the table of known layouts)");
	if (target->way && *target->way)
		fprintf(t->out, " %s", text__safe(t, target->way));
	if (target->capabilities)
		fprintf(t->out, ", %" PRIu32 " %s", target->capabilities,
			plural(target->capabilities, "capability", "capabilities"));
	fputs(text__safe(t, pic_target__place(target).s), t->out);
	/* Without a process there is only its log, or a report of GHC's, which has no times. */
	if (!t->log_alone)
		put_attached(t);
	else if (session_ns(t->session))
		fprintf(t->out, "\n  from its eventlog alone: %s\n",
			human__duration(session_ns(t->session)).s);
	else
		fputs("\n  from GHC's report alone\n", t->out);
}

/* ── the report ──────────────────────────────────────────────────────────────────────────── */

static int put_target(const struct text *t)
{
	static text_part *const parts[] = {
		text__findings,	  text__threads,     text__capabilities, text__haskell_threads,
		text__gc,	  text__functions,   text__cost_centres, text__cost_centre_stacks,
		text__allocation, text__heap_curves, text__safe_calls,	 text__unsafe_calls,
		text__windows,	  text__heap,	     text__trust,
	};
	int err = text__wrapped(t, put_header);

	if (!err && t->brief)
		return text__overview(t);
	for (size_t i = 0; i < ARRAY_SIZE(parts) && !err; i++)
		err = parts[i](t);
	return err;
}

/*
 * The time from the first to the last moment at which any of its threads was seen: less than the
 * session, which began before the probes were attached, and may run without the process for most of
 * its time.
 */
static uint64_t seen_ns(const struct text *t)
{
	const struct pic_lanes *threads = &t->target->lanes[LANE_THREAD];
	uint64_t start = UINT64_MAX, end = 0;

	/* A log covers the whole time, but knows OS threads only in annotated calls. */
	for (size_t i = 0; !t->log_alone && i < threads->n; i++) {
		/* skip the lane for several ended threads: it is as long as all of them together */
		if (!threads->v[i].tid)
			continue;
		start = MIN(start, threads->v[i].start_ns);
		end = MAX(end, threads->v[i].end_ns);
	}
	return end > start ? end - start : session_ns(t->session);
}

static void put_session(const struct text *t, size_t n)
{
	if (n)
		fprintf(t->out, "safescoped: %zu Haskell processes; ", n);
	else
		fputs("safescoped: no Haskell process was profiled; ", t->out);
	put_sampling(t);
	fputc('\n', t->out);
}

/* Prints a part for each process, most CPU time first. */
static int put_targets(struct text *t, size_t n)
{
	uint32_t *order;
	int err = totals__order(t->pic, &order);

	if (err)
		return err;
	for (size_t i = 0; i < n && !err; i++) {
		fputs("\n\n", t->out);
		t->target = picture__target(t->pic, order[i]);
		t->wall_ns = seen_ns(t);
		t->of = &t->target;
		t->n_of = 1;
		err = put_target(t);
	}
	free(order);
	return err;
}

static int put_several(struct text *t, size_t n)
{
	int err = text__overview_of_all(t);

	if (t->brief || err)
		return err;
	err = text__targets(t);
	if (!err)
		err = text__common_cost(t);
	return err ? err : put_targets(t, n);
}

static int put_all(struct text *t, size_t n)
{
	int err;

	if (n != 1)
		put_session(t, n);
	if (n > 1)
		return put_several(t, n);
	err = text__ended(t);
	if (err || !n)
		return err;
	t->target = picture__target(t->pic, 0);
	t->wall_ns = seen_ns(t);
	t->of = &t->target;
	t->n_of = 1;
	return put_target(t);
}

int text__write(FILE *out, const struct picture *pic, const struct export_opts *opts)
{
	size_t n = picture__n_targets(pic);
	struct text t = {
		.out = out,
		.opts = opts,
		.pic = pic,
		.session = picture__session(pic),
		.wall_ns = session_ns(picture__session(pic)),
		.width = opts->width ? MAX(opts->width, (unsigned)WIDTH_MIN) : WIDTH_OF_A_FILE,
		.rows = opts->verbose ? ROWS_VERBOSE : ROWS,
		.several = n > 1,
		.brief = !opts->verbose && !session__log_alone(pic),
		.log_alone = session__log_alone(pic),
	};
	int err = strtab__new(&t.strings);

	if (err)
		return err;
	err = put_all(&t, n);
	strtab__free(t.strings);
	return export__result(out, err);
}
