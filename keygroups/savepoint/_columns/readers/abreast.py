"""Passing over many values at once: what it takes to find the elements of many lists.

A `PassAll` takes bytes and where values start, and returns where they end, as a `Skip` does it
for one value: it looks at no more than it has to, an end may be beyond the bytes, and it raises
what readers raise. Lists are walked side by side, the first elements of all and then the second
ones, until few lists are left; each of these is walked alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keygroups._serializers import collections, compounds, scalars, streaming
from keygroups._serializers.base import Serializer
from keygroups._serializers.jvm import pojos, scala
from keygroups._serializers.sql import python_rows, table_runtime
from keygroups.savepoint._columns.readers.compounds import EXACT, NULL
from keygroups.savepoint._columns.readers.parts import (
    Bools,
    Ints,
    check,
    counts_at,
    numbers_at,
    octets_at,
)
from keygroups.savepoint._state.skips import (
    FRAMED,
    Passed,
    Skip,
    item_skip,
    passed_of,
    passing,
    skip_of,
    skip_text,
)
from keygroups.savepoint._state.stored_values import SEPARATOR

_COUNT = np.dtype(">i4")
_SEPARATOR = SEPARATOR[0]
_LEAST_ABREAST = 128  # lists that are walked faster side by side than each alone


class SearchedBytes:
    """Bytes, and how many of them are no ASCII."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    @cached_property
    def high(self) -> Ints | None:
        """The number of bytes before each place that are no ASCII; None where all are."""
        if self.data.isascii():
            return None
        counts = np.zeros(len(self.data) + 1, np.int64)
        np.cumsum(np.frombuffer(self.data, np.uint8) >= 0x80, out=counts[1:])
        return counts


Flags = NDArray[np.uint8]
PassAll = Callable[[SearchedBytes, Ints], Ints]


def pass_all_of(serializer: Serializer) -> PassAll:
    """Return the PassAll of a serializer whose values are read here."""
    if serializer.size is not None:
        size = serializer.size
        return lambda octets, pos: pos + size
    make = _MAKERS.get(type(serializer))
    return _one_by_one(skip_of(serializer)) if make is None else make(serializer)


def _one_by_one(skip: Skip) -> PassAll:
    def pass_all(octets: SearchedBytes, pos: Ints) -> Ints:
        starts, ends = pos.tolist(), []
        for start, bound in zip(starts, [*starts[1:], len(octets.data)]):
            end = skip(octets.data, start)
            check(end <= bound)  # or each might pass over all that is behind it
            ends.append(end)
        return np.array(ends, np.int64)

    return pass_all


_each_text = _one_by_one(skip_text)


def _texts(octets: SearchedBytes, pos: Ints) -> Ints:
    """Pass over Strings: those of a size of one byte, and of ASCII, have a byte a character."""
    sizes = octets_at(octets.data, pos).astype(np.int64)
    ends = pos + np.maximum(sizes, 1)
    if octets.high is not None:
        in_data = np.minimum(ends, len(octets.data))
        others = np.flatnonzero(octets.high[in_data] != octets.high[pos])
        ends[others] = _each_text(octets, pos[others])
    return ends


def _frames(octets: SearchedBytes, pos: Ints) -> Ints:
    sizes = numbers_at(octets.data, pos, _COUNT).astype(np.int64)
    check((sizes >= 0).all())
    return pos + 4 + sizes


def _where(is_present: Bools, pass_value: PassAll, octets: SearchedBytes, pos: Ints) -> Ints:
    """Pass over the values that are present: another one ends where it starts."""
    if is_present.all():
        return pass_value(octets, pos)
    ends = pos.copy()
    ends[is_present] = pass_value(octets, pos[is_present])
    return ends


def _flagged(pass_value: PassAll, is_present: Callable[[Flags], Any]) -> PassAll:
    """Return the PassAll of a byte, and of a value where the byte says so."""

    def pass_all(octets: SearchedBytes, pos: Ints) -> Ints:
        flags = octets_at(octets.data, pos)
        return _where(is_present(flags), pass_value, octets, pos + 1)

    return pass_all


def _is_zero(flags: Flags) -> Any:
    return flags == 0


def _is_not_zero(flags: Flags) -> Any:
    return flags != 0


def _is_exact(flags: Flags) -> Any:
    is_exact = flags == EXACT
    check((is_exact | (flags == NULL)).all())  # else it is of a subclass
    return is_exact


def _in_a_row(steps: Sequence[PassAll]) -> PassAll:
    def pass_all(octets: SearchedBytes, pos: Ints) -> Ints:
        for step in steps:
            pos = step(octets, pos)
        return pos

    return pass_all


def _parts(serializer: Serializer) -> list[PassAll]:
    return [pass_all_of(part) for part in serializer.parts]


def _pojo(serializer: Serializer) -> PassAll:
    fields = [_flagged(step, _is_zero) for step in _parts(serializer)]
    return _flagged(_in_a_row(fields), _is_exact)


def _masked(serializer: Serializer) -> PassAll:
    """Return the PassAll of rows: a mask of a bit for each null, which may start with the kind."""
    kind_bits = 2 if getattr(serializer, "has_row_kind", True) else 0  # PyFlink's have one
    steps = [*enumerate(_parts(serializer), kind_bits)]
    mask_size = (kind_bits + len(steps) + 7) // 8

    def pass_all(octets: SearchedBytes, pos: Ints) -> Ints:
        masks, pos = pos, pos + mask_size
        for bit, step in steps:
            is_present = octets_at(octets.data, masks + bit // 8) & (0x80 >> bit % 8) == 0
            pos = _where(is_present, step, octets, pos)
        return pos

    return pass_all


def _nullable(serializer: Serializer) -> PassAll:
    [part] = _parts(serializer)
    return _flagged(part, _is_zero)


def item_of(key: PassAll, value: PassAll) -> PassAll:
    """Return the PassAll of the items of maps: key, whether the value is null, value."""
    return _in_a_row([key, _flagged(value, _is_zero)])


def flagged(element: PassAll) -> PassAll:
    """Return the PassAll of elements that have a byte before them, 0 for null."""
    return _flagged(element, _is_not_zero)


def unflagged(element: PassAll) -> PassAll:
    """Return the PassAll of elements with a byte before them, which is 0: others do not end."""
    return _flagged(element, _is_zero)


def _counted(passed: Passed, element: PassAll) -> PassAll:
    """Return the PassAll of a count and as many values."""

    def pass_all(octets: SearchedBytes, pos: Ints) -> Ints:
        counts = counts_at(octets.data, pos)
        _, _, ends = elements_at(octets, pos + 4, counts, passed, element)
        return ends

    return pass_all


def _list(serializer: Serializer) -> PassAll:
    [part] = serializer.parts
    return _counted(passed_of(part), pass_all_of(part))


def _map(serializer: Serializer) -> PassAll:
    skip = item_skip(*map(skip_of, serializer.parts))
    return _counted(passing(skip), item_of(*_parts(serializer)))


_TUPLES = (
    compounds.TupleSerializer,
    scala.CaseClassSerializer,
    scala.CaseClassSerializer2,
    scala.Tuple2CaseClassSerializer,
    scala.Tuple2CaseClassSerializer2,
)
_MAPS = (
    collections.MapSerializer,
    table_runtime.SortedMapSerializer,
    python_rows.PythonMapSerializer,
)
_MAKERS: dict[type[Serializer], Callable[[Serializer], PassAll]] = {
    scalars.StringSerializer: lambda serializer: _texts,
    pojos.PojoSerializer: _pojo,
    compounds.RowSerializer: _masked,
    python_rows.PythonRowSerializer: _masked,
    compounds.NullableSerializer: _nullable,
    streaming.TtlSerializer: lambda made: _in_a_row([lambda octets, pos: pos + 8, *_parts(made)]),
    **dict.fromkeys(FRAMED, lambda serializer: _frames),
    **dict.fromkeys(_TUPLES, lambda serializer: _in_a_row(_parts(serializer))),
    collections.ListSerializer: _list,
    collections.ArrayListSerializer: _list,
    **dict.fromkeys(_MAPS, _map),
}
"""The maker of the PassAll of classes of serializers whose values are of no fixed size."""


def elements_at(
    octets: SearchedBytes, starts: Ints, counts: Ints, passed: Passed, pass_all: PassAll
) -> tuple[Ints, Ints, Ints]:
    """Return the starts and ends of elements, and the ends of their lists.

    The lists are so many elements each, one after the other; each ends before the next one starts.
    """
    data = octets.data
    bounds = np.append(starts[1:], len(data))
    firsts, ends = np.cumsum(counts) - counts, starts.copy()
    places, behind = np.empty(counts.sum(), np.int64), np.empty(counts.sum(), np.int64)
    open_, step = np.flatnonzero(counts), 0
    while len(open_) >= _LEAST_ABREAST:
        pos = ends[open_]
        ends[open_] = after = pass_all(octets, pos)
        check((after <= bounds[open_]).all())
        places[firsts[open_] + step], behind[firsts[open_] + step] = pos, after
        step += 1
        open_ = open_[counts[open_] > step]
    for number in open_.tolist():
        start, first, count = int(ends[number]), int(firsts[number]), int(counts[number])
        found = passed(data, start, count - step)
        check(found[-1] <= bounds[number])
        behind[first + step : first + count] = found
        places[first + step : first + count] = [start, *found[:-1]]
        ends[number] = found[-1]
    return places, behind, ends


def separated_at(
    octets: SearchedBytes, starts: Ints, ends: Ints, skip: Skip, pass_all: PassAll
) -> tuple[Ints, Ints, Ints]:
    """Return the number of elements of each list, and the starts and ends of these.

    The lists are elements with a comma between two; each starts and ends where it is said.
    """
    data = octets.data
    steps: list[tuple[Ints, Ints, Ints]] = []  # lists, and where their elements start and end
    open_, pos = np.arange(len(starts)), starts
    while len(open_) >= _LEAST_ABREAST:
        after = pass_all(octets, pos)
        bounds = ends[open_]
        check((after <= bounds).all())
        steps.append((open_, pos, after))
        is_open = after < bounds
        open_, pos = open_[is_open], after[is_open]
        check((octets_at(data, pos) == _SEPARATOR).all())
        pos = pos + 1
    for number, start in zip(open_.tolist(), pos.tolist()):
        found = _between_commas(data, start, int(ends[number]), skip)
        steps.append((np.full(len(found), number), found[:, 0], found[:, 1]))
    lists, places, behind = (np.concatenate(parts) for parts in zip(*steps))
    order = np.argsort(lists, kind="stable")  # the elements of a list were found in order
    return np.bincount(lists, minlength=len(starts)), places[order], behind[order]


def _between_commas(data: bytes, pos: int, end: int, skip: Skip) -> Ints:
    """Return the start and the end of each element of a list."""
    found = []
    while True:
        start, pos = pos, skip(data, pos)
        found.append((start, pos))
        if pos >= end:
            break
        check(data[pos] == _SEPARATOR)
        pos += 1
    check(pos == end)
    return np.array(found, np.int64)
