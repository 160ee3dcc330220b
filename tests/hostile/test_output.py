#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Files that root writes where others may put links, and writes that fail: nothing of root's is
written elsewhere, and nothing is left."""

import os
import shutil
import subprocess

from hostile import NOBODY, OUT
from harness import SAFESCOPED, ROOT, Skip, cases, check, program, run

# A session that was kept: its formats need neither a kernel nor a process.
CAPTURE = ROOT / "tests" / "data" / "capture" / "calls"


def write(*args, prefix=(), timeout=60):
    done = subprocess.run([*map(str, prefix), str(SAFESCOPED), *map(str, args)], capture_output=True, text=True,
                          timeout=timeout)
    return done.returncode, done.stderr


def all_below(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


def sticky(t):
    """(a folder as /tmp is, a folder of root's alone, with what was there before)"""
    shared, private = (OUT / f"{t.name}-{kind}" for kind in ("shared", "private"))
    for folder in shared, private:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    shared.chmod(0o1777)
    private.chmod(0o700)
    return shared, private


def attacker_links(target, path):
    os.symlink(target, path)
    os.lchown(path, NOBODY, NOBODY)


@cases("last", "middle", "behind ours", "directory", "save")
def test_link_of_another_user(t, case):
    shared, private = sticky(t)
    (private / "in").mkdir()
    attacker_links(private, shared / "out")
    os.symlink("out", shared / "ours")
    path = {"last": "out/x.json", "middle": "out/in/x.json", "behind ours": "ours/x.json", "directory": "out/",
            "save": "out/x"}[case]
    if case == "save":
        code, said = write("--save", shared / path, "-f", "json", "-o", t.stem, "--", program("Calls"), 1, "safe_sleep_1ms=1")
    else:
        code, said = write("--replay", CAPTURE, "-f", "json", "-o", f"{shared}/{path}")
    check(all_below(private) == ["in"], f"root's folder holds {all_below(private)}")
    check(code == 2, f"ended with {code}: {said}")
    check("another user's" in said, f"it said {said!r}")


def test_own_links(t):
    shared, private = sticky(t)
    os.symlink(private, shared / "ours")
    code, said = write("--replay", CAPTURE, "-f", "json", "-o", shared / "ours" / "x.json")
    check(code == 0 and all_below(private) == ["x.json"], f"ended with {code}: {said}")


@cases("replay", "list")
def test_file_limit(t, what):
    """ulimit -f: the signal for it would end the program in the middle."""
    args = ("--replay", CAPTURE, "-f", "html") if what == "replay" else ("--list", "-f", "json")
    code, said = write(*args, "-o", t.dir / "x", prefix=("prlimit", "--fsize=16"))
    check(code == 2, f"ended with {code}: {said}")
    check("File too large" in said, f"it said {said!r}")
    check(all_below(t.dir) == [], f"left behind: {all_below(t.dir)}")


def test_full_disk(t):
    disk = t.dir / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", disk], capture_output=True).returncode != 0:
        raise Skip("no tmpfs")
    t.finally_do(lambda: subprocess.run(["umount", "-l", disk], capture_output=True))
    code, said = write("--replay", CAPTURE, "-f", "html,json", "-o", disk / "x")
    check(code == 2 and "No space left" in said, f"ended with {code}: {said}")
    check(all_below(disk) == [], f"left behind: {all_below(disk)}")


if __name__ == "__main__":
    run(globals())
