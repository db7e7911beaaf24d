"""Cases of every serializer of Flink, of Flink itself: `tests/vectors/serializers.jsonl.gz`.

Each has the snapshot as it is in a header, without the 2 before it, and values with their bytes.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from support.golden import FOLDER


@dataclass(frozen=True)
class Value:
    """A value as Flink read it, in JSON, and the bytes that it wrote.

    `read_by_flink` is False where Flink could not read what it had written.
    """

    json: Any
    data: bytes
    read_by_flink: bool


@dataclass(frozen=True)
class Case:
    """A serializer with values; `flinks` are the versions that wrote the very same.

    Flink 1 and 2 have cases of their own where Kryo wrote, which is another in each.
    """

    name: str
    flinks: list[str] = field(compare=False)
    snapshot_class: str
    size: int | None
    reads_null: bool
    null: bytes | None
    snapshot: bytes
    values: tuple[Value, ...]

    def __str__(self) -> str:
        return f"{self.name}-{self.flinks[0]}"

    @property
    def group(self) -> str:
        """The first word of the name."""
        return self.name.partition(".")[0]

    @property
    def kryo_version(self) -> int:
        """The Kryo of the Flink that wrote it."""
        return kryo_version(self.flinks[0])


def kryo_version(flink: str) -> int:
    return 2 if flink.startswith("1.") else 5


def _json(value: dict[str, Any], flink: str) -> Any:
    """Return Flink's reading, but of times with an offset the one of their bytes.

    Of these Flink 1 loses the offset when it reads them, which then is null, and Flink 2 does not
    write that of a ZonedDateTime, but works it out.
    """
    seen = value["json"]
    java_class = seen.get("kryo", "") if isinstance(seen, dict) else ""
    if kryo_version(flink) == 2 and java_class.startswith("java.time."):
        return value.get("given", seen)
    if java_class == "java.time.ZonedDateTime":
        text = re.sub(r"(Z|[+-]\d\d:\d\d)\[", "null[", seen["value"])
        return {**seen, "value": text}
    return seen


@lru_cache
def cases() -> list[Case]:
    """Return the cases that differ from one Flink to another."""
    known: dict[tuple[str, str], Case] = {}
    for line in _lines():
        name, flink = line["case"], line["flink"]
        if "same_as" in line:
            case = known[name, line["same_as"]]
            if b"KryoSerializer" in case.snapshot and case.kryo_version != kryo_version(flink):
                case = next(
                    (
                        other
                        for (item, by), other in known.items()
                        if item == name and kryo_version(by) == kryo_version(flink)
                    ),
                    replace(case, flinks=[]),
                )
            case.flinks.append(flink)
        else:
            case = Case(
                name,
                [flink],
                line["class"],
                None if line["length"] == -1 else line["length"],
                line["null"],
                bytes.fromhex(line["null_bytes"]) if "null_bytes" in line else None,
                bytes.fromhex(line["snapshot"]),
                tuple(
                    Value(
                        _json(one, flink),
                        bytes.fromhex(one["bytes"]),
                        "flink_cannot_read" not in one,
                    )
                    for one in line["values"]
                ),
            )
        known[name, flink] = case
    return list({id(case): case for case in known.values()}.values())


def _lines() -> Iterator[dict[str, Any]]:
    with gzip.open(FOLDER / "serializers.jsonl.gz", "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)
