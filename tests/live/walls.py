# SPDX-License-Identifier: GPL-2.0-or-later
"""A call's wall time in the report, against the clocks of the program that makes it."""

from harness import check, check_near

# Two clocks read on two processors may differ by a little.
CLOCKS_NS = 100
# On a machine that is not ours alone a thread may be pushed off its processor between its own
# clock and the probe; only a clock around the call bounds that.
PUSHED_OFF_NS = 20000


def check_wall(function, got_ns, want, per_call_ns=PUSHED_OFF_NS):
    """A call's wall time against its own clock, inside of it, and the caller's, around it. `want`:
    what tally.h printed of the function."""
    slack = CLOCKS_NS * want["calls"]
    most = (want["outer_ns"] + slack if want["outer_ns"]
            else 1.01 * want["wall_ns"] + per_call_ns * want["calls"])
    check(want["wall_ns"] - slack <= got_ns <= most,
          f"{function}: wall {got_ns}, should be from {want['wall_ns']} to {most:.0f}")
    if want["wall_ns"] >= 5000000 * want["calls"]:
        check_near(f"{function}: wall", got_ns, want["wall_ns"], 0.01 * want["wall_ns"])
