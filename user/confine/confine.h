/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * confine: the one way to start a process without rights. Whatever parses bytes that somebody else
 * wrote runs in one, so that exploiting a bug in a parser yields a process that can do nothing.
 *
 * The child is forked, so it has a copy of the caller's memory, and needs no message for its input.
 * Before it does anything it
 *   - dies when the daemon does (PR_SET_PDEATHSIG);
 *   - closes every descriptor but those listed: if it hangs in the kernel it holds nothing of ours;
 *   - unmaps every shared writable mapping except its own result: BPF maps, other results; with
 *     `no_files` also those that are read-only;
 *   - has a user and a group of its own, which no other process has, and no other groups;
 *   - has no capabilities, cannot get any (no_new_privs), and cannot be traced (not dumpable);
 *   - sees no file system (Landlock, where the kernel has it);
 *   - may make only the system calls of filter.c (seccomp);
 *   - has limits of memory, CPU time, descriptors, file size, and no core dump.
 * Where the daemon has no rights itself, or its user namespace no other ids, the child keeps its
 * user and groups. If any other of these steps fails, the child does not run.
 *
 * Four forms: a job runs one function and leaves its result in shared memory; a server answers
 * questions for as long as there are any; a pool has one server for each user; a peer works by
 * itself, and either side sends messages at any time. All results were written by a process that
 * may have been taken over: the caller checks them as carefully as the file itself. A job's result
 * is handed over when the child is gone, so that nobody can change it any more.
 *
 * A child in uninterruptible sleep cannot be killed. It is written off and never waited for. The
 * number of such children is limited for each user and in all; beyond that nothing is started
 * (-EBUSY) until some of them have died.
 *
 * For one thread of the program only.
 */
#ifndef SAFESCOPED_CONFINE_H
#define SAFESCOPED_CONFINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Limits of children at a time: all; those that were killed and have not died, of all users; of
 * one. */
#define CONFINE_MAX	      64
#define CONFINE_MAX_LOST      32
#define CONFINE_MAX_LOST_USER 4

#define CONFINE_MAX_FDS 4
#define CONFINE_NO_END	UINT32_MAX

/* The rights that a child keeps, to read other processes. Either of the first two disables
 * Landlock, which would forbid these. */
enum confine_keep {
	CONFINE_MEMORY = 1 << 0, /* CAP_SYS_PTRACE and process_vm_readv() */
	CONFINE_PROC = 1 << 1,	 /* the same, CAP_DAC_READ_SEARCH, and opening files to read them */
	CONFINE_FILES = 1 << 2, /* CAP_DAC_READ_SEARCH, opening files, passing descriptors on: for a
				   child that copies and does not parse. Landlock lets it read. */
	/*
	 * No capability; but IPv4 and IPv6 connections, descriptors that it is given, threads, and
	 * reading `reads`: for a child that sends. It can send all it knows, so start it before
	 * there is anything to know.
	 */
	CONFINE_NETWORK = 1 << 3,
	/*
	 * What a server needs for a listening socket that it was given, and for the connections
	 * accepted from it: accept, receive, send, shut down, options. It cannot create, bind or
	 * connect sockets, and its descriptors are limited to `more_fds`. It can send what is in
	 * its memory to whoever connects, so start it before there is other users' data.
	 */
	CONFINE_LISTEN = 1 << 4,
	/* With CONFINE_PROC: tracing and stopping other processes (PTRACE_SEIZE without options,
	 * PTRACE_INTERRUPT; no other ptrace() request); waiting for them; a timer. */
	CONFINE_TRACE = 1 << 5,
	/* With CONFINE_NETWORK: confine__fork(). For a child that does not itself read what others
	 * wrote. */
	CONFINE_FORK = 1 << 6,
	CONFINE_KEEPS = 1 << 7,
};

/* The user of `struct confine` if it is nobody in particular. */
#define CONFINE_NOBODY ((uid_t)-1)

struct confine {
	const char *name; /* as ps shows it: at most 15 bytes */
	uint64_t memory;  /* bytes beyond what is mapped now; 0: 256 MB */
	/* seconds of CPU time before it is killed; 0: 20; CONFINE_NO_END: unlimited */
	uint32_t cpu_s;
	uint32_t keep;	/* enum confine_keep */
	uid_t user;	/* whose bytes or process these are; CONFINE_NOBODY */
	const int *fds; /* stay open under the same numbers; at most CONFINE_MAX_FDS */
	size_t n_fds;
	/* It reads none of the files that the daemon has mapped, and unmaps them: it may live long,
	 * and while it maps a file, its file system cannot be unmounted. */
	bool no_files;
	int nice;	    /* its nice value: 19 yields to all others */
	uint32_t more_fds;  /* descriptors it may open besides those; for CONFINE_LISTEN,
			       CONFINE_NETWORK */
	uint64_t file_size; /* bytes that it may write to a file; 0: none */
	/* CONFINE_NETWORK: files and directories that it may read, with the permissions of any
	 * user; ends with NULL. Without Landlock it can read all that any user can. */
	const char *const *reads;
};

/* `reads` for children that talk to servers: for name resolution, and the certificates that the
 * system trusts. */
extern const char *const confine__names_and_trust[];

/* ── a job ───────────────────────────────────────────────────────────────────────────────── */

struct confine_job;

/*
 * Starts fn(ctx, out) in a child, which is killed timeout_ms from now. `out` is `size` bytes,
 * zeroed, shared with the child; only pages that are written take memory. fn returns 0 or a
 * negative errno above -4096. -EBUSY: too many children, or no process can be created at the
 * moment; -ENOMEM, -EINVAL.
 */
int confine__start(const struct confine *how, int timeout_ms, int (*fn)(void *ctx, void *out),
		   void *ctx, size_t size, struct confine_job **ret_job);
/* A pidfd for poll(), readable once the child has ended; owned by the job. -1: not supported by the
 * kernel. */
int confine_job__fd(const struct confine_job *job);
/* When it will be killed, CLOCK_MONOTONIC: ask again then at the latest. */
uint64_t confine_job__deadline_ns(const struct confine_job *job);
/* Whether it is over, so that its result can be taken without waiting. */
bool confine_job__is_over(struct confine_job *job);
/*
 * Never waits. -EAGAIN: still running. Otherwise the job is over: fn's result; -ETIMEDOUT if it
 * took too long and was killed; -EIO if it died, could not be confined, or returned -EAGAIN. On 0
 * *ret_out belongs to the caller (confine__free_out()); it is handed over once. The job must be
 * freed in any case.
 */
int confine_job__result(struct confine_job *job, void **ret_out);
/* Kills the child if it is still running. */
void confine_job__free(struct confine_job *job);

void confine__free_out(void *out, size_t size);
/* For checking a result: in memory that a child has written a bool may be any byte. */
bool confine__is_bool(const bool *value);

/* ── a server ────────────────────────────────────────────────────────────────────────────── */

struct confine_server;

/* A child stays idle for this many times the CPU time it has used, so that restarting it costs a
 * percent of a CPU at worst. */
#define CONFINE_IDLE_PER_CPU 100
#define CONFINE_IDLE_MAX_MS  300000

struct confine_service {
	struct confine how;
	/* Called first in the child; may be NULL. A negative result ends the child, and questions
	 * get -EIO. */
	int (*begin)(void *ctx);
	/* Answers one question; returns the length of the answer, at most max_answer. */
	size_t (*answer)(void *ctx, const void *question, size_t len, void *answer);
	size_t max_question, max_answer; /* maximum message sizes in bytes */
	/* A child that gets no question for this long, or for CONFINE_IDLE_PER_CPU times its CPU
	 * time if that is longer, ends; the next question starts another one. 0: never. */
	int idle_ms;
};

/* Starts no child yet. ctx stays the caller's and must outlive the server. -ENOMEM. */
int confine_server__new(const struct confine_service *service, void *ctx,
			struct confine_server **ret_server);
/*
 * 0: *ret_len bytes of answer. -ETIMEDOUT, -EIO: the child has been killed, and the next question
 * starts another one; whether to ask again is up to the caller. -EBUSY as confine__start().
 */
int confine_server__ask(struct confine_server *server, const void *question, size_t len,
			int timeout_ms, void *answer, size_t *ret_len);
/* Ends the child; the next question starts another one. */
void confine_server__stop(struct confine_server *server);
/* The running child's pid; 0: none. */
pid_t confine_server__pid(const struct confine_server *server);
void confine_server__free(struct confine_server *server);

/* ── a peer ──────────────────────────────────────────────────────────────────────────────── */

struct confine_peer;

/*
 * Starts run(ctx, in, out) in a child, which ends when it returns. `in` is a socket, on which it
 * receives messages and descriptors (pass__take()). `out` is a pipe, to which it writes messages of
 * at most PIPE_BUF bytes, each with one write(). The pipe carries no descriptors: receiving or
 * dropping one would mean closing it, which may block on somebody else. -EBUSY as confine__start().
 */
int confine_peer__start(const struct confine *how, void (*run)(void *ctx, int in, int out),
			void *ctx, struct confine_peer **ret_peer);
/* For poll(): readable if a message has arrived, or the child has ended. */
int confine_peer__fd(const struct confine_peer *peer);
/* Like pass__send(), to the child. */
int confine_peer__send(struct confine_peer *peer, const void *msg, size_t size, int fd, int flags);
/*
 * Receives the next message. -EAGAIN: none yet; -EBADMSG: too short; -EPIPE: the child has ended.
 */
int confine_peer__take(struct confine_peer *peer, void *ret_msg, size_t size);
pid_t confine_peer__pid(const struct confine_peer *peer);
/* Kills the child if it is still running. NULL is fine. */
void confine_peer__free(struct confine_peer *peer);
/*
 * In a child with CONFINE_FORK: like fork(), *ret_pid is 0 in the copy. The copy dies with the
 * child, and is confined without CONFINE_FORK.
 */
int confine__fork(pid_t *ret_pid);

/* ── a server for each user ──────────────────────────────────────────────────────────────── */

/*
 * Questions about one user's bytes are answered by a child that has seen no other user's: whoever
 * takes it over cannot change the answers that others get. There are at most this many children;
 * for a further user, the one whose user was not asked about for the longest time is ended.
 */
#define CONFINE_POOL_USERS 8

struct confine_pool;

/* Like confine_server__new(); how.user is set for each child. */
int confine_pool__new(const struct confine_service *service, void *ctx,
		      struct confine_pool **ret_pool);
/*
 * Like confine_server__ask(), about bytes of `user` (CONFINE_NOBODY: not known). He may be waited
 * for as long as in confine__aside(); -ETIMEDOUT also if that is used up. The CPU time of a child
 * that was running already is charged to him, beyond a twentieth of `honest_ns`. In a confined
 * child the question is answered in that child.
 */
int confine_pool__ask(struct confine_pool *pool, uid_t user, const void *question, size_t len,
		      int timeout_ms, uint64_t honest_ns, void *answer, size_t *ret_len);
/*
 * Whether the question asked at `began_ns`, which got `err`, had no time, or no room for a child:
 * that is no answer, and it may be asked again later. False if it was given the full time: asking
 * again would end the same way.
 */
bool confine_pool__had_no_time(int err, uint64_t began_ns, int timeout_ms);
/* Ends its children. */
void confine_pool__free(struct confine_pool *pool);

/* ── how long a user's bytes are waited for ──────────────────────────────────────────────── */

/*
 * Each user's bytes may take CONFINE_USER_NS of waiting, beyond what an honest job takes; a tenth
 * of the time that passes is given back. At most CONFINE_TURN_NS of it may fall into one turn of
 * the daemon's loop, which has others to serve, and a watch that removes the probes if it stalls.
 * Once a user's jobs, honest or not, have taken CONFINE_TURN_ALL_NS of a turn, or those of all
 * users together CONFINE_TURN_SUM_NS, the next job waits for another turn. A user who has used up
 * his time is not waited for. Root's bytes are not an attack: only the limits on a turn's jobs
 * apply to them, so that others get their turn.
 */
#define CONFINE_USER_NS	    3000000000ULL
#define CONFINE_TURN_NS	    1000000000ULL
#define CONFINE_TURN_ALL_NS 1200000000ULL
#define CONFINE_TURN_SUM_NS 1600000000ULL
#define CONFINE_HONEST_NS   100000000ULL

bool confine__may_wait(uid_t user);
/*
 * How much longer than an honest job one of the user's jobs may take now; 0: he is not waited for.
 */
uint64_t confine__patience_ns(uid_t user);
/* Marks the start of a turn of the loop, and the end of the last one. Before the first turn there
 * is no limit per turn. */
void confine__new_turn(void);
void confine__last_turn(void);
/* Charges the user for a wait, except for `honest_ns` of it. */
void confine__waited(uid_t user, uint64_t took_ns, uint64_t honest_ns);

/*
 * Starts a job, waits for it, and frees it. Waits no longer than how->user may be waited for, and
 * not much longer once the daemon has something else to do (confine__hurry_by). `honest_ns`: time
 * that is not charged to the user. -EBUSY: that user has been waited for too long; like -ETIMEDOUT
 * it shows nothing about the bytes. In a confined child, fn runs in that child.
 */
int confine__aside(const struct confine *how, int timeout_ms, uint64_t honest_ns,
		   int (*fn)(void *ctx, void *out), void *ctx, size_t size, void **ret_out);
/*
 * Like confine__aside(), for a job of this user that was started before: waits for its end, no
 * longer than he may be waited for. -EBUSY: it is still running, and may be asked for again.
 * Otherwise it is over, and the caller frees it.
 */
int confine_job__await(struct confine_job *job, uid_t user, uint64_t honest_ns, void **ret_out);
/*
 * Like confine_job__result(), but waits for the child's end, its deadline, or `until_ns`; once
 * something else came up (confine__hurry_by) only a little longer. Never returns -EAGAIN.
 */
int confine__wait(struct confine_job *job, uint64_t until_ns, void **ret_out);
/*
 * Makes such waits end soon after `fd` becomes readable: the daemon is wanted for something else.
 * `is_urgent` may consume what arrived, and return false if there is time for it (NULL: it is
 * always urgent). fd -1: none.
 */
void confine__hurry_by(int fd, bool (*is_urgent)(void *ctx), void *ctx);
/* Makes confine__aside() run its function in this process, for fuzzers, which must be fast. */
void confine__run_inside(void);

/* ── what they cost ──────────────────────────────────────────────────────────────────────── */

/* CPU time in ns so far of running children, and of the running processes they have started. That
 * of those that have ended is in usage__children_cpu_ns(). */
uint64_t confine__running_cpu_ns(void);

/* ── those that do not die ───────────────────────────────────────────────────────────────── */

/* Releases children that have died meanwhile; all of the above call it too. Returns how many were
 * killed and have not died yet. */
size_t confine__reap(void);

#endif
