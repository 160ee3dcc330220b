#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""--heap-census: what a heap consists of, against GHC's own heap profile by closure type of the same heap."""

import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

from harness import GHC_ROOT, SAFESCOPED, Skip, cases, check, check_near, profile_run, run, thorough
from test_export import tool


def profile(path):
    """The last sample before that of the program's exit, which is nearly empty: closure type → bytes."""
    samples, sample = [], {}
    for line in path.read_text().splitlines():
        if line.startswith("BEGIN_SAMPLE"):
            sample = {}
        elif line.startswith("END_SAMPLE"):
            samples.append(sample)
        elif "\t" in line:
            name, size = line.rsplit("\t", 1)
            sample[name] = sample.get(name, 0) + int(size)
    most = max(sum(s.values()) for s in samples)
    return [s for s in samples if 2 * sum(s.values()) > most][-1]


def kind_of(name):
    """All thunks count as one kind, and so do all functions: the profile distinguishes them by size, the census by
    their code."""
    for kind in "THUNK", "FUN":
        if name.startswith(kind) and name != "THUNK_SELECTOR":
            return kind
    return re.sub(r"^([^:]+-[\d.]+)-(inplace|\w{4,})(?=:)", r"\1", name.removeprefix("main:"))


def of_census(closure):
    name, kind = closure["closure"], closure["kind"]
    if kind == "function" and name != "PAP":
        return "FUN"
    if kind == "thunk" and name not in ("BLACKHOLE", "AP", "AP_STACK", "THUNK_SELECTOR"):
        return "THUNK"
    return name


def replayed(capture, out):
    subprocess.run([SAFESCOPED, "--replay", capture, "-q", "-f", "json", "-o", out], check=True, timeout=60)
    return json.loads(Path(f"{out}.json").read_text())


def shares(sizes):
    whole = sum(sizes.values())
    return {k: 100 * v / whole for k, v in sizes.items()}


def profiled(t, way, rts, *args):
    """The report's target, and the heap profile that GHC wrote, if `rts` asks for one."""
    written = Path(GHC_ROOT or os.getcwd()) / "Census.hp"
    t.finally_do(lambda: written.unlink(missing_ok=True))
    _, report, _ = profile_run(t, "Census", 5, *args, way=way, rts=rts, options=("--heap-census", "--max-overhead", "100"))
    return report.target(), profile(written) if rts else None


@cases("v", "thr", "thr_p", "dyn", "thr.stripped", "lld")
def test_types(t, way):
    """The shares of the largest closure types, with old thunks that were updated, large objects and arrays, while the
    program runs on. A profiled program is compared with a heap profile of the unprofiled one: with a heap profile of
    its own all its collections would be major ones, one after the other."""
    if way == "lld" and (GHC_ROOT or not shutil.which("ld.lld")):
        raise Skip("it is another GHC's program" if GHC_ROOT else "no lld")
    rts = ("-hT", "-i1.1")
    target, theirs = profiled(t, way, () if way == "thr_p" else rts)
    if way == "thr_p":
        _, theirs = profiled(t, "thr", rts)
    heap = target["heap"]
    read, ours = heap["census_read"], {}
    check(read and not read["cut"], f"a census: {read}, missing: {target['missing']}")
    # without the profiling words in the headers
    for c in heap["census"]:
        name = of_census(c)
        ours[name] = ours.get(name, 0) + c["bytes"] - (16 * c["count"] if way.endswith("_p") else 0)
    lost = read["gap_bytes"] + read["unknown_bytes"]
    check(lost <= 0.05 * read["walked_bytes"], f"what could not be identified: {read}")
    want = {}
    for name, size in theirs.items():
        want[kind_of(name)] = want.get(kind_of(name), 0) + size
    check_near("bytes in all", sum(ours.values()), sum(want.values()), (0.1 if way == "thr_p" else 0.05) * sum(want.values()))
    got, want = shares(ours), shares(want)
    largest = sorted(want, key=want.get, reverse=True)[:10]
    check(len(largest) == 10 and want[largest[9]] > 1, f"too simple a heap: {want}")
    for name in largest:
        check(abs(got.get(name, 0) - want[name]) <= 3, f"{name}: {got.get(name, 0):.2f} %, should be {want[name]:.2f} %")
    print("   ", ", ".join(f"{n} {got.get(n, 0):.1f} ({want[n]:.1f})" for n in largest))


def test_disturbed(t):
    """Each collection moves what is being read after the one before it, and none follows the last one."""
    _, theirs = profiled(t, "v", ("-hT", "-i1.1"))
    heap = profiled(t, "v", (), "train")[0]["heap"]
    read, want = heap["census_read"], sum(theirs.values())
    check_near("bytes in all", sum(c["bytes"] for c in heap["census"]), want, 0.05 * want)
    check(read["unknown_bytes"] <= 0.05 * read["walked_bytes"], f"what could not be identified: {read}")


@thorough
def test_leak(t):
    """What grows is named, with the amount that the program has kept; the same in a replay and in pprof."""
    saved = t.dir / "p.capture"
    truth, report, _ = profile_run(t, "Alloc", "leak", 9, 5000000, rts=("-A1m",),
                                   options=("--heap-census", "--max-overhead", "100", "--save", saved, "-f", "json,pprof"))
    target = report.target()
    heap = target["heap"]
    grown = max(heap["census"], key=lambda c: c["bytes"] - c["first_bytes"])
    check(grown["closure"] in ("Main.Kept", "ghc-prim:GHC.Types.:", "ghc-internal:GHC.Internal.Types.:"), f"what grows is {grown}")
    kept = next(c for c in heap["census"] if c["closure"] == "Main.Kept")
    # half of the kept bytes are Main.Kept: three of the six words of each element. By then the program has kept a
    # proportional number of them
    began = time.time() - time.monotonic() + truth["start"] - report.json["session"]["start_unix_ns"] / 1e9
    share = (heap["census_read"]["at_ns"] / 1e9 - began) / truth["seconds"]
    check_near("bytes of what is kept", kept["bytes"], truth["kept"] / 2 * share, 0.1 * truth["kept"])
    found = next((f for f in target["findings"] if f["kind"] == "heap_grows"), None)
    check(found and "growing:" in found["text"] and "Main.Kept (+" in found["text"], f"found: {found}")
    check(replayed(saved, t.dir / "again")["targets"][0]["heap"] == heap, "a replay's heap differs")
    shown = tool("go", "tool", "pprof", "-sample_index=inuse_space", "-unit=b", "-top", t.dir / "p.pb.gz")
    check(re.search(rf"^\s*{kept['bytes']}B .* Main\.Kept$", shown, re.M), f"pprof shows {shown[:600]}, not {kept}")


@cases("thr", "thr_p")
def test_compact(t, way):
    """A compact region is counted in full, including the blocks after the first one."""
    if not GHC_ROOT and not subprocess.run(["ghc-pkg", "--simple-output", "list", "ghc-compact"], capture_output=True).stdout:
        raise Skip("GHC has no ghc-compact")
    truth, report, _ = profile_run(t, "Compact", 3, way=way, options=("--heap-census", "--max-overhead", "100"))
    read = report.target()["heap"]["census_read"]
    check(not read["cut"] and truth["bytes"] > 10e6, f"{read}, {truth}")
    check_near("bytes of compact regions", read["compact_bytes"], truth["bytes"], 0.02 * truth["bytes"])


@cases("none", "nonmoving")
def test_incomplete(t, what):
    """Without a major collection there is no census, and the exit code reports it; if part of the heap cannot be found,
    the census shows how much."""
    if what == "none":
        # its only major collection is the one at its end, which leaves nothing
        target = t.target("Step", 300, rts=("-A64m", "-I0"))
        session = t.attach(target, "--heap-census")
        target.go()
        target.result()
        code = session.wait()
        heap = t.report().target().get("heap")
        check(code == 1 and not (heap and heap["census"]), f"ended with {code}: {heap}")
        check(any("incomplete (exit status 1)" in l for l in session.err.seen), f"it printed {session.err.seen}")
        check(any("heap census" in m for m in t.report().target()["missing"]), f"{t.report().target()['missing']}")
        return
    _, report, _ = profile_run(t, "Census", 4, rts=("--nonmoving-gc",), options=("--heap-census", "--max-overhead", "100"))
    read = report.target()["heap"]["census_read"]
    found = read["blocks_bytes"] + read["large_bytes"] + read["compact_bytes"]
    check(read["live_bytes"] > 20e6 and found < 0.9 * read["live_bytes"], f"{read}")


if __name__ == "__main__":
    run(globals())
