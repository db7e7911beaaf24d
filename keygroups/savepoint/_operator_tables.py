"""Tables of an operator's subtasks and states, as text and HTML."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from heapq import nlargest
from itertools import islice
from typing import Any

from keygroups._checks import exact_repr
from keygroups._serializers.base import exact_type
from keygroups._serializers.scalars import VOID_NAMESPACE
from keygroups._show.tables import Section, date_text, html_sections
from keygroups.errors import SavepointError, short
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint._state.writing.new_states import TIMER_STATES
from keygroups.savepoint.entries import KeySize, StateEntry, Subtask
from keygroups.skew import HOT

LABEL = 100  # characters of an operator's name in the table
MOST_SHOWN = 50  # operators, and subtasks of one, in a notebook
_LONGEST_VALUE = 1000  # characters of a value in a notebook
_STATE_HEADINGS = ("state", "kind", "key", "namespace", "user key", "value", "TTL")
_ENTRY_HEADINGS = (
    *("state", "key group", "subtask", "key", "namespace", "user key", "value"),
    *("last access", "timestamp"),
)
_SUBTASK_HEADINGS = ("subtask", "key groups", "bytes", "x mean", "finished")


class KeySizes(list[KeySize]):
    """The heaviest keys, a list; a notebook shows them as a table."""

    def _repr_html_(self) -> str:
        return html_sections([key_sizes_section(self)])


class States(tuple[StateDescriptor, ...]):
    """The keyed states of an operator, a tuple; a notebook shows them as a table."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return html_sections([states_section(self)])


class KeyContents(dict[str, Any]):
    """The contents of states for one key, a dict by state; a notebook shows it as a table."""

    def _repr_html_(self) -> str:
        rows = [
            (short(name, LABEL), short(contents_text(name, held), _LONGEST_VALUE))
            for name, held in self.items()
        ]
        return html_sections([Section([], ("state", "value"), rows, (1,), "States of the key")])


class Entries(Iterator[StateEntry]):
    """The entries of keyed state, an iterator; a notebook shows a table of the first few.

    `read` begins anew: the table takes no entry from the iterator. A loop has what `read` returned
    itself, so that an entry costs no call more.
    """

    def __init__(self, read: Callable[[], Generator[StateEntry, None, None]]) -> None:
        self._read = read
        self._entries = read()

    def __iter__(self) -> Iterator[StateEntry]:
        return self._entries

    def __next__(self) -> StateEntry:
        return next(self._entries)

    def close(self) -> None:
        """End the iteration, and close what it reads."""
        self._entries.close()

    def _repr_html_(self) -> str:
        texts, rows = [], list[tuple[str, ...]]()
        try:
            rows += map(_entry_row, islice(self._read(), MOST_SHOWN))
        except SavepointError as error:
            texts.append(str(error))
        left_columns = (0, *range(3, len(_ENTRY_HEADINGS)))
        caption = f"Entries, the first {MOST_SHOWN} at most"
        return html_sections([Section(texts, _ENTRY_HEADINGS, rows, left_columns, caption)])


def _entry_row(entry: StateEntry) -> tuple[str, ...]:
    values = (entry.key, entry.namespace, entry.user_key)
    texts = ("" if value is None else short(exact_repr(value), LABEL) for value in values)
    times = (entry.last_access, entry.timestamp)
    dates = ("" if time is None else date_text(time) for time in times)
    value = "" if entry.timestamp is not None else short(exact_repr(entry.value), _LONGEST_VALUE)
    place = f"{entry.key_group}", f"{entry.subtask}"
    return (short(entry.state, LABEL), *place, *texts, value, *dates)


def subtask_sections(subtasks: Sequence[Subtask], parallelism: int) -> Iterator[Section]:
    """Yield the table of the subtasks of an operator, if any wrote state."""
    mean = sum(subtask.bytes for subtask in subtasks) / parallelism
    written = nlargest(MOST_SHOWN, subtasks, key=lambda subtask: subtask.bytes)
    rows = [
        (
            str(subtask.subtask_index),
            "" if subtask.key_groups is None else str(subtask.key_groups),
            f"{subtask.bytes:,}",
            f"{subtask.bytes / mean if mean else 1:.2f}",
            "yes" if subtask.is_finished else "",
        )
        for subtask in written
    ]
    hot = {i: "hot" for i, subtask in enumerate(written) if subtask.bytes >= HOT * mean > 0}
    caption = f"Subtasks, with the headers in their files; hot: {HOT} times the mean and more"
    if len(rows) < len(subtasks):
        left_out = len(subtasks) - len(rows)
        caption += f"; the {len(rows)} with the most bytes, {left_out:,} others are left out"
    if rows:
        yield Section([], _SUBTASK_HEADINGS, rows, caption=caption, marks=hot)


def states_section(states: Sequence[StateDescriptor]) -> Section:
    """Return the table of keyed states with their types."""
    rows = [
        (
            short(state.name, LABEL),
            "timers" if state.value_serializer is None else state.kind,
            *(
                ""
                if serializer in (None, VOID_NAMESPACE)
                else short(exact_type(serializer), LABEL)
                for serializer in (
                    state.key_serializer,
                    state.namespace_serializer,
                    state.user_key_serializer,
                    state.value_serializer,
                )
            ),
            "yes" if state.has_ttl else "",
        )
        for state in states
    ]
    left_columns = range(len(_STATE_HEADINGS))
    return Section([], _STATE_HEADINGS, rows, left_columns, "Keyed states")


def contents_text(state: str, held: Any) -> str:
    """Return the text of what a state has for a key; a timer without a namespace has its date."""
    is_timer = state.startswith(TIMER_STATES) and isinstance(held, list)
    if is_timer and all(type(time) is int for time in held):
        return ", ".join(f"{time} ({date_text(time)})" for time in held)
    return exact_repr(held)


def key_sizes_section(sizes: Sequence[KeySize]) -> Section:
    """Return the table of the heaviest keys."""
    rows = [
        (
            short(exact_repr(size.key), LABEL),
            str(size.key_group),
            str(size.subtask),
            f"{size.entries:,}",
            f"{size.bytes:,}",
        )
        for size in sizes
    ]
    header = ("key", "key group", "subtask", "entries", "bytes")
    return Section([], header, rows, caption="The keys with the most bytes of keyed state")
