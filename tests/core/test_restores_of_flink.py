"""What `restore_report` says of the changes of a job's types that real Flink restored, or refused.

The old job put values into its state and took a savepoint, which the new one restored on each
backend; `vectors/restores-*` have the savepoints of both, and what Flink said.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import NamedTuple

import pytest
from support.bytes.real_savepoints import corpus

from keygroups.savepoint import OperatorRestore, RestoreReport, read_savepoint

FLINKS = ("1.20.5", "2.3.0", "1.20.5-2.3.0")
"""The versions of Flink, and one of the old job before one of the new job."""
Refusals = dict[str, str | None]


class Said(NamedTuple):
    """What a report says of a change: restored, refused, or None, and why."""

    restores: bool | None
    reasons: str


@lru_cache
def refusals(flink: str) -> dict[str, Refusals]:
    """Return why Flink refused each change, by the backend."""
    text = (corpus(f"restores-{flink}") / "refusals.jsonl").read_text(encoding="ascii")
    lines = [json.loads(line) for line in text.splitlines()]
    return {line.pop("name"): line for line in lines}


@lru_cache
def report(flink: str) -> RestoreReport:
    folder = corpus(f"restores-{flink}")
    return read_savepoint(folder / "old").restore_report(read_savepoint(folder / "new"))


def said_by_report(flink: str) -> dict[str, Said]:
    """Return the verdict of the report about each change, by the name of its state or timers."""
    found = {}
    for operator in report(flink).operators:
        for state in operator.states:
            name = state.state.removeprefix("_timer_state/event_")
            verdicts = {state.verdict, *of_keys(operator, name)}
            restores = None if "unknown" in verdicts else True
            restores = False if "incompatible" in verdicts else restores
            found[name] = Said(restores, "; ".join((*operator.reasons, *state.reasons)))
    return found


def of_keys(operator: OperatorRestore, name: str) -> list[str]:
    """Return the verdict about the keys of an operator that has one state."""
    return [operator.own_verdict] if name.startswith("key ") else []


MISSING = "a job that still has"
OTHER_KRYO = "Kryo 2 wrote values that Kryo 5 does not read, which Flink does not look at"
HANGS = {
    "@evolved.RemovedGone": MISSING,
    "@evolved.RemovedGeneric": MISSING,
    "pojo:evolved.Base+evolved.Gone -> pojo:evolved.Base": MISSING,
    "kryo:evolved.Generic+evolved.GoneGeneric -> kryo:evolved.Generic": MISSING,
    "MAP of KeyAdded": "RocksDB migrates no map whose keys changed",
    "MAP of KeyAdded to Added": "RocksDB migrates no map whose keys changed",
    "MAP of More to Added": "RocksDB migrates no map whose keys changed",
    "@evolved.Retyped is not registered": "with which the hashmap backend may not read it",
    **{
        f"{name} is not registered": MISSING
        for name in (
            *("@evolved.Moved", "@evolved.MovedEnum", "LIST(@evolved.Moved)"),
            *("kryo:evolved.GoneGeneric", "@evolved.RemovedGone"),
            *("SPLIT_DISTRIBUTE @evolved.Moved", "BROADCAST @evolved.Moved"),
        )
    },
}
"""The changes of which a savepoint does not tell: on which backend, and is there the class."""


@pytest.mark.long
@pytest.mark.parametrize("flink", FLINKS)
def test_verdicts_are_what_flink_did(flink: str) -> None:
    says = said_by_report(flink)
    wrong = {
        name: (says[name], why)
        for name, why in refusals(flink).items()
        if says[name].restores is not None
        and {refusal is None for refusal in why.values()} != {says[name].restores}
    }
    of_kryo = {name for name in wrong if OTHER_KRYO in wrong[name][0].reasons}
    assert wrong.keys() == of_kryo
    assert len(of_kryo) == (8 if flink == FLINKS[-1] else 0)
    assert len(refusals(flink)) == 245
    assert sum(each.restores is True for each in says.values()) > 100
    assert sum(each.restores is False for each in says.values()) > 80


@pytest.mark.long
@pytest.mark.parametrize("flink", FLINKS)
def test_what_is_not_known_is_named(flink: str) -> None:
    """Flink refuses each of them on one backend at least: the job of these has no such class."""
    unknown = {
        name: each.reasons for name, each in said_by_report(flink).items() if each.restores is None
    }
    refused = {name for name, each in said_by_report(flink).items() if OTHER_KRYO in each.reasons}
    assert unknown.keys() == HANGS.keys() - refused
    for name, reasons in unknown.items():
        assert HANGS[name] in reasons
        assert any(refusals(flink)[name].values()), name
