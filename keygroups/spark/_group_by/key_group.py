"""The state of a key group: the records of its keys, in four states of Spark.

| state | key | value |
|---|---|---|
| `accState` | the version of all that is here | its layout and the names of the results, in JSON, and the number of pages of `keys` |
| `keys` | the number of a page | a page of the records of keys, as `group` has them |
| `values` | a key, the index of an aggregate, the number of a page | a page of values, as `group` has them |
| `due` | a time | four bytes of the hash of each key whose clean-up timer was set for it |

A TTL is that of Spark on `keys` and `values`: a page is dropped when all in it is past its time,
and what is past its time in a page that is not is dropped when the page is written. Clean-up
timers are those of Spark, one a key group and time. With a TTL the states are `keys_ttl` and
`values_ttl`: Spark would refuse the same names without saying why.

The key group `QUERY` has `accState` alone, once in each partition: the layout and the names of the
whole query. Another max parallelism or parallelism would look for keys where they are not, in key
groups without any state; there is always state of `QUERY`, which tells.
"""  # noqa: E501 (a table)

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any

from pyspark.sql import types as T

from keygroups._checks import show
from keygroups.errors import KeyGroupsError
from keygroups.spark._group_by.group import Group, RecordLayout, Routing, RowChange
from keygroups.spark._group_by.pages import Pages, hash_of, page_of

VERSION = 2
QUERY = -1
# In version 1 the accumulators, a value state, had this name. Spark compares the kinds of states
# of one name: so it refuses such a checkpoint, and does not begin without state.
TABLE = "accState"
_HASH = struct.Struct("<I")
_PAGE = T.StructType([T.StructField("page", T.BinaryType())])
_VERSION = T.StructType([T.StructField("version", T.IntegerType())])
_TABLE = T.StructType(
    [
        T.StructField("layout", T.StringType()),
        T.StructField("names", T.StringType()),
        T.StructField("pages", T.IntegerType()),
    ]
)
_KEYS = T.StructType([T.StructField("number", T.IntegerType())])
_VALUES = T.StructType(
    [
        T.StructField("key", T.BinaryType()),
        T.StructField("aggregate", T.IntegerType()),
        T.StructField("number", T.IntegerType()),
    ]
)
_DUE = T.StructType([T.StructField("time", T.LongType())])
_HASHES = T.StructType([T.StructField("hashes", T.BinaryType())])


class KeyGroup:
    """State of the key group that `handle` is at.

    `handle` is Spark's StatefulProcessorHandle, or has its `getValueState`, `getMapState` and
    `registerTimer`. `kept` is the layout in JSON, `names` those of the results.
    """

    def __init__(self, handle: Any, layout: RecordLayout, kept: str, names: str) -> None:
        self._handle = handle
        self._layout = layout
        self._kept, self._names = kept, names
        ttl = layout.retention.ttl
        self._table = handle.getMapState(TABLE, _VERSION, _TABLE)
        self._keys = handle.getMapState(state_name("keys", ttl), _KEYS, _PAGE, ttl)
        self._values: Any = None
        self._due: Any = None
        if any(layout.values):
            self._values = handle.getMapState(state_name("values", ttl), _VALUES, _PAGE, ttl)
        if layout.retention.idle is not None:
            self._due = handle.getMapState("due", _DUE, _HASHES)

    def check(self) -> None:
        """Compare the layout of the query with that of the checkpoint, in the state of QUERY."""
        if self._size() is None or self._renamed:
            self._note(0)

    def apply(
        self, changes: Mapping[bytes, Sequence[RowChange]], now: int, mini_batch: bool
    ) -> Iterator[tuple[bytes, list[RowChange]]]:
        """Aggregate changes of keys at the time `now`, and yield each key's changes of results."""
        size = self._size()
        pages = self._pages(size or 1)
        moved: list[int] = []
        for key, of_key in changes.items():
            number = pages.number_of(key)
            group = self._group(key, pages.get_from(number, key), now)
            if group.see():
                moved.append(hash_of(key))
            yield key, group.apply(of_key, mini_batch)
            pages.put_into(number, key, group.record())
        pages.flush()
        if pages.size != size or self._renamed:
            self._note(pages.size)
        if moved and self._layout.retention.idle is not None:
            self._set_timer(now + self._layout.retention.idle[1], moved)

    def fire(self, time: int, now: int) -> None:
        """Forget the keys that are due at a timer's time; Flink emits nothing then."""
        size = self._size()
        row = self._due.getValue((time,))
        if size is None or row is None:
            return
        pages = self._pages(size)
        numbers = {page_of(key_hash, size) for (key_hash,) in _HASH.iter_unpack(bytes(row[0]))}
        for key, record in pages.entries_of(numbers):
            group = self._group(key, record, now)
            if group.until is None:
                pages.put(key, None)
        pages.flush()
        self._due.removeKey((time,))

    def _set_timer(self, time: int, moved: Sequence[int]) -> None:
        row = self._due.getValue((time,))  # A batch before may have had the same time.
        known = b"" if row is None else bytes(row[0])
        self._due.updateValue((time,), (known + b"".join(map(_HASH.pack, moved)),))
        self._handle.registerTimer(time)

    def _note(self, size: int) -> None:
        self._table.updateValue((VERSION,), (self._kept, self._names, size))

    def _size(self) -> int | None:
        """Return the number of pages of keys, None where the key group has never had a key."""
        row = self._table.getValue((VERSION,))
        self._renamed = False
        if row is None:
            return None
        kept, names, size = row
        self._renamed = names != self._names
        if kept != self._kept:
            raise other_layout(kept, self._kept)
        return int(size)

    def _pages(self, size: int) -> Pages:
        return Pages(self._keys, lambda number: (number,), size)

    def _group(self, key: bytes, record: bytes | None, now: int) -> Group:
        return Group(self._layout, partial(self._pages_of, key), now, record)

    def _pages_of(self, key: bytes, index: int, size: int) -> Pages:
        return Pages(self._values, lambda number: (key, index, number), size)


def state_name(name: str, ttl: int | None) -> str:
    """Return the name of a state of pages, another one with a TTL."""
    return name if ttl is None else f"{name}_ttl"


def layout_text(key: T.StructType, layout: RecordLayout, routing: Routing) -> str:
    """Return JSON of the settings on which the bytes and the place of a query's state depend.

    Others may change between runs: `kind`, `order_by`, `mini_batch` and the names of the results,
    which state does not hold; and the times of idle retention and OnReadAndWrite, which, as in
    Flink, count when a row comes.
    """
    return json.dumps(
        {
            "version": VERSION,
            **routing._asdict(),
            "key": [[field.name, field.dataType.jsonValue()] for field in key.fields],
            "aggregates": [[a.name, a.column, a.takes] for a in layout.aggregates],
            "idle_retention": layout.retention.idle is not None,
            "state_ttl": layout.retention.ttl,
        }
    )


def other_layout(kept: str, ours: str) -> KeyGroupsError:
    """Return the error for a checkpoint with the state of another query: all differences."""
    try:
        was, got = dict(json.loads(kept)), json.loads(ours)
    except (ValueError, TypeError, RecursionError):
        return unreadable_layout(kept)
    names = sorted({*was, *got}) if was.get("version") == VERSION else ["version"]
    changes = [change for n in names for change in _changes(n, was.get(n), got.get(n))]
    return KeyGroupsError(
        f"{'; '.join(changes)}: the state of a query stays where and as it was put, so give what "
        "the checkpoint has, or take a new checkpoint"
    )


def unreadable_layout(kept: str) -> KeyGroupsError:
    """Return the error for a layout in a checkpoint that cannot be read."""
    return KeyGroupsError(
        f"the state of a checkpoint must have a layout that can be read, got {show(kept)}"
    )


def _changes(name: str, was: Any, got: Any) -> Iterator[str]:
    """Yield the differences in a value of the layout, one for each place of a list."""
    if isinstance(was, list) and isinstance(got, list):
        for index, (old, new) in enumerate(zip_longest(was, got)):
            if old != new:
                yield f"{name}[{index}] was {show(old)} in the checkpoint, got {show(new)}"
    elif was != got:
        unit = " (in ms)" if name == "state_ttl" else ""
        yield f"{name}{unit} was {show(was)} in the checkpoint, got {show(got)}"
