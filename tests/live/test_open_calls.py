#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Calls that began before the session or outlast it, threads that do nothing during it, and what is known of calls
while the overhead limit pauses the probes."""

import signal
import subprocess
import time
from pathlib import Path

from harness import SLOWNESS, cases, check, run
from kernel_side import BPFTOOL
from walls import check_wall
from test_calls import ALWAYS, check_lanes
from test_system import dump, maps_of


def served(t, way, *options):
    target = t.target("Server", way=way, ready="waiting")
    return target, t.attach(target, *ALWAYS, *options)


@cases("thr", "thr_p", "dyn")
def test_open_at_start(t, way):
    target, session = served(t, way)
    attached = time.monotonic_ns()
    time.sleep(0.5)
    before = time.monotonic_ns()
    target.say("wake")
    target.wait_for("woken")
    after = time.monotonic_ns()
    for _ in range(5):
        target.say("answer")
        target.wait_for("answered")
    target.close_input()
    truth = target.result()
    check(session.wait() == 0, f"safescoped: {session.err.seen}")
    report = t.report()
    woken = report.call("server_wait_for_wake")
    check(woken["open_at_start"] == 1, f"open_at_start is {woken['open_at_start']}, should be 1")
    check(woken["open_at_end"] == 0, f"open_at_end is {woken['open_at_end']}, should be 0")
    check(woken["calls"] == 1, f"{woken['calls']} calls, should be 1")
    # The session saw the call from the attach (slightly before its message reached us) to the wake.
    low, high = before - attached, after - attached + 2000000000
    check(low <= woken["wall_ns"] <= high,
          f"wall is {woken['wall_ns']}, the session saw between {low} and {high} of it")
    check(woken["wall_ns"] < truth["server_wait_for_wake"]["wall_ns"],
          "the call is counted from before the session")
    asleep = report.call("server_sleep_long")
    check((asleep["open_at_start"], asleep["open_at_end"], asleep["calls"]) == (1, 1, 0)
          or (asleep["open_at_start"], asleep["abandoned"], asleep["calls"]) == (1, 1, 0),
          f"the call that never ends: {asleep}")
    check(all(s["caller"] for s in woken["sites"] + asleep["sites"]), "an open call has no caller")
    answer = report.call("server_answer_1ms")
    check(answer["calls"] == 5 and answer["open_at_start"] == 0, f"calls in the session: {answer}")
    check_wall("server_answer_1ms", answer["wall_ns"], truth["server_answer_1ms"])
    check_lanes(report)


def test_joined_threads_at_start(t):
    """Threads that called in and were joined have left their Tasks; those of the other threads are still found."""
    target = t.target("Lanes", "callin", 0.2, rts=("-N2",))
    target.go()
    target.wait_for("}", 60)
    session = t.attach(target, *ALWAYS, "-d", "1")
    check(session.wait() == 0, f"safescoped: {session.err.seen}")
    waits = t.report().call("epoll_wait")
    check(waits["open_at_start"] >= 2, f"the I/O managers' calls: {waits}")


@cases("thr", "dyn")
def test_running_at_start(t, way):
    """A call that is on the CPU at the attach, and during the whole first window."""
    target = t.target("Server", way=way, ready="waiting")
    target.say("spin")
    target.wait_for("spinning")
    folder = t.dir / "windows"
    folder.mkdir()
    session = t.session("--pid", target.pid, "-v", "-f", "json", "-o", folder, "--window", "1", *ALWAYS)
    session.wait_attached()
    time.sleep(1.5)
    target.say("stop")
    target.wait_for("stopped")
    target.close_input()
    target.result()
    check(session.wait() == 0, f"safescoped: {session.err.seen}")
    windows = [t.report(path.with_suffix("")) for path in sorted(folder.glob("*.json"))]
    check(len(windows) > 1, f"{len(windows)} windows: the test is wrong")
    rows = [[c for c in w.target()["safe_calls"] if c["function"] == "server_spin"] for w in windows]
    calls = [(c["calls"], c["open_at_start"], c["open_at_end"]) for row in rows for c in row]
    check(len(calls) > 1 and calls == [(0, 1, 1)] * (len(calls) - 1) + [(1, 1, 0)],
          f"calls, open before and after, in each window: {calls}")
    check(all(c["caller"] for row in rows for c in row), "the call has no caller")
    for window in windows:
        functions = {c["function"] for c in window.target()["safe_calls"]}
        check("[unknown function]" not in functions, f"a call without a name: {functions}")
        check_lanes(window)


@cases("thr", "v")
def test_nothing_happens(t, way):
    """A session in which hardly any thread runs has a lane for each thread, without the state `unknown`."""
    if way == "v":
        # Without -threaded one safe call stops the whole program.
        target = t.target("Calls", 1, "safe_sleep_20ms=1000", way="v")
        session = t.attach(target, *ALWAYS, "-d", "1.5")
        target.go()
        session.wait()
        call = t.report().call("safe_sleep_20ms")
        check(call["calls"] > 30, f"only {call['calls']} calls")
        check_lanes(t.report())
        return
    begun = time.monotonic_ns()
    target, session = served(t, way, "-d", "2")
    tids = {int(p.name) for p in Path(f"/proc/{target.pid}/task").iterdir()}
    check(session.wait() == 0, f"safescoped: {session.err.seen}")
    report = t.report()
    lanes = {l["tid"]: l for l in report.target()["lanes"] if l["kind"] == "thread"}
    check(tids <= set(lanes), f"threads without a lane: {tids - set(lanes)}")
    check_lanes(report)
    for function in ("server_wait_for_wake", "server_sleep_long"):
        call = report.call(function)
        check((call["open_at_start"], call["open_at_end"], call["calls"]) == (1, 1, 0), f"{function}: {call}")
    # GHC's event managers wait in safe calls of their own: they are idle.
    in_calls = [l for l in lanes.values() if l["states"]["safe_call_blocked"] >= 0.98 * l["wall_ns"]]
    calls = sum(c["open_at_end"] for c in report.target()["safe_calls"] if c["function"].startswith("server_"))
    check(len(in_calls) == calls, f"{len(in_calls)} threads in a safe call all the time, there are {calls}")
    for lane in lanes.values():
        check(lane["states"]["unknown"] <= 0.01 * lane["wall_ns"],
              f"tid {lane['tid']} {lane['name']}: unknown for {lane['states']['unknown']} of {lane['wall_ns']} ns")
    session_ns = report.json["session"]["duration_ns"]
    check(1.99e9 <= session_ns <= time.monotonic_ns() - begun, f"the session lasted {session_ns} ns")
    check(target.process.poll() is None, "the target did not survive")


def test_open_at_end(t):
    """Calls that are open when the session ends are counted as open, with the time that was seen of them."""
    target = t.target("Calls", 4, "safe_sleep_20ms=1000")
    session = t.attach(target, *ALWAYS, "-d", "1")
    target.go()
    check(session.wait() == 0, f"safescoped: {session.err.seen}")
    call = t.report().call("safe_sleep_20ms")
    check(call["open_at_start"] == 0, "there was no call before the session")
    check(call["open_at_end"] >= 3, f"{call['open_at_end']} calls open at the end, there were 4 threads")
    check(call["calls"] >= 4 * 30, f"{call['calls']} calls in a second of four threads")


# ── while the probes are off ──

# A limit that one or two calls exceed.
PAUSED = ("--max-overhead", "0.0001")


def check_paused(report, function):
    """Check that a call was counted for part of the session, as the overhead limit paused the probes; return it."""
    target = report.target()
    check(target["cost"]["probes_paused_ns"] > 0, "the probes were not paused: the test is wrong")
    call = report.call(function)
    check(not call["exact"], f"{function}: reported as exact, though the probes were paused")
    share = call["sites"][0]["observed_share"]
    check(0 < share < 1, f"{function}: seen for {share} of the time")
    return call


def open_wall(call):
    return sum(s["open_wall_ns"] for s in call["sites"])


def answers(target, seconds):
    """Keep the server answering for this many seconds; return how often it did."""
    end, n = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        target.say("answer")
        target.wait_for("answered")
        n += 1
    return n


@cases("thr", "dyn")
def test_none_open_after_pause(t, way):
    """Calls that end while the probes are paused are not shown as open or abandoned, even though the program ends as
    well."""
    target = t.target("Calls", 4, "safe_spin_20us=10000", "safe_sleep_1ms=400", rts=("-N2",), way=way)
    session = t.attach(target, *PAUSED)
    target.go()
    truth = target.result()
    check(session.wait() == 0, f"safescoped: {session.err.seen}")
    report = t.report()
    check_paused(report, "safe_spin_20us")
    for function in set(truth) & {c["function"] for c in report.target()["safe_calls"]}:
        call = report.call(function)
        check((call["open_at_start"], call["open_at_end"], call["abandoned"], open_wall(call)) == (0, 0, 0, 0),
              f"{function}: {call}, all calls came back")
        check(call["calls"] <= truth[function]["calls"],
              f"{function}: {call['calls']} calls, there were {truth[function]['calls']}")
    check_lanes(report)


def test_open_after_pause(t):
    """Calls that are open when the session ends, and began while the probes were paused, are counted as open."""
    target = t.target("Calls", 4, "safe_spin_20us=6000", "safe_sleep_20ms=1000", rts=("-N2",))
    session = t.attach(target, *PAUSED, "-d", "6")
    target.go()
    check(session.wait() == 0, f"safescoped: {session.err.seen}")
    report = t.report()
    call = check_paused(report, "safe_spin_20us")
    check((call["open_at_end"], open_wall(call)) == (0, 0), f"ended long before: {call}")
    call = check_paused(report, "safe_sleep_20ms")
    check(3 <= call["open_at_end"] <= 4, f"{call['open_at_end']} calls are open, there are 4 threads in them")
    # One of them may have been woken but not have returned to its caller yet.
    check(0 < open_wall(call) <= 4 * 25e6 * SLOWNESS, f"open for {open_wall(call)} ns, each takes 20 ms")
    check_lanes(report)


def test_pause_slept_through(t):
    """Threads that sleep in a call all the time, and one that is woken while the probes are paused."""
    target, session = served(t, "thr", *PAUSED)
    attached = time.monotonic_ns()
    answered = answers(target, 1)
    target.say("wake")
    target.wait_for("woken")
    answered += answers(target, 0.1)
    before = time.monotonic_ns() - attached
    session.signal(signal.SIGINT)
    check(session.wait() == 0, f"safescoped: {session.err.seen}")
    report = t.report()
    answer = check_paused(report, "server_answer_1ms")
    check(answer["calls"] < answered, "the calls while the probes were off were counted: the test is wrong")
    check((answer["open_at_end"], open_wall(answer)) == (0, 0), f"no answer is under way: {answer}")
    woken = check_paused(report, "server_wait_for_wake")
    check((woken["open_at_start"], woken["open_at_end"], open_wall(woken)) == (1, 0, 0),
          f"the call that ended while the probes were off: {woken}")
    asleep = check_paused(report, "server_sleep_long")
    check((asleep["open_at_start"], asleep["open_at_end"], asleep["calls"]) == (1, 1, 0), f"the call that goes on: {asleep}")
    session_ns = report.json["session"]["duration_ns"]
    check(before <= open_wall(asleep) <= session_ns, f"open for {open_wall(asleep)}, should be from {before} to {session_ns}")
    check_lanes(report)


def test_killed_in_pause(t):
    """The process is killed while the probes are paused: the calls in which its threads slept are open to the end."""
    target, session = served(t, "thr", *PAUSED)
    answers(target, 1)
    target.process.kill()
    check(session.wait() == 0, f"safescoped: {session.err.seen}")
    report = t.report()
    check_paused(report, "server_answer_1ms")
    for function in ("server_wait_for_wake", "server_sleep_long"):
        call = report.call(function)
        check((call["open_at_start"], call["open_at_end"], call["abandoned"], call["calls"]) == (1, 1, 0, 0),
              f"{function}: {call}")
    check_lanes(report)


def switched_in(tasks, session):
    """Makes the session take the threads that have slept for a while for running ones, as if the kernel had left out the
    switch; struct wire_thread: off_since_ns at offset 8, on_since_ns at 48. Their tids."""
    number, tids = maps_of(session)["threads"], []
    for entry in dump(number):
        key, value = (bytes(int(byte, 16) for byte in entry[part]) for part in ("key", "value"))
        off, on = (int.from_bytes(value[at:at + 8], "little") for at in (8, 48))
        if int.from_bytes(key, "little") in tasks and on and off and time.monotonic_ns() - off > 200000000:
            value = value[:8] + bytes(8) + value[16:]
            subprocess.run([BPFTOOL, "map", "update", "id", str(number), "key", "hex", *key.hex(" ").split(),
                            "value", "hex", *value.hex(" ").split()], check=True)
            tids.append(int.from_bytes(key, "little"))
    return tids


def cpu_ns(task):
    """By the scheduler's account."""
    return int((task / "schedstat").read_text().split()[0])


def test_unseen_switch_out(t):
    """The time that a thread slept, although its switch-out was not seen, is not CPU time, and not that of its call."""
    target, session = served(t, "thr")
    tasks = Path(f"/proc/{target.pid}/task")
    target.say("answer")
    target.wait_for("answered")
    time.sleep(0.5)
    tids = switched_in([int(task.name) for task in tasks.iterdir()], session)
    check(tids, "no thread has slept since it ran")
    time.sleep(3)
    target.say("wake")
    target.wait_for("woken")
    for _ in range(3):
        target.say("answer")
        target.wait_for("answered")
    truth = {int(task.name): cpu_ns(task) for task in tasks.iterdir()}
    target.close_input()
    target.result()
    check(session.wait() == 0, f"safescoped: {session.err.seen}")
    lanes = {lane["tid"]: lane["cpu_ns"] for lane in t.report().target()["lanes"] if lane["kind"] == "thread"}
    for tid in tids:
        check(lanes[tid] < truth[tid] + 1000000000, f"thread {tid} has {lanes[tid]} ns of CPU time, the kernel counts {truth[tid]}")
    check("not reported by the kernel" in " ".join(t.report().target()["missing"]), "the missing switches are not mentioned")


if __name__ == "__main__":
    run(globals())
