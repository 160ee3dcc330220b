#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The modules of a program without symbols: the package and module of each sampled frame of a stripped program, against
the symbols of the same program before it was stripped, by binutils."""

import bisect
import http.server
import os
import re
import shutil
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

from harness import SAFESCOPED, Report, Skip, cases, check, profile_run, program, run
from pushed import CAPTURE

# Shares of the samples' frames. Debian's libraries for GHC are linked by sections, of which only those that are used
# stay, and few of them contain a marker: the others' module is a guess, and is marked as one.
RIGHT_PACKAGE = 0.99
RIGHT_OWN_MODULE = 0.95
# Of the libraries' frames, if archives name functions around them.
RIGHT_AMONG_ARCHIVES = 0.82
WRONG_AND_SURE = 0.01

Z_NAMES = {"Z": "Z", "C": ":", "L": "(", "R": ")", "M": "[", "N": "]", "z": "z", "a": "&", "b": "|", "c": "^",
           "d": "$", "e": "=", "g": ">", "h": "#", "i": ".", "l": "<", "m": "-", "n": "!", "p": "+", "q": "'",
           "r": "\\", "s": "/", "t": "*", "u": "_", "v": "%"}


def zdecode(text):
    return re.sub(r"[zZ](\w)", lambda m: Z_NAMES.get(m[1], m[0]), text)


def code_of(twin):
    """[(address, (package, module) or None)] of the code of a program with symbols, in ascending order."""
    symbols = []
    listed = subprocess.run(["nm", "-n", twin], capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        fields = line.split()
        if len(fields) != 3 or fields[1] not in "tT":
            continue
        m = re.match(r"(?:([A-Za-z][A-Za-z0-9]*)_)?([A-Z][A-Za-z0-9]*)_\w+_info$", fields[2])
        # "Main_Foo_info" belongs to Main, not to Foo in a package Main
        if m and m[1] and not m[1][0].islower() and "zm" not in m[1]:
            m = re.match(r"()([A-Z][A-Za-z0-9]*)_", fields[2])
        symbols.append((int(fields[0], 16), (zdecode(m[1] or ""), zdecode(m[2])) if m else None))
    return symbols


def has_name(raw, module):
    """Whether a file contains a module's name anywhere: alone, before a constructor's name, or as a source path."""
    name, path = re.escape(module), re.escape(module.replace(".", "/"))
    text = rf"(?<![\w.]){name}(\.[A-Z:(\[][^.\0]*)?\0|(?<!\w){path}\.l?hs"
    return re.search(text.encode(), raw) is not None


def owners(symbols, address):
    """The modules that the code at the address may belong to: a local closure's code comes before the binding that
    contains it."""
    after = bisect.bisect_right(symbols, address, key=lambda s: s[0])
    if after and symbols[after - 1][0] == address:
        return {symbols[after - 1][1]}
    return {s[1] for s in symbols[max(0, after - 1):after + 1]}


def bases_of(said):
    """{(package, module): where its code begins}, from the output of -v -v."""
    bases = {}
    for line in said:
        m = re.search(r": code of ([^:]+):(\S+) at 0x\w+, counted from 0x(\w+)", line)
        if m:
            key = ("" if m[1] == "main" else m[1], m[2])
            bases[key] = min(bases.get(key, int(m[3], 16)), int(m[3], 16))
    return bases


def end_of_main(said):
    """Where the code of the module Main ends, from the output of -v -v."""
    found = (re.search(r": code of [^:]+:(\S+) at 0x(\w+), counted", line) for line in said)
    pieces = sorted({(int(m[2], 16), m[1]) for m in found if m})
    last = max(i for i, (_, module) in enumerate(pieces) if module == "Main")
    return pieces[last + 1][0]


def session_of_shelf(t, way, *options):
    """(its report, what safescoped printed). With -v -v that is more than fits into a pipe that nobody reads."""
    target = t.target("Shelf", 3, way=f"{way}.stripped")
    session = t.attach(target, "-v", "-v", "-F", "499", "--max-overhead", "1000", *options)
    target.go()
    check(session.wait() == 0, f"safescoped failed: {session.err.seen[-3:]}")
    check(target.wait() == 0, "the test program failed")
    return t.report().target(target.pid), session.err.seen


def held_to(symbols, bases, report):
    """[(samples, whether it is marked as uncertain, package, module, the truth, name)] of all frames that have a module
    but no function name."""
    held = []
    for f in report["functions"]:
        m = re.fullmatch(r"(~?)(\S+)\+0x([0-9a-f]+)", f["name"])
        if f["kind"] != "haskell" or not m or f["name"].startswith("["):
            continue
        check(f["module"] == m[2], f"{f['name']} is in module {f['module']}")
        key = (f["package"] or "", f["module"])
        check(key in bases, f"{key} is not among what was found")
        truth = owners(symbols, bases[key] + int(m[3], 16))
        held.append((f["total_samples"], bool(m[1]), *key, truth, f["name"]))
    return held


@cases("v", "thr", "split")
def test_modules(t, way):
    """Frames are attributed to the right package and module. If the program is linked by sections, only modules whose
    name is in the file have to be right: the name is missing if no constructor of the module is used and it cannot
    fail. Main is placed without it."""
    twin = program("Shelf", way)
    report, said = session_of_shelf(t, way)
    symbols, bases = code_of(twin), bases_of(said)
    raw = program("Shelf", f"{way}.stripped").read_bytes()
    named = {module for _, module in {s[1] for s in symbols if s[1]}
             if way != "split" or module == "Main" or has_name(raw, module)}
    main = next(int(line.split()[0], 16) for line in
                subprocess.run(["nm", twin], capture_output=True, text=True, check=True).stdout.splitlines()
                if line.endswith(" T main"))
    check(end_of_main(said) == main, f"Main ends at {end_of_main(said):#x}, main() is at {main:#x}")
    check(len({m for _, m in bases}) > 20, f"the modules that were found: {sorted(bases)}")
    sums = {"all": 0, "package": 0, "own": 0, "own module": 0, "wrong and sure": 0, "module": 0, "named": 0}
    wrong = []
    for n, unsure, package, module, truth, name in held_to(symbols, bases, report):
        right = (package, module) in truth
        sums["all"] += n
        sums["package"] += n if package in {o[0] for o in truth if o} else 0
        sums["module"] += n if right else 0
        sums["named"] += n if any(o and o[1] in named for o in truth) else 0
        if any(o and o[0] == "" and o[1] in named for o in truth):
            sums["own"] += n
            sums["own module"] += n if right else 0
        if not right:
            sums["wrong and sure"] += 0 if unsure else n
            wrong.append((n, name, package, truth))
    wrong = sorted(wrong, key=lambda w: -w[0])[:8]
    print(f"  {way}: {sums}")
    check(sums["all"] >= 1000, f"hardly any frame has a module: {sums}")
    check(sums["package"] >= RIGHT_PACKAGE * sums["all"], f"package: {sums}: {wrong}")
    check(sums["own module"] >= RIGHT_OWN_MODULE * sums["own"], f"own module: {sums}: {wrong}")
    if way == "split":
        check(sums["module"] >= RIGHT_OWN_MODULE * sums["named"], f"modules with a name: {sums}: {wrong}")
    check(sums["wrong and sure"] <= WRONG_AND_SURE * sums["all"], f"wrong: {sums}: {wrong}")
    leaves = report["leaf_names"]
    check(leaves["module"] >= 0.5 * sum(leaves.values()), f"names of what ran: {leaves}")


@cases("v", "split")
def test_among_archives(t, way):
    """Functions that archives name also place the code between them, for which the file has no module's name."""
    twin = program("Shelf", way)
    report, said = session_of_shelf(t, way, "--archives",
                                    subprocess.run(["ghc", "--print-libdir"], capture_output=True, text=True,
                                                   check=True).stdout.strip())
    held = held_to(code_of(twin), bases_of(said), report)
    by_name = sum(f["total_samples"] for f in report["functions"]
                  if f["kind"] == "haskell" and f["module"] and "+0x" not in f["name"])
    every = by_name + sum(n for n, *_ in held)
    right = by_name + sum(n for n, _, package, module, truth, _ in held if (package, module) in truth)
    packages = by_name + sum(n for n, _, package, _, truth, _ in held if package in {o[0] for o in truth if o})
    sure = sum(n for n, unsure, package, module, truth, _ in held if not unsure and (package, module) not in truth)
    placed = {(m[1], m[2]) for line in said if (m := re.search(r": code of ([^:]+):(\S+) at .*, by archives$", line))}
    own = [h for h in held if any(o and o[0] == "" for o in h[4])]
    right_own = sum(n for n, _, package, module, truth, _ in own if (package, module) in truth)
    library, right_library = every - sum(h[0] for h in own), right - right_own
    wrong = sorted(((n, name, truth) for n, _, package, module, truth, name in held if (package, module) not in truth),
                   key=lambda w: -w[0])[:8]
    print(f"  {way}: {every} frames, package {packages}, module {right}, "
          f"of libraries {right_library} of {library}, wrong and sure {sure}; "
          f"by archives {by_name}, of {len(placed)} modules")
    check(by_name > 0 and len(placed) > 20, f"archives name {by_name} frames, and functions of {len(placed)} modules")
    check(packages >= RIGHT_PACKAGE * every, f"package: {packages} of {every}: {wrong}")
    check(right_library >= RIGHT_AMONG_ARCHIVES * library, f"module: {right_library} of {library}: {wrong}")
    check(sure <= WRONG_AND_SURE * every, f"wrong: {sure} of {every}: {wrong}")


@cases("thr", "thr.stripped")
def test_runtime(t, way):
    """All of the runtime's code, including its Cmm code, is in the package rts, with symbols and without; and no other
    code is."""
    _, report, _ = profile_run(t, "Alloc", "split", 3, way=way, rts=("-A64k",),
                               options=("--max-overhead", "100", "-F", "999"))
    functions = report.target()["functions"]
    ours = [f for f in functions if f["kind"] in ("gc", "rts") or re.match(r"~?((__)?stg_|\[RTS\]\+|\[GC\]\+)", f["name"])]
    print(f"  {way}: {len(ours)} functions, {sorted(f['name'] for f in ours if f['kind'] == 'haskell')} in Cmm")
    check(any(f["kind"] == "haskell" for f in ours) and any(f["kind"] == "gc" for f in ours), f"no such code: {functions}")
    wrong = [(f["name"], f["package"]) for f in ours if f["package"] != "rts"]
    check(not wrong, f"not in the package rts: {wrong}")
    wrong = [f["name"] for f in functions if f["package"] == "rts" and f not in ours]
    check(not wrong, f"in the package rts: {wrong}")


def session_of(t, target):
    """(the target's report, the path of the capture)."""
    capture = t.dir / "capture"
    session = t.attach(target, "-F", "999", "--max-overhead", "1000", "--save", capture)
    target.go()
    check(target.wait() == 0, "the test program failed")
    check(session.wait() == 0, f"safescoped failed: {session.err.seen[-3:]}")
    return t.report().target(target.pid), capture


def replay(t, capture, *options):
    out = t.dir / "replay.json"
    done = subprocess.run([SAFESCOPED, "--replay", capture, "-f", "json", "-o", out, *options],
                          capture_output=True, text=True,
                          env={**os.environ, "DEBUGINFOD_CACHE_PATH": str(t.dir / "cache")})
    check(done.returncode == 0, f"the replay: {done.stderr}")
    return Report(out).target()


def by_strings(report):
    """{function: samples} of the runtime's functions that have a name."""
    return {f["name"]: f["total_samples"] for f in report["functions"]
            if f["kind"] in ("gc", "rts") and re.fullmatch(r"\w+", f["name"])}


class Server:
    """Debian's debuginfod, with a single file."""

    def __init__(self, t, file, kind, build_id):
        if not shutil.which("debuginfod"):
            raise Skip("no debuginfod; run: scripts/install-deps --test")
        folder = t.dir / "served"
        folder.mkdir()
        shutil.copy(file, folder)
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self.process = subprocess.Popen(["debuginfod", "-F", "-p", str(port), "-d", ":memory:", folder],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        t.started.append(self)
        deadline = time.monotonic() + 30
        while not self.has(f"/buildid/{build_id}/{kind}"):
            check(time.monotonic() < deadline, f"the server does not know the {kind} of {build_id}")
            time.sleep(0.2)

    def has(self, path):
        try:
            with urllib.request.urlopen(self.url + path, timeout=10) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False

    def kill(self):
        self.process.kill()
        self.process.wait()


def lacks_symbols(report):
    return any(text.startswith("no symbols") for text in report["missing"])


@cases("symbols", "debug file", "directory", "server", "server's executable")
def test_twin(t, case):
    """A replay names functions without symbols by the symbols of the unstripped twin. The names that the session found
    for the runtime's functions, by their strings, are the same as the twin's."""
    twin = program("Work", "thr")
    target = t.target("Work", "alloc", 2, "+RTS", "-A256k", way="thr.stripped")
    stripped, capture = session_of(t, target)
    debug, server = t.dir / "debug", None
    subprocess.run(["objcopy", "--only-keep-debug", twin, debug], check=True)
    if case == "directory":
        build_id = stripped["build_id"]
        place = t.dir / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"
        place.parent.mkdir(parents=True)
        debug.rename(place)
        options = ("--symbols-dir", t.dir)
    elif case.startswith("server"):
        kind = "executable" if case.endswith("executable") else "debuginfo"
        server = Server(t, twin if kind == "executable" else debug, kind, stripped["build_id"])
        options = ("--debuginfod", server.url)
    else:
        options = ("--symbols", twin if case == "symbols" else debug)
    report = replay(t, capture, *options)
    if server:
        # what it served is cached: it is not asked again
        server.kill()
        again = replay(t, capture, *options)
        check(again["names"] == report["names"], f"names from the cache: {again['names']}")
    check(lacks_symbols(stripped) and not lacks_symbols(report), f"missing: {stripped['missing']}, {report['missing']}")
    before, after = stripped["names"], report["names"]
    check(before["module"] + before["strings"] >= 0.5 * sum(before.values()), f"names of the session: {before}")
    check(after["strings"] == 0 and after["module"] == 0, f"names that are left: {after}")
    # a library may have DWARF
    check(after["none"] <= 0.05 * (after["exact"] + after["nearest"]), f"names by the twin: {after}")
    named, called = by_strings(stripped), by_strings(report)
    check(len(named) >= 3, f"of the runtime's functions: {named}")
    check(named.items() <= called.items(), f"{named}, by symbols {called}")
    check(sum(named.values()) >= 0.6 * sum(called.values()), f"{named} of {called}")


class Late(http.server.BaseHTTPRequestHandler):
    """Passes on what debuginfod has, once it is allowed to."""

    def do_GET(self):
        self.server.may.wait()
        try:
            with urllib.request.urlopen(self.server.behind + self.path, timeout=60) as answer:
                body, status = answer.read(), 200
        except urllib.error.HTTPError as e:
            body, status = b"", e.code
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@cases("while it goes on", "at its end")
def test_live_server(t, when):
    """A session requests symbols while it runs, and waits for them at its end: what was recorded before they arrived is
    named as well, in a replay too. Neither its start nor its target is delayed."""
    twin = program("Work", "thr")
    target = t.target("Work", "alloc", 3, way="thr.stripped")
    debug = t.dir / "debug"
    subprocess.run(["objcopy", "--only-keep-debug", twin, debug], check=True)
    notes = subprocess.run(["readelf", "-n", twin], capture_output=True, text=True, check=True).stdout
    server = Server(t, debug, "debuginfo", re.search(r"Build ID: (\w+)", notes)[1])
    late = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Late)
    late.behind, late.may = server.url, threading.Event()
    threading.Thread(target=late.serve_forever, daemon=True).start()
    t.finally_do(late.shutdown)
    t.finally_do(late.may.set)
    session = t.session("--pid", target.pid, "-v", "-f", "json,folded", "-o", t.stem, "-F", "999",
                        "--max-overhead", "1000", "--save", t.dir / "capture", "--debuginfod",
                        f"http://127.0.0.1:{late.server_address[1]}",
                        env={**os.environ, "DEBUGINFOD_CACHE_PATH": str(t.dir / "cache")})
    session.wait_attached()
    target.go()
    if when == "while it goes on":
        time.sleep(1)
        late.may.set()
    check(target.wait() == 0, "the test program failed")
    late.may.set()
    check(session.wait() == 0, f"safescoped failed: {session.err.seen[-3:]}")
    report = t.report().target(target.pid)
    for names in report["names"], report["leaf_names"]:
        check(names["module"] == names["strings"] == 0, f"names that are left: {names}")
        check(names["exact"] >= 0.5 * sum(names.values()), f"names: {names}")
    check(not lacks_symbols(report), f"missing: {report['missing']}")
    folded = t.stem.with_suffix(".folded").read_text()
    check("Main.$wgrowTree" in folded and "Main+0x" not in folded, "stacks have the names of before")
    again = replay(t, t.dir / "capture")
    check(not lacks_symbols(again), f"missing in a replay: {again['missing']}")
    check(again["names"] == report["names"], f"a replay has {again['names']}, the session {report['names']}")
    check([f["name"] for f in again["functions"]] == [f["name"] for f in report["functions"]], "functions differ")


@cases("one", "windows")
def test_failed_download(t, sessions):
    """The report has the reason why a server did not provide the symbols, in each window."""
    target = t.target("Work", "alloc", 2, way="thr.stripped")
    folder = t.dir / "windows"
    folder.mkdir()
    options = ("--window", 0.5, "-o", folder) if sessions == "windows" else ("-o", t.stem)
    session = t.session("--pid", target.pid, "-v", "-f", "json", *options, "--max-overhead", "1000", "--debuginfod",
                        "http://user:password@127.0.0.1:1",
                        env={**os.environ, "DEBUGINFOD_CACHE_PATH": str(t.dir / "cache")})
    session.wait_attached()
    target.go()
    check(target.wait() == 0, "the test program failed")
    session.wait()
    reports = [Report(p) for p in sorted(folder.iterdir())] if sessions == "windows" else [t.report()]
    # the process may have ended just as the last window began
    reports = [r for r in reports if r.json["targets"]]
    check(reports, "no window has the process")
    for report in reports[-2:]:
        missing = [text for text in report.target(target.pid)["missing"] if "debuginfod" in text]
        check(len(missing) == 1 and missing[0].startswith("no symbols from debuginfod: http://…@127.0.0.1:1: "), f"{missing}")


def test_twin_of_another(t):
    """Another program's symbols name nothing, and that is reported."""
    target = t.target("Work", "alloc", 1, way="thr.stripped")
    stripped, capture = session_of(t, target)
    out = t.dir / "replay.json"
    done = subprocess.run([SAFESCOPED, "--replay", capture, "-f", "json", "-o", out, "--symbols",
                           program("Shelf", "thr")], capture_output=True, text=True)
    check("--force" in done.stderr, f"it printed {done.stderr}")
    check(Report(out).target()["names"] == stripped["names"], "another program gave names")
    done = subprocess.run([SAFESCOPED, "--replay", capture, "-f", "json", "-o", out, "--debuginfod",
                           "http://user:password@127.0.0.1:1/"], capture_output=True, text=True,
                          env={**os.environ, "DEBUGINFOD_CACHE_PATH": str(t.dir / "cache")})
    check("://…@127.0.0.1:1/: " in done.stderr and "password" not in done.stderr, f"it printed {done.stderr}")
    # a directory that does not exist, and one without a matching file
    for where, code, said in ("none", 2, "No such file"), ("p.json", 2, "Not a directory"), (".", 0, "build-ids"):
        done = subprocess.run([SAFESCOPED, "--replay", capture, "-f", "json", "-o", out, "--symbols-dir", t.dir / where],
                              capture_output=True, text=True)
        check(done.returncode == code and said in done.stderr, f"{where}: {done.returncode}, {done.stderr}")


def test_server_of_something_else(t):
    """What is wrong with the page that a login portal, or a server of another kind, sends for each address."""
    class Portal(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<html>Please log in</html>")

        def log_message(self, *_):
            pass

    portal = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Portal)
    threading.Thread(target=portal.serve_forever, daemon=True).start()
    t.finally_do(portal.shutdown)
    done = subprocess.run([SAFESCOPED, "--replay", CAPTURE, "-f", "json", "-o", t.dir / "replay.json", "--debuginfod",
                           f"http://127.0.0.1:{portal.server_port}"], capture_output=True, text=True,
                          env={**os.environ, "DEBUGINFOD_CACHE_PATH": str(t.dir / "cache")})
    check("what was received is not an ELF file" in done.stderr, f"it printed {done.stderr}")


if __name__ == "__main__":
    run(globals())
