"""Verification of the keyed state that one subtask of an operator wrote, on any machine.

A window, its timers and the set of merging windows that names it are of one key, and so in one key
group. The entries of a key group are sorted by key and window, on disk if they are many: those of
a window then follow one another, and memory stays of a fixed size.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from keygroups._serializers.base import TRUNCATED, UnreadableError
from keygroups._values.rows import TimeWindow
from keygroups.errors import KeyGroupsError, SavepointError
from keygroups.hashing import finalise
from keygroups.key_group_range import KeyGroupRange
from keygroups.progress import Meter
from keygroups.savepoint._state.entries import EncodedEntry, StateEntry, not_an_entry
from keygroups.savepoint._state.formats.format import NotFramedError
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint._state.key_hashes import key_hasher
from keygroups.savepoint._state.layouts import layout_of
from keygroups.savepoint._state.timed_states import MERGING, Role, is_merging_set, roles_of
from keygroups.savepoint._state.writing.spill import sorted_entries
from keygroups.savepoint._tasks.read import ReadTask, ahead
from keygroups.savepoint._verification.faults import (
    CONTENTS_WITHOUT_WINDOW,
    DUPLICATE,
    FOREIGN_KEY_GROUP,
    TIMER_WITHOUT_WINDOW,
    UNREADABLE,
    WINDOW_WITHOUT_CONTENTS,
    WINDOW_WITHOUT_TIMER,
    StateFault,
    Tally,
)

_MOST_TRIES = 1 << 9  # spans of key groups verified one by one; each reads the files' index again
_head = struct.Struct(">I")  # size of a key in bytes
_window = struct.Struct(">qq")
_key_and_window = attrgetter("key")
_in_order = itemgetter(2, 1, 3)  # an EncodedEntry by key and window, number and rest


@dataclass(frozen=True)
class VerifyTask:
    """Verifies the entries that a task reads, of all states; it may be pickled."""

    read: ReadTask

    def run(self, meter: Meter | None = None) -> Tally:
        """Return a Tally of the faults; damaged state is a fault too, and no error.

        Damage is narrowed down by halves: with key group 5 of 0 to 7 damaged, 0 to 3 are verified,
        then 4 to 7 fails, 4 to 5 fails, and 4 and 6 to 7 are verified. After `_MOST_TRIES` spans a
        whole span counts as damaged. A meter counts the bytes of the first attempt.
        """
        try:
            return self._verified(self.read, meter)
        except SavepointError:
            tally = Tally()
        damaged: dict[str, list[int]] = {}  # error text to key groups
        groups, tries = self.read.key_groups, _MOST_TRIES
        spans = _halves(groups.ranges[0].start_key_group, groups.ranges[-1].end_key_group)
        while spans:
            first, last = spans.pop()
            span = groups.intersection(KeyGroupRange(first, last))
            tries -= 1
            try:
                tally.join(self._verified(replace(self.read, key_groups=span)))
            except SavepointError as error:
                if first == last or tries < 0:
                    damaged.setdefault(str(error), []).extend(span)
                else:
                    spans += _halves(first, last)
        for message, (key_group, *others) in damaged.items():
            more = f", and {len(others)} key groups more" if others else ""
            subtask = self.read.subtask
            tally.add(StateFault(UNREADABLE, message + more, None, subtask, key_group))
        return tally

    def _verified(self, read: ReadTask, meter: Meter | None = None) -> Tally:
        """Return the Tally of some key groups; raises SavepointError where they are damaged.

        A value that only the job reads may have no length in the file, so that the entries after
        it cannot be found: the last states are left out one by one until the others can be read.
        """
        states = {state.name: state for state in read.format.states()}
        hidden: list[str] = []
        why = ""
        while True:
            shown = replace(read, states=frozenset(states))
            try:
                tally = _Verifier(shown, [*states.values()]).run(meter)
                break
            except SavepointError as error:
                if not _is_hidden(error):
                    raise
                hidden.insert(0, states.popitem()[0])
                why = str(error)
        if hidden:
            tally.leave_out(f"states {', '.join(hidden)}: {why}")
        return tally


def _halves(first: int, last: int) -> list[tuple[int, int]]:
    """Return the second and the first half of a span of key groups; a single one stays whole."""
    middle = (first + last) // 2
    return [(middle + 1, last), (first, middle)] if first < last else [(first, last)]


class _Place(NamedTuple):
    """The key that is verified: its key group, and its bytes with their size before them."""

    key_group: int
    encoded: bytes

    @property
    def key(self) -> bytes:
        """The bytes of the key."""
        return self.encoded[_head.size :]


class _Verifier:
    """Verifies the states that a task reads."""

    def __init__(self, read: ReadTask, states: list[StateDescriptor]) -> None:
        self._read = read
        self._states = states
        self._tally = Tally()
        roles = roles_of(states)
        self._is_merging = any(map(is_merging_set, states))
        # Three more numbers of states: windows in a merging set, the windows that hold their
        # contents, and entries whose key only the job can tell.
        self._roles = [*roles, Role.MERGED, Role.HELD, Role.OTHER]
        self._placers = [
            _Placer(number, state, role, read, len(states))
            for number, (state, role) in enumerate(zip(states, roles))
        ]
        self._key_group_of = self._hasher()

    def run(self, meter: Meter | None) -> Tally:
        """Return the Tally of faults; raises SavepointError where state cannot be read."""
        numbers = {state.name: number for number, state in enumerate(self._states)}
        for task in ahead([self._read], meter=meter):
            entries = task.encoded_entries(numbers)
            for key_group, group in groupby(entries, attrgetter("key_group")):
                in_order = sorted_entries(self._placed(group), None, place=_in_order)
                for encoded, key_entries in groupby(in_order, _encoded_key):
                    self._check_key(_Place(key_group, encoded), key_entries)
        return self._tally

    def _placed(self, entries: Iterator[EncodedEntry]) -> Iterator[EncodedEntry]:
        for entry in entries:
            self._tally.entries += 1
            yield from self._placers[entry.state].placed(entry)

    def _hasher(self) -> Callable[[bytes], int] | None:
        """Return the function from a key's bytes to its key group, None without a known hash."""
        serializers = {state.key_serializer for state in self._states}
        for serializer in serializers:
            read_key, hasher = serializer.read, key_hasher(serializer)
            if read_key is None or hasher is None:
                self._tally.leave_out(
                    f"the key groups of keys, as the hash of {serializer} is not known here"
                )
                return None
            groups = self._read.max_parallelism
            return lambda encoded: finalise(hasher(read_key(encoded, 0)[0])) % groups
        return None

    def _check_key(self, place: _Place, entries: Iterator[EncodedEntry]) -> None:
        """Check all entries of a key, window by window."""
        if self._key_group_of is not None:
            self._check_key_group(place)
        needs_timer, has_timer = None, False
        for encoded, of_window in groupby(entries, _key_and_window):
            kinds: dict[Role, int] = {}
            last = None
            for entry in of_window:
                if entry == last:
                    self._add(DUPLICATE, place, encoded, entry.state)
                last = entry
                kinds.setdefault(self._roles[entry.state], entry.state)
            has_timer = has_timer or Role.ANY_TIMER in kinds
            needs_timer = kinds.get(Role.NEEDS_TIMER, needs_timer)
            for fault, state in self._faults(kinds):
                self._add(fault, place, encoded, state)
        if needs_timer is not None and not has_timer:
            why = "the key has no timer at all"
            self._add(WINDOW_WITHOUT_TIMER, place, place.encoded, needs_timer, why)

    def _faults(self, kinds: dict[Role, int]) -> Iterator[tuple[str, int]]:
        """Yield each kind of fault of a window, and the number of the state at fault.

        `kinds` are the roles of the window's entries, each with the number of a state.
        """
        windows = Role.MERGED if self._is_merging else Role.CONTENTS
        pairs = [
            (windows, Role.TIMER, WINDOW_WITHOUT_TIMER),
            (Role.TIMER, windows, TIMER_WITHOUT_WINDOW),
        ]
        if self._is_merging:
            pairs += [
                (Role.CONTENTS, Role.HELD, CONTENTS_WITHOUT_WINDOW),
                (Role.HELD, Role.CONTENTS, WINDOW_WITHOUT_CONTENTS),
            ]
        for present, other, fault in pairs:
            if present in kinds and other not in kinds:
                yield fault, kinds[present]

    def _check_key_group(self, place: _Place) -> None:
        assert self._key_group_of is not None
        try:
            own = self._key_group_of(place.key)
        except KeyGroupsError as error:  # the key is null, or exceeds its type's precision
            self._add(FOREIGN_KEY_GROUP, place, place.encoded, None, f"no key: {error}")
        else:
            if own != place.key_group:
                why = f"its own is key group {own}"
                self._add(FOREIGN_KEY_GROUP, place, place.encoded, None, why)

    def _add(
        self, kind: str, place: _Place, encoded: bytes, state: int | None, message: str = ""
    ) -> None:
        names = [*(state.name for state in self._states), MERGING, MERGING, None]
        name = None if state is None else names[state]
        window = encoded[len(place.encoded) :]
        namespace = TimeWindow(*_window.unpack(window)) if window else None
        self._tally.add(
            StateFault(
                kind,
                message,
                name,
                self._read.subtask,
                place.key_group,
                self._shown(place.key),
                namespace,
            )
        )

    def _shown(self, encoded: bytes) -> Any:
        """Return a key, or its bytes if they are not those of a key."""
        read_key = self._states[0].key_serializer.read
        if read_key is None:
            return encoded
        try:
            return read_key(encoded, 0)[0]
        except (*TRUNCATED, ValueError):
            return encoded


class _Placer:
    """Gives the entries of a state their place in the order of keys and windows.

    `count` is the number of states, and the first of three more numbers: windows in a merging set,
    the windows that hold their contents, and entries whose key only the job can tell. The place of
    key "k" and window 0..5 ms is 00000001 6b, and 8 bytes each of 0 and 5.
    """

    def __init__(
        self, number: int, state: StateDescriptor, role: Role, read: ReadTask, count: int
    ) -> None:
        self._number = number
        self._state = state
        self._has_window = role in (Role.CONTENTS, Role.TIMER)
        self._merged = (count, count + 1) if is_merging_set(state) else ()
        self._unknown = count + 2
        self._name = f"{read.files.base}, {state}"
        layout = layout_of(state)
        self._start = layout.before_key
        self._decode = layout.decoding(read.subtask).framed

    def placed(self, entry: EncodedEntry) -> Iterator[EncodedEntry]:
        """Yield an entry under its key and window, and one for each window in a merging set."""
        key_group, data = entry.key_group, entry.key
        try:
            decoded = self._decode(key_group, data, entry.value)
            key = self._key_bytes(data, decoded)
        except (*TRUNCATED, ValueError) as error:
            raise not_an_entry(self._name, data, error) from None
        if key is None:
            rest = _head.pack(self._number) + data
            yield EncodedEntry(key_group, self._unknown, _head.pack(len(data)) + data, rest)
            return
        place = _head.pack(len(key)) + key
        window = decoded.namespace if self._has_window else None
        encoded = place + _window.pack(*window) if isinstance(window, TimeWindow) else place
        yield EncodedEntry(key_group, self._number, encoded, data)
        if self._merged and isinstance(decoded.value, list):
            for pair in decoded.value:
                for number, merged in zip(self._merged, pair):
                    yield EncodedEntry(key_group, number, place + _window.pack(*merged), b"")

    def _key_bytes(self, data: bytes, decoded: StateEntry) -> bytes | None:
        """Return the bytes of the key, None if only the job can tell where they end."""
        read = self._state.key_serializer.read
        if read is not None:
            with suppress(UnreadableError):
                _, end = read(data, self._start)
                return data[self._start : end]
        return decoded.key if isinstance(decoded.key, bytes) else None


def _is_hidden(error: SavepointError) -> bool:
    """Tell whether the error is about a value whose end only the job knows, and not damage."""
    return isinstance(error, NotFramedError) or isinstance(error.__context__, UnreadableError)


def _encoded_key(entry: EncodedEntry) -> bytes:
    (size,) = _head.unpack_from(entry.key)
    return entry.key[: _head.size + size]
