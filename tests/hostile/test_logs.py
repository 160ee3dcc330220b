#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""An eventlog is joined with the program that has it open. The contents of another user's file must not get into the
report that way, however the attacker got a descriptor of it."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from hostile import NOBODY, OUT, as_nobody, build, haskell, start
from harness import SAFESCOPED, SLOWNESS, Failure, cases, check, program, run


def victim_log():
    """A log that one of root's programs has written, readable by root only."""
    path = OUT / "victim.eventlog"
    if not path.exists():
        subprocess.run([program("Logged", "thr_l"), "20", "+RTS", "-l", f"-ol{path}", "-RTS"],
                       stdout=subprocess.DEVNULL, check=True, timeout=120)
        path.chmod(0o600)
    return path


def logging_program():
    """A program that can write an eventlog, in a folder where anyone can run it."""
    path = OUT / "Calls.logging"
    if not path.exists():
        shutil.copy(program("Calls", "thr_l"), path)
    return path


def session_on(t, target):
    session = t.session("--pid", target.pid, "-v", "--max-overhead", "1000", "--eventlog", "auto",
                        "-f", "json", "-o", f"{t.stem}.json")
    session.wait_attached()
    target.go()
    target.wait()
    code = session.wait()
    check(code == 0, f"safescoped ended with {code}: {session.err.seen}")
    return t.report().target(target.pid), session.err.seen


# How the attacker gets the descriptor: by opening the path, as anyone can; or from a service manager, for a log that
# its programs may write to but not read.
@cases("path suffix", "write suffix", "path content", "write content")
def test_descriptor_of_anothers_log(t, case):
    how, name = case.split()
    log = victim_log()
    if name == "content":
        log = OUT / "victim.log"
        shutil.copy(victim_log(), log)
        log.chmod(0o600)
    hold = build("hold", sources=["hold.c"])
    attack = [haskell("Calls"), 1, "safe_sleep_1ms=200"]
    if how == "path":
        attack = as_nobody([hold, how, log, *attack])
    else:
        # opened by root, who then becomes the ordinary user
        attack = [hold, how, log, shutil.which("setpriv"), *as_nobody(attack)[1:]]
    attacker = start(t, attack)
    listed = subprocess.run([SAFESCOPED, "--list", "-f", "json"], capture_output=True, text=True, timeout=60).stdout
    check(str(log) not in listed, "--list reports another user's log as the attacker's")
    target, said = session_on(t, attacker)
    check(target["eventlog"] is None, f"the log is joined: {target['eventlog']}")
    check(not any(str(log) in line for line in said), f"it was opened: {said}")
    check(any("eventlog" in line for line in target["missing"]), f"not reported: {target['missing']}")


@cases("root", "user")
def test_own_log_is_joined(t, who):
    log = OUT / f"own-{who}.eventlog"
    command = [logging_program(), 1, "safe_sleep_1ms=200", "+RTS", "-l", f"-ol{log}", "-RTS"]
    if who == "user":
        log.touch()
        os.chown(log, NOBODY, NOBODY)
        command = as_nobody(command)
    target, said = session_on(t, start(t, command))
    check(target["eventlog"] is not None and target["eventlog"]["path"] == str(log),
          f"its own log is not joined: {target['missing']} {said}")


def reader_of(session):
    """The pid of the process that reads a log for the session, as soon as there is one."""
    children = Path(f"/proc/{session.process.pid}/task/{session.process.pid}/children")
    deadline = time.monotonic() + 30 * SLOWNESS
    while time.monotonic() < deadline:
        try:
            for pid in children.read_text().split():
                if Path(f"/proc/{pid}/comm").read_text().strip() == "safescoped:log":
                    return int(pid)
        except OSError:
            pass
        time.sleep(0.001)
    raise Failure(f"no process reads the log: {session.err.seen}")


def gives_up_its_rights(pid):
    """Whether the process drops its privileges, which it does before it reads the log; its name is visible slightly
    earlier."""
    deadline = time.monotonic() + 5 * SLOWNESS
    while time.monotonic() < deadline:
        status = Path(f"/proc/{pid}/status").read_text()
        if "\nCapPrm:\t0000000000000000\n" in status and "\nSeccomp:\t2\n" in status:
            return True
        time.sleep(0.01)
    return False


# After what the program wrote the file has a hole, which costs its owner nothing but would take hours to read. It is
# not part of the log.
def test_log_with_a_hole(t):
    log = OUT / "hole.eventlog"
    log.touch()
    os.chown(log, NOBODY, NOBODY)
    target = start(t, as_nobody([logging_program(), 1, "safe_sleep_1ms=200", "+RTS", "-l", f"-ol{log}", "-RTS"]))
    session = t.session("--pid", target.pid, "-v", "--max-overhead", "1000", "-f", "json", "-o", f"{t.stem}.json")
    session.wait_attached()
    os.truncate(log, 1 << 40)
    target.go()
    target.wait()
    began = time.monotonic()
    code = session.wait()
    took = time.monotonic() - began
    check(took < 30 * SLOWNESS, f"the session's end took {took:.0f} s")
    # 1: the file contains more than a log
    check(code in (0, 1), f"safescoped ended with {code}: {session.err.seen}")
    report = t.report().target(target.pid)
    check(report["eventlog"] and report["eventlog"]["path"] == str(log), f"it is not joined: {report['missing']}")
    check(report["eventlog"]["damaged_bytes"] > 1 << 39, f"the hole is not reported: {report['eventlog']}")
    calls = t.report().call("safe_sleep_1ms", target.pid)
    check(calls["calls"] == 200, f"calls are missing: {calls}")


# A reader process that crashes must not affect the rest: the session goes on, and the process is reported as completely
# as without a log.
def test_reader_dies(t):
    log = OUT / "dies.eventlog"
    log.touch()
    os.chown(log, NOBODY, NOBODY)
    # long enough to catch its reader
    target = start(t, as_nobody([logging_program(), 1, "safe_sleep_1ms=200", "safe_spin_20us=100000", "+RTS", "-l", f"-ol{log}", "-RTS"]))
    session = t.session("--pid", target.pid, "-v", "--max-overhead", "1000", "-f", "json", "-o", f"{t.stem}.json")
    session.wait_attached()
    target.go()
    target.wait()
    reader = reader_of(session)
    check(gives_up_its_rights(reader), f"it has rights: {Path(f'/proc/{reader}/status').read_text()}")
    os.kill(reader, signal.SIGKILL)
    code = session.wait()
    check(code in (0, 1), f"safescoped ended with {code}: {session.err.seen}")
    report = t.report().target(target.pid)
    check(any("eventlog" in line and "process that read it failed" in line for line in report["missing"]), f"not reported: {report['missing']}")
    check(report["eventlog"] is None, f"it is joined: {report['eventlog']}")
    calls = t.report().call("safe_sleep_1ms", target.pid)
    check(calls["calls"] == 200, f"calls are missing: {calls}")


if __name__ == "__main__":
    run(globals())
