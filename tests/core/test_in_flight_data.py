"""In-flight data of unaligned checkpoints: how much of it each channel has."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.real_savepoints import FORMATS, POINTS, point
from support.html_tables import shown
from support.inside.savepoints import read_metadata

from keygroups.cli import main
from keygroups.errors import SavepointError
from keygroups.savepoint import (
    ChannelState,
    Savepoint,
    SavepointWriter,
    convert_to_canonical,
    html_report,
    read_savepoint,
)

NAME = "2.3.0-unaligned-checkpoint"
STREAM = sb.inline(bytes(4) + b"\1" * 96)


def merged(code: int, subtask: int, size: int, channels: bytes) -> bytes:
    return (
        bytes([code]) + sb.i32(subtask) + sb.i64(size) + STREAM + sb.i32(len(channels)) + channels
    )


def single(subtask: int, gate: int, channel: int, offsets: list[int], size: int) -> bytes:
    start = sb.i32(subtask, gate, channel, len(offsets)) + sb.i64(*offsets)
    return start + sb.i64(size) + STREAM


def one(gate: int, channel: int, size: int, *offsets: int) -> bytes:
    return sb.i32(gate, channel) + sb.i64(size) + sb.i32(len(offsets)) + sb.i64(*offsets)


def written(folder: Path, version: int, inputs: list[bytes], outputs: list[bytes]) -> Savepoint:
    subtask = sb.subtask(inputs=inputs, outputs=outputs, version=version)
    operator = sb.operator([subtask], uid="op", version=version)
    folder.mkdir(exist_ok=True)
    (folder / "_metadata").write_bytes(sb.metadata([operator], version=version))
    return read_savepoint(folder)


def test_what_flink_counted() -> None:
    """Flink's own count is 76,651 bytes: of the reader, and of the source that floods it."""
    slow, flood = (point(NAME).read().operator(uid) for uid in ("slow", "src-flood"))
    of_subtasks = {
        (operator.uid, subtask, channel.direction): sum(
            other.bytes for other in operator.in_flight_data if other.subtask == subtask
        )
        for operator in (slow, flood)
        for channel in operator.in_flight_data
        for subtask in (0, 1)
    }
    assert of_subtasks == {
        ("slow", 0, "input"): 4_225,
        ("slow", 1, "input"): 4_103,
        ("src-flood", 0, "output"): 32_323,
        ("src-flood", 1, "output"): 36_000,
    }
    assert sum(of_subtasks.values()) == 76_651
    assert slow.in_flight_data[0] == ChannelState("input", 0, 0, 0, 4_208)


def test_only_unaligned_checkpoints_have_any() -> None:
    for real in (*POINTS, *FORMATS):
        operators = read_savepoint(real.path, real.moved).operators
        has_any = any(operator.in_flight_data for operator in operators)
        assert has_any == ("unaligned-checkpoint" in real.name), real.name


def test_handles_of_channels(tmp_path: Path) -> None:
    """One by one up to version 5; with a code, and all of a subtask in one, from version 6 on."""
    expected = (
        ChannelState("input", 0, 1, 2, 30),
        ChannelState("input", 0, 1, 3, 5),
        ChannelState("output", 0, 4, 5, 6),
    )
    inputs = [single(0, 1, 2, [0, 10], 30), single(0, 1, 3, [], 5)]
    for version in (3, 4, 5):
        old = written(tmp_path / f"{version}", version, inputs, [single(0, 4, 5, [7], 6)])
        assert old.operators[0].in_flight_data == expected
    together = merged(3, 0, 35, sb.i32(2) + one(1, 2, 30, 0, 10) + one(1, 3, 5))
    new = written(tmp_path / "6", 6, [together], [b"\2" + single(0, 4, 5, [7], 6)])
    assert new.operators[0].in_flight_data == expected
    apart = [b"\1" + handle for handle in inputs]
    of_all = merged(4, 0, 6, sb.i32(1) + one(4, 5, 6, 7))
    assert written(tmp_path / "x", 6, apart, [of_all]).operators[0].in_flight_data == expected


def inline(subtask: int, channel: int, offsets: list[int], *buffers: bytes) -> bytes:
    """A channel whose bytes are in `_metadata`, behind the version of the stream."""
    data = bytes(4) + b"".join(sb.i32(len(buffer)) + buffer for buffer in buffers)
    start = sb.i32(subtask, 0, channel, len(offsets)) + sb.i64(*offsets)
    return start + sb.i64(len(data)) + sb.inline(data)


@pytest.mark.parametrize(
    ("inputs", "channels"),
    [
        ([single(0, 0, 7, [4, 8], 8)], []),  # two lengths, and nothing behind them
        ([single(0, 0, 7, [4, 8], 9)], [7]),
        ([single(0, 0, 7, [4, 8], 8), single(0, 0, 8, [4], 8)], [8]),
        ([inline(0, 7, [4], b"")], []),  # Flink makes one offset of the buffers of a channel
        ([inline(0, 7, [4], b"", b"")], []),
        ([inline(0, 7, [4], b"\0")], [7]),
        ([inline(0, 7, [4], b"", b"\0", b"")], [7]),
    ],
)
def test_empty_buffers_are_nothing_in_flight(
    inputs: list[bytes], channels: list[int], tmp_path: Path
) -> None:
    """Flink writes one of each channel in whose buffer there happens to be no record."""
    for version, code in ((5, b""), (6, b"\1")):
        old = written(tmp_path / f"{version}", version, [code + one for one in inputs], inputs[:0])
        assert [channel.channel for channel in old.operators[0].in_flight_data] == channels
        if not channels:
            data = (tmp_path / f"{version}" / "_metadata").read_bytes()
            convert_to_canonical(old, tmp_path / f"new-{version}")
            new = (tmp_path / f"new-{version}" / "_metadata").read_bytes()
            assert sb.i32(0, 0, 7) in data
            assert sb.i32(0, 0, 7) not in new


@pytest.mark.parametrize(
    ("handle", "message"),
    [
        (merged(3, 0, 35, sb.i32(1) + one(0, 0, 30)), "have -5 bytes too many"),
        (merged(3, 0, 25, sb.i32(1) + one(0, 0, 30)), "have 5 bytes too many"),
        (merged(3, 0, -1, sb.i32(1) + one(0, 0, -1)), "a size or offset of -1"),
        (merged(3, 0, 0, sb.i32(2) + one(0, 0, 1) + one(0, 1, -1)), "a channel of -1 bytes"),
        (merged(3, 0, 1, sb.i32(1) + one(0, 0, 1) + b"x"), "the channels of a subtask"),
        (merged(3, 0, 1, sb.i32(1 << 30)), "offset"),
        (merged(3, 0, 1, sb.i32(1) + sb.i32(0, 0) + sb.i64(1) + sb.i32(1 << 30)), "offset"),
        (b"\1" + single(0, 0, 0, [], -1), "a size or offset of -1"),
        (b"\5" + single(0, 0, 0, [], 1), "channel handle"),
    ],
)
def test_damaged_handles(handle: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(SavepointError, match=message):
        written(tmp_path, 6, [handle], [])


FOLLOW = "bytes were to follow"


@pytest.mark.parametrize(
    ("before", "least", "is_merged", "otherwise"),
    [
        (b"", 9, False, "channel handle 0"),  # handles
        (sb.i32(1) + b"\1" + sb.i32(0, 0, 0), 8, False, FOLLOW),  # offsets of a channel
        (b"", 20, True, FOLLOW),  # channels of a subtask: two ints, a long and a count
        (sb.i32(1, 0, 0) + sb.i64(0), 8, True, FOLLOW),  # offsets of such a channel
    ],
)
@pytest.mark.parametrize("count", [1, 5])
def test_counts_of_what_does_not_fit(
    count: int, before: bytes, least: int, is_merged: bool, otherwise: str
) -> None:
    """Where there are as many bytes as they take at least, it is something else that is wrong."""
    subtask = sb.subtask(77)
    data = sb.metadata([sb.operator([subtask], parallelism=128)])
    start = data[: data.index(subtask) + len(subtask) - 8]  # the counts of inputs and outputs
    for missing in (0, 1):
        rest = least * count - missing
        content = before + sb.i32(count) + bytes(rest)
        if is_merged:
            head = sb.i32(1) + b"\3" + sb.i32(0) + sb.i64(0) + b"\0"
            content = head + sb.i32(len(content)) + content
        problem = f"a count of {count} cannot be, with {rest} bytes left" if missing else otherwise
        with pytest.raises(SavepointError, match=problem):
            read_metadata(start + content, "x")


def test_reports_weigh_it(capsys: pytest.CaptureFixture[str]) -> None:
    savepoint = point(NAME).read()
    caption = "In-flight data of an unaligned checkpoint, 76,651 bytes of 2 operators"
    row = ["src-flood", "output", "1", "0", "0", "23,658"]
    lines = [line.split() for line in str(savepoint).splitlines()]
    assert f"{caption}:" in str(savepoint)
    assert row in lines
    heaviest = next(line for line in lines if line[1:2] in (["input"], ["output"]))
    assert heaviest == row
    for page in (savepoint._repr_html_(), html_report(savepoint)):
        assert caption in unescape(page)
        assert ">23,658</td>" in page
    assert main(["savepoint", str(point(NAME).path), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    reports = [
        ChannelState(**channel)
        for operator in data["operators"]
        for channel in operator["in_flight_data"]
    ]
    assert sum(channel.bytes for channel in reports) == 76_651
    assert "In-flight" not in str(point("2.3.0-heap-canonical").read())


def test_many_channels_are_left_out(tmp_path: Path) -> None:
    numbers = range(1, 31)
    channels = b"".join(one(0, number, number) for number in numbers)
    handle = merged(3, 0, sum(numbers), sb.i32(30) + channels)
    savepoint = written(tmp_path, 6, [handle], [])
    text = str(savepoint)
    lines = text.splitlines()
    [place] = [number for number, line in enumerate(lines) if line.startswith("In-flight")]
    assert lines[place + 1 : place + 3] == [
        "operator  direction  subtask  gate  channel  bytes",
        "op        input            0     0       30     30",
    ]
    page = shown(savepoint)
    assert page.left == [*page.left[:-2], "operator", "direction"]
    assert (
        page.captions[-1] == "In-flight data of an unaligned checkpoint, 465 bytes of 1 operators"
    )
    assert page.paragraphs[0] == lines[0]
    assert "; the 10 heaviest channels, 20 others are left out:" in text
    assert text.count("op        input") == 10


def test_refusals_weigh_it(tmp_path: Path) -> None:
    savepoint = point(NAME).read()
    reports = (
        r"8,328 bytes in 4 channels \(of these 4,208 in input channel 0 of gate 0 of subtask 0\) "
        "of in-flight data of an unaligned checkpoint"
    )
    message = f"operator slow cannot be written anew: it has {reports}"
    with pytest.raises(SavepointError, match=message):
        convert_to_canonical(savepoint, tmp_path / "new")
    other = point("2.3.0-heap-canonical").read()
    editor = SavepointWriter.from_existing_savepoint(other, tmp_path / "merged")
    message = f"operator slow cannot be added .*{reports}"
    with editor, pytest.raises(SavepointError, match=message):
        editor.add_operator_from(savepoint, "slow")
