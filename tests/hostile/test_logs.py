#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""An eventlog is joined with the program that has it open. What another user's file holds must not
come into the report that way, however the attacker has come by a descriptor of it."""

import os
import shutil
import subprocess

from hostile import NOBODY, OUT, as_nobody, build, haskell, start
from harness import SAFESCOPED, cases, check, program, run


def victim_log():
    """What a program of root's has written, for root alone."""
    path = OUT / "victim.eventlog"
    if not path.exists():
        subprocess.run([program("Logged", "thr_l"), "20", "+RTS", "-l", f"-ol{path}", "-RTS"],
                       stdout=subprocess.DEVNULL, check=True, timeout=120)
        path.chmod(0o600)
    return path


def logging_program():
    """A program that can log, where anyone can run it."""
    path = OUT / "Calls.logging"
    if not path.exists():
        shutil.copy(program("Calls", "thr_l"), path)
    return path


def session_on(t, target):
    session = t.session("--pid", target.pid, "-v", "--max-overhead", "1000", "-f", "json", "-o", f"{t.stem}.json")
    session.wait_attached()
    target.go()
    target.wait()
    code = session.wait()
    check(code == 0, f"safescoped ended with {code}: {session.err.seen}")
    return t.report().target(target.pid), session.err.seen


# How the attacker has the descriptor: as anyone can; as a service manager gives one (for a log that
# its programs may write to and not read).
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
        # opened by root, who then becomes the user
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


if __name__ == "__main__":
    run(globals())
