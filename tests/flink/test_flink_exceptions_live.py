"""The messages of real Flink that `explain_exception` knows: its classes are asked for them."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from support.flink.flink_oracle import FlinkOracle, flink_jar

from keygroups.flink_exceptions import explain_exception

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.flink

RUNTIME = "org.apache.flink.runtime"


def message_of(call: Callable[[], object]) -> str:
    """Return the message of the exception that a call through py4j ends with."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException  # PySpark makes such of some of them

    with pytest.raises((Py4JJavaError, PySparkException)) as caught:
        call()
    return str(caught.value)


@pytest.fixture
def jvm(flink: FlinkOracle, spark: SparkSession) -> Any:
    return spark.sparkContext._jvm


def test_a_key_group_in_the_wrong_subtask(jvm: Any) -> None:
    state = jvm.org.apache.flink.runtime.state
    groups = state.KeyGroupRange(43, 85)
    error = state.KeyGroupRangeOffsets.newIllegalKeyGroupException(97, groups)
    assert explain_exception(error.getMessage(), 128, 3).says == (
        "a record or timer of key group 97 came to a subtask that has the key groups [43, 85]",
        "at max parallelism 128 that is subtask 1 of 3; key group 97 belongs to subtask 2",
    )


def test_a_null_key(jvm: Any) -> None:
    assignment = jvm.org.apache.flink.runtime.state.KeyGroupRangeAssignment
    text = message_of(lambda: assignment.assignToKeyGroup(None, 128))
    assert explain_exception(text).says[0].startswith("the key selector returned null")


def test_a_max_parallelism_out_of_bounds(jvm: Any) -> None:
    checks = jvm.org.apache.flink.api.common.operators.util.OperatorValidationUtils
    text = message_of(lambda: checks.validateMaxParallelism(40_000, 32768, True))
    assert explain_exception(text).says == (
        "a max parallelism is from 1 to 32768, and 40000 is not",
    )


# A class and the constants of it that its messages are made of, with what Flink fills in.
MESSAGES = {
    f"{RUNTIME}.checkpoint.Checkpoints": ["Max parallelism mismatch", "Cannot map checkpoint/sav"],
    f"{RUNTIME}.checkpoint.StateAssignmentOperation": [
        "with which the latest checkpoint",
        "can not be restored. The maximum parallelism (",
    ],
    f"{RUNTIME}.executiongraph.ExecutionJobVertex": ["is higher than the max parallelism"],
    f"{RUNTIME}.state.heap.KeyGroupPartitionedPriorityQueue": ["key group from %s to %s does not"],
    f"{RUNTIME}.state.heap.HeapRestoreOperation": ["must be compatible with the previous key ser"],
    f"{RUNTIME}.state.heap.HeapKeyedStateBackend": ["must not be incompatible with the old state"],
    f"{RUNTIME}.state.DefaultOperatorStateBackend": [
        "The new key typeSerializer for broadcast",
        "The new state typeSerializer for operator",
        "The new value typeSerializer for broadcast",
    ],
    "org.apache.flink.streaming.api.operators.InternalTimerServiceImpl": [
        "does not belong to the local range"
    ],
}
"""Constants are in a class as text; a javac from 9 on puts \\x01 where a value goes."""

FILLED = {
    "(\x01) with which": "(128) with which",
    "vertex \x01 has": "vertex V@1 has",
    "(\x01) changed": "(256) changed",
    "task \x01 can": "task 0a44 can",
    "parallelism (\x01)": "parallelism (96)",
    "serializer (\x01)": "serializer (a.B@1)",
    "Key Group \x01": "Key Group 97",
}


@pytest.mark.parametrize("name", MESSAGES)
def test_constants_of_classes_are_known(name: str) -> None:
    """What a class says is understood once its values are filled in."""
    jar = flink_jar()
    if jar is None:
        pytest.skip("apache-flink-libraries is not installed")
    with zipfile.ZipFile(jar) as archive:
        data = archive.read(f"{name.replace('.', '/')}.class")
    constants = re.findall(rb"[\x01\t\n\x20-\x7e]{20,}", data)
    for part in MESSAGES[name]:
        [text] = {raw.decode() for raw in constants if part.encode() in raw}
        for blank, value in FILLED.items():
            text = text.replace(blank, value)
        explained = explain_exception(filled(text))
        assert explained.says


def filled(text: str) -> str:
    """Fill in what String.format would."""
    text = re.sub(r"(?<=\()%s(?=\))", "5", text)
    numbers = iter(("43", "86", "97"))
    if text.count("%s") == 3 and "key group from" in text:
        return re.sub("%s", lambda _: next(numbers), text)
    return text.replace("%s", "s3://a/b", 1).replace("%s", "cbc3").replace("%d", "128")
