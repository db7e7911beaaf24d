"""Real savepoints and checkpoints of Flink, with what Flink's own classes read in them.

`tests/vectors/savepoints.jsonl` and `formats.jsonl` say which; the points are in the archives of
those names beside them, `formats` those of less common formats, `jobs` (`job_points`) those of
jobs as production has them. What the library reads and what Flink read are both turned into
hashable values of one form, in which an int and a long, or two rows of different kinds, are not
the same.
"""

from __future__ import annotations

import atexit
import json
import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from keygroups.logical_types import LogicalType
from keygroups.savepoint import Operator, Savepoint, StateDescriptor, StateEntry, read_savepoint
from keygroups.state_keys import Serializer
from support.golden import FOLDER, lines
from support.inside.savepoints import Files


@lru_cache
def corpus(archive: str) -> Path:
    """Return the folder of an archive's points, unpacked once in a run."""
    folder = TemporaryDirectory(prefix=f"keygroups-{archive}-")
    atexit.register(folder.cleanup)
    root = Path(folder.name)
    with tarfile.open(FOLDER / f"{archive}.tar.xz") as packed:
        for member in packed:
            content = packed.extractfile(member)
            assert content is not None
            path = root / member.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.read())
    return root


@dataclass(frozen=True)
class Point:
    """One savepoint or checkpoint; `kind` is canonical, native or checkpoint."""

    name: str
    flink: str
    kind: str
    point: str
    moved_folders: tuple[str, ...]
    entries: str
    archive: str = "savepoints"

    def __str__(self) -> str:
        return self.name

    @property
    def path(self) -> Path:
        """The directory of `_metadata`."""
        return self.root / self.point

    @property
    def root(self) -> Path:
        """The folder of all points of the archive."""
        return corpus(self.archive)

    @property
    def moved(self) -> dict[str, str]:
        """Where the folders are now that its files name: by the end of their paths of then."""
        named = re.findall(rb"file:(/[ -~]+)", (self.path / "_metadata").read_bytes())
        folders = {str(one) for path in named for one in PurePosixPath(path.decode()).parents}
        return {
            old: str(self.root / new)
            for new in self.moved_folders
            for old in folders
            if old.replace("/", "_").endswith(f"_{PurePosixPath(new).name}")
        }

    @property
    def files(self) -> Files:
        """What opens its streams."""
        return Files(str(self.path), self.moved)

    def read(self) -> Savepoint:
        """Read it."""
        return read_savepoint(self.path, self.moved)

    def truth(self, what: str) -> Iterator[dict[str, Any]]:
        """Yield the lines of `metadata`, `states`, `operator_state` or `put`."""
        return self.lines(f"{self.name}/{what}.jsonl")

    def lines(self, file: str) -> Iterator[dict[str, Any]]:
        """Yield the lines of a file of the archive."""
        return _lines(self.root / file)

    def has(self, what: str) -> bool:
        """Whether there is such a file."""
        return (self.root / self.name / f"{what}.jsonl").exists()


def _points(archive: str) -> list[Point]:
    return [
        Point(
            line["name"],
            line["flink"],
            line["kind"],
            line["point"],
            tuple(line["moved"]),
            line["entries"],
            archive,
        )
        for line in lines(archive)
    ]


POINTS, FORMATS = map(_points, ("savepoints", "formats"))


def point(name: str) -> Point:
    """Return a point by its name."""
    (found,) = (one for one in (*POINTS, *FORMATS) if one.name == name)
    return found


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def true_lines(file: str, archive: str = "savepoints") -> Iterator[dict[str, Any]]:
    """Yield the entries that Flink read, each as it wrote it down."""
    return _lines(corpus(archive) / file)


@lru_cache
def true_entries(file: str, archive: str = "savepoints") -> list[tuple[Any, ...]]:
    """Return the entries that Flink read, as `seen_entry` has them."""
    return [
        (
            line["operator"],
            line["subtask"],
            line["state"],
            line["kind"],
            line["key_group"],
            true_value(line["key"], line.get("key_fields")),
            true_value(line["namespace"]),
            true_value(line.get("user_key"), line.get("user_key_fields")),
            true_value(line.get("value"), line.get("value_fields")),
            line.get("ttl_timestamp"),
            line.get("timestamp"),
        )
        for line in true_lines(file, archive)
    ]


def true_value(value: Any, fields: list[tuple[str, Any]] | None = None) -> Any:
    """Return Flink's reading in one form; `fields` are those of an SQL row."""
    if isinstance(value, list):
        return tuple(map(true_value, value))
    if not isinstance(value, dict):
        return value
    if fields is not None:
        known = None if "RAW" in str(fields) else value["binary_row"]
        return "sql_row", known, tuple((name, true_value(field)) for name, field in fields)
    if "map" in value:
        return "map", frozenset((true_value(key), true_value(one)) for key, one in value["map"])
    if "pojo" in value:
        members = {name: true_value(one) for name, one in value["fields"].items()}
        return "pojo", value["pojo"], tuple(sorted(members.items()))
    if "double" in value or "float" in value:
        ((name, digits),) = value.items()
        return name, float.fromhex(digits).hex()
    if "row" in value:
        return "row", value["row_kind"], true_value(value["row"])
    if "ttl" in value:
        return "ttl", value["ttl"], true_value(value["value"])
    if "class" in value:
        return "kryo", value["class"]  # its text is what Java's toString says, not its bytes
    ((name, inner),) = value.items()
    return name, true_value(inner)


ROW_KINDS = ["+I", "-U", "+U", "-D"]


def seen_value(serializer: Serializer, value: Any) -> Any:
    """Return the library's reading, with a serializer, in the form of `true_value`."""
    name, parts = serializer.name, serializer.parts
    if name == "VOID_NAMESPACE":
        assert value is None
        return "void", True
    if name == "GLOBAL_WINDOW":
        return "global", value == ()
    if name == "KRYO":
        assert type(value) in (set, bytes)  # bytes of Flink 1, whose BitSets are not read
        return "kryo", serializer.java_class
    if value is None or name in ("BOOLEAN", "STRING", "SQL_STRING"):
        return value
    if name in ("TUPLE", "ROW"):
        assert len(parts) == len(value)
        inner = tuple(map(seen_value, parts, value))
        return ("tuple", inner) if name == "TUPLE" else ("row", _kind(value), inner)
    if name == "EXTERNAL":
        return seen_value(parts[0], value)
    if name == "LIST":
        return "list", tuple(seen_value(parts[0], one) for one in value)
    if name == "MAP":
        pairs = value.items() if isinstance(value, dict) else value
        key, item = parts
        return "map", frozenset((seen_value(key, k), seen_value(item, v)) for k, v in pairs)
    if name == "SQL_ROW":
        has_raw = "RAW" in str(serializer.fields)  # Flink does not tell its bytes
        row = None if has_raw else serializer.encode(value)[4:].hex()  # its kind included
        return "sql_row", row, tuple(map(_seen_field, serializer.fields, value))
    if name == "POJO":
        members = dict(zip(serializer.names, parts))
        seen = {field: seen_value(members[field], value[field]) for field in value}
        return "pojo", serializer.java_class, tuple(sorted(seen.items()))
    if name in ("FLOAT", "DOUBLE"):
        return name.lower(), value.hex()
    if name == "CHAR":
        return "char", ord(value)
    return {
        "TIME_WINDOW": "window",
        "RAW": "raw_value",
        "BYTE_ARRAY_WRAPPER": "bytes",
        **{one: one.lower() for one in ("BYTE", "SHORT", "INT", "LONG", "BYTES")},
    }[name], value.hex() if isinstance(value, bytes) else value


def _kind(row: Any) -> int:
    return ROW_KINDS.index(getattr(row, "row_kind", "+I"))


def _seen_field(field: LogicalType, value: Any) -> tuple[str, Any]:
    if field.name == "RAW":
        assert isinstance(value, bytes)
        return "RAW('org.apache.flink.table.api.dataview.MapView', '...')", ("raw_value", True)
    seen = {"BIGINT": ("long", value), "INT": ("int", value), "VARCHAR": value}[field.name]
    return str(field), None if value is None else seen


def seen_entry(operator: Operator, state: StateDescriptor, entry: StateEntry) -> tuple[Any, ...]:
    """Return an entry that the library read, in the form of `true_entries`."""
    value: Any = None
    if state.value_serializer is not None:
        if state.kind == "LIST":
            value = "list", tuple(_seen_element(state, one) for one in entry.value)
        else:
            value = seen_value(state.value_serializer, entry.value)
    user_key = state.user_key_serializer
    return (
        operator.operator_id,
        entry.subtask,
        entry.state,
        entry.kind,
        entry.key_group,
        seen_value(state.key_serializer, entry.key),
        seen_value(state.namespace_serializer, entry.namespace),
        None if user_key is None else seen_value(user_key, entry.user_key),
        value,
        entry.last_access,
        entry.timestamp,
    )


def _seen_element(state: StateDescriptor, element: Any) -> Any:
    assert state.value_serializer is not None
    if not state.has_ttl:
        return seen_value(state.value_serializer, element)
    return "ttl", element.last_access, seen_value(state.value_serializer, element.value)


def plain(value: Any) -> Any:
    """Return a value of Flink's operator state as Python has it."""
    if isinstance(value, list):
        return list(map(plain, value))
    if not isinstance(value, dict):
        return value
    ((name, inner),) = value.items()
    if name == "map":
        return {plain(key): plain(one) for key, one in inner}
    if name == "bytes":
        return bytes.fromhex(inner)
    assert name in ("int", "long")
    return inner
