#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Complete sessions with a build that has address and undefined-behaviour sanitizers, which end it at an invalid memory
access. It is the fuzzers' build, which make check has made already."""

import functools
import os
import signal
import subprocess
import time

import harness
from harness import BUILD, ROOT, Failure, cases, check, run
from test_calls import ALWAYS

SANITIZED = BUILD / "fuzz" / "safescoped"
OPTIONS = {"ASAN_OPTIONS": "detect_leaks=1:exitcode=99", "UBSAN_OPTIONS": "print_stacktrace=1"}


@functools.cache
def sanitized():
    done = subprocess.run(["make", "-s", f"-j{os.cpu_count()}", "FUZZING=1", "CC=clang", SANITIZED.relative_to(ROOT)],
                          cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"make FUZZING=1: {done.stderr[-500:]}")


def session(t, program, pid, *args, formats="json,speedscope,folded,text", env=None):
    saved = harness.SAFESCOPED
    harness.SAFESCOPED = program
    try:
        return t.session("--pid", pid, "-v", "-f", formats, "-o", t.stem, *args, env=env)
    finally:
        harness.SAFESCOPED = saved


@cases("alloc-thr", "exc-thr_p", "deep-v", "stm-dyn")
def test_sanitized_samples(t, case):
    sanitized()
    mode, way = case.split("-")
    target = t.target("Work", mode, 1.5, way=way)
    s = session(t, SANITIZED, target.pid, "-F", "999", env=OPTIONS)
    s.wait_attached()
    target.go()
    target.result()
    check(s.wait() == 0, f"it printed {s.err.seen}")
    stacks = t.report().target()["stacks"]
    # how much CPU time the program gets in 1.5 s depends on the machine; what matters is that stacks were walked
    check(stacks["haskell_samples"] >= 10, f"no session to speak of: {stacks}")


@cases("end", "interrupt", "killed")
def test_sanitized_calls(t, how):
    sanitized()
    target = t.target("Calls", 4, "safe_half_2ms=200", "safe_spin_5us=20000", "unsafe_spin_20us=1000",
                      rts=("-N2",))
    s = session(t, SANITIZED, target.pid, *ALWAYS, "-F", "999", env=OPTIONS)
    s.wait_attached()
    target.go()
    if how == "end":
        target.result()
    else:
        time.sleep(0.5)
        if how == "interrupt":
            s.signal(signal.SIGINT)
        else:
            target.process.kill()
    check(s.wait() == 0, f"it printed {s.err.seen}")


def test_sanitized_failures(t):
    sanitized()
    for pid in (2, 99999999, os.getpid()):
        s = session(t, SANITIZED, pid, "-d", "1", env=OPTIONS)
        code = s.wait()
        check(code in (2, 64), f"pid {pid}: exit code {code}; it printed {s.err.seen}")


if __name__ == "__main__":
    run(globals())
