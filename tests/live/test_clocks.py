#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs whose clocks differ from the kernel's: in a time namespace, as after a restore from a checkpoint. The
runtime notes by that clock when a collection began."""

import re
import shutil
import subprocess
from pathlib import Path

from harness import GHC_ROOT, SAFESCOPED, Skip, Target, cases, check, check_near, enter_root, program, run

BEFORE = 4  # collections before the attach, or as the program ends, that the runtime alone counts


def namespace(*options):
    """A command prefix that runs a command in its own time namespace."""
    unshare = ["unshare", "--time", *options, "--fork", "--kill-child"]
    if not shutil.which("unshare") or subprocess.run([*unshare, "true"], capture_output=True).returncode:
        raise Skip("no time namespaces here")
    return unshare


def in_time_namespace(t, seconds, command):
    """Start the command where CLOCK_MONOTONIC is `seconds` ahead; the target's pid is that of the only child."""
    target = Target([*namespace(f"--monotonic={seconds}"), *(enter_root(command) if GHC_ROOT else command)])
    t.started.append(target)
    target.pid = int(Path(f"/proc/{target.pid}/task/{target.pid}/children").read_text())
    return target


def check_as_ghc_counts(gc, counted):
    """Each collection is counted, and their time is what the runtime reports."""
    check(gc["exact"] is True, f"not exact: {gc}")
    check(counted["num_GCs"] > 50 and 0 <= counted["num_GCs"] - gc["count"] <= BEFORE,
          f"{gc['count']} collections of {counted['num_GCs']}")
    check_near("time of collections", gc["pause_ns"], 1e9 * counted["GC_wall_seconds"],
               0.1e9 * counted["GC_wall_seconds"] + 20000 * counted["num_GCs"])


# a clock cannot be set to before the machine's boot
@cases("100000 -F 19", "-20 -F 19", "100000 -F 199")
def test_time_namespace(t, how):
    """At a low rate only the end of a collection is probed, and its begin is taken from the runtime's notes."""
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
    """--doctor reports it if safescoped itself runs in a time namespace: the kernel's records are by the host's clocks,
    and its own must be the same."""
    done = subprocess.run([*namespace(*offset.split()), SAFESCOPED, "--doctor"], capture_output=True, text=True, timeout=60)
    line = [l for l in done.stdout.splitlines() if "time namespace" in l]
    check(len(line) == 1 and line[0].startswith("MISSING" if offset else "ok"), f"{line}")


if __name__ == "__main__":
    run(globals())
