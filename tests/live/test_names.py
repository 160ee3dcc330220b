#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Names of frames, from every source of names: each stack of a program with a known call tree is a path in that tree,
and the lines of its functions are those of the source. With GHC_ROOT also by -finfo-table-map."""

import itertools
import json
import re
import shutil
import subprocess
import time
from pathlib import Path

from harness import BUILD, GHC_ROOT, PROGRAMS, NotHere, Target, cases, check, enter_root, program, run

# Who calls whom: see Names.hs. gamma, gamma1 and chain end with a tail call, and have no frame after it; chain leaves
# its update frame, which shows chain unless its thunk is a black hole at that moment.
WORK = {"gamma", "work"}
CALLS = {
    "main": {"rounds"},
    "rounds": {"rounds", "alpha", "delta", "lazy"},
    "alpha": {"beta", *WORK},
    "beta": WORK,
    "gamma": {"work"},
    "delta": {"spin", *WORK},
    "spin": set(),
    "lazy": {"pick", "total", "build"},  # or the thunk, which GHC names after its function
    "pick": set(),  # only a few instructions: one session in a hundred samples it
    "total": {"chain", "lazy", "build"},
    "chain": {"build"},
    "build": {"gamma1", "work"},
    "gamma1": {"work"},
    "work": set(),
}
MODULES = ("Main", "NamesA", "NamesB")
# Local functions, and the variants that GHC makes of a function, count as that function.
PARTS = {"again": "main", "go": "build"}


def wanted_ways():
    return ("g", "ipe") if GHC_ROOT and has_ipe() else ("g",)


def has_ipe():
    version = (Path(GHC_ROOT) / "programs" / "ghc-version").read_text()
    return tuple(map(int, version.split(".")[:2])) >= (9, 2)


def function_of(name):
    """The function of the tree that a frame's name stands for; the name itself if it is another one of the three
    modules; None if it is of none of them."""
    if name.startswith("names::spin"):
        return "spin"
    m = re.fullmatch(r"~?(\w+)\.(.*)", name)
    if not m or m[1] not in MODULES:
        return None
    # the innermost binding in the name that is in the tree: "lazy.chain", "build.$wgo"
    for part in reversed(m[2].split(".")):
        part = re.sub(r"^(\$[ws])+", "", part)
        part = re.sub(r"\d+$", "", part) if part not in CALLS else part
        part = PARTS.get(part, part)
        if part in CALLS:
            return part
    return name


def path_of(stack):
    path = []
    for frame in stack:
        function = function_of(frame)
        if function and (not path or path[-1] != function):
            path.append(function)
    return path


def is_path(path, calls):
    if path and path[0] not in ("main", "rounds"):
        return False
    return all(b in calls.get(a, ()) for a, b in zip(path, path[1:]))


def start(t, way, seconds=2):
    command = [program("Names", way), str(seconds)]
    target = Target(enter_root(command) if GHC_ROOT else command)
    t.started.append(target)
    return target


def profile(t, target):
    session = t.session("--pid", target.pid, "-v", "-f", "json,speedscope,folded", "--stacks", "stg", "-F", "999",
                        "--weight", "wall", "-o", t.stem)
    session.wait_attached()
    target.go()
    truth = target.result()
    code = session.wait()
    check(code == 0, f"safescoped ended with {code}: {session.err.seen}")
    check(truth["total"] != 0, "the test program computed nothing")
    return t.report()


def stacks_of(t):
    """[([frame], microseconds)] of the folded file, root first, without the process and the thread."""
    result = []
    for line in (t.dir / "p.folded").read_text().splitlines():
        frames, _, weight = line.rpartition(" ")
        result.append((frames.split(";")[2:], int(weight)))
    return result


def check_tree(t, needed, known=0.8):
    """Every stack is a path in the tree, and most of the time is in functions of the tree."""
    inside = total = 0
    seen, unknown = set(), 0
    for stack, weight in stacks_of(t):
        path = path_of(stack)
        # of a few off-CPU intervals only the code address is known, not the stack
        if "[no stack]" in stack:
            unknown += weight if path else 0
            continue
        check(is_path(path, CALLS), f"a stack that cannot be: {path}, {stack}")
        seen.update(path)
        if any(f and f != "[no sample]" for f in stack):
            total += weight if path or "Main" in str(stack) else 0
            inside += weight if len(path) > 1 else 0
    check(unknown <= 0.05 * (total + unknown), f"{unknown} µs without a stack")
    check(set(needed) <= seen, f"no {set(needed) - seen} on any stack, there are {seen}")
    check(inside >= known * total, f"{inside} of {total} µs are below main")


def source_lines():
    """{function: (first line, last line)} in the sources."""
    lines = {}
    for module in ("Names", "NamesA", "NamesB"):
        name = None
        for number, text in enumerate((PROGRAMS / f"{module}.hs").read_text().splitlines(), 1):
            m = re.match(r"(\w+)\b.*(?:::|=)", text)
            if m and m[1] in CALLS:
                name = m[1]
                first = lines.get(name, (number, number))[0]
                lines[name] = (first, number)
            elif name and text.startswith("  "):
                lines[name] = (lines[name][0], number)
            else:
                name = None
    return lines


def check_lines(t, at_least):
    """If a frame has a line, it is one of its function's, or of a local function that may have been inlined there."""
    known, lines = source_lines(), {}
    for frame in json.loads((t.dir / "p.speedscope.json").read_text())["shared"]["frames"]:
        function = function_of(frame["name"])
        if function in known and "line" in frame:
            lines.setdefault(function, set()).add(frame["line"])
            first, last = known[function]
            inner = known.get({v: k for k, v in PARTS.items()}.get(function), (0, 0))
            check(first <= frame["line"] <= last or inner[0] <= frame["line"] <= inner[1]
                  or function == "gamma1",
                  f"{frame['name']} is reported at line {frame['line']}, it is at {first} to {last}")
    check(len(lines) >= at_least, f"only these have lines: {lines}")


SOURCES = {"g": "dwarf", "ipe": "ipe"}
CORE = ("rounds", "alpha", "beta", "work", "delta", "spin", "lazy", "total", "build")


def check_thunk(t):
    """The thunk under evaluation is between the function that forces it and the one that it called."""
    weights = {}
    for stack, weight in stacks_of(t):
        path = path_of(stack)
        for a, b, c in zip(path, path[1:], path[2:]):
            if (a, c) == ("total", "build"):
                weights[b] = weights.get(b, 0) + weight
    check(set(weights) & {"lazy", "chain"}, f"no thunk between total and build; there are {weights}")


@cases(*wanted_ways())
def test_tree(t, way):
    report = profile(t, start(t, way))
    check_tree(t, CORE)
    check_thunk(t)
    check_lines(t, 5)
    names = report.target()["names"]
    check(names[SOURCES[way]] >= 0.5 * sum(names.values()), f"few names come from {SOURCES[way]}: {names}")


def test_llvm(t):
    """Code from the LLVM backend has the names of exported bindings, as code from GHC's own has."""
    if GHC_ROOT or not (shutil.which("opt") and shutil.which("llc")):
        raise NotHere
    profile(t, start(t, "llvm"))
    check_tree(t, [f for f in CORE if f not in ("work", "total")])
    frames = {f for stack, _ in stacks_of(t) for f in stack}
    made_up = [f for f in frames if re.fullmatch(r"~?(\w+_info|_c\w+)", f) and not f.startswith("stg_")]
    check(not made_up, f"labels in place of names: {made_up[:9]}")


def test_map_and_lines(t):
    """What the info table map has no place for, such as a loop that was inlined, has the line that DWARF knows."""
    if "ipe" not in wanted_ways():
        raise NotHere("this GHC is older than -finfo-table-map")
    report = profile(t, t.target("Inlined", 2, way="ipe_g"))
    loops = [f for f in report.target()["functions"] if f["name"].startswith("Main.$w")]
    check(loops and loops[0]["self_samples"] >= 0.8 * report.target()["stacks"]["samples"],
          f"the loop is not at the top of {report.target()['functions'][:3]}")
    frames = json.loads((t.dir / "p.speedscope.json").read_text())["shared"]["frames"]
    [loop] = [f for f in frames if f["name"] == loops[0]["name"]]
    lines = (PROGRAMS / "InlinedLoop.hs").read_text().splitlines()
    check(loop.get("file", "").endswith("InlinedLoop.hs") and "go" in lines[loop["line"] - 1], f"{loop} is elsewhere")


def test_stripped_map(t):
    """The info table map works without symbols."""
    if "ipe" not in wanted_ways():
        raise NotHere("this GHC is older than -finfo-table-map")
    report = profile(t, start(t, "ipe.stripped"))
    check_tree(t, [f for f in CORE if f != "spin"])
    check_lines(t, 5)
    names = report.target()["names"]
    check(names["ipe"] >= 0.5 * sum(names.values()), f"few names come from the map: {names}")
    check(names["nearest"] == 0 and names["dwarf"] == 0, f"guesses without symbols: {names}")


def stripped(way):
    if GHC_ROOT:
        return f"{way}.stripped"
    copy = BUILD / "programs" / f"{way}.stripped" / "Names"
    copy.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["strip", "-o", copy, program("Names", way)], check=True)
    return copy


def test_descriptions(t):
    """A profiled program's closures have their names without symbols."""
    copy = stripped("thr_p")
    if GHC_ROOT:
        target = start(t, copy)
    else:
        target = Target([copy, "2"])
        t.started.append(target)
    report = profile(t, target)
    names = report.target()["names"]
    check(names["description"] >= 0.5 * sum(names.values()), f"few names come from descriptions: {names}")
    shown = {f["name"].rsplit(".", 1)[-1] for f in report.target()["functions"]}
    for function in ("alpha", "beta", "delta", "work"):
        check({function, f"$w{function}"} & shown, f"no {function} among {sorted(shown)}")


@cases("symbols", "stripped")
def test_packages(t, case):
    """Functions named by closures' descriptions have their modules' packages: each module has one, and only the
    program's own are in none. Closures without a name have that of their binding, not one that each build changes."""
    if GHC_ROOT:
        raise NotHere("scripts/ghc-root does not compile Shelf")
    target = t.target("Shelf", 3, way="thr_p" if case == "symbols" else "thr_p.stripped")
    session = t.attach(target, "--stacks", "stg", "-F", "999")
    target.go()
    check(session.wait() == 0, f"safescoped failed: {session.err.seen}")
    report = t.report()
    functions = [f for f in report.target()["functions"] if f["kind"] == "haskell" and f["module"]]
    packages = {}
    for f in functions:
        packages.setdefault(f["module"], set()).add(f["package"])
    own = {"Main", "Ready", "ShelfIndex", "ShelfPlain", "ShelfTypes"}
    check(own & set(packages), f"no function of the program among {packages}")
    wrong = {m: p for m, p in packages.items() if p != {None} and m in own or len(p) > 1 or None in p and m not in own}
    check(not wrong, f"modules with a wrong package: {wrong}")
    unstable = [f["name"] for f in functions if ".sat_" in f["name"]]
    check(len(unstable) <= 0.02 * len(functions), f"names that another build would not have: {unstable}")
    check(report.target()["names"]["description"] > 100, f"few descriptions: {report.target()['names']}")


def test_symbols(t):
    """Without an info table map or profiling: exported functions are named by their symbols, C++ functions as in the
    source, and every frame has its source of names."""
    report = profile(t, start(t, "thr"))
    names = report.target()["names"]
    check(names["exact"] >= 0.5 * sum(names.values()), f"few names come from symbols: {names}")
    check(names["ipe"] + names["description"] == 0, f"names from nowhere: {names}")
    unsafe = {c["function"] for c in report.target()["unsafe_calls"]}
    check("names::spin(int)" in unsafe, f"no names::spin(int) among {unsafe}")
    frames = json.loads((t.dir / "p.speedscope.json").read_text())["shared"]["frames"]
    check("Names" in {f.get("file") for f in frames if f["name"] == "names::spin(int)"},
          "names::spin(int) is not shown in the program's file")


PLUMBING = re.compile(r"stg_(upd_frame|catch_frame|stop_thread|ap_|bh_upd)")


@cases("folded", "shown")
def test_plumbing(t, case):
    """Return frames without a meaning for the user are shown only with -v."""
    target = start(t, "thr")
    session = t.session("--pid", target.pid, "-f", "json,folded", "--stacks", "stg", "-F", "999",
                        "--weight", "wall", "-o", t.stem, *(("-v",) if case == "shown" else ()))
    if case == "folded":
        time.sleep(2)  # only -v shows when it is attached
    else:
        session.wait_attached()
    target.go()
    target.result()
    check(session.wait() == 0, f"safescoped failed: {session.err.seen}")
    # at the leaf it is running code
    found = [s for s, _ in stacks_of(t) if any(PLUMBING.match(f) for f in s[:-2])]
    if case == "folded":
        check(not found, f"frames that mean nothing: {found[:3]}")
    else:
        check(found, "no return frame of the runtime on any stack")


OFFSET = re.compile(r"(\[Names\]|~?[A-Z][\w.]*)\+0x[0-9a-f]+")


def test_offsets_are_stable(t):
    """Code without a name has the same module and offset in the next run."""
    seen = []
    for _ in range(2):
        copy = stripped("thr")
        if GHC_ROOT:
            target = start(t, copy, 1.5)
        else:
            target = Target([copy, "1.5"])
            t.started.append(target)
        report = profile(t, target)
        functions = report.target()["functions"]
        seen.append({f["name"]: f["total_samples"] for f in functions})
    for one, other in itertools.permutations(seen):
        often = {n for n, samples in one.items() if samples >= 100 and OFFSET.fullmatch(n)}
        check(often, f"no offsets: {sorted(one)}")
        check(often <= set(other), f"names of one run alone: {often - set(other)}")


if __name__ == "__main__":
    run(globals())
