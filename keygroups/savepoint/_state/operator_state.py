"""Operator state: the elements of list states and the entries of broadcast states."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from operator import sub
from typing import Any, NamedTuple

from keygroups._checks import record_repr, show
from keygroups._serializers.base import TRUNCATED, Serializer, UnreadableError
from keygroups._serializers.collections import as_dict
from keygroups._serializers.data_input import Cursor, ReadingContext
from keygroups.errors import SavepointError
from keygroups.savepoint._files.feed import STREAM_START, decompressed, header_cursor
from keygroups.savepoint._files.files import Files, OpenStream
from keygroups.savepoint._metadata.handles import OperatorStateHandle
from keygroups.savepoint._state.state_infos import KEY, VALUE, StateInfo, read_state_infos

_VERSIONS = (5, 6)  # Flink 1.7 to 2.3
_CHUNK = 1 << 16  # bytes of which Snappy makes a chunk
_LEAST_CHUNK = 1 << 11  # bytes that such a chunk takes at least


class OperatorStateEntry(NamedTuple):
    """The elements of an operator state that one subtask holds.

    `mode` is SPLIT_DISTRIBUTE, UNION or BROADCAST. `elements` are those of the list in order; of
    a broadcast state its entries, a dict. An element that only the job's own classes can read is
    bytes, as it was written; of raw state all are. So is the value that a broadcast state ends
    with; where another key or value of it is such, `elements` are the bytes of all of it, as
    nothing says where an entry ends.
    """

    state: str
    mode: str
    subtask: int
    elements: Any

    def __repr__(self) -> str:
        return record_repr(self)


class OperatorStateElement(NamedTuple):
    """One element of an operator state, or one entry of a broadcast state.

    `mode` is SPLIT_DISTRIBUTE, UNION or BROADCAST, `subtask` who has it, `key` that of an entry,
    None for an element of a list.
    """

    state: str
    mode: str
    subtask: int
    key: Any
    value: Any

    def __repr__(self) -> str:
        return record_repr(self)


def read_operator_state(
    files: Files,
    handle: OperatorStateHandle,
    subtask: int,
    is_raw: bool,
    context: ReadingContext,
    wanted: frozenset[str] | None = None,
) -> Iterator[OperatorStateEntry]:
    """Yield each state of a handle, or those whose names are wanted.

    Flink: OperatorStateRestoreOperation; written by DefaultOperatorStateBackendSnapshotStrategy.
    """
    with files.open(handle.stream) as stream:
        spans, header = opened(stream, handle, is_raw, context)
        for name, mode, starts in handle.states:
            if wanted is not None and name not in wanted:
                continue
            info = header.infos.get(name)
            check_mode(stream, info, name, mode, starts)
            cursors = (
                Cursor(data, stream.name, start)
                for start, data in spans.elements(name, starts, header)
            )
            elements: Any
            if mode == "BROADCAST":
                cursor = next(cursors, None)
                elements = {} if cursor is None else _broadcast(info, cursor)
            else:
                serializer = None if info is None else info.serializers[VALUE]
                elements = [read_element(serializer, cursor) for cursor in cursors]
            yield OperatorStateEntry(name, mode, subtask, elements)


def _broadcast(info: StateInfo | None, cursor: Cursor) -> Any:
    """Return the entries of a broadcast state, or its bytes where nothing says where one ends."""
    entries = None if info is None else broadcast_entries(info, cursor)
    if entries is None:
        return cursor.data
    return as_dict([(entry.key, entry.value) for entry in entries])


class EncodedOperatorState(NamedTuple):
    """An operator state of a subtask as bytes: each element, of a broadcast state each entry.

    `elements` yields pairs: the bytes of an element and none, or those of a key and of its value.
    `info` is None where a header says nothing of the state, as of raw state.
    """

    state: str
    mode: str
    info: StateInfo | None
    elements: Iterator[tuple[bytes, bytes]]


def read_encoded_operator_state(
    files: Files, handle: OperatorStateHandle, is_raw: bool, context: ReadingContext
) -> Iterator[EncodedOperatorState]:
    """Yield each state of a handle, whose elements are to be read before the next."""
    with files.open(handle.stream) as stream:
        spans, header = opened(stream, handle, is_raw, context)
        for name, mode, starts in handle.states:
            info = header.infos.get(name)
            check_mode(stream, info, name, mode, starts)
            elements = _encoded(info, stream.name, spans.elements(name, starts, header))
            yield EncodedOperatorState(name, mode, info, elements)


def _encoded(
    info: StateInfo | None, name: str, elements: Iterable[tuple[int, bytes]]
) -> Iterator[tuple[bytes, bytes]]:
    for start, data in elements:
        if info is None or info.backend_type != "BROADCAST":
            yield data, b""
            continue
        entries = broadcast_entries(info, Cursor(data, name, start))
        if entries is None:
            yield b"", data
            continue
        for entry in entries:
            yield data[entry.start : entry.middle], data[entry.middle : entry.end]


class BroadcastEntry(NamedTuple):
    """An entry of a broadcast state, and where its key starts, its value starts, and it ends."""

    start: int
    middle: int
    end: int
    key: Any
    value: Any


def broadcast_entries(info: StateInfo, cursor: Cursor) -> list[BroadcastEntry] | None:
    """Return the entries of a broadcast state, None where only the job knows where one ends.

    Flink: HeapBroadcastState.write.
    """
    data, entries = cursor.data, []
    read_key, read_value = (info.serializers[role].read or _refuse for role in (KEY, VALUE))
    for remaining in reversed(range(cursor.count())):
        start = cursor.pos
        try:
            key, middle = read_key(data, start)
            try:
                value, end = read_value(data, middle)
            except UnreadableError:
                if remaining:
                    raise
                value, end = data[middle:], len(data)
        except UnreadableError:
            return None
        except (*TRUNCATED, ValueError) as error:
            raise cursor.error(f"no entry of {show(info.name)}: {error}") from None
        entries.append(BroadcastEntry(start, middle, end, key, value))
        cursor.pos = end
    cursor.expect_end(f"broadcast state {show(info.name)}")
    return entries


def _refuse(data: bytes, pos: int) -> tuple[Any, int]:
    raise UnreadableError("a value that takes the job's own classes to read")


def opened(
    stream: OpenStream, handle: OperatorStateHandle, is_raw: bool, context: ReadingContext
) -> tuple[ElementSpans, OperatorStateHeader]:
    """Return the ElementSpans of a stream, and its header, an empty one for raw state."""
    spans = ElementSpans(stream, handle, is_raw)
    header = OperatorStateHeader(0, False, {})
    if not is_raw and stream.size:
        header = read_operator_state_header(header_cursor(stream, spans.header_size, context))
    return spans, header


def has_lost_offsets(files: Files, handle: OperatorStateHandle, context: ReadingContext) -> bool:
    """Tell whether elements of a list are not where `_metadata` says, and cannot be restored.

    Flink 1.18.0 and 1.18.1 write compressed state so: what it says of an element is where the
    last chunk before it ended, see FLINK-33863.
    """
    lists = [(name, starts) for name, mode, starts in handle.states if mode != "BROADCAST"]
    if any(len({*starts}) < len(starts) for _, starts in lists):
        return True
    if not any(_may_be_chunks(starts) for _, starts in lists):
        return False
    with files.open(handle.stream) as stream:
        spans, header = opened(stream, handle, False, context)
        return any(spans.is_cut(name, starts, header) for name, starts in lists)


def _may_be_chunks(starts: Sequence[int]) -> bool:
    """Tell whether there may be whole chunks before each element but the first."""
    return len(starts) > 1 and min(map(sub, starts[1:], starts)) >= _LEAST_CHUNK


class ElementSpans:
    """The start and the end of each element in a stream of operator state."""

    def __init__(self, stream: OpenStream, handle: OperatorStateHandle, is_raw: bool) -> None:
        self._stream = stream
        self._is_raw = is_raw
        offsets = sorted(offset for _, _, starts in handle.states for offset in starts)
        self._offsets = offsets
        self._ends = dict(zip(offsets, [*offsets[1:], stream.size]))
        # A partition of raw state may have no bytes: then the next one starts where it does.
        self._starting = Counter(offsets)
        self.header_size = min(offsets, default=stream.size)

    def elements(
        self, state: str, starts: Sequence[int], header: OperatorStateHeader
    ) -> Iterator[tuple[int, bytes]]:
        """Yield the bytes of a state's elements, each with the offset where it starts."""
        stream = self._stream
        repeated = [start for start in starts if self._starting[start] > 1]
        if repeated and not self._is_raw:
            yield from self._in_sequence(state, starts, header, repeated[0])
            return
        if not self._is_raw and self.is_cut(state, starts, header):
            yield from self._in_sequence(state, starts, header, starts[1])
            return
        for start in starts:
            self._starting[start] -= 1
            end = start if self._starting[start] else self._ends[start]
            if header.is_compressed:  # each has chunks of its own
                yield start, b"".join(decompressed(stream, start, end))
            else:
                yield start, stream.read(start, end)

    def is_cut(self, state: str, starts: Sequence[int], header: OperatorStateHeader) -> bool:
        """Tell whether the elements of a list end within chunks, and start at their ends.

        What is between two starts is then whole chunks, which an element is not by chance.
        """
        if not header.is_compressed or not _may_be_chunks(starts):
            return False
        spans = ((start, self._ends[start]) for start in starts[:-1])
        if any(sum(map(len, decompressed(self._stream, *span))) % _CHUNK for span in spans):
            return False
        info = header.infos.get(state)
        read = None if info is None else info.serializers[VALUE].read
        if read is None:
            return True
        data = b"".join(decompressed(self._stream, starts[0], self._ends[starts[0]]))
        try:
            return read(data, 0)[1] != len(data)
        except (*TRUNCATED, ValueError):
            return True

    def _in_sequence(
        self, state: str, starts: Sequence[int], header: OperatorStateHeader, repeated: int
    ) -> Iterator[tuple[int, bytes]]:
        """Yield the elements of a list whose offsets are lost, each of which ends as it is read.

        Raises SavepointError where they are not, or only the job's classes can tell.
        """
        where = f"{self._stream.name}, offset {repeated}"
        first, last = min(starts), max(starts)
        count = bisect_right(self._offsets, last) - bisect_left(self._offsets, first)
        if not header.is_compressed or count != len(starts):
            raise SavepointError(f"{where}: two elements of operator state start here")
        info = header.infos.get(state)
        read = None if info is None else info.serializers[VALUE].read
        if read is None:
            raise self._lost(where, state, "nothing here reads it")
        data = b"".join(decompressed(self._stream, first, self._ends[last]))
        pos = 0
        for _ in starts:
            start = pos
            try:
                _, pos = read(data, start)
            except UnreadableError as error:
                raise self._lost(where, state, str(error)) from None
            except (*TRUNCATED, ValueError) as error:
                raise SavepointError(f"{where}: no element of {show(state)}: {error}") from None
            yield first, data[start:pos]
        if pos != len(data):
            raise SavepointError(
                f"{where}: the elements of {show(state)} end after {pos} bytes of {len(data)}"
            )

    def _lost(self, where: str, state: str, reason: str) -> SavepointError:
        return SavepointError(
            f"{where}: Flink 1.18.0 and 1.18.1 do not say where each element of a compressed "
            f"operator state starts (FLINK-33863), and of {show(state)} only the job's classes "
            f"can tell ({reason}); without compression a savepoint says it"
        )


class OperatorStateHeader(NamedTuple):
    """The header of a stream: a StateInfo by the name of each state, in their order there."""

    version: int
    is_compressed: bool
    infos: dict[str, StateInfo]


def check_mode(
    stream: OpenStream, info: StateInfo | None, name: str, mode: str, starts: Sequence[int]
) -> None:
    """Raise where `_metadata` and a stream do not agree about a state."""
    if mode == "BROADCAST" and len(starts) > 1:
        raise SavepointError(
            f"{stream.name}: broadcast state {show(name)} starts at {len(starts)} offsets"
        )
    if info is not None and (mode == "BROADCAST") != (info.backend_type == "BROADCAST"):
        raise SavepointError(
            f"{stream.name}: the mode of operator state {show(name)} is {mode} in _metadata alone"
        )


def read_element(serializer: Serializer | None, cursor: Cursor) -> Any:
    """Read an element, which is all that a cursor has; bytes where only the job reads it."""
    if serializer is None or serializer.read is None:
        return cursor.data
    try:
        value, end = serializer.read(cursor.data, 0)
    except UnreadableError:
        return cursor.data
    except (*TRUNCATED, ValueError) as error:
        raise cursor.error(f"no {serializer}: {error}") from None
    if end != len(cursor.data):
        raise cursor.error(f"a {serializer} of {end} bytes in {len(cursor.data)}")
    return value


def read_operator_state_header(cursor: Cursor) -> OperatorStateHeader:
    """Read the header: the states, and whether all is compressed.

    Flink: OperatorBackendSerializationProxy.read, HeapBroadcastState.write.
    """
    version = cursor.expect("version of operator state", cursor.i32(), *_VERSIONS)
    is_compressed = version >= 6 and cursor.bool()
    if is_compressed:
        start = cursor.pos
        size = len(cursor.take(cursor.left).removesuffix(STREAM_START))
        cursor = cursor.within(start, start + size)
    infos: dict[str, StateInfo] = {}
    for info in chain(
        read_state_infos(cursor, ("OPERATOR",), is_last=False),
        read_state_infos(cursor, ("BROADCAST",)),
    ):
        if VALUE not in info.serializers:
            raise cursor.error(f"operator state {show(info.name)} has no serializer")
        if info.backend_type == "BROADCAST" and KEY not in info.serializers:
            raise cursor.error(f"broadcast state {show(info.name)} has no serializer of keys")
        infos[info.name] = info
    return OperatorStateHeader(version, is_compressed, infos)
