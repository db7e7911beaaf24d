"""Tables of an operator's subtasks and states, as text and HTML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import nlargest

from keygroups._serializers.base import exact_type
from keygroups._serializers.scalars import VOID_NAMESPACE
from keygroups._show.tables import Section
from keygroups.errors import short
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint.entries import Subtask
from keygroups.skew import HOT

LABEL = 100  # characters of an operator's name in the table
MOST_SHOWN = 50  # operators, and subtasks of one, in a notebook
_STATE_HEADINGS = ("state", "kind", "key", "namespace", "user key", "value", "TTL")
_SUBTASK_HEADINGS = ("subtask", "key groups", "bytes", "x mean", "finished")


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
