"""The page of `keygroups doctor`: what it says of real points, and that its commands run."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.real_savepoints import point
from support.golden import read
from support.rest_server import OK, peer

from keygroups.cli import main
from keygroups.cli._doctor import typed_command
from keygroups.errors import JobError
from keygroups.job import Job
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
from keygroups.types import LONG

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
    runs(page)


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
        *("clicks: 1 split", "a/0  4,711  0", "out: 1 committable; a restore commits them"),
        "tx-0-1, producer 10, epoch 1  1  0  RECEIVED",
    ]
    assert connectors["needs_attention"]
    old = page.answers["old state"]
    assert old["texts"][0].startswith("-by user seen: 1 of 1 times of last access are 30 days")
    assert "the first 2020-09-13 12:26:40Z" in old["texts"][0]
    assert old["texts"][1] == "-by user _timer_state/event_user-timers: 1 timers never fire"
    assert old["needs_attention"]
    runs(page)
    runs(doctor(path))  # Its commands name operators by ids.


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
