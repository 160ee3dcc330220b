#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""All formats of a session add up to the same, for each process, thread and capability."""

import json
import re
import shutil
import signal

from harness import cases, check, run
from test_export import must_have, tool

ALWAYS = ("--max-overhead", "1000")
IDLE = {"thread": ("idle", "unknown"), "capability": ("idle", "disabled", "unknown")}
SHARE = 0.001


def on_cpu(lane):
    names = "haskell unsafe_call_cpu safe_call_cpu gc_work rts foreign_cpu"
    return sum(lane["states"][s] for s in names.split())


def busy(lane):
    return sum(ns for s, ns in lane["states"].items() if s not in IDLE[lane["kind"]])


def wanted(report):
    """{(pid, tid): (ns on the CPU, ns that are not idle)} of the report."""
    sums = {}
    for target in report.json["targets"]:
        for lane in target["lanes"]:
            if lane["kind"] == "thread":
                # another thread may have got the number of one that ended
                cpu, wall = sums.get((target["pid"], lane["tid"]), (0, 0))
                sums[target["pid"], lane["tid"]] = cpu + on_cpu(lane), wall + busy(lane)
    return sums


def folded(path):
    sums, lines = {}, {}
    for line in path.read_text().splitlines():
        stack, _, us = line.rpartition(" ")
        key = tuple(int(frame.rpartition("-")[2]) for frame in stack.split(";")[:2])
        sums[key] = sums.get(key, 0) + int(us) * 1000
        lines[key] = lines.get(key, 0) + 1
    return sums, lines


def pprof(path):
    """Samples and their labels take turns in what Go's reader prints."""
    sums, values = {}, ()
    for line in tool("go", "tool", "pprof", "-raw", path).splitlines():
        sample = re.match(r"\s*(\d+)\s+(\d+)\s+(\d+): ", line)
        label = re.search(r"process_id:\[(\d+)\] thread_id:\[(\d+)\]", line)
        if sample:
            values = int(sample[2]), int(sample[3])
        elif label and values:
            key = int(label[1]), int(label[2])
            before = sums.get(key, (0, 0))
            sums[key] = before[0] + values[0], before[1] + values[1]
    return sums


def html(path):
    data = json.loads(re.search(r'id="data">\n(.*?)\n</script>', path.read_text(), re.S)[1])
    return {p["name"]: sum(p["nodes"][2::3]) for p in data["profiles"]}


def speedscope(path):
    file = json.loads(path.read_text())
    return [(p["name"], sum(w for stack, w in zip(p["samples"], p["weights"]) if stack)) for p in file["profiles"]]


def of_thread(named, tid):
    return [ns for name, ns in named if re.search(rf"(^|\D){tid} ", name)]


def near(what, got, want, slack=0):
    check(abs(got - want) <= SHARE * want + slack, f"{what}: {got}, should be {want}")


def compare(t):
    report = t.report()
    want = wanted(report)
    check(sum(cpu for cpu, _ in want.values()) > 3e8, f"they did nothing: {want}")
    in_folded, lines = folded(t.dir / "p.folded")
    in_pprof = pprof(t.dir / "p.pb.gz")
    in_html = list(html(t.dir / "p.html").items())
    in_speedscope = speedscope(t.dir / "p.speedscope.json")
    check(set(in_folded) <= set(want) and set(in_pprof) <= set(want), "threads that the report has not")
    for key, (cpu, wall) in want.items():
        # a line has whole microseconds
        near(f"folded {key}", in_folded.get(key, 0), wall, 1000 * lines.get(key, 0))
        got = in_pprof.get(key, (0, 0))
        near(f"pprof's CPU {key}", got[0], cpu, 1)
        near(f"pprof's wall {key}", got[1], wall, 1)
        for what, named in ("html", in_html), ("speedscope", in_speedscope):
            got = of_thread(named, key[1])
            near(f"{what} {key}", sum(got), wall if got else 0, 1)
    whole = sum(wall for _, wall in want.values())
    near("html's aggregate", sum(ns for name, ns in in_html if name.startswith("all threads")), whole, len(want))
    near("speedscope's aggregate", sum(ns for name, ns in in_speedscope if name == "all threads"), whole, len(want))
    for target in report.json["targets"]:
        compare_target(target, dict(in_html), len(report.json["targets"]) > 1)


def compare_target(target, in_html, several):
    threads = [l for l in target["lanes"] if l["kind"] == "thread"]
    cpu = sum(map(on_cpu, threads))
    ledger = target["ledger"]
    near(f"the ledger's CPU of {target['pid']}", ledger["cpu_ns"], cpu, len(threads))
    near(f"the ledger's wall of {target['pid']}", ledger["wall_ns"], sum(map(busy, threads)), len(threads))
    check(cpu < 1e8 or ledger["without_sample_ns"] <= 0.2 * cpu, f"without a sample: {ledger}")
    idle = [l["housekeeping"] for l in threads]
    check(idle == sorted(idle), f"housekeeping is not the end: {idle}")
    unsafe = sum(l["states"]["unsafe_call_cpu"] for l in threads)
    near(f"unsafe calls of {target['pid']}", sum(c["cpu_ns"] for c in target["unsafe_calls"]), unsafe, 1e6)
    functions = target["functions"]
    check(sum(f["self_ns"] for f in functions) <= cpu * (1 + SHARE), f"the functions of {target['pid']} have more than it")
    odd = [f for f in functions if f["self_ns"] and not f["self_samples"]]
    check(not odd, f"time without a sample: {odd[:3]}")
    for lane in target["lanes"]:
        if lane["kind"] == "capability":
            name = f"capability {lane['no']}" + (f" ({target['comm']}, pid {target['pid']})" if several else "")
            if name in in_html:
                near(name, in_html[name], busy(lane), 1)
    check(several or "capability 0" in in_html, f"no capability in {list(in_html)}")


FORMATS = "json,folded,speedscope,pprof,html"


@cases("calls", "alloc", "mixed")
def test_one_process(t, what):
    if not shutil.which("go"):
        must_have("/usr/bin/go", "go")
    args = {"calls": ("Calls", 4, "safe_half_2ms=300", "safe_spin_20us=2000", "unsafe_spin_1ms=200"),
            "alloc": ("Work", "alloc", 3),
            "mixed": ("Mixed", "callback", 2)}[what]
    target = t.target(*args, rts=("-N2",))
    session = t.attach(target, *ALWAYS, "-F", "499", "-f", FORMATS)
    target.go()
    target.result()
    check(session.wait() == 0, f"safescoped failed: {session.err.seen}")
    compare(t)


def test_host(t):
    """Five busy processes: more threads than processors."""
    targets = [t.target("Work", "alloc", 4, rts=("-N2",)), t.target("Work", "alloc", 4, way="v"),
               t.target("Calls", 4, "safe_half_2ms=400", "unsafe_spin_1ms=300"),
               t.target("Calls", 2, "safe_spin_20us=4000", way="thr_p"), t.target("Work", "stm", 4, rts=("-N2",))]
    session = t.session(*ALWAYS, "-v", "-F", "199", "-f", FORMATS, "-o", t.stem)
    check(session.err.until("processes", 60) is not None, f"safescoped did not begin: {session.err.seen}")
    for target in targets:
        target.go()
    for target in targets:
        target.result()
    session.signal(signal.SIGINT)
    check(session.wait(60) in (0, 1), f"safescoped failed: {session.err.seen}")
    compare(t)


if __name__ == "__main__":
    run(globals())
