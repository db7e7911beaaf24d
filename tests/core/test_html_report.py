"""The page of a savepoint: its numbers, what is escaped, and what it must not have in it."""

from __future__ import annotations

import re
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.real_savepoints import point
from support.bytes.wide_savepoints import Shape, write
from support.html_tables import Tables
from support.inside.savepoints import labels_of

from keygroups import InvalidTypeError, InvalidValueError, KeyGroupLoad, assign_to_key_group
from keygroups._show.svg import bars_svg, steps_svg
from keygroups.cli import main
from keygroups.savepoint import (
    Savepoint,
    SavepointWriter,
    ValueStateDescriptor,
    html_report,
    operator_reports,
    read_savepoint,
)
from keygroups.savepoint._reports import html_report as html_report_module
from keygroups.skew import HOT
from keygroups.types import LONG, STRING

ORIGIN = point("2.3.0-heap-canonical")
BAD = """<script>alert(1)</script>"'</svg></title>&<img src=x onerror=alert(2)>"""
TAGS = {
    *("html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "h3", "p", "div"),
    *("table", "caption", "thead", "tbody", "tr", "th", "td", "strong", "figure", "figcaption"),
    *("svg", "pattern", "rect", "path", "circle", "text", "desc"),
}
ATTRIBUTES = {
    *("lang", "charset", "content", "http-equiv", "name", "class", "style", "scope", "role", "id"),
    *("viewbox", "d", "x", "y", "cx", "cy", "r", "width", "height", "text-anchor"),
    *("aria-hidden", "patternunits", "patterntransform"),
}


def by_key_group(keys: list[str], max_parallelism: int) -> list[str]:
    return sorted(keys, key=lambda key: assign_to_key_group(key, max_parallelism))


def written(folder: Path, operators: int = 1, keys: int = 3) -> Savepoint:
    """Return a savepoint with names and keys that a page must not take for its own."""
    states = [ValueStateDescriptor(f"{BAD}state", LONG)]
    with SavepointWriter(folder) as writer:
        for index in range(operators):
            operator = writer.add_operator(f"{BAD}{index}", STRING, states, 128, parallelism=3)
            for key in by_key_group([f"{BAD}{key}" for key in range(keys * (index + 1))], 128):
                operator.write(states[0].name, key, 5)
    savepoint = read_savepoint(folder)
    for index in range(operators):
        savepoint.operator(f"{BAD}{index}")  # it has the uid then
    return savepoint


def pictures(html: str) -> list[ElementTree.Element]:
    """Return the pictures that are figures, which XML has to take too."""
    return [ElementTree.fromstring(svg) for svg in re.findall("<svg view.*?</svg>", html)]


def bars(svg: ElementTree.Element) -> list[str]:
    return [rect.findtext("title") or "" for rect in svg.iter("rect")]


def bytes_of_key_groups(uid: str) -> list[int]:
    """Return the bytes of each key group, from the offsets that Flink read in `_metadata`."""
    sizes = [0] * 128
    operator_id = read_savepoint(ORIGIN.path).operator(uid).operator_id
    for line in ORIGIN.truth("metadata"):
        if line["record"] == "managed_keyed" and line["operator"] == operator_id:
            starts = [offset for offset in line["offsets"] if offset]
            ends = dict(pairwise([*starts, line["stream"]["size"]]))
            for key_group, offset in enumerate(line["offsets"], line["start"]):
                sizes[key_group] += ends[offset] - offset if offset else 0
    return sizes


def heaviest_of(sizes: list[int], parallelism: int) -> int:
    """Return the bytes of the heaviest subtask, whose key groups are as Flink's formula has it."""
    return max(
        sum(size for group, size in enumerate(sizes) if group * parallelism // 128 == subtask)
        for subtask in range(parallelism)
    )


def test_numbers_of_a_real_savepoint() -> None:
    """Beside what Flink's own classes read of it."""
    sizes = bytes_of_key_groups("by-long")
    assert sum(map(bool, sizes)) == 21
    html = html_report(read_savepoint(ORIGIN.path), ["by-long"])
    page = Tables(html)
    assert page.headings == [
        (1, f"State of {ORIGIN.path}"),
        (2, "Operators"),
        (2, "Operator by-long"),
        (3, "Keyed states"),
        (3, "Bytes by key group"),
        (3, "Bytes by subtask"),
        (3, "Heaviest keys"),
        (3, "Parallelisms from 2 to 6"),
    ]
    [by_group, by_subtask, steps] = pictures(html)
    mean = sum(sizes) / 128
    assert bars(by_group) == [
        f"key group {group}: {size:,} bytes, {size / mean:.2f} times the mean"
        for group, size in enumerate(sizes)
    ]
    of_subtasks = [sum(sizes[:43]), sum(sizes[43:86]), sum(sizes[86:])]
    hot = [size * 3 >= HOT * sum(sizes) for size in of_subtasks]
    assert bars(by_subtask) == [
        f"subtask {index}: {size:,} bytes, {size * 3 / sum(sizes):.2f} times the mean"
        + ", hot" * is_hot
        for index, (size, is_hot) in enumerate(zip(of_subtasks, hot))
    ]
    assert sum(hot) == 1
    assert f"subtask {hot.index(True)}." in (by_subtask.findtext("desc") or "")
    assert "hot" in [text.text for text in by_subtask.iter("text")]
    least = min(heaviest_of(sizes, parallelism) for parallelism in range(2, 7))
    output = steps.findtext("desc") or ""
    assert f"the heaviest subtask has {heaviest_of(sizes, 3):,} bytes" in output
    assert f"from 2 to 6 it has {least:,} at least" in output
    start = page.rows.index(
        ["parallelism", "heaviest subtask", "imbalance", "idle subtasks", "bytes that move"]
    )
    rows = page.rows[start + 1 :]
    assert [row[0] for row in rows] == ["2", "3, now", "4", "5", "6"]
    assert [row[1:3] for row in rows] == [
        [f"{heaviest_of(sizes, p):,}", f"{heaviest_of(sizes, p) * p / sum(sizes):.2f}"]
        for p in range(2, 7)
    ]
    hot_rows = [row for row in rows if float(row[2]) >= HOT]
    assert [row[0] for row in hot_rows] == ["3, now", "4", "5", "6"]
    assert page.marked[-4:] == hot_rows
    assert rows[0] not in page.marked
    moved = sum(size for group, size in enumerate(sizes) if group * 3 // 128 != group * 4 // 128)
    assert rows[2][4] == f"{moved / sum(sizes):.1%}"
    assert rows[1][4] == "0.0%"


def test_states_with_their_types() -> None:
    page = Tables(html_report(read_savepoint(ORIGIN.path), ["session"]))
    assert ["state", "kind", "key", "namespace", "user key", "value", "TTL"] in page.rows
    assert [
        "window-contents",
        "AGGREGATING",
        "STRING",
        "TIME_WINDOW",
        "",
        "TUPLE(LONG, INT)",
        "",
    ] in (page.rows)


def test_every_operator_with_keyed_state_has_a_section() -> None:
    savepoint = read_savepoint(ORIGIN.path)
    page = Tables(html_report(savepoint))
    keyed = [
        operator.label
        for operator in savepoint.operators
        if any(subtask.key_groups for subtask in operator.subtasks)
    ]
    assert [text for level, text in page.headings if level == 2] == [
        "Operators",
        *(f"Operator {label}" for label in keyed),
    ]
    table = [row for row in page.rows if len(row) == 6 and row[0] != "operator"]
    assert [row[0] for row in table[:25]] == labels_of(savepoint.operators)
    assert {"session", "tumbling", "by-long"} <= {row[0] for row in page.marked}
    assert set(page.words) == {"hot"}


def test_a_page_is_a_page(tmp_path: Path) -> None:
    """One heading on top and no level left out, a language, names for pictures and tables."""
    html = html_report(written(tmp_path / "made", operators=2))
    page = Tables(html)
    levels = [level for level, _ in page.headings]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(level <= before + 1 for before, level in pairwise(levels))
    assert html.startswith('<!doctype html>\n<html lang="en">')
    assert len(pictures(html)) == 6
    for svg in pictures(html):
        assert svg.findtext("title")
        assert svg.findtext("desc")
        assert svg.get("role") == "img"
    assert len(page.captions) == html.count("<table>")
    assert all(page.captions)
    assert "prefers-color-scheme: dark" in html
    assert "@media print" in html


def test_nothing_from_the_savepoint_is_html(tmp_path: Path) -> None:
    """Nor is there anything that a browser would run, load or follow."""
    html = html_report(written(tmp_path / f"a{BAD}".replace("/", "")))
    page = Tables(html)
    assert page.tags == TAGS
    assert {name for name, _ in page.attributes} <= ATTRIBUTES
    assert any(f"{BAD}state" == row[0] for row in page.rows)
    assert [repr(f"{BAD}1"), "1"] == next(
        [row[0], row[3]] for row in page.rows if row[0].endswith("1'")
    )
    assert (2, f"Operator {BAD}0") in page.headings
    policy = dict(re.findall('http-equiv="([^"]*)" content="([^"]*)"', html))
    assert policy["Content-Security-Policy"].startswith(
        "default-src 'none'; style-src 'unsafe-inline'"
    )
    assert "url(" not in html.replace("url(#hatched)", "")
    assert html.isascii() or html.encode()


def test_what_is_left_out_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    savepoint = written(tmp_path / "made", operators=4)
    monkeypatch.setattr(html_report_module, "_LISTED", 3)
    monkeypatch.setattr(html_report_module, "_DETAILED", 2)
    page = Tables(html_report(savepoint))
    of_operators = [text for level, text in page.headings if level == 2]
    assert of_operators == ["Operators", f"Operator {BAD}2", f"Operator {BAD}3"]  # the heaviest
    assert any(
        text.startswith("2 more operators with state have no section") for text in page.paragraphs
    )
    assert page.captions[0].endswith("; the 3 with the most bytes, 1 others are left out")
    named = Tables(html_report(savepoint, [f"{BAD}0", f"{BAD}1", f"{BAD}2"]))
    assert len([text for level, text in named.headings if level == 2]) == 4


def test_many_parallelisms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more than can be read those that are worth it are in the table, and the present one."""
    with SavepointWriter(tmp_path / "made") as writer:
        states = [ValueStateDescriptor("count", LONG)]
        operator = writer.add_operator("by-user", STRING, states, 720, parallelism=52)
        for key in by_key_group([str(key) for key in range(500)], 720):
            operator.write("count", key, 5)
    savepoint = read_savepoint(tmp_path / "made")
    page = Tables(html_report(savepoint))
    load = savepoint.operator("by-user").key_group_bytes()
    start = next(i for i, row in enumerate(page.rows) if row[0] == "parallelism")
    shown = [int(row[0].removesuffix(", now")) for row in page.rows[start + 1 :]]
    better = [ranked.parallelism for ranked in load.recommend(26, 104)]
    assert shown == sorted({52, *better[:23]})
    assert (3, "Parallelisms from 26 to 104") in page.headings
    assert [row[0] for row in page.rows if row[0].endswith("now")] == ["52, now"]
    monkeypatch.setattr(html_report_module, "_ROWS", 4)
    rows = Tables(html_report(savepoint)).rows[start + 1 :]
    assert [row[0] for row in rows] == ["52, now", *map(str, sorted(better[:3]))]


@pytest.mark.parametrize(("parallelism", "is_uneven"), [(8, True), (5, False)])
def test_uneven_key_groups(tmp_path: Path, parallelism: int, is_uneven: bool) -> None:
    """Of 8 subtasks 2 have 2 of 10 key groups. At 2 and 5 all have as many; at 3 some have 4."""
    with SavepointWriter(tmp_path / "made") as writer:
        states = [ValueStateDescriptor("count", LONG)]
        operator = writer.add_operator("by-user", STRING, states, 10, parallelism)
        for key in by_key_group([str(key) for key in range(500)], 10):
            operator.write("count", key, 5)
    page = Tables(html_report(read_savepoint(tmp_path / "made")))
    ranges = "remedy: 2 subtasks have 2 key groups, 6 have 1: at best 1.60 times the mean; even"
    assert any(text.startswith(ranges) for text in page.paragraphs) == is_uneven
    named = [text for text in page.paragraphs if text.startswith("uneven key groups at ")]
    best = {3: 1.2, 4: 1.2, 6: 1.2, 7: 1.4, 8: 1.6, 9: 1.8}
    near = [f"{p}, at best {best[p]:.2f} times the mean" for p in best if 2 * p >= parallelism]
    assert named == [f"uneven key groups at {'; '.join(near)}"]


def test_no_keyed_state(tmp_path: Path) -> None:
    with SavepointWriter(tmp_path / "made") as writer:
        writer.add_operator("empty", STRING, [ValueStateDescriptor("n", LONG)], 128, 3)
    page = Tables(html_report(read_savepoint(tmp_path / "made"), ["empty"]))
    assert page.headings[-1] == (2, "Operator empty")
    assert page.paragraphs[-1] == "no keyed state"


def test_refusals() -> None:
    no_savepoint: Any = "savepoint"
    for report in (html_report, operator_reports):
        with pytest.raises(InvalidTypeError, match=r"^savepoint must be a Savepoint"):
            report(no_savepoint)
    savepoint = read_savepoint(ORIGIN.path)
    with pytest.raises(InvalidValueError, match="operator must be"):
        html_report(savepoint, ["nobody"])
    with pytest.raises(InvalidTypeError, match="operators must be an iterable of names, got 5"):
        html_report(savepoint, 5)  # type: ignore[arg-type]  # a user may do so
    with pytest.raises(InvalidTypeError, match="operator must be a str, got 5"):
        html_report(savepoint, [5])  # type: ignore[list-item]
    with pytest.raises(InvalidValueError, match="top must be"):
        html_report(savepoint, top=0)


# --- pictures -------------------------------------------------------------------------------


def test_many_bars_are_the_largest_of_several() -> None:
    weights = [1] * 32768
    weights[5], weights[32767] = 9, 7
    [svg] = pictures(bars_svg(weights, "key group", HOT))
    text = bars(svg)
    assert len(text) == 128
    assert text[0].startswith(
        "key group 5: 9 bytes, 9.00 times the mean, hot; the largest of 0 to 255"
    )
    assert text[-1].startswith("key group 32767: 7 bytes")
    assert "hot with 1.5 times the mean and more: key groups 5, 32767." in (
        svg.findtext("desc") or ""
    )
    for count, more in (
        *((128, ""), (129, ": the largest of every 2"), (256, ": the largest of every 2")),
        *((257, ": the largest of every 3"), (32768, ": the largest of every 256")),
    ):
        [svg] = pictures(bars_svg([1] * count, "key group", HOT))
        *_, label = svg.iter("text")
        assert label.text == f"key group, of {count:,}{more}"


@pytest.mark.parametrize(
    ("heaviest", "ticks"),
    [
        (1, "0 1"),
        (7, "0 2 4 6 8"),
        (20, "0 5 10 15 20"),
        (25, "0 5 10 15 20 25"),
        (26, "0 10 20 30"),
        (50, "0 10 20 30 40 50"),
        (51, "0 20 40 60"),
        (250, "0 50 100 150 200 250"),
        (251, "0 100 200 300"),
        (2_500, "0 500 1k 1.5k 2k 2.5k"),
        (10**18, "0 200P 400P 600P 800P 1E"),
    ],
)
def test_ticks_are_ones_twos_or_fives(heaviest: int, ticks: str) -> None:
    """At most six, from 0 to the first that is not below the heaviest."""
    [svg] = pictures(bars_svg([heaviest, 0], "subtask"))
    shown = [text for text in svg.iter("text") if text.get("text-anchor") == "end"]
    assert [(text.text or "").replace(" ", "") for text in shown] == ticks.split()
    lines = [path.get("d", "") for path in svg.iter("path") if path.get("class") == "grid"]
    heights = [float(re.split("[,H]", line)[1]) for line in lines]
    expected = [180 - 162 * tick / (len(shown) - 1) for tick in range(len(shown))]
    assert heights == [pytest.approx(height, abs=0.06) for height in expected]
    assert [float(text.get("y", 0)) - 4 for text in shown] == heights


def test_ticks_are_ints_and_bars_have_their_heights() -> None:
    [svg] = pictures(bars_svg([3, 0, 1], "subtask", HOT))
    texts = [text.text for text in svg.iter("text")]
    assert texts[:4] == ["0", "1", "2", "3"]
    assert texts[4:7] == ["0", "1", "2"]
    heights = [float(rect.get("height", 0)) for rect in svg.iter("rect")]
    assert heights == [162, 0, 54]
    foot = max(float(rect.get("y", 0)) for rect in svg.iter("rect"))  # the empty bar's
    [mean] = [path.get("d", "") for path in svg.iter("path") if path.get("class") == "mean"]
    assert float(re.split("[,H]", mean)[1]) == pytest.approx(foot - 54 * 4 / 3, abs=0.06)
    middles = [
        float(rect.get("x", 0)) + float(rect.get("width", 0)) / 2 for rect in svg.iter("rect")
    ]
    named = [float(text.get("x", 0)) for text in svg.iter("text")][4:7]
    assert middles == [pytest.approx(76 + 636 * part / 6, abs=0.01) for part in (1, 3, 5)]
    assert named == [pytest.approx(middle, abs=0.1) for middle in middles]
    [hot] = pictures(bars_svg([3, 1, 2, 2], "subtask", HOT))  # 1.5 times the mean of 2
    assert [rect.get("class") for rect in hot.iter("rect")] == ["hot", "bar", "bar", "bar"]
    [large] = pictures(bars_svg([4_200_000], "subtask"))
    assert [text.text for text in large.iter("text")][:6] == [
        "0",
        "1 M",
        "2 M",
        "3 M",
        "4 M",
        "5 M",
    ]
    [one] = pictures(bars_svg([1, 0], "subtask"))
    assert [text.text for text in one.iter("text")][:4] == ["0", "1", "0", "1"]
    [nothing] = pictures(bars_svg([0, 0], "subtask", HOT))
    assert bars(nothing)[0] == "subtask 0: 0 bytes, 1.00 times the mean"
    [many] = pictures(bars_svg([1] * 20 + [50] * 20, "subtask", HOT))
    assert "subtasks 20, 21, 22, 23, 24, 25, 26, 27, 28, 29 and 10 more." in (
        many.findtext("desc") or ""
    )


def test_steps() -> None:
    load = KeyGroupLoad(8, [5, 1, 1, 1, 0, 1, 2, 1])
    weights = [max(load.per_subtask(parallelism)) for parallelism in range(1, 5)]
    assert weights == [12, 8, 7, 6]
    [svg] = pictures(steps_svg(range(1, 5), weights, 12, 2))
    paths = {path.get("class", ""): path.get("d", "") for path in svg.iter("path")}
    edges = [76 + 636 * part / 4 for part in range(5)]
    for name, drawn in (("heaviest", weights), ("mean", [12, 6, 4, 3])):
        places = re.findall(r"([ML])([\d.]+),([\d.]+)", paths[name])
        assert " ".join(f"{how}{x},{y}" for how, x, y in places) == paths[name]
        assert [how for how, _, _ in places] == ["M"] + ["L"] * 7
        lefts, heights = [float(x) for _, x, _ in places], [float(y) for _, _, y in places]
        assert (lefts[::2], lefts[1::2]) == (edges[:-1], edges[1:])
        expected = [pytest.approx(180 - 162 * weight / 15, abs=0.1) for weight in drawn]
        assert heights[::2] == heights[1::2] == expected
    [now] = svg.iter("circle")
    assert float(now.get("cx", 0)) == pytest.approx(76 + 636 * 1.5 / 4, abs=0.1)
    assert float(now.get("cy", 0)) == pytest.approx(180 - 162 * 8 / 15, abs=0.1)
    words = {text.text: text for text in svg.iter("text")}
    assert words["now: 2"].get("x") == now.get("cx")
    assert float(words["parallelism"].get("x", 0)) == 76 + 636 / 2  # below the middle of the plot
    named = [float(words[f"{parallelism}"].get("x", 0)) for parallelism in range(1, 5)]
    assert named == [pytest.approx(76 + 636 * part / 8, abs=0.1) for part in (1, 3, 5, 7)]


# --- the command ----------------------------------------------------------------------------


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(["savepoint", *arguments])
    return status, *capsys.readouterr()


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made, page = str(ORIGIN.path), tmp_path / "report.html"
    status, text, complaint = run(
        capsys, made, "--html", str(page), "--operator", "by-long", "--top", "2"
    )
    assert (status, complaint) == (0, "")
    assert text == f"{page}: {page.stat().st_size:,} bytes\n"
    html = html_report(read_savepoint(made), ["by-long"], 2)
    assert page.read_text("utf-8") == html
    assert [*tmp_path.iterdir()] == [page]
    status, text, complaint = run(capsys, made, "--html", str(page))
    assert (status, text) == (2, "")
    assert complaint.endswith(f"html must be of a new file, got {str(page)!r}: it is there\n")
    assert page.read_text("utf-8") == html
    _, _, complaint = run(capsys, made, "--html", str(page), "--operator", "nobody")
    assert "html must be of a new file" in complaint  # nobody has looked for operators yet


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--html", "{}/a.html", "--json"], 2, "--html goes without --json"),
        (["--html", "{}/a.html", "--parallelism", "4"], 2, "--html goes without --parallelism"),
        (
            ["--html", "{}/a.html", "--set-max-parallelism", "256", "--output", "{}/b"],
            2,
            "--html goes without --output",
        ),
        (["--html", "{}/a.html", "--relocate", "{}/b"], 2, "--html goes without --relocate"),
        (["--html", "s3://bucket/a.html"], 2, "html must be the path of a file"),
        (["--html", ""], 2, "html must be the path of a file"),
        (["--html", "{}/a\0b"], 2, "html must be the path of a file"),
        (["--html", "{}"], 2, "html must be of a new file"),
        (["--html", "{}/no/a.html"], 1, "cannot be written: No such file or directory"),
        (["--html", "{}/a.html", "--operator", "nobody"], 2, "operator must be"),
    ],
)
def test_refusals_of_the_command(
    arguments: list[str],
    status: int,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    passed = [text.replace("{}", str(tmp_path)) for text in arguments]
    ended, output, complaint = run(capsys, str(ORIGIN.path), *passed)
    assert (ended, output) == (status, "")
    assert message in complaint
    assert complaint.count("\n") == 1
    assert [*tmp_path.iterdir()] == []


def test_a_file_that_comes_between_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With links, and on a file system that has none."""
    page = tmp_path / "a.html"

    def between(*_: object, full: bool) -> str:
        page.write_text("mine")
        return "page"

    def no_links(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("keygroups.savepoint.html_report", between)
    for _ in range(2):
        ended, _, complaint = run(capsys, str(ORIGIN.path), "--html", str(page))
        assert ended == 2
        assert "it is there" in complaint
        assert page.read_text() == "mine"
        assert [*tmp_path.iterdir()] == [page]
        page.unlink()
        monkeypatch.setattr("os.link", no_links)
    monkeypatch.setattr("keygroups.savepoint.html_report", lambda *_, full: "page")
    assert run(capsys, str(ORIGIN.path), "--html", str(page))[0] == 0
    assert page.read_text() == "page"
    assert [*tmp_path.iterdir()] == [page]


def test_a_full_disk_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.link", full)
    monkeypatch.setattr("pathlib.Path.rename", full)
    ended, _, complaint = run(capsys, str(ORIGIN.path), "--html", str(tmp_path / "a.html"))
    assert ended == 1
    assert "cannot be written: No space left on device" in complaint
    assert [*tmp_path.iterdir()] == []


# --- large ones, and a browser --------------------------------------------------------------


@pytest.mark.slow
def test_pages_do_not_grow_with_key_groups_and_operators(tmp_path: Path) -> None:
    sizes = []
    for groups in (128, 32768):
        write(tmp_path / str(groups), Shape("canonical", 20, 3, groups))
        sizes.append(len(html_report(read_savepoint(tmp_path / str(groups)))))
    assert sizes[1] < 1.5 * sizes[0]
    write(tmp_path / "more", Shape("canonical", 500, 3, 128))
    more = tmp_path / "more"
    page = Tables(html_report(read_savepoint(more)))
    assert len([text for level, text in page.headings if level == 2]) == 21
    assert any(text.startswith("480 more operators with keyed state") for text in page.paragraphs)
    assert "300 others are left out" in page.captions[0]


CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_what_a_browser_makes_of_it(tmp_path: Path) -> None:
    """It shows what was escaped as text, and finds nothing else in it."""
    made, page = tmp_path / "made", tmp_path / "report.html"
    written(made)
    assert main(["savepoint", str(made), "--html", str(page), "--operator", f"{BAD}0"]) == 0
    options = [
        *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
        *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
        f"--user-data-dir={tmp_path / 'profile'}",
    ]
    dom = subprocess.run(
        [str(CHROMIUM), *options, "--dump-dom", page.as_uri()],
        capture_output=True,
        check=True,
        timeout=120,
    ).stdout.decode()
    assert "<script" not in dom
    assert "<img" not in dom
    [text] = re.findall("<h2>(Operator .*?)</h2>", dom)
    assert text == (
        "Operator &lt;script&gt;alert(1)&lt;/script&gt;\"'&lt;/svg&gt;&lt;/title&gt;&amp;"
        "&lt;img src=x onerror=alert(2)&gt;0"
    )
    assert dom.count('role="img"') == 3
    assert dom.index("Bytes by key group") < dom.index("Bytes by subtask")


def test_keyed_state_without_entries(tmp_path: Path) -> None:
    """Each key group has no byte, and no share."""
    header = sb.keyed_header(sb.simple("Int"), [sb.state("s", "VALUE", sb.simple("Int"))])
    subtask = sb.subtask(managed_keyed=sb.canonical(0, [0], sb.inline(header)))
    path = sb.write(tmp_path / "s", [sb.operator([subtask], uid="op")])
    [report] = operator_reports(read_savepoint(path), top=1)
    assert ["0", "0", "0", "0.0%"] in Tables(report._repr_html_()).rows
    assert "rescale to 2, weight in bytes:" in str(report)
