"""Keyed state of the changelog backend: each kind of change, and logs that are none.

What real checkpoints have in the end is held against Flink in test_savepoint_points.py and
test_savepoint_formats.py. The changes here are written as Flink's loggers write them, and what is
expected is what its appliers do with them.
"""

from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.changelog_bytes import (
    ADD,
    ADD_ELEMENT,
    ADD_OR_UPDATE_ELEMENT,
    CLEAR,
    MERGE_NAMESPACES,
    REMOVE_ELEMENT,
    SET,
    SET_INTERNAL,
    Change,
    change,
    change_set,
    changelog,
    changes_of,
    in_streams,
    inline,
    logged,
    write_log,
)
from support.bytes.real_savepoints import point
from support.growth import MOST, TIMES, count_bytes, count_steps
from support.inside.savepoints import ChangelogHandle, KeyGroupsHandle

from keygroups import assign_to_key_group, types
from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    SavepointError,
    UnsupportedKeyTypeError,
)
from keygroups.savepoint import (
    Operator,
    SavepointWriter,
    Serializer,
    TtlValue,
    change_max_parallelism,
    convert_to_canonical,
    read_savepoint,
)

STRING, LONG, VOID = sb.simple("String"), sb.simple("Long"), sb.NONE
TIMERS = logged(9, sb.state("t", "", sb.timer_of(STRING, VOID), backend_type=3), kind=3)
"""Timers tell what the keys are."""
A, B = b"\x02a\0", b"\x02b\0"  # keys with the namespace
X, Y, Z = b"\x02x", b"\x02y", b"\x02z"  # values


def operator_of(folder: Path, keyed: bytes) -> Operator:
    folder.mkdir(exist_ok=True)
    (operator,) = read_savepoint(
        sb.write(folder, [sb.operator([sb.subtask(managed_keyed=keyed)])])
    ).operators
    return operator


def replayed(folder: Path, *changes: Change) -> Operator:
    return operator_of(folder, changelog([], [inline([TIMERS, *changes])]))


def seen(operator: Operator) -> list[tuple[Any, ...]]:
    return [
        (entry.key_group, entry.key, entry.namespace, entry.user_key, entry.value)
        for entry in operator.entries()
    ]


@pytest.mark.parametrize("kind", ["VALUE", "REDUCING", "AGGREGATING"])
def test_values(kind: str, tmp_path: Path) -> None:
    state = logged(0, sb.state("s", kind, STRING))
    operator = replayed(
        tmp_path,
        state,
        change(SET, 0, A, X),
        change(SET, 0, B, X),
        change(SET_INTERNAL, 0, A, Y),
        change(CLEAR, 0, B),
        change(CLEAR, 0, B),
        change(SET, 0, A, X, key_group=5),
    )
    assert [str(state) for state in operator.states] == [
        "t: timers <STRING>",
        f"s: {kind} <STRING, STRING>",
    ]
    assert seen(operator) == [(3, "a", None, None, "y"), (5, "a", None, None, "x")]
    assert [entry.key_group for entry in operator.entries(key_groups=[5, 6])] == [5]
    assert list(operator.entries(states=["t"])) == []
    weights = operator.key_group_bytes().weights
    assert {group: size for group, size in enumerate(weights) if size} == {3: 5, 5: 5}


def test_lists(tmp_path: Path) -> None:
    several = sb.i32(2) + X + Y
    operator = replayed(
        tmp_path,
        logged(0, sb.state("s", "LIST", sb.list_of(STRING))),
        change(ADD_ELEMENT, 0, A, X),
        change(ADD_ELEMENT, 0, A, Y),
        change(ADD, 0, A, several),
        change(ADD_ELEMENT, 0, B, X),
        change(SET, 0, B, several),
        change(ADD, 0, b"\x02c\0", sb.i32(0)),
        change(SET_INTERNAL, 0, b"\x02d\0", several),
        change(SET_INTERNAL, 0, b"\x02d\0", sb.i32(0)),
        change(ADD_ELEMENT, 0, b"\x02e\0", X),
        change(CLEAR, 0, b"\x02e\0"),
    )
    assert [(entry[1], entry[4]) for entry in seen(operator)] == [
        ("a", ["x", "y", "x", "y"]),
        ("b", ["x", "y"]),
    ]


def test_maps(tmp_path: Path) -> None:
    operator = replayed(
        tmp_path,
        logged(0, sb.state("s", "MAP", sb.map_of(STRING, STRING))),
        change(ADD_OR_UPDATE_ELEMENT, 0, A, b"\x02k", X),
        change(ADD_OR_UPDATE_ELEMENT, 0, A, b"\x02k", Y),
        change(ADD_ELEMENT, 0, A, b"\x02l", X),
        change(ADD_OR_UPDATE_ELEMENT, 0, A, b"\x02m", X),
        change(REMOVE_ELEMENT, 0, A, b"\x02m"),
        change(REMOVE_ELEMENT, 0, A, b"\x02m"),
        change(REMOVE_ELEMENT, 0, b"\x02z\0", b"\x02m"),
        change(ADD, 0, A, sb.i32(2), b"\x02n\0" + X, b"\x02o\1"),
        change(ADD_OR_UPDATE_ELEMENT, 0, B, b"\x02k", X),
        change(CLEAR, 0, B),
    )
    assert [(entry[1], *entry[3:]) for entry in seen(operator)] == [
        ("a", "k", "y"),
        ("a", "l", "x"),
        ("a", "n", "x"),
        ("a", "o", None),
    ]


def test_timers(tmp_path: Path) -> None:
    def timer(time: int, key: bytes = A) -> bytes:
        return sb.i64(time ^ -(2**63)) + key

    operator = replayed(
        tmp_path,
        change(ADD_ELEMENT, 9, sb.i32(3), timer(5), timer(-1), timer(5, B)),
        change(ADD_ELEMENT, 9, sb.i32(1), timer(5)),
        change(REMOVE_ELEMENT, 9, timer(5, B)),
        change(REMOVE_ELEMENT, 9, timer(6)),
        change(ADD_ELEMENT, 9, sb.i32(0)),
    )
    found = [(entry.key, entry.timestamp) for entry in operator.entries()]
    assert found == [("a", -1), ("a", 5)]


@pytest.mark.parametrize("version", [6, 7])
def test_time_to_live(version: int, tmp_path: Path) -> None:
    """Stands before each value; what the job set stands behind the state's header."""
    last_access = sb.i64(1_700_000_000_000)
    group, state = logged(0, sb.state("s", "LIST", sb.list_of(sb.ttl_of(STRING))), version=version)
    of_the_job = state[:-5] + b"\1whatever the job has\0" + state[-3:]
    operator = replayed(
        tmp_path,
        (group, of_the_job),
        change(ADD_ELEMENT, 0, A, last_access, X),
        change(ADD, 0, A, sb.i32(1), last_access, Y),
    )
    (entry,) = operator.entries()
    assert entry.value == [TtlValue(1_700_000_000_000, text) for text in "xy"]


def in_namespace(key: bytes, namespace: bytes) -> bytes:
    return b"\x02" + key + b"\x02" + namespace


def merging(*sources: bytes, target: bytes = b"t") -> tuple[bytes, ...]:
    namespaces = b"".join(b"\x02" + source for source in sources)
    return in_namespace(b"a", target), b"\x02" + target, sb.i32(len(sources)), namespaces


def test_namespaces_that_merge(tmp_path: Path) -> None:
    """Elements of lists follow one another, those of the target first; others at most move."""
    lists = logged(0, sb.state("s", "LIST", sb.list_of(STRING), namespace=STRING))
    operator = replayed(
        tmp_path / "lists",
        lists,
        change(ADD_ELEMENT, 0, in_namespace(b"a", b"u"), X),
        change(ADD_ELEMENT, 0, in_namespace(b"a", b"t"), Z),
        change(ADD_ELEMENT, 0, in_namespace(b"a", b"v"), Y),
        change(ADD_ELEMENT, 0, in_namespace(b"b", b"u"), X),
        change(MERGE_NAMESPACES, 0, *merging(b"v", b"u", b"w")),
    )
    assert [entry[1:] for entry in seen(operator)] == [
        ("a", "t", None, ["z", "y", "x"]),
        ("b", "u", None, ["x"]),
    ]
    values = logged(0, sb.state("s", "REDUCING", STRING, namespace=STRING))
    one = change(SET, 0, in_namespace(b"a", b"u"), X)
    operator = replayed(
        tmp_path / "one", values, one, change(MERGE_NAMESPACES, 0, *merging(b"v", b"u"))
    )
    assert [entry[1:] for entry in seen(operator)] == [("a", "t", None, "x")]
    operator = replayed(tmp_path / "no", values, change(MERGE_NAMESPACES, 0, *merging(b"v", b"u")))
    assert seen(operator) == []
    other = change(SET, 0, in_namespace(b"a", b"t"), Y)
    operator = replayed(
        tmp_path / "two", values, one, other, change(MERGE_NAMESPACES, 0, *merging(b"u"))
    )
    with pytest.raises(SavepointError, match="windows merge, which takes the job's own function"):
        seen(operator)


# What was materialized


def header_and(kind: str, value: bytes, *entries: tuple[bytes, bytes], **more: Any) -> bytes:
    """A canonical handle of key group 3, of one state."""
    data = sb.keyed_header(STRING, [sb.state("s", kind, value, **more)])
    offset = len(data) if entries else 0
    if entries:
        data += sb.canonical_key_group([(0, entries)])
    return sb.canonical(3, [offset], sb.inline(data))


@pytest.mark.parametrize("namespace", [VOID, STRING])
def test_changes_to_what_was_materialized(namespace: bytes, tmp_path: Path) -> None:
    """No timers are needed: the header tells the type of keys."""
    space, end = (b"\0", b"") if namespace == VOID else (b"\x04now", b"\x04")
    length = b"\x02" if end else b""  # the key's, in bytes
    a, b = (b"\3\x02" + key + length + space + end for key in (b"a", b"b"))
    maps = header_and(
        *("MAP", sb.map_of(STRING, STRING)),
        *((a + b"\x02k", b"\0" + X), (a + b"\x02l", b"\0" + X), (b + b"\x02k", b"\0" + X)),
        namespace=namespace,
    )
    state = logged(0, sb.state("s", "MAP", sb.map_of(STRING, STRING), namespace=namespace))
    changes = [
        state,
        change(ADD_OR_UPDATE_ELEMENT, 0, b"\x02a", space, b"\x02k", Y),
        change(REMOVE_ELEMENT, 0, b"\x02a", space, b"\x02l"),
        change(CLEAR, 0, b"\x02b", space),
    ]
    operator = operator_of(tmp_path, changelog([maps], [inline(changes)]))
    assert [(entry[1], *entry[3:]) for entry in seen(operator)] == [("a", "k", "y")]
    lists = header_and("LIST", sb.list_of(STRING), (b"\3" + A, X + b"," + Y))
    state = logged(4, sb.state("s", "LIST", sb.list_of(STRING)))
    changes = [state, change(ADD_ELEMENT, 4, A, X), change(ADD_ELEMENT, 4, A, X, key_group=4)]
    operator = operator_of(tmp_path, changelog([lists], [inline(changes)]))
    assert [(entry[0], entry[4]) for entry in seen(operator)] == [(3, ["x", "y", "x"]), (4, ["x"])]
    assert operator.tasks()[0].format.has_offsets is False
    assert len(list(operator.tasks()[0].split(1))) > 1


@pytest.mark.parametrize("form", ["native", "canonical"])
def test_elements_after_a_list_without_any(form: str, tmp_path: Path) -> None:
    """A job on the heap that empties a list in place materializes it so, and adds to it later.

    Flink: ListDelimitedSerializer, which writes no bytes then, ListSerializer.
    """
    header = sb.keyed_header(STRING, [sb.state("s", "LIST", sb.list_of(STRING))])
    if form == "native":
        entries = b"".join(b"\0" + key[:-1] + sb.i32(0) for key in (A, B))
        stream = sb.inline(header + sb.i32(3) + sb.i16(0) + sb.i32(2) + entries)
        materialized = sb.native(3, [len(header)], stream)
    else:
        content = sb.canonical_key_group([(0, [(b"\3" + key, b"") for key in (A, B)])])
        materialized = sb.canonical(3, [len(header)], sb.inline(header + content))
    state = logged(4, sb.state("s", "LIST", sb.list_of(STRING)))
    added = [change(ADD_ELEMENT, 4, A, value) for value in (X, Y)]
    operator = operator_of(tmp_path, changelog([materialized], [inline([state, *added])]))
    assert [(entry.key, entry.value) for entry in operator.entries()] == [
        ("a", ["x", "y"]),
        ("b", []),
    ]


def test_two_that_were_materialized_and_no_changes(tmp_path: Path) -> None:
    first = header_and("VALUE", STRING, (b"\3" + A, X))
    data = sb.keyed_header(STRING, [sb.state("s", "VALUE", STRING)])
    content = data + sb.canonical_key_group([(0, [(b"\2" + B, Y)])])
    second = sb.canonical(2, [len(data)], sb.inline(content))
    operator = operator_of(tmp_path, changelog([first, second], []))
    assert [entry[:2] for entry in seen(operator)] == [(2, "b"), (3, "a")]


@pytest.mark.parametrize("quarters", [1, 2, 3])
def test_real_changes_after_real_state(quarters: int, tmp_path: Path) -> None:
    """A real log, the start of which is materialized: in the end as all of it, held to Flink."""
    one = point("2.3.0-changelog-checkpoint")
    (whole,) = (operator for operator in one.read().operators if operator.tasks())
    (metadata,) = (
        each for each in one.read().metadata.operators if any(task.keyed for task in each.subtasks)
    )
    for subtask in metadata.subtasks:
        handle = subtask.managed_keyed
        assert isinstance(handle, ChangelogHandle)
        ((offset, stream),) = handle.changes[0].streams
        changes = changes_of(Path(one.files.path_of(stream)).read_bytes()[1 + offset :])
        headers = [change for change in changes if change[0] == -1]
        made = changes[len(headers) :]
        split = len(made) * quarters // 4
        folder = tmp_path / str(subtask.index)
        operator_of(folder, changelog([], [inline([*headers, *made[:split]])]))
        new = tmp_path / f"new-{subtask.index}"
        convert_to_canonical(folder, new)
        (written,) = read_savepoint(new).metadata.operators
        base = written.subtasks[0].managed_keyed
        assert isinstance(base, KeyGroupsHandle)
        stored = sb.inline((new / base.stream.path).read_bytes())
        materialized = sb.canonical(0, base.offsets, stored)
        log = write_log(folder, change_set(headers), change_set([*headers, *made[split:]]))
        found = operator_of(folder, changelog([materialized], [in_streams(log)]))
        expected = [entry for entry in whole.entries() if entry.subtask == subtask.index]
        assert len(expected) > 100
        assert Counter(repr(entry._replace(subtask=0)) for entry in found.entries()) == Counter(
            repr(entry._replace(subtask=0)) for entry in expected
        )


def test_sizes_are_those_of_what_was_materialized(tmp_path: Path) -> None:
    """Where there are no changes it says them by itself, of which only the header is read."""
    header = sb.keyed_header(STRING, [sb.state("s", "VALUE", LONG)])
    content = sb.canonical_key_group([(0, [(b"\3" + A, sb.i64(5))])])
    keyed = sb.canonical(3, [len(header)], sb.inline(header + content))
    alone = operator_of(tmp_path / "alone", keyed)
    whole = operator_of(tmp_path / "whole", changelog([keyed], []))
    changed = operator_of(tmp_path / "changed", changelog([keyed], [inline([TIMERS])]))
    plans = [list(operator.tasks()[0].size_plan()) for operator in (alone, whole, changed)]
    assert plans[0] == plans[1] != plans[2]
    weights = [operator.key_group_bytes().weights for operator in (alone, whole)]
    assert weights[0] == weights[1]
    assert weights[0][3] == len(content)


# Logs that are none


STATE = logged(0, sb.state("s", "VALUE", STRING))
LISTS = logged(1, sb.state("l", "LIST", sb.list_of(STRING)))
MAPS = logged(2, sb.state("m", "MAP", sb.map_of(STRING, STRING)))
KRYO = logged(3, sb.state("k", "LIST", sb.list_of(sb.kryo_of("a.B"))))
KRYO_KEYS = logged(9, sb.state("t", "", sb.timer_of(sb.kryo_of("a.B"), VOID), backend_type=3))
CANONICAL = "take a savepoint in canonical format, which has no changes$"
REFUSED: dict[str, tuple[list[Change], str]] = {
    "no type of keys": ([STATE], rf"do not say what the keys are.*: {CANONICAL}"),
    "keys of the job's": (
        [KRYO_KEYS, change(ADD_ELEMENT, 9, sb.i32(0))],
        r"cannot be replayed: .*KRYO\(a\.B\).* takes the job.s own classes to read; "
        f"can be read: no state: {CANONICAL}",
    ),
    "two types of keys": (
        [TIMERS, logged(8, sb.state("u", "", sb.timer_of(LONG, VOID), backend_type=3))],
        "say of several types of keys",
    ),
    "other serializers": (
        [TIMERS, STATE, logged(0, sb.state("s", "VALUE", LONG))],
        f"other serializers than what came before: {CANONICAL}",
    ),
    "no such state": (
        [TIMERS, change(SET, 0, A, X)],
        "in key group 3 are of a state that no header has",
    ),
    "no header": ([(-1, b"\1" + STATE[1][1:])], "operation 1 is not known"),
    "a version": ([logged(0, sb.state("s", "VALUE", STRING), version=8)], "header 8 is not known"),
    "a header cut short": ([(-1, STATE[1][:-3])], "the number of a state is missing"),
    "an operation": ([TIMERS, STATE, change(8, 0, A)], "operation 8 is not known there"),
    "an operation on a list": ([TIMERS, LISTS, change(7, 1, A)], "operation 7 is not known there"),
    "an operation on a map": ([TIMERS, MAPS, change(SET, 2, A, X)], "operation 1 is not known"),
    "a merge of maps": (
        [TIMERS, MAPS, change(MERGE_NAMESPACES, 2, A, b"\0", sb.i32(0))],
        "operation 4 is not known",
    ),
    "an operation on timers": ([TIMERS, change(CLEAR, 9)], "operation 0 is not known there"),
    "no key": ([TIMERS, STATE, change(SET, 0, b"\x05")], "of s: VALUE .* in key group 3: "),
    "no operation": ([TIMERS, STATE, (3, b"")], "in key group 3: index out of range"),
    "bytes behind a clear": ([TIMERS, STATE, change(CLEAR, 0, A, b"x")], "change of 6 bytes in 7"),
    "bytes behind a merge": (
        [TIMERS, STATE, change(MERGE_NAMESPACES, 0, A, b"\0", sb.i32(0), b"x")],
        "a change of 11 bytes in 12",
    ),
    "a value cut short": ([TIMERS, STATE, change(SET, 0, A, b"\x05")], "is no entry: too few"),
    "a list of too many": ([TIMERS, LISTS, change(ADD, 1, A, sb.i32(99), X)], "too few bytes"),
    "bytes behind a list": (
        [TIMERS, LISTS, change(ADD, 1, A, sb.i32(1), X + X)],
        "a change of 12 bytes in 14",
    ),
    "elements of the job's": (
        [TIMERS, KRYO, change(ADD, 3, A, sb.i32(1), X)],
        r"KRYO\(a\.B\) takes the job's own classes to read",
    ),
    "bytes behind a map": (
        [TIMERS, MAPS, change(ADD, 2, A, sb.i32(0), X)],
        "a change of 10 bytes in 12",
    ),
    "bytes behind a user key": (
        [TIMERS, MAPS, change(REMOVE_ELEMENT, 2, A, X, X)],
        "a change of 8 bytes in 10",
    ),
    "bytes behind timers": (
        [TIMERS, change(ADD_ELEMENT, 9, sb.i32(0), X)],
        "a change of 7 bytes in 9",
    ),
    "too many timers": ([TIMERS, change(ADD_ELEMENT, 9, sb.i32(2**31 - 1))], "too few bytes"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_changes(name: str, tmp_path: Path) -> None:
    changes, message = REFUSED[name]
    operator = operator_of(tmp_path, changelog([], [inline(changes)]))
    assert operator.subtasks[0].bytes == sum(len(data) for _, data in changes)
    assert "1" in str(read_savepoint(tmp_path))
    with pytest.raises(SavepointError, match=message) as caught:
        list(operator.entries())
    assert tmp_path.name in str(caught.value)


def test_values_of_the_job_are_bytes(tmp_path: Path) -> None:
    """Where the change says where they end."""
    values = logged(0, sb.state("s", "VALUE", sb.kryo_of("a.B")))
    operator = replayed(
        tmp_path, values, KRYO, change(SET, 0, A, b"abc"), change(ADD_ELEMENT, 3, A, b"de")
    )
    assert [entry.value for entry in operator.entries()] == [b"abc", b"de"]


def test_other_key_groups_are_left_alone(tmp_path: Path) -> None:
    """They may be damaged: each subtask has its own, in what several may have written."""
    operator = replayed(tmp_path, STATE, change(SET, 0, A, X), change(99, 0, b"", key_group=200))
    assert [entry[0] for entry in seen(operator)] == [3]


FIRST = change_set([TIMERS, STATE, change(SET, 0, A, X)])
SECOND = change_set([change(SET, 0, B, Y)])


def test_nothing_at_all(tmp_path: Path) -> None:
    """Neither state nor changes: of a subtask that never had a key."""
    for handle in (changelog([], []), changelog([b"\0"], [inline([]), in_streams([]), b"\0"])):
        operator = operator_of(tmp_path, handle)
        assert operator.states == ()
        assert list(operator.entries()) == []
        assert operator.subtasks[0].key_groups is None


def test_headers_are_read_once(tmp_path: Path) -> None:
    """Each piece of a log may repeat them."""

    def steps(count: int) -> int:
        operator = replayed(tmp_path, *[STATE, LISTS, MAPS] * count, change(SET, 0, A, X))
        return count_steps(lambda: list(operator.entries()))

    assert steps(100) < 2 * steps(1)


def test_files(tmp_path: Path) -> None:
    """Pieces of one file and of several, with bytes of others between them."""
    log = write_log(tmp_path, FIRST, b"of others", SECOND)
    inside = sb.inline(b"\0" + change_set([change(SET, 0, b"\x02c\0", X)]))
    handles = [in_streams([log[0], log[2], (0, inside)]), in_streams([log[2]])]
    operator = operator_of(tmp_path, changelog([], handles))
    assert [entry[1] for entry in seen(operator)] == ["a", "b", "c"]
    assert operator.subtasks[0].bytes == 12


def test_pieces_without_changes(tmp_path: Path) -> None:
    """Of no key group, and of one that has none."""
    log = write_log(tmp_path, FIRST, change_set([]), sb.i32(1, 0, 3), SECOND)
    operator = operator_of(tmp_path, changelog([], [in_streams(log)]))
    assert [entry[1] for entry in seen(operator)] == ["a", "b"]


def test_refused_files(tmp_path: Path) -> None:
    log = write_log(tmp_path, FIRST, SECOND)
    (tmp_path / "packed").write_bytes(b"\1" + FIRST)
    packed = sb.relative("packed", len(FIRST))
    inside = sb.inline(b"\0" + FIRST)
    short = sb.inline(b"\0" + FIRST[:-1])
    negative = sb.inline(b"\0" + sb.i32(-1))
    endless = sb.inline(b"\0" + sb.i32(2**31 - 1, 2**31 - 1, 3, 2**31 - 1))
    for streams, message in (
        ([log[0], log[0]], f"the changes .* overlap in their file: {CANONICAL}"),
        ([log[0], (0, inside), log[1]], "come back to a file"),
        ([(0, packed)], f"are compressed, which is not read here: {CANONICAL}"),
        ([(0, sb.inline(b""))], "1 bytes were to follow, of 0 in all"),
        ([(0, sb.relative("log", 5))], "the file has .* bytes, its handle says 6"),
        ([(0, sb.relative("nowhere", 5))], "nowhere: cannot be opened"),
        ([(0, short)], "the bytes end too early"),
        ([(0, negative)], "a count of -1"),
        ([(0, endless)], "the bytes end too early"),
        ([(99, inside)], "the bytes end too early"),
        ([(10**9, inside)], "the bytes end too early"),
    ):
        operator = operator_of(tmp_path, changelog([], [in_streams(streams)]))
        with pytest.raises(SavepointError, match=message):
            seen(operator)
    with pytest.raises(SavepointError, match="a size or offset of -1"):
        operator_of(tmp_path, changelog([], [in_streams([(-1, inside)])]))


# Work and memory


def test_changes_take_time_once(tmp_path: Path) -> None:
    """Four times the changes, to one list and map and to many: about four times the steps."""

    def steps(count: int) -> int:
        changes = []
        for number in range(count):
            key = b"\x05%04d\0" % number
            changes += [
                change(ADD_ELEMENT, 1, A, X),
                change(ADD_OR_UPDATE_ELEMENT, 2, A, key[:-1], X),
                change(CLEAR, 2, B),
                change(SET, 0, key, X),
            ]
        operator = replayed(tmp_path, STATE, LISTS, MAPS, *changes)
        return count_steps(lambda: list(operator.entries()))

    steps(50)
    assert steps(50 * TIMES) < MOST * steps(50)


def test_only_changes_that_are_asked_for_are_held(tmp_path: Path) -> None:
    changes = [
        change(ADD_ELEMENT, 1, A, b"\x7f" + b"x" * 126, key_group=group)
        for group in range(100)
        for _ in range(40)
    ]
    log = write_log(tmp_path, change_set([TIMERS, LISTS, *changes]))
    operator = operator_of(tmp_path, changelog([], [in_streams(log)]))
    assert operator.states
    everything = count_bytes(lambda: [None for _ in operator.entries()])
    some = count_bytes(lambda: [None for _ in operator.entries(key_groups=[7])])
    assert everything - some > 300_000


# Changes alone, which do not say what the keys are

SOME = [STATE, LISTS]


def of_keys(folder: Path, key_type: Any, *changes: Change) -> Operator:
    """Return an operator of some changes, whose keys are told."""
    folder.mkdir(exist_ok=True)
    keyed = changelog([], [inline([*SOME, *changes])])
    path = sb.write(folder, [sb.operator([sb.subtask(managed_keyed=keyed)], uid="op")])
    return read_savepoint(path, key_types={"op": key_type}).operators[0]


def test_keys_that_are_told(tmp_path: Path) -> None:
    """Every verb has them: reading, looking up, re-keying, editing, tables, on another machine."""
    a, b = (assign_to_key_group(key, 128, types.STRING) for key in "ab")
    changes = [
        change(SET, 0, A, X, key_group=a),
        change(SET, 0, B, Y, key_group=b),
        change(ADD_ELEMENT, 1, A, Z, key_group=a),
    ]
    operator = of_keys(tmp_path / "old", types.STRING, *changes)
    assert sorted(seen(operator), key=repr) == sorted(
        [(a, "a", None, None, "x"), (a, "a", None, None, ["z"]), (b, "b", None, None, "y")],
        key=repr,
    )
    assert operator.get("a") == {"s": "x", "l": ["z"]}
    assert pickle.loads(pickle.dumps(operator)).get("b") == {"s": "y"}
    assert operator.to_arrow("s").num_rows == 2
    savepoint = read_savepoint(tmp_path / "old", key_types={"op": types.STRING})
    assert not savepoint.verify().has_faults
    change_max_parallelism(savepoint, 4096, tmp_path / "moved")
    with SavepointWriter.from_existing_savepoint(savepoint, tmp_path / "edited") as editor:
        editor.operator("op").delete_keys(["b"])
    for name, keys in (("moved", {"a", "b"}), ("edited", {"a"})):
        [new] = read_savepoint(tmp_path / name).operators
        assert {entry.key for entry in new.entries()} == keys


@pytest.mark.parametrize(
    ("key_type", "changes", "message"),
    [
        (types.LONG, [change(SET, 0, A, X)], "have a key that is no LONG: |of s"),
        (
            types.INT,
            [change(SET, 0, b"\2a\0\0\0", X)],
            "have key 39911424 in key group 3, which is",
        ),
        (types.STRING, [change(SET, 0, A, X)], "have key 'a' in key group 3, which is of key"),
        (types.STRING, [change(SET, 0, b"\0\0", X)], "have a key that is no STRING: "),
        (
            types.LONG,
            [TIMERS],
            "have keys of STRING, key_types LONG: take a savepoint in canonical",
        ),
    ],
)
def test_keys_that_are_told_wrong(
    key_type: Any, changes: list[Change], message: str, tmp_path: Path
) -> None:
    """A key of another type is in another key group, or none at all."""
    with pytest.raises(SavepointError, match=message):
        list(of_keys(tmp_path / "old", key_type, *changes).entries())


def test_keys_that_are_told_and_there(tmp_path: Path) -> None:
    """Where timers say the same."""
    a = assign_to_key_group("a", 128, types.STRING)
    reports = [TIMERS, change(SET, 0, A, X, key_group=a)]
    assert seen(of_keys(tmp_path / "old", types.STRING, *reports)) == [(a, "a", None, None, "x")]


def test_what_tells_no_keys(tmp_path: Path) -> None:
    path = sb.write(tmp_path / "old", [sb.operator([], uid="op")])
    name = "BytePrimitiveArraySerializer"
    arrays = sb.snapshot(f"{sb.BASE}array.{name}${name}Snapshot", 3)
    unhashed = Serializer.from_snapshot(sb.i32(2) + arrays)
    refused: list[tuple[Any, type[Exception], str]] = [
        ([], InvalidTypeError, r"key_types must be a mapping by operator, got \[\]"),
        ({"nobody": types.LONG}, InvalidValueError, "operator must be an operator's uid, name"),
        ({5: types.LONG}, InvalidTypeError, "operator in key_types must be a str"),
        ({"op": "LONG"}, InvalidTypeError, "key type in key_types must be a key type such as"),
        ({"op": unhashed}, UnsupportedKeyTypeError, "must be one whose hash is known, got "),
    ]
    for key_types, error, message in refused:
        with pytest.raises(error, match=message):
            read_savepoint(path, key_types=key_types)
