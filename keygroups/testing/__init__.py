"""Tools for tests of partitioning: assertions that explain failures, Hypothesis strategies.

The assertions work with pytest, which shows the line of the test, and without. Strategies need
Hypothesis (`pip install hypothesis`), which is only imported by them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from keygroups._checks import check_int, check_parallelisms, iterate, show, to_number
from keygroups.assignment import assign_key_to_parallel_operator, trace_key
from keygroups.errors import InvalidValueError, KeyGroupsError
from keygroups.hashing import finalise, hash_code, hasher_of, infer_key_type
from keygroups.load import KeyGroupLoad
from keygroups.reports import HotKey, SkewReport
from keygroups.reports._diagnosis import diagnose, subtask_rows
from keygroups.skew import diagnosis_of, remedy_of
from keygroups.subtask_keys import keys_for_subtasks
from keygroups.types import KeyType

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["assert_reaches_all", "assert_spread", "assert_subtask", "keys", "parallelisms"]
__dir__ = __all__.copy

_TOP_KEYS = 3  # keys of a hot subtask in the message
_SHOWN = 10  # idle subtasks that are shown with a key
_USUAL = [1, 2, 4, 16, 100, 128, 256, 720, 1024, 4096, 32768]


def assert_subtask(
    key: object,
    subtask: int,
    max_parallelism: int,
    parallelism: int,
    key_type: KeyType | None = None,
) -> None:
    """Assert that Flink sends a key to a subtask.

    0 <= subtask < parallelism <= max_parallelism <= 32768. The AssertionError has every step
    from the key to its subtask, as `trace_key` explains them. Raises what `trace_key` does,
    InvalidValueError or InvalidTypeError for the subtask.

    Flink: KeyGroupRangeAssignment.assignKeyToParallelOperator.

    >>> assert_subtask("hello", 0, 128, 3)
    >>> assert_subtask("hello", 2, 128, 3)
    Traceback (most recent call last):
    AssertionError: subtask 0, not 2
    key          'hello' as STRING
    hashCode     99162322
    murmur hash  1715862179
    key group    35 = 1715862179 % 128
    subtask      0 = 35 * 3 // 128, which has key groups [0, 42]
    """
    __tracebackhide__ = True
    trace = trace_key(key, max_parallelism, parallelism, key_type)
    expected = check_int("subtask", subtask, 0, trace.parallelism - 1)
    if trace.subtask != expected:
        raise AssertionError(f"subtask {trace.subtask}, not {expected}\n{trace}")


def assert_spread(
    keys: Iterable[object],
    max_parallelism: int,
    parallelism: int,
    max_imbalance: float = 1.5,
    key_type: KeyType | None = None,
) -> None:
    """Assert that keys load the subtasks of a keyed stream evenly.

    `keys` has the key of each record, at least one; a key counts as often as it occurs. The
    heaviest subtask may have `max_imbalance` times the mean, a finite number >= 1. The
    AssertionError has the load of each subtask, its hot keys, and the remedy.
    Raises what `hash_code` does, ParallelismError, and InvalidValueError or InvalidTypeError for
    no keys and for `max_imbalance`.

    Flink: KeyGroupRangeAssignment.assignKeyToParallelOperator, for each record.

    >>> assert_spread(range(1000), 128, 4)
    >>> assert_spread(["a", "a", "a", "b"], 128, 4)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    AssertionError: imbalance 3.00 is above max_imbalance 1.5
    ...
    """
    __tracebackhide__ = True
    max_parallelism, parallelism = check_parallelisms(max_parallelism, parallelism)
    limit = _check_imbalance(max_imbalance)
    counted = _Counted(keys, max_parallelism, key_type)
    imbalance = counted.load.imbalance(parallelism)
    if imbalance > limit:
        report = counted.report(parallelism, limit)
        raise AssertionError(f"imbalance {imbalance:.2f} is above max_imbalance {limit}\n{report}")


def assert_reaches_all(
    keys: Iterable[object],
    max_parallelism: int,
    parallelism: int,
    key_type: KeyType | None = None,
) -> None:
    """Assert that keys reach every subtask of a keyed stream.

    1 <= parallelism <= max_parallelism <= 32768. The AssertionError names the subtasks that get
    no key and, where `keys_for_subtasks` can count through the key type, a key for each. Raises
    what `hash_code` does, ParallelismError, InvalidTypeError for what is no iterable.

    Flink: KeyGroupRangeAssignment.assignKeyToParallelOperator, for each key.

    >>> assert_reaches_all(range(100), 128, 4)
    >>> assert_reaches_all(["a", "b"], 128, 3)
    Traceback (most recent call last):
    AssertionError: 1 of 3 subtasks get no key: 2
    of type STRING, '0' reaches subtask 2
    """
    __tracebackhide__ = True
    max_parallelism, parallelism = check_parallelisms(max_parallelism, parallelism)
    reached: set[int] = set()
    shown_type = key_type
    for key in iterate("keys", "keys", keys):
        reached.add(assign_key_to_parallel_operator(key, max_parallelism, parallelism, key_type))
        shown_type = infer_key_type(key) if shown_type is None else shown_type
        if len(reached) == parallelism:
            return
    idle = [subtask for subtask in range(parallelism) if subtask not in reached]
    listed = ", ".join(map(str, idle[:_SHOWN])) + (", ..." if len(idle) > _SHOWN else "")
    raise AssertionError(
        f"{len(idle)} of {parallelism} subtasks get no key: {listed}"
        f"{_ways(idle[:_SHOWN], max_parallelism, parallelism, shown_type)}"
    )


def keys(key_type: KeyType) -> SearchStrategy[Any]:
    """Return the Hypothesis strategy of the keys of a key type, each of which has a hash.

    Needs Hypothesis. Fields of compound types are None, too, where that is legal. Raises
    InvalidTypeError for what is no key type, UnsupportedKeyTypeError for a SET or MAP whose
    elements Python cannot hold, ImportError without Hypothesis.

    Flink: any key that its `keyBy` takes with that class, as far as Python has it.

    >>> from hypothesis import find, settings
    >>> from keygroups.types import LONG, STRING, TUPLE
    >>> forgetful = settings(database=None)
    >>> find(keys(TUPLE(STRING, LONG)), lambda key: key[0] and key[1], settings=forgetful)
    ('0', 1)
    """
    hasher = hasher_of(key_type)
    try:
        from keygroups.testing._strategies import values
    except ImportError:
        raise _without_hypothesis() from None

    def is_key(value: Any) -> bool:
        try:
            hasher(value)
        except KeyGroupsError:
            return False
        return True

    return values(key_type).filter(is_key)


def parallelisms() -> SearchStrategy[tuple[int, int]]:
    """Return the Hypothesis strategy of (max_parallelism, parallelism), the usual ones often.

    1 <= parallelism <= max_parallelism <= 32768. Needs Hypothesis; raises ImportError without.

    Flink: what KeyGroupRangeAssignment takes.

    >>> from hypothesis import find, settings
    >>> forgetful = settings(database=None)
    >>> find(parallelisms(), lambda pair: pair[0] > 100 and pair[1] > 3, settings=forgetful)
    (101, 4)
    """
    try:
        from hypothesis import strategies as st
    except ImportError:
        raise _without_hypothesis() from None
    bounds = st.integers(1, 32768) | st.sampled_from(_USUAL)
    # Hypothesis shrinks two independent draws well.
    return st.tuples(bounds, st.integers(0, 32767)).map(
        lambda drawn: (drawn[0], 1 + drawn[1] % drawn[0])
    )


def _without_hypothesis() -> ImportError:
    return ImportError(
        "the strategies of keygroups.testing need Hypothesis: pip install hypothesis"
    )


def _check_imbalance(value: object) -> float:
    number = to_number("max_imbalance", value)
    if not 1 <= number < math.inf:
        raise InvalidValueError(f"max_imbalance must be a finite number >= 1, got {show(value)}")
    return number


def _ways(
    idle: list[int], max_parallelism: int, parallelism: int, key_type: KeyType | None
) -> str:
    """Return the text on keys that would reach idle subtasks, or on why none is known."""
    if key_type is None:
        return "\nthere are no keys"
    try:
        reaching = keys_for_subtasks(max_parallelism, parallelism, key_type)
    except KeyGroupsError as error:
        return f"\nno keys for them are known: {error}"
    ways = ", ".join(f"{show(reaching[subtask])} reaches subtask {subtask}" for subtask in idle)
    return f"\nof type {show(key_type)}, {ways}"


class _Counted:
    """The number of records of each key, by key group."""

    def __init__(
        self, keys: Iterable[object], max_parallelism: int, key_type: KeyType | None
    ) -> None:
        self._key_type = key_type
        self._counts: Counter[tuple[int, Any]] = Counter()
        self._keys: dict[tuple[int, Any], object] = {}
        for key in iterate("keys", "keys", keys):
            code = hash_code(key, key_type)
            # Keys that Python takes for equal may differ in Java (0.0 and -0.0), and some are not
            # hashable.
            java_key = code, key if type(key) in (int, str) else show(key)
            self._counts[java_key] += 1
            self._keys.setdefault(java_key, key)
        if not self._counts:
            raise InvalidValueError("keys must hold at least one key, got none")
        weights, self._distinct = [0] * max_parallelism, [0] * max_parallelism
        for (code, _), count in self._counts.items():
            key_group = finalise(code) % max_parallelism
            weights[key_group] += count
            self._distinct[key_group] += 1
        self.load = KeyGroupLoad(max_parallelism, weights)

    def report(self, parallelism: int, limit: float) -> SkewReport:
        """Return the report of the load, in which subtasks above a limit are hot."""
        rows = subtask_rows(self.load, self._distinct, None, parallelism)
        hot = {row.subtask for row in rows if row.times_mean > limit}
        top_keys: dict[int, list[HotKey]] = {}
        for java_key, count in sorted(self._counts.items(), key=itemgetter(1), reverse=True):
            key_group = finalise(java_key[0]) % self.load.max_parallelism
            subtask = key_group * parallelism // self.load.max_parallelism
            hot_keys = top_keys.setdefault(subtask, [])
            if len(hot_keys) < _TOP_KEYS:
                share = count / rows[subtask].records
                hot_keys.append(HotKey(self._keys[java_key], key_group, count, share))
        shown = {subtask: keys for subtask, keys in top_keys.items() if subtask in hot}
        causes, hot_subtasks = diagnose(rows, shown, self.load)
        key_type = self._key_type or infer_key_type(next(iter(self._keys.values())))
        return SkewReport(
            key_type,
            parallelism,
            None,
            self.load,
            None,
            tuple(rows),
            hot_subtasks,
            diagnosis_of(causes),
            remedy_of(causes),
            is_inferred=self._key_type is None,
            causes=causes,
        )
