"""Framed entries of many sizes found side by side: one after the other is what takes long.

Places that look like the start of an entry are found in all bytes at once, with the places at
which such entries would end. From the first, which is one, the ends then lead from entry to entry,
past whatever else looked like one.
"""

from __future__ import annotations

import numpy as np

from keygroups.savepoint._columns.readers.parts import Ints, numbers_at

_LEAST_BYTES = 8  # a framed entry has more
_SIZE = np.dtype(">i4")
_NO_PLACES = np.empty(0, np.int64)


def chained(data: bytes, pos: int, end: int, prefix: bytes) -> Ints:
    """Return the places of entries of a key group that lie in `data` from `pos` to `end`.

    `prefix` is that of the key group. Each entry is whole, and the next one starts where it ends;
    the last place is the end of the last one. They stop before the last entry of a state, one
    whose key has 65,536 bytes or more, and one that is not whole. There are none if the entry at
    `pos` is such, or if too much looks like an entry.
    """
    octets = np.frombuffer(data, np.uint8, end - pos, pos)
    size = len(octets)
    count = size - _LEAST_BYTES
    if count <= 0:
        return _NO_PLACES
    alike = octets[4 : 4 + count] == prefix[0]
    for number, octet in ((0, 0), (1, 0), *((5, octet) for octet in prefix[1:])):
        alike &= octets[number : number + count] == octet
    starts = np.flatnonzero(alike)
    if len(starts) > size // _LEAST_BYTES:
        return _NO_PLACES
    key_sizes = numbers_at(octets, starts, _SIZE).astype(np.int64)
    values = starts + key_sizes + 8
    is_good = (key_sizes > len(prefix)) & (values <= size)
    starts, values = starts[is_good], values[is_good]
    value_sizes = numbers_at(octets, values - 4, _SIZE).astype(np.int64)
    ends = values + value_sizes
    is_good = (value_sizes >= 0) & (ends <= size)
    starts, ends = starts[is_good], ends[is_good]
    if not len(starts) or starts[0]:
        return _NO_PLACES
    steps = _steps(starts, ends)
    places = np.empty(len(steps) + 1, np.int64)
    places[:-1], places[-1] = starts[steps], ends[steps[-1]]
    places += pos
    return places


def _steps(starts: Ints, ends: Ints) -> Ints:
    """Return the numbers of the first place and of those that follow it, each at the end before.

    With starts 0, 3, 10, 20 and ends 10, 9, 20, 25 they are 0, 2, 3.
    """
    leaps = np.flatnonzero(ends[:-1] != starts[1:])
    if not len(leaps):
        return np.arange(len(starts))
    # Most places within an entry are no end of any: without them there are few leaps.
    is_end = np.ones(len(starts) + 1, np.bool_)
    is_end[leaps + 1] = False
    is_end[np.searchsorted(starts, ends[leaps])] = True
    numbers = np.flatnonzero(is_end[:-1])
    return numbers[_followed(starts[numbers], ends[numbers])]


def _followed(starts: Ints, ends: Ints) -> Ints:
    """Return the numbers that `_steps` returns, place after place where one does not follow."""
    is_step = np.ones(len(starts), np.bool_)
    leaps = np.flatnonzero(ends[:-1] != starts[1:])
    goals = np.searchsorted(starts, ends[leaps])
    step = 0
    for leap, goal, end in zip(leaps.tolist(), goals.tolist(), ends[leaps].tolist()):
        if leap < step:  # a place within an entry leads elsewhere
            continue
        if goal == len(starts) or starts[goal] != end:
            return np.flatnonzero(is_step[: leap + 1])
        is_step[leap + 1 : goal] = False
        step = goal
    return np.flatnonzero(is_step)
