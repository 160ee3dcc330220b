#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The service: its messages to the service manager, its end, its off switch, its log, its unit."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from bad_server import HANG, Server
from harness import ROOT, SAFESCOPED, SLOWNESS, Skip, cases, check, run, thorough
from service import Manager, Service
from test_windows import windows

UNIT = ROOT / "scripts" / "safescoped.service"
# The highest exposure level that the unit may have (systemd-analyze security).
EXPOSURE = 3.0


def test_ready_and_stopping(t):
    """READY is sent once everything is attached, and not before; STOPPING when the service is asked to end."""
    s = Service(t)
    ready = s.manager.wait_for("READY")
    check(ready["READY"] == "1" and "rofil" in ready["STATUS"], f"{ready}")
    check(len(s.manager.messages) == 1, f"before it: {s.manager.messages}")
    # the kernel has loaded BPF programs: their descriptors are open
    check(any("bpf" in os.readlink(f"/proc/{s.child()}/fd/{fd}") for fd in os.listdir(f"/proc/{s.child()}/fd")),
          "it was ready before it had loaded anything")
    s.end()
    s.manager.wait_for("STOPPING")


def test_little_configured(t):
    """Without `window` and `output` the service has default windows, the daemon's frequency and the directory that the
    service manager made for it, and a day of windows is kept. If only metrics are requested there are no files. A
    session with a duration has none of these defaults.
    """
    state = t.dir / "state"
    state.mkdir()
    config = t.dir / "conf"
    config.write_text("format json\n")
    target = t.target("Calls", 60, "safe_sleep_1ms=1000000")
    target.go()

    def run_it(*args, wait=True):
        session = t.session("--config", config, "-v", *args, env={"STATE_DIRECTORY": str(state)})
        if wait:
            session.wait_attached()
            session.signal(signal.SIGHUP)
            check(session.err.until("nothing has changed", 60) is not None, "a configuration without a window is not read again")
            session.signal(signal.SIGTERM)
        check(session.wait() == 0, f"it printed {session.err.seen}")
        return windows(state)

    reports = run_it("--pid", target.pid)
    check([r.json["session"]["frequency_hz"] for r in reports] == [19], f"{len(reports)} reports")
    for path in state.iterdir():
        path.unlink()
    config.write_text(f"metrics unix:{t.dir / 'metrics'}\n")
    check(not run_it("--pid", target.pid) and not list(state.iterdir()), f"there are {list(state.iterdir())}")
    run_it("--pid", target.pid, "-d", "1", "-f", "json", "-o", t.dir / "one", wait=False)
    check(json.loads((t.dir / "one.json").read_text())["session"]["frequency_hz"] == 99, "its frequency is not a session's")


def descendants(pid):
    """The process and its descendants, oldest first."""
    found = [pid]
    for parent in found:
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            found += map(int, task.read_text().split())
    return found


def session_of(s):
    """The service's child processes that are sessions: one or none."""
    children = Path(f"/proc/{s.session.pid}/task/{s.session.pid}/children").read_text().split()
    return [p for p in children if Path(f"/proc/{p}/comm").read_text().strip() == "safescoped"]


@cases("safescoped:http", "safescoped:push")
@thorough
def test_who_has_died(t, name):
    """If a helper dies that the session cannot start again, a new session begins with a new one, and what was queued
    arrives."""
    server = Server(t)
    metrics = t.dir / "metrics"
    s = Service(t, "--metrics", f"unix:{metrics}", "--push", server.url(), "--push-queue", t.dir / "queue")
    s.manager.wait_for("READY")
    s.wait_for_windows(lambda hz: len(hz) >= 21)
    victims = [p for p in descendants(s.session.pid) if Path(f"/proc/{p}/comm").read_text().strip() == name]
    check(victims, f"none is called {name}")
    sessions = session_of(s)
    for victim in victims:
        os.kill(victim, signal.SIGKILL)
    check(s.session.err.until("the session restarts", 60 * SLOWNESS) is not None, f"{s.session.err.seen}")
    deadline = time.monotonic() + 60 * SLOWNESS
    while session_of(s) in (sessions, []):
        check(time.monotonic() < deadline, "no session follows")
        time.sleep(0.2)
    taken = len(server.taken())
    while len(server.taken()) < taken + 3:
        check(time.monotonic() < deadline + 60, "nothing is pushed any more")
        time.sleep(0.2)
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(30 * SLOWNESS)
        client.connect(str(metrics))
        client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        check(b"200" in client.recv(64), "metrics are not answered")
    s.session.signal(signal.SIGTERM)
    check(s.session.wait() in (0, 1), f"{s.session.err.seen}")


def test_nobody_answers(t):
    """If the process that serves the metrics has died and no new session has begun yet, clients are refused at once
    instead of waiting."""
    metrics = t.dir / "metrics"
    s = Service(t, "--metrics", f"unix:{metrics}")
    s.manager.wait_for("READY")
    for pid in descendants(s.session.pid):
        if Path(f"/proc/{pid}/comm").read_text().strip() == "safescoped:http":
            os.kill(pid, signal.SIGKILL)
    line = s.session.err.until("serves them has ended", 10 * SLOWNESS)
    check(line and "until the session restarts" in line, f"it printed {s.session.err.seen}")
    time.sleep(0.2)
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(5)
        try:
            client.connect(str(metrics))
            check(False, "the socket takes connections that nobody answers")
        except ConnectionRefusedError:
            pass
    s.session.signal(signal.SIGTERM)
    check(s.session.wait() in (0, 1), f"{s.session.err.seen}")


@cases("SIGKILL", "SIGSEGV")
def test_session_killed(t, name):
    """If the session is killed it cannot report anything: the service does, and ends, so that its manager starts it
    again."""
    s = Service(t)
    s.manager.wait_for("READY")
    os.kill(s.child(), signal.Signals[name])
    code = s.session.wait()
    check(code == 2, f"it ended with {code}: {s.session.err.seen}")
    lines = [line for line in s.session.err.seen if "the session was killed by signal" in line]
    check(len(lines) == 1 and f"signal {int(signal.Signals[name])} " in lines[0], f"it printed {s.session.err.seen}")
    check(("out of memory?" in lines[0]) == (name == "SIGKILL"), lines[0])


def test_all_are_stopped(t):
    """A service manager sends SIGTERM to each process of a service: the service still ends properly, with its last
    window."""
    s = Service(t, "--metrics", f"unix:{t.dir / 'metrics'}", "--push", "otlp+http://127.0.0.1:9", "--push-queue", t.dir / "queue")
    s.manager.wait_for("READY")
    s.wait_for_windows(lambda hz: len(hz) >= 2)
    before = len(windows(s.folder))
    all_of_it = descendants(s.session.pid)
    check(len(all_of_it) >= 5, f"a service, a session, a keeper, one that pushes and one that answers: {all_of_it}")
    for pid in all_of_it:
        os.kill(pid, signal.SIGTERM)
    code = s.session.wait()
    check(code in (0, 1), f"it ended with {code}: {s.session.err.seen}")
    wrong = [line for line in s.session.err.seen if "has ended" in line or "keeper" in line or "killed" in line]
    check(not wrong, f"it printed {wrong}")
    last = windows(s.folder)
    check(len(last) > before, f"{before} windows before it, {len(last)} after it")
    missing = [m for m in last[-1].target(s.target.pid)["missing"] if "keeper" in m]
    check(not missing, f"the last window lacks something because of it: {missing}")


@thorough
def test_watchdog(t):
    """WATCHDOG is sent in time, but only while the session's own loop runs."""
    s = Service(t, env={"WATCHDOG_USEC": "6000000"})
    s.manager.wait_for("READY")
    check(s.manager.count("WATCHDOG", 7) >= 1, f"{s.manager.messages}")
    child = s.child()
    os.kill(child, signal.SIGSTOP)
    try:
        # by now its last sign of life is two seconds old; after ten the session would end
        s.manager.count("WATCHDOG", 2.5)
        still = s.manager.count("WATCHDOG", 3)
    finally:
        os.kill(child, signal.SIGCONT)
    check(still == 0, f"{still} signs of life of what stood still")
    s.manager.wait_for("WATCHDOG")
    s.session.signal(signal.SIGTERM)
    check(s.session.wait() in (0, 1), f"it printed {s.session.err.seen}")


def test_stopped_as_it_begins(t):
    """A SIGTERM before the session has begun: the time it took to begin counts towards the two seconds of sending."""
    server = Server(t, [HANG] * 1000)
    s = Service(t, "--push", server.url(), "--push-queue", t.dir / "queue")
    s.manager.wait_for("READY")
    s.wait_for_windows(lambda hz: len(hz) >= 2)
    s.end()
    check(list((t.dir / "queue").rglob("*.push")), "nothing is queued")
    again = t.session("--config", s.config, "--pid", s.target.pid, "--push", server.url(), "--push-queue", t.dir / "queue", "-v")
    begun = False
    while not begun:
        with contextlib.suppress(OSError):  # one has ended meanwhile
            begun = any(Path(f"/proc/{pid}/comm").read_text().strip() == "safescoped:push" for pid in descendants(again.pid))
    session = int(Path(f"/proc/{again.pid}/task/{again.pid}/children").read_text())
    os.kill(session, signal.SIGSTOP)
    again.signal(signal.SIGTERM)
    time.sleep(2)
    os.kill(session, signal.SIGCONT)
    check(again.err.until("Z.json", 30 * SLOWNESS) is not None, f"it printed {again.err.seen}")
    written = time.monotonic()
    again.wait()
    took = time.monotonic() - written
    check("still queued" in again.err.seen[-1], f"it printed {again.err.seen}")
    check(took < 1.2, f"{took:.1f} s after its last window")


def test_switched_off(t):
    """Started while the off file exists, the service is ready all the same, reloads its configuration, and profiles
    once the file is removed."""
    (t.dir / "off").touch()
    s = Service(t, env={"WATCHDOG_USEC": "3000000"})
    check("off" in s.manager.wait_for("READY")["STATUS"], f"{s.manager.messages}")
    s.configure(1, 97)
    s.session.signal(signal.SIGHUP)
    s.manager.wait_for("RELOADING")
    s.manager.wait_for("READY")
    check(s.manager.count("WATCHDOG", 3) >= 1 and not s.frequencies(), f"{s.manager.messages}, {s.frequencies()}")
    s.off.unlink()
    s.wait_for_windows(lambda hz: len(hz) >= 2)
    check(s.manager.wait_for("STATUS")["STATUS"] == "Profiling", f"{s.manager.messages}")
    s.off.touch()
    check(s.manager.wait_for("STATUS") == {"STATUS": "Switched off"}, f"{s.manager.messages}")
    s.end()
    check(set(s.frequencies()) == {97}, f"windows of {s.frequencies()} Hz")


def test_another_switch(t):
    """A reload that names another off file: while that one exists too it is reported, and what was never there is not
    reported as gone."""
    (t.dir / "off").touch()
    s = Service(t)
    s.manager.wait_for("READY")
    first, second, never = s.off, t.dir / "second", t.dir / "never"
    second.touch()
    for s.off in (second, never):
        s.configure(1, 97)
        s.session.signal(signal.SIGHUP)
        s.manager.wait_for("READY")
    s.wait_for_windows(lambda hz: len(hz) >= 1)
    lines = s.end()
    check(first.exists() and second.exists() and not any("is gone" in line for line in lines), f"{lines}")
    for part in (f"{first} exists: nothing", f"{second} exists: nothing", f"{never} does not exist: profiling resumes"):
        check(sum(part in line for line in lines) == 1, f"{part}: {lines}")


def test_stopped_as_it_is_switched_off(t):
    """A signal that arrives while the session ends because of the off file ends the service, which otherwise would wait
    for the file's removal."""
    s = Service(t, "--push", Server(t, [HANG] * 1000).url(), "--push-queue", t.dir / "queue")
    s.manager.wait_for("READY")
    s.wait_for_windows(lambda hz: len(hz) >= 2)
    child = s.child()
    probes = len(os.listdir(f"/proc/{child}/fd"))
    s.off.touch()
    deadline = time.monotonic() + 30 * SLOWNESS
    # while it ends it first detaches everything, and then waits for pushes that are not delivered
    while len(os.listdir(f"/proc/{child}/fd")) >= probes and time.monotonic() < deadline:
        time.sleep(0.01)
    s.session.signal(signal.SIGTERM)
    s.manager.wait_for("STOPPING")
    check(s.session.wait() == 0, f"it printed {s.session.err.seen}")
    check(s.off.exists() and "Switched off" not in str(s.manager.messages), f"{s.manager.messages}")


def test_ready_without_windows(t):
    """A session without windows also sends READY and WATCHDOG."""
    manager = Manager(t)
    target = t.target("Server", ready="waiting")
    session = t.session("--pid", target.pid, "-f", "json", "-o", t.dir / "one.json", env={"NOTIFY_SOCKET": manager.path})
    manager.wait_for("READY")
    manager.wait_for("WATCHDOG")
    session.signal(signal.SIGTERM)
    check(session.wait() == 0, f"it printed {session.err.seen}")


def journal(t, *args, mine=True):
    """(process, reader of its standard error). The environment declares standard error to be the journal, or with
    mine=False another stream to be it."""
    read, write = os.pipe()
    st = os.fstat(write)
    env = {**os.environ, "JOURNAL_STREAM": f"{st.st_dev}:{st.st_ino + (0 if mine else 1)}"}
    process = subprocess.Popen([SAFESCOPED, *map(str, args)], stderr=write, env=env)
    os.close(write)
    return process, os.fdopen(read)


def test_journal(t):
    """An error line begins with its level if, and only if, standard error is the journal."""
    (t.dir / "conf").write_text("windw 3\n")
    for mine, form in ((True, r"<3>.*conf:1: windw"), (False, r"safescoped: .*conf:1: windw")):
        process, log = journal(t, "--check-config", "--config", t.dir / "conf", mine=mine)
        with log:
            lines = log.read().splitlines()
        check(process.wait(60) == 64 and len(lines) == 1 and re.match(form, lines[0]), f"it printed {lines}")


def test_quiet_log(t):
    """Routine is not logged: window after window without a single line."""
    folder = t.dir / "windows"
    folder.mkdir()
    target = t.target("Server", ready="waiting")
    process, log = journal(t, "--pid", target.pid, "--window", "0.5", "-f", "json", "-o", folder)
    try:
        deadline = time.monotonic() + 60 * SLOWNESS
        while len(windows(folder)) < 4 and time.monotonic() < deadline:
            time.sleep(0.2)
    finally:
        process.send_signal(signal.SIGTERM)
    with log:
        text = log.read()
    check(process.wait(60) == 0 and len(windows(folder)) >= 4 and not text, f"it printed {text}")


def test_unit(t):
    """systemd finds nothing wrong in the unit, and its exposure level is low."""
    if not shutil.which("systemd-analyze"):
        raise Skip("no systemd-analyze")
    unit = t.dir / "safescoped.service"
    unit.write_text(UNIT.read_text().replace("/usr/bin/safescoped", str(SAFESCOPED)).replace("Documentation=", "#"))
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
    own = [line for line in (done.stdout + done.stderr).splitlines() if "safescoped" in line]
    check(done.returncode == 0 and not own, f"it ended with {done.returncode}: {own}")
    done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", unit], capture_output=True, text=True)
    found = re.search(r"exposure level for \S+: ([0-9.]+)", done.stdout)
    check(found and float(found.group(1)) <= EXPOSURE, f"exposed: {found and found.group(1)}: {done.stderr}")


if __name__ == "__main__":
    run(globals())
