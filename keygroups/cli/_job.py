"""The command that asks a running job."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from keygroups.cli._parser import AddCommand, to_seconds
from keygroups.cli._streams import json_line
from keygroups.errors import JobError

if TYPE_CHECKING:
    from keygroups.job import Vertex, VertexSkew


def add_commands(command: AddCommand) -> None:
    """Add the command."""
    add = command(_job)
    add("url", metavar="URL", help="http or https")
    add("job_id", metavar="JOB_ID", nargs="?", help="without, the only job that runs")
    add("--vertex", metavar="NAME", help="only this vertex: its name, part of it, or id")
    seconds = "seconds for each request, and three times as many for all (default: 10)"
    add("--timeout", type=to_seconds, default=10.0, metavar="N", help=seconds)


def _job(options: argparse.Namespace) -> Iterator[str]:
    """Print what the subtasks of a running job have read, and which are hot.

    URL is that of Flink's REST API, such as http://localhost:8081, or of a page of its web UI.
    Without --vertex all vertices are looked at whose input is keyed.

    JSON: url, job_id, name, state, vertices (each with vertex_id, name, status, parallelism,
    max_parallelism, is_keyed, subtasks with subtask, status, read_records and read_bytes, and
    skew, null for those not looked at, else imbalance, hot_subtasks, idle_subtasks, diagnosis and
    remedy). What Flink does not know yet is null.
    """
    from keygroups.job import read_job

    job = read_job(options.url, options.job_id, options.timeout)
    named = options.vertex is not None
    keyed = [vertex for vertex in job.vertices if vertex.is_keyed]
    skews, unknown = {}, []
    for vertex in [job.vertex(options.vertex)] if named else keyed:
        try:
            skews[vertex.vertex_id] = job.skew(vertex)
        except JobError as error:
            if named:
                raise
            unknown.append(str(error))
    if options.json:
        vertices = [_vertex_data(vertex, skews.get(vertex.vertex_id)) for vertex in job.vertices]
        names = ("url", "job_id", "name", "state")
        yield json_line({name: getattr(job, name) for name in names} | {"vertices": vertices})
        return
    yield "\n\n".join([str(job), *map(str, skews.values()), *unknown])


def _vertex_data(vertex: Vertex, skew: VertexSkew | None) -> dict[str, Any]:
    """Return what the subtasks of a vertex have read."""
    names = ("vertex_id", "name", "status", "parallelism", "max_parallelism", "is_keyed")
    of_skew = ("imbalance", "hot_subtasks", "idle_subtasks", "diagnosis", "remedy")
    return {name: getattr(vertex, name) for name in names} | {
        "subtasks": [subtask._asdict() for subtask in vertex.subtasks],
        "skew": None if skew is None else {name: getattr(skew, name) for name in of_skew},
    }
