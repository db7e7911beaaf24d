"""One job's state in every form that the backends and formats of three versions of Flink give it.

`matrix.jsonl` in `tests/vectors` has a line a point: its name, and where its `_metadata` is in
`matrix.tar.xz`, or why Flink took none, in its own words. `make_matrix.py` has `Matrix.java` and
`AsyncMatrix.java` make them; what is in the state follows from the keys and from how many numbers
each of them was sent. In each point Kryo is in no part of the operator `plain`, in the values,
elements and maps of `lines`, and in the keys of `by-uuid` and `by-line`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from hashlib import md5
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

from keygroups.savepoint import KryoFields, Operator, Pojo, Savepoint, read_savepoint
from support.bytes.real_savepoints import corpus
from support.bytes.version_points import KEYS, Content, content, row, timers
from support.golden import lines

NUMBERS = range(1, 4)
PARALLELISM, MAX_PARALLELISM, FLOOD = 2, 128, 300
LINE = "Matrix$Line"
SERIALIZERS = {LINE: KryoFields(amount="long", sku="java.lang.String")}
UIDS = ("plain", "lines", "by-uuid", "by-line")

VERSIONS = ("1.13.6", "1.18.1", "2.3.0")
BACKENDS = ("hashmap", "rocksdb-full", "rocksdb", "forst")
APIS = ("sync", "async")
TIMERS = ("own", "heap")
KINDS = ("canonical", "native", "checkpoint", "unaligned", "merging")
IN_FLIGHT = "in-flight"


class Cell(NamedTuple):
    """A place in the matrix: what wrote the point, with which settings, as what."""

    version: str
    backend: str
    api: str
    timers: str
    kind: str

    @property
    def name(self) -> str:
        """The name of the point."""
        return "-".join(self)

    def reason(self) -> str | None:
        """Return why no job was asked for such a point, None if one was."""
        version = tuple(map(int, self.version.split(".")))
        if version < (2, 0) and self.backend == "forst":
            return "ForSt came with Flink 2.0"
        if version < (2, 0) and self.api == "async":
            return "asynchronous state came with Flink 2.0"
        if version < (1, 15) and self.kind == "native":
            return "native savepoints came with Flink 1.15"
        if version < (1, 20) and self.kind == "merging":
            return "merged files came with Flink 1.20"
        if self.backend == "hashmap" and self.timers == "heap":
            return "this backend has its timers on the heap anyway"
        return None

    def lacks_timers(self) -> bool:
        """Tell whether Flink leaves timers on the heap out of a native savepoint.

        Those of ForSt with asynchronous state it has.
        """
        is_left_out = (self.kind, self.timers) == ("native", "heap")
        return is_left_out and (self.backend, self.api) != ("forst", "async")


CELLS = [Cell(*one) for one in product(VERSIONS, BACKENDS, APIS, TIMERS, KINDS)]
FLOODED = [
    Cell("1.13.6", "rocksdb", "sync", "own", IN_FLIGHT),
    Cell("1.18.1", "hashmap", "sync", "own", IN_FLIGHT),
    Cell("2.3.0", "rocksdb-full", "sync", "heap", IN_FLIGHT),
    Cell("2.3.0", "forst", "async", "own", IN_FLIGHT),
]
"""Those with records before a slow operator, which are beside the state, whatever its form is."""
ASKED = [cell for cell in CELLS if cell.reason() is None] + FLOODED


@lru_cache
def said() -> dict[str, dict[str, Any]]:
    """Return the lines of `matrix.jsonl` by the names of the points."""
    return {line["name"]: line for line in lines("matrix")}


def taken() -> list[Cell]:
    """Return the cells of the points that there are."""
    return [cell for cell in ASKED if said()[cell.name]["point"] is not None]


def pairs(cell: Cell) -> Iterator[tuple[tuple[int, str], tuple[int, str]]]:
    """Yield each two values of a cell, with the dimensions that they are of."""
    values = [*enumerate(cell)]
    for place, first in enumerate(values):
        for second in values[place + 1 :]:
            yield first, second


def selection() -> list[Cell]:
    """Return cells of points that have every pair of values that any point has."""
    found = [Cell("1.13.6", "rocksdb-full", "sync", "heap", "checkpoint")]  # has timers twice
    rest = {pair for cell in taken() for pair in pairs(cell)} - {*pairs(found[0])}
    while rest:
        best = max(taken(), key=lambda cell: len(rest.intersection(pairs(cell))))
        found.append(best)
        rest.difference_update(pairs(best))
    return found


def path_of(cell: Cell) -> Path:
    """Return the folder of the `_metadata` of a point."""
    return Path(corpus("matrix"), cell.name, said()[cell.name]["point"])


def moved(cell: Cell) -> dict[str, str]:
    """Return the present folder of a point's job, by the folder that its `_metadata` names."""
    named = re.search(
        rf"file:(/[ -~]*?/{re.escape(cell.name)})/".encode(),
        (path_of(cell) / "_metadata").read_bytes(),
    )
    return {} if named is None else {named[1].decode(): str(corpus("matrix") / cell.name)}


def read(cell: Cell) -> Savepoint:
    """Read a point, of whose job's class the fields are described."""
    uids = (*UIDS, "events", *(["slow"] if cell.kind == IN_FLIGHT else []))
    return read_savepoint(path_of(cell), moved(cell), uids=uids, serializers=SERIALIZERS)


def line(sku: str, amount: int) -> Pojo:
    return Pojo(LINE, {"amount": amount, "sku": sku})


def uuid_of(key: str) -> UUID:
    """Java's UUID.nameUUIDFromBytes."""
    return UUID(bytes=md5(key.encode()).digest(), version=3)


def line_of(key: str) -> Pojo:
    return line(key, len(key))


def java_hash(key: str) -> int:
    """Return the hash code of the line that a key is made."""
    code = 0
    for unit in key:
        code = 31 * code + ord(unit)
    return (31 * code + len(key)) & 0xFFFFFFFF


def plain(has_timers: bool) -> Content:
    """Return the contents of the operator without Kryo."""
    found: Content = Counter()
    for key in KEYS:
        texts = tuple(f"{key},{number}" for number in NUMBERS)
        found.update([row("value", "VALUE", key, 3), row("list", "LIST", key, texts)])
        found.update(row("map", "MAP", key, n, user_key=text) for n, text in zip(NUMBERS, texts))
        found.update(timers(key, NUMBERS) if has_timers else [])
    return found


def lines_of_keys() -> Content:
    """Return the contents of the operator with Kryo in values, elements and a map."""
    found: Content = Counter()
    for key in KEYS:
        sent = tuple(line(key, number) for number in NUMBERS)
        found.update([row("line", "VALUE", key, sent[-1]), row("lines", "LIST", key, sent)])
        found.update(
            row("by-number", "MAP", key, each, user_key=n) for n, each in zip(NUMBERS, sent)
        )
    return found


def counted(keys: list[Any], has_timers: bool) -> Content:
    """Return the contents of an operator with Kryo in its keys."""
    found: Content = Counter()
    for key in keys:
        found[row("count", "VALUE", key, 3)] += 1
        found.update(timers(key, NUMBERS) if has_timers else [])
    return found


def expected(cell: Cell) -> dict[str, Content]:
    """Return the contents of the operators with keyed state, by their uids."""
    has_timers = not cell.lacks_timers()
    return {
        "plain": plain(has_timers),
        "lines": lines_of_keys(),
        "by-uuid": counted([uuid_of(key) for key in KEYS], has_timers),
        "by-line": counted([line_of(key) for key in KEYS], has_timers),
    }


def seen(savepoint: Savepoint) -> dict[str, Content]:
    """Return the same as the library reads it."""
    return {uid: content(savepoint.operator(uid)) for uid in UIDS}


def expected_operator_state() -> dict[str, Any]:
    """Return the elements of each operator state of `events`, which has one subtask."""
    return {
        "offsets": [1_000 + number for number, _ in enumerate(KEYS)],
        "names": [*KEYS],
        "lines": [line(key, number) for number, key in enumerate(KEYS)],
        "rules": {key: line(f"rule {number}", number) for number, key in enumerate(KEYS)},
    }


def operator_state(operator: Operator) -> dict[str, Any]:
    """Return the same as the library reads it."""
    return {one.state: one.elements for one in operator.operator_state()}
