"""The max parallelism and key type of an unknown job, from keys and where they were seen."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, product
from typing import NamedTuple

from keygroups import types
from keygroups._checks import (
    UPPER_BOUND_MAX_PARALLELISM,
    check_bounds,
    check_class,
    check_int,
    iterate,
    record_repr,
    show,
)
from keygroups.errors import InvalidTypeError, InvalidValueError, KeyGroupsError
from keygroups.hashing import finalise, hasher_of, infer_key_type
from keygroups.key_group_range import compute_default_max_parallelism
from keygroups.local_key_by import key_identity
from keygroups.types import KeyType

__all__ = ["RoutingCandidate", "RoutingInference", "infer_routing"]
__dir__ = __all__.copy


_MOST_KEY_TYPES = 100
_SHOWN = 10  # candidates in a text
_COMPARED = 200  # candidates, the first ones, that deciding keys should tell apart
_TRIED_KEYS = 400
_DECIDING = 5  # deciding keys at most: each leaves a fraction of the candidates
_FIELD_TYPES = 16  # tuple types at most: INT or LONG in each field makes 2 ** fields
_SQL_TYPES: dict[KeyType, str] = {
    types.INT: "INT",
    types.LONG: "BIGINT",
    types.STRING: "STRING",
    types.BOOLEAN: "BOOLEAN",
    types.DOUBLE: "DOUBLE",
}
_MISSES = 0.05  # the share of pairs that the nearest candidate may leave unexplained


class RoutingCandidate(NamedTuple):
    """A job that sends every observed key to the place where it was seen."""

    max_parallelism: int
    key_type: KeyType

    def __str__(self) -> str:
        return f"max parallelism {self.max_parallelism}, {self.key_type!r}"


class _Hashed(NamedTuple):
    """The observed keys as one key type hashes them."""

    key_type: KeyType
    hash_key: Callable[[object], int]
    hashes: list[int]


class _Seen(NamedTuple):
    """Keys with their places: subtasks of a parallelism, or key groups if that is None."""

    pairs: Sequence[tuple[Hashable, int]]
    parallelism: int | None
    max_parallelisms: range  # candidates with the highest place


@dataclass(frozen=True)
class RoutingInference:
    """The result of `infer_routing`; `str()` is the text for a person.

    `parallelism` is None where key groups were seen. `candidates` explain all pairs, the most
    usual first: the max parallelism that Flink gives a job of this parallelism by default, then
    powers of two, then multiples of the parallelism, then the others, each from the lowest on;
    for key groups powers of two, then the others. `tried` is the number of candidates that were
    tested, and `by_chance` of those that would pass if keys were dealt out at random: far below 1,
    the result is no chance. `deciding_keys` tell the candidates apart: look where they go. Where
    no candidate explains all pairs, `nearest` is the one that contradicts only a few, which are
    `unexplained`; None where none comes near.
    """

    parallelism: int | None
    candidates: tuple[RoutingCandidate, ...]
    tried: int
    by_chance: float
    deciding_keys: tuple[object, ...]
    nearest: RoutingCandidate | None
    unexplained: tuple[tuple[object, int], ...]

    def __repr__(self) -> str:
        return record_repr(self)

    def __str__(self) -> str:
        if not self.candidates:
            text = f"not one of these: none of {self.tried:,} candidates explains all pairs"
            if self.nearest is not None:
                pairs = ", ".join(map(show, self.unexplained[:_SHOWN]))
                text += f"\nnearest: {self.nearest}, but for {pairs}"
            return text
        lines = [
            f"{len(self.candidates):,} of {self.tried:,} candidates explain all pairs; "
            f"{self.by_chance:.2g} would by chance"
        ]
        lines += [f"  {candidate}" for candidate in self.candidates[:_SHOWN]]
        if len(self.candidates) > _SHOWN:
            lines.append(f"  and {len(self.candidates) - _SHOWN:,} more")
        if self.deciding_keys:
            lines.append(f"keys that decide: {', '.join(map(show, self.deciding_keys))}")
        return "\n".join(lines)


def infer_routing(
    observed: Iterable[tuple[object, int]] | None = None,
    parallelism: int | None = None,
    key_types: Iterable[KeyType] | None = None,
    *,
    key_groups: Iterable[tuple[object, int]] | None = None,
) -> RoutingInference:
    """Find the max parallelisms and key types that explain where keys were seen.

    Pass `observed` and `parallelism`, or `key_groups` alone. `observed` are pairs of a key and its
    subtask, 0..parallelism-1, from logs, the partitions of a sink or the web UI; `parallelism` is
    the operator's, 1..32768, and every max parallelism from it to 32768 is tried. `key_groups` are
    pairs of a key and its key group, 0..32767, from exceptions, logs or the state of a savepoint;
    every max parallelism above the highest one is tried. Of either at least one pair: twenty
    subtasks are mostly enough, or three key groups.

    `key_types`, at most 100, are tried beside those that the keys suggest: of ints INT and LONG,
    of text STRING, of tuples TUPLE of these, of any other key the one that is inferred; and each
    of these as PYFLINK, of tuples as the SCALA_TUPLE of either version and, of ints, text, bools,
    floats and tuples of them, as a SQL_ROW. The keys of a SQL_ROW of one column may be given
    without the tuple around them. In Scala 2.12 a case class hashes as the tuple; of 2.13 pass
    CASE_CLASS with its name. Ints in a SCALA_TUPLE are LONG, which hash as INT does there.

    Raises ParallelismError, InvalidTypeError or InvalidValueError for an argument, for both forms
    at once or neither, and for a key that was seen in two places, which no job does; keys that
    only Python takes for equal, such as 0.0 and -0.0, are two, as in `LocalKeyBy`.

    Flink: KeyGroupRangeAssignment.assignToKeyGroup and computeOperatorIndexForKeyGroup, asked
    backwards.

    >>> seen = [("user-1", 15), ("user-2", 2), ("user-3", 5), ("user-4", 14), ("user-5", 0)]
    >>> infer_routing(seen + [("user-6", 11), ("user-7", 4), ("user-8", 13)], 16).candidates
    (RoutingCandidate(max_parallelism=128, key_type=STRING),)
    >>> infer_routing(key_groups=[("hello", 35), ("A", 104), ("B", 17)]).candidates
    (RoutingCandidate(max_parallelism=128, key_type=STRING),)
    """
    seen = _check_seen(observed, parallelism, key_groups)
    wanted = _check_key_types(() if key_types is None else key_types)
    keys = [key for key, _ in seen.pairs]
    hashed = [
        hashed_keys
        for key_type in dict.fromkeys((*wanted, *_suggested(keys)))
        if (hashed_keys := _hash_all(key_type, keys)) is not None
    ]
    if not hashed:
        raise InvalidTypeError(
            f"key_types must have a key type of all keys, of which {show(keys[0])} is one"
        )
    candidates = [
        RoutingCandidate(max_parallelism, key_type)
        for key_type, _, hashes in hashed
        for max_parallelism in _explaining(hashes, seen)
    ]
    candidates.sort(key=lambda candidate: _usual(candidate.max_parallelism, seen.parallelism))
    nearest = None if candidates else _nearest(hashed, seen)
    return RoutingInference(
        seen.parallelism,
        tuple(candidates),
        len(hashed) * len(seen.max_parallelisms),
        len(hashed) * _by_chance(len(set(hashed[0].hashes)), seen),
        tuple(_deciding_keys(candidates, hashed, keys, seen.parallelism)),
        None if nearest is None else RoutingCandidate(nearest[1], nearest[0].key_type),
        () if nearest is None else _unexplained(*nearest, seen),
    )


def _check_seen(
    observed: Iterable[tuple[object, int]] | None,
    parallelism: int | None,
    key_groups: Iterable[tuple[object, int]] | None,
) -> _Seen:
    if key_groups is None:
        if observed is None and parallelism is None:
            raise InvalidValueError("observed and parallelism, or key_groups, must be given")
        lowest = parallelism = check_bounds("parallelism", parallelism)
        pairs = _check_pairs("observed", observed, "subtask", parallelism - 1)
    else:
        for name, value in (("observed", observed), ("parallelism", parallelism)):
            if value is not None:
                raise InvalidValueError(f"{name} must not go with key_groups, got {show(value)}")
        highest = UPPER_BOUND_MAX_PARALLELISM - 1
        pairs = _check_pairs("key_groups", key_groups, "key group", highest)
        lowest = max(place for _, place in pairs) + 1
    return _Seen(pairs, parallelism, range(lowest, UPPER_BOUND_MAX_PARALLELISM + 1))


def _check_pairs(
    name: str, values: Iterable[tuple[object, int]] | None, what: str, most: int
) -> list[tuple[Hashable, int]]:
    pairs: dict[object, tuple[Hashable, int]] = {}
    checked: Iterator[object] = iterate(name, f"pairs of a key and its {what}", values)
    for pair in checked:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise InvalidTypeError(
                f"{name} must be pairs of a key and its {what}, got {show(pair)}"
            )
        key, seen = pair
        place = check_int(f"{what} of a pair of {name}", seen, 0, most)
        try:
            _, known = pairs.setdefault(key_identity(key), (key, place))
        except TypeError:
            raise InvalidTypeError(f"keys of {name} must be hashable, got {show(key)}") from None
        if known != place:
            raise InvalidValueError(
                f"key {show(key)} of {name} is in {what} {known} and in {place}: "
                f"a job sends a key to one {what}"
            )
    if not pairs:
        raise InvalidValueError(f"{name} must have at least one pair, got none")
    return list(pairs.values())


def _check_key_types(key_types: Iterable[KeyType]) -> list[KeyType]:
    listed = list(islice(iterate("key_types", "key types", key_types), _MOST_KEY_TYPES + 1))
    for key_type in listed:
        check_class("key type", key_type, KeyType, "a key type such as INT")
    if len(listed) > _MOST_KEY_TYPES:
        raise InvalidValueError(f"key_types must be at most {_MOST_KEY_TYPES}, got more")
    return listed


def _suggested(keys: Sequence[Hashable]) -> Iterator[KeyType]:
    """Yield the key types that such keys may have, the plain ones first."""
    plain = _plain(keys)
    yield from plain
    for key_type in plain:
        with suppress(KeyGroupsError):  # PyFlink cannot declare every key type.
            yield types.PYFLINK(key_type)
    for key_type, version in product(plain[:1], ("2.12", "2.13")):
        if isinstance(key_type, types.TUPLE):
            with suppress(KeyGroupsError):  # Scala's tuples have from 1 to 22 fields.
                yield _scala(key_type, version)
    for key_type in plain:
        fields = key_type.parts if isinstance(key_type, types.TUPLE) else (key_type,)
        if all(field in _SQL_TYPES for field in fields):
            yield types.SQL_ROW(*(_SQL_TYPES[field] for field in fields))


def _scala(key_type: KeyType, version: str) -> KeyType:
    """Return a key type with Scala's tuples in place of Java's."""
    if isinstance(key_type, types.TUPLE):
        fields = (_scala(field, version) for field in key_type.fields)
        return types.SCALA_TUPLE(*fields, scala=version)
    return types.LONG if key_type is types.INT else key_type


def _plain(keys: Sequence[Hashable]) -> list[KeyType]:
    classes = set(map(type, keys))
    if classes == {int}:
        return [types.INT, types.LONG]
    if classes == {tuple}:
        rows = [key for key in keys if isinstance(key, tuple)]
        if len(set(map(len, rows))) == 1:
            fields = product(*map(_plain, zip(*rows)))
            return [types.TUPLE(*key_types) for key_types in islice(fields, _FIELD_TYPES)]
        return []
    try:
        return [infer_key_type(keys[0])]
    except KeyGroupsError:
        return []


def _hash_all(key_type: KeyType, keys: Sequence[Hashable]) -> _Hashed | None:
    """Return the scrambled hashes of the keys, None where one is not of the type."""
    hasher = hasher_of(key_type)
    is_column = isinstance(key_type, types.SQL_ROW) and len(key_type.fields) == 1

    def hash_key(key: object) -> int:
        return finalise(hasher((key,) if is_column and not isinstance(key, tuple) else key))

    try:
        return _Hashed(key_type, hash_key, list(map(hash_key, keys)))
    except KeyGroupsError:
        return None


def _place(code: int, max_parallelism: int, parallelism: int | None) -> int:
    """Return the subtask that a scrambled hash goes to, or its key group without a parallelism."""
    key_group = code % max_parallelism
    return key_group if parallelism is None else key_group * parallelism // max_parallelism


def _explaining(hashes: Sequence[int], seen: _Seen) -> Sequence[int]:
    """Return the max parallelisms under which every hash goes to its place."""
    explaining: Sequence[int] = seen.max_parallelisms
    parallelism = seen.parallelism
    for code, (_, place) in zip(hashes, seen.pairs):
        # This is `_place` without a call, on the hot path; key groups are n subtasks.
        explaining = [n for n in explaining if code % n * (parallelism or n) // n == place]
    return explaining


def _by_chance(hashes: int, seen: _Seen) -> float:
    """Return the expected number of max parallelisms that explain random places of `hashes` keys.

    At parallelism 16 a random key is in its place with 1/16: 8 keys leave 32753 / 16**8, 7.6e-6.
    """
    if seen.parallelism is not None:
        return len(seen.max_parallelisms) * float(seen.parallelism) ** -hashes
    return sum(float(groups) ** -hashes for groups in seen.max_parallelisms)


def _usual(max_parallelism: int, parallelism: int | None) -> tuple[bool, bool, bool, int]:
    """Return the sort key of a max parallelism by how usual it is, the most usual first."""
    return (
        parallelism is not None
        and max_parallelism != compute_default_max_parallelism(parallelism),
        max_parallelism.bit_count() != 1,
        parallelism is not None and max_parallelism % parallelism != 0,
        max_parallelism,
    )


def _nearest(hashed: Sequence[_Hashed], seen: _Seen) -> tuple[_Hashed, int] | None:
    """Return the key type and max parallelism that the fewest pairs contradict, if few do."""
    fewest, nearest = int(len(seen.pairs) * _MISSES) + 1, None
    for hashed_keys in hashed:
        pairs = [(code, place) for code, (_, place) in zip(hashed_keys.hashes, seen.pairs)]
        for max_parallelism in seen.max_parallelisms:
            misses = 0
            for code, place in pairs:
                if _place(code, max_parallelism, seen.parallelism) != place:
                    misses += 1
                    if misses >= fewest:
                        break
            else:
                fewest, nearest = misses, (hashed_keys, max_parallelism)
    return nearest


def _unexplained(
    hashed_keys: _Hashed, max_parallelism: int, seen: _Seen
) -> tuple[tuple[object, int], ...]:
    return tuple(
        (key, place)
        for code, (key, place) in zip(hashed_keys.hashes, seen.pairs)
        if _place(code, max_parallelism, seen.parallelism) != place
    )


def _deciding_keys(
    candidates: Sequence[RoutingCandidate],
    hashed: Sequence[_Hashed],
    keys: Sequence[Hashable],
    parallelism: int | None,
) -> Iterator[Hashable]:
    """Yield keys that split the candidates, each the one that makes the most parts.

    A part is the candidates that no key so far tells apart. If one key is at the places 3, 3, 7, 7
    under four candidates, and another at 1, 2, 1, 2, both together tell all of them apart.
    """
    hashers = {key_type: hash_key for key_type, hash_key, _ in hashed}
    key_types = {candidate.key_type for candidate in candidates}
    places: dict[object, list[int]] = {}
    for key in _new_keys(keys):
        with suppress(KeyGroupsError):  # A key need not be of every candidate's type.
            codes = {key_type: hashers[key_type](key) for key_type in key_types}
            places[key] = [
                _place(codes[key_type], groups, parallelism)
                for groups, key_type in candidates[:_COMPARED]
            ]
    parts: list[object] = [None] * min(len(candidates), _COMPARED)
    for _ in range(_DECIDING):
        best = max(places, key=lambda key: len(set(zip(parts, places[key]))), default=None)
        if best is None or len(set(zip(parts, places[best]))) == len(set(parts)):
            return
        parts = list(zip(parts, places[best]))
        yield best


def _new_keys(keys: Sequence[Hashable]) -> Iterator[Hashable]:
    """Yield keys of the first one's type; ints below zero too, where Integer and Long differ."""
    if isinstance(keys[0], str):
        yield from (f"key-{number}" for number in range(_TRIED_KEYS))
    elif type(keys[0]) is int:
        yield from range(-_TRIED_KEYS // 2, _TRIED_KEYS // 2)
    else:
        tuples = (key for key in keys if isinstance(key, tuple))
        for key in islice(tuples, _TRIED_KEYS):
            yield tuple(~field if type(field) is int else field for field in key)
