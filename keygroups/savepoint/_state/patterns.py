"""Values as regular expressions, so that C code passes over thousands of them.

A String of up to 63 characters, say, is one of some alternatives, each a length and as many
characters; no two alternatives match the same bytes, so that none is tried in vain for long.
What costs time is each alternative or repetition that `re` enters: there are as few as can be.
To ask whether a byte is in a range takes longer than whether it is another than one: a pattern
that names no byte from 80 on is tried on bytes in which all of these are ff.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from itertools import accumulate, chain, groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keygroups._serializers import compounds, scalars, streaming
from keygroups._serializers.base import Serializer
from keygroups._serializers.jvm import pojos, scala
from keygroups._serializers.sql.rows import RowDataSerializer
from keygroups.logical_types import row_header_size
from keygroups.savepoint._state.skips import FRAMED, Scan

_LONGEST_TEXT = 63  # characters
_FRAME_SIZES = 64  # sizes of frames, bytes or words of eight apart
_LONGEST = 1 << 16  # bytes of a pattern; that of a String has about 5,000
_WORTH = 1 << 12  # values that are passed over one by one before a pattern is compiled
_FIRST_SIZE, _SPARE = 64, 256  # bytes
_MANY = 128  # values of which NumPy adds up the sizes
_LEAST_REACH = 16  # values that are sought at once
_FEW = 8  # bytes that a pattern has one by one
_MOST_KEPT = 64  # compiled patterns

_ASCII = b"[\\x00-\\x7f]"
_LEVELLED_ASCII = b"[^\\xff]"
_FROM_80_ON = tuple(
    b"\\x%x" % digit for digit in range(8, 16)
)  # how such bytes start in a pattern
_LEVELLED = bytes(byte if byte < 0x80 else 0xFF for byte in range(0x100))
_LEAST_LEVELLED = 1 << 11  # bytes that NumPy levels faster than `translate`

_Find = Callable[[bytes, int, int], "list[bytes]"]
"""Finds the values of a pattern from a place to another; what is behind them is empty bytes."""
_compiled: dict[bytes, _Find] = {}
"""The patterns that were worth compiling in this process, for its other subtasks."""


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
    size = serializer.size
    if size is not None:
        return _times(b".", size)
    make = _MAKERS.get(type(serializer))
    return None if make is None else make(serializer)


def _times(pattern: bytes, count: int) -> bytes:
    return pattern * count if count <= _FEW else b"%b{%d}" % (pattern, count)


@cache
def _text() -> bytes:
    """Return the pattern of Strings: a length, one more than the characters, 0 for null.

    A character is seven bits in each byte, of which only the last one has the highest bit clear,
    and has 16 bits at most.
    """
    character = b"(?:[\x80-\xff]?[\0-\x7f]|[\x80-\xff]{2}[\0-\3])"
    alternatives, others = [b"[\\x00\\x01]"], []
    for count in range(1, _LONGEST_TEXT + 1):
        ascii_, other = _times(_ASCII, count), b"%b{%d}" % (character, count)
        alternatives.append(b"\\x%02x%b" % (count + 1, ascii_))
        others.append(b"\\x%02x(?!%b)%b" % (count + 1, ascii_, other))
    alternatives.append(b"(?=[\\x02-\\x%02x])(?:%b)" % (_LONGEST_TEXT + 1, b"|".join(others)))
    return b"(?:%b)" % b"|".join(alternatives)


def _frame(serializer: Serializer) -> bytes:
    """Return the pattern of frames: a size, and as many bytes."""
    return _of_sizes(range(_FRAME_SIZES))


def _row(serializer: Serializer) -> bytes:
    """Return the pattern of rows of SQL, whose fields and texts take words of eight bytes."""
    least = row_header_size(len(serializer.fields)) + 8 * len(serializer.fields)
    return _of_sizes(range(least, least + 8 * _FRAME_SIZES, 8))


def _of_sizes(sizes: Sequence[int]) -> bytes:
    alternatives = []
    for head, some in groupby((size.to_bytes(4, "big") for size in sizes), lambda size: size[:3]):
        tails = b"|".join(
            b"\\x%02x.{%d}" % (size[3], int.from_bytes(size, "big")) for size in some
        )
        alternatives.append(b"%b(?:%b)" % (b"".join(b"\\x%02x" % byte for byte in head), tails))
    return b"(?:%b)" % b"|".join(alternatives)


def _pojo(serializer: Serializer) -> bytes | None:
    """Return the pattern of POJOs: fields of fixed sizes are tried together, as none is null."""
    fields = []
    for is_sized, parts in groupby(serializer.parts, lambda part: part.size is not None):
        patterns = [pattern_of([part]) for part in parts]
        known = [pattern for pattern in patterns if pattern is not None]
        if len(known) < len(patterns):
            return None
        each = b"".join(_present(pattern) for pattern in known)
        if is_sized and len(known) > 1:
            together = b"".join(b"\\x00%b" % pattern for pattern in known)
            each = b"(?:%b|(?!%b)%b)" % (together, together, each)
        fields.append(each)
    return b"(?:\\x02%b|\\x01)" % b"".join(fields)


def _present(pattern: bytes) -> bytes:
    """Return the pattern of a 0 and a value, or of another byte for null."""
    return b"(?:\\x00%b|[^\\x00])" % pattern


def item_pattern(key: Serializer, value: Serializer) -> bytes | None:
    """Return the pattern of the items of maps: key, whether the value is null, value."""
    before, behind = pattern_of([key]), pattern_of([value])
    return None if before is None or behind is None else before + _present(behind)


def _nullable(serializer: Serializer) -> bytes | None:
    pattern = pattern_of(serializer.parts)
    return None if pattern is None else _present(pattern)


def _ttl(serializer: Serializer) -> bytes | None:
    return pattern_of([scalars.LONG, *serializer.parts])


_MAKERS: dict[type[Serializer], Callable[[Serializer], bytes | None]] = {
    scalars.StringSerializer: lambda serializer: _text(),
    pojos.PojoSerializer: _pojo,
    **dict.fromkeys(FRAMED, _frame),
    RowDataSerializer: _row,
    compounds.NullableSerializer: _nullable,
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
    `scan` alone; else it returns an array of NumPy for many.
    """
    if pattern is None:
        return scan
    seen = others = 0
    size, reach = _FIRST_SIZE, _MANY
    find_values = _compiled.get(pattern)

    def find(data: bytes, pos: int, count: int) -> Sequence[int] | NDArray[np.int64]:
        nonlocal seen, others, size, reach, find_values
        if (find_values is None and seen < _WORTH) or 2 * others > seen:
            places = scan(data, pos, count)
            seen += len(places) - 1
            return places
        if find_values is None:
            find_values = _finding(pattern)
            if len(_compiled) >= _MOST_KEPT:
                _compiled.clear()
            _compiled[pattern] = find_values
        parts: list[Any] = [[pos]]
        missing = count
        while missing:
            # Behind these values there is something else, which might look like more of them; and
            # where others lie among them, all that is behind the next one is sought in vain.
            end = min(len(data), pos + min(missing, reach) * (size + size // 4) + _SPARE)
            found = find_values(data, pos, end)[:missing]
            if found and not found[-1]:
                del found[-1]
            if len(found) < missing:
                reach = max(2 * len(found), _LEAST_REACH)
            if found:
                ends = _ends(pos, found)
                size = int(ends[-1] - pos) // len(found)
            else:
                ends = scan(data, pos, 1)[1:]
                others += 1
            if not len(ends):
                break
            parts.append(ends)
            missing -= len(ends)
            pos = int(ends[-1])
        seen += count - missing
        return [*chain.from_iterable(parts)] if count < _MANY else np.concatenate(parts)

    return find


def _finding(pattern: bytes) -> _Find:
    """Return the function that finds values of a pattern, which is compiled."""
    is_levelled = not any(start in pattern for start in _FROM_80_ON)
    if is_levelled:
        pattern = pattern.replace(_ASCII, _LEVELLED_ASCII)
    # The second alternative is all that is behind the first value that does not match.
    findall: _Find = re.compile(b"(%b)|.+" % pattern, re.DOTALL).findall

    def find_levelled(data: bytes, pos: int, end: int) -> list[bytes]:
        octets = _levelled(data[pos:end])
        return findall(octets, 0, len(octets))

    return find_levelled if is_levelled else findall


def _levelled(octets: bytes) -> bytes:
    """Return bytes with an ff for each that is no ASCII."""
    if len(octets) < _LEAST_LEVELLED:
        return octets.translate(_LEVELLED)
    signed = np.frombuffer(octets, np.int8)
    return (signed >> 7 | signed).tobytes()  # A sign that is shifted fills all bits.


def _ends(pos: int, values: Sequence[bytes]) -> Any:
    """Return the ends of some values, of which the first starts at a position."""
    if len(values) < _MANY:
        return [*accumulate(map(len, values), initial=pos)][1:]
    return pos + np.cumsum(np.fromiter(map(len, values), np.int64, len(values)))
