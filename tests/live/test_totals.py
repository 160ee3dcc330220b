#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""All formats of a session add up to the same totals, for each process, thread and capability, on the CPU and in all,
however its slices are merged. The formats are made from the session's capture, by wall time and by CPU time; what Go's
reader, or a reader of JSON, adds up in them is compared with the report. TOTALS_SECONDS (4): the length of the sessions
of the host and of Demo."""

import json
import os
import re
import shutil
import signal
import subprocess
import zlib

from harness import ROOT, SAFESCOPED, Report, cases, check, run
from test_export import must_have, tool

ALWAYS = ("--max-overhead", "1000")
IDLE = {"thread": ("idle",), "capability": ("idle",), "haskell": ()}
ON_CPU = "haskell unsafe_call_cpu safe_call_cpu gc_work rts foreign_cpu".split()
LANES = "thread,capability,haskell"
FORMATS = "json,folded,speedscope,pprof,html"
SECONDS = int(os.environ.get("TOTALS_SECONDS", "4"))
SHARE = 0.001
# folded has whole microseconds, and no lane is so short that this matters
SLACK = 1000


# ── what the formats contain, in nanoseconds ──


class Wanted:
    """The report's totals: process → total, (process, thread) → total, lane's name → its states."""

    def __init__(self, report):
        self.targets = report.json["targets"]
        self.several = len(self.targets) > 1
        self.threads, self.lanes, self.cpu = {}, {}, {}
        for target in self.targets:
            for lane in target["lanes"]:
                name = self.name(target, lane)
                # another thread may have got the tid of one that ended
                states = self.lanes.setdefault(name, {})
                for state, ns in lane["states"].items():
                    if state not in IDLE[lane["kind"]]:
                        states[state] = states.get(state, 0) + ns
                cpu = lane.get("cpu_ns", 0)
                if lane["kind"] == "thread":
                    states = sum(lane["states"][s] for s in ON_CPU)
                    # part of the unknown time may have been on the CPU
                    if cpu is not None and not lane["states"]["unknown"]:
                        near(f"the report's {name}", cpu, states)
                    cpu = states if cpu is None else cpu
                    self.threads.setdefault((target["pid"], lane["tid"]), name)
                add(self.cpu, name, cpu)

    def name(self, target, lane):
        of = f" ({target['comm']}, pid {target['pid']})" if self.several else ""
        if lane["kind"] == "thread":
            return str(lane["tid"])
        return f"capability {lane['no']}{of}" if lane["kind"] == "capability" else f"Haskell thread {lane['tso']}{of}"

    def total(self, name, cpu):
        return self.cpu[name] if cpu else sum(self.lanes[name].values())

    def of_process(self, pid, cpu):
        return sum(self.total(name, cpu) for (p, _), name in self.threads.items() if p == pid)


def lane_name(text):
    """The lane's name of a profile or a frame, in the form that Wanted uses: without labels of threads."""
    found = re.match(r"(\d+) |(capability \d+|Haskell thread \d+)\b", text)
    process = re.search(r" \([^()]*, pid \d+\)", text)
    return None if not found else found[1] or found[2] + (process[0] if process else "")


def add(sums, key, ns):
    sums[key] = sums.get(key, 0) + ns


def folded(path):
    """{(pid, tid): ns}"""
    sums = {}
    for line in path.read_text().splitlines():
        stack, _, us = line.rpartition(" ")
        add(sums, tuple(int(frame.rpartition("-")[2]) for frame in stack.split(";")[:2]), int(us) * 1000)
    return sums


def pprof(path):
    """{(pid, tid): ns} of CPU time and of all time. In the output of Go's reader each sample is followed by its labels."""
    cpu, wall, values = {}, {}, ()
    for line in tool("go", "tool", "pprof", "-raw", path).splitlines():
        sample = re.match(r"\s*(\d+)\s+(\d+)\s+(\d+)(?:\s+\d+)+: ", line)
        label = re.search(r"process_id:\[(\d+)\] thread_id:\[(\d+)\]", line)
        if sample:
            values = int(sample[2]), int(sample[3])
        elif label and values:
            for sums, ns in zip((cpu, wall), values):
                add(sums, (int(label[1]), int(label[2])), ns)
    return cpu, wall


def html(path, cpu):
    """{lane, or "all threads" and the process: ns} from the totals in the page."""
    text = path.read_text()
    data, details = (json.loads(re.search(rf'id="{name}">\n(.*?)\n</script>', text, re.S)[1]) for name in ("data", "details"))
    sums = {}
    for lane, rows in zip(data["lanes"], details["rows"]):
        states = data["states"][lane["kind"]]
        ns = sum(ns for state, ns in zip(rows[1::4], rows[2::4]) if (state % 2 if cpu else not states[state // 2][4]))
        process = data["targets"][lane["target"]]["short"] if len(data["targets"]) > 1 else ""
        if lane["counted"]:
            add(sums, "all threads" + (f" of {process}" if process else ""), ns)
        if lane["shown"]:
            add(sums, lane_name(lane["name"] + (f" ({process.replace(' (pid', ', pid')}" if process else "")) or lane["name"], ns)
    return sums


def speedscope(path):
    """CPU and wall: {process or "": ns}; then of the sums and of the lanes {lane: {state: ns}}."""
    file = json.loads(path.read_text())
    frames = [(f["name"], f.get("file", "")) for f in file["shared"]["frames"]]
    cpu, wall, summed, drawn = {}, {}, {}, {}
    for profile in file["profiles"]:
        # allocation has a profile of its own
        if profile["unit"] == "bytes":
            continue
        lane = lane_name(profile["name"])
        for stack, ns in zip(profile["samples"], profile["weights"]):
            if not stack:
                continue
            root = frames[stack[0]]
            if profile["name"].startswith(("CPU time", "wall time")):
                add(cpu if profile["name"].startswith("CPU") else wall, root[0] if root[1] == "process" else "", ns)
            elif lane:
                add(drawn.setdefault(lane, {}), root[1], ns)
            else:
                add(summed.setdefault(lane_name(root[0]), {}), frames[stack[1]][1], ns)
    return cpu, wall, summed, drawn


# ── comparing ──


def near(what, got, want):
    check(abs(got - want) <= SHARE * want + SLACK, f"{what}: {got}, should be {want}")


def compare(stem, label):
    """All formats agree with the report: stem.* by wall time, stem-cpu.* by CPU time."""
    want = Wanted(Report(f"{stem}.json"))
    check(sum(want.of_process(t["pid"], True) for t in want.targets) > 5e7, f"{label}: they did nothing")
    in_pprof = pprof(stem.with_suffix(".pb.gz"))
    for cpu, path in (False, stem), (True, stem.parent / f"{stem.name}-cpu"):
        what = f"{label}, {'CPU' if cpu else 'wall'}"
        compare_threads(f"{what}: folded", folded(path.with_suffix(".folded")), want, cpu)
        compare_threads(f"{what}: pprof", in_pprof[not cpu], want, cpu)
        compare_html(what, html(path.with_suffix(".html"), cpu), want, cpu)
    compare_speedscope(label, stem.with_suffix(".speedscope.json"), want)
    for target in want.targets:
        compare_report(label, target, want)


def compare_threads(what, sums, want, cpu):
    check(set(sums) <= set(want.threads), f"{what}: threads that the report lacks")
    for key, name in want.threads.items():
        near(f"{what} of {key}", sums.get(key, 0), want.total(name, cpu))
    for pid in {pid for pid, _ in want.threads}:
        got = sum(ns for (p, _), ns in sums.items() if p == pid)
        near(f"{what} of process {pid}", got, want.of_process(pid, cpu))


def compare_html(what, sums, want, cpu):
    for target in want.targets:
        graph = "all threads" + (f" of {target['comm']} (pid {target['pid']})" if want.several else "")
        near(f"{what}: html's {graph}", sums.get(graph, 0), want.of_process(target["pid"], cpu))
    # the busiest lanes have a graph; a waiting Haskell thread has no stack
    lanes = [name for name in want.lanes if name in sums and not name.startswith("Haskell")]
    check({name.split()[0] for name in lanes} >= {"capability"}, f"{what}: html's graphs are {list(sums)}")
    for name in lanes:
        near(f"{what}: html's {name}", sums[name], want.total(name, cpu))


def compare_speedscope(label, path, want):
    cpu, wall, summed, drawn = speedscope(path)
    for target in want.targets:
        name = f"{target['comm']} (pid {target['pid']})" if want.several else ""
        near(f"{label}: speedscope's CPU of process {name}", cpu.get(name, 0), want.of_process(target["pid"], True))
        near(f"{label}: speedscope's process {name}", wall.get(name, 0), want.of_process(target["pid"], False))
    for what, lanes in ("sums", summed), ("lanes", drawn):
        check(set(lanes) <= set(want.lanes), f"{label}: speedscope's {what} of {set(lanes) - set(want.lanes)}")
        for name, states in want.lanes.items():
            for state, ns in states.items():
                near(f"{label}: speedscope's {what}, {name}, {state}", lanes.get(name, {}).get(state, 0), ns)


def compare_report(label, target, want):
    threads = [l for l in target["lanes"] if l["kind"] == "thread"]
    cpu, ledger = want.of_process(target["pid"], True), target["ledger"]
    near(f"{label}: the ledger's CPU of {target['pid']}", ledger["cpu_ns"], cpu)
    near(f"{label}: the ledger's wall of {target['pid']}", ledger["wall_ns"], want.of_process(target["pid"], False))
    check(cpu < 1e8 or ledger["without_sample_ns"] <= 0.2 * cpu, f"{label}: without a sample: {ledger}")
    idle = [l["housekeeping"] for l in threads]
    check(idle == sorted(idle), f"{label}: housekeeping is not the end: {idle}")
    unsafe = sum(l["states"]["unsafe_call_cpu"] for l in threads)
    near(f"{label}: unsafe calls of {target['pid']}", sum(c["cpu_ns"] for c in target["unsafe_calls"]), unsafe)
    functions = target["functions"]
    check(sum(f["self_ns"] for f in functions) <= cpu * (1 + SHARE),
          f"{label}: the functions of {target['pid']} have more than it")
    odd = [f for f in functions if f["self_ns"] and not f["self_samples"]]
    check(not odd, f"{label}: time without a sample: {odd[:3]}")


# ── sessions and their captures ──


def with_options(capture, path, **options):
    """The capture with other options, which are in its second line; a CRC of both lines is on the third."""
    magic, header, crc, rest = capture.read_bytes().split(b"\n", 3)
    check(zlib.crc32(magic + b"\n" + header + b"\n") == int(crc, 16), "the capture's beginning is another one")
    header = json.loads(header)
    header["options"].update(options)
    head = magic + b"\n" + json.dumps(header).encode() + b"\n"
    path.write_bytes(head + b"%08x\n" % zlib.crc32(head) + rest)


def replay(capture, stem, weight, formats):
    done = subprocess.run([SAFESCOPED, "--replay", capture, "--lanes", LANES, "--weight", weight, "-f", formats,
                           "-o", stem], capture_output=True, text=True, timeout=300 + 10 * SECONDS)
    check(done.returncode in (0, 1), f"the replay ended with {done.returncode}: {done.stderr}")


def compare_replays(t, capture):
    """Compare replays of the capture as it is; with as few slices as possible; and with lanes made and merged during
    the session."""
    for label, options in (("all", {}), ("merged", {"max_slices": "1"}),
                           ("folded early", {"max_slices": "1", "max_records": "500"})):
        stem = t.dir / label.replace(" ", "-")
        with_options(capture, t.dir / "capture.of", haskell_lanes="1", **options)
        replay(t.dir / "capture.of", stem, "wall", FORMATS)
        replay(t.dir / "capture.of", stem.parent / f"{stem.name}-cpu", "cpu", "folded,html")
        compare(stem, label)
    names = [p["name"] for p in json.loads((t.dir / "merged.speedscope.json").read_text())["profiles"]]
    check(any(" merged" in name for name in names), f"nothing was merged: {names}")


def needs_go():
    if not shutil.which("go"):
        must_have("/usr/bin/go", "go")


@cases("calls", "centres")
def test_saved(t, name):
    needs_go()
    compare_replays(t, ROOT / "tests" / "data" / "capture" / name)


@cases("calls", "alloc", "mixed", "demo")
def test_one_process(t, what):
    needs_go()
    args = {"calls": ("Calls", 4, "safe_half_2ms=300", "safe_spin_20us=2000", "unsafe_spin_1ms=200"),
            "alloc": ("Work", "alloc", 3),
            "mixed": ("Mixed", "callback", 2),
            "demo": ("Demo", SECONDS)}[what]
    target = t.target(*args, rts=("-N2",), ready=None if what == "demo" else "ready")
    session = t.attach(target, *ALWAYS, "-F", "499", "--save", t.dir / "capture")
    target.go()
    check(target.wait(120 + SECONDS) == 0, "the test program failed")
    check(session.wait(60 + SECONDS) == 0, f"safescoped failed: {session.err.seen}")
    compare_replays(t, t.dir / "capture")


def test_host(t):
    """A session of the host with five busy processes: more threads than processors."""
    needs_go()
    targets = [t.target("Work", "alloc", SECONDS, rts=("-N2",)), t.target("Work", "alloc", SECONDS, way="v"),
               t.target("Calls", 4, f"safe_half_2ms={100 * SECONDS}", f"unsafe_spin_1ms={75 * SECONDS}"),
               t.target("Calls", 2, f"safe_spin_20us={1000 * SECONDS}", way="thr_p"),
               t.target("Work", "stm", SECONDS, rts=("-N2",))]
    session = t.session(*ALWAYS, "-v", "-F", "199", "-f", "json", "-o", t.stem, "--save", t.dir / "capture")
    check(session.err.until("processes", 60) is not None, f"safescoped did not begin: {session.err.seen}")
    for target in targets:
        target.go()
    for target in targets:
        target.result(120 + 3 * SECONDS)
    session.signal(signal.SIGINT)
    check(session.wait(60 + SECONDS) in (0, 1), f"safescoped failed: {session.err.seen}")
    compare_replays(t, t.dir / "capture")


if __name__ == "__main__":
    run(globals())
