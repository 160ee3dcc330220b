#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Processes that were left out, or attached without probes: each window's report has it, and the log when it begins."""

import re
import signal
import time

from harness import SLOWNESS, Target, check, program, run
from test_windows import windows

LEFT_OUT = r"(\d+) processes of user 0 were left out"


def sleepers(t, n):
    """So many processes."""
    targets = [Target([program("Server", "thr")], ready=None) for _ in range(n)]
    t.started.extend(targets)
    for target in targets:
        target.wait_for("waiting", 120)
    return targets


def daemon(t, descriptors, *options):
    folder = t.dir / "windows"
    folder.mkdir()
    session = t.session("--comm", "Server", "-f", "json", "-F", 19, "-o", folder, "--window", 1, *options,
                        prefix=("prlimit", f"--nofile={descriptors}:{descriptors}"))
    return session, folder


def wait_for(folder, session, enough):
    deadline = time.monotonic() + 60 * SLOWNESS
    while not enough(windows(folder)):
        check(time.monotonic() < deadline, f"there are {len(windows(folder))} windows; it said {session.err.seen}")
        session.err.drain()
        time.sleep(0.2)


def missing(report, pattern):
    """What fits of each process of the report."""
    return [[m for m in target["missing"] if re.search(pattern, m)] for target in report.json["targets"]]


def test_no_room(t):
    """More processes of a user than one may have: while it goes on, and in the log when it begins."""
    targets = sleepers(t, 20)
    session, folder = daemon(t, 256)
    wait_for(folder, session, lambda reports: len(reports) >= 3)
    early = [line for line in session.err.seen if "left out" in line]
    check(len(early) == 1 and "further processes of user 0" in early[0], f"meanwhile it said {session.err.seen}")
    for report in windows(folder)[:3]:
        live = len(report.json["targets"])
        check(live < len(targets), f"none was left out of {live}")
        for texts in missing(report, LEFT_OUT):
            check(len(texts) == 1, f"left out, but the window lacks {texts}")
            n = int(re.search(LEFT_OUT, texts[0])[1])
            check(n == len(targets) - live, f"{n} were left out of {len(targets)}, of which {live} are there")
    # nobody waits any more
    for target in targets:
        target.kill()
    n = len(windows(folder))
    wait_for(folder, session, lambda reports: len(reports) >= n + 10)
    late = sleepers(t, 1)[0]
    wait_for(folder, session, lambda reports: late.pid in [x["pid"] for x in reports[-2].json["targets"]] if len(reports) > 1 else False)
    check(not any(missing(windows(folder)[-2], LEFT_OUT)), "who has ended is left out still")
    session.signal(signal.SIGTERM)
    session.wait()


if __name__ == "__main__":
    run(globals())
