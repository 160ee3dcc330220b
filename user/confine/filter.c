/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The system calls that a confined process may make. */
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>

#include "base/base.h"
#include "confine_priv.h"
#include "filter_program.h"

/*
 * For memory, the descriptors that it was given, and exiting. restart_syscall() continues a wait
 * that a freezer, SIGSTOP or a debugger interrupted.
 */
static const int always[] = {
	SCMP_SYS(read),		 SCMP_SYS(write),	    SCMP_SYS(pread64),
	SCMP_SYS(pwrite64),	 SCMP_SYS(lseek),	    SCMP_SYS(fstat),
	SCMP_SYS(newfstatat),	 SCMP_SYS(close),	    SCMP_SYS(poll),
	SCMP_SYS(munmap),	 SCMP_SYS(mremap),	    SCMP_SYS(madvise),
	SCMP_SYS(brk),		 SCMP_SYS(futex),	    SCMP_SYS(rt_sigreturn),
	SCMP_SYS(clock_gettime), SCMP_SYS(gettimeofday),    SCMP_SYS(getpid),
	SCMP_SYS(exit),		 SCMP_SYS(exit_group),	    SCMP_SYS(getrandom),
	SCMP_SYS(nanosleep),	 SCMP_SYS(clock_nanosleep), SCMP_SYS(restart_syscall),
	SCMP_SYS(gettid),
};
/* /proc of other processes, read-only: see add_open(). */
static const int proc[] = {
	SCMP_SYS(getdents64),
	SCMP_SYS(readlink),
	SCMP_SYS(readlinkat),
	SCMP_SYS(statx),
};

/* Opening a file by name, and passing it on. */
static const int files[] = {
	SCMP_SYS(openat2),
	SCMP_SYS(sendmsg),
};

/* Connections, threads, and what the C library does for both. */
static const int network[] = {
	SCMP_SYS(connect),
	SCMP_SYS(sendto),
	SCMP_SYS(sendmsg),
	SCMP_SYS(sendmmsg),
	SCMP_SYS(recvfrom),
	SCMP_SYS(recvmsg),
	SCMP_SYS(getsockopt),
	SCMP_SYS(getsockname),
	SCMP_SYS(getpeername),
	SCMP_SYS(shutdown),
	SCMP_SYS(pipe2),
	SCMP_SYS(eventfd2),
	SCMP_SYS(ppoll),
	SCMP_SYS(select),
	SCMP_SYS(pselect6),

	SCMP_SYS(fcntl),
	SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(sigaltstack),
	SCMP_SYS(set_robust_list),
	SCMP_SYS(rseq),
	SCMP_SYS(wait4),
	SCMP_SYS(alarm),
	SCMP_SYS(setitimer),
	SCMP_SYS(sched_yield),
	SCMP_SYS(sched_getaffinity),
	SCMP_SYS(getuid),
	SCMP_SYS(geteuid),
	SCMP_SYS(getgid),
	SCMP_SYS(getegid),
	SCMP_SYS(getppid),
	SCMP_SYS(uname),
	SCMP_SYS(sysinfo),
	SCMP_SYS(access),
	SCMP_SYS(faccessat),
	SCMP_SYS(faccessat2),
	SCMP_SYS(readlink),
	SCMP_SYS(readlinkat),
	SCMP_SYS(getdents64),
	SCMP_SYS(statx),
	SCMP_SYS(getrusage),
	SCMP_SYS(set_tid_address),
};

/*
 * Serving a listening socket, the only source of connections: it cannot connect to anything.
 * recvmsg() is for the daemon's messages, eventfd2() for libmicrohttpd's internal wake-ups.
 * writev() is left out: it could raise SIGPIPE, which the other calls can avoid.
 */
static const int listening[] = {
	SCMP_SYS(accept4), SCMP_SYS(recvfrom), SCMP_SYS(recvmsg),  SCMP_SYS(sendto),
	SCMP_SYS(sendmsg), SCMP_SYS(shutdown), SCMP_SYS(eventfd2),
};

static int allow(scmp_filter_ctx f, const int *calls, size_t n)
{
	int err = 0;

	for (size_t i = 0; i < n && !err; i++)
		err = seccomp_rule_add(f, SCMP_ACT_ALLOW, calls[i], 0);
	return err;
}

/* Memory, but not executable. */
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

/* Flags that neither a thread nor a copy of the process may be created with. */
#define NEW_NAMESPACES                                                                             \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |             \
	 CLONE_NEWPID | CLONE_NEWNET)

/*
 * Threads only: a copied process would be in no table of ours, and could outlive its killed parent.
 * With CONFINE_FORK copies too, for confine__fork(), which removes that right in the copy.
 */
static int add_clone(scmp_filter_ctx f, bool may_fork)
{
	const struct scmp_arg_cmp thread =
		SCMP_A0(SCMP_CMP_MASKED_EQ, NEW_NAMESPACES | CLONE_THREAD, CLONE_THREAD);
	const struct scmp_arg_cmp any = SCMP_A0(SCMP_CMP_MASKED_EQ, NEW_NAMESPACES, 0);
	const struct scmp_arg_cmp die[] = {SCMP_A0(SCMP_CMP_EQ, PR_SET_PDEATHSIG, 0),
					   SCMP_A1(SCMP_CMP_EQ, SIGKILL, 0)};
	const struct scmp_arg_cmp filter[] = {SCMP_A0(SCMP_CMP_EQ, PR_SET_SECCOMP, 0),
					      SCMP_A1(SCMP_CMP_EQ, SECCOMP_MODE_FILTER, 0)};
	int err = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1, may_fork ? any : thread);

	/*
	 * its flags are in memory, which a filter cannot read; the C library falls back to clone()
	 */
	if (!err)
		err = seccomp_rule_add(f, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	if (!err && may_fork)
		err = seccomp_rule_add_array(f, SCMP_ACT_ALLOW, SCMP_SYS(prctl), ARRAY_SIZE(die),
					     die);
	if (!err && may_fork)
		err = seccomp_rule_add_array(f, SCMP_ACT_ALLOW, SCMP_SYS(prctl), ARRAY_SIZE(filter),
					     filter);
	return err;
}

/*
 * Options that cannot make close() block. SO_LINGER is left out, and so is TCP_ULP, which switches
 * a socket to another protocol: with these the last close of a connection could wait for the peer,
 * and that close may be the daemon's, of a descriptor that was passed on or that the kernel
 * garbage-collects. The masks: the kernel takes ints, and ignores the upper half.
 */
static int add_options(scmp_filter_ctx f)
{
	static const int levels[] = {IPPROTO_IP, IPPROTO_IPV6};
	static const struct {
		int level, name;
	} options[] = {
		{SOL_SOCKET, SO_KEEPALIVE},
		{SOL_SOCKET, SO_RCVBUF},
		{SOL_SOCKET, SO_SNDBUF},
		{SOL_SOCKET, SO_REUSEADDR},
		{SOL_SOCKET, SO_RCVTIMEO},
		{SOL_SOCKET, SO_SNDTIMEO},
		{IPPROTO_TCP, TCP_NODELAY},
		{IPPROTO_TCP, TCP_CORK},
		{IPPROTO_TCP, TCP_KEEPIDLE},
		{IPPROTO_TCP, TCP_KEEPINTVL},
		{IPPROTO_TCP, TCP_KEEPCNT},
		{IPPROTO_TCP, TCP_USER_TIMEOUT},
		{IPPROTO_TCP, TCP_FASTOPEN_CONNECT},
	};
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(levels) && !err; i++)
		err = seccomp_rule_add(
			f, SCMP_ACT_ALLOW, SCMP_SYS(setsockopt), 1,
			SCMP_A1(SCMP_CMP_MASKED_EQ, UINT32_MAX, (scmp_datum_t)levels[i]));
	for (size_t i = 0; i < ARRAY_SIZE(options) && !err; i++)
		err = seccomp_rule_add(
			f, SCMP_ACT_ALLOW, SCMP_SYS(setsockopt), 2,
			SCMP_A1(SCMP_CMP_MASKED_EQ, UINT32_MAX, (scmp_datum_t)options[i].level),
			SCMP_A2(SCMP_CMP_MASKED_EQ, UINT32_MAX, (scmp_datum_t)options[i].name));
	return err;
}

/* TCP, UDP, and protocol 0, the default. */
static int add_sockets(scmp_filter_ctx f)
{
	static const int families[] = {AF_INET, AF_INET6},
			 protocols[] = {0, IPPROTO_TCP, IPPROTO_UDP};
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(families) * ARRAY_SIZE(protocols) && !err; i++)
		err = seccomp_rule_add(
			f, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2,
			SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)families[i % ARRAY_SIZE(families)], 0),
			SCMP_A2(SCMP_CMP_EQ, (scmp_datum_t)protocols[i / ARRAY_SIZE(families)], 0));
	return err;
}

/* Stream sockets only: a datagram socket, even one of a pair, can send to any other on the machine
 * by name. */
static int add_pairs(scmp_filter_ctx f)
{
	const struct scmp_arg_cmp cmp[] = {
		SCMP_A0(SCMP_CMP_MASKED_EQ, UINT32_MAX, AF_UNIX),
		SCMP_A1(SCMP_CMP_MASKED_EQ, UINT32_MAX & ~(SOCK_CLOEXEC | SOCK_NONBLOCK),
			SOCK_STREAM),
	};

	return seccomp_rule_add_array(f, SCMP_ACT_ALLOW, SCMP_SYS(socketpair), ARRAY_SIZE(cmp),
				      cmp);
}

static int add_network(scmp_filter_ctx f, bool may_fork)
{
	const struct {
		int call;
		struct scmp_arg_cmp cmp;
	} rules[] = {
		{SCMP_SYS(ioctl), SCMP_A1(SCMP_CMP_EQ, FIONREAD, 0)},
		{SCMP_SYS(ioctl), SCMP_A1(SCMP_CMP_EQ, FIONBIO, 0)},
		/* reading the limits, not setting them */
		{SCMP_SYS(prlimit64), SCMP_A2(SCMP_CMP_EQ, 0, 0)},
	};
	int err = allow(f, network, ARRAY_SIZE(network));

	for (size_t i = 0; i < ARRAY_SIZE(rules) && !err; i++)
		err = seccomp_rule_add_array(f, SCMP_ACT_ALLOW, rules[i].call, 1, &rules[i].cmp);
	if (!err)
		err = add_clone(f, may_fork);
	if (!err)
		err = add_sockets(f);
	if (!err)
		err = add_options(f);
	if (!err)
		err = add_pairs(f);
	return err ? err : add_open(f);
}

/* Whether a descriptor blocks, and is closed on exec; these commands create no descriptor. */
static int add_flags(scmp_filter_ctx f)
{
	static const int commands[] = {F_GETFL, F_SETFL, F_GETFD, F_SETFD};
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(commands) && !err; i++)
		err = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1,
				       SCMP_A1(SCMP_CMP_EQ, (scmp_datum_t)commands[i], 0));
	return err;
}

/* Stopping another process. The child that does so is ended by a timer. waitid() is for the threads
 * that it traces, as it is not their parent. */
static int add_trace(scmp_filter_ctx f)
{
	static const int calls[] = {SCMP_SYS(waitid), SCMP_SYS(setitimer)};
	const struct scmp_arg_cmp seize[] = {SCMP_A0(SCMP_CMP_EQ, PTRACE_SEIZE, 0),
					     SCMP_A3(SCMP_CMP_EQ, 0, 0)};
	int err = allow(f, calls, ARRAY_SIZE(calls));

	if (!err)
		err = seccomp_rule_add_array(f, SCMP_ACT_ALLOW, SCMP_SYS(ptrace), ARRAY_SIZE(seize),
					     seize);
	if (!err)
		err = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(ptrace), 1,
				       SCMP_A0(SCMP_CMP_EQ, PTRACE_INTERRUPT, 0));
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
	if (!err && (keep & CONFINE_NETWORK))
		err = add_network(f, keep & CONFINE_FORK);
	if (!err && (keep & CONFINE_LISTEN))
		err = allow(f, listening, ARRAY_SIZE(listening));
	if (!err && (keep & CONFINE_LISTEN))
		err = add_flags(f);
	if (!err && (keep & CONFINE_LISTEN))
		err = add_options(f);
	if (!err && (keep & CONFINE_TRACE))
		err = add_trace(f);
	return err;
}

static int add_confined(scmp_filter_ctx f, const void *keep)
{
	return add_rules(f, *(const unsigned int *)keep);
}

int confine_filter__get(unsigned int keep, const struct sock_fprog **ret_program)
{
	/* constant, but libseccomp has to build them: each one once for the program */
	static struct sock_fprog programs[CONFINE_KEEPS];
	struct sock_fprog *program = &programs[keep % ARRAY_SIZE(programs)];
	/* an error rather than a kill: libdw asks for its file's path, and goes on without it */
	int err = program->filter ? 0
				  : filter_program__make(SCMP_ACT_ERRNO(EPERM), add_confined, &keep,
							 program);

	if (!err)
		*ret_program = program;
	return err;
}
