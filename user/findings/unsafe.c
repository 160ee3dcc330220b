/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * findings: unsafe calls that held up garbage collection for all capabilities, and those that slept
 * while holding a capability.
 */
#include "findings_priv.h"

/* Less than a hundredth of the time is not worth looking at, and a few milliseconds in all may be
 * an accident of a short session. */
#define HELD_UP_PERCENT	 1
#define HELD_UP_LEAST_NS 5000000
#define BLOCKED_PERCENT	 1
#define BLOCKED_LEAST_NS 10000000

/* " for capability 1", " for capabilities 0 and 1"; "" if there are too many. */
static const char *list_caps(struct finder *f, const struct pic_unsafe *call)
{
	int n = __builtin_popcountll(call->held_caps), left = n;
	const char *list = n == 1 ? " for capability" : " for capabilities";

	if (call->held_caps >> 63 || !n || n > 4)
		return "";
	for (unsigned cap = 0; cap < 63; cap++)
		if (call->held_caps >> cap & 1) {
			list = finding__text(f, "%s%s %u", list,
					     left == n	 ? ""
					     : left == 1 ? " and"
							 : ",",
					     cap);
			left--;
		}
	return list;
}

static bool held_up(const struct finder *f, const struct pic_unsafe *call)
{
	return call->held_up_gc_ns != UINT64_MAX && call->held_up_gc_ns >= HELD_UP_LEAST_NS &&
	       finding__share(call->held_up_gc_ns, f->wall_ns, HELD_UP_PERCENT);
}

static bool blocked(const struct finder *f, const struct pic_unsafe *call)
{
	return call->blocked_ns >= BLOCKED_LEAST_NS &&
	       finding__share(call->blocked_ns, f->wall_ns, BLOCKED_PERCENT);
}

static void report(struct finder *f, const struct pic_unsafe *call)
{
	const struct pic_frame *function = picture__frame(f->pic, call->function_frame);
	const struct pic_frame *caller = picture__frame(f->pic, call->caller_frame);
	const char *from, *place, *slept = "";

	if (!held_up(f, call) && !blocked(f, call))
		return;
	from = finding__caller(f, caller ? caller->name : "");
	place = finding__place(f, caller ? caller : function);
	if (held_up(f, call)) {
		if (blocked(f, call))
			slept = finding__text(f, "; it slept for %s in all",
					      human__duration(call->blocked_ns).s);
		f->longest = call->longest_held;
		finding__add(f, "unsafe_call_held_up_gc", call->held_up_gc_ns, place,
			     "%s, held up by the unsafe call %s%s%s: a candidate for `safe`",
			     finding__gc_waited(f, call->held_up_gc_ns, call->held_up_gcs,
						list_caps(f, call), call->longest_held_ns),
			     function ? function->name : "[not known]", from, slept);
	} else if (function) {
		/* one without a name has slept since before the session: there is no advice to
		 * give */
		finding__add(
			f, "blocking_unsafe_call", call->blocked_ns, place,
			"The unsafe call %s%s%s slept for %s while it held its capability (%s, "
			"longest %s): a candidate for `safe`",
			function->name, from, *from ? "," : "", human__duration(call->blocked_ns).s,
			finding__counted(call->sleeps, "time", "times").s,
			human__duration(call->longest_sleep_ns).s);
	}
}

void findings__unsafe(struct finder *f)
{
	for (size_t i = 0; i < f->t->n_unsafe_calls && !f->err; i++)
		report(f, &f->t->unsafe_calls[i]);
}
