"""Checks the Python that Spark's workers run, before the first job that has such workers.

Spark starts the `python3` that it finds unless a setting names one. A Python without keygroups
would fail in the midst of the query, on a page of traces.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

import keygroups
from keygroups.errors import PythonWorkerError
from keygroups.spark._columns.arguments import is_connect

ARRAYS, STATE = "arrays", "state"
_EXTRAS = {ARRAYS: ("numpy", "pyarrow"), STATE: ("google.protobuf", "pandas", "pyarrow")}

# How Spark says that no worker answers. In 3.5 the version is "(3, 10)", from 4.0 on "3.10".
_OTHER_VERSION = re.compile(r"different version:? \(?(\d+)(?:\.|, )(\d+)\)? than that in driver")
_NOT_THERE = re.compile(
    r'Cannot run program "([^"\n]*)"(?: \((in directory "[^"\n]*")\))?: ([^\n]*)'
)

# Answers of good workers, by the SparkContext or by the session of Spark Connect.
_answers: WeakKeyDictionary[Any, Mapping[str, Any]] = WeakKeyDictionary()


def check_workers(spark: SparkSession, extra: str | None = ARRAYS) -> None:
    """Refuse a session whose Python workers have no keygroups, or another, or lack an extra of it.

    A small job asks one of them, once a session if all is well. Raises PythonWorkerError, in one
    line. If that job fails for another reason, nothing is raised: the caller's own job will fail.
    """
    connect = is_connect(spark)
    place: Any = spark if connect else spark.sparkContext
    if place in _answers and trouble_of(_answers[place], extra) is None:
        return
    modules = {module for names in _EXTRAS.values() for module in names}
    ask = F.udf(_asking(modules), T.StringType(), useArrow=False)
    answer: Mapping[str, Any] = {}
    try:
        [[text]] = spark.range(0, 1, 1, 1).select(ask("id")).collect()
    except Exception as error:
        trouble = trouble_of_failure(str(error))
    else:
        answer = json.loads(text)
        trouble = trouble_of(answer, extra)
        if trouble is None:
            _answers[place] = answer
    if trouble is None:
        return
    is_local = not connect and place.master.startswith("local")
    starts = f"before {'the server' if connect else 'Spark'} starts"
    raise PythonWorkerError(
        f"Spark's Python workers {trouble}, where the driver {_remedy(answer, is_local)} {starts}"
    )


def _remedy(answer: Mapping[str, Any], is_local: bool) -> str:
    """Return the Python of the driver, and the way to make workers like it.

    A worker with the driver's Python may still miss modules: the driver also looks in its script's
    folder, and in those that were added to its path.
    """
    version = ".".join(map(str, sys.version_info[:3]))
    runs = f"runs Python {version}, {sys.executable}, with keygroups {keygroups.__version__}"
    if (answer.get("version"), answer.get("prefix")) == (version, sys.prefix):
        folder = Path(keygroups.__file__).parents[1]
        return (
            f"{runs} of {folder}: install that with its extras into the workers' Python, or name "
            "the folder in the environment variable PYTHONPATH"
        )
    such_as = f" such as {sys.executable}" if is_local else ""
    return (
        f"{runs}: set the environment variable PYSPARK_PYTHON, or spark.pyspark.python for "
        f"spark-submit, to a Python like the driver's{such_as}"
    )


def trouble_of(answer: Mapping[str, Any], extra: str | None) -> str | None:
    """Return the fault of a Python by its worker's answer; None if it has none."""
    runs = f"run Python {answer['version']}, {answer['executable']},"
    if answer["keygroups"] is None:
        return f"{runs} which cannot import keygroups ({answer['error']})"
    if answer["keygroups"] != keygroups.__version__:
        return f"{runs} with keygroups {answer['keygroups']}"
    # Two checkouts of one version may not understand each other, or give nulls in silence.
    if answer["sources"] not in (None, _own_sources()):
        return f"{runs} with another keygroups {answer['keygroups']}, that of {answer['folder']}"
    missing = [
        module for module in _EXTRAS.get(extra or "", ()) if module not in answer["modules"]
    ]
    if missing:
        return f"{runs} without {', '.join(missing)} of keygroups[{extra}]"
    return None


@cache
def _own_sources() -> int | None:
    """Return the checksum of the driver's own modules, which its workers are to have too."""
    sources: int | None = json.loads(_asking(())(None))["sources"]
    return sources


def trouble_of_failure(text: str) -> str | None:
    """Return the fault of a Python whose worker did not answer, None for any other error."""
    if match := _OTHER_VERSION.search(text):
        return f"run Python {match[1]}.{match[2]}"
    if match := _NOT_THERE.search(text):
        where = f" {match[2]}" if match[2] else ""  # it may be the folder that is not there
        return f"cannot be started, as {match[1]} cannot be run{where} ({match[3]})"
    output, ended, _ = text.partition("Error from python worker:")[2].partition("PYTHONPATH was:")
    if ended and output.strip():
        return f"cannot be started ({output.strip().splitlines()[-1].strip()})"
    return None


def _asking(modules: Collection[str]) -> Callable[[Any], str]:
    """Return the function that a worker runs.

    It is pickled by value, as no module has it by a name, and imports modules of Python only: the
    worker may have no keygroups.
    """
    names = sorted(modules)

    def ask(_: object) -> str:
        import json
        import sys
        from importlib.resources import files
        from importlib.util import find_spec
        from pathlib import PurePath
        from zlib import crc32

        def is_there(module: str) -> bool:
            try:
                return find_spec(module) is not None
            except ModuleNotFoundError:  # The package around the module is missing.
                return False

        def checksum(folder: Any, before: int) -> int:
            """Return a checksum of a folder's modules, from which compiled ones are absent."""
            for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
                if entry.is_dir():
                    before = checksum(entry, before)
                elif entry.name.endswith(".py"):
                    lines = entry.read_bytes().splitlines()
                    before = crc32(b"\n".join([entry.name.encode(), *lines]), before)
            return before

        version = error = sources = folder = None
        try:
            import keygroups

            version = keygroups.__version__
            sources = checksum(files("keygroups"), 0) or None
            folder = str(PurePath(keygroups.__file__).parents[1])
        except Exception as raised:  # Another module of that name may raise anything.
            error = f"{type(raised).__name__}: {raised}"
        return json.dumps(
            {
                "version": ".".join(map(str, sys.version_info[:3])),
                "executable": sys.executable,
                "prefix": sys.prefix,
                "keygroups": version,
                "sources": sources,
                "folder": folder,
                "error": error,
                "modules": [*filter(is_there, names)],
            }
        )

    return ask
