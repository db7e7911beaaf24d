"""Avro's verdict about two schemas: whether one reads the values that another wrote.

Flink: AvroSerializerSnapshot. Avro: SchemaCompatibility, Schema.equals.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from keygroups._serializers.jvm.avro import checked_schema, parsed_schema

_READ_AS = {  # scalars, and the others that are read as each
    "long": {"int"},
    "float": {"int", "long"},
    "double": {"int", "long", "float"},
    "bytes": {"string"},
    "string": {"bytes"},
}
Reason = tuple[str, ...]
_NAMED = ("record", "enum", "fixed")
_NOT_COMPARED = {"doc", "aliases", "namespace"}


def schemas_are_equal(old: str, new: str) -> bool:
    """Return whether Avro's Schema.equals says so; the schemas are JSON.

    Raises what `checked_schema` raises, as `unread` does.
    """
    with checked_schema():
        texts = (json.dumps(_compared(parsed_schema(each)), sort_keys=True) for each in (old, new))
        return len({*texts}) == 1


def unread(old: str, new: str) -> list[tuple[str, str]]:
    """Return places and reasons for which values of one schema are not read as another's."""
    with checked_schema():
        writer, reader = parsed_schema(old), parsed_schema(new)
        reading = _Reading(_names_in(writer), _names_in(reader))
        reasons = reading.reasons(writer, reader)
        return [(", ".join(places), reason) for *places, reason in reasons]


def _kind(node: Any) -> str:
    """Return the type of a part of a parsed schema, or the name that it refers to."""
    if isinstance(node, list):
        return "union"
    kind = node if isinstance(node, str) else node["type"]
    return "record" if kind == "error" else kind


def _compared(node: Any) -> Any:
    """Return a part of a schema without what Schema.equals leaves out."""
    if isinstance(node, list):
        return [*map(_compared, node)]
    if isinstance(node, str):
        return node
    kind = _kind(node)
    left_out = {*_NOT_COMPARED, *(["default"] if kind == "enum" else [])}
    kept = {
        name: value
        for name, value in node.items()
        if name not in left_out and not name.startswith("__")
    }
    kept["type"] = kind
    for name in kept.keys() & {"items", "values"}:
        kept[name] = _compared(kept[name])
    if kind == "record":
        kept["fields"] = [*map(_compared_field, node["fields"])]
    return kind if kept.keys() == {"type"} else kept


def _compared_field(field: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in field.items() if name not in _NOT_COMPARED}
    return {"order": "ascending", **kept, "type": _compared(field["type"])}


def _names_in(node: Any) -> dict[str, Any]:
    """Return the named types in a parsed schema by their full names."""
    made: dict[str, Any] = {}
    if isinstance(node, list):
        for branch in node:
            made |= _names_in(branch)
    elif isinstance(node, dict):
        if _kind(node) in _NAMED:
            made[node["name"]] = node
        fields = (field["type"] for field in node.get("fields", ()))
        for inner in (*fields, node.get("items"), node.get("values")):
            made |= _names_in(inner)
    return made


class _Reading:
    """The comparison of two schemas, whose named types may be in themselves.

    A reason is a tuple of the places that lead to it, and of its text.
    """

    def __init__(self, old_names: Mapping[str, Any], new_names: Mapping[str, Any]) -> None:
        self._old_names, self._new_names = old_names, new_names
        self._known: dict[tuple[int, int], list[Reason]] = {}

    def reasons(self, old: Any, new: Any) -> list[Reason]:
        """Return why values of a part of the old schema are not read by one of the new."""
        if isinstance(old, str):  # a scalar, or the name of a type
            old = self._old_names.get(old, old)
        if isinstance(new, str):
            new = self._new_names.get(new, new)
        pair = id(old), id(new)
        if pair in self._known:  # The first of them is enough, or they would double with each.
            return self._known[pair][:1]
        self._known[pair] = []  # Until it is known that they are not, they are read.
        self._known[pair] = [*self._reasons(old, new)]
        return self._known[pair]

    def _reasons(self, old: Any, new: Any) -> Iterator[Reason]:
        kind, other = _kind(old), _kind(new)
        if kind == "union":
            for branch in old:
                yield from self.reasons(branch, new)
        elif other == "union":
            if all(self.reasons(old, branch) for branch in new):
                yield (f"no branch of the union reads {kind}",)
        elif kind != other:
            if kind not in _READ_AS.get(other, ()):
                yield (f"{kind} is not read as {other}",)
        elif kind in _NAMED:
            yield from self._named(kind, old, new)
        elif kind in ("array", "map"):
            inside = "items" if kind == "array" else "values"
            yield from ((inside, *each) for each in self.reasons(old[inside], new[inside]))

    def _named(self, kind: str, old: Any, new: Any) -> Iterator[Reason]:
        if not _is_of_name(old["name"], new):
            yield (f"{old['name']} is {new['name']}",)
        if kind == "record":
            yield from self._fields(old, new)
        elif kind == "fixed" and old["size"] != new["size"]:
            yield (f"{old['size']} bytes are {new['size']}",)
        elif kind == "enum" and "default" not in new:
            gone = [name for name in old["symbols"] if name not in new["symbols"]]
            yield from [(f"constants are removed: {', '.join(gone)}",)] if gone else []

    def _fields(self, old: Any, new: Any) -> Iterator[Reason]:
        types = {field["name"]: field["type"] for field in old["fields"]}
        for field in new["fields"]:
            place = f"field {field['name']}"
            names = [name for name in (field["name"], *field.get("aliases", ())) if name in types]
            if len(names) > 1:
                yield place, f"by its aliases it is {' and '.join(names)}"
            elif names:
                inner = self.reasons(types[names[0]], field["type"])
                yield from ((place, *each) for each in inner)
            elif "default" not in field:
                yield place, "added, without a default"


def _is_of_name(name: str, new: Any) -> bool:
    """Return whether a type is read by its name without the namespace, or by an alias."""
    package = new["name"].rpartition(".")[0]
    aliases: Sequence[str] = new.get("aliases", ())
    full = {alias if "." in alias or not package else f"{package}.{alias}" for alias in aliases}
    return name.rpartition(".")[2] == new["name"].rpartition(".")[2] or name in full
