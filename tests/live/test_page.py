#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The html page in a browser: it is used as a person would, and its numbers are compared with the JSON report's."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from harness import BUILD, ROOT, SAFESCOPED, Target, cases, check, check_near, profile_run, program, run, thorough
from test_calls import ALWAYS
from test_diff import Session as Build, diff
from test_export import must_have

HERE = Path(__file__).resolve().parent


def visit(t, page, wanted="", script="open_html.mjs"):
    """Run a script that visits the page; return what it saw."""
    must_have(BUILD / "npm" / "node_modules" / "playwright-core", "playwright-core")
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    must_have(browser or "/nonexistent", "Chromium")
    shots = BUILD / "screenshots" / re.sub(r"\W+", "-", t.name)
    shots.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["node", HERE / script, browser, page, wanted, shots], capture_output=True, text=True,
                          timeout=300)
    check(done.returncode == 0, f"the browser: {done.stderr[-1500:]}")
    seen = json.loads(done.stdout)
    check(not seen["requests"], f"it asked for {seen['requests']}")
    check(not seen["errors"], f"errors: {seen['errors']}")
    return seen


def number(cell):
    """The number in a displayed cell: its tooltip is exact if the text is rounded."""
    text = (cell["title"] or cell["text"]).replace("\u202f", "")
    return None if cell["text"] == "–" else int(text.removesuffix(" ns").removesuffix(" bytes"))


def seconds(text):
    """The time at the beginning of a displayed text."""
    n, unit = re.match(r"([\d.]+) (\w+)", text).groups()
    return float(n) * {"s": 1, "ms": 1e-3}[unit]


def column(table, name):
    i = table["columns"].index(name)
    return [row[i] for row in table["rows"]]


def names(table):
    return [row[0]["text"] for row in table["rows"]]


STATES = {"thread": "table-thread-0", "capability": "table-capability-0", "haskell": "table-haskell-0"}


def lanes_of(report, kind):
    """{the lane's name on the page: lane}"""
    called = {"thread": "{tid} {name}", "capability": "capability {no}"}[kind]
    return {called.format(**lane): lane for lane in report["lanes"] if lane["kind"] == kind}


def check_states(tables, report, what, states=True):
    """The tables of lanes have the report's wall time, CPU time and states. `states` is false for a range: calls that
    are too short for a slice of their own are in the totals only, so the states of slices differ from those."""
    ns = 0 if states else 5000
    for kind in ("thread", "capability"):
        table = tables[STATES[kind]]
        lanes = lanes_of(report, kind)
        check(set(names(table)) == set(lanes), f"{what}: {names(table)}, should be {sorted(lanes)}")
        for row in table["rows"]:
            lane = lanes[row[0]["text"]]
            cells = dict(zip(table["columns"], row))
            check_near(f"{what}: {row[0]['text']}, wall", number(cells["wall"]), lane["wall_ns"], ns)
            if kind == "thread":
                check_near(f"{what}: {row[0]['text']}, CPU", number(cells["CPU"]), lane["cpu_ns"], ns)
            if not states:
                continue
            first = table["columns"].index("CPU" if kind == "thread" else "wall") + 1
            shown = sorted(number(cell) for cell in row[first:] if cell["text"] != "·")
            want = sorted(state for state in lane["states"].values() if state)
            check(shown == want, f"{what}: {row[0]['text']} has states {shown}, should be {want}")


def check_whole(seen, report):
    """All that the page shows for the whole session is in the report."""
    tables = seen["tables"]
    check("the whole session" in seen["basis"].lower() and "accounts" in seen["basis"], f"basis: {seen['basis']}")
    check_states(tables, report, "the whole")
    calls = tables["table-safe_calls-0"]
    got = {(f, c): (number(n), number(total)) for f, c, n, total in
           zip(names(calls), [c["text"] for c in column(calls, "called from")], column(calls, "calls"), column(calls, "total"))}
    want = {(c["function"], c["caller"] or ""): (c["calls"], c["wall_ns"]) for c in report["safe_calls"]}
    check(len(got) == len(calls["rows"]) and set(got.items()) <= set(want.items()), f"safe calls {got}, should be {want}")
    functions = tables["table-functions-0"]
    want = {(f["name"], f["self_ns"], f["total_ns"], f["self_samples"], f["total_samples"]) for f in report["functions"]}
    for row in functions["rows"]:
        got = (row[0]["text"], *(number(cell) for cell in row[2:6]))
        check(got in want, f"function {got} is not in the report")
    check([f["text"] for f in report["findings"]] == seen["findings"] or
          all(any(f["text"] in text for text in seen["findings"]) for f in report["findings"]),
          f"findings {seen['findings']}")


def check_ranges(seen, report, duration):
    """With everything selected, the slices add up to the totals. With a half selected, each lane has that length."""
    check("slices and" in seen["everything"]["basis"], f"basis: {seen['everything']['basis']}")
    check_states(seen["everything"]["tables"], report, "everything selected", states=False)
    half = re.match(r"([\d.]+) (\w+) from ([\d.]+) s", seen["half"]["basis"])
    length, start = float(half[1]) * {"s": 1e9, "ms": 1e6}[half[2]], float(half[3]) * 1e9
    check_near("half of the session", length / duration, 0.5, 0.02)
    for kind in ("thread", "capability"):
        lanes = lanes_of(report, kind)
        for row in seen["half"]["tables"][STATES[kind]]["rows"]:
            lane, wall = lanes[row[0]["text"]], number(row[2])
            want = min(lane["end_ns"], start + length) - max(lane["start_ns"], start)
            # the length is displayed with three digits
            check_near(f"{row[0]['text']} in half of the session", wall, want, 0.01 * length)
    check(seen["half"]["label"].startswith(f"{half[1]} {half[2]} in view"), f"zoomed to {seen['half']['label']}")


def check_selections(seen):
    lane = seen["lanes"][0]
    check(seen["lane"]["pressed"] == "true" and lane in seen["lane"]["basis"], f"{lane}: {seen['lane']['basis']}")
    kind = "capability" if lane.startswith("capability") else "thread"
    check(names(seen["lane"]["tables"][STATES[kind]]) == [lane], "a lane selected, and others in the table")
    check(seen["states"][0] in seen["without"]["basis"], f"a state left out: {seen['without']['basis']}")
    left_out = seen["without"]["tables"][STATES["thread"]]["columns"]
    check(seen["states"][0] not in left_out, f"{seen['states'][0]} is left out, and in {left_out}")
    check(seen["cleared"]["basis"] == seen["basis"] and seen["cleared"]["tables"] == seen["tables"],
          "after all selections the page is not as it was")


def check_keys(seen, report):
    """By keyboard alone: select a lane, a slice with its exact times, the next one, a range, and go back."""
    keys = seen["keys"]
    check(keys["focus"] == "lanes" and keys["outline"] not in ("none", ""), f"the lanes in focus: {keys}")
    check(keys["lane"] in seen["lanes"], f"the first lane: {keys['lane']}")
    check(keys["stops"] == 1, f"Tab stops at {keys['stops']} lanes")
    times = [[int(ns.replace("\u202f", "")) for ns in re.findall(r"([\d\u202f]+) ns", text)] for text in (keys["slice"], keys["next"])]
    for start, end, takes in (t[:3] for t in times):
        check(0 < end - start == takes, f"a slice from {start} to {end} takes {takes}")
    check(times[0][1] == times[1][0], f"the next slice begins at {times[1][0]}, not {times[0][1]}")
    check(re.search(r"boundaries\n(events: exact|samples)", keys["slice"]), f"its boundaries: {keys['slice']}")
    check("slices and" in keys["basis"] and keys["whole"] == seen["basis"], f"a range by keys: {keys}")
    check(not keys["left"], "nothing is selected any more, and a slice is shown")
    check(report["lanes"], "no lanes")


def check_rest(seen):
    check(not any(seen["overflows"].values()), f"too wide: {seen['overflows']}")
    share = re.compile(r"([\d.]+) % of the whole")
    check(seen["zoomed"] == seen["pointed"] and share.search(seen["pointed"]),
          f"pointed at {seen['pointed']!r}, zoomed into {seen['zoomed']!r}")
    check(seen["found"]["flame"].startswith("found: ") and any(table["found"] for table in seen["found"]["tables"].values()),
          f"search: {seen['found']['flame']}")
    dark, paper, after = seen["inks"]
    check(paper == "#000" and dark == after != paper, f"colours in the dark, on paper and then: {seen['inks']}")
    check(all(table["found"] == 0 for table in seen["tables"].values()), "rows are marked, and nothing is searched for")


def check_visit(seen, whole):
    report = whole["targets"][0]
    check_whole(seen, report)
    check_ranges(seen, report, whole["session"]["duration_ns"])
    check_selections(seen)
    check_keys(seen, report)
    check_rest(seen)


@cases("calls", "centres")
def test_replayed_page(t, name):
    done = subprocess.run([SAFESCOPED, "--replay", ROOT / "tests" / "data" / "capture" / name, "-f", "html,json", "-o", t.dir / "p"],
                          capture_output=True, text=True, timeout=120)
    check(done.returncode in (0, 1), f"the replay ended with {done.returncode}: {done.stderr}")
    report = json.loads((t.dir / "p.json").read_text())
    check_visit(visit(t, t.dir / "p.html", report["targets"][0]["functions"][0]["name"]), report)


def test_collections_left_out(t):
    """Of very many collections only the longest are on the page: the sums of the session include the others, those of a
    range, and all of them if the session has missed some, are lower bounds."""
    subprocess.run([SAFESCOPED, "--replay", ROOT / "tests" / "data" / "capture" / "calls", "-f", "html,json", "-o", t.dir / "p"],
                   capture_output=True, timeout=120, check=False)
    gc = json.loads((t.dir / "p.json").read_text())["targets"][0]["gc"]
    # the same page, with only one of the collections on it
    html = (t.dir / "p.html").read_text()
    head, here, tail = re.fullmatch(r'(.*"gcs":)(\[\[.*?\]\])(,"gcs_rest":\[.*)', html, re.S).groups()
    first, *rest = json.loads(here)
    sums = [sum(end - start for start, end, *_ in rest), sum(gc[2] for gc in rest)]
    tail = tail.replace('"gcs_rest":[0,0]', f'"gcs_rest":{json.dumps(sums)}').replace('{"gcs":0,', f'{{"gcs":{len(rest)},')
    (t.dir / "p.html").write_text(head + json.dumps([first]) + tail)
    part = visit(t, t.dir / "p.html", "safe_half_2ms")
    title, of_range = (tables["table-gcs-0"]["title"] for tables in (part["tables"], part["everything"]["tables"]))
    found = re.match(r"Collections: (\d+), paused for ([\d.]+) µs, before that waited ([\d.]+) ms; the longest$", title)
    check(rest and found and int(found[1]) == gc["count"], f"{title}, should be {gc['count']}")
    check_near("pauses in µs", float(found[2]), gc["pause_ns"] / 1e3, 0.5)
    check(of_range.startswith("Collections: at least 1, paused for at least "), f"of a range: {of_range}")
    (t.dir / "p.html").write_text(html.replace('"gcs_missed":false', '"gcs_missed":true'))
    title = visit(t, t.dir / "p.html", "safe_half_2ms")["tables"]["table-gcs-0"]["title"]
    check(title.startswith(f"Collections: at least {gc['count']}, paused for at least "), f"some were missed: {title}")


@thorough
def test_in_firefox(t):
    """Firefox has the same tables as Chromium, for the whole session and for all of its slices."""
    firefox = next(filter(None, map(shutil.which, ("firefox-esr", "firefox"))), None)
    must_have(firefox or "/nonexistent", "Firefox")
    subprocess.run([SAFESCOPED, "--replay", ROOT / "tests" / "data" / "capture" / "calls", "-f", "html", "-o", t.dir / "p"],
                   capture_output=True, timeout=120, check=False)
    profile, shot = t.dir / "firefox", BUILD / "screenshots" / "firefox.png"
    profile.mkdir()
    shot.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["node", "--experimental-websocket", HERE / "open_firefox.mjs", firefox, t.dir / "p.html", profile, shot],
                          capture_output=True, text=True, timeout=300)
    check(done.returncode == 0, f"Firefox: {done.stderr[-1500:]}")
    seen = json.loads(done.stdout)
    check(not seen["errors"] and seen["ready"] == "all" and seen["painted"], f"in Firefox: {seen['errors']}, {seen['ready']}")
    check(not any(seen["wide"].values()), f"too wide in Firefox: {seen['wide']}")
    other = visit(t, t.dir / "p.html", "safe_half_2ms")

    def texts(tables):
        return {name: [[cell["text"] for cell in row] for row in table["rows"]] for name, table in tables.items()}

    check(seen["basis"] == other["basis"] and seen["tables"] == texts(other["tables"]), "other tables than in Chromium")
    check(seen["selected"]["basis"] == other["everything"]["basis"], f"selected: {seen['selected']['basis']}")
    check(seen["selected"]["tables"] == texts(other["everything"]["tables"]), "other tables of what is selected")


@thorough
def test_live_page(t):
    """A program's own name is shown as text, not as HTML."""
    evil = t.dir / "<b>bold<!--"
    shutil.copy(program("Calls"), evil)
    target = Target([evil, 2, "safe_half_2ms=300", "unsafe_spin_1ms=300", "+RTS", "-N2"])
    t.started.append(target)
    session = t.attach(target, *ALWAYS, "-F", "499", "-f", "json,html")
    target.go()
    target.result()
    check(session.wait() == 0, f"safescoped failed: {session.err.seen}")
    seen = visit(t, t.dir / "p.html", "safe_half_2ms")
    check(seen["heading"].startswith(f"<b>bold<!-- (pid {target.pid})") and seen["title"] == seen["heading"],
          f"its heading is {seen['heading']}")
    check("b" not in seen["elements"], f"elements: {seen['elements']}")
    check_visit(seen, t.report().json)


def test_several_processes(t):
    """Two programs on one CPU: each one, selected alone, has its own share of everything, and waits for the other."""
    cpu = str(min(os.sched_getaffinity(0)))
    targets = [Target(["taskset", "-c", cpu, program("Calls"), 1, f"unsafe_spin_1ms={n}"]) for n in (400, 1200)]
    t.started.extend(targets)
    session = t.attach(targets[0], "--pid", targets[1].pid, *ALWAYS, "-F", "499", "-f", "json,html")
    for target in targets:
        target.go()
    for target in targets:
        target.result()
    check(session.wait() == 0, f"safescoped failed: {session.err.seen}")
    seen = visit(t, t.dir / "p.html", script="several_html.mjs")
    reports = {f"Calls (pid {r['pid']})": r for r in t.report().json["targets"]}
    check(seen["offered"][0] == "all" and sorted(seen["offered"][1:]) == sorted(reports), f"to choose from: {seen['offered']}")
    for name, report in reports.items():
        one, lanes = seen["processes"][name], [lane for lane in report["lanes"] if lane["kind"] == "thread"]
        check(f"all OS threads of {name}:" in one["basis"], f"{name}: {one['basis']}")
        check_near(f"{name}: CPU of the flame graph", seconds(one["flame"]), sum(lane["cpu_ns"] for lane in lanes) / 1e9, 0.01)
        shown = {row[0]["text"]: number(row[3]) for id, table in one["tables"].items() if id.startswith("table-thread-")
                 for row in table["rows"]}
        check(shown == {f"{lane['tid']} {lane['name']}": lane["cpu_ns"] for lane in lanes}, f"{name}: threads {shown}")
        check(not one["overflows"], f"too wide: {one['overflows']}")
    check(seen["again"]["basis"] == seen["whole"]["basis"] and seen["again"]["tables"] == seen["whole"]["tables"],
          "after all processes again the page is not as it was")
    for own, other in (list(reports), list(reports)[::-1]):
        waits = [(text, taker) for lane, text, taker in seen["waits"] if lane.endswith(f" of {own}")]
        check(any(f" of {other} for " in text for text, _ in waits), f"{own} waited for {waits}")
        check(any(taker.endswith(f" of {other}") for _, taker in waits), f"{own} lost its CPU to {waits}")


# ── a walk ──


def allocated_in(basis):
    about, unit = re.search(r"About ([\d.]+) (.?)B were allocated", basis).groups()
    return float(about) * {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}[unit]


def check_allocation(seen, truth):
    """`pile` allocates, all of it on capability 0: so the page has it for the whole session and for each selected part."""
    for what, table in (("the whole", seen["whole"]), ("a range of all", seen["range"]["table"]),
                        ("capability 0", seen["lanes"][0]["table"])):
        check("pile" in names(table)[0], f"{what}: what allocates most: {names(table)[:3]}")
        most = max(number(row[3]) for row in table["rows"] if "pile" in row[0]["text"])
        check_near(f"{what}: what it allocated", most, truth, 0.1 * truth)
    check(any(re.search("pile.*\n.*B, ", text) for text in seen["stack"]), f"the graph of bytes: {seen['stack']}")
    of = [allocated_in(part["basis"]) for part in (seen["range"], *seen["lanes"])]
    check_near("what was allocated in a range of all", of[0], truth, 0.1 * truth)
    check_near("on capability 0", of[1], truth, 0.1 * truth)
    check(of[2] < 0.1 * truth, f"on capability 1, where nothing allocates much: {of[2]} bytes")
    for part in (seen["range"], *seen["lanes"]):
        check(f"About {part['flame'].split(' in all')[0]} were allocated" in part["basis"], f"{part['basis']}, but {part['flame']}")
    check(allocated_in(seen["without"]["basis"]) == 0 and seen["without"]["flame"].startswith("0 B") and
          "table" not in seen["without"], f"without Haskell code: {seen['without']}")


def section(text, title):
    """The lines of the text report below a title, up to an empty line."""
    found = re.search(rf"^{re.escape(title)}.*\n((?:.+\n)+)", text, re.M)
    check(found, f"no section {title!r} in {text}")
    return found[1].splitlines()


def check_text(text, truth):
    """The same questions as for the page, except the comparison (test_diff.py checks that), answered by the text report
    alone."""
    stands_out = " ".join(line.strip() for line in section(text, "What stands out"))
    haskell = [line for line in section(text, "Top functions") if "Main." in line]
    check("digest" in haskell[0], f"the function that uses the CPU: {haskell}")
    calls = [line for line in section(text, "Safe calls") if "faulty_query" in line]
    check(len(calls) == 1 and "fetch" in calls[0] and f" {truth['queries']} " in calls[0], f"the call that blocks: {calls}")
    check(re.search("GC waited .* for capability 1 .*held up by the unsafe call faulty_take_lock, called from .*rebuild.*the longest at [0-9.]+ s",
                    stands_out), f"what held the collections up, and when: {stands_out}")
    waits = " ".join(line.strip() for line in section(text, "Where the time went")).partition("waited in or for: ")[2]
    check(re.search(rf"capability 1 \([0-9.]+ ms, {truth['queriers'][0]}\)", waits), f"who waited for which capability: {waits}")
    allocates = section(text, "Allocation:")
    check("pile" in allocates[2], f"what allocates: {allocates}")


@thorough
def test_walk(t):
    """Without any knowledge of the program one finds its faults from the page alone, and from the text alone, with the
    numbers that the program itself measured."""
    capture = t.dir / "faulty.capture"
    truth, report, target = profile_run(t, "Faulty", rts=("-N2",),
                                        options=(*ALWAYS, "-F", "499", "-f", "json,html", "--save", capture))
    shown = subprocess.run([SAFESCOPED, "--replay", capture, "-f", "text", "-o", "-"], capture_output=True, text=True, timeout=60)
    check(shown.returncode == 0, f"the text: {shown.stderr}")
    check_text(shown.stdout, truth)
    shutil.move(t.dir / "p.html", t.dir / "faulty.html")
    old, new = Build(t, "old", "thr"), Build(t, "new", "slower")
    diff(old.capture, new.capture, "--per", "changed_fetch", "-f", "html", "-o", t.dir / "changed")
    seen = visit(t, t.dir / "faulty.html", t.dir / "changed.html", script="walk_html.mjs")
    # 1. which function uses the CPU
    haskell = [row for row in seen["functions"]["rows"] if row[0]["text"].startswith(("Main.", "~Main."))]
    check("digest" in haskell[0][0]["text"], f"the function that uses the CPU: {[row[0]['text'] for row in haskell[:5]]}")
    # 2. which foreign call blocks, and from where
    call = {title: cell["text"] for title, cell in seen["call"].items()}
    check(call["function"] == "faulty_query" and "fetch" in call["called from"], f"the call that blocks: {call}")
    check(int(call["calls"]) == truth["queries"], f"{call['calls']} calls, the program counted {truth['queries']}")
    check_near("how long it took", number(seen["call"]["total"]), truth["queried_ns"], 0.02 * truth["queried_ns"])
    # 3. what held the collections up
    held = seen["heldUp"]
    check("faulty_take_lock" in held["said"] and "rebuild" in held["said"] and "capability 1" in held["said"], f"the finding: {held['said']}")
    check([cell["text"] for cell in held["calls"]["rows"][0][:1]] == ["faulty_take_lock"], f"unsafe calls at that moment: {held['calls']['rows']}")
    # 4. when the longest pause was, and what ran then
    pause = seen["longest"]["pause"]
    start, waited = report.json["session"]["start_unix_ns"] + number(pause["at"]), number(pause["waited before"])
    locked = max(min(start, at + ns) - max(start - waited, at) for at, ns in truth["locks"])
    check(waited > 100e6 and locked > 0.7 * waited, f"it waited {waited} ns before {start}, {locked} ns of it for a lock: {truth['locks']}")
    check(pause["longest for capability"]["text"] == "1", f"it waited for capability {pause['longest for capability']['text']}")
    check(seen["longest"]["calls"]["rows"][0][0]["text"] == "faulty_take_lock", f"what ran then: {seen['longest']['calls']['rows']}")
    # 5. which thread waited for which capability
    waiting = seen["waiting"]
    tid = int(waiting["most"]["OS thread"]["text"].split()[0])
    check(tid in truth["queriers"], f"thread {tid} waited most, the calls were made by {truth['queriers']}")
    check(waiting["slice"].startswith("waiting for a capability") and "capability\n1" in waiting["slice"] and "fetch" in waiting["slice"],
          f"its longest wait: {waiting['slice']}")
    check(target.pid, "no process")
    # 6. what allocates
    check_allocation(seen["allocating"], truth["allocated"])
    # nothing can be allocated while a collection waits to begin
    held = allocated_in(seen["heldUp"]["basis"])
    check(held < 0.01 * truth["allocated"], f"while the collections were held up {held} bytes were allocated")
    # 7. what changed between two builds
    lines = [line for line in seen["changed"]["text"].splitlines() if "slower: " in line]
    check(len(lines) == 1 and re.search(r"slower: ~?Main\.(\$w)?changed\b", lines[0]), f"what got slower: {lines}")
    frames = [text for text in seen["changed"]["described"] if re.match(r"~?Main\.(\$w)?changed\n", text)]
    check(frames and all(", more" in text for text in frames), f"the graph says {frames}")


if __name__ == "__main__":
    run(globals())
