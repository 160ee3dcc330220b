#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The configuration file, and the completions in real shells. Nothing here needs the kernel part."""

import os
import pty
import re
import select
import shutil
import subprocess
import time

from harness import ROOT, SAFESCOPED, Skip, cases, check, run
from test_documents import CAPTURES, MANUAL, in_the_help

WINDOWS = "window 60\n"


def check_config(t, text, *args):
    """(exit code, the lines that it printed, without the program's name)"""
    path = t.dir / "conf"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    done = subprocess.run([SAFESCOPED, "--check-config", "--config", path, *args], capture_output=True, text=True,
                          timeout=60)
    check(not done.stdout, f"on standard output: {done.stdout}")
    return done.returncode, [line.removeprefix("safescoped: ") for line in done.stderr.splitlines()]


GOOD = {
    "empty": "", "comments": "# nothing\n\n   \t\n", "blank": WINDOWS, "equals": "window=60", "both": "window = 60\r\n",
    "blanks": "  window\t60  \n", "no_value": "kernel-stacks\nverbose\nverbose\n",
    "blanks_in_value": "exclude user=root\nexclude = comm=a b\n",
    "bracket": "comm " + "[[:alpha:]]" * 8 + "*\nexclude comm=" + r"[a\]b]" * 8 + "\nexclude comm=" + "[!]x]" * 5 + "*\n",
    "more": WINDOWS + "keep 3\nkeep-for 7d\nkeep-bytes 2G\n",
    "daemon": "keep 3\n", "other_names": WINDOWS + "push otlp+http://h\npush-header-file HEADERS\nqueue /q\nqueue-bytes 3M\nexclude user:root\n"}
WRONG = {
    "unknown": ("windw 60", "windw: no such option"), "without": ("pid", "needs a value"),
    "with": ("kernel-stacks yes", "takes no value"), "a_mode": ("list", "only allowed on the command line"),
    "another": ("config /etc/x", "only allowed on the command line"), "no_name": ("= 60", ": no such option"),
    "too_small": ("frequency 0", "frequency"), "too_large": ("frequency 1e9", "frequency"),
    "user": ("user nobody-of-this-name", "no such user"), "letter": ("F 99", "no such option"),
    "long_name": ("comm my-long-service-name", "15 bytes"), "long_glob": ("exclude comm=my-long-[sx]ervices*", "15 bytes"),
    "name_for_path": ("exe hledger-web", "use */hledger-web"), "name_excluded": ("exclude cgroup=system.slice", "use */system.slice"),
    "no_glob": ("exclude exe=", "empty"), "dashes": ("--window 60", "no such option"), "escape": ("weight \x1b[31m", "weight")}
NO_TEXT = {"nul": (b"window 60\0\n", "not a text"), "long": (b"#" * (2 << 20), "too large"),
           "many": (b"force\n" * 20000, "too large")}


def headers(t, text="X-Scope-OrgID: 1\n"):
    """The path of a file of headers."""
    path = t.dir / "headers"
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


@cases(*GOOD)
def test_good(t, case):
    code, lines = check_config(t, GOOD[case].replace("HEADERS", headers(t)))
    check(code == 0 and not lines, f"ended with {code}: {lines}")


def test_low_port(t):
    """Root can listen on a low port but the service's user cannot, which --check-config warns of."""
    code, lines = check_config(t, "metrics 80\n")
    check(code == 0 and len(lines) == 1 and "CAP_NET_BIND_SERVICE" in lines[0], f"ended with {code}: {lines}")
    code, lines = check_config(t, "metrics 9464\n")
    check(code == 0 and not lines, f"ended with {code}: {lines}")


@cases("push-headers", "push-ca")
def test_file_of_a_push(t, option):
    """A push's file that cannot be read is reported by --check-config, before the service would fail."""
    code, lines = check_config(t, f"{WINDOWS}push otlp+https://h\n{option} {t.dir / 'none'}\n")
    check(code == 64 and len(lines) == 1 and str(t.dir / "none") in lines[0], f"ended with {code}: {lines}")


def test_all_wrong_files(t):
    """All of the files that pushes name are checked, not only up to the first one that is wrong."""
    ca = t.dir / "ca"
    ca.write_text("none\n")
    code, lines = check_config(t, f"{WINDOWS}push otlp+https://h\npush-headers {t.dir / 'none'}\npush-ca {ca}\n"
                                  f"push pyroscope+http://h\npush-headers {t.dir / 'other'}\n")
    check(code == 64 and [line.split(": ")[0] for line in lines] == [str(t.dir / "none"), str(ca), str(t.dir / "other")],
          f"ended with {code}: {lines}")


@cases("--list", "--doctor")
def test_configuration_without_a_session(t, mode):
    """What a configuration has for a session does not keep it from being used for other things."""
    path = t.dir / "options.conf"
    path.write_text("frequency 20\nheap-census\n")
    done = subprocess.run([SAFESCOPED, "--config", path, mode], capture_output=True, text=True, timeout=120)
    check(done.returncode in (0, 1) and not re.search("needs a session", done.stderr), f"ended with {done.returncode}: {done.stderr}")


def test_ca_without_certificate(t):
    path = t.dir / "ca"
    path.write_text("none\n")
    code, lines = check_config(t, f"{WINDOWS}push otlp+https://h\npush-ca {path}\n")
    check(code == 64 and len(lines) == 1 and str(path) in lines[0] and "certificate" in lines[0], f"ended with {code}: {lines}")


@cases(*WRONG)
def test_wrong_line(t, case):
    """A wrong line is reported with its file and number, whatever the lines around it are."""
    line, why = WRONG[case]
    code, lines = check_config(t, f"# one\n{WINDOWS}\n{line}\nkeep 3\n")
    check(code == 64 and len(lines) == 1, f"ended with {code}: {lines}")
    check(lines[0].startswith(f"{t.dir / 'conf'}:4: ") and why in lines[0] and "\x1b" not in lines[0], f"it printed {lines}")


def test_header_of_the_message_itself(t):
    """Headers that the HTTP client sets itself, such as the length, are refused: they would break every request."""
    path = headers(t, "X-Scope-OrgID: 1\ncontent-length: 3\n")
    code, lines = check_config(t, f"{WINDOWS}push otlp+https://h\npush-headers {path}\n")
    check(code == 64 and len(lines) == 1 and "line 2" in lines[0] and "content-length" in lines[0], f"ended with {code}: {lines}")


def test_all_wrong_lines(t):
    code, lines = check_config(t, "windw 60\nkeep 3\nfrequency x\n\nlanes thread,fiber\n")
    numbers = [re.match(r".*?:(\d+): ", line).group(1) for line in lines]
    check(code == 64 and numbers == ["1", "3", "5"], f"ended with {code}: {lines}")


def test_together(t):
    """Options that are each valid but do not fit together are refused."""
    code, lines = check_config(t, "push-timeout 3\n")
    check(code == 64 and len(lines) == 1 and lines[0].startswith(f"{t.dir / 'conf'}: --push-queue"), f"it printed {lines}")


@cases("frequency 49|frequency 51", "kernel-stacks|kernel-stacks", "queue /a|push-queue /b")
def test_twice(t, lines):
    """An option twice is refused, as it is not clear which one is meant; options that add up may be repeated."""
    first, second = lines.split("|")
    code, said = check_config(t, f"{first}\n{WINDOWS}user root\n{second}\nuser 0\nverbose\nverbose\npush otlp+http://h\n")
    check(code == 64 and len(said) == 1 and said[0].startswith(f"{t.dir / 'conf'}:4: ") and "line 1" in said[0], f"it printed {said}")


@cases("push-headers /etc/a|push-headers /etc/b", "push-ca /etc/a|push-ca /etc/b", "|push otlp+http://h:4318/", "|push otlp+http://h")
def test_push_twice(t, lines):
    """Each option of a push is allowed once per push, and a server only once, however it is spelt."""
    first, second = lines.split("|")
    code, said = check_config(t, f"{WINDOWS}push otlp+http://h\n{first}\n{second}\n")
    check(code == 64 and len(said) == 1 and said[0].startswith(f"{t.dir / 'conf'}:4: ") and "otlp+http://h" in said[0], f"it printed {said}")


CREDENTIALS = {"user": "https://user:s3cret@h", "query": "https://h/?token=s3cret", "fragment": "https://h/#s3cret", "nothing": "s3cret@h"}


@cases(*CREDENTIALS)
def test_no_credentials(t, case):
    """A message about a bad URL does not contain its credentials: others may read the log."""
    code, said = check_config(t, f"{WINDOWS}push otlp+{CREDENTIALS[case]}\n")
    check(code == 64 and len(said) == 1 and "s3cret" not in said[0], f"it printed {said}")


@cases(*NO_TEXT)
def test_no_configuration(t, case):
    data, why = NO_TEXT[case]
    code, lines = check_config(t, data)
    check(code == 64 and len(lines) == 1 and why in lines[0], f"it printed {lines}")


@cases("--check-config", "--list")
def test_not_a_file(t, mode):
    """A configuration that is not a readable file is an error like any other missing file: exit code 2, not that of
    wrong usage."""
    for path in (t.dir, "/dev/null", t.dir / "none"):
        done = subprocess.run([SAFESCOPED, mode, f"--config={path}"], capture_output=True, text=True, timeout=60)
        check(done.returncode == 2 and str(path) in done.stderr and done.stderr.count("\n") == 1,
              f"{path}: ended with {done.returncode}: {done.stderr}")


def replayed(t, text, *args):
    """The names of the files that a replay with this configuration writes."""
    (t.dir / "conf").write_text(text)
    shutil.rmtree(t.dir / "out", ignore_errors=True)
    (t.dir / "out").mkdir()
    done = subprocess.run([SAFESCOPED, "--replay", CAPTURES / "calls", "--config", t.dir / "conf", *args],
                          capture_output=True, text=True, timeout=60)
    check(done.returncode == 0, f"ended with {done.returncode}: {done.stderr}")
    return sorted(p.name for p in (t.dir / "out").iterdir())


def test_which_comes_first(t):
    """Options on the command line override the file's, wherever --config is."""
    text = f"format json\noutput {t.dir / 'out' / 'one'}\n"
    check(replayed(t, text) == ["one.json"], "the file's options are not those of the session")
    check(replayed(t, text, "-f", "folded") == ["one.folded"], "the command line does not come after the file")
    check(replayed(t, text, "-o", t.dir / "out" / "two") == ["two.json"], "the command line does not come after the file")


def test_example(t):
    """The example is valid as it is, and also with all its commented-out lines, if the file of headers exists."""
    text = (ROOT / "scripts" / "safescoped.conf").read_text().replace("/etc/safescoped.headers", headers(t))
    options = re.sub(r"^#(?=[a-z-]+( |$))", "", text, flags=re.M)
    check(options != text, "nothing in it is commented out")
    for what in (text, options):
        code, lines = check_config(t, what)
        check(code == 0 and not lines, f"ended with {code}: {lines}")


def test_defaults(t):
    """The defaults in the usage text are in the manual page, too."""
    usage = subprocess.run([SAFESCOPED, "--help"], capture_output=True, text=True, check=True).stdout
    items = re.findall(r"^ +(?:-\w, )? *--([a-z-]+)((?:.|\n(?! +-|\n))*)", usage, re.M)
    defaults = {name: found.group(1) for name, text in items if (found := re.search(r"\(default\s+([^) ;:]+)\)", text))}
    check({"frequency", "off-file", "weight", "max-overhead"} <= set(defaults), f"the usage text is not read: {defaults}")
    for name, value in defaults.items():
        item = re.search(rf"^\.It [^\n]*Fl Fl {name}\b.*?(?=^\.It |^\.El)", MANUAL.read_text(), re.M | re.S).group(0)
        check(value in re.sub(r"\.(Cm|Pa|Fl) ", "", item) and "default" in item, f"--{name}: no default of {value} in {item}")


# ── shells ──


class Shell:
    """An interactive shell on its own terminal."""

    def __init__(self, t, *command, env):
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.execvpe(command[0], command, {**os.environ, "TERM": "dumb", "COLUMNS": "200", **env})
        self.text = ""
        t.finally_do(self.end)

    def end(self):
        os.close(self.fd)
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)

    def type(self, keys):
        self.text = ""
        os.write(self.fd, keys.encode())

    def wait_for(self, what):
        deadline = time.monotonic() + 60
        while what not in self.text:
            check(time.monotonic() < deadline, f"no {what!r} in {self.text!r}")
            if select.select([self.fd], [], [], 1)[0]:
                self.text += os.read(self.fd, 65536).decode(errors="replace")


def completion_file(t, shell, name):
    path = t.dir / name
    path.write_text(subprocess.run([SAFESCOPED, "--completion", shell], capture_output=True, text=True, check=True).stdout)
    return path


def shell_of(t, name):
    """A shell with the completion loaded, and the program in its PATH."""
    if not shutil.which(name):
        raise Skip(f"no {name}")
    env = {"PATH": f"{t.dir}:{os.environ['PATH']}"}
    (t.dir / "safescoped").symlink_to(SAFESCOPED)
    (t.dir / "profile-of-mine.conf").touch()
    (t.dir / "archives-of-mine").mkdir()
    if name == "bash":
        file = completion_file(t, name, "completion.bash")
        shell = Shell(t, "bash", "--norc", "--noprofile", "-i", env=env)
        shell.type(f"bind 'set bell-style none'; source {file}; cd {t.dir}; PS1=; echo rea''dy\n")
    else:
        completion_file(t, name, "_safescoped")
        shell = Shell(t, "zsh", "-f", "-i", env=env)
        shell.type(f"fpath=({t.dir} $fpath); autoload -U compinit; compinit -u -D; unsetopt beep prompt_cr; "
                   f"cd {t.dir}; PS1=; echo rea''dy\n")
    shell.wait_for("ready")
    return shell


# What is typed before Tab, and what it becomes.
TYPED = (("safescoped --wei", "--weight"), ("safescoped --weight sam", "samples"), ("safescoped --weight=sam", "samples"),
         ("safescoped -f json,spee", "json,speedscope"), ("safescoped --lanes cap", "capability"),
         ("safescoped --config profile-of", "profile-of-mine.conf"), ("safescoped --stacks st", "stg"),
         ("safescoped --check-c", "--check-config"), ("safescoped -e no", "none"), ("safescoped --user dae", "daemon"),
         ("safescoped --diff a profile-of", "profile-of-mine.conf"), ("safescoped --diff=a profile-of", "profile-of-mine.conf"),
         ("safescoped --archives archives-of", "archives-of-mine"),
         # a process of another terminal than the shell's
         (f"safescoped --pid 1,{str(os.getpid())[:-1]}\t", str(os.getpid())))


@cases("bash", "zsh")
def test_completion(t, name):
    shell = shell_of(t, name)
    for typed, want in TYPED:
        shell.type(f"{typed}\t")
        shell.wait_for(want)
        shell.type("\x15echo bar''rier\n")  # Ctrl-U: the line is not run
        shell.wait_for("barrier")


def test_completion_of_all(t):
    """Each shell's completion offers every option of the usage text."""
    names = {name for name, _ in in_the_help() if name}
    for shell, form in (("bash", r"--([a-z-]+)[ \"]"), ("zsh", r"--([a-z-]+)[=\[ ]")):
        text = completion_file(t, shell, f"all-{shell}").read_text()
        found = set(re.findall(form, text.partition("local all=")[2] if shell == "bash" else text))
        check(names <= found, f"{shell}: not offered: {names - found}")


def test_completion_of_other_shells(t):
    done = subprocess.run([SAFESCOPED, "--completion", "tcsh"], capture_output=True, text=True)
    check(done.returncode == 64 and done.stderr.count("\n") == 1 and not done.stdout, f"{done}")


if __name__ == "__main__":
    run(globals(), kernel=False)
