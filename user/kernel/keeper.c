/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The daemon's side of the keeper. */
#include "keeper_priv.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/pass.h"

/* The keeper takes messages at once unless it is busy with a drop, and each drop takes 100 ms. */
#define SEND_MS	  1000
#define ANSWER_MS 500
#define END_MS	  2000
/* The keeper's own descriptors, and those that it has yet to close. */
#define SPARE_FDS 64

struct keeper {
	pid_t pid;
	int socket, pidfd;
	struct keeper_page *page;
	uint64_t numbers;
	uint32_t used[KEEPER_MAX / 32]; /* bitmap of ids */
	uint32_t n_used, max_used, next_id;
};

int keeper__new(struct keeper **ret_keeper)
{
	struct keeper *k = calloc(1, sizeof(*k));
	struct rlimit limit = {.rlim_max = 1024};
	int sockets[2] = {-1, -1}, daemon = -1, err = 0;
	void *page;

	if (!k)
		return -ENOMEM;
	k->socket = k->pidfd = -1;
	page = mmap(NULL, sizeof(*k->page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		    0);
	if (page == MAP_FAILED) {
		free(k);
		return -ENOMEM;
	}
	k->page = page;
	getrlimit(RLIMIT_NOFILE, &limit);
	k->max_used =
		(uint32_t)MAX(MIN(limit.rlim_max, (rlim_t)KEEPER_MAX), 2 * (rlim_t)SPARE_FDS) -
		SPARE_FDS;
	/* packets: a message comes whole or not at all */
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets)) {
		err = -errno;
		goto fail;
	}
	k->socket = sockets[0];
	daemon = (int)syscall(SYS_pidfd_open, getpid(), 0);
	k->pid = fork();
	if (k->pid < 0) {
		err = -errno;
		k->pid = 0;
		goto fail;
	}
	if (k->pid == 0)
		keeper_child__run(sockets[1], daemon, k->page);
	fd__close(&sockets[1]);
	fd__close(&daemon);
	k->pidfd = (int)syscall(SYS_pidfd_open, k->pid, 0);
	/* other children do not need the page */
	madvise(page, sizeof(*k->page), MADV_DONTFORK);
	*ret_keeper = k;
	return 0;
fail:
	fd__close(&sockets[1]);
	fd__close(&daemon);
	keeper__free(k);
	return err;
}

void keeper__release(struct keeper *k)
{
	fd__close(&k->socket);
}

bool keeper__ended(struct keeper *k, uint64_t wait_ms)
{
	uint64_t until = time__monotonic_ns() + wait_ms * 1000000ULL;
	struct timespec ms = {.tv_nsec = 1000000};

	while (k->pid) {
		struct pollfd p = {.fd = k->pidfd, .events = POLLIN};

		if (waitpid(k->pid, NULL, WNOHANG) != 0)
			k->pid = 0;
		else if (time__monotonic_ns() >= until)
			return false;
		else if (k->pidfd >= 0)
			poll(&p, 1, 100);
		else
			nanosleep(&ms, NULL);
	}
	return true;
}

void keeper__free(struct keeper *k)
{
	if (!k)
		return;
	keeper__release(k);
	keeper__ended(k, END_MS);
	fd__close(&k->pidfd);
	munmap(k->page, sizeof(*k->page));
	free(k);
}

/* ── messages ────────────────────────────────────────────────────────────────────────────── */

static int send_msg(struct keeper *k, const struct keeper_msg *msg, int fd)
{
	uint64_t until = time__monotonic_ns() + SEND_MS * 1000000ULL;
	int err;

	if (k->socket < 0)
		return -EPIPE;
	while ((err = pass__send(k->socket, msg, sizeof(*msg), fd, MSG_DONTWAIT)) != 0) {
		struct pollfd p = {.fd = k->socket, .events = POLLOUT};

		if (err != -EINTR && err != -EAGAIN)
			return err;
		if (time__monotonic_ns() >= until)
			return -ETIMEDOUT;
		poll(&p, 1, 10);
	}
	return 0;
}

static uint32_t new_id(struct keeper *k)
{
	if (k->n_used >= k->max_used)
		return 0;
	for (;;) {
		/* 0 is not a valid link id */
		k->next_id = k->next_id + 1 < KEEPER_MAX ? k->next_id + 1 : 1;
		if (!(k->used[k->next_id / 32] & 1U << k->next_id % 32))
			break;
	}
	k->used[k->next_id / 32] |= 1U << k->next_id % 32;
	k->n_used++;
	return k->next_id;
}

static void free_id(struct keeper *k, uint32_t id)
{
	k->used[id / 32] &= ~(1U << id % 32);
	k->n_used--;
}

int keeper__hold(struct keeper *k, enum keep_kind kind, int fd, uint32_t *ret_id)
{
	struct keeper_msg msg = {.what = KEEPER_HOLD, .kind = kind, .id = new_id(k)};
	int err = msg.id ? send_msg(k, &msg, fd) : -EMFILE;

	close(fd);
	if (err && msg.id)
		free_id(k, msg.id);
	if (!err)
		*ret_id = msg.id;
	return err;
}

void keeper__drop(struct keeper *k, uint32_t id, uint64_t *ret_number)
{
	struct keeper_msg msg = {.what = ret_number ? KEEPER_DROP : KEEPER_DROP_LATER, .id = id};
	int err;

	if (!id)
		return;
	if (ret_number)
		*ret_number = msg.number = ++k->numbers;
	err = send_msg(k, &msg, -1);
	if (err)
		/* either the keeper has ended and all its links are gone, or it hangs and is
		 * killed with all of them */
		keeper__release(k);
	free_id(k, id);
}

void keeper__discard(struct keeper *k, int fd)
{
	uint32_t id;

	if (keeper__hold(k, KEEP_PROBE, fd, &id) == 0)
		keeper__drop(k, id, NULL);
}

bool keeper__is_done(const struct keeper *k, uint64_t number)
{
	return atomic_load(&k->page->done) >= number;
}

bool keeper__await(const struct keeper *k, uint64_t number)
{
	uint64_t until = time__monotonic_ns() + ANSWER_MS * 1000000ULL;
	struct timespec wait = {.tv_nsec = 100000};

	while (!keeper__is_done(k, number)) {
		if (k->socket < 0 || time__monotonic_ns() >= until)
			return false;
		nanosleep(&wait, NULL);
	}
	return true;
}

int keeper__account(struct keeper *k, bool on, uint64_t *ret_number)
{
	struct keeper_msg msg = {.what = on ? KEEPER_ACCOUNT : KEEPER_NO_ACCOUNT,
				 .number = k->numbers + 1};
	int err = send_msg(k, &msg, -1);

	if (err)
		return err;
	*ret_number = ++k->numbers;
	return 0;
}

bool keeper__accounts(const struct keeper *k)
{
	return atomic_load(&k->page->account) != 0;
}

int keeper__open_event(struct keeper *k, int what, int cpu, uint64_t period_ns)
{
	struct keeper_msg msg = {.what = KEEPER_OPEN_EVENT,
				 .kind = (uint32_t)what,
				 .cpu = cpu,
				 .period_ns = period_ns};
	struct keeper_event event = {0};
	struct pollfd p = {.events = POLLIN};
	int sockets[2], fd = -1, err;

	/* a socket per request: an answer that comes too late reaches nobody */
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets))
		return -errno;
	err = send_msg(k, &msg, sockets[1]);
	close(sockets[1]);
	p.fd = sockets[0];
	if (!err && poll(&p, 1, ANSWER_MS) <= 0)
		err = -ETIMEDOUT;
	if (!err)
		err = pass__take(sockets[0], &event, sizeof(event), MSG_DONTWAIT, &fd);
	close(sockets[0]);
	if (!err)
		err = event.err < 0 ? event.err : fd < 0 ? -EPROTO : 0;
	if (err && fd >= 0)
		close(fd);
	return err ? err : fd;
}

/* ── the watch ───────────────────────────────────────────────────────────────────────────── */

void keeper__beat(struct keeper *k)
{
	atomic_fetch_add(&k->page->beats, 1);
}

uint64_t keeper__times_taken(const struct keeper *k)
{
	return atomic_load(&k->page->taken);
}

bool keeper__works(struct keeper *k)
{
	struct pollfd p = {.fd = k->socket};

	return k->socket >= 0 && !atomic_load(&k->page->all_off) &&
	       (poll(&p, 1, 0) <= 0 || !(p.revents & (POLLHUP | POLLERR)));
}

int keeper__fd(const struct keeper *k)
{
	return k->socket;
}
