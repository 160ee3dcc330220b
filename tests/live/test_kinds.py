#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Every kind of program with a GHC runtime: ways of linking, ways of the runtime, libraries that programs in other
languages load, GHC and GHCi themselves."""

import ctypes
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time

from harness import BUILD, PROGRAMS, ROOT, Failure, Lines, Skip, Target, cases, check, check_near, program, run

ALWAYS = ("--max-overhead", "1000")
OFTEN = ("-F", "499")
COMPLETE = 0.98
# Flags for ghc, and the name of the runtime's way.
KINDS = {
    "static": (["-threaded", "-optl-static"], "rts_thr"),
    "static_stripped": (["-threaded", "-optl-static", "-optl-s"], "rts_thr"),
    "static_v": (["-optl-static"], "rts_v"),
    "pie": (["-threaded", "-dynamic", "-fPIC", "-pie"], "rts_thr_dyn"),
    "debug": (["-threaded", "-debug"], "rts_thr_debug"),
    "debug_v": (["-debug"], "rts_debug"),
    "debug_p": (["-threaded", "-debug", "-prof"], "rts_thr_debug_p"),
    "debug_stripped": (["-threaded", "-debug", "-optl-s"], "rts_thr_debug"),
    "eventlog": (["-threaded", "-eventlog"], "rts_thr_l"),
    "eventlog_v_stripped": (["-eventlog", "-optl-s"], "rts_l"),
    "mold": (["-threaded", "-optl-fuse-ld=mold"], "rts_thr"),
    "mold_stripped": (["-threaded", "-optl-fuse-ld=mold", "-optl-s"], "rts_thr"),
}


def newer(out, *sources):
    return out.exists() and all(s.stat().st_mtime <= out.stat().st_mtime for s in sources)


def compile_by(command, out, *sources):
    """Compile `out` unless it is up to date. It is renamed into place, as another test process may look for it at the
    same time."""
    if newer(out, *sources):
        return out
    out.parent.mkdir(parents=True, exist_ok=True)
    fresh = out.with_name(f".{out.name}.{os.getpid()}")
    done = subprocess.run([*map(str, command), "-o", str(fresh)], cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"{' '.join(map(str, command))}: {done.stdout}{done.stderr}")
    fresh.rename(out)
    return out


def calls_object():
    return compile_by(["gcc", "-O2", "-fPIC", "-c", PROGRAMS / "calls.c"], BUILD / "programs" / "kinds" / "calls.o",
                      PROGRAMS / "calls.c", PROGRAMS / "tally.h")


def of_kind(kind, name):
    flags, _ = KINDS[kind]
    if kind.startswith("mold") and not shutil.which("mold"):
        raise Skip("no mold")
    folder = BUILD / "programs" / "kinds" / kind
    extra = [calls_object()] if name == "Calls" else []
    return compile_by(["ghc", "-v0", "-O1", "-rtsopts", *flags, f"-i{PROGRAMS}", "-outputdir", folder / f"{name}.o.d",
                       PROGRAMS / f"{name}.hs", *extra], folder / name, PROGRAMS / f"{name}.hs",
                      PROGRAMS / "Ready.hs", *extra)


def library():
    """Embed.hs as a shared library that is linked with its runtime."""
    version = subprocess.run(["ghc", "--numeric-version"], capture_output=True, text=True, check=True).stdout.strip()
    folder = BUILD / "programs" / "kinds" / "library"
    return compile_by(["ghc", "-v0", "-O1", "-shared", "-dynamic", "-fPIC", "-threaded", "-outputdir", folder / "o.d",
                       PROGRAMS / "Embed.hs", calls_object(), f"-lHSrts_thr-ghc{version}"],
                      folder / "libembed.so", PROGRAMS / "Embed.hs", calls_object())


def check_complete(stacks, enough):
    haskell, complete = stacks["haskell_samples"], stacks["haskell_complete"]
    check(haskell >= enough, f"only {haskell} samples in Haskell code: {stacks}")
    check(complete >= COMPLETE * haskell, f"{complete} of {haskell} Haskell samples are complete: {stacks}")


def check_linking(path, kind):
    text = subprocess.run(["readelf", "-hlW", path], capture_output=True, text=True, check=True).stdout
    check(("INTERP" in text) != kind.startswith("static"), f"{path} is not linked as it should be")
    if kind == "pie":
        check("DYN (" in text, f"{path} is no PIE")


@cases(*KINDS)
def test_calls(t, kind):
    path = of_kind(kind, "Calls")
    check_linking(path, kind)
    target = Target([path, 1, "safe_spin_20us=500", "safe_sleep_1ms=200"])
    t.started.append(target)
    session = t.attach(target, *ALWAYS)
    target.go()
    truth = target.result()
    check(session.wait() == 0, f"safescoped failed: {session.err.seen}")
    report = t.report()
    got = report.target(target.pid)
    check(got["ghc"]["way"] == KINDS[kind][1], f"way {got['ghc']['way']}")
    check(got["ghc"]["layout_checked"] and got["ghc"]["version_known"], f"not checked: {got['ghc']}")
    want = sorted(v["calls"] for v in truth.values() if v["calls"])
    if kind.endswith("stripped"):
        counts = sorted(c["calls"] for c in got["safe_calls"] if c["calls"] in want)
    else:
        counts = sorted(report.call(f)["calls"] for f, v in truth.items() if v["calls"])
    check(counts == want, f"{counts} calls, should be {want}")


@cases(*KINDS)
def test_stacks(t, kind):
    target = Target([of_kind(kind, "Work"), "alloc", 1])
    t.started.append(target)
    session = t.attach(target, *ALWAYS, "-F", "999")
    target.go()
    check(target.wait() == 0, "the test program failed")
    check(session.wait() == 0, f"safescoped failed: {session.err.seen}")
    # Most of its time is in the debug way's own checks.
    check_complete(t.report().target(target.pid)["stacks"], 40)


@cases("v", "thr")
def test_outside(t, way):
    """A C program that is in no call of Haskell when it is attached to; without -threaded no Task exists then."""
    source, folder = ROOT / "tests" / "live" / "outside.c", BUILD / "programs" / "kinds" / f"outside-{way}"
    path = compile_by(["ghc", "-v0", "-O1", "-no-hs-main", *(["-threaded"] if way == "thr" else []), "-outputdir",
                       folder / "o.d", PROGRAMS / "Embed.hs", source, calls_object()],
                      folder / "outside", PROGRAMS / "Embed.hs", source, calls_object())
    target = Target([path])
    t.started.append(target)
    session = t.attach(target, *ALWAYS, "-F", "499")
    time.sleep(2)
    target.close_input()
    check(target.wait() == 0, "the test program failed")
    check(session.wait() == 0, f"safescoped failed: {session.err.seen}")
    got = t.report().target(target.pid)
    check(got["ghc"]["way"] == f"rts_{way}" and got["ghc"]["layout_checked"], f"not checked: {got['ghc']}")
    check(t.report().states()["haskell"] >= 0.2e9, f"{t.report().states()}")
    check(got["stacks"]["haskell_complete"] >= 50, f"only few stacks: {got['stacks']}")


# ── libraries that are loaded long after the program's start ──


def whole_host(t, *options):
    session = t.session(*ALWAYS, *OFTEN, "-v", "-f", "json,folded", "-o", t.stem, *options)
    line = session.err.until("processes", 60)
    check(line is not None, f"safescoped did not begin: {session.err.seen}")
    return session


def check_library(t, pid, truth, spun):
    report = t.report()
    got = report.target(pid)
    check(got["ghc"]["way"].startswith("rts_thr") and got["ghc"]["layout_checked"], f"not checked: {got['ghc']}")
    call = report.call("safe_sleep_1ms", pid)
    want = truth["safe_sleep_1ms"]["calls"]
    check(call["calls"] == want, f"{call['calls']} calls, the library made {want}")
    if spun:
        check_complete(got["stacks"], 20)
        names = report.names(pid)
        check(any("Embed" in n for n in names), f"no function of the library has its name: {sorted(names)[:40]}")
    return got


@cases("host", "command", "pid")
def test_loaded_by_c(t, how):
    """A runtime loaded by dlopen() long after the exec is found when it is mapped, and no call is missed."""
    lib = library()
    if how == "command":
        fifo = t.dir / "fifo"
        os.mkfifo(fifo)
        session = t.session(*ALWAYS, *OFTEN, "-v", "-f", "json,folded", "-o", t.stem, "--", "sh", "-c",
                            f"exec {program('loader.c')} {lib} 300 1000 < {fifo}")
        with open(fifo, "wb", 0) as pipe:
            time.sleep(1.2)
            pipe.write(b"go\n")
            check(session.err.until("attached: pid", 30) is not None, f"it was not found: {session.err.seen}")
            pipe.write(b"go\n")
        check(session.wait(60) == 0, f"safescoped failed: {session.err.seen}")
        got = t.report().json["targets"]
        check([x["comm"] for x in got] == ["loader"], f"targets: {[x['comm'] for x in got]}")
        check_library(t, got[0]["pid"], json.loads(session.out.seen[-1]), True)
        return
    target = Target([program("loader.c"), lib, 300, 1000])
    t.started.append(target)
    if how == "host":
        session = whole_host(t)
        time.sleep(1.2)
    target.go()
    target.wait_for("loaded")
    if how == "pid":
        session = t.attach(target, *ALWAYS, *OFTEN)
    else:
        session.wait_attached_to(target.pid)
    target.go()
    truth = target.result()
    if how == "host":
        session.signal(signal.SIGINT)
    check(session.wait(60) in ((0,) if how == "pid" else (0, 1)), f"safescoped failed: {session.err.seen}")
    check_library(t, target.pid, truth, True)


def test_own_code_of_c(t):
    """What a C program does between its calls of Haskell, and after hs_exit(), is foreign code: neither the runtime's
    nor idleness."""
    target = Target([program("loader.c"), library(), 20, 20, 400])
    t.started.append(target)
    target.go()
    target.wait_for("loaded")
    session = t.attach(target, *ALWAYS, formats="json")
    target.go()
    target.result()
    check(session.wait(60) == 0, f"safescoped failed: {session.err.seen}")
    lanes = t.report().target(target.pid)["lanes"]
    states, = (x["states"] for x in lanes if x["kind"] == "thread" and x["tid"] == target.pid)
    check_near("its own time on the CPU", states["foreign_cpu"], 800e6, 80e6)
    check(states["foreign_blocked"] > 790e6, f"it slept for 800 ms: {states}")
    for state in ("rts", "rts_blocked", "idle"):
        check(states.get(state, 0) < 80e6, f"{state}: {states}")
    capability, = (x["states"] for x in lanes if x["kind"] == "capability" and x["no"] == 0)
    check(capability["idle"] > 1500e6, f"no thread held it for 1.6 s: {capability}")


@cases("dlopen", "preloaded")
def test_loaded_at_once(t, how):
    """A runtime that is loaded while its process, whose executable is not GHC's, is looked at for the first time: all
    of twenty such processes are found."""
    lib = library()
    session = whole_host(t)
    targets = []
    for _ in range(20):
        command = [program("loader.c"), lib, 3, 1]
        target = Target(["env", f"LD_PRELOAD={lib}", *command] if how == "preloaded" else command)
        t.started.append(target)
        target.go()
        target.wait_for("loaded")
        targets.append(target)
    for target in targets:
        if not any(f"attached: pid {target.pid}," in line for line in session.err.seen):
            session.wait_attached_to(target.pid)
    for target in targets:
        target.go()
    truths = {target.pid: target.result() for target in targets}
    session.signal(signal.SIGINT)
    check(session.wait(60) in (0, 1), f"safescoped failed: {session.err.seen}")
    for pid, truth in truths.items():
        check_library(t, pid, truth, False)


def test_loaded_by_python(t):
    """Python loads the library by ctypes: the interpreter is the command, and the runtime appears seconds later."""
    script = t.dir / "use.py"
    script.write_text("import ctypes, sys, time\n"
                      "time.sleep(1.2)\n"
                      "lib = ctypes.CDLL(sys.argv[1])\n"
                      "lib.hs_init(None, None)\n"
                      "time.sleep(1)\n"
                      "lib.embed_work(300)\n"
                      "lib.embed_spin(1000)\n"
                      "lib.embed_print()\n"
                      "sys.stdout.flush()\n"
                      "lib.hs_exit()\n")
    python = os.path.realpath(sys.executable)
    session = t.session(*ALWAYS, *OFTEN, "-v", "-f", "json,folded", "-o", t.stem, "--", python, script, library())
    check(session.wait(60) == 0, f"safescoped failed: {session.err.seen}")
    truth = json.loads(session.out.seen[-1])
    got = t.report().json["targets"]
    check(len(got) == 1, f"{len(got)} targets")
    check_library(t, got[0]["pid"], truth, True)


def test_children_of_the_command(t):
    """GHC programs that a script starts, in sequence and in parallel, are all profiled, and no other process is."""
    calls = program("Calls", "thr")
    other = t.target("Calls", 1, "safe_sleep_1ms=2")
    script = (f"(sleep 0.3; echo go) | {calls} 1 safe_sleep_1ms=300 & (sleep 0.3; echo go) | {calls} 1 safe_sleep_1ms=200; "
              f"wait; (sleep 0.3; echo go) | sh -c 'exec {calls} 1 safe_sleep_1ms=100'")
    session = t.session(*ALWAYS, "-v", "-f", "json", "-o", f"{t.stem}.json", "--", "sh", "-c", script)
    time.sleep(0.5)
    other.go()
    other.result()
    check(session.wait(60) == 0, f"safescoped failed: {session.err.seen}")
    report = t.report()
    got = report.json["targets"]
    check(len(got) == 3 and other.pid not in {x["pid"] for x in got}, f"targets: {[x['pid'] for x in got]}")
    counts = sorted(report.call("safe_sleep_1ms", x["pid"])["calls"] for x in got)
    check(counts == [100, 200, 300], f"calls: {counts}")


def test_plain_programs_stay_plain(t):
    """A C program that loads libraries without a runtime is no target, and nothing is printed about it."""
    target = Target([program("loader.c"), "libm.so.6", 1, 1])
    t.started.append(target)
    session = whole_host(t)
    target.go()
    time.sleep(0.5)
    session.signal(signal.SIGINT)
    check(session.wait(60) in (0, 1), f"safescoped failed: {session.err.seen}")
    check(target.pid not in {x["pid"] for x in t.report().json["targets"]}, "it is in the report")
    check(not [l for l in session.err.seen if f"pid {target.pid}:" in l], f"it printed {session.err.seen}")


# ── GHC's own ──


GHCI = """module Loaded where
import Control.Monad
import Foreign.C
foreign import ccall safe "usleep" nap :: CUInt -> IO CInt
naps :: Int -> IO ()
naps n = replicateM_ n (nap 1000)
spin :: Int -> Integer
spin n = go n 0
  where
    go 0 acc = acc
    go k acc = go (k - 1) ((acc * 31 + fromIntegral k) `mod` (10 ^ (400 :: Int)))
"""


@cases("-fbyte-code", "-fobject-code")
def test_ghci(t, how):
    """GHCi makes code while it runs, either byte code that the runtime interprets or a library: profiled like any other
    code."""
    source = t.dir / "Loaded.hs"
    source.write_text(GHCI)
    target = Target(["ghci", "-v0", how, "-O1" if how == "-fobject-code" else "-O0", "-outputdir", t.dir / "o"],
                    ready=None)
    t.started.append(target)
    target.say('putStrLn "ready"')
    target.wait_for("ready")
    session = t.attach(target, *ALWAYS, "-F", "499")
    target.say(f":load {source}")
    target.say("naps 300")
    target.say(f"print (spin {600000 if how == '-fobject-code' else 60000} `mod` 1000)")
    target.say(":quit")
    check(target.wait() == 0, "ghci failed")
    check(session.wait() == 0, f"safescoped failed: {session.err.seen}")
    report = t.report()
    got = report.target(target.pid)
    check(got["ghc"]["way"] == "rts_thr_dyn" and got["ghc"]["layout_checked"], f"{got['ghc']}")
    counts = [c["calls"] for c in got["safe_calls"]]
    check(300 in counts, f"the 300 naps are not among the safe calls: {sorted(counts)[-10:]}")
    stacks = got["stacks"]
    check(stacks["samples"] >= 50 and stacks["complete"] + stacks["elided"] + stacks["truncated"]
          >= 0.9 * stacks["samples"], f"stacks: {stacks}")
    if how == "-fobject-code":
        names = report.names()
        check(any("Loaded" in n for n in names), f"no name of the new library: {sorted(names)[:60]}")


def test_ghc_itself(t):
    """GHC itself is profiled while it compiles."""
    session = t.session(*ALWAYS, "-v", "-F", "499", "-f", "json", "-o", f"{t.stem}.json", "--", "ghc", "-O1", "-v0",
                        "-fforce-recomp", "-outputdir", t.dir / "o", f"-i{PROGRAMS}", "-c", PROGRAMS / "Ready.hs",
                        PROGRAMS / "Work.hs")
    check(session.wait(120) == 0, f"safescoped failed: {session.err.seen}")
    got = t.report().json["targets"]
    got = [x for x in got if x["comm"] == "ghc"]
    check(len(got) == 1 and got[0]["ghc"]["layout_checked"], f"targets: {got}")
    check((t.dir / "o" / "Main.o").exists(), "nothing was compiled")
    check_complete(got[0]["stacks"], 50)


def test_static_musl(t):
    """A stripped program from elsewhere, linked with another C library: the Elm compiler."""
    elm = ROOT / "build" / "npm" / "node_modules" / "@elm_binaries" / "linux_x64" / "elm"
    if not elm.exists():
        raise Skip("elm IS NOT THERE: scripts/install-deps --test brings it")
    command = f"exec {elm} repl 2>/dev/null"
    target = Target(["sh", "-c", command], ready="Say :help", env={"ELM_HOME": str(t.dir / "home"), "HOME": str(t.dir)})
    t.started.append(target)
    session = t.attach(target, *ALWAYS)
    target.say("1 + 1")
    time.sleep(1)
    target.close_input()
    target.wait()
    check(session.wait() == 0, f"safescoped failed: {session.err.seen}")
    got = t.report().target(target.pid)
    check(got["ghc"]["layout_checked"] and got["ghc"]["way"] == "rts_thr", f"{got['ghc']}")
    check(got["found_by"]["suspendThread"] == "callsites", f"found by {got['found_by']}")
    check(sum(c["calls"] for c in got["safe_calls"]) > 0, "no safe call is counted")


def packed(path):
    """Pack a program as UPX does: no section table, and its code runs in memory that is mapped from no file."""
    stub = compile_by(["gcc", "-O2", "-static-pie", PROGRAMS / "unpacker.c"], BUILD / "programs" / "kinds" / "unpacker",
                      PROGRAMS / "unpacker.c")
    out = BUILD / "programs" / "kinds" / "packed"
    data = bytearray(stub.read_bytes())
    data[0x28:0x30] = bytes(8)
    data[0x3a:0x40] = bytes(6)
    payload = path.read_bytes()
    fresh = out.with_name(f".{out.name}.{os.getpid()}")
    fresh.write_bytes(bytes(data) + payload + len(payload).to_bytes(8, "little"))
    fresh.chmod(0o755)
    fresh.rename(out)
    return out


def test_packed(t):
    """A packed program has none of its code in a file: only its threads' times are known, and that is reported."""
    target = Target([packed(of_kind("static", "Calls")), 1, "safe_spin_1ms=400", "safe_sleep_1ms=200"])
    t.started.append(target)
    said = subprocess.run([os.environ.get("SAFESCOPED", BUILD / "safescoped"), "--doctor", "--pid", str(target.pid)],
                          capture_output=True, text=True, timeout=60)
    check("packed" in said.stdout and said.returncode != 0, f"--doctor says {said.stdout[-400:]}")
    session = t.session("--pid", target.pid, "-F", "499", "-f", "json,folded,text", "-o", t.stem)
    line = session.err.until("only sampled", 30)
    check(line is not None and "packed" in line and "upx -d" in line, f"it printed {session.err.seen}")
    time.sleep(0.3)
    target.go()
    truth = target.result()
    check(session.wait() == 0, f"safescoped failed: {session.err.seen}")
    got = t.report().target(target.pid)
    check(got["ghc"]["version"] is None and not got["safe_calls"], f"{got['ghc']}, {got['safe_calls']}")
    check(any("packed" in m for m in got["missing"]), f"missing: {got['missing']}")
    lines = [l for l in session.err.seen if "no snapshot" in l]
    check(not any("temporarily" in l for l in lines), f"it printed {lines}")
    lanes = [l for l in got["lanes"] if l["kind"] == "thread"]
    cpu = sum(l["cpu_ns"] for l in lanes)
    want = truth["safe_spin_1ms"]["cpu_ns"]
    check(want <= cpu <= 1.5 * want + 300e6, f"{cpu} ns of CPU, the program's calls had {want}")
    # the ticker's waits count as idle, and its thread has a name
    states = {s for l in lanes for s, ns in l["states"].items() if ns and (s != "idle" or l["name"] != "ghc_ticker")}
    check(states <= {"foreign_cpu", "foreign_blocked", "preempted"}, f"states: {states}")
    check(got["stacks"]["samples"] >= 50, f"only {got['stacks']['samples']} samples")


# ── versions that are not in the table of layouts ──


def patched(t, name, way, *changes):
    """A copy of a test program with some strings of its runtime replaced by others of the same length."""
    data = program(name, way).read_bytes()
    for old, new in changes:
        check(len(old) == len(new) and old in data, f"{old} is not in the program")
        data = data.replace(old, new)
    copy = t.dir / name
    copy.write_bytes(data)
    copy.chmod(0o755)
    return copy


def installed_version():
    return subprocess.run(["ghc", "--numeric-version"], capture_output=True, check=True).stdout.strip()


def test_unknown_version(t):
    """An unknown version is profiled if all that the live process shows agrees with the layout; and that is reported."""
    known = installed_version()
    unknown = known[:-1] + (b"9" if known[-1:] != b"9" else b"7")
    target = Target([patched(t, "Calls", "thr", (known, unknown)), 1, "safe_sleep_1ms=200"])
    t.started.append(target)
    session = t.attach(target, *ALWAYS)
    target.go()
    truth = target.result()
    check(session.wait() == 0, f"safescoped failed: {session.err.seen}")
    check(any("unknown version, offsets confirmed live" in l for l in session.err.seen), f"it printed {session.err.seen}")
    report = t.report()
    ghc = report.target()["ghc"]
    check(ghc["version"] == unknown.decode() and not ghc["version_known"] and ghc["layout_checked"], f"{ghc}")
    got = report.call("safe_sleep_1ms")["calls"]
    check(got == truth["safe_sleep_1ms"]["calls"], f"{got} calls")


def test_unknown_version_refused(t):
    """An unknown version whose reported way contradicts its code is not attached, and the message gives what was
    observed."""
    known = installed_version()
    unknown = known[:-1] + (b"9" if known[-1:] != b"9" else b"7")
    target = Target([patched(t, "Calls", "thr_p", (known, unknown), (b"rts_thr_p", b"rts_thr_l")), 1, "safe_sleep_1ms=2"])
    t.started.append(target)
    session = t.session("--pid", target.pid, "-f", "json", "-o", f"{t.stem}.json")
    check(session.wait(60) == 2, f"it was taken: {session.err.seen}")
    said = session.complaint()
    check(len(said) == 1 and "does not confirm the layout" in said[0] and "rCurrentTSO at" in said[0], f"it printed {said}")
    listed = subprocess.run([os.environ.get("SAFESCOPED", BUILD / "safescoped"), "--list", "-f", "json"],
                            capture_output=True, text=True, timeout=60)
    row = [p for p in json.loads(listed.stdout)["processes"] if p["pid"] == target.pid]
    check(len(row) == 1 and row[0]["profilable"] == "no" and "does not confirm" in row[0]["why"], f"--list: {row}")
    target.go()
    target.result()


# ── a pid that is used again ──


def start_as(t, pid, command):
    """A Target with exactly this pid (clone3 with set_tid)."""
    libc = ctypes.CDLL(None, use_errno=True)
    stdin, stdout = os.pipe(), os.pipe()
    tid = ctypes.c_int(pid)
    # struct clone_args: flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid, its size, cgroup
    args = (ctypes.c_uint64 * 11)(0, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, ctypes.addressof(tid), 1, 0)
    command = [str(c) for c in command]
    got = libc.syscall(435, args, ctypes.sizeof(args))
    if got == 0:
        os.dup2(stdin[0], 0)
        os.dup2(stdout[1], 1)
        os.execv(command[0], command)
    if got < 0 and ctypes.get_errno() == errno.EEXIST:
        raise Failure(f"somebody else has pid {pid} already")
    if got < 0:
        raise Skip(f"clone3 with set_tid: {os.strerror(ctypes.get_errno())}")
    os.close(stdin[0])
    os.close(stdout[1])
    target = Target.__new__(Target)
    target.process = Child(got, os.fdopen(stdin[1], "wb", 0), os.fdopen(stdout[0], "rb", 0))
    target.pid = got
    target.lines = Lines(target.process.stdout)
    t.started.append(target)
    check(target.lines.until("ready", 30) is not None, "it ended at once")
    return target


class Child:
    """The part of Popen that a Target uses."""

    def __init__(self, pid, stdin, stdout):
        self.pid, self.stdin, self.stdout, self.code = pid, stdin, stdout, None

    def poll(self):
        if self.code is None:
            got, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if got else None
        return self.code

    def wait(self, timeout=60):
        end = time.monotonic() + timeout
        while self.poll() is None:
            check(time.monotonic() < end, f"pid {self.pid} does not end")
            time.sleep(0.01)
        return self.code

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)


@cases("host", "pid")
def test_pid_comes_again(t, how):
    """Another program gets the pid of one that has ended: nothing it does is attributed to the first."""
    first = t.target("Calls", 1, "safe_sleep_1ms=100")
    time.sleep(0.2)
    stays = t.target("Server", ready="waiting")
    if how == "host":
        session = whole_host(t)
    else:
        session = t.session("--pid", f"{first.pid},{stays.pid}", "-v", *ALWAYS, "-f", "json", "-o", f"{t.stem}.json")
        for _ in range(2):
            session.wait_attached()
    first.go()
    first.result()
    other = patched(t, "Calls", "thr", (b"safe_sleep_1ms", b"safe_sleep_1ms"))
    second = start_as(t, first.pid, [other, 1, "safe_sleep_1ms=70"])
    if how == "host":
        session.wait_attached_to(second.pid)
    second.go()
    check(second.wait() == 0, "the second failed")
    time.sleep(0.3)
    session.signal(signal.SIGINT)
    check(session.wait(60) in (0, 1), f"safescoped failed: {session.err.seen}")
    got = [x for x in t.report().json["targets"] if x["pid"] == first.pid]
    counts = [sum(c["calls"] for c in x["safe_calls"] if c["function"] == "safe_sleep_1ms") for x in got]
    check(counts == ([100, 70] if how == "host" else [100]), f"calls of the processes with that pid: {counts}")


if __name__ == "__main__":
    run(globals())
