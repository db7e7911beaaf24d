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
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from time import monotonic
from typing import Any, TypeVar
from urllib import request
from urllib.error import URLError
from urllib.parse import urlsplit

from keygroups._checks import ShortRepr, show
from keygroups.errors import InvalidTypeError, InvalidValueError, JobError, KeyGroupsError
from keygroups.job._escapes import repeats
from keygroups.job._sign_in import SignIn

T = TypeVar("T")

_ID = re.compile("[0-9a-f]{32}")
_STATE = re.compile("[A-Z_]{1,32}")

_REQUESTS = 3  # times `timeout` that a call has: the list of jobs, the job, all of the rest
_MOST_BYTES = 1 << 26  # bytes of an answer; a vertex of 32,768 subtasks takes half of them
_MOST_BYTES_OF_A_CALL = 1 << 28
_MOST_MARKS = 1 << 21  # commas and brackets of an answer: "[]," takes 20 times its own bytes
_CHUNK = 1 << 16
_QUOTED = 1 << 12  # characters of a text that is quoted, in part, in which secrets are looked for
_QUOTED_IN_ALL = 1 << 17
_LONG_DIGITS = 20  # characters of the lowest long, its sign among them
_SCHEME = re.compile("[A-Za-z][A-Za-z0-9-]{0,30}")  # first word of a WWW-Authenticate header
# OpenSSL's errors X509_V_ERR_... for a certificate whose signer it does not know.
_UNKNOWN_SIGNER = {2, 18, 19, 20, 21}
# Alerts to a client without a certificate: the first until TLS 1.2, the second from 1.3 on.
_WANTS_CERTIFICATE = re.compile("HANDSHAKE_FAILURE|CERTIFICATE_REQUIRED")
_JOB_OF_PAGE = re.compile(r"/job/[a-z]+/([0-9a-f]{32})(/|$)")


def check_url(url: str) -> tuple[str, str | None]:
    """Return the URL of the REST API, and the id of a job if `url` is its page of the web UI."""
    if not isinstance(url, str):  # Its value is not shown: it may have a password.
        raise InvalidTypeError(f"url must be a str, got a {type(url).__name__}")
    text = url.strip()
    try:
        parts = urlsplit(text)
        port_is_fine = parts.port != 0  # reading it raises for what is no port
    except ValueError:
        port_is_fine = False
    if not port_is_fine or parts.scheme not in ("http", "https") or not parts.hostname:
        got = "one with an @, which is not shown" if "@" in text else show(url)
        raise InvalidValueError(
            f"url must be that of Flink's REST API, such as http://localhost:8081, got {got}"
        )
    if "@" in parts.netloc:
        raise InvalidValueError(
            "url must have no user and password, got one with an @: pass headers, or name the "
            "host in a netrc file"
        )
    page = _JOB_OF_PAGE.search(parts.fragment)
    base = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
    return base, page[1] if page else None


class Rest:
    """The REST API of one cluster, for the requests of one call, which begins here."""

    def __init__(self, url: str, timeout: float, sign_in: SignIn) -> None:
        self.url = url
        self._sign_in = sign_in
        self._repeats_secret = False
        self._timeout = timeout
        self._deadline = monotonic() + _REQUESTS * timeout
        self._bytes_left = _MOST_BYTES_OF_A_CALL
        self._handler = _Handler(sign_in.context)
        self._opener = request.OpenerDirector()  # No handler of it follows a redirect.
        for handler in (self._handler, request.ProxyHandler(), request.UnknownHandler()):
            self._opener.add_handler(handler)

    def get(self, path: str) -> Any:
        """Return the JSON object at a path, or raise JobError."""
        url = self.url + path
        wanted = request.Request(url)
        for name, value in self._sign_in.headers.items():
            wanted.add_unredirected_header(name, value)
        self._handler.deadline = min(monotonic() + self._timeout, self._deadline)
        try:
            data, is_html = self._answer(wanted)
        except (OSError, HTTPException, ValueError) as error:
            failure = self._failure(url, error)
        except BaseException as error:  # The frames of its traceback hold the headers.
            raise error.with_traceback(None) from None
        else:
            answer = _parse(data)
            if isinstance(answer, dict):
                return answer
            failure = self._no_answer(url, data, is_html)
        raise failure

    def told(self, error: KeyGroupsError) -> KeyGroupsError:
        """Return an error, or one that quotes nothing if an answer repeats what signs in.

        Its message is searched as a whole, whatever parts of an answer have gone into it.
        """
        text = str(error.args[0]).replace(self.url, "")  # The URL is the caller's own.
        if isinstance(error, _NoAnswerError):  # Its message cuts long texts in the middle.
            text += ShortRepr(_QUOTED).repr(error.got)[:_QUOTED_IN_ALL]
            error = JobError(str(error))
        if not self._repeats_secret and not repeats(text, [*self._sign_in.secrets()]):
            return error
        return JobError(
            f"{self.url}: this is no answer of Flink's REST API: it repeats what signs in, and is "
            "not shown"
        )

    def _answer(self, wanted: request.Request) -> tuple[bytes, bool]:
        """Return the body of an answer, and whether it says that it is HTML."""
        url = wanted.full_url
        with self._opener.open(wanted) as response:
            if not 200 <= response.status < 300:
                raise JobError(f"{url}: status {response.status}{self._said(response)}")
            is_html = response.headers.get_content_type() == "text/html"
            return self._read(response, url), is_html

    def _failure(self, url: str, error: Exception) -> JobError:
        """Return the error for a request without a whole answer in HTTP."""
        reason = error.reason if isinstance(error, URLError) else error
        if isinstance(reason, TimeoutError):
            return self._too_late(url)
        self._look_for_secrets_quoted(str(reason))
        remedy = ""
        if isinstance(reason, ssl.SSLCertVerificationError):
            if reason.verify_code in _UNKNOWN_SIGNER:
                remedy = ": pass ca_file, with the certificate of who signed that server's, in PEM"
        elif self._sign_in.context is not None and not self._sign_in.has_certificate:
            is_closed = isinstance(reason, (ssl.SSLEOFError, ConnectionError))
            if is_closed or _WANTS_CERTIFICATE.search(str(reason)):
                remedy = ": pass client_certificate, if the server asks for one"
        return JobError(f"{url}: no answer: {show(reason)}{remedy}")

    def _no_answer(self, url: str, data: bytes, is_html: bool) -> JobError:
        """Return the error for an answer that is no JSON object."""
        if not is_html and not data.lstrip().startswith(b"<"):
            self._look_for_secrets_quoted(data[:_QUOTED].decode("latin-1"))
            return not_flink(url, data[:40])
        return JobError(
            f"{url}: this is no answer of Flink's REST API but a page in HTML, as of a sign-in: "
            f"{self._sign_in.remedy()}"
        )

    def _said(self, response: Any) -> str:
        """Return the end of an error's text: where an answer points, or Flink's first error."""
        location = response.headers.get("Location")
        if 300 <= response.status < 400 and location:
            self._look_for_secrets_quoted(location)
            return (
                f": it points to {show(location)}, which is not followed: pass the URL of the "
                f"REST API itself; if that is a sign-in, {self._sign_in.remedy()}"
            )
        if response.status == 401:
            scheme = _SCHEME.match(response.headers.get("WWW-Authenticate", ""))
            wants = f" ({scheme[0]})" if scheme else ""
            return f": it asks for a sign-in{wants}: {self._sign_in.remedy()}"
        if response.status == 403:
            return f": it is not allowed: {self._sign_in.remedy()}"
        try:
            data = response.read(_CHUNK)
            self._look_for_secrets(data)
            line = _parse(data)["errors"][0].partition("\n")[0]
            self._look_for_secrets_quoted(line)
        except (OSError, HTTPException, TypeError, LookupError, AttributeError):
            return ""
        # Flink puts the class of an exception before its message.
        return f": {show(line.rpartition('Exception: ')[2])}"

    def _look_for_secrets_quoted(self, text: str) -> None:
        """Note whether the start of a text, which a message may quote, repeats a secret."""
        self._repeats_secret |= repeats(text[:_QUOTED], [*self._sign_in.secrets()])

    def _look_for_secrets(self, data: bytes | bytearray) -> None:
        """Note whether an answer has a secret, as it is or in JSON's shortest escapes."""
        secrets = [
            form.encode()
            for secret in self._sign_in.secrets()
            for form in (secret, json.dumps(secret)[1:-1])
        ]
        if any(secret in data for secret in secrets):
            self._repeats_secret = True

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
        if response.length:  # bytes that were announced and did not come
            raise HTTPException(f"it breaks off after {len(data)} bytes")
        if sum(map(data.count, b",[{")) > _MOST_MARKS:
            raise JobError(f"{url}: the answer has more than {_MOST_MARKS} commas and brackets")
        self._look_for_secrets(data)
        return bytes(data)

    def _too_late(self, url: str) -> JobError:
        if self._handler.deadline < self._deadline:
            return JobError(f"{url}: no answer within {self._timeout:g} seconds (timeout)")
        return JobError(
            f"{url}: no answer within the {_REQUESTS * self._timeout:g} seconds that all requests "
            f"have together ({_REQUESTS} times timeout)"
        )


class _NoAnswerError(JobError):
    """The error for what Flink cannot have sent, `got`, in which `Rest.told` looks for secrets."""

    def __init__(self, url: str, got: object) -> None:
        super().__init__(f"{url}: this is no answer of Flink's REST API: {show(got)}")
        self.got = got


def not_flink(url: str, got: object) -> JobError:
    """Return the error for an answer that Flink's REST API does not give."""
    return _NoAnswerError(url, got)


def is_id(text: str) -> bool:
    """Tell whether a text can be the id of a job or a vertex."""
    return _ID.fullmatch(text) is not None


def is_state(text: str) -> bool:
    """Tell whether a text can be the state of a job, a vertex or a subtask."""
    return _STATE.fullmatch(text) is not None


def member(
    url: str,
    answer: Any,
    name: str,
    cls: type[T],
    is_plausible: Callable[[T], object] = lambda value: True,
) -> T:
    """Return a member of an answer; JobError if it is missing, of another class or implausible."""
    value = answer.get(name) if isinstance(answer, dict) else None
    is_bool = isinstance(value, bool)
    if not isinstance(value, cls) or is_bool is not (cls is bool) or not is_plausible(value):
        raise not_flink(f"{url} ({name})", answer if value is None else value)
    return value


def _parse(data: bytes) -> Any:
    """Return the value of JSON, or None for bytes that Flink cannot have written."""
    try:
        return json.loads(
            data.decode(),
            object_pairs_hook=_unique,
            parse_int=_long,
            parse_constant=_long,  # It refuses NaN and Infinity: Flink writes them as text.
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


# --- connections that end at a deadline ---------------------------------------------------


def _seconds_to(deadline: float) -> float:
    """Return the seconds to a deadline, more than 0, or raise TimeoutError."""
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
        self.sock.settimeout(_seconds_to(self.deadline))  # The handshake of TLS may follow.


class _TlsConnection(HTTPSConnection, _Connection):
    """Connects as the other does, then encrypts."""

    sock: _TlsSocket

    def connect(self) -> None:
        super().connect()
        self.sock.deadline = self.deadline


class _Handler(request.AbstractHTTPHandler):
    """Opens connections that end at the deadline; TLS only to servers with a valid certificate."""

    deadline: float
    http_request = https_request = request.AbstractHTTPHandler.do_request_

    def __init__(self, context: ssl.SSLContext | None) -> None:
        super().__init__(debuglevel=0)  # Another level would print the headers.
        self._context = context
        if context is not None:
            context.sslsocket_class = _TlsSocket

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
