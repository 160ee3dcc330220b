#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""--eventlog on a log alone: what it makes of the logs and reports that programs of the installed GHC (or GHC_ROOT's)
write, against GHC's own reports, the program's own clock, and the tests' independent reader (eventlog_truth.py).
Neither a kernel part nor privileges are needed."""

import gzip
import json
import os
import random
import re
import shutil
import socket
import struct
import subprocess
import threading
from collections import Counter
from pathlib import Path

import eventlog_truth as truth
from harness import GHC_ROOT, SAFESCOPED, Report, cases, check, check_near, enter_root, program, run
from test_export import tool
from test_ghc import runtime_statistics

LANES = ("--lanes", "thread,capability,haskell")
WAYS = {"thr_l": (), "thr_p": ("-p",)}


# ── logs ──


class Run:
    """One run of a test program that writes an eventlog: its folder has log.eventlog and the reports that GHC wrote."""

    def __init__(self, folder, name, args, way, rts):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        inside = Path("/tmp") / f"logs-{os.getpid()}-{folder.name}" if GHC_ROOT else folder
        outside = Path(f"{GHC_ROOT}{inside}") if GHC_ROOT else folder
        outside.mkdir(parents=True, exist_ok=True)
        self.binary = program(name, way)
        command = [str(self.binary), *map(str, args), "+RTS", "-l", f"-ol{inside}/log.eventlog", f"-t{inside}/statistics",
                   "--machine-readable", *([f"-po{inside}/report"] if way == "thr_p" else []), *rts, "-RTS"]
        if GHC_ROOT:
            command = enter_root(command)
        done = subprocess.run(command, input=b"go\n", stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
        check(done.returncode == 0, f"{command}: {done.returncode} {done.stderr[-500:]}")
        self.output = done.stdout.decode()
        if outside != folder:
            for file in outside.iterdir():
                shutil.copy(file, folder / file.name)
            shutil.rmtree(outside)
        self.log = folder / "log.eventlog"

    def own(self):
        return json.loads(self.output.strip().split("\n")[-1])

    def statistics(self):
        return runtime_statistics(self.folder / "statistics")


def logged(t, way="thr_l", caps=2, rounds=150, rts=()):
    return Run(t.dir / "logs", "Logged", (rounds,), way, (f"-N{caps}", *WAYS[way], *rts))


def safescoped(*args, code=0, stdin=None):
    done = subprocess.run([str(SAFESCOPED), *map(str, args)], stdin=stdin or subprocess.DEVNULL, capture_output=True,
                          timeout=120)
    check(done.returncode in (code if isinstance(code, tuple) else (code,)),
          f"{args}: ended with {done.returncode}: {done.stderr.decode(errors='replace')[-500:]}")
    for word in ("AddressSanitizer", "LeakSanitizer", "runtime error:"):
        check(word not in done.stderr.decode(errors="replace"), f"{args}: {done.stderr[-2000:]}")
    return done


def report(t, log, *args, code=0):
    safescoped("-e", log, "-q", "-f", "json", *LANES, "-o", t.dir / "r.json", *args, code=code)
    return Report(t.dir / "r.json")


def check_sums(target):
    """In every lane the states' nanoseconds add up to the lane's wall time."""
    for lane in target["lanes"]:
        total = sum(lane["states"].values())
        check(total == lane["wall_ns"], f"states sum to {total}: {lane}")
        check(lane["wall_ns"] == lane["end_ns"] - lane["start_ns"], f"wall time: {lane}")


def lanes(target, kind):
    return [lane for lane in target["lanes"] if lane["kind"] == kind]


# ── the scheduler's events ──


@cases(*(f"{way}-{caps}" for way in WAYS for caps in (1, 2)))
def test_scheduler(t, case):
    way, caps = case.split("-")
    ran = logged(t, way, int(caps))
    _, events = truth.read(ran.log)
    r = report(t, ran.log)
    target = r.target()
    check_sums(target)
    check(r.json["session"]["mode"] == "eventlog", "the mode is not eventlog")
    last = max(e.time for e in events)
    check(r.json["session"]["duration_ns"] == last, f"{r.json['session']}, the last event is at {last}")
    check(target["eventlog"]["damaged_bytes"] == 0, f"damage: {target['eventlog']}")
    check(target["eventlog"]["events"] == len(events), f"{target['eventlog']['events']} events of {len(events)}")
    check(target["capabilities"] == int(caps), f"{target['capabilities']} capabilities of {caps}")
    caps_seen = lanes(target, "capability")
    check([lane["no"] for lane in caps_seen] == list(range(int(caps))), f"capabilities: {caps_seen}")
    # Running times, by the tests' own reader: from the same events, so the nanoseconds are the same.
    ran_ns = truth.running(events)
    for lane in lanes(target, "haskell"):
        check(lane["states"]["running"] == ran_ns[lane["tso"]],
              f"thread {lane['tso']} ran {lane['states']['running']}, should be {ran_ns[lane['tso']]}")
    check({lane["tso"] for lane in lanes(target, "haskell")} >= set(ran_ns), f"threads are missing: {ran_ns}")
    on_caps = sum(lane["states"]["haskell"] for lane in caps_seen)
    check(on_caps == sum(ran_ns.values()), f"capabilities ran Haskell for {on_caps}, threads for {sum(ran_ns.values())}")
    labels = {lane["label"] for lane in lanes(target, "haskell")}
    check({"worker 1", "worker 2"} <= labels, f"labels: {labels}")
    # GHC's own statistics of its collections.
    want = ran.statistics()
    check(target["gc"]["count"] == want["num_GCs"], f"{target['gc']} of {want['num_GCs']}")
    check_near("time of collections", target["gc"]["pause_ns"], 1e9 * want["GC_wall_seconds"],
               20000 * want["num_GCs"] + 0.02 * 1e9 * want["GC_wall_seconds"])


@cases(1, 2)
def test_safe_calls(t, caps):
    """Safe calls derived from the scheduler's events alone, against the program's own clock."""
    ran = logged(t, caps=caps)
    _, events = truth.read(ran.log)
    target = report(t, ran.log).target()
    own = ran.own()["plain"]
    workers = [lane for lane in lanes(target, "haskell") if lane["label"].startswith("worker")]
    in_calls = sum(lane["states"]["safe_call"] for lane in workers)
    check(in_calls >= 0.9 * own["calls"] * 1000000, f"{in_calls} ns in {own['calls']} calls of 1 ms")
    check(in_calls <= own["outer_ns"], f"{in_calls} ns in calls, the program's clock has {own['outer_ns']}")
    # A Haskell thread that waits for its capability counts as in the call until it runs again.
    threads = {lane["tso"] for lane in workers}
    want = sum(end - start for thread, start, end in truth.foreign_calls(events) if thread in threads)
    check(in_calls == want, f"{in_calls} ns in calls, should be {want}")


# ── cost centres ──


def prof_rows(path):
    """The rows of the tree in GHC's report: (depth, centre, module, individual, inherited); MAIN is the first."""
    rows, inside = [], False
    for line in path.read_text().split("\n"):
        if "entries" in line and "COST CENTRE" in line:
            inside = True
        elif inside:
            m = re.fullmatch(r"( *)(\S+) +(\S+) +(.*?) +(\d+) +(\d+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)(?: +\d+ +\d+)?", line)
            if m:
                rows.append((len(m.group(1)), m.group(2), m.group(3), m.group(7), m.group(9)))
    return rows


def text_rows(text):
    """The rows of the text report's tree, in the same shape."""
    rows, inside = [], False
    for line in text.split("\n"):
        if line.startswith("Cost-centre stacks"):
            inside = True
        elif inside and not line.strip():
            break
        elif inside:
            m = re.fullmatch(r"  ( *)(\S+) +(\S+) +(.*?) +(\d+) +([\d.]+) +([\d.]+)", line)
            if m:
                rows.append((len(m.group(1)), m.group(2), m.group(3), m.group(6), m.group(7)))
    return rows


def by_path(rows):
    """{path of (centre, module): (individual, inherited)}; rows of only zeros are left out."""
    path, found = [], {}
    for depth, centre, module, own, inherited in rows:
        path[depth:] = [(centre, module)]
        if (own, inherited) != ("0.0", "0.0"):
            check(tuple(path) not in found, f"a stack twice: {path}")
            found[tuple(path)] = (own, inherited)
    return found


# At a tick the RTS reads a capability's cost centre twice, once for the report and once for the log (handleProfTick in
# rts/Proftimer.c): now and then it has changed in between. Such a run is repeated.
TRIES = 5


@cases(1, 2)
def test_prof_table(t, caps):
    """The figures are those of GHC's own .prof of the same run, to the printed digit."""
    for _ in range(TRIES):
        ran = logged(t, "thr_p", caps)
        shown = safescoped("-e", ran.log, "-v", "-f", "text", "-o", "-").stdout.decode()
        want, got = by_path(prof_rows(ran.folder / "report.prof")), by_path(text_rows(shown))
        check(len(want) >= 5, f"GHC's own report has only {want}")
        if got == want:
            return
    check(False, f"differs from GHC's .prof: {sorted(set(got.items()) ^ set(want.items()))}")


def check_ticks(target, log):
    """Ticks by cost centre match those that the tests' own reader counts."""
    _, events = truth.read(log)
    centres, samples = truth.cost_centres(events), truth.samples(events)
    want = Counter(centres[stack[-1]][:2] if stack else ("MAIN", "MAIN") for _, _, stack in samples)
    got = Counter()
    for c in target["cost_centres"]:
        got[c["label"], c["module"]] += c["self_ticks"]
    check(+got == want, f"ticks {got}, should be {want}")
    check(target["eventlog"]["samples"] == len(samples), f"{target['eventlog']['samples']} samples of {len(samples)}")
    return samples


@cases(1, 2)
def test_ticks(t, caps):
    ran = logged(t, "thr_p", caps)
    target = report(t, ran.log).target()
    samples = check_ticks(target, ran.log)
    # The folded stacks match, too: --weight samples counts ticks.
    folded = safescoped("-e", ran.log, "-q", "-f", "folded", "--weight", "samples", "-o", "-").stdout.decode()
    _, events = truth.read(ran.log)
    heavy = sum(1 for _, _, stack in samples if stack and truth.cost_centres(events)[stack[-1]][0] == "workHeavy")
    shown = sum(int(l.rpartition(" ")[2]) for l in folded.splitlines() if "Main.workHeavy" in l)
    # A tick between two runs of a thread is shown where its time stamp puts it.
    check_near("ticks of workHeavy in folded stacks", shown, heavy, 3 + 0.03 * heavy)
    check(heavy > 20, f"only {heavy} ticks")


def test_ticks_without_scheduler(t):
    """With -l-au, ticks alone make up the lanes, and idle time is shown as such."""
    ran = Run(t.dir / "logs", "Logged", (150,), "thr_p", ("-N2", "-p", "-l-au"))
    target = report(t, ran.log).target()
    check_sums(target)
    check_ticks(target, ran.log)
    _, events = truth.read(ran.log)
    centres = truth.cost_centres(events)
    own = [s for s in truth.samples(events) if not s[2] or centres[s[2][-1]][2] != "<built-in>"]
    busy = sum(lane["states"]["haskell"] for lane in lanes(target, "capability"))
    # A tick stands for the time since the one before it, two milliseconds at most; ticks that were delayed come close
    # together.
    check(0.5e6 * len(own) <= busy <= 2.1e6 * len(own), f"{busy} ns of Haskell in {len(own)} ticks")
    check(sum(lane["states"]["idle"] for lane in lanes(target, "capability")) > 0, "no idle time")
    check(any("scheduler events" in m for m in target["missing"]), f"missing: {target['missing']}")


def agree(got, want, digit_only):
    """Whether the shares by path are equal; with one printed digit they may differ by 1 %."""
    if not digit_only:
        return got == want
    return set(got) == set(want) and all(abs(float(got[k][1]) - float(want[k][1])) <= 1 for k in got)


@cases("prof", "prof-P", "json")
def test_report_of_ghc(t, kind):
    """A .prof and a -pj file are accepted as well, and yield the shares of the log of the same run."""
    flag = {"prof": "-p", "prof-P": "-P", "json": "-pj"}[kind]
    for _ in range(TRIES):
        ran = Run(t.dir / "logs", "Logged", (150,), "thr_p", ("-N1", flag))
        path = ran.folder / "report.prof"
        shown = safescoped("-e", path, "-v", "-f", "text", "-o", "-").stdout.decode()
        log = safescoped("-e", ran.log, "-v", "-f", "text", "-o", "-").stdout.decode()
        got, want = by_path(text_rows(shown)), by_path(text_rows(log))
        if agree(got, want, kind == "prof"):
            break
    check(agree(got, want, kind == "prof"), f"{got}, the log of the same run has {want}")
    safescoped("-e", path, "-q", "-f", "speedscope,folded,pprof", "-o", t.dir / "p")
    file = json.loads((t.dir / "p.speedscope.json").read_text())
    ticks = file["profiles"][0]
    names = [f["name"] for f in file["shared"]["frames"]]
    # -pj also has the ticks that GHC leaves out of its shares.
    stacks = [([names[i] for i in s], w) for s, w in zip(ticks["samples"], ticks["weights"])]
    stacks = [(s, w) for s, w in stacks if not s[-1].startswith("[")]
    heavy = sum(w for s, w in stacks if "Main.workHeavy" in s)
    share = [float(v[1]) for k, v in want.items() if k[-1][0] == "workHeavy"]
    check_near("workHeavy in speedscope", 100 * heavy / sum(w for _, w in stacks), sum(share), 1.0)
    check("workHeavy" in (t.dir / "p.folded").read_text(), "workHeavy is not in the folded stacks")
    if shutil.which("go"):
        top = tool("go", "tool", "pprof", "-top", "-sample_index=wall", t.dir / "p.pb.gz")
        check(re.search(r"\d%.*Main\.workHeavy", top), f"workHeavy is not among what pprof shows: {top}")


@cases("hide", "only")
def test_hide_and_only(t, what):
    ran = logged(t, "thr_p", 1)
    whole = report(t, ran.log).target()["cost_centres"]
    args = ("--hide", "work*") if what == "hide" else ("--only", "Main.compute", "--only", "main")
    some = report(t, ran.log, *args).target()["cost_centres"]
    ticks = lambda centres, name: sum(c["self_ticks"] for c in centres if c["label"] == name)
    check(not [c for c in some if c["label"].startswith("work") and c["self_ticks"]], f"still there: {some}")
    check(sum(c["self_ticks"] for c in some) == sum(c["self_ticks"] for c in whole), "ticks were lost")
    want = ticks(whole, "workHeavy") + ticks(whole, "workLight") + ticks(whole, "compute")
    check(ticks(some, "compute") == want > 20, f"compute has {ticks(some, 'compute')} ticks, should be {want}")
    for name in ("idle", "system"):
        kind = [sum(c["self_ticks"] for c in centres if c["kind"] == name) for centres in (some, whole)]
        check(kind[0] == kind[1], f"{name} was touched")


# ── annotations, windows, markers ──


@cases("thr_l", "thr_p")
def test_annotated_calls(t, way):
    """hs-safescope's annotations yield a lane for the OS thread, the calls, and the stacks around and inside them."""
    ran = logged(t, way)
    symbols = f"{GHC_ROOT or ''}{ran.binary}"
    r = report(t, ran.log, "--symbols", symbols)
    target, own = r.target(), ran.own()
    check_sums(target)
    call = r.call("logged_spin")
    want = own["annotated"]
    check(call["calls"] == want["calls"], f"{call['calls']} calls of {want['calls']}")
    check(want["inner_ns"] <= call["wall_ns"] <= want["outer_ns"],
          f"{call['wall_ns']} ns in calls; the program's clock has {want}")
    check(call["cpu_ns"] is None and call["blocked_ns"] is None, f"a log does not show it: {call}")
    if way == "thr_p":
        check({s["caller"] for s in call["sites"]} <= {"Main.annotated", "Main.timed"}, f"callers: {call['sites']}")
    threads = {lane["tid"]: lane for lane in lanes(target, "thread")}
    check(own["tid"] in threads, f"OS threads {list(threads)}, it was {own['tid']}")
    total = sum(lane["states"]["safe_call"] for lane in threads.values())
    check_near("the lanes' time in calls", total, call["wall_ns"], 1000)
    folded = safescoped("-e", ran.log, "--symbols", symbols, "-q", "-f", "folded", "--weight", "wall", "-o", "-").stdout.decode()
    inside = [l for l in folded.splitlines() if ";logged_spin;logged_spin " in l]
    check(inside, f"the C function inside of the call is not named:\n{folded}")
    within = sum(int(l.rpartition(" ")[2]) for l in inside)
    check(within >= 0.8 * 500 * want["calls"], f"{within} µs in the C function, {want['calls']} calls of 500")
    if way == "thr_p":
        check(all("Main.main;" in l for l in inside), f"no cost centres under the call: {inside}")


def test_windows_of_the_program(t):
    ran = logged(t)
    windows = {w["label"]: w for w in report(t, ran.log).target()["windows"]}
    own = ran.own()
    check(windows["logged_spin"]["count"] == own["annotated"]["calls"], f"{windows}")
    check(windows["calls of ours"]["count"] == 1, f"{windows}")
    # Two threads at the same time, each with half of the calls.
    check_near("calls of ours", windows["calls of ours"]["total_ns"], own["plain"]["inner_ns"] / 2,
               0.5 * own["plain"]["inner_ns"])


@cases("marker", "time")
def test_part_of_a_log(t, by):
    ran = logged(t, "thr_p", 1)
    _, events = truth.read(ran.log)
    ends = [e.time for e in events if e.id == truth.USER_MARKER]
    check(len(ends) == 2, f"markers at {ends}")
    if by == "marker":
        args = ("--from", "compute beg", "--to", "compute ends")
    else:
        args = ("--from", f"{ends[0]}ns", "--to", f"{ends[1]}ns")
    r = report(t, ran.log, *args)
    target = r.target()
    check_sums(target)
    check(r.json["session"]["duration_ns"] == ends[1] - ends[0], f"{r.json['session']}, should be {ends}")
    own = ran.own()["compute"]
    check_near("from marker to marker", r.json["session"]["duration_ns"], own["outer_ns"], 2000000)
    samples = [s for s in truth.samples(events) if ends[0] <= s[0] < ends[1]]
    check(target["eventlog"]["samples"] == len(samples), f"{target['eventlog']['samples']} samples of {len(samples)}")
    marks = [m["text"] for m in target.get("marks", [])]
    check("compute begins" in marks, f"marks: {marks}")


def test_marker_that_is_not_there(t):
    ran = logged(t)
    done = safescoped("-e", ran.log, "-q", "-f", "json", "-o", "-", "--from", "nothing like it", code=2)
    check(b"--from nothing like it" in done.stderr and not done.stdout, f"{done.stderr}")
    done = safescoped("-e", ran.log, "-f", "json", "-o", "-", "--to", "nothing like it", code=1)
    check(b"--to nothing like it" in done.stderr and done.stdout, f"{done.stderr}")


def test_heap_profile(t):
    ran = Run(t.dir / "logs", "Work", ("alloc", 1), "thr_l", ("-N1", "-hT", "-i0.05"))
    _, events = truth.read(ran.log)
    heap = report(t, ran.log).target()["eventlog"]
    sizes = [e.u64(4) for e in events if e.id == truth.HEAP_SIZE]
    curve = next(c for c in heap["heap"] if c["name"] == "heap size")
    check(curve["max"] == max(sizes) and curve["last"] == sizes[-1], f"heap size {curve['max']}, should be {max(sizes)}")
    begins = sum(1 for e in events if e.id == truth.HEAP_SAMPLE_BEGIN)
    check(begins > 0, "no heap sample")
    bands = heap["heap_profile"]
    check(bands and max(len(b["points"]) for b in bands) == begins, f"{begins} samples: {[(b['name'], len(b['points'])) for b in bands]}")
    trace = json.loads(safescoped("-e", ran.log, "-q", "-f", "chrome", "-o", "-").stdout)
    counters = [e for e in trace["traceEvents"] if e.get("ph") == "C"]
    check(any("heap size" in json.dumps(e) for e in counters), f"no heap size among {len(counters)} counters")


# ── where a log comes from ──


def same(a, b):
    """Whether two reports are equal, apart from the path and from safescoped's own cost."""
    def strip(r):
        target = dict(r.target())
        target.pop("cost")
        target["eventlog"] = {k: v for k, v in target["eventlog"].items() if k != "path"}
        return target
    return strip(a) == strip(b)


@cases("stdin", "fifo", "gzip", "socket")
def test_source(t, how):
    ran = logged(t, "thr_p")
    want = report(t, ran.log)
    path, writer = t.dir / "source", None
    raw = ran.log.read_bytes()
    if how == "gzip":
        path.write_bytes(gzip.compress(raw[:20000]) + gzip.compress(raw[20000:]))
    elif how == "fifo":
        os.mkfifo(path)
        writer = threading.Thread(target=lambda: path.write_bytes(raw))
    elif how == "socket":
        server = socket.socket(socket.AF_UNIX)
        server.bind(str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path))
        server.listen()

        def serve():
            peer, _ = server.accept()
            peer.sendall(raw)
            peer.close()
        writer = threading.Thread(target=serve)
    if writer:
        writer.start()
    if how == "stdin":
        with subprocess.Popen(["cat", str(ran.log)], stdout=subprocess.PIPE) as cat:
            safescoped("-e", "-", "-q", "-f", "json", *LANES, "-o", t.dir / "s.json", stdin=cat.stdout)
    else:
        safescoped("-e", path, "-q", "-f", "json", *LANES, "-o", t.dir / "s.json")
    if writer:
        writer.join(30)
    check(same(Report(t.dir / "s.json"), want), f"by {how} the report differs")


def without_blocks(t):
    """A log as a tool might rewrite it: only its events, in order of time."""
    log = logged(t, rounds=10).log
    first, events = truth.read(log)
    raw = log.read_bytes()
    body = b"".join(struct.pack(">HQ", e.id, e.time) + (struct.pack(">H", len(e.data)) if e.variable else b"") + e.data
                    for e in events if e.id != truth.BLOCK_MARKER)
    return raw[:first] + body + b"\xff\xff"


def test_bad_files(t):
    cases_ = {"empty": (b"", ": empty"), "text": (b"hello, this is no log\n" * 30, "neither an eventlog"),
              "elf": (Path("/bin/true").read_bytes(), "neither an eventlog"),
              "header": (b"hdrbhetb" + b"\0" * 300, "damaged at the beginning"),
             "no blocks": (without_blocks(t), "its events are not in blocks")}
    for name, (content, why) in cases_.items():
        path = t.dir / name
        path.write_bytes(content)
        done = safescoped("-e", path, "-f", "json", "-o", t.dir / "none.json", code=2)
        lines = done.stderr.decode().strip().split("\n")
        check(len(lines) == 1 and why in lines[0] and str(path) in lines[0], f"{name}: {lines}")
        check(not (t.dir / "none.json").exists(), f"{name}: a report was left")
    done = safescoped("-e", t.dir / "not there", code=2)
    check(b"not there: cannot be read: No such file" in done.stderr, f"{done.stderr}")


# ── damage ──


@cases("thr_l", "thr_p")
def test_cut_logs(t, way):
    """A log cut anywhere after its header yields what it contains, and what is missing is reported."""
    ran = logged(t, way, rounds=10)
    raw, (first, events) = ran.log.read_bytes(), truth.read(ran.log)
    dice = random.Random(6)
    cuts = sorted({first, first + 24, len(raw) - 2, len(raw) - 1, *(dice.randrange(first, len(raw)) for _ in range(12))})
    for cut in cuts:
        path = t.dir / "cut.eventlog"
        path.write_bytes(raw[:cut])
        target = report(t, path, code=(0, 1)).target()
        check_sums(target)
        check(target["eventlog"]["events"] <= len(events), f"cut at {cut}: more events than there were")
        check(any("no end mark" in m for m in target["missing"]), f"cut at {cut}: {target['missing']}")


def test_damaged_logs(t):
    ran = logged(t, "thr_p", rounds=10)
    raw, (first, _) = ran.log.read_bytes(), truth.read(ran.log)
    dice = random.Random(7)
    damaged = 0
    for k in range(15):
        bad = bytearray(raw)
        for _ in range(dice.choice((1, 3, 30))):
            at = dice.randrange(first, len(bad))
            what = dice.choice(("flip", "zero", "drop", "insert"))
            if what == "flip":
                bad[at] ^= 1 << dice.randrange(8)
            elif what == "zero":
                bad[at:at + 40] = bytes(len(bad[at:at + 40]))
            elif what == "drop":
                del bad[at:at + dice.randrange(1, 200)]
            else:
                bad[at:at] = bytes(dice.randrange(256) for _ in range(30))
        path = t.dir / "bad.eventlog"
        path.write_bytes(bad)
        safescoped("-e", path, "-q", "-f", "json,speedscope,folded,chrome,text", "-o", t.dir / "r", code=(0, 1))
        target = Report(t.dir / "r.json").target()
        for lane in target["lanes"]:
            check(sum(lane["states"].values()) == lane["wall_ns"], f"damage {k}: {lane}")
        lost = target["eventlog"]["damaged_bytes"]
        check(lost <= len(bad), f"damage {k}: {lost} bytes of {len(bad)}")
        check(bool(lost) == ("damaged_bytes" in target["lost"]), f"damage {k}: {target['lost']}")
        damaged += bool(lost)
    check(damaged >= 8, f"damage was seen in {damaged} of 15 logs only")


def test_log_of_a_killed_program(t):
    """GHC writes the log when buffers are full: little is left of a killed program's, and that is reported."""
    ran = logged(t)
    first, _ = truth.read(ran.log)
    path = t.dir / "killed.eventlog"
    path.write_bytes(ran.log.read_bytes()[:first])
    target = report(t, path).target()
    check(any("no end mark" in m for m in target["missing"]), f"missing: {target['missing']}")


def cut_buffers(log, events, times):
    """The log as if each capability's buffer had last been written at the given time: {capability: time}."""
    raw = log.read_bytes()
    blocks = sorted((e for e in events if e.id == truth.BLOCK_MARKER), key=lambda e: e.at)
    out = bytearray(raw[:blocks[0].at])
    for marker in blocks:
        end, until = marker.at + marker.u32(0), times[marker.cap]
        block = bytearray(raw[marker.at:end])
        late = [e.at for e in events if marker.at < e.at < end and e.time > until]
        if late:
            block = block[:min(late) - marker.at]
        struct.pack_into(">IQ", block, 10, len(block), min(marker.u64(4), until))
        if marker.time <= until:
            out += block
    return bytes(out)


def test_log_with_an_early_buffer(t):
    """A program is killed long after one capability last wrote its buffer: what that one did afterwards is unknown,
    and the collections that it led since then count as missed, as the other capability's part of them shows."""
    ran = Run(t.dir / "logs", "Lanes", ("busy", 1), "thr_l", ("-N2", "-A256k"))
    _, events = truth.read(ran.log)
    late = max(e.time for e in events) * 9 // 10
    early = late // 4
    leaders = Counter(e.cap for e in events if e.id == truth.GC_GLOBAL_SYNC and early < e.time <= late)
    cap = leaders.most_common(1)[0][0]
    path = t.dir / "early.eventlog"
    path.write_bytes(cut_buffers(ran.log, events, {1 - cap: late, cap: early, 0xffff: late}))
    target = report(t, path).target()
    check(not target["eventlog"]["damaged_bytes"], f"{target['eventlog']['damaged_bytes']} bytes damaged: the test is wrong")
    unknown = [lane["states"]["unknown"] for lane in lanes(target, "capability")]
    check(abs(unknown[cap] - (late - early)) < 1e7 and unknown[1 - cap] < 1e7,
          f"unknown {unknown} ns, want {late - early} of capability {cap}")
    gcs = sum(e.id == truth.GC_END and e.cap == 1 - cap and e.time <= late for e in events)
    led = gcs - leaders[cap]
    got = target["gc"]
    check(abs(got["count"] - led) <= 1 and abs(got["count"] + got["missed"] - gcs) <= 1 and not got["exact"],
          f"{got}, but {led} of {gcs} have their leader's part")
    whole = report(t, ran.log).target()["gc"]
    check(whole["exact"] and not whole["missed"], f"the whole log: {whole}")


if __name__ == "__main__":
    run(globals(), kernel=False)
