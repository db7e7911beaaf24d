"""The tasks of a new user, each solved with what README.md, the guide, help() and --help say.

    .venv/bin/python tests/tools/tasks.py
    .venv/bin/python tests/tools/tasks.py 7 9 -v

In a fresh clone, with the environment that README.md makes for the tests and Java for Spark. The
tasks, all or those of these numbers, run one after the other in this folder: lines that begin with
"$ " in a shell, all else as a program of Python. What they print is compared with what Flink's own
classes read in the same savepoints, or with plain Python. A table has the lines of code of each
task, the seconds it took, and the outcome: solved; half, where the answer is true and not as a
user wants it; failed; or left out, with what this machine does not have. `-v` shows the code and
what it printed.

The exit status is 1 if a task failed, or more than two are half solved.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.append(str(Path(__file__).parents[1]))

from support.golden import read
from user_tasks import on_call, on_spark, with_tools
from user_tasks.asking import PLACES, POINTS, SAVEPOINT, solve, work
from user_tasks.truth import seen_in_sql

TASKS = [*on_spark.TASKS, *on_call.TASKS, *with_tools.TASKS]
_MOST_HALF = 2
ANSWERS = {line["path"]: line["body"] for line in read("rest")[1]}


class Cluster(BaseHTTPRequestHandler):
    """A REST API with a job of Flink 2.3.0, its recorded answers, for those who have the token."""

    def do_GET(self) -> None:
        status, body = 401, "Unauthorized"
        if self.headers["Authorization"] == f"Bearer {on_call.TOKEN}":
            status, body = 200, ANSWERS[self.path]
            body = re.sub(r"file:/[^\"]*/savepoint-[^\"]*", f"file:{SAVEPOINT.path}", body)
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def cluster() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Cluster) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def prepare(folder: str, url: str) -> None:
    """Put what the steps name in its place."""
    PLACES.update(WORK=folder, URL=url, SAVEPOINT="examples/data/savepoint")
    PLACES.update((name, str(point.path)) for name, point in POINTS.items())
    (work() / "seen.json").write_text(json.dumps(seen_in_sql()))
    (work() / "one-key.txt").write_text("user-89019\n")
    PLACES["KEYS"] = str(work() / "one-key.txt")
    PLACES["MOVED_FROM"] = on_call.copy_checkpoint()
    PLACES["BARE"] = with_tools.bare_command()
    PLACES["OLDEST_PYTHON"] = on_spark.oldest_python()
    PLACES["OWN_SUBTASK"] = str(with_tools.own_subtask())
    with_tools.windows_checkpoint()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("numbers", nargs="*", type=int, metavar="N", help="the tasks (all)")
    parser.add_argument("-v", action="store_true", help="show code and output")
    options = parser.parse_args()
    outcomes: Counter[str] = Counter()
    with TemporaryDirectory(prefix="keygroups-tasks-") as folder, cluster() as url:
        prepare(folder, url)
        width = max(len(task.question) for task in TASKS)
        print(f"task  {'question':{width}}  lines  seconds  outcome")
        for number, task in enumerate(TASKS, 1):
            if options.numbers and number not in options.numbers:
                continue
            start = time.perf_counter()
            outcome = solve(task, options.v)
            seconds = time.perf_counter() - start
            lines = sum(len(step.lines) for step in task.steps)
            row = f"{number:4}  {task.question:{width}}  {lines:5}  {seconds:7.1f}  {outcome}"
            print(row, flush=True)
            outcomes[outcome.partition(":")[0]] += 1
    print(", ".join(f"{count} {outcome}" for outcome, count in outcomes.items()))
    return int(outcomes["failed"] > 0 or outcomes["half"] > _MOST_HALF)


if __name__ == "__main__":
    sys.exit(main())
