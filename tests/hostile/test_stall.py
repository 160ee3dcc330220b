#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A program on a file system whose server may withhold its pages. While the kernel registers a uprobe it reads the page
and blocks every fork on the host: so no uprobe may be set on such a file."""

import os
import shutil
import signal
import struct
import subprocess
import time

from hostile import OUT, Stall, as_nobody, build, changed_code, haskell, mounted, start, whole_host
from harness import ATTACHED, cases, check, run

# Programs that sleep most of the time are to be sampled, too.
OFTEN = ("-F", "997")
PT_LOAD, PT_NOTE, READ = 1, 4, 4

# A shell script: mount an overlay of the attacker's over what the server serves. For the kernel its file system is an
# overlay then.
OVERLAY = ('ls -ld "$1" >/dev/null; mount -t overlay overlay -o lowerdir="$1:$2" "$3" && cd "$3" && exec ./program "$4" "$5"')


def target_on(t, point, kind):
    plan = ["1", "safe_sleep_1ms=3000"]
    if kind == "plain":
        return start(t, as_nobody([point / "program", *plan]))
    places = [OUT / f"overlay-{name}" for name in ("lower", "point")]
    for place in places:
        place.mkdir(parents=True, exist_ok=True)
    return start(t, as_nobody(["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", OVERLAY, "sh",
                               point, *places, *plan]))


@cases("plain host", "plain pid", "overlay host", "overlay pid")
def test_served_program(t, case):
    kind, mode = case.split()
    target = target_on(t, mounted(t), kind)
    if mode == "host":
        session = whole_host(t, *OFTEN)
    else:
        session = t.session("--pid", target.pid, *OFTEN, "--max-overhead", "1000", "-v", "-f", "json", "-o", f"{t.stem}.json")
        session.wait_attached()
    target.go()
    for _ in range(10):
        time.sleep(0.1)
        changed = changed_code(target.pid)
        check(not changed, f"probes in a file of the server's: {changed}")
        began = time.monotonic()
        subprocess.run(["true"], check=True)
        check(time.monotonic() - began < 2, "a fork had to wait")
    session.signal(signal.SIGINT)
    code = session.wait()
    check(code == 0, f"safescoped ended with {code}: {session.err.seen}")
    got = t.report().target(target.pid)
    reported = [m for m in got["missing"] if "file system" in m]
    check(reported, f"the report does not explain why there are no probes: {got['missing']}")
    check(got["lanes"] and got["stacks"]["samples"] > 0, "it was not even sampled")


# Generous, as this is not a test of speed: processors may be busy, and the session has to write a report.
IN_TIME = 12


@cases("before host", "meanwhile host", "meanwhile pid")
def test_server_that_does_not_answer(t, case):
    when, mode = case.split()
    point = mounted(t)
    served = start(t, as_nobody([point / "program", "1", "safe_sleep_1ms=100000"]))
    other = start(t, [haskell("Calls"), "1", "safe_sleep_1ms=100000"])
    if when == "before":
        Stall(t, point)
    pids = [] if mode == "host" else ["--pid", served.pid, "--pid", other.pid]
    session = t.session(*pids, *OFTEN, "--max-overhead", "1000", "-v", "-f", "json", "-o", f"{t.stem}.json")
    check(session.err.until("processes" if mode == "host" else ATTACHED, 40) is not None,
          f"safescoped did not begin: {session.err.seen}")
    if when == "meanwhile":
        Stall(t, point)
    other.go()
    served.say("go")
    time.sleep(2)
    began = time.monotonic()
    session.signal(signal.SIGTERM)
    code = session.wait()
    took = time.monotonic() - began
    check(code in (0, 1), f"safescoped ended with {code}: {session.err.seen}")
    check(took < IN_TIME, f"SIGTERM took {took:.1f} s")
    got = t.report().target(other.pid)
    check(got["stacks"]["samples"] > 0 and got["safe_calls"], "the other program was not seen")


HUNG = 30
# Two seconds are documented, a tenth of a second is usual; but processors may be busy.
END_IN_TIME = 4
# Below every program: the address in its memory that is read first.
LOWEST = 0x10000
OTHER_USER = 65533


def hanging(t, point, at=LOWEST):
    """A Haskell program of an ordinary user's that maps the server's file, by default where its memory is read first:
    reading it hangs when the server stalls."""
    library = build("libmap_many.so", sources=["map_many.c"], flags=["-shared", "-fPIC"])
    folder = OUT / f"maps-{point.name}"
    folder.mkdir(exist_ok=True)
    if not (folder / "0").is_symlink():
        (folder / "0").symlink_to(point / "program")
    where = [f"MAP_AT={at:x}"] if at else []
    return start(t, as_nobody(["env", f"LD_PRELOAD={library}", f"MAP_MANY={folder}", "MAP_FIRST=0", "MAP_COUNT=1", *where,
                               haskell("Calls"), "1", "safe_sleep_1ms=100000"]))


def seconds_until(what, condition, limit=60):
    began = time.monotonic()
    while not condition():
        check(time.monotonic() - began < limit, f"{what}: not within {limit} s")
        time.sleep(0.01)
    return time.monotonic() - began


def test_memory_of_many_hangs(t):
    """Nobody else is delayed by many such processes: neither a program that starts during the session, nor the
    session's end."""
    point = mounted(t)
    hung = [hanging(t, point) for _ in range(HUNG)]
    Stall(t, point)
    began = time.monotonic()
    session = whole_host(t, *OFTEN)
    begun = time.monotonic() - began
    own = OUT / "Calls.own"
    shutil.copy(haskell("Calls"), own)
    began = time.monotonic()
    other = start(t, as_nobody([own, "1", "safe_sleep_1ms=100000"], OTHER_USER))
    other.go()
    seconds_until("the other program's probes are on", lambda: changed_code(other.pid))
    attached = time.monotonic() - began
    time.sleep(2)
    began = time.monotonic()
    session.signal(signal.SIGTERM)
    code = session.wait()
    ended = time.monotonic() - began
    print(f"   {len(hung)} hang: the session began in {begun:.2f} s, the other program was probed after {attached:.2f} s, "
          f"SIGTERM took {ended:.2f} s", flush=True)
    check(code in (0, 1), f"safescoped ended with {code}: {session.err.seen}")
    check(begun < IN_TIME and attached < IN_TIME, "somebody had to wait")
    check(ended < END_IN_TIME, f"SIGTERM took {ended:.1f} s")
    got = t.report().target(other.pid)
    check(got["stacks"]["samples"] > 0 and got["safe_calls"], "the other program was not seen")
    held = [m for m in got["missing"] if "held up" in m]
    check(not held, f"the session's loop stood still: {held}")


def test_file_that_is_not_had(t):
    """A file that cannot be copied from the server is reported as missing."""
    point = mounted(t)
    target = hanging(t, point, None)
    Stall(t, point)
    session = t.session("--pid", target.pid, *OFTEN, "--max-overhead", "1000", "-v", "-f", "json", "-o", f"{t.stem}.json")
    session.wait_attached()
    session.signal(signal.SIGINT)
    code = session.wait()
    check(code in (0, 1), f"safescoped ended with {code}: {session.err.seen}")
    got = t.report().target(target.pid)
    check([m for m in got["missing"] if "could not be copied" in m], f"the report does not mention it: {got['missing']}")


SPARSE = 30
GB = 1 << 30


def sparse_program(path):
    """A program that prints "ready" and waits, with a segment of nearly 1 GiB that is a hole in its file: reading all
    of it takes long, while the file takes no room on the disk."""
    out = build("waits", sources=["waits.c"], flags=["-static", "-no-pie"])
    code = bytearray(out.read_bytes())
    heads, count = struct.unpack_from("<Q", code, 32)[0], struct.unpack_from("<H", code, 56)[0]
    at = next(heads + 56 * i for i in range(count)
              if struct.unpack_from("<I", code, heads + 56 * i)[0] == PT_NOTE)
    start = (len(code) + 0xffff) & ~0xffff
    size = GB - start - 4096
    struct.pack_into("<IIQQQQQQ", code, at, PT_LOAD, READ, start, 0x40000000, 0x40000000, size, size, 0x1000)
    path.write_bytes(code)
    os.truncate(path, start + size)
    path.chmod(0o755)
    return path


def test_sparse_programs(t):
    sparse = [sparse_program(OUT / f"sparse-{k}") for k in range(SPARSE)]
    for path in sparse:
        start(t, as_nobody([path]))
    other = start(t, [haskell("Calls"), "1", "safe_sleep_1ms=100000"])
    began = time.monotonic()
    session = whole_host(t, *OFTEN)
    check(time.monotonic() - began < 3 * IN_TIME, f"the start took {time.monotonic() - began:.1f} s")
    other.go()
    time.sleep(2)
    began = time.monotonic()
    session.signal(signal.SIGTERM)
    code = session.wait()
    check(code in (0, 1), f"safescoped ended with {code}: {session.err.seen}")
    check(time.monotonic() - began < IN_TIME, f"SIGTERM took {time.monotonic() - began:.1f} s")
    got = t.report().target(other.pid)
    check(got["stacks"]["samples"] > 0 and got["safe_calls"], "the other program was not seen")


if __name__ == "__main__":
    run(globals())
