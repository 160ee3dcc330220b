#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""--diff: two builds of a program with a known change, and the same build twice."""

import json
import re
import shutil
import subprocess

from harness import BUILD, SAFESCOPED, cases, check, check_near, run, thorough
from test_export import HERE, must_have, tool

CPU_SECONDS = 3
STEADY = tuple(f"steady{i}" for i in range(1, 7))


OFTEN = "1103"


class Session:
    """A run of the program until it has used a given amount of CPU time, with its capture, its report and its own
    account."""

    made = {}

    def __init__(self, t, name, way):
        target = t.target("Changed", CPU_SECONDS, way=way)
        self.capture = t.dir / f"{name}.capture"
        session = t.attach(target, "-F", OFTEN, "--save", self.capture, "-f", "json")
        target.go()
        self.truth = target.result(300)
        check(session.wait() == 0, f"safescoped failed: {session.err.seen}")
        self.report = t.dir / f"{name}.json"
        (t.dir / "p.json").rename(self.report)

    @classmethod
    def of(cls, t, name, way):
        """One run is shared by all tests, but a test that is tried again gets a new one."""
        key = (name, way)
        if key not in cls.made or t.name in cls.made[key].users:
            cls.made[key] = cls(t, name, way)
            cls.made[key].users = set()
        cls.made[key].users.add(t.name)
        return cls.made[key]


def diff(*args, code=0):
    done = subprocess.run([SAFESCOPED, "--diff", *map(str, args)], capture_output=True, text=True, timeout=120)
    check(done.returncode == code, f"{args}: ended with {done.returncode}: {done.stderr}")
    return done.stdout


def changes(text):
    """The lines of the section "What changed"."""
    return [l.strip(" ·") for l in text.partition("What changed\n")[2].partition("\n\n")[0].splitlines()]


UNITS = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}


def two_times(line):
    """(a, b) in ns from "…: 1.00 ms → 2.00 ms (…"."""
    found = re.search(r": ([\d.]+) (\S+) → ([\d.]+) (\S+) \(", line)
    check(found, f"no two times in {line!r}")
    return float(found[1]) * UNITS[found[2]], float(found[3]) * UNITS[found[4]]


@cases("capture", "report")
def test_two_builds(t, what):
    """One function takes twice as long, and one call sleeps for three times as long: these are reported as changed, and
    nothing else."""
    a, b = Session.of(t, "a", "thr"), Session.of(t, "b", "slower")
    said = changes(diff(getattr(a, what), getattr(b, what), "--per", "changed_fetch"))
    slower = [l for l in said if l.startswith("slower: ")]
    check(len(slower) == 1 and re.match(r"slower: ~?Main\.(\$w)?changed\b", slower[0]), f"slower is {slower} of {said}")
    check(not any(l.startswith("faster: ") for l in said), f"faster is something: {said}")
    check(any(l.startswith("calls take longer: changed_fetch") for l in said), f"not that calls take longer: {said}")
    for session, got in zip((a, b), two_times(slower[0])):
        want = session.truth["changed_ns"] / session.truth["rounds"]
        check_near("the function's time in a round, by the program's clock, in ns", got, want, 0.12 * want)
    # without --per the function's CPU time is compared with that of the functions that did not change
    said = changes(diff(getattr(a, what), getattr(b, what)))
    slower = [l for l in said if l.startswith("slower: ")]
    check(len(slower) == 1 and "changed" in slower[0], f"slower, by CPU time, is {slower} of {said}")
    check(not any(f in l for l in said for f in STEADY), f"by CPU time: {said}")


@cases((), ("--per", "changed_fetch"))
def test_the_same_twice(t, per):
    a, b = Session.of(t, "a", "thr"), Session.of(t, "again", "thr")
    for one, other in ((a.capture, b.capture), (a.report, b.capture), (b.report, a.report)):
        said = changes(diff(one, other, *per))
        check(said == ["nothing: all differences may be noise"], f"for the same program it reports {said}")


def check_keys(keys, described):
    """The graph does by keys what it does by the mouse: each leads to a frame that can be pointed at, too."""
    texts = [text for _, text, _ in keys]
    check(all(focus == "canvas" for _, _, focus in keys), f"in focus: {keys}")
    check(set(texts) <= described, f"{set(texts) - described} cannot be pointed at")
    down, (up, again, right, left, enter, parent, whole) = texts[:-7], texts[-7:]
    check(re.match(r"~?Main\.(\$w)?changed\n", down[-1]) and len(set(down)) == len(down) > 2, f"to the widest: {down}")
    check(down[0] == whole and up == parent == down[-2], f"from {down} to {texts[-7:]}")
    check(again == left == enter == down[-1] != right, f"to neighbours of {down[-1]}: {texts[-7:]}")


def test_folded_and_page(t):
    """Folded output has two columns, as flamegraph.pl expects for a differential flame graph; and the page works in a
    browser."""
    a, b = Session.of(t, "a", "thr"), Session.of(t, "b", "slower")
    diff(a.capture, b.capture, "--per", "changed_fetch", "-f", "folded,html", "-o", t.dir / "d")
    totals = {}
    for line in (t.dir / "d.folded").read_text().splitlines():
        match = re.fullmatch(r"(.+) (\d+) (\d+)", line)
        check(match, f"not two columns: {line!r}")
        function = next((f for f in (*STEADY, "changed") if re.search(rf"Main\.(\$w)?{f};|Main\.(\$w)?{f}$", match[1])), None)
        if function:
            old = totals.get(function, (0, 0))
            totals[function] = old[0] + int(match[2]), old[1] + int(match[3])
    # the first session's, scaled to the second one's number of rounds
    of_a, of_b = totals["changed"]
    check_near("changed, in µs of the second session's CPU time", of_b, b.truth["changed_ns"] / 1e3, b.truth["changed_ns"] / 1e4)
    check(1.7 <= of_b / of_a <= 2.3, f"changed took {of_a} and {of_b} µs for the same work")
    for f in STEADY:
        check(0.6 <= totals[f][1] / totals[f][0] <= 1.6, f"{f} took {totals[f]} µs for the same work")
    tool("sh", HERE / "import_folded.sh", "-d", t.dir / "d.folded", t.dir / "d.svg")
    svg = (t.dir / "d.svg").read_text()
    shown = re.findall(r"<title>[^<]*changed \([^<]*; ([+-][\d.]+)%\)</title>", svg)
    check(shown and all(float(s) > 0 for s in shown), f"flamegraph.pl shows {shown} of the function that changed")
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    must_have(BUILD / "npm" / "node_modules" / "playwright-core", "playwright-core")
    must_have(browser or "/nonexistent", "Chromium")
    seen = json.loads(tool("node", HERE / "open_diff.mjs", browser, t.dir / "d.html"))
    check(not seen["requests"] and not seen["errors"], f"it requested {seen['requests']}, errors: {seen['errors']}")
    check("slower: " in seen["text"] and "changed" in seen["text"], f"its text: {seen['text'][:500]}")
    described = [d for d in seen["described"] if re.match(r"~?Main\.(\$w)?changed\n", d)]
    check(described and all(", more" in d for d in described), f"it describes {described} of {seen['described']}")
    check(not any(", more" in d or ", less" in d for d in seen["described"] for f in STEADY if d.startswith(f"Main.{f}")
                  or d.startswith(f"Main.$w{f}")), f"it describes {seen['described']}")
    check_keys(seen["keys"], set(seen["described"]))


SIZES = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}


def two_sizes(line):
    """(a, b) in bytes from "…: 1.00 MB → 2.00 MB (…"."""
    found = re.search(r": ([\d.]+) (\S+) → ([\d.]+) (\S+) \(", line)
    check(found, f"no two sizes in {line!r}")
    return float(found[1]) * SIZES[found[2]], float(found[3]) * SIZES[found[4]]


class Allocating:
    """A run of a program that in each round allocates `factor` times as much in A as in B."""

    made = {}

    def __init__(self, t, name, factor):
        target = t.target("Alloc", "rounds", 4, factor, rts=("-A1m",))
        self.capture = t.dir / f"{name}.capture"
        session = t.attach(target, "--save", self.capture, "--max-overhead", "100", "-f", "json")
        target.go()
        self.truth = target.result(120)
        check(session.wait() == 0, f"safescoped failed: {session.err.seen}")

    @classmethod
    def of(cls, t, name, factor):
        key = (name, factor)
        if key not in cls.made or t.name in cls.made[key].users:
            cls.made[key] = cls(t, name, factor)
            cls.made[key].users = set()
        cls.made[key].users.add(t.name)
        return cls.made[key]


@thorough
def test_allocation(t):
    """One function allocates twice as much in each round: it is reported, and no other one."""
    a, b = Allocating.of(t, "alloc-a", 3), Allocating.of(t, "alloc-b", 6)
    text = diff(a.capture, b.capture, "--per", "getppid", "-v")
    said = [l for l in changes(text) if "allocate" in l]
    in_all = [l for l in said if l.startswith("more is allocated in all")]
    more = [l for l in said if l.startswith("allocates more: ")]
    check(len(in_all) == len(more) == 1 and len(said) == 2 and re.match(r"allocates more: AllocA\.(\$w)?buildA\b", more[0]),
          f"for allocation it reports {said}")
    for session, got in zip((a, b), two_sizes(in_all[0])):
        want = (session.truth["a"] + session.truth["b"]) / session.truth["rounds"]
        check_near("bytes in a round, as the thread counts them", got, want, 0.03 * want)
    for session, got in zip((a, b), two_sizes(more[0])):
        want = session.truth["a"] / session.truth["rounds"]
        check_near("the function's bytes in a round", got, want, 0.1 * want)
    folded = diff(a.capture, b.capture, "--per", "getppid", "--weight", "alloc", "-f", "folded", "-o", "-")
    rows = [re.fullmatch(r"(.+) (\d+) (\d+)", line) for line in folded.splitlines()]
    check(rows and all(rows), f"not two columns: {folded[:300]}")
    for function, factor in (("buildA", 2), ("buildB", 1)):
        sums = [sum(int(r[i]) for r in rows if re.search(rf"\.(\$w)?{function};?", r[1])) for i in (2, 3)]
        # the first session's, scaled to the second one's number of rounds
        want = b.truth["a" if function == "buildA" else "b"]
        check_near(f"{function}, in bytes of the second session", sums[1], want, 0.1 * want)
        check_near(f"{function}, in bytes of the first one's rounds", sums[0], want / factor, 0.15 * want)


@cases((), ("--per", "getppid"))
def test_the_same_allocation(t, per):
    a, b = Allocating.of(t, "alloc-a", 3), Allocating.of(t, "alloc-again", 3)
    said = [l for l in changes(diff(a.capture, b.capture, *per)) if "alloc" in l]
    check(not said, f"for the same program it reports {said}")


def test_other_files(t):
    """Files or options that cannot be compared are refused with a message that names the reason."""
    (t.dir / "none").write_text("nothing")
    (t.dir / "empty.json").write_text('{"safescope": {}, "targets": []}')
    (t.dir / "broken.json").write_text("{")
    for name in ("none", "empty.json", "broken.json", "nosuch"):
        done = subprocess.run([SAFESCOPED, "--diff", t.dir / name, t.dir / name], capture_output=True, text=True, timeout=60)
        check(done.returncode == 2 and len(done.stderr.splitlines()) == 1 and name in done.stderr and not done.stdout,
              f"{name}: ended with {done.returncode}: {done.stderr}")
    for args in (("x",), ("x", "y", "z"), ("x", "y", "-f", "chrome"), ("x", "y", "--pid", "1"), ("x", "y", "--per", ""),
                 ("x", "y", "--weight", "wall")):
        diff(*args, code=64)


if __name__ == "__main__":
    run(globals())
