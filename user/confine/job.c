/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs one function without rights, with a deadline. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "confine_priv.h"

/* Precedes `out`; the size of a cache line keeps that aligned. */
struct head {
	int32_t result;
	int32_t done; /* `result` was returned by fn */
	uint8_t _pad[56];
};

struct confine_job {
	pid_t pid; /* 0: it is over */
	int pidfd;
	int err; /* valid once it is over */
	uint64_t deadline_ns;
	struct head *head; /* NULL: handed over, or not allocated */
	size_t total;
};

static size_t total_of(size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), total = size + sizeof(struct head);

	if (total < size || total > SIZE_MAX - page)
		return 0;
	return (total + page - 1) & ~(page - 1);
}

static struct head *map(size_t total)
{
	void *at = mmap(NULL, total, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

int confine_job__new_out(size_t size, void **ret_out)
{
	struct head *head = total_of(size) ? map(total_of(size)) : NULL;

	*ret_out = head ? head + 1 : NULL;
	return head ? 0 : -ENOMEM;
}

static void unmap(struct confine_job *job)
{
	if (job->head)
		munmap(job->head, job->total);
	job->head = NULL;
}

static void child(const struct confine *how, pid_t parent, int (*fn)(void *ctx, void *out),
		  void *ctx, const struct confine_job *job)
{
	struct confine_memory own = {.start = job->head, .size = job->total};
	int err = confine_child__enter(how, parent, (struct confine_ends){-1, -1}, own);

	if (err) {
		/* the caller gets -EIO; the reason is for debugging */
		job->head->result = err;
		_exit(2);
	}
	job->head->result = fn(ctx, job->head + 1);
	job->head->done = 1;
	_exit(0);
}

int confine__start(const struct confine *how, int timeout_ms, int (*fn)(void *ctx, void *out),
		   void *ctx, size_t size, struct confine_job **ret_job)
{
	const struct sock_fprog *program;
	struct confine_job *job;
	pid_t parent = getpid();
	int err;

	if (!total_of(size) || how->n_fds > CONFINE_MAX_FDS)
		return -EINVAL;
	/* built here once, not in every child */
	err = confine_filter__get(how->keep, &program);
	if (err)
		return err;
	job = calloc(1, sizeof(*job));
	if (!job)
		return -ENOMEM;
	job->pidfd = -1;
	job->total = total_of(size);
	job->head = map(job->total);
	if (!job->head) {
		free(job);
		return -ENOMEM;
	}
	job->deadline_ns = time__monotonic_ns() +
			   (uint64_t)MAX(timeout_ms, 0) * 1000000ULL * machine__slowness();
	err = confine_children__fork(how, &job->pid);
	if (err) {
		confine_job__free(job);
		return err;
	}
	if (job->pid == 0)
		child(how, parent, fn, ctx, job);
	job->pidfd = (int)syscall(SYS_pidfd_open, job->pid, 0);
	*ret_job = job;
	return 0;
}

int confine_job__fd(const struct confine_job *job)
{
	return job->pidfd;
}

uint64_t confine_job__deadline_ns(const struct confine_job *job)
{
	return job->deadline_ns;
}

/* A result of -EAGAIN is invalid: it would mean that the child still runs, for ever. */
static bool is_result(int result)
{
	return result <= 0 && result > -4096 && result != -EAGAIN;
}

static void finish(struct confine_job *job, int status)
{
	const struct head *head = job->head;

	confine_children__gone(job->pid);
	job->pid = 0;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || !head->done)
		job->err = -EIO;
	else
		job->err = is_result(head->result) ? head->result : -EIO;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
		log_verbose("a helper process could not be confined: %s", strerror(-head->result));
}

/* 0: it is over; -EAGAIN: it is not. Does not wait. */
static int look(struct confine_job *job)
{
	int status = 0;
	pid_t got;

	if (!job->pid)
		return 0;
	got = waitpid(job->pid, &status, WNOHANG);
	if (got == job->pid) {
		finish(job, status);
		return 0;
	}
	if (got < 0 && errno != EINTR) {
		confine_children__gone(job->pid);
		job->pid = 0;
		job->err = -EIO;
		return 0;
	}
	if (time__monotonic_ns() < job->deadline_ns)
		return -EAGAIN;
	confine_children__kill(job->pid);
	job->pid = 0;
	job->err = -ETIMEDOUT;
	return 0;
}

bool confine_job__is_over(struct confine_job *job)
{
	return look(job) == 0;
}

int confine_job__result(struct confine_job *job, void **ret_out)
{
	int err = look(job);

	if (err)
		return err;
	if (job->err || !job->head)
		return job->err ? job->err : -EIO;
	*ret_out = job->head + 1;
	job->head = NULL;
	return 0;
}

void confine_job__free(struct confine_job *job)
{
	if (!job)
		return;
	if (job->pid > 0)
		confine_children__kill(job->pid);
	fd__close(&job->pidfd);
	unmap(job);
	free(job);
}

void confine__free_out(void *out, size_t size)
{
	if (out)
		munmap((struct head *)out - 1, total_of(size));
}

bool confine__is_bool(const bool *value)
{
	uint8_t byte;

	memcpy(&byte, value, sizeof(byte));
	return byte <= 1;
}
