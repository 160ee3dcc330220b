#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The process that sends what is pushed: its rights and limits, and what only it knows."""

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

from bad_server import HANG, Server
from harness import SAFESCOPED, cases, check, run
from pushed import CAPTURE, Pushed

SECRET = "Bearer 2f6c1ab0"


def children_of(pid):
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue
        if int(text.rsplit(") ", 1)[1].split()[1]) == pid:
            found += [int(stat.parent.name), *children_of(int(stat.parent.name))]
    return found


def status_of(pid):
    text = Path(f"/proc/{pid}/status").read_text()
    return {line.partition(":")[0]: line.partition(":")[2].split() for line in text.splitlines()}


def runs(pid):
    try:
        return status_of(pid)["State"][0] not in "ZX"
    except OSError:
        return False


@cases("worker", "first")
def test_rights(t, which):
    """The sending processes have no privileges. If the worker is killed, it is replaced; without the first one, which
    starts it, nothing is sent, but nothing is lost either."""
    server = Server(t, [HANG] * 100)
    pushed = Pushed(t, server.url(), wait=False)
    deadline = time.monotonic() + 60
    while not server.requests and time.monotonic() < deadline:
        time.sleep(0.1)
    senders = children_of(pushed.process.pid)
    check(len(senders) == 2, f"{len(senders)} processes")
    first, worker = senders
    for pid in senders:
        status = status_of(pid)
        check(status["Uid"][0] != "0" and len(set(status["Uid"])) == 1, f"Uid {status['Uid']}")
        check(status["Groups"] == [] and status["Gid"][0] != "0", f"Gid {status['Gid']} {status['Groups']}")
        check(all(int(status[c][0], 16) == 0 for c in ("CapPrm", "CapEff", "CapInh", "CapAmb")), f"{status}")
        check(os.getpriority(os.PRIO_PROCESS, pid) == 10, "it does not give way to others")
        check(status["NoNewPrivs"] == ["1"] and status["Seccomp"] == ["2"], "no filter")
        open_ones = {os.readlink(f) for f in Path(f"/proc/{pid}/fd").iterdir()}
        outside = [o for o in open_ones if not o.startswith(("socket:", "anon_inode:", "pipe:")) and not o.endswith(".push")]
        check(not outside, f"open are {outside}")
    os.kill(first if which == "first" else worker, 9)
    with server.lock:
        server.script.clear()
    pushed.wait()
    deadline = time.monotonic() + 10
    while any(map(runs, senders)) and time.monotonic() < deadline:
        time.sleep(0.05)
    check(not any(map(runs, senders)), "a process is left")
    if which == "worker":
        pushed.check_all(server)
        check("the sending process died" in pushed.said, pushed.said)
    else:
        check(pushed.code == 1 and pushed.queued() == pushed.windows(), f"{pushed.code}: {pushed.said}")
        check("the sending process has ended" in pushed.said, pushed.said)


NOBODY = {"user": 65534, "group": 65534, "extra_groups": []}
# many threads, as a desktop's user has
MANY_THREADS = """import os, threading
os.setresuid(65534, 65534, 65534)
for _ in range(100):
    threading.Thread(target=threading.Event().wait, args=(60,), daemon=True).start()
print("started", flush=True)
input()
"""


def test_user_with_many_processes(t):
    """An ordinary user can push, however many processes and threads of that user there are."""
    server = Server(t)
    program = t.copy_for_all(SAFESCOPED)
    capture = t.copy_for_all(CAPTURE)
    queue = program.parent / "queue"
    queue.mkdir(mode=0o700)
    os.chown(queue, NOBODY["user"], NOBODY["group"])
    with subprocess.Popen([sys.executable, "-c", MANY_THREADS], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as others:
        check(others.stdout.readline() == "started\n", "the threads did not start")
        done = subprocess.run([program, "--replay", capture, "--push", server.url(), "--push-queue", queue], cwd="/",
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False, **NOBODY)
        others.communicate("\n")
    check(done.returncode == 0 and server.taken(), f"{len(server.taken())} were delivered; {done.returncode}: {done.stderr}")


def test_user_without_another_process(t):
    """If the user may start no more processes, the one that sends cannot start its worker: that is reported."""
    server = Server(t)
    program, capture = t.copy_for_all(SAFESCOPED), t.copy_for_all(CAPTURE)
    queue = program.parent / "queue"
    queue.mkdir(mode=0o700)
    user = 64242  # of nobody else
    os.chown(queue, user, user)

    def become():
        os.setgroups([])
        os.setresgid(user, user, user)
        resource.setrlimit(resource.RLIMIT_NPROC, (2, 2))
        os.setresuid(user, user, user)

    with subprocess.Popen([program, "--replay", capture, "--push", server.url(), "--push-queue", queue], cwd="/",
                          stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=become) as process:
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
    check("the sending process cannot be started: too many processes, or too little memory; undelivered profiles are kept" in said, said)


def has_secret(pid, secret):
    """Whether it is in any memory of the process."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            where, access, *_ = line.split()
            begin, end = (int(x, 16) for x in where.split("-"))
            if access[0] != "r" or "[v" in line:
                continue
            try:
                memory.seek(begin)
                if secret in memory.read(end - begin):
                    return True
            except OSError:  # a part of a file that is not there
                pass
    return False


def test_headers_in_memory(t):
    """Only the sending processes keep the headers, which may be credentials."""
    server = Server(t, [HANG] * 100)
    file = t.dir / "headers"
    # as long as a token with claims, so that what frees it does not overwrite it by chance
    file.write_text(f"# ours\nX-Scope-OrgID: team\nAuthorization: {SECRET * 200}\n")
    pushed = Pushed(t, (server.url(), "--push-headers", file), wait=False)
    pushed.wait_until(lambda: server.requests)
    check(has_secret(children_of(pushed.process.pid)[-1], SECRET.encode()), "the sending process does not have it")
    check(not has_secret(pushed.process.pid, SECRET.encode()), "it is in the memory of the daemon")


if __name__ == "__main__":
    run(globals(), kernel=False)
