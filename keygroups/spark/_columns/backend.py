"""The choice of expressions for a key: portable, those of a classic session's JVM, or a UDF.

The Spark configuration `spark.keygroups.path`, read when an expression is built, names the
backend: `auto` (the default) takes the fast one where there is one, `portable` and `fast` force
it, and `arrow` is taken only where it is set. It is that of the DataFrame's session, or, where
only columns are given, that of the active or else the default session: a thread that did not make
a session itself has none active. All give the same answers; `explain()` shows which was taken:
the fast backend's plans have `hive-hash` and `invoke`, those of `arrow` have `ArrowEvalPython`,
the portable one's have none of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pyspark
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from keygroups.errors import InvalidValueError
from keygroups.spark._columns.arguments import is_connect
from keygroups.spark._columns.bare_columns import BareFunctions, bare, noted
from keygroups.spark._columns.key_columns import KeyColumn, KeyTree
from keygroups.spark._columns.portable import Portable
from keygroups.spark._columns.sql_text import SqlFunctions
from keygroups.spark._workers import check_workers

SETTING = "spark.keygroups.path"
_CHOICES = ("auto", "fast", "portable", "arrow")

PORTABLE = Portable(F)
_TEXT = Portable(SqlFunctions())
# One answer per gateway, that is per JVM: its classes do not change.
_fast_backends: dict[Any, Portable | None] = {}


def build(
    key: KeyTree, make: Callable[[Portable, KeyTree], Column], session: SparkSession | None = None
) -> Column:
    """Return the expression of a key that `make` makes of a backend and the columns.

    `session` is that of the DataFrame, if there is one.
    """
    session = session or _active_session()
    backend = current_backend(session)
    if not is_connect(F.lit(0) if session is None else session):
        backend = Portable(BareFunctions()) if backend is PORTABLE else backend
        made: Column = noted(make(backend, _bare_key(key)))
        return made
    from keygroups.spark._columns.connect import check_depth, shallow

    client = None if session is None else session.client
    if not backend.in_sql:
        made = make(backend, key)
        check_depth("key", made, client)
        return made
    return shallow(client, key, partial(make, backend), partial(make, _TEXT))


def _bare_key(key: KeyTree) -> KeyTree:
    if isinstance(key, KeyColumn):
        return replace(key, column=bare(key.column))
    return [_bare_key(field) for field in key]


def current_backend(session: SparkSession | None = None) -> Portable:
    """Return the expressions that a session, or the active one, is to use.

    Raises InvalidValueError for a setting that is none, and where `fast` is set and there is no
    fast backend, or `arrow` and PySpark is too old; ModuleNotFoundError without NumPy or PyArrow,
    PythonWorkerError where Spark's workers lack them.
    """
    session = session or _active_session()
    choice = "auto" if session is None else session.conf.get(SETTING, "auto")
    if choice not in _CHOICES:
        raise InvalidValueError(f"{SETTING} must be one of {', '.join(_CHOICES)}, got {choice!r}")
    if choice == "portable" or session is None:
        return PORTABLE
    if choice == "arrow":
        return _arrow_backend(session)
    fast = None if is_connect(session) else _fast_backend(session)
    if fast is None and choice == "fast":
        raise InvalidValueError(
            f"{SETTING} is fast, but this session has no fast backend: it is Spark Connect, or a "
            "Spark whose internal expressions are not known"
        )
    return fast or PORTABLE


def _active_session() -> SparkSession | None:
    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        return None


def _arrow_backend(session: SparkSession) -> Portable:
    if not hasattr(F, "arrow_udf"):
        raise InvalidValueError(
            f"{SETTING} is arrow, which needs PySpark 4.1 or newer, got {pyspark.__version__}"
        )
    import keygroups.arrays  # noqa: F401  # Its error names the package that is missing.
    from keygroups.spark._columns.arrow import Arrow

    check_workers(session)
    return Arrow(F)


def _fast_backend(session: SparkSession) -> Portable | None:
    from keygroups.spark._columns.catalyst import fast_backend

    gateway = session.sparkContext._gateway
    if gateway not in _fast_backends:
        _fast_backends[gateway] = fast_backend(session)
    return _fast_backends[gateway]
