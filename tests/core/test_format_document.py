"""The bytes in `savepoint/FORMAT.md` are those of real savepoints, and mean what it says.

An example names a point, an operator, a subtask, a stream of its and an offset. Its bytes are
compared with that file, its values with what `struct` makes of the bytes, and with the reader.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.real_savepoints import point
from support.inside.savepoints import (
    MODES,
    VERSIONS,
    ChannelHandleCode,
    HandleCode,
    KeyGroupsHandle,
    OperatorMetadata,
    RocksDBHandle,
    SstFile,
    decompressed,
    read_metadata,
)

import keygroups.savepoint
from keygroups import assign_to_key_group
from keygroups import types as kt
from keygroups.savepoint import OperatorId, SavepointWriter, ValueStateDescriptor, read_savepoint

DOCUMENT = Path(keygroups.savepoint.__file__).with_name("FORMAT.md")
TEXT = DOCUMENT.read_text(encoding="utf-8")
Values = dict[str, str]


def varint(data: bytes) -> tuple[int, int]:
    """Return a number of 7 bits a byte, and how many bytes it has."""
    size = next(index for index, byte in enumerate(data) if byte < 0x80) + 1
    return sum((byte & 0x7F) << 7 * index for index, byte in enumerate(data[:size])), size


def string(data: bytes) -> str:
    """Return the bytes of StringValue.writeString: length + 1, and UTF-16 units, as varints."""
    numbers = []
    while data:
        number, size = varint(data)
        numbers.append(number)
        data = data[size:]
    assert numbers[0] == len(numbers)
    return "".join(map(chr, numbers[1:])) or '""'


def two_varints(data: bytes) -> str:
    first, size = varint(data)
    return f"{first} {varint(data[size:])[0]}"


def utf(data: bytes) -> str:
    assert len(data) == 2 + int.from_bytes(data[:2], "big")
    return data[2:].decode("ascii")


PACKED = {"u8": ">B", "u16": ">H", "i32": ">i", "i64": ">q", "u32le": "<I"}
DECODERS: dict[str, Callable[[bytes], object]] = {
    "u24le": lambda data: int.from_bytes(data, "little"),
    "timer": lambda data: int.from_bytes(data, "big") - 2**63,
    "utf": utf,
    "hex": lambda data: data.hex(),
    "varint": lambda data: varint(data)[0],
    "handle": two_varints,
    "String": string,
}


def decoded(name: str, data: bytes) -> str:
    """Return the text of a value by its type."""
    if name in PACKED:
        return str(struct.unpack(PACKED[name], data)[0])
    return str(DECODERS[name](data))


class Example:
    """A fenced block: where its bytes are, these bytes with gaps, the values by their names."""

    def __init__(self, block: str) -> None:
        title, *lines = block.splitlines()
        *self.place, start = title.removeprefix("# ").split()
        self.start = int(start.removeprefix("@"))
        self.name = " ".join((*self.place, start))
        self.pieces: list[tuple[int, bytes]] = []
        self.values: Values = {}
        pos = self.start
        # Bytes without a note are of the line that follows.
        joined = re.sub(r"^((?:[0-9a-f]{2} ?)+)\n", r"\1 ", "\n".join(lines), flags=re.M)
        for line in joined.splitlines():
            if gap := re.match(r"\.\.\. (\d+) bytes", line):
                pos += int(gap[1])
                continue
            match = re.fullmatch(r"((?:[0-9a-f]{2} )*[0-9a-f]{2}) {2,}(.+)", line)
            assert match, line
            data = bytes.fromhex(match[1])
            self.pieces.append((pos, data))
            pos += len(data)
            value = re.fullmatch(r"(\w+) (\w+) = (.*)", match[2])
            if value:
                assert decoded(value[1], data) == value[3], line
                assert value[2] not in self.values, line
                self.values[value[2]] = value[3]
        self.end = pos

    def check(self, data: bytes) -> None:
        """Check that a file has these bytes there."""
        for pos, expected in self.pieces:
            assert data[pos : pos + len(expected)].hex(" ") == expected.hex(" "), pos


EXAMPLES = {
    example.name: example
    for example in map(Example, re.findall(r"^```hex\n(.+?)^```$", TEXT, re.M | re.S))
}


def operator_of(name: str, operator: str) -> OperatorMetadata:
    data = (point(name).path / "_metadata").read_bytes()
    operators = read_metadata(data, name).operators
    return next(one for one in operators if OperatorId.of_uid(operator) == one.operator_id)


def content(place: list[str]) -> bytes:
    """Return the bytes of the file or stream that an example is of."""
    name, operator, *rest = place
    if operator == "_metadata":
        return (point(name).path / "_metadata").read_bytes()
    subtasks = operator_of(name, operator).subtasks
    subtask = next(one for one in subtasks if one.index == int(rest[0]))
    which = rest[1] if rest[1:] else ""
    handle: Any = subtask.raw_keyed if which == "raw" else subtask.managed_keyed
    handle = subtask.managed_operator if which == "operator" else handle
    stream = dict(handle.shared)[which] if which.endswith(".sst") else handle.stream
    with point(name).files.open(stream) as opened:
        return opened.read(0, stream.size)


@pytest.mark.parametrize("name", [name for name in EXAMPLES if not name.startswith("written")])
def test_examples_are_of_real_savepoints(name: str) -> None:
    EXAMPLES[name].check(content(EXAMPLES[name].place))


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == TEXT.count("```hex") == 11
    assert sum(len(example.values) for example in EXAMPLES.values()) > 90


def test_metadata_reads_so() -> None:
    values = EXAMPLES["2.3.0-rockschurn-canonical _metadata @0"].values
    metadata = read_metadata(content(["2.3.0-rockschurn-canonical", "_metadata"]), "x")
    operator = metadata.operators[0]
    subtask = operator.subtasks[0]
    handle = subtask.managed_keyed
    assert isinstance(handle, KeyGroupsHandle)
    assert handle.is_canonical
    assert values == {
        name: str(value)
        for name, value in {
            "version": metadata.version,
            "checkpoint_id": metadata.checkpoint_id,
            "master_states": len(metadata.master_states),
            "operators": len(metadata.operators),
            "name": operator.name,
            "uid": operator.uid,
            "operator_id": operator.operator_id,
            "parallelism": operator.parallelism,
            "max_parallelism": operator.max_parallelism,
            "subtasks": len(operator.subtasks),
            "index": subtask.index,
            "first_key_group": handle.key_groups.start_key_group,
            "key_groups": len(handle.key_groups),
            "offset_0": handle.offsets[0],
            "offset_4": handle.offsets[4],
            "path": handle.stream.path,
            "size": handle.stream.size,
            "next_index": operator.subtasks[1].index,
        }.items()
    }


def entries_of(name: str, operator: str, key_group: int, **wanted: Any) -> list[Any]:
    entries = point(name).read().operator(operator).entries(key_groups=[key_group])
    return [
        entry
        for entry in entries
        if all(getattr(entry, field) == value for field, value in wanted.items())
    ]


def test_canonical_entries_read_so() -> None:
    example = EXAMPLES["2.3.0-rockschurn-canonical churn 0 @34806"]
    entries = {entry.state: entry for entry in entries_of(example.place[0], "churn", 54, key="")}
    assert assign_to_key_group("", 200) == 54
    assert str(entries["c"].value) == example.values["c"]
    first, second = entries["l"].value[:2]
    assert [str(first.last_access), first.value] == [
        example.values["last_access"],
        example.values["element"],
    ]
    assert second.last_access == first.last_access
    timers = entries_of(example.place[0], "churn", 54, kind="PRIORITY_QUEUE")
    assert len(timers) == 26
    assert str(timers[0].timestamp) == example.values["timestamp"]
    stream = operator_of(example.place[0], "churn").subtasks[0].managed_keyed
    assert isinstance(stream, KeyGroupsHandle)
    assert stream.offsets[54] == example.start
    assert min(offset for offset in stream.offsets if offset > example.start) == example.end


def test_header_reads_so() -> None:
    values = EXAMPLES["2.3.0-rockschurn-canonical churn 0 @0"].values
    states = point("2.3.0-rockschurn-canonical").read().operator("churn").states
    assert str(len(states)) == values["states"]
    assert [state.name for state in states[:2]] == [values["state_0"], values["state_1"]]
    assert states[0].kind == values["kind"]
    assert states[0].key_serializer.name == "STRING"


def test_ambiguous_keys_read_so() -> None:
    example = EXAMPLES["2.3.0-extraheap-canonical string-namespace 0 @2026"]
    values = example.values
    entries = entries_of(example.place[0], "string-namespace", int(values["key_group"]))
    assert {entry.key for entry in entries} == {values["key"]}
    (entry,) = (entry for entry in entries if entry.namespace == values["namespace"])
    assert (entry.state, entry.value) == ("nsValue", 192)
    (entry,) = (entry for entry in entries if entry.namespace == values["map_namespace"])
    assert (entry.state, entry.user_key) == ("nsMap", values["user_key"])
    assert str(entry.value) == values["map_value"]


def test_raw_timers_read_so() -> None:
    """They are the whole first key group, of one service without timers."""
    example = EXAMPLES["2.3.0-heaptimers-checkpoint by-string 0 raw @0"]
    handle: Any = operator_of(example.place[0], "by-string").subtasks[0].raw_keyed
    assert handle.offsets[:2] == (example.start, example.end)
    states = {state.name for state in point(example.place[0]).read().operator("by-string").states}
    service = example.values["service"]
    assert {f"_timer_state/{time}_{service}" for time in ("event", "processing")} <= states


def test_compressed_key_group_reads_so() -> None:
    pytest.importorskip("cramjam", reason="key groups are compressed: the extra savepoint")
    example = EXAMPLES["2.3.0-snappy-canonical by-string 0 @5299"]
    handle = operator_of(example.place[0], "by-string").subtasks[0].managed_keyed
    assert isinstance(handle, KeyGroupsHandle)
    start, end = [offset for offset in handle.offsets if offset][:2]
    assert start == example.start
    assert end == start + 10 + 4 + int(example.values["chunk_length"])
    with point(example.place[0]).files.open(handle.stream) as opened:
        entries = b"".join(decompressed(opened, start, end))
    assert str(len(entries)) == example.values["uncompressed_length"]


def test_hashmap_entries_read_so() -> None:
    example = EXAMPLES["2.3.0-heap-native by-int 0 @10872"]
    values = example.values
    entries = entries_of(example.place[0], "by-int", 35)
    assert {str(entry.key) for entry in entries} == {values["key"]}
    by_state = {entry.state: entry for entry in entries}
    assert str(by_state["count"].value) == values["count"]
    assert str(by_state["sum"].value) == values["sum"]
    assert [values["user_key"], values["other_user_key"]] == [
        str(entry.user_key) for entry in entries if entry.state == "ttlMap"
    ]
    assert [entry.value for entry in entries if entry.state == "ttlMap"] == ["x", values["last"]]
    assert {entry.last_access for entry in entries} == {None, int(values["last_access"])}
    (timer,) = (entry for entry in entries if entry.kind == "PRIORITY_QUEUE")
    assert str(timer.timestamp) == values["timestamp"]


def test_footer_reads_so() -> None:
    pytest.importorskip("xxhash", reason="blocks have checksums: the extra savepoint")
    example = EXAMPLES["2.3.0-rockschurn-native churn 0 000124.sst @2856"]
    handle = operator_of(example.place[0], "churn").subtasks[0].managed_keyed
    assert isinstance(handle, RocksDBHandle)
    stream = dict(handle.shared)["000124.sst"]
    assert example.end == stream.size
    with point(example.place[0]).files.open(stream) as opened:
        assert SstFile(opened).column_family


def test_operator_state_reads_so() -> None:
    example = EXAMPLES["2.3.0-heap-canonical offsets 0 operator @0"]
    handle = operator_of(example.place[0], "offsets").subtasks[0].managed_operator
    assert handle is not None
    assert example.end == handle.stream.size
    assert [name for name, _, _ in handle.states] == [
        example.values["state_0"],
        example.values["state_1"],
    ]
    assert handle.states[0][1] == example.values["mode"]
    assert handle.states[1][2] == (example.end - 8,)
    states = point(example.place[0]).read().operator("offsets").operator_state()
    elements = {one.state: one.elements for one in states if one.subtask == 0}
    assert elements["watermarks"] == [int(example.values["element"])]


def test_the_whole_savepoint_is_what_the_writer_writes(tmp_path: Path) -> None:
    with SavepointWriter(tmp_path / "new") as writer:
        operator = writer.add_operator(
            "counter", kt.STRING, [ValueStateDescriptor("count", kt.LONG)], 128, 1
        )
        operator.write("count", "a", 7)
    files = {path.name: path.read_bytes() for path in (tmp_path / "new").iterdir()}
    metadata = files.pop("_metadata")
    ((name, keyed),) = files.items()
    example = EXAMPLES["written _metadata @0"]
    example.check(metadata)
    assert example.end == len(metadata)
    assert example.values["operator_id"] == OperatorId.of_uid("counter")
    assert sb.utf(name) in metadata
    assert len(sb.utf(name)) == 69
    EXAMPLES["written keyed @371"].check(keyed)
    assert EXAMPLES["written keyed @371"].end == len(keyed)
    assert str(EXAMPLES["written keyed @371"].start) == example.values["offset_81"]
    (entry,) = read_savepoint(tmp_path / "new").operator("counter").entries()
    assert (entry.key, entry.value, entry.key_group) == ("a", 7, 81)


def table(*columns: str) -> list[list[str]]:
    """Return the rows of a table by the names of its columns."""
    head = re.escape(f"| {' | '.join(columns)} |")
    (rows,) = re.findall(rf"^{head}\n\|[-|]+\|\n((?:\|.*\|\n)+)", TEXT, re.M)
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows.splitlines()]


def test_codes() -> None:
    """The tables list all the codes that there are, by Flink's names."""
    handles = {name: int(code) for code, name, _ in table("code", "constant", "holds")}
    assert handles == {code.name: code.value for code in HandleCode}
    channels = {name: int(code) for code, name, _ in table("code", "constant", "after it")}
    assert channels == {code.name: code.value for code in ChannelHandleCode}
    versions = [row[0].split()[0] for row in table("version", "written by", "what is new")]
    assert versions == ["1", *map(str, VERSIONS)]
    for number, mode in enumerate(MODES):
        assert f"{number} {mode}" in " ".join(TEXT.split())


def test_codes_in_messages() -> None:
    """They are numbers there, on every Python."""
    assert f"{HandleCode.KEY_GROUPS_HANDLE}, {HandleCode(17)!s}, {ChannelHandleCode(3)!s}" == (
        "3, 17, 3"
    )
