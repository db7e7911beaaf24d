"""The completed checkpoints and savepoints of a job, which lead to read_savepoint.

The members are those of Flink's CheckpointingStatistics and CheckpointStatistics (Flink 1.20 and
2.x, org.apache.flink.runtime.rest.messages.checkpoints); `rest.jsonl` has what a Flink 2.3.0 said.
"""

from __future__ import annotations

import json
import pickle
import socket
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

import pytest
from support.bytes.real_savepoints import POINTS
from support.golden import read
from support.rest_server import JOB_ID, job_of, peer

from keygroups.cli import main
from keygroups.errors import JobError
from keygroups.job import CompletedCheckpoint, Job, read_job
from keygroups.savepoint import read_savepoint

MEMORY = "<checkpoint-not-externally-addressable>"
LAST = 253_402_300_799_999  # the last millisecond of the year 9999


def told(
    number: int, path: str | None = "file:/points/chk-1", **members: object
) -> dict[str, Any]:
    """Return a completed checkpoint as Flink tells of it; `members` are others than usual."""
    sizes = ("checkpointed_size", "state_size", "processed_data", "persisted_data")
    return {
        "className": "completed",
        "id": number,
        "status": "COMPLETED",
        "is_savepoint": False,
        "savepointFormat": None,
        "trigger_timestamp": 1_700_000_000_123 + number,
        "latest_ack_timestamp": 1_700_000_000_200 + number,
        **dict.fromkeys(sizes, 100 * number),
        "end_to_end_duration": 77,
        "alignment_buffered": 0,
        "num_subtasks": 9,
        "num_acknowledged_subtasks": 9,
        "checkpoint_type": "CHECKPOINT",
        "tasks": {},
        "external_path": path,
        "discarded": False,
    } | members


def unfinished(number: int, status: str) -> dict[str, Any]:
    """Return a checkpoint that failed or is at work, which has no path."""
    members = told(number, status=status, className=status.lower())
    return {name: members[name] for name in members if name not in ("external_path", "discarded")}


def statistics(
    *history: object, completed: object = None, savepoint: object = None
) -> dict[str, Any]:
    latest = {"completed": completed, "savepoint": savepoint, "failed": None, "restored": None}
    counts = dict.fromkeys(["restored", "total", "in_progress", "completed", "failed"], 0)
    return {"counts": counts, "summary": {}, "latest": latest, "history": list(history)}


def job_with(answer: object, status: bytes = b"200 OK") -> Job:
    """Read a job whose checkpoints are told so."""

    def talk(connection: socket.socket, path: str) -> None:
        if path == f"/jobs/{JOB_ID}/checkpoints":
            body = json.dumps(answer).encode()
            connection.sendall(b"HTTP/1.1 " + status + b"\r\n\r\n" + body)
        else:
            job_of(1)(connection, path)

    with peer(talk) as url:
        return read_job(url, JOB_ID)


def test_newest_first_and_each_once() -> None:
    """`latest` has those that the history has lost; a savepoint is never the latest checkpoint."""
    savepoint = told(3, "s3://bucket/savepoint-1", is_savepoint=True, discarded=True)
    job = job_with(
        statistics(
            unfinished(21, "IN_PROGRESS"),
            told(19, MEMORY),
            unfinished(20, "FAILED"),
            told(18),
            completed=told(19, MEMORY),
            savepoint=savepoint,
        )
    )
    assert [checkpoint.checkpoint_id for checkpoint in job.savepoints()] == [19, 18, 3]
    latest, checkpoint, oldest = job.savepoints()
    assert latest.path is None
    assert checkpoint == CompletedCheckpoint(
        checkpoint_id=18,
        is_savepoint=False,
        path="file:/points/chk-1",
        triggered=datetime(2023, 11, 14, 22, 13, 20, 141_000, tzinfo=timezone.utc),
        state_size=1800,
        is_discarded=False,
    )
    assert (oldest.path, oldest.is_savepoint, oldest.is_discarded) == (
        *("s3://bucket/savepoint-1", True),
        True,
    )
    assert job == pickle.loads(pickle.dumps(job))
    assert pickle.loads(pickle.dumps(job)).savepoints() == job.savepoints()
    assert "points" not in repr(job)


def test_what_the_history_says_last_counts() -> None:
    """Flink may discard one while it writes the answer, `latest` first."""
    job = job_with(statistics(told(1, discarded=True), completed=told(1)))
    assert [checkpoint.is_discarded for checkpoint in job.savepoints()] == [True]


def test_a_job_without() -> None:
    assert job_with(statistics()).savepoints() == ()
    assert Job("http://localhost", JOB_ID, "j", "RUNNING", ()).savepoints() == ()


def test_path_leads_to_the_savepoint() -> None:
    """Flink's Path writes local ones as file:/..., as in the recorded answer."""
    point = next(point for point in POINTS if point.kind == "canonical")
    (checkpoint,) = job_with(statistics(told(1, f"file:{point.path}"))).savepoints()
    assert checkpoint.path is not None
    savepoint = read_savepoint(checkpoint.path)
    assert {operator.operator_id for operator in savepoint.operators} == {
        operator.operator_id for operator in point.read().operators
    }


def test_answer_of_real_flink() -> None:
    """A checkpoint in the JobManager's memory, then a savepoint."""
    (answer,) = [line for line in read("rest")[1] if line["path"].endswith("/checkpoints")]
    savepoint, checkpoint = job_with(json.loads(answer["body"])).savepoints()
    assert (savepoint.checkpoint_id, savepoint.is_savepoint) == (2, True)
    assert (checkpoint.checkpoint_id, checkpoint.is_savepoint) == (1, False)
    assert savepoint.path is not None
    assert savepoint.path.startswith("file:/")
    assert checkpoint.path is None
    assert checkpoint.triggered < savepoint.triggered
    assert (savepoint.is_discarded, checkpoint.is_discarded) == (False, False)
    assert savepoint.state_size > 0


def test_checkpointing_that_is_off() -> None:
    """The job is read; what is not there is said where it is asked for. Flink's own words."""
    job = job_with({"errors": ["Checkpointing has not been enabled."]}, b"404 Not Found")
    assert len(job.vertices) == 1
    with pytest.raises(JobError, match=r"/checkpoints: status 404: 'Checkpointing has not been"):
        job.savepoints()


ODD: dict[str, list[Any]] = {
    "id": [-1, 2**63, "1", True, 1.0, None],
    "status": ["", "completed", None, 5, "\x1b[1m"],
    "external_path": ["", 5, [], True],
    "is_savepoint": [0, 1, "true", None],
    "discarded": [0, 1, "true", None],
    "state_size": [-1, 2**63, "5", None, False],
    "trigger_timestamp": [-1, LAST + 1, 2**63 - 1, "5", None, True],
}
NO_STATISTICS: list[Any] = [
    *([], {}, {"latest": {}}, {"latest": [], "history": []}, {"latest": {}, "history": {}}),
    *map(statistics, (5, None, [], {})),
    *(statistics(savepoint=5), statistics(savepoint=[]), statistics(completed={})),
]


@pytest.mark.parametrize(
    "answer",
    [
        *NO_STATISTICS,
        *(
            statistics(told(1, **{name: value}))
            for name, values in ODD.items()
            for value in values
        ),
    ],
)
def test_answer_that_flink_cannot_give(answer: object) -> None:
    job = job_with(answer)
    with pytest.raises(JobError, match=r"/checkpoints.*: this is no answer of Flink's") as caught:
        job.savepoints()
    assert str(caught.value).isprintable()


def test_largest_that_flink_can_have() -> None:
    (checkpoint,) = job_with(
        statistics(told(1, id=2**63 - 1, state_size=2**63 - 1, trigger_timestamp=LAST))
    ).savepoints()
    assert checkpoint.triggered.isoformat() == "9999-12-31T23:59:59.999000+00:00"
    assert checkpoint.state_size == 2**63 - 1


# --- on the command line, and in notebooks ------------------------------------------------


@pytest.fixture
def command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """Run the command on a job with some checkpoints; return its status and what it prints."""

    def run(*arguments: str, answer: object) -> tuple[int, str, str]:
        job = job_with(answer)
        monkeypatch.setattr("keygroups.job.read_job", lambda *_, **__: job)
        status = main(["job", job.url, "--savepoints", *arguments])
        return status, *capsys.readouterr()

    return run


HOSTILE = "file:/a b\x1b[1m\u202e\n<b>"
ANSWER = statistics(told(12, HOSTILE), told(9, MEMORY), told(1, is_savepoint=True, discarded=True))


def test_command(command: Callable[..., tuple[int, str, str]]) -> None:
    status, out, _ = command(answer=ANSWER)
    assert status == 0
    assert out.splitlines() == [
        f"job, RUNNING, job {JOB_ID}",
        "id  kind        triggered (UTC)      bytes           path",
        r"12  checkpoint  2023-11-14 22:13:20  1,200           file:/a b\x1b[1m\u202e\n<b>",
        " 9  checkpoint  2023-11-14 22:13:20    900           -",
        " 1  savepoint   2023-11-14 22:13:20    100  deleted  file:/points/chk-1",
    ]
    status, out, _ = command(answer=statistics())
    assert out.splitlines()[1:] == ["id  kind  triggered (UTC)  bytes    path"]


def test_command_in_json(command: Callable[..., tuple[int, str, str]]) -> None:
    status, out, _ = command("--json", answer=ANSWER)
    data = json.loads(out)
    assert status == 0
    assert list(data) == ["url", "job_id", "name", "state", "savepoints"]
    assert data["savepoints"][1:] == [
        {
            "checkpoint_id": 9,
            "is_savepoint": False,
            "path": None,
            "triggered": "2023-11-14T22:13:20.132000+00:00",
            "state_size": 900,
            "is_discarded": False,
        },
        {
            "checkpoint_id": 1,
            "is_savepoint": True,
            "path": "file:/points/chk-1",
            "triggered": "2023-11-14T22:13:20.124000+00:00",
            "state_size": 100,
            "is_discarded": True,
        },
    ]
    assert data["savepoints"][0]["path"] == HOSTILE


def test_command_where_flink_does_not_tell(
    command: Callable[..., tuple[int, str, str]],
) -> None:
    status, out, err = command(answer=[])
    assert (status, out) == (1, "")
    assert "/checkpoints: this is no answer of Flink's REST API" in err


def test_command_with_a_vertex(command: Callable[..., tuple[int, str, str]]) -> None:
    status, out, err = command("--vertex", "v", answer=ANSWER)
    assert (status, out) == (2, "")
    assert err == "keygroups job: --vertex is not for --savepoints, which are of the whole job\n"


def test_answer_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is cut off, and the job is there."""
    monkeypatch.setattr("keygroups.job._rest._MOST_BYTES", 100_000)

    def talk(connection: socket.socket, path: str) -> None:
        job_of(0)(connection, path)
        while path.endswith("/checkpoints"):
            connection.sendall(b" " * (1 << 16))

    with peer(talk) as url:
        job = read_job(url, JOB_ID)
    with pytest.raises(JobError, match="the answer has more than 100000 bytes"):
        job.savepoints()
