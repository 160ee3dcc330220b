#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What root's daemon keeps in addition to the capabilities of the service (for those see tests/live/test_rights.py):
each one is needed, since something fails if it alone is missing, and no other is kept."""

import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

from hostile import NOBODY, OUT, haskell, start
from harness import SAFESCOPED, ROOT, cases, check, run

# include/uapi/linux/capability.h
NUMBERS = {"CHOWN": 0, "DAC_OVERRIDE": 1, "DAC_READ_SEARCH": 2, "FOWNER": 3, "KILL": 5, "SETGID": 6, "SETUID": 7,
           "SYS_PTRACE": 19, "SYSLOG": 34, "PERFMON": 38, "BPF": 39, "CHECKPOINT_RESTORE": 40, "LEASE": 28}
OF_THE_SERVICE = {"BPF", "PERFMON", "SYS_PTRACE", "DAC_READ_SEARCH", "CHECKPOINT_RESTORE", "SYSLOG", "LEASE"}
PROVED = {"KILL", "SETUID", "SETGID", "DAC_OVERRIDE", "CHOWN", "FOWNER"}
SUDO = {"SUDO_UID": str(NOBODY), "SUDO_GID": str(NOBODY)}


def without(cap):
    """A command line prefix that runs a command as root without that capability, or with all of them."""
    name = f"-{cap.lower()}" if cap else ""
    return ["setpriv", "--inh-caps", name, "--bounding-set", name] if cap else []


def status(pid, name):
    return re.search(rf"^{name}:\s+(.*)$", Path(f"/proc/{pid}/status").read_text(), re.M).group(1)


def kept(pid):
    return int(status(pid, "CapPrm"), 16)


def wait_until(what, condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not (got := condition()):
        check(time.monotonic() < deadline, f"{what}: not within {seconds} s")
        time.sleep(0.02)
    return got


def attached(t, cap, *options, env=None):
    target = start(t, [haskell("Calls"), 1, "safe_sleep_1ms=2000"])
    session = t.session("--pid", target.pid, "--max-overhead", "1000", "-v", "-f", "json", *options, prefix=without(cap),
                        env=env)
    session.wait_attached()
    return target, session


def test_nothing_else(t):
    _, session = attached(t, None, "-o", f"{t.stem}.json")
    have = {name for name, number in NUMBERS.items() if kept(session.pid) >> number & 1}
    others = kept(session.pid) & ~sum(1 << number for number in NUMBERS.values())
    # a kernel without multi-uprobes may require it
    check(not others & ~(1 << 21), f"it keeps {others:#x}, too")
    check(have == OF_THE_SERVICE | PROVED, f"it keeps {have}")
    table = re.search(r"needed\[\] = \{(.*?)\};", (ROOT / "user/session/rights.c").read_text(), re.S).group(1)
    check(set(re.findall(r"CAP_(\w+),", table)) == OF_THE_SERVICE | PROVED, "rights.c lists others")


def children(pid, begins):
    """The pids, as text, of the child processes whose names begin with `begins`."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and status(entry.name, "PPid") == str(pid) and status(entry.name, "Name").startswith(begins):
                found.append(entry.name)
        except (OSError, AttributeError):
            # it has ended
            continue
    return found


def ids_of_helper(session, number):
    """The ids of a helper that runs for a while: the one that decodes calls."""
    found = children(session.pid, "safescoped:insn")
    return found and status(found[0], ("Uid", "Gid")[number]).split()


@cases("SETUID", "SETGID")
def test_ids_of_helpers(t, cap):
    """A helper has user and group ids of its own."""
    number = ("SETUID", "SETGID").index(cap)
    for lacks in (None, cap):
        target, session = attached(t, lacks, "-o", f"{t.stem}.json")
        target.go()
        ids = wait_until("a helper", lambda s=session: ids_of_helper(s, number))
        check(("0" in ids) == bool(lacks), f"without {lacks}: {ids}")
        session.signal(signal.SIGTERM)
        session.wait()


def test_kill(t):
    """A signal is passed on to a command that runs as the user who called sudo."""
    for cap in (None, "KILL"):
        session = t.session("-v", "-f", "json", "-o", f"{t.stem}.json", "--", "sleep", 60, prefix=without(cap), env=SUDO)
        pid = wait_until("the command", lambda s=session: children(s.pid, "sleep"))[0]
        # it is stopped until its probes are set
        wait_until("it runs", lambda p=pid: status(p, "TracerPid") == "0")
        time.sleep(1)
        session.signal(signal.SIGTERM)
        if cap:
            time.sleep(2)
            check(Path(f"/proc/{pid}").exists(), "the command ended without it, too")
            os.kill(int(pid), signal.SIGKILL)
        else:
            wait_until("the command's end", lambda p=pid: not Path(f"/proc/{p}").exists())
        session.wait()


def user_folder(t, name, mode):
    folder = OUT / f"{t.name}-{name}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    folder.chmod(mode)
    os.chown(folder, NOBODY, NOBODY)
    return folder


def write(cap, path):
    """A session run through sudo, whose file is to belong to the user who called it. (its exit code, what it printed)"""
    done = subprocess.run([*without(cap), SAFESCOPED, "-d", "0.2", "--comm", "no-such-program", "-f", "json", "-o", path],
                          env={**os.environ, **SUDO}, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr


@cases("DAC_OVERRIDE", "CHOWN", "FOWNER")
def test_output(t, cap):
    """The output can be written to a folder that only the user can write to; it then belongs to the user; and it can
    replace a file of the user's in a sticky folder."""
    for lacks in (None, cap):
        folder = user_folder(t, str(lacks), 0o1777 if cap == "FOWNER" else 0o700)
        path = folder / "x.json"
        if cap == "FOWNER":
            path.write_text("")
            os.chown(path, NOBODY, NOBODY)
        code, said = write(lacks, path)
        good = path.exists() and path.stat().st_uid == NOBODY and path.stat().st_size > 100
        check(good == (lacks is None), f"without {lacks}: {code}, {path.exists() and path.stat()}: {said}")


if __name__ == "__main__":
    run(globals())
