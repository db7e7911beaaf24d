"""Avro's verdict about two schemas, against those of its own classes."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from support.golden import FOLDER
from support.inside.serializers import AvroSerializer, Finding, resolve, worst

ROW = "org.apache.avro.generic.GenericRecord"


def pairs() -> list[dict[str, str]]:
    """Return the pairs of schemas of which Avro was asked."""
    text = (FOLDER / "avro_verdicts.jsonl").read_text(encoding="ascii")
    head, *lines = map(json.loads, text.splitlines())
    assert head == {"avro": "1.12.1"}
    return lines


def resolved(old: Any, new: Any, java_class: str = ROW, *known: str) -> list[Finding]:
    texts = (each if isinstance(each, str) else json.dumps(each) for each in (old, new))
    before, after = (AvroSerializer(name, text) for name, text in zip((java_class, ROW), texts))
    return [*resolve(before, after, known)]


def test_verdicts_are_those_of_avro() -> None:
    pytest.importorskip("fastavro")
    wrong = {}
    for pair in pairs():
        findings = resolved(pair["old"], pair["new"])
        expected = pair["verdict"].replace(" ", "_")
        if worst(findings) != ("incompatible" if expected.startswith("raises") else expected):
            wrong[pair["old"], pair["new"]] = (expected, [*map(str, findings)])
    assert wrong == {}
    assert len(pairs()) == 152


def record(*fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": "x.R", "fields": list(fields), **more}


A = {"name": "a", "type": "int"}
E, F = ({"type": kind, "name": kind[0].upper()} for kind in ("enum", "fixed"))
REASONS: list[tuple[Any, Any, list[str]]] = [
    (record(A), record(A, A | {"name": "b"}), ["field b: added, without a default"]),
    (record(A), record(A | {"type": "string"}), ["field a: int is not read as string"]),
    (record(A), record(A, name="x.S"), ["x.R is x.S"]),
    (record(A), record(A | {"default": 5}), ["another schema, by which Avro reads the values"]),
    (
        record(A, A | {"name": "b"}),
        record(A | {"aliases": ["b"]}),
        ["field a: by its aliases it is a and b"],
    ),
    (
        record(A | {"type": {"type": "array", "items": "long"}}),
        record(A | {"type": {"type": "array", "items": "int"}}),
        ["field a, items: long is not read as int"],
    ),
    (E | {"symbols": ["A", "B"]}, E | {"symbols": ["B"]}, ["constants are removed: A"]),
    (F | {"size": 2}, F | {"size": 3}, ["2 bytes are 3"]),
    (["null", "int"], ["null", "string"], ["no branch of the union reads int"]),
]


@pytest.mark.parametrize(("old", "new", "reasons"), REASONS)
def test_findings_name_the_place_and_the_rule(old: Any, new: Any, reasons: list[str]) -> None:
    pytest.importorskip("fastavro")
    assert [*map(str, resolved(old, new))] == reasons


def test_types_that_are_in_several_fields() -> None:
    """Their reasons do not double with each of 60 types that has the one before it twice."""
    pytest.importorskip("fastavro")

    def nested(scalar: str) -> Any:
        made = record({"name": "a", "type": scalar}, name="T0")
        for number in range(1, 60):
            again = {"name": "b", "type": made["name"]}
            made = record({"name": "a", "type": made}, again, name=f"T{number}")
        return made

    findings = [*map(str, resolved(nested("int"), nested("string")))]
    assert len(findings) == 60
    assert findings[0].endswith(", field a: int is not read as string")


def test_the_class_has_to_be_there() -> None:
    """Flink's snapshot of Avro finds the class by its name, and compares none."""
    [finding] = resolved(record(A), record(A), "x.R")
    assert (finding.verdict, str(finding)) == ("unknown", "it takes a job that still has x.R")
    assert resolved(record(A), record(A), "x.R", "x.R") == []


def test_schemas_that_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without fastavro, and of what is no schema; the same text is the same without it."""
    [finding] = resolved(record(A | {"aliases": 5}), record(A | {"aliases": 5, "type": "long"}))
    assert finding.verdict == "unknown"
    deep: Any = "int"
    for _ in range(500):
        deep = {"type": "array", "items": deep}
    [finding] = resolved(record(A), record(A | {"type": deep}))
    assert "nests" in finding.reason
    [finding] = resolved("{}", record(A))
    assert finding.verdict == "unknown"
    assert str(finding).startswith("the schemas of Avro are not compared: ")
    monkeypatch.setitem(sys.modules, "fastavro", None)
    monkeypatch.setitem(sys.modules, "fastavro.schema", None)
    assert resolved("{}", "{}") == []
    [finding] = resolved(record(A), record(A | {"type": "long"}))
    assert "are parsed with fastavro" in finding.reason
