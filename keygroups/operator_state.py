"""Operator state on restore: the elements of non-keyed state by new subtask.

The rules are those of org.apache.flink.runtime.checkpoint.RoundRobinOperatorStateRepartitioner.
They define which elements reach a subtask; their order inside of it is undefined in Flink, and
here is that of the old subtasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Literal, TypeGuard, TypeVar, get_args

from keygroups._checks import check_bounds, check_choice, check_str, iterate, show
from keygroups._values.java_lang import hash_string
from keygroups.errors import InvalidTypeError, InvalidValueError

__all__ = [
    "Mode",
    "redistribute_list_state",
    "redistribute_operator_state",
    "split_distribute_order",
]
__dir__ = __all__.copy

T = TypeVar("T")

Mode = Literal["SPLIT_DISTRIBUTE", "UNION", "BROADCAST"]
"""The way a state is handed out to new subtasks: OperatorStateHandle.Mode."""


def redistribute_list_state(
    old_lists: Sequence[Sequence[T] | None], new_parallelism: int
) -> list[list[T]]:
    """Return the elements that each new subtask restores of one split-distribute list state.

    `old_lists` holds the elements of each old subtask, or None where it reported none; its
    length is the old parallelism. 1 <= new_parallelism <= 32768. This is the state of
    `getListState` in Flink, alone in its operator: beside others, where it starts depends
    on them, see `redistribute_operator_state`. Raises what that raises.

    Flink: RoundRobinOperatorStateRepartitioner.repartitionState.

    >>> kafka_partitions = [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]
    >>> redistribute_list_state(kafka_partitions, 3)
    [[0, 2, 4, 6], [8, 1, 3], [5, 7, 9]]
    """
    new_parallelism = check_bounds("new_parallelism", new_parallelism)
    lists = _check_lists("old_lists", old_lists)
    check_bounds("length of old_lists", len(lists))
    if len(lists) == new_parallelism:
        return _in_place(lists)
    return _split(lists, new_parallelism, 0)


def redistribute_operator_state(
    states: Mapping[str, tuple[Mode, Sequence[Sequence[T] | None]]],
    old_parallelism: int,
    new_parallelism: int,
) -> dict[str, list[list[T]]]:
    """Return the elements that each new subtask restores of an operator's named states.

    `states` maps a state's name to its mode and to the elements of each old subtask, None
    where a subtask did not report the state. 1 <= parallelism <= 32768 for both. The result
    maps each name to one list per new subtask. The modes:

    - SPLIT_DISTRIBUTE (`getListState`): contiguous runs, one element more for as many
      subtasks as there are left over. The next such state starts where this one's extra
      elements ended, so their order matters: it is that of the mapping, and
      `split_distribute_order` tells Flink's. Unchanged parallelism leaves them in place.
    - UNION (`getUnionListState`): everything to every subtask.
    - BROADCAST (`getBroadcastState`): subtask i restores the (i mod n)-th of the n lists
      reported. At unchanged parallelism a subtask keeps its own list as well, so where some
      subtasks did not report, one may get two.

    Raises ParallelismError, and InvalidTypeError or InvalidValueError for the states.

    Flink: RoundRobinOperatorStateRepartitioner.repartitionState.

    >>> states = {
    ...     "offsets": ("SPLIT_DISTRIBUTE", [[1, 2], [3, 4]]),
    ...     "pending": ("SPLIT_DISTRIBUTE", [[5], None]),
    ...     "rules": ("BROADCAST", [["a"], ["a"]]),
    ... }
    >>> redistribute_operator_state(states, 2, 3)  # doctest: +NORMALIZE_WHITESPACE
    {'offsets': [[1, 2], [3], [4]], 'pending': [[], [5], []],
     'rules': [['a'], ['a'], ['a']]}
    """
    old_parallelism = check_bounds("old_parallelism", old_parallelism)
    new_parallelism = check_bounds("new_parallelism", new_parallelism)
    if not isinstance(states, Mapping):
        raise InvalidTypeError(f"states must map names to (mode, lists), got {show(states)}")
    start = 0
    result = {}
    for name, state in states.items():
        mode, lists = _check_state(name, state, old_parallelism)
        if mode == "UNION":
            result[name] = [_joined(lists) for _ in range(new_parallelism)]
        elif mode == "BROADCAST":
            result[name] = _broadcast(lists, new_parallelism)
        elif old_parallelism == new_parallelism:
            result[name] = _in_place(lists)
        else:
            result[name] = _split(lists, new_parallelism, start)
            start = (start + len(_joined(lists))) % new_parallelism
    return result


def split_distribute_order(names: Iterable[str]) -> list[str]:
    """Return the order in which Flink walks SPLIT_DISTRIBUTE states of these names.

    `names` are those of all such states of one operator that any subtask reported. Flink
    walks a java.util.HashMap that computeIfAbsent filled, so the order is that of the
    buckets of their hash codes. Where the names alone do not decide it, this raises: names
    that share a bucket stand there as the map that the checkpoint was read into has it, and
    for 13, 25, 49, ... names the size of the table depends on how many subtasks reported.

    Raises InvalidValueError for that and for repeated names, InvalidTypeError for a name
    that is no str.

    JDK: HashMap.computeIfAbsent. Flink: RoundRobinOperatorStateRepartitioner.

    >>> split_distribute_order(["state-2", "Aa", "pending"])
    ['Aa', 'pending', 'state-2']
    """
    hashes = {}
    for name in iterate("names", "str", names):
        name = check_str("name of a state", name)
        if name in hashes:
            raise InvalidValueError(f"names must be distinct, got {show(name)} twice")
        hashes[name] = hash_string(name)
    size = 16
    # computeIfAbsent looks at the load before it inserts, so a table holds one name more
    # than three quarters of its size until the next call.
    while len(hashes) > size // 4 * 3 + 1:
        size *= 2
    order = _by_bucket(hashes, size)
    if len(hashes) == size // 4 * 3 + 1 and order != _by_bucket(hashes, 2 * size):
        raise InvalidValueError(
            f"names must not fill a table of {size} to its limit, got {len(hashes)}: "
            "their order depends on how many subtasks reported them"
        )
    return order


def _by_bucket(hashes: Mapping[str, int], size: int) -> list[str]:
    buckets: dict[int, str] = {}
    for name, code in hashes.items():
        # HashMap.hash: the hash code xor its own high half, shifted in without the sign.
        bucket = (code ^ ((code & 0xFFFFFFFF) >> 16)) & (size - 1)
        if bucket in buckets:
            raise InvalidValueError(
                f"names must not share a bucket of Flink's HashMap, got {show(buckets[bucket])} "
                f"and {show(name)}: their order depends on how the checkpoint is read"
            )
        buckets[bucket] = name
    return [buckets[bucket] for bucket in sorted(buckets)]


def _split(lists: Sequence[Sequence[T] | None], new_parallelism: int, start: int) -> list[list[T]]:
    elements = _joined(lists)
    each, extra = divmod(len(elements), new_parallelism)
    rest = iter(elements)
    runs = [list(islice(rest, each + (i < extra))) for i in range(new_parallelism)]
    return runs[new_parallelism - start :] + runs[: new_parallelism - start]


def _broadcast(lists: Sequence[Sequence[T] | None], new_parallelism: int) -> list[list[T]]:
    reporting = [old for old, elements in enumerate(lists) if elements is not None]
    result = []
    for new in range(new_parallelism):
        restored = {reporting[new % len(reporting)]} if reporting else set()
        if new_parallelism == len(lists):
            restored.add(new)
        result.append(_joined(lists[old] for old in sorted(restored)))
    return result


def _in_place(lists: Sequence[Sequence[T] | None]) -> list[list[T]]:
    return [_joined([elements]) for elements in lists]


def _joined(lists: Iterable[Sequence[T] | None]) -> list[T]:
    return list(chain.from_iterable(elements for elements in lists if elements is not None))


def _check_state(
    name: object, state: Any, old_parallelism: int
) -> tuple[Mode, Sequence[Sequence[Any] | None]]:
    check_str("name of a state", name)
    if not isinstance(state, tuple) or len(state) != 2:
        raise InvalidTypeError(
            f"state {show(name)} must be a tuple (mode, lists), got {show(state)}"
        )
    mode, lists = state
    mode = check_choice(f"mode of state {show(name)}", mode, get_args(Mode))
    lists = _check_lists(f"lists of state {show(name)}", lists)
    if len(lists) != old_parallelism:
        raise InvalidValueError(
            f"lists of state {show(name)} must be {old_parallelism}, one per old subtask, "
            f"got {len(lists)}"
        )
    return mode, lists


def _check_lists(name: str, lists: object) -> Sequence[Sequence[Any] | None]:
    if not _is_list(lists):
        raise InvalidTypeError(f"{name} must be a list of lists, got {show(lists)}")
    for old, elements in enumerate(lists):
        if elements is not None and not _is_list(elements):
            raise InvalidTypeError(
                f"{name} must have a list or None at {old}, got {show(elements)}"
            )
    return lists


def _is_list(value: object) -> TypeGuard[Sequence[Any]]:
    """Return whether a value is a sequence, and no text, which is never meant as a list."""
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))
