#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The service: its messages to the service manager, reloading its configuration, its log, its unit."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

from bad_server import HANG, Server
from harness import ROOT, SAFESCOPED, SLOWNESS, Skip, cases, check, run, thorough
from test_windows import follow_each_other, windows

UNIT = ROOT / "scripts" / "safescoped.service"
# The highest exposure level that the unit may have (systemd-analyze security).
EXPOSURE = 3.0


class Manager:
    """The service manager's end of NOTIFY_SOCKET (sd_notify(3)): messages with the times at which they came."""

    def __init__(self, t):
        self.path = str(t.dir / "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.messages = []
        t.finally_do(self.socket.close)

    def take(self, seconds):
        """Receive one message; False: none came within this many seconds."""
        self.socket.settimeout(max(0.01, seconds))
        try:
            text = self.socket.recv(65536).decode()
        except TimeoutError:
            return False
        self.messages.append((time.monotonic(), dict(line.split("=", 1) for line in text.splitlines())))
        return True

    def wait_for(self, key, timeout=60 * SLOWNESS):
        """The next message with that key that has not been taken yet."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if self.take(deadline - time.monotonic()) and key in self.messages[-1][1]:
                return self.messages[-1][1]
        check(False, f"no {key} within {timeout} s; it received {self.messages}")

    def count(self, key, seconds):
        """The number of messages with that key in the next `seconds`."""
        before, end = len(self.messages), time.monotonic() + seconds
        while time.monotonic() < end:
            self.take(end - time.monotonic())
        return sum(key in m for _, m in self.messages[before:])


class Service:
    def __init__(self, t, *options, env=None):
        self.t = t
        self.manager = Manager(t)
        self.config = t.dir / "safescoped.conf"
        self.folder = t.dir / "windows"
        self.folder.mkdir()
        self.off = t.dir / "off"
        self.configure(1, 49)
        self.target = t.target("Calls", 60, "safe_sleep_1ms=1000000")
        self.target.go()
        self.session = t.session("--config", self.config, "--pid", self.target.pid, *options,
                                 env={"NOTIFY_SOCKET": self.manager.path, **(env or {})})

    def configure(self, window, frequency, *more):
        lines = [f"window {window}", f"frequency {frequency}", "format json", f"output {self.folder}", f"off-file {self.off}", *more]
        self.config.write_text("".join(f"{line}\n" for line in lines))

    def child(self):
        """The pid of the session's process."""
        text = Path(f"/proc/{self.session.pid}/task/{self.session.pid}/children").read_text().split()
        check(len(text) == 1, f"the service has children {text}")
        return int(text[0])

    def frequencies(self):
        return [report.json["session"]["frequency_hz"] for report in windows(self.folder)]

    def wait_for_windows(self, enough):
        deadline = time.monotonic() + 60 * SLOWNESS
        while not enough(self.frequencies()):
            check(time.monotonic() < deadline, f"windows of {self.frequencies()} Hz; it printed {self.session.err.seen}")
            time.sleep(0.2)

    def end(self):
        self.session.signal(signal.SIGTERM)
        code = self.session.wait()
        check(code == 0, f"it ended with {code}: {self.session.err.seen}")
        return self.session.err.seen


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


@thorough
def test_reload(t):
    """After SIGHUP the new configuration applies, and the current window is written."""
    s = Service(t)
    s.manager.wait_for("READY")
    s.wait_for_windows(lambda hz: len(hz) >= 2)
    s.configure(1, 97)
    s.session.signal(signal.SIGHUP)
    s.manager.wait_for("RELOADING")
    s.manager.wait_for("READY")
    s.wait_for_windows(lambda hz: hz.count(97) >= 2)
    lines = s.end()
    check(any("reloaded" in line for line in lines), f"it printed {lines}")
    hz = s.frequencies()
    check(hz == sorted(hz) and set(hz) == {49, 97}, f"windows of {hz} Hz")
    all_windows = windows(s.folder)
    follow_each_other([w for w in all_windows if w.json["session"]["frequency_hz"] == 49])
    follow_each_other([w for w in all_windows if w.json["session"]["frequency_hz"] == 97])


def test_early_signals(t):
    """A SIGHUP before it has read its configuration does not end the service, which becomes ready once everything is
    attached."""
    library = t.dir / "early_signals.so"
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", library, ROOT / "tests" / "live" / "early_signals.c"], check=True)
    s = Service(t, env={"LD_PRELOAD": str(library)})
    s.manager.wait_for("READY")
    s.wait_for_windows(lambda hz: len(hz) >= 1)
    s.end()
    # what is not a service is still ended by the signal
    config = t.dir / "one.conf"
    config.write_text("duration 60\nformat json\n")
    session = t.session("--config", config, "-o", t.dir / "one.json", env={"LD_PRELOAD": str(library)})
    check(session.wait() == -signal.SIGHUP, f"it printed {session.err.seen}")


def test_wrong_reload(t):
    """An invalid configuration is reported with its line and ignored; so is one with which no session could begin, and
    one that has not changed.
    """
    s = Service(t)
    s.manager.wait_for("READY")
    child, queue = s.child(), t.dir / "queue"
    queue.mkdir()
    queue.chmod(0o777)
    with subprocess.Popen(["true"]) as process:
        gone = process.pid
    for text, why in ((s.config.read_text() + "windw 3\n", f"{s.config}:6: windw"), (f"save {t.dir / 'x.sscap'}\n", "without windows"),
                      (s.config.read_text().replace(str(s.folder), f"{t.dir / 'none'}"), f"{t.dir / 'none'}: no such directory"),
                      (s.config.read_text() + f"push otlp+http://127.0.0.1:9\npush-headers {t.dir / 'none'}\n",
                       f"{t.dir / 'none'}: cannot be read"),
                      (s.config.read_text() + f"pid {gone}\n", f"pid {gone}: no such process"),
                      # a directory, but not one to write files in
                      (s.config.read_text().replace(str(s.folder), "/proc"), "cannot be written"),
                      (s.config.read_text() + f"push otlp+http://127.0.0.1:9\npush-queue {queue}\n", "others can write to it"),
                      (s.config.read_text() + f"archives {t.dir / 'none'}\n", f"--archives {t.dir / 'none'}"),
                      (None, "cannot be read"), (s.config.read_text() + "# a word\n", "nothing has changed")):
        if text is None:
            s.config.unlink()
        else:
            s.config.write_text(text)
        s.session.signal(signal.SIGHUP)
        s.manager.wait_for("RELOADING")
        s.manager.wait_for("READY")
        check(s.session.err.until(why, 30) is not None, f"nothing about {why!r}: {s.session.err.seen}")
        check(s.child() == child, f"{why}: another session has begun")
    have = len(s.frequencies())
    s.wait_for_windows(lambda hz: len(hz) > have + 1)
    s.end()
    check(set(s.frequencies()) == {49}, f"windows of {s.frequencies()} Hz")


def test_reload_that_cannot_begin(t):
    """A reload with a --pid that is not a GHC program, which only the new session can find out: it goes on as before."""
    s = Service(t)
    s.manager.wait_for("READY")
    child, good = s.child(), s.config.read_text()
    with subprocess.Popen(["sleep", "1000"]) as other:
        try:
            s.config.write_text(good.replace("frequency 49", "frequency 97") + f"pid {other.pid}\n")
            s.session.signal(signal.SIGHUP)
            s.manager.wait_for("RELOADING")
            s.manager.wait_for("READY")
        finally:
            other.kill()
    check(s.session.err.until("going back to the options before the reload", 30) is not None, f"it printed {s.session.err.seen}")
    check(s.child() != child, "the session before goes on")
    have = len(s.frequencies())
    s.wait_for_windows(lambda hz: len(hz) > have + 1)
    s.config.write_text(good)
    s.session.signal(signal.SIGHUP)
    check(s.session.err.until("nothing has changed", 30) is not None, f"it printed {s.session.err.seen}")
    s.session.signal(signal.SIGTERM)
    # 1: a session could not begin
    check(s.session.wait() == 1, f"it printed {s.session.err.seen}")
    check(set(s.frequencies()) == {49}, f"windows of {s.frequencies()} Hz")


def test_reload_during_a_reload(t):
    """A reload during a reload waits for the same new session."""
    s = Service(t)
    s.manager.wait_for("READY")
    child = s.child()
    os.kill(child, signal.SIGSTOP)
    try:
        s.configure(1, 97)
        for _ in range(2):
            s.session.signal(signal.SIGHUP)
            s.manager.wait_for("RELOADING")
        check(s.session.err.until("nothing has changed", 30) is not None, f"it printed {s.session.err.seen}")
        early = s.manager.count("READY", 0.5)
    finally:
        os.kill(child, signal.SIGCONT)
    check(early == 0, "it was ready while the session before still went on")
    s.manager.wait_for("READY")
    check(s.child() != child, "it was ready before another session had begun")
    s.session.signal(signal.SIGTERM)
    # 1: sessions as short as these may miss something
    check(s.session.wait() in (0, 1), f"it printed {s.session.err.seen}")


def answers(host, port):
    """Whether something answers there within some seconds."""
    for _ in range(50):
        try:
            with urllib.request.urlopen(f"http://{host}:{port}/healthz", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            time.sleep(0.2)
    return False


def reload(s, *more):
    s.configure(1, 49, *more)
    s.session.signal(signal.SIGHUP)
    s.manager.wait_for("RELOADING")
    s.manager.wait_for("READY")


@thorough
def test_moved_metrics(t):
    """After a reload a new address with the same port is served at once, and one that is in use once it is free."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    s = Service(t)
    s.manager.wait_for("READY")
    reload(s, f"metrics 127.0.0.1:{port}")
    check(answers("127.0.0.1", port), f"nobody answers: {s.session.err.seen}")
    reload(s, f"metrics 0.0.0.0:{port}")
    check(answers("127.0.0.1", port), f"nobody answers after it moved: {s.session.err.seen}")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        reload(s, f"metrics 127.0.0.1:{port}")
        check(s.session.err.until("Address already in use", 30) is not None, f"it printed {s.session.err.seen}")
    reload(s, f"metrics 127.0.0.1:{port}")
    check(answers("127.0.0.1", port), f"nobody answers once it is free: {s.session.err.seen}")
    s.session.signal(signal.SIGTERM)
    # 1: sessions as short as these may miss something
    check(s.session.wait() in (0, 1), f"it printed {s.session.err.seen}")


def statuses(port, until):
    """What /readyz answers until the event is set, without repetitions."""
    seen = []
    while not until.is_set():
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
                seen.append(answer.status)
        except urllib.error.HTTPError as e:
            seen.append(e.code)
        except OSError:
            pass
        until.wait(0.01)
    return [status for i, status in enumerate(seen) if i == 0 or seen[i - 1] != status]


def test_not_ready_between(t):
    """While the session after a reload begins, the service is not ready."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    s = Service(t, "--metrics", f"127.0.0.1:{port}")
    s.manager.wait_for("READY")
    check(answers("127.0.0.1", port), f"nobody answers: {s.session.err.seen}")
    over, seen = threading.Event(), []
    watcher = threading.Thread(target=lambda: seen.extend(statuses(port, over)))
    time.sleep(1)
    watcher.start()
    time.sleep(1)
    reload(s, "max-overhead 50")
    time.sleep(3)
    over.set()
    watcher.join()
    check(seen[0] == 200 and 503 in seen and seen[-1] == 200, f"/readyz answered {seen}")
    s.session.signal(signal.SIGTERM)
    check(s.session.wait() in (0, 1), f"it printed {s.session.err.seen}")


@thorough
def test_new_credentials(t):
    """A changed file of headers is read again on SIGHUP, even if the configuration itself has not changed."""
    server, headers = Server(t), t.dir / "headers"
    headers.write_text("X-Scope-OrgID: old\n")
    s = Service(t, "--push", server.url(), "--push-headers", headers, "--push-queue", t.dir / "queue")
    s.manager.wait_for("READY")
    s.wait_for_windows(lambda hz: len(hz) >= 2)
    child = s.child()
    headers.write_text("X-Scope-OrgID: no header\nhere\n")
    s.session.signal(signal.SIGHUP)
    check(s.session.err.until("line 2 is not a header", 30) is not None, f"it printed {s.session.err.seen}")
    headers.write_text("X-Scope-OrgID: new\n")
    s.session.signal(signal.SIGHUP)
    deadline = time.monotonic() + 60 * SLOWNESS
    while (not server.requests or server.requests[-1].headers["x-scope-orgid"] != "new") and time.monotonic() < deadline:
        time.sleep(0.1)
    sent = [request.headers["x-scope-orgid"] for request in server.requests]
    check(sent == sorted(sent, reverse=True) and set(sent) == {"old", "new"}, f"requests of {sent}")
    check(s.child() != child, "the same session goes on")
    s.end()


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
    check("are still queued" in again.err.seen[-1], f"it printed {again.err.seen}")
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
