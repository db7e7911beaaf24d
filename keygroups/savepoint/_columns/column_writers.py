"""Writers of whole columns of Arrow, with the writers of their parts within them.

A part that has no writer of its own is written value by value, and the others by columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from keygroups._serializers import big_numbers, collections, compounds
from keygroups._serializers.base import Serializer, check_and_write
from keygroups._serializers.jvm.pojos import PojoSerializer
from keygroups._serializers.sql.rows import (
    ArrayDataSerializer,
    MapDataSerializer,
    RowDataSerializer,
)
from keygroups.errors import KeyGroupsError
from keygroups.logical_types import LogicalType
from keygroups.savepoint._columns.binary_writers import binary_writer, map_items, row_kinds
from keygroups.savepoint._columns.byte_arrays import (
    Int64s,
    Pieces,
    assembled,
    bytes_array,
    list_bounds,
    records,
    runs,
    with_others,
)
from keygroups.savepoint._columns.column_types import column_of
from keygroups.savepoint._columns.columns import is_encodable
from keygroups.savepoint._columns.scalar_writers import (
    SCALARS,
    ColumnWriter,
    UnwrittenError,
    WritePieces,
)
from keygroups.state_keys import serializer_of
from keygroups.types import KeyType

_EXACT = 2  # the flags of a POJO of the class itself


def column_writer(column_type: KeyType | Serializer) -> ColumnWriter | None:
    """Return the writer of the column that state of a type is written from, if there is one."""
    if isinstance(column_type, Serializer):
        return _writer_of(column_type, is_of_key_type=False)
    return _writer_of(serializer_of(column_type), is_of_key_type=True)


def key_writer(column_type: KeyType | Serializer) -> ColumnWriter | None:
    """Return the writer of a column of keys, whose bytes may be others than those of values."""
    if isinstance(column_type, Serializer):
        # A row has a row_kind there, which no key has.
        return None if _has_rows(column_type) else column_writer(column_type)
    serializer = serializer_of(column_type)
    if not isinstance(serializer, RowDataSerializer):
        return column_writer(column_type)
    row = LogicalType("ROW", fields=serializer.fields)
    write = binary_writer(row, is_key=True, is_projected=True)
    return None if write is None else ColumnWriter(write, None)


def _has_rows(serializer: Serializer) -> bool:
    is_row = isinstance(serializer, (compounds.RowSerializer, RowDataSerializer))
    return is_row or any(map(_has_rows, serializer.parts))


def _writer_of(serializer: Serializer, is_of_key_type: bool) -> ColumnWriter | None:
    """Return the writer for a serializer, None without one.

    BIG_DEC is decimals as a key type, which have a writer, and text as a serializer.
    """
    cls = type(serializer)
    if serializer.write is None:
        return None
    if cls in _COMPOUND:
        parts = [_part_of(part, is_of_key_type) for part in serializer.parts]
        present = [part for part in parts if part is not None]
        is_whole = len(present) == len(parts)
        write = _COMPOUND[cls](serializer, present, is_of_key_type) if is_whole else None
    elif cls in _OF_SQL:
        field = LogicalType(_OF_SQL[cls], fields=serializer.fields)
        write = binary_writer(field, is_of_key_type)
    elif cls is big_numbers.BigDecSerializer and not is_of_key_type:
        return None
    else:
        write = SCALARS.get(cls)
    if write is None:
        return None
    return ColumnWriter(write, serializer.write(None) if serializer.takes_null else None)


def _part_of(serializer: Serializer, is_of_key_type: bool) -> ColumnWriter | None:
    """Return the writer of a part, which writes value by value if it has no writer."""
    writer = _writer_of(serializer, is_of_key_type)
    if writer is None and not is_of_key_type and not serializer.none_is_value:
        return _one_by_one(serializer)
    return writer


def _one_by_one(serializer: Serializer) -> ColumnWriter | None:
    """Return a writer that writes value by value, None where the column has no values."""
    column = column_of(serializer)
    if column is None or serializer.write is None or serializer.read is None:
        return None

    def write(array: pa.Array) -> Pieces:
        try:
            values = column.restore(array)
            return [bytes_array(check_and_write(serializer, value) for value in values)]
        except (KeyGroupsError, UnicodeDecodeError, OverflowError):
            raise UnwrittenError from None

    return ColumnWriter(write, serializer.write(None) if serializer.takes_null else None)


# --- the writers of wholes, from those of their parts ---------------------------------------


def _tuples(serializer: Serializer, parts: Sequence[ColumnWriter], is_of: bool) -> WritePieces:
    return lambda array: [
        piece for part, column in zip(parts, array.flatten()) for piece in part.all_pieces(column)
    ]


def _rows(
    serializer: Serializer, parts: Sequence[ColumnWriter], is_of_key_type: bool
) -> WritePieces:
    """Return the writer of ROW, whose column has `row_kind` unless it is that of a key type."""
    assert isinstance(serializer, compounds.RowSerializer)
    kind_bits = 2 if serializer.has_row_kind else 0

    def write(array: pa.Array) -> Pieces:
        columns = array.flatten()
        bits = np.zeros((len(array), kind_bits + len(parts)), np.bool_)
        if not bits.shape[1]:  # A row without any bytes: NumPy packs no bits into none.
            raise UnwrittenError
        if not is_of_key_type:
            kinds = row_kinds(columns.pop())
            if kinds.any() and not kind_bits:
                raise UnwrittenError
            if kind_bits:
                bits[:, 0], bits[:, 1] = kinds & 1, kinds >> 1
        pieces = [np.empty(0)]
        for place, (part, column) in enumerate(zip(parts, columns), kind_bits):
            if column.null_count:
                nulls = column.is_null()
                bits[:, place] = nulls.to_numpy(zero_copy_only=False)
                pieces.append(with_others(part.write(column.drop_null()), nulls, b""))
            else:
                pieces += part.pieces(column)
        pieces[0] = records(np.packbits(bits, axis=1))
        return pieces

    return write


def _pojos(
    serializer: Serializer, parts: Sequence[ColumnWriter], is_of_key_type: bool
) -> WritePieces | None:
    """Return the writer of POJOs of one class: the flags, and each field after a mark of null."""
    assert isinstance(serializer, PojoSerializer)
    if serializer.registered or serializer.met:  # their column is text
        return None

    def write(array: pa.Array) -> Pieces:
        pieces: list[object] = [np.full(len(array), _EXACT, np.uint8)]
        for part, column in zip(parts, array.flatten()):
            pieces += _marked(part, column)
        return pieces

    return write


def _marked(part: ColumnWriter, column: pa.Array, value: int = 0, null: int = 1) -> Pieces:
    """Return the values of a column, each after the mark `value`, and the mark `null` alone."""
    if not column.null_count:
        return [np.full(len(column), value, np.uint8), *part.pieces(column)]
    valid = column.drop_null()
    written = assembled([np.full(len(valid), value, np.uint8), *part.pieces(valid)])
    return [with_others(written, column.is_null(), bytes([null]))]


def _nullables(serializer: Serializer, parts: Sequence[ColumnWriter], is_of: bool) -> WritePieces:
    [part] = parts
    return lambda array: _marked(part, array)


def _lists(serializer: Serializer, parts: Sequence[ColumnWriter], is_of: bool) -> WritePieces:
    [element] = parts

    def write(array: pa.Array) -> Pieces:
        written, bounds = write_elements(array, element)
        return [np.diff(bounds).astype(">i4"), runs(written, bounds)]

    return write


def write_elements(array: pa.Array, element: ColumnWriter) -> tuple[pa.Array, Int64s]:
    """Return the bytes of all elements of lists, and the number of the first element of each list.

    The last number is that of all elements. Raises UnwrittenError for a null element.
    """
    elements = array.flatten()
    if elements.null_count:
        raise UnwrittenError
    return element.write(elements), list_bounds(array)


def _object_arrays(
    serializer: Serializer, parts: Sequence[ColumnWriter], is_of_key_type: bool
) -> WritePieces:
    [element] = parts

    def write(array: pa.Array) -> Pieces:
        elements, bounds = array.flatten(), list_bounds(array)
        written = assembled(_marked(element, elements, value=1, null=0))
        return [np.diff(bounds).astype(">i4"), runs(written, bounds)]

    return write


def _maps(
    serializer: Serializer, parts: Sequence[ColumnWriter], is_of_key_type: bool
) -> WritePieces | None:
    """Return the writer of maps: a count, then each key, a mark of null, and the value."""
    key, value = parts
    if not collections.is_equal_by_content(serializer.parts[0]):
        return None

    def write(array: pa.Array) -> Pieces:
        (keys, values), bounds = map_items(array)
        written = key.write(keys)
        _check_distinct(written, bounds)
        items = assembled([written, *_marked(value, values)])
        return [np.diff(bounds).astype(">i4"), runs(items, bounds)]

    return write


def _check_distinct(keys: pa.Array, bounds: Int64s) -> None:
    """Raise UnwrittenError where a map has a key twice."""
    counts = np.diff(bounds)
    if counts.max(initial=0) < 2:
        return
    encoded = keys.dictionary_encode()
    codes = encoded.indices.to_numpy().astype(np.int64)
    maps = np.repeat(np.arange(len(counts)), counts)
    if len(np.unique(maps * len(encoded.dictionary) + codes)) < len(codes):
        raise UnwrittenError


def _enums(
    serializer: Serializer, parts: Sequence[ColumnWriter], is_of_key_type: bool
) -> WritePieces | None:
    assert isinstance(serializer, compounds.EnumSerializer)
    constants = serializer.constants
    if len({*constants}) < len(constants) or not all(map(is_encodable, constants)):
        return None

    def write(array: pa.Array) -> Pieces:
        numbers = pc.index_in(array, pa.array(constants, array.type))
        if numbers.null_count:
            raise UnwrittenError
        return [numbers.to_numpy().astype(">i4")]

    return write


MakeWriter = Callable[[Serializer, Sequence[ColumnWriter], bool], "WritePieces | None"]
"""Makes a writer from a serializer and the writers of its parts; the last argument is that of
`_writer_of`."""
_COMPOUND: dict[type[Serializer], MakeWriter] = {
    compounds.TupleSerializer: _tuples,
    compounds.RowSerializer: _rows,
    compounds.NullableSerializer: _nullables,
    compounds.EnumSerializer: _enums,
    collections.ListSerializer: _lists,
    collections.ArrayListSerializer: _lists,
    collections.MapSerializer: _maps,
    collections.GenericArraySerializer: _object_arrays,
    PojoSerializer: _pojos,
}
_OF_SQL: dict[type[Serializer], str] = {
    RowDataSerializer: "ROW",
    ArrayDataSerializer: "ARRAY",
    MapDataSerializer: "MAP",
}
"""The names of the logical types of serializers that have the fields of these."""
