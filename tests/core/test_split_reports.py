"""Where the splits of a source stand, in reports: text, the notebook, the page and the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.bytes.real_savepoints import point
from support.bytes.source_bytes import (
    coordinator,
    file_split,
    in_cluster,
    kafka_split,
    partitions,
    pending,
    source,
    versioned,
)
from support.html_tables import Tables
from support.inside.savepoints import splits_section

from keygroups.cli import main
from keygroups.savepoint import (
    KafkaOffsets,
    KafkaSplit,
    KinesisSplit,
    Savepoint,
    SavepointWriter,
    SourceSplits,
    SpecialOffset,
    UnknownSplit,
    ValueStateDescriptor,
    html_report,
    operator_reports,
    read_savepoint,
)
from keygroups.types import INT

A0 = kafka_split("a", 0, 40)


def of_kafka(folder: Path) -> Savepoint:
    offsets: dict[tuple[str, int], int | SpecialOffset] = {
        ("a", 0): 4711,
        ("a", 1): SpecialOffset.EARLIEST,
    }
    with SavepointWriter(folder / "savepoint") as writer:
        writer.add_source("clicks", KafkaOffsets(offsets, {("a", 0): 9999}), 128, parallelism=1)
        counts = [ValueStateDescriptor("count", INT)]
        writer.add_operator("by-user", INT, counts, 128, parallelism=1).write("count", 1, 2)
    return writer.savepoint()


def test_a_source_among_others(tmp_path: Path) -> None:
    """It has its splits, and nothing of keyed state, which it has not."""
    of_source, of_state = operator_reports(of_kafka(tmp_path))
    assert str(of_source).splitlines() == [
        "== clicks: source",
        "  2 splits",
        "  split  goes on at      subtask",
        "  a/0    4,711 to 9,999        0",
        "  a/1    EARLIEST              0",
    ]
    assert of_source.key_group_bytes is None
    assert of_source.rescale is None
    assert of_state.source is None
    shown = of_source._repr_html_()
    assert "4,711 to 9,999" in shown
    assert "key group" not in shown
    assert "4,711" not in of_state._repr_html_()


def test_the_page_and_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    savepoint = of_kafka(tmp_path)
    html = html_report(savepoint)
    assert html.count("<caption>Splits of the source") == 1
    assert html.count("Heaviest keys") == 1
    assert (3, "Splits of the source") in Tables(html).headings
    assert "more operators" not in html
    assert "4,711 to 9,999" in html
    assert main(["savepoint", savepoint.path, "--quiet", "--json"]) == 0
    of_source, of_state = json.loads(capsys.readouterr().out)["reports"]
    splits = {split["partition"]: split["offset"] for split in of_source["splits"]}
    assert splits == {0: 4711, 1: "EARLIEST"}
    assert of_source["key_group_bytes"] is None
    assert of_state["splits"] is None
    assert main(["savepoint", savepoint.path, "--quiet", "--operator", "clicks"]) == 0
    assert "goes on at" in (text := capsys.readouterr().out)
    assert "imbalance: " not in text


def test_an_operator_that_has_neither() -> None:
    """Once its page was one of key groups without any byte."""
    savepoint = point("2.3.0-heap-canonical").read()
    [report] = operator_reports(savepoint, ["offsets"])
    assert str(report) == "== offsets: no keyed state"


def test_bytes_of_another_source_in_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    operator = source(tmp_path / "savepoint", [[versioned(7, b"?\xff")]])
    path = str(tmp_path / "savepoint")
    [report] = operator_reports(read_savepoint(path), [operator.operator_id])
    assert str(report).splitlines()[-1] == "  of another source  b'?\\xff', version 7        0"
    assert main(["savepoint", path, "--quiet", "--json"]) == 0
    [report] = json.loads(capsys.readouterr().out)["reports"]
    assert report["splits"] == [{"subtask": 0, "version": 7, "data": "3fff"}]


def test_splits_that_cannot_be_read(tmp_path: Path) -> None:
    source(tmp_path / "savepoint", [[b"\0\0\0"]])
    [report] = operator_reports(read_savepoint(tmp_path / "savepoint"))
    assert report.source is None
    assert "4 bytes were to follow" in str(report).splitlines()[1]


def rows_of(source_splits: SourceSplits) -> list[tuple[str, ...]]:
    return [tuple(row) for row in splits_section(source_splits).rows]


def test_who_has_a_split(tmp_path: Path) -> None:
    enumerator = partitions(("a", 0, 0), ("b", 0, 0), ("c", 0, 1), is_finished=False)
    found = source(tmp_path / "1", [[versioned(0, A0)]], coordinator(2, enumerator))
    section = splits_section(found.source_splits())
    assert section.texts == ["3 splits; the initial discovery of partitions is not finished"]
    assert [tuple(row) for row in section.rows] == [
        ("a/0", "40", "0"),
        ("b/0", "not told", "none, read to its end"),
        ("c/0", "not told", "none yet"),
    ]
    found = source(tmp_path / "2", [[in_cluster("x\n", A0)]])
    assert rows_of(found.source_splits()) == [("x\\n: a/0", "40", "0")]


def test_splits_of_files(tmp_path: Path) -> None:
    """From byte 10 on there are 200; a reader stands at an offset, or some records on."""
    splits = [
        file_split("1"),
        file_split("2", position=(70, 0)),
        file_split("3", position=(-1, 5_000)),
    ]
    state = coordinator(1, pending([file_split("4")], [b"x", b"y"]))
    found = source(tmp_path / "1", [[versioned(1, split) for split in splits]], state)
    section = splits_section(found.source_splits())
    assert section.texts == ["4 splits; 2 files were seen"]
    assert [tuple(row[1:]) for row in section.rows] == [
        ("byte 10, of 10 to 210", "0"),
        ("byte 70, of 10 to 210", "0"),
        ("byte 10, 5,000 records on, of 10 to 210", "0"),
        ("byte 10, of 10 to 210", "none yet"),
    ]
    assert section.rows[0][0] == "file:/data/a.csv"


def test_shards() -> None:
    splits = (
        KinesisSplit("clicks", "shard-0", "495", -1, 0),
        KinesisSplit("clicks", "shard-1", "496", 2, 1),
        KinesisSplit("clicks", "shard-2", "497", 0, 2),
    )
    assert rows_of(SourceSplits(splits, None, None)) == [
        ("clicks/shard-0", "after 495", "0"),
        ("clicks/shard-1", "after 496, 2 in it", "1"),
        ("clicks/shard-2", "after 497, 0 in it", "2"),
    ]


@pytest.mark.parametrize("size", [100, 101])
def test_names_have_at_most_100_characters(size: int) -> None:
    split = KafkaSplit("t" * (size - 2), 5, None, None, None, is_assigned=True)
    [(name, place, subtask)] = rows_of(SourceSplits((split,), None, None))
    assert name == ("t" * 98 + "/5" if size == 100 else f"{'t' * 50}...{'t' * 45}/5")
    assert (place, subtask) == ("not told", "none, read to its end")


def test_very_many_splits() -> None:
    splits = tuple(UnknownSplit(0, 1, bytes([number])) for number in range(101))
    section = splits_section(SourceSplits(splits, None, None))
    assert section.texts == ["101 splits, of which 100 follow"]
    assert len(section.rows) == 100
    assert splits_section(SourceSplits(splits[:100], None, None)).texts == ["100 splits"]
    assert splits_section(SourceSplits(splits[:1], None, None)).texts == ["1 split"]
