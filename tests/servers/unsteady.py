"""A way to an object store that is not to be relied on: a proxy that loses, doubles, delays and refuses requests."""

from __future__ import annotations

import http.client
import random
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import urlsplit

from tests.servers.s3 import signed

_SHARE = 0.03
_OF_CONDITION = ("if-none-match", "host", "authorization", "x-amz-date", "x-amz-content-sha256")
"""The condition of a put, and the signature, which is over all headers and the place."""


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: a client that goes away is part of the trouble."""


class Unsteady:
    """Stands before an endpoint. `trouble` is what befalls a share of requests: "refused" (503), "lost" (done, and the
    answer never comes), "doubled" (done twice, one after the other), "slow"; the draws are the same in each run.

    `forget_conditions` hands on without `If-None-Match`, as a store that does not know it; `forbid` answers 403;
    `requests` counts what came.
    """

    def __init__(
        self, behind: str, trouble: str = "", *, forget_conditions: bool = False, forbid: bool = False
    ) -> None:
        self.behind, self.trouble, self.forget, self.forbid = behind, trouble, forget_conditions, forbid
        self.requests, self.troubled = 0, 0
        self._drawn, self._lock = random.Random(7), threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 1 << 16  # head and body in one packet: the other side waits 40 ms between two
            disable_nagle_algorithm = True

            def handle_one_request(self) -> None:
                self.raw_requestline = self.rfile.readline(65537)
                if not self.raw_requestline or not self.parse_request():
                    self.close_connection = True
                    return
                outer.answer(self)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, asked: BaseHTTPRequestHandler) -> None:
        """One request, with what befalls it."""
        body = asked.rfile.read(int(asked.headers.get("Content-Length") or 0))
        with self._lock:
            self.requests += 1
            trouble = self.trouble if self.trouble and self._drawn.random() < _SHARE else ""
            self.troubled += bool(trouble)
        if self.forbid:
            return self._reply(asked, 403, [], b"<Error><Code>AccessDenied</Code></Error>")
        if trouble == "refused":
            return self._reply(asked, 503, [], b"<Error><Code>SlowDown</Code></Error>")
        if trouble == "slow":
            time.sleep(0.03)
        status, headers, content = self._forward(asked, body)
        if trouble == "doubled":
            status, headers, content = self._forward(asked, body)
        if trouble == "lost":
            asked.close_connection = True
            return None
        return self._reply(asked, status, headers, content)

    def _forward(self, asked: BaseHTTPRequestHandler, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection(urlsplit(self.behind).netloc, timeout=20)
        dropped = {"connection", *_OF_CONDITION} if self.forget else {"connection"}
        headers = {name: value for name, value in asked.headers.items() if name.lower() not in dropped}
        if self.forget:
            headers = signed(asked.command, f"{self.behind}{asked.path}", headers, body)
        connection.request(asked.command, asked.path, body, headers)
        found = connection.getresponse()
        content = found.read()
        connection.close()
        return found.status, found.getheaders(), content

    def _reply(
        self, asked: BaseHTTPRequestHandler, status: int, headers: list[tuple[str, str]], content: bytes
    ) -> None:
        asked.send_response_only(status)
        for name, value in headers:
            if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                asked.send_header(name, value)
        length = dict((name.lower(), value) for name, value in headers).get("content-length", str(len(content)))
        asked.send_header("Content-Length", length if asked.command == "HEAD" else str(len(content)))
        asked.end_headers()
        if asked.command != "HEAD":
            asked.wfile.write(content)
        asked.wfile.flush()
