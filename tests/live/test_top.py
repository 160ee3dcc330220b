#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""--top on a pseudo-terminal, displayed by a terminal emulator: a replay, a live session, keys, and that the terminal
is restored however it ends."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

from harness import ROOT, SAFESCOPED, SLOWNESS, Skip, cases, check, check_near, run

sys.path.append("/usr/lib/python3/dist-packages")
try:
    import pyte
except ImportError:
    pyte = None

CAPTURE = ROOT / "tests" / "data" / "capture" / "calls"
ENTER, LEAVE, SHOW_CURSOR = b"\033[?1049h", b"\033[?1049l", b"\033[?25h"


class Terminal:
    """safescoped in its own terminal: `screen` is what a person sees."""

    def __init__(self, *args, columns=120, rows=40, cwd=None):
        if not pyte:
            check(os.environ.get("CI") != "true", "python3-pyte is not installed")
            raise Skip("python3-pyte is not installed; run: scripts/install-deps --test")
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.all = b""
        # the test also holds the terminal open: it must outlive the program
        self.master, self.slave = pty.openpty()
        self.resize(columns, rows, tell=False)
        self.before = termios.tcgetattr(self.slave)
        self.process = subprocess.Popen([SAFESCOPED, "--top", *map(str, args)], stdin=self.slave, stdout=self.slave,
                                        stderr=self.slave, start_new_session=True, cwd=cwd,
                                        env={**os.environ, "TERM": "xterm-256color", "NO_COLOR": "1"},
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    def resize(self, columns, rows, tell=True):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        if tell:
            self.screen.resize(rows, columns)

    def read(self, seconds=0.2):
        if select.select([self.master], [], [], seconds)[0]:
            data = os.read(self.master, 65536)
            self.all += data
            self.stream.feed(data)

    @property
    def text(self):
        return "\n".join(line.rstrip() for line in self.screen.display)

    def wait_until(self, what, is_there, seconds=60):
        end = time.monotonic() + seconds * SLOWNESS
        while not is_there():
            check(time.monotonic() < end and self.process.poll() is None, f"no {what} on the screen:\n{self.text}")
            self.read()

    def wait_for(self, what, pattern, seconds=60):
        self.wait_until(what, lambda: re.search(pattern, self.text), seconds)
        return re.search(pattern, self.text)

    def press(self, keys):
        os.write(self.master, keys if isinstance(keys, bytes) else keys.encode())

    def end(self, seconds=60):
        """Read until it ends; return the exit code."""
        end = time.monotonic() + seconds * SLOWNESS
        while self.process.poll() is None:
            check(time.monotonic() < end, f"it goes on:\n{self.text}")
            self.read()
        self.read(0)
        return self.process.returncode

    def check_given_back(self):
        check(self.all.count(ENTER) == self.all.count(LEAVE) > 0, "the other screen was not left")
        check(self.all.rfind(SHOW_CURSOR) > self.all.rfind(ENTER), "the cursor is still hidden")
        now = termios.tcgetattr(self.slave)
        check(now == self.before, f"the terminal's modes were {self.before}, and are {now}")

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
        os.close(self.slave)


def terminal(t, *args, **kwargs):
    made = Terminal(*args, **kwargs)
    t.started.append(made)
    return made


def windows(t):
    """The reports of the capture in windows of one second."""
    folder = t.dir / "windows"
    folder.mkdir()
    subprocess.run([SAFESCOPED, "--replay", CAPTURE, "--window", "1", "-q", "-f", "json", "-o", folder], check=True, timeout=60)
    return [json.loads(p.read_text()) for p in sorted(folder.iterdir())]


def check_frame(term, report):
    """The screen has the window's figures."""
    target = report["targets"][0]
    length = report["session"]["duration_ns"]
    line = next(l for l in term.text.splitlines() if re.match(rf"> +{target['pid']} ", l))
    cpu, calls, gcs, paused = (float(x) for x in re.match(r"> +\d+ .{16} +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)", line).groups())
    threads = [l for l in target["lanes"] if l["kind"] == "thread"]
    check_near("the CPU's share in hundredths of a percent", cpu * 100, sum(l["cpu_ns"] for l in threads) / length * 1e4, 10)
    check_near("calls a second", calls, sum(c["calls"] for c in target["safe_calls"]) / length * 1e9, 1)
    check_near("collections a second", gcs, (target["gc"]["count"] or 0) / length * 1e9, 1)
    check_near("the share of pauses in hundredths of a percent", paused * 100, (target["gc"]["pause_ns"] or 0) / length * 1e4, 10)
    functions = [f for f in target["functions"] if f["kind"] not in ("state", "mark") and f["self_ns"]]
    heavy = max(functions, key=lambda f: f["self_ns"])["name"]
    shown = re.search(r"top functions.*\n *[\d.]+ +[\d.]+ +(\S+)", term.text)
    check(shown and shown[1] == heavy, f"first is {shown and shown[1]}, should be {heavy}")


def test_replay(t):
    """A replay shows second by second what the reports of windows have."""
    want = windows(t)
    term = terminal(t, "--replay", CAPTURE)
    for i, report in enumerate(want):
        check_window = report["session"]["start_unix_ns"] + report["session"]["duration_ns"]
        clock = time.strftime("%H:%M:%S", time.localtime(check_window // 10**9))
        term.wait_for(f"window {i}", rf"safescoped {clock}: 1 process")
        term.read(0.3)
        check_frame(term, report)
        if i == 2 or i + 1 == len(want):
            break
        before = term.text
        term.press(">")
        term.wait_until("change", lambda was=before: term.text != was)
    term.press("q")
    check(term.end() == 0, f"it ended with {term.process.returncode}")
    term.check_given_back()


def test_keys(t):
    folder = t.dir / "reports"
    folder.mkdir()
    term = terminal(t, "--replay", CAPTURE, "-f", "json", "-o", folder)
    term.wait_for("process", r"> +\d+ ")
    for key, by in (("s", "calls"), ("g", "GC"), ("a", "allocation"), ("n", "name"), ("c", "CPU")):
        term.press(key)
        term.wait_for(f"order by {by}", rf"\(by {by}\)")
    term.press("h")
    term.wait_for("help", r"capitals run")
    term.press("h")
    term.wait_for("functions", r"top functions")
    term.press(" ")
    term.wait_for("mark", r"FROZEN")
    term.read(0.3)
    frozen = term.text
    end = time.monotonic() + 2.5
    while time.monotonic() < end:
        term.read()
    check(term.text == frozen, f"frozen, it shows something else:\n{frozen}\n{term.text}")
    term.press("w>")
    term.wait_for("message", r"a report was written")
    reports = list(folder.iterdir())
    check(len(reports) == 1, f"reports: {reports}")
    report = json.loads(reports[0].read_text())
    check(report["safescope"]["schema"] == 1 and len(report["targets"]) == 1, "no report of the window")
    term.press(" ")
    term.resize(50, 12)
    end = time.monotonic() + 3
    while time.monotonic() < end:
        term.read()
    check(term.screen.display[11].startswith(" q quit") or "a report was written" in term.screen.display[11],
          f"after the terminal became smaller:\n{term.text}")
    check(term.text.splitlines()[0].startswith("safescoped "), f"after the terminal became smaller:\n{term.text}")
    term.press("\003")
    check(term.end() == 0, f"it ended with {term.process.returncode}")
    term.check_given_back()


def is_left(group):
    """True if a process of this process group exists."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def children(pid):
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@cases("key", "ctrl-c", "SIGINT", "SIGTERM", "SIGHUP", "SIGSEGV", "SIGABRT", "child", "stop")
def test_given_back(t, how):
    term = terminal(t, "--replay", CAPTURE)
    term.wait_for("process", r"> +\d+ ")
    pid = term.process.pid
    child = children(pid)
    check(child, "it has no child")
    if how == "key":
        term.press("q")
    elif how == "ctrl-c":
        term.press("\003")
    elif how == "child":
        os.kill(child[0], signal.SIGKILL)
    elif how == "stop":
        # Ctrl-Z, then fg: the shell has the terminal in between
        term.press("\032")
        end = time.monotonic() + 20
        while "T (stopped)" not in Path(f"/proc/{pid}/status").read_text():
            check(time.monotonic() < end, "Ctrl-Z does not stop it")
            term.read()
        term.read(0)
        term.check_given_back()
        os.kill(pid, signal.SIGCONT)
        entered = term.all.count(ENTER)
        while term.all.count(ENTER) == entered:
            check(time.monotonic() < end, "it does not go on")
            term.read()
        term.press("q")
    else:
        os.kill(pid, getattr(signal, how))
    if how == "child":
        # the last screen stays until a key is pressed
        term.wait_for("end", r"ENDED")
        term.press("q")
    code = term.end()
    term.check_given_back()
    want = {"key": 0, "ctrl-c": 0, "stop": 0, "SIGINT": 0, "SIGTERM": 0, "SIGHUP": 0, "child": 2,
            "SIGSEGV": -signal.SIGSEGV, "SIGABRT": -signal.SIGABRT}[how]
    check(code == want, f"it ended with {code}, should be {want}")
    end = time.monotonic() + 20
    while any(Path(f"/proc/{p}").exists() for p in child):
        check(time.monotonic() < end, "its child is still there")
        time.sleep(0.1)


def test_no_terminal(t):
    done = subprocess.run([SAFESCOPED, "--top", "--replay", CAPTURE], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60)
    check(done.returncode == 2 and done.stderr == "safescoped: --top: needs a terminal\n" and not done.stdout,
          f"{done.returncode}: {done.stdout}{done.stderr}")
    for args in (("--", "true"), ("-o", "-"), ("--list",), ("-e", "x")):
        done = subprocess.run([SAFESCOPED, "--top", *args], capture_output=True, text=True, timeout=60)
        check(done.returncode == 64 and len(done.stderr.splitlines()) == 1, f"{args}: {done.returncode}: {done.stderr}")
    check(t.dir.exists(), "the test's folder is gone")


def test_live(t):
    """Two programs: one is first by CPU, the other by calls; one has ended when the session does."""
    burner = t.target("Split", 12)
    caller = t.target("Calls", 1, "safe_sleep_20ms=400")
    term = terminal(t, "--pid", f"{burner.pid},{caller.pid}", "-o", t.dir)
    term.wait_for("screen", r"safescoped")
    end = time.monotonic() + 30
    while "q quit" not in term.text:
        check(time.monotonic() < end, f"no screen:\n{term.text}")
        term.read()
    burner.go()
    caller.go()
    term.wait_for("function", r"Split[AB]\.")
    first = term.wait_for("first by CPU", r"(?m)^.  *(\d+) (Split) ")
    check(int(first[1]) == burner.pid, f"first by CPU:\n{term.text}")
    term.press("s")
    term.wait_for("first by calls", rf"\(by calls\).*\n. +{caller.pid} Calls")
    rate = term.wait_for("calls", rf"{caller.pid} Calls .{{11}} +[\d.]+ +(\d\d) ")
    check(10 <= int(rate[1]) <= 50, f"{rate[1]} calls a second, each of 20 ms")
    term.press("\033[A\033[A")
    term.wait_for("its call", r"safe_sleep_20ms")
    term.press("q")
    check(term.end() in (0, 1), f"it ended with {term.process.returncode}")
    term.check_given_back()
    for target in (burner, caller):
        target.result()


def test_ctrl_c_while_it_ends(t):
    """A session that does not end is killed at once by one more Ctrl-C, not only after 15 s, and nothing is left of it."""
    target = t.target("Split", 5)
    term = terminal(t, "--pid", target.pid, "-o", t.dir)
    term.wait_for("screen", r"q quit")
    child = children(term.process.pid)
    for pid in child:
        os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    term.press("\003")
    time.sleep(1)
    check(term.process.poll() is None, "it does not wait for its session")
    term.press("\003")
    term.end()
    check(time.monotonic() - began < 12, "it waited for its session")
    term.check_given_back()
    end = time.monotonic() + 20
    while is_left(term.process.pid):
        check(time.monotonic() < end, "a process of it is still there")
        time.sleep(0.1)


if __name__ == "__main__":
    run(globals())
