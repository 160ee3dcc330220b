#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Allocation against the runtime's own counters, of each thread and of the process, and against what GHC's profiler
counts."""

import json
import re
import signal
import struct
import subprocess
import time
from pathlib import Path

from harness import GHC_ROOT, SAFESCOPED, Skip, Target, cases, check, check_near, profile_run, program, run, thorough
from kernel_side import BPFTOOL
from test_system import maps_of, stop, whole_host

# In percentage points.
CENTRES = 1.5


def ended(t, *args, way="thr", rts=(), options=()):
    """Profile a run from start to end: (what the program prints, the statistics of +RTS -t, the report's target)."""
    name = f"/tmp/stats-{t.name.replace('[', '-').strip(']')}" if GHC_ROOT else str(t.dir / "stats")
    stats = Path(f"{GHC_ROOT or ''}{name}")
    t.finally_do(lambda: GHC_ROOT and stats.unlink(missing_ok=True))
    truth, report, _ = profile_run(t, "Alloc", *args, way=way,
                                   rts=(f"-t{name}", "--machine-readable", *rts),
                                   options=("--max-overhead", "100", *options))
    found = dict(re.findall(r'\("(\w[\w ]*)", "(\d+)"\)', stats.read_text()))
    check("bytes allocated" in found, f"+RTS -t wrote {stats.read_text()[:200]}")
    return truth, {name: int(value) for name, value in found.items()}, report.target()


def ended_with(t, *args, way="thr", rts=(), options=()):
    """(bytes by function as the program's threads counted them, all bytes, the report's allocation)."""
    truth, stats, target = ended(t, *args, way=way, rts=rts, options=options)
    return truth, stats["bytes allocated"], target["allocation"]


def ghc_bytes(path):
    """{(label, module): bytes} of a profile that `-pj` wrote."""
    profile = json.loads(path.read_text())
    centres = {c["id"]: (c["label"], c["module"]) for c in profile["cost_centres"]}
    found = {}

    def add(node):
        centre = centres[node["id"]]
        found[centre] = found.get(centre, 0) + node["alloc"]
        for child in node["children"]:
            add(child)

    add(profile["profile"])
    return found


def leaves(capture):
    """{leaf: bytes} of the stacks that the capture's session sampled."""
    folded = subprocess.run([SAFESCOPED, "--replay", capture, "--weight", "alloc", "-f", "folded", "-o", "-"],
                            check=True, capture_output=True, text=True, timeout=120).stdout
    found = {}
    for line in folded.splitlines():
        stack, _, count = line.rpartition(" ")
        leaf = stack.split(";")[-1]
        found[leaf] = found.get(leaf, 0) + int(count)
    return found


def total(allocation, function):
    """The bytes that a function and its worker (GHC 9.0: listsA1, 9.6: $wlistsA) allocated: one of the two is in each
    stack."""
    module, name = function.split(".")
    known = re.compile(rf"~?{module}\.(\$w)?{name}\d*")
    return max([f["total_bytes"] for f in allocation["functions"] if known.fullmatch(f["name"])], default=0)


def check_whole(allocation, whole, sampled=0.97):
    """All bytes that the runtime counts are counted, and each of them is in a sample or reported as unsampled."""
    check_near("bytes", allocation["bytes"], whole, 0.01 * whole)
    check(allocation["sampled_bytes"] + allocation["unsampled_bytes"] == allocation["bytes"],
          f"{allocation['sampled_bytes']} + {allocation['unsampled_bytes']} of {allocation['bytes']} bytes")
    check(allocation["sampled_bytes"] >= sampled * whole, f"{allocation['unsampled_bytes']} of {whole} bytes have no sample")
    check(allocation["whole_stacks"] >= 0.99 * allocation["samples"],
          f"{allocation['whole_stacks']} of {allocation['samples']} stacks are whole")


def check_share(truth, allocation, a, b, whole=None):
    """The shares of `a` and `b` are right to within four standard errors, which fails by chance less than once in ten
    thousand runs. `whole`: the bytes of both, if they are not the allocation's."""
    got_a, got_b = total(allocation, a), total(allocation, b)
    whole = whole or allocation["bytes"]
    check(got_a + got_b >= 0.95 * whole, f"{got_a} + {got_b} of {whole} bytes are in the two functions: "
          f"{[(f['name'], f['self_bytes']) for f in allocation['functions'][:8]]}")
    want = truth["a"] / (truth["a"] + truth["b"])
    error = 4 * (want * (1 - want) / allocation["samples"]) ** 0.5
    check(abs(got_a / (got_a + got_b) - want) <= error + 0.01,
          f"{a} has {100 * got_a / (got_a + got_b):.1f} %, should be {100 * want:.1f} ± {100 * error:.1f}")


@cases("thr", "v", "thr_p", "dyn")
def test_split(t, way):
    truth, whole, allocation = ended_with(t, "split", 3, way=way, rts=("-A1m",))
    check_whole(allocation, whole)
    check(allocation["collections"]["nursery"] >= 0.9 * sum(allocation["collections"].values()),
          f"{allocation['collections']}")
    check_share(truth, allocation, "AllocA.buildA", "AllocB.buildB")


def test_low_frequency(t):
    """At a service's rate of a few stacks per second all bytes are counted all the same."""
    truth, whole, allocation = ended_with(t, "split", 5, rts=("-A1m",), options=("-F", "19"))
    # what is allocated after the last sample has none
    check_whole(allocation, whole, sampled=0.8)
    check(allocation["samples"] <= 40 * 5, f"{allocation['samples']} samples in some 5 s")
    check_share(truth, allocation, "AllocA.buildA", "AllocB.buildB")


def test_large(t):
    truth, whole, allocation = ended_with(t, "large", 3, rts=("-A3m",))
    check_whole(allocation, whole)
    check_near("bytes with known large objects", allocation["large_of_bytes"], whole, 0.01 * whole)
    check(allocation["large_bytes"] >= 0.9 * whole, f"{allocation['large_bytes']} of {whole} bytes are large objects")
    check_share(truth, allocation, "AllocA.bigA", "AllocB.bigB")


def test_mixed(t):
    """The lists fill the nursery before large objects cause collections: each function has the bytes that it allocated."""
    truth, whole, allocation = ended_with(t, "mixed", 3, rts=("-A8m",))
    check_whole(allocation, whole)
    check_near("large objects", allocation["large_bytes"], truth["a"], 0.02 * whole)
    check_share(truth, allocation, "AllocA.bigA", "AllocB.buildB")


@cases("thr", "thr.stripped")
def test_capabilities(t, way):
    """Of four capabilities three are always stopped by another one's collection before their nurseries are full: they
    are sampled where they are stopped, which is in the right thread and near the code that allocates."""
    truth, whole, allocation = ended_with(t, "caps", 4, way=way, rts=("-N4", "-A1m"))
    check_whole(allocation, whole)
    check(allocation["stopped_bytes"] >= 0.1 * whole, f"the others were stopped: {allocation['stopped_bytes']} of {whole} bytes")
    if way == "thr":
        check_share(truth, allocation, "AllocA.listsA", "AllocB.listsB")
        built = total(allocation, "AllocA.buildA") + total(allocation, "AllocB.buildB")
        check(built + allocation["stopped_bytes"] >= 0.95 * whole, f"{built} of {whole} bytes are in the two functions that build")


@cases("large", "caps", "mixed")
def test_in_windows(t, mode):
    """A window's profile has exactly what was allocated in it, in each format, whatever the sampling rate; the windows
    add up to the whole session."""
    capture, folder = t.dir / "capture", t.dir / "windows"
    options = ("--save", capture)
    _, whole, allocation = ended_with(t, mode, 3, rts=("-A1m", *(("-N4",) if mode == "caps" else ())), options=options)
    folder.mkdir()
    subprocess.run([SAFESCOPED, "--replay", capture, "-q", "--weight", "alloc", "-f", "json,folded,speedscope",
                    "--window", "0.3", "-o", folder], check=True, capture_output=True, timeout=120)
    check_whole(allocation, whole)
    bytes_, sampled, n = 0, 0, 0
    for path in sorted(folder.glob("*Z.json")):
        seen = [target["allocation"] for target in json.loads(path.read_text())["targets"] if "allocation" in target]
        own = sum(a["bytes"] for a in seen)
        folded = sum(int(line.rpartition(" ")[2]) for line in path.with_suffix(".folded").read_text().splitlines())
        profiles = json.loads(path.with_suffix(".speedscope.json").read_text())["profiles"]
        speedscope = sum(sum(p["weights"]) for p in profiles if p["name"].startswith("allocation"))
        parts = sum(a["sampled_bytes"] + a["unsampled_bytes"] for a in seen)
        check(folded == speedscope == parts == own, f"{path.name}: {own} bytes, of samples and without {parts}, "
              f"folded {folded}, speedscope {speedscope}")
        bytes_, sampled, n = bytes_ + own, sampled + sum(a["sampled_bytes"] for a in seen), n + 1
    check(n >= 8, f"{n} windows")
    check(bytes_ == allocation["bytes"], f"windows have {bytes_} bytes, the session has {allocation['bytes']}")
    check(sampled >= 0.9 * bytes_, f"in windows {bytes_ - sampled} of {bytes_} bytes have no sample")


def test_rare_collections(t):
    """With a nursery that rarely fills up the sampler's ticks between collections provide the samples."""
    truth, whole, allocation = ended_with(t, "split", 4, rts=("-A1g",))
    check_whole(allocation, whole)
    check(allocation["tick_samples"] >= 0.2 * allocation["samples"], f"{allocation['tick_samples']} of {allocation['samples']}")
    check_share(truth, allocation, "AllocA.listsA", "AllocB.listsB")


def test_held_up(t):
    """While safescoped is stopped the probes are off: what is allocated meanwhile is counted, but attributed to no
    function."""
    target = t.target("Alloc", "split", 9, rts=("-A1m",))
    session = t.attach(target, "--max-overhead", "100")
    target.go()
    time.sleep(2)
    session.signal(signal.SIGSTOP)
    time.sleep(4)
    session.signal(signal.SIGCONT)
    truth = target.result()
    code = session.wait()
    check(code in (0, 1), f"safescoped ended with {code}: {session.err.seen}")
    check(any("held up" in line for line in session.err.seen), f"the probes stayed on: {session.err.seen}")
    allocation = t.report().target()["allocation"]
    check(allocation["sampled_bytes"] + allocation["unsampled_bytes"] == allocation["bytes"], f"{allocation}")
    check(allocation["unsampled_bytes"] >= 0.1 * allocation["bytes"],
          f"{allocation['unsampled_bytes']} of {allocation['bytes']} bytes have no sample")
    check_share(truth, allocation, "AllocA.listsA", "AllocB.listsB", allocation["sampled_bytes"])


@cases("thr.stripped", "v.stripped")
def test_stripped(t, way):
    """Without symbols the modules have the shares that their functions have in the program with symbols, and the frames
    of heap checks are no leaves."""
    capture = t.dir / "capture"
    truth, whole, allocation = ended_with(t, "split", 3, way=way, rts=("-A1m",), options=("--save", capture))
    check_whole(allocation, whole)
    got = {m["module"]: m["bytes"] for m in allocation["modules"]}
    a, b = got.get("AllocA", 0), got.get("AllocB", 0)
    check(a + b >= 0.95 * whole, f"{a} + {b} of {whole} bytes are in the two modules: {got}")
    want = truth["a"] / (truth["a"] + truth["b"])
    error = 4 * (want * (1 - want) / allocation["samples"]) ** 0.5
    check(abs(a / (a + b) - want) <= error + 0.01, f"AllocA has {100 * a / (a + b):.1f} %, should be {100 * want:.1f} %")
    found = leaves(capture)
    for module, bytes_ in (("AllocA", a), ("AllocB", b)):
        below = sum(n for leaf, n in found.items() if re.match(rf"~?{module}\b", leaf))
        check(below == bytes_, f"{below} of {module}'s {bytes_} bytes have it as the leaf: {found}")


@cases("thr", "dyn", "v.stripped")
@thorough
def test_leak(t, way):
    """A heap that grows at a known rate: the report has the size after each major collection, and the growth and the
    totals match what the program kept. What the runtime holds is found without symbols, too."""
    rate = 5000000
    truth, stats, target = ended(t, "leak", 8, rate, way=way, rts=("-A1m",))
    heap = target["heap"]
    growth = heap["growth"]
    want = truth["kept"] / truth["seconds"] * 60
    check(heap["majors"] >= 6 and growth, f"{heap['majors']} major collections, growth: {growth}")
    check_near("bytes more each minute", growth["bytes_per_minute"], want, 0.05 * want)
    check(growth["error"] < 0.1 * want, f"± {growth['error']:.0f} of {want:.0f}")
    check(heap["after_major"], "what is live was not read after a major collection")
    check_near("live at the end", heap["live_bytes"], truth["kept"], 0.1 * truth["kept"] + 1e6)
    found = {f["kind"] for f in target["findings"]}
    check("heap_grows" in found, f"it finds {found}")
    # the main thread, and those that wait for files and timers
    check(301 <= heap["haskell_threads"] <= 306, f"{heap['haskell_threads']} Haskell threads")
    # a collection is recorded when the next one begins: the last one is missing
    most = stats["max_mem_in_use_bytes"]
    check_near("the most that was held from the system", heap["most_held_bytes"], most, 0.1 * most)
    check(heap["held_bytes"] % (1 << 20) == 0 and heap["held_bytes"] > heap["live_bytes"], f"held: {heap['held_bytes']}")
    young, old = heap["generations"]
    for key, want in (("collections", target["gc"]["count"]), ("pause_ns", target["gc"]["pause_ns"])):
        check(young[key] + old[key] == want, f"{key} of the generations: {young[key]} and {old[key]}, of all {want}")
    # the difference: the one at the program's exit, and those before the attach
    check(0 <= stats["major_gcs"] - old["collections"] <= 3, f"{old['collections']} major collections of {stats['major_gcs']}")


@cases("p", "thr_p")
def test_centres(t, way):
    """The shares of cost centres, against the alloc column of GHC's report."""
    if GHC_ROOT:
        raise Skip("its files are in another root")
    options = ("--max-overhead", "100")
    _, report, _ = profile_run(t, "Alloc", "split", 4, way=way, options=options,
                               rts=("-A256k", "-pj", f"-po{t.dir}/ghc"))
    want = ghc_bytes(t.dir / "ghc.prof")
    got = {(c["label"], c["module"]): c["self_bytes"] for c in report.target()["cost_centres"]}
    whole_want, whole_got = sum(want.values()), sum(got.values())
    compared = [(c, 100 * got.get(c, 0) / whole_got, 100 * n / whole_want) for c, n in want.items()]
    compared = [(c, mine, theirs) for c, mine, theirs in compared if theirs > 2]
    check(len(compared) >= 2, f"too simple a program: {want}")
    # two standard errors of a share of three quarters
    error = 2 * 43 * report.target()["allocation"]["error"]
    wrong = [(c, f"{mine:.1f} %, should be {theirs:.1f} %") for c, mine, theirs in compared
             if abs(mine - theirs) > CENTRES + error]
    check(not wrong, f"{wrong}")


def test_number_comes_again(t):
    """What an earlier process with the same pid left in the kernel does not apply to the next one: here, a state by
    which hardly any of its collections would be looked at."""
    if GHC_ROOT:
        raise Skip("its programs are in another root")
    session = whole_host(t, "-v", "--comm", "Work")
    # with this nursery even a fast machine has no more collections than the sampler may look at
    command = [program("Work"), "alloc", 1, "+RTS", "-A8m", "-RTS"]
    target = Target(["sh", "-c", 'echo waits; read -r line; exec "$0" "$@"', *command], ready="waits")
    t.started.append(target)
    # struct wire_heap_state: at offset 28, one in how many collections is looked at
    left = struct.pack("<28xI584x", 65536)
    subprocess.run([BPFTOOL, "map", "update", "id", str(maps_of(session)["heaps"]),
                    "key", "hex", *target.pid.to_bytes(4, "little").hex(" ").split(),
                    "value", "hex", *left.hex(" ").split()], check=True)
    target.go()
    target.wait_for("ready")
    session.wait_attached_to(target.pid)
    target.go()
    check(target.wait() == 0, "the test program failed")
    stop(session)
    seen = t.report().target(target.pid)["allocation"]
    collections = sum(seen["collections"].values())
    check(collections > 50 and seen["samples"] > collections / 4, f"{seen['samples']} samples at {collections} collections")


if __name__ == "__main__":
    run(globals())
