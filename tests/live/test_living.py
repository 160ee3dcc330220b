#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Haskell threads that were seen waiting, and then either go on waiting or end unobserved."""

import signal
import subprocess
import time

from harness import SAFESCOPED, Report, cases, check, profile_run, run, thorough
from test_windows import attach, follow_each_other, states_are_whole, windows

LANES = ("--lanes", "thread,capability,haskell")
SECONDS = 7


def haskell_lanes(report):
    return [lane for target in report.json["targets"] for lane in target["lanes"] if lane["kind"] == "haskell"]


def begun_by_main(report):
    """The lanes of the threads that the main thread, the only bound one, started: the first of them is the one that
    waits to the end."""
    lanes = haskell_lanes(report)
    main = max((lane["tso"] for lane in lanes if lane["bound"]), default=None)
    return sorted((lane for lane in lanes if main is not None and lane["tso"] > main), key=lambda lane: lane["tso"])


def begin(t, rts, mode="requests", seconds=SECONDS):
    return t.target("Lanes", mode, seconds, rts=rts)


def windows_of(t, target, window="2"):
    """The reports of the windows until the program's work is done."""
    session, folder = attach(t, target, *LANES, window=window)
    target.go()
    target.wait_for("}", 60)
    session.signal(signal.SIGINT)
    check(session.wait() == 0, f"{session.err.seen}")
    target.say("end")
    reports = windows(folder)
    follow_each_other(reports)
    states_are_whole(reports)
    check(len(reports) >= 3, f"{len(reports)} windows")
    return reports


def is_one_after_the_other(requests, wall):
    """Each request's thread begins when the previous one has ended."""
    lived = sum(lane["wall_ns"] for lane in requests)
    check(requests, "no request's thread has a lane")
    check(lived <= 1.05 * wall,
          f"{len(requests)} threads, one after the other, lived for {lived} ns in {wall} ns")


@cases("-N1", "-N2")
@thorough
def test_short_lived_in_windows(t, rts):
    """No window shows a short-lived thread for longer than it lived there; the thread that waits all the time waits for
    all of each window."""
    reports = windows_of(t, begin(t, (rts,)))
    first = begun_by_main(reports[0])[0]["tso"]
    for report in reports[:-1]:
        lanes, wall = begun_by_main(report), report.json["session"]["duration_ns"]
        is_one_after_the_other([lane for lane in lanes if lane["tso"] != first], wall)
    waits = [sum(lane["states"]["blocked_mvar"] for lane in haskell_lanes(report) if lane["tso"] == first)
             for report in reports]
    walls = [report.json["session"]["duration_ns"] for report in reports]
    check(waits[1:3] == walls[1:3], f"one that waits all the time waited for {waits} ns in windows of {walls}")


@thorough
def test_short_lived_in_a_crowd(t):
    """Tens of thousands of threads take longer to look through than the time between two collections; but collections
    of the youngest generation do not move them. Not every pass ends in time, and a request's thread that ends after a
    pass began is shown as waiting until the window's end: on a busy machine some hundred milliseconds each. Without any
    pass all of them would be, for half a window on average."""
    found = []
    for report in windows_of(t, begin(t, ("-N2", "-A1m"), "crowd", 14), "4")[1:-1]:
        requests = [lane["wall_ns"] for lane in begun_by_main(report) if lane["states"]["safe_call"]]
        check(len(requests) > 10, f"{len(requests)} threads of requests have a lane")
        found.append(sum(requests) / report.json["session"]["duration_ns"])
    check(min(found) <= 5, f"threads, one after the other, lived for {found} times the windows")


def states_of(reports):
    """Nanoseconds of Haskell threads in each state, without the states that are sampled."""
    sums = {}
    for lane in (lane for report in reports for lane in haskell_lanes(report)):
        for state, ns in lane["states"].items():
            if ns and state not in ("running", "unsafe_call"):
                sums[lane["tso"], state] = sums.get((lane["tso"], state), 0) + ns
    return sums


def replayed(t, output, *options):
    done = subprocess.run([SAFESCOPED, "--replay", t.dir / "capture", "-q", "-f", "json", "-o", t.dir / output, *LANES,
                           *options], capture_output=True, text=True)
    check(done.returncode == 0, done.stderr)
    return [Report(t.dir / output)] if (t.dir / output).is_file() else []


@cases("collected", "called")
def test_waits_after(t, mode):
    """What a thread waits for is known although, since it was last seen, the collector has moved it, or a safe call that
    it made has called back."""
    truth, report, _ = profile_run(t, "Waits", mode, 1500, rts=("-N1",), options=(*LANES, "-F", "499"), steady=True)
    main = max((lane for lane in haskell_lanes(report) if lane["bound"]), key=lambda lane: lane["wall_ns"])
    waited = main["states"]["blocked_mvar"]
    check(waited >= 0.85 * truth["waited_ns"], f"it waited for {truth['waited_ns']} ns: {main['states']}")


@cases("thr", "v")
def test_queued(t, way):
    """A thread that got what it waited for waits for the capability from then on, although no record shows it before it
    runs."""
    truth, report, _ = profile_run(t, "Waits", "queued", 3000, way=way, rts=("-N1",) if way == "thr" else (),
                                   options=(*LANES, "-F", "99"), steady=True)
    waiters = [lane["states"] for lane in haskell_lanes(report) if not lane["bound"] and lane["wall_ns"] > 0.5e9
               and lane["states"]["blocked_mvar"] > 0.2e9]
    check(len(waiters) >= 2, f"{len(waiters)} waiters were seen")
    waited, queued = (sum(states[name] for states in waiters) for name in ("blocked_mvar", "runnable"))
    share = truth["queued_ns"] / (truth["waited_ns"] + truth["queued_ns"])
    check(abs(queued / (waited + queued) - share) < 0.12,
          f"they waited for {waited} ns, and were ready for {queued} ns: of their time ready should be {share}")


def test_short_lived(t):
    """The same without windows, and in a replay. A replay in windows has no wait that the whole session lacks, and
    all of the wait of the thread that waits to the end."""
    target = begin(t, ("-N2",))
    session = t.session("--pid", target.pid, "-v", "--save", t.dir / "capture", "-f", "json", "-o", t.dir / "report.json",
                        *LANES)
    session.wait_attached()
    target.go()
    time.sleep(3)
    session.signal(signal.SIGINT)
    check(session.wait() == 0, f"{session.err.seen}")
    target.wait_for("}", 60)
    target.say("end")
    report = Report(t.dir / "report.json")
    wall = report.json["session"]["duration_ns"]
    waits, *requests = begun_by_main(report)
    is_one_after_the_other(requests, wall)
    check(waits["states"]["blocked_mvar"] >= 0.5 * (wall - 0.5e9), f"one that waits to the end: {waits['states']}")
    whole = states_of([report])
    check(states_of(replayed(t, "again.json")) == whole, "the replay has other states")
    (t.dir / "windows").mkdir()
    replayed(t, "windows", "--window", "0.7")
    windowed = states_of(windows(t.dir / "windows"))
    key = waits["tso"], "blocked_mvar"
    check(windowed.get(key, 0) >= 0.99 * whole[key],
          f"{key}: {windowed.get(key, 0)} ns in the windows of a replay, {whole[key]} in all")
    # what a thread does just before a cut may be known only from what comes after it
    for key, ns in ((key, ns) for key, ns in windowed.items() if key[1].startswith("blocked")):
        check(ns <= whole.get(key, 0), f"{key}: {ns} ns in the windows of a replay, {whole.get(key, 0)} in all")


if __name__ == "__main__":
    run(globals())
