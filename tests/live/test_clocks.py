#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs whose clocks are not the kernel's own: in a time namespace, as what was restored from a
checkpoint is. The runtime notes by that clock when a collection began."""

import re
import shutil
import subprocess
from pathlib import Path

from harness import GHC_ROOT, SAFESCOPED, Skip, Target, cases, check, check_near, enter_root, program, run

BEFORE = 4  # collections before the attach, or as the program ends, that the runtime alone counts


def namespace(*options):
    """What runs a command in a time namespace of its own."""
    unshare = ["unshare", "--time", *options, "--fork", "--kill-child"]
    if not shutil.which("unshare") or subprocess.run([*unshare, "true"], capture_output=True).returncode:
        raise Skip("no time namespaces here")
    return unshare


def in_time_namespace(t, seconds, command):
    """Started where CLOCK_MONOTONIC is so far ahead; its pid is that of the one child."""
    target = Target([*namespace(f"--monotonic={seconds}"), *(enter_root(command) if GHC_ROOT else command)])
    t.started.append(target)
    target.pid = int(Path(f"/proc/{target.pid}/task/{target.pid}/children").read_text())
    return target


def check_as_ghc_counts(gc, counted):
    """Each collection is there, and as long as the runtime has it."""
    check(gc["exact"] is True, f"not exact: {gc}")
    check(counted["num_GCs"] > 50 and 0 <= counted["num_GCs"] - gc["count"] <= BEFORE,
          f"{gc['count']} collections of {counted['num_GCs']}")
    check_near("time of collections", gc["pause_ns"], 1e9 * counted["GC_wall_seconds"],
               0.1e9 * counted["GC_wall_seconds"] + 20000 * counted["num_GCs"])


# a clock cannot be set back to before the machine's boot
@cases("100000 -F 19", "-20 -F 19", "100000 -F 199")
def test_time_namespace(t, how):
    """At a low rate a collection's end alone is probed, and the runtime's notes show its begin."""
    seconds, *options = how.split()
    stats = t.dir / "statistics"
    target = in_time_namespace(t, seconds, [program("Work", "thr"), "alloc", 4,
                                            "+RTS", f"-t{stats}", "--machine-readable", "-A2m", "-RTS"])
    session = t.attach(target, "--max-overhead", "1000", *options)
    target.go()
    target.wait()
    check(session.wait() == 0, f"{session.err.seen}")
    counted = {k: float(v) for k, v in re.findall(r'\("(\w+)", "([0-9.]+)"\)', stats.read_text())}
    check_as_ghc_counts(t.report().target()["gc"], counted)


@cases("", "--monotonic=100000", "--boottime=100000")
def test_own_clocks(t, offset):
    """The kernel's records are by the host's clocks, and so must those be that they are compared with."""
    done = subprocess.run([*namespace(*offset.split()), SAFESCOPED, "--doctor"], capture_output=True, text=True, timeout=60)
    line = [l for l in done.stdout.splitlines() if "time namespace" in l]
    check(len(line) == 1 and line[0].startswith("MISSING" if offset else "ok"), f"{line}")


if __name__ == "__main__":
    run(globals())
