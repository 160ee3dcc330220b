#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""--list: the GHC processes of the host, what was found out about each, and no other process."""

import json
import os
import re
import shutil
import subprocess
import time

from harness import GHC_ROOT, ROOT, SAFESCOPED, NotHere, Skip, Target, cases, check, program, run

WANT = {
    "thr": dict(way="rts_thr", linking="dynamic", symbols="full", names=["exact"]),
    "v": dict(way="rts_v", linking="dynamic", symbols="full", names=["exact"]),
    "thr_p": dict(way="rts_thr_p", linking="dynamic", symbols="full", names=["exact", "description"]),
    "p": dict(way="rts_p", linking="dynamic", symbols="full", names=["exact", "description"]),
    "dyn": dict(way="rts_thr_dyn", linking="dynamic Haskell", symbols="dynamic only", names=["exact"]),
    "mold": dict(way="rts_thr", linking="dynamic", symbols="full", names=["exact"]),
}


def listing(*args):
    done = subprocess.run([SAFESCOPED, "--list", *map(str, args)], capture_output=True, text=True, timeout=60)
    check(done.returncode == 0, f"ended with {done.returncode}: {done.stderr}")
    return done.stdout


def rows(*args):
    report = json.loads(listing("-f", "json", *args))
    return {p["pid"]: p for p in report["processes"]}


def ghc_version():
    return subprocess.run(["ghc", "--numeric-version"], capture_output=True, text=True).stdout.strip()


@cases(*WANT)
def test_each_way(t, way):
    if way == "mold" and (GHC_ROOT or not shutil.which("mold")):
        raise Skip("it is another GHC's program" if GHC_ROOT else "no mold")
    rts = ("-N2",) if way != "v" and way != "p" else ()
    # Without a threaded RTS nothing else runs during a safe call.
    name = "Calls" if way in ("v", "p") else "Server"
    target = t.target(*((name, 1, "safe_sleep_1ms=1") if name == "Calls" else (name,)), way=way,
                      ready="ready" if name == "Calls" else "waiting", rts=rts)
    row = rows().get(target.pid)
    check(row, "a GHC program is not in the list")
    for key in ("linking", "symbols", "names"):
        check(row[key] == WANT[way][key], f"{key} is {row[key]!r}, should be {WANT[way][key]!r}")
    check(row["ghc"]["way"] == WANT[way]["way"], f"the way is {row['ghc']['way']}")
    check(row["ghc"]["version"] == ghc_version(), f"the version is {row['ghc']['version']}")
    check(row["capabilities"] == (2 if rts else 1), f"capabilities: {row['capabilities']}")
    threads = len(os.listdir(f"/proc/{target.pid}/task"))
    check(row["threads"] == threads, f"{row['threads']} threads, there are {threads}")
    check(row["user"] == "root" and row["comm"] == name, f"user and command: {row}")
    check(row["profilable"] == "yes" and row["why"] is None, f"it cannot be profiled: {row}")
    check(row["ns_pid"] == target.pid, f"ns_pid is {row['ns_pid']}")


def test_stripped(t):
    target = Target([t.stripped("Server")], ready="waiting")
    t.started.append(target)
    row = rows()[target.pid]
    check(row["symbols"] == "none" and row["names"] == ["module"], f"the row is {row}")
    check(row["ghc"]["way"] == "rts_thr" and row["profilable"] == "yes", f"the row is {row}")


def test_others_are_not_listed(t):
    other = Target([program("not_ghc.c")])
    t.started.append(other)
    target = t.target("Server", ready="waiting")
    session = t.session("--pid", target.pid, "-d", "20", "-v", "-f", "json", "-o", t.stem)
    session.wait_attached()
    all_rows = rows()
    check(target.pid in all_rows, "the GHC program is not there")
    check(other.pid not in all_rows, "a C program is listed")
    check(session.pid not in all_rows, "safescoped itself is listed")
    check(os.getpid() not in all_rows, "python is listed")


def test_user(t):
    """The user in the list is the one that --user selects it by: the real one, whatever rights the process has."""
    if GHC_ROOT:
        raise NotHere("the users do not depend on the GHC")
    path = t.copy_for_all(program("Calls"))
    command = [path, "1", "safe_sleep_1ms=1"]
    real, effective = (Target(["setpriv", option, "65534", *command]) for option in ("--ruid", "--euid"))
    t.started += [real, effective]
    users = {pid: row["user"] for pid, row in rows("--exe", path).items()}
    check(users == {real.pid: "nobody", effective.pid: "root"}, f"the users are {users}")
    for user, target in (("nobody", real), ("root", effective)):
        selected = rows("--exe", path, "--user", user)
        check(set(selected) == {target.pid}, f"--user {user} selects {set(selected)}")


@cases("dac_read_search", "sys_ptrace")
def test_containers_root(t, lacking):
    """Root of a container has CAP_DAC_OVERRIDE, which reads other users' files as well; only where their processes cannot
    be seen a message says so."""
    if not shutil.which("setpriv"):
        raise Skip("no setpriv")
    if GHC_ROOT:
        raise NotHere("the users do not depend on the GHC")
    path = t.copy_for_all(program("Calls"))
    target = Target(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", path, "1", "safe_sleep_1ms=1"])
    t.started.append(target)
    done = subprocess.run(["setpriv", f"--bounding-set=-{lacking}", f"--inh-caps=-{lacking}", SAFESCOPED, "--list", "--exe", path,
                           "-f", "json"], capture_output=True, text=True, timeout=60)
    check(done.returncode == 0, f"{done}")
    seen = [(row["pid"], row["profilable"]) for row in json.loads(done.stdout)["processes"]]
    note = "only this user's processes are visible" in done.stderr
    if lacking == "sys_ptrace":
        check(not seen and note, f"{seen}, {done.stderr}")
    else:
        check(seen == [(target.pid, "yes")] and not note, f"{seen}, {done.stderr}")


def test_eventlog(t):
    source = t.dir / "Wait.hs"
    source.write_text("module Main (main) where\nmain :: IO ()\nmain = putStrLn \"ready\" >> getLine >> pure ()\n")
    done = subprocess.run(["ghc", "-v0", "-threaded", "-eventlog", "-rtsopts", "-outputdir", t.dir / "o",
                           "-o", t.dir / "Wait", source], capture_output=True, text=True)
    check(done.returncode == 0, done.stderr)
    named = t.dir / "Wait.eventlog"
    other = t.dir / "strange name"
    for path in (named, other):
        target = Target([t.dir / "Wait", "+RTS", "-l", f"-ol{path}", "-RTS"], ready=None)
        t.started.append(target)
        deadline = time.monotonic() + 10
        while True:
            row = rows().get(target.pid)
            if row and row["eventlog"]:
                break
            check(time.monotonic() < deadline, f"the eventlog {path.name} is not seen: {row}")
            time.sleep(0.2)
        check(row["eventlog"] == str(path), f"the eventlog is {row['eventlog']}")


def test_table(t):
    target = t.target("Server", ready="waiting")
    lines = listing().splitlines()
    check(re.match(r"\s*PID\b", lines[0]), f"no heading: {lines[0]}")
    row = [l for l in lines if l.split() and l.split()[0] == str(target.pid)]
    check(len(row) == 1, f"not one line for the process: {row}")
    for word in ("Server", "rts_thr", ghc_version(), "yes"):
        check(word in row[0], f"{word} is not in {row[0]!r}")


def test_manual(t):
    """The manual page lists the fields of the JSON, and no others."""
    target = t.target("Server", ready="waiting")
    row = rows()[target.pid]
    text = re.sub(r"\n\.\w+ |\n|[.,()]", " ", (ROOT / "scripts" / "safescoped.8").read_text())
    listed = " ".join(text.split()).partition("and processes : for each process ")[2].partition(" CONFIGURATION ")[0].split()
    fields = set(row) | set(row["ghc"])
    check(fields <= set(listed), f"it does not have {fields - set(listed)}")
    check({w for w in listed if "_" in w} <= fields, f"it has fields that are not there: {listed}")


def test_output_file(t):
    target = t.target("Server", ready="waiting")
    out = t.dir / "list.json"
    text = listing("-f", "json", "-o", out)
    check(text == "", f"on standard output: {text}")
    report = json.loads(out.read_text())
    check(target.pid in {p["pid"] for p in report["processes"]}, "not in the file")
    check(out.stat().st_mode & 0o777 == 0o600, "the file's mode")


def test_pid_namespace(t):
    if not shutil.which("unshare"):
        raise Skip("no unshare")
    target = Target(["unshare", "-pf", "--kill-child", "--mount-proc", program("Server", "thr")], ready="waiting")
    t.started.append(target)
    inside = [p for p in rows().values() if p["ns_pid"] != p["pid"] and p["ns_pid"] == 1 and p["comm"] == "Server"]
    check(len(inside) == 1, f"not one process with a pid of its own: {inside}")
    check(inside[0]["profilable"] == "yes", f"it cannot be profiled: {inside[0]}")


def test_many_processes_are_quick(t):
    """Twenty processes of the same program are analysed once, and a hundred that are not Haskell cost little: all is
    listed within 5 s."""
    others = [subprocess.Popen(["sleep", "60"]) for _ in range(100)]
    targets = [Target([program("Server", "thr")], ready=None) for _ in range(20)]
    try:
        for target in targets:
            target.wait_for("waiting", 60)
        start = time.monotonic()
        seen = rows()
        took = time.monotonic() - start
        check(all(target.pid in seen for target in targets), "not all are listed")
        check(not any(o.pid in seen for o in others), "sleep is listed")
        check(took < 5, f"it took {took:.1f} s")
    finally:
        for target in targets:
            target.kill()
        for o in others:
            o.kill()
            o.wait()


@cases(("--list", "--pid", "1"), ("--list", "-f", "speedscope"), ("--list", "-f", "json,text"),
       ("--list", "--doctor"), ("--list", "--", "true"), ("--pid", "1", "--", "true"), ("word",))
def test_usage(t, args):
    session = t.session(*args)
    code = session.wait(30)
    check(code == 64, f"exit code {code}, should be 64; it printed {session.err.seen}")


if __name__ == "__main__":
    run(globals())
