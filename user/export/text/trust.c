/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The end of the text report: how far it can be trusted, and what the profiler cost. */
#include <stdlib.h>
#include <string.h>

#include "export/totals.h"
#include "picture/lost.h"
#include "text_priv.h"

#define MISSING 2 /* in the overview */

static void put_eventlog(const struct text *t)
{
	const struct pic_eventlog *e = &t->target->eventlog;
	const struct {
		const char *what;
		double share;
	} shares[] = {{"safe calls", e->agreement_safe_calls},
		      {"threads on capabilities", e->agreement_caps},
		      {"ticks", e->agreement_ticks}};
	const char *comma = "; differs from the kernel's records in ";

	if (!e->known)
		return;
	/* GHC's .prof can be the only input, and has no events */
	fprintf(t->out, "%s: %s", t->log_alone && !e->events ? "Profile" : "Eventlog",
		text__safe(t, e->path));
	if (e->events)
		fprintf(t->out, ", %s events", human__count(e->events).s);
	if (e->samples)
		fprintf(t->out, ", %s cost-centre samples", human__count(e->samples).s);
	if (e->damaged_bytes)
		fprintf(t->out, "; %s damaged and left out", human__bytes(e->damaged_bytes).s);
	if (!t->log_alone && e->offset_error_ns == UINT64_MAX)
		fputs("; aligned by its wall clock", t->out);
	else if (!t->log_alone)
		fprintf(t->out, "; its clock is known to within %s",
			human__duration(e->offset_error_ns).s);
	for (size_t i = 0; i < ARRAY_SIZE(shares); i++) {
		if (shares[i].share < 0)
			continue;
		fprintf(t->out, "%s%.2f %% of %s", comma, 100 * (1 - shares[i].share),
			shares[i].what);
		comma = ", ";
	}
	if (e->tick_centres_differ >= 0)
		fprintf(t->out, ", in the cost centre of %.1f %% of single ticks",
			100 * e->tick_centres_differ);
	fputc('\n', t->out);
}

/* Prints how the probes' places were found; those found otherwise than suspendThread are named. */
static void put_found(const struct text *t)
{
	const struct pic_target *target = t->target;
	const struct {
		const char *what, *how;
	} found[] = {
		{"resumeThread", target->found_resume},
		{"ticks", target->found_tick},
		{"capabilities", target->found_caps},
	};
	const char *usual = target->found_suspend, *comma = " (";

	if (!usual || !*usual)
		return;
	if (target->attach_took_ns)
		fprintf(t->out, "Probes: attached in %s",
			human__duration(target->attach_took_ns).s);
	else
		fputs("Probes: attached before it started", t->out);
	fprintf(t->out, ", places found by %s", text__safe(t, usual));
	for (size_t i = 0; i < ARRAY_SIZE(found); i++) {
		const char *how = found[i].how;

		if (!how || !*how || !strcmp(how, usual))
			continue;
		if (!strcmp(how, "none"))
			fprintf(t->out, "%s%s not found", comma, found[i].what);
		else
			fprintf(t->out, "%s%s by %s", comma, found[i].what, text__safe(t, how));
		comma = ", ";
	}
	fputs(*comma == ',' ? ")\n" : "\n", t->out);
}

static void put_shares(const struct text *t, const char *of, const struct pic_names *n)
{
	const struct {
		const char *title;
		uint64_t n;
	} sources[] = {
		{"info table map", n->ipe},
		{"DWARF", n->dwarf},
		{"symbol", n->exact},
		{"nearest symbol (~)", n->nearest},
		{"description", n->description},
		{"module", n->module},
		{"the runtime's strings", n->strings},
		{"static archive", n->archive},
		{"no name", n->none},
	};
	const char *comma = ": ";
	uint64_t total = 0;

	for (size_t i = 0; i < ARRAY_SIZE(sources); i++)
		total += sources[i].n;
	if (!total)
		return;
	fprintf(t->out, "Names of %s %s", human__count(total).s, of);
	for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
		if (!sources[i].n)
			continue;
		fprintf(t->out, "%s%.1f %% %s", comma, human__percent(sources[i].n, total),
			sources[i].title);
		comma = ", ";
	}
	fputc('\n', t->out);
}

static void put_names(const struct text *t)
{
	put_shares(t, "frames in stacks", &t->target->names);
	put_shares(t, "innermost frames of samples", &t->target->leaf_names);
}

static void put_stacks(const struct text *t)
{
	const struct pic_quality *q = &t->target->quality;
	const struct {
		const char *what;
		uint64_t n;
	} flaws[] = {
		{"with a gap in the middle", q->elided},
		{"with unknown C frames", q->gap},
		{"truncated", q->truncated},
	};
	const char *comma = "\n  broken: ";

	if (q->samples)
		fprintf(t->out, "Stacks: %.1f %% of %s samples reach the stack's end",
			human__percent(q->complete + q->elided + q->gap, q->samples),
			human__count(q->samples).s);
	else
		fputs("Stacks: no samples", t->out);
	if (q->haskell_samples)
		fprintf(t->out, ", %.1f %% of %s in Haskell code",
			human__percent(q->haskell_complete, q->haskell_samples),
			human__count(q->haskell_samples).s);
	if (q->resynchronised)
		fprintf(t->out, "; %.1f %% of all resynchronised",
			human__percent(q->resynchronised, q->samples));
	for (size_t i = 0; i < ARRAY_SIZE(flaws); i++)
		if (flaws[i].n)
			fprintf(t->out, "; %s: %s", flaws[i].what, human__count(flaws[i].n).s);
	for (unsigned i = 0; i < PIC_CAUSES; i++) {
		if (!q->broken[i])
			continue;
		fprintf(t->out, "%s%s %s", comma, human__count(q->broken[i]).s,
			broken__title(i) ? broken__title(i) : "of unknown cause");
		comma = ", ";
	}
	fputc('\n', t->out);
}

/* Prints how much time nothing is known about. */
static void put_unknown(const struct text *t)
{
	const struct totals totals = totals__of(t->pic, t->target);
	uint64_t off_ns = totals.wall_ns - totals.cpu_ns;
	const char *comma = "; ";

	if (!totals.cpu_ns)
		return;
	fprintf(t->out, "Not known: %.1f %% of %s on the CPU has no sample of its own",
		human__percent(totals.without_sample_ns, totals.cpu_ns),
		human__duration(totals.cpu_ns).s);
	for (size_t i = 0; i < totals.n_unknown; i++) {
		const struct totals_unknown *u = &totals.unknown[i];
		double on = human__percent(u->cpu_ns, totals.cpu_ns);
		double off = human__percent(u->off_cpu_ns, off_ns);

		/* already reported as time without a sample */
		if (!strcmp(u->frame, "[no sample]") || (on < 0.05 && off < 0.05))
			continue;
		fprintf(t->out, "%s%s in ", comma, text__safe(t, u->frame));
		if (on >= 0.05)
			fprintf(t->out, "%.1f %% of it", on);
		if (off >= 0.05)
			fprintf(t->out, "%s%.1f %% of the waiting", on >= 0.05 ? " and " : "", off);
		comma = ", ";
	}
	fputc('\n', t->out);
}

static void put_lost(const struct text *t)
{
	const struct pic_target *target = t->target;
	const char *comma = t->opts->colour ? "\033[33mLost: " : "Lost: ";
	bool any = false;

	for (size_t i = 0; i < target->n_lost && pic_target__lost_known(target); i++) {
		if (!target->lost[i].n)
			continue;
		fprintf(t->out, "%s%s %s", any ? ", " : comma, human__count(target->lost[i].n).s,
			text__safe(t, target->lost[i].cause));
		any = true;
	}
	if (any)
		fprintf(t->out, " (%.2f %% of all records)%s\n", 100 * target->lost_share,
			t->opts->colour ? "\033[0m" : "");
	else if (!t->log_alone)
		fprintf(t->out, "Lost: %s\n",
			pic_target__lost_known(target) ? "nothing" : "not known");
}

static void put_own(const struct text *t)
{
	fprintf(t->out,
		"safescoped itself: %s of CPU time, including the attach, and %s of memory\n",
		human__duration(t->target->user_cpu_ns).s,
		human__bytes(t->target->max_rss_bytes).s);
}

/* Lists the program's cost apart from what safescoped itself used; most of the latter is spent
 * once, on reading files at the attach. */
static void put_cost(const struct text *t)
{
	const struct pic_target *target = t->target;
	uint64_t bpf_ns = target->bpf_ns_known ? target->bpf_ns : 0;

	if (!target->cost_known)
		return;
	fprintf(t->out, "Own cost: %s probe %s, about %s in their traps",
		human__count(target->probe_hits).s, plural(target->probe_hits, "hit", "hits"),
		human__duration(target->trap_ns_estimated).s);
	if (target->bpf_ns_known)
		fprintf(t->out, " and %s in BPF", human__duration(bpf_ns).s);
	fprintf(t->out, ", %.2f %% of one CPU%s",
		human__percent(target->trap_ns_estimated + bpf_ns, t->wall_ns),
		t->several ? "\n" : "; ");
	if (!t->several)
		put_own(t);
	if (target->probes_paused_ns)
		fprintf(t->out,
			"  the call probes were off for %s: they could not be set, cost more than "
			"--max-overhead, or safescoped was held up\n",
			human__duration(target->probes_paused_ns).s);
}

/* Prints the cost that is not known for each process. */
static void put_common_cost(const struct text *t)
{
	if (!t->target->cost_known)
		return;
	fputs("Own cost: ", t->out);
	if (t->session->bpf_ns_known)
		fprintf(t->out, "%s in BPF for all processes, %.2f %% of one CPU; ",
			human__duration(t->session->bpf_ns).s,
			human__percent(t->session->bpf_ns, t->wall_ns));
	put_own(t);
}

int text__common_cost(const struct text *t)
{
	struct text of = *t;

	of.target = picture__target(t->pic, 0);
	fputc('\n', t->out);
	return text__wrapped(&of, put_common_cost);
}

/* ── in one paragraph ────────────────────────────────────────────────────────────────────── */

struct losses {
	uint64_t records;   /* of the whole session and of single processes */
	uint64_t log_bytes; /* of joined eventlogs, or events in them */
	bool known;
};

static struct losses losses_of(const struct text *t)
{
	struct losses l = {.known = true};
	uint64_t of_all = 0;

	for (size_t i = 0; i < t->n_of; i++) {
		const struct pic_target *target = t->of[i];
		uint64_t in_it = 0;

		l.known = l.known && !target->lost_unknown;
		for (size_t k = 0; k < target->n_lost && target->cost_known; k++) {
			const char *cause = target->lost[k].cause;

			if (pic_lost__is_log(cause))
				l.log_bytes += target->lost[k].n;
			else if (pic_lost__is_own(cause))
				l.records += target->lost[k].n;
			else
				in_it += target->lost[k].n;
		}
		/* each process has the session's losses, and all have the same ones */
		of_all = MAX(of_all, in_it);
	}
	l.records += of_all;
	return l;
}

static void put_losses(const struct text *t, bool known)
{
	const struct losses l = losses_of(t);

	if (!known || !l.known)
		fputs(", losses are not known", t->out);
	else if (l.records)
		fprintf(t->out, ", %s records were lost", human__count(l.records).s);
	else
		fputs(l.log_bytes ? ", nothing but parts of the eventlog was lost"
				  : ", nothing was lost",
		      t->out);
}

static void put_brief(const struct text *t)
{
	uint64_t samples = 0, whole = 0, cpu = 0, without = 0, cost = 0, bpf = 0, paused = 0;
	bool known = false;

	for (size_t i = 0; i < t->n_of; i++) {
		const struct pic_target *target = t->of[i];
		const struct totals totals = totals__of(t->pic, target);

		samples += target->quality.samples;
		whole += target->quality.complete + target->quality.elided + target->quality.gap;
		cpu += totals.cpu_ns;
		without += totals.without_sample_ns;
		cost += target->trap_ns_estimated;
		bpf += target->bpf_ns_known ? target->bpf_ns : 0;
		paused = MAX(paused, target->probes_paused_ns);
		known = known || target->cost_known;
	}
	/* the session's has the runs for processes that are no targets, too */
	cost += t->n_of > 1 && t->session->bpf_ns_known ? t->session->bpf_ns : bpf;
	if (samples)
		fprintf(t->out, "Trust: %.1f %% of %s %s whole", human__percent(whole, samples),
			human__count(samples).s, plural(samples, "stack is", "stacks are"));
	else
		fputs("Trust: there are no samples", t->out);
	if (samples && human__percent(without, cpu) >= 1)
		fprintf(t->out, ", %.0f %% of the CPU time has no sample",
			human__percent(without, cpu));
	put_losses(t, known);
	if (known)
		fprintf(t->out, "; the probes cost %.2f %% of one CPU",
			human__percent(cost, t->wall_ns));
	if (paused)
		fprintf(t->out, " (those on calls were off for %s: --max-overhead, or held up)",
			human__duration(paused).s);
	fputs("; more with -v\n", t->out);
}

/* A distinct text, and the number of processes that have it. */
struct missing {
	const char *text;
	size_t n;
};

static int by_number(const void *pa, const void *pb)
{
	const struct missing *a = pa, *b = pb;

	return CMP(b->n, a->n) ?: strcmp(a->text, b->text);
}

static size_t gather_missing(const struct text *t, struct missing *v)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n_of; i++) {
		for (size_t k = 0; k < t->of[i]->n_missing; k++) {
			const char *text = or_empty(t->of[i]->missing[k]);
			size_t at = 0;

			while (at < n && strcmp(v[at].text, text) != 0)
				at++;
			if (at == n)
				v[n++] = (struct missing){.text = text};
			v[at].n++;
		}
	}
	if (t->n_of > 1)
		qsort(v, n, sizeof(*v), by_number);
	return n;
}

static bool is_of_all(const char *text)
{
	const size_t len = strlen(text), end = strlen(PIC_OF_ALL);

	return len > end && strcmp(text + len - end, PIC_OF_ALL) == 0;
}

static int put_missing(const struct text *t, const struct missing *missing)
{
	char *text;
	int err;

	if (t->n_of == 1 || is_of_all(missing->text))
		return text__paragraph(t, "  · ", missing->text);
	if (asprintf(&text, "%s (%zu %s)", missing->text, missing->n,
		     plural(missing->n, "process", "processes")) < 0)
		return -ENOMEM;
	err = text__paragraph(t, "  · ", text);
	free(text);
	return err;
}

int text__brief_trust(const struct text *t)
{
	size_t max = 0, n, shown;
	struct missing *v;
	int err;

	for (size_t i = 0; i < t->n_of; i++)
		max += t->of[i]->n_missing;
	v = calloc(max + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	n = gather_missing(t, v);
	shown = n <= MISSING + 1 ? n : MISSING;
	fputc('\n', t->out);
	err = text__wrapped(t, put_brief);
	if (n && !err)
		text__section(t, "Missing");
	for (size_t i = 0; i < shown && !err; i++)
		err = put_missing(t, &v[i]);
	if (shown < n && !err)
		fprintf(t->out, "  … and %zu more (-v)\n", n - shown);
	free(v);
	return err;
}

/* ── all of it ───────────────────────────────────────────────────────────────────────────── */

int text__trust(const struct text *t)
{
	void (*const of_process[])(const struct text *t) = {put_found, put_names, put_stacks,
							    put_unknown, put_cost};
	int err;

	fputc('\n', t->out);
	err = text__wrapped(t, put_eventlog);
	for (size_t i = 0; i < ARRAY_SIZE(of_process) && !err && !t->log_alone; i++)
		err = text__wrapped(t, of_process[i]);
	if (err)
		return err;
	put_lost(t);
	if (t->target->n_missing)
		text__section(t, "Missing");
	for (size_t i = 0; i < t->target->n_missing && !err; i++)
		err = text__paragraph(t, "  · ", t->target->missing[i]);
	return err;
}
