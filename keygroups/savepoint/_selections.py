"""The states and the key groups that a caller names: checked here, for all that read some."""

from __future__ import annotations

from collections.abc import Iterable

from keygroups._checks import check_int, check_str, iterate, show
from keygroups.errors import InvalidValueError
from keygroups.savepoint._metadata.key_group_ranges import KeyGroupRanges


def check_states(states: Iterable[str], described: Iterable[str], whose: str) -> frozenset[str]:
    """Return the names as a set; InvalidValueError for one that is not among `described`.

    `whose` is the operator in the error.
    """
    known = dict.fromkeys(described)  # a set in the order of the states
    names = set()
    for count, name in enumerate(iterate("states", "names", states)):
        names.add(check_str("state", name))
        if name not in known:
            raise InvalidValueError(
                f"states must be of {whose}, which has {', '.join(known) or 'none'}, "
                f"got {show(name)}"
            )
        if count == len(known):
            raise InvalidValueError(
                f"states must be at most {len(known)} names, all that {whose} has, got more"
            )
    return frozenset(names)


def check_key_groups(
    key_groups: Iterable[int] | None, max_parallelism: int, whose: str
) -> KeyGroupRanges:
    """Return key groups of 0..max_parallelism-1 as ranges, all for None.

    `whose` is the operator in the error: InvalidValueError or InvalidTypeError.
    """
    last = max_parallelism - 1
    if key_groups is None:
        return KeyGroupRanges.of([(0, last)])
    checked = set()
    for count, key_group in enumerate(iterate("key_groups", "ints", key_groups)):
        if count > last:
            raise InvalidValueError(
                f"key_groups must be at most {last + 1} ints, all that {whose} has, got more"
            )
        checked.add(check_int("key group", key_group, 0, last))
    return KeyGroupRanges.of((key_group, key_group) for key_group in checked)
