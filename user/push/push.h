/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * push: sends pictures to profilers that collect them. What is to be sent is a file in a queue
 * first, one queue for each destination; a confined process sends the files, oldest first, and the
 * daemon removes those that have arrived. Nothing here waits for a server.
 *
 * What a server does not take now stays in the queue, which later sessions go on with; when there
 * is too much of it the oldest go, and are counted.
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
/* Files of one destination's queue: all are looked at with each window. */
#define PUSH_QUEUE_FILES 65536
#define PUSH_TIMEOUT_NS	 30000000000ULL
/* How long the end of what is no service waits for what is still queued. */
#define PUSH_LAST_NS 30000000000ULL

/* One destination, as the command line has it. The strings are the caller's and stay. */
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
	uint64_t queue_bytes;  /* of each destination; 0: PUSH_QUEUE_BYTES */
	uint64_t timeout_ns;   /* of one attempt; 0: PUSH_TIMEOUT_NS */
	/* A queue that cannot be opened at first is tried again for each window. */
	bool place_may_come;
	uid_t owner; /* whose files are taken besides root's and our own user's */
};

struct push;

/* NULL, or what is wrong with such a URL. */
const char *push__url_error(const char *url);
/* What may be printed of a URL that is wrong: nothing that could be a credential. */
const char *push__url_shown(const char *url, char *buf, size_t size);
/* Whether two URLs without errors are pushed to from the same queue. */
bool push__is_same(const char *a, const char *b);
/* Whether the files of headers and certificates can be used. Prints a line if not. */
int push__check(const struct push_opts *opts);
/*
 * Whether queues can be where they are to be: what is missing of their directories is made. Another
 * session may have them. Prints a line if not.
 */
int push__check_queues(const struct push_opts *opts);
/* Another number when one of these files has been changed or replaced. */
uint64_t push__stamp(const struct push_opts *opts);
/*
 * Opens the queues, and starts the processes that send: before there is anything that they should
 * not know. Prints a line on failure. -EBUSY: another session has one of the queues, which
 * place_may_come then makes no failure.
 */
int push__open(const struct push_opts *opts, struct push **ret_push);
/* What is still in the queues stays there. NULL is fine. */
void push__free(struct push *push);

/*
 * Puts a picture into all queues; in a child that is forked, too, whose parent calls push__look()
 * when it has ended. Prints a line on failure; each file is there whole or not at all.
 */
int push__put(const struct push *push, const struct picture *pic, const struct export_opts *opts);
/* There are new files. */
void push__look(struct push *push);
/* Takes answers, and sends what is due. Never blocks. NULL is fine. */
void push__turn(struct push *push, uint64_t now_ns);
/* When the next of these is due, if nothing becomes readable before; 0: nothing is. */
uint64_t push__next_due(const struct push *push);
/* What becomes readable when an answer comes, for poll(); -1: nothing does. */
int push__fd(const struct push *push, size_t i);

/*
 * Goes on until the queues are empty, a signal comes by signal_fd (-1: none does), or this time;
 * then prints what each destination got and did not get.
 */
void push__finish(struct push *push, uint64_t until_ns, int signal_fd);

/* What became of it all since push__open(). */
struct push_stats {
	char url[256];	    /* scheme, host, port and path */
	uint64_t delivered; /* files that arrived */
	uint64_t failures;  /* attempts that did not succeed */
	uint64_t refused;   /* files that the server will never take: they are gone */
	uint64_t rejected;  /* profiles in delivered files that it did not take */
	uint64_t dropped; /* files that were too old when there was no room, or not to be opened */
	uint64_t queued, queued_bytes;
	uint64_t oldest_unix_ns; /* of those; 0: none */
};
size_t push__count(const struct push *push);
void push__stats(const struct push *push, size_t i, struct push_stats *ret_stats);
/* A process that sends has; what it was to send stays in its queue. NULL: nothing is pushed. */
bool push__has_ended(const struct push *push);
/* Something that was in a queue will not arrive. NULL is fine, and loses nothing. */
bool push__lost(const struct push *push);
/* There are files in the queues. */
bool push__has_more(const struct push *push);

#endif
