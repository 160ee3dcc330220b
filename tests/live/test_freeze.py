#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""--freeze: the process is stopped while its heap is counted, and runs on whatever happens to safescoped. /proc shows
that it is stopped, by whom, and that it runs again."""

import contextlib
import ctypes
import os
import signal
import time
from pathlib import Path

from harness import Failure, cases, check, check_near, profile_run, run

PTRACE_SEIZE, PTRACE_DETACH = 0x4206, 17
# With these the census does not find the old generation, and tries several times in a row: that leaves time to catch a
# stop.
AGAIN_AND_AGAIN = ("--nonmoving-gc", "-N2")


def status(pid, key):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return line.split()[1]
    raise Failure(f"no {key} of {pid}")


def states(pid):
    """The states of all threads, as in /proc."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found.append((task / "stat").read_text().rpartition(")")[2].split()[0])
    return found


def cpu_ticks(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def runs_on(pid, timeout):
    """Wait until nothing holds the process and it has used CPU time again; return the seconds that took."""
    start, ticks = time.monotonic(), cpu_ticks(pid)
    while time.monotonic() - start < timeout:
        if status(pid, "TracerPid") == "0" and "t" not in states(pid) and cpu_ticks(pid) > ticks + 2:
            return time.monotonic() - start
        time.sleep(0.01)
    raise Failure(f"after {timeout} s: {states(pid)}, traced by {status(pid, 'TracerPid')}")


def catch(t, most):
    """Stop a session with SIGSTOP while it holds a busy program: (target, session, pid of the process that holds the
    target)."""
    target = t.target("Census", 40, rts=AGAIN_AND_AGAIN)
    session = t.attach(target, "--heap-census", "--freeze", most, "--max-overhead", "100")
    t.finally_do(lambda: session.process.poll() is None and session.signal(signal.SIGCONT))
    target.go()
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if status(target.pid, "TracerPid") == "0":
            continue
        session.signal(signal.SIGSTOP)
        time.sleep(0.05)
        holder = int(status(target.pid, "TracerPid"))
        # the target may have been released at that moment
        if holder and set(states(target.pid)) == {"t"}:
            return target, session, holder
        session.signal(signal.SIGCONT)
    raise Failure("it was never seen to be stopped")


@cases("v", "thr", "dyn")
def test_whole(t, way):
    """All threads are stopped until the heap has been read: each object is accounted for, and the only gaps are those
    that the collection left."""
    rts = () if way == "v" else ("-N2",)
    _, report, _ = profile_run(t, "Census", 4, way=way, rts=rts,
                               options=("--heap-census", "--freeze", "5s", "--max-overhead", "100"))
    read = report.target()["heap"]["census_read"]
    check(read and read["frozen_whole"] and 0 < read["frozen_ns"] < 5e9, f"{read}")
    found = read["blocks_bytes"] + read["large_bytes"]
    check_near("bytes that were found", found, read["live_bytes"], 0.02 * read["live_bytes"])
    check(not read["cut"] and read["unknown_bytes"] == 0, f"{read}")
    # what the program keeps: 50 000 byte strings, and one of 1 000 000 bytes
    check(1e6 < read["pinned_bytes"] <= read["large_bytes"], f"{read}")


def test_time_is_up(t):
    """safescoped itself is stopped, and so cannot release the program: it runs on when the time limit is over."""
    target, session, holder = catch(t, "3s")
    ticks = cpu_ticks(target.pid)
    time.sleep(0.5)
    check(cpu_ticks(target.pid) == ticks, f"it ran on: {states(target.pid)}")
    check(Path(f"/proc/{holder}/comm").read_text().strip() == "safescoped:hold", "something else holds it")
    took = runs_on(target.pid, 20)
    check(took > 0.5, f"it was released after {took + 0.5:.1f} s")
    session.signal(signal.SIGCONT)
    session.signal(signal.SIGINT)
    session.wait()
    runs_on(target.pid, 10)


@cases("daemon", "holder")
def test_killed(t, what):
    """If the process that holds the program is killed, the kernel releases the program; the same happens if safescoped
    is killed."""
    target, session, holder = catch(t, "10s")
    start = time.monotonic()
    os.kill(session.pid if what == "daemon" else holder, signal.SIGKILL)
    runs_on(target.pid, 8)
    print(f"    it ran on after {time.monotonic() - start:.2f} s")
    if what == "holder":
        session.signal(signal.SIGCONT)
        session.signal(signal.SIGINT)
        session.wait()


def test_signal(t):
    """A signal that arrives during the freeze is delivered when the program runs on."""
    target, session, holder = catch(t, "10s")
    os.kill(target.pid, signal.SIGTERM)
    time.sleep(0.2)
    check(set(states(target.pid)) == {"t"}, f"it is not stopped any more: {states(target.pid)}")
    os.kill(holder, signal.SIGKILL)
    code = target.wait(20)
    check(code == -signal.SIGTERM, f"it ended with {code}")
    session.signal(signal.SIGCONT)
    session.wait()


def test_traced(t):
    """A program that a debugger traces cannot be stopped: that is reported once, and the heap is counted while it runs
    on."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    target = t.target("Census", 4)
    check(libc.ptrace(PTRACE_SEIZE, target.pid, None, None) == 0, "the test cannot trace its own program")
    session = t.attach(target, "--heap-census", "--freeze", "1s", "--max-overhead", "100")
    target.go()
    # now and then its thread is in a signal-delivery stop, until its tracer lets it go on
    end = time.monotonic() + 60
    while target.process.poll() is None and time.monotonic() < end:
        pid, what = os.waitpid(target.pid, os.WNOHANG | os.WUNTRACED)
        if pid and os.WIFSTOPPED(what):
            libc.ptrace(7, target.pid, None, os.WSTOPSIG(what))
        elif pid:
            target.process.returncode = os.waitstatus_to_exitcode(what)
        time.sleep(0.001)
    session.wait()
    read = t.report().target()["heap"]["census_read"]
    check(read and read["frozen_ns"] == 0 and not read["frozen_whole"], f"{read}")
    said = [l for l in session.err.seen if "cannot stop it" in l]
    check(len(said) == 1 and "traces it" in said[0], f"it reported: {session.err.seen}")


if __name__ == "__main__":
    run(globals())
