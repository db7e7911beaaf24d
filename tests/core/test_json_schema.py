"""The published schema of what the command prints as JSON, beside what it prints."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import pytest
from support.bytes.real_savepoints import point

from keygroups.cli import main

SCHEMA = json.loads(files("keygroups.cli").joinpath("output-1.schema.json").read_text("utf-8"))
TYPES: dict[str, type | tuple[type, ...]] = {
    "null": type(None),
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "string": str,
    "array": list,
    "object": dict,
}
KEYWORDS = {"$ref", "additionalProperties", "anyOf", "description", "enum", "items"}
KEYWORDS |= {"properties", "required", "type"}


def is_of(value: object, name: str) -> bool:
    return isinstance(value, TYPES[name]) and isinstance(value, bool) == (name == "boolean")


def fits(value: Any, schema: Any) -> bool:
    """Tell whether a value fits a schema, of the keywords of JSON Schema that this one has."""
    if isinstance(schema, bool):
        return schema
    assert schema.keys() <= KEYWORDS, schema.keys()
    if "$ref" in schema:
        return fits(value, SCHEMA["$defs"][schema["$ref"].removeprefix("#/$defs/")])
    if "anyOf" in schema and not any(fits(value, each) for each in schema["anyOf"]):
        return False
    names = schema.get("type", [*TYPES])
    if not any(is_of(value, name) for name in ([names] if isinstance(names, str) else names)):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if isinstance(value, list):
        return all(fits(item, schema.get("items", True)) for item in value)
    if not isinstance(value, dict):
        return True
    known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    return value.keys() >= {*schema.get("required", ())} and all(
        fits(member, known.get(name, others)) for name, member in value.items()
    )


def definition(name: str) -> Any:
    return {"$ref": f"#/$defs/{name}"}


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["2.3.0-heap-canonical", "2.3.0-wide-canonical", "2.3.0-pojo-canonical"]
)
def test_entries(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    savepoint, lines = point(name).read(), 0
    for operator in savepoint.operators:
        for state in operator.states:
            export = ["--operator", operator.operator_id, "--state", state.name, "--export", "-"]
            assert main(["savepoint", savepoint.path, *export]) == 0
            for line in capsys.readouterr().out.splitlines():
                assert fits(json.loads(line), definition("entry")), line
                lines += 1
    assert lines > 50


def test_keys_the_doctor_and_errors(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(point("2.3.0-heaptimers-canonical").path)
    assert (
        main(["savepoint", path, "--operator", "by-string", "--key", "user-89019", "--json"]) == 0
    )
    key = json.loads(capsys.readouterr().out)
    assert main(["doctor", path, "--json"]) == 0
    doctor = json.loads(capsys.readouterr().out)
    assert main(["savepoint", path, "--operator", "nobody", "--json"]) == 2
    error = json.loads(capsys.readouterr().err)
    for name, value in {"key": key, "doctor": doctor, "error": error}.items():
        assert fits(value, definition(name))
        assert fits(value, {"anyOf": SCHEMA["anyOf"]})
        for missing in value:
            less = {member: value[member] for member in value if member != missing}
            assert not fits(less, definition(name))
        assert not fits(value | {"more": 1}, definition(name))


def test_its_version_is_in_its_name() -> None:
    assert SCHEMA["$id"] == "urn:keygroups:cli:output:1"
