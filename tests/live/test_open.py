#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""--open: the page is served to whoever knows its address, and to nobody else, until Ctrl-C."""

import http.client
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from harness import ROOT, SAFESCOPED, Failure, Skip, check, run
from test_export import must_have

NOBODY = pwd.getpwnam("nobody")
CAPTURE = ROOT / "tests" / "data" / "capture" / "calls"
ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)(/[0-9a-f]{32}/)\n")


class Opened:
    """A replay that serves its page."""

    def __init__(self, t, *options, prefix=(), env=None):
        # without a display no browser is opened
        environ = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY") and not k.startswith("SUDO_")}
        self.process = subprocess.Popen([*prefix, SAFESCOPED, "--replay", CAPTURE, "--open", "-o", t.dir / "p", *options],
                                        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
                                        env={**environ, **(env or {})})
        self.said = []
        t.started.append(self)
        for line in self.process.stderr:
            self.said.append(line)
            found = ADDRESS.fullmatch(line)
            if found:
                self.port, self.path = int(found[1]), found[2]
                self.said += [self.process.stderr.readline(), self.process.stderr.readline()]
                return
        raise Failure(f"it printed no address: {self.said}")

    def ask(self, path, method="GET"):
        """(status, headers, body)"""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request(method, path)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, dict(answer.getheaders()), body

    def server(self):
        """The /proc directory of the process that speaks HTTP."""
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                text = stat.read_text()
            except OSError:
                continue
            if "(safescoped:page" in text and int(text.rpartition(")")[2].split()[1]) == self.process.pid:
                return stat.parent
        raise Failure("there is no process that serves the page")

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def listens(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def test_served(t):
    opened = Opened(t, "-f", "html")
    status, headers, body = opened.ask(opened.path)
    check(status == 200 and body == (t.dir / "p.html").read_bytes(), f"{status}, {len(body)} bytes")
    check(headers["Content-Type"] == "text/html; charset=utf-8" and headers["Cache-Control"] == "no-store", f"{headers}")
    status, headers, body = opened.ask(opened.path, "HEAD")
    check(status == 200 and not body and int(headers["Content-Length"]) == (t.dir / "p.html").stat().st_size, f"HEAD: {headers}")
    wrong = opened.path.translate(str.maketrans("0123456789abcdef", "123456789abcdef0"))
    for path in ("/", wrong, opened.path[:-1], f"/{opened.path}", f"{opened.path}x", f"{opened.path}?x=1#y"[:5]):
        check(opened.ask(path)[0] == 404, f"{path} is there")
    check(opened.ask(opened.path, "POST")[0] == 405, "it takes POST")
    check("ssh -N -L" in opened.said[-2] and f"127.0.0.1:{opened.port}" in opened.said[-2], f"said: {opened.said}")
    opened.process.send_signal(signal.SIGINT)
    check(opened.process.wait(20) == 0, f"it ended with {opened.process.returncode}")
    # the serving process was killed; the kernel decides when it is gone
    deadline = time.monotonic() + 20
    while listens(opened.port) and time.monotonic() < deadline:
        time.sleep(0.05)
    check(not listens(opened.port), "somebody listens still")


def test_only_here(t):
    """It listens on the loopback address only, and each session has its own path."""
    first, second = Opened(t, "-f", "html"), Opened(t, "-f", "html", "-o", t.dir / "q")
    check(first.path != second.path, "the same path twice")
    listening = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    for opened in (first, second):
        at = [f[1] for f in listening if f[3] == "0A" and int(f[1].split(":")[1], 16) == opened.port]
        check(at == [f"0100007F:{opened.port:04X}"], f"it listens at {at}")
    check(first.ask(second.path)[0] == 404, "one serves the other's page")


def test_without_rights(t):
    opened = Opened(t, "-f", "html")
    # the port is open before the process starts; once it answers it has dropped its privileges
    check(opened.ask(opened.path)[0] == 200, "the page is not there")
    server = opened.server()
    status = dict(line.split(":\t", 1) for line in (server / "status").read_text().splitlines() if ":\t" in line)
    check(int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0, f"capabilities {status['CapEff']}")
    check(status["Seccomp"] == "2" and status["NoNewPrivs"] == "1", "no system call filter")
    if os.geteuid() == 0:
        check("0" not in status["Uid"].split(), f"its user: {status['Uid']}")
    # slow or silent clients keep nobody else from the page
    idle = [socket.create_connection(("127.0.0.1", opened.port)) for _ in range(8)]
    check(opened.ask(opened.path)[0] == 200, "idle connections keep others out")
    for s in idle:
        s.close()
    # without that process nothing is served: the session reports it and ends
    os.kill(int(server.name), signal.SIGKILL)
    check(opened.process.wait(20) not in (0, None), "its server was killed, and it goes on")


def test_text_beside_the_page(t):
    """Without -f both the text report and the page are written."""
    done = Opened(t)
    time.sleep(0.1)
    check((t.dir / "p.html").exists(), "no page was written")
    done.process.send_signal(signal.SIGTERM)
    check(done.process.wait(20) == 0, f"it ended with {done.process.returncode}")


OPENER = "/usr/bin/xdg-open"


def opened_by(t, **env):
    """The user, groups, home, first bytes and arguments that the browser starter got; None if it was not called."""
    must_have(OPENER, "xdg-utils")
    share, starter = t.dir / "share", t.dir / "starter"
    shutil.rmtree(share, ignore_errors=True)
    share.mkdir()
    os.chown(share, NOBODY.pw_uid, NOBODY.pw_gid)
    starter.write_text("#!/bin/sh\n{ id -u; id -G; echo $HOME; head -c 15 \"$1\"; echo; echo \"$@\"; } >/mnt/new\nmv /mnt/new /mnt/seen\n")
    starter.chmod(0o755)
    # a file that the user can read: the folders above may be closed to others
    enter = f'mount --bind "{starter}" {OPENER} && mount --bind "{share}" /mnt && exec "$0" "$@"'
    opened = Opened(t, "-f", "html", "-o", "/mnt/p.html", env=env,
                    prefix=("unshare", "--mount", "--propagation", "private", "sh", "-c", enter))
    deadline = time.monotonic() + (20 if len(env) == 3 else 1)
    while not (share / "seen").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    opened.process.send_signal(signal.SIGINT)
    check(opened.process.wait(20) == 0, f"it ended with {opened.process.returncode}")
    return (share / "seen").read_text().splitlines() if (share / "seen").exists() else None


def test_browser(t):
    """With a display, the user who ran sudo gets a browser, run as that user; root gets none."""
    if os.geteuid() != 0:
        raise Skip("needs root")
    sudo = {"SUDO_UID": str(NOBODY.pw_uid), "SUDO_GID": str(NOBODY.pw_gid)}
    for display in ({"DISPLAY": ":7"}, {"WAYLAND_DISPLAY": "wayland-7"}):
        seen = opened_by(t, **sudo, **display)
        check(seen, f"no browser was opened with {display}")
        check(seen[0] == str(NOBODY.pw_uid) and "0" not in seen[1].split() and seen[2] == NOBODY.pw_dir, f"it runs as {seen}")
        check(seen[3] == "<!DOCTYPE html>" and seen[4:] == ["/mnt/p.html"], f"it opens {seen[3:]}")
    check(opened_by(t) is None, "a browser was opened without a display")
    check(opened_by(t, **sudo) is None, "a browser was opened without a display")
    check(opened_by(t, DISPLAY=":7") is None, "root's browser was opened")


def test_wrong_usage(t):
    for options in (("--replay", CAPTURE, "--open", "-f", "html", "-o", "-"), ("--open", "--list"), ("--open", "--doctor"),
                    ("--replay", CAPTURE, "--open", "--window", "1s", "-f", "html", "-o", t.dir)):
        done = subprocess.run([SAFESCOPED, *options], capture_output=True, text=True, timeout=60)
        check(done.returncode == 64 and "--open: " in done.stderr, f"{options}: {done.returncode}, {done.stderr}")


if __name__ == "__main__":
    run(globals())
