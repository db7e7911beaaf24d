"""The bytes and entries of each key that a task reads."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from keygroups._checks import exact_repr
from keygroups.errors import SavepointError
from keygroups.savepoint._tasks.read import ReadTask
from keygroups.savepoint.entries import KeySize

_NO_KEY = object()


class UnknownKeysError(SavepointError):
    """Only the job can tell where the keys of entries end."""


def key_sizes_of(task: ReadTask, label: str) -> Iterator[KeySize]:
    """Yield the KeySize of each key that a task reads; `label` is the operator's, for errors.

    Raises UnknownKeysError where the bytes do not say where a key ends.
    """
    for key_group, entries in groupby(task.entries(), lambda entry: entry.key_group):
        sizes: dict[str, list[Any]] = {}
        key, size = _NO_KEY, list[Any]()
        for entry in entries:
            if entry.key_bytes is not None and entry.key is None:
                [state] = {state for state in task.format.states() if state.name == entry.state}
                raise UnknownKeysError(
                    f"{task.files.base}: which keys are how heavy in operator {label} is not "
                    f"known: of {state} the bytes do not say where a key ends"
                )
            if entry.key is not key:  # The user keys of a MAP have one object.
                key = entry.key
                # Two keys of Java may be one in Python, such as 0.0 and -0.0.
                size = sizes.setdefault(exact_repr(key), [key, 0, 0])
            size[1] += 1
            size[2] += entry.bytes
        for key, count, total in sizes.values():
            yield KeySize(key, key_group, task.subtask, count, total)
