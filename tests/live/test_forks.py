#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A process that forks and goes on, and its child, which goes on without an exec: each has its own lanes, which are
compared with its own clocks."""

import json
import subprocess

from harness import SAFESCOPED, cases, check, check_near, program, run, stolen_ns

UNKNOWN_SHARE = 0.01
# The time that a call may take outside of the program's clock: the runtime's work before and after it, and others who
# have the CPU then.
AROUND_NS = 100000


def lanes(target, kind):
    return [l for l in target["lanes"] if l["kind"] == kind]


def total(of_a_kind, *states):
    return sum(l["states"][s] for l in of_a_kind for s in states)


def check_all_lanes(who, target):
    for lane in target["lanes"]:
        what = f"{who}: {lane['kind']} lane {lane.get('tid', lane.get('no'))}"
        check(sum(lane["states"].values()) == lane["wall_ns"] == lane["end_ns"] - lane["start_ns"],
              f"{what} does not add up: {lane}")
        check(lane["states"]["unknown"] <= UNKNOWN_SHARE * lane["wall_ns"],
              f"{what}: too much is unknown: {lane['states']}")


def profile(t, mode, way, ms=1500):
    """(the two lines that the program prints, by who prints them; the report's targets, likewise; the CPU time that the
    hypervisor stole)"""
    stolen = stolen_ns()
    done = subprocess.run([SAFESCOPED, "--max-overhead", "1000", "-F", "199", "-v", "-f", "json", "-o", t.dir / "p.json",
                           "--", program("Forks", way), mode, str(ms)],
                          input=b"go\n", capture_output=True, timeout=60)
    check(done.returncode == 0, f"ended with {done.returncode}: {done.stderr.decode()}")
    said = [json.loads(l) for l in done.stdout.decode().splitlines() if l.startswith("{")]
    truth = {s["who"]: s for s in said}
    check(set(truth) == {"child", "parent"}, f"the test program itself is wrong: {said}")
    report = t.report()
    return (truth, {who: report.target(s["pid"]) for who, s in truth.items()},
            stolen_ns() - stolen + 10000000)


def check_clocks(who, truth, target, stolen):
    """The CPU time matches the process's own clock, less what came before the attach; returns that part's length."""
    threads = lanes(target, "thread")
    cpu = sum(l["cpu_ns"] for l in threads)
    # A thread that begins with the process is seen completely; of the child only what comes after the attach.
    wall = max(l["wall_ns"] for l in threads)
    missed = max(0, truth["wall_ns"] - wall)
    check(wall >= 0.3 * truth["wall_ns"], f"{who}: only {wall} of {truth['wall_ns']} ns were seen")
    # before its exec the command's process ran our code
    check(truth["cpu_ns"] - missed - 0.02 * truth["cpu_ns"] - 50e6 - stolen <= cpu <= 1.05 * truth["cpu_ns"] + stolen,
          f"{who}: {cpu} on the CPU, its own clock has {truth['cpu_ns']}, of which up to {missed} were missed")
    return missed


@cases("thr", "v", "thr_p", "dyn", "thr.stripped")
def test_fork_in_a_safe_call(t, way):
    """Fork by C code within a safe call: the child never returns from it. All of the child's time is that call's,
    running or asleep; the parent's lanes are as if it had no child."""
    truth, targets, stolen = profile(t, "call", way)
    missed = {}
    for who, target in targets.items():
        check_all_lanes(who, target)
        missed[who] = check_clocks(who, truth[who], target, stolen)
    child = lanes(targets["child"], "thread")
    check(len(child) == 1, f"the child has {len(child)} threads")
    states, wall = child[0]["states"], child[0]["wall_ns"]
    check(states["safe_call_cpu"] + states["safe_call_blocked"] + states["preempted"] >= 0.99 * wall,
          f"the child is in its call all the time: {states}")
    # it sleeps for at least 5 ms in each round, which limits how many rounds came before the attach
    rounds = truth["child"]["calls"] - 1 - missed["child"] / 5000000
    check(states["safe_call_blocked"] >= max(1, 0.95 * 5000000 * rounds), f"{rounds} rounds, asleep: {states}")
    check(sum(c["open_at_end"] for c in targets["child"]["safe_calls"]) == 1,
          f"the child's calls: {targets['child']['safe_calls']}")
    check(total(lanes(targets["child"], "capability"), "haskell", "unsafe_call", "gc") == 0,
          "the child runs no Haskell code")
    check_calls(truth["parent"], targets["parent"], stolen)


def check_calls(truth, target, stolen, since=0):
    """The calls of forks_work and their time, running and asleep. (In a stripped program: of the safe call made most
    often.)"""
    work = max(target["safe_calls"], key=lambda c: c["calls"])
    # some of the child's calls came before the attach, and one may be open then
    most = truth["calls"]
    least = most * (1 - since / truth["wall_ns"]) * 0.7 - 1 if since else most
    check(least <= work["calls"] <= most, f"{work['calls']} calls, the program made {most}")
    each_cpu, each_wall = truth["call_cpu_ns"] / most, truth["call_wall_ns"] / most
    if since:
        check(0.7 * each_wall <= work["wall_ns"] / work["calls"] <= 1.4 * each_wall,
              f"{work['wall_ns'] / work['calls']} each, the program measured {each_wall}")
    else:
        check_near("wall of the calls", work["wall_ns"], truth["call_wall_ns"],
                   0.01 * truth["call_wall_ns"] + AROUND_NS * most)
    threads = lanes(target, "thread")
    check_near("safe_call_cpu", total(threads, "safe_call_cpu"), each_cpu * work["calls"],
               (0.3 if since else 0.03) * truth["call_cpu_ns"] + stolen)
    check(total(threads, "haskell", "gc_work", "rts") > 0, "no Haskell code, no runtime")


@cases("thr", "v", "thr_p", "dyn", "thr.stripped")
def test_fork_process(t, way):
    """forkProcess: the child has its own runtime, with threads, calls and capabilities."""
    truth, targets, stolen = profile(t, "process", way)
    missed = {}
    for who, target in targets.items():
        check_all_lanes(who, target)
        missed[who] = check_clocks(who, truth[who], target, stolen)
        check(len(lanes(target, "capability")) == 1, f"{who}: its capabilities")
        check(total(lanes(target, "capability"), "haskell") > 0, f"{who}: no Haskell code ran")
    check_calls(truth["parent"], targets["parent"], stolen)
    check_calls(truth["child"], targets["child"], stolen, since=max(missed["child"], 1))
    asleep = total(lanes(targets["child"], "thread"), "safe_call_blocked")
    check(asleep > 0.3e9 * 0.3, f"the child slept in its calls, not for {asleep}")


if __name__ == "__main__":
    run(globals())
