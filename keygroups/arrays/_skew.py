"""The skew report of keys in arrays: keys are counted as Java's `equals` tells them apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from keygroups import types
from keygroups._checks import (
    check_choice,
    check_null_keys,
    check_str,
    show,
)
from keygroups._values.java_lang import DOUBLE_NAN, FLOAT_NAN
from keygroups.arrays._blocks import hash_keys, prepare
from keygroups.arrays._inputs import refused, to_array
from keygroups.arrays._kernels import Array, Codes, to_key_groups
from keygroups.arrays._rows import RowError, elements_of, null_rows, numbers, plain, refuse
from keygroups.errors import InvalidTypeError, InvalidValueError
from keygroups.reports import SkewReport
from keygroups.reports._skew import SkewQuestion

_AT_ONCE = 1 << 20  # rows that are counted at a time
_MOST_RECORDS = 2**62  # records; half of int64, as the sum that is checked is a rounded double


def skew_report(
    df: Any,
    key: str | list[str] | tuple[str, ...] | None,
    max_parallelism: int,
    parallelism: int,
    key_type: types.KeyType | None = None,
    top: int = 10,
    batch_size: int | None = None,
    subtask: int | None = None,
    nulls: str = "raise",
    weight: str | None = None,
) -> SkewReport:
    """Count what each subtask of a keyed Flink operator gets, and say why some get too much.

    `df` is a DataFrame of pandas or Polars, a Table of Arrow, what gives such a stream of Arrow,
    or a dict of arrays; `key` is the name of a column, or a list of names. Where `key` is None
    `df` is an array of keys itself, as `hash_code` takes it. All else is as in
    `keygroups.spark.skew_report`, with its diagnoses and the same report: all counts are exact,
    `top` is 1 to 1000, 0 <= subtask < parallelism, and `nulls` is "raise" or "drop".

    With `batch_size`, 1 to 2^31-1, the rows are taken as those of one subtask before
    `LocalKeyBy`. `weight` names a column of integers >= 0, how many records each row stands for,
    with a sum below 2^62; it goes without `batch_size`.

    Beside the data it takes memory for each different key, and 5 bytes a row. What does not fit
    into one process is for `keygroups.spark.skew_report`.

    Raises what `assign_to_key_group` raises, InvalidValueError or InvalidTypeError for the other
    arguments, and InvalidValueError if a key is null.

    >>> import numpy as np
    >>> letters = np.array(["A"] * 80 + ["B", "hello"] * 10)
    >>> report = skew_report({"letter": letters}, "letter", 128, 2, top=1, batch_size=10)
    >>> report.diagnosis, report.hot_subtasks[0].top_keys[0].key
    ('one hot key', 'A')
    >>> [(row.records, row.sent) for row in report.subtasks]
    [(20, 4), (80, 8)]
    """
    question = SkewQuestion.checked(max_parallelism, parallelism, top, batch_size, subtask)
    max_parallelism, parallelism, top, batch_size, _ = question
    if batch_size is not None and weight is not None:
        raise InvalidValueError("batch_size and weight must not both be given")
    drop = check_choice("nulls", nulls, ("raise", "drop")) == "drop"
    is_inferred = key_type is None
    array, key_type = prepare(_keys(df, key), key_type)
    weights = None if weight is None else _weights(_column(df, weight, "weight"), len(array))

    def step(codes: Codes, spare: Codes, out: Codes) -> None:
        to_key_groups(codes, max_parallelism, spare, out)

    masked: Any = hash_keys(array, key_type, "mask", step)
    key_groups, missing = masked.data, np.ma.getmaskarray(masked)
    counted = np.ones(len(array), dtype=np.bool_) if weights is None else weights > 0
    null_keys = int(missing.sum() if weights is None else weights[missing].sum())
    check_null_keys(null_keys, drop)
    kept = counted & ~missing
    if not kept.all():
        array = plain(array).filter(pa.array(kept))
        key_groups = key_groups[kept]
        weights = None if weights is None else weights[kept]
    keys = _count(array, key_type, key_groups, weights, batch_size)
    groups, records, sent = (keys[name].to_numpy() for name in ("key_group", "records", "sent"))

    def per_group(values: Array) -> list[int]:
        sums = np.zeros(max_parallelism, dtype=np.int64)
        np.add.at(sums, groups, values)
        listed: list[int] = sums.tolist()
        return listed

    def top_keys_of(wanted: list[bool]) -> Iterator[tuple[int, int, int, Any]]:
        subtasks = groups * parallelism // max_parallelism  # No product exceeds 2^30.
        heavy = keys.append_column("subtask", pa.array(subtasks))
        heavy = heavy.filter(pa.array(np.array(wanted)[subtasks]))
        fields = [name for name in keys.column_names if name.startswith("field")]
        order = [("subtask", "ascending"), ("records", "descending")]
        order += [(name, "ascending") for name in ("key_group", *fields)]
        heavy = heavy.select(["subtask", "key_group", "records", "row"]).take(
            pc.sort_indices(heavy, order)
        )
        places = heavy["subtask"].to_numpy()
        first = np.searchsorted(places, places)
        heavy = heavy.filter(pa.array(np.arange(len(places)) - first < top))
        for index, group, count, row in zip(*(column.to_pylist() for column in heavy.columns)):
            yield index, group, count, _shown(array[row])

    counts, distinct, behind = map(per_group, (records, np.ones_like(records), sent))
    return question.report(key_type, is_inferred, counts, distinct, behind, null_keys, top_keys_of)


# --- columns of tables ----------------------------------------------------------------------


def _keys(df: Any, key: object) -> Any:
    if key is None:
        return df
    names = key if isinstance(key, (list, tuple)) else [key]
    columns = [_column(df, name, "key") for name in names]
    return columns.pop() if len(columns) == 1 else columns


def _column(df: Any, column: object, argument: str) -> Any:
    """Return the column of a table by its name, which must be the only one of it."""
    name = check_str(argument, column)
    table = df
    if not isinstance(df, dict) and not hasattr(type(df), "iloc"):
        if not any(hasattr(type(df), f"__arrow_c_{kind}__") for kind in ("stream", "array")):
            raise InvalidTypeError(
                "df must be a table of pandas, Polars or Arrow, or a dict of arrays, got "
                f"{show(df)} of class {type(df).__name__}"
            )
        try:
            table = pa.table(df)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise refused("df", df, error) from None
    names = list(table.column_names if isinstance(table, pa.Table) else table.keys())
    if names.count(name) != 1:
        problem = "two columns of that name" if name in names else show(name)
        listed = [other if isinstance(other, str) else show(other) for other in names]
        raise InvalidValueError(
            f"{argument} must be one column of df, of {', '.join(listed)}, got {problem}"
        )
    return table[name]


def _weights(column: Any, rows: int) -> Array:
    """Return the weights of rows, in records, as int64."""
    array = plain(to_array(column, "weight"))
    if not pa.types.is_integer(array.type):
        raise InvalidTypeError(f"weight must be integers, but the array is of {array.type}")
    if array.null_count:
        raise InvalidValueError(f"weight must not be null, got {array.null_count:,} nulls")
    if len(array) != rows:
        raise InvalidValueError(f"weight must be of the length of key, {rows}, got {len(array)}")
    values = numbers(array) if rows else np.array([], dtype=np.int64)
    try:
        refuse(values < 0, values, "it must be at least 0")
    except RowError as error:
        raise InvalidValueError(f"weight {error.row}: {error.error}") from None
    total = float(values.sum(dtype=np.float64))
    if total >= _MOST_RECORDS:
        raise InvalidValueError(f"weight must have a sum below 2^62, got {total:.6g}")
    return values.astype(np.int64)


# --- counting -------------------------------------------------------------------------------


def _count(
    array: pa.Array,
    key_type: types.KeyType,
    key_groups: Array,
    weights: Array | None,
    batch_size: int | None,
) -> pa.Table:
    """Return a row for each key: its key group, its fields, records, batches, and first row."""
    step = _AT_ONCE
    if batch_size is not None:  # LocalKeyBy sends a key once per batch: a step is whole batches.
        step = -(-step // batch_size) * batch_size
    # Elements of lists are numbered, and the numbers have to be the same in all steps.
    whole = _fields(array, key_type) if any(map(_is_list, key_type.walk())) else None
    merged, parts, waiting = None, [], 0
    for start in range(0, max(len(array), 1), step):
        rows = len(array.slice(start, step))
        if whole is None:
            fields = _fields(array.slice(start, step), key_type)
        else:
            fields = [field.slice(start, step) for field in whole]
        names = ["key_group", *(f"field{index}" for index in range(len(fields)))]
        records = np.ones(rows, np.int64) if weights is None else weights[start : start + step]
        row = np.arange(start, start + rows)
        values = [key_groups[start : start + step], *fields, records, row]
        part = pa.table(values, [*names, "records", "row"])
        if batch_size is not None:
            part = part.append_column("batch", pa.array(row // batch_size))
            part = _grouped(part, [*names, "batch"], ("records", "row"))
        sent = np.ones(part.num_rows, np.int64)
        part = part.append_column("sent", pa.array(sent))
        parts.append(_grouped(part, names, ("records", "row", "sent")))
        waiting += parts[-1].num_rows
        if merged is None or waiting > max(merged.num_rows, _AT_ONCE):
            parts = [pa.concat_tables([*parts] if merged is None else [merged, *parts])]
            merged = _grouped(parts[0], names, ("records", "row", "sent"))
            parts, waiting = [], 0
    if parts:
        merged = _grouped(pa.concat_tables([merged, *parts]), names, ("records", "row", "sent"))
    return merged


def _grouped(table: pa.Table, names: list[str], summed: tuple[str, ...]) -> pa.Table:
    """Return a table with one row per key: sums, and the first of its `row` numbers."""
    functions = [(name, "min" if name == "row" else "sum") for name in summed]
    grouped = table.group_by(names, use_threads=False).aggregate(functions)
    renamed = [name for name in grouped.column_names if name in names]
    columns = {name: grouped[name] for name in renamed}
    return pa.table(columns | {name: grouped[f"{name}_{how}"] for name, how in functions})


def _is_list(key_type: object) -> bool:
    return isinstance(key_type, (types.LIST, types.SQL_ROW))


def _fields(
    array: pa.Array, key_type: types.KeyType | None, is_sql: bool = False, in_list: bool = False
) -> list[pa.Array]:
    """Return columns that are equal in two rows if, and only if, their keys are.

    The key type is None in a row of Flink SQL, whose keys are bytes: so NaNs of other bits differ
    there, but for those in an ARRAY.
    """
    array = plain(array)
    if isinstance(key_type, types.PYFLINK):
        return _fields(array, key_type.element)
    arrow_type = array.type
    is_sql = is_sql or isinstance(key_type, types.SQL_ROW)
    if pa.types.is_null(arrow_type):
        return []
    if pa.types.is_struct(arrow_type):
        inner = key_type.fields if isinstance(key_type, types.FieldsType) else None
        columns = array.flatten()
        fields = [
            field
            for column, field_type in zip(columns, inner or [None] * len(columns))
            for field in _fields(column, field_type, is_sql)
        ]
        return [array.is_valid(), *fields]  # Blocks without nulls have it too, to fit the others.
    if isinstance(key_type, types.FieldsType):  # The column is its one field.
        return _fields(array, key_type.fields[0])
    if pa.types.is_floating(arrow_type):
        return [_float_bits(array, raw=is_sql and not in_list)]
    if pa.types.is_decimal(arrow_type) and not pa.types.is_decimal256(arrow_type):
        return [array.cast(pa.decimal128(38, arrow_type.scale))]
    if pa.types.is_nested(arrow_type):
        return [_list_codes(array, key_type, is_sql)]
    return [pc.utf8_lower(array) if key_type is types.UUID else array]


def _float_bits(array: pa.Array, raw: bool) -> pa.Array:
    """Return the bits of floats, which tell -0.0 from 0.0; where not raw, NaNs are all equal."""
    nulls = null_rows(array)
    values = numbers(array)
    bits = values.view(f"u{values.itemsize}")
    if not raw and np.isnan(values).any():
        nan = FLOAT_NAN if values.itemsize == 4 else DOUBLE_NAN
        bits = np.where(np.isnan(values), bits.dtype.type(nan), bits)
    return pa.array(bits, mask=nulls)


def _list_codes(array: pa.Array, key_type: types.KeyType | None, is_sql: bool) -> pa.Array:
    """Return lists as binaries: 4 bytes, the number of a value, for each element and field."""
    nulls = null_rows(array)
    elements, offsets = elements_of(array, "key")
    inner = key_type.element if isinstance(key_type, types.LIST) else None
    fields = _fields(elements, inner, is_sql, in_list=True)
    codes = [
        field.dictionary_encode(null_encoding="encode").indices.to_numpy(zero_copy_only=False)
        for field in fields
    ] or [np.zeros(len(elements), dtype=np.int32)]
    data = np.ascontiguousarray(np.column_stack(codes).astype(np.int32))
    buffers = [None, pa.py_buffer(offsets * (4 * len(codes))), pa.py_buffer(data)]
    lists = pa.Array.from_buffers(pa.large_binary(), len(array), buffers)
    return lists if nulls is None else pc.if_else(pa.array(~nulls), lists, None)


def _shown(value: pa.Scalar) -> Any:
    """Return a key as a Python value, a struct as a tuple, a time beyond Python's as text."""
    if isinstance(value, pa.StructScalar) and value.is_valid:
        return tuple(_shown(value[index]) for index in range(len(value)))
    if isinstance(value, pa.ListScalar) and value.is_valid:
        return [_shown(element) for element in value.values]
    arrow_type = value.type
    is_time = pa.types.is_time(arrow_type)
    try:
        if is_time or pa.types.is_timestamp(arrow_type):  # `as_py` of nanoseconds needs pandas.
            micros = pa.time64("us") if is_time else pa.timestamp("us", arrow_type.tz)
            return value.cast(micros).as_py()
        return value.as_py()
    except (ValueError, OverflowError):  # Python lacks nanoseconds, and years beyond 9999.
        return value.cast(pa.string()).as_py()
