# SPDX-License-Identifier: GPL-2.0-or-later
"""An HTTP server that misbehaves in a scripted way, one request after the other."""

import socket
import ssl
import threading
import time

OK = b"\x0a\x00"  # ExportProfilesServiceResponse { partial_success {} }


def partial(rejected, message):
    """The bytes of ExportProfilesServiceResponse { partial_success { rejected_profiles, error_message } }; both numbers
    below 128."""
    inner = bytes([8, rejected, 18, len(message)]) + message.encode()
    return bytes([10, len(inner)]) + inner


def answer(status, body=OK, kind="application/x-protobuf", headers=()):
    """An HTTP response in bytes. A server's script may also have a list of parts, each written with a pause after it."""
    lines = [f"HTTP/1.1 {status} It Says", f"Content-Type: {kind}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def slowly(whole, pause=0.02):
    return [(whole[i:i + 4], pause) for i in range(0, len(whole), 4)]


HANG = "hang"  # reads the request, and never answers
CLOSE = "close"  # reads the request, and closes the connection


class Request:
    def __init__(self, line, headers, body, at):
        self.line, self.headers, self.body, self.at = line, headers, body, at
        self.taken = False  # answered by 2xx


class Server:
    """`script`: what to do for each request, in order; all requests after that are accepted."""

    def __init__(self, t, script=(), certificate=None, port=0):
        self.script = list(script)
        self.requests = []
        self.lock = threading.Lock()
        self.over = threading.Event()
        self.context = None
        if certificate:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(certificate)
        self.socket = socket.create_server(("127.0.0.1", port))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.listen, daemon=True).start()
        t.finally_do(self.stop)

    def url(self, scheme="otlp+http", host="127.0.0.1"):
        return f"{scheme}://{host}:{self.port}"

    def taken(self):
        """The bodies of the requests that it accepted, in order."""
        with self.lock:
            return [r.body for r in self.requests if r.taken]

    def stop(self):
        self.over.set()
        # close() does not end an accept() in another thread
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.socket.close()

    def listen(self):
        while not self.over.is_set():
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        try:
            if self.context:
                connection = self.context.wrap_socket(connection, server_side=True)
            with connection, connection.makefile("rb") as read:
                while self.one(connection, read):
                    pass
        except OSError:
            pass

    def one(self, connection, read):
        """Answer one request; False: the connection is closed."""
        line = read.readline().decode(errors="replace").strip()
        if not line:
            return False
        headers = {}
        while (text := read.readline().decode(errors="replace").strip()):
            name, _, value = text.partition(":")
            headers[name.lower()] = value.strip()
        body = read.read(int(headers.get("content-length", 0)))
        request = Request(line, headers, body, time.monotonic())
        with self.lock:
            act = self.script.pop(0) if self.script else answer(200)
            self.requests.append(request)
            # before the answer is written: a client that has read it must find its request counted
            request.taken = (act if isinstance(act, bytes) else b"".join(p for p, _ in act)
                             if isinstance(act, list) else b"").startswith(b"HTTP/1.1 2")
        if act == HANG:
            self.over.wait(120)
            return False
        if act == CLOSE:
            return False
        for part, pause in act if isinstance(act, list) else [(act, 0)]:
            connection.sendall(part)
            time.sleep(pause)
        return act[:5] == b"HTTP/" if isinstance(act, bytes) else True
