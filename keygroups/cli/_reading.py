"""The options with which commands read savepoints, and the reading."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from keygroups._checks import show
from keygroups.cli._key_text import check_text
from keygroups.cli._parser import Arguments
from keygroups.cli._progress import progress_of
from keygroups.cli._streams import complain, lines_of
from keygroups.errors import InvalidValueError, SavepointError

if TYPE_CHECKING:
    from keygroups.savepoint import Savepoint

_PLACE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:/")  # the start of a path or URL


def add_options(add: Arguments) -> None:
    """Add the options of `read`."""
    add.begin("where its files are, and what its operators are called")
    place = "where files are now whose paths start with OLD; may be repeated"
    add("--moved", action="append", default=[], metavar="OLD=NEW", help=place)
    uids = "the uids of operators, one a line, which Flink before 2.0 did not write; - for input"
    add("--uids", metavar="FILE", help=uids)
    more = "also read files in this folder that a savepoint names; may be repeated"
    add("--allow", action="append", default=[], metavar="PREFIX", help=more)


def add_ends(add: Arguments) -> None:
    """Add the option of `read` that tells how far sources are behind."""
    lines = "the ends of Kafka's partitions, as kafka-get-offsets.sh prints them; - for input"
    add("--ends", metavar="FILE", help=lines)


def read(options: argparse.Namespace, *paths: str, ends: str | None = None) -> list[Savepoint]:
    """Return the savepoints at some paths, read with the options; `ends` is that of --ends."""
    from keygroups.savepoint import read_savepoint

    if ends == options.uids == "-":
        raise InvalidValueError("--ends and --uids must not both be -, the standard input")
    ends_of = None
    if ends is not None:
        from keygroups.cli._load_file import read_ends

        ends_of = read_ends(ends)
    moved = moved_places(options)
    uids = None
    if options.uids is not None:
        uids = [check_text("uid", uid) for uid in lines_of(options.uids) if uid]
    progress = progress_of(options)
    savepoints = [
        read_savepoint(
            path, moved, uids=uids, allow=options.allow, ends=ends_of, progress=progress
        )
        for path in paths
    ]
    if ends_of is not None:
        _check_ends(ends_of, savepoints[0])
    for savepoint in savepoints:
        for uid in savepoint.unknown_uids:
            complain(f"warning: no operator of {savepoint.path} has the uid {show(uid)}")
    _check_moved(moved, savepoints)
    return savepoints


def _check_ends(ends: Mapping[tuple[str, int], int], savepoint: Savepoint) -> None:
    """Raise for ends of which no source reads a partition, which would have no effect."""
    from keygroups.savepoint import KafkaSplit
    from keygroups.savepoint._operator_states import is_source

    partitions = set()
    for operator in savepoint.operators:
        try:
            splits = operator.source_splits().splits if is_source(operator) else ()
        except SavepointError:
            return  # The report says what cannot be read, which may have these partitions.
        partitions |= {s[:2] for s in splits if isinstance(s, KafkaSplit)}
    if partitions.isdisjoint(ends):
        topics = sorted({topic for topic, _ in partitions})
        such_as = f", which are of {', '.join(map(show, topics[:5]))}" if topics else ""
        raise InvalidValueError(
            f"--ends must have partitions that sources of {savepoint.path} read{such_as}, got "
            f"{show(sorted(ends)[:5])}"
        )


def _check_moved(moved: dict[str, str], savepoints: list[Savepoint]) -> None:
    """Raise for an OLD that no path starts with, which would be a typo without effect."""
    from keygroups.savepoint._files.files import check_moved, moved_path
    from keygroups.savepoint._files.found_files import streams_of

    if not moved:
        return
    named = {stream.path for read in savepoints for stream in streams_of(read.metadata)}
    for old, new in moved.items():
        if not any(moved_path(path, check_moved({old: new})) for path in named):
            such_as = f", such as {show(min(named))}" if named else ""
            raise InvalidValueError(
                f"--moved must have an OLD that paths of files start with{such_as}, got "
                f"{show(old)}"
            )


def moved_places(options: argparse.Namespace) -> dict[str, str]:
    """Return the options --moved as a dict from OLD to NEW, starts of paths."""
    moved = dict(map(_old_and_new, options.moved))
    if len(moved) < len(options.moved):
        raise InvalidValueError(f"moved must have each OLD once, got {show(options.moved)}")
    return moved


def _old_and_new(text: str) -> tuple[str, str]:
    """Return OLD and NEW, which may have more = in them, as folders of partitions do."""
    places = [at for at, char in enumerate(text) if char == "="]
    if len(places) > 1:
        places = [at for at in places if _PLACE.match(text, at + 1)]
    if len(places) == 1:
        (at,) = places
        if 0 < at < len(text) - 1:
            return text[:at], text[at + 1 :]
    raise InvalidValueError(
        "moved must be such as OLD=NEW, with NEW from a / or its scheme on if there are more "
        f"=, got {show(text)}"
    )
