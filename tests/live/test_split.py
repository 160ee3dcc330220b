#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shares of CPU time against the truth: two functions, of which one does three times the work of the other."""

from harness import Failure, cases, check, profile_run, run

HZ = 2999


def function_total(report, module, function):
    for name in (f"{module}.$w{function}", f"{module}.{function}"):
        if name in report.names():
            return report.function(name)["total_samples"]
    raise Failure(f"no {module}.{function} among {sorted(n for n in report.names() if module in n)}")


@cases("thr", "v", "thr_p")
def test_split(t, way):
    truth, report, _ = profile_run(t, "Split", 4, way=way, options=("-F", str(HZ)))
    check(truth["workA"] == 3 * truth["workB"], "the test program itself is wrong")
    # GHC's worker/wrapper split may move the loop to a `$w` variant.
    a = function_total(report, "SplitA", "workA")
    b = function_total(report, "SplitB", "workB")
    all_samples = sum(f["self_samples"] for f in report.target()["functions"])
    # The expected number, from the program's own CPU clock, so that a busy machine does not matter.
    want = HZ * truth["cpu_ns"] / 1e9
    check(truth["cpu_ns"] > 1.3e9, "the machine is too busy: the test program got less than 1.3 s of 4")
    check(all_samples >= 0.9 * want, f"{all_samples} samples at {HZ} Hz, should be {want:.0f}")
    check(a + b >= 0.95 * all_samples, f"{a} + {b} of {all_samples} samples are in the two functions")
    share = 100 * a / (a + b)
    check(72 <= share <= 78, f"SplitA has {share:.1f} % of the samples, should be 75 ± 3")


if __name__ == "__main__":
    run(globals())
