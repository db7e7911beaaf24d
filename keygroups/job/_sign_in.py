"""Credentials of requests: headers, certificates, and those of the environment for a host.

A secret is in no message, no repr and no frame that an error keeps: values are wrapped in Secret
as soon as they are read, and an error about one says no more than where it is from.
"""

from __future__ import annotations

import os
import re
import ssl
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from contextlib import suppress
from ipaddress import ip_address
from netrc import NetrcParseError, netrc
from typing import NamedTuple, cast
from urllib import request
from urllib.parse import SplitResult, urlsplit

from keygroups._checks import show
from keygroups.errors import InvalidTypeError, InvalidValueError
from keygroups.job._escapes import SHORTEST

TOKEN_VARIABLE = "KEYGROUPS_FLINK_TOKEN"

_NAME = re.compile("[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # RFC 9110: token
_VALUE = re.compile("[!-~](?:[ \t!-~]*[!-~])?")
_TOKEN = re.compile("[!-~]+")
# Headers of one connection only, RFC 9110, 7.6.1; those of the last row say where a message goes
# or ends, and how it is packed.
_OF_THE_CONNECTION = {
    *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection"),
    *("te", "trailer", "transfer-encoding", "upgrade"),
    *("host", "content-length", "expect", "accept-encoding"),
}


class Secret(str):
    """Text that a repr does not show."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


class SignIn(NamedTuple):
    """Credentials for one host: `source` says where they are from, "" where there are none.

    `hint` tells of credentials in the environment that are not sent. `context` is None for http;
    `has_certificate` says that the client has one.
    """

    headers: dict[str, Secret]
    context: ssl.SSLContext | None
    has_certificate: bool
    source: str
    hint: str

    def secrets(self) -> Iterator[str]:
        """Yield the words of headers that no answer may repeat, and the password within Basic."""
        for name, value in self.headers.items():
            words = value.split()
            scheme = words[0].lower()
            if len(words) > 1 and (scheme == "basic" or name.lower() == "authorization"):
                del words[0]
            if scheme == "basic":
                with suppress(ValueError):  # It may be no base64, or no text.
                    words += _basic(words[0])
            yield from (word for word in words if len(word) >= SHORTEST)

    def remedy(self) -> str:
        """Return the advice for a host that does not accept these credentials."""
        if self.source:
            return f"what {self.source} has is not accepted there{self.hint}"
        return (
            "pass headers={'Authorization': 'Bearer ...'} (--header @FILE), or set "
            f"{TOKEN_VARIABLE}{self.hint}"
        )


def sign_in(
    url: str,
    headers: Mapping[str, str] | None,
    ca_file: str | os.PathLike[str] | None,
    client_certificate: str | os.PathLike[str] | tuple[str | os.PathLike[str], ...] | None,
) -> SignIn:
    """Return the SignIn for the host of a URL, or raise for the argument that is wrong."""
    parts = urlsplit(url)
    checked = _check_headers(headers)
    context = _context(parts.scheme, ca_file, client_certificate)
    has_certificate = client_certificate is not None
    source = "headers" if checked else "client_certificate" if has_certificate else ""
    hint = ""
    if "authorization" not in map(str.lower, checked):
        host = str(parts.hostname)  # check_url has seen that there is one
        authorization, origin, hint = _of_environment(host)
        if authorization and _is_private(parts, host):
            checked["Authorization"], source = authorization, origin
        elif authorization:
            hint = f"; {origin} is sent over https alone, or to this machine"
    return SignIn(checked, context, has_certificate, source, hint)


def _check_headers(headers: Mapping[str, str] | None) -> dict[str, Secret]:
    if headers is None:
        return {}
    if not isinstance(headers, Mapping):
        raise InvalidTypeError(
            f"headers must be a mapping of str to str, got a {type(headers).__name__}"
        )
    checked: dict[str, Secret] = {}
    names: set[str] = set()
    for name, value in cast("Mapping[object, object]", headers).items():
        if not isinstance(name, str) or not isinstance(value, str):
            wrong = value if isinstance(name, str) else name
            raise InvalidTypeError(
                f"headers must be a mapping of str to str, got a {type(wrong).__name__} in it"
            )
        if not _NAME.fullmatch(name):
            raise InvalidValueError(
                "headers must have names such as Authorization, got one of other characters, "
                "which is not shown"
            )
        if name.lower() in _OF_THE_CONNECTION:
            raise InvalidValueError(
                f"headers must not have {show(name)}, which each request sets itself"
            )
        if name.lower() in names:
            raise InvalidValueError(f"headers must have {show(name)} once, in whatever case")
        if not _VALUE.fullmatch(value):
            raise InvalidValueError(
                "headers must have values of printable ASCII, without spaces or line breaks "
                f"around them, got another one of {show(name)}, which is not shown"
            )
        names.add(name.lower())
        checked[str.__str__(name)] = Secret(value)
    return checked


def _basic(encoded: str) -> list[str]:
    """Return "user:password" and the password, each also with its UTF-8 read as Latin-1."""
    user_and_password = b64decode(encoded).decode()
    texts = [user_and_password, user_and_password.partition(":")[2]]
    return texts + [text.encode().decode("latin-1") for text in texts]


def _of_environment(host: str) -> tuple[Secret | None, str, str]:
    """Return the Authorization for a host, its source, and a hint if a file cannot be read."""
    token = Secret(os.environ.get(TOKEN_VARIABLE, "").strip())
    if token:
        if not _TOKEN.fullmatch(token):
            raise InvalidValueError(
                f"{TOKEN_VARIABLE} must be a token of printable ASCII without spaces, got another "
                "value, which is not shown"
            )
        return Secret(f"Bearer {token}"), TOKEN_VARIABLE, ""
    # The same file as curl and requests; its `default` is for whoever asks, so it is left out.
    path = os.environ.get("NETRC") or os.path.expanduser("~/.netrc")  # noqa: PTH111  # Path's raises
    try:
        entry = netrc(path).hosts.get(host)
    except FileNotFoundError:
        return None, "", ""
    except (OSError, NetrcParseError, ValueError):  # Their texts may quote the file.
        return None, "", f"; {show(path)} cannot be read as a netrc file"
    if entry is None or host == "default":
        return None, "", ""
    login, account, password = entry
    basic = b64encode(f"{login or account or ''}:{password or ''}".encode()).decode()
    return Secret(f"Basic {basic}"), show(path), ""


def _is_private(parts: SplitResult, host: str) -> bool:
    """Tell whether nobody on the way can read what is sent."""
    if parts.scheme == "https":
        return True
    if "http" in request.getproxies() and not request.proxy_bypass(parts.netloc):
        return False
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _context(scheme: str, ca_file: object, client_certificate: object) -> ssl.SSLContext | None:
    """Return the context of TLS, which always verifies servers; None for http."""
    if scheme != "https":
        for name, value in (("ca_file", ca_file), ("client_certificate", client_certificate)):
            if value is not None:
                raise InvalidValueError(f"{name} must be left out where the url is one of http")
        return None
    authorities = None if ca_file is None else _path("ca_file", ca_file)
    try:
        context = ssl.create_default_context(cafile=authorities)
    except (OSError, ValueError) as error:
        raise InvalidValueError(
            f"ca_file must have certificates in PEM, got {show(authorities)}: {_reason(error)}"
        ) from None
    if client_certificate is None:
        return context
    paths = client_certificate if isinstance(client_certificate, tuple) else (client_certificate,)
    if isinstance(client_certificate, tuple) and len(paths) != 2:
        raise InvalidValueError(
            "client_certificate must be a path, or a pair of those of the certificate and of its "
            f"key, got {show(paths)}"
        )
    certificate, *key = [_path("client_certificate", path) for path in paths]
    try:
        context.load_cert_chain(certificate, key[0] if key else None, _refuse_password)
    except (OSError, ValueError) as error:
        raise InvalidValueError(
            "client_certificate must have a certificate and its key, without a password, in PEM, "
            f"got {show(client_certificate)}: {_reason(error)}"
        ) from None
    return context


def _path(name: str, path: object) -> str:
    """Return a path as text, which is not empty: OpenSSL would take that for none."""
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidTypeError(f"{name} must be a str or a path, got {show(path)}")
    if not (text := os.fsdecode(path)):
        raise InvalidValueError(f"{name} must be the path of a file, got ''")
    return text


def _reason(error: Exception) -> str:
    return show(getattr(error, "strerror", None) or str(error))


def _refuse_password() -> str:
    """Raise in place of OpenSSL, which would ask at the terminal."""
    raise ValueError("the key has a password")
