# SPDX-License-Identifier: GPL-2.0-or-later
"""The real OpenTelemetry Collector, as the receiver of OTLP profiles. Its own OTLP exporter sends back what it
understood of them, as JSON."""

import http.server
import json
import os
import queue
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

from harness import ROOT, Failure, Skip, check

PATH = "/v1development/profiles"

CONFIG = """
receivers:
  otlp:
    protocols:
      http:
        endpoint: 127.0.0.1:{port}
exporters:
  debug:
    verbosity: basic
  otlp_http:
    profiles_endpoint: http://127.0.0.1:{sink}/seen
    encoding: json
    compression: none
    sending_queue:
      enabled: false
    retry_on_failure:
      enabled: false
service:
  telemetry:
    metrics:
      level: none
  pipelines:
    profiles:
      receivers: [otlp]
      exporters: [debug, otlp_http]
"""


def program():
    """The collector's path; scripts/collector builds it once. In CI a failed build is a failure, elsewhere a skip."""
    made = subprocess.run([ROOT / "scripts" / "collector"], capture_output=True, text=True, timeout=3600, check=False)
    if made.returncode:
        check(os.environ.get("CI") != "true", f"scripts/collector: {made.stdout}{made.stderr}")
        raise Skip(f"the collector cannot be built here: {made.stderr.strip()[-300:]}")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "safescoped" / "collector" / "collector"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Sink:
    """An HTTP server that keeps the JSON it receives."""

    def __init__(self):
        self.seen = queue.Queue()
        sink = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                sink.seen.put(json.loads(body))
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class Collector:
    """It runs until stop(), and again after start(), on the same port."""

    def __init__(self, t):
        self.program = program()
        self.sink = Sink()
        self.port = free_port()
        self.config = t.dir / "collector.yaml"
        self.config.write_text(CONFIG.format(port=self.port, sink=self.sink.port))
        self.log = open(t.dir / "collector.log", "wb")
        self.process = None
        t.finally_do(self.close)
        self.start()

    @property
    def url(self):
        return f"otlp+http://127.0.0.1:{self.port}"

    def start(self):
        self.process = subprocess.Popen([self.program, "--config", self.config,
                                         "--feature-gates=service.profilesSupport"],
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            check(self.process.poll() is None, f"the collector ended: {self.log.name}")
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.1)
        raise Failure("the collector does not listen")

    def stop(self, number=signal.SIGKILL):
        """Stop it. With SIGTERM it completes the requests in progress."""
        if self.process:
            self.process.send_signal(number)
            self.process.wait()
        self.process = None

    def close(self):
        self.stop()
        self.sink.stop()
        self.log.close()

    def post(self, body):
        """Send what `-f otlp` wrote, unchanged; return the response's status."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{PATH}", body,
                                         {"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip"})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status
        except urllib.error.HTTPError as e:
            return e.code

    def next(self, timeout=30):
        """The next request that the collector passed on, as Profiles."""
        try:
            return Profiles(self.sink.seen.get(timeout=timeout))
        except queue.Empty:
            raise Failure(f"nothing came from the collector in {timeout} s") from None


def value_of(any_value):
    if "intValue" in any_value:
        return int(any_value["intValue"])
    return any_value.get("stringValue", "")


class Profiles:
    """An OTLP request, with its tables looked up."""

    def __init__(self, request):
        self.request = request
        self.dictionary = request["dictionary"]
        self.strings = self.dictionary["stringTable"]

    def entry(self, table, index):
        entries = self.dictionary[table]
        check(0 <= index < len(entries), f"{table} has no place {index}")
        return entries[index]

    def attributes(self, indices):
        found = {}
        for index in indices:
            one = self.entry("attributeTable", index)
            found[self.strings[one.get("keyStrindex", 0)]] = value_of(one["value"])
        return found

    def resources(self):
        """[(the resource's attributes, its profiles)]"""
        return [({a["key"]: value_of(a["value"]) for a in r["resource"]["attributes"]},
                 [p for scope in r["scopeProfiles"] for p in scope["profiles"]])
                for r in self.request.get("resourceProfiles", [])]

    def type(self, profile):
        return self.strings[profile["sampleType"]["typeStrindex"]], self.strings[profile["sampleType"]["unitStrindex"]]

    def samples(self):
        """For each sample: (pid, type, attributes, value, frames as (name, type, mapped file), leaf first)"""
        for resource, profiles in self.resources():
            for profile in profiles:
                for s in profile["samples"]:
                    stack = self.entry("stackTable", s.get("stackIndex", 0)).get("locationIndices", [])
                    yield (resource["process.pid"], self.type(profile)[0], self.attributes(s.get("attributeIndices", [])),
                           sum(map(int, s["values"])), [self.frame(i) for i in stack])

    def frame(self, index):
        location = self.entry("locationTable", index)
        function = self.entry("functionTable", location["lines"][0]["functionIndex"])
        mapping = self.entry("mappingTable", location.get("mappingIndex", 0))
        return (self.strings[function.get("nameStrindex", 0)],
                self.attributes(location["attributeIndices"])["profile.frame.type"],
                self.strings[mapping.get("filenameStrindex", 0)])

    def sums(self):
        """{type: {(pid, tid, state): value}}"""
        sums = {}
        for pid, kind, attributes, value, _ in self.samples():
            of_type = sums.setdefault(kind, {})
            key = (pid, attributes.get("thread.id", 0), attributes.get("ghc.state"))
            of_type[key] = of_type.get(key, 0) + value
        return sums

    def start_unix_ns(self):
        starts = {int(p["timeUnixNano"]) for _, profiles in self.resources() for p in profiles}
        check(len(starts) == 1, f"profiles of different times in one request: {starts}")
        return starts.pop()
