"""Whether a savepoint restores in another job, and why not.

`Savepoint.restore_report` returns a `RestoreReport`, with an `OperatorRestore` for each operator;
in it is a `StateRestore` for each state. Their `verdict` is Flink's own about the serializers:

    as_is            restored as it is
    reconfigured     restored as it is, the job's serializer takes over the old one's numbers
    after_migration  restored, and each value is written anew, with the job's serializer
    unknown          what Flink says depends on what no savepoint has: the reason names it
    incompatible     refused

`keygroups restore OLD NEW` prints it in a shell.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from keygroups._serializers.compatibility import INCOMPATIBLE, UNKNOWN, worst_of
from keygroups._show.tables import Section, html_sections
from keygroups.errors import printable, short

__all__ = ["OperatorRestore", "RestoreReport", "StateRestore"]
__dir__ = __all__.copy

_LONGEST = 100  # characters of a name


@dataclass(frozen=True)
class StateRestore:
    """A state of a savepoint in another job; `kind` is that of StateDescriptor, or the mode.

    `only` is "only_here" for a state that the job does not register, which Flink keeps if the job
    still has its classes, "only_there" for one that starts empty, else None. `reasons` say what
    Flink minds and why, `remedy` what mends it, "" where nothing has to be done.
    """

    state: str
    kind: str
    only: str | None
    verdict: str
    reasons: tuple[str, ...]
    remedy: str

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"{short(self.state, _LONGEST)}: {_shown(self.verdict)}"
        yield from (f"  {printable(reason)}" for reason in self.reasons)
        if self.remedy:
            yield f"  -> {printable(self.remedy)}"


@dataclass(frozen=True)
class OperatorRestore:
    """An operator of a savepoint in another job, found by its id.

    `operator` is its uid, name or id. `only` is "only_here" for one that the job has not, whose
    state Flink refuses unless it may drop it, "only_there" for one that starts without state,
    else None. `reasons` are those that are no single state's, such as the type of its keys.
    """

    operator: str
    operator_id: str
    only: str | None
    reasons: tuple[str, ...]
    remedy: str
    states: tuple[StateRestore, ...]
    own_verdict: str

    @property
    def verdict(self) -> str:
        """The worst verdict of it and of its states."""
        return worst_of([self.own_verdict, *(state.verdict for state in self.states)])

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"{short(self.operator, _LONGEST)}: {_shown(self.verdict)}"
        if self.reasons:
            yield from (f"  {printable(reason)}" for reason in self.reasons)
            yield f"  -> {printable(self.remedy)}"
        for state in self.states:
            if state.reasons:
                yield from (f"  {line}" for line in state._lines())


@dataclass(frozen=True)
class RestoreReport:
    """Whether a savepoint restores in a job; `path` is its own, `job` that of the job's.

    `restores` is True where Flink restores it, False where it refuses, and None where that
    depends on what is named in `reasons`. `str()` says why, with what mends it.
    """

    path: str
    job: str
    operators: tuple[OperatorRestore, ...]

    @property
    def verdict(self) -> str:
        """The worst verdict of all operators."""
        return worst_of([operator.verdict for operator in self.operators])

    @property
    def restores(self) -> bool | None:
        """Whether Flink restores it, None where that is not known."""
        return {INCOMPATIBLE: False, UNKNOWN: None}.get(self.verdict, True)

    def __str__(self) -> str:
        texts = (str(operator) for operator in self.operators if _is_told(operator))
        return "\n".join([*self._head(), *texts])

    def _head(self) -> list[str]:
        paths = f"savepoint: {printable(self.path)}", f"job:       {printable(self.job)}"
        return [*paths, self._summary()]

    def _summary(self) -> str:
        states = sum(len(operator.states) for operator in self.operators)
        text = {True: "it restores", False: "Flink refuses it", None: "not known"}[self.restores]
        return f"{len(self.operators):,} operators, {states:,} states: {text}"

    def __repr__(self) -> str:
        return f"<RestoreReport: {self._summary()}>"

    def _repr_html_(self) -> str:
        rows = [
            (short(operator.operator, _LONGEST), name, _shown(verdict), "; ".join(why), remedy)
            for operator in self.operators
            for name, verdict, why, remedy in _rows(operator)
        ]
        header = ("operator", "state", "verdict", "why", "what mends it")
        table = Section([], header if rows else (), rows, range(1, len(header)))
        return html_sections([Section(self._head()), table])


def _rows(operator: OperatorRestore) -> Iterator[tuple[str, str, tuple[str, ...], str]]:
    if operator.reasons:
        yield "", operator.own_verdict, operator.reasons, operator.remedy
    for state in operator.states:
        yield short(state.state, _LONGEST), state.verdict, state.reasons, state.remedy


def _is_told(operator: OperatorRestore) -> bool:
    return bool(operator.reasons or any(state.reasons for state in operator.states))


def _shown(verdict: str) -> str:
    return verdict.replace("_", " ")
