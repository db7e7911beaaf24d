"""Which expressions hash a key: the portable ones, or the fast ones of a classic session.

The Spark configuration `spark.keygroups.path`, read from the active session when an
expression is built, decides: `auto` (the default) takes the fast path where there is one,
`portable` and `fast` force it. Both give the same answers; `explain()` shows which was taken:
the fast path's plans have `hive-hash` and `invoke`, the portable one's have neither.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote

from keygroups.errors import InvalidValueError
from keygroups.spark import ieee754, portable
from keygroups.spark.sql_text import SqlFunctions
from keygroups.types import KeyType

__all__ = ["SETTING", "TEXT", "Path", "current_path"]

SETTING = "spark.keygroups.path"
_CHOICES = ("auto", "fast", "portable")


@dataclass(frozen=True)
class Path:
    """The expressions that hash columns, all of one kind.

    `F` stands for `pyspark.sql.functions`, as it does in `keygroups.spark.portable`.
    """

    F: Any
    hashers: Mapping[KeyType, Callable[[Column], Column]]
    fold: Callable[[list[Column], int], Column]
    words: Callable[[list[Column]], Column]
    double_bits: Callable[[Column], Column]
    float_bits: Callable[[Column], Column]
    unscaled_long: Callable[[Column, int], Column]
    unscaled_bytes: Callable[[Column], Column]


def _portable(functions: Any) -> Path:
    return Path(
        functions,
        {key: partial(hasher, functions) for key, hasher in portable.HASHERS.items()},
        partial(portable.fold, functions),
        partial(portable.words, functions),
        partial(ieee754.double_bits, functions),
        partial(ieee754.float_bits, functions),
        partial(portable.unscaled_long, functions),
        partial(portable.unscaled_bytes, functions),
    )


_PORTABLE = _portable(F)
TEXT = _portable(SqlFunctions())
"""The portable expressions as SQL text."""
# One answer per gateway, that is per JVM: its classes do not change.
_fast_paths: dict[Any, Path | None] = {}


def current_path() -> Path:
    """Return the expressions that the active session is to use.

    Raises InvalidValueError for a setting that is none, and where `fast` is set and there is
    no fast path.
    """
    session = SparkSession.getActiveSession()
    choice = "auto" if session is None else session.conf.get(SETTING, "auto")
    if choice not in _CHOICES:
        raise InvalidValueError(f"{SETTING} must be one of {', '.join(_CHOICES)}, got {choice!r}")
    if choice == "portable" or session is None:
        return _PORTABLE
    fast = None if is_remote() else _fast_path(session)
    if fast is None and choice == "fast":
        raise InvalidValueError(
            f"{SETTING} is fast, but this session has no fast path: it is Spark Connect, or a "
            "Spark whose internal expressions are not known"
        )
    return fast or _PORTABLE


def _fast_path(session: SparkSession) -> Path | None:
    from keygroups.spark.catalyst import fast_path  # py4j is not there for Connect alone

    gateway = session.sparkContext._gateway
    if gateway not in _fast_paths:
        catalyst = fast_path(session)
        _fast_paths[gateway] = (
            None
            if catalyst is None
            else Path(
                F,
                {**_PORTABLE.hashers, **catalyst.hashers},
                catalyst.fold,
                catalyst.words,
                catalyst.double_bits,
                catalyst.float_bits,
                catalyst.unscaled_long,
                catalyst.unscaled_bytes,
            )
        )
    return _fast_paths[gateway]
