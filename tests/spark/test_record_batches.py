"""The batches of Arrow that executors hand to Spark, looked at without one."""

from __future__ import annotations

import inspect
import pickle
from collections import Counter
from functools import partial
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.column_entries import entry, operator_of
from support.bytes.job_points import JOB_POINTS
from support.bytes.real_savepoints import POINTS, Point, point
from support.inside.serializers import write_string

from keygroups.errors import InvalidValueError, SavepointError

pytest.importorskip("pyspark")
pa: Any = pytest.importorskip("pyarrow")

from pyspark.sql.pandas.types import to_arrow_schema  # noqa: E402
from support.inside.adapter import (  # noqa: E402
    PickledRunner,
    WorkerFunction,
    keep_modules,
    spark_schema,
)
from support.inside.columns import layout_of, record_batches, state_query  # noqa: E402

STRING, LONG = sb.simple("String"), sb.simple("Long")
NUMBERED = ("state", "key_group", "bytes")


def check(saved: Point) -> int:
    """Return the number of entries; batches are of the schema that PySpark makes."""
    count = 0
    for operator in saved.read().operators:
        if not operator.states:
            continue
        layout = layout_of(operator.states)
        # PySpark from 4.2 on asks for the zone; before it took UTC.
        asks = "timezone" in inspect.signature(to_arrow_schema).parameters
        zone: dict[str, Any] = {"timezone": "UTC"} if asks else {}
        of_pyspark = to_arrow_schema(spark_schema(layout.schema), **zone)
        assert layout.schema.equals(of_pyspark)
        sizes: Counter[tuple[str, int]] = Counter()
        try:
            for task in chain.from_iterable(state_query.read_tasks(operator, None, None)):
                for batch in record_batches(task, layout):
                    batch.validate(full=True)
                    item = {name: batch.column(name).to_pylist() for name in NUMBERED}
                    for state, key_group, size in zip(*item.values()):
                        sizes[state, key_group] += size
                    count += batch.num_rows
        except (InvalidValueError, SavepointError) as error:
            unheld = "is nothing that a column holds"
            if unheld not in str(error) and "takes the job's own classes" not in str(error):
                raise
            continue
        for one in operator.entries():
            sizes[one.state, one.key_group] -= one.bytes
        assert not any(sizes.values())
    return count


@pytest.mark.parametrize("name", ["2.3.0-rocksinc-checkpoint"])
def test_batches_of_a_point(name: str) -> None:
    assert check(point(name)) > 300


@pytest.mark.slow
@pytest.mark.parametrize("saved", [*POINTS, *JOB_POINTS], ids=str)
def test_batches_of_all_points(saved: Point) -> None:
    assert check(saved) >= 0


def test_what_executors_do(tmp_path: Path) -> None:
    """States of other types have each their field; what is the same in all is a column too."""
    states = [sb.state("n", "VALUE", LONG), sb.state("t", "VALUE", sb.ttl_of(STRING))]
    group = [(0, [entry(3, "a", sb.i64(5))]), (1, [entry(3, "b", sb.i64(9) + b"\0")])]
    operator = operator_of(tmp_path, states, [group])
    layout = layout_of(operator.states)
    parts = state_query.read_tasks(operator, None, None)
    tasks = pa.array([pickle.dumps([pickle.dumps(part)]) for part in parts])
    reader = pickle.loads(pickle.dumps(PickledRunner(state_query.StateReader(layout).read)))
    batches = list(reader([pa.RecordBatch.from_arrays([tasks], ["tasks"])]))
    rows = [row for batch in batches for row in batch.to_pylist()]
    common = {"key_group": 3, "subtask": 0, "kind": "VALUE", "namespace": None, "user_key": None}
    common |= {"timestamp": None, "key_bytes": None}
    assert rows == [
        {"state": "n", "key": "a", "value": {"n": 5, "t": None}, "last_access": None, "bytes": 11}
        | common,
        {"state": "t", "key": "b", "value": {"n": None, "t": None}, "last_access": 9, "bytes": 12}
        | common,
    ]


def test_a_worker_keeps_what_it_loaded_from_searches_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Garbage is collected before, or it would stay; all rows are out by then."""
    done: list[str] = []
    names = ("collect", "freeze")
    collector = SimpleNamespace(**{name: partial(done.append, name) for name in names})
    keep_modules.cache_clear()
    monkeypatch.setattr("keygroups.spark._savepoint.arrow_map.gc", collector)
    function = pickle.loads(pickle.dumps(WorkerFunction(iter)))
    for row in function(["a", "b"]):
        done.append(row)
    assert [*function(["c"])] == ["c"]
    assert done == ["a", "b", *names]


def test_an_error_names_the_key_group(tmp_path: Path) -> None:
    values = [write_string("fine"), write_string("\udc00")]
    groups = [[(0, [entry(3 + number, "a", value)])] for number, value in enumerate(values)]
    operator = operator_of(tmp_path, [sb.state("n", "VALUE", STRING)], groups)
    first, second = chain.from_iterable(state_query.read_tasks(operator, None, None))
    layout = layout_of(operator.states)
    assert sum(batch.num_rows for batch in record_batches(first, layout)) == 1
    message = "value in state 'n', key group 4: .* half of a surrogate pair"
    with pytest.raises(InvalidValueError, match=message):
        list(record_batches(second, layout))
