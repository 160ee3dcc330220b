#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The cost of the probes is not shown as time of the functions that they are in."""

import json
import subprocess

from harness import SAFESCOPED, cases, check, profile_run, run

PROBE = "[safescoped's probe]"
# Functions of the runtime with a probe in each: without probes they take a thousandth of the time at most.
PROBED = ("stat_startGCSync", "stat_startGC", "stat_endGC", "suspendThread", "resumeThread", "handle_tick")


@cases("thr", "dyn", "v.stripped")
def test_traps(t, way):
    """A program that constantly collects garbage: the trap of a probe takes longer than the whole function, and is
    shown separately."""
    saved = t.dir / "p.capture"
    _, report, _ = profile_run(t, "Alloc", "split", 5, way=way, rts=("-A64k",),
                               options=("--max-overhead", "100", "-F", "999", "--save", saved))
    target = report.target()
    samples = sum(f["self_samples"] for f in target["functions"])
    trap = next((f for f in target["functions"] if f["name"] == PROBE), None)
    own = {f["name"]: f["self_samples"] for f in target["functions"] if f["name"] in PROBED}
    print(f"    of {samples} samples {trap and trap['self_samples']} are in the traps, and in the functions {own}")
    check(trap and trap["self_samples"] >= 20 and trap["kind"] == "foreign", f"no time in the probes: {trap}, {own}")
    # some of it is at the address that the trap returns to
    check(sum(own.values()) <= 0.15 * trap["self_samples"] + 3, f"as the functions' own: {own}, in the trap {trap}")
    check(trap["total_samples"] == trap["self_samples"], f"something is above the trap: {trap}")
    subprocess.run([SAFESCOPED, "--replay", saved, "-o", t.dir / "again", "-f", "json"], check=True,
                   capture_output=True)
    again = json.loads((t.dir / "again.json").read_text())["targets"][0]["functions"]
    check(again == target["functions"], "a replay has other functions")


if __name__ == "__main__":
    run(globals())
