# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests ask the kernel: whether they can run here, and what is loaded."""

import json
import os
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
    """Everything of BPF in the kernel: {(kind, id)}."""
    found = set()
    for kind in ("prog", "link", "map"):
        done = subprocess.run([BPFTOOL, "-j", kind, "list"], capture_output=True, text=True)
        if done.returncode == 0 and done.stdout.strip():
            found |= {(kind, x["id"]) for x in json.loads(done.stdout)}
    return found


def bpf_objects_of(pid):
    """Those of bpf_objects() that this process and its children hold: others on the host may make some meanwhile."""
    found, pids = set(), [pid]
    for parent in pids:
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            pids += map(int, task.read_text().split())
    for info in (info for p in pids for info in Path(f"/proc/{p}/fdinfo").iterdir()):
        try:
            text = info.read_text()
        except FileNotFoundError:
            continue  # closed since
        for line in text.splitlines():
            kind, _, number = line.partition("_id:")
            if kind in ("prog", "link", "map"):
                found.add((kind, int(number)))
    return found
