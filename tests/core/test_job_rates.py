"""Where the subtasks of a job run, and how many records a second they read between two looks.

The members of Flink's answers are those of SubtaskExecutionAttemptDetailsInfo, which has an
endpoint since 1.19 (FLINK-33147) and no host since 2.0 (FLINK-36355), and of JobVertexDetailsInfo.
"""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest
from support.golden import read
from support.rest_server import JOB_ID, OK, peer

from keygroups.cli import main
from keygroups.errors import JobError
from keygroups.job import Job, SubtaskReads, Vertex, read_job

VERTEX_ID = "ab" * 16
PLACES: dict[str, dict[str, Any]] = {
    "host and port": {"host": "tm-a:34567", "taskmanager-id": "10.0.0.7:34567-3f9ab7"},
    "host": {"host": "tm-a", "taskmanager-id": "job-taskmanager-1-1"},
    "both": {"host": "tm-b", "endpoint": "tm-a:34567", "taskmanager-id": "tm-1"},
    "endpoint": {
        "endpoint": "tm-a:34567",
        "taskmanager-id": "2ed7d638-dd07-4475-a74b-b908e421f28e",
    },
}
NOW = 1_795_437_272_432


def subtask(number: int, records: int = 5, **members: object) -> dict[str, Any]:
    counts = {"read-records": records, "read-bytes": 10 * records}
    metrics = counts | {f"{name}-complete": True for name in counts}
    return {"subtask": number, "status": "RUNNING", "metrics": metrics, "start-time": 7} | {
        name.replace("_", "-"): member for name, member in members.items()
    }


def job_told(answer: dict[str, Any]) -> Job:
    """Read a job with a keyed vertex, of whose subtasks Flink answers so."""
    parallelism = len(answer["subtasks"])
    listed: dict[str, Any] = {"id": VERTEX_ID, "name": "by-user", "status": "RUNNING"}
    listed |= {"parallelism": parallelism, "maxParallelism": 128}
    plan = {"nodes": [{"id": VERTEX_ID, "inputs": [{"ship_strategy": "HASH"}]}]}
    job = {"name": "job", "state": "RUNNING", "plan": plan, "vertices": [listed]}

    def talk(connection: socket.socket, path: str) -> None:
        body = json.dumps(answer if "/vertices/" in path else job).encode()
        connection.sendall(OK + b"\r\n" + body)

    with peer(talk) as url:
        return read_job(url, JOB_ID)


# --- where they run ------------------------------------------------------------------------------


@pytest.mark.parametrize("named", PLACES)
def test_host_and_task_manager(named: str) -> None:
    """Flink calls the host so until 1.20, and an endpoint since 1.19, which has the port."""
    place = PLACES[named]
    [reports] = job_told({"now": NOW, "subtasks": [subtask(0, **place)]}).vertices[0].subtasks
    host = "tm-a" if named == "host" else "tm-a:34567"
    assert (reports.host, reports.taskmanager_id) == (host, place["taskmanager-id"])
    assert reports.start_time == 7


def test_what_has_no_place_yet() -> None:
    """Flink says (unassigned), and -1 for a time that did not come; other servers say nothing."""
    names = {"endpoint": "(unassigned)", "taskmanager-id": "(unassigned)", "start-time": -1}
    reports = [subtask(0) | names, {k: v for k, v in subtask(1).items() if k != "start-time"}]
    job = job_told({"subtasks": reports})
    for one in job.vertices[0].subtasks:
        assert (one.host, one.taskmanager_id, one.start_time) == (None, None, None)
    assert job.vertices[0].read_at is None
    assert "TaskManager" not in str(job.skew("by-user"))
    assert "TaskManager" not in job.skew("by-user")._repr_html_()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, value) for name in ("host", "endpoint") for value in (None, 5, "", "x" * 1025)),
        *(("taskmanager-id", value) for value in (None, ["a"], "", "x" * 1025)),
        *(("start-time", value) for value in (None, "7", 7.0, True, -2, 2**63)),
    ],
)
def test_places_and_times_that_flink_cannot_have(name: str, value: object) -> None:
    with pytest.raises(JobError, match=rf"\({name}\): this is no answer of Flink's REST API"):
        job_told({"now": NOW, "subtasks": [subtask(0) | {name: value}]})


@pytest.mark.parametrize("now", [None, "7", 7.0, True, -2, 2**63])
def test_clocks_that_flink_cannot_have(now: object) -> None:
    with pytest.raises(JobError, match=r"\(now\): this is no answer of Flink's REST API"):
        job_told({"now": now, "subtasks": [subtask(0)]})


def test_the_longest_names_and_times_that_flink_can_have() -> None:
    names = {"endpoint": "x" * 1024, "taskmanager-id": "y" * 1024, "start-time": 2**63 - 1}
    vertex = job_told({"now": 2**63 - 1, "subtasks": [subtask(0) | names]}).vertices[0]
    assert vertex.subtasks[0][-3:] == (*names.values(),)
    assert vertex.read_at == 2**63 - 1


def test_hostile_names_are_shown_as_text() -> None:
    """No escape reaches a terminal, no tag a page, and no line is wider than 80."""
    hostile = "\x1b[31m<b>\u202e\n" + "x" * 900
    job = job_told({"subtasks": [subtask(0, endpoint=hostile, taskmanager_id=hostile)]})
    text = str(job.skew("by-user"))
    assert all(line.isprintable() and len(line) <= 80 for line in text.splitlines())
    assert "\\x1b[31m<b>" in text
    page = job.skew("by-user")._repr_html_()
    assert page.isprintable()
    assert "&lt;b&gt;" in page
    assert "<b>" not in page


def test_recorded_places() -> None:
    """What Flink 2.3.0 answered, in the table and in the notebook."""
    _, answers = read("rest")
    bodies = [json.loads(one["body"]) for one in answers if "/vertices/" in one["path"]]
    keyed = next(body for body in reversed(bodies) if body.get("parallelism") == 4)
    job = job_told(keyed)
    vertex = job.vertices[0]
    assert vertex.read_at == keyed["now"]
    ids = {one["taskmanager-id"] for one in keyed["subtasks"]}
    assert {(one.host, one.taskmanager_id) for one in vertex.subtasks} == {
        ("localhost:-1", name) for name in ids
    }
    text = str(job.skew("by-user")).splitlines()
    assert text[-5].split() == ["subtask", "host", "TaskManager"]
    for number, line in enumerate(text[-4:]):
        index, host, name = line.split()
        assert (index, host) == (str(number), "localhost:-1")
        start, end = name.split("...")
        assert any(one.startswith(start) and one.endswith(end) for one in ids)
    page = job.skew("by-user")._repr_html_()
    assert page.count("localhost:-1") == 4
    assert page.count("<table>") == 2


# --- rates ---------------------------------------------------------------------------------------


def job_of(
    records: list[int | None],
    read_at: int | None,
    start_time: int | None = 7,
    sizes: list[int | None] | None = None,
) -> Job:
    subtasks = tuple(
        SubtaskReads(number, "RUNNING", count, size, f"tm-{number}", None, start_time)
        for number, (count, size) in enumerate(zip(records, sizes or [None] * len(records)))
    )
    vertex = Vertex(VERTEX_ID, "v", "RUNNING", len(records), 128, True, subtasks, read_at)
    return Job("http://h", JOB_ID, "a job", "RUNNING", (vertex,))


def test_records_a_second() -> None:
    """In all the subtasks are even; within the 2.5 seconds of Flink's clock subtask 1 is hot."""
    first, then = job_of([1_000, 500, 990], NOW), job_of([1_010, 990, 1_000], NOW + 2_500)
    skew = then.skew("v", since=first)
    assert skew.seconds == 2.5
    assert [one.records_per_second for one in skew.subtasks] == [4.0, 196.0, 4.0]
    assert [one.host for one in skew.subtasks] == ["tm-0", "tm-1", "tm-2"]
    assert skew.hot_subtasks == (1,)
    text = str(skew).splitlines()
    assert "510 records in 2.5 s, 204.0 a second" in text
    head = next(number for number, line in enumerate(text) if "records/s" in line)
    assert text[head].split()[:3] == ["subtask", "records", "records/s"]
    assert text[head + 2].split()[:3] == ["1", "490", "196.0"]
    assert text[head + 2].endswith("hot")
    assert text[head + 4].split() == ["subtask", "host", "TaskManager"]
    assert text[head + 6].split() == ["1", "tm-1", "?"]
    assert "<td" in skew._repr_html_()
    assert "196.0" in skew._repr_html_()


@pytest.mark.parametrize(
    ("before", "after"), [(None, NOW), (NOW, None), (NOW, NOW), (NOW, NOW - 1)], ids=str
)
def test_no_rates_where_the_clock_does_not_tell(before: int | None, after: int | None) -> None:
    """The counts of what was read in between are known all the same."""
    skew = job_of([5, 9], after).skew("v", since=job_of([1, 2], before))
    assert [one.records for one in skew.subtasks] == [4, 7]
    assert {one.records_per_second for one in skew.subtasks} == {None}
    assert skew.seconds is None
    assert "records/s" not in str(skew)


def test_no_rates_since_the_start() -> None:
    skew = job_of([5, 9], NOW).skew("v")
    assert (skew.seconds, skew.subtasks[0].records_per_second) == (None, None)
    assert "a second" not in str(skew)


def test_a_millisecond_is_the_shortest_time() -> None:
    skew = job_of([5, 9], NOW + 1).skew("v", since=job_of([4, 9], NOW))
    assert [one.records_per_second for one in skew.subtasks] == [1000.0, 0.0]


def test_a_restart_is_told_by_the_time_of_the_start() -> None:
    """A subtask that was deployed again counts anew, and may have come further than it was."""
    first = job_of([5, 9], NOW, start_time=7, sizes=[50, 90])
    for then in (
        job_of([50, 90], NOW + 1, start_time=8, sizes=[500, 900]),
        job_of([50, 90], NOW + 1, start_time=6, sizes=[500, 900]),
        job_of([50, 90], NOW + 1, sizes=[500, 89]),
        job_of([50, 8], NOW + 1, sizes=[500, 900]),
    ):
        with pytest.raises(JobError, match="was restarted in between: read the job twice again"):
            then.skew("v", since=first)
    for start_time in (None, 7):
        then = job_of([5, 9], NOW + 1, start_time=start_time, sizes=[50, None])
        skew = then.skew("v", since=first)
        assert [(one.records, one.bytes) for one in skew.subtasks] == [(0, 0), (0, None)]


def test_two_readings_of_one_count_are_equal_at_any_time() -> None:
    assert job_of([5, 9], NOW) == job_of([5, 9], NOW + 1)


def test_the_command_names_places_and_rates(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, then = job_of([5, 9], NOW), job_of([15, 10], NOW + 2_000)
    looks = iter([first, then] * 2)
    monkeypatch.setattr("keygroups.job.read_job", lambda *_, **__: next(looks))
    monkeypatch.setattr("keygroups.cli._job.time.sleep", lambda _: None)
    assert main(["job", "http://h", "--watch", "2"]) == 0
    assert capsys.readouterr().out == f"{then}\n\n{then.skew('v', first)}\n"
    assert main(["job", "http://h", "--watch", "2", "--json"]) == 0
    [vertex] = json.loads(capsys.readouterr().out)["vertices"]
    assert vertex["subtasks"][1] == {
        "subtask": 1,
        "status": "RUNNING",
        "read_records": 10,
        "read_bytes": None,
        "host": "tm-1",
        "taskmanager_id": None,
        "start_time": 7,
    }
    assert vertex["skew"]["seconds"] == 2.0
    assert vertex["skew"]["subtasks"][0] == {
        "subtask": 0,
        "records": 10,
        "bytes": None,
        "share": 10 / 11,
        "times_mean": 20 / 11,
        "records_per_second": 5.0,
    }
