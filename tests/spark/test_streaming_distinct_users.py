"""The example examples/streaming_distinct_users.py, killed at random points for real."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

import keygroups

pytest.importorskip("pandas")
pytest.importorskip("google.protobuf")
pytest.importorskip("pyspark", minversion="4.1")

pytestmark = [pytest.mark.example, pytest.mark.extras]

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "streaming_distinct_users.py"
KILLS = 10
DEADLINE = 600  # seconds for what takes a minute


def make_views(directory: Path, numbers: range) -> tuple[Counter[str], dict[str, set[int]]]:
    """Put a file of views there for each number; return each app's views and users."""
    directory.mkdir(exist_ok=True)
    views, users = Counter[str](), defaultdict[str, set[int]](set)
    for number in numbers:
        chance = random.Random(number)
        names = ["maps", "K\u00f6ln", "", "a/b c", *(f"app-{i}" for i in range(30))]
        lines = []
        for _ in range(200):
            app, user = chance.choice(names[: chance.randint(1, len(names))]), chance.randrange(60)
            views[app] += 1
            users[app].add(user)
            lines.append(json.dumps({"app": app, "user": user}) + "\n")
        hidden = directory / f".{number}"
        hidden.write_text("".join(lines))
        hidden.rename(directory / f"{number}.json")
    return views, users


def replay(output: Path) -> dict[str, tuple[int, int]]:
    """Apply the changes of all batches; each -U has to take back what is there."""
    pq = pytest.importorskip("pyarrow.parquet")
    table: dict[str, tuple[int, int]] = {}
    seen: set[str] = set()
    batches = sorted(output.glob("changes/batch=*"), key=lambda path: int(path.name[6:]))
    for batch in batches:
        for file in batch.glob("*.parquet"):
            for row in pq.ParquetFile(file).read().to_pylist():
                counts = (row["views"], row["users"])
                if row["kind"] == "-U":
                    assert table.pop(row["app"]) == counts
                else:
                    assert row["app"] not in table
                    assert (row["kind"] == "+I") == (row["app"] not in seen)
                    table[row["app"]] = counts
                    seen.add(row["app"])
    return table


def command(source: Path, output: Path) -> dict[str, Any]:
    options = ["--input", source, "--output", output, "--files-per-batch", 1]
    return {
        "args": [sys.executable, str(SCRIPT), *map(str, options)],
        # The JVMs live for seconds, in which the better compiler does not pay.
        "env": {**os.environ, "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"},
        "text": True,
    }


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no process groups and no SIGKILL")
def test_killed_at_random_points(tmp_path: Path) -> None:
    source, output = tmp_path / "in", tmp_path / "out"
    views, users = make_views(source, range(40))
    chance = random.Random(17)
    committed = []
    for _ in range(KILLS):
        with subprocess.Popen(
            **command(source, output),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a process group: Python, the JVM and its workers
        ) as run:
            try:
                # From the query's first step on, or the kills would mostly hit Spark's start.
                deadline = time.monotonic() + DEADLINE
                before = offsets(output)
                while offsets(output) == before and run.poll() is None:
                    assert time.monotonic() < deadline
                    time.sleep(0.05)
                time.sleep(chance.uniform(0, 8))
            finally:
                os.killpg(run.pid, signal.SIGKILL)
        committed.append(len(list((output / "_checkpoint" / "commits").glob("[0-9]*"))))
    print(f"batches committed at each kill: {committed}")
    assert committed[-1] < 40
    last = subprocess.run(**command(source, output), capture_output=True, timeout=DEADLINE)
    assert last.returncode == 0, last.stderr
    table = replay(output)
    assert table == {app: (views[app], len(users[app])) for app in views}
    assert f"{len(table)} apps, {views.total():,} views" in last.stdout.splitlines()


def offsets(output: Path) -> int:
    return len(list((output / "_checkpoint" / "offsets").glob("[0-9]*")))


def test_without_arguments() -> None:
    arguments = command(Path(), Path())
    arguments["args"] = arguments["args"][:2]
    done = subprocess.run(**arguments, capture_output=True, timeout=DEADLINE)
    assert done.returncode == 0, done.stderr
    header, *lines, last = done.stdout.splitlines()
    assert header.split() == ["app", "subtask", "views", "users"]
    assert last == "10 apps, 4,000 views"
    for line in lines:
        app, subtask, _, _ = line.split()
        assert int(subtask) == keygroups.assign_key_to_parallel_operator(app.strip("'"), 128, 4)


def test_bad_arguments(tmp_path: Path) -> None:
    for options, says in (
        (["--input", tmp_path], "give both, or neither"),
        (["--input", tmp_path / "none", "--output", tmp_path], "no such directory"),
        (["--parallelism", 129], "--parallelism: parallelism must be"),
        (["--files-per-batch", 0], "must be at least 1, got 0"),
    ):
        arguments = command(tmp_path, tmp_path)
        arguments["args"] = [*arguments["args"][:2], *map(str, options)]
        done = subprocess.run(**arguments, capture_output=True, timeout=DEADLINE)
        assert done.returncode == 2
        assert says in done.stderr
