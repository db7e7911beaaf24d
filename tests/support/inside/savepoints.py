"""The parts of reading and writing savepoints, which no public name gives."""

from keygroups.savepoint._comparison.contents import exact
from keygroups.savepoint._edits import edit_task, keyed_state, moved_entries
from keygroups.savepoint._edits.edit_task import EditTask, StatePlan
from keygroups.savepoint._edits.keyed_state import EditedKeyedState
from keygroups.savepoint._edits.steps import (
    DeleteKeys,
    EntryMapping,
    KeyMapping,
    SetTtl,
    StepContext,
)
from keygroups.savepoint._files import feed, files, found_files, output_folder, sst, store_file
from keygroups.savepoint._files.checksums import block_checksum
from keygroups.savepoint._files.feed import (
    STREAM_START,
    Feed,
    HeldFeed,
    decompressed,
    header_cursor,
)
from keygroups.savepoint._files.files import (
    CHUNK,
    Files,
    OpenStream,
    _Reader,
    job_folder,
)
from keygroups.savepoint._files.manifest import read_bounds
from keygroups.savepoint._files.output_folder import OutputFolder
from keygroups.savepoint._files.sst import RangeDeletion, Record, SstFile
from keygroups.savepoint._files.stores import class_of_store, filesystem_of, fsspec_url
from keygroups.savepoint._metadata import codes
from keygroups.savepoint._metadata.codes import MODES, VERSIONS, ChannelHandleCode, HandleCode
from keygroups.savepoint._metadata.handles import (
    ChangelogHandle,
    ChangesHandle,
    KeyedHandle,
    KeyGroupsHandle,
    Metadata,
    OperatorMetadata,
    OperatorStateHandle,
    RawTimersHandle,
    RocksDBHandle,
    StreamHandle,
    SubtaskState,
    operator_id_of,
)
from keygroups.savepoint._metadata.key_group_ranges import KeyGroupRanges
from keygroups.savepoint._metadata.reader import read_metadata
from keygroups.savepoint._metadata.writer import write_metadata, write_operator
from keygroups.savepoint._named_operators import labels_of
from keygroups.savepoint._reports.connectors import sink_sections, splits_section
from keygroups.savepoint._savepoint import summarized, verified
from keygroups.savepoint._sinks import connector_committables
from keygroups.savepoint._sources import (
    connector_layouts,
    file_splits,
    source_splits,
    split_layouts,
)
from keygroups.savepoint._sources.source_splits import has_same_content
from keygroups.savepoint._state import header, operator_state, state_infos
from keygroups.savepoint._state.entries import EncodedEntry
from keygroups.savepoint._state.formats import changelog, key_group_streams, rocksdb, timers
from keygroups.savepoint._state.formats.by_handle import FORMATS, format_of
from keygroups.savepoint._state.formats.key_group_streams import header_size, key_group_spans
from keygroups.savepoint._state.formats.rocksdb import _live, _merged
from keygroups.savepoint._state.header import (
    KeyedHeader,
    read_keyed_header,
    write_keyed_header,
    write_state,
)
from keygroups.savepoint._state.keys import SoughtKeys, identity
from keygroups.savepoint._state.operator_state import (
    ElementSpans,
    OperatorStateHeader,
    has_lost_offsets,
    read_encoded_operator_state,
    read_operator_state,
    read_operator_state_header,
)
from keygroups.savepoint._state.state_infos import KEY, KEYED, VALUE, read_state_infos
from keygroups.savepoint._state.stored_values import SEPARATOR, StoredMapValue, stored_value
from keygroups.savepoint._state.writing import keyed_state_file, new_states, spill
from keygroups.savepoint._state.writing.entry_encoder import EntryEncoder, joined_lists
from keygroups.savepoint._state.writing.new_states import NewState
from keygroups.savepoint._state.writing.write_task import WriteTask, WrittenFile
from keygroups.savepoint._tasks.read import ReadTask, ahead
from keygroups.savepoint._verification import task, verify
from keygroups.savepoint._verification.task import VerifyTask
from keygroups.savepoint._verification.verify import verify_operator

__all__ = [
    "CHUNK",
    "FORMATS",
    "KEY",
    "KEYED",
    "MODES",
    "SEPARATOR",
    "STREAM_START",
    "VALUE",
    "VERSIONS",
    "ChangelogHandle",
    "ChangesHandle",
    "ChannelHandleCode",
    "DeleteKeys",
    "EditTask",
    "EditedKeyedState",
    "ElementSpans",
    "EncodedEntry",
    "EntryEncoder",
    "EntryMapping",
    "Feed",
    "Files",
    "HandleCode",
    "HeldFeed",
    "KeyGroupRanges",
    "KeyGroupsHandle",
    "KeyMapping",
    "KeyedHandle",
    "KeyedHeader",
    "Metadata",
    "NewState",
    "OpenStream",
    "OperatorMetadata",
    "OperatorStateHandle",
    "OperatorStateHeader",
    "OutputFolder",
    "RangeDeletion",
    "RawTimersHandle",
    "ReadTask",
    "Record",
    "RocksDBHandle",
    "SetTtl",
    "SoughtKeys",
    "SstFile",
    "StatePlan",
    "StepContext",
    "StoredMapValue",
    "StreamHandle",
    "SubtaskState",
    "VerifyTask",
    "WriteTask",
    "WrittenFile",
    "_Reader",
    "_live",
    "_merged",
    "ahead",
    "block_checksum",
    "changelog",
    "class_of_store",
    "codes",
    "connector_committables",
    "connector_layouts",
    "decompressed",
    "edit_task",
    "exact",
    "feed",
    "file_splits",
    "files",
    "filesystem_of",
    "format_of",
    "found_files",
    "fsspec_url",
    "has_lost_offsets",
    "has_same_content",
    "header",
    "header_cursor",
    "header_size",
    "identity",
    "job_folder",
    "joined_lists",
    "key_group_spans",
    "key_group_streams",
    "keyed_state",
    "keyed_state_file",
    "labels_of",
    "moved_entries",
    "new_states",
    "operator_id_of",
    "operator_state",
    "output_folder",
    "read_bounds",
    "read_encoded_operator_state",
    "read_keyed_header",
    "read_metadata",
    "read_operator_state",
    "read_operator_state_header",
    "read_state_infos",
    "rocksdb",
    "sink_sections",
    "source_splits",
    "spill",
    "split_layouts",
    "splits_section",
    "sst",
    "state_infos",
    "store_file",
    "stored_value",
    "summarized",
    "task",
    "timers",
    "verified",
    "verify",
    "verify_operator",
    "write_keyed_header",
    "write_metadata",
    "write_operator",
    "write_state",
]
