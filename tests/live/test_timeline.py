#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Lanes against the truth: the kernel's accounting of the threads, the program's own clocks, the runtime's own
statistics, its eventlog."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import eventlog_truth
from harness import GHC_ROOT, SAFESCOPED, SLOWNESS, NotHere, cases, check, check_near, profile_run, program, run, stolen_ns, thorough
from test_windows import windows

ALWAYS = ("--max-overhead", "1000")
ALL_LANES = ("--lanes", "thread,capability,haskell")
UNKNOWN_SHARE = 0.01


def lanes(report, kind):
    return [l for l in report.target()["lanes"] if l["kind"] == kind]


def total(lanes_of_a_kind, *states):
    return sum(l["states"][s] for l in lanes_of_a_kind for s in states)


def check_all_lanes(report):
    """The lanes' states add up, lanes are not longer than they should be, and next to nothing in them is unknown."""
    for lane in report.target()["lanes"]:
        what = f"{lane['kind']} lane {lane.get('tid', lane.get('no', lane.get('tso')))}"
        check(sum(lane["states"].values()) == lane["wall_ns"], f"{what} does not add up: {lane}")
        check(lane["wall_ns"] == lane["end_ns"] - lane["start_ns"], f"{what}: its ends: {lane}")
        check(lane["kind"] == "haskell" or lane["states"]["unknown"] <= UNKNOWN_SHARE * lane["wall_ns"],
              f"{what}: too much is unknown: {lane['states']}")
        if lane["kind"] == "thread":
            off = lane["wall_ns"] - lane["cpu_ns"] - lane["states"]["unknown"]
            check_near(f"{what}: off-CPU reasons", sum(r["ns"] for r in lane["off_cpu"]
                                                       if r["reason"] != "unknown"), off, 0)


def account(pid):
    """{tid: (name, ns on the CPU)} by the scheduler's accounting."""
    found = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        task = Path(f"/proc/{pid}/task/{tid}")
        try:
            found[int(tid)] = ((task / "comm").read_text().strip(), int((task / "schedstat").read_text().split()[0]))
        except (FileNotFoundError, ProcessLookupError):
            continue  # a collector's thread that is just ending
    return found


def profile_lanes(t, mode, seconds, way="thr", rts=(), options=(), steady=False):
    """A run of Lanes; the kernel's accounting is read before and after it, while all threads sleep. (the program's
    JSON, the report, {tid: (name, ns)}, what was stolen, the target)"""
    target = t.target("Lanes", mode, seconds, way=way, rts=rts, steady=steady)
    session = t.attach(target, *ALWAYS, *options)
    before, stolen = account(target.pid), stolen_ns()
    target.go()
    target.wait_for("}", 60)
    truth = json.loads(target.lines.seen[-1])
    after, stolen = account(target.pid), stolen_ns() - stolen
    session.signal(signal.SIGINT)
    code = session.wait()
    check(code == 0, f"safescoped ended with {code}: {session.err.seen}")
    target.say("end")
    target.wait()
    ran = {tid: (name, ns - before.get(tid, ("", 0))[1]) for tid, (name, ns) in after.items()}
    return truth, t.report(), ran, stolen + 10000000, target


# ── time on the CPU ──


@cases("busy", "blocked")
def test_cpu(t, mode):
    """Two capabilities, three busy threads: thread lanes and capability lanes have the running time that the scheduler
    measured."""
    _, report, ran, stolen, _ = profile_lanes(t, mode, 2, rts=("-N2",))
    check_all_lanes(report)
    all_ns = sum(ns for _, ns in ran.values())
    ours = sum(l["cpu_ns"] for l in lanes(report, "thread"))
    check_near("on CPU, thread lanes", ours, all_ns, 0.01 * all_ns + stolen)
    by_tid = {l["tid"]: l["cpu_ns"] for l in lanes(report, "thread")}
    for tid, (name, ns) in ran.items():
        check_near(f"on CPU, {name} {tid}", by_tid.get(tid, 0), ns, 0.01 * all_ns + stolen)
    if mode != "busy":
        return  # a collection also stops a capability that is idle
    # the timer's thread has no capability
    haskell_ns = sum(ns for name, ns in ran.values() if name != "ghc_ticker")
    caps = lanes(report, "capability")
    check(len(caps) == 2, f"{len(caps)} capability lanes")
    check_near("on CPU, capability lanes", total(caps, "haskell", "unsafe_call", "gc", "rts"),
               haskell_ns, 0.01 * haskell_ns + stolen)


@cases("thr", "v", "thr_p", "dyn")
def test_ways(t, way):
    """In each way nothing is unknown, and thread and capability lanes agree."""
    rts = ("-N2",) if way != "v" else ()
    _, report, _, stolen, _ = profile_lanes(t, "blocked", 2, way=way, rts=rts, options=("-F", "499"))
    check_all_lanes(report)
    threads, caps = lanes(report, "thread"), lanes(report, "capability")
    check(len(caps) == (1 if way == "v" else 2), f"{len(caps)} capability lanes")
    for cap_state, states in (("haskell", ("haskell", "haskell_blocked")),
                              ("unsafe_call", ("unsafe_call_cpu", "unsafe_call_blocked"))):
        want = total(threads, *states)
        check_near(f"{cap_state} in capability lanes", total(caps, cap_state), want,
                   0.01 * max(want, total(threads, "haskell")) + stolen)


def test_stopped_by_a_signal(t):
    """While the program is stopped, that is the reason why its threads are off the CPU, in a safe call or not."""
    target = t.target("Work", "alloc", 4)
    session = t.attach(target, formats="json,text")
    target.go()
    time.sleep(1)
    os.kill(target.pid, signal.SIGSTOP)
    began = time.monotonic_ns()
    time.sleep(1.2)
    stopped = time.monotonic_ns() - began
    os.kill(target.pid, signal.SIGCONT)
    check(session.wait(60) == 0, f"safescoped: {session.err.seen}")
    report = t.report()
    check_all_lanes(report)
    times = {l["name"]: sum(r["ns"] for r in l["off_cpu"] if r["reason"] == "stopped by a signal or a debugger")
             for l in lanes(report, "thread")}
    # a thread stops when it next gets a CPU, and can be seen to go on only when it gets one
    for name, ns in times.items():
        check(stopped - 5e8 <= ns <= stopped + 5e8, f"{name}: stopped for {ns} of {stopped} ns: {times}")


# ── safe calls ──


def test_safe_calls(t):
    """Calls that sleep and calls that spin have exactly the time that they took."""
    truth, report, _ = profile_run(t, "Calls", 1, "safe_sleep_20ms=60", "safe_spin_5ms=200", steady=True,
                                   options=ALWAYS)
    check_all_lanes(report)
    threads = lanes(report, "thread")
    slept = sum(r["ns"] for l in threads for r in l["off_cpu"] if r["reason"].startswith("safe_sleep_20ms"))
    # no shorter than requested, no longer than by the function's own clock
    check(0.99 * 60 * 20000000 <= slept <= truth["safe_sleep_20ms"]["wall_ns"],
          f"asleep in the call for {slept}: {truth['safe_sleep_20ms']}")
    check(total(threads, "safe_call_blocked") >= slept, "safe_call_blocked is less than one call's part")
    spun = truth["safe_spin_5ms"]["cpu_ns"] + truth["safe_sleep_20ms"]["cpu_ns"]
    check_near("safe_call_cpu", total(threads, "safe_call_cpu"), spun, 0.01 * spun + report.stolen_ns)
    # during the calls nobody had the capability
    caps = lanes(report, "capability")
    free = truth["safe_sleep_20ms"]["wall_ns"] + truth["safe_spin_5ms"]["wall_ns"]
    check(total(caps, "idle") >= 0.99 * free, f"idle: {total(caps, 'idle')}, the calls took {free}")


def test_nothing_is_guessed_while_it_is_attached_to(t):
    """A thread that always sleeps for a millisecond is not shown as sleeping longer at the beginning of its lane."""
    target = t.target("Calls", 1, "unsafe_sleep_1ms=3000")
    target.go()
    code = t.attach(target, "--duration", "1", formats="json,chrome").wait()
    check(code == 0, f"safescoped ended with {code}")
    events = json.loads(Path(f"{t.stem}.trace.json").read_text())["traceEvents"]
    slept = [e["dur"] for e in events if e["ph"] == "X" and e["name"] == "unsafe call, blocked"]
    check(len(slept) > 200, f"it slept {len(slept)} times")
    # plus the delay with which a busy machine wakes it
    check(max(slept) < 25000 * SLOWNESS, f"one sleep took {max(slept)} us, the longest others {sorted(slept)[-5:]}")


def test_cap_wait(t):
    """With -N1 four threads return from safe calls at the same time: their waiting time for the capability is the
    eventlog's time between stop and run, less the time of the function itself."""
    log = t.dir / "log"
    way = "thr_l"
    inside = "/tmp/lanes-log" if GHC_ROOT else log
    truth, report, _, stolen, _ = profile_lanes(t, "together", 2, way=way, steady=True,
                                                rts=("-N1", "-ls", f"-ol{inside}"), options=("--eventlog", "none"))
    path = Path(f"{GHC_ROOT}{inside}") if GHC_ROOT else log
    t.finally_do(lambda: path.unlink(missing_ok=True))
    _, events = eventlog_truth.read(path)
    calls = truth["lanes_together"]
    logged = together(events)
    check(len(logged) == calls["calls"], f"the log has {len(logged)} calls, there were {calls['calls']}")
    waited = report.call("lanes_together")["cap_wait_ns"]
    by_log = sum(end - start for _, start, end in logged) - calls["wall_ns"]
    check(by_log > 1000000 * calls["calls"], f"hardly any waiting: {by_log} ns in {calls['calls']} calls")
    check_near("cap_wait of the call", waited, by_log, 0.05 * by_log + stolen)
    in_lanes = total(lanes(report, "thread"), "cap_wait")
    check(in_lanes <= 1.05 * by_log + stolen, f"cap_wait in lanes: {in_lanes}, by the log {by_log}")
    check_all_lanes(report)


def together(events):
    """The foreign calls of those four threads, each of which made many of them."""
    calls = eventlog_truth.foreign_calls(events)
    n = {}
    for thread, start, end in calls:
        n[thread] = n.get(thread, 0) + (end - start > 100000)
    return [c for c in calls if n[c[0]] >= 10]


# ── collections ──


def machine_readable(path):
    text = path.read_text().split("\n", 1)[1]
    return {k: float(v) for k, v in re.findall(r'\("(\w+)", "([0-9.]+)"\)', text)}


def collect(t, path, *rts, work="alloc", options=ALWAYS, seconds=1.2):
    """A run of Work from its first instruction to its last: (the runtime's statistics, the report's gc)."""
    stats = t.dir / "statistics"
    session = t.session("-f", "json", "-o", t.dir / "p.json", *options, "--", path, work, seconds,
                        "+RTS", *rts, f"-t{stats}", "--machine-readable", "-RTS",
                        prefix=("sh", "-c", 'echo go | "$@"', "sh"))
    code = session.wait(120)
    check(code == 0, f"safescoped ended with {code}: {session.err.seen}")
    return machine_readable(stats), t.report().target()["gc"]


@cases("thr", "v", "thr_p", "dyn", "thr.stripped", "v.stripped", "thr_p.stripped")
def test_collections(t, way):
    """The number of collections is the runtime's, and so is their time; without symbols, too. (They take half of the
    time, as the stack is deep: the cost of the traps, which matters for collections of some microseconds, is not tested
    here.)"""
    if GHC_ROOT:
        raise NotHere("a command's root is the session's own")
    threads = ("-N2",) if not way.startswith("v") else ()
    want, got = collect(t, program("Work", way), *threads, "-A1m", work="deep")
    check(want["GC_wall_seconds"] > 0.2 * want["total_wall_seconds"], f"the test program itself is wrong: {want}")
    check(got["exact"], f"not exact: {got}")
    check(got["count"] == want["num_GCs"], f"{got['count']} collections of {want['num_GCs']}")
    by_rts = 1e9 * want["GC_wall_seconds"]
    check_near("time of collections", got["pause_ns"], by_rts, 0.03 * by_rts + 3000 * want["num_GCs"])


def test_many_collections(t):
    """Thousands of collections a second, each of some microseconds, of a program without symbols. The runtime's own
    figure includes the trap of the probe at the collection's end, ours does not."""
    if GHC_ROOT:
        raise NotHere("a command's root is the session's own")
    want, got = collect(t, program("Work", "thr.stripped"), "-A64k")
    check(want["num_GCs"] > 2000, f"the test program itself is wrong: {want}")
    check(got["exact"], f"not exact: {got}")
    check(got["count"] == want["num_GCs"], f"{got['count']} collections of {want['num_GCs']}")
    by_rts = 1e9 * want["GC_wall_seconds"]
    check(0.97 * by_rts - 10000 * want["num_GCs"] <= got["pause_ns"] <= 1.03 * by_rts,
          f"paused for {got['pause_ns']} ns, the runtime measured {by_rts} in {want['num_GCs']} collections")


@cases("thr", "thr_p.stripped")
def test_collections_by_their_ends(t, way):
    """If the probes on collections would take much of the overhead limit, only the one on their ends stays, and yields
    the same number and time."""
    if GHC_ROOT:
        raise NotHere("a command's root is the session's own")
    want, _ = collect(t, program("Work", way), "-A64k", options=(*ALWAYS, "-F", "199"), seconds=0.5)
    cost = t.report().target()["cost"]
    check(cost["probe_hits"] > 2.9 * want["num_GCs"], f"{cost['probe_hits']} probes were hit in {want['num_GCs']} collections")
    # a limit below the cost of all three probes; with fewer probes there are more collections
    percent = 85 * (cost["trap_ns_estimated"] + cost["bpf_ns"]) / (1e9 * want["total_wall_seconds"])
    want, got = collect(t, program("Work", way), "-A64k",
                        options=("--max-overhead", f"{percent:.1f}", "-F", "199"), seconds=3)
    hits = t.report().target()["cost"]["probe_hits"]
    check(hits < 2 * want["num_GCs"], f"{hits} probes were hit in {want['num_GCs']} collections")
    check(got["exact"], f"not exact: {got}")
    check(got["count"] == want["num_GCs"], f"{got['count']} collections of {want['num_GCs']}")
    by_rts = 1e9 * want["GC_wall_seconds"]
    check(0.97 * by_rts - 10000 * want["num_GCs"] <= got["pause_ns"] <= 1.03 * by_rts,
          f"paused for {got['pause_ns']} ns, the runtime measured {by_rts} in {want['num_GCs']} collections")


@cases("thr", "thr.stripped", "v")
def test_collections_at_a_low_frequency(t, way):
    """At a service's low frequency one trap per collection suffices, since the runtime notes when it was requested and
    when it began."""
    if GHC_ROOT:
        raise NotHere("a command's root is the session's own")
    want, got = collect(t, program("Work", way), "-A256k", options=("--max-overhead", "1000", "-F", "19"), seconds=4)
    cost = t.report().target()["cost"]
    # (without -threaded the runtime does not note it)
    check(way == "v" or cost["probe_hits"] < 1.6 * want["num_GCs"], f"{cost['probe_hits']} probes were hit in {want['num_GCs']} collections")
    check(got["exact"], f"not exact: {got}")
    check(got["count"] == want["num_GCs"], f"{got['count']} collections of {want['num_GCs']}")
    by_rts = 1e9 * want["GC_wall_seconds"]
    check(0.97 * by_rts - 10000 * want["num_GCs"] <= got["pause_ns"] <= 1.03 * by_rts + 3000 * want["num_GCs"],
          f"paused for {got['pause_ns']} ns, the runtime measured {by_rts} in {want['num_GCs']} collections")


def test_collections_beyond_the_budget(t):
    """There are so many collections that the probes on them come off: what was seen before is reported, and the rest
    has an upper bound. The safe calls, which are few, are counted to the end."""
    if GHC_ROOT:
        raise NotHere("a command's root is the session's own")
    # if two other programs keep the processors busy it reaches the limit only after a second
    want, got = collect(t, program("Work", "thr"), "-A64k", options=("--max-overhead", "0.5", "-F", "199"), seconds=4)
    check(got["exact"] is False and got["count"] is None and got["pause_ns"] is None, f"not so many: {got}")
    paused, wall = 1e9 * want["GC_wall_seconds"], 1e9 * want["total_wall_seconds"]
    check(0.97 * paused <= got["pause_at_most_ns"] <= 1.05 * wall,
          f"at most {got['pause_at_most_ns']}, the runtime measured {paused}")
    check(0 < got["observed_count"] < want["num_GCs"] and 0 < got["observed_pause_ns"] < got["observed_ns"] < wall,
          f"observed: {got}, the runtime counted {want}")
    target = t.report().target()
    check(all(c["exact"] for c in target["safe_calls"]), "the call probes came off")
    alloc, heap = target["allocation"], target["heap"]
    check(alloc["exact"] is False and alloc["observed_ns"] == heap["observed_ns"] == got["observed_ns"],
          f"{alloc['bytes']} bytes, observed for {alloc['observed_ns']} ns, the heap for {heap['observed_ns']}")


@thorough
def test_collections_while_held_up(t):
    """The daemon is stopped for longer than the probes stay on: the collections that it missed are taken from the
    runtime's own count."""
    if GHC_ROOT:
        raise NotHere("its statistics are in the root")
    stats = t.dir / "statistics"
    target = t.target("Work", "alloc", 12, rts=("-A1m", f"-t{stats}", "--machine-readable"))
    session = t.attach(target, *ALWAYS, formats="json,text")
    target.go()
    time.sleep(2)
    session.signal(signal.SIGSTOP)
    time.sleep(4)
    session.signal(signal.SIGCONT)
    check(session.wait(120) == 0, f"safescoped: {session.err.seen}")
    want, got = machine_readable(stats), t.report().target()["gc"]
    check(got["exact"] is False and got["missed"] > 0, f"{got}, the runtime counted {want['num_GCs']} collections")
    check(0 <= want["num_GCs"] - got["count"] - got["missed"] <= 2, f"{got}, the runtime counted {want['num_GCs']}")
    check(abs(got["observed_share"] - got["count"] / (got["count"] + got["missed"])) < 0.001, f"{got}")
    check(got["pause_at_most_ns"] is None, f"{got}")


@cases("one", "windows")
def test_collections_of_one_that_begins(t, way):
    """A program that is new to the host collects garbage before it has probes, and before its runtime's counter is
    located: the collections that are seen and those reported as missed add up to all, in windows and in a replay in
    windows, too."""
    new, stats, capture, folder = t.dir / f"b{os.getpid()}", t.dir / "statistics", t.dir / "capture", t.dir / "windows"
    shutil.copy(program("Work", "thr"), new)
    folder.mkdir()
    out = ("-o", folder, "--window", "250ms") if way == "windows" else ("-o", t.dir / "p.json")
    session = t.session(*ALWAYS, "-v", "--comm", new.name, "-F", "49", "-f", "json", "--save", capture, *out)
    check(session.err.until("processes", 60) is not None, f"safescoped did not begin: {session.err.seen}")
    subprocess.run([new, "alloc", "2", "+RTS", f"-t{stats}", "--machine-readable", "-RTS"], input="go\n", text=True, check=True,
                   stdout=subprocess.DEVNULL)
    time.sleep(0.5)
    session.signal(signal.SIGINT)
    check(session.wait(60) in (0, 1), f"safescoped: {session.err.seen}")
    again = t.dir / "again"
    again.mkdir()
    subprocess.run([SAFESCOPED, "--replay", capture, "--window", "1", "-f", "json", "-o", again], check=True, stderr=subprocess.DEVNULL)
    want = machine_readable(stats)["num_GCs"]
    for reports in (windows(folder) if way == "windows" else [t.report()], windows(again)):
        gcs = [target["gc"] for report in reports for target in report.json["targets"]]
        got = [(gc["count"], gc["missed"]) for gc in gcs]
        count, missed = (sum(n or 0 for n in ns) for ns in zip(*got))
        check(count > 0 and count + missed == want, f"{got} are {count} and {missed}, the runtime counted {want:.0f}")
        first = next(gc for gc in gcs if gc["count"])
        check(first["exact"] is False or not missed, f"{missed} were missed, most of them before these: {first}")


@cases("-A64k", "-A1m")
def test_collections_without_marks(t, area):
    """In a runtime in which the ends of collections cannot be found the report has only an upper bound of their time,
    which is not less than the time that they took."""
    if GHC_ROOT:
        raise NotHere("a command's root is the session's own")
    code = program("Work", "thr.stripped").read_bytes()
    check(code.count(b"(Gen: %2d)") == 1, "the runtime lacks the string that identifies it")
    path = t.dir / "Work"
    path.write_bytes(code.replace(b"(Gen: %2d)", b"(gen: %2d)"))
    path.chmod(0o755)
    want, got = collect(t, path, "-N1", area, options=("-F", "199"))
    check(got["exact"] is False and got["count"] is None and got["pause_ns"] is None
          and got["max_pause_ns"] is None, f"it claims to know: {got}")
    wall, paused = 1e9 * want["total_wall_seconds"], 1e9 * want["GC_wall_seconds"]
    check(0.97 * paused <= got["pause_at_most_ns"] <= 1.05 * wall,
          f"at most {got['pause_at_most_ns']}, the runtime measured {paused}")
    if area == "-A1m":
        check(got["pause_at_most_ns"] <= 2.5 * paused + 0.15 * wall,
              f"at most {got['pause_at_most_ns']} proves nothing: the runtime measured {paused} of {wall}")


# ── threads and capabilities that come and go ──


def test_number_of_capabilities(t):
    """setNumCapabilities, from 2 to 3 and back to 2: the third one's lane lasts as long as the capability was enabled."""
    _, report, _, _, target = profile_lanes(t, "caps", 3, rts=("-N2",))
    check_all_lanes(report)
    said = [l.split() for l in target.lines.seen if l.startswith("capabilities")]
    (_, _, more, more_done), (_, _, less, less_done) = said
    between = float(less_done) - float(more)
    unsure = float(more_done) - float(more) + float(less_done) - float(less)
    caps = {l["no"]: l for l in lanes(report, "capability")}
    check(set(caps) == {0, 1, 2}, f"capabilities {set(caps)}")
    late = caps[2]
    # The change is noticed at ticks: on a busy machine these come late, and a program that is idle after it has given
    # up the capability has none before its idle collection, 0.3 s later (rts/RtsFlags.c, idleGCDelayTime).
    check_near("the third one's life", late["wall_ns"] - late["states"]["disabled"],
               1e9 * between, 1e9 * unsure + 0.45e9)
    check(late["states"]["disabled"] > 0, f"it was never disabled: {late}")
    check(late["states"]["haskell"] > 0, f"it did nothing: {late}")
    check(all(caps[no]["states"]["disabled"] == 0 for no in (0, 1)), f"the others were disabled: {caps}")


@cases("thr", "dyn")
def test_bound_threads(t, way):
    """forkOS: each bound thread has its own OS thread, inside its calls and outside."""
    truth, report, _, _, _ = profile_lanes(t, "bound", 2, way=way, rts=("-N2",), options=(*ALL_LANES, "-F", "499"))
    check_all_lanes(report)
    with_calls = [l for l in lanes(report, "thread")
                  if any(r["reason"].startswith("lanes_pause") for r in l["off_cpu"])]
    check(len(with_calls) == 2, f"{len(with_calls)} OS threads make the calls of two bound threads")
    asleep = sum(r["ns"] for l in with_calls for r in l["off_cpu"] if r["reason"].startswith("lanes_pause"))
    calls = truth["lanes_pause"]
    check(0.95 * 5000000 * calls["calls"] <= asleep <= calls["wall_ns"], f"asleep for {asleep}: {calls}")
    # and each has a Haskell thread that is bound to it
    bound = [l for l in lanes(report, "haskell") if l["bound"] and l["states"]["safe_call"] > 0]
    in_calls = total(bound, "safe_call")
    check(len(bound) >= 2, f"bound Haskell threads: {lanes(report, 'haskell')}")
    check(in_calls >= asleep, f"bound Haskell threads are in safe calls for {in_calls}, asleep {asleep}")


@cases("thr", "dyn")
def test_threads_that_call_in(t, way):
    """Threads that C created: Haskell while they call into it, and foreign otherwise."""
    _, report, _, _, _ = profile_lanes(t, "callin", 2, way=way, rts=("-N2",), options=("-F", "999"))
    check_all_lanes(report)
    callers = [l for l in lanes(report, "thread")
               if l["states"]["foreign_blocked"] + l["states"]["idle"] > 0.2e9
               and l["states"]["haskell"] + l["states"]["gc_work"] > 1e6]
    first = min(l["start_ns"] for l in lanes(report, "thread"))
    born = [l for l in callers if l["start_ns"] > first]
    check(len(born) >= 2, f"no two threads that call in: {[(l['name'], l['states']) for l in lanes(report, 'thread')]}")


def test_haskell_threads(t):
    """Running Haskell threads are on a capability; blocked ones are shown with what they wait for."""
    _, report, _, stolen, _ = profile_lanes(t, "busy", 2, rts=("-N2",), options=(*ALL_LANES, "-F", "999"))
    check_all_lanes(report)
    found = lanes(report, "haskell")
    # on a busy machine one of them may hardly get a turn
    busy = [l for l in found if l["states"]["running"] > 1e6 and not l["bound"]]
    check(1 <= len(busy) <= 4, f"{len(busy)} computing threads of three: {found}")
    threads = lanes(report, "thread")
    on = total(threads, "haskell", "haskell_blocked")
    running = total(found, "running")
    check(running >= 0.95 * on, f"running: {running} of {on}")
    caps = lanes(report, "capability")
    check(running <= 1.02 * total(caps, "haskell", "preempted") + stolen,
          f"running: {running}, capabilities {total(caps, 'haskell', 'preempted')}")


@cases("v", "v.stripped")
def test_schedulers_wait(t, way):
    """Without -threaded the scheduler itself waits for timers, here a hundred times a second: it and the capability are
    idle then, and no other state has that time."""
    _, report, _ = profile_run(t, "Waits", "seldom", 3000, way=way, options=ALWAYS)
    check_all_lanes(report)
    main, = (l for l in lanes(report, "thread") if l["tid"] == report.target()["pid"])
    cap, = lanes(report, "capability")
    states, wall = main["states"], main["wall_ns"]
    off = wall - main["cpu_ns"] - states["preempted"] - states["unknown"]
    check(off >= 0.1 * wall, f"it hardly waited: {states}")
    check_near("idle", states["idle"], off, 0.1 * off)
    check(states["rts_blocked"] <= 0.05 * off, f"the runtime waited for itself: {states}")
    check(cap["states"]["idle"] >= 0.95 * states["idle"], f"the capability: {cap['states']}, the thread: {states}")
    check(cap["states"]["rts"] <= main["cpu_ns"] + states["rts_blocked"] + 0.02 * wall,
          f"the capability: {cap['states']}, on the CPU {main['cpu_ns']}")


def test_nonmoving_collector(t):
    """The nonmoving collector's own thread is shown as collecting, and not as foreign code."""
    _, report, _, _, _ = profile_lanes(t, "busy", 2, rts=("-N2", "-xn"), options=("-F", "999"))
    check_all_lanes(report)
    threads = lanes(report, "thread")
    foreign = [l for l in threads if l["states"]["foreign_cpu"] > 0.02e9 and l["name"] != "ghc_ticker"]
    check(not foreign, f"collecting was taken for foreign code: {[(l['tid'], l['states']) for l in foreign]}")
    check(total(threads, "gc_work") > 0, "no collection")


if __name__ == "__main__":
    run(globals())
