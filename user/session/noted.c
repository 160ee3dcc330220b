/* SPDX-License-Identifier: GPL-2.0-or-later */
/* noted: what the profiles of all processes lack together, in the window or session that ends. */
#include <errno.h>
#include <stdio.h>

#include "session_priv.h"

/* Takes a number (unsigned long long), whose they are, and members__why_few(). */
#define LEFT_OUT                                                                                   \
	"%llu processes of %s were left out, some perhaps only until others ended: "               \
	"too many of theirs were already being profiled%s"

/* Takes the same number, and the limit on descriptors. */
#define NO_FILES                                                                                   \
	"%llu processes could not be inspected, some perhaps only until others ended: "            \
	"no more than %llu descriptors may be open (RLIMIT_NOFILE)"

/* The counts of the whole session so far. */
static void count(struct session *s, struct noted *ret_now)
{
	struct kernel_held_up held_up;

	kernel__held_up(s->kernel, &held_up);
	*ret_now = (struct noted){
		.switches = kernel__counter(s->kernel, WIRE_CNT_NO_SWITCH_IN) +
			    kernel__counter(s->kernel, WIRE_CNT_NO_SWITCH_OUT),
		.returns = kernel__counter(s->kernel, WIRE_CNT_CALL_UNMATCHED),
		.too_short = s->n_too_short,
		.unseen = s->n_unseen,
		.held_up_ns = held_up.ns,
		.held_up = held_up.times,
	};
}

static struct noted since(const struct noted *now, const struct noted *before)
{
	return (struct noted){
		.switches = now->switches - before->switches,
		.returns = now->returns - before->returns,
		.too_short = now->too_short - before->too_short,
		.unseen = now->unseen - before->unseen,
		.held_up_ns = now->held_up_ns - before->held_up_ns,
		.held_up = now->held_up - before->held_up,
	};
}

/* `whole`: at the end of the session, which a capture records as well. False: the process is not in
 * what ends. */
static bool add(struct session *s, const struct member *m, bool whole, const char *text)
{
	int err = whole ? intake__add_missing(s->in, m->pid, text)
			: intake__add_missing_once(s->in, m->pid, text);

	return err != -ENOENT;
}

/* False: there is no process whose profile could show it. */
static bool add_to_all(struct session *s, bool whole, const char *text)
{
	const struct member *m;
	bool any = false;
	char all[264];

	snprintf(all, sizeof(all), "%s%s", text, members__count(s->members) > 1 ? PIC_OF_ALL : "");
	for (size_t at = 0; (m = members__next_shown(s->members, &at));)
		any |= add(s, m, whole, all);
	return any;
}

/* Cases in which no record is lost, but something is inferred or not counted. */
static void note_inferred(struct session *s, const struct noted *n, bool whole)
{
	char text[160];

	if (n->switches) {
		snprintf(text, sizeof(text),
			 "%llu context switch%s not reported by the kernel; %s inferred from "
			 "the CPU time of threads",
			 (unsigned long long)n->switches, n->switches == 1 ? " was" : "es were",
			 n->switches == 1 ? "its time was" : "their times were");
		add_to_all(s, whole, text);
	}
	if (n->returns) {
		snprintf(text, sizeof(text),
			 "%llu safe call%s of which only the end was seen: not counted",
			 (unsigned long long)n->returns, n->returns == 1 ? "" : "s");
		add_to_all(s, whole, text);
	}
}

static void note_too_short(struct session *s, const struct noted *n, bool whole)
{
	char text[200];

	if (n->too_short) {
		snprintf(text, sizeof(text),
			 "%llu process%s of profiled programs ended before %s could be inspected",
			 (unsigned long long)n->too_short, n->too_short == 1 ? "" : "es",
			 n->too_short == 1 ? "it" : "they");
		/* a window without any process would look as if none had run */
		if (!add_to_all(s, whole, text))
			log_warn("%s", text);
	}
	if (n->unseen) {
		snprintf(text, sizeof(text), ENDING_UNSEEN, (unsigned long long)n->unseen);
		add_to_all(s, whole, text);
	}
}

/* What the kernel side did while user space was held up. */
static void note_held_up(struct session *s, const struct noted *n, bool whole)
{
	char text[200], times[40] = "";

	if (!n->held_up_ns)
		return;
	/* 0: it started in the previous window */
	if (n->held_up)
		snprintf(times, sizeof(times), " (%u time%s)", n->held_up,
			 n->held_up == 1 ? "" : "s");
	snprintf(text, sizeof(text),
		 "the probes were off for %.1f s: safescoped itself was stopped, or held up for "
		 "more than two seconds%s",
		 (double)n->held_up_ns / 1e9, times);
	add_to_all(s, whole, text);
}

static void note_no_files(struct session *s, bool whole)
{
	struct no_files *no = &s->no_files;
	uint64_t waiting = candidates__count_waiting_for_files(s->candidates);
	char text[240];

	if (no->lately) {
		snprintf(text, sizeof(text), NO_FILES, (unsigned long long)no->lately,
			 (unsigned long long)fd__limit());
		add_to_all(s, whole, text);
		intake__set_exit_code(s->in, EXIT_PARTIAL);
	}
	if (whole && no->n)
		log_warn(NO_FILES, (unsigned long long)no->n, (unsigned long long)fd__limit());
	no->reported = no->lately || waiting;
	no->lately = waiting;
}

/* How many of the i-th entry's refused processes are still waiting. */
static uint64_t waiting_of(const struct session *s, size_t i)
{
	const struct members_refused *refused = members__refused(s->members, i), *listed;
	uint64_t n = candidates__count_waiting(s->candidates, refused->uid);

	if (refused->uid != (uid_t)-1)
		return n;
	for (size_t k = 0; k < i; k++) {
		uint64_t of;

		listed = members__refused(s->members, k);
		of = candidates__count_waiting(s->candidates, listed->uid);
		n -= MIN(of, n);
	}
	return n;
}

/* Processes that were left out because others of the same user had taken all that one user may
 * have. */
static void note_refused(struct session *s, bool whole)
{
	const struct members_refused *refused;
	const char *why_few = members__why_few(s->members);
	const struct member *m;
	char text[320];

	for (size_t i = 0; (refused = members__refused(s->members, i)); i++) {
		char whose[40] = "other users";
		uint64_t n = refused->lately;

		if (refused->uid != (uid_t)-1)
			snprintf(whose, sizeof(whose), "user %u", refused->uid);
		if (whole)
			log_warn(LEFT_OUT, (unsigned long long)refused->n, whose, why_few);
		members__cut_refused(s->members, i, waiting_of(s, i));
		snprintf(text, sizeof(text), LEFT_OUT, (unsigned long long)n, whose, why_few);
		for (size_t at = 0; n && (m = members__next_shown(s->members, &at));)
			add(s, m, whole, text);
	}
}

static void note_no_archives(struct session *s, bool whole)
{
	if (!s->no_archives)
		return;
	add_to_all(s, whole,
		   "functions of archives have no names: those of --archives could not be opened");
	intake__set_exit_code(s->in, EXIT_PARTIAL);
}

/* What live members were refused; for those that have ended this was recorded when they ended. */
static void note_room(struct session *s, bool whole)
{
	for (size_t i = 0; i < members__count(s->members); i++) {
		struct member *m = members__at(s->members, i);

		if (!m->forgotten && (m->live || s->opts->kind == SESSION_PIDS))
			missing__note_refused(s, m, whole);
	}
}

static void note(struct session *s, bool whole)
{
	struct noted now, n;

	count(s, &now);
	n = since(&now, &s->noted);
	note_inferred(s, &n, whole);
	note_too_short(s, &n, whole);
	note_held_up(s, &n, whole);
	note_refused(s, whole);
	note_no_files(s, whole);
	note_no_archives(s, whole);
	note_room(s, whole);
	s->noted = now;
}

void noted__cut(struct session *s)
{
	/* a capture is a single session, and has everything at its end */
	if (!s->capture)
		note(s, false);
}

/* A session in windows goes on when the file is removed; any other one is over before its time. */
static void note_switched_off(struct session *s)
{
	char text[160];

	if (!s->switched_off || (s->windows && !s->command && !s->capture))
		return;
	snprintf(text, sizeof(text), "what came after safescoped was switched off by %s",
		 s->opts->off_path);
	add_to_all(s, true, text);
	intake__set_exit_code(s->in, EXIT_PARTIAL);
}

void noted__end(struct session *s)
{
	note(s, true);
	note_switched_off(s);
	if (!s->cut_short)
		return;
	add_to_all(s, true,
		   "the end: safescoped did not run for more than ten seconds, or its keeper "
		   "process was killed");
	intake__set_exit_code(s->in, EXIT_PARTIAL);
}
