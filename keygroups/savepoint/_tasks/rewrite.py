"""Reads the entries of a savepoint with the key groups of another max parallelism."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from keygroups._checks import show
from keygroups._serializers.base import Serializer
from keygroups.errors import KeyGroupsError, SavepointError
from keygroups.hashing import finalise
from keygroups.savepoint._state.key_hashes import key_hasher
from keygroups.savepoint._state.writing.entry_encoder import EncodedEntry
from keygroups.savepoint._tasks.read import ReadTask


@dataclass(frozen=True)
class RewriteTask:
    """Reads what one subtask wrote; it may be pickled.

    `numbers` are those of the states in the new header. `key` is the serializer of keys, None
    without states: where their key group cannot be computed, the new max parallelism is a divisor
    of the old one.
    """

    task: ReadTask
    numbers: Mapping[str, int]
    key: Serializer | None
    max_parallelism: int

    def entries(self) -> Iterator[EncodedEntry]:
        """Yield the entries in the order of the old key groups, with their new ones.

        Raises SavepointError where state is damaged, or the key group of a key is not the one
        it stands in.
        """
        numbers, rekey = self.numbers, self._rekey()
        last_key, last_key_group, new = object(), -1, -1
        for state, key_group, key, encoded_key, encoded_value in self.task.framed_entries():
            # The user keys of a MAP have one key, which may be long to hash. Other keys than texts
            # may be two in Java and one in Python.
            if key_group != last_key_group or (
                key is not last_key and (type(key) is not str or key != last_key)
            ):
                last_key, last_key_group, new = key, key_group, rekey(state, key_group, key)
            yield EncodedEntry(new, numbers[state], encoded_key, encoded_value)

    def _rekey(self) -> Callable[[str, int, Any], int]:
        """Return a function from a state, an old key group and a key to the new key group."""
        old, new, serializer = self.task.max_parallelism, self.max_parallelism, self.key
        hasher = None if serializer is None else key_hasher(serializer)
        if serializer is None or hasher is None:
            # Whatever the hash is: where b divides a, (hash mod a) mod b is hash mod b.
            return lambda state, key_group, key: key_group % new
        key_type = serializer.key_type or serializer

        def rekey(state: str, key_group: int, key: Any) -> int:
            try:
                scrambled = finalise(hasher(key))
            except KeyGroupsError as error:  # of a null, or a number beyond the key's precision
                raise SavepointError(
                    f"{self.task.files.base}: a key of state {state!r} in key group {key_group}: "
                    f"{error}"
                ) from None
            if scrambled % old != key_group:
                raise SavepointError(
                    f"{self.task.files.base}: key {show(key)} of state {state!r} is in key group "
                    f"{key_group}, and of key group {scrambled % old} by its hash as {key_type!r}"
                )
            return scrambled % new

        return rekey
