"""The command that asks a running job."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from keygroups._show.tables import text_table
from keygroups.cli._key_groups import skew_data
from keygroups.cli._parser import AddCommand, Arguments, to_number
from keygroups.cli._streams import json_line, lines_of
from keygroups.errors import InvalidValueError, JobError, printable

if TYPE_CHECKING:
    from keygroups.job import CompletedCheckpoint, Job, Vertex, VertexSkew

_LONGEST_WATCH = 3_600
_NO_HEADER = (
    "must be 'NAME: VALUE' in one argument, or in one line of @FILE, got another text, which is "
    "not shown"
)


def add_commands(command: AddCommand) -> None:
    """Add the command."""
    add = command(_job)
    add("url", metavar="URL", help="http or https")
    add("job_id", metavar="JOB_ID", nargs="?", help="without, the only job that runs")
    add("--vertex", metavar="NAME", help="only this vertex: its name, part of it, or id")
    checkpoints = "list its completed checkpoints and savepoints instead"
    add("--savepoints", action="store_true", help=checkpoints)
    watch = "look twice, so many seconds apart, at what was read in between (at most 3600)"
    add("--watch", type=to_number, metavar="N", help=watch)
    add_sign_in(add)


def add_sign_in(add: Arguments) -> None:
    """Add the options of `sign_in`, and the timeout."""
    seconds = "seconds for each request, and three times as many for all (default: 10)"
    add("--timeout", type=to_number, default=10.0, metavar="N", help=seconds)
    headers = "a header to send, or @FILE with one a line, @- for standard input; again for more"
    add(
        "--header",
        type=_to_header,
        action="append",
        default=[],
        metavar="'NAME: VALUE'",
        help=headers,
    )
    add("--ca-file", metavar="FILE", help="trust only servers that these sign, in PEM")
    add("--client-certificate", metavar="FILE", help="the certificate to show, in PEM")
    add("--client-key", metavar="FILE", help="its key, where that is in another file")


def _job(options: argparse.Namespace) -> Iterator[str]:
    """Print the records that subtasks of a running job have read, and the hot ones.

    URL is that of Flink's REST API, such as http://localhost:8081, or of a page of its web UI.
    Without --vertex all vertices are looked at whose input is keyed. What was read since the start
    hides a key that is hot only now: --watch 30 tells of the last 30 seconds, and how many records
    a second each subtask read; Flink fetches its counts every 10 seconds. --savepoints prints
    where the job's state is, for the command savepoint: the newest first, "-" where it is in no
    file.

    What others may see in a list of processes is no place for a token: --header @FILE reads
    'Authorization: Bearer ...' from a file. Without such a header the token in the environment's
    KEYGROUPS_FLINK_TOKEN signs in, or what a netrc file has for the host ($NETRC or ~/.netrc).

    JSON: url, job_id, name, state, vertices (each with vertex_id, name, status, parallelism,
    max_parallelism, is_keyed, subtasks with subtask, status, read_records, read_bytes, host,
    taskmanager_id and start_time (milliseconds since 1970), and skew, null for those not looked
    at, else imbalance, hot_subtasks, idle_subtasks, diagnosis, remedy, causes, each of these with
    name, share and remedy, seconds between the two looks, and subtasks with subtask, records,
    bytes, share, times_mean and records_per_second). What Flink does not know yet is null. With
    --savepoints there are savepoints in place of vertices, each with checkpoint_id, is_savepoint,
    path, triggered (ISO 8601), state_size (in bytes) and is_discarded.
    """
    from keygroups.job import read_job

    if options.savepoints and options.vertex is not None:
        raise InvalidValueError("--vertex is not for --savepoints, which are of the whole job")
    if options.watch is not None and not 0 < options.watch <= _LONGEST_WATCH:
        raise InvalidValueError(
            f"--watch must be above 0 and at most {_LONGEST_WATCH} seconds, got {options.watch}"
        )
    if options.savepoints and options.watch is not None:
        raise InvalidValueError("--watch is not for --savepoints")
    signed_in = sign_in(options)
    job = read_job(options.url, options.job_id, options.timeout, **signed_in)
    earlier = None
    if options.watch is not None:
        time.sleep(options.watch)
        earlier = job
        job = read_job(options.url, job.job_id, options.timeout, **signed_in)
    if options.savepoints:
        yield from _savepoints(job, options.json)
        return
    named = options.vertex is not None
    keyed = [vertex for vertex in job.vertices if vertex.is_keyed]
    skews, unknown = {}, []
    for vertex in [job.vertex(options.vertex)] if named else keyed:
        try:
            skews[vertex.vertex_id] = job.skew(vertex, earlier)
        except JobError as error:
            if named:
                raise
            unknown.append(str(error))
    if options.json:
        vertices = [_vertex_data(vertex, skews.get(vertex.vertex_id)) for vertex in job.vertices]
        yield json_line(job_data(job) | {"vertices": vertices})
        return
    yield "\n\n".join([str(job), *map(str, skews.values()), *unknown])


def sign_in(options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `read_job` by which it signs in."""
    certificate = options.client_certificate
    if options.client_key is not None:
        if certificate is None:
            raise InvalidValueError(
                "--client-key is that of a --client-certificate, which is not there"
            )
        certificate = (certificate, options.client_key)
    return {
        "headers": _headers(options.header),
        "ca_file": options.ca_file,
        "client_certificate": certificate,
    }


def _to_header(text: str) -> str:
    """Return a valid argument; the parser would show the secret in an invalid one."""
    if not text.startswith("@") and not _is_header(text):
        raise argparse.ArgumentTypeError(_NO_HEADER)
    return text


def _is_header(text: str) -> bool:
    return bool(text.partition(":")[2].strip())


def _headers(texts: list[str]) -> dict[str, str]:
    """Return headers, those in files too; no message shows a header, which may be secret."""
    headers: dict[str, str] = {}
    for text in texts:
        lines = filter(str.strip, lines_of(text[1:])) if text.startswith("@") else [text]
        for line in lines:
            if not _is_header(line):
                raise InvalidValueError(f"--header {_NO_HEADER}")
            name, _, value = map(str.strip, line.partition(":"))
            if name in headers:
                raise InvalidValueError("--header must have each name once")
            headers[name] = value
    return headers


def _savepoints(job: Job, is_json: bool) -> Iterator[str]:
    """Yield the table, or the JSON, of the completed checkpoints and savepoints of a job."""
    checkpoints = job.savepoints()
    if is_json:
        savepoints = [
            checkpoint._asdict() | {"triggered": checkpoint.triggered.isoformat()}
            for checkpoint in checkpoints
        ]
        yield json_line(job_data(job) | {"savepoints": savepoints})
        return
    yield str(job).partition("\n")[0]
    rows = [("id", "kind", "triggered (UTC)", "bytes", "", "path"), *map(_row, checkpoints)]
    yield from text_table(rows, left_columns=(1, 2, 5))


def _row(checkpoint: CompletedCheckpoint) -> tuple[str, ...]:
    return (
        f"{checkpoint.checkpoint_id}",
        "savepoint" if checkpoint.is_savepoint else "checkpoint",
        f"{checkpoint.triggered:%Y-%m-%d %H:%M:%S}",
        f"{checkpoint.state_size:,}",
        "deleted" if checkpoint.is_discarded else "",
        "-" if checkpoint.path is None else printable(checkpoint.path),
    )


def job_data(job: Job) -> dict[str, Any]:
    """Return the JSON of a job without its vertices."""
    return {name: getattr(job, name) for name in ("url", "job_id", "name", "state")}


def _vertex_data(vertex: Vertex, skew: VertexSkew | None) -> dict[str, Any]:
    """Return the JSON of a vertex: its subtasks and their skew."""
    names = ("vertex_id", "name", "status", "parallelism", "max_parallelism", "is_keyed")
    return {name: getattr(vertex, name) for name in names} | {
        "subtasks": [subtask._asdict() for subtask in vertex.subtasks],
        "skew": None if skew is None else _skew_data(skew),
    }


def _skew_data(skew: VertexSkew) -> dict[str, Any]:
    measured = ("imbalance", "hot_subtasks", "idle_subtasks", "seconds")
    names = ("subtask", "records", "bytes", "share", "times_mean", "records_per_second")
    subtasks = [{name: getattr(row, name) for name in names} for row in skew.subtasks]
    data = {name: getattr(skew, name) for name in measured} | skew_data(skew)
    return data | {"subtasks": subtasks}
