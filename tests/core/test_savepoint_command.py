"""What the command prints of a savepoint, beside what Flink's own classes read in the same one."""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
from ast import literal_eval
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.real_savepoints import point, seen_entry, true_entries

from keygroups.cli import main
from keygroups.errors import SavepointError
from keygroups.savepoint import Savepoint, read_savepoint, relocate

DATA = Path(__file__).parents[2] / "examples" / "data" / "savepoint"
ORIGIN = point("2.3.0-heaptimers-canonical")

Print = Callable[..., str]


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str]) -> Print:
    """Return the function that runs the command and returns what it prints."""

    def run(*arguments: str) -> str:
        assert main(["savepoint", str(DATA), *arguments]) == 0
        printed, complaint = capsys.readouterr()
        assert complaint == ""
        return printed

    return run


def test_its_data_is_the_savepoint_that_it_says() -> None:
    assert (DATA / "_metadata").read_bytes() == (ORIGIN.path / "_metadata").read_bytes()


def sizes_of_key_groups() -> Counter[int]:
    """Return the bytes of each key group, from the offsets that Flink read in `_metadata`."""
    sizes: Counter[int] = Counter()
    for line in ORIGIN.truth("metadata"):
        if line["record"] == "managed_keyed":
            starts = [offset for offset in line["offsets"] if offset]
            ends = dict(pairwise([*starts, line["stream"]["size"]]))
            for key_group, offset in enumerate(line["offsets"], line["start"]):
                if offset:
                    sizes[key_group] = ends[offset] - offset
    return sizes


def test_heaviest_key_groups(shown: Print) -> None:
    sizes = sizes_of_key_groups()
    line = re.compile(r"^ +([\d,]+)  key group (\d+), subtask \d$", re.MULTILINE)
    printed = line.findall(shown("--top", str(len(sizes))))
    assert [(int(group), int(size.replace(",", ""))) for size, group in printed] == [
        *sizes.most_common()
    ]


def test_keys_with_their_entries(shown: Print) -> None:
    counts: Counter[tuple[str, int, int]] = Counter()
    for _, subtask, _, _, key_group, key, *_ in true_entries(ORIGIN.entries):
        counts[ascii(key), key_group, subtask] += 1
    line = re.compile(
        r"^ +[\d,]+  (.*), (\d+) entries, key group (\d+), subtask (\d)$", re.MULTILINE
    )
    printed = line.findall(shown("--top", str(len(counts)), "--operator", "by-string"))
    assert Counter((int(group), int(entries)) for _, entries, group, _ in printed) == Counter(
        (group, entries) for (_, group, _), entries in counts.items()
    )
    plain = {key: (group, subtask) for key, group, subtask in counts if len(key) < 20}
    seen = {
        ascii(literal_eval(key)): (int(g), int(s)) for key, _, g, s in printed if len(key) < 20
    }
    assert seen.items() >= {key: plain[key] for key in plain if "user" in key}.items()


def test_timers_of_a_key_have_their_dates(shown: Print) -> None:
    state = "_timer_state/event_user-timers"
    times = sorted(
        entry[-1]
        for entry in true_entries(ORIGIN.entries)
        if (entry[2], entry[5]) == (state, "user-89019")
    )
    dates = ", ".join(
        f"{time} ({datetime.fromtimestamp(time // 1000, timezone.utc):%Y-%m-%d %H:%M:%SZ})"
        for time in times
    )
    assert times
    assert f"\n{state}  {dates}\n" in shown("--key", "user-89019", "--state", state)


@pytest.mark.parametrize("text", ["it needs x: pip install x", "No module named 'keygroups.x'"])
def test_an_extra_that_is_not_there(
    text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def summary(*_: Any, **settings: Any) -> None:
        raise ModuleNotFoundError(text, name="x")

    monkeypatch.setattr(Savepoint, "summary", summary)
    if "pip" not in text:
        with pytest.raises(ModuleNotFoundError, match=text):
            edited(str(DATA), "--full")
        return
    assert edited(str(DATA), "--full") == 1
    assert capsys.readouterr().err == f"keygroups savepoint: {text}\n"


def test_bytes_that_a_rescale_moves(shown: Print) -> None:
    """From 3 to 2 subtasks of 128 key groups: 43 to 63 go from 1 to 0, 86 to 127 from 2 to 1."""
    sizes = sizes_of_key_groups()
    moved = sum(sizes[group] for group in (*range(43, 64), *range(86, 128)))
    assert f"weight: {moved:,} of {sizes.total():,} moves" in shown("--parallelism", "2")


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("nowhere",), 1, "nowhere/_metadata: cannot be opened"),
        ((str(DATA), "--operator", "by-nobody"), 2, "got 'by-nobody'"),
        ((str(DATA), "--parallelism", "0"), 2, "new_parallelism must be from 1 to 128"),
        ((str(DATA), "--top", "0"), 2, "top must be from 1 to 2147483647, got 0"),
    ],
)
def test_refusals_are_one_line(
    arguments: tuple[str, ...], status: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["savepoint", *arguments]) == status
    [line] = capsys.readouterr().err.splitlines()
    assert message in line


# --- edits ------------------------------------------------------------------------------


def edited(*arguments: str) -> int:
    return main(["savepoint", *arguments])


def text_of(key: Any) -> str:
    """Return the text for a key that Flink read, as `true_value` has it."""
    if isinstance(key, str):
        return key
    name, *_, value = key
    if name == "sql_row":
        value = tuple(field for _, field in value)
    if not isinstance(value, tuple):
        return str(value)
    fields = tuple(one if isinstance(one, str) else one[1] for one in value)
    return str(fields[0]) if len(fields) == 1 else repr(fields)


def seen(savepoint: Savepoint) -> Counter[tuple[Any, ...]]:
    """Return the entries of all operators, in the form of `true_entries`."""
    return Counter(
        seen_entry(operator, states[entry.state], entry)
        for operator in savepoint.operators
        for states in [{state.name: state for state in operator.states}]
        for entry in operator.entries()
    )


@pytest.mark.parametrize(
    ("name", "operators"),
    [
        ("2.3.0-heap-canonical", ("by-string", "tumbling", "session", "sliding-list")),
        ("2.3.0-heap-canonical", ("by-long",)),
        ("2.3.0-heap-canonical", ("by-tuple",)),
        ("2.3.0-sqlheap-canonical", ("GroupAggregate[9]",)),
        ("2.3.0-sqlheap-canonical", ("GroupAggregate[14]",)),
        ("2.3.0-rowkey-canonical", ("by-row",)),
        ("2.3.0-pyflink-canonical", ("py-string",)),
    ],
)
def test_keys_are_deleted(
    name: str, operators: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All else is what Flink read in the old savepoint, entry by entry."""
    old = point(name)
    ids = {old.read().operator(operator).operator_id for operator in operators}
    true = Counter(true_entries(old.entries))
    keys = dict.fromkeys(text_of(entry[5]) for entry in true if entry[0] in ids)
    doomed = [*keys][::3]
    (tmp_path / "keys").write_text("\n".join(doomed), "utf-8")
    named = [argument for operator in operators for argument in ("--operator", operator)]
    arguments = ("--delete-keys", f"{tmp_path}/keys", *named, "--output", f"{tmp_path}/new")
    assert edited(str(old.path), *arguments) == 0
    rest = +Counter(
        {
            entry: count
            for entry, count in true.items()
            if entry[0] not in ids or text_of(entry[5]) not in doomed
        }
    )
    assert 0 < rest.total() < true.total()
    assert seen(read_savepoint(tmp_path / "new")) == rest
    text = capsys.readouterr()
    assert text.err == ""
    numbers = re.findall(r"([\d,]+) entries kept, 0 changed, ([\d,]+) deleted", text.out)
    of_these = sum(count for entry, count in true.items() if entry[0] in ids)
    assert sum(int(deleted.replace(",", "")) for _, deleted in numbers) == (
        true.total() - rest.total()
    )
    assert sum(int(number.replace(",", "")) for pair in numbers for number in pair) == of_these


def test_all_edits_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each operator has its old name until all are renamed."""
    user, *_ = (entry[5] for entry in true_entries(ORIGIN.entries) if "user" in entry[5])
    passed = io.TextIOWrapper(io.BytesIO(f"{user}\nnobody\n{user}\n".encode()), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", passed)
    old = read_savepoint(DATA)
    new = str(tmp_path / "new")
    arguments = (
        *("--rename-operator", "by-string=uid:Sink: sink"),
        *("--rename-operator", f"{old.operator('src-by-string').operator_id}=a=b"),
        *("--delete-keys", "-", "--operator", "by-string", "--operator"),
        *(old.operator("by-string").operator_id, "--remove-operator", "Sink: sink"),
    )
    assert edited(str(DATA), *arguments, "--output", new, "--json") == 0
    data = json.loads(capsys.readouterr().out)
    operators = read_savepoint(new).operators
    assert [operator.uid for operator in operators] == ["Sink: sink", "a=b"]
    by_user = operators[0]
    assert {entry[2:] for entry in seen(read_savepoint(new))} == {
        entry[2:] for entry in true_entries(ORIGIN.entries) if entry[5] != user
    }
    assert data["path"] == new
    deleted, *others = (one["deleted_keys"] for one in data["operators"])
    assert others == [None, None]
    assert (deleted["with_entries"], deleted["without_entries"]) == (1, ["nobody"])
    assert "values of the state 'label'" in [one["place"] for one in deleted["may_be_in"]]
    shown = [
        (one["operator"], one["old_operator"], one["path"], one["is_added"])
        for one in data["operators"]
    ]
    assert shown == [
        ("Sink: sink", "by-string", str(DATA), False),
        ("a=b", "src-by-string", str(DATA), False),
        (None, "Sink: sink", str(DATA), False),
    ]
    before = Counter(entry[2] for entry in true_entries(ORIGIN.entries))
    after = Counter(entry.state for entry in by_user.entries())
    assert {
        one["state"]: (one["kept"], one["deleted"]) for one in data["operators"][0]["states"]
    } == {state: (after[state], before[state] - after[state]) for state in before}


def test_operators_alone_are_copied(tmp_path: Path) -> None:
    """Their files are, byte for byte."""
    arguments = ("--remove-operator", "src-by-string", "--rename-operator", "by-string=by-user")
    assert edited(str(DATA), *arguments, "--output", str(tmp_path / "new")) == 0
    old, new = read_savepoint(DATA), read_savepoint(tmp_path / "new")
    assert [operator.label for operator in new.operators] == ["Sink: sink", "by-user"]
    assert [*new.operator("by-user").entries()] == [*old.operator("by-string").entries()]


EDIT = ("--remove-operator", "Sink: sink")
KEYS = ("--operator", "by-string", "--delete-keys")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--rename-operator", "by-string"), "rename-operator must be such as OLD=NEW, got 'by-"),
        (("--rename-operator", "=b"), "rename-operator must be such as OLD=NEW, got '=b'"),
        (("--rename-operator", "by-string="), "rename-operator must be such as OLD=NEW, got"),
        (
            ("--rename-operator", "by-string=\udcff"),
            "rename-operator must be text in the encoding of the terminal",
        ),
        (("--rename-operator", "by-string=src-by-string"), "new_uid must be one of the job's"),
        (("--rename-operator", "nobody=b"), "got 'nobody'"),
        (("--remove-operator", "nobody"), "got 'nobody'"),
        ((*EDIT, *EDIT), "got 'Sink: sink'"),
        ((*EDIT, "--operator", "by-string"), "--delete-keys and --operator go together"),
        (("--delete-keys", "FILE"), "--delete-keys and --operator go together"),
        ((*KEYS, "FILE", "--delete-keys", "FILE"), "--delete-keys must not be repeated"),
        ((*KEYS, "FILE", "--remove-operator", "by-string"), "got 'by-string'"),
        ((*KEYS, "FILE", "--operator", "Sink: sink"), "operator Sink: sink has no keyed state"),
        ((*EDIT, "--set-max-parallelism", "64"), "go without --set-max-parallelism and"),
        ((*EDIT, "--parallelism", "2"), "go without --set-max-parallelism and --paral"),
        ((*EDIT, "--relocate", "new"), "--relocate goes without --output and --operator"),
        (
            (*EDIT, "--moved", "a=b", "--moved", "a=c"),
            "moved must have each OLD once, got ['a=b', 'a=c']",
        ),
        ((*KEYS, "nowhere"), "'nowhere' cannot be read: No such file or directory"),
        ((*KEYS, "\0"), r"'\x00' cannot be read: "),
        ((*KEYS, "EMPTY"), "keys must be at least one, got none"),
        ((*KEYS, "LATIN"), "LATIN' cannot be read: 'utf-8' codec can't decode byte 0xe9"),
    ],
)
def test_edits_that_are_refused(
    arguments: tuple[str, ...], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, data in (("FILE", b"a\n"), ("EMPTY", b""), ("LATIN", b"a\n\xe9\n")):
        (tmp_path / name).write_bytes(data)
    known = [str(tmp_path / one) if one.isupper() else one for one in arguments]
    assert edited(str(DATA), *known, "--output", str(tmp_path / "new")) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("keygroups savepoint: ")
    assert message in line
    assert sorted(path.name for path in tmp_path.iterdir()) == ["EMPTY", "FILE", "LATIN"]


def test_edits_without_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert edited(str(DATA), *EDIT) == 2
    assert "--delete-keys and --rename-operator go with --output" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "operator", "text", "message"),
    [
        ("2.3.0-heap-canonical", "by-long", "5\nx", "line 2: key of type LONG must be written"),
        ("2.3.0-heap-canonical", "by-tuple", "a", "line 1: key of type TUPLE(STRING, INT) must"),
        ("2.3.0-heap-canonical", "by-int", f"{2**31}", "2147483648"),
        (
            "2.3.0-pojo-canonical",
            "pojo",
            "a",
            "operator 'pojo' must have keys that can be written as text, got the states pojo: V",
        ),
    ],
)
def test_lines_that_are_no_keys(
    name: str,
    operator: str,
    text: str,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "keys").write_text(text, "utf-8")
    keys = ("--operator", operator, "--delete-keys", str(tmp_path / "keys"))
    assert edited(str(point(name).path), *keys, "--output", str(tmp_path / "new")) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert message in line
    assert [path.name for path in tmp_path.iterdir()] == ["keys"]


def test_without_states_no_text_is_a_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header = sb.keyed_header(sb.simple("String"), [])
    keyed = sb.canonical(3, [len(header)], sb.inline(header))
    task = sb.operator([sb.subtask(managed_keyed=keyed)], uid="by-key")
    old = str(sb.write(tmp_path / "old", [task]))
    (tmp_path / "keys").write_text("a")
    keys = ("--operator", "by-key", "--delete-keys", str(tmp_path / "keys"))
    assert edited(old, *keys, "--output", str(tmp_path / "new")) == 2
    assert capsys.readouterr().err.endswith("as text, got the states none\n")


def test_file_of_another_system(tmp_path: Path) -> None:
    """With the mark that Windows puts in front, and its ends of lines."""
    users = [*dict.fromkeys(entry[5] for entry in true_entries(ORIGIN.entries))][:2]
    (tmp_path / "keys").write_bytes("\r\n".join(users).encode("utf-8-sig"))
    assert edited(str(DATA), *KEYS, f"{tmp_path}/keys", "--output", f"{tmp_path}/new") == 0
    entries = read_savepoint(tmp_path / "new").operator("by-string").entries()
    assert {entry.key for entry in entries} == {
        entry[5] for entry in true_entries(ORIGIN.entries) if entry[5] not in users
    }


# --- checkpoints that were copied -------------------------------------------------------

COPIED = point("2.3.0-heaptimers-checkpoint")
OLD_COPIED = point("1.20.5-heaptimers-checkpoint")  # whose version of _metadata has no uids


def test_relocated_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its entries are those that Flink read; its shared files are not beside the copy."""
    copy = tmp_path / "chk-7"
    shutil.copytree(COPIED.path, copy)
    moved = [argument for pair in COPIED.moved.items() for argument in ("--moved", "=".join(pair))]
    arguments = (str(COPIED.path), "--relocate", str(copy))
    assert edited(*arguments) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert "3 of 3 files are not there" in line
    assert edited(*arguments, *moved) == 0
    reports = capsys.readouterr().out
    allow = ["--allow", str(COPIED.root)]
    assert edited(str(copy), *allow) == 0
    assert capsys.readouterr().out.startswith(reports)
    assert seen(read_savepoint(copy, allow=[COPIED.root])) == Counter(true_entries(COPIED.entries))
    assert edited(*arguments, *moved, "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["path"], len(data["operators"])) == (str(copy), len(COPIED.read().operators))
    old = read_savepoint(OLD_COPIED.path, OLD_COPIED.moved, uids=["by-string"])
    new = relocate(old, shutil.copytree(OLD_COPIED.path, tmp_path / "chk-8"), OLD_COPIED.moved)
    assert [operator.uid for operator in new.operators if operator.uid] == ["by-string"]


def test_files_that_moved(capsys: pytest.CaptureFixture[str]) -> None:
    moved = [argument for pair in COPIED.moved.items() for argument in ("--moved", "=".join(pair))]
    assert edited(str(COPIED.path), *moved, "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert sum(sum(one["key_group_bytes"]) for one in data["reports"]) == sum(
        sum(operator.key_group_bytes().weights)
        for operator in COPIED.read().operators
        if operator.states
    )


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ("/a=/b", "/a", "/b"),
        ("s3://a=b", "s3://a", "b"),
        ("s3://old/day=1=/mnt/day=1", "s3://old/day=1", "/mnt/day=1"),
        ("/a==gs://b/hour=2/day=3", "/a=", "gs://b/hour=2/day=3"),
        ("/a=file:/b=c", "/a", "file:/b=c"),
    ],
)
def test_moved_is_parted(
    text: str, old: str, new: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    reports = []

    def read(*arguments: Any, **_: Any) -> None:
        reports.append(arguments)
        raise SavepointError("seen")

    monkeypatch.setattr("keygroups.savepoint.read_savepoint", read)
    assert edited(str(tmp_path), "--moved", text) == 1
    assert reports == [(str(tmp_path), {old: new})]


@pytest.mark.parametrize("text", ["", "a", "=/b", "/a=", "a=b=c", "/a=/b=/c", "/a=/b=s3://c"])
def test_moved_that_cannot_be_parted(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert edited(str(DATA), "--moved", text) == 2
    assert f"moved must be such as OLD=NEW, with {NEW}" in capsys.readouterr().err


NEW = "NEW from a / or its scheme on if there are more =, got '"


def test_uids(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What 2.3 stored of the same job; a file of another system, with an empty line."""
    old = str(point("1.20.5-heap-canonical").path)
    stored = point("2.3.0-heap-canonical").read().operators
    uids = {operator.operator_id: operator.uid for operator in stored if operator.uid}
    (tmp_path / "uids").write_text(
        "\n".join([*uids.values(), "", ""]), "utf-8-sig", newline="\r\n"
    )
    assert edited(old, "--uids", f"{tmp_path}/uids", "--json") == 0
    operators = json.loads(capsys.readouterr().out)["operators"]
    assert {one["operator_id"]: one["uid"] for one in operators if one["uid"]} == uids
    (tmp_path / "uids").write_text("by-string\nby-nobody\n", "utf-8")
    assert edited(old, "--uids", f"{tmp_path}/uids") == 0
    shown = capsys.readouterr()
    assert shown.err == f"warning: no operator of {old} has the uid 'by-nobody'\n"
    assert "warning: no operator has the uids 'by-nobody'" in shown.out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"by-\xff"), encoding="utf-8"))
    assert edited(old, "--uids", "-") == 2
    assert "uid must be text in the encoding of the terminal" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--output", "--relocate"])
def test_places_that_are_gone_with_the_command(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    edit = EDIT if option == "--output" else ()
    assert edited(str(DATA), *edit, option, "memory://a") == 2
    assert f"{option[2:]} must outlast the command" in capsys.readouterr().err
