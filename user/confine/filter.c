/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The system calls that a confined process may make. */
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "confine_priv.h"

/* It takes milliseconds. */
#define WRITE_CPU_S 5

/* What memory, descriptors that it was given, and its own end need. */
static const int always[] = {
	SCMP_SYS(read),		 SCMP_SYS(write),	 SCMP_SYS(pread64),
	SCMP_SYS(pwrite64),	 SCMP_SYS(lseek),	 SCMP_SYS(fstat),
	SCMP_SYS(newfstatat),	 SCMP_SYS(close),	 SCMP_SYS(poll),
	SCMP_SYS(munmap),	 SCMP_SYS(mremap),	 SCMP_SYS(madvise),
	SCMP_SYS(brk),		 SCMP_SYS(futex),	 SCMP_SYS(rt_sigreturn),
	SCMP_SYS(clock_gettime), SCMP_SYS(gettimeofday), SCMP_SYS(getpid),
	SCMP_SYS(gettid),	 SCMP_SYS(exit),	 SCMP_SYS(exit_group),
	SCMP_SYS(getrandom),	 SCMP_SYS(nanosleep),	 SCMP_SYS(clock_nanosleep),
};
/* /proc of another process, read only: see add_open(). */
static const int proc[] = {
	SCMP_SYS(getdents64),
	SCMP_SYS(readlink),
	SCMP_SYS(readlinkat),
	SCMP_SYS(statx),
};

/* Opening a file by its name, and handing it over. */
static const int files[] = {
	SCMP_SYS(openat2),
	SCMP_SYS(sendmsg),
};

/*
 * A server of a listening socket: connections come from there, and nothing else can be connected
 * to. recvmsg() is for the daemon's messages, eventfd2() for libmicrohttpd's own wake-ups. writev()
 * is left out: it would bring SIGPIPE, which the others need not.
 */
static const int listening[] = {
	SCMP_SYS(accept4), SCMP_SYS(recvfrom), SCMP_SYS(recvmsg),    SCMP_SYS(sendto),
	SCMP_SYS(sendmsg), SCMP_SYS(shutdown), SCMP_SYS(setsockopt), SCMP_SYS(eventfd2),
};

static int allow(scmp_filter_ctx f, const int *calls, size_t n)
{
	int err = 0;

	for (size_t i = 0; i < n && !err; i++)
		err = seccomp_rule_add(f, SCMP_ACT_ALLOW, calls[i], 0);
	return err;
}

/* Memory, but none that is executable. */
static int add_memory(scmp_filter_ctx f)
{
	const struct scmp_arg_cmp no_exec = SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0);
	int err = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1, no_exec);

	return err ? err : seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1, no_exec);
}

static int add_open(scmp_filter_ctx f)
{
	const struct scmp_arg_cmp only_read =
		SCMP_A2(SCMP_CMP_MASKED_EQ, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY);

	return seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1, only_read);
}

/* Whether a descriptor blocks, and is closed by an exec; none is made by it. */
static int add_flags(scmp_filter_ctx f)
{
	static const int commands[] = {F_GETFL, F_SETFL, F_GETFD, F_SETFD};
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(commands) && !err; i++)
		err = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1,
				       SCMP_A1(SCMP_CMP_EQ, (scmp_datum_t)commands[i]));
	return err;
}

static int add_rules(scmp_filter_ctx f, unsigned int keep)
{
	int err = allow(f, always, ARRAY_SIZE(always));

	if (!err)
		err = add_memory(f);
	if (!err && (keep & (CONFINE_MEMORY | CONFINE_PROC)))
		err = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(process_vm_readv), 0);
	if (!err && (keep & CONFINE_PROC))
		err = allow(f, proc, ARRAY_SIZE(proc));
	if (!err && (keep & CONFINE_FILES))
		err = allow(f, files, ARRAY_SIZE(files));
	if (!err && (keep & (CONFINE_PROC | CONFINE_FILES)))
		err = add_open(f);
	if (!err && (keep & CONFINE_LISTEN))
		err = allow(f, listening, ARRAY_SIZE(listening));
	if (!err && (keep & CONFINE_LISTEN))
		err = add_flags(f);
	return err;
}

/* Writes the program to a descriptor. */
static int write_program(unsigned int keep, int fd)
{
	/* an error, not death: libdw asks for its file's path, and goes on without it */
	scmp_filter_ctx f = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int err = f ? add_rules(f, keep) : -ENOMEM;

	if (!err)
		err = seccomp_export_bpf(f, fd);
	if (f)
		seccomp_release(f);
	return err;
}

/*
 * In a child: libseccomp 2.5.4 crashes, or goes on for ever, where it gets no memory while it
 * exports.
 */
static int write_aside(unsigned int keep, int fd)
{
	const struct rlimit cpu = {.rlim_cur = WRITE_CPU_S, .rlim_max = WRITE_CPU_S};
	int status;
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (pid == 0)
		_exit(setrlimit(RLIMIT_CPU, &cpu) || write_program(keep, fd));
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return status ? -ENOMEM : 0;
}

static int make(unsigned int keep, struct sock_fprog *ret_program)
{
	int fd = memfd_create("filter", MFD_CLOEXEC), err;
	struct sock_filter *code = NULL;
	off_t size = 0;

	if (fd < 0)
		return -errno;
	err = write_aside(keep, fd);
	if (!err)
		size = lseek(fd, 0, SEEK_END);
	if (!err && (size <= 0 || size / (off_t)sizeof(*code) > BPF_MAXINSNS))
		err = -EINVAL;
	if (!err) {
		code = malloc((size_t)size);
		err = code ? 0 : -ENOMEM;
	}
	if (!err && pread(fd, code, (size_t)size, 0) != size)
		err = -EIO;
	fd__close(&fd);
	if (err) {
		free(code);
		return err;
	}
	*ret_program = (struct sock_fprog){.len = (unsigned short)((size_t)size / sizeof(*code)),
					   .filter = code};
	return 0;
}

int confine_filter__get(unsigned int keep, const struct sock_fprog **ret_program)
{
	static struct sock_fprog programs[16];
	struct sock_fprog *program = &programs[keep & 15];
	int err = program->filter ? 0 : make(keep, program);

	if (!err)
		*ret_program = program;
	return err;
}
