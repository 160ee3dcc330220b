/* SPDX-License-Identifier: GPL-2.0-or-later */
/* missing: what a member's profile lacks, and what would help. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "process/image.h"
#include "session_priv.h"

static void add(struct session *s, const struct member *m, const char *text)
{
	intake__add_missing(s->in, m->pid, text);
}

/* `whole`: at the end of the member or the session, which a capture records as well. */
static void add_refused(struct session *s, const struct member *m, bool whole, const char *text)
{
	if (whole)
		intake__add_missing(s->in, m->pid, text);
	else
		intake__add_missing_once(s->in, m->pid, text);
}

static void note_lacking(struct session *s, const struct member *m)
{
	const struct kernel_lacking *l = &m->lacking;
	char text[200];

	if (!l->err)
		return;
	snprintf(text, sizeof(text), "%s%s%s: probes could not be set: %s",
		 l->calls ? "safe calls are not counted" : "",
		 l->calls && (l->gc || l->gc_parts) ? "; " : "",
		 l->gc	       ? "collections are not seen"
		 : l->gc_parts ? "how long threads waited for collections is not known"
		 : l->calls    ? ""
			       : "ticks are not seen",
		 strerror(-l->err));
	add(s, m, text);
	/* the next time it may be available */
	if (l->err == -EMFILE || l->err == -ENFILE || l->err == -ENOMEM)
		intake__set_exit_code(s->in, EXIT_PARTIAL);
}

static void note_probes(struct session *s, const struct member *m)
{
	const struct target_info *info = target__info(m->target);
	const struct {
		const struct target_probe *probe;
		bool was_found;
		const char *text;
	} needs[] = {
		{&info->suspend, m->lacking.calls,
		 "safe calls are not counted: suspendThread was not found; symbols would help"},
		{&info->resume, m->lacking.calls,
		 "safe calls are not counted: resumeThread was not found; symbols would help"},
		{&info->tick, false, "no ticks: the RTS's timer was not found; symbols would help"},
		{&info->gc_start, m->lacking.gc,
		 "no exact GC pauses: the start of collections was not found; symbols would help"},
	};
	char text[400];

	note_lacking(s, m);
	if (info->no_probes) {
		snprintf(text, sizeof(text),
			 "no probes: %s; safe calls are not counted, and collections and ticks are "
			 "not seen",
			 info->no_probes);
		add(s, m, text);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(needs); i++)
		if (needs[i].probe->found == FOUND_NONE && !needs[i].was_found)
			add(s, m, needs[i].text);
}

/* With an unstripped twin the symbols are known although the process does not have them. */
static void note_symbols(struct session *s, const struct member *m)
{
	const char *have = target__symbols(m->target);

	if (s->opts->symbols)
		return;
	if (!strcmp(have, "none"))
		add(s, m, INTAKE_NO_SYMBOLS);
	else if (!strcmp(have, "dynamic only"))
		add(s, m,
		    "only dynamic symbols: functions that are not exported have no name, or a "
		    "neighbour's (~); --symbols FILE, or a debug file in /usr/lib/debug, would "
		    "help");
}

void missing__note_download(struct session *s, const struct member *m, bool whole)
{
	const char *id = m->target ? target__info(m->target)->build_id : "";
	const char *why = *id ? debuginfod__why_not(s->debuginfod, id) : NULL;
	char reason[160], text[200];

	if (!why)
		return;
	text__escape(why, strlen(why), reason, sizeof(reason));
	snprintf(text, sizeof(text), "no symbols from debuginfod: %s", reason);
	add_refused(s, m, whole, text);
}

void missing__note_downloads(struct session *s, bool whole)
{
	for (size_t i = 0; s->debuginfod && i < members__count(s->members); i++)
		missing__note_download(s, members__at(s->members, i), whole);
}

/* --stacks can ask for what only profiled programs have, and only some of a host's programs may be
 * profiled. */
static void note_stacks(struct session *s, const struct member *m)
{
	enum intake_stacks stacks = s->opts->stacks;

	if ((stacks != STACKS_CCS && stacks != STACKS_BOTH) || target__info(m->target)->profiled)
		return;
	add(s, m, "no cost centres: the program was not compiled for profiling (ghc -prof)");
	if (s->opts->kind != SESSION_SYSTEM)
		intake__set_exit_code(s->in, EXIT_PARTIAL);
}

/* Only for processes that started during the session: older ones are seen from its start anyway. */
static bool lacks_start(const struct member *m)
{
	return !m->from_start && m->program.h.ns && !m->only_sampled;
}

bool missing__calls(const struct member *m)
{
	return m->calls_missed || (!m->ready && lacks_start(m));
}

void missing__note_start(struct session *s, struct member *m)
{
	if (m->calls_missed || !lacks_start(m))
		return;
	m->calls_missed = true;
	add(s, m,
	    "safe calls before its probes were in place are not counted: its runtime may already "
	    "have been running");
}

static void note_kernel(struct session *s, const struct member *m)
{
	if (s->opts->kernel_stacks && !target_cache__knows_kernel(s->cache))
		add(s, m,
		    "kernel frames have no names: /proc/kallsyms shows no addresses; that needs "
		    "CAP_SYSLOG, and kernel.kptr_restrict at 1 or below");
}

/* ── for want of room ────────────────────────────────────────────────────────────────────── */

static void note_files(struct session *s, const struct member *m, const struct target_left_out *now,
		       bool whole)
{
	char text[320];

	if (now->no_room) {
		snprintf(text, sizeof(text),
			 "the code of %zu of its mappings has no names: one process may map %u "
			 "files, and the processes of one user (%u) at most half of those that "
			 "others leave room for",
			 now->no_room, IMAGES_MAX, m->account);
		add_refused(s, m, whole, text);
	}
	if (now->not_copied) {
		snprintf(
			text, sizeof(text),
			"the code of %zu of its mappings has no names: their files are not on a "
			"local file system and could not be copied: the server took too long, they "
			"are larger than %llu MB, or the files of user %u are too large together",
			now->not_copied, FETCH_MAX_FILE >> 20, m->account);
		add_refused(s, m, whole, text);
	}
	if (now->not_opened) {
		snprintf(text, sizeof(text),
			 "the code of %zu of its mappings has no names: their files could not be "
			 "opened (their file system may give access only to its own user)",
			 now->not_opened);
		add_refused(s, m, whole, text);
	}
}

static void note_user(struct session *s, const struct member *m, const struct kernel_refused *now,
		      bool whole)
{
	const struct kernel_refused *before = &m->refused;
	char text[320];

	/* it may have decreased, if the user has got an account of their own since */
	if (now->threads > before->threads) {
		snprintf(text, sizeof(text),
			 "some threads of user %u's processes were not followed: one user's "
			 "processes may have at most half of what others leave of %d threads",
			 m->account, WIRE_MAX_THREADS);
		add_refused(s, m, whole, text);
	}
	if (now->calls > before->calls) {
		snprintf(text, sizeof(text),
			 "%llu safe calls of user %u's processes were not counted: one user's "
			 "processes may use at most half of what others leave of %d call sites",
			 (unsigned long long)(now->calls - before->calls), m->account,
			 WIRE_MAX_SITES);
		add_refused(s, m, whole, text);
	}
}

static void note_rows(struct session *s, const struct member *m, const struct kernel_left_out *now,
		      bool whole)
{
	char text[320];

	if (now->process) {
		snprintf(text, sizeof(text),
			 "C frames: %zu of its mappings have no unwind rows: one process may have "
			 "them for at most %d",
			 now->process, WIRE_UNWIND_MAPS);
		add_refused(s, m, whole, text);
	}
	if (now->user) {
		snprintf(
			text, sizeof(text),
			"C frames: %zu of its mappings have no unwind rows: the processes of user "
			"%u may have them for at most half of the files that others leave room for",
			now->user, m->account);
		add_refused(s, m, whole, text);
	}
}

void missing__note_room(struct session *s, struct member *m, const struct missing_room *now,
			bool whole)
{
	note_files(s, m, &now->files, whole);
	note_user(s, m, &now->user, whole);
	note_rows(s, m, &now->rows, whole);
	m->refused = now->user;
}

void missing__note_refused(struct session *s, struct member *m, bool whole)
{
	struct missing_room now = {0};

	if (m->target)
		target__left_out(m->target, &now.files);
	kernel__refused(s->kernel, m->account, &now.user);
	kernel__unwind_left_out(s->kernel, m->pid, &now.rows);
	missing__note_room(s, m, &now, whole);
	if (m->rows_lack)
		add_refused(s, m, whole, "C frames: its unwind rows could not be loaded so far");
}

void missing__note(struct session *s, const struct member *m)
{
	note_probes(s, m);
	note_symbols(s, m);
	note_stacks(s, m);
	note_kernel(s, m);
}
