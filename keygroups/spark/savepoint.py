"""Keyed state of Flink's savepoints as DataFrames, and savepoints written from DataFrames."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial, wraps
from importlib.util import find_spec
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast
from warnings import warn

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from keygroups._checks import (
    check_choice,
    check_class,
    check_int,
    check_parallelisms,
    check_str,
    show,
)
from keygroups.errors import InvalidTypeError, InvalidValueError, KeyGroupsError
from keygroups.savepoint import (
    EditReport,
    KafkaOffsets,
    Savepoint,
    SavepointEditor,
    SavepointSummary,
    SavepointVerification,
    SavepointWriter,
    Serializer,
    read_savepoint,
)
from keygroups.savepoint._files.files import absolute_path
from keygroups.savepoint._savepoint import savepoint_of, summarized, verified
from keygroups.savepoint._state.writing.new_states import NewState
from keygroups.spark._columns.arguments import check_df, check_session, is_connect
from keygroups.spark._columns.key_columns import cast_advice, simple_type
from keygroups.spark._savepoint.cluster import SparkCluster
from keygroups.spark._savepoint.entry_files import write_entries
from keygroups.spark._savepoint.jobs import classic_frame_of, frame_of, mapped
from keygroups.spark._savepoint.results import described
from keygroups.spark._savepoint.rows.keyed_states import (
    KeyedState,
    ListState,
    MapState,
    ReducingState,
    ValueState,
)
from keygroups.spark._savepoint.sought_keys import wanted_keys
from keygroups.spark._workers import check_workers
from keygroups.spark.dataframe import aggregated, named_column
from keygroups.types import KeyType

if TYPE_CHECKING:
    from datetime import datetime

    from keygroups.savepoint._jobs.file_jobs import FilesJob
    from keygroups.savepoint.values import KryoEnum, KryoFields

__all__ = [
    "KeyedState",
    "ListState",
    "MapState",
    "ReducingState",
    "ValueState",
    "change_max_parallelism",
    "compare_savepoints",
    "edit_savepoint",
    "kafka_offsets",
    "key_sizes",
    "read_keyed_state",
    "register_data_source",
    "summarize_savepoint",
    "verify_savepoint",
    "write_keyed_state",
    "write_savepoint",
]
__dir__ = __all__.copy

_TEXT, _INTEGERS = ("string",), ("tinyint", "smallint", "int", "bigint")
_FLINK = ("1.17", "1.18", "1.19", "1.20", "2.0", "2.1", "2.2", "2.3")


def read_keyed_state(
    spark: SparkSession,
    path: str | os.PathLike[str],
    operator: str,
    state: str | None = None,
    moved: Mapping[str, str] | None = None,
    key_groups: Iterable[int] | None = None,
    *,
    allow: Collection[str | os.PathLike[str]] = (),
    serializers: Mapping[str, type[Serializer] | KryoFields | KryoEnum] | None = None,
    pyflink: tuple[KeyType | Serializer, Iterable[NewState]] | None = None,
    keys: DataFrame | Iterable[Any] | None = None,
    columns: Iterable[str] | None = None,
) -> DataFrame:
    """Read keyed state of an operator: a row an entry, of a MAP a row a user key.

    `path`, `moved`, `allow` and `serializers` are those of `keygroups.savepoint.read_savepoint`;
    the executors open the same paths, and need keygroups with its extras `savepoint` and `arrays`
    and the modules of the serializers, whose column is that of their `key_type`, else binary;
    Spark Connect takes none of these. `operator` is a uid, a name or an id in hex. `state` is the
    name of one state, `key_groups` some of 0..max_parallelism-1; None is all. Other states and
    key groups are not read. Without `state`, timers are in too. `pyflink` is the key type and the
    descriptors of the operator's PyFlink job, the arguments of `Operator.as_pyflink`; keys, names
    and values are then those of the job. Spark Connect takes none.

    `keys` are some keys that are text or integers, a list or the column `key` of a DataFrame, of
    the state's type; entries of others are left out, as by a semi join, with the key groups that
    have none of them and, of RocksDB, the blocks. Keys of a DataFrame are collected for that when
    this is called, unless there are more than 65,536: of so many all is read. A null is no key.
    `columns` are the names of those to return, in that order, None for all: Spark,
    up to 4.3, does not tell Python which columns a query uses, and counts rows of all columns
    unless some are named. Without value, value_bytes and last_access, no value is decoded where
    the format tells its size, and damage within it is not found. What filters of a query leave out
    is read all the same; what `keys` and `key_groups` leave out is not.

    The columns are those of `keygroups.savepoint.StateEntry`: key_group, subtask, state, kind,
    key, namespace, user_key, value, last_access, timestamp, bytes, key_bytes; the two times are
    epoch milliseconds. key, namespace, user_key and value have the type that all states agree on,
    and where these differ they are a struct with a field for each state, null but for the entry's
    own: `value.count`. The types are those that the savepoint's serializers tell of:

    - numbers, booleans, text and byte[], as Value types too: Spark's; char and enums: string
    - BigDecimal and BigInteger: string, as their toString() writes them, since Spark's decimals
      have one scale and 38 digits
    - LocalDate: date; LocalDateTime: timestamp_ntz; Instant, Date and java.sql's types: timestamp;
      LocalTime: bigint, nanoseconds of the day
    - of SQL, DECIMAL, DATE, TIMESTAMP(6) and TIMESTAMP_LTZ(6): Spark's; beyond 6 digits, a struct
      of `millisecond` and `nano_of_millisecond`; TIME: milliseconds of the day; intervals: months,
      or milliseconds
    - TUPLE, and Scala's tuples and case classes: structs of f0, f1, ...; ROW and SQL_ROW: the same
      with `row_kind`, but for a SQL_ROW that is a key or a user key, which is always +I; POJO: by
      name; an element of a LIST with a time to live: `last_access` and `value`
    - lists, arrays (char[] of its units), Scala's collections, and sets in some order: arrays;
      maps, MAP and MULTISET: maps; an Option: its value, or null; NULLABLE: its value
    - an Either: a struct of `is_left`, `left` and `right`; an element of a join or a coGroup:
      `input`, `value_1` and `value_2`; a Try: `value`, or `java_class` and `data` of what it threw
    - windows, CEP's events and matches, an interval join's buffer, multisets: structs by the
      names that Flink has for their fields; the GlobalWindow: its name
    - VARIANT: a struct of `value` and `metadata`; BITMAP: binary, in RoaringBitmap's portable
      format
    - what Kryo or Avro wrote, a POJO whose snapshot has subclasses, and what has such within:
      string, as Python prints the value; where it is bytes that only the job's classes read it is
      null, and the bytes are in a column more, value_bytes, namespace_bytes or user_key_bytes, or
      in key_bytes
    - what takes the job's classes to read, RAW, and Java's own objects: binary
    - a column in which all is null, such as the namespace of a state without one: string

    Each task reads what some subtasks wrote as a stream, or some key groups of one that wrote more
    than 16 MiB. A classic session takes any Spark from 3.5 on; Spark Connect takes 4.0, where the
    server reads the path too. Relative paths are those of this process: executors and the server
    get absolute ones.

    Raises SavepointError where the savepoint is damaged or of a kind that is not read,
    InvalidValueError or InvalidTypeError for an argument, PythonWorkerError where Spark's workers
    run a Python without keygroups. The query fails, and says where, on damaged state and on what a
    column cannot hold as it is: half of a surrogate pair, a date beyond the year 9999, the
    nanoseconds of an Instant, a map with a null key or with sets as keys, Some(null).

    >>> counts = read_keyed_state(spark, savepoint, "by-string", "count", key_groups=[97, 120])
    >>> counts.select("key_group", "key", "value").orderBy("key_group").collect()
    [Row(key_group=97, key='user-89019', value=5), Row(key_group=120, key='user-88355', value=3)]
    """
    check_session(spark)
    _check_arrow("read_keyed_state")
    savepoint = read_savepoint(path, moved, allow=allow, serializers=serializers)
    if serializers and is_connect(spark):
        raise InvalidValueError(
            f"serializers must be None over Spark Connect, which sends no classes, got "
            f"{show(serializers)}"
        )
    if pyflink is not None and is_connect(spark):
        raise InvalidValueError(
            f"pyflink must be None over Spark Connect, which sends no descriptors, got "
            f"{show(pyflink)}"
        )
    from keygroups.savepoint._jobs.state_query import StateQuery  # needs PyArrow

    if pyflink is not None:
        savepoint = savepoint.as_pyflink({operator: pyflink})
    wanted_state = None if state is None else check_str("state", state)
    query = StateQuery(savepoint.operator(operator), wanted_state, columns)
    names = [*query.schema.names]
    if keys is not None and "key" not in names:
        query = query.with_columns([*names, "key"])
    from keygroups.spark._savepoint.rows.spark_types import spark_schema

    schema = spark_schema(query.schema)
    wanted = None if keys is None else wanted_keys(spark, query, keys, schema["key"].dataType)
    encoded = None if wanted is None else wanted.encoded
    job = query.job(key_groups, encoded)
    if not is_connect(spark):
        entries = classic_frame_of(spark, job)
        return entries if wanted is None else wanted.of(entries).select(names)
    register_data_source(spark)
    reader = spark.read.format("flink-state").schema(schema).option("operator", operator)
    if state is not None:
        reader = reader.option("state", state)
    if key_groups is not None or encoded is not None:
        to_read = {group for tasks in job.parts for task in tasks for group in task.key_groups}
        reader = reader.option("keyGroups", ",".join(map(str, sorted(to_read))))
    if moved:
        paths = {old: absolute_path(os.fspath(new)) for old, new in moved.items()}
        reader = reader.option("moved", json.dumps(paths))
    if allow:
        places = [absolute_path(os.fspath(place)) for place in allow]
        reader = reader.option("allow", json.dumps(places))
    entries = reader.load(absolute_path(os.fspath(path)))
    return entries if wanted is None else wanted.of(entries).select(names)


def register_data_source(spark: SparkSession) -> str:
    """Register keyed state as a format of `spark.read`, and return its name, flink-state.

    >>> format = register_data_source(spark)  # doctest: +SKIP
    >>> spark.read.format(format).option("operator", "by-user").load(path)  # doctest: +SKIP

    The options are those of `read_keyed_state`: `operator`; `state`; `keyGroups`, text such as
    "0-63,70"; `moved`, a JSON object; `allow`, a JSON list; `columns`, text such as "key,value",
    in place of which the `schema` of a reader may have some columns, with their types. The columns
    are the same. All is read where Spark runs, which needs keygroups, NumPy and PyArrow. Filters
    are Spark's work and leave out nothing that is read: Spark 4.3 would keep what it has
    pushed down for other queries of the same DataFrame, which then miss rows.

    A table of the catalog reads a savepoint too: CREATE TABLE counts USING `flink-state` OPTIONS
    (operator 'by-user', state 'count') LOCATION '...', without columns, or
    `spark.catalog.createTable`. Spark gives a table's options to no data source in Python that
    reads it, so they are in the metadata of its first column: ALTER TABLE changes none, while
    `WITH (keyGroups = '0-9')` after the table's name in a query adds one.

    A relative path is one from where Spark runs. Raises KeyGroupsError before Spark 4.0, which has
    no data sources in Python, InvalidTypeError for what is no session, and PythonWorkerError where
    Spark's workers run a Python without keygroups.
    """
    check_session(spark)
    if int(spark.version.partition(".")[0]) < 4:
        raise KeyGroupsError(
            f"a data source in Python needs Spark 4.0, this is {spark.version}: use "
            "read_keyed_state in a classic session"
        )
    from keygroups.spark._savepoint.data_source import FORMAT, FlinkStateDataSource

    check_workers(spark)
    spark.dataSource.register(FlinkStateDataSource)
    return FORMAT


_Write = TypeVar("_Write", bound="Callable[..., Savepoint]")
# The arguments of each of both functions alone, with their defaults.
_OF_NEW = {
    **dict.fromkeys(("operators", "max_parallelism", "parallelism", "template")),
    "nulls": "raise",
}
_OF_ROWS = {"operator": None, "states": None, "allow_any_last_access": False}


def _takes_rows(write: _Write) -> _Write:
    """Make `write_savepoint` accept the arguments of `write_keyed_state`, with a warning."""

    @wraps(write)
    def either(*args: Any, **kwargs: Any) -> Savepoint:
        source = kwargs.pop("from_savepoint", None)
        of_rows = {name: kwargs.pop(name, default) for name, default in _OF_ROWS.items()}
        of_new = signature(write).bind_partial(*args, **kwargs).arguments
        defaults, passed = (_OF_ROWS, of_rows) if source is None else (_OF_NEW, of_new)
        for name, default in defaults.items():
            value = passed.get(name, default)
            # A 0 equals False, and is no default.
            if value is not default and not (isinstance(value, str) and value == default):
                *names, last = defaults
                when = "without" if source is None else "with"
                raise InvalidValueError(
                    f"{', '.join(names)} and {last} must be left out {when} from_savepoint, got "
                    f"{show(value)}"
                )
        if source is None:
            return write(*args, **kwargs)
        warn(
            "write_savepoint(..., from_savepoint=...) is write_keyed_state now, which takes the "
            "same arguments; it goes with the next minor version",
            DeprecationWarning,
            stacklevel=2,
        )
        return write_keyed_state(of_new.get("df"), of_new.get("path"), source, **of_rows)  # type: ignore[arg-type]  # It refuses None.

    return cast(_Write, either)


@_takes_rows
def write_savepoint(
    df: DataFrame | None,
    path: str | os.PathLike[str],
    operators: Mapping[str, KeyedState | KafkaOffsets],
    max_parallelism: int | None = None,
    parallelism: int | None = None,
    flink: str = "2.3",
    *,
    template: Savepoint | str | os.PathLike[str] | None = None,
    nulls: str = "raise",
) -> Savepoint:
    """Write a savepoint from which a Flink job starts with keyed state that Spark computed.

    `df` is the DataFrame of those `operators` that have none of their own, None if all have.
    Keys are of a key type that `with_routing` takes; a state may be of a Serializer too, from the
    column that `read_keyed_state` gives for it, unless that is the text of what Kryo or Avro wrote
    or of a POJO with subclasses.
    `path` is a folder that is not there yet, or its URL (extra `savepoint`), which the driver and
    the executors reach. `operators` maps the uids of operators to their `KeyedState`, those of
    sources to the `KafkaOffsets` where they go on.
    `max_parallelism`, 1..32768, has to be the job's, which sets it explicitly; `parallelism`,
    1..max_parallelism, is how many files an operator has, each written by one task: the job may
    run with any other. `flink` is the version of the job, 1.17 to 2.3: one format serves all,
    which jobs of 1.17.2, 1.19.3, 1.20.5, 2.1.3 and 2.3.0 have restored.

    `nulls` is "raise" or "drop" for null keys, as `keygroups.spark` has it.

    Rows are moved once, to the task that writes the file of their subtask, and sorted there by
    Spark: what is held is a batch of Arrow. The folder appears when all of it is written; a query
    that fails leaves none, and tasks that are tried again, or twice, no second file. Executors
    need keygroups and its extra `arrays`. A DataFrame is computed once for each operator that has
    it, and part of it again where Spark has lost an executor: save one first that is other rows
    each time, as of `limit` without an order or of rand(), whose values are not refused.

    `template` is that of `SavepointWriter`: a savepoint of the job, from which come the ids of
    operators, the bytes of their types and what is left out of max parallelism and parallelism.
    `operators` may be by name or id then, as those of Flink SQL, which have no uid; their keys
    are of a SQL_ROW, and so are rows, whose columns are structs. Of a GROUP BY accState has a
    column for each part of an accumulator: of COUNT(*) a bigint, of AVG a sum and a count.

    Returns what `read_savepoint` finds, whose `str()` says what the job has to set.

    Raises InvalidTypeError, InvalidValueError, UnsupportedKeyTypeError and ParallelismError for
    an argument, also a column that does not hold its type, and a key that is not deterministic,
    such as rand() or a UDF marked so, before a job starts. Those that come out only then are the
    same errors: a null key, a VALUE or user key that a key has twice, a null where Flink writes
    none. SavepointError where the folder cannot be written; PythonWorkerError, before any file is
    there, where Spark's workers run a Python without keygroups.

    >>> from tempfile import mkdtemp
    >>> from keygroups.types import LONG, STRING
    >>> flights = spark.createDataFrame([("UA", "IAH", 3), ("UA", "ORD", 4), ("AA", "MIA", 2)],
    ...     "carrier string, dest string, n bigint")
    >>> flown = KeyedState(None, "carrier", STRING, {"to": MapState("dest", "n", STRING, LONG)})
    >>> savepoint = write_savepoint(flights, mkdtemp() + "/flown", {"by-carrier": flown}, 128, 3)
    >>> [(entry.key, entry.user_key, entry.value)
    ...     for entry in savepoint.operator("by-carrier").entries()]
    [('UA', 'IAH', 3), ('UA', 'ORD', 4), ('AA', 'MIA', 2)]
    """
    check_choice("flink", flink, _FLINK)
    check_choice("nulls", nulls, ("raise", "drop"))
    if template is None:
        check_parallelisms(max_parallelism, parallelism)
    if not isinstance(operators, Mapping):
        raise InvalidTypeError(f"operators must be KeyedStates by uid, got {show(operators)}")
    if not operators:
        raise InvalidValueError("operators must be at least one, got none")
    _check_arrow("write_savepoint")
    writer = SavepointWriter(path, template=template)
    plans = []
    for uid, state in operators.items():
        if isinstance(state, KafkaOffsets):
            writer.add_source(uid, state, *check_parallelisms(max_parallelism, parallelism))
        else:
            plans.append(_plan(writer, uid, state, df, max_parallelism, parallelism, nulls))
    with writer:
        for plan in plans:
            description = f"write_savepoint: {plan.uid}, to {os.fspath(path)}"
            with described(plan.entries.sparkSession, description):
                write_entries(plan.entries, plan.files)
    return writer.savepoint()


def write_keyed_state(
    df: DataFrame,
    path: str | os.PathLike[str],
    from_savepoint: Savepoint | str | os.PathLike[str],
    operator: str,
    states: Iterable[str] | None = None,
    *,
    allow_any_last_access: bool = False,
) -> Savepoint:
    """Write a savepoint again, with keyed state of one operator that rows have.

    `from_savepoint` is what `read_savepoint` returns, or its path: types, max parallelism and all
    but the keyed state of `operator`, a uid, a name or an id in hex, stay as they are there.
    `path` is that of `write_savepoint`, outside of it.
    `df` has the columns that `read_keyed_state` gives, of the same types: state, key, value, and
    where a state needs them namespace, user_key, last_access and timestamp; others are passed
    over. Its rows are the entries of `states`, by name, all if None: other states are kept as
    they are. Key groups are computed. `allow_any_last_access` is that of `KeyedState`.

    State whose values are text in the columns, as those of Kryo and Avro, is refused unless it is
    kept; so are keys whose hash is not known. Bytes of a serializer that is not known are written
    as they are.

    Returns what `read_savepoint` finds. Raises what `write_savepoint` raises, and
    InvalidValueError where there are rows of some states only, and entries of others.

    >>> from tempfile import mkdtemp
    >>> rows = read_keyed_state(spark, savepoint, "by-string", "count").where("value < 5")
    >>> fewer = write_keyed_state(rows, mkdtemp() + "/fewer", savepoint, "by-string", ["count"])
    >>> sorted({entry.value for entry in fewer.operator("by-string").entries(["count"])})
    [1, 2, 3, 4]
    """
    allow = check_class("allow_any_last_access", allow_any_last_access, bool, "a bool")
    check_df(df)
    name = check_str("operator", operator)
    _check_arrow("write_keyed_state")
    from keygroups.savepoint._jobs.cluster_editors import RowsEditor  # needs PyArrow
    from keygroups.spark._savepoint.rows.entry_rows import entry_rows

    spark = df.sparkSession
    editor = RowsEditor(savepoint_of(from_savepoint), path, name, states)
    rows = entry_rows(df, editor.columns)
    job = editor.rows_job(rows.fields, allow)
    entries, kept = mapped(rows.df, job.encode, job.files.schema), editor.kept_entries()
    if kept is not None:
        entries = entries.unionAll(frame_of(spark, kept))
    with editor, described(spark, editor.what):
        write_entries(entries, job.files)
        missing = editor.missing_entries()
        if missing is not None:
            for row in frame_of(spark, missing).limit(1).collect():
                editor.refuse(row["heads"])
    return editor.savepoint()


def edit_savepoint(
    spark: SparkSession,
    savepoint: Savepoint | str | os.PathLike[str],
    output: str | os.PathLike[str],
    moved: Mapping[str, str] | None = None,
    *,
    uids: Iterable[str] | None = None,
    allow: Collection[str | os.PathLike[str]] = (),
    serializers: Mapping[str, type[Serializer] | KryoFields | KryoEnum] | None = None,
) -> SavepointEditor:
    """Return a SavepointEditor whose changes are made on Spark's executors.

    The arguments, the verbs and what is raised are those of
    `keygroups.savepoint.SavepointWriter.from_existing_savepoint`, and PythonWorkerError where
    Spark's workers run a Python without keygroups. Verbs are called in the `with` block; when it
    ends, the keyed state of each edited operator is written anew, in one task for each file. The
    executors reach both folders, and need keygroups, its extras `arrays` and `savepoint`, and the
    modules of the serializers. Functions are pickled by Spark, and may be called again for an
    entry when a task is tried again: they must return the same. An error that one raises is
    Spark's, with its traceback. Operators that are not edited, and operator state, are copied by
    the driver.

    >>> from tempfile import mkdtemp
    >>> with edit_savepoint(spark, savepoint, mkdtemp() + "/new") as writer:
    ...     writer.operator("by-string").map_entries("count", lambda entry: entry.value + 1)
    >>> [by_string] = [edited for edited in writer.report().operators if edited.states]
    >>> [(state.state, state.kept, state.changed) for state in by_string.states if state.changed]
    [('count', 0, 25)]
    """
    check_session(spark)
    _check_arrow("edit_savepoint")
    from keygroups.savepoint._jobs.cluster_editors import ClusterEditor  # needs PyArrow

    source = savepoint_of(savepoint, moved, allow, serializers, uids)
    return ClusterEditor(source, output, SparkCluster(spark))


def kafka_offsets(df: DataFrame) -> KafkaOffsets:
    """Return the KafkaOffsets of rows of topic, partition and offset.

    `df` has the columns `topic`, a string, `partition` and `offset`, integers, and a row for each
    partition, with the offset of the next record to read: that is `max(offset) + 1` of the
    records that a batch job has read. The result is for `write_savepoint`, as one of its
    `operators`, or for `SavepointWriter.add_source`.

    Raises InvalidTypeError and InvalidValueError for other columns, a partition that is there
    twice, a null, and what KafkaOffsets refuses.

    >>> records = spark.createDataFrame(
    ...     [("clicks", 0, 4710), ("clicks", 0, 4709), ("clicks", 1, 4698)],
    ...     "topic string, partition int, offset bigint")
    >>> read = records.groupBy("topic", "partition").agg((F.max("offset") + 1).alias("offset"))
    >>> sorted(kafka_offsets(read).offsets.items())
    [(('clicks', 0), 4711), (('clicks', 1), 4699)]
    """
    check_df(df)
    columns = [named_column(df, name, name) for name in ("topic", "partition", "offset")]
    for column, types in zip(columns, (_TEXT, _INTEGERS, _INTEGERS)):
        spark_type = column.spark_type
        if spark_type is None or simple_type(spark_type) not in types:
            raise InvalidTypeError(
                f"{column.name} must be {' or '.join(types)}, got {show(spark_type)}"
                + ("" if spark_type is None else cast_advice(spark_type, types[0]))
            )
    topic, partition, offset = (column.column for column in columns)
    topic = topic.cast("string")  # a char(n) may have a collation that groups unlike texts
    places = topic.alias("t"), partition.alias("p")
    rows = aggregated(df, places, [F.max(offset).alias("o"), F.count("*").alias("n")])
    offsets = {}
    for row in rows.collect():
        if row["n"] > 1:
            raise InvalidValueError(
                f"df must have each partition once, got {row['n']} rows of "
                f"{show((row['t'], row['p']))}: of records take max(offset) + 1 of each partition"
            )
        offsets[row["t"], row["p"]] = row["o"]
    return KafkaOffsets(offsets)


def change_max_parallelism(
    spark: SparkSession,
    path: str | os.PathLike[str],
    new_max_parallelism: int,
    output: str | os.PathLike[str],
    parallelism: int | None = None,
    operators: Iterable[str] | None = None,
    moved: Mapping[str, str] | None = None,
    *,
    uids: Iterable[str] | None = None,
    allow: Collection[str | os.PathLike[str]] = (),
    serializers: Mapping[str, type[Serializer] | KryoFields | KryoEnum] | None = None,
) -> EditReport:
    """Write a savepoint anew with another max parallelism, on Spark's executors.

    `path`, `moved`, `uids`, `allow` and `serializers` are those of
    `keygroups.savepoint.read_savepoint`, the others and what is raised those of
    `keygroups.savepoint.change_max_parallelism`, and PythonWorkerError where Spark's workers run a
    Python without keygroups. The executors reach both folders, and need keygroups, its extras
    `arrays` and `savepoint`, and the modules of the serializers. Entries are moved once, to the
    task that writes the file of their new subtask, and sorted there by Spark.

    >>> from tempfile import mkdtemp
    >>> report = change_max_parallelism(spark, savepoint, 4096, mkdtemp() + "/new")
    >>> [(one.operator, one.new_max_parallelism) for one in report.operators if one.states]
    [('by-string', 4096)]
    """
    check_session(spark)
    _check_arrow("change_max_parallelism")
    editor = edit_savepoint(
        spark, path, output, moved, uids=uids, allow=allow, serializers=serializers
    )
    editor.set_max_parallelism(new_max_parallelism, parallelism=parallelism, operators=operators)
    editor.convert_to_canonical()
    return editor._written()


def compare_savepoints(
    spark: SparkSession,
    old: Savepoint | str | os.PathLike[str],
    new: Savepoint | str | os.PathLike[str],
    operator: str,
    states: Iterable[str] | None = None,
) -> DataFrame:
    """Return the entries of keyed state that two savepoints do not have in common.

    `old` and `new` are what `read_savepoint` returns, or their paths; `operator` is a uid, a name
    or an id in hex in either, `states` names of its keyed states and timers, None for all. What is
    the same is that of `Savepoint.compare`: entries are found by the bytes of key, namespace and
    user key, so that 0.0 is not -0.0, whatever the formats, parallelisms and max parallelisms.

    A row has key_group, that of `old` if it has the entry, state, key, namespace, user_key,
    timestamp, of timers, and kind: "only_here" for an entry of `old` alone, "only_there" for one
    of `new` alone, "changed" for another value, "touched" for another time of last access alone.
    Then come old_value, new_value, old_last_access, new_last_access and key_bytes. The types are
    those of `read_keyed_state`, as are columns of bytes, of values old_value_bytes and
    new_value_bytes.

    Each task reads some key groups of both, and sorts them in bounded memory. Under two max
    parallelisms there are as many tasks at most as their greatest common divisor. The executors
    reach both savepoints, as for `read_keyed_state`, and the driver too, of Spark Connect the
    client.

    Raises InvalidValueError or InvalidTypeError for an argument, and where a state has keys of
    other types in the two; SavepointError where the header of state is damaged. The query fails
    on damaged state, as that of `read_keyed_state` does.

    >>> from tempfile import mkdtemp
    >>> with edit_savepoint(spark, savepoint, mkdtemp() + "/new") as writer:
    ...     writer.operator("by-string").delete_keys(["user-89019"])
    >>> compared = compare_savepoints(spark, savepoint, writer.savepoint(), "by-string", ["count"])
    >>> compared.select("key_group", "key", "kind", "old_value", "new_value").collect()
    [Row(key_group=97, key='user-89019', kind='only_here', old_value=5, new_value=None)]
    """
    check_session(spark)
    _check_arrow("compare_savepoints")
    from keygroups.savepoint._jobs.questions import difference_job  # needs PyArrow

    job = difference_job(savepoint_of(old), savepoint_of(new), operator, states)
    return frame_of(spark, job)


def key_sizes(
    spark: SparkSession,
    savepoint: Savepoint | str | os.PathLike[str],
    operator: str,
    top: int = 10,
) -> DataFrame:
    """Return the keys with the most bytes of keyed state, the heaviest first.

    `savepoint` is what `read_savepoint` returns, or its path; `operator` is a uid, a name or an id
    in hex, `top` how many keys, at least 1. The columns are those of
    `keygroups.savepoint.KeySize`: key, of the type that `read_keyed_state` gives it, key_group,
    subtask, entries, bytes, and key_bytes where keys may take the job's classes to read. The
    executors read all entries, and hold the keys of one key group at a time. Two keys are one if
    Java's are: 0.0 and -0.0 are two.

    Raises InvalidValueError or InvalidTypeError for an argument, SavepointError where a header is
    damaged. The query fails where state is damaged, and where the bytes do not say what is of the
    key, as for `keygroups.savepoint.Operator.key_sizes`.

    >>> heaviest = key_sizes(spark, savepoint, "by-string", top=1)
    >>> heaviest.select("key", "key_group", "subtask", "entries").collect()
    [Row(key='user-89019', key_group=97, subtask=2, entries=32)]
    """
    check_session(spark)
    most = check_int("top", top, 1, 2**31 - 1)
    _check_arrow("key_sizes")
    from keygroups.savepoint._jobs.questions import key_size_job  # needs PyArrow

    job = key_size_job(savepoint_of(savepoint).operator(operator))
    return frame_of(spark, job).orderBy(F.desc("bytes"), "key_group").limit(most)


def verify_savepoint(
    spark: SparkSession,
    savepoint: Savepoint | str | os.PathLike[str],
    operators: Iterable[str] | None = None,
) -> SavepointVerification:
    """Read all of a savepoint; return a SavepointVerification: damage, and misplaced state.

    `savepoint` is what `read_savepoint` returns, or its path; the others, and what is verified and
    raised, are those of `keygroups.savepoint.Savepoint.verify`. Keyed state is read by the
    executors, each key group by one task in bounded memory; they reach the files, as for
    `read_keyed_state`. The driver looks whether the files are there, and reads operator state.

    >>> verify_savepoint(spark, savepoint).has_faults
    False
    """
    check_session(spark)
    _check_arrow("verify_savepoint")
    source = savepoint_of(savepoint)
    run = partial(SparkCluster(spark).run, f"verify_savepoint: {source.path}")
    return verified(source, operators, run)


def summarize_savepoint(
    spark: SparkSession,
    savepoint: Savepoint | str | os.PathLike[str],
    operators: Iterable[str] | None = None,
    *,
    top: int = 5,
    at: datetime | None = None,
) -> SavepointSummary:
    """Read all of a savepoint; return a SavepointSummary: what each state of each operator holds.

    `savepoint` is what `read_savepoint` returns, or its path; the others, the numbers and what is
    raised are those of `keygroups.savepoint.Savepoint.summary`. Keyed state is read by the
    executors, each key group by one task; they reach the files, as for `read_keyed_state`. The
    driver reads operator state.

    >>> [by_string] = summarize_savepoint(spark, savepoint, ["by-string"], top=1).operators
    >>> [(state.entries, state.keys) for state in by_string.states if state.state == "ttlMap"]
    [(100, 25)]
    """
    check_session(spark)
    _check_arrow("summarize_savepoint")
    source = savepoint_of(savepoint)
    run = partial(SparkCluster(spark).run, f"summarize_savepoint: {source.path}")
    return summarized(source, operators, top, at, run)


class _Plan(NamedTuple):
    """The entries of an operator, and the job that writes its files."""

    uid: str
    entries: DataFrame
    files: FilesJob


def _plan(
    writer: SavepointWriter,
    uid: str,
    keyed: KeyedState,
    df: DataFrame | None,
    max_parallelism: int | None,
    parallelism: int | None,
    nulls: str,
) -> _Plan:
    """Add an operator, and return its _Plan, after all checks that need no job of Spark."""
    check_class("operators", keyed, KeyedState, "KeyedStates by uid")
    has_ttl = keyed.ttl is not None
    states = [state.described(name, has_ttl) for name, state in keyed.states.items()]
    operator = writer.add_operator(
        *(uid, keyed.key_type, states, max_parallelism, parallelism),
        allow_any_last_access=keyed.allow_any_last_access,
    )
    # Both need NumPy and PyArrow.
    from keygroups.savepoint._jobs.row_jobs import wide_rows_job
    from keygroups.spark._savepoint.rows.state_columns import rows_of

    source = df if keyed.df is None else keyed.df
    check_df(source)
    assert source is not None
    rows = rows_of(source, keyed, operator.max_parallelism, nulls)
    job = wide_rows_job(uid, operator, keyed.key_type, has_ttl, rows.states)
    return _Plan(uid, mapped(rows.df, job.encode, job.files.schema), job.files)


def _check_arrow(function: str) -> None:
    if find_spec("numpy") is None or find_spec("pyarrow") is None:
        raise ModuleNotFoundError(
            f"{function} needs NumPy and PyArrow: pip install 'keygroups[arrays]'"
        )
