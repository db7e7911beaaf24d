"""The table of a source's splits in reports: where each of them goes on."""

from __future__ import annotations

from collections.abc import Sequence

from keygroups._checks import show
from keygroups._show.tables import Section
from keygroups.errors import printable, short
from keygroups.savepoint._sources.consumers import KinesisSplit
from keygroups.savepoint._sources.file_splits import FileSplit
from keygroups.savepoint._sources.kafka import KafkaSplit, SpecialOffset
from keygroups.savepoint._sources.source_splits import SourceSplits, UnknownSplit

_SHOWN = 100  # splits in a table
_LABEL = 100  # characters of a name


def splits_section(source: SourceSplits) -> Section:
    """Return the table of the splits of a source, of which many may be left out, and words on it.

    A split that no reader has is said to be unassigned, or read to its end.
    """
    rows = [_row(split) for split in source.splits[:_SHOWN]]
    count = len(source.splits)
    texts = [f"{count:,} {'split' if count == 1 else 'splits'}"]
    if count > _SHOWN:
        texts[0] += f", of which {_SHOWN} follow"
    if source.initial_discovery_finished is False:
        texts[0] += "; the initial discovery of partitions is not finished"
    if source.processed_paths:
        texts[0] += f"; {len(source.processed_paths):,} files were seen"
    return Section(texts, ("split", "goes on at", "subtask"), rows, (0, 1), "Splits of the source")


def _row(split: KafkaSplit | KinesisSplit | FileSplit | UnknownSplit) -> Sequence[str]:
    names = [short(printable(name), _LABEL) for name in _names(split)]
    if split.subtask is not None:
        return (*names, str(split.subtask))
    is_read = isinstance(split, KafkaSplit) and split.is_assigned
    return (*names, "none, read to its end" if is_read else "none yet")


def _names(split: KafkaSplit | KinesisSplit | FileSplit | UnknownSplit) -> tuple[str, str]:
    """Return the name of a split, and where it goes on."""
    if isinstance(split, KafkaSplit):
        cluster = "" if split.cluster is None else f"{split.cluster}: "
        stop = "" if split.stopping_offset is None else f" to {_offset(split.stopping_offset)}"
        return f"{cluster}{split.topic}/{split.partition}", f"{_offset(split.offset)}{stop}"
    if isinstance(split, KinesisSplit):
        inside = f", {split.sub_sequence_number} in it" if split.sub_sequence_number >= 0 else ""
        return f"{split.stream}/{split.shard}", f"after {split.sequence_number}{inside}"
    if isinstance(split, FileSplit):
        offset, records = split.position or (-1, 0)
        start = f"byte {split.offset if offset < 0 else offset:,}"
        skipped = f", {records:,} records on" if records else ""
        end = split.offset + split.length
        return split.path, f"{start}{skipped}, of {split.offset:,} to {end:,}"
    return "of another source", f"{show(split.data)}, version {split.version}"


def _offset(offset: int | SpecialOffset | None) -> str:
    if offset is None:
        return "not told"
    return offset.name if isinstance(offset, SpecialOffset) else f"{offset:,}"
