"""The step of `map_timers`; it may be pickled.

The bytes of a timer are all key: the timestamp (8 bytes, big endian, sign bit flipped so that they
sort by time), the key and the namespace. Its value is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from keygroups._checks import LONG_MAX, LONG_MIN, check_int, show
from keygroups._serializers.base import checked_write
from keygroups._serializers.scalars import SORTED_LONG
from keygroups.assignment import compute_key_group_for_key_hash
from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    UnsupportedKeyTypeError,
)
from keygroups.hashing import hash_code
from keygroups.savepoint._edits.steps import (
    DELETE,
    Calls,
    StepContext,
    entries_of,
    is_same,
    named_entry,
)
from keygroups.savepoint._state.entries import EncodedEntry, StateEntry
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint._state.keys import identity
from keygroups.savepoint._state.layouts import TimerLayout

TimerFunction = Callable[[StateEntry], Any]

_KEPT = ("state", "namespace", "user_key", "value", "last_access")  # fields that must not change


class TimerMapping(Calls):
    """Decodes each timer of a state, and replaces it by the function's result."""

    def __init__(
        self, function: TimerFunction, state: StateDescriptor, place: StepContext
    ) -> None:
        super().__init__("map_timers", function, state, place)
        self._key = state.key_serializer

    def __call__(self, encoded: EncodedEntry) -> Iterable[EncodedEntry] | None:
        entry, result = self._call(encoded)
        if result is DELETE:
            return ()
        if isinstance(result, int):
            result = entry._replace(timestamp=result)
        timers = entries_of(result)
        if timers is None:
            raise InvalidTypeError(
                f"{named_entry(entry)}: a timer becomes a timestamp, DELETE or timers, got "
                f"{show(result)}"
            )
        return self._timers(timers, entry, encoded)

    def _timers(
        self, timers: Iterator[Any], entry: StateEntry, encoded: EncodedEntry
    ) -> Iterator[EncodedEntry]:
        for new in self._each(timers, entry):
            try:
                yield self._encoded(new, entry, encoded)
            except KeyGroupsError as error:
                raise type(error)(f"{named_entry(entry)}: {error}") from None

    def _encoded(self, new: Any, entry: StateEntry, encoded: EncodedEntry) -> EncodedEntry:
        """Return the bytes of a timer that the function returned for `entry`."""
        if not isinstance(new, StateEntry):
            raise InvalidTypeError(f"timers must each be a StateEntry, got {show(new)}")
        for name in _KEPT:
            if getattr(new, name) != getattr(entry, name):
                raise InvalidValueError(
                    f"{name} of a timer must stay {show(getattr(entry, name))}, got "
                    f"{show(getattr(new, name))}"
                )
        time = check_int("timestamp", new.timestamp, LONG_MIN, LONG_MAX)
        key_group, behind = entry.key_group, encoded.key[TimerLayout.before_key :]
        # The function may have changed the old key in place: a fresh copy is compared.
        if not is_same(new.key, entry.key) and identity(new.key) != identity(
            self._decoded(encoded).key
        ):
            key_group, behind = self._moved(new.key, entry, behind)
        return EncodedEntry(key_group, encoded.state, SORTED_LONG.write(time) + behind, b"")

    def _moved(self, new_key: Any, entry: StateEntry, behind: bytes) -> tuple[int, bytes]:
        """Return the key group of a new key, and its bytes followed by the namespace's."""
        serializer = self._key
        if serializer.key_type is None or entry.namespace is not None:
            raise UnsupportedKeyTypeError(
                f"the key must stay, as only the job knows the keys of {self._state}"
                if serializer.key_type is None
                else "the key of a window's timer must stay, as that of the window does"
            )
        code = hash_code(new_key, serializer.key_type)
        key_group = compute_key_group_for_key_hash(code, self._place.max_parallelism)
        assert serializer.read is not None  # A key with a hash is read here.
        # Java may have written the old key in other bytes than these, as a BigInteger of 0.
        _, end = serializer.read(behind, 0)
        return key_group, checked_write("key", serializer, new_key, is_key=True) + behind[end:]
