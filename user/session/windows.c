/* SPDX-License-Identifier: GPL-2.0-or-later */
/* windows: cuts the session, and has a child write each window. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limit.h"
#include "picture/make.h"
#include "session_priv.h"

/* Limit on windows written at the same time. If that many are being written, the window goes on
 * … */
#define MAX_WRITERS 2
/* … for this long, or for its own length if that is longer; then it is dropped. */
#define WRITER_WAIT_NS 10000000000ULL
/* How often to check for a free writer; its end does not wake the session. */
#define WRITER_LOOK_NS 20000000
/* Limit on the wait for writers of files at the end of the session, … */
#define LAST_WAIT_NS 1500000000ULL
/* … and for those that have made the files and only queue the window. */
#define LAST_QUEUE_NS 1800000000ULL
/* Limit on the wait for a killed writer that is blocked on a disk. */
#define KILLED_WAIT_NS 200000000ULL
/* Lanes are made once there are this many records, about 4 MB, even before the window ends; but not
 * while a capture is saved, since a replay would make them at other moments and draw other
 * slices. */
#define FOLD_RECORDS 32768
/* Free memory is returned to the system after windows of at least this length. */
#define TRIM_NS 10000000000ULL
/* Smaller steps may be errors of reading two clocks: the kernel adjusts both alike. */
#define CLOCK_STEP_NS 10000000
/* Writers give way to the programs being profiled. */
#define WRITER_NICE 10

/* Why a window was dropped; the first two are bits of a writer's exit status, … */
enum {
	FILES_FAILED = 1,
	PUSH_FAILED = 2,
	NOT_MADE = 4,
	WRITERS_BUSY = 8,
	TOO_SLOW = 16,
	READER_GONE = 32, /* … as are these, for which no window is dropped: standard output has no
			     reader any more, … */
	OLD_STAY = 64,	  /* … old windows could not be removed */
};

/* How far a writer has come; in memory that it shares, since it may have to be killed. */
struct writing {
	atomic_bool has_files;	     /* the window's files are there */
	_Atomic push_set queued_for; /* destinations that the window is queued for */
};

struct writer {
	pid_t pid;	   /* 0: none */
	uint64_t ended_ns; /* end of the window that it writes */
	bool killed;
	struct writing *progress;
};

struct windows {
	uint64_t every_ns, next_ns; /* next_ns: when the next window is due */
	uint64_t asked_ns;	    /* when a window was requested before that; 0: not requested */
	uint64_t again_ns;	    /* it waits for a writer, at least until then; 0: it does not */
	struct writer writers[MAX_WRITERS];
	uint64_t made, written;
	uint64_t dropped; /* windows that are in no file */
	uint64_t in_row;  /* of which since the last one that was written */
	unsigned failing; /* reasons why these were dropped */
	bool partial;	  /* some window was incomplete */
	bool on_stdout;	  /* windows follow each other on standard output … */
	bool reader_gone; /* … which nobody reads any more */
};

int windows__new(struct session *s, struct windows **ret_windows)
{
	const char *path = s->opts->output->path;
	struct windows *w = calloc(1, sizeof(*w));
	struct writing *progress = mmap(NULL, MAX_WRITERS * sizeof(*progress),
					PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (!w || progress == MAP_FAILED) {
		if (progress != MAP_FAILED)
			munmap(progress, MAX_WRITERS * sizeof(*progress));
		free(w);
		return -ENOMEM;
	}
	for (size_t i = 0; i < MAX_WRITERS; i++)
		w->writers[i].progress = &progress[i];
	w->every_ns = s->opts->window_ns;
	w->on_stdout = path && !strcmp(path, "-");
	w->next_ns = time__monotonic_ns() + w->every_ns;
	*ret_windows = w;
	return 0;
}

uint64_t windows__ends_ns(const struct session *s)
{
	return s->windows ? s->windows->next_ns : 0;
}

uint64_t windows__next_due(const struct session *s)
{
	const struct windows *w = s->windows;

	return !w ? 0 : w->again_ns ? w->again_ns : w->next_ns;
}

bool windows__partial(const struct windows *w)
{
	return w && (w->dropped || w->partial);
}

void windows__state(const struct windows *w, struct windows_state *ret_state)
{
	*ret_state = (struct windows_state){.made = w ? w->made : 0, .dropped = w ? w->dropped : 0};
	for (size_t i = 0; w && i < MAX_WRITERS; i++)
		if (w->writers[i].pid &&
		    (!ret_state->writing_ns || w->writers[i].ended_ns < ret_state->writing_ns))
			ret_state->writing_ns = w->writers[i].ended_ns;
}

bool windows__written(const struct windows *w)
{
	return w && w->written;
}

/* A disk that is full for a day is one event: repetitions with a known reason are only verbose
 * messages. */
static void drop(struct windows *w, unsigned why, const char *text)
{
	bool known = (w->failing & why) == why;

	w->dropped++;
	w->in_row++;
	w->failing |= why;
	if (known)
		log_verbose("a window is not %s: %s", why == PUSH_FAILED ? "pushed" : "written",
			    text);
	else
		log_warn("a window is not %s: %s; further ones are not reported until one is",
			 why == PUSH_FAILED ? "pushed" : "written", text);
}

/* A window for which there is no writer. */
static void drop_unwritten(struct session *s, unsigned why, const char *text)
{
	drop(s->windows, why, text);
	if (s->push)
		push__count_unqueued(s->push, 0);
}

static void note_written(struct windows *w)
{
	w->written++;
	if (w->in_row)
		log_info("windows are written again; %llu were not, %llu in all so far",
			 (unsigned long long)w->in_row, (unsigned long long)w->dropped);
	w->in_row = 0;
	w->failing = 0;
}

/* The session ends, as `| head` ends other programs, unless windows are pushed or metrics
 * served. */
static void note_reader_gone(struct session *s)
{
	struct windows *w = s->windows;
	bool goes_on = s->push || s->opts->metrics;

	if (w->reader_gone)
		return;
	w->reader_gone = true;
	log_info("standard output: nobody reads it any more%s",
		 goes_on ? "" : ": the session ends");
	if (!goes_on)
		s->stopped = true;
}

/* ── the writers ─────────────────────────────────────────────────────────────────────────── */

/* How it failed: a set of reasons. */
static int failures_of(const struct session *s, const struct writer *writer, bool collected,
		       int status)
{
	bool has_files = atomic_load(&writer->progress->has_files);

	if (collected && WIFEXITED(status))
		return WEXITSTATUS(status);
	if (has_files && !s->push)
		return 0;
	if (writer->killed)
		return TOO_SLOW;
	return has_files ? PUSH_FAILED : FILES_FAILED;
}

static void drop_slow(struct windows *w, const struct writer *writer)
{
	if (atomic_load(&writer->progress->has_files))
		drop(w, PUSH_FAILED, "it takes too long to queue");
	else
		drop(w, TOO_SLOW, "its files take too long to write");
}

/* The writer is gone, or is not waited for any more. */
static void note_ended(struct session *s, struct writer *writer, int failed)
{
	struct windows *w = s->windows;

	if (failed & TOO_SLOW)
		drop_slow(w, writer);
	else if (failed & FILES_FAILED)
		drop(w, FILES_FAILED, "its files could not be made");
	else if (failed & PUSH_FAILED)
		drop(w, PUSH_FAILED, "it could not be queued");
	else
		note_written(w);
	if (failed & READER_GONE)
		note_reader_gone(s);
	if (s->push) {
		push__count_unqueued(s->push, atomic_load(&writer->progress->queued_for));
		push__look(s->push);
	}
	writer->pid = 0;
}

static bool has_ended(struct session *s, struct writer *writer)
{
	int status = 0, failed;
	pid_t got = waitpid(writer->pid, &status, WNOHANG);

	if (!got || (got < 0 && errno == EINTR))
		return false;
	failed = failures_of(s, writer, got > 0, status);
	if (got > 0 && WIFEXITED(status))
		outputs__set_old_stay(s->outputs, failed & OLD_STAY);
	note_ended(s, writer, failed);
	return true;
}

static size_t count_writers(struct session *s)
{
	struct windows *w = s->windows;
	size_t n = 0;

	for (size_t i = 0; i < MAX_WRITERS; i++)
		n += w->writers[i].pid && !has_ended(s, &w->writers[i]);
	return n;
}

void windows__collect(struct session *s)
{
	if (s->windows)
		count_writers(s);
}

/* `all`: also those that have made their files, and only have to queue the window. */
static void kill_writers(struct windows *w, bool all)
{
	for (size_t i = 0; i < MAX_WRITERS; i++) {
		struct writer *writer = &w->writers[i];

		if (!writer->pid || (!all && atomic_load(&writer->progress->has_files)))
			continue;
		writer->killed = true;
		kill(writer->pid, SIGKILL);
	}
}

/*
 * Kills the writers; a file appears whole or not at all. A writer blocked on a disk may take long
 * to end: it is then left to itself, and its window counts as dropped.
 */
static void end_writers(struct session *s)
{
	struct windows *w = s->windows;
	uint64_t until = time__monotonic_ns() + KILLED_WAIT_NS;

	kill_writers(w, true);
	while (count_writers(s) && time__monotonic_ns() < until)
		poll(NULL, 0, 5);
	for (size_t i = 0; i < MAX_WRITERS; i++)
		if (w->writers[i].pid)
			note_ended(s, &w->writers[i], failures_of(s, &w->writers[i], false, 0));
}

void windows__finish(struct session *s)
{
	struct windows *w = s->windows;
	uint64_t began = time__monotonic_ns(), waited = 0;

	if (!w)
		return;
	/* output on a stream cannot be taken back, so its reader is waited for, until a signal */
	while (count_writers(s) && (w->on_stdout || waited < LAST_QUEUE_NS)) {
		if (!w->on_stdout && waited >= LAST_WAIT_NS)
			kill_writers(w, false);
		poll(NULL, 0, 20);
		if (w->on_stdout && signals__came(&s->signal_fd))
			break;
		waited = time__monotonic_ns() - began;
	}
	end_writers(s);
}

void windows__free(struct session *s)
{
	if (!s->windows)
		return;
	end_writers(s);
	munmap(s->windows->writers[0].progress, MAX_WRITERS * sizeof(struct writing));
	free(s->windows);
	s->windows = NULL;
}

/* Suppresses messages: a repeated failure was reported the first time. */
static void be_silent(void)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	dup2(fd, STDERR_FILENO);
	close(fd);
}

/* The child keeps no descriptors of the session: neither the kernel side's nor processes'. */
_Noreturn static void write_window(struct session *s, const struct picture *pic,
				   struct writing *progress)
{
	const struct export_opts opts = outputs__export_opts(s->outputs);
	bool silent = s->windows->failing & (FILES_FAILED | PUSH_FAILED) &&
		      log__level() < LOG_LVL_VERBOSE;
	bool old_stay = outputs__old_stay(s->outputs);
	int err, failed = 0;

	syscall(SYS_close_range, STDERR_FILENO + 1U, ~0U, 0);
	setpriority(PRIO_PROCESS, 0, WRITER_NICE);
	if (silent)
		be_silent();
	err = outputs__write_window(s->outputs, pic);
	if (err)
		failed |= err == -EPIPE ? READER_GONE : FILES_FAILED;
	else
		atomic_store(&progress->has_files, true);
	if (s->push && push__put(s->push, pic, &opts, &progress->queued_for))
		failed |= PUSH_FAILED;
	/* whatever was not printed is still to be reported */
	if (silent ? old_stay : outputs__old_stay(s->outputs))
		failed |= OLD_STAY;
	_exit(failed);
}

/* NULL: all are busy. */
static struct writer *free_writer(struct session *s)
{
	struct windows *w = s->windows;
	size_t max = w->on_stdout ? 1 : MAX_WRITERS;

	windows__collect(s);
	for (size_t i = 0; i < max; i++)
		if (!w->writers[i].pid)
			return &w->writers[i];
	return NULL;
}

static void start_writer(struct session *s, const struct picture *pic)
{
	struct writer *writer = free_writer(s);
	char why[256];
	pid_t pid;
	int err;

	if (!writer) {
		drop_unwritten(s, WRITERS_BUSY, "earlier windows are still being written");
		return;
	}
	/* accounts for earlier entries and recreates a removed queue, since the writer only puts */
	if (s->push)
		push__look(s->push);
	writer->killed = false;
	atomic_store(&writer->progress->has_files, false);
	atomic_store(&writer->progress->queued_for, 0);
	pid = fork();
	if (!pid)
		write_window(s, pic, writer->progress);
	if (pid < 0) {
		err = -errno;
		snprintf(why, sizeof(why), "%s%s", strerror(-err), limit__why_no_process(err).text);
		drop_unwritten(s, NOT_MADE, why);
		return;
	}
	writer->pid = pid;
	writer->ended_ns = picture__session(pic)->end_ns;
}

/* ── cuts ────────────────────────────────────────────────────────────────────────────────── */

void windows__read_clock(struct session *s)
{
	uint64_t now, unix_ns, known;
	int64_t step;

	if (!s->windows || time__both_ns(&now, &unix_ns))
		return;
	known = timeline__unix_ns(s->tl, now);
	step = (int64_t)(unix_ns - known);
	if (step < CLOCK_STEP_NS && step > -CLOCK_STEP_NS)
		return;
	timeline__set_clock(s->tl, now, unix_ns);
	log_info("the clock was set %s by %.3f s: so are the times of this window and later ones",
		 step < 0 ? "back" : "forward", (double)(step < 0 ? -step : step) / 1e9);
}

/*
 * True if the window ends now. If earlier ones are still being written, because a disk is slow or
 * the host busy, a longer window is better than a lost one.
 */
static bool ends_now(struct session *s, uint64_t now)
{
	struct windows *w = s->windows;
	uint64_t due = w->asked_ns ? w->asked_ns : w->next_ns;

	if (now < due)
		return false;
	if (free_writer(s) || now - due >= MAX(w->every_ns, WRITER_WAIT_NS)) {
		if (w->again_ns)
			log_verbose("a window waited %.1f s for earlier ones to be written",
				    (double)(now - due) / 1e9);
		w->asked_ns = w->again_ns = 0;
		return true;
	}
	w->again_ns = now + WRITER_LOOK_NS;
	return false;
}

int windows__cut(struct session *s, uint64_t now, bool at_once)
{
	struct windows *w = s->windows;
	struct picture *pic = NULL;
	uint64_t begun;
	int err;

	if (!w)
		return 0;
	if (at_once && !w->asked_ns && now < w->next_ns)
		w->asked_ns = now;
	if (!ends_now(s, now)) {
		err = s->capture ? 0 : timeline__fold_at(s->tl, FOLD_RECORDS);
		/* other errors cost this window, and are reported when it is made */
		return err == -ENOMEM ? err : 0;
	}
	/* back on schedule after a stop, without empty windows */
	while (w->next_ns <= now)
		w->next_ns += w->every_ns;
	begun = time__monotonic_ns();
	w->made++;
	windows__read_clock(s);
	err = ending__read(s, &now);
	if (!err)
		err = timeline__window(s->tl, now, &pic);
	/* any error here is permanent */
	if (err) {
		log_error("the session cannot go on: %s%s", strerror(-err), limit__why(err).text);
		return err;
	}
	if (pic) {
		w->partial |= picture__session(pic)->exit_code != 0;
		start_writer(s, pic);
	} else {
		drop_unwritten(s, NOT_MADE, "it could not be made");
	}
	picture__free(pic);
	/* nothing needs it until the next window is nearly over; a short one is over at once */
	if (w->every_ns >= TRIM_NS)
		malloc_trim(0);
	log_verbose("a window: %.1f ms", (double)(time__monotonic_ns() - begun) / 1e6);
	return 0;
}
