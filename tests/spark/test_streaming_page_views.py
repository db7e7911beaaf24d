"""The example examples/streaming_page_views.py, killed half-way for real."""

from __future__ import annotations

import importlib
import json
import os
import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.spark.killed_jobs import Job, random_points

import keygroups

pytest.importorskip("pyspark")

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.example

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "streaming_page_views.py"
DAY = 24 * 60 * 60
VIEWS_PER_FILE = 200

sys.path.insert(0, str(SCRIPT.parent))
streaming_page_views = importlib.import_module("streaming_page_views")
sys.path.pop(0)


def make_views(directory: Path, numbers: range, age: float = 0) -> Counter[str]:
    """Put a file of views there for each number, a few apps having most; return the true totals.

    `age` in seconds, for moving a file keeps the time of its last change.
    """
    directory.mkdir(exist_ok=True)
    totals: Counter[str] = Counter()
    for number in numbers:
        chance = random.Random(number)
        names = ["maps", "Köln", "", "a/b c", *(f"app-{i}" for i in range(30))]
        apps = chance.choices(names, [1 / (i + 1) for i in range(len(names))], k=VIEWS_PER_FILE)
        hidden = directory / f".{number}"
        hidden.write_text("".join(json.dumps({"app": app}) + "\n" for app in apps))
        os.utime(hidden, (time.time() - age,) * 2)
        hidden.rename(directory / f"{number}.json")
        totals.update(apps)
    return totals


def committed(output: Path) -> list[int]:
    """The micro-batches that the checkpoint knows to be done."""
    names = [path.name for path in (output / "_checkpoint" / "commits").glob("*")]
    return sorted(int(name) for name in names if name.isdigit())


def check_counts(spark: SparkSession, output: Path, totals: Counter[str]) -> Counter[int]:
    """Compare the counts, and return how many views each batch has."""
    rows = spark.read.parquet(str(output)).collect()
    found: Counter[str] = Counter()
    per_batch: Counter[int] = Counter()
    for row in rows:
        found[row.app] += row.views
        per_batch[row.batch] += row.views
        assert row.subtask == keygroups.assign_key_to_parallel_operator(row.app, 128, 4)
    assert found == totals
    assert len({(row.batch, row.app) for row in rows}) == len(rows)
    return per_batch


@pytest.fixture
def run(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[str, str]]:
    """Runs the command in the session of the tests; returns what it prints, on both sides."""

    def run(*arguments: object) -> tuple[str, str]:
        capsys.readouterr()
        streaming_page_views.main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return out, err

    return run


@pytest.fixture
def refusal(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs the command where it has to fail and returns its message."""

    def run(*arguments: object) -> str:
        with pytest.raises(SystemExit) as exit_info:
            streaming_page_views.main([str(argument) for argument in arguments])
        assert exit_info.value.code == 2
        out, err = capsys.readouterr()
        assert not out
        *progress, message = err.splitlines()
        assert all(line.endswith(" ...") for line in progress)
        return message

    return run


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no process groups and no SIGKILL")
def test_killed_twenty_times_while_old_files_come(spark: SparkSession, tmp_path: Path) -> None:
    source, output = tmp_path / "in", tmp_path / "out"
    command = [sys.executable, str(SCRIPT), "--input", str(source), "--output", str(output)]
    job = Job(
        [*command, "--files-per-batch", "1"],
        output,
        "counting batch ",
        {
            "planned": "_checkpoint/offsets/{}",
            "being written": "batch={}/_temporary",
            "written": "batch={}/_SUCCESS",
            "noted down": "batch={}/_counted",
            "being committed": "_checkpoint/commits/.{}.*",
            "committed": "_checkpoint/commits/{}",
        },
        lambda: len(committed(output)),
    )
    totals = make_views(source, range(2))
    job.run()
    files = 2
    for number, point in enumerate(random_points(list(job.steps), 20, seed=0)):
        more = range(files, job.done() + 6)
        totals += make_views(source, more, (0, 10, 400)[number % 3] * DAY)
        files += len(more)
        job.check_killed(point)
    out = job.run()
    assert f"{len(totals)} apps, {totals.total():,} views" in out.splitlines()
    views = check_counts(spark, output, totals)
    assert committed(output) == sorted(views) == list(range(len(views)))
    # Each file whole and in a batch of its own, unless a kill came as in the test of a plan below.
    assert all(count % VIEWS_PER_FILE == 0 for count in views.values())
    assert files - len(views) <= 1


@pytest.mark.slow
def test_batch_whose_end_was_not_noted_down(
    spark: SparkSession, tmp_path: Path, run: Callable[..., tuple[str, str]]
) -> None:
    """A crash between the last write of a batch and its commit, which a kill rarely hits."""
    source, output = tmp_path / "in", tmp_path / "out"
    options = ["--input", source, "--output", output, "--files-per-batch", 1]
    totals = make_views(source, range(3))
    run(*options)
    assert check_counts(spark, output, totals) == dict.fromkeys(range(3), VIEWS_PER_FILE)
    for path in (output / "_checkpoint" / "commits").glob("*2*"):  # its checksum too
        path.unlink()
    assert committed(output) == [0, 1]
    _, err = run(*options)
    assert err.splitlines() == ["counting batch 2 ..."]
    assert check_counts(spark, output, totals) == dict.fromkeys(range(3), VIEWS_PER_FILE)
    totals += make_views(source, range(3, 5))
    _, err = run(*options)
    assert err.splitlines() == ["counting batch 3 ...", "counting batch 4 ..."]
    assert check_counts(spark, output, totals) == dict.fromkeys(range(5), VIEWS_PER_FILE)


@pytest.mark.slow
def test_batch_whose_plan_was_not_noted_down(
    spark: SparkSession, tmp_path: Path, run: Callable[..., tuple[str, str]]
) -> None:
    """A crash between Spark's notes of a file and of its batch, which takes the next file too."""
    source, output = tmp_path / "in", tmp_path / "out"
    options = ["--input", source, "--output", output, "--files-per-batch", 1]
    totals = make_views(source, range(3))
    run(*options)
    for name in ("offsets", "commits"):
        for path in (output / "_checkpoint" / name).glob("*2*"):
            path.unlink()
    shutil.rmtree(output / "batch=2")
    totals += make_views(source, range(3, 4))
    _, err = run(*options)
    assert err.splitlines() == ["counting batch 2 ..."]
    views = dict.fromkeys(range(2), VIEWS_PER_FILE) | {2: 2 * VIEWS_PER_FILE}
    assert check_counts(spark, output, totals) == views


def seconds(days: float) -> float:
    return time.time() + days * DAY


@pytest.mark.slow
@pytest.mark.parametrize(
    "first",
    [pytest.param(0.0, marks=pytest.mark.slow), 500.0],
    ids=["now", "in the future"],
)
def test_age_of_a_file_does_not_matter(
    spark: SparkSession, tmp_path: Path, run: Callable[..., tuple[str, str]], first: float
) -> None:
    """Spark's file source skips what is more than seven days older than the newest file."""
    source, output = tmp_path / "in", tmp_path / "out"
    totals = make_views(source, range(1), -first * DAY)
    run("--input", source, "--output", output)
    for number, modified in enumerate((0, -DAY, seconds(-8), seconds(-4000), seconds(900)), 1):
        totals += make_views(source, range(number, number + 1), time.time() - modified)
    run("--input", source, "--output", output)
    check_counts(spark, output, totals)
    # The checkpoint puts its lists of files together every ten batches.
    options = ["--input", source, "--output", output, "--files-per-batch", 1]
    totals += make_views(source, range(6, 18), 10 * DAY)
    run(*options)
    totals += make_views(source, range(18, 19), 20 * DAY)
    run(*options)
    check_counts(spark, output, totals)


@pytest.mark.slow
def test_files_that_spark_leaves_out(
    tmp_path: Path, run: Callable[..., tuple[str, str]], refusal: Callable[..., str]
) -> None:
    source, other, output = tmp_path / "in", tmp_path / "other", tmp_path / "out"
    options = ["--input", source, "--output", output]
    make_views(source, range(2))
    run(*options)
    make_views(other, range(7, 8))
    (other / "7.json").replace(source / "1.json")
    assert f"has changed since it was counted: {source / '1.json'}" in refusal(*options)
    (source / "1.json").rename(source / "2.json")
    out, _ = run(*options)
    assert f", {3 * VIEWS_PER_FILE} views" in out
    for name in ("_3.json", "day=1/3.json", "sub/3.json"):
        path = source / name
        path.parent.mkdir(exist_ok=True)
        path.write_text('{"app": "a"}\n')
        assert f"not a file that is counted: {path}" in refusal(*options)
        path.unlink()
    for name in ("4[1].json", "4*.json"):  # Spark would read each several times
        (source / name).write_text('{"app": "a"}\n')
        assert f"takes the name for a pattern: {source / name}" in refusal(*options)
        (source / name).unlink()
    (source / ".4.json").write_text("")  # hidden from *.json by its dot
    run(*options)
    assert f"the output has the counts of {source}" in refusal("--input", other, *options[2:])


@pytest.mark.slow
def test_file_of_a_broken_batch_that_is_gone(
    spark: SparkSession,
    tmp_path: Path,
    run: Callable[..., tuple[str, str]],
    refusal: Callable[..., str],
) -> None:
    source, output = tmp_path / "in", tmp_path / "out"
    options = ["--input", source, "--output", output]
    totals = make_views(source, range(2))
    run(*options)
    for path in (output / "_checkpoint" / "commits").glob("*0*"):
        path.unlink()
    (source / "1.json").rename(tmp_path / "1.json")
    assert f"'{source / '1.json'}'" in refusal(*options)
    (tmp_path / "1.json").rename(source / "1.json")
    run(*options)
    check_counts(spark, output, totals)


@pytest.mark.slow
def test_without_arguments(run: Callable[..., tuple[str, str]]) -> None:
    out, _ = run()
    header, *lines, last = out.splitlines()
    assert header.split() == ["app", "subtask", "views"]
    rows = [line.split() for line in lines]
    views = {"search": 4000} | {f"app-{i}": 444 + (i < 4) for i in range(9)}
    assert {app.strip("'"): int(n.replace(",", "")) for app, _, n in rows} == views
    for app, subtask, _ in rows:
        key = app.strip("'")
        assert int(subtask) == keygroups.assign_key_to_parallel_operator(key, 128, 4)
    assert last == "10 apps, 8,000 views"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"app": "a"}\n{"app": \n', "--input: batch 0 fails: "),
        ('{"app": "a"}\n{"ap": "b"}\n', "key must not be null, which Flink refuses"),
        ('{"app": "a"}\n{"app": "b"}{"app": "c"}\n', "no JSON object in line 2: Extra data"),
        ('{"app": "a"}\n\n[{"app": "b"}]\n', "no JSON object in line 3"),
        ('{"app": "\udce9"}\n', "'utf-8' codec can't decode byte 0xe9"),
    ],
)
@pytest.mark.slow
def test_bad_views(refusal: Callable[..., str], tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "bad.json").write_bytes(text.encode(errors="surrogateescape"))
    assert says in refusal("--input", tmp_path, "--output", tmp_path / "out")


def test_bad_arguments(refusal: Callable[..., str], tmp_path: Path) -> None:
    source, used = tmp_path / "in", tmp_path / "taken"
    source.mkdir()
    used.mkdir()
    both = ["--input", source, "--output", tmp_path / "out"]
    assert "give both, or neither" in refusal("--input", source)
    assert "no such directory" in refusal("--input", tmp_path / "none", "--output", used)
    assert "exists already, without" in refusal("--input", source, "--output", used)
    assert "--parallelism: parallelism must be" in refusal(*both, "--parallelism", 129)
    assert "--max-parallelism: max_parallelism" in refusal(*both, "--max-parallelism", 0)
    assert "must be at least 1, got 0" in refusal(*both, "--files-per-batch", 0)
    assert "no page views" in refusal(*both)
