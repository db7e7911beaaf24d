"""Some work in parts that yield batches of Arrow, for whoever has other machines run them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class PartedJob:
    """The parts of some work; `run` yields batches of `schema` for one part. It may be pickled."""

    parts: tuple[Any, ...]
    run: Callable[[Any], Iterator[pa.RecordBatch]]
    schema: pa.Schema
