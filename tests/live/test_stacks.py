#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Nearly all stacks reach the thread's start, and contain the program's own functions."""

import re

from harness import cases, check, check_near, profile_run, run
from test_unwind import agrees, whole

# Functions that must be on the stacks, by the program's source.
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
    """Whether the function is there, as `Main.function` or as a worker or local function that GHC made of it."""
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
    # With gmp nearly all time is in libgmp's own code, which Haskell calls unsafely: there are so few samples that one
    # may be incomplete.
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
    """What happens in every second sampling period, and takes less than a fifth of a period, is sampled in the right
    proportions."""
    truth, report, _ = profile_run(t, "Step", 2000, options=("-F", "1000"))
    for name in "early", "late":
        ns = sum(f["self_ns"] for f in report.target()["functions"] if re.match(rf"~?Main\.(\$w)?{name}\b", f["name"]))
        want = truth[f"{name}_ns"]
        check_near(name, ns, want, 0.3 * want)


def test_deep_stacks_are_elided(t):
    """200000 frames are too many: the middle of the stack is left out, visibly, and the rest is right."""
    _, report, _ = profile_run(t, "Work", "deep", 1.5, options=("-F", "999"))
    stacks = report.target()["stacks"]
    check(stacks["elided"] > 0.2 * stacks["samples"], f"deep stacks are not elided: {stacks}")
    folded = (t.dir / "p.folded").read_text()
    check("chunks left out]" in folded, "no [N chunks left out] in the folded stacks")


def test_gmp_by_name(t):
    """gmp called from Haskell is an unsafe call with the name of its function."""
    _, report, _ = profile_run(t, "Work", "gmp", 1.5, options=("-F", "999"))
    functions = {c["function"] for c in report.target()["unsafe_calls"]}
    check(any("gmp" in f for f in functions), f"no gmp function among the unsafe calls: {functions}")


@cases("thr", "v", "dyn")
def test_unsafe_function_on_stack(t, way):
    """A stack goes down to the foreign function: the Haskell caller and the C function are on the same stack."""
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
