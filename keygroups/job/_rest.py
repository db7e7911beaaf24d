"""Flink's REST API, asked with the standard library alone.

Nothing that a server says is trusted. Whatever arrives, and however slowly, a request ends at its
deadline and all requests of a call at the call's; what is read is bounded; and no other place is
asked because of an answer: Flink itself never redirects, as each JobManager answers.
"""

from __future__ import annotations

import json
import re
import socket
import ssl
from collections.abc import Callable
from functools import cached_property, partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from time import monotonic
from typing import Any, TypeVar
from urllib import request
from urllib.error import URLError
from urllib.parse import urlsplit

from keygroups._checks import check_str, show
from keygroups.errors import InvalidValueError, JobError

T = TypeVar("T")

_ID = re.compile("[0-9a-f]{32}")

_REQUESTS = 3  # how many requests' time a call has: the list of jobs, the job, all its vertices
_MOST_BYTES = 1 << 26  # of an answer; a vertex of 32,768 subtasks takes half of it
_MOST_BYTES_OF_A_CALL = 1 << 28
_MOST_MARKS = 1 << 21  # commas and brackets of an answer: "[]," takes 20 times its own bytes
_CHUNK = 1 << 16
_LONG_DIGITS = 20  # with the sign
_JOB_OF_PAGE = re.compile(r"/job/[a-z]+/([0-9a-f]{32})(/|$)")


def check_url(url: str) -> tuple[str, str | None]:
    """Return the URL of the REST API, and the id of the job whose page of the web UI it is."""
    text = check_str("url", url).strip()
    try:
        parts = urlsplit(text)
        port_is_fine = parts.port != 0  # reading it raises for what is no port
    except ValueError:
        port_is_fine = False
    if not port_is_fine or parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidValueError(
            f"url must be that of Flink's REST API, such as http://localhost:8081, got {show(url)}"
        )
    if "@" in parts.netloc:  # and is not shown: it may be a password
        raise InvalidValueError("url must have no user and password, got one with an @")
    page = _JOB_OF_PAGE.search(parts.fragment)
    base = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
    return base, page[1] if page else None


class Rest:
    """The REST API of one cluster, for the requests of one call, which begins here."""

    def __init__(self, url: str, timeout: float) -> None:
        self.url = url
        self._timeout = timeout
        self._deadline = monotonic() + _REQUESTS * timeout
        self._bytes_left = _MOST_BYTES_OF_A_CALL
        self._handler = _Handler()
        self._opener = request.OpenerDirector()  # with nothing that follows a redirect
        for handler in (self._handler, request.ProxyHandler(), request.UnknownHandler()):
            self._opener.add_handler(handler)

    def get(self, path: str) -> Any:
        """Return the JSON object at a path, or raise JobError."""
        url = self.url + path
        self._handler.deadline = min(monotonic() + self._timeout, self._deadline)
        try:
            with self._opener.open(url) as response:
                if not 200 <= response.status < 300:
                    raise JobError(f"{url}: status {response.status}{_said(response)}")
                data = self._read(response, url)
        except (OSError, HTTPException, ValueError) as error:
            reason = error.reason if isinstance(error, URLError) else error
            if isinstance(reason, TimeoutError):
                raise self._too_late(url) from None
            raise JobError(f"{url}: no answer: {show(reason)}") from None
        answer = _parse(data)
        if not isinstance(answer, dict):
            raise not_flink(url, data[:40])
        return answer

    def _read(self, response: Any, url: str) -> bytes:
        data = bytearray()
        while chunk := response.read1(_CHUNK):
            data += chunk
            self._bytes_left -= len(chunk)
            if len(data) > _MOST_BYTES:
                raise JobError(f"{url}: the answer has more than {_MOST_BYTES} bytes")
            if self._bytes_left < 0:
                raise JobError(
                    f"{url}: with this answer there are more than {_MOST_BYTES_OF_A_CALL} bytes"
                )
        if response.length:  # so many bytes were to follow
            raise HTTPException(f"it breaks off after {len(data)} bytes")
        if sum(map(data.count, b",[{")) > _MOST_MARKS:
            raise JobError(f"{url}: the answer has more than {_MOST_MARKS} commas and brackets")
        return bytes(data)

    def _too_late(self, url: str) -> JobError:
        if self._handler.deadline < self._deadline:
            return JobError(f"{url}: no answer within {self._timeout:g} seconds (timeout)")
        return JobError(
            f"{url}: no answer within the {_REQUESTS * self._timeout:g} seconds that all requests "
            f"have together ({_REQUESTS} times timeout)"
        )


def not_flink(url: str, got: object) -> JobError:
    """Build the error for an answer that is none of Flink's REST API."""
    return JobError(f"{url}: this is no answer of Flink's REST API: {show(got)}")


def is_id(text: str) -> bool:
    """Tell whether a text can be the id of a job or a vertex."""
    return _ID.fullmatch(text) is not None


def member(
    url: str,
    answer: Any,
    name: str,
    cls: type[T],
    is_plausible: Callable[[T], object] = lambda value: True,
) -> T:
    """Return a member of an answer, or raise JobError.

    That is where it is none, of another class, or what Flink cannot have said.
    """
    value = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(value, cls) or isinstance(value, bool) or not is_plausible(value):
        raise not_flink(f"{url} ({name})", answer if value is None else value)
    return value


def _parse(data: bytes) -> Any:
    """Return the value that JSON is of, or None where it is none that Flink can have written."""
    try:
        return json.loads(
            data.decode(),
            object_pairs_hook=_unique,
            parse_int=_long,
            parse_constant=_long,  # NaN and Infinity, which Flink writes as text
        )
    except (ValueError, RecursionError):
        return None


def _unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(members)
    if len(unique) < len(members):
        raise ValueError("a member is there twice")
    return unique


def _long(text: str) -> int:
    if len(text) > _LONG_DIGITS:
        raise ValueError("more digits than a long has")
    return int(text)


def _said(response: Any) -> str:
    """Return what an answer that is none says of it: where it points, or Flink's first error."""
    location = response.headers.get("Location")
    if 300 <= response.status < 400 and location:
        return (
            f": it points to {show(location)}, which is not followed: "
            "pass the URL of the REST API itself"
        )
    try:
        line = _parse(response.read(_CHUNK))["errors"][0].partition("\n")[0]
    except (OSError, HTTPException, TypeError, LookupError, AttributeError):
        return ""
    return f": {show(line.rpartition('Exception: ')[2])}"  # without the class's name


# --- connections that end at a deadline ---------------------------------------------------


def _seconds_to(deadline: float) -> float:
    """Return how many seconds are left, more than 0, or raise TimeoutError."""
    seconds = deadline - monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds


class _Socket(socket.socket):
    """A socket that waits until a deadline, and not anew for each byte that arrives."""

    deadline: float

    def sendall(self, *args: Any) -> None:
        self.settimeout(_seconds_to(self.deadline))
        super().sendall(*args)

    def recv_into(self, *args: Any) -> int:
        self.settimeout(_seconds_to(self.deadline))
        return super().recv_into(*args)


class _TlsSocket(_Socket, ssl.SSLSocket):
    """The same under TLS."""


def _connect(deadline: float, address: tuple[str, int], *_: object) -> _Socket:
    """Return a socket that is connected to a host and port, in place of create_connection."""
    failed = OSError("no address")
    for family, kind, protocol, _name, where in socket.getaddrinfo(
        *address, type=socket.SOCK_STREAM
    ):
        connected = None
        try:
            connected = _Socket(family, kind, protocol)
            connected.deadline = deadline
            connected.settimeout(_seconds_to(deadline))
            connected.connect(where)
            return connected
        except OSError as error:
            failed = error
            if connected is not None:
                connected.close()
    raise failed


class _Connection(HTTPConnection):
    """Connects to the first address that answers, by the deadline."""

    deadline: float

    def connect(self) -> None:
        self._create_connection = partial(_connect, self.deadline)
        super().connect()
        self.sock.settimeout(_seconds_to(self.deadline))  # of the handshake of TLS


class _TlsConnection(HTTPSConnection, _Connection):
    """Connects as the other does, then encrypts."""

    sock: _TlsSocket

    def connect(self) -> None:
        super().connect()
        self.sock.deadline = self.deadline


class _Handler(request.AbstractHTTPHandler):
    """Opens connections that end at the deadline, those of TLS to who has a valid certificate."""

    deadline: float
    http_request = https_request = request.AbstractHTTPHandler.do_request_

    def http_open(self, wanted: request.Request) -> Any:
        return self.do_open(partial(self._connection, _Connection), wanted)

    def https_open(self, wanted: request.Request) -> Any:
        return self.do_open(
            partial(self._connection, _TlsConnection), wanted, context=self._context
        )

    def _connection(self, cls: type[_Connection], host: str, **options: Any) -> _Connection:
        connection = cls(host, **options)
        connection.deadline = self.deadline
        return connection

    @cached_property
    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        context.sslsocket_class = _TlsSocket
        return context
