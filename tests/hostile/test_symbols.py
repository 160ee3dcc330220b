#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Symbol tables that take very long to read: nobody else has to wait because of them."""

import os
import signal
import struct
import time

from hostile import NOBODY, OUT, as_nobody, build, haskell, start
from harness import ATTACHED, check, run

SHT_SYMTAB, SHT_STRTAB, SHT_DYNSYM = 2, 3, 11
GLOBAL_FUNCTION, UNDEFINED = 0x12, 0
# A generous limit for a session's end, for a busy machine.
IN_TIME = 8
OTHER_USER = 65533


class Sections:
    """The sections of an ELF file, which can be replaced by others at the file's end."""

    def __init__(self, path):
        self.bytes = bytearray(path.read_bytes())
        self.at, = struct.unpack_from("<Q", self.bytes, 40)
        self.count, = struct.unpack_from("<H", self.bytes, 60)

    def find(self, kind):
        return next(i for i in range(self.count) if struct.unpack_from("<I", self.bytes, self.at + 64 * i + 4)[0] == kind)

    def place(self, number):
        """(offset, size, link)"""
        return struct.unpack_from("<QQI", self.bytes, self.at + 64 * number + 24)

    def data(self, number):
        offset, size, _ = self.place(number)
        return bytes(self.bytes[offset:offset + size])

    def replace(self, number, data):
        self.bytes += bytes(-len(self.bytes) % 16)
        struct.pack_into("<QQ", self.bytes, self.at + 64 * number + 24, len(self.bytes), len(data))
        self.bytes += data


def symbol(name, value=0, section=UNDEFINED):
    return struct.pack("<IBBHQQ", name, GLOBAL_FUNCTION, 0, section, value, 0)


def owned(path, data):
    """A program or library that belongs to the attacker: a file that only root can have written is no attack."""
    path.write_bytes(data)
    path.chmod(0o755)
    os.chown(path, NOBODY, NOBODY)
    return path


def with_long_names(path, out, symbols, length):
    """The program with additional function symbols, which all have the same name, of this length."""
    elf = Sections(path)
    table = elf.find(SHT_SYMTAB)
    strings = elf.place(table)[2]
    old, names = elf.data(table), elf.data(strings)
    functions = [s for s in struct.iter_unpack("<IBBHQQ", old) if s[1] & 15 == 2 and s[3] and s[4]]
    more = [symbol(len(names), functions[i % len(functions)][4], functions[i % len(functions)][3]) for i in range(symbols)]
    elf.replace(table, old + b"".join(more))
    elf.replace(strings, names + b"q" * length + b"\0")
    return owned(out, elf.bytes)


def with_many_imports(path, out, symbols):
    """The library with additional undefined symbols."""
    elf = Sections(path)
    table = elf.find(SHT_DYNSYM)
    elf.replace(table, elf.data(table) + symbol(1) * symbols)
    return owned(out, elf.bytes)


def check_others(t, hostile):
    """While such a program runs, another user's is profiled as usual, and the session ends in time."""
    other = start(t, as_nobody([haskell("Calls"), "1", "safe_spin_20us=500", "safe_sleep_1ms=3000"], OTHER_USER))
    session = t.session("--pid", hostile.pid, "--pid", other.pid, "--max-overhead", "1000", "-v", "-f", "json",
                        "-o", f"{t.stem}.json")
    check(session.err.until(ATTACHED, 60) is not None, f"safescoped did not begin: {session.err.seen}")
    hostile.go()
    other.go()
    truth = other.result()
    began = time.monotonic()
    session.signal(signal.SIGTERM)
    code = session.wait()
    took = time.monotonic() - began
    print(f"   SIGTERM took {took:.2f} s", flush=True)
    check(code in (0, 1), f"safescoped ended with {code}: {session.err.seen}")
    check(took < IN_TIME, f"SIGTERM took {took:.1f} s")
    got = t.report().target(other.pid)
    check(not [m for m in got["missing"] if "held up" in m], f"the session's loop stood still: {got['missing']}")
    for name in ("safe_spin_20us", "safe_sleep_1ms"):
        calls = sum(c["calls"] for c in got["safe_calls"] if c["function"] == name)
        check(calls == truth[name]["calls"], f"{calls} calls of {name}, {truth[name]['calls']} were made")


def test_long_names(t):
    """Each of 200 000 symbols has a name of 32 MB: reading them all takes minutes."""
    path = with_long_names(haskell("Calls"), OUT / "long-names", 200_000, 32 << 20)
    check_others(t, start(t, as_nobody([path, "1", "unsafe_spin_1ms=20000"])))


IMPORTS = 8_000_000
LIBRARIES = 8


def test_many_imports(t):
    """A call's function is looked up in all mapped files: some of these have millions of symbols."""
    one = build("libvictim.so", sources=["libvictim.c"], flags=["-shared", "-fPIC"])
    many = with_many_imports(one, OUT / "0", IMPORTS)
    folder = OUT / "imports"
    folder.mkdir(exist_ok=True)
    for i in range(LIBRARIES):
        owned(folder / str(i), many.read_bytes())
    library = build("libmap_many.so", sources=["map_many.c"], flags=["-shared", "-fPIC"])
    check_others(t, start(t, as_nobody(["env", f"LD_PRELOAD={library}", f"MAP_MANY={folder}", "MAP_FIRST=0",
                                        f"MAP_COUNT={LIBRARIES}", haskell("Calls"), "1", "safe_spin_20us=1000",
                                        "unsafe_spin_1ms=20000"])))


if __name__ == "__main__":
    run(globals())
