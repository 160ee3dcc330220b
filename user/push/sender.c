/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sender: the process that sends files, and the daemon's end of its socket. There are two
 * processes: one works, and the other restarts it when something that a server sent makes it crash.
 */
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/pass.h"
#include "confine/confine.h"
#include "push_priv.h"

/* Enough for TLS, HTTP/2, and threads' stacks. */
#define SENDER_MEMORY (512ULL << 20)
/* The limit for a server's count of rejected profiles, so that sums do not overflow. */
#define REJECTED_MOST INT32_MAX
/* When a request counts as hung, beyond its own timeout. */
#define HANGS_S 30
#define PAUSE_S 1
/* A connection takes several descriptors, including those for name resolution. */
#define SENDER_FDS 32
/* Gives way to the profiled programs. */
#define SENDER_NICE 10

/* ── in the sender ───────────────────────────────────────────────────────────────────────── */

/* Receives the next task and its file. False: the daemon has gone. */
static bool take_task(int fd, struct sender_task *ret_task, int *ret_file)
{
	int err;

	do
		err = pass__take(fd, ret_task, sizeof(*ret_task), 0, ret_file);
	while (err == -EAGAIN);
	return !err && *ret_file >= 0;
}

static bool give_answer(int fd, const struct sender_answer *answer)
{
	return write(fd, answer, sizeof(*answer)) == sizeof(*answer);
}

static const char *why_not(int err)
{
	return err == -EBUSY ? "too many processes, or too little memory" : strerror(-err);
}

/* `at_hand`: the id of the current task, 0: none. */
static void work(const struct sender_opts *opts, int in, int out, _Atomic uint64_t *at_hand)
{
	struct post *post = post__new(opts);
	struct sender_answer answer;
	struct sender_task task;
	int file;

	if (!post)
		_exit(1);
	while (take_task(in, &task, &file)) {
		atomic_store(at_hand, task.id);
		alarm(opts->timeout_ms / 1000 + HANGS_S);
		post__file(post, file, &answer);
		alarm(0);
		close(file);
		answer.id = task.id;
		if (!give_answer(out, &answer))
			break;
		atomic_store(at_hand, 0);
	}
}

static void run(void *ctx, int in, int out)
{
	struct sender_answer died = {.outcome = SENDER_DIED};
	_Atomic uint64_t *at_hand = mmap(NULL, sizeof(*at_hand), PROT_READ | PROT_WRITE,
					 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (at_hand == MAP_FAILED)
		return;
	/* keeps threads from getting malloc arenas of their own, each of which reserves 64 MB */
	mallopt(M_ARENA_MAX, 1);
	for (;;) {
		int status = 0, err;
		pid_t pid;

		err = confine__fork(&pid);
		if (!err && pid == 0) {
			work(ctx, in, out, at_hand);
			_exit(0);
		}
		if (!err && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
		    !WEXITSTATUS(status))
			return;
		died.id = atomic_exchange(at_hand, 0);
		answer__keep_text(&died, err ? why_not(err) : "", SIZE_MAX);
		if (!give_answer(out, &died))
			return;
		sleep(PAUSE_S);
	}
}

/* ── the daemon's end ────────────────────────────────────────────────────────────────────── */

int sender__start(const struct sender_opts *opts, struct confine_peer **ret_peer)
{
	const struct confine how = {
		.name = "safescoped:push",
		.memory = SENDER_MEMORY,
		.cpu_s = CONFINE_NO_END,
		.keep = CONFINE_NETWORK | CONFINE_FORK,
		.nice = SENDER_NICE,
		.more_fds = SENDER_FDS,
		.user = CONFINE_NOBODY,
		.reads = confine__names_and_trust,
	};

	return confine_peer__start(&how, run, (void *)opts, ret_peer);
}

int sender__send(struct confine_peer *peer, const struct sender_task *task, int fd)
{
	return confine_peer__send(peer, task, sizeof(*task), fd, MSG_DONTWAIT);
}

bool sender__check(struct sender_answer *answer, size_t n)
{
	if (n != sizeof(*answer) || answer->outcome >= SENDER_OUTCOMES)
		return false;
	answer->text[sizeof(answer->text) - 1] = '\0';
	answer->rejected = MIN(MAX(answer->rejected, (int64_t)0), (int64_t)REJECTED_MOST);
	return true;
}

int sender__answer(struct confine_peer *peer, struct sender_answer *ret_answer)
{
	int err = confine_peer__take(peer, ret_answer, sizeof(*ret_answer));

	if (err)
		return err == -EAGAIN ? err : -EPIPE;
	return sender__check(ret_answer, sizeof(*ret_answer)) ? 0 : -EPIPE;
}
