/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ending: reads what is left in the kernel, losses and cost, then finishes the timeline. */
#include <errno.h>
#include <string.h>

#include "base/limit.h"
#include "confine/confine.h"
#include "process/mem.h"
#include "session_priv.h"

/* Limit on the wait for hanging memory at the end. */
#define GUARDS_NS 1000000000ULL
/* How long to wait for the keeper to end, before names are looked up and afterwards. */
#define FILES_FIRST_MS 300
#define FILES_LAST_MS  1500
/* At a cut the maps are read repeatedly, up to this many times, until a pass is this quick. */
#define READ_TRIES    4
#define READ_QUICK_NS 10000000

static int on_thread(void *ctx, pid_t tid, const struct wire_thread *thread)
{
	struct session *s = ctx;
	struct wire_off_stack stack;

	if (intake__thread_state(s->in, tid, thread) == 0 && thread->off_since_ns &&
	    thread->has_stack && kernel__off_stack(s->kernel, tid, &stack) == 0)
		intake__off_stack(s->in, (pid_t)thread->tgid, tid, &stack);
	return 0;
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

	for (size_t at = 0; (m = members__next_shown(s->members, &at));)
		set_losses_of(s, m->pid, share);
	if (differ)
		log_verbose("%llu samples: unwind rows and StgRun's place in the C stack disagree",
			    (unsigned long long)differ);
	if (lost || feed__lost_some(s->feed))
		intake__set_exit_code(s->in, EXIT_PARTIAL);
}

/* ── cost ────────────────────────────────────────────────────────────────────────────────── */

/* CPU time of the helper processes. The command is a child as well, but does not count. */
uint64_t ending__helpers_cpu_ns(struct session *s)
{
	uint64_t all = usage__children_cpu_ns() + confine__running_cpu_ns();
	uint64_t command = command__cpu_ns(s->command);

	/* the time of a helper's own child is lost from the sum once that has ended */
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
	for (size_t at = 0; (m = members__next_shown(s->members, &at));) {
		const struct kernel_cost *ended = &m->cost;
		struct kernel_cost k;
		struct intake_cost cost;

		kernel__cost(s->kernel, m->pid, now, &k);
		if (ended->bpf_known || ended->observed_ns || ended->paused_ns) {
			k.probe_hits = ended->probe_hits;
			k.own_bpf_ns = ended->own_bpf_ns;
			k.trap_ns = ended->trap_ns;
			k.paused_ns = ended->paused_ns;
			k.held_up_until_ns = ended->held_up_until_ns;
		}
		cost = (struct intake_cost){
			.probe_hits = k.probe_hits,
			.bpf_ns = k.bpf_ns,
			.bpf_ns_known = k.bpf_known,
			.own_bpf_ns = k.own_bpf_ns,
			.own_bpf_ns_known = true,
			.trap_ns_estimated = k.trap_ns,
			.probes_paused_ns = k.paused_ns,
			.max_rss_bytes = max_rss,
			.user_cpu_ns = user_cpu,
			.calls_missed = missing__calls(m),
			.held_up_until_ns = k.held_up_until_ns,
		};
		intake__set_cost(s->in, m->pid, &cost);
	}
}

/* State at the end of the picture that is being made. */
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

/* Reads the maps, and then all that threads did before they entered the states found there. */
static int read_all(struct session *s, uint64_t now)
{
	int err = ending__read_maps(s);

	records__take_all(s);
	if (!err && kernel__counter(s->kernel, WIRE_CNT_LOST_RING) != s->ring_lost_before &&
	    intake__end_lost(s->in, now) == -ENOMEM)
		feed__failed(s->feed);
	return err;
}

int ending__read(struct session *s, uint64_t *ret_now)
{
	uint64_t now;
	int err;

	member__sweep(s);
	/* a process that joins because of a record takes time, and would start after the end */
	for (int i = 0; i < READ_TRIES; i++) {
		now = time__monotonic_ns();
		records__take_all(s);
		err = read_all(s, now);
		if (err || time__monotonic_ns() - now < READ_QUICK_NS)
			break;
	}
	kernel__hold_again(s->kernel);
	records__gc_off(s);
	living__give(s, now);
	set_cost(s, now);
	set_losses(s);
	set_pushes(s);
	noted__cut(s);
	missing__note_downloads(s, false);
	s->lost_before = kernel__lost_records(s->kernel);
	s->ring_lost_before = kernel__counter(s->kernel, WIRE_CNT_LOST_RING);
	s->sent_before = kernel__counter(s->kernel, WIRE_CNT_RECORDS);
	feed__cut(s->feed);
	*ret_now = now;
	return err;
}

/* ── the end ─────────────────────────────────────────────────────────────────────────────── */

int ending__finish(struct session *s)
{
	uint64_t end = time__monotonic_ns();
	struct member *m = NULL;
	int err;

	spare_fds__close(s);
	/* limits waiting for targets' memory, including later reads for names */
	guard__all_until(end + GUARDS_NS);
	if (!s->switched_off)
		snapshots__last(s, end + GUARDS_NS);
	if (!s->switched_off)
		living__last(s, end + GUARDS_NS);
	end = time__monotonic_ns();
	member__read_left(s);
	records__take_all(s);
	records__gc_off(s);
	while ((m = members__next_live(s->members, m)))
		missing__note_start(s, m);
	censuses__end_all(s);
	err = read_all(s, end);
	living__give(s, end);
	set_cost(s, end);
	set_losses(s);
	set_pushes(s);
	noted__end(s);
	/* from here on no target is slowed down, however long the rest takes */
	kernel__release(s->kernel);
	for (size_t i = 0; i < members__count(s->members); i++)
		kernel__detach(s->kernel, members__at(s->members, i)->pid);
	kernel__let_files_go(s->kernel, FILES_FIRST_MS);
	symbols__last(s, time__monotonic_ns());
	missing__note_downloads(s, true);
	member__release_left(s);
	if (!err)
		logs__join(s);
	windows__read_clock(s);
	if (!err)
		err = timeline__finish(s->tl, end);
	kernel__let_files_go(s->kernel, FILES_LAST_MS);
	logs__free(s);
	if (err)
		log_error("the profile cannot be made: %s%s", strerror(-err), limit__why(err).text);
	return err;
}
