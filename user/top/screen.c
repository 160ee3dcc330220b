/* SPDX-License-Identifier: GPL-2.0-or-later */
/* screen: the child that runs the session, its frames and messages, and keys. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "top_priv.h"

#define LOOK_EVERY_MS 200
/* How long a session may take to end when asked to. */
#define END_WAIT_NS 15000000000ULL
#define MESSAGES    8192 /* bytes of messages that are kept */

struct screen {
	const struct top_opts *opts;
	struct top_view view;
	struct top_frame *shown, *coming; /* coming: `got` bytes of it have arrived */
	size_t got;
	pid_t child;   /* 0: ended */
	int frames_fd; /* -1: closed */
	int messages_fd, signal_fd;
	int status;
	bool *wanted; /* shared with the child: a report is wanted */
	uint64_t shown_ns;
	bool next_now; /* replay: show the next frame now */
	bool leave;
	struct buf out;
	char messages[MESSAGES];
	size_t n_messages;
	unsigned columns, rows; /* as last drawn */
	bool changed;
};

/* ── the child ───────────────────────────────────────────────────────────────────────────── */

_Noreturn static void run_child(struct screen *s, int frames, int messages, pid_t parent)
{
	int null = open("/dev/null", O_RDONLY);

	/* or a writer of windows that outlives this process would wait for itself to read */
	fd__close(&s->frames_fd);
	fd__close(&s->messages_fd);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	signals__reset();
	signals__ignore_harmless();
	if (null < 0 || getppid() != parent || dup2(null, STDIN_FILENO) < 0 ||
	    dup2(frames, STDOUT_FILENO) < 0 || dup2(messages, STDERR_FILENO) < 0)
		_exit(EXIT_FAILED);
	exit(s->opts->run(s->opts->ctx));
}

static int start_child(struct screen *s)
{
	int frames[2] = {-1, -1}, messages[2] = {-1, -1}, err = 0;
	pid_t parent = getpid();

	if (pipe2(frames, O_CLOEXEC) || pipe2(messages, O_CLOEXEC)) {
		err = -errno;
		fd__close(&frames[0]);
		fd__close(&frames[1]);
		return err;
	}
	s->frames_fd = frames[0];
	s->messages_fd = messages[0];
	fflush(NULL);
	s->child = fork();
	if (!s->child)
		run_child(s, frames[1], messages[1], parent);
	if (s->child < 0)
		err = -errno;
	fd__close(&frames[1]);
	fd__close(&messages[1]);
	if (!err &&
	    (fcntl(frames[0], F_SETFL, O_NONBLOCK) || fcntl(messages[0], F_SETFL, O_NONBLOCK)))
		err = -errno;
	return err;
}

/* ── what comes ──────────────────────────────────────────────────────────────────────────── */

static void take_messages(struct screen *s)
{
	char text[1024];
	ssize_t n;

	while (s->messages_fd >= 0 && (n = read(s->messages_fd, text, sizeof(text))) != 0) {
		char *line;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return;
		/* if there is too much, keep the end */
		if (s->n_messages + (size_t)n >= sizeof(s->messages)) {
			size_t drop = s->n_messages + (size_t)n - sizeof(s->messages) + 1;

			memmove(s->messages, s->messages + drop, s->n_messages - drop);
			s->n_messages -= drop;
		}
		memcpy(s->messages + s->n_messages, text, (size_t)n);
		s->n_messages += (size_t)n;
		s->messages[s->n_messages] = '\0';
		/* show the last complete line */
		line = memrchr(s->messages, '\n', s->n_messages);
		if (!line)
			continue;
		while (line > s->messages && line[-1] != '\n')
			line--;
		snprintf(s->view.message, sizeof(s->view.message), " %.*s",
			 (int)strcspn(line, "\n"), line);
		s->changed = true;
	}
	fd__close(&s->messages_fd);
}

/* A replay's frames are read only when they are due. */
static bool wants_frame(const struct screen *s, uint64_t now)
{
	if (s->frames_fd < 0)
		return false;
	if (!s->opts->replay || s->leave)
		return true;
	return s->next_now || !s->shown_ns ||
	       (!s->view.frozen && now - s->shown_ns >= s->opts->every_ns);
}

static void show_frame(struct screen *s, uint64_t now)
{
	struct top_frame *frame = s->coming;

	s->got = 0;
	if (!top_frame__check(frame))
		return;
	/* a frozen frame stays; those that arrive in the meantime are dropped */
	if (s->view.frozen && s->view.frame && !s->next_now)
		return;
	s->coming = s->shown;
	s->shown = frame;
	s->view.frame = frame;
	s->shown_ns = now;
	s->next_now = false;
	s->changed = true;
}

static void take_frames(struct screen *s, uint64_t now)
{
	while (wants_frame(s, now)) {
		ssize_t n =
			read(s->frames_fd, (char *)s->coming + s->got, sizeof(*s->coming) - s->got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return;
		if (!n) {
			fd__close(&s->frames_fd);
			s->view.ended = s->changed = true;
			return;
		}
		s->got += (size_t)n;
		if (s->got == sizeof(*s->coming))
			show_frame(s, now);
	}
}

static void take_end(struct screen *s)
{
	if (s->child > 0 && waitpid(s->child, &s->status, WNOHANG) == s->child)
		s->child = 0;
}

/* ── keys ────────────────────────────────────────────────────────────────────────────────── */

static void move(struct screen *s, int by)
{
	const struct top_process *order[TOP_PROCESSES];
	size_t n = top__order(&s->view, order), at = 0;

	for (size_t i = 0; i < n; i++)
		if (order[i]->pid == s->view.selected)
			at = i;
	if (by < 0 && at)
		at--;
	else if (by > 0 && at + 1 < n)
		at++;
	if (n)
		s->view.selected = order[at]->pid;
}

static void take_key(struct screen *s, int key)
{
	static const char sorts[] = "csgan";
	const char *sort = key ? strchr(sorts, key) : NULL;

	s->view.message[0] = '\0';
	s->changed = true;
	if (sort) {
		s->view.sort = (enum top_sort)(sort - sorts);
		return;
	}
	switch (key) {
	case 'q':
	case 3: /* Ctrl-C */
		s->leave = true;
		break;
	case 26: /* Ctrl-Z */
		raise(SIGTSTP);
		break;
	case 'k':
		move(s, -1);
		break;
	case 'j':
		move(s, 1);
		break;
	case ' ':
	case 'f':
		s->view.frozen = !s->view.frozen;
		break;
	case '>':
		s->next_now = s->opts->replay;
		break;
	case 'w':
		__atomic_store_n(s->wanted, true, __ATOMIC_RELEASE);
		snprintf(s->view.message, sizeof(s->view.message),
			 " the next part will be written as well when it ends");
		break;
	case 'h':
	case '?':
		s->view.help = !s->view.help;
		break;
	}
}

/* The arrow keys send sequences: ESC [ A, or ESC O A. */
static void take_keys(struct screen *s)
{
	unsigned char keys[64];
	ssize_t n = read(STDIN_FILENO, keys, sizeof(keys));

	for (ssize_t i = 0; i < n; i++) {
		if (keys[i] == 27 && i + 2 < n && (keys[i + 1] == '[' || keys[i + 1] == 'O')) {
			take_key(s, keys[i + 2] == 'A' ? 'k' : keys[i + 2] == 'B' ? 'j' : 0);
			i += 2;
		} else {
			take_key(s, keys[i]);
		}
	}
}

/* ── the loop ────────────────────────────────────────────────────────────────────────────── */

static void draw(struct screen *s)
{
	const char *at;
	size_t left;

	terminal__size(&s->view.columns, &s->view.rows);
	s->changed |= terminal__resumed();
	if (!s->changed && s->columns == s->view.columns && s->rows == s->view.rows)
		return;
	s->changed = false;
	s->columns = s->view.columns;
	s->rows = s->view.rows;
	if (top__draw(&s->view, &s->out))
		return;
	at = s->out.data;
	for (left = s->out.len; left;) {
		ssize_t n = write(STDOUT_FILENO, at, left);

		if (n < 0 && errno != EINTR) {
			/* the terminal is gone */
			s->leave = true;
			return;
		}
		at += MAX(n, 0);
		left -= (size_t)MAX(n, 0);
	}
}

static bool is_over(const struct screen *s)
{
	if (s->leave)
		return true;
	if (s->frames_fd >= 0 || s->child)
		return false;
	/* if no frame came, the session failed, and there is nothing to look at */
	return !s->opts->stay || !s->view.frame;
}

static void wait_for_something(struct screen *s, uint64_t now)
{
	struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
			       {.fd = s->signal_fd, .events = POLLIN},
			       {.fd = s->messages_fd, .events = POLLIN},
			       {.fd = wants_frame(s, now) ? s->frames_fd : -1, .events = POLLIN}};
	struct signal_taken taken;

	poll(fds, ARRAY_SIZE(fds), LOOK_EVERY_MS);
	if (fds[0].revents & POLLIN)
		take_keys(s);
	else if (fds[0].revents)
		s->leave = true;
	if (signals__take(s->signal_fd, &taken))
		s->leave = true;
}

/* Whether Ctrl-C, an ordinary key here, was pressed once more. */
static bool is_impatient(void)
{
	struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
	unsigned char keys[64];
	ssize_t n;

	if (poll(&fd, 1, 0) != 1 || !(fd.revents & POLLIN))
		return false;
	n = read(STDIN_FILENO, keys, sizeof(keys));
	return n > 0 && memchr(keys, 3, (size_t)n);
}

/*
 * Asks the child to end, and reads its pipes meanwhile, since it may have more to write. Kills it
 * if that takes too long, or the user does not want to wait.
 */
static void end_child(struct screen *s)
{
	uint64_t until = time__monotonic_ns() + END_WAIT_NS;
	struct signal_taken taken;

	if (s->child > 0)
		kill(s->child, SIGINT);
	while (s->child > 0) {
		uint64_t now = time__monotonic_ns();
		struct pollfd fds[] = {{.fd = s->frames_fd, .events = POLLIN},
				       {.fd = s->messages_fd, .events = POLLIN}};

		take_end(s);
		take_messages(s);
		take_frames(s, now);
		if (now >= until || signals__take(s->signal_fd, &taken) || is_impatient()) {
			kill(s->child, SIGKILL);
			waitpid(s->child, &s->status, 0);
			s->child = 0;
		}
		poll(fds, ARRAY_SIZE(fds), 20);
	}
	take_messages(s);
}

static void run(struct screen *s)
{
	while (!is_over(s)) {
		uint64_t now = time__monotonic_ns();

		take_messages(s);
		take_frames(s, now);
		take_end(s);
		draw(s);
		wait_for_something(s, now);
	}
}

static int start(struct screen *s)
{
	int err;

	s->shown = calloc(1, sizeof(*s->shown));
	s->coming = calloc(1, sizeof(*s->coming));
	s->wanted = mmap(NULL, sizeof(*s->wanted), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!s->shown || !s->coming || s->wanted == MAP_FAILED)
		return -ENOMEM;
	buf__init(&s->out, (size_t)1 << 22);
	top_report__set(s->wanted, s->opts->report, s->opts->ctx);
	err = start_child(s);
	if (!err)
		err = signals__open(&s->signal_fd);
	if (!err)
		err = terminal__take();
	return err;
}

int top__run(const struct top_opts *opts)
{
	struct screen s = {.opts = opts,
			   .frames_fd = -1,
			   .messages_fd = -1,
			   .signal_fd = -1,
			   .wanted = MAP_FAILED,
			   .view.colour = opts->colour,
			   .changed = true};
	int err;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		log_error("--top: needs a terminal");
		return EXIT_FAILED;
	}
	err = start(&s);
	if (!err)
		run(&s);
	end_child(&s);
	terminal__give_back();
	if (err)
		log_error("--top: %s", strerror(-err));
	/* repeat the messages, which the screen has hidden */
	fwrite(s.messages, 1, s.n_messages, stderr);
	if (s.wanted != MAP_FAILED)
		munmap(s.wanted, sizeof(*s.wanted));
	free(s.shown);
	free(s.coming);
	buf__free(&s.out);
	fd__close(&s.frames_fd);
	fd__close(&s.messages_fd);
	fd__close(&s.signal_fd);
	if (err)
		return EXIT_FAILED;
	/* a replay is killed by the SIGINT that asks it to end */
	if (s.leave && WIFSIGNALED(s.status) && WTERMSIG(s.status) == SIGINT)
		return EXIT_COMPLETE;
	return WIFEXITED(s.status) ? WEXITSTATUS(s.status) : EXIT_FAILED;
}
