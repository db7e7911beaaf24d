"""The kinds of faults that state may have, and how many of each there are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from keygroups._checks import record_repr, show
from keygroups.errors import printable, short

EXAMPLES = 5  # faults of a kind that a report names
_MOST_LEFT_OUT = 50  # notes of an operator
_LONGEST = 100  # characters of a key in a line

FILE = "file"
UNREADABLE = "unreadable"
FOREIGN_KEY_GROUP = "foreign_key_group"
DUPLICATE = "duplicate"
WINDOW_WITHOUT_TIMER = "window_without_timer"
CONTENTS_WITHOUT_WINDOW = "contents_without_window"
TIMER_WITHOUT_WINDOW = "timer_without_window"
WINDOW_WITHOUT_CONTENTS = "window_without_contents"

_KINDS = {
    FILE: "files that are not there as _metadata says",
    UNREADABLE: "places that cannot be read",
    FOREIGN_KEY_GROUP: "keys in a key group that is not their own, where Flink loses them",
    DUPLICATE: "entries that are there twice",
    WINDOW_WITHOUT_TIMER: "windows without a timer, which nothing fires or clears",
    CONTENTS_WITHOUT_WINDOW: "contents of merging windows of which the set has none",
    TIMER_WITHOUT_WINDOW: "timers of windows without contents",
    WINDOW_WITHOUT_CONTENTS: "merging windows without contents",
}
HARMLESS = frozenset((TIMER_WITHOUT_WINDOW, WINDOW_WITHOUT_CONTENTS))
"""Kinds that are no faults: a trigger that purges leaves such windows until they are cleared."""


class StateFault(NamedTuple):
    """A fault of one place; a field that does not apply is None.

    `kind` is that of `FaultCount`, `message` says more of it than the other fields, "" if nothing.
    `key` and `namespace` are those of `StateEntry`.
    """

    kind: str
    message: str
    state: str | None = None
    subtask: int | None = None
    key_group: int | None = None
    key: Any = None
    namespace: Any = None

    def __repr__(self) -> str:
        return record_repr(self)

    def __str__(self) -> str:
        places = {
            "state": self.state and printable(self.state),
            "key": None if self.key is None else short(show(self.key), _LONGEST),
            "window": None if self.namespace is None else short(show(self.namespace), _LONGEST),
            "key group": self.key_group,
            "subtask": self.subtask,
        }
        texts = [f"{name} {value}" for name, value in places.items() if value is not None]
        return ": ".join(filter(None, (", ".join(texts), printable(self.message))))


@dataclass(frozen=True)
class FaultCount:
    """The count of the faults of a kind, and the first few of them.

    `kind` is "file" for one that is not there, or not of its size; "unreadable" for a key group,
    or operator state, that is damaged or not read here; "foreign_key_group" for a key that is not
    in the key group of its hash; "duplicate"; "window_without_timer"; "contents_without_window"
    for contents that the set of merging windows does not name. Two more are no faults, as a
    trigger that purges leaves them: "timer_without_window" and "window_without_contents".
    """

    kind: str
    count: int
    examples: tuple[StateFault, ...]

    @property
    def is_fault(self) -> bool:
        """Whether it is a fault, and not a kind that a sound job may leave."""
        return self.kind not in HARMLESS

    @property
    def text(self) -> str:
        """The count and the kind in words."""
        return f"{self.count:,} {_KINDS[self.kind]}"

    def __repr__(self) -> str:
        return record_repr(self)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield self.text
        for example in self.examples:
            yield f"  {example}"
        if len(self.examples) < self.count:
            yield f"  and {self.count - len(self.examples):,} more"


class Tally:
    """Counts faults and entries; it may be pickled."""

    def __init__(self) -> None:
        self.entries = 0
        self._left_out: dict[str, None] = {}
        self._counts: dict[str, int] = {}
        self._examples: dict[str, list[StateFault]] = {}

    def add(self, fault: StateFault) -> None:
        """Count a fault."""
        self._counts[fault.kind] = self._counts.get(fault.kind, 0) + 1
        examples = self._examples.setdefault(fault.kind, [])
        if len(examples) < EXAMPLES:
            examples.append(fault)

    def leave_out(self, text: str) -> None:
        """Note, once, a text on state that cannot be verified."""
        if len(self._left_out) < _MOST_LEFT_OUT:
            self._left_out[text] = None

    def join(self, other: Tally) -> None:
        """Add the counts and notes of another tally."""
        self.entries += other.entries
        for text in other.unverified:
            self.leave_out(text)
        for kind, count in other._counts.items():
            self._counts[kind] = self._counts.get(kind, 0) + count
            examples = self._examples.setdefault(kind, [])
            examples += other._examples[kind][: EXAMPLES - len(examples)]

    @property
    def unverified(self) -> tuple[str, ...]:
        """Texts on state that cannot be verified."""
        return tuple(self._left_out)

    @property
    def counts(self) -> tuple[FaultCount, ...]:
        """The FaultCount of each kind that occurs, in the order of the kinds."""
        return tuple(
            FaultCount(kind, self._counts[kind], tuple(self._examples[kind]))
            for kind in _KINDS
            if kind in self._counts
        )
