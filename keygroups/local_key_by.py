"""The pre-aggregation buffer that goes before a keyBy."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any, Generic, TypeVar

from keygroups._checks import INT_MAX, MAX_DEPTH, check_callable, check_int, iterate, show
from keygroups.errors import InvalidTypeError, InvalidValueError, KeyGroupsError

__all__ = ["LocalKeyBy"]
__dir__ = __all__.copy

K = TypeVar("K")
V = TypeVar("V")


class LocalKeyBy(Generic[K, V]):
    """One subtask's buffer of values combined by key, sent on every `batch_size` records.

    It stands in front of a keyBy with hot keys, which then get one record a batch from each
    upstream subtask. `batch_size` is 1 to 2^31-1 and counts the records since the last flush, not
    the keys. `combine(a, b)` makes one value of a key's older and newer; it has to be
    associative and commutative, since Flink restores list state in no certain order, and
    to leave its arguments as they are, since a checkpoint may hold them.

    Keys are hashable, None included. Those that Python takes for equal but Flink does not have
    entries of their own: 1, True and 1.0; 0.0 and -0.0; Decimal("1.5") and Decimal("1.50");
    also inside tuples and frozensets. For any other class its own equality decides.

    Raises InvalidValueError or InvalidTypeError for the batch size, InvalidTypeError for a
    `combine` that cannot be called.

    Flink: the RichFlatMapFunction and CheckpointedFunction published as LocalKeyBy, which keeps
    a HashMap and puts it into a ListState at each checkpoint.

    >>> views = LocalKeyBy(3, lambda a, b: a + b)
    >>> views.process("app1", 1), views.process("app2", 1), views.process("app1", 1)
    ([], [], [('app1', 2), ('app2', 1)])
    >>> views.process("app3", 1), views.snapshot_state()
    ([], [('app3', 1)])
    >>> restored = LocalKeyBy(3, lambda a, b: a + b)
    >>> restored.restore([("app3", 1), ("app3", 4)])  # from two old subtasks
    >>> restored.process("app4", 1)
    [('app3', 5), ('app4', 1)]
    """

    def __init__(self, batch_size: int, combine: Callable[[V, V], V]) -> None:
        self._batch_size = check_int("batch_size", batch_size, 1, INT_MAX)
        self._combine = check_callable("combine", combine)
        self._buffer: dict[object, tuple[K, V]] = {}
        self._records = 0
        self._used = False

    def __getstate__(self) -> dict[str, object]:
        return vars(self) | {"_buffer": self._buffer.copy()}  # copy.copy must not share it.

    def process(self, key: K, value: V) -> list[tuple[K, V]]:
        """Take in one record and return the pairs to send downstream, in order of first arrival.

        There are none, or with the last record of a batch every key with its combined value.
        Raises InvalidTypeError for a key that is not hashable, InvalidValueError for one that
        nests more than 50 tuples deep. An error of `combine` leaves the buffer as it was.
        """
        self._add(self._buffer, key, value)
        self._used = True
        self._records += 1
        return self.flush() if self._records >= self._batch_size else []

    def flush(self) -> list[tuple[K, V]]:
        """Return all buffered pairs and empty the buffer: for the end of the input, or a timer."""
        entries = self.snapshot_state()
        self._buffer.clear()
        self._records = 0
        return entries

    def snapshot_state(self) -> list[tuple[K, V]]:
        """Return the buffered pairs, the elements of an operator list state in a checkpoint."""
        return list(self._buffer.values())

    def restore(self, entries: Iterable[tuple[K, V]]) -> None:
        """Take over the list-state elements that this subtask restores from; may be none.

        After a rescale they come from several old subtasks and may hold a key more than once:
        its values are combined. The next record then flushes, however large the batch.

        Raises KeyGroupsError unless this comes before any record, since the records of the
        buffer would count twice, and InvalidTypeError for what is no (key, value) pair.

        Flink: CheckpointedFunction.initializeState with context.isRestored().
        """
        if self._used:
            raise KeyGroupsError("restore must come once, before the first record")
        buffer: dict[object, tuple[K, V]] = {}
        entry: Any  # The caller's entries may be anything.
        for index, entry in enumerate(iterate("entries", "(key, value) tuples", entries)):
            if not isinstance(entry, tuple) or len(entry) != 2:
                raise InvalidTypeError(
                    f"entries must be (key, value) tuples, got {show(entry)} at position {index}"
                )
            self._add(buffer, *entry)
        self._used = True
        self._buffer = buffer
        self._records = self._batch_size

    def _add(self, buffer: dict[object, tuple[K, V]], key: K, value: V) -> None:
        try:
            identity = key_identity(key)
            entry = buffer.get(identity)
        except TypeError:
            raise InvalidTypeError(f"key must be hashable, got {show(key)}") from None
        if entry is not None:
            key, value = entry[0], self._combine(entry[1], value)
        buffer[identity] = key, value


def key_identity(key: object, depth: int = 0) -> object:
    """Return a hashable identity, which two keys share only if they are one key to Flink."""
    if type(key) is str:
        return key
    if isinstance(key, float):
        return type(key), key.hex()  # -0.0 and 0.0 differ, and NaN equals NaN.
    if isinstance(key, Decimal):
        return type(key), key.as_tuple()  # 1.5 and 1.50 differ.
    if isinstance(key, (dt.datetime, dt.time)):
        return type(key), key, key.fold  # `==` ignores the fold, which makes another instant.
    if isinstance(key, (tuple, frozenset)):
        if depth >= MAX_DEPTH:
            raise InvalidValueError(f"key must nest at most {MAX_DEPTH} deep, got {show(key)}")
        elements = (key_identity(element, depth + 1) for element in key)
        return type(key), tuple(elements) if isinstance(key, tuple) else frozenset(elements)
    return type(key), key
