/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ending: what is left in the kernel, losses and cost, then the finished timeline. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "confine/confine.h"
#include "process/mem.h"
#include "session_priv.h"

/* At the end memory that hangs is waited for no longer than this. */
#define GUARDS_NS 1000000000ULL

static int on_thread(void *ctx, pid_t tid, const struct wire_thread *thread)
{
	struct session *s = ctx;
	struct wire_off_stack stack;

	if (intake__thread_state(s->in, tid, thread) == 0 && thread->off_since_ns &&
	    thread->has_stack && kernel__off_stack(s->kernel, tid, &stack) == 0)
		intake__off_stack(s->in, (pid_t)thread->tgid, tid, &stack);
	return 0;
}

/* The next member, after `at`, that is in the timeline. NULL: no more. */
static const struct member *next_shown(const struct session *s, size_t *at)
{
	while (*at < members__count(s->members)) {
		const struct member *m = members__at(s->members, (*at)++);

		if (!m->forgotten)
			return m;
	}
	return NULL;
}

/* ── losses ──────────────────────────────────────────────────────────────────────────────── */

static void set_losses_of(struct session *s, pid_t pid, double share)
{
	uint64_t bad = feed__bad_records(s->feed);

	for (int i = 0; i < WIRE_CNT_MAX; i++) {
		const char *name = kernel__loss_name((enum wire_counter)i);
		uint64_t n = name ? kernel__counter(s->kernel, (enum wire_counter)i) : 0;

		if (n)
			intake__set_lost(s->in, pid, name, n);
	}
	if (bad)
		intake__set_lost(s->in, pid, "bad_record", bad);
	intake__set_lost_share(s->in, pid, share);
}

static void set_losses(struct session *s)
{
	uint64_t lost = kernel__lost_records(s->kernel) - s->lost_before,
		 sent = kernel__counter(s->kernel, WIRE_CNT_RECORDS) - s->sent_before,
		 differ = kernel__counter(s->kernel, WIRE_CNT_UNWIND_DIFFERS);
	double share = lost ? (double)lost / (double)(lost + sent) : 0;
	const struct member *m;

	for (size_t at = 0; (m = next_shown(s, &at));)
		set_losses_of(s, m->pid, share);
	if (differ)
		log_verbose("%llu samples: unwind rows and StgRun's place in the C stack disagree",
			    (unsigned long long)differ);
	if (lost || feed__lost_some(s->feed))
		intake__set_exit_code(s->in, EXIT_PARTIAL);
}

/* What the kernel side counts for all processes together. */
static void add_missing_to_all(struct session *s, const char *text)
{
	const struct member *m;
	char all[224];

	snprintf(all, sizeof(all), "%s%s", text,
		 members__count(s->members) > 1 ? " (in all processes together)" : "");
	for (size_t at = 0; (m = next_shown(s, &at));)
		intake__add_missing(s->in, m->pid, all);
}

/* No record is lost by it, but something is inferred, or not counted. */
static void note_inferred(struct session *s)
{
	unsigned long long switches = kernel__counter(s->kernel, WIRE_CNT_NO_SWITCH_IN) +
				      kernel__counter(s->kernel, WIRE_CNT_NO_SWITCH_OUT);
	unsigned long long returns = kernel__counter(s->kernel, WIRE_CNT_CALL_UNMATCHED);
	char text[160];

	if (switches) {
		snprintf(text, sizeof(text),
			 "%llu context switch%s not reported by the kernel; %s inferred from "
			 "the CPU time of threads",
			 switches, switches == 1 ? " was" : "es were",
			 switches == 1 ? "its time was" : "their times were");
		add_missing_to_all(s, text);
	}
	if (returns) {
		snprintf(text, sizeof(text),
			 "%llu safe call%s of which only the end was seen: not counted", returns,
			 returns == 1 ? "" : "s");
		add_missing_to_all(s, text);
	}
}

/* Processes that were left out of the report because others of the same user took up all that he
 * may have.
 */
static void note_refused(struct session *s)
{
	const struct members_refused *refused;
	const struct member *m;
	char text[200];

	for (size_t i = 0; (refused = members__refused(s->members, i)); i++) {
		char whose[40] = "other users";

		if (refused->uid != (uid_t)-1)
			snprintf(whose, sizeof(whose), "user %u", refused->uid);
		snprintf(text, sizeof(text),
			 "%llu processes of %s were left out, or until others ended: so many "
			 "others of theirs were profiled at once",
			 (unsigned long long)refused->n, whose);
		log_warn("%s", text);
		for (size_t at = 0; (m = next_shown(s, &at));)
			intake__add_missing(s->in, m->pid, text);
	}
	if (s->n_too_short) {
		snprintf(text, sizeof(text),
			 "%llu processes of programs that are profiled ended before they could be "
			 "looked at",
			 (unsigned long long)s->n_too_short);
		add_missing_to_all(s, text);
	}
	if (s->n_unseen) {
		snprintf(text, sizeof(text), ENDING_UNSEEN, (unsigned long long)s->n_unseen);
		add_missing_to_all(s, text);
	}
	for (size_t at = 0; (m = next_shown(s, &at));)
		if (m->live || s->opts->kind == SESSION_PIDS)
			missing__note_refused(s, m);
}

/* What the kernel side did while we were held up. */
static void note_held_up(struct session *s)
{
	struct kernel_held_up held_up;
	char text[200];

	kernel__held_up(s->kernel, &held_up);
	if (held_up.times) {
		snprintf(
			text, sizeof(text),
			"the probes were off for %.1f s: safescoped itself was stopped, or held up "
			"for more than two seconds (%u time%s)",
			(double)held_up.ns / 1e9, held_up.times, held_up.times == 1 ? "" : "s");
		add_missing_to_all(s, text);
	}
	if (s->cut_short) {
		add_missing_to_all(s, "the end: safescoped stood still for more than ten seconds, "
				      "or its keeper process was killed");
		intake__set_exit_code(s->in, EXIT_PARTIAL);
	}
}

/* ── cost ────────────────────────────────────────────────────────────────────────────────── */

/* Of our helper processes. The command is a child too, and its time is not ours. */
uint64_t ending__helpers_cpu_ns(struct session *s)
{
	uint64_t all = usage__children_cpu_ns() + confine__running_cpu_ns();
	uint64_t command = command__cpu_ns(s->command);

	/* that of a helper's own child is not known any more once it has ended */
	if (all > command)
		s->helpers_cpu_ns = MAX(s->helpers_cpu_ns, all - command);
	return s->helpers_cpu_ns;
}

static void set_cost(struct session *s, uint64_t now)
{
	uint64_t user_cpu, max_rss;
	const struct member *m;

	usage__own(&user_cpu, &max_rss);
	user_cpu += ending__helpers_cpu_ns(s);
	for (size_t at = 0; (m = next_shown(s, &at));) {
		const struct kernel_cost *ended = &m->cost;
		struct kernel_cost k;
		struct intake_cost cost;

		kernel__cost(s->kernel, m->pid, now, &k);
		if (ended->bpf_known || ended->observed_ns) {
			k.probe_hits = ended->probe_hits;
			k.trap_ns = ended->trap_ns;
			k.paused_ns = ended->paused_ns;
		}
		cost = (struct intake_cost){
			.probe_hits = k.probe_hits,
			.bpf_ns = k.bpf_ns,
			.bpf_ns_known = k.bpf_known,
			.trap_ns_estimated = k.trap_ns,
			.probes_paused_ns = k.paused_ns,
			.max_rss_bytes = max_rss,
			.user_cpu_ns = user_cpu,
			.calls_missed = m->calls_missed,
		};
		intake__set_cost(s->in, m->pid, &cost);
	}
}

/* Of the end of the picture that is being made. */
static void set_pushes(struct session *s)
{
	struct push_stats stats[PUSH_MAX_DESTINATIONS];
	struct pic_push pushes[PUSH_MAX_DESTINATIONS];
	size_t n = push__count(s->push);

	for (size_t i = 0; i < n; i++) {
		push__stats(s->push, i, &stats[i]);
		pushes[i] = (struct pic_push){
			.url = stats[i].url,
			.delivered = stats[i].delivered,
			.failures = stats[i].failures,
			.refused = stats[i].refused,
			.rejected = stats[i].rejected,
			.dropped = stats[i].dropped,
			.queued = stats[i].queued,
		};
	}
	if (intake__set_pushes(s->in, pushes, n))
		feed__failed(s->feed);
}

int ending__read_maps(struct session *s)
{
	int err = kernel__sites(s->kernel, feed__site, s->feed);

	return err ? err : kernel__threads(s->kernel, on_thread, s);
}

int ending__read(struct session *s, uint64_t now)
{
	int err;

	member__sweep(s);
	kernel__flush(s->kernel);
	records__drain(s);
	records__gc_off(s);
	err = ending__read_maps(s);
	set_cost(s, now);
	set_losses(s);
	set_pushes(s);
	s->lost_before = kernel__lost_records(s->kernel);
	s->sent_before = kernel__counter(s->kernel, WIRE_CNT_RECORDS);
	feed__cut(s->feed);
	return err;
}

/* ── the end ─────────────────────────────────────────────────────────────────────────────── */

int ending__finish(struct session *s)
{
	uint64_t end = time__monotonic_ns();
	struct member *m = NULL;
	int err;

	spare_fds__close(s);
	/* whatever the targets' memory does; this includes names, which are read later */
	guard__all_until(end + GUARDS_NS);
	if (!s->switched_off)
		snapshots__last(s, end + GUARDS_NS);
	end = time__monotonic_ns();
	member__read_left(s);
	kernel__flush(s->kernel);
	records__drain(s);
	records__gc_off(s);
	for (size_t i = 0; i < members__count(s->members); i++)
		held__give(members__at(s->members, i)->held, s->feed);
	while ((m = members__next_live(s->members, m)))
		missing__note_start(s, m);
	censuses__end_all(s);
	err = ending__read_maps(s);
	set_cost(s, end);
	set_losses(s);
	set_pushes(s);
	note_inferred(s);
	note_refused(s);
	note_held_up(s);
	/* from here on no target is slowed down any more, however long it takes */
	kernel__release(s->kernel);
	for (size_t i = 0; i < members__count(s->members); i++)
		kernel__detach(s->kernel, members__at(s->members, i)->pid);
	symbols__last(s, time__monotonic_ns());
	member__release_left(s);
	if (!err)
		logs__join(s);
	windows__read_clock(s);
	if (!err)
		err = timeline__finish(s->tl, end);
	logs__free(s);
	if (err)
		log_error("the profile cannot be made: %s", strerror(-err));
	return err;
}
