#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Reloading the service's configuration."""

import os
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

from bad_server import Server
from harness import ROOT, SLOWNESS, check, run, thorough
from service import Service, reload
from test_windows import follow_each_other, windows


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


if __name__ == "__main__":
    run(globals())
