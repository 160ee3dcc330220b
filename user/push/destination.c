/* SPDX-License-Identifier: GPL-2.0-or-later */
/* destination: what is sent next, and what an answer means. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/base.h"
#include "confine/confine.h"
#include "push_priv.h"

/* A collector accepts 20 MiB before compression (confighttp's max_request_body_size): this
 * leaves room for what the last sample adds. */
#define OTLP_MOST (8ULL << 20)
/* How many HTTP 500 answers a file gets before it is given up: a server that fails at one file
 * in particular would keep all others waiting. */
#define MOST_500 5U
/*
 * The same goes for a file that alone takes too long, or is too large for something on the way.
 * After every TRIES_ALONE failures of the first file the one after it is tried. While such others
 * are accepted and the first one is not, it has MOST_BESIDE attempts left.
 */
#define TRIES_ALONE 4U
#define MOST_BESIDE 4U
/* The most answers read in one turn: an honest sender has one per file. */
#define MOST_ANSWERS 16

struct destination {
	struct push_url url;
	struct push_files files; /* if they are lacking, nothing is sent */
	struct sender_opts sending;
	struct confine_peer *peer; /* NULL: it has ended */
	struct queue *queue;
	bool busy; /* sending the file that the queue holds */
	uint64_t task;
	uint64_t due_ns; /* do not send before then; 0: send at once */
	unsigned failed; /* failed attempts in a row */
	struct outage outage;
	/* for the first file: HTTP 500 answers, failures, failures while others were accepted */
	unsigned n_500, n_failed, n_beside;
	bool beside;	   /* the second file, not the first, was sent last */
	bool takes_others; /* the last file sent beside the first one was accepted */
	bool strange;	   /* an answer did not follow the protocol, which has been reported */
	bool lost_queue; /* the queue could not be read at the last look, which has been reported */
	uint64_t delivered, failures, refused, rejected, unqueued;
	uint64_t dropped_before; /* value of `dropped` when the queue was last empty */
};

/* ── what an answer means ────────────────────────────────────────────────────────────────── */

static const char *status_text(const struct sender_answer *a, char *text, size_t size)
{
	if (a->outcome == SENDER_DIED)
		snprintf(text, size, "the sending process %s%s",
			 *a->text ? "cannot be started: " : "died", a->text);
	else if (a->outcome == SENDER_ANSWERED)
		snprintf(text, size, "HTTP %u%s%s", a->status, *a->text ? ": " : "", a->text);
	else
		snprintf(text, size, "%s", *a->text ? a->text : "the file cannot be read");
	return text;
}

/*
 * True if a count that was `before` should be logged: when it becomes nonzero, and then at each
 * power of ten. Some counts come from the server, and may be any number.
 */
static bool is_worth_a_line(uint64_t before, uint64_t now)
{
	uint64_t n = 1;

	while (before >= n && n <= UINT64_MAX / 10)
		n *= 10;
	return before < n && n <= now;
}

/* Refusals are final, except for these statuses. */
static bool is_worth_another_try(struct destination *d, const struct sender_answer *a)
{
	if (a->outcome != SENDER_ANSWERED)
		return a->outcome != SENDER_BAD_FILE;
	switch (a->status) {
	case 408:
	case 429:
	case 502:
	case 503:
	case 504:
		return true;
	case 500:
		return d->beside || ++d->n_500 < MOST_500;
	default:
		return false;
	}
}

/* To be called when a file is done with, because it was accepted or refused. */
static void goes_on(struct destination *d)
{
	queue__let_go(d->queue, true);
	/* a file sent beside the first one does not end the first one's failures */
	if (!d->beside) {
		d->failed = 0;
		d->outage.reported = false;
	}
	d->due_ns = 0;
}

/* Schedules another attempt after a pause, whose length it returns. */
static uint64_t put_off(struct destination *d, const struct sender_answer *a, uint64_t now)
{
	uint32_t random = 0;
	uint64_t wait;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		random = (uint32_t)now;
	d->failed++;
	wait = backoff__ns(d->failed, random, a->retry_after_s);
	d->due_ns = now + wait;
	return wait;
}

static void on_rejected(struct destination *d, const struct sender_answer *a)
{
	uint64_t before = d->rejected;

	d->rejected += (uint64_t)a->rejected;
	if (is_worth_a_line(before, d->rejected))
		log_warn("push to %s: %" PRId64 " profiles were rejected%s%s (%" PRIu64 " so far)",
			 d->url.shown, a->rejected, *a->text ? ": " : "", a->text, d->rejected);
}

static void on_delivered(struct destination *d, const struct sender_answer *a)
{
	d->takes_others |= d->beside;
	if (d->outage.reported && d->failed && !d->beside)
		log_info("push to %s: it accepts profiles again", d->url.shown);
	d->delivered++;
	if (a->rejected) {
		on_rejected(d, a);
	} else if (*a->text && !d->strange) {
		d->strange = true;
		log_warn("push to %s: accepted, with the message: %s", d->url.shown, a->text);
	}
	goes_on(d);
	if (!queue__state(d->queue).n)
		d->dropped_before = queue__state(d->queue).dropped;
}

static void on_refused(struct destination *d, const struct sender_answer *a, uint64_t now)
{
	char why[320];

	status_text(a, why, sizeof(why));
	d->refused++;
	if (is_worth_a_line(d->refused - 1, d->refused))
		log_warn("push to %s: refused for good: %s (%" PRIu64 " so far)", d->url.shown, why,
			 d->refused);
	if (a->outcome == SENDER_ANSWERED && a->status == 500) {
		/* the file is given up, but the server may fail at the next one, too */
		queue__let_go(d->queue, true);
		put_off(d, a, now);
	} else {
		goes_on(d);
	}
}

/* True if the failure is due to the first file itself, and its attempts are used up. */
static bool is_hopeless(struct destination *d, const struct sender_answer *a)
{
	unsigned status = a->outcome == SENDER_ANSWERED ? a->status : 0;

	if (d->beside) {
		/* another file failed too: the server is down, or slow, for all of them */
		d->takes_others = false;
		d->n_beside = 0;
		return false;
	}
	/* HTTP 500 has a limit of its own */
	if (status == 500)
		return false;
	d->n_failed++;
	/* an overloaded server refuses files at random, and accepts the next */
	if (status == 429 || status == 503)
		return false;
	return d->takes_others && ++d->n_beside >= MOST_BESIDE;
}

static void report_outage(struct destination *d, const char *why, uint64_t now)
{
	if (outage__is_news(&d->outage, d->failed, why, now))
		log_warn("push to %s: %s; undelivered profiles are kept and retried", d->url.shown,
			 why);
}

static void on_failed(struct destination *d, const struct sender_answer *a, uint64_t now)
{
	uint64_t wait;
	char why[320];

	if (is_hopeless(d, a)) {
		on_refused(d, a, now);
		return;
	}
	wait = put_off(d, a, now);
	d->failures++;
	queue__let_go(d->queue, false);
	report_outage(d, status_text(a, why, sizeof(why)), now);
	log_verbose("push to %s: %s; retrying in %s", d->url.shown, why, human__duration(wait).s);
}

/* The sender died without a task: one that it has been given since is still in its socket. */
static void on_died_idle(struct destination *d, const struct sender_answer *a, uint64_t now)
{
	char why[320];

	d->failures++;
	if (!d->busy)
		return;
	d->failed++;
	report_outage(d, status_text(a, why, sizeof(why)), now);
}

static void take_answer(struct destination *d, const struct sender_answer *a, uint64_t now)
{
	if (!d->busy || a->id != d->task) {
		/* or it is an answer to an attempt that was given up */
		if (a->outcome == SENDER_DIED)
			on_died_idle(d, a, now);
		return;
	}
	d->busy = false;
	if (a->outcome == SENDER_ANSWERED && a->status >= 200 && a->status < 300)
		on_delivered(d, a);
	else if (is_worth_another_try(d, a))
		on_failed(d, a, now);
	else
		on_refused(d, a, now);
}

/* ── turns ───────────────────────────────────────────────────────────────────────────────── */

static void take_answers(struct destination *d, uint64_t now)
{
	struct sender_answer answer;
	int err;

	/* a compromised sender may send without end */
	for (int i = 0;
	     i < MOST_ANSWERS && d->peer && (err = sender__answer(d->peer, &answer)) != -EAGAIN;
	     i++) {
		if (!err) {
			take_answer(d, &answer, now);
			continue;
		}
		log_error("push to %s: the sending process has ended; nothing is sent until the "
			  "next session begins, and undelivered profiles are kept for it",
			  d->url.shown);
		confine_peer__free(d->peer);
		d->peer = NULL;
		d->busy = false;
		queue__let_go(d->queue, false);
	}
}

/* Holds the file to be sent next: usually the first one. */
static int hold_next(struct destination *d, uint64_t now, int *ret_fd)
{
	bool turn = d->takes_others || (d->n_failed && d->n_failed % TRIES_ALONE == 0), again;
	int err;

	if (turn && !d->beside && d->n_failed && queue__hold_second(d->queue, ret_fd) == 0) {
		d->beside = true;
		return 0;
	}
	d->beside = false;
	err = queue__hold_first(d->queue, now, ret_fd, &again);
	if (!err && !again) {
		d->n_500 = d->n_failed = d->n_beside = 0;
		d->takes_others = false;
	}
	return err;
}

static void send_next(struct destination *d, uint64_t now)
{
	struct sender_task task = {.id = d->task + 1};
	int fd, err;

	if (d->busy || !d->peer || now < d->due_ns)
		return;
	err = hold_next(d, now, &fd);
	/* there are files, but the error may persist: without a pause it would recur at each
	 * turn */
	if (err && err != -ENOENT)
		d->due_ns = now + BACKOFF_FIRST_NS;
	if (err)
		return;
	if (sender__send(d->peer, &task, fd) == 0) {
		d->task = task.id;
		d->busy = true;
	} else {
		queue__let_go(d->queue, false);
		d->due_ns = now + BACKOFF_FIRST_NS;
	}
	close(fd);
}

void destination__turn(struct destination *d, uint64_t now)
{
	take_answers(d, now);
	send_next(d, now);
}

uint64_t destination__next_due(const struct destination *d)
{
	return d->peer && !d->busy && queue__state(d->queue).n ? MAX(d->due_ns, 1) : 0;
}

int destination__fd(const struct destination *d)
{
	return d->peer ? confine_peer__fd(d->peer) : -1;
}

bool destination__is_idle(const struct destination *d)
{
	return !d->peer || (!d->busy && !queue__state(d->queue).n);
}

void destination__count_unqueued(struct destination *d)
{
	d->unqueued++;
}

/* `before`: how many files had been dropped before the queue was looked at. */
static void report_full(const struct destination *d, uint64_t before)
{
	uint64_t dropped = queue__state(d->queue).dropped;

	/* while a server is down, or slow, each window drops one */
	if (is_worth_a_line(before - d->dropped_before, dropped - d->dropped_before))
		log_warn("push to %s: the queue is full: %" PRIu64 " of its oldest files were "
			 "dropped (%" PRIu64 " so far)",
			 d->url.shown, dropped - before, dropped);
}

void destination__look(struct destination *d)
{
	uint64_t before = queue__state(d->queue).dropped;
	int err = queue__look(d->queue);

	/* the queue is looked at twice per window, for as long as it takes somebody to fix it */
	if (err && !d->lost_queue)
		log_error("push to %s: its queue cannot be read: %s", d->url.shown, strerror(-err));
	else if (!err && d->lost_queue)
		log_info("push to %s: its queue can be read again", d->url.shown);
	d->lost_queue = err != 0;
	report_full(d, before);
}

/* ── what is put ─────────────────────────────────────────────────────────────────────────── */

/* `at`: the position in the OTLP request; NULL: pprof, from `source`. A file without content is
 * not queued, as for a window in which all processes were idle. */
static int put_file(const struct destination *d, unsigned n, const char *query,
		    const struct picture *pic, const struct export_opts *opts,
		    struct export_cursor *at, struct pprof_source *source)
{
	char path[PATH_MAX];
	struct outfile *out;
	bool any = false;
	int err = queue__path(d->queue, picture__session(pic)->start_unix_ns, n, path);

	if (!err)
		err = outfile__open(path, (uid_t)-1, (gid_t)-1, &out);
	if (err)
		return err;
	fprintf(outfile__stream(out), "%s\n", query);
	if (at) {
		err = export_otlp__write_next(outfile__stream(out), pic, opts, OTLP_MOST, at);
		any = !at->empty;
	} else {
		err = export_pprof__write_any(outfile__stream(out), source, opts, &any);
	}
	if (err && outfile__error(out))
		err = outfile__error(out);
	if (!err && any)
		return outfile__commit(out);
	if (err)
		log_error("%s: cannot be written: %s", path, strerror(-err));
	outfile__abort(out);
	return err;
}

/* Pyroscope gets one request per process. */
static int put_processes(const struct destination *d, const struct picture *pic,
			 const struct export_opts *opts)
{
	struct export_opts its = *opts;
	struct pprof_source *source;
	int first = export_pprof__gather(pic, &source);

	if (first) {
		log_error("push to %s: %s", d->url.shown, strerror(-first));
		return first;
	}
	its.for_pyroscope = true;
	for (uint32_t i = 0; i < picture__n_targets(pic); i++) {
		struct buf query;
		int err;

		buf__init(&query, PUSH_QUERY_MAX - 2);
		its.target = i + 1;
		err = push_labels__query(pic, picture__target(pic, i), opts, &query);
		if (!err)
			err = put_file(d, i, query.data, pic, &its, NULL, source);
		else
			log_error("push to %s: %s", d->url.shown, strerror(-err));
		buf__free(&query);
		first = first ? first : err;
	}
	export_pprof__free(source);
	return first;
}

int destination__put(const struct destination *d, const struct picture *pic,
		     const struct export_opts *opts)
{
	struct export_cursor at = {.done = false};
	int err = 0;

	if (d->url.protocol == PUSH_PYROSCOPE)
		return put_processes(d, pic, opts);
	for (unsigned n = 0; !err && !at.done; n++)
		err = put_file(d, n, "", pic, opts, &at, NULL);
	return err;
}

/* ── the end ─────────────────────────────────────────────────────────────────────────────── */

void destination__stats(const struct destination *d, struct push_stats *ret_stats)
{
	struct queue_state state = queue__state(d->queue);

	*ret_stats = (struct push_stats){
		.delivered = d->delivered,
		.failures = d->failures,
		.refused = d->refused,
		.rejected = d->rejected,
		.dropped = state.dropped + state.removed + d->unqueued,
		.queued = state.n,
		.queued_bytes = state.bytes,
		.oldest_unix_ns = state.oldest_unix_ns,
	};
	snprintf(ret_stats->url, sizeof(ret_stats->url), "%s", d->url.shown);
}

/* ── life ────────────────────────────────────────────────────────────────────────────────── */

static int open_queue(struct destination *d, const struct push_opts *opts)
{
	uint64_t bytes = opts->queue_bytes ? opts->queue_bytes : PUSH_QUEUE_BYTES;
	char path[PATH_MAX];
	int err = queues__path(opts, d->url.shown, path);

	if (err)
		return err;
	err = queue__open(path, bytes, PUSH_QUEUE_FILES, &d->queue);
	/* what an earlier session left may be more than this one keeps */
	if (!err)
		report_full(d, 0);
	if (!err || err == -ENOMEM || !opts->place_may_come)
		return err;
	log_warn("the session continues; trying again for each window");
	d->lost_queue = true;
	return queue__open_later(path, bytes, PUSH_QUEUE_FILES, &d->queue);
}

/* Does not start the sender if its files are lacking. */
static int open_sender(struct destination *d, const struct push_opts *opts)
{
	uint64_t timeout = opts->timeout_ns ? opts->timeout_ns : PUSH_TIMEOUT_NS;
	bool otlp = d->url.protocol == PUSH_OTLP;
	int err;

	if (d->files.lacking)
		return 0;
	d->sending = (struct sender_opts){
		.url = d->url.request,
		.content_type = otlp ? "application/x-protobuf" : "application/octet-stream",
		/* for pprof, compression is part of the format */
		.content_encoding = otlp ? "gzip" : NULL,
		.headers = &d->files.headers,
		.ca = d->files.ca,
		.timeout_ms = (uint32_t)MIN(timeout / 1000000, (uint64_t)INT32_MAX),
		.otlp = otlp,
	};
	err = sender__start(&d->sending, &d->peer);
	if (err)
		log_error("push to %s: cannot start a process: %s", d->url.shown, strerror(-err));
	return err;
}

int destination__check(const struct push_to *to, const struct push_opts *opts)
{
	struct push_files files;
	int err = push_files__read(to, opts->owner, &files);

	push_files__free(&files);
	return err;
}

bool destination__has_other_files(const struct destination *d)
{
	return d->files.lacking && push_files__have_changed(&d->files);
}

bool destination__has_ended(const struct destination *d)
{
	return !d->peer && !d->files.lacking;
}

int destination__check_queue(const struct push_to *to, const struct push_opts *opts)
{
	struct push_url url;
	char path[PATH_MAX];
	const char *why;
	int err = push_url__parse(to->url, &url, &why);

	if (err)
		return err;
	err = queues__path(opts, url.shown, path);
	push_url__free(&url);
	return err ? err : queue__check(path);
}

static int open_files(struct destination *d, const struct push_to *to, const struct push_opts *opts)
{
	int err = push_files__read(to, opts->owner, &d->files);

	if (!err || err == -ENOMEM || !opts->place_may_come)
		return err;
	log_warn("push to %s: the session continues; profiles are kept until that file can be read",
		 d->url.shown);
	return 0;
}

int destination__open(const struct push_to *to, const struct push_opts *opts,
		      struct destination **ret_destination)
{
	struct destination *d = calloc(1, sizeof(*d));
	const char *why = "no memory";
	int err = d ? push_url__parse(to->url, &d->url, &why) : -ENOMEM;

	if (err)
		log_error("push to %s: %s", to->url, why);
	if (!err)
		err = open_files(d, to, opts);
	if (!err)
		err = open_queue(d, opts);
	if (!err)
		err = open_sender(d, opts);
	/* from here on only the sender has the headers, which may be credentials */
	if (d)
		push_files__free(&d->files);
	if (err) {
		destination__free(d);
		return err;
	}
	*ret_destination = d;
	return 0;
}

void destination__free(struct destination *d)
{
	if (!d)
		return;
	confine_peer__free(d->peer);
	queue__free(d->queue);
	push_files__free(&d->files);
	push_url__free(&d->url);
	free(d);
}
