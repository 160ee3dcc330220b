#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Stacks: nearly all end at the thread's start, and they hold the program's own functions."""

import re

from harness import cases, check, check_near, profile_run, run
from test_unwind import agrees, whole

# What a program's own source says must be on its stacks.
FUNCTIONS = {
    "alloc": ("growTree", "foldTree"),
    "stm": ("stmPut",),
    "exc": ("excDeep",),
    "deep": ("deepSum", "shallow"),
    "gmp": (),
    "lazy": ("lazyChain",),
}
WAYS = ("v", "thr", "thr_p", "dyn")


def has(names, function):
    """`Main.function`, or what GHC makes of it: workers, and local functions of it."""
    return any(n.lstrip("~").startswith("Main.")
               and function in n for n in names)


@cases(*(f"{mode}-{way}" for mode in FUNCTIONS for way in WAYS))
def test_complete(t, case):
    mode, way = case.split("-")
    rts = ("-N2",) if way != "v" and mode in ("alloc", "stm") else ()
    _, report, _ = profile_run(t, "Work", mode, 1, way=way, rts=rts, options=("-F", "1999"))
    whole(report)
    agrees(t, report)
    target = report.target()
    stacks = target["stacks"]
    haskell, complete = stacks["haskell_samples"], stacks["haskell_complete"]
    # Of gmp nearly all time is in libgmp's own code, which Haskell calls unsafely: of so few samples
    # one may be in the way of the share.
    enough, spare = (1, 1) if mode == "gmp" else (20, 0)
    check(haskell >= enough, f"only {haskell} samples in Haskell code: {stacks}")
    check(complete >= 0.99 * haskell - spare, f"{complete} of {haskell} Haskell samples are complete: {stacks}")
    for function in FUNCTIONS[mode]:
        check(has(report.names(), function), f"no {function} on any stack: "
              f"{sorted(n for n in report.names() if 'Main.' in n)}")
    check(target["ghc"]["threaded"] == (way != "v"), f"way {way}, report says {target['ghc']}")
    check(target["ghc"]["profiled"] == way.endswith("_p"), f"way {way}, report says {target['ghc']}")
    check(target["ghc"]["layout_checked"], "the layout was not checked")


def test_in_step(t):
    """What happens at every second period of the sampler, and takes less than a fifth of one, is sampled in all its
    parts."""
    truth, report, _ = profile_run(t, "Step", 2000, options=("-F", "1000"))
    for name in "early", "late":
        ns = sum(f["self_ns"] for f in report.target()["functions"] if re.match(rf"~?Main\.(\$w)?{name}\b", f["name"]))
        want = truth[f"{name}_ns"]
        check_near(name, ns, want, 0.3 * want)


def test_deep_stacks_are_elided(t):
    """200000 frames do not fit: the middle is left out, visibly, and the rest is right."""
    _, report, _ = profile_run(t, "Work", "deep", 1.5, options=("-F", "999"))
    stacks = report.target()["stacks"]
    check(stacks["elided"] > 0.2 * stacks["samples"], f"deep stacks are not elided: {stacks}")
    folded = (t.dir / "p.folded").read_text()
    check("chunks left out]" in folded, "no [N chunks left out] in the folded stacks")


def test_gmp_by_name(t):
    """gmp called from Haskell is an unsafe call, and carries its function's name."""
    _, report, _ = profile_run(t, "Work", "gmp", 1.5, options=("-F", "999"))
    functions = {c["function"] for c in report.target()["unsafe_calls"]}
    check(any("gmp" in f for f in functions), f"no gmp function among the unsafe calls: {functions}")


@cases("thr", "v", "dyn")
def test_unsafe_function_on_stack(t, way):
    """Down to the foreign function: Haskell's caller and the C function in one stack."""
    profile_run(t, "Calls", 1, "unsafe_spin_1ms=700", "safe_spin_1ms=700", way=way,
                options=("-F", "999", "--max-overhead", "1000"))
    stacks = (t.dir / "p.folded").read_text().splitlines()
    for function in ("unsafe_spin_1ms", "safe_spin_1ms"):
        mine = [s for s in stacks if f";{function}" in s]
        check(mine, f"no stack with {function}")
        with_caller = [s for s in mine if "Main." in s.split(f";{function}")[0]]
        weight = lambda lines: sum(int(s.rsplit(" ", 1)[1]) for s in lines)
        check(weight(with_caller) >= 0.95 * weight(mine),
              f"{function}: {weight(with_caller)} of {weight(mine)} µs have a Haskell caller: {mine[:3]}")


if __name__ == "__main__":
    run(globals())
