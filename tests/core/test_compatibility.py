"""Flink's verdicts about two serializers, against those of real Flink."""

from __future__ import annotations

import gzip
import json
from functools import lru_cache
from typing import Any

import pytest
from support.golden import FOLDER
from support.inside.serializers import (
    Finding,
    Member,
    NullableSerializer,
    PojoSerializer,
    RowDataSerializer,
    ScalaEnumSerializer,
    Serializer,
    UnknownSerializer,
    classes_of,
    resolve,
    worst,
)

from keygroups.logical_types import LogicalType

VERSIONS = ("1.20.5", "2.3.0")


@lru_cache
def pairs(version: str) -> list[dict[str, Any]]:
    """Return the pairs of serializers of which a version of Flink was asked."""
    text = gzip.decompress((FOLDER / f"verdicts-{version}.jsonl.gz").read_bytes()).decode("ascii")
    head, *lines = map(json.loads, text.splitlines())
    assert head == {"flink": version}
    return lines


def read(snapshot: str, version: str) -> Serializer:
    kryo = 5 if version >= "2" else 2
    return Serializer.from_snapshot(b"\0\0\0\2" + bytes.fromhex(snapshot), kryo_version=kryo)


IF = {
    "@evolved.RemovedKept": ("evolved.Stayed", "after migration"),
    "pojo:evolved.Base+evolved.Child -> pojo:evolved.Base": ("evolved.Child", "reconfigured"),
    "kryo:evolved.Generic+evolved.Same -> kryo:evolved.Generic": ("evolved.Same", "reconfigured"),
}
"""The pairs whose verdict is this one if the job has a class, which no snapshot says."""
GONE = {
    "@evolved.RemovedGone": "evolved.Moved",
    "@evolved.RemovedGeneric": "evolved.GoneGeneric",
    "pojo:evolved.Base+evolved.Gone -> pojo:evolved.Base": "evolved.Gone",
    "kryo:evolved.Generic+evolved.GoneGeneric -> kryo:evolved.Generic": "evolved.GoneGeneric",
}
"""The pairs that Flink refuses as the job has no such class any more."""


def of_flink(pair: dict[str, Any]) -> str:
    """Return Flink's verdict; an exception refuses the state too."""
    verdict = str(pair["verdict"])
    return "incompatible" if verdict.startswith("raises") else verdict.replace(" ", "_")


def resolved(pair: dict[str, Any], version: str, *known: str) -> list[Finding]:
    old, new = (read(pair[side], version) for side in ("old", "new"))
    return [*resolve(old, new, known)]


@pytest.mark.parametrize("version", VERSIONS)
def test_verdicts_are_those_of_flink(version: str) -> None:
    wrong = {}
    for pair in pairs(version):
        if pair["name"] not in (*IF, *GONE):
            findings = resolved(pair, version)
            if worst(findings) != of_flink(pair):
                wrong[pair["name"]] = (of_flink(pair), [*map(str, findings)])
    assert wrong == {}
    assert len(pairs(version)) == 156


@pytest.mark.parametrize("version", VERSIONS)
def test_verdicts_that_hang_on_a_class_name_it(version: str) -> None:
    asked = {pair["name"]: pair for pair in pairs(version)}
    for name, (missing, verdict) in IF.items():
        findings = resolved(asked[name], version)
        assert worst(findings) == "unknown", name
        assert any(missing in str(finding) for finding in findings), name
        known = resolved(asked[name], version, missing)
        assert worst(known) == of_flink(asked[name]) == verdict.replace(" ", "_"), name
    for name, missing in GONE.items():
        findings = resolved(asked[name], version)
        assert worst(findings) == "unknown", name
        assert any(missing in str(finding) for finding in findings), name
        assert of_flink(asked[name]) == "incompatible"


REASONS = {
    "@evolved.Added": ["field b: added"],
    "@evolved.Removed": ["field b: removed"],
    "@evolved.Retyped": ["field b: LONG -> STRING"],
    "@evolved.Outer": ["field in, field b: added"],
    "@evolved.Fewer": ["constants are removed: B"],
    "@evolved.More": ["constants are added, or in another order"],
    "@evolved.Moved -> @evolved.MovedTo": ["the class evolved.Moved is evolved.MovedTo"],
    "@evolved.MovedEnum -> @evolved.MovedEnumTo": [
        "the class evolved.MovedEnum is evolved.MovedEnumTo"
    ],
    "MAP(STRING;@evolved.Added)": ["MAP 1, field b: added"],
    "TUPLE(INT;LONG) -> TUPLE(INT)": ["2 fields are 1"],
    "LIST(INT) -> LIST(LONG)": ["LIST: INT -> LONG"],
    "NULLABLE(INT) -> PADDED(INT)": ["nulls are padded in one of both"],
    "ROW(INT) -> ROW_WITHOUT_KIND(INT)": ["rows have their kind in one of both"],
    "sql:INT -> sql:BIGINT": ["INT -> LONG"],
    "sql:ROW<a INT> -> sql:ROW<a INT, b STRING>": ["column 1: none -> STRING"],
    "sql:ROW<a INT> -> sql:ROW<a INT NOT NULL>": ["column 0: INT -> INT NOT NULL"],
    "sql:ARRAY<INT> -> sql:ARRAY<BIGINT>": ["SQL_ARRAY(INT) -> SQL_ARRAY(BIGINT)"],
    "sql:ROW<a ROW<b INT>> -> sql:ROW<a ROW<c INT>>": ["column 0: ROW<`b` INT> -> ROW<`c` INT>"],
    "kryo:evolved.Generic -> kryo:evolved.Generic+evolved.Same": [
        "classes are registered in another order"
    ],
}


def test_findings_name_the_place_and_the_rule() -> None:
    asked = {pair["name"]: pair for pair in pairs("2.3.0")}
    found = {name: [*map(str, resolved(asked[name], "2.3.0"))] for name in REASONS}
    assert found == REASONS


class Own(Serializer):
    name, snapshot, versions = "OWN", "a.Own", (1,)


def test_what_only_the_job_decides_is_unknown() -> None:
    """A serializer of the job, an unknown one, and one whose rule Flink keeps elsewhere."""
    longs = Serializer.from_snapshot(read_hex("LONG"))
    for old, new, text in [
        (Own(), Own(), "only the job's own OWN decides; both are the same"),
        (UnknownSerializer("a.B"), longs, "only the job's own a.B decides; both are not the same"),
        (
            ScalaEnumSerializer("a.E", [("A", 0)]),
            ScalaEnumSerializer("a.E", [("A", 0), ("B", 1)]),
            "another serializer of ENUM(a.E): what Flink says of these is not known here",
        ),
    ]:
        [finding] = resolve(old, new)
        assert (finding.verdict, str(finding)) == ("unknown", text)
    assert [
        *resolve(ScalaEnumSerializer("a.E", [("A", 0)]), ScalaEnumSerializer("a.E", [("A", 0)]))
    ] == []


def read_hex(name: str) -> bytes:
    return b"\0\0\0\2" + bytes.fromhex({p["name"]: p for p in pairs("2.3.0")}[name]["old"])


def test_kryo_of_flink_1_is_not_read_by_flink_2() -> None:
    """The snapshots say nothing of it: FORMAT.md, "Kryo"."""
    old, new = (
        Serializer.from_snapshot(read_hex("@evolved.Generic"), kryo_version=version)
        for version in (2, 5)
    )
    [finding] = resolve(old, new)
    assert finding.verdict == "incompatible"
    assert "Kryo 2 wrote values that Kryo 5 does not read" in finding.reason


@pytest.mark.parametrize("padding", [1, 4])
def test_padding_of_any_size(padding: int) -> None:
    """One has as many bytes as its value: a BYTE has one, an INT four."""
    number = Serializer.from_snapshot(read_hex("LONG"))
    plain, padded = NullableSerializer(number), NullableSerializer(number, padding)
    assert [*resolve(padded, padded)] == []
    for old, new in ((plain, padded), (padded, plain)):
        [finding] = resolve(old, new)
        assert str(finding) == "nulls are padded in one of both"


def test_comments_of_nested_fields_are_not_known() -> None:
    """Flink minds them, and a row has no names here if its fields have comments."""
    row = LogicalType("ROW", fields=(LogicalType("INT"),))
    same, others = (RowDataSerializer([row], [], (stream,)) for stream in (b"a", b"b"))
    assert [*resolve(same, same)] == []
    [finding] = resolve(same, others)
    assert (finding.verdict, finding.reason[:8]) == ("unknown", "comments")


def test_subclasses_that_state_has_met() -> None:
    longs = Serializer.from_snapshot(read_hex("LONG"))
    child = Member("a.Child", None, PojoSerializer("a.Child", ["a"], [longs]))
    old, new = PojoSerializer("a.B", met=[child]), PojoSerializer("a.B", registered=[child])
    assert [verdict for verdict, _, _ in resolve(old, new)] == ["reconfigured"]
    assert [*map(str, resolve(old, PojoSerializer("a.B")))] == [
        "subclass a.Child: it takes a job that still has the class",
        "state has subclasses that nobody registered",
    ]
    assert [*classes_of(old)] == ["a.B", "a.Child", "a.Child"]


@pytest.mark.parametrize(
    ("name", "is_known"),
    [
        *[("Child", False), ("a.Child", False), ("java.util.UUID", True), ("[I", True)],
        *[(name, True) for name in ("int", "long", "short", "byte", "char", "float", "double")],
        *[("boolean", True), ("void", True)],
    ],
)
def test_classes_that_every_job_has(name: str, is_known: bool) -> None:
    """Class.getName of a primitive has no dot, nor has that of a class in the default package."""
    child = Member(name, None, Serializer.from_snapshot(read_hex("LONG")))
    old, new = PojoSerializer("a.B", registered=[child]), PojoSerializer("a.B")
    findings = [*map(str, resolve(old, new))]
    assert (
        f"subclass {name}: it takes a job that still has the class" not in findings
    ) == is_known
