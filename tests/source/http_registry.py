"""A schema registry on loopback that answers as a test wants it to."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

RECORD = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}


@dataclass(frozen=True)
class Reply:
    """One answer: status, body and type."""

    status: int
    body: str
    kind: str = "application/vnd.schemaregistry.v1+json"


def schema_reply(schema: Any = None, **more: Any) -> Reply:
    """The answer to a question for a schema."""
    return Reply(200, json.dumps({"schema": json.dumps(schema or RECORD), **more}))


def error_reply(status: int, code: int, message: str = "said so") -> Reply:
    """A refusal in the registry's own words."""
    return Reply(status, json.dumps({"error_code": code, "message": message}))


TYPES = Reply(200, '["AVRO", "JSON", "PROTOBUF"]')
HTML = Reply(200, "<html>Please log in</html>", "text/html")


@dataclass
class Loopback:
    """The registry: what it was asked, and how it answers.

    Attributes:
        answer: Path without query -> answer.
        url: Its address.
        paths: The requested paths in order.
        logins: The Authorization headers in order.
    """

    answer: Callable[[str], Reply]
    url: str = ""
    paths: list[str] = field(default_factory=list)
    logins: list[str | None] = field(default_factory=list)

    @property
    def host(self) -> str:
        """Host and port."""
        return self.url.rpartition("/")[2]


@contextmanager
def loopback(
    answer: Callable[[str], Reply], tls: ssl.SSLContext | None = None
) -> Iterator[Loopback]:
    """Serve until the block ends."""
    registry = Loopback(answer)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            registry.paths.append(path)
            registry.logins.append(self.headers["Authorization"])
            reply = registry.answer(path)
            body = reply.body.encode()
            try:
                self.send_response(reply.status)
                self.send_header("Content-Type", reply.kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except OSError:
                pass  # A test that gave up waiting has closed the connection.

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            pass  # A client that does not trust our certificate breaks off.

    with Server(("127.0.0.1", 0), Handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        registry.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield registry
        finally:
            server.shutdown()
            thread.join()
