/* SPDX-License-Identifier: GPL-2.0-or-later */
/* windows: cuts the session, and has a child write each window. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "picture/make.h"
#include "session_priv.h"

/* Windows that are written at the same time; with as many at work another one is dropped. */
#define MAX_WRITERS 2
/* At the end of the session nobody waits longer for them. */
#define LAST_WAIT_MS 1500
/* They give way to what is profiled. */
#define WRITER_NICE 10

struct windows {
	uint64_t every_ns, next_ns;
	pid_t writers[MAX_WRITERS];	/* 0: none */
	uint64_t ended_ns[MAX_WRITERS]; /* the window that each writes */
	uint64_t made;
	uint64_t dropped; /* that are not in any file */
	bool partial;	  /* one that was not complete */
};

int windows__new(struct session *s, struct windows **ret_windows)
{
	struct windows *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->every_ns = s->opts->window_ns;
	w->next_ns = time__monotonic_ns() + w->every_ns;
	*ret_windows = w;
	return 0;
}

uint64_t windows__next_due(const struct session *s)
{
	return s->windows ? s->windows->next_ns : 0;
}

bool windows__partial(const struct windows *w)
{
	return w && (w->dropped || w->partial);
}

void windows__state(const struct windows *w, struct windows_state *ret_state)
{
	*ret_state = (struct windows_state){.made = w ? w->made : 0, .dropped = w ? w->dropped : 0};
	for (size_t i = 0; w && i < MAX_WRITERS; i++)
		if (w->writers[i] &&
		    (!ret_state->writing_ns || w->ended_ns[i] < ret_state->writing_ns))
			ret_state->writing_ns = w->ended_ns[i];
}

static void drop(struct windows *w, const char *why)
{
	w->dropped++;
	log_warn("a window is not written: %s (%llu so far)", why, (unsigned long long)w->dropped);
}

/* ── the writers ─────────────────────────────────────────────────────────────────────────── */

static bool has_ended(struct windows *w, pid_t *writer, int options)
{
	int status = 0;
	pid_t got = waitpid(*writer, &status, options);

	if (!got || (got < 0 && errno == EINTR))
		return false;
	if (got < 0 || !WIFEXITED(status) || WEXITSTATUS(status))
		drop(w, "its files could not be made");
	*writer = 0;
	return true;
}

void windows__collect(struct session *s)
{
	for (size_t i = 0; s->windows && i < MAX_WRITERS; i++)
		if (s->windows->writers[i])
			has_ended(s->windows, &s->windows->writers[i], WNOHANG);
}

void windows__finish(struct windows *w)
{
	for (unsigned ms = 0; ms < LAST_WAIT_MS; ms += 20) {
		size_t left = 0;

		for (size_t i = 0; i < MAX_WRITERS; i++)
			left += w->writers[i] && !has_ended(w, &w->writers[i], WNOHANG);
		if (!left)
			break;
		poll(NULL, 0, 20);
	}
	for (size_t i = 0; i < MAX_WRITERS; i++) {
		if (!w->writers[i])
			continue;
		/* a file is whole or not at all */
		kill(w->writers[i], SIGKILL);
		has_ended(w, &w->writers[i], 0);
	}
}

void windows__free(struct windows *w)
{
	if (w)
		windows__finish(w);
	free(w);
}

/* The child holds nothing of the session: neither the kernel side nor processes. */
_Noreturn static void write_window(struct session *s, const struct picture *pic)
{
	int err;

	syscall(SYS_close_range, STDERR_FILENO + 1U, ~0U, 0);
	setpriority(PRIO_PROCESS, 0, WRITER_NICE);
	err = outputs__write_window(s->outputs, pic);
	_exit(err ? 1 : 0);
}

static void start_writer(struct session *s, const struct picture *pic)
{
	struct windows *w = s->windows;
	const char *path = s->opts->output->path;
	/* on standard output they follow each other */
	size_t max = path && !strcmp(path, "-") ? 1 : MAX_WRITERS;
	pid_t *writer = NULL, pid;

	windows__collect(s);
	for (size_t i = 0; i < max; i++)
		if (!w->writers[i])
			writer = &w->writers[i];
	if (!writer) {
		drop(w, "those before it are still being written");
		return;
	}
	pid = fork();
	if (!pid)
		write_window(s, pic);
	if (pid < 0)
		drop(w, strerror(errno));
	else
		*writer = pid;
	w->ended_ns[writer - w->writers] = picture__session(pic)->end_ns;
}

/* ── cuts ────────────────────────────────────────────────────────────────────────────────── */

int windows__cut(struct session *s, uint64_t now, bool at_once)
{
	struct windows *w = s->windows;
	struct picture *pic = NULL;
	uint64_t begun;
	int err;

	if (!w || (now < w->next_ns && !at_once))
		return 0;
	/* on time again after a stop, without windows of no length */
	while (w->next_ns <= now)
		w->next_ns += w->every_ns;
	begun = now = time__monotonic_ns();
	w->made++;
	err = ending__read(s, now);
	if (!err)
		err = timeline__window(s->tl, now, &pic);
	if (err) {
		log_error("the session cannot go on: %s", strerror(-err));
		return err;
	}
	if (pic) {
		w->partial |= picture__session(pic)->exit_code != 0;
		start_writer(s, pic);
	} else {
		drop(w, "it could not be made");
	}
	picture__free(pic);
	log_verbose("a window: %.1f ms", (double)(time__monotonic_ns() - begun) / 1e6);
	return 0;
}
