"""Costs grow about as their arguments do: counted in steps and bytes, not timed.

Every public callable of the core is here, with what makes it grow, or among those that do not.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial

import growing_savepoints as gs
import pytest
from growth import MOST, TIMES, count_bytes, count_steps
from public_calls import CALLS, NewPath, operator_writer, savepoint_folder, written_folder

import keygroups
from keygroups import (
    KeyGroupLoad,
    LocalKeyBy,
    RescalePlan,
    SubtaskKeySelector,
    infer_routing,
    partitioners,
)
from keygroups.binary_row import binary_row
from keygroups.explain import hash_exchanges
from keygroups.load import evenness
from keygroups.logical_types import parse_logical_type
from keygroups.operator_state import (
    redistribute_list_state,
    redistribute_operator_state,
    split_distribute_order,
)
from keygroups.reports import RescaleReport
from keygroups.savepoint import (
    Operator,
    SavepointWriter,
    ValueStateDescriptor,
    change_max_parallelism,
    convert_to_canonical,
    operator_reports,
    read_savepoint,
)
from keygroups.state_keys import CompositeKeySerializer, Serializer, serializer_of
from keygroups.testing import assert_reaches_all, assert_spread, assert_subtask, keys
from keygroups.types import (
    BIG_DEC,
    BIG_INT,
    INT,
    LIST,
    LONG,
    MAP,
    ROW,
    SET,
    SQL_ROW,
    STRING,
    TUPLE,
)


def plan_text(exchanges: int) -> str:
    exchange = """   :- Exchange(distribution=[hash[a]])
   :  +- TableSourceScan(table=[[t]], fields=[a])
"""
    last = exchange.replace(":-", "+-").replace(":", " ")
    union = "+- Union(all=[true], union=[a])\n" + exchange * (exchanges - 1) + last
    top = "GroupAggregate(groupBy=[a], select=[a])"
    return f"== Optimized Execution Plan ==\n{top}\n{union}"


def row_type(fields: int) -> str:
    return f"ROW<{'a INT, ' * fields}b INT>"


def names(count: int) -> list[str]:
    """Return names that do not share a bucket of a HashMap of up to 4096."""
    return [chr(ord("\u1000") + i) for i in range(count)]


def buffered(count: int) -> LocalKeyBy[int, int]:
    buffer: LocalKeyBy[int, int] = LocalKeyBy(2**31 - 1, max)
    buffer.restore([(i, i) for i in range(count)])
    return buffer


def failed(run: Callable[[], object]) -> None:
    with pytest.raises(AssertionError):
        run()


STRINGS = CompositeKeySerializer(128, STRING, STRING, STRING)
STRING_LIST = serializer_of(LIST(STRING))
LISTS = CompositeKeySerializer(128, LIST(STRING))


def operator_of(entries: int, uid: str = "by-int") -> Operator:
    return read_savepoint(savepoint_folder(entries)).operator(uid)


def write_entries(n: int) -> None:
    with SavepointWriter(NewPath()) as writer:
        operator = operator_writer(writer)
        for user_key in range(n):
            operator.write("cities", 1, 5, str(user_key))
        operator.close()


def plan_of(n: int) -> RescalePlan:
    return RescalePlan(n, n // 3, n // 2)


def load_of(n: int) -> KeyGroupLoad:
    return KeyGroupLoad(n, [i * 7919 % 104729 for i in range(n)])


try:
    import numpy as np

    from keygroups import arrays
except ModuleNotFoundError:
    OF_ARRAYS: dict[str, Callable[[int], object]] = {}
else:
    OF_ARRAYS = {
        "arrays.assign_key_to_parallel_operator": lambda n: arrays.assign_key_to_parallel_operator(
            [np.arange(n), np.array(["abcdefgh"] * n)], 128, 4, SQL_ROW("BIGINT", "STRING")
        ),
        "arrays.assign_to_key_group": lambda n: arrays.assign_to_key_group(np.arange(n), 128),
        "arrays.compute_key_group_for_key_hash": lambda n: arrays.compute_key_group_for_key_hash(
            np.arange(n), 128
        ),
        "arrays.compute_operator_index_for_key_group": lambda n: (
            arrays.compute_operator_index_for_key_group(32_768, 4, np.arange(n))
        ),
        "arrays.hash_code": lambda n: arrays.hash_code(np.array(["\u00e9" * n, "a"])),
        "arrays.hash_code of SQL_ROW": lambda n: arrays.hash_code(
            [np.array(["a" * 5 * n, "b"])], SQL_ROW("STRING")
        ),
        "arrays.key_group_load": lambda n: arrays.key_group_load(np.arange(n), 128),
    }

GROWING: dict[str, Callable[[int], object]] = {
    **OF_ARRAYS,
    "assignment.assign_key_to_parallel_operator": lambda n: (
        keygroups.assign_key_to_parallel_operator("\u00e9" * n, 128, 4)
    ),
    "assignment.assign_to_key_group": lambda n: keygroups.assign_to_key_group("a" * n, 128),
    "assignment.trace_key": lambda n: keygroups.trace_key([1] * n, 128, 4),
    "binary_row.binary_row": lambda n: binary_row(
        ([(1, "abcdefgh")] * n,), SQL_ROW("ARRAY<ROW<INT, STRING>>")
    ),
    "explain.hash_exchanges": lambda n: hash_exchanges(plan_text(n)),
    "hashing.hash_code": lambda n: keygroups.hash_code(list(range(n))),
    "hashing.hash_code of BIG_DEC": lambda n: keygroups.hash_code(
        Decimal((0, (7,) * (n * 10), 3)), BIG_DEC
    ),
    "hashing.hash_code of BIG_INT": lambda n: keygroups.hash_code(3 ** (n * 20), BIG_INT),
    "hashing.hash_code of LIST": lambda n: keygroups.hash_code([[1]] * n, LIST(LIST(LONG))),
    "hashing.hash_code of MAP": lambda n: keygroups.hash_code(
        dict.fromkeys(map(str, range(n)), 1), MAP(STRING, INT)
    ),
    "hashing.hash_code of ROW": lambda n: keygroups.hash_code(
        (1,) * n, ROW(*[INT] * n, names=map(str, range(n)))
    ),
    "hashing.hash_code of SET": lambda n: keygroups.hash_code(
        {(i, -31 * i) for i in range(n)}, SET(TUPLE(INT, INT))
    ),
    "load.KeyGroupLoad": lambda n: KeyGroupLoad(n, [0.1] * n),
    "load.KeyGroupLoad of a mapping": lambda n: KeyGroupLoad(n, {n - 1: 1}),
    "load.evenness": lambda n: evenness(n),
    "local_key_by.LocalKeyBy": lambda n: buffered(n).process(0, 1),
    "operator_state.redistribute_list_state": lambda n: redistribute_list_state(
        [[1] * 5] * n, n // 2
    ),
    "operator_state.redistribute_operator_state": lambda n: redistribute_operator_state(
        {str(i): ("SPLIT_DISTRIBUTE", [[1], None, [2, 3]]) for i in range(n)}, 3, 2
    ),
    "operator_state.split_distribute_order": lambda n: split_distribute_order(names(n)),
    "partitioners.pointwise_edges": lambda n: partitioners.pointwise_edges(n, 2 * n),
    "reports.RescaleReport": lambda n: str(RescaleReport(plan_of(n), load_of(n))),
    "rescale.RescalePlan": lambda n: list(plan_of(n)),
    "logical_types.parse_logical_type": lambda n: parse_logical_type(row_type(n)),
    "subtask_keys.SubtaskKeySelector": lambda n: SubtaskKeySelector(n, n // 4),
    "subtask_keys.keys_for_subtasks": lambda n: keygroups.keys_for_subtasks(n, n // 4, STRING),
    "subtask_keys.keys_for_subtasks, many": lambda n: keygroups.keys_for_subtasks(128, 4, n=n),
    "testing.assert_reaches_all": lambda n: failed(lambda: assert_reaches_all([5] * n, n, n // 4)),
    "testing.assert_spread": lambda n: assert_spread(range(n), 128, 4),
    "testing.assert_spread, uneven": lambda n: failed(
        lambda: assert_spread([*range(n), *[5] * n], n, n // 4)
    ),
    "testing.assert_subtask": lambda n: failed(lambda: assert_subtask("a" * n, 0, 128, 128)),
    "testing.keys": lambda n: keys(ROW(*[INT] * n)),
    "types.ROW": lambda n: ROW(*[INT] * n, names=map(str, range(n))),
    "types.SQL_ROW": lambda n: SQL_ROW(*["BIGINT"] * n),
    "KeyGroupLoad.groups_per_subtask": lambda n: load_of(n).groups_per_subtask(n // 2),
    "KeyGroupLoad.idle_subtasks": lambda n: load_of(n).idle_subtasks(n // 2),
    "KeyGroupLoad.imbalance": lambda n: load_of(n).imbalance(n // 2),
    "KeyGroupLoad.per_subtask": lambda n: load_of(n).per_subtask(n // 2),
    "KeyGroupLoad.recommend": lambda n: load_of(n).recommend(1, n),
    "KeyGroupLoad.recommend, all alike": lambda n: KeyGroupLoad(n, [1] * n).recommend(1, n),
    "KeyGroupLoad.recommend, ever more": lambda n: KeyGroupLoad(n, range(n)).recommend(1, n),
    "KeyGroupLoad.recommend, one hot": lambda n: KeyGroupLoad(n, {7: 1}).recommend(1, n),
    "KeyGroupLoad.weight_of": lambda n: load_of(n).weight_of(range(n)),
    "LocalKeyBy.flush": lambda n: buffered(n).flush(),
    "LocalKeyBy.restore": lambda n: buffered(n),
    "LocalKeyBy.snapshot_state": lambda n: buffered(n).snapshot_state(),
    "RescalePlan.compare_with_modulo": lambda n: plan_of(n).compare_with_modulo(range(n)),
    "RescalePlan.compare_with_modulo of a load": lambda n: plan_of(n // 6 * 6).compare_with_modulo(
        load_of(n // 6 * 6)
    ),
    "RescalePlan.hands_to": lambda n: RescalePlan(n, 1, n).hands_to(0),
    "RescalePlan.moved_weight": lambda n: plan_of(n).moved_weight(load_of(n)),
    "RescalePlan.restores_from": lambda n: RescalePlan(n, n, 1).restores_from(0),
    "RescalePlan.table": lambda n: plan_of(n).table(load_of(n)),
    "RescalePlan.__iter__": lambda n: list(plan_of(n)),
    "RescalePlan.__str__": lambda n: str(plan_of(n)),
    "SubtaskKeySelector.key_for_value": lambda n: SubtaskKeySelector(8, 4).key_for_value("a" * n),
    "Serializer.decode": lambda n: STRING_LIST.decode(n.to_bytes(4, "big") + b"\2a" * n),
    "Serializer.encode": lambda n: STRING_LIST.encode(["a"] * n),
    "Serializer.from_snapshot": lambda n: Serializer.from_snapshot(
        serializer_of(ROW(*[INT] * n)).snapshot_bytes()
    ),
    "Serializer.snapshot_bytes": lambda n: serializer_of(ROW(*[INT] * n)).snapshot_bytes(),
    "state_keys.serializer_of": lambda n: serializer_of(SQL_ROW(*["BIGINT"] * n)),
    "CompositeKeySerializer.deserialize": lambda n: STRINGS.deserialize(
        STRINGS.serialize("a" * n, "\u00e9" * n, "c" * n)
    ),
    "CompositeKeySerializer.serialize": lambda n: LISTS.serialize(["a"] * n),
    "savepoint.read_savepoint": lambda n: read_savepoint(savepoint_folder(n, n)),
    "savepoint.operator_reports": lambda n: list(
        map(str, operator_reports(read_savepoint(savepoint_folder(n)), top=n))
    ),
    "savepoint.change_max_parallelism": lambda n: str(
        change_max_parallelism(written_folder(n), 256, NewPath())
    ),
    "savepoint.convert_to_canonical": lambda n: convert_to_canonical(
        written_folder(n), NewPath(), parallelism=5
    ),
    "SavepointWriter.add_operator": lambda n: SavepointWriter(NewPath()).add_operator(
        "a", INT, [ValueStateDescriptor(str(i), LONG) for i in range(n)], 128, 3
    ),
    "OperatorWriter.close": write_entries,
    "OperatorWriter.write": lambda n: operator_writer().write("tags", 1, ["a"] * n),
    "Operator.entries": lambda n: list(operator_of(n).entries()),
    "Operator.key_group_bytes": lambda n: operator_of(n).key_group_bytes(),
    "Operator.key_sizes": lambda n: operator_of(n).key_sizes(n),
    "Operator.operator_state": lambda n: list(operator_of(n, "source").operator_state()),
    "Operator.tasks": lambda n: operator_of(n).tasks(["count"] * n),
    # A savepoint has many bytes for each of these, so that fewer tell as much.
    "Operator.entries of fields": lambda n: list(gs.operator_of(gs.fields, n // 10).entries()),
    "Operator.entries of lists": lambda n: list(gs.operator_of(gs.lists, n // 2).entries()),
    "Operator.entries of rows": lambda n: list(gs.operator_of(gs.rows, n // 10).entries()),
    "Operator.key_group_bytes of key groups": lambda n: gs.operator_of(
        gs.key_groups, n // 5
    ).key_group_bytes(),
    "Operator.operator_state of partitions": lambda n: list(
        gs.operator_of(gs.partitions, n // 2).operator_state()
    ),
    "Operator.states, many": lambda n: str(gs.operator_of(gs.states, n // 10).states),
    "Operator.tasks of subtasks": lambda n: gs.operator_of(gs.subtasks, n // 10).tasks(
        None, range(0, n // 5, 3)
    ),
    "ReadTask.split": lambda n: list(gs.operator_of(gs.key_groups, n // 10).tasks()[0].split(9)),
    "Savepoint.operator": lambda n: read_savepoint(savepoint_folder(1, n)).operator("by-int"),
    "Savepoint.__str__": lambda n: str(read_savepoint(savepoint_folder(1, n))),
    "routing_inference.infer_routing": lambda n: infer_routing(enumerate(range(n)), 32_700),
    **{
        f"partitioners.subtask_state_mapping {mapper}": partial(
            lambda mapper, n: partitioners.subtask_state_mapping(mapper, n, n), mapper
        )
        for mapper in ("FIRST", "FULL", "RANGE", "ROUND_ROBIN")
    },
}
"""What grows: the name, and a call for a size."""
CONSTANT = {
    # A number to a number, or an object of a few fields.
    "key_group_range.compute_default_max_parallelism",
    "assignment.compute_key_group_for_key_hash",
    "key_group_range.compute_key_group_range_for_operator_index",
    "key_group_range.compute_operator_index_for_key_group",
    "cli.main",
    "job.read_job",
    *(name for name in CALLS if name.startswith("Job.")),  # one vertex, with its few subtasks
    "hashing.murmur_hash",
    "key_group_range.KeyGroupRange",
    "rescale.check_restore",
    "Savepoint.check_restore",
    "savepoint.SavepointWriter",
    *(name for name in CALLS if name.endswith("StateDescriptor")),
    *(f"OperatorWriter.{name}" for name in ("abandon", "add", "key_group", "metadata", "task")),
    *(name for name in CALLS if name.endswith(".GlobalWindow")),
    "state_keys.CompositeKeySerializer",
    "state_keys.key_group_prefix",
    "state_keys.key_group_prefix_bytes",
    "testing.parallelisms",
    "subtask_keys.salted_key",  # a search of one subtask, whose keys are as many as their share
    *(name for name in CALLS if name.startswith("partitioners.") and name.endswith("Partitioner")),
    "partitioners.CustomPartitionerWrapper",
    *(name for name in CALLS if name.startswith("types.") and name not in GROWING),
    *(name for name in CALLS if name.endswith((".select_channel", "__eq__", "__hash__"))),
    *(name for name in CALLS if name.startswith(("KeyGroupRange.", "KeyTrace.", "TUPLE."))),
    "LocalKeyBy.process",
    "SubtaskKeySelector.key_for",
    *(name for name in CALLS if name.startswith("rescale.redistribute")),  # of operator_state
}


def test_every_public_callable_is_here() -> None:
    grown = {name.partition(" ")[0].rstrip(",") for name in GROWING}
    assert CALLS.keys() - CONSTANT == (grown & CALLS.keys())


@pytest.mark.parametrize("name", sorted(GROWING))
def test_growth(name: str) -> None:
    """Four times the size takes at most about four times the steps, and the bytes."""
    call = GROWING[name]
    # Bytes need more, as Python has the ints to 256 already.
    for measure, size in ((count_steps, 250), (count_bytes, 800)):
        for n in (size, TIMES * size):
            call(n)  # what is kept for the next time is no cost of this one
        small, large = (measure(partial(call, n)) for n in (size, TIMES * size))
        assert large <= MOST * small, f"{measure.__name__}: {small} to {large}"
