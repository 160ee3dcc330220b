#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""--metrics of processes that replace their program by exec."""

import signal
import time

from harness import Failure, check, check_near, run
from test_calls import ALWAYS
from test_metrics import SECOND, address, has_grown, scrape, total


def test_same_program_again(t):
    """A process that replaces itself by the same program: its counters go on, and are in the end the sums of both."""
    session = t.session("--comm", "Forky", "-v", "-f", "json", "-o", t.stem, "--metrics", "0", *ALWAYS)
    session.wait_attached()
    where = address(session)
    target = t.target("Forky", "self", "30")
    session.wait_attached_to(target.pid)
    pid = str(target.pid)

    def until(calls, before):
        for _ in range(60):
            now = scrape(where)
            has_grown(before, now)
            before = now
            got = total(now, "safe_call_seconds_count", pid=pid, function="forky_fork_1ms")
            if got == calls:
                return now
            time.sleep(0.3)
        raise Failure(f"{got} calls, {calls} were made")

    first = until(0, {})
    target.go()
    target.wait_for("ready")
    second = until(30, first)
    target.go()
    target.result()
    series = until(80, second)
    session.signal(signal.SIGTERM)
    check(session.wait() in (0, 1), f"safescoped ended so: {session.err.seen[-5:]}")
    targets = [x for x in t.report().json["targets"] if x["pid"] == target.pid]
    check(len(targets) == 2, f"{len(targets)} targets")
    want = sum(x["states"].get("safe_call_blocked", 0) for y in targets for x in y["lanes"] if x["kind"] == "thread")
    got = total(series, "thread_seconds_total", pid=pid, state="safe_call_blocked") * SECOND
    check_near("time in blocked calls", got, want, 0.02 * want + 20e6)


if __name__ == "__main__":
    run(globals())
