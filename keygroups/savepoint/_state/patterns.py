"""Values as regular expressions, so that C code passes over thousands of them.

A String of up to 63 characters, say, is one of 64 alternatives, each a length and as many
characters; no two alternatives match the same bytes, so that none is tried in vain for long.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from itertools import accumulate

from keygroups._serializers import compounds, scalars, streaming
from keygroups._serializers.base import Serializer
from keygroups._serializers.jvm import pojos, scala
from keygroups.savepoint._state.skips import Scan

_LONGEST_TEXT = 63  # characters
_LONGEST = 1 << 16  # bytes of a pattern; that of a String has about 5,000
_WORTH = 1 << 12  # values that are passed over one by one before a pattern is compiled
_FIRST_SIZE, _SPARE = 64, 256  # bytes
_MOST_KEPT = 64  # compiled patterns

_compiled: dict[bytes, Callable[[bytes, int, int], list[bytes]]] = {}
"""The `findall` of patterns that were worth compiling in this process, for its other subtasks."""


def pattern_of(serializers: Sequence[Serializer]) -> bytes | None:
    """Return the pattern of values that follow one another, None where they have none.

    What it matches is what the skips of these serializers pass over.
    """
    patterns = []
    for serializer in serializers:
        pattern = _pattern(serializer)
        if pattern is None:
            return None
        patterns.append(pattern)
    whole = b"".join(patterns)
    return whole if len(whole) <= _LONGEST else None


def _pattern(serializer: Serializer) -> bytes | None:
    if serializer.size is not None:
        return b".{%d}" % serializer.size
    make = _MAKERS.get(type(serializer))
    return None if make is None else make(serializer)


@cache
def _text() -> bytes:
    """Return the pattern of Strings: a length, one more than the characters, 0 for null.

    A character is seven bits in each byte, of which only the last one has the highest bit clear.
    """
    alternatives = [b"[\\x00\\x01]"]
    for count in range(1, _LONGEST_TEXT + 1):
        ascii_, other = (
            b"[\\x00-\\x7f]{%d}" % count,
            b"(?:[\\x80-\\xff]{0,2}[\\x00-\\x7f]){%d}" % count,
        )
        alternatives.append(b"\\x%02x(?:%b|(?!%b)%b)" % (count + 1, ascii_, ascii_, other))
    return b"(?:%b)" % b"|".join(alternatives)


def _pojo(serializer: Serializer) -> bytes | None:
    fields = [_present(pattern_of([part])) for part in serializer.parts]
    known = [field for field in fields if field is not None]
    return b"(?:\\x02%b|\\x01)" % b"".join(known) if len(known) == len(fields) else None


def _present(pattern: bytes | None) -> bytes | None:
    """Return the pattern of a 0 and a value, or of another byte for null."""
    return None if pattern is None else b"(?:\\x00%b|[\\x01-\\xff])" % pattern


def item_pattern(key: Serializer, value: Serializer) -> bytes | None:
    """Return the pattern of the items of maps: key, whether the value is null, value."""
    before, behind = pattern_of([key]), _present(pattern_of([value]))
    return None if before is None or behind is None else before + behind


def _ttl(serializer: Serializer) -> bytes | None:
    return pattern_of([scalars.LONG, *serializer.parts])


_MAKERS: dict[type[Serializer], Callable[[Serializer], bytes | None]] = {
    scalars.StringSerializer: lambda serializer: _text(),
    pojos.PojoSerializer: _pojo,
    compounds.NullableSerializer: lambda made: _present(pattern_of(made.parts)),
    streaming.TtlSerializer: _ttl,
    **dict.fromkeys(
        (
            compounds.TupleSerializer,
            scala.CaseClassSerializer,
            scala.CaseClassSerializer2,
            scala.Tuple2CaseClassSerializer,
            scala.Tuple2CaseClassSerializer2,
        ),
        lambda made: pattern_of(made.parts),
    ),
}


def pattern_scan(pattern: bytes | None, scan: Scan) -> Scan:
    """Return a Scan for values of a pattern, which leaves others to `scan`.

    Without a pattern, while one is not worth compiling, and where most values are others, it is
    `scan` alone.
    """
    if pattern is None:
        return scan
    seen = others = 0
    size = _FIRST_SIZE
    findall = _compiled.get(pattern)

    def find(data: bytes, pos: int, count: int) -> Sequence[int]:
        nonlocal seen, others, size, findall
        if (findall is None and seen < _WORTH) or 2 * others > seen:
            places = scan(data, pos, count)
            seen += len(places) - 1
            return places
        if findall is None:
            # The second alternative is all that is behind the first value that does not match.
            findall = re.compile(b"(%b)|.+" % pattern, re.DOTALL).findall
            if len(_compiled) >= _MOST_KEPT:
                _compiled.clear()
            _compiled[pattern] = findall
        places = [pos]
        while (missing := count + 1 - len(places)) > 0:
            # Behind these values there is something else, which might look like more of them.
            end = min(len(data), pos + missing * (size + size // 4) + _SPARE)
            found = [value for value in findall(data, pos, end)[:missing] if value]
            if found:
                ends = [*accumulate(map(len, found), initial=pos)]
                size = (ends[-1] - pos) // len(found)
            else:
                ends = [*scan(data, pos, 1)]
                others += 1
            if len(ends) == 1:
                break
            places += ends[1:]
            pos = ends[-1]
        seen += len(places) - 1
        return places

    return find
