#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What safescoped reports of a GHC: version, way, capabilities, names. With GHC_ROOT, of another release, whose
programs run in a mount namespace of their own (tests/run ghc)."""

import re
import subprocess
from pathlib import Path

from harness import GHC_ROOT, NotHere, cases, check, check_near, profile_run, run
from test_calls import ALWAYS, check_lanes

WAYS = ("v", "thr", "p", "thr_p", "dyn")
RTS_WAY = {"dyn": "rts_thr_dyn"}


def installed_ghc():
    if GHC_ROOT:
        return (Path(GHC_ROOT) / "programs" / "ghc-version").read_text().strip()
    return subprocess.run(["ghc", "--numeric-version"], capture_output=True, text=True,
                          check=True).stdout.strip()


def test_layout_table(t):
    """The table of struct offsets matches the headers of this GHC."""
    generator = Path(__file__).resolve().parents[2] / "scripts" / "gen-layouts"
    if GHC_ROOT:
        folder = Path(GHC_ROOT) / "usr" / "lib" / "ghc"
    else:
        folder = subprocess.run(["ghc", "--print-libdir"], capture_output=True, text=True, check=True).stdout.strip()
    done = subprocess.run([generator, "--verify", folder], capture_output=True, text=True)
    check(done.returncode == 0, done.stderr)
    check(installed_ghc() in done.stdout, f"it measured another GHC: {done.stdout}")


@cases(*WAYS)
def test_identity(t, way):
    """Version, way, layout and capabilities are recognised, with one capability and, in a threaded way, with three: the
    RTS keeps a single one in MainCapability, several in an array."""
    threaded = way in ("thr", "thr_p", "dyn")
    for capabilities in (1, 3) if threaded else (1,):
        truth, report, target = profile_run(
            t, "Calls", 2, "safe_spin_1ms=100", "interruptible_sleep_1ms=50", "unsafe_spin_1ms=100", way=way,
            rts=(f"-N{capabilities}",) if threaded else (), options=(*ALWAYS, "-F", "499"))
        found = report.target(target.pid)
        ghc = found["ghc"]
        check(ghc["version"] == installed_ghc(), f"version {ghc['version']}, should be {installed_ghc()}")
        check(ghc["way"] == RTS_WAY.get(way, "rts_" + way), f"way {way}, it says {ghc['way']}")
        check(ghc["threaded"] == threaded and ghc["profiled"] == way.endswith("p"), f"way {way}: {ghc}")
        check(ghc["layout_checked"] and ghc["version_known"], f"the layout was not checked: {ghc}")
        check(found["capabilities"] == capabilities, f"{found['capabilities']} capabilities of {capabilities}")
        compare_counts(truth, report)
        check_lanes(report)
        # A closure may get its neighbour's name, but not one of another module.
        for function in ("safe_spin_1ms", "interruptible_sleep_1ms"):
            for site in report.call(function)["sites"]:
                check(site["caller"].lstrip("~").startswith("Main."), f"{function} is called by {site['caller']}")
                check(site["library"] == "Calls", f"{function} is in {site['library']}")


def compare_counts(truth, report):
    for function, want in truth.items():
        if not function.startswith("unsafe"):
            got = report.call(function)
            check(got["calls"] == want["calls"] and got["exact"],
                  f"{function}: {got['calls']} calls, should be {want['calls']}")
    named = {c["function"] for c in report.target()["unsafe_calls"]}
    check("unsafe_spin_1ms" in named, f"no unsafe call unsafe_spin_1ms; there are {named}")


def runtime_statistics(path):
    """{key: value} of what `+RTS -t --machine-readable` wrote: the command line, then pairs of strings."""
    text = path.read_text().split("\n", 1)[1]
    return {key: float(value) for key, value in re.findall(r'\("(\w+)", "([0-9.]+)"\)', text)}


@cases(*(f"alloc-{way}" for way in WAYS), "stm-thr")
def test_collections(t, case):
    """The number and the time of collections are those that the runtime counts, and no time is of unknown kind."""
    mode, way = case.split("-")
    rts = ("-N2", "-A1m") if way in ("thr", "thr_p", "dyn") else ("-A1m",)
    inside = f"/tmp/statistics-{case}" if GHC_ROOT else str(t.dir / "statistics")
    outside = Path(f"{GHC_ROOT or ''}{inside}")
    t.finally_do(lambda: outside.unlink(missing_ok=True))
    _, report, _ = profile_run(t, "Work", mode, 1.5, way=way, rts=(*rts, f"-t{inside}", "--machine-readable"),
                               options=(*ALWAYS, "-F", "499"))
    want, got = runtime_statistics(outside), report.target()["gc"]
    # The collections at the program's start come before the session.
    check(0 <= want["num_GCs"] - got["count"] <= 4, f"{got['count']} collections of {want['num_GCs']}")
    check_near("time of collections", got["pause_ns"], 1e9 * want["GC_wall_seconds"],
               0.05 * 1e9 * want["GC_wall_seconds"] + 20000 * want["num_GCs"])
    sums = {}
    for lane in report.target()["lanes"]:
        for state, ns in lane["states"].items():
            sums[state] = sums.get(state, 0) + ns
    check(sums["unknown"] <= 0.01 * sum(sums.values()), f"unknown time: {sums}")
    check(sums["gc_work"] > 0, f"no collection: {sums}")


def function_offsets(path):
    """{file offset: name} of a file's functions, by binutils."""
    text = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True, check=True).stdout
    loads = [[int(x, 16) for x in m.groups()]
             for m in re.finditer(r"^\s+LOAD\s+(0x\w+)\s+(0x\w+)\s+0x\w+\s+(0x\w+)", text, re.M)]
    names = {}
    for line in subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout.splitlines():
        fields = line.split()
        for offset, start, size in loads:
            if len(fields) == 3 and fields[1] in "tT" and start <= int(fields[0], 16) < start + size:
                names[int(fields[0], 16) - start + offset] = fields[2]
    return names


@cases("v", "thr", "p", "thr_p")
def test_stripped(t, way):
    """Without symbols the functions are found by their call sites, and every safe call is counted at its own."""
    if not GHC_ROOT:
        raise NotHere("test_stripped.py does it for the installed GHC")
    twin = Path(GHC_ROOT) / "programs" / way / "Calls"
    names, calls = function_offsets(twin), {}
    truth, report, target = profile_run(
        t, "Calls", 1, "safe_spin_20us=5000", "safe_sleep_1ms=200", "interruptible_sleep_1ms=100",
        way=f"{way}.stripped", steady=True, options=ALWAYS)
    found = report.target(target.pid)
    ghc = found["ghc"]
    check(ghc["version"] == installed_ghc() and ghc["way"] == "rts_" + way, f"it says {ghc}")
    check(ghc["layout_checked"] and ghc["version_known"], f"the layout was not checked: {ghc}")
    for function in ("suspendThread", "resumeThread"):
        check(found["found_by"][function] == "callsites", f"found by {found['found_by']}")
    for c in found["safe_calls"]:
        m = re.fullmatch(r"\[.*\]\+0x([0-9a-f]+)", c["function"])
        name = names.get(int(m.group(1), 16)) if m else c["function"]
        calls[name] = calls.get(name, 0) + c["calls"]
    for function, want in truth.items():
        check(calls.get(function) == want["calls"],
              f"{function}: {calls.get(function)} calls, should be {want['calls']}")


@cases("v", "thr", "p", "thr_p")
def test_stripped_stacks(t, way):
    if not GHC_ROOT:
        raise NotHere("test_stripped.py does it for the installed GHC")
    _, report, _ = profile_run(t, "Work", "alloc", 1.5, way=f"{way}.stripped", options=("-F", "999"))
    stacks = report.target()["stacks"]
    check(stacks["haskell_samples"] >= 150, f"only few samples: {stacks}")
    check(stacks["haskell_complete"] >= 0.99 * stacks["haskell_samples"], f"incomplete: {stacks}")


if __name__ == "__main__":
    run(globals())
