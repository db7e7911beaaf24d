"""The steps of the verbs: each may be pickled, and makes in its subtask an Apply for a state.

A step is a class of this package with the arguments of the verb, joined by `partial`, or a
DeleteKeys or SetTtl. An Apply returns None for an entry that stays as it is, () for one that is
deleted, and otherwise the entries that take its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

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
from keygroups.savepoint._state.entries import EncodedEntry, StateEntry
from keygroups.savepoint._state.header import StateDescriptor
from keygroups.savepoint._state.key_hashes import key_hasher
from keygroups.savepoint._state.keys import ONE_FORM, SoughtKeys, identity, key_finder
from keygroups.savepoint._state.layouts import layout_of
from keygroups.savepoint._state.stored_values import check_time, stored_value
from keygroups.state_keys import (
    ChangeKey,
    composite_key_changer,
    timer_key_changer,
)

if TYPE_CHECKING:
    pass

Apply = Callable[[EncodedEntry], "Iterable[EncodedEntry] | None"]
"""A function from an entry to the entries it becomes; None: it stays as it is."""
Step = Callable[[StateDescriptor, "StepContext"], Apply]
"""The work of one verb on a state, which is as the steps before leave it."""

_UNCHANGEABLE = frozenset((bool, int, float, str, bytes, type(None)))


class _Sentinel(Enum):
    DELETE = "DELETE"

    def __repr__(self) -> str:
        return self.name


DELETE: Final = _Sentinel.DELETE
"""A function of `map_entries`, `map_keys` or `map_timers` returns this to delete its argument."""


class FunctionError(KeyGroupsError):
    """Carries an `error` of the user's function to where no file is open, unchanged."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


def noted(error: Exception, note: str) -> FunctionError:
    """Return a FunctionError around a user's error, whose note Python 3.11 and later print."""
    error.__notes__ = [*getattr(error, "__notes__", ()), note]
    return FunctionError(error)


class StepContext(NamedTuple):
    """The subtask a step runs in, and `base`, the savepoint's folder for error texts.

    DeleteKeys adds the bytes of each key it deletes to `deleted`.
    """

    base: str
    subtask: int
    max_parallelism: int
    deleted: set[bytes]

    def damaged(
        self, state: StateDescriptor, entry: EncodedEntry, error: object
    ) -> SavepointError:
        """Return the error for bytes that are no entry of a state."""
        return SavepointError(
            f"{self.base}: of {state} in key group {entry.key_group}: no entry: {error}"
        )


def applied(steps: Iterable[tuple[StateDescriptor, Step]], place: StepContext) -> Apply | None:
    """Return one Apply that runs the steps in order, None without steps."""
    whole: Apply | None = None
    for state, step in steps:
        apply = step(state, place)
        whole = apply if whole is None else _composed(whole, apply)
    return whole


def _composed(first: Apply, second: Apply) -> Apply:
    def apply(entry: EncodedEntry) -> Iterable[EncodedEntry] | None:
        entries = first(entry)
        return second(entry) if entries is None else _all_of(entries, second)

    return apply


def _all_of(entries: Iterable[EncodedEntry], apply: Apply) -> Iterator[EncodedEntry]:
    for entry in entries:
        following = apply(entry)
        if following is None:
            yield entry
        else:
            yield from following


# --- delete_keys ------------------------------------------------------------------------------


@dataclass(frozen=True)
class DeleteKeys:
    """Deletes keys; `keys` are by key group, or all under None if their hash is not known."""

    keys: dict[int | None, SoughtKeys]

    def add(self, key_group: int | None, key: bytes | str) -> bytes:
        """Add a key in the form of `sought_key`; return the bytes that `deleted` gets."""
        return self.keys.setdefault(key_group, SoughtKeys(set(), {})).add(key)

    @property
    def tokens(self) -> set[bytes]:
        """The bytes that `add` has returned."""
        found = self.keys.values()
        return {token for keys in found for token in (*keys.encoded, *keys.values.values())}

    def __call__(self, state: StateDescriptor, place: StepContext) -> Apply:
        """Return the Apply that deletes them; other key groups' entries are not decoded."""
        read, deleted = key_finder(state), place.deleted
        by_key_group, anywhere = self.keys, self.keys.get(None)

        def apply(entry: EncodedEntry) -> Iterable[EncodedEntry] | None:
            doomed = by_key_group.get(entry.key_group, anywhere)
            if doomed is None:
                return None
            try:
                written = read(entry.key, doomed)
            except UnreadableError as error:
                raise SavepointError(
                    f"{place.base}: keys of {state} cannot be deleted: {error}"
                ) from None
            except (*TRUNCATED, ValueError) as error:
                raise place.damaged(state, entry, error) from None
            if written is None:
                return None
            deleted.add(written)
            return ()

        return apply


# --- map_keys ---------------------------------------------------------------------------------

KeyFunction = Callable[[Any], Any]


def key_changer(state: StateDescriptor, new_key: Serializer) -> ChangeKey:
    """Return the function that replaces the key in an entry's key bytes, without its prefix.

    Timers have 8 bytes of timestamp as that prefix. Raises what `composite_key_changer` raises.
    """
    namespace = state.namespace_serializer
    if layout_of(state).before_key:
        return timer_key_changer(namespace)
    return composite_key_changer(state.key_serializer, new_key, namespace)


class KeyMapping:
    """Replaces each key of a state's entries by the function's result, which `new_key` writes.

    A run of equal keys calls the function once.
    """

    def __init__(
        self,
        function: KeyFunction,
        new_key: Serializer,
        state: StateDescriptor,
        place: StepContext,
    ) -> None:
        key = state.key_serializer
        assert key.read is not None  # OperatorEditor.map_keys refuses keys that cannot be read
        self._function = function
        self._state = state
        self._place = place
        self._start = layout_of(state).before_key
        self._change = key_changer(state, new_key)
        self._read, self._write = key.read, new_key.write_key or new_key.write
        self._new_type, self._hasher = new_key, key_hasher(new_key)
        self._has_old_type = key == new_key
        self._key: bytes | None = None  # the last key; `_new` is its result
        self._new: tuple[int, bytes] | _Sentinel | None = None

    def __call__(self, entry: EncodedEntry) -> Iterable[EncodedEntry] | None:
        start, key = self._start, entry.key
        try:
            decoded, end = self._read(key, start)
        except UnreadableError as error:
            raise self._unreadable(key, error) from None
        except (*TRUNCATED, ValueError) as error:
            raise self._place.damaged(self._state, entry, error) from None
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
            raise self._place.damaged(self._state, entry, error) from None
        return (EncodedEntry(new_key_group, entry.state, changed, entry.value),)

    def _new_key(self, key: Any, encoded: bytes) -> tuple[int, bytes] | _Sentinel | None:
        """Return the new key group and key bytes; DELETE; or None if the key stays."""
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
            # Java may have written an equal key in other bytes, or the function has changed the
            # key in place: a fresh copy decides whether the key stays.
            with suppress(KeyGroupsError):
                if self._encoded(self._read(encoded, 0)[0]) == new:
                    return None
        return new

    def _encoded(self, key: Any) -> tuple[int, bytes]:
        """Return the key group and the bytes of a new key."""
        if self._hasher is None or self._write is None:
            raise UnsupportedKeyTypeError(
                f"keys cannot become others of {self._new_type}: only the job can write them"
            )
        code = self._hasher(key)  # raises for a key that is not of the type
        return compute_key_group_for_key_hash(code, self._place.max_parallelism), self._write(key)

    def _unreadable(self, key: bytes, error: UnreadableError) -> UnsupportedKeyTypeError:
        return UnsupportedKeyTypeError(
            f"key {show(key[self._start :])} in state {self._state.name!r} cannot be mapped, as "
            f"only the job can read it: {error}"
        )


# --- set_ttl ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class SetTtl:
    """Sets the last access (epoch ms) of all values, or removes it if None.

    The time is 8 bytes before each value.
    """

    last_access: int | None

    def __call__(self, state: StateDescriptor, place: StepContext) -> Apply:
        """Return the Apply that does so."""
        decode = layout_of(state).decoding(place.subtask).framed
        change = stored_value(state).retimed(self.last_access)

        def apply(entry: EncodedEntry) -> Iterable[EncodedEntry] | None:
            key_group, number, key, value = entry
            try:
                return (EncodedEntry(key_group, number, key, change(value)),)
            except InvalidValueError as error:
                raise _of_entry(decode(key_group, key, value), error) from None
            except (*TRUNCATED, ValueError) as error:
                raise place.damaged(state, entry, error) from None

        return apply


# --- map_batches ------------------------------------------------------------------------------

BatchFunction = Callable[[Any], Any]  # PyArrow has no types for a RecordBatch.


@dataclass(frozen=True)
class MapBatches:
    """Calls a function with batches of a state; there is a BatchMapping for it, and no Apply."""

    function: BatchFunction
    allow_any_last_access: bool


AnyStep = Step | MapBatches
BY_COLUMNS = (DeleteKeys, SetTtl, MapBatches)
"""The steps that take entries as columns; keys and key groups stay."""


# --- map_entries ------------------------------------------------------------------------------

MapFunction = Callable[[StateEntry], Any]


class Calls:
    """Calls the function of a verb with the entries of a state."""

    def __init__(
        self,
        verb: str,
        function: Callable[[StateEntry], Any],
        state: StateDescriptor,
        place: StepContext,
    ) -> None:
        self._verb = verb
        self._function = function
        self._state = state
        self._place = place
        self._read = layout_of(state).decoding(place.subtask).framed

    def _call(self, encoded: EncodedEntry) -> tuple[StateEntry, Any]:
        """Return a decoded entry and the function's result for it."""
        try:
            entry = self._read(encoded.key_group, encoded.key, encoded.value)
        except (*TRUNCATED, ValueError) as error:
            raise self._place.damaged(self._state, encoded, error) from None
        try:
            return entry, self._function(entry)
        except Exception as error:
            raise noted(error, f"{self._verb}: {named_entry(entry)}") from None

    def _decoded(self, encoded: EncodedEntry) -> StateEntry:
        """Return a copy of an entry that the function never saw."""
        return self._read(encoded.key_group, encoded.key, encoded.value)

    def _each(self, entries: Iterator[Any], entry: StateEntry) -> Iterator[Any]:
        """Yield the function's entries; a generator of the user raises inside of this loop."""
        while True:
            try:
                new = next(entries)
            except StopIteration:
                return
            except Exception as error:
                raise noted(error, f"{self._verb}: {named_entry(entry)}") from None
            yield new


class EntryMapping(Calls):
    """Decodes each entry of a state, and replaces it by the function's result."""

    def __init__(
        self,
        function: MapFunction,
        allow_any_last_access: bool,
        state: StateDescriptor,
        place: StepContext,
    ) -> None:
        super().__init__("map_entries", function, state, place)
        self._checks_times = state.has_ttl and not allow_any_last_access
        self._write_value = stored_value(state).writer(allow_any_last_access=True)
        self._encode = layout_of(state).encoder(allow_any_last_access=True)
        serializer = state.value_serializer
        self._has_one_form = (
            serializer is not None and serializer.name in ONE_FORM
        )  # such values are immutable and equal ones have equal bytes
        key = state.key_serializer
        self._key_type, self._write_key = key.key_type, key.write_key or key.write

    def __call__(self, encoded: EncodedEntry) -> Iterable[EncodedEntry] | None:
        entry, result = self._call(encoded)
        if result is DELETE:
            return ()
        if result is entry.value and _is_unchangeable(result):
            return None
        if type(result) not in _UNCHANGEABLE:  # a scalar is a value: the common, fast case
            entries = entries_of(result)
            if entries is not None:
                return (self._encoded(new, entry, encoded) for new in self._each(entries, entry))
        key_group, state, key, value = encoded
        changed = self._value_of(result, entry.last_access, entry, entry, encoded)
        return None if changed is value else (EncodedEntry(key_group, state, key, changed),)

    def _encoded(self, new: Any, entry: StateEntry, encoded: EncodedEntry) -> EncodedEntry:
        """Return the bytes of an entry that the function returned for `entry`."""
        if not isinstance(new, StateEntry):
            raise InvalidTypeError(
                f"{named_entry(entry)}: entries must each be a StateEntry, got {show(new)}"
            )
        if new.state != entry.state:
            raise InvalidValueError(
                f"{named_entry(entry)}: an entry must stay in its state, got one of "
                f"{show(new.state)}"
            )
        if all(map(is_same, _key_parts(new), _key_parts(entry))):
            value = self._value_of(new.value, new.last_access, new, entry, encoded)
            return encoded._replace(value=value)
        return self._moved(new, entry, encoded)

    def _moved(self, new: StateEntry, entry: StateEntry, encoded: EncodedEntry) -> EncodedEntry:
        """Return the bytes of an entry whose key, user key or namespace may have changed."""
        if self._write_key is None or self._key_type is None:
            if identity(_key_parts(new)) == identity(_key_parts(self._decoded(encoded))):
                same = self._value_of(new.value, new.last_access, new, entry, encoded)
                return encoded._replace(value=same)
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
        new_value = self._value_of(new.value, new.last_access, new, entry, encoded)
        if new_key != encoded.key:
            # Java may have written the same key in other bytes: those stay.
            with suppress(KeyGroupsError):
                if self._key_of(self._decoded(encoded)) == (encoded.key_group, new_key):
                    return encoded._replace(value=new_value)
        return EncodedEntry(key_group, encoded.state, new_key, new_value)

    def _key_of(self, entry: StateEntry) -> tuple[int, bytes]:
        """Return the key group of an entry and the bytes of its key."""
        assert self._write_key is not None
        try:
            code = hash_code(entry.key, self._key_type)  # raises for a key not of the type
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
        old_encoded: EncodedEntry,
    ) -> bytes:
        """Return the bytes of a new value; the object of the old ones if nothing changed.

        `entry` is named in errors: it is the entry that gets the value.
        """
        value = old_encoded.value
        if new is old.value and last_access == old.last_access and _is_unchangeable(new):
            return value
        try:
            if self._checks_times:
                for time in _times(new, last_access) - _times(old.value, old.last_access):
                    check_time(time)
            encoded = self._write_value(new, last_access)
        except KeyGroupsError as error:
            before = self._decoded(old_encoded)
            # Only the job can write such a value. It may still be the old one: compare it with
            # a fresh copy, as the function may have changed its argument.
            if (last_access, identity(new)) == (before.last_access, identity(before.value)):
                return value
            raise _of_entry(entry, error) from None
        if encoded == value:
            return value
        if not self._has_one_form:
            # Another serialisation of an equal value (a map in another order) is no change. The
            # old value is decoded again, as the function may have changed it in place.
            with suppress(KeyGroupsError):
                before = self._decoded(old_encoded)
                if self._write_value(before.value, before.last_access) == encoded:
                    return value
        return encoded


def entries_of(result: Any) -> Iterator[Any] | None:
    """Return an iterator over a function's result if it is entries, None if it is a value.

    Entries are a StateEntry, a list with one in it, or an iterator.
    """
    if isinstance(result, StateEntry):
        return iter((result,))
    if isinstance(result, list):
        is_value = not any(isinstance(item, StateEntry) for item in result)
        return None if is_value else iter(result)
    return result if isinstance(result, Iterator) else None


def _key_parts(entry: StateEntry) -> tuple[Any, Any, Any]:
    return entry.key, entry.namespace, entry.user_key


def _times(value: Any, last_access: int | None) -> set[int]:
    """Return the times of last access of a value and its elements, those that are ints."""
    times = [last_access]
    if isinstance(value, list):
        times += [item.last_access for item in value if isinstance(item, TtlValue)]
    known = set()
    for last_access in times:
        with suppress(InvalidTypeError):
            known.add(to_int("last_access", last_access))
    return known


def is_same(new: Any, old: Any) -> bool:
    """Tell whether `new` is the object `old`, and of an immutable class."""
    return new is old and _is_unchangeable(old)


def _is_unchangeable(value: Any) -> bool:
    return type(value) in _UNCHANGEABLE or (
        type(value) in (tuple, TimeWindow) and all(map(_is_unchangeable, value))
    )


def named_entry(entry: StateEntry) -> str:
    """Return an entry's description for errors: its key, user key, namespace and state."""
    text = f"key {show(entry.key_bytes if entry.key is None else entry.key)}"
    for name, value in (("user key", entry.user_key), ("namespace", entry.namespace)):
        if value is not None:
            text += f", {name} {show(value)}"
    return f"{text} in state {entry.state!r}"


def _of_entry(entry: StateEntry, error: KeyGroupsError) -> KeyGroupsError:
    """Return the same error with the entry's description in front."""
    return type(error)(f"{named_entry(entry)}: {error}")
