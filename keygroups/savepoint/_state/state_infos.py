"""The states that a header describes, those with a serializer that is not known too.

The contents of a snapshot have no length, so where one of an unknown class ends is not told. But
what a header says of a state starts in few ways only. Where these starts are as many as the header
counts states, they are the states, as each of them starts so: then all before the next start is
of the state, and its other serializers, and those of the other states, can be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from keygroups._checks import show
from keygroups._serializers.base import (
    Serializer,
    UnknownSerializer,
    UnknownSnapshotError,
    read_serializer,
)
from keygroups._serializers.data_input import Cursor
from keygroups._serializers.data_output import i32, utf

BACKEND_TYPES = ("KEY_VALUE", "OPERATOR", "BROADCAST", "PRIORITY_QUEUE", "KEY_VALUE_V2")
"""By their ordinals; Flink: StateMetaInfoSnapshot.BackendStateType, the last one since 2.0."""
KEYED = ("KEY_VALUE", "PRIORITY_QUEUE", "KEY_VALUE_V2")
VALUE, NAMESPACE, KEY = "VALUE_SERIALIZER", "NAMESPACE_SERIALIZER", "KEY_SERIALIZER"
USER_KEY = "USER_KEY_SERIALIZER"

_CODES = range(len(BACKEND_TYPES))
_ROLES = {
    "KEY_VALUE": (VALUE, NAMESPACE),
    "OPERATOR": (VALUE,),
    "BROADCAST": (VALUE, KEY),
    "PRIORITY_QUEUE": (VALUE,),
    "KEY_VALUE_V2": (VALUE, NAMESPACE, USER_KEY),
}
_SNAPSHOT = i32(2)  # the version that precedes each snapshot


def _start(backend_type: str, option: str, *roles: str) -> bytes:
    """Return the pattern of all that is between the name of a state and its first snapshot."""
    options = i32(0)
    if option:
        value = rb"\0[\1-\x20][A-Z_]+"  # two bytes of length, and a constant's name
        options = re.escape(i32(1) + utf("option", option)) + value
    first = b"|".join(re.escape(utf("role", role)) for role in roles)
    return b"".join(
        (
            re.escape(i32(BACKEND_TYPES.index(backend_type))),
            options,
            re.escape(i32(len(roles))),
            b"(?:" + first + b")",
            re.escape(_SNAPSHOT),
        )
    )


# Flink: the computeSnapshot of RegisteredKeyValueStateBackendMetaInfo and its like.
_KIND, _MODE = "KEYED_STATE_TYPE", "OPERATOR_STATE_DISTRIBUTION_MODE"
_PATTERN = b"(?=%s)" % b"|".join(  # a lookahead finds matches that overlap too
    (
        _start("KEY_VALUE", _KIND, VALUE, NAMESPACE),
        _start("KEY_VALUE_V2", _KIND, VALUE, NAMESPACE),
        _start("KEY_VALUE_V2", _KIND, VALUE, NAMESPACE, USER_KEY),
        _start("PRIORITY_QUEUE", "", VALUE),
        _start("OPERATOR", _MODE, VALUE),
        _start("BROADCAST", _MODE, VALUE, KEY),
    )
)
_STARTS = re.compile(_PATTERN, re.DOTALL)


class StateInfo(NamedTuple):
    """A state as a header describes it; `data` is the bytes of that.

    `snapshots` are those of its serializers, by their roles; none where one is not known.
    """

    name: str
    backend_type: str
    options: dict[str, str]
    serializers: dict[str, Serializer]
    data: bytes
    snapshots: dict[str, bytes]


def read_state_infos(
    cursor: Cursor, backend_types: Sequence[str], is_last: bool = True
) -> Iterator[StateInfo]:
    """Yield the states of some backend types that follow, after their number.

    `is_last` says that the header ends behind them; else the number of others is there. Raises
    UnknownSnapshotError where a serializer is not known, nor where the states start.

    Flink: StateMetaInfoSnapshotReadersWriters.CurrentReaderImpl.
    """
    count = cursor.u16()
    for number in range(count):
        start = cursor.pos
        try:
            yield read_state_info(cursor)
        except UnknownSnapshotError as error:
            cursor.pos = start
            spans = _spans(cursor, backend_types, is_last)
            if len(spans) != count - number or spans[0][0] != start:
                raise error.of_state(cursor.utf()) from None
            for first, end in spans:
                yield _read_to_its_end(cursor.within(first, end))
                cursor.pos = end
            return


def read_unknown_key(cursor: Cursor, error: UnknownSnapshotError) -> Serializer:
    """Read past the snapshot of a key which is not known, to the number of states.

    Raises the error where it is not sure where that is.
    """
    spans = _spans(cursor, KEYED, is_last=True)
    end = spans[0][0] if spans else cursor.pos + cursor.left
    count = cursor.data[end - 2 : end]
    if int.from_bytes(count, "big") != len(spans):
        raise error
    cursor.pos = end - 2
    return UnknownSerializer(error.snapshot)


def _spans(cursor: Cursor, backend_types: Sequence[str], is_last: bool) -> list[tuple[int, int]]:
    """Return the possible start, and the end, of each state of some types in what follows."""
    start = cursor.pos
    cursor.take(cursor.left)
    data, end, cursor.pos = cursor.data, cursor.pos, start
    own: list[int] = []
    others: list[int] = []
    for match in _STARTS.finditer(data, start, end):
        code = data[match.start() + 3]  # the last byte of a type's number tells it
        of_type = own if BACKEND_TYPES[code] in backend_types else others
        of_type += _names_before(data, start, match.start())
    if not is_last:
        end = min(others, default=end) - 2
        if int.from_bytes(data[end : end + 2], "big") != len(others):
            return []
    return [*zip(own, [*own[1:], end])]


def _names_before(data: bytes, start: int, end: int) -> list[int]:
    """Return the possible starts of a name before `end`; modified UTF-8 has no zero in it."""
    first = max(data.rfind(b"\0", start, end) - 1, start)
    return [
        pos
        for pos in range(max(first, end - 2 - 0xFFFF), end - 1)
        if int.from_bytes(data[pos : pos + 2], "big") == end - 2 - pos
    ]


def read_state_info(cursor: Cursor) -> StateInfo:
    """Read a state whose serializers are all known; UnknownSnapshotError where one is not."""
    start = cursor.pos
    name, backend_type, options = _read_name(cursor)
    serializers: dict[str, Serializer] = {}
    snapshots: dict[str, bytes] = {}
    for _ in range(cursor.count(8)):
        role = cursor.utf()
        first = cursor.pos
        serializers[role] = read_serializer(cursor)
        snapshots[role] = cursor.data[first : cursor.pos]
    data = cursor.data[start : cursor.pos]
    return StateInfo(name, backend_type, options, serializers, data, snapshots)


def _read_name(cursor: Cursor) -> tuple[str, str, dict[str, str]]:
    name = cursor.utf()
    backend_type = BACKEND_TYPES[cursor.expect("backend type", cursor.i32(), *_CODES)]
    options = {cursor.utf(): cursor.utf() for _ in range(cursor.count(4))}
    return name, backend_type, options


def _read_to_its_end(cursor: Cursor) -> StateInfo:
    """Read all that a cursor has as a state, whatever is not known in it."""
    start = cursor.pos
    name, backend_type, options = _read_name(cursor)
    serializers: dict[str, Serializer] = {}
    remaining, is_at_end = cursor.count(8), True
    while remaining:
        role = cursor.utf()
        remaining -= 1
        try:
            serializers[role] = read_serializer(cursor)
        except UnknownSnapshotError as error:
            serializers[role] = UnknownSerializer(error.snapshot)
            others = [role for role in _ROLES[backend_type] if role not in serializers]
            is_at_end = remaining > 0 and _skip_to(cursor, others, remaining)
            if not is_at_end:
                serializers |= {other: UnknownSerializer("") for other in others[:remaining]}
                break
    if is_at_end and cursor.left:
        raise cursor.error(f"state {show(name)} ends {cursor.left} bytes earlier")
    data = cursor.data[start : cursor.pos + cursor.left]
    return StateInfo(name, backend_type, options, serializers, data, {})


def _skip_to(cursor: Cursor, roles: Sequence[str], count: int) -> bool:
    """Go to the first serializer of some roles, if it is sure where these are, `count` of them."""
    start = cursor.pos
    rest = cursor.take(cursor.left)
    marks = [utf("role", role) + _SNAPSHOT for role in roles]
    cursor.pos = start
    if [rest.count(mark) for mark in marks if mark in rest] != [1] * count:
        return False  # some of them are within the contents of the snapshot before
    cursor.pos = start + min(rest.index(mark) for mark in marks if mark in rest)
    return True
