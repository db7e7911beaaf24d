"""Flink's REST API, asked with the standard library alone."""

from __future__ import annotations

import json
import re
import time
from http.client import HTTPException
from typing import Any, TypeVar
from urllib import request
from urllib.error import HTTPError
from urllib.parse import urlsplit

from keygroups._checks import check_str, show
from keygroups.errors import InvalidValueError, JobError

T = TypeVar("T")

_MOST_BYTES = 1 << 26  # of an answer; a job of 1,000 vertices takes a tenth of it
_CHUNK = 1 << 16
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
    found = _JOB_OF_PAGE.search(parts.fragment)
    base = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
    return base, found[1] if found else None


class Rest:
    """The REST API of one cluster."""

    def __init__(self, url: str, timeout: float) -> None:
        self.url = url
        self._timeout = timeout
        self._opener = request.OpenerDirector()  # without files and FTP, where redirected to
        for handler in (
            *(request.ProxyHandler, request.UnknownHandler, request.HTTPHandler),
            *(request.HTTPSHandler, request.HTTPDefaultErrorHandler),
            *(request.HTTPRedirectHandler, request.HTTPErrorProcessor),
        ):
            self._opener.add_handler(handler())

    def get(self, path: str) -> Any:
        """Return the JSON object at a path, or raise JobError."""
        url = self.url + path
        deadline = time.monotonic() + self._timeout
        try:
            with self._opener.open(url, timeout=self._timeout) as response:
                data = self._read(response, url, deadline)
        except HTTPError as error:
            raise JobError(f"{url}: status {error.code}{_said(error)}") from None
        except TimeoutError:
            raise self._too_late(url) from None
        except (OSError, HTTPException, ValueError) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, TimeoutError):
                raise self._too_late(url) from None
            raise JobError(f"{url}: no answer: {show(reason)}") from None
        try:
            answer = json.loads(data)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise not_flink(url, data[:40])
        return answer

    def _read(self, response: Any, url: str, deadline: float) -> bytes:
        data = bytearray()
        while chunk := response.read1(_CHUNK):
            data += chunk
            if len(data) > _MOST_BYTES:
                raise JobError(f"{url}: the answer has more than {_MOST_BYTES} bytes")
            if time.monotonic() > deadline:
                raise self._too_late(url)
        if response.length:  # so many bytes were to follow
            raise HTTPException(f"it breaks off after {len(data)} bytes")
        return bytes(data)

    def _too_late(self, url: str) -> JobError:
        return JobError(f"{url}: no answer within {self._timeout:g} seconds (timeout)")


def not_flink(url: str, found: object) -> JobError:
    """Build the error for an answer that is none of Flink's REST API."""
    return JobError(f"{url}: this is no answer of Flink's REST API: {show(found)}")


def member(url: str, answer: Any, name: str, cls: type[T]) -> T:
    """Return a member of an answer, or raise JobError where it is none, or of another class."""
    value = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(value, cls) or isinstance(value, bool):
        raise not_flink(f"{url} ({name})", answer if value is None else value)
    return value


def _said(error: HTTPError) -> str:
    """Return the first line of Flink's errors in an answer, without the class; "" for no Flink."""
    with error:
        try:
            line = json.loads(error.read(_CHUNK))["errors"][0].partition("\n")[0]
        except (OSError, HTTPException, ValueError, TypeError, LookupError, AttributeError):
            return ""
    return f": {show(line.rpartition('Exception: ')[2])}"
