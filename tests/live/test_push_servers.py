#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""--push to servers that misbehave: each window arrives exactly once, or is counted as dropped. A replay in windows is
pushed, and also written by -f otlp: what arrives is compared with those files byte for byte."""

import fcntl
import gzip
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

from bad_server import CLOSE, HANG, Server, answer, partial, slowly
from harness import Skip, cases, check, run, thorough
from pushed import Pushed

SECRET = "Bearer 2f6c1ab0"


def test_request(t):
    server = Server(t)
    pushed = Pushed(t, server.url())
    pushed.check_all(server)
    for request in server.requests:
        check(request.line == "POST /v1development/profiles HTTP/1.1", request.line)
        check(request.headers["content-type"] == "application/x-protobuf"
              and request.headers["content-encoding"] == "gzip", f"{request.headers}")
    check("undelivered" not in pushed.said and "refused" not in pushed.said, pushed.said)


def test_short_outages(t):
    """Of several short outages only the first is reported."""
    server = Server(t, [answer(503, b""), answer(200)] * 3)
    pushed = Pushed(t, server.url())
    check(pushed.code == 0 and len(server.requests) > 6, f"{pushed.code}: {pushed.said}")
    for line in ("are kept and retried", "it accepts profiles again"):
        check(pushed.said.count(line) == 1, f"{line}: {pushed.said}")


@cases("400", "401", "404", "413", "302", "501")
def test_refused(t, status):
    """What is refused for good is not sent again; it is counted, and reported once."""
    server = Server(t, [answer(200), answer(int(status), b"\x12\x07no good", headers=["Location: /elsewhere"])])
    pushed = Pushed(t, server.url())
    windows = pushed.windows()
    pushed.check_taken(server, windows[:1] + windows[2:], code=1)
    check(not pushed.queued(), "something is still queued")
    check(len(server.requests) == len(windows), "it was sent again")
    check(f"refused for good: HTTP {status}: no good (1 so far)" in pushed.said, pushed.said)


@cases("error", "partial", "damaged")
def test_compressed_answer(t, what):
    """An answer that is compressed is read like any other. One that cannot be decompressed decides by its status."""
    zipped = ("Content-Encoding: gzip",)
    server = Server(t, [answer(403, gzip.compress(b"unknown tenant"), "text/plain", zipped) if what == "error" else
                        answer(200, gzip.compress(partial(3, "too old")), headers=zipped) if what == "partial" else
                        answer(200, b"no gzip at all", headers=zipped)])
    pushed = Pushed(t, server.url())
    said = {"error": "refused for good: HTTP 403: unknown tenant", "partial": "too old", "damaged": ""}
    check(said[what] in pushed.said, pushed.said)
    check(pushed.code == (0 if what == "damaged" else 1), f"{pushed.code}: {pushed.said}")
    if what != "error":
        pushed.check_all(server, pushed.code)


@cases("408", "429", "502", "503", "504", "500")
def test_tried_again(t, status):
    server = Server(t, [answer(200), answer(int(status), b"later", "text/plain"), answer(int(status))])
    pushed = Pushed(t, server.url())
    pushed.check_all(server)
    check(len(server.requests) == len(pushed.windows()) + 2, f"{len(server.requests)} requests")
    check(pushed.said.count(f"HTTP {status}: later; undelivered profiles are kept") == 1, pushed.said)
    check("it accepts profiles again" in pushed.said, pushed.said)
    waits = [b.at - a.at for a, b in zip(server.requests, server.requests[1:])]
    # one second, then two, each less up to a half
    check(waits[1] >= 0.5 and waits[2] >= 1, f"it waited for {waits}")


@thorough
def test_always_500(t):
    """A server that fails on one file does not block the others for ever."""
    server = Server(t, [answer(500)] * 5)
    pushed = Pushed(t, server.url())
    pushed.check_taken(server, pushed.windows()[1:], code=1)
    check(len(server.requests) == len(pushed.windows()) + 4, f"{len(server.requests)} requests")
    # nor are retries faster for the next file
    waited = server.requests[5].at - server.requests[4].at
    check(waited >= 8, f"it waited for {waited} s after the fifth failure")


def test_not_waited_for(t):
    """If the server asks for an hour's wait, everything stays in the queue and the session ends at once."""
    server = Server(t, [answer(429, headers=["Retry-After: 3600"])])
    began = time.monotonic()
    pushed = Pushed(t, server.url())
    took = time.monotonic() - began
    check(pushed.code == 1 and len(server.requests) == 1, f"it ended with {pushed.code} after {len(server.requests)} requests")
    check(pushed.queued() == pushed.windows() and took < 25, f"{len(pushed.queued())} are queued after {took} s")


@cases("429", "503")
def test_retry_after(t, status):
    server = Server(t, [answer(int(status), headers=["Retry-After: 3"])])
    pushed = Pushed(t, server.url())
    pushed.check_all(server)
    waited = server.requests[1].at - server.requests[0].at
    check(waited >= 3, f"it waited for {waited} s, though it was asked to wait for 3")


def test_partial_success(t):
    server = Server(t, [answer(200, partial(3, "too \x1b[31mold"))])
    pushed = Pushed(t, server.url())
    pushed.check_all(server, code=1)
    check("3 profiles were rejected: too" in pushed.said and "\x1b" not in pushed.said, pushed.said)


def test_warning(t):
    """A partial success that rejects nothing is a success with a warning, which is printed once."""
    server = Server(t, [answer(200, partial(0, "nearly full"))] * 2)
    pushed = Pushed(t, server.url())
    pushed.check_all(server)
    check(pushed.said.count("accepted, with the message: nearly full") == 1, pushed.said)


@cases("body", "type", "empty", "untyped", "long")
def test_strange_success(t, what):
    """Only the status decides; a strange body does not matter."""
    act = {"body": answer(200, b"\xff" * 100), "type": answer(200, b"<html>", "text/html"), "empty": answer(204, b""),
           "untyped": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "long": answer(200, b"\x00" * 3000000)}[what]
    server = Server(t, [act] * 2)
    pushed = Pushed(t, server.url())
    pushed.check_all(server)
    # an empty answer is valid OTLP, too
    check(pushed.said.count("an answer that is not OTLP") == (what not in ("empty", "untyped")), pushed.said)


@cases("garbage", "close", "hang", "half")
def test_no_answer(t, what):
    act = {"garbage": b"\x16\x03\x01 what is this\r\n\r\n", "close": CLOSE, "hang": HANG,
           "half": b"HTTP/1.1 "}[what]
    server = Server(t, [answer(200), act])
    pushed = Pushed(t, server.url(), options=("--push-timeout", "1"))
    pushed.check_all(server)
    # a kept-alive connection may be closed: that is no failure
    check(pushed.said.count("undelivered profiles are kept and retried") == (what != "close"), pushed.said)


def test_slow(t):
    server = Server(t, [slowly(answer(200))] * 3)
    pushed = Pushed(t, server.url())
    pushed.check_all(server)
    check(len(server.requests) == len(pushed.windows()), "it was sent again")


def test_hanging_beside_a_good_one(t):
    """One destination does not wait for the other; what the bad one did not accept is still queued."""
    bad, good = Server(t, [HANG] * 100), Server(t)
    pushed = Pushed(t, bad.url(), good.url(), options=("--push-timeout", "60"), wait=False)
    deadline, before = time.monotonic() + 60, []
    # until no more windows are added
    while (len(before) < 5 or before != good.taken()) and time.monotonic() < deadline:
        before = good.taken()
        time.sleep(0.5)
    pushed.kill()
    check(good.taken() == pushed.windows(), f"{len(good.taken())} of {len(pushed.windows())} arrived")
    check(pushed.queued() == pushed.windows(), "the other's are not queued")
    check(not bad.taken(), "the bad server accepted something")


def test_down_and_back(t):
    """If nothing listens at first, the windows are queued and arrive later."""
    gone = Server(t)
    gone.stop()
    pushed = Pushed(t, gone.url(), wait=False)
    time.sleep(3)
    check(len(pushed.queued()) > 3, f"{len(pushed.queued())} files are queued")
    server = Server(t, port=gone.port)
    pushed.wait()
    pushed.check_all(server)


def test_killed(t):
    """What is queued when the process is killed is sent by the next one, before its own."""
    gone = Server(t)
    gone.stop()
    first = Pushed(t, gone.url(), wait=False)
    deadline, before = time.monotonic() + 60, []
    # until no more windows are added
    while (not before or before != first.windows()) and time.monotonic() < deadline:
        before = first.windows()
        time.sleep(0.5)
    check(first.process.poll() is None, "it has ended")
    first.kill()
    windows = first.windows()
    check(first.queued() == windows, "the queue is not complete")
    # only files that are named like a window's are sent
    queue = next(first.queue.rglob("*.push")).parent
    (queue / "notes.txt").write_text("mine")
    server = Server(t, port=gone.port)
    second = Pushed(t, gone.url(), name="second", options=("--window", "0.3"))
    check(second.code == 0, f"it ended with {second.code}: {second.said}")
    got = server.taken()
    check(sorted(got) == sorted(windows + second.windows()), f"{len(got)} arrived: {second.said}")
    check(got[0] == windows[0], "the oldest was not the first")
    check(os.listdir(queue) == ["notes.txt"], f"left is {os.listdir(queue)}")


def test_left_queue(t):
    """What is queued for a server that is not pushed to any more stays, and is reported, but not while another session
    pushes there."""
    gone = Server(t)
    gone.stop()
    first = Pushed(t, gone.url(), wait=False)
    first.wait_until_queued()
    server = Server(t)
    during = Pushed(t, server.url(), name="during")
    check(during.code == 0 and "are queued for a server" not in during.said, f"{during.code}: {during.said}")
    first.kill()
    # its children may end later and hold the lock
    queue = os.open(next(first.queue.rglob("*.push")).parent, os.O_RDONLY)
    fcntl.flock(queue, fcntl.LOCK_EX)
    os.close(queue)
    n = len(first.queued())
    after = Pushed(t, server.url(), name="after")
    check(after.code == 0 and after.said.count("are queued for a server") == 1 and f": {n} requests" in after.said,
          f"{after.code}, {n} are queued: {after.said}")
    check(len(first.queued()) == n, "they are not there any more")


def test_full_queue(t):
    """A full queue drops its oldest files, and counts them."""
    gone = Server(t)
    gone.stop()
    pushed = Pushed(t, gone.url(), options=("--push-queue-bytes", "12K"), wait=False)
    time.sleep(2)
    left = pushed.queued()
    # on the disk, where each file takes whole blocks
    taken = sum(p.stat().st_blocks * 512 for p in pushed.queue.rglob("*.push"))
    check(0 < taken <= 12288, f"{taken} bytes are queued")
    server = Server(t, port=gone.port)
    pushed.wait()
    windows = pushed.windows()
    # the first one was being sent, and therefore kept
    check(set(server.taken()) <= set(windows) and server.taken()[1:] == windows[-len(left) + 1:],
          f"{len(server.taken())} arrived of {len(left)}")
    check(pushed.code == 1 and f"{len(windows) - len(left)} dropped" in pushed.said, f"{pushed.code}: {pushed.said}")


def test_smaller_queue(t):
    """What an earlier session left is more than the queue may take now: what is dropped at once is reported."""
    gone = Server(t)
    gone.stop()
    first = Pushed(t, gone.url(), wait=False)
    time.sleep(2)
    first.kill()
    left = first.queued()
    second = Pushed(t, gone.url(), name="second", options=("--push-queue-bytes", "1"), wait=False)
    second.wait_until(lambda: any(second.files.iterdir()))
    second.kill()
    line = f"the queue is full: {len(left) - 1} of its oldest files were dropped ({len(left) - 1} so far)"
    check(len(left) > 3 and line in second.process.stderr.read(), f"{len(left)} were queued, and nothing was printed")


def test_disk_full(t):
    disk = t.dir / "queue"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", disk], check=False).returncode:
        raise Skip("no mounts")
    t.finally_do(lambda: subprocess.run(["umount", "-l", disk], check=True))
    gone = Server(t)
    gone.stop()
    pushed = Pushed(t, gone.url(), wait=False)
    time.sleep(2)
    left = pushed.queued()
    server = Server(t, port=gone.port)
    pushed.wait()
    windows = pushed.windows()
    check(0 < len(left) < len(windows), f"{len(left)} of {len(windows)} are queued")
    check(server.taken() == left and set(left) <= set(windows), "what arrived is not what was queued")
    check(pushed.code == 2 and "No space left on device" in pushed.said, f"{pushed.code}: {pushed.said}")


def test_one_queue_for_one_session(t):
    gone = Server(t)
    gone.stop()
    first = Pushed(t, gone.url(), wait=False)
    first.wait_until_queued()
    second = Pushed(t, gone.url(), name="second")
    check(second.code == 2 and "another session is using it" in second.said, second.said)
    first.kill()


# ── headers, credentials, TLS, proxies ──


def test_headers(t):
    server = Server(t)
    file = t.dir / "headers"
    file.write_text(f"# ours\n\nAuthorization: {SECRET}\r\nX-Scope-OrgID: team a\nX-Empty:\n")
    pushed = Pushed(t, (server.url(), "--push-headers", file), wait=False)
    shown = Path(f"/proc/{pushed.process.pid}/cmdline").read_bytes()
    pushed.wait()
    pushed.check_all(server)
    check(all(r.headers["authorization"] == SECRET and r.headers["x-scope-orgid"] == "team a"
              and r.headers.get("x-empty") == "" for r in server.requests),
          f"{server.requests[0].headers}")
    check(SECRET.encode() not in shown and SECRET not in pushed.said, "the secret is shown")
    check(all(SECRET.encode() not in p.read_bytes() for p in pushed.queue.rglob("*") if p.is_file()), "it is in a file")


@cases("no colon", "Bad Name: x", "X: a\x01b", ": x", "Host : x")
def test_bad_headers(t, line):
    file = t.dir / "headers"
    file.write_text(f"Fine: x\n{line}{SECRET}\n")
    pushed = Pushed(t, ("otlp+http://127.0.0.1:1", "--push-headers", file))
    check(pushed.code == 2 and "line 2 is not a header" in pushed.said, f"{pushed.code}: {pushed.said}")
    check(SECRET not in pushed.said, "the line is shown")


@cases("http://h", "otlp://h", "otlp+ftp://h", "otlp+http://u:p@h", "otlp+http://h/?a=b", "otlp+http://", "otlp+http://h:x")
def test_bad_urls(t, url):
    pushed = Pushed(t, url)
    check(pushed.code == 64 and "--push" in pushed.said, f"{pushed.code}: {pushed.said}")


def test_path(t):
    """A URL with a path, as for a collector that a reverse proxy serves."""
    server = Server(t)
    pushed = Pushed(t, server.url() + "/otlp/")
    pushed.check_all(server)
    check(server.requests[0].line == "POST /otlp/v1development/profiles HTTP/1.1", server.requests[0].line)


def certificate(t):
    if not shutil.which("openssl"):
        check(os.environ.get("CI") != "true", "openssl is not installed")
        raise Skip("openssl is not installed")
    file, key = t.dir / "cert.pem", t.dir / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", file], check=True, capture_output=True)
    both = t.dir / "both.pem"
    both.write_text(file.read_text() + key.read_text())
    return file, both


def test_tls(t):
    """A certificate is accepted only if its issuer is trusted and it is for the server's name."""
    file, both = certificate(t)
    server = Server(t, certificate=both)
    trusted = Pushed(t, (server.url("otlp+https", "localhost"), "--push-ca", file))
    trusted.check_all(server)
    for name, url, options in (("unknown", server.url("otlp+https", "localhost"), ()),
                               ("name", server.url("otlp+https"), ("--push-ca", file))):
        other = Pushed(t, (url, *options), name=name, wait=False)
        deadline = time.monotonic() + 30
        while len(other.queued()) < 5 and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(1)
        other.kill()
        check(other.queued() == other.windows(), f"{name}: not all are queued")
        check(re.search("certificate|SSL", other.process.stderr.read()), f"{name}: nothing was printed")
        shutil.rmtree(other.queue)
    check(len(server.requests) == len(trusted.windows()), "something was sent to a server that is not trusted")


def test_proxy(t):
    """The proxy is taken from the environment, as by other programs."""
    proxy = Server(t)
    pushed = Pushed(t, "otlp+http://collector.invalid:4318",
                    env={"http_proxy": f"http://127.0.0.1:{proxy.port}", "no_proxy": ""})
    pushed.check_all(proxy)
    check(proxy.requests[0].line == "POST http://collector.invalid:4318/v1development/profiles HTTP/1.1",
          proxy.requests[0].line)


# ── Pyroscope ──


def raw_samples(path):
    """The samples as Go's own reader prints them: their values, and the names of their frames."""
    if not shutil.which("go"):
        check(os.environ.get("CI") != "true", "go is not installed")
        raise Skip("go is not installed")
    done = subprocess.run(["go", "tool", "pprof", "-raw", path], capture_output=True, text=True, check=True)
    samples, _, rest = done.stdout.partition("Samples:\n")[2].partition("Locations\n")
    names = dict(re.findall(r"^ *(\d+): 0x[0-9a-f]+ (?:M=\d+ )?(.*)$", rest.partition("Mappings\n")[0], re.M))
    return [(tuple(map(int, line.partition(":")[0].split())), [names[i] for i in line.partition(":")[2].split()])
            for line in samples.splitlines() if re.match(r" *\d+(?: +\d+)+:", line)]


def by_stack(path):
    """{stack: sums of the values of its samples}: for Pyroscope they are not divided by capability and thread."""
    sums = {}
    for values, frames in raw_samples(path):
        had = sums.get(tuple(frames), [0] * len(values))
        sums[tuple(frames)] = [a + b for a, b in zip(had, values, strict=True)]
    return sums


def test_pyroscope(t):
    """Each process's pprof arrives, with its labels and time; of the answer only the status counts."""
    server = Server(t, [answer(200, b"", "text/plain"), answer(503), answer(422, b"bad sample", "text/plain")])
    pushed = Pushed(t, server.url("pyroscope+http"), options=("-f", "otlp,pprof", "--window", "0.5"))
    windows = sorted(p for p in pushed.files.iterdir() if not p.name.endswith(".otlp.pb.gz"))
    check(pushed.code == 1 and "refused for good: HTTP 422: bad sample" in pushed.said, f"{pushed.code}: {pushed.said}")
    taken = server.taken()
    check(len(taken) == len(windows) - 1 and len(server.requests) == len(windows) + 1, f"{len(server.requests)} requests")
    for body, window in zip(taken, [windows[0], *windows[2:]]):
        (t.dir / "body").write_bytes(body)
        check(by_stack(t.dir / "body") == by_stack(window), f"{window.name}: another profile")
    line = server.requests[0].line
    check(re.fullmatch(r"POST /ingest\?name=Calls%7Bpid%3D22085%2Cexe%3DCalls%2Cghc_version%3D9\.0\.2%7D"
                       r"&from=\d{10}&until=\d{10}&format=pprof HTTP/1\.1", line), line)
    begin = int(re.search(r"from=(\d+)", line)[1])
    check(0 < int(re.search(r"until=(\d+)", line)[1]) - begin <= 2, line)
    name = time.strftime("%Y%m%dT%H%M%S", time.gmtime(begin))
    check(name in windows[0].name, f"{name}, but the file is {windows[0].name}")


def test_host_name(t):
    """A replay has no host name, unless --host-name sets it."""
    server = Server(t)
    Pushed(t, server.url("pyroscope+http"), options=("--host-name", "node 7,b"))
    check(server.requests and all("?name=Calls%7Bhost%3Dnode%207_b%2Cpid%3D" in r.line for r in server.requests), server.requests[0].line)


if __name__ == "__main__":
    run(globals(), kernel=False)
