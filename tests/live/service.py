# SPDX-License-Identifier: GPL-2.0-or-later
"""A service under test, and the service manager that it reports to."""

import signal
import socket
import time
from pathlib import Path

from harness import SLOWNESS, check
from test_windows import windows


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


def reload(s, *more):
    s.configure(1, 49, *more)
    s.session.signal(signal.SIGHUP)
    s.manager.wait_for("RELOADING")
    s.manager.wait_for("READY")
