/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * confine: the one way to start a process without rights. Whatever parses bytes that somebody else
 * wrote runs in one, so that a mistake in a parser gives its finder a process that can do nothing.
 *
 * The child is forked, so it has the caller's memory as it was, and needs no message for its input.
 * Before it does anything it
 *   - dies when the daemon does (PR_SET_PDEATHSIG);
 *   - closes every descriptor but those listed: one that hangs in the kernel holds nothing of ours;
 *   - unmaps every mapping that is shared and writable, but its own result: BPF maps, other
 *     results; with `no_files` those that can only be read, too;
 *   - has a user and a group of its own, which no other process has, and no other groups;
 *   - has no capabilities, cannot get any (no_new_privs), and cannot be traced (not dumpable);
 *   - sees no file system (Landlock, where the kernel has it);
 *   - may make only the system calls of filter.c (seccomp);
 *   - has limits of memory, CPU time, descriptors, file size, and no core dump.
 * Where the daemon has no rights itself, or its user namespace no other ids, its user and groups
 * stay what they are. If any of this fails otherwise, the child does not run.
 *
 * Three forms: a job runs one function and leaves its result in shared memory; a server answers
 * questions for as long as there are some; a peer works by itself, and both send messages when they
 * like. What comes back was written by a process that may have been taken over: the caller checks
 * it as it would check the file itself. A job's result is handed over when the child is gone, so
 * that nobody changes it any more.
 *
 * A child in uninterruptible sleep cannot be killed. It is written off and never waited for; there
 * may be so many of these for each user and in all, and then nothing is started any more (-EBUSY)
 * until some of them have died.
 *
 * For one thread of the program only.
 */
#ifndef SAFESCOPED_CONFINE_H
#define SAFESCOPED_CONFINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Children at a time: all, and those that were killed and have not died, of one user and of all. */
#define CONFINE_MAX	      64
#define CONFINE_MAX_LOST      32
#define CONFINE_MAX_LOST_USER 4

#define CONFINE_MAX_FDS 4
#define CONFINE_NO_END	UINT32_MAX

/* What it keeps, for those that read other processes. Either of the first two means no Landlock,
 * which would forbid it too. */
enum confine_keep {
	CONFINE_MEMORY = 1 << 0, /* CAP_SYS_PTRACE and process_vm_readv() */
	CONFINE_PROC = 1 << 1,	 /* the same, CAP_DAC_READ_SEARCH, and opening files to read them */
	CONFINE_FILES = 1 << 2,	 /* CAP_DAC_READ_SEARCH, opening files, handing descriptors over:
				    for what copies and does not parse. Landlock lets it read. */
	CONFINE_NETWORK = 1 << 3, /* no capability; but connections by IPv4 and IPv6, descriptors
				     that it is handed, threads, and reading `reads`: for what
				     sends. It can send what it knows: it is started before there
				     is anything to know. */
	/*
	 * What a server needs of a listening socket that it was given, and of the connections that
	 * it takes from there: accept, receive, send, shut down, options. It makes no socket, binds
	 * and connects none, and its descriptors are limited to `more_fds`. It can send what it has
	 * in memory to whoever connects: it is to be started before there is anything of others.
	 */
	CONFINE_LISTEN = 1 << 4,
	/* With CONFINE_PROC: tracing other processes and stopping them (PTRACE_SEIZE without
	 * options, PTRACE_INTERRUPT), and nothing else that ptrace() does; waiting for them; a
	 * timer. */
	CONFINE_TRACE = 1 << 5,
	/* With CONFINE_NETWORK: confine__fork(). For what reads nothing itself that others wrote.
	 */
	CONFINE_FORK = 1 << 6,
	CONFINE_KEEPS = 1 << 7,
};

/* The user of `struct confine` when it is nobody in particular. */
#define CONFINE_NOBODY ((uid_t)-1)

struct confine {
	const char *name; /* as ps shows it: at most 15 bytes */
	uint64_t memory;  /* bytes beyond what is mapped now; 0: 256 MB */
	/* seconds of CPU time, then it is killed; 0: 20; CONFINE_NO_END: never */
	uint32_t cpu_s;
	uint32_t keep;	/* enum confine_keep */
	uid_t user;	/* whose bytes or process these are; CONFINE_NOBODY */
	const int *fds; /* stay open, under the same numbers; at most CONFINE_MAX_FDS */
	size_t n_fds;
	/* It reads none of the files that the daemon has mapped, and unmaps them: it may live for
	 * long, and as long as it has one mapped its file system cannot be unmounted. */
	bool no_files;
	int nice;	   /* of its processor time: 19 gives way to all others */
	uint32_t more_fds; /* that it may have open beside those; CONFINE_LISTEN, CONFINE_NETWORK */
	uint64_t file_size; /* how much it may write to a descriptor; 0: nothing */
	/* CONFINE_NETWORK: files and folders that it reads as anybody may; NULL ends the list. A
	 * kernel without Landlock lets it read what anybody may. */
	const char *const *reads;
};

/* `reads` of whoever speaks to servers: what names are resolved by, and whom the system trusts. */
extern const char *const confine__names_and_trust[];

/* ── a job ───────────────────────────────────────────────────────────────────────────────── */

struct confine_job;

/*
 * Starts fn(ctx, out) in a child, which is killed timeout_ms from now. `out` is size bytes, zeroed,
 * shared with the child; only pages that it writes take memory. fn returns 0 or a negative errno
 * above -4096. -EBUSY: there are too many children, or there can be no other process now; -ENOMEM,
 * -EINVAL.
 */
int confine__start(const struct confine *how, int timeout_ms, int (*fn)(void *ctx, void *out),
		   void *ctx, size_t size, struct confine_job **ret_job);
/* Readable once the child has ended, for poll(): a pidfd. The job's. -1: the kernel has none. */
int confine_job__fd(const struct confine_job *job);
/* When it is killed, in CLOCK_MONOTONIC: to be asked again then at the latest. */
uint64_t confine_job__deadline_ns(const struct confine_job *job);
/* Whether it is over, so that its result can be taken without waiting. */
bool confine_job__is_over(struct confine_job *job);
/*
 * Never waits. -EAGAIN: it still runs. Else the job is over: fn's result; -ETIMEDOUT when it took
 * too long, and was killed; -EIO when it died, could not be confined, or has -EAGAIN as its result.
 * On 0 *ret_out is the caller's (confine__free_out), once. The job is to be freed in any case.
 */
int confine_job__result(struct confine_job *job, void **ret_out);
/* Kills the child if it still runs. */
void confine_job__free(struct confine_job *job);

void confine__free_out(void *out, size_t size);

/* ── a server ────────────────────────────────────────────────────────────────────────────── */

struct confine_server;

/* What to start again cost CPU time: at worst so often that it is a percent of a CPU. */
#define CONFINE_IDLE_PER_CPU 100
#define CONFINE_IDLE_MAX_MS  300000

struct confine_service {
	struct confine how;
	/* Called first, in the child. Below 0: the child ends, and questions give -EIO. NULL. */
	int (*begin)(void *ctx);
	/* Answers one question; returns the length of the answer, at most max_answer. */
	size_t (*answer)(void *ctx, const void *question, size_t len, void *answer);
	size_t max_question, max_answer; /* bytes of a message */
	/* A child that is not asked anything for this long ends, or for CONFINE_IDLE_PER_CPU times
	 * its CPU time if that is longer; the next question starts another one. 0: never. */
	int idle_ms;
};

/* Starts nothing yet. service and ctx are the caller's and stay. -ENOMEM */
int confine_server__new(const struct confine_service *service, void *ctx,
			struct confine_server **ret_server);
/*
 * 0: *ret_len bytes of answer. -ETIMEDOUT, -EIO: the child has been killed, and the next question
 * starts another one; it is the caller's to decide whether there is one. -EBUSY as confine__start.
 */
int confine_server__ask(struct confine_server *server, const void *question, size_t len,
			int timeout_ms, void *answer, size_t *ret_len);
/* Ends the child; the next question starts another one. */
void confine_server__stop(struct confine_server *server);
/* The running child; 0: none. */
pid_t confine_server__pid(const struct confine_server *server);
void confine_server__free(struct confine_server *server);

/* ── a peer ──────────────────────────────────────────────────────────────────────────────── */

struct confine_peer;

/*
 * Starts run(ctx, in, out) in a child, which ends when it returns. From `in`, a socket, it takes
 * what is sent to it, with descriptors (pass__take). To `out`, a pipe, it writes messages of at
 * most PIPE_BUF bytes, each by one write(). No descriptor comes that way: to take one, or to lose
 * it, is to close it, and that may wait for somebody else. -EBUSY as confine__start.
 */
int confine_peer__start(const struct confine *how, void (*run)(void *ctx, int in, int out),
			void *ctx, struct confine_peer **ret_peer);
/* For poll(): a message has come, or the child has ended. */
int confine_peer__fd(const struct confine_peer *peer);
/* As pass__send(), to the child. */
int confine_peer__send(struct confine_peer *peer, const void *msg, size_t size, int fd, int flags);
/* The next message. -EAGAIN: none yet; -EBADMSG: it is shorter; -EPIPE: the child has ended. */
int confine_peer__take(struct confine_peer *peer, void *ret_msg, size_t size);
pid_t confine_peer__pid(const struct confine_peer *peer);
/* Kills the child if it still runs. NULL is fine. */
void confine_peer__free(struct confine_peer *peer);
/*
 * In a child with CONFINE_FORK: as fork(), *ret_pid is 0 in the copy. That dies with the child, and
 * is confined without CONFINE_FORK.
 */
int confine__fork(pid_t *ret_pid);

/* ── a server for each user ──────────────────────────────────────────────────────────────── */

/*
 * Questions about one user's bytes are answered by a child that has seen no other user's: whoever
 * takes it over changes nothing that others are answered. There are at most this many at a time; of
 * more users, who was not asked about for the longest time has his child ended.
 */
#define CONFINE_POOL_USERS 8

struct confine_pool;

/* As confine_server__new(); how.user is each child's own. */
int confine_pool__new(const struct confine_service *service, void *ctx,
		      struct confine_pool **ret_pool);
/*
 * As confine_server__ask(), about bytes of `user`'s (CONFINE_NOBODY: not known), who may be waited
 * for as long as in confine__aside(): -ETIMEDOUT also when he has been. What the child works counts
 * beyond a twentieth of `honest_ns`, once it runs. In a confined child it is answered there.
 */
int confine_pool__ask(struct confine_pool *pool, uid_t user, const void *question, size_t len,
		      int timeout_ms, uint64_t honest_ns, void *answer, size_t *ret_len);
/*
 * Whether the question that was asked at `began_ns` and got `err` had no time, or no room for a
 * child, which is no answer to it: it may be asked again later. False where it was waited for as
 * long as for any: that would be so again.
 */
bool confine_pool__had_no_time(int err, uint64_t began_ns, int timeout_ms);
/* Ends its children. */
void confine_pool__free(struct confine_pool *pool);

/* ── how long a user's bytes are waited for ──────────────────────────────────────────────── */

/*
 * Each user's bytes may take CONFINE_USER_NS of waiting, not counting what an honest job takes;
 * a tenth of the time that passes is given back. No more than CONFINE_TURN_NS of it may be in one
 * turn of the daemon's loop, which has others to serve, and a watch that takes the probes off when
 * it stands still; and once jobs of his, honest or not, have taken CONFINE_TURN_ALL_NS of a turn,
 * the next one waits for another turn; so it is when those of all users together have taken
 * CONFINE_TURN_SUM_NS. Who has used it up is not waited for. Root's are nobody's attack: of these
 * limits only those for a turn's jobs hold for them, so that others get their turn.
 */
#define CONFINE_USER_NS	    3000000000ULL
#define CONFINE_TURN_NS	    1000000000ULL
#define CONFINE_TURN_ALL_NS 1200000000ULL
#define CONFINE_TURN_SUM_NS 1600000000ULL
#define CONFINE_HONEST_NS   100000000ULL

bool confine__may_wait(uid_t user);
/* How much longer than an honest job one of his may take now; 0: he is not waited for. */
uint64_t confine__patience_ns(uid_t user);
/* The loop turns; it turns no more. Before the first turn there is no limit for one. */
void confine__new_turn(void);
void confine__last_turn(void);
/* He was waited for. `honest_ns` of it are not counted. */
void confine__waited(uid_t user, uint64_t took_ns, uint64_t honest_ns);

/*
 * Starts a job, waits for it, and frees it; waits no longer than how->user may be waited for, and
 * than the daemon has nothing else to do. `honest_ns`: what does not count against the user.
 * -EBUSY: that user has been waited for too long; like -ETIMEDOUT it shows nothing of the bytes. In
 * a confined child, fn runs there.
 */
int confine__aside(const struct confine *how, int timeout_ms, uint64_t honest_ns,
		   int (*fn)(void *ctx, void *out), void *ctx, size_t size, void **ret_out);
/*
 * As confine__aside(), for a job of that user's that was started before: waits for its end, no
 * longer than he may be waited for. -EBUSY: it goes on, and may be asked for again. Otherwise it is
 * over, and is to be freed.
 */
int confine_job__await(struct confine_job *job, uid_t user, uint64_t honest_ns, void **ret_out);
/*
 * As confine_job__result(), but waits: for the child's end, its deadline, or `until_ns`; a little
 * longer at most once something else came up (confine__hurry_by). Never -EAGAIN.
 */
int confine__wait(struct confine_job *job, uint64_t until_ns, void **ret_out);
/*
 * From now on such a wait ends soon after `fd` becomes readable: the daemon is asked to do
 * something else. `is_urgent` may take what came, and say that there is time for it (NULL: there
 * never is). fd -1: no descriptor.
 */
void confine__hurry_by(int fd, bool (*is_urgent)(void *ctx), void *ctx);
/* confine__aside() runs its function in this process: for fuzzers, which have no time for others.
 */
void confine__run_inside(void);

/* ── what they cost ──────────────────────────────────────────────────────────────────────── */

/* CPU time so far of the children that run, in ns, and of what these have started and runs. That of
 * those which have ended is in usage__children_cpu_ns(). */
uint64_t confine__running_cpu_ns(void);

/* ── those that do not die ───────────────────────────────────────────────────────────────── */

/* Releases children that have died since; called by all of the above too. Returns how many were
 * killed and have not died yet. */
size_t confine__reap(void);

#endif
