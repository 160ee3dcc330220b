#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Processes that cannot be looked at when it is their turn: a session of the whole host tries them again later."""

import contextlib
import os
import shutil
import signal
import threading
import time
from pathlib import Path

from harness import SLOWNESS, Skip, Target, check, program, run, thorough
from test_kinds import installed_version, patched
from test_system import compare, stop

LEFT_OUT = "left out: its runtime could not be checked in time"
# session/follow.c and base/retry.h: how long it tries at first, and the first pause
TRIED_S, PAUSE_S = 5, 10
# session/session_priv.h: how long it waits until a process that starts is ready
READY_S = 10


class Killer(threading.Thread):
    """Until end(), kills each helper of a session that looks for a runtime or checks one, as may happen on a host
    without memory."""

    def __init__(self, pid, *names):
        super().__init__(daemon=True)
        self.pid, self.names, self.killed, self.ended = pid, names or ("safescoped:elf",), 0, False
        self.start()

    def run(self):
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        before = children.read_text().split()
        while not self.ended:
            with contextlib.suppress(OSError):
                for child in children.read_text().split():
                    if child not in before and Path(f"/proc/{child}/comm").read_text().strip() in self.names:
                        os.kill(int(child), signal.SIGKILL)
                        self.killed += 1

    def end(self):
        self.ended = True
        self.join()


def own(t, number, owner=0):
    """A program of which nothing is known yet: it has its own executable file. If that does not belong to root, a
    helper does all the reading."""
    path = t.dir / f"Calls{number}"
    shutil.copy(program("Calls"), path)
    os.chown(path, owner, owner)
    return Target([path, "1", "safe_sleep_1ms=200"])


def host(t):
    return t.session("-v", "--max-overhead", 1000, "--comm", "Calls*", "-f", "json", "-o", f"{t.stem}.json")


def joins(session, target, seconds):
    try:
        line = session.err.until(f"attached: pid {target.pid},", seconds * SLOWNESS)
    except TimeoutError:
        line = None
    check(line is not None, f"pid {target.pid} does not join: {session.err.seen}")


def counted(t, session, target):
    """All calls that it makes from now on are counted."""
    target.go()
    truth = target.result()
    stop(session)
    compare(t.report(), target.pid, truth)


def test_begins(t):
    """A program that starts during the session, and whose helpers are killed for as long as it is tried, is reported as
    left out. It joins later, though it does nothing that would draw attention to it."""
    session = host(t)
    check(session.err.until("processes", 60) is not None, f"safescoped did not begin: {session.err.seen}")
    for number in range(8):
        killer = Killer(session.pid)
        target = own(t, number)
        t.started.append(target)
        time.sleep(TRIED_S + 2)
        killer.end()
        session.err.drain()
        if any(LEFT_OUT in line and f"pid {target.pid}:" in line for line in session.err.seen):
            break
    else:
        raise Skip("no helper could be killed in time")
    joins(session, target, PAUSE_S + 10)
    said = [line for line in session.err.seen if LEFT_OUT in line and f"pid {target.pid}:" in line]
    check(len(said) == 1, f"it is reported more than once: {said}")
    counted(t, session, target)


def left_out(t, start, helper):
    """A session that has left out a program that was running before it, because the helpers of that name were killed:
    (session, target)."""
    for number in range(8):
        target = start(number)
        t.started.append(target)
        session = host(t)
        killer = Killer(session.pid, helper)
        check(session.err.until("processes", 60) is not None, f"safescoped did not begin: {session.err.seen}")
        killer.end()
        if killer.killed and not any(f"attached: pid {target.pid}," in line for line in session.err.seen):
            return session, target
        session.kill()
        target.kill()
    raise Skip("no helper could be killed in time")


@thorough
def test_runs_before(t):
    """The same for a program that runs before the session: it is not taken for one without a runtime just because it
    could not be looked into."""
    session, target = left_out(t, lambda number: own(t, number, owner=65534), "safescoped:elf")
    joins(session, target, TRIED_S + PAUSE_S + 10)
    counted(t, session, target)


@thorough
def test_check_killed(t):
    """If the helper that checks its runtime is killed, that is reported, and it is checked again after a pause."""
    session, target = left_out(t, lambda _: Target([program("Calls"), "1", "safe_sleep_1ms=200"]), "safescoped:mem")
    check(any(LEFT_OUT in line and f"pid {target.pid}:" in line for line in session.err.seen), f"it printed {session.err.seen}")
    joins(session, target, PAUSE_S + 10)
    counted(t, session, target)


def begins_while_killed(t, seconds):
    """A program that starts during a session while its checks are killed: it is already a target before it is checked."""
    session = host(t)
    check(session.err.until("processes", 60) is not None, f"safescoped did not begin: {session.err.seen}")
    for _ in range(8):
        # the helper has its own name only after a while, by which time it may have ended
        killer = Killer(session.pid, "safescoped:mem", "safescoped")
        target = Target([program("Calls"), "1", "safe_sleep_1ms=200"])
        t.started.append(target)
        until, attached = time.monotonic() + seconds, False
        while time.monotonic() < until and not attached:
            time.sleep(0.1)
            session.err.drain()
            attached = any(f"attached: pid {target.pid}," in line for line in session.err.seen)
        killer.end()
        if killer.killed and not attached:
            return session, target
        target.kill()
    raise Skip("no helper could be killed in time")


@thorough
def test_begins_checks_killed(t):
    """If its checks are killed for as long as the session waits for the first one, that is reported, and it joins
    later."""
    session, target = begins_while_killed(t, READY_S + 2)
    said = [line for line in session.err.seen if LEFT_OUT in line and f"pid {target.pid}:" in line]
    check(len(said) == 1, f"it printed {session.err.seen}")
    joins(session, target, PAUSE_S + 10)
    target.go()
    truth = target.result()
    stop(session)
    # it may have been a target before as well
    last = [x for x in t.report().json["targets"] if x["pid"] == target.pid][-1]
    calls = [call["calls"] for call in last["safe_calls"] if call["function"] == "safe_sleep_1ms"]
    # the helper that reads the file's names may have been killed, too
    check(not calls or sum(calls) == truth["safe_sleep_1ms"]["calls"], f"{calls} calls, the program made {truth}")


def idle(t):
    """A program of an unknown version, which only a running Haskell thread can confirm; none runs at first."""
    known = installed_version()
    unknown = known[:-1] + (b"9" if known[-1:] != b"9" else b"7")
    target = Target([patched(t, "Calls", "v", (known, unknown)), "1", "safe_spin_1ms=40000"])
    t.started.append(target)
    return target


@thorough
def test_begins_idle(t):
    """If it starts during the session and is not confirmed within ten seconds, it is reported as left out, and joins
    once it works."""
    session = host(t)
    check(session.err.until("processes", 60) is not None, f"safescoped did not begin: {session.err.seen}")
    target = idle(t)
    for _ in range(150):
        session.err.drain()
        if any(f"pid {target.pid}: left out" in line for line in session.err.seen):
            break
        time.sleep(0.1 * SLOWNESS)
    else:
        raise Skip(f"there was something to confirm it by: {session.err.seen}")
    target.go()
    joins(session, target, 3 * PAUSE_S + 5)
    said = [line for line in session.err.seen if f"pid {target.pid}: left out" in line]
    check(len(said) == 1 and "no Haskell thread" in said[0], f"it printed {session.err.seen}")
    stop(session)
    check(t.report().call("safe_spin_1ms", target.pid)["calls"] > 0, "its calls are not counted")


def test_idle(t):
    """If it runs before the session, it is reported as left out, and joins once it works."""
    target = idle(t)
    session = host(t)
    check(session.err.until("processes", 60) is not None, f"safescoped did not begin: {session.err.seen}")
    said = [line for line in session.err.seen if f"pid {target.pid}: left out" in line]
    if not said:
        raise Skip("there was something to confirm it by")
    check(len(said) == 1 and "no Haskell thread" in said[0], f"it printed {session.err.seen}")
    target.go()
    joins(session, target, 3 * PAUSE_S + 5)
    check(sum(f"pid {target.pid}: left out" in line for line in session.err.seen) == 1, f"it printed {session.err.seen}")
    stop(session)
    check(t.report().call("safe_spin_1ms", target.pid)["calls"] > 0, "its calls are not counted")


if __name__ == "__main__":
    run(globals())
