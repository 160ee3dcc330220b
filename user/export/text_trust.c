/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The end of the text report: how far it can be trusted, and what it cost. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "text_priv.h"

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
	if (t->target->attach_took_ns) {
		fputs("Probes: attached in ", t->out);
		text__put_duration(t->out, t->target->attach_took_ns);
	} else {
		fputs("Probes: there before it began", t->out);
	}
	fputs(", places found by ", t->out);
	text__put_safe(t->out, usual);
	for (size_t i = 1; i < ARRAY_SIZE(found); i++) {
		if (!found[i].how || !*found[i].how || !strcmp(found[i].how, usual))
			continue;
		if (!strcmp(found[i].how, "none")) {
			fprintf(t->out, "%s%s not found", comma, found[i].what);
		} else {
			fprintf(t->out, "%s%s by ", comma, found[i].what);
			text__put_safe(t->out, found[i].how);
		}
		comma = ", ";
	}
	if (*comma == ',')
		fputc(')', t->out);
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
	text__put_count(t->out, total);
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
		text__put_count(t->out, q->samples);
		fputs(" samples reach the stack's end", t->out);
	} else {
		fputs("no sample", t->out);
	}
	if (q->haskell_samples) {
		fprintf(t->out, ", %.1f %% of ",
			human__percent(q->haskell_complete, q->haskell_samples));
		text__put_count(t->out, q->haskell_samples);
		fputs(" in Haskell code", t->out);
	}
	if (q->resynchronised)
		fprintf(t->out, "; %.1f %% of all resynchronised",
			human__percent(q->resynchronised, q->samples));
	if (q->elided) {
		fputs("; with a gap in the middle: ", t->out);
		text__put_count(t->out, q->elided);
	}
	if (q->gap) {
		fputs("; with C frames that are not known: ", t->out);
		text__put_count(t->out, q->gap);
	}
	if (q->truncated) {
		fputs("; truncated: ", t->out);
		text__put_count(t->out, q->truncated);
	}
	for (unsigned i = 0; i < TL_CAUSES; i++) {
		if (!q->broken[i])
			continue;
		fputs(comma, t->out);
		text__put_count(t->out, q->broken[i]);
		fprintf(t->out, " %s", broken__title(i) ? broken__title(i) : "of unknown cause");
		comma = ", ";
	}
	fputc('\n', t->out);
}

static void put_lost(const struct text *t)
{
	const struct tl_target *target = t->target;
	bool warn = false;

	if (!target->cost_known) {
		fputs("Lost: not known\n", t->out);
		return;
	}
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
		text__put_count(t->out, target->lost[i].n);
		fputc(' ', t->out);
		text__put_safe(t->out, target->lost[i].cause);
	}
	fprintf(t->out, " (%.2f %% of all records)%s\n", 100 * target->lost_share,
		t->opts->colour ? "\033[0m" : "");
}

static void put_own(const struct text *t, uint64_t user_cpu_ns, uint64_t max_rss_bytes)
{
	char rss[32];

	fputs("safescoped itself: ", t->out);
	text__put_duration(t->out, user_cpu_ns);
	human__bytes(rss, sizeof(rss), max_rss_bytes);
	fprintf(t->out, " of CPU time, the attach included, and %s\n", rss);
}

/* What the program waited for is told apart from what safescoped did besides, most of it once, when
 * it read files at the attach. */
static void put_cost(const struct text *t)
{
	const struct tl_target *target = t->target;
	uint64_t total = target->trap_ns_estimated + (target->bpf_ns_known ? target->bpf_ns : 0);

	if (!target->cost_known)
		return;
	fputs("Own cost: ", t->out);
	text__put_count(t->out, target->probe_hits);
	fputs(target->probe_hits == 1 ? " probe hit, about " : " probe hits, about ", t->out);
	text__put_duration(t->out, target->trap_ns_estimated);
	fputs(" in their traps", t->out);
	if (target->bpf_ns_known) {
		fputs(" and ", t->out);
		text__put_duration(t->out, target->bpf_ns);
		fputs(" in BPF", t->out);
	}
	fprintf(t->out, ", %.2f %% of one CPU", human__percent(total, t->wall_ns));
	if (t->several) {
		fputc('\n', t->out);
	} else {
		fputs("; ", t->out);
		put_own(t, target->user_cpu_ns, target->max_rss_bytes);
	}
	if (target->probes_paused_ns) {
		fputs("  the call probes were off for ", t->out);
		text__put_duration(t->out, target->probes_paused_ns);
		fputs(", to stay below --max-overhead\n", t->out);
	}
}

/* What cannot be told apart by process. */
static void put_common_cost(const struct text *t)
{
	if (!t->target->cost_known)
		return;
	fputs("Own cost: ", t->out);
	if (t->session->bpf_ns_known) {
		text__put_duration(t->out, t->session->bpf_ns);
		fprintf(t->out, " in BPF for all of them, %.2f %% of one CPU; ",
			human__percent(t->session->bpf_ns, t->wall_ns));
	}
	put_own(t, t->target->user_cpu_ns, t->target->max_rss_bytes);
}

static int put_missing(const struct text *t)
{
	int err = 0;

	if (!t->target->n_missing)
		return 0;
	text__section(t, "Missing");
	for (size_t i = 0; i < t->target->n_missing && !err; i++)
		err = text__paragraph(t, "  · ", t->target->missing[i]);
	return err;
}

/* Lines as they are put, each a paragraph. */
static int put_wrapped(const struct text *t, void (*put)(const struct text *t))
{
	char *lines = NULL, *rest;
	struct text to = *t;
	size_t size;
	int err = 0;

	to.out = open_memstream(&lines, &size);
	if (!to.out)
		return -ENOMEM;
	put(&to);
	if (fclose(to.out))
		err = -ENOMEM;
	rest = lines;
	for (char *line; !err && (line = strsep(&rest, "\n")) && *line;)
		err = text__paragraph(t, *line == ' ' ? "  " : "", line + strspn(line, " "));
	free(lines);
	return err;
}

int text__common_cost(const struct text *t, const struct timeline *tl)
{
	struct text of = *t;

	of.target = timeline__target(tl, 0);
	fputc('\n', t->out);
	return put_wrapped(&of, put_common_cost);
}

int text__trust(const struct text *t)
{
	void (*const of_process[])(const struct text *t) = {put_found, put_names, put_stacks,
							    put_cost};
	int err = 0;

	fputc('\n', t->out);
	err = put_wrapped(t, text__eventlog);
	for (size_t i = 0; i < ARRAY_SIZE(of_process) && !err && !t->log_alone; i++)
		err = put_wrapped(t, of_process[i]);
	if (err)
		return err;
	put_lost(t);
	return put_missing(t);
}
