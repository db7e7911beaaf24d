"""moto's S3 in this process or in one of its own, each answer of which takes 50 ms more.

`python s3_server.py` prints the port, and serves until its input ends.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from socket import SHUT_RDWR
from threading import Thread
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import BaseWSGIServer, make_server

BUCKET = "bucket"
DELAY = 0.05  # seconds
OPTIONS = {
    "key": "testing",
    "secret": "testing",
    "config_kwargs": {"max_pool_connections": 64, "retries": {"max_attempts": 1}},
}


class S3Server:
    """A server; `asked` are the methods of its requests.

    It dies when it has answered `lives` requests that write, and the next one comes.
    """

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.lives: float = float("inf")
        self.port = 0
        self._moto = DomainDispatcherApplication(create_backend_app)
        self.start()

    def start(self) -> None:
        """Serve, at the port it had, with what is in the store."""
        self._server: BaseWSGIServer = make_server(
            "127.0.0.1", self.port, self._serve, threaded=True
        )
        self.port = self._server.port
        Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def _serve(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        method = environ["REQUEST_METHOD"]
        self.asked.append(method)
        if method in ("PUT", "POST", "DELETE"):
            self.lives -= 1
        if self.lives < 0:
            self.stop()
            environ["werkzeug.socket"].shutdown(SHUT_RDWR)
            raise ConnectionAbortedError
        time.sleep(DELAY)
        answer: Iterable[bytes] = self._moto(environ, start_response)
        return answer

    def stop(self) -> None:
        """Serve no more."""
        self._server.shutdown()
        self._server.server_close()


if __name__ == "__main__":
    print(S3Server().port, flush=True)
    sys.stdin.read()
