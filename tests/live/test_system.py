#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""safescoped without --pid: every GHC process of the host, including those that start and end during the session."""

import contextlib
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import test_kinds
from harness import SAFESCOPED, SLOWNESS, Skip, Target, cases, check, enter_root, program, run, thorough
from kernel_side import BPFTOOL, held_by

ALWAYS = ("--max-overhead", "1000", "-v")


def whole_host(t, *options):
    session = t.session(*ALWAYS, "-f", "json", "-o", f"{t.stem}.json", *options)
    line = session.err.until("processes", 60)
    check(line is not None, f"safescoped did not begin: {session.err.seen}")
    return session


def stop(session):
    session.signal(signal.SIGINT)
    code = session.wait(60)
    check(code in (0, 1), f"safescoped ended with {code}: {session.err.seen}")


def ended(t, *args, way="thr", wait=0.0):
    """Run a program to its end: (pid, the calls that it counted itself)."""
    target = Target([program(args[0], way), *map(str, args[1:])])
    t.started.append(target)
    time.sleep(wait)
    target.go()
    return target.pid, target.result()


def compare(report, pid, truth):
    for function, want in truth.items():
        if function.startswith("unsafe"):
            continue
        got = report.call(function, pid)["calls"]
        check(got == want["calls"], f"pid {pid}: {function}: {got} calls, the program made {want['calls']}")


def test_nobody(t):
    """If no process has the name, no profile is written, as viewers would show nothing; the formats for programs are
    written without targets."""
    formats = ("speedscope", "folded", "pprof", "chrome", "html", "json", "text")
    done = subprocess.run([SAFESCOPED, "--comm", "no-such-name", "-d", "0.2", "-f", ",".join(formats), "-o", t.stem],
                          capture_output=True, text=True, timeout=60, check=False)
    check(done.returncode == 1, f"ended with {done.returncode}: {done.stderr}")
    check("nothing was profiled" in done.stderr and "no Haskell process" in done.stdout, f"{done.stderr}; {done.stdout}")
    check(done.stderr.count("not written") == len(formats) - 2, done.stderr)
    check(sorted(f.name for f in t.dir.iterdir() if f.name.startswith(t.stem.name)) == ["p.json"],
          f"{list(t.dir.iterdir())}")
    check(t.report().json["targets"] == [], f"{t.report().json}")


def test_ten_mixed(t):
    """Some processes run before the session, some start and end during it, some are still there at its end."""
    ways = ("thr", "v", "thr_p", "p", "dyn")
    early = [t.target("Calls", 2, "safe_sleep_1ms=400", way=w) for w in ways]
    servers = [t.target("Server", ready="waiting")]
    session = whole_host(t)
    late = []
    for w in ways:
        target = t.target("Calls", 1, "safe_spin_20us=1000", "safe_sleep_1ms=200", way=w)
        late.append(target)
    servers.append(t.target("Server", ready="waiting", way="dyn"))
    time.sleep(1)
    for target in early + late:
        target.go()
    truths = {target.pid: target.result() for target in early + late}
    # The same programs again, as other processes.
    for w in ways:
        pid, truth = ended(t, "Calls", 1, "safe_sleep_1ms=100", way=w)
        truths[pid] = truth
    stop(session)
    report = t.report()
    check(report.json["session"]["mode"] == "system", f"mode is {report.json['session']['mode']}")
    for pid, truth in truths.items():
        compare(report, pid, truth)
    for server in servers:
        check(report.target(server.pid)["lanes"], f"no lanes of pid {server.pid}")
    for target in report.json["targets"]:
        for lane in target["lanes"]:
            check(sum(lane["states"].values()) == lane["wall_ns"], f"a lane of pid {target['pid']} does not add up")


def ghc_roots():
    """The roots that scripts/ghc-root has made: another GHC each, with the test programs."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "safescoped"
    return [cache / suite / "root" for suite in ("trixie", "sid")
            if (cache / suite / "root" / "programs" / "thr.stripped" / "Calls").exists()]


def test_versions_mixed(t):
    """About ten programs of several GHCs at the same time: stripped and not, static, dynamic, embedded, in containers."""
    plan = ["1", "safe_spin_20us=300", "safe_sleep_1ms=200"]
    commands = {f"here {way}": [program("Calls", way), *plan] for way in ("thr", "v", "p", "dyn")}
    commands["static"] = [test_kinds.of_kind("static_stripped", "Calls"), *plan]
    commands["eventlog"] = [test_kinds.of_kind("eventlog", "Calls"), *plan]
    commands["embedded"] = [program("loader.c"), test_kinds.library(), "200", "50"]
    roots = ghc_roots()
    for root in roots:
        for way in ("thr.stripped", "v.stripped", "dyn"):
            commands[f"{root.parent.name} {way}"] = enter_root([Path("/programs") / way / "Calls", *plan], root)
    started = []

    def start(name):
        started.append(Target(commands[name]))
        t.started.append(started[-1])
        return started[-1]

    def work(target, name):
        target.go()
        if name == "embedded":
            target.wait_for("loaded")
            time.sleep(0.3)
            target.go()

    order = list(commands)
    early = {name: start(name) for name in order[::2]}
    session = whole_host(t)
    running = {**early, **{name: start(name) for name in order[1::2]}}
    time.sleep(1.5)
    for name, target in running.items():
        work(target, name)
    for target in running.values():
        target.result()
    # and some that start when all the others have ended
    for name in order[-3:]:
        target = start(name)
        time.sleep(0.5)
        work(target, name)
        target.result()
    stop(session)
    report = t.report()
    versions = []
    for target in started:
        lives = [x for x in report.json["targets"] if x["pid"] == target.pid]
        check(len(lives) == 1, f"pid {target.pid} is there as {[(x['comm'], x['exe'], x['end']) for x in lives]}")
        got = lives[0]
        versions.append(got["ghc"])
        check(got["ghc"]["layout_checked"], f"pid {target.pid}: not checked: {got['ghc']}")
        counts = [c["calls"] for c in got["safe_calls"]]
        # Without symbols the function's name is not known, but the program calls no other one exactly as often.
        check(200 in counts, f"pid {target.pid} ({got['ghc']}): no function was called 200 times: {counts}")
    check(len({g["version"] for g in versions}) == 1 + len(roots), f"versions: {versions}, roots: {roots}")
    check({"rts_thr", "rts_v", "rts_p", "rts_thr_l"} <= {g["way"] for g in versions}, f"ways: {versions}")


@cases("thr", "v", "p", "dyn")
def test_short_programs_from_their_start(t, way):
    """A program that was seen before is covered from its first instruction."""
    session = whole_host(t)
    ended(t, "Calls", 1, "safe_sleep_1ms=10", way=way, wait=0.5 * min(SLOWNESS, 4))
    truths = dict(ended(t, "Calls", 1, "safe_spin_20us=2000", "safe_sleep_1ms=100", way=way) for _ in range(3))
    stop(session)
    report = t.report()
    for pid, truth in truths.items():
        compare(report, pid, truth)


def test_new_program_within_a_second(t):
    """A program that is new to the host is attached within half a second of its exec."""
    new = t.dir / "New"
    shutil.copy(program("Calls", "thr"), new)
    session = whole_host(t)
    target = Target([new, "1", "safe_sleep_1ms=300"], ready=None)
    t.started.append(target)
    target.go()
    truth = target.result()
    stop(session)
    got = t.report().call("safe_sleep_1ms", target.pid)["calls"]
    check(got >= truth["safe_sleep_1ms"]["calls"] - 100, f"only {got} of 300 calls")
    check(t.report().target(target.pid)["attach_ns"] < 500e6,
          f"attached after {t.report().target(target.pid)['attach_ns']} ns")


@cases("selected", "all")
def test_those_that_were_missed(t, which):
    """If the first processes of a new program end before it is known, they are counted as missed."""
    new = t.dir / f"m{os.getpid()}"
    shutil.copy(program("Calls", "thr"), new)
    session = whole_host(t, *(("--comm", new.name) if which == "selected" else ()))
    started = []
    for i in range(30):
        # without arguments it ends at once; by the last ones the program is known
        with subprocess.Popen([new], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as one:
            started.append(one.pid)
        time.sleep(0.3 if i > 26 else 0)
    stop(session)
    targets = [x for x in t.report().json["targets"] if x["pid"] in started]
    missed = [int(found.group(1)) for m in targets[0]["missing"] if (found := re.match(r"(\d+) processes of profiled programs", m))]
    check(len(targets) + sum(missed) >= len(started), f"{len(started)} were started, {len(targets)} profiled, {missed} missed")
    check(which != "selected" or len(targets) + sum(missed) == len(started), f"{len(targets)} profiled, {missed} missed")


def test_exec(t):
    """After an exec a process is a new target if it is Haskell, and none if it is not."""
    session = whole_host(t)
    target = t.target("Forky", "self", 20)
    time.sleep(0.5 * min(SLOWNESS, 4))
    target.go()
    target.wait_for("ready")
    time.sleep(0.5 * min(SLOWNESS, 4))
    target.go()
    check(target.wait() == 0, "it failed")
    other = t.target("Forky", "exec", 20)
    time.sleep(0.5 * min(SLOWNESS, 4))
    other.go()
    check(other.wait() == 0, "the other failed")
    stop(session)
    report = t.report().json
    lives = [x for x in report["targets"] if x["pid"] == target.pid]
    calls = [sum(c["calls"] for c in x["safe_calls"] if c["function"] == "forky_fork_1ms") for x in lives]
    check(calls[:1] == [20] and len(calls) == 2 and calls[1] >= 20, f"calls of its lives: {calls}")
    once = [x for x in report["targets"] if x["pid"] == other.pid]
    check(len(once) == 1, f"{len(once)} targets of the one that became another program")
    name = [lane["name"] for lane in once[0]["lanes"] if lane["kind"] == "thread" and lane["tid"] == other.pid]
    check(name == ["Forky"], f"its first thread is named {name}")
    calls = sum(c["calls"] for c in once[0]["safe_calls"] if c["function"] == "forky_fork_1ms")
    check(calls == 20, f"{calls} calls before the exec")
    check(sum(c["calls"] for c in once[0]["safe_calls"] if c["function"] == "forky_short") == 2000, "the short calls")
    # its own call, and those of the threads that the exec ended: half a second each
    for function, n, seconds in (("forky_exec", 1, 0), ("forky_sleep", 3, 1.5)):
        open_calls = [c for c in once[0]["safe_calls"] if c["function"] == function]
        check([(c["calls"], c["open_at_end"], c["abandoned"]) for c in open_calls] == [(0, n, 0)], f"{function}: {open_calls}")
        wall = open_calls[0]["open_wall_ns"] / 1e9
        check(seconds * 0.98 <= wall <= seconds + n * min(SLOWNESS, 4), f"{function}: open for {wall} s")
    short = [lane["short_calls"] for lane in once[0]["lanes"] if lane["kind"] == "thread"]
    check(sum(short) >= 1900, f"{short} of its 2000 short calls are its threads'")


def test_exec_by_another(t):
    """A Haskell program execs a shell, which execs another, already known Haskell program before user space has looked:
    its calls are attributed to nobody else.
    """
    session = whole_host(t)
    for _ in range(2):
        ended(t, "Calls", 1, "safe_sleep_1ms=20", wait=0.5)
    target = Target([program("Forky"), "shell", "20"], env={"FORKY_NEXT": f"{program('Calls')} 1 safe_spin_20us=3000 safe_sleep_1ms=2000"})
    t.started.append(target)
    check(session.err.until(f"attached: pid {target.pid}", 30) is not None, f"{session.err.seen}")
    # shorter than the time after which the probes come off
    session.signal(signal.SIGSTOP)
    target.go()
    target.wait_for("ready")
    target.go()
    time.sleep(0.3)
    session.signal(signal.SIGCONT)
    truth = target.result()
    stop(session)
    report = t.report().json
    lives = [x for x in report["targets"] if x["pid"] == target.pid]
    check(len(lives) == 2, f"{len(lives)} lives of the process")
    first, second = ([(c["function"], c["calls"]) for c in x["safe_calls"]] for x in lives)
    check(("forky_fork_1ms", 20) in first and sum(n for _, n in first) <= 30, f"of the first one: {first}")
    for function in truth:
        check(sum(n for name, n in second if name == function) <= truth[function]["calls"], f"of the second one: {second}")


def test_children_of_a_fork_inherit_breakpoints(t):
    """Children of a fork inherit the breakpoints: only the parent's calls are counted, and the children survive."""
    session = whole_host(t)
    target = t.target("Forky", "fork", 50)
    time.sleep(0.5)
    target.go()
    truth = target.result()
    stop(session)
    compare(t.report(), target.pid, truth)


def test_one_that_fails_stops_nobody(t):
    """A program that looks like Haskell but is not fails alone: the others are profiled."""
    source = t.dir / "fake.c"
    source.write_text('#include <stdio.h>\n#include <unistd.h>\n'
                      'const char *way[] = {"rts_thr", "RTS way"};\n'
                      'void suspendThread(void) {}\n'
                      'int main(void) { printf("9.0.2"); printf("    (GHC version %s for %s)\\n\\n" + 0, way[0], way[1]);'
                      ' puts("ready"); fflush(stdout); suspendThread(); sleep(60); }\n')
    subprocess.run(["gcc", "-O1", "-o", t.dir / "fake", source], check=True)
    fake = Target([t.dir / "fake"])
    t.started.append(fake)
    target = t.target("Calls", 1, "safe_sleep_1ms=100")
    session = whole_host(t)
    again = Target([t.dir / "fake"])
    t.started.append(again)
    target.go()
    truth = target.result()
    pid, truth2 = ended(t, "Calls", 1, "safe_sleep_1ms=100", wait=0.5)
    stop(session)
    report = t.report()
    compare(report, target.pid, truth)
    compare(report, pid, truth2)
    check(fake.process.poll() is None, "the process that was refused did not survive")


def test_pid_and_mount_namespace(t):
    """A program in its own PID and mount namespaces, as in a container, where it has another path."""
    root = t.dir / "root"
    root.mkdir()
    script = (f"mount --bind {t.dir} /mnt && cp {program('Calls', 'thr')} /mnt/inside && mount -t tmpfs tmpfs /tmp && "
              "cp /mnt/inside /tmp/Inside && exec /tmp/Inside 1 safe_sleep_1ms=200")
    session = whole_host(t)
    target = Target(["unshare", "-pfm", "--kill-child", "--mount-proc", "sh", "-c", script])
    t.started.append(target)
    time.sleep(0.5)
    target.go()
    truth = target.result()
    stop(session)
    inside = [x for x in t.report().json["targets"] if x["comm"] == "Inside"]
    check(len(inside) == 1 and inside[0]["ns_pid"] == 1, f"not one target with pid 1 inside: {len(inside)}")
    check(inside[0]["exe"] == "/tmp/Inside", f"its path is {inside[0]['exe']}")
    compare(t.report(), inside[0]["pid"], truth)


def containers(t, n, *files):
    """Start n containers of one image that has these files, as overlays in the host's mount namespace; return their
    root folders."""
    image = t.dir / "image"
    image.mkdir()
    for file in files:
        shutil.copy(file, image)
    merged = []
    for i in range(n):
        own = t.dir / f"container{i}"
        for part in ("upper", "work", "merged"):
            (own / part).mkdir(parents=True)
        options = f"lowerdir={image},upperdir={own}/upper,workdir={own}/work"
        done = subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, own / "merged"], capture_output=True, text=True)
        if done.returncode:
            raise Skip(f"no overlay can be mounted: {done.stderr.strip()}")
        t.finally_do(lambda own=own: subprocess.run(["umount", "-l", own / "merged"], check=True))
        merged.append(own / "merged")
    return merged


CALLS = ("2", "safe_sleep_1ms=300", "safe_spin_20us=500")


def counted_once(t, *begin):
    """Each function starts a process of CALLS, once before a session of the host and once during it: each call is
    counted exactly once."""
    targets = []
    session = None
    for _ in range(2):
        for b in begin:
            targets.append(b())
            t.started.append(targets[-1])
        session = session or whole_host(t)
    time.sleep(1)
    for target in targets:
        target.go()
    truths = {target.pid: target.result() for target in targets}
    stop(session)
    report = t.report()
    for i, (pid, truth) in enumerate(truths.items()):
        compare(report, pid, truth)
        made = sum(want["calls"] for want in truth.values())
        for call in report.target(pid)["safe_calls"]:
            if call["function"] in truth:
                # a process that starts during the session may make calls before it has its own probes
                check(not call["abandoned"] and (call["exact"] or i >= len(begin)), f"pid {pid}: {call}")
        # two hits per call, plus those of collections
        hits = report.target(pid)["cost"]["probe_hits"]
        check(2 * made <= hits < 3 * made, f"pid {pid}: {hits} hits of probes for {made} calls")


def test_containers_of_one_image(t):
    """The containers share one file, below their overlays: each call hits one pair of probes, both in processes that
    run before the session and in those that start during it."""
    counted_once(t, *(functools.partial(Target, [folder / "Calls", *CALLS]) for folder in containers(t, 2, program("Calls"))))


def test_image_of_a_container(t):
    """As above, while the same file is also run on the host, by its path in the image."""
    paths = (*containers(t, 1, program("Calls")), t.dir / "image")
    counted_once(t, *(functools.partial(Target, [path / "Calls", *CALLS]) for path in paths))


def test_program_of_another_user(t):
    """The file's owner and root both run it: the owner's probes are for all processes of the file, root's process has
    its own."""
    if not shutil.which("setpriv"):
        raise Skip("no setpriv")
    path = t.copy_for_all(program("Calls"), "/var/tmp")
    os.chown(path, 65534, 65534)
    as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    counted_once(t, *(functools.partial(Target, [*who, path, *CALLS]) for who in (as_nobody, [])))


def test_budget_of_a_shared_program(t):
    """If one process makes too many calls, the probes come off for all processes of the file, and come back after it
    has ended."""
    busy = t.target("Calls", 1, "safe_spin_5us=100000")
    calm = t.target("Calls", 1, "safe_sleep_1ms=5000")
    session = t.session("-v", "--max-overhead", "0.5", "-f", "json", "-o", f"{t.stem}.json")
    check(session.err.until("processes", 60) is not None, f"safescoped did not begin: {session.err.seen}")
    busy.go()
    busy.result()
    calm.go()
    calm.result()
    stop(session)
    said = [l for l in session.err.seen if "cannot switch" in l]
    check(not said, f"the probes did not come on again: {said[:2]}")
    report = t.report()
    call = report.call("safe_spin_5us", busy.pid)
    check(not call["exact"] and 0 < call["calls"] < 100000, f"of the busy one: {call['calls']} calls, exact {call['exact']}")
    call = report.call("safe_sleep_1ms", calm.pid)
    check(0 < call["calls"] <= 5000, f"of the calm one: {call['calls']} calls")
    abandoned = sum(c["abandoned"] for x in report.json["targets"] for c in x["safe_calls"]
                    if x["pid"] in (busy.pid, calm.pid) and c["function"].startswith("safe_"))
    check(abandoned <= 40, f"{abandoned} calls without an end: the two probes did not come and go as one")


def test_output_has_no_name_of_a_process(t):
    session = t.session("-d", "0.3", "-f", "json", prefix=("env", "-C", t.dir))
    check(session.wait(60) in (0, 1), f"it printed {session.err.seen}")
    names = [p.name for p in t.dir.iterdir()]
    check(len(names) == 1 and re.fullmatch(r"safescope-\d{8}-\d{6}\.json", names[0]), f"the files are {names}")


@cases("live", "replay")
def test_names_of_several(t, how):
    """The files of several processes, of a session or of its replay, do not have the name of the first one."""
    targets = [t.target("Calls", 1, "safe_sleep_1ms=1000000") for _ in range(2)]
    for target in targets:
        target.go()
    folder, capture = t.dir / "out", t.dir / "capture"
    folder.mkdir()
    session = t.session("--pid", ",".join(str(target.pid) for target in targets), "-d", "0.5", "-f", "json",
                        "-o", folder if how == "live" else t.stem, "--save", capture)
    check(session.wait() in (0, 1), f"it printed {session.err.seen}")
    if how == "replay":
        subprocess.run([SAFESCOPED, "--replay", capture, "-q", "-f", "json", "-o", folder], check=False, timeout=60)
    names = [path.name for path in folder.iterdir()]
    check(len(names) == 1 and re.fullmatch(r"safescope-\d{8}-\d{6}\.json", names[0]), f"the files are {names}")


def test_many(t):
    """A hundred targets are attached within 10 s, and the session ends within 10 s: a wide margin, for a busy machine."""
    targets = [Target([program("Calls", "thr"), "1", "safe_sleep_1ms=5"], ready=None) for _ in range(100)]
    t.started.extend(targets)
    for target in targets:
        target.wait_for("ready", 120)
    begun = time.monotonic()
    session = whole_host(t)
    attached = time.monotonic() - begun
    for target in targets:
        target.go()
    truths = {target.pid: target.result() for target in targets}
    begun = time.monotonic()
    stop(session)
    detached = time.monotonic() - begun
    report = t.report()
    for pid, truth in truths.items():
        compare(report, pid, truth)
    print(f"  a hundred targets: attached in {attached:.2f} s, ended in {detached:.2f} s", flush=True)
    check(attached < 10, f"attaching took {attached:.1f} s")
    check(detached < 10, f"ending took {detached:.1f} s")


def storm(command, a_second, seconds):
    """Start `a_second` programs per second and let each run to its end: {pid: the calls that it counted}."""
    begun, started = time.monotonic(), []
    for i in range(int(a_second * seconds)):
        time.sleep(max(0, begun + i / a_second - time.monotonic()))
        process = subprocess.Popen([str(c) for c in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        process.stdin.write("go\n")
        process.stdin.flush()
        started.append(process)
    truths = {}
    for process in started:
        out, _ = process.communicate(timeout=120)
        check(process.returncode == 0, f"a program of the storm ended with {process.returncode}")
        truths[process.pid] = json.loads(out.splitlines()[-1])
    return truths


def test_storm(t):
    """Two hundred targets, and twenty short programs a second: every call is counted, each target has its cost, and the
    number of programs that ended before the daemon could look at them is reported."""
    own = t.dir / "storm"
    shutil.copy(program("Calls", "thr"), own)
    targets = [Target([own, "1", "safe_sleep_1ms=5"], ready=None) for _ in range(200)]
    t.started.extend(targets)
    for target in targets:
        target.wait_for("ready", 120)
    session = whole_host(t, "--comm", "storm")
    truths = storm([own, "1", "safe_sleep_1ms=20", "safe_sleep_20ms=8"], 20, 5)
    for target in targets:
        target.go()
    truths |= {target.pid: target.result() for target in targets}
    session.signal(signal.SIGINT)
    code = session.wait(120)
    check(code == 0, f"safescoped ended with {code}: {session.err.seen[-5:]}")
    report = t.report()
    seen = {x["pid"] for x in report.json["targets"]}
    missed = [int(text.split()[0]) for text in report.json["targets"][0]["missing"] if "ended before they could be inspected" in text]
    check(seen <= truths.keys() and len(seen) + sum(missed) == len(truths) and len(seen) >= 250,
          f"{len(seen)} targets of {len(truths)}, missed by the report: {missed}")
    for pid in seen:
        truth = truths[pid]
        compare(report, pid, truth)
        cost = report.target(pid)["cost"]
        check(cost and cost["probe_hits"] >= 2 * truth["safe_sleep_1ms"]["calls"] and cost["trap_ns_estimated"] > 0,
              f"pid {pid} has no cost of its own: {cost}")


def maps_of(session, names=("targets", "threads", "costs", "heaps", "off_stacks", "unwind_maps", "family", "open_at_start")):
    """{name: id} of the session's maps; by default of those that have an entry per process or thread."""
    found = {}
    for _, _, info in held_by(session.pid):
        if number := re.search(r"^map_id:\s+(\d+)", info, re.M):
            shown = json.loads(subprocess.run([BPFTOOL, "-j", "map", "show", "id", number.group(1)], capture_output=True, text=True,
                                              check=True).stdout)
            found[shown.get("name")] = int(number.group(1))
    return {name: found[name] for name in names}


def dump(number):
    return json.loads(subprocess.run([BPFTOOL, "-j", "map", "dump", "id", str(number)], capture_output=True, text=True, check=True).stdout)


def entries(number):
    return len(dump(number))


@thorough
def test_storm_leaves_nothing(t):
    """What the kernel side keeps of a program is removed with it: a daemon must survive millions of them. (If a thread
    ends at the very moment when its call is entered, that call's entry may stay until there are many.)"""
    own = t.dir / "short"
    shutil.copy(program("Work", "thr"), own)
    session = whole_host(t, "--comm", "short")
    maps = maps_of(session)
    storm([own, "alloc", "0.2"], 20, 5)
    deadline = time.monotonic() + 20 * SLOWNESS
    while any((left := {name: entries(number) for name, number in maps.items()}).values()) and time.monotonic() < deadline:
        time.sleep(1)
    calls = left.pop("open_at_start")
    stop(session)
    check(len(t.report().json["targets"]) > 20, f"only {len(t.report().json['targets'])} programs were seen")
    routine = [line for line in session.err.seen if "still running" in line]
    check(not routine, f"the ends of short programs must not be logged: {routine}")
    check(not any(left.values()) and calls <= 2, f"left of programs that have ended: {left}, and {calls} calls")


def test_removed_program_is_let_go(t):
    """Nothing holds a file that was removed while its program ran, once the program has ended: it is not kept for a
    next process, as there cannot be one."""
    own = t.dir / "removed"
    shutil.copy(program("Calls", "thr"), own)
    session = whole_host(t, "--comm", "removed")
    target = Target([own, "1", "safe_sleep_1ms=20"])
    t.started.append(target)
    time.sleep(1 * min(SLOWNESS, 4))
    held = files_held(session, own)
    own.unlink()
    target.go()
    truth = target.result()
    deadline = time.monotonic() + 20 * SLOWNESS
    while (left := files_held(session, own)) and time.monotonic() < deadline:
        time.sleep(0.5)
    stop(session)
    compare(t.report(), target.pid, truth)
    check(held, "the program's file was not open: the test proves nothing")
    check(not left, f"{left} descriptors of a file that was removed are left")


def test_begins_while_the_probes_are_off(t):
    """A program that begins while the probes are off, because safescoped was held up, and is attached when they are on
    again: its counts are not called exact."""
    own = t.dir / "begins"
    shutil.copy(program("Calls"), own)
    first = Target([own, "1", "safe_sleep_1ms=1"])
    t.started.append(first)
    session = whole_host(t, "--comm", "begins")
    session.signal(signal.SIGSTOP)
    time.sleep(2.5 * SLOWNESS)
    session.signal(signal.SIGCONT)
    check(session.err.until("held up for", 30), f"the probes stayed on: {session.err.seen}")
    # they stay off for a second; safescoped does not turn until that is over, but is not held up again
    time.sleep(0.4)
    session.signal(signal.SIGSTOP)
    second = Target([own, "1", "safe_sleep_1ms=1500"])
    t.started.append(second)
    second.go()
    time.sleep(1)
    session.signal(signal.SIGCONT)
    truth = second.result()["safe_sleep_1ms"]["calls"]
    stop(session)
    report = t.report()
    got = report.call("safe_sleep_1ms", second.pid)
    check(0 < got["calls"] < truth, f"{got['calls']} calls of {truth} were seen: the test proves nothing")
    check(not got["exact"], f"{got['calls']} calls of {truth} are exact")
    lacking = [m for m in report.target(second.pid)["missing"] if "before its probes were in place" in m]
    check(len(lacking) == 1, f"not reported: {report.target(second.pid)['missing']}")


def files_held(session, path):
    held = 0
    for fd in Path(f"/proc/{session.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            held += os.readlink(fd).startswith(str(path))
    return held


def test_nothing_is_left(t):
    target = t.target("Server", ready="waiting")
    session = whole_host(t)
    stop(session)
    check(target.process.poll() is None, "the target did not survive")
    again = t.session("--pid", target.pid, "-d", "0.3", "-f", "json", "-o", t.dir / "q.json")
    check(again.wait(60) == 0, f"it cannot be attached any more: {again.err.seen}")


if __name__ == "__main__":
    run(globals())
