/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A session's end: what is left in the kernel, losses and cost, then the picture. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/base.h"
#include "session_priv.h"

int session__on_site(void *ctx, const struct wire_site_key *key, const struct wire_site *site)
{
	struct session *s = ctx;
	int err = timeline__site_counters(s->tl, key, site);

	return err == -ENOMEM ? err : 0;
}

static int on_thread(void *ctx, pid_t tid, const struct wire_thread *thread)
{
	struct session *s = ctx;
	struct wire_off_stack stack;

	if (timeline__thread_state(s->tl, tid, thread) == 0 && thread->off_since_ns &&
	    thread->has_stack && kernel__off_stack(s->kernel, tid, &stack) == 0)
		timeline__thread_off_stack(s->tl, (pid_t)thread->tgid, tid, &stack);
	return 0;
}

uint64_t session__lost_records(struct session *s)
{
	uint64_t lost = 0;

	for (int i = 0; i < WIRE_CNT_MAX; i++)
		if (kernel__loss_name((enum wire_counter)i))
			lost += kernel__counter(s->kernel, (enum wire_counter)i);
	return lost;
}

static void tell_losses(struct session *s)
{
	uint64_t lost = session__lost_records(s),
		 sent = kernel__counter(s->kernel, WIRE_CNT_RECORDS);
	double share = lost ? (double)lost / (double)(lost + sent) : 0;

	for (size_t k = 0; k < s->n_members; k++) {
		pid_t pid = s->members[k].pid;

		if (s->members[k].forgotten)
			continue;
		for (int i = 0; i < WIRE_CNT_MAX; i++) {
			const char *name = kernel__loss_name((enum wire_counter)i);
			uint64_t n = name ? kernel__counter(s->kernel, (enum wire_counter)i) : 0;

			if (n)
				timeline__set_lost(s->tl, pid, name, n);
		}
		if (s->bad_records)
			timeline__set_lost(s->tl, pid, "bad_record", s->bad_records);
		timeline__set_lost_share(s->tl, pid, share);
	}
	if (kernel__counter(s->kernel, WIRE_CNT_UNWIND_DIFFERS))
		log_verbose(
			"%llu samples: unwind rows and StgRun's place in the C stack disagree",
			(unsigned long long)kernel__counter(s->kernel, WIRE_CNT_UNWIND_DIFFERS));
	if (lost || s->bad_records || s->record_err)
		timeline__set_exit_code(s->tl, EXIT_PARTIAL);
}

/* What the kernel side counts for all of them together. */
static void tell_all(struct session *s, const char *text)
{
	char all[224];

	snprintf(all, sizeof(all), "%s%s", text,
		 s->n_members > 1 ? " (in all processes together)" : "");
	for (size_t i = 0; i < s->n_members; i++)
		if (!s->members[i].forgotten)
			timeline__add_missing(s->tl, s->members[i].pid, all);
}

/* No record is lost by it, but something is inferred, or not counted. */
static void tell_inferred(struct session *s)
{
	unsigned long long switches = kernel__counter(s->kernel, WIRE_CNT_NO_SWITCH_IN) +
				      kernel__counter(s->kernel, WIRE_CNT_NO_SWITCH_OUT);
	unsigned long long returns = kernel__counter(s->kernel, WIRE_CNT_CALL_UNMATCHED);
	char text[160];

	if (switches) {
		snprintf(text, sizeof(text),
			 "%llu context switch%s not reported by the kernel; %s inferred from "
			 "wake-ups",
			 switches, switches == 1 ? " was" : "es were",
			 switches == 1 ? "its time was" : "their times were");
		tell_all(s, text);
	}
	if (returns) {
		snprintf(text, sizeof(text),
			 "%llu safe call%s of which only the end was seen: not counted", returns,
			 returns == 1 ? "" : "s");
		tell_all(s, text);
	}
}

static uint64_t cpu_ns(const struct rusage *r)
{
	return (uint64_t)(r->ru_utime.tv_sec + r->ru_stime.tv_sec) * 1000000000ULL +
	       (uint64_t)(r->ru_utime.tv_usec + r->ru_stime.tv_usec) * 1000ULL;
}

/* Of the daemon and its helpers; the command is a child too, and none of ours. */
static uint64_t own_cpu_ns(const struct session *s, const struct rusage *self)
{
	struct rusage children = {};
	uint64_t command = s->command.ended ? cpu_ns(&s->command.usage) : 0, all;

	getrusage(RUSAGE_CHILDREN, &children);
	all = cpu_ns(&children);
	return cpu_ns(self) + (all > command ? all - command : 0);
}

static void tell_cost(struct session *s, uint64_t now)
{
	struct rusage self = {};
	uint64_t user_cpu;

	getrusage(RUSAGE_SELF, &self);
	user_cpu = own_cpu_ns(s, &self);
	for (size_t i = 0; i < s->n_members; i++) {
		const struct kernel_cost *ended = &s->members[i].cost;
		pid_t pid = s->members[i].pid;
		struct kernel_cost k;
		struct tl_cost cost;

		if (s->members[i].forgotten)
			continue;
		kernel__cost(s->kernel, pid, now, &k);
		if (ended->bpf_known || ended->observed_ns) {
			k.probe_hits = ended->probe_hits;
			k.trap_ns = ended->trap_ns;
			k.paused_ns = ended->paused_ns;
		}
		cost = (struct tl_cost){
			.probe_hits = k.probe_hits,
			.bpf_ns = k.bpf_ns,
			.bpf_ns_known = k.bpf_known,
			.trap_ns_estimated = k.trap_ns,
			.probes_paused_ns = k.paused_ns,
			.max_rss_bytes = (uint64_t)self.ru_maxrss * 1024,
			.user_cpu_ns = user_cpu,
		};
		timeline__set_cost(s->tl, pid, &cost);
	}
}

/* Everything that is left in the kernel, then the picture. */
int session__finish(struct session *s)
{
	uint64_t end;
	int err;

	for (size_t i = 0; i < s->n_members; i++)
		if (s->members[i].live)
			members__snapshot(s, &s->members[i], true);
	end = time__monotonic_ns();
	members__sweep(s);
	kernel__drain(s->kernel, 0, session__on_record, s);
	session__gc_off(s);
	for (size_t i = 0; i < s->n_members; i++)
		held__give(s, &s->members[i]);
	err = kernel__sites(s->kernel, session__on_site, s);
	if (!err)
		err = kernel__threads(s->kernel, on_thread, s);
	tell_cost(s, end);
	tell_losses(s);
	tell_inferred(s);
	for (size_t i = 0; i < s->n_members; i++)
		kernel__detach(s->kernel, s->members[i].pid);
	if (!err)
		logs__join(s);
	if (!err)
		err = timeline__finish(s->tl, end);
	logs__free(s);
	if (err)
		log_error("the profile cannot be made: %s", strerror(-err));
	return err;
}
