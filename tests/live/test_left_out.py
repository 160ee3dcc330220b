#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Processes that were left out, or attached without probes: each window's report shows that, and the log has it once,
when it begins."""

import os
import re
import shutil
import signal
import time

from harness import Report, Skip, SLOWNESS, Target, cases, check, program, run, thorough
from test_calls import ALWAYS
from test_windows import stopped, windows

LEFT_OUT = r"(\d+) processes of user 0 were left out"


def sleepers(t, n):
    """Start n processes that sleep."""
    targets = [Target([program("Server", "thr")], ready=None) for _ in range(n)]
    t.started.extend(targets)
    for target in targets:
        target.wait_for("waiting", 120)
    return targets


def daemon(t, descriptors, *options):
    folder = t.dir / "windows"
    folder.mkdir()
    session = t.session("--comm", "Server", "-f", "json", "-F", 19, "-o", folder, "--window", 1, *options,
                        prefix=("prlimit", f"--nofile={descriptors}:{descriptors}"))
    return session, folder


def wait_for(folder, session, enough):
    deadline = time.monotonic() + 60 * SLOWNESS
    while not enough(windows(folder)):
        check(time.monotonic() < deadline, f"there are {len(windows(folder))} windows; it printed {session.err.seen}")
        session.err.drain()
        time.sleep(0.2)


def missing(report, pattern):
    """The messages that match, for each process of the report."""
    return [[m for m in target["missing"] if re.search(pattern, m)] for target in report.json["targets"]]


@thorough
def test_no_room(t):
    """One user has more processes than are allowed: each window reports how many were left out, and the log when that
    began; once the others have ended a late one is attached."""
    targets = sleepers(t, 20)
    session, folder = daemon(t, 256)
    wait_for(folder, session, lambda reports: len(reports) >= 3)
    early = [line for line in session.err.seen if "left out" in line]
    check(len(early) == 1 and "further processes of user 0" in early[0], f"meanwhile it printed {session.err.seen}")
    for report in windows(folder)[:3]:
        live = len(report.json["targets"])
        check(0 < live < len(targets), f"there are {live} of {len(targets)}")
        for texts in missing(report, LEFT_OUT):
            check(len(texts) == 1, f"left out, but the window lacks {texts}")
            n = int(re.search(LEFT_OUT, texts[0])[1])
            check(n == len(targets) - live, f"{n} were left out of {len(targets)}, of which {live} are there")
    # end all of them: then no process is left out
    for target in targets:
        target.kill()
    n = len(windows(folder))
    wait_for(folder, session, lambda reports: len(reports) >= n + 10)
    late = sleepers(t, 1)[0]
    wait_for(folder, session, lambda reports: late.pid in [x["pid"] for x in reports[-2].json["targets"]] if len(reports) > 1 else False)
    check(not any(missing(windows(folder)[-2], LEFT_OUT)), "ended processes still count as left out")
    session.signal(signal.SIGTERM)
    session.wait()


def test_which_limit(t):
    """Where the limit on descriptors leaves room for so few processes, it is named."""
    sleepers(t, 16)
    session = t.session("--comm", "Server", "-d", 1, "-f", "json", "-o", t.dir / "report.json",
                        prefix=("prlimit", "--nofile=208:208"))
    session.wait()
    named = "; at most 26 in all, as no more than 208 descriptors may be open (RLIMIT_NOFILE)"
    lines = [line for line in session.err.seen if "left out" in line]
    check(len(lines) == 2 and all(line.endswith(named) for line in lines), f"it printed {session.err.seen}")
    report = Report(t.dir / "report.json")
    check(all(len(texts) == 1 and texts[0].endswith(named) for texts in missing(report, LEFT_OUT)),
          f"missing: {missing(report, LEFT_OUT)}")


def test_no_descriptors(t):
    """With too few descriptors some processes cannot be inspected: each window has their number, the log has it once,
    and the exit code reports it. Once all have been checked, each process is either a target or counted as left out,
    also for lack of room if descriptors were closed meanwhile."""
    pattern = r"(\d+) processes could not be inspected.* descriptors may be open"
    targets = sleepers(t, 20)
    session, folder = daemon(t, 140 + 2 * os.cpu_count())

    def left_out(report, reason):
        return [int(re.search(reason, texts[0])[1]) if texts else 0 for texts in missing(report, reason)]

    def without_room(reports):
        return any(any(left_out(report, pattern)) for report in reports)

    def from_complete(reports):
        """The windows from the first one that accounts for all processes."""
        for n, report in enumerate(reports):
            counts = [sum(of_target) for of_target in zip(left_out(report, pattern), left_out(report, LEFT_OUT))]
            if counts and counts[0] + len(counts) == len(targets):
                return reports[n:]
        return []

    wait_for(folder, session, lambda reports: len(from_complete(reports)) >= 3 and without_room(reports))
    early = [line for line in session.err.seen if "cannot be inspected" in line]
    check(len(early) == 1, f"meanwhile it printed {session.err.seen}")
    reports = windows(folder)
    session.signal(signal.SIGTERM)
    code = session.wait()
    check(code == 1, f"it ended with {code}: {session.err.seen}")
    for report in filter(lambda report: any(left_out(report, pattern)), reports):
        check(report.json["session"]["exit"] == 1, f"its exit is {report.json['session']['exit']}")
    reports = from_complete(reports)[:3]
    for report in reports:
        live = len(report.json["targets"])
        check(0 < live < len(targets), f"there are {live} of {len(targets)}; it printed {session.err.seen}")
        for reason in pattern, LEFT_OUT:
            check(len(set(left_out(report, reason))) == 1, f"not all targets have the same number: {missing(report, reason)}")
        counts = left_out(report, pattern)[0], left_out(report, LEFT_OUT)[0]
        check(sum(counts) == len(targets) - live, f"of {len(targets)} there are {live}, left out are {counts}")


@cases("nofile=64", "as=60000000")
def test_limit_is_named(t, name):
    """With a limit too low to begin, the message names the limit and how much is needed; with that much it begins."""
    target = sleepers(t, 1)[0]
    kind, limit = name.split("=")
    # with --pid the process is looked at before the session begins, and without memory it fails there
    which = ("--pid", target.pid) if kind == "nofile" else ("--comm", "Server")

    def run_it(limit):
        session = t.session(*which, "-d", 0.2, "-f", "json", "-o", t.dir / "it.json",
                            prefix=("prlimit", f"--{kind}={limit}:{limit}"))
        return session.wait(), session.err.seen

    code, said = run_it(limit)
    check(code == 2 and len(said) == 1 and f"RLIMIT_{kind.upper()}" in said[0], f"it ended with {code}: {said}")
    needs = re.search(r"no more than 64 descriptors .*; safescoped needs (\d+) or more", said[0])
    if kind == "nofile":
        check(needs, f"how many it needs is not shown: {said}")
        code, said = run_it(needs[1])
        check(code == 0, f"with that many it ended with {code}: {said}")


@thorough
def test_no_probes(t):
    """With enough descriptors for all but some of the probes, the report lists those that are missing. How many that
    takes depends on the machine."""
    target = sleepers(t, 1)[0]
    found = 0
    for descriptors in range(72 + 2 * os.cpu_count(), 160 + 4 * os.cpu_count(), 2):
        path = t.dir / f"{descriptors}.json"
        session = t.session("--pid", target.pid, "-d", 0.2, "-f", "json", "-o", path,
                            prefix=("prlimit", f"--nofile={descriptors}:{descriptors}"))
        code = session.wait()
        failed = [line for line in session.err.seen if "no probe on" in line]
        if code == 0:
            check(not failed, f"it ended with 0, and printed {session.err.seen}")
            break
        if not failed or code != 1:
            continue
        found += 1
        report = Report(path).json
        check(report["session"]["exit"] == 1, f"its exit is {report['session']['exit']}")
        lacks = [m for m in report["targets"][0]["missing"] if "probes could not be set: Too many open files" in m]
        check(len(lacks) == 1, f"the report lacks {report['targets'][0]['missing']}")
        if any("suspendThread" in line or "resumeThread" in line for line in failed):
            check("safe calls are not counted" in lacks[0], f"{lacks[0]}; it printed {failed}")
            calls = report["targets"][0]["safe_calls"]
            # calls that were open when the session began are known all the same, but not how many others there were
            check(calls, "no call goes on in a program that sleeps in one")
            check(all(not c["exact"] and c["observed_share"] == 0 for c in calls), f"{calls}")
        if any("GC end" in line for line in failed):
            gc = report["targets"][0]["gc"]
            check("collections are not seen" in lacks[0] and gc["count"] is None and gc["exact"] is not True, f"{lacks[0]}; {gc}")
    if not found:
        raise Skip("no limit leaves descriptors for everything but a probe")


def test_only_missed_ones(t):
    """That a process of a profiled program ended before it could be inspected is logged if no process is in the window,
    whose profile would show it."""
    path = shutil.copy(program("Calls"), t.dir / f"missed{os.getpid()}")
    folder = t.dir / "windows"
    folder.mkdir()
    session = t.session("--comm", path.name, "-v", "-f", "json", "-o", folder, "--window", "600", *ALWAYS)
    session.wait_attached()

    def run_one(attached):
        target = Target([path, "1", "safe_sleep_1ms=20"])
        t.started.append(target)
        if attached:
            session.wait_attached_to(target.pid)
        target.go()
        target.result()

    def cut(n):
        session.signal(signal.SIGUSR1)
        deadline = time.monotonic() + 60 * SLOWNESS
        while len(windows(folder)) < n:
            check(time.monotonic() < deadline, f"{len(windows(folder))} windows; it printed {session.err.seen}")
            time.sleep(0.1)

    run_one(True)
    cut(1)
    cut(2)
    with stopped(session):
        run_one(False)
    cut(3)
    session.signal(signal.SIGINT)
    check(session.wait() == 0, f"safescoped ended so: {session.err.seen}")
    shown = [len(report.json["targets"]) for report in windows(folder)]
    check(shown[0] == 1 and not any(shown[1:]), f"windows of {shown} processes")
    said = [line for line in session.err.seen if "ended before" in line]
    check(said == ["safescoped: 1 process of profiled programs ended before it could be inspected"], f"it printed {session.err.seen}")


if __name__ == "__main__":
    run(globals())
