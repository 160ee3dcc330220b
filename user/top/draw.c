/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Draws a frame: the processes with their states, and the functions, calls and collections of the
 * selected one. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "export/faces.h"
#include "top_priv.h"

#define LINE_MAX_BYTES 8192
#define BOLD	       "\033[1m"
#define REVERSE	       "\033[7m"
#define PLAIN	       "\033[0m"
#define LEGEND_COLUMNS 3
#define LEGEND_WIDTH   22

/* A screen being drawn: lines are cut at the terminal's width, and those below its last row are
 * dropped. */
struct sheet {
	const struct top_view *view;
	struct buf *out;
	unsigned row;
	size_t left; /* columns left in this line */
};

/* ── lines ───────────────────────────────────────────────────────────────────────────────── */

/* Writes text, escaped, as far as there is room, padded to `columns` (0: unpadded). A column of
 * numbers, which are on the right, is there as a whole or not at all: a cut number is another one.
 */
static void put(struct sheet *s, const char *text, size_t columns, bool right)
{
	char safe[LINE_MAX_BYTES];
	size_t len, width = 0, room, at = 0, pad;

	if (right && columns > s->left) {
		s->left = 0;
		return;
	}
	text__escape(text, strlen(text), safe, sizeof(safe));
	len = strlen(safe);
	room = columns ? MIN(columns, s->left) : s->left;
	while (at < len) {
		uint32_t cp;
		size_t bytes = text__decode(safe + at, len - at, &cp);
		size_t wide = bytes ? text__width_of(cp) : 1;

		if (width + wide > room)
			break;
		width += wide;
		at += bytes ? bytes : 1;
	}
	pad = columns ? room - width : 0;
	for (size_t i = 0; right && i < pad; i++)
		buf__addc(s->out, ' ');
	buf__add(s->out, safe, at);
	for (size_t i = 0; !right && i < pad; i++)
		buf__addc(s->out, ' ');
	s->left -= width + pad;
}

static void gap(struct sheet *s)
{
	put(s, "", 1, false);
}

static bool begin(struct sheet *s, const char *how)
{
	if (s->row >= s->view->rows)
		return false;
	s->left = s->view->columns;
	buf__addf(s->out, "\033[%u;1H%s", ++s->row, how);
	return true;
}

/* Clears the rest of the line in its colours. */
static void end(struct sheet *s)
{
	buf__adds(s->out, "\033[K" PLAIN);
}

static void number(struct sheet *s, size_t columns, const char *fmt, double v)
{
	char text[32];

	/* NOLINTNEXTLINE(clang-diagnostic-format-nonliteral): constants of this file */
	snprintf(text, sizeof(text), fmt, v);
	put(s, text, columns, true);
}

/* A rate per second, marked if it was counted for only a part of the time, or not at all. */
static void counted(struct sheet *s, size_t columns, double v, uint8_t seen)
{
	char text[32];

	snprintf(text, sizeof(text), "%s%.0f", seen == TOP_SEEN_SOME ? "≥ " : "", v);
	put(s, seen == TOP_SEEN_NONE ? "–" : text, columns, true);
}

/* n per second. */
static double rate(const struct top_frame *frame, uint64_t n)
{
	return (double)n * 1e9 / (double)frame->length_ns;
}

/* ── processes ───────────────────────────────────────────────────────────────────────────── */

static uint64_t sorted_by(const struct top_process *p, enum top_sort sort)
{
	switch (sort) {
	case TOP_BY_CALLS:
		return p->call_ns;
	case TOP_BY_GC:
		return p->gc_ns;
	case TOP_BY_ALLOC:
		return p->alloc_rate;
	default:
		return p->cpu_ns;
	}
}

static int cmp_processes(const void *pa, const void *pb, void *arg)
{
	const struct top_process *a = *(const struct top_process *const *)pa,
				 *b = *(const struct top_process *const *)pb;
	const struct top_view *view = arg;
	int diff = view->sort == TOP_BY_NAME
			   ? strcmp(a->comm, b->comm)
			   : CMP(sorted_by(b, view->sort), sorted_by(a, view->sort));

	return diff ?: CMP(a->pid, b->pid);
}

size_t top__order(const struct top_view *view, const struct top_process **order)
{
	struct top_view by = *view;
	size_t n = view->frame ? view->frame->n_processes : 0;

	for (size_t i = 0; i < n; i++)
		order[i] = &view->frame->processes[i];
	if (n)
		qsort_r(order, n, sizeof(const struct top_process *), cmp_processes, &by);
	return n;
}

static void put_bar(struct sheet *s, const uint64_t *states_ns)
{
	struct buf bar = {0};
	const char *at;

	if (export__bar(&bar, LANE_THREAD, states_ns, s->left) || !bar.data) {
		buf__free(&bar);
		return;
	}
	at = bar.data;
	while (*at) {
		uint32_t cp;
		size_t len = text__decode(at, strlen(at), &cp);
		char colour[32];

		if (!len)
			break;
		if (s->view->colour)
			buf__adds(s->out, export__bar_colour(cp, colour, sizeof(colour)));
		buf__add(s->out, at, len);
		at += len;
	}
	buf__adds(s->out, PLAIN);
	s->left = 0;
	buf__free(&bar);
}

static void put_process(struct sheet *s, const struct top_process *p, bool selected)
{
	const struct top_frame *frame = s->view->frame;
	char pid[16];

	if (!begin(s, selected ? BOLD : ""))
		return;
	snprintf(pid, sizeof(pid), "%" PRId32, p->pid);
	put(s, selected ? ">" : " ", 1, false);
	put(s, pid, 7, true);
	gap(s);
	put(s, p->comm, 16, false);
	number(s, 6, "%.1f", rate(frame, p->cpu_ns) / 1e7);
	counted(s, 9, rate(frame, p->calls), p->calls_seen);
	counted(s, 6, rate(frame, p->gcs), p->gcs_seen);
	if (p->gc_known)
		number(s, 8, "%.1f", rate(frame, p->gc_ns) / 1e7);
	else
		put(s, "–", 8, true);
	put(s, p->alloc_known ? human__bytes(p->alloc_rate).s : "–", 9, true);
	gap(s);
	gap(s);
	if (s->left > 8)
		put_bar(s, p->states_ns);
	end(s);
}

/* Draws as many processes as fit in a third of the screen, including the selected one, which is
 * returned. */
static const struct top_process *put_processes(struct sheet *s)
{
	const struct top_view *view = s->view;
	const struct top_process *order[TOP_PROCESSES], *selected = NULL;
	size_t n = top__order(view, order), room = MAX(view->rows / 3, 1U), first = 0, at = 0;
	static const char *const titles[TOP_SORTS] = {"CPU", "calls", "GC", "allocation", "name"};
	char line[160];

	for (size_t i = 0; i < n; i++)
		if (order[i]->pid == view->selected)
			at = i;
	if (n)
		selected = order[at];
	if (at >= room)
		first = at - room + 1;
	if (begin(s, REVERSE)) {
		snprintf(line, sizeof(line), "%8s %-16s%6s%9s%6s%8s%9s  %s", "PID", "command",
			 "CPU %", "calls/s", "GC/s", "pause %", "alloc/s", "threads, by state");
		put(s, line, 0, false);
		snprintf(line, sizeof(line), "   (by %s)", titles[view->sort]);
		put(s, line, 0, false);
		end(s);
	}
	for (size_t i = first; i < MIN(n, first + room); i++)
		put_process(s, order[i], order[i] == selected);
	if (view->frame && view->frame->n_all > MIN(n, room) && begin(s, "")) {
		snprintf(line, sizeof(line), "   … and %zu more",
			 view->frame->n_all - MIN(n, room));
		put(s, line, 0, false);
		end(s);
	}
	return selected;
}

/* ── one process ─────────────────────────────────────────────────────────────────────────── */

static void put_title(struct sheet *s, const char *title)
{
	if (begin(s, ""))
		end(s);
	if (begin(s, BOLD)) {
		put(s, title, 0, false);
		end(s);
	}
}

/* By CPU time, or by allocation if the processes are sorted by that. */
static void put_functions(struct sheet *s, const struct top_process *p, size_t room)
{
	bool alloc = s->view->sort == TOP_BY_ALLOC;
	const struct top_function *list = alloc ? p->allocators : p->functions;
	uint64_t whole = MAX(alloc ? p->alloc_bytes : p->cpu_ns, 1);
	uint32_t n = alloc ? p->n_allocators : p->n_functions;
	size_t wide;

	put_title(s, alloc ? " self %  total %  top functions, by allocation"
			   : " self %  total %  top functions, by CPU time");
	if (alloc && !p->alloc_known && begin(s, "")) {
		put(s, "  not known: allocation shows at collections, and no two of them were seen",
		    0, false);
		end(s);
	}
	for (uint32_t i = 0; i < n && room > 0; i++, room--) {
		const struct top_function *f = &list[i];

		if (!begin(s, ""))
			return;
		number(s, 7, "%.1f", 100.0 * (double)f->self / (double)whole);
		number(s, 9, "%.1f", 100.0 * (double)f->total / (double)whole);
		gap(s);
		gap(s);
		/* do not repeat a module that the name begins with */
		wide = s->left > 50 ? s->left - 30 : s->left;
		put(s, f->name, wide, false);
		gap(s);
		if (strncmp(f->module, f->name + (*f->name == '~'), strlen(f->module)) != 0)
			put(s, f->module, 0, false);
		end(s);
	}
}

static void put_calls(struct sheet *s, const struct top_process *p, size_t room)
{
	const struct top_frame *frame = s->view->frame;
	char place[192];

	put_title(s, "  calls/s    mean    time %   CPU %  foreign calls");
	for (uint32_t i = 0; i < p->n_calls && room > 0; i++, room--) {
		const struct top_call *c = &p->list[i];

		if (!begin(s, ""))
			return;
		if (c->safe)
			counted(s, 9, rate(frame, c->n), c->seen);
		else
			put(s, "unsafe", 9, true);
		put(s,
		    c->safe && c->n && c->ended_ns != UINT64_MAX
			    ? human__duration(c->ended_ns / c->n).s
			    : "",
		    9, true);
		number(s, 9, "%.1f", rate(frame, c->total_ns) / 1e7);
		number(s, 8, "%.1f", rate(frame, c->cpu_ns) / 1e7);
		snprintf(place, sizeof(place), "  %s%s%s", c->function, *c->caller ? ", from " : "",
			 c->caller);
		put(s, place, 0, false);
		end(s);
	}
}

static void put_gc(struct sheet *s, const struct top_process *p)
{
	const struct top_frame *frame = s->view->frame;
	bool unknown = p->gcs_seen == TOP_SEEN_NONE;
	char line[256], text[32], live[48] = "";

	put_title(s, "garbage collection");
	if (!begin(s, ""))
		return;
	if (p->live_bytes)
		snprintf(live, sizeof(live), "; live: %s", human__bytes(p->live_bytes).s);
	snprintf(text, sizeof(text), "%.0f", rate(frame, p->gcs));
	if (p->gc_known)
		snprintf(line, sizeof(line),
			 "  collections: %s a second, paused for %s%.1f %% of the time, %s each%s",
			 unknown ? "–" : text, unknown ? "at most " : "",
			 rate(frame, p->gc_ns) / 1e7,
			 p->gcs ? human__duration(p->gc_ns / p->gcs).s : "–", live);
	else
		snprintf(line, sizeof(line),
			 "  collections: not known; nothing marks them, and there are too few "
			 "samples%s",
			 live);
	put(s, line, 0, false);
	end(s);
}

/* ── the screen ──────────────────────────────────────────────────────────────────────────── */

static void put_head(struct sheet *s)
{
	const struct top_view *view = s->view;
	const struct top_frame *frame = view->frame;
	uint64_t cpu_ns = 0;
	char line[256], clock[32] = "";
	time_t at;
	struct tm tm;

	if (!begin(s, ""))
		return;
	if (!frame) {
		put(s, "safescoped: waiting for the first second", 0, false);
		end(s);
		return;
	}
	at = (time_t)((frame->start_unix_ns + frame->length_ns) / 1000000000);
	if (localtime_r(&at, &tm))
		strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	for (uint32_t i = 0; i < frame->n_processes; i++)
		cpu_ns += frame->processes[i].cpu_ns;
	snprintf(line, sizeof(line),
		 "safescoped %s: %" PRIu32 " %s, %.1f %% of a CPU, in %s at %" PRIu32 " Hz%s%s",
		 clock, frame->n_all, frame->n_all == 1 ? "process" : "processes",
		 rate(frame, cpu_ns) / 1e7, human__duration(frame->length_ns).s,
		 frame->frequency_hz, view->frozen ? "  FROZEN" : "", view->ended ? "  ENDED" : "");
	put(s, line, 0, false);
	end(s);
}

static void put_help(struct sheet *s)
{
	static const char *const keys[] = {
		"q, Ctrl-C       quit",
		"up, down, k, j  select a process",
		"c s g a n       sort by CPU, safe calls, collections, allocation, name",
		"space, f        freeze, and resume",
		"w               write a report of the next part of the session",
		">               show the next part at once (in a replay)",
		"h, ?            this page",
	};

	put_title(s, "keys");
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (begin(s, "")) {
			gap(s);
			gap(s);
			put(s, keys[i], 0, false);
			end(s);
		}
	put_title(s, "states: capitals run, small letters wait");
	for (size_t i = 0; i < FACES; i += LEGEND_COLUMNS)
		if (begin(s, "")) {
			for (size_t k = i; k < FACES && k < i + LEGEND_COLUMNS; k++) {
				char item[64];

				snprintf(item, sizeof(item), "%s %s", face_looks[k].letter,
					 face_looks[k].title);
				gap(s);
				gap(s);
				put(s, item, LEGEND_WIDTH, false);
			}
			end(s);
		}
}

static void put_bottom(struct sheet *s)
{
	s->row = s->view->rows ? s->view->rows - 1 : 0;
	if (!begin(s, REVERSE))
		return;
	put(s,
	    *s->view->message ? s->view->message
			      : " q quit  ↑↓ select  c s g a n sort  space freeze  w write  h help",
	    0, false);
	end(s);
}

int top__draw(const struct top_view *view, struct buf *out)
{
	struct sheet s = {.view = view, .out = out};
	struct top_view body = *view;
	const struct top_process *selected;
	size_t left;

	buf__reset(out);
	/* the last row is for the keys */
	body.rows = view->rows > 1 ? view->rows - 1 : view->rows;
	s.view = &body;
	put_head(&s);
	/* the help needs most of a small screen */
	selected = view->help ? NULL : put_processes(&s);
	left = body.rows > s.row ? body.rows - s.row : 0;
	if (view->help) {
		put_help(&s);
	} else if (selected && left > 8) {
		put_functions(&s, selected, (left - 7) * 6 / 10);
		put_gc(&s, selected);
		put_calls(&s, selected, left);
	}
	buf__adds(out, "\033[J");
	s.view = view;
	put_bottom(&s);
	return out->err;
}
