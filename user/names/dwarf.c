/* SPDX-License-Identifier: GPL-2.0-or-later */
/* dwarf: the helper process that reads a file's DWARF, and how it is asked. */
#include "names/dwarf_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/close_range.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "elf/elf.h"

#define HELPER_MEMORY (2ULL << 30) /* beyond what the daemon has mapped */
#define HELPER_CPU_S  20

struct answer {
	int32_t err;
	uint32_t _pad;
	struct dwarf_place place;
};

struct dwarf {
	const struct elf_file *elf;
	pid_t child; /* 0: not started */
	int fd;
	uint64_t waited_ns;
	int err; /* it gives no answers any more */
};

bool dwarf__is_in(const struct elf_file *elf)
{
	struct elf_section info, line;

	return elf && (elf__section(elf, ".debug_info", &info) == 0 ||
		       elf__section(elf, ".zdebug_info", &line) == 0);
}

int dwarf__new(const struct elf_file *elf, struct dwarf **ret_dwarf)
{
	struct dwarf *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->elf = elf;
	d->fd = -1;
	*ret_dwarf = d;
	return 0;
}

static void stop(struct dwarf *d)
{
	if (d->child > 0) {
		kill(d->child, SIGKILL);
		/* it has no call in which it could not be killed */
		while (waitpid(d->child, NULL, 0) < 0 && errno == EINTR)
			;
	}
	d->child = 0;
	fd__close(&d->fd);
}

void dwarf__free(struct dwarf *d)
{
	if (!d)
		return;
	stop(d);
	free(d);
}

/* ── the helper ──────────────────────────────────────────────────────────────────────────── */

#define ALLOW(nr)                                                                                  \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 1),                                           \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* Only memory and the socket; any other call fails: libdw asks for its file's path, for one. */
static int confine(void)
{
#if defined(__SANITIZE_ADDRESS__)
	/* a sanitizer's report needs more calls than these */
	return 0;
#else
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(SYS_read),
		ALLOW(SYS_write),
		ALLOW(SYS_mmap),
		ALLOW(SYS_munmap),
		ALLOW(SYS_mremap),
		ALLOW(SYS_mprotect),
		ALLOW(SYS_madvise),
		ALLOW(SYS_brk),
		ALLOW(SYS_futex),
		ALLOW(SYS_rt_sigreturn),
		ALLOW(SYS_exit_group),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	};
	struct sock_fprog program = {.len = ARRAY_SIZE(code), .filter = code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return -errno;
	return 0;
#endif
}

static uint64_t address_space(void)
{
	struct rlimit limit;
	unsigned long pages = 0;
	char text[64] = "";
	ssize_t n;
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
		if (n > 0)
			pages = strtoul(text, NULL, 10);
	}
	if (getrlimit(RLIMIT_AS, &limit))
		limit.rlim_max = RLIM_INFINITY;
	return MIN((uint64_t)limit.rlim_max, pages * 4096ULL + HELPER_MEMORY);
}

/* Keeps nothing of the daemon's open: links would outlive it, and there is no use for them. */
static int drop_all(int *fd)
{
	const struct rlimit no_core = {0, 0},
			    cpu = {.rlim_cur = HELPER_CPU_S, .rlim_max = HELPER_CPU_S};
	struct rlimit memory;

	memory.rlim_cur = memory.rlim_max = address_space();
	if (dup2(*fd, 3) < 0)
		return -errno;
	*fd = 3;
	if (syscall(SYS_close_range, 4, ~0U, 0)) {
		long max = sysconf(_SC_OPEN_MAX);

		for (int i = 4; i < max; i++)
			close(i);
	}
	setrlimit(RLIMIT_CORE, &no_core);
	setrlimit(RLIMIT_CPU, &cpu);
#if !defined(__SANITIZE_ADDRESS__)
	setrlimit(RLIMIT_AS, &memory);
#endif
	return confine();
}

static void helper(const struct dwarf *d, int fd)
{
	struct dwarf_reader *reader = NULL;
	struct answer answer;
	uint64_t vaddr;
	size_t size;
	void *data;
	int err;

	/* the file is mapped anew, by its descriptor */
	err = elf__writable(d->elf, &data, &size);
	if (drop_all(&fd))
		_exit(1);
	if (!err)
		err = dwarf_reader__new(data, size, &reader);
	while (read(fd, &vaddr, sizeof(vaddr)) == (ssize_t)sizeof(vaddr)) {
		memset(&answer, 0, sizeof(answer));
		answer.err = err ? err : dwarf_reader__find(reader, vaddr, &answer.place);
		if (write(fd, &answer, sizeof(answer)) != (ssize_t)sizeof(answer))
			break;
	}
	_exit(0);
}

static int start(struct dwarf *d)
{
	struct sigaction dfl = {.sa_handler = SIG_DFL};
	pid_t parent = getpid();
	int fds[2], err;

	/* packets: an answer comes whole or not at all */
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return -errno;
	d->child = fork();
	if (d->child < 0) {
		err = -errno;
		close(fds[0]);
		close(fds[1]);
		d->child = 0;
		return err;
	}
	if (d->child == 0) {
		sigset_t none;

		sigaction(SIGINT, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
		sigaction(SIGTERM, &dfl, NULL);
		sigaction(SIGPIPE, &dfl, NULL);
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "safescoped:dwarf");
		if (getppid() != parent)
			_exit(1);
		helper(d, fds[1]);
	}
	close(fds[1]);
	d->fd = fds[0];
	return 0;
}

/* ── asking it ───────────────────────────────────────────────────────────────────────────── */

static int wait_answer(struct dwarf *d, struct answer *answer)
{
	uint64_t began = time__monotonic_ns(), now = began;
	uint64_t until = began + DWARF_ANSWER_MS * 1000000ULL;
	ssize_t got;

	if (d->waited_ns >= DWARF_TOTAL_MS * 1000000ULL)
		return -ETIMEDOUT;
	for (;;) {
		struct pollfd p = {.fd = d->fd, .events = POLLIN};
		int n = poll(&p, 1, now < until ? (int)((until - now) / 1000000ULL) + 1 : 0);

		now = time__monotonic_ns();
		if (n > 0 || now >= until)
			break;
	}
	d->waited_ns += now - began;
	got = recv(d->fd, answer, sizeof(*answer), MSG_DONTWAIT);
	if (got < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	return got == (ssize_t)sizeof(*answer) ? 0 : -EIO;
}

static void end_strings(struct dwarf_place *p)
{
	p->name[sizeof(p->name) - 1] = '\0';
	p->linkage[sizeof(p->linkage) - 1] = '\0';
	p->file[sizeof(p->file) - 1] = '\0';
	p->proc_file[sizeof(p->proc_file) - 1] = '\0';
}

int dwarf__find(struct dwarf *d, uint64_t vaddr, struct dwarf_place *ret_place)
{
	struct answer answer = {0};
	int err = d->err;

	if (!err && !d->child)
		err = start(d);
	if (!err && send(d->fd, &vaddr, sizeof(vaddr), MSG_NOSIGNAL) != (ssize_t)sizeof(vaddr))
		err = -EIO;
	if (!err)
		err = wait_answer(d, &answer);
	if (!err && answer.err && answer.err != -ENOENT)
		err = answer.err < 0 && answer.err > -4096 ? answer.err : -EIO;
	if (err) {
		if (!d->err)
			log_verbose("%s: its DWARF is left alone from here on: %s",
				    elf__name(d->elf), strerror(-err));
		d->err = err;
		stop(d);
		return err;
	}
	if (answer.err)
		return -ENOENT;
	end_strings(&answer.place);
	*ret_place = answer.place;
	return 0;
}
