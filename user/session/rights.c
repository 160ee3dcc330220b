/* SPDX-License-Identifier: GPL-2.0-or-later */
/* rights: what the daemon gives up once its BPF programs are loaded. */
#include <errno.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/user.h>

#include "base/limit.h"
#include "confine/caps.h"
#include "confine/filter_program.h"
#include "session_priv.h"

/* The capabilities that the rest of a session needs. */
static const int needed[] = {
	CAP_BPF,		/* maps of unwind rows */
	CAP_PERFMON,		/* uprobes */
	CAP_SYS_PTRACE,		/* /proc and the memory of other users' processes */
	CAP_CHECKPOINT_RESTORE, /* /proc/PID/map_files */
	CAP_DAC_READ_SEARCH,	/* files mapped by these processes */
	CAP_SYSLOG,		/* /proc/kallsyms */
	CAP_LEASE,		/* leases on files of other users, see kernel/leases.c */
	CAP_KILL,   /* signals to helpers, which have users of their own, as the command may */
	CAP_SETUID, /* helpers change to those users */
	CAP_SETGID,
	CAP_DAC_OVERRIDE, /* output in a directory of the user who ran sudo … */
	CAP_CHOWN,	  /* … and who becomes its owner */
	CAP_FOWNER,
};

/* Before these capabilities existed, CAP_SYS_ADMIN was needed for them. */
#define OLD_STYLE                                                                                  \
	(CAP_BIT_OF(CAP_BPF) | CAP_BIT_OF(CAP_PERFMON) | CAP_BIT_OF(CAP_CHECKPOINT_RESTORE))

/*
 * Perf uprobes are opened during the session, and with a perf_event_paranoid above 2, which
 * Debian's and Ubuntu's kernels support, perf_event_open() requires CAP_SYS_ADMIN itself.
 */
static bool needs_admin(const struct kernel_features *f, uint64_t have)
{
	return (have & OLD_STYLE) != OLD_STYLE || (!f->uprobe_multi && f->perf_paranoid > 2);
}

static int drop_caps(const struct kernel_features *features)
{
	uint64_t have = 0, keep = 0;
	int err = caps__permitted(&have);

	if (err)
		return err;
	for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
		keep |= CAP_BIT_OF(needed[i]);
	if (needs_admin(features, have))
		keep |= CAP_BIT_OF(CAP_SYS_ADMIN);
	return caps__reduce_to(keep);
}

/*
 * A deny list rather than an allow list: formats, compression and several libraries run in this
 * process, and their system calls differ from release to release. Code that parses data written by
 * others has an allow list (confine.h). The calls below would let injected code reach another
 * program, another process's code, another namespace, or the kernel's code.
 */
static const int refused[] = {
	SCMP_SYS(execve),
	SCMP_SYS(execveat),
	SCMP_SYS(process_vm_writev),
	SCMP_SYS(mount),
	SCMP_SYS(umount2),
	SCMP_SYS(fsopen),
	SCMP_SYS(fsmount),
	SCMP_SYS(fspick),
	SCMP_SYS(move_mount),
	SCMP_SYS(open_tree),
	SCMP_SYS(mount_setattr),
	SCMP_SYS(pivot_root),
	SCMP_SYS(chroot),
	SCMP_SYS(setns),
	SCMP_SYS(unshare),
	SCMP_SYS(init_module),
	SCMP_SYS(finit_module),
	SCMP_SYS(delete_module),
	SCMP_SYS(kexec_load),
	SCMP_SYS(kexec_file_load),
	SCMP_SYS(reboot),
	SCMP_SYS(swapon),
	SCMP_SYS(swapoff),
	SCMP_SYS(settimeofday),
	SCMP_SYS(clock_settime),
	SCMP_SYS(adjtimex),
	SCMP_SYS(clock_adjtime),
	SCMP_SYS(sethostname),
	SCMP_SYS(setdomainname),
	SCMP_SYS(iopl),
	SCMP_SYS(ioperm),
	SCMP_SYS(quotactl),
	SCMP_SYS(acct),
	SCMP_SYS(add_key),
	SCMP_SYS(request_key),
	SCMP_SYS(keyctl),
	SCMP_SYS(userfaultfd),
	SCMP_SYS(io_uring_setup),
	SCMP_SYS(io_uring_enter),
	SCMP_SYS(io_uring_register),
	SCMP_SYS(open_by_handle_at),
	SCMP_SYS(mknod),
	SCMP_SYS(mknodat),
	SCMP_SYS(personality),
	SCMP_SYS(bind),
	SCMP_SYS(listen),
};

#if defined(SANITIZED)

/* A sanitizer needs ptrace to look for leaks. */
static int refuse_ptrace(scmp_filter_ctx f, unsigned traces)
{
	(void)f;
	(void)traces;
	return 0;
}

#else

/*
 * Refuses ptrace() for a range of requests. A rule has one comparison per argument, so the range is
 * split into pieces that can be matched by a mask: each is as long as its alignment allows.
 */
static int refuse_requests(scmp_filter_ctx f, uint64_t first, uint64_t last)
{
	int err = 0;

	while (first <= last && !err) {
		uint64_t size = first ? first & -first : 1ULL << 32;

		while (first + size - 1 > last)
			size /= 2;
		err = seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ptrace), 1,
				       SCMP_A0_64(SCMP_CMP_MASKED_EQ, ~(size - 1), first));
		first += size;
	}
	return err;
}

/* For a command, only the registers used by entry.c may be written. */
static int refuse_registers(scmp_filter_ctx f)
{
#if defined(__x86_64__)
	const uint64_t first = offsetof(struct user, u_debugreg);
	const uint64_t last = first + sizeof(((struct user *)NULL)->u_debugreg) - 1;
	const struct scmp_arg_cmp request = SCMP_A0_64(SCMP_CMP_EQ, PTRACE_POKEUSER);
	int err = seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ptrace), 2, request,
				   SCMP_A2_64(SCMP_CMP_LT, first));

	return err ? err
		   : seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ptrace), 2, request,
				      SCMP_A2_64(SCMP_CMP_GT, last));
#else
	return seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ptrace), 1,
				SCMP_A0_64(SCMP_CMP_EQ, PTRACE_POKEUSER));
#endif
}

/*
 * Allows only these requests of ptrace(): PTRACE_DETACH, to release the command, which was stopped
 * before; two that take it to its entry; and, if processes are to be stopped for a while, the two
 * that do so (process/freeze.h).
 */
static int refuse_ptrace(scmp_filter_ctx f, unsigned traces)
{
	/* sorted by number */
	const struct {
		uint64_t request;
		unsigned of;
	} left[] = {{PTRACE_POKEUSER, RIGHTS_COMMAND},
		    {PTRACE_CONT, RIGHTS_COMMAND},
		    {PTRACE_DETACH, ~0U},
		    {PTRACE_SEIZE, RIGHTS_STOP},
		    {PTRACE_INTERRUPT, RIGHTS_STOP}};
	uint64_t next = 0;
	int err = traces & RIGHTS_COMMAND ? refuse_registers(f) : 0;

	for (size_t i = 0; i < ARRAY_SIZE(left) && !err; i++) {
		if (left[i].of != ~0U && !(traces & left[i].of))
			continue;
		if (left[i].request > next)
			err = refuse_requests(f, next, left[i].request - 1);
		next = left[i].request + 1;
	}
	if (!err)
		err = seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ptrace), 1,
				       SCMP_A0_64(SCMP_CMP_GE, next, 0));
	return err;
}

#endif

static int add_refused(scmp_filter_ctx f, const void *traces)
{
	int err = refuse_ptrace(f, *(const unsigned *)traces);

	for (size_t i = 0; i < ARRAY_SIZE(refused) && !err; i++)
		err = seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), refused[i], 0);
	return err;
}

/* The process cannot gain rights: PR_SET_NO_NEW_PRIVS is set. */
static int refuse_calls(unsigned traces)
{
	struct sock_fprog program;
	int err = filter_program__make(SCMP_ACT_ALLOW, add_refused, &traces, &program);

	if (err)
		return err;
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		err = -errno;
	free(program.filter);
	return err;
}

int rights__give_up(const struct kernel_features *features, unsigned traces)
{
	int err = drop_caps(features);

	if (!err && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		err = -errno;
	if (!err)
		err = refuse_calls(traces);
	/* the filter is made by a process of its own, and none could be started */
	if (err == -EBUSY)
		err = -EAGAIN;
	if (err)
		log_error("cannot give up privileges that are not needed: %s%s", strerror(-err),
			  limit__why_no_process(err).text);
	return err;
}
