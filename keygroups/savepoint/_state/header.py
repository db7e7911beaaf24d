"""The header of keyed state: the serializer of the key, and the states with theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

from keygroups._checks import show
from keygroups._serializers.base import (
    SNAPSHOT_START,
    Serializer,
    UnknownSerializer,
    UnknownSnapshotError,
    exact_type,
    read_serializer,
)
from keygroups._serializers.collections import ListSerializer, MapSerializer
from keygroups._serializers.data_input import Cursor, ReadingContext
from keygroups._serializers.data_output import i32, u16, utf
from keygroups._serializers.pyflink import FramedSerializer
from keygroups._serializers.scalars import (
    BYTE_ARRAY_WRAPPER,
    BYTES,
    VOID_NAMESPACE,
)
from keygroups._serializers.streaming import (
    AsyncTtlSerializer,
    TimerSerializer,
    TtlSerializer,
    unwrapped,
)
from keygroups.errors import printable
from keygroups.savepoint._files.feed import header_cursor
from keygroups.savepoint._files.files import OpenStream
from keygroups.savepoint._state.state_infos import (
    BACKEND_TYPES,
    KEYED,
    NAMESPACE,
    USER_KEY,
    VALUE,
    StateInfo,
    read_state_infos,
    read_unknown_key,
)
from keygroups.types import KeyType

_VERSIONS = (6,)  # Flink 1.7 to 2.3
_KINDS = ("VALUE", "LIST", "MAP", "REDUCING", "AGGREGATING")
_ASYNC = "KEY_VALUE_V2"
_TTL, _ASYNC_TTL = (
    SNAPSHOT_START + utf("class", ttl.snapshot) for ttl in (TtlSerializer, AsyncTtlSerializer)
)
_KNOWN = 8  # headers that are kept: all subtasks of an operator have the same
PYTHON_STATE = "python-state-"  # start of the names of state in PyFlink's process mode


@dataclass(frozen=True)
class StateDescriptor:
    """One keyed state: its name, its kind and its types.

    `kind` is VALUE, LIST, MAP, REDUCING, AGGREGATING or, for timers, PRIORITY_QUEUE. `key_type`
    is that of the operator's keyed stream as in `keygroups.types`, None where the job's own class
    or a type without a stable hash is the key; `key_serializer` tells it in any case.
    `value_serializer` is that of the value, of an element of a LIST, of a value in a MAP or of
    the accumulator of an AGGREGATING state, None for timers; `user_key_serializer` that of the
    keys in a MAP. `has_ttl` says whether each value has the time of its last access. `is_python`
    says that a PyFlink job has declared it, and that Flink has its values as arrays of bytes.
    """

    name: str
    kind: str
    key_serializer: Serializer
    namespace_serializer: Serializer
    value_serializer: Serializer | None
    user_key_serializer: Serializer | None = None
    has_ttl: bool = False
    is_python: bool = field(default=False, repr=False)

    @property
    def stored_name(self) -> str:
        """The name in the files, by which Flink finds the state."""
        return f"{PYTHON_STATE}{self.name}" if self.is_python else self.name

    @property
    def key_type(self) -> KeyType | None:
        """The key type of the keyed stream."""
        return self.key_serializer.key_type

    def __str__(self) -> str:
        return printable(exact_state(self))


def exact_state(state: StateDescriptor) -> str:
    """Return the text of `str()` with names as they are, whatever they have in them."""
    kind = "timers" if state.value_serializer is None else state.kind
    types = [exact_type(state.key_serializer)]
    if state.namespace_serializer is not VOID_NAMESPACE:
        types.append(exact_type(state.namespace_serializer))
    for serializer in (state.user_key_serializer, state.value_serializer):
        if serializer is not None:
            types.append(exact_type(serializer))
    return f"{state.name}: {kind} <{', '.join(types)}>{' with TTL' if state.has_ttl else ''}"


def stored_serializer(state: StateDescriptor) -> Serializer:
    """Return the serializer of a value with all that is stored with it; timers have none."""
    assert state.value_serializer is not None
    return TtlSerializer(state.value_serializer) if state.has_ttl else state.value_serializer


@dataclass(frozen=True)
class KeyedHeader:
    """A header: whether the streams are compressed, and the states by their numbers.

    `key_bytes` and `state_bytes` are the bytes that say so, of the key and of each state; of
    asynchronous state they are those of the same state of a backend that is not asynchronous.
    """

    is_compressed: bool
    key_serializer: Serializer
    states: tuple[StateDescriptor, ...]
    key_bytes: bytes
    state_bytes: tuple[bytes, ...]


class _HeaderBytes(NamedTuple):
    """The bytes and the context of a header; the name of its file makes no difference."""

    data: bytes
    context: ReadingContext
    name: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _HeaderBytes) and self[:2] == other[:2]

    def __hash__(self) -> int:
        return hash(self[:2])


def read_keyed_header(stream: OpenStream, size: int, context: ReadingContext) -> KeyedHeader:
    """Read the header, which is at most `size` bytes long, at the start of a stream."""
    cursor = header_cursor(stream, size, context)
    if len(cursor.data) < size:  # so many that they are got as they are read
        return _read_header(cursor)
    return _read_known_header(_HeaderBytes(cursor.data, context, cursor.name))


@lru_cache(_KNOWN)
def _read_known_header(header: _HeaderBytes) -> KeyedHeader:
    return _read_header(Cursor(header.data, header.name, context=header.context))


def _read_header(cursor: Cursor) -> KeyedHeader:
    """Read a header. Flink: KeyedBackendSerializationProxy.read."""
    version = cursor.i32()
    if 1 <= version < _VERSIONS[0]:
        raise cursor.error(
            f"keyed state of version {version}, of Flink 1.6 or older, is not read here, but a "
            "savepoint of a Flink 1.8 to 1.16 that restored it is"
        )
    cursor.expect("version of keyed state", version, *_VERSIONS)
    is_compressed = cursor.bool()
    start = cursor.pos
    try:
        key = read_serializer(cursor)
    except UnknownSnapshotError as error:
        cursor.pos = start
        key = read_unknown_key(cursor, error)
    key_bytes = cursor.data[start : cursor.pos]
    states, state_bytes, names = [], [], set()
    for info in read_state_infos(cursor, KEYED):
        if info.name in names:
            raise cursor.error(f"the state {show(info.name)} is there twice")
        names.add(info.name)
        states.append(_descriptor(cursor, info, key))
        state_bytes.append(_as_key_value(info) if info.backend_type == _ASYNC else info.data)
    header = KeyedHeader(is_compressed, key, tuple(states), key_bytes, tuple(state_bytes))
    declared = cursor.context.declared
    return header if declared is None else declared.of_header(header)


def write_keyed_header(key_bytes: bytes, state_bytes: Sequence[bytes]) -> bytes:
    """Return the header of streams that are not compressed.

    Flink: KeyedBackendSerializationProxy.write.
    """
    return b"".join((i32(_VERSIONS[-1]), b"\0", key_bytes, u16(len(state_bytes)), *state_bytes))


def write_state(state: StateDescriptor) -> bytes:
    """Return the bytes of a state, or of timers, in a header.

    Flink: StateMetaInfoSnapshotReadersWriters.CurrentWriterImpl;
    RegisteredPriorityQueueStateBackendMetaInfo of timers.
    """
    if state.value_serializer is None:
        timer = TimerSerializer(state.key_serializer, state.namespace_serializer)
        return b"".join(
            (
                utf("state", state.name),
                i32(BACKEND_TYPES.index("PRIORITY_QUEUE")),
                i32(0),  # options
                i32(1),
                utf("role", VALUE),
                timer.snapshot_bytes(),
            )
        )
    state = stored_state(state)
    value = stored_serializer(state)
    if state.user_key_serializer is not None:
        value = MapSerializer(state.user_key_serializer, value)
    elif state.kind == "LIST":
        value = ListSerializer(value)
    namespace = state.namespace_serializer.snapshot_bytes()
    return _key_value(state.name, state.kind, value.snapshot_bytes(), namespace)


def framed_state(state: StateDescriptor) -> StateDescriptor:
    """Return the state of a PyFlink job, the values of which are in arrays of bytes, as Java's."""
    assert state.value_serializer is not None
    user_key = state.user_key_serializer
    return replace(
        state,
        value_serializer=FramedSerializer(state.value_serializer),
        user_key_serializer=None if user_key is None else FramedSerializer(user_key),
        is_python=False,
    )


def stored_state(state: StateDescriptor) -> StateDescriptor:
    """Return a state as its header has it: of a PyFlink job arrays of bytes.

    PyFlink: BeamStateRequestHandler, with its caching list and map states.
    """
    if not state.is_python:
        return state
    user_key = None if state.user_key_serializer is None else BYTE_ARRAY_WRAPPER
    return replace(
        state,
        name=state.stored_name,
        kind="LIST" if user_key is None else "MAP",
        value_serializer=BYTES,
        user_key_serializer=user_key,
        is_python=False,
    )


def _key_value(name: str, kind: str, value: bytes, namespace: bytes) -> bytes:
    """Return the bytes of a state from the snapshots of its serializers."""
    return b"".join(
        (
            utf("state", name),
            i32(BACKEND_TYPES.index("KEY_VALUE")),
            i32(1),
            utf("option", "KEYED_STATE_TYPE"),
            utf("kind", kind),
            i32(2),
            utf("role", VALUE),
            value,
            utf("role", NAMESPACE),
            namespace,
        )
    )


def _as_key_value(info: StateInfo) -> bytes:
    """Return the bytes of asynchronous state as those of other state, which any backend restores.

    The serializers of the value and of a MAP's keys stand by themselves in it. State of a
    serializer that is not known is left as it is, which Flink itself turns into the other since
    2.1, on RocksDB.

    Flink: RegisteredStateMetaInfoUtils.createMetaInfoV1FromV2Snapshot.
    """
    if not info.snapshots:
        return info.data
    kind, snapshot = info.options["KEYED_STATE_TYPE"], info.snapshots[VALUE]
    if snapshot.startswith(_ASYNC_TTL):
        snapshot = _TTL + snapshot[len(_ASYNC_TTL) :]
    value = _as_it_stands(snapshot)
    if kind == "MAP":
        value = MapSerializer(_as_it_stands(info.snapshots[USER_KEY]), value)
    elif kind == "LIST":
        value = ListSerializer(value)
    return _key_value(info.name, kind, value.snapshot_bytes(), info.snapshots[NAMESPACE])


def _as_it_stands(snapshot: bytes) -> Serializer:
    """Return a serializer that writes a snapshot as it stands in a header."""
    return UnknownSerializer("", snapshot[len(SNAPSHOT_START) :])


def _descriptor(cursor: Cursor, info: StateInfo, key: Serializer) -> StateDescriptor:
    name, backend_type, options, serializers, _, _ = info
    value = serializers.get(VALUE)
    unknown = value if isinstance(value, UnknownSerializer) else None
    if backend_type == "PRIORITY_QUEUE":
        if unknown is not None:
            return StateDescriptor(name, backend_type, key, unknown, None)
        if value is None or value.name != "TIMER":
            raise cursor.error(f"the timers {show(name)} have no serializer of timers")
        return StateDescriptor(name, backend_type, value.parts[0], value.parts[1], None)
    kind = options.get("KEYED_STATE_TYPE", "")
    namespace = serializers.get(NAMESPACE)
    if backend_type not in KEYED or kind not in _KINDS or value is None or namespace is None:
        description = f"{backend_type} {kind[:100]}".rstrip()
        raise cursor.error(f"state {show(name)} is of no known kind: {description}")
    user_key: Serializer | None = None
    value = unwrapped(value)
    if backend_type == _ASYNC:
        user_key = serializers.get(USER_KEY)
        if (user_key is None) == (kind == "MAP"):
            raise cursor.error(f"{kind} state {show(name)} has serializers of other roles")
    elif unknown is not None:
        user_key = UnknownSerializer("") if kind == "MAP" else None
    elif kind in ("LIST", "MAP"):
        if value.name != kind:
            raise cursor.error(f"{kind} state {show(name)} has the serializer {value}")
        *keys, value = value.parts
        user_key = keys[0] if keys else None
    value = unwrapped(value)
    has_ttl = isinstance(value, TtlSerializer)
    if has_ttl:
        value = value.parts[0]
    return StateDescriptor(name, kind, key, namespace, value, user_key, has_ttl)
