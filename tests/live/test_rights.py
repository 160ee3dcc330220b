#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Without root: with the unit's capabilities an ordinary user can do all that root can, and each capability is needed."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from harness import ROOT, SAFESCOPED, Skip, Target, cases, check, program, run
from test_calls import ALWAYS

NOBODY = 65534
UNIT = (ROOT / "scripts" / "safescoped.service").read_text()
CAPS = re.search(r"^CapabilityBoundingSet=(.*)$", UNIT, re.M).group(1).split()
ALWAYS_NEEDED = ["CAP_BPF", "CAP_PERFMON", "CAP_SYS_PTRACE"]


def as_nobody(caps):
    if not shutil.which("setpriv"):
        raise Skip("no setpriv")
    sets = ",".join(["-all", *("+" + c.removeprefix("CAP_").lower() for c in caps)])
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs", f"--bounding-set={sets}",
            f"--inh-caps={sets}", f"--ambient-caps={sets}"]


def place(t):
    """A folder that anyone can enter and that belongs to nobody, with a copy of safescoped."""
    folder = t.copy_for_all(SAFESCOPED).parent
    os.chown(folder, NOBODY, NOBODY)
    return folder


def start(t, folder, caps, *args):
    process = subprocess.Popen([*as_nobody(caps), str(folder / "safescoped"), *map(str, args)], cwd=folder,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    t.finally_do(lambda: (process.kill(), process.communicate()))
    return process


def ended(process, timeout=90):
    """(its exit code, standard output, standard error)"""
    out, err = process.communicate(timeout=timeout)
    check("Sanitizer" not in err, err)
    return process.returncode, out, err


def profile(t, folder, caps, target, *options):
    """(exit code, the program's own counts, the report or None, what was printed) of a session while the target works."""
    process = start(t, folder, caps, "--pid", target.pid, "-v", "-f", "json", "-o", folder / "p.json", *ALWAYS, *options)
    said = ""
    while "attached" not in said and process.poll() is None:
        said += process.stderr.readline()
    target.go()
    truth = target.result()
    code, _, err = ended(process)
    path = folder / "p.json"
    return code, truth, json.loads(path.read_text()) if path.exists() else None, said + err


def calls_of(report, function):
    return sum(c["calls"] or 0 for c in report["targets"][0]["safe_calls"] if c["function"] == function)


@cases("thr", "dyn")
def test_as_root(t, way):
    """The calls of another user's program are counted exactly, with their names, and nothing is lost."""
    folder = place(t)
    target = t.target("Calls", 2, "safe_half_2ms=200", "safe_sleep_1ms=300", way=way, rts=("-N2",))
    code, truth, report, said = profile(t, folder, CAPS, target)
    check(code == 0 and report, f"ended with {code}: {said}")
    for function in ("safe_half_2ms", "safe_sleep_1ms"):
        check(calls_of(report, function) == truth[function]["calls"], f"{function}: {calls_of(report, function)} calls")
    check(os.stat(folder / "p.json").st_uid == NOBODY, "the report is not its user's")


def own_target(t, folder, *args):
    """A program that runs as the same ordinary user."""
    path = folder / "calls"
    if not path.exists():
        shutil.copy(program("Calls"), path)
        path.chmod(0o755)
    target = Target(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", path, "1", *args])
    t.started.append(target)
    return target


def test_three(t):
    """With only three of them a user can profile programs of their own completely: by pid, in the list, in a session of
    the host."""
    folder = place(t)
    target = own_target(t, folder, "safe_half_2ms=100", "safe_sleep_1ms=300")
    check(target.pid in listed([*as_nobody(ALWAYS_NEEDED), folder / "safescoped"], folder), "it is not in the list")
    code, truth, report, said = profile(t, folder, ALWAYS_NEEDED, target)
    check(code == 0 and report, f"ended with {code}: {said}")
    target = own_target(t, folder, "safe_half_2ms=100", "safe_sleep_1ms=300")
    process = start(t, folder, ALWAYS_NEEDED, "--comm", "calls", "-v", "-f", "json", "-o", folder / "host.json", *ALWAYS)
    said = ""
    while "processes" not in said and process.poll() is None:
        said += process.stderr.readline()
    target.go()
    again = target.result()
    process.send_signal(signal.SIGINT)
    code, _, err = ended(process)
    check(code == 0, f"ended with {code}: {said + err}")
    for counted, made in ((report, truth), (json.loads((folder / "host.json").read_text()), again)):
        for function in ("safe_half_2ms", "safe_sleep_1ms"):
            check(calls_of(counted, function) == made[function]["calls"], f"{function}: {calls_of(counted, function)} calls")


def listed(command, cwd):
    done = subprocess.run([*map(str, command), "--list", "-f", "json"], capture_output=True, text=True, cwd=cwd, timeout=60)
    check(done.returncode == 0, f"ended with {done.returncode}: {done.stderr}")
    return {p["pid"]: p for p in json.loads(done.stdout)["processes"]}


def test_list(t):
    """--list has the same rows as for root."""
    folder = place(t)
    targets = [t.target("Server", ready="waiting", way=way) for way in ("thr", "dyn")]
    root, own = listed([SAFESCOPED], folder), listed([*as_nobody(CAPS), folder / "safescoped"], folder)
    for row in (*root.values(), *own.values()):
        del row["cpu_ns"]  # it grows between the two
    for target in targets:
        check(target.pid in root and own.get(target.pid) == root[target.pid], f"{own.get(target.pid)}, and root has {root}")


def test_host(t):
    """A session of the whole host has the programs that already run and those that start during it."""
    folder = place(t)
    early = t.target("Server", ready="waiting")
    process = start(t, folder, CAPS, "-v", "-d", "8", "-f", "json", "-o", folder / "host.json", *ALWAYS)
    said = ""
    while "processes" not in said and process.poll() is None:
        said += process.stderr.readline()
    late = Target([program("Calls", "thr"), "1", "safe_sleep_1ms=200"])
    t.started.append(late)
    late.go()
    late.result()
    code, _, err = ended(process)
    check(code in (0, 1), f"ended with {code}: {said + err}")
    pids = {target["pid"] for target in json.loads((folder / "host.json").read_text())["targets"]}
    check({early.pid, late.pid} <= pids, f"{pids}, and not {early.pid}, {late.pid}: {said + err}")


def test_doctor(t):
    """--doctor finds that nothing required is missing, and prints the setcap command for the capabilities."""
    folder = place(t)
    for caps, code in ((CAPS, 0), ([], 2)):
        done = subprocess.run([*as_nobody(caps), folder / "safescoped", "--doctor"], capture_output=True, text=True, timeout=60)
        check(done.returncode == code, f"ended with {done.returncode}: {done.stdout}")
        for cap in CAPS:
            check(re.search(rf"^{'ok' if caps else '(?i:missing)'} +{cap} ", done.stdout, re.M), f"{cap}: {done.stdout}")
        line = re.search(r"setcap (\S+) (\S+)$", done.stdout, re.M)
        check(line and line.group(2) == str(folder / "safescoped"), f"no line for setcap: {done.stdout}")
        check(line.group(1).removesuffix("+ep").upper().split(",") == CAPS, f"the unit and the line differ: {line.group(1)}")


def test_setcap(t):
    """The command that --doctor prints works: with it an ordinary user without other privileges profiles another user's
    program."""
    if not shutil.which("setcap"):
        raise Skip("no setcap")
    folder = place(t)
    done = subprocess.run([*as_nobody([]), folder / "safescoped", "--doctor"], capture_output=True, text=True, timeout=60)
    line = re.search(r"setcap (\S+) (\S+)$", done.stdout, re.M)
    subprocess.run(["setcap", line.group(1), line.group(2)], check=True)
    target = t.target("Calls", 2, "safe_sleep_1ms=300")
    process = subprocess.Popen(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", folder / "safescoped",
                                "--pid", str(target.pid), "-v", "-f", "json", "-o", folder / "p.json", *ALWAYS],
                               cwd=folder, stderr=subprocess.PIPE, text=True)
    t.finally_do(lambda: (process.kill(), process.wait()))
    said = ""
    while "attached" not in said and process.poll() is None:
        said += process.stderr.readline()
    target.go()
    truth = target.result()
    said += process.communicate(timeout=90)[1]
    check(process.returncode == 0, f"ended with {process.returncode}: {said}")
    report = json.loads((folder / "p.json").read_text())
    check(calls_of(report, "safe_sleep_1ms") == truth["safe_sleep_1ms"]["calls"], f"{calls_of(report, 'safe_sleep_1ms')} calls")


# ── without one of the capabilities ──


def without(cap):
    check(cap in CAPS, f"the unit has no {cap}")
    return [c for c in CAPS if c != cap]


@cases(*ALWAYS_NEEDED)
def test_needed(t, cap):
    """Nothing starts without it, and the one line printed names it."""
    folder = place(t)
    target = t.target("Server", ready="waiting")
    code, _, err = ended(start(t, folder, without(cap), "--pid", target.pid, "-d", "1", "-f", "json", "-o", folder / "p.json"))
    lines = [line for line in err.splitlines() if line]
    check(code == 2 and len(lines) == 1 and cap in lines[0], f"ended with {code}: {err}")


def test_other_users(t):
    """Without CAP_DAC_READ_SEARCH another user's process cannot be read."""
    folder = place(t)
    target = t.target("Server", ready="waiting")
    code, _, err = ended(start(t, folder, without("CAP_DAC_READ_SEARCH"), "--pid", target.pid, "-d", "1", "-f", "json",
                               "-o", folder / "p.json"))
    check(code != 0 and "CAP_DAC_READ_SEARCH" in err, f"ended with {code}: {err}")


def renamed(t):
    """(a private copy of the runtime's library, a program that runs with it)"""
    folder = t.dir / "lib"
    folder.mkdir()
    found = subprocess.run(["ldd", program("Server", "dyn")], capture_output=True, text=True, check=True).stdout
    rts = re.search(r"(libHSrts\S+) => (\S+)", found)
    shutil.copy(rts.group(2), folder / rts.group(1))
    target = t.target("Server", ready="waiting", way="dyn", env={"LD_LIBRARY_PATH": str(folder)})
    check(str(folder) in Path(f"/proc/{target.pid}/maps").read_text(), "it has another library")
    return folder / rts.group(1), target


def renamed_library(t):
    """A program whose runtime library is deleted from the disk while it runs."""
    library, target = renamed(t)
    library.unlink()
    return target


def test_files_that_are_gone(t):
    """Without CAP_CHECKPOINT_RESTORE the runtime's library is not found after it was deleted."""
    folder = place(t)
    target = renamed_library(t)
    for caps, good in ((CAPS, True), (without("CAP_CHECKPOINT_RESTORE"), False)):
        code, _, err = ended(start(t, folder, caps, "--pid", target.pid, "-d", "1", "-f", "json", "-o", folder / "p.json"))
        check((code == 0) == good, f"{caps}: ended with {code}: {err}")


def kernel_names(folder):
    return re.findall(r"(\w+)_\[k\]", (folder / "p.folded").read_text())


def test_kernel_names(t):
    """Without CAP_SYSLOG the kernel's functions have no names."""
    folder = place(t)
    for caps, good in ((CAPS, True), (without("CAP_SYSLOG"), False)):
        target = t.target("Calls", 1, "safe_sleep_1ms=400")
        process = start(t, folder, caps, "--pid", target.pid, "-v", "-f", "folded", "--weight", "wall", "--kernel-stacks",
                        "-o", folder / "p.folded")
        said = ""
        while "attached" not in said and process.poll() is None:
            said += process.stderr.readline()
        target.go()
        target.result()
        code, _, err = ended(process)
        check(code == 0, f"ended with {code}: {said + err}")
        named = any("nanosleep" in name for name in kernel_names(folder))
        check(named == good, f"{caps}: {set(kernel_names(folder))}")


def test_all_are_proved(t):
    """Every capability of the unit has a test here, and the unit's user is not one who would not need them."""
    proved = [*ALWAYS_NEEDED, "CAP_DAC_READ_SEARCH", "CAP_CHECKPOINT_RESTORE", "CAP_SYSLOG", "CAP_LEASE"]
    check(CAPS == proved, f"the unit has {CAPS}")
    check(f"AmbientCapabilities={' '.join(CAPS)}\n" in UNIT and "DynamicUser=yes\n" in UNIT, "the unit's other lines")


def test_switch_in_a_closed_folder(t):
    """The switch-off file is looked up with the daemon's capabilities, and not with the user's permissions alone."""
    folder, closed = place(t), Path(tempfile.mkdtemp(prefix="safescoped-test-"))
    t.finally_do(lambda: shutil.rmtree(closed))
    (closed / "off").write_text("")
    code, _, err = ended(start(t, folder, CAPS, "--off-file", closed / "off", "-d", "3", "-f", "json", "-o", folder / "off.json"))
    check(code == 1 and "switched off" in err, f"ended with {code}: {err}")


@cases("one_session", "windows")
def test_no_room_for_processes(t, mode):
    """Where this user may start no process, the message names the limit."""
    folder = place(t)
    done = subprocess.run([*as_nobody(CAPS), "prlimit", "--nproc=1", folder / "safescoped", "--comm", "no-such-program", "-d", "1",
                           "-f", "json", "-o", folder, *(("--window", "1") if mode == "windows" else ())],
                          capture_output=True, text=True, cwd=folder, timeout=90)
    lines = done.stderr.splitlines()
    check(done.returncode == 2 and len(lines) == 1 and "no more than 1 processes" in lines[0] and "RLIMIT_NPROC" in lines[0],
          f"ended with {done.returncode}: {lines}")


# ── what cannot be profiled ──


def test_nothing_to_profile(t):
    """A session that profiled nothing ends with 1."""
    done = subprocess.run([SAFESCOPED, "--comm", "no-such-program", "-d", "0.5", "-f", "json", "-o", t.dir / "x.json"],
                          capture_output=True, text=True, timeout=60)
    check(done.returncode == 1 and "nothing was profiled" in done.stderr, f"ended with {done.returncode}: {done.stderr}")
    check(json.loads((t.dir / "x.json").read_text())["session"]["exit"] == 1, "the report says another exit code")


if __name__ == "__main__":
    run(globals())
