#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The documents agree with the program: the manual page, the schema of the report, what is installed."""

import json
import re
import subprocess

from harness import ROOT, SAFESCOPED, SCHEMA, Report, cases, check, run, schema, schema_errors

MANUAL = ROOT / "scripts" / "safescoped.8"
OPTIONS = ROOT / "user" / "cli" / "options.c"
GOLDEN = ROOT / "tests" / "data" / "export"
CAPTURES = ROOT / "tests" / "data" / "capture"
# Options that argp adds to the table.
BY_ARGP = {("help", "?"), ("usage", None), ("version", "V")}
# Fields that may be absent.
OPTIONAL = ("schema/ended_programs", "session/bpf_ns", "target/cost_centre_stacks", "target/marks", "target/windows")


def in_the_table():
    """{(long name, letter)}"""
    table = OPTIONS.read_text().partition("argp_options[] = {")[2].partition("{0}")[0]
    found = re.findall(r'{(?:"([a-z-]+)"|NULL), (?:\'(.)\'|OPT_\w+),', table)
    return {(name or None, letter or None) for name, letter in found} | BY_ARGP


def in_the_help():
    text = subprocess.run([SAFESCOPED, "--help"], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^ +(?:-([\w?])(?:, )?)? *(?:--([a-z-]+))?(?:=\S+)?(?: |$)", text, re.M)
    return {(name or None, letter or None) for letter, name in found if name or letter}


def in_the_manual():
    """Letters without a long name in one item are options of their own: -h and -?."""
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
    """The manual page names each state, kind of finding and format."""
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
    """The unit tests' golden reports are valid, except for what is hostile on purpose."""
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
    """The schema is valid and closed; every field is described, and required unless it is optional."""
    text = json.loads(SCHEMA.read_text())
    schema().check_schema(text)
    for path, part in objects_of(text):
        check(part.get("additionalProperties") is False, f"{path} is open")
        for name, field in part["properties"].items():
            check(described(field, text["$defs"]), f"{path}/{name} is not described")
            optional = f"{path}/{name}".endswith(OPTIONAL)
            check((name in part["required"]) != optional, f"{path}/{name}: required or not?")


def test_schema_refuses(t):
    """An extra field, a missing one, one of another type, one in the wrong place."""
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
