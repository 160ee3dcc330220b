#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""--metrics: what promtool and a real Prometheus read is what GHC counts, and what the report of the same session has."""

import contextlib
import json
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

from harness import Failure, Report, check, check_near, run
from test_calls import ALWAYS

CALLS = ("safe_half_2ms=2500", "safe_spin_20us=5000", "unsafe_spin_1ms=1000", "safe_sleep_1ms=1000")
SERIES = re.compile(r"([a-z_]+)(?:\{(.*)\})? ([0-9.]+)")
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')
SECOND = 1e9
# Figures are at most so old (five seconds), and a scrape waits for them.
FRESH_S = 6


# ── scraping ──


def address(session):
    """Where it listens, as it says before it is attached."""
    for line in session.err.seen:
        found = re.match(r"safescoped: metrics: http://([0-9.:]+)/metrics$", line)
        if found:
            return found.group(1)
    raise Failure(f"it did not say where it listens: {session.err.seen}")


def get(where, path):
    """(status, body)"""
    try:
        with urllib.request.urlopen(f"http://{where}{path}", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode()


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
        # the first figures are not there after three seconds: a machine may be busy
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


def scrape_until_end(where, target, every=0.5):
    """Scrapes while the program runs: its last line, and the last scrape."""
    before = {}
    while target.process.poll() is None:
        now = scrape(where)
        has_grown(before, now)
        before = now
        time.sleep(every)
    return target.result(), before


def settled(where, pid, before):
    """A scrape that was read after the process had ended."""
    ended = time.time()
    for _ in range(100):
        now = scrape(where)
        has_grown(before, now)
        if now["safescoped_figures_time_seconds", frozenset()] > ended + 3:
            check(total(now, "target_info", pid=str(pid)) == 1, "the last values of a process that ended are gone")
            return now
        time.sleep(0.5)
    raise Failure("no newer figures came")


# ── comparisons ──


def same_events(series, targets, pid):
    """Collections and safe calls, which are counted: as the reports of the session have them."""
    pid = str(pid)
    calls = [c for t in targets for c in t["safe_calls"]]
    got, want = total(series, "gc_collections_total", pid=pid), sum(t["gc"]["count"] for t in targets)
    check(got == want, f"{got} collections, the report has {want}")
    check_near("GC pauses", total(series, "gc_pause_seconds_total", pid=pid) * SECOND,
               sum(t["gc"]["pause_ns"] for t in targets), 1000)
    for function in {c["function"] for c in calls}:
        own = [c for c in calls if c["function"] == function]
        got = total(series, "safe_call_seconds_count", pid=pid, function=function)
        check(got == sum(c["calls"] for c in own), f"{got} calls of {function}, the report has {own}")
        check_near(f"time in {function}", total(series, "safe_call_seconds_sum", pid=pid, function=function) * SECOND,
                   sum(c["wall_ns"] for c in own), 1000)


def states_are_near(series, report, pid, wall_ns):
    states = report.states(pid)
    for state, ns in states.items():
        got = total(series, "thread_seconds_total", pid=str(pid), state=state) * SECOND
        # what was guessed at a reading, and turned out otherwise, is never taken back
        check_near(f"state {state}", got, ns, 0.02 * wall_ns + 100e6)


def ghc_statistics(path):
    """What +RTS -t --machine-readable wrote."""
    return dict(re.findall(r'\("([^"]+)", "([^"]+)"\)', path.read_text()))


# ── tests ──


def test_figures(t):
    """Without windows: scraped while it goes on, and at the end the same as the report, and as GHC's own statistics."""
    statistics = t.dir / "ghc"
    keeper = t.target("Calls", "1", "safe_sleep_1ms=100000")
    target = t.target("Calls", "2", *CALLS, rts=("-N2", f"-t{statistics}", "--machine-readable"))
    session = t.session("--pid", f"{keeper.pid},{target.pid}", "-v", "-f", "json", "-o", t.stem, "--metrics", "0", *ALWAYS)
    session.wait_attached()
    where = address(session)
    check(get(where, "/readyz")[0] == 200 and get(where, "/healthz")[0] == 200, "it is not ready")
    target.go()
    truth, before = scrape_until_end(where, target)
    series = settled(where, target.pid, before)
    session.signal(signal.SIGTERM)
    check(session.wait() == 0, f"safescoped ended so: {session.err.seen}")
    report = t.report()
    mine = report.target(target.pid)
    same_events(series, [mine], target.pid)
    states_are_near(series, report, target.pid, sum(l["wall_ns"] for l in mine["lanes"] if l["kind"] == "thread"))
    for function in ("safe_half_2ms", "safe_spin_20us", "safe_sleep_1ms"):
        got = total(series, "safe_call_seconds_count", pid=str(target.pid), function=function)
        check(got == truth[function]["calls"], f"{got} calls of {function}, made were {truth[function]['calls']}")
    said = ghc_statistics(statistics)
    # those before the attach, and the last one, which the runtime does as it ends
    check_near("collections as GHC counts them", total(series, "gc_collections_total", pid=str(target.pid)),
               int(said["num_GCs"]), 4)
    check_near("GC time as GHC has it", total(series, "gc_pause_seconds_total", pid=str(target.pid)) * SECOND,
               float(said["GC_wall_seconds"]) * SECOND, 0.1 * float(said["GC_wall_seconds"]) * SECOND + 20e6)
    check(total(series, "lost_total") == 0 and total(series, "targets_joined_total") == 2, "it lost something")
    check(total(series, "samples_total") > 0 and total(series, "records_total") > 0, "no samples are counted")
    # the one that goes on slept in its calls all the time
    check(total(series, "thread_seconds_total", pid=str(keeper.pid)) > 1, "the other process has no figures")


def test_windows(t):
    """Windows cut the reports; the counters go on, and are the sums of all windows."""
    folder = t.dir / "windows"
    folder.mkdir()
    keeper = t.target("Calls", "1", "safe_sleep_1ms=100000")
    target = t.target("Calls", "2", *CALLS, rts=("-N2",))
    session = t.session("--pid", f"{keeper.pid},{target.pid}", "-v", "-f", "json", "-o", folder, "--window", "1",
                        "--metrics", "127.0.0.1:0", *ALWAYS)
    session.wait_attached()
    where = address(session)
    target.go()
    _, before = scrape_until_end(where, target, 0.3)
    series = settled(where, target.pid, before)
    session.signal(signal.SIGTERM)
    check(session.wait() == 0, f"safescoped ended so: {session.err.seen}")
    reports = [Report(p) for p in sorted(folder.glob("*.json"))]
    check(len(reports) >= 4, f"{len(reports)} windows")
    same_events(series, [x for r in reports for x in r.json["targets"] if x["pid"] == target.pid], target.pid)
    check(total(series, "windows_total") <= len(reports) <= total(series, "windows_total") + 3 + FRESH_S,
          f"{len(reports)} windows, the metrics have {total(series, 'windows_total')}")
    check(total(series, "windows_dropped_total") == 0 and total(series, "window_lag_seconds") < 5, "windows are late")


def free_port():
    with contextlib.closing(socket.socket()) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def prometheus(t, where):
    """A server that scrapes there every second; its address."""
    check(shutil.which("prometheus"), "prometheus is not there; scripts/install-deps --test brings it")
    own = f"127.0.0.1:{free_port()}"
    config = t.dir / "prometheus.yml"
    config.write_text(json.dumps({"global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
                                  "scrape_configs": [{"job_name": "safescoped", "scrape_timeout": "1s",
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
    """A real server scrapes it all, refuses nothing, and has the report's numbers."""
    keeper = t.target("Calls", "1", "safe_sleep_1ms=100000")
    target = t.target("Calls", "2", *CALLS, rts=("-N2",))
    session = t.session("--pid", f"{keeper.pid},{target.pid}", "-v", "-f", "json", "-o", t.stem, "--metrics", ":0", *ALWAYS)
    session.wait_attached()
    server = prometheus(t, address(session))
    target.go()
    truth = target.result()
    pid = f'pid="{target.pid}"'
    for _ in range(100):
        time.sleep(0.5)
        calls = query(server, f"sum by (function) (safescoped_safe_call_seconds_count{{{pid}}})")
        if calls.get((("function", "safe_half_2ms"),)) == truth["safe_half_2ms"]["calls"]:
            break
    time.sleep(FRESH_S)
    calls = query(server, f"sum by (function) (safescoped_safe_call_seconds_count{{{pid}}})")
    for function in ("safe_half_2ms", "safe_spin_20us", "safe_sleep_1ms"):
        got = calls.get((("function", function),))
        check(got == truth[function]["calls"], f"{got} calls of {function}, made were {truth[function]['calls']}")
    median = query(server, "histogram_quantile(0.5, sum by (le) (safescoped_safe_call_seconds_bucket"
                           f'{{{pid},function="safe_half_2ms"}}))')
    check(all(0.001 < v < 0.017 for v in median.values()) and median, f"the median of calls of 2 ms: {median}")
    collections = sum(query(server, f"safescoped_gc_collections_total{{{pid}}}").values())
    health = json.loads(get(server, "/api/v1/targets")[1])["data"]["activeTargets"]
    check([(h["health"], h["lastError"]) for h in health] == [("up", "")], f"{health}")
    types = json.loads(get(server, "/api/v1/metadata")[1])["data"]
    check(types["safescoped_safe_call_seconds"][0]["type"] == "histogram"
          and types["safescoped_gc_pause_seconds_total"][0]["type"] == "counter", f"{types}")
    refused = [l for l in (t.dir / "prometheus.log").read_text().splitlines() if "level=warn" in l or "level=error" in l]
    check(not refused, f"prometheus refuses something: {refused[:3]}")
    session.signal(signal.SIGTERM)
    check(session.wait() == 0, f"safescoped ended so: {session.err.seen}")
    want = t.report().target(target.pid)["gc"]["count"]
    check(collections == want, f"{collections} collections in Prometheus, the report has {want}")


def test_off_file(t):
    """Switched off it is healthy, and not ready; the same address answers all the time."""
    switch, folder = t.dir / "off", t.dir / "windows"
    folder.mkdir()
    target = t.target("Calls", "1", "safe_sleep_1ms=100000")
    switch.write_text("")
    session = t.session("--pid", target.pid, "-v", "-f", "json", "-o", folder, "--window", "1", "--off-file", switch,
                        "--metrics", "0")
    check(session.err.until("safescoped: metrics: ", 30), "it does not say where it listens")
    where = address(session)

    def until(path, wanted):
        for _ in range(150):
            if get(where, path)[0] == wanted:
                return
            time.sleep(0.2)
        raise Failure(f"{path} is not {wanted}")

    until("/healthz", 200)
    check(get(where, "/readyz")[0] == 503, "it is ready without any session")
    switch.unlink()
    until("/readyz", 200)
    check(get(where, "/metrics")[0] == 200, "no metrics")
    switch.write_text("")
    until("/readyz", 503)
    until("/healthz", 200)
    session.signal(signal.SIGTERM)
    session.wait()


def flood(where, stop):
    """Connections by the thousand: silent ones, halves of requests, garbage, readers that do not read."""
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
        if n % 50 == 0:
            time.sleep(0.01)
    for s in held:
        s.close()
    return n


def test_hostile(t):
    """Meanwhile the profile is whole, the daemon no larger, and who asks politely is answered."""
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
        check(got == truth[function]["calls"], f"{got} calls of {function}, made were {truth[function]['calls']}")


if __name__ == "__main__":
    run(globals())
