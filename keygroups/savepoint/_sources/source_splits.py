"""The splits of a source in a savepoint: those of its readers and of its coordinator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from keygroups._checks import LONG_MAX, check_int, show
from keygroups._serializers.data_input import Cursor
from keygroups._serializers.data_output import i32
from keygroups._serializers.scalars import BYTES
from keygroups.errors import InvalidTypeError, InvalidValueError, SavepointError
from keygroups.savepoint._sources import file_splits, kafka
from keygroups.savepoint._sources.consumers import CONSUMERS, KinesisSplit
from keygroups.savepoint._sources.file_splits import FileSplit
from keygroups.savepoint._sources.kafka import KafkaOffsets, KafkaSplit, Partition
from keygroups.savepoint._state.writing.new_states import ListStateDescriptor

READER_STATE = ListStateDescriptor("SourceReaderState", BYTES)
"""The splits of the readers. Flink: SourceOperator.SPLITS_STATE_DESC."""

_NO_VERSION = -1  # in place of a version, for an element of an older consumer
_COORDINATOR_VERSION = 1  # Flink 1.14 to 2.3: SourceCoordinatorSerdeUtils.VERSION_1


class UnknownSplit(NamedTuple):
    """A split of any other source: the bytes of its own serializer, and their version.

    The version is -1 of an element of an older consumer that only the job's classes read.
    """

    subtask: int
    version: int
    data: bytes


@dataclass(frozen=True)
class SourceSplits:
    """The splits of a source, and the state of its enumerator, in the coordinator.

    `splits` are those of the readers by subtask, then those that only the enumerator has.
    `enumerator` is the bytes of the enumerator's own serializer, of the version
    `enumerator_version`; both are None where the savepoint has no coordinator's state.
    `initial_discovery_finished` is told by Kafka's, else None; `processed_paths` are the files
    that a file source has seen, if it goes on to look for new ones.
    """

    splits: tuple[KafkaSplit | KinesisSplit | FileSplit | UnknownSplit, ...]
    enumerator: bytes | None
    enumerator_version: int | None
    initial_discovery_finished: bool | None = None
    processed_paths: tuple[str, ...] = ()


def reader_elements(source: KafkaOffsets) -> list[bytes]:
    """Return the elements of the readers' state.

    Flink: SimpleVersionedSerialization.writeVersionAndSerialize.
    """
    return [
        i32(kafka.SPLIT_VERSION) + i32(len(split)) + split for split in kafka.split_bytes(source)
    ]


def coordinator_bytes(source: KafkaOffsets) -> bytes:
    """Return the state of the coordinator. Flink: SourceCoordinator.toBytes."""
    version, data = kafka.enumerator_bytes(source)
    return i32(_COORDINATOR_VERSION) + i32(version) + i32(len(data)) + data


def read_source_splits(
    elements: Iterable[tuple[int, object]],
    coordinator: bytes | None,
    name: str,
    ends: Mapping[Partition, int] | None,
) -> SourceSplits:
    """Return the splits that are in the readers' elements, each with its subtask.

    `name` is that of the savepoint and its operator, for errors. Bytes do not say of which class
    they are: a source is Kafka's, or of files, if all of them are such, and there is at least one
    split. Raises SavepointError, and InvalidValueError or InvalidTypeError for `ends`.
    """
    splits = [_framed(data, subtask, name) for subtask, data in elements]
    enumerator = None if coordinator is None else _enumerator(coordinator, name)
    for read in (_of_kafka, _of_files):
        try:
            source = read(splits, enumerator, name)
        except SavepointError:
            continue
        if source.splits or source.processed_paths:
            break
    else:
        source = _of_another(splits, enumerator)
    return source_with_lag(source, ends)


def read_consumer_splits(
    state: str, elements: Iterable[tuple[int, object]], name: str
) -> SourceSplits:
    """Return the splits in the state of an older consumer, one of CONSUMERS.

    The arguments and what is raised are those of `read_source_splits`; it has no coordinator.
    """
    splits: list[KafkaSplit | KinesisSplit | UnknownSplit] = []
    for subtask, element in elements:
        if isinstance(element, bytes):
            splits.append(UnknownSplit(subtask, _NO_VERSION, element))
            continue
        try:
            splits.append(CONSUMERS[state](element, subtask))
        except SavepointError as error:
            raise SavepointError(f"{name}: {error}") from None
    return SourceSplits(tuple(splits), None, None)


def _framed(data: object, subtask: int, name: str) -> UnknownSplit:
    if not isinstance(data, bytes):
        raise SavepointError(f"{name}: a split of subtask {subtask} is no bytes, but {show(data)}")
    cursor = Cursor(data, f"{name}, a split of subtask {subtask}")
    version = cursor.i32()
    framed = cursor.frame()
    cursor.expect_end("a split")
    return UnknownSplit(subtask, version, framed.take(framed.left))


def _enumerator(data: bytes, name: str) -> tuple[int, bytes]:
    """Return the version and the bytes of the enumerator. Flink: SourceCoordinator.fromBytes."""
    cursor = Cursor(data, f"{name}, its coordinator")
    cursor.expect("version of a coordinator", cursor.i32(), _COORDINATOR_VERSION)
    version = cursor.i32()
    framed = cursor.frame()
    cursor.expect_end("the enumerator")
    return version, framed.take(framed.left)


def _of_another(
    splits: Sequence[UnknownSplit], enumerator: tuple[int, bytes] | None
) -> SourceSplits:
    version, data = enumerator or (None, None)
    return SourceSplits(tuple(splits), data, version)


def _of_kafka(
    splits: Sequence[UnknownSplit], enumerator: tuple[int, bytes] | None, name: str
) -> SourceSplits:
    known = kafka.Enumerator((), None)
    if enumerator is not None:
        known = kafka.read_enumerator(enumerator[0], Cursor(enumerator[1], name))
    assigned = {split[:2] for split in known.splits if split.is_assigned}
    found = [kafka.read_split(version, Cursor(data, name), sub) for sub, version, data in splits]
    found = [split._replace(is_assigned=split[:2] in assigned) for split in found]
    read = {split[:2] for split in found}
    found += [split for split in known.splits if split[:2] not in read]
    return replace(
        _of_another((), enumerator),
        splits=tuple(found),
        initial_discovery_finished=known.initial_discovery_finished,
    )


def _of_files(
    splits: Sequence[UnknownSplit], enumerator: tuple[int, bytes] | None, name: str
) -> SourceSplits:
    pending = file_splits.PendingSplits((), ())
    if enumerator is not None:
        pending = file_splits.read_enumerator(enumerator[0], Cursor(enumerator[1], name))
    found = [
        file_splits.read_split(version, Cursor(data, name), sub) for sub, version, data in splits
    ]
    return replace(
        _of_another((), enumerator),
        splits=(*found, *pending.splits),
        processed_paths=pending.processed_paths,
    )


def _checked_ends(ends: object) -> dict[Partition, int]:
    if not isinstance(ends, Mapping):
        raise InvalidTypeError(
            f"ends must be a mapping of partitions such as ('clicks', 0), got {show(ends)}"
        )
    checked = {}
    for key, end in ends.items():
        partition = kafka.check_partition("partition in ends", key)
        checked[partition] = check_int(f"end of {show(partition)}", end, 0, LONG_MAX)
    return checked


def source_with_lag(source: SourceSplits, ends: Mapping[Partition, int] | None) -> SourceSplits:
    """Return a source whose splits have their lag behind some ends, as it is without these.

    Raises InvalidValueError or InvalidTypeError for `ends`.
    """
    if ends is None:
        return source
    ends, splits = _checked_ends(ends), []
    for split in source.splits:
        if not isinstance(split, KafkaSplit):
            raise InvalidValueError(
                f"ends must be None for a source that is not Kafka's, got {show(split)}"
            )
        end = ends.get((split.topic, split.partition))
        lag = None
        if end is not None and isinstance(split.offset, int):
            lag = end - split.offset
        splits.append(split._replace(lag=lag))
    return replace(source, splits=tuple(splits))
