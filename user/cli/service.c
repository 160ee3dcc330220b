/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * service: each session runs in a child. When the off file appears the child ends, and everything
 * that it attached goes with it; when the file is removed another child is started. A new
 * configuration works likewise: the child writes the window so far and ends, and the next one gets
 * the new options.
 */
#include "service.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "archives/archives.h"
#include "base/base.h"
#include "base/limit.h"
#include "base/retry.h"
#include "metrics/metrics.h"
#include "metrics/server.h"
#include "modes.h"
#include "named.h"
#include "notify.h"
#include "session/session.h"

#define LOOK_EVERY_MS 200
/* Exit codes of the child, besides EXIT_…; combined with EXIT_PARTIAL if it was incomplete. */
#define EXIT_SWITCHED_OFF 16
#define EXIT_RENEWED	  32
/*
 * For the service manager's watchdog the service is alive as long as its child is. The child
 * reports each second from its loop. It may be silent for longer before that, while it looks at all
 * processes, and afterwards, while it writes its last window.
 */
#define STILL_LEAST_NS 2000000000ULL
#define BEGINNING_NS   300000000000ULL
#define ENDING_NS      60000000000ULL
/* A process that ended soon after a session's begin may end soon again: the wait before the next
 * renewal doubles, and is reset after a long session. */
#define RENEW_FIRST_NS 20000000000ULL
#define RENEW_MOST_NS  3600000000000ULL
/* For how long the metrics of a service that is switched off are considered fresh. */
#define OFF_FRESH_NS 1000000000ULL

struct service {
	struct options **options;
	struct options *next; /* options for the next child; NULL: the same */
	/* the options before a reload, until a session has begun with the new ones; NULL: none */
	struct options *before;
	struct named named;
	uint64_t began_ns;
	int signal_fd;
	pid_t pid; /* the child; 0: none */
	int pidfd;
	int alive_fd;		 /* the pipe by which the child reports */
	uint64_t alive_until_ns; /* until when it counts as alive without another report */
	uint64_t notified_ns, notify_every_ns;
	uint64_t renew_after_ns;	/* see struct session_opts */
	bool waits_for_ready;		/* the service manager waits for notify__ready() */
	bool ending;			/* the child has been signalled to end */
	bool stopping;			/* a signal ended the service: no other child is started */
	const char *state;		/* the last state reported; NULL: none yet */
	struct metrics_server *metrics; /* NULL: no metrics are served */
};

bool service__wanted(const struct options *options)
{
	return options->window_ns && !options->save &&
	       (options->mode == MODE_SYSTEM || options->mode == MODE_PID);
}

static uint64_t end_of(const struct service *sv)
{
	uint64_t duration = (*sv->options)->duration_ns;

	return duration ? sv->began_ns + duration : 0;
}

/* ── the service manager ─────────────────────────────────────────────────────────────────── */

static const char profiling[] = "Profiling", switched_off[] = "Switched off";

/* `state` is one of the above; a state that has been reported is not reported again. */
static void report_state(struct service *sv, const char *state)
{
	if (sv->waits_for_ready)
		notify__ready(state);
	else if (sv->state != state)
		notify__status(state);
	sv->waits_for_ready = false;
	sv->state = state;
}

static void report_alive(struct service *sv)
{
	uint64_t now = time__monotonic_ns();

	if (!sv->notify_every_ns || now - sv->notified_ns < sv->notify_every_ns ||
	    now >= sv->alive_until_ns)
		return;
	notify__alive();
	sv->notified_ns = now;
}

/* Reads what the child has reported. */
static void take_reports(struct service *sv)
{
	char reports[64];
	ssize_t n = read(sv->alive_fd, reports, sizeof(reports));

	/* an ending child was given longer, and is not what a reload waits for */
	if (n <= 0 || sv->ending)
		return;
	options__free(sv->before);
	sv->before = NULL;
	sv->alive_until_ns = time__monotonic_ns() + MAX(STILL_LEAST_NS, sv->notify_every_ns);
	report_state(sv, profiling);
}

/* ── the configuration ───────────────────────────────────────────────────────────────────── */

static bool same_address(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static int open_metrics(struct service *sv)
{
	const char *address = (*sv->options)->metrics;

	return address ? metrics_server__open(address, &sv->metrics) : 0;
}

static bool serves_metrics(const struct service *sv)
{
	return sv->metrics && metrics_server__works(sv->metrics);
}

static void open_metrics_again(struct service *sv)
{
	metrics_server__free(sv->metrics);
	sv->metrics = NULL;
	if (open_metrics(sv))
		log_warn("%s: continuing without metrics until it is reloaded",
			 (*sv->options)->config_path);
}

/* Makes `o` the current options. If metrics cannot be served at their address, the service goes on
 * without them, and tries again when the configuration is next read. */
static void use(struct service *sv, struct options *o)
{
	bool moved = !serves_metrics(sv) || !same_address((*sv->options)->metrics, o->metrics);

	*sv->options = o;
	named__take(&sv->named, o);
	options__set_log_level(o);
	if (moved)
		open_metrics_again(sv);
}

static void use_next(struct service *sv)
{
	struct options *now = *sv->options;

	if (!sv->next)
		return;
	use(sv, sv->next);
	sv->next = NULL;
	if (sv->before)
		options__free(now);
	else
		sv->before = now;
}

/* Returns to the options before the last reload: some errors, as in --pid, show only when a session
 * begins. False: there are none to return to. */
static bool go_back(struct service *sv)
{
	struct options *now = *sv->options;

	if (!sv->before)
		return false;
	log_error("%s: no session can start with it; going back to the options before the reload",
		  now->config_path);
	use(sv, sv->before);
	sv->before = NULL;
	options__free(now);
	return true;
}

static bool can_write(const struct options *o)
{
	struct outputs *outputs;

	if (outputs__plan(&o->output, "", 0, &outputs))
		return false;
	outputs__free(outputs);
	return true;
}

static bool can_read_archives(const struct options *o)
{
	struct archives *archives;

	if (!o->n_archives)
		return true;
	if (archives__open(o->archives, o->n_archives, &archives))
		return false;
	archives__free(archives);
	return true;
}

/* True if a session can begin with these options, as far as can be known while another one is
 * running: an unusable one would end the service. Prints the reason if not. */
static bool is_usable(const struct service *sv, const struct options *o)
{
	if (service__wanted(o))
		return named__has_or_finds(&sv->named, o) && can_write(o) &&
		       !push__check(&o->push) && !push__check_queues(&o->push) &&
		       can_read_archives(o);
	log_error("%s: a session without windows, or with --save, cannot be started by a reload: "
		  "restart safescoped",
		  o->config_path);
	return false;
}

/* True if a new child is needed even if nothing has changed: the metrics' address may be free by
 * now, or the process that served them has ended. */
static bool lacks_metrics(const struct service *sv)
{
	return !sv->next && (*sv->options)->metrics && !serves_metrics(sv);
}

/* False: the session goes on unchanged. */
static bool read_again(struct service *sv)
{
	struct options *next = NULL;
	int err = options__again(*sv->options, &next);

	if (err == -ENOMEM)
		log_error("no memory");
	/* options that wait for the session's end are the ones to compare with */
	if (!err && !lacks_metrics(sv) && options__same(sv->next ? sv->next : *sv->options, next)) {
		log_info("%s: nothing has changed", next->config_path);
		options__free(next);
		return false;
	}
	if (err || !is_usable(sv, next)) {
		log_error("%s: not reloaded; keeping the previous configuration",
			  (*sv->options)->config_path);
		options__free(next);
		return false;
	}
	log_info("%s: reloaded", next->config_path);
	options__free(sv->next);
	sv->next = next;
	return true;
}

/* True if the signal asks for a reload. The hangup of a terminal ends us, as it does other
 * programs. */
static bool is_reload(const struct service *sv, const struct signal_taken *taken)
{
	return taken->number == SIGHUP && !taken->by_terminal && (*sv->options)->config_path;
}

/* Ignores hangups under nohup, which does not affect reloads. */
static bool is_hangup_ignored(const struct service *sv, const struct signal_taken *taken)
{
	return taken->number == SIGHUP && !is_reload(sv, taken) && signals__ignores_hangup();
}

/* ── without a child ─────────────────────────────────────────────────────────────────────── */

/* Answers scrapes while switched off: nothing is profiled, and why. */
static void answer_metrics(struct service *sv, uint64_t now)
{
	struct metrics *metrics = NULL;
	struct buf text;

	if (!sv->metrics || metrics_server__turn(sv->metrics, false, now) ||
	    !metrics_server__wanted(sv->metrics))
		return;
	buf__init(&text, METRICS_MAX_TEXT);
	if (metrics__new(&metrics) == 0) {
		metrics__set(metrics, METRICS_SWITCHED_OFF, 1);
		metrics__set(metrics, METRICS_READ_UNIX_NS, time__realtime_ns());
		if (metrics__write(metrics, &text) == 0)
			metrics_server__give(sv->metrics, text.data, text.len, OFF_FRESH_NS);
	}
	metrics__free(metrics);
	buf__free(&text);
}

/* True if the next options have another off file. */
static bool moves_switch(const struct service *sv)
{
	return sv->next && strcmp(sv->next->off_path, (*sv->options)->off_path) != 0;
}

/* `was_off`: a session has just been switched off. False: a signal, or the end of the duration,
 * ended the service. */
static bool wait_for_removal(struct service *sv, bool was_off, bool *ret_waited)
{
	struct pollfd p = {.fd = sv->signal_fd, .events = POLLIN};
	struct signal_taken taken;
	bool was_there = false, moved = false;

	if (was_off)
		report_state(sv, switched_off);
	while (session__is_off((*sv->options)->off_path)) {
		uint64_t now = time__monotonic_ns(), end_ns = end_of(sv);

		if (end_ns && now >= end_ns)
			return false;
		answer_metrics(sv, now);
		/* a session that was switched off has reported that itself */
		if (moved || (!was_there && !was_off))
			log_info("%s exists: nothing is profiled until it is removed",
				 (*sv->options)->off_path);
		was_there = true;
		moved = false;
		report_state(sv, switched_off);
		sv->alive_until_ns = UINT64_MAX;
		report_alive(sv);
		poll(&p, 1, LOOK_EVERY_MS);
		if (!signals__take(sv->signal_fd, &taken) || taken.number == SIGUSR1 ||
		    is_hangup_ignored(sv, &taken))
			continue;
		if (!is_reload(sv, &taken)) {
			notify__stopping();
			return false;
		}
		notify__reloading();
		sv->waits_for_ready = true;
		read_again(sv);
		moved = moves_switch(sv);
		use_next(sv);
	}
	*ret_waited = was_there;
	if (was_there || was_off)
		log_info("%s %s: profiling resumes", (*sv->options)->off_path,
			 moved ? "does not exist" : "is gone");
	return true;
}

/* ── the child ───────────────────────────────────────────────────────────────────────────── */

static void take_signal(struct service *sv)
{
	struct signal_taken taken;

	if (!signals__take(sv->signal_fd, &taken) || is_hangup_ignored(sv, &taken))
		return;
	if (is_reload(sv, &taken)) {
		if (sv->stopping)
			return;
		notify__reloading();
		sv->waits_for_ready = true;
		if (!read_again(sv)) {
			/* not ready while an earlier reload waits for its child, or before the
			 * first child has begun */
			if (!sv->ending && sv->state)
				report_state(sv, profiling);
			return;
		}
		taken.number = SIGTERM;
	} else if (taken.number != SIGUSR1) {
		notify__stopping();
		/* a signal to end wins over a later reload or renewal */
		sv->stopping = true;
		options__free(sv->next);
		sv->next = NULL;
	}
	if (taken.number != SIGUSR1) {
		sv->alive_until_ns = time__monotonic_ns() + ENDING_NS;
		sv->ending = true;
	}
	/* the terminal sends its own signals to the child as well */
	if (!taken.by_terminal)
		kill(sv->pid, taken.number);
}

/* Returns the exit code of the child that has ended. Reports one that was killed and could not
 * do so itself. */
static int code_of(int status)
{
	int number;

	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	number = WTERMSIG(status);
	log_error("the session was killed by signal %d (%s%s); what it had not written is lost",
		  number, number == SIGKILL ? "out of memory?" : strsignal(number),
		  number == SIGKILL ? limit__why(-ENOMEM).text : "");
	return EXIT_FAILED;
}

/* Waits until the child ends; returns its exit code. */
static int wait_for_end(struct service *sv)
{
	struct pollfd fds[] = {{.fd = sv->signal_fd, .events = POLLIN},
			       {.fd = sv->pidfd, .events = POLLIN},
			       {.fd = sv->alive_fd, .events = POLLIN}};
	int status;

	for (;;) {
		/* without a pidfd the child is polled */
		int ms = sv->pidfd < 0	       ? LOOK_EVERY_MS
			 : sv->notify_every_ns ? (int)(sv->notify_every_ns / 1000000) + 1
					       : -1;

		poll(fds, ARRAY_SIZE(fds), ms);
		if (waitpid(sv->pid, &status, WNOHANG) == sv->pid)
			return code_of(status);
		if (fds[2].revents & POLLIN)
			take_reports(sv);
		else if (fds[2].revents)
			/* it is ending, and has closed its end */
			fds[2].fd = -1;
		report_alive(sv);
		take_signal(sv);
	}
}

static void report_to_parent(void *ctx)
{
	/* if the pipe is full, the parent will wake up anyway */
	(void)!write(*(const int *)ctx, "", 1);
}

static _Noreturn void be_child(struct service *sv, pid_t parent, int alive_fd)
{
	const struct options *o = *sv->options;
	struct session_opts opts;
	pid_t pids[OPTIONS_MAX_PIDS];
	uint64_t now = time__monotonic_ns(), end_ns = end_of(sv);
	int code;

	close(sv->signal_fd);
	close(sv->alive_fd);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	/* the parent may have ended before the prctl() */
	if (getppid() != parent)
		_exit(EXIT_FAILED);
	session_mode__opts(o, &opts);
	opts.n_pids = named__running(&sv->named, pids);
	opts.pids = pids;
	named__close(&sv->named);
	opts.archives_may_lack = o->output.place_may_come;
	opts.metrics = sv->metrics;
	opts.alive = report_to_parent;
	opts.alive_ctx = &alive_fd;
	opts.renew_after_ns = sv->renew_after_ns;
	/* the time spent switched off counts towards the duration */
	if (end_ns)
		opts.duration_ns = end_ns > now ? end_ns - now : 1;
	code = session__run(&opts);
	if (code & (SESSION_SWITCHED_OFF | SESSION_RENEWED))
		code = (code & SESSION_SWITCHED_OFF ? EXIT_SWITCHED_OFF : EXIT_RENEWED) |
		       (code & EXIT_PARTIAL);
	_exit(code);
}

/* Until the next session profiles something the service is not ready. */
static void report_not_ready(struct service *sv)
{
	if (serves_metrics(sv) && metrics_server__turn(sv->metrics, false, time__monotonic_ns()))
		open_metrics_again(sv);
}

static int run_child(struct service *sv)
{
	pid_t parent = getpid();
	uint64_t begun = time__monotonic_ns();
	int fds[2], code, err;

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK)) {
		err = -errno;
		log_error("the session cannot begin: %s%s", strerror(-err), limit__why(err).text);
		return EXIT_FAILED;
	}
	sv->alive_fd = fds[0];
	sv->ending = false;
	report_not_ready(sv);
	fflush(NULL);
	sv->pid = fork();
	if (!sv->pid)
		be_child(sv, parent, fds[1]);
	err = -errno;
	fd__close(&fds[1]);
	if (sv->pid < 0) {
		log_error("the session cannot begin: %s%s", strerror(-err),
			  limit__why_no_process(err).text);
		fd__close(&sv->alive_fd);
		return EXIT_FAILED;
	}
	sv->alive_until_ns = time__monotonic_ns() + BEGINNING_NS;
	sv->pidfd = (int)syscall(SYS_pidfd_open, sv->pid, 0);
	code = wait_for_end(sv);
	if (time__monotonic_ns() - begun > 10 * sv->renew_after_ns)
		sv->renew_after_ns = RENEW_FIRST_NS;
	else if (code & EXIT_RENEWED)
		sv->renew_after_ns =
			retry__longer(sv->renew_after_ns, RENEW_FIRST_NS, RENEW_MOST_NS);
	fd__close(&sv->pidfd);
	fd__close(&sv->alive_fd);
	return code;
}

int service__run(struct options **options)
{
	struct service sv = {
		.options = options,
		.began_ns = time__monotonic_ns(),
		.signal_fd = -1,
		.pidfd = -1,
		.alive_fd = -1,
		.notify_every_ns = notify__alive_every_ns() / 3,
		.renew_after_ns = RENEW_FIRST_NS,
		.waits_for_ready = true,
	};
	int code = 0;
	/* an earlier session was incomplete */
	bool partial = false, began = false, off = false, waited;
	int err = signals__open(&sv.signal_fd);

	named__take(&sv.named, *sv.options);
	if (!err)
		err = signals__add_services(sv.signal_fd);
	if (err)
		log_error("signals: %s", strerror(-err));
	else
		err = open_metrics(&sv);
	if (err)
		code = EXIT_FAILED;
	while (!err && wait_for_removal(&sv, off, &waited)) {
		bool renewed;

		/* at the start, whoever starts the service sees errors; later nobody is there to
		 * restart it */
		(*options)->output.place_may_come = began || waited;
		(*options)->push.place_may_come = began || waited;
		began = true;
		code = run_child(&sv);
		off = code & EXIT_SWITCHED_OFF;
		renewed = code & EXIT_RENEWED;
		if (!off && !renewed && !sv.next &&
		    (code != EXIT_FAILED || sv.stopping || !go_back(&sv)))
			break;
		partial |= off || renewed ? code & EXIT_PARTIAL : code;
		code = 0;
		if (sv.stopping)
			break;
		/* the process that has ended may be the one that served them */
		if (renewed && !sv.next && !serves_metrics(&sv))
			open_metrics_again(&sv);
		use_next(&sv);
	}
	options__free(sv.next);
	options__free(sv.before);
	metrics_server__free(sv.metrics);
	named__close(&sv.named);
	fd__close(&sv.signal_fd);
	/* a service that was switched off all the time has profiled nothing */
	return !code && (partial || !began) ? EXIT_PARTIAL : code;
}
