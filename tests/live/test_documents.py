#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What describes the program agrees with it: the manual page, the report's schema, what is installed."""

import json
import re
import subprocess

from harness import ROOT, SAFESCOPED, SCHEMA, cases, check, run, schema, schema_errors

MANUAL = ROOT / "scripts" / "safescoped.8"
OPTIONS = ROOT / "user" / "cli" / "options.c"
GOLDEN = ROOT / "tests" / "data" / "export"
# argp's own, which are not in the table.
BY_ARGP = {("help", "?"), ("usage", None), ("version", "V")}
# Fields that are there only where there is something to say.
OPTIONAL = {"bpf_ns", "cost_centre_stacks", "marks", "windows"}


def in_the_table():
    """{(long name, letter)}"""
    table = OPTIONS.read_text().partition("argp_options[] = {")[2].partition("{0}")[0]
    found = re.findall(r'{(?:"([a-z-]+)"|NULL), (?:\'(.)\'|OPT_\w+),', table)
    return {(name or None, letter or None) for name, letter in found} | BY_ARGP


def in_the_help():
    text = subprocess.run([SAFESCOPED, "--help"], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^ +(?:-(\S)(?:, )?)? *(?:--([a-z-]+))?(?:=\S+)?(?: |$)", text, re.M)
    return {(name or None, letter or None) for letter, name in found if name or letter}


def in_the_manual():
    """Those of one item that differ are of two options: -h and -? have one."""
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
    """The table of options, the help and the manual page name the same."""
    want = in_the_table()
    check(("pid", "p") in want and (None, "h") in want and ("replay", None) in want, f"the table is not read: {want}")
    for what, got in (("the help", in_the_help()), ("the manual page", in_the_manual())):
        check(got == want, f"{what} has {got - want} besides, and not {want - got}")


def test_manual_names(t):
    """States, findings, formats and exit codes: each has its word in the manual page."""
    text = re.sub(r"\\&|[,.()]", " ", MANUAL.read_text())
    defs = json.loads(SCHEMA.read_text())["$defs"]
    names = set(defs["finding"]["properties"]["kind"]["enum"])
    for lane in ("thread_lane", "capability_lane", "haskell_lane"):
        names |= set(defs[lane]["properties"]["states"]["properties"])
    names |= {p.stem.removeprefix("export_") for p in (ROOT / "user" / "export").glob("*.c")
              if f"export_{p.stem} = {{" in p.read_text()}
    check({"json", "html", "pprof"} <= names, f"the formats are not found: {names}")
    missing = {n for n in names if n not in text.split()}
    check(not missing, f"the manual page does not name {missing}")


@cases("service", "hostile", "empty")
def test_golden_reports(t, name):
    """What the unit tests hold the report to is as the schema says, but for what is hostile of purpose."""
    wrong = schema_errors(json.loads((GOLDEN / f"{name}.json").read_text()))
    wrong = [e for e in wrong if not (name == "hostile" and e.startswith("targets/0/findings/0/kind: "))]
    check(not wrong, f"{wrong}")


def objects_of(part, path="schema"):
    """All objects of the schema with properties."""
    if isinstance(part, list):
        for i, x in enumerate(part):
            yield from objects_of(x, f"{path}/{i}")
    elif isinstance(part, dict):
        if "properties" in part and "type" in part:
            yield path, part
        for key, x in part.items():
            yield from objects_of(x, f"{path}/{key}")


def test_schema(t):
    """It is one, and closed: every field is described and, if it is not optional, required."""
    text = json.loads(SCHEMA.read_text())
    schema().check_schema(text)
    for path, part in objects_of(text):
        check(part.get("additionalProperties") is False, f"{path} is open")
        for name, field in part["properties"].items():
            check(field.get("description"), f"{path}/{name} is not described")
            check((name in part["required"]) != (name in OPTIONAL), f"{path}/{name}: required or not?")


def test_schema_refuses(t):
    """A field too much, one too little, one of another type, one in another place."""
    whole = (GOLDEN / "service.json").read_text()
    for change in (lambda r: r["targets"][0].update(pids=[1]), lambda r: r["session"].pop("exit"),
                   lambda r: r["targets"][0]["lanes"][0].update(tid="1"),
                   lambda r: r["targets"][0]["lanes"][0]["states"].update(gc=1)):
        report = json.loads(whole)
        change(report)
        check(len(schema_errors(report)) == 1, f"{schema_errors(report)}")


def test_installed(t):
    subprocess.run(["make", "-s", "install", f"DESTDIR={t.dir}", "PREFIX=/usr"], cwd=ROOT, check=True,
                   stdout=subprocess.DEVNULL)
    found = {str(p.relative_to(t.dir)) for p in t.dir.rglob("*") if p.is_file()}
    check(found == {"usr/bin/safescoped", "usr/share/man/man8/safescoped.8",
                    "usr/share/safescoped/safescoped.schema.json"}, f"installed: {found}")


if __name__ == "__main__":
    run(globals(), kernel=False)
