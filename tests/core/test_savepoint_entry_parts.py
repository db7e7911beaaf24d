"""What writes the bytes of entries in parts, as Spark does, against the whole entries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.inside.savepoints import EncodedEntry, NewState, joined_lists

from keygroups import InvalidValueError
from keygroups.savepoint import (
    ListStateDescriptor,
    MapStateDescriptor,
    OperatorWriter,
    SavepointWriter,
    StateEntry,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.types import INT, LONG, STRING, TUPLE

KEY_TYPE = TUPLE(STRING, INT)
STATES: list[NewState] = [
    ValueStateDescriptor("count", LONG),
    MapStateDescriptor("cities", STRING, LONG, has_ttl=True),
    ListStateDescriptor("tags", STRING),
]
KEY = ("ann", 5)


def operator_of(writer: SavepointWriter) -> OperatorWriter:
    return writer.add_operator("by-key", KEY_TYPE, STATES, 128, 1)


@pytest.mark.parametrize(
    ("state", "arguments"),
    [(0, (7,)), (1, (7, "Rome", 1_700_000_000_000)), (2, (["a", ""],))],
    ids=["VALUE", "MAP", "LIST"],
)
def test_parts_make_the_entry(tmp_path: Path, state: int, arguments: tuple[Any, ...]) -> None:
    encoder = operator_of(SavepointWriter(tmp_path / "s")).task(0).encoder()
    key, value = encoder.encode_value(state, encoder.encode_key(KEY), *arguments)
    parts = EncodedEntry(encoder.key_group(KEY), state, key, value)
    assert parts == encoder.encode(state, KEY, *arguments)


@pytest.mark.parametrize("key", [None, ("ann", None)])
def test_keys_that_are_not_written(tmp_path: Path, key: object) -> None:
    encoder = operator_of(SavepointWriter(tmp_path / "s")).task(0).encoder()
    with pytest.raises(InvalidValueError, match="None"):
        encoder.encode_key(key)


def written(folder: Path, lists: list[EncodedEntry]) -> list[StateEntry]:
    """Write two other entries and some of the LIST state, each an element."""
    with SavepointWriter(folder) as writer:
        operator = operator_of(writer)
        task = operator.task(0)
        encoder = task.encoder()
        others = [encoder.encode(0, KEY, 7), encoder.encode(1, KEY, 7, "Rome", 1_700_000_000_000)]
        operator.add(task.write(joined_lists([*others, *lists], {2})))
    return list(read_savepoint(folder).operator("by-key").entries())


def test_elements_become_lists(tmp_path: Path) -> None:
    encoder = operator_of(SavepointWriter(tmp_path / "s")).task(0).encoder()
    elements = [encoder.encode(2, KEY, [tag]) for tag in ("b", "", "a,", "a,")]
    entries = written(tmp_path / "elements", elements)
    assert [(one.state, one.value) for one in entries] == [
        ("count", 7),
        ("cities", 7),
        ("tags", ["b", "", "a,", "a,"]),
    ]
    assert entries == written(tmp_path / "list", [encoder.encode(2, KEY, ["b", "", "a,", "a,"])])


def test_entries_of_other_states_still_come_once(tmp_path: Path) -> None:
    with SavepointWriter(tmp_path / "s") as writer:
        task = operator_of(writer).task(0)
        entry = task.encoder().encode(0, KEY, 7)
        with pytest.raises(
            InvalidValueError, match=r"got key \('ann', 5\) in state 'count' twice"
        ):
            task.write(joined_lists([entry, entry], {2}))
