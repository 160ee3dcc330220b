/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * scrape: the session as metrics, on request.
 *
 * Nothing is read without a request. The figures in a reply are at most EVERY_NS old, or older, up
 * to MOST_NS, on a host with so much data that reading would take more than a hundredth of the
 * time; safescoped_figures_time_seconds shows their age.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "metrics/metrics.h"
#include "metrics/server.h"
#include "picture/picture.h"
#include "process/cgroup.h"
#include "process/proc.h"
#include "session_priv.h"

#define EVERY_NS 5000000000ULL
/* By default Prometheus scrapes once a minute: no two scrapes in a row may get the same figures. */
#define MOST_NS 30000000000ULL
/* A request this long before the next reading waits for it: otherwise whoever scrapes every five
 * seconds, or as often as figures are read, would get the same figures again when a little early.
 */
#define EARLY_NS 500000000ULL
/* A reading takes at most one part in this many of the time. */
#define READING_PART 100
/* A reading that took longer than this had many records; the next one starts with a fold. */
#define FOLD_NS 50000000ULL

struct scrape {
	const struct session *s;
	struct metrics *metrics;
	struct cgroup cgroup; /* of the process asked for last */
	struct buf text;
	uint64_t next_ns; /* no reading before this time */
	uint64_t took_ns; /* CPU time of the last reading */
	bool ended;	  /* the server process has ended */
};

/* ── its life ────────────────────────────────────────────────────────────────────────────── */

static void find_place(void *ctx, pid_t pid, struct metrics_place *ret_place)
{
	struct scrape *sc = ctx;

	if (cgroup__of(pid, &sc->cgroup) == 0)
		*ret_place = (struct metrics_place){.container = sc->cgroup.container,
						    .pod = sc->cgroup.pod,
						    .service = sc->cgroup.service};
}

static uid_t find_user(void *ctx, pid_t pid)
{
	const struct scrape *sc = ctx;
	const struct member *m = members__find_live(sc->s->members, pid);

	return m ? m->account : (uid_t)-1;
}

int scrape__new(struct session *s, struct scrape **ret_scrape)
{
	const struct pic_session *session = picture__session(timeline__picture(s->tl));
	struct scrape *sc = calloc(1, sizeof(*sc));
	int err = sc ? metrics__new(&sc->metrics) : -ENOMEM;

	if (err) {
		free(sc);
		return err;
	}
	buf__init(&sc->text, METRICS_MAX_TEXT);
	metrics__set(sc->metrics, METRICS_START_UNIX_NS, session->start_unix_ns);
	sc->s = s;
	metrics__set_places(sc->metrics, find_place, find_user, sc);
	timeline__set_figures(s->tl, metrics__take, sc->metrics);
	*ret_scrape = sc;
	return 0;
}

void scrape__free(struct scrape *sc)
{
	if (!sc)
		return;
	metrics__free(sc->metrics);
	buf__free(&sc->text);
	free(sc);
}

/* ── the daemon's own numbers ────────────────────────────────────────────────────────────── */

static void set_members(const struct session *s, struct metrics *m)
{
	const struct members_refused *refused;
	uint64_t n_refused = s->no_files.n + s->n_left_out;

	for (size_t i = 0; (refused = members__refused(s->members, i)); i++)
		n_refused += refused->n;
	metrics__set(m, METRICS_TARGETS, members__count_live(s->members));
	metrics__set(m, METRICS_TARGETS_STARTING, members__count_starting(s->members));
	metrics__set(m, METRICS_TARGETS_WAITING, candidates__count_all_waiting(s->candidates));
	metrics__set(m, METRICS_TARGETS_JOINED, members__n_joined(s->members));
	metrics__set(m, METRICS_TARGETS_LEFT_OUT, n_refused);
	metrics__set(m, METRICS_TARGETS_MISSED, s->n_too_short);
}

static void set_probes(struct session *s, struct metrics *m, uint64_t now)
{
	const struct member *member = NULL;
	struct kernel_cost cost;

	while ((member = members__next_live(s->members, member))) {
		kernel__cost(s->kernel, member->pid, now, &cost);
		metrics__set_probes(m, member->pid, cost.paused_ns, cost.trap_ns + cost.own_bpf_ns);
	}
}

void scrape__note_end(struct session *s, const struct member *m)
{
	if (s->scrape)
		metrics__set_probes(s->scrape->metrics, m->pid, m->cost.paused_ns,
				    m->cost.trap_ns + m->cost.own_bpf_ns);
}

static void set_kernel(const struct session *s, struct metrics *m, uint64_t now)
{
	struct kernel_refused refused;
	struct kernel_cost cost;

	metrics__set(m, METRICS_SAMPLE_EVERY, MAX(s->sparing.every, 1U));
	metrics__set(m, METRICS_RECORDS, kernel__counter(s->kernel, WIRE_CNT_RECORDS));
	metrics__set(m, METRICS_SAMPLES, kernel__counter(s->kernel, WIRE_CNT_SAMPLES));
	metrics__set(m, METRICS_PROBE_HITS, kernel__counter(s->kernel, WIRE_CNT_PROBE_HITS));
	for (int i = 0; i < WIRE_CNT_MAX; i++) {
		const char *name = kernel__loss_name((enum wire_counter)i);

		if (name)
			metrics__set_labelled(m, METRICS_LOST, name,
					      kernel__counter(s->kernel, (enum wire_counter)i));
	}
	metrics__set_labelled(m, METRICS_LOST, "bad_record", feed__bad_records(s->feed));
	kernel__all_refused(s->kernel, &refused);
	metrics__set_labelled(m, METRICS_LOST, "user_threads", refused.threads);
	metrics__set_labelled(m, METRICS_LOST, "user_sites", refused.calls);
	/* pid 0 has no cost of its own, but the total is filled in */
	kernel__cost(s->kernel, 0, now, &cost);
	if (cost.bpf_known)
		metrics__set(m, METRICS_BPF_NS, cost.bpf_ns);
}

static void set_own(struct session *s, struct metrics *m)
{
	uint64_t cpu_ns, max_rss, pages = 0;
	char *text = NULL, *at;
	size_t len;

	usage__own(&cpu_ns, &max_rss);
	metrics__set(m, METRICS_CPU_NS, cpu_ns);
	metrics__set(m, METRICS_HELPERS_NS, ending__helpers_cpu_ns(s));
	/* size, resident, … in pages */
	if (proc__text("/proc/self/statm", 4096, &text, &len) == 0) {
		at = strchr(text, ' ');
		pages = at ? strtoull(at, NULL, 10) : 0;
	}
	free(text);
	if (pages)
		metrics__set(m, METRICS_RESIDENT_BYTES, pages * (uint64_t)sysconf(_SC_PAGESIZE));
}

static void set_windows(const struct session *s, struct metrics *m, uint64_t now)
{
	struct windows_state state;

	if (!s->windows)
		return;
	windows__state(s->windows, &state);
	metrics__set(m, METRICS_WINDOWS, state.made);
	metrics__set(m, METRICS_WINDOWS_DROPPED, state.dropped);
	metrics__set(m, METRICS_WINDOW_LAG_NS,
		     state.writing_ns && state.writing_ns < now ? now - state.writing_ns : 0);
}

static void set_pushes(const struct session *s, struct metrics *m)
{
	uint64_t now = time__realtime_ns();

	for (size_t i = 0; i < push__count(s->push); i++) {
		struct push_stats p;

		push__stats(s->push, i, &p);
		metrics__set_labelled(m, METRICS_PUSH_DELIVERED, p.url, p.delivered);
		metrics__set_labelled(m, METRICS_PUSH_FAILURES, p.url, p.failures);
		metrics__set_labelled(m, METRICS_PUSH_REFUSED, p.url, p.refused);
		metrics__set_labelled(m, METRICS_PUSH_REJECTED, p.url, p.rejected);
		metrics__set_labelled(m, METRICS_PUSH_DROPPED, p.url, p.dropped);
		metrics__set_labelled(m, METRICS_PUSH_QUEUED, p.url, p.queued);
		metrics__set_labelled(m, METRICS_PUSH_QUEUED_BYTES, p.url, p.queued_bytes);
		metrics__set_labelled(
			m, METRICS_PUSH_LAG_NS, p.url,
			p.oldest_unix_ns && p.oldest_unix_ns < now ? now - p.oldest_unix_ns : 0);
	}
}

/* ── a text ──────────────────────────────────────────────────────────────────────────────── */

static int read_figures(struct session *s, const struct scrape *sc)
{
	int err = 0;

	records__take_all(s);
	/* a replay would not do it at the same moment, but must make the same picture */
	if (sc->took_ns > FOLD_NS && !s->capture)
		err = timeline__fold(s->tl);
	if (!err)
		err = ending__read_maps(s);
	/* as at a cut */
	records__take_all(s);
	kernel__hold_again(s->kernel);
	if (!err)
		err = timeline__figures(s->tl, time__monotonic_ns());
	return err ? err : intake__forget_states(s->in);
}

static int write_text(struct session *s, struct scrape *sc, uint64_t now)
{
	int err = read_figures(s, sc);

	if (err)
		return err;
	metrics__forget_stale(sc->metrics, now);
	metrics__set(sc->metrics, METRICS_SWITCHED_OFF, 0);
	metrics__set(sc->metrics, METRICS_READ_UNIX_NS, time__realtime_ns());
	set_members(s, sc->metrics);
	set_probes(s, sc->metrics, now);
	set_kernel(s, sc->metrics, now);
	set_own(s, sc->metrics);
	set_windows(s, sc->metrics, now);
	set_pushes(s, sc->metrics);
	buf__reset(&sc->text);
	return metrics__write(sc->metrics, &sc->text);
}

bool scrape__has_ended(const struct scrape *scrape)
{
	return scrape && scrape->ended;
}

uint64_t scrape__every_ns(uint64_t took_ns)
{
	return MIN(MAX(EVERY_NS, took_ns * READING_PART), MOST_NS);
}

void scrape__turn(struct session *s, uint64_t now)
{
	struct scrape *sc = s->scrape;
	uint64_t every, before, after, max_rss;
	int err;

	if (!sc || sc->ended)
		return;
	sc->ended = metrics_server__turn(s->opts->metrics, true, now) == -EPIPE;
	if (sc->ended) {
		log_error("metrics: the process that serves them has ended; they are not available "
			  "%s",
			  s->opts->renew_after_ns
				  ? "until the session restarts, which it will do soon"
				  : "from now on");
		return;
	}
	if (!metrics_server__wanted(s->opts->metrics) || now < sc->next_ns)
		return;
	/* CPU time: time in which others run or the machine is suspended costs nothing */
	usage__own(&before, &max_rss);
	err = write_text(s, sc, now);
	usage__own(&after, &max_rss);
	sc->took_ns = after - before;
	every = scrape__every_ns(sc->took_ns);
	sc->next_ns = now + every;
	log_debug("metrics: %zu bytes in %.1f ms of CPU time, the next ones in %.1f s",
		  sc->text.len, (double)sc->took_ns / 1e6, (double)every / 1e9);
	if (!err)
		err = metrics_server__give(s->opts->metrics, sc->text.data, sc->text.len,
					   every - EARLY_NS);
	/* it may be several megabytes */
	buf__free(&sc->text);
	if (err)
		log_warn("metrics: %s", strerror(-err));
}
