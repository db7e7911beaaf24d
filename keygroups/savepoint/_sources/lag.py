"""The lag of the splits of a source behind the ends that a caller passes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from keygroups._checks import INT_MAX, LONG_MAX, check_int, show
from keygroups.errors import InvalidTypeError, InvalidValueError
from keygroups.savepoint._sources.connector_layouts import KINESIS, PULSAR
from keygroups.savepoint._sources.consumers import KinesisSplit
from keygroups.savepoint._sources.kafka import KafkaSplit, Partition, check_partition
from keygroups.savepoint._sources.source_splits import SourceSplit, SourceSplits
from keygroups.savepoint._sources.split_layouts import ConnectorSplit, SplitLayout

Message = tuple[int, int]
"""A message of Pulsar: its ledger, and its entry there."""
Ends = Mapping[Partition, int] | Mapping[Partition, Message]


def checked_ends(ends: object) -> dict[Partition, int]:
    """Return the ends of partitions of Kafka by topic and number.

    Raises InvalidTypeError and InvalidValueError.
    """
    checked = {}
    for key, end in _mapping(ends).items():
        partition = check_partition("partition in ends", key)
        checked[partition] = check_int(f"end of {show(partition)}", end, 0, LONG_MAX)
    return checked


def _mapping(ends: object) -> Mapping[Any, Any]:
    if not isinstance(ends, Mapping):
        raise InvalidTypeError(
            f"ends must be a mapping of partitions such as ('clicks', 0), got {show(ends)}"
        )
    return ends


def is_of_one_cluster(split: SourceSplit) -> bool:
    """Return whether a split is Kafka's, and not of a source that reads several clusters."""
    return isinstance(split, KafkaSplit) and split.cluster is None


def source_with_lag(source: SourceSplits, ends: Ends | None) -> SourceSplits:
    """Return a source whose splits have their lag behind some ends, as it is without these.

    Raises InvalidValueError or InvalidTypeError for `ends`.
    """
    if ends is None:
        return source
    for split in source.splits:
        if isinstance(split, KinesisSplit) or _is_of(split, KINESIS):
            raise InvalidValueError(
                f"ends must be None for a source of Kinesis, got {show(ends)}: sequence numbers "
                "grow, but do not count the records between them, and the state has no times"
            )
    if not source.splits:  # Bytes do not say of which class a source without splits is.
        _mapping(ends)
        return source
    if all(_is_of(split, PULSAR) and _has_message(split) for split in source.splits):
        return _with_lag_of_pulsar(source, _mapping(ends))
    return _with_lag_of_kafka(source, checked_ends(ends))


def _is_of(split: SourceSplit, layout: SplitLayout) -> bool:
    return isinstance(split, ConnectorSplit) and split.source == layout.source


def _has_message(split: SourceSplit) -> bool:
    """Return whether a split is as Pulsar's own are: a layout of one's own may have its name."""
    assert isinstance(split, ConnectorSplit)
    match split.fields:
        case {"topic": str(), "partition": int(), "last_message": (int(), int(), *_) | None}:
            return True
    return False


def _with_lag_of_kafka(source: SourceSplits, ends: Mapping[Partition, int]) -> SourceSplits:
    splits = []
    clusters: dict[Partition, str | None] = {}
    for split in source.splits:
        if not isinstance(split, KafkaSplit):
            raise InvalidValueError(
                f"ends must be None for a source that is neither Kafka's nor Pulsar's, got "
                f"{show(split)}"
            )
        partition = (split.topic, split.partition)
        end = ends.get(partition)
        if end is not None and clusters.setdefault(partition, split.cluster) != split.cluster:
            raise InvalidValueError(
                f"ends must be of partitions that one cluster has, got {show(partition)}, which "
                f"{show(clusters[partition])} and {show(split.cluster)} have"
            )
        lag = end - split.offset if end is not None and isinstance(split.offset, int) else None
        splits.append(split._replace(lag=lag))
    return replace(source, splits=tuple(splits))


def _with_lag_of_pulsar(source: SourceSplits, ends: Mapping[Any, Any]) -> SourceSplits:
    checked = {}
    for key, end in ends.items():
        match key, end:
            case (str() as topic, number), (ledger, entry):
                partition = (
                    topic,
                    check_int(f"number of {show(topic)} in ends", number, -1, INT_MAX),
                )
                what = f"end of {show(partition)}"
                checked[partition] = (
                    check_int(f"ledger in the {what}", ledger, 0, LONG_MAX),
                    check_int(f"entry in the {what}", entry, -1, LONG_MAX),
                )
            case _:
                raise InvalidTypeError(
                    "ends of a source of Pulsar must map a topic and a number to the ledger and "
                    f"the entry of the last message, got {show((key, end))}"
                )
    splits = []
    for split in source.splits:
        assert isinstance(split, ConnectorSplit)
        partition = split.fields["topic"], split.fields["partition"]
        splits.append(
            split._replace(lag=_entries_behind(split, partition, checked.get(partition)))
        )
    return replace(source, splits=tuple(splits))


def _entries_behind(
    split: ConnectorSplit, partition: Partition, end: Message | None
) -> int | None:
    message = split.fields["last_message"]
    if end is None or message is None:
        return None
    if message[0] != end[0]:
        raise InvalidValueError(
            f"end of {show(partition)} must be in the ledger {message[0]}, where the source "
            f"stands, got ledger {end[0]}: how many entries are in the ledgers between them the "
            "state does not tell; leave the partition out"
        )
    return int(end[1] - message[1])
