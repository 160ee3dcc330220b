/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The keeper itself. */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "base/pass.h"
#include "confine/caps.h"
#include "keeper_priv.h"
#include "kernel_priv.h"

/*
 * How often the keeper checks whether the daemon's loop turns. It counts the checks at which the
 * loop stood still instead of measuring time: while the machine is suspended the daemon does not
 * run either.
 */
#define LOOK_NS 250000000ULL
/* This many consecutive checks without a turn are two and ten seconds. */
#define PROBES_AFTER (8 * machine__slowness())
#define ALL_AFTER    (40 * machine__slowness())

struct keeping {
	int socket, daemon;
	int account; /* the kernel keeps the account of run time while this is open; or -1 */
	struct keeper_page *page;
	struct reaper *reaper;
	struct {
		int fd; /* -1: none */
		enum keep_kind kind;
	} kept[KEEPER_MAX];
	uint64_t beats; /* at the last check */
	unsigned still; /* number of consecutive checks with the same beats */
};

/* ── giving up rights ────────────────────────────────────────────────────────────────────── */

/* Closes the daemon's descriptors, so that they end with the daemon. The two that stay become 0
 * and 1. */
static int close_others(struct keeping *k)
{
	int fds[2] = {k->socket, k->daemon};
	const struct rlimit none = {0, 0};
	struct rlimit files;

	/* duplicated above the numbers that they are moved to next */
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0 && (fds[i] = fcntl(fds[i], F_DUPFD, 2)) < 0)
			return -errno;
	if (dup2(fds[0], 0) < 0 || (fds[1] >= 0 && dup2(fds[1], 1) < 0))
		return -errno;
	k->socket = 0;
	k->daemon = fds[1] >= 0 ? 1 : -1;
	if (syscall(SYS_close_range, fds[1] >= 0 ? 2U : 1U, ~0U, 0)) {
		long max = sysconf(_SC_OPEN_MAX);

		for (int i = fds[1] >= 0 ? 2 : 1; i < max; i++)
			close(i);
	}
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	setrlimit(RLIMIT_CORE, &none);
	return 0;
}

#if !defined(SANITIZED)
/*
 * Several threads receive descriptors and close them, and one opens events and sends their
 * descriptors. A wait that a freezer, SIGSTOP or a debugger interrupted resumes with
 * restart_syscall().
 */
static int restrict_calls(void)
{
	static const int calls[] = {
		SCMP_SYS(recvmsg),
		SCMP_SYS(sendmsg),
		SCMP_SYS(close),
		SCMP_SYS(poll),
		SCMP_SYS(futex),
		SCMP_SYS(munmap),
		SCMP_SYS(madvise),
		SCMP_SYS(brk),
		SCMP_SYS(mremap),
		SCMP_SYS(set_robust_list),
		SCMP_SYS(rseq),
		SCMP_SYS(rt_sigprocmask),
		SCMP_SYS(rt_sigreturn),
		SCMP_SYS(clock_gettime),
		SCMP_SYS(gettid),
		SCMP_SYS(exit),
		SCMP_SYS(restart_syscall),
		SCMP_SYS(exit_group),
	};
	scmp_filter_ctx f = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int err = f ? 0 : -ENOMEM;

	for (size_t i = 0; i < ARRAY_SIZE(calls) && !err; i++)
		err = seccomp_rule_add(f, SCMP_ACT_ALLOW, calls[i], 0);
	if (!err)
		err = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
				       SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (!err)
		err = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
				       SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (!err)
		err = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
				       SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
	if (!err)
		err = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(bpf), 1,
				       SCMP_A0(SCMP_CMP_EQ, BPF_ENABLE_STATS, 0));
	/* pid -1: events of a CPU, and not of a process of its choice */
	if (!err)
		err = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(perf_event_open), 1,
				       SCMP_A1(SCMP_CMP_MASKED_EQ, UINT32_MAX, UINT32_MAX));
	/* its arguments are in memory, out of the filter's reach; ENOSYS makes libc fall back to
	 * clone() */
	if (!err)
		err = seccomp_rule_add(f, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	if (!err)
		err = seccomp_load(f);
	if (f)
		seccomp_release(f);
	return err;
}
#else
static int restrict_calls(void)
{
	return 0;
}
#endif

/*
 * The uid stays root's, without any of root's capabilities but one, so that nobody else may send
 * signals to the keeper. It is not a confined job (confine.h) because it outlives the daemon, if
 * only for a moment.
 */
static int give_up_rights(struct keeping *k)
{
	sigset_t every;
	int err;

	/* signals that end or stop the daemon and its group are not for the keeper, which ends
	 * after the daemon */
	sigfillset(&every);
	sigprocmask(SIG_SETMASK, &every, NULL);
	setsid();
	prctl(PR_SET_NAME, "safescoped:keep");
	err = close_others(k);
	if (!err && chdir("/"))
		err = -errno;
	if (!err)
		err = caps__reduce_to(CAP_BIT_OF(CAP_SYS_ADMIN));
	if (!err && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0)))
		err = -errno;
	return err ? err : restrict_calls();
}

/* ── keeping ─────────────────────────────────────────────────────────────────────────────── */

static void take_off(struct keeping *k, bool all)
{
	for (size_t i = 0; i < ARRAY_SIZE(k->kept); i++)
		if (k->kept[i].fd >= 0 && (all || k->kept[i].kind == KEEP_PROBE)) {
			reaper__add(k->reaper, k->kept[i].fd);
			k->kept[i].fd = -1;
		}
	reaper__wait(k->reaper);
}

static void look_after(struct keeping *k)
{
	uint64_t beats = atomic_load(&k->page->beats);

	/* before the first beat the daemon is loading its programs, which may take longer */
	k->still = beats && beats == k->beats ? k->still + 1 : 0;
	k->beats = beats;
	if (k->still != PROBES_AFTER && k->still != ALL_AFTER)
		return;
	/* reported first: whatever the daemon then finds attached has been handed to us since */
	if (k->still == ALL_AFTER)
		atomic_store(&k->page->all_off, 1);
	atomic_fetch_add(&k->page->taken, 1);
	take_off(k, k->still == ALL_AFTER);
}

/* Not with libbpf, which would move a descriptor below 3 with a call that the filter refuses. */
static int account(void)
{
	union bpf_attr attr = {.enable_stats.type = BPF_STATS_RUN_TIME};

	return (int)syscall(SYS_bpf, BPF_ENABLE_STATS, &attr, sizeof(attr));
}

/* Sends the answer to `to` and closes it. */
static void open_event(const struct keeper_msg *msg, int to)
{
	int fd = cpu_event__open_here((enum cpu_event)msg->kind, msg->cpu, msg->period_ns);
	struct keeper_event event = {.err = fd < 0 ? fd : 0};

	/* if nobody waits any more, the other end is closed */
	pass__send(to, &event, sizeof(event), fd < 0 ? -1 : fd, MSG_DONTWAIT);
	if (fd >= 0)
		close(fd);
	close(to);
}

static bool obey(struct keeping *k, const struct keeper_msg *msg, int fd)
{
	int held;

	if (msg->id >= KEEPER_MAX)
		return false;
	held = k->kept[msg->id].fd;
	switch (msg->what) {
	case KEEPER_HOLD:
		if (fd < 0 || held >= 0)
			return false;
		k->kept[msg->id].fd = fd;
		k->kept[msg->id].kind = (enum keep_kind)msg->kind;
		return true;
	case KEEPER_DROP:
		fd__close(&k->kept[msg->id].fd);
		atomic_store(&k->page->done, msg->number);
		return true;
	case KEEPER_DROP_LATER:
		if (held >= 0)
			reaper__add(k->reaper, held);
		k->kept[msg->id].fd = -1;
		return true;
	case KEEPER_ACCOUNT:
	case KEEPER_NO_ACCOUNT:
		fd__close(&k->account);
		if (msg->what == KEEPER_ACCOUNT)
			k->account = account();
		atomic_store(&k->page->account, k->account >= 0);
		atomic_store(&k->page->done, msg->number);
		return true;
	case KEEPER_OPEN_EVENT:
		if (fd < 0)
			return false;
		open_event(msg, fd);
		return true;
	default:
		return false;
	}
}

/* False: the daemon has ended, or a descriptor was lost; everything is detached then. */
static bool take_message(struct keeping *k)
{
	struct keeper_msg msg = {0};
	int fd, err = pass__take(k->socket, &msg, sizeof(msg), MSG_DONTWAIT, &fd);

	if (err)
		return err == -EAGAIN;
	return obey(k, &msg, fd);
}

static void keep(struct keeping *k)
{
	uint64_t next = time__monotonic_ns() + LOOK_NS;

	for (;;) {
		struct pollfd fds[] = {{.fd = k->socket, .events = POLLIN},
				       {.fd = k->daemon, .events = POLLIN}};
		uint64_t now = time__monotonic_ns();

		if (now >= next) {
			look_after(k);
			now = time__monotonic_ns();
			next = now + LOOK_NS;
		}
		if (poll(fds, ARRAY_SIZE(fds), (int)((next - now) / 1000000ULL) + 1) < 0 &&
		    errno != EINTR)
			return;
		if (fds[1].revents || (fds[0].revents && !take_message(k)))
			return;
	}
}

_Noreturn void keeper_child__run(int socket, int daemon, struct keeper_page *page)
{
	/* too large for the stack, and there is only one */
	static struct keeping k;
	int err;

	k.socket = socket;
	k.daemon = daemon;
	k.account = -1;
	k.page = page;
	for (size_t i = 0; i < ARRAY_SIZE(k.kept); i++)
		k.kept[i].fd = -1;
	err = reaper__new(&k.reaper);
	if (!err)
		err = give_up_rights(&k);
	if (!err) {
		keep(&k);
		take_off(&k, true);
		reaper__free(k.reaper);
	}
	atomic_store(&page->all_off, 1);
	_exit(err ? 1 : 0);
}
