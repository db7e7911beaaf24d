"""The example examples/bootstrap_job.py, run for real and checked against plain Python."""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from keygroups.savepoint import read_savepoint

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.example

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

sys.path.insert(0, str(EXAMPLES))
bootstrap_job = importlib.import_module("bootstrap_job")
sys.path.pop(0)


@pytest.mark.parametrize(("groups", "parallelism"), [(128, 4), (720, 1)])
@pytest.mark.slow
def test_the_state_is_what_was_counted(
    spark: SparkSession,
    flights_by: Callable[[str | list[str]], Counter[Any]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    groups: int,
    parallelism: int,
) -> None:
    output = tmp_path / "savepoint"
    numbers = ["--max-parallelism", str(groups), "--parallelism", str(parallelism)]
    bootstrap_job.main(["--output", str(output), *numbers])
    flights = flights_by("carrier")
    of_tailnum = flights_by(["carrier", "tailnum"])
    for carrier in flights:
        of_tailnum.pop((carrier, None), None)
    operator = read_savepoint(output).operator("flights-by-carrier")
    entries = list(operator.entries())
    assert (operator.max_parallelism, operator.parallelism) == (groups, parallelism)
    assert {entry.key: entry.value for entry in entries if entry.state == "flights"} == flights
    found = {
        (entry.key, entry.user_key): entry.value
        for entry in entries
        if entry.state == "by-tailnum"
    }
    assert found == of_tailnum
    assert len(entries) == len(flights) + len(of_tailnum)
    text = capsys.readouterr().out
    assert f"by-tailnum: {len(of_tailnum):,} entries" in text
    assert f"UA: {flights['UA']:,} flights" in text
    assert f"env.setMaxParallelism({groups});" in text
    assert f"flink run -s {output}`" in text


@pytest.mark.slow
def test_without_arguments(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    bootstrap_job.main([])
    text = capsys.readouterr().out
    assert "flights-by-carrier, flights: 16 entries" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--parallelism", "129"], "--parallelism: "),
        (["--max-parallelism", "0"], "--max-parallelism: "),
        pytest.param(["--output", str(EXAMPLES)], "it is there", marks=pytest.mark.slow),
    ],
)
def test_what_the_user_can_put_right(
    spark: SparkSession,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    with pytest.raises(SystemExit) as exit_:
        bootstrap_job.main(arguments)
    assert exit_.value.code == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert message in error
