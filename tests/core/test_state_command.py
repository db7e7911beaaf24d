"""The command's look at keyed state: what a key has, and a state as a file."""

from __future__ import annotations

import datetime as dt
import json
import os
import signal
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.real_savepoints import point
from support.inside.serializers import LONG as LONG_SERIALIZER
from support.inside.serializers import VOID_NAMESPACE, write_string

from keygroups import types
from keygroups.cli import _state, main
from keygroups.cli._json_values import _cell, json_lines, value_data
from keygroups.cli._new_file import new_file
from keygroups.errors import LeftoverWarning
from keygroups.savepoint import (
    KryoEnum,
    ListStateDescriptor,
    MapStateDescriptor,
    Pojo,
    Row,
    SavepointWriter,
    StateDescriptor,
    StateEntry,
    TimerServiceDescriptor,
    TtlValue,
    ValueStateDescriptor,
)

HEAP = str(point("2.3.0-heap-canonical").path)
STRING, LONG = sb.simple("String"), sb.simple("Long")


def savepoint(folder: Path, value: bytes = sb.i64(5)) -> str:
    """Write keyed state of a key in key group 3 of 128."""
    states = [sb.state("n", "VALUE", LONG), sb.state("by", "MAP", sb.map_of(STRING, LONG))]
    header = sb.keyed_header(STRING, states)
    key = b"\3" + write_string("157")
    content = sb.canonical_key_group(
        [(0, [(key + b"\0", value)]), (1, [(key + b"\0" + write_string("a"), b"\0" + sb.i64(7))])]
    )
    keyed = sb.canonical(3, [len(header)], sb.inline(header + content))
    task = sb.operator([sb.subtask(managed_keyed=keyed)], uid="by-key")
    return str(sb.write(folder, [task]))


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(["savepoint", *arguments])
    out, err = capsys.readouterr()
    return status, out, err


def test_a_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = savepoint(tmp_path)
    status, out, _ = run(capsys, path, "--key", "157")
    assert (status, out) == (
        0,
        "key '157' of by-key, key group 3, subtask 0\nn   5\nby  {'a': 7}\n",
    )
    data = {"key": "157", "key_group": 3, "subtask": 0, "states": {"n": 5, "by": {"a": 7}}}
    for more in ((), ("--type", "string"), ("--operator", "by-key")):
        _, out, _ = run(capsys, path, "--key", "157", "--json", *more)
        answer = json.loads(out)
        del answer["operator_id"]
        assert answer == data
    _, out, _ = run(capsys, path, "--key", "157", "--state", "n")
    assert out.endswith("subtask 0\nn  5\n")
    _, out, _ = run(capsys, path, "--key", "nobody", "--state", "n")
    assert out.startswith("key 'nobody' of by-key")
    assert out.endswith(": nothing\n")


def test_the_data_of_values(capsys: pytest.CaptureFixture[str]) -> None:
    """As Flink read them: those of the first key of each state."""
    read = point("2.3.0-heap-canonical").read()
    operator = read.operator("by-string")
    key = next(entry.key for entry in operator.entries(["ttlMap"]))
    _, out, _ = run(capsys, HEAP, "--operator", "by-string", "--key", key, "--json")
    data = json.loads(out)["states"]
    item = operator.get(key)
    assert data["count"] == item["count"]
    assert data["avg"] == item["avg"]
    assert data["pair"] == [*item["pair"]]
    assert data["visits"] == [element._asdict() for element in item["visits"]]
    assert data["label"] == item["label"]._asdict()
    assert data["ttlMap"] == [[key, value._asdict()] for key, value in item["ttlMap"].items()]
    assert data["history"] == item["history"]


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (None, None),
        (True, True),
        (2**70, 2**70),
        (1.5, 1.5),
        (float("nan"), "nan"),
        (Decimal("1.50"), "1.50"),
        (dt.datetime(2026, 1, 2, 3, 4, 5, 600), "2026-01-02T03:04:05.000600"),
        (dt.time(3, 4), "03:04:00"),
        (UUID(int=5), str(UUID(int=5))),
        (b"\0\xff", {"base64": "AP8="}),
        (Pojo("a.B", {"n": (1, b"a")}), {"n": [1, {"base64": "YQ=="}]}),
        (Row((1, "a"), names=("n", "m")), {"n": 1, "m": "a"}),
        (Row((1, None)), [1, None]),
        (TtlValue(5, {"a": 1}), {"last_access": 5, "value": {"a": 1}}),
        ({1: "a"}, [[1, "a"]]),
        ({"b", "a"}, ["a", "b"]),
        (KryoEnum("A"), "KryoEnum('A')"),
    ],
)
def test_the_json_of_a_value(value: Any, data: Any) -> None:
    assert value_data(value) == data
    assert json.loads(json.dumps(value_data(value))) == data


def test_json_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The rows of the table, by the entries: one operator's only state, or a named one."""
    path = savepoint(tmp_path)
    status, out, _ = run(capsys, path, "--export", "-", "--state", "by")
    line = {"key_group": 3, "subtask": 0, "key": "157", "user_key": "a", "value": 7, "bytes": 16}
    assert (status, json.loads(out)) == (0, line)
    status, out, _ = run(capsys, path, "--export", str(tmp_path / "by.jsonl"), "--state", "by")
    assert (status, out) == (0, f"1 entries of by: {tmp_path}/by.jsonl\n")
    assert json.loads((tmp_path / "by.jsonl").read_text()) == line
    status, _, err = run(capsys, path, "--export", "-")
    assert (status, "--state must name the one to export, of n, by" in err) == (2, True)
    status, _, err = run(capsys, path, "--export", str(tmp_path / "no" / "by.jsonl"))
    assert status == 2
    missing = str(tmp_path / "no" / "by.jsonl")
    status, _, err = run(capsys, path, "--export", missing, "--state", "by")
    assert (status, "cannot be written: No such file" in err) == (1, True)
    status, _, err = run(capsys, path, "--export", str(tmp_path / "by.jsonl"), "--state", "by")
    assert (status, "export must be of a new file" in err) == (2, True)


def test_json_lines_of_the_only_state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "new")
    with SavepointWriter(path) as writer:
        counts = [ValueStateDescriptor("count", types.LONG)]
        writer.add_operator("by-user", types.STRING, counts, 128, 1).write("count", "ann", 7)
    status, out, _ = run(capsys, path, "--export", "-")
    assert (status, json.loads(out)["value"]) == (0, 7)
    for target, line in ((str(tmp_path / "a.jsonl"), "1 entries of count: {}\n"), ("b", "")):
        status, out, err = run(capsys, path, "--export", target)
        assert (status, out) == ((0, line.format(target)) if line else (2, "")), err
    status, out, _ = run(capsys, path, "--export", str(tmp_path / "c.jsonl"), "--json")
    assert (status, json.loads(out)["state"]) == (0, "count")


def test_json_lines_of_real_state(capsys: pytest.CaptureFixture[str]) -> None:
    read = point("2.3.0-heap-canonical").read().operator("by-string")
    for state in read.states:
        arguments = ("--operator", "by-string", "--export", "-", "--state", state.name)
        status, out, _ = run(capsys, HEAP, *arguments)
        lines = [json.loads(line) for line in out.splitlines()]
        entries = [*read.entries([state.name])]
        assert (status, len(lines)) == (0, len(entries))
        assert [line["key"] for line in lines] == [entry.key for entry in entries]
        has = {name for name in ("last_access", "timestamp", "user_key") if name in lines[0]}
        assert has == {name for name in has if getattr(entries[0], name) is not None}


def test_fields_of_each_kind_of_state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line has what entries of its state have; elements of a list have their own times."""
    path, long = str(tmp_path / "new"), types.LONG
    states = [
        *(ValueStateDescriptor("v", long), ValueStateDescriptor("vt", long, has_ttl=True)),
        *(ListStateDescriptor("l", long), ListStateDescriptor("lt", long, has_ttl=True)),
        *(MapStateDescriptor("m", long, long), MapStateDescriptor("mt", long, long, has_ttl=True)),
        TimerServiceDescriptor(),
    ]
    with SavepointWriter(path) as writer:
        by = writer.add_operator("by", types.STRING, states, 128, 1, sort=True)
        for name in ("v", "l", "m"):
            value: Any = [5] if name == "l" else 5
            user_key = [6] if name == "m" else []
            by.write(name, "a", value, *user_key)
            timed = [TtlValue(1_700_000_000_000, 5)] if name == "l" else 5
            access = {} if name == "l" else {"last_access": 1_700_000_000_000}
            by.write(f"{name}t", "a", timed, *user_key, **access)
        by.write_timer("a", 1500)
    fields = {}
    for name in ("v", "vt", "l", "lt", "m", "mt", "_timer_state/event_user-timers"):
        status, out, _ = run(capsys, path, "--export", "-", "--state", name)
        assert status == 0
        fields[name] = " ".join(json.loads(out))
    assert fields == {
        "v": "key_group subtask key value bytes",
        "vt": "key_group subtask key value last_access bytes",
        "l": "key_group subtask key value bytes",
        "lt": "key_group subtask key value bytes",
        "m": "key_group subtask key user_key value bytes",
        "mt": "key_group subtask key user_key value last_access bytes",
        "_timer_state/event_user-timers": "key_group subtask key timestamp bytes",
    }


def test_keys_that_only_the_job_reads_are_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    described = StateDescriptor("s", "VALUE", LONG_SERIALIZER, VOID_NAMESPACE, LONG_SERIALIZER)
    entry = StateEntry("s", "VALUE", 1, 0, None, None, None, 5, None, None, 9, b"ab")
    [line] = json_lines(described, [entry])
    assert json.loads(line)["key_bytes"] == {"base64": "YWI="}


def test_a_csv_without_pyarrow(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    without_pyarrow(monkeypatch)
    path = savepoint(tmp_path)
    status, out, _ = run(capsys, path, "--export", str(tmp_path / "by.csv"), "--state", "by")
    assert out.startswith("1 entries of ")
    assert (status, (tmp_path / "by.csv").read_text()) == (
        0,
        '"key_group","subtask","key","user_key","value","bytes"\n3,0,"157","a",7,16\n',
    )
    target = tmp_path / "pair.csv"
    arguments = ("--operator", "by-string", "--export", str(target), "--state", "pair")
    status, _, err = run(capsys, HEAP, *arguments)
    assert (status, target.exists()) == (1, False)
    assert "takes PyArrow, which keygroups[arrays] has, and a .jsonl does not" in err
    assert [_cell("value", value) for value in (True, 5, "a")] == ["true", 5, "a"]


def without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for name in [*sys.modules]:
        if name.startswith("keygroups.savepoint._columns"):
            monkeypatch.delitem(sys.modules, name)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--key", "1", "--export", "a.csv"], 2, "--export goes without --key"),
        (["--state", "n"], 2, "--state goes with --export or --key"),
        (["--type", "INT"], 2, "--type goes with --key"),
        (["--key", "1", "--output", "x"], 2, "--export and --key go without --output"),
        (["--key", "1", "--type", "LONG"], 2, "type must be that of the keys of by-key, STRING"),
        (["--key", "1", "--operator", "a", "--operator", "b"], 2, "--operator must be one"),
        (["--key", "1", "--state", "x"], 2, "state must be one of by-key, which has n, by, got"),
        (
            ["--export", "a.xls", "--state", "n"],
            2,
            "ends in .parquet, .arrow, .feather, .csv, .jsonl",
        ),
        (["--export", "a\udcff.csv", "--state", "n"], 2, "export must be text in the encoding"),
    ],
)
def test_what_is_refused(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    status: int,
    message: str,
) -> None:
    answer = run(capsys, savepoint(tmp_path), *arguments)
    assert answer[:2] == (status, "")
    assert message in answer[2]


def test_one_of_several_operators_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capsys, HEAP, "--key", "1")
    assert status == 2
    assert "--operator must name the one to read, of those with keyed state: " in err
    status, _, err = run(capsys, HEAP, "--key", "1", "--operator", "src-by-int")
    assert status == 2
    assert "which has none" in err


@pytest.mark.parametrize("ending", ["parquet", "arrow", "feather", "csv"])
def test_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str], ending: str) -> None:
    pa: Any = pytest.importorskip("pyarrow")
    from pyarrow import csv, feather, parquet

    source, target = savepoint(tmp_path / "s"), tmp_path / f"by.{ending}"
    status, out, _ = run(capsys, source, "--export", str(target), "--state", "by")
    assert (status, out) == (0, f"1 entries of by: {target}\n")
    read = {"parquet": parquet.read_table, "csv": csv.read_csv}.get(ending, feather.read_table)
    row = {"key_group": 3, "subtask": 0, "key": "157", "user_key": "a", "value": 7}
    (seen,) = read(target).to_pylist()
    assert seen.pop("bytes") > 0
    assert {name: str(value) for name, value in seen.items()} == {
        name: str(value) for name, value in row.items()
    }
    if ending != "csv":
        assert read(target).schema.field("value").type == pa.int64()
    assert [*tmp_path.glob(".*")] == []
    status, _, err = run(capsys, source, "--export", str(target), "--state", "by")
    assert (status, err.count(f"export must be of a new file, got {str(target)!r}")) == (2, 1)
    _, out, _ = run(capsys, source, "--export", f"{target}.{ending}", "--state", "n", "--json")
    answer = json.loads(out)
    del answer["operator_id"]
    assert answer == {"path": f"{target}.{ending}", "state": "n", "entries": 1}


def test_row_groups_are_held_up_to_a_size(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    from pyarrow import parquet

    monkeypatch.setattr(_state, "_ROW_GROUP", 1)
    target = tmp_path / "n.parquet"
    run(capsys, HEAP, "--export", str(target), "--state", "count", "--operator", "by-string")
    file = parquet.ParquetFile(target)
    assert file.num_row_groups == 3  # a batch for each subtask
    assert file.read().num_rows == 25


def test_a_file_is_whole_or_absent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    damaged, out = savepoint(tmp_path / "s", b"\0"), tmp_path / "out"
    out.mkdir()
    for name, state, operator, message in [
        ("n.parquet", "n", None, "no entry of n: VALUE"),
        ("gone/n.parquet", "by", None, "cannot be written: No such file or directory"),
        ("pair.csv", "pair", "by-string", "a .csv has no column of struct<"),
    ]:
        source = [damaged] if operator is None else [HEAP, "--operator", operator]
        status, _, err = run(capsys, *source, "--export", str(out / name), "--state", state)
        assert status in (1, 2)
        assert message in err
        assert [*out.iterdir()] == []

    def stopped(file: Any, reader: Any) -> int:
        raise KeyboardInterrupt

    monkeypatch.setitem(_state._WRITERS, ".csv", stopped)
    status, _, _ = run(capsys, damaged, "--export", str(out / "by.csv"), "--state", "by")
    assert (status, [*out.iterdir()]) == (130, [])
    monkeypatch.undo()

    # Where a file has one name only it is renamed; what came in between stays.
    def no_links(source: Any, target: Any) -> None:
        raise PermissionError

    def late(source: Any, target: Any) -> None:
        raise FileExistsError(17, "File exists")

    monkeypatch.setattr(os, "link", late)
    status, _, err = run(capsys, damaged, "--export", str(out / "by.csv"), "--state", "by")
    assert (status, [*out.iterdir()]) == (2, [])
    assert "it is there" in err
    monkeypatch.setattr(os, "link", no_links)
    assert run(capsys, damaged, "--export", str(out / "by.csv"), "--state", "by")[0] == 0
    assert [path.name for path in out.iterdir()] == ["by.csv"]

    def none_and_late(source: Any, target: Path) -> None:
        target.write_text("another's")
        raise PermissionError

    monkeypatch.setattr(os, "link", none_and_late)
    status, _, err = run(capsys, damaged, "--export", str(out / "n.csv"), "--state", "by")
    assert (status, (out / "n.csv").read_text()) == (2, "another's")
    assert "it is there" in err


@pytest.mark.usefixtures("handlers")
def test_a_signal_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a table that is half written, and of a page; neither another one that comes then."""
    pytest.importorskip("pyarrow")
    source, out = savepoint(tmp_path / "s"), tmp_path / "out"
    out.mkdir()
    seen = []
    unlink = Path.unlink

    def interrupted(*_: Any) -> None:
        seen.append([path.suffix for path in out.iterdir()])
        signal.raise_signal(signal.SIGINT)

    def remove(path: Path, **named: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        unlink(path, **named)

    monkeypatch.setattr(Path, "unlink", remove)
    monkeypatch.setattr(os, "link", interrupted)
    for option in (["--export", str(out / "n.arrow"), "--state", "n"], ["--html", str(out / "a")]):
        assert run(capsys, source, *option) == (130, "", "")
        assert [*out.iterdir()] == []
    assert seen == [[".writing"]] * 2


@pytest.mark.filterwarnings("always::keygroups.errors.LeftoverWarning")
def test_what_a_killed_command_left_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyarrow")
    source, out = savepoint(tmp_path / "s"), tmp_path / "out"
    out.mkdir()
    digits = "0123456789abcdef" * 2
    rest = [out / f".{name}.{digits}.writing" for name in ("n.csv", "n.html")]
    others = [
        *(out / f".other.{digits}.writing", out / f".n.csv.{digits[1:]}.writing"),
        *(out / f"n.csv.{digits}.writing", out / f".n.csv.{digits}.writing2"),
    ]
    for path in (*rest, *others):
        path.touch()
    (out / f".n.csv.{digits[::-1]}.writing").mkdir()
    text = "was left by a command that was killed, unless one is at work there: it may be removed"
    for path, option in zip(rest, (["--state", "n", "--export", "n.csv"], ["--html", "n.html"])):
        status, _, err = run(capsys, source, *option[:-1], str(out / option[-1]))
        assert (status, err) == (0, f"keygroups savepoint: {path} {text}\n")
    assert all(path.exists() for path in (*rest, *others))


def test_a_warning_names_the_line_that_writes(tmp_path: Path) -> None:
    (tmp_path / f".n.csv.{'0' * 32}.writing").touch()
    with pytest.warns(LeftoverWarning) as caught, new_file("export", tmp_path / "n.csv"):
        pass
    assert [warning.filename for warning in caught] == [__file__]


def test_a_missing_pyarrow_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    without_pyarrow(monkeypatch)
    target = tmp_path / "n.parquet"
    status, _, err = run(capsys, savepoint(tmp_path), "--export", str(target), "--state", "n")
    assert (status, target.exists()) == (1, False)
    assert "tables of state need NumPy and PyArrow: pip install 'keygroups[arrays]'" in err


def test_a_savepoint_without_keyed_state(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(sb.write(tmp_path / "s", [sb.operator([], uid="a")]))
    status, _, err = run(capsys, path, "--key", "x")
    assert status == 2
    assert err.endswith("--operator must name the one to read, of those with keyed state: none\n")
