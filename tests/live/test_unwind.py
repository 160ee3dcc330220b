#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""C frames: every sample has its whole stack, and the stacks of a program with a known call tree are paths in that
tree."""

import re

from harness import GHC_ROOT, SLOWNESS, Skip, cases, check, profile_run, run

# The share of stacks that must be whole. On an emulated processor a program's last moments take as long as many
# samples: the dynamic linker's destructors have no unwind rows, and the memory of a process that exits cannot be read
# any more.
ENOUGH = 0.995 if SLOWNESS == 1 else 0.98


def whole(report, enough=ENOUGH):
    s = report.target()["stacks"]
    parts = (s["complete"] + s["elided"] + s["gap"] + s["truncated"] + s["none"]
             + sum(s["broken"].values()))
    check(parts == s["samples"], f"the stacks' ends add up to {parts}: {s}")
    # on a busy machine the program gets so little CPU time that a single such sample is too many
    check(s["samples"] >= 100, f"only {s['samples']} samples: {s}")
    good = s["complete"] + s["elided"]
    check(good >= enough * s["samples"] - 1, f"{good} of {s['samples']} samples are complete: {s}")


def agrees(t, report):
    """Unwind rows lead to the known return address of StgRun. They may differ once, in the program's last moments:
    flushing its handles is another in-call.
    """
    said = [l for s in t.started if hasattr(s, "err") for l in s.err.seen if "disagree" in l]
    n = sum(int(re.search(r"(\d+) samples", l).group(1)) for l in said)
    check(n <= 1 or n <= 0.0005 * report.target()["stacks"]["samples"], f"unwind rows led elsewhere: {said}")


# Call trees below the thread's name, from the root: the program's own frames on a stack must form a path in them. Names
# in [] or () are marks, states or files; frames of the RTS and of libc may be anywhere.
OUTER = ["mix_outer", "mix_middle", "mix_inner"]
TREES = {
    "unsafe": ["mixLoop", *OUTER],
    "safe": ["mixLoop", *OUTER],
    "sort": ["mixLoop", "mix_sort", "qsort", "mix_compare"],
    "callback": ["mixLoop", "mix_call", "mix_call_more", "mixBack", *OUTER],
    "many": ["mixLoop", "mix_many", *OUTER],
    "leaf": ["mixLoop", "mix_leaf", "mix_spin"],
    "signal": ["mixLoop", "mix_raise", "mix_handler", *OUTER],
}


def path_of(stack, tree):
    """The stack's frames that are in the tree, from the root, without repetitions."""
    path = []
    for frame in stack.split(";")[2:]:
        for known in tree:
            # matches a Haskell function's workers and local functions, and libc's internal names of its functions
            exact = known.startswith("mix_")
            if (frame == known) if exact else (known in frame):
                if not path or path[-1] != known:
                    path.append(known)
                break
    return path


@cases(*(f"{mode}-{way}" for mode in TREES for way in ("thr", "v", "dyn", "thr_p", "bare")))
def test_tree(t, case):
    """Each sampled stack is a path in the tree from its root, and nearly all reach its end. "bare": C code without
    unwind rows, only by its instructions."""
    mode, way = case.split("-")
    if GHC_ROOT and way == "bare":
        raise Skip("scripts/ghc-root makes no programs in this way")
    tree = TREES[mode]
    _, report, _ = profile_run(t, "Mixed", mode, 1, way=way,
                               options=("-F", "1499", "--max-overhead", "1000", "--weight", "wall"))
    whole(report)
    agrees(t, report)
    wrong, whole_us, total_us = [], 0, 0
    for line in (t.dir / "p.folded").read_text().splitlines():
        stack, weight = line.rsplit(" ", 1)
        # If a thread was preempted long after its last sample only its program counter is known.
        if "mix_" not in stack or "[no stack]" in stack:
            continue
        path = path_of(stack, tree)
        total_us += int(weight)
        if path != tree[:len(path)]:
            wrong.append((line, path))
        elif path == tree:
            whole_us += int(weight)
    check(total_us > 250000, f"only {total_us} us in C code")
    check(not wrong, f"{len(wrong)} stacks that cannot be: {wrong[:3]}")
    # The record of a safe call, if there is no sample in it, ends at the called function.
    share = 0.1 if mode in ("safe", "callback") else 0.9
    check(whole_us >= share * total_us, f"{whole_us} of {total_us} us reach the tree's end")


@cases("thr", "v", "thr_p", "dyn")
def test_nested(t, way):
    """A dozen Haskell threads on one C stack, each of which called C code that called the next: their stacks are whole."""
    _, report, _ = profile_run(t, "Nest", "nest", 12, 100, way=way,
                               options=("-F", "4999", "--max-overhead", "1000", "--weight", "wall"))
    # There are few samples, as nearly all of the time it sleeps at the bottom. One may hit a thread that is ending.
    whole(report, 0.98)
    deepest = max(line.count("nest_down;") for line in (t.dir / "p.folded").read_text().splitlines())
    check(deepest >= 11, f"the deepest stack has {deepest} levels")


@cases("thr", "dyn")
def test_bound_threads(t, way):
    _, report, _ = profile_run(t, "Nest", "bound", 1000, way=way, rts=("-N2",),
                               options=("-F", "4999", "--max-overhead", "1000"))
    whole(report)


@cases("thr", "v", "p", "dyn")
def test_many_short_calls(t, way):
    """Half of the samples are in the few instructions around a safe call: their stacks are whole all the same."""
    _, report, _ = profile_run(t, "Calls", 1, "safe_spin_5us=60000", way=way,
                               options=("-F", "4999", "--max-overhead", "1000"))
    whole(report)


@cases(*TREES)
def test_stripped_without_rows(t, mode):
    """C code with neither symbols nor unwind rows: its stacks are whole, and none of it counts as Haskell."""
    if GHC_ROOT:
        raise Skip("scripts/ghc-root makes no programs in this way")
    options = ("-F", "1499", "--max-overhead", "1000")
    _, twin, _ = profile_run(t, "Mixed", mode, 2, way="thr", options=options)
    _, bare, _ = profile_run(t, "Mixed", mode, 2, way="bare.stripped", options=options)
    whole(bare)
    shares = []
    for report in (twin, bare):
        states = report.states()
        busy = sum(states.get(s, 0) for s in ("haskell", "unsafe_call_cpu", "safe_call_cpu", "rts"))
        of = {s: 100 * states.get(s, 0) / busy for s in ("haskell", "unsafe_call_cpu", "safe_call_cpu")}
        if mode == "callback":
            # whether C code below it counts as part of the unsafe or of the safe call depends on the time of the
            # samples
            of = {"haskell": of["haskell"], "C code": of["unsafe_call_cpu"] + of["safe_call_cpu"]}
        shares.append(of)
    for what, share in shares[0].items():
        check(abs(share - shares[1][what]) <= 1, f"{what}: {shares[1][what]:.1f} %, its twin {share:.1f} %")


@cases("thr", "v")
def test_foreign_thread(t, way):
    """The stacks of a thread that has nothing to do with Haskell begin where the C library started it."""
    _, report, _ = profile_run(t, "Mixed", "thread", 1, way=way, options=("-F", "1499"))
    whole(report)
    stacks = [l for l in (t.dir / "p.folded").read_text().splitlines() if ";mix_inner" in l
              and "[no stack]" not in l]
    check(stacks, "mix_inner is on no stack")
    for line in stacks:
        frames = [re.sub("^~", "", f) for f in line.rsplit(" ", 1)[0].split(";")]
        at = frames.index("mix_thread") if "mix_thread" in frames else -1
        check(at > 2 and frames[at:at + 4] == ["mix_thread", *OUTER],
              f"not from the thread's start to mix_inner: {line}")


if __name__ == "__main__":
    run(globals())
