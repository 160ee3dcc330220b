/* SPDX-License-Identifier: GPL-2.0-or-later */
/* daemon: the daemon's own metrics: their names and meanings. */
#include <inttypes.h>
#include <string.h>

#include "metrics_priv.h"

enum unit { PLAIN, NS };

/*
 * To add a metric: an entry of enum metrics_value, its row here, and metrics__set() where the value
 * is known. Rows with the same name are one family and must be adjacent; the first one has the help
 * text.
 */
static const struct {
	const char *name, *label, *type, *help;
	enum unit unit;
} table[METRICS_VALUES] = {
	[METRICS_TARGETS] = {"safescoped_targets", "", "gauge",
			     "Processes that are being profiled.", PLAIN},
	[METRICS_TARGETS_STARTING] = {"safescoped_targets_starting", "", "gauge",
				      "Profiled processes whose runtime is not initialised yet.",
				      PLAIN},
	[METRICS_TARGETS_WAITING] = {"safescoped_targets_waiting", "", "gauge",
				     "Processes that are not profiled, and are looked at again "
				     "later: there was no time "
				     "or no room, or their runtime could not be confirmed.",
				     PLAIN},
	[METRICS_TARGETS_JOINED] = {"safescoped_targets_joined_total", "", "counter",
				    "Processes profiled so far.", PLAIN},
	[METRICS_TARGETS_LEFT_OUT] = {"safescoped_targets_left_out_total", "", "counter",
				      "Processes that were not profiled because their user had "
				      "reached the limit, file descriptors ran out, or their "
				      "runtime is none that can be profiled.",
				      PLAIN},
	[METRICS_TARGETS_MISSED] =
		{"safescoped_targets_missed_total", "", "counter",
		 "Processes of profiled programs that ended before they could be examined.", PLAIN},
	[METRICS_TARGETS_HIDDEN] =
		{"safescoped_targets_hidden", "", "gauge",
		 "Profiled processes without series here, because there are too many.", PLAIN},
	[METRICS_RECORDS] = {"safescoped_records_total", "", "counter",
			     "Records sent by the kernel side.", PLAIN},
	[METRICS_SAMPLES] = {"safescoped_samples_total", "", "counter",
			     "Samples of threads of profiled processes.", PLAIN},
	[METRICS_SAMPLE_EVERY] =
		{"safescoped_sample_every", "", "gauge",
		 "Only every Nth sample is taken, to stay below --max-cpu; this is N.", PLAIN},
	[METRICS_PROBE_HITS] = {"safescoped_probe_hits_total", "", "counter",
				"Probe hits in profiled processes.", PLAIN},
	[METRICS_BPF_NS] = {"safescoped_bpf_seconds_total", "", "counter",
			    "Estimated run time of the BPF programs.", NS},
	[METRICS_CPU_NS] = {"safescoped_cpu_seconds_total", "{process=\"daemon\"}", "counter",
			    "CPU time of safescoped itself, and of its helper processes that have "
			    "ended.",
			    NS},
	[METRICS_HELPERS_NS] = {"safescoped_cpu_seconds_total", "{process=\"helpers\"}", "counter",
				"", NS},
	[METRICS_RESIDENT_BYTES] = {"safescoped_resident_memory_bytes", "", "gauge",
				    "Resident memory of the daemon.", PLAIN},
	[METRICS_START_UNIX_NS] = {"safescoped_session_start_time_seconds", "", "gauge",
				   "When the session began, in seconds since 1970.", NS},
	[METRICS_READ_UNIX_NS] = {"safescoped_figures_time_seconds", "", "gauge",
				  "When these figures were read, in seconds since 1970.", NS},
	[METRICS_WINDOWS] = {"safescoped_windows_total", "", "counter",
			     "Windows of the session that have ended.", PLAIN},
	[METRICS_WINDOWS_DROPPED] =
		{"safescoped_windows_dropped_total", "", "counter",
		 "Windows for which a file could not be written or a push could not be queued.",
		 PLAIN},
	[METRICS_WINDOW_LAG_NS] = {"safescoped_window_lag_seconds", "", "gauge",
				   "Time since the end of the oldest window that is still being "
				   "written (0: there is none).",
				   NS},
	[METRICS_SWITCHED_OFF] = {"safescoped_switched_off", "", "gauge",
				  "1 while the file of --off-file exists and nothing is profiled.",
				  PLAIN},
};

bool daemon__grows(enum metrics_value which)
{
	return !strcmp(table[which].type, "counter");
}

static void add_number(struct buf *out, enum unit unit, uint64_t value)
{
	if (unit == NS)
		seconds__add(out, value);
	else
		buf__addf(out, "%" PRIu64, value);
	buf__addc(out, '\n');
}

static void write_value(const struct metrics *m, unsigned i, const char *before, struct buf *out)
{
	if (!before || strcmp(before, table[i].name) != 0)
		family__begin(out, table[i].name, table[i].type, table[i].help);
	buf__addf(out, "%s%s ", table[i].name, table[i].label);
	add_number(out, table[i].unit, m->values[i]);
}

/* The same for metrics with a label: an entry of enum metrics_group, and its row here. */
static const struct {
	const char *name, *label, *type, *help;
	enum unit unit;
} groups[METRICS_GROUPS] = {
	[METRICS_LOST] = {"safescoped_lost_total", "cause", "counter",
			  "Losses by cause, as in the report.", PLAIN},
	[METRICS_PUSH_DELIVERED] = {"safescoped_push_delivered_total", "url", "counter",
				    "Requests accepted by the server.", PLAIN},
	[METRICS_PUSH_FAILURES] = {"safescoped_push_failures_total", "url", "counter",
				   "Failed attempts, which are retried.", PLAIN},
	[METRICS_PUSH_REFUSED] = {"safescoped_push_refused_total", "url", "counter",
				  "Requests refused for good by the server: they are lost.", PLAIN},
	[METRICS_PUSH_REJECTED] = {"safescoped_push_rejected_profiles_total", "url", "counter",
				   "Profiles in delivered requests that the server rejected.",
				   PLAIN},
	[METRICS_PUSH_DROPPED] = {"safescoped_push_dropped_total", "url", "counter",
				  "Requests lost from the queue: dropped because it was full or "
				  "they could not be opened, or removed by others; and windows "
				  "that could not be queued.",
				  PLAIN},
	[METRICS_PUSH_QUEUED] = {"safescoped_push_queued", "url", "gauge",
				 "Requests waiting in the queue.", PLAIN},
	[METRICS_PUSH_QUEUED_BYTES] = {"safescoped_push_queued_bytes", "url", "gauge",
				       "Size on disk of the requests waiting in the queue.", PLAIN},
	[METRICS_PUSH_LAG_NS] =
		{"safescoped_push_lag_seconds", "url", "gauge",
		 "Time since the oldest profile waiting in the queue began (0: there is none).",
		 NS},
};

static void write_group(const struct metrics *m, enum metrics_group which, struct buf *out)
{
	bool begun = false;

	for (size_t i = 0; i < m->n_labelled; i++) {
		const struct labelled *l = &m->labelled[i];

		if (l->group != which)
			continue;
		if (!begun)
			family__begin(out, groups[which].name, groups[which].type,
				      groups[which].help);
		begun = true;
		buf__addf(out, "%s{%s=\"", groups[which].name, groups[which].label);
		label__add_whole(out, l->label);
		buf__adds(out, "\"} ");
		add_number(out, groups[which].unit, l->value);
	}
}

void daemon__write(const struct metrics *m, struct buf *out)
{
	const char *before = NULL;

	family__begin(out, "safescoped_build_info", "gauge", "The version; always 1.");
	buf__adds(out, "safescoped_build_info{version=\"" SAFESCOPED_VERSION "\"} 1\n");
	for (unsigned i = 0; i < METRICS_VALUES; i++) {
		if (!m->known[i])
			continue;
		write_value(m, i, before, out);
		before = table[i].name;
	}
	for (unsigned i = 0; i < METRICS_GROUPS; i++)
		write_group(m, (enum metrics_group)i, out);
}
