"""What is read of a job from Flink's REST API, here of answers that a real Flink 2.3.0 gave.

`tests/vectors/make_rest.py` recorded them; `tests/flink/test_flink_job.py` asks a running one.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from support.golden import read

from keygroups import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    assign_key_to_parallel_operator,
    compute_key_group_range_for_operator_index,
)
from keygroups.cli import main
from keygroups.errors import JobError
from keygroups.job import Job, SubtaskReads, Vertex, _vertices, read_job

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
        if 300 <= status < 400:
            self.send_header("Location", body.decode("latin-1"))
            body = b""
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


@pytest.fixture(autouse=True)
def short_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask soon again for counts, which most recorded answers do not know the first time."""
    monkeypatch.setattr(_vertices, "_PAUSE", 0.001)


@pytest.fixture
def flink() -> Iterator[Stub]:
    with serve(recorded()) as server:
        yield server


def changed(body: bytes, **members: Any) -> bytes:
    return json.dumps(json.loads(body) | members).encode()


def vertex_path(replies: Replies, name: str = KEYED) -> str:
    return next(
        path
        for path, passed in replies.items()
        if "/vertices/" in path and json.loads(passed[0][1]).get("name") == name
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
    assert (job.url, job.job_id) == (flink.url, JOB_ID)
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
    first, *others = job.vertices
    for count, more in ((5, ""), (6, ", ...")):
        many = Job("u", "i", "n", "s", (others[0], *[first] * (count - 1)))
        with pytest.raises(InvalidValueError) as caught:
            many.vertex("x")
        assert f"of {KEYED!r}" + f", {first.name!r}" * 4 + f"{more}, got 'x'" in str(caught.value)


def test_vertex_of_a_job_that_has_none_yet() -> None:
    """Flink lists a job before it knows its vertices."""
    job = Job("http://h", JOB_ID, "n", "INITIALIZING", ())
    with pytest.raises(InvalidValueError, match="of one that has none: it is INIT"):
        job.vertex("a")


def test_skew_of_the_keyed_vertex(flink: Stub) -> None:
    job = read_job(flink.url)
    skew = job.skew(KEYED)
    total, hottest = sum(COUNTS.values()), max(COUNTS, key=lambda subtask: COUNTS[subtask])
    assert skew.imbalance == pytest.approx(COUNTS[hottest] * 4 / total)
    assert (skew.hot_subtasks, skew.idle_subtasks) == ((hottest,), ())
    assert skew.diagnosis == "uneven keys"
    assert "skew_report tells from the keys" in skew.remedy
    for one in skew.subtasks:
        groups = compute_key_group_range_for_operator_index(128, 4, one.subtask)
        assert (one.records, one.key_groups) == (COUNTS[one.subtask], groups)
        assert one.share == pytest.approx(COUNTS[one.subtask] / total)
    text = str(skew).splitlines()
    assert all(len(line) <= 80 for line in text)
    header = "subtask  records  share  x mean  bytes  key groups"
    table = text[-10:-5]  # the places where they run are below it
    assert table[0].split() == header.split()
    assert f"{COUNTS[hottest]}  {COUNTS[hottest] / total:.1%}" in table[1 + hottest]
    assert table[1 + hottest].endswith("hot")
    assert job.skew(job.vertex("Latest")) == skew


def test_skew_of_what_was_read_in_between() -> None:
    """In all 0 has read the most; in between 2 did."""

    def job_of(counts: list[int | None], job_id: str = UNKNOWN) -> Job:
        return Job("http://u", job_id, "a job", "RUNNING", (vertex(counts),))

    first, then = job_of([900, 100, 100]), job_of([910, 110, 170])
    skew = then.skew("name\nof it", since=first)
    assert [one.records for one in skew.subtasks] == [10, 10, 70]
    assert (skew.hot_subtasks, skew.diagnosis) == ((2,), "uneven keys")
    assert then.skew(then.vertices[0]).hot_subtasks == (0,)
    assert then.skew("name\nof it", then).diagnosis == "nothing read"
    for counts in ([899, 110, 170], [910, 110, 170, 5]):
        with pytest.raises(JobError, match=r"was restarted in between: read the job twice again"):
            job_of([*counts]).skew("name\nof it", since=first)
    with pytest.raises(JobError, match="does not know yet"):
        job_of([910, None, 170]).skew("name\nof it", since=first)
    with pytest.raises(InvalidValueError, match=r"since must be of job '0000.*, got '1111"):
        then.skew("name\nof it", since=job_of([1, 1, 1], "1" * 32))
    with pytest.raises(InvalidTypeError, match="since must be a Job, got 5"):
        then.skew("name\nof it", since=5)  # type: ignore[arg-type]


def test_skew_of_what_is_not_keyed(flink: Stub) -> None:
    job = read_job(flink.url)
    sink = job.skew("sink: Writer")
    assert (sink.diagnosis, sink.imbalance, sink.hot_subtasks) == ("even", 1.0, ())
    assert {one.key_groups for one in sink.subtasks} == {None}
    assert [line.split()[-1] for line in str(sink).splitlines()[-9:-5]] == ["-"] * 4
    source = job.skew("Source: keys")
    assert (source.diagnosis, source.imbalance, source.idle_subtasks) == (
        "nothing read",
        1.0,
        (0,),
    )
    assert [(one.share, one.times_mean) for one in source.subtasks] == [(0, 0)]


def vertex(counts: list[int | None], is_keyed: bool = True, groups: int = 128) -> Vertex:
    subtasks = tuple(SubtaskReads(i, "RUNNING", one, None) for i, one in enumerate(counts))
    return Vertex(UNKNOWN, "name\nof it", "RUNNING", len(counts), groups, is_keyed, subtasks)


@pytest.mark.parametrize(
    ("counts", "is_keyed", "groups", "diagnosis", "says"),
    [
        ([10, 11, 12], True, 128, "even", "nothing to do"),
        ([10, 0, 12], True, 128, "too few keys", "1 of 3 subtasks have nothing"),
        (
            [10, 10, 70],
            True,
            128,
            "uneven keys",
            "128 key groups at this parallelism would give 1.01",
        ),
        *(
            ([10, 10, 70], True, groups, "uneven keys", f"{groups} key groups at this parall")
            for groups in (3, 32768)
        ),
        *(
            ([10, 10, 70], True, groups, "hot subtasks", "skew_report tells which keys are hot")
            for groups in (-1, 2, 32769)
        ),
        ([10, 0, 12], True, -1, "too few keys", "1 of 3 subtasks have nothing"),
        ([10, 11, 12], True, -1, "even", "nothing to do"),
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
    known = is_keyed and 3 <= groups <= 32768
    assert [one.key_groups is not None for one in skew.subtasks] == [known] * 3


def test_one_and_a_half_times_the_mean_is_hot() -> None:
    """As 3 of 94 records on 47 subtasks are, of which 3 / 94 * 47 is a little less."""
    counts: list[int | None] = [3, *[2] * 45, 1]
    job = Job("http://localhost", UNKNOWN, "a job", "RUNNING", (vertex(counts),))
    skew = job.skew("name\nof it")
    assert (skew.hot_subtasks, skew.imbalance) == ((0,), 1.5)


def test_the_hottest_subtask_comes_first() -> None:
    """The first of equals."""
    job = Job("http://localhost", UNKNOWN, "a job", "RUNNING", (vertex([1, 30, 40, 30, 1, 1]),))
    assert job.skew("name\nof it").hot_subtasks == (2, 1, 3)


def test_subtask_that_the_parallelism_does_not_have() -> None:
    """A job that is being rescaled may tell of more subtasks than its vertex has."""
    odd = Vertex(UNKNOWN, "v", "RUNNING", 1, 128, True, vertex([1, 9]).subtasks)
    skew = Job("u", UNKNOWN, "j", "RUNNING", (odd,)).skew("v")
    assert [one.key_groups is None for one in skew.subtasks] == [False, True]
    assert (skew.remedy, skew.causes) == ("skew_report tells which keys are hot", ())


@pytest.mark.parametrize("parallelism", [-1, 0, 129])
def test_remedy_where_the_parallelism_is_none_of_the_key_groups(parallelism: int) -> None:
    odd = Vertex(UNKNOWN, "v", "RUNNING", parallelism, 128, True, vertex([1, 9]).subtasks)
    skew = Job("u", UNKNOWN, "j", "RUNNING", (odd,)).skew("v")
    assert skew.remedy == "skew_report tells which keys are hot"
    assert [one.key_groups for one in skew.subtasks] == [None, None]


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
    text = str(read_job(flink.url)).splitlines()
    assert text[0] == f"Flink Streaming Job, RUNNING, job {JOB_ID}"
    assert text[1].split() == [
        *("vertex", "parallelism", "max", "records", "read", "bytes", "read", "input")
    ]
    assert text[3].split()[-5:-2] == ["4", "128", f"{len(HEADER['keys']):,}"]
    assert text[3].endswith("keyed")
    long = Job("u", "i", "j" * 50, "s", ())
    assert str(long).startswith("j" * 16 + "..." + "j" * 13 + ", s")


def incomplete(body: bytes) -> bytes:
    """Return the answer as it is before Flink has fetched the counts."""
    answer = json.loads(body)
    for one in answer["subtasks"]:
        one["metrics"] |= {"read-records": 0, "read-records-complete": False}
    return json.dumps(answer).encode()


def test_counts_are_waited_for() -> None:
    replies = recorded()
    path = vertex_path(replies)
    replies[path] = [(200, incomplete(replies[path][-1][1]))] * 2 + replies[path][-1:]
    with serve(replies) as server:
        assert read_job(server.url).vertex(KEYED).read_records == len(HEADER["keys"])
        assert server.asked.count(path) == 3


def test_counts_are_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_vertices, "_PATIENCE", 0.05)
    replies = recorded()
    path = vertex_path(replies)
    replies[path] = [(200, incomplete(replies[path][-1][1]))]
    with serve(replies) as server:
        found = read_job(server.url).vertex(KEYED)
        assert [one.read_records for one in found.subtasks] == [None] * 4
        assert found.subtasks[0].read_bytes is not None


def test_counts_of_what_does_not_run_are_not_waited_for() -> None:
    replies = recorded()
    path = vertex_path(replies)
    reports = [
        subtask(0, "FINISHED", read_records_complete=one) for one in (False, "true", 1, None)
    ]
    listed = [one | {"subtask": number} for number, one in enumerate(reports)]
    replies[path] = [(200, changed(replies[path][0][1], subtasks=listed))]
    with serve(replies) as server:
        found = read_job(server.url).vertex(KEYED)
        assert [one.read_records for one in found.subtasks] == [None] * 4
        assert server.asked.count(path) == 1


def overview(*jobs: tuple[str, str]) -> Replies:
    listed = [{"jid": jid, "name": f"job {jid[:2]}", "state": state} for jid, state in jobs]
    return recorded() | {"/jobs/overview": [(200, json.dumps({"jobs": listed}).encode())]}


def test_the_only_job_that_runs_or_that_there_is() -> None:
    for jobs in (
        [(JOB_ID, "RUNNING"), ("ab" * 16, "FINISHED")],
        [(JOB_ID, "CANCELED")],
        [(JOB_ID, "RESTARTING"), ("ab" * 16, "CANCELED"), ("cd" * 16, "FAILED")],
        [(JOB_ID, "CREATED"), ("ab" * 16, "SUSPENDED")],
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
    listed = ", ".join(f"{jid} ('job {jid[:2]}', RUNNING)" for jid in ids[:5])
    assert str(caught.value) == f"job_id must be given, as {server.url} has 7 jobs: {listed}, ..."
    with (
        serve(overview(*((jid, "RUNNING") for jid in ids[:5]))) as server,
        pytest.raises(InvalidValueError, match=f"has 5 jobs: {re.escape(listed)}$"),
    ):
        read_job(server.url)
    with (
        serve(overview((ids[0], "FAILED"), (ids[1], "FAILED"))) as server,
        pytest.raises(InvalidValueError, match=r"has 2 jobs: .*\(.job 01., FAILED\)$"),
    ):
        read_job(server.url)
    with serve(overview()) as server, pytest.raises(JobError, match=f"{server.url}: no job runs"):
        read_job(server.url)
    for jobs in (
        [("../../etc", "RUNNING")],
        [(ids[0], "RUNNING"), ("\x1b[1m", "RUNNING")],
        [(ids[0], "RUNNING"), (ids[1], "\x1b[1m")],
    ):
        with (
            serve(overview(*jobs)) as server,
            pytest.raises(JobError, match=r"no answer of Flink's REST API: '[ -&(-~]*'$"),
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
    gone = next(
        passed for path, passed in replies.items() if path.endswith(f"/vertices/{UNKNOWN}")
    )
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
            "this is no answer of Flink's REST API but a page in HTML, as of a sign-in: pass head",
        ),
        (200, b"", "this is no answer"),
        (200, b"[]", "this is no answer"),
        (200, b"[" * 100_000, "this is no answer"),
        (200, b"\xff\xfe", "this is no answer"),
        (200, b"x" * 50, r"this is no answer of Flink's REST API: b'x{40}'$"),
        (200, b"{}", r"\(jobs\): this is no answer of Flink's REST API: \{\}$"),
        (200, b'{"jobs": 5}', r"\(jobs\): this is no answer of Flink's REST API: 5"),
        (200, b'{"jobs": [5]}', r"\(jid\): this is no answer"),
        (200, b'{"jobs": [{"jid": 5}]}', r"\(jid\): this is no answer"),
        (404, b"<html>", "/jobs/overview: status 404$"),
        (500, b'{"errors": 5}', "status 500$"),
        (500, b'{"errors": [5]}', "status 500$"),
        (503, b'{"errors": ["Service temporarily unavailable"]}', "status 503: 'Service temp"),
        (500, b'{"errors": ["No such file.", "at line 5"]}', "status 500: 'No such file.'$"),
        (500, b'{"errors": ["' + b"x" * 70_000 + b'"]}', "status 500$"),
        (500, b'{"errors": ' + b"[" * 60_000, "status 500$"),
        (500, b'{"errors": ["\\u001b[31m\\nno\\u202e"]}', r"status 500: '\\x1b\[31m'$"),
        (302, b"", "status 302$"),
        (302, b"/jobs/overview", "status 302: it points to '/jobs/overview', which is not fol"),
        (300, b"/jobs/overview", "status 300: it points to '/jobs/overview', which is not fol"),
        (302, b"file:///etc/passwd", "status 302: it points to 'file:///etc/passwd', which is"),
        (302, b"ftp://localhost/", "status 302: it points to 'ftp://localhost/', which is not"),
        (302, b"http://\xe2\x80\xae\x1b[1m", r"points to 'http://.*\\x1b\[1m', which is not"),
        (302, b"http://" + b"x" * 10_000, r"it points to 'http://x*\.\.\.x*', which is not"),
        (299, b'{"jobs": []}', "no job runs there"),
        (298, b'{"jobs": []}', "no answer: .*it breaks off after 12 bytes"),
        (0, b"", "no answer within "),
        # JSON that Flink does not write, which has UTF-8, longs, NaN as text, and no member twice.
        (200, '{"jobs": []}'.encode("utf-16"), "this is no answer"),
        (200, b'\xef\xbb\xbf{"jobs": []}', "this is no answer"),
        (200, b'{"jobs": [], "jobs": []}', "this is no answer"),
        (200, b'{"jobs": [], "x": NaN}', "this is no answer"),
        (200, b'{"jobs": [], "x": -Infinity}', "this is no answer"),
        (200, b'{"jobs": [], "x": ' + b"9" * 4301 + b"}", "this is no answer"),
        (200, b'{"jobs": [], "x": -9223372036854775808}', "no job runs there"),
        (200, b'{"jobs": [], "x": -92233720368547758080}', "this is no answer"),
    ],
)
def test_what_does_not_answer_as_flink_does(status: int, body: bytes, says: str) -> None:
    with (
        serve({"/jobs/overview": [(status, body)]}) as server,
        pytest.raises(JobError, match=says) as caught,
    ):
        read_job(server.url, timeout=0.1 if status == 0 else 10)
    text = str(caught.value)
    assert text.startswith(server.url)
    assert text.isprintable()
    assert len(text) < 400


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
        {"state": "\x1b[1m"},
        {"state": "RUNNING\n"},
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
    ("name", "value"),
    [
        *(("id", value) for value in (None, "", "0" * 31, "0" * 32 + "\n", "A" * 32)),
        *(("name", value) for value in (None, 5, ["a"])),
        *(("status", value) for value in (None, 5, "", "\x1b[1m", "A" * 33)),
        *(("parallelism", value) for value in ("4", 4.0, True, 0, -2, 32769, 10**19)),
        *(("maxParallelism", value) for value in ("128", None, 0, -2, 32769)),
    ],
)
def test_vertex_that_flink_cannot_have(name: str, value: object) -> None:
    """Flink has parallelisms of 1 to 32768, or -1 where it has not decided yet."""
    replies = recorded()
    answer = json.loads(replies[JOB_PATH][0][1])
    answer["vertices"][1][name] = value
    replies[JOB_PATH] = [(200, json.dumps(answer).encode())]
    with serve(replies) as server, pytest.raises(JobError) as caught:
        read_job(server.url)
    text = str(caught.value)
    assert text.startswith(
        f"{server.url}{JOB_PATH} ({name}): this is no answer of Flink's REST API"
    )
    assert text.isprintable()


@pytest.mark.parametrize("parallelism", [-1, 1, 32768])
def test_parallelisms_that_a_vertex_can_have(parallelism: int) -> None:
    """A batch job's is -1 until Flink has decided, ExecutionConfig.PARALLELISM_DEFAULT."""
    replies = recorded()
    answer = json.loads(replies[JOB_PATH][0][1])
    answer["vertices"][1] |= {"parallelism": parallelism, "maxParallelism": parallelism}
    replies[JOB_PATH] = [(200, json.dumps(answer).encode())]
    with serve(replies) as server:
        found = read_job(server.url).vertices[1]
    assert (found.parallelism, found.max_parallelism) == (parallelism, parallelism)


def test_vertex_that_is_listed_twice() -> None:
    replies = recorded()
    answer = json.loads(replies[JOB_PATH][0][1])
    answer["vertices"].append(answer["vertices"][0])
    replies[JOB_PATH] = [(200, json.dumps(answer).encode())]
    with serve(replies) as server, pytest.raises(JobError, match=r"'vertex [0-9a-f]{32} twice'$"):
        read_job(server.url)


def subtask(number: object, status: object = "RUNNING", **counts: object) -> dict[str, object]:
    """Return a subtask of which all is known, as Flink tells of it."""
    metrics = {"read_records": 5, "read_records_complete": True, "read_bytes": 9} | counts
    return {
        "subtask": number,
        "status": status,
        "metrics": {name.replace("_", "-"): value for name, value in metrics.items()},
    }


@pytest.mark.parametrize(
    "subtasks",
    [
        *(5, [5], [{}], [{"metrics": {}}]),
        *([subtask(0, read_records=count)] for count in (True, "5", 5.0, None, -1, 2**63)),
        *([subtask(0, read_bytes=count)] for count in (False, "5", 5.0, None, -1, 2**63)),
        *([subtask(number)] for number in ("0", True, -1, 32768)),
        *([subtask(0, status)] for status in (None, 5, "", "RUNNING\n", "\u202e")),
        [subtask(0), subtask(1), subtask(0)],
    ],
)
def test_subtasks_that_flink_cannot_have(subtasks: Any) -> None:
    """Flink counts in longs, from 0, and has up to 32768 subtasks, each once."""
    replies = recorded()
    path = vertex_path(replies)
    replies[path] = [(200, changed(replies[path][0][1], subtasks=subtasks))]
    with (
        serve(replies) as server,
        pytest.raises(JobError, match="this is no answer of Flink's REST API") as caught,
    ):
        read_job(server.url)
    assert str(caught.value).startswith(f"{server.url}{path}")
    assert str(caught.value).isprintable()


def test_largest_counts_that_flink_can_have() -> None:
    replies = recorded()
    path = vertex_path(replies)
    largest = [subtask(number, "A" * 32, read_records=2**63 - 1) for number in (0, 32767)]
    replies[path] = [(200, changed(replies[path][0][1], subtasks=largest))]
    with serve(replies) as server:
        job = read_job(server.url)
    assert job.vertex(KEYED).read_records == 2**64 - 2
    assert f"{2**64 - 2:,}" in str(job)


def test_plan_whose_inputs_are_odd() -> None:
    replies = recorded()
    answer = json.loads(replies[JOB_PATH][0][1])
    answer["plan"]["nodes"] = [{"id": one["id"], "inputs": [5, {}]} for one in answer["vertices"]]
    replies[JOB_PATH] = [(200, json.dumps(answer).encode())]
    with serve(replies) as server:
        assert not any(one.is_keyed for one in read_job(server.url).vertices)


def test_nobody_there() -> None:
    with serve({}) as server:
        url = server.url
    with pytest.raises(JobError, match=f"{url}/jobs/overview: no answer: .*refused"):
        read_job(url, timeout=2)


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


def test_longest_timeout(flink: Stub) -> None:
    assert read_job(flink.url, timeout=86_400).job_id == JOB_ID
    with pytest.raises(InvalidValueError, match="above 0 and at most 86400 seconds, got 8640"):
        read_job(flink.url, timeout=86_400.5)


# --- on the command line ----------------------------------------------------------------


def test_command(flink: Stub, capsys: pytest.CaptureFixture[str]) -> None:
    job = read_job(flink.url)
    assert main(["job", flink.url]) == 0
    assert capsys.readouterr().out == f"{job}\n\n{job.skew(KEYED)}\n"
    assert main(["job", flink.url, JOB_ID, "--vertex", "sink", "--timeout", "5"]) == 0
    assert capsys.readouterr().out == f"{job}\n\n{job.skew('sink')}\n"


def test_command_that_watches(
    flink: Stub, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr("keygroups.cli._job.time.sleep", slept.append)
    assert main(["job", flink.url, "--watch", "30"]) == 0
    assert slept[-1] == 30
    assert f"{KEYED}: nothing read: the heaviest of 4" in capsys.readouterr().out
    for value in ("0", "3601", "nan"):
        assert main(["job", flink.url, "--watch", value]) == 2
        assert "--watch must be above 0 and at most 3600" in capsys.readouterr().err
    assert main(["job", flink.url, "--watch", "1", "--savepoints"]) == 2
    assert "--watch is not for --savepoints" in capsys.readouterr().err


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
    assert keyed["skew"]["diagnosis"] == "uneven keys"


def test_command_of_counts_that_are_not_known(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_vertices, "_PATIENCE", 0.0)
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
        text = capsys.readouterr().err
        assert text.startswith(f"keygroups job: {server.url}/jobs/overview: status 404")
        assert text.count("\n") == 1
    assert main(["job", "file:///etc/passwd"]) == 2
    assert main(["job", "http://localhost", "x"]) == 2
    assert main(["job", "http://localhost", "--timeout", "soon"]) == 2
    text = capsys.readouterr().err
    assert text.count("\n") == 3
    assert text.endswith("argument --timeout: must be a number, got 'soon'\n")
