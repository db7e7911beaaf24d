"""Servers on this machine that answer as Flink's REST API does, or as they are told to."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

TLS = Path(__file__).parents[1] / "vectors" / "tls"
JOB_ID = "0" * 32
OK = b"HTTP/1.1 200 OK\r\n"

Talk = Callable[[socket.socket, str], None]


def server_context() -> ssl.SSLContext:
    """Return the context of a server of `localhost`, whose certificate ca.pem has signed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / "server.pem", TLS / "server.key")
    return context


@contextmanager
def peer(
    talk: Talk, tls: ssl.SSLContext | None = None, requests: list[str] | None = None
) -> Iterator[str]:
    """Listen, and talk with each that connects, given the path that it asks for; yield the URL.

    What they ask is added to `requests`, as it is.
    """
    with socket.create_server(("127.0.0.1", 0)) as listening:
        over = threading.Event()

        def serve() -> None:
            while not over.is_set():
                connection, _ = listening.accept()
                with suppress(OSError), connection:
                    if tls is not None:
                        connection = tls.wrap_socket(connection, server_side=True)
                    with connection:
                        request = connection.recv(1 << 16).decode("latin-1")
                        if request:
                            if requests is not None:
                                requests.append(request)
                            talk(connection, [*request.split(" "), ""][1])

        thread = threading.Thread(target=serve)
        thread.start()
        host, port = listening.getsockname()
        try:
            yield f"{'https' if tls else 'http'}://{host}:{port}"
        finally:
            over.set()
            with socket.socket() as last:
                last.connect((host, port))
            thread.join()


def says(*answers: bytes) -> Talk:
    return lambda connection, _: connection.sendall(b"".join(answers))


def job_of(vertices: int) -> Talk:
    """Answer as a Flink whose job has so many vertices."""
    listed = [
        {"id": f"{number:032x}", "name": "v", "status": "RUNNING"}
        | {"parallelism": 1, "maxParallelism": 128}
        for number in range(vertices)
    ]
    job = {"name": "job", "state": "RUNNING", "plan": {"nodes": []}, "vertices": listed}

    def talk(connection: socket.socket, path: str) -> None:
        answer = {"subtasks": []} if "/vertices/" in path else job
        connection.sendall(OK + b"\r\n" + json.dumps(answer).encode())

    return talk
