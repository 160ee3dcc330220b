#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The service, container and pod that a process runs in: in --list, in reports, and for selection."""

import json
import os
import shutil
import subprocess
from pathlib import Path

from harness import SAFESCOPED, Skip, Target, cases, check, program, run

ID = "1f2e3d4c5b6a79880102030405060708090a0b0c0d0e0f101112131415161718"
POD = "0f9c1d2e-3a4b-5c6d-7e8f-901234567890"
KUBERNETES = f"kubepods.slice/kubepods-pod{POD.replace('-', '_')}.slice/cri-containerd-{ID}.scope"
# where: (service, container, pod)
PLACES = {"service": ("system.slice/safescoped-test.service", "safescoped-test.service", "", ""), "pod": (KUBERNETES, "", ID, POD),
          # below a user's service manager no unit is the system's
          "user": ("user.slice/user-1.slice/user@1.service/app.slice/safescoped-test.service",
                   "user@1.service/safescoped-test.service", "", ""),
          "user-pod": (f"user.slice/user-1.slice/user@1.service/{KUBERNETES}", "", f"user@1.service/{ID}", "")}


def hierarchy():
    """The host's cgroup v2 hierarchy, if we can create groups in it."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    found = [Path(where) for _, where, kind, options, *_ in mounts if kind == "cgroup2" and "rw" in options.split(",")]
    if not found or not os.access(found[0], os.W_OK):
        raise Skip("no cgroup v2 that can be written")
    return found[0]


def put_into(t, path, pid):
    made, group = [], hierarchy()
    for part in path.split("/"):
        group = group / part
        if not group.exists():
            group.mkdir()
            made.insert(0, group)
    (group / "cgroup.procs").write_text(str(pid))
    t.finally_do(lambda: [group.rmdir() for group in made])


def started(t, path):
    target = t.target("Calls", 1, "safe_sleep_1ms=100000")
    put_into(t, path, target.pid)
    target.go()
    return target


def shown(service, container, pod):
    """The place as the reports print it."""
    container = container.replace(ID, ID[:12])
    return ", ".join(words for words in (service, f"container {container}" if container else "", f"pod {pod}" if pod else "") if words)


@cases(*PLACES)
def test_place(t, which):
    path, *names = PLACES[which]
    target = started(t, path)
    done = subprocess.run([SAFESCOPED, "--cgroup", f"*/{Path(path).name}", "-d", "2", "-f", "json,text,speedscope,chrome,html",
                           "-o", t.dir / "out"], capture_output=True, text=True, timeout=120, check=False)
    check(done.returncode == 0, f"it ended with {done.returncode}: {done.stderr}")
    files = {p.name.split(".", 1)[1]: p for p in t.dir.glob("out.*")}
    report, = json.loads(files["json"].read_text())["targets"]
    check(report["pid"] == target.pid, f"another one was chosen: {report['pid']}")
    check([report["container"][key] or "" for key in ("service", "id", "pod_uid")] == names, f"{report['container']}")
    check([report[key] or "" for key in ("service", "pod")] == [names[0], names[2]], f"{report}")
    check(report["container"]["cgroup"].endswith(f"/{path}"), f"{report['container']}")
    words = shown(*names)
    check(f", {words}" in " ".join(done.stdout.split()), done.stdout[:500])
    check(json.loads(files["speedscope.json"].read_text())["name"] == f"Calls (pid {target.pid}), {words}", "speedscope")
    events = json.loads(files["trace.json"].read_text())["traceEvents"]
    labels = {event["args"]["labels"] for event in events if event["name"] == "process_labels"}
    check(labels == {words}, f"{labels}")
    check(f", {words}" in files["html"].read_text(), "html")
    listed, = [p for p in json.loads(subprocess.run([SAFESCOPED, "--list", "-f", "json"], capture_output=True, text=True, check=True)
                                     .stdout)["processes"] if p["pid"] == target.pid]
    check([listed[key] or "" for key in ("service", "container", "pod")] == names, f"{listed}")


def test_several(t):
    """The table of processes has as much of the place as fits."""
    service, pod = started(t, PLACES["service"][0]), started(t, PLACES["pod"][0])
    elsewhere = t.target("Calls", 1, "safe_sleep_1ms=100000")
    elsewhere.go()
    done = subprocess.run([SAFESCOPED, "--pid", f"{service.pid},{pod.pid},{elsewhere.pid}", "-d", "1", "-f", "text"],
                          capture_output=True, text=True, timeout=120, check=False)
    check(done.returncode == 0, f"it ended with {done.returncode}: {done.stderr}")
    for pid, where in ((service.pid, " @safescoped-test"), (pod.pid, f" @{ID[:12]}"), (elsewhere.pid, "")):
        check(any(line.split("  ")[1] == f"{pid} Calls{where}" for line in done.stdout.splitlines() if line.startswith("  ")),
              f"no row of {pid} with {where!r}: {done.stdout[:1500]}")


def test_excluded_though_replaced(t):
    """--exe and --exclude match a running executable whose file was replaced by a package upgrade."""
    path, new = t.dir / "prog", t.dir / "new"
    shutil.copy(program("Calls"), path)
    target = Target([path, "1", "safe_sleep_1ms=100000"])
    t.started.append(target)
    shutil.copy(path, new)
    new.rename(path)
    for option, wanted in (("--exe", True), ("--exclude", False)):
        value = str(path) if wanted else f"exe={path}"
        done = subprocess.run([SAFESCOPED, "--list", "-f", "json", option, value], capture_output=True, text=True, check=True)
        pids = [p["pid"] for p in json.loads(done.stdout)["processes"]]
        check((target.pid in pids) == wanted, f"{option} {value}: {pids}")


def test_excluded(t):
    target = started(t, PLACES["service"][0])
    both = subprocess.run([SAFESCOPED, "--list", "-f", "json", "--exclude", "cgroup=*/safescoped-test.service"], capture_output=True,
                          text=True, check=True).stdout
    check(target.pid not in [p["pid"] for p in json.loads(both)["processes"]], f"{both}")


if __name__ == "__main__":
    run(globals())
