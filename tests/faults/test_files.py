#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Replays, logs and --list, which do not need the kernel, while allocations and system calls fail."""

from faults import ALLOCATIONS, FILE_CALLS, FILES, FORMATS, ROOT, Journey, built, calls_of, check
from harness import run


def replay(t, faults, formats=FORMATS, files=FILES):
    built()
    Journey(t, lambda out, _: ["--replay", ROOT / "tests" / "data" / "capture" / "calls", "-f", formats, "-o", out / "p"],
            files).spread(faults)


def test_replay_allocations(t):
    replay(t, ALLOCATIONS)


def test_replay_calls(t):
    replay(t, FILE_CALLS)


def log_journey(t, faults):
    built()
    log = t.dir / "calls.eventlog"
    target = t.target("Calls", 2, "safe_sleep_1ms=20", "unsafe_spin_20us=20", way="thr_l", rts=("-l", f"-ol{log}", "-N2"))
    target.go()
    target.result()
    Journey(t, lambda out, _: ["-e", log, "-f", FORMATS, "-o", out / "p"], FILES).spread(faults)


def test_log_allocations(t):
    log_journey(t, ALLOCATIONS)


def test_log_calls(t):
    log_journey(t, FILE_CALLS)


def test_list(t):
    """--list ends in order, and the processes that it looks at go on."""
    built()
    target = t.target("Calls", 1, "safe_sleep_1ms=1")
    Journey(t, lambda *_: ["--list"], ()).spread(ALLOCATIONS + FILE_CALLS + calls_of("memory"))
    target.go()
    check(target.result()["safe_sleep_1ms"]["calls"] == 1, "the target did not go on")


if __name__ == "__main__":
    run(globals(), kernel=False)
