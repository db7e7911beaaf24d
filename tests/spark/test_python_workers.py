"""Which Python Spark's workers run: one that cannot do the work is refused in a line."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch
from weakref import WeakKeyDictionary

import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

import keygroups
from keygroups.errors import PythonWorkerError
from keygroups.savepoint import read_savepoint
from keygroups.spark import _workers, read_keyed_state
from keygroups.spark._workers import ARRAYS, STATE, trouble_of, trouble_of_failure

SAVEPOINT = Path(__file__).parents[2] / "examples" / "data" / "savepoint"
SETTING = "spark.sql.execution.pyspark.python"  # a session's, over PYSPARK_PYTHON
OURS = keygroups.__version__
ALL = ["google.protobuf", "numpy", "pandas", "pyarrow"]


def answer(**changed: Any) -> dict[str, Any]:
    good = {"version": "3.11.2", "executable": "/usr/bin/python3", "keygroups": OURS}
    own = json.loads(_workers._asking(())(0))["sources"]
    return good | {"sources": own, "folder": "/app", "error": None, "modules": ALL} | changed


@pytest.mark.parametrize(
    ("changed", "extra", "says"),
    [
        ({}, ARRAYS, None),
        ({"modules": []}, None, None),
        ({"modules": ["numpy", "pyarrow"]}, ARRAYS, None),
        ({"modules": ALL[:3]}, ARRAYS, "without pyarrow of keygroups[arrays]"),
        ({"modules": ["pyarrow"]}, STATE, "without google.protobuf, pandas of keygroups[state]"),
        ({"keygroups": "0.0.1"}, None, "with keygroups 0.0.1"),
        ({"sources": 1}, None, f"with another keygroups {OURS}, that of /app"),
        ({"sources": None}, None, None),  # a keygroups that is compiled
        ({"keygroups": None, "error": "no"}, None, "which cannot import keygroups (no)"),
    ],
)
def test_what_is_wrong_with_a_worker(
    changed: dict[str, Any], extra: str | None, says: str | None
) -> None:
    runs = "run Python 3.11.2, /usr/bin/python3, "
    assert trouble_of(answer(**changed), extra) == (None if says is None else runs + says)


# What Spark 4.3 and, of the version, 3.5 say; there are some fifty lines more.
@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.10 than that in "
            "driver: 3.11, PySpark cannot run with different minor versions.",
            "run Python 3.10",
        ),
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version (3, 9) than that in "
            "driver 3.10, PySpark cannot run with different minor versions.",
            "run Python 3.9",
        ),
        (
            '(executor driver): java.io.IOException: Cannot run program "/nowhere/python": '
            "error=2, No such file or directory\n\tat java.base/java.lang.ProcessBuilder.start",
            "cannot be started, as /nowhere/python cannot be run (error=2, No such file or "
            "directory)",
        ),
        (
            'IOException: Cannot run program "python3" (in directory "/gone"): error=2, No',
            'cannot be started, as python3 cannot be run in directory "/gone" (error=2, No)',
        ),
        (
            "org.apache.spark.SparkException: \nError from python worker:\n  Traceback (most "
            "recent call last):\n    File \"/x.py\", line 81\n  SyntaxError: invalid syntax\n"
            "PYTHONPATH was:\n  /pyspark.zip\norg.apache.spark.SparkException: EOFException",
            "cannot be started (SyntaxError: invalid syntax)",
        ),
        ("Job aborted due to stage failure: ExecutorLostFailure", None),
    ],
)  # fmt: skip
def test_why_no_worker_answers(text: str, says: str | None) -> None:
    assert trouble_of_failure(f"An error occurred.\n: {text}\n\tat x") == says


def pickled_question(*modules: str) -> bytes:
    """Return the pickled function that Spark sends to a worker."""
    question: bytes = cloudpickle.dumps(_workers._asking(modules))  # type: ignore[no-untyped-call]  # PySpark's copy has no types.
    return question


def test_a_worker_without_keygroups_can_answer() -> None:
    """What it runs is pickled whole: here where every module of keygroups is one not to import."""
    sent = pickled_question("json", "no_such.module")
    ours = [name for name in sys.modules if name.partition(".")[0] == "keygroups"]
    with patch.dict(sys.modules, dict.fromkeys(ours)):
        text = json.loads(pickle.loads(sent)(0))
    assert text["error"].startswith("ModuleNotFoundError: import of keygroups halted")
    assert (text["keygroups"], text["modules"]) == (None, ["json"])
    assert (text["executable"], text["prefix"]) == (sys.executable, sys.prefix)
    assert text["version"] == ".".join(map(str, sys.version_info[:3]))


@pytest.mark.long
@pytest.mark.parametrize("is_zip", [False, True])
def test_a_worker_with_other_modules_says_so(tmp_path: Path, is_zip: bool) -> None:
    """A copy that is the driver's, as a folder or as `addPyFile` has it, and one that is not."""
    package = Path(keygroups.__file__).parent
    ours = json.loads(_workers._asking(())(0))["sources"]
    answers: list[dict[str, Any]] = []
    for changed in (b"", b"\n# another\n"):
        folder = tmp_path / str(len(answers))
        copy = folder / "keygroups"
        shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
        with (copy / "types.py").open("ab") as file:
            file.write(changed)
        path = shutil.make_archive(str(folder), "zip", folder) if is_zip else str(folder)
        code = (
            f"import pickle, sys; sys.path.insert(0, {path!r}); "
            "print(pickle.load(sys.stdin.buffer)(0))"
        )
        run = subprocess.run(
            [sys.executable, "-c", code],
            input=pickled_question(),
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            check=True,
        )
        answers.append(json.loads(run.stdout))
        assert answers[-1]["folder"] == path
    assert answers[0]["sources"] == ours
    assert answers[1]["sources"] != ours


@pytest.fixture
def unasked(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A session whose workers were not asked, with the Python that it had at the end."""
    monkeypatch.setattr(_workers, "_answers", WeakKeyDictionary())
    yield
    spark.conf.unset(SETTING)


def read(spark: SparkSession) -> list[Any]:
    counts = read_keyed_state(spark, SAVEPOINT, "by-string", "count", key_groups=[97])
    return [row["value"] for row in counts.collect()]


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(PythonWorkerError) as raised:
        call()
    message = str(raised.value)
    assert "\n" not in message
    assert len(message) < 600
    for text in ("PYSPARK_PYTHON", "spark.pyspark.python", sys.executable, f"keygroups {OURS}"):
        assert text in message
    return message


@pytest.mark.slow
@pytest.mark.usefixtures("unasked")
def test_workers_are_asked_once(spark: SparkSession, collected: list[int]) -> None:
    assert read(spark) == [5]
    assert collected == [1, 1]  # the answer, and the entry
    assert read(spark) == [5]
    assert collected == [1, 1, 1]


@pytest.mark.long
@pytest.mark.usefixtures("unasked")
def test_a_python_that_is_not_there(spark: SparkSession) -> None:
    spark.conf.set(SETTING, "/nowhere/python")
    message = refusal(lambda: read(spark))
    assert "cannot be started, as /nowhere/python cannot be run (error=2, No such" in message
    spark.conf.set(SETTING, sys.executable)  # a refusal is not for ever
    assert read(spark) == [5]


JOB = """
import sys
from pyspark.sql import SparkSession
from keygroups.spark import KeyedState, ValueState, write_savepoint
from keygroups.types import LONG, STRING

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
df = spark.createDataFrame([("ann", 7)], "user string, n bigint")
state = KeyedState(df, "user", STRING, {"count": ValueState("n", LONG)})
write_savepoint(None, sys.argv[1], {"by-user": state}, 128, 1)
"""


@pytest.mark.slow
def test_the_same_python_without_the_folder(tmp_path: Path) -> None:
    """A driver in a checkout finds keygroups there, and its workers do not: no Python is wrong."""
    folder = Path(keygroups.__file__).parents[1]
    job = tmp_path / "job.py"
    job.write_text(f"import sys\nsys.path.insert(0, {str(folder)!r})\n{JOB}")
    # A venv of the same Python and packages, in which keygroups is not installed.
    packages = [path for path in sys.path if Path(path).name == "site-packages"]
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True
    )
    [site] = (tmp_path / "venv" / "lib").glob("python3*/site-packages")
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "PYSPARK_PYTHON")
    }
    for path in packages:
        for entry in Path(path).iterdir():
            if "keygroups" not in entry.name and entry.suffix != ".pth":
                (site / entry.name).symlink_to(entry)
    python = str(tmp_path / "venv" / "bin" / "python")

    def run_with(**more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [python, str(job), str(tmp_path / "savepoint")],
            env=environment | {"PYSPARK_PYTHON": python} | more,
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )

    run = run_with()
    lines = [line for line in run.stderr.splitlines() if "PythonWorkerError:" in line]
    assert len(lines) == 1, run.stderr
    assert "which cannot import keygroups" in lines[0]
    assert "PYSPARK_PYTHON" not in lines[0]
    named = re.search(r" of (\S*): install .* name the folder in .* PYTHONPATH before", lines[0])
    assert named
    run = run_with(PYTHONPATH=named[1])
    assert run.returncode == 0, run.stderr


@pytest.mark.slow
def test_a_python_without_keygroups(tmp_path: Path) -> None:
    """A job of its own, which is not told what its workers are to run."""
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True
    )
    python = tmp_path / "venv" / "bin" / "python"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    job = tmp_path / "job.py"
    job.write_text(JOB)

    def run_with(workers: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(job), str(tmp_path / "savepoint")],
            env=environment | {"PYSPARK_PYTHON": workers},
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )

    run = run_with(str(python))
    assert run.returncode == 1
    lines = [line for line in run.stderr.splitlines() if "PythonWorkerError:" in line]
    assert len(lines) == 1, run.stderr
    assert re.search(f", {re.escape(str(python))}, which cannot import keygroups", lines[0])
    assert "No module named 'keygroups'" in lines[0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["job.py", "venv"]
    such_as = re.search(" variable PYSPARK_PYTHON.* such as (.*) before Spark", lines[0])
    assert such_as
    run = run_with(such_as[1])
    assert run.returncode == 0, run.stderr
    assert read_savepoint(tmp_path / "savepoint").operator("by-user").max_parallelism == 128
