#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Logs from FIFOs and sockets whose other end does nothing: safescoped waits for them, but no longer than requested."""

import fcntl
import os
import signal
import socket
import struct
import subprocess
import termios
import threading
import time

from hostile import OUT
from harness import Report, cases, check, program, run

PATIENCE = 20  # seconds: only that it ends at all is tested


def written_log(t):
    """A log written by a Haskell program."""
    log = t.dir / "log.eventlog"
    subprocess.run([program("Logged", "thr_l"), "20", "+RTS", "-l", f"-ol{log}", "-RTS"], input=b"go\n",
                   stdout=subprocess.DEVNULL, check=True, timeout=120)
    return log.read_bytes()


def fifo(t):
    path = t.dir / "fifo"
    os.mkfifo(path)
    return path


def full_socket(t):
    """The path of a server's socket that accepts no connection, with its queue of waiting clients full."""
    path = OUT / "socket"
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen(0)
    waiting = []
    while len(waiting) < 10:
        client = socket.socket(socket.AF_UNIX)
        client.setblocking(False)
        try:
            client.connect(str(path))
        except BlockingIOError:
            break
        waiting.append(client)
    t.finally_do(lambda: [x.close() for x in (server, client, *waiting)] and path.unlink())
    return path


def catches(pid):
    """Whether the process has set up its signals: they are blocked, and read from a descriptor."""
    with open(f"/proc/{pid}/status") as file:
        blocked = next(int(line.split()[1], 16) for line in file if line.startswith("SigBlk"))
    return blocked >> (signal.SIGTERM - 1) & 1


def unread(pipe):
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))[0]


def wait_until(what, condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        check(time.monotonic() < deadline, f"not within {PATIENCE} s: {what}")
        time.sleep(0.02)


@cases("fifo SIGTERM", "fifo SIGINT", "fifo duration", "socket SIGTERM", "socket duration")
def test_nobody_there(t, case):
    kind, how = case.split()
    path = fifo(t) if kind == "fifo" else full_socket(t)
    session = t.session("-e", path, *(("-d", "0.5") if how == "duration" else ()), "-f", "json", "-o", f"{t.stem}.json")
    if how != "duration":
        wait_until("it waits for the log", lambda: catches(session.pid))
        time.sleep(0.3)
        session.signal(getattr(signal, how))
    code = session.wait(PATIENCE)
    lines = session.complaint()
    check(code == 2 and len(lines) == 1, f"ended with {code}: {session.err.seen}")
    check(not list(t.dir.glob("p*")), "an empty report was written")


def test_writer_comes_late(t):
    raw, path = written_log(t), fifo(t)
    session = t.session("-e", path, "-f", "json", "-o", f"{t.stem}.json")
    wait_until("it waits for the log", lambda: catches(session.pid))
    time.sleep(0.5)

    def write():
        with open(path, "wb", buffering=0) as out:
            for at in range(0, len(raw), 4096):
                out.write(raw[at:at + 4096])
    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    code = session.wait(PATIENCE)
    writer.join(PATIENCE)
    check(code == 0, f"ended with {code}: {session.err.seen}")
    whole = t.session("-e", t.dir / "log.eventlog", "-f", "json", "-o", f"{t.stem}2.json")
    check(whole.wait(PATIENCE) == 0, f"{whole.err.seen}")
    got, want = (Report(f"{t.stem}{x}.json").json["targets"][0]["eventlog"]["events"] for x in ("", "2"))
    check(got == want, f"{got} events, the file has {want}")


@cases("SIGINT", "duration")
def test_writer_never_ends(t, how):
    """If the writer never closes the FIFO, what arrived until the end is in the report."""
    raw, path = written_log(t), fifo(t)
    session = t.session("-e", path, *(("-d", "5") if how == "duration" else ()), "-f", "json", "-o", f"{t.stem}.json")
    out = os.open(path, os.O_WRONLY)
    t.finally_do(lambda: os.close(out))
    writer = threading.Thread(target=lambda: os.write(out, raw), daemon=True)
    writer.start()
    if how == "SIGINT":
        wait_until("it is read", lambda: not writer.is_alive() and unread(out) == 0)
        session.signal(signal.SIGINT)
    code = session.wait(PATIENCE)
    check(code in (0, 1), f"ended with {code}: {session.err.seen}")
    events = t.report().json["targets"][0]["eventlog"]["events"]
    check(events > 0, "nothing that arrived is shown")


if __name__ == "__main__":
    run(globals(), kernel=False)
