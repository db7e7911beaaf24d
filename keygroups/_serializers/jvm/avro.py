"""The serializer of Avro's records, whose bytes are Flink's and not Avro's binary encoding.

The schema in the snapshot is parsed by fastavro, of which nothing else is used: no file, no host.
Work is bounded by the bytes of a value; fields that take none are limited in the schema.

{"sku": "pen", "qty": ("int", 7), "tags": ["a"]}, with a union of null and int and an array of
strings, is 00000003 70656E (a length of 4 bytes, and the text), 00000001 00000007 (branch 1 of the
union, and the int), 02 00000001 61 00 (a block of 1, zigzag as in Avro, its item, and no more).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any, NamedTuple

from keygroups._checks import MAX_DEPTH, show
from keygroups._serializers.base import Read, Serializer, UnreadableError, Write, check_and_write
from keygroups._serializers.collections import as_dict
from keygroups._serializers.data_input import LONGEST_NAME, Cursor
from keygroups._serializers.data_output import utf
from keygroups._serializers.scalars import (
    BOOLEAN,
    BYTES,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    pack_int,
    read_bytes,
    read_int,
    read_varint,
    write_varint,
)
from keygroups._values.checks import expect
from keygroups.errors import InvalidValueError, KeyGroupsError, UnsupportedKeyTypeError

_MAX_JSON_DEPTH = 4 * MAX_DEPTH
_MAX_EMPTY = 100
"""The most fields without bytes in a record and those nested in it."""

ReadNested = Callable[[bytes, int, int], "tuple[Any, int]"]
WriteNested = Callable[[Any, int], bytes]


class AvroSerializer(Serializer):
    """A record of Avro, generic, specific or by reflection: a dict; `schema` is its JSON.

    A value of a union of more than one branch is None, or the pair of the branch and the value.

    Flink: AvroSerializer, DataOutputEncoder.
    """

    name, versions = "AVRO", (2,)
    snapshot = "org.apache.flink.formats.avro.typeutils.AvroSerializerSnapshot"

    def __init__(self, java_class: str, schema: str) -> None:
        self.java_class = java_class
        self.schema = schema

        def read_avro(data: bytes, pos: int) -> tuple[Any, int]:
            return _codec(schema).read(data, pos, 0)

        def write_avro(value: Any) -> bytes:
            try:
                return _codec(schema).write(value, 0)
            except UnreadableError as error:
                raise UnsupportedKeyTypeError(str(error)) from None

        # The schema is parsed with the first value, so that all else is read without fastavro.
        self.read, self.write = read_avro, write_avro
        self.writes_keys = '"map"' not in schema  # A HashMap is in any order.
        super().__init__(java_class, schema)

    @classmethod
    def from_contents(cls, cursor: Cursor, version: int, depth: int) -> Serializer:
        """Read class and schema."""
        return cls(cursor.utf(), cursor.utf())

    def contents(self) -> bytes:
        """Return class and schema."""
        return utf("class", self.java_class) + utf("schema", self.schema)


class _Codec(NamedTuple):
    """Reader and writer of a type; the last argument of both is the depth in the value.

    `branch` is its name in a union, `takes_bytes` says whether any value takes bytes, and `empty`
    is the number of values in one that take none.
    """

    branch: str
    read: ReadNested
    write: WriteNested
    takes_bytes: bool = True
    empty: int = 0


@lru_cache(maxsize=256)
def _codec(schema: str) -> _Codec:
    with checked_schema():
        return _Schema().codec(parsed_schema(schema))


def parsed_schema(schema: str) -> Any:
    """Return a schema as fastavro parses it, with namespaces in all names; see checked_schema."""
    from fastavro import parse_schema

    parsed = json.loads(schema, object_hook=_without_marks)
    _check_depth(parsed)
    return parse_schema(parsed)


@contextmanager
def checked_schema() -> Iterator[None]:
    """Turn what a schema that is none raises into InvalidValueError or UnreadableError.

    Raises KeyGroupsError without fastavro.
    """
    try:
        from fastavro.schema import SchemaParseException, UnknownType
    except ImportError:
        raise KeyGroupsError(
            "schemas of Avro are parsed with fastavro: pip install 'keygroups[savepoint]'"
        ) from None
    try:
        yield
    except RecursionError:
        raise UnreadableError("a schema of Avro that nests too deep") from None
    except UnreadableError:
        raise
    except (
        SchemaParseException,
        UnknownType,
        # JSON that is no schema at all makes fastavro raise any of these.
        *(ArithmeticError, AttributeError, LookupError, TypeError, ValueError),
    ) as error:
        raise InvalidValueError(f"no schema of Avro: {show(str(error))}") from None


def _without_marks(node: dict[str, Any]) -> dict[str, Any]:
    """Return a part of a schema without fastavro's marks, which would skip its checks."""
    return {name: value for name, value in node.items() if not name.startswith("__")}


def _check_depth(parsed: Any) -> None:
    level, depth = [parsed], 0
    while level:
        inner: list[Any] = []
        for node in level:
            if isinstance(node, dict):
                inner += node.values()
            elif isinstance(node, list):
                inner += node
        level, depth = inner, depth + 1
        if depth > _MAX_JSON_DEPTH:
            raise UnreadableError(f"a schema of Avro that nests more than {_MAX_JSON_DEPTH} deep")


def _checked_name(name: Any) -> str:
    """Return the name of a type, field or symbol, which must not be longer than LONGEST_NAME.

    Each value repeats it by one byte or none.
    """
    if not isinstance(name, str):
        raise ValueError(f"the name {show(name)}")
    if len(name) > LONGEST_NAME:
        raise UnreadableError(
            f"a schema of Avro with a name of {len(name):,} characters: at most {LONGEST_NAME:,} "
            "are read"
        )
    return name


def _deeper(depth: int) -> int:
    if depth >= MAX_DEPTH:
        raise UnreadableError(f"a value of Avro that nests more than {MAX_DEPTH} deep")
    return depth + 1


def _scalar(branch: str, read: Read, write: Write) -> _Codec:
    return _Codec(
        branch, lambda data, pos, depth: read(data, pos), lambda value, depth: write(value)
    )


def _of(branch: str, serializer: Serializer) -> _Codec:
    assert serializer.read is not None
    return _scalar(branch, serializer.read, partial(check_and_write, serializer))


def _read_text(data: bytes, pos: int) -> tuple[str, int]:
    text, pos = read_bytes(data, pos)
    return text.decode(), pos


def _write_text(value: object) -> bytes:
    text = expect("string", value, str, "a str")
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise InvalidValueError(
            f"a string must have no half of a surrogate pair, got {show(text)}"
        ) from None
    return pack_int(len(data)) + data


def _write_null(value: object, depth: int) -> bytes:
    expect("null", value, type(None), "None")
    return b""


_SCALARS = {
    "null": _Codec("null", lambda data, pos, depth: (None, pos), _write_null, False, 1),
    "boolean": _of("boolean", BOOLEAN),
    "int": _of("int", INT),
    "long": _of("long", LONG),
    "float": _of("float", FLOAT),
    "double": _of("double", DOUBLE),
    "bytes": _of("bytes", BYTES),
    "string": _scalar("string", _read_text, _write_text),
}


class _Schema:
    """The maker of codecs for a schema that fastavro parsed, with namespaces in all names."""

    def __init__(self) -> None:
        self._named: dict[str, _Codec | None] = {}

    def codec(self, schema: Any) -> _Codec:
        if isinstance(schema, list):
            return self._union(schema)
        if isinstance(schema, str):
            return _SCALARS.get(schema) or self._reference(schema)
        kind = schema["type"]
        if kind == "array":
            return _array(self.codec(schema["items"]))
        if kind == "map":
            return _map(self.codec(schema["values"]))
        if kind not in ("record", "error", "enum", "fixed"):
            return self.codec(kind)
        name = _checked_name(schema["name"])
        self._named[name] = None
        if kind == "enum":
            made = _enum(name, schema["symbols"])
        elif kind == "fixed":
            made = _fixed(name, schema["size"])
        else:
            made = self._record(name, schema["fields"])
        self._named[name] = made
        return made

    def _reference(self, name: str) -> _Codec:
        made = self._named[name]
        if made is not None:
            return made
        # A record within itself has no codec yet. Only an array, a map or a union ends that.
        return _Codec(
            name,
            lambda data, pos, depth: self._made(name).read(data, pos, depth),
            lambda value, depth: self._made(name).write(value, depth),
            empty=_MAX_EMPTY + 1,
        )

    def _made(self, name: str) -> _Codec:
        made = self._named[name]
        assert made is not None
        return made

    def _union(self, schemas: list[Any]) -> _Codec:
        codecs = [self.codec(schema) for schema in schemas]
        reads = [codec.read for codec in codecs]
        branches = [codec.branch for codec in codecs]
        places = {branch: place for place, branch in enumerate(branches)}

        def read_union(data: bytes, pos: int, depth: int) -> tuple[Any, int]:
            place, pos = read_int(data, pos)
            if not 0 <= place < len(reads):
                raise ValueError(f"branch {place} of the {len(reads)} of a union")
            value, pos = reads[place](data, pos, depth)
            if len(reads) == 1 or branches[place] == "null":
                return value, pos
            return (branches[place], value), pos

        def write_union(value: Any, depth: int) -> bytes:
            if len(codecs) == 1:
                [codec] = codecs
                return pack_int(0) + codec.write(value, depth)
            if value is None and "null" in places:
                return pack_int(places["null"])
            name = f"union of {', '.join(branches)}"
            pair = expect(name, value, tuple, "a pair of branch and value")
            if len(pair) != 2 or pair[0] not in branches or pair[0] == "null":
                raise InvalidValueError(f"{name} must be a branch and its value, got {show(pair)}")
            place = places[pair[0]]
            return pack_int(place) + codecs[place].write(pair[1], depth)

        return _Codec("union", read_union, write_union)

    def _record(self, name: str, fields: list[Any]) -> _Codec:
        codecs = {_checked_name(field["name"]): self.codec(field["type"]) for field in fields}
        if len(codecs) < len(fields):
            raise ValueError(f"{name} has a field twice")
        reads = [(field, codec.read) for field, codec in codecs.items()]
        empty = sum(codec.empty for codec in codecs.values()) or int(not codecs)

        def read_record(data: bytes, pos: int, depth: int) -> tuple[Any, int]:
            if empty > _MAX_EMPTY:
                raise UnreadableError(f"{show(name)} has too many fields that take no bytes")
            depth = _deeper(depth)
            record = {}
            for field, read in reads:
                record[field], pos = read(data, pos, depth)
            return record, pos

        def write_record(value: Any, depth: int) -> bytes:
            record = expect(name, value, dict, "a dict")
            depth = _deeper(depth)
            if record.keys() != codecs.keys():
                raise InvalidValueError(
                    f"{name} must have the fields {', '.join(codecs)}, got {show(record)}"
                )
            return b"".join(codec.write(record[field], depth) for field, codec in codecs.items())

        takes_bytes = any(codec.takes_bytes for codec in codecs.values())
        return _Codec(name, read_record, write_record, takes_bytes, empty)


def _enum(name: str, symbols: Any) -> _Codec:
    if not isinstance(symbols, list):
        raise ValueError(f"{name} with the symbols {show(symbols)}")
    places = {symbol: place for place, symbol in enumerate(map(_checked_name, symbols))}

    def read_enum(data: bytes, pos: int) -> tuple[str, int]:
        place, pos = read_int(data, pos)
        if not 0 <= place < len(symbols):
            raise ValueError(f"symbol {place} of the {len(symbols)} of {name}")
        return symbols[place], pos

    def write_enum(value: Any) -> bytes:
        if expect(name, value, str, "a str") not in places:
            raise InvalidValueError(f"{name} must be of {', '.join(symbols)}, got {show(value)}")
        return pack_int(places[value])

    return _scalar(name, read_enum, write_enum)


def _fixed(name: str, size: int) -> _Codec:
    def read_fixed(data: bytes, pos: int, depth: int) -> tuple[bytes, int]:
        if pos + size > len(data):
            raise IndexError("too few bytes")
        return data[pos : pos + size], pos + size

    def write_fixed(value: Any, depth: int) -> bytes:
        data = expect(name, value, bytes, "bytes")
        if len(data) != size:
            raise InvalidValueError(f"{name} must take {size} bytes, got {len(data)}")
        return data

    if type(size) is not int or size < 0:
        raise ValueError(f"{name} of {show(size)} bytes")
    return _Codec(name, read_fixed, write_fixed, size > 0, int(not size))


def _read_items(
    read: ReadNested, takes_bytes: bool, data: bytes, pos: int, depth: int
) -> tuple[list[Any], int]:
    """Read blocks of items, each a count and as many items, up to a count of 0."""
    depth = _deeper(depth)
    items: list[Any] = []
    while True:
        count, pos = read_varint(data, pos, 63)
        if not count:
            return items, pos
        if not takes_bytes:
            raise UnreadableError("an array of items that take no bytes")
        if count > len(data) - pos:
            raise IndexError("too few bytes")
        for _ in range(count):
            item, pos = read(data, pos, depth)
            items.append(item)


def _write_items(items: list[bytes]) -> bytes:
    return b"".join((write_varint(len(items)), *items, b"\0")) if items else b"\0"


def _array(codec: _Codec) -> _Codec:
    def write_array(value: Any, depth: int) -> bytes:
        depth = _deeper(depth)
        items = expect("array", value, list, "a list")
        return _write_items([codec.write(item, depth) for item in items])

    return _Codec("array", partial(_read_items, codec.read, codec.takes_bytes), write_array)


def _map(codec: _Codec) -> _Codec:
    def read_item(data: bytes, pos: int, depth: int) -> tuple[tuple[str, Any], int]:
        key, pos = _read_text(data, pos)
        value, pos = codec.read(data, pos, depth)
        return (key, value), pos

    def read_map(data: bytes, pos: int, depth: int) -> tuple[Any, int]:
        items, pos = _read_items(read_item, True, data, pos, depth)
        return as_dict(items), pos

    def write_map(value: Any, depth: int) -> bytes:
        depth = _deeper(depth)
        items = expect("map", value, dict, "a dict").items()
        return _write_items([_write_text(key) + codec.write(item, depth) for key, item in items])

    return _Codec("map", read_map, write_map)
