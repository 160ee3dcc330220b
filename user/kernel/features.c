/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds out what this kernel and these privileges allow, by trying. */
#include <errno.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "base/base.h"
#include "kernel_priv.h"
#include "process/proc.h"

/* enough for /proc/self/status, the longest of the files read */
#define TEXT_MAX 65536
/* include/linux/proc_ns.h, PROC_PID_INIT_INO: the host's PID namespace */
#define HOST_PIDS_INO 0xEFFFFFFCU
/* PROC_TIME_INIT_INO: the host's time namespace */
#define HOST_CLOCKS_INO 0xEFFFFFFAU

/* Reads the beginning of a small file of /proc or /sys. "" if it cannot be read. */
static void read_start(const char *path, char *out, size_t size)
{
	char *text;
	size_t len;

	out[0] = '\0';
	if (proc__text(path, TEXT_MAX, &text, &len))
		return;
	snprintf(out, size, "%s", text);
	free(text);
}

/* -100 if it cannot be read. */
static int read_sysctl(const char *path)
{
	char text[32];

	read_start(path, text, sizeof(text));
	return text[0] ? (int)strtol(text, NULL, 10) : -100;
}

/* The number after `key` in /proc/self/status; 0 if it is not there. */
static uint64_t status_number(const char *key, int base)
{
	uint64_t n = 0;
	char *text, *line;
	size_t len;

	if (proc__text("/proc/self/status", TEXT_MAX, &text, &len))
		return 0;
	line = strstr(text, key);
	if (line)
		n = strtoull(line + strlen(key), NULL, base);
	free(text);
	return n;
}

bool kernel__has_cap(const struct kernel_features *f, int cap)
{
	bool admin = (f->caps >> CAP_SYS_ADMIN) & 1;

	/* before these existed, CAP_SYS_ADMIN was needed for what they allow */
	return (f->caps >> cap) & 1 ||
	       (admin && (cap == CAP_BPF || cap == CAP_PERFMON || cap == CAP_CHECKPOINT_RESTORE));
}

/* The active mode is in brackets: "none [integrity] confidentiality". */
static void read_lockdown(char out[32])
{
	char text[128], *from, *to;

	out[0] = '\0';
	read_start("/sys/kernel/security/lockdown", text, sizeof(text));
	from = strchr(text, '[');
	to = from ? strchr(from, ']') : NULL;
	if (to)
		snprintf(out, 32, "%.*s", (int)(to - from - 1), from + 1);
}

static int quiet_print(enum libbpf_print_level level, const char *fmt, va_list args)
{
	(void)level;
	(void)fmt;
	(void)args;
	return 0;
}

/* What tp_btf programs attach to (libbpf: a typedef with this prefix and the tracepoint's name). */
static bool has_tracepoints(void)
{
	static const char *const names[] = {
		"btf_trace_sched_switch",	"btf_trace_sched_wakeup",
		"btf_trace_sched_process_fork", "btf_trace_sched_process_exit",
		"btf_trace_sched_process_exec", "btf_trace_task_rename"};
	struct btf *btf = btf__load_vmlinux_btf();
	bool all = btf;

	for (size_t i = 0; all && i < ARRAY_SIZE(names); i++)
		all = btf__find_by_name_kind(btf, names[i], BTF_KIND_TYPEDEF) >= 0;
	btf__free(btf);
	/* BTF takes some 10 MB, which processes forked later would inherit */
	malloc_trim(0);
	return all;
}

/* The kernel side uses the host's pids, which mean other processes in another namespace. */
static bool has_host_pids(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) != 0 || st.st_ino == HOST_PIDS_INO;
}

/* Records and the start times of processes use the kernel's clocks, and are compared with ours. */
static bool has_host_clocks(void)
{
	struct stat st;
	char text[256];

	if (stat("/proc/self/ns/time", &st) != 0 || st.st_ino == HOST_CLOCKS_INO)
		return true;
	/* "monotonic 0 0" and "boottime 0 0": a namespace of its own, but with the host's clocks */
	read_start("/proc/self/timens_offsets", text, sizeof(text));
	return !strpbrk(text, "123456789");
}

void kernel__features(struct kernel_features *ret_features)
{
	struct kernel_features f = {
		.perf_paranoid = read_sysctl("/proc/sys/kernel/perf_event_paranoid"),
		.kptr_restrict = read_sysctl("/proc/sys/kernel/kptr_restrict"),
	};
	libbpf_print_fn_t old;
	struct utsname uts;

	if (!uname(&uts))
		snprintf(f.release, sizeof(f.release), "%s", uts.release);
	f.proc = proc__is_mounted("/proc", PROC_SUPER_MAGIC);
	f.sys = proc__is_mounted("/sys", SYSFS_MAGIC);
	f.host_users = proc__has_host_users();
	/* those of another user namespace have no power over the kernel */
	f.caps = f.host_users ? status_number("\nCapEff:", 16) : 0;
	f.seccomp = status_number("\nSeccomp:", 10) == SECCOMP_MODE_FILTER;
	f.host_pids = has_host_pids();
	f.host_clocks = has_host_clocks();
	read_lockdown(f.lockdown);
	f.securityfs = f.sys && proc__is_mounted("/sys/kernel/security", SECURITYFS_MAGIC);
	f.btf = access("/sys/kernel/btf/vmlinux", R_OK) == 0;
	f.perf_uprobes = access("/sys/bus/event_source/devices/uprobe/type", R_OK) == 0;
	if (kernel__has_cap(&f, CAP_BPF) && kernel__has_cap(&f, CAP_PERFMON)) {
		old = libbpf_set_print(quiet_print);
		f.ringbuf = libbpf_probe_bpf_map_type(BPF_MAP_TYPE_RINGBUF, NULL) == 1;
		f.uprobe_multi = uprobe__has_multi();
		f.sched = f.btf && has_tracepoints();
		libbpf_set_print(old);
		f.perf_event = sampler__works();
	}
	f.uprobes = f.perf_uprobes || f.uprobe_multi;
	*ret_features = f;
}

/* The default profile of CRI-O and podman allows these calls only with CAP_SYS_ADMIN, whatever
 * other capabilities there are. Whether they are filtered is unknown: a profile may allow them. */
#define SECCOMP_ADVICE                                                                             \
	"a seccomp profile is in force and may refuse it: run safescoped with one that allows "    \
	"bpf and perf_event_open, or with none"

const char *kernel__perf_advice(const struct kernel_features *f)
{
	if (f->perf_paranoid > 2 && !(f->caps >> CAP_SYS_ADMIN & 1))
		return "run it as root with all capabilities, add CAP_SYS_ADMIN to its "
		       "capabilities, or set kernel.perf_event_paranoid to 2";
	if (f->seccomp)
		return SECCOMP_ADVICE;
	return "run it as root with all capabilities";
}

const char *kernel__btf_advice(const struct kernel_features *f)
{
	if (!f->sys)
		return "no BTF (/sys/kernel/btf/vmlinux), as /sys is not mounted: "
		       "mount -t sysfs sysfs /sys";
	return "no BTF (/sys/kernel/btf/vmlinux); needs a kernel built with "
	       "CONFIG_DEBUG_INFO_BTF, as in every distribution since 2021";
}

const char *kernel__ringbuf_advice(const struct kernel_features *f)
{
	return f->seccomp ? "Linux 6.1 or later is needed; also, " SECCOMP_ADVICE
			  : "Linux 6.1 or later is needed";
}

int kernel__require(const struct kernel_features *f)
{
	static const struct {
		int cap;
		const char *name;
	} needed[] = {{CAP_BPF, "CAP_BPF"},
		      {CAP_PERFMON, "CAP_PERFMON"},
		      {CAP_SYS_PTRACE, "CAP_SYS_PTRACE"}};
	char missing[64] = "";

	/* all the rest is read from it */
	if (!f->proc) {
		log_error("/proc: " KERNEL_NO_PROC);
		return -ENOTSUP;
	}
	if (!f->host_pids) {
		log_error("PID namespace: not the host's, whose PIDs the kernel reports; run "
			  "safescoped in the host's (docker run --pid=host …, hostPID: true in "
			  "Kubernetes)");
		return -ENOTSUP;
	}
	if (!f->host_clocks) {
		log_error("time namespace: its clocks are not the host's, which the kernel's "
			  "reports use; run safescoped outside of it");
		return -ENOTSUP;
	}
	if (!f->host_users) {
		log_error("user namespace: " KERNEL_OTHER_USERS);
		return -ENOTSUP;
	}
	for (size_t i = 0; i < ARRAY_SIZE(needed); i++) {
		size_t len = strlen(missing);

		if (!kernel__has_cap(f, needed[i].cap))
			snprintf(missing + len, sizeof(missing) - len, "%s%s", len ? ", " : "",
				 needed[i].name);
	}
	if (missing[0]) {
		log_error("privileges: %s missing; run it as root (sudo safescoped …), or give it "
			  "capabilities as safescoped --doctor shows",
			  missing);
		return -EPERM;
	}
	if (!f->btf) {
		log_error("kernel %s: %s", f->release, kernel__btf_advice(f));
		return -ENOTSUP;
	}
	if (!f->ringbuf) {
		log_error("kernel %s: no BPF ring buffer; %s", f->release,
			  kernel__ringbuf_advice(f));
		return -ENOTSUP;
	}
	if (!f->uprobes) {
		log_error("kernel %s: no uprobes; needs a kernel built with CONFIG_UPROBES",
			  f->release);
		return -ENOTSUP;
	}
	if (!f->perf_event) {
		log_error("kernel %s: perf_event_open is refused (perf_event_paranoid %d); %s",
			  f->release, f->perf_paranoid, kernel__perf_advice(f));
		return -ENOTSUP;
	}
	return 0;
}
