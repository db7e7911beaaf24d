"""The command `keygroups`: what it prints, its status, and how little it imports."""

from __future__ import annotations

import errno
import importlib
import io
import json
import os
import re
import runpy
import shlex
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.metadata import version
from inspect import signature
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.real_savepoints import point

import keygroups
from keygroups import (
    InvalidTypeError,
    KeyGroupLoad,
    RescalePlan,
    assign_key_to_parallel_operator,
    assign_to_key_group,
    compute_default_max_parallelism,
    compute_key_group_range_for_operator_index,
    keys_for_subtasks,
    trace_key,
)
from keygroups.cli import _ADD_COMMANDS, main
from keygroups.cli._examples import EXAMPLES
from keygroups.cli._parser import build_parser
from keygroups.cli._refusals import in_shell
from keygroups.flink_exceptions import explain_exception
from keygroups.job import read_job
from keygroups.reports import RescaleReport
from keygroups.savepoint import (
    SavepointWriter,
    ValueStateDescriptor,
    change_max_parallelism,
    operator_reports,
    read_savepoint,
)
from keygroups.types import LONG, STRING, TUPLE

ROOT = Path(__file__).parents[2]
SAVEPOINT = str(ROOT / "examples" / "data" / "savepoint")


class Ended(NamedTuple):
    status: int
    out: str
    err: str


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run the command in this process; `passed` is its standard input."""

    def run_command(*arguments: str, passed: bytes = b"") -> Ended:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(passed), encoding="utf-8"))
        status = main(arguments)
        return Ended(status, *capsys.readouterr())

    return run_command


def in_a_process(
    *arguments: str | bytes, passed: bytes = b"", folder: Path | None = None, **settings: str
) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **settings}
    command: Sequence[str | bytes] = [sys.executable, "-m", "keygroups", *arguments]
    return subprocess.run(command, input=passed, capture_output=True, env=environment, cwd=folder)


def ok(ended: Ended) -> str:
    assert (ended.status, ended.err) == (0, "")
    return ended.out


def test_trace(run: Any) -> None:
    text = ok(run("trace", "hello", "-m", "128", "-p", "3"))
    assert text == f"{trace_key('hello', 128, 3)}\n"
    text = ok(run("trace", "-5", "-m", "128", "--parallelism", "24", "--type", "LONG"))
    assert text == f"{trace_key(-5, 128, 24, LONG)}\n"


def test_trace_as_json(run: Any) -> None:
    arguments = ("('a', 5)", "-m", "128", "-p", "24", "--type", "TUPLE(STRING, LONG)", "--json")
    key_type = TUPLE(STRING, LONG)
    trace = trace_key(("a", 5), 128, 24, key_type)
    groups = compute_key_group_range_for_operator_index(128, 24, trace.subtask)
    assert json.loads(ok(run("trace", *arguments))) == {
        "key": "('a', 5)",
        "key_type": "TUPLE(STRING, LONG)",
        "hash_code": trace.hash_code,
        "murmur_hash": trace.murmur_hash,
        "max_parallelism": 128,
        "key_group": trace.key_group,
        "parallelism": 24,
        "subtask": trace.subtask,
        "key_groups": [groups[0], groups[-1]],
    }


def test_trace_of_keys_one_a_line(run: Any) -> None:
    keys = ["a", "", " b\tc ", "\u00e9\U0001f600", "last"]
    passed = "\n".join(keys).encode()
    text = ok(run("trace", "-", "-m", "1000", "-p", "24", "--type", "STRING", passed=passed))
    assert [line.split("\t") for line in text.splitlines()] == [
        [
            str(assign_key_to_parallel_operator(key, 1000, 24)),
            str(assign_to_key_group(key, 1000)),
            key.replace("\t", r"\t"),
        ]
        for key in keys
    ]
    text = ok(
        run("trace", "-", "-m", "128", "-p", "24", "--type", "LONG", "--json", passed=b"5\n-7\n")
    )
    found = [json.loads(line) for line in text.splitlines()]
    assert [(one["key"], one["subtask"]) for one in found] == [
        (str(key), assign_key_to_parallel_operator(key, 128, 24, LONG)) for key in (5, -7)
    ]
    assert ok(run("trace", "-", "-m", "128", "-p", "24", passed=b"")) == ""


def test_line_that_is_no_key(run: Any) -> None:
    for bad, says in ((b"x", "such as 42"), (b"\xff", r"got '\udcff'")):
        ended = run("trace", "-", "-m", "128", "-p", "24", "--type", "LONG", passed=b"5\n" + bad)
        assert ended.status == 2
        assert ended.out.count("\n") == 1
        assert ended.err.startswith("keygroups trace: line 2: key ")
        assert says in ended.err


def test_plan(run: Any) -> None:
    plan = RescalePlan(128, 24, 36)
    assert ok(run("plan", "128", "24", "36")) == f"{plan}\n"
    data = json.loads(ok(run("plan", "128", "24", "36", "--json")))
    assert data["moved_key_groups"] == list(plan.moved_key_groups)
    assert data["moved_share"] == plan.moved_share
    assert [data[name] for name in ("max_parallelism", "old_parallelism", "new_parallelism")] == [
        *(128, 24, 36)
    ]
    pieces = [
        (one["old_subtask"], one["new_subtask"], one["key_groups"], one["moves"])
        for one in data["pieces"]
    ]
    assert pieces == [(old, new, [kg[0], kg[-1]], old != new) for old, new, kg in plan]


WEIGHTS = [5, 1, 1, 1, 0, 1, 2.5, 1]


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"{group} {weight}\n" for group, weight in enumerate(WEIGHTS) if weight),
        "\n".join(f"{group}\t{weight}" for group, weight in reversed([*enumerate(WEIGHTS)])),
        f"\n {json.dumps(WEIGHTS, indent=1)}",
    ],
    ids=["blanks", "tabs", "json"],
)
def test_plan_with_a_load(run: Any, tmp_path: Path, text: str) -> None:
    report = RescaleReport(RescalePlan(8, 2, 3), KeyGroupLoad(8, WEIGHTS))
    file = tmp_path / "load.txt"
    file.write_text(text, encoding="utf-8")
    assert ok(run("plan", "8", "2", "3", "--load", str(file))) == f"{report}\n"
    data = json.loads(
        ok(run("plan", "8", "2", "3", "--load", "-", "--json", passed=text.encode()))
    )
    assert data["weight_after"] == report.weight_after
    assert data["imbalance_before"] == report.imbalance_before
    assert data["moved_weight"] == report.moved_weight
    best = report.recommendations[0]
    assert data["recommendations"][0] == {
        "parallelism": best.parallelism,
        "heaviest_weight": best.heaviest_weight,
        "imbalance": best.imbalance,
        "reason": best.reason,
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"0 1\nx\n", "got 'x' in line 2 of FILE"),
        (b"0 1 2\n", "got '0 1 2' in line 1 of FILE"),
        (b"0 x\n", "got '0 x'"),
        (b"0 1\n0 2\n", "key group 0 is twice in FILE"),
        (b"0.5 1\n", "key group of weights must be an int, got 0.5"),
        (b"8 1\n", "key group of weights must be from 0 to 7, got 8"),
        (b"8 1\n8 2\n", "key group of weights must be from 0 to 7, got 8"),  # not hashed yet
        (b"0 -1\n", "weight of key group 0 must be a finite number >= 0, got -1"),
        (b"0 nan\n", "finite"),
        (b"[1, 2", "load of FILE is not JSON"),
        (b"[" * 50_000, "is not JSON"),
        (b"[1, 2]", "weights must be 8 numbers"),
        (b"\xff\xfe", "load cannot be read from FILE: "),
    ],
)
def test_load_that_is_none(run: Any, tmp_path: Path, text: bytes, says: str) -> None:
    file = tmp_path / "load.txt"
    file.write_bytes(text)
    output = says.replace("FILE", repr(str(file)))
    refused(run("plan", "8", "2", "3", "--load", str(file)), output)


def test_load_that_is_as_long_as_one_may_be(run: Any, tmp_path: Path) -> None:
    file = tmp_path / "load.txt"
    weights = [1e-300 / 3] * 32768
    file.write_text(json.dumps(weights, indent=8), encoding="utf-8")
    assert ok(run("plan", "32768", "2", "3", "--load", str(file)))
    file.write_text("0 1".ljust(4194304), encoding="utf-8")
    assert ok(run("plan", "8", "2", "3", "--load", str(file)))
    file.write_text("0 1".ljust(4194305), encoding="utf-8")
    refused(run("plan", "8", "2", "3", "--load", str(file)), "load must be at most 4194304 char")


class Endless(io.RawIOBase):
    """A stream of zeros, which counts how many were read."""

    count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self.count += len(buffer)
        buffer[:] = bytes(len(buffer))
        return len(buffer)


def test_load_without_an_end(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """As /dev/zero has: no more is read than a load can be."""
    stream = Endless()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(stream)))
    assert main(["plan", "8", "2", "3", "--load", "-"]) == 2
    assert "load must be at most 4194304 characters, got more from '-'" in capsys.readouterr().err
    assert 4194304 < stream.count < 4194304 + 100_000


def test_line_without_an_end(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    stream = Endless()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(stream)))
    assert main(["trace", "-", "-m", "128", "-p", "24"]) == 2
    text = capsys.readouterr()
    assert text == ("", "keygroups trace: line 1: it has more than 16777216 characters\n")
    assert stream.count < 16777216 + 100_000


def refused(ended: Ended, says: str) -> None:
    assert (ended.status, ended.out) == (2, "")
    [line] = ended.err.splitlines()
    assert says in line
    assert len(line) < 1500


def test_range(run: Any) -> None:
    found = compute_key_group_range_for_operator_index(128, 24, 17)
    text = ok(run("range", "128", "24", "17"))
    assert text == f"subtask 17 of 24 has {len(found)} of 128 key groups, {found}\n"
    assert json.loads(ok(run("range", "128", "24", "17", "--json"))) == {
        "max_parallelism": 128,
        "parallelism": 24,
        "subtask": 17,
        "key_groups": [found[0], found[-1]],
    }


def test_default(run: Any) -> None:
    assert ok(run("default", "24")) == f"{compute_default_max_parallelism(24)}\n"
    groups = compute_default_max_parallelism(171)
    assert json.loads(ok(run("default", "171", "--json"))) == {
        "parallelism": 171,
        "max_parallelism": groups,
    }


def test_keys(run: Any) -> None:
    keys = keys_for_subtasks(128, 24)
    assert ok(run("keys", "128", "24")).splitlines() == [
        f"{subtask}\t{key}" for subtask, key in enumerate(keys)
    ]
    many = keys_for_subtasks(128, 3, STRING, 2, prefix="user-")
    text = ("keys", "128", "3", "--type", "STRING", "--prefix", "user-", "-n", "2")
    assert ok(run(*text)).splitlines() == [
        f"{subtask}\t{key}" for subtask, two in enumerate(many) for key in two
    ]
    assert json.loads(ok(run(*text, "--json"))) == [
        {"subtask": subtask, "keys": two} for subtask, two in enumerate(many)
    ]


def test_keys_from_a_number_on(run: Any) -> None:
    keys = keys_for_subtasks(128, 3, start=1000)
    assert min(keys) >= 1000
    assert ok(run("keys", "128", "3", "--start", "1000")).splitlines() == [
        f"{subtask}\t{key}" for subtask, key in enumerate(keys)
    ]


def test_a_prefix_that_cannot_be_printed_is_escaped(run: Any) -> None:
    text = ("keys", "128", "2", "--type", "STRING", "--prefix", "a\tb")
    keys = keys_for_subtasks(128, 2, STRING, prefix="a\tb")
    assert ok(run(*text)).splitlines() == [
        f"{subtask}\ta\\tb{key[3:]}" for subtask, key in enumerate(keys)
    ]
    assert [one["keys"] for one in json.loads(ok(run(*text, "--json")))] == [[key] for key in keys]


def test_keys_that_are_printed_are_read(run: Any) -> None:
    for key_type in ("TUPLE(STRING, INT)", "SQL_ROW('BIGINT')", "BOOLEAN", "PYFLINK(LONG)"):
        for line in ok(run("keys", "128", "2", "--type", key_type)).splitlines():
            subtask, key = line.split("\t")
            text = ok(run("trace", key, "-m", "128", "-p", "2", "--type", key_type, "--json"))
            assert json.loads(text)["subtask"] == int(subtask)


def test_range_the_other_way(run: Any) -> None:
    """Subtask 4 of 20 alone has [144, 179] of 720: 720 / 20 = 36 key groups from 4 * 36 on."""
    arguments = ("range", "720", "--key-groups", "144", "179")
    assert ok(run(*arguments)) == "subtask 4 of 20\n"
    assert json.loads(ok(run(*arguments, "--json"))) == {
        "max_parallelism": 720,
        "key_groups": [144, 179],
        "subtasks": [{"parallelism": 20, "subtask": 4}],
    }
    text = ok(run("range", "720", "--key-groups", "144", "178"))
    assert text == "no subtask has exactly [144, 178] of 720 key groups, at any parallelism\n"


def test_where(run: Any) -> None:
    text = ok(run("where", "193", "720", "20"))
    assert text == "subtask 5 of 20, which has key groups [180, 215] of 720\n"
    assert json.loads(ok(run("where", "193", "720", "20", "--json"))) == {
        "max_parallelism": 720,
        "key_group": 193,
        "subtasks": [{"parallelism": 20, "subtask": 5, "key_groups": [180, 215]}],
    }
    assert ok(run("where", "7", "9")).splitlines() == [
        "subtask 0 of 1, which has key groups [0, 8] of 9",
        "subtask 2 of 3, which has key groups [6, 8] of 9",
        "subtask 7 of 9, which has key groups [7, 7] of 9",
    ]


def test_explain(run: Any) -> None:
    text = "Key group 193 is not in KeyGroupRange{startKeyGroup=144, endKeyGroup=179}"
    explained = explain_exception(text, 720, 20)
    assert ok(run("explain", text, "-m", "720", "-p", "20")) == f"{explained}\n"
    output = ok(run("explain", "-", "-m", "720", "-p", "20", passed=f"ERROR\n{text}\n".encode()))
    assert output == f"{explained}\n"
    lines = b"Maximum parallelism must be between 1 and 32768. Found: 40000\n5 more\n"
    assert "and 40000 is not" in ok(run("explain", "-", passed=lines))
    assert json.loads(ok(run("explain", text, "--json"))) == {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in vars(explain_exception(text)).items()
    }


def test_evenness(run: Any) -> None:
    divisors = [one for one in range(1, 721) if 720 % one == 0]
    assert ok(run("evenness", "720")) == " ".join(map(str, divisors)) + "\n"
    assert json.loads(ok(run("evenness", "720", "--json"))) == {
        "max_parallelism": 720,
        "parallelisms": divisors,
    }


def test_savepoint(run: Any) -> None:
    """What the text says is held against Flink in test_savepoint_command.py."""
    text = ok(run("savepoint", SAVEPOINT, "--parallelism", "2", "--top", "3"))
    savepoint = read_savepoint(SAVEPOINT)
    reports = list(operator_reports(savepoint, None, 2, 3))
    for report in reports:
        assert {f"  {state}" for state in report.operator.states} <= {*str(report).splitlines()}
    verify = "keygroups verify looks for damage, misplaced keys and windows without timers"
    assert text == "\n\n".join([str(savepoint), *map(str, reports), verify]) + "\n"


def test_savepoint_as_json(run: Any) -> None:
    path = str(point("2.3.0-heaptimers-canonical").path)
    text = ok(run("savepoint", path, "--operator", "by-string", "--top", "2", "--json"))
    data = json.loads(text)
    savepoint = read_savepoint(path)
    operator = savepoint.operator("by-string")
    assert data["checkpoint_id"] == savepoint.checkpoint_id
    assert [one["operator_id"] for one in data["operators"]] == [
        one.operator_id for one in savepoint.operators
    ]
    [report] = data["reports"]
    assert report["operator_id"] == operator.operator_id
    weights = operator.key_group_bytes().weights
    assert report["key_group_bytes"] == list(weights)
    assert [weights[group] for group in report["heaviest_key_groups"]] == sorted(weights)[:-3:-1]
    keys = operator.key_sizes(2)
    assert [(one["key"], one["bytes"]) for one in report["heaviest_keys"]] == [
        (one.key, one.bytes) for one in keys
    ]
    plan = RescalePlan(operator.max_parallelism, operator.parallelism, operator.parallelism + 1)
    assert report["rescale"]["moved_weight"] == plan.moved_weight(operator.key_group_bytes())


def test_keys_of_any_kind_in_json(run: Any) -> None:
    path = str(point("2.3.0-heaptimers-canonical").path)
    data = json.loads(ok(run("savepoint", path, "--json")))
    assert {type(one["key"]) for report in data["reports"] for one in report["heaviest_keys"]} <= {
        *(int, str)
    }


def test_savepoint_with_another_max_parallelism(run: Any, tmp_path: Path) -> None:
    """As the library writes it, which is held against Flink in test_flink_max_parallelism.py."""
    path = str(tmp_path / "a")
    text = ok(run("savepoint", SAVEPOINT, "--set-max-parallelism", "4096", "--output", path))
    as_the_library = change_max_parallelism(SAVEPOINT, 4096, tmp_path / "b")
    assert text.replace(path, as_the_library.path) == f"{as_the_library}\n"
    assert text.endswith(
        "set max parallelism in the job, to 4096: where it is not set, a new operator in the "
        "chain can make Flink lose keyed state\n"
    )
    operators = read_savepoint(path).operators
    assert {one.max_parallelism for one in operators} == {4096}

    path = str(tmp_path / "c")
    arguments = ("--set-max-parallelism", "64", "--parallelism", "2", "--operator", "by-string")
    data = json.loads(ok(run("savepoint", SAVEPOINT, *arguments, "--output", path, "--json")))
    written = read_savepoint(path).operator("by-string")
    entries = list(written.entries())
    (by_string,) = [one for one in data["operators"] if one["operator"] == "by-string"]
    assert data["path"] == path
    assert (by_string["old_max_parallelism"], by_string["new_max_parallelism"]) == (128, 64)
    assert by_string["parallelism"] == written.parallelism
    found = Counter((entry.state, entry.subtask) for entry in entries)
    assert found == {(one["state"], one["subtask"]): one["entries"] for one in by_string["states"]}


def test_savepoint_that_cannot_be_moved(run: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "new")
    refused(run("savepoint", SAVEPOINT, "--output", path), "go together")
    refused(run("savepoint", SAVEPOINT, "--set-max-parallelism", "64"), "go together")
    for number in ("0", "32769"):
        arguments = ("--set-max-parallelism", number, "--output", path)
        refused(run("savepoint", SAVEPOINT, *arguments), "max-parallelism must be from 1 to 32768")
    inside = ("--set-max-parallelism", "64", "--output", f"{SAVEPOINT}/new")
    refused(run("savepoint", SAVEPOINT, *inside), "output must be outside the savepoint")
    same = ("--set-max-parallelism", "128", "--output", path)
    refused(run("savepoint", SAVEPOINT, *same), "128 changes nothing, as ['Sink: sink', 'by-stri")
    assert not list(tmp_path.iterdir())


def test_output_that_is_gone_with_the_command(run: Any, tmp_path: Path) -> None:
    number = ("--set-max-parallelism", "64")
    ended = run("savepoint", SAVEPOINT, *number, "--output", "memory://a")
    refused(ended, "output must outlast the command, got 'memory://a'")
    ended = run("savepoint", SAVEPOINT, *number, "--output", "reference://x::file:///y")
    refused(ended, "output must be a path, or the URL of a store")
    refused(run("savepoint", SAVEPOINT, "--clean"), "--clean goes with --output")
    ended = run("savepoint", SAVEPOINT, *number, "--output", str(tmp_path), "--clean")
    refused(ended, f"output must be of a new folder, got {str(tmp_path)!r}: it is there")


@pytest.mark.filterwarnings("default::keygroups.errors.LeftoverWarning")
def test_what_killed_commands_left(run: Any, tmp_path: Path) -> None:
    """It is named, and removed where that is asked for and nobody can be at work there."""
    young, old = (tmp_path / f".new\a.{digit * 32}.writing" for digit in "01")
    for rest in (young, old):
        rest.mkdir()
    os.utime(old, (0, 0))
    rewrite = ("savepoint", SAVEPOINT, "--set-max-parallelism", "64", "--output")
    shown = [str(path).replace("\a", r"\x07") for path in (young, old)]

    ended = run(*rewrite, str(tmp_path / "new\a"))
    assert ended.status == 0
    lines = ended.err.splitlines()
    assert [line.partition(" was left by")[0] for line in lines] == [
        f"keygroups savepoint: {path}" for path in shown
    ]
    assert all("--clean of `keygroups savepoint` does so" in line for line in lines)
    assert young.exists()
    assert old.exists()

    (tmp_path / "new\a").rename(tmp_path / "done")
    ended = run(*rewrite, str(tmp_path / "new\a"), "--clean", "--json")
    assert ended.status == 0
    assert json.loads(ended.out)["path"] == str(tmp_path / "new\a")
    removed, named = ended.err.splitlines()
    assert removed == f"keygroups savepoint: {shown[1]} is removed"
    assert named.startswith(f"keygroups savepoint: {shown[0]} was left by")
    assert sorted(path.name for path in tmp_path.iterdir()) == [young.name, "done", "new\a"]


def test_savepoint_that_cannot_be_read(run: Any, tmp_path: Path) -> None:
    ended = run("savepoint", str(tmp_path / "nowhere"))
    assert (ended.status, ended.out) == (1, "")
    assert ended.err.startswith("keygroups savepoint: ")
    assert ended.err.count("\n") == 1
    refused(run("savepoint", SAVEPOINT, "--operator", "nobody"), "got 'nobody'")
    refused(run("savepoint", SAVEPOINT, "--top", "0"), "top must be from 1")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("foo",), "invalid choice: 'foo' (choose from"),
        (("trace", "a"), "-m/--max-parallelism"),
        (("trace", "42", "-m", "128", "-p", "24"), "type, as in --type INT or --type LONG"),
        (
            ("trace", "-m", "128", "-p", "24", "--", "-1"),
            "key '-1' may be a STRING or INT or LONG",
        ),
        (("trace", "5", "-m", "128", "-p", "24", "--type", "BIGINT"), "did you mean LONG?"),
        (("trace", "x", "-m", "128", "-p", "24", "--type", "LONG"), "got 'x'"),
        (("trace", "x", "-m", "128", "-p", "24", "--type", "NOPE"), "type must be one of BOOLEAN"),
        (("trace", "x", "-m", "0", "-p", "24"), "--max-parallelism must be from 1 to 32768"),
        (("trace", "-", "-m", "128", "-p", "129"), "parallelism must be from 1 to 128"),
        (("trace", "\udcff", "-m", "128", "-p", "24"), r"got '\udcff'"),
        (("plan", "128", "24"), "NEW_PARALLELISM"),
        (("plan", "128", "24", "x"), "argument NEW_PARALLELISM: must be an int, got 'x'"),
        (("plan", "128", "24", "9" * 5000), "must be an int"),
        (("plan", "128", "24", "0"), "NEW_PARALLELISM must be from 1 to 128 (MAX_PARALLELISM)"),
        (("plan", "128", "24", "36", "--load", "nowhere"), "cannot be read from 'nowhere'"),
        (("plan", "128", "24", "36", "--load", "\0"), "cannot be read from"),
        (("range", "128", "24", "24"), "SUBTASK must be from 0 to 23, got 24"),
        (("range", "128", "129", "0"), "PARALLELISM must be from 1 to 128"),
        (("range", "128", "0", "0"), "range: PARALLELISM must be from 1 to 128 (MAX_"),
        (("default", "0"), "PARALLELISM must be from 1"),
        (("keys", "128", "24", "--type", "UUID"), "UUID"),
        (("keys", "128", "24", "--type", "STRING", "--prefix", "\udcff"), "prefix must be text"),
        (("keys", "128", "24", "--type", "BOOLEAN"), "keys of type BOOLEAN were tried"),
        (("keys", "128", "24", "-n", "0"), "n must be from 1"),
        (("keys", "128", "24", "--start", "-1"), "start must be from 0 to 2147483647, got -1"),
        (("range", "128"), "parallelism and subtask, or --key-groups, must be given"),
        (("range", "128", "4"), "parallelism and subtask, or --key-groups, must be given"),
        (
            ("range", "128", "4", "--key-groups", "0", "31"),
            "PARALLELISM must not go with --key-groups, got 4",
        ),
        (("range", "128", "--key-groups", "0", "128"), "must be from 0 to 127, got 128"),
        (("where", "128", "128", "4"), "KEY_GROUP must be from 0 to 127, got 128"),
        (("where", "0", "128", "129"), "PARALLELISM must be from 1 to 128"),
        (("explain", "hello"), "TEXT must have a message of Flink that is known, got 'hello'"),
        (("evenness", "32769"), "MAX_PARALLELISM must be from 1 to 32768"),
        (("evenness", "12", "13"), "unrecognized arguments: 13"),
        (("evenness", "12", "--js"), "unrecognized arguments: --js"),
        (("evenness", "1\n2"), "got '1\\n2'"),
        (("foo\nbar",), "invalid choice"),
    ],
)
def test_wrong_arguments(run: Any, arguments: tuple[str, ...], says: str) -> None:
    refused(run(*arguments), says)


@pytest.mark.parametrize("arguments", ["trace", 5, [5], (None,)])
def test_what_are_no_arguments(arguments: Any) -> None:
    with pytest.raises(InvalidTypeError, match="argument"):
        main(arguments)


def test_arguments_of_the_process(run: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(sys, "argv", ["keygroups", "default", "24"])
    assert main() == 0
    assert capsys.readouterr().out == "128\n"


def test_streams_that_are_no_files(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("a\n"))
    assert main(["trace", "-", "-m", "128", "-p", "24"]) == 0
    assert capsys.readouterr().out.endswith("\ta\n")


@pytest.mark.parametrize(
    ("first", "is_safe", "is_kept"),
    [
        ("here", False, False),
        ("here", True, True),  # PYTHONPATH comes first with -P
        ("home", False, True),
        ("elsewhere", False, True),
        ("gone", False, True),
    ],
)
def test_module_is_the_command(
    first: str,
    is_safe: bool,
    is_kept: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It imports nothing more from the working directory, which Python has put first."""
    module = importlib.import_module("keygroups.__main__")
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(Path(keygroups.__file__).parents[1] if first == "home" else here)
    place = str(tmp_path if first == "elsewhere" else Path.cwd())
    if first == "gone":
        here.rmdir()
    monkeypatch.setattr(sys, "argv", ["keygroups", "default", "24"])
    monkeypatch.setattr(sys, "path", [place, *(others := sys.path)])
    flags = {name: getattr(sys.flags, name) for name in dir(sys.flags) if name[0] != "_"}
    monkeypatch.setattr(sys, "flags", SimpleNamespace(**flags | {"safe_path": is_safe}))
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(module.__file__), run_name="__main__")
    assert ended.value.code == 0
    assert capsys.readouterr().out == "128\n"
    assert sys.path == [place, *others][not is_kept :]


@pytest.mark.long
def test_modules_of_a_stranger(tmp_path: Path) -> None:
    """What is imported for an export is not taken from the folder of the savepoint."""
    pytest.importorskip("pyarrow", reason="the extra savepoint")
    pytest.importorskip("numpy", reason="the extra savepoint")
    with SavepointWriter(tmp_path / "point") as writer:
        states = [ValueStateDescriptor("count", LONG)]
        writer.add_operator("u", STRING, states, 128, parallelism=1).write("count", "a", 1)
    for name in ("numpy", "pyarrow", "fsspec", "cramjam", "fastavro"):
        (tmp_path / "point" / f"{name}.py").write_text("raise SystemExit('run')\n")
    arguments = ("savepoint", ".", "--export", "../x.parquet")
    ended = in_a_process(*arguments, folder=tmp_path / "point")
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert (tmp_path / "x.parquet").stat().st_size > 0


def test_help_lists_the_choices(run: Any) -> None:
    text = ok(run("--help"))
    key_groups = ("trace", "plan", "range", "where", "default", "keys", "evenness", "suggest")
    for command in (*key_groups, "counts", "explain", "savepoint", "job"):
        assert f"\n    {command}" in text
        assert "\nJSON: " in ok(run(command, "--help"))
    text = " ".join(ok(run("trace", "--help")).split())
    assert "BIG_DEC, LOCAL_DATE, LOCAL_TIME, LOCAL_DATE_TIME, INSTANT, UUID" in text


def test_every_argument_has_a_name_and_a_help() -> None:
    [commands] = (one for one in build_parser(*_ADD_COMMANDS)._actions if one.dest == "command")
    assert isinstance(commands.choices, dict)
    for command in commands.choices.values():
        for argument in command._actions:
            assert argument.help
            assert argument.metavar is None or re.match("'?[A-Z]", str(argument.metavar))


@pytest.mark.parametrize(
    ("arguments", "option", "call", "name", "default"),
    [
        ("job http://localhost", "timeout", read_job, "timeout", 10),
        ("keys 128 24", "n", keys_for_subtasks, "n", 1),
        ("keys 128 24", "prefix", keys_for_subtasks, "prefix", ""),
        ("savepoint a", "top", operator_reports, "top", 5),
    ],
)
def test_defaults_of_a_command_are_those_of_the_library(
    arguments: str, option: str, call: Any, name: str, default: object
) -> None:
    options = build_parser(*_ADD_COMMANDS).parse_args(arguments.split())
    assert getattr(options, option) == signature(call).parameters[name].default == default


# --- standard streams -------------------------------------------------------------------


class Full(io.StringIO):
    """A stream on a full disk, which says so at a write or, as files do, when it is flushed."""

    def __init__(self, method: str) -> None:
        super().__init__()
        self.failures = 0
        setattr(self, method, self._fail)

    def _fail(self, *_: object) -> int:
        self.failures += 1
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("arguments", [["default", "24"], ["--help"], ["trace", "--help"]])
def test_closed_output(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert main(arguments) == 1
    text = capsys.readouterr().err
    assert text.startswith("keygroups")
    assert text.endswith(": standard output is closed\n")


def test_nothing_is_done_for_a_closed_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    rewrite = ("savepoint", SAVEPOINT, "--set-max-parallelism", "64", "--output")
    assert main([*rewrite, str(tmp_path / "new")]) == 1
    assert not list(tmp_path.iterdir())
    assert main(["foo"]) == 2


@pytest.mark.parametrize("method", ["write", "flush"])
@pytest.mark.parametrize("arguments", [["keys", "128", "24"], ["--help"]])
def test_full_output(
    method: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(sys, "stdout", Full(method))
    assert main(arguments) == 1
    says = ": standard output cannot be written: No space left on device\n"
    assert capsys.readouterr().err.endswith(says)


@pytest.mark.parametrize("stream", [None, Full("write"), Full("flush")])
def test_errors_that_nobody_reads(
    stream: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The status says it; they are not what the command answers, and wait for no end of Python."""
    monkeypatch.setattr(sys, "stderr", stream)
    assert main(["foo"]) == 2
    assert main(["savepoint", "/nowhere"]) == 1
    assert capsys.readouterr().out == ""
    assert stream is None or stream.failures >= 2


class Failing(io.StringIO):
    """A stream that cannot be read, as a terminal of another process group."""

    def read(self, size: int | None = -1) -> str:
        raise OSError(errno.EIO, "Input/output error")

    def readline(self, size: int = -1) -> str:  # type: ignore[override]  # TextIOBase has it so
        raise OSError(errno.EIO, "Input/output error")


@pytest.mark.parametrize(
    ("stream", "says"),
    [(None, "standard input(, which)? is closed"), (Failing(), "Input/output error")],
)
def test_input_that_cannot_be_read(
    stream: Any, says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", stream)
    for arguments in ("trace - -m 128 -p 4", "plan 8 2 3 --load -"):
        assert main(arguments.split()) == 2
        text = capsys.readouterr()
        assert text.out == ""
        assert text.err.count("\n") == 1
        assert re.search(says, text.err)


# --- signals ----------------------------------------------------------------------------

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


def send(name: str, handlers: dict[str, Any]) -> None:
    """Send a signal to this process, which must not end with it."""
    number = getattr(signal, name)
    assert signal.getsignal(number) != handlers[name]
    signal.raise_signal(number)


@pytest.mark.parametrize(
    ("write", "what"),
    [
        ("_edits.keyed_state.EditedKeyedState.write", ("--set-max-parallelism", "64")),
        (
            "_edits.keyed_state.EditedKeyedState.write",
            ("--delete-keys", "-", "--operator", "by-string"),
        ),
    ],
)
@pytest.mark.parametrize("name", SIGNALS)
def test_signals_leave_nothing(
    name: str,
    write: str,
    what: tuple[str, ...],
    run: Any,
    handlers: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nor do others, which come while what was begun is removed."""
    removed = shutil.rmtree

    def interrupted(*_: object) -> None:
        assert list(tmp_path.iterdir())
        send(name, handlers)

    def remove(path: Path, **named: Any) -> None:
        for other in SIGNALS:
            send(other, handlers)
        try:
            raise OSError
        except OSError:
            send(name, handlers)
        removed(path, **named)

    monkeypatch.setattr(f"keygroups.savepoint.{write}", interrupted)
    monkeypatch.setattr(shutil, "rmtree", remove)
    ended = run("savepoint", SAVEPOINT, *what, "--output", str(tmp_path / "new"), passed=b"a\n")
    assert ended == (128 + getattr(signal, name), "", "")
    assert not list(tmp_path.iterdir())
    assert {one: signal.getsignal(getattr(signal, one)) for one in SIGNALS} == handlers


def test_signal_that_is_lost(
    run: Any, handlers: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python drops what is raised where an object is collected: the next one ends the command."""

    def interrupted(number: int) -> int:
        with suppress(KeyboardInterrupt):
            send("SIGTERM", handlers)
        send("SIGTERM", handlers)
        return number

    monkeypatch.setattr("keygroups.cli._key_groups.evenness", interrupted)
    assert run("evenness", "12") == (143, "", "")


def test_signals_that_are_ignored_or_handled(
    run: Any, handlers: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As SIGHUP under nohup is, and by who calls the command."""
    seen = []

    def interrupted(number: int) -> list[int]:
        signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(signal.SIGTERM)
        return [number]

    def handle(number: int, frame: object) -> None:
        seen.append(number)

    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, handle)
    monkeypatch.setattr("keygroups.cli._key_groups.evenness", interrupted)
    assert ok(run("evenness", "12")) == "12\n"
    assert seen == [signal.SIGTERM]
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGTERM) is handle


def test_a_thread_has_no_signals(run: Any) -> None:
    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(run, "default", "24").result()
    assert ok(ended) == "128\n"


def test_signals_of_the_process_that_ends(
    tmp_path: Path, handlers: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until Python ends another signal prints no traceback, and what was held goes nowhere."""
    change = signal.signal

    def interrupted(number: int) -> int:
        print("held")
        monkeypatch.setattr(signal, "signal", interrupted_again)
        send("SIGTERM", handlers)
        return number

    def interrupted_again(number: int, handler: Any) -> None:
        signal.raise_signal(number)
        change(number, handler)

    monkeypatch.setattr("keygroups.cli._key_groups.evenness", interrupted)
    monkeypatch.setattr(sys, "argv", ["keygroups", "evenness", "12"])
    with (tmp_path / "output").open("w", encoding="ascii") as output:
        monkeypatch.setattr(sys, "stdout", output)
        assert main() == 143
    assert (tmp_path / "output").read_bytes() == b""
    assert {signal.getsignal(getattr(signal, name)) for name in SIGNALS} == {signal.SIG_IGN}


def test_interrupt_is_quiet(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(number: int) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("keygroups.cli._key_groups.evenness", interrupt)
    assert run("evenness", "12") == (130, "", "")


class Interrupting:
    def __set_name__(self, owner: type, name: str) -> None:
        raise KeyboardInterrupt


def test_interrupt_while_a_class_is_made_is_quiet(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As while a module is imported; Python 3.11 makes a RuntimeError of it."""

    def imports(number: int) -> int:
        type("Imported", (), {"field": Interrupting()})
        return number

    monkeypatch.setattr("keygroups.cli._key_groups.evenness", imports)
    assert run("evenness", "12") == (130, "", "")


def test_an_error_of_ours_is_not_taken_for_an_interrupt(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(number: int) -> int:
        raise RuntimeError(number)

    monkeypatch.setattr("keygroups.cli._key_groups.evenness", fail)
    with pytest.raises(RuntimeError, match="12"):
        run("evenness", "12")


def test_broken_pipe_is_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w", encoding="ascii") as pipe:  # noqa: PTH123  # a descriptor has no path
        monkeypatch.setattr(sys, "stdout", pipe)
        assert main(["keys", "32768", "32768"]) == 141


# --- as a process -----------------------------------------------------------------------


def test_head_of_a_pipe() -> None:
    command = f'"{sys.executable}" -m keygroups trace - -m 128 -p 24 --type LONG | head -n 1'
    keys = b"".join(b"%d\n" % number for number in range(20_000))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(command, shell=True, input=keys, capture_output=True, env=environment)
    subtask = assign_key_to_parallel_operator(0, 128, 24)
    assert run.stdout == b"%d\t%d\t0\n" % (subtask, assign_to_key_group(0, 128))
    assert run.stderr == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="of Linux")
def test_full_disk() -> None:
    """Nor does Python say so once more when it ends."""
    command = f'"{sys.executable}" -m keygroups keys 128 24 >/dev/full'
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(command, shell=True, capture_output=True, env=environment)
    assert run.returncode == 1
    assert run.stderr.endswith(b"cannot be written: No space left on device\n")
    assert run.stderr.count(b"\n") == 1


def test_terminated() -> None:
    with subprocess.Popen(
        [sys.executable, "-u", "-m", "keygroups", "trace", "-", "-m", "128", "-p", "1"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"a\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"0\t%d\ta\n" % assign_to_key_group("a", 128)
        process.terminate()
        assert process.communicate() == (b"", b"")
    assert process.returncode == 128 + signal.SIGTERM


@pytest.mark.long
def test_terminated_where_nobody_reads() -> None:
    """What was not written yet does not hold up the end."""
    with subprocess.Popen(
        [sys.executable, "-m", "keygroups", "keys", "32768", "32768"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.read(1) == b"0"  # and the pipe fills up behind it
        process.terminate()
        try:
            assert process.wait(60) == 128 + signal.SIGTERM
        finally:
            process.kill()
        assert process.stderr is not None
        assert process.stderr.read() == b""


@pytest.mark.long
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_terminals_that_cannot_show_the_key(encoding: str) -> None:
    text = "caf\u00e9 \u20ac"
    passed = "caf\u00e9\n".encode(encoding, "replace")
    line = in_a_process(
        "trace", "-", "-m", "128", "-p", "24", passed=passed, PYTHONIOENCODING=encoding
    )
    key = passed.decode(encoding).strip()
    subtask = assign_key_to_parallel_operator(key, 128, 24)
    assert line.returncode == 0
    assert line.stdout.startswith(b"%d\t" % subtask)
    ended = in_a_process("trace", text, "-m", "128", "-p", "24", PYTHONIOENCODING=encoding)
    assert ended.returncode == 0
    assert b"key group    %d" % assign_to_key_group(text, 128) in ended.stdout
    assert text.encode(encoding, "backslashreplace") in ended.stdout


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="Windows has no arguments of bytes")
def test_bytes_that_are_no_text() -> None:
    ended = in_a_process("trace", b"caf\xe9", "-m", "128", "-p", "24", PYTHONUTF8="1")
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert ended.stderr.count(b"\n") == 1
    ended = in_a_process("savepoint", b"\xff", PYTHONUTF8="1")
    assert ended.returncode == 1
    assert ended.stderr.count(b"\n") == 1


def test_lone_surrogate_in_a_key() -> None:
    key_type = "TUPLE(STRING)"
    ended = in_a_process("trace", r"('\ud800',)", "-m", "128", "-p", "24", "--type", key_type)
    assert ended.returncode == 0
    assert b"key group    %d" % assign_to_key_group(("\ud800",), 128) in ended.stdout


@pytest.mark.parametrize("arguments", [("default", "24"), ("trace", "a", "-m", "128", "-p", "24")])
def test_a_command_imports_what_it_needs(arguments: tuple[str, ...]) -> None:
    """So that it starts fast, which depends on the machine and is measured elsewhere."""
    code = (
        "import sys; from keygroups.cli import main; main(sys.argv[1:]); "
        "print(*sorted(sys.modules))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, env=environment
    )
    imported = set(run.stdout.splitlines()[-1].split())
    assert not imported & {"json", "urllib.request", "http.client", "keygroups.savepoint"}
    assert not imported & {"numpy", "pyspark", "hypothesis", "fsspec", "keygroups.testing"}


@pytest.mark.parametrize("arguments", [("--version",), ("nosuch",)])
def test_the_module_is_the_command(arguments: tuple[str, ...], run: Any) -> None:
    """Its name, its status and its lines."""
    ended = in_a_process(*arguments)
    here = run(*arguments)
    assert (ended.returncode, ended.stdout.decode(), ended.stderr.decode()) == here
    assert "keygroups" in here.out + here.err


def test_version_of_the_command() -> None:
    """The project installs the command that is tested here."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert '[project.scripts]\nkeygroups = "keygroups.cli:main"\n' in project
    assert callable(keygroups.cli.main)


def test_version_is_that_of_what_is_installed() -> None:
    assert keygroups.__version__ == version("keygroups")


# --- refusals --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("top must be from 1, got 0", "--top must be from 1, got 0"),
        ("path must be a str, got 5", "PATH must be a str, got 5"),
        ("new_max_parallelism must be 5", "--set-max-parallelism must be 5"),
        ("key_type must be 5", "--type must be 5"),
        ("savepoint_max_parallelism must be 5", "the savepoint's max parallelism must be 5"),
        ("operator_parallelism must be 5", "PARALLELISM must be 5"),
        ("s: read it with to_arrow_batch_reader", "s: read it with --export"),
        ("a file must be 5", "a file must be 5"),
        ("subtasks must be from 1 to 5 (parallelism), got 7",) * 2,
        (
            "parallelism must be from 1 to 5 (max_parallelism), got 7",
            "--parallelism must be from 1 to 5 (max_parallelism), got 7",
        ),
        (
            "s: it is not in the savepoint: pass allow=['/a'] if it is to be read there, or moved "
            "to say where it is now, as in moved={'/a': '/b' or '/c', '/d': ...}",
            "s: it is not in the savepoint: pass --allow '/a' if it is to be read there, or "
            "--moved to say where it is now, as in --moved /a=/b --moved /d=NEW",
        ),
        ("pass moved={old: new} for 5", "pass --moved OLD=NEW for 5"),
        (
            "5 is the most: keygroups.savepoint.change_max_parallelism writes more",
            "5 is the most: `keygroups savepoint PATH --set-max-parallelism N --output NEW` "
            "writes more",
        ),
    ],
)
def test_refusals_name_options(text: str, shown: str) -> None:
    [commands] = (one for one in build_parser(*_ADD_COMMANDS)._actions if one.dest == "command")
    assert isinstance(commands.choices, dict)
    shown = shown.replace("(parallelism), got 7", "(--parallelism), got 7")
    assert in_shell(text, commands.choices["savepoint"]) == shown
    assert in_shell("text must be 5", None) == "text must be 5"


def test_errors_are_json_too(run: Any, tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere")
    for arguments, status, says in [
        (("savepoint", nowhere), 1, "No such file"),
        (("range", "128", "24", "24"), 2, "SUBTASK must be from 0 to 23, got 24"),
        (("range", "128", "24", "x"), 2, "argument SUBTASK: must be an int, got 'x'"),
    ]:
        ended = run(*arguments, "--json")
        assert (ended.status, ended.out) == (status, "")
        error = json.loads(ended.err)
        assert (error["command"], error["status"]) == (f"keygroups {arguments[0]}", status)
        assert says in error["error"]


def test_no_command_prints_the_usage(run: Any) -> None:
    text = ok(run())
    assert text.startswith("usage: keygroups [-h] [--version] COMMAND ...")
    assert text == ok(run("--help"))


def test_a_moved_folder_that_nothing_is_in(run: Any, tmp_path: Path) -> None:
    says = "--moved must have an OLD that paths of files start with, got '/nowhere'"
    refused(run("diff", SAVEPOINT, SAVEPOINT, "--moved", "/nowhere=/new"), says)
    task = sb.subtask(managed_keyed=sb.canonical(0, [0], sb.absolute("/old/a", 5)))
    path = str(sb.write(tmp_path / "a", [sb.operator([task])]))
    says = "start with, such as '/old/a', got '/nowhere'"
    refused(run("savepoint", path, "--moved", "/nowhere=/new"), says)
    assert run("savepoint", path, "--moved", f"/old={tmp_path}").status == 0


def test_operators_of_one_name_have_their_ids(run: Any, tmp_path: Path) -> None:
    ids = [bytes([number] * 16) for number in (1, 2)]
    twice = [sb.operator([], name="Sink: Writer", operator_id=by_id) for by_id in ids]
    path = str(sb.write(tmp_path / "a", [*twice, sb.operator([], uid="a")]))
    text = ok(run("savepoint", path))
    for by_id in ids:
        assert f"Sink: Writer ({by_id.hex()})" in text
    assert f"Sink: Writer ({ids[0].hex()}), Sink: Writer ({ids[1].hex()})" in (
        run("savepoint", path, "--operator", "Sink: Writer").err
    )
    assert "a (" not in text


def test_the_folder_of_a_job_lists_its_checkpoints(run: Any, tmp_path: Path) -> None:
    for number, time in ((7, 86_400), (12, 172_800)):
        sb.write(tmp_path / f"chk-{number}", [])
        os.utime(tmp_path / f"chk-{number}" / "_metadata", (time, time))
    (tmp_path / "shared").mkdir()
    (tmp_path / "file").touch()
    ended = run("savepoint", str(tmp_path))
    assert (ended.status, ended.out) == (1, "")
    assert ended.err == (
        f"keygroups savepoint: {tmp_path}: it has no _metadata, but is the folder of a job or of "
        "savepoints: name one of chk-12 (1970-01-03 00:00 UTC), chk-7 (1970-01-02 00:00 UTC)\n"
    )
    for number in range(20, 31):
        sb.write(tmp_path / f"chk-{number}", [])
    assert run("savepoint", str(tmp_path)).err.endswith(", and 3 older ones\n")


def test_each_command_has_two_examples_that_it_takes() -> None:
    parser = build_parser(*_ADD_COMMANDS)
    [commands] = (one for one in parser._actions if one.dest == "command")
    assert isinstance(commands.choices, dict)
    assert commands.choices.keys() == EXAMPLES.keys()
    for name, command in commands.choices.items():
        _, _, below = command.format_help().partition("\nexamples:\n")
        assert below.splitlines() == [f"  {line}" for line in EXAMPLES[name]]
        for line in EXAMPLES[name]:
            words = shlex.split(re.split(r" (?:[|<]|>>?) ", line)[0])
            assert parser.parse_args(words[1:]).command == name


def test_the_options_of_a_savepoint_are_in_groups() -> None:
    [commands] = (one for one in build_parser(*_ADD_COMMANDS)._actions if one.dest == "command")
    assert isinstance(commands.choices, dict)
    text = commands.choices["savepoint"].format_help()
    places = [
        text.index(f"\n{title}:\n")
        for title in (
            "look at it",
            "read keyed state",
            "write it anew",
            "where its files are, and what its operators are called",
        )
    ]
    assert places == sorted(places)


PATHS = "--moved OLD=NEW, again; --uids FILE; --allow PREFIX, again"
ARGUMENTS_OF = {
    "trace": "KEY; --max-parallelism N, required; --parallelism N, required; --type TYPE",
    "plan": "MAX_PARALLELISM; OLD_PARALLELISM; NEW_PARALLELISM; --load FILE",
    "range": "MAX_PARALLELISM; PARALLELISM ?; SUBTASK ?; --key-groups KEY_GROUP 2",
    "where": "KEY_GROUP; MAX_PARALLELISM; PARALLELISM ?",
    "explain": "TEXT; --max-parallelism N; --parallelism N",
    "default": "PARALLELISM",
    "keys": "MAX_PARALLELISM; PARALLELISM; --type TYPE; --prefix TEXT; -n N = 1; --start N",
    "evenness": "MAX_PARALLELISM",
    "counts": "MAX_PARALLELISM; FILE",
    "suggest": "PARALLELISM +; --growth N = 1",
    "savepoint": "PATH; --operator UID, again; --parallelism N; --top N = 5; --full; "
    "--ends FILE; --html FILE; --export FILE; --state NAME; --key KEY; --type TYPE; "
    "--output PATH; "
    "--set-max-parallelism N; --delete-keys FILE, again; --remove-operator UID, again; "
    f"--rename-operator OLD=NEW, again; --clean; --relocate PATH; {PATHS}",
    "verify": f"PATH; --operator UID, again; {PATHS}",
    "doctor": "PLACE; JOB_ID ?; --against OLD; --ends FILE; --timeout N = 10.0; "
    "--header 'NAME: VALUE', again; "
    f"--ca-file FILE; --client-certificate FILE; --client-key FILE; {PATHS}",
    "diff": f"OLD; NEW +; --operator UID, again; --state STATE, again; --exit-code; {PATHS}",
    "restore": f"OLD; NEW; {PATHS}",
    "files": f"PATH; --older-than HOURS = 24.0; --other PATH, again; --delete; {PATHS}",
    "job": "URL; JOB_ID ?; --vertex NAME; --savepoints; --watch N; --timeout N = 10.0; "
    "--header 'NAME: VALUE', again; --ca-file FILE; --client-certificate FILE; --client-key FILE",
    "completion": "bash zsh fish tcsh powershell",
}


def test_the_arguments_of_each_command() -> None:
    """A command that scripts call keeps them: name, value, how many, default."""
    [commands] = (one for one in build_parser(*_ADD_COMMANDS)._actions if one.dest == "command")
    assert isinstance(commands.choices, dict)
    assert commands.choices.keys() == ARGUMENTS_OF.keys()
    for name, command in commands.choices.items():
        texts = []
        for argument in command._actions:
            value = argument.metavar or ("" if argument.nargs == 0 else argument.dest.upper())
            words = [*argument.option_strings[-1:], " ".join(argument.choices or [value])]
            words += [str(argument.nargs)] if argument.nargs else []
            words += [f"= {argument.default}"] if argument.default else []
            again = ", again" if type(argument).__name__ == "_AppendAction" else ""
            is_required = argument.required and argument.option_strings
            texts.append(" ".join(filter(None, words)) + again + ", required" * bool(is_required))
        assert [
            text for text in texts if text not in ("--help = ==SUPPRESS==", "--json", "--quiet")
        ] == (ARGUMENTS_OF[name].split("; "))
        assert len(texts) == len(ARGUMENTS_OF[name].split("; ")) + 3


def test_counts_are_read_for_a_max_parallelism_alone(run: Any) -> None:
    refused(run("counts", "0", "/nowhere/file"), "MAX_PARALLELISM must be from 1 to 32768")
