"""A storage that Hadoop reads over HTTP (WebHDFS), and that says no: a file system without jars.

Hadoop's client is in every Spark. What it throws where this server refuses is what a lake on HDFS
or on an object store brings, classes and causes included.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

_FILE = {
    "accessTime": 0,
    "blockSize": 1 << 20,
    "group": "g",
    "length": 100,
    "modificationTime": 0,
    "owner": "o",
    "pathSuffix": "",
    "permission": "644",
    "replication": 1,
    "type": "FILE",
}
_REFUSAL = {
    "exception": "AccessControlException",
    "javaClassName": "org.apache.hadoop.security.AccessControlException",
    "message": "Permission denied: 'hunter2'",
}


class _Refusing(BaseHTTPRequestHandler):
    """Refuses every request, but tells of one file where that is allowed."""

    listed: bool

    def do_GET(self) -> None:
        operation = parse_qs(urlsplit(self.path).query).get("op", [""])[0].upper()
        if self.listed and operation == "GETFILESTATUS":
            self._answer(200, {"FileStatus": _FILE})
        elif self.listed and operation == "LISTSTATUS":
            self._answer(200, {"FileStatuses": {"FileStatus": [_FILE]}})
        else:
            self._answer(403, {"RemoteException": _REFUSAL})

    def do_PUT(self) -> None:
        self._answer(403, {"RemoteException": _REFUSAL})

    def _answer(self, status: int, body: object) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Say nothing on stderr."""


@contextmanager
def refusing_storage(*, listed: bool = False) -> Iterator[str]:
    """Serve a storage on loopback; gives its root.

    Args:
        listed: Whether each path is a file that may be listed, and cannot be opened.
    """
    handler = type("Handler", (_Refusing,), {"listed": listed})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"webhdfs://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def closed_storage() -> str:
    """Return the root of a storage that nobody serves."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Refusing) as server:
        port = server.server_port
    return f"webhdfs://127.0.0.1:{port}"
