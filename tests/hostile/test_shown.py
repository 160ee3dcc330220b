#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A program's own name reaches terminals: in the report, in --list and --doctor, in messages. It must not contain
anything that a terminal executes or that is invisible."""

import os
import pty
import re
import shutil
import subprocess
import unicodedata

from hostile import OUT, as_nobody, start
from harness import SAFESCOPED, cases, check, program, run

# Sets the window's title; CSI in UTF-8 and as a byte; right-to-left; an isolate; zero width; invalid UTF-8.
EVIL = b"\x1b]0;\x07\xc2\x9b31m\x9b31m\xe2\x80\xae\xe2\x81\xa6\xe2\x80\x8b\xef\xbb\xbf\xe2\x80\xa8\n\xff"
# The kernel keeps 15 bytes of a name: the parts of it in turn.
NAMES = (b"a\x1b]0;\x07\xc2\x9b31m\xff", b"b\x9b\xe2\x80\xae\xe2\x80\x8b\xe2\x80\xa8\n", b"c\xe2\x81\xa6\xef\xbb\xbf\xd8\x9c\x7f")
# The control characters that a format's layout uses.
LAYOUT = {"text": "\n", "json": "\n\t"}


def hostile_program(t, name):
    """A Haskell program of an ordinary user whose path and name contain all of that."""
    folder = os.fsencode(OUT) + b"/" + EVIL
    os.makedirs(folder, exist_ok=True)
    path = folder + b"/" + name
    shutil.copy(program("Calls"), path)
    return start(t, [*as_nobody(()), os.fsdecode(path), 1, "safe_sleep_1ms=1000"])


def check_shown(what, data, layout="\n"):
    """There are no control or format characters, and no line or paragraph separators, by Python's own tables."""
    try:
        text = data.decode()
    except UnicodeDecodeError as e:
        check(False, f"{what}: {e}: {data[max(0, e.start - 30):e.start + 30]!r}")
    bad = [(hex(ord(c)), text[max(0, i - 30):i + 10]) for i, c in enumerate(text)
           if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") and c not in layout]
    check(not bad, f"{what}: {bad[:3]}")
    return text


def ask(*args):
    return subprocess.run([SAFESCOPED, *map(str, args)], capture_output=True, timeout=60)


def test_list_and_doctor(t):
    targets = [hostile_program(t, name) for name in NAMES]
    for form in LAYOUT:
        text = check_shown(f"--list as {form}", ask("--list", "-f", form).stdout, LAYOUT[form])
        check(all(str(x.pid) in text for x in targets), f"they are not in the list: {text}")
    pids = ",".join(str(x.pid) for x in targets)
    done = ask("--doctor", "--pid", pids)
    check_shown("--doctor", done.stdout + done.stderr)
    # one line each: the newline in a name does not begin another
    lines = [l for l in done.stdout.split(b"\n") if l.split()[1:2] == [b"process"]]
    check(len(lines) == len(NAMES), f"lines: {lines}")
    check(any(rb"\u{9b}" in l for l in lines) and any(rb"\x9b" in l for l in lines), f"not escaped: {lines}")


@cases(*range(len(NAMES)))
def test_report(t, which):
    target = hostile_program(t, NAMES[which])
    session = subprocess.Popen([SAFESCOPED, "--pid", str(target.pid), "-vv", "--max-overhead", "1000", "-f",
                                "text,folded,json,speedscope,html", "-o", t.stem], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    t.finally_do(session.kill)
    for line in iter(session.stderr.readline, b""):
        check_shown("a message", line)
        if b"attached" in line:
            break
    target.go()
    target.result()
    out, err = session.communicate(timeout=60)
    check(session.returncode == 0, f"ended with {session.returncode}: {err}")
    text = check_shown("the report", out)
    check(text.startswith(f"safescoped: {chr(NAMES[which][0])}") and "\\" in text.splitlines()[0], f"its head: {text[:200]!r}")
    check_shown("messages", err)
    for suffix in ("folded", "speedscope.json", "json", "html"):
        check_shown(suffix, (t.dir / f"p.{suffix}").read_bytes(), "\n" if suffix == "folded" else "\n\t")
    t.report()


def test_progress_on_a_terminal(t):
    """A terminal gets our own line and control sequences, and none of the program's."""
    target = hostile_program(t, NAMES[0])
    main, other = pty.openpty()
    session = subprocess.Popen([SAFESCOPED, "--pid", str(target.pid), "-d", "2", "-f", "text"], stdin=other,
                               stdout=other, stderr=other)
    os.close(other)
    t.finally_do(session.kill)
    data = b""
    try:
        while piece := os.read(main, 65536):
            data += piece
    except OSError:
        pass  # EIO: the other side is closed
    os.close(main)
    check(session.wait(30) == 0, f"ended: {data!r}")
    # what safescoped itself prints: erasing its line, bold, dim, normal, a bar's colours
    data = re.sub(rb"\r\x1b\[K|\x1b\[(0|1|2|33|0;2|38;5;16;48;5;\d+)m|\r\n", b"", data)
    text = check_shown("the terminal", data)
    check("samples" in text and r"\u{1b}]0;" in text, f"no report: {text!r}")


if __name__ == "__main__":
    run(globals())
