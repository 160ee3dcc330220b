#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Limited resources: one user's programs cannot use up what others need, and programs that have ended hold nothing."""

import concurrent.futures
import os
import re
import resource
import shutil
import signal
import subprocess
import time
from pathlib import Path

from hostile import NOBODY, OUT, as_nobody, build, haskell, start, whole_host
from harness import SLOWNESS, Skip, check, run
from test_system import dump, maps_of

# The limits of files with unwind rows: per process, and of all together (bpf/wire_maps.h).
ROWS_OF_A_PROCESS = 256
ROWS = 4096
# The files are mostly holes: they take no room on the disk, but reading a file means reading all of it.
FILE_BYTES = 2 << 20
MEMORY_MAX_MB = 200
# The report lists this many of the processes that ended last; for the others it has sums.
PLACES = 1024
# The number of processes in which several threads end at the same time.
AT_ONCE = 100
SHORT_LIVED = int(os.environ.get("SHORT_LIVED", "600"))


def elf_files(count):
    """A folder with `count` different small ELF files, each with a function and its unwind rows."""
    folder = OUT / "elf"
    one = build("one.so", sources=["libvictim.c"], flags=["-shared", "-nostdlib", "-fPIC", "-Wl,-z,noseparate-code"])
    folder.mkdir(exist_ok=True)
    for i in range(count):
        path = folder / str(i)
        if not path.exists():
            shutil.copy(one, path)
            os.truncate(path, FILE_BYTES)
    return folder


def mapper(folder, first, count, *args):
    """A Haskell program of an ordinary user's that maps `count` of the files."""
    library = build("libmap_many.so", sources=["map_many.c"], flags=["-shared", "-fPIC"])
    return as_nobody(["env", f"LD_PRELOAD={library}", f"MAP_MANY={folder}", f"MAP_FIRST={first}",
                      f"MAP_COUNT={count}", haskell("Calls"), *args])


def own_memory_mb(pid):
    """The memory that the process allocated itself, not counting files."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(x for x in status.splitlines() if x.startswith("RssAnon")).split()[1]) / 1024


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def missing(target, text):
    return [m for m in target["missing"] if text in m]


def check_victim(t, report, victim):
    """All stacks of the victim are complete, from the C function up to the program's main."""
    target = report.target(victim.pid)
    check(not missing(target, "unwind rows") and not missing(target, "has no names"),
          f"the other user's program lacks something: {target['missing']}")
    stacks = target["stacks"]
    check(stacks["samples"] > 50, f"hardly any samples: {stacks}")
    whole = stacks["complete"] + stacks["elided"]
    check(whole >= 0.95 * stacks["samples"], f"{whole} of {stacks['samples']} stacks are whole: {stacks}")
    unsafe = [c for c in target["unsafe_calls"] if c["function"] == "unsafe_spin_1ms"]
    known = sum(c["samples"] for c in unsafe if (c["caller"] or "").lstrip("~").startswith("Main."))
    check(known >= 0.95 * sum(c["samples"] for c in unsafe) > 0,
          f"the caller of unsafe_spin_1ms is not shown: {target['unsafe_calls']}")


def victim(t):
    """A program that nobody else runs: its own file's unwind rows are needed. It runs long enough to be looked at
    although many others start at the same time."""
    path = OUT / "Calls.victim"
    if not path.exists():
        shutil.copy(haskell("Calls"), path)
    return start(t, [path, 1, "unsafe_spin_1ms=6000", "safe_spin_1ms=2000"])


def finish(t, session):
    session.signal(signal.SIGINT)
    check(session.wait() in (0, 1), f"safescoped said: {session.err.seen[-3:]}")
    return t.report()


def test_one_process_maps_2000_files(t):
    folder = elf_files(2000)
    session = whole_host(t)
    attacker = start(t, mapper(folder, 0, 2000, 1, "safe_sleep_1ms=10"))
    time.sleep(1)
    most = own_memory_mb(session.pid)
    other = victim(t)
    other.go()
    while other.process.poll() is None and not other.lines.ended:
        most = max(most, own_memory_mb(session.pid))
        try:
            other.lines.next(0.1)
        except TimeoutError:
            pass
    check(other.wait() == 0, "the other user's program failed")
    report = finish(t, session)
    check(most < MEMORY_MAX_MB, f"{most:.0f} MB of memory, of {2000 * FILE_BYTES >> 20} MB that were mapped")
    check_victim(t, report, other)
    reports = missing(report.target(attacker.pid), "has no names")
    check(reports and "1024" in reports[0], f"the report does not show what was left out: {report.target(attacker.pid)['missing']}")


def test_many_processes_use_up_unwind_rows(t):
    each = ROWS_OF_A_PROCESS - 20
    count = ROWS // each + 2
    folder = elf_files(count * each)
    session = whole_host(t)
    attackers = [start(t, mapper(folder, i * each, each, 1, "safe_sleep_1ms=10")) for i in range(count)]
    time.sleep(1)
    other = victim(t)
    other.go()
    check(other.wait() == 0, "the other user's program failed")
    report = finish(t, session)
    check_victim(t, report, other)
    # by the limit of rows per user, or already by that of files
    reports = [a for a in attackers if missing(report.target(a.pid), str(NOBODY))]
    check(len(reports) >= count // 4, f"{len(reports)} of {count} reports show what was left out")


# More than half of the threads that the kernel side has room for (bpf/wire_maps.h).
THREADS = 16384 // 2 + 200


def many_threads(t, trigger, *settings):
    """A Haskell program of an ordinary user's that starts many threads when the file `trigger` exists."""
    library = build("libmany_threads.so", sources=["many_threads.c"], flags=["-shared", "-fPIC", "-pthread"])
    trigger.parent.mkdir(exist_ok=True)
    trigger.parent.chmod(0o777)
    # left by an earlier try
    for old in trigger.parent.glob(f"{trigger.name}*"):
        old.unlink()
    return start(t, as_nobody(["env", f"LD_PRELOAD={library}", f"MANY_THREADS_WHEN={trigger}", *settings,
                               haskell("Calls"), 1, "safe_sleep_1ms=10"]))


def wait_for_threads(trigger):
    trigger.touch()
    deadline = time.monotonic() + 60
    while not list(trigger.parent.glob("go.*")) and time.monotonic() < deadline:
        time.sleep(0.1)
    if not (trigger.parent / "go.done").exists():
        raise Skip("that many threads are not available here")
    time.sleep(1)


def test_one_process_has_many_threads(t):
    """A process with many threads uses up its own user's share, and nothing of other users'."""
    trigger = OUT / "many_threads" / "go"
    attacker = many_threads(t, trigger, f"MANY_THREADS={THREADS}")
    session = whole_host(t)
    wait_for_threads(trigger)
    other = victim(t)
    other.go()
    check(other.wait() == 0, "the other user's program failed")
    # once they have ended the attacker's next program is complete again
    attacker.go()
    check(attacker.wait() == 0, "the program with many threads failed")
    later = start(t, as_nobody([haskell("Calls"), 1, "safe_sleep_1ms=100"]))
    later.go()
    check(later.wait() == 0, "its user's next program failed")
    report = finish(t, session)
    check(not missing(report.target(later.pid), "threads of user"),
          f"what was refused before it began is reported for it: {report.target(later.pid)['missing']}")
    check_victim(t, report, other)
    check(not missing(report.target(other.pid), "threads of user"), f"it lacks threads: {report.target(other.pid)['missing']}")
    reports = missing(report.target(attacker.pid), f"threads of user {NOBODY}")
    check(reports, f"the report does not show what was left out: {report.target(attacker.pid)['missing']}")


def test_threads_that_end_make_room(t):
    """More threads than the kernel side has room for, one after the other: the last ones are followed like the first."""
    trigger = OUT / "ending_threads" / "go"
    target = many_threads(t, trigger, f"MANY_THREADS={2 * THREADS}", "MANY_THREADS_END=1")
    session = whole_host(t)
    wait_for_threads(trigger)
    target.go()
    check(target.wait() == 0, "the program failed")
    got = finish(t, session).target(target.pid)
    check(not missing(got, "threads of user"), f"threads that ended took up all the room: {got['missing']}")
    calls = sum(c["calls"] for c in got["safe_calls"] if c["function"] == "safe_sleep_1ms")
    check(calls == 10, f"{calls} of its 10 calls were counted")


def test_threads_that_end_at_once_leave_nothing(t):
    """If several threads of a process end at the same time, none of them leaves anything in the kernel's maps, whatever
    the order."""
    trigger = OUT / "at_once" / "go"
    attacker = many_threads(t, trigger, "MANY_THREADS=8")
    trigger.touch()
    session = whole_host(t)
    threads = maps_of(session)["threads"]
    environment = {**os.environ, "LD_PRELOAD": str(OUT / "libmany_threads.so"), "MANY_THREADS": "8", "MANY_THREADS_WHEN": str(trigger)}

    def run_one(_):
        command = [haskell("Calls"), "1", "safe_sleep_1ms=2"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment) as process:
            process.communicate(b"go\n")
        session.err.drain()
        return process.pid

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        ended = set(pool.map(run_one, range(AT_ONCE)))
    deadline = time.monotonic() + 10 * SLOWNESS
    while (left := sum(x["formatted"]["value"]["th"]["tgid"] in ended for x in dump(threads))) and time.monotonic() < deadline:
        time.sleep(0.5)
    attacker.go()
    attacker.wait()
    finish(t, session)
    check(not left, f"{left} threads of processes that have ended were left")


def accounted(report, path):
    """How many processes of a program the report accounts for: individually, in sums, or as having ended too early."""
    alone = [x for x in report.json["targets"] if x["exe"] == str(path)]
    sums = sum(x["processes"] for x in report.json.get("ended_programs", ()) if x["exe"] == str(path))
    early = re.findall(r"^(\d+) process(?:es)? of profiled programs ended before", "\n".join(alone[0]["missing"]), re.M)
    return len(alone) + sums + sum(map(int, early))


def test_short_lived_programs_leave_nothing(t):
    """After SHORT_LIVED (600) processes the daemon has as many descriptors as after 100, and hardly more memory."""
    path = haskell("Calls")
    # the first process of a program is looked at; later ones are known from their exec on
    first = start(t, [path, 1, "safe_sleep_1ms=10"])
    session = whole_host(t)

    def run_one():
        subprocess.run([path, "1", "safe_sleep_1ms=2"], input=b"go\n", stdout=subprocess.DEVNULL, check=True)

    for _ in range(100):
        run_one()
    time.sleep(3)
    before, memory, full = descriptors(session.pid), own_memory_mb(session.pid), None
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for n, run in enumerate([pool.submit(run_one) for _ in range(SHORT_LIVED - 100)]):
            run.result()
            session.err.drain()
            if n == 2 * PLACES:
                full = own_memory_mb(session.pid)
    time.sleep(3)
    first.go()
    first.wait()
    after, grown = descriptors(session.pid), own_memory_mb(session.pid) - memory
    report = finish(t, session)
    # others may run Haskell programs at the same time, whose files' probes are kept
    n = accounted(report, path)
    print(f"   {SHORT_LIVED} programs: {before} descriptors after 100, {after} after all of them; {grown:.1f} MB more memory; "
          f"{n} in the report", flush=True)
    check(after <= before + 60, f"{before} descriptors after 100 programs, {after} after {SHORT_LIVED}")
    if full:
        check(memory + grown - full < 4, f"{memory + grown - full:.1f} MB more than after {2 * PLACES} programs")
    else:
        check(grown < (SHORT_LIVED - 100) * 0.05, f"{grown:.1f} MB for {SHORT_LIVED - 100} programs")
    check(n >= 0.99 * SHORT_LIVED, f"the report accounts for {n} of {SHORT_LIVED + 1} processes")


def highest_descriptor(pid):
    return max(int(x) for x in os.listdir(f"/proc/{pid}/fd"))


def test_no_descriptors_left(t):
    """If the daemon has no descriptors for further processes they wait, and its report is complete."""
    first = start(t, [haskell("Calls"), 1, "safe_sleep_1ms=3000", "unsafe_spin_1ms=500"])
    session = t.session("--max-overhead", "1000", "-v", "-f", "json,speedscope,folded,html", "-o", t.stem)
    check(session.err.until("processes", 60) is not None, f"safescoped did not begin: {session.err.seen}")
    first.go()
    time.sleep(1)
    # it gets two more descriptors: those above are in its reserve for the session's end
    limit = highest_descriptor(session.pid) + 3
    resource.prlimit(session.pid, resource.RLIMIT_NOFILE, (limit, limit))
    others = []
    for i in range(20):
        path = OUT / f"Calls.many{i}"
        shutil.copy(haskell("Calls"), path)
        others.append(start(t, as_nobody([path, 1, "safe_sleep_1ms=2000"])))
    for other in others:
        other.go()
    check(session.err.until("cannot be inspected", 30) is not None, f"{descriptors(session.pid)} of {limit} descriptors: {session.err.seen}")
    time.sleep(1)
    session.signal(signal.SIGTERM)
    check(session.wait() in (0, 1), f"safescoped said: {session.err.seen[-3:]}")
    got = t.report().target(first.pid)
    check(got["safe_calls"] and got["stacks"]["samples"] > 0, "the report does not have what came before")
    for name in ("speedscope.json", "folded", "html"):
        check(Path(f"{t.stem}.{name}").stat().st_size > 100, f"no {name}")


def test_members_join_when_others_end(t):
    """With few descriptors there is room for some of a user's programs: the others join once some of these have ended."""
    programs = [start(t, as_nobody([haskell("Calls"), 1, "safe_sleep_1ms=60000"])) for _ in range(20)]
    session = t.session("--max-overhead", "1000", "-v", "-f", "json", "-o", f"{t.stem}.json",
                        prefix=("prlimit", "--nofile=240:240"))
    check(session.err.until("processes", 60) is not None, f"safescoped did not begin: {session.err.seen}")
    for program in programs:
        program.go()
    time.sleep(1)
    session.err.drain()
    waits = [p for p in programs if any(f"pid {p.pid}: waits" in line for line in session.err.seen)]
    first = [p for p in programs if p not in waits]
    check(first and waits, f"{len(waits)} of {len(programs)} programs had no room: the test proves nothing")
    for program in first:
        program.kill()
    time.sleep(12)
    report = finish(t, session)
    there = {target["pid"] for target in report.json["targets"]}
    late = sum(p.pid in there for p in waits)
    # other programs of the machine may have started in between
    check(late >= min(len(waits), len(first)) / 2, f"{late} of {len(waits)} programs joined when {len(first)} had ended")


if __name__ == "__main__":
    run(globals())
