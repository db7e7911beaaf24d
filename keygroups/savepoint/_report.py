"""What an operator of a savepoint holds, where it is heavy, and what a rescale would move."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import nlargest

from keygroups._checks import check_class, check_int, check_str, iterate
from keygroups.errors import printable
from keygroups.key_group_range import compute_operator_index_for_key_group
from keygroups.load import KeyGroupLoad
from keygroups.reports import RescaleReport
from keygroups.rescale import RescalePlan
from keygroups.savepoint._savepoint import KeySize, Operator, Savepoint, UnknownKeysError
from keygroups.savepoint._state.key_group_streams import NotFramedError


@dataclass(frozen=True, slots=True)
class OperatorReport:
    """The keyed state of an operator, its heaviest key groups and keys; `str()` says it.

    `key_group_bytes` is the load of the key groups in bytes, `heaviest_key_groups` and
    `heaviest_keys` are the heaviest first, `rescale` is the rescale of that load. Where the keys
    cannot be told from the bytes, or the entries from one another, there are none of them, and
    `unknown_keys` says why.
    """

    operator: Operator
    key_group_bytes: KeyGroupLoad
    heaviest_key_groups: tuple[int, ...]
    heaviest_keys: tuple[KeySize, ...]
    rescale: RescaleReport
    unknown_keys: str | None = None

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        operator, weights = self.operator, self.key_group_bytes.weights
        groups, parallelism = operator.max_parallelism, operator.parallelism
        yield f"== {printable(operator.label)}: {len(operator.states)} states"
        for state in operator.states:
            yield f"  {state}"
        yield f"key groups with the most bytes, of {sum(weights):,} in all:"
        for key_group in self.heaviest_key_groups:
            subtask = compute_operator_index_for_key_group(groups, parallelism, key_group)
            yield f"  {weights[key_group]:>12,}  key group {key_group}, subtask {subtask}"
        yield "keys with the most bytes:"
        if self.unknown_keys is not None:
            yield f"  {self.unknown_keys}"
        for key in self.heaviest_keys:
            yield (
                f"  {key.bytes:>12,}  {key.key!r:.60}, {key.entries} entries, "
                f"key group {key.key_group}, subtask {key.subtask}"
            )
        yield f"rescale to {self.rescale.plan.new_parallelism}, weight in bytes:"
        yield str(self.rescale)


def operator_reports(
    savepoint: Savepoint,
    operators: Iterable[str] | None = None,
    parallelism: int | None = None,
    top: int = 5,
) -> Iterator[OperatorReport]:
    """Return an iterator over the reports of operators, each read when it is asked for.

    `operators` are uids, names or ids, None all with keyed state. `parallelism` is the one to
    rescale to, 1..max_parallelism, None one more than the operator's; `top` is how many key
    groups and keys are named, at least 1. Raises InvalidValueError or InvalidTypeError for an
    argument, ParallelismError, and SavepointError where state is damaged or not read here.
    """
    check_class("savepoint", savepoint, Savepoint, "a Savepoint")
    top = check_int("top", top, 1, 2**31 - 1)
    if operators is None:
        chosen = [
            operator
            for operator in savepoint.operators
            if any(subtask.key_groups for subtask in operator.subtasks)
        ]
    else:
        names = iterate("operators", "names", operators)
        chosen = [savepoint.operator(check_str("operator", name)) for name in names]
    return (_report(operator, parallelism, top) for operator in chosen)


def _report(operator: Operator, parallelism: int | None, top: int) -> OperatorReport:
    groups, old = operator.max_parallelism, operator.parallelism
    new = min(old + 1, groups) if parallelism is None else parallelism
    plan = RescalePlan(groups, old, new)  # checks the parallelism before anything is read
    load = operator.key_group_bytes()
    heaviest = nlargest(top, range(groups), key=load.weights.__getitem__)
    rescale = RescaleReport(plan, load)
    try:
        keys = tuple(operator.key_sizes(top))
    except (UnknownKeysError, NotFramedError) as error:
        return OperatorReport(operator, load, tuple(heaviest), (), rescale, str(error))
    return OperatorReport(operator, load, tuple(heaviest), keys, rescale)
