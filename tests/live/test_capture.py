#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""--save and --replay: the same output again, without the process, the kernel or any privileges."""

import json
import os
import shutil
import signal
import subprocess
import time

from harness import ROOT, SAFESCOPED, cases, check, check_near, run
from test_calls import ALWAYS
from test_join import ROUNDS, Joined
from test_windows import windows

FORMATS = ("speedscope", "chrome", "folded", "pprof", "html", "json")
SUFFIXES = {"speedscope": ".speedscope.json", "chrome": ".trace.json", "folded": ".folded", "pprof": ".pb.gz", "html": ".html",
            "json": ".json"}
CALLS = (4, "safe_half_2ms=200", "safe_spin_20us=2000", "unsafe_spin_1ms=100", "safe_sleep_1ms=100")


def replay(t, capture, *options, formats=FORMATS, prefix=()):
    """Replay into t.dir/again.*: (exit code, what it printed)"""
    done = subprocess.run([*prefix, SAFESCOPED, "--replay", capture, "-f", ",".join(formats),
                           "-o", t.dir / "again", *options], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


def same(t, formats=FORMATS):
    for name in formats:
        a, b = (t.dir / (stem + SUFFIXES[name]) for stem in ("p", "again"))
        check(a.read_bytes() == b.read_bytes(), f"{name}: the replay's output differs")


def save(t, name, *args, way="thr", options=(), rts=()):
    target = t.target(name, *args, way=way, rts=("-N2", *rts) if way != "v" else ())
    session = t.attach(target, *ALWAYS, "-F", "499", "--save", t.dir / "capture", *options, formats=",".join(FORMATS))
    target.go()
    target.result()
    code = session.wait()
    check(code == 0, f"safescoped ended with {code}: {session.err.seen}")
    check(not (t.dir / "capture.partial").exists(), "capture.partial is still there")


@cases("thr", "v", "thr_p", "dyn")
def test_the_same_again(t, way):
    save(t, "Calls", *CALLS, way=way)
    code, said = replay(t, t.dir / "capture")
    check(code == 0, f"the replay ended with {code}: {said}")
    same(t)


def test_stacks_again(t):
    save(t, "Work", "alloc", 1)
    code, said = replay(t, t.dir / "capture")
    check(code == 0, f"the replay ended with {code}: {said}")
    same(t)


@cases("thr_l", "thr_p")
def test_eventlog_again(t, way):
    """The process's eventlog is in the capture: a replay works after the log was deleted."""
    joined = Joined(t, way, options=("--save", t.dir / "capture", "--lanes", "thread,capability,haskell", "-F", "499"),
                    formats=",".join(FORMATS)).to_the_end()
    (joined.outside / "own.eventlog").unlink()
    code, said = replay(t, t.dir / "capture", "--lanes", "thread,capability,haskell")
    check(code == 0, f"the replay ended with {code}: {said}")
    # What only the log contains is in the replay's report.
    again = t.report(t.dir / "again").target()
    check(again["eventlog"]["events"] == len(joined.events), f"{again['eventlog']}, the log has {len(joined.events)} events")
    check(again["eventlog"]["agreement"]["safe_calls"] is not None, f"{again['eventlog']}")
    labels = {l["label"] for l in again["lanes"] if l["kind"] == "haskell"}
    check({"caller one", "caller two", "computer"} <= labels, f"Haskell threads: {labels}")
    trace = json.loads((t.dir / "again.trace.json").read_text())["traceEvents"]
    marks = sum(1 for e in trace if e["ph"] in "iI" and e["name"].startswith("clock "))
    check(marks == ROUNDS, f"{marks} marks, should be {ROUNDS}")
    same(t)


def test_by_anybody(t):
    """A replay works without root, BPF, or the original folder."""
    save(t, "Calls", *CALLS)
    copy = t.dir / "elsewhere"
    copy.mkdir()
    shutil.copy(t.dir / "capture", copy / "x")
    shutil.copy(SAFESCOPED, copy / "safescoped")
    for path in (copy, copy / "x", copy / "safescoped"):
        os.chown(path, 65534, 65534)
    # others may have no access to the folders above
    enter = f'mount --bind "{copy}" /mnt && cd /mnt && exec setpriv --reuid 65534 --regid 65534 --clear-groups ' \
            './safescoped --replay x -f json -o again.json'
    done = subprocess.run(["unshare", "--mount", "sh", "-c", enter], capture_output=True, text=True, timeout=60)
    check(done.returncode == 0, f"it ended with {done.returncode}: {done.stderr}")
    check((copy / "again.json").read_bytes() == (t.dir / "p.json").read_bytes(), "another report")


def test_whole_host(t):
    """In a session of the whole host, with processes that come and go: the replay writes the same output, with the
    names from the time of the session."""
    session = t.session(*ALWAYS, "-f", ",".join(FORMATS), "-o", t.stem, "--save", t.dir / "capture")
    time.sleep(2)
    for _ in range(3):
        target = t.target("Calls", 1, "safe_spin_20us=500")
        target.go()
        target.result()
    time.sleep(0.3)
    session.signal(signal.SIGINT)
    code = session.wait()
    check(code in (0, 1), f"safescoped ended with {code}: {session.err.seen}")
    again, said = replay(t, t.dir / "capture")
    check(again == code, f"the replay ended with {again}: {said}")
    same(t)


def plugin(t, function):
    """A library for Plugins.hs, of the same size whatever its function's name is."""
    path = t.dir / f"{function}.so"
    done = subprocess.run(["gcc", "-O2", "-fPIC", "-shared", f"-DPLUGIN={function}", "-o", path,
                           ROOT / "tests" / "programs" / "plugins.c"], capture_output=True, text=True)
    check(done.returncode == 0, f"{function} was not compiled: {done.stderr}")
    return path


PLUGINS = ("plugin_alpha", "plugin_gamma")


def samples_of_plugins(reports):
    functions = [f for r in reports for t in r.json["targets"] for f in t["functions"]]
    return [sum(f["total_samples"] for f in functions if f["name"] == name) for name in PLUGINS]


def same_share(reports):
    alpha, gamma = samples_of_plugins(reports)
    check_near("samples of the two libraries", gamma, alpha, alpha * 0.15)
    return alpha, gamma


def test_libraries_in_one_place(t):
    """A library loaded where another one was gets its own names; in a replay and its windows, too."""
    libraries = [plugin(t, name) for name in PLUGINS]
    target = t.target("Plugins", "1200", *libraries, *libraries)
    session = t.attach(target, *ALWAYS, "-F", "499", "--save", t.dir / "capture", formats=",".join(FORMATS))
    target.go()
    places = target.result()
    check(len(set(places)) == 1, f"the libraries were not in one place: {places}")
    check(session.wait() == 0, f"{session.err.seen}")
    seen = same_share([t.report()])
    code, said = replay(t, t.dir / "capture")
    check(code == 0, f"the replay ended with {code}: {said}")
    same(t)
    (t.dir / "windows").mkdir()
    done = subprocess.run([SAFESCOPED, "--replay", t.dir / "capture", "--window", "1", "-f", "json", "-o", t.dir / "windows"],
                          capture_output=True, text=True, timeout=120)
    check(done.returncode == 0, f"the replay in windows ended with {done.returncode}: {done.stderr}")
    check(same_share(windows(t.dir / "windows")) == seen, f"other samples than {seen} in windows")


def test_killed(t):
    """The capture that a killed daemon leaves can be replayed up to where it ends."""
    target = t.target("Calls", 2, "safe_sleep_1ms=3000")
    session = t.attach(target, *ALWAYS, "--save", t.dir / "capture")
    target.go()
    time.sleep(3)
    session.signal(signal.SIGKILL)
    session.process.wait()
    check(not (t.dir / "capture").exists(), "a capture that was not finished has its final name")
    code, said = replay(t, t.dir / "capture.partial", formats=("json", "folded"))
    check(code == 1, f"the replay ended with {code}: {said}")
    check("incomplete capture" in said, f"it printed {said}")
    report = t.report(t.dir / "again").json
    duration = report["session"]["duration_ns"] / 1e9
    check(1 < duration < 4, f"{duration} s of the session are in the capture")
    (found,) = report["targets"]
    check(found["pid"] == target.pid and any("not finished" in m for m in found["missing"]), f"{found['missing']}")
    check(found["lost"] is None and set(found["cost"].values()) == {None}, f"{found['lost']} {found['cost']}")
    for lane in found["lanes"]:
        check(sum(lane["states"].values()) == lane["wall_ns"], "a lane's states do not add up")


def test_disk_full(t):
    """If the disk is full the session goes on without its capture, and the exit code reports it."""
    disk = t.dir / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24k", "tmpfs", disk], check=True)
    t.finally_do(lambda: subprocess.run(["umount", disk], check=True))
    target = t.target("Work", "alloc", 2)
    session = t.attach(target, *ALWAYS, "-F", "999", "--save", disk / "capture")
    target.go()
    target.result()
    code = session.wait()
    check(code == 1, f"exit code {code}; it printed {session.err.seen}")
    check(any("the capture ends here" in l for l in session.err.seen), f"it printed {session.err.seen}")
    check(t.report().target()["stacks"]["samples"] > 100, "the session did not go on")
    check([p.name for p in disk.iterdir()] == ["capture.partial"], f"{list(disk.iterdir())}")


def test_no_haskell_lanes(t):
    """Haskell lanes that are requested but not in the capture are reported as missing, and everything else is there."""
    for capture in ("calls", "centres"):
        path = ROOT / "tests" / "data" / "capture" / capture
        for lanes, code in (("thread,capability", 0), ("haskell", 1), ("thread,haskell", 1)):
            got, said = replay(t, path, "--lanes", lanes, formats=("json",))
            report = json.loads((t.dir / "again.json").read_text())
            target = report["targets"][0]
            missing = [m for m in target["missing"] if "lanes of Haskell threads" in m]
            check(got == code == report["session"]["exit"], f"--lanes {lanes} of {capture}: {got}: {said}")
            check(("made without --lanes haskell" in said) == bool(missing) == bool(code), f"--lanes {lanes} of {capture}: {said}{missing}")
            check(target["safe_calls"], "no safe calls")


def test_refusals(t):
    (t.dir / "text").write_text("hello\n")
    (t.dir / "busy.partial").write_text("")
    for args, code, word in (
        (("--replay", t.dir / "text"), 2, "not a capture"),
        (("--replay", t.dir / "none"), 2, "No such file"),
        (("--replay", t.dir), 2, "regular file"),
        (("--replay", t.dir / "text", "--pid", "1"), 64, "--replay: takes no"),
        (("--replay", t.dir / "text", "--save", "x"), 64, "--replay: takes no"),
        (("--replay", t.dir / "text", "--list"), 64, "one of"),
        (("--save", "", "--", "true"), 64, "empty path"),
        (("--save", t.dir / "busy", "--", "true"), 2, "already exists"),
        (("--save", t.dir / "no" / "x", "--", "true"), 2, "cannot be written"),
    ):
        done = subprocess.run([SAFESCOPED, *map(str, args), "-f", "json", "-o", t.dir / "x.json"],
                              capture_output=True, text=True, timeout=60)
        check(done.returncode == code and word in done.stderr, f"{args}: {done.returncode}, {done.stderr}")


if __name__ == "__main__":
    run(globals())
