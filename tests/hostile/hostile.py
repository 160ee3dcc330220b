# SPDX-License-Identifier: GPL-2.0-or-later
"""What the hostile tests share. The attacker is an ordinary user, the victims are other users' processes; a test
carries out the attack and checks that nobody but the attacker is affected."""

import atexit
import functools
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "live"))

from harness import Failure, Skip, Target, check, program  # noqa: E402

NOBODY = 65534
# A folder from which anyone may run programs, whatever the permissions of the source tree's folders.
OUT = Path(tempfile.mkdtemp(prefix="safescoped-hostile-", dir="/var/tmp"))
OUT.chmod(0o755)
atexit.register(shutil.rmtree, OUT, ignore_errors=True)


def build(name, *args, sources=(), flags=()):
    """Compile a C program of this folder, unless that is done."""
    out = OUT / name
    if out.exists():
        return out
    done = subprocess.run(["gcc", "-O2", *flags, "-o", out, *[HERE / s for s in sources], *args],
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"{name}: {done.stderr}")
    return out


def as_nobody(command, user=NOBODY):
    """A command line that runs a command as an unprivileged user."""
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--no-new-privs", *map(str, command)]


def haskell(name):
    """A Haskell test program, in a folder where anyone can run it."""
    path = OUT / name
    if not path.exists():
        shutil.copy(program(name), path)
    return path


def start(t, command, ready="ready", env=None):
    target = Target(command, ready=ready, env=env)
    t.started.append(target)
    return target


@functools.cache
def symbol_offset(path, name):
    """File offset of a symbol."""
    table = subprocess.run(["readelf", "-sW", path], capture_output=True, text=True, check=True).stdout
    value = next(int(line.split()[1], 16) for line in table.splitlines()
                 if line.split()[7:8] and line.split()[7].split("@")[0] == name)
    return value - bias(path, value)


def bias(path, vaddr):
    """Address − file offset, for the segment that contains the address."""
    heads = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True, check=True).stdout
    for line in heads.splitlines():
        found = re.match(r"\s+LOAD\s+(\w+) (\w+) \w+ (\w+)", line)
        if found:
            offset, start, size = (int(x, 16) for x in found.groups())
            if start <= vaddr < start + size:
                return start - offset
    raise Failure(f"{path} has no segment at {vaddr:#x}")


def changed_code(pid):
    """[(path, file offset)] of the bytes in which the process's code differs from its files."""
    changed = []
    with open(f"/proc/{pid}/mem", "rb") as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            where, rights, offset, _, inode, *path = line.split(None, 5)
            if "x" not in rights or inode == "0" or not path:
                continue
            first, last = (int(x, 16) for x in where.split("-"))
            memory.seek(first)
            now = memory.read(last - first)
            with open(f"/proc/{pid}/map_files/{first:x}-{last:x}", "rb") as file:
                file.seek(int(offset, 16))
                was = file.read(last - first).ljust(last - first, b"\0")
            if now != was:
                changed += [(path[0], int(offset, 16) + i) for i in range(len(now)) if now[i] != was[i]]
    return changed


def check_untouched(process, what):
    check(process.process.poll() is None, f"{what} ended with {process.process.poll()}: {process.lines.seen[-2:]}")
    changed = changed_code(process.pid)
    check(not changed, f"code of {what} was changed: {[(p, hex(o)) for p, o in changed]}")


# The probed functions, and how far from a function's start a probe may be.
PROBED = ("suspendThread", "resumeThread", "handle_tick", "stat_startGCSync", "stat_startGC", "stat_endGC")
PROBE_WINDOW = 64


def check_only_probed(process, path, twin=None):
    """Check that of a program that is itself a target no code is changed except at probes. `twin`: the same program
    with symbols."""
    places = [symbol_offset(twin or path, name) for name in PROBED]
    wrong = [(p, hex(o)) for p, o in changed_code(process.pid)
             if p != str(path) or not any(x <= o < x + PROBE_WINDOW for x in places)]
    check(not wrong, f"code of {path} was changed: {wrong}")


def check_only_probed_for(seconds, process, path, twin=None):
    """Check that repeatedly for this many seconds, or until it ends."""
    until, looks = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        try:
            check_only_probed(process, path, twin)
        except OSError:
            # it is ending: its memory is gone before the process is
            process.process.wait(10)
        if process.process.poll() is not None:
            break
        looks += 1
        time.sleep(0.1)
    check(looks > 0, f"{path} ended before its code was looked at")


def whole_host(t, *options):
    """A session of the whole host that has started."""
    session = t.session("--max-overhead", "1000", "-v", "-f", "json", "-o", f"{t.stem}.json", *options)
    check(session.err.until("processes", 60) is not None, f"safescoped did not begin: {session.err.seen}")
    return session


class Mounted:
    """Unmounts when the test ends, before the server ends. By force, so that nothing waits for the server any longer,
    including its own threads that wait for pages that it does not serve; and without looking at what is mounted."""

    def __init__(self, point):
        self.point = point

    def kill(self):
        subprocess.run(["umount", "--force", "--lazy", "--no-canonicalize", "--internal-only", self.point],
                       capture_output=True)


def file_server():
    """The file server: slow_fs.c."""
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "fuse3"], capture_output=True, text=True)
    if flags.returncode != 0:
        raise Skip("no libfuse3")
    return build("slow_fs", *flags.stdout.split(), sources=["slow_fs.c"])


def mounted(t):
    """The mount point of a file server that may stall, with `program` in it."""
    point = OUT / t.name.replace(" ", "-")
    point.mkdir(exist_ok=True)
    start(t, [file_server(), program("Calls"), point])
    t.started.append(Mounted(point))
    return point


class Stall:
    """From now on the server does not answer reads of the file. Ends before the processes that wait for it."""

    def __init__(self, t, point):
        self.path = point.parent / f"{point.name}.stall"
        self.path.touch()
        t.started.append(self)

    def kill(self):
        self.path.unlink(missing_ok=True)
