"""What signs in to Flink is sent where it belongs, and is seen nowhere else.

A canary stands for each secret: no error, no value, no pickle, no output and no frame of a
traceback has it, whatever is wrong and whatever the server does with it.
"""

from __future__ import annotations

import http.client
import io
import json
import pickle
import socket
import ssl
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from support.inside.answers import _rest
from support.rest_server import JOB_ID, OK, TLS, Talk, job_of, peer, says, server_context

from keygroups.cli import main
from keygroups.errors import InvalidTypeError, InvalidValueError, JobError, KeyGroupsError
from keygroups.job import read_job

CANARY = "c4n4ry-Zm9v.0123456789"
BEARER = {"Authorization": f"Bearer {CANARY}"}
BASIC = f"Basic {b64encode(f'me:{CANARY}'.encode()).decode()}"  # RFC 7617
VARIABLE = "KEYGROUPS_FLINK_TOKEN"
JOB = f"/jobs/{JOB_ID}"


@pytest.fixture(autouse=True)
def empty_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Have no token, no password and no proxy but those of the test."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "no netrc"))
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("no_proxy", "")


def write_netrc(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> str:
    path = folder / "netrc"
    path.write_text(text)
    monkeypatch.setenv("NETRC", str(path))
    return str(path)


def sent(requests: list[str], name: str = "Authorization") -> set[str | None]:
    """Return the values that a header had in requests, None where it was not there."""
    values: set[str | None] = set()
    for request in requests:
        headers = dict(line.split(": ", 1) for line in request.split("\r\n")[1:] if line)
        values.add(headers.get(name))
    return values


def variables(error: BaseException | None) -> Iterator[str]:
    """Yield the lines of a traceback that shows variables, but of the frames of this test."""
    while error is not None:
        traceback = error.__traceback__
        while traceback is not None:
            frame = traceback.tb_frame
            if frame.f_code.co_filename != __file__:
                yield from map(repr, frame.f_locals.values())
                for value in frame.f_locals.values():
                    if isinstance(value, (dict, bytes, str)):
                        yield repr(value)
            traceback = traceback.tb_next
        error = error.__cause__ or error.__context__


def refused(url: str, **options: Any) -> str:
    """Return why a job cannot be read: one line, which tells nothing of what signs in."""
    with pytest.raises(KeyGroupsError) as caught:
        read_job(url, JOB_ID, **options)
    text = str(caught.value)
    assert text.isprintable()
    assert len(text) < 500
    check_silent(text, repr(caught.value), repr(pickle.dumps(caught.value)))
    check_silent(*variables(caught.value))
    return text


def check_silent(*texts: str) -> None:
    for text in texts:
        assert "c4n4ry" not in text
        assert BASIC[6:20] not in text


# --- headers --------------------------------------------------------------------------------


def test_headers_are_sent_with_each_request() -> None:
    requests: list[str] = []
    with peer(job_of(1), requests=requests) as url:
        job = read_job(url, JOB_ID, headers=BEARER | {"X-Tenant": "a b"})
    assert len(requests) == 3
    assert sent(requests) == {BEARER["Authorization"]}
    assert sent(requests, "X-Tenant") == {"a b"}
    check_silent(str(job), repr(job), job._repr_html_(), repr(pickle.dumps(job)))


def test_sensible_headers_may_be_replaced() -> None:
    requests: list[str] = []
    with peer(job_of(0), requests=requests) as url:
        read_job(url, JOB_ID, headers={"user-agent": "x"})
    assert sent(requests, "User-Agent") == {"x"}


@pytest.mark.parametrize(
    ("headers", "says"),
    [
        *(
            ({"Authorization": value}, "headers must have values of printable ASCII, .* of 'Auth")
            for value in (
                *("", " ", f" {CANARY}", f"{CANARY} ", f"{CANARY}\r\nX: y", f"{CANARY}\n"),
                *(f"{CANARY}\0", f"{CANARY}\x7f", f"{CANARY}\u00e9", f"{CANARY}\u2028x"),
                f"{CANARY}\udcff",
            )
        ),
        *(
            ({name: CANARY}, "headers must have names such as Authorization, got one of other")
            for name in ("", " ", f"Bearer {CANARY}", "X: y", "X\r\nY", "X\n", "\u00e9", "X\0")
        ),
        *(
            ({name: CANARY}, f"headers must not have '{name}', which each request sets itself")
            for name in ("Host", "CONTENT-LENGTH", "Transfer-Encoding", "Connection", "TE")
        ),
        ({"Proxy-Authorization": CANARY}, "headers must not have 'Proxy-Authorization'"),
        ({"Cookie": CANARY, "cookie": CANARY}, "headers must have 'cookie' once, in whatever"),
        ({"cookie": CANARY, "Cookie": CANARY}, "headers must have 'Cookie' once, in whatever"),
    ],
)
def test_headers_that_cannot_be(headers: Mapping[str, str], says: str) -> None:
    with pytest.raises(InvalidValueError, match=says):
        read_job("http://127.0.0.1:1", JOB_ID, headers=headers)
    refused("http://127.0.0.1:1", headers=headers)


@pytest.mark.parametrize(
    ("headers", "says"),
    [
        (f"Authorization: {CANARY}", "got a str"),
        ([("Authorization", CANARY)], "got a list"),
        ({"Authorization": CANARY.encode()}, "got a bytes in it"),
        ({b"Authorization": CANARY}, "got a bytes in it"),
        ({"Authorization": None}, "got a NoneType in it"),
    ],
)
def test_headers_that_are_none(headers: Any, says: str) -> None:
    with pytest.raises(InvalidTypeError, match=f"headers must be a mapping of str to str, {says}"):
        read_job("http://127.0.0.1:1", JOB_ID, headers=headers)
    refused("http://127.0.0.1:1", headers=headers)


@pytest.mark.parametrize(
    "url",
    [
        *(f"https://me:{CANARY}@flink{rest}" for rest in ("", ":0", ":99999", ":x", "/#/x")),
        *(f"http://me:{CANARY}@", f"ftp://me:{CANARY}@flink", f"me:{CANARY}@flink:8081"),
        f"http://me:{CANARY}@[::1",
        f"https://me:{CANARY}@flink".encode(),
    ],
)
def test_url_with_a_password_is_not_shown(url: Any) -> None:
    assert refused(url).startswith("url must ")


def test_a_redirect_takes_nothing_along() -> None:
    requests: list[str] = []
    with peer(job_of(0), requests=requests) as other:
        login = f"{other}/login?to=%2Fjobs"
        with peer(says(b"HTTP/1.1 302 Found\r\nLocation: ", login.encode(), b"\r\n\r\n")) as url:
            text = refused(url, headers=BEARER)
    assert requests == []
    assert text == (
        f"{url}{JOB}: status 302: it points to '{login}', which is not followed: pass the URL of "
        "the REST API itself; if that is a sign-in, what headers has is not accepted there"
    )


# --- what the environment has ---------------------------------------------------------------


def test_token_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, f"{CANARY}\n")
    requests: list[str] = []
    with peer(job_of(0), requests=requests) as url:
        read_job(url, JOB_ID)
        read_job(url.replace("127.0.0.1", "localhost"), JOB_ID, headers={"X-Tenant": "a"})
        assert len(requests) == 4
        assert sent(requests) == {f"Bearer {CANARY}"}
        requests.clear()
        read_job(url, JOB_ID, headers={"authorization": "Bearer other"})
        assert sent(requests) == {"Bearer other"}


@pytest.mark.parametrize("token", [f"{CANARY} x", f"a\r\n{CANARY}", f"{CANARY}\u00e9"])
def test_token_that_is_none(token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, token)
    text = refused("http://127.0.0.1:1")
    assert text.startswith(f"{VARIABLE} must be a token of printable ASCII without spaces, got")


def test_password_of_a_netrc_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others = "default login a password b\nmachine flink.example login other password x\n"
    text = f"{others}machine 127.0.0.1\nlogin me\npassword {CANARY}\n"
    path = write_netrc(tmp_path, monkeypatch, text)
    requests: list[str] = []
    with peer(job_of(0), requests=requests) as url:
        read_job(url, JOB_ID)
        assert sent(requests) == {BASIC}
        requests.clear()
        read_job(url.replace("127.0.0.1", "localhost"), JOB_ID)  # the file lacks it
        assert sent(requests) == {None}
        requests.clear()
        monkeypatch.setenv(VARIABLE, "token")
        read_job(url, JOB_ID)
        assert sent(requests) == {"Bearer token"}
    monkeypatch.delenv(VARIABLE)
    with peer(says(b"HTTP/1.1 401 No\r\n\r\n")) as url:
        assert refused(url).endswith(f": what '{path}' has is not accepted there")


def test_account_of_a_netrc_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the user where there is no login, as for requests."""
    write_netrc(tmp_path, monkeypatch, f"machine 127.0.0.1 account me password {CANARY}\n")
    requests: list[str] = []
    with peer(job_of(0), requests=requests) as url:
        read_job(url, JOB_ID)
    assert sent(requests) == {BASIC}


def test_token_goes_past_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """To this machine, where the environment says that there is none between."""
    monkeypatch.setenv(VARIABLE, CANARY)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    requests: list[str] = []
    with peer(job_of(0), requests=requests) as url:
        read_job(url, JOB_ID)
    assert sent(requests) == {f"Bearer {CANARY}"}


def test_netrc_file_in_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NETRC")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".netrc").write_text(f"machine 127.0.0.1 login me password {CANARY}\n")
    requests: list[str] = []
    with peer(job_of(0), requests=requests) as url:
        read_job(url, JOB_ID)
    assert sent(requests) == {BASIC}


def test_the_default_of_a_netrc_file_is_for_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not for a host that is called so either."""
    write_netrc(tmp_path, monkeypatch, f"default login me password {CANARY}\n")
    requests: list[str] = []
    with peer(says(b"HTTP/1.1 401 No\r\n\r\n"), requests=requests) as url:
        assert refused(url).endswith(f"or set {VARIABLE}")
        monkeypatch.setenv("http_proxy", url)
        assert refused("http://default").endswith(f"or set {VARIABLE}")
    assert sent(requests) == {None}


@pytest.mark.parametrize("text", [f"{CANARY} x", f"machine 127.0.0.1 {CANARY} x", "\xff"])
def test_netrc_file_that_is_none(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no reason not to ask, as of curl; a refusal says so."""
    path = tmp_path / "netrc"
    path.write_bytes(text.encode("latin-1"))
    monkeypatch.setenv("NETRC", str(path))
    with peer(job_of(0)) as url:
        read_job(url, JOB_ID)
    with peer(says(b"HTTP/1.1 401 No\r\n\r\n")) as url:
        assert refused(url).endswith(f"; '{path}' cannot be read as a netrc file")


@pytest.mark.parametrize("is_netrc", [True, False])
def test_nothing_of_the_environment_goes_over_http(
    is_netrc: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not to another machine, and not to a proxy; what the caller gives does."""
    origin = VARIABLE
    monkeypatch.setenv(VARIABLE, CANARY)
    if is_netrc:
        monkeypatch.delenv(VARIABLE)
        text = "".join(f"machine {host} login me password {CANARY}\n" for host in ("a.b", "::1"))
        origin = f"'{write_netrc(tmp_path, monkeypatch, text)}'"
    requests: list[str] = []
    with peer(says(b"HTTP/1.1 401 No\r\n\r\n"), requests=requests) as url:
        monkeypatch.setenv("http_proxy", url)
        for host in ("http://a.b:8081", "http://[::1]:8081"):
            assert refused(host) == (
                f"{host}{JOB}: status 401: it asks for a sign-in: pass headers={{'Authorization': "
                f"'Bearer ...'}} (--header @FILE), or set {VARIABLE}; {origin} is sent over "
                "https alone, or to this machine"
            )
        assert sent(requests) == {None}
        refused("http://a.b:8081", headers=BEARER)
        assert sent(requests[-1:]) == {BEARER["Authorization"]}


def test_host_that_is_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its name leads to."""
    monkeypatch.setenv(VARIABLE, CANARY)
    requests: list[str] = []
    with peer(says(b"HTTP/1.1 401 No\r\n\r\n"), requests=requests) as url:
        present = (socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", int(url[17:])))
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [present])
        assert f"; {VARIABLE} is sent over https alone" in refused("http://localhost.example")
    assert sent(requests) == {None}


def test_a_proxy_of_https_sees_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, CANARY)
    requests: list[str] = []
    with peer(says(b"HTTP/1.1 502 No\r\n\r\n"), requests=requests) as url:
        monkeypatch.setenv("https_proxy", url)
        refused("https://flink.example")
        refused("https://flink.example", headers=BEARER)
    assert len(requests) == 2
    assert all(request.startswith("CONNECT flink.example:443 ") for request in requests)
    check_silent(*requests)


# --- answers --------------------------------------------------------------------------------

PASS = f"pass headers={{'Authorization': 'Bearer ...'}} (--header @FILE), or set {VARIABLE}"
PAGE = "this is no answer of Flink's REST API but a page in HTML, as of a sign-in"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"HTTP/1.1 401 No\r\n\r\n", "status 401: it asks for a sign-in"),
        (
            b"HTTP/1.1 401 No\r\nWWW-Authenticate: Bearer realm=x\r\n\r\n<html>",
            "status 401: it asks for a sign-in (Bearer)",
        ),
        (
            b"HTTP/1.1 401 No\r\nWWW-Authenticate: \x1b[1m\r\n\r\n",
            "status 401: it asks for a sign-in",
        ),
        (b"HTTP/1.1 403 No\r\n\r\n<html>", "status 403: it is not allowed"),
        (OK + b"\r\n<!DOCTYPE html><title>Sign in</title>", PAGE),
        (OK + b"\r\n\n  <html>", PAGE),
        (OK + b"Content-Type: text/html; charset=utf-8\r\n\r\nSign in", PAGE),
        (OK + b"Content-Type: text/html\r\n\r\n", PAGE),
    ],
)
def test_answer_of_who_wants_a_sign_in(answer: bytes, reason: str) -> None:
    with peer(says(answer)) as url:
        assert refused(url) == f"{url}{JOB}: {reason}: {PASS}"
        not_accepted = f"{url}{JOB}: {reason}: what headers has is not accepted there"
        assert refused(url, headers=BEARER) == not_accepted
        assert refused(url, headers={"X-Api-Key": CANARY}) == not_accepted


def test_html_of_an_answer_that_is_json() -> None:
    """Whatever the server calls it."""
    body = b'{"name": "j", "state": "RUNNING", "vertices": [], "plan": {"nodes": []}}'
    with peer(says(OK, b"Content-Type: text/html\r\n\r\n", body)) as url:
        assert read_job(url, JOB_ID).name == "j"


def echo(head: bytes, foot: bytes = b"") -> Talk:
    """Answer with the secret that is sent, in many ways."""
    text = f"Bearer {CANARY} {BASIC} me:{CANARY}".encode()
    return lambda connection, _: connection.sendall(head + text + foot)


ECHOES = {
    "status line": (b"HTTP/9 ", b"\r\n\r\n"),
    "no HTTP": (b"", b"\r\n\r\n"),
    "location": (b"HTTP/1.1 302 No\r\nLocation: http://x/", b"\r\n\r\n"),
    "error": (b'HTTP/1.1 500 No\r\n\r\n{"errors": ["', b'"]}'),
    "text": (OK + b"\r\n" + b"x" * 20, b""),
    "html": (OK + b"\r\n<html>", b""),
    "state": (OK + b'\r\n{"vertices": [], "plan": {"nodes": []}, "name": "", "state": "', b'"}'),
    "vertex": (OK + b'\r\n{"plan": {"nodes": []}, "vertices": [{"id": "' + b"x" * 90, b'"}]}'),
    "authenticate": (b"HTTP/1.1 401 No\r\nWWW-Authenticate: ", b"\r\n\r\n"),
    "header": (OK + b"Content-Length: ", b"\r\n\r\n{}"),
}


@pytest.mark.parametrize("name", ECHOES)
def test_answer_that_repeats_what_was_sent(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_netrc(tmp_path, monkeypatch, f"machine 127.0.0.1 login me password {CANARY}\n")
    with peer(echo(*ECHOES[name])) as url:
        assert refused(url, headers=BEARER).startswith(url)
        assert refused(url).startswith(url)


def test_answer_that_repeats_a_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without what stands before it in the header, and with what JSON makes of it."""
    password = f'{CANARY}"\\/'
    write_netrc(tmp_path, monkeypatch, f"machine 127.0.0.1 login me password {CANARY}\n")
    state = {"vertices": [], "plan": {"nodes": []}, "name": "", "state": CANARY}
    with peer(says(OK, b"\r\n", json.dumps(state).encode())) as url:
        refused(url)
    monkeypatch.setenv("NETRC", str(tmp_path / "no netrc"))
    for state["state"] in (password, f"x{password}", f"{password}x"):
        with peer(says(OK, b"\r\n", json.dumps(state).encode())) as url:
            refused(url, headers={"X-Password": password})


ESCAPES: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "upper case": str.upper,
    "swapped case": str.swapcase,
    "JSON": lambda text: "".join(f"\\u{ord(char):04x}" for char in text),
    "JSON, one character": lambda text: f"\\u{ord(text[0]):04X}{text[1:]}",
    "Python": lambda text: "".join(f"\\x{ord(char):02x}" for char in text),
    "Python, eight digits": lambda text: "".join(f"\\U{ord(char):08x}" for char in text),
    "percent": lambda text: "".join(f"%{ord(char):02x}" for char in text),
    "percent, one character": lambda text: f"%{ord(text[0]):02X}{text[1:]}",
    "HTML, decimal": lambda text: "".join(f"&#{ord(char)};" for char in text),
    "HTML, hexadecimal": lambda text: "".join(f"&#x{ord(char):X};" for char in text),
    "quoted-printable": lambda text: "".join(f"={ord(char):02X}" for char in text),
    "base64": lambda text: b64encode(text.encode()).decode(),
    "base64, one later": lambda text: b64encode(f"a{text}b".encode()).decode(),
    "base64, two later": lambda text: b64encode(f"ab{text}c".encode()).decode().rstrip("="),
    "base64, for a URL": lambda text: urlsafe_b64encode(f"~~~{text}".encode()).decode(),
    "with a sign": lambda text: "-".join(text),
    "hexadecimal": lambda text: text.encode().hex(),
    "hexadecimal, half a byte later": lambda text: f"a{text.encode().hex()}",
    "hexadecimal, behind others": lambda text: (b"-" * 50 + text.encode()).hex(),
    "hexadecimal, before others": lambda text: (text.encode() + b"-" * 50).hex(),
    "base64, behind others": lambda text: b64encode(b"-" * 50 + text.encode()).decode(),
    "base64, before others": lambda text: b64encode(text.encode() + b"-" * 50).decode(),
    "UTF-16": lambda text: "\\u0000".join(text),
    "percent of JSON": lambda text: "".join(f"%5cu{ord(char):04x}" for char in text),
    "JSON of HTML": lambda text: "".join(f"\\u0026#{ord(char)};" for char in text),
    "HTML of percent of HTML": lambda text: "".join(f"&#37;26#{ord(char)};" for char in text),
    "with a space": lambda text: " ".join(text),
    "eight characters": lambda text: f"z{text[3:12]}z",
}
PLACES: dict[str, tuple[bytes, bytes]] = {
    "error": (b'HTTP/1.1 500 No\r\n\r\n{"errors": ["', b'"]}'),
    "state": (OK + b'\r\n{"vertices": [], "plan": {"nodes": []}, "name": "", "state": "', b'"}'),
    "list": (OK + b'\r\n{"vertices": [["', b'"]]}'),
    "location": (b"HTTP/1.1 302 No\r\nLocation: http://x/", b"\r\n\r\n"),
    "status line": (b"", b"\r\n\r\n"),
    "body": (OK + b"\r\n", b""),
    "far in the body": (OK + b"\r\n" + b"x" * 34, b""),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("escape", ESCAPES)
def test_answer_that_repeats_what_was_sent_in_escapes(escape: str, place: str) -> None:
    """The message is the one that quotes nothing, whatever a reader could make of a quote."""
    head, foot = PLACES[place]
    answer = head + ESCAPES[escape](CANARY).encode("latin-1") + foot
    with peer(says(answer)) as url:
        text = refused(url, headers=BEARER)
    is_no_json = text == f"{url}{JOB}: status 500"
    assert is_no_json or text.endswith("API: it repeats what signs in, and is not shown")


@pytest.mark.parametrize(
    ("quoted", "password", "is_quoted"),
    [
        ("c4n", "c4n", True),
        ("C4N4", "c4n4", False),
        ("x-c4-n4r", "c4n4r", False),
        ("c4n4", "c4n4r", True),
        ("c4n4ryb", "c4n4ryboat", True),  # seven of ten
        ("c4n4rybo", "c4n4ryboat", False),
        ("n4ryboat", "c4n4ryboat", False),
        ("caf\u00e9-a", "caf\u00e9-au-lait", True),
        ("caf\u00e9-au-la", "caf\u00e9-au-lait", False),
        ("caf\u00c3\u00a9-au-la", "caf\u00e9-au-lait", False),  # UTF-8, read as ISO 8859-1
        ("caf%c3%a9-au-la", "caf\u00e9-au-lait", False),
        ("a%41b", "a%41b-%%", False),
        ("RUNNING", "Flink-and-jobs", True),
        (f"%{'25' * 6}61b-%-c%d", "ab-%-c%d", False),
        (f"%{'25' * 9}61b-%-c%d", "ab-%-c%d", True),  # more escapes than anybody reads
        ("x!a%!-!y", "!A%!-!", False),  # one letter alone
        ("a", "!A%!-!", True),
        ("\\U7fffffff", "\\U7fffffff..", False),  # no character of Unicode
    ],
)
def test_how_much_of_a_password_is_a_repetition(
    quoted: str, password: str, is_quoted: bool
) -> None:
    basic = {"Authorization": f"Basic {b64encode(f':{password}'.encode()).decode()}"}
    answer = json.dumps({"errors": [quoted]}).encode()
    with (
        peer(says(b"HTTP/1.1 500 No\r\n\r\n", answer)) as url,
        pytest.raises(JobError) as caught,
    ):
        read_job(url, JOB_ID, headers=basic)
    assert ("it repeats what signs in" not in str(caught.value)) == is_quoted, str(caught.value)


def test_word_of_the_messages_that_signs_in() -> None:
    """What is said in the words of keygroups is no repetition of eight characters by chance."""
    with peer(says(b"HTTP/1.1 401 No\r\nWWW-Authenticate: Bearer\r\n\r\n")) as url:
        text = refused(url, headers={"Authorization": "Bearer who-has-c4n4rie"})
    assert text.endswith("asks for a sign-in (Bearer): what headers has is not accepted there")


def test_less_than_four_characters_may_be_repeated() -> None:
    """Which are in many answers by chance."""
    state = {"vertices": [], "plan": {"nodes": []}, "name": "", "state": "c4n4r"}
    with peer(says(OK, b"\r\n", json.dumps(state).encode())) as url:
        for sent_with, is_shown in (("c4n", True), ("c4n4", False)):
            with pytest.raises(JobError) as caught:
                read_job(url, JOB_ID, headers={"X-Password": sent_with})
            assert ("it repeats what signs in" not in str(caught.value)) == is_shown
            assert ("'c4n4r'" in str(caught.value)) == is_shown


def test_place_that_repeats_a_password() -> None:
    password = f'{CANARY}"\\/'
    answer = f"HTTP/1.1 302 No\r\nLocation: http://x/{password}\r\n\r\n"
    with peer(says(answer.encode())) as url:
        assert "points to" not in refused(url, headers={"X-Password": password})


@pytest.mark.parametrize(("end", "is_shown"), [(4_096, False), (4_097, True)])
def test_how_far_a_place_is_looked_at(end: int, is_shown: bool) -> None:
    """The message has the first characters of it alone."""
    place = "http://x/" + "y" * (end - 13) + "c4n4" + "y" * 4_000
    answer = f"HTTP/1.1 302 No\r\nLocation: {place}\r\n\r\n"
    with peer(says(answer.encode())) as url, pytest.raises(JobError) as caught:
        read_job(url, JOB_ID, headers={"X-Password": "c4n4"})
    assert ("points to 'http://x/yyy" in str(caught.value)) == is_shown
    assert "c4n4" not in str(caught.value)


@pytest.mark.parametrize(
    ("signs_in", "scheme", "repeated"),
    [
        (f"me:{CANARY}", "bAsIC", CANARY),  # RFC 9110: a scheme has no case
        (f"me:{CANARY}:{CANARY}", "Basic", f"{CANARY}:{CANARY}"),
        (f"{CANARY}:abc", "Basic", f"{CANARY}:abc"),  # whose password alone is too short
        (CANARY, "Basic", CANARY),  # RFC 7617 wants a colon
    ],
)
def test_answer_that_repeats_what_basic_has(signs_in: str, scheme: str, repeated: str) -> None:
    sent = f"{scheme} {b64encode(signs_in.encode()).decode()}"
    with peer(says(OK, b"\r\n", repeated.encode())) as url:
        text = refused(url, headers={"Authorization": sent})
    assert text.endswith("it repeats what signs in, and is not shown")


@pytest.mark.parametrize("name", ["Authorization", "authorization", "X-Password"])
def test_answer_that_repeats_the_only_word_of_a_header(name: str) -> None:
    """A scheme stands before others, and signs in where it stands alone."""
    with peer(says(OK, b"\r\n", CANARY.encode())) as url:
        text = refused(url, headers={name: CANARY})
    assert text.endswith("it repeats what signs in, and is not shown")


def test_first_words_of_headers() -> None:
    """One is a scheme, which is no secret, in Authorization and before what Basic has."""
    sent = f"Basic {b64encode(f'me:{CANARY}'.encode()).decode()}"
    for headers, is_shown in (
        ({"X-Words": f"c4n4 {CANARY}"}, False),
        ({"Authorization": f"c4n4 {CANARY}"}, True),
        ({"X-Auth": sent.replace("Basic", "basic")}, True),
        ({"X-Auth": sent.replace("Basic", "c4n4")}, False),
    ):
        word = "basic" if "basic" in str(headers) else "c4n4"
        with peer(says(OK, b"\r\n", word.encode())) as url, pytest.raises(JobError) as caught:
            read_job(url, JOB_ID, headers=headers)
        assert ("it repeats what signs in" not in str(caught.value)) == is_shown, headers


def test_name_of_a_job_that_repeats_what_was_sent() -> None:
    """In the list of jobs, which an error shows."""
    jobs = f'{{"jobs": [{{"jid": "{JOB_ID}", "name": "{CANARY}", "state": "RUNNING"}}, '
    other = f'{{"jid": "{JOB_ID}", "name": "x", "state": "RUNNING"}}]}}'
    with (
        peer(says(OK, b"\r\n", (jobs + other).encode())) as url,
        pytest.raises(KeyGroupsError) as caught,
    ):
        read_job(url, headers=BEARER)
    assert str(caught.value).endswith("it repeats what signs in, and is not shown")
    check_silent(*variables(caught.value))


def test_checkpoints_that_repeat_what_was_sent() -> None:
    def talk(connection: socket.socket, path: str) -> None:
        (echo(OK + b"\r\n") if path.endswith("/checkpoints") else job_of(0))(connection, path)

    with peer(talk) as url:
        job = read_job(url, JOB_ID, headers=BEARER)
    with pytest.raises(JobError) as caught:
        job.savepoints()
    assert str(caught.value).endswith("it repeats what signs in, and is not shown")
    check_silent(str(caught.value), repr(pickle.dumps(job)))


def test_basic_that_is_none() -> None:
    with peer(says(b"HTTP/1.1 500 No\r\n\r\nx")) as url:
        assert refused(url, headers={"Authorization": "Basic =/c4n4ry=!"}).endswith("status 500")


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, AttributeError])
def test_whatever_ends_a_request(
    error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The frames in which it happens have what is sent, as bytes."""

    def send(*_: object) -> None:
        raise error

    monkeypatch.setattr(_rest._Socket, "sendall", send)
    with peer(job_of(0)) as url, pytest.raises(BaseException) as caught:  # noqa: PT011
        read_job(url, JOB_ID, headers=BEARER)
    assert caught.type is (JobError if error is OSError else error)
    check_silent(*variables(caught.value))


def test_nothing_is_printed(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(http.client.HTTPConnection, "debuglevel", 1)
    with peer(job_of(0)) as url:
        read_job(url, JOB_ID, headers=BEARER)
    check_silent(*capfd.readouterr())


# --- certificates ---------------------------------------------------------------------------


def named(url: str) -> str:
    """Return the URL with the name that the server's certificate has."""
    return url.replace("127.0.0.1", "localhost")


def test_ca_file() -> None:
    """Who has signed the server's certificate; the host has to be the one that it names."""
    requests: list[str] = []
    with peer(job_of(1), server_context(), requests) as url:
        for ca_file in (TLS / "ca.pem", str(TLS / "ca.pem")):
            job = read_job(named(url), JOB_ID, ca_file=ca_file, headers=BEARER)
            assert len(job.vertices) == 1
        assert sent(requests) == {BEARER["Authorization"]}
        requests.clear()
        text = refused(url, ca_file=TLS / "ca.pem", headers=BEARER)
        assert "SSLCertVerificationError" in text
        assert "ca_file" not in text
        text = refused(named(url), headers=BEARER)
        assert text.endswith(
            ": pass ca_file, with the certificate of who signed that server's, in PEM"
        )
        assert "SSLCertVerificationError" in refused(
            named(url), ca_file=TLS / "client.pem", headers=BEARER
        )
    assert requests == []


def test_ca_file_is_all_that_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(TLS / "ca.pem"))
    with peer(job_of(0), server_context()) as url:
        assert read_job(named(url), JOB_ID).vertices == ()
        assert "SSLCertVerificationError" in refused(named(url), ca_file=TLS / "client.pem")


def test_token_of_the_environment_over_https(monkeypatch: pytest.MonkeyPatch) -> None:
    """To a host by whatever name: here it is one of this machine."""
    monkeypatch.setenv(VARIABLE, CANARY)
    monkeypatch.setattr("keygroups.job._sign_in.ip_address", None)
    requests: list[str] = []
    with peer(job_of(0), server_context(), requests) as url:
        read_job(named(url), JOB_ID, ca_file=TLS / "ca.pem")
    assert sent(requests) == {f"Bearer {CANARY}"}


@pytest.mark.parametrize("path", ["no such file", "client.key", ".", "a\0b"])
def test_ca_file_that_is_none(path: str) -> None:
    text = refused("https://localhost:1", ca_file=str(TLS / path))
    assert text.startswith("ca_file must have certificates in PEM, got '")


@pytest.mark.parametrize("argument", ["ca_file", "client_certificate"])
def test_file_that_is_no_path(argument: str) -> None:
    for value in (5, b"x", True, ["a", "b"]):
        assert refused("https://localhost:1", **{argument: value}).startswith(
            f"{argument} must be a str or a path, got "
        )
    assert refused("https://localhost:1", **{argument: ""}) == (
        f"{argument} must be the path of a file, got ''"
    )
    assert refused("http://localhost:1", **{argument: TLS / "ca.pem"}) == (
        f"{argument} must be left out where the url is one of http"
    )


def asks_for_a_certificate() -> ssl.SSLContext:
    context = server_context()
    context.load_verify_locations(TLS / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    return context


@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_client_certificate(newest: ssl.TLSVersion, tmp_path: Path) -> None:
    both = tmp_path / "both.pem"
    both.write_bytes((TLS / "client.pem").read_bytes() + (TLS / "client.key").read_bytes())
    context = asks_for_a_certificate()
    context.maximum_version = newest
    with peer(job_of(0), context) as url:
        for certificate in (both, str(both), (TLS / "client.pem", TLS / "client.key")):
            read_job(named(url), JOB_ID, ca_file=TLS / "ca.pem", client_certificate=certificate)
        assert refused(named(url), ca_file=TLS / "ca.pem").endswith(
            ": pass client_certificate, if the server asks for one"
        )


def test_client_certificate_that_is_not_accepted() -> None:
    context = asks_for_a_certificate()
    with peer(says(b"HTTP/1.1 403 No\r\n\r\n"), context) as url:
        text = refused(
            named(url),
            ca_file=TLS / "ca.pem",
            client_certificate=(TLS / "client.pem", TLS / "client.key"),
        )
    assert text.endswith(": what client_certificate has is not accepted there")


@pytest.mark.parametrize(
    ("certificate", "says"),
    [
        ("no such file", "No such file"),
        ("client.pem", ""),  # no key
        (("client.pem", "server.key"), "KEY_VALUES_MISMATCH"),
        (("client.pem", "client-with-password.key"), "the key has a password"),
    ],
)
def test_client_certificate_that_is_none(certificate: str | tuple[str, ...], says: str) -> None:
    paths = (certificate,) if isinstance(certificate, str) else certificate
    files = tuple(str(TLS / path) for path in paths)
    text = refused("https://localhost:1", client_certificate=files if files[1:] else files[0])
    assert text.startswith(
        "client_certificate must have a certificate and its key, without a password, in PEM, got "
    )
    assert says in text


def test_client_certificate_is_a_pair() -> None:
    for files in ((), ("a",), ("a", "b", "c")):
        assert refused("https://localhost:1", client_certificate=files).startswith(
            "client_certificate must be a path, or a pair of those of the certificate and of its "
        )


# --- on the command line --------------------------------------------------------------------


def command(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Run the command, which prints nothing of what signs in; return its status and error."""
    status = main(["job", *arguments])
    out, err = capsys.readouterr()
    check_silent(out, err)
    assert err.count("\n") == (status != 0)
    return status, err


def test_command_with_headers(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "headers"
    path.write_text(f"\nAuthorization: Bearer {CANARY}\n X-Tenant :a:b \n")
    monkeypatch.setattr("sys.stdin", io.StringIO("Cookie: a=b\n"))
    requests: list[str] = []
    with peer(job_of(0), requests=requests) as url:
        passed = (url, JOB_ID, "--header", f"@{path}", "--header", "@-", "--header", "X-One: 1")
        assert command(capsys, *passed) == (0, "")
    assert sent(requests) == {BEARER["Authorization"]}
    assert sent(requests, "X-Tenant") == {"a:b"}
    assert sent(requests, "Cookie") == {"a=b"}
    assert sent(requests, "X-One") == {"1"}


@pytest.mark.parametrize(
    "headers",
    [
        (CANARY,),
        ("Authorization:", CANARY),  # a shell splits unquoted words so
        ("",),
        (f"a b: {CANARY}",),
        (f"X: {CANARY}", "--header", "X: 2"),
        (f"X: {CANARY}", "--header", "x: 2"),
        (f"X: {CANARY}\n\x1b",),
        ("@no such file",),
    ],
)
def test_command_with_a_header_that_is_none(
    headers: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    status, text = command(capsys, "http://127.0.0.1:1", "--header", *headers)
    assert status == 2
    assert "header" in text or "no such file" in text


def test_command_with_a_line_of_a_file_that_is_none(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "token"
    path.write_text(CANARY)
    status, text = command(capsys, "http://127.0.0.1:1", "--header", f"@{path}")
    assert status == 2
    assert text.startswith("keygroups job: --header must be 'NAME: VALUE' in one argument, or")


def test_command_with_certificates(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    ca_file = ("--ca-file", str(TLS / "ca.pem"))
    certificate = ("--client-certificate", str(TLS / "client.pem"))
    key = ("--client-key", str(TLS / "client.key"))
    with peer(job_of(0), asks_for_a_certificate()) as url:
        assert command(capsys, named(url), JOB_ID, *ca_file, *certificate, *key) == (0, "")
        status, text = command(capsys, named(url), JOB_ID, *ca_file)
        assert status == 1
        assert "client_certificate" in text
    status, text = command(capsys, url, JOB_ID, *key)
    assert (status, text) == (
        2,
        "keygroups job: --client-key is that of a --client-certificate, which is not there\n",
    )
