/* SPDX-License-Identifier: GPL-2.0-or-later */
/* member: a process joins a session and becomes ready. */
#include <errno.h>

#include "base/retry.h"
#include "session_priv.h"

/* Time for making unwind rows in a turn of the loop; the rest follows in later turns. */
#define ROWS_NS 100000000ULL
/* Minimum of that time for each process, so that every process gets some rows. */
#define ROWS_LEAST_NS 20000000ULL
/* After this many consecutive turns without time for the user's files (-EBUSY), a second or more,
 * rows are put off for a pause that doubles. */
#define ROWS_TRIES 20

/* Interval of checks for a process that started during the session: short at first, then doubling,
 * … */
#define COMPLETE_FIRST_NS   1000000ULL
#define COMPLETE_LONGEST_NS 200000000ULL
/* … at most this once patience has run out repeatedly, as with a library whose runtime is never
 * used, since a check costs a process, … */
#define COMPLETE_RARE_NS 10000000000ULL
/* … after its memory hung, … */
#define COMPLETE_HUNG_NS 1000000000ULL
/* … and if there was no room among the looks. */
#define COMPLETE_ROOM_NS 2000000ULL

/* ── naming ──────────────────────────────────────────────────────────────────────────────── */

static void namer_name(void *ctx, uint64_t frame, struct code_name *ret_name)
{
	target__name(ctx, frame, ret_name);
}

static int namer_site(void *ctx, uint64_t ret_addr, struct target_site *ret_site)
{
	return target__site(ctx, ret_addr, ret_site);
}

static int namer_read_ccs(void *ctx, const uint64_t *addrs, size_t n)
{
	return target__read_ccs(ctx, addrs, n);
}

static int namer_ccs(void *ctx, uint64_t addr, struct target_ccs *ret_ccs)
{
	return target__ccs(ctx, addr, ret_ccs);
}

/* ── code ────────────────────────────────────────────────────────────────────────────────── */

/* Makes the maps be read again and missing rows be made, even though nothing new is mapped: most
 * services map nothing as long as they run. */
static void want_again(struct session *s, struct member *m, bool lacks)
{
	uint64_t now = time__monotonic_ns();

	if (!lacks) {
		retry__end(&m->again);
		return;
	}
	if (!retry__waits(&m->again, now))
		retry__begin(&m->again, now, RETRY_NS, RETRY_LONGEST_NS);
	mapped__want(s->mapped, m, m->again.until_ns);
}

/* Makes unwind rows for its mappings; with the runtime, all of its libraries are mapped. */
static void load_rows(struct session *s, struct member *m)
{
	uint64_t began = time__monotonic_ns();
	int err =
		kernel__unwind(s->kernel, m->target, MAX(s->rows_until_ns, began + ROWS_LEAST_NS));

	m->rows_ns += time__monotonic_ns() - began;
	m->rows_tries = err == -EBUSY ? m->rows_tries + 1 : 0;
	m->rows_later = err == -EAGAIN || (err == -EBUSY && m->rows_tries < ROWS_TRIES);
	s->rows_later |= m->rows_later;
	if (m->rows_later)
		return;
	m->rows_lack = retry__shows_nothing(err);
	if (err && !m->rows_lack)
		m->no_rows = true;
	want_again(s, m, m->rows_lack || target__may_come_later(m->target));
}

static void report_rows(struct session *s, struct member *m)
{
	if (!m->no_rows || m->no_rows_reported)
		return;
	m->no_rows_reported = true;
	intake__add_missing(s->in, m->pid, "C frames: its unwind rows could not be loaded");
}

static void load_more_rows(struct session *s, struct member *m)
{
	load_rows(s, m);
	report_rows(s, m);
}

void member__read_maps(struct session *s, struct member *m)
{
	int err = target__refresh_maps(m->target);
	uint64_t start, end;

	while (target__take_retaken(m->target, &start, &end))
		if (intake__retaken(s->in, m->pid, start, end) == -ENOMEM)
			feed__failed(s->feed);
	if (err) {
		log_debug("pid %d: its mappings cannot be read again: %s", m->pid, strerror(-err));
		want_again(s, m, retry__has_begun(&m->again));
	} else if (!m->rows_later) {
		load_more_rows(s, m);
	}
}

/* Time spent so far on rows for the processes of the member's user. */
static uint64_t rows_ns_of_user(struct session *s, const struct member *of)
{
	uid_t user = target__account(of->target);
	struct member *m = NULL;
	uint64_t sum = 0;

	while ((m = members__next_live(s->members, m)))
		if (target__account(m->target) == user)
			sum += m->rows_ns;
	return sum;
}

void member__more_rows(struct session *s)
{
	struct member *m = NULL, *next = NULL;
	uint64_t least = UINT64_MAX;

	s->rows_until_ns = time__monotonic_ns() + ROWS_NS;
	while (s->rows_later && (m = members__next_live(s->members, m))) {
		uint64_t ns = m->rows_later ? rows_ns_of_user(s, m) : UINT64_MAX;

		if (ns < least) {
			least = ns;
			next = m;
		}
	}
	s->rows_later = next != NULL;
	if (next)
		load_more_rows(s, next);
}

/* ── joining ─────────────────────────────────────────────────────────────────────────────── */

/* Everything that had to wait until the runtime was initialised. */
static void on_ready(struct session *s, struct member *m)
{
	const struct target_info *info = target__info(m->target);
	uint64_t now;

	members__set_ready(s->members, m);
	early__profiled(s, &m->program);
	missing__note_start(s, m);
	if (info->only_sampled) {
		m->only_sampled = true;
		hourly__report(s, info->pid, "only sampled", info->only_sampled);
		intake__add_missing(s->in, info->pid, info->only_sampled);
		return;
	}
	/* for mappings since it was looked at */
	now = time__monotonic_ns();
	mapped__want(s->mapped, m, now);
	logs__look(s, m);
	snapshots__want(s, m);
	snapshots__start(s, m, now);
	missing__note(s, m);
	censuses__want(s, m);
	kernel__learn(s->kernel, &m->program, info, m->account);
}

/* To be called before the timeline is given its probes. */
static void take_lacking(struct session *s, struct member *m)
{
	kernel__lacking(s->kernel, m->pid, &m->lacking);
	target__set_unprobed(m->target, m->lacking.calls, m->lacking.gc);
}

/* Starts its part of the profile at `since_ns`. */
static int begin(struct session *s, struct member *m, uint64_t since_ns)
{
	const struct target_info *info = target__info(m->target);
	const struct namer namer = {
		.ctx = m->target,
		.name = namer_name,
		.site = namer_site,
		.read_ccs = namer_read_ccs,
		.ccs = namer_ccs,
	};
	uint64_t took = since_ns - (m->program.h.ns ? m->program.h.ns : s->start_ns);
	int err;

	/* its probes were in place before its first instruction */
	if (m->program.flags & WIRE_PROC_TARGET) {
		since_ns = m->program.h.ns;
		took = 0;
	}
	err = intake__add_target(s->in, info, &namer, since_ns, took);
	if (err) {
		log_error("pid %d: %s", info->pid, strerror(-err));
		return err;
	}
	m->attach_ns = since_ns;
	if (!m->ready)
		held__begin(m->held, since_ns);
	/* the probes of its program may have been off when it began, or since: because no process
	 * ran it, for their cost, or because we were held up */
	m->from_start = m->program.flags & WIRE_PROC_TARGET &&
			kernel__covers(s->kernel, m->pid, m->program.h.ns);
	return 0;
}

static int attach(struct session *s, struct member *m, bool armed)
{
	const struct target_info *info = target__info(m->target);
	uint64_t since = 0;
	int attached, err;

	member__sweep(s);
	target__prepare_names(m->target);
	/* if it has just started, these are for its executable and the dynamic linker */
	load_rows(s, m);
	kernel__refused(s->kernel, m->account, &m->refused);
	/* the entry of an armed child was made from the file; it is replaced by one from the
	 * process */
	attached = armed ? kernel__update(s->kernel, info)
			 : kernel__attach(s->kernel, info, m->account, &since);
	take_lacking(s, m);
	/* no record has been read since, so each will find its target in the timeline */
	err = begin(s, m, since ? since : time__monotonic_ns());
	if (err) {
		kernel__detach(s->kernel, m->pid);
		return err;
	}
	report_rows(s, m);
	err = attached;
	/* it has ended meanwhile, which removed its entry; its records are there */
	if (armed && err == -ENOENT && !target__alive(m->target))
		err = 0;
	if (!err)
		err = members__set_live(s->members, m, target__pidfd(m->target));
	if (err) {
		/* an armed child has had its probes since before it was looked at */
		kernel__detach(s->kernel, m->pid);
		intake__end_target(s->in, m->pid, "left", m->attach_ns);
		return err;
	}
	m->probed_ns = time__monotonic_ns();
	/* an exec before its entry existed; later ones are reported */
	if (!target__runs_same(m->target)) {
		log_verbose("pid %d: became another program while it was being inspected", m->pid);
		return -ESTALE;
	}
	/* done early, since the next process of the program may start before this one is ready */
	if (!(m->program.flags & WIRE_PROC_TARGET))
		kernel__learn(s->kernel, &m->program, info, m->account);
	if (m->ready) {
		on_ready(s, m);
	} else {
		m->retry_ns = time__monotonic_ns() + COMPLETE_FIRST_NS;
		m->give_up_ns = m->retry_ns + READY_TIMEOUT_NS;
	}
	return 0;
}

int member__attach(struct session *s, struct member *m, bool armed)
{
	int err = attach(s, m, armed);

	if (err == -ESTALE) {
		if (!member__forget(s, m))
			member__end(s, m, "exec", m->probed_ns);
		return 0;
	}
	if (err && s->opts->kind != SESSION_PIDS)
		member__release(s, m);
	return err;
}

/* ── becoming ready ──────────────────────────────────────────────────────────────────────── */

uint64_t member__wait_ns(unsigned tries, unsigned given_up)
{
	uint64_t longest = MIN(COMPLETE_LONGEST_NS << MIN(given_up, 10U), COMPLETE_RARE_NS);

	return MIN(COMPLETE_FIRST_NS << MIN(tries, 20U), longest);
}

/* True if the member stays: it has ended, or nothing shows yet that its runtime is wrong. */
static bool keep_waiting(struct member *m, uint64_t now, int err)
{
	/* its pidfd reports the end of a process that has ended */
	if (!target__alive(m->target)) {
		m->retry_ns = UINT64_MAX;
		return true;
	}
	if (err)
		return false;
	/* a library may be loaded long before hs_init is called */
	m->given_up++;
	m->give_up_ns = now + READY_TIMEOUT_NS;
	/* 0: it has reported its first call meanwhile, so it is checked at once */
	if (m->retry_ns)
		m->retry_ns = now + member__wait_ns(m->tries, m->given_up);
	return true;
}

/* The member leaves: for good, unless a later look may show more. */
static void give_up(struct session *s, struct member *m, uint64_t now, int err, const char *why)
{
	bool hung = retry__shows_nothing(err);

	if (!hung) {
		hourly__report(s, m->pid, "left out", *why ? why : strerror(-err));
		kernel__unlearn(s->kernel, &m->program);
	}
	member__end(s, m, "left", now);
	if (hung || err == -ENOTSUP)
		room__come_back(s, m, err);
}

/* Handles the result of a check, or the error that prevented it, whose text is `why`. */
static void checked(struct session *s, struct member *m, uint64_t now, int err, const char *why,
		    enum target_verdict verdict)
{
	const struct target_info *info = target__info(m->target);
	uint64_t wait = member__wait_ns(m->tries, m->given_up);
	/* the machine is busy, the helper was killed, or the process is about to end (its memory is
	 * freed before its pidfd becomes readable): none of this shows that its runtime is wrong */
	bool last = m->last_check, hung = retry__shows_nothing(err);

	/* the probes are in place, and there was nothing yet that could have made a call */
	if (!err && target__untouched(m->target) && info->reach == ORIGIN_OWNED)
		m->from_start = true;
	if ((hung || err == -ESRCH) && !last)
		err = 0;
	if (err || (verdict != TARGET_OK && last)) {
		if (!keep_waiting(m, now, err))
			give_up(s, m, now, err, why);
		return;
	}
	if (verdict != TARGET_OK) {
		m->tries++;
		/* 0: it has reported its first call meanwhile, so it is checked at once */
		if (m->retry_ns)
			m->retry_ns = now + (hung ? MAX(wait, COMPLETE_HUNG_NS) : wait);
		return;
	}
	err = kernel__update(s->kernel, info);
	/* an exec after the confirmation has removed its entry; its record comes next */
	if (err == -ENOENT && !last && target__alive(m->target)) {
		m->retry_ns = now + COMPLETE_FIRST_NS;
		return;
	}
	if (err)
		log_debug("pid %d: gone while it became ready: %s", m->pid, strerror(-err));
	take_lacking(s, m);
	intake__update_target(s->in, info);
	load_rows(s, m);
	held__give(m->held, s->feed);
	on_ready(s, m);
}

static void start_check(struct session *s, struct member *m, uint64_t now)
{
	char why[512] = "";
	int err;

	m->last_check = now >= m->give_up_ns;
	m->retry_ns = UINT64_MAX;
	err = looks__check(s->looks, m->target, m->last_check, why, sizeof(why));
	if (err == -EDQUOT)
		m->retry_ns = now + COMPLETE_ROOM_NS;
	else if (err)
		checked(s, m, now, err, why, TARGET_NOT_READY);
}

static void take_check(struct session *s, struct member *m, uint64_t now)
{
	enum target_verdict verdict = TARGET_NOT_READY;
	char why[512] = "";
	int err = looks__checked(s->looks, m->target, why, sizeof(why), &verdict);

	if (err != -EINPROGRESS)
		checked(s, m, now, err, why, verdict);
}

void member__take_looks(struct session *s, uint64_t now)
{
	struct member *m, *next;

	if (!looks__count(s->looks))
		return;
	for (m = members__next_live(s->members, NULL); m; m = next) {
		/* the member may end by this */
		next = members__next_live(s->members, m);
		if (!target__looks(m->target))
			continue;
		if (m->living.going)
			living__take(s, m);
		else if (m->census.began_ns)
			censuses__take(s, m);
		else if (m->ready)
			snapshots__take(s, m, false);
		else
			take_check(s, m, now);
	}
}

void member__start_looks(struct session *s, uint64_t now)
{
	struct member *m, *next;

	if (!members__count_starting(s->members) && !s->n_snapshots)
		return;
	for (m = members__next_live(s->members, NULL); m; m = next) {
		next = members__next_live(s->members, m);
		if (target__looks(m->target))
			continue;
		if (m->snapshot_due)
			snapshots__start(s, m, now);
		else if (!m->ready && now >= m->retry_ns)
			start_check(s, m, now);
		if (time__monotonic_ns() - now > TURN_NS)
			return;
	}
}

uint64_t member__next_due(const struct session *s)
{
	const struct member *m = NULL;
	uint64_t due = 0;

	if (!members__count_starting(s->members))
		return 0;
	while ((m = members__next_live(s->members, m)))
		if (!m->ready && !target__looks(m->target) && m->retry_ns != UINT64_MAX &&
		    (!due || m->retry_ns < due))
			due = m->retry_ns;
	return due;
}
