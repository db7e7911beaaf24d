"""Servers that are broken or hostile: a call ends in time, in little memory, and in one line.

No time passes in the tests of deadlines: a clock goes on when it is looked at, and the server
sends its next piece then. So what does not look at it for each piece reads them all, to the end.
"""

from __future__ import annotations

import gc
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from support.inside.answers import _rest
from support.rest_server import JOB_ID, OK, TLS, job_of, peer, says, server_context

from keygroups.errors import JobError
from keygroups.job import read_job

TIMEOUT = 10
PIECES = 40
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


class Clock:
    """Goes on by a step whenever it is looked at, and tells that to who waits for it."""

    def __init__(self, step: float = 1.0) -> None:
        self.seconds = 0.0
        self.looked = threading.Semaphore(0)
        self._step = step

    def __call__(self) -> float:
        self.seconds += self._step
        self.looked.release()
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(_rest, "monotonic", made)
    return made


@contextmanager
def dripping(
    clock: Clock, head: bytes, piece: bytes, tls: ssl.SSLContext | None = None
) -> Iterator[str]:
    """Send a head, and then a piece each time that the clock goes on, but for ever so many."""

    def talk(connection: socket.socket, _: str) -> None:
        connection.sendall(head)
        for _piece in range(PIECES):
            clock.looked.acquire(timeout=0.2)
            connection.sendall(piece)

    with peer(talk, tls) as url:
        try:
            yield url
        finally:
            clock.looked.release(PIECES)


def refused(url: str, timeout: float = TIMEOUT) -> str:
    """Return why a job cannot be read, which is one line that a terminal can show."""
    with pytest.raises(JobError) as caught:
        read_job(url, JOB_ID, timeout)
    text = str(caught.value)
    assert text.isprintable()
    assert len(text) < 400
    return text


# --- deadlines ----------------------------------------------------------------------------

DRIPS = {
    "status line": (b"HTTP/1.1 200 ", b"x"),
    "100-continue": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "headers of 100-continue": (b"HTTP/1.1 100 Continue\r\n", b"X: y\r\n"),
    "header": (OK + b"X: ", b"y"),
    "headers": (OK, b"X: y\r\n"),
    "body": (OK + b"Content-Length: 100000\r\n\r\n", b" "),
    "body without length": (OK + b"\r\n", b" "),
    "size of a chunk": (CHUNKED, b"0"),
    "extension of a chunk": (CHUNKED + b"2;", b"x"),
    "chunk": (CHUNKED + b"fff\r\n", b" "),
    "chunks": (CHUNKED, b"1\r\n \r\n"),
    "trailer": (CHUNKED + b"2\r\n{}\r\n0\r\nX: ", b"y"),
    "trailers": (CHUNKED + b"2\r\n{}\r\n0\r\n", b"X: y\r\n"),
}


@pytest.mark.parametrize("name", DRIPS)
def test_answer_that_drips(name: str, clock: Clock) -> None:
    with dripping(clock, *DRIPS[name]) as url:
        assert refused(url) == f"{url}/jobs/{JOB_ID}: no answer within 10 seconds (timeout)"
    # One look for the call, one for the request, and ten: it is over, and nobody looks again.
    assert clock.seconds == 2 + TIMEOUT


@pytest.mark.parametrize("status", [404, 500, 302, 204, 304])
@pytest.mark.parametrize("length", [b"", b"Content-Length: 100000\r\n"])
def test_body_of_an_error_that_drips(status: int, length: bytes, clock: Clock) -> None:
    """The status is known, so it is said; 204 and 304 have no body, whatever is sent."""
    head = f"HTTP/1.1 {status} No\r\n".encode() + length + b"\r\n"
    with dripping(clock, head, b" ") as url:
        text = refused(url)
    if status == 204:
        assert text.startswith(f"{url}/jobs/{JOB_ID}: this is no answer of Flink's REST API")
    else:
        assert text == f"{url}/jobs/{JOB_ID}: status {status}"
    if status in (404, 500, 302):
        assert clock.seconds == 2 + TIMEOUT


def test_nothing_is_read_of_a_redirect(clock: Clock) -> None:
    asked: list[str] = []
    with peer(lambda _, path: asked.append(path)) as other:
        head = f"HTTP/1.1 302 No\r\nLocation: {other}/x\r\nContent-Length: 100000\r\n\r\n"
        with dripping(clock, head.encode(), b" ") as url:
            text = refused(url)
    assert text.startswith(f"{url}/jobs/{JOB_ID}: status 302: it points to '{other}/x', which is")
    assert asked == []
    assert clock.seconds < 2 + TIMEOUT


@pytest.mark.parametrize("status", [199, 200, 299, 300, 399, 400])
def test_what_a_status_says(status: int) -> None:
    """RFC 9110: 2xx is an answer, 3xx a redirect."""
    with peer(says(f"HTTP/1.1 {status} No\r\nLocation: /x\r\n\r\n[]".encode())) as url:
        text = refused(url)
    assert (": this is no answer of Flink's REST API: b'[]'" in text) == (200 <= status < 300)
    assert (f": status {status}: it points to '/x'" in text) == (300 <= status < 400)
    assert text.endswith(f": status {status}") == (status in (199, 400))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_proxy_that_drips(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "")
    with dripping(clock, b"HTTP/1.1 200 OK\r\nX: ", b"y") as url:
        monkeypatch.setenv("https_proxy", url)
        text = refused("https://flink.example")
    assert text == f"https://flink.example/jobs/{JOB_ID}: no answer within 10 seconds (timeout)"
    assert clock.seconds == 2 + TIMEOUT
    gc.collect()  # Python 3.10 leaves it a connection that the proxy has not made


def test_handshake_has_what_the_proxy_left(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    def shake(self: ssl.SSLContext, sock: socket.socket, **options: Any) -> ssl.SSLSocket:
        rest.append((sock.gettimeout(), 2 + TIMEOUT - clock.seconds))
        return wrap_socket(self, sock, **options)

    def talk(connection: socket.socket, _: str) -> None:
        for _look in range(5):  # the last one is for the wait for this answer
            clock.looked.acquire(timeout=1)
        clock.seconds += 3
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")

    rest: list[tuple[float | None, float]] = []
    wrap_socket = ssl.SSLContext.wrap_socket
    monkeypatch.setattr(ssl.SSLContext, "wrap_socket", shake)
    monkeypatch.setenv("no_proxy", "")
    with peer(talk) as url:
        monkeypatch.setenv("https_proxy", url)
        assert ": no answer: " in refused("https://flink.example")
    ((seconds, expected),) = rest
    assert seconds == expected


def test_handshake_that_drips() -> None:
    """OpenSSL reads it, by the system's clock: a record of 16 KiB, of which too little comes."""
    over = threading.Event()

    def talk(connection: socket.socket, _: str) -> None:
        connection.sendall(b"\x16\x03\x03\x40\x00")
        for _piece in range(PIECES):
            over.wait(0.02)
            connection.sendall(b"\0")

    with peer(talk) as url:
        url = url.replace("http:", "https:")
        text = refused(url, timeout=0.1)
        over.set()
    assert text.startswith(f"{url}/jobs/{JOB_ID}: no answer within ")


def test_addresses_that_do_not_answer(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name may have many addresses; they have the time of the request together."""
    tried: list[float | None] = []

    def connect(self: socket.socket, _: object) -> None:
        tried.append(self.gettimeout())
        clock.seconds += 4
        raise TimeoutError

    address = (socket.AF_INET, socket.SOCK_STREAM, 0, "", ("192.0.2.1", 8081))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [address] * 5)
    monkeypatch.setattr(_rest._Socket, "connect", connect)
    text = refused("http://flink.example")
    assert text == f"http://flink.example/jobs/{JOB_ID}: no answer within 10 seconds (timeout)"
    assert tried == [9, 4]


def test_next_address_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first is of a family that no system has, and nobody listens at the second."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nobody = closed.getsockname()
    with peer(says(b"HTTP/1.1 404 No\r\n\r\n")) as url:
        present = ("127.0.0.1", int(url.rpartition(":")[2]))
        listed = [
            (family, socket.SOCK_STREAM, 0, "", where)
            for family, where in (
                (-7, present),
                (socket.AF_INET, nobody),
                (socket.AF_INET, present),
            )
        ]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: listed)
        assert refused("http://flink.example").endswith(": status 404")


def test_an_error_in_whatever_language(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("\u65e5\u672c")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    assert refused("http://flink.example").endswith("no answer: OSError('\u65e5\u672c')")


def test_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [])
    assert refused("http://flink.example").endswith("no answer: OSError('no address')")


def test_all_requests_have_a_deadline_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """No request is late here, but each vertex is one."""
    clock = Clock(step=0.05)
    monkeypatch.setattr(_rest, "monotonic", clock)
    with peer(job_of(500)) as url:
        text = refused(url)
    assert text.endswith(
        ": no answer within the 30 seconds that all requests have together (3 times timeout)"
    )
    assert 30 <= clock.seconds < 30.1
    with peer(job_of(3)) as url:
        assert len(read_job(url, JOB_ID).vertices) == 3


def test_counts_are_waited_for_no_longer_than_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are not known in the end, which is no error."""
    counts = {"read-records": 0, "read-bytes": 0}
    unknown = {"subtasks": [{"subtask": 0, "status": "RUNNING", "metrics": counts}]}
    asked: list[str] = []

    def talk(connection: socket.socket, path: str) -> None:
        asked.append(path)
        if "/vertices/" in path:
            connection.sendall(OK + b"\r\n" + json.dumps(unknown).encode())
        else:
            job_of(1)(connection, path)

    seconds = iter(range(1000))
    timer = SimpleNamespace(monotonic=lambda: next(seconds), sleep=lambda _: None)
    monkeypatch.setattr("keygroups.job._vertices.time", timer)
    for timeout, times in ((1, 2), (2, 3), (3, 4), (10, 4)):
        asked.clear()
        with peer(talk) as url:
            found = read_job(url, JOB_ID, timeout)
        assert found.vertices[0].read_records is None
        assert len(asked) == 1 + times + 1


# --- sizes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((OK, b"X: y\r\n" * 101), "got more than 100 headers"),
        ((OK, b"X: ", b"y" * 70_000), "LineTooLong"),
        ((b"HTTP/1.1 200 ", b"x" * 70_000), "LineTooLong"),
        ((b"HTTP/1.1 9999 No\r\n\r\n",), "BadStatusLine"),
        ((b"\x00\x1b[1m\r\n\r\n",), "BadStatusLine"),
        ((b"SSH-2.0-x\r\n",), "BadStatusLine"),
        ((), "RemoteDisconnected"),
        ((OK, b"Content-Length: 1000000000000000\r\n\r\n{}"), "breaks off after 2 bytes"),
        ((CHUNKED, b"fffffffffffffff\r\n{}"), "IncompleteRead"),
        ((CHUNKED, b"f" * 5_000, b"\r\n{}"), "IncompleteRead"),
        ((CHUNKED, b"f" * 70_000, b"\r\n{}"), "LineTooLong"),
        ((CHUNKED, b"x\r\n{}"), "IncompleteRead"),
    ],
)
def test_answer_that_is_no_http(answer: tuple[bytes, ...], reason: str) -> None:
    with peer(says(*answer)) as url:
        text = refused(url)
    assert text.startswith(f"{url}/jobs/{JOB_ID}: no answer: ")
    assert reason in text
    assert "client_certificate" not in text  # only TLS has one


def test_body_that_is_compressed_is_not_unpacked() -> None:
    """It was not asked for; a bomb would be one of 1,000 times its bytes."""
    body = b"\x1f\x8b\x08\0"
    with peer(says(OK, b"Content-Encoding: gzip\r\n\r\n", body)) as url:
        assert refused(url).endswith(r"this is no answer of Flink's REST API: b'\x1f\x8b\x08\x00'")


def endless(connection: socket.socket, _: str) -> None:
    connection.sendall(OK + b"\r\n")
    while True:
        connection.sendall(b" " * (1 << 20))


def test_answer_of_more_than_64_mib() -> None:
    with peer(endless) as url:
        assert refused(url, 60).endswith("the answer has more than 67108864 bytes")


def test_answers_that_are_too_long_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_rest, "_MOST_BYTES", 1000)
    monkeypatch.setattr(_rest, "_MOST_BYTES_OF_A_CALL", 1000)
    with peer(endless) as url:
        assert refused(url).endswith("the answer has more than 1000 bytes")
    with peer(job_of(7)) as url:  # 905 bytes of the job, and 16 of each vertex
        text = refused(url)
    assert text.startswith(f"{url}/jobs/{JOB_ID}/vertices/")
    assert text.endswith("with this answer there are more than 1000 bytes")


@pytest.mark.parametrize("value", [b"[],", b"{},", b"0,"])
def test_answer_of_too_many_values(value: bytes) -> None:
    """As many lists took 20 times the memory of their text, and half a minute."""
    with peer(says(OK, b'\r\n{"a":[', value * (1 << 21), b"0]}")) as url:
        assert refused(url).endswith("the answer has more than 2097152 commas and brackets")


@pytest.mark.parametrize(
    ("name", "size", "says_more"),
    [
        ("_MOST_BYTES", 11, "the answer has more than 10 bytes"),
        ("_MOST_BYTES_OF_A_CALL", 11, "with this answer there are more than 10 bytes"),
        ("_MOST_MARKS", 3, "the answer has more than 2 commas and brackets"),
    ],
)
def test_an_answer_may_have_as_much_as_is_said(
    name: str, size: int, says_more: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with peer(says(OK, b'\r\n{"a":[0,0]}')) as url:
        monkeypatch.setattr(_rest, name, size)
        assert "this is no answer of Flink's REST API" in refused(url)  # the answer was read
        monkeypatch.setattr(_rest, name, size - 1)
        assert refused(url).endswith(says_more)


# --- proxies and certificates ---------------------------------------------------------------


def test_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def talk(connection: socket.socket, path: str) -> None:
        asked.append(path)
        job_of(0)(connection, path)

    monkeypatch.setenv("no_proxy", "")
    with peer(talk) as url:
        monkeypatch.setenv("http_proxy", url)
        assert read_job("http://flink.example:8081", JOB_ID).vertices == ()
    job = f"http://flink.example:8081/jobs/{JOB_ID}"
    assert asked == [job, f"{job}/checkpoints"]


def test_password_of_the_proxy_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "")
    for proxy in ("http://me:secret@127.0.0.1:1", "gopher://me:secret@127.0.0.1:1"):
        monkeypatch.setenv("http_proxy", proxy)
        assert "secret" not in refused("http://flink.example:8081")


@pytest.fixture
def tls() -> ssl.SSLContext:
    return server_context()


def test_certificate(tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has to be signed by who is trusted, and of the host that was asked."""
    with peer(job_of(2), tls) as url:
        named = url.replace("127.0.0.1", "localhost")
        assert "SSLCertVerificationError" in refused(named)
        monkeypatch.setenv("SSL_CERT_FILE", str(TLS / "ca.pem"))
        assert len(read_job(named, JOB_ID).vertices) == 2
        assert "SSLCertVerificationError" in refused(url)


def test_certificate_is_verified_whatever_the_default_is(
    tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssl, "_create_default_https_context", ssl._create_unverified_context)
    with peer(job_of(0), tls) as url:
        assert "SSLCertVerificationError" in refused(url)


@pytest.mark.parametrize("name", ["status line", "body"])
def test_answer_under_tls_that_drips(
    name: str,
    tls: ssl.SSLContext,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(TLS / "ca.pem"))
    with dripping(clock, *DRIPS[name], tls) as url:
        text = refused(url.replace("127.0.0.1", "localhost"))
    assert text.endswith("no answer within 10 seconds (timeout)")
    assert clock.seconds == 2 + TIMEOUT


def test_sending_has_what_the_handshake_left(
    tls: ssl.SSLContext, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shake(self: ssl.SSLContext, sock: socket.socket, **options: Any) -> ssl.SSLSocket:
        made = wrap_socket(self, sock, **options)
        clock.seconds += 0 if made.server_side else 3
        return made

    def send(self: ssl.SSLSocket, data: bytes) -> None:
        rest.append((self.gettimeout(), 2 + TIMEOUT - clock.seconds))
        raise OSError("no")

    rest: list[tuple[float | None, float]] = []
    wrap_socket = ssl.SSLContext.wrap_socket
    monkeypatch.setattr(ssl.SSLContext, "wrap_socket", shake)
    monkeypatch.setattr(ssl.SSLSocket, "sendall", send)
    monkeypatch.setenv("SSL_CERT_FILE", str(TLS / "ca.pem"))
    with peer(job_of(0), tls) as url:
        assert ": no answer: " in refused(url.replace("127.0.0.1", "localhost"))
    ((seconds, expected),) = rest
    assert seconds == expected


def failing(monkeypatch: pytest.MonkeyPatch, error: OSError) -> str:
    """Return why a server cannot be asked over TLS, with which an error comes in between."""

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    monkeypatch.setenv("SSL_CERT_FILE", str(TLS / "ca.pem"))  # it has few certificates
    return refused("https://flink.example")


def test_signers_that_are_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenSSL's x509_vfy.h: X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT is 2, _DEPTH_ZERO_SELF_SIGNED
    18, _SELF_SIGNED_CERT_IN_CHAIN 19, and of no issuer or no first signature 20 and 21."""
    error = ssl.SSLCertVerificationError("no")
    for code in (1, 2, 3, 9, 10, 17, 18, 19, 20, 21, 22, 62):
        error.verify_code = code
        remedy = failing(monkeypatch, error).partition("('no')")[2]
        assert remedy.startswith(": pass ca_file, with") == (code in (2, 18, 19, 20, 21))
        assert "client_certificate" not in remedy


@pytest.mark.parametrize(
    ("error", "may_want_one"),
    [
        (ssl.SSLError("[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED] tlsv13 alert"), True),
        (ssl.SSLError("[SSL: SSLV3_ALERT_HANDSHAKE_FAILURE] sslv3 alert"), True),
        (ssl.SSLError("[SSL: WRONG_VERSION_NUMBER] wrong version number"), False),
        (ssl.SSLEOFError("EOF occurred"), True),
        (ConnectionResetError("reset"), True),
        (OSError("no route"), False),
    ],
)
def test_servers_that_may_want_a_certificate(
    error: OSError, may_want_one: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = failing(monkeypatch, error)
    assert text.endswith(": pass client_certificate, if the server asks for one") == may_want_one


def test_no_http_where_https_was_asked() -> None:
    with peer(job_of(0)) as url:
        assert "no answer: SSLError" in refused(url.replace("http:", "https:"))


def test_answers_are_plain_values() -> None:
    """What `member` finds is of the class alone, and no bool where a number is."""
    answer: Any = {"a": True, "b": 5}
    assert _rest.member("u", answer, "b", int) == 5
    with pytest.raises(JobError):
        _rest.member("u", answer, "a", int)
