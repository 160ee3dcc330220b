# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks a call's wall time in the report against the clocks of the program that makes it."""

from harness import check, check_near

# Clocks of two processors may differ slightly.
CLOCKS_NS = 100
# On a busy machine a thread may be preempted between its own clock and the probe; only a clock around the call bounds
# that time.
PUSHED_OFF_NS = 20000


def check_wall(function, got_ns, want, per_call_ns=PUSHED_OFF_NS):
    """A call's wall time is between the function's own clock, inside the call, and the caller's, around it. `want`:
    what tally.h printed for the function."""
    slack = CLOCKS_NS * want["calls"]
    most = (want["outer_ns"] + slack if want["outer_ns"]
            else 1.01 * want["wall_ns"] + per_call_ns * want["calls"])
    check(want["wall_ns"] - slack <= got_ns <= most,
          f"{function}: wall {got_ns}, should be from {want['wall_ns']} to {most:.0f}")
    if want["wall_ns"] >= 5000000 * want["calls"]:
        check_near(f"{function}: wall", got_ns, want["wall_ns"], 0.01 * want["wall_ns"])
