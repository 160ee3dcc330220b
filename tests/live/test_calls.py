#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Safe calls, against what the test program's C functions count and time themselves."""

import os
import subprocess

from harness import GHC_ROOT, SLOWNESS, Skip, cases, check, check_near, profile_run, run
from walls import CLOCKS_NS, check_wall

# The probes stay on whatever their overhead: these tests expect exact counts.
ALWAYS = ("--max-overhead", "1000")

# The program reads its thread's CPU clock inside the interval that it times; entering and leaving the kernel to read
# it, and the probes themselves, are CPU time that it does not see. A call that sleeps also pays for two context
# switches, which the scheduler charges to the thread from slightly before its tracepoint runs. What the hypervisor
# stole is in the time between two context switches but not in a thread's CPU clock.
CPU_PER_CALL_NS = 3000
CPU_PER_SLEEP_NS = 12000
CPU_SHARE_OF_WALL = 0.01


def compare(truth, report):
    for function, want in truth.items():
        if function.startswith("unsafe"):
            continue
        got = report.call(function)
        calls = want["calls"]
        check(got["calls"] == calls, f"{function}: {got['calls']} calls, should be {calls}")
        check(got["exact"], f"{function}: marked as not exact")
        check(got["open_at_start"] == 0 and got["open_at_end"] == 0,
              f"{function}: calls open at the session's start or end, but there were none")
        check_wall(function, got["wall_ns"], want)
        per_call = CPU_PER_CALL_NS if "spin" in function else CPU_PER_SLEEP_NS
        # if entering the kernel takes longer here, the caller's clock around the call shows it
        around = max(0, want["outer_ns"] - want["wall_ns"])
        check_near(f"{function}: cpu", got["cpu_ns"], want["cpu_ns"],
                   max(CPU_SHARE_OF_WALL * want["wall_ns"], per_call * calls, around) + report.stolen_ns)
        check(got["blocked_ns"] <= got["wall_ns"] - got["cpu_ns"],
              f"{function}: blocked {got['blocked_ns']} of wall {got['wall_ns']}, cpu {got['cpu_ns']}")
        for site in got["sites"]:
            check(site["min_ns"] <= site["p50_ns"] <= site["p99_ns"] <= site["max_ns"],
                  f"{function}: min, p50, p99, max are not in order: {site}")
            check(site["interruptible"] == function.startswith("interruptible"),
                  f"{function}: interruptible is {site['interruptible']}")
            check(site["max_ns"] <= got["wall_ns"], f"{function}: max is above the sum")
            check(site["caller"], f"{function}: no caller")


def check_unsafe_are_not_safe(truth, report):
    named = {c["function"] for c in report.target()["safe_calls"]}
    for function in truth:
        check(not function.startswith("unsafe") or function not in named,
              f"{function} is an unsafe call, but listed among the safe ones")


def check_lanes(report):
    for lane in report.target()["lanes"]:
        total = sum(lane["states"].values())
        check(total == lane["wall_ns"],
              f"{lane['kind']} lane {lane.get('tid')}: states add up to {total}, wall is {lane['wall_ns']}")


@cases("thr", "v", "thr_p", "p", "dyn")
def test_spin(t, way):
    truth, report, _ = profile_run(
        t, "Calls", 1, "safe_spin_5us=20000", "safe_spin_20us=10000", "safe_spin_100us=3000",
        "safe_spin_1ms=300", "safe_spin_5ms=60", way=way, steady=True, options=ALWAYS)
    compare(truth, report)
    check_lanes(report)
    for function, ns in (("safe_spin_1ms", 1000000), ("safe_spin_5ms", 5000000)):
        for site in report.call(function)["sites"]:
            # Each call lasts as long as its name indicates, to the histogram's error, unless it is preempted.
            error = site["quantile_error"]
            check(0 < error <= 0.13, f"quantile_error is {error}")
            check(ns * (1 - error) <= site["p50_ns"] <= ns * (1 + error) + 50000 * SLOWNESS,
                  f"{function}: p50 is {site['p50_ns']}")
            check(ns <= site["min_ns"] <= ns * 1.05 + 50000 * (SLOWNESS - 1), f"{function}: min is {site['min_ns']}")


def test_without_optimisation(t):
    """Without optimisation each function is called through a register, and is named all the same."""
    if GHC_ROOT:
        raise Skip("scripts/ghc-root makes no programs in this way")
    truth, report, _ = profile_run(
        t, "Calls", 1, "safe_spin_20us=5000", "safe_sleep_1ms=100", "interruptible_sleep_1ms=50", way="O0",
        steady=True, options=ALWAYS)
    compare(truth, report)
    calls = report.target()["safe_calls"]
    indirect = [c for c in calls if c["function"] == "[indirect]"]
    check(sum(c["calls"] for c in indirect) <= 0.01 * sum(c["calls"] for c in calls), f"by a register: {indirect}")


@cases("thr", "v", "thr_p", "p", "dyn")
def test_sleep(t, way):
    truth, report, _ = profile_run(
        t, "Calls", 1, "safe_sleep_5us=5000", "safe_sleep_20us=5000", "safe_sleep_100us=3000",
        "safe_sleep_1ms=300", "safe_sleep_20ms=30", "interruptible_sleep_1ms=200",
        way=way, steady=True, options=ALWAYS)
    compare(truth, report)
    check_lanes(report)
    call = report.call("safe_sleep_20ms")
    check(call["blocked_ns"] >= 0.95 * call["wall_ns"], f"a sleeping call was blocked for {call}")


@cases("thr", "thr_p", "dyn")
def test_threads_on_two_capabilities(t, way):
    """Eight Haskell threads with overlapping calls: counts, times and lanes are right."""
    truth, report, _ = profile_run(
        t, "Calls", 8, "safe_sleep_100us=1000", "safe_half_2ms=50", "safe_spin_20us=500",
        "safe_sleep_20ms=20", "unsafe_spin_20us=500", way=way, rts=("-N2",), steady=True, options=ALWAYS)
    check(truth["safe_half_2ms"]["calls"] == 400, "the test program itself is wrong")
    # With more threads than processors a call waits for one when it begins and ends, outside of what it times:
    # negligible for a long call, but not for a short one; of those only the counts are compared.
    short = ("safe_spin_20us", "safe_sleep_100us")
    compare({f: v for f, v in truth.items() if f not in short}, report)
    for function in short:
        calls = report.call(function)["calls"]
        check(calls == truth[function]["calls"], f"{function}: {calls} calls, should be {truth[function]['calls']}")
    check_unsafe_are_not_safe(truth, report)
    check_lanes(report)
    check(report.target()["capabilities"] == 2, "capabilities should be 2")


def test_cpu_apart_from_wall(t):
    """A call that is on the CPU for half of its time is reported with that share."""
    truth, report, _ = profile_run(t, "Calls", 1, "safe_half_2ms=400", steady=True, options=ALWAYS)
    compare(truth, report)
    call = report.call("safe_half_2ms")
    share = call["cpu_ns"] / call["wall_ns"]
    check(0.40 <= share <= 0.52, f"cpu is {share:.2f} of wall, should be just below a half")


def test_unsafe_calls(t):
    """Unsafe calls: time on the CPU and time blocked are reported separately, by function name."""
    truth, report, _ = profile_run(
        t, "Calls", 1, "unsafe_spin_1ms=1500", "unsafe_sleep_1ms=1000",
        options=(*ALWAYS, "-F", "999"))
    unsafe = {}
    for call in report.target()["unsafe_calls"]:
        sums = unsafe.setdefault(call["function"], {"cpu_ns": 0, "blocked_ns": 0})
        for key in sums:
            sums[key] += call[key] or 0
    for function, key, other in (("unsafe_spin_1ms", "cpu_ns", "blocked_ns"),
                                 ("unsafe_sleep_1ms", "blocked_ns", "cpu_ns")):
        check(function in unsafe, f"no unsafe call {function}; there are {sorted(unsafe)}")
        want = truth[function]
        wall = want["cpu_ns"] if key == "cpu_ns" else want["wall_ns"] - want["cpu_ns"]
        check_near(f"{function}: {key}", unsafe[function][key], wall, 0.10 * wall)
        check(unsafe[function][other] <= 0.25 * wall, f"{function}: {other} is {unsafe[function][other]}")
    check_unsafe_are_not_safe(truth, report)
    check_lanes(report)


def keep_busy(t):
    """One busy loop per processor, with the same priority as the test's own program."""
    for _ in range(os.cpu_count()):
        p = subprocess.Popen(["sh", "-c", "while :; do :; done"])
        t.finally_do(p.wait)
        t.finally_do(p.kill)


@cases("safe_spin_1ms-thr", "safe_half_2ms-thr", "safe_spin_5ms-thr", "safe_half_2ms-thr_p", "safe_half_2ms-dyn")
def test_busy_machine(t, case):
    """Each capability that a call gives away goes to another thread, which wakes up for it and often takes the
    processor of the one that gave it away, before the foreign function has begun. That time is reported as hand-over,
    and the rest matches the program's clocks."""
    function, way = case.split("-")
    keep_busy(t)
    truth, report, _ = profile_run(t, "Calls", 6, *([f"{function}=1", "unsafe_spin_1ms=1"] * 80), way=way,
                                   rts=("-N2",), options=ALWAYS)
    want, call = truth[function], report.call(function)
    calls, wall, handover = call["calls"], call["wall_ns"], call["handover_ns"]
    check(calls == want["calls"] == 480, f"{calls} calls, the program made {want['calls']}")
    check_near(f"{function}: wall", wall, want["wall_ns"], 0.01 * want["wall_ns"])
    check(wall >= want["wall_ns"] - CLOCKS_NS * calls, f"wall {wall} is below the program's own clock, {want['wall_ns']}")
    # Without a hand-over the test has no effect. Whether the thread that wakes up runs at once is the scheduler's
    # choice: with calls of 5 ms it may never do.
    check(handover > 0 or function == "safe_spin_5ms", f"no hand-over: {call}")
    check(call["cpu_ns"] + call["blocked_ns"] <= wall, f"CPU and blocked time is more than wall: {call}")
    # All time that the caller saw is one of these, apart from the few instructions before and after.
    total = wall + handover + call["cap_wait_ns"]
    check(total <= want["outer_ns"] + CLOCKS_NS * calls, f"{total} ns in all, the caller saw {want['outer_ns']}")
    check_near(f"{function}: wall, hand-over and wait for a capability", total, want["outer_ns"], 0.02 * want["outer_ns"])
    for site in call["sites"]:
        check(site["max_ns"] <= wall and site["min_ns"] * calls <= wall, f"min and max do not match the times: {site}")
    check_lanes(report)


if __name__ == "__main__":
    run(globals())
