#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Live OTLP profiles: what the real OpenTelemetry Collector understands is what the report has, even if the collector
is down for a while or the disk is full."""

import gzip
import signal
import subprocess
import time

from bad_server import HANG, Server
from collector import Collector
from harness import ROOT, cases, check, profile_run, run, thorough
from test_calls import ALWAYS
from test_windows import follow_each_other, windows

CALLS = (4, "safe_half_2ms=400", "safe_spin_20us=2000", "unsafe_spin_1ms=300", "safe_sleep_1ms=200")
ON_CPU = {"haskell", "unsafe_call_cpu", "safe_call_cpu", "gc_work", "rts", "foreign_cpu"}
IN_SAFE_CALLS = {"safe_call_cpu", "safe_call_blocked"}


def wanted(report, states):
    """{(pid, tid, state): ns} by the report; two threads may have had the same number."""
    sums = {}
    for target in report.json["targets"]:
        for lane in target["lanes"]:
            for state, ns in lane["states"].items() if lane["kind"] == "thread" else ():
                if ns and states(state):
                    key = (target["pid"], lane["tid"], state)
                    sums[key] = sums.get(key, 0) + ns
    return sums


def unknown_of(sums):
    """A thread in an unknown state may be on a CPU or not, and the report does not distinguish the two: the sum of
    both."""
    both = {}
    for kind in ("cpu", "off_cpu"):
        for key in [k for k in sums.get(kind, {}) if k[2] == "unknown"]:
            both[key] = both.get(key, 0) + sums[kind].pop(key)
    return both


def compare(profiles, report):
    """Each thread's time in each state is the same, to the nanosecond."""
    sums = profiles.sums()
    sums["unknown"] = unknown_of(sums)
    for kind, states in (("cpu", lambda s: s in ON_CPU),
                         ("off_cpu", lambda s: s not in ON_CPU and s not in ("idle", "unknown")),
                         ("unknown", lambda s: s == "unknown"), ("safe_call", lambda s: s in IN_SAFE_CALLS)):
        got, want = sums.get(kind, {}), wanted(report, states)
        differ = {key: (got.get(key), want.get(key)) for key in got.keys() | want.keys() if got.get(key) != want.get(key)}
        check(not differ, f"{kind}: in the profile and in the report: {differ}")
    session = report.json["session"]
    check(profiles.start_unix_ns() == session["start_unix_ns"], "another start")
    for _, of_process in profiles.resources():
        check({int(p["durationNano"]) for p in of_process} == {session["duration_ns"]}, "another length")


@cases("thr", "v")
def test_a_file(t, way):
    """What -f otlp writes, sent unchanged, has the report's numbers."""
    collector = Collector(t)
    _, report, target = profile_run(t, "Calls", *CALLS, way=way, rts=("-N2",) if way == "thr" else (),
                                    options=(*ALWAYS, "-F", "499", "-f", "json,otlp", "--lanes", "thread,capability,haskell"))
    body = (t.dir / "p.otlp.pb.gz").read_bytes()
    check(collector.post(body) == 200, "the collector does not accept it")
    profiles = collector.next()
    compare(profiles, report)
    (resource, _), = profiles.resources()
    its = report.target()
    check(resource["process.pid"] == target.pid and resource["process.runtime.version"] == its["ghc"]["version"]
          and resource["process.executable.path"] == its["exe"] and resource["host.name"], f"the resource: {resource}")
    allocated = sum(profiles.sums().get("alloc_space", {}).values())
    check(allocated == (its.get("allocation") or {"bytes": 0})["bytes"], f"{allocated} bytes of {its.get('allocation')}")
    taken = sum(profiles.sums()["samples"].values())
    check(its["stacks"]["samples"] * 0.99 - 3 <= taken <= its["stacks"]["samples"], f"{taken} samples")
    seen = {frame for *_, stack in profiles.samples() for frame in stack}
    spin = [frame for frame in seen if frame[0] == "unsafe_spin_1ms"]
    check(spin == [("unsafe_spin_1ms", "native", its["exe"])], f"unsafe_spin_1ms is {spin}")
    # ~: the name of the nearest symbol
    check(any(kind == "haskell" and name.removeprefix("~").startswith("Main.") for name, kind, _ in seen), "no Haskell code in it")
    caps = {}
    for _, kind, a, ns, _ in profiles.samples():
        if a.get("ghc.state") == "unsafe_call_cpu" and kind == "cpu":
            caps[a.get("ghc.capability")] = caps.get(a.get("ghc.capability"), 0) + ns
    # None: that moment was not recorded in a lane, so the capability is unknown
    unknown = caps.pop(None, 0)
    check(caps and caps.keys() <= ({0, 1} if way == "thr" else {0}), f"unsafe calls ran on the capabilities {caps}")
    check(unknown <= 0.02 * sum(caps.values()), f"no capability is known for {unknown} ns of unsafe calls, of {caps}")
    check(gzip.decompress(body), "it is empty")


# ── sessions ──


def start(t, target, *options, window="1", env=None):
    folder = t.dir / "windows"
    folder.mkdir(exist_ok=True)
    session = t.session("--pid", target.pid, "-v", "-f", "json", "-o", folder, "--window", window,
                        "--push-queue", t.dir / "queue", *ALWAYS, *options, env=env)
    session.wait_attached()
    return session, folder


def queued(t):
    return sorted((t.dir / "queue").rglob("*.push"))


def has_something(report):
    return bool(wanted(report, lambda s: s != "idle") or sum(x["stacks"]["samples"] for x in report.json["targets"]))


def compare_all(collector, reports):
    """Each window arrived once, in order of time, with the report's sums."""
    reports = [r for r in reports if has_something(r)]
    for report in reports:
        profiles = collector.next()
        check(profiles.start_unix_ns() == report.json["session"]["start_unix_ns"], "another window, or one is missing")
        compare(profiles, report)
    check(collector.sink.seen.empty(), f"{collector.sink.seen.qsize()} more came")


def finish(session, number=signal.SIGTERM):
    """(its exit code, the seconds that its end took)"""
    begin = time.monotonic()
    session.signal(number)
    return session.wait(), time.monotonic() - begin


def test_windows(t):
    collector = Collector(t)
    target = t.target("Calls", *CALLS, "safe_sleep_1ms=3000", rts=("-N2",))  # three seconds, however fast the machine is
    session, folder = start(t, target, "--push", collector.url)
    target.go()
    target.result()
    check(session.wait() == 0, f"safescoped ended so: {session.err.seen}")
    reports = windows(folder)
    check(len(reports) >= 3, f"{len(reports)} windows")
    follow_each_other(reports)
    compare_all(collector, reports)
    check(not queued(t), "something is queued")
    pushes = reports[-1].json["session"]["pushes"]
    check(pushes[0]["url"] == collector.url and 0 < pushes[0]["delivered"] <= len(reports)
          and not pushes[0]["failures"] + pushes[0]["refused"] + pushes[0]["dropped"], f"{pushes}")


def test_one_session(t):
    """Without --window and without files there is one push, at the session's end."""
    collector = Collector(t)
    target = t.target("Calls", 2, "safe_sleep_1ms=20000")
    session = t.session("--pid", target.pid, "-d", "2", "-v", "--push", collector.url, "--push-queue", t.dir / "queue",
                        *ALWAYS)
    session.wait_attached()
    target.go()
    check(session.wait() == 0, f"safescoped ended so: {session.err.seen}")
    request = collector.next()
    (resource, profiles), = request.resources()
    kinds = sorted(request.type(p)[0] for p in profiles)
    # alloc_space: only if it collected garbage in that time
    check(resource["process.pid"] == target.pid and [k for k in kinds if k != "alloc_space"] ==
          ["cpu", "off_cpu", "safe_call", "samples"] and len(kinds) <= 5, f"{resource}: {kinds}")
    check(abs(int(profiles[0]["durationNano"]) - 2e9) < 1e9, f"it lasted for {profiles[0]['durationNano']} ns")
    check(not queued(t) and collector.sink.seen.empty(), "it came twice")
    check(not list(t.dir.glob("safescope-*")), "files were written")


@thorough
def test_down_and_back(t):
    """The collector stops and comes back, and stops again before the session ends: the next session sends what is left."""
    collector = Collector(t)
    target = t.target("Calls", 2, "safe_sleep_1ms=60000")
    session, folder = start(t, target, "--push", collector.url, window="0.5")
    target.go()
    time.sleep(2)
    collector.stop()
    time.sleep(3)
    check(len(queued(t)) >= 3, f"{len(queued(t))} are queued")
    collector.start()
    deadline = time.monotonic() + 30
    while len(queued(t)) > 1 and time.monotonic() < deadline:
        time.sleep(0.2)
    collector.stop()
    time.sleep(1.5)
    code, took = finish(session)
    check(code == 0 and took < 6, f"it ended with {code} after {took:.1f} s: {session.err.seen}")
    check(queued(t), "nothing is left")
    check(any("undelivered profiles are kept" in l for l in session.err.seen), f"{session.err.seen}")
    first = windows(folder)
    check(first[-1].json["session"]["pushes"][0]["failures"] > 0, "the report has no failures")
    collector.start()
    session, _ = start(t, target, "--push", collector.url)
    time.sleep(2.5)
    code, _ = finish(session)
    check(code == 0 and not queued(t), f"it ended with {code}: {session.err.seen}")
    compare_all(collector, windows(folder))


def test_hanging(t):
    """With a server that never answers profiling goes on as usual, and SIGTERM ends it in time."""
    server = Server(t, [HANG] * 1000)
    target = t.target("Calls", 2, "safe_sleep_1ms=60000")
    session, folder = start(t, target, "--push", server.url(), window="0.5")
    target.go()
    time.sleep(4)
    code, took = finish(session)
    reports = windows(folder)
    # two seconds, plus some for a busy machine
    check(code == 0 and took < 6, f"it ended with {code} after {took:.1f} s")
    check(len(reports) >= 7 and len(queued(t)) == len(reports), f"{len(queued(t))} of {len(reports)} are queued")
    follow_each_other(reports)


def test_disk_full(t):
    """What does not fit on the disk is dropped, counted and reported; what was queued arrives; then pushing goes on."""
    disk = t.dir / "queue"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], check=True)
    t.finally_do(lambda: subprocess.run(["umount", "-l", disk], check=True))
    collector = Collector(t)
    collector.stop()
    target = t.target("Calls", 2, "safe_sleep_1ms=60000")
    session, folder = start(t, target, "--push", collector.url, window="0.5")
    target.go()
    time.sleep(2)
    filler = open(disk / "full", "wb", buffering=0)
    try:
        while filler.write(bytes(4096)):
            pass
    except OSError:
        pass
    filler.close()
    time.sleep(2)
    left = len(queued(t))
    (disk / "full").unlink()
    collector.start()
    deadline = time.monotonic() + 30
    while len(queued(t)) > 1 and time.monotonic() < deadline:
        time.sleep(0.2)
    time.sleep(1)
    code, _ = finish(session)
    check(code == 1 and any("could not be queued" in l for l in session.err.seen), f"{code}: {session.err.seen}")
    reports = {r.json["session"]["start_unix_ns"]: r for r in windows(folder)}
    came = []
    while not collector.sink.seen.empty():
        profiles = collector.next()
        came.append(profiles.start_unix_ns())
        compare(profiles, reports[came[-1]])
    check(left <= len(came) < len(reports) and came == sorted(set(came)), f"{len(came)} of {len(reports)} came")
    dropped = max(r.json["session"]["pushes"][0]["dropped"] for r in reports.values())
    check(dropped >= len(reports) - len(came), f"{dropped} dropped, {len(came)} of {len(reports)} came")


@cases("files", "queue")
def test_slow_at_the_end(t, which):
    """A window that is still being written when the session ends is reported as what it is, and counted: its files take
    too long, or they are there and the queue does."""
    library, mark = t.dir / "slow_writer.so", t.dir / "mark"
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", library, ROOT / "tests" / "live" / "slow_writer.c"], check=True)
    collector = Collector(t)
    target = t.target("Calls", 2, "safe_sleep_1ms=60000")
    session, folder = start(t, target, "--push", collector.url, window="600", env={
        "LD_PRELOAD": str(library), "SLOW_WRITER_MARK": str(mark),
        "SLOW_WRITER_NAME": "Z.json" if which == "files" else ".push",
        "SLOW_WRITER_MS": "600000"})
    target.go()
    time.sleep(1)
    session.signal(signal.SIGUSR1)
    deadline = time.monotonic() + 60
    while not mark.exists():
        check(time.monotonic() < deadline, f"no window was written: {session.err.seen}")
        time.sleep(0.02)
    code, _ = finish(session)
    reports = windows(folder)
    why = {"files": "not written: its files take too long to write", "queue": "not pushed: it takes too long to queue"}
    reported = [l for l in session.err.seen if "a window is not" in l]
    check(code == 1 and len(reported) == 1 and why[which] in reported[0], f"it ended with {code}: {session.err.seen}")
    totals = [l for l in session.err.seen if "0 refused, 0 profiles rejected, 1 dropped" in l]
    check(len(totals) == 1, f"{session.err.seen}")
    check(len(reports) == (2 if which == "queue" else 1), f"{len(reports)} windows have files")
    # on a busy machine the last window may stay in the queue
    if "1 delivered" in totals[0]:
        compare_all(collector, reports[-1:])
    else:
        check("0 delivered" in totals[0] and "1 is still queued" in totals[0], totals[0])


if __name__ == "__main__":
    run(globals())
