"""The page of `keygroups doctor`: what it says of real points, and that its commands run."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.real_savepoints import point
from support.golden import read
from support.rest_server import OK, peer

from keygroups import KeyGroupRange
from keygroups.cli import main
from keygroups.cli._doctor import typed_command
from keygroups.errors import JobError
from keygroups.job import Job, SubtaskSkew, Vertex, VertexSkew, read_job
from keygroups.savepoint import (
    DELETE,
    KafkaOffsets,
    ListStateDescriptor,
    Savepoint,
    SavepointWriter,
    TimerServiceDescriptor,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.state_keys import BYTES
from keygroups.types import LONG, STRING

DATA = str(Path(__file__).parents[2] / "examples" / "data" / "savepoint")
QUESTIONS = {
    "heaviest": "the heaviest states",
    "hot": "hot subtasks, by the bytes of their state",
    "damage": "damage, and keys where Flink does not look",
}
COUNT = ValueStateDescriptor("count", LONG)
OLD_COUNT = ValueStateDescriptor("seen", LONG, has_ttl=True)
# Of a job with KafkaSink, EXACTLY_ONCE, at its first checkpoint: see test_sinks.py.
COMMITTER = "streaming_committer_raw_states"
COMMITTED = bytes.fromhex(
    "0000000200000062b91f252c00000001000000010000005200000000000000010000000200000002000000010000"
    "003a0000000000000000000000010000002200000001000000120001000000000000000a000674782d302d310000"
    "0000000000000000000100000000"
)


class Page(NamedTuple):
    """What the command printed: its status, its answers by question, and standard error."""

    status: int
    answers: dict[str, dict[str, Any]]
    data: dict[str, Any]
    text: str
    err: str


@pytest.fixture
def doctor(capsys: pytest.CaptureFixture[str]) -> Any:
    """Run the command as text and as JSON, which say the same."""

    def run(*arguments: str) -> Page:
        status = main(["doctor", *arguments])
        text = capsys.readouterr().out
        assert main(["doctor", *arguments, "--json"]) == status
        out, err = capsys.readouterr()
        data = json.loads(out)
        for answer in data["answers"]:
            mark = "!" if answer["needs_attention"] else " "
            assert f"{mark} {answer['question']}\n" in text
            assert all(f"    $ {command}\n" in text for command in answer["commands"])
        answers = {answer["question"]: answer for answer in data["answers"]}
        return Page(status, answers, data, text, err)

    return run


def runs(page: Page, *statuses: int) -> None:
    """Run each command as a shell would, without the shell."""
    commands = [command for answer in page.answers.values() for command in answer["commands"]]
    assert commands
    for command in dict.fromkeys(commands):
        name, *words = shlex.split(command)
        assert name == "keygroups"
        assert main(words) in (statuses or (0,)), command


def test_a_real_savepoint(doctor: Any) -> None:
    """Flink's own classes read the entries that are counted."""
    page = doctor(DATA)
    assert page.status == 0
    assert page.data["job"] is None
    assert (page.data["path"], page.data["kind"]) == (DATA, "canonical savepoint")
    assert page.data["checkpoint_id"] == 2
    origin = point("2.3.0-heaptimers-canonical")
    counts = Counter(line["state"] for line in origin.lines(origin.entries))
    first, *_ = page.answers[QUESTIONS["heaviest"]]["texts"]
    assert first.startswith(f"by-string ttlMap: {counts['ttlMap']} entries of ")
    hot = page.answers[QUESTIONS["hot"]]
    assert hot["needs_attention"]
    assert hot["texts"][0].startswith("by-string: subtask 2 has ")
    damage = page.answers[QUESTIONS["damage"]]
    assert damage["texts"][0].endswith(f"{counts.total()} entries: no fault")
    assert not damage["needs_attention"]
    assert page.answers["key groups"]["texts"] == ["even"]  # 43, 43 and 42
    assert "no time to live" in page.answers["old state"]["texts"][0]
    needing = [name for name, answer in page.answers.items() if answer["needs_attention"]]
    assert needing == [QUESTIONS["hot"]]
    assert page.answers["sources and sinks"]["texts"] == ["none with state"]
    runs(page)


@pytest.mark.parametrize(
    ("element", "stored"), [(sb.simple("Long"), b""), (sb.kryo_of("a.Own"), sb.i64(5) + b"?")]
)
def test_times_that_are_not_there_to_read(
    element: bytes, stored: bytes, doctor: Any, tmp_path: Path
) -> None:
    """A list without elements has none, and of one of the job's own class nobody reads them."""
    lists = (("timed", sb.ttl_of(element)), ("plain", sb.simple("Long")))
    states = [sb.state(name, "LIST", sb.list_of(each)) for name, each in lists]
    header = sb.keyed_header(sb.simple("Byte"), states)
    values = enumerate((stored, sb.i64(5)))
    entries = [(number, [(b"\3\5\0", value)]) for number, value in values]
    stream = sb.inline(header + sb.canonical_key_group(entries))
    task = sb.subtask(managed_keyed=sb.canonical(3, [len(header)], stream))
    page = doctor(str(sb.write(tmp_path / "s", [sb.operator([task], uid="op", name="op")])))
    [text] = page.answers["old state"]["texts"]
    assert text.endswith(": op plain")


@pytest.mark.long
def test_against_an_older_one(doctor: Any, tmp_path: Path) -> None:
    with SavepointWriter.from_existing_savepoint(DATA, tmp_path / "old") as writer:
        writer.operator("by-string").map_entries("count", lambda _: DELETE)
    page = doctor(DATA, "--against", str(tmp_path / "old"))
    grown = page.answers["the states that grew"]
    assert grown["needs_attention"]
    assert re.fullmatch(
        r"by-string count: \+[\d,]+ bytes, 0 -> [\d,]+; entries 0 -> 25", grown["texts"][0]
    )
    assert len(grown["texts"]) == 1
    assert page.answers["what restores"]["texts"][1].endswith("it restores")
    runs(page)
    assert doctor(DATA, "--against", DATA).answers["the states that grew"]["texts"] == [
        "none grew"
    ]


def test_against_one_that_cannot_be_read(doctor: Any, tmp_path: Path) -> None:
    """What grew is not known then; a state that shrank is none that grew."""
    with SavepointWriter(tmp_path / "new") as writer:
        writer.add_operator("by", LONG, [COUNT], 128, 1).write("count", 7, 5)
    [operator] = read_savepoint(tmp_path / "new").operators
    damaged = sb.subtask(managed_keyed=sb.canonical(3, [4], sb.inline(sb.i32(7))))
    operator_id = bytes.fromhex(operator.operator_id)
    old = sb.write(tmp_path / "old", [sb.operator([damaged], operator_id=operator_id)])
    page = doctor(str(tmp_path / "new"), "--against", str(old))
    grown = page.answers["the states that grew"]
    assert grown["needs_attention"]
    [text] = grown["texts"]
    assert text.startswith("before: ")
    assert "version of keyed state 7 is not known" in text
    with SavepointWriter.from_existing_savepoint(DATA, tmp_path / "less") as writer:
        writer.operator("by-string").map_entries("count", lambda _: DELETE)
    shrunk = doctor(str(tmp_path / "less"), "--against", DATA)
    assert shrunk.answers["the states that grew"]["texts"] == ["none grew"]


def test_all_that_needs_a_look(doctor: Any, tmp_path: Path) -> None:
    """Sources, open transactions, old state, timers that never fire, uneven key groups."""
    path = str(tmp_path / "it's a savepoint")
    transactions = [ListStateDescriptor(COMMITTER, BYTES)]
    with SavepointWriter(path) as writer:
        writer.add_source("clicks", KafkaOffsets({("a", 0): 4711}), 128, parallelism=1)
        sink = writer.add_operator("out", None, (), 128, 1, list_states=transactions)
        sink.write_operator_state(COMMITTER, [COMMITTED])
        states = [OLD_COUNT, TimerServiceDescriptor()]
        operator = writer.add_operator("-by user", LONG, states, 10, parallelism=8, sort=True)
        operator.write("seen", 7, 5, last_access=1_600_000_000_000)
        operator.write_timer(7, 2**63 - 1)
    uids = tmp_path / "uids.txt"
    uids.write_text("clicks\nout\n-by user\n")
    page = doctor(path, "--uids", str(uids))
    assert page.answers["key groups"]["texts"] == [
        "-by user: 10 key groups do not divide evenly by 8 subtasks, at best 1.60 times the mean"
    ]
    assert page.answers["key groups"]["commands"] == ["keygroups suggest 8"]
    connectors = page.answers["sources and sinks"]
    assert connectors["texts"] == [
        "clicks: 1 split",
        "split  goes on at  subtask",
        "a/0    4,711             0",
        "out: 1 committable; a restore commits them",
        "committable                   checkpoint  subtask  state",
        "tx-0-1, producer 10, epoch 1           1        0  RECEIVED",
    ]
    assert connectors["needs_attention"]
    old = page.answers["old state"]
    assert old["texts"][0].startswith("-by user seen: 1 of 1 times of last access are 30 days")
    assert "the first 2020-09-13 12:26:40Z" in old["texts"][0]
    assert old["texts"][1] == "-by user _timer_state/event_user-timers: 1 timers never fire"
    assert old["needs_attention"]
    runs(page)
    runs(doctor(path))  # Its commands name operators by ids.


@pytest.mark.branch
@pytest.mark.long
@pytest.mark.parametrize("name", ["2.3.0-rockschurn-native", "2.3.0-unaligned-checkpoint"])
def test_other_points(name: str, doctor: Any) -> None:
    old = point(name)
    moved = [f"--moved={old_path}={new}" for old_path, new in old.moved.items()]
    runs(doctor(str(old.path), f"--allow={old.root}", *moved))


def test_operators_of_one_name_and_of_odd_ones(doctor: Any, tmp_path: Path) -> None:
    """A command names them by their ids, so that it runs as it stands."""
    with SavepointWriter(tmp_path / "new") as writer:
        for uid in ("a\tb", "c"):
            writer.add_operator(uid, LONG, [COUNT], 128, 1).write("count", 7, 5)
    uids = tmp_path / "uids.txt"
    uids.write_text("a\tb\nc\n")
    page = doctor(str(tmp_path / "new"), "--uids", str(uids))
    ids = [operator.operator_id for operator in read_savepoint(tmp_path / "new").operators]
    texts = page.answers["the heaviest states"]["texts"]
    assert {text.partition(" ")[0] for text in texts} == {ids[0], "c"}
    runs(page)


def test_a_path_cannot_write_to_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(DATA, tmp_path / "\x1b[2J")
    assert main(["doctor", str(tmp_path / "\x1b[2J")]) == 0
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert f"$ keygroups verify $'{tmp_path}/\\033[2J'\n" in text


@pytest.mark.parametrize("word", ["\n", "a\nb'1", "\x1b1", "a\\\t7", "\u202e`id`", "\udc80$(id)"])
def test_a_shell_reads_a_typed_command(word: str, tmp_path: Path) -> None:
    """Its words are those of the command, and nothing in it is not printable."""
    typed = typed_command(shlex.join(["echo", word]))
    assert typed.isprintable()
    _, _, quoted = typed.partition(" ")
    read = subprocess.run(["bash", "-c", f"printf %s {quoted}"], check=True, capture_output=True)
    assert read.stdout == os.fsencode(word)


def test_damage(doctor: Any, tmp_path: Path) -> None:
    """What cannot be told of a savepoint costs its answer alone."""
    folder = shutil.copytree(point("2.3.0-files-canonical").path, tmp_path / "savepoint")
    for file in folder.iterdir():
        if file.name != "_metadata":
            file.unlink()
    page = doctor(str(folder))
    assert page.status == 1
    assert page.answers[QUESTIONS["damage"]]["needs_attention"]
    assert any("missing: " in text for text in page.answers["files"]["texts"])
    heaviest = page.answers[QUESTIONS["heaviest"]]
    assert heaviest["needs_attention"]
    assert all("not known: " in text for text in heaviest["texts"])
    assert page.answers["old state"]["texts"] == heaviest["texts"]
    assert " lines more, with --json\n" in page.text


@pytest.fixture
def orders(tmp_path: Path) -> str:
    """A savepoint of a source of Kafka."""
    with SavepointWriter(tmp_path / "orders") as writer:
        offsets = KafkaOffsets({("orders", 0): 100, ("orders", 1): 250})
        writer.add_source("orders", offsets, 128, parallelism=2)
    return str(tmp_path / "orders")


def test_how_far_a_source_is_behind(doctor: Any, orders: str, tmp_path: Path) -> None:
    ends = tmp_path / "ends.txt"
    ends.write_text("orders:0:110\norders:1:1400\nother:0:3\n")
    page = doctor(orders, f"--ends={ends}")
    [behind, header, *rows] = page.answers["sources and sinks"]["texts"]
    assert behind.endswith(": 2 splits; 1,160 records behind")
    assert header.split()[-2:] == ["records", "behind"]
    assert [row.split() for row in rows] == [
        ["orders/0", "100", "0", "10"],
        ["orders/1", "250", "1", "1,150"],
    ]
    runs(page)
    assert main(["savepoint", orders, f"--ends={ends}", "--json"]) == 0


def test_ends_of_a_source_that_cannot_be_read(doctor: Any, orders: str, tmp_path: Path) -> None:
    """Whether it has these partitions nobody knows; all else is told."""
    metadata, ends = Path(orders) / "_metadata", tmp_path / "ends.txt"
    split = b"\0\0\0\x1c\0\6orders"
    content = metadata.read_bytes()
    assert split in content
    metadata.write_bytes(content.replace(split, b"\0\0\1" + split[3:]))
    ends.write_text("\ufefforders:0:110\n")
    [text] = doctor(orders, f"--ends={ends}").answers["sources and sinks"]["texts"]
    assert ": not known: " in text


def test_one_standard_input(orders: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What ends have read of it no uid has."""
    for command in ("doctor", "savepoint"):
        assert main([command, orders, "--ends=-", "--uids=-"]) == 2
        assert "--ends and --uids must not both be -" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ("order:0:110", r"of 'orders', got \[\('order', 0\)\]"),
        ("orders:2:110\n", r"sources of .*orders read, which are of 'orders', got"),
        ("", r"got \[\]"),
        ("orders:0:", r"such as orders:0:12345, got 'orders:0:' in line 1 of '.*ends.txt'"),
        ("orders:0:1\norders:0:2:3", r"got 'orders:0:2:3' in line 2"),
        ("orders:0:1\norders:0:2", "partition orders:0 is twice"),
        ("or ders:0:1", "got 'or ders:0:1' in line 1"),
        ("orders:0:-1", "got 'orders:0:-1' in line 1"),
    ],
)
def test_ends_that_no_source_has(
    lines: str, says: str, orders: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ends = tmp_path / "ends.txt"
    ends.write_text(lines)
    for command in ("doctor", "savepoint"):
        assert main([command, orders, f"--ends={ends}"]) == 2
        assert re.search(says, capsys.readouterr().err)
    assert main(["doctor", str(point("2.3.0-heap-canonical").path), f"--ends={ends}"]) == 2
    assert re.search("--ends must have|in line|is twice", capsys.readouterr().err)


def test_a_sink_that_cannot_be_read(doctor: Any, tmp_path: Path) -> None:
    """It costs its own line: the source stands beside it."""
    transactions = [ListStateDescriptor(COMMITTER, BYTES)]
    with SavepointWriter(tmp_path / "savepoint") as writer:
        sink = writer.add_operator("damaged", None, (), 128, 1, list_states=transactions)
        sink.write_operator_state(COMMITTER, [COMMITTED[:-1]])
        writer.add_source("clicks", KafkaOffsets({("a", 0): 4711}), 128, parallelism=1)
    answer = doctor(str(tmp_path / "savepoint")).answers["sources and sinks"]
    assert answer["needs_attention"]
    assert any(": not known: " in text for text in answer["texts"])
    assert "a/0    4,711             0" in answer["texts"]


def test_without_the_extra(doctor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def summary(*_: Any, **settings: Any) -> None:
        raise ModuleNotFoundError("a summary needs it: pip install 'keygroups[arrays]'")

    monkeypatch.setattr(Savepoint, "summary", summary)
    page = doctor(DATA)
    says = ["not known: a summary needs it: pip install 'keygroups[arrays]'"]
    assert page.answers[QUESTIONS["heaviest"]]["texts"] == says
    assert page.answers["old state"]["texts"] == says
    assert page.status == 0


def test_the_folder_of_a_job(doctor: Any, tmp_path: Path) -> None:
    shutil.copytree(DATA, tmp_path / "chk-7")
    page = doctor(str(tmp_path))
    assert page.data["path"] == str(tmp_path / "chk-7")
    runs(page)


def test_nothing_there(doctor: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", str(tmp_path)]) == 1
    assert "cannot be opened" in capsys.readouterr().err
    assert main(["doctor", DATA, "0" * 32]) == 2
    assert "JOB_ID goes with the URL of a job" in capsys.readouterr().err
    with SavepointWriter(tmp_path / "empty") as writer:
        writer.add_operator("a", LONG, [COUNT], 128, 1)
    runs(doctor(str(tmp_path / "empty")))


# --- whole pages ----------------------------------------------------------------------------

DAY = 86_400_000  # milliseconds
PAGE = """\
  what it is
    savepoint or checkpoint 1, 15 operators: then
    set max parallelism in the job, to 30 of by-day, 129 of op-0, 130 of op-1, 131 of op-2, 132 of op-3, 133 of op-4, 134 of op-5, 135 of op-6, 136 of op-7, 137 of op-8, 138 of op-9, 139 of op-10, 140 of op-11: where it is not set, a new operator in the chain can make Flink lose keyed state
    $ keygroups savepoint then --uids=uids
  the heaviest states
    by-day seen: 7 entries of 175 bytes, 49.2%
    op-11 name: 1 entries of 20 bytes, 5.6%
    op-10 name: 1 entries of 19 bytes, 5.3%
    by-day _timer_state/event_user-timers: 1 entries of 17 bytes, 4.8%
    op-9 name: 1 entries of 17 bytes, 4.8%
    $ keygroups savepoint then --full --uids=uids
    $ keygroups savepoint then --operator=op-11 --key=key-11 --uids=uids
! hot subtasks, by the bytes of their state
    by-day: subtask 16 has 110 bytes, 7.53 times the mean
    by-day: subtask 2 has 38 bytes, 2.60 times the mean
    by-day: subtask 3 has 38 bytes, 2.60 times the mean
    by-day: subtask 12 has 38 bytes, 2.60 times the mean
    by-day: subtask 15 has 38 bytes, 2.60 times the mean
    too few keys and uneven key groups: 14 of 20 subtasks have nothing: key by more values or, where the keyBy has to balance and not to group, by substit...wer, 100% of the heaviest load), 30 subtasks (10 more, 50% of the heaviest load), or 20 with max parallelism 40, which takes change_max_parallelism
    op-0: subtask 1 has 22 bytes, 2.00 times the mean
    too few keys: 1 of 2 subtasks have nothing: key by more values or, where the keyBy has to balance and not to group, by substitute keys (keys_for_subtasks); skew_report counts the keys
    op-1: subtask 0 has 23 bytes, 2.00 times the mean
    too few keys: 1 of 2 subtasks have nothing: key by more values or, where the keyBy has to balance and not to group, by substitute keys (keys_for_subtasks); skew_report counts the keys
    and 20 lines more, with --json
    $ keygroups savepoint then --operator=by-day --uids=uids
    $ keygroups savepoint then --operator=op-0 --uids=uids
    $ keygroups savepoint then --operator=op-1 --uids=uids
    $ keygroups savepoint then --operator=op-2 --uids=uids
    $ keygroups savepoint then --operator=op-3 --uids=uids
    $ keygroups savepoint then --operator=op-4 --uids=uids
    $ keygroups savepoint then --operator=op-5 --uids=uids
    $ keygroups savepoint then --operator=op-6 --uids=uids
    $ keygroups savepoint then --operator=op-7 --uids=uids
    $ keygroups savepoint then --operator=op-8 --uids=uids
! key groups
    by-day: 30 key groups do not divide evenly by 20 subtasks, at best 1.33 times the mean
    $ keygroups suggest 20
  damage, and keys where Flink does not look
    18 files of 12,450 bytes, 15 operators, 20 entries: no fault
    $ keygroups verify then --uids=uids
! sources and sinks
    clicks: 7 splits
    split  goes on at  subtask
    a/0    10                0
    a/1    11                0
    a/2    12                0
    a/3    13                0
    a/4    14                0
    out: 1 committable; a restore commits them
    committable                   checkpoint  subtask  state
    tx-0-1, producer 10, epoch 1           1        0  RECEIVED
    $ keygroups savepoint then --operator=clicks --uids=uids
    $ keygroups savepoint then --operator=out --uids=uids
! old state
    by-day seen: 5 of 7 times of last access are 30 days ago and more, the first DATE: with a shorter time to live the clean-up does not reach them
    by-day _timer_state/event_user-timers: 1 timers never fire
    no time to live, so kept until the job clears it: op-11 name, op-10 name, op-9 name, op-8 name, op-7 name and 7 more
    $ keygroups savepoint then --operator=by-day --full --uids=uids
  what restores
    op-11: at 1 to 140 subtasks, max parallelism 140
    op-10: at 1 to 139 subtasks, max parallelism 139
    op-9: at 1 to 138 subtasks, max parallelism 138
    op-8: at 1 to 137 subtasks, max parallelism 137
    op-7: at 1 to 136 subtasks, max parallelism 136
    $ keygroups evenness 30
  files
    18 files of 12,450 bytes; it uses 12,450 bytes
    $ keygroups files then --uids=uids
"""  # noqa: E501  # Lines of a terminal.


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with savepoints of a job, in each of which is more than is shown."""
    folder = tmp_path_factory.mktemp("large")
    for name, more in (("then", 0), ("now", 14), ("less", 13)):
        with SavepointWriter(folder / name) as writer:
            offsets = {("a", number): 10 + number for number in range(7)}
            writer.add_source("clicks", KafkaOffsets(offsets), 128, parallelism=1)
            transactions = [ListStateDescriptor(COMMITTER, BYTES)]
            sink = writer.add_operator("out", None, (), 128, 1, list_states=transactions)
            sink.write_operator_state(COMMITTER, [COMMITTED])
            states = [OLD_COUNT, TimerServiceDescriptor()]
            operator = writer.add_operator("by-day", LONG, states, 30, 20, sort=True)
            for key, days in enumerate((0, 29, 31, 300, 366, 500, 1000)):
                access = time.time_ns() // 1_000_000 - days * DAY
                operator.write("seen", key, 5, last_access=access)
            operator.write_timer(7, 2**63 - 1)
            for number in range(12):
                states = [ValueStateDescriptor("name", STRING)]
                operator = writer.add_operator(f"op-{number}", STRING, states, 129 + number, 2)
                text = "x" * (number + (more if number > 5 else 0))
                operator.write("name", f"key-{number}", text)
    names = ["clicks", "out", "by-day", *(f"op-{number}" for number in range(12))]
    (folder / "uids").write_text("\n".join(names))
    return folder


def test_a_whole_page(
    large: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of all that there is more of, the page has the first few."""
    monkeypatch.chdir(large)
    assert main(["doctor", "then", "--uids", "uids"]) == 0
    page = re.sub(r"first \d{4}-\d\d-\d\d [\d:.]+Z", "first DATE", capsys.readouterr().out)
    assert page == PAGE
    assert main(["doctor", "then", "--json"]) == 0
    first, *_ = json.loads(capsys.readouterr().out)["answers"]
    assert first["needs_attention"]  # It has no uids.


def test_what_grew_in_a_whole_page(
    large: Path, monkeypatch: pytest.MonkeyPatch, doctor: Any
) -> None:
    """A state of twice the bytes and more needs a look; the numbers are those of its entries."""
    monkeypatch.chdir(large)
    grown = doctor("now", "--uids", "uids", "--against", "then").answers["the states that grew"]
    sizes = [(6, 14), (7, 15), (8, 16), (9, 17), (10, 19)]
    assert grown["texts"] == [
        f"op-{number} name: +14 bytes, {size} -> {size + 14}; entries 1 -> 1"
        for number, size in sizes
    ]
    assert grown["needs_attention"]
    page = doctor("less", "--uids", "uids", "--against", "then")
    grown = page.answers["the states that grew"]
    assert [text.partition(",")[0] for text in grown["texts"]] == [
        f"op-{number} name: +13 bytes" for number, _ in sizes
    ]
    assert not grown["needs_attention"]
    assert grown["commands"] == [
        "keygroups diff then less --uids=uids",
        "keygroups savepoint less --full --uids=uids",
    ]
    restores = page.answers["what restores"]
    assert restores["texts"][5:] == ["15 operators, 17 states: it restores"]
    assert restores["commands"] == [
        "keygroups restore then less --uids=uids",
        "keygroups evenness 30",
    ]


# --- a running job --------------------------------------------------------------------------

ANSWERS = {line["path"]: line["body"] for line in read("rest")[1]}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, dict[str, str]]]:
    """Answer with what a Flink 2.3.0 said; its savepoints are the one of the examples."""
    answers = {
        path: re.sub(r"file:/[^\"]*/savepoint-[^\"]*", f"file:{DATA}", body)
        for path, body in ANSWERS.items()
    }

    def talk(connection: socket.socket, path: str) -> None:
        connection.sendall(OK + b"\r\n" + answers[path].encode())

    monkeypatch.setattr("keygroups.cli._job.time.sleep", lambda _: None)
    with peer(talk) as url:
        yield url, answers


def test_a_running_job(doctor: Any, cluster: tuple[str, dict[str, str]]) -> None:
    url, _ = cluster
    page = doctor(url)
    assert (page.status, page.data["path"]) == (0, f"file:{DATA}")
    assert page.data["job"]["state"] == "RUNNING"
    hot = page.answers["hot subtasks of the running job"]
    vertices = [vertex for vertex in hot["texts"] if not vertex.startswith("subtask ")]
    assert vertices
    if hot["needs_attention"]:
        assert any(re.match(r"subtask \d+ on \S+: ", text) for text in hot["texts"])
    runs(page)


def test_hot_subtasks_of_a_running_job(
    doctor: Any, cluster: tuple[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first five of each vertex are shown, with the host that runs them."""

    def skew(_: Job, vertex: Vertex) -> VertexSkew:
        hosts = [None, *(f"host-{number}" for number in range(1, 7))]
        subtasks = [
            SubtaskSkew(number, 1000 - number, None, 0.1, 1.5, KeyGroupRange(0, 1), None, host)
            for number, host in enumerate(hosts)
        ]
        hot = (6, 0, 1, 2, 3, 4)
        return VertexSkew(vertex, tuple(subtasks), 1.5, hot, (), "hot keys", "salt them")

    monkeypatch.setattr(Job, "skew", skew)
    url, _ = cluster
    page = doctor(url)
    hot = page.answers["hot subtasks of the running job"]
    assert hot["needs_attention"]
    name = next(vertex.name for vertex in read_job(url).vertices if vertex.is_keyed)
    assert hot["texts"][:6] == [
        f"{name}: hot keys; salt them",
        "subtask 6 on host-6: 994 records, 1.50 times the mean",
        "subtask 0: 1,000 records, 1.50 times the mean",
        *(f"subtask {n} on host-{n}: {1000 - n} records, 1.50 times the mean" for n in (1, 2, 3)),
    ]
    assert not any(text.startswith("subtask 4") for text in hot["texts"])
    job_id = page.data["job"]["job_id"]
    command = f"keygroups job {url} {job_id}"
    assert hot["commands"] == [command, f"{command} --watch 30"]


def test_a_job_that_just_began(
    doctor: Any, cluster: tuple[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def skew(*_: Any) -> None:
        raise JobError("it does not know yet")

    monkeypatch.setattr(Job, "skew", skew)
    page = doctor(cluster[0])
    [text] = page.answers["hot subtasks of the running job"]["texts"]
    assert text.endswith(": not known: it does not know yet")


def test_a_job_whose_state_is_elsewhere(doctor: Any, cluster: tuple[str, dict[str, str]]) -> None:
    url, answers = cluster
    for path, body in answers.items():
        answers[path] = body.replace(DATA, "/not/here")
    page = doctor(url)
    assert page.status == 1
    assert page.answers["its state"]["texts"][0].startswith("not read: ")
    assert (page.data["path"], page.data["kind"]) == (None, None)
    for path, body in answers.items():
        answers[path] = re.sub('"external_path":"[^"]*"', '"external_path":null', body)
    page = doctor(url)
    assert "has no checkpoint or savepoint in a file yet" in page.answers["its state"]["texts"][0]
