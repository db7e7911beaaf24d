"""A running job of real Flink, read over its REST API: `java/RestJob.java` runs it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from support.flink.flink_sql import FlinkSql, RestJob

from keygroups import InvalidValueError, KeyGroupLoad, assign_to_key_group
from keygroups.errors import JobError
from keygroups.job import Job, read_job
from keygroups.savepoint import read_savepoint

pytestmark = [pytest.mark.flink, pytest.mark.flink_since("2.0", "the API of its job")]

PARALLELISM, MAX_PARALLELISM = 5, 720
KEYS = [f"user-{number % 300}" for number in range(4_000)] + ["hot"] * 6_000
GROUPS = Counter(assign_to_key_group(key, MAX_PARALLELISM) for key in KEYS)
LOAD = KeyGroupLoad(MAX_PARALLELISM, GROUPS)
NAME = "Latest <of> a key"


def until(ask: Callable[[], Any], is_known: Callable[[Any], bool]) -> Any:
    """Ask until Flink knows, which keeps some answers for a few seconds; return the answer."""
    deadline = time.monotonic() + 30
    while not is_known(answer := ask()) and time.monotonic() < deadline:
        time.sleep(0.2)
    return answer


def refused(url: str) -> str:
    """Return why a job has to be named; "" where it has not."""
    try:
        read_job(url)
    except InvalidValueError as error:
        return str(error)
    return ""


@pytest.fixture
def running(flink_sql: FlinkSql) -> Iterator[RestJob]:
    task = {"parallelism": PARALLELISM, "max_parallelism": MAX_PARALLELISM, "keys": KEYS}
    with flink_sql.rest_job(task) as job:
        yield job


def has_read(job: Job) -> bool:
    """Return whether a job has read all keys; at first it has no vertices."""
    return [vertex.read_records for vertex in job.vertices[1:2]] == [len(KEYS)]


def runs(job: Job) -> bool:
    """Return whether Flink says that each subtask runs: it keeps an answer for three seconds."""
    vertex = job.vertex(NAME)
    return {vertex.status, *(one.status for one in vertex.subtasks)} == {"RUNNING"}


def test_a_running_job_and_its_end(running: RestJob) -> None:
    """What Flink has counted is the load that follows from the keys, subtask by subtask."""
    job = until(lambda: read_job(running.url), has_read)
    keyed = job.vertex(NAME)
    assert (job.job_id, job.state) == (running.job_id, "RUNNING")
    assert [one.parallelism for one in job.vertices] == [1, PARALLELISM, PARALLELISM]
    assert {one.max_parallelism for one in job.vertices} == {MAX_PARALLELISM}
    assert [one.is_keyed for one in job.vertices] == [False, True, False]
    counts = [one.read_records for one in keyed.subtasks]
    assert counts == LOAD.per_subtask(PARALLELISM)
    skew = job.skew(NAME)
    assert skew.imbalance == pytest.approx(LOAD.imbalance(PARALLELISM))
    assert skew.hot_subtasks == (counts.index(max(counts)),)
    assert skew.diagnosis == "uneven keys"

    later = until(lambda: read_job(running.url), runs)
    places = {one[-3:-1] for one in later.vertex(NAME).subtasks}
    assert {host for host, _ in places} == {"localhost:-1"}  # a local cluster
    assert len(places) == 1
    assert "localhost:-1" in str(later.skew(NAME))
    time.sleep(1.2)
    keyed, job, later = later.vertex(NAME), later, read_job(running.url)
    between = later.skew(NAME, since=job)
    assert between.diagnosis == "nothing read"
    assert between.seconds is not None
    assert 1.2 <= between.seconds < 60  # the cluster's clock is this machine's
    assert {one.records_per_second for one in between.subtasks} == {0.0}

    page = f"{running.url}/#/job/running/{running.job_id}/overview"
    assert read_job(page).vertex(NAME) == keyed

    second = running.tell("submit")
    text = until(lambda: refused(running.url), lambda text: second in text)
    assert "has 2 jobs" in text
    assert read_job(running.url, second).job_id == second

    assert running.tell("cancel") == "cancelled"
    assert until(lambda: refused(running.url), lambda text: not text) == ""
    assert read_job(running.url).job_id == second  # the only one that has not ended
    ended = read_job(running.url, running.job_id)
    assert ended.vertex(NAME).parallelism == PARALLELISM
    with pytest.raises(
        JobError, match=f"{running.url}/jobs/0{{32}}: status 404: 'Job 0{{32}} not"
    ):
        read_job(running.url, "0" * 32)


def test_savepoints_of_a_running_job(running: RestJob, tmp_path: Path) -> None:
    """What Flink remembers leads to the savepoint that it wrote, and to its keys."""

    def ask() -> Job:
        return read_job(running.url, timeout=60)

    job = until(ask, has_read)
    assert job.savepoints() == ()
    number = running.tell("checkpoint")
    path = running.tell(f"savepoint {tmp_path}")
    job = until(ask, lambda job: len(job.savepoints()) == 2)
    latest, first = job.savepoints()
    assert (latest.checkpoint_id, latest.is_savepoint, latest.path) == (number + 1, True, path)
    assert (first.checkpoint_id, first.is_savepoint, first.path) == (number, False, None)
    assert not latest.is_discarded
    assert first.triggered <= latest.triggered <= datetime.now(timezone.utc)
    operators = read_savepoint(latest.path).operators
    assert {entry.key for one in operators for entry in one.entries()} == set(KEYS)


def test_a_cluster_that_is_gone(flink_sql: FlinkSql) -> None:
    task = {"parallelism": 1, "max_parallelism": 128, "keys": ["a"]}
    with flink_sql.rest_job(task) as job:
        assert read_job(job.url).job_id == job.job_id
    with pytest.raises(JobError, match=f"{job.url}/jobs/overview: no answer"):
        read_job(job.url)
