"""The tables of a savepoint: its operators, and the channels of its in-flight data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from heapq import nlargest
from itertools import compress, pairwise
from typing import NamedTuple

from keygroups._show.tables import Section, html_sections, text_table
from keygroups.errors import SavepointError, short
from keygroups.key_group_range import compute_operator_index_for_key_group
from keygroups.load import KeyGroupLoad
from keygroups.savepoint._named_operators import labels_of
from keygroups.savepoint._operator import Operator, bytes_of
from keygroups.savepoint._operator_tables import LABEL, MOST_SHOWN
from keygroups.savepoint._tasks.read import ReadTask
from keygroups.skew import HOT

_NO_LOADS: Mapping[str, KeyGroupLoad | None] = {}
_HINT = "-: entries have to be read for it, as summary() does (keygroups savepoint --full)"
_CHANNELS = 10  # in a text
_CHANNEL_HEADINGS = ("operator", "direction", "subtask", "gate", "channel", "bytes")
_HEADINGS = ("operator", "parallelism", "max", "bytes", "key groups", "imbalance")


class Operators(tuple[Operator, ...]):
    """The operators of a savepoint, a tuple; a notebook shows them as a table."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return html_sections([operators_section(self, MOST_SHOWN)])


def heaviest(operators: Sequence[Operator], most: int) -> list[Operator]:
    """Return the `most` operators with the most bytes, in the order of the savepoint."""
    indices = nlargest(most, range(len(operators)), key=lambda i: bytes_of(operators[i]))
    return [operators[index] for index in sorted(indices)]


def operators_section(
    operators: Sequence[Operator], most: int, loads: Mapping[str, KeyGroupLoad | None] = _NO_LOADS
) -> Section:
    """Return the table of the `most` heaviest operators; `loads` are known ones, by their ids."""
    shown = heaviest(operators, most)
    rows = _rows(shown, loads)
    caption = f"Operators; hot: the heaviest subtask has {HOT} times the mean and more"
    if len(shown) < len(operators):
        left_out = len(operators) - len(shown)
        caption += f"; the {len(shown)} with the most bytes, {left_out:,} others are left out"
    hot = {index: "hot" for index, row in enumerate(rows) if row.is_hot}
    cells = [row.cells for row in rows]
    return Section(_hints(rows), _HEADINGS, cells, caption=caption, marks=hot)


def _hints(rows: Iterable[_Row]) -> list[str]:
    """Return a line that says what the cells without a number take, if there are any."""
    return [_HINT] if any(row.is_unread for row in rows) else []


def in_flight_sections(operators: Iterable[Operator], most: int) -> list[Section]:
    """Return the table of the `most` heaviest channels of in-flight data, or no table."""
    channels = [
        (operator, channel) for operator in operators for channel in operator.in_flight_data
    ]
    if not channels:
        return []
    rows = [
        (
            short(operator.label, LABEL),
            channel.direction,
            *map(str, (channel.subtask, channel.gate, channel.channel)),
            f"{channel.bytes:,}",
        )
        for operator, channel in nlargest(most, channels, key=lambda pair: pair[1].bytes)
    ]
    ids = {operator.operator_id for operator, _ in channels}
    total = sum(channel.bytes for _, channel in channels)
    caption = f"In-flight data of an unaligned checkpoint, {total:,} bytes of {len(ids)} operators"
    if len(rows) < len(channels):
        left_out = len(channels) - len(rows)
        caption += f"; the {len(rows)} heaviest channels, {left_out:,} others are left out"
    return [Section([], _CHANNEL_HEADINGS, rows, (0, 1), caption)]


def table_lines(operators: Sequence[Operator]) -> list[str]:
    """Return the tables of operators and of their in-flight data as lines of text."""
    rows = _rows(operators)
    table = text_table([_HEADINGS, *(row.cells for row in rows)], left_columns=(0,))
    lines = [*table, *_hints(rows)]
    for section in in_flight_sections(operators, _CHANNELS):
        lines += [f"{section.caption}:", *text_table([section.header, *section.rows], (0, 1))]
    return lines


def _key_groups_in_use(operator: Operator, tasks: Iterable[ReadTask]) -> tuple[int, float]:
    """Return the number of key groups in use, and the imbalance: heaviest subtask over the mean.

    A KeyGroupLoad has the same, but holds a weight for each of up to 32,768 key groups. Here only
    the sums of subtasks are held: with 128 key groups and parallelism 3, subtask 1 starts at key
    group 43 and subtask 2 at 86.
    """
    groups, parallelism = operator.max_parallelism, operator.parallelism
    in_use = 0
    per_subtask: Counter[int] = Counter()
    for task in tasks:
        used: set[int] = set()  # key groups of a task with several files, such as raw timers
        runs = [*task.key_group_sizes()]
        for start, sizes in runs:
            end = start + len(sizes)
            if len(runs) > 1:
                used.update(compress(range(start, end), sizes))
            else:
                in_use += len(sizes) - sizes.count(0)
            first, last = (
                compute_operator_index_for_key_group(groups, parallelism, key_group)
                for key_group in (start, end - 1)
            )
            # Each bound is the first key group of a further subtask.
            bounds = [
                -(-subtask * groups // parallelism) for subtask in range(first + 1, last + 1)
            ]
            for subtask, (low, high) in enumerate(pairwise([start, *bounds, end]), first):
                per_subtask[subtask] += sum(sizes[low - start : high - start])
        in_use += len(used)
    heaviest, total = max(per_subtask.values(), default=0), per_subtask.total()
    return in_use, heaviest * parallelism / total if total else 1


class _Row(NamedTuple):
    """The cells of an operator's line, "-" where `_metadata` lacks the number."""

    cells: tuple[str, ...]
    is_hot: bool
    is_unread: bool


def _rows(
    operators: Sequence[Operator], loads: Mapping[str, KeyGroupLoad | None] = _NO_LOADS
) -> list[_Row]:
    """Return the lines of operators; those of one name have their ids too."""
    return [
        _row(operator, label, loads.get(operator.operator_id))
        for operator, label in zip(operators, labels_of(operators))
    ]


def _row(operator: Operator, label: str, load: KeyGroupLoad | None) -> _Row:
    """Return the line of an operator; `load` has the bytes of its key groups if they are known."""
    tasks = operator.tasks()
    known = None
    if load is not None:
        in_use = sum(weight > 0 for weight in load.weights)
        known = in_use, load.imbalance(operator.parallelism)
    elif tasks and all(task.format.has_offsets for task in tasks):
        with suppress(SavepointError):  # a missing file costs two cells of the line, not the table
            known = _key_groups_in_use(operator, tasks)
    shown = ("-", "-") if known is None else (f"{known[0]}", f"{known[1]:.2f}")
    numbers = (operator.parallelism, operator.max_parallelism)
    size = f"{bytes_of(operator):,}"
    cells = (short(label, LABEL), *map(str, numbers), size, *shown)
    return _Row(cells, known is not None and known[1] >= HOT, bool(tasks) and known is None)
