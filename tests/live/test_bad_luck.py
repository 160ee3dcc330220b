#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Bad input and failures: one clear line, the documented exit code, and nothing left over."""

import ctypes
import errno
import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

from harness import ROOT, SAFESCOPED, Failure, Skip, Target, cases, check, program, run, schema_errors
from kernel_side import bpf_objects, bpf_objects_of
from test_calls import ALWAYS

FAILED, USAGE = 2, 64


def refused(t, code, *args, says=(), prefix=()):
    """safescoped ends by itself with this code, prints exactly one line on standard error, and nothing on standard
    output."""
    session = t.session(*args, prefix=prefix)
    got = session.wait(30)
    check(got == code, f"exit code {got}, should be {code}; it printed {session.err.seen}")
    lines = [l for l in session.err.seen if l]
    check(len(lines) == 1, f"not one line on standard error: {lines}")
    check(lines[0].startswith("safescoped: "), f"the line does not show whose it is: {lines[0]}")
    check(not session.out.seen, f"on standard output: {session.out.seen}")
    for word in says:
        check(re.search(word, lines[0], re.I), f"the line does not say {word!r}: {lines[0]}")
    return lines[0]


def output_of(t):
    return sorted(p.name for p in t.dir.iterdir())


# ── wrong input ──


def test_no_such_process(t):
    gone = subprocess.Popen(["true"])
    gone.wait()
    refused(t, FAILED, "--pid", gone.pid, "-d", 1, "-o", t.stem, says=[str(gone.pid), "no such process"])
    check(not output_of(t), f"left behind: {output_of(t)}")


def test_not_ghc(t):
    target = Target([program("not_ghc.c")])
    t.started.append(target)
    refused(t, FAILED, "--pid", target.pid, "-d", 1, "-o", t.stem, says=["not a GHC program"])
    check(not output_of(t), f"left behind: {output_of(t)}")
    check(target.process.poll() is None, "the refused process did not survive")


def test_little_memory(t):
    """With too little memory the message names the limit and does not advise to try again."""
    target = t.target("Server", ready="waiting")
    line = refused(t, FAILED, "--pid", target.pid, "-d", 1, "-o", t.stem, prefix=("prlimit", f"--as={70 << 20}"),
                   says=[str(target.pid), "memory", "RLIMIT_AS"])
    check("try again" not in line, f"it advises: {line}")


def test_32_bit(t):
    try:
        target = Target([program("plain32.S")])
    except (OSError, Failure) as e:
        raise Skip(f"no 32-bit program runs here: {e}") from None
    t.started.append(target)
    refused(t, FAILED, "--pid", target.pid, "-d", 1, "-o", t.stem, says=[str(target.pid), "32"])


def test_kernel_thread(t):
    refused(t, FAILED, "--pid", 2, "-d", 1, "-o", t.stem, says=["pid 2"])


def children_of(pid):
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_zombie(t):
    zombie = subprocess.Popen(["true"])
    time.sleep(0.2)
    try:
        refused(t, FAILED, "--pid", zombie.pid, "-d", 1, "-o", t.stem, says=[str(zombie.pid)])
    finally:
        zombie.wait()


def test_ending(t):
    """A process that has let go of its memory, but has not ended yet, is not taken for a kernel thread."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    # the first process of a namespace ends after all others, of which this test holds one
    maker = subprocess.Popen(["unshare", "--pid", "--fork", "sh", "-c", "sleep 100 & echo; wait"], stdout=subprocess.PIPE)
    try:
        check(maker.stdout.readline(), "no namespace")
        first, = children_of(maker.pid)
        held, = children_of(first)
        seize = 0x4206
        check(libc.ptrace(seize, held, None, None) == 0, f"ptrace: {os.strerror(ctypes.get_errno())}")
        try:
            os.kill(first, signal.SIGKILL)
            deadline = time.monotonic() + 20
            while os.path.exists(f"/proc/{first}/exe"):
                check(time.monotonic() < deadline, "it does not let go of its memory")
                time.sleep(0.01)
            state = Path(f"/proc/{first}/stat").read_text().rpartition(")")[2].split()[0]
            check(state != "Z", "it has ended")
            refused(t, FAILED, "--pid", first, "-d", 1, "-o", t.stem, says=[f"pid {first}", "has ended"])
        finally:
            os.waitpid(held, 0)
    finally:
        maker.kill()
        maker.wait()


def test_main_thread_has_exited(t):
    """A process whose main thread has exited while others go on: --pid, --list and --comm report that as the reason why
    it cannot be profiled."""
    says = "its main thread has exited"
    library = t.dir / "main_exits.so"
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", library, ROOT / "tests" / "live" / "main_exits.c"], check=True)
    target = t.target("Server", ready="waiting", env={"LD_PRELOAD": str(library)})
    deadline = time.monotonic() + 30
    while Path(f"/proc/{target.pid}/stat").read_text().rpartition(") ")[2][0] != "Z":
        check(time.monotonic() < deadline, "its main thread goes on")
        time.sleep(0.1)
    library.unlink()
    refused(t, FAILED, "--pid", target.pid, "-d", 1, "-o", t.stem, says=[str(target.pid), says])
    listed = subprocess.run([SAFESCOPED, "--list"], capture_output=True, text=True, check=True).stdout
    check(f"{target.pid}: {says}" in listed, f"--list: {listed}")
    session = t.session("--comm", "Server", "-d", 0.5, "-f", "json", "-o", t.dir / "all.json")
    session.wait()
    lines = [line for line in session.err.seen if f"pid {target.pid}: left out: {says}" in line]
    check(len(lines) == 1, f"it printed {session.err.seen}")


@cases("--pid=abc", "--pid=0", "--pid=-5", "--pid=99999999999999999999", "--frequency=0", "--frequency=10000",
       "--frequency=x", "--duration=-1", "--duration=x", "--duration=nan", "--format=nosuch", "--max-overhead=x",
       "--nosuch", "--force", "--")
def test_usage(t, option):
    args = [option] if option.startswith("--pid") else ["--pid", os.getpid(), option]
    # "--" alone would start a session of the whole host
    args = ["-o", t.stem, "--"] if option == "--" else [*args, "-o", t.stem]
    session = t.session(*args)
    code = session.wait(30)
    check(code == USAGE, f"exit code {code}, should be {USAGE}; it printed {session.err.seen}")
    check(session.err.seen and session.err.seen[0].startswith("safescoped: "), f"it printed {session.err.seen}")
    check(not session.out.seen, f"on standard output: {session.out.seen}")


@cases("-h", "--help", "--usage", "-V", "--version")
def test_help(t, option):
    session = t.session(option)
    code = session.wait(30)
    check(code == 0 and not session.err.seen, f"exit code {code}; it printed {session.err.seen}")
    check(re.match(r"safescoped \d" if "V" in option.upper() else "Usage: safescoped", session.out.seen[0]),
          f"on standard output: {session.out.seen[:3]}")


@cases("-h", "--help", "--usage", "-V", "--version", "--completion=bash")
def test_help_that_cannot_be_written(t, option):
    with open("/dev/full", "w") as full:
        done = subprocess.run([SAFESCOPED, option], stdout=full, stderr=subprocess.PIPE, text=True, timeout=30)
    check((done.returncode, done.stderr) == (FAILED, f"safescoped: standard output: {os.strerror(errno.ENOSPC)}\n"),
          f"exit code {done.returncode}; it printed {done.stderr!r}")


@cases("no-folder", "a-file-as-folder", "proc")
def test_unwritable_output(t, where):
    (t.dir / "file").write_text("")
    out = {"no-folder": t.dir / "none" / "p", "a-file-as-folder": t.dir / "file" / "p",
           "proc": Path("/proc/self/p")}[where]
    target = t.target("Server", ready="waiting")
    start = time.monotonic()
    refused(t, FAILED, "--pid", target.pid, "-d", 20, "-o", out, "-f", "json", says=[re.escape(str(out.parent))])
    check(time.monotonic() - start < 10, "it found out only at the session's end")
    check(target.process.poll() is None, "the target did not survive")


def test_no_privileges(t):
    if not shutil.which("setpriv"):
        raise Skip("no setpriv")
    target = t.target("Server", ready="waiting")
    copy = t.copy_for_all(SAFESCOPED)
    session = t.session("--pid", target.pid, "-d", 1, "-o", copy.parent / "p",
                        prefix=["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                                "sh", "-c", f'shift; exec {copy} "$@"', "sh"])
    code = session.wait(30)
    check(code == FAILED, f"exit code {code}; it printed {session.err.seen}")
    lines = [l for l in session.err.seen if l]
    check(len(lines) == 1 and lines[0].startswith("safescoped: "), f"it printed {lines}")
    check(re.search("root|sudo|CAP_", lines[0]), f"what is missing is not reported: {lines[0]}")
    check(target.process.poll() is None, "the target did not survive")


def test_standard_output_is_data(t):
    target = t.target("Server", ready="waiting")
    session = t.session("--pid", target.pid, "-d", "0.5", "-f", "json", "-o", "-")
    check(session.wait() == 0, f"it printed {session.err.seen}")
    report = json.loads("\n".join(session.out.seen))
    check(not schema_errors(report), f"violates the schema: {schema_errors(report)[:3]}")
    check(report["targets"][0]["pid"] == target.pid, "another pid")


# ── the target's end ──


@cases("thr", "v")
def test_target_killed(t, way):
    target = t.target("Calls", 2, "safe_sleep_1ms=100000", way=way)
    session = t.attach(target, *ALWAYS)
    target.go()
    time.sleep(1)
    target.process.kill()
    start = time.monotonic()
    check(session.wait(20) == 0, f"it printed {session.err.seen}")
    check(time.monotonic() - start < 5, "the session went on long after its target's end")
    report = t.report()
    check(report.call("safe_sleep_1ms")["calls"] >= 400, "the profile up to there is not complete")
    end = report.target()["end"], report.target()["exit"]
    check(end == ("killed", {"code": None, "signal": signal.SIGKILL}), f"how it ended: {end}")
    check((t.dir / "p.speedscope.json").stat().st_size > 100, "no speedscope file")


def test_target_crashes(t):
    target = t.target("Forky", "crash", 20)
    session = t.attach(target, *ALWAYS)
    target.go()
    check(target.wait() == -signal.SIGSEGV, "the test program itself is wrong")
    check(session.wait(20) == 0, f"it printed {session.err.seen}")
    check(t.report().call("forky_fork_1ms")["calls"] == 20, "calls before the crash")


def test_target_execs(t):
    """If the target execs, the session ends: the new program under the same pid is not profiled."""
    target = t.target("Forky", "exec", 20)
    session = t.attach(target, *ALWAYS)
    target.go()
    check(session.wait(20) == 0, f"it printed {session.err.seen}")
    check(t.report().call("forky_fork_1ms")["calls"] == 20, "calls before the exec")
    check(target.wait() == 0, "the program that the target became failed")


def test_target_execs_itself(t):
    target = t.target("Forky", "self", 20)
    session = t.attach(target, *ALWAYS)
    target.go()
    target.wait_for("ready")
    target.go()
    check(target.wait() == 0, "the target failed")
    check(session.wait(20) == 0, f"it printed {session.err.seen}")
    calls = sum(c["calls"] for x in t.report().json["targets"] for c in x["safe_calls"]
                if c["function"] == "forky_fork_1ms")
    check(20 <= calls <= 70, f"{calls} calls, should be 20 and up to 50 of the second life")


# ── our own end ──


def wait_gone(objects, seconds=10):
    deadline = time.monotonic() + seconds
    while True:
        left = objects & bpf_objects()
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.1)


def changed_code(pid):
    """Addresses in executable mappings of files where memory differs from the file: breakpoints."""
    changed = []
    with open(f"/proc/{pid}/mem", "rb") as mem:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            span, perms, offset, _, inode, *path = line.split(None, 5)
            if "x" not in perms or inode == "0":
                continue
            low, high = (int(x, 16) for x in span.split("-"))
            with open(f"/proc/{pid}/root{path[0]}", "rb") as file:
                file.seek(int(offset, 16))
                want = file.read(high - low)
            mem.seek(low)
            got = mem.read(high - low)
            changed += [low + i for i, (a, b) in enumerate(zip(want, got)) if a != b]
    return changed


def wait_restored(pid, seconds=10):
    """Whether the target's code matches its file again. If the daemon dies before it handles signals, its keeper
    removes the probes shortly afterwards."""
    deadline = time.monotonic() + seconds
    while changed_code(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def test_sigkill_leaves_nothing(t):
    target = t.target("Calls", 2, "safe_sleep_1ms=1500", "unsafe_spin_20us=1000")
    session = t.attach(target, *ALWAYS)
    ours = bpf_objects_of(session.process.pid)
    check(any(kind == "prog" for kind, _ in ours) and any(kind == "link" for kind, _ in ours),
          f"no programs and links are visible while attached: {ours}")
    check(changed_code(target.pid), "no breakpoints are visible while attached")
    target.go()
    time.sleep(0.7)
    session.signal(signal.SIGKILL)
    session.process.wait()
    left = wait_gone(ours)
    check(not left, f"still in the kernel after SIGKILL: {left}")
    check(not changed_code(target.pid), "breakpoints are left in the target")
    truth = target.result()
    check(truth["safe_sleep_1ms"]["calls"] == 3000, "the target did not go on as before")
    check(not [n for n in output_of(t) if not n.startswith("p.")], f"left behind: {output_of(t)}")


def test_good_end_leaves_nothing(t):
    target = t.target("Server", ready="waiting")
    session = t.attach(target, "-d", "1")
    ours = bpf_objects_of(session.process.pid)
    check(session.wait() == 0, f"it printed {session.err.seen}")
    check(not wait_gone(ours), "still in the kernel after a normal end")
    check(not changed_code(target.pid), "breakpoints are left in the target")
    check(output_of(t) == ["p.folded", "p.json", "p.speedscope.json"], f"the files are {output_of(t)}")
    for name in output_of(t):
        mode = (t.dir / name).stat().st_mode & 0o777
        check(mode == 0o600, f"{name} has mode {mode:o}, should be 600")


@cases(0, 5, 20, 50, 100, 150, 200, 300, 500)
def test_interrupt_at_once(t, milliseconds):
    target = t.target("Calls", 1, "safe_sleep_1ms=100")
    session = t.session("--pid", target.pid, "-f", "json", "-o", f"{t.stem}.json")
    time.sleep(milliseconds / 1000)
    session.signal(signal.SIGINT)
    code = session.wait(20)
    # Until safescoped has set up its handlers, the signal's default action ends it.
    check(code in (0, 1, FAILED, -signal.SIGINT, 130), f"exit code {code}; it printed {session.err.seen}")
    if code == 0:
        t.report()
    check(set(output_of(t)) <= {"p.json"}, f"left behind: {output_of(t)}")
    check(wait_restored(target.pid), "breakpoints are left in the target")
    target.go()
    check(target.result()["safe_sleep_1ms"]["calls"] == 100, "the target did not go on as before")


@cases(100, 300)
def test_interrupt_before_it_has_looked(t, milliseconds):
    """Interrupted before it has looked for processes, it must not report that no GHC program ran."""
    t.target("Server", ready="waiting")
    session = t.session("--comm", "Server", "--window", "1", "-f", "json", "-o", t.dir)
    time.sleep(milliseconds / 1000)
    session.signal(signal.SIGTERM)
    code = session.wait(20)
    check(code in (0, 1), f"exit code {code}; it printed {session.err.seen}")
    check(not any("no GHC program ran" in line for line in session.err.seen), f"it printed {session.err.seen}")


@cases("SIGINT", "SIGTERM")
def test_interrupt_in_the_middle(t, name):
    target = t.target("Calls", 2, "safe_sleep_1ms=100000")
    session = t.attach(target, *ALWAYS)
    target.go()
    time.sleep(1)
    session.signal(getattr(signal, name))
    start = time.monotonic()
    check(session.wait(20) == 0, f"it printed {session.err.seen}")
    check(time.monotonic() - start < 5, "it took long to end")
    check(t.report().call("safe_sleep_1ms")["calls"] >= 400, "the profile up to there is not complete")
    check(target.process.poll() is None, "the target did not survive")


def test_disk_full(t):
    """No partial and no temporary file is left, and the exit code reports the failure."""
    disk = t.dir / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], check=True)
    t.finally_do(lambda: subprocess.run(["umount", disk], check=True))
    (disk / "ballast").write_bytes(b"x" * 56 * 1024)
    target = t.target("Work", "exc", 2)
    session = t.session("--pid", target.pid, "-v", "-F", "499", "-f", "json,speedscope", "-o", disk / "p")
    session.wait_attached()
    target.go()
    code = session.wait()
    check(code == FAILED, f"exit code {code}; it printed {session.err.seen}")
    check(any(re.search("no space left", l, re.I) for l in session.err.seen), f"it printed {session.err.seen}")
    left = sorted(p.name for p in disk.iterdir())
    check(left == ["ballast"], f"left behind: {left}")


def test_two_at_a_time(t):
    target = t.target("Calls", 1, "safe_spin_100us=2000", "safe_sleep_1ms=500", steady=True)
    first = t.attach(target, *ALWAYS)
    second = t.session("--pid", target.pid, "-v", "-f", "json", "-o", t.dir / "q.json", *ALWAYS)
    second.wait_attached()
    target.go()
    truth = target.result()
    for session, stem in ((first, t.stem), (second, t.dir / "q")):
        check(session.wait() == 0, f"it printed {session.err.seen}")
        report = t.report(stem)
        for function, want in truth.items():
            got = report.call(function)
            check(got["calls"] == want["calls"], f"{stem.name}: {function}: {got['calls']} of {want['calls']}")


if __name__ == "__main__":
    run(globals())
