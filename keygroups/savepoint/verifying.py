"""Verification that a savepoint is complete and undamaged, with its state where Flink looks.

`Savepoint.verify` returns a `SavepointVerification`, with an `OperatorVerification` for each
operator; both have a `FaultCount` for each kind of fault that occurs: their number, and the first
few, each a `StateFault`. `keygroups.spark.verify_savepoint` verifies on executors, and
`keygroups verify PATH` in a shell. For an unaligned checkpoint, which holds the records between
operators too, `Operator.in_flight_data` has a `ChannelState` for each channel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from keygroups._show.tables import Section, html_sections
from keygroups.errors import printable, short
from keygroups.savepoint._metadata.handles import ChannelState
from keygroups.savepoint._verification.faults import FaultCount, StateFault

__all__ = [
    "ChannelState",
    "FaultCount",
    "OperatorVerification",
    "SavepointVerification",
    "StateFault",
]
__dir__ = __all__.copy

_LONGEST = 100  # characters of an operator's name


@dataclass(frozen=True)
class OperatorVerification:
    """Verification of an operator: the count of its entries of keyed state, and its faults.

    `operator` is its uid, name or id. `unverified` says what nobody can tell without the job's
    classes, such as the key groups of keys whose hash is not known.
    """

    operator: str
    operator_id: str
    entries: int
    faults: tuple[FaultCount, ...]
    unverified: tuple[str, ...]

    @property
    def has_faults(self) -> bool:
        """Whether anything is at fault."""
        return any(count.is_fault for count in self.faults)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"{short(self.operator, _LONGEST)}: {self.entries:,} entries"
        yield from _indented(self.faults)
        for text in self.unverified:
            yield f"  not verified: {printable(text)}"


@dataclass(frozen=True)
class SavepointVerification:
    """Whether all of a savepoint is there, undamaged, and where Flink looks for it.

    `files` is how many streams `_metadata` names that are in files, `bytes` how many bytes they
    have, `faults` which of them are not there as it says; `operators` are those with state.
    `str()` says what is at fault, with a few of each kind.
    """

    path: str
    files: int
    bytes: int
    faults: tuple[FaultCount, ...]
    operators: tuple[OperatorVerification, ...]

    @property
    def has_faults(self) -> bool:
        """Whether anything is at fault."""
        return any(count.is_fault for count in self.faults) or any(
            operator.has_faults for operator in self.operators
        )

    def __str__(self) -> str:
        lines = [f"verified: {printable(self.path)}", self._summary(), *_indented(self.faults)]
        shown = (by for by in self.operators if by.faults or by.unverified)
        return "\n".join([*lines, *map(str, shown)])

    def __repr__(self) -> str:
        return f"<SavepointVerification: {self._summary()}>"

    def _summary(self) -> str:
        entries = sum(operator.entries for operator in self.operators)
        counts = [*self.faults, *(count for by in self.operators for count in by.faults)]
        faults = sum(count.count for count in counts if count.is_fault)
        result = f"{faults:,} faults" if faults else "no fault"
        return (
            f"{self.files:,} files of {self.bytes:,} bytes, {len(self.operators):,} operators, "
            f"{entries:,} entries: {result}"
        )

    def _repr_html_(self) -> str:
        yielded = [("", count) for count in self.faults]
        yielded += [(by.operator, count) for by in self.operators for count in by.faults]
        rows = [
            (short(operator, _LONGEST), count.text, str(example))
            for operator, count in yielded
            for example in count.examples
        ]
        texts = [printable(self.path), self._summary()]
        texts += [
            f"{by.operator}: not verified: {text}"
            for by in self.operators
            for text in by.unverified
        ]
        if not rows:
            return html_sections([Section(texts)])
        header = ("operator", "fault", "place")
        return html_sections([Section(texts, header, rows, (1, 2), "The first few of each kind")])


def _indented(counts: Iterable[FaultCount]) -> Iterator[str]:
    """Yield the lines of counts, indented."""
    for count in counts:
        yield from (f"  {line}" for line in str(count).splitlines())
