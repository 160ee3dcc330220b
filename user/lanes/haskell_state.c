/* SPDX-License-Identifier: GPL-2.0-or-later */
/* haskell_state: the state of a Haskell thread, by its OS thread's piece or by its own memory. */
#include "lanes_priv.h"

/* rts/include/rts/Constants.h, 8.10 to 9.14. */
enum haskell_state haskell_state__blocked(uint16_t why)
{
	switch (why) {
	case 0:	 /* NotBlocked */
	case 13: /* ThreadMigrating */
		return HS_RUNNABLE;
	case 1:	 /* BlockedOnMVar */
	case 14: /* BlockedOnMVarRead */
		return HS_BLOCKED_MVAR;
	case 2:
		return HS_BLOCKED_BLACKHOLE;
	case 3:
	case 4:
	case 15:
		return HS_BLOCKED_IO;
	case 5:
		return HS_BLOCKED_DELAY;
	case 6:
		return HS_BLOCKED_STM;
	case 10: /* BlockedOnCCall, …_Interruptible */
	case 11:
		return HS_SAFE_CALL;
	case WIRE_TSO_UNKNOWN:
		return HS_UNKNOWN;
	default:
		return HS_BLOCKED_OTHER;
	}
}

enum haskell_state haskell_state__of(const struct pic_slice *s, enum thread_state before)
{
	switch ((enum thread_state)s->state) {
	case ST_UNSAFE_CALL_CPU:
	case ST_UNSAFE_CALL_BLOCKED:
		return HS_UNSAFE_CALL;
	case ST_SAFE_CALL_CPU:
	case ST_SAFE_CALL_BLOCKED:
	/* no other such piece has a Haskell thread: */
	case ST_RTS_BLOCKED: /* a call's hand-over */
	case ST_IDLE:	     /* an event manager's wait */
		return HS_SAFE_CALL;
	case ST_CAP_WAIT:
		return HS_RUNNABLE;
	case ST_PREEMPTED:
		/* Only the OS thread is preempted; the Haskell thread is where it was. */
		if (s->cap < MAX_CAPS)
			return before == ST_UNSAFE_CALL_CPU ? HS_UNSAFE_CALL : HS_RUNNING;
		return before == ST_CAP_WAIT ? HS_RUNNABLE : HS_SAFE_CALL;
	default:
		return HS_RUNNING;
	}
}
