"""Operator state that is written: the bytes of Flink's own streams, and who has which elements."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.bytes.job_points import JOB_POINTS
from support.bytes.real_savepoints import FORMATS, POINTS, Point, point
from support.inside.savepoints import (
    KEY,
    VALUE,
    ElementSpans,
    OperatorStateHandle,
    OperatorStateHeader,
    header_cursor,
    read_operator_state,
    read_operator_state_header,
)

from keygroups import InvalidTypeError, InvalidValueError
from keygroups.errors import KeyGroupsError, UnsupportedKeyTypeError
from keygroups.savepoint import (
    ListStateDescriptor,
    MapStateDescriptor,
    Operator,
    SavepointWriter,
    Serializer,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.savepoint._state.writing.operator_state_writer import (
    NewOperatorState,
    broadcast_bytes,
    operator_state_header,
    pairs_of,
)
from keygroups.types import LIST, LONG, STRING

COUNTS = [ValueStateDescriptor("count", LONG)]
OFFSETS = ListStateDescriptor("offsets", STRING)
WATERMARKS = ListStateDescriptor("watermarks", LONG)
RULES = MapStateDescriptor("rules", STRING, LONG)

# --- Flink's own streams, written anew of what was read in them -------------------------------


def written_anew(point: Point, counts: Counter[str]) -> None:
    """Compare each stream of managed operator state with the one of its decoded elements."""
    savepoint = point.read()
    for operator in savepoint.operators:
        for subtask in operator._subtasks:
            handle = subtask.managed_operator
            if handle is None or not handle.stream.size:
                continue
            with savepoint.files.open(handle.stream) as stream:
                data = stream.read(0, stream.size)
                spans = ElementSpans(stream, handle, is_raw=False)
                header = read_operator_state_header(
                    header_cursor(stream, spans.header_size, operator._context)
                )
            try:
                new = _stream(operator, handle, header)
            except UnsupportedKeyTypeError:
                counts["of Kryo"] += 1
                continue
            assert new == data, (point, operator)
            counts[f"version {header.version}"] += 1
            counts.update(mode for _, mode, _ in handle.states)


def _stream(operator: Operator, handle: OperatorStateHandle, header: OperatorStateHeader) -> bytes:
    modes = {name: mode for name, mode, _ in handle.states}
    states = {
        name: NewOperatorState(
            name, modes[name], info.serializers[VALUE], info.serializers.get(KEY)
        )
        for name, info in header.infos.items()
    }
    lists = [state.info() for state in states.values() if state.key_serializer is None]
    broadcasts = [state.info() for state in states.values() if state.key_serializer is not None]
    read = read_operator_state(operator._files, handle, 0, False, operator._context)
    elements = {entry.state: entry.elements for entry in read}
    chunks = [operator_state_header(lists, broadcasts, header.version)]
    for _, name in sorted((starts[0], name) for name, _, starts in handle.states if starts):
        state = states[name]
        if modes[name] == "BROADCAST":
            pairs = pairs_of("elements", name, elements[name])
            chunks.append(broadcast_bytes(state.encoded_entry(*pair) for pair in pairs))
        else:
            chunks += map(state.encoded, elements[name])
    return b"".join(chunks)


@pytest.mark.parametrize("name", ["2.3.0-heap-canonical", "1.14.6-heap-canonical"])
def test_streams_of_flink(name: str) -> None:
    counts: Counter[str] = Counter()
    written_anew(point(name), counts)
    assert counts["version 6" if name.startswith("2") else "version 5"] == 9
    assert counts["BROADCAST"] == 3
    assert counts["UNION"] == counts["SPLIT_DISTRIBUTE"] == 6


@pytest.mark.slow
def test_all_streams_of_flink() -> None:
    counts: Counter[str] = Counter()
    for one in (*POINTS, *FORMATS, *JOB_POINTS):
        written_anew(one, counts)
    print("operator state:", dict(counts))
    assert counts["version 5"] == 66
    assert counts["version 6"] == 247
    assert counts["of Kryo"] == 6  # in the field of a POJO


# --- who has what ----------------------------------------------------------------------------


def write(path: Path, *calls: tuple[Any, ...], **states: Any) -> None:
    """Write an operator of three subtasks, with calls of `write_operator_state`."""
    with SavepointWriter(path / "savepoint") as writer:
        operator = writer.add_operator("uid", None, [], 128, 3, **states)
        for arguments in calls:
            operator.write_operator_state(*arguments)


def elements(path: Path) -> dict[str, list[Any]]:
    """Return the elements of each state, by subtask; None where no handle names it."""
    operator = read_savepoint(path / "savepoint").operator("uid")
    found: dict[str, list[Any]] = {}
    for entry in operator.operator_state():
        of_state = found.setdefault(entry.state, [None] * operator.parallelism)
        of_state[entry.subtask] = entry.elements
    return found


def test_elements_are_dealt_out(tmp_path: Path) -> None:
    """As RoundRobinOperatorStateRepartitioner deals those of one subtask: 7 to 3 is 3, 2, 2.

    The next state starts where the extra element was.
    """
    write(
        tmp_path,
        ("offsets", list("abcd")),
        ("offsets", iter("efg")),
        ("next", [1, 2]),
        list_states=[OFFSETS, ListStateDescriptor("next", LONG)],
    )
    assert elements(tmp_path) == {
        "offsets": [["a", "b", "c"], ["d", "e"], ["f", "g"]],
        "next": [[], [1], [2]],
    }


def test_a_subtask_is_named(tmp_path: Path) -> None:
    write(
        tmp_path,
        ("offsets", ["x", "y"], 2),
        ("offsets", ["a"]),
        ("watermarks", [1], 1),
        ("watermarks", [2, 3]),
        list_states=[OFFSETS],
        union_list_states=[WATERMARKS],
    )
    assert elements(tmp_path) == {
        "offsets": [["a"], [], ["x", "y"]],
        "watermarks": [[2, 3], [1], []],
    }


def test_what_is_broadcast_is_in_one_subtask(tmp_path: Path) -> None:
    """No other handle names it: Flink seeks the first offset of a broadcast state in each."""
    write(
        tmp_path,
        ("rules", {"a": 1}),
        ("rules", [("b", 2)]),
        ("offsets", ["a", "b"]),
        list_states=[OFFSETS],
        broadcast_states=[RULES],
    )
    assert elements(tmp_path) == {
        "rules": [{"a": 1, "b": 2}, None, None],
        "offsets": [["a"], ["b"], None],
    }


def test_without_elements_there_is_no_state(tmp_path: Path) -> None:
    write(
        tmp_path,
        ("offsets", []),
        list_states=[OFFSETS],
        broadcast_states=[RULES],
    )
    assert elements(tmp_path) == {}


def test_an_empty_broadcast_state(tmp_path: Path) -> None:
    write(
        tmp_path,
        ("rules", {}),
        broadcast_states=[RULES],
    )
    assert elements(tmp_path) == {"rules": [{}, None, None]}


def test_keyed_and_operator_state_in_one_operator(tmp_path: Path) -> None:
    with SavepointWriter(tmp_path / "savepoint") as writer:
        operator = writer.add_operator(
            "uid", STRING, COUNTS, 128, parallelism=2, union_list_states=[OFFSETS]
        )
        operator.write("count", "ann", 7)
        operator.write_operator_state("offsets", ["a"], subtask=1)
    read = read_savepoint(tmp_path / "savepoint").operator("uid")
    assert [(entry.key, entry.value) for entry in read.entries()] == [("ann", 7)]
    assert elements(tmp_path) == {"offsets": [None, ["a"]]}


def test_nulls_are_elements(tmp_path: Path) -> None:
    write(
        tmp_path,
        ("offsets", [None, "a"]),
        list_states=[OFFSETS],
    )
    assert elements(tmp_path)["offsets"][:2] == [[None], ["a"]]


@pytest.mark.parametrize("length", [1, 40_000])
def test_small_streams_are_in_metadata(length: int, tmp_path: Path) -> None:
    """Inline handles differ in name: two of one name are one to Flink. Large ones are files."""
    write(
        tmp_path,
        ("offsets", ["a" * length] * 3),
        list_states=[OFFSETS],
    )
    savepoint = read_savepoint(tmp_path / "savepoint")
    (metadata,) = savepoint.metadata.operators
    handles = [subtask.managed_operator for subtask in metadata.subtasks]
    streams = [handle.stream for handle in handles if handle is not None]
    files = {file.name for file in (tmp_path / "savepoint").iterdir()} - {"_metadata"}
    assert len(streams) == 3
    if length == 1:
        assert len({stream.name for stream in streams}) == 3
        assert not files
    else:
        assert {stream.path for stream in streams} == files
        assert all(stream.is_relative and stream.size > length for stream in streams)
    assert elements(tmp_path)["offsets"] == [["a" * length]] * 3


@pytest.mark.parametrize("size", [20_480, 20_481])
def test_streams_of_up_to_20_kb_are_small(size: int, tmp_path: Path) -> None:
    """As many bytes as Flink has by default in its state.storage.fs.memory-threshold."""

    def written(folder: Path, length: int) -> OperatorStateHandle:
        folder.mkdir()
        write(folder, ("offsets", ["a" * length], 0), list_states=[OFFSETS])
        (metadata,) = read_savepoint(folder / "savepoint").metadata.operators
        handle = metadata.subtasks[0].managed_operator
        assert handle is not None
        return handle

    ((_, _, (start,)),) = written(tmp_path / "short", 1).states
    length_bytes = 3  # 16,383 to 2,097,150 characters
    stream = written(tmp_path / "long", size - start - length_bytes).stream
    assert stream.size == size
    assert (stream.data is not None) == (size == 20_480)


# --- bad input ---------------------------------------------------------------------------------


class NothingSerializer(Serializer):
    """Of values without bytes."""

    name, versions, size = "NOTHING", (1,), 0

    @staticmethod
    def write(value: Any) -> bytes:
        return b""


@pytest.mark.parametrize(
    ("states", "error", "says"),
    [
        ({"list_states": OFFSETS}, InvalidTypeError, "list_states must be an iterable of desc"),
        ({"list_states": [RULES]}, InvalidTypeError, "list_states must be of class ListState"),
        ({"broadcast_states": [OFFSETS]}, InvalidTypeError, "broadcast_states must be of class"),
        ({"union_list_states": ["x"]}, InvalidTypeError, "union_list_states must be of class"),
        (
            {"list_states": [OFFSETS], "union_list_states": [OFFSETS]},
            InvalidValueError,
            "must differ in name, got 'offsets' twice",
        ),
        (
            {"list_states": [ListStateDescriptor("a", LONG, has_ttl=True)]},
            InvalidValueError,
            "list_states must have no time to live, .* got 'a'",
        ),
        (
            {"list_states": [ListStateDescriptor("SourceReaderState", STRING)]},
            InvalidValueError,
            "list_states must not have SourceReaderState, .*: add_source writes both",
        ),
        ({}, InvalidTypeError, "key_type must be a key type or a Serializer, and None only for"),
    ],
)
def test_refused_states(
    states: dict[str, Any], error: type[KeyGroupsError], says: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=says), SavepointWriter(tmp_path / "savepoint") as writer:
        writer.add_operator("uid", None, [], 128, 3, **states)
    assert not (tmp_path / "savepoint").exists()


def test_keyed_states_have_a_key_type(tmp_path: Path) -> None:
    with SavepointWriter(tmp_path / "savepoint") as writer:
        with pytest.raises(InvalidTypeError, match="key_type must be"):
            writer.add_operator("uid", None, COUNTS, 128, 3, list_states=[OFFSETS])
        operator = writer.add_operator("uid", None, [], 128, 3, list_states=[OFFSETS])
        with pytest.raises(InvalidValueError, match=r"key must be None, .* got 'a'"):
            operator.key_group("a")
        with pytest.raises(InvalidValueError, match="state must be one of none, without keyed"):
            operator.write("count", "a", 1)


def test_there_are_no_more_states_than_a_header_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = "keygroups.savepoint._state.writing.operator_state_writer"
    monkeypatch.setattr(f"{module}.MOST_STATES", 1)
    with SavepointWriter(tmp_path / "savepoint") as writer:
        writer.add_operator("one", None, [], 1, 1, list_states=[OFFSETS])
        with pytest.raises(InvalidValueError, match="must be at most 1, got 2 operator states"):
            writer.add_operator("two", None, [], 1, 1, list_states=[OFFSETS, WATERMARKS])


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        (("other", []), InvalidValueError, "state must be one of offsets, l, w, rules, got"),
        ((3, []), InvalidTypeError, "state must be a str"),
        (("offsets", "ab"), InvalidTypeError, "elements must be an iterable of elements of oper"),
        (("offsets", {"a": 1}), InvalidTypeError, "elements must be an iterable of elements of"),
        (("offsets", 3), InvalidTypeError, "elements must be an iterable of elements of operator"),
        (("offsets", [3]), InvalidTypeError, "element of operator state 'offsets': .*STRING"),
        (("l", [None]), InvalidValueError, "element of operator state 'l' must not be None"),
        (("offsets", ["a"], 3), InvalidValueError, "subtask must be from 0 to 2, got 3"),
        (("offsets", ["a"], -1), InvalidValueError, "subtask must be from 0 to 2, got -1"),
        (("w", [1], True), InvalidTypeError, "subtask must be an int, got True"),
        (("w", [2**63]), InvalidValueError, "element of operator state 'w'"),
        (("rules", ["a"]), InvalidTypeError, "elements must be a dict or a list of pairs"),
        (("rules", "ab"), InvalidTypeError, "elements must be a dict or a list of pairs"),
        (("rules", [("a", 1), "bc"]), InvalidTypeError, "must be a dict or a list of pairs"),
        (("rules", [("a", 1), ("b",)]), InvalidTypeError, "must be a dict or a list of pairs"),
        (("rules", {"a": 1}, 0), InvalidValueError, "subtask must be None for .*'rules'"),
        (("rules", {"a": "b"}), InvalidTypeError, "value of operator state 'rules'"),
        (("rules", {1: 1}), InvalidTypeError, "key of operator state 'rules'"),
        (("rules", [("a", 1), ("a", 2)]), InvalidValueError, "key 'a' of .*'rules' must be there"),
    ],
)
def test_refused_elements(
    arguments: tuple[Any, ...], error: type[KeyGroupsError], says: str, tmp_path: Path
) -> None:
    lists = [OFFSETS, ListStateDescriptor("l", LIST(LONG))]
    with SavepointWriter(tmp_path / "savepoint") as writer:
        operator = writer.add_operator(
            "uid",
            None,
            [],
            128,
            3,
            list_states=lists,
            union_list_states=[ListStateDescriptor("w", LONG)],
            broadcast_states=[RULES],
        )
        with pytest.raises(error, match=says):
            operator.write_operator_state(*arguments)
        # What was refused leaves nothing, and the rest can be written.
        operator.write_operator_state("offsets", ["a"])
        operator.write_operator_state("rules", {"a": 1})
        with pytest.raises(InvalidValueError, match=r"key 'a' .* must be there once"):
            operator.write_operator_state("rules", {"b": 1, "a": 1})
    assert elements(tmp_path) == {
        "offsets": [["a"], None, None],
        "l": [[], None, None],
        "w": [[], None, None],
        "rules": [{"a": 1}, None, None],
    }


def test_an_element_without_bytes() -> None:
    """By its offset it could not be told from the next one."""
    state = NewOperatorState("nothing", "UNION", NothingSerializer())
    with pytest.raises(InvalidValueError, match=r"element of .*'nothing' must take bytes, .* 1"):
        state.encoded(1)
