#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""--doctor: what it reports as present and as missing on this machine, and what it finds in a process."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from harness import ROOT, SAFESCOPED, Skip, Target, cases, check, program, run

NAMES = ["kernel", "PID namespace", "time namespace", "user namespace", "CAP_BPF", "CAP_PERFMON", "CAP_SYS_PTRACE", "BTF", "ring buffer", "uprobes", "uprobe_multi",
         "perf_event", "tracepoints", "lockdown", "perf_event_paranoid", "kptr_restrict"]


def doctor(*args, prefix=(), binary=SAFESCOPED):
    """(exit code, {name: (state, text)} of every line)."""
    done = subprocess.run([*map(str, prefix), str(binary), "--doctor", *map(str, args)], capture_output=True,
                          text=True, timeout=60)
    found = {}
    for line in done.stdout.splitlines():
        m = re.match(r"(ok|missing|MISSING)\s+(.{22}) (.*)$", line)
        check(m or not line or line.startswith("pid "), f"a malformed line: {line!r}")
        if m:
            found[m.group(2).strip()] = (m.group(1), m.group(3))
    return done.returncode, found


def test_this_kernel(t):
    code, found = doctor()
    for name in NAMES:
        check(name in found, f"nothing about {name}: {sorted(found)}")
    check(os.uname().release in found["kernel"][1], f"another kernel: {found['kernel']}")
    # The live tests run only where nothing is missing.
    check(code == 0, f"ended with {code}: {found}")
    check(found["BPF programs"][0] == "ok", f"the programs: {found['BPF programs']}")
    multi = found["uprobe_multi"][0] == "ok"
    check(("not used" in found["perf uprobes"][1]) == multi or not multi, "which uprobes are used is not shown")


def test_without_privileges(t):
    if not shutil.which("setpriv"):
        raise Skip("no setpriv")
    copy = t.copy_for_all(SAFESCOPED)
    code, found = doctor(prefix=("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"), binary=copy)
    check(code == 2, f"ended with {code}")
    for name in ("CAP_BPF", "CAP_PERFMON", "CAP_SYS_PTRACE"):
        state, text = found[name]
        check(state == "MISSING" and "sudo" in text, f"{name}: {state} {text}")


def without(path):
    """A prefix: the program runs where nothing is mounted at the path."""
    return ("unshare", "--mount", "sh", "-c", f"umount -l {path} && exec \"$@\"", "sh")


def test_without_proc(t):
    """That /proc is not mounted is reported as such, instead of missing privileges or no processes."""
    want = "/proc: not mounted: mount -t proc proc /proc"
    for args in (("--list",), ("-d", 1), ("--pid", os.getpid(), "-d", 1)):
        done = subprocess.run([*without("/proc"), SAFESCOPED, *map(str, args)], capture_output=True, text=True, timeout=60)
        check(done.returncode == 2 and done.stderr == f"safescoped: {want}\n",
              f"{args}: {done.returncode}, {done.stdout} {done.stderr}")
    code, found = doctor("--pid", os.getpid(), prefix=without("/proc"))
    check(code == 2 and found["/proc"] == ("MISSING", want.removeprefix("/proc: ")), f"{code}: {found}")
    check(set(found) == {"kernel", "/proc"}, f"{found}")


def test_without_sys(t):
    """If /sys is not mounted, no other kernel is asked for."""
    done = subprocess.run([*without("/sys"), SAFESCOPED, "-d", "1"], capture_output=True, text=True, timeout=60)
    check(done.returncode == 2 and "/sys is not mounted: mount -t sysfs" in done.stderr, f"{done.returncode}, {done.stderr}")
    code, found = doctor(prefix=without("/sys"))
    check(code == 2 and "/sys is not mounted" in found["BTF"][1], f"{code}: {found['BTF']}")
    check(not re.search("CONFIG_|Linux 6|built in", found["BTF"][1] + found["tracepoints"][1] + found["perf uprobes"][1] +
                        found["lockdown"][1]), f"{found}")


def test_hidden(t):
    """A process that hidepid hides exists all the same."""
    copy = t.copy_for_all(SAFESCOPED)
    target = t.target("Server", ready="waiting")
    prefix = ("unshare", "--mount", "sh", "-c", "mount -t proc -o hidepid=2 proc /proc && exec \"$@\"", "sh", "setpriv",
              "--reuid=65534", "--regid=65534", "--clear-groups")
    _, found = doctor("--pid", target.pid, prefix=prefix, binary=copy)
    check("hidepid" in found["process"][1] and "CAP_SYS_PTRACE" in found["process"][1], f"{found['process']}")
    target.kill()
    _, found = doctor("--pid", target.pid, prefix=prefix, binary=copy)
    check("no such process" in found["process"][1], f"{found['process']}")


def test_in_a_user_namespace(t):
    """As in a rootless container: root there has all capabilities, and no power. Neither the kernel's version nor a
    setting is blamed."""
    inside = ["unshare", "--user", "--map-root-user"]
    if subprocess.run([*inside, "true"], capture_output=True).returncode != 0:
        raise Skip("no user namespaces")
    code, found = doctor(prefix=inside)
    check(code == 2 and found["user namespace"][0] == "MISSING", f"{code}: {found}")
    for name in ("CAP_BPF", "CAP_SYS_PTRACE", "ring buffer", "perf_event"):
        check(found[name][0] == "MISSING" and not re.search("as root|Linux 6", found[name][1]), f"{name}: {found[name]}")
    check("setcap" not in found, f"{found}")
    done = subprocess.run([*inside, SAFESCOPED, "-d", "1"], capture_output=True, text=True, cwd=t.dir, timeout=60)
    check(done.returncode == 2 and not done.stdout, f"{done}")
    lines = done.stderr.splitlines()
    check(len(lines) == 1 and lines[0].startswith("safescoped: user namespace: "), f"{lines}")
    done = subprocess.run([*inside, SAFESCOPED, "--list"], capture_output=True, text=True, timeout=60)
    check(done.returncode == 0 and "in a user namespace only" in done.stderr, f"--list: {done}")


def test_almost_root(t):
    """CAP_SYS_ADMIN does not replace CAP_SYS_PTRACE, which a container's root may lack: that is reported, and not that no
    program runs."""
    if not shutil.which("setpriv"):
        raise Skip("no setpriv")
    prefix = ["setpriv", "--bounding-set=-sys_ptrace,-lease", "--inh-caps=-sys_ptrace,-lease"]
    code, found = doctor(prefix=prefix)
    check(code == 2 and found["CAP_SYS_PTRACE"][0] == "MISSING" and found["CAP_LEASE"][0] == "missing", f"{code}: {found}")
    done = subprocess.run([*prefix, SAFESCOPED, "-d", "1"], capture_output=True, text=True, cwd=t.dir, timeout=60)
    check(done.returncode == 2 and "CAP_SYS_PTRACE missing" in done.stderr, f"{done}")


def test_hidden_addresses(t):
    """Without the addresses of the kernel's functions, CAP_SYSLOG is not enough for their names."""
    hides = t.dir / "kptr_restrict"
    for value, state in (("1", "ok"), ("2", "missing")):
        hides.write_text(value + "\n")
        _, found = doctor(prefix=("unshare", "--mount", "sh", "-c", f"mount --bind {hides} /proc/sys/kernel/kptr_restrict && "
                                  'exec "$@"', "sh"))
        check(found["kptr_restrict"][0] == state and found["kptr_restrict"][1].startswith(value), f"{found['kptr_restrict']}")


@cases("thr", "thr_p", "dyn")
def test_a_process(t, way):
    target = t.target("Server", way=way, ready="waiting", rts=("-N2",))
    code, found = doctor("--pid", target.pid)
    check(code == 0, f"ended with {code}: {found}")
    for name in ("GHC runtime", "layout", "capabilities", "my_task", "suspendThread", "resumeThread", "StgRun"):
        check(found[name][0] == "ok", f"{name}: {found.get(name)}")
    check("2 capabilities" in found["layout"][1], f"layout: {found['layout']}")
    file = program("Server", way)
    if way == "dyn":
        check("libHSrts" in found["suspendThread"][1], f"suspendThread: {found['suspendThread']}")
        return
    # The address is that of the symbol, by nm.
    nm = subprocess.run(["nm", file], capture_output=True, text=True).stdout
    want = int(re.search(r"^([0-9a-f]+) T suspendThread$", nm, re.M).group(1), 16)
    offset = int(re.search(r"\+0x([0-9a-f]+)", found["suspendThread"][1]).group(1), 16)
    segments = subprocess.run(["readelf", "-lW", file], capture_output=True, text=True).stdout
    for m in re.finditer(r"LOAD\s+0x(\w+) 0x(\w+) 0x\w+ 0x(\w+)", segments):
        at, vaddr, size = (int(x, 16) for x in m.groups())
        if vaddr <= want < vaddr + size:
            want = want - vaddr + at
            break
    check(want <= offset <= want + 64, f"the probe is at {offset:#x}, suspendThread at {want:#x}")
    check("emulates" in found["suspendThread"][1] or "single-steps" in found["suspendThread"][1],
          f"nothing about emulation: {found['suspendThread']}")


def test_stripped(t):
    target = Target([t.stripped("Server")], ready="waiting")
    t.started.append(target)
    code, found = doctor("--pid", target.pid)
    check(code == 0, f"ended with {code}: {found}")
    m = re.match(r"(\d+) safe calls agree, (\d+) on anything else", found["call sites"][1])
    check(m and int(m.group(1)) >= 10 * max(1, int(m.group(2))), f"votes: {found['call sites']}")
    check("callsites" in found["suspendThread"][1], f"suspendThread: {found['suspendThread']}")
    check(found["symbols"][0] == "missing" and "--symbols" in found["symbols"][1], f"symbols: {found['symbols']}")
    check(found["tick"][0] == "ok" and "ghc_ticker" in found["tick"][1], f"tick: {found['tick']}")


def test_no_ghc_program(t):
    target = Target([program("not_ghc.c")])
    t.started.append(target)
    code, found = doctor("--pid", target.pid)
    check(code == 2, f"ended with {code}")
    check(found["process"][0] == "MISSING" and "not a GHC program" in found["process"][1], f"{found['process']}")


def test_pid_namespace(t):
    target = Target(["unshare", "-pf", "--kill-child", "--mount-proc", program("Server", "thr")], ready="waiting")
    t.started.append(target)
    child = int(Path(f"/proc/{target.pid}/task/{target.pid}/children").read_text().split()[0])
    done = subprocess.run([SAFESCOPED, "--doctor", "--pid", str(child)], capture_output=True, text=True)
    check(f"pid {child} (1 inside)" in done.stdout, f"both pids are not shown: {done.stdout}")
    check(done.returncode == 0, f"ended with {done.returncode}")


def test_in_a_pid_namespace(t):
    """In a PID namespace the kernel's pids do not match the visible ones: nothing is profiled, and each way to start a
    session is refused with one line."""
    inside = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    witness = t.dir / "ran"
    for asked in (["-d", "1"], ["--pid", "1"], ["--window", "1", "-d", "2", "-o", t.dir / "windows"], ["--", "touch", witness]):
        done = subprocess.run([*inside, SAFESCOPED, *asked], capture_output=True, text=True, cwd=t.dir, timeout=60)
        check(done.returncode == 2, f"{asked}: ended with {done.returncode}: {done.stderr}")
        lines = done.stderr.splitlines()
        check(len(lines) == 1 and "PID namespace" in lines[0] and "--pid=host" in lines[0], f"{asked}: {done.stderr}")
        check(not done.stdout, f"{asked}: {done.stdout}")
    check(not witness.exists(), "the command was started")
    code, found = doctor(prefix=inside)
    check(code == 2 and found["PID namespace"][0] == "MISSING", f"{code} {found['PID namespace']}")
    # what does not depend on the kernel's pids works
    done = subprocess.run([*inside, "sh", "-c", 'sleep 60 | "$0" >/dev/null & sleep 1; "$1" --list', program("Server"), SAFESCOPED],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    check(done.returncode == 0 and "Server" in done.stdout, f"--list: {done}")
    done = subprocess.run([*inside, SAFESCOPED, "--replay", ROOT / "tests" / "data" / "capture" / "calls", "-f", "folded", "-o", "-"],
                          capture_output=True, text=True, timeout=60)
    check(done.returncode == 0 and "[GC]" in done.stdout, f"--replay: {done}")


if __name__ == "__main__":
    run(globals())
