"""Rescaling: the key groups that move, the subtasks that restore them, and allowed restores."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from keygroups._checks import (
    INT_MAX,
    check_bounds,
    check_callable,
    check_class,
    check_int,
    check_max_parallelism,
    iterate,
    show,
    to_int,
)
from keygroups._show.plots import plot_bands
from keygroups._show.tables import Section, data_frame, html_table, show_weight, text_table
from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    ParallelismError,
    RestoreWarning,
    printable,
)
from keygroups.hashing import hash_code, murmur_hash
from keygroups.key_group_range import (
    KeyGroupRange,
    compute_key_group_range_for_operator_index,
    compute_operator_index_for_key_group,
    subtask_starts,
)
from keygroups.load import KeyGroupLoad
from keygroups.operator_state import redistribute_list_state, redistribute_operator_state
from keygroups.types import KeyType

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

__all__ = [
    "ModuloComparison",
    "RescalePiece",
    "RescalePlan",
    "check_restore",
    "redistribute_list_state",
    "redistribute_operator_state",
]
__dir__ = __all__.copy

_LONGEST = 40  # pieces in a table
_WIDTHS: tuple[int, ...] = (0, 0, 14, 6)  # least widths of its columns, in characters
_COLUMNS = ("old_subtask", "new_subtask", "first_key_group", "last_key_group", "moves")


class RescalePiece(NamedTuple):
    """Key groups that one old subtask had and one new subtask restores."""

    old_subtask: int
    new_subtask: int
    key_group_range: KeyGroupRange

    @property
    def moves(self) -> bool:
        """True if the subtask index of these key groups changes."""
        return self.old_subtask != self.new_subtask


@dataclass(frozen=True, slots=True)
class RescalePlan:
    """The key groups of old and new subtasks when the parallelism of a keyed operator changes.

    1 <= old_parallelism, new_parallelism <= max_parallelism <= 32768. Iterating gives a
    `RescalePiece` (old_subtask, new_subtask, key_group_range) for each range that one new
    subtask restores from one old subtask, in key-group order: every key group is in
    exactly one of them. `str()` is `table()`. Raises ParallelismError.

    Flink: StateAssignmentOperation.reDistributeKeyedStates, which intersects the ranges of
    KeyGroupRangeAssignment.

    >>> plan = RescalePlan(10, 3, 4)
    >>> print(plan)
    10 key groups, parallelism 3 -> 4: 5 move (50.0%), 5 stay
    new subtask  old subtask      key groups   count
              0            0          [0, 2]       3
              1            0          [3, 3]       1  moves
              1            1          [4, 4]       1
              2            1          [5, 6]       2  moves
              2            2          [7, 7]       1
              3            2          [8, 9]       2  moves
    """

    max_parallelism: int
    old_parallelism: int
    new_parallelism: int

    def __post_init__(self) -> None:
        groups = check_max_parallelism(self.max_parallelism)
        object.__setattr__(self, "max_parallelism", groups)
        for name in ("old_parallelism", "new_parallelism"):
            value, way_out = getattr(self, name), _way_out(groups)
            checked = check_bounds(name, value, groups, "max_parallelism", way_out)
            object.__setattr__(self, name, checked)

    def restores_from(self, new_subtask: int) -> list[tuple[int, KeyGroupRange]]:
        """Return the old subtasks that a new one restores from, each with the key groups.

        0 <= new_subtask < new_parallelism. Raises InvalidValueError or InvalidTypeError.

        >>> RescalePlan(128, 3, 4).restores_from(1)
        [(0, KeyGroupRange(32, 42)), (1, KeyGroupRange(43, 63))]
        """
        new = check_int("new_subtask", new_subtask, 0, self.new_parallelism - 1)
        return self._shares(self.new_parallelism, new, self.old_parallelism)

    def hands_to(self, old_subtask: int) -> list[tuple[int, KeyGroupRange]]:
        """Return the new subtasks that restore from an old one, each with the key groups.

        0 <= old_subtask < old_parallelism. Raises InvalidValueError or InvalidTypeError.

        >>> RescalePlan(128, 3, 4).hands_to(0)
        [(0, KeyGroupRange(0, 31)), (1, KeyGroupRange(32, 42))]
        """
        old = check_int("old_subtask", old_subtask, 0, self.old_parallelism - 1)
        return self._shares(self.old_parallelism, old, self.new_parallelism)

    @property
    def moved_key_groups(self) -> tuple[int, ...]:
        """The key groups whose subtask index changes, in order."""
        return tuple(group for piece in self if piece.moves for group in piece.key_group_range)

    @property
    def kept_key_groups(self) -> tuple[int, ...]:
        """The key groups whose subtask index stays, in order."""
        return tuple(group for piece in self if not piece.moves for group in piece.key_group_range)

    @property
    def moved_share(self) -> float:
        """The share of the key groups that moves, 0.0 to 1.0."""
        return sum(map(len, self._moved())) / self.max_parallelism

    def moved_weight(self, load: KeyGroupLoad) -> float:
        """Return the weight of the key groups that move: records, bytes, whatever it counts.

        `load.per_subtask` of either parallelism has the weights of subtasks before and after.
        Raises InvalidTypeError for anything but a KeyGroupLoad, InvalidValueError for one of
        another max parallelism.

        >>> RescalePlan(4, 2, 4).moved_weight(KeyGroupLoad(4, [5, 1, 1, 7]))
        9
        """
        check_class("load", load, KeyGroupLoad, "a KeyGroupLoad")
        if load.max_parallelism != self.max_parallelism:
            raise InvalidValueError(
                f"load must have max_parallelism {self.max_parallelism}, that of the plan, "
                f"got {load.max_parallelism}"
            )
        return load._weight_of(self._moved())

    def compare_with_modulo(
        self,
        keys: Iterable[object] | KeyGroupLoad,
        key_type: KeyType | None = None,
        scramble: Callable[[int], int] = murmur_hash,
    ) -> ModuloComparison:
        """Compare with the same rescale under `hash % parallelism`, without key groups.

        `keys` are the keys, each given once, of a `key_type` or of an inferred one. The hash
        is `scramble` of a key's hashCode, an int >= 0, on both sides: the key group is hash
        % max_parallelism, and the naive subtask is hash % parallelism.

        A KeyGroupLoad in place of the keys counts its weight instead. It knows the hash only
        modulo max_parallelism, so that must be a multiple of both parallelisms.

        Raises what `hash_code` raises, and InvalidValueError or InvalidTypeError for what
        `scramble` gives and for a load that cannot tell.

        The example is that of the Apache Flink blog, "A Deep Dive into Rescalable State in
        Apache Flink" (2017), where a key is its own hash.

        >>> plan = RescalePlan(10, 3, 4)
        >>> print(plan.compare_with_modulo(range(20), scramble=lambda code: code))
        20 in all, parallelism 3 -> 4
                                          hash % parallelism               10 key groups
        change subtask                            14 (70.0%)                  10 (50.0%)
        contiguous ranges read                             0                           6
        read as scattered keys                            20                           0
        """
        if isinstance(keys, KeyGroupLoad):
            counted = self._count_load(keys, key_type, scramble)
        else:
            check_callable("scramble", scramble)
            counted = self._count_keys(keys, key_type, scramble)
        total, moved_by_modulo, moved_by_key_groups = counted
        # The hashes of one remainder stay together only if the new parallelism divides the old.
        whole = self.old_parallelism % self.new_parallelism == 0
        return ModuloComparison(
            plan=self,
            total=total,
            moved_by_modulo=moved_by_modulo,
            moved_by_key_groups=moved_by_key_groups,
            ranges_by_modulo=self.old_parallelism if whole else 0,
            ranges_by_key_groups=sum(1 for _ in self),
            scattered_by_modulo=0 if whole else total,
        )

    def table(self, load: KeyGroupLoad | None = None, limit: int | None = _LONGEST) -> str:
        """Return the pieces as a table at most 80 wide, weighed by a load if one is given.

        Of more than `limit` pieces, 2 or more, the middle is left out, and said so; None shows
        all. Raises what `moved_weight` raises, InvalidValueError and InvalidTypeError.

        >>> print(RescalePlan(4, 2, 1).table(KeyGroupLoad(4, [5, 1, 1, 7])))
        4 key groups, parallelism 2 -> 1: 2 move (50.0%), 2 stay
        weight: 8 of 14 moves (57.1%)
        imbalance: 1.14 before, 1.00 after
        new subtask  old subtask      key groups   count               weight
                  0            0          [0, 1]       2                    6
                  0            1          [2, 3]       2                    8  moves
        """
        section, left_out = self._section(load, limit)
        widths = _WIDTHS if load is None else (*_WIDTHS, 19)  # the longest that show_weight gives
        table = text_table([(*section.header[:-1], ""), *section.rows], widths=widths)
        if left_out:
            table.insert(1 + (len(section.rows) + 1) // 2, f"... {left_out} more in between ...")
        return "\n".join([*section.texts, *table])

    def _section(self, load: KeyGroupLoad | None, limit: int | None) -> tuple[Section, int]:
        """Return the table as a Section, and the number of pieces left out in the middle."""
        texts = [self._title()]
        header = ["new subtask", "old subtask", "key groups", "count"]
        if load is not None:
            moved, total = self.moved_weight(load), load.total
            before, after = map(load.imbalance, (self.old_parallelism, self.new_parallelism))
            share = f"{moved / (total or 1):.1%}"
            texts.append(f"weight: {show_weight(moved)} of {show_weight(total)} moves ({share})")
            texts.append(f"imbalance: {before:.2f} before, {after:.2f} after")
            header.append("weight")
        pieces = list(self)
        limit = len(pieces) if limit is None else check_int("limit", limit, 2, INT_MAX)
        start, left_out = (limit + 1) // 2, max(len(pieces) - limit, 0)
        shown = (*pieces[:start], *pieces[start + left_out :])
        return Section(texts, (*header, "moves"), [_row(piece, load) for piece in shown]), left_out

    def _title(self) -> str:
        groups, moved = self.max_parallelism, sum(map(len, self._moved()))
        change = f"parallelism {self.old_parallelism} -> {self.new_parallelism}"
        moves = f"{moved} move ({moved / groups:.1%}), {groups - moved} stay"
        return f"{groups} key groups, {change}: {moves}"

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        return self._html()

    def _html(self, load: KeyGroupLoad | None = None) -> str:
        section, left_out = self._section(load, _LONGEST)
        caption = "Which subtask restores what from which"
        if left_out:
            caption += f"; pieces left out in the middle: {left_out}"
        return html_table(*section[:3], caption=caption)

    def to_pandas(self) -> DataFrame:
        """Return a pandas DataFrame with a row for each piece, in key-group order."""
        return data_frame(_COLUMNS, map(_cells, self))

    def plot(self, load: KeyGroupLoad | None = None, ax: Axes | None = None) -> Axes:
        """Draw old subtasks, key groups and new subtasks, and what moves. Returns the Axes.

        `load` colours key groups by their weight; `ax` is Matplotlib's, a new one if None. Needs
        the extra `plot`. Raises what `moved_weight` raises.
        """
        if load is not None:
            self.moved_weight(load)  # It raises unless the load fits this plan.
        weights = None if load is None else load.weights
        bands = [(first, last + 1, moves) for _, _, first, last, moves in map(_cells, self)]
        sizes = (self.max_parallelism, self.old_parallelism, self.new_parallelism)
        return plot_bands(bands, *sizes, self._title(), weights, ax)

    def _moved(self) -> Iterator[KeyGroupRange]:
        return (piece.key_group_range for piece in self if piece.moves)

    def __iter__(self) -> Iterator[RescalePiece]:
        groups, old, new = self.max_parallelism, self.old_parallelism, self.new_parallelism
        starts = sorted({*subtask_starts(groups, old), *subtask_starts(groups, new)})
        for start, end in pairwise(starts):
            key_groups = KeyGroupRange(start, end - 1)
            yield RescalePiece(start * old // groups, start * new // groups, key_groups)

    def _shares(
        self, parallelism: int, subtask: int, other_parallelism: int
    ) -> list[tuple[int, KeyGroupRange]]:
        """Return the subtasks at the other parallelism that share key groups with this one."""
        total = self.max_parallelism
        own = compute_key_group_range_for_operator_index(total, parallelism, subtask)
        first, last = (
            compute_operator_index_for_key_group(total, other_parallelism, key_group)
            for key_group in (own.start_key_group, own.end_key_group)
        )
        range_of = partial(compute_key_group_range_for_operator_index, total, other_parallelism)
        return [(other, own & range_of(other)) for other in range(first, last + 1)]

    def _count_keys(
        self, keys: Iterable[object], key_type: KeyType | None, scramble: Callable[[int], int]
    ) -> tuple[int, int, int]:
        """Return the number of keys, of those that move by modulo, and by key groups."""
        groups, old, new = self.max_parallelism, self.old_parallelism, self.new_parallelism
        total = by_modulo = by_key_groups = 0
        for key in iterate("keys", "keys", keys):
            scrambled = to_int("what scramble gives", scramble(hash_code(key, key_type)))
            if scrambled < 0:
                raise InvalidValueError(f"what scramble gives must be >= 0, got {show(scrambled)}")
            key_group = scrambled % groups
            total += 1
            by_modulo += scrambled % old != scrambled % new
            by_key_groups += key_group * old // groups != key_group * new // groups
        return total, by_modulo, by_key_groups

    def _count_load(
        self, load: KeyGroupLoad, key_type: KeyType | None, scramble: Callable[[int], int]
    ) -> tuple[float, float, float]:
        """Return the weight of a load, that which moves by modulo, and by key groups."""
        if key_type is not None or scramble is not murmur_hash:
            raise InvalidTypeError("key_type and scramble must be left out: a load has no keys")
        by_key_groups = self.moved_weight(load)
        groups, old, new = self.max_parallelism, self.old_parallelism, self.new_parallelism
        if groups % old or groups % new:
            raise InvalidValueError(
                "load must be of a max_parallelism that both parallelisms divide, else it cannot "
                f"tell hash % parallelism: give the keys, got {groups} for {old} and {new}"
            )
        by_modulo = load.weight_of(group for group in range(groups) if group % old != group % new)
        return load.total, by_modulo, by_key_groups


@dataclass(frozen=True, slots=True)
class ModuloComparison:
    """A rescale under `hash % parallelism` beside the same by key groups; `str()` is a table.

    `total`, and what is moved and scattered, are keys or the weight of a load. A range is
    read at one go by one new subtask from one old one's state. Scattered are the keys that
    are picked out of a state where the keys of other new subtasks stand between them, which
    never happens by key groups.
    """

    plan: RescalePlan
    total: float
    moved_by_modulo: float
    moved_by_key_groups: float
    ranges_by_modulo: int
    ranges_by_key_groups: int
    scattered_by_modulo: float

    def __str__(self) -> str:
        rows = [("", *self._header()[1:]), *self._rows()]
        lines = [f"{name:24}{modulo:>28}{key_groups:>28}" for name, modulo, key_groups in rows]
        return "\n".join([self._title(), *lines])

    def _repr_html_(self) -> str:
        caption = "With and without key groups"
        return html_table([self._title()], self._header(), self._rows(), caption=caption)

    def _title(self) -> str:
        change = f"parallelism {self.plan.old_parallelism} -> {self.plan.new_parallelism}"
        return f"{show_weight(self.total)} in all, {change}"

    def _header(self) -> tuple[str, ...]:
        return "measure", "hash % parallelism", f"{self.plan.max_parallelism} key groups"

    def _rows(self) -> list[tuple[str, ...]]:
        total = self.total or 1
        moved = self.moved_by_modulo, self.moved_by_key_groups
        return [
            ("change subtask", *(f"{show_weight(part)} ({part / total:.1%})" for part in moved)),
            ("contiguous ranges read", str(self.ranges_by_modulo), str(self.ranges_by_key_groups)),
            ("read as scattered keys", show_weight(self.scattered_by_modulo), "0"),
        ]


def _cells(piece: RescalePiece) -> tuple[int, int, int, int, bool]:
    groups = piece.key_group_range
    return *piece[:2], groups.start_key_group, groups.end_key_group, piece.moves


def _row(piece: RescalePiece, load: KeyGroupLoad | None) -> tuple[str, ...]:
    old, new, groups = piece
    weight = () if load is None else (show_weight(load.weight_of(groups)),)
    moves = "moves" if piece.moves else ""
    return f"{new}", f"{old}", f"{groups}", f"{len(groups)}", *weight, moves


def _way_out(max_parallelism: int) -> str:
    """Return the advice for a parallelism that is above the max parallelism of the state."""
    return (
        f"{max_parallelism} is the most, and even; for more of them "
        "keygroups.savepoint.change_max_parallelism writes the savepoint with more key groups"
    )


def restore_advice(max_parallelisms: Mapping[str, int]) -> str:
    """Return the advice for operators with keyed state, by their max parallelisms.

    Flink takes over the savepoint's only until a chained operator that is not in the savepoint
    sets its chain back to the job's default: StateAssignmentOperation, seen in 1.17.2 to 2.3.0.
    """
    which = str(next(iter(max_parallelisms.values())))
    if len(set(max_parallelisms.values())) > 1:
        which = ", ".join(
            f"{number} of {printable(name)}" for name, number in max_parallelisms.items()
        )
    return (
        f"set max parallelism in the job, to {which}: where it is not set, a new operator in the "
        "chain can make Flink lose keyed state"
    )


def check_restore(
    savepoint_max_parallelism: int, parallelism: int, max_parallelism: int | None = None
) -> int:
    """Return the max parallelism that a job restored from a savepoint runs with.

    `savepoint_max_parallelism` is the operator's in the savepoint or checkpoint, 1..32768;
    `parallelism` and `max_parallelism` are those of the restored job. Where that sets None, the
    savepoint's is kept, with a RestoreWarning: a chained operator that is not in the savepoint
    may set it back, and keyed state is lost. One that is set must be the same, and the
    parallelism at most that. Raises ParallelismError.

    Flink: StateAssignmentOperation.checkParallelismPreconditions.

    >>> check_restore(128, 90, 128)
    128
    >>> check_restore(128, 90, 256)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    keygroups.errors.ParallelismError: max_parallelism must be 128, that of the savepoint, ...
    """
    kept = check_bounds("savepoint_max_parallelism", savepoint_max_parallelism)
    if max_parallelism is not None and check_max_parallelism(max_parallelism) != kept:
        raise ParallelismError(
            f"max_parallelism must be {kept}, that of the savepoint, got {show(max_parallelism)}: "
            "keygroups.savepoint.change_max_parallelism writes a savepoint with another"
        )
    bound = "the max parallelism of the restored state"
    check_bounds("parallelism", parallelism, kept, bound, _way_out(kept))
    if max_parallelism is None:
        warnings.warn(restore_advice({"": kept}), RestoreWarning, stacklevel=2)
    return kept
