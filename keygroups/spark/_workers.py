"""Which Python Spark's workers run, asked before the first job that has such workers.

Spark starts the `python3` that it finds unless it is told which. One without keygroups would fail
in the midst of the query, on a page of traces.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Collection, Mapping
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
    r'Cannot run program "([^"\n]*)"(?: \(in directory "[^"\n]*"\))?: ([^\n]*)'
)

# By the SparkContext, or by the session of Spark Connect: it says what a good worker answered.
_answers: WeakKeyDictionary[Any, Mapping[str, Any]] = WeakKeyDictionary()


def check_workers(spark: SparkSession, extra: str | None = ARRAYS) -> None:
    """Refuse a session whose Python workers have no keygroups, or another, or lack an extra of it.

    A small job asks one of them, once a session if all is well. Raises PythonWorkerError, in one
    line. Where that job fails for another reason, what it was for says so itself.
    """
    connect = is_connect(spark)
    place: Any = spark if connect else spark.sparkContext
    if place in _answers and trouble_of(_answers[place], extra) is None:
        return
    modules = {module for names in _EXTRAS.values() for module in names}
    ask = F.udf(_asking(modules), T.StringType(), useArrow=False)
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
    such_as = ""
    if not connect and place.master.startswith("local"):
        such_as = f" such as {sys.executable}"
    version = ".".join(map(str, sys.version_info[:3]))
    raise PythonWorkerError(
        f"Spark's Python workers {trouble}, where the driver runs Python {version}, "
        f"{sys.executable}, with keygroups {keygroups.__version__}: set the environment variable "
        "PYSPARK_PYTHON, or spark.pyspark.python for spark-submit, to a Python like the driver's"
        f"{such_as} before {'the server' if connect else 'Spark'} starts"
    )


def trouble_of(answer: Mapping[str, Any], extra: str | None) -> str | None:
    """Return what is wrong with the Python of a worker that answered; None if nothing is."""
    runs = f"run Python {answer['version']}, {answer['executable']},"
    if answer["keygroups"] is None:
        return f"{runs} which cannot import keygroups ({answer['error']})"
    if answer["keygroups"] != keygroups.__version__:
        return f"{runs} with keygroups {answer['keygroups']}"
    missing = [
        module for module in _EXTRAS.get(extra or "", ()) if module not in answer["modules"]
    ]
    if missing:
        return f"{runs} without {', '.join(missing)} of keygroups[{extra}]"
    return None


def trouble_of_failure(text: str) -> str | None:
    """Return what is wrong where no worker answered, by Spark's error; None if it is not that."""
    if match := _OTHER_VERSION.search(text):
        return f"run Python {match[1]}.{match[2]}"
    if match := _NOT_THERE.search(text):
        return f"cannot be started, as {match[1]} cannot be run ({match[2]})"
    said, ended, _ = text.partition("Error from python worker:")[2].partition("PYTHONPATH was:")
    if ended and said.strip():
        return f"cannot be started ({said.strip().splitlines()[-1].strip()})"
    return None


def _asking(modules: Collection[str]) -> Callable[[Any], str]:
    """Return the function that a worker runs.

    It is pickled by value, as it is no name of a module, and refers to none but of Python itself:
    the worker may have no keygroups.
    """
    names = sorted(modules)

    def ask(_: object) -> str:
        import json
        import sys
        from importlib.util import find_spec

        def is_there(module: str) -> bool:
            try:
                return find_spec(module) is not None
            except ModuleNotFoundError:  # the package that it would be in
                return False

        version = error = None
        try:
            import keygroups

            version = keygroups.__version__
        except Exception as raised:  # whatever stands under that name there
            error = f"{type(raised).__name__}: {raised}"
        return json.dumps(
            {
                "version": ".".join(map(str, sys.version_info[:3])),
                "executable": sys.executable,
                "keygroups": version,
                "error": error,
                "modules": [*filter(is_there, names)],
            }
        )

    return ask
