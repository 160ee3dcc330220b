/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * info: which process wrote the log, what time it was, and its messages.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "annot_priv.h"
#include "base/base.h"
#include "eventlog.h"
#include "pack_priv.h"

#define NOTES_MAX (1u << 17)
#define TEXT_MAX  (16u << 20) /* bytes of all texts, with their index */

struct el_info {
	const struct el_window *window;
	const struct el_sched *sched;
	struct strtab *strings;
	struct el_note *notes;
	size_t notes_cap;
	struct el_process process;
	uint32_t rts, program, args;
};

int el_info__new(const struct el_window *window, const struct el_sched *sched,
		 struct el_info **ret_i)
{
	struct el_info *i = calloc(1, sizeof(*i));
	int err;

	if (!i)
		return -ENOMEM;
	i->window = window;
	i->sched = sched;
	err = strtab__new(&i->strings);
	if (err) {
		free(i);
		return err;
	}
	strtab__set_max(i->strings, TEXT_MAX);
	*ret_i = i;
	return 0;
}

void el_info__free(struct el_info *i)
{
	if (!i)
		return;
	strtab__free(i->strings);
	free(i->notes);
	free(i);
}

static int intern(struct el_info *i, const char *s, size_t len, uint32_t *ret_id)
{
	return strtab__add(i->strings, s, MIN(len, (size_t)STRTAB_MAX_STRING - 1), ret_id);
}

/* Joins NUL-separated words with blanks. */
static int on_args(struct el_info *i, struct el_str text)
{
	char *joined;
	int err;

	err = intern(i, text.s, text.len, &i->program);
	if (err)
		return err;
	while (text.len && !text.s[text.len - 1])
		text.len--;
	joined = malloc(text.len + 1);
	if (!joined)
		return -ENOMEM;
	for (uint32_t k = 0; k < text.len; k++)
		joined[k] = text.s[k] ? text.s[k] : ' ';
	joined[text.len] = 0;
	err = intern(i, joined, text.len, &i->args);
	free(joined);
	return err;
}

/* Includes the very end of the window, which is where the marker that ends it lies. */
static bool wanted(const struct el_window *w, uint64_t time)
{
	return el_window__has(w, time) || (w && w->to && time == w->to);
}

static int on_note(struct el_info *i, const struct el_event *ev)
{
	struct el_str rest;
	uint32_t text;
	int err;

	/* unwanted notes must not take room */
	if (!wanted(i->window, ev->time))
		return 0;
	/* el_annot's messages are not notes */
	if (ev->id == EL_USER_MSG && annot__verb(ev->text, &rest) != AV_NONE)
		return 0;
	err = ARRAY_RESERVE(i->notes, i->notes_cap, i->process.n_notes + 1, NOTES_MAX);
	if (!err)
		err = intern(i, ev->text.s, ev->text.len, &text);
	if (err)
		return err;
	i->notes[i->process.n_notes++] = (struct el_note){
		.time = ev->time,
		.text = text,
		.id = ev->id,
		.cap = ev->cap,
		.thread = i->sched ? el_sched__running(i->sched, ev->cap) : 0,
	};
	return 0;
}

static int on_event(void *ctx, const struct el_event *ev)
{
	struct el_info *i = ctx;
	int err = 0;

	switch (ev->id) {
	case EL_OSPROCESS_PID:
		i->process.pid = ev->pid;
		break;
	case EL_RTS_IDENTIFIER:
		err = intern(i, ev->text.s, ev->text.len, &i->rts);
		break;
	case EL_PROGRAM_ARGS:
		err = on_args(i, ev->text);
		break;
	case EL_WALL_CLOCK_TIME:
		if (ev->wall.sec > UINT64_MAX / 1000000000 - 1 || ev->wall.ns >= 1000000000)
			break;
		i->process.wall_known = true;
		i->process.wall_time_ns = ev->wall.sec * 1000000000 + ev->wall.ns;
		i->process.wall_at = ev->time;
		break;
	default:
		err = on_note(i, ev);
		break;
	}
	if (err == -E2BIG) {
		i->process.dropped++;
		err = 0;
	}
	return err;
}

int el_info__attach(struct el_info *i, struct eventlog *log)
{
	static const uint16_t ids[] = {EL_OSPROCESS_PID,   EL_RTS_IDENTIFIER, EL_PROGRAM_ARGS,
				       EL_WALL_CLOCK_TIME, EL_USER_MSG,	      EL_USER_MARKER};

	return eventlog__subscribe(log, ids, ARRAY_SIZE(ids), on_event, i);
}

struct el_process el_info__process(const struct el_info *i)
{
	struct el_process p = i->process;

	p.rts = strtab__get(i->strings, i->rts);
	p.program = strtab__get(i->strings, i->program);
	p.args = strtab__get(i->strings, i->args);
	return p;
}

const struct el_note *el_info__note(const struct el_info *i, size_t n)
{
	return &i->notes[n];
}

const char *el_info__string(const struct el_info *i, uint32_t id)
{
	return strtab__get(i->strings, id);
}

/* ── packing ─────────────────────────────────────────────────────────────────────────────── */

void el_info__pack(const struct el_info *i, struct pack *p)
{
	PACK(p, i->process.pid);
	PACK(p, i->process.wall_known);
	PACK(p, i->process.wall_time_ns);
	PACK(p, i->process.wall_at);
	PACK(p, i->process.dropped);
	PACK(p, i->rts);
	PACK(p, i->program);
	PACK(p, i->args);
	pack__strings(p, i->strings);
	pack__array(p, i->notes, i->process.n_notes, sizeof(*i->notes));
}

int el_info__unpack(struct unpack *u, struct el_info **ret_i)
{
	struct el_info *i;
	uint32_t n;
	int err = el_info__new(NULL, NULL, &i);

	if (err)
		return err;
	UNPACK(u, i->process.pid);
	UNPACK(u, i->process.wall_known);
	unpack__flag(u, &i->process.wall_known);
	UNPACK(u, i->process.wall_time_ns);
	UNPACK(u, i->process.wall_at);
	UNPACK(u, i->process.dropped);
	UNPACK(u, i->rts);
	UNPACK(u, i->program);
	UNPACK(u, i->args);
	err = unpack__strings(u, i->strings);
	n = strtab__count(i->strings);
	if (!err)
		err = UNPACK_ARRAY(u, i->notes, i->process.n_notes, NOTES_MAX);
	unpack__require(u, i->rts < n && i->program < n && i->args < n);
	for (size_t k = 0; k < i->process.n_notes; k++)
		unpack__require(u, i->notes[k].text < n && (i->notes[k].id == EL_USER_MARKER ||
							    i->notes[k].id == EL_USER_MSG));
	if (!err && u->bad)
		err = -EBADMSG;
	if (err)
		el_info__free(i);
	else
		*ret_i = i;
	return err;
}
