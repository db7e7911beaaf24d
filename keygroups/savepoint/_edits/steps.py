"""What is done to the entries of a state, one after the other; it may be pickled."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, NamedTuple

from keygroups._checks import show, to_int
from keygroups._serializers.base import TRUNCATED, Serializer, UnreadableError
from keygroups._serializers.scalars import VOID_NAMESPACE
from keygroups._values.rows import TimeWindow, TtlValue
from keygroups.assignment import compute_key_group_for_key_hash
from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    SavepointError,
    UnsupportedKeyTypeError,
)
from keygroups.hashing import hash_code
from keygroups.savepoint._state.entries import StateEntry
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint._state.keys import ONE_FORM, SoughtKeys, identity, key_finder
from keygroups.savepoint._state.layouts import layout_of
from keygroups.savepoint._state.values import check_time, stored_value
from keygroups.state_keys import (
    ChangeKey,
    composite_key_changer,
    timer_key_changer,
)

Framed = tuple[int, bytes, bytes]
"""A key group, the bytes of an entry's key and those of its value, as `FramedEntry` has them."""
Apply = Callable[[int, bytes, bytes], "Iterable[Framed] | None"]
"""From an entry to the entries that it becomes, or to None if it stays as it is."""

_UNCHANGEABLE = frozenset((bool, int, float, str, bytes, type(None)))


class _Sentinel(Enum):
    DELETE = "DELETE"

    def __repr__(self) -> str:
        return self.name


DELETE: Final = _Sentinel.DELETE
"""What a function of `map_entries` or `map_keys` returns for what is to go."""


class FunctionError(KeyGroupsError):
    """Carries an `error` of the user's function to where no file is open, unchanged."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


def noted(error: Exception, note: str) -> FunctionError:
    """Return what carries an error of a function, with a note that Python 3.11 and later show."""
    error.__notes__ = [*getattr(error, "__notes__", ()), note]
    return FunctionError(error)


class Place(NamedTuple):
    """Where a step is at work: the folder for errors, and the subtask.

    `deleted` are the keys that were met of those to be deleted, as bytes.
    """

    base: str
    subtask: int
    max_parallelism: int
    deleted: set[bytes]

    def damaged(self, state: StateDescriptor, key_group: int, error: object) -> SavepointError:
        """Return the error for bytes that are no entry of a state."""
        return SavepointError(
            f"{self.base}: of {state} in key group {key_group}: no entry: {error}"
        )


class Step(ABC):
    """What a verb does to the entries of a state."""

    @abstractmethod
    def bind(self, state: StateDescriptor, place: Place) -> Apply:
        """Return what does it to the entries of a state as it is before that step."""


def applied(steps: Iterable[tuple[StateDescriptor, Step]], place: Place) -> Apply | None:
    """Return what does all of some steps in order, None if there are none."""
    whole: Apply | None = None
    for state, step in steps:
        apply = step.bind(state, place)
        whole = apply if whole is None else _composed(whole, apply)
    return whole


def _composed(first: Apply, second: Apply) -> Apply:
    def apply(key_group: int, key: bytes, value: bytes) -> Iterable[Framed] | None:
        entries = first(key_group, key, value)
        if entries is None:
            return second(key_group, key, value)
        return _all_of(entries, second)

    return apply


def _all_of(entries: Iterable[Framed], apply: Apply) -> Iterator[Framed]:
    for entry in entries:
        following = apply(*entry)
        if following is None:
            yield entry
        else:
            yield from following


# --- delete_keys ------------------------------------------------------------------------------


@dataclass(frozen=True)
class DeleteKeys(Step):
    """Deletes keys; `keys` are those of a key group, or of None if their hash is not known."""

    keys: dict[int | None, SoughtKeys]

    def add(self, key_group: int | None, key: bytes | str) -> bytes:
        """Add a key as `sought_key` has it; return the bytes that stand for it."""
        sought = self.keys.setdefault(key_group, SoughtKeys(set(), {}))
        if isinstance(key, bytes):
            sought.encoded.add(key)
            return key
        token = b"value " + key.encode("utf-8", "surrogatepass")
        return sought.values.setdefault(key, token)

    def bind(self, state: StateDescriptor, place: Place) -> Apply:
        """Return what keeps all other keys; it decodes keys in their key groups only."""
        read, deleted = key_finder(state), place.deleted
        by_key_group, anywhere = self.keys, self.keys.get(None)

        def apply(key_group: int, key: bytes, value: bytes) -> Iterable[Framed] | None:
            doomed = by_key_group.get(key_group, anywhere)
            if doomed is None:
                return None
            try:
                written = read(key, doomed)
            except UnreadableError as error:
                raise SavepointError(
                    f"{place.base}: keys of {state} cannot be deleted: {error}"
                ) from None
            except (*TRUNCATED, ValueError) as error:
                raise place.damaged(state, key_group, error) from None
            if written is None:
                return None
            deleted.add(written)
            return ()

        return apply


# --- map_keys ---------------------------------------------------------------------------------

KeyFunction = Callable[[Any], Any]


@dataclass(frozen=True)
class MapKeys(Step):
    """Calls a function with each key, which says what that becomes: a value of `new_key`."""

    function: KeyFunction
    new_key: Serializer

    def bind(self, state: StateDescriptor, place: Place) -> Apply:
        """Return what calls the function."""
        return _KeyMapping(self, state, place)


def key_changer(state: StateDescriptor, new_key: Serializer) -> ChangeKey:
    """Return what puts keys of another type into the keys of entries, behind what precedes them.

    Raises what `composite_key_changer` raises.
    """
    namespace = state.namespace_serializer
    if layout_of(state).before_key:
        return timer_key_changer(namespace)
    return composite_key_changer(state.key_serializer, new_key, namespace)


class _KeyMapping:
    """Gives the entries of a state other keys; it asks once for keys that follow one another."""

    def __init__(self, step: MapKeys, state: StateDescriptor, place: Place) -> None:
        key, new_key = state.key_serializer, step.new_key
        assert key.read is not None  # as the verb has checked
        self._function = step.function
        self._state = state
        self._place = place
        self._start = layout_of(state).before_key
        self._change = key_changer(state, new_key)
        self._read, self._write = key.read, new_key.write_key or new_key.write
        self._new_type, self._key_type = new_key, new_key.key_type
        self._has_old_type = key == new_key
        self._key: bytes | None = None  # the last one, and what it became
        self._new: tuple[int, bytes] | _Sentinel | None = None

    def __call__(self, key_group: int, key: bytes, value: bytes) -> Iterable[Framed] | None:
        start = self._start
        try:
            decoded, end = self._read(key, start)
        except UnreadableError as error:
            raise self._unreadable(key, error) from None
        except (*TRUNCATED, ValueError) as error:
            raise self._place.damaged(self._state, key_group, error) from None
        encoded = key[start:end]
        if encoded != self._key:
            self._new, self._key = self._new_key(decoded, encoded), encoded
        new = self._new
        if new is None:
            return None
        if isinstance(new, _Sentinel):
            return ()
        new_key_group, new_key = new
        try:
            changed = key[:start] + self._change(key[start:], end - start, new_key)
        except UnreadableError as error:
            raise self._unreadable(key, error) from None
        except (*TRUNCATED, ValueError) as error:
            raise self._place.damaged(self._state, key_group, error) from None
        return ((new_key_group, changed, value),)

    def _new_key(self, key: Any, encoded: bytes) -> tuple[int, bytes] | _Sentinel | None:
        """Return key group and bytes of what a key becomes, DELETE, or None if it stays."""
        named = f"key {show(key)} in state {self._state.name!r}"
        try:
            result = self._function(key)
        except Exception as error:
            raise noted(error, f"map_keys: {named}") from None
        if isinstance(result, _Sentinel):
            return result
        try:
            new = self._encoded(result)
        except KeyGroupsError as error:
            if self._has_old_type and identity(result) == identity(self._read(encoded, 0)[0]):
                return None
            raise type(error)(f"{named}: {error}") from None
        if self._has_old_type:
            if new[1] == encoded:
                return None
            # Java may have written an equal key in other bytes, or the function has changed it.
            with suppress(KeyGroupsError):
                if self._encoded(self._read(encoded, 0)[0]) == new:
                    return None
        return new

    def _encoded(self, key: Any) -> tuple[int, bytes]:
        """Return the key group of a new key, and its bytes."""
        if self._key_type is None or self._write is None:
            raise UnsupportedKeyTypeError(
                f"keys cannot become others of {self._new_type}: only the job can write them"
            )
        code = hash_code(key, self._key_type)  # which checks the key too
        return compute_key_group_for_key_hash(code, self._place.max_parallelism), self._write(key)

    def _unreadable(self, key: bytes, error: UnreadableError) -> UnsupportedKeyTypeError:
        return UnsupportedKeyTypeError(
            f"key {show(key[self._start :])} in state {self._state.name!r} cannot be mapped, as "
            f"only the job can read it: {error}"
        )


# --- set_ttl ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class SetTtl(Step):
    """Gives values the time of a last access, or takes it away if that is None."""

    last_access: int | None

    def bind(self, state: StateDescriptor, place: Place) -> Apply:
        """Return an Apply that changes the bytes before each value."""
        decode = layout_of(state).decoding(place.subtask).framed
        change = stored_value(state).retimed(self.last_access)

        def apply(key_group: int, key: bytes, value: bytes) -> Iterable[Framed] | None:
            try:
                return ((key_group, key, change(value)),)
            except InvalidValueError as error:
                raise _of_entry(decode(key_group, key, value), error) from None
            except (*TRUNCATED, ValueError) as error:
                raise place.damaged(state, key_group, error) from None

        return apply


# --- map_entries ------------------------------------------------------------------------------

MapFunction = Callable[[StateEntry], Any]


@dataclass(frozen=True)
class MapEntries(Step):
    """Calls a function with each entry, which says what comes in its place."""

    function: MapFunction
    allow_any_last_access: bool

    def bind(self, state: StateDescriptor, place: Place) -> Apply:
        """Return what calls the function."""
        return _Mapping(self, state, place)


class Calls:
    """Calls the function of a verb with the entries of a state."""

    def __init__(
        self,
        verb: str,
        function: Callable[[StateEntry], Any],
        state: StateDescriptor,
        place: Place,
    ) -> None:
        self._verb = verb
        self._function = function
        self._state = state
        self._place = place
        self._decode = layout_of(state).decoding(place.subtask).framed

    def _call(self, key_group: int, key: bytes, value: bytes) -> tuple[StateEntry, Any]:
        """Return an entry, and what the function returns for it."""
        try:
            entry = self._decode(key_group, key, value)
        except (*TRUNCATED, ValueError) as error:
            raise self._place.damaged(self._state, key_group, error) from None
        try:
            return entry, self._function(entry)
        except Exception as error:
            raise noted(error, f"{self._verb}: {named_entry(entry)}") from None

    def _each(self, entries: Iterator[Any], entry: StateEntry) -> Iterator[Any]:
        """Yield the entries that the function returned for one, which may be its own iterator."""
        while True:
            try:
                new = next(entries)
            except StopIteration:
                return
            except Exception as error:
                raise noted(error, f"{self._verb}: {named_entry(entry)}") from None
            yield new


class _Mapping(Calls):
    """Calls a function with each entry of a state."""

    def __init__(self, step: MapEntries, state: StateDescriptor, place: Place) -> None:
        super().__init__("map_entries", step.function, state, place)
        self._checks_times = state.has_ttl and not step.allow_any_last_access
        self._write_value = stored_value(state).writer(allow_any_last_access=True)
        self._encode = layout_of(state).encoder(allow_any_last_access=True)
        serializer = state.value_serializer
        self._has_one_form = (
            serializer is not None and serializer.name in ONE_FORM
        )  # nobody changes such values in place
        key = state.key_serializer
        self._key_type, self._write_key = key.key_type, key.write_key or key.write

    def __call__(self, key_group: int, key: bytes, value: bytes) -> Iterable[Framed] | None:
        entry, result = self._call(key_group, key, value)
        if result is DELETE:
            return ()
        if _is_same(result, entry.value):
            return None
        if type(result) not in _UNCHANGEABLE:  # which are values, as most are
            entries = entries_of(result)
            if entries is not None:
                return (self._framed(new, entry, key, value) for new in self._each(entries, entry))
        changed = self._value_of(result, entry.last_access, entry, entry, key, value)
        return None if changed is value else ((key_group, key, changed),)

    def _framed(self, new: Any, entry: StateEntry, key: bytes, value: bytes) -> Framed:
        """Return an entry that the function returned for another."""
        if not isinstance(new, StateEntry):
            raise InvalidTypeError(
                f"{named_entry(entry)}: entries must each be a StateEntry, got {show(new)}"
            )
        if new.state != entry.state:
            raise InvalidValueError(
                f"{named_entry(entry)}: an entry must stay in its state, got one of "
                f"{show(new.state)}"
            )
        if all(map(_is_same, _key_parts(new), _key_parts(entry))):
            new_value = self._value_of(new.value, new.last_access, new, entry, key, value)
            return entry.key_group, key, new_value
        return self._moved(new, entry, key, value)

    def _moved(self, new: StateEntry, entry: StateEntry, key: bytes, value: bytes) -> Framed:
        """Return an entry whose key, user key or namespace may be another."""
        if self._write_key is None or self._key_type is None:
            before = self._decode(entry.key_group, key, value)  # which nobody can have changed
            if identity(_key_parts(new)) == identity(_key_parts(before)):
                same = self._value_of(new.value, new.last_access, new, entry, key, value)
                return entry.key_group, key, same
            raise UnsupportedKeyTypeError(
                f"{named_entry(entry)}: key, namespace and user key must stay, as only the job "
                f"knows the keys of {self._state}"
            )
        key_group, new_key = self._key_of(new)
        if self._state.namespace_serializer != VOID_NAMESPACE:
            stays = new._replace(user_key=entry.user_key)
            if self._key_of(stays) != self._key_of(entry):
                raise InvalidValueError(
                    f"{named_entry(entry)}: an entry of a window must keep key and namespace, as "
                    f"the timers that close it do, got {named_entry(new)}"
                )
        new_value = self._value_of(new.value, new.last_access, new, entry, key, value)
        if new_key != key:
            # The key may have been written in other bytes that mean the same.
            with suppress(KeyGroupsError):
                if self._key_of(self._decode(entry.key_group, key, value)) == (
                    entry.key_group,
                    new_key,
                ):
                    return entry.key_group, key, new_value
        return key_group, new_key, new_value

    def _key_of(self, entry: StateEntry) -> tuple[int, bytes]:
        """Return the key group of an entry, and the bytes of its key."""
        assert self._write_key is not None
        try:
            code = hash_code(entry.key, self._key_type)  # which checks the key too
            key_group = compute_key_group_for_key_hash(code, self._place.max_parallelism)
            encoded, _ = self._encode(
                self._write_key(entry.key),
                entry.namespace,
                entry.user_key,
                entry.value,
                entry.last_access,
                None,
            )
        except KeyGroupsError as error:
            raise _of_entry(entry, error) from None
        return key_group, encoded

    def _value_of(
        self,
        new: Any,
        last_access: int | None,
        entry: StateEntry,
        old: StateEntry,
        key: bytes,
        value: bytes,
    ) -> bytes:
        """Return the bytes of a new value, the very object that was there if it is the same.

        `entry` is the one that gets it, for errors.
        """
        if last_access == old.last_access and _is_same(new, old.value):
            return value
        try:
            if self._checks_times:
                for time in _times(new, last_access) - _times(old.value, old.last_access):
                    check_time(time)
            encoded = self._write_value(new, last_access)
        except KeyGroupsError as error:
            before = self._decode(old.key_group, key, value)
            # What nobody here writes may be what was there, which is read once more.
            if (last_access, identity(new)) == (before.last_access, identity(before.value)):
                return value
            raise _of_entry(entry, error) from None
        if encoded == value:
            return value
        if not self._has_one_form:
            # The function may have changed the value in place, so it is read once more.
            with suppress(KeyGroupsError):
                before = self._decode(old.key_group, key, value)
                if self._write_value(before.value, before.last_access) == encoded:
                    return value
        return encoded


def entries_of(result: Any) -> Iterator[Any] | None:
    """Return the entries that a function returned, None where that is a value."""
    if isinstance(result, StateEntry):
        return iter((result,))
    if isinstance(result, list):
        is_value = not any(isinstance(item, StateEntry) for item in result)
        return None if is_value else iter(result)
    return result if isinstance(result, Iterator) else None


def _key_parts(entry: StateEntry) -> tuple[Any, Any, Any]:
    return entry.key, entry.namespace, entry.user_key


def _times(value: Any, last_access: int | None) -> set[int]:
    """Return the times of last access of a value; what is no int is refused elsewhere."""
    times = [last_access]
    if isinstance(value, list):
        times += [item.last_access for item in value if isinstance(item, TtlValue)]
    known = set()
    for last_access in times:
        with suppress(InvalidTypeError):
            known.add(to_int("last_access", last_access))
    return known


def _is_same(new: Any, old: Any) -> bool:
    """Tell whether something is what was there, and nobody can have changed it in place."""
    return new is old and _is_unchangeable(old)


def _is_unchangeable(value: Any) -> bool:
    return type(value) in _UNCHANGEABLE or (
        type(value) in (tuple, TimeWindow) and all(map(_is_unchangeable, value))
    )


def named_entry(entry: StateEntry) -> str:
    """Return the name of an entry for errors: its key and its state."""
    text = f"key {show(entry.key_bytes if entry.key is None else entry.key)}"
    for name, value in (("user key", entry.user_key), ("namespace", entry.namespace)):
        if value is not None:
            text += f", {name} {show(value)}"
    return f"{text} in state {entry.state!r}"


def _of_entry(entry: StateEntry, error: KeyGroupsError) -> KeyGroupsError:
    """Return an error with the name of the entry in front."""
    return type(error)(f"{named_entry(entry)}: {error}")
