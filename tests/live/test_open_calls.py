#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Calls that began before the session or outlast it, and threads that do nothing at all."""

import time
from pathlib import Path

from harness import cases, check, check_wall, run
from test_calls import ALWAYS, check_lanes


def served(t, way, *options):
    target = t.target("Server", way=way, ready="waiting")
    return target, t.attach(target, *ALWAYS, *options)


@cases("thr", "thr_p", "dyn")
def test_open_at_start(t, way):
    target, session = served(t, way)
    attached = time.monotonic_ns()
    time.sleep(0.5)
    before = time.monotonic_ns()
    target.say("wake")
    target.wait_for("woken")
    after = time.monotonic_ns()
    for _ in range(5):
        target.say("answer")
        target.wait_for("answered")
    target.close_input()
    truth = target.result()
    check(session.wait() == 0, f"safescoped: {session.err.seen}")
    report = t.report()
    woken = report.call("server_wait_for_wake")
    check(woken["open_at_start"] == 1, f"open_at_start is {woken['open_at_start']}, should be 1")
    check(woken["open_at_end"] == 0, f"open_at_end is {woken['open_at_end']}, should be 0")
    check(woken["calls"] == 1, f"{woken['calls']} calls, should be 1")
    # The session saw it from the attach (somewhat before its line came to us) to the wake.
    low, high = before - attached, after - attached + 2000000000
    check(low <= woken["wall_ns"] <= high,
          f"wall is {woken['wall_ns']}, the session saw between {low} and {high} of it")
    check(woken["wall_ns"] < truth["server_wait_for_wake"]["wall_ns"],
          "the call is counted from before the session")
    asleep = report.call("server_sleep_long")
    check((asleep["open_at_start"], asleep["open_at_end"], asleep["calls"]) == (1, 1, 0)
          or (asleep["open_at_start"], asleep["abandoned"], asleep["calls"]) == (1, 1, 0),
          f"the call that never ends: {asleep}")
    check(all(s["caller"] for s in woken["sites"] + asleep["sites"]), "an open call has no caller")
    answer = report.call("server_answer_1ms")
    check(answer["calls"] == 5 and answer["open_at_start"] == 0, f"calls in the session: {answer}")
    check_wall("server_answer_1ms", answer["wall_ns"], truth["server_answer_1ms"])
    check_lanes(report)


@cases("thr", "v")
def test_nothing_happens(t, way):
    """A session in which hardly any thread runs has a lane for each of them, and no `unknown`."""
    if way == "v":
        # Without -threaded one safe call stops the whole program.
        target = t.target("Calls", 1, "safe_sleep_20ms=1000", way="v")
        session = t.attach(target, *ALWAYS, "-d", "1.5")
        target.go()
        session.wait()
        call = t.report().call("safe_sleep_20ms")
        check(call["calls"] > 30, f"only {call['calls']} calls")
        check_lanes(t.report())
        return
    begun = time.monotonic_ns()
    target, session = served(t, way, "-d", "2")
    tids = {int(p.name) for p in Path(f"/proc/{target.pid}/task").iterdir()}
    check(session.wait() == 0, f"safescoped: {session.err.seen}")
    report = t.report()
    lanes = {l["tid"]: l for l in report.target()["lanes"] if l["kind"] == "thread"}
    check(tids <= set(lanes), f"threads without a lane: {tids - set(lanes)}")
    check_lanes(report)
    for function in ("server_wait_for_wake", "server_sleep_long"):
        call = report.call(function)
        check((call["open_at_start"], call["open_at_end"], call["calls"]) == (1, 1, 0), f"{function}: {call}")
    # GHC's IO manager sits in safe calls of its own.
    in_calls = [l for l in lanes.values() if l["states"]["safe_call_blocked"] >= 0.98 * l["wall_ns"]]
    calls = sum(c["open_at_end"] for c in report.target()["safe_calls"])
    check(len(in_calls) == calls, f"{len(in_calls)} threads in a safe call all the time, there are {calls}")
    for lane in lanes.values():
        check(lane["states"]["unknown"] <= 0.01 * lane["wall_ns"],
              f"tid {lane['tid']} {lane['name']}: unknown for {lane['states']['unknown']} of {lane['wall_ns']} ns")
    session_ns = report.json["session"]["duration_ns"]
    check(1.99e9 <= session_ns <= time.monotonic_ns() - begun, f"the session lasted {session_ns} ns")
    check(target.process.poll() is None, "the target did not survive")


def test_open_at_end(t):
    """The session ends while calls are open: they are counted, with what was seen of them."""
    target = t.target("Calls", 4, "safe_sleep_20ms=1000")
    session = t.attach(target, *ALWAYS, "-d", "1")
    target.go()
    check(session.wait() == 0, f"safescoped: {session.err.seen}")
    call = t.report().call("safe_sleep_20ms")
    check(call["open_at_start"] == 0, "there was no call before the session")
    check(call["open_at_end"] >= 3, f"{call['open_at_end']} calls open at the end, there were 4 threads")
    check(call["calls"] >= 4 * 30, f"{call['calls']} calls in a second of four threads")


if __name__ == "__main__":
    run(globals())
