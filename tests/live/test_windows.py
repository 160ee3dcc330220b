#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""--window: each window is a complete report, nothing is lost between windows, and old ones are removed."""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

from harness import SAFESCOPED, SLOWNESS, NotHere, Report, Target, cases, check, check_near, program, run, stolen_ns, thorough
from test_calls import ALWAYS
from test_metrics import child_of
from test_ring_full import FILLED_IN, FULL_FOR, n_lost
from test_system import maps_of

CALLS = (4, "safe_half_2ms=1000", "safe_spin_20us=4000", "unsafe_spin_1ms=400", "safe_sleep_1ms=400")


def windows(folder):
    """The reports in order of time, which is that of their names."""
    return [Report(folder / name) for name in sorted(os.listdir(folder)) if name.endswith("Z.json")]


def attach(t, target, *options, window="1"):
    folder = t.dir / "windows"
    folder.mkdir(exist_ok=True)
    session = t.session("--pid", target.pid, "-v", "-f", "json", "-o", folder, "--window", window, *ALWAYS, *options)
    session.wait_attached()
    return session, folder


def follow_each_other(reports):
    for a, b in zip(reports, reports[1:]):
        check(a.json["session"]["start_unix_ns"] + a.json["session"]["duration_ns"] == b.json["session"]["start_unix_ns"],
              "a window does not begin where the one before ended")


def states_are_whole(reports):
    for report in reports:
        for target in report.json["targets"]:
            for lane in target["lanes"]:
                check(sum(lane["states"].values()) == lane["wall_ns"], "a lane's states do not add up")


def total(reports, of):
    return sum(of(target) for report in reports for target in report.json["targets"])


def calls_of(function, field):
    return lambda target: sum(c[field] or 0 for c in target["safe_calls"] if c["function"] == function)


def in_calls(reports):
    """{function: ns in its calls, completed or still open}"""
    found = {}
    for report in reports:
        for target in report.json["targets"]:
            for c in target["safe_calls"]:
                found[c["function"]] = found.get(c["function"], 0) + c["wall_ns"] + c["open_wall_ns"]
    return found


def waited(target):
    return sum(lane["states"].get("idle", 0) for lane in target["lanes"] if lane["kind"] == "thread")


def scheduled(pid):
    """{tid: (ns on the CPU, ns that it waited for a CPU)}, by the scheduler's accounting."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            found[int(task.name)] = tuple(int(n) for n in (task / "schedstat").read_text().split()[:2])
    return found


def test_threads_at_a_low_frequency(t):
    """At a service's low frequency a thread's short stays off the CPU have no records of their own, between two ticks
    or when the timer's thread preempts it. Its running time and its waiting time for a CPU are those of the scheduler
    all the same."""
    target = t.target("Lanes", "busy", 3, rts=("-N2",))
    session, folder = attach(t, target, "-F", "19")
    before, stolen = scheduled(target.pid), stolen_ns()
    target.go()
    target.wait_for("}", 60)
    after, stolen = scheduled(target.pid), stolen_ns() - stolen + 10000000
    session.signal(signal.SIGINT)
    check(session.wait() == 0, f"safescoped ended so: {session.err.seen}")
    reports = windows(folder)
    check(len(reports) >= 3, f"{len(reports)} windows")
    states_are_whole(reports)
    ran, waited = {}, 0
    for report in reports:
        for lane in report.target()["lanes"]:
            if lane["kind"] == "thread":
                ran[lane["tid"]] = ran.get(lane["tid"], 0) + lane["cpu_ns"]
                waited += lane["states"]["preempted"]
    of_all = {tid: [now - then for now, then in zip(ns, before.get(tid, (0, 0)))] for tid, ns in after.items()}
    busiest = max(ns for ns, _ in of_all.values())
    for tid, (ns, _) in of_all.items():
        check_near(f"on the CPU, thread {tid}", ran.get(tid, 0), ns, 0.01 * busiest + stolen)
    check_near("waited for a CPU", waited, sum(ns for _, ns in of_all.values()), 0.02 * busiest + stolen)
    ticker = [tid for tid in of_all if Path(f"/proc/{target.pid}/task/{tid}/comm").read_text() == "ghc_ticker\n"]
    stays = [r for report in reports for r in report.target()["lanes"] if r.get("tid") in ticker]
    check(stays and all(lane["cpu_ns"] < 0.1 * lane["wall_ns"] for lane in stays), f"the timer's thread: {stays}")
    target.say("end")
    target.wait()


@cases("thr", "thr_p")
def test_sums(t, way):
    """The counts and times of all windows together are the program's own, live and replayed."""
    target = t.target("Calls", *CALLS, way=way, rts=("-N2",))
    session, folder = attach(t, target, "--save", t.dir / "capture")
    target.go()
    truth = target.result()
    check(session.wait() == 0, f"safescoped ended so: {session.err.seen}")
    live = windows(folder)
    check(len(live) >= 3, f"{len(live)} windows")
    follow_each_other(live)
    states_are_whole(live)
    for function in ("safe_half_2ms", "safe_spin_20us", "safe_sleep_1ms"):
        got = total(live, calls_of(function, "calls"))
        check(got == truth[function]["calls"], f"{function}: {got} calls, {truth[function]['calls']} were made")
    again = t.dir / "again"
    again.mkdir()
    for options, place in ((("--window", "0.7"), again), ((), t.dir / "one.json")):
        done = subprocess.run([SAFESCOPED, "--replay", t.dir / "capture", "-q", "-f", "json", "-o", place, *options],
                              capture_output=True, text=True, timeout=120, check=False)
        check(done.returncode == 0, f"the replay ended with {done.returncode}: {done.stderr}")
    for place, what in ((t.dir / "none", "no such directory"), (t.dir / "capture", "not a directory")):
        done = subprocess.run([SAFESCOPED, "--replay", t.dir / "capture", "--window", "0.7", "-f", "json", "-o", place],
                              capture_output=True, text=True, timeout=120, check=False)
        check(done.returncode == 2 and done.stderr.splitlines() ==
              [f"safescoped: {place}: {what}; windows need one for their files"],
              f"a replay into no directory ended with {done.returncode}: {done.stderr}")
    one, many = [Report(t.dir / "one.json")], windows(again)
    follow_each_other(many)
    states_are_whole(many)
    check(in_calls(many) == in_calls(one), f"time in calls: {in_calls(many)} in windows, {in_calls(one)} in one")
    cpu = [total(reports, lambda target: sum(l["cpu_ns"] for l in target["lanes"] if l["kind"] == "thread"))
           for reports in (one, many)]
    check(cpu[0] == cpu[1], f"CPU time of the session and of its windows: {cpu}")
    waits = [total(reports, waited) for reports in (one, many)]
    check(waits[0] == waits[1], f"idle time of the session and of its windows: {waits}")
    for reports, what in ((live, "live"), (many, "replayed")):
        pause = total(reports, lambda target: target["gc"]["pause_ns"] or 0)
        whole = total(one, lambda target: target["gc"]["pause_ns"] or 0)
        check(pause == whole, f"{what}: {pause} ns of pauses, should be {whole}")


def replayed(t, *options):
    place = t.dir / f"replayed{len(options)}"
    place.mkdir()
    done = subprocess.run([SAFESCOPED, "--replay", t.dir / "capture", "-q", "-f", "json", "-o",
                           place if options else place / "oneZ.json", *options],
                          capture_output=True, text=True, timeout=120, check=False)
    check(done.returncode == 0, f"the replay ended with {done.returncode}: {done.stderr}")
    return windows(place)


def open_ones(reports, function):
    """(open at its start, open at its end, ns in them) for each window; zeros for a window without the process"""
    return [tuple(total([report], calls_of(function, field)) for field in ("open_at_start", "open_at_end", "open_wall_ns"))
            for report in reports]


def test_calls_all_along(t):
    """Calls that began before the session, of which none or one ends in it: each window has its part of them."""
    target = t.target("Server", ready="waiting")
    session, folder = attach(t, target, "--save", t.dir / "capture")
    time.sleep(2.3)
    target.say("wake")
    target.wait_for("woken")
    time.sleep(1.4)
    session.signal(signal.SIGINT)
    check(session.wait() == 0, f"safescoped ended so: {session.err.seen}")
    live, many, one = windows(folder), replayed(t, "--window", "0.4"), replayed(t)
    for reports, what in ((live, "live"), (many, "replayed")):
        lengths = [report.json["session"]["duration_ns"] for report in reports]
        sleeps = open_ones(reports, "server_sleep_long")
        # on a busy machine the process may be looked at only after it has joined
        first = next(i for i, (_, at_end, _) in enumerate(sleeps) if at_end)
        check(len(reports) >= first + 3, f"{len(reports)} windows")
        for i in range(first, len(reports)):
            at_start, at_end, ns = sleeps[i]
            check((at_start, at_end) == (1, 1) and (i == first or ns >= lengths[i]) and ns <= lengths[i],
                  f"{what}: open {at_start} and {at_end} for {ns} of {lengths[i]} ns")
        woken = open_ones(reports, "server_wait_for_wake")[first:]
        check(all(b[0] == a[1] or not b[0] for a, b in zip(woken, woken[1:])) and woken[0][:2] == (1, 1) and woken[-1][1] == 0,
              f"{what}: the one that ends: {woken}")
        check(in_calls(reports).keys() == in_calls(one).keys(), f"{what}: {in_calls(reports)}, in one {in_calls(one)}")
        slack = 0 if reports is many else 5e6 + sum(lengths[:first + 1]) * (first > 0)
        for function, ns in in_calls(one).items():
            check_near(f"{what}: time in {function}", in_calls(reports)[function], ns, slack)


def test_killed_in_calls(t):
    """Calls that are open when the process is killed have their time, in a single report and in windows."""
    folder = t.dir / "windows"
    folder.mkdir()
    own = shutil.copy(program("Server"), t.dir / f"killed{os.getpid()}")
    session = t.session("--comm", own.name, "-v", "-f", "json", "-o", folder, "--window", "0.5", *ALWAYS, "--save", t.dir / "capture")
    check(session.err.until("processes", 60) is not None, f"safescoped did not begin: {session.err.seen}")
    began = time.monotonic_ns()
    target = Target([own], ready="waiting")
    t.started.append(target)
    ready = time.monotonic_ns()
    time.sleep(1.7)
    least = time.monotonic_ns() - ready
    target.kill()
    most = time.monotonic_ns() - began
    session.signal(signal.SIGINT)
    check(session.wait() == 0, f"safescoped ended so: {session.err.seen}")
    one = in_calls(replayed(t))
    for reports, what in ((windows(folder), "live"), (replayed(t, "--window", "0.4"), "replayed")):
        got = in_calls(reports)
        for function in ("server_sleep_long", "server_wait_for_wake"):
            # it is attached after its start, on a busy machine later
            check(least / 2 <= one[function] <= most, f"{function}: {one[function]} ns, should be {least} to {most}")
            check_near(f"{what}: time in {function}", got[function], one[function], 5e6)
        check(open_ones(reports, "server_sleep_long")[-1][1] == 1, f"{what}: at the end {open_ones(reports, 'server_sleep_long')}")


def test_signals(t):
    """SIGUSR1 writes the current window at once. SIGTERM writes the rest, and the session ends within two seconds."""
    target = t.target("Calls", 2, "safe_sleep_1ms=20000")
    session, folder = attach(t, target, window="600")
    target.go()
    time.sleep(1)
    session.signal(signal.SIGUSR1)
    for _ in range(100):
        if windows(folder):
            break
        time.sleep(0.1)
    check(len(windows(folder)) == 1, "SIGUSR1 made no window")
    time.sleep(1)
    begin = time.monotonic()
    session.signal(signal.SIGTERM)
    code = session.wait()
    took = time.monotonic() - begin
    check(code == 0 and took < 4, f"it ended with {code} after {took:.1f} s")
    follow_each_other(windows(folder))
    check(len(windows(folder)) == 2, f"{len(windows(folder))} windows")


@thorough
def test_max_cpu(t):
    """If the daemon takes more CPU time than --max-cpu, it takes fewer samples, and the windows show the reduced
    frequency."""
    target = t.target("Calls", 2, "safe_sleep_1ms=20000")
    session, folder = attach(t, target, "-F", "997", "--max-cpu", "0.01", window="0.5")
    target.go()
    time.sleep(13)
    session.signal(signal.SIGTERM)
    check(session.wait() == 0, f"safescoped ended so: {session.err.seen}")
    hz = [report.json["session"]["frequency_hz"] for report in windows(folder)]
    check(hz[0] == 997 and hz[-1] <= 249 and hz == sorted(hz, reverse=True), f"windows of {hz} Hz")
    check(sum("more than --max-cpu 0.01: fewer samples" in l for l in session.err.seen) == 1, f"it printed {session.err.seen}")


def test_keep(t):
    target = t.target("Calls", 2, "safe_sleep_1ms=20000")
    session, folder = attach(t, target, "--keep", "2", window="0.5")
    (folder / "safescope-other.json").write_text("{}")
    target.go()
    time.sleep(4)
    session.signal(signal.SIGTERM)
    check(session.wait() == 0, f"safescoped ended so: {session.err.seen}")
    left = sorted(os.listdir(folder))
    check(len(left) == 3 and "safescope-other.json" in left, f"{left}")
    follow_each_other(windows(folder))


def test_old_one_stays(t):
    """An old window that cannot be removed is logged once, and not again for each window after it."""
    folder = t.dir / "windows"
    folder.mkdir()
    target = t.target("Server", ready="waiting")
    old = folder / f"safescope-Server-{target.pid}-20200101T000000.000Z.json"
    old.write_text("{}")
    # in a mount namespace of its own, so that the mount ends with the session
    session = t.session("--pid", target.pid, "-v", "-f", "json", "-o", folder, "--window", "0.5", "--keep", "2",
                        prefix=("unshare", "--mount", "sh", "-c", f"mount --bind {old} {old} && exec \"$@\"", "sh"))
    session.wait_attached()
    made = set()
    deadline = time.monotonic() + 60 * SLOWNESS
    while len(made) < 5:
        check(time.monotonic() < deadline, f"there were {made}; it printed {session.err.seen}")
        made.update(set(os.listdir(folder)) - {old.name})
        time.sleep(0.1)
    session.signal(signal.SIGTERM)
    check(session.wait() == 0, f"it printed {session.err.seen}")
    said = [line for line in session.err.seen if "cannot be removed" in line]
    check(len(said) == 1 and old.exists(), f"it printed {session.err.seen}")


def name_at(target, unix_ms):
    at = time.strftime("%Y%m%dT%H%M%S", time.gmtime(unix_ms // 1000))
    return f"safescope-Calls-{target.pid}-{at}.{unix_ms % 1000:03}Z.json"


def test_name_is_taken(t):
    """A window does not replace an earlier one of the same name, as there may be after the clock was set back: it gets
    the next millisecond that is free."""
    target = t.target("Calls", 2, "safe_sleep_1ms=1000000")
    target.go()
    session, folder = attach(t, target, window="0.1")
    one = t.dir / "one"
    one.write_text('{"safescope": {}}')
    begin = time.time_ns() // 1_000_000 + 300
    end = begin + 3000
    earlier = set()
    for name in (name_at(target, ms) for ms in range(begin, end) if ms % 4):
        # on a busy machine that window may be there by now
        with contextlib.suppress(FileExistsError):
            os.link(one, folder / name)
            earlier.add(name)
    time.sleep(max(0, end / 1000 - time.time()))
    session.signal(signal.SIGTERM)
    check(session.wait() == 0, f"it printed {session.err.seen}")
    replaced = [name for name in earlier if not (folder / name).samefile(one)]
    check(not replaced, f"{replaced} were replaced")
    names = sorted(set(os.listdir(folder)) - earlier)
    reports = [Report(folder / name) for name in names]
    starts = [report.json["session"]["start_unix_ns"] // 1_000_000 for report in reports]
    check(sum(begin <= ms < end for ms in starts) >= 4, f"windows began at {starts}")
    follow_each_other(reports)
    misnamed = [ms for ms, name in zip(starts, names) if name not in [name_at(target, ms + i) for i in range(4)]]
    check(not misnamed, f"the names of those that began at {misnamed} are not near")


def test_disk_full(t):
    """Windows for which there is no room are counted; later ones are written again."""
    disk = t.dir / "windows"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", disk], check=True)
    t.finally_do(lambda: subprocess.run(["umount", "-l", disk], check=True))
    target = t.target("Calls", 2, "safe_sleep_1ms=20000")
    session, folder = attach(t, target, "-f", "json,html", window="0.5")
    target.go()
    filler = os.open(disk / "full", os.O_WRONLY | os.O_CREAT)
    try:
        while os.write(filler, bytes(4096)):
            pass
    except OSError:
        pass
    os.close(filler)
    before = len(windows(folder))
    time.sleep(2)
    check(len(windows(folder)) <= before + 1, "the disk was not full")
    os.unlink(disk / "full")
    time.sleep(2)
    session.signal(signal.SIGTERM)
    code = session.wait()
    check(code == 1, f"safescoped ended with {code}")
    check(len(windows(folder)) > before + 1, f"nothing was written again: {os.listdir(disk)}, {session.err.seen}")
    # one event, and its end is another; only -v reports those in between
    check(sum("not reported until one is" in l for l in session.err.seen) == 1, f"{session.err.seen}")
    check(sum("windows are written again" in l for l in session.err.seen) == 1, f"{session.err.seen}")
    check(not [n for n in os.listdir(disk) if n.startswith(".")], "a temporary file is left")
    by_kind = [{n.removesuffix(end) for n in os.listdir(disk) if n.endswith(end)} for end in (".json", ".html")]
    check(by_kind[0] == by_kind[1], f"windows that are not there in both formats: {by_kind[0] ^ by_kind[1]}")


def test_nobody_reads(t):
    """If windows end faster than they can be written they become longer: none is lost."""
    target = t.target("Calls", 2, "safe_sleep_1ms=20000")
    fifo = t.dir / "fifo"
    os.mkfifo(fifo)
    with open(os.open(fifo, os.O_RDONLY | os.O_NONBLOCK), "rb") as shown:
        fcntl.fcntl(shown, fcntl.F_SETPIPE_SZ, 4096)
        session = t.session("--pid", target.pid, "-v", "-f", "json", "-o", "-", "--window", "0.5",
                            prefix=["sh", "-c", 'exec "$@" >"$0"', fifo])
        session.wait_attached()
        target.go()
        time.sleep(4)
        os.set_blocking(shown.fileno(), True)
        read = []
        thread = threading.Thread(target=lambda: read.append(shown.read()))
        thread.start()
        time.sleep(2 * SLOWNESS)
        session.signal(signal.SIGINT)
        thread.join()
    code = session.wait()
    check(code == 0, f"it ended with {code}: {session.err.seen}")
    reports, text = [], read[0].decode()
    while text.strip():
        report, end = json.JSONDecoder().raw_decode(text.lstrip())
        path = t.dir / f"{len(reports)}.json"
        path.write_text(json.dumps(report))
        reports.append(Report(path))
        text = text.lstrip()[end:]
    follow_each_other(reports)
    lasted = [report.json["session"]["duration_ns"] / 1e9 for report in reports]
    check(len(lasted) >= 4 and max(lasted) > 2 and sum(lasted) > 5, f"windows of {lasted} s")


def test_reader_goes_away(t):
    """If the reader closes the pipe, as `head` does, the session ends, and that is no failure."""
    target = t.target("Calls", 30, "safe_sleep_1ms=20000")
    session = t.session("--pid", target.pid, "-v", "-f", "json", "-o", "-", "--window", "0.2")
    session.wait_attached()
    target.go()
    check(session.out.until("{", 60) is not None, f"no window came: {session.err.seen}")
    session.process.stdout.close()
    code = session.process.wait(30)
    check(code == 0, f"it ended with {code}: {session.err.seen}")
    check(sum("nobody reads it any more" in l for l in session.err.all(5)) == 1, f"{session.err.seen}")


@contextlib.contextmanager
def stopped(session):
    """Both processes of the daemon are stopped inside the `with`."""
    daemons = child_of(session), session.pid
    for pid in daemons:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in daemons:
            os.kill(pid, signal.SIGCONT)


def hold_up_until_the_ring_is_full(session):
    counters = maps_of(session, ("counters",))["counters"]
    with stopped(session):
        before, until = n_lost(counters), time.monotonic() + FILLED_IN
        while n_lost(counters) == before:
            check(time.monotonic() < until, "the ring does not become full")
            time.sleep(0.1)
        time.sleep(FULL_FOR)


@cases("10", "250")
def test_held_up_while_one_joins(t, ms):
    """If the daemon is held up while a program is being looked at and a window ends, the program's threads still have
    no more CPU time than by the scheduler."""
    path = shutil.copy(program("Lanes"), t.dir / f"joins{os.getpid()}")
    folder = t.dir / "windows"
    folder.mkdir()
    session = t.session("--comm", path.name, "-v", "-F", "19", "-f", "json", "-o", folder, "--window", "2", *ALWAYS)
    session.wait_attached()
    target, stolen = Target([path, "busy", 3, "+RTS", "-N2"]), stolen_ns()
    t.started.append(target)
    target.go()
    time.sleep(int(ms) / 1000)
    with stopped(session):
        time.sleep(3.2)
    target.wait_for("}", 60)
    time.sleep(3 * SLOWNESS)
    ran, stolen = scheduled(target.pid), stolen_ns() - stolen
    session.signal(signal.SIGINT)
    check(session.wait() == 0, f"safescoped ended so: {session.err.seen}")
    reports = windows(folder)
    lanes = [lane for report in reports for x in report.json["targets"] for lane in x["lanes"] if lane["kind"] == "thread"]
    check({lane["tid"] for lane in lanes} >= ran.keys(), f"lanes of {[lane['tid'] for lane in lanes]}, threads are {ran.keys()}")
    for tid, (ns, _) in ran.items():
        got = sum(lane["cpu_ns"] for lane in lanes if lane["tid"] == tid)
        check(got < 1.01 * ns + 20e6 + stolen, f"thread {tid} was on the CPU for {ns / 1e6:.1f} ms, the windows have {got / 1e6:.1f}")
    paused = [sum(x["cost"]["probes_paused_ns"] for x in report.json["targets"]) for report in reports]
    noted = [any("the probes were off" in m for x in report.json["targets"] for m in x["missing"]) for report in reports]
    check(all(noted[i] for i, ns in enumerate(paused) if ns), f"paused for {paused}, noted in {noted}")
    target.say("end")
    target.wait()


def callers_of(pid):
    """{tid: name} of its threads that have given themselves one."""
    names = {int(task.name): (task / "comm").read_text().rstrip("\n") for task in Path(f"/proc/{pid}/task").iterdir()}
    return {tid: name for tid, name in names.items() if name.startswith("caller ")}


def test_names_of_threads(t):
    """A thread that gives itself a name when it runs has it in each window, not only once it has ended."""
    target = t.target("Lanes", "callin", 6 * SLOWNESS)
    session, folder = attach(t, target)
    target.go()
    until = time.monotonic() + 20 * SLOWNESS
    while len(callers := callers_of(target.pid)) < 2:
        check(time.monotonic() < until, "its threads have no names")
        time.sleep(0.05)
    time.sleep(2.5)
    reports, living = windows(folder), callers_of(target.pid)
    session.signal(signal.SIGINT)
    check(session.wait() == 0, f"safescoped ended so: {session.err.seen}")
    check(living == callers, f"{living} of {callers} are left: the test proves nothing")
    shown = [{lane["tid"]: lane["name"] for x in report.json["targets"] for lane in x["lanes"] if lane.get("tid") in callers}
             for report in reports]
    shown = [names for names in shown if len(names) == 2]
    check(shown and shown[-1] == callers, f"shown as {shown}, they are {callers}")


@thorough
def test_held_up_until_the_ring_is_full(t):
    """Time without records, because the ring was full, is not counted as time on the CPU."""
    path = shutil.copy(program("PingPong"), t.dir / f"full{os.getpid()}")
    folder = t.dir / "windows"
    folder.mkdir()
    target = Target([path, "bound", 100000000, "+RTS", "-N2"])
    t.started.append(target)
    session = t.session("--comm", path.name, "-v", "-F", "19", "-f", "json", "-o", folder, "--window", "1", *ALWAYS)
    session.wait_attached()
    stolen = stolen_ns()
    target.go()
    time.sleep(1)
    hold_up_until_the_ring_is_full(session)
    time.sleep(2.5)
    session.signal(signal.SIGINT)
    check(session.wait() == 1, f"safescoped ended so: {session.err.seen}")
    stolen = stolen_ns() - stolen
    reports = windows(folder)
    check(total(reports, lambda x: x["lost"].get("ring_full", 0)), "the ring never was full")
    lanes = [lane for report in reports for x in report.json["targets"] for lane in x["lanes"] if lane["kind"] == "thread"]
    for tid, (ns, _) in scheduled(target.pid).items():
        got = sum(lane["cpu_ns"] for lane in lanes if lane["tid"] == tid)
        check(got < 1.01 * ns + 20e6 + stolen, f"thread {tid} was on the CPU for {ns / 1e6:.1f} ms, the windows have {got / 1e6:.1f}")


def test_clock_is_set(t):
    """If the clock is changed by an hour, forward and back, as when a machine gets the time after it has booted, the
    windows still have the kernel's time."""
    if os.environ.get("SAFESCOPED_VM") != "1":
        raise NotHere("the clock of this machine is not ours")
    target = t.target("Calls", 2, "safe_sleep_1ms=1000000")
    session, folder = attach(t, target, window="3")
    target.go()
    for step in (0, 3600, -3600):
        time.clock_settime(time.CLOCK_REALTIME, time.time() + step)
        wanted = len(windows(folder)) + 3
        deadline = time.monotonic() + 600
        while len(windows(folder)) < wanted:
            check(time.monotonic() < deadline, f"{len(windows(folder))} windows; it printed {session.err.seen}")
            time.sleep(1)
    session.signal(signal.SIGINT)
    check(session.wait() in (0, 1), f"it printed {session.err.seen}")
    said = [line for line in session.err.seen if "the clock was set" in line]
    check(len(said) == 2 and "forward by 3600." in said[0] and "back by 3600." in said[1], f"it printed {session.err.seen}")
    spans = []
    for path in folder.glob("*Z.json"):
        own = Report(path).json["session"]
        start, end = own["start_unix_ns"], own["start_unix_ns"] + own["duration_ns"]
        made = path.stat().st_mtime_ns
        check(end - 10_000_000 < made < end + 60_000_000_000, f"{path.name} ends at {end}, its file was made at {made}")
        spans.append((start, end))
    # all but the last window, and the two after which the clock was set
    ends = {end for _, end in spans} - {start for start, _ in spans}
    check(len(ends) == 3, f"windows do not begin where those before ended: {sorted(spans)}")


def pinned(target, cpu):
    """Move all of the target's threads to this CPU."""
    for task in os.listdir(f"/proc/{target.pid}/task"):
        os.sched_setaffinity(int(task), {cpu})


def test_cpu_comes_and_goes(t):
    """A CPU that comes online during the session is sampled, also after it was offline again, as all CPUs but one are
    while a machine sleeps. In a machine of its own: SAFESCOPED_VM_CPUS=2 tests/vm/run 6.1 windows:cpu_comes_and_goes"""
    if os.environ.get("SAFESCOPED_VM") != "1":
        raise NotHere("the CPUs of this machine are not ours")
    cpu = Path("/sys/devices/system/cpu/cpu1/online")
    if not cpu.exists():
        raise NotHere("this machine has one CPU")
    check(cpu.read_text() == "0\n", "the second CPU is there from the start")
    target = t.target("Calls", 1, "unsafe_spin_1ms=1000000")
    session, folder = attach(t, target, window="10")
    target.go()
    for _ in range(2):
        cpu.write_text("1")
        pinned(target, 1)
        wanted = len(windows(folder)) + 3
        deadline = time.monotonic() + 600
        while len(windows(folder)) < wanted:
            check(time.monotonic() < deadline, f"{len(windows(folder))} windows; it printed {session.err.seen}")
            time.sleep(1)
        # a window that began after the CPU was detected
        target_then = windows(folder)[-1].json["targets"][0]
        seconds = sum(lane["cpu_ns"] or 0 for lane in target_then["lanes"] if lane["kind"] == "thread") / 1e9
        check(target_then["stacks"]["samples"] > 50 * seconds > 50, f"{target_then['stacks']} in {seconds} s of CPU time")
        cpu.write_text("0")
    session.signal(signal.SIGINT)
    check(session.wait() in (0, 1), f"it printed {session.err.seen}")


@thorough
def test_sleepers(t):
    """Threads that sleep for longer than a window, and run for a moment just when one ends, were not on the CPU before:
    their CPU time is that of the scheduler (proc(5), schedstat).
    """
    target = t.target("Sleepers", 400, 1700000)
    session, folder = attach(t, target, "-F", "19", window="0.3")

    def cpu():
        tasks = Path(f"/proc/{target.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks)

    target.go()
    time.sleep(3)
    before = cpu()
    time.sleep(8)
    truth = cpu() - before
    session.signal(signal.SIGTERM)
    check(session.wait() in (0, 1), f"{session.err.seen}")
    lanes = [lane for report in windows(folder)[10:-3] for x in report.json["targets"] for lane in x["lanes"] if lane["kind"] == "thread"]
    got = sum(lane["cpu_ns"] for lane in lanes)
    check(got <= truth * 1.2 + 30e6, f"{got / 1e6} ms on the CPU, and the scheduler has {truth / 1e6} ms; the most of one thread in a "
                                     f"window: {max(lane['cpu_ns'] for lane in lanes) / 1e6} ms")


if __name__ == "__main__":
    run(globals())
