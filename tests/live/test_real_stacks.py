#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Complete stacks of real programs, stripped as Debian and npm ship them: web servers under load, and a converter with
a large document."""

import random
import shutil
import socket
import threading
import time
import urllib.request

from harness import ROOT, Skip, Target, check, run

# Share of all samples in threads of the target.
WHOLE = 0.98
# While the runtime moves a stack's frames (threadPaused, stackSqueeze), they cannot be read.
WHOLE_MUSL, GAPS_MUSL = 0.99, 0.001


def installed(name):
    path = shutil.which(name)
    if not path:
        raise Skip(f"{name} IS NOT INSTALLED: scripts/install-deps --test brings it")
    return path


def whole(t, least, pid=None, share=WHOLE):
    s = t.report().target(pid)["stacks"]
    check(s["samples"] >= least, f"only {s['samples']} samples: {s}")
    good = s["complete"] + s["elided"]
    check(good >= share * s["samples"], f"{good} of {s['samples']} samples are complete: {s}")
    check(s["haskell_complete"] >= 0.995 * s["haskell_samples"], f"{s}")
    return s


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Client(threading.Thread):
    """Requests a page again and again."""

    def __init__(self, url, answer):
        super().__init__(daemon=True)
        self.url, self.answer, self.stop, self.answers, self.failed = url, answer, False, 0, None

    def get(self):
        with urllib.request.urlopen(self.url, timeout=30) as answer:
            return answer.read()

    def run(self):
        try:
            while not self.stop:
                check(self.answer in self.get(), f"{self.url} has another page")
                self.answers += 1
        except Exception as e:  # for the test's own thread to report
            self.failed = e


def under_load(t, server, url, answer):
    """A session of some seconds in which two clients request that page."""
    t.started.append(server)
    threading.Thread(target=lambda: server.lines.all(120), daemon=True).start()
    clients = [Client(url, answer) for _ in range(2)]
    deadline = time.monotonic() + 60
    while True:
        try:
            clients[0].get()
            break
        except OSError:
            check(time.monotonic() < deadline, f"{url} has no answer")
            time.sleep(0.2)
    session = t.session("--pid", server.pid, "-d", "4", "-v", "-F", "999", "-f", "json,folded",
                        "-o", t.stem)
    session.wait_attached()
    for client in clients:
        client.start()
    check(session.wait() == 0, f"{session.err.seen}")
    for client in clients:
        client.stop = True
        client.join(40)
        check(not client.failed and client.answers > 5, f"{client.answers} answers, then {client.failed}")


def test_hledger_web(t):
    path = installed("hledger-web")
    journal = t.dir / "test.journal"
    journal.write_text("".join(f"2020-{m:02}-{d:02} shop\n  expenses:food  {d}.50\n  assets:cash\n\n"
                               for m in range(1, 13) for d in range(1, 29)))
    port = free_port()
    server = Target([path, "-f", journal, "--serve", "--port", str(port)], ready=None)
    under_load(t, server, f"http://127.0.0.1:{port}/journal", b"expenses:food")
    whole(t, 1000, server.pid)


def test_elm(t):
    """A static program whose C library, musl as in Alpine, has no unwind information."""
    elm = ROOT / "build" / "npm" / "node_modules" / "@elm_binaries" / "linux_x64" / "elm"
    if not elm.exists():
        raise Skip("elm IS NOT THERE: scripts/install-deps --test brings it")
    site = t.dir / "site"
    site.mkdir()
    for i in range(100):
        (site / f"page{i}.txt").write_text("hello\n" * 100)
    port = free_port()
    server = Target(["env", "-C", site, elm, "reactor", "--port", str(port)], ready=None)
    under_load(t, server, f"http://127.0.0.1:{port}/", b"page99.txt")
    s = whole(t, 1000, server.pid, WHOLE_MUSL)
    places = [f["name"] for f in t.report().target(server.pid)["functions"]
              if f["kind"] == "haskell" and f["name"].startswith("[elm]")]
    check(not places, f"of no package, and not the runtime's: {places}")
    check(s["gap"] <= GAPS_MUSL * s["samples"], f"C frames without rows: {s}")


def document(path):
    """Write some megabytes of text that keeps a Markdown reader busy."""
    chance = random.Random(1)
    words = "lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor".split()
    with open(path, "w") as f:
        for i in range(540):
            extras = ["", "", "*x*", f" [l](http://e.org/{i})", " `c`", f"[^{i}]"]
            f.write(f"# Heading {i}\n\n")
            for _ in range(3):
                f.write(" ".join(chance.choice(words) + chance.choice(extras) for _ in range(40)) + "\n\n")
            f.write("| a | b |\n|---|---|\n| 1 | 2 |\n\n- one\n    - two\n\n"
                    f"```haskell\nmain = print {i}\n```\n\n[^{i}]: a note\n\n")


def test_pandoc(t):
    path = installed("pandoc")
    source = t.dir / "large.md"
    document(source)
    command = [path, "-f", "markdown", "-t", "html", "-o", t.dir / "large.html", source]
    # it runs for some seconds: in the first 50 ms its libraries are mapped, but their unwind rows are not ready yet
    session = t.session("-v", "-F", "999", "-f", "json,folded", "-o", t.stem, "--", *command)
    check(session.wait(120) == 0, f"{session.err.seen}")
    check((t.dir / "large.html").stat().st_size > 100000, "pandoc made nothing")
    whole(t, 1000)


if __name__ == "__main__":
    run(globals())
