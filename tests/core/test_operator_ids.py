"""Operators named by their ids, and texts that are taken for uids and may be something else."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
from support.bytes import savepoint_bytes as sb

from keygroups.cli import main
from keygroups.errors import InvalidTypeError, InvalidValueError
from keygroups.savepoint import (
    EventTimeSessionWindows,
    KafkaOffsets,
    OperatorId,
    ReducingStateDescriptor,
    SavepointEditor,
    SavepointWriter,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.types import LONG, STRING

COUNTS = [ValueStateDescriptor("count", LONG)]
SUMS = ReducingStateDescriptor("window-contents", LONG)
SQL, OTHER = "57fd06445c14a5f55765a3216fc0ba71", "053e6f52e939ffe5c8a3b20732f40a31"
NAME = "GroupAggregate[3]"

Door = Callable[[SavepointWriter, str], object]
NEW: dict[str, Door] = {
    "add_operator": lambda writer, uid: writer.add_operator(uid, STRING, COUNTS, 128, 1),
    "add_source": lambda writer, uid: writer.add_source(uid, KafkaOffsets({("a", 0): 5}), 128, 1),
    "add_window_operator": lambda writer, uid: writer.add_window_operator(
        uid, STRING, EventTimeSessionWindows(5), SUMS, 128, 1
    ),
}


def renamed(writer: SavepointWriter, uid: str) -> None:
    assert isinstance(writer, SavepointEditor)
    writer.change_operator_identifier("kept", uid)


def added(writer: SavepointWriter, uid: str) -> None:
    assert isinstance(writer, SavepointEditor)
    writer.add_operator_from(writer._old_savepoint, "kept", uid)


DOORS: dict[str, Door] = NEW | {"change_operator_identifier": renamed, "add_operator_from": added}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A savepoint of Flink 2: an operator with a uid, and two of Flink SQL."""
    return sb.write(
        tmp_path / "old",
        [
            sb.operator([], uid="kept", operator_id=bytes.fromhex(OperatorId.of_uid("kept"))),
            sb.operator([], name=NAME, operator_id=bytes.fromhex(SQL)),
            sb.operator([], name="Sink: sink", operator_id=bytes(16)),
        ],
    )


def edit(old: Path, removed: bool) -> SavepointEditor:
    writer = SavepointWriter.from_existing_savepoint(old, old.parent / "new")
    if removed:
        writer.remove_operator(NAME)
    return writer


# An id is an id


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("digits", [OTHER, OTHER.upper(), SQL])
def test_an_id_is_not_hashed(door: str, digits: str, old: Path) -> None:
    """Also the id of an operator that was removed, which is then there anew."""
    with edit(old, removed=True) as writer:
        DOORS[door](writer, OperatorId(digits))
    [new] = [
        by
        for by in read_savepoint(old.parent / "new").operators
        if by.operator_id == digits.lower()
    ]
    assert new.uid is None
    assert digits.lower() in str(writer.report()) or "kept" in str(writer.report())


@pytest.mark.parametrize("door", NEW)
def test_an_id_in_a_new_savepoint(door: str, tmp_path: Path) -> None:
    with SavepointWriter(tmp_path / "new") as writer:
        NEW[door](writer, OperatorId(OTHER))
    [new] = writer.savepoint().operators
    assert (new.operator_id, new.uid) == (OTHER, None)
    with SavepointWriter(tmp_path / "twice") as writer:
        NEW[door](writer, OperatorId(OTHER))
        with pytest.raises(InvalidValueError, match="must be one of the job's, and new here"):
            NEW[door](writer, OperatorId(OTHER))


def test_an_id_of_a_template(old: Path) -> None:
    """There a plain text may be an id too, as only its operators are looked at."""
    for number, uid in enumerate([SQL, OperatorId(SQL), NAME]):
        with SavepointWriter(old.parent / f"new{number}", template=old) as writer:
            writer.add_source(uid, KafkaOffsets({("a", 0): 5}), 128, 1)
        assert [by.operator_id for by in writer.savepoint().operators] == [SQL]
    with pytest.raises(InvalidValueError, match="operator must be an operator's uid, name or id"):
        SavepointWriter(old.parent / "x", template=old).add_operator(OperatorId(OTHER))


# Texts that may be no uid


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("removed", [False, True])
@pytest.mark.parametrize(
    ("text", "problem", "likely"),
    [
        (OTHER, "which has the form of an id", OTHER),
        (OTHER.upper(), "which has the form of an id", OTHER.upper()),
        (SQL, f"which operator {SQL} is called in ", SQL),
        (NAME, f"which operator {SQL} is called in ", SQL),
        ("Sink: sink", f"which operator {'0' * 32} is called in ", "0" * 32),
    ],
)
def test_a_text_that_may_be_no_uid(
    door: str, removed: bool, text: str, problem: str, likely: str, old: Path
) -> None:
    """With its hash Flink would not find the state."""
    with edit(old, removed) as writer:
        with pytest.raises(InvalidValueError) as raised:
            DOORS[door](writer, text)
        message = str(raised.value)
        assert f"uid must be a uid of the job, got {text!r}, {problem}" in message
        assert f"OperatorId({likely!r}) is that operator, id:{likely} in a shell" in message
        assert f"OperatorId.of_uid({text!r}) a uid" in message


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("text", [OTHER, SQL, NAME, "Sink: sink"])
def test_a_uid_that_is_one_all_the_same(door: str, text: str, old: Path) -> None:
    with edit(old, removed=True) as writer:
        DOORS[door](writer, OperatorId.of_uid(text))
    new = writer.savepoint().operator(text)
    assert (new.operator_id, new.uid) == (OperatorId.of_uid(text), text)


@pytest.mark.parametrize("door", NEW)
def test_digits_in_a_new_savepoint(door: str, tmp_path: Path) -> None:
    with SavepointWriter(tmp_path / "new") as writer:
        with pytest.raises(InvalidValueError, match="uid must be a uid of the job, got '053e6f52"):
            NEW[door](writer, OTHER)
        NEW[door](writer, OperatorId.of_uid(OTHER))
        NEW[door](writer, OTHER[:-1])
        NEW[door](writer, OTHER[:-1] + "g")
    ids = [by.operator_id for by in writer.savepoint().operators]
    assert ids == [OperatorId.of_uid(uid) for uid in (OTHER, OTHER[:-1], OTHER[:-1] + "g")]


def test_names_that_are_no_mistake(old: Path) -> None:
    """The uid of an operator that is gone, and the own name of one that gets a uid."""
    with edit(old, removed=False) as writer:
        writer.change_operator_identifier("kept", "other")
        writer.add_operator("kept", STRING, COUNTS, 128, 1)
        writer.change_operator_identifier(SQL, NAME)
    ids = [by.operator_id for by in read_savepoint(old.parent / "new").operators]
    assert ids == [*map(OperatorId.of_uid, ("other", NAME)), "0" * 32, OperatorId.of_uid("kept")]


# The class


@pytest.mark.parametrize("wrong", ["", "by-user", OTHER[:-1], OTHER + "0", f" {OTHER}", "g" * 32])
def test_what_is_no_id(wrong: str) -> None:
    with pytest.raises(InvalidValueError, match="digits must be 32 hexadecimal digits, got"):
        OperatorId(wrong)


def test_ids_are_texts() -> None:
    plain, of_uid = OperatorId(OTHER.upper()), OperatorId.of_uid("kept")
    assert (plain, plain.uid, of_uid, of_uid.uid) == (OTHER, "", OperatorId.of_uid("kept"), "kept")
    assert repr(plain) == f"OperatorId({OTHER!r})"
    assert repr(of_uid) == "OperatorId.of_uid('kept')"
    assert f"{plain} {of_uid}" == f"{OTHER} {OperatorId.of_uid('kept')}"
    copy = pickle.loads(pickle.dumps(of_uid))
    assert (type(copy), copy, copy.uid) == (OperatorId, of_uid, "kept")
    with pytest.raises(InvalidValueError, match="uid must not be empty"):
        OperatorId.of_uid("")
    for make in (OperatorId, OperatorId.of_uid):
        with pytest.raises(InvalidTypeError, match="must be a str"):
            make(5)  # type: ignore[arg-type]  # a user may do so


# The command


@pytest.mark.parametrize(
    ("new", "operator_id", "uid"),
    [
        (f"id:{OTHER}", OTHER, None),
        (f"uid:{OTHER}", OperatorId.of_uid(OTHER), OTHER),
        ("uid:id:x", OperatorId.of_uid("id:x"), "id:x"),
        ("by-user", OperatorId.of_uid("by-user"), "by-user"),
    ],
)
def test_the_command(new: str, operator_id: str, uid: str | None, old: Path) -> None:
    output = str(old.parent / "new")
    arguments = ["savepoint", str(old), "--rename-operator", f"{SQL}={new}", "--output", output]
    assert main(arguments) == 0
    by_sql = read_savepoint(output).operators[1]
    assert (by_sql.operator_id, by_sql.uid) == (operator_id, uid)


@pytest.mark.parametrize(
    ("new", "message"),
    [
        ("id:by-user", "digits must be 32 hexadecimal digits, got 'by-user'"),
        ("uid:", "uid must not be empty"),
        (OTHER, f"id:{OTHER} in a shell"),
    ],
)
def test_the_command_refuses(
    new: str, message: str, old: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = str(old.parent / "new")
    arguments = ["savepoint", str(old), "--rename-operator", f"{SQL}={new}", "--output", output]
    assert main(arguments) == 2
    assert message in capsys.readouterr().err
    assert not Path(output).exists()
