"""Values of Kryo 2, of Flink 1, and of Kryo 5, of Flink 2: each Flink reads all by its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.real_savepoints import point

from keygroups.errors import InvalidValueError, SavepointError
from keygroups.savepoint import (
    ListStateDescriptor,
    MapStateDescriptor,
    Operator,
    OperatorId,
    SavepointEditor,
    SavepointWriter,
    TumblingEventTimeWindows,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.state_keys import Serializer
from keygroups.types import INT

PLACES = ["key", "value", "user key", "element", "window"]


def doubles(kryo: int) -> Serializer:
    """Return the serializer of a class of the job that is a Double."""
    maps = sb.utf("java.lang.Double") + sb.optional_map({}) * 3
    snapshot = sb.i32(2) + sb.snapshot(f"{sb.JAVA}kryo.KryoSerializerSnapshot", 2, maps)
    return Serializer.from_snapshot(snapshot, kryo_version=kryo)


def add_new(writer: SavepointWriter, place: str, kryo: int, uid: str = "new") -> None:
    """Add an operator that has 5.0 of Kryo in one place, and 5 in the others."""
    number, five = doubles(kryo), ValueStateDescriptor("n", INT)
    if place == "key":
        writer.add_operator(uid, number, [five], 128, 1).write("n", 5.0, 5)
    elif place == "value":
        state = ValueStateDescriptor("n", number)
        writer.add_operator(uid, INT, [state], 128, 1).write("n", 5, 5.0)
    elif place == "user key":
        of_numbers = MapStateDescriptor("n", number, INT)
        writer.add_operator(uid, INT, [of_numbers], 128, 1).write("n", 5, 5, 5.0)
    elif place == "element":
        listed = [ListStateDescriptor("n", number)]
        new = writer.add_operator(uid, None, None, 128, 1, list_states=listed)
        new.write_operator_state("n", [5.0])
    else:
        minutes = TumblingEventTimeWindows(60_000)
        contents = ListStateDescriptor("window-contents", number)
        windows = writer.add_window_operator(uid, INT, minutes, contents, 128, 1)
        windows.write(5, minutes.assign_windows(0)[0], [5.0])


def placed(operator: Operator, place: str) -> object:
    """Return the value in a place of an operator's first entry, or its first element."""
    if place == "element":
        return next(operator.operator_state()).elements[0]
    entry = next(operator.entries())
    if place == "window":
        return entry.value[0]
    return {"key": entry.key, "user key": entry.user_key}.get(place, entry.value)


def of_flink(folder: Path, flink: int) -> Path:
    """Write a savepoint of a version of Flink, with an operator named "old"."""
    with SavepointWriter(folder) as writer:
        if flink == 2:
            add_new(writer, "value", 5, "old")
        else:
            writer.add_operator("old", INT, [ValueStateDescriptor("n", INT)], 128, 1)
    return folder


@pytest.mark.parametrize(("kryo", "version"), [(2, 3), (5, 5)])
@pytest.mark.parametrize("place", PLACES)
def test_a_new_savepoint_is_of_the_flink_of_its_kryo(
    place: str, kryo: int, version: int, tmp_path: Path
) -> None:
    """Flink 2 alone reads a `_metadata` of version 5, and takes its values for those of Kryo 5."""
    with SavepointWriter(tmp_path / "new") as writer:
        add_new(writer, place, kryo)
        other = 7 - kryo
        with pytest.raises(
            InvalidValueError, match=f"must have values of Kryo {kryo}, .* {other}"
        ):
            add_new(writer, place, other, "other")
    new = read_savepoint(tmp_path / "new", uids=["new"])
    assert new.version == version
    assert placed(new.operator("new"), place) == 5.0


@pytest.mark.parametrize(("flink", "kryo"), [(1, 2), (2, 5)])
@pytest.mark.parametrize("place", PLACES)
def test_a_new_operator_has_the_kryo_of_the_old_savepoint(
    place: str, flink: int, kryo: int, tmp_path: Path
) -> None:
    old = of_flink(tmp_path / "old", flink)
    with SavepointWriter.from_existing_savepoint(old, tmp_path / "new") as writer:
        with pytest.raises(InvalidValueError, match=f"must have values of Kryo {kryo}"):
            add_new(writer, place, 7 - kryo, "other")
        add_new(writer, place, kryo)
    new = read_savepoint(tmp_path / "new")
    assert new.version == {1: 3, 2: 5}[flink]
    assert placed(new.operator("new"), place) == 5.0


def test_an_operator_of_flink_2_beside_a_new_one(tmp_path: Path) -> None:
    """It would make Flink 2 of the savepoint, which reads no Kryo 2; without that it may."""
    one, two = of_flink(tmp_path / "one", 1), of_flink(tmp_path / "two", 2)
    with SavepointWriter.from_existing_savepoint(one, tmp_path / "new") as writer:
        add_new(writer, "value", 2)
        with pytest.raises(
            SavepointError, match=r"old cannot be added to new ones with .*Kryo 2, .* by 5$"
        ):
            writer.add_operator_from(two, "old", "of two")
    with SavepointWriter.from_existing_savepoint(one, tmp_path / "newer") as writer:
        writer.add_operator_from(two, "old", "of two")
        add_new(writer, "value", 5)
    newer = read_savepoint(tmp_path / "newer")
    assert newer.version == 5
    assert [placed(newer.operator(uid), "value") for uid in ("of two", "new")] == [5.0, 5.0]


def to_keys(writer: SavepointEditor, two: Path) -> None:
    writer.operator("old").map_keys(float, doubles(2))
    writer.add_operator_from(two, "old", "of two")


def to_values(writer: SavepointEditor, two: Path) -> None:
    writer.add_operator_from(two, "old", "of two")
    writer.operator("old").convert_state("n", ValueStateDescriptor("n", doubles(2)), float)


def to_one(writer: SavepointEditor, two: Path) -> None:
    writer.add_operator_from(two, "old", "of two")
    add_new(writer, "value", 5)
    writer.remove_operator("of two")


@pytest.mark.parametrize(
    ("verbs", "message"),
    [
        (to_keys, "^operator old: state 'n' must have values of Kryo 5, .* of Kryo 2$"),
        (to_values, "^operator old: state 'n' must have values of Kryo 5, .* of Kryo 2$"),
        (to_one, "^add_operator must have values of Kryo 2, .* of Kryo 5$"),
    ],
)
def test_values_are_of_the_kryo_that_the_savepoint_has_in_the_end(
    verbs: Callable[[SavepointEditor, Path], None], message: str, tmp_path: Path
) -> None:
    """An operator that comes or goes beside a verb changes the version of `_metadata`."""
    two = of_flink(tmp_path / "two", 2)
    with SavepointWriter(tmp_path / "one") as writer:
        new = writer.add_operator("old", INT, [ValueStateDescriptor("n", INT)], 128, 1)
        new.write("n", 5, 5)
    editor = SavepointWriter.from_existing_savepoint(tmp_path / "one", tmp_path / "new")
    verbs(editor, two)
    with pytest.raises(InvalidValueError, match=message):
        editor.__exit__(None, None, None)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("name", "version", "called"),
    [
        ("2.3.0-heap-canonical", 6, "by-string"),
        ("2.3.0-heap-canonical", 6, "All by-string"),
        ("2.3.0-heap-canonical", 6, "id"),
        ("1.20.5-heap-canonical", 3, "by-string"),
        ("1.20.5-heap-canonical", 3, "id"),
    ],
)
def test_a_template_gives_its_flink_and_the_names(
    name: str, version: int, called: str, tmp_path: Path
) -> None:
    """Before Flink 2 `_metadata` has no names, and operators none but the hash of their uid."""
    template = point(name).read()
    uid = OperatorId.of_uid("by-string") if called == "id" else called
    with SavepointWriter(tmp_path / "new", template=template) as writer:
        writer.add_operator(uid)
    new = read_savepoint(tmp_path / "new")
    assert new.version == version
    [operator] = new.metadata.operators
    named = ("All by-string", "by-string") if version == 6 else ("", "")
    assert (operator.name, operator.uid) == named
