#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A process's eventlog, joined with what the kernel recorded of it: the clock is compared with the program's own (by
its markers), the log's contents with the kernel's records and with the tests' independent reader (eventlog_truth.py)."""

import json
import os
import shutil
import socket
import threading
from collections import Counter
from pathlib import Path

import eventlog_truth as truth
from harness import GHC_ROOT, cases, check, check_near, run

ALWAYS = ("--max-overhead", "1000")
CLOCK_NS = 50000
AGREE = 0.999
WAYS = {"thr_l": (), "thr_p": ("-p",)}
ROUNDS = 400


class Joined:
    """One session with a program that writes an eventlog, until the program ends."""

    def __init__(self, t, way, name="Joined", args=(ROUNDS,), rts=("-N2",), options=(), formats="json,chrome"):
        inside = Path("/tmp") / f"join-{os.getpid()}" if GHC_ROOT else t.dir
        self.outside = Path(f"{GHC_ROOT}{inside}") if GHC_ROOT else t.dir
        self.outside.mkdir(parents=True, exist_ok=True)
        if GHC_ROOT:
            t.finally_do(lambda: shutil.rmtree(self.outside, ignore_errors=True))
        self.target = t.target(name, *args, way=way,
                               rts=("-l", f"-ol{inside}/own.eventlog", f"-po{inside}/own", *WAYS[way], *rts)
                               if way == "thr_p" else ("-l", f"-ol{inside}/own.eventlog", *rts))
        self.session = t.attach(self.target, *ALWAYS, *options, formats=formats)
        self.t = t

    def to_the_end(self, log="own.eventlog"):
        self.target.go()
        self.target.wait()
        code = self.session.wait()
        check(code == 0, f"safescoped ended with {code}: {self.session.err.seen[-5:]}")
        self.report = self.t.report()
        self.log = self.report.target()["eventlog"]
        check(self.log, f"no eventlog in the report: {self.report.target()['missing']}")
        self.first, self.events = truth.read(self.outside / log)
        return self


class Forwarder(threading.Thread):
    """Reads the log from the FIFO that the program writes it to, keeps a copy, and sends it on."""

    def __init__(self, source, copy, where, how):
        super().__init__(daemon=True)
        self.source, self.copy, self.where, self.how = source, copy, where, how
        os.mkfifo(source)
        if how == "fifo":
            os.mkfifo(where)
        else:
            self.server = socket.socket(socket.AF_UNIX)
            self.server.bind(str(where))
            self.server.listen(1)
        self.start()

    def sink(self):
        if self.how == "fifo":
            return open(self.where, "wb", 0)
        return self.server.accept()[0].makefile("wb", 0)

    def run(self):
        source = os.open(self.source, os.O_RDONLY)
        with open(self.copy, "wb") as copy, self.sink() as sink:
            while piece := os.read(source, 1 << 16):
                copy.write(piece)
                while piece:
                    piece = piece[sink.write(piece):]
        os.close(source)


@cases("fifo", "socket")
def test_stream(t, how):
    """A log that arrives through a FIFO or a socket during the session is as good as a file."""
    inside = Path("/tmp") / f"join-{os.getpid()}" if GHC_ROOT else t.dir
    outside = Path(f"{GHC_ROOT}{inside}") if GHC_ROOT else t.dir
    outside.mkdir(parents=True, exist_ok=True)
    if GHC_ROOT:
        t.finally_do(lambda: shutil.rmtree(outside, ignore_errors=True))
    where = t.dir / "sent"
    forwarder = Forwarder(outside / "pipe.eventlog", t.dir / "copy.eventlog", where, how)
    joined = Joined.__new__(Joined)
    joined.t, joined.outside = t, t.dir
    joined.target = t.target("Joined", ROUNDS, way="thr_l", rts=("-l", f"-ol{inside}/pipe.eventlog", "-N2"))
    joined.session = t.attach(joined.target, *ALWAYS, "--eventlog", str(where), formats="json,folded")
    joined.to_the_end(log="copy.eventlog")
    forwarder.join(10)
    check(not forwarder.is_alive(), "the log was not taken to its end")
    check_clock(joined)
    check(joined.log["events"] == len(joined.events), f"{joined.log['events']} events, the log has {len(joined.events)}")
    check(joined.log["damaged_bytes"] == 0, f"damaged: {joined.log}")
    agreement = joined.log["agreement"]
    check(agreement["safe_calls"] is not None and agreement["safe_calls"] >= AGREE, f"safe calls: {agreement}")


def check_clock(joined, rounds=ROUNDS):
    """The program's own clock, which it writes into its markers, against the log's times plus the reported offset."""
    off = []
    for e in joined.events:
        if e.id == truth.USER_MARKER and e.data.startswith(b"clock "):
            # The event is written after the clock was read, and later still if the thread lost its CPU in between.
            off.append(e.time + joined.log["offset_ns"] - int(e.data[6:]))
    off.sort()
    check(len(off) == rounds, f"{len(off)} markers, should be {rounds}")
    middle = off[len(off) // 4]
    check(abs(middle) < CLOCK_NS, f"the clock is off by {middle} ns")
    check(joined.log["offset_error_ns"] < CLOCK_NS, f"offset_error_ns is {joined.log['offset_error_ns']}")
    return off


@cases("thr_l", "thr_p")
def test_clock_and_agreement(t, way):
    joined = Joined(t, way).to_the_end()
    check_clock(joined)
    agreement = joined.log["agreement"]
    check(agreement["safe_calls"] is not None and agreement["safe_calls"] >= AGREE, f"safe calls: {agreement}")
    check(agreement["capabilities"] is not None and agreement["capabilities"] >= AGREE, f"capabilities: {agreement}")
    check(joined.log["damaged_bytes"] == 0, f"damaged: {joined.log}")
    check(joined.log["events"] == len(joined.events), f"{joined.log['events']} events, the log has {len(joined.events)}")
    # The same comparison by other means: the calls that both have counted.
    stops = sum(1 for e in joined.events if e.id == truth.STOP_THREAD and e.u16(4) == truth.FOREIGN_CALL)
    target = joined.report.target()
    counted = sum(c["calls"] for c in target["safe_calls"])
    check(counted >= 3 * 2 * ROUNDS, f"{counted} safe calls")
    check(counted <= stops, f"{counted} safe calls, the log has {stops}")


def test_clock_by_many_calls(t):
    """Thousands of calls, closer together than the wall clock's uncertainty: the clocks and the calls still match."""
    joined = Joined(t, "thr_l", args=(3000,)).to_the_end()
    check_clock(joined, 3000)
    agreement = joined.log["agreement"]
    check(agreement["safe_calls"] is not None and agreement["safe_calls"] >= AGREE, f"safe calls: {agreement}")


def test_marks_are_on_the_time_axis(t):
    joined = Joined(t, "thr_l").to_the_end()
    off = check_clock(joined)
    trace = json.loads(Path(f"{t.stem}.trace.json").read_text()) if Path(f"{t.stem}.trace.json").exists() else \
        json.loads(next(t.dir.glob("p.*chrome*")).read_text())
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    marks = sorted((int(e["name"].split()[1]), e["ts"]) for e in events
                   if e.get("ph") in ("i", "I") and e["name"].startswith("clock "))
    check(len(marks) == ROUNDS, f"{len(marks)} marks in the trace, should be {ROUNDS}")
    # The session's start is not known in the program's clock: the first mark shows it.
    shifts = sorted(ts * 1000 - clock for clock, ts in marks)
    spread = shifts[3 * len(shifts) // 4] - shifts[len(shifts) // 4]
    own = off[3 * len(off) // 4] - off[len(off) // 4]
    check(spread <= own + CLOCK_NS, f"marks are spread by {spread:.0f} ns against the program's clock, the log's by {own}")


def test_haskell_threads(t):
    joined = Joined(t, "thr_l", options=("--lanes", "thread,capability,haskell")).to_the_end()
    lanes = {l["label"]: l for l in joined.report.target()["lanes"] if l["kind"] == "haskell"}
    ran = truth.running(joined.events)
    labels = {e.data[4:].rstrip(b"\0").decode(): e.u32(0) for e in joined.events if e.id == 44}
    for label in ("caller one", "caller two", "computer"):
        check(label in lanes, f"no lane of {label}: {sorted(lanes)}")
        lane = lanes[label]
        check(lane["tso"] == labels[label], f"{label}: thread {lane['tso']}, should be {labels[label]}")
        check(sum(lane["states"].values()) == lane["wall_ns"], f"{label}: {lane}")
        got = sum(lane["states"].get(s, 0) for s in ("running", "unsafe_call"))
        check_near(f"{label}: running", got, ran[labels[label]], 0.02 * ran[labels[label]] + 2000000)
        check(lane["states"].get("unknown", 0) <= 0.01 * lane["wall_ns"], f"{label}: {lane['states']}")


def test_capability_lanes(t):
    """The capability lanes' time for Haskell code is the time of the threads' runs in the log."""
    joined = Joined(t, "thr_l").to_the_end()
    target = joined.report.target()
    for lane in target["lanes"]:
        check(sum(lane["states"].values()) == lane["wall_ns"], f"{lane['kind']}: states do not add up")
    start = target["attach_ns"] if "attach_ns" in target else 0
    check(start >= 0, f"attach_ns {start}")
    ran = sum(truth.running(joined.events).values())
    caps = [l for l in target["lanes"] if l["kind"] == "capability"]
    got = sum(l["states"].get(s, 0) for l in caps for s in ("haskell", "unsafe_call", "preempted"))
    # The program waits for `go` before the session; preempted time is both inside and outside of runs.
    check(got >= 0.9 * ran, f"{got} ns of Haskell and preempted, the log's runs are {ran}")
    haskell = sum(l["states"].get(s, 0) for l in caps for s in ("haskell", "unsafe_call"))
    check(haskell <= 1.02 * ran + 2000000, f"{haskell} ns of Haskell, the log's runs are {ran}")


def test_ticks(t):
    """Cost centres: each tick agrees with the log, and so do the totals."""
    joined = Joined(t, "thr_p", name="Centres", args=("3",), rts=("-N1", "-V0.002")).to_the_end()
    log, target = joined.log, joined.report.target()
    check(log["agreement"]["ticks"] is not None and log["agreement"]["ticks"] >= AGREE, f"ticks: {log['agreement']}")
    check(log["tick_centres_differ"] is not None and log["tick_centres_differ"] <= 0.05,
          f"tick_centres_differ is {log['tick_centres_differ']}")
    centres = truth.cost_centres(joined.events)
    overhead = ("IDLE", "GC", "SYSTEM", "OVERHEAD_of", "PINNED", "DONT_CARE")
    theirs = Counter(centres[stack[-1]][:2] if stack else ("MAIN", "MAIN") for _, _, stack in truth.samples(joined.events))
    theirs = Counter({k: n for k, n in theirs.items() if k[0] not in overhead})
    ours = Counter({(c["label"], c["module"]): c["self_ticks"] for c in target["cost_centres"]
                    if c["label"] not in overhead})
    check(all(c["source"] == "memory" for c in target["cost_centres"]), "cost centres are not the records'")
    check(sum(theirs.values()) >= 300, f"only {sum(theirs.values())} ticks in the log")
    for name, n in theirs.items():
        want, got = n / sum(theirs.values()), ours[name] / sum(ours.values())
        check(want < 0.05 or abs(got - want) <= 0.02, f"{name}: {got:.3f} of the ticks, the log has {want:.3f}")


def test_none(t):
    joined = Joined(t, "thr_l", options=("--eventlog", "none"), formats="json,folded")
    joined.target.go()
    joined.target.wait()
    check(joined.session.wait() == 0, f"safescoped: {joined.session.err.seen[-3:]}")
    check(t.report().target()["eventlog"] is None, "the log was read")


def test_named(t):
    """--eventlog FILE for a process: a file that does not exist is reported, and the session goes on."""
    joined = Joined(t, "thr_l", options=("--eventlog", "/nonexistent/x.eventlog"), formats="json,folded")
    joined.target.go()
    joined.target.wait()
    check(joined.session.wait() == 1, f"safescoped: {joined.session.err.seen[-3:]}")
    report = t.report()
    check(any("eventlog" in m for m in report.target()["missing"]), f"missing: {report.target()['missing']}")
    check(report.target()["safe_calls"], "the session did not go on")


def test_running_on(t):
    """The program runs on after the session: its log lags, which is not damage, and how far it reaches is reported."""
    joined = Joined(t, "thr_l", args=(100000,), options=("-d", "2"), formats="json,folded")
    joined.target.go()
    code = joined.session.wait()
    check(code == 0, f"safescoped ended with {code}: {joined.session.err.seen[-5:]}")
    target = t.report().target()
    log = target["eventlog"]
    said = [m for m in target["missing"] if "eventlog" in m]
    check(said, f"that the log lags is not reported: {target['missing']}")
    if log:
        check(log["reaches_ns"] <= t.report().json["session"]["duration_ns"], f"it reaches {log['reaches_ns']}")
        check(log["damaged_bytes"] == 0, f"damaged: {log}")
    check(not target["lost"], f"lost: {target['lost']}")


if __name__ == "__main__":
    run(globals())
