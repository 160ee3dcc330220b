#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A filesystem that programs were run from can be unmounted although a session without --pid goes on."""

import shutil
import subprocess
import time

from harness import Target, check, program, run, thorough
from test_system import stop, whole_host


@thorough
def test_unmount(t):
    """It can be unmounted two minutes after its last program has ended, or sooner if other programs are looked at."""
    point = t.dir / "mounted"
    point.mkdir()
    # with nosuid its files get no probes that outlast a process
    subprocess.run(["mount", "-t", "tmpfs", "-o", "nosuid", "none", point], check=True)
    t.finally_do(lambda: subprocess.run(["umount", "-l", point], check=False, stderr=subprocess.DEVNULL))
    shutil.copy(program("Calls"), point)
    shutil.copy("/bin/sleep", point)
    elsewhere = shutil.copy(program("Calls"), t.dir)
    # other tests may run at the same time
    session = whole_host(t, "-F", "199", "--exe", f"{t.dir}/*")
    target = Target([point / "Calls", "1", "safe_spin_20us=1000"])
    t.started.append(target)
    line = session.err.until(f"attached: pid {target.pid},", 60)
    check(line is not None, f"the program was not found: {session.err.seen}")
    target.go()
    target.result()
    subprocess.run([point / "sleep", "0.2"], check=True)
    # the helper that looks up names lives for a while, and keeps what it has mapped by then
    after = Target([elsewhere, "1", "safe_sleep_1ms=100"])
    t.started.append(after)
    after.go()
    after.result()
    deadline = time.monotonic() + 150
    while subprocess.run(["umount", point], check=False, capture_output=True).returncode:
        check(time.monotonic() < deadline, f"{point} is still busy")
        time.sleep(1)
    took = time.monotonic() - (deadline - 150)
    stop(session)
    check(t.report().target(target.pid)["lanes"], "the program is not in the report")
    print(f"    unmounted after {took:.0f} s")


if __name__ == "__main__":
    run(globals())
