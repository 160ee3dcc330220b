#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Findings: that a program's own mistakes are told, with numbers that the program itself measured,
and that a program without any is told nothing."""

from harness import Skip, cases, check, check_near, profile_run, run

ALWAYS = ("--max-overhead", "1000")
# The truth of a machine that others load, and no fault of the program's.
MACHINE = "capability_preempted"


def findings(report, kind=None):
    return [f for f in report.target()["findings"]
            if f["kind"] != MACHINE and (kind is None or f["kind"] == kind)]


def the_one(report, kind):
    found = findings(report, kind)
    check(len(found) == 1, f"{len(found)} findings {kind}, should be one: {report.target()['findings']}")
    return found[0]


def says(finding, *words):
    for word in words:
        check(word in finding["text"], f"{word!r} is not in: {finding['text']}")


@cases("thr", "thr_p", "dyn", "thr.stripped", "thr_p.stripped")
def test_gc_held_up(t, way):
    """One unsafe call blocks for 500 ms, twice, while a thread on the other capability allocates.
    How long that one stood still is known to the program."""
    truth, report, _ = profile_run(t, "Holdup", "hold", way=way, rts=("-N2",), options=ALWAYS)
    check(truth["waits"] == 2, f"the test program itself is wrong: {truth}")
    finding = the_one(report, "unsafe_call_held_up_gc")
    check_near("GC waited", finding["ns"], truth["waited_ns"], 0.05 * truth["waited_ns"])
    says(finding, "in 2 collections for capability 1", "`safe`")
    check(not findings(report, "gc_share"), "waiting was taken for collecting")
    if way.endswith(".stripped"):
        check("[Holdup]+0x" in finding["text"], f"no place in the code: {finding['text']}")
        return
    says(finding, "holdup_take_lock", "Main.")
    check("Main." in finding["where"], f"the place is {finding['where']!r}")
    # the table says the same
    held = sum(c["held_up_gc_ns"] or 0 for c in report.target()["unsafe_calls"]
               if c["function"] == "holdup_take_lock")
    check_near("held_up_gc_ns", held, truth["waited_ns"], 0.05 * truth["waited_ns"])


def test_gc_held_up_by_a_loop(t):
    """Haskell code that allocates nothing hears of no collection until it is done."""
    truth, report, _ = profile_run(t, "Holdup", "loop", rts=("-N2",), options=ALWAYS)
    check(truth["holds"] == 2, f"the test program itself is wrong: {truth}")
    finding = the_one(report, "haskell_held_up_gc")
    # The loop's time without a CPU is not its fault, and is left out; and it may have run for a
    # while before a collection was asked for.
    check(0.4 * truth["held_cpu_ns"] <= finding["ns"] <= 1.1 * truth["held_cpu_ns"],
          f"GC waited {finding['ns']}, the program says {truth}")
    says(finding, "for capability 1", "Main.", "-fno-omit-yields")


@cases("thr", "thr_p")
def test_blocking_unsafe_call(t, way):
    truth, report, _ = profile_run(t, "Calls", 1, "unsafe_sleep_1ms=400", way=way, options=ALWAYS)
    want = truth["unsafe_sleep_1ms"]
    asleep = want["wall_ns"] - want["cpu_ns"]
    finding = the_one(report, "blocking_unsafe_call")
    # less what it was ready and had no CPU
    check(0.70 * asleep <= finding["ns"] <= 1.02 * asleep, f"{finding['ns']}, should be up to {asleep}")
    says(finding, "unsafe_sleep_1ms", "`safe`")


@cases("thr", "v")
def test_hot_safe_call(t, way):
    """So short that leaving and taking back the capability is all there is."""
    calls = 300000
    truth, report, _ = profile_run(t, "NullCall", 20, calls, way=way, options=ALWAYS)
    finding = the_one(report, "safe_call_overhead")
    says(finding, "null_call", "`unsafe`", "calibrated")
    # The constant is a machine's; this one's is measured by the program before the session.
    each = truth["safe_ns"] - truth["unsafe_ns"]
    check(0.2 * each * calls <= finding["ns"] <= 5 * each * calls,
          f"{finding['ns'] / calls:.0f} ns each, the program measured {each:.0f}")
    check(finding["where"].startswith("NullCall+0x"), f"the place is {finding['where']!r}")


def test_hot_safe_call_within_the_budget(t):
    """The call probes come off, and are tried again now and then: what they saw is enough."""
    _, report, _ = profile_run(t, "NullCall", 20, 30000000)
    if report.call("null_call")["calls"] < 60000:
        raise Skip("the machine is so busy that the program hardly ran while its calls were counted")
    says(the_one(report, "safe_call_overhead"), "null_call", "at least")


@cases("bound", "unbound")
def test_bound_thread(t, mode):
    """Hand-overs between main and another thread are switches of OS threads."""
    _, report, _ = profile_run(t, "PingPong", mode, {"bound": 30000, "unbound": 300000}[mode], rts=("-N1",))
    if mode == "bound":
        says(the_one(report, "bound_thread"), "main thread", "forkIO")
    else:
        check(not findings(report, "bound_thread"), f"findings: {findings(report)}")


@cases("Holdup", "Calls")
def test_nothing_wrong(t, program):
    args = {"Holdup": ("clean",),
            "Calls": (1, "safe_sleep_1ms=100", "safe_half_2ms=50", "unsafe_spin_20us=200",
                      "safe_spin_100us=200", "safe_sleep_20ms=20")}[program]
    _, report, _ = profile_run(t, program, *args, options=ALWAYS)
    check(not findings(report), f"findings: {findings(report)}")


if __name__ == "__main__":
    run(globals())
