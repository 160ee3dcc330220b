#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""SUDO_UID and SUDO_GID determine whom a command runs as: values that sudo would not write must not make it run as
root, or in another group."""

import grp
import os
import pwd
import subprocess

from hostile import NOBODY
from harness import SAFESCOPED, cases, check, run

WRONG = {
    "letters": ("65534x", "65534"),
    "empty": ("", "65534"),
    "sign": ("+65534", "65534"),
    "minus": ("-2", "65534"),
    "blank": (" 65534", "65534"),
    "hexadecimal": ("0xfffe", "65534"),
    "no user": ("4294967295", "65534"),
    "too large": ("4295032830", "65534"),
    "larger": ("99999999999999999999", "65534"),
    "no group": ("65534", None),
    "no uid": (None, "65534"),
    "bad group": ("65534", "65534;0"),
    "control": ("65534\x9b", "65534"),
}


def environment(uid, gid):
    env = {k: v for k, v in os.environb.items() if not k.startswith(b"SUDO_")}
    for key, value in (b"SUDO_UID", uid), (b"SUDO_GID", gid):
        if value is not None:
            env[key] = value.encode("latin-1")
    return env


@cases(*WRONG)
def test_wrong_ids(t, case):
    ran = t.dir / "ran"
    done = subprocess.run([SAFESCOPED, "-f", "json", "-o", t.stem, "--", "sh", "-c", f"id > '{ran}'"],
                          env=environment(*WRONG[case]), capture_output=True, timeout=60)
    check(not ran.exists(), f"the command ran: {ran.exists() and ran.read_text()}")
    lines = done.stderr.decode().splitlines()
    check(done.returncode == 64, f"ended with {done.returncode}: {lines}")
    check(len(lines) == 1 and "SUDO_UID" in lines[0], f"it printed {lines}")
    check(list(t.dir.iterdir()) == [], f"files are left behind: {list(t.dir.iterdir())}")


@cases("user", "root")
def test_right_ids(t, case):
    """A command gets all groups of the user; if root itself called sudo it stays root."""
    user = pwd.getpwuid(NOBODY if case == "user" else 0)
    done = subprocess.run([SAFESCOPED, "-f", "json", "-o", t.stem, "--", "sh", "-c", "id -u; id -g; id -G"],
                          env=environment(str(user.pw_uid), str(user.pw_gid)), capture_output=True, text=True, timeout=60)
    got = done.stdout.splitlines()
    want = {user.pw_gid} | {g.gr_gid for g in grp.getgrall() if user.pw_name in g.gr_mem}
    check(got[:2] == [str(user.pw_uid), str(user.pw_gid)], f"it ran as {got}: {done.stderr}")
    check({int(g) for g in got[2].split()} == want, f"its groups are {got[2]}, should be {want}")


if __name__ == "__main__":
    run(globals())
