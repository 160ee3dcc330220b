#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Safe calls that do more than begin and return: callbacks, exceptions, threads that end in them."""

import time

from harness import Report, cases, check, check_near, profile_run, run
from walls import PUSHED_OFF_NS, check_wall
from test_calls import ALWAYS, compare, check_lanes


@cases("nest-thr", "export-thr", "nest-v", "export-v", "nest-thr_p", "nest-dyn")
def test_callbacks(t, case):
    """C calls back into Haskell, which makes the next safe call: five levels and one more call at the bottom. Counts
    and times are right."""
    mode, way = case.split("-")
    truth, report, _ = profile_run(t, "Nest", mode, 5, 100, way=way, steady=True, options=ALWAYS)
    down = "nest_down" if mode == "nest" else "nest_down_export"
    check(truth[down]["calls"] == 500, "the test program itself is wrong")
    compare(truth, report)
    check_lanes(report)


def own_ns(t):
    """The CPU time of the code of nest_own and nest_back themselves, by the folded stacks."""
    got = {"nest_own": 0, "nest_back": 0}
    for line in (t.dir / "p.folded").read_text().splitlines():
        stack, us = line.rsplit(" ", 1)
        innermost = [f for f in stack.split(";") if f in got]
        # the work reads the clock
        if innermost and stack.rsplit(";", 1)[1] in (innermost[-1], "[vdso]", "clock_gettime", "__vdso_clock_gettime"):
            got[innermost[-1]] += 1000 * int(us)
    return got


@cases("unsafes-short-thr", "safes-loop-v", "safes-loop-thr", "unsafes-long-v")
def test_own_time(t, case):
    """C code that works and calls back by turns, in short calls, in long ones, or in one that lasts: its own time, and
    that of the C code which its callbacks call, are what their clocks measured."""
    mode, length, way = case.split("-")
    calls, rounds = {"short": (8000, 1), "long": (400, 20), "loop": (1, 8000)}[length]
    truth, report, _ = profile_run(t, "Nest", mode, calls, rounds, way=way, options=(*ALWAYS, "-F", "499"))
    got = own_ns(t)
    states = report.states()
    for function, ns in got.items():
        # 200 samples and more: three standard deviations are a fifth, and the clocks' own time is outside of both
        check_near(f"{function}: its own CPU time", ns, truth[function]["cpu_ns"], 0.25 * truth[function]["cpu_ns"])
    unsafe = truth["nest_back"]["cpu_ns"] if mode == "unsafes" else 0
    check(abs(states.get("unsafe_call_cpu", 0) - unsafe) <= 0.25 * truth["nest_back"]["cpu_ns"],
          f"unsafe calls: {states.get('unsafe_call_cpu', 0)} ns, should be {unsafe}")
    if mode == "unsafes":
        check(all(s["called_back"] for s in report.call("nest_own")["sites"]), "it is not known that nest_own calls back")
    check_lanes(report)


@cases("unsafes-thr", "unsafes-v", "safes-v")
def test_own_time_of_an_open_call(t, case):
    """The same for a call that lasts, such as a toolkit's event loop, if it began before the session: two thirds of
    its time are in what it calls back."""
    mode, way = case.split("-")
    target = t.target("Nest", mode, 1, 1000000, way=way)
    target.go()
    time.sleep(0.3)
    session = t.attach(target, *ALWAYS, "-F", "499", "-d", "2")
    check(session.wait() == 0, f"safescoped: {session.err.seen}")
    got = own_ns(t)
    both = sum(got.values())
    check(both > 0, "it did not run")
    check_near("nest_own: its own CPU time", got["nest_own"], both / 3, 0.25 * both / 3)
    check_lanes(t.report())


@cases("whole", "windows")
def test_open_loop(t, case):
    """An event loop that began before the session, calls back again and again, and goes on: one call, open all the
    time, also in each window."""
    target = t.target("Nest", "loop", 1000)
    target.go()
    target.wait_for("looping")
    folder = t.dir / "reports"
    folder.mkdir()
    window = ("--window", "0.4") if case == "windows" else ()
    session = t.session("-p", target.pid, "-f", "json", "-o", folder, *window, "-d", "1.5")
    check(session.wait() == 0, f"safescoped: {session.err.seen}")
    reports = [Report(path) for path in sorted(folder.iterdir())]
    check(len(reports) >= (3 if window else 1), f"{len(reports)} reports")
    for i, report in enumerate(reports):
        loop = next(c for c in report.target()["safe_calls"] if c["function"] == "nest_loop")
        check((loop["calls"], loop["open_at_start"], loop["open_at_end"]) == (0, 1, 1), f"report {i}: {loop}")
        ns = report.json["session"]["duration_ns"]
        least = ns if i else ns / 2 - report.target()["attach_ns"]
        check(least <= loop["open_wall_ns"] <= ns, f"report {i}: open for {loop['open_wall_ns']} of {ns} ns")
    check(sum(c["calls"] for r in reports for c in r.target()["safe_calls"] if c["function"] == "nest_bottom_1ms") >= 10,
          "it has hardly called back")


@cases("thr", "dyn")
def test_open_call_calls_back(t, way):
    """A call that was open before the session ends during it, and is counted once, even if it calls back."""
    target = t.target("Nest", "loop", 60, way=way)
    target.go()
    target.wait_for("looping")
    began = time.monotonic_ns()
    session = t.attach(target, *ALWAYS)
    attached = time.monotonic_ns()
    truth = target.result()
    check(session.wait() == 0, f"safescoped: {session.err.seen}")
    seen = truth["nest_loop"]["wall_ns"] - (attached - began)
    report = t.report()
    loop, bottom = report.call("nest_loop"), report.call("nest_bottom_1ms")
    check((loop["calls"], loop["open_at_start"], loop["open_at_end"], loop["abandoned"]) == (1, 1, 0, 0), f"the loop: {loop}")
    check(0.9 * seen <= loop["wall_ns"] < truth["nest_loop"]["wall_ns"], f"the loop took {loop['wall_ns']}, should be {seen} ns")
    check(10 <= bottom["calls"] < 60, f"{bottom['calls']} of its 60 calls were in the session")
    check(not report.target()["lost"], f"lost: {report.target()['lost']}")
    check_lanes(report)


def test_deeper_than_kept(t):
    """With 20 nested calls and one at the bottom 16 are tracked, and the rest is counted as lost."""
    target = t.target("Nest", "nest", 20, 50)
    session = t.attach(target, *ALWAYS)
    target.go()
    truth = target.result()
    code = session.wait()
    check(code in (0, 1), f"safescoped ended with {code}")
    check(truth["nest_down"]["calls"] == 1000, "the test program itself is wrong")
    report = t.report()
    calls = report.call("nest_down")["calls"]
    check(calls == 16 * 50, f"{calls} calls of nest_down, should be the outer 16 of 50 rounds")
    lost = report.target()["lost"]
    deep = sum(n for cause, n in lost.items() if "deep" in cause or "overflow" in cause or "nest" in cause)
    check(deep == 5 * 50, f"the calls that were nested too deep are not counted: {lost}")


def test_killed_interruptible(t):
    """Calls that killThread interrupts are counted, and marked as interruptible."""
    truth, report, _ = profile_run(t, "Nest", "killed", 30, options=ALWAYS)
    check(truth["nest_interruptible_10s"]["calls"] == 30, "the test program itself is wrong")
    compare_some(truth, report, "nest_interruptible_10s")
    check(all(s["interruptible"] for s in report.call("nest_interruptible_10s")["sites"]),
          "not marked as interruptible")


def compare_some(truth, report, function, per_call_ns=PUSHED_OFF_NS):
    want, got = truth[function], report.call(function)
    check(got["calls"] == want["calls"], f"{function}: {got['calls']} calls, should be {want['calls']}")
    check_wall(function, got["wall_ns"], want, per_call_ns)


@cases("thr", "v")
def test_longjmp_inside(t, way):
    truth, report, _ = profile_run(t, "Nest", "jump", 300, way=way, steady=True, options=ALWAYS)
    compare(truth, report)


def test_exception_in_callback(t):
    truth, report, _ = profile_run(t, "Nest", "throwback", 300, steady=True, options=ALWAYS)
    compare(truth, report)


def test_foreign_threads(t):
    """Threads that C created call into Haskell and make safe calls."""
    truth, report, _ = profile_run(t, "Nest", "foreign", 200, steady=True, options=ALWAYS)
    for function in ("nest_foreign_thread", "nest_bottom_1ms"):
        compare_some(truth, report, function)
    check_lanes(report)


def test_pthread_exit_inside(t):
    """A thread that ends inside its safe call: the call never returns, and is counted as abandoned."""
    truth, report, _ = profile_run(t, "Nest", "threadexit", 100, steady=True, options=ALWAYS)
    compare_some(truth, report, "nest_foreign_thread")
    call = report.call("nest_exit_thread")
    check(call["calls"] == 0, f"{call['calls']} calls came back, there were none")
    check(call["abandoned"] == 100, f"{call['abandoned']} abandoned calls, should be 100")
    check(call["open_at_end"] == 0, f"{call['open_at_end']} calls are reported as open at the end")
    check_lanes(report)


def test_bound_threads(t):
    truth, report, _ = profile_run(t, "Nest", "bound", 500, rts=("-N2",), steady=True, options=ALWAYS)
    calls = truth["nest_bound_100us"]["calls"]
    check(calls == 2000, "the test program itself is wrong")
    check(report.call("nest_bound_100us")["calls"] == calls, "the count is wrong")
    check_lanes(report)


@cases("thr", "v")
def test_fork_inside(t, way):
    """The child of a fork inside a safe call is not the target: neither its time nor its end is attributed to the call."""
    truth, report, _ = profile_run(t, "Forky", "fork", 100, way=way, steady=True, options=ALWAYS)
    # After a fork each page is copied when it is first written at the call's ends: outside of what C times.
    compare_some(truth, report, "forky_fork_1ms", per_call_ns=100000)
    check_lanes(report)


if __name__ == "__main__":
    run(globals())
