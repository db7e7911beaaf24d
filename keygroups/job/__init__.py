"""A running job's own facts, from Flink's REST API.

`read_job` reads the vertices of a job: parallelism, max parallelism, and what each subtask has
read. `Job.skew` says which subtasks of a vertex are hot, and from what causes; `Job.savepoints`
lists where its state is, for `keygroups.savepoint.read_savepoint`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from textwrap import wrap
from typing import NamedTuple

from keygroups._checks import (
    UPPER_BOUND_MAX_PARALLELISM,
    check_class,
    check_str,
    show,
    to_number,
)
from keygroups._show.tables import html_table, text_table
from keygroups.errors import InvalidValueError, JobError, KeyGroupsError, printable, short
from keygroups.job._checkpoints import CompletedCheckpoint, read_checkpoints
from keygroups.job._rest import Rest, check_url, is_id, is_state, member
from keygroups.job._sign_in import sign_in
from keygroups.job._vertices import SubtaskReads, Vertex, read_vertices
from keygroups.key_group_range import KeyGroupRange, compute_key_group_range_for_operator_index
from keygroups.skew import (
    EVEN,
    HOT,
    NOTHING_TO_DO,
    TOO_FEW_KEYS,
    Cause,
    SubtaskCounts,
    head_texts,
    more_keys,
)

__all__ = [
    "CompletedCheckpoint",
    "Job",
    "SubtaskReads",
    "SubtaskSkew",
    "Vertex",
    "VertexSkew",
    "read_job",
]
__dir__ = __all__.copy

HOT_SUBTASKS = "hot subtasks"
NOT_KEYED = "uneven, and not keyed"
NOTHING_READ = "nothing read"

_NAME = 32  # characters of a name in a line

_ENDED = ("FINISHED", "CANCELED", "FAILED", "SUSPENDED")  # Flink: JobStatus.isTerminalState

_WIDTH = 80
_LISTED = 5  # jobs or vertices, in a message
_LONGEST_WAIT = 86_400  # seconds


class SubtaskSkew(NamedTuple):
    """Records that one subtask of a vertex has read, beside all; `key_groups` if it is keyed.

    `host` and `taskmanager_id` say where it runs, where Flink knows. `records_per_second` is known
    between two times.
    """

    subtask: int
    records: int
    bytes: int | None
    share: float
    times_mean: float
    key_groups: KeyGroupRange | None
    records_per_second: float | None = None
    host: str | None = None
    taskmanager_id: str | None = None


@dataclass(frozen=True, slots=True)
class VertexSkew:
    """The skew of the records that a vertex's subtasks read; `str()` is 80 wide.

    `imbalance` is the heaviest subtask's records over the mean. `hot_subtasks` have at least 1.5
    times the mean, the hottest first; `idle_subtasks` have read nothing. `causes` are those of
    SubtaskCounts, none where the vertex is not keyed or its key groups are not known. `seconds`
    is the time in which the records were read, if it is between two readings of the job.
    """

    vertex: Vertex
    subtasks: tuple[SubtaskSkew, ...] = field(repr=False)
    imbalance: float
    hot_subtasks: tuple[int, ...]
    idle_subtasks: tuple[int, ...]
    diagnosis: str
    remedy: str
    causes: tuple[Cause, ...] = ()
    seconds: float | None = None

    def _texts(self) -> list[str]:
        findings = self.diagnosis, self.remedy, self.causes
        first, *others = head_texts(*findings, self.vertex.parallelism, self.imbalance)
        texts = [f"{short(self.vertex.name, _NAME)}: {first}", *others]
        if self.seconds is not None:
            records = sum(subtask.records for subtask in self.subtasks)
            rate = records / self.seconds
            texts.append(f"{records:,} records in {self.seconds:,.1f} s, {rate:,.1f} a second")
        return texts

    def _rows(self) -> list[tuple[str, ...]]:
        rates = ["records/s"] if self.seconds is not None else []
        rows = [("subtask", "records", *rates, "share", "x mean", "bytes", "key groups", "")]
        for subtask in self.subtasks:
            groups, rate = subtask.key_groups, subtask.records_per_second
            rows.append(
                (
                    f"{subtask.subtask}",
                    f"{subtask.records:,}",
                    *([] if rate is None else [f"{rate:,.1f}"]),
                    f"{subtask.share:.1%}",
                    f"{subtask.times_mean:.2f}",
                    _count(subtask.bytes),
                    f"{groups.start_key_group}-{groups.end_key_group}" if groups else "-",
                    "hot" if subtask.subtask in self.hot_subtasks else "",
                )
            )
        return rows

    def _places(self) -> list[tuple[str, ...]]:
        """Return a table of the hosts of subtasks, empty where Flink does not know any."""
        rows = [
            (f"{subtask.subtask}", *(short(place or "?", _NAME) for place in places))
            for subtask in self.subtasks
            for places in [(subtask.host, subtask.taskmanager_id)]
        ]
        if all(row[1:] == ("?", "?") for row in rows):
            return []
        return [("subtask", "host", "TaskManager"), *rows]

    def __str__(self) -> str:
        lines = [line for text in self._texts() for line in wrap(text, _WIDTH)]
        places = text_table(self._places(), left_columns=(1, 2))
        return "\n".join([*lines, *text_table(self._rows()), *places])

    def _repr_html_(self) -> str:
        header, *rows = self._rows()
        table = html_table(self._texts(), header, rows)
        if not (places := self._places()):
            return table
        return table + html_table([], places[0], places[1:], left_columns=(1, 2))


@dataclass(frozen=True, slots=True)
class Job:
    """A job as Flink's REST API describes it; `str()` is a table of its vertices."""

    url: str
    job_id: str
    name: str
    state: str
    vertices: tuple[Vertex, ...] = field(repr=False)
    # They are read with the rest, or why not is noted: a Job keeps nothing that signs in.
    _checkpoints: tuple[CompletedCheckpoint, ...] | str = field(default=(), repr=False)

    def vertex(self, name: str) -> Vertex:
        """Return a vertex by its name, its id, or a part of the name that no other has.

        Raises InvalidValueError where there is none or more than one, and InvalidTypeError.
        """
        text = check_str("vertex", name)
        for matching in (
            [vertex for vertex in self.vertices if text in (vertex.vertex_id, vertex.name)],
            [vertex for vertex in self.vertices if text in vertex.name],
        ):
            if len(matching) == 1:
                return matching[0]
        if not self.vertices:
            raise InvalidValueError(
                f"vertex must be of a job that has some, got {show(name)} of one that has "
                f"none: it is {self.state}"
            )
        names = ", ".join(show(vertex.name) for vertex in self.vertices[:_LISTED])
        raise InvalidValueError(
            f"vertex must be the name, part of it, or id of one vertex of {names}"
            f"{', ...' * (len(self.vertices) > _LISTED)}, got {show(name)}"
        )

    def skew(self, vertex: str | Vertex, since: Job | None = None) -> VertexSkew:
        """Return a VertexSkew: how evenly the subtasks of a vertex have read records, and why not.

        `vertex` is what `vertex` takes, or a Vertex. The counts are of records read since the
        job was started or restored, in which a key that is hot only now is diluted; with `since`,
        the same job as it was read before, of those that were read after that, and how many these
        are in a second. The seconds are those of Flink's clock, and without them there are no
        rates. As Flink fetches counts every 10 seconds, they may be so much older than its clock
        says: a rate over a minute is better than one over some seconds. Which key is hot, the
        counts do not tell. Raises what `vertex` does, InvalidTypeError or InvalidValueError for
        what `since` cannot be, and JobError where Flink does not know the records of each subtask
        yet, or the job was restarted in between.
        """
        read = vertex if isinstance(vertex, Vertex) else self.vertex(vertex)
        if since is not None:
            earlier = check_class("since", since, Job, "a Job")
            if earlier.job_id != self.job_id:
                raise InvalidValueError(
                    f"since must be of job {show(self.job_id)}, got {show(earlier.job_id)}"
                )
            first = earlier.vertex(read.vertex_id)
            return _skew(self.url, _in_between(self.url, first, read), _seconds(first, read))
        return _skew(self.url, read)

    def savepoints(self) -> tuple[CompletedCheckpoint, ...]:
        """Return the completed checkpoints and savepoints that Flink remembered, the newest first.

        They were read with the job: read it again for newer ones. Flink remembers the last ten
        checkpoints of the job and its last savepoint, unless web.checkpoints.history says
        otherwise. Raises JobError where it did not tell, as of a job without checkpoints.
        """
        if isinstance(self._checkpoints, str):
            raise JobError(self._checkpoints)
        return self._checkpoints

    def _head(self) -> str:
        return (
            f"{short(self.name, _NAME)}, {short(self.state, _NAME)}, job {printable(self.job_id)}"
        )

    def _rows(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = [
            ("vertex", "parallelism", "max", "records read", "bytes read", "input")
        ]
        for vertex in self.vertices:
            rows.append(
                (
                    short(vertex.name, _NAME),
                    f"{vertex.parallelism}",
                    f"{vertex.max_parallelism}",
                    _count(vertex.read_records),
                    _count(vertex.read_bytes),
                    "keyed" if vertex.is_keyed else "",
                )
            )
        return rows

    def __str__(self) -> str:
        return "\n".join([self._head(), *text_table(self._rows())])

    def _repr_html_(self) -> str:
        header, *rows = self._rows()
        return html_table([self._head()], header, rows)


def read_job(
    url: str,
    job_id: str | None = None,
    timeout: float = 10.0,
    *,
    headers: Mapping[str, str] | None = None,
    ca_file: str | os.PathLike[str] | None = None,
    client_certificate: (
        str | os.PathLike[str] | tuple[str | os.PathLike[str], str | os.PathLike[str]] | None
    ) = None,
) -> Job:
    """Read a job's vertices, and what their subtasks have read, from Flink's REST API.

    `url` is that of the REST API or of a page of the web UI, http or https. `job_id` is 32
    hexadecimal digits; None is the job of that page, else the only job that has not ended, else
    the only one there is. `timeout` is in seconds, above 0 and at most 86400: a request has as
    long from connecting to the last byte of its answer, and all of them together have three times
    as long. Only the system's search for the host's address is not cut short. Counts that Flink
    does not know yet are waited for, three seconds at most and no longer than `timeout`.

    To sign in, `headers` are sent with each request, such as {"Authorization": "Bearer ..."}. If
    they have no Authorization, it is the token in the environment's KEYGROUPS_FLINK_TOKEN, else
    the password that a netrc file has for the host, $NETRC or ~/.netrc; neither is sent over http
    to another machine. The host of a server of https is verified, by the certificates in PEM of
    the file `ca_file`, else by those that the system trusts. `client_certificate` is a file with a
    certificate and its key, or two files. No secret is in a message, a Job or its pickle.

    A proxy that the environment names is used, as by urllib; a redirect is not followed. Raises
    InvalidValueError or InvalidTypeError for an argument, and where a `job_id` has to be given;
    JobError, naming the URL, where no Flink answers, in time, or not of that job any more.

    Flink: the REST API's /jobs/overview, /jobs/:jobid, /jobs/:jobid/vertices/:vertexid and
    /jobs/:jobid/checkpoints.

    >>> read_job("ftp://localhost")
    Traceback (most recent call last):
    keygroups.errors.InvalidValueError: url must be that of Flink's REST API, such as \
http://localhost:8081, got 'ftp://localhost'
    """
    try:
        base, job_of_page = check_url(url)
        seconds = _check_timeout(timeout)
        if job_id is not None and not re.fullmatch("[0-9a-fA-F]{32}", check_str("job_id", job_id)):
            raise InvalidValueError(f"job_id must be 32 hexadecimal digits, got {show(job_id)}")
        rest = Rest(base, seconds, sign_in(base, headers, ca_file, client_certificate))
    except KeyGroupsError as error:
        raise error.with_traceback(None) from None
    finally:
        del headers, url  # A traceback that shows variables would show secrets.
    try:
        return _read(rest, job_id or job_of_page or _only_job(rest), seconds)
    except KeyGroupsError as error:
        failure = rest.told(error)
    raise failure


def _read(rest: Rest, job_id: str, seconds: float) -> Job:
    path = f"/jobs/{job_id.lower()}"
    answer, where = rest.get(path), rest.url + path
    vertices = read_vertices(rest, path, answer, seconds)
    name = member(where, answer, "name", str)
    state = member(where, answer, "state", str, is_state)
    checkpoints: tuple[CompletedCheckpoint, ...] | str
    try:
        checkpoints = read_checkpoints(rest, path)
    except JobError as error:  # The vertices are known: `savepoints` alone raises it.
        checkpoints = str(rest.told(error))
    return Job(rest.url, job_id.lower(), name, state, vertices, checkpoints)


def _check_timeout(value: object) -> float:
    seconds = to_number("timeout", value)
    if not 0 < seconds <= _LONGEST_WAIT:
        raise InvalidValueError(
            f"timeout must be above 0 and at most {_LONGEST_WAIT} seconds, got {show(value)}"
        )
    return float(seconds)


def _only_job(rest: Rest) -> str:
    """Return the id of the only job that has not ended, or else of the only job."""
    where = f"{rest.url}/jobs/overview"
    jobs = [
        (
            member(where, job, "jid", str, is_id),
            member(where, job, "name", str),
            member(where, job, "state", str, is_state),
        )
        for job in member(where, rest.get("/jobs/overview"), "jobs", list)
    ]
    possible = [job for job in jobs if job[2] not in _ENDED] or jobs
    if not possible:
        raise JobError(f"{rest.url}: no job runs there")
    if len(possible) > 1:
        listed = ", ".join(
            f"{jid} ({show(name)}, {state})" for jid, name, state in possible[:_LISTED]
        )
        raise InvalidValueError(
            f"job_id must be given, as {rest.url} has {len(possible)} jobs: {listed}"
            f"{', ...' * (len(possible) > _LISTED)}"
        )
    ((job_id, _, _),) = possible
    return job_id


def _in_between(url: str, earlier: Vertex, later: Vertex) -> Vertex:
    """Return a vertex with the counts of its subtasks since an earlier reading of it."""
    before = {subtask.subtask: subtask for subtask in earlier.subtasks}
    subtasks = []
    for subtask in later.subtasks:
        start = before.get(subtask.subtask)
        if start is None or _is_restarted(start, subtask):
            raise JobError(
                f"{url}: subtask {subtask.subtask} of {show(later.name)} was restarted in "
                "between: read the job twice again"
            )
        subtasks.append(
            subtask._replace(
                read_records=_difference(start.read_records, subtask.read_records),
                read_bytes=_difference(start.read_bytes, subtask.read_bytes),
            )
        )
    return replace(later, subtasks=tuple(subtasks))


def _is_restarted(earlier: SubtaskReads, later: SubtaskReads) -> bool:
    """Tell whether a subtask counts anew: it was deployed at another time, or counts are less."""
    records = _difference(earlier.read_records, later.read_records)
    size = _difference(earlier.read_bytes, later.read_bytes)
    moved = _difference(earlier.start_time, later.start_time)
    return bool(moved) or (records or 0) < 0 or (size or 0) < 0


def _difference(first: int | None, last: int | None) -> int | None:
    return None if first is None or last is None else last - first


def _seconds(earlier: Vertex, later: Vertex) -> float | None:
    """Return the seconds between two readings by Flink's clock, None unless it went forward."""
    milliseconds = _difference(earlier.read_at, later.read_at)
    return milliseconds / 1000 if milliseconds is not None and milliseconds > 0 else None


def _skew(url: str, vertex: Vertex, seconds: float | None = None) -> VertexSkew:
    total = vertex.read_records
    if total is None or not vertex.subtasks:
        raise JobError(
            f"{url}: Flink does not know yet what the subtasks of {show(vertex.name)} have read; "
            "it looks every 10 seconds, unless metrics.fetcher.update-interval says otherwise"
        )
    parallelism, groups = vertex.parallelism, vertex.max_parallelism
    has_groups = vertex.is_keyed and parallelism <= groups <= UPPER_BOUND_MAX_PARALLELISM
    rows = [*_subtask_skews(vertex, total, groups if has_groups else 0, seconds)]
    hottest = sorted(rows, key=lambda row: (-row.records, row.subtask))
    hot = tuple(row.subtask for row in hottest if row.times_mean >= HOT)
    idle = tuple(row.subtask for row in rows if not row.records)
    counts = None
    by_subtask = sorted(rows, key=lambda row: row.subtask)
    if has_groups and [row.subtask for row in by_subtask] == [*range(parallelism)]:
        counts = SubtaskCounts(groups, (row.records for row in by_subtask))
    diagnosis, remedy = _diagnose(vertex, total, hot, idle, counts)
    imbalance = hottest[0].times_mean if total else 1.0
    causes = counts.causes if counts else ()
    findings = diagnosis, remedy, causes, seconds
    return VertexSkew(vertex, tuple(rows), imbalance, hot, idle, *findings)


def _subtask_skews(
    vertex: Vertex, total: int, groups: int, seconds: float | None
) -> Iterator[SubtaskSkew]:
    """Yield the SubtaskSkew of each subtask; `groups` is the max parallelism, 0 if not keyed."""
    parallelism = vertex.parallelism
    for subtask in vertex.subtasks:
        records = subtask.read_records or 0
        key_groups = None
        if groups and 0 <= subtask.subtask < parallelism:
            key_groups = compute_key_group_range_for_operator_index(
                groups, parallelism, subtask.subtask
            )
        yield SubtaskSkew(
            subtask=subtask.subtask,
            records=records,
            bytes=subtask.read_bytes,
            share=records / total if total else 0.0,
            times_mean=records * len(vertex.subtasks) / total if total else 0.0,
            key_groups=key_groups,
            records_per_second=None if seconds is None else records / seconds,
            host=subtask.host,
            taskmanager_id=subtask.taskmanager_id,
        )


def _diagnose(
    vertex: Vertex,
    total: int,
    hot: tuple[int, ...],
    idle: tuple[int, ...],
    counts: SubtaskCounts | None,
) -> tuple[str, str]:
    """Return a diagnosis of the counts, and its remedy or where to look further."""
    if not total:
        return NOTHING_READ, "a source reads from no other vertex; else wait for records"
    if not vertex.is_keyed:
        if not hot:
            return EVEN, NOTHING_TO_DO
        return NOT_KEYED, "no key decides what its subtasks read: look at the vertices before it"
    if counts is not None:
        return counts.diagnosis, counts.remedy
    if idle:
        return TOO_FEW_KEYS, more_keys(len(idle), len(vertex.subtasks))
    if not hot:
        return EVEN, NOTHING_TO_DO
    return HOT_SUBTASKS, "skew_report tells which keys are hot"


def _count(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"
