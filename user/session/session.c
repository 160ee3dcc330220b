/* SPDX-License-Identifier: GPL-2.0-or-later */
/* session: from its options to the exit code of the process. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/wait.h>

#include "base/limit.h"
#include "confine/confine.h"
#include "picture/picture.h"
#include "session_priv.h"

/* How long the end of a session in windows waits for pushes, counted from when the session ended,
 * and at least this long from now on. */
#define PUSH_SERVICE_NS 1700000000ULL
#define PUSH_LEAST_NS	200000000ULL

/* A command that was not a Haskell program is a failure; how it ended is reported in any case. */
static int judge_command(struct session *s)
{
	int status = command__status(s->command);
	const char *name = s->opts->command[0], *why = follow__why(s);

	if (WIFSIGNALED(status))
		log_info("%s: ended by signal %d (%s)", name, WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status))
		log_info("%s: exited with status %d", name, WEXITSTATUS(status));
	if (members__count(s->members))
		return 0;
	log_error("%s: nothing to show: %s", name,
		  why[0] ? why : "it ended before its GHC runtime was initialised");
	if (s->n_unseen)
		log_error(ENDING_UNSEEN, (unsigned long long)s->n_unseen);
	return -ENOEXEC;
}

/* If the capture cannot be finished, the outputs, which are written later, show that. */
static void finish_capture(struct session *s)
{
	if (!s->capture)
		return;
	intake__set_tap(s->in, NULL, NULL);
	if (capture__finish(s->capture))
		intake__set_exit_code(s->in, EXIT_PARTIAL);
	s->capture = NULL;
}

/* Reports why nothing was profiled, in a session of the whole host. */
static void note_nobody(struct session *s)
{
	if (members__count(s->members) || s->opts->kind != SESSION_SYSTEM)
		return;
	if (s->switched_off)
		/* this has been reported, and is the reason */;
	else if (s->no_files.n)
		log_warn("nothing was profiled: processes could not be inspected, since no more "
			 "than %llu descriptors may be open (RLIMIT_NOFILE)",
			 (unsigned long long)fd__limit());
	else if (s->n_left_out)
		log_warn("nothing was profiled: %llu GHC program%s ran but could not be profiled; "
			 "safescoped --doctor shows more",
			 (unsigned long long)s->n_left_out, s->n_left_out == 1 ? "" : "s");
	else if (s->not_scanned || candidates__n_checked(s->candidates))
		log_warn("nothing was profiled: the session ended before all processes had been "
			 "inspected");
	else
		log_warn("nothing was profiled: no GHC program ran%s",
			 s->opts->select ? " that was selected" : "");
	intake__set_exit_code(s->in, EXIT_PARTIAL);
}

/*
 * Pushes the last picture and what is still queued. A service must end soon, and sends the rest
 * when it is started again. False: something did not arrive.
 */
static bool push_last(struct session *s, const struct picture *pic, uint64_t ended_ns)
{
	const struct export_opts opts = outputs__export_opts(s->outputs);
	uint64_t now = time__monotonic_ns();
	uint64_t until = s->windows ? MAX(ended_ns + PUSH_SERVICE_NS, now + PUSH_LEAST_NS)
				    : now + PUSH_LAST_NS;
	_Atomic push_set queued_for = 0;
	int err;

	if (!s->push)
		return true;
	err = push__put(s->push, pic, &opts, &queued_for);
	push__count_unqueued(s->push, queued_for);
	push__finish(s->push, until, s->signal_fd);
	return !err && !push__lost(s->push) && (s->windows || !push__has_more(s->push));
}

/* True if a signal to end came before the loop began. With a command the first signal is passed on.
 */
static bool is_to_end(const struct session *s)
{
	struct pollfd p = {.fd = s->signal_fd, .events = POLLIN};

	return s->opts->kind != SESSION_COMMAND && poll(&p, 1, 0) > 0;
}

static int run_to_end(struct session *s)
{
	const struct picture *pic;
	uint64_t began_ns = time__monotonic_ns(), ended_ns;
	bool pushed, partial;
	int err;

	err = signals__open(&s->signal_fd);
	if (!err && s->opts->window_ns)
		err = signals__open_usr1(&s->write_fd);
	if (err) {
		log_error("signals: %s", strerror(-err));
		return EXIT_FAILED;
	}
	confine__hurry_by(s->signal_fd, signalled__is_urgent, s);
	/* the process started here inherits nothing that is opened later */
	if (s->opts->push && push__open(s->opts->push, &s->push))
		return EXIT_FAILED;
	if (symbols__open(s))
		return EXIT_FAILED;
	kernel__features(&s->features);
	err = kernel__require(&s->features);
	if (!err)
		err = open__all(s);
	if (err) {
		/* few rooms print a line of their own about memory or descriptors */
		if (err != -ECANCELED && !log__said_error())
			log_error("the session cannot begin: %s%s", strerror(-err),
				  limit__why_no_process(err).text);
		return EXIT_FAILED;
	}
	err = s->opts->window_ns ? windows__new(s, &s->windows) : 0;
	if (!err && s->opts->metrics)
		err = scrape__new(s, &s->scrape);
	if (err) {
		log_error("the session cannot begin: %s%s", strerror(-err), limit__why(err).text);
		return EXIT_FAILED;
	}
	/* a signal before the loop began may be as old as the session */
	ended_ns = is_to_end(s) ? began_ns : 0;
	loop__run(s);
	if (!ended_ns)
		ended_ns = time__monotonic_ns();
	if (s->opts->kind == SESSION_COMMAND && !s->switched_off && judge_command(s))
		return EXIT_FAILED;
	note_nobody(s);
	progress__task(s->opts->quiet, "looking up names, making the profile …");
	if (ending__finish(s)) {
		/* earlier windows are still being written */
		windows__finish(s);
		if (s->push)
			push__count_unqueued(s->push, 0);
		return EXIT_FAILED;
	}
	finish_capture(s);
	progress__task(s->opts->quiet, NULL);
	pic = timeline__picture(s->tl);
	windows__finish(s);
	if (s->windows)
		err = outputs__write_window(s->outputs, pic);
	else
		err = outputs__write(s->outputs, pic, signals__came, &s->signal_fd);
	/* the reader has closed the pipe */
	if (err == -EPIPE)
		err = 0;
	pushed = push_last(s, pic, ended_ns);
	partial =
		err || windows__partial(s->windows) || !pushed || picture__session(pic)->exit_code;
	if (s->switched_off || s->renewed)
		return (s->switched_off ? SESSION_SWITCHED_OFF : SESSION_RENEWED) |
		       (partial ? EXIT_PARTIAL : 0);
	/* earlier windows were written, so the failed last one is only a dropped window */
	if (err && windows__written(s->windows))
		return EXIT_PARTIAL;
	if (!err && (windows__partial(s->windows) || !pushed))
		return EXIT_PARTIAL;
	return err ? EXIT_FAILED : picture__session(pic)->exit_code;
}

/* As a shell reports it. */
static int code_of_command(struct session *s)
{
	int status = command__status(s->command);

	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void close_all(struct session *s)
{
	command__free(s->command);
	/* for a session that failed: keeps the capture if anything was attached */
	capture__abort(s->capture, s->members && members__count(s->members));
	kernel__close(s->kernel);
	logs__free(s);
	timeline__free(s->tl);
	scrape__free(s->scrape);
	feed__free(s->feed);
	members__free(s->members);
	follow__free(s->follow);
	candidates__free(s->candidates);
	looks__free(s->looks);
	served__free(s->served);
	mapped__free(s->mapped);
	target_cache__free(s->cache);
	debuginfod__free(s->debuginfod);
	windows__free(s);
	push__free(s->push);
	outputs__free(s->outputs);
	spare_fds__close(s);
	confine__hurry_by(-1, NULL, NULL);
	fd__close(&s->signal_fd);
	fd__close(&s->write_fd);
}

/* When switched off, the command must not be disturbed: waits for its end and its status. A signal
 * ends the wait. */
static void await_command(struct session *s)
{
	struct pollfd fds[] = {{.fd = s->signal_fd, .events = POLLIN},
			       {.fd = -1, .events = POLLIN}};

	if (!s->command || !s->switched_off)
		return;
	fds[1].fd = command__pidfd(s->command);
	while (!command__ended(s->command) && !(fds[0].revents & POLLIN))
		poll(fds, ARRAY_SIZE(fds), 1000);
}

int session__run(const struct session_opts *opts)
{
	struct session s = {
		.opts = opts,
		.start_ns = time__monotonic_ns(),
		.rows_until_ns = UINT64_MAX, /* before the loop starts, rows are made at once */
		.signal_fd = -1,
		.write_fd = -1,
	};
	int code;

	fd__raise_limit();
	code = run_to_end(&s);
	await_command(&s);
	if (opts->propagate_exit && command__ended(s.command))
		code = code_of_command(&s);
	close_all(&s);
	return code;
}
