#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Sessions while allocations and system calls fail: the profiled program goes on, and nothing of them is left in the
kernel."""

import subprocess

from faults import ALLOCATIONS, CALLS, SECONDS, Journey, built, calls_of
from harness import Failure, program, run
from kernel_side import bpf_objects
from test_bad_luck import changed_code, wait_gone


class Beside:
    """A program that works while a session profiles it; afterwards its counts, its code and the kernel's BPF objects
    are checked."""

    PLAN = {"safe_sleep_1ms": 800, "safe_spin_20us": 1000}

    def __init__(self, t):
        self.before = bpf_objects()
        self.target = t.target("Calls", 1, *(f"{k}={v}" for k, v in self.PLAN.items()), rts=("-N2",))
        self.target.go()

    def wrong(self):
        found = []
        left = wait_gone(bpf_objects() - self.before)
        if left:
            found.append(f"still in the kernel: {left}")
        try:
            if changed_code(self.target.pid):
                found.append("breakpoints are left in the target")
        except (OSError, ValueError):
            pass  # it has ended
        try:
            truth = self.target.result()
            calls = {k: v["calls"] for k, v in truth.items() if v["calls"]}
            if calls != self.PLAN:
                found.append(f"the target made {calls}")
        except (Failure, TimeoutError, subprocess.TimeoutExpired, ValueError, IndexError) as e:
            found.append(f"the target did not go on: {e}")
        finally:
            self.target.kill()
        return found


# With sanitizers a session takes several seconds: there is not always time for it.
LIVE_ALLOCATIONS = ALLOCATIONS if SECONDS >= 15 else ALLOCATIONS[:2]
LIVE_CALLS = calls_of(*CALLS)
LIVE_FILES = ("p.json", "p.speedscope.json", "p.folded", "p.capture")


def session(t, faults, mode):
    built()

    def args(out, around):
        which = ["--pid", around.target.pid] if mode == "pid" else []
        return [*which, "-d", "0.3", "--max-overhead", "1000", "-f", "json,speedscope,folded", "-o", out / "p", "--save",
                out / "p.capture"]

    Journey(t, args, LIVE_FILES, Beside).spread(faults)


def test_session_allocations(t):
    session(t, LIVE_ALLOCATIONS, "pid")


def test_session_calls(t):
    session(t, LIVE_CALLS, "pid")


def test_host_allocations(t):
    session(t, LIVE_ALLOCATIONS, "host")


def test_host_calls(t):
    session(t, LIVE_CALLS, "host")


class Output:
    """A program that the session starts."""

    def __init__(self, t):
        self.before = bpf_objects()
        self.file = t.dir / "command.out"
        self.file.unlink(missing_ok=True)

    def wrong(self):
        found = []
        left = wait_gone(bpf_objects() - self.before)
        if left:
            found.append(f"still in the kernel: {left}")
        # it may not have been started; if it was, it ran to its end
        if self.file.exists() and '"safe_sleep_1ms"' not in self.file.read_text():
            found.append(f"the command did not end well: {self.file.read_text()[-200:]!r}")
        return found


def test_command_calls(t):
    built()
    command = f"exec >{t.dir}/command.out; echo go | {program('Calls')} 1 safe_sleep_1ms=100 +RTS -N2"
    Journey(t, lambda out, _: ["-f", "json", "-o", out / "p.json", "--", "sh", "-c", command], ("p.json",),
            Output).spread(LIVE_CALLS)


if __name__ == "__main__":
    run(globals())
