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
#define ROWS		20
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

static void put_duration(FILE *out, uint64_t ns)
{
	char text[32];

	human__duration(text, sizeof(text), ns);
	fputs(text, out);
}

static void put_count(FILE *out, uint64_t n)
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

/* How the probes' places were found; what was found otherwise than suspendThread is told apart. */
static void put_found(const struct text *t)
{
	const struct {
		const char *what, *how;
	} found[] = {
		{"suspendThread", t->target->found_suspend},
		{"resumeThread", t->target->found_resume},
		{"ticks", t->target->found_tick},
		{"capabilities", t->target->found_caps},
	};
	const char *usual = found[0].how, *comma = " (";

	if (!usual || !*usual)
		return;
	fputs(" by ", t->out);
	text__put_safe(t->out, usual);
	for (size_t i = 1; i < ARRAY_SIZE(found); i++) {
		if (!found[i].how || !*found[i].how || !strcmp(found[i].how, usual))
			continue;
		fprintf(t->out, "%s%s by ", comma, found[i].what);
		text__put_safe(t->out, found[i].how);
		comma = ", ";
	}
	if (*comma == ',')
		fputc(')', t->out);
}

static void put_sampling(const struct text *t)
{
	put_duration(t->out, session_ns(t->session));
	if (t->session->frequency_hz)
		fprintf(t->out, " at %" PRIu32 " Hz", t->session->frequency_hz);
}

static void put_attached(const struct text *t)
{
	const struct tl_target *target = t->target;

	fputs("\n  attached in ", t->out);
	put_duration(t->out, target->attach_took_ns);
	put_found(t);
	fputs("; ", t->out);
	put_sampling(t);
	fputs(", ", t->out);
	put_count(t->out, target->quality.samples);
	fputs(target->quality.samples == 1 ? " sample, " : " samples, ", t->out);
	put_count(t->out, target->n_lanes);
	fputs(target->n_lanes == 1 ? " thread" : " threads", t->out);
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
		put_duration(t->out, session_ns(t->session));
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

/* ── how far it can be trusted ───────────────────────────────────────────────────────────── */

static void put_gc(const struct text *t)
{
	const struct tl_gc *gc = &t->target->gc;

	fputs("GC: ", t->out);
	if (!gc->known) {
		fputs("collections were not counted\n", t->out);
		return;
	}
	put_count(t->out, gc->count);
	fputs(gc->count == 1 ? " collection" : " collections", t->out);
	if (gc->count) {
		fputs(", ", t->out);
		put_duration(t->out, gc->pause_ns);
		fprintf(t->out, " paused (%.1f %% of the session), longest ",
			human__percent(gc->pause_ns, session_ns(t->session)));
		put_duration(t->out, gc->max_pause_ns);
	}
	fputc('\n', t->out);
}

static void put_names(const struct text *t)
{
	const struct tl_names *n = &t->target->names;
	const struct {
		const char *title;
		uint64_t n;
	} sources[] = {
		{"info table map", n->ipe},
		{"DWARF", n->dwarf},
		{"symbol", n->exact},
		{"nearest symbol (~)", n->nearest},
		{"description", n->description},
		{"no name", n->none},
	};
	uint64_t total = 0;

	for (size_t i = 0; i < ARRAY_SIZE(sources); i++)
		total += sources[i].n;
	if (!total)
		return;
	fputs("Names of ", t->out);
	put_count(t->out, total);
	fputs(total == 1 ? " frame in stacks" : " frames in stacks", t->out);
	for (size_t i = 0, put = 0; i < ARRAY_SIZE(sources); i++)
		if (sources[i].n)
			fprintf(t->out, "%s%.1f %% %s", put++ ? ", " : ": ",
				human__percent(sources[i].n, total), sources[i].title);
	fputc('\n', t->out);
}

static void put_stacks(const struct text *t)
{
	const struct tl_quality *q = &t->target->quality;
	const char *comma = "\n  broken: ";

	fputs("Stacks: ", t->out);
	if (q->samples) {
		fprintf(t->out, "%.1f %% of ",
			human__percent(q->complete + q->elided + q->gap, q->samples));
		put_count(t->out, q->samples);
		fputs(" samples reach the stack's end", t->out);
	} else {
		fputs("no sample", t->out);
	}
	if (q->haskell_samples) {
		fprintf(t->out, ", %.1f %% of ",
			human__percent(q->haskell_complete, q->haskell_samples));
		put_count(t->out, q->haskell_samples);
		fputs(" in Haskell code", t->out);
	}
	if (q->resynchronised)
		fprintf(t->out, "; %.1f %% of all resynchronised",
			human__percent(q->resynchronised, q->samples));
	if (q->elided) {
		fputs("; with a gap in the middle: ", t->out);
		put_count(t->out, q->elided);
	}
	if (q->gap) {
		fputs("; with C frames that are not known: ", t->out);
		put_count(t->out, q->gap);
	}
	if (q->truncated) {
		fputs("; truncated: ", t->out);
		put_count(t->out, q->truncated);
	}
	for (unsigned i = 0; i < TL_CAUSES; i++) {
		if (!q->broken[i])
			continue;
		fputs(comma, t->out);
		put_count(t->out, q->broken[i]);
		fprintf(t->out, " %s", broken__title(i) ? broken__title(i) : "of unknown cause");
		comma = ", ";
	}
	fputc('\n', t->out);
}

static void put_lost(const struct text *t)
{
	const struct tl_target *target = t->target;
	bool warn = false;

	for (size_t i = 0; i < target->n_lost; i++)
		warn = warn || target->lost[i].n;
	if (!warn) {
		fputs("Lost: nothing\n", t->out);
		return;
	}
	fprintf(t->out, "%sLost: ", t->opts->colour ? "\033[33m" : "");
	for (size_t i = 0, put = 0; i < target->n_lost; i++) {
		if (!target->lost[i].n)
			continue;
		fputs(put++ ? ", " : "", t->out);
		put_count(t->out, target->lost[i].n);
		fputc(' ', t->out);
		text__put_safe(t->out, target->lost[i].cause);
	}
	fprintf(t->out, " (%.2f %% of all records)%s\n", 100 * target->lost_share,
		t->opts->colour ? "\033[0m" : "");
}

static void put_cost(const struct text *t)
{
	const struct tl_target *target = t->target;
	uint64_t total = target->trap_ns_estimated + target->user_cpu_ns;
	char rss[32];

	fputs("Own cost: ", t->out);
	put_count(t->out, target->probe_hits);
	fputs(" probe hits, about ", t->out);
	put_duration(t->out, target->trap_ns_estimated);
	fputs(" in their traps, ", t->out);
	if (target->bpf_ns_known) {
		total += target->bpf_ns;
		put_duration(t->out, target->bpf_ns);
		fputs(" in BPF, ", t->out);
	}
	put_duration(t->out, target->user_cpu_ns);
	human__bytes(rss, sizeof(rss), target->max_rss_bytes);
	fprintf(t->out, " of CPU and %s in safescoped; in all %.2f %% of one CPU\n", rss,
		human__percent(total, session_ns(t->session)));
	if (target->probes_paused_ns) {
		fputs("  the call probes were off for ", t->out);
		put_duration(t->out, target->probes_paused_ns);
		fputs(", to stay below --max-overhead\n", t->out);
	}
}

static void put_missing(const struct text *t)
{
	if (!t->target->n_missing)
		return;
	text__section(t, "Missing");
	for (size_t i = 0; i < t->target->n_missing; i++) {
		fputs("  · ", t->out);
		text__put_safe(t->out, t->target->missing[i]);
		fputc('\n', t->out);
	}
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
	if (err)
		return err;
	fputc('\n', t->out);
	if (!t->log_alone || t->target->gc.known)
		put_gc(t);
	text__eventlog(t);
	if (!t->log_alone) {
		put_names(t);
		put_stacks(t);
	}
	put_lost(t);
	if (!t->log_alone)
		put_cost(t);
	put_missing(t);
	return 0;
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
	t.width = t.opts->width ? MAX(t.opts->width, (unsigned)WIDTH_MIN) : WIDTH_OF_A_FILE;
	t.rows = t.opts->verbose ? ROWS_VERBOSE : ROWS;
	if (!n) {
		fputs("safescoped: no Haskell process was profiled; ", out);
		put_sampling(&t);
		fputc('\n', out);
	}
	for (size_t i = 0; i < n && !err; i++) {
		if (i)
			fputs("\n\n", out);
		t.target = timeline__target(tl, i);
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
