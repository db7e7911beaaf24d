"""Keyed state as Flink SQL keeps it, in Spark's own state store: `GROUP BY` over changes.

`GroupAggregate` is a processor for Spark's `transformWithState`, which needs PySpark 4.1 or
newer, pandas, PyArrow and protobuf (`pip install 'keygroups[state]'`) and the RocksDB state
store, which Spark has. `group_aggregate` runs it with the state of each key in the partition of
its Flink subtask.

What is otherwise than in Flink:

- Time is that of the micro-batch: all its rows have one processing time, with which TTLs and
  timers are compared, and a timer fires with the first batch after its time, be it without rows.
  What is due is forgotten before a key's rows are looked at, so the changelog is the same. There
  is no TTL of event time.
- Spark keeps no order among the rows of a key in a micro-batch, so retractions need `order_by`.
- A sink knows no changelog: the kind of a row is a column, and the sink has to apply it, in
  `foreachBatch` for example. The changes of a key in a batch are in order, those of keys are not.
- With `Trigger.AvailableNow` a query with state by processing time runs batches without rows
  for ever, unless `spark.sql.streaming.noDataMicroBatches.enabled` is false.
- The checkpoint fixes `spark.sql.shuffle.partitions`, and with it the parallelism. Flink
  rescales; here a new parallelism takes a new checkpoint.
- A -U comes with each +U; Flink leaves it out where no later operator needs it.
- min and max compare strings by their bytes. So does Flink those that came over the network; two
  that are still Java strings it compares by UTF-16, where U+FFFF is behind U+1F600.
- The values of min and max are always in a map state, as in Flink if its input has retractions.
  Where it has none, Flink keeps the extreme alone, and a TTL forgets it otherwise.

Flink cleaned up idle state by timers until 1.11 (`idle_retention`), but not in mini-batches,
where it is cleaned up here; since 1.12 it has done so by TTL (`state_ttl`), in mini-batches too.
All other rules are those of Flink 2.3.
"""

from __future__ import annotations

import datetime as dt
import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql import types as T

from keygroups._checks import check_choice, check_class, check_parallelisms, check_str, show
from keygroups.errors import InvalidTypeError, InvalidValueError, KeyGroupsError
from keygroups.spark._columns.arguments import check_df
from keygroups.spark._columns.backend import PORTABLE
from keygroups.spark._columns.key_hash import contains
from keygroups.spark._columns.portable import Portable
from keygroups.spark._group_by.aggregates import AGGREGATES
from keygroups.spark._group_by.group import RETRACTS, ROW_KINDS, Change, Group
from keygroups.spark._group_by.landing import lands_on
from keygroups.spark._group_by.retention import check_retention
from keygroups.spark.dataframe import infer_key_type, key_group_column
from keygroups.types import DOUBLE, FLOAT, UUID, KeyType

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
else:
    try:
        from pyspark.sql.streaming.stateful_processor import StatefulProcessor
    except ImportError:  # before Spark 4.0; GroupAggregate itself refuses 4.0 too
        StatefulProcessor = object

__all__ = ["GroupAggregate", "StateAccesses", "group_aggregate", "state_accesses"]
__dir__ = __all__.copy

_LANDS_ON = "_lands_on"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_NEEDS = {"pandas": "pandas", "pyarrow": "pyarrow", "google.protobuf": "protobuf"}


class GroupAggregate(StatefulProcessor):
    """A GROUP BY over a changelog, row by row what Flink SQL's GroupAggFunction emits.

    `schema` is that of the rows, `aggregates` maps the name of each result to a function and a
    column of it: "count" of any column or of "*"; "sum" of an integer or double column; "min",
    "max" and "count_distinct" of an integer, string or date column. Results have Flink's types:
    counts are bigint, others that of the column, where the sum of integers wraps round as in
    Java. `kind` is the string column of the row's kind, +I, -U, +U or -D; -U and -D retract.

    The first row of a key gives a +I, a row that changes the result a -U and a +U, and the one
    that takes back the last row a -D, which clears the key's state. A retraction of a key without
    state is ignored. Distinct values, and those of min and max, are in a map state, one entry a
    value.

    `order_by`, a column or a list of them, says in which order the rows of a key in one batch
    come, for Spark keeps none. Without it a retraction fails the query, as do nulls and ties in
    these columns.

    `idle_retention=(min, max)` forgets a key that got no row for between min and max, two
    `datetime.timedelta`: a row moves the clean-up timer to its time + max, if its time + min is
    past the timer. That is the rule of Flink until 1.11 (CleanupState). `state_ttl` instead, as
    in Flink since 1.12 (`table.exec.state.ttl`), forgets each value of state that long after
    its last write; `update_type` "OnReadAndWrite", after its last read too, which SQL in Flink
    does not offer and its StateTtlConfig does. With either, a -U and a +U come even if the
    result is unchanged, as in Flink.

    `mini_batch=True` folds the rows of a key in a batch and emits changes once; each state is
    read and written once, however many rows there are (Flink's MiniBatchGroupAggFunction).

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
        _check_pyspark()
        types = {field.name: field.dataType for field in _check_schema(schema).fields}
        if not isinstance(_type_of("kind", kind, types), T.StringType):
            raise InvalidTypeError(f"kind must be a string column, got {show(kind)}")
        listed = [order_by] if isinstance(order_by, str) else list(order_by or [])
        for column in listed:
            _type_of("order_by", column, types)
        check_class("aggregates", aggregates, dict, "a dict of name to (function, column)")
        if not aggregates:
            raise InvalidValueError("aggregates must be at least one, got none")
        self._aggregates, self._columns = [], []
        fields = [T.StructField(kind, T.StringType(), False)]
        for name, made_of in aggregates.items():
            check_str("aggregates", name, "names that are str")
            what = "of tuples (function, column)"
            if len(check_class("aggregates", made_of, tuple, what)) != 2:
                raise InvalidValueError(f"aggregates must be {what}, got {show(made_of)}")
            function = check_choice("aggregates", made_of[0], list(AGGREGATES))
            counts_rows = function == "count" and made_of[1] == "*"
            value_type = T.LongType() if counts_rows else _type_of("aggregates", made_of[1], types)
            aggregate = AGGREGATES[function](made_of[1], value_type)
            self._aggregates.append(aggregate)
            self._columns.append(kind if counts_rows else made_of[1])
            fields.append(T.StructField(name, aggregate.result_type))
        if len({field.name.lower() for field in fields}) < len(fields):
            raise InvalidValueError(f"aggregates must have different names, none {kind}")
        self._kind, self._order = kind, listed
        self._retention = check_retention(idle_retention, state_ttl, update_type)
        self._mini_batch = check_class("mini_batch", mini_batch, bool, "a bool")
        self.result_schema = T.StructType(fields)
        """The kind and the aggregates; `group_aggregate` puts the key's columns before them."""
        self.columns = list(dict.fromkeys([kind, *listed, *self._columns]))
        """The columns that it reads."""

    _row: Row  # the columns of the result, set with those of the key

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the states; Spark calls this."""
        self._group = Group(handle, self._aggregates, self._retention, self._mini_batch)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:
        """Aggregate the rows of a key in a batch; Spark calls this."""
        now = timerValues.getCurrentProcessingTimeInMs()
        for kind, results in self._group.apply(self._changes(rows), now):
            yield self._row(*key[:-1], kind, *results)

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[Row]:
        """Forget a key that was idle; Spark calls this."""
        self._group.fire()
        return iter(())

    def close(self) -> None:
        """End; Spark calls this."""

    def _with_key(self, names: Sequence[str]) -> GroupAggregate:
        """Return the processor of a query with this key."""
        made = copy(self)
        made._row = Row(*names, *self.result_schema.names)
        return made

    def _changes(self, rows: Iterator[Any]) -> Iterator[Change]:
        if self._order:
            rows = self._in_order(rows)
        for row in rows:
            kind = check_choice(self._kind, row[self._kind], ROW_KINDS)
            if kind in RETRACTS and not self._order:
                raise InvalidValueError(
                    f"order_by must be given where rows retract, got a {kind} without it: Spark "
                    "keeps no order among the rows of a batch"
                )
            yield kind, [row[column] for column in self._columns]

    def _in_order(self, rows: Iterator[Any]) -> Iterator[Any]:
        columns = itemgetter(*self._order)
        found = [(columns(row), row) for row in rows]
        for values, row in found:
            if None in (row[column] for column in self._order):
                raise InvalidValueError(f"order_by must not be null, got {show(values)}")
        found.sort(key=itemgetter(0))
        for (values, row), (following, _) in zip(found, [*found[1:], (None, None)]):
            if values == following:
                raise InvalidValueError(
                    f"order_by must differ among the rows of a key, got {show(values)} twice"
                )
            yield row


def group_aggregate(
    df: DataFrame,
    key: str | Sequence[str],
    processor: GroupAggregate,
    max_parallelism: int,
    parallelism: int,
    key_type: KeyType | None = None,
) -> DataFrame:
    """Aggregate a streaming changelog by key, with state where Flink's subtasks have theirs.

    The result has the columns of the key, the kind and the aggregates. Partition i of it and of
    Spark's state store holds the keys that Flink sends to subtask i; that is the routing of
    `repartition_by_subtask`. `key` is a column's name, or a list of several for a TUPLE;
    1 <= parallelism <= max_parallelism <= 32768; `key_type` None takes the type from the schema.
    Write the result in output mode "update".

    In the state store the key has one more column, `_lands_on`, a number computed from the
    others that makes Spark's hash of them the number of the subtask.

    Raises KeyGroupsError before PySpark 4.1, in a session without `transformWithState`, as Spark
    Connect's before 4.1, where pandas, PyArrow or protobuf is missing, and where Spark's
    settings are others than needed:
    `spark.sql.streaming.stateStore.providerClass` has to be RocksDB's, and
    `spark.sql.shuffle.partitions` at least the parallelism. Raises ParallelismError,
    InvalidTypeError and InvalidValueError, also for a `df` that is no stream; and
    UnsupportedKeyTypeError for a key type with a FLOAT, DOUBLE or UUID in it, of which Spark
    groups by other equality. A null key makes the query fail, as it makes Flink fail.

    With the processor of GroupAggregate's example; `examples/streaming_distinct_users.py` is a
    whole job.

    >>> changes = group_aggregate(views, "app", users, 128, 4)  # doctest: +SKIP
    """
    _check_pyspark()
    check_df(df)
    check_class("processor", processor, GroupAggregate, "a GroupAggregate")
    max_parallelism, parallelism = check_parallelisms(max_parallelism, parallelism)
    names = [key] if isinstance(key, str) else list(key)
    types = {field.name: field.dataType for field in df.schema.fields}
    for name in [*names, *processor.columns]:
        _type_of("df", name, types)
    taken = {name.lower() for name in [_LANDS_ON, *processor.result_schema.names]}
    for name in names:
        if name.lower() in taken:
            raise InvalidValueError(f"key must not have the name of a result, got {name}")
    known = infer_key_type(df, key) if key_type is None else key_type
    if contains(known, FLOAT, DOUBLE, UUID):
        raise InvalidTypeError(
            f"key type {known} is not for grouping: Spark makes one key of 0.0 and -0.0, and two "
            "of a UUID in upper and in lower case"
        )
    _check_session(df, parallelism)

    def subtask_of(backend: Portable, key_group: Column) -> Column:
        F = backend.F
        subtask: Column = F.coalesce(
            backend.operator_index(key_group, max_parallelism, parallelism),
            F.raise_error(F.lit("key is null, on which Flink fails: filter such rows out first")),
        )
        return subtask

    subtask = key_group_column(df, key, max_parallelism, known, subtask_of)
    columns = dict.fromkeys([*names, *processor.columns])
    key_columns = [F.col(_quoted(name)) for name in names]
    landing = lands_on(PORTABLE, key_columns, F.col(_LANDS_ON), parallelism)
    placed = df.select(*map(_quoted, columns), subtask.alias(_LANDS_ON))
    placed = placed.withColumn(_LANDS_ON, landing)
    keys = [T.StructField(name, types[name]) for name in names]
    changes: DataFrame = placed.groupBy(*map(_quoted, names), _LANDS_ON).transformWithState(
        processor._with_key(names),
        T.StructType([*keys, *processor.result_schema.fields]),
        "Update",
        "ProcessingTime",
    )
    return changes


class StateAccesses(NamedTuple):
    """How often a micro-batch read from the RocksDB state store, and wrote to it.

    >>> StateAccesses(reads=40, writes=20)
    StateAccesses(reads=40, writes=20)
    """

    reads: int
    writes: int


def state_accesses(progress: Any) -> StateAccesses:
    """Return Spark's count of the state accesses of a micro-batch.

    `progress` is a StreamingQueryProgress, such as `query.lastProgress`. The counts are those of
    RocksDB, so they have in them what Spark itself keeps there for timers and TTLs.

    Raises InvalidTypeError for what is no progress.

    >>> from types import SimpleNamespace
    >>> metrics = {"rocksdbGetCount": 24, "rocksdbPutCount": 14}
    >>> progress = SimpleNamespace(stateOperators=[SimpleNamespace(customMetrics=metrics)])
    >>> state_accesses(progress)
    StateAccesses(reads=24, writes=14)
    """
    operators = getattr(progress, "stateOperators", None)
    if not isinstance(operators, (list, tuple)):
        raise InvalidTypeError(f"progress must be a StreamingQueryProgress, got {show(progress)}")
    metrics = [operator.customMetrics for operator in operators]
    return StateAccesses(
        *(
            sum(metric.get(name, 0) for metric in metrics)
            for name in ("rocksdbGetCount", "rocksdbPutCount")
        )
    )


def _check_pyspark() -> None:
    import pyspark

    version = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
    if version < (4, 1):
        raise KeyGroupsError(
            "keygroups.spark.state needs transformWithState for rows, which PySpark has from 4.1 "
            f"on: this is {pyspark.__version__}"
        )


def _check_session(df: DataFrame, parallelism: int) -> None:
    """Refuse what would fail only when the query runs."""
    if not df.isStreaming:
        raise InvalidValueError("df must be a stream, as readStream makes it")
    if not hasattr(df.groupBy(), "transformWithState"):
        raise KeyGroupsError("this Spark session has no transformWithState: use PySpark 4.1's")
    missing = [name for module, name in _NEEDS.items() if not _is_there(module)]
    if missing:
        raise KeyGroupsError(
            f"transformWithState needs {', '.join(missing)}: pip install 'keygroups[state]'"
        )
    conf = df.sparkSession.conf
    provider = conf.get("spark.sql.streaming.stateStore.providerClass", "")
    if provider != _ROCKSDB:
        raise KeyGroupsError(
            f"spark.sql.streaming.stateStore.providerClass must be {_ROCKSDB}, got {provider}"
        )
    partitions = int(conf.get("spark.sql.shuffle.partitions", "200") or 0)
    if partitions < parallelism:
        raise InvalidValueError(
            "spark.sql.shuffle.partitions must be at least the parallelism, "
            f"{parallelism}, got {partitions}"
        )


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the package that it would be in
        return False


def _check_schema(schema: object) -> T.StructType:
    return check_class("schema", schema, T.StructType, "a StructType, such as df.schema")


def _type_of(argument: str, column: object, types: Mapping[str, T.DataType]) -> T.DataType:
    """Return the type of a column, which must be there under just this name."""
    check_str(argument, column, "a column's name")
    if column not in types:
        raise InvalidValueError(
            f"{argument} has no column {show(column)}: there are {', '.join(types)}"
        )
    return types[str(column)]


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
