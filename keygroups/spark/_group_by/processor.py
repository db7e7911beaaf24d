"""The processor of a `GROUP BY` over changes, which Spark calls with the rows of a key group."""

from __future__ import annotations

import datetime as dt
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql import types as T

from keygroups._checks import check_choice, check_class, check_str, show
from keygroups.errors import InvalidTypeError, InvalidValueError
from keygroups.spark._columns.key_columns import cast_advice, plain_text, simple_type
from keygroups.spark._group_by.aggregates import AGGREGATES
from keygroups.spark._group_by.fields import RowCodec
from keygroups.spark._group_by.group import RETRACTS, ROW_KINDS, RecordLayout, Routing, RowChange
from keygroups.spark._group_by.key_group import QUERY, KeyGroup, layout_text
from keygroups.spark._group_by.packing import results_of
from keygroups.spark._group_by.query_checks import check_pyspark, type_of
from keygroups.spark._group_by.retention import check_retention

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
else:
    try:
        from pyspark.sql.streaming.stateful_processor import StatefulProcessor
    except ImportError:  # PySpark 3.5 has none; GroupAggregate itself refuses 4.0 too.
        StatefulProcessor = object

# Rows of a key group in a batch. PySpark makes dicts of all results of a group before it sends
# any, so that spilling the rows alone would bound nothing.
_MOST_ROWS = 500_000


_UNORDERED = (T.ArrayType, T.MapType, T.StructType)
# Types of which two values are equal in Python if, and only if, their bytes are.
_PLAIN = (T.LongType, T.IntegerType, T.ShortType, T.ByteType, T.StringType, T.DateType)


class GroupAggregate(StatefulProcessor):
    """A GROUP BY over a changelog, row by row what Flink SQL's GroupAggFunction emits.

    `schema` is that of the rows, `aggregates` maps the name of each result to a function and a
    column of it: "count" of any column or of "*"; "sum" of an integer or double column; "min",
    "max" and "count_distinct" of an integer, string or date column. Results have Flink's types:
    counts are bigint, others that of the column, where the sum of integers wraps round as in
    Java. `kind` is the string column of the row's kind, +I, -U, +U or -D; -U and -D retract.

    The first row of a key gives a +I, a row that changes the result a -U and a +U, and the one
    that takes back the last row a -D, which clears the key's state. A retraction of a key without
    state is ignored. Distinct values, and those of min and max, are kept one by one: up to 16 with
    the accumulators of the key, more of them in pages.

    `order_by`, a column or a list of them, says in which order the rows of a key in one batch
    come, for Spark keeps none. Without it a retraction fails the query, as do nulls, NaN and ties
    in these columns.

    `idle_retention=(min, max)` forgets a key that got no row for between min and max, two
    `datetime.timedelta`: a row moves the clean-up timer to its time + max, if its time + min is
    past the timer. That is the rule of Flink until 1.11 (CleanupState). `state_ttl` instead, as
    in Flink since 1.12 (`table.exec.state.ttl`), forgets each value of state that long after
    its last write; `update_type` "OnReadAndWrite", after its last read too, which SQL in Flink
    does not offer and its StateTtlConfig does. With either, a -U and a +U come even if the
    result is unchanged, as in Flink.

    `mini_batch=True` folds the rows of a key in a batch and emits changes once (Flink's
    MiniBatchGroupAggFunction). State is read and written once a batch either way.

    The rows of a key group in a batch are held in memory, for Spark gives them in no order, and
    PySpark holds all results of a key group besides: more than 500,000 rows fail the query.

    Raises KeyGroupsError before PySpark 4.1; InvalidTypeError and InvalidValueError for a column
    that is not in the schema or of another type, an unknown function, a TTL of 0, and, as in
    Flink's setIdleStateRetentionTime, a max less than five minutes above its min.

    >>> from datetime import timedelta
    >>> schema = spark.createDataFrame([], "kind string, app string, user bigint").schema
    >>> users = GroupAggregate(
    ...     schema,
    ...     {"views": ("count", "*"), "users": ("count_distinct", "user")},
    ...     idle_retention=(timedelta(hours=1), timedelta(hours=2)),
    ... )
    >>> users.result_schema.simpleString()
    'struct<kind:string,views:bigint,users:bigint>'
    """

    def __init__(
        self,
        schema: T.StructType,
        aggregates: dict[str, tuple[str, str]],
        *,
        kind: str = "kind",
        order_by: str | Sequence[str] | None = None,
        idle_retention: tuple[dt.timedelta, dt.timedelta] | None = None,
        state_ttl: dt.timedelta | None = None,
        update_type: str = "OnCreateAndWrite",
        mini_batch: bool = False,
    ) -> None:
        check_pyspark()
        check_class("schema", schema, T.StructType, "a StructType, such as df.schema")
        types = {field.name: plain_text(field.dataType) for field in schema.fields}
        if simple_type(type_of("kind", kind, types)) != "string":
            raise InvalidTypeError(f"kind must be a string column, got {show(kind)}")
        listed = [order_by] if isinstance(order_by, str) else list(order_by or [])
        for column in listed:
            spark_type = type_of("order_by", column, types)
            if isinstance(spark_type, _UNORDERED) or simple_type(spark_type).startswith("string "):
                raise InvalidTypeError(
                    "order_by must be columns of numbers, times, text or binary, got "
                    f"{show(column)} of {spark_type.simpleString()}{cast_advice(spark_type)}"
                )
        check_class("aggregates", aggregates, dict, "a dict of name to (function, column)")
        if not aggregates:
            raise InvalidValueError("aggregates must be at least one, got none")
        self._aggregates, self._columns = [], []
        fields = [T.StructField(kind, T.StringType(), False)]
        for name, made_of in aggregates.items():
            check_str("aggregates", name, "names that are str")
            expected = "of tuples (function, column)"
            if len(check_class("aggregates", made_of, tuple, expected)) != 2:
                raise InvalidValueError(f"aggregates must be {expected}, got {show(made_of)}")
            function = check_choice("aggregates", made_of[0], list(AGGREGATES))
            counts_rows = function == "count" and made_of[1] == "*"
            value_type = T.LongType() if counts_rows else type_of("aggregates", made_of[1], types)
            aggregate = AGGREGATES[function](made_of[1], value_type)
            self._aggregates.append(aggregate)
            self._columns.append(kind if counts_rows else made_of[1])
            fields.append(T.StructField(name, aggregate.result_type))
        if len({field.name.lower() for field in fields}) < len(fields):
            raise InvalidValueError(f"aggregates must have different names, none {kind}")
        self._kind, self._order = kind, listed
        self._instants = {name for name in listed if isinstance(types[name], T.TimestampType)}
        self._retention = check_retention(idle_retention, state_ttl, update_type)
        self._mini_batch = check_class("mini_batch", mini_batch, bool, "a bool")
        self.result_schema = T.StructType(fields)
        """The kind and the aggregates; `group_aggregate` puts the key's columns before them."""
        self.columns = list(dict.fromkeys([kind, *listed, *self._columns]))
        """The columns that it reads."""

    _key: T.StructType  # set with the key's columns
    _packed: Sequence[str]  # the names of the first columns of the rows that it gets
    _routing: Routing

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the states; Spark calls this."""
        layout = RecordLayout(self._aggregates, self._retention)
        self._fields = RowCodec([field.dataType for field in self._key.fields])
        kept = layout_text(self._key, layout, self._routing)
        names = json.dumps(self.result_schema.names[1:])
        self._key_group = KeyGroup(handle, layout, kept, names)
        self._is_plain = all(type(field.dataType) in _PLAIN for field in self._key.fields)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:
        """Aggregate the rows of a key group in a batch, as `packed` has them; Spark calls this."""
        if key[0] == QUERY:
            self._key_group.check()
            return
        now = timerValues.getCurrentProcessingTimeInMs()
        held, keys = self._hold(key[0], rows)
        yield from results_of(
            (*keys[encoded], kind, *results)
            for encoded, changes in self._key_group.apply(held, now, self._mini_batch)
            for kind, results in changes
        )

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[Row]:
        """Forget keys that were idle; Spark calls this."""
        now = timerValues.getCurrentProcessingTimeInMs()
        self._key_group.fire(expiredTimerInfo.getExpiryTimeInMs(), now)
        return iter(())

    def close(self) -> None:
        """Do nothing; Spark calls this at the end."""

    def _with_key(
        self, key: T.StructType, columns: Sequence[str], routing: Routing
    ) -> GroupAggregate:
        """Return the processor of a query with this key, whose rows begin with `columns`."""
        made = copy(self)
        made._key, made._packed, made._routing = key, columns, routing
        return made

    def _hold(
        self, key_group: int, packs: Iterator[Any]
    ) -> tuple[dict[bytes, list[Any]], dict[bytes, tuple[Any, ...]]]:
        """Return the rows of each key by its bytes, and the values of each key."""
        encode = self._fields.encode
        # A key of plain values stands for its bytes, which are made once for all its rows.
        found: defaultdict[Any, list[Any]] = defaultdict(list)
        originals: dict[bytes, tuple[Any, ...]] = {}
        count = 0
        for pack in packs:
            columns = dict(zip(self._packed, pack))
            rows: Iterable[Any] = self._rows(columns)
            keys = list(zip(*(columns[name] for name in self._key.names)))
            count += len(keys)
            if count > _MOST_ROWS:
                raise InvalidValueError(
                    f"a batch must have at most {_MOST_ROWS:,} rows of a key group, got more of "
                    f"key group {key_group}: let the source give fewer a batch, by "
                    "maxFilesPerTrigger, of smaller files, or by maxOffsetsPerTrigger"
                )
            distinct: list[Any] = keys
            if not self._is_plain:
                distinct = list(map(encode, keys))
                originals.update(zip(distinct, keys))
            for same, row in zip(distinct, rows):
                found[same].append(row)
        if self._is_plain:
            originals = {encode(key): key for key in found}
        held = dict(zip(originals, found.values()))
        if self._order:
            for rows in held.values():
                rows[:] = self._in_order(rows)
        return held, originals

    def _rows(self, columns: Mapping[str, Sequence[Any]]) -> Iterable[Any]:
        """Return the changes of a pack, with their place in the order before each, if any."""
        kinds = columns[self._kind]
        for kind in dict.fromkeys(kinds):
            if kind not in ROW_KINDS:
                check_choice(self._kind, kind, ROW_KINDS)
            if kind in RETRACTS and not self._order:
                raise InvalidValueError(
                    f"order_by must be given where rows retract, got a {kind} without it: Spark "
                    "keeps no order among the rows of a batch"
                )
        changes = zip(kinds, zip(*(columns[name] for name in self._columns)))
        if not self._order:
            return changes
        # In a zone of its own Python compares what clocks show, which they show twice in autumn.
        order = (
            map(_in_utc, columns[name]) if name in self._instants else columns[name]
            for name in self._order
        )
        return zip(zip(*order), changes)

    def _in_order(self, ordered: list[tuple[Any, ...]]) -> Iterator[RowChange]:
        for values, _ in ordered:
            if any(value is None or value != value for value in values):  # only NaN is not itself
                raise InvalidValueError(f"order_by must not be null or NaN, got {_shown(values)}")
        ordered = sorted(ordered, key=itemgetter(0))
        for (values, change), (following, _) in zip(ordered, [*ordered[1:], (None, None)]):
            if values == following:
                raise InvalidValueError(
                    f"order_by must differ among the rows of a key, got {_shown(values)} twice"
                )
            yield change


def _in_utc(moment: dt.datetime | None) -> dt.datetime | None:
    return None if moment is None else moment.astimezone(dt.timezone.utc)


def _shown(values: tuple[Any, ...]) -> str:
    return show(values if len(values) > 1 else values[0])
