"""The example examples/route_events.py, run for real and checked against plain Python."""

from __future__ import annotations

import bz2
import csv
import gzip
import importlib
import io
import os
import random
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from keygroups import (
    SubtaskKeySelector,
    assign_key_to_parallel_operator,
    assign_to_key_group,
    compute_operator_index_for_key_group,
)
from keygroups.types import LONG, STRING, TUPLE, KeyType

pytest.importorskip("pyspark")

from pyspark.sql import functions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.example

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "route_events.py"
FLIGHTS = SCRIPT.parent / "data" / "nycflights13.parquet"

sys.path.insert(0, str(SCRIPT.parent))
route_events = importlib.import_module("route_events")
event_files = importlib.import_module("event_files")
sys.path.pop(0)

Keys = Counter[object]
Report = Callable[..., str]


@pytest.fixture(scope="module")
def flights(flights_by: Callable[[str | list[str]], Counter[Any]]) -> dict[str, Keys]:
    """The records of each key, for every key that the tests use."""
    return {
        "carrier": flights_by("carrier"),
        "tailnum": flights_by("tailnum"),
        "origin,dest": flights_by(["origin", "dest"]),
    }


@pytest.fixture
def report(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> Report:
    """Runs the command in the session of the tests and returns what it prints."""

    def run(*arguments: object) -> str:
        capsys.readouterr()
        route_events.main([str(argument) for argument in arguments])
        out, _ = capsys.readouterr()
        assert max(map(len, out.splitlines())) <= 80
        return out

    return run


@pytest.fixture
def refusal(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> Report:
    """Runs the command where it has to fail and returns its message."""

    def run(*arguments: object) -> str:
        capsys.readouterr()
        with pytest.raises(SystemExit) as exit_info:
            route_events.main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert exit_info.value.code == 2
        assert not out
        *progress, message = err.splitlines()
        assert all(line.endswith(" ...") for line in progress)
        assert message.startswith("route_events: ")
        return message.removeprefix("route_events: ")

    return run


def run_script(
    *arguments: str, cwd: Path, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=300,
    )


def number(text: str) -> int:
    return int(text.replace(",", ""))


def header(out: str) -> dict[str, str]:
    """What was read, and what the report says before its tables."""
    read, text, _ = out.split("\n\n", 2)
    found = re.fullmatch(
        r"(?P<verdict>.+): the heaviest of (?P<parallelism>\d+) subtasks "
        r"has (?P<imbalance>[\d.]+) times the mean remedy: (?P<remedy>.+?) "
        r"(?P<routed>[\d,]+) records, (?P<distinct>[\d,]+) distinct keys "
        r"of type (?P<type>.+), max parallelism (?P<max>[\d,]+)(?: (?P<left_out>[\d,]+) records "
        r"with a null key are left out: Flink would fail on them)?"
        r"(?: note: the TUPLE is inferred, .+)?",
        " ".join(text.split()),
    )
    assert found
    lines = (re.split(r"\s{2,}", line, maxsplit=1) for line in read.splitlines())
    return dict(lines) | found.groupdict()


def numbers_under(out: str, heading: str) -> Iterator[list[str]]:
    """The rows below a line that starts so, as long as they look like rows of numbers."""
    lines = iter(out.splitlines())
    while not next(lines).startswith(heading):
        pass
    for line in lines:
        cells = line.split()
        if not cells or not re.fullmatch(r"[\d,.%-]+", "".join(cells)):
            return
        yield cells


def expected_subtasks(
    keys: Keys, max_parallelism: int, parallelism: int, key_type: KeyType
) -> dict[int, tuple[int, int]]:
    """Records and distinct keys of each subtask, key by key."""
    records, distinct = [0] * parallelism, [0] * parallelism
    for key, count in keys.items():
        if key is not None:
            subtask = assign_key_to_parallel_operator(key, max_parallelism, parallelism, key_type)
            records[subtask] += count
            distinct[subtask] += 1
    return dict(enumerate(zip(records, distinct)))


def expected_imbalance(
    keys: Keys, max_parallelism: int, parallelism: int, key_type: KeyType
) -> float:
    expected = expected_subtasks(keys, max_parallelism, parallelism, key_type)
    loads = [records for records, _ in expected.values()]
    return max(loads) * parallelism / sum(loads)


def expected_key_groups(keys: Keys, max_parallelism: int, key_type: KeyType) -> list[int]:
    records = [0] * max_parallelism
    for key, count in keys.items():
        if key is not None:
            records[assign_to_key_group(key, max_parallelism, key_type)] += count
    return records


def check_subtasks(
    out: str, keys: Keys, max_parallelism: int, parallelism: int, key_type: KeyType
) -> None:
    expected = expected_subtasks(keys, max_parallelism, parallelism, key_type)
    total = sum(records for records, _ in expected.values())
    rows = list(numbers_under(out, "subtask  "))
    assert len(rows) == min(parallelism, 20)
    for subtask, records, share, times_mean, groups, distinct in rows:
        wanted = expected.pop(int(subtask))
        assert (number(records), number(distinct)) == wanted
        assert share == f"{wanted[0] / total:.1%}"
        assert times_mean == f"{wanted[0] * parallelism / total:.2f}"
        own = [
            group
            for group in range(max_parallelism)
            if compute_operator_index_for_key_group(max_parallelism, parallelism, group)
            == int(subtask)
        ]
        assert groups == f"{own[0]}-{own[-1]}"
    if expected:
        left_out = [records for records, _ in expected.values()]
        assert f"\nThe 20 heaviest subtasks of {parallelism}\n" in out
        assert f"\nThe others have {min(left_out):,} to {max(left_out):,} records each\n" in out
        assert min(number(row[1]) for row in rows) >= max(left_out)


def check_moves(
    out: str, keys: Keys, max_parallelism: int, old: int, new: int, key_type: KeyType
) -> None:
    weights = expected_key_groups(keys, max_parallelism, key_type)
    pair_of = [
        (
            compute_operator_index_for_key_group(max_parallelism, old, group),
            compute_operator_index_for_key_group(max_parallelism, new, group),
        )
        for group in range(max_parallelism)
    ]
    moved = [group for group, (before, after) in enumerate(pair_of) if before != after]
    groups, total = len(moved), sum(weights)
    records = sum(weights[group] for group in moved)
    assert (
        f"{max_parallelism} key groups, parallelism {old} -> {new}: "
        f"{groups} move ({groups / max_parallelism:.1%}), {max_parallelism - groups} stay\n"
        f"weight: {records:,} of {total:,} moves ({records / total:.1%})\n" in out
    )
    shown = 0
    for line in re.finditer(
        r"^ *(\d+) +(\d+) +\[(\d+), (\d+)\] +(\d+) +([\d,]+)(  moves)?$", out, re.M
    ):
        after, before, first, last, count = map(int, line.groups()[:5])
        assert count == last - first + 1
        pairs = {pair_of[group] for group in range(first, last + 1)}
        assert pairs == {(before, after)}
        assert number(line[6]) == sum(weights[first : last + 1])
        assert bool(line[7]) == (before != after)
        shown += count
    assert (shown < max_parallelism) == (" more in between ..." in out)
    assert shown


def heaviest_subtask(weights: list[int], parallelism: int) -> tuple[int, int]:
    """The records of the heaviest subtask and its index, group by group."""
    loads = [0] * parallelism
    for group, weight in enumerate(weights):
        if weight:
            index = compute_operator_index_for_key_group(len(weights), parallelism, group)
            loads[index] += weight
    return max(loads), loads.index(max(loads))


def check_recommendation(
    out: str, keys: Keys, max_parallelism: int, old: int, new: int, key_type: KeyType
) -> None:
    weights = expected_key_groups(keys, max_parallelism, key_type)
    total = sum(weights)
    low, high = (new + 1) // 2, min(2 * new, max_parallelism)
    hot = {p: heaviest_subtask(weights, p) for p in {old, *range(low, high + 1)}}

    def imbalance(parallelism: int) -> float:
        return hot[parallelism][0] * parallelism / total

    assert f"\nimbalance: {imbalance(old):.2f} before, {imbalance(new):.2f} after\n" in out
    for when, parallelism in (("before", old), ("after", new)):
        records, subtask = hot[parallelism]
        assert (
            f"\nhot subtask {when}: {subtask} of {parallelism} has {records:,}, "
            f"{records / total:.1%} of the weight\n" in out
        )
    near = range(low, high + 1)
    worth = [p for p in near if all(hot[p][0] < hot[q][0] for q in range(low, p))]
    best = [p for p in reversed(worth) if hot[p][0] <= hot[new][0]][:3]
    title = f"\nrecommended, from {low} to {high} with no heavier subtask than at {new}:\n"
    shown = " ".join(out.partition(title)[2].split())
    found = re.findall(
        r"parallelism (\d+): the heaviest subtask has ([\d,]+), imbalance ([\d.]+) "
        r"\(.*?; subtask (\d+) has \3 times the mean\)",
        shown,
    )
    assert found == [
        (str(p), f"{hot[p][0]:,}", f"{imbalance(p):.2f}", str(hot[p][1])) for p in best
    ]


def test_data_has_the_known_counts(flights: dict[str, Keys]) -> None:
    assert sum(flights["tailnum"].values()) == 336_776
    assert flights["tailnum"][None] == 2_512
    assert len(flights["tailnum"]) == 4_044
    carriers = flights["carrier"].most_common(4)
    assert carriers == [("UA", 58_665), ("B6", 54_635), ("EV", 54_173), ("DL", 48_110)]
    assert FLIGHTS.stat().st_size < 2_000_000


@pytest.mark.slow
def test_runs_without_arguments_from_anywhere(flights: dict[str, Keys], tmp_path: Path) -> None:
    result = run_script(cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert max(map(len, result.stdout.splitlines())) <= 80
    text = header(result.stdout)
    assert text.pop("remedy") == "nothing to do"
    assert text == {
        "input": "nycflights13.parquet",
        "records": "336,776",
        "key": "tailnum",
        "null keys": "2,512",
        "left_out": "2,512",
        "verdict": "even",
        "parallelism": "4",
        "imbalance": f"{expected_imbalance(flights['tailnum'], 128, 4, STRING):.2f}",
        "routed": "334,264",
        "distinct": "4,043",
        "type": "STRING",
        "max": "128",
    }
    check_subtasks(result.stdout, flights["tailnum"], 128, 4, STRING)
    check_moves(result.stdout, flights["tailnum"], 128, 4, 5, STRING)
    check_recommendation(result.stdout, flights["tailnum"], 128, 4, 5, STRING)
    assert "counting the records of each key ..." in result.stderr
    assert "Traceback" not in result.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("key", "key_type", "max_parallelism", "parallelism", "rescale_to"),
    [
        pytest.param("tailnum", STRING, 4096, 200, 199, marks=pytest.mark.slow),
        pytest.param("tailnum", STRING, 128, 128, 1, marks=pytest.mark.slow),
        pytest.param("carrier", STRING, 128, 3, 4, marks=pytest.mark.slow),
        pytest.param("carrier", STRING, 32768, 64, 12, marks=pytest.mark.slow),
        pytest.param("origin,dest", TUPLE(STRING, STRING), 128, 5, 7, marks=pytest.mark.slow),
    ],
)
def test_report_agrees_with_plain_python(
    flights: dict[str, Keys],
    report: Report,
    key: str,
    key_type: KeyType,
    max_parallelism: int,
    parallelism: int,
    rescale_to: int,
) -> None:
    sizes = (max_parallelism, parallelism)
    arguments = ["--max-parallelism", sizes[0], "--parallelism", sizes[1]]
    out = report("--key", key, *arguments, "--rescale-to", rescale_to)
    keys = flights[key]
    assert header(out)["type"] == repr(key_type)
    check_subtasks(out, keys, *sizes, key_type)
    check_moves(out, keys, *sizes, rescale_to, key_type)
    check_recommendation(out, keys, *sizes, rescale_to, key_type)

    loads = expected_subtasks(keys, *sizes, key_type)
    total = sum(records for records, _ in loads.values())
    assert number(header(out)["routed"]) == total
    assert number(header(out)["distinct"]) == sum(distinct for _, distinct in loads.values())
    assert header(out)["imbalance"] == f"{expected_imbalance(keys, *sizes, key_type):.2f}"
    idle = sum(not records for records, _ in loads.values())
    assert (f"\n{idle} of {parallelism} subtasks get no record\n" in out) == (idle > 0)
    check_hot_keys(out, keys, *sizes, key_type)


def check_hot_keys(
    out: str, keys: Keys, max_parallelism: int, parallelism: int, key_type: KeyType
) -> None:
    """Hot is a subtask with 1.5 times the mean; three have a table of keys, the others a line."""
    own = defaultdict[int, Keys](Counter)
    for key, count in keys.items():
        if key is not None:
            subtask = assign_key_to_parallel_operator(key, max_parallelism, parallelism, key_type)
            own[subtask][key] = count
    total = sum(counts.total() for counts in own.values())
    hot = sorted(
        (-counts.total(), subtask)
        for subtask, counts in own.items()
        if 2 * counts.total() * parallelism >= 3 * total
    )
    sections = re.findall(
        r"^subtask (\d+): [^:]*?(?:\nremedy: [^|]*?)?\nrecords  of the subtask  key group  key\n"
        r"(.*?)(?=\n\n)",
        out,
        re.M | re.S,
    )
    assert [int(subtask) for subtask, _ in sections] == [subtask for _, subtask in hot[:3]]
    lines = re.findall(r"^ *(\d+) +([\d,]+) +[\d.]+%  [ .\d]+\d  (['(].*%)$", out, re.M)
    others = {int(subtask): (records, keys) for subtask, records, keys in lines}
    assert len(lines) == len(others)
    assert others.keys() == {subtask for _, subtask in hot[3:]}
    for subtask, (records, line) in others.items():
        counts = own[subtask]
        assert number(records) == counts.total()
        shown = re.findall(r"(['(].*?['\d)L]) ([\d.]+%)(?:, |$)", line)
        shares = [f"{count / counts.total():.1%}" for _, count in counts.most_common()]
        assert [share for _, share in shown] == shares[: len(shown)] != []
        assert all("..." in text or text in map(repr, counts) for text, _ in shown)
    for subtask, table in sections:
        counts = own[int(subtask)]
        cells = [line.split(maxsplit=3) for line in table.splitlines()]
        assert [number(line[0]) for line in cells] == sorted(counts.values(), reverse=True)[:5]
        by_text = {repr(key): key for key in counts}
        for records, share, group, text in cells:
            key = by_text[text]
            assert counts[key] == number(records)
            assert share == f"{counts[key] / counts.total():.1%}"
            assert int(group) == assign_to_key_group(key, max_parallelism, key_type)


@pytest.mark.slow
def test_looks_at_the_subtask_that_is_asked_for(flights: dict[str, Keys], report: Report) -> None:
    out = report("--key", "carrier", "--parallelism", 32, "--subtask", 17)
    own = {
        key: count
        for key, count in flights["carrier"].items()
        if assign_key_to_parallel_operator(key, 128, 32, STRING) == 17
    }
    records, total = sum(own.values()), flights["carrier"].total()
    verdict = "too few keys" if not own else "not hot"
    assert f"\nsubtask 17: {verdict}, with {records * 32 / total:.2f} times the mean\n" in out
    assert f"\n{records:,} records ({records / total:.1%}) in key groups 68 to 71\n" in out


@pytest.mark.parametrize("subtask", [-1, 4, 128])
def test_refuses_a_subtask_that_there_is_not(refusal: Report, subtask: int) -> None:
    says = refusal("--subtask", subtask)
    assert says == f"--subtask: subtask must be from 0 to 3, got {subtask}"


@pytest.mark.slow
def test_names_a_better_parallelism(flights: dict[str, Keys], report: Report) -> None:
    out = report("--key", "carrier", "--parallelism", 4)
    weights = expected_key_groups(flights["carrier"], 128, STRING)
    records, subtask = heaviest_subtask(weights, 4)
    assert f"\nhot subtask before: {subtask} of 4 has {records:,}, " in out
    assert re.search(rf"^ +{subtask} +{records:,} ", out, re.M)
    found = re.search(r"^recommended, .*:\n  parallelism (\d+): ", out, re.M)
    assert found
    better = int(found[1])
    better_records, _ = heaviest_subtask(weights, better)
    assert better_records < records


@pytest.mark.slow
def test_rescales_by_one_subtask_unless_told(report: Report) -> None:
    assert "\n128 key groups, parallelism 6 -> 7: " in report("--parallelism", 6)
    out = report("--parallelism", 2, "--max-parallelism", 2)
    assert "\n2 key groups, parallelism 2 -> 2: 0 move (0.0%), 2 stay\n" in out


@pytest.mark.slow
def test_csv_is_read_as_flink_reads_it(report: Report, tmp_path: Path) -> None:
    """All columns are text, and an empty field is an empty string and not a null."""
    long_key = "x" * 100
    path = tmp_path / "some events.csv"
    path.write_text(
        'user.id,n\n7,1\n07,2\n,3\n"",4\n a ,5\n"say ""hi""",6\nback\\slash,7\n"new, key",8\n'
        f"\N{GRINNING FACE},9\n{long_key},10\n7,11\n",
        encoding="utf-8",
    )
    texts = ["7", "07", "", "", " a ", 'say "hi"', "back\\slash", "new, key", "\U0001f600"]
    keys: Keys = Counter([*texts, long_key, "7"])
    out = report("--input", path, "--key", "user.id", "--parallelism", 1)
    assert header(out)["input"] == "some events.csv (CSV: all text)"
    assert header(out)["type"] == "STRING"
    assert header(out)["null keys"] == "0"
    assert header(out)["distinct"] == "9"
    out = report("--input", path, "--key", "user.id", "--parallelism", 20)
    check_subtasks(out, keys, 128, 20, STRING)
    check_hot_keys(out, keys, 128, 20, STRING)
    assert re.search(r"^ +2 +100\.0% +\d+  ''$", out, re.M)


@pytest.mark.slow
def test_keys_of_other_types(spark: SparkSession, report: Report, tmp_path: Path) -> None:
    path = tmp_path / "events"
    rows = [(-1, "a"), (-1, "a"), (2**40, None), (None, "b"), (None, None)]
    spark.createDataFrame(rows, "records long, key string").write.parquet(str(path))

    out = report("--input", path, "--key", "records", "--parallelism", 7)
    assert header(out)["type"] == "LONG"
    assert header(out)["null keys"] == header(out)["left_out"] == "2"
    check_subtasks(out, Counter([-1, -1, 2**40]), 128, 7, LONG)
    assert re.search(r"^ +2 +\S+ +\d+  -1$", out, re.M)

    # A null field of a tuple is a key like any other.
    out = report("--input", path, "--key", "records,key", "--parallelism", 7)
    assert header(out)["null keys"] == "0"
    check_subtasks(out, Counter(rows), 128, 7, TUPLE(LONG, STRING))
    assert re.search(r"^ +2 +\S+ +\d+  \(-1, 'a'\)$", out, re.M)


@pytest.mark.slow
def test_output_is_the_table_with_its_routing(
    spark: SparkSession, flights: dict[str, Keys], report: Report, tmp_path: Path
) -> None:
    output = tmp_path / "routed"
    report("--output", output, "--parallelism", 3)
    routed = spark.read.parquet(str(output))
    assert routed.columns == [
        *("time_hour", "carrier", "flight", "tailnum", "origin", "dest"),
        *("key_group", "subtask"),
    ]
    assert (
        routed.drop("key_group", "subtask").exceptAll(spark.read.parquet(str(FLIGHTS))).isEmpty()
    )
    groups = routed.groupBy("tailnum", "key_group", "subtask").count().collect()
    assert {row.tailnum: row[3] for row in groups} == flights["tailnum"]
    for row in groups:
        if row.tailnum is None:
            assert (row.key_group, row.subtask) == (None, None)
        else:
            assert row.key_group == assign_to_key_group(row.tailnum, 128)
            assert row.subtask == assign_key_to_parallel_operator(row.tailnum, 128, 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--input", "none.csv"], "--input: no such file or directory: none.csv"),
        (["--output", "."], "--output: exists already: ."),
        (
            ["--parallelism", "200"],
            "--parallelism: parallelism must be from 1 to 128 (max_parallelism), got 200",
        ),
        (
            ["--max-parallelism", "32769"],
            "--max-parallelism: max_parallelism must be from 1 to 32768 (Flink's upper bound), "
            "got 32769",
        ),
        (
            ["--rescale-to", "0"],
            "--rescale-to: parallelism must be from 1 to 128 (max_parallelism), got 0",
        ),
        (["--parallelism", "four"], "argument --parallelism: invalid int value: 'four'"),
        (
            ["--key", "tail"],
            "--key: no column 'tail'; the columns are: "
            "time_hour, carrier, flight, tailnum, origin, dest",
        ),
        (["--key", "origin,"], "--key: no column ''; the columns are: "),
    ],
)
def test_refuses_arguments(refusal: Report, arguments: list[str], message: str) -> None:
    assert refusal(*arguments).startswith(message)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "--key: no column 'key'; the columns are: none"),
        ("key,n\n", "--input: the table is empty"),
        ("key,n\na,1\nb\n", "{}, line 3: 1 fields, where the header has 2"),
        ("key,n\na,1\nb,2,3\n", "{}, line 3: 3 fields, where the header has 2"),
        ("key,Subtask\na,1\n", "df must not have a column Subtask already: rename it first"),
        ("key,n\na,1\n\nb,2\n", '{}, line 3: blank; an empty text is ""'),
        ("key\na\n\n", '{}, line 3: blank; an empty text is ""'),
        ('key,n\na,1\n"b"c,2\n', "{}, line 3: no CSV: ',' expected after '\"'"),
        ('key,n\na,1\n"b" ,2\n', "{}, line 3: no CSV: ',' expected after '\"'"),
        ('key,n\na,1\nb,"2\n', "{}, line 3: no CSV: unexpected end of data"),
        ("key,n\na,1\r\nb,2\n", r"{}, line 2: ends in '\r\n', the lines before in '\n'"),
        ("key,n\na\r,1\n", r"{}, line 2: 1 fields, where the header has 2"),
        ("key,n\na,\x00\n", "{}, line 2: has a NUL character"),
        ("key,n\n\udce9,1\n", "{} is not UTF-8: byte 0xe9"),
        ("key,KEY\na,1\n", "{}: Spark takes columns 'key' and 'KEY' for one"),
        ("key," * 20480 + "\n", "{}: more than the 20480 columns Spark reads"),
    ],
)
def test_refuses_csv(refusal: Report, tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "events.csv"
    path.write_bytes(content.encode(errors="surrogateescape"))
    expected = message.replace("{}", f"--input: {path}", 1)
    assert refusal("--input", path, "--key", "key").startswith(expected)


def read_as_csv(content: bytes) -> list[list[str]]:
    """What Python's csv module finds, without the header."""
    csv.field_size_limit(len(content))
    text = io.StringIO(content.decode("utf-8-sig"), newline="")
    return list(csv.reader(text, strict=True))[1:]


# Contents with the columns a and b that say nothing but their records.
CORPUS = {
    "quoted line ends of the other kind": 'a,b\r\n"1\n1",x\r\n"2\r2","y\r\ny"\r\n3,z',
    "quoted line ends": 'a,b\n"1\r\n1","\n"\n2,"z\r"\n',
    "lone carriage returns": 'a,b\r"1\r1",x\r"2\n2","y\r\ny"\r3,z\r',
    "header with a line end": 'a,"b\nb"\r\n1,x\r\n2,y\r\n',
    "byte order mark": '\ufeff"a",b\n\ufeff1,x\n',
    "comments and backslashes": 'a,b\n#1,x\n"\\",y\\\n"a\\""b",#\n\\N,null\n',
    "white space": "a,b\n 1 ,\tx\t\n  ,\x0b\n\x85,\u2028\n\x1c,\x1d\n",
    "quotes": 'a,b\n"""",""""""\n1"1,x"\n "1" , "x"\n"",""\n,""\n',
    "no line end": "a,b\n1,x",
    "long": f"a,b\n{'x' * 200_000},1\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("content", CORPUS.values(), ids=CORPUS)
def test_csv_records_are_those_of_another_reader(
    report: Report, spark: SparkSession, tmp_path: Path, content: str
) -> None:
    path, output = tmp_path / "events.csv", tmp_path / "out"
    path.write_bytes(content.encode())
    rows = read_as_csv(content.encode())
    out = report("--input", path, "--key", "a", "--output", output)
    assert number(header(out)["records"]) == len(rows)
    found = spark.read.parquet(str(output)).drop("key_group", "subtask").collect()
    assert sorted(map(tuple, found)) == sorted(map(tuple, rows))


@pytest.mark.slow
def test_random_csv(spark: SparkSession, tmp_path: Path) -> None:
    """Whatever is not refused has the records that Python's csv module finds."""
    chance, accepted = random.Random(11), dict[str, list[list[str]]]()
    by_line_end = dict[str, list[Path]]()
    pieces = ["a", '"', '""', ",", "\n", "\r", "\r\n", " ", "#", "\\", "é", "\ufeff", "\U0001f600"]
    for index in range(300):
        end = chance.choice(["\n", "\r\n", "\r"])
        rows = []
        for _ in range(3):
            plain, text = ("".join(chance.choices(pieces, k=chance.randrange(4))) for _ in "ab")
            quoted = '"' + text.replace('"', '""') + '"'
            rows.append(f"{plain},{quoted}" if chance.random() < 0.5 else f"{quoted},{plain}")
        content = end.join(["a,b", *rows])
        path = tmp_path / f"{index}.csv"
        path.write_bytes(content.encode())
        try:
            records = route_events.check_csv([path])
        except route_events.InputError:
            continue
        accepted[path.name] = read_as_csv(path.read_bytes())
        assert records.count == len(accepted[path.name])
        for line_end, files in records.by_line_end.items():
            by_line_end.setdefault(line_end, []).extend(files)
    assert 50 < len(accepted) < 250
    files = tuple(path for paths in by_line_end.values() for path in paths)
    table = event_files.Table(tmp_path, files, ("a", "b"))
    events = event_files.read_events(spark, table, event_files.CsvRecords(0, by_line_end))
    found = dict[str, list[list[str]]]()
    for a, b, uri in events.select("a", "b", functions.input_file_name()).collect():
        found.setdefault(Path(uri).name, []).append([a, b])
    assert found == accepted


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["a[1]", "a{b,c}", "a*", "a?", "a\\b", "a b%20#c", "Köln"],
)
@pytest.mark.skipif(sys.platform == "win32", reason="no such names")
def test_input_is_no_pattern(
    report: Report, spark: SparkSession, tmp_path: Path, name: str
) -> None:
    """Neighbours that a pattern of the name would match, or that its escaping would."""
    for other in ("a1", "ab", "ac", "a"):
        (tmp_path / f"{other}.csv").write_text("k\nwrong\nwrong\n")
    file, folder, parquet = (tmp_path / f"{name}{end}" for end in (".csv", "", ".parquet"))
    file.write_text("k\na\n")
    (folder / name).mkdir(parents=True)
    (folder / name / f"{name}.csv").write_text("k\na\n")
    (folder / "b.csv").write_text("k\nb\n")
    spark.createDataFrame([("a",), ("b",), ("c",)], "k string").write.parquet(str(parquet))
    for path, records in ((file, "1"), (folder, "2"), (parquet, "3")):
        assert header(report("--input", path, "--key", "k"))["records"] == records


def fill(folder: Path, files: Mapping[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


TWO = b"k,v\na,1\nb,2\n"


@pytest.mark.slow
def test_folder_of_csv(report: Report, tmp_path: Path) -> None:
    files = {
        "1.csv": TWO,
        "2.CSV": TWO.replace(b"\n", b"\r\n"),
        "3.csv.gz": gzip.compress(TWO) + gzip.compress(b"c,3\n"),
        "sub/4.csv.bz2": bz2.compress(TWO),
        "sub/sub/5.csv": b"\xef\xbb\xbf" + TWO,
        "empty.csv": b"",
        "mark.csv": b"\xef\xbb\xbf",
        "header.csv": b"k,v",
        "_SUCCESS": b"",
        ".1.csv.crc": b"crc",
    }
    out = report("--input", fill(tmp_path / "events", files), "--key", "k", "--parallelism", 7)
    assert header(out)["input"] == "events (CSV: all text)"
    assert header(out)["records"] == "11"
    check_subtasks(out, Counter("abababababc"), 128, 7, STRING)


@pytest.mark.slow
def test_folders_that_name_a_column(report: Report, tmp_path: Path) -> None:
    files = {f"day={day}/1.csv": b"k\na\n" for day in ("01", "1", "x%2Fy")}
    folder = fill(
        tmp_path / "events", {**files, "day=__HIVE_DEFAULT_PARTITION__/1.csv": b"k\nb\n"}
    )
    out = report("--input", folder, "--key", "day", "--parallelism", 7)
    assert header(out)["null keys"] == header(out)["left_out"] == "1"
    check_subtasks(out, Counter(["01", "1", "x/y"]), 128, 7, STRING)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"1.csv": b"k,v\na,1\n", "2.csv": b"v,k\n1,a\n"},
            "the header of {}/2.csv is not that of ",
        ),
        (
            {"1.csv": b"k,v\na,1\n", "2.csv": b"b,2\nc,3\n"},
            "the header of {}/2.csv is not that of ",
        ),
        ({"1.csv": TWO, "_2.csv": TWO}, "{}/_2.csv: Spark skips files in such a place"),
        ({"1.csv": TWO, ".2.csv": TWO}, "{}/.2.csv: Spark skips files in such a place"),
        ({"1.csv": TWO, "_temporary/2.csv": TWO}, "{}/_temporary/2.csv: Spark skips"),
        ({"1.csv": TWO, "2.parquet": b"PAR1"}, "{}/2.parquet is no CSV file, and other files"),
        ({"1.csv": TWO, "README.txt": b"k,v\n"}, "{}/README.txt is no CSV file"),
        ({"1.csv.zst": TWO}, "{}/1.csv.zst: compressed CSV has to end in .gz or .bz2"),
        ({"1.csv.GZ": gzip.compress(TWO)}, "{}/1.csv.GZ: compressed CSV has to end in .gz"),
        (
            {"1.csv.gz": gzip.compress(TWO)[:-9]},
            "{}/1.csv.gz cannot be read: Compressed file ended",
        ),
        ({"1.csv.gz": TWO}, "{}/1.csv.gz cannot be read: Not a gzipped file"),
        ({"1.csv": TWO, "day=1/2.csv": TWO}, "{}/day=1/2.csv: its folders name other columns"),
        ({"k=1/2.csv": TWO}, "{}: Spark takes columns 'k' and 'k' for one"),
    ],
)
def test_refuses_folders(
    refusal: Report, tmp_path: Path, files: Mapping[str, bytes], message: str
) -> None:
    folder = fill(tmp_path, files)
    expected = f"--input: {message}".replace("{}", str(folder))
    assert refusal("--input", folder, "--key", "k").startswith(expected)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege")
def test_links(report: Report, refusal: Report, tmp_path: Path) -> None:
    real = fill(tmp_path / "real", {"1.csv": TWO})
    folder = fill(tmp_path / "events", {"2.csv": TWO})
    (folder / "3.csv").symlink_to(fill(tmp_path, {"3.txt": TWO}) / "3.txt")
    (folder / "linked").symlink_to(real)
    assert header(report("--input", folder, "--key", "k"))["records"] == "6"
    (folder / "4.csv").symlink_to(real / "1.csv")
    assert "4.csv are one file, by a symbolic link" in refusal("--input", folder, "--key", "k")
    (folder / "4.csv").unlink()
    (folder / "loop").symlink_to(folder)
    assert "loop is there twice, by a symbolic link" in refusal("--input", folder, "--key", "k")


@pytest.mark.slow
def test_names_of_columns(report: Report, refusal: Report, tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text('"a,b",c,"say ""hi""",,"x\ny"\n1,2,3,4,5\n')
    for key, value in {'"a,b"': "1", '"say ""hi"""': "3", "_c3": "4", '"x\ny"': "5"}.items():
        assert f"  {value!r}\n" in report("--input", path, "--key", key)
    out = report("--input", path, "--key", 'c,"a,b"')
    assert header(out)["type"] == "TUPLE(STRING, STRING)"
    assert "  ('2', '1')\n" in out
    message = refusal("--input", path, "--key", "a,b")
    assert message.startswith("--key: no column 'a'; the columns are: \"a,b\", c, ")
    for key in ("", '"a,b', '"a"b', "a\nb"):
        assert refusal("--input", path, "--key", key).startswith(
            "--key: must be one line of CSV, "
        )


@pytest.mark.slow
def test_parquet_files_of_other_columns(
    spark: SparkSession, report: Report, refusal: Report, tmp_path: Path
) -> None:
    def add(place: str, rows: list[tuple[object, ...]], schema: str) -> None:
        df = spark.createDataFrame(rows, schema).coalesce(1)
        df.write.mode("append").parquet(str(tmp_path / place))

    add("events", [(1.5,)], "other double")
    add("events", [("a",)], "key string")
    add("events/sub", [("b",)], "key string")
    path, output = tmp_path / "events", tmp_path / "out"
    out = report("--input", path, "--key", "key", "--output", output)
    assert header(out)["records"] == "3"
    assert header(out)["null keys"] == header(out)["left_out"] == "1"
    rows = spark.read.parquet(str(output)).select("key", "other").collect()
    assert {tuple(row) for row in rows} == {("a", None), ("b", None), (None, 1.5)}
    add("events", [(1,)], "key int")
    assert "is not read as Parquet: " in refusal("--input", path, "--key", "key")


@pytest.mark.parametrize(
    ("schema", "rows", "message"),
    [
        ("key int", [], "--input: the table is empty"),
        (
            "key string",
            [(None,), (None,)],
            "--key: null in all 2 records, and Flink would fail on the first",
        ),
        ("key binary", [(b"a",)], "key column key of type binary has no key type"),
        ("key array<int>", [([1],)], "key column key of type array<int> has no key type"),
    ],
)
@pytest.mark.slow
def test_refuses_tables(
    spark: SparkSession,
    refusal: Report,
    tmp_path: Path,
    schema: str,
    rows: list[tuple[object, ...]],
    message: str,
) -> None:
    path = tmp_path / "events"
    spark.createDataFrame(rows, schema).write.parquet(str(path))
    assert refusal("--input", path, "--key", "key").startswith(message)


def test_refuses_what_is_no_parquet(refusal: Report, tmp_path: Path) -> None:
    text, directory = tmp_path / "events.txt", tmp_path / "events"
    text.write_text("key\na\n")
    directory.mkdir()
    assert "is not read as Parquet: " in refusal("--input", text)
    assert "is not read as Parquet: [UNABLE_TO_INFER_SCHEMA]" in refusal("--input", directory)


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_script_fails_in_one_line(tmp_path: Path) -> None:
    result = run_script("--key", "tail", cwd=tmp_path)
    assert result.returncode == 2
    assert not result.stdout
    assert "Traceback" not in result.stderr
    assert result.stderr.splitlines()[-1].startswith("route_events: --key: no column 'tail'; ")


@pytest.mark.parametrize(
    ("java_home", "message"),
    [
        ("", "route_events: no Java on the PATH: PySpark needs Java 17 or 21\n"),
        pytest.param(
            "nowhere",
            "route_events: no Java in JAVA_HOME, which is nowhere: PySpark needs Java 17 or 21\n",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_script_says_that_java_is_missing(tmp_path: Path, java_home: str, message: str) -> None:
    result = run_script(cwd=tmp_path, env={"PATH": str(tmp_path), "JAVA_HOME": java_home})
    assert (result.returncode, result.stdout, result.stderr) == (2, "", message)


def test_script_says_that_pyspark_is_missing(tmp_path: Path) -> None:
    (tmp_path / "pyspark.py").write_text("raise ModuleNotFoundError(name=__name__)\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    result = run_script(cwd=tmp_path, env={"PYTHONPATH": path})
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == 'route_events: no module pyspark: pip install "keygroups[spark]"\n'


@pytest.mark.parametrize(
    ("key", "verdict"),
    [
        ("tailnum", "even"),
        # 36.9 % of the hottest subtask is one key, which is less than the mean subtask.
        ("carrier", "many keys unluckily together"),
        # Three airports for four subtasks.
        ("origin", "too few keys"),
    ],
)
@pytest.mark.slow
def test_verdict(report: Report, key: str, verdict: str) -> None:
    assert header(report("--key", key))["verdict"] == verdict


@pytest.mark.slow
def test_fix(report: Report, spark: SparkSession, tmp_path: Path) -> None:
    out = report("--key", "origin", "--parallelism", "5", "--fix", "--output", tmp_path / "out")
    # Found with Flink: the first Integers that reach subtasks 0 to 4 of 5 at 128.
    assert "from subtask 0\n4, 9, 10, 0, 2\n" in out
    selector = SubtaskKeySelector(128, 5)
    rows = spark.read.parquet(str(tmp_path / "out")).select("origin", "substitute_key")
    found = {row["origin"]: row["substitute_key"] for row in rows.distinct().collect()}
    assert found == {origin: selector.key_for_value(origin) for origin in ("EWR", "JFK", "LGA")}
