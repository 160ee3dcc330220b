#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""--metrics: what promtool and a real Prometheus read agrees with what GHC counts, and with the report of the same
session."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

from harness import ROOT, Failure, Report, check, check_near, run, thorough
from test_calls import ALWAYS

CALLS = ("safe_half_2ms=2500", "safe_spin_20us=5000", "unsafe_spin_1ms=1000", "safe_sleep_1ms=1000")
SERIES = re.compile(r"([a-z_]+)(?:\{(.*)\})? ([0-9.]+)")
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')
SECOND = 1e9
# Figures are at most five seconds old, and a scrape waits for fresh ones.
FRESH_S = 6


# ── scraping ──


def address(session):
    """The address that it listens on, which it prints before it is attached."""
    for line in session.err.seen:
        found = re.match(r"safescoped: metrics: http://([0-9.:]+)/metrics$", line)
        if found:
            return found.group(1)
    raise Failure(f"it did not print where it listens: {session.err.seen}")


def get(where, path):
    """(status, body)"""
    try:
        with urllib.request.urlopen(f"http://{where}{path}", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode()


def wait_until(where, path, wanted):
    for _ in range(150):
        if get(where, path)[0] == wanted:
            return
        time.sleep(0.2)
    raise Failure(f"{path} is not {wanted}")


def parse(text):
    """{(name, labels): value}, labels as a frozenset of pairs"""
    series = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        found = SERIES.fullmatch(line)
        check(found, f"not a series: {line}")
        key = (found.group(1), frozenset(LABEL.findall(found.group(2) or "")))
        check(key not in series, f"twice: {line}")
        series[key] = float(found.group(3))
    return series


def scrape(where):
    for _ in range(10):
        status, text = get(where, "/metrics")
        if status == 200:
            promtool(text)
            return parse(text)
        # on a busy machine the first figures may take more than three seconds
        check(status == 503, f"/metrics: {status} {text}")
    raise Failure(f"/metrics: {status} {text}")


def promtool(text):
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=60,
                          check=False)
    check(done.returncode == 0 and not done.stdout and not done.stderr, f"promtool: {done.stdout}{done.stderr}")


def total(series, name, **labels):
    wanted = set(labels.items())
    return sum(v for (n, l), v in series.items() if n == "safescoped_" + name and wanted <= l)


def has_grown(before, now):
    for (name, labels), value in before.items():
        if not name.endswith(("_total", "_count", "_sum", "_bucket")):
            continue
        check((name, labels) in now, f"{name} {set(labels)} has gone")
        check(now[name, labels] >= value, f"{name} {set(labels)} went from {value} to {now[name, labels]}")


def child_of(session):
    text = Path(f"/proc/{session.pid}/task/{session.pid}/children").read_text().split()
    # two of them: the process that serves metrics, and the session
    named = {int(pid): Path(f"/proc/{pid}/comm").read_text().strip() for pid in text}
    found = [pid for pid, name in named.items() if name == "safescoped"]
    check(len(found) == 1, f"the service's children are {named}")
    return found[0]


class Programs:
    """Three programs: one makes counted calls, one collects garbage, and one keeps the session going when these have
    ended."""

    def __init__(self, t):
        self.statistics = t.dir / "ghc"
        self.keeper = t.target("Calls", "1", "safe_sleep_1ms=1")
        self.calls = t.target("Calls", "2", *CALLS, rts=("-N2",))
        self.work = t.target("Work", "alloc", "9", rts=("-N2", "-A1m", f"-t{self.statistics}", "--machine-readable"))
        self.pids = [self.keeper.pid, self.calls.pid, self.work.pid]
        self.option = ",".join(map(str, self.pids))

    def go(self):
        self.calls.go()
        self.work.go()

    def running(self):
        return self.calls.process.poll() is None or self.work.process.poll() is None

    def truth(self):
        """(what the calls counted, GHC's statistics)"""
        check(self.work.wait() == 0, "Work failed")
        text = self.statistics.read_text()
        return self.calls.result(), {k: float(v) for k, v in re.findall(r'\("(\w+)", "([0-9.]+)"\)', text)}


def scrape_until_end(where, programs, every=0.5):
    """Scrape while the programs run; return the last scrape."""
    before = {}
    while programs.running():
        now = scrape(where)
        has_grown(before, now)
        before = now
        time.sleep(every)
    return before


def settled(where, pids, before):
    """A scrape whose figures are from after the processes ended."""
    ended = time.time()
    for _ in range(100):
        now = scrape(where)
        has_grown(before, now)
        before = now
        if now["safescoped_figures_time_seconds", frozenset()] > ended + 3:
            for pid in pids:
                check(total(now, "target_info", pid=str(pid)) == 1, "the last values of a process that ended are gone")
            return now
        time.sleep(0.5)
    raise Failure("no newer figures arrived")


# ── comparisons ──


def same_collections(series, targets, pid):
    """Collections and allocation are those of the session's reports, over all generations."""
    got, want = total(series, "gc_collections_total", pid=str(pid)), sum(t["gc"]["count"] for t in targets)
    check(got == want, f"{got} collections, the report has {want}")
    # one that ends at a cut between windows may be reported after it
    check_near("GC pauses", total(series, "gc_pause_seconds_total", pid=str(pid)) * SECOND,
               sum(t["gc"]["pause_ns"] for t in targets), 1000 if len(targets) == 1 else 5e6)
    want = sum(t["allocation"]["bytes"] for t in targets if "allocation" in t)
    check(want > 0, "nothing is known to be allocated")
    check_near("bytes allocated", total(series, "allocated_bytes_total", pid=str(pid)), want, 0.01 * want)


def same_calls(series, targets, pid, truth):
    """Calls and their times are those of the reports, and the number is the program's own."""
    for function in ("safe_half_2ms", "safe_spin_20us", "safe_sleep_1ms"):
        own = [c for t in targets for c in t["safe_calls"] if c["function"] == function]
        got = total(series, "safe_call_seconds_count", pid=str(pid), function=function)
        check(got == truth[function]["calls"], f"{got} calls of {function}, {truth[function]['calls']} were made")
        check(got == sum(c["calls"] for c in own), f"{got} calls of {function}, the report has {own}")
        # a call that is open at a cut is split between the windows
        check_near(f"time in {function}", total(series, "safe_call_seconds_sum", pid=str(pid), function=function) * SECOND,
                   sum(c["wall_ns"] + (c["open_wall_ns"] if len(targets) > 1 else 0) for c in own),
                   1000 if len(targets) == 1 else 10e6 * len(targets))
        buckets = [(labels, v) for (name, labels), v in series.items()
                   if name == "safescoped_safe_call_seconds_bucket" and {("pid", str(pid)), ("function", function)} <= labels]
        check(sum(v for labels, v in buckets if ("le", "+Inf") in labels) == got, f"buckets of {function}: {buckets}")


def states_are_near(series, report, pid):
    states = report.states(pid)
    for state, ns in states.items():
        got = total(series, "thread_seconds_total", pid=str(pid), state=state) * SECOND
        # a state that was assumed at a reading and turned out to be another one is not subtracted again
        check_near(f"state {state}", got, ns, 0.02 * sum(states.values()) + 100e6)


def as_ghc_counts(series, pid, said):
    """Collections are those that GHC counts, except the ones before the attach, and perhaps the last one, whose end may
    be missed when the program ends."""
    got = total(series, "gc_collections_total", pid=str(pid))
    check(said["num_GCs"] > 50 and 0 <= said["num_GCs"] - got <= 4, f"{got} collections of {said['num_GCs']}")
    check_near("GC time as GHC has it", total(series, "gc_pause_seconds_total", pid=str(pid)) * SECOND,
               said["GC_wall_seconds"] * SECOND, 0.05 * said["GC_wall_seconds"] * SECOND + 20000 * said["num_GCs"])
    oldest = total(series, "gc_collections_total", pid=str(pid), generation="1")
    check(0 <= said["major_gcs"] - oldest <= 4, f"{oldest} major collections of {said['major_gcs']}")


# ── tests ──


def test_figures(t):
    """Without windows: scraped during the session the figures grow, and in the end they equal the report and GHC's own
    statistics."""
    programs = Programs(t)
    session = t.session("--pid", programs.option, "-v", "-v", "-f", "json", "-o", t.stem, "--metrics", "0", *ALWAYS)
    session.wait_attached()
    where = address(session)
    wait_until(where, "/readyz", 200)
    check(get(where, "/healthz")[0] == 200, "it is ready but not healthy")
    programs.go()
    before = scrape_until_end(where, programs)
    truth, said = programs.truth()
    series = settled(where, programs.pids, before)
    session.signal(signal.SIGTERM)
    check(session.wait() == 0, f"safescoped ended so: {session.err.seen[-5:]}")
    report = t.report()
    same_calls(series, [report.target(programs.calls.pid)], programs.calls.pid, truth)
    same_collections(series, [report.target(programs.work.pid)], programs.work.pid)
    as_ghc_counts(series, programs.work.pid, said)
    for pid in programs.pids[1:]:
        states_are_near(series, report, pid)
    check(total(series, "lost_total") == 0 and total(series, "targets_joined_total") == 3, "it lost something")
    check(total(series, "samples_total") > 0 and total(series, "records_total") > 0, "no samples are counted")
    check(total(series, "thread_seconds_total", pid=str(programs.keeper.pid)) > 1, "the other process has no figures")


@thorough
def test_windows(t):
    """Windows cut the reports, but not the counters, which are the sums over all windows."""
    folder = t.dir / "windows"
    folder.mkdir()
    programs = Programs(t)
    session = t.session("--pid", programs.option, "-v", "-v", "-f", "json", "-o", folder, "--window", "1",
                        "--metrics", "127.0.0.1:0", *ALWAYS)
    session.wait_attached()
    where = address(session)
    programs.go()
    before = scrape_until_end(where, programs, 0.3)
    truth, said = programs.truth()
    series = settled(where, programs.pids, before)
    resident = int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{child_of(session)}/status").read_text()).group(1)) * 1024
    check_near("resident memory", total(series, "resident_memory_bytes"), resident, 0.2 * resident)
    session.signal(signal.SIGTERM)
    check(session.wait() == 0, f"safescoped ended so: {session.err.seen[-5:]}")
    reports = [Report(p) for p in sorted(folder.glob("*.json"))]
    check(len(reports) >= 8, f"{len(reports)} windows")
    targets = {pid: [x for r in reports for x in r.json["targets"] if x["pid"] == pid] for pid in programs.pids}
    same_calls(series, targets[programs.calls.pid], programs.calls.pid, truth)
    same_collections(series, targets[programs.work.pid], programs.work.pid)
    as_ghc_counts(series, programs.work.pid, said)
    check(0 < total(series, "windows_total") <= len(reports), f"{len(reports)} windows, the metrics have "
          f"{total(series, 'windows_total')}")
    check(total(series, "windows_dropped_total") == 0 and total(series, "window_lag_seconds") < 5, "windows are late")
    manual_has_them(series)


def manual_has_them(series):
    """The metrics of the daemon itself are exactly those that the manual page lists, and it names all labels."""
    page = (ROOT / "scripts" / "safescoped.8").read_text().split("\n.Sh METRICS\n")[1].split("\n.Sh ")[0]
    literal = " ".join(re.findall(r"^\.(?:\w+ )*Li .*$", page, re.MULTILINE))
    # Prometheus' format itself has `le`
    labels = {label for _, labels in series for label, _ in labels} - {"le", *re.findall(r"\w+", literal)}
    check(not labels, f"labels that the manual page does not have: {labels}")
    own = page.split("\nitself:\n")[1].split("\n.Pp\n")[0]
    listed = set(re.findall(r"safescoped_\w+", own)) | {"safescoped_targets" + end for end in re.findall(r"Li (_\w+)", own)}
    listed = {name for name in listed if "_push_" not in name}
    known = {name for name, labels in series if not any(label in ("pid", "service_instance_id") for label, _ in labels)}
    check(listed == known, f"in the manual only: {listed - known}; in the figures only: {known - listed}")


def test_stays_are_held_after_a_reading(t):
    """At 19 Hz short stays off the CPU are combined into one record, before the first scrape and after it."""
    target = t.target("Work", "gmp", 30, rts=("-V0.001",))
    session = t.attach(target, "-F", "19", "--metrics", "127.0.0.1:0")
    target.go()
    where = address(session)
    ticker = next(task for task in Path(f"/proc/{target.pid}/task").iterdir() if (task / "comm").read_text() == "ghc_ticker\n")

    def turns():
        return int((ticker / "schedstat").read_text().split()[2])

    scrape(where)
    for _ in range(2):
        # a scrape's figures are never older than the previous one's
        records, before = total(scrape(where), "records_total"), turns()
        time.sleep(3)
        records, ticks = total(scrape(where), "records_total") - records, turns() - before
        check(ticks > 300 and records < 1.5 * ticks, f"{records} records in {ticks} ticks")
    session.signal(signal.SIGINT)
    check(session.wait() == 0, f"safescoped ended so: {session.err.seen[-5:]}")


def test_probes_that_come_off(t):
    """If there are too many calls to count them, the metrics show for how long they were not, as the report does."""
    target = t.target("Calls", 1, "safe_spin_5us=800000")
    session = t.session("--pid", target.pid, "-v", "-f", "json", "-o", t.dir / "report.json", "--metrics", "127.0.0.1:0")
    session.wait_attached()
    where = address(session)
    target.go()
    time.sleep(3)
    series = scrape(where)
    target.wait()
    code = session.wait()
    check(code == 0, f"it ended with {code}: {session.err.seen[-5:]}")
    cost = Report(t.dir / "report.json").target()["cost"]
    off = total(series, "probes_off_seconds_total")
    check(cost["probes_paused_ns"] > 5e8, f"the probes did not come off: {cost}")
    check(0.3 < off <= cost["probes_paused_ns"] / 1e9, f"off for {off} s, the report has {cost}")


def off_until_its_end(t, *options):
    """(pid, seconds that its probes were off) for a process that ends while they are, from a scrape after its end."""
    keeper = t.target("Calls", "1", "safe_sleep_1ms=1")
    target = t.target("Calls", 1, "safe_spin_5us=800000")
    session = t.session("--pid", f"{keeper.pid},{target.pid}", "-v", "-v", "-f", "json", "--metrics", "127.0.0.1:0", *options)
    session.wait_attached()
    where = address(session)
    target.go()
    time.sleep(3)
    before = scrape(where)
    target.wait()
    series = settled(where, [target.pid], before)
    session.signal(signal.SIGTERM)
    check(session.wait() == 0, f"safescoped ended so: {session.err.seen[-5:]}")
    return target.pid, total(series, "probes_off_seconds_total", pid=str(target.pid))


@thorough
def test_probes_off_to_the_end(t):
    """The time for which a process's probes were off until it ended is still in the metrics afterwards, with windows
    and without."""
    pid, off = off_until_its_end(t, "-o", t.stem)
    want = t.report().target(pid)["cost"]["probes_paused_ns"]
    check(want > 1e9, f"the probes came off for {want} ns")
    check_near("off", off * SECOND, want, 1e6)
    folder = t.dir / "windows"
    folder.mkdir()
    pid, off = off_until_its_end(t, "-o", folder, "--window", "2")
    want = sum(x["cost"]["probes_paused_ns"] for p in folder.glob("*.json") for x in Report(p).json["targets"] if x["pid"] == pid)
    check(want > 1e9, f"in windows the probes came off for {want} ns")
    check_near("off in windows", off * SECOND, want, 1e6)


def test_every_five_seconds(t):
    """Who scrapes as often as figures are read gets new ones each time."""
    target = t.target("Calls", "1", "safe_sleep_1ms=1")
    session = t.session("--pid", target.pid, "-v", "-f", "json", "-o", t.stem, "--metrics", "127.0.0.1:0")
    session.wait_attached()
    where, due, read = address(session), time.monotonic(), []
    for _ in range(4):
        time.sleep(max(0, due - time.monotonic()))
        read.append(scrape(where)["safescoped_figures_time_seconds", frozenset()])
        due += 5
    check(all(a < b for a, b in zip(read, read[1:])), f"the figures were of {read}")


def test_missed_collections(t):
    """Collections that end while the session is stopped are counted as missed: with the others they are GHC's number."""
    statistics, folder = t.dir / "ghc", t.dir / "windows"
    folder.mkdir()
    keeper = t.target("Calls", "1", "safe_sleep_1ms=1")
    work = t.target("Work", "alloc", "12", rts=("-A256k", f"-t{statistics}", "--machine-readable"))
    session = t.session("--pid", f"{keeper.pid},{work.pid}", "-v", "-f", "json", "--window", "5", "-o", folder,
                        "--max-overhead", "100", "--metrics", "127.0.0.1:0")
    session.wait_attached()
    where = address(session)
    work.go()
    time.sleep(3)
    child = child_of(session)
    os.kill(child, signal.SIGSTOP)
    time.sleep(4)
    os.kill(child, signal.SIGCONT)
    check(work.wait() == 0, "Work failed")
    series = settled(where, [work.pid], {})
    session.signal(signal.SIGTERM)
    check(session.wait() in (0, 1), f"it ended so: {session.err.seen[-5:]}")
    counted, missed = (total(series, f"gc_{what}_total", pid=str(work.pid)) for what in ("collections", "missed"))
    wanted = float(re.search(r'"num_GCs", "([0-9]+)"', statistics.read_text()).group(1))
    check(missed > 0.05 * wanted, f"{missed} were missed, of {wanted}")
    # before the attach, and at the very end
    check(wanted - 5 <= counted + missed <= wanted, f"{counted} were counted and {missed} missed, of {wanted}")


def test_switched_off(t):
    """While the daemon is switched off a scrape is answered at once, with the reason why there are no figures."""
    off = t.dir / "off"
    off.touch()
    session = t.session("--comm", "nobody", "--window", "1", "-f", "json", "-o", t.dir, "--off-file", off, "--metrics", "127.0.0.1:0")
    session.err.until("safescoped: metrics", 30)
    where = address(session)
    status, text = get(where, "/metrics")
    check(status == 200 and total(parse(text), "switched_off") == 1, f"{status} {text}")
    off.unlink()
    wait_until(where, "/readyz", 200)
    # the text it serves may be a second old
    for _ in range(100):
        series = scrape(where)
        if not total(series, "switched_off"):
            break
        time.sleep(0.1)
    check("safescoped_targets" in {name for name, _ in series}, f"{series}")
    session.signal(signal.SIGTERM)
    session.wait()


def test_who_serves_has_died(t):
    """If the process that serves metrics dies there are no figures until the configuration is read again."""
    where, config = f"127.0.0.1:{free_port()}", t.dir / "conf"
    config.write_text(f"window 600\nformat json\noutput {t.dir}\ncomm nobody\nmetrics {where}\n")
    session = t.session("--config", config, "-v")
    session.wait_attached()
    wait_until(where, "/readyz", 200)
    children = Path(f"/proc/{session.pid}/task/{session.pid}/children").read_text().split()
    server, = (pid for pid in children if Path(f"/proc/{pid}/comm").read_text().startswith("safescoped:http"))
    os.kill(int(server), signal.SIGKILL)
    session.err.until("they are not available", 30)
    session.signal(signal.SIGHUP)
    # a reload first writes a window
    session.wait_attached()
    wait_until(where, "/readyz", 200)
    check("safescoped_targets" in {name for name, _ in scrape(where)}, "no figures")
    session.signal(signal.SIGTERM)
    session.wait()


def free_port():
    with contextlib.closing(socket.socket()) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def prometheus(t, where):
    """Start a Prometheus that scrapes this address every two seconds; return its own address."""
    check(shutil.which("prometheus"), "prometheus is not there; scripts/install-deps --test brings it")
    own = f"127.0.0.1:{free_port()}"
    config = t.dir / "prometheus.yml"
    config.write_text(json.dumps({"global": {"scrape_interval": "2s", "scrape_timeout": "2s"},
                                  "scrape_configs": [{"job_name": "safescoped",
                                                      "static_configs": [{"targets": [where]}]}]}))
    with open(t.dir / "prometheus.log", "w", encoding="utf-8") as log:
        server = subprocess.Popen(["prometheus", f"--config.file={config}", f"--storage.tsdb.path={t.dir / 'data'}",
                                   f"--web.listen-address={own}"], stdout=log, stderr=log)
    t.finally_do(lambda: (server.kill(), server.wait()))
    for _ in range(150):
        with contextlib.suppress(OSError):
            if get(own, "/-/ready")[0] == 200:
                return own
        time.sleep(0.2)
    raise Failure(f"prometheus does not begin: {(t.dir / 'prometheus.log').read_text()[-500:]}")


def query(server, text):
    """{labels: value} of an instant query"""
    status, body = get(server, "/api/v1/query?query=" + urllib.request.quote(text))
    check(status == 200, f"{text}: {body}")
    return {tuple(sorted(r["metric"].items())): float(r["value"][1]) for r in json.loads(body)["data"]["result"]}


def test_prometheus(t):
    """A real Prometheus scrapes everything, rejects nothing, and has the report's numbers."""
    programs = Programs(t)
    session = t.session("--pid", programs.option, "-v", "-v", "-f", "json", "-o", t.stem, "--metrics", ":0", *ALWAYS)
    session.wait_attached()
    server = prometheus(t, address(session))
    programs.go()
    truth, said = programs.truth()
    pid = f'pid="{programs.calls.pid}"'
    until = time.monotonic() + 2 * FRESH_S
    while time.monotonic() < until + 40:
        calls = query(server, f"sum by (function) (safescoped_safe_call_seconds_count{{{pid}}})")
        health = json.loads(get(server, "/api/v1/targets")[1])["data"]["activeTargets"]
        if (calls.get((("function", "safe_half_2ms"),)) == truth["safe_half_2ms"]["calls"] and time.monotonic() > until
                and health[0]["health"] == "up"):
            break
        time.sleep(0.5)
    for function in ("safe_half_2ms", "safe_spin_20us", "safe_sleep_1ms"):
        got = calls.get((("function", function),))
        check(got == truth[function]["calls"], f"{got} calls of {function}, {truth[function]['calls']} were made")
    check([(h["health"], h["lastError"]) for h in health] == [("up", "")], f"{health}")
    median = query(server, "histogram_quantile(0.5, sum by (le) (safescoped_safe_call_seconds_bucket"
                           f'{{{pid},function="safe_half_2ms"}}))')
    check(median and all(0.001 < v < 0.017 for v in median.values()), f"the median of calls of 2 ms: {median}")
    collections = sum(query(server, f'safescoped_gc_collections_total{{pid="{programs.work.pid}"}}').values())
    check(0 <= said["num_GCs"] - collections <= 4, f"{collections} collections of {said['num_GCs']}")
    types = json.loads(get(server, "/api/v1/metadata")[1])["data"]
    check(types["safescoped_safe_call_seconds"][0]["type"] == "histogram"
          and types["safescoped_gc_pause_seconds_total"][0]["type"] == "counter", f"{types}")
    log = (t.dir / "prometheus.log").read_text().splitlines()
    refused = [l for l in log if "scrape" in l and ("level=warn" in l or "level=error" in l)]
    check(not refused, f"prometheus refuses something: {refused[:3]}")
    session.signal(signal.SIGTERM)
    check(session.wait() == 0, f"safescoped ended so: {session.err.seen[-5:]}")
    want = t.report().target(programs.work.pid)["gc"]["count"]
    check(collections == want, f"{collections} collections in Prometheus, the report has {want}")


def test_off_file(t):
    """Switched off the daemon is healthy but not ready; it answers at the same address all the time."""
    switch, folder = t.dir / "off", t.dir / "windows"
    folder.mkdir()
    target = t.target("Calls", "1", "safe_sleep_1ms=100000")
    switch.write_text("")
    session = t.session("--pid", target.pid, "-v", "-f", "json", "-o", folder, "--window", "1", "--off-file", switch,
                        "--metrics", "0")
    check(session.err.until("safescoped: metrics: ", 30), "it does not print where it listens")
    where = address(session)

    wait_until(where, "/healthz", 200)
    check(get(where, "/readyz")[0] == 503, "it is ready without any session")
    switch.unlink()
    wait_until(where, "/readyz", 200)
    scrape(where)
    switch.write_text("")
    wait_until(where, "/readyz", 503)
    wait_until(where, "/healthz", 200)
    session.signal(signal.SIGTERM)
    session.wait()


def flood(where, stop):
    """Thousands of connections: silent ones, partial requests, garbage, readers that do not read."""
    host, port = where.split(":")
    held, n = [], 0
    while not stop.is_set():
        with contextlib.suppress(OSError):
            s = socket.socket()
            s.setblocking(False)
            s.connect_ex((host, int(port)))
            held.append(s)
            text = (b"", b"GET /metrics HTTP/1.1\r\nHost: ", b"\x00\xff" * 1000, b"GET /metrics HTTP/1.1\r\n\r\n")[n % 4]
            s.send(text)
        n += 1
        if len(held) > 400:
            held.pop(0).close()
        if n % 20 == 0:
            time.sleep(0.02)
    for s in held:
        s.close()
    return n


@thorough
def test_hostile(t):
    """During such a flood the profile is complete, the daemon does not grow, and well-behaved clients get answers."""
    target = t.target("Calls", "2", *CALLS, rts=("-N2",))
    session = t.attach(target, "--metrics", "0", *ALWAYS, formats="json")
    where = address(session)
    stop = threading.Event()
    attackers = [threading.Thread(target=flood, args=(where, stop)) for _ in range(2)]
    for a in attackers:
        a.start()
    answered = 0
    try:
        target.go()
        while target.process.poll() is None:
            with contextlib.suppress(OSError):
                answered += get(where, "/metrics")[0] == 200
            time.sleep(0.2)
    finally:
        stop.set()
        for a in attackers:
            a.join()
    truth = target.result()
    check(session.wait() == 0, f"safescoped ended so: {session.err.seen}")
    report = t.report()
    check(answered > 0, "nobody was answered meanwhile")
    for function in ("safe_half_2ms", "safe_spin_20us", "safe_sleep_1ms"):
        got = report.call(function)["calls"]
        check(got == truth[function]["calls"], f"{got} calls of {function}, {truth[function]['calls']} were made")


if __name__ == "__main__":
    run(globals())
