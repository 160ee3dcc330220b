/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Uprobes by file offset. Uses uprobe_multi links where the kernel has them: attaching and
 * detaching a hundred takes milliseconds, and CAP_BPF + CAP_PERFMON are enough. Otherwise uses perf
 * uprobes, each of which takes 100 ms to detach. libbpf 1.1 does not know multi links, so they are
 * made with the raw system call.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/base.h"
#include "kernel_priv.h"
#include "process/proc.h"

/* include/uapi/linux/bpf.h, enum bpf_attach_type, since Linux 6.6 */
#define ATTACH_TRACE_UPROBE_MULTI 48

/* union bpf_attr, link_create.uprobe_multi (same file) */
struct attr_link_uprobe_multi {
	__u32 prog_fd;
	__u32 target_fd;
	__u32 attach_type;
	__u32 flags;
	__u64 path;
	__u64 offsets;
	__u64 ref_ctr_offsets;
	__u64 cookies;
	__u32 cnt;
	__u32 multi_flags;
	__u32 pid;
	__u32 _pad;
};

static uint64_t cookie_of(pid_t pid)
{
	return pid ? WIRE_PROBE_OWN : 0;
}

static int multi_link(int prog_fd, const char *path, uint64_t offset, pid_t pid)
{
	uint64_t cookie = cookie_of(pid);
	struct attr_link_uprobe_multi attr = {
		.prog_fd = (__u32)prog_fd,
		.attach_type = ATTACH_TRACE_UPROBE_MULTI,
		.path = (uintptr_t)path,
		.offsets = (uintptr_t)&offset,
		.cookies = (uintptr_t)&cookie,
		.cnt = 1,
		.pid = (__u32)pid,
	};
	int fd = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));

	return fd < 0 ? -errno : fd;
}

/*
 * The same test as libbpf's: a path that is not a file must be refused with EBADF, and a pid of -1
 * with EINVAL. Kernels that filter by thread instead of by process accept the latter.
 */
bool uprobe__has_multi(void)
{
	const struct bpf_insn insns[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts,
		    .expected_attach_type = (enum bpf_attach_type)ATTACH_TRACE_UPROBE_MULTI);
	int prog, err, err_pid;

	prog = bpf_prog_load(BPF_PROG_TYPE_KPROBE, NULL, "GPL", insns, ARRAY_SIZE(insns), &opts);
	if (prog < 0)
		return false;
	err = multi_link(prog, "/", 0, 0);
	err_pid = multi_link(prog, "/", 0, -1);
	if (err >= 0)
		close(err);
	if (err_pid >= 0)
		close(err_pid);
	close(prog);
	return err == -EBADF && err_pid == -EINVAL;
}

int uprobe__prepare(struct bpf_program *prog, bool multi)
{
	if (!multi)
		return 0;
	return bpf_program__set_expected_attach_type(
		prog, (enum bpf_attach_type)ATTACH_TRACE_UPROBE_MULTI);
}

/* The type number of the uprobe PMU, which differs between kernels. */
static int pmu_type(uint32_t *ret_type)
{
	char *text, *end;
	size_t len;
	int err = proc__text("/sys/bus/event_source/devices/uprobe/type", 1 << 16, &text, &len);

	if (err)
		return err;
	*ret_type = (uint32_t)strtoul(text, &end, 10);
	err = end == text ? -EINVAL : 0;
	free(text);
	return err;
}

static int perf_link(struct bpf_program *prog, const char *path, uint64_t offset, pid_t pid,
		     int *ret_fd)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.config1 = (uintptr_t)path, /* uprobe_path */
		.config2 = offset,	    /* probe_offset */
	};
	int err = pmu_type(&attr.type), fd;

	if (err)
		return err;
	/* for all processes, any one CPU can be given */
	fd = (int)syscall(SYS_perf_event_open, &attr, pid ? pid : -1, pid ? -1 : 0, -1,
			  PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : perf__link(prog, fd, cookie_of(pid), ret_fd);
}

int uprobe__attach(struct bpf_program *prog, bool multi, const char *path, uint64_t offset,
		   pid_t pid, int *ret_fd)
{
	int fd;

	if (!multi)
		return perf_link(prog, path, offset, pid, ret_fd);
	fd = multi_link(bpf_program__fd(prog), path, offset, pid);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}
