"""A writer that is killed leaves a whole savepoint or none, and what it read as it was."""

from __future__ import annotations

import random
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from support.killed_writers import (
    COMMAND,
    EDITOR,
    KEYS,
    MAX_PARALLELISM,
    OLD_MAX_PARALLELISM,
    REWRITER,
    UID,
    WRITER,
    check_whole,
    interrupt,
    kill,
    readable_savepoints,
    run_time,
    start,
)

from keygroups.savepoint import SavepointWriter, ValueStateDescriptor
from keygroups.types import LONG, STRING


def write_nothing(path: Path) -> None:
    """Do without a savepoint to read."""


def write_old(path: Path) -> None:
    """Write what is then rewritten."""
    with SavepointWriter(path) as writer:
        states = [ValueStateDescriptor("count", LONG)]
        written = writer.add_operator(UID, STRING, states, OLD_MAX_PARALLELISM, parallelism=3)
        keys = [f"user-{number}" for number in range(KEYS)]
        for key in sorted(keys, key=written.key_group):
            written.write("count", key, int(key[5:]))


@pytest.mark.long
@pytest.mark.parametrize("moments", [3, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("program", "prepare"),
    [
        pytest.param(WRITER, write_nothing, id="new", marks=pytest.mark.slow),
        pytest.param(REWRITER, write_old, id="anew", marks=pytest.mark.slow),
        pytest.param(EDITOR, write_old, id="edited"),
    ],
)
def test_it_leaves_a_whole_savepoint_or_none(
    program: str, prepare: Callable[[Path], None], moments: int, tmp_path: Path
) -> None:
    old = tmp_path / "old"
    prepare(old)
    before = contents(old)
    seconds = run_time(program, tmp_path / "whole", old)
    check_whole(tmp_path / "whole")
    rng = random.Random(moments)
    killed = 0
    for number in range(moments):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = folder / "savepoint"
        took = kill(start(program, path, old), rng.uniform(0, seconds))
        killed += took is None
        seconds = took or seconds  # the machine may be faster now
        for found in readable_savepoints(folder):
            check_whole(found)
        if path.exists():
            check_whole(path)
    assert killed >= moments / 2
    assert contents(old) == before


@pytest.mark.slow
@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize("signal_name", ["SIGINT", "SIGKILL"])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        *((f"new.{ending}", ("--export",)) for ending in ("parquet", "arrow", "feather", "csv")),
        ("new.html", ("--html",)),
        ("new", ("--set-max-parallelism", str(MAX_PARALLELISM), "--output")),
        ("new", ("--delete-keys", "{}/keys", "--operator", UID, "--output")),
    ],
    ids=["parquet", "arrow", "feather", "csv", "html", "anew", "edited"],
)
def test_a_command_leaves_all_or_nothing(
    name: str, options: tuple[str, ...], signal_name: str, tmp_path: Path
) -> None:
    """Of one that is killed a file, or a folder, of another name may be there."""
    pytest.importorskip("pyarrow")
    old, whole = tmp_path / "old", tmp_path / "whole" / name
    write_old(old)
    before = contents(old)
    whole.parent.mkdir()
    (tmp_path / "keys").write_text("nobody\n")
    arguments = [
        "savepoint",
        str(old),
        *(option.replace("{}", str(tmp_path)) for option in options),
    ]
    seconds = run_time(COMMAND, *arguments, whole)
    assert [*whole.parent.iterdir()] == [whole]
    rng = random.Random(signal_name)
    ended = 0
    for number in range(20):
        path = tmp_path / str(number) / name
        path.parent.mkdir()
        started = start(COMMAND, *arguments, path)
        after = rng.uniform(0, seconds)
        if signal_name == "SIGINT":
            status, complaint = interrupt(started, after)
            # Python ends without its handlers, when all is written. What is raised while it calls
            # back, as after an import, it prints and loses.
            is_lost = status == 0 and complaint.startswith("Exception ignored in")
            assert is_lost or (status, complaint) in ((130, ""), (0, ""), (-signal.SIGINT, ""))
            assert status == 130 or path.exists()
            assert [*path.parent.iterdir()] == [path] * path.exists()
            ended += status == 130
        else:
            ended += kill(started, after) is None
            rest = [beside.name for beside in path.parent.iterdir() if beside != path]
            assert all(re.fullmatch(rf"\.{name}\.[0-9a-f]{{32}}\.writing", item) for item in rest)
            assert len(rest) <= 1
        if path.is_dir():
            check_whole(path)
        elif path.exists():
            assert same(path, whole)
    assert ended >= 7
    assert contents(old) == before


def same(path: Path, other: Path) -> bool:
    """Return whether two files say the same; a page also tells when it was made."""
    if path.suffix == ".html":
        return path.read_bytes().endswith(b"</html>\n")
    return path.read_bytes() == other.read_bytes()


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*")}
