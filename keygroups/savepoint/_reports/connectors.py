"""The tables of sources and sinks in reports: where splits go on, what is to be committed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Sized

from keygroups._checks import show
from keygroups._show.tables import Section
from keygroups.errors import printable, short
from keygroups.savepoint._sinks.committables import (
    Committable,
    KafkaProducerState,
    SinkState,
    SinkWriter,
    UnknownWriterState,
    committed_text,
    file_text,
)
from keygroups.savepoint._sinks.part_files import BucketState
from keygroups.savepoint._sources.consumers import KinesisSplit
from keygroups.savepoint._sources.file_splits import FileSplit
from keygroups.savepoint._sources.kafka import KafkaSplit, SpecialOffset
from keygroups.savepoint._sources.source_splits import SourceSplit, SourceSplits
from keygroups.savepoint._sources.split_layouts import ConnectorSplit

_SHOWN = 100  # rows of a table
_LABEL = 100  # characters of a name
_TRANSACTIONS = ("transactional ids begin with", "precommitted")


def splits_section(source: SourceSplits) -> Section:
    """Return the table of the splits of a source, of which many may be left out, and words on it.

    A split that no reader has is said to be unassigned, or read to its end.
    """
    rows = [_row(split) for split in source.splits[:_SHOWN]]
    texts = [_counted(len(source.splits), "split", "splits")]
    if source.initial_discovery_finished is False:
        texts[0] += "; the initial discovery of partitions is not finished"
    if source.processed_paths:
        texts[0] += f"; {len(source.processed_paths):,} files were seen"
    header = ["split", "goes on at", "subtask"]
    lags = [getattr(split, "lag", None) for split in source.splits]
    known = [lag for lag in lags if lag is not None]
    if known:
        of_some = "" if len(known) == len(lags) else f" in {len(known):,} of them"
        unit = "records" if isinstance(source.splits[0], KafkaSplit) else "entries"
        texts[0] += f"; {sum(known):,} {unit} behind{of_some}"
        header.append(f"{unit} behind")
        rows = [(*row, "" if lag is None else f"{lag:,}") for row, lag in zip(rows, lags)]
    if source.enumerator_fields:
        fields = [f"{name} {_field(held)}" for name, held in source.enumerator_fields.items()]
        texts[0] += f"; its enumerator: {', '.join(fields)}"
    return Section(texts, header, rows, (0, 1), "Splits of the source")


def _field(value: object) -> str:
    """Return a field of an enumerator in a few words; of many things how many they are."""
    if isinstance(value, Sized) and not isinstance(value, str | bytes):
        return f"{len(value):,}"
    return "none" if value is None else short(printable(str(value)), _LABEL)


def sink_sections(sink: SinkState) -> Iterator[Section]:
    """Yield the tables of what a sink is to commit, and of what its writers know, if there is any.

    Of each at most 100 rows are there. Of a sink without either a sentence says so.
    """
    if not sink.committables and not sink.writers:
        yield Section(["nothing is to be committed"], caption="What a restore commits")
    if sink.committables:
        yield _committables(sink.committables, "a restore commits them", "What a restore commits")
    if sink.writers:
        writers = [_writer(writer) for writer in sink.writers[:_SHOWN]]
        texts = [_counted(len(sink.writers), "writer", "writers")]
        is_of_files = any(isinstance(writer, BucketState) for writer in sink.writers)
        names = ("bucket", "files") if is_of_files else _TRANSACTIONS
        header = (*names, "subtask")
        yield Section(texts, header, writers, (0, 1), "Writers of the sink")


def removed_section(committables: Sequence[Committable] | None) -> Section:
    """Return the table of what a removed sink had to commit, None for what cannot be read."""
    if committables is None:
        return Section(["what it had to commit cannot be read"])
    words = "the sink that had to commit what was prepared is removed"
    return _committables(committables, words, "What would have been committed")


def _committables(committables: Sequence[Committable], words: str, caption: str) -> Section:
    rows = [_committable(what) for what in committables[:_SHOWN]]
    count = _counted(len(committables), "committable", "committables")
    header = ("committable", "checkpoint", "subtask", "state")
    return Section([f"{count}; {words}"], header, rows, (0, 3), caption)


def _committable(what: Committable) -> Sequence[str]:
    checkpoint = "" if what.checkpoint_id is None else f"{what.checkpoint_id:,}"
    name = short(printable(committed_text(what.committable)), _LABEL)
    return name, checkpoint, str(what.subtask), what.state


def _counted(count: int, one: str, many: str) -> str:
    """Return the number of things, and how many of them follow if that is not all."""
    return f"{count:,} {one if count == 1 else many}" + (
        f", of which {_SHOWN} follow" if count > _SHOWN else ""
    )


def _writer(writer: SinkWriter) -> tuple[str, str, str]:
    if isinstance(writer, KafkaProducerState):
        pending = "" if writer.pending is None else f"open: {committed_text(writer.pending)}"
        ids = ", ".join(writer.transactional_ids)
        return (
            f"of FlinkKafkaProducer: {short(printable(ids), _LABEL)}",
            short(printable(pending), _LABEL),
            str(writer.subtask),
        )
    if isinstance(writer, BucketState):
        files = [f"in progress: {file_text(writer.in_progress)}"] if writer.in_progress else []
        files += [file_text(file) for _, file in writer.pending]
        path, text = (short(printable(t), _LABEL) for t in (writer.path, "; ".join(files)))
        return path, text, str(writer.subtask)
    if isinstance(writer, UnknownWriterState):
        return f"not known: {show(writer.data)}, version {writer.version}", "", str(writer.subtask)
    ids = ", ".join(name for name, _ in writer.precommitted)
    prefix = short(printable(writer.transactional_id_prefix), _LABEL)
    return prefix, short(printable(ids), _LABEL), str(writer.subtask)


def _row(split: SourceSplit) -> Sequence[str]:
    names = [short(printable(name), _LABEL) for name in _names(split)]
    if split.subtask is not None:
        return (*names, str(split.subtask))
    is_read = isinstance(split, KafkaSplit) and split.is_assigned
    return (*names, "none, read to its end" if is_read else "none yet")


def _names(split: SourceSplit) -> tuple[str, str]:
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
    if isinstance(split, ConnectorSplit):
        return f"{split.source}: {split.name}", split.position or "its start"
    return "of another source", f"{show(split.data)}, version {split.version}"


def _offset(offset: int | SpecialOffset | None) -> str:
    if offset is None:
        return "not told"
    return offset.name if isinstance(offset, SpecialOffset) else f"{offset:,}"
