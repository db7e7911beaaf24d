"""Every enum, code and version in Flink's jars that the format of state depends on: is it known?

What the jars say is held against what the library has: a constant that is new fails, as does one
that has another number. All are known of 1.13.6, 1.18.0, 1.18.1, 1.20.5 and 2.3.0, each of which
`FLINK_VERSION=1.13.6 pytest -m flink tests/flink/test_flink_format_constants.py` asks.
"""

from __future__ import annotations

import json
import os
import subprocess
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from support.flink.flink_oracle import flink_jar, flink_version
from support.flink.flink_sql import JAVA_FOLDER, jdk_folder
from support.inside import serializers
from support.inside.savepoints import (
    changelog,
    codes,
    file_splits,
    header,
    operator_state,
    source_splits,
    state_infos,
    timers,
)
from support.inside.serializers import REGISTRY, Composite
from support.inside.values import ROW_KINDS

pytestmark = pytest.mark.flink

TYPEUTILS = "org.apache.flink.api.common.typeutils."
METADATA = "org.apache.flink.runtime.checkpoint.metadata."
STATE = "org.apache.flink.runtime.state."
INFO = f"{STATE}metainfo.StateMetaInfoSnapshot"
FILE_SOURCE = "org.apache.flink.connector.file.src."
CHANGES = ["CLEAR", "SET", "SET_INTERNAL", "ADD", "MERGE_NS", "ADD_ELEMENT"]
CHANGES += ["ADD_OR_UPDATE_ELEMENT", "REMOVE_ELEMENT", "METADATA"]
Constants = dict[str, Any]


def signed(number: int) -> int:
    """Return an int of Java by its bits."""
    return number - (1 << 32) if number >> 31 else number


def ordinals(*names: str) -> Constants:
    return {name: number for number, name in enumerate(names)}


KINDS = ("VALUE", "LIST", "REDUCING", "FOLDING", "AGGREGATING", "MAP")
KNOWN: dict[str, Constants] = {
    # A header has the ordinal: KEY_VALUE_V2 is 4 there, whatever its code is. Flink 1.13 has none.
    f"{INFO}$BackendStateType": {
        name: ([number, 10 if name == "KEY_VALUE_V2" else number], number)
        for number, name in enumerate(state_infos.BACKEND_TYPES)
    },
    f"{INFO}$CommonOptionsKeys": ordinals("KEYED_STATE_TYPE", state_infos._MODE),
    f"{INFO}$CommonSerializerKeys": ordinals(
        state_infos.KEY, state_infos.NAMESPACE, state_infos.VALUE, state_infos.USER_KEY
    ),
    f"{INFO}ReadersWriters": {
        "CURRENT_STATE_META_INFO_SNAPSHOT_VERSION": changelog._METADATA_VERSIONS
    },
    f"{INFO}ReadersWriters$StateTypeHint": ordinals("KEYED_STATE", "OPERATOR_STATE"),
    "org.apache.flink.api.common.state.StateDescriptor$Type": ordinals("UNKNOWN", *KINDS),
    "org.apache.flink.api.common.state.v2.StateDescriptor$Type": ordinals(
        *(kind for kind in KINDS if kind in header._KINDS)
    ),
    f"{STATE}OperatorStateHandle$Mode": ordinals(*codes.MODES),
    f"{STATE}CheckpointedStateScope": ordinals("EXCLUSIVE", "SHARED"),
    "org.apache.flink.state.changelog.StateChangeOperation": {
        name: [number, number] for number, name in enumerate(CHANGES)
    },
    "org.apache.flink.core.execution.SavepointFormatType": ordinals("CANONICAL", "NATIVE"),
    "org.apache.flink.runtime.checkpoint.Checkpoints": {"HEADER_MAGIC_NUMBER": codes.MAGIC},
    **{
        f"{METADATA}MetadataV{version}Serializer": {"VERSION": version}
        for version in (1, *codes.VERSIONS)  # Flink itself refuses the first
    },
    f"{METADATA}MetadataV2V3SerializerBase": {
        "MASTER_STATE_MAGIC_NUMBER": signed(codes.MASTER_STATE_MAGIC),
        **{code.name: code.value for code in codes.HandleCode},
    },
    f"{METADATA}ChannelStateHandleSerializerV1": {},
    f"{METADATA}ChannelStateHandleSerializerV2": {
        code.name: code.value for code in codes.ChannelHandleCode
    },
    f"{STATE}KeyedBackendSerializationProxy": {"VERSION": header._VERSIONS},
    f"{STATE}OperatorBackendSerializationProxy": {"VERSION": operator_state._VERSIONS},
    f"{TYPEUTILS}TypeSerializerSnapshotSerializationUtil"
    "$TypeSerializerSnapshotSerializationProxy": {"VERSION": serializers._SNAPSHOT_VERSION},
    f"{TYPEUTILS}CompositeTypeSerializerSnapshot": {
        "MAGIC_NUMBER": serializers._COMPOSITE_MAGIC,
        "VERSION": Composite.versions[-1],
        "HIGHEST_LEGACY_READ_VERSION": Composite.versions[0],
    },
    f"{TYPEUTILS}NestedSerializersSnapshotDelegate": {
        "MAGIC_NUMBER": serializers._NESTED_MAGIC,
        "VERSION": 1,
    },
    f"{STATE}FullSnapshotUtil": {
        "FIRST_BIT_IN_BYTE_MASK": 0x80,
        "END_OF_KEY_GROUP_MARK": 0xFFFF,
    },
    f"{STATE}ListDelimitedSerializer": {"DELIMITER": ord(",")},
    "org.apache.flink.streaming.runtime.streamrecord.StreamElementSerializer": {
        "TAG_REC_WITH_TIMESTAMP": 0,
        "TAG_REC_WITHOUT_TIMESTAMP": 1,
        "TAG_WATERMARK": 2,
        "TAG_LATENCY_MARKER": 3,
        "TAG_STREAM_STATUS": 4,
        "TAG_RECORD_ATTRIBUTES": 5,
        "TAG_INTERNAL_WATERMARK": 6,  # refused, as no operator keeps one in its state
    },
    "org.apache.flink.streaming.api.operators.InternalTimerServiceSerializationProxy": {
        "VERSION": timers._VERSION
    },
    "org.apache.flink.streaming.api.operators.InternalTimersSnapshotReaderWriters": {
        "NO_VERSION": -(1 << 31)  # Flink 1.3 and older
    },
    "org.apache.flink.types.RowKind": ordinals(
        "INSERT", "UPDATE_BEFORE", "UPDATE_AFTER", "DELETE"
    ),
    "org.apache.flink.runtime.source.coordinator.SourceCoordinatorSerdeUtils": {
        "VERSION_0": 0,  # Flink 1.11 to 1.13
        "VERSION_1": source_splits._COORDINATOR_VERSION,
        "CURRENT_VERSION": source_splits._COORDINATOR_VERSION,
    },
    f"{FILE_SOURCE}FileSourceSplitSerializer": {"VERSION": file_splits.VERSION},
    f"{FILE_SOURCE}PendingSplitsCheckpointSerializer": {
        "VERSION": file_splits.VERSION,
        "VERSION_1_MAGIC_NUMBER": signed(file_splits._MAGIC),
    },
}
"""What each class has; a tuple has the numbers that one version or another has."""
NEWER = {f"{METADATA}MetadataV{version}Serializer" for version in range(7, 12)}
NEWER |= {f"{METADATA}ChannelStateHandleSerializerV{version}" for version in range(3, 6)}
ROOTS = "org.apache.flink.table.types.logical.LogicalTypeRoot"
ROOT_NAMES = [
    "ARRAY",
    "BIGINT",
    "BINARY",
    "BITMAP",
    "BOOLEAN",
    "CHAR",
    "DATE",
    "DECIMAL",
    "DESCRIPTOR",
    "DISTINCT_TYPE",
    "DOUBLE",
    "FLOAT",
    "INTEGER",
    "INTERVAL_DAY_TIME",
    "INTERVAL_YEAR_MONTH",
    "MAP",
    "MULTISET",
    "NULL",
    "RAW",
    "ROW",
    "SMALLINT",
    "STRUCTURED_TYPE",
    "SYMBOL",
    "TIMESTAMP_WITHOUT_TIME_ZONE",
    "TIMESTAMP_WITH_LOCAL_TIME_ZONE",
    "TIMESTAMP_WITH_TIME_ZONE",
    "TIME_WITHOUT_TIME_ZONE",
    "TINYINT",
    "UNRESOLVED",
    "VARBINARY",
    "VARCHAR",
    "VARIANT",
]

NOT_READ = {
    "org.apache.flink.cep.nfa.NFA$MigratedNFASerializerSnapshot": "of Flink 1.5 and older",
    "org.apache.flink.cep.nfa.SharedBuffer$SharedBufferSerializerSnapshot": "likewise",
    "org.apache.flink.api.java.typeutils.runtime.EitherSerializerSnapshot": "likewise, and 1.6",
    "org.apache.flink.table.runtime.types.CRowSerializerSnapshot": "of SQL before Blink",
    "org.apache.flink.api.common.typeutils.BackwardsCompatibleSerializerSnapshot": "in memory",
}
OLD_NAMES = ("ConfigSnapshot", "SerializerConfig")  # Flink 1.7 and older


@lru_cache
def said() -> dict[str, Any]:
    """Return the constants of the jars, by `java/FormatConstants.java`."""
    dist, jdk = flink_jar(), jdk_folder()
    if dist is None or jdk is None:
        pytest.skip("needs Flink's jars and a JDK")
    python = dist.parents[1].glob("opt/flink-python*.jar")
    with TemporaryDirectory() as folder:
        jars = map(str, [*sorted(dist.parent.glob("*.jar")), *python])
        class_path = os.pathsep.join([folder, *jars])
        source = str(JAVA_FOLDER / "FormatConstants.java")
        compiler = [str(jdk / "javac"), "-nowarn", "-d", folder, "-cp", class_path, source]
        subprocess.run(compiler, check=True, capture_output=True)
        command = [str(jdk / "java"), "-cp", class_path, "FormatConstants"]
        done = subprocess.run(
            [*command, *KNOWN, *NEWER, ROOTS], check=True, capture_output=True, text=True
        )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_every_constant_is_known() -> None:
    constants = said()["constants"]
    assert not NEWER & constants.keys()
    wrong = []
    for name, found in constants.items():
        known = dict.fromkeys(ROOT_NAMES) if name == ROOTS else KNOWN[name]
        for constant, number in found.items():
            if name == ROOTS and constant in known:
                continue  # a snapshot has the name alone
            expected = known.get(constant)
            numbers = expected if isinstance(expected, tuple) else (expected,)
            if number not in numbers:
                wrong.append((name, constant, number, expected))
    assert not wrong
    assert len(constants) > 15
    assert len(ROW_KINDS) == len(constants["org.apache.flink.types.RowKind"])


def test_every_snapshot_is_read_in_the_version_that_is_written() -> None:
    """Of the serializer itself, and of the outer part of one that is made of others."""
    wrong: list[tuple[object, ...]] = []
    for name, versions in said()["snapshots"].items():
        known = REGISTRY.get(name)
        if known is None:
            if name not in NOT_READ and not any(part in name for part in OLD_NAMES):
                wrong.append((name, "is not known"))
        elif versions is not None:
            version, outer = versions
            if version not in known.versions:
                wrong.append((name, version))
            if outer is not None and outer not in getattr(known, "outer_versions", ()):
                wrong.append((name, "outer", outer))
    assert not wrong, f"Flink {flink_version(Path(str(flink_jar())))}"
    assert len(said()["snapshots"]) > 90
