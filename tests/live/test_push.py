#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""OTLP profiles: what the real OpenTelemetry Collector understands is what the report has."""

import gzip

from collector import Collector
from harness import cases, check, profile_run, run
from test_calls import ALWAYS

CALLS = (4, "safe_half_2ms=400", "safe_spin_20us=2000", "unsafe_spin_1ms=300", "safe_sleep_1ms=200")
ON_CPU = {"haskell", "unsafe_call_cpu", "safe_call_cpu", "gc_work", "rts", "foreign_cpu"}
IN_SAFE_CALLS = {"safe_call_cpu", "safe_call_blocked"}


def wanted(report, states):
    """{(pid, tid, state): ns} by the report."""
    return {(target["pid"], lane["tid"], state): ns for target in report.json["targets"] for lane in target["lanes"]
            if lane["kind"] == "thread" for state, ns in lane["states"].items() if ns and states(state)}


def compare(profiles, report):
    """Each thread's time in each state, to the nanosecond."""
    sums = profiles.sums()
    for kind, states in (("cpu", lambda s: s in ON_CPU), ("off_cpu", lambda s: s not in ON_CPU and s != "idle"),
                         ("safe_call", lambda s: s in IN_SAFE_CALLS)):
        got, want = sums.get(kind, {}), wanted(report, states)
        differ = {key: (got.get(key), want.get(key)) for key in got.keys() | want.keys() if got.get(key) != want.get(key)}
        check(not differ, f"{kind}: in the profile and in the report: {differ}")
    session = report.json["session"]
    check(profiles.start_unix_ns() == session["start_unix_ns"], "another start")
    for _, of_process in profiles.resources():
        check({int(p["durationNano"]) for p in of_process} == {session["duration_ns"]}, "another length")


@cases("thr", "v")
def test_a_file(t, way):
    """What -f otlp writes, sent as it is."""
    collector = Collector(t)
    _, report, target = profile_run(t, "Calls", *CALLS, way=way, rts=("-N2",) if way == "thr" else (),
                                    options=(*ALWAYS, "-F", "499", "-f", "json,otlp", "--lanes", "thread,capability,haskell"))
    body = (t.dir / "p.otlp.pb.gz").read_bytes()
    check(collector.post(body) == 200, "the collector does not take it")
    profiles = collector.next()
    compare(profiles, report)
    (resource, _), = profiles.resources()
    its = report.target()
    check(resource["process.pid"] == target.pid and resource["process.runtime.version"] == its["ghc_version"]
          and resource["process.executable.path"] == its["exe"] and resource["host.name"], f"the resource: {resource}")
    taken = sum(profiles.sums()["samples"].values())
    check(its["stacks"]["samples"] * 0.99 - 3 <= taken <= its["stacks"]["samples"], f"{taken} samples")
    seen = {frame for *_, stack in profiles.samples() for frame in stack}
    spin = [frame for frame in seen if frame[0] == "unsafe_spin_1ms"]
    check(spin == [("unsafe_spin_1ms", "native", its["exe"])], f"unsafe_spin_1ms is {spin}")
    check(any(kind == "haskell" and name.startswith("Main.") for name, kind, _ in seen), "no Haskell code in it")
    caps = {a.get("ghc.capability") for _, kind, a, _, _ in profiles.samples() if a["ghc.state"] == "unsafe_call_cpu"}
    check(caps and caps <= ({0, 1} if way == "thr" else {0}), f"unsafe calls ran on the capabilities {caps}")
    check(gzip.decompress(body), "it is empty")


if __name__ == "__main__":
    run(globals())
