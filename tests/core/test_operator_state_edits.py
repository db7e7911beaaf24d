"""Operator state that is edited: of savepoints that Flink wrote, and of some made here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.job_points import JOB_POINTS
from support.bytes.real_savepoints import POINTS, Point, point
from support.inside.savepoints import OperatorStateHandle

from keygroups import InvalidTypeError, InvalidValueError
from keygroups.errors import KeyGroupsError, SavepointError, UnsupportedKeyTypeError
from keygroups.savepoint import (
    DELETE,
    EditedState,
    KafkaOffsets,
    ListStateDescriptor,
    MapStateDescriptor,
    Operator,
    OperatorStateElement,
    Pojo,
    Savepoint,
    SavepointWriter,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.types import LONG, MAP, STRING

HEAP = point("2.3.0-heap-canonical")
Function = Callable[[OperatorStateElement], Any]


def made(folder: Path) -> Path:
    """Write an operator of two subtasks with each kind of operator state."""
    with SavepointWriter(folder) as writer:
        operator = writer.add_operator(
            "uid",
            STRING,
            [ValueStateDescriptor("count", LONG)],
            128,
            2,
            list_states=[ListStateDescriptor("offsets", STRING)],
            union_list_states=[ListStateDescriptor("totals", MAP(STRING, LONG))],
            broadcast_states=[MapStateDescriptor("rules", STRING, LONG)],
        )
        operator.write("count", "ann", 7)
        operator.write_operator_state("offsets", ["a", "b", "c"])
        operator.write_operator_state("totals", [{"x": 1, "y": 2}])
        operator.write_operator_state("rules", {"r": 1, "s": 2})
    return folder


def state_of(savepoint: Savepoint, uid: str = "uid") -> dict[str, list[Any]]:
    """Return the elements of the subtasks that name a state."""
    found: dict[str, list[Any]] = {}
    for entry in savepoint.operator(uid).operator_state():
        found.setdefault(entry.state, []).append(entry.elements)
    return found


def edited(
    folder: Path, *verbs: tuple[Any, ...], uid: str = "uid", old: Savepoint | None = None
) -> tuple[Savepoint, tuple[EditedState, ...]]:
    """Do some verbs, and return the new savepoint and what the report says of the operator."""
    if old is None:
        old = read_savepoint(made(folder / "old"))
    with SavepointWriter.from_existing_savepoint(old, folder / "new") as writer:
        operator = writer.operator(uid)
        for verb, *arguments in verbs:
            getattr(operator, verb)(*arguments)
    (states,) = (one.states for one in writer.report().operators if one.operator == uid)
    return read_savepoint(folder / "new"), states


def handles(savepoint: Savepoint) -> list[OperatorStateHandle | None]:
    return [
        subtask.managed_operator
        for operator in savepoint.metadata.operators
        for subtask in operator.subtasks
    ]


def names(savepoint: Savepoint) -> list[str]:
    return [handle.stream.name for handle in handles(savepoint) if handle is not None]


# --- each verb -----------------------------------------------------------------------------------


def test_a_state_is_removed(tmp_path: Path) -> None:
    new, states = edited(tmp_path, ("remove_operator_state", "offsets"))
    assert state_of(new) == {"totals": [[{"x": 1, "y": 2}], []], "rules": [{"r": 1, "s": 2}]}
    assert states == (EditedState("offsets", None, None, None, None, None),)
    assert [entry.value for entry in new.operator("uid").entries()] == [7]


def test_all_states_are_removed(tmp_path: Path) -> None:
    verbs = [("remove_operator_state", name) for name in ("totals", "offsets", "rules")]
    new, _ = edited(tmp_path, *verbs)
    assert handles(new) == [None, None]


def test_a_state_is_renamed(tmp_path: Path) -> None:
    verbs = [("rename_operator_state", name, f"new-{name}") for name in ("offsets", "rules")]
    new, states = edited(tmp_path, *verbs)
    assert state_of(new) == {
        "new-offsets": [["a", "b"], ["c"]],
        "totals": [[{"x": 1, "y": 2}], []],
        "new-rules": [{"r": 1, "s": 2}],
    }
    assert states == (
        EditedState("offsets", "new-offsets", 3, 0, 0, 0),
        EditedState("rules", "new-rules", 2, 0, 0, 0),
    )


def test_names_are_swapped(tmp_path: Path) -> None:
    """Offsets become the totals: each verb sees what those before it leave."""
    new, _ = edited(
        tmp_path,
        ("remove_operator_state", "totals"),
        ("rename_operator_state", "offsets", "totals"),
        ("map_operator_state", "totals", lambda element: element.state + element.value),
        ("rename_operator_state", "rules", "offsets"),
    )
    assert state_of(new) == {
        "totals": [["totalsa", "totalsb"], ["totalsc"]],
        "offsets": [{"r": 1, "s": 2}],
    }


def test_elements_are_mapped(tmp_path: Path) -> None:
    seen: list[OperatorStateElement] = []

    def change(element: OperatorStateElement) -> Any:
        seen.append(element)
        if element.value == "a":
            return DELETE
        if element.value == "b":
            return (element._replace(value=value) for value in ("b", "b2", "b3"))
        return "C"

    new, states = edited(tmp_path, ("map_operator_state", "offsets", change))
    assert state_of(new)["offsets"] == [["b", "b2", "b3"], ["C"]]
    assert states == (EditedState("offsets", "offsets", 1, 1, 1, 2),)
    assert seen == [
        OperatorStateElement("offsets", "SPLIT_DISTRIBUTE", 0, None, "a"),
        OperatorStateElement("offsets", "SPLIT_DISTRIBUTE", 0, None, "b"),
        OperatorStateElement("offsets", "SPLIT_DISTRIBUTE", 1, None, "c"),
    ]


def test_functions_follow_one_another(tmp_path: Path) -> None:
    new, states = edited(
        tmp_path,
        ("map_operator_state", "offsets", lambda element: [element, element]),
        ("rename_operator_state", "offsets", "places"),
        ("map_operator_state", "places", lambda element: element.value + element.state[0]),
    )
    assert state_of(new)["places"] == [["ap", "ap", "bp", "bp"], ["cp", "cp"]]
    assert states == (EditedState("offsets", "places", 0, 3, 0, 3),)


def test_entries_of_a_broadcast_state_are_mapped(tmp_path: Path) -> None:
    def change(element: OperatorStateElement) -> Any:
        assert element[:3] == ("rules", "BROADCAST", 0)
        if element.key == "r":
            return DELETE
        return [element._replace(key="t", value=9), element]

    new, states = edited(tmp_path, ("map_operator_state", "rules", change))
    assert state_of(new)["rules"] == [{"t": 9, "s": 2}]
    assert states == (EditedState("rules", "rules", 1, 0, 1, 1),)


def test_all_elements_are_deleted(tmp_path: Path) -> None:
    """A broadcast state is there then, and empty."""
    verbs = [("map_operator_state", name, lambda _: DELETE) for name in ("offsets", "rules")]
    new, _ = edited(tmp_path, *verbs)
    assert state_of(new)["offsets"] == [[], []]
    assert state_of(new)["rules"] == [{}]


def test_what_is_equal_is_kept(tmp_path: Path) -> None:
    new, states = edited(tmp_path, ("map_operator_state", "totals", lambda e: dict(e.value)))
    assert states == (EditedState("totals", "totals", 1, 0, 0, 0),)
    assert state_of(new)["totals"] == [[{"x": 1, "y": 2}], []]


def test_what_is_changed_in_place_is_changed(tmp_path: Path) -> None:
    def change(element: OperatorStateElement) -> Any:
        element.value["x"] = 5
        return element

    new, states = edited(tmp_path, ("map_operator_state", "totals", change))
    assert states == (EditedState("totals", "totals", 0, 1, 0, 0),)
    assert state_of(new)["totals"] == [[{"x": 5, "y": 2}], []]


def test_only_streams_that_change_are_written(tmp_path: Path) -> None:
    old = read_savepoint(made(tmp_path / "old"))

    def change(element: OperatorStateElement) -> Any:
        return "C" if element.value == "c" else element

    new, _ = edited(tmp_path, ("map_operator_state", "offsets", change), old=old)
    assert [a == b for a, b in zip(handles(old), handles(new))] == [True, False]
    assert [a == b for a, b in zip(names(old), names(new))] == [True, False]


def test_large_streams_are_files(tmp_path: Path) -> None:
    new, _ = edited(tmp_path, ("map_operator_state", "offsets", lambda e: e.value * 15_000))
    assert state_of(new)["offsets"] == [["a" * 15_000, "b" * 15_000], ["c" * 15_000]]
    files = {handle.stream.path for handle in handles(new) if handle and handle.stream.path}
    assert len(files) == 1  # the other one is in `_metadata`
    assert files < {file.name for file in (tmp_path / "new").iterdir()}


# --- Flink's own -------------------------------------------------------------------------------


def with_operator_state(savepoint: Savepoint) -> Iterator[tuple[Operator, dict[str, str]]]:
    for operator in savepoint.operators:
        modes = {
            name: mode
            for subtask in operator._subtasks
            if subtask.managed_operator is not None and subtask.managed_operator.stream.size
            for name, mode, _ in subtask.managed_operator.states
        }
        if modes:
            yield operator, modes


def contents(savepoint: Savepoint) -> list[Any]:
    """Return the states and the bytes of each handle; copied files have names by chance."""
    found = []
    for handle in handles(savepoint):
        if handle is not None:
            with savepoint.files.open(handle.stream) as stream:
                found.append((handle.states, stream.read(0, stream.size)))
    return found


def check_identity(point: Point, folder: Path) -> int:
    """Map all elements to themselves, which leaves `_metadata` and all files as they are."""
    old = point.read()
    mapped = 0
    with SavepointWriter.from_existing_savepoint(old, folder / "same") as writer:
        for operator, modes in with_operator_state(old):
            for name in modes:
                if name != "SourceReaderState":
                    try:
                        writer.operator(operator.operator_id).map_operator_state(
                            name, lambda element: iter([element])
                        )
                    except UnsupportedKeyTypeError:  # Kryo's
                        continue
                    mapped += 1
    with SavepointWriter.from_existing_savepoint(old, folder / "copy"):
        pass
    same, copy = (read_savepoint(folder / name) for name in ("same", "copy"))
    assert contents(same) == contents(copy)
    assert names(same) == names(copy)
    kept = [state for one in writer.report().operators for state in one.states]
    assert all(state.changed == state.deleted == state.added == 0 for state in kept)
    return mapped


def test_an_edit_that_changes_nothing(tmp_path: Path) -> None:
    assert check_identity(HEAP, tmp_path) == 5


@pytest.mark.slow
def test_no_edit_that_changes_nothing_changes_bytes(tmp_path: Path) -> None:
    mapped = sum(check_identity(one, tmp_path / one.name) for one in (*POINTS, *JOB_POINTS))
    assert mapped > 100


@pytest.mark.parametrize(
    "name", ["2.3.0-heap-canonical", "1.14.6-heap-canonical", "2.3.0-merged-checkpoint"]
)
def test_states_of_flink(name: str, tmp_path: Path) -> None:
    """What was renamed and changed here is read, and all else of the streams is as it was."""
    old = point(name).read()
    with SavepointWriter.from_existing_savepoint(old, tmp_path / "new") as writer:
        for operator, modes in with_operator_state(old):
            editor = writer.operator(operator.operator_id)
            for state, mode in modes.items():
                if mode == "UNION":
                    editor.map_operator_state(state, lambda element: element.value + 1)
                elif mode == "BROADCAST":
                    editor.map_operator_state(
                        state, lambda element: [element, element._replace(key=element.key + "!")]
                    )
                else:
                    editor.rename_operator_state(state, "places")
    new = read_savepoint(tmp_path / "new")
    count = 0
    for before, after in zip(old.operators, new.operators):
        expected = []
        for state, mode, subtask, elements in before.operator_state():
            if mode == "UNION":
                expected.append((state, mode, subtask, [element + 1 for element in elements]))
            elif mode == "BROADCAST":
                both = elements | {f"{key}!": value for key, value in elements.items()}
                expected.append((state, mode, subtask, both))
            else:
                expected.append(("places", mode, subtask, elements))
        assert [*after.operator_state()] == expected
        count += len(expected)
    assert count == (6 if "merged" in name else 15)


def compressed(folder: Path) -> Savepoint:
    """Return a savepoint whose operator state is compressed, as Flink 1.20 and later may."""
    info = sb.meta_info(
        "s",
        1,
        {"OPERATOR_STATE_DISTRIBUTION_MODE": "SPLIT_DISTRIBUTE"},
        {"VALUE_SERIALIZER": sb.simple("Long")},
    )
    other = info.replace(sb.utf("s"), sb.utf("t"), 1)
    header = sb.operator_header([info, other], [], compressed=True) + b"\xff\6\0\0sNaPpY"
    chunks = [sb.snappy_chunk(sb.i64(number)) for number in (5, 6, 7)]
    offsets = [len(header) + sum(map(len, chunks[:number])) for number in range(3)]
    states = [("s", 0, offsets[:2]), ("t", 0, offsets[2:])]
    handle = sb.operator_state(states, sb.inline(header + b"".join(chunks)))
    return read_savepoint(
        sb.write(folder, [sb.operator([sb.subtask(managed_operator=handle)], uid="uid")])
    )


def test_compressed_state(tmp_path: Path) -> None:
    old = compressed(tmp_path / "old")
    assert state_of(old) == {"s": [[5, 6]], "t": [[7]]}
    new, _ = edited(tmp_path, ("map_operator_state", "s", lambda e: e.value * 2), old=old)
    assert state_of(new) == {"s": [[10, 12]], "t": [[7]]}
    (handle,) = handles(new)
    assert handle is not None
    assert handle.stream.data is not None
    assert handle.stream.data[:5] == b"\0\0\0\6\0"  # it is not compressed


# --- refused -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "arguments", "error", "says"),
    [
        ("remove_operator_state", ("count",), InvalidValueError, "offsets, totals, rules, got 'c"),
        ("remove_operator_state", (1,), InvalidTypeError, "name must be a str, got 1"),
        ("rename_operator_state", ("x", "y"), InvalidValueError, "name must be of an operator st"),
        (
            "rename_operator_state",
            ("rules", "totals"),
            InvalidValueError,
            "no other state, got",
        ),
        ("rename_operator_state", ("rules", "rules"), InvalidValueError, "no other state, got 'r"),
        ("rename_operator_state", ("rules", ""), InvalidValueError, "must not be empty"),
        (
            "rename_operator_state",
            ("rules", "SourceReaderState"),
            InvalidValueError,
            "new_name must be of no other state",
        ),
        ("rename_operator_state", ("rules", None), InvalidTypeError, "must be a str, got None"),
        ("map_operator_state", ("x", str), InvalidValueError, "name must be of an operator state"),
        ("map_operator_state", ("rules", 1), InvalidTypeError, "function must be callable, got 1"),
    ],
)
def test_refused_verbs(
    verb: str,
    arguments: tuple[Any, ...],
    error: type[KeyGroupsError],
    says: str,
    tmp_path: Path,
) -> None:
    old = made(tmp_path / "old")
    with SavepointWriter.from_existing_savepoint(old, tmp_path / "new") as writer:
        operator = writer.operator("uid")
        with pytest.raises(error, match=says):
            getattr(operator, verb)(*arguments)
    assert handles(read_savepoint(tmp_path / "new")) == handles(read_savepoint(old))


@pytest.mark.parametrize(
    ("state", "function", "error", "says"),
    [
        ("offsets", lambda _: 1, InvalidTypeError, "element of operator state 'offsets'"),
        ("totals", lambda _: None, InvalidValueError, "element of .*'totals' must not be None"),
        ("rules", lambda _: "a", InvalidTypeError, "value of operator state 'rules'"),
        ("rules", lambda e: e._replace(key=1), InvalidTypeError, "key of operator state 'rules'"),
        ("rules", lambda e: e._replace(key="k"), InvalidValueError, "once, got 'k' twice"),
        ("offsets", lambda e: e._replace(key="k"), InvalidValueError, "must be None in a list"),
        ("offsets", lambda e: [e, "x"], InvalidTypeError, "each be an OperatorStateElement"),
        ("offsets", lambda e: e._replace(subtask=1), InvalidValueError, "stay in its state and s"),
        (
            "offsets",
            lambda e: e._replace(state="x"),
            InvalidValueError,
            "stay in its state",
        ),
    ],
)
def test_refused_results(
    state: str, function: Function, error: type[Exception], says: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=says):
        edited(tmp_path, ("map_operator_state", state, function))
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("state", "element"),
    [
        ("offsets", "operator state 'offsets', subtask 0"),
        ("rules", "operator state 'rules', subtask 0, key 'r'"),
    ],
)
@pytest.mark.parametrize("is_iterator", [False, True])
def test_errors_of_a_function(state: str, element: str, is_iterator: bool, tmp_path: Path) -> None:
    """Come through as they are, with a note that names the element, behind those they have."""
    error = OSError("5")
    error.__notes__ = ["its own"]

    def fail(_: OperatorStateElement) -> None:
        raise error

    function: Function = (lambda element: map(fail, [element])) if is_iterator else fail
    with pytest.raises(OSError, match="5") as raised:
        edited(tmp_path, ("map_operator_state", state, function))
    assert raised.value is error
    assert error.__notes__ == ["its own", f"map_operator_state: {element}"]
    assert not (tmp_path / "new").exists()


def test_no_edit_after_the_end(tmp_path: Path) -> None:
    old = made(tmp_path / "old")
    with SavepointWriter.from_existing_savepoint(old, tmp_path / "new") as writer:
        operator = writer.operator("uid")
    with pytest.raises(InvalidValueError, match="operator uid cannot be edited any more"):
        operator.remove_operator_state("offsets")


def test_no_edit_after_a_block_that_raised(tmp_path: Path) -> None:
    old = made(tmp_path / "old")
    with (
        suppress(ZeroDivisionError),
        SavepointWriter.from_existing_savepoint(old, tmp_path / "new") as writer,
    ):
        operator = writer.operator("uid")
        raise ZeroDivisionError
    for verb in (operator.remove_operator_state, operator.remove_state):
        with pytest.raises(InvalidValueError, match="operator uid cannot be edited any more"):
            verb("offsets")


def test_the_splits_of_a_source_stay(tmp_path: Path) -> None:
    with SavepointWriter(tmp_path / "old") as old:
        old.add_source("kafka", KafkaOffsets({("a", 0): 1}), 128, 1)
    with SavepointWriter.from_existing_savepoint(tmp_path / "old", tmp_path / "new") as writer:
        operator = writer.operator("kafka")
        says = "SourceReaderState of kafka cannot be edited, as its coordinator knows"
        for verb, *arguments in (
            ("remove_operator_state", "SourceReaderState"),
            ("rename_operator_state", "SourceReaderState", "x"),
            ("map_operator_state", "SourceReaderState", str),
        ):
            with pytest.raises(InvalidValueError, match=says):
                getattr(operator, verb)(*arguments)
        writer.remove_operator("kafka")
        writer.add_source("kafka", KafkaOffsets({("a", 0): 9}), 128, 1)
    (split,) = read_savepoint(tmp_path / "new").operator("kafka").source_splits().splits
    assert split[2] == 9


def of_states(folder: Path, header: bytes, states: list[tuple[str, int, list[int]]]) -> Savepoint:
    """Return a savepoint of a stream with 20 bytes of zero behind its header."""
    shifted = [(name, mode, [len(header) + at for at in starts]) for name, mode, starts in states]
    handle = sb.operator_state(shifted, sb.inline(header + bytes(20)))
    return read_savepoint(
        sb.write(folder, [sb.operator([sb.subtask(managed_operator=handle)], uid="uid")])
    )


def test_a_state_that_is_not_in_the_header(tmp_path: Path) -> None:
    old = of_states(tmp_path / "old", sb.operator_header([], []), [("s", 0, [0]), ("t", 0, [4])])
    new, _ = edited(tmp_path, ("rename_operator_state", "t", "u"), old=old)
    assert state_of(new) == {"s": [[bytes(4)]], "u": [[bytes(16)]]}
    with pytest.raises(SavepointError, match="operator state 's' is not in the header"):
        edited(tmp_path / "other", ("map_operator_state", "s", lambda _: DELETE), old=old)


@pytest.mark.parametrize(
    ("mode", "is_broadcast", "starts", "says"),
    [
        (2, True, [0, 4], "broadcast state 's' starts at 2 offsets"),
        (2, False, [0], "the mode of operator state 's' is BROADCAST in _metadata alone"),
        (0, True, [0], "the mode of operator state 's' is SPLIT_DISTRIBUTE in _metadata alone"),
        (1, True, [0], "the mode of operator state 's' is UNION in _metadata alone"),
    ],
)
def test_modes_that_are_not_those_of_the_header(
    mode: int, is_broadcast: bool, starts: list[int], says: str, tmp_path: Path
) -> None:
    """Nobody knows what is an element then."""
    longs = {"VALUE_SERIALIZER": sb.simple("Long")}
    if is_broadcast:
        longs["KEY_SERIALIZER"] = sb.simple("Long")
    info = [sb.meta_info("s", 1 + is_broadcast, {}, longs)]
    header = sb.operator_header(*(([], info) if is_broadcast else (info, [])))
    old = of_states(tmp_path / "old", header, [("s", mode, starts)])
    for verb in (
        ("remove_operator_state", "s"),
        ("rename_operator_state", "s", "t"),
        ("map_operator_state", "s", lambda element: element),
    ):
        with pytest.raises(SavepointError, match=says):
            edited(tmp_path, verb, old=old)


UNWRITTEN = {
    "not known": sb.snapshot("a.b.C", 1),
    "not read": sb.kryo_of("a.b.C"),
    "not written": sb.pojo_of("a.B", {"c": sb.kryo_of("a.b.C")}),
}


@pytest.mark.parametrize("snapshot", UNWRITTEN.values(), ids=UNWRITTEN)
def test_what_only_the_job_reads_or_writes(snapshot: bytes, tmp_path: Path) -> None:
    """An element of it is deleted, or stays as it is; another one cannot be written."""
    options = {"OPERATOR_STATE_DISTRIBUTION_MODE": "UNION"}
    info = sb.meta_info("s", 1, options, {"VALUE_SERIALIZER": snapshot})
    header = sb.operator_header([info], [])
    data = [b"\2\0one", b"\2\1", b"\2\0two"]
    starts = [len(header), len(header) + 5, len(header) + 7]
    handle = sb.operator_state([("s", 1, starts)], sb.inline(header + b"".join(data)))
    operator = sb.operator([sb.subtask(managed_operator=handle)], uid="uid")
    old = read_savepoint(sb.write(tmp_path / "old", [operator]))
    [(_, _, _, elements)] = old.operator("uid").operator_state()
    assert [elements[0], elements[2]] == [data[0], data[2]]
    for function in (lambda _: b"x", lambda element: [element._replace(value=Pojo("a.B", {}))]):
        with pytest.raises(KeyGroupsError, match="element of operator state 's'"):
            edited(tmp_path, ("map_operator_state", "s", function), old=old)

    def change(element: OperatorStateElement) -> Any:
        return DELETE if element.value == data[0] else element

    new, states = edited(tmp_path, ("map_operator_state", "s", change), old=old)
    assert states == (EditedState("s", "s", 2, 0, 1, 0),)
    assert state_of(new) == {"s": [[elements[1], data[2]]]}


@pytest.mark.parametrize("role", ["KEY_SERIALIZER", "VALUE_SERIALIZER"])
@pytest.mark.parametrize("java_class", ["a.B", "java.lang.Object"])
def test_a_broadcast_state_that_only_the_job_reads(
    role: str, java_class: str, tmp_path: Path
) -> None:
    """The last value ends where the state does; of others nobody knows where they end."""
    roles = {"KEY_SERIALIZER": sb.simple("Long"), "VALUE_SERIALIZER": sb.simple("Long")}
    roles[role] = sb.kryo_of(java_class)
    kryo = b"\1\0a.\xc2\1"
    is_value = role == "VALUE_SERIALIZER"
    long = sb.i64(5)
    options = {"OPERATOR_STATE_DISTRIBUTION_MODE": "BROADCAST"}
    header = sb.operator_header([], [sb.meta_info("s", 2, options, roles)])
    for count in (1, 2):
        data = sb.i32(count) + (long + kryo if is_value else kryo + long) * count
        handle = sb.operator_state([("s", 2, [len(header)])], sb.inline(header + data))
        operator = sb.operator([sb.subtask(managed_operator=handle)], uid="uid")
        old = read_savepoint(sb.write(tmp_path / f"{count}", [operator]))
        is_read = is_value and count == 1
        expected = {5: kryo} if is_read else data
        assert state_of(old) == {"s": [expected]}
        verb = ("map_operator_state", "s", lambda element: element)
        if is_read and java_class == "java.lang.Object":
            new, _ = edited(tmp_path / "kept", verb, old=old)
            assert state_of(new) == {"s": [expected]}
        else:
            with pytest.raises(UnsupportedKeyTypeError, match="'s' cannot be mapped: "):
                edited(tmp_path / f"new{count}", verb, old=old)


def test_a_subtask_may_lack_operator_state(tmp_path: Path) -> None:
    with SavepointWriter(tmp_path / "old") as writer:
        counts = [ValueStateDescriptor("count", LONG)]
        places = ListStateDescriptor("places", STRING)
        operator = writer.add_operator("uid", STRING, counts, 128, 2, list_states=[places])
        operator.write("count", "cid", 7)  # a key of subtask 0
        operator.write_operator_state("places", ["a"], subtask=1)
    old = read_savepoint(tmp_path / "old")
    first, second = old.operator("uid")._subtasks
    assert first.managed_operator is None is not second.managed_operator
    new, _ = edited(tmp_path, ("map_operator_state", "places", lambda e: e.value * 2), old=old)
    assert state_of(new) == {"places": [["aa"]]}


def test_damaged_entries(tmp_path: Path) -> None:
    options = {"OPERATOR_STATE_DISTRIBUTION_MODE": "BROADCAST"}
    snapshots = {"VALUE_SERIALIZER": sb.simple("Long"), "KEY_SERIALIZER": sb.simple("Long")}
    header = sb.operator_header([], [sb.meta_info("s", 2, options, snapshots)])
    old = of_states(tmp_path / "old", header, [("s", 2, [0])])
    with pytest.raises(SavepointError, match="16 bytes are left after broadcast state 's'"):
        edited(tmp_path, ("map_operator_state", "s", lambda _: DELETE), old=old)
    handle = sb.operator_state([("s", 2, [len(header)])], sb.inline(header + sb.i32(1, 5)))
    old = read_savepoint(
        sb.write(tmp_path / "cut", [sb.operator([sb.subtask(managed_operator=handle)], uid="uid")])
    )
    with pytest.raises(SavepointError, match="no entry of 's': "):
        edited(tmp_path, ("map_operator_state", "s", lambda _: DELETE), old=old)
