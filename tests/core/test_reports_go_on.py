"""Reports of a savepoint of which one operator cannot be read: they say it, and go on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.expected_savepoints import LONGS, STRINGS

from keygroups import assign_to_key_group
from keygroups.cli import main
from keygroups.errors import SavepointError
from keygroups.savepoint import html_report, operator_reports, read_savepoint
from keygroups.types import STRING

A = assign_to_key_group("a", 128, STRING)
HEAD = sb.keyed_header(STRINGS.snapshot, [sb.state("s", "VALUE", LONGS.snapshot)])
GROUP = sb.canonical_key_group([(0, [(bytes([A]) + b"\x02a\0", sb.i64(5))])])
KEPT = "is not in the savepoint"


def native_of_a_job() -> bytes:
    """A state that is read, then one whose value only the job reads."""
    states = [
        sb.state("read", "VALUE", LONGS.snapshot),
        sb.state("own", "VALUE", sb.kryo_of("java.lang.Object")),
    ]
    head = sb.keyed_header(STRINGS.snapshot, states)
    entry = b"\0\x02a"
    of_read = sb.i16(0) + sb.i32(1) + entry + sb.i64(5)
    of_own = sb.i16(1) + sb.i32(1) + entry + b"\1\0a.\xc2\1"
    group = sb.i32(A) + of_read + of_own
    return sb.native(A, [len(head)], sb.inline(head + group))


HANDLES = {
    "whole": sb.canonical(A, [len(HEAD)], sb.inline(HEAD + GROUP)),
    "own": native_of_a_job(),
    "elsewhere": sb.canonical(A, [len(HEAD)], sb.absolute("/elsewhere/of-kept", 500)),
    "native elsewhere": sb.native(A, [len(HEAD)], sb.absolute("/elsewhere/other", 500)),
    "damaged": sb.canonical(A, [len(HEAD)], sb.inline(b"\xff" * (len(HEAD) + 20))),
    "last": sb.canonical(A, [len(HEAD)], sb.inline(HEAD + GROUP)),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    operators = [
        sb.operator([sb.subtask(managed_keyed=handle)], uid=uid, operator_id=bytes([number] * 16))
        for number, (uid, handle) in enumerate(HANDLES.items())
    ]
    return sb.write(tmp_path / "point", operators)


def test_reports(folder: Path) -> None:
    reports = {
        report.operator.label: report for report in operator_reports(read_savepoint(folder))
    }
    assert [*reports] == [*HANDLES]
    for uid in ("whole", "last"):
        report = reports[uid]
        assert (report.unread, report.unknown_keys) == ((), None)
        assert [(key.key, key.entries) for key in report.heaviest_keys] == [("a", 1)]
        assert report.key_group_bytes is not None
        assert report.key_group_bytes.weights[A] == len(GROUP)
    own = reports["own"]
    assert own.unread == ()
    assert [state.name for state in own.states] == ["read", "own"]
    for text in (
        "'own'",
        "own: VALUE <STRING, KRYO(java.lang.Object)>",
        "'a.B'",
        "can be read: 'read'",
    ):
        assert text in str(own.unknown_keys)
    assert own.key_group_bytes is not None
    assert own.rescale is not None
    elsewhere = reports["elsewhere"]
    assert (elsewhere.states, elsewhere.heaviest_keys) == ((), ())
    [output] = elsewhere.unread
    assert KEPT in output
    # The `_metadata` of a canonical savepoint tells how large each key group is.
    assert elsewhere.key_group_bytes is not None
    assert elsewhere.key_group_bytes.weights[A] == 500 - len(HEAD)
    other = reports["native elsewhere"]
    assert (other.states, other.key_group_bytes, other.rescale) == ((), None, None)
    assert other.heaviest_key_groups == ()
    [output] = reports["damaged"].unread
    assert "version of keyed state" in output


def test_texts(folder: Path) -> None:
    text = "\n".join(map(str, operator_reports(read_savepoint(folder))))
    assert text.count("its states are not known") == 3
    assert text.count(KEPT) == 2
    assert text.count("rescale to") == 5
    assert text.count("keys with the most bytes:") == 3
    assert text.index("== native elsewhere") < text.index("== damaged") < text.index("== last")


def test_pages(folder: Path, tmp_path: Path) -> None:
    savepoint = read_savepoint(folder)
    page = html_report(savepoint)
    for uid in HANDLES:
        assert f"Operator {uid}<" in page
    assert page.count("<h3>Bytes by key group<") == 5
    assert page.count("is not in the savepoint") >= 2
    for report in operator_reports(savepoint):
        assert all(text in report._repr_html_().replace("&#x27;", "'") for text in report.unread)
    assert "last" in savepoint._repr_html_()
    for operator in savepoint.operators:
        assert operator.label in operator._repr_html_()


@pytest.mark.parametrize("arguments", [(), ("--json",), ("--html", "page.html")])
def test_commands(
    arguments: tuple[str, ...],
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["savepoint", str(folder), *arguments]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    if arguments == ("--json",):
        data = json.loads(out)
        assert len(data["operators"]) == len(HANDLES)
        unread = [report["unread"] for report in data["reports"]]
        assert list(map(len, unread)) == [0, 0, 1, 1, 1, 0]
        loads = [report["key_group_bytes"] is None for report in data["reports"]]
        assert loads == [report["rescale"] is None for report in data["reports"]]
        assert loads == [False, False, False, True, False, False]
    elif arguments:
        assert "Operator last<" in (tmp_path / "page.html").read_text()
    else:
        assert "== last: 1 states" in out
        assert KEPT in out


def test_nothing_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "_metadata").write_bytes(b"no savepoint")
    assert main(["savepoint", str(tmp_path)]) == 1
    with pytest.raises(SavepointError):
        read_savepoint(tmp_path)


def test_an_entry_is_damaged(tmp_path: Path) -> None:
    """What the header and `_metadata` say is there, and why there are no keys."""
    group = sb.canonical_key_group([(0, [(bytes([A]) + b"\x02a\0", b"short")])])
    handle = sb.canonical(A, [len(HEAD)], sb.inline(HEAD + group))
    folder = sb.write(tmp_path / "point", [sb.operator([sb.subtask(managed_keyed=handle)])])
    [report] = operator_reports(read_savepoint(folder))
    [text] = report.unread
    assert "no entry of s: VALUE" in text
    assert report.unknown_keys == text
    assert [state.name for state in report.states] == ["s"]
    assert report.rescale is not None
