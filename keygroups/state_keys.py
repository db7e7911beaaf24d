"""The bytes of keys of keyed state, in RocksDB and in savepoints.

They are the key group in one byte, or in two above 128 key groups; the key; the namespace, such
as a window; and, in a MapState, the key within the map. Where key and namespace are both of
variable length, each is followed by its length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from operator import add
from typing import Any, NamedTuple

from keygroups import types
from keygroups._checks import check_int, check_max_parallelism, record_repr, show
from keygroups._serializers.base import (
    REGISTRY,
    TRUNCATED,
    Serializer,
    Simple,
    UnreadableError,
    checked_write,
)
from keygroups._serializers.collections import (
    ListSerializer,
    MapSerializer,
    SetSerializer,
    is_in_order,
)
from keygroups._serializers.compounds import (
    PyFlinkSerializer,
    RowSerializer,
    Tuple0Serializer,
    TupleSerializer,
)
from keygroups._serializers.scalars import (
    BYTE_ARRAY_WRAPPER,
    BYTES,
    GLOBAL_WINDOW,
    TIME_WINDOW,
    VOID_NAMESPACE,
)
from keygroups._serializers.sql.rows import RowDataSerializer
from keygroups._values.rows import GlobalWindow, Row, TimeWindow
from keygroups.assignment import assign_to_key_group
from keygroups.errors import InvalidTypeError, InvalidValueError, UnsupportedKeyTypeError

__all__ = [
    "BYTES",
    "BYTE_ARRAY_WRAPPER",
    "GLOBAL_WINDOW",
    "TIME_WINDOW",
    "VOID_NAMESPACE",
    "CompositeKeySerializer",
    "GlobalWindow",
    "Row",
    "Serializer",
    "StateKey",
    "TimeWindow",
    "key_group_prefix",
    "key_group_prefix_bytes",
    "serializer_of",
]
__dir__ = __all__.copy


_ONE_BYTE = 128  # the highest max parallelism with a prefix of one byte: Byte.MAX_VALUE + 1


class StateKey(NamedTuple):
    """The parts of an entry's key; `user_key` is None but in a MapState."""

    key_group: int
    key: Any
    namespace: Any
    user_key: Any

    def __repr__(self) -> str:
        return record_repr(self)


def key_group_prefix_bytes(max_parallelism: int) -> int:
    """Return the bytes that a key group takes in front of a key: 1, or 2 above 128.

    `max_parallelism` is the operator's, in 1..32768; ParallelismError otherwise.

    Flink: CompositeKeySerializationUtils.computeRequiredBytesInKeyGroupPrefix.

    >>> key_group_prefix_bytes(128), key_group_prefix_bytes(129)
    (1, 2)
    """
    return 1 if check_max_parallelism(max_parallelism) <= _ONE_BYTE else 2


def key_group_prefix(key_group: int, max_parallelism: int) -> bytes:
    r"""Return the bytes of a key group, 0..max_parallelism-1, in front of a key.

    Raises ParallelismError, InvalidValueError or InvalidTypeError.

    Flink: CompositeKeySerializationUtils.serializeKeyGroup.

    >>> key_group_prefix(3, 128), key_group_prefix(3, 256)
    (b'\x03', b'\x00\x03')
    """
    size = key_group_prefix_bytes(max_parallelism)
    return check_int("key_group", key_group, 0, max_parallelism - 1).to_bytes(size, "big")


def serializer_of(key_type: types.KeyType) -> Serializer:
    r"""Return the serializer that Flink takes for a key type.

    Raises UnsupportedKeyTypeError for a key type whose serializer is not known here: UUID, those
    of java.sql, OPTIONAL, and a ROW with a row kind or names; InvalidTypeError for what is no key
    type. That of SET is there in Flink 2 only.

    >>> serializer_of(types.TUPLE(types.STRING, types.LONG)).read(b"\x02a" + bytes(8), 0)
    (('a', 0), 10)
    """
    if not isinstance(key_type, types.KeyType):
        raise InvalidTypeError(f"key_type must be a key type such as INT, got {show(key_type)}")
    if isinstance(key_type, types.ScalarType) and key_type.name in _SCALARS:
        return _SCALARS[key_type.name]
    if isinstance(key_type, types.SQL_ROW):
        return RowDataSerializer(key_type.fields)
    if isinstance(key_type, types.PYFLINK):
        return PyFlinkSerializer(key_type, serializer_of(key_type.element))
    if isinstance(key_type, types.LIST):
        return ListSerializer(serializer_of(key_type.element))
    if isinstance(key_type, types.SET):
        return SetSerializer(serializer_of(key_type.element))
    if isinstance(key_type, types.MAP):
        return MapSerializer(*map(serializer_of, key_type.parts))
    if isinstance(key_type, types.TUPLE):
        parts = [serializer_of(part) for part in key_type.parts]
        return TupleSerializer(parts) if parts else Tuple0Serializer()
    if isinstance(key_type, types.ROW) and key_type == types.ROW(*key_type.parts):
        return RowSerializer([serializer_of(part) for part in key_type.parts])
    raise UnsupportedKeyTypeError(f"the serializer of key type {key_type!r} is not known here")


_SCALARS = {
    cls.key_type.name: cls()
    for cls in REGISTRY.values()
    if issubclass(cls, Simple) and isinstance(cls.key_type, types.ScalarType)
}


class CompositeKeySerializer:
    """Writes and reads the keys of one state, `<K, N>` or, of a MapState, `<K, N, UK>`.

    `max_parallelism` is the operator's; `key_type` the key type of its keyed stream;
    `namespace_type` and `user_key_type` are key types too, or VOID_NAMESPACE, the one of state
    without windows, TIME_WINDOW, GLOBAL_WINDOW or any other Serializer. A `user_key_type` makes
    it the keys of a MapState.

    Raises ParallelismError, InvalidTypeError, and UnsupportedKeyTypeError as `serializer_of`.

    Flink: SerializedCompositeKeyBuilder, CompositeKeySerializationUtils.

    >>> words = CompositeKeySerializer(128, types.STRING, TIME_WINDOW)
    >>> words.serialize("flink", TimeWindow(0, 5_000)).hex(" ")
    '62 06 66 6c 69 6e 6b 00 00 00 00 00 00 00 00 00 00 00 00 00 00 13 88'
    >>> words.deserialize(words.serialize("flink", TimeWindow(0, 5_000)))
    StateKey(key_group=98, key='flink', namespace=TimeWindow(start=0, end=5000), user_key=None)
    """

    def __init__(
        self,
        max_parallelism: int,
        key_type: types.KeyType | Serializer,
        namespace_type: types.KeyType | Serializer = VOID_NAMESPACE,
        user_key_type: types.KeyType | Serializer | None = None,
    ) -> None:
        self._prefix_bytes = key_group_prefix_bytes(max_parallelism)
        self._max_parallelism = check_max_parallelism(max_parallelism)
        self._key = _serializer("key_type", key_type)
        self._namespace = _serializer("namespace_type", namespace_type)
        self._user_key = (
            None if user_key_type is None else _serializer("user_key_type", user_key_type)
        )
        parts = {"key": self._key, "namespace": self._namespace, "user_key": self._user_key}
        self._unordered = [
            f"{name} {part}" for name, part in parts.items() if part and not is_in_order(part)
        ]
        self._read = composite_key_reader(self._key, self._namespace, self._user_key)
        self._join = composite_key_joiner(self._key, self._namespace)

    def __reduce__(self) -> tuple[object, ...]:
        types = (self._key, self._namespace, self._user_key)
        return type(self), (self._max_parallelism, *types)

    def serialize(
        self,
        key: object,
        namespace: object = None,
        user_key: object = None,
        *,
        key_group: int | None = None,
    ) -> bytes:
        """Return the bytes of an entry's key.

        `key_group` is given where the key's hash is not known here, as that of a Row of bytes,
        PyFlink's key without a key type; elsewhere it is computed, and no other may be given.
        Raises InvalidTypeError or InvalidValueError for a value that is none of its type, or that
        Flink cannot write, such as a null in a TUPLE; UnsupportedKeyTypeError for what has a map
        or a set in it, whose bytes are in an order that only Java has.
        """
        for part in self._unordered:
            raise UnsupportedKeyTypeError(
                f"{part} cannot be written: the bytes of a map or a set are in an order that "
                "only Java has"
            )
        if self._user_key is None and user_key is not None:
            raise InvalidValueError(
                f"user_key must be None where there is no user_key_type, got {show(user_key)}"
            )
        if self._key.key_type is not None:
            computed = assign_to_key_group(key, self._max_parallelism, self._key.key_type)
            last = self._max_parallelism - 1
            if key_group is not None and check_int("key_group", key_group, 0, last) != computed:
                raise InvalidValueError(
                    f"key_group must be {computed}, that of the key, got {show(key_group)}"
                )
            key_group = computed
        elif key_group is None:
            raise InvalidValueError(
                f"key_group must be given, as the hash of {self._key} is not known"
            )
        data = self._join(
            checked_write("key", self._key, key, is_key=True),
            checked_write("namespace", self._namespace, namespace),
        )
        if self._user_key is not None:
            data += checked_write("user_key", self._user_key, user_key)
        return key_group_prefix(key_group, self._max_parallelism) + data

    def deserialize(self, data: bytes) -> StateKey:
        """Return the `StateKey` of an entry's bytes.

        A part that takes the job's classes to read stays bytes. Raises InvalidValueError where
        the bytes are not exactly one key, or have parts that cannot be told apart;
        InvalidTypeError where they are no bytes.
        """
        if not isinstance(data, bytes):
            raise InvalidTypeError(f"data must be bytes, got {show(data)}")
        try:
            key_group = int.from_bytes(data[: self._prefix_bytes], "big")
            check_int("key group", key_group, 0, self._max_parallelism - 1)
            key, namespace, user_key, rest, end = self._read(data, self._prefix_bytes, len(data))
        except (*TRUNCATED, ValueError) as error:
            raise InvalidValueError(f"data must be a key of the state: {error}") from None
        if rest is not None:
            raise InvalidValueError(
                f"data must have parts that can be told apart, got {show(data)}: only the job can "
                "read all of them"
            )
        if end != len(data):
            raise InvalidValueError(f"data must end after {end} bytes, got {len(data)}")
        return StateKey(key_group, key, namespace, user_key)


ReadKey = Callable[[bytes, int, int], "tuple[Any, Any, Any, bytes | None, int]"]
"""`read(data, pos, end)` returns key, namespace, user key, rest and the end of the key.

A part that takes the job's classes to read is bytes. Where parts cannot be told apart they are
None, and the rest is the bytes of all parts; else the rest is None.
"""


def composite_key_reader(
    key: Serializer, namespace: Serializer, user_key: Serializer | None
) -> ReadKey:
    """Return the reader of the bytes after the key group."""
    has_lengths = _is_ambiguous(key, namespace)
    if has_lengths and "UNKNOWN" in (key.name, namespace.name):
        return _first_only(key)  # Unknown ones may be of a fixed size, so without lengths.
    return _key_reader(key, namespace, user_key, has_lengths)


def timer_key_reader(key: Serializer, namespace: Serializer) -> ReadKey:
    """Return the reader of the bytes after the timestamp of a timer, which have no lengths."""
    return _key_reader(key, namespace, None, False)


def _first_only(key: Serializer) -> ReadKey:
    """Return the reader of the key alone; all bytes are its rest."""
    read_key = key.read

    def read(data: bytes, pos: int, end: int) -> tuple[Any, Any, Any, bytes, int]:
        value = None
        if read_key is not None:
            with suppress(UnreadableError):
                value, _ = read_key(data, pos)
        return value, None, None, data[pos:end], end

    return read


def _key_reader(
    key: Serializer, namespace: Serializer, user_key: Serializer | None, has_lengths: bool
) -> ReadKey:
    read_key, read_namespace = key.read, namespace.read
    read_user_key = None if user_key is None else user_key.read
    split = _Splitter(key, namespace, user_key, has_lengths)
    if read_key is None or read_namespace is None:
        return split

    def read(data: bytes, pos: int, end: int) -> tuple[Any, Any, Any, bytes | None, int]:
        start, user_key_value = pos, None
        try:
            key, after = read_key(data, pos)
            if has_lengths:
                after += len(_length_bytes(after - pos))
            pos = after
            namespace, after = read_namespace(data, pos)
            if has_lengths:
                after += len(_length_bytes(after - pos))
            if read_user_key is not None:
                user_key_value, after = read_user_key(data, after)
        except UnreadableError:
            return split(data, start, end)
        return key, namespace, user_key_value, None, after

    return split if user_key is not None and read_user_key is None else read


class _Splitter:
    """The reader of keys of which only the job can read one part or more.

    Parts before such a one are read from the start, and parts of fixed size after it from the
    end. The lengths after key and namespace delimit these, if they fit in one way only: in AA BB
    CC 03 02 77 02 the last 02 can only be the length of the namespace 02 77, and 03 of the key.
    """

    def __init__(
        self,
        key: Serializer,
        namespace: Serializer,
        user_key: Serializer | None,
        has_lengths: bool,
    ) -> None:
        self._key = key
        self._namespace = namespace
        self._user_key = user_key
        self._has_lengths = has_lengths

    def __call__(self, data: bytes, pos: int, end: int) -> tuple[Any, Any, Any, bytes | None, int]:
        encoded = data[pos:end]
        key, start = self._first(self._key, encoded, 0)
        if start is not None:
            namespace, stop = self._first(self._namespace, encoded, start)
            if stop is not None:  # Then only the user key takes the job's classes.
                return key, namespace, encoded[stop:], None, end
        user_key, last = None, len(encoded)
        if self._user_key is not None:
            if self._user_key.read is None or self._user_key.size is None:
                return key, None, None, encoded, end
            last = _before(last, self._user_key.size)
            user_key = _whole(self._user_key, encoded[last:])
        if self._has_lengths:
            spans = list(_spans(encoded, start, last))
        elif start is not None:
            spans = [(start, start, last)]
        elif self._namespace.size is not None:
            first = _before(last, self._namespace.size)
            spans = [(first, first, last)]
        else:
            return None, None, user_key, encoded, end
        fitting = []
        for key_end, first, stop in spans:
            with suppress(*TRUNCATED, ValueError):
                fitting.append((key_end, _whole(self._namespace, encoded[first:stop])))
        if not fitting:
            raise ValueError("no namespace behind a key")
        if len(fitting) > 1:
            return key, None, user_key, encoded, end
        [(key_end, namespace)] = fitting
        return encoded[:key_end] if start is None else key, namespace, user_key, None, end

    def _first(self, part: Serializer, encoded: bytes, pos: int) -> tuple[Any, int | None]:
        """Return a part's value and the end of its length; None for both if it is the job's."""
        if part.read is None:
            return None, None
        try:
            value, end = part.read(encoded, pos)
        except UnreadableError:
            return None, None
        if self._has_lengths:
            end += len(_length_bytes(end - pos))
        if end > len(encoded):
            raise ValueError("too few bytes")
        return value, end


def _whole(part: Serializer, encoded: bytes) -> Any:
    """Return the value that takes up all of some bytes, or these if only the job can read it."""
    try:
        value, end = (encoded, len(encoded)) if part.read is None else part.read(encoded, 0)
    except UnreadableError:
        return encoded
    if end != len(encoded):
        raise ValueError(f"a {part} of {end} bytes in {len(encoded)}")
    return value


def _before(pos: int, size: int) -> int:
    """Return the position that is `size` bytes before another."""
    if size > pos:
        raise ValueError("too few bytes")
    return pos - size


def _spans(encoded: bytes, start: int | None, last: int) -> Iterator[tuple[int, int, int]]:
    """Yield the possible ends of a key with lengths, and then start and end of its namespace."""
    for size, stop in _lengths_before(encoded, last):
        first = stop - size
        if start in (None, first):
            for key_size, key_end in _lengths_before(encoded, first):
                if key_size == key_end:
                    yield key_end, first, stop


def _lengths_before(encoded: bytes, pos: int) -> Iterator[tuple[int, int]]:
    """Yield the possible lengths, of 1 to 4 bytes, before a position, and where each begins."""
    for end in range(pos - 1, pos - 5, -1):  # No length is small enough for an end below 0.
        length = int.from_bytes(encoded[end:pos], "little")
        if length <= end and _length_bytes(length) == encoded[end:pos]:
            yield length, end


def composite_key_joiner(
    key: Serializer, namespace: Serializer
) -> Callable[[bytes, bytes], bytes]:
    """Return the function that joins the bytes of a key and of a namespace."""
    if not _is_ambiguous(key, namespace):
        return add
    return lambda *parts: b"".join(part + _length_bytes(len(part)) for part in parts)


ChangeKey = Callable[[bytes, int, bytes], bytes]
"""`change(data, end, new)` returns bytes with `new` in place of the key, which ends at `end`.

Raises ValueError, IndexError or struct.error for bytes that are no key with a namespace.
"""


def composite_key_changer(
    key: Serializer, new_key: Serializer, namespace: Serializer
) -> ChangeKey:
    """Return the function that puts keys of another type into the bytes after the key group.

    Raises UnsupportedKeyTypeError where that takes the length of a namespace that only the job
    can read.
    """
    has_lengths = _is_ambiguous(key, namespace)
    if not has_lengths and not _is_ambiguous(new_key, namespace):
        return timer_key_changer(namespace)
    read_namespace = namespace.read
    if read_namespace is None:
        raise UnsupportedKeyTypeError(
            f"a key of {new_key} goes with the length of its namespace, which is {namespace}, "
            "that only the job can read"
        )
    old_join = composite_key_joiner(key, namespace)
    new_join = composite_key_joiner(new_key, namespace)

    def change(data: bytes, end: int, new: bytes) -> bytes:
        start = end + len(_length_bytes(end)) if has_lengths else end
        _, stop = read_namespace(data, start)
        encoded_namespace = data[start:stop]
        old_start = old_join(data[:end], encoded_namespace)
        if not data.startswith(old_start):
            raise ValueError("lengths that are not those of key and namespace")
        return new_join(new, encoded_namespace) + data[len(old_start) :]

    return change


def timer_key_changer(namespace: Serializer) -> ChangeKey:
    """Return the function that puts keys of another type into a timer, after its timestamp."""
    size = namespace.size or 0

    def change(data: bytes, end: int, new: bytes) -> bytes:
        if len(data) < end + size:
            raise ValueError("too few bytes")
        return new + data[end:]

    return change


def _is_ambiguous(key: Serializer, namespace: Serializer) -> bool:
    return key.size is None and namespace.size is None


def _length_bytes(length: int) -> bytes:
    """Return a length in as few bytes as it takes, one at least, in little endian."""
    return length.to_bytes((max(length, 1).bit_length() + 7) // 8, "little")


def _serializer(name: str, value: types.KeyType | Serializer) -> Serializer:
    if isinstance(value, Serializer):
        return value
    if not isinstance(value, types.KeyType):
        raise InvalidTypeError(f"{name} must be a key type or a Serializer, got {show(value)}")
    return serializer_of(value)
