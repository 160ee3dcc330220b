/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of the push room only. Each section is one file. */
#ifndef SAFESCOPED_PUSH_PRIV_H
#define SAFESCOPED_PUSH_PRIV_H

#include <limits.h>

#include "push.h"

/* ── url.c ───────────────────────────────────────────────────────────────────────────────── */

enum push_protocol { PUSH_OTLP, PUSH_PYROSCOPE };

struct push_url {
	enum push_protocol protocol;
	char *request; /* where to post to: "http://host:4318/v1development/profiles" */
	char *shown;   /* for people: "otlp+http://host:4318" */
};

/* -EINVAL, and *ret_why is the reason; -ENOMEM. The caller frees by push_url__free(). */
int push_url__parse(const char *text, struct push_url *ret_url, const char **ret_why);
void push_url__free(struct push_url *url);

/* ── file.c ──────────────────────────────────────────────────────────────────────────────── */

/* All of a file of at most `max` bytes, with a NUL at its end; opened as fd__open_own() does. The
 * caller frees. Prints a line on failure. */
int push_file__read(const char *path, size_t max, uid_t user, char **ret_text, size_t *ret_len);
/* A number made of `stamp` and of which file this is, and when it was changed. path may be NULL. */
uint64_t push_file__stamp(uint64_t stamp, const char *path);

/* ── headers.c ───────────────────────────────────────────────────────────────────────────── */

#define HEADERS_MAX 64

struct push_headers {
	char *text; /* that the lines are in */
	char *lines[HEADERS_MAX];
	size_t n;
};

/* Reads "Name: value" lines; empty ones and those that begin with # are left out. Prints a line on
 * failure. path NULL: there are none. */
int push_headers__read(const char *path, uid_t user, struct push_headers *ret_headers);
void push_headers__free(struct push_headers *headers);

/* ── labels.c ────────────────────────────────────────────────────────────────────────────── */

struct buf;

/* Adds the query of a request to Pyroscope with the process's profile: "name=…&from=…&until=…". */
int push_labels__query(const struct picture *pic, const struct pic_target *target,
		       const struct export_opts *opts, struct buf *ret_query);

/* ── backoff.c ───────────────────────────────────────────────────────────────────────────── */

#define BACKOFF_FIRST_NS 1000000000ULL
#define BACKOFF_MOST_NS	 120000000000ULL
/* No server may keep us waiting for longer. */
#define BACKOFF_ASKED_MOST_NS 3600000000000ULL

/*
 * How long to wait after so many failures in a row (from 1 on): twice as long each time, less up to
 * a half of it, by `random`, so that not all come back at once. At least as long as the server
 * asked for, in seconds.
 */
uint64_t backoff__ns(unsigned failures, uint32_t random, uint64_t asked_s);

/* ── queue.c ─────────────────────────────────────────────────────────────────────────────── */

/*
 * A directory of files, named by when their windows began. Each is there whole or not at all. The
 * first one may be held, while it is being sent: it is not dropped then.
 */
struct queue;

/* Makes the directory (dir__open_own(), whose errors it gives). Prints a line on failure; -EBUSY:
 * another process has it. */
int queue__open(const char *dir, uint64_t max_bytes, size_t max_files, struct queue **ret_queue);
/* The same for a directory that cannot be opened now: queue__look() opens it as soon as it can, and
 * until then the queue is empty and takes nothing. -ENOMEM. */
int queue__open_later(const char *dir, uint64_t max_bytes, size_t max_files,
		      struct queue **ret_queue);
void queue__free(struct queue *queue);
/* Whether queue__open() could have the directory once nobody else has it. Prints a line if not. */
int queue__check(const char *dir);
/* The path of a new file: the n-th of a window, or the next one that is not there. -ENOENT: the
 * directory has not been opened so far. */
int queue__path(const struct queue *queue, uint64_t unix_ns, unsigned n, char ret_path[PATH_MAX]);
/*
 * Reads the directory anew; another one, if that has its name now. While there are too many bytes,
 * of the disk, or files, some go: first those whose time is yet to come, since each new window
 * would be older than they are, then the oldest ones.
 */
int queue__look(struct queue *queue);
/*
 * Opens the oldest file that can be opened, and holds it; *ret_again: it is the one that was held
 * last. -ENOENT: there is none. What is no file by now, or not for us to read, goes. What cannot be
 * opened otherwise stays, since that may pass, and the one after it is taken; it goes after some
 * attempts, but not while none can be opened: then the error is returned. While one that was let go
 * cannot be removed none is held, so that it is not sent again; the error is why.
 */
int queue__hold_first(struct queue *queue, uint64_t now, int *ret_fd, bool *ret_again);
/* The same of the one after the one that was held last. -ENOENT: none can be opened now. */
int queue__hold_second(struct queue *queue, int *ret_fd);
/* The held file is let go: it stays, or is removed. */
void queue__let_go(struct queue *queue, bool remove);

struct queue_state {
	uint64_t n, bytes, oldest_unix_ns;
	uint64_t dropped; /* and are gone: the queue was too full, or they could not be opened */
	uint64_t removed; /* with the directory, by somebody else */
};
struct queue_state queue__state(const struct queue *queue);
/* Whether a file of that name is a queue's. */
bool queue__is_name(const char *name);

/* ── queues.c ────────────────────────────────────────────────────────────────────────────── */

/*
 * The directory of the queue of a destination, whose URL may have anything in it; "": the one that
 * all of them are in, with a slash at its end.
 */
int queues__path(const struct push_opts *opts, const char *url, char ret_path[PATH_MAX]);
/* A line for each queue in which requests wait and that no process has: nobody sends from it. */
void queues__report_left(const struct push_opts *opts);

/* ── post.c: in the sender ───────────────────────────────────────────────────────────────── */

struct sender_opts;
struct sender_answer;

struct post;

/* Connections stay open from one request to the next. NULL: no memory. */
struct post *post__new(const struct sender_opts *opts);
/* Sends the file; the answer is filled in but for its id. */
void post__file(struct post *post, int fd, struct sender_answer *ret_answer);

/* ── answer.c: in the sender ─────────────────────────────────────────────────────────────── */

struct answer_body {
	bool otlp;	  /* it is to be OTLP's */
	const char *type; /* its media type; NULL: none */
	const uint8_t *data;
	size_t len;
};

/* What it says, of an answer whose status is known. */
void answer__read(const struct answer_body *body, struct sender_answer *answer);
/* Of `text` what fits, up to its end or `len` bytes. */
void answer__keep_text(struct sender_answer *answer, const char *text, size_t len);

/* ── sender.c ────────────────────────────────────────────────────────────────────────────── */

struct confine_peer;

/*
 * A queued file is a line and what follows it: the query of the request ("" for none), then its
 * body.
 */
#define PUSH_QUERY_MAX 4096

struct sender_opts {
	const char *url;
	const char *content_type, *content_encoding; /* the latter NULL: none */
	const struct push_headers *headers;
	const char *ca; /* certificates, as text; NULL: the system's */
	uint32_t timeout_ms;
	bool otlp; /* answers are OTLP's */
};

/* To the sender, with the file's descriptor. */
struct sender_task {
	uint64_t id;
};

enum sender_outcome {
	SENDER_ANSWERED, /* `status` is HTTP's */
	SENDER_FAILED,	 /* there was no answer: `text` has why */
	SENDER_BAD_FILE, /* it cannot be sent */
	SENDER_DIED,	 /* of the task with that id; 0: of none. It is running again */
	SENDER_OUTCOMES
};

/* From the sender, which may have been taken over. */
struct sender_answer {
	uint64_t id;
	int64_t rejected;	/* profiles that the server did not take */
	uint64_t retry_after_s; /* 0: it had none */
	uint32_t outcome;	/* enum sender_outcome */
	uint32_t status;
	char text[256]; /* its text, or what failed; other people's */
};

/* Whether `n` bytes that came from there can be one; its text and counts are put right. */
bool sender__check(struct sender_answer *answer, size_t n);

/* The options are to live until it has begun: for ever, in its copy. */
int sender__start(const struct sender_opts *opts, struct confine_peer **ret_peer);
/* -EAGAIN: not now; other errors are for good. */
int sender__send(struct confine_peer *peer, const struct sender_task *task, int fd);
/* -EAGAIN: there is none; -EPIPE: it has ended. What comes is checked. */
int sender__answer(struct confine_peer *peer, struct sender_answer *ret_answer);

/* ── destination.c ───────────────────────────────────────────────────────────────────────── */

/* One queue, one sender. */
struct destination;

int destination__open(const struct push_to *to, const struct push_opts *opts,
		      struct destination **ret_destination);
/* Whether its files can be used. Prints a line if not. */
int destination__check(const struct push_to *to, const struct push_opts *opts);
/* queue__check() of its queue. */
int destination__check_queue(const struct push_to *to, const struct push_opts *opts);
void destination__free(struct destination *d);
int destination__put(const struct destination *d, const struct picture *pic,
		     const struct export_opts *opts);
void destination__look(struct destination *d);
void destination__turn(struct destination *d, uint64_t now);
uint64_t destination__next_due(const struct destination *d);
int destination__fd(const struct destination *d);
/* Nothing is being sent, and nothing is queued; or nothing can be sent any more. */
bool destination__is_idle(const struct destination *d);
/* Prints what there is to report at the end. */
void destination__report(const struct destination *d);
void destination__stats(const struct destination *d, struct push_stats *ret_stats);

#endif
