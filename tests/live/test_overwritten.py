#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs and libraries with probes are overwritten in place: no probe may be left in the code that replaces theirs."""

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from harness import SLOWNESS, Target, cases, check, program, run
from test_system import stop, whole_host


def overwrite(path, other):
    """Overwrite the file as cp does, keeping its inode; return the seconds that took."""
    begun = time.monotonic()
    with open(other, "rb") as source, open(path, "wb") as to:
        shutil.copyfileobj(source, to)
    return time.monotonic() - begun


CALLS, FORKY = ("Calls", ("1", "safe_sleep_1ms=50", "safe_spin_20us=300")), ("Forky", ("fork", "50"))


def works(t, path, args=CALLS[1], attached=None):
    target = Target([path, *args])
    t.started.append(target)
    if attached:
        check(attached.err.until(f"attached: pid {target.pid}", 60 * SLOWNESS) is not None, f"{attached.err.seen}")
    target.go()
    return target.wait()


def leases_of(pid):
    """The number of leases that the process has, by the kernel's list (proc_locks(5))."""
    return sum(line.split()[1] == "LEASE" and line.split()[4] == str(pid) for line in Path("/proc/locks").read_text().splitlines())


@cases("lease-thr", "none-thr")
def test_program(t, how):
    """A program is overwritten by another one after its last process ended, and then restored: both run as they do
    without us."""
    # in the small virtual machine all other file systems belong to nobody
    folder = Path(tempfile.mkdtemp(prefix="safescoped-test-"))
    t.finally_do(lambda: shutil.rmtree(folder))
    path = folder / "prog"
    shutil.copy(program("Calls"), path)
    if how == "lease-thr":
        session = whole_host(t)
    else:
        from test_rights import as_nobody, without  # pylint: disable=import-outside-toplevel
        # the file belongs to root
        (t.dir / "out").mkdir()
        os.chown(t.dir / "out", 65534, 65534)
        session = t.session("--max-overhead", "1000", "-v", "-f", "json", "-o", t.dir / "out" / "x.json",
                            prefix=as_nobody(without("CAP_LEASE")))
        check(session.err.until("processes", 60) is not None, f"it did not begin: {session.err.seen}")
    check(works(t, path, attached=session) == 0, "the program fails by itself")
    # started while the probes were set, too
    check(works(t, path) == 0, "the program fails by itself")
    if how == "lease-thr":
        check(leases_of(session.pid) >= 1, "there is no lease, and what follows shows nothing")
    else:
        time.sleep(1 * SLOWNESS)
        check(leases_of(session.pid) == 0, "there is a lease")
    for other, args in (FORKY, CALLS) * 2:
        took = overwrite(path, program(other))
        check(took < 10 * SLOWNESS, f"whoever overwrites it waits {took:.1f} s")
        code = works(t, path, args)
        check(code == 0, f"as {other} it ends with {code}; {session.err.seen}")
    stop(session)


def test_library_in_use(t):
    """A writer to a library in use waits until the probes are off, which is well before the kernel would break the
    lease."""
    from test_rights import renamed  # pylint: disable=import-outside-toplevel
    path, target = renamed(t)
    session = whole_host(t)
    check(leases_of(session.pid) >= 1, f"there is no lease: {session.err.seen}")
    begun = time.monotonic()
    with open(path, "r+b") as library:
        took = time.monotonic() - begun
        check(took < 20 * SLOWNESS, f"it waited {took:.1f} s")
        code = library.read(4096)
        library.seek(0)
        library.write(code)
    check(session.err.until("is being overwritten in place", 20) is not None, f"{session.err.seen}")
    check(target.process.poll() is None, "the program ended by it")
    new = Target([program("Server", "dyn")], ready="waiting", env={"LD_LIBRARY_PATH": str(path.parent)})
    t.started.append(new)
    check(subprocess.run(["kill", "-0", str(new.pid)], check=False).returncode == 0, "the next one ends by it")
    stop(session)


if __name__ == "__main__":
    run(globals())
