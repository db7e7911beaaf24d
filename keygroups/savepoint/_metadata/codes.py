"""The numbers and marks in `_metadata`, by the names that they have in Flink."""

from __future__ import annotations

from enum import IntEnum

MAGIC = 0x4960672D  # Flink: Checkpoints.HEADER_MAGIC_NUMBER
MASTER_STATE_MAGIC = 0xC96B1696  # Flink: MetadataV2V3SerializerBase.MASTER_STATE_MAGIC_NUMBER
VERSIONS = (2, 3, 4, 5, 6)  # Flink 1.3 to 2.3; it refuses version 1 itself
WRITTEN_FROM = 3  # the oldest version that is written, which Flink 1.11 and newer read
MODES = ("SPLIT_DISTRIBUTE", "UNION", "BROADCAST")  # Flink: OperatorStateHandle.Mode
FULLY_FINISHED = -1  # a count of subtasks; Flink: MetadataV3Serializer.serializeOperatorState


class HandleCode(IntEnum):
    """The first byte of a handle. Flink: the constants of MetadataV2V3SerializerBase."""

    NULL_HANDLE = 0
    BYTE_STREAM_STATE_HANDLE = 1
    FILE_STREAM_STATE_HANDLE = 2
    KEY_GROUPS_HANDLE = 3
    PARTITIONABLE_OPERATOR_STATE_HANDLE = 4
    INCREMENTAL_KEY_GROUPS_HANDLE = 5
    RELATIVE_STREAM_STATE_HANDLE = 6
    SAVEPOINT_KEY_GROUPS_HANDLE = 7
    CHANGELOG_HANDLE = 8
    CHANGELOG_BYTE_INCREMENT_HANDLE = 9
    CHANGELOG_FILE_INCREMENT_HANDLE = 10
    INCREMENTAL_KEY_GROUPS_HANDLE_V2 = 11
    KEY_GROUPS_HANDLE_V2 = 12
    CHANGELOG_FILE_INCREMENT_HANDLE_V2 = 13
    CHANGELOG_HANDLE_V2 = 14
    SEGMENT_FILE_HANDLE = 15
    EMPTY_SEGMENT_FILE_HANDLE = 16
    SEGMENT_PARTITIONABLE_OPERATOR_STATE_HANDLE = 17

    __str__ = int.__repr__  # Messages show the number, as Python 3.11 does by itself.


class ChannelHandleCode(IntEnum):
    """The first byte of a channel's handle. Flink: those of ChannelStateHandleSerializerV2."""

    INPUT_CHANNEL_STATE_HANDLE = 1
    RESULT_SUBPARTITION_STATE_HANDLE = 2
    MERGED_INPUT_CHANNEL_STATE_HANDLE = 3
    MERGED_RESULT_SUBPARTITION_STATE_HANDLE = 4

    __str__ = int.__repr__


OPERATOR_STATE_HANDLES = (
    HandleCode.NULL_HANDLE,
    HandleCode.PARTITIONABLE_OPERATOR_STATE_HANDLE,
    HandleCode.SEGMENT_PARTITIONABLE_OPERATOR_STATE_HANDLE,
)
MERGED_CHANNELS = (
    ChannelHandleCode.MERGED_INPUT_CHANNEL_STATE_HANDLE,
    ChannelHandleCode.MERGED_RESULT_SUBPARTITION_STATE_HANDLE,
)
KEY_GROUPS_HANDLES = (
    HandleCode.KEY_GROUPS_HANDLE,
    HandleCode.SAVEPOINT_KEY_GROUPS_HANDLE,
    HandleCode.KEY_GROUPS_HANDLE_V2,
)
INCREMENTAL_HANDLES = (
    HandleCode.INCREMENTAL_KEY_GROUPS_HANDLE,
    HandleCode.INCREMENTAL_KEY_GROUPS_HANDLE_V2,
)
CHANGELOG_HANDLES = (HandleCode.CHANGELOG_HANDLE, HandleCode.CHANGELOG_HANDLE_V2)
CHANGES_HANDLES = (
    HandleCode.NULL_HANDLE,
    HandleCode.CHANGELOG_BYTE_INCREMENT_HANDLE,
    HandleCode.CHANGELOG_FILE_INCREMENT_HANDLE,
    HandleCode.CHANGELOG_FILE_INCREMENT_HANDLE_V2,
)
