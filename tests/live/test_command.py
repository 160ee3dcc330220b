#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""safescoped -- COMMAND: the program is profiled from its first call to its end, and runs as the user who ran sudo."""

import ctypes
import json
import os
import pwd
import select
import signal
import subprocess
import time

from harness import GHC_ROOT, SAFESCOPED, Skip, cases, check, program, run

ALWAYS = ("--max-overhead", "1000", "-v")


def start(t, command, *options, formats="json", env=None, prefix=()):
    return subprocess.Popen([*map(str, prefix), str(SAFESCOPED), *ALWAYS, "-f", formats, "-o", str(t.stem) + ".json",
                             *map(str, options), "--", *map(str, command)], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **(env or {})},
                            bufsize=0)


def attached(process, timeout=30):
    """Wait until the program's runtime works and is profiled: all our programs wait for a line at that point."""
    seen = b""
    deadline = time.monotonic() + timeout
    while b"attached: pid" not in seen:
        left = deadline - time.monotonic()
        check(left > 0 and select.select([process.stderr], [], [], left)[0], f"not attached: {seen}")
        line = process.stderr.readline()
        check(line, f"not attached: {seen}")
        seen += line


def finish(process, text="go\n", timeout=60):
    out, err = process.communicate(text.encode() if text is not None else None, timeout)
    return process.returncode, out.decode(), err.decode()


def compare(report, truth, pid=None):
    for function, want in truth.items():
        if not function.startswith("unsafe"):
            got = report.call(function, pid)["calls"]
            check(got == want["calls"], f"{function}: {got} calls, the program made {want['calls']}")


@cases("thr", "v", "thr_p", "p", "dyn")
def test_from_the_start(t, way):
    """The program's first safe call is counted, and so is its last."""
    code, out, err = finish(start(t, [program("Calls", way), 2, "safe_spin_20us=2000", "safe_sleep_1ms=100"]))
    check(code == 0, f"ended with {code}: {err}")
    compare(t.report(), json.loads(out.splitlines()[-1]))
    report = t.report().json
    check(report["session"]["mode"] == "command", f"mode is {report['session']['mode']}")
    check(len(report["targets"]) == 1, f"{len(report['targets'])} targets")
    # The probes were there before the program: no call was open, and none is reported as abandoned.
    odd = [c for c in report["targets"][0]["safe_calls"] if c["open_at_start"] or c["abandoned"]]
    check(not odd, f"calls from before the program's first instruction: {odd}")


def debug_registers_work():
    """Whether a debug register stops a process on this machine: a child of ours, at a function that it calls. Not all
    virtual machines support that."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    traceme, pokeuser, cont, registers = 0, 6, 7, 848  # sys/ptrace.h; struct user, u_debugreg
    place = ctypes.cast(libc.getppid, ctypes.c_void_p).value
    pid = os.fork()
    if pid == 0:
        libc.ptrace(traceme, 0, None, None)
        os.kill(os.getpid(), signal.SIGSTOP)
        libc.getppid()
        os._exit(0)  # pylint: disable=protected-access
    os.waitpid(pid, 0)
    for at, value in ((registers, place), (registers + 7 * 8, 1)):
        check(libc.ptrace(pokeuser, pid, at, value) == 0, f"ptrace: {os.strerror(ctypes.get_errno())}")
    libc.ptrace(cont, pid, None, None)
    _, status = os.waitpid(pid, 0)
    if not os.WIFSTOPPED(status):
        return False
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return os.WSTOPSIG(status) == signal.SIGTRAP


@cases("thr", "v", "thr.stripped", "thr_p", "dyn")
def test_short_life(t, way):
    """A program that lives for about fifteen milliseconds is profiled completely. Its libraries' code can be unwound
    from its entry point on, where it waits for that; before, the dynamic linker runs some of their functions."""
    if GHC_ROOT:
        raise Skip("scripts/ghc-root makes no programs in this way")
    code, out, err = finish(start(t, [program("Calls", way), 1, "safe_spin_20us=400"], "-F", "2999",
                                  formats="json,folded"))
    check(code == 0, f"ended with {code}: {err}")
    truth = json.loads(out.splitlines()[-1])
    target = t.report().target()
    check(all(c["exact"] for c in target["safe_calls"]), f"not exact: {target['safe_calls']}")
    if way != "thr.stripped":
        compare(t.report(), truth)
    calls = sum(c["calls"] for c in target["safe_calls"])
    check(400 <= calls <= 420, f"{calls} calls, the program made 400 and the runtime a few")
    check(not [m for m in target["missing"] if "before its probes" in m], f"missing: {target['missing']}")
    # The function itself used 8 ms of CPU time.
    states = t.report().states()
    check(states.get("safe_call_cpu", 0) >= 7e6, f"8 ms in calls, the lanes have {states}")
    s = target["stacks"]
    check(s["samples"] >= 10, f"only {s['samples']} samples: {s}")
    # What the dynamic linker did before the entry has no unwind rows: a sample or two in the C library's startup. A
    # runtime that is a shared library is noticed at the entry only.
    stops = debug_registers_work()
    check(stops != ("debug registers have no effect" in err), f"they work: {stops}; it printed {err}")
    if way != "dyn" and stops:
        folded = t.stem.with_suffix(".folded").read_text().splitlines()
        unknown = [line for line in folded if "[broken: in code of no known file]" in line]
        check(s["broken"].get("c_no_map", 0) <= 3 and all("file];[RTS];" in line for line in unknown),
              f"code that is in no mapping that was known: {s}, {unknown}")
    # most of the time is in calls: few samples, or none, are in Haskell code
    check(s["haskell_complete"] >= 0.9 * s["haskell_samples"] - 1, f"{s}")


def test_gone_unseen(t):
    """Programs that a script starts may end before they can be looked at; that is reported."""
    code, _, err = finish(start(t, ["sh", "-c", "i=0; while [ $i -lt 50 ]; do /bin/true; i=$((i + 1)); done"]))
    check(code == 2, f"ended with {code}: {err}")
    check("ended before they could be inspected" in err, f"it printed {err}")


def test_child_of_a_script(t):
    """A program that a script starts is not held until it is attached: calls are marked exact only if they are, and
    otherwise the gap is reported."""
    script = t.dir / "script"
    script.write_text(f"#!/bin/sh\n{program('Calls', 'thr')} \"$@\"\ntrue\n")
    script.chmod(0o755)
    code, out, err = finish(start(t, [script, 1, "safe_spin_20us=1000"]))
    check(code in (0, 2), f"ended with {code}: {err}")
    if code == 2:
        check("ended before" in err, f"nothing to show, and it printed {err}")
        return
    truth = json.loads(out.splitlines()[-1])
    target = t.report().target()
    exact = bool(target["safe_calls"]) and all(c["exact"] for c in target["safe_calls"])
    said = any("before its probes" in m for m in target["missing"])
    check(exact != said, f"exact: {exact}, missing: {target['missing']}")
    if exact:
        compare(t.report(), truth)


def test_stripped(t):
    code, _, err = finish(start(t, [t.stripped("Calls"), 1, "safe_spin_20us=2000"]))
    check(code == 0, f"ended with {code}: {err}")
    calls = sum(c["calls"] for c in t.report().target()["safe_calls"])
    check(2000 <= calls <= 2020, f"{calls} calls, the program made 2000 and the runtime a few")


def test_along_path(t):
    name = program("Calls", "thr")
    code, out, err = finish(start(t, [name.name, 1, "safe_sleep_1ms=50"],
                                  env={"PATH": f"/nowhere:{name.parent}:{os.environ['PATH']}"}))
    check(code == 0, f"ended with {code}: {err}")
    compare(t.report(), json.loads(out.splitlines()[-1]))


def test_behind_a_wrapper(t):
    """A script that execs the program, as nixpkgs wraps most Haskell programs."""
    script = t.dir / "wrapper"
    script.write_text(f"#!/bin/sh\nexec {program('Calls', 'thr')} \"$@\"\n")
    script.chmod(0o755)
    process = start(t, [script, 1, "safe_sleep_1ms=200"])
    attached(process)
    code, out, err = finish(process)
    check(code == 0, f"ended with {code}: {err}")
    compare(t.report(), json.loads(out.splitlines()[-1]))


def test_its_status_is_not_ours(t):
    script = t.dir / "fails"
    script.write_text(f"#!/bin/sh\nexec {program('Forky', 'thr')} crash 20\n")
    script.chmod(0o755)
    process = start(t, [script])
    attached(process)
    code, _, err = finish(process)
    check(code == 0, f"ended with {code}: {err}")
    check("ended by signal 11" in err, f"how it ended is not reported: {err}")
    check(t.report().call("forky_fork_1ms")["calls"] == 20, "calls before the crash")


@cases(("exit 3", 3), ("kill -9 $$", 137), ("true", 0))
def test_its_status_is_ours_if_asked(t, case):
    """With --propagate-exit our exit status is that of the command, here a script that runs a Haskell program and then
    ends in some way."""
    end, want = case
    script = f"{program('Calls', 'thr')} 1 safe_sleep_1ms=500; {end}"
    code, _, err = finish(start(t, ["sh", "-c", script], "--propagate-exit"))
    check(code == want, f"ended with {code}, the command with {want}: {err}")
    report = t.report().target()
    check((report["end"], report["exit"]) == ("exited", {"code": 0, "signal": None}),
          f"the program, not the script: {report['end']}, {report['exit']}")


def test_killed(t):
    """If the program itself is killed, the report has the signal, and does not report it as exited."""
    process = start(t, [program("Calls", "thr"), 1, "safe_sleep_1ms=100000"], "--propagate-exit", formats="json,text")
    child = child_of(process)
    time.sleep(1)
    os.kill(child, signal.SIGKILL)
    code, out, err = finish(process, None)
    check(code == 128 + signal.SIGKILL, f"ended with {code}: {err}")
    report = t.report().target(child)
    check((report["end"], report["exit"]) == ("killed", {"code": None, "signal": 9}), f"{report['end']}, {report['exit']}")
    check("killed by signal 9" in err and "killed by" not in out, f"the text is not beside the command's output: {out!r}")


KILLS = {"by-it": "mkfifo in; {} <>in & read line; kill -9 $!", "with-it": "exec timeout -s KILL 3 {}"}


@cases(*KILLS)
def test_killed_with_the_command(t, how):
    """A program killed by the command's last action, or together with the command: the report still has the signal."""
    script = KILLS[how].format(f"{program('Calls', 'thr')} 1 safe_sleep_1ms=100000")
    process = start(t, ["sh", "-c", f"cd '{t.dir}' && {script}"])
    attached(process)
    finish(process)
    report = t.report().target()
    check((report["end"], report["exit"]) == ("killed", {"code": None, "signal": 9}), f"{report['end']}, {report['exit']}")


def test_output_is_the_commands(t):
    """Standard output has only what the command prints, even with a text report."""
    code, out, err = finish(start(t, [program("Calls", "thr"), 1, "safe_sleep_1ms=50"], formats="json,text"))
    check(code == 0 and err.count("safescoped: Calls (pid") == 1, f"ended with {code}: {err}")
    said = out.splitlines()
    check(len(said) == 2 and said[0] == "ready" and json.loads(said[1]), f"on standard output: {out!r}")


@cases(["/nonexistent/program"], ["no-such-program-anywhere"], ["/etc/passwd"])
def test_cannot_be_started(t, command):
    code, _, err = finish(start(t, command))
    lines = [l for l in err.splitlines() if l]
    check(code == 2, f"ended with {code}: {err}")
    check(len(lines) == 1 and "cannot be started" in lines[0], f"it printed {lines}")
    check(not list(t.dir.glob("p*")), "files are left behind")


def test_no_ghc_program(t):
    code, out, err = finish(start(t, ["echo", "hello"]))
    check(code == 2, f"ended with {code}: {err}")
    check(out == "hello\n", f"its output is {out!r}")
    check("not a GHC program" in err or "before its GHC runtime" in err, f"it printed {err}")


@cases("nohup", "env")
def test_hangup(t, name):
    """A signal that nohup ignores stays ignored for the session and its command, and no signal that we block is blocked
    in the command."""
    session = t.session("-f", "json", "-o", t.stem, "--", "sh", "-c", "exec grep ^Sig /proc/self/status",
                        prefix=(name,))
    session.wait()
    masks = dict(line.split(":\t") for line in session.out.seen)
    check(masks and int(masks["SigBlk"], 16) == 0, f"it has {masks}")
    ignored = int(masks["SigIgn"], 16) & 1 << signal.SIGHUP - 1
    check(bool(ignored) == (name == "nohup"), f"it has {masks}")


def test_nohup(t):
    """A session started by nohup survives SIGHUP."""
    target = t.target("Server", ready="waiting")
    session = t.session("-v", "--pid", target.pid, "-f", "json", "-o", t.stem, prefix=("nohup",))
    session.wait_attached()
    session.signal(signal.SIGHUP)
    time.sleep(0.5)
    check(session.process.poll() is None, f"it ended, and printed {session.err.seen}")
    session.signal(signal.SIGTERM)
    check(session.wait() == 0, f"it printed {session.err.seen}")


def test_as_the_user_of_sudo(t):
    nobody = pwd.getpwnam("nobody")
    env = {"SUDO_UID": str(nobody.pw_uid), "SUDO_GID": str(nobody.pw_gid)}
    code, out, err = finish(start(t, ["sh", "-c", "id -u; id -g; id -G; echo $HOME; echo $USER"], env=env))
    check(code == 2, f"a shell is no GHC program, and it ended with {code}: {err}")
    check(out.split()[:2] == [str(nobody.pw_uid), str(nobody.pw_gid)], f"it ran as {out.split()}")
    check("0" not in out.split()[:3], f"it kept root's groups: {out.split()}")
    check(out.splitlines()[-1] == "nobody" and nobody.pw_dir in out, f"its environment is {out.splitlines()[3:]}")


def test_root_without_sudo(t):
    env = {k: v for k, v in os.environ.items() if not k.startswith("SUDO_")}
    done = subprocess.run([SAFESCOPED, "-f", "json", "-o", t.stem, "--", "id", "-u"], capture_output=True, text=True, env=env)
    check(done.stdout == "0\n", f"it ran as {done.stdout!r}")


def child_of(process):
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        for pid in open(f"/proc/{process.pid}/task/{process.pid}/children").read().split():
            try:
                if os.readlink(f"/proc/{pid}/exe") == str(program("Calls", "thr")):
                    return int(pid)
            except OSError:
                pass
        time.sleep(0.02)
    check(False, "the program was not started")


@cases("SIGINT", "SIGTERM", "SIGHUP")
def test_signals_go_on_to_it(t, name):
    process = start(t, [program("Calls", "thr"), 1, "safe_sleep_1ms=100000"])
    child = child_of(process)
    attached(process)
    process.stdin.write(b"go\n")
    time.sleep(1)
    begun = time.monotonic()
    process.send_signal(getattr(signal, name))
    code, _, err = finish(process, None)
    check(code == 0, f"ended with {code}: {err}")
    check(time.monotonic() - begun < 10, "it took long to end")
    check(not os.path.exists(f"/proc/{child}"), "the program did not get the signal")
    check(t.report().call("safe_sleep_1ms")["calls"] >= 300, "the profile up to there is not complete")


def test_two_signals_end_the_session(t):
    """If the program ignores the signal, a second one ends the session and the program goes on."""
    script = t.dir / "deaf"
    script.write_text(f"#!/bin/sh\ntrap '' INT TERM\nexec {program('Calls', 'thr')} \"$@\"\n")
    script.chmod(0o755)
    process = start(t, [script, 1, "safe_sleep_1ms=5000"])
    child = child_of(process)
    t.finally_do(lambda: os.path.exists(f"/proc/{child}") and os.kill(child, signal.SIGKILL))
    attached(process)
    process.stdin.write(b"go\n")
    time.sleep(0.7)
    # GHC installs its own handler for SIGINT, but not for SIGTERM.
    process.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    check(process.poll() is None, "one signal ended the session though the program goes on")
    process.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + 10
    while process.poll() is None:
        check(time.monotonic() < deadline, "the second signal did not end the session")
        time.sleep(0.05)
    check(process.returncode == 0, f"ended with {process.returncode}")
    check(os.path.exists(f"/proc/{child}"), "the program was ended")
    check(t.report().call("safe_sleep_1ms")["calls"] >= 100, "the profile up to there is not complete")


def test_duration(t):
    process = start(t, [program("Calls", "thr"), 1, "safe_sleep_1ms=3000"], "-d", "1")
    child = child_of(process)
    t.finally_do(lambda: os.path.exists(f"/proc/{child}") and os.kill(child, signal.SIGKILL))
    process.stdin.write(b"go\n")
    process.stdin.flush()
    deadline = time.monotonic() + 10
    while process.poll() is None:
        check(time.monotonic() < deadline, "the duration did not end the session")
        time.sleep(0.05)
    check(os.path.exists(f"/proc/{child}"), "the program was ended")
    check(0 < t.report().call("safe_sleep_1ms")["calls"] < 1200, "not the calls of a second")


def test_nothing_is_left(t):
    """The program inherits none of the daemon's descriptors, blocked or ignored signals."""
    look = ["sh", "-c", "ls /proc/self/fd; grep -E 'SigBlk|SigIgn' /proc/self/status"]
    same = dict(capture_output=True, text=True, stdin=subprocess.DEVNULL, restore_signals=True)
    done = subprocess.run([SAFESCOPED, "-q", "-f", "json", "-o", t.stem, "--", *look], **same)
    lines = done.stdout.split("\n")
    fds = [int(l) for l in lines if l.isdigit()]
    check(sorted(fds)[:3] == [0, 1, 2] and len(fds) <= 4, f"it has the descriptors {fds}")
    masks = [l for l in lines if l.startswith("Sig")]
    # those that this test itself was started with are passed on
    own = [l for l in subprocess.run(look, **same).stdout.split("\n") if l.startswith("Sig")]
    check(masks == own, f"blocked and ignored: {masks}, without safescoped: {own}")


if __name__ == "__main__":
    run(globals())
