"""Reads the golden vectors of `tests/vectors`, whose README has their encoding."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "vectors"


def lines(name: str) -> Iterator[dict[str, Any]]:
    """Yield the lines of a file, compressed or not, by its name without the endings."""
    (path,) = FOLDER.glob(f"{name}.jsonl*")
    data = path.read_bytes()
    for line in (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines():
        yield json.loads(line)


@lru_cache
def read(name: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the header and the lines of a file that has a header; "keys" are in two files."""
    header, *rest = lines(name)
    if name == "keys":
        header_too, *more = lines("jvm_keys")
        assert header_too["max_parallelisms"] == header["max_parallelisms"]
        rest += more
    assert rest
    return header, rest
