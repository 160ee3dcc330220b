#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""--kernel-stacks: the kernel's frames are on top of each stack, as in /proc/PID/task/TID/stack, without those that are
there only because of the probes."""

import re
import time
from pathlib import Path

from harness import Skip, cases, check, profile_run, run

PROBES = re.compile(r"bpf_prog_|bpf_trace_run|__traceiter_|uprobe|int3|__bpf_")


def stacks(t):
    for line in (t.dir / "p.folded").read_text().splitlines():
        stack, _, weight = line.rpartition(" ")
        yield stack.split(";")[2:], int(weight)


def kernel_part(stack):
    return [f.removesuffix("_[k]") for f in stack if f.endswith("_[k]")]


def kernel_functions():
    text = Path("/proc/kallsyms").read_text()
    names = {fields[2] for line in text.splitlines() if (fields := line.split()) and int(fields[0], 16)}
    if not names:
        raise Skip("the kernel shows no addresses (kernel.kptr_restrict)")
    return names


def kernel_stack(pid, tid):
    """The stack in /proc, root first."""
    lines = Path(f"/proc/{pid}/task/{tid}/stack").read_text().splitlines()
    return [m.group(1) for line in reversed(lines) if (m := re.match(r"\[<0>\] ([^+]+)\+0x", line))]


@cases("safe", "unsafe")
def test_asleep_in_a_call(t, kind):
    """In a call that sleeps: nanosleep on top, the foreign function below it, and Haskell code below that."""
    known = kernel_functions()
    profile_run(t, "Calls", 1, f"{kind}_sleep_1ms=400", options=("-F", "499", "--kernel-stacks", "--weight", "wall"))
    all_, with_kernel = 0, 0
    for stack, weight in stacks(t):
        check(not any(PROBES.search(f) for f in stack), f"the probes' own frames: {stack}")
        for f in kernel_part(stack):
            check(f in known, f"{f} is no function of this kernel: {stack}")
        if f"{kind}_sleep_1ms" not in stack or stack[-1] != f"[{kind} call, blocked]":
            continue
        all_ += weight
        inside = kernel_part(stack)
        if any("nanosleep" in f for f in inside):
            with_kernel += weight
            first = next(i for i, f in enumerate(stack) if f.endswith("_[k]"))
            check(f"{kind}_sleep_1ms" in stack[:first], f"the kernel is not on top: {stack}")
            check(any("entry_SYSCALL_64" in f for f in inside[:1]), f"entered otherwise: {stack}")
    check(all_ > 0 and with_kernel > 0.9 * all_, f"{with_kernel} of {all_} us asleep have the kernel's frames")


def test_as_the_kernel_says(t):
    """The stack of a thread that sleeps in the kernel, against the one in /proc."""
    target = t.target("Calls", 1, "safe_sleep_20ms=100")
    session = t.attach(target, "-F", "99", "--kernel-stacks", "--weight", "wall")
    target.go()
    want = None
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and not want:
        for task in Path(f"/proc/{target.pid}/task").iterdir():
            found = kernel_stack(target.pid, task.name)
            if any("nanosleep" in f for f in found):
                want = found
    check(want, "no thread was seen in nanosleep")
    target.result()
    check(session.wait() == 0, f"{session.err.seen}")
    # On top of it are functions of the kernel's section .sched.text, which /proc leaves out.
    for stack, _ in stacks(t):
        got = kernel_part(stack)
        if "safe_sleep_20ms" in stack and got[:len(want)] == want:
            check(all("schedule" in f or f == "do_nanosleep" for f in got[len(want):]), f"{got}, and the kernel has {want}")
            return
    check(False, f"no stack matches the kernel's: {want}")


def test_probes_are_left_out(t):
    """Samples taken in the traps of the call probes themselves do not show the probes' frames."""
    profile_run(t, "Calls", 1, "safe_spin_5us=100000",
                options=("-F", "4999", "--kernel-stacks", "--max-overhead", "100"))
    for stack, _ in stacks(t):
        check(not any(PROBES.search(f) for f in stack), f"the probes' own frames: {stack}")


def test_off_by_default(t):
    profile_run(t, "Calls", 1, "safe_sleep_1ms=100", options=("-F", "499"))
    for stack, _ in stacks(t):
        check(not kernel_part(stack), f"it was not requested: {stack}")


if __name__ == "__main__":
    run(globals())
