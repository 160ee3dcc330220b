# SPDX-License-Identifier: GPL-2.0-or-later
"""A replay of a capture in windows that is pushed, and also written by -f otlp."""

import gzip
import os
import subprocess
import time

from harness import ROOT, SAFESCOPED, check

CAPTURE = ROOT / "tests" / "data" / "capture" / "calls"


class Pushed:
    """A replay in windows that is pushed."""

    def __init__(self, t, *urls, options=(), env=None, name="first", wait=True):
        self.files = t.dir / name
        self.files.mkdir()
        self.queue = t.dir / "queue"
        pushes = [word for url in urls for word in (("--push", url) if isinstance(url, str) else ("--push", *url))]
        self.command = [SAFESCOPED, "--replay", CAPTURE, "--window", "0.1", "-f", "otlp", "-o", self.files, "-v",
                        *pushes, "--push-queue", self.queue, *options]
        self.process = subprocess.Popen([str(c) for c in self.command], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, **(env or {})})
        t.finally_do(self.kill)
        self.said = ""
        if wait:
            self.wait()

    def wait_until(self, true):
        deadline = time.monotonic() + 60
        while not true() and time.monotonic() < deadline:
            time.sleep(0.1)

    def wait_until_queued(self):
        self.wait_until(self.queued)

    def wait(self):
        self.said += self.process.communicate(timeout=120)[1]
        self.code = self.process.returncode

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def windows(self):
        """The files of the windows in which something happened, in order of time: the others are not pushed."""
        files = [p.read_bytes() for p in sorted(self.files.iterdir())]
        # a request that is not empty begins with a process: field 1
        return [body for body in files if gzip.decompress(body).startswith(b"\x0a")]

    def queued(self):
        """The requests in the queue, in order of time; each file begins with a line of its own, which is left out."""
        return [p.read_bytes().partition(b"\n")[2] for p in sorted(self.queue.rglob("*.push"))]

    def check_all(self, server, code=0):
        """Each window arrived once, in order, and nothing is left."""
        self.check_taken(server, self.windows(), code)
        check(not self.queued(), "something is still queued")

    def check_taken(self, server, wanted, code=0):
        check(self.code == code, f"it ended with {self.code}, should be {code}: {self.said}")
        check(len(wanted) > 3, f"{len(wanted)} windows")
        got = server.taken()
        check(got == wanted, f"{len(got)} were accepted, in order {[wanted.index(b) if b in wanted else None for b in got]}"
              f" of {len(wanted)}: {self.said}")
