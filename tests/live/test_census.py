#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""--heap-census: what a heap is made of, against GHC's own heap profile by closure type of the same heap."""

import os
from pathlib import Path

from harness import GHC_ROOT, cases, check, check_near, profile_run, run


def profile(path):
    """The last sample but that of the program's exit, which has next to nothing: closure type → bytes."""
    samples, sample = [], None
    for line in path.read_text().splitlines():
        if line.startswith("BEGIN_SAMPLE"):
            sample = {}
        elif line.startswith("END_SAMPLE"):
            samples.append(sample or {})
            sample = None
        elif sample is not None and "\t" in line:
            name, size = line.rsplit("\t", 1)
            sample[name] = sample.get(name, 0) + int(size)
    most = max(sum(s.values()) for s in samples)
    return [s for s in samples if 2 * sum(s.values()) > most][-1]


def kind_of(name):
    """All thunks, and all functions, are one: the profile has them by the number of their words, the census by
    their code."""
    for kind in "THUNK", "FUN":
        if name.startswith(kind) and name != "THUNK_SELECTOR":
            return kind
    return name.removeprefix("main:")


def of_census(closure):
    name, kind = closure["closure"], closure["kind"]
    if kind == "function" and name != "PAP":
        return "FUN"
    if kind == "thunk" and name not in ("BLACKHOLE", "AP", "AP_STACK", "THUNK_SELECTOR"):
        return "THUNK"
    return name


def shares(sizes):
    whole = sum(sizes.values())
    return {k: 100 * v / whole for k, v in sizes.items()}


def profiled(t, way, rts):
    """The target of the report, and the profile that GHC has written, if it was asked for one."""
    written = Path(GHC_ROOT or os.getcwd()) / "Census.hp"
    t.finally_do(lambda: written.unlink(missing_ok=True))
    _, report, _ = profile_run(t, "Census", 5, way=way, rts=rts, options=("--heap-census", "--max-overhead", "100"))
    return report.target(), profile(written) if rts else None


@cases("v", "thr", "thr_p", "dyn")
def test_types(t, way):
    """The shares of the largest closure types, with thunks that were updated when they were old, large objects and
    arrays, while the program runs on. A profiled program's is compared with a profile of the other one: with a heap
    profile of its own all its collections are major ones, one after the other."""
    rts = ("-hT", "-i1.1")
    target, theirs = profiled(t, way, () if way == "thr_p" else rts)
    if way == "thr_p":
        _, theirs = profiled(t, "thr", rts)
    heap = target["heap"]
    read, ours = heap["census_read"], {}
    check(read and not read["cut"], f"a census: {read}, missing: {target['missing']}")
    # without the profiler's part of headers
    for c in heap["census"]:
        name = of_census(c)
        ours[name] = ours.get(name, 0) + c["bytes"] - (16 * c["count"] if way.endswith("_p") else 0)
    lost = read["gap_bytes"] + read["unknown_bytes"]
    check(lost <= 0.05 * read["walked_bytes"], f"what could not be told apart: {read}")
    want = {}
    for name, size in theirs.items():
        want[kind_of(name)] = want.get(kind_of(name), 0) + size
    check_near("bytes in all", sum(ours.values()), sum(want.values()), 0.05 * sum(want.values()))
    got, want = shares(ours), shares(want)
    largest = sorted(want, key=want.get, reverse=True)[:10]
    check(len(largest) == 10 and want[largest[9]] > 1, f"too simple a heap: {want}")
    for name in largest:
        check(abs(got.get(name, 0) - want[name]) <= 3, f"{name}: {got.get(name, 0):.2f} %, should be {want[name]:.2f} %")
    print("   ", ", ".join(f"{n} {got.get(n, 0):.1f} ({want[n]:.1f})" for n in largest))


if __name__ == "__main__":
    run(globals())
