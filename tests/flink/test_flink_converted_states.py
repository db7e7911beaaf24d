"""States that `convert_state` and `map_keys` write for a job whose types are others by now.

Real Flink writes them in an old job, and the new job restores them on each backend: what is in
its state then is what it puts there itself of the same numbers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.flink.evolved_jobs import Answer, EvolvedJobs, Kept, operator
from support.flink.flink_restores import BACKENDS

from keygroups.savepoint import (
    KryoFields,
    ListStateDescriptor,
    MapStateDescriptor,
    Pojo,
    ReducingStateDescriptor,
    SavepointEditor,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.types import LONG, STRING, TUPLE, KeyType

pytestmark = [
    pytest.mark.flink,
    pytest.mark.flink_since("1.20", "the API of its jobs"),
]

KEYS, PARALLELISM, DAY = 50, 2, 24 * 3600 * 1000
SERIALIZERS = {"evolved.Same": KryoFields(a="int", b="java.lang.String")}


class NewKeys(NamedTuple):
    """Keys of an operator in the old job and in the new one, and what `map_keys` takes."""

    old: str
    new: str
    function: Callable[[Any], Any]
    key_type: KeyType


class Conversion(NamedTuple):
    """A state in the old job and in the new one, and what `convert_state` takes.

    Without `to` that is the operator of a savepoint of the new job.
    """

    old: Kept
    new: Kept
    value: Callable[[Any], Any] | None = None
    to: Any = None


def moved(pojo: Any) -> Pojo:
    return Pojo("evolved.MovedTo", pojo._asdict())


def of_pair(pair: Any) -> Pojo:
    number, text = pair
    return Pojo("evolved.Same", {"a": number, "b": text})


def retyped(pojo: Any) -> Pojo:
    return Pojo("evolved.Retyped", {"a": pojo["a"], "b": f"s{pojo['b']}"})


def without(pojo: Any) -> Pojo:
    return Pojo("evolved.RemovedGone", {"a": pojo["a"]})


OLD, NEW = "@evolved.Moved", "@evolved.MovedTo"
CONVERSIONS = {
    "moved": Conversion(Kept("VALUE", OLD), Kept("VALUE", NEW), moved),
    "moved list": Conversion(Kept("LIST", OLD), Kept("LIST", NEW), moved),
    "moved map": Conversion(Kept("MAP", OLD, "STRING"), Kept("MAP", NEW, "STRING"), moved),
    "moved sum": Conversion(Kept("REDUCING", OLD), Kept("REDUCING", NEW), moved),
    "moved TTL": Conversion(Kept("LIST", OLD, None, DAY), Kept("LIST", NEW, None, DAY), moved),
    "wide": Conversion(
        Kept("VALUE", "INT"), Kept("VALUE", "LONG"), to=ValueStateDescriptor("wide", LONG)
    ),
    "wide list": Conversion(
        Kept("LIST", "INT"), Kept("LIST", "LONG"), to=ListStateDescriptor("wide list", LONG)
    ),
    "wide map": Conversion(
        Kept("MAP", "INT", "STRING", DAY),
        Kept("MAP", "LONG", "STRING", DAY),
        to=MapStateDescriptor("wide map", STRING, LONG, has_ttl=True),
    ),
    "wide sum": Conversion(
        Kept("REDUCING", "INT"),
        Kept("REDUCING", "LONG"),
        to=ReducingStateDescriptor("wide sum", LONG),
    ),
    "wide template": Conversion(Kept("VALUE", "INT"), Kept("VALUE", "LONG")),
    "text": Conversion(
        Kept("VALUE", "LONG"),
        Kept("VALUE", "STRING"),
        "s{}".format,
        ValueStateDescriptor("text", STRING),
    ),
    "pair": Conversion(
        Kept("VALUE", "TUPLE(INT;INT)"),
        Kept("VALUE", "TUPLE(LONG;STRING)"),
        lambda pair: (pair[0], f"s{pair[1]}"),
        ValueStateDescriptor("pair", TUPLE(LONG, STRING)),
    ),
    "of a tuple": Conversion(
        Kept("VALUE", "TUPLE(INT;STRING)"), Kept("VALUE", "@evolved.Same"), of_pair
    ),
    "of a row": Conversion(
        Kept("LIST", "ROW(INT;STRING)"), Kept("LIST", "@evolved.Same"), of_pair
    ),
    "of Kryo": Conversion(Kept("VALUE", "kryo:evolved.Same"), Kept("VALUE", "@evolved.Same")),
    "list of Kryo": Conversion(Kept("LIST", "kryo:evolved.Same"), Kept("LIST", "@evolved.Same")),
    "of a POJO": Conversion(Kept("VALUE", "@evolved.Same"), Kept("VALUE", "kryo:evolved.Same")),
    "retyped": Conversion(
        Kept("VALUE", "@evolved.Retyped"), Kept("VALUE", "@evolved.Retyped"), retyped
    ),
    "field is gone": Conversion(
        Kept("VALUE", "@evolved.RemovedGone"), Kept("VALUE", "@evolved.RemovedGone"), without
    ),
    "enum": Conversion(Kept("VALUE", "@evolved.MovedEnum"), Kept("VALUE", "@evolved.MovedEnumTo")),
    "constant is gone": Conversion(
        Kept("VALUE", "@evolved.Fewer"), Kept("VALUE", "@evolved.Fewer"), lambda constant: "A"
    ),
    "SQL row": Conversion(
        Kept("VALUE", "sql:ROW<a INT, b STRING>"), Kept("VALUE", "sql:ROW<a BIGINT, b STRING>")
    ),
}
COUNT = Kept("VALUE", "LONG")
BY_KEYS = {
    "by-int": NewKeys("INT", "LONG", lambda key: key, LONG),
    "by-long": NewKeys("LONG", "STRING", "s{}".format, STRING),
    "by-pair": NewKeys(
        "TUPLE(INT;INT)",
        "TUPLE(LONG;STRING)",
        lambda key: (key[0], f"s{key[1]}"),
        TUPLE(LONG, STRING),
    ),
}


def operators(side: int) -> Iterator[Mapping[str, Any]]:
    """Yield the operators of the old job or of the new one."""
    sides = {name: (each.old, each.new) for name, each in CONVERSIONS.items()}
    yield operator("by", "STRING", [(name, both[side]) for name, both in sides.items()])
    for uid, keys in BY_KEYS.items():
        states = {"count": COUNT, "wide": sides["wide"][side]}
        yield operator(uid, (keys.old, keys.new)[side], states.items())


def text(value: Any) -> str:
    """Return a value of `StateJson.java`, in which the order of names is none."""
    return json.dumps(value, sort_keys=True)


def rows(answer: Answer) -> list[tuple[str, ...]]:
    """Return the value of each state of each key."""
    assert answer["refused"] is None
    assert not [row for row in answer["rows"] if "refused" in row or "unreadable" in row]
    return sorted(
        (row["operator"], row["state"], *(text(row["is"][name]) for name in ("key", "value")))
        for row in answer["rows"]
        if "is" in row
    )


@pytest.fixture(scope="module")
def saved(evolved_jobs: EvolvedJobs) -> list[Answer]:
    """The savepoints of both jobs, and what they put there."""
    return [
        evolved_jobs.saved(f"{side}", side, operators(side), KEYS, PARALLELISM) for side in (0, 1)
    ]


def test_flink_finds_what_was_converted(
    evolved_jobs: EvolvedJobs, saved: list[Answer], tmp_path: Path
) -> None:
    old = read_savepoint(saved[0]["path"], serializers=SERIALIZERS)
    new = read_savepoint(saved[1]["path"], serializers=SERIALIZERS)
    assert old.restore_report(new).restores is False
    with SavepointEditor(old, tmp_path / "new") as editor:
        by = editor.operator("by")
        for name, conversion in CONVERSIONS.items():
            by.convert_state(name, conversion.to or new.operator("by"), conversion.value)
        for uid, keys in BY_KEYS.items():
            editor.operator(uid).map_keys(keys.function, keys.key_type)
            editor.operator(uid).convert_state("wide", ValueStateDescriptor("wide", LONG))
    converted = read_savepoint(tmp_path / "new", serializers=SERIALIZERS)
    assert converted.restore_report(new).restores is True
    expected = rows(saved[1])
    assert len(expected) == KEYS * (len(CONVERSIONS) + 2 * len(BY_KEYS))
    path = (tmp_path / "new").as_uri()
    for answer in evolved_jobs.restored(operators(1), BACKENDS, path, KEYS, PARALLELISM):
        assert rows(answer) == expected
