"""moto's S3 in this process or in one of its own, each answer of which takes 50 ms more.

`python s3_server.py` prints the port, and serves until its input ends.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import BaseWSGIServer, make_server

BUCKET = "bucket"
DELAY = 0.05  # seconds
OPTIONS = {
    "key": "testing",
    "secret": "testing",
    "client_kwargs": {"region_name": "us-east-1"},
    "config_kwargs": {"max_pool_connections": 64, "retries": {"max_attempts": 1}},
}


class S3Server:
    """A server; `asked` are the methods of its requests.

    It is dead after `lives` more requests that write, and cuts each connection from then on.
    """

    def __init__(self, port: int = 0) -> None:
        self.asked: list[str] = []
        self.lives: float = float("inf")
        self._moto = DomainDispatcherApplication(create_backend_app, "s3")
        self._server: BaseWSGIServer = make_server("127.0.0.1", port, self._serve, threaded=True)
        self.port = self._server.port
        self.url = f"http://127.0.0.1:{self.port}"

    def _serve(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        method = environ["REQUEST_METHOD"]
        self.asked.append(method)
        if method in ("PUT", "POST", "DELETE"):
            self.lives -= 1
        if self.lives < 0:
            raise ConnectionAbortedError
        time.sleep(DELAY)
        answer: Iterable[bytes] = self._moto(environ, start_response)
        return answer

    def run(self) -> None:
        """Serve until it is shut down."""
        self._server.serve_forever(poll_interval=0.05)

    def close(self) -> None:
        """Shut it down."""
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Serve in this process."""
    server = S3Server()
    thread = Thread(target=server.run)
    thread.start()
    try:
        yield server
    finally:
        server.close()
        thread.join()


if __name__ == "__main__":
    served = S3Server()
    Thread(target=served.run, daemon=True).start()
    print(served.port, flush=True)
    sys.stdin.read()
