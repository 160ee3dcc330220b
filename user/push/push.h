/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * push: sends pictures to servers that collect profiles. Each request is first written to a queue
 * on disk, one queue per destination; a confined process sends the files, oldest first, and the
 * daemon removes those that have arrived. Nothing here waits for a server.
 *
 * What a server does not accept now stays in the queue for later sessions. When the queue is too
 * large, the oldest files are dropped, and counted.
 */
#ifndef SAFESCOPED_PUSH_H
#define SAFESCOPED_PUSH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "export/export.h"

#define PUSH_MAX_DESTINATIONS 8
#define PUSH_QUEUE_DIR	      "/var/lib/safescoped/push"
#define PUSH_QUEUE_BYTES      (256ULL << 20)
/* The most files in a destination's queue, since all of them are looked at with each window. */
#define PUSH_QUEUE_FILES 65536
#define PUSH_TIMEOUT_NS	 30000000000ULL
/* How long a session that is not a service waits at its end for files still queued. */
#define PUSH_LAST_NS 30000000000ULL

/* One destination, as on the command line. The strings belong to the caller, and must stay. */
struct push_to {
	/* SCHEME+http://HOST[:PORT][/PATH] or …+https://…; SCHEME: otlp, pyroscope */
	const char *url;
	const char *headers; /* a file of header lines; NULL: none */
	const char *ca;	     /* a file of certificates to trust; NULL: the system's */
};

struct push_opts {
	struct push_to to[PUSH_MAX_DESTINATIONS];
	size_t n;
	const char *queue_dir; /* NULL: PUSH_QUEUE_DIR */
	uint64_t queue_bytes;  /* for each destination; 0: PUSH_QUEUE_BYTES */
	uint64_t timeout_ns;   /* for one attempt; 0: PUSH_TIMEOUT_NS */
	/* If a queue cannot be opened at first, try again for each window; if headers or
	 * certificates cannot be read, send nothing: see push__has_other_files(). */
	bool place_may_come;
	uid_t owner; /* whose files are accepted besides root's and our own user's */
};

struct push;

/* Destinations: bit i is the i-th. */
typedef uint32_t push_set;

/* NULL, or what is wrong with the URL. */
const char *push__url_error(const char *url);
/* A printable form of a wrong URL, without anything that could be a credential. */
const char *push__url_shown(const char *url, char *buf, size_t size);
/* True if two valid URLs share a queue. */
bool push__is_same(const char *a, const char *b);
/* Checks that the files of headers and certificates are usable; 0, or an error, for which a line
 * is printed. */
int push__check(const struct push_opts *opts);
/*
 * Checks that the queues can be where they are configured, creating missing directories; another
 * session may be using them. 0, or an error, for which a line is printed.
 */
int push__check_queues(const struct push_opts *opts);
/* A number that changes when one of these files is changed or replaced. */
uint64_t push__stamp(const struct push_opts *opts);
/*
 * Opens the queues, and starts the sending processes, so it must come before there is anything that
 * these should not inherit. Prints a line on failure. -EBUSY: another session uses one of the
 * queues; with place_may_come that is not a failure.
 */
int push__open(const struct push_opts *opts, struct push **ret_push);
/* Files that are still queued stay there. NULL: does nothing. */
void push__free(struct push *push);

/*
 * Puts a picture into all queues. May also be called in a forked child, whose parent then calls
 * push__look() once the child has ended. Prints a line on failure. Each file appears whole or not
 * at all. A destination is added to *queued_for as soon as its queue has the whole picture.
 */
int push__put(const struct push *push, const struct picture *pic, const struct export_opts *opts,
	      _Atomic push_set *queued_for);
/* To be called for each picture that was to be pushed: counts it as dropped by the destinations
 * that it was not queued for. */
void push__count_unqueued(struct push *push, push_set queued_for);
/* To be called when there are new files. */
void push__look(struct push *push);
/* Takes answers, and sends what is due. Never blocks. NULL: does nothing. */
void push__turn(struct push *push, uint64_t now_ns);
/* When push__turn() is due next if nothing becomes readable earlier; 0: nothing is due. */
uint64_t push__next_due(const struct push *push);
/* Readable when an answer comes, for poll(); -1: the sender has ended. */
int push__fd(const struct push *push, size_t i);

/*
 * Continues until the queues are empty, a signal comes by signal_fd (-1: none), or until_ns; then
 * logs what each destination got and did not get.
 */
void push__finish(struct push *push, uint64_t until_ns, int signal_fd);

/* Counts since push__open(). */
struct push_stats {
	char url[256];	    /* scheme, host, port and path */
	uint64_t delivered; /* files accepted */
	uint64_t failures;  /* failed attempts */
	uint64_t refused;   /* files that the server refused for good; they are removed */
	uint64_t rejected;  /* profiles in accepted files that the server did not accept */
	uint64_t dropped;   /* files dropped because they were the oldest in a full queue, or could
			       not be opened, or removed with their directory; and pictures that
			       could not be queued */
	uint64_t queued, queued_bytes;
	uint64_t oldest_unix_ns; /* of the queued files; 0: none */
};
size_t push__count(const struct push *push);
void push__stats(const struct push *push, size_t i, struct push_stats *ret_stats);
/* True if a sending process has ended; its files stay in the queue. push NULL: false. */
bool push__has_ended(const struct push *push);
/* True if a file of headers or certificates that could not be read at the start has changed since.
 * push NULL: false. */
bool push__has_other_files(const struct push *push);
/* True if something that was queued will not arrive. push NULL: false. */
bool push__lost(const struct push *push);
/* True if there are files in the queues. */
bool push__has_more(const struct push *push);

#endif
