"""Single timers that are deleted, moved, or given to another key."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb

from keygroups import assign_to_key_group
from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    SavepointError,
    UnsupportedKeyTypeError,
)
from keygroups.savepoint import (
    DELETE,
    EditedState,
    EventTimeSessionWindows,
    ReducingStateDescriptor,
    Savepoint,
    SavepointWriter,
    StateEntry,
    TimerServiceDescriptor,
    TimeWindow,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.types import BIG_INT, LIST, LONG, STRING

TIMERS = "_timer_state/event_user-timers"
WINDOWS = "_timer_state/event_window-timers"
KEYS = [f"user-{number}" for number in range(20)]


def written(folder: Path) -> Path:
    with SavepointWriter(folder) as writer:
        states = [ValueStateDescriptor("count", LONG), TimerServiceDescriptor()]
        operator = writer.add_operator("uid", STRING, states, 128, 3, sort=True)
        for number, key in enumerate(KEYS):
            operator.write("count", key, number)
            for time in (number, 1_000 + number):
                operator.write_timer(key, time)
    return folder


def mapped(
    folder: Path,
    function: Callable[[Any], Any],
    old: Path | None = None,
    name: str = TIMERS,
) -> tuple[Savepoint, EditedState]:
    old = old or written(folder / "old")
    with SavepointWriter.from_existing_savepoint(old, folder / "new") as writer:
        writer.operator("uid").map_timers(name, function)
    [state] = [state for state in writer.report().operators[0].states if state.state == name]
    return read_savepoint(folder / "new"), state


def timers(savepoint: Savepoint, name: str = TIMERS) -> list[tuple[Any, int | None]]:
    entries = list(savepoint.operator("uid").entries([name]))
    for entry in entries:
        assert entry.key_group == assign_to_key_group(entry.key, 128, STRING)
    return sorted((entry.key, entry.timestamp) for entry in entries)


def test_a_leak_is_mended_in_one_call(tmp_path: Path) -> None:
    new, state = mapped(tmp_path, lambda timer: DELETE if timer.timestamp < 1_000 else timer)
    assert timers(new) == sorted((key, 1_000 + number) for number, key in enumerate(KEYS))
    assert state == EditedState(TIMERS, TIMERS, 20, 0, 20, 0)
    assert sum(1 for _ in new.operator("uid").entries(["count"])) == 20


@pytest.mark.parametrize("move", [-5_000, 2**40, 0])
def test_timers_are_moved(move: int, tmp_path: Path) -> None:
    """Each is found in its place by the order of its bytes, which is that of times."""
    new, state = mapped(tmp_path, lambda timer: timer.timestamp + move)
    assert timers(new) == sorted(
        (key, number + time + move) for number, key in enumerate(KEYS) for time in (0, 1_000)
    )
    assert state == EditedState(TIMERS, TIMERS, *((0, 40) if move else (40, 0)), 0, 0)


def test_timers_become_others(tmp_path: Path) -> None:
    def change(timer: StateEntry) -> Any:
        if timer.key == "user-1":
            return timer._replace(key="another")
        if timer.key == "user-2":
            return iter([timer, timer._replace(timestamp=7_000)][: 1 + (timer.timestamp == 2)])
        return [timer]

    new, _ = mapped(tmp_path, change)
    present = timers(new)
    assert [time for key, time in present if key == "another"] == [1, 1_001]
    assert [time for key, time in present if key == "user-2"] == [2, 1_002, 7_000]
    assert len(present) == 41


def test_two_timers_that_become_one(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="user-timers"):
        mapped(tmp_path, lambda timer: 5)


def raised(timer: StateEntry) -> Any:
    raise KeyError("of the function")


def raised_later(timer: StateEntry) -> Any:
    yield timer
    raise KeyError("of the function")


BAD: list[tuple[Any, type[Exception], str]] = [
    (
        lambda timer: None,
        InvalidTypeError,
        "a timer becomes a timestamp, DELETE or timers, got N",
    ),
    (
        lambda timer: 1.5,
        InvalidTypeError,
        "a timer becomes a timestamp, DELETE or timers, got 1.5",
    ),
    (lambda timer: [timer, 5], InvalidTypeError, "timers must each be a StateEntry, got 5"),
    (lambda timer: True, InvalidTypeError, "timestamp must be an int, got True"),
    (lambda timer: 2**63, InvalidValueError, "timestamp must be from -9223372036854775808 to"),
    (lambda timer: timer._replace(state="x"), InvalidValueError, "state of a timer must stay"),
    (lambda timer: timer._replace(value=5), InvalidValueError, "value of a timer must stay None"),
    (lambda timer: timer._replace(namespace=5), InvalidValueError, "namespace of a timer must"),
    (lambda timer: timer._replace(key=5), InvalidTypeError, "key of type STRING must be a str"),
    (raised, KeyError, "of the function"),
    (raised_later, KeyError, "of the function"),
]


@pytest.mark.parametrize(("function", "error", "message"), BAD)
def test_what_is_no_timer(
    function: Any, error: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message) as caught:
        mapped(tmp_path, function)
    if isinstance(caught.value, KeyGroupsError):
        assert str(caught.value).startswith("key 'user-")
    else:
        [note] = caught.value.__notes__
        assert note.startswith("map_timers: key 'user-")
    assert not (tmp_path / "new").exists()


def test_states_without_timers(tmp_path: Path) -> None:
    for name, message in (("count", "must be one of timers, got 'count'"), ("x", "got 'x'")):
        with pytest.raises(InvalidValueError, match=message):
            mapped(tmp_path, repr, written(tmp_path / name), name)


def test_timers_of_windows(tmp_path: Path) -> None:
    """Their times change; their keys and windows do not, as those of the contents do not."""
    with SavepointWriter(tmp_path / "old") as writer:
        sums = ReducingStateDescriptor("window-contents", LONG)
        windows = EventTimeSessionWindows(20)
        operator = writer.add_window_operator("uid", STRING, windows, sums, 128, 3)
        for number, key in enumerate(sorted(KEYS[:3], key=operator.key_group)):
            operator.write(key, TimeWindow(number, number + 20), number)
    old = tmp_path / "old"
    names = [state.name for state in read_savepoint(old).operator("uid").states]
    name = next(name for name in names if name.startswith("_timer_state/event"))
    before = timers(read_savepoint(old), name)
    new, _ = mapped(tmp_path, lambda timer: timer.timestamp + 1, old, name)
    assert timers(new, name) == [(key, (time or 0) + 1) for key, time in before]
    with pytest.raises(UnsupportedKeyTypeError, match="the key of a window's timer must stay"):
        mapped(tmp_path / "x", lambda timer: timer._replace(key="x"), old, name)


def test_a_key_that_java_wrote_in_other_bytes(tmp_path: Path) -> None:
    """A zero that is not the object BigInteger.ZERO: its bytes go with it, and no more.

    Flink: BigIntSerializer.writeBigInteger.
    """
    zero = sb.i32(5) + b"\0"  # the length plus four, then the byte of the number
    key_group = assign_to_key_group(0, 128, BIG_INT)
    state = sb.state(TIMERS, "", sb.timer_of(sb.simple("BigInt"), sb.NONE), backend_type=3)
    header = sb.keyed_header(sb.simple("BigInt"), [state])
    timer = bytes([key_group]) + sb.i64(5 ^ -(2**63)) + zero + b"\0"
    content = header + sb.canonical_key_group([(0, [(timer, b"")])])
    task = sb.subtask(managed_keyed=sb.canonical(key_group, [len(header)], sb.inline(content)))
    old = sb.write(tmp_path / "old", [sb.operator([task], uid="uid")])
    new, _ = mapped(tmp_path, lambda timer: timer._replace(key=300), old)
    [entry] = new.operator("uid").entries()
    assert (entry.key, entry.timestamp) == (300, 5)
    assert entry.key_group == assign_to_key_group(300, 128, BIG_INT)


def test_a_key_that_the_function_changes_in_place(tmp_path: Path) -> None:
    """It is another key then, as in map_entries."""
    names = LIST(STRING)
    with SavepointWriter(tmp_path / "old") as writer:
        operator = writer.add_operator("uid", names, [TimerServiceDescriptor()], 128, 1)
        operator.write_timer(["a"], 5)

    def rename(timer: StateEntry) -> StateEntry:
        timer.key.append("b")
        return timer

    new, _ = mapped(tmp_path, rename, tmp_path / "old")
    [entry] = new.operator("uid").entries()
    assert (entry.key, entry.timestamp) == (["a", "b"], 5)
    assert entry.key_group == assign_to_key_group(["a", "b"], 128, names)


def test_keys_that_only_the_job_knows(tmp_path: Path) -> None:
    """A timer of such a key is deleted and moved; none is given to another key."""
    enum = sb.snapshot(
        f"{sb.BASE}EnumSerializer$EnumSerializerSnapshot",
        3,
        sb.utf("a.E") + sb.i32(1) + sb.utf("A"),
    )
    state = sb.state(TIMERS, "", sb.timer_of(enum, sb.NONE), backend_type=3)
    header = sb.keyed_header(enum, [state])
    entries = [(b"\3" + sb.i64(time ^ -(2**63)) + bytes(4) + b"\0", b"") for time in (5, 6)]
    content = header + sb.canonical_key_group([(0, entries)])
    task = sb.subtask(managed_keyed=sb.canonical(3, [len(header)], sb.inline(content)))
    old = sb.write(tmp_path / "old", [sb.operator([task], uid="uid")])
    new, _ = mapped(tmp_path, lambda timer: DELETE if timer.timestamp == 5 else 9, old)
    [entry] = new.operator("uid").entries()
    assert (entry.key, entry.timestamp, entry.key_group) == ("A", 9, 3)
    with pytest.raises(UnsupportedKeyTypeError, match="as only the job knows the keys of"):
        mapped(tmp_path / "x", lambda timer: timer._replace(key="B"), old)
    damaged = header + sb.canonical_key_group([(0, [(entries[0][0], b"x")])])
    task = sb.subtask(managed_keyed=sb.canonical(3, [len(header)], sb.inline(damaged)))
    old = sb.write(tmp_path / "damaged", [sb.operator([task], uid="uid")])
    with pytest.raises(SavepointError, match="no entry: a timer of"):
        mapped(tmp_path / "y", lambda timer: 5, old)
