#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs without symbols: stripped test programs, against what they count themselves and against their unstripped
twins; and Debian's own packages, against a second, independent count."""

import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.request
from pathlib import Path

from harness import BUILD, Failure, Skip, Target, cases, check, program, run
from walls import check_wall

ALWAYS = ("--max-overhead", "1000")
COMPLETE = 0.98
STATIC_WAYS = ("v", "thr", "p", "thr_p")
RTS_WAY = {"v": "rts_v", "thr": "rts_thr", "p": "rts_p", "thr_p": "rts_thr_p"}


def stripped(name, way):
    """(stripped copy, its twin with symbols)"""
    twin = program(name, way)
    folder = BUILD / "programs" / f"{way}-stripped"
    folder.mkdir(parents=True, exist_ok=True)
    copy = folder / name
    subprocess.run(["strip", "-o", copy, twin], check=True)
    listed = subprocess.run(["nm", copy], capture_output=True, text=True)
    check("no symbols" in listed.stderr, f"{copy} still has symbols")
    return copy, twin


def function_offsets(path):
    """{file offset: name} of a file's functions, by binutils."""
    loads = []
    text = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True, check=True).stdout
    for m in re.finditer(r"^\s+LOAD\s+(0x\w+)\s+(0x\w+)\s+0x\w+\s+(0x\w+)", text, re.M):
        loads.append([int(x, 16) for x in m.groups()])
    names = {}
    for line in subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout.splitlines():
        fields = line.split()
        if len(fields) != 3 or fields[1] not in "tT":
            continue
        vaddr = int(fields[0], 16)
        for offset, start, size in loads:
            if start <= vaddr < start + size:
                names[vaddr - start + offset] = fields[2]
    return names


def by_name(report, twin, pid):
    """Safe calls by their function's name: in the report most functions are [FILE]+0xOFFSET."""
    names, calls = function_offsets(twin), {}
    for c in report.target(pid)["safe_calls"]:
        m = re.fullmatch(r"\[.*\]\+0x([0-9a-f]+)", c["function"])
        name = names.get(int(m.group(1), 16)) if m else c["function"]
        calls.setdefault(name, []).append(c)
    return calls


def check_identity(target, way):
    ghc = target["ghc"]
    check(ghc["version"] == installed_ghc(), f"version {ghc['version']}")
    check(ghc["way"] == RTS_WAY[way], f"way {ghc['way']}, should be {RTS_WAY[way]}")
    check(ghc["layout_checked"] and ghc["version_known"], f"not checked: {ghc}")
    check(target["found_by"]["suspendThread"] == "callsites"
          and target["found_by"]["resumeThread"] == "callsites", f"found by {target['found_by']}")
    check(target["found_by"]["capabilities"] in ("memory", "threads"), f"found by {target['found_by']}")


def installed_ghc():
    return subprocess.run(["ghc", "--numeric-version"], capture_output=True, text=True,
                          check=True).stdout.strip()


def run_stripped(t, name, *args, way, rts=(), options=(), steady=False):
    copy, twin = stripped(name, way)
    command = [copy, *args, *(("+RTS", *rts, "-RTS") if rts else ())]
    target = Target(command, steady=steady)
    t.started.append(target)
    session = t.attach(target, *options)
    target.go()
    return target, session, twin


@cases(*STATIC_WAYS)
def test_calls(t, way):
    """Every safe call of a stripped program is counted, at the right call site."""
    target, session, twin = run_stripped(
        t, "Calls", 1, "safe_spin_20us=10000", "safe_spin_1ms=200", "safe_sleep_100us=2000",
        "safe_sleep_20ms=30", "interruptible_sleep_1ms=200", way=way, options=ALWAYS, steady=True)
    truth = target.result()
    code = session.wait()
    check(code == 0, f"safescoped ended with {code}: {session.err.seen}")
    report = t.report()
    check_identity(report.target(target.pid), way)
    missing = report.target(target.pid)["missing"]
    check(any(m.startswith("no symbols") for m in missing), f"the symbols are not reported as missing: {missing}")
    check(not any("eventlog" in m for m in missing), f"an eventlog that nobody asked for is missing: {missing}")
    calls = by_name(report, twin, target.pid)
    for function, want in truth.items():
        if not want["calls"]:
            continue
        check(function in calls, f"no safe call {function}; there are {sorted(map(str, calls))}")
        sites = calls[function]
        got = sum(c["calls"] for c in sites)
        check(got == want["calls"], f"{function}: {got} calls, should be {want['calls']}")
        check(all(c["exact"] for c in sites), f"{function}: not exact")
        check(all(c["interruptible"] == function.startswith("interruptible") for c in sites),
              f"{function}: interruptible is wrong")
        check_wall(function, sum(c["wall_ns"] for c in sites), want)


@cases(*(f"{mode}-{way}" for mode in ("alloc", "lazy") for way in STATIC_WAYS))
def test_stacks(t, case):
    mode, way = case.split("-")
    rts = ("-N2",) if way in ("thr", "thr_p") and mode == "alloc" else ()
    target, session, _ = run_stripped(t, "Work", mode, 2, way=way, rts=rts, options=("-F", "999"))
    check(target.wait() == 0, "the test program failed")
    code = session.wait()
    check(code == 0, f"safescoped ended with {code}: {session.err.seen}")
    got = t.report().target(target.pid)
    check_identity(got, way)
    check(got["capabilities"] == (2 if rts else 1), f"{got['capabilities']} capabilities, RTS options {rts}")
    # on a busy machine the program and its collector get only a part of the CPU time
    check_complete(got["stacks"], 60)


@cases("option", "debuglink")
def test_symbols_from_elsewhere(t, how):
    """With its unstripped twin by --symbols, or a debug file by .gnu_debuglink, a stripped program has names, ticks and
    collections again."""
    copy, twin = stripped("Calls", "thr")
    options = [*ALWAYS]
    if how == "option":
        options += ["--symbols", twin]
    else:
        linked = t.dir / "Calls"
        (t.dir / ".debug").mkdir()
        debug = t.dir / ".debug" / "Calls.debug"
        subprocess.run(["objcopy", "--only-keep-debug", twin, debug], check=True)
        subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", copy, linked], check=True)
        copy = linked
    target = Target([copy, 1, "safe_sleep_1ms=300", "unsafe_spin_1ms=300"])
    t.started.append(target)
    session = t.attach(target, *options)
    target.go()
    truth = target.result()
    check(session.wait() == 0, f"safescoped failed: {session.err.seen}")
    report = t.report()
    got = report.call("safe_sleep_1ms")
    check(got["calls"] == truth["safe_sleep_1ms"]["calls"], f"{got['calls']} calls")
    found = report.target()["found_by"]
    check(all(found[x] == "debugfile" for x in ("suspendThread", "resumeThread")), f"found by {found}")
    check(not any(n.startswith("[Calls]+") for n in report.names()), f"no names: {sorted(report.names())}")


@cases("alloc", "exc")
def test_ticks_by_the_thread(t, mode):
    """Without symbols the ticks are found by the timer's thread: as many as the calls of the timer's handler that
    bpftrace counts."""
    copy, twin = stripped("Work", "thr")
    target = Target([copy, mode, 3])
    t.started.append(target)
    # The timer stops while the program is idle: there are no ticks while only one of the two counters runs.
    time.sleep(1)
    session = t.attach(target)
    symbols = subprocess.run(["nm", twin], capture_output=True, text=True, check=True).stdout
    handler = int(re.search(r"^(\w+) t handle_tick$", symbols, re.M)[1], 16)
    counter = Counter(t, copy, handler - vaddr_to_offset(twin), target.pid, by="pid")
    time.sleep(0.5)
    target.go()
    check(target.wait() == 0, "the test program failed")
    check(session.wait() == 0, f"safescoped failed: {session.err.seen}")
    got = t.report().target(target.pid)
    check(got["found_by"]["tick"] == "ghc_ticker", f"found by {got['found_by']}")
    ours, theirs = got["ticks"], counter.result().get(target.pid, 0)
    check(theirs >= 100, f"only {theirs} ticks in 3 s")
    check(abs(ours - theirs) <= 5 + 0.03 * theirs, f"{ours} ticks by the thread, {theirs} calls of the handler")


def test_symbols_of_another_build(t):
    copy, _ = stripped("Calls", "thr")
    target = Target([copy, 1, "safe_sleep_1ms=10"])
    t.started.append(target)
    session = t.session("--pid", target.pid, "-d", "1", "--symbols", program("Work", "thr"))
    check(session.wait() != 0, "safescoped took another build's symbols")
    check(any("from another build" in l for l in session.err.seen), f"it printed {session.err.seen}")


def check_complete(stacks, enough):
    haskell, complete = stacks["haskell_samples"], stacks["haskell_complete"]
    check(haskell >= enough, f"only {haskell} samples in Haskell code: {stacks}")
    check(complete >= COMPLETE * haskell, f"{complete} of {haskell} Haskell samples are complete: {stacks}")


# ── Debian's packages ──


class Package:
    """A running program of a Debian package, with work to do."""

    def __init__(self, t, name, args):
        self.path = shutil.which(name)
        if not self.path:
            raise Skip(f"{name} IS NOT INSTALLED: scripts/install-deps --test brings it")
        self.target = Target([self.path, *args], ready=None)
        t.started.append(self.target)
        # Its output is read so that it never blocks on a full pipe.
        threading.Thread(target=self._drain, daemon=True).start()

    def _drain(self):
        try:
            while os.read(self.target.process.stdout.fileno(), 65536):
                pass
        except (OSError, ValueError):
            pass

    def wait_started(self):
        """Wait until its main thread has slept for a second, that is, waits for its input."""
        stat = Path(f"/proc/{self.target.pid}/stat")
        deadline = time.monotonic() + 60
        seen = []
        while len(seen) < 11 or len(set(seen[-11:])) > 1 or seen[-1][0] != "S":
            check(time.monotonic() < deadline, f"it does not begin: {seen[-3:]}")
            fields = stat.read_text().rpartition(")")[2].split()
            seen.append((fields[0], fields[11], fields[12]))  # state, utime, stime
            time.sleep(0.1)

    def feed(self, text, times, pause):
        stdin = self.target.process.stdin
        for _ in range(times):
            stdin.write(text)
            stdin.flush()
            time.sleep(pause)

    def finish(self, at_most):
        """Close its input and let it work on that for some seconds, or until it has ended."""
        self.target.close_input()
        deadline = time.monotonic() + at_most
        while self.target.process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)


def hledger_web(t):
    journal = t.dir / "test.journal"
    journal.write_text("".join(f"2020-01-{d:02} shop\n  expenses:food  {d}.50\n  assets:cash\n\n"
                               for d in range(1, 29)))
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    p = Package(t, "hledger-web", ["-f", journal, "--serve", "--port", str(port)])

    def get():
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/journal", timeout=30) as answer:
            check(b"expenses:food" in answer.read(), "hledger-web answers something else")

    deadline = time.monotonic() + 60
    while True:
        try:
            get()
            break
        except OSError:
            check(time.monotonic() < deadline, "hledger-web does not answer")
            time.sleep(0.2)

    def drive():
        for _ in range(400):
            get()

    return p, drive


def pandoc(t):
    p = Package(t, "pandoc", ["-f", "markdown", "-t", "html"])
    p.wait_started()
    text = b"# A heading\n\nSome *emphasised* text, a [link](http://example.org), `code`.\n\n- one\n- two\n\n"

    def drive():
        p.feed(text * 100, 30, 0.02)
        p.finish(3)

    return p, drive


def shellcheck(t):
    p = Package(t, "shellcheck", ["-"])
    p.wait_started()
    text = b"if [ $x = \"1\" ]; then echo $y | grep foo; fi\nfor i in $(ls *.txt); do rm $i; done\n"

    def drive():
        p.feed(b"#!/bin/sh\n", 1, 0)
        p.feed(text * 20, 30, 0.01)
        p.finish(4)

    return p, drive


def hledger(t):
    p = Package(t, "hledger", ["-f", "-", "balance"])
    p.wait_started()
    text = b"2020-01-01 shop\n  expenses:food  1.50\n  assets:cash\n\n"

    def drive():
        p.feed(text * 500, 30, 0.01)
        p.finish(4)

    return p, drive


# {name: (how to start and drive it, its RTS, the minimum number of safe calls)}
PACKAGES = {"hledger-web": (hledger_web, "rts_thr", 1000), "pandoc": (pandoc, "rts_thr", 30),
            "shellcheck": (shellcheck, "rts_v", 1), "hledger": (hledger, "rts_thr", 100)}


class Counter:
    """Counts the calls of a function with bpftrace, by return address or by another variable of bpftrace's."""

    def __init__(self, t, path, offset, pid, by='*(uint64*)reg("sp")'):
        if not shutil.which("bpftrace"):
            raise Skip("bpftrace IS NOT INSTALLED: scripts/install-deps --test brings it")
        script = (f"uprobe:{path}:{offset:#x} /pid == {pid}/ {{ @[{by}] = count(); }}"
                  " interval:ms:100 { printf(\"counting\\n\"); }")
        # --unsafe: without symbols bpftrace cannot verify that this is the first byte of an instruction.
        self.target = Target(["bpftrace", "--unsafe", "-e", script], ready=None)
        t.started.append(self.target)
        for _ in range(3):
            line = self.target.lines.until("counting", 30)
            check(line is not None, "bpftrace ended before it counted")

    def result(self):
        self.target.process.send_signal(signal.SIGINT)
        counts = {}
        for line in self.target.lines.all(30):
            m = re.fullmatch(r"@\[(\d+)\]: (\d+)", line)
            if m:
                counts[int(m.group(1))] = int(m.group(2))
        return counts


def vaddr_to_offset(path):
    text = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True, check=True).stdout
    for m in re.finditer(r"^\s+LOAD\s+(0x\w+)\s+(0x\w+)\s+0x\w+\s+(0x\w+)\s+0x\w+\s+R E", text, re.M):
        offset, vaddr, _ = [int(x, 16) for x in m.groups()]
        return vaddr - offset
    raise Failure(f"{path}: no executable segment")


@cases(*PACKAGES)
def test_package(t, name):
    """A packaged program is attached with the right version and way, has as many calls as bpftrace counts at the same
    address, and complete stacks. It is stopped while both counters start and end."""
    start, way, enough = PACKAGES[name]
    package, drive = start(t)
    pid = package.target.pid
    os.kill(pid, signal.SIGSTOP)
    session = t.session("--pid", pid, "-v", "-v", "-f", "json,folded", "-o", t.stem, "-F", "499", *ALWAYS)
    session.wait_attached()
    said = "\n".join(session.err.seen)
    m = re.search(r"suspendThread at file offset 0x([0-9a-f]+)", said)
    check(m, f"safescoped does not print where suspendThread is: {session.err.seen}")
    offset = int(m.group(1), 16)
    counter = Counter(t, package.path, offset, pid)
    os.kill(pid, signal.SIGCONT)
    drive()
    alive = package.target.process.poll() is None
    if alive:
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.3)
    counts = counter.result()
    session.signal(signal.SIGINT)
    code = session.wait()
    if alive:
        os.kill(pid, signal.SIGCONT)
    check(code == 0, f"safescoped ended with {code}: {session.err.seen[-3:]}")
    target = t.report().target(pid)
    check(target["ghc"]["way"] == way, f"way {target['ghc']['way']}, should be {way}")
    check(target["ghc"]["version"] == "9.0.2" and target["ghc"]["layout_checked"], f"{target['ghc']}")
    check_complete(target["stacks"], 20)
    delta = vaddr_to_offset(package.path)
    low, high = {}, {}
    for c in target["safe_calls"]:
        site = int(c["site"].rsplit("+", 1)[1], 16) + delta
        # A call that was open at the start did not begin in the session, but is in `begun` unless it was abandoned:
        # hence two bounds.
        begun = c["calls"] + c["open_at_end"]
        high[site] = high.get(site, 0) + begun
        low[site] = low.get(site, 0) + max(0, begun - c["open_at_start"])
    check(sum(counts.values()) >= enough, f"bpftrace saw hardly any call: {counts}")
    wrong = {hex(s): (low.get(s, 0), high.get(s, 0), counts.get(s, 0)) for s in {*low, *counts}
             if not low.get(s, 0) <= counts.get(s, 0) <= high.get(s, 0)}
    check(not wrong, f"sites with (our lowest, highest, bpftrace's) numbers that differ: {wrong}")


if __name__ == "__main__":
    run(globals())
