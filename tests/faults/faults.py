# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests of failures share: runs in which one allocation or system call fails, or all from some point on. Each
must end in order: by itself, with a documented exit code, a message on standard error if it failed, complete files or
none, and nothing left over; and the profiled program goes on.

A first run of each kind counts what can fail; then some of these places are tried, spread over the whole run, within
FAULTS_SECONDS (15) for each kind of session. If that is too short for all kinds, a different kind comes first each day.
FAULTS=all tries every place.
"""

import errno
import functools
import json
import math
import os
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "live"))

from harness import BUILD, ROOT, SAFESCOPED, Failure, check, schema_errors  # noqa: E402

ALLOC_SO = BUILD / "faults" / "alloc.so"
SYSCALLS = BUILD / "faults" / "syscalls"
# The same program, built with sanitizers.
WRAPPED = BUILD / "fuzz" / "safescoped-faults"
SANITIZERS = {"ASAN_OPTIONS": "detect_leaks=1:exitcode=99:allocator_may_return_null=1", "UBSAN_OPTIONS": "print_stacktrace=1"}
SECONDS = float(os.environ.get("FAULTS_SECONDS", "15"))
ALL = os.environ.get("FAULTS") == "all"
# How long one run may take at most, on a busy machine.
TIMEOUT = 60
GOLDEN = (math.sqrt(5) - 1) / 2
HALF = -1

# Groups of system calls that fail for the same reasons, with these reasons.
CALLS = {
    "open": ("open,openat,openat2", (errno.EMFILE, errno.ENOMEM, errno.EACCES)),
    "read": ("read,pread64", (errno.EIO, HALF)),
    "write": ("write,pwrite64,writev", (errno.ENOSPC, HALF)),
    "stat": ("fstat,newfstatat,statx", (errno.ENOMEM,)),
    "folder": ("getdents64,readlink,readlinkat", (errno.EACCES,)),
    "mmap": ("mmap,mremap", (errno.ENOMEM,)),
    "process": ("clone,clone3,fork,vfork", (errno.EAGAIN,)),
    "descriptor": ("pipe2,socketpair,socket,epoll_create1,eventfd2,signalfd4,timerfd_create,memfd_create,pidfd_open,dup,dup2,dup3",
                   (errno.EMFILE,)),
    "wait": ("poll,ppoll,epoll_wait,epoll_pwait,wait4,waitid,nanosleep,clock_nanosleep", (errno.EINTR,)),
    "poll": ("poll,ppoll", (errno.ENOMEM,)),
    "epoll": ("epoll_ctl", (errno.ENOMEM,)),
    "bpf": ("bpf", (errno.EPERM, errno.ENOMEM)),
    "perf": ("perf_event_open", (errno.EMFILE, errno.EACCES)),
    "ioctl": ("ioctl", (errno.ENOMEM,)),
    "memory": ("process_vm_readv", (errno.ESRCH, errno.EFAULT)),
    "file": ("rename,renameat,renameat2,fsync,fdatasync,ftruncate,fallocate,fchmod,fchown", (errno.EIO,)),
    "identity": ("setresuid,setresgid,setgroups,setuid,setgid,prctl,setrlimit,prlimit64", (errno.EPERM,)),
}


@functools.cache
def built():
    done = subprocess.run(["make", "-s", f"-j{os.cpu_count()}", "faults-bins"], cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"make faults-bins: {done.stderr[-500:]}")


class Done:
    """The result of a run."""

    def __init__(self, code, out, err, count, where, left):
        self.code, self.out, self.err, self.count, self.where, self.left = code, out, err, count, where, left


def execute(command, env):
    process = subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env={**os.environ, **env})
    try:
        out, err = process.communicate(timeout=TIMEOUT)
        return process.returncode, out.decode(errors="replace"), err.decode(errors="replace")
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        return "no end", out.decode(errors="replace"), err.decode(errors="replace")


def place(binary, frames):
    """The functions of the program that requested the memory, innermost first."""
    offsets = [hex(f - 1) for f in frames if f]
    if not offsets:
        return "outside of the program"
    text = subprocess.run(["addr2line", "-fse", binary, *offsets], capture_output=True, text=True).stdout.split("\n")
    return " < ".join(f"{text[i]} {text[i + 1]}" for i in range(0, len(text) - 1, 2)
                      if "alloc.c" not in text[i + 1])[:400]


class Alloc:
    """Allocations in the program and its libraries; with sanitizers, in the program only."""

    def __init__(self, wrapped, to_the_end):
        self.binary = WRAPPED if wrapped else SAFESCOPED
        self.env = SANITIZERS if wrapped else {"LD_PRELOAD": str(ALLOC_SO), "MALLOC_PERTURB_": "165"}
        self.to_the_end = to_the_end
        self.interrupts = False
        self.kind = "sanitized allocations" if wrapped else "allocations"
        self.name = self.kind

    def run(self, folder, first, args):
        shared = folder.parent / f"{folder.name}.shared"
        last = first if not self.to_the_end else 1 << 62
        shared.write_bytes(struct.pack("=28Q", first, last, *[0] * 26))
        code, out, err = execute([self.binary, *args], {**self.env, "FAULTS_ALLOC": str(shared)})
        _, _, count, n, *frames = struct.unpack("=28Q", shared.read_bytes())
        where = place(self.binary, frames[:n]) if n else None
        return Done(code, out, err, count, where, 0)


class Calls:
    """A class of system calls, in the program, its libraries and its child processes."""

    def __init__(self, kind, how, to_the_end=False):
        self.kind, self.how = kind, how
        self.to_the_end = to_the_end
        self.interrupts = how in (HALF, errno.EINTR)
        self.name = f"{kind} {'by half' if how == HALF else errno.errorcode[how]}"

    def run(self, folder, first, args):
        status = folder.parent / f"{folder.name}.status"
        status.unlink(missing_ok=True)
        last = first if not self.to_the_end else 1 << 62
        code, out, err = execute([SYSCALLS, status, CALLS[self.kind][0], first, last, self.how, SAFESCOPED, *args],
                                 {"MALLOC_PERTURB_": "165"})
        count, where, left = status.read_text().split() if status.exists() else (0, "-", 0)
        return Done(code, out, err, int(count), None if where == "-" else where, int(left))


def whole(path):
    """What is wrong with an output file, or None."""
    text = path.read_bytes()
    if path.name.endswith("capture.partial"):
        return None
    if path.name.endswith(".json"):
        try:
            data = json.loads(text)
        except ValueError as e:
            return f"{path.name}: {e}"
        if path.name == "p.json":
            return "; ".join(schema_errors(data)[:2]) or None
    elif path.name.endswith(".html"):
        return None if text.rstrip().endswith(b"</html>") else f"{path.name} is cut off"
    elif path.name.endswith(".folded"):
        return None if not text or text.endswith(b"\n") else f"{path.name} is cut off"
    return None


def wrong(done, folder, files, fault):
    """What is wrong with the result of a run: a list of texts."""
    found = []
    said = [l for l in done.err.split("\n") if l.startswith("safescoped: ")]
    if done.code not in (0, 1, 2):
        found.append(f"it ended with {done.code}")
    if done.code == 2 and not said:
        found.append("it failed without a word")
    if any(w in done.err for w in ("AddressSanitizer", "LeakSanitizer", "runtime error:", "Assertion")):
        found.append("a sanitizer reports")
    if fault.interrupts and done.code == 2:
        found.append("it failed where it had only to try again")
    have = {p.name for p in folder.iterdir()}
    if done.code == 0 and have != set(files):
        found.append(f"of {sorted(files)} there are {sorted(have)}")
    if have - set(files) - {f"{f}.partial" for f in files}:
        found.append(f"left behind: {sorted(have - set(files))}")
    found += filter(None, map(whole, sorted(folder.iterdir())))
    if done.left:
        found.append(f"{done.left} children were left")
    return found


class Journey:
    """A kind of session, with what is checked around each of its runs."""

    def __init__(self, t, args, files, around=None):
        self.t, self.args, self.files = t, args, files
        self.around = around
        self.folder = t.dir / "out"
        self.tried = {}
        self.ends = {}
        self.failures = []

    def once(self, fault, first):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        around = self.around(self.t) if self.around else None
        args = self.args(self.folder, around)
        done = fault.run(self.folder, first, args)
        bad = wrong(done, self.folder, self.files, fault) if first else []
        if not first and (done.code not in (0, 1) or not done.count):
            return done, [f"without a fault it ended with {done.code}"]
        if around:
            bad += around.wrong()
        return done, bad

    def count(self, fault):
        done, bad = self.once(fault, 0)
        # a run may make no calls of a kind: that is not an error
        if done.code in (0, 1) and not done.count:
            return 0
        check(not bad, f"{fault.name}: {bad}: {done.err[-600:]}")
        return done.count

    def attempt(self, fault, first):
        done, bad = self.once(fault, first)
        if done.where:
            self.tried[fault.name] = self.tried.get(fault.name, 0) + 1
            self.ends[done.code] = self.ends.get(done.code, 0) + 1
        if bad:
            self.failures.append(f"{fault.name}, number {first}{' and on' if fault.to_the_end else ''} "
                                 f"({done.where}): {'; '.join(bad)}")
            with open(self.t.dir / "failures", "a", encoding="utf-8") as log:
                log.write(f"{self.failures[-1]}\n{done.err[-3000:]}\n\n")

    def spread(self, faults):
        """In rounds, try one place of each kind; each round tries other places."""
        end = time.monotonic() + SECONDS
        today = int(time.time() // 86400) % len(faults)
        faults = (*faults[today:], *faults[:today])
        counts = {}

        def count_of(fault):
            if fault.kind not in counts:
                counts[fault.kind] = self.count(fault)
            return counts[fault.kind]

        if ALL:
            for fault in faults:
                for first in range(1, count_of(fault) + 1):
                    self.attempt(fault, first)
        else:
            done = set()
            for round_ in range(1, 100000):
                if time.monotonic() > end:
                    break
                for fault in faults:
                    n = count_of(fault)
                    # if there are few, all are tried in order; if there are many, at places spread ever more densely
                    first = round_ if n <= 30 else 1 + int(n * ((round_ + len(done)) * GOLDEN % 1))
                    if 0 < first <= n and (fault, first) not in done:
                        done.add((fault, first))
                        self.attempt(fault, first)
                    if time.monotonic() > end:
                        break
        total = sum(self.tried.values())
        print(f"   {self.t.name}: {total} faults of {sum(counts.get(f.kind, 0) for f in faults)}; exit codes {self.ends}; "
              + ", ".join(f"{k} {v}" for k, v in self.tried.items()), flush=True)
        check(total, "not one fault was tried")
        check(not self.failures, f"{len(self.failures)} of {total} (see {self.t.dir}/failures): " + " | ".join(self.failures[:8]))


ALLOCATIONS = (Alloc(False, False), Alloc(False, True), Alloc(True, False), Alloc(True, True))


def calls_of(*kinds):
    return tuple(Calls(k, how) for k in kinds for how in CALLS[k][1])


FILE_CALLS = calls_of("open", "read", "write", "stat", "folder", "mmap", "process", "descriptor", "wait", "file", "ioctl")
FORMATS = "json,speedscope,folded,chrome,html,pprof"
FILES = ("p.json", "p.speedscope.json", "p.folded", "p.trace.json", "p.html", "p.pb.gz")
