"""The base of Flink's TypeSerializers, which read and write values and snapshots.

A reader takes bytes and a position, and returns the value and the position after it. Too few
bytes raise IndexError or struct.error, which a caller that can fetch more catches; bytes that no
serializer can have written raise another ValueError. All numbers are big endian.

A snapshot, the record of how state was written, is the name of its class, a version and contents
without their length: the end of one of an unknown class follows only from the bytes around it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import FrozenInstanceError
from functools import partial
from typing import Any, ClassVar

from keygroups._checks import MAX_DEPTH, check_int, check_str, show
from keygroups._serializers.data_input import Cursor, ReadingContext
from keygroups._serializers.data_output import i32, utf
from keygroups._serializers.jvm.kryo_classes import KryoClass
from keygroups._serializers.value_checks import check_value
from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    SavepointError,
    UnsupportedKeyTypeError,
    printable,
)
from keygroups.logical_types import LogicalType
from keygroups.types import KeyType

Read = Callable[[bytes, int], tuple[Any, int]]
Write = Callable[[Any], bytes]

TRUNCATED = (IndexError, struct.error)
"""The errors of a reader for bytes that end before the value does."""

BASE = "org.apache.flink.api.common.typeutils.base."
JAVA = "org.apache.flink.api.java.typeutils.runtime."
STATE = "org.apache.flink.runtime.state."
STREAMING = "org.apache.flink.streaming.api."
TABLE = "org.apache.flink.table.runtime.typeutils."

_SNAPSHOT_VERSION = 2
SNAPSHOT_START = i32(_SNAPSHOT_VERSION)
"""Bytes before a snapshot in a header; a snapshot in another has none."""
_COMPOSITE_MAGIC = 911108
_NULL_VALUE = "org.apache.flink.types.NullValue"
_MAX_EMPTY = 100
"""The most values without bytes in a value, such as fields of a tuple and of those in it."""
_NESTED_MAGIC = 1333245

REGISTRY: dict[str, type[Serializer]] = {}
"""Serializers by the class of their snapshots; `keygroups._serializers` imports all of them.

A user's own are elsewhere: the ReadingContext of a savepoint has those that it is opened with.
"""

_PACKAGE = f"{__package__}."


class UnreadableError(ValueError):
    """A value that only the job's own classes can read, of an otherwise readable type."""


class UnknownSnapshotError(SavepointError):
    """A snapshot of an unknown class; `snapshot` is its name."""

    def __init__(self, message: str, snapshot: str) -> None:
        super().__init__(message, snapshot)
        self.snapshot = snapshot

    def of_state(self, name: str) -> UnknownSnapshotError:
        """Return the error with the name of the state in it too."""
        return UnknownSnapshotError(f"{self}, of state {show(name)}", self.snapshot)

    def __str__(self) -> str:
        return str(self.args[0])


class Serializer:
    r"""The type of a key, a namespace or a value in Flink's state; `str()` is its text.

    `name` is as in `keygroups.types` where the type is there: BOOLEAN to INSTANT, TUPLE, ROW,
    LIST, MAP, SET, SQL_ROW. Other names are

    - of Java's types DATE, SQL_DATE, SQL_TIME, SQL_TIMESTAMP, VOID, BYTES, BOOLEAN_ARRAY,
      CHAR_ARRAY to DOUBLE_ARRAY, STRING_ARRAY, ARRAY, ENUM, POJO, JAVA, KRYO, AVRO, and of
      Scala's CASE_CLASS, OPTION, EITHER, TRY, TRAVERSABLE, UNIT, NOTHING;
    - of Flink's BOOLEAN_VALUE to STRING_VALUE, NULL_VALUE, VALUE, COPYABLE_VALUE, NULLABLE,
      VARIANT, BITMAP, TTL, TTL_AWARE, SINGLE_THREAD, TIMER, UNION, BUFFER_ENTRY,
      STREAM_ELEMENT, TWO_PHASE_COMMIT, of its sink KAFKA_TRANSACTION, KAFKA_TRANSACTION_CONTEXT,
      KAFKA_TRANSACTION_HINT, and of namespaces VOID_NAMESPACE, TIME_WINDOW, GLOBAL_WINDOW,
      COUNT_WINDOW;
    - of CEP's EVENT_ID, NODE_ID, DEWEY_NUMBER, SHARED_BUFFER_EDGE, SHARED_BUFFER_NODE,
      SHARED_BUFFER_NODE_V1, LOCKABLE, NFA_STATE, and BEAM, what Apache Beam's coders write;
    - of SQL's SQL_STRING, SQL_DECIMAL, TIMESTAMP_DATA, SQL_ARRAY, SQL_MAP, BINARY_ROW, RAW,
      EXTERNAL, SORTED_LONG, SORTED_MAP, NULL, LINKED_LIST, LIST_VIEW, MAP_VIEW, NULL_AWARE_MAP,
      WINDOW_KEY, MULTISET_NODE, MULTISET_KEY, META_SQN_INFO, ROW_SQN_INFO, and PYTHON_STRING,
      PYTHON_BIG_DEC, PYTHON_DECIMAL, PYTHON_DATE, PYTHON_TIME, PYTHON_TIMESTAMP, PYTHON_ARRAY,
      PYTHON_MAP, PYTHON_ROW; of PyFlink's user keys BYTE_ARRAY_WRAPPER;
    - UNKNOWN.

    `parts` are the nested types, `names` those of a POJO's fields, `fields` the logical types of
    SQL_ROW, SQL_ARRAY and other types of SQL, `java_class` the class of a POJO, an ENUM, a VALUE
    or an object of KRYO. `key_type` is the key type for the same values, None where there is
    none. `size` is the bytes of every value, None where they differ. `takes_null` says whether a
    None can be written, `none_is_value` that it is then an OPTION without a value, and no null.
    `snapshot` is the class of the snapshots in headers, and `versions` are those that are read,
    of which the last is written.

    `read` and `write` turn bytes into a value and back; None where that takes the job's classes.
    `write_key` is not None if Flink writes keys otherwise than values; `writes_keys` is False if
    keys may have other bytes in Flink than those of `write`. `decode` and `encode` convert too,
    and check their arguments.

    A serializer of the job's own is read with a class derived from this one, which
    `read_savepoint` takes as one of `serializers`: `from_contents` reads its snapshot, and `read`,
    a static method or set by `bind` from those of `parts`, takes bytes and a position and returns
    the value and the position behind it. It raises IndexError or struct.error where bytes are too
    few, ValueError where they are no value. Where it is the serializer of keys, `key_type` says
    their hash, or, for values that are of no key type, `key_hash`, a static method that takes a
    key and returns Java's hashCode, a signed 32-bit int; with `write` keys can be looked up, too.

    Two are equal if they are made of the same, whichever savepoints they were read from.

    >>> from keygroups import types
    >>> from keygroups.state_keys import serializer_of
    >>> longs = serializer_of(types.LONG)
    >>> longs.encode(5), longs.decode(bytes(7) + b"\x05")
    (b'\x00\x00\x00\x00\x00\x00\x00\x05', 5)
    """

    name: ClassVar[str]
    snapshot: ClassVar[str] = ""
    versions: ClassVar[tuple[int, ...]] = (2, 3)
    takes_null: bool = False
    none_is_value: ClassVar[bool] = False
    read: Read | None = None
    write: Write | None = None
    write_key: Write | None = None
    writes_keys: bool = True
    size: int | None = None
    parts: tuple[Serializer, ...] = ()
    key_type: KeyType | None = None
    key_hash: Callable[[Any], int] | None = None
    fields: tuple[LogicalType, ...] = ()
    names: tuple[str, ...] = ()
    java_class: str = ""
    _arguments: tuple[object, ...] | None = None

    def __init_subclass__(cls) -> None:
        if "snapshot" in vars(cls) and cls.__module__.startswith(_PACKAGE):
            known = REGISTRY.setdefault(cls.snapshot, cls)
            if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
                raise InvalidValueError(
                    f"the snapshot of {cls.__qualname__} must be of no other serializer, got "
                    f"{show(cls.snapshot)}, which is of {known.__qualname__}"
                )
            REGISTRY[cls.snapshot] = cls

    def __init__(self, *arguments: object) -> None:
        """Bind the readers and freeze the object; `arguments` are those of its own `__init__`."""
        if type(self) is Serializer:
            raise InvalidTypeError("a Serializer must be of a class derived from it")
        reads = [part.read for part in self.parts if part.read is not None]
        if len(reads) == len(self.parts):
            self.bind(reads)
        if not all(part.writes_keys for part in self.parts):
            self.writes_keys = False
        self._arguments = arguments

    def bind(self, reads: Sequence[Read]) -> None:
        """Set `read` and `write` where all parts can be read: as closures, which are fastest."""

    def __setattr__(self, name: str, value: object) -> None:
        if self._arguments is not None:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        object.__setattr__(self, name, value)

    def __str__(self) -> str:
        return printable(exact_type(self))

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Serializer) and self.__reduce__() == other.__reduce__()

    def __hash__(self) -> int:
        return hash(self.__reduce__())

    def __reduce__(self) -> tuple[type[Serializer], tuple[object, ...]]:
        return type(self), self._arguments or ()

    @staticmethod
    def from_snapshot(
        data: bytes,
        *,
        serializers: Mapping[str, type[Serializer] | KryoClass] | None = None,
        kryo_version: int = 5,
    ) -> Serializer:
        r"""Return the serializer that a snapshot describes.

        `data` is the whole snapshot as in the header of an operator's state: the version of all
        snapshots, which is 2, then class, version and contents. `serializers` are those of
        `read_savepoint`. `kryo_version` is 2 for state of Flink 1 and 5 for Flink 2; only Kryo's
        values depend on it. Raises SavepointError for bytes that are no snapshot or of an unknown
        class, InvalidTypeError or InvalidValueError for a wrong argument.

        Flink: TypeSerializerSnapshotSerializationUtil.readSerializerSnapshot.

        >>> package = b"org.apache.flink.api.common.typeutils.base"
        >>> name = package + b".LongSerializer$LongSerializerSnapshot"
        >>> Serializer.from_snapshot(b"\0\0\0\2\0" + bytes([len(name)]) + name + b"\0\0\0\3")
        LONG
        """
        kryo_version = checked_kryo_version(kryo_version)
        context = ReadingContext(checked_serializers(serializers), kryo_version)
        cursor = Cursor(_check_bytes(data), "data", context=context)
        serializer = read_serializer(cursor)
        if cursor.left:
            raise cursor.error(f"the snapshot of {serializer} ends {cursor.left} bytes earlier")
        return serializer

    def snapshot_bytes(self) -> bytes:
        r"""Return the snapshot as `from_snapshot` takes it, in Flink's newest version.

        Raises UnsupportedKeyTypeError for one whose snapshot only the job's own classes write.

        Flink: TypeSerializerSnapshotSerializationUtil.writeSerializerSnapshot.

        >>> from keygroups import types
        >>> from keygroups.state_keys import serializer_of
        >>> data = serializer_of(types.LONG).snapshot_bytes()
        >>> data[:6], data[-26:]
        (b'\x00\x00\x00\x02\x00P', b'LongSerializerSnapshot\x00\x00\x00\x03')
        """
        return SNAPSHOT_START + self.versioned_snapshot()

    def decode(self, data: bytes) -> Any:
        r"""Return the value that takes up all of `data`.

        Raises InvalidValueError for bytes that are no such value, InvalidTypeError where `data`
        is no bytes, UnsupportedKeyTypeError where only the job's classes can read the value.

        Flink: TypeSerializer.deserialize.

        >>> from keygroups import types
        >>> from keygroups.state_keys import serializer_of
        >>> serializer_of(types.LIST(types.STRING)).decode(b"\0\0\0\1\2a")
        ['a']
        """
        _check_bytes(data)
        if self.read is None:
            raise UnsupportedKeyTypeError(f"a value of {self} cannot be read here")
        try:
            value, end = self.read(data, 0)
        except UnreadableError as error:
            raise UnsupportedKeyTypeError(
                f"a value of {self} cannot be read here: {error}"
            ) from None
        except (*TRUNCATED, ValueError) as error:
            raise InvalidValueError(f"data must be a {self}: {error}") from None
        if end != len(data):
            raise InvalidValueError(f"data must end after {end} bytes, got {len(data)}")
        return value

    def encode(self, value: Any) -> bytes:
        r"""Return the bytes of a value after checking that it is one of the type.

        A None is a null where the serializer writes nulls, as that of STRING does. Raises
        InvalidTypeError or InvalidValueError for any other value, UnsupportedKeyTypeError for a
        type that only Flink writes.

        Flink: TypeSerializer.serialize.

        >>> from keygroups import types
        >>> from keygroups.state_keys import serializer_of
        >>> serializer_of(types.LIST(types.STRING)).encode(["a"])
        b'\x00\x00\x00\x01\x02a'
        """
        if value is None and self.takes_null and self.write is not None:
            return self.write(value)
        return checked_write("value", self, value)

    def versioned_snapshot(self) -> bytes:
        """Return class, version and contents of the snapshot."""
        contents = self.contents()
        return utf("snapshot", self.snapshot) + i32(self.versions[-1]) + contents

    @classmethod
    def from_contents(cls, cursor: Cursor, version: int, depth: int) -> Serializer:
        r"""Return the serializer that the contents of a snapshot of this class describe.

        `version` is that of the snapshot, one of `versions`, `depth` for `nested_in`. The cursor
        is to be read up to the end of the contents, as Flink's readSnapshot reads them: by its
        methods `u8`, `u16`, `i32`, `i64`, `bool` and `utf`, all as Java's DataOutput writes them,
        `take(size)` for bytes, `count(size)` for a number of things that follow, each of at least
        `size` bytes, and `error(message)`, which returns the error to raise for damaged ones.

        A class of one's own for Flink's serializer of amounts of money, each of which is a long:

        >>> from keygroups.types import LONG
        >>> class MoneySerializer(Serializer):
        ...     name, versions, size, key_type = "MONEY", (1,), 8, LONG
        ...     def __init__(self, currency: str) -> None:
        ...         self.java_class = currency
        ...         super().__init__(currency)
        ...     @classmethod
        ...     def from_contents(cls, cursor, version, depth):
        ...         return cls(cursor.utf())
        ...     @staticmethod
        ...     def read(data: bytes, pos: int) -> tuple[int, int]:
        ...         return int.from_bytes(data[pos : pos + 8], "big", signed=True), pos + 8
        >>> snapshot = b"\0\0\0\2" + b"\0\7a.Money" + b"\0\0\0\1" + b"\0\3EUR"
        >>> serializers = {"a.Money": MoneySerializer}
        >>> money = Serializer.from_snapshot(snapshot, serializers=serializers)
        >>> money, money.decode(bytes(7) + b"\5")
        (MONEY(EUR), 5)
        """
        raise cursor.error(f"snapshots of {cls.snapshot} are only written here")

    @staticmethod
    def nested_in(cursor: Cursor, depth: int) -> Serializer:
        r"""Return the serializer whose snapshot comes next in the contents of another's.

        Both arguments are those of `from_contents`. Raises SavepointError where none comes, and
        for an unknown one.

        Flink: TypeSerializerSnapshot.readVersionedSnapshot.

        >>> class BoxSerializer(Serializer):
        ...     name, versions = "BOX", (1,)
        ...     def __init__(self, content: Serializer) -> None:
        ...         self.parts = (content,)
        ...         super().__init__(content)
        ...     @classmethod
        ...     def from_contents(cls, cursor, version, depth):
        ...         return cls(cls.nested_in(cursor, depth))
        ...     def bind(self, reads):
        ...         [self.read] = reads
        >>> from keygroups import types
        >>> from keygroups.state_keys import serializer_of
        >>> long = serializer_of(types.LONG).snapshot_bytes()[4:]
        >>> snapshot = b"\0\0\0\2" + b"\0\5a.Box" + b"\0\0\0\1" + long
        >>> Serializer.from_snapshot(snapshot, serializers={"a.Box": BoxSerializer})
        BOX(LONG)
        """
        return read_versioned_snapshot(cursor, depth + 1)

    def contents(self) -> bytes:
        """Return the contents of the snapshot in the last version."""
        raise UnsupportedKeyTypeError(f"the snapshot of the serializer of {self} is not known")


class Simple(Serializer):
    """A serializer without parts or arguments: each class has one object.

    Flink: SimpleTypeSerializerSnapshot.
    """

    _of_class: ClassVar[dict[type[Simple], Simple]] = {}

    def __new__(cls) -> Simple:
        if cls not in cls._of_class:
            cls._of_class.setdefault(cls, super().__new__(cls))
        return cls._of_class[cls]

    def __init__(self) -> None:
        if self._arguments is None:
            super().__init__()

    @classmethod
    def from_contents(cls, cursor: Cursor, version: int, depth: int) -> Serializer:
        """Read nothing, or before Flink 1.8 the name of the serializer's class."""
        if version == 2:
            cursor.utf()
        return cls()

    def contents(self) -> bytes:
        """Return nothing."""
        return b""


class Composite(Serializer):
    """A serializer with nested ones, and a mark and a version of its own in its snapshot.

    `outer_versions` are those that are read, the last one is written; `arity` is the number of
    nested serializers, None where only the snapshot has it. With `is_its_parts` two values are
    equal in Java where their parts are.

    Flink: CompositeTypeSerializerSnapshot, NestedSerializersSnapshotDelegate.
    """

    outer_versions: ClassVar[tuple[int, ...]]
    arity: ClassVar[int | None] = 1
    is_its_parts: ClassVar[bool] = False

    def __init__(self, *arguments: Any) -> None:
        """Set `parts` to the arguments, unless a class with other arguments has set them."""
        if "parts" not in vars(self):
            self.parts = arguments
        super().__init__(*arguments)

    @classmethod
    def from_contents(cls, cursor: Cursor, version: int, depth: int) -> Serializer:
        """Read mark, outer version, outer part and nested serializers."""
        if version > 2:
            cursor.expect("mark of a composite serializer", cursor.i32(), _COMPOSITE_MAGIC)
        outer_version = cursor.expect("outer version", cursor.i32(), *cls.outer_versions)
        outer = cls.read_outer(cursor, outer_version)
        nested = read_nested(cursor, depth)
        if cls.arity is not None:
            cursor.expect("number of nested serializers", len(nested), cls.arity)
        if sum(map(_without_bytes, nested)) > _MAX_EMPTY:  # A few bytes would be many values.
            raise cursor.error(f"more than {_MAX_EMPTY} values without bytes within one")
        return cls.made_of(cursor, nested, outer)

    @classmethod
    def read_outer(cls, cursor: Cursor, outer_version: int) -> Any:
        """Read the outer part, if the class has one."""

    @classmethod
    def made_of(cls, cursor: Cursor, nested: list[Serializer], outer: Any) -> Serializer:
        """Return the serializer of nested ones and an outer part; `cursor` is for errors."""
        return cls(*nested)

    def contents(self) -> bytes:
        """Return the mark, the outer version, the outer part and the nested snapshots."""
        return b"".join(
            (
                i32(_COMPOSITE_MAGIC),
                i32(self.outer_versions[-1]),
                self.outer(),
                nested_contents(self.nested()),
            )
        )

    def outer(self) -> bytes:
        """Return the outer part."""
        return b""

    def nested(self) -> tuple[Serializer, ...]:
        """Return the serializers in the snapshot."""
        return self.parts


def _without_bytes(serializer: Serializer) -> int:
    """Count the values in one that take no bytes, such as those of NullValue."""
    if serializer.parts:
        return sum(map(_without_bytes, serializer.parts))
    return int(serializer.size == 0 or serializer.java_class == _NULL_VALUE)


class UnknownSerializer(Serializer):
    """A serializer of an unknown class, whose snapshot was skipped by its length.

    `data` is the snapshot as it was read, None where there is none.
    """

    name = "UNKNOWN"

    def __init__(self, java_class: str, data: bytes | None = None) -> None:
        self.java_class = java_class
        self.data = data
        super().__init__(java_class, data)

    def versioned_snapshot(self) -> bytes:
        """Return the snapshot as it was read."""
        return super().versioned_snapshot() if self.data is None else self.data


def read_serializer(cursor: Cursor) -> Serializer:
    """Read the snapshot of a serializer in a header."""
    cursor.expect("version of a serializer's snapshot", cursor.i32(), _SNAPSHOT_VERSION)
    return read_versioned_snapshot(cursor)


def read_versioned_snapshot(cursor: Cursor, depth: int = 0) -> Serializer:
    """Read a snapshot: class, version, contents.

    Flink: TypeSerializerSnapshot.readVersionedSnapshot.
    """
    if depth > MAX_DEPTH:
        raise cursor.error(f"serializers nest more than {MAX_DEPTH} deep")
    start = cursor.pos
    snapshot = cursor.utf()
    version = cursor.i32()
    own = cursor.context.serializers.get(snapshot)
    known: type[Serializer] | None = REGISTRY.get(snapshot)
    if isinstance(own, type):  # A KryoClass is described under the same kind of name.
        known = own
    if known is None:
        cursor.pos = start
        error = cursor.error(
            f"the serializer with the snapshot {show(snapshot)} is not known: pass serializers="
            f"{{{show(snapshot)}: ...}} to say how it is read"
        )
        raise UnknownSnapshotError(str(error), snapshot)
    cursor.expect(f"version of {snapshot}", version, *known.versions)
    return known.from_contents(cursor, version, depth)


def read_nested(cursor: Cursor, depth: int) -> list[Serializer]:
    """Read the serializers in a composite one."""
    cursor.expect("mark of nested serializers", cursor.i32(), _NESTED_MAGIC)
    cursor.expect("version of nested serializers", cursor.i32(), 1)
    return [read_versioned_snapshot(cursor, depth + 1) for _ in range(cursor.count(6))]


def nested_contents(nested: Sequence[Serializer]) -> bytes:
    """Return the bytes of nested snapshots: mark, version, their number, and each."""
    snapshots = (serializer.versioned_snapshot() for serializer in nested)
    return b"".join((i32(_NESTED_MAGIC), i32(1), i32(len(nested)), *snapshots))


def class_of(package: str, name: str) -> str:
    """Return the name of a snapshot's class, which is nested in its serializer's."""
    return f"{package}{name}Serializer${name}SerializerSnapshot"


def exact_type(serializer: Serializer) -> str:
    """Return the text of a serializer's type, in which names are not escaped as by `str()`."""
    inside = [*map(exact_type, serializer.parts), *map(str, serializer.fields)]
    if serializer.names:
        inside = [f"{name} {part}" for name, part in zip(serializer.names, inside)]
    if serializer.java_class:
        inside.insert(0, serializer.java_class)
    return f"{serializer.name}({', '.join(inside)})" if inside else serializer.name


def checked_write(name: str, serializer: Serializer, value: Any, is_key: bool = False) -> bytes:
    """Return the bytes of a value, or of a key, after checking that it is one of the type.

    Raises InvalidTypeError, InvalidValueError, and UnsupportedKeyTypeError where only Flink writes
    it, with the `name` of the argument.
    """
    try:
        if is_key:
            _check_writes_keys(serializer)
            if serializer.write_key is not None:
                return serializer.write_key(value)
        if serializer.key_type is not None:
            check_value(value, serializer.key_type)
        return write_part(serializer, value)
    except KeyGroupsError as error:
        text = str(error).replace("key of type", "value of type", 1)  # Checks speak of keys.
        raise type(error)(f"{name}: {text}") from None


def _check_writes_keys(serializer: Serializer) -> None:
    if not serializer.writes_keys:
        raise UnsupportedKeyTypeError(
            f"a key of {serializer} cannot be written here, as it may have other bytes in Flink"
        )


def check_and_write(serializer: Serializer, value: Any) -> bytes:
    """Return the bytes of a part after checking it, as no key type has checked the whole."""
    if serializer.key_type is not None and value is not None:
        check_value(value, serializer.key_type)
    return write_part(serializer, value)


def write_part(serializer: Serializer, value: Any) -> bytes:
    """Return the bytes of a part, of which only None has not been checked with the whole."""
    if serializer.write is None:
        raise UnsupportedKeyTypeError(f"a value of {serializer} cannot be written here")
    if value is None and not serializer.takes_null:
        raise InvalidValueError(f"a {serializer} must not be None: its serializer writes no null")
    return serializer.write(value)


def checked_kryo_version(kryo_version: object) -> int:
    """Return the version of Kryo, which is 2 or 5, or raise."""
    version = check_int("kryo_version", kryo_version, 2, 5)
    if version not in (2, 5):
        raise InvalidValueError(f"kryo_version must be 2 or 5, got {show(kryo_version)}")
    return version


def checked_serializers(serializers: object) -> dict[str, type[Serializer] | KryoClass]:
    """Return a user's own serializers and Kryo classes by name, after checking them.

    None stands for an empty mapping.
    """
    if serializers is None:
        return {}
    if not isinstance(serializers, Mapping):
        raise InvalidTypeError(
            f"serializers must be a mapping of classes, got {show(serializers)}"
        )
    checked: dict[str, type[Serializer] | KryoClass] = {}
    for snapshot, own in serializers.items():
        name = check_str("class in serializers", snapshot)
        if isinstance(own, KryoClass):
            checked[name] = own
            continue
        if not isinstance(own, type) or not issubclass(own, Serializer) or own is Serializer:
            raise InvalidTypeError(
                f"serializers must have a class derived from Serializer, KryoFields or KryoEnum "
                f"for {show(name)}, got {show(own)}"
            )
        checked[name] = own
    return checked


def check_writable(serializer: Serializer, is_key: bool = False) -> None:
    """Raise UnsupportedKeyTypeError where a serializer, or a part of it, writes no values.

    `is_key` asks for those that write keys.
    """
    if is_key:
        _check_writes_keys(serializer)
    if serializer.write is None:
        raise UnsupportedKeyTypeError(f"a value of {serializer} cannot be written here")
    for part in serializer.parts:
        check_writable(part)


def writers(parts: Sequence[Serializer], key_type: KeyType | None) -> list[Write]:
    """Return the writer of each part, which checks it where no key type has checked the whole."""
    if key_type is None:
        return [partial(check_and_write, part) for part in parts]
    return [*map(_writer, parts)]


def _writer(part: Serializer) -> Write:
    write = part.write
    if write is None:
        return partial(write_part, part)
    if part.takes_null:
        return write  # The serializer's own writer is faster than a wrapper.
    return lambda value: write_part(part, value) if value is None else write(value)


def key_type_of(make: Callable[..., KeyType], parts: Sequence[Serializer]) -> KeyType | None:
    """Return the key type that `make` makes of those of parts, None where there is none."""
    key_types = [part.key_type for part in parts]
    if None in key_types:
        return None
    try:
        return make(*key_types)
    except KeyGroupsError:  # More fields than Flink has, or a whole key as a part, make none.
        return None


def total_size(parts: Sequence[Serializer]) -> int | None:
    """Return the total bytes of parts, None where one has no fixed size."""
    sizes = [part.size for part in parts]
    return None if None in sizes else sum(filter(None, sizes))


def _check_bytes(data: object) -> bytes:
    if not isinstance(data, bytes):
        raise InvalidTypeError(f"data must be bytes, got {show(data)}")
    return data
