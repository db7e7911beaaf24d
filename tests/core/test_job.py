"""What is read of a job from Flink's REST API, here of answers that a real Flink 2.3.0 gave.

`tests/vectors/make_rest.py` recorded them; `tests/flink/test_flink_job.py` asks a running one.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.error import URLError

import pytest
from golden import read

from keygroups import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    assign_key_to_parallel_operator,
    compute_key_group_range_for_operator_index,
)
from keygroups import job as job_module
from keygroups.cli import main
from keygroups.errors import JobError
from keygroups.job import Job, SubtaskReads, Vertex, read_job

HEADER, ANSWERS = read("rest")
KEYED = "Latest <of> a key"
JOB_PATH = next(
    one["path"] for one in ANSWERS if one["path"].count("/") == 2 and "maxPar" in one["body"]
)
JOB_ID = JOB_PATH.rpartition("/")[2]
UNKNOWN = "0" * 32
COUNTS = Counter(assign_key_to_parallel_operator(key, 128, 4) for key in HEADER["keys"])
"""The records that Flink sends to each subtask."""

Replies = dict[str, list[tuple[int, bytes]]]


class Stub(ThreadingHTTPServer):
    """Answers each path with its replies, one after the other, the last one ever again."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 50

    def __init__(self, replies: Replies) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.replies = replies
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, *_: object) -> None:
        """Say nothing of clients that went away."""


class Handler(BaseHTTPRequestHandler):
    server: Stub

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        replies = self.server.replies.get(self.path, [(404, b'{"errors":["Not found."]}')])
        status, body = replies.pop(0) if len(replies) > 1 else replies[0]
        if status == 0:  # no answer at all
            time.sleep(1.5)
            return
        self.send_response(status)
        if status == 302:
            self.send_header("Location", body.decode())
            body = b""
        if status == 299:  # a body that never ends
            self.send_header("Content-Length", "1000000")
            self.end_headers()
            for _ in range(30):
                self.wfile.write(b" ")
                time.sleep(0.05)
            return
        if status == 298:  # a body that ends too early
            self.send_header("Content-Length", str(len(body) + 10))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serve(replies: Replies) -> Iterator[Stub]:
    server = Stub(replies)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def recorded() -> Replies:
    """Return the recorded replies, of the list of jobs only the one while it ran."""
    replies: Replies = {}
    for one in ANSWERS:
        replies.setdefault(one["path"], []).append((one["status"], one["body"].encode()))
    replies["/jobs/overview"] = replies["/jobs/overview"][:1]
    return replies


@pytest.fixture
def flink() -> Iterator[Stub]:
    with serve(recorded()) as server:
        yield server


def changed(body: bytes, **members: Any) -> bytes:
    return json.dumps(json.loads(body) | members).encode()


def vertex_path(replies: Replies, name: str = KEYED) -> str:
    return next(
        path
        for path, given in replies.items()
        if "/vertices/" in path and json.loads(given[0][1]).get("name") == name
    )


def test_facts_of_a_job(flink: Stub) -> None:
    job = read_job(flink.url)
    assert (job.url, job.job_id, job.state) == (flink.url, JOB_ID, "RUNNING")
    assert [(one.name, one.parallelism, one.max_parallelism) for one in job.vertices] == [
        ("Source: keys", 1, 128),
        (KEYED, 4, 128),
        ("sink: Writer", 4, 128),
    ]
    assert [one.is_keyed for one in job.vertices] == [False, True, False]
    keyed = job.vertex(KEYED)
    assert [one.read_records for one in keyed.subtasks] == [COUNTS[i] for i in range(4)]
    assert [one.subtask for one in keyed.subtasks] == [0, 1, 2, 3]
    assert keyed.read_records == len(HEADER["keys"])
    assert keyed.read_bytes == sum(one.read_bytes or 0 for one in keyed.subtasks)
    assert [one.read_records for one in job.vertices[0].subtasks] == [0]
    assert flink.asked[:2] == ["/jobs/overview", JOB_PATH]


def test_job_by_its_id_and_by_its_page(flink: Stub) -> None:
    job = read_job(f" {flink.url}/ ", JOB_ID.upper())
    assert job.job_id == JOB_ID
    page = f"{flink.url}/#/job/running/{JOB_ID}/overview/{job.vertices[1].vertex_id}/detail"
    assert read_job(page) == job
    assert "/jobs/overview" not in flink.asked
    with pytest.raises(JobError):
        read_job(page, UNKNOWN)


def test_vertex_by_name_id_and_part_of_the_name(flink: Stub) -> None:
    job = read_job(flink.url)
    keyed = job.vertices[1]
    for name in (KEYED, keyed.vertex_id, "Latest"):
        assert job.vertex(name) is keyed
    for name in ("e", "nothing", ""):
        with pytest.raises(InvalidValueError, match=r"of 'Source: keys', .*, got "):
            job.vertex(name)
    with pytest.raises(InvalidTypeError, match="vertex must be a str"):
        job.skew(5)  # type: ignore[arg-type]
    many = Job("u", "i", "n", "s", job.vertices * 3)
    with pytest.raises(InvalidValueError, match=r"'Source: keys', '.*, \.\.\., got 'x'"):
        many.vertex("x")


def test_skew_of_the_keyed_vertex(flink: Stub) -> None:
    job = read_job(flink.url)
    skew = job.skew(KEYED)
    total, hottest = sum(COUNTS.values()), max(COUNTS, key=lambda subtask: COUNTS[subtask])
    assert skew.imbalance == pytest.approx(COUNTS[hottest] * 4 / total)
    assert (skew.hot_subtasks, skew.idle_subtasks) == ((hottest,), ())
    assert skew.diagnosis == "hot subtasks"
    assert "skew_report tells from the keys" in skew.remedy
    for one in skew.subtasks:
        groups = compute_key_group_range_for_operator_index(128, 4, one.subtask)
        assert (one.records, one.key_groups) == (COUNTS[one.subtask], groups)
        assert one.share == pytest.approx(COUNTS[one.subtask] / total)
    said = str(skew).splitlines()
    assert all(len(line) <= 80 for line in said)
    header = "subtask  records  share  x mean  bytes  key groups"
    assert said[-5].split() == header.split()
    assert f"{COUNTS[hottest]}  {COUNTS[hottest] / total:.1%}" in said[-4 + hottest]
    assert said[-4 + hottest].endswith("hot")
    assert job.skew(job.vertex("Latest")) == skew


def test_skew_of_what_is_not_keyed(flink: Stub) -> None:
    job = read_job(flink.url)
    sink = job.skew("sink: Writer")
    assert (sink.diagnosis, sink.imbalance, sink.hot_subtasks) == ("even", 1.0, ())
    assert {one.key_groups for one in sink.subtasks} == {None}
    source = job.skew("Source: keys")
    assert (source.diagnosis, source.imbalance, source.idle_subtasks) == (
        "nothing read",
        1.0,
        (0,),
    )


def vertex(counts: list[int | None], is_keyed: bool = True, groups: int = 128) -> Vertex:
    subtasks = tuple(SubtaskReads(i, "RUNNING", one, None) for i, one in enumerate(counts))
    return Vertex(UNKNOWN, "name\nof it", "RUNNING", len(counts), groups, is_keyed, subtasks)


@pytest.mark.parametrize(
    ("counts", "is_keyed", "groups", "diagnosis", "says"),
    [
        ([10, 11, 12], True, 128, "even", "nothing to do"),
        ([10, 0, 12], True, 128, "too few keys", "1 of 3 subtasks have read nothing"),
        (
            [10, 10, 70],
            True,
            128,
            "hot subtasks",
            "128 key groups at this parallelism would give 1.01",
        ),
        ([10, 10, 70], True, -1, "hot subtasks", "skew_report tells which keys are hot"),
        ([10, 10, 70], False, 128, "uneven, and not keyed", "look at the vertices before it"),
        ([10, 10, 11], False, 128, "even", "nothing to do"),
        ([0, 0, 0], True, 128, "nothing read", "wait for records"),
    ],
)
def test_diagnosis(
    counts: list[int | None], is_keyed: bool, groups: int, diagnosis: str, says: str
) -> None:
    job = Job("http://localhost", UNKNOWN, "a job", "RUNNING", (vertex(counts, is_keyed, groups),))
    skew = job.skew("name\nof it")
    assert skew.diagnosis == diagnosis
    assert says in skew.remedy
    assert str(skew).startswith(f"name\\nof it: {diagnosis}: the heaviest of 3 subtasks has ")
    known = is_keyed and groups == 128
    assert [one.key_groups is not None for one in skew.subtasks] == [known] * 3


def test_subtask_that_the_parallelism_does_not_have() -> None:
    """A job that is being rescaled may tell of more subtasks than its vertex has."""
    odd = Vertex(UNKNOWN, "v", "RUNNING", 1, 128, True, vertex([1, 2]).subtasks)
    skew = Job("u", UNKNOWN, "j", "RUNNING", (odd,)).skew("v")
    assert [one.key_groups is None for one in skew.subtasks] == [False, True]


def test_counts_that_are_not_known() -> None:
    job = Job("http://localhost", UNKNOWN, "a job", "RUNNING", (vertex([1, None]),))
    with pytest.raises(JobError, match=r"localhost: Flink does not know yet .* 10 seconds"):
        job.skew("name\nof it")
    assert job.vertices[0].read_records is None
    assert "?" in str(job)
    none = Job("http://localhost", UNKNOWN, "a job", "CREATED", (vertex([]),))
    with pytest.raises(JobError):
        none.skew("name\nof it")


def test_table_of_a_job(flink: Stub) -> None:
    said = str(read_job(flink.url)).splitlines()
    assert said[0] == f"Flink Streaming Job, RUNNING, job {JOB_ID}"
    assert said[1].split() == [
        *("vertex", "parallelism", "max", "records", "read", "bytes", "read", "input")
    ]
    assert said[3].split()[-5:-2] == ["4", "128", f"{len(HEADER['keys']):,}"]
    assert said[3].endswith("keyed")
    long = Job("u", "i", "j" * 50, "s", ())
    assert str(long).startswith("j" * 16 + "..." + "j" * 13 + ", s")


def incomplete(body: bytes) -> bytes:
    """Return the answer as it is before Flink has fetched the counts."""
    answer = json.loads(body)
    for one in answer["subtasks"]:
        one["metrics"] |= {"read-records": 0, "read-records-complete": False}
    return json.dumps(answer).encode()


def test_counts_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_module, "_PAUSE", 0.001)
    replies = recorded()
    path = vertex_path(replies)
    replies[path] = [(200, incomplete(replies[path][-1][1]))] * 2 + replies[path][-1:]
    with serve(replies) as server:
        assert read_job(server.url).vertex(KEYED).read_records == len(HEADER["keys"])
        assert server.asked.count(path) == 3


def test_counts_are_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_module, "_PATIENCE", 0.05)
    replies = recorded()
    path = vertex_path(replies)
    replies[path] = [(200, incomplete(replies[path][-1][1]))]
    with serve(replies) as server:
        found = read_job(server.url).vertex(KEYED)
        assert [one.read_records for one in found.subtasks] == [None] * 4
        assert found.subtasks[0].read_bytes is not None


def overview(*jobs: tuple[str, str]) -> Replies:
    listed = [{"jid": jid, "name": f"job {jid[:2]}", "state": state} for jid, state in jobs]
    return recorded() | {"/jobs/overview": [(200, json.dumps({"jobs": listed}).encode())]}


def test_the_only_job_that_runs_or_that_there_is() -> None:
    for jobs in (
        [(JOB_ID, "RUNNING"), ("ab" * 16, "FINISHED")],
        [(JOB_ID, "CANCELED")],
        [(JOB_ID, "RESTARTING"), ("ab" * 16, "CANCELED"), ("cd" * 16, "FAILED")],
    ):
        with serve(overview(*jobs)) as server:
            assert read_job(server.url).job_id == JOB_ID


def test_which_job() -> None:
    ids = [f"{number:02}" * 16 for number in range(7)]
    with (
        serve(overview(*((jid, "RUNNING") for jid in ids))) as server,
        pytest.raises(InvalidValueError) as caught,
    ):
        read_job(server.url)
    said = str(caught.value)
    assert said.startswith(
        f"job_id must be given, as {server.url} has 7 jobs: {ids[0]} ('job 00', "
    )
    assert said.endswith(", ...")
    with (
        serve(overview((ids[0], "FAILED"), (ids[1], "FAILED"))) as server,
        pytest.raises(InvalidValueError, match=r"has 2 jobs: .*\(.job 01., FAILED\)$"),
    ):
        read_job(server.url)
    with serve(overview()) as server, pytest.raises(JobError, match=f"{server.url}: no job runs"):
        read_job(server.url)
    with (
        serve(overview(("../../etc", "RUNNING"))) as server,
        pytest.raises(JobError, match=r"no answer of Flink's REST API: '\.\./\.\./etc'"),
    ):
        read_job(server.url)


def test_job_that_is_not_there(flink: Stub) -> None:
    """The answer is Flink's own."""
    with pytest.raises(JobError) as caught:
        read_job(flink.url, UNKNOWN)
    assert (
        str(caught.value) == f"{flink.url}/jobs/{UNKNOWN}: status 404: 'Job {UNKNOWN} not found'"
    )


def test_job_that_ends_meanwhile() -> None:
    """Its vertices are gone with it: the answer is Flink's for a vertex that it does not have."""
    replies = recorded()
    gone = next(given for path, given in replies.items() if path.endswith(f"/vertices/{UNKNOWN}"))
    path = vertex_path(replies)
    with serve(replies | {path: gone}) as server, pytest.raises(JobError) as caught:
        read_job(server.url)
    assert f"{server.url}{path}: status 404: 'JobVertex {UNKNOWN} not found'" in str(caught.value)


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (
            200,
            b"<html><title>Login</title></html>",
            "this is no answer of Flink's REST API: b'<html>",
        ),
        (200, b"", "this is no answer"),
        (200, b"[]", "this is no answer"),
        (200, b"[" * 100_000, "this is no answer"),
        (200, b"\xff\xfe", "this is no answer"),
        (200, b"{}", r"\(jobs\): this is no answer"),
        (200, b'{"jobs": 5}', r"\(jobs\): this is no answer of Flink's REST API: 5"),
        (200, b'{"jobs": [5]}', r"\(jid\): this is no answer"),
        (200, b'{"jobs": [{"jid": 5}]}', r"\(jid\): this is no answer"),
        (404, b"<html>", "/jobs/overview: status 404$"),
        (500, b'{"errors": 5}', "status 500$"),
        (500, b'{"errors": [5]}', "status 500$"),
        (503, b'{"errors": ["Service temporarily unavailable"]}', "status 503: 'Service temp"),
        (302, b"file:///etc/passwd", "status 302|no answer"),
        (302, b"ftp://localhost/", "no answer"),
        (302, b"/jobs/overview", "status 302"),
        (298, b'{"jobs": []}', "no answer"),
        (299, b"", r"no answer within 0\.5 seconds \(timeout\)"),
        (0, b"", r"no answer within 0\.5 seconds \(timeout\)"),
    ],
)
def test_what_does_not_answer_as_flink_does(status: int, body: bytes, says: str) -> None:
    with (
        serve({"/jobs/overview": [(status, body)]}) as server,
        pytest.raises(JobError, match=says) as caught,
    ):
        read_job(server.url, timeout=0.5)
    said = str(caught.value)
    assert said.startswith(f"{server.url}/jobs/overview")
    assert "\n" not in said
    assert len(said) < 300


@pytest.mark.parametrize(
    "members",
    [
        {"plan": 5},
        {"plan": {}},
        {"plan": {"nodes": [5]}},
        {"plan": {"nodes": [{"id": "a", "inputs": 5}]}},
        {"vertices": {}},
        {"vertices": [{}]},
        {"vertices": [{"id": "../.."}]},
        {"name": None},
        {"state": 5},
    ],
)
def test_answer_of_another_shape(members: dict[str, Any]) -> None:
    replies = recorded()
    replies[JOB_PATH] = [(200, changed(replies[JOB_PATH][0][1], **members))]
    with (
        serve(replies) as server,
        pytest.raises(JobError, match="this is no answer of Flink's REST API") as caught,
    ):
        read_job(server.url)
    assert str(caught.value).startswith(f"{server.url}{JOB_PATH}")


@pytest.mark.parametrize(
    "subtasks",
    [5, [5], [{}], [{"metrics": {}}], [{"metrics": {"read-records": True, "read-bytes": 1}}]],
)
def test_subtasks_of_another_shape(subtasks: Any) -> None:
    replies = recorded()
    path = vertex_path(replies)
    replies[path] = [(200, changed(replies[path][0][1], subtasks=subtasks))]
    with (
        serve(replies) as server,
        pytest.raises(JobError, match="this is no answer of Flink's REST API"),
    ):
        read_job(server.url)


def test_plan_whose_inputs_are_odd() -> None:
    replies = recorded()
    answer = json.loads(replies[JOB_PATH][0][1])
    answer["plan"]["nodes"] = [{"id": one["id"], "inputs": [5, {}]} for one in answer["vertices"]]
    replies[JOB_PATH] = [(200, json.dumps(answer).encode())]
    with serve(replies) as server:
        assert not any(one.is_keyed for one in read_job(server.url).vertices)


def test_answer_of_more_than_64_mib() -> None:
    with (
        serve({"/jobs/overview": [(200, b" " * (2**26 + 1))]}) as server,
        pytest.raises(JobError, match="the answer has more than 67108864 bytes"),
    ):
        read_job(server.url, timeout=60)


def test_answer_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keygroups._rest._MOST_BYTES", 1000)
    with (
        serve({"/jobs/overview": [(200, b" " * 200_000)]}) as server,
        pytest.raises(JobError, match="the answer has more than 1000 bytes"),
    ):
        read_job(server.url)


def test_nobody_there() -> None:
    with serve({}) as server:
        url = server.url
    with pytest.raises(JobError, match=f"{url}/jobs/overview: no answer: .*refused"):
        read_job(url, timeout=2)


def test_connection_that_is_not_made_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_slow(*_: object) -> None:
        raise URLError(TimeoutError("timed out"))

    monkeypatch.setattr("urllib.request.HTTPHandler.http_open", too_slow)
    with pytest.raises(JobError, match=r"localhost/jobs/overview: no answer within 10 seconds"):
        read_job("http://localhost")


def test_error_whose_body_breaks_off(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> bytes:
        raise OSError

    monkeypatch.setattr("urllib.error.HTTPError.read", broken, raising=False)
    with serve({}) as server, pytest.raises(JobError, match=r"status 404$"):
        read_job(server.url)


@pytest.mark.parametrize(
    "url",
    [
        *("", "localhost:8081", "file:///etc/passwd", "ftp://localhost", "http://", "http:///x"),
        *("http://localhost:x", "http://localhost:0", "http://localhost:99999", "http://[::1"),
    ],
)
def test_url_that_is_none(url: str) -> None:
    with pytest.raises(InvalidValueError, match="url must be that of Flink's REST API, such as"):
        read_job(url)


def test_url_with_a_password_is_not_shown() -> None:
    with pytest.raises(InvalidValueError) as caught:
        read_job("http://me:secret@localhost:8081")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("job_id", ["", "abc", "g" * 32, "a" * 33, f"{JOB_ID}/.."])
def test_job_id_that_is_none(job_id: str) -> None:
    with pytest.raises(InvalidValueError, match="job_id must be 32 hexadecimal digits, got"):
        read_job("http://localhost:1", job_id)


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), True, "1", None])
def test_timeout_that_is_none(timeout: Any) -> None:
    with pytest.raises(KeyGroupsError, match="timeout must be"):
        read_job("http://localhost:1", timeout=timeout)


# --- on the command line ----------------------------------------------------------------


def test_command(flink: Stub, capsys: pytest.CaptureFixture[str]) -> None:
    job = read_job(flink.url)
    assert main(["job", flink.url]) == 0
    assert capsys.readouterr().out == f"{job}\n\n{job.skew(KEYED)}\n"
    assert main(["job", flink.url, JOB_ID, "--vertex", "sink", "--timeout", "5"]) == 0
    assert capsys.readouterr().out == f"{job}\n\n{job.skew('sink')}\n"


def test_command_in_json(flink: Stub, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["job", flink.url, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["url"], data["job_id"], data["state"]) == (flink.url, JOB_ID, "RUNNING")
    source, keyed, _ = data["vertices"]
    assert source["skew"] is None
    assert keyed["name"] == KEYED
    assert keyed["is_keyed"] is True
    assert [one["read_records"] for one in keyed["subtasks"]] == [COUNTS[i] for i in range(4)]
    assert keyed["skew"]["hot_subtasks"] == [max(COUNTS, key=lambda i: COUNTS[i])]
    assert keyed["skew"]["diagnosis"] == "hot subtasks"


def test_command_of_counts_that_are_not_known(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_module, "_PATIENCE", 0.0)
    replies = recorded()
    path = vertex_path(replies)
    replies[path] = [(200, incomplete(replies[path][-1][1]))]
    with serve(replies) as server:
        assert main(["job", server.url]) == 0
        assert "does not know yet" in capsys.readouterr().out
        assert main(["job", server.url, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["vertices"][1]["skew"] is None
        assert main(["job", server.url, "--vertex", KEYED]) == 1
        assert "does not know yet" in capsys.readouterr().err


def test_command_that_fails(capsys: pytest.CaptureFixture[str]) -> None:
    with serve({}) as server:
        assert main(["job", server.url]) == 1
        said = capsys.readouterr().err
        assert said.startswith(f"keygroups job: {server.url}/jobs/overview: status 404")
        assert said.count("\n") == 1
    assert main(["job", "file:///etc/passwd"]) == 2
    assert main(["job", "http://localhost", "x"]) == 2
    assert main(["job", "http://localhost", "--timeout", "soon"]) == 2
    assert capsys.readouterr().err.count("\n") == 3
