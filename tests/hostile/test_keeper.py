#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Whatever hangs, stops or is killed, no probe stays on another user's program, and nothing of ours stays in the
kernel."""

import os
import signal
import subprocess
import time
from pathlib import Path

from hostile import Stall, as_nobody, changed_code, haskell, mounted, start, whole_host
from harness import cases, check, run
from kernel_side import bpf_objects, bpf_objects_of

# What these tests wait for takes two seconds, or ten; a busy machine gets more.
PATIENCE_S = 60


def wait_until(condition, what, seconds=PATIENCE_S):
    deadline = time.monotonic() + seconds
    while not condition():
        check(time.monotonic() < deadline, f"{what}: not after {seconds} s")
        time.sleep(0.1)


def ours(state, group=None):
    """[(pid, name)] of safescoped's processes in this state, of one process group or of all."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, rest = stat.read_text().split(" (", 1)
        except OSError:
            continue
        name, fields = rest.rsplit(") ", 1)
        at, _, pgrp = fields.split()[:3]
        if name.startswith("safescoped") and at == state and group in (None, int(pgrp)):
            found.append((int(pid), name))
    return found


def helpers(state):
    """The helpers, in this state, of this run's daemons; not those of other daemons on the machine."""
    return ours(state, os.getpgrp())


def keeper_of(session):
    """The pid of the child process that holds the probes."""
    for pid, name in ours("S"):
        stat = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
        if name == "safescoped:keep" and int(stat[1]) == session.process.pid:
            return pid
    return None


def victim(t, seconds=20):
    target = start(t, as_nobody([haskell("Calls"), "1", f"safe_sleep_1ms={seconds * 900}"]))
    check(not changed_code(target.pid), "probed before there is a session")
    return target


def wait_probed(target, probed, what):
    wait_until(lambda: bool(changed_code(target.pid)) == probed, what)


# ── the daemon is stopped ──


def test_stopped(t):
    """A stopped daemon cannot keep the probes within the overhead limit: they come off, and come back afterwards."""
    target = victim(t)
    session = t.session("--pid", target.pid, "--max-overhead", "1000", "-v", "-f", "json", "-o", f"{t.stem}.json")
    session.wait_attached()
    target.go()
    wait_probed(target, True, "the probes are on")
    session.signal(signal.SIGSTOP)
    wait_probed(target, False, "the probes are off")
    time.sleep(1)
    check(not changed_code(target.pid), "probes are on while the daemon is stopped")
    session.signal(signal.SIGCONT)
    wait_probed(target, True, "the probes are on again")
    time.sleep(1)
    session.signal(signal.SIGINT)
    code = session.wait()
    check(code in (0, 1), f"safescoped ended with {code}: {session.err.seen}")
    report = t.report()
    got = report.target(target.pid)
    told = [m for m in got["missing"] if "held up" in m]
    check(told, f"the report does not mention it: {got['missing']}")
    paused = got["cost"]["probes_paused_ns"]
    check(paused >= 1_000_000_000, f"the probes were off for {paused} ns, by the report")
    # no call whose end was missed is shown as a long one
    calls = report.call("safe_sleep_1ms")
    check(calls["calls"] > 100, f"only {calls['calls']} calls were seen")
    mean = calls["wall_ns"] / calls["calls"]
    check(mean < 50_000_000, f"a call of 1 ms takes {mean / 1e6:.1f} ms on average")
    check(target.process.poll() is None, "the target did not survive")


def test_keeper_killed(t):
    """If the keeper is killed the session ends with what it has recorded."""
    target = victim(t)
    session = t.session("--pid", target.pid, "-v", "-f", "json", "-o", f"{t.stem}.json")
    session.wait_attached()
    target.go()
    time.sleep(1)
    mine = bpf_objects_of(session.process.pid)
    keeper = keeper_of(session)
    check(keeper, "there is no keeper")
    subprocess.run(["kill", "-KILL", str(keeper)], check=True)
    code = session.wait(30)
    check(code == 1, f"safescoped ended with {code}: {session.err.seen}")
    check(any("keeper" in m for m in t.report().target(target.pid)["missing"]), "the report does not mention it")
    wait_until(lambda: not mine & bpf_objects(), "nothing is left")
    check(not changed_code(target.pid), "breakpoints are left in the target")


def test_keeper_has_nothing(t):
    """The keeper has no privileges, and no descriptors except links and the two through which it is notified."""
    session = t.session("--pid", victim(t).pid, "-v", "-f", "json", "-o", f"{t.stem}.json")
    session.wait_attached()
    keeper = Path("/proc", str(keeper_of(session)))
    status = dict(line.split(":\t", 1) for line in (keeper / "status").read_text().splitlines())
    # CAP_SYS_ADMIN, for which the seccomp filter permits only the statistics of BPF programs' run time.
    check(all(int(status[k], 16) & ~(1 << 21) == 0 for k in ("CapEff", "CapPrm")), f"it has capabilities: {status}")
    check(all(int(status[k], 16) == 0 for k in ("CapInh", "CapAmb")), f"it passes on capabilities: {status}")
    check(status["NoNewPrivs"] == "1" and status["Seccomp"] == "2", "it is not restricted")
    kinds = [str(fd.readlink()) for fd in (keeper / "fd").iterdir()]
    others = [k for k in kinds if not any(x in k for x in ("bpf_link", "bpf-link", "bpf_stats", "bpf-stats", "socket:",
                                                         "pidfd"))]
    check(len(kinds) > 4 and not others, f"it holds {others or kinds}")
    # and the daemon itself holds no link
    mine = [str(fd.readlink()) for fd in Path("/proc", str(session.process.pid), "fd").iterdir()]
    check(not [k for k in mine if "link" in k], f"the daemon holds {mine}")
    session.signal(signal.SIGINT)
    check(session.wait() == 0, f"it printed {session.err.seen}")
    cost = t.report().target()["cost"]
    check(cost["bpf_ns"], f"the programs' run time is not known: {cost}")


# ── memory that hangs ──


@cases("SIGTERM", "SIGINT")
def test_ends_in_time(t, name):
    """When the session ends the daemon looks at its targets again, and the memory of one of them hangs: it ends in time
    all the same."""
    point = mounted(t)
    other = victim(t)
    hung = start(t, as_nobody([point / "program", "1", "safe_sleep_1ms=3000"]))
    session = t.session("--pid", other.pid, "--pid", hung.pid, "-v", "-f", "json", "-o", f"{t.stem}.json")
    session.wait_attached()
    other.go()
    wait_probed(other, True, "the probes are on")
    mine = bpf_objects_of(session.process.pid)
    Stall(t, point)
    time.sleep(0.5)
    began = time.monotonic()
    session.signal(getattr(signal, name))
    code = session.wait(30)
    took = time.monotonic() - began
    check(code in (0, 1), f"safescoped ended with {code}: {session.err.seen}")
    check(took < 10, f"it took {took:.1f} s")
    wait_until(lambda: not mine & bpf_objects(), "nothing is left in the kernel")
    check(not changed_code(other.pid), "breakpoints are left in the other target")


@cases("alone", "stopped first")
def test_killed_while_something_hangs(t, how):
    """A process that waits for the file server cannot be killed, and so does not close its descriptors: the probes come
    off all the same."""
    point = mounted(t)
    other = victim(t, 60)
    hung = start(t, as_nobody([point / "program", "1", "safe_sleep_1ms=3000"]))
    check(hung.pid > other.pid, "the victim must be looked at first")
    stall = Stall(t, point)
    session = t.session("--max-overhead", "1000", "-f", "json", "-o", f"{t.stem}.json")
    wait_probed(other, True, "the probes are on")
    mine = bpf_objects_of(session.process.pid)
    wait_until(lambda: helpers("D"), "something of ours hangs")
    if how == "stopped first":
        session.signal(signal.SIGSTOP)
    session.signal(signal.SIGKILL)
    wait_probed(other, False, "the probes are off")
    links = {x for x in mine if x[0] == "link"}
    wait_until(lambda: not links & bpf_objects(), "no program runs")
    hangs = helpers("D")
    if session.process.poll() is not None:
        wait_until(lambda: not mine & bpf_objects(), "nothing is left in the kernel")
    check(hangs, "what hung no longer hangs: the test proves nothing")
    stall.kill()
    wait_until(lambda: session.process.poll() is not None, "the daemon is gone")
    wait_until(lambda: not mine & bpf_objects(), "nothing is left in the kernel")
    wait_until(lambda: not any(pid > session.process.pid for pid, _ in helpers("S") + helpers("D")), "no helper is left")


def test_starts_during_a_session(t):
    """A session goes on while the memory of a process that it looks at hangs."""
    point = mounted(t)
    other = victim(t, 40)
    hung = start(t, as_nobody([point / "program", "1", "safe_sleep_1ms=3000"]))
    session = whole_host(t)
    other.go()
    wait_probed(other, True, "the probes are on")
    stall = Stall(t, point)
    time.sleep(3)
    stall.kill()
    session.signal(signal.SIGINT)
    code = session.wait(60)
    check(code in (0, 1), f"safescoped ended with {code}: {session.err.seen}")
    report = t.report()
    check(report.target(other.pid)["lanes"], "nothing of the other target")
    check(hung.process.poll() is None, "the target did not survive")


if __name__ == "__main__":
    run(globals())
