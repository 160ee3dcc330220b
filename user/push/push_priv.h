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
	char *request; /* the URL to post to: "http://host:4318/v1development/profiles" */
	char *shown;   /* for messages: "otlp+http://host:4318" */
};

/* -EINVAL, with the reason in *ret_why; -ENOMEM. The caller frees the result with
 * push_url__free(). */
int push_url__parse(const char *text, struct push_url *ret_url, const char **ret_why);
void push_url__free(struct push_url *url);

/* ── file.c ──────────────────────────────────────────────────────────────────────────────── */

/* Reads a file of at most `max` bytes, and adds a NUL; it is opened as by fd__open_own(). The
 * caller frees the text. Prints a line on failure. */
int push_file__read(const char *path, size_t max, uid_t user, char **ret_text, size_t *ret_len);
/* Combines `stamp` with the file's identity and times of change. path may be NULL. */
uint64_t push_file__stamp(uint64_t stamp, const char *path);

/* ── headers.c ───────────────────────────────────────────────────────────────────────────── */

#define HEADERS_MAX 64

struct push_headers {
	char *text; /* the buffer that the lines point into */
	size_t len; /* of the text, with the NULs that end the lines */
	char *lines[HEADERS_MAX];
	size_t n;
};

/* Reads "Name: value" lines, skipping empty ones and those that begin with #. Prints a line on
 * failure. path NULL: no headers. */
int push_headers__read(const char *path, uid_t user, struct push_headers *ret_headers);
void push_headers__free(struct push_headers *headers);

/* ── files.c ─────────────────────────────────────────────────────────────────────────────── */

/* The files of one destination. */
struct push_files {
	const struct push_to *to;
	struct push_headers headers;
	char *ca;	/* certificates, as text; NULL: there is no such file */
	bool lacking;	/* a file cannot be read, or is wrong; nothing else is set */
	uint64_t stamp; /* push_files__stamp(), before they were read */
};

/* Prints a line on failure; *ret_files is set in any case, and refers to `to`. */
int push_files__read(const struct push_to *to, uid_t user, struct push_files *ret_files);
bool push_files__have_changed(const struct push_files *files);
/* push_file__stamp() of both files. */
uint64_t push_files__stamp(uint64_t stamp, const struct push_to *to);
/* Frees the contents; push_files__have_changed() may still be called. */
void push_files__free(struct push_files *files);

/* ── labels.c ────────────────────────────────────────────────────────────────────────────── */

struct buf;

/* Appends the query of the request to Pyroscope for this process's profile:
 * "name=…&from=…&until=…". */
int push_labels__query(const struct picture *pic, const struct pic_target *target,
		       const struct export_opts *opts, struct buf *ret_query);

/* ── backoff.c ───────────────────────────────────────────────────────────────────────────── */

#define BACKOFF_FIRST_NS 1000000000ULL
#define BACKOFF_MOST_NS	 120000000000ULL
/* The longest pause that a server may ask for. */
#define BACKOFF_ASKED_MOST_NS 3600000000000ULL

/*
 * How long to wait after this many failures in a row (from 1 on): doubles each time, minus a random
 * part of up to a half, so that clients do not all come back at once. At least as long as the
 * server asked for, `asked_s` in seconds, up to BACKOFF_ASKED_MOST_NS.
 */
uint64_t backoff__ns(unsigned failures, uint32_t random, uint64_t asked_s);

/* ── outage.c ────────────────────────────────────────────────────────────────────────────── */

struct outage {
	uint64_t began_ns;    /* of the first failed attempt */
	uint64_t reported_ns; /* when anything was last reported; 0: never */
	bool reported;	      /* the current one has been reported */
	bool changed;	      /* … and again since, with another reason */
	char why[320];	      /* the reason that was reported last */
};

/* True if this failed attempt, the `failed`-th in a row, should be reported: because the outage has
 * not been, or because it goes on for another reason than was reported. */
bool outage__is_news(struct outage *outage, unsigned failed, const char *why, uint64_t now);

/* ── queue.c ─────────────────────────────────────────────────────────────────────────────── */

/*
 * A directory of files, named by the start times of their windows. Each is there whole or not at
 * all. One file may be held while it is being sent, and is not dropped then.
 */
struct queue;

/* Creates the directory if needed (with the errors of dir__open_own()). Prints a line on
 * failure; -EBUSY: another process is using it. */
int queue__open(const char *dir, uint64_t max_bytes, size_t max_files, struct queue **ret_queue);
/* The same for a directory that cannot be opened yet: queue__look() opens it as soon as
 * possible, and until then the queue is empty and accepts nothing. -ENOMEM. */
int queue__open_later(const char *dir, uint64_t max_bytes, size_t max_files,
		      struct queue **ret_queue);
void queue__free(struct queue *queue);
/* Checks that queue__open() could use the directory if no other process did. 0, or an error, for
 * which a line is printed. */
int queue__check(const char *dir);
/* The path for a new file: the n-th of a window, or the next number that is free. -ENOENT: the
 * directory has not been opened yet. */
int queue__path(const struct queue *queue, uint64_t unix_ns, unsigned n, char ret_path[PATH_MAX]);
/*
 * Reads the directory again, or the directory that has taken its name. While there are too many
 * bytes (of disk space) or files, drops some: first those with times in the future, since each new
 * window would be older than they are, then the oldest.
 */
int queue__look(struct queue *queue);
/*
 * Opens and holds the oldest file that can be opened; *ret_again: the same file was held last.
 * -ENOENT: there is none. Entries that are not files, or that we may not read, are removed. A file
 * that cannot be opened for another reason stays, since that may pass, and the next one is taken;
 * it is removed after some attempts, unless no file can be opened, in which case the error is
 * returned. While a file that was let go cannot be removed, none is held, so that it is not sent
 * again; returns the reason.
 */
int queue__hold_first(struct queue *queue, uint64_t now, int *ret_fd, bool *ret_again);
/* The same for the file after the one that was last held as the first. -ENOENT: none can be
 * opened now. */
int queue__hold_second(struct queue *queue, int *ret_fd);
/* Releases the held file, and removes it if `remove`. */
void queue__let_go(struct queue *queue, bool remove);

struct queue_state {
	uint64_t n, bytes, oldest_unix_ns;
	uint64_t dropped; /* number removed: queue full, or they could not be opened */
	uint64_t removed; /* number removed by others, together with the directory */
};
struct queue_state queue__state(const struct queue *queue);
/* True if the name is one of a queue's file. */
bool queue__is_name(const char *name);

/* ── queues.c ────────────────────────────────────────────────────────────────────────────── */

/*
 * The directory of the queue for a destination, whose URL may contain any characters. url "": the
 * directory of all queues, with a trailing slash.
 */
int queues__path(const struct push_opts *opts, const char *url, char ret_path[PATH_MAX]);
/* Logs a line for each queue with waiting requests that no process uses: nobody sends from it. */
void queues__report_left(const struct push_opts *opts);

/* ── post.c: in the sender ───────────────────────────────────────────────────────────────── */

struct sender_opts;
struct sender_answer;

struct post;

/* Keeps connections open between requests. NULL: no memory. */
struct post *post__new(const struct sender_opts *opts);
/* Sends the file, and fills in the answer except for its id. */
void post__file(struct post *post, int fd, struct sender_answer *ret_answer);

/* ── answer.c: in the sender ─────────────────────────────────────────────────────────────── */

struct answer_body {
	bool otlp;	  /* OTLP is expected */
	const char *type; /* media type; NULL: none */
	const uint8_t *data;
	size_t len;
};

/* Interprets the body of an answer whose status is known. */
void answer__read(const struct answer_body *body, struct sender_answer *answer);
/* Keeps as much of `text` as fits, up to its NUL or `len` bytes. */
void answer__keep_text(struct sender_answer *answer, const char *text, size_t len);

/* ── sender.c ────────────────────────────────────────────────────────────────────────────── */

struct confine_peer;

/*
 * The format of a queued file: a line with the query of the request ("" for none), then the body.
 */
#define PUSH_QUERY_MAX 4096

struct sender_opts {
	const char *url;
	const char *content_type, *content_encoding; /* content_encoding NULL: none */
	const struct push_headers *headers;
	const char *ca; /* certificates, as text; NULL: the system's */
	uint32_t timeout_ms;
	bool otlp; /* answers are expected to be OTLP */
};

/* Sent to the sender, with the file's descriptor. */
struct sender_task {
	uint64_t id;
};

enum sender_outcome {
	SENDER_ANSWERED, /* `status` is the HTTP status */
	SENDER_FAILED,	 /* there was no answer: `text` has the reason */
	SENDER_BAD_FILE, /* the file cannot be sent */
	SENDER_DIED, /* while working on the task with that id, 0: on none; it has been restarted */
	SENDER_OUTCOMES
};

/* Received from the sender, which may have been compromised. */
struct sender_answer {
	uint64_t id;
	int64_t rejected;	/* profiles that the server did not accept */
	uint64_t retry_after_s; /* 0: none given */
	uint32_t outcome;	/* enum sender_outcome */
	uint32_t status;
	/* the server's text, or the reason for the failure, also to start again; untrusted */
	char text[256];
};

/* False if `n` bytes from the sender cannot be an answer; otherwise sanitises its text and
 * counts. */
bool sender__check(struct sender_answer *answer, size_t n);

/* The options need to live only until the sender has been forked. */
int sender__start(const struct sender_opts *opts, struct confine_peer **ret_peer);
/* -EAGAIN: not now; other errors are permanent. */
int sender__send(struct confine_peer *peer, const struct sender_task *task, int fd);
/* -EAGAIN: there is none; -EPIPE: the sender has ended. Answers are validated. */
int sender__answer(struct confine_peer *peer, struct sender_answer *ret_answer);

/* ── destination.c ───────────────────────────────────────────────────────────────────────── */

/* One queue with its sender. */
struct destination;

int destination__open(const struct push_to *to, const struct push_opts *opts,
		      struct destination **ret_destination);
/* Checks that its files can be used. 0, or an error, for which a line is printed. */
int destination__check(const struct push_to *to, const struct push_opts *opts);
/* True if files that could not be read at the opening have changed since. */
bool destination__has_other_files(const struct destination *d);
/* True if the sending process has ended. */
bool destination__has_ended(const struct destination *d);
/* queue__check() of its queue. */
int destination__check_queue(const struct push_to *to, const struct push_opts *opts);
void destination__free(struct destination *d);
int destination__put(const struct destination *d, const struct picture *pic,
		     const struct export_opts *opts);
/* Counts a picture that could not be queued as dropped. */
void destination__count_unqueued(struct destination *d);
void destination__look(struct destination *d);
void destination__turn(struct destination *d, uint64_t now);
uint64_t destination__next_due(const struct destination *d);
int destination__fd(const struct destination *d);
/* True if nothing is being sent and nothing is queued, or nothing can be sent any more. */
bool destination__is_idle(const struct destination *d);
void destination__stats(const struct destination *d, struct push_stats *ret_stats);

#endif
