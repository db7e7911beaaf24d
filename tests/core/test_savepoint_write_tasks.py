"""The files of subtasks, which other machines may write, and try again."""

from __future__ import annotations

import pickle
import struct
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from support.bytes.expected_savepoints import (
    BY_STRING,
    COUNT,
    STRINGS,
    check_folder,
    expected_files,
    keys_by_group,
    longs_by,
)
from support.inside.savepoints import EncodedEntry, WriteTask

from keygroups import KeyGroupRange
from keygroups.errors import InvalidTypeError, InvalidValueError, SavepointError
from keygroups.savepoint import (
    OperatorWriter,
    SavepointWriter,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.types import LONG, STRING

KEYS = keys_by_group(128, 0, 42, 43, 44, 127)
ENTRIES = longs_by(KEYS)


def add_counts(writer: SavepointWriter, uid: str = "by-string") -> OperatorWriter:
    return writer.add_operator(uid, STRING, [COUNT.descriptor], 128, 3)


def pickled(task: WriteTask) -> WriteTask:
    found = pickle.loads(pickle.dumps(task))
    assert isinstance(found, WriteTask)
    return found


def encoded(task: WriteTask) -> list[EncodedEntry]:
    """Return the entries of a task's subtask, sorted."""
    encoder = task.encoder()
    entries = sorted(encoder.encode(0, one.key, one.value) for one in ENTRIES)
    return [one for one in entries if one.key_group in task.key_groups]


def test_an_encoder_that_was_pickled_takes_the_same_times(tmp_path: Path) -> None:
    """Seconds, which are refused unless they are allowed."""
    states = [ValueStateDescriptor("seen", LONG, has_ttl=True)]
    with SavepointWriter(tmp_path / "savepoint") as writer:
        for uid, allow in (("strict", False), ("any", True)):
            operator = writer.add_operator(
                uid, STRING, states, 128, 1, allow_any_last_access=allow
            )
            encoder = pickle.loads(pickle.dumps(operator.task(0).encoder()))
            assert encoder.states == operator.states
            if allow:
                entry = encoder.encode(0, "a", 5, last_access=1_700_000_000)
                assert entry.value == (1_700_000_000).to_bytes(8, "big") + bytes(7) + b"\5"
            else:
                with pytest.raises(InvalidValueError, match="last_access must be epoch"):
                    encoder.encode(0, "a", 5, last_access=1_700_000_000)


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]])
def test_tasks(order: list[int], tmp_path: Path) -> None:
    """What is pickled writes what the writer does; of a task tried twice one file stays."""
    folder = tmp_path / "savepoint"
    with SavepointWriter(folder) as writer:
        operator = add_counts(writer)
        for subtask in order:
            task = pickled(operator.task(subtask))
            assert (task.subtask, task.max_parallelism) == (subtask, 128)
            task.write(encoded(task))
            written = task.write(encoded(task))
            assert pickle.loads(pickle.dumps(written)) == written
            operator.add(written)
        assert sorted(operator.written) == [0, 1, 2]
        assert [dict(operator.written[subtask].entries) for subtask in range(3)] == [
            {0: 2},
            {0: 2},
            {0: 1},
        ]
    expected = expected_files(STRINGS, [COUNT], ENTRIES, 128, 3)
    check_folder(folder, {BY_STRING: expected}, 128, 3)


def test_a_task_that_fails(tmp_path: Path) -> None:
    """Its file is closed and goes, and another try is whole."""
    folder = tmp_path / "savepoint"
    with SavepointWriter(folder) as writer:
        operator = add_counts(writer)
        task = operator.task(0)

        def failing() -> Any:
            yield from encoded(task)[:1]
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            task.write(failing())
        operator.add(task.write(encoded(task)))
    assert len(list(folder.iterdir())) == 2
    assert [one.key for one in read_savepoint(folder).operators[0].entries()] == KEYS[:2]


def test_without_entries(tmp_path: Path) -> None:
    """A file with nothing but the header, as Flink writes it too."""
    folder = tmp_path / "savepoint"
    with SavepointWriter(folder) as writer:
        operator = add_counts(writer)
        operator.add(operator.task(1).write([]))
    (operator_read,) = read_savepoint(folder).operators
    (subtask,) = operator_read.subtasks
    assert (subtask.subtask_index, subtask.key_groups) == (1, KeyGroupRange(43, 85))
    assert list(operator_read.entries()) == []
    assert [state.name for state in operator_read.states] == ["count"]


def test_order(tmp_path: Path) -> None:
    """Key groups of the subtask, in order; no key twice in a row."""
    with SavepointWriter(tmp_path / "savepoint") as writer:
        operator = add_counts(writer)
        first, middle = operator.task(0), operator.task(1)
        low, high = encoded(first)
        message = r"key groups must be of \[.*\] and come in order, got 0 after "
        for task, entries, what in (
            (first, [high, low], "42"),
            (middle, [low], "none"),
        ):
            with pytest.raises(InvalidValueError, match=message + what):
                task.write(entries)
        with pytest.raises(InvalidValueError, match=f"must come once, got key {KEYS[0]!r} in sta"):
            first.write([low, low])
        beyond = low._replace(key_group=128)
        with pytest.raises(InvalidValueError, match="got 128 after none"):
            first.write([beyond])


class Long(bytes):
    """Bytes that say they are more than Java counts."""

    def __len__(self) -> int:
        return 2**31


def test_more_bytes_than_java_counts(tmp_path: Path) -> None:
    """Flink has the size of a key, with its key group, and of a value as ints."""
    with SavepointWriter(tmp_path / "savepoint") as writer:
        task = add_counts(writer).task(0)
        low, high = encoded(task)
        for entries, size in (
            ([low._replace(value=Long(low.value)), high], 2**31),
            ([low._replace(key=Long(low.key))], 2**31 + 1),
        ):
            with pytest.raises(
                InvalidValueError,
                match=rf"must have at most 2147483647 bytes each, .* got {size} in key "
                rf"{KEYS[0]!r} in state 'count'$",
            ):
                task.write(entries)


def test_entries_that_are_framed_already(tmp_path: Path) -> None:
    """In pieces of any size: the same file, and the same order is asked for."""
    with SavepointWriter(tmp_path / "savepoint") as writer:
        states = [ValueStateDescriptor(name, LONG) for name in "ab"]
        operator = writer.add_operator("by-string", STRING, states, 128, 1)
        task = operator.task(0)
        entries = sorted(
            EncodedEntry(key_group, state, bytes([key, 0]), bytes(size))
            for key_group in (0, 5, 127)
            for state in range(2)
            for key, size in enumerate((0, 3, 700)[: key_group % 4 + 1])
        )
        whole = task.write(entries)
        for most in (1, 2, 9):
            with task.open() as file:
                for (key_group, state), item in groupby(entries, itemgetter(0, 1)):
                    same = [*item]
                    frames = [
                        struct.pack(">iB", len(key) + 1, key_group | (last << 7))
                        + key
                        + struct.pack(">i", len(value))
                        + value
                        for last, (_, _, key, value) in zip([0] * (len(same) - 1) + [1], same)
                    ]
                    for start in range(0, len(frames), most):
                        piece = frames[start : start + most]
                        file.add_framed(key_group, state, len(piece), memoryview(b"".join(piece)))
            framed = task.written(file)
            assert framed.handle.offsets == whole.handle.offsets
            assert (framed.entries, framed.bytes) == (whole.entries, whole.bytes)
            operator.written.clear()
            operator.add(framed)
            paths = [*tmp_path.rglob(framed.handle.stream.path)]
            paths += tmp_path.rglob(whole.handle.stream.path)
            assert paths[0].read_bytes() == paths[1].read_bytes()
        with task.open() as file:
            file.add_framed(127, 0, 1, b"")
            with pytest.raises(InvalidValueError, match="come in order, got 5 after 127"):
                file.add_framed(5, 0, 1, b"")


def test_what_is_added(tmp_path: Path) -> None:
    """Each subtask once, of its own operator."""
    wrong: Any = "file"
    with SavepointWriter(tmp_path / "savepoint") as writer:
        operator, other = add_counts(writer), add_counts(writer, "other")
        task = operator.task(0)
        written = task.write(encoded(task))
        with pytest.raises(InvalidTypeError, match=r"written must be what WriteTask\.write"):
            operator.add(wrong)
        with pytest.raises(InvalidValueError, match=r"must be of the operator .*got the file"):
            other.add(written)
        operator.add(written)
        with pytest.raises(InvalidValueError, match="written must be of a new subtask, got 0"):
            operator.add(written)
        with pytest.raises(InvalidValueError, match="operator_index must be from 0 to 2, got 3"):
            operator.task(3)


def test_a_file_of_another_savepoint(tmp_path: Path) -> None:
    """It is not in the folder, so there is no savepoint with it."""

    def mix() -> None:
        first, second = SavepointWriter(tmp_path / "a"), SavepointWriter(tmp_path / "b")
        with first, second:
            task = add_counts(first).task(0)
            add_counts(second).add(task.write(encoded(task)))

    with pytest.raises(SavepointError, match=r"b: cannot be written: .* is gone"):
        mix()
    assert not list(tmp_path.iterdir())
