/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --doctor: what this kernel, these privileges and a process allow, and what is missing for the
 * rest. */
#include "modes.h"

#include <ctype.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "kernel/kernel.h"
#include "process/proc.h"
#include "rts/ghc_version.h"
#include "target/target.h"

enum need { NEEDED, OPTIONAL };

struct doctor {
	bool lacking; /* something needed is missing */
};

__attribute__((format(printf, 5, 6))) static void report(struct doctor *d, bool ok, enum need need,
							 const char *what, const char *fmt, ...)
{
	char text[512], shown[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	/* a process chooses its own name and the paths of its files */
	text__escape(text, strlen(text), shown, sizeof(shown));
	printf("%-8s %-22s %s\n", ok ? "ok" : need == NEEDED ? "MISSING" : "missing", what, shown);
	if (!ok && need == NEEDED)
		d->lacking = true;
}

/* ── this kernel and these privileges ────────────────────────────────────────────────────── */

struct cap_use {
	const char *name, *use;
	int cap;
	enum need need;
};

/* All of these but CAP_SYS_ADMIN, which is nearly root, are enough. */
static const struct cap_use caps[] = {
	{"CAP_BPF", "loads the BPF programs", CAP_BPF, NEEDED},
	{"CAP_PERFMON", "takes samples, and attaches to the scheduler", CAP_PERFMON, NEEDED},
	{"CAP_SYS_PTRACE", "reads other processes' memory", CAP_SYS_PTRACE, NEEDED},
	{"CAP_DAC_READ_SEARCH",
	 "opens the memory of other users' processes, and executables that only their owner may "
	 "read",
	 CAP_DAC_READ_SEARCH, OPTIONAL},
	{"CAP_CHECKPOINT_RESTORE",
	 "opens the files that a process maps even if they were renamed or removed",
	 CAP_CHECKPOINT_RESTORE, OPTIONAL},
	{"CAP_SYSLOG", "names kernel functions", CAP_SYSLOG, OPTIONAL},
	{"CAP_LEASE", "keeps probes in programs that are not running at the moment", CAP_LEASE,
	 OPTIONAL},
	{"CAP_SYS_ADMIN", "measures the run time of the BPF programs", CAP_SYS_ADMIN, OPTIONAL},
};

/* The command that gives the program the capabilities it lacks, for everyone who may run it. */
static void report_setcap(struct doctor *d, bool lacking)
{
	char line[512] = "setcap ", self[PATH_MAX];
	size_t len = strlen(line);
	bool known = proc__exe(getpid(), self, sizeof(self)) == 0;
	char *word = known ? text__shell_word(self) : NULL;

	for (size_t i = 0; i < ARRAY_SIZE(caps); i++)
		if (caps[i].cap != CAP_SYS_ADMIN)
			len += (size_t)snprintf(line + len, sizeof(line) - len, "%s%s",
						i ? "," : "", caps[i].name);
	for (char *c = line; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	report(d, !lacking, OPTIONAL, "setcap", "%s%s+ep %s",
	       lacking ? "grants all of these to an ordinary user: sudo " : "these, without root: ",
	       line, word ? word : "/usr/local/bin/safescoped");
	free(word);
}

static void report_caps(struct doctor *d, const struct kernel_features *f)
{
	bool lacking = false;

	for (size_t i = 0; i < ARRAY_SIZE(caps); i++) {
		bool has = kernel__has_cap(f, caps[i].cap);

		lacking |= !has && caps[i].cap != CAP_SYS_ADMIN;
		report(d, has, caps[i].need, caps[i].name, "%s%s", caps[i].use,
		       has			      ? ""
		       : !f->host_users		      ? "; not in this user namespace"
		       : caps[i].cap == CAP_SYS_ADMIN ? "; only root has it (sudo safescoped …)"
						      : "; run as root (sudo safescoped …), or "
							"see setcap");
	}
	if (f->host_users)
		report_setcap(d, lacking);
}

static void report_uprobes(struct doctor *d, const struct kernel_features *f)
{
	report(d, f->uprobes, NEEDED, "uprobes", "%s",
	       f->uprobes ? "count the safe calls" : "needs a kernel built with CONFIG_UPROBES");
	report(d, f->uprobe_multi, OPTIONAL, "uprobe_multi", "%s",
	       f->uprobe_multi ? "used: attaching and detaching take milliseconds"
	       : kernel__has_cap(f, CAP_BPF) && kernel__has_cap(f, CAP_PERFMON)
		       ? "not available; using perf uprobes, which take 100 ms each to detach; "
			 "needs Linux 6.6.35, 6.9.5 or later"
		       : "cannot be tried without CAP_BPF and CAP_PERFMON");
	report(d, f->perf_uprobes, OPTIONAL, "perf uprobes", "%s",
	       f->perf_uprobes ? (f->uprobe_multi ? "not used: uprobe_multi is available" : "used")
	       : f->sys	       ? "needs a kernel built with CONFIG_UPROBE_EVENTS"
			       : "cannot be tried without /sys");
}

/* Only the kernel's verifier can decide this for certain. */
static void report_programs(struct doctor *d, const struct kernel_features *f)
{
	const struct kernel_opts opts = {
		.frequency_hz = 1, .max_overhead_percent = 2, .features = f};
	struct kernel *kernel;
	int err = kernel__open(&opts, &kernel);

	report(d, !err, NEEDED, "BPF programs", "%s",
	       err ? "the kernel refuses them (see above; -vv shows the verifier's log)"
		   : "the kernel accepts them");
	if (!err)
		kernel__close(kernel);
}

/* Values unknown to the upstream kernel: with some of them CAP_PERFMON is not enough. */
static bool asks_for_more(const struct kernel_features *f)
{
	return f->perf_paranoid > 2 && !f->perf_event && !kernel__has_cap(f, CAP_SYS_ADMIN);
}

static void report_sysctls(struct doctor *d, const struct kernel_features *f)
{
	if (f->perf_paranoid > -100)
		report(d, true, OPTIONAL, "perf_event_paranoid", "%d%s", f->perf_paranoid,
		       asks_for_more(f) ? "; above 2, some distributions' kernels require "
					  "CAP_SYS_ADMIN: sysctl -w kernel.perf_event_paranoid=2"
		       : kernel__has_cap(f, CAP_PERFMON) ? " (CAP_PERFMON overrides it)"
							 : "");
	else
		report(d, true, OPTIONAL, "perf_event_paranoid", "cannot be read");
	if (f->kptr_restrict > -100)
		report(d, f->kptr_restrict < 2, OPTIONAL, "kptr_restrict", "%d%s", f->kptr_restrict,
		       f->kptr_restrict < 2 ? ""
					    : "; hides the addresses of kernel functions, which "
					      "--kernel-stacks needs for their names: "
					      "sysctl -w kernel.kptr_restrict=1");
}

static void report_kernel(struct doctor *d, const struct kernel_features *f)
{
	bool can_try = kernel__has_cap(f, CAP_BPF) && kernel__has_cap(f, CAP_PERFMON);
	const char *untried = "cannot be tried without CAP_BPF and CAP_PERFMON";
	bool locked = strcmp(f->lockdown, "confidentiality") == 0;

	report(d, f->release[0], NEEDED, "kernel", "Linux %s", f->release);
	/* all the rest is read from it */
	if (!f->proc) {
		report(d, false, NEEDED, "/proc", KERNEL_NO_PROC);
		return;
	}
	report(d, f->host_pids, NEEDED, "PID namespace", "%s",
	       f->host_pids ? "the host's"
			    : "not the host's, whose PIDs the kernel reports; run safescoped in "
			      "the host's (docker run --pid=host …, hostPID: true in Kubernetes)");
	report(d, f->host_clocks, NEEDED, "time namespace", "%s",
	       f->host_clocks ? "the host's clocks"
			      : "its clocks are not the host's, which the kernel uses for its "
				"timestamps; run safescoped outside it");
	report(d, f->host_users, NEEDED, "user namespace", "%s",
	       f->host_users ? "the host's" : KERNEL_OTHER_USERS);
	report_caps(d, f);
	report(d, f->btf, NEEDED, "BTF", "%s",
	       f->btf ? "/sys/kernel/btf/vmlinux" : kernel__btf_advice(f));
	report(d, f->ringbuf, NEEDED, "ring buffer", "%s",
	       f->ringbuf ? "BPF_MAP_TYPE_RINGBUF"
	       : can_try  ? kernel__ringbuf_advice(f)
			  : untried);
	report_uprobes(d, f);
	report(d, f->perf_event, NEEDED, "perf_event", "%s%s",
	       f->perf_event ? "samples are taken by the CPU clock"
	       : can_try     ? "perf_event_open is refused; "
			     : untried,
	       !f->perf_event && can_try ? kernel__perf_advice(f) : "");
	report(d, f->sched, NEEDED, "tracepoints", "%s",
	       f->sched	 ? "sched_switch, sched_wakeup, sched_process_fork, _exec and _exit"
	       : !f->btf ? "cannot be tried without BTF"
	       : can_try ? "the kernel's BTF lacks the scheduler's tracepoints; needs Linux 6.1 or "
			   "later"
			 : untried);
	report(d, !locked, NEEDED, "lockdown", "%s%s",
	       f->lockdown[0]  ? f->lockdown
	       : f->securityfs ? "none (not built in)"
			       : "not known: securityfs is not mounted (at /sys/kernel/security)",
	       locked ? "; it forbids reading memory from BPF: boot without "
			"lockdown=confidentiality"
		      : "");
	report_sysctls(d, f);
	if (!d->lacking)
		report_programs(d, f);
}

/* ── a process ───────────────────────────────────────────────────────────────────────────── */

static void report_probe(struct doctor *d, const char *name, const struct target_probe *p,
			 const char *file, const char *remedy)
{
	if (p->found == FOUND_TICKER)
		report(d, true, OPTIONAL, name,
		       "without a probe, from the thread ghc_ticker going to sleep");
	else if (p->found == FOUND_NONE)
		report(d, false, OPTIONAL, name, "not found: %s; symbols would help (--symbols)",
		       remedy);
	else
		report(d, true, OPTIONAL, name, "by %s; probe at %s+0x%llx: %s, %s",
		       rts_found__name(p->found), file, (unsigned long long)p->offset, p->insn,
		       p->emulated ? "which the kernel emulates"
				   : "which the kernel single-steps: each hit costs more");
}

static void report_my_task(struct doctor *d, const struct target_info *info, bool proved)
{
	char place[64];

	snprintf(place, sizeof(place), "at fs base %+d", info->wire.my_task_tls);
	if (info->wire.my_task_module)
		snprintf(place, sizeof(place), "%d bytes into block %u of the thread's DTV",
			 info->wire.my_task_tls, info->wire.my_task_module);
	report(d, proved, OPTIONAL, "my_task", "%s, %s", proved ? place : "not found",
	       proved ? "proved by the Tasks' own ids" : "threads cannot be told apart");
}

static void report_found(struct doctor *d, struct target *target)
{
	const struct target_info *info = target__info(target);
	struct target_confirmed c;

	target__confirmed(target, &c);
	report(d, true, NEEDED, "GHC runtime", "%s, %s, in %s",
	       info->ghc_version[0] ? info->ghc_version : "version not known",
	       info->way[0] ? info->way : "way not known", c.rts_file);
	if (info->layout_checked) {
		report(d, true, NEEDED, "layout",
		       "%s; confirmed live by %u capabilit%s, %u Task%s, "
		       "%u Haskell thread%s; Task %s",
		       info->version_known ? "of a known version"
					   : "unknown version, offsets confirmed live",
		       c.capabilities, c.capabilities == 1 ? "y" : "ies", c.tasks,
		       c.tasks == 1 ? "" : "s", c.tsos, c.tsos == 1 ? "" : "s", c.task_layout);
		report(d, info->caps_found != FOUND_NONE, OPTIONAL, "capabilities", "%u, by %s",
		       info->capabilities, rts_found__name(info->caps_found));
		if (info->threaded)
			report_my_task(d, info, c.tls);
	}
	if (c.votes)
		report(d, true, OPTIONAL, "call sites", "%u safe calls agree, %u on anything else",
		       c.votes, c.runner_up);
	report_probe(d, "suspendThread", &info->suspend, c.rts_file, "safe calls are not counted");
	report_probe(d, "resumeThread", &info->resume, c.rts_file, "safe calls are not counted");
	report_probe(d, "tick", &info->tick, c.rts_file, "no ticks");
	if (info->threaded)
		report_probe(d, "GC sync", &info->gc_sync, c.rts_file,
			     "no waiting times before collections");
	report_probe(d, "GC start", &info->gc_start, c.rts_file, "no exact GC pauses");
	report_probe(d, "GC end", &info->gc_end, c.rts_file, "no exact GC pauses");
	report(d, c.stgrun_ret, OPTIONAL, "StgRun", "%s",
	       c.stgrun_ret ? "found: C code called from Haskell is recognised reliably"
			    : "not found: C code called from Haskell is recognised by registers");
}

/* Only what has reached the disk by the end of a session can be joined with it. */
static void report_eventlog(struct doctor *d, const char *path, const char *ghc)
{
	bool old = ghc[0] && ghc_version__of(ghc) < GHC_VERSION(9, 2, 0);

	if (!path[0])
		report(d, false, OPTIONAL, "eventlog", "none; +RTS -l makes the program write one");
	else if (old)
		report(d, true, OPTIONAL, "eventlog",
		       "%s; it lags: this GHC writes a buffer only when it is full; from 9.2 on, "
		       "+RTS --eventlog-flush-interval=1 writes every second",
		       path);
	else
		report(d, true, OPTIONAL, "eventlog",
		       "%s; it lags unless the program runs with +RTS --eventlog-flush-interval=1",
		       path);
}

static void report_traits(struct doctor *d, struct target *target)
{
	struct target_traits traits;
	bool named;

	target__traits(target, MODES_TRAITS_TIMEOUT_MS, &traits);
	named = strcmp(traits.symbols, "none") != 0;
	report(d, true, OPTIONAL, "linking", "%s",
	       traits.linking[0] ? traits.linking : "not known");
	report(d, named, OPTIONAL, "symbols", "%s%s", traits.symbols,
	       named ? "" : "; --symbols FILE or a debug file in /usr/lib/debug provides names");
	report_eventlog(d, traits.eventlog, target__info(target)->ghc_version);
}

static void report_process(struct doctor *d, const struct options *options,
			   struct target_cache *cache, pid_t pid)
{
	char why[512] = "";
	const struct target_opts opts = {
		.cache = cache,
		.symbols_path = options->symbols,
		.force = options->force,
		.reason = why,
		.reason_size = sizeof(why),
	};
	enum target_verdict verdict;
	const struct target_info *info;
	struct target *target;

	printf("\n");
	if (target__open(pid, &opts, &target, &verdict)) {
		printf("pid %d\n", pid);
		report(d, false, NEEDED, "process", "%s", why);
		return;
	}
	info = target__info(target);
	printf("pid %d", pid);
	if (info->ns_pid != pid)
		printf(" (%d inside)", info->ns_pid);
	printf("\n");
	report(d, true, NEEDED, "process", "%s, %s", info->comm, path__base(info->exe));
	report_found(d, target);
	report_traits(d, target);
	report(d, verdict != TARGET_REFUSED, NEEDED, "can be profiled", "%s",
	       verdict == TARGET_OK	   ? "yes"
	       : verdict == TARGET_REFUSED ? why
					   : "as soon as its runtime is initialised");
	target__free(target);
}

int doctor__run(const struct options *options)
{
	struct doctor d = {};
	struct target_cache *cache;
	struct kernel_features f;
	int err;

	fd__raise_limit();
	err = target_cache__new(&cache);
	if (err) {
		log_error("cannot begin: %s", strerror(-err));
		return EXIT_FAILED;
	}
	kernel__features(&f);
	report_kernel(&d, &f);
	for (size_t i = 0; f.proc && i < options->n_pids; i++)
		report_process(&d, options, cache, options->pids[i]);
	target_cache__free(cache);
	err = output__flush(stdout);
	if (err) {
		log_error("standard output: %s", strerror(-err));
		return EXIT_FAILED;
	}
	return d.lacking ? EXIT_FAILED : EXIT_COMPLETE;
}
