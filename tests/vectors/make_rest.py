"""Make the answers of Flink's REST API again: `python tests/vectors/make_rest.py`.

Needs a JDK and the package apache-flink-libraries. The job is that of `RestJob.java`;
each line of `rest.jsonl` is an answer: its path, its status and its body as Flink wrote it, in the
order in which they were asked for, but that the folder of its savepoints is called /savepoints.
Ids and times differ from one time to the next.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

sys.path.append(str(Path(__file__).parents[1]))

from support.flink.flink_oracle import flink_jar
from support.flink.flink_sql import FlinkSql, RestJob, jdk_folder

TASK: dict[str, Any] = {
    "parallelism": 4,
    "max_parallelism": 128,
    "keys": [f"user-{number % 50}" for number in range(400)] + ["hot"] * 600,
}
UNKNOWN = "0" * 32


def answer(job: RestJob, path: str) -> dict[str, Any]:
    try:
        with urlopen(job.url + path, timeout=10) as response:
            status, body = response.status, response.read()
    except HTTPError as error:
        with error:
            status, body = error.code, error.read()
    return {"path": path, "status": status, "body": body.decode()}


def lines(job: RestJob, folder: str) -> Iterator[dict[str, Any]]:
    """Yield the answers: before the first counts are known, then with them, then in the end."""
    yield answer(job, "/config")
    root = f"/jobs/{job.job_id}"
    while json.loads(answer(job, root)["body"])["state"] != "RUNNING":
        time.sleep(0.1)
    time.sleep(4)  # for which an answer about the job is kept, here with all tasks running
    yield answer(job, "/jobs/overview")
    details = answer(job, root)
    yield details
    vertices = [f"{root}/vertices/{one['id']}" for one in json.loads(details["body"])["vertices"]]
    for wait in (0, 2):
        time.sleep(wait)
        for path in vertices:
            yield answer(job, path)
    yield answer(job, f"/jobs/{UNKNOWN}")
    yield answer(job, f"{root}/vertices/{UNKNOWN}")
    job.tell("checkpoint")  # it is in the JobManager's memory
    job.tell(f"savepoint {folder}")
    time.sleep(4)
    yield answer(job, f"{root}/checkpoints")
    job.tell("cancel")
    yield answer(job, "/jobs/overview")


if __name__ == "__main__":
    jar, jdk = flink_jar(), jdk_folder()
    assert jar is not None, "apache-flink-libraries is not installed"
    assert jdk is not None, "no JDK"
    with (
        TemporaryDirectory() as temporary,
        FlinkSql(jdk, jar.parent, Path(temporary)).rest_job(TASK) as running,
    ):
        answers = list(lines(running, temporary))
    flink = json.loads(answers[0]["body"])["flink-version"]
    with Path(__file__).with_name("rest.jsonl").open("w", encoding="utf-8") as file:
        for line in [{"flink": flink, **TASK}, *answers]:
            file.write(f"{json.dumps(line).replace(temporary, '/savepoints')}\n")
