#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The cost of the probes: it is not shown as time of the functions that they are in, and each process has its own."""

import contextlib
import json
import signal
import subprocess
import time
from pathlib import Path

from harness import SAFESCOPED, cases, check, profile_run, run
from kernel_side import BPFTOOL, bpf_objects_of
from test_metrics import address, scrape, total

PROBE = "[safescoped's probe]"
# Functions of the runtime with a probe in each: without probes they take a thousandth of the time at most.
PROBED = ("stat_startGCSync", "stat_startGC", "stat_endGC", "suspendThread", "resumeThread", "handle_tick")


@cases("thr", "dyn", "v.stripped", "lld")
def test_traps(t, way):
    """A program that constantly collects garbage: the trap of a probe takes longer than the whole function, and is
    shown separately."""
    saved = t.dir / "p.capture"
    _, report, _ = profile_run(t, "Alloc", "split", 5, way=way, rts=("-A64k",),
                               options=("--max-overhead", "100", "-F", "999", "--save", saved))
    target = report.target()
    samples = sum(f["self_samples"] for f in target["functions"])
    trap = next((f for f in target["functions"] if f["name"] == PROBE), None)
    own = {f["name"]: f["self_samples"] for f in target["functions"] if f["name"] in PROBED}
    print(f"    of {samples} samples {trap and trap['self_samples']} are in the traps, and in the functions {own}")
    check(trap and trap["self_samples"] >= 20 and trap["kind"] == "foreign", f"no time in the probes: {trap}, {own}")
    # some of it is at the address that the trap returns to
    check(sum(own.values()) <= 0.15 * trap["self_samples"] + 3, f"as the functions' own: {own}, in the trap {trap}")
    check(trap["total_samples"] == trap["self_samples"], f"something is above the trap: {trap}")
    subprocess.run([SAFESCOPED, "--replay", saved, "-o", t.dir / "again", "-f", "json"], check=True,
                   capture_output=True)
    again = json.loads((t.dir / "again.json").read_text())["targets"][0]["functions"]
    check(again == target["functions"], "a replay has other functions")


@contextlib.contextmanager
def run_times_kept():
    """The kernel keeps its account of the programs' run time all the time."""
    switch = Path("/proc/sys/kernel/bpf_stats_enabled")
    before = switch.read_text()
    switch.write_text("1")
    try:
        yield
    finally:
        switch.write_text(before)


def run_time_ns(programs):
    known = json.loads(subprocess.run([BPFTOOL, "-j", "prog", "list"], check=True, capture_output=True, text=True).stdout)
    return sum(p.get("run_time_ns", 0) for p in known if p["id"] in programs)


def test_cost_of_each(t):
    """Each of several processes has the run time of the programs that served it, in each window; together they have
    what the kernel counts, apart from what ran for no process of the session. The metrics have it, too."""
    busy, idle = t.target("Calls", 12, "safe_sleep_1ms=20000", rts=("-A64k",)), t.target("Calls", 12, "safe_sleep_1ms=1")
    windows = t.dir / "windows"
    windows.mkdir()
    with run_times_kept():
        session = t.session("--pid", f"{busy.pid},{idle.pid}", "--window", "2s", "-v", "-f", "json", "-o", windows,
                            "--metrics", "127.0.0.1:0")
        session.wait_attached()
        busy.go()
        time.sleep(5)
        ours = {number for kind, number in bpf_objects_of(session.process.pid) if kind == "prog"}
        truth = run_time_ns(ours)
        series = scrape(address(session))
        session.signal(signal.SIGINT)
    check(session.wait() == 0, session.complaint())
    reports = [json.loads(file.read_text()) for file in sorted(windows.glob("*.json"))]
    cost = {pid: [target["cost"] for report in reports for target in report["targets"] if target["pid"] == pid]
            for pid in (busy.pid, idle.pid)}
    traps = sum(each["trap_ns_estimated"] for each in cost[busy.pid])
    cost = {pid: [each["bpf_ns"] for each in costs] for pid, costs in cost.items()}
    print(f"    busy {cost[busy.pid]}, idle {cost[idle.pid]}, the kernel's account {truth} ns")
    check(len(reports) >= 2 and all(None not in each and len(each) >= 2 for each in cost.values()),
          f"a window lacks it: {cost}")
    # a run that is timed stands for sixteen, and may have been interrupted
    check(0.3 * truth < sum(map(sum, cost.values())) < 3 * truth, f"{cost}, by the kernel's account {truth}")
    shown = 1e9 * total(series, "cost_seconds_total", pid=str(busy.pid))
    check(0.3 * truth < shown <= 1.01 * (sum(cost[busy.pid]) + traps), f"the metric has {shown} ns, the reports {cost}")
    check(sum(cost[busy.pid]) > 5 * sum(cost[idle.pid]), f"the idle one pays, too: {cost}")


if __name__ == "__main__":
    run(globals())
