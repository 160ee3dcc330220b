#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions of static archives in programs without symbols: of each name that is given, whether the program's
twin, which the linker left its symbols, has it in that very place, by binutils; and how much of a program is named."""

import json
import re
import subprocess
from pathlib import Path

from harness import SAFESCOPED, Skip, cases, check, program, run

# Of the symbols' code that comes from archives; the program's own modules and objects are in none.
NAMED_C, NAMED_CMM, NAMED_HASKELL = 0.9, 0.95, 0.5


def printed_by(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def directories():
    """(that of the C library and gmp, GHC's)"""
    libc = printed_by("gcc", "-print-file-name=libc.a")
    if not libc.startswith("/"):
        raise Skip("no libc.a; run: scripts/install-deps --test")
    return libc.rpartition("/")[0], printed_by("ghc", "--print-libdir")


def symbols_of(twin):
    """{address: {name}}, {address: size} of its code."""
    names, sizes = {}, {}
    for line in printed_by("nm", "-S", twin).splitlines():
        fields = line.split()
        if len(fields) < 3 or fields[-2] not in "tTwWi":
            continue
        names.setdefault(int(fields[0], 16), set()).add(fields[-1])
        if len(fields) == 4:
            sizes[int(fields[0], 16)] = int(fields[1], 16)
    return names, sizes


def kind_of(names):
    if any(n.startswith("stg_") for n in names):
        return "Cmm"
    if any(re.search(r"_(info|entry|slow|fast)$", n) for n in names):
        # the program's own
        return None if any(re.match(r"(Main|Shelf\w*|Work)_", n) for n in names) else "Haskell"
    return "C"


def defined_by(archive):
    """The names of the functions that an archive's objects define."""
    listed = subprocess.run(["nm", "--defined-only", archive], capture_output=True, text=True).stdout
    return {fields[2] for fields in map(str.split, listed.splitlines()) if len(fields) == 3 and fields[1] in "tTwWi"}


def known_in(said):
    """{address: name}, as safescoped says with -v -v."""
    found = (re.search(r": by archives: 0x([0-9a-f]+) (\S+)$", line) for line in said)
    return {int(m[1], 16): m[2] for m in found if m}


def shares(known, names, sizes):
    """{kind: the share of its code's bytes that is named}"""
    named, there = {}, {}
    for address, size in sizes.items():
        kind = kind_of(names[address])
        there[kind] = there.get(kind, 0) + size
        if address in known:
            named[kind] = named.get(kind, 0) + size
    return {kind: named.get(kind, 0) / there[kind] for kind in there if kind}


def session_of(t, name, args, way, *options):
    """(the report, what it said)"""
    target = t.target(name, *args, way=f"{way}.stripped")
    session = t.attach(target, "-v", "-v", "-F", "499", "--max-overhead", "1000", *options)
    target.go()
    check(target.wait() == 0, "the test program failed")
    check(session.wait() == 0, f"safescoped failed: {session.err.seen[-3:]}")
    return t.report().target(target.pid), session.err.seen


@cases("static Work", "static Shelf", "thr Shelf")
def test_names(t, case):
    way, name = case.split()
    libc, ghc = directories()
    options = [option for folder in (libc, ghc) for option in ("--archives", folder)]
    report, said = session_of(t, name, ("alloc", 2) if name == "Work" else (2,), way, *options)
    names, sizes = symbols_of(program(name, way))
    known = known_in(said)
    wrong = {hex(a): (n, names.get(a)) for a, n in known.items() if n not in names.get(a, ())}
    check(known and not wrong, f"of {len(known)} names {len(wrong)} are wrong: {list(wrong.items())[:8]}")
    got = shares(known, names, sizes)
    leaves, frames = report["leaf_names"], report["names"]
    print(f"  {case}: {len(known)} functions; named {got}; leaves {leaves}")
    # a program that is linked dynamically has little C code of its own
    check(got["C"] >= NAMED_C and got["Cmm"] >= NAMED_CMM and got["Haskell"] >= NAMED_HASKELL, f"named: {got}")
    # the program's own modules are in no archive
    own = sum(f["self_samples"] for f in report["functions"] if re.match(r"~?(Main|Shelf)", f["module"] or ""))
    check(frames["archive"] > 0 and leaves["archive"] >= 0.45 * (sum(leaves.values()) - own), f"{frames}, {leaves}, own: {own}")
    # of a function that only the runtime has it is known that it is the runtime's
    runtime = defined_by(Path(ghc) / "rts" / "libHSrts_thr.a") - defined_by(Path(libc) / "libc.a")
    kinds = {f["name"]: f["kind"] for f in report["functions"] if f["name"] in runtime}
    check("GarbageCollect" in kinds and set(kinds.values()) <= {"gc", "rts", "haskell"}, f"the runtime's: {kinds}")


def test_the_c_library_alone(t):
    """Without GHC's archives the C library's functions have their names, and nothing else gets a wrong one."""
    libc, _ = directories()
    _, said = session_of(t, "Work", ("alloc", 1), "static", "--archives", libc)
    names, _ = symbols_of(program("Work", "static"))
    known = known_in(said)
    wrong = {hex(a): (n, names.get(a)) for a, n in known.items() if n not in names.get(a, ())}
    check(len(known) > 500 and not wrong, f"of {len(known)} names {len(wrong)} are wrong: {list(wrong.items())[:8]}")
    check({"malloc", "clock_gettime", "__gmpn_mul_1"} <= set(known.values()), f"{len(known)} names")


def test_list(t):
    _, ghc = directories()
    target = t.target("Work", "alloc", 5, way="static.stripped")
    done = subprocess.run([SAFESCOPED, "--list", "-f", "json", "--archives", ghc], capture_output=True, text=True)
    check(done.returncode == 0, f"--list: {done.stderr}")
    row = {p["pid"]: p for p in json.loads(done.stdout)["processes"]}[target.pid]
    check(row["names"] == ["archive", "module"], f"the row is {row}")
    target.go()


def test_no_archives(t):
    """A directory without any is an error, and a replay refuses the option."""
    (t.dir / "empty").mkdir()
    target = t.target("Work", "alloc", 1)
    for where in (t.dir / "empty", t.dir / "nowhere"):
        done = subprocess.run([SAFESCOPED, "--pid", str(target.pid), "-d", "1", "--archives", where],
                              capture_output=True, text=True, cwd=t.dir)
        check(done.returncode == 2 and f"--archives {where}" in done.stderr, f"{done.returncode}: {done.stderr}")
    done = subprocess.run([SAFESCOPED, "--replay", t.dir / "none", "--archives", t.dir], capture_output=True, text=True)
    check(done.returncode == 64 and "--archives" in done.stderr, f"{done.returncode}: {done.stderr}")
    target.go()


if __name__ == "__main__":
    run(globals())
