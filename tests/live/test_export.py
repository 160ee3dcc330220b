#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The files of real sessions are loaded by the real tools, and agree with each other."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from harness import BUILD, Skip, cases, check, check_near, profile_run, run
from test_calls import ALWAYS, check_lanes

HERE = Path(__file__).resolve().parent

PROGRAMS = {
    "calls": ("Calls", (4, "safe_half_2ms=200", "safe_spin_20us=2000", "unsafe_spin_1ms=200")),
    "alloc": ("Work", ("alloc", 2)),
    "deep": ("Work", ("deep", 2)),
}


class Run:
    """A session of one of the programs, with its files, shared by the tests that read them."""

    made = {}

    def __init__(self, t, what):
        name, args = PROGRAMS[what]
        _, self.report, target = profile_run(t, name, *args, rts=("-N2",),
                                             options=(*ALWAYS, "-F", "499", "-f", "json,speedscope,folded,chrome",
                                                      "--weight", "wall"))
        check_lanes(self.report)
        self.pid = target.pid
        self.dir = t.dir
        self.users = set()

    @classmethod
    def of(cls, t, what):
        """One run is shared by all tests, but a test that is tried again gets a new one."""
        if what not in cls.made or t.name in cls.made[what].users:
            cls.made[what] = cls(t, what)
        cls.made[what].users.add(t.name)
        return cls.made[what]


def busy(lane):
    """The lane's time without idle time, which is left out where threads are added up: it would dwarf all else."""
    return lane["wall_ns"] - lane["states"]["idle"]


def tool(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=300)
    check(done.returncode == 0, f"{command[0]} {command[1]}: {(done.stdout + done.stderr)[-800:]}")
    return done.stdout


def must_have(path, what):
    """Skip the test if something that `make check` installs is missing; in CI that is a failure."""
    if not Path(path).exists():
        check(os.environ.get("CI") != "true", f"{what} is not installed")
        raise Skip(f"{what} is not installed; run: scripts/install-deps --test")


def split(profiles):
    """Split profiles into the sum of all threads, the OS threads' lanes, and the other lanes. (test_totals.py checks
    the sums of lanes.)"""
    first, *lanes = [p for p in profiles if not p["name"].startswith(("sums of ", "CPU time", "allocation, "))]
    threads = [p for p in lanes if re.match(r"\d+ ", p["name"])]
    return first, threads, [p for p in lanes if p not in threads]


@cases(*PROGRAMS)
def test_real_speedscope(t, what):
    must_have(BUILD / "npm" / "node_modules" / "speedscope", "speedscope")
    made = Run.of(t, what)
    report = made.report
    got = json.loads(tool("node", HERE / "import_speedscope.mjs", made.dir / "p.speedscope.json"))
    lanes = [l for l in report.target()["lanes"] if l["kind"] == "thread"]
    first, threads, others = split(got["profiles"])
    check(len(threads) == len(lanes), f"speedscope made {len(threads)} profiles of {len(lanes)} threads")
    check(len({round(p["totalWeight"]) for p in threads + others}) == 1, "lanes on different time axes")
    check(first["unit"] == "nanoseconds", f"speedscope takes the unit for {first['unit']}")
    check_near("speedscope's total of all threads", first["totalWeight"], sum(map(busy, lanes)), 1000)
    by_tid = {l["tid"]: l for l in lanes}
    for profile in threads:
        # On a thread's own time axis idle time is a gap.
        lane = by_tid[int(re.search(r"\d+", profile["name"]).group())]
        check_near(f"speedscope's total of {profile['name']}", profile["nonIdleWeight"], busy(lane), 1000)
    shown = {f["name"] for f in first["frames"]}
    heavy = report.target()["functions"][0]["name"]
    check(any(heavy in name for name in shown), f"{heavy} is not among the frames that speedscope shows")


@cases(*PROGRAMS)
def test_real_flame_graph(t, what):
    tool("sh", HERE / "import_folded.sh", Run.of(t, what).dir / "p.folded")


@cases(*PROGRAMS)
def test_speedscope_file(t, what):
    made = Run.of(t, what)
    file = json.loads((made.dir / "p.speedscope.json").read_text())
    check(file["$schema"] == "https://www.speedscope.app/file-format-schema.json", "another $schema")
    frames = file["shared"]["frames"]
    keys = [json.dumps(f, sort_keys=True) for f in frames]
    check(len(set(keys)) == len(keys), "frames are not interned")
    check(all(f["name"] for f in frames), "a frame without a name")
    for profile in file["profiles"]:
        name = profile["name"]
        unit = "bytes" if name.startswith("allocation, ") else "nanoseconds"
        check(profile["type"] == "sampled" and profile["unit"] == unit, f"{name}: type or unit")
        check(len(profile["samples"]) == len(profile["weights"]), f"{name}: samples and weights differ in number")
        check(all(0 <= i < len(frames) for s in profile["samples"] for i in s), f"{name}: not a frame")
        check(all(w >= 0 for w in profile["weights"]), f"{name}: a negative weight")
        span = profile["endValue"] - profile["startValue"]
        check(span == sum(profile["weights"]), f"{name}: weights add up to {sum(profile['weights'])} of {span}")
    lanes = {l["tid"]: l for l in made.report.target()["lanes"] if l["kind"] == "thread"}
    first, threads, others = split(file["profiles"])
    check(all(p["startValue"] == 0 and p["endValue"] == threads[0]["endValue"] for p in threads + others),
          "lanes on different time axes")
    check(all(p["name"].startswith("capability ") for p in others), f"{[p['name'] for p in others]}")
    check("CPU time" in file["profiles"][0]["name"] and "wall time" in first["name"], f"the first profiles: {first['name']}")
    check_near("all threads' CPU", sum(file["profiles"][0]["weights"]), sum(l["cpu_ns"] for l in lanes.values()), 1000)
    check_near("all threads", sum(first["weights"]), sum(map(busy, lanes.values())), 1)
    of_tid = {}
    for profile in threads:
        tid = re.search(r"\d+", profile["name"])
        check(tid and int(tid.group()) in lanes, f"no lane for the profile {profile['name']}")
        of_tid[int(tid.group())] = profile
    check(set(of_tid) == set(lanes), f"profiles {sorted(of_tid)}, lanes {sorted(lanes)}")
    for tid, lane in lanes.items():
        profile = of_tid[tid]
        # An empty stack is a gap: idle, or before the thread's start or after its end.
        total = sum(w for s, w in zip(profile["samples"], profile["weights"]) if s)
        check_near(f"tid {tid}", total, busy(lane), 1)


def ns(event):
    return round(event["ts"] * 1000)


IDLE_GROUP = 30000000


def slices_of(track, events):
    """[(row, slice, begin, end)] of a track; the slices are in order of time, properly nested, and none is empty."""
    found, stack, at = [], [], 0
    for e in events:
        begin, end = ns(e), ns(e) + round(e["dur"] * 1000)
        check(at <= begin < end, f"{track}: {e['name']} goes back in time or is empty")
        at = begin
        while stack and stack[-1] <= begin:
            stack.pop()
        check(not stack or end <= stack[-1], f"{track}: {e['name']} ends after what it is in")
        found.append((len(stack), e, begin, end))
        stack.append(end)
    return found


@cases(*PROGRAMS)
def test_chrome_file(t, what):
    made = Run.of(t, what)
    trace = json.loads((made.dir / "p.trace.json").read_text())
    tracks, names, flows = {}, {}, {}
    for e in trace["traceEvents"]:
        check({"ph", "pid", "tid", "name"} <= set(e), f"an event without its fields: {e}")
        track = (e["pid"], e["tid"])
        check(e["ph"] in "MXisfC", f"phase {e['ph']}")
        if e["ph"] == "M":
            names[(e["name"], *track)] = e["args"]
            continue
        check(e["ts"] >= 0, f"before the axis: {e}")
        if e["ph"] == "X":
            tracks.setdefault(track, []).append(e)
        elif e["ph"] in "sf":
            flows.setdefault(e["id"], []).append(e)
    slices = {track: slices_of(track, events) for track, events in tracks.items()}
    check(all(("thread_name", *track) in names for track in tracks), "a track without a name")
    for ends in flows.values():
        check([e["ph"] for e in ends] == ["s", "f"] and ends[0]["ts"] <= ends[1]["ts"], f"a flow with {ends}")
    for lane in made.report.target()["lanes"]:
        if lane["kind"] != "thread":
            continue
        # idle threads are a group of their own, whose pid is not the process's
        track = next((key for key in ((made.pid + shift, lane["tid"]) for shift in (0, IDLE_GROUP)) if key in slices), None)
        total = sum(end - begin for row, _, begin, end in slices.get(track, []) if row == 0)
        check(total == busy(lane), f"tid {lane['tid']}: the slices add up to {total}, not {busy(lane)}")


# Titles, as in the manual page, of the states whose boundaries are events: slices of other states are approximate.
TITLES = {"safe_call_blocked": "safe call, blocked", "cap_wait": "waiting for a capability", "preempted": "preempted",
          "unsafe_call_blocked": "unsafe call, blocked", "gc_wait": "waiting for GC"}


@cases("calls", "deep")
def test_real_catapult(t, what):
    """chrome://tracing's own importer prints no warnings, has the states' times, takes functions for parts of them, and
    finds the whole stack of each."""
    must_have(BUILD / "npm" / "node_modules" / "traceviewer", "catapult's importer")
    made = Run.of(t, what)
    got = json.loads(tool("node", HERE / "import_catapult.mjs", made.dir / "p.trace.json"))
    check(not got["warnings"], f"it warns: {got['warnings'][:5]}")
    lanes = {l["tid"]: l for l in made.report.target()["lanes"] if l["kind"] == "thread"}
    threads = {t["tid"]: t for p in got["processes"] if "OS threads" in p["name"] for t in p["threads"]}
    check(set(threads) <= set(lanes), f"threads {sorted(threads)}, in the report {sorted(lanes)}")
    for tid, lane in lanes.items():
        if tid not in threads:
            check(busy(lane) == 0, f"tid {tid} is missing")
            continue
        states = threads[tid]["rows"].get("0", {})
        check_near(f"tid {tid} in ns", sum(s["ns"] for s in states.values()), busy(lane), 100)
        for state, title in TITLES.items():
            check_near(f"tid {tid}, {state}", states.get(title, {"ns": 0})["ns"], lane["states"][state], 100)
        check(set(threads[tid]["rows"]) <= {"0", "1"}, f"tid {tid} has rows {list(threads[tid]['rows'])}")
        check(not any(s["hashed"] for s in states.values()), f"tid {tid}: a state without a colour in {states}")
    functions = [f for p in got["processes"] for t in p["threads"] for f in t["rows"].get("1", {}).items()]
    check(functions and all(f["stacks"] == f["slices"] for _, f in functions), f"functions without stacks: {functions}")
    # the report's top function, as a leaf or as a caller
    heavy = made.report.target()["functions"][0]["name"]
    check(any(heavy in frame for _, f in functions for frame in f["stack"]), f"{heavy} is in no stack")
    check(max(len(f["stack"]) for _, f in functions) > 3, "no stack is deep")


@cases("calls", "deep")
def test_real_pprof(t, what):
    """As read by Go's own pprof the samples' CPU time is that of the folded stacks."""
    if not shutil.which("go"):
        must_have("/usr/bin/go", "go")
    name, args = PROGRAMS[what]
    _, report, target = profile_run(t, name, *args, rts=("-N2",),
                                    options=(*ALWAYS, "-F", "499", "-f", "json,folded,pprof"))
    raw = tool("go", "tool", "pprof", "-raw", t.dir / "p.pb.gz")
    check("cpu/nanoseconds[dflt]" in raw, f"the sample types: {raw[:400]}")
    samples, _, rest = raw.partition("Samples:\n")[2].partition("Locations\n")
    cpu = count = 0
    for line in samples.splitlines():
        match = re.match(r"\s*(\d+)\s+(\d+)(?:\s+\d+)+: ", line)
        if match:
            count += int(match.group(1))
            cpu += int(match.group(2))
    folded = sum(int(l.rsplit(" ", 1)[1]) for l in (t.dir / "p.folded").read_text().splitlines())
    check_near("the time on the CPU in us", cpu / 1000, folded, 1)
    # a sample at a lane's very end may be missing
    taken = report.target()["stacks"]["samples"]
    check(taken * 0.99 - 3 <= count <= taken, f"{count} samples, {taken} taken")
    check(f"process_id:[{target.pid}]" in samples, "no label of the process")
    tags = tool("go", "tool", "pprof", "-tags", "-unit=ns", "-sample_index=wall", t.dir / "p.pb.gz")
    check({"capability", "haskell_thread", "thread", "thread_id", "state"} <= set(re.findall(r"(?m)^ *(\w+): Total", tags)),
          f"labels: {tags}")
    check(re.search(r"\): Haskell thread \d+", tags), f"no Haskell thread: {tags}")
    # the time in which capabilities were held is divided among them: in all not more than all time that was not idle
    held = sum(int(n) for n in re.findall(r"(\d+)\.0ns \([^)]*\): \d+$", tags.partition(" capability: Total")[2].partition("\n\n")[0], re.M))
    check(0 < held <= sum(busy(l) for l in report.target()["lanes"] if l["kind"] == "thread") * 1.01, f"capabilities held for {held} ns")
    heavy = report.target()["functions"][0]["name"]
    top = tool("go", "tool", "pprof", "-top", t.dir / "p.pb.gz")
    check(heavy in rest and heavy in top, f"{heavy} is not in it")
    # the focus is a regular expression: `haskell` matches haskell_blocked, too
    for focus, states in (("^haskell$", ("haskell",)), ("haskell", ("haskell", "haskell_blocked"))):
        focused = tool("go", "tool", "pprof", "-top", "-unit=ns", "-sample_index=wall", "-nodefraction=0", "-nodecount=1000000",
                       f"-tagfocus=state={focus}", t.dir / "p.pb.gz")
        shown = int(re.search(r"accounting for (\d+)ns", focused)[1])
        want = sum(l["states"][state] for l in report.target()["lanes"] if l["kind"] == "thread" for state in states)
        check(shown == want, f"the wall time labelled {focus} is {shown} ns, should be {want}")


def test_pprof_operators(t):
    """Go's pprof shows operators as they are: it would shorten what it takes for templates of C++, and add up `<*>` and
    `<|>`."""
    if not shutil.which("go"):
        must_have("/usr/bin/go", "go")
    labels = ["$fApplicativeP_$c<*>", "$fAlternativeP_$c<|>", "<$>", "$c[]<>(,)", "a::b(c)", "plain"]
    report = {"program": "Operators", "arguments": [], "rts_arguments": ["-pj"], "end_time": "Mon Nov 30 18:00 2026",
              "initial_capabilities": 1, "total_time": 0.1, "total_ticks": 100 * len(labels), "tick_interval": 1000,
              "total_alloc": 0,
              "cost_centres": [{"id": i + 2, "label": l, "module": "Main", "src_loc": "Main.hs:1:1", "is_caf": False}
                               for i, l in enumerate(labels)]
              + [{"id": 1, "label": "MAIN", "module": "MAIN", "src_loc": "<built-in>", "is_caf": False}],
              "profile": {"id": 1, "entries": 0, "alloc": 0, "ticks": 0, "children":
                          [{"id": i + 2, "entries": 1, "alloc": 0, "ticks": 10 * (i + 1), "children": []}
                           for i in range(len(labels))]}}
    log = t.dir / "operators.prof"
    log.write_text(json.dumps(report))
    check(t.session("-e", log, "-f", "pprof", "-o", t.stem).wait() == 0, "the profile was not read")
    top = tool("go", "tool", "pprof", "-top", "-unit=ms", t.dir / "p.pb.gz")
    shown = {name: round(float(ms)) for ms, name in re.findall(r"(?m)^ *([\d.]+)ms .*% +(\S+)$", top)}
    for i, label in enumerate(labels):
        check(shown.get(f"Main.{label}") == 10 * (i + 1), f"Main.{label} is not among what pprof shows: {top}")


def build_id(path):
    found = re.search(r"Build ID: ([0-9a-f]+)", tool("readelf", "-n", path))
    return found[1] if found else ""


def symbols_at(path, offset_of, addresses):
    """{address: the function there by binutils}; offset_of maps an address to an offset in the file."""
    loads = [[int(x, 16) for x in re.findall(r"0x[0-9a-f]+", line)]
             for line in re.findall(r"^ +LOAD +(.*)$", tool("readelf", "-lW", path), re.M)]

    def vaddr(address):
        offset = offset_of(address)
        return next(offset - load[0] + load[1] for load in loads if load[0] <= offset < load[0] + load[3])

    shown = tool("addr2line", "-f", "-e", path, *(hex(vaddr(a)) for a in addresses)).splitlines()
    return dict(zip(addresses, shown[::2]))


def test_pprof_files(t):
    """Mappings are those of the process, build-ids those of the files, and each address is in the function that is
    named."""
    target = t.target("Calls", 2, "safe_half_2ms=100", "unsafe_spin_1ms=200", rts=("-N2",))
    session = t.attach(target, "-F", "499", "-f", "json,pprof")
    exe = os.readlink(f"/proc/{target.pid}/exe")
    maps = {(int(m[1], 16), int(m[2], 16), int(m[3], 16)): m[4] for m in
            re.finditer(r"(?m)^([0-9a-f]+)-([0-9a-f]+) r-xp ([0-9a-f]+) \S+ \d+ *(/.*)$", Path(f"/proc/{target.pid}/maps").read_text())}
    target.go()
    target.result()
    check(session.wait() == 0, f"it ended with an error: {session.err.seen}")
    raw = tool("go", "tool", "pprof", "-raw", t.dir / "p.pb.gz")
    mapped = {}
    for m in re.finditer(r"(?m)^(\d+): 0x([0-9a-f]+)/0x([0-9a-f]+)/0x([0-9a-f]+) (\S+) ?([0-9a-f]*) ", raw.partition("Mappings\n")[2]):
        place = tuple(int(x, 16) for x in m.groups()[1:4])
        check(maps.get(place) == m[5], f"{m[0]}: is not mapped like that anywhere: {maps}")
        check(m[6] == build_id(m[5]), f"{m[0]}: the build-id is {build_id(m[5])}")
        mapped[int(m[1])] = (place, m[5])
    check(mapped and mapped[min(mapped)][1] == exe and any("libc" in path for _, path in mapped.values()),
          f"files: {mapped}")
    named = {}
    for m in re.finditer(r"(?m)^ +\d+: 0x([0-9a-f]+) M=(\d+) (\S+) ", raw.partition("Locations\n")[2]):
        address, (place, path) = int(m[1], 16), mapped[int(m[2])]
        check(place[0] <= address < place[1], f"{m[0]}: is outside of {path}")
        named[m[3]] = (address, path)
    own = {name: address for name, (address, path) in named.items() if name in ("safe_half_2ms", "unsafe_spin_1ms")}
    check(len(own) == 2, f"functions: {named}")
    place = mapped[min(mapped)][0]
    for address, symbol in symbols_at(exe, lambda a: a - place[0] + place[2], own.values()).items():
        check(own.get(symbol) == address, f"at {address:x} is {symbol}: {own}")


@cases(*PROGRAMS)
def test_folded_file(t, what):
    made = Run.of(t, what)
    lines = (made.dir / "p.folded").read_text().splitlines()
    comm = made.report.target()["comm"]
    stacks = set()
    total = 0
    for line in lines:
        match = re.fullmatch(r"(.+) (\d+)", line)
        check(match, f"not a folded stack: {line!r}")
        frames = match.group(1).split(";")
        check(frames[0] == f"{comm}-{made.pid}", f"the first frame is {frames[0]!r}")
        check(len(frames) >= 3 and all(frames), f"an empty frame, or too few: {line!r}")
        check(match.group(1) not in stacks, f"a stack twice: {line!r}")
        stacks.add(match.group(1))
        total += int(match.group(2))
    wall = sum(busy(l) for l in made.report.target()["lanes"] if l["kind"] == "thread") / 1000
    check_near("the folded stacks' sum in µs", total, wall, len(lines) + 1)


if __name__ == "__main__":
    run(globals())
