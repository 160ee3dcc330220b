#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The off file: while it exists nothing is profiled."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time

from bad_server import Server
from harness import SAFESCOPED, SLOWNESS, cases, check, run, thorough
from kernel_side import held_by
from test_windows import attach, windows


def attached(session):
    """The links and perf events that the session's processes hold: each stays attached as long as any of them holds it."""
    found = set()
    for pid, number, text in held_by(session.pid):
        found |= set(re.findall(r"^link_id:\s*(\d+)", text, re.M))
        with contextlib.suppress(OSError):  # closed since
            if "perf_event" in os.readlink(f"/proc/{pid}/fd/{number}"):
                found.add(f"event {pid} {number}")
    return found


def test_switch(t):
    """Creating the off file detaches everything within a second, even while pushes wait for a server; removing it
    attaches everything again."""
    switch = t.dir / "off"
    target = t.target("Calls", 2, "safe_sleep_1ms=30000")
    session, folder = attach(t, target, "--off-file", switch, "--push", "otlp+http://127.0.0.1:9", "--push-queue", t.dir / "queue",
                             window="0.5")
    target.go()
    time.sleep(1.5)
    now = attached(session)
    check({name.split()[0] for name in now} > {"event"}, f"attached are {now}")
    switch.write_text("")
    # a second, or more on a machine with other load
    deadline = time.monotonic() + 1.5 * SLOWNESS
    while (left := attached(session)) and time.monotonic() < deadline:
        time.sleep(0.05)
    check(not left, f"still attached: {left}")
    time.sleep(2.5)
    count = len(windows(folder))
    check(count >= 2, f"{count} windows")
    time.sleep(1.5)
    check(len(windows(folder)) == count, "windows are made while it is off")
    switch.unlink()
    session.wait_attached()
    time.sleep(2)
    check(attached(session) and len(windows(folder)) > count, "nothing came on again")
    session.signal(signal.SIGTERM)
    check(session.wait() == 0, f"safescoped ended so: {session.err.seen}")
    check(session.process.returncode == 0, "another exit code")


@cases("gone", "in the way")
def test_no_place_when_it_is_switched_on(t, how):
    """If the directory of the windows is missing when profiling is switched on again, windows are dropped until the
    directory is there again."""
    switch = t.dir / "off"
    target = t.target("Server", ready="waiting")
    session, folder = attach(t, target, "--off-file", switch, window="0.5")
    switch.write_text("")
    check(session.err.until("switched off", 30 * SLOWNESS) is not None, f"it printed {session.err.seen}")
    deadline = time.monotonic() + 60 * SLOWNESS
    while attached(session) and time.monotonic() < deadline:
        time.sleep(0.05)
    # wait for the last window of the session that was switched off
    while not windows(folder) and time.monotonic() < deadline:
        time.sleep(0.05)
    folder.rename(t.dir / "elsewhere")
    if how != "gone":
        folder.write_text("a file")
    switch.unlink()
    session.wait_attached()
    check(session.err.until("a window is not written", 30 * SLOWNESS) is not None, f"it printed {session.err.seen}")
    if how != "gone":
        folder.unlink()
    folder.mkdir()
    check(session.err.until("windows are written again", 30 * SLOWNESS) is not None, f"it printed {session.err.seen}")
    session.signal(signal.SIGTERM)
    check(session.wait() == 1 and windows(folder), f"safescoped ended so: {session.err.seen}")
    check(sum("continues; trying again" in line for line in session.err.seen) == 1, f"it printed {session.err.seen}")


def gone_when_it_is_switched_on(t, target, place, options):
    """Starts such a session and switches it off and on; meanwhile something else takes the place of `place`, a file or directory."""
    switch = t.dir / "off"
    target.go()
    session, folder = attach(t, target, "--off-file", switch, *options, window="0.5")
    switch.write_text("")
    check(session.err.until("switched off", 30 * SLOWNESS) is not None, f"it printed {session.err.seen}")
    deadline = time.monotonic() + 60 * SLOWNESS
    while not windows(folder) and time.monotonic() < deadline:
        time.sleep(0.05)
    if place.is_dir():
        shutil.rmtree(place)
        place.write_text("a file")
    else:
        place.unlink()
        place.mkdir()
    switch.unlink()
    check(session.err.until("the session continues", 30 * SLOWNESS) is not None, f"it printed {session.err.seen}")
    session.wait_attached()
    return session, folder


@cases("archives", "queue")
def test_gone_when_it_is_switched_on(t, what):
    """It goes on without the archives, and pushes again once there is a place for the queue."""
    place = t.dir / "place"
    place.mkdir(mode=0o755)
    subprocess.run(["ar", "rc", place / "libnone.a"], check=True)
    server = Server(t)
    options = ("--archives", place) if what == "archives" else ("--push", server.url(), "--push-queue", place)
    target = t.target("Calls", 2, "safe_sleep_1ms=30000")
    session, folder = gone_when_it_is_switched_on(t, target, place, options)
    deadline = time.monotonic() + 60 * SLOWNESS
    if what == "queue":
        check(session.err.until("a window is not pushed", 30 * SLOWNESS) is not None, f"it printed {session.err.seen}")
        place.unlink()
        check(session.err.until("can be read again", 30 * SLOWNESS) is not None, f"it printed {session.err.seen}")
        before = len(server.taken())
        while len(server.taken()) == before and time.monotonic() < deadline:
            time.sleep(0.1)
        check(len(server.taken()) > before, "nothing is pushed again")
    have = len(windows(folder))
    while len(windows(folder)) < have + 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    session.signal(signal.SIGTERM)
    check(session.wait() == 1, f"safescoped ended so: {session.err.seen}")
    missing = windows(folder)[-1].target(target.pid)["missing"]
    check(any("--archives" in line for line in missing) == (what == "archives"), f"missing are {missing}")


@cases("headers", "ca")
def test_push_files_gone_when_it_is_switched_on(t, what):
    """Without the files of a --push the session goes on, keeps in the queue what is to be sent, and ends like any other."""
    place, server = t.dir / "file", Server(t)
    place.write_text("X-Scope-OrgID: one\n" if what == "headers" else "-----BEGIN CERTIFICATE-----\n")
    target = t.target("Calls", 2, "safe_sleep_1ms=30000")
    session, folder = gone_when_it_is_switched_on(
        t, target, place, ("--push", server.url(), "--push-queue", t.dir / "queue", f"--push-{what}", place))
    have, before = len(windows(folder)), len(server.requests)
    deadline = time.monotonic() + 60 * SLOWNESS
    while len(windows(folder)) < have + 3 and time.monotonic() < deadline:
        time.sleep(0.1)
    session.signal(signal.SIGTERM)
    check(session.wait() == 0, f"safescoped ended so: {session.err.seen}")
    check(len(server.requests) == before, "something was sent without it")
    check(len([path for path in (t.dir / "queue").rglob("*") if path.is_file()]) >= 2, "nothing is kept")


@cases("headers", "archives")
@thorough
def test_back_after_it_was_switched_on(t, what):
    """Once the files are back a new session begins with them, and what was kept is sent."""
    place, server = t.dir / "place", Server(t)
    if what == "headers":
        place.write_text("X-Scope-OrgID: one\n")
        options = ("--push", server.url(), "--push-queue", t.dir / "queue", "--push-headers", place)
    else:
        place.mkdir()
        subprocess.run(["ar", "rc", place / "libnone.a"], check=True)
        options = ("--archives", place)
    target = t.target("Calls", 2, "safe_sleep_1ms=120000")
    session, folder = gone_when_it_is_switched_on(t, target, place, options)
    if what == "headers":
        place.rmdir()
        place.write_text("X-Scope-OrgID: two\n")
    else:
        place.unlink()
        place.mkdir()
        subprocess.run(["ar", "rc", place / "libnone.a"], check=True)
    check(session.err.until("had to do without is available again", 90 * SLOWNESS) is not None, f"it printed {session.err.seen}")
    session.wait_attached()
    have, before = len(windows(folder)), len(server.requests)
    deadline = time.monotonic() + 60 * SLOWNESS
    while len(windows(folder)) < have + 3 and time.monotonic() < deadline:
        time.sleep(0.1)
    session.signal(signal.SIGTERM)
    check(session.wait() in (0, 1), f"safescoped ended so: {session.err.seen}")
    if what == "headers":
        check({request.headers["x-scope-orgid"] for request in server.requests[before:]} == {"two"}, "nothing is sent again")
        check(not [path for path in (t.dir / "queue").rglob("*-*") if path.is_file()], "something is still kept")
    else:
        missing = windows(folder)[-1].target(target.pid)["missing"]
        check(not any("--archives" in line for line in missing), f"missing are {missing}")


@cases("before", "meanwhile")
def test_switched_off_beside_a_command(t, when):
    """The command runs on while profiling is switched off, and its exit status is still ours."""
    switch = t.dir / "off"
    if when == "before":
        switch.write_text("")
    process = subprocess.Popen([SAFESCOPED, "--off-file", switch, "--propagate-exit", "-f", "json", "-o", t.dir / "x.json", "--",
                                "/bin/sh", "-c", f"sleep 2; date > {t.dir / 'ran'}; exit 7"], stderr=subprocess.PIPE, text=True)
    t.finally_do(process.kill)
    time.sleep(0.5)
    switch.write_text("")
    _, said = process.communicate(timeout=60)
    check((t.dir / "ran").exists(), f"the command was not waited for: {said}")
    check(process.returncode == 7 and "switched off" in said, f"it ended with {process.returncode}: {said}")


def ended_by_the_file(t, session):
    code = session.wait()
    check(code == 1, f"it ended with {code}: {session.err.seen}")
    report = t.report()
    check(report.json["session"]["exit"] == 1, f"the report has {report.json['session']}")
    return report


def test_switched_off_before_a_process_is_attached(t):
    """With the file there from the start no probe is put into the processes of --pid."""
    switch, target = t.dir / "off", t.target("Calls", 1, "safe_sleep_1ms=1000000")
    target.go()
    switch.write_text("")
    report = ended_by_the_file(t, t.session("--pid", target.pid, "-d", "60", "-f", "json", "-o", t.stem, "--off-file", switch))
    check(not report.json["targets"], f"it was profiled: {report.json['targets']}")


def test_why_a_session_is_short(t):
    """A session that the file ended has that among what is missing, in the report for people and in that for programs."""
    switch, target = t.dir / "off", t.target("Calls", 1, "safe_sleep_1ms=1000000")
    session = t.attach(target, "-d", "60", "--off-file", switch, formats="json,text")
    target.go()
    switch.write_text("")
    missing = ended_by_the_file(t, session).target()["missing"]
    check(any(str(switch) in line for line in missing), f"missing has {missing}")
    text = "".join(session.out.seen).partition("Missing")[2]
    check(switch.name in text, f"the text has {session.out.seen}")


def test_one_has_ended_when_it_is_switched_on(t):
    """If one of the processes of --pid has ended when profiling is switched on again, the others are profiled."""
    switch, targets = t.dir / "off", [t.target("Calls", 60, "safe_sleep_1ms=1000000") for _ in range(2)]
    for target in targets:
        target.go()
    session = t.session("--pid", ",".join(str(target.pid) for target in targets), "--off-file", switch, "--window", "0.5",
                        "-f", "json", "-o", t.dir)

    def begins(pids):
        deadline, have = time.monotonic() + 60 * SLOWNESS, len(windows(t.dir))
        while not any({x["pid"] for x in w.json["targets"]} == pids for w in windows(t.dir)[have:]):
            check(time.monotonic() < deadline and session.process.poll() is None, f"no windows of {pids}: {session.err.seen}")
            time.sleep(0.1)

    begins({target.pid for target in targets})
    switch.write_text("")
    check(session.err.until("switched off", 30) is not None, f"it printed {session.err.seen}")
    targets[0].kill()
    switch.unlink()
    begins({targets[1].pid})
    session.signal(signal.SIGTERM)
    check(session.wait() in (0, 1), f"it printed {session.err.seen}")


def test_switched_off_for_its_duration(t):
    """Time while switched off counts for -d: the session ends although the file is still there."""
    switch = t.dir / "off"
    switch.write_text("")
    done = subprocess.run([SAFESCOPED, "--off-file", switch, "--window", "1", "-d", "1", "-f", "json", "-o", t.dir],
                          capture_output=True, text=True, timeout=60, check=False)
    check(done.returncode == 1 and str(switch) in done.stderr, f"it ended with {done.returncode}: {done.stderr}")
    check(os.listdir(t.dir) == ["off"], f"it wrote {os.listdir(t.dir)}")


if __name__ == "__main__":
    run(globals())
