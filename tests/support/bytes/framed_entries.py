"""Entries as bytes: those of a task with names of states and keys, and those of a step."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from keygroups.savepoint import read_savepoint
from support.inside.savepoints import EncodedEntry, ReadTask

_TIME = 8  # bytes of a timer's time, which precedes the key


class FramedEntry(NamedTuple):
    """An EncodedEntry with the name of its state and its key, None where nobody reads that."""

    state: str
    key_group: int
    key: Any
    encoded_key: bytes
    encoded_value: bytes


def framed_entries(task: ReadTask) -> Iterator[FramedEntry]:
    """Yield the entries of a task, one key group after the other."""
    states = [*{state.name: state for state in task.format.states()}.values()]
    numbers = {state.name: number for number, state in enumerate(states)}
    for key_group, number, encoded_key, encoded_value in task.encoded_entries(numbers):
        state = states[number]
        read, key = state.key_serializer.read, None
        if read is not None and state.key_type is not None:
            key, _ = read(encoded_key, _TIME if state.kind == "PRIORITY_QUEUE" else 0)
        yield FramedEntry(state.name, key_group, key, encoded_key, encoded_value)


def framed_texts(path: Path) -> list[list[str]]:
    """Return the entries of each operator of a savepoint, by their bytes."""
    return [
        sorted(
            repr(entry._replace(key=None))
            for task in operator.tasks()
            for entry in framed_entries(task)
        )
        for operator in read_savepoint(path).operators
    ]


def bound(step: Any, *arguments: Any) -> Callable[[int, bytes, bytes], Any]:
    """Return the Apply of a step as a function of a key group, a key and a value as bytes."""
    apply = step(*arguments)

    def bytes_after(key_group: int, key: bytes, value: bytes) -> Any:
        entries = apply(EncodedEntry(key_group, 0, key, value))
        if entries is None:
            return None
        return tuple((entry.key_group, entry.key, entry.value) for entry in entries)

    return bytes_after
