#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The documents match the program: the manual page, the schema of the report, the list of installed files."""

import json
import os
import re
import signal
import subprocess
import time

from harness import ROOT, SAFESCOPED, SCHEMA, Report, cases, check, run, schema, schema_errors

MANUAL = ROOT / "scripts" / "safescoped.8"
OPTIONS = ROOT / "user" / "cli" / "option_table.c"
GOLDEN = ROOT / "tests" / "data" / "export"
CAPTURES = ROOT / "tests" / "data" / "capture"
# Options that argp adds to those of the table.
BY_ARGP = {("help", "?"), ("usage", None), ("version", "V")}
# Fields that may be absent.
OPTIONAL = ("schema/ended_programs", "session/bpf_ns", "session/pushes", "session/window", "target/allocation", "target/heap",
            "target/cost_centre_stacks", "target/marks", "target/windows", "cost_centre/self_bytes", "cost_centre/total_bytes")


def in_the_table():
    """{(long name, letter)}"""
    table = OPTIONS.read_text().partition("option_rows[] = {")[2].partition("{0}")[0]
    found = re.findall(r'{(?:"([a-z-]+)"|NULL),\s+(?:\'(.)\'|OPT_\w+),', table)
    return {(name or None, letter or None) for name, letter in found} | BY_ARGP


def in_the_help():
    text = subprocess.run([SAFESCOPED, "--help"], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^ +(?:-([\w?])(?:, )?)? *(?:--([a-z-]+))?(?:=\S+)?(?: |$)", text, re.M)
    return {(name or None, letter or None) for letter, name in found if name or letter}


def in_the_manual():
    """The options of the manual page as {(long name, letter)}. Letters without a long name in one item are options of
    their own: -h and -?."""
    found = set()
    for item in re.findall(r"^\.It (Fl .*)$", MANUAL.read_text(), re.M):
        letter, names = None, set()
        for dashes, name in re.findall(r"\bFl (Fl )?(\S+)", item):
            if dashes:
                names.add((name, letter))
                letter = None
            elif letter:
                found.add((None, letter))
                letter = name.removeprefix("\\&")
            else:
                letter = name.removeprefix("\\&")
        found |= names or {(None, letter)}
    return found


def test_options(t):
    """The table of options, the help and the manual page have the same names."""
    want = in_the_table()
    check(("pid", "p") in want and (None, "h") in want and ("replay", None) in want, f"the table is not read: {want}")
    for what, got in (("the help", in_the_help()), ("the manual page", in_the_manual())):
        check(got == want, f"{what} has {got - want} besides, and not {want - got}")


def arguments_in_the_table():
    """{name: its argument}, for the options that have one"""
    table = OPTIONS.read_text().partition("option_rows[] = {")[2].partition("{0}")[0]
    return dict(re.findall(r'{"([a-z-]+)",\s+(?:\'.\'|OPT_\w+),\s+"([^"]+)"', table))


def arguments_in_the_manual():
    found = {}
    for item in re.findall(r"^\.It (Fl .*)$", MANUAL.read_text(), re.M):
        for name, rest in re.findall(r"Fl Fl (\S+)([^,]*(?:, Ns Ar \.\.\.)?)", item):
            words = re.sub(r"\b(Ar|Cm|Ns|Op)\b", "", rest.replace(", Fl", "")).split()
            if words:
                found[name] = "".join(words).lower()
    return found


def test_arguments(t):
    """The manual page and the table give each option the same argument."""
    # the manual page's macros show the further members of a list
    want = {name: re.sub(r"\[.*\]|[ .]", "", text).lower() for name, text in arguments_in_the_table().items()}
    got = {name: re.sub(r"[\[\], .]", "", text) for name, text in arguments_in_the_manual().items()}
    check(want["weight"].startswith("wall|cpu|samples") and len(want) > 15, f"the table is not read: {want}")
    check(got == want, f"the manual page has {set(got.items()) ^ set(want.items())}")


def test_options_in_texts(t):
    """Every option that a message, the README or the manual page mentions exists."""
    want = {name for name, _ in in_the_table() if name} | {"cap-add"}  # docker's option, in a piece of advice
    texts = {p: "".join(re.findall(r'"(?:[^"\\\n]|\\.)*"', p.read_text())) for p in (ROOT / "user").rglob("*.c")}
    texts[MANUAL] = re.sub(r"Fl Fl (\S+)", r"--\1", MANUAL.read_text())
    # options in the code blocks of other tools are not ours
    readme = (ROOT / "README.md").read_text()
    texts[ROOT / "README.md"] = "\n".join(re.findall(r"safescoped .*|`--[a-z-]+", readme))
    known = want | {"countname", "nonmoving-gc", "eventlog-flush-interval"}  # flamegraph.pl's, the runtime's
    for path, text in texts.items():
        named = set(re.findall(r"(?<![\w-])--([a-z][a-z-]+[a-z])", text))
        check(named <= known, f"{path} speaks of {named - known}")


def said(*args, code=64):
    done = subprocess.run([SAFESCOPED, *map(str, args)], capture_output=True, text=True, timeout=60)
    check(done.returncode == code, f"{args}: ended with {done.returncode}: {done.stderr}")
    check(not done.stdout or code == 0, f"{args}: on standard output: {done.stdout}")
    return done.stderr.splitlines()


def formats():
    text = (ROOT / "user" / "export" / "export.c").read_text()
    return re.findall(r'export_\w+ = {"(\w+)"', text)


@cases(("--format=nosuch",), ("--nosuch",), ("-d", "5x"), ("-d", "-1"), ("-d", ""), ("-d", "1h2"), ("-d", "1e"), ("--duration",),
       ("-d", "1h1h"), ("-d", "1m1h"), ("--propagate-exit",), ("-f", "json", "-o", "-", "--", "true"), ("--pid", "x"), ("stray",), ("--weight=nosuch",),
       ("--comm", "x", "--pid", "1"), ("--exclude", "x"), ("--keep", "3"), ("--keep-bytes", "5x"), ("--keep-for", "1h2"),
       ("--window", "1s", "--keep", "2", "-f", "json", "-o", "-"), ("--window", "10ms"), ("--metrics", "example.org:80"),
       ("--metrics", "70000"), ("--metrics", "unix:"), ("--metrics", "9464", "--list"), ("-F", "9.5"), ("-e", "/dev/null", "--to", "0s"),
       ("--window", "1", "--keep", "2.5"), ("--list", "-d", "5"), ("--doctor", "-F", "9"),
       ("--diff", "a", "b", "--symbols", "c"), ("--diff", "a", "b", "--kernel-stacks"), ("-e", "/dev/null", "--heap-census"), ("-e", "/dev/null", "-F", "9"))
def test_wrong_usage_is_one_line(t, args):
    # with this file there would be no session even if the arguments were accepted
    lines = said("-e", t.dir / "nothing-here", *args) if args[0] == "-d" else said(*args)
    check(len(lines) == 1 and lines[0].startswith("safescoped: "), f"it printed {lines}")
    if "nosuch" in args[0] and "format" in args[0]:
        check(len(formats()) >= 7 and all(f in lines[0] for f in formats()), f"it does not list the formats: {lines}")


def test_bounds_in_full(t):
    """The bounds of a number are printed in digits."""
    check("from 1 to 1000000" in said("--window", "1", "--keep", "0")[0], "not in digits")


def test_environment(t):
    """The manual page has every environment variable that the program looks at."""
    section = MANUAL.read_text().partition(".Sh ENVIRONMENT")[2].partition(".Sh ")[0]
    used = {name for path in (ROOT / "user").rglob("*.c") for name in re.findall(r'getenv\("(\w+)"', path.read_text())}
    check({"COLUMNS", "STATE_DIRECTORY"} <= used, f"the sources are not read: {used}")
    missing = used - set(re.findall(r"\w+", section))
    check(not missing, f"it does not have {missing}")


@cases("10", "10s", "0.5", "1.5s", "5m", "1h", "1h30m", "7d", "500ms")
def test_durations(t, text):
    """These durations are accepted: the error is about the file."""
    check("nothing-here" in said("-e", t.dir / "nothing-here", "-d", text, "-f", "json", "-o", t.dir / "x", code=2)[0],
          "the duration is refused")


def test_names_of_files(t):
    """An output name gets its format's suffix exactly once, whether it has one or not, and an existing file of the
    user's is not overwritten."""
    capture = CAPTURES / "calls"
    for path in ("one", "one.json", "one.folded"):
        lines = said("--replay", capture, "-f", "json,chrome", "-o", t.dir / path, code=0)
        check([l.split(": ")[1] for l in lines] == [str(t.dir / n) for n in ("one.json", "one.trace.json")], f"it printed {lines}")
    check({p.name for p in t.dir.iterdir()} == {"one.json", "one.trace.json"}, f"{list(t.dir.iterdir())}")
    precious = t.dir / "precious.json"
    precious.write_text('{"mine": 1}\n')
    for path in ("precious", "precious.json"):
        lines = said("--replay", capture, "-f", "json", "-o", t.dir / path, code=2)
        check(len(lines) == 1 and str(precious) in lines[0], f"it printed {lines}")
    for how in ("text", "json"):
        lines = said("--list", "-f", how, "-o", precious, code=2)
        check(len(lines) == 1 and str(precious) in lines[0], f"it printed {lines}")
    check(precious.read_text() == '{"mine": 1}\n', "the user's file is gone")
    for _ in range(2):
        said("--list", "-f", "text", "-o", t.dir / "list", code=0)
    lines = said("--replay", capture, "-f", "text,json", "-o", t.dir / "text", code=0)
    check("jq" in lines[-1] and str(t.dir / "text.json") in lines[-1], f"how to open it is not explained: {lines}")


def test_a_reader_that_leaves(t):
    """If the reader of standard output closes the pipe, as `head` does, that is not a failure, and the files are
    written all the same."""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([SAFESCOPED, "--replay", CAPTURES / "calls", "-f", "text,json", "-o", t.dir / "r"],
                          stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    check(done.returncode == 0, f"ended with {done.returncode}: {done.stderr}")
    check("ipe" not in done.stderr.replace(str(t.dir), ""), f"it printed {done.stderr}")
    check(Report(t.dir / "r.json").target(), "the report was not written")


@cases("USR1", "USR2")
def test_signals_that_mean_nothing(t, name):
    """A signal that has no effect, sent while it reads a log from a silent pipe, changes nothing."""
    process = subprocess.Popen([SAFESCOPED, "-e", "-", "-f", "json", "-o", t.dir / "x"], stdin=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    blocked = 0
    deadline = time.monotonic() + 20
    bit = 1 << (getattr(signal, f"SIG{name}") - 1)
    while not blocked & bit and time.monotonic() < deadline:
        blocked = int(re.search(r"SigIgn:\s*(\w+)", open(f"/proc/{process.pid}/status").read()).group(1), 16)
        time.sleep(0.01)
    process.send_signal(getattr(signal, f"SIG{name}"))
    said_then = process.communicate(timeout=60)[1].decode()
    check(process.returncode == 2 and "empty; GHC writes a log" in said_then, f"ended with {process.returncode}: {said_then}")


def test_manual_names(t):
    """The manual page names each state, kind of finding, and format."""
    text = re.sub(r"\\&|[,.()]", " ", MANUAL.read_text())
    defs = json.loads(SCHEMA.read_text())["$defs"]
    names = set(defs["finding"]["properties"]["kind"]["enum"])
    for lane in ("thread_lane", "capability_lane", "haskell_lane"):
        names |= set(defs[lane]["properties"]["states"]["properties"])
    for path in (ROOT / "user" / "export").rglob("*.c"):
        names |= set(re.findall(r"^const struct export_format export_(\w+) = {", path.read_text(), re.M))
    check({"json", "html", "pprof"} <= names, f"the formats are not found: {names}")
    missing = {n for n in names if n not in text.split()}
    check(not missing, f"the manual page does not name {missing}")


@cases("service", "hostile", "empty")
def test_golden_reports(t, name):
    """The unit tests' golden reports match the schema, except for what is invalid on purpose in the hostile one."""
    wrong = schema_errors(json.loads((GOLDEN / f"{name}.json").read_text()))
    wrong = [e for e in wrong if not (name == "hostile" and e.startswith("targets/0/findings/0/kind: "))]
    check(not wrong, f"{wrong}")


def described(field, defs):
    return field.get("description") or defs[field["$ref"].removeprefix("#/$defs/")].get("description")


@cases("calls", "centres")
def test_replayed_reports(t, name):
    path = t.dir / "r.json"
    subprocess.run([SAFESCOPED, "--replay", CAPTURES / name, "-q", "-f", "json", "-o", path], check=True)
    kinds = {lane["kind"] for lane in Report(path).target()["lanes"]}
    check(kinds == {"thread", "capability"}, f"lanes of {kinds}")


def objects_of(part, path="schema"):
    """Every object in the schema that has properties."""
    if isinstance(part, list):
        for i, x in enumerate(part):
            yield from objects_of(x, f"{path}/{i}")
    elif isinstance(part, dict):
        if "properties" in part and "type" in part:
            yield path, part
        for key, x in part.items():
            yield from objects_of(x, f"{path}/{key}")


def test_schema(t):
    """The schema is valid and allows no extra fields; every field is described, and is required unless it is listed as
    optional."""
    text = json.loads(SCHEMA.read_text())
    schema().check_schema(text)
    for path, part in objects_of(text):
        check(part.get("additionalProperties") is False, f"{path} is open")
        for name, field in part["properties"].items():
            check(described(field, text["$defs"]), f"{path}/{name} is not described")
            optional = f"{path}/{name}".endswith(OPTIONAL)
            check((name in part["required"]) != optional, f"{path}/{name}: required or not?")


def test_schema_refuses(t):
    """The schema refuses an extra field, a missing one, one of another type, one in the wrong place."""
    whole = (GOLDEN / "service.json").read_text()
    for change in (lambda r: r["targets"][0].update(pids=[1]), lambda r: r["session"].pop("exit"),
                   lambda r: r["targets"][0]["lanes"][0].update(tid="1"),
                   lambda r: r["targets"][0]["lanes"][0]["states"].update(gc=1)):
        report = json.loads(whole)
        change(report)
        check(len(schema_errors(report)) == 1, f"{schema_errors(report)}")


INSTALLED = {
    "usr/bin/safescoped", "usr/share/man/man8/safescoped.8", "usr/share/safescoped/safescoped.schema.json",
    "usr/share/doc/safescoped/examples/safescoped.conf", "usr/lib/systemd/system/safescoped.service",
    "usr/share/bash-completion/completions/safescoped", "usr/share/zsh/site-functions/_safescoped", "etc/safescoped.conf"}


def make(t, goal):
    """The files below DESTDIR after `make goal`."""
    subprocess.run(["make", "-s", goal, f"DESTDIR={t.dir}", "PREFIX=/usr"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return {str(p.relative_to(t.dir)) for p in t.dir.rglob("*") if p.is_file()}


def test_installed(t):
    """`make uninstall` removes all that `make install` installed, except a configuration that was changed."""
    config = t.dir / "etc" / "safescoped.conf"
    found = make(t, "install")
    check(found == INSTALLED, f"installed: {found ^ INSTALLED}")
    check("--config /etc/safescoped.conf" in (t.dir / "usr/lib/systemd/system/safescoped.service").read_text(), "the unit")
    subprocess.run([t.dir / "usr/bin/safescoped", "--check-config", "--config", config], check=True)
    check(make(t, "uninstall") == set(), "not everything was removed")
    config.write_text("window 5\n")
    check(make(t, "install") == INSTALLED and config.read_text() == "window 5\n", "the configuration was replaced")
    check(make(t, "uninstall") == {"etc/safescoped.conf"}, "the configuration is gone")


def test_installed_elsewhere(t):
    """With another PREFIX and SYSCONFDIR the unit has the paths of that installation."""
    subprocess.run(["make", "-s", "install", f"DESTDIR={t.dir}", "PREFIX=/opt/x", "SYSCONFDIR=/opt/x/etc"], cwd=ROOT, check=True,
                   stdout=subprocess.DEVNULL)
    unit = (t.dir / "opt/x/lib/systemd/system/safescoped.service").read_text()
    check("ExecStart=/opt/x/bin/safescoped --config /opt/x/etc/safescoped.conf" in unit, "the unit names other paths")
    check((t.dir / "opt/x/etc/safescoped.conf").is_file() and not (t.dir / "etc").exists(), "the configuration is elsewhere")


if __name__ == "__main__":
    run(globals(), kernel=False)
