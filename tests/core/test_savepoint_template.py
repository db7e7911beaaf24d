"""Savepoints made after one of the job: what they take from it, and what is refused."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.framed_entries import framed_entries
from support.bytes.job_points import job_point
from support.bytes.real_savepoints import point

from keygroups.binary_row import binary_row
from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    ParallelismError,
    ParallelismTypeError,
    SavepointError,
)
from keygroups.savepoint import (
    KafkaOffsets,
    KafkaSplit,
    ListStateDescriptor,
    MapStateDescriptor,
    Operator,
    OperatorWriter,
    Row,
    Savepoint,
    SavepointWriter,
    StateEntry,
    TimerServiceDescriptor,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.types import INT, LONG, SQL_ROW, STRING

JOBS = {  # SQL jobs: how many entries, timers among them, their operators have
    "sqlagg": 400,
    "sqljoin": 285,
    "sqlmatch": 76,
    "sqlmini": 180,
    "sqlover": 196,
    "sqlrank": 150,
    "sqltjoin": 99,
    "sqlup": 78,
    "sqlwin": 189,
}


OTHER_COUNTS = {("1.20.5", "sqlover"): 206, ("1.20.5", "sqltjoin"): 106}


def framed(operator: Operator) -> dict[tuple[str, int, bytes], bytes]:
    """Return the bytes of all values, by state, key group and bytes of the key."""
    return {
        (state, key_group, key): value
        for task in operator.tasks()
        for state, key_group, _, key, value in framed_entries(task)
    }


def headers(operator: Operator) -> set[bytes]:
    """Return the types of the key, and of each state, in the headers."""
    found = set()
    for task in operator.tasks():
        for header in task.format.headers():
            found |= {header.key_bytes, *header.state_bytes}
    return found


def write_again(writer: OperatorWriter, entry: StateEntry) -> None:
    """Write an entry as it was read."""
    state, key, namespace = entry.state, entry.key, entry.namespace
    if entry.timestamp is None:
        times = (entry.user_key, entry.last_access, namespace)
        writer.write(state, key, entry.value, *times)
    else:
        domain, service = state.removeprefix("_timer_state/").split("_", 1)
        writer.write_timer(key, entry.timestamp, f"{domain.upper()}_TIME", namespace, service)


@pytest.mark.long
@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize(
    "written_by",
    ["2.3.0-{}-hashmap", pytest.param("1.20.5-{}-rocksdb", marks=pytest.mark.slow)],
)
def test_the_state_of_sql_jobs_from_its_values(job: str, written_by: str, tmp_path: Path) -> None:
    """All bytes are those that Flink wrote: of headers, keys, values and timers."""
    old = job_point(f"{written_by.format(job)}-canonical").read()
    with SavepointWriter(tmp_path / "new", template=old) as writer:
        for operator in old.operators:
            if operator.states:
                new = writer.add_operator(operator.operator_id)
                for entry in operator.entries():
                    write_again(new, entry)
    entries = 0
    for operator in read_savepoint(tmp_path / "new").operators:
        known = old.operator(operator.operator_id)
        assert framed(operator) == framed(known)
        assert headers(operator) == headers(known)
        entries += len(framed(known))
    assert entries == OTHER_COUNTS.get((written_by[:6], job), JOBS[job])


AGGREGATE = "GroupAggregate[4]"
KEY = SQL_ROW("STRING")
ACCUMULATORS = ValueStateDescriptor("accState", SQL_ROW("BIGINT", "INT", "STRING"), has_ttl=True)
TIME = 1_700_000_000_000


@lru_cache
def template() -> Savepoint:
    """Return a savepoint of GROUP BY, in which each state has a time to live."""
    return point("2.3.0-sqlheap-canonical").read()


def test_what_is_left_out_is_that_of_the_template(tmp_path: Path) -> None:
    with SavepointWriter(tmp_path / "new", template=template().path) as writer:
        aggregate = writer.add_operator(AGGREGATE)
        aggregate.write("accState", ("ann",), (3, 5, "x"), last_access=TIME)
    [written] = read_savepoint(tmp_path / "new").operators
    known = template().operator(AGGREGATE)
    assert written.operator_id == known.operator_id
    assert (written.max_parallelism, written.parallelism) == (128, 3)
    assert written.states == known.states
    assert headers(written) == headers(known)
    [entry] = written.entries()
    assert (entry.key, entry.value, entry.last_access) == (("ann",), (3, 5, "x"), TIME)


def test_what_is_given_may_be_a_part_of_the_template(tmp_path: Path) -> None:
    with SavepointWriter(tmp_path / "new", template=template()) as writer:
        aggregate = writer.add_operator(AGGREGATE, KEY, [ACCUMULATORS], 128, parallelism=1)
        aggregate.write("accState", ("ann",), (3, 5, "x"), last_access=TIME)
        timers = [TimerServiceDescriptor()]
        writer.add_operator("GroupAggregate[9]", states=timers).write_timer(("ann", 5), TIME)
    by_id = {one.operator_id: one for one in read_savepoint(tmp_path / "new").operators}
    written = by_id[template().operator(AGGREGATE).operator_id]
    assert [state.name for state in written.states] == ["accState"]
    assert headers(written) < headers(template().operator(AGGREGATE))
    assert written.parallelism == 1
    [entry] = by_id[template().operator("GroupAggregate[9]").operator_id].entries()
    assert (entry.state, entry.key, entry.timestamp) == (
        *("_timer_state/event_user-timers", ("ann", 5)),
        TIME,
    )


def test_an_operator_of_operator_state_alone_has_no_types_in_the_template(tmp_path: Path) -> None:
    offsets = ListStateDescriptor("offsets", LONG)
    with SavepointWriter(tmp_path / "new", template=template()) as writer:
        source = writer.add_operator("src-q", list_states=[offsets])
        source.write_operator_state("offsets", [5])
    [written] = read_savepoint(tmp_path / "new").operators
    assert written.operator_id == template().operator("src-q").operator_id
    assert [one.elements for one in written.operator_state()] == [[5]]


NAMED = r"in operator GroupAggregate\[4\] of the template /.*/point"
REFUSED: list[tuple[tuple[Any, ...], type[Exception], str]] = [
    (("by-user",), InvalidValueError, "operator must be an operator's uid, name or id"),
    (("",), InvalidValueError, "operator must be an operator's uid, name or id"),
    ((5,), InvalidTypeError, "uid must be a str, got 5"),
    ((AGGREGATE, "STRING"), InvalidTypeError, "key_type must be a key type such as LONG"),
    (
        (AGGREGATE, SQL_ROW("STRING NOT NULL")),
        InvalidValueError,
        rf"key_type must be SQL_ROW\(STRING\) as {NAMED}, got SQL_ROW\(STRING NOT NULL\)",
    ),
    (
        (AGGREGATE, KEY, [ValueStateDescriptor("acc", LONG)]),
        InvalidValueError,
        r"states must be of accState, _timer_state/processing_user-timers, "
        rf"_timer_state/event_user-timers as {NAMED}, got 'acc'",
    ),
    (
        (AGGREGATE, None, [ValueStateDescriptor("accState", ACCUMULATORS.value_type)]),
        InvalidValueError,
        rf"states must be as {NAMED}, accState: VALUE <SQL_ROW\(STRING\), "
        r"SQL_ROW\(BIGINT, INT, STRING\)> with TTL, got accState: VALUE .* INT, STRING\)>$",
    ),
    (
        (AGGREGATE, None, [MapStateDescriptor("accState", LONG, LONG, has_ttl=True)]),
        InvalidValueError,
        "got accState: MAP",
    ),
    ((AGGREGATE, None, []), InvalidValueError, "states must be 1 to 32767, got 0"),
    ((AGGREGATE, None, [5]), InvalidTypeError, "states must be descriptors"),
    (
        (AGGREGATE, None, None, 256),
        InvalidValueError,
        rf"max_parallelism must be 128 as {NAMED}, got 256",
    ),
    ((AGGREGATE, None, None, 0), ParallelismError, "max_parallelism must be from 1"),
    ((AGGREGATE, None, None, None, 129), ParallelismError, "parallelism must be from 1 to 128"),
    (
        ("src-q",),
        InvalidValueError,
        "there is none in operator src-q of the template .*: run the job on a row, and take",
    ),
]


@pytest.mark.parametrize(("arguments", "error", "message"), REFUSED)
def test_what_is_not_as_in_the_template(
    arguments: tuple[Any, ...], error: type[Exception], message: str, tmp_path: Path
) -> None:
    writer = SavepointWriter(tmp_path / "new", template=template())
    with pytest.raises(error, match=message):
        writer.add_operator(*arguments)


def test_an_operator_is_there_once(tmp_path: Path) -> None:
    writer = SavepointWriter(tmp_path / "new", template=template())
    writer.add_operator(AGGREGATE)
    with pytest.raises(InvalidValueError, match="and new here, got 'd7c06a45"):
        writer.add_operator(template().operator(AGGREGATE).operator_id)


def test_a_source_may_be_by_its_name(tmp_path: Path) -> None:
    """As those of Flink SQL, which have no uid."""
    with SavepointWriter(tmp_path / "new", template=template()) as writer:
        writer.add_source("Source: Custom Source", KafkaOffsets({("clicks", 0): 5}), 128, 1)
    [written] = read_savepoint(tmp_path / "new").operators
    assert written.operator_id == template().operator("src-q").operator_id
    [split] = written.source_splits().splits
    assert isinstance(split, KafkaSplit)
    assert split.offset == 5


def test_templates_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(SavepointError, match="_metadata"):
        SavepointWriter(tmp_path / "new", template=tmp_path)
    with pytest.raises(InvalidTypeError, match="path must be"):
        SavepointWriter(tmp_path / "new", template=5)  # type: ignore[arg-type]  # a user may do so


def test_timers_on_the_heap_are_of_the_template(tmp_path: Path) -> None:
    """As Flink's own canonical savepoint of the same state has them."""
    on_heap = point("2.3.0-heaptimers-checkpoint").read()
    with SavepointWriter(tmp_path / "new", template=on_heap) as writer:
        states = writer.add_operator("by-string").states
    canonical = point("2.3.0-heaptimers-canonical").read().operator("by-string").states
    assert {state.name: state for state in states} == {state.name: state for state in canonical}


def test_values_of_types_that_only_flink_writes(tmp_path: Path) -> None:
    """Deduplicate keeps rows with a MAP, of kind +U: their types come from the template."""
    job = job_point("2.3.0-sqlrank-hashmap-canonical").read()
    row = Row((5, "a", None, {"x": 1, "y": None}, (7, "b"), None), "+U")
    with SavepointWriter(tmp_path / "new", template=job) as writer:
        last = writer.add_operator("Deduplicate[548]")
        last.write("deduplicate-state", ("a", None), row)
    [written] = read_savepoint(tmp_path / "new").operators
    [entry] = written.entries()
    assert entry.value == row
    assert entry.value.row_kind == "+U"


def test_types_from_nothing_are_needed_without_a_template(tmp_path: Path) -> None:
    writer = SavepointWriter(tmp_path / "new")
    with pytest.raises(ParallelismTypeError, match="max_parallelism must be an int, got None"):
        writer.add_operator("by-user")
    with pytest.raises(InvalidTypeError, match="key_type must be a key type"):
        writer.add_operator("by-user", max_parallelism=128, parallelism=1)
    with pytest.raises(InvalidTypeError, match="states must be an iterable of descriptors"):
        writer.add_operator("by-user", STRING, max_parallelism=128, parallelism=1)


LONG_DECIMAL = SQL_ROW("DECIMAL(30, 4)")
USER_KEYS = [
    # a state of Flink SQL, the type of its values, whether its user keys are projected
    (MapStateDescriptor("data-state", LONG_DECIMAL, LONG), True),
    (MapStateDescriptor("data-state-with-append", LONG_DECIMAL, LONG), True),
    (MapStateDescriptor("data-state-with-update", LONG_DECIMAL, LONG), True),
    (MapStateDescriptor("window_rank", LONG_DECIMAL, LONG), True),
    (MapStateDescriptor("left-records", LONG_DECIMAL, SQL_ROW("INT")), True),
    (MapStateDescriptor("right-records", LONG_DECIMAL, INT), False),
    (MapStateDescriptor("by-price", LONG_DECIMAL, LONG), False),
]


@pytest.mark.parametrize(("state", "is_projected"), USER_KEYS)
def test_a_null_in_a_user_key(
    state: MapStateDescriptor, is_projected: bool, tmp_path: Path
) -> None:
    """What the planner's code projects has a key's bytes, and RocksDB finds it by these."""
    value = (5,) if state.value_type == SQL_ROW("INT") else 5
    with SavepointWriter(tmp_path / "new") as writer:
        top = writer.add_operator("top", STRING, [state], 128, 1)
        top.write(state.name, "a", value, user_key=(None,))
    [written] = read_savepoint(tmp_path / "new").operators
    [(_, _, key)] = framed(written)
    projected = binary_row((None,), LONG_DECIMAL)
    assert len(projected) == 16 + 16
    row = projected if is_projected else projected[:8] + bytes(8)
    assert key == STRING_A + b"\0" + sb.i32(len(row)) + row
    [entry] = written.entries()
    assert entry.user_key == (None,)


STRING_A = b"\2a"


def test_a_projected_row_is_of_kind_i(tmp_path: Path) -> None:
    writer = SavepointWriter(tmp_path / "new")
    top = writer.add_operator("top", STRING, [USER_KEYS[0][0]], 128, 1)
    with pytest.raises(InvalidValueError, match=r"state 'data-state': .* of kind \+I"):
        top.write("data-state", "a", 5, user_key=Row((None,), "+U"))
    with pytest.raises(InvalidTypeError, match=r"user key of MAP state 'data-state': .*a Decimal"):
        top.write("data-state", "a", 5, user_key=(5,))
