# SPDX-License-Identifier: GPL-2.0-or-later
"""What the live tests share: test programs compiled by the installed GHC, started and kept in step with a session of
safescoped, and the report that the session wrote.

A test is a function `test_…(t)`; `t` is a Test. @cases makes one test for each of its values. A file runs its tests by
run(globals()) and prints one line for each: `ok NAME`, `FAIL NAME: why` or `skip NAME: why`. Whatever a test started is
stopped when the test ends.
"""

import functools
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

from kernel_side import kernel_problem

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAMS = ROOT / "tests" / "programs"
BUILD = ROOT / "build"
SCHEMA = ROOT / "scripts" / "safescoped.schema.json"
SAFESCOPED = Path(os.environ.get("SAFESCOPED", BUILD / "safescoped"))

ATTACHED = "safescoped: attached"

# A root directory made by scripts/ghc-root: the tests' Haskell programs come from it and run in it, as in a container.
GHC_ROOT = os.environ.get("GHC_ROOT")

# How many times longer a probe or a context switch may take than on an idle physical machine. Under an emulated
# processor times are only approximate; counts and stacks are as exact as ever.
SLOWNESS = float(os.environ.get("SAFESCOPED_SLOWNESS", "1"))

WAYS = {
    "v": [],
    "thr": ["-threaded"],
    "split": ["-threaded", "-split-sections"],
    # for programs that come in two variants
    "slower": ["-threaded", "-DSLOWER"],
    "p": ["-prof", "-fprof-auto-top"],
    "thr_p": ["-threaded", "-prof", "-fprof-auto-top"],
    "p_plain": ["-threaded", "-prof"],
    "dyn": ["-threaded", "-dynamic"],
    "g": ["-threaded", "-g"],
    "ipe": ["-threaded", "-finfo-table-map"],
    # read-only data come before the code
    "lld": ["-threaded", "-optl-fuse-ld=lld"],
    # mergeable strings are in a section of their own
    "mold": ["-threaded", "-optl-fuse-ld=mold"],
    # local closures and return points have symbols
    "llvm": ["-threaded", "-fllvm"],
    "O0": ["-threaded", "-O0"],
    # the C code has no unwind information
    "bare": ["-threaded"],
    "static": ["-threaded", "-static", "-optl-static"],
    # position independent, with a static archive linked in whose functions are not exported
    "pie": ["-threaded", "-dynamic", "-fPIC", "-optl-pie", "-optl-Wl,--exclude-libs,libgmp.a", "-l:libgmp.a"],
    # GHC 9.4 and later can always write an eventlog.
    "thr_l": ["-threaded"] if GHC_ROOT else ["-threaded", "-eventlog"],
}


class Failure(Exception):
    """The program under test did something wrong."""


class Skip(Exception):
    """This machine cannot run the test."""


class NotHere(Exception):
    """The test is not meant for this GHC, or this machine: it has neither passed nor been skipped."""


def check(condition, why):
    if not condition:
        raise Failure(why)


def check_near(what, got, want, tolerance):
    """Check that `got` is within `tolerance` of `want`. On an emulated processor more is allowed, but never more than
    half of `want`: otherwise 0 would pass."""
    tolerance = max(tolerance, min(tolerance * SLOWNESS, abs(want) / 2))
    if got is None:
        raise Failure(f"{what}: not measured, should be {want}")
    if abs(got - want) > tolerance:
        raise Failure(f"{what}: {got:.0f}, should be {want:.0f} ± {tolerance:.0f} (off by {got - want:+.0f})")


# How long one test's cases may take in a quick run.
QUICK_SECONDS = 2

MAX_WHY = 2000  # characters of a failure's reason


# ── programs ──


def _newer(target, sources):
    return target.exists() and all(s.stat().st_mtime <= target.stat().st_mtime for s in sources)


def _compile(command):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"{' '.join(map(str, command))}: {done.stdout}{done.stderr}")


def program(name, way="thr"):
    """The path of a test program, compiled if need be. `name.c` or `name.S`: compiled by the C compiler;
    `WAY.stripped`: without symbols."""
    sources = [p for p in PROGRAMS.iterdir() if p.suffix in (".hs", ".c", ".h", ".S")]
    if name.endswith((".c", ".S")):
        out = BUILD / "programs" / name.split(".")[0]
        if not _newer(out, sources):
            out.parent.mkdir(parents=True, exist_ok=True)
            extra = ["-m32", "-nostdlib", "-static", "-no-pie"] if name == "plain32.S" else ["-O2"]
            _compile(["gcc", *extra, "-o", out, PROGRAMS / name])
        return out
    if GHC_ROOT:
        return in_root(name, way)
    folder = BUILD / "programs" / way
    out = folder / name
    if way.endswith(".stripped"):
        twin = program(name, way.removesuffix(".stripped"))
        if not _newer(out, [twin]):
            folder.mkdir(parents=True, exist_ok=True)
            _compile(["strip", "-o", out, twin])
        return out
    if _newer(out, sources):
        return out
    objects = folder / f"{name}.o.d"
    objects.mkdir(parents=True, exist_ok=True)
    extra = []
    # Compiled separately: ghc would put the object beside its source.
    c = PROGRAMS / f"{name.lower()}.c"
    if c.exists():
        extra = [objects / f"{name.lower()}.c.o"]
        rows = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"] if way == "bare" else []
        _compile(["gcc", "-O2", "-fPIC", "-Wall", *rows, "-c", c, "-o", extra[0]])
    _compile(["ghc", "-v0", "-O1", "-rtsopts", *WAYS[way], f"-i{PROGRAMS}", "-outputdir", objects,
              "-o", out, PROGRAMS / f"{name}.hs", *extra])
    return out


def in_root(name, way):
    """The program's path inside GHC_ROOT, where scripts/ghc-root compiled it; WAY.stripped: without symbols."""
    way = {"thr_l": "thr"}.get(way, way)
    if not (Path(GHC_ROOT) / "programs" / way / name).exists():
        raise Failure(f"scripts/ghc-root made no {name} in way {way}")
    return Path("/programs") / way / name


def enter_root(command, root=GHC_ROOT):
    """A command that runs `command` with GHC_ROOT as its root, in its own mount namespace: as with a container, the
    paths that it sees do not lead to its files from outside. The pid stays the same."""
    enter = ('mount --rbind "$0" "$0" && cd "$0" && mount -t proc proc proc && '
             'pivot_root . . && umount -l . && exec chroot . "$@"')
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", enter, str(root), *command]


class Lines:
    """Lines of a pipe, with a time limit."""

    def __init__(self, pipe):
        self.fd = pipe.fileno()
        self.rest = b""
        self.seen = []
        self.ended = False

    def next(self, timeout):
        deadline = time.monotonic() + timeout
        while b"\n" not in self.rest:
            left = deadline - time.monotonic()
            if self.ended:
                if not self.rest:
                    return None
                break
            if not select.select([self.fd], [], [], max(0, left))[0]:
                raise TimeoutError
            data = os.read(self.fd, 65536)
            if not data:
                self.ended = True
            self.rest += data
        line, _, self.rest = self.rest.partition(b"\n")
        text = line.decode(errors="replace")
        self.seen.append(text)
        return text

    def until(self, wanted, timeout):
        """The first line that contains `wanted`; None if the pipe ends first."""
        deadline = time.monotonic() + timeout
        while True:
            line = self.next(max(0, deadline - time.monotonic()))
            if line is None or wanted in line:
                return line

    def drain(self):
        """Take what has arrived, so that a program that writes a lot never waits for a full pipe."""
        try:
            while self.next(0) is not None:
                pass
        except TimeoutError:
            pass

    def all(self, timeout):
        deadline = time.monotonic() + timeout
        while self.next(max(0, deadline - time.monotonic())) is not None:
            pass
        return self.seen


def _undisturbed():
    """Run ahead of all ordinary processes: if a thread is preempted between the program's clock and the probe, a test
    would measure the machine's other load and not the profiler."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except OSError:
        os.setpriority(os.PRIO_PROCESS, 0, -20)


class Target:
    """A running test program. It has printed `ready` and waits for go()."""

    def __init__(self, command, ready="ready", steady=False, env=None):
        self.process = subprocess.Popen(
            [str(c) for c in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, **(env or {})},
            preexec_fn=_undisturbed if steady else None)
        self.pid = self.process.pid
        self.lines = Lines(self.process.stdout)
        try:
            if ready and self.lines.until(ready, 30) is None:
                raise Failure(f"{command[0]} ended without saying {ready!r}")
        except BaseException:
            self.kill()
            raise

    def say(self, text):
        self.process.stdin.write(text.encode() + b"\n")
        self.process.stdin.flush()

    def go(self):
        self.say("go")

    def wait_for(self, text, timeout=30):
        line = self.lines.until(text, timeout)
        check(line is not None, f"the test program ended without printing {text!r}")
        return line

    def wait(self, timeout=120):
        """Wait for its end; return the exit code (negative: the signal)."""
        self.lines.all(timeout)
        return self.process.wait(timeout)

    def result(self, timeout=120):
        """Wait for a successful end; return the JSON of its last line."""
        code = self.wait(timeout)
        check(code == 0, f"the test program ended with {code}: {self.lines.seen[-3:]}")
        return json.loads(self.lines.seen[-1])

    def close_input(self):
        self.process.stdin.close()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            try:
                pipe.close()
            except OSError:
                pass


class Session:
    """A running safescoped."""

    def __init__(self, args, prefix=(), env=None):
        self.process = subprocess.Popen([*map(str, prefix), str(SAFESCOPED), *map(str, args)],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env={**os.environ, **(env or {})})
        self.pid = self.process.pid
        self.err = Lines(self.process.stderr)
        self.out = Lines(self.process.stdout)

    def wait_attached(self, timeout=60):
        try:
            line = self.err.until(ATTACHED, timeout)
        except TimeoutError:
            line = None
        check(line is not None, f"safescoped did not attach: {self.err.seen}")

    def wait_attached_to(self, pid, timeout=60):
        """With -v: wait until a process that started, or became a Haskell program, during the session is attached."""
        try:
            line = self.err.until(f"attached: pid {pid},", timeout)
        except TimeoutError:
            line = None
        check(line is not None, f"pid {pid} was not attached: {self.err.seen}")

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, timeout=60):
        """Wait for its end; return the exit code."""
        try:
            self.err.all(timeout)
            self.out.all(timeout)
            code = self.process.wait(timeout)
        except (TimeoutError, subprocess.TimeoutExpired):
            raise Failure(f"safescoped did not end within {timeout} s; it printed: {self.err.seen}") from None
        for report in ("AddressSanitizer", "LeakSanitizer", "runtime error:"):
            found = [l for l in self.err.seen if report in l]
            check(not found, f"the sanitizer reports: {found}")
        return code

    def complaint(self):
        """What it printed on standard error, without progress lines."""
        return [l for l in self.err.seen if l.startswith("safescoped: ") and not l.startswith(ATTACHED)]

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()


def stolen_ns():
    """The CPU time that the hypervisor has stolen from all CPUs so far."""
    ticks = int(Path("/proc/stat").read_text().split("\n")[0].split()[8])
    return ticks * 1000000000 // os.sysconf("SC_CLK_TCK")


@functools.cache
def schema():
    """The report's validator; None if SAFESCOPED_SCHEMA=0, which means that python3-jsonschema is missing."""
    if os.environ.get("SAFESCOPED_SCHEMA") == "0":
        return None
    try:
        from jsonschema import Draft202012Validator
    except ImportError:
        # Debian's package is for Debian's python3, which may not be the first one on the PATH.
        sys.path.append("/usr/lib/python3/dist-packages")
        from jsonschema import Draft202012Validator
    return Draft202012Validator(json.loads(SCHEMA.read_text()))


def specific(error):
    """For an error in a choice between alternatives: the error in the alternative whose constants match."""
    others = {e.schema_path[0] for e in error.context if e.validator == "const"}
    meant = [e for e in error.context if e.schema_path[0] not in others]
    return specific(meant[0]) if meant else error


def schema_errors(report):
    """Violations of scripts/safescoped.schema.json in a report: ["path: why"]."""
    errors = map(specific, schema().iter_errors(report)) if schema() else ()
    return ["/".join(map(str, e.absolute_path)) + f": {e.message[:300]}" for e in errors]


class Report:
    """A JSON report, with methods for what tests look up in it."""

    def __init__(self, path):
        self.stolen_ns = 0
        try:
            self.json = json.loads(Path(path).read_text())
        except (OSError, ValueError) as e:
            raise Failure(f"the report {path}: {e}") from None
        wrong = schema_errors(self.json)
        check(not wrong, f"the report {path} violates its schema: {wrong[:3]}")

    def target(self, pid=None):
        targets = [t for t in self.json["targets"] if pid is None or t["pid"] == pid]
        check(len(targets) == 1, f"{len(targets)} targets in the report, should be one")
        return targets[0]

    def call(self, function, pid=None):
        """The totals of a safe call's function over all its call sites."""
        sites = [c for c in self.target(pid)["safe_calls"] if c["function"] == function]
        check(sites, f"no safe call {function} in the report; there are: "
              + ", ".join(sorted({c["function"] for c in self.target(pid)["safe_calls"]})))
        total = {}
        for key in ("calls", "wall_ns", "handover_ns", "cpu_ns", "blocked_ns", "cap_wait_ns", "open_at_start",
                    "open_at_end", "abandoned"):
            values = [c.get(key) for c in sites]
            total[key] = None if None in values else sum(values)
        total["exact"] = all(c["exact"] for c in sites)
        total["sites"] = sites
        return total

    def function(self, name, pid=None):
        found = [f for f in self.target(pid)["functions"] if f["name"] == name]
        check(found, f"no function {name} in the report")
        return found[0]

    def states(self, pid=None):
        """Nanoseconds in each state, over all OS threads."""
        states = {}
        for lane in self.target(pid)["lanes"]:
            for state, ns in lane["states"].items() if lane["kind"] == "thread" else ():
                states[state] = states.get(state, 0) + ns
        return states

    def names(self, pid=None):
        return {f["name"] for f in self.target(pid)["functions"]}


class Test:
    """What each test gets: a folder, and ways to start programs that end with the test."""

    def __init__(self, name):
        self.name = name
        file = Path(sys.argv[0]).stem.removeprefix("test_")  # two files may run at the same time, with a test name in common
        self.dir = BUILD / "live" / file / name.replace("[", "-").replace("]", "")
        shutil.rmtree(self.dir, ignore_errors=True)
        self.dir.mkdir(parents=True)
        self.started = []
        self.at_end = []

    def target(self, name, *args, way="thr", rts=(), steady=False, ready="ready", env=None):
        command = [program(name, way), *args]
        if rts:
            command += ["+RTS", *rts, "-RTS"]
        if GHC_ROOT and not name.endswith((".c", ".S")):
            command = enter_root(command)
        t = Target(command, ready=ready, steady=steady, env=env)
        self.started.append(t)
        return t

    def session(self, *args, prefix=(), env=None):
        s = Session(args, prefix=prefix, env=env)
        self.started.append(s)
        return s

    def attach(self, target, *args, formats="json,speedscope,folded"):
        """Attach a session to the target; it writes to self.stem."""
        s = self.session("--pid", target.pid, "-v", "-f", formats, "-o", self.stem, *args)
        s.wait_attached()
        return s

    @property
    def stem(self):
        return self.dir / "p"

    def report(self, stem=None):
        return Report(f"{stem or self.stem}.json")

    def finally_do(self, action):
        self.at_end.append(action)

    def copy_for_all(self, path, folder=None):
        """A copy of the file that anyone may run, whatever the permissions of the source tree's folders: in a new
        folder below `folder`."""
        place = Path(tempfile.mkdtemp(prefix="safescoped-test-", dir=folder))
        self.finally_do(lambda: shutil.rmtree(place))
        place.chmod(0o755)
        copy = place / path.name
        shutil.copy(path, copy)
        copy.chmod(0o755)
        return copy

    def stripped(self, name):
        """A program without symbols."""
        copy = self.dir / "Bare"
        shutil.copy(program(name, "thr"), copy)
        subprocess.run(["strip", copy], check=True)
        return copy

    def end(self):
        for thing in reversed(self.started):
            thing.kill()
        for action in reversed(self.at_end):
            action()


def profile_run(t, name, *args, way="thr", rts=(), options=(), steady=False, timeout=120):
    """Attach, go, and wait until both have ended: (the program's own JSON, report, target)."""
    stolen = stolen_ns()
    target = t.target(name, *args, way=way, rts=rts, steady=steady)
    session = t.attach(target, *options)
    target.go()
    truth = target.result(timeout)
    code = session.wait()
    check(code == 0, f"safescoped ended with {code}: {session.err.seen}")
    report = t.report()
    # Plus one tick, the unit in which stolen time is counted.
    report.stolen_ns = stolen_ns() - stolen + 1000000000 // os.sysconf("SC_CLK_TCK")
    return truth, report, target


# ── running ──


def cases(*values):
    """Run a test once for each value. The most common case comes first: in a quick run it may be the only one."""
    def mark(function):
        function.cases = values
        return function
    return mark


def thorough(function):
    """Mark a test as not for a quick run: it takes ten seconds or more, and checks what changes elsewhere seldom break."""
    function.thorough = True
    return function


def _try_one(name, function, args):
    t = Test(name)
    try:
        function(t, *args)
    except Skip as e:
        return "skip", f": {e}"
    except NotHere as e:
        return "n/a", f": {e}"
    except Failure as e:
        return "FAIL", f": {e}"
    except Exception as e:  # a broken test is a failed test
        traceback.print_exc()
        return "FAIL", f": {type(e).__name__}: {e}"
    finally:
        t.end()
    return "ok", ""


def _run_one(name, function, args):
    """Run one test, up to SAFESCOPED_TRIES times: on a busy machine a test of times may fail because of the other load."""
    tries = max(1, int(os.environ.get("SAFESCOPED_TRIES", "1")))
    for attempt in range(1, tries + 1):
        start = time.monotonic()
        word, why = _try_one(name, function, args)
        why = why.replace("\n", " | ")
        if len(why) > MAX_WHY:
            why = f"{why[:MAX_WHY // 2]} … {why[-MAX_WHY // 2:]}"
        if word != "FAIL" or attempt == tries:
            break
        print(f"again {name}{why}", flush=True)
        time.sleep(attempt)
    if word == "ok":
        why = f" ({time.monotonic() - start:.1f} s" + (f", try {attempt})" if attempt > 1 else ")")
    print(f"{word} {name}{why}", flush=True)
    return word


def _run_quickly(tests):
    """Of a test with cases, run as many as fit into QUICK_SECONDS, and at least one."""
    results, took, left = [], {}, {}
    for full, function, args in tests:
        if getattr(function, "thorough", False):
            print(f"n/a {full}: takes long; make check-all has it", flush=True)
        elif took.get(function, 0) >= QUICK_SECONDS:
            left.setdefault(function, []).append(full)
        else:
            began = time.monotonic()
            results.append(_run_one(full, function, args))
            took[function] = took.get(function, 0) + time.monotonic() - began
    for names in left.values():
        print(f"n/a {' '.join(names)}: make check-all has them", flush=True)
    return results


def _run_none(tests, word, why):
    for full, _, _ in tests:
        print(f"{word} {full}: {why}", flush=True)
    sys.exit(1 if word == "FAIL" else 0)


def run(module, kernel=True):
    """Run a file's tests, or those whose names contain one of the arguments. `kernel`: they need to load BPF programs."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # a replay would query these servers
    os.environ.pop("DEBUGINFOD_URLS", None)
    # nohup, or a shell that runs this in the background, ignores signals; without this all that is started here would,
    # too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for ignored in (signal.SIGHUP, signal.SIGQUIT):
        signal.signal(ignored, signal.SIG_DFL)
    wanted = sys.argv[1:]
    quick = bool(os.environ.get("SAFESCOPED_QUICK")) and not wanted
    tests = []
    for name, function in list(module.items()):
        if name.startswith("test_") and callable(function):
            for case in getattr(function, "cases", (None,)):
                full = name[5:] if case is None else f"{name[5:]}[{case}]"
                tests.append((full, function, () if case is None else (case,)))
    if wanted:
        tests = [x for x in tests if any(w in x[0] for w in wanted)]
    if not SAFESCOPED.exists():
        _run_none(tests, "FAIL", f"{SAFESCOPED} is not there; run make")
    problem = kernel_problem() if kernel else None
    if problem:
        # In CI a machine that cannot run the tests is a failure.
        _run_none(tests, "FAIL" if os.environ.get("CI") == "true" else "skip", problem)
    results = _run_quickly(tests) if quick else [_run_one(*test) for test in tests]
    sys.exit(1 if "FAIL" in results else 0)
