#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A mapped file that root must not open, with a file of the host's at the same path: root opens neither of them."""

import ctypes
import os
import re
import signal
import stat
import subprocess
import tempfile
import time
from pathlib import Path

from hostile import OUT, as_nobody, file_server, haskell, start, whole_host
from harness import SAFESCOPED, Skip, cases, check, program, run

IN_ACCESS, IN_OPEN = 0x1, 0x20
FUSE = os.makedev(10, 229)

# A shell script: mount a file system of the attacker's that nobody else may look into, not even root; run a program
# from it; then mount another directory over it, in which the program's name is a link.
SWAP = """mount --bind "$1" /dev/fuse || exit
"$2" "$3" "$4" default_permissions >/dev/null &
until [ -e "$4/program" ]; do sleep 0.05; done
(while [ -e /proc/$$ ] && ! grep -qF "$4/program" /proc/$$/maps; do sleep 0.05; done
exec mount --bind "$5" "$4") >/dev/null &
exec "$4/program" 1 safe_sleep_1ms=100000"""


class Watch:
    """Whether anyone opens or reads a file; opening with O_PATH does not count."""

    def __init__(self, path):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        check(libc.inotify_add_watch(self.fd, bytes(path), IN_ACCESS | IN_OPEN) > 0, f"inotify: {ctypes.get_errno()}")

    def seen(self):
        try:
            return bool(os.read(self.fd, 4096))
        except BlockingIOError:
            return False


def plain(t):
    return re.sub(r"\W+", "-", t.name)


def bait(t, kind):
    """The target of the link: something that only root can open, and where opening it can be noticed."""
    path = OUT / f"bait-{plain(t)}"
    if kind == "fifo":
        os.mkfifo(path, 0o600)
    elif kind == "device":
        os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    else:
        path.write_bytes(program("Calls").read_bytes())
        path.chmod(0o600)
    return path


def swapped(t, bait_path):
    """An ordinary user's Haskell program, mapped from a file that root cannot open; at the file's path there is the
    link."""
    if not os.path.exists("/dev/fuse"):
        raise Skip("no /dev/fuse")
    fuse, name = OUT / "fuse", plain(t)
    if not fuse.exists():
        os.mknod(fuse, stat.S_IFCHR | 0o666, FUSE)
        fuse.chmod(0o666)
    point, over = (Path(tempfile.mkdtemp(prefix=f"{kind}-{name}-", dir=OUT)) for kind in ("point", "over"))
    point.chmod(0o777)
    over.chmod(0o755)
    (over / "program").symlink_to(bait_path)
    target = start(t, as_nobody(["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", SWAP, "sh",
                                 fuse, file_server(), haskell("Calls"), point, over]))
    link = f"/proc/{target.pid}/root{point}/program"
    until = time.monotonic() + 20
    while not os.path.islink(link):
        check(time.monotonic() < until, "the attacker's own mounts failed")
        time.sleep(0.05)
    try:
        os.stat(f"/proc/{target.pid}/exe")
    except PermissionError:
        return target
    raise Skip("root may look into this file system")


@cases("fifo", "device", "secret")
def test_link_over_a_mapping(t, kind):
    path = bait(t, kind)
    swapped(t, path)
    other = start(t, [haskell("Calls"), "1", "safe_sleep_1ms=100000"])
    watch = Watch(path)
    session = whole_host(t)
    other.go()
    time.sleep(1)
    session.signal(signal.SIGINT)
    code = session.wait()
    check(code == 0, f"safescoped ended with {code}: {session.err.seen}")
    check(not watch.seen(), f"the {kind} at the file's name was opened")
    check(t.report().target(other.pid)["safe_calls"], "the other program was not seen")


@cases("fifo", "secret")
def test_by_pid(t, kind):
    path = bait(t, kind)
    target = swapped(t, path)
    watch = Watch(path)
    done = subprocess.run([SAFESCOPED, "--pid", str(target.pid), "-d", "1"], capture_output=True, text=True, timeout=30,
                          check=False)
    check(done.returncode != 0 and "cannot open" in done.stderr, f"that it cannot open the program is not reported: {done}")
    check(not watch.seen(), f"the {kind} at the file's name was opened")


def test_list(t):
    path = bait(t, "fifo")
    swapped(t, path)
    watch = Watch(path)
    done = subprocess.run([SAFESCOPED, "--list"], capture_output=True, text=True, timeout=30, check=False)
    check(done.returncode == 0, f"--list: {done}")
    check(not watch.seen(), "the FIFO was opened")


if __name__ == "__main__":
    run(globals())
