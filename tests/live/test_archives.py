#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Names from static archives in programs without symbols. Each name is compared, by binutils, with the symbols of the
same program before it was stripped, at the same address; and a minimum share of each program's code must be named."""

import functools
import json
import re
import shutil
import subprocess
from pathlib import Path

from harness import BUILD, PROGRAMS, ROOT, SAFESCOPED, Skip, cases, check, program, run

# Minimum shares of the code that comes from archives; the program's own modules and objects come from none.
NAMED_C, NAMED_CMM, NAMED_HASKELL = 0.9, 0.95, 0.5


def printed_by(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def directories():
    """(the directory of the C library and gmp, GHC's library directory)"""
    libc = printed_by("gcc", "-print-file-name=libc.a")
    if not libc.startswith("/"):
        raise Skip("no libc.a; run: scripts/install-deps --test")
    return libc.rpartition("/")[0], printed_by("ghc", "--print-libdir")


def symbols_of(twin):
    """{address: {name}}, {address: size of its code}."""
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
        # the program's own modules
        return None if any(re.match(r"(Main|Shelf\w*|Work)_", n) for n in names) else "Haskell"
    return "C"


def defined_by(archive):
    """The names of the functions that an archive's objects define."""
    listed = subprocess.run(["nm", "--defined-only", archive], capture_output=True, text=True).stdout
    return {fields[2] for fields in map(str.split, listed.splitlines()) if len(fields) == 3 and fields[1] in "tTwWi"}


def known_in(said, file=r"\S+"):
    """{address: name}, from the output of -v -v; `file`: only for the file of that name."""
    found = (re.search(rf" {file}: by archives: 0x([0-9a-f]+) (\S+)$", line) for line in said)
    return {int(m[1], 16): m[2] for m in found if m}


def shares(known, names, sizes):
    """{kind: the share of its code, in bytes, that is named}"""
    named, there = {}, {}
    for address, size in sizes.items():
        kind = kind_of(names[address])
        there[kind] = there.get(kind, 0) + size
        if address in known:
            named[kind] = named.get(kind, 0) + size
    return {kind: named.get(kind, 0) / there[kind] for kind in there if kind}


def check_names(what, known, names, at_least=1):
    """Each name is that of a symbol at this very address."""
    wrong = {hex(a): (n, names.get(a)) for a, n in known.items() if n not in names.get(a, ())}
    check(len(known) >= at_least and not wrong,
          f"{what}: of {len(known)} names {len(wrong)} are wrong: {list(wrong.items())[:8]}")


def check_libraries(twin, said):
    """No function that the program's libraries export gets another name from archives."""
    for library in map(Path, re.findall(r"=> (/\S+)", printed_by("ldd", twin))):
        known, names = known_in(said, re.escape(library.resolve().name)), {}
        for address, name in re.findall(r"^(\w+) [TWi] ([^@\s]+)", printed_by("nm", "-D", library), re.M):
            names.setdefault(int(address, 16), set()).add(name)
        check_names(library.name, {a: n for a, n in known.items() if a in names}, names, 0)


def session_of(t, name, args, way, *options):
    """(the report, what it printed)"""
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
    check_names(case, known, names)
    got = shares(known, names, sizes)
    leaves, frames = report["leaf_names"], report["names"]
    print(f"  {case}: {len(known)} functions; named {got}; leaves {leaves}")
    # a dynamically linked program has little C code of its own
    check(got["C"] >= NAMED_C and got["Cmm"] >= NAMED_CMM and got["Haskell"] >= NAMED_HASKELL, f"named: {got}")
    # the program's own modules are in no archive
    own = sum(f["self_samples"] for f in report["functions"] if re.match(r"~?(Main|Shelf)", f["module"] or ""))
    check(frames["archive"] > 0 and leaves["archive"] >= 0.45 * (sum(leaves.values()) - own), f"{frames}, {leaves}, own: {own}")
    # a function that only the runtime defines is attributed to the runtime
    runtime = defined_by(Path(ghc) / "rts" / "libHSrts_thr.a") - defined_by(Path(libc) / "libc.a")
    kinds = {f["name"]: f["kind"] for f in report["functions"] if f["name"] in runtime}
    check("GarbageCollect" in kinds and set(kinds.values()) <= {"gc", "rts", "haskell"}, f"the runtime's: {kinds}")


def test_the_c_library_alone(t):
    """Without GHC's archives the C library's functions have their names, and no other function gets a wrong one."""
    libc, _ = directories()
    _, said = session_of(t, "Work", ("alloc", 1), "static", "--archives", libc)
    names, _ = symbols_of(program("Work", "static"))
    known = known_in(said)
    check_names("without GHC's archives", known, names, 501)
    check({"malloc", "clock_gettime", "__gmpn_mul_1"} <= set(known.values()), f"{len(known)} names")


def test_position_independent(t):
    """A position-independent Haskell program with libgmp.a linked in: its functions are named wherever it is loaded."""
    libc, _ = directories()
    report, said = session_of(t, "Powers", (2,), "pie", "--archives", libc)
    twin = program("Powers", "pie")
    check(is_relocatable(twin), "the program is not position independent")
    names, sizes = symbols_of(twin)
    known = known_in(said, "Powers")
    check_names("pie Powers", known, names, 80)
    check_libraries(twin, said)
    got, leaves = shares(known, names, sizes), report["leaf_names"]
    print(f"  pie Powers: {len(known)} functions; named {got}; leaves {leaves}")
    check(got["C"] >= NAMED_C, f"named: {got}")
    # nearly all of its time is in libgmp
    gmp = sum(f["self_samples"] for f in report["functions"] if f["name"].startswith("__gmpn_"))
    check(gmp >= 0.9 * sum(leaves.values()) and leaves["archive"] >= gmp, f"libgmp's: {gmp} of {leaves}")


# ── programs not made by GHC: Debian's Haskell libraries cannot be linked in these ways ──

GMP, STATIC_GMP, M = ["-DGMP"], ["-Wl,-Bstatic", "-lgmp", "-Wl,-Bdynamic"], ["-lm"]
MUSL_PIE = ["-fPIE", "-static", "-Wl,-pie", "-Wl,--no-dynamic-linker"]
# {way: (the compiler, the options before the source, those after it)}
LINKED = {
    "static": ("gcc", [*GMP, "-static", "-no-pie"], ["-lgmp", *M]),
    "static-pie": ("gcc", [*GMP, "-static-pie", "-fPIE"], ["-lgmp", *M]),
    "pie": ("gcc", [*GMP, "-pie", "-fPIE"], [*STATIC_GMP, *M]),
    "gold static": ("gcc", [*GMP, "-static", "-no-pie", "-fuse-ld=gold"], ["-lgmp", *M]),
    "gold pie": ("gcc", [*GMP, "-pie", "-fPIE", "-fuse-ld=gold"], [*STATIC_GMP, *M]),
    "lld static-pie": ("gcc", [*GMP, "-static-pie", "-fPIE", "-fuse-ld=lld"], ["-lgmp", *M]),
    "lld pie": ("gcc", [*GMP, "-pie", "-fPIE", "-fuse-ld=lld"], [*STATIC_GMP, *M]),
    "musl static": ("musl-gcc", ["-static", "-no-pie"], M),
    "musl static-pie": ("musl-gcc", MUSL_PIE, M),
    "musl lld static-pie": ("musl-gcc", [*MUSL_PIE, "-fuse-ld=lld"], M),
}


@functools.cache
def by_archive():
    """A tool that looks for functions as a session does, in any file."""
    tool = BUILD / "tools" / "by_archive"
    subprocess.run(["make", "-s", tool.relative_to(ROOT)], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return tool


def compiled(*command):
    for tool in (command[0], *(f"ld.{word[9:]}" for word in map(str, command) if word.startswith("-fuse-ld="))):
        if not shutil.which(tool):
            raise Skip(f"no {tool}; run: scripts/install-deps --test")
    done = subprocess.run(command, capture_output=True, text=True)
    check(done.returncode == 0, f"{' '.join(map(str, command))}: {done.stderr}")


def is_relocatable(file):
    """Whether it is position independent."""
    return "DYN" in re.search(r"Type: *(\w+)", printed_by("readelf", "-h", file))[1]


def found_in(twin, *folders):
    """{address: name} found in the file without its symbols."""
    stripped = twin.with_name(twin.name + ".stripped")
    subprocess.run(["strip", "-o", stripped, twin], check=True)
    done = subprocess.run([by_archive(), stripped, *folders], capture_output=True, text=True)
    check(done.returncode == 0, f"{twin.name}: {done.stderr[-500:]}")
    return known_in(done.stderr.splitlines())


def libc_of(compiler):
    """The directory of the C library that this compiler links."""
    shown = subprocess.run([compiler, "-###", "-static", PROGRAMS / "archived.c"], capture_output=True, text=True)
    found = [Path(folder) for folder in re.findall(r"-L\"?([^\s\"]+)", shown.stderr)]
    found = [folder for folder in found if (folder / "libc.a").exists()]
    if not found:
        raise Skip(f"no libc.a of {compiler}; run: scripts/install-deps --test")
    return found[0]


@cases(*LINKED)
def test_linked(t, way):
    """Much of the C library, and libgmp, linked in each way: the names are right, and nearly all C code has one."""
    compiler, before, after = LINKED[way]
    twin = t.dir / "archived"
    compiled(compiler, "-O2", *before, "-o", twin, PROGRAMS / "archived.c", *after)
    check(is_relocatable(twin) == way.endswith("pie"), f"it is linked differently: {printed_by('readelf', '-h', twin)}")
    known = found_in(twin, libc_of(compiler))
    names, sizes = symbols_of(twin)
    check_names(way, known, names, 200)
    got = shares(known, names, sizes)["C"]
    print(f"  {way}: {len(known)} functions, {got:.4f} of {sum(sizes.values())} bytes")
    check(got >= NAMED_C, f"named: {got}")


def test_weak(t):
    """If there is a strong symbol the linker ignores the weak one of the same name. Its own function may still be in
    the program, and must not get the strong one's name."""
    twin = t.dir / "archived"
    compiled("musl-gcc", "-O2", "-static", "-no-pie", "-o", twin, PROGRAMS / "archived.c", "-lm")
    known = found_in(twin, libc_of("musl-gcc"))
    names, _ = symbols_of(twin)
    simple = [a for a, n in names.items() if "__simple_malloc" in n]
    real = [a for a, n in names.items() if "__libc_malloc_impl" in n]
    check(len(simple) == len(real) == 1 and simple != real, "musl's malloc has changed")
    got = known.get(simple[0]), known.get(real[0])
    check(got[0] == "__simple_malloc" and got[1], f"their names are {got}")


# ── each form of the instructions that linkers rewrite ──

MODELS = {
    "global-dynamic": ["-ftls-model=global-dynamic"],
    "local-dynamic": ["-ftls-model=local-dynamic"],
    "initial-exec": ["-ftls-model=initial-exec"],
    "descriptors": ["-mtls-dialect=gnu2"],
    "no-plt": ["-fno-plt"],
    "no-plt-descriptors": ["-fno-plt", "-mtls-dialect=gnu2"],
    "old-got": ["-Wa,-mrelax-relocations=no"],
}
# The relocations whose instructions a linker may rewrite.
RELAXED = {"TLSGD", "TLSLD", "GOTTPOFF", "GOTPC32_TLSDESC", "TLSDESC_CALL", "GOTPCREL", "GOTPCRELX", "REX_GOTPCRELX",
           "PLT32", "DTPOFF32"}
HOW = [["-static", "-no-pie"], ["-static-pie"], ["-pie"], ["-pie", "-fuse-ld=gold"], ["-pie", "-fuse-ld=lld"],
       ["-static-pie", "-fuse-ld=lld"]]
FUNCTIONS = {"relaxed_sum", "relaxed_print", "relaxed_address", "relaxed_tail"}


def test_relaxed(t):
    """An archive compiled with each model of thread-local variables and of the GOT, linked by each linker: its
    functions are named."""
    source, seen = PROGRAMS / "relaxed.c", set()
    others, main = t.dir / "others.o", t.dir / "main.o"
    compiled("gcc", "-O2", "-fPIC", "-DOTHERS", "-c", source, "-o", others)
    compiled("gcc", "-O2", "-fPIE", "-DMAIN", "-c", source, "-o", main)
    for model, options in MODELS.items():
        folder = t.dir / model
        folder.mkdir()
        compiled("gcc", "-O2", "-fPIC", *options, "-c", source, "-o", folder / "relaxed.o")
        compiled("ar", "rc", folder / "librelaxed.a", folder / "relaxed.o", others)
        seen |= set(re.findall(r"R_X86_64_(\w+)", printed_by("readelf", "-rW", folder / "relaxed.o")))
        for number, how in enumerate(HOW):
            twin = folder / f"program{number}"
            compiled("gcc", *how, main, folder / "librelaxed.a", "-o", twin)
            known = found_in(twin, folder)
            check_names(f"{model} {how}", known, symbols_of(twin)[0])
            check(FUNCTIONS <= set(known.values()), f"{model} {how}: no {FUNCTIONS - set(known.values())}")
    check(RELAXED <= seen, f"the compiler makes no {RELAXED - seen}")


def test_list(t):
    _, ghc = directories()
    target = t.target("Work", "alloc", 5, way="static.stripped")
    done = subprocess.run([SAFESCOPED, "--list", "-f", "json", "--archives", ghc], capture_output=True, text=True)
    check(done.returncode == 0, f"--list: {done.stderr}")
    row = {p["pid"]: p for p in json.loads(done.stdout)["processes"]}[target.pid]
    check(row["names"] == ["archive", "module"], f"the row is {row}")
    target.go()


def test_no_archives(t):
    """A directory without archives is an error, and a replay refuses the option."""
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
