"""Operator state: the elements of list states and the entries of broadcast states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain, pairwise
from typing import Any, NamedTuple

from keygroups._checks import show
from keygroups._serializers.base import TRUNCATED, Serializer
from keygroups._serializers.collections import ListSerializer, as_dict
from keygroups._serializers.compounds import TupleSerializer
from keygroups._serializers.data_input import Cursor, ReadingContext
from keygroups.errors import SavepointError
from keygroups.savepoint._files.feed import STREAM_START, decompressed, header_cursor
from keygroups.savepoint._files.files import Files
from keygroups.savepoint._metadata.handles import OperatorStateHandle
from keygroups.savepoint._state.state_infos import KEY, VALUE, read_state_infos

_VERSIONS = (5, 6)  # Flink 1.7 to 2.3


class OperatorStateEntry(NamedTuple):
    """What one subtask holds of an operator state.

    `mode` is SPLIT_DISTRIBUTE, UNION or BROADCAST. `elements` are those of the list in order; of
    a broadcast state its entries, a dict. An element of a type that only the job's own classes
    can read is bytes; of raw state all are.
    """

    state: str
    mode: str
    subtask: int
    elements: Any


def read_operator_state(
    files: Files,
    handle: OperatorStateHandle,
    subtask: int,
    is_raw: bool,
    context: ReadingContext,
) -> Iterator[OperatorStateEntry]:
    """Yield each state of a handle.

    Flink: OperatorStateRestoreOperation; written by DefaultOperatorStateBackendSnapshotStrategy.
    """
    with files.open(handle.stream) as stream:
        offsets = sorted(offset for _, _, starts in handle.states for offset in starts)
        for offset, following in pairwise(offsets):
            if offset == following and not is_raw:
                raise SavepointError(
                    f"{stream.name}, offset {offset}: two elements of operator state start here"
                )
        ends = dict(zip(offsets, [*offsets[1:], stream.size]))
        # A partition of raw state may have no bytes: then the next one starts where it does.
        starting = Counter(offsets)
        header_size = min(offsets, default=stream.size)
        serializers: dict[str, Serializer] = {}
        broadcast: set[str] = set()
        is_compressed = False
        if not is_raw and stream.size:
            header = header_cursor(stream, header_size, context)
            serializers, broadcast, is_compressed = _read_header(header)
        for name, mode, starts in handle.states:
            serializer = serializers.get(name)
            if mode == "BROADCAST" and len(starts) > 1:
                raise SavepointError(
                    f"{stream.name}: broadcast state {show(name)} starts at {len(starts)} offsets"
                )
            if serializer is not None and (mode == "BROADCAST") != (name in broadcast):
                raise SavepointError(
                    f"{stream.name}: the mode of operator state {show(name)} is {mode} in "
                    "_metadata alone"
                )
            values = []
            for start in starts:
                starting[start] -= 1
                end = start if starting[start] else ends[start]
                if is_compressed:  # with a chunk of its own for each
                    data = b"".join(decompressed(stream, start, end))
                else:
                    data = stream.read(start, end)
                values.append(_read(serializer, Cursor(data, stream.name, start)))
            elements: Any = values
            if mode == "BROADCAST":
                elements = values[0] if values else {}
                if isinstance(elements, list):
                    elements = as_dict(elements)
            yield OperatorStateEntry(name, mode, subtask, elements)


def _read(serializer: Serializer | None, cursor: Cursor) -> Any:
    if serializer is None or serializer.read is None:
        return cursor.data
    try:
        value, end = serializer.read(cursor.data, 0)
    except (*TRUNCATED, ValueError) as error:
        raise cursor.error(f"no {serializer}: {error}") from None
    if end != len(cursor.data):
        raise cursor.error(f"a {serializer} of {end} bytes in {len(cursor.data)}")
    return value


def _read_header(cursor: Cursor) -> tuple[dict[str, Serializer], set[str], bool]:
    """Read the serializers of the states, which are broadcast, and whether all is compressed.

    Flink: OperatorBackendSerializationProxy.read, HeapBroadcastState.write.
    """
    version = cursor.expect("version of operator state", cursor.i32(), *_VERSIONS)
    is_compressed = version >= 6 and cursor.bool()
    if is_compressed:
        start = cursor.pos
        size = len(cursor.take(cursor.left).removesuffix(STREAM_START))
        cursor = cursor.within(start, start + size)
    serializers, broadcast = {}, set()
    for name, backend_type, _, of_state, _ in chain(
        read_state_infos(cursor, ("OPERATOR",), is_last=False),
        read_state_infos(cursor, ("BROADCAST",)),
    ):
        value = of_state.get(VALUE)
        if value is None:
            raise cursor.error(f"operator state {show(name)} has no serializer")
        if backend_type == "BROADCAST":
            key = of_state.get(KEY)
            if key is None:
                raise cursor.error(f"broadcast state {show(name)} has no serializer of keys")
            broadcast.add(name)
            # Unlike a Map, without marks of null.
            value = ListSerializer(TupleSerializer([key, value]))
        serializers[name] = value
    return serializers, broadcast, is_compressed
