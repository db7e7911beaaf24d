"""Passing over the bytes of a value without making it: what it takes to find the next one.

A skip takes bytes and a position and returns that behind the value, which may be beyond the bytes.
It looks at no more than it has to, so that the bytes may be no value all the same; it raises what
readers raise. Of a value that is read it returns the position that the reader returns.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from keygroups._serializers import (
    arrays,
    big_numbers,
    collections,
    compounds,
    scalars,
    streaming,
)
from keygroups._serializers.base import Serializer
from keygroups._serializers.jvm import pojos, scala
from keygroups._serializers.scalars import read_count, read_string
from keygroups._serializers.sql import python_rows, python_scalars, table_runtime
from keygroups._serializers.sql import rows as sql_rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Skip = Callable[[bytes, int], int]
Passed = Callable[[bytes, int, int], "list[int]"]
"""Passes over so many values that follow one another, and returns where each ends."""
Scan = Callable[[bytes, int, int], "Sequence[int] | NDArray[np.int64]"]
"""Finds at most so many values: where each that is whole starts, and where the last one ends."""

_i32 = struct.Struct(">i").unpack_from
_EXACT, _NULL = 2, 1  # flags of a POJO
_NO_BYTES = 4  # the code of a BigInteger's length, less the length


def skip_of(serializer: Serializer) -> Skip:
    """Return the skip of a serializer whose values are read here."""
    if serializer.size is not None:
        size = serializer.size
        return lambda data, pos: pos + size
    make = _SKIPS.get(type(serializer), _by_value)
    # The reader of the whole says so if a part is not.
    is_known = all(part.read is not None for part in serializer.parts)
    return make(serializer) if is_known else _by_value(serializer)


def _by_value(serializer: Serializer) -> Skip:
    read = serializer.read
    assert read is not None  # whoever asks has checked it
    return lambda data, pos: read(data, pos)[1]


def skip_text(data: bytes, pos: int) -> int:
    """Return the end of a String."""
    size = data[pos]
    end = pos + (size or 1)
    if size < 0x80 and data[pos:end].isascii():
        return end
    return read_string(data, pos)[1]


def passed_of(serializer: Serializer) -> Passed:
    """Return a function that passes over values of a serializer, one behind the other."""
    if type(serializer) is scalars.StringSerializer:
        return _passed_texts
    return passing(skip_of(serializer))


def passing(skip: Skip) -> Passed:
    """Return the function that passes over several values, and returns where each ends."""

    def passed(data: bytes, pos: int, count: int) -> list[int]:
        return [pos := skip(data, pos) for _ in range(count)]

    return passed


def _passed_texts(data: bytes, pos: int, count: int) -> list[int]:
    ends = []
    for _ in range(count):
        size = data[pos]
        end = pos + (size or 1)
        if size >= 0x80 or not data[pos:end].isascii():
            end = read_string(data, pos)[1]
        ends.append(end)
        pos = end
    return ends


def _skip_frame(data: bytes, pos: int) -> int:
    size: int = _i32(data, pos)[0]
    if size < 0:
        raise ValueError(f"a count of {size}")
    return pos + 4 + size


def _skip_big_int(data: bytes, pos: int) -> int:
    code: int = _i32(data, pos)[0]
    if code == _NO_BYTES or code < 0:
        raise ValueError(f"a BigInteger of code {code}")
    return pos + 4 + max(code - _NO_BYTES, 0)


def _skip_big_dec(data: bytes, pos: int) -> int:
    end = _skip_big_int(data, pos)
    return end + 4 if data[pos : pos + 4].strip(b"\0") else end


def _set(serializer: Serializer) -> Skip:
    skip_element = _of_part(serializer)

    def skip(data: bytes, pos: int) -> int:
        count, pos = read_count(data, pos)
        for _ in range(count):
            pos = pos + 1 if data[pos] else skip_element(data, pos + 1)
        return pos

    return skip


def _decimal(serializer: Serializer) -> Skip:
    [field] = serializer.fields
    return _skip_frame if field.reserved else lambda data, pos: pos + 8


def _of_part(serializer: Serializer) -> Skip:
    [part] = serializer.parts
    return skip_of(part)


def _pojo(serializer: Serializer) -> Skip:
    fields = [(part.size and part.size + 1, skip_of(part)) for part in serializer.parts]
    skip_other = _by_value(serializer)

    def skip(data: bytes, pos: int) -> int:
        flags = data[pos]
        if flags != _EXACT:
            return pos + 1 if flags == _NULL else skip_other(data, pos)
        pos += 1
        for size, skip_field in fields:
            if data[pos]:
                pos += 1
            elif size:
                pos += size
            else:
                pos = skip_field(data, pos + 1)
        return pos

    return skip


def in_a_row(serializers: Sequence[Serializer]) -> Skip:
    """Return the skip over a value of each of these, those of a fixed size together."""
    steps: list[tuple[int, Skip]] = []
    before = 0
    for serializer in serializers:
        if serializer.size is not None:
            before += serializer.size
        else:
            steps.append((before, skip_of(serializer)))
            before = 0
    if not steps:
        return lambda data, pos: pos + before
    behind = before

    def skip(data: bytes, pos: int) -> int:
        for size, skip_part in steps:
            pos = skip_part(data, pos + size)
        return pos + behind

    return skip


def _row(serializer: Serializer) -> Skip:
    assert isinstance(serializer, compounds.RowSerializer)
    return _masked(serializer.parts, 2 if serializer.has_row_kind else 0)


def _masked(parts: Sequence[Serializer], kind_bits: int) -> Skip:
    places = [
        (bit // 8, 0x80 >> bit % 8, skip_of(part)) for bit, part in enumerate(parts, kind_bits)
    ]
    mask_size = (kind_bits + len(parts) + 7) // 8

    def skip(data: bytes, pos: int) -> int:
        mask = data[pos : pos + mask_size]
        pos += mask_size
        for index, bit, skip_part in places:
            if not mask[index] & bit:
                pos = skip_part(data, pos)
        return pos

    return skip


def _list(serializer: Serializer) -> Skip:
    [part] = serializer.parts
    size = part.size
    return _counted(passed_of(part)) if size is None else _sized(size)


def _counted(passed: Passed) -> Skip:
    """Return the skip over a count and as many values."""

    def skip(data: bytes, pos: int) -> int:
        count, pos = read_count(data, pos)
        return passed(data, pos, count)[-1] if count else pos

    return skip


def _sized(size: int) -> Skip:
    """Return the skip over a count and as many values of one size."""

    def skip(data: bytes, pos: int) -> int:
        count, pos = read_count(data, pos)
        return pos + count * size

    return skip


def _flagged(serializer: Serializer) -> Skip:
    skip_element = _of_part(serializer)

    def skip(data: bytes, pos: int) -> int:
        count, pos = read_count(data, pos)
        for _ in range(count):
            pos = skip_element(data, pos + 1) if data[pos] else pos + 1
        return pos

    return skip


def item_skip(skip_key: Skip, skip_value: Skip) -> Skip:
    """Return the skip over an item of a map: key, whether the value is null, value."""

    def skip(data: bytes, pos: int) -> int:
        pos = skip_key(data, pos)
        return pos + 1 if data[pos] else skip_value(data, pos + 1)

    return skip


def _map(serializer: Serializer) -> Skip:
    return _counted(passing(item_skip(*map(skip_of, serializer.parts))))


def _numbers(serializer: Serializer) -> Skip:
    assert isinstance(serializer, arrays.NumberArray)
    return _sized(struct.calcsize(serializer.typecode))


def _nullable(serializer: Serializer) -> Skip:
    skip_value = _of_part(serializer)
    return lambda data, pos: pos + 1 if data[pos] else skip_value(data, pos + 1)


def _option(serializer: Serializer) -> Skip:
    skip_value = _of_part(serializer)
    return lambda data, pos: skip_value(data, pos + 1) if data[pos] else pos + 1


def _either(serializer: Serializer) -> Skip:
    skip_left, skip_right = map(skip_of, serializer.parts)
    return lambda data, pos: (skip_left if data[pos] else skip_right)(data, pos + 1)


def _ttl(serializer: Serializer) -> Skip:
    skip_value = _of_part(serializer)
    return lambda data, pos: skip_value(data, pos + 8)


def _all(
    make: Callable[[Serializer], Skip], *classes: type[Serializer]
) -> dict[type[Serializer], Callable[[Serializer], Skip]]:
    return dict.fromkeys(classes, make)


FRAMED = (
    scalars.BytePrimitiveArraySerializer,
    scalars.ByteArrayWrapperSerializer,
    scalars.StringDataSerializer,
    arrays.BooleanPrimitiveArraySerializer,
    sql_rows.RowDataSerializer,
    sql_rows.ArrayDataSerializer,
    sql_rows.MapDataSerializer,
    sql_rows.RawValueDataSerializer,
    python_scalars.PythonStringSerializer,
    python_scalars.PythonBigDecSerializer,
    python_scalars.PythonDecimalSerializer,
)
"""The classes of serializers that write how many bytes follow, and these bytes."""
_SKIPS: dict[type[Serializer], Callable[[Serializer], Skip]] = {
    **_all(lambda serializer: skip_text, scalars.StringSerializer),
    **_all(lambda serializer: _skip_frame, *FRAMED),
    **_all(lambda serializer: _skip_big_int, big_numbers.BigIntSerializer),
    **_all(lambda serializer: _skip_big_dec, big_numbers.BigDecSerializer),
    **_all(_set, collections.SetSerializer),
    **_all(_decimal, sql_rows.DecimalDataSerializer),
    **_all(
        _numbers,
        arrays.CharPrimitiveArraySerializer,
        arrays.ShortPrimitiveArraySerializer,
        arrays.IntPrimitiveArraySerializer,
        arrays.LongPrimitiveArraySerializer,
        arrays.FloatPrimitiveArraySerializer,
        arrays.DoublePrimitiveArraySerializer,
    ),
    **_all(lambda serializer: _counted(_passed_texts), arrays.StringArraySerializer),
    **_all(_pojo, pojos.PojoSerializer),
    **_all(
        lambda serializer: in_a_row(serializer.parts),
        compounds.TupleSerializer,
        scala.CaseClassSerializer,
        scala.CaseClassSerializer2,
        scala.Tuple2CaseClassSerializer,
        scala.Tuple2CaseClassSerializer2,
    ),
    **_all(_row, compounds.RowSerializer),
    **_all(lambda serializer: _masked(serializer.parts, 2), python_rows.PythonRowSerializer),
    **_all(_list, collections.ListSerializer, collections.ArrayListSerializer),
    **_all(
        _flagged,
        collections.GenericArraySerializer,
        scala.TraversableSerializer,
        scala.TraversableSerializer2,
        python_rows.PythonArraySerializer,
    ),
    **_all(
        _map,
        collections.MapSerializer,
        table_runtime.SortedMapSerializer,
        python_rows.PythonMapSerializer,
    ),
    **_all(_nullable, compounds.NullableSerializer),
    **_all(_option, scala.OptionSerializer, scala.OptionSerializer2),
    **_all(
        _either,
        compounds.EitherSerializer,
        scala.ScalaEitherSerializer,
        scala.ScalaEitherSerializer2,
    ),
    **_all(_ttl, streaming.TtlSerializer, streaming.AsyncTtlSerializer),
    **_all(
        _of_part,
        python_rows.TypedSerializer,
        sql_rows.ExternalSerializer,
        streaming.TtlAwareSerializer,
        streaming.SingleThreadAccessCheckingSerializer,
        table_runtime.ListViewSerializer,
        table_runtime.MapViewSerializer,
    ),
}
"""The maker of the skip of each class of serializers whose values are of no fixed size."""
