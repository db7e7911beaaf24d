"""The example that inspects a savepoint, beside what Flink's own classes read in the same one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from ast import literal_eval
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from real_savepoints import point, true_entries

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
ORIGIN = point("2.3.0-heaptimers-canonical")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / "inspect_savepoint.py", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "PYTHONPATH": str(ROOT)},
    )


def test_its_data_is_the_savepoint_that_it_says() -> None:
    data = EXAMPLES / "data" / "savepoint" / "_metadata"
    assert data.read_bytes() == (ORIGIN.path / "_metadata").read_bytes()


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


def test_heaviest_key_groups() -> None:
    sizes = sizes_of_key_groups()
    shown = run("--top", str(len(sizes))).stdout
    found = re.findall(r"^ +([\d,]+)  key group (\d+), subtask \d$", shown, re.MULTILINE)
    assert [(int(group), int(size.replace(",", ""))) for size, group in found] == [
        *sizes.most_common()
    ]


def test_keys_with_their_entries() -> None:
    counts: Counter[tuple[str, int, int]] = Counter()
    for _, subtask, _, _, key_group, key, *_ in true_entries(ORIGIN.entries):
        counts[ascii(key), key_group, subtask] += 1
    shown = run("--top", str(len(counts)), "--operator", "by-string").stdout
    found = re.findall(
        r"^ +[\d,]+  (.*), (\d+) entries, key group (\d+), subtask (\d)$", shown, re.MULTILINE
    )
    assert Counter((int(group), int(entries)) for _, entries, group, _ in found) == Counter(
        (group, entries) for (_, group, _), entries in counts.items()
    )
    plain = {key: (group, subtask) for key, group, subtask in counts if len(key) < 20}
    seen = {ascii(literal_eval(key)): (int(g), int(s)) for key, _, g, s in found if len(key) < 20}
    assert seen.items() >= {key: plain[key] for key in plain if "user" in key}.items()


def test_bytes_that_a_rescale_moves() -> None:
    """From 3 to 2 subtasks of 128 key groups: 43 to 63 go from 1 to 0, 86 to 127 from 2 to 1."""
    sizes = sizes_of_key_groups()
    moved = sum(sizes[group] for group in (*range(43, 64), *range(86, 128)))
    shown = run("--parallelism", "2").stdout
    assert f"weight: {moved:,} of {sizes.total():,} moves" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere",), "nowhere/_metadata: cannot be opened"),
        (("--operator", "by-nobody"), "got 'by-nobody'"),
        (("--parallelism", "0"), "new_parallelism must be from 1 to 128"),
        (("--top", "0"), "top must be from 1 to 2147483647, got 0"),
    ],
)
def test_refusals_are_one_line(arguments: tuple[str, ...], message: str) -> None:
    ended = run(*arguments)
    assert ended.returncode == 1
    [line] = ended.stderr.splitlines()
    assert message in line
