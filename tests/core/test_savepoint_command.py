"""What the command prints of a savepoint, beside what Flink's own classes read in the same one."""

from __future__ import annotations

import re
from ast import literal_eval
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from real_savepoints import point, true_entries

from keygroups.cli import main

DATA = Path(__file__).parents[2] / "examples" / "data" / "savepoint"
ORIGIN = point("2.3.0-heaptimers-canonical")

Print = Callable[..., str]


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str]) -> Print:
    """Return the function that runs the command and returns what it prints."""

    def run(*arguments: str) -> str:
        assert main(["savepoint", str(DATA), *arguments]) == 0
        printed, complaint = capsys.readouterr()
        assert complaint == ""
        return printed

    return run


def test_its_data_is_the_savepoint_that_it_says() -> None:
    assert (DATA / "_metadata").read_bytes() == (ORIGIN.path / "_metadata").read_bytes()


def sizes_of_key_groups() -> Counter[int]:
    """Return the bytes of each key group, from the offsets that Flink read in `_metadata`."""
    sizes: Counter[int] = Counter()
    for line in ORIGIN.truth("metadata"):
        if line["record"] == "managed_keyed":
            starts = [offset for offset in line["offsets"] if offset]
            ends = dict(pairwise([*starts, line["stream"]["size"]]))
            for key_group, offset in enumerate(line["offsets"], line["start"]):
                if offset:
                    sizes[key_group] = ends[offset] - offset
    return sizes


def test_heaviest_key_groups(shown: Print) -> None:
    sizes = sizes_of_key_groups()
    line = re.compile(r"^ +([\d,]+)  key group (\d+), subtask \d$", re.MULTILINE)
    printed = line.findall(shown("--top", str(len(sizes))))
    assert [(int(group), int(size.replace(",", ""))) for size, group in printed] == [
        *sizes.most_common()
    ]


def test_keys_with_their_entries(shown: Print) -> None:
    counts: Counter[tuple[str, int, int]] = Counter()
    for _, subtask, _, _, key_group, key, *_ in true_entries(ORIGIN.entries):
        counts[ascii(key), key_group, subtask] += 1
    line = re.compile(
        r"^ +[\d,]+  (.*), (\d+) entries, key group (\d+), subtask (\d)$", re.MULTILINE
    )
    printed = line.findall(shown("--top", str(len(counts)), "--operator", "by-string"))
    assert Counter((int(group), int(entries)) for _, entries, group, _ in printed) == Counter(
        (group, entries) for (_, group, _), entries in counts.items()
    )
    plain = {key: (group, subtask) for key, group, subtask in counts if len(key) < 20}
    seen = {
        ascii(literal_eval(key)): (int(g), int(s)) for key, _, g, s in printed if len(key) < 20
    }
    assert seen.items() >= {key: plain[key] for key in plain if "user" in key}.items()


def test_bytes_that_a_rescale_moves(shown: Print) -> None:
    """From 3 to 2 subtasks of 128 key groups: 43 to 63 go from 1 to 0, 86 to 127 from 2 to 1."""
    sizes = sizes_of_key_groups()
    moved = sum(sizes[group] for group in (*range(43, 64), *range(86, 128)))
    assert f"weight: {moved:,} of {sizes.total():,} moves" in shown("--parallelism", "2")


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("nowhere",), 1, "nowhere/_metadata: cannot be opened"),
        ((str(DATA), "--operator", "by-nobody"), 2, "got 'by-nobody'"),
        ((str(DATA), "--parallelism", "0"), 2, "new_parallelism must be from 1 to 128"),
        ((str(DATA), "--top", "0"), 2, "top must be from 1 to 2147483647, got 0"),
    ],
)
def test_refusals_are_one_line(
    arguments: tuple[str, ...], status: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["savepoint", *arguments]) == status
    [line] = capsys.readouterr().err.splitlines()
    assert message in line
