"""The serializer of POJOs, classes of the job with named fields."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from keygroups._checks import show
from keygroups._serializers.base import (
    JAVA,
    Read,
    Serializer,
    UnknownSerializer,
    UnknownSnapshotError,
    UnreadableError,
    Write,
    check_and_write,
    read_versioned_snapshot,
)
from keygroups._serializers.data_input import Cursor
from keygroups._serializers.data_output import utf
from keygroups._serializers.jvm.optional_maps import (
    OptionalItem,
    read_optional_map,
    write_optional_map,
)
from keygroups._values.java_values import Pojo, pojo_of
from keygroups.errors import InvalidTypeError, InvalidValueError, KeyGroupsError

_NULL, _EXACT, _SUBCLASS, _REGISTERED = 1, 2, 4, 8  # flags


class Member(NamedTuple):
    """A field or a subclass of a POJO in its snapshot, with the bytes that name its class."""

    name: str
    key: bytes | None
    serializer: Serializer


class PojoSerializer(Serializer):
    """A POJO: flags, then each field, 00 and the value or 01 for null.

    `keys` are the bytes that name the class of each field in the snapshot, `registered` the
    subclasses that values name by their index, `met` those that they name by class.

    Flink: PojoSerializer.
    """

    name, snapshot, versions = "POJO", f"{JAVA}PojoSerializerSnapshot", (2,)
    takes_null = True

    def __init__(
        self,
        java_class: str,
        names: Sequence[str] = (),
        parts: Sequence[Serializer] = (),
        keys: Sequence[bytes | None] = (),
        registered: Sequence[Member] = (),
        met: Sequence[Member] = (),
    ) -> None:
        self.java_class = java_class
        self.names, self.parts = tuple(names), tuple(parts)
        self.keys = tuple(keys) or (None,) * len(self.names)
        self.registered, self.met = tuple(registered), tuple(met)
        self.read = self._reader()
        if all(part.write is not None for part in self.parts):
            self.write = self._writer()
        super().__init__(java_class, self.names, self.parts, self.keys, self.registered, self.met)

    def _reader(self) -> Read:
        java_class = self.java_class
        fields = [
            (name, _read_of(part, f"field {show(name)} of {java_class}"))
            for name, part in zip(self.names, self.parts)
        ]
        registered = [
            _read_of(subclass.serializer, f"subclass {subclass.name}")
            for subclass in self.registered
        ]
        met = {
            utf("class", subclass.name): _read_of(subclass.serializer, f"subclass {subclass.name}")
            for subclass in self.met
        }

        def read_pojo(data: bytes, pos: int) -> tuple[Any, int]:
            flags = data[pos]
            pos += 1
            if flags != _EXACT:
                return (None, pos) if flags == _NULL else read_subclass(data, pos, flags)
            values: dict[str, Any] = {}
            for name, read in fields:
                is_null = data[pos]
                pos += 1
                if is_null:
                    values[name] = None
                else:
                    values[name], pos = read(data, pos)
            return pojo_of(java_class, values), pos

        def read_subclass(data: bytes, pos: int, flags: int) -> tuple[Any, int]:
            if flags == _REGISTERED:
                place = data[pos]
                if place >= len(registered):
                    raise ValueError(f"subclass {place} of the {len(registered)} of {java_class}")
                return registered[place](data, pos + 1)
            if flags != _SUBCLASS:
                raise ValueError(f"flags {flags} of a POJO")
            end = pos + 2 + (data[pos] << 8 | data[pos + 1])
            if end > len(data):
                raise IndexError("too few bytes")
            read = met.get(data[pos:end])
            if read is None:
                unknown = show(data[pos + 2 : end].decode("utf-8", "replace"))
                raise UnreadableError(f"{unknown}, a subclass of {java_class}, is in no snapshot")
            return read(data, end)

        return read_pojo

    def _writer(self) -> Write:
        java_class = self.java_class
        name = f"POJO({java_class})"
        writes = dict(zip(self.names, self.parts))
        subclasses = {
            subclass.name: (bytes([_SUBCLASS]) + utf("class", subclass.name), subclass)
            for subclass in self.met
        }
        for place, subclass in enumerate(self.registered[:128]):  # Java's byte ends at 127.
            subclasses[subclass.name] = bytes([_REGISTERED, place]), subclass

        def write_pojo(pojo: Any) -> bytes:
            if pojo is None:
                return bytes([_NULL])
            if not isinstance(pojo, Pojo):
                raise InvalidTypeError(f"value of type {name} must be a Pojo, got {show(pojo)}")
            if pojo.java_class != java_class:
                if pojo.java_class not in subclasses:
                    raise InvalidValueError(
                        f"value of type {name} must be of that class or of a subclass in its "
                        f"snapshot, got a Pojo of {show(pojo.java_class)}"
                    )
                flags, subclass = subclasses[pojo.java_class]
                return flags + check_and_write(subclass.serializer, pojo)
            if set(pojo) != writes.keys():
                raise InvalidValueError(
                    f"value of type {name} must have the fields {', '.join(writes)}, "
                    f"got {show(pojo)}"
                )
            written = [bytes([_EXACT])]
            for field, part in writes.items():
                value = pojo[field]
                if value is None:
                    written.append(b"\1")
                    continue
                try:
                    written += b"\0", check_and_write(part, value)
                except KeyGroupsError as error:
                    raise type(error)(f"field {show(field)}: {error}") from None
            return b"".join(written)

        return write_pojo

    @classmethod
    def from_contents(cls, cursor: Cursor, version: int, depth: int) -> Serializer:
        """Read the class, its fields, and the subclasses registered and met."""
        java_class = cursor.name_of_values()
        fields, registered, met = (_read_members(cursor, depth) for _ in range(3))
        return cls(
            java_class,
            [field.name for field in fields],
            [field.serializer for field in fields],
            [field.key for field in fields],
            registered,
            met,
        )

    def contents(self) -> bytes:
        """Return the class, and the maps of fields and subclasses."""
        fields = map(Member, self.names, self.keys, self.parts)
        maps = map(_write_members, (fields, self.registered, self.met))
        return b"".join((utf("class", self.java_class), *maps))


def _read_of(part: Serializer, place: str) -> Read:
    """Return the reader of a part, or one that raises, as the part's bytes may never occur."""
    if part.read is not None:
        return part.read

    def refuse(data: bytes, pos: int) -> tuple[Any, int]:
        raise UnreadableError(f"{place} has the serializer {part}")

    return refuse


def _read_members(cursor: Cursor, depth: int) -> list[Member]:
    """Read a map of snapshots; their lengths let the reader skip unknown ones."""
    members = []
    for name, key, value in read_optional_map(cursor):
        serializer: Serializer = UnknownSerializer("")
        if value is not None:
            start = value.pos
            try:
                serializer = read_versioned_snapshot(value, depth + 1)
                value.expect("number of bytes after a snapshot", value.left, 0)
            except UnknownSnapshotError as error:
                value.pos = start
                serializer = UnknownSerializer(error.snapshot, value.take(value.left))
        members.append(Member(name, key, serializer))
    return members


def _write_members(members: Iterable[Member]) -> bytes:
    return write_optional_map(
        OptionalItem(
            name, key, None if _is_missing(serializer) else serializer.versioned_snapshot()
        )
        for name, key, serializer in members
    )


def _is_missing(serializer: Serializer) -> bool:
    return isinstance(serializer, UnknownSerializer) and serializer.data is None
