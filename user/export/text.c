/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The summary that a person reads: what was profiled, where the time went, which functions and
 * calls took it, and how far all that can be trusted.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "text_priv.h"

#define WIDTH_OF_A_FILE 160 /* not a terminal: long names matter more than a narrow page */
#define WIDTH_MIN	60
#define ROWS		15
#define ROWS_VERBOSE	50

void text__section(const struct text *t, const char *title)
{
	bool colour = t->opts->colour;

	fprintf(t->out, "\n%s%s%s\n", colour ? "\033[1m" : "", title, colour ? "\033[0m" : "");
}

/* A string of the target's, without what a terminal could take for a command. */
void text__put_safe(FILE *out, const char *s)
{
	uint32_t cp;

	while (s && (cp = utf8__next(&s))) {
		char utf8[4] = {0};

		if (utf8__is_control(cp))
			cp = '?';
		fwrite(utf8, 1, utf8__put(utf8, cp), out);
	}
}

void text__put_duration(FILE *out, uint64_t ns)
{
	char text[32];

	human__duration(text, sizeof(text), ns);
	fputs(text, out);
}

void text__put_count(FILE *out, uint64_t n)
{
	char text[32];

	human__count(text, sizeof(text), n);
	fputs(text, out);
}

static uint64_t session_ns(const struct tl_session *session)
{
	return session->end_ns > session->start_ns ? session->end_ns - session->start_ns : 0;
}

/* ── what was profiled ───────────────────────────────────────────────────────────────────── */

static void put_sampling(const struct text *t)
{
	text__put_duration(t->out, t->wall_ns);
	if (t->session->frequency_hz)
		fprintf(t->out, " at %" PRIu32 " Hz", t->session->frequency_hz);
}

static void put_attached(const struct text *t)
{
	const struct tl_target *target = t->target;
	uint64_t cpu = 0;

	for (size_t i = 0; i < target->n_lanes; i++)
		cpu += target->lanes[i].cpu_ns;
	fputs("\n  ", t->out);
	put_sampling(t);
	fputs(": ", t->out);
	text__put_count(t->out, target->quality.samples);
	fputs(target->quality.samples == 1 ? " sample, " : " samples, ", t->out);
	text__put_count(t->out, target->n_lanes);
	fputs(target->n_lanes == 1 ? " thread, " : " threads, ", t->out);
	text__put_duration(t->out, cpu);
	fputs(" of CPU time", t->out);
	if (target->end && *target->end) {
		fputs("; the program ended: ", t->out);
		text__put_safe(t->out, target->end);
	}
	fputc('\n', t->out);
	if (!target->layout_checked)
		fputs("  the runtime's layout could not be checked against the process\n", t->out);
}

/* Without a process there is but its log, or a report of GHC's, which has no times. */
static void put_log_span(const struct text *t)
{
	if (session_ns(t->session)) {
		fputs("\n  from its eventlog alone: ", t->out);
		text__put_duration(t->out, session_ns(t->session));
	} else {
		fputs("\n  from GHC's report alone", t->out);
	}
	fputc('\n', t->out);
}

static void put_header(const struct text *t)
{
	const struct tl_target *target = t->target;

	fputs("safescoped: ", t->out);
	text__put_safe(t->out, target->comm);
	if (target->pid)
		fprintf(t->out, " (pid %d)", (int)target->pid);
	if (target->ghc_version && *target->ghc_version) {
		fputs(", GHC ", t->out);
		text__put_safe(t->out, target->ghc_version);
		if (!target->version_known)
			fputs(" (not in the table of known layouts)", t->out);
	}
	if (target->way && *target->way) {
		fputc(' ', t->out);
		text__put_safe(t->out, target->way);
	}
	if (target->capabilities)
		fprintf(t->out, ", %" PRIu32 " %s", target->capabilities,
			target->capabilities == 1 ? "capability" : "capabilities");
	if (t->log_alone)
		put_log_span(t);
	else
		put_attached(t);
}

/* ── the report ──────────────────────────────────────────────────────────────────────────── */

static int put_tables(const struct text *t)
{
	int err = text__findings(t);

	if (!err)
		err = text__threads(t);
	if (!err)
		err = text__capabilities(t);
	if (!err)
		err = text__haskell_threads(t);
	if (!err)
		err = text__gc(t);
	/* With a log alone functions are cost centres, which have a table of their own. */
	if (!err && !t->log_alone)
		err = text__functions(t);
	if (!err)
		err = text__cost_centres(t);
	if (!err)
		err = text__cost_centre_stacks(t);
	if (!err)
		err = text__safe_calls(t);
	if (!err)
		err = text__unsafe_calls(t);
	if (!err)
		err = text__windows(t);
	if (!err)
		err = text__heap(t);
	return err;
}

static int put_target(const struct text *t)
{
	int err;

	put_header(t);
	err = put_tables(t);
	return err ? err : text__trust(t);
}

/* From the first to the last moment that any of its threads was seen: less than the session, which
 * began before the probes were on, and may be without the process for most of its time. */
static uint64_t seen_ns(const struct text *t)
{
	uint64_t start = UINT64_MAX, end = 0;

	/* A log tells of all its time, but of OS threads only in annotated calls. */
	for (size_t i = 0; !t->log_alone && i < t->target->n_lanes; i++) {
		start = MIN(start, t->target->lanes[i].start_ns);
		end = MAX(end, t->target->lanes[i].end_ns);
	}
	return end > start ? end - start : session_ns(t->session);
}

static int text__write(FILE *out, const struct timeline *tl, const struct export_opts *opts)
{
	static const struct export_opts plain;
	struct text t = {
		.out = out,
		.opts = opts ? opts : &plain,
		.session = timeline__session(tl),
	};
	size_t n = timeline__n_targets(tl);
	int err = 0;

	if (!t.session)
		return -EINVAL;
	t.log_alone = session__log_alone(tl);
	t.several = n > 1;
	t.wall_ns = session_ns(t.session);
	t.width = t.opts->width ? MAX(t.opts->width, (unsigned)WIDTH_MIN) : WIDTH_OF_A_FILE;
	t.rows = t.opts->verbose ? ROWS_VERBOSE : ROWS;
	if (!n) {
		fputs("safescoped: no Haskell process was profiled; ", out);
		put_sampling(&t);
		fputc('\n', out);
	}
	if (n > 1) {
		fprintf(out, "safescoped: %zu Haskell processes; ", n);
		put_sampling(&t);
		fputc('\n', out);
		err = text__targets(&t, tl);
		if (!err)
			err = text__common_cost(&t, tl);
	}
	for (size_t i = 0; i < n && !err; i++) {
		if (n > 1)
			fputs("\n\n", out);
		t.target = timeline__target(tl, i);
		t.wall_ns = seen_ns(&t);
		err = put_target(&t);
	}
	if (!err && ferror(out))
		err = -EIO;
	return err;
}

const struct export_format export_text = {
	.name = "text",
	.suffix = ".txt",
	.write = text__write,
};
