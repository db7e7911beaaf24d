"""The splits of a source in a savepoint: those of its readers and of its coordinator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from types import ModuleType
from typing import NamedTuple

from keygroups._checks import show
from keygroups._serializers.data_input import Cursor
from keygroups._serializers.data_output import i32
from keygroups._serializers.scalars import BYTES
from keygroups.errors import SavepointError
from keygroups.savepoint._sources import dynamic_kafka, file_splits, kafka
from keygroups.savepoint._sources.connector_layouts import LAYOUTS
from keygroups.savepoint._sources.consumers import (
    CONSUMERS,
    KINESIS_STATE,
    KinesisSplit,
    shard_without_header,
)
from keygroups.savepoint._sources.file_splits import FileSplit
from keygroups.savepoint._sources.kafka import KafkaOffsets, KafkaSplit, Offset, Place
from keygroups.savepoint._sources.split_layouts import (
    ConnectorSplit,
    EncodedSplit,
    Fields,
    SplitLayout,
    enumerator_of,
    split_of,
)
from keygroups.savepoint._state.writing.new_states import ListStateDescriptor

READER_STATE = ListStateDescriptor("SourceReaderState", BYTES)
"""The splits of the readers. Flink: SourceOperator.SPLITS_STATE_DESC."""

_NO_VERSION = -1  # in place of a version, for an element of an older consumer
_HYBRID_VERSION = 0  # Flink 1.14 to 2.3, of splits and of the enumerator
_COORDINATOR_VERSION = 1  # Flink 1.14 to 2.3: SourceCoordinatorSerdeUtils.VERSION_1


class UnknownSplit(NamedTuple):
    """A split of any other source: the bytes of its own serializer, and their version.

    The version is -1 of an element of an older consumer that only the job's classes read.
    """

    subtask: int
    version: int
    data: bytes


SourceSplit = KafkaSplit | KinesisSplit | FileSplit | ConnectorSplit | UnknownSplit


@dataclass(frozen=True)
class SourceSplits:
    """The splits of a source, and the state of its enumerator, in the coordinator.

    `splits` are those of the readers by subtask, then those that only the enumerator has.
    `enumerator` is the bytes of the enumerator's own serializer, of the version
    `enumerator_version`; both are None where the savepoint has no coordinator's state.
    `enumerator_fields` are what that has besides, by name, for the connectors in the table of
    `keygroups.savepoint.sources`, or by one's own SplitLayout; None where it is not known.
    `initial_discovery_finished` is told by Kafka's, else None; `processed_paths` are the files
    that a file source has seen, if it goes on to look for new ones. `source_indexes` say of a
    HybridSource to which of its sources, 0 for the first, each of the splits belongs; of all other
    sources they are empty.
    """

    splits: tuple[SourceSplit, ...]
    enumerator: bytes | None
    enumerator_version: int | None
    initial_discovery_finished: bool | None = None
    processed_paths: tuple[str, ...] = ()
    source_indexes: tuple[int, ...] = ()
    enumerator_fields: Fields | None = None


def reader_elements(source: KafkaOffsets) -> list[bytes]:
    """Return the elements of the readers' state.

    Flink: SimpleVersionedSerialization.writeVersionAndSerialize.
    """
    return [_element(kafka.SPLIT_VERSION, split) for split in kafka.split_bytes(source)]


def moved_element(
    element: bytes, offsets: Mapping[Place, Offset], sources: Collection[int] = ()
) -> bytes:
    """Return an element of the readers of Kafka with the new offset, as it is without one.

    `sources` are the numbers of those of a HybridSource that are Kafka's, none for another source.
    """
    split = _framed(element, 0, READER_STATE.name)
    if not sources:
        return _moved(split, offsets) or element
    cursor = Cursor(split.data, READER_STATE.name)
    is_of_kafka = cursor.i32() in sources
    cursor.utf()
    head = split.data[: cursor.pos]
    moved = _moved(UnknownSplit(0, *_versioned(cursor)), offsets) if is_of_kafka else None
    return element if moved is None else _element(split.version, head + moved)


def _moved(split: UnknownSplit, offsets: Mapping[Place, Offset]) -> bytes | None:
    """Return a split of Kafka, behind its version, with the new offset; None without one."""
    cursor = Cursor(split.data, READER_STATE.name)
    layouts = kafka if split.version == kafka.SPLIT_VERSION else dynamic_kafka
    read = layouts.read_split(split.version, cursor, None)
    offset = offsets.get(place_of(read))
    if offset is None:
        return None
    data = kafka.bytes_of(read._replace(offset=offset))
    head = split.data[: len(split.data) - len(data)]  # the cluster, which is there or not
    return _element(split.version, head + data)


def _element(version: int, data: bytes) -> bytes:
    return i32(version) + i32(len(data)) + data


def topic_of(element: bytes) -> str:
    """Return the topic of an element of the readers of Kafka."""
    split = _framed(element, 0, READER_STATE.name)
    return kafka.read_split(split.version, Cursor(split.data, READER_STATE.name), None).topic


def coordinator_without(topics: Collection[str], coordinator: bytes, name: str) -> bytes:
    """Return the state of Kafka's coordinator without some topics."""
    version, data = _enumerator(coordinator, name)
    new = kafka.enumerator_without(topics, version, Cursor(data, name))
    return i32(_COORDINATOR_VERSION) + _element(version, new)


def coordinator_bytes(source: KafkaOffsets) -> bytes:
    """Return the state of the coordinator. Flink: SourceCoordinator.toBytes."""
    version, data = kafka.enumerator_bytes(source)
    return i32(_COORDINATOR_VERSION) + _element(version, data)


def read_source_splits(
    elements: Iterable[tuple[int, object]],
    coordinator: bytes | None,
    name: str,
    layout: SplitLayout | None = None,
) -> SourceSplits:
    """Return the splits that are in the readers' elements, each with its subtask.

    `name` is that of the savepoint and its operator, for errors. Bytes do not say of which class
    they are: a source is Kafka's, of files, of one of LAYOUTS, or a HybridSource of these, if all
    of them are such, and there is at least one split. With a `layout` it is of that. Raises
    SavepointError.
    """
    splits = [_framed(data, subtask, name) for subtask, data in elements]
    enumerator = None if coordinator is None else _enumerator(coordinator, name)
    if layout is not None:
        return _of_layout(layout, splits, enumerator, name)
    source = _known(splits, enumerator, name)
    if source is None:
        with suppress(SavepointError):
            source = _of_hybrid(splits, enumerator, name)
    return source or _of_another(splits, enumerator)


def has_same_content(own: bytes, other: bytes) -> bool:
    """Return whether two states of a coordinator are the same but for the order of hash sets.

    Enumerators write such sets, whose order changes from one savepoint to the next. The states of
    sources that are not known are the same where their bytes are.
    """
    if own == other or Counter(own) != Counter(other):
        return own == other
    with suppress(SavepointError):
        contents = [_contents(*_enumerator(state, "")) for state in (own, other)]
        return bool(contents[0]) and contents[0] == contents[1]
    return False


def _contents(version: int, data: bytes) -> dict[str, object]:
    """Return the contents of an enumerator's state, by each layout that can read it."""
    contents = _own_contents(version, data)
    with suppress(SavepointError):
        number, (own_version, own_data) = _of_hybrid_enumerator((version, data), "")
        if inside := _own_contents(own_version, own_data):
            contents["Hybrid"] = number, own_version, inside
    return contents


def _own_contents(version: int, data: bytes) -> dict[str, object]:
    readers: dict[str, Callable[[], object]] = {
        "Kafka": lambda: _partitions(kafka.read_enumerator(version, Cursor(data, ""))),
        "several": lambda: _partitions(dynamic_kafka.read_enumerator(version, Cursor(data, ""))),
        "files": lambda: _files(file_splits.read_enumerator(version, Cursor(data, ""))),
        **{
            layout.source: partial(enumerator_of, layout, (version, data), "")
            for layout in LAYOUTS
        },
    }
    contents: dict[str, object] = {}
    for source, read in readers.items():
        with suppress(SavepointError):
            contents[source] = version, read()
    return contents


def _partitions(state: kafka.Enumerator) -> object:
    return frozenset(state.splits), state.initial_discovery_finished


def _files(state: file_splits.PendingSplits) -> object:
    """Return the pending splits in their order, which some assigners keep, and the paths."""
    return state.splits, frozenset(state.processed_paths)


def _known(
    splits: Sequence[UnknownSplit], enumerator: EncodedSplit | None, name: str
) -> SourceSplits | None:
    """Return the splits of a source that is known, None of all others."""
    for read in (
        partial(_of_kafka, kafka),
        partial(_of_kafka, dynamic_kafka),
        _of_files,
    ):
        with suppress(SavepointError):
            source = read(splits, enumerator, name)
            if source.splits or source.processed_paths:
                return source
    return _of_connector(splits, enumerator, name)


def read_consumer_splits(
    state: str, elements: Iterable[tuple[int, object]], name: str
) -> SourceSplits:
    """Return the splits in the state of an older consumer, one of CONSUMERS.

    The arguments and what is raised are those of `read_source_splits`; it has no coordinator.
    """
    splits: list[KafkaSplit | KinesisSplit | UnknownSplit] = []
    for subtask, element in elements:
        if isinstance(element, bytes) and state == KINESIS_STATE:
            element = shard_without_header(element)
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
    return UnknownSplit(subtask, *_versioned(cursor))


def _enumerator(data: bytes, name: str) -> tuple[int, bytes]:
    """Return the version and the bytes of the enumerator. Flink: SourceCoordinator.fromBytes."""
    cursor = Cursor(data, f"{name}, its coordinator")
    cursor.expect("version of a coordinator", cursor.i32(), _COORDINATOR_VERSION)
    return _versioned(cursor)


def _of_another(splits: Sequence[UnknownSplit], enumerator: EncodedSplit | None) -> SourceSplits:
    version, data = enumerator or (None, None)
    return SourceSplits(tuple(splits), data, version)


def _of_kafka(
    layouts: ModuleType,
    splits: Sequence[UnknownSplit],
    enumerator: EncodedSplit | None,
    name: str,
) -> SourceSplits:
    known = kafka.Enumerator((), None)
    if enumerator is not None:
        known = layouts.read_enumerator(enumerator[0], Cursor(enumerator[1], name))
    assigned = {place_of(split) for split in known.splits if split.is_assigned}
    found = [layouts.read_split(version, Cursor(data, name), sub) for sub, version, data in splits]
    found = [split._replace(is_assigned=place_of(split) in assigned) for split in found]
    read = {place_of(split) for split in found}
    # What is assigned and with no reader is read to its end: its offset, which version 3 of the
    # state has, is where that began. Kafka's source: KafkaSourceEnumerator.assignedSplits.
    found += [
        split._replace(offset=None) if split.is_assigned else split
        for split in known.splits
        if place_of(split) not in read
    ]
    return replace(
        _of_another((), enumerator),
        splits=tuple(found),
        initial_discovery_finished=known.initial_discovery_finished,
    )


def place_of(split: KafkaSplit) -> Place:
    """Return a partition as `set_offsets` names it: topic and number, behind its cluster."""
    place = split.topic, split.partition
    return place if split.cluster is None else (split.cluster, *place)


def _of_files(
    splits: Sequence[UnknownSplit], enumerator: EncodedSplit | None, name: str
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


def _of_connector(
    splits: Sequence[UnknownSplit], enumerator: EncodedSplit | None, name: str
) -> SourceSplits | None:
    """Return the splits of a source of LAYOUTS, None if they are of none, or of several.

    Of those that read the splits, the one counts that reads the enumerator. What two read alike,
    as MySQL CDC and CDC do some chunks of older versions, is of one or the other.
    """
    found = []
    for layout in LAYOUTS:
        with suppress(SavepointError):
            found.append((layout.source, _in_part(layout, splits, enumerator, name)))
    found = [pair for pair in found if pair[1].enumerator_fields is not None] or found
    either = " or ".join(source for source, _ in found)
    sources = [_named(source, either) for _, source in found]
    return sources[0] if sources and sources.count(sources[0]) == len(sources) else None


def _named(source: SourceSplits, name: str) -> SourceSplits:
    splits = (split for split in source.splits if isinstance(split, ConnectorSplit))
    return replace(source, splits=tuple(split._replace(source=name) for split in splits))


def _in_part(
    layout: SplitLayout,
    splits: Sequence[UnknownSplit],
    enumerator: EncodedSplit | None,
    name: str,
) -> SourceSplits:
    """Return the source of a layout, whose enumerator may be of a version that is not known."""
    try:
        source = _of_layout(layout, splits, enumerator, name)
    except SavepointError:
        if not splits:
            raise
        of_readers = _of_layout(layout, splits, None, name)
        return replace(_of_another((), enumerator), splits=of_readers.splits)
    if not source.splits and not any((source.enumerator_fields or {}).values()):
        raise SavepointError(f"{name}: a source of which nothing is known")
    return source


def _of_layout(
    layout: SplitLayout,
    splits: Sequence[UnknownSplit],
    enumerator: EncodedSplit | None,
    name: str,
) -> SourceSplits:
    own = tuple(split_of(layout, version, data, sub, name) for sub, version, data in splits)
    fields, others = enumerator_of(layout, enumerator, name)
    source = _of_another((), enumerator)
    return replace(source, splits=own + others, enumerator_fields=fields)


def _of_hybrid(
    splits: Sequence[UnknownSplit], enumerator: EncodedSplit | None, name: str
) -> SourceSplits:
    """Return the splits within those of a HybridSource, of which at least one has to be known.

    Flink: HybridSourceSplitSerializer, HybridSourceEnumeratorStateSerializer.
    """
    readers: dict[int, list[UnknownSplit]] = {}
    for subtask, version, data in splits:
        cursor = Cursor(data, name)
        cursor.expect("version of a split of a HybridSource", version, _HYBRID_VERSION)
        number = cursor.i32()
        cursor.utf()  # the id of the split, which its source has too
        readers.setdefault(number, []).append(UnknownSplit(subtask, *_versioned(cursor)))
    enumerators: dict[int, EncodedSplit] = {}
    if enumerator is not None:
        number, inside = _of_hybrid_enumerator(enumerator, name)
        enumerators[number] = inside
    sources = {
        number: _known(readers.get(number, ()), enumerators.get(number), name)
        for number in sorted({*readers, *enumerators})
    }
    if not any(sources.values()):
        raise SavepointError(f"{name}: no split of a source that is known")
    splits_of = {
        number: source.splits if source is not None else readers.get(number, ())
        for number, source in sources.items()
    }
    current = sources[max(sources)] or SourceSplits((), None, None)
    return replace(
        _of_another((), enumerator),
        splits=tuple(split for found in splits_of.values() for split in found),
        source_indexes=tuple(number for number, found in splits_of.items() for _ in found),
        initial_discovery_finished=current.initial_discovery_finished,
        processed_paths=current.processed_paths,
        enumerator_fields=current.enumerator_fields,
    )


def _of_hybrid_enumerator(enumerator: EncodedSplit, name: str) -> tuple[int, EncodedSplit]:
    """Return the number of the current source of a HybridSource, and its enumerator's state."""
    version, data = enumerator
    cursor = Cursor(data, name)
    cursor.expect("version of a HybridSource", version, _HYBRID_VERSION)
    return cursor.i32(), _versioned(cursor)


def _versioned(cursor: Cursor) -> tuple[int, bytes]:
    """Read the rest of a cursor: a version, and a frame of as many bytes as are left."""
    version = cursor.i32()
    framed = cursor.frame()
    cursor.expect_end("a frame")
    return version, framed.take(framed.left)
