#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Probes act on every process that maps a file: no program may cause one to be set in another program's file at a wrong
place."""

import os
import signal
import struct
import subprocess
import tempfile
import time
from pathlib import Path

from hostile import (NOBODY, OUT, PROBED, as_nobody, build, check_only_probed_for, check_untouched, haskell, start,
                     symbol_offset, whole_host)
from harness import PROGRAMS, cases, check, run
import test_kinds

# The constant in `lea 0x1(%rdi),%eax`.
CONSTANT = 2


def victim_library():
    return build("libvictim.so", sources=["libvictim.c"], flags=["-shared", "-fPIC", "-fcf-protection=none"])


def victim(t):
    library = victim_library()
    path = build("victim", "-L", OUT, "-lvictim", f"-Wl,-rpath,{OUT}", sources=["victim.c"])
    return start(t, [path]), library


def fake(library):
    """An ordinary user's program: a fake runtime whose suspendThread is in the middle of one of the library's
    instructions."""
    at = symbol_offset(library, "add_one") + CONSTANT
    path = build(f"fake_runtime.{at & 0xfff:x}", sources=["fake_runtime.c"],
                 flags=["-static", "-no-pie", f"-DTARGET={at & 0xfff}"])
    return as_nobody([path, library, at & ~0xfff])


def test_runtime_in_another_file_begins(t):
    other, library = victim(t)
    session = whole_host(t)
    # some are looked at before they have mapped the file, some after
    for _ in range(12):
        start(t, fake(library))
        time.sleep(0.2)
        check_untouched(other, "the other user's program")
    session.signal(signal.SIGINT)
    session.wait()
    other.close_input()
    check(other.wait() == 0, f"the other user's program: {other.lines.seen}")


def test_runtime_in_another_file_is_there(t):
    other, library = victim(t)
    attacker = start(t, fake(library))
    session = whole_host(t)
    time.sleep(1)
    check_untouched(other, "the other user's program")
    session.signal(signal.SIGINT)
    session.wait()
    other.close_input()
    check(other.wait() == 0, f"the other user's program: {other.lines.seen}")
    check(not any(x["pid"] == attacker.pid and x["safe_calls"] for x in t.report().json["targets"]),
          "calls of a program that makes none")


def test_wrong_page_of_the_runtime(t):
    """The attacker maps another user's Haskell program with one page in the wrong place."""
    path = haskell("Calls")
    other = start(t, [path, 1, "safe_spin_20us=2000", "safe_sleep_1ms=4000"])
    text = symbol_offset(path, "suspendThread")
    last = symbol_offset(path, "_fini")
    base = 0x7000_0000_0000
    mapper = build("two_maps", sources=["two_maps.c"])
    wrong = [base + (text & ~0xfff), (text & ~0xfff) + 4096]
    right = [base + (last & ~0xfff), last & ~0xfff]
    attacker = start(t, as_nobody([mapper, path, *wrong, *right]))
    session = whole_host(t)
    start(t, as_nobody([mapper, path, *wrong, *right]))
    other.go()
    check_only_probed_for(1, other, path)
    truth = other.result()
    session.signal(signal.SIGINT)
    session.wait()
    got = t.report().call("safe_sleep_1ms", other.pid)
    check(got["calls"] == truth["safe_sleep_1ms"]["calls"], f"{got['calls']} calls, the program made {truth}")
    check(attacker.process.poll() is None, "the attacker ended: it did not do what it should")


# ── a forged debug file ──


def run_tool(*command):
    subprocess.run([str(c) for c in command], check=True)


BUILD_ID = "abcdef0123456789abcdef0123456789abcdef01"


def with_build_id():
    flags, _ = test_kinds.KINDS["eventlog"]
    return test_kinds.compile_by(
        ["ghc", "-v0", "-O1", "-rtsopts", *flags, f"-optl-Wl,--build-id=0x{BUILD_ID}", f"-i{PROGRAMS}", "-outputdir",
         OUT / "debug.o.d", PROGRAMS / "Calls.hs", test_kinds.calls_object()],
        OUT / "Calls.build-id", PROGRAMS / "Calls.hs", PROGRAMS / "Ready.hs", PROGRAMS / "calls.c")


def json_names(value):
    """Every text in a part of the report."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for x in inner for text in json_names(x)]


def forge(debug):
    """Move the symbols of probed functions into the middle of their first instructions (except suspendThread and
    resumeThread, which are also found by the code itself), and name all other functions FORGED."""
    elf = bytearray(debug.read_bytes())
    sections_at, size, count = struct.unpack_from("<Q10xHH", elf, 0x28)[0], *struct.unpack_from("<HH", elf, 0x3a)
    heads = [struct.unpack_from("<IIQQQQIIQQ", elf, sections_at + i * size) for i in range(count)]
    table = next(h for h in heads if h[1] == 2)  # SHT_SYMTAB
    names = heads[table[6]][4]
    for at in range(table[4], table[4] + table[5], 24):
        name, info, _, _, value, _ = struct.unpack_from("<IBBHQQ", elf, at)
        end = elf.index(0, names + name)
        text = elf[names + name:end].decode(errors="replace")
        if text in PROBED[2:]:
            struct.pack_into("<Q", elf, at + 8, value + 1)
        elif info & 15 == 2 and len(text) > 6:  # STT_FUNC
            elf[names + name:names + name + 6] = b"FORGED"
    debug.write_bytes(elf)


@cases("user", "root")
def test_forged_debug_file(t, uid):
    """A forged debug file, in the attacker's own mount namespace, for a program of root's that others run, too. As
    root: like the image of a container, whose files also belong to root outside."""
    folder = Path(tempfile.mkdtemp(prefix=f"debug-{uid}-", dir=OUT))
    folder.chmod(0o755)
    debug = folder / f"lib/debug/.build-id/{BUILD_ID[:2]}/{BUILD_ID[2:]}.debug"
    debug.parent.mkdir(parents=True)
    plain, path = with_build_id(), folder / "Calls"
    run_tool("objcopy", "--only-keep-debug", plain, debug)
    run_tool("strip", "-o", path, plain)
    forge(debug)
    enter = f"mount --bind {folder}/lib/debug /usr/lib/debug && exec {path} 1 safe_sleep_1ms=10"
    attack = ["unshare", "--mount", "--propagation", "private", "sh", "-c", enter]
    if uid == "user":
        for p in (folder / "lib", *(folder / "lib").rglob("*")):
            os.chown(p, NOBODY, NOBODY)
        attack[1:1] = ["--user", "--map-root-user"]
        attack = as_nobody(attack)
    os.makedirs("/usr/lib/debug", exist_ok=True)
    session = whole_host(t)
    attacker = start(t, attack)
    time.sleep(0.5)
    other = start(t, [path, 1, "safe_spin_20us=2000", "safe_sleep_1ms=3000"])
    other.go()
    check_only_probed_for(1, other, path, plain)
    truth = other.result()
    attacker.go()
    attacker.wait()
    session.signal(signal.SIGINT)
    session.wait()
    report = t.report()
    # without symbols the call has no name
    calls = [c["calls"] for c in report.target(other.pid)["safe_calls"]]
    check(truth["safe_sleep_1ms"]["calls"] in calls, f"calls: {calls}, the program made {truth}")
    forged = [n for n in json_names(report.target(other.pid)) if "FORGED" in n]
    check(not forged, f"the victim's functions have the attacker's names: {forged[:3]}")


if __name__ == "__main__":
    run(globals())
