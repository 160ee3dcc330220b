/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --list: the GHC processes of this host, and what can be found out about each from the outside. */
#include "modes.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "base/base.h"
#include "confine/caps.h"
#include "kernel/kernel.h"
#include "process/cgroup.h"
#include "process/proc.h"
#include "process/select.h"
#include "target/sources.h"

#define LIST_MAX   65536
#define NO_PROGRAM "no GHC program runs here"

struct row {
	pid_t pid, ns_pid;
	char comm[16];
	char *exe;
	char user[32];
	char ghc[32], way[32];
	bool version_known;
	uint32_t capabilities;
	const char *linking, *symbols;
	unsigned names; /* target__name_sources() */
	uint32_t threads;
	uint64_t cpu_ns; /* CPU time used so far */
	char eventlog[256];
	const char *profilable; /* "yes", "not yet", "no" */
	char why[512];
	struct cgroup cgroup;
};

struct list {
	const struct select_rules *select;
	struct target_cache *cache;
	struct row *rows;
	size_t n, cap;
};

/* ── looking ─────────────────────────────────────────────────────────────────────────────── */

static void name_user(uid_t uid, char *out, size_t size)
{
	const struct passwd *pw = getpwuid(uid);

	if (pw)
		snprintf(out, size, "%s", pw->pw_name);
	else
		snprintf(out, size, "%u", uid);
}

/* Sources of names for a process's Haskell code, in the order in which they are consulted. */
static const struct {
	enum name_source source;
	const char *title, *key;
} sources[] = {
	{NAME_IPE, "info table map", "ipe"}, {NAME_DWARF, "DWARF", "dwarf"},
	{NAME_EXACT, "symbols", "exact"},    {NAME_ARCHIVE, "archives", "archive"},
	{NAME_MODULE, "modules", "module"},  {NAME_DESCRIPTION, "descriptions", "description"},
};

static int describe(struct row *r, struct target *target, enum target_verdict verdict)
{
	const struct target_info *info = target__info(target);
	struct target_traits traits;

	target__traits(target, MODES_TRAITS_TIMEOUT_MS, &traits);
	r->pid = info->pid;
	r->ns_pid = info->ns_pid;
	memcpy(r->comm, info->comm, sizeof(r->comm));
	r->exe = strdup(info->exe);
	if (!r->exe)
		return -ENOMEM;
	/* the one that --user matches */
	name_user(target__account(target), r->user, sizeof(r->user));
	snprintf(r->ghc, sizeof(r->ghc), "%s", info->ghc_version);
	snprintf(r->way, sizeof(r->way), "%s", info->way);
	r->version_known = info->version_known;
	r->capabilities = info->capabilities;
	r->linking = traits.linking;
	r->symbols = traits.symbols;
	r->names = target__name_sources(target);
	r->threads = traits.threads;
	memcpy(r->eventlog, traits.eventlog, sizeof(r->eventlog));
	r->profilable = verdict == TARGET_OK ? "yes" : verdict == TARGET_REFUSED ? "no" : "not yet";
	if (verdict == TARGET_NOT_READY)
		snprintf(r->why, sizeof(r->why), "its runtime is not initialised");
	return 0;
}

/* A process about which nothing can be found out is listed nevertheless, with the reason. */
static int describe_refused(struct row *r, pid_t pid)
{
	r->pid = r->ns_pid = pid;
	r->linking = r->symbols = "";
	r->profilable = "no";
	r->exe = strdup("");
	return r->exe ? 0 : -ENOMEM;
}

static int on_process(void *ctx, pid_t pid)
{
	struct list *list = ctx;
	struct target_opts opts = {.cache = list->cache};
	enum target_verdict verdict;
	struct proc_stat stat;
	struct target *target;
	struct row *r;
	int err;

	if (select__wants(list->select, pid) <= 0)
		return 0;
	err = ARRAY_RESERVE(list->rows, list->cap, list->n + 1, LIST_MAX);
	if (err)
		return err;
	r = &list->rows[list->n];
	memset(r, 0, sizeof(*r));
	/* left empty if it cannot be read */
	(void)cgroup__of(pid, &r->cgroup);
	if (proc__stat(pid, 0, &stat) == 0)
		r->cpu_ns = proc__ticks_to_ns(stat.cpu_ticks);
	opts.reason = r->why;
	opts.reason_size = sizeof(r->why);
	err = target__open(pid, &opts, &target, &verdict);
	/* it has ended, or become another program */
	if (err == -ESRCH || err == -ENOEXEC)
		return 0;
	if (err) {
		err = describe_refused(r, pid);
	} else {
		err = describe(r, target, verdict);
		target__free(target);
	}
	list->n += !err;
	return err;
}

/* As in reports: the process with the most CPU time comes first. */
static int by_cpu(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return CMP(y->cpu_ns, x->cpu_ns) ?: CMP(x->pid, y->pid);
}

/* ── printing ────────────────────────────────────────────────────────────────────────────── */

/* The first source to be consulted; "" if there is none. */
static const char *first_source(const struct row *r)
{
	for (size_t i = 0; i < ARRAY_SIZE(sources); i++)
		if (r->names & 1U << sources[i].source)
			return sources[i].title;
	return "";
}

static void put_row(struct table *t, const struct row *r)
{
	table__cellf(t, "%d", r->pid);
	if (r->ns_pid != r->pid)
		table__cellf(t, "%d", r->ns_pid);
	else
		table__cell(t, "");
	table__cell(t, r->user);
	table__cell(t, r->comm);
	table__cell(t, human__duration(r->cpu_ns).s);
	table__cellf(t, "%s%s", r->ghc, r->version_known || !r->ghc[0] ? "" : "?");
	table__cell(t, r->way);
	if (r->capabilities)
		table__cellf(t, "%u", r->capabilities);
	else
		table__cell(t, "");
	table__cellf(t, "%u", r->threads);
	table__cell(t, r->linking);
	table__cell(t, r->symbols);
	table__cell(t, first_source(r));
	table__cell(t, r->eventlog[0] ? "yes" : "no");
	table__cell(t, r->profilable);
}

/* Where the process runs, which is too long for a column; printed below the table. */
static void put_place(const struct row *r, FILE *out)
{
	char service[2 * sizeof(r->cgroup.service)], container[2 * sizeof(r->cgroup.container)];

	text__escape(r->cgroup.service, strlen(r->cgroup.service), service, sizeof(service));
	text__escape(r->cgroup.container, strlen(r->cgroup.container), container,
		     sizeof(container));
	fprintf(out, "  %d:%s%s%s%s%s%s\n", r->pid, *service ? " " : "", service,
		*container ? " container " : "", container, r->cgroup.pod[0] ? " pod " : "",
		r->cgroup.pod);
}

static void put_reason(const struct row *r, FILE *out)
{
	char why[2 * sizeof(r->why)];

	text__escape(r->why, strlen(r->why), why, sizeof(why));
	fprintf(out, "\n  %d: %s\n", r->pid, why);
}

static int print_table(const struct list *list, FILE *out)
{
	static const struct table_column cols[] = {
		{"PID", COL_RIGHT, NULL, 0},	 {"inside", COL_RIGHT, NULL, 0},
		{"user", COL_LEFT, NULL, 0},	 {"command", COL_LEFT, NULL, 0},
		{"CPU", COL_RIGHT, NULL, 0},	 {"GHC", COL_LEFT, NULL, 0},
		{"way", COL_LEFT, NULL, 0},	 {"caps", COL_RIGHT, NULL, 0},
		{"threads", COL_RIGHT, NULL, 0}, {"linking", COL_LEFT, NULL, 0},
		{"symbols", COL_LEFT, NULL, 0},	 {"names by", COL_LEFT, NULL, 0},
		{"eventlog", COL_LEFT, NULL, 0}, {"profile", COL_LEFT, NULL, 0},
	};
	unsigned width = out == stdout ? output__page_width(STDOUT_FILENO) : 0;
	bool colour = out == stdout && output__has_colour(output__terminal_width(STDOUT_FILENO));
	struct table *t;
	int err;

	if (!list->n) {
		fprintf(out, NO_PROGRAM "%s\n",
			list->select->n ? " that matches these options" : "");
		return 0;
	}
	err = table__new(cols, ARRAY_SIZE(cols), &t);
	if (err)
		return err;
	for (size_t i = 0; i < list->n; i++)
		put_row(t, &list->rows[i]);
	err = table__print(t, out, width, colour);
	table__free(t);
	for (size_t i = 0; !err && i < list->n; i++)
		if (list->rows[i].cgroup.container[0] || list->rows[i].cgroup.service[0])
			put_place(&list->rows[i], out);
	for (size_t i = 0; !err && i < list->n; i++)
		if (list->rows[i].why[0])
			put_reason(&list->rows[i], out);
	return err;
}

static bool put_string(cJSON *object, const char *key, const char *s, bool null_if_empty)
{
	char *clean;
	bool ok;

	if (null_if_empty && !s[0])
		return cJSON_AddNullToObject(object, key);
	clean = utf8__clean(s);
	ok = clean && cJSON_AddStringToObject(object, key, clean);
	free(clean);
	return ok;
}

static bool put_number(cJSON *object, const char *key, uint32_t n, bool null_if_0)
{
	return null_if_0 && !n ? cJSON_AddNullToObject(object, key) != NULL
			       : cJSON_AddNumberToObject(object, key, n) != NULL;
}

static bool put_sources(cJSON *object, unsigned names)
{
	cJSON *array = cJSON_AddArrayToObject(object, "names");
	bool ok = array != NULL;

	for (size_t i = 0; ok && i < ARRAY_SIZE(sources); i++)
		if (names & 1U << sources[i].source)
			ok = cJSON_AddItemToArray(array, cJSON_CreateString(sources[i].key));
	return ok;
}

static bool put_process(cJSON *array, const struct row *r)
{
	cJSON *o = cJSON_CreateObject(), *ghc;

	if (!o || !cJSON_AddItemToArray(array, o)) {
		cJSON_Delete(o);
		return false;
	}
	if (!put_number(o, "pid", (uint32_t)r->pid, false) ||
	    !put_number(o, "ns_pid", (uint32_t)r->ns_pid, false) ||
	    !put_string(o, "comm", r->comm, false) || !put_string(o, "exe", r->exe, true) ||
	    !put_string(o, "user", r->user, true))
		return false;
	ghc = cJSON_AddObjectToObject(o, "ghc");
	return ghc && put_string(ghc, "version", r->ghc, true) &&
	       cJSON_AddBoolToObject(ghc, "version_known", r->version_known) &&
	       put_string(ghc, "way", r->way, true) &&
	       put_number(o, "capabilities", r->capabilities, true) &&
	       put_number(o, "threads", r->threads, true) &&
	       cJSON_AddNumberToObject(o, "cpu_ns", (double)r->cpu_ns) &&
	       put_string(o, "linking", r->linking, true) &&
	       put_string(o, "symbols", r->symbols, true) && put_sources(o, r->names) &&
	       put_string(o, "eventlog", r->eventlog, true) &&
	       put_string(o, "cgroup", r->cgroup.path, true) &&
	       put_string(o, "container", r->cgroup.container, true) &&
	       put_string(o, "pod", r->cgroup.pod, true) &&
	       put_string(o, "service", r->cgroup.service, true) &&
	       put_string(o, "profilable", r->profilable, false) &&
	       put_string(o, "why", r->why, true);
}

static int print_json(const struct list *list, FILE *out)
{
	cJSON *root = cJSON_CreateObject(), *about, *all;
	char *text = NULL;
	bool ok = root != NULL;

	about = ok ? cJSON_AddObjectToObject(root, "safescope") : NULL;
	ok = about && cJSON_AddStringToObject(about, "version", SAFESCOPED_VERSION) &&
	     cJSON_AddNumberToObject(about, "schema", 1);
	all = ok ? cJSON_AddArrayToObject(root, "processes") : NULL;
	ok = all != NULL;
	for (size_t i = 0; ok && i < list->n; i++)
		ok = put_process(all, &list->rows[i]);
	if (ok)
		text = cJSON_Print(root);
	cJSON_Delete(root);
	if (!text)
		return -ENOMEM;
	json__put_text(out, text);
	fputc('\n', out);
	cJSON_free(text);
	return 0;
}

static int print_to(const struct list *list, const struct options *options, FILE *out)
{
	int err = options->output.formats[0] == &export_json ? print_json(list, out)
							     : print_table(list, out);

	return err ? err : output__flush(out);
}

/* Keeps a user's file, unless it is empty or a list of ours. -EEXIST, with a log line. */
static int may_replace(const char *path, const struct options *options)
{
	char head[32] = "";
	ssize_t n;
	int fd;

	if (options->output.formats[0] == &export_json)
		return output__may_replace(path, &export_json);
	if (fd__open_regular(path, &fd))
		return 0;
	n = read(fd, head, sizeof(head) - 1);
	fd__close(&fd);
	if (n <= 0 || !strncmp(head + strspn(head, " "), "PID ", 4) ||
	    !strncmp(head, NO_PROGRAM, strlen(NO_PROGRAM)))
		return 0;
	log_error("%s: already exists and is not a list by safescoped; not replacing it: choose "
		  "another name, or remove it",
		  path);
	return -EEXIST;
}

static int print(const struct list *list, const struct options *options)
{
	const char *path = options->output.path;
	struct outfile *out;
	uid_t owner;
	gid_t group;
	int err;

	if (!path || !strcmp(path, "-")) {
		err = print_to(list, options, stdout);
		if (err)
			log_error("standard output: %s", strerror(-err));
		return err;
	}
	err = may_replace(path, options);
	if (!err)
		err = output__owner(&owner, &group);
	if (!err)
		err = outfile__open(path, owner, group, &out);
	if (err)
		return err;
	err = print_to(list, options, outfile__stream(out));
	if (!err)
		return outfile__commit(out);
	log_error("%s: cannot be written: %s; no file was left", path, strerror(-err));
	outfile__abort(out);
	return err;
}

static bool sees_all(void)
{
	/* either is enough to read files; root in a container often has only the second */
	const uint64_t reads = CAP_BIT_OF(CAP_DAC_READ_SEARCH) | CAP_BIT_OF(CAP_DAC_OVERRIDE);
	uint64_t have = 0;

	return proc__has_host_users() &&
	       (caps__permitted(&have) || (have & CAP_BIT_OF(CAP_SYS_PTRACE) && have & reads));
}

int list__run(const struct options *options)
{
	struct list list = {.select = &options->select};
	int err;

	if (!proc__is_mounted("/proc", PROC_SUPER_MAGIC)) {
		log_error("/proc: " KERNEL_NO_PROC);
		return EXIT_FAILED;
	}
	fd__raise_limit();
	err = target_cache__new(&list.cache);
	if (!err &&
	    target_cache__open_archives(list.cache, options->archives, options->n_archives)) {
		target_cache__free(list.cache);
		return EXIT_FAILED;
	}
	if (!err)
		err = discover__all(list.cache, NULL, on_process, &list);
	if (err) {
		log_error("cannot list the processes: %s", strerror(-err));
	} else {
		if (!sees_all())
			log_info("%s only this user's processes are visible",
				 proc__has_host_users() ? "without root, or CAP_SYS_PTRACE and "
							  "CAP_DAC_READ_SEARCH,"
							: "in a user namespace");
		if (list.n)
			qsort(list.rows, list.n, sizeof(*list.rows), by_cpu);
		err = print(&list, options);
	}
	for (size_t i = 0; i < list.n; i++)
		free(list.rows[i].exe);
	free(list.rows);
	target_cache__free(list.cache);
	return err ? EXIT_FAILED : EXIT_COMPLETE;
}
