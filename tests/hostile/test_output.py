#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Files that root writes where others may place links, and writes that fail: nothing of root's is written elsewhere,
and nothing is left over."""

import os
import shutil
import subprocess

from hostile import NOBODY, OUT
from harness import SAFESCOPED, ROOT, Skip, cases, check, program, run

# A recorded session: writing its formats needs neither a kernel nor a process.
CAPTURE = ROOT / "tests" / "data" / "capture" / "calls"


def write(*args, prefix=(), timeout=60):
    done = subprocess.run([*map(str, prefix), str(SAFESCOPED), *map(str, args)], capture_output=True, text=True,
                          timeout=timeout)
    return done.returncode, done.stderr


def all_below(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


def sticky(t):
    """(a folder like /tmp, a folder of root's only), both empty"""
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
    check("another user" in said, f"it printed {said!r}")


def test_own_links(t):
    shared, private = sticky(t)
    os.symlink(private, shared / "ours")
    code, said = write("--replay", CAPTURE, "-f", "json", "-o", shared / "ours" / "x.json")
    check(code == 0 and all_below(private) == ["x.json"], f"ended with {code}: {said}")


@cases("replay", "list")
def test_file_limit(t, what):
    """ulimit -f: without a handler its signal would end the program in the middle of writing."""
    args = ("--replay", CAPTURE, "-f", "html") if what == "replay" else ("--list", "-f", "json")
    code, said = write(*args, "-o", t.dir / "x", prefix=("prlimit", "--fsize=16"))
    check(code == 2, f"ended with {code}: {said}")
    check("File too large" in said, f"it printed {said!r}")
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


# ── files that control a session ────────────────────────────────────────────────


def given(path, text, uid=0, mode=0o600):
    path.write_text(text)
    path.chmod(mode)
    os.chown(path, uid, uid)
    return path


@cases("attacker's", "writable", "group's", "headers", "certificates")
def test_configuration_of_another_user(t, case):
    """Whoever can write root's configuration could read what root can read and send it anywhere: such files are
    refused."""
    shared, private = sticky(t)
    uid = NOBODY if case not in ("writable", "group's") else 0
    mode = {"writable": 0o666, "group's": 0o660}.get(case, 0o600)
    url = "otlp+http://127.0.0.1:9"
    if case in ("headers", "certificates"):
        path = given(shared / "file", "X-It: is\n", uid, mode)
        option = "--push-headers" if case == "headers" else "--push-ca"
        code, said = write("--replay", CAPTURE, "--push", url, option, path, "--push-queue", private / "queue")
    else:
        path = given(shared / "conf", f"format json\noutput {private}/x.json\n", uid, mode)
        code, said = write("--config", path, "-d", "0.1")
    check(code == 2 and "can write to it" in said, f"ended with {code}: {said}")
    check("x.json" not in all_below(private), f"root's folder holds {all_below(private)}")


def test_own_configuration(t):
    """Root's own file is accepted, and under sudo also that of the user who called it."""
    _, private = sticky(t)
    path = given(private / "conf", "windw 1\n")
    code, said = write("--check-config", "--config", path)
    check(code == 64 and "no such option" in said, f"ended with {code}: {said}")
    os.chown(path, NOBODY, NOBODY)
    code, said = write("--check-config", "--config", path, prefix=("env", f"SUDO_UID={NOBODY}", f"SUDO_GID={NOBODY}"))
    check(code == 64 and "no such option" in said, f"ended with {code}: {said}")


@cases("his", "within his", "link", "behind a link", "writable", "writable before")
def test_queue_where_others_write(t, case):
    """Whoever can replace the queue's folder could get all profiles, or choose what is sent: such places are refused."""
    shared, private = sticky(t)
    for folder, uid, mode in (("his", NOBODY, 0o755), ("his/ours", 0, 0o700), ("all", 0, 0o777), ("all/ours", 0, 0o700)):
        (shared / folder).mkdir()
        (shared / folder).chmod(mode)
        os.chown(shared / folder, uid, uid)
    attacker_links(private, shared / "link")
    place = {"his": "his", "within his": "his/ours/queue", "link": "link", "behind a link": "link/queue", "writable": "all",
             "writable before": "all/ours"}[case]
    before = all_below(shared)
    code, said = write("--replay", CAPTURE, "--push", "otlp+http://127.0.0.1:9", "--push-queue", shared / place)
    check(code == 2 and "others can write to it" in said, f"ended with {code}: {said}")
    check(not all_below(private), f"root's folder holds {all_below(private)}")
    check(all_below(shared) == before, f"it made {set(all_below(shared)) - set(before)}")


def test_rotation_beside_files_of_others(t):
    """A foreign file with a window's name, large and dated far in the future: no window of root's is removed because of
    it."""
    shared, _ = sticky(t)
    code, said = write("--replay", CAPTURE, "--window", "0.2", "-f", "json", "-o", shared)
    check(code in (0, 1), f"ended with {code}: {said}")
    windows = all_below(shared)
    check(len(windows) > 2, f"{windows}: the test proves nothing")
    theirs = shared / (windows[0].rpartition("-")[0] + "-20991231T235959.000Z.json")
    with theirs.open("wb") as out:
        out.write(bytes(32 << 20))
    os.chown(theirs, NOBODY, NOBODY)
    code, said = write("--replay", CAPTURE, "--window", "0.2", "-f", "json", "-o", shared, "--keep-bytes", "16M")
    check(code in (0, 1), f"ended with {code}: {said}")
    check(all_below(shared) == sorted([*windows, theirs.name]), f"{all_below(shared)} are left of {windows}")


@cases("file", "link")
def test_off_file_of_another_user(t, case):
    """An off file that another user created in a folder that anyone can write to does not end root's sessions; root's
    own does."""
    shared, private = sticky(t)
    if case == "file":
        given(shared / "off", "", NOBODY)
    else:
        attacker_links(given(private / "roots", ""), shared / "off")
    code, said = write("--off-file", shared / "off", "-f", "json", "-o", t.stem, "--", program("Calls"), 1, "safe_sleep_1ms=200")
    check(code == 0 and "switched off" not in said, f"ended with {code}: {said}")
    (shared / "off").unlink()
    given(shared / "off", "")
    code, said = write("--off-file", shared / "off", "-f", "json", "-o", t.stem, "--", program("Calls"), 1, "safe_sleep_1ms=200")
    check(code in (1, 2) and "switched off" in said, f"with root's own: ended with {code}: {said}")


if __name__ == "__main__":
    run(globals())
