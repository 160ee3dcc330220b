/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * syscalls STATUS CALLS FIRST LAST HOW PROGRAM [ARG…]: runs PROGRAM and makes some of its system
 * calls fail, whether they are made by the program, its libraries, or children that it forked.
 *
 *   CALLS        comma-separated names; of these calls FIRST to LAST fail (from 1; 0: none)
 *   HOW          an errno value; or -1: a read or a write does only half of what was requested
 *   STATUS       a file for the number of calls, the first that failed, and children left over
 *
 * Calls made by the program's loader are not counted, nor are those of programs that it starts.
 * Ends as PROGRAM did, by the same signal if there was one.
 *
 * The kernel asks through a seccomp listener, which does not attach to the program: it can be
 * traced, and can trace, as usual.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* How long what the program left may take to end: a killed process needs a moment. */
#define GRACE_MS 1000
/* The most bytes of a read or a write of which half is done. */
#define MAX_HALF 65536

struct run {
	uint64_t first, last, count;
	int how;
	int failed; /* the first system call that failed; -1: none */
	pid_t program;
	uint64_t loader_start, loader_end;
	bool loader_known;
	char exe[PATH_MAX];
	unsigned left; /* children after the program's end */
};

static void die(const char *what)
{
	fprintf(stderr, "syscalls: %s: %s\n", what, strerror(errno));
	exit(125);
}

/* ── the child ── */

static void send_fd(int channel, int fd)
{
	char byte = 0, room[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec data = {&byte, 1};
	struct msghdr m = {.msg_iov = &data,
			   .msg_iovlen = 1,
			   .msg_control = room,
			   .msg_controllen = sizeof(room)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	if (sendmsg(channel, &m, 0) != 1)
		die("sendmsg");
}

static int receive_fd(int channel)
{
	char byte, room[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec data = {&byte, 1};
	struct msghdr m = {.msg_iov = &data,
			   .msg_iovlen = 1,
			   .msg_control = room,
			   .msg_controllen = sizeof(room)};
	struct cmsghdr *c;
	int fd;

	if (recvmsg(channel, &m, MSG_CMSG_CLOEXEC) != 1)
		return -1;
	c = CMSG_FIRSTHDR(&m);
	if (!c || c->cmsg_type != SCM_RIGHTS)
		return -1;
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

static void start_program(int channel, char *calls, char **argv)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	char *rest = calls, *name;
	int fd;

	if (!filter || seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, 0))
		die("seccomp");
	while ((name = strsep(&rest, ",")) != NULL) {
		int nr = seccomp_syscall_resolve_name(name);

		if (nr < 0 || seccomp_rule_add(filter, SCMP_ACT_NOTIFY, nr, 0))
			die(name);
	}
	if (seccomp_load(filter))
		die("seccomp_load");
	/* none of the selected calls may be made here, since nobody is listening yet */
	fd = seccomp_notify_fd(filter);
	send_fd(channel, fd);
	execv(argv[0], argv);
	die(argv[0]);
}

/* ── the parent ── */

/* Finds the loader: the program's first call is made by it. */
static void find_loader(struct run *r)
{
	char path[64], line[PATH_MAX + 128];
	FILE *maps;

	r->loader_known = true;
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)r->program);
	maps = fopen(path, "r");
	while (maps && fgets(line, sizeof(line), maps)) {
		const char *name = strrchr(line, '/');
		char *dash;
		uint64_t start = strtoull(line, &dash, 16);

		if (!name || strncmp(name, "/ld-linux", 9) != 0 || *dash != '-')
			continue;
		if (!r->loader_start)
			r->loader_start = start;
		r->loader_end = strtoull(dash + 1, NULL, 16);
	}
	if (maps)
		fclose(maps);
}

/* Whether the thread runs the program itself, and not something that the program started. */
static bool is_program(const struct run *r, pid_t tid)
{
	char path[64], exe[PATH_MAX];
	ssize_t n;

	if (tid == r->program)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)tid);
	n = readlink(path, exe, sizeof(exe) - 1);
	if (n < 0)
		return false;
	exe[n] = '\0';
	return strcmp(exe, r->exe) == 0;
}

/*
 * Does half of a read or a write for the program. Returns the number of bytes; -1 if that is
 * impossible, as for writes to a memory file, which the kernel does completely or not at all:
 * libseccomp, which writes such files, does not retry.
 */
static int64_t do_half(const struct seccomp_notif *call)
{
	static char data[MAX_HALF];
	size_t size = (size_t)call->data.args[2] / 2;
	struct iovec local = {data, size};
	struct iovec remote = {(void *)(uintptr_t)call->data.args[1],
			       size}; /* NOLINT: its address */
	int nr = call->data.nr, pidfd, fd;
	ssize_t n = -1;

	if (!size || size > sizeof(data))
		return -1;
	pidfd = (int)syscall(SYS_pidfd_open, (pid_t)call->pid, 0);
	fd = (int)syscall(SYS_pidfd_getfd, pidfd, (int)call->data.args[0], 0);
	if (fd < 0) {
		close(pidfd);
		return -1;
	}
	if (nr == SYS_write || nr == SYS_pwrite64) {
		if (fcntl(fd, F_GET_SEALS) < 0 &&
		    process_vm_readv((pid_t)call->pid, &local, 1, &remote, 1, 0) == (ssize_t)size)
			n = nr == SYS_write ? write(fd, data, size)
					    : pwrite(fd, data, size, (off_t)call->data.args[3]);
	} else if (nr == SYS_read || nr == SYS_pread64) {
		/* only what is there is read by halves: a read might block */
		struct pollfd ready = {.fd = fd, .events = POLLIN};

		if (poll(&ready, 1, 0) == 1)
			n = nr == SYS_read ? read(fd, data, size)
					   : pread(fd, data, size, (off_t)call->data.args[3]);
		local.iov_len = remote.iov_len = n > 0 ? (size_t)n : 0;
		if (n > 0)
			process_vm_writev((pid_t)call->pid, &local, 1, &remote, 1, 0);
	}
	close(fd);
	close(pidfd);
	return n;
}

static void answer(struct run *r, int listener, struct seccomp_notif *call,
		   struct seccomp_notif_resp *say)
{
	uint64_t ip = call->data.instruction_pointer;
	bool counts;
	int64_t half;

	if (!r->loader_known)
		find_loader(r);
	counts = (ip < r->loader_start || ip >= r->loader_end) && is_program(r, (pid_t)call->pid);
	memset(say, 0, sizeof(*say));
	say->id = call->id;
	say->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	if (counts && ++r->count >= r->first && r->count <= r->last && r->first) {
		if (r->how == -1) {
			half = do_half(call);
			if (half >= 0) {
				say->flags = 0;
				say->val = half;
			}
		} else {
			say->flags = 0;
			say->error = -r->how;
		}
		if (r->failed < 0 && !say->flags)
			r->failed = call->data.nr;
	}
	/* fails if the process was killed meanwhile */
	seccomp_notify_respond(listener, say);
}

/* Answers until the program has ended, and kills what it left. Returns the program's status. */
static int serve(struct run *r, int listener)
{
	int pidfd = (int)syscall(SYS_pidfd_open, r->program, 0), status = 0;
	struct pollfd fds[] = {{.fd = listener, .events = POLLIN}, {.fd = pidfd, .events = POLLIN}};
	struct seccomp_notif *call;
	struct seccomp_notif_resp *say;

	if (pidfd < 0 || seccomp_notify_alloc(&call, &say))
		die("seccomp_notify_alloc");
	for (;;) {
		if (poll(fds, 2, -1) < 0)
			continue;
		if (fds[0].revents & POLLIN) {
			memset(call, 0, sizeof(*call));
			if (seccomp_notify_receive(listener, call) == 0)
				answer(r, listener, call, say);
		} else if (fds[1].revents) {
			break;
		}
	}
	waitpid(r->program, &status, 0);
	for (int ms = 0; ms < GRACE_MS; ms += 10) {
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		/* a child that waits for an answer goes on without the listener */
		if (poll(fds, 1, 10) == 1 && fds[0].revents & POLLIN) {
			memset(call, 0, sizeof(*call));
			if (seccomp_notify_receive(listener, call) == 0)
				answer(r, listener, call, say);
		} else if (fds[0].revents) {
			/* nobody is left who could ask, but the last ones are still ending */
			poll(NULL, 0, 10);
		}
		if (waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD)
			break;
	}
	seccomp_notify_free(call, say);
	close(pidfd);
	return status;
}

/* They have become children of this process. */
static void end_children(struct run *r)
{
	char path[64], word[32];
	FILE *list;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	list = fopen(path, "r");
	while (list && fscanf(list, "%31s", word) == 1) {
		r->left++;
		kill((pid_t)strtol(word, NULL, 10), SIGKILL);
	}
	if (list)
		fclose(list);
}

static void write_status(const struct run *r, const char *path)
{
	char *name = r->failed >= 0 ? seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, r->failed)
				    : NULL;
	FILE *f = fopen(path, "w");

	if (!f)
		die(path);
	fprintf(f, "%llu %s %u\n", (unsigned long long)r->count, name ? name : "-", r->left);
	if (fclose(f))
		die(path);
	free(name);
}

int main(int argc, char **argv)
{
	struct run r = {.failed = -1};
	int pair[2], listener, status;

	if (argc < 7 || !realpath(argv[6], r.exe)) {
		fprintf(stderr, "syscalls STATUS CALLS FIRST LAST HOW PROGRAM [ARG...]\n");
		return 125;
	}
	r.first = strtoull(argv[3], NULL, 10);
	r.last = strtoull(argv[4], NULL, 10);
	r.how = (int)strtol(argv[5], NULL, 10);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		die("socketpair");
	r.program = fork();
	if (r.program < 0)
		die("fork");
	if (r.program == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		start_program(pair[1], argv[2], argv + 6);
	}
	close(pair[1]);
	listener = receive_fd(pair[0]);
	if (listener < 0)
		die("no listener");
	/* signals for the program reach it by its own pid; here they would end the wrong process */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	status = serve(&r, listener);
	end_children(&r);
	write_status(&r, argv[1]);
	if (WIFSIGNALED(status)) {
		const struct rlimit none = {0, 0};

		setrlimit(RLIMIT_CORE, &none);
		signal(WTERMSIG(status), SIG_DFL);
		raise(WTERMSIG(status));
	}
	return WEXITSTATUS(status);
}
