# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests ask the kernel: whether they can run here, and what is loaded."""

import contextlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

BPFTOOL = shutil.which("bpftool", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") or "bpftool"


def kernel_problem():
    """Why the live tests cannot run here, or None."""
    if os.geteuid() != 0:
        return "no root"
    if not Path("/sys/kernel/btf/vmlinux").exists():
        return "the kernel has no BTF (/sys/kernel/btf/vmlinux)"
    if not Path("/sys/bus/event_source/devices/uprobe/type").exists():
        return "the kernel has no uprobes"
    try:
        done = subprocess.run([BPFTOOL, "prog", "list"], capture_output=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as e:
        return f"bpftool: {e}"
    if done.returncode != 0:
        return "the bpf system call is not allowed: " + done.stderr.decode(errors="replace").strip()
    return None


def bpf_objects():
    """All BPF objects in the kernel: {(kind, id)}."""
    found = set()
    for kind in ("prog", "link", "map"):
        done = subprocess.run([BPFTOOL, "-j", kind, "list"], capture_output=True, text=True)
        if done.returncode == 0 and done.stdout.strip():
            found |= {(kind, x["id"]) for x in json.loads(done.stdout)}
    return found


def held_by(pid):
    """The descriptors of this process and of its descendants: [(pid, number, the text of its fdinfo)]."""
    family, found = [pid], []
    for holder in family:
        process = Path(f"/proc/{holder}")
        try:
            for task in process.glob("task/*/children"):
                family += map(int, task.read_text().split())
            infos = list(process.glob("fdinfo/*"))
        except OSError:
            continue  # it has ended
        for info in infos:
            with contextlib.suppress(OSError):  # closed since
                found.append((holder, info.name, info.read_text()))
    return found


def bpf_objects_of(pid):
    """Those of bpf_objects() that this process and its descendants hold: others on the host may create some at the same
    time."""
    return {(kind, int(number)) for *_, text in held_by(pid)
            for kind, number in re.findall(r"^(prog|link|map)_id:\s*(\d+)$", text, re.M)}
