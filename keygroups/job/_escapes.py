"""Finds secrets in a text, in whatever escapes a server may have put them."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode
from collections.abc import Collection, Iterator
from html import unescape
from urllib.parse import unquote

SHORTEST = 4
"""Characters of the shortest secret that is looked for: fewer are in many answers by chance."""
_PART = 8  # characters in a row of a longer secret that give it away
_MOST_ROUNDS = 8  # levels of escapes within escapes

# JSON's, Python's and Java's; then those of quoted-printable.
_BACKSLASH = re.compile(
    r"\\(?:u([0-9A-Fa-f]{4})|U(000[0-9A-Fa-f]{5}|0010[0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})|(.))",
    re.DOTALL,
)
_EQUALS = re.compile("=([0-9A-Fa-f]{2})")
_BASE64 = re.compile("[A-Za-z0-9+/_-]{6,}")
_HEX = re.compile("[0-9A-Fa-f]{8,}")
_URL_SAFE = str.maketrans("+/", "-_")


def repeats(text: str, secrets: Collection[str]) -> bool:
    """Return whether a text has a secret of four characters or more, or eight of a longer one.

    Upper and lower case are the same, and what is no letter and no digit does not count, in a
    secret that has four of these: a server may put anything between two characters.
    """
    sought = [secret.casefold() for secret in secrets]
    wanted = {_letters(reading) for secret in secrets for reading in _readings(secret)}
    short = [secret for secret in wanted if SHORTEST <= len(secret) < _PART]
    short += [secret for secret in sought if len(_letters(secret)) < SHORTEST <= len(secret)]
    parts = set().union(*map(_parts, wanted))
    return any(
        not parts.isdisjoint(_parts(shown)) or any(secret in shown for secret in short)
        for reading in _readings(text)
        for shown in (reading.casefold(), _letters(reading))
    )


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def _parts(text: str) -> set[str]:
    return {text[start : start + _PART] for start in range(len(text) - _PART + 1)}


def _readings(text: str) -> Iterator[str]:
    """Yield a text as it is and with its escapes read, again where others were within them."""
    for _ in range(_MOST_ROUNDS):
        yield text
        yield from _encoded_in(text)
        read = _BACKSLASH.sub(_character, unescape(unquote(text)))
        read = _EQUALS.sub(lambda match: chr(int(match[1], 16)), read)
        if read == text:
            break
        text = read


def _character(match: re.Match[str]) -> str:
    digits = match[1] or match[2] or match[3]
    return chr(int(digits, 16)) if digits else match[4]


def _encoded_in(text: str) -> Iterator[str]:
    """Yield the bytes of each run of base64 or of hexadecimal digits, as Latin-1 text.

    A run may begin with digits of something else, so each offset is tried: "06c6f6e67" has "long"
    from its second digit on.
    """
    for match in _BASE64.finditer(text.translate(_URL_SAFE)):
        run = match[0]
        for start in range(4):
            length = (len(run) - start) // 4 * 4
            yield urlsafe_b64decode(run[start : start + length]).decode("latin-1")
    for match in _HEX.finditer(text):
        run = match[0]
        for start in range(2):
            length = (len(run) - start) // 2 * 2
            yield bytes.fromhex(run[start : start + length]).decode("latin-1")
