/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Notes on safe calls, for the text report and the page. */
#include "calls.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void add_note(struct buf *notes, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void add_note(struct buf *notes, const char *fmt, ...)
{
	char note[96];
	va_list args;

	va_start(args, fmt);
	vsnprintf(note, sizeof(note), fmt, args);
	va_end(args);
	buf__addf(notes, "%s%s", notes->len ? ", " : "", note);
}

/* In base: GHC.Event.Manager, .EPoll and so on; since GHC 9.10 GHC.Internal.Event. */
bool call__is_io_manager(const struct pic_call *call)
{
	const char *caller = or_empty(call->caller);

	caller += *caller == '~';
	return !strncmp(caller, "GHC.Event.", 10) || !strncmp(caller, "GHC.Internal.Event.", 19);
}

uint64_t call__ns(const struct pic_call *call)
{
	uint64_t ns = call->wall_ns == UINT64_MAX ? 0 : call->wall_ns;

	return __builtin_add_overflow(ns, call->open_wall_ns, &ns) ? UINT64_MAX : ns;
}

void call__add_notes(struct buf *notes, const struct pic_call *call)
{
	if (call__is_io_manager(call))
		add_note(notes, "I/O manager");
	if (call->open_at_end && call->open_wall_ns)
		add_note(notes, "%s open for %s", human__count(call->open_at_end).s,
			 human__duration(call->open_wall_ns).s);
	else if (call->open_at_end)
		add_note(notes, "%s open", human__count(call->open_at_end).s);
	if (call->open_at_start)
		add_note(notes, "%s begun before", human__count(call->open_at_start).s);
	if (call->abandoned)
		add_note(notes, "%s abandoned", human__count(call->abandoned).s);
	if (!call->exact && call->observed_share < 1)
		add_note(notes, "seen %.0f %% of the time", 100 * call->observed_share);
	if (call->interruptible)
		add_note(notes, "interruptible");
}
