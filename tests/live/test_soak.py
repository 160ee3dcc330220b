#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The service as an operator runs it: processes come and go, the collector is restarted, Prometheus scrapes. Nothing is
lost, each window arrives once, memory stays flat, and the windows add up to what the programs counted and to what
Prometheus has of the whole session.

SAFESCOPED_SOAK: for how many seconds programs are started (45)."""

import os
import shutil
import signal
import statistics
import threading
import time
from pathlib import Path

from collector import Collector
from harness import SLOWNESS, Failure, Target, check, check_near, program, run
from test_metrics import address, child_of, get, prometheus, query, scrape, total, wait_until
from test_push import compare, has_something
from test_windows import follow_each_other, windows

SECONDS = float(os.environ.get("SAFESCOPED_SOAK", "45"))
WINDOW = 1 if SECONDS <= 300 else 10
LONG, SHORT = 16, 4
# unique, so that another soak's programs are not profiled
NAME = f"soak{os.getpid()}"
CALLS = ("safe_sleep_1ms", "safe_sleep_20ms", "safe_half_2ms")
# The figures of a process that has ended are kept for five minutes; for this long they certainly are.
SHOWN_FOR = 240
# How much a process may grow under a constant load: memory that its allocator does not give back.
GROWTH, GROWTH_KB = 0.05, 1024


class Programs:
    """LONG programs run all the time, and SHORT at a time come and go; each counts its own calls."""

    def __init__(self, t):
        self.t = t
        self.calls, self.work = (Path(shutil.copy(program(name), t.dir / f"{NAME}-{name.lower()}")) for name in ("Calls", "Work"))
        self.long = [self.start(self.calls, 1, f"safe_sleep_20ms={int(SECONDS * 50)}") for _ in range(LONG - 2)]
        self.long += [self.start(self.calls, 2, f"safe_sleep_1ms={int(SECONDS * 1000)}", "+RTS", "-N2") for _ in range(2)]
        # pid: what the programs with this pid, one after the other, printed of their calls; in an hour pids are used
        # again
        self.truth = {}
        self.failed = None
        self.ended = {}
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=self.come_and_go, args=(i,)) for i in range(SHORT)]

    def start(self, path, *args):
        target = Target([path, *args])
        self.t.started.append(target)
        return target

    def one(self, i, n):
        """Start callers and collectors in turn, each for about one to a few seconds."""
        if (i + n) % 3 == 0:
            target = self.start(self.work, "alloc", "1", "+RTS", "-A256k")
        else:
            target = self.start(self.calls, 1, f"safe_sleep_1ms={200 * (1 + n % 4)}", f"safe_half_2ms={20 * (1 + i)}",
                                f"safe_sleep_20ms={30 * (1 + (i + n) % 8)}")
        # by then it is attached: the first calls of a program that is new to the host are not counted
        time.sleep(0.5 * SLOWNESS)
        target.go()
        if (i + n) % 3:
            counted = target.result(SECONDS + 300)
        else:
            check(target.wait(300) == 0, "Work failed")
            counted = {}
        self.truth.setdefault(target.pid, []).append(counted)
        # there are about two thousand of them in an hour, with two pipes each
        target.kill()

    def come_and_go(self, i):
        n = 0
        try:
            while not self.stop.is_set():
                self.one(i, n)
                n += 1
        except Exception as e:  # pylint: disable=broad-exception-caught
            self.failed = e

    def go(self):
        for target in self.long:
            target.go()
        for thread in self.threads:
            thread.start()

    def end(self):
        """Wait until all have ended."""
        self.stop.set()
        for thread in self.threads:
            thread.join()
        check(self.failed is None, f"a program failed: {self.failed}")
        # some end minutes before others: shorter sleeps are more numerous, and each takes longer than requested
        while len(self.ended) < len(self.long):
            for target in self.long:
                if target.process.poll() is not None:
                    self.ended.setdefault(target.pid, time.monotonic())
            time.sleep(0.5)
        for target in self.long:
            self.truth.setdefault(target.pid, []).append(target.result(SECONDS * 5 + 300))


class Memory:
    """The resident memory of a process, measured twice a second."""

    def __init__(self, t, pid):
        self.pid, self.kb, self.over = pid, [], threading.Event()
        self.thread = threading.Thread(target=self.look)
        self.thread.start()
        t.finally_do(self.end)

    def look(self):
        while not self.over.wait(0.5):
            try:
                status = Path(f"/proc/{self.pid}/status").read_text()
                self.kb.append(int(status.split("VmRSS:")[1].split()[0]))
            except (OSError, IndexError):
                return

    def end(self):
        self.over.set()
        self.thread.join()

    def is_flat(self):
        """Compare the low of the last third (the first decile) with that of the third before: the peaks are windows
        being written."""
        self.end()
        third = len(self.kb) // 3
        check(third >= 10, f"{len(self.kb)} looks at the memory")
        before, last = (statistics.quantiles(part, n=10)[0] for part in (self.kb[third:2 * third], self.kb[2 * third:]))
        check(last <= before * (1 + GROWTH) + GROWTH_KB, f"from {before:.0f} to {last:.0f} kB: {self.kb}")


def restart(collector, after, down):
    time.sleep(after)
    collector.stop(signal.SIGTERM)
    time.sleep(down)
    collector.start()


def wait_for_all(where, pids, seconds=60 * SLOWNESS):
    deadline = time.monotonic() + seconds
    while True:
        series = scrape(where)
        left = [pid for pid in pids if not total(series, "target_info", pid=str(pid))]
        if not left:
            return
        check(time.monotonic() < deadline, f"never profiled: {left}")
        time.sleep(0.5)


def settled(where, server):
    """Wait until all that was pushed has arrived, and Prometheus has figures from after the programs' end."""
    ended = time.time() + 3
    for _ in range(120):
        series = scrape(where)
        read = query(server, "safescoped_figures_time_seconds")
        if read and min(read.values()) > ended and total(series, "push_queued") <= 1:
            return
        time.sleep(0.5)
    raise Failure("no newer figures arrived, or the queue does not shrink")


def arrived_once(collector, reports):
    """Each window that has any contents arrived exactly once, with the report's sums. After an outage the second may
    arrive before the first, as a request that keeps failing does not hold up others."""
    wanted = {r.json["session"]["start_unix_ns"]: r for r in reports if has_something(r)}
    came = []
    while not collector.sink.seen.empty():
        profiles = collector.next()
        came.append(profiles.start_unix_ns())
        check(came[-1] in wanted, "a window without a report arrived")
        compare(profiles, wanted[came[-1]])
    check(sorted(came) == sorted(wanted), f"{len(came)} windows came, {len(set(came))} different ones; there are {len(wanted)}")


def nothing_lost(reports):
    for report in reports:
        session = report.json["session"]
        check(session["exit"] == 0, f"a window ended with {session['exit']}: {[x['missing'] for x in report.json['targets']]}")
        for target in report.json["targets"]:
            check(not any(target["lost"].values()), f"pid {target['pid']}: lost {target['lost']}")


class Sums:
    """One process's parts of all windows."""

    def __init__(self):
        self.targets = []

    def collections(self):
        return sum(x["gc"]["count"] or 0 for x in self.targets)

    def calls(self, function):
        return sum(c["calls"] or 0 for x in self.targets for c in x["safe_calls"] if c["function"] == function)

    def state_ns(self, state):
        return sum(lane["states"].get(state, 0) for x in self.targets for lane in x["lanes"] if lane["kind"] == "thread")


def add_up(reports):
    """{pid: the Sums of the processes that had it, one after the other}"""
    sums = {}
    for report in reports:
        for target in report.json["targets"]:
            sums.setdefault(target["pid"], {}).setdefault(target["start_time_ns"], Sums()).targets.append(target)
    return {pid: [of_one for _, of_one in sorted(by_start.items())] for pid, by_start in sums.items()}


def as_counted(sums, truth):
    """The calls of each program, over all windows, are those that it counted."""
    for pid, programs in truth.items():
        check(len(sums[pid]) == len(programs), f"pid {pid}: {len(programs)} programs had it, {len(sums[pid])} in the windows")
        for counted, of_one in zip(programs, sums[pid]):
            for function in CALLS:
                made, got = counted.get(function, {}).get("calls", 0), of_one.calls(function)
                check(got == made, f"pid {pid}: {got} calls of {function}, {made} were made")


class Scraped:
    """What Prometheus has of the whole session when it ends."""

    def __init__(self, server):
        self.server = server
        self.at = time.monotonic()
        self.calls = {f: self.by_pid(f'safescoped_safe_call_seconds_count{{function="{f}"}}') for f in CALLS}
        self.collections = self.by_pid("safescoped_gc_collections_total")
        self.in_calls = self.by_pid('safescoped_thread_seconds_total{state="safe_call_blocked"}')
        self.up = list(query(server, "min_over_time(up[1h])").values())
        self.delivered = sum(query(server, "safescoped_push_delivered_total").values())
        self.failures = sum(query(server, "safescoped_push_failures_total").values())

    def by_pid(self, series):
        return {int(dict(labels)["pid"]): value for labels, value in query(self.server, f"sum by (pid) ({series})").items()}

    def is_sum_of(self, sums, programs):
        """Its figures are the sums over all windows; those of programs that ended recently are still there."""
        check(self.up == [1], f"it was not scraped all the time: {self.up}")
        recent = {pid for pid, at in programs.ended.items() if at > self.at - SHOWN_FOR}
        check(recent and recent <= self.in_calls.keys(), f"Prometheus has {self.in_calls.keys()}, {recent} have just ended")
        for pid, seconds in self.in_calls.items():
            last = sums[pid][-1]
            for function in CALLS:
                got, want = self.calls[function].get(pid, 0), last.calls(function)
                check(got == want, f"pid {pid}: Prometheus has {got} calls of {function}, the windows have {want}")
            got, want = self.collections.get(pid, 0), last.collections()
            check(got == want, f"pid {pid}: Prometheus has {got} collections, the windows have {want}")
            want = last.state_ns("safe_call_blocked")
            check_near(f"pid {pid}: time in safe calls", seconds * 1e9, want, 0.02 * want + 50e6)
        check(self.delivered > 0 and self.failures > 0, f"{self.delivered} were delivered, {self.failures} failed")


def configure(t, collector):
    path, folder = t.dir / "safescoped.conf", t.dir / "windows"
    folder.mkdir()
    path.write_text(f"window {WINDOW}\nfrequency 49\nformat json\noutput {folder}\ncomm {NAME}-*\nmax-overhead 1000\n"
                    f"push {collector.url}\npush-queue {t.dir / 'queue'}\nmetrics 127.0.0.1:0\noff-file {t.dir / 'off'}\n")
    return path, folder


def test_soak(t):
    collector = Collector(t)
    config, folder = configure(t, collector)
    # at the service's own priority
    session = t.session("--config", config, "-v", prefix=["nice", "-n", "-5"])
    session.wait_attached()
    where = address(session)
    wait_until(where, "/readyz", 200)
    server = prometheus(t, where)
    programs = Programs(t)
    wait_for_all(where, [target.pid for target in programs.long])
    programs.go()
    memory = Memory(t, child_of(session))
    restart(collector, SECONDS * 0.3, SECONDS * 0.1)
    restart(collector, SECONDS * 0.2, 0)
    time.sleep(SECONDS * 0.4)
    programs.end()
    memory.is_flat()
    settled(where, server)
    check(get(where, "/healthz")[0] == 200, "it is not healthy")
    scraped = Scraped(server)
    session.signal(signal.SIGTERM)
    code = session.wait()
    check(code == 0, f"it ended with {code}: {session.err.seen[-5:]}")
    reports = windows(folder)
    check(len(reports) >= SECONDS * 0.8 / WINDOW, f"{len(reports)} windows")
    follow_each_other(reports)
    nothing_lost(reports)
    arrived_once(collector, reports)
    sums = add_up(reports)
    as_counted(sums, programs.truth)
    scraped.is_sum_of(sums, programs)


if __name__ == "__main__":
    run(globals())
