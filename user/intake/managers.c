/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * managers: recognises the waits of GHC's event managers, in which nothing has to be done. The call
 * site shows them; while the call probes are off, the Haskell thread's stack does, and where there
 * is no room for a stack, that the same Haskell thread was seen to wait like that before.
 */
#include <sys/syscall.h>

#include "intake_priv.h"

bool seen__waits_for_events(uint32_t syscall)
{
	switch (syscall) {
	case SYS_poll:
	case SYS_ppoll:
	case SYS_select:
	case SYS_pselect6:
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
	/* poll() goes on as this one after SIGSTOP and SIGCONT, or after a tracer has attached */
	case SYS_restart_syscall:
		return true;
	default:
		return false;
	}
}

/* base, GHC.Event.Manager, .TimerManager, .EPoll, .Poll, .KQueue; since 9.10 GHC.Internal.Event. */
bool managers__have(const char *module)
{
	return strncmp(module, "GHC.Event.", 10) == 0 ||
	       strncmp(module, "GHC.Internal.Event.", 19) == 0;
}

static bool is_known(const struct seen *s, uint64_t tso)
{
	for (size_t i = 0; i < ARRAY_SIZE(s->managers); i++)
		if (tso && s->managers[i] == tso)
			return true;
	return false;
}

/* The innermost Haskell frame that is not the runtime's. */
static bool by_stack(const struct intake *in, uint32_t hs)
{
	struct pic_stack stack = intake__part(in, hs);

	for (uint32_t i = stack.n; i-- > 0;) {
		const struct pic_frame *frame = picture__frame(in->pic, stack.frames[i]);

		if (!picture__is_rts(frame->kind, frame->package))
			return managers__have(frame->module);
	}
	return false;
}

void managers__look(const struct intake *in, struct seen *s, struct ev *ev)
{
	const struct seen_site *site = seen__site(s, ev->site);

	if (ev->where != WIRE_WHERE_SAFE_CALL || !seen__waits_for_events(ev->syscall))
		return;
	if (!site && !ev->hs) {
		if (is_known(s, ev->tso))
			ev->flags |= EV_MANAGER;
		return;
	}
	if (!(site ? site->manager : by_stack(in, ev->hs)))
		return;
	ev->flags |= EV_MANAGER;
	/* they live as long as the program, but for setNumCapabilities() */
	if (ev->tso && !is_known(s, ev->tso))
		s->managers[s->n_managers++ % ARRAY_SIZE(s->managers)] = ev->tso;
}
