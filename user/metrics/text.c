/* SPDX-License-Identifier: GPL-2.0-or-later */
/* text: the exposition format: all series of a family together, after its name and help. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "metrics_priv.h"

/* The maximum length of a label's value in bytes: overlong names must not crowd others out. */
#define LABEL_MAX 128

/* ── the format ──────────────────────────────────────────────────────────────────────────── */

/* For text without control characters. */
static void add_escaped(struct buf *out, const char *value, size_t max)
{
	size_t most = out->len + max, left = strlen(value);

	while (left && !out->err) {
		bool escaped = *value == '\\' || *value == '"';
		uint32_t cp;
		size_t len = text__decode(value, left, &cp);

		len = len ? len : 1;
		if (out->len + len + escaped > most)
			return;
		if (escaped)
			buf__addc(out, '\\');
		buf__add(out, value, len);
		value += len;
		left -= len;
	}
}

/* The longest suffix for which add_escaped() writes no more than max bytes. */
static const char *end_of(const char *value, size_t max)
{
	size_t left = strlen(value), need = left;

	for (const char *p = value; *p; p++)
		need += *p == '\\' || *p == '"';
	while (left && need > max) {
		uint32_t cp;
		size_t len = text__decode(value, left, &cp);

		need -= *value == '\\' || *value == '"';
		len = len ? len : 1;
		need -= len;
		value += len;
		left -= len;
	}
	return value;
}

static void add_label(struct buf *out, const char *value, size_t max, bool its_end)
{
	/* it must be UTF-8, and readable */
	char *text = text__escaped(value);

	if (text)
		add_escaped(out, its_end ? end_of(text, max) : text, max);
	else
		out->err = out->err ? out->err : -ENOMEM;
	free(text);
}

void label__add(struct buf *out, const char *value)
{
	add_label(out, value, LABEL_MAX, false);
}

void label__add_end(struct buf *out, const char *value)
{
	add_label(out, value, LABEL_MAX, true);
}

void label__add_whole(struct buf *out, const char *value)
{
	add_label(out, value, SIZE_MAX / 2, false);
}

void family__begin(struct buf *out, const char *name, const char *type, const char *help)
{
	buf__addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void seconds__add(struct buf *out, uint64_t ns)
{
	const uint64_t second = 1000000000;

	buf__addf(out, "%" PRIu64 ".%09" PRIu64, ns / second, ns % second);
}

/* "name{labels" */
static void begin(struct buf *out, const char *name, const struct model_target *t)
{
	buf__addf(out, "%s{%s", name, t->labels);
}

static void end_seconds(struct buf *out, uint64_t ns)
{
	buf__adds(out, "} ");
	seconds__add(out, ns);
	buf__addc(out, '\n');
}

static void end_number(struct buf *out, uint64_t n)
{
	buf__addf(out, "} %" PRIu64 "\n", n);
}

/* ── states ──────────────────────────────────────────────────────────────────────────────── */

/*
 * States that have not occurred yet have series, too: Prometheus takes a series' first value for
 * its beginning, so that the first time in a state would be in no rate. Without any time, as of
 * capabilities that are not known, there is none.
 */
static void write_states(struct buf *out, const char *name, const struct model_target *t,
			 enum lane_kind kind, const struct sum *sums, unsigned n)
{
	uint64_t all = 0;

	for (unsigned i = 0; i < n; i++)
		all += sums[i].shown;
	for (unsigned i = 0; i < n && all; i++) {
		/* only a log alone has this one */
		if (kind == LANE_THREAD && i == ST_SAFE_CALL && !sums[i].shown)
			continue;
		begin(out, name, t);
		buf__addf(out, ",state=\"%s\"", state__name(kind, i));
		end_seconds(out, sums[i].shown);
	}
}

static void write_threads(struct buf *out, const char *name, const struct model_target *t)
{
	write_states(out, name, t, LANE_THREAD, t->thread_ns, ST_MAX);
}

static void write_caps(struct buf *out, const char *name, const struct model_target *t)
{
	write_states(out, name, t, LANE_CAPABILITY, t->cap_ns, CS_MAX);
}

static void write_cap_wait(struct buf *out, const char *name, const struct model_target *t)
{
	begin(out, name, t);
	end_seconds(out, t->thread_ns[ST_CAP_WAIT].shown);
}

/* ── collections ─────────────────────────────────────────────────────────────────────────── */

/* GHC has two generations unless -G asks for others: these have series before the first collection,
 * or it would be in no rate. */
static bool has_generation(const struct model_target *t, unsigned i)
{
	return t->gc[i].count.shown || (t->gc_counted && i < 2);
}

static void begin_generation(struct buf *out, const char *name, const struct model_target *t,
			     unsigned i)
{
	begin(out, name, t);
	if (i == FIGURES_GENERATIONS)
		buf__adds(out, ",generation=\"unknown\"");
	else
		buf__addf(out, ",generation=\"%u\"", i);
}

static void write_gc_count(struct buf *out, const char *name, const struct model_target *t)
{
	for (unsigned i = 0; i <= FIGURES_GENERATIONS; i++) {
		if (!has_generation(t, i))
			continue;
		begin_generation(out, name, t, i);
		end_number(out, t->gc[i].count.shown);
	}
}

static void write_gc_pause(struct buf *out, const char *name, const struct model_target *t)
{
	for (unsigned i = 0; i <= FIGURES_GENERATIONS; i++) {
		if (!has_generation(t, i))
			continue;
		begin_generation(out, name, t, i);
		end_seconds(out, t->gc[i].pause_ns.shown);
	}
}

static void write_gc_sync(struct buf *out, const char *name, const struct model_target *t)
{
	for (unsigned i = 0; i <= FIGURES_GENERATIONS; i++) {
		if (!has_generation(t, i))
			continue;
		begin_generation(out, name, t, i);
		end_seconds(out, t->gc[i].sync_ns.shown);
	}
}

static void write_gc_missed(struct buf *out, const char *name, const struct model_target *t)
{
	begin(out, name, t);
	end_number(out, t->gc_missed.shown);
}

static void write_allocated(struct buf *out, const char *name, const struct model_target *t)
{
	/* the pid's previous program may have been known to allocate */
	if (!t->live_known && !t->allocated_bytes.shown)
		return;
	begin(out, name, t);
	end_number(out, t->allocated_bytes.shown);
}

static void write_live(struct buf *out, const char *name, const struct model_target *t)
{
	if (!t->live_known || t->gc_off || t->ended)
		return;
	begin(out, name, t);
	end_number(out, t->live_bytes);
}

static void write_held(struct buf *out, const char *name, const struct model_target *t)
{
	if (!t->held_bytes || t->gc_off || t->ended)
		return;
	begin(out, name, t);
	end_number(out, t->held_bytes);
}

static void write_haskell_threads(struct buf *out, const char *name, const struct model_target *t)
{
	if (!t->haskell_threads || t->gc_off || t->ended)
		return;
	begin(out, name, t);
	end_number(out, t->haskell_threads);
}

/* ── safe calls ──────────────────────────────────────────────────────────────────────────── */

/* slot NULL: the sum of all places without series. */
static void begin_site(struct buf *out, const char *name, const char *suffix,
		       const struct model_target *t, const struct site_slot *slot)
{
	buf__adds(out, name);
	buf__adds(out, suffix);
	buf__addf(out, "{%s,function=\"", t->labels);
	label__add(out, slot ? slot->function : "[others]");
	buf__adds(out, "\",caller=\"");
	label__add(out, slot ? slot->caller : "");
	/* one function may call another from two places */
	if (slot) {
		buf__adds(out, "\",site=\"");
		label__add_end(out, slot->place);
	}
	buf__addc(out, '"');
	if (slot && slot->interruptible)
		buf__adds(out, ",interruptible=\"true\"");
}

static void write_hist(struct buf *out, const char *name, const struct model_target *t,
		       const struct site_slot *slot, const struct site_sums *sums)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < FIGURES_HIST_BOUNDS; i++) {
		n += sums->hist[i].shown;
		begin_site(out, name, "_bucket", t, slot);
		buf__adds(out, ",le=\"");
		seconds__add(out, 1ULL << (FIGURES_HIST_FIRST_LOG2 + i * FIGURES_HIST_LOG2_STEP));
		buf__adds(out, "\"");
		end_number(out, n);
	}
	n += sums->hist[FIGURES_HIST_BOUNDS].shown;
	begin_site(out, name, "_bucket", t, slot);
	buf__adds(out, ",le=\"+Inf\"");
	end_number(out, n);
	begin_site(out, name, "_sum", t, slot);
	end_seconds(out, sums->wall_ns.shown);
	begin_site(out, name, "_count", t, slot);
	end_number(out, n);
}

static void write_calls(struct buf *out, const char *name, const struct model_target *t)
{
	for (size_t i = 0; i < METRICS_MAX_SITES; i++)
		if (t->sites.slots[i].used)
			write_hist(out, name, t, &t->sites.slots[i], &t->sites.slots[i].sums);
	if (t->sites.has_others)
		write_hist(out, name, t, NULL, &t->sites.others);
}

static void write_call_waits(struct buf *out, const char *name, const struct model_target *t)
{
	begin(out, name, t);
	end_seconds(out, t->sites.cap_wait_ns.shown);
}

/* ── the rest ────────────────────────────────────────────────────────────────────────────── */

static void write_info(struct buf *out, const char *name, const struct model_target *t)
{
	begin(out, name, t);
	buf__addf(out, ",%s", t->info);
	end_number(out, 1);
}

static void write_queued(struct buf *out, const char *name, const struct model_target *t)
{
	if (!t->queued_known || t->ended)
		return;
	begin(out, name, t);
	end_number(out, t->queued);
}

static void write_probes_off(struct buf *out, const char *name, const struct model_target *t)
{
	begin(out, name, t);
	end_seconds(out, t->probes_off_ns);
}

static void write_cost(struct buf *out, const char *name, const struct model_target *t)
{
	begin(out, name, t);
	end_seconds(out, t->cost_ns);
}

static void write_gc_off(struct buf *out, const char *name, const struct model_target *t)
{
	begin(out, name, t);
	end_seconds(out, t->gc_off_ns.shown);
}

static const struct family {
	const char *name, *type, *help;
	void (*write)(struct buf *out, const char *name, const struct model_target *t);
} families[] = {
	{"safescoped_target_info", "gauge",
	 "Processes that are profiled, or ended within the last five minutes; always 1.",
	 write_info},
	{"safescoped_gc_collections_total", "counter",
	 "Finished garbage collections, by the oldest generation collected (3: that one and all "
	 "above).",
	 write_gc_count},
	{"safescoped_gc_missed_total", "counter",
	 "Collections that were not seen, by the runtime's own count: they are not in "
	 "safescoped_gc_collections_total, nor their pauses in safescoped_gc_pause_seconds_total.",
	 write_gc_missed},
	{"safescoped_gc_pause_seconds_total", "counter",
	 "Time the program was paused by garbage collections, from all capabilities stopped to the "
	 "end.",
	 write_gc_pause},
	{"safescoped_gc_sync_seconds_total", "counter",
	 "Time garbage collections waited for the capabilities to stop.", write_gc_sync},
	{"safescoped_allocated_bytes_total", "counter",
	 "Bytes allocated by Haskell threads, as counted by the runtime at the end of collections.",
	 write_allocated},
	{"safescoped_heap_live_bytes", "gauge",
	 "Live bytes after the last collection, as counted by the runtime.", write_live},
	{"safescoped_heap_held_bytes", "gauge",
	 "Bytes the heap held from the system after the last collection but one.", write_held},
	{"safescoped_haskell_threads", "gauge",
	 "Haskell threads after the last major collection; 4096: that many or more.",
	 write_haskell_threads},
	{"safescoped_thread_seconds_total", "counter",
	 "Time of all OS threads of a process, by state.", write_threads},
	{"safescoped_capability_seconds_total", "counter",
	 "Time of all capabilities of a process, by state.", write_caps},
	{"safescoped_capability_wait_seconds_total", "counter",
	 "Time OS threads waited for a capability, without the time they were runnable but had no "
	 "CPU.",
	 write_cap_wait},
	{"safescoped_safe_call_capability_wait_seconds_total", "counter",
	 "Time threads were off the CPU after finished safe calls, until they had a capability: on "
	 "busy CPUs this may be more than safescoped_capability_wait_seconds_total, as it includes "
	 "waiting for a CPU.",
	 write_call_waits},
	{"safescoped_safe_call_seconds", "histogram",
	 "Finished safe foreign calls, by place: the busiest ones of a process, and the sum of all "
	 "others.",
	 write_calls},
	{"safescoped_probes_off_seconds_total", "counter",
	 "Time the probes on safe calls were off because they cost more than --max-overhead or "
	 "safescoped was held up: calls in that time are not counted.",
	 write_probes_off},
	{"safescoped_gc_probes_off_seconds_total", "counter",
	 "Time collections were not counted, because the probes on them cost more than "
	 "--max-overhead and came off for good (then nothing is known of the heap, and at most "
	 "part of the allocation), or because there were more than a million in a window.",
	 write_gc_off},
	{"safescoped_cost_seconds_total", "counter",
	 "Time that safescoped takes from the process, estimated: the traps of the probes, and the "
	 "BPF programs that run for it.",
	 write_cost},
	{"safescoped_run_queue_length", "gauge",
	 "Haskell threads in the run queues of all capabilities, at the last tick of the program's "
	 "timer.",
	 write_queued},
};

int metrics__write(const struct metrics *m, struct buf *out)
{
	struct model_target *t, *next;

	for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
		const struct family *f = &families[i];

		family__begin(out, f->name, f->type, f->help);
		HASH_ITER (hh, m->targets, t, next)
			f->write(out, f->name, t);
	}
	daemon__write(m, out);
	return out->err;
}
