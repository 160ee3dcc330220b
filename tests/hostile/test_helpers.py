#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Names come from files that anyone may have written: a symbol or a section that expands to more memory than there is
costs its owner a name, and nobody else anything."""

import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

from hostile import OUT, as_nobody, build, haskell, start
from harness import cases, check, run

MB = 1 << 20
DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def exponential(times):
    """A C++ symbol whose demangled text doubles with each of its function types."""
    symbol, before = "_Z1f1A", "S_"
    for k in range(1, 2 * times, 2):
        symbol += f"PFv{before}{before}E"
        before = f"S{DIGITS[k]}_" if k < 36 else f"S{DIGITS[k // 36]}{DIGITS[k % 36]}_"
    return symbol


def family(pid):
    """A process and its descendants."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        children = []
    return [pid, *(p for child in children for p in family(int(child)))]


def own_memory(pid):
    """The process's anonymous memory in bytes: neither shared nor of a file."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon")), 0)


class Watch(threading.Thread):
    """The maximum memory of a session and its helpers together, and of a single helper."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.most, self.largest, self.ended = pid, 0, 0, False
        self.start()

    def run(self):
        while not self.ended:
            sizes = [own_memory(p) for p in family(self.pid)]
            self.most = max(self.most, sum(sizes))
            self.largest = max(self.largest, *sizes[1:], 0)
            time.sleep(0.02)


def spinning(library):
    """A Haskell program whose foreign calls are in that library's functions."""
    return as_nobody(["env", f"LD_PRELOAD={library}", haskell("Calls"), "1", "safe_sleep_1ms=1500"])


def sampled(t, targets, *options):
    """The report of a session with those targets, the session's watch, and the seconds that its end took."""
    pids = [x for target in targets for x in ("--pid", target.pid)]
    session = t.session(*pids, "-v", "-f", "json", "-o", f"{t.stem}.json", "--max-overhead", "1000", *options)
    session.wait_attached()
    watch = Watch(session.pid)
    for target in targets:
        target.go()
    time.sleep(2)
    began = time.monotonic()
    session.signal(signal.SIGINT)
    code = session.wait()
    watch.ended = True
    watch.join()
    check(code == 0, f"safescoped ended with {code}: {session.err.seen}")
    return t.report(), watch, time.monotonic() - began


@cases("short", "without end")
def test_symbol(t, case):
    symbol = exponential(2 if case == "short" else 40)
    library = build(f"libspin-{len(symbol)}.so", sources=["libspin.c"],
                    flags=["-shared", "-fPIC", f'-DSYMBOL="{symbol}"'])
    target = start(t, spinning(library))
    report, watch, took = sampled(t, [target])
    names = report.names(target.pid)
    if case == "short":
        check(any(n.startswith("f(A, void (*)(A, A)") for n in names), f"it is not demangled: {sorted(names)}")
    else:
        check(symbol in names, f"the symbol is not shown: {sorted(names)}")
    check(watch.most < 400 * MB, f"{watch.most // MB} MB for one symbol")
    check(took < 20, f"the end took {took:.1f} s")


PROGRAMS = 10
INFLATED = 100 * MB


def library_with_dwarf(number):
    """A library with real DWARF, in which the strings' section is INFLATED bytes long and mostly empty."""
    symbol = f"hostile_{number}"
    if number:
        shutil.copy(library_with_dwarf(0), OUT / f"libspin-dwarf-{number}.so")
        return OUT / f"libspin-dwarf-{number}.so"
    library = build("libspin-dwarf-0.so", sources=["libspin.c"],
                    flags=["-shared", "-fPIC", "-g", f'-DSYMBOL="{symbol}"'])
    strings = OUT / "strings"
    if strings.exists():
        return library
    subprocess.run(["objcopy", "-O", "binary", "--only-section=.debug_str", "--set-section-flags", ".debug_str=alloc",
                    library, strings], check=True)
    with open(strings, "r+b") as f:
        f.truncate(INFLATED)
    subprocess.run(["objcopy", f"--update-section=.debug_str={strings}", library], check=True)
    subprocess.run(["objcopy", "--compress-debug-sections=zlib", library], check=True)
    check(library.stat().st_size < 4 * MB, "it was not compressed")
    return library


def test_dwarf_of_many(t):
    targets = [start(t, spinning(library_with_dwarf(k))) for k in range(PROGRAMS)]
    _, watch, took = sampled(t, targets)
    check(watch.most < 900 * MB, f"{watch.most // MB} MB for {PROGRAMS} programs")
    check(took < 30, f"the end took {took:.1f} s")
    # some DWARF was expanded; whether in time depends on how busy the processors are
    check(watch.largest > INFLATED // 2, f"{watch.largest // MB} MB: nobody's DWARF was read")


if __name__ == "__main__":
    run(globals())
