"""Another max parallelism or format, and other edits, in one pass over the state.

What two passes write is expected: first the edit alone, and then `change_max_parallelism` or
`convert_to_canonical` of that. Both are held against Flink's own savepoints elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.expected_savepoints import (
    COUNT,
    STRINGS,
    expected_files,
    keys_by_group,
    longs_by,
)
from support.bytes.real_savepoints import point
from support.inside.savepoints import KeyGroupsHandle, keyed_state

from keygroups.errors import InvalidValueError, ParallelismError, SavepointError
from keygroups.savepoint import (
    DELETE,
    EditReport,
    ListStateDescriptor,
    OperatorEditor,
    Savepoint,
    SavepointEditor,
    SavepointWriter,
    StateEntry,
    change_max_parallelism,
    convert_to_canonical,
    read_savepoint,
)
from keygroups.types import LONG, STRING

TIMERS = "_timer_state/event_user-timers"
TIME = 1_700_000_000_000
Verb = Callable[[OperatorEditor], object]


@pytest.fixture(autouse=True, params=["by columns", "by entries"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sort and write entries that move by columns, as large states are, and one by one."""
    least = 0 if request.param == "by columns" else 1 << 62
    monkeypatch.setattr(keyed_state, "LEAST_OF_COLUMNS", least)


def keyed_bytes(savepoint: Savepoint) -> dict[tuple[str, int], tuple[Any, bytes]]:
    """Return the key groups and bytes of canonical keyed state, by operator and subtask."""
    streams = {}
    for operator in savepoint.metadata.operators:
        for subtask in operator.subtasks:
            handle = subtask.managed_keyed
            if isinstance(handle, KeyGroupsHandle) and handle.is_canonical:
                with savepoint.files.open(handle.stream) as stream:
                    data = stream.read(0, stream.size)
                streams[operator.operator_id, subtask.index] = (handle.offsets, data)
    return streams


def several(entry: StateEntry) -> Any:
    """Return no entry, the one that was there, a changed one, one that moves or two."""
    return [
        DELETE,
        entry.value,
        entry.value + 1,
        entry._replace(key=f"{entry.key}-moved"),
        [entry, entry._replace(key=f"{entry.key}-more")],
    ][sum(map(ord, entry.key)) % 5]


def timer(entry: StateEntry) -> Any:
    assert entry.timestamp is not None
    return [DELETE, entry.timestamp, entry.timestamp + 5][entry.timestamp % 3]


LONGS = ListStateDescriptor("history", LONG)  # ints before
VERBS: dict[str, Verb] = {
    "map_entries": lambda operator: operator.map_entries("count", several),
    "user keys": lambda operator: operator.map_entries(
        "byCity", lambda entry: entry._replace(user_key=f"{entry.user_key}!")
    ),
    "map_keys": lambda operator: operator.map_keys(
        lambda key: DELETE if "9" in key else f"x{key}"
    ),
    "map_timers": lambda operator: operator.map_timers(TIMERS, timer),
    "convert_state": lambda operator: operator.convert_state("history", LONGS),
    "delete_keys": lambda operator: operator.delete_keys(["user-89019", "nobody"]),
    "set_ttl": lambda operator: operator.set_ttl("ttlMap", last_access=TIME),
    "rename_state": lambda operator: operator.rename_state("count", "number"),
    "remove_state": lambda operator: operator.remove_state("visits"),
}


def all_verbs(operator: OperatorEditor) -> None:
    for verb in VERBS.values():
        verb(operator)


def edited(old: Savepoint, new: Path, *verbs: Callable[[SavepointEditor], object]) -> EditReport:
    with SavepointWriter.from_existing_savepoint(old, new) as editor:
        for verb in verbs:
            verb(editor)
    return editor.report()


def check(old: Savepoint, verb: Verb, groups: int, parallelism: int | None, path: Path) -> None:
    """Compare one pass with two, whichever verb comes first."""
    one, two = path / "one", path / "two"
    report = edited(old, path / "edited", lambda editor: verb(editor.operator("by-string")))
    change_max_parallelism(path / "edited", groups, two, parallelism, ["by-string"])
    expected = keyed_bytes(read_savepoint(two))

    def rescale(editor: SavepointEditor) -> None:
        editor.set_max_parallelism(groups, parallelism=parallelism, operators=["by-string"])

    by_string = next(operator for operator in report.operators if operator.states)
    for number, verbs in enumerate(
        (
            [rescale, lambda editor: verb(editor.operator("by-string"))],
            [lambda editor: verb(editor.operator("by-string")), rescale],
        )
    ):
        text = edited(old, one.with_name(f"one-{number}"), *verbs)
        new = read_savepoint(one.with_name(f"one-{number}"))
        operator_id = new.operator("by-string").operator_id
        written = {
            place: data for place, data in keyed_bytes(new).items() if place[0] == operator_id
        }
        assert written
        assert written == {place: expected[place] for place in expected if place[0] == operator_id}
        [reports] = [operator for operator in text.operators if operator.written]
        assert reports.states == by_string.states
        assert reports.deleted_keys == by_string.deleted_keys
        assert (reports.old_max_parallelism, reports.new_max_parallelism) == (128, groups)


@pytest.mark.long
@pytest.mark.parametrize("name", VERBS)
def test_each_verb(name: str, tmp_path: Path) -> None:
    check(point("2.3.0-heap-canonical").read(), VERBS[name], 4096, 2, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        "1.20.5-heap-native",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("2.3.0-rocksinc-checkpoint", "1.20.5-changelog-checkpoint")
        ),
    ],
)
def test_all_verbs_of_other_formats(name: str, tmp_path: Path) -> None:
    check(point(name).read(), all_verbs, 96, None, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("parallelism", [None, 1])
def test_conversion(parallelism: int | None, tmp_path: Path) -> None:
    """With edits of one operator, all are in the canonical format."""
    old = point("2.3.0-heap-native").read()
    edited(old, tmp_path / "edited", lambda editor: all_verbs(editor.operator("by-string")))
    convert_to_canonical(tmp_path / "edited", tmp_path / "two", parallelism)
    edited(
        old,
        tmp_path / "one",
        lambda editor: editor.convert_to_canonical(parallelism=parallelism),
        lambda editor: all_verbs(editor.operator("by-string")),
    )
    new = read_savepoint(tmp_path / "one")
    assert keyed_bytes(new) == keyed_bytes(read_savepoint(tmp_path / "two"))
    assert (old.kind, new.kind) == (
        "native savepoint",
        None,
    )  # Flink tells a canonical one no kind


def test_conversion_of_some(tmp_path: Path) -> None:
    """All others are copied, and the savepoint is said to be what it was."""
    old = point("2.3.0-heap-native").read()
    edited(
        old,
        tmp_path / "new",
        lambda editor: editor.convert_to_canonical(parallelism=1, operators=["by-string"]),
    )
    new = read_savepoint(tmp_path / "new")
    by_string = new.operator("by-string")
    assert {operator_id for operator_id, _ in keyed_bytes(new)} == {by_string.operator_id}
    assert by_string.parallelism == 1
    assert new.kind == old.kind
    before, after = (
        sorted(repr(entry._replace(subtask=0, bytes=0)) for entry in operator.entries())
        for operator in (old.operator("by-string"), by_string)
    )
    assert before == after


def test_all_in_one_pass(tmp_path: Path) -> None:
    """Rescaled, mapped and renamed; the others stay as they are, byte for byte."""
    old = point("2.3.0-heap-canonical").read()
    report = edited(
        old,
        tmp_path / "new",
        lambda editor: editor.set_max_parallelism(4096, operators=["by-string"]),
        lambda editor: VERBS["map_entries"](editor.operator("by-string")),
        lambda editor: editor.change_operator_identifier("by-string", "by-user"),
        lambda editor: editor.remove_operator("by-int"),
    )
    new = read_savepoint(tmp_path / "new")
    assert new.operator("by-user").max_parallelism == 4096
    before, after = keyed_bytes(old), keyed_bytes(new)
    same = [place for place in after if place in before and before[place] == after[place]]
    assert len(same) == len(before) - 6  # Two operators have three subtasks each.
    lines = str(report).splitlines()
    [line] = [line for line in lines if line.startswith("by-user: ")]
    reports = "its state changed, max parallelism 128 -> 4096, renamed from by-string"
    assert line == f"by-user: {reports}"
    counts = [state for operator in report.operators for state in operator.states if state.changed]
    assert [state.state for state in counts] == ["count"]
    assert any(line.startswith("  count: ") and "entries kept" in line for line in lines)
    assert any(line.startswith("  count: ") and "bytes, in 3 subtasks" in line for line in lines)


def test_keys_of_an_unknown_hash(tmp_path: Path) -> None:
    """They move to a divisor, with edits too, and only to one."""
    old = point("2.3.0-pojo-canonical").read()
    state = next(one.name for one in old.operator("pojo").states if one.kind == "VALUE")

    def delete(entry: StateEntry) -> Any:
        return DELETE if entry.key_group % 2 else entry.value

    verbs: list[Callable[[SavepointEditor], object]] = [
        lambda editor: editor.operator("pojo").map_entries(state, delete),
    ]
    edited(old, tmp_path / "edited", *verbs)
    change_max_parallelism(tmp_path / "edited", 32, tmp_path / "two")
    edited(old, tmp_path / "one", lambda editor: editor.set_max_parallelism(32), *verbs)
    one, two = (keyed_bytes(read_savepoint(tmp_path / name)) for name in ("one", "two"))
    assert one == two
    with pytest.raises(SavepointError, match="must be a divisor of 128, got 129"):
        edited(old, tmp_path / "new", lambda editor: editor.set_max_parallelism(129), *verbs)
    # A key of a type whose hash is known goes wherever that is.
    edited(
        old,
        tmp_path / "known",
        lambda editor: editor.operator("pojo").map_keys(repr, STRING),
        lambda editor: editor.set_max_parallelism(129, operators=["pojo"]),
    )
    known = read_savepoint(tmp_path / "known")
    assert not known.verify().has_faults
    assert known.operator("pojo").max_parallelism == 129


def test_a_verb_that_is_refused_changes_no_operator(tmp_path: Path) -> None:
    """What comes after it writes the others as they were, in key groups of the job."""
    longs, count = small(tmp_path / "longs", 1, 5), sb.state("count", "VALUE", sb.simple("Long"))
    header = sb.keyed_header(sb.kryo_of("a.Key"), [count])
    entries = sb.canonical_key_group([(0, [(b"\3\0\0", bytes(8))])])
    keyed = sb.canonical(3, [len(header)], sb.inline(header + entries))
    sb.write(tmp_path / "other", [sb.operator([sb.subtask(managed_keyed=keyed)], uid="other")])
    editor = SavepointWriter.from_existing_savepoint(longs, tmp_path / "new")
    with editor as writer:
        writer.add_operator_from(tmp_path / "other", "other", "added")
        with pytest.raises(SavepointError, match="must be a divisor of 128, got 100"):
            writer.set_max_parallelism(100)
    assert not any(operator.states for operator in editor.report().operators)
    assert [by.max_parallelism for by in read_savepoint(tmp_path / "new").operators] == [128, 128]


# --- what is refused ----------------------------------------------------------------------------


def small(folder: Path, *key_groups: int, is_misplaced: bool = False) -> Savepoint:
    """Return a savepoint with an operator of a few longs, of which one may be misplaced."""
    entries = longs_by(keys_by_group(128, *key_groups))
    [file] = expected_files(STRINGS, [COUNT], entries, 128, 1)
    content = file.content
    if is_misplaced:
        key = keys_by_group(128, *key_groups)[0].encode()
        assert content.count(key) == 1
        content = content.replace(key, key[:-1] + b"~")
    task = sb.subtask(managed_keyed=sb.canonical(0, file.offsets, sb.inline(content)))
    return read_savepoint(sb.write(folder, [sb.operator([task], uid="by-string")]))


def test_what_functions_raise_and_return(tmp_path: Path) -> None:
    """It is raised as it was, whatever is open by then; nothing is left."""
    old = small(tmp_path / "old", 0, 5, 100)
    error = OSError("mine")

    def fail(entry: StateEntry) -> Any:
        raise error

    def to_one(entry: StateEntry) -> Any:
        return entry._replace(key="one")

    for function, cls, match in (
        (fail, OSError, "mine"),
        (to_one, InvalidValueError, "must come once"),
        (lambda entry: "x", Exception, "must be an int"),
    ):
        with pytest.raises(cls, match=match) as raised:
            edited(
                old,
                tmp_path / "new",
                lambda editor: editor.set_max_parallelism(64),
                lambda editor, function=function: editor.operator("by-string").map_entries(  # type: ignore[misc]  # The default binds it.
                    "count", function
                ),
            )
        assert (raised.value is error) == (function is fail)
    assert [path.name for path in tmp_path.iterdir()] == ["old"]


def test_misplaced_keys(tmp_path: Path) -> None:
    """Those that stay are refused, in a pass with other edits too; those that go are not."""
    old = small(tmp_path / "old", 0, 5, 100, is_misplaced=True)
    called = []
    for by in (0, 1):

        def verb(entry: StateEntry, by: int = by) -> Any:
            called.append((by, entry.key))
            return entry.value + by

        with pytest.raises(SavepointError, match=r"and of key group .* by its hash as STRING"):
            edited(
                old,
                tmp_path / "new",
                lambda editor: editor.set_max_parallelism(64),
                lambda editor, verb=verb: editor.operator("by-string").map_entries("count", verb),  # type: ignore[misc]  # The default binds it.
            )
    assert len(called) == len({*called})  # once for an entry, of which a later one may be wrong
    edited(
        old,
        tmp_path / "new",
        lambda editor: editor.set_max_parallelism(64),
        lambda editor: editor.operator("by-string").map_entries(
            "count", lambda entry: DELETE if "~" in entry.key else entry.value
        ),
    )
    assert not read_savepoint(tmp_path / "new").verify().has_faults


def test_verbs_are_checked_at_once(tmp_path: Path) -> None:
    """Before a folder is made."""
    editor = SavepointWriter.from_existing_savepoint(small(tmp_path / "old", 0), tmp_path / "new")
    calls: list[tuple[Callable[[], object], type[Exception], str]] = [
        (lambda: editor.set_max_parallelism(0), ParallelismError, "new_max_parallelism must be"),
        (
            lambda: editor.set_max_parallelism(64, parallelism=65),
            ParallelismError,
            r"parallelism must be from 1 to 64 \(new_max_parallelism\), got 65",
        ),
        (lambda: editor.set_max_parallelism(128), InvalidValueError, "changes nothing"),
        (lambda: editor.set_max_parallelism(64, operators=["b"]), InvalidValueError, "'b'"),
        (
            lambda: editor.convert_to_canonical(parallelism=129),
            ParallelismError,
            "parallelism 129",
        ),
        (lambda: editor.convert_to_canonical(parallelism=0), ParallelismError, "from 1 to"),
    ]
    for call, cls, match in calls:
        with pytest.raises(cls, match=match):
            call()
    with editor:
        editor.set_max_parallelism(64)
        editor.set_max_parallelism(32)
    assert read_savepoint(tmp_path / "new").operators[0].max_parallelism == 32
    too_late: list[Callable[[], object]] = [
        lambda: editor.set_max_parallelism(16),
        editor.convert_to_canonical,
    ]
    for late in too_late:
        with pytest.raises(InvalidValueError, match="nothing can be added after the block"):
            late()


def test_in_flight_data(tmp_path: Path) -> None:
    """Of any operator it belongs to the subtasks of before."""
    old = point("2.3.0-unaligned-checkpoint").read()
    with pytest.raises(SavepointError, match="of an unaligned checkpoint: take a savepoint"):
        edited(old, tmp_path / "new", lambda editor: editor.set_max_parallelism(64))
    with pytest.raises(SavepointError, match="of an unaligned checkpoint: take a savepoint"):
        edited(old, tmp_path / "new", lambda editor: editor.convert_to_canonical())
