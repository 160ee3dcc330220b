#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Findings: a program's own mistakes are reported, with numbers that the program itself measured, and a program without
any has no findings."""

import contextlib
import os
import re
import time
from pathlib import Path

from harness import Skip, cases, check, check_near, profile_run, run

ALWAYS = ("--max-overhead", "1000")
# Caused by other load on the machine, not by the program.
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
    """Twice an unsafe call blocks for 500 ms while a thread on the other capability allocates. The program knows how
    long that thread stood still."""
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
    # the table of unsafe calls agrees
    held = sum(c["held_up_gc_ns"] or 0 for c in report.target()["unsafe_calls"]
               if c["function"] == "holdup_take_lock")
    check_near("held_up_gc_ns", held, truth["waited_ns"], 0.05 * truth["waited_ns"])


def test_gc_held_up_by_a_loop(t):
    """Haskell code that does not allocate does not stop for a collection until it is done."""
    truth, report, _ = profile_run(t, "Holdup", "loop", rts=("-N2",), options=ALWAYS)
    check(truth["holds"] == 2, f"the test program itself is wrong: {truth}")
    finding = the_one(report, "haskell_held_up_gc")
    # The time in which the loop had no CPU is not its fault, and is left out; and it may have run for a while before a
    # collection was requested.
    check(0.4 * truth["held_cpu_ns"] <= finding["ns"] <= 1.1 * truth["held_cpu_ns"],
          f"GC waited {finding['ns']}, the program measured {truth}")
    says(finding, "for capability 1", "Main.", "-fno-omit-yields")


@cases("thr", "thr_p")
def test_blocking_unsafe_call(t, way):
    truth, report, _ = profile_run(t, "Calls", 1, "unsafe_sleep_1ms=400", way=way, options=ALWAYS)
    want = truth["unsafe_sleep_1ms"]
    asleep = want["wall_ns"] - want["cpu_ns"]
    finding = the_one(report, "blocking_unsafe_call")
    # less the time in which it was ready but had no CPU
    check(0.70 * asleep <= finding["ns"] <= 1.02 * asleep, f"{finding['ns']}, should be up to {asleep}")
    says(finding, "unsafe_sleep_1ms", "`safe`")


@cases("thr", "v")
def test_hot_safe_call(t, way):
    """The call is so short that giving up and taking back the capability is nearly all of its cost."""
    calls = 300000
    truth, report, _ = profile_run(t, "NullCall", 20, calls, way=way, options=ALWAYS)
    finding = the_one(report, "safe_call_overhead")
    says(finding, "null_call", "`unsafe`", "calibrated")
    # The constant depends on the machine: the program measures it here before the session.
    each = truth["safe_ns"] - truth["unsafe_ns"]
    check(0.2 * each * calls <= finding["ns"] <= 5 * each * calls,
          f"{finding['ns'] / calls:.0f} ns each, the program measured {each:.0f}")
    check(finding["where"].startswith("NullCall+0x"), f"the place is {finding['where']!r}")


def test_hot_safe_call_within_the_budget(t):
    """The call probes come off because of their cost, and are put back for a moment now and then: what they record is
    enough for the finding."""
    _, report, _ = profile_run(t, "NullCall", 20, 30000000)
    if report.call("null_call")["calls"] < 20000:
        raise Skip("the machine is so busy that the program hardly ran while its calls were counted")
    says(the_one(report, "safe_call_overhead"), "null_call", "at least")


@cases("bound", "unbound")
def test_bound_thread(t, mode):
    """With a bound main thread each hand-over to another Haskell thread switches OS threads."""
    _, report, _ = profile_run(t, "PingPong", mode, {"bound": 30000, "unbound": 300000}[mode], rts=("-N1",))
    if mode == "bound":
        says(the_one(report, "bound_thread"), "main thread", "forkIO")
    else:
        check(not findings(report, "bound_thread"), f"findings: {findings(report)}")


# ── Haskell threads that wait ──

ALL_LANES = ("--lanes", "thread,capability,haskell", "-F", "199")


def with_log(t):
    """(RTS options, our options) for a log that has each wait of each Haskell thread, also those that our samples miss."""
    log = t.dir / "log"
    return ("-l", f"-ol{log}"), (*ALWAYS, *ALL_LANES, "--eventlog", log)


@cases("blackhole", "apart")
def test_black_holes(t, mode):
    """Three threads want what a fourth one evaluates; they measure how long they waited."""
    rts, options = with_log(t)
    truth, report, _ = profile_run(t, "Waits", mode, 1000, way="thr_l", rts=("-N2", *rts), options=options, steady=True)
    if mode == "apart":
        check(not findings(report, "blocked_on_black_hole"), f"findings: {findings(report)}")
        return
    finding = the_one(report, "blocked_on_black_hole")
    check_near("blocked on black holes", finding["ns"], truth["waited_ns"], 0.05 * truth["waited_ns"])
    says(finding, "3 Haskell threads", "3 times")


def test_black_holes_without_a_log(t):
    """Without a log, waits are derived from what is in memory when another thread runs: some are missed, but none is
    overestimated."""
    # they wait for several times as long as they work first, which is slow on fresh memory
    truth, report, _ = profile_run(t, "Waits", "blackhole", 3000, rts=("-N2", "-A256m"), steady=True,
                                   options=(*ALWAYS, "--lanes", "thread,capability,haskell", "-F", "999"))
    finding = the_one(report, "blocked_on_black_hole")
    check(0.2 * truth["waited_ns"] <= finding["ns"] <= 1.05 * truth["waited_ns"],
          f"{finding['text']}; the program measured {truth['waited_ns']}")


def sleeps(finding):
    """The rate in the finding's text, in times per second, which has two digits."""
    m = re.search(r"([\d  ]+) times a second", finding["text"])
    check(m, f"no rate in: {finding['text']}")
    return float(re.sub(r"\D", "", m[1]))


def wall_s(report):
    """The target's wall time as findings use it."""
    return max(l["wall_ns"] for l in report.target()["lanes"] if l["kind"] == "capability") / 1e9


def test_sleeps_on_mvars(t):
    """Two threads hand a token to each other: each hand-over is a sleep, and each is in the log."""
    rounds = 5000
    rts, options = with_log(t)
    _, report, _ = profile_run(t, "PingPong", "unbound", rounds, way="thr_l", rts=("-N1", *rts), options=options)
    finding = the_one(report, "blocked_on_mvar")
    says(finding, "2 Haskell threads")
    n = sleeps(finding) * wall_s(report)
    # the text's rate has two digits
    check_near("sleeps", n, 2 * rounds, 0.1 * 2 * rounds)


@cases("stm", "seldom")
def test_sleeps_in_stm(t, mode):
    rts, options = with_log(t)
    truth, report, _ = profile_run(t, "Waits", mode, 500, way="thr_l", rts=("-N2", *rts), options=options, steady=True)
    if mode == "seldom":
        check(not findings(report), f"findings: {findings(report)}")
        return
    finding = the_one(report, "blocked_in_stm")
    says(finding, "2 Haskell threads")
    n = sleeps(finding) * wall_s(report)
    check(0.3 * truth["turns"] <= n <= 1.2 * truth["turns"], f"{finding['text']}: {n:.0f} sleeps, {truth}")


# ── capabilities ──


@cases("pinned", "even")
def test_idle_capability(t, mode):
    """Three busy threads are pinned to one of two capabilities: the other one is idle meanwhile."""
    truth, report, _ = profile_run(t, "Waits", mode, 1000, rts=("-N2", "-A64m", "-qg"), options=ALWAYS, steady=True)
    if mode == "even":
        check(not findings(report, "idle_capability"), f"findings: {findings(report)}")
        return
    finding = the_one(report, "idle_capability")
    each = truth["took_ns"] / 3
    check(0.4 * each <= finding["ns"] <= 1.1 * each + 50e6, f"{finding['ns']}, the program measured {each}: {finding}")
    says(finding, "forkOn")


def test_waits_for_a_capability(t):
    """Threads return from safe calls to a capability that is in use while another one is idle."""
    _, report, _ = profile_run(t, "Waits", "return", 1500, rts=("-N2", "-A64m", "-qg"), options=ALWAYS, steady=True)
    call = report.call("poll")
    finding = the_one(report, "capability_wait")
    in_lanes = sum(l["states"]["cap_wait"] for l in report.target()["lanes"] if l["kind"] == "thread")
    check(0.5 * call["cap_wait_ns"] <= finding["ns"] <= 1.01 * in_lanes + 1e6,
          f"{finding['ns']}, of the call {call['cap_wait_ns']}, in the lanes {in_lanes}")
    says(finding, "poll", "1 " if call["calls"] >= 1000 else "", "calls)")
    idle = [f for f in findings(report, "idle_capability") if "back after a safe call" in f["text"]]
    check(len(idle) == 1, f"findings: {findings(report)}")
    check(idle[0]["ns"] <= 1.01 * in_lanes + 1e6, f"{idle[0]}, waited for {in_lanes}")


def run_delays(pid):
    """How long each thread has waited for a CPU so far, in nanoseconds, as the kernel counts it."""
    delays = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            delays[task.name] = int((task / "schedstat").read_text().split()[1])
    return delays


def test_capability_without_a_cpu(t):
    """Two busy capabilities on one CPU: each runs for half of the time, or for less on a busy machine."""
    cpu = min(os.sched_getaffinity(0))
    target = t.target("Waits", "even", 1000, rts=("-N2", "-A64m", "-qg"))
    for tid in os.listdir(f"/proc/{target.pid}/task"):
        os.sched_setaffinity(int(tid), {cpu})
    session = t.attach(target, *ALWAYS)
    before, now = run_delays(target.pid), {}
    target.go()
    with contextlib.suppress(OSError):
        while target.process.poll() is None:
            now.update(run_delays(target.pid))
            time.sleep(0.02)
    target.result()
    check(session.wait() == 0, f"safescoped failed: {session.err.seen}")
    # of the two threads that ran Haskell code; the ticker waits for the CPU, too
    waited = sum(sorted(ns - before.get(tid, 0) for tid, ns in now.items())[-2:])
    found = [f for f in t.report().target()["findings"] if f["kind"] == MACHINE]
    check(len(found) == 1, f"findings: {t.report().target()['findings']}")
    check(0.9 * waited <= found[0]["ns"] <= 1.1 * waited + 5e7, f"{found[0]}, waited for {waited}")
    check(waited >= 0.5e9, f"waited for {waited}")


# ── collections ──


def test_gc_share(t):
    """With a tiny allocation area most of the CPU time is the collector's, by the runtime's own statistics; the cost of
    the probes is included in it."""
    stats = t.dir / "statistics"
    _, report, _ = profile_run(t, "Work", "alloc", 2, rts=("-A64k", f"-t{stats}", "--machine-readable"),
                               options=(*ALWAYS, "-F", "499"))
    want = {k: float(v) for k, v in re.findall(r'\("(\w+)", "([0-9.]+)"\)', stats.read_text())}
    finding = the_one(report, "gc_share")
    cost = report.target()["cost"]
    probes = cost["trap_ns_estimated"] + cost["bpf_ns"]
    check(0.6 * 1e9 * want["GC_cpu_seconds"] <= finding["ns"] <= 1.3 * 1e9 * want["GC_cpu_seconds"] + probes,
          f"{finding['ns']}, the runtime has {want['GC_cpu_seconds']} s, the probes took {probes}")
    says(finding, "-A64m")


def test_futile_collections_of_its_own(t):
    """A heap that only grows, with a major collection each half second that the program itself requests: the finding
    does not advise a larger -F, which would not help."""
    # with a larger nursery there are few enough collections to look at each
    _, report, _ = profile_run(t, "Alloc", "leak", 5, 40000000, rts=("-A16m",), options=ALWAYS)
    heap = report.target()["heap"]
    finding = the_one(report, "futile_major_gcs")
    check(heap["futile_majors"] >= 0.8 * heap["majors"] >= 4, f"the heap: {heap}")
    says(finding, "requests most of them itself", "performMajorGC")
    check("-F4" not in finding["text"], f"what makes no difference: {finding}")


@cases("parallel", "-qg")
def test_gc_spin(t, how):
    """One deep stack is one piece of work, which two GC threads cannot share: one of them has none and spins. With one
    GC thread there is no such finding."""
    rts = ("-N2", "-A1m") + (() if how == "parallel" else (how,))
    _, report, _ = profile_run(t, "Work", "deep", 2, rts=rts, options=(*ALWAYS, "-F", "499"), steady=True)
    if how == "-qg":
        check(not findings(report, "gc_spin"), f"findings: {findings(report)}")
        return
    finding = the_one(report, "gc_spin")
    work = sum(l["states"]["gc_work"] for l in report.target()["lanes"] if l["kind"] == "thread")
    check(0.2 * work <= finding["ns"] <= work, f"{finding['ns']} of {work} in collections")
    says(finding, "samples in garbage collection")


@cases("Holdup", "Calls")
def test_nothing_wrong(t, program):
    args = {"Holdup": ("clean",),
            "Calls": (1, "safe_sleep_1ms=100", "safe_half_2ms=50", "unsafe_spin_20us=200",
                      "safe_spin_100us=200", "safe_sleep_20ms=20")}[program]
    _, report, _ = profile_run(t, program, *args, options=ALWAYS)
    check(not findings(report), f"findings: {findings(report)}")


if __name__ == "__main__":
    run(globals())
