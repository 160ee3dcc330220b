#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Cost centres of profiled programs, against what GHC's own profiler counts in the same run."""

import json
from pathlib import Path

from harness import GHC_ROOT, Skip, cases, check, profile_run, run

# Tolerances in percentage points. When both count the same ticks, only those at the session's start and end differ.
TICKS, SAMPLES = 0.5, 2
MANY = 10000
TREE = {"churn": ("heavy", "middle"), "heavy": ("rounds",), "middle": ("rounds",), "light": ("rounds",),
        "inner": ("rounds",), "rounds": ("main",), "main": ("MAIN", "CAF")}
# Cost centres that GHC leaves out of its shares (rts/ProfilerReport.c, ignoreCC).
OVERHEAD = ("GC", "SYSTEM", "OVERHEAD_of", "IDLE", "DONT_CARE")


def key(centre):
    return centre["label"], centre["module"], centre["src_loc"]


def ghc_ticks(path):
    """{centre: ticks} of a profile that `-pj` wrote."""
    profile = json.loads(path.read_text())
    centres = {c["id"]: key(c) for c in profile["cost_centres"]}
    ticks = {}

    def add(node):
        centre = centres[node["id"]]
        ticks[centre] = ticks.get(centre, 0) + node["ticks"]
        for child in node["children"]:
            add(child)

    add(profile["profile"])
    return ticks


def shares(ticks):
    ticks = {c: n for c, n in ticks.items() if c[0] not in OVERHEAD}
    whole = sum(ticks.values())
    return {c: 100 * n / whole for c, n in ticks.items()}, whole


def profiled(t, name, *args, way, rts, options):
    """A run under both profilers: (what GHC counted, the report's target)."""
    stem = f"/tmp/profile-{t.name.strip(']').split('[')[-1]}" if GHC_ROOT else str(t.dir / "ghc")
    outside = Path(f"{GHC_ROOT or ''}{stem}.prof")
    t.finally_do(lambda: GHC_ROOT and outside.unlink(missing_ok=True))
    _, report, _ = profile_run(t, name, *args, way=way, rts=(*rts, "-pj", f"-po{stem}"),
                               options=("--max-overhead", "100", *options), steady=True)
    return ghc_ticks(outside), report.target()


def compare(got, want, tolerance):
    """The centres above 5 % whose shares differ by more than `tolerance`, as text."""
    got, want = shares(got)[0], shares(want)[0]
    both = [(c, got.get(c, 0), want.get(c, 0)) for c in set(got) | set(want)]
    check(sum(theirs >= 5 for _, _, theirs in both) >= 3, "too simple a program")
    return ", ".join(f"{c}: {mine:.1f} %, should be {theirs:.1f} %" for c, mine, theirs in both
                     if max(mine, theirs) >= 5 and abs(mine - theirs) > tolerance)


def add(sum_, more):
    for centre, n in more.items():
        sum_[centre] = sum_.get(centre, 0) + n


@cases("p", "thr_p")
def test_ticks(t, way):
    """The RTS's ticks are counted as it counts them itself."""
    want, target = profiled(t, "Centres", 2, way=way, rts=("-V0.0002",), options=("-F", "99"))
    centres = target["cost_centres"]
    check({(c["source"], c["counted"]) for c in centres} == {("memory", "ticks")}, f"{centres[:1]}")
    got = {key(c): c["self_ticks"] for c in centres}
    check(min(shares(got)[1], shares(want)[1]) >= MANY / 2, f"only few ticks: {shares(got)[1]}")
    wrong = compare(got, want, TICKS)
    check(not wrong, wrong)
    total = {c["label"]: c["total_ticks"] for c in centres}
    check(total["MAIN"] >= total["rounds"] > 0.95 * shares(got)[1],
          f"what encloses all the work lacks some of its ticks: {total}")


@cases("p.stripped", "thr_p.stripped")
def test_samples(t, way):
    """Without symbols, with each way of finding the tick: when the timer's thread goes to sleep, what the timer calls,
    or samples. GHC's ticks also pass while the thread waits for a CPU, which on a busy machine can favour one centre:
    more runs are added until that averages out."""
    got, want, wrong = {}, {}, None
    for _ in range(4):
        more, target = profiled(t, "Centres", 2.8, way=way, rts=("-V0.00025",), options=("-F", "3999"))
        centres = target["cost_centres"]
        counted = "samples" if target["found_by"]["tick"] == "none" else "ticks"
        check({(c["source"], c["counted"]) for c in centres} == {("memory", counted)}, f"{centres[:1]}")
        add(got, {key(c): c["self_ticks"] for c in centres})
        add(want, more)
        wrong = compare(got, want, SAMPLES)
        if not wrong and min(shares(got)[1], shares(want)[1]) >= MANY:
            return
    check(not wrong, wrong)
    check(shares(got)[1] >= MANY / 2, f"only few samples: {shares(got)[1]}")


def paths(t):
    for line in (t.dir / "p.folded").read_text().splitlines():
        stack, _, weight = line.rpartition(" ")
        yield stack.split(";")[2:], int(weight)


def centres_of(stack):
    return [f for f in stack if f == "MAIN" or f.startswith("Main.") or f.endswith(".CAF")]


@cases("p", "thr_p", "thr_p.stripped")
def test_stacks(t, way):
    """By default a profiled program's stacks are paths of its tree of cost centres."""
    profiled(t, "Centres", 2, way=way, rts=(), options=("-F", "999", "--weight", "cpu"))
    deepest = n = 0
    for stack, weight in paths(t):
        labels = [f.split(".")[-1] for f in centres_of(stack)]
        if not labels or labels[0] not in ("MAIN", "CAF"):
            continue
        for outer, inner in zip(labels, labels[1:]):
            # What GHC floats to the top level is a CAF, and still belongs to the centre that it was in.
            check(outer in ("CAF", *TREE.get(inner, ("MAIN", "rounds", "main"))), f"{inner} below {outer}: {stack}")
        n += weight
        deepest += weight if "churn" in labels else 0
    check(deepest > 0.3 * n > 0, f"{deepest} of {n} in churn")


@cases("stg", "both")
def test_choice(t, stacks):
    profiled(t, "Centres", 2, way="thr_p", rts=(), options=("-F", "499", "--stacks", stacks))
    marks = sum("[Haskell stack]" in stack for stack, _ in paths(t))
    check(marks == 0 if stacks == "stg" else marks > 0, f"--stacks {stacks}: {marks} stacks with the mark")
    for stack, _ in paths(t):
        check(stacks == "both" or stack[0] != "MAIN", f"--stacks stg: {stack}")
        if "[Haskell stack]" in stack:
            check("MAIN" in stack[:stack.index("[Haskell stack]")], f"{stack}")


def test_no_centres(t):
    """A program in which only GHC has put cost centres: its stacks go on with Haskell functions below them."""
    if GHC_ROOT:
        raise Skip("scripts/ghc-root makes no programs in this way")
    profile_run(t, "Work", "exc", "2", way="p_plain", options=("-F", "499", "--weight", "cpu"))
    named = n = 0
    for stack, weight in paths(t):
        if "MAIN" in stack:
            n += weight
            named += weight if any(f.startswith("Main.") for f in stack[stack.index("MAIN"):]) else 0
    check(named > 0.5 * n > 0, f"{named} of {n} µs in MAIN have one of the program's functions")


def test_not_profiled(t):
    """--stacks ccs for a program that is not profiled: reported as missing, and the rest is there."""
    target = t.target("Calls", 1, "safe_sleep_1ms=50", way="thr")
    session = t.attach(target, "--stacks", "ccs")
    target.go()
    target.result()
    check(session.wait() == 1, f"something that was requested is missing: {session.err.seen}")
    found = t.report().target()
    check(any("no cost centres" in m for m in found["missing"]), f"{found['missing']}")
    check(found["cost_centres"] is None, f"{found['cost_centres']}")
    check(any("safe_sleep_1ms" in stack for stack, _ in paths(t)), "no stack with the call")


def test_safe_calls(t):
    """In a safe call the cost centre is that of the suspended thread, which is not on the capability then."""
    profiled(t, "Calls", 2, "safe_sleep_1ms=300", way="thr_p", rts=(), options=("-F", "99"))
    inside = [stack for stack, _ in paths(t) if "safe_sleep_1ms" in stack]
    check(inside, "no stack with the call")
    for stack in inside:
        before = stack[:stack.index("safe_sleep_1ms")]
        check(before and before[0] == "MAIN" and before[-1].startswith("Main."), f"{stack}")


if __name__ == "__main__":
    run(globals())
