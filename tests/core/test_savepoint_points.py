"""Real savepoints and checkpoints, 88 of them: what is read equals what Flink's classes read.

Every value of the expected side is in `tests/vectors/savepoints.tar.xz`, written by Java code that
called Flink 2.3.0's own classes. `pytest -rP` shows the counts, by version of Flink and by kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.bytes.real_savepoints import (
    POINTS,
    Point,
    plain,
    seen_entry,
    true_entries,
    true_value,
)
from support.inside.savepoints import (
    ChangelogHandle,
    KeyedHandle,
    KeyedHeader,
    Metadata,
    OperatorStateHandle,
    RocksDBHandle,
    StreamHandle,
    format_of,
    read_metadata,
    read_operator_state,
    write_keyed_header,
)
from support.inside.serializers import ReadingContext

from keygroups import assign_to_key_group
from keygroups.savepoint import Operator, StateDescriptor, StateEntry

cramjam = pytest.importorskip("cramjam", reason="some points are compressed: the extra savepoint")

Record = Callable[[str, object], None]


def report(record_property: Record, counts: dict[str, Counter[str]]) -> None:
    """Show how much was compared, a line for what it is counted by."""
    for by, found in counts.items():
        shown = ", ".join(f"{name} {count:,}" for name, count in sorted(found.items()))
        record_property(by, shown)
        print(f"{by}: {shown}; in all {sum(found.values()):,}")


def metadata_of(one: Point) -> Metadata:
    return read_metadata((one.path / "_metadata").read_bytes(), one.name)


def test_these_are_all() -> None:
    assert Counter(one.flink for one in POINTS) == {
        "1.14.6": 3,
        "1.17.2": 8,
        "1.20.5": 38,
        "2.3.0": 39,
    }
    assert Counter(one.kind for one in POINTS) == {"canonical": 48, "native": 16, "checkpoint": 24}


# _metadata


def true_stream(stream: dict[str, Any]) -> tuple[object, ...]:
    """Return the place of a stream in _metadata; of a file outside the truth has the name."""
    kind, size, file = stream["type"], stream["size"], stream.get("file", "")
    if kind == "empty_segment":  # Flink gives it no name, and we no bytes
        kind, file = "inline", ""
    return kind, size, file, stream.get("start", 0)


def seen_stream(stream: StreamHandle) -> tuple[object, ...]:
    if stream.data is not None:
        assert len(stream.data) == stream.size
        return "inline", stream.size, "", 0
    if stream.is_relative:
        return "relative", stream.size, stream.path, 0
    return "absolute", stream.size, stream.path.rpartition("/")[2], stream.start


def absolute(stream: tuple[object, ...]) -> tuple[object, ...]:
    """A segment of a file is a file that is read from somewhere on."""
    kind, *rest = stream
    return ("absolute" if kind in ("file", "segment") else kind, *rest)


def true_files(files: list[dict[str, Any]]) -> list[tuple[object, ...]]:
    return [(file["local"], *absolute(true_stream(file["stream"]))) for file in files]


def seen_files(files: tuple[tuple[str, StreamHandle], ...]) -> list[tuple[object, ...]]:
    return [(local, *seen_stream(stream)) for local, stream in files]


def true_handle(line: dict[str, Any]) -> dict[str, object]:
    found: dict[str, object] = {
        "record": line["record"],
        "operator": line["operator"],
        "subtask": line["subtask"],
    }
    if line["record"] in ("managed_operator", "raw_operator"):
        states = [(one["state"], one["mode"], tuple(one["offsets"])) for one in line["states"]]
        return found | {"states": states, "stream": absolute(true_stream(line["stream"]))}
    found |= {"class": line["class"], "start": line["start"], "end": line["end"]}
    if "size" in line:
        return found | {"size": line["size"]}
    if "meta" in line:
        return found | {
            "meta": absolute(true_stream(line["meta"])),
            "shared": true_files(line["shared"]),
            "private": true_files(line["private"]),
        }
    return found | {
        "offsets": tuple(line["offsets"]),
        "stream": absolute(true_stream(line["stream"])),
    }


def seen_keyed_handle(handle: KeyedHandle) -> dict[str, object]:
    key_groups = handle.key_groups
    found: dict[str, object] = {"start": key_groups[0], "end": key_groups[-1]}
    if isinstance(handle, ChangelogHandle):
        size = sum(changes.size for changes in handle.changes)
        return found | {"class": "ChangelogStateBackendHandleImpl", "size": size}
    if isinstance(handle, RocksDBHandle):
        return found | {
            "class": "IncrementalRemoteKeyedStateHandle",
            "meta": seen_stream(handle.meta),
            "shared": seen_files(handle.shared),
            "private": seen_files(handle.private),
        }
    names = {True: "KeyGroupsSavepointStateHandle", False: "KeyGroupsStateHandle"}
    return found | {
        "class": names[handle.is_canonical],
        "offsets": handle.offsets,
        "stream": seen_stream(handle.stream),
    }


def seen_handles(metadata: Metadata) -> Iterator[dict[str, object]]:
    for operator in metadata.operators:
        for subtask in operator.subtasks:
            handles: dict[str, KeyedHandle | OperatorStateHandle | None] = {
                "managed_operator": subtask.managed_operator,
                "raw_operator": subtask.raw_operator,
                "managed_keyed": subtask.managed_keyed,
                "raw_keyed": subtask.raw_keyed,
            }
            for record, handle in handles.items():
                if handle is None:
                    continue
                seen = {
                    "record": record,
                    "operator": operator.operator_id,
                    "subtask": subtask.index,
                }
                if isinstance(handle, OperatorStateHandle):
                    stream = seen_stream(handle.stream)
                    yield seen | {"states": list(handle.states), "stream": stream}
                else:
                    yield seen | seen_keyed_handle(handle)


def kind_of(properties: str) -> str | None:
    """The kind that the text of Flink's CheckpointProperties says; 1.14 wrote none."""
    if "name='Checkpoint'" in properties:
        return "checkpoint"
    for form in ("CANONICAL", "NATIVE"):
        if f"formatType={form}" in properties:
            return f"{form.lower()} savepoint"
    assert properties == "null"
    return None


def test_metadata(record_property: Record) -> None:
    """All but the state of coordinators and channels in flight, which are read over."""
    versions: Counter[str] = Counter()
    records: Counter[str] = Counter()
    for one in POINTS:
        metadata, (first, *rest) = metadata_of(one), one.truth("metadata")
        assert first["record"] == "metadata"
        assert (metadata.version, metadata.checkpoint_id, len(metadata.operators)) == (
            first["version"],
            first["checkpoint_id"],
            first["operators"],
        ), one
        assert metadata.kind == kind_of(first["properties"]), one
        seen_operators = [
            (
                operator.operator_id,
                operator.uid or None,
                operator.name or None,
                operator.parallelism,
                operator.max_parallelism,
                len(operator.subtasks),
                operator.is_fully_finished,
            )
            for operator in metadata.operators
        ]
        true_operators = [
            (
                line["operator"],
                line["uid"],
                line["op_name"],
                line["parallelism"],
                line["max_parallelism"],
                line["subtask_states"],
                line["fully_finished"],
            )
            for line in rest
            if line["record"] == "operator"
        ]
        assert sorted(seen_operators) == sorted(true_operators), one
        true_handles = [
            true_handle(line) for line in rest if line["record"] not in ("operator", "channels")
        ]

        def order(handle: dict[str, object]) -> tuple[str, ...]:
            return str(handle["operator"]), str(handle["subtask"]), str(handle["record"])

        assert sorted(seen_handles(metadata), key=order) == sorted(true_handles, key=order), one
        versions[one.flink] += 1 + len(rest)
        records.update(line["record"] for line in rest)
    report(record_property, {"metadata, by Flink": versions, "metadata, by record": records})
    assert records == {
        "operator": 905,
        "managed_keyed": 774,
        "raw_keyed": 6,
        "managed_operator": 204,
        "channels": 8,
    }


def test_uids() -> None:
    """The uids that 2.3.0 stored find the same operators in what earlier versions wrote."""
    uids = {
        line["operator"]: line["uid"]
        for one in POINTS
        for line in one.truth("metadata")
        if line["record"] == "operator" and line["uid"]
    }
    assert len(uids) > 20
    found: Counter[str] = Counter()
    for one in POINTS:
        savepoint = one.read()
        for operator in savepoint.operators:
            if operator.operator_id in uids:
                uid = uids[operator.operator_id]
                assert savepoint.operator(uid) is operator
                assert operator.uid == uid
                found[one.flink] += 1
    assert found.keys() == {"1.14.6", "1.17.2", "1.20.5", "2.3.0"}
    assert all(count > 20 for count in found.values())


# Headers

_BASE = "org.apache.flink.api.common.typeutils.base."
_JAVA = "org.apache.flink.api.java.typeutils.runtime."
_STATE = "org.apache.flink.runtime.state."
_WINDOWS = "org.apache.flink.streaming.api.windowing.windows."
SERIALIZERS = {
    **{f"{_BASE}{name}Serializer": name.upper() for name in ("Boolean", "Double", "Int", "Long")},
    f"{_BASE}StringSerializer": "STRING",
    f"{_BASE}ListSerializer": "LIST",
    f"{_BASE}MapSerializer": "MAP",
    f"{_JAVA}TupleSerializer": "TUPLE",
    f"{_JAVA}RowSerializer": "ROW",
    f"{_JAVA}PojoSerializer": "POJO",
    f"{_JAVA}kryo.KryoSerializer": "KRYO",
    f"{_STATE}VoidNamespaceSerializer": "VOID_NAMESPACE",
    f"{_STATE}ttl.TtlStateFactory$TtlSerializer": "TTL",
    f"{_WINDOWS}TimeWindow$Serializer": "TIME_WINDOW",
    f"{_WINDOWS}GlobalWindow$Serializer": "GLOBAL_WINDOW",
    "org.apache.flink.table.runtime.typeutils.RowDataSerializer": "SQL_ROW",
    "org.apache.flink.streaming.api.operators.TimerSerializer": "TIMER",
}
"""Flink's classes of all that the points have, and our names."""


def seen_header(header: KeyedHeader) -> dict[str, object]:
    return {
        "header_end": len(write_keyed_header(header.key_bytes, header.state_bytes)),
        "compressed": header.is_compressed,
        "key": header.key_serializer.name,
        "states": list(map(seen_state, header.states)),
    }


def seen_state(state: StateDescriptor) -> tuple[object, ...]:
    if state.value_serializer is None:
        return state.name, "PRIORITY_QUEUE", None, "TIMER"
    outer = state.kind if state.kind in ("LIST", "MAP") else state.value_serializer.name
    if state.has_ttl and state.kind not in ("LIST", "MAP"):
        outer = "TTL"
    return state.name, state.kind, state.namespace_serializer.name, outer


def true_header(line: dict[str, Any]) -> dict[str, object]:
    states = []
    for state in line["states"]:
        kind = state["options"].get("KEYED_STATE_TYPE", state["backend_type"])
        classes = state["serializers"]
        namespace = classes.get("NAMESPACE_SERIALIZER")
        states.append(
            (
                state["state"],
                kind,
                namespace and SERIALIZERS[namespace],
                SERIALIZERS[classes["VALUE_SERIALIZER"]],
            )
        )
    return {
        "header_end": line["header_end"],
        "compressed": line["compressed"],
        "key": SERIALIZERS[line["key_serializer"]],
        "states": states,
    }


def test_headers(record_property: Record) -> None:
    """The header of each managed keyed stream, parsed to exactly its end."""
    versions: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for one in POINTS:
        files = one.files
        truth = {(line["operator"], line["subtask"]): line for line in one.truth("states")}
        for operator in metadata_of(one).operators:
            for subtask in operator.subtasks:
                handle = subtask.managed_keyed
                if handle is None or isinstance(handle, ChangelogHandle):
                    continue
                line = truth.pop((operator.operator_id, subtask.index))
                header = format_of(files, [handle], ReadingContext()).headers()[0]
                assert seen_header(header) == true_header(line), (one, operator)
                versions[one.flink] += 1
                kinds.update(state.kind for state in header.states)
        assert not truth, one
    report(record_property, {"headers, by Flink": versions, "states in them, by kind": kinds})
    assert sum(versions.values()) == 768
    assert sum(kinds.values()) == 4822 + 1480


# Entries


def all_entries(one: Point) -> Iterator[tuple[Operator, StateDescriptor, StateEntry]]:
    for operator in one.read().operators:
        states = {state.name: state for state in operator.states}
        for entry in operator.entries():
            yield operator, states[entry.state], entry


@pytest.mark.long
def test_entries(record_property: Record) -> None:
    """Each entry in all its fields, and no entry besides; of Kryo's values only the class.

    For each key with a key type, the key group it was stored in is the one we compute.
    """
    versions: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    formats: Counter[str] = Counter()
    computed: Counter[str] = Counter()
    unknown: Counter[str] = Counter()
    kryo = 0
    for one in POINTS:
        seen: Counter[Any] = Counter()
        for operator, state, entry in all_entries(one):
            seen[seen_entry(operator, state, entry)] += 1
            key_type = state.key_type
            if key_type is None:
                unknown[str(state.key_serializer)] += 1
                continue
            key_group = assign_to_key_group(entry.key, operator.max_parallelism, key_type)
            assert key_group == entry.key_group, (one, entry)
            computed[repr(key_type)] += 1
        true = Counter(true_entries(one.entries))
        assert not [*(seen - true), *(true - seen)], one
        count = sum(seen.values())
        versions[one.flink] += count
        formats[one.kind] += count
        for fields, times in seen.items():
            kinds[fields[3]] += times
            value = fields[8]
            kryo += times * (isinstance(value, tuple) and value[0] == "kryo")
    report(
        record_property,
        {
            "entries, by Flink": versions,
            "entries, by kind of point": formats,
            "entries, by kind": kinds,
            "of them values of Kryo": Counter(KRYO=kryo),
            "keys, by key type": computed,
            "without key type": unknown,
        },
    )
    assert sum(versions.values()) == 90_159
    assert kryo == 46
    assert sum(unknown.values()) == sum(versions.values()) - sum(computed.values()) < 10_000


def put_by(one: Point) -> dict[tuple[Any, ...], Any]:
    """Return, by operator, subtask, state and key, what a job would read from its state."""
    found: dict[tuple[Any, ...], Any] = {}
    for operator, state, entry in all_entries(one):
        seen = seen_entry(operator, state, entry)
        place, (user_key, value) = (seen[0], seen[1], seen[2], seen[5]), seen[7:9]
        if state.kind == "MAP":
            known = found.setdefault(place, ("map", frozenset()))
            found[place] = "map", known[1] | {(user_key, value)}
        elif state.kind == "LIST" and state.has_ttl:
            found[place] = "list", tuple(element[2] for element in value[1])
        else:
            found[place] = value
    return found


@pytest.mark.long
def test_what_the_running_job_read(record_property: Record) -> None:
    """What the job itself read from its state, after it had last changed it, is there."""
    versions: Counter[str] = Counter()
    for one in POINTS:
        if not one.has("put"):
            continue
        savepoint, seen = one.read(), put_by(one)
        for line in one.truth("put"):
            place = (
                savepoint.operator(line["uid"]).operator_id,
                line["subtask"],
                line["state"],
                true_value(line["key"]),
            )
            assert seen[place] == true_value(line["value"]), (one, line)
            versions[one.flink] += 1
    report(record_property, {"put, by Flink": versions})
    assert sum(versions.values()) == 15_276


def test_operator_state(record_property: Record) -> None:
    """List, union and broadcast states, the elements of each subtask in order."""
    versions: Counter[str] = Counter()
    modes: Counter[str] = Counter()
    elements = 0
    for one in POINTS:
        seen = {
            (operator.operator_id, found.subtask, found.state): (found.mode, found.elements)
            for operator in one.read().operators
            for found in operator.operator_state()
        }
        true = {
            (line["operator"], line["subtask"], line["state"]): (
                line["mode"],
                plain(line["entries"] if line["mode"] == "BROADCAST" else line["elements"]),
            )
            for line in one.truth("operator_state")
        }
        assert seen == true, one
        versions[one.flink] += len(seen)
        for mode, found in seen.values():
            modes[mode] += 1
            elements += len(found)
    report(record_property, {"operator states, by Flink": versions, "by mode": modes})
    assert modes == {"SPLIT_DISTRIBUTE": 134, "UNION": 132, "BROADCAST": 50}
    assert elements > 800


@pytest.mark.long
def test_compressed_operator_state() -> None:
    """As Flink writes it: one framed stream of Snappy, and a new chunk where an element starts."""
    start_of_stream = len(cramjam.snappy.compress(b""))
    compared = 0
    for one in POINTS:
        for operator in metadata_of(one).operators:
            for subtask in operator.subtasks:
                handle = subtask.managed_operator
                if handle is None or not handle.stream.size:
                    continue
                with one.files.open(handle.stream) as stream:
                    data = stream.read(0, stream.size)
                starts = sorted(start for _, _, starts in handle.states for start in starts)
                if data[3] < 6 or not starts:  # versions before 6 are never compressed
                    continue
                assert data[4] == 0
                parts, size = [data[:4], b"\1", data[5 : starts[0]]], starts[0]
                moved: dict[int, int] = {}
                for start, end in zip(starts, [*starts[1:], len(data)]):
                    parts.append(bytes(cramjam.snappy.compress(data[start:end]))[start_of_stream:])
                    moved[start], size = size, size + len(parts[-1])
                states = tuple(
                    (name, mode, tuple(moved[start] for start in item))
                    for name, mode, item in handle.states
                )
                compressed = OperatorStateHandle(states, StreamHandle(size, b"".join(parts)))
                found = read_operator_state(
                    one.files, compressed, subtask.index, False, ReadingContext()
                )
                expected = list(
                    read_operator_state(one.files, handle, subtask.index, False, ReadingContext())
                )
                assert list(found) == expected, one
                compared += len(expected)
    assert compared > 100


@pytest.mark.slow
def test_key_groups_in_use() -> None:
    """Key groups have bytes where there are entries, and no others do."""
    for one in POINTS:
        for operator in one.read().operators:
            weights = operator.key_group_bytes().weights
            in_use = {key_group for key_group, weight in enumerate(weights) if weight}
            assert in_use == {entry.key_group for entry in operator.entries()}, (one, operator)


def test_sizes_add_up() -> None:
    """Where all is canonical, the bytes of the key groups are those of the streams but headers."""
    for one in POINTS:
        if one.kind != "canonical":
            continue
        ends = {
            (line["operator"], line["subtask"]): line["header_end"] for line in one.truth("states")
        }
        sizes: Counter[str] = Counter()
        for line in one.truth("metadata"):
            if line["record"] == "managed_keyed":
                end = ends[line["operator"], line["subtask"]]
                sizes[line["operator"]] += line["stream"]["size"] - end
        for operator in one.read().operators:
            assert sum(operator.key_group_bytes().weights) == sizes[operator.operator_id], one
