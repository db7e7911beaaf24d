"""State of one operator that Flink's test utility has written, without a savepoint around it."""

from __future__ import annotations

import os
from collections.abc import Mapping

from keygroups._checks import check_int
from keygroups._serializers.base import Serializer, checked_kryo_version, checked_serializers
from keygroups._serializers.data_input import ReadingContext
from keygroups._serializers.jvm.kryo import check_described
from keygroups._serializers.jvm.kryo_classes import KryoClass
from keygroups.savepoint._files.files import Files, check_path, read_whole
from keygroups.savepoint._metadata.reader import MOST_KEY_GROUPS, read_dump
from keygroups.savepoint._operator import Operator


def read_operator_state_dump(
    path: str | os.PathLike[str],
    max_parallelism: int | None = None,
    *,
    serializers: Mapping[str, type[Serializer] | KryoClass] | None = None,
    kryo_version: int = 2,
) -> Operator:
    """Read the state of one operator, as `OperatorSnapshotUtil` of Flink's tests writes it.

    Connectors keep such files for the tests that read state of older versions. `path` is that of
    the file. It does not say the max parallelism, which without one is the number of key groups
    up to the last that the state has; nor which Flink wrote it: `kryo_version` is 2 for Flink 1
    and 5 for Flink 2. `serializers` are those of `read_savepoint`. The operator is of one
    subtask; its id is zeros, and its name the path.

    Raises SavepointError where the file is damaged or has in-flight data; InvalidTypeError,
    InvalidValueError.

    Flink: OperatorSnapshotUtil.writeStateHandle.

    >>> operator = read_operator_state_dump("kafka-snapshot")  # doctest: +SKIP
    """
    text = check_path("path", path)
    if max_parallelism is not None:
        max_parallelism = check_int("max_parallelism", max_parallelism, 1, MOST_KEY_GROUPS)
    known = checked_serializers(serializers)
    check_described(known)
    context = ReadingContext(known, checked_kryo_version(kryo_version))
    metadata = read_dump(read_whole(text), text, max_parallelism)
    return Operator(metadata, Files(text.rpartition("/")[0] or ".", {}), context)
