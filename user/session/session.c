/* SPDX-License-Identifier: GPL-2.0-or-later */
/* session: from its options to the process's exit code. */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>

#include "picture/picture.h"
#include "process/mem.h"
#include "session_priv.h"

/* A command that was no Haskell program is a failure, and how it ended is reported. */
static int judge_command(struct session *s)
{
	int status = command__status(s->command);
	const char *name = s->opts->command[0], *why = follow__why(s);

	if (WIFSIGNALED(status))
		log_info("%s: ended by signal %d (%s)", name, WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status))
		log_info("%s: ended with %d", name, WEXITSTATUS(status));
	if (members__count(s->members))
		return 0;
	log_error("%s: nothing to show: %s", name,
		  why[0] ? why : "it ended before its GHC runtime was initialised");
	return -ENOEXEC;
}

/* If the capture cannot be finished, the outputs, which come later, show it. */
static void finish_capture(struct session *s)
{
	if (!s->capture)
		return;
	intake__set_tap(s->in, NULL, NULL);
	if (capture__finish(s->capture))
		intake__set_exit_code(s->in, EXIT_PARTIAL);
	s->capture = NULL;
}

static int run_to_end(struct session *s)
{
	const struct picture *pic;
	int err;

	err = signals__open(&s->signal_fd);
	if (!err && s->opts->window_ns)
		err = signals__open_usr1(&s->write_fd);
	if (err) {
		log_error("signals: %s", strerror(-err));
		return EXIT_FAILED;
	}
	guard__hurry_by(s->signal_fd);
	kernel__features(&s->features);
	err = kernel__require(&s->features);
	if (!err)
		err = open__all(s);
	if (err) {
		/* where it is a word about memory or descriptors, few rooms have their own */
		if (err != -ECANCELED && !log__said_error())
			log_error("the session cannot begin: %s", strerror(-err));
		return EXIT_FAILED;
	}
	err = s->opts->window_ns ? windows__new(s, &s->windows) : 0;
	if (!err && s->opts->metrics)
		err = scrape__new(s, &s->scrape);
	if (err) {
		log_error("no memory");
		return EXIT_FAILED;
	}
	loop__run(s);
	if (s->opts->kind == SESSION_COMMAND && judge_command(s))
		return EXIT_FAILED;
	progress__task(s->opts->quiet, "looking up names, making the profile …");
	if (ending__finish(s))
		return EXIT_FAILED;
	finish_capture(s);
	progress__task(s->opts->quiet, NULL);
	pic = timeline__picture(s->tl);
	if (s->windows) {
		windows__finish(s->windows);
		err = outputs__write_window(s->outputs, pic);
	} else {
		err = outputs__write(s->outputs, pic, signals__came, &s->signal_fd);
	}
	if (s->switched_off)
		return SESSION_SWITCHED_OFF;
	if (!err && windows__partial(s->windows))
		return EXIT_PARTIAL;
	return err ? EXIT_FAILED : picture__session(pic)->exit_code;
}

/* As a shell has it. */
static int code_of_command(struct session *s)
{
	int status = command__status(s->command);

	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void close_all(struct session *s)
{
	command__free(s->command);
	/* of a session that failed: keep what there is, if anything was attached */
	capture__abort(s->capture, s->members && members__count(s->members));
	kernel__close(s->kernel);
	logs__free(s);
	timeline__free(s->tl);
	scrape__free(s->scrape);
	feed__free(s->feed);
	members__free(s->members);
	follow__free(s->follow);
	looks__free(s->looks);
	served__free(s->served);
	mapped__free(s->mapped);
	target_cache__free(s->cache);
	windows__free(s->windows);
	outputs__free(s->outputs);
	spare_fds__close(s);
	guard__hurry_by(-1);
	fd__close(&s->signal_fd);
	fd__close(&s->write_fd);
}

int session__run(const struct session_opts *opts)
{
	struct session s = {
		.opts = opts,
		.start_ns = time__monotonic_ns(),
		.rows_until_ns = UINT64_MAX, /* before the loop begins they are made at once */
		.signal_fd = -1,
		.write_fd = -1,
	};
	int code;

	fd__raise_limit();
	code = run_to_end(&s);
	if (opts->propagate_exit && command__ended(s.command))
		code = code_of_command(&s);
	close_all(&s);
	return code;
}
