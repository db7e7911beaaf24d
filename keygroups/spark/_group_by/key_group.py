"""The state of a key group: the records of its keys, in four states of Spark.

| state | key | value |
|---|---|---|
| `accState` | | the layout and the names of all that is here, in JSON, and the number of pages of `keys` |
| `keys` | the number of a page | a page of the records of keys, as `group` has them |
| `values` | a key, the index of an aggregate, the number of a page | a page of values, as `group` has them |
| `due` | a time | four bytes of the hash of each key whose clean-up timer was set for it |

A TTL is that of Spark on `keys` and `values`: a page is dropped when all in it is past its time,
and what is past its time in a page that is not is dropped when the page is written. Clean-up
timers are those of Spark, one a key group and time.
"""  # noqa: E501 (a table)

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import types as T

from keygroups.errors import KeyGroupsError, printable
from keygroups.spark._group_by.group import Change, Group, Layout
from keygroups.spark._group_by.pages import Pages, hash_of, page_of

VERSION = 1
# Named as the accumulators were when Spark's groups were the keys: so Spark refuses a checkpoint
# of then, for it compares states of one name only, and would begin with others that are empty.
TABLE = "accState"
_HASH = struct.Struct("<I")
_PAGE = T.StructType([T.StructField("page", T.BinaryType())])
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
    `registerTimer`. `kept` is the layout in JSON, `names` those of the key and the results.
    """

    def __init__(self, handle: Any, layout: Layout, kept: str, names: str) -> None:
        self._handle = handle
        self._layout = layout
        self._kept, self._names = kept, names
        ttl = layout.retention.ttl
        self._table = handle.getValueState(TABLE, _TABLE)
        self._keys = handle.getMapState("keys", _KEYS, _PAGE, ttl)
        self._values: Any = None
        self._due: Any = None
        if any(layout.values):
            self._values = handle.getMapState("values", _VALUES, _PAGE, ttl)
        if layout.retention.idle is not None:
            self._due = handle.getMapState("due", _DUE, _HASHES)

    def apply(
        self, changes: Mapping[bytes, Iterable[Change]], now: int, mini_batch: bool
    ) -> Iterator[tuple[bytes, Change]]:
        """Aggregate changes of keys at a time, and yield the changes of the results."""
        size = self._size()
        pages = self._pages(size or 1)
        moved: list[int] = []
        for key, of_key in changes.items():
            group = self._group(key, pages.get(key), now)
            if group.see():
                moved.append(hash_of(key))
            for change in group.apply(of_key, mini_batch):
                yield key, change
            pages.put(key, group.record())
        pages.flush()
        if pages.size != size or self._renamed:
            self._table.update((self._kept, self._names, pages.size))
        if moved and self._layout.retention.idle is not None:
            self._set_timer(now + self._layout.retention.idle[1], moved)

    def fire(self, time: int, now: int) -> None:
        """Forget the keys that are due: a timer has fired. Flink emits nothing then."""
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
        row = self._due.getValue((time,))  # of a batch at the same millisecond
        known = b"" if row is None else bytes(row[0])
        self._due.updateValue((time,), (known + b"".join(map(_HASH.pack, moved)),))
        self._handle.registerTimer(time)

    def _size(self) -> int | None:
        """Return the number of pages of keys, None where none of the key group was ever here."""
        row = self._table.get()
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
        def for_pages(index: int, size: int) -> Pages:
            return Pages(self._values, lambda number: (key, index, number), size)

        return Group(self._layout, for_pages, now, record)


def layout_text(key_types: Sequence[T.DataType], layout: Layout) -> str:
    """Return what the bytes of a query's state depend on, in JSON."""
    retention = layout.retention
    return json.dumps(
        {
            "version": VERSION,
            "key": [key_type.jsonValue() for key_type in key_types],
            "aggregates": [[a.name, a.takes] for a in layout.aggregates],
            "retention": "idle" if retention.idle else "ttl" if retention.ttl else None,
        }
    )


def other_layout(kept: str, ours: str) -> KeyGroupsError:
    """Return the error of a checkpoint with state that is not of this query."""
    return KeyGroupsError(
        f"the checkpoint has state of {printable(kept)}, not that of this query, {ours}: "
        "take a new checkpoint"
    )
