#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Events for which the ring has no room are detected afterwards."""

import os
import signal
import time
from pathlib import Path

from harness import Target, check, program, run, thorough
from test_calls import ALWAYS
from test_system import dump, maps_of

# At a low frequency the ring is smaller.
FEW_SAMPLES = ("-F", "19", "-v", "-f", "json")

LOST_RING = 0  # the counter's index in the map (bpf/wire_maps.h, WIRE_CNT_LOST_RING)

# Seconds: how long it may take to fill the ring, and how long it stays full; after ten the kernel side would be
# detached.
FILLED_IN = 7
FULL_FOR = 1


def start(t, *command, env=None):
    target = Target(command, env=env)
    t.started.append(target)
    return target


def filler():
    """A program that passes a token between OS threads: each time makes some records."""
    return program("PingPong"), "bound", 100000000, "+RTS", "-N2"


def calls():
    return f"{program('Calls')} 1 safe_sleep_1ms=1000"


def n_lost(counters):
    [values] = [x["formatted"]["values"] for x in dump(counters) if x["formatted"]["key"] == LOST_RING]
    return sum(x["value"] for x in values)


def held_up(session, action, fills=None):
    """Stop the daemon with SIGSTOP, and call the action once the ring is full."""
    counters = maps_of(session, ("counters",))["counters"]
    session.signal(signal.SIGSTOP)
    try:
        end = time.monotonic() + FILLED_IN
        before = n_lost(counters)
        if fills:
            fills.go()
        while n_lost(counters) == before:
            check(time.monotonic() < end, "the ring does not become full")
            time.sleep(0.1)
        action()
        time.sleep(FULL_FOR)
    finally:
        session.signal(signal.SIGCONT)
    if fills:
        fills.kill()


def wait_for_comm(pid, comm):
    end = time.monotonic() + 1
    while Path(f"/proc/{pid}/comm").read_text().strip() != comm:
        check(time.monotonic() < end, f"{pid} has not become {comm}")
        time.sleep(0.01)


def stop(session):
    session.signal(signal.SIGINT)
    check(session.wait() == 1, f"safescoped ended so: {session.err.seen}")


def lives(report, pid):
    found = [x for x in report.json["targets"] if x["pid"] == pid]
    check(any(x["lost"].get("ring_full", 0) for x in report.json["targets"]), "the ring never was full")
    return found


def test_exec(t):
    """A target that execs another program has ended there, and the session with it; the other program is not waited
    for."""
    fills, target = start(t, *filler()), start(t, program("Forky"), "shell", 1, env={"FORKY_NEXT": "sleep 100"})
    session = t.session("--pid", f"{fills.pid},{target.pid}", *FEW_SAMPLES, "-o", f"{t.stem}.json", *ALWAYS)
    session.wait_attached_to(target.pid)

    def act():
        target.go()
        wait_for_comm(target.pid, "sleep")

    held_up(session, act, fills)
    check(session.wait(30) == 1, f"safescoped ended so: {session.err.seen}")
    check(target.process.poll() is None, "the other program has ended, too")
    [life] = lives(t.report(), target.pid)
    check(life["end"] == "exec", f"it ended so: {life['end']}")


@thorough
def test_exec_in_system(t):
    """In a session of the whole host the program after an exec is a target of its own."""
    fills, target = start(t, *filler()), start(t, program("Forky"), "shell", 1, env={"FORKY_NEXT": calls()})
    session = t.session(*FEW_SAMPLES, "-o", f"{t.stem}.json", *ALWAYS)
    session.wait_attached_to(target.pid)

    def act():
        target.go()
        wait_for_comm(target.pid, "Calls")

    held_up(session, act, fills)
    session.wait_attached_to(target.pid)
    target.go()
    truth = target.result()
    stop(session)
    found = lives(t.report(), target.pid)
    check([life["end"] for life in found] == ["exec", "exited"], f"{[life['end'] for life in found]}")
    got = [sum(c["calls"] for c in life["safe_calls"] if c["function"] == "safe_sleep_1ms") for life in found]
    check(got == [0, truth["safe_sleep_1ms"]["calls"]], f"{got} calls")


def test_child_of_a_command(t):
    """A program that the command starts while the ring is full is profiled."""
    flag, pipe, pid = t.dir / "go", t.dir / "pipe", t.dir / "pid"
    os.mkfifo(pipe)
    script = (f'echo go | {" ".join(map(str, filler()))} >{t.dir}/filler 2>&1 & echo $! > {pid}; '
              f'until [ -e {flag} ]; do sleep 0.1; done; {calls()} < {pipe}')
    session = t.session(*FEW_SAMPLES, "-o", f"{t.stem}.json", *ALWAYS, "--", "sh", "-c", script)
    session.wait_attached()
    t.finally_do(lambda: os.kill(int(pid.read_text()), signal.SIGKILL))
    held_up(session, flag.touch)
    with open(os.open(pipe, os.O_RDWR), "w") as go:
        session.wait_attached(30)
        go.write("go\n")
        go.flush()
        check(session.wait(30) == 1, f"safescoped ended so: {session.err.seen}")
    found = [x for x in t.report().json["targets"] if x["comm"] == "Calls"]
    got = [sum(c["calls"] for c in x["safe_calls"] if c["function"] == "safe_sleep_1ms") for x in found]
    check(got == [1000], f"{got} calls")
    check(found[0]["lost"].get("ring_full", 0), "the ring never was full")


@thorough
def test_threads(t):
    """Threads that end while the ring is full have ended then, though their process ends much later."""
    fills, target = start(t, *filler()), start(t, program("Brief"), 4)
    session = t.session("--pid", f"{fills.pid},{target.pid}", *FEW_SAMPLES, "-o", f"{t.stem}.json", *ALWAYS)
    session.wait_attached_to(target.pid)
    target.go()
    time.sleep(1)

    def act():
        target.go()
        target.wait_for("over")

    held_up(session, act, fills)
    time.sleep(3)
    left = set(map(int, os.listdir(f"/proc/{target.pid}/task")))
    time.sleep(7)
    target.go()
    check(session.wait(30) == 1, f"safescoped ended so: {session.err.seen}")
    [life] = lives(t.report(), target.pid)
    threads = [lane for lane in life["lanes"] if lane["kind"] == "thread"]
    gone = [lane for lane in threads if lane["tid"] not in left]
    last = max(lane["end_ns"] for lane in threads)
    check(len(gone) >= 4, f"of {len(threads)} threads {len(gone)} have ended before")
    before = [(last - lane["end_ns"]) / 1e9 for lane in gone]
    check(min(before) > 9, f"they ended so long before: {before} s")
    check(any(lane["end_ns"] == last for lane in threads if lane["tid"] in left), "no thread lived to the end")


if __name__ == "__main__":
    run(globals())
