"""One value that only the job's classes read, in each place, format and verb.

Where its bytes are framed it is these bytes, and costs nothing but itself; where nothing says
where it ends the error names the operator, the state, the class and what else can be read, and
what is before it is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.unread_values import (
    CLASSES,
    FORMATS,
    LONG,
    PLACES,
    UNFRAMED,
    A,
    kryo,
    operator_of,
)

from keygroups.errors import SavepointError
from keygroups.savepoint import (
    DELETE,
    Operator,
    SavepointWriter,
    convert_to_canonical,
    operator_reports,
    read_savepoint,
)

OWN = pytest.mark.parametrize(("java_class", "own"), CLASSES.items(), ids=CLASSES)
CHANGES = ("changelog, of one element", "changelog, of many")
"""Those whose entries are what changes make of them."""
SOME = ("java.lang.Object", "a.B")
"""One class of which other values are read, and one of the job."""


def cells(is_framed: bool) -> Iterator[Any]:
    """Yield each format and place, with each class where all are read alike, else with some."""
    for name in FORMATS:
        for place in PLACES:
            if (place not in UNFRAMED.get(name, ())) is is_framed:
                classes = CLASSES if name in ("canonical", "hashmap") else SOME
                for java_class in classes:
                    label = f"{name}-{place}-{java_class}"
                    yield pytest.param(name, place, java_class, CLASSES[java_class], id=label)


@pytest.mark.long
@pytest.mark.parametrize(("name", "place", "java_class", "own"), [*cells(is_framed=True)])
def test_framed(name: str, place: str, java_class: str, own: bytes, tmp_path: Path) -> None:
    operator = operator_of(tmp_path / "old", place, java_class, own, name)
    [entry] = operator.entries(["own"])
    names = {"element": "value", "map value": "value", "user key": "user_key", "timer": "key"}
    assert getattr(entry, names.get(place, place)) == own
    if place not in ("key", "timer"):
        assert [entry.value for entry in operator.entries(["read"])] == [7]
        assert operator.get("a", "read") == 7
        expected = {"user key": {own: 5}, "map value": {"u": own}, "namespace": {own: 5}}
        assert operator.get("a", "own") == expected.get(place, own)
    else:
        assert operator.get(own) == {"own": [5] if place == "timer" else 5}
    [size] = operator.key_sizes()
    assert size.key == ("a" if place not in ("key", "timer") else own)
    (report,) = operator_reports(read_savepoint(tmp_path / "old"))
    assert (report.unknown_keys, report.unread) == (None, ())
    convert_to_canonical(tmp_path / "old", tmp_path / "new")
    new = read_savepoint(tmp_path / "new").operator("uid")
    assert list(new.entries()) == list(operator.entries())
    [compared] = (
        read_savepoint(tmp_path / "old").compare(read_savepoint(tmp_path / "new")).operators
    )
    assert not any(state.changed or state.only_here for state in compared.states)
    check_table(operator, place, own)
    check_deleted(tmp_path, place)


def check_table(operator: Operator, place: str, own: bytes) -> None:
    """Binary has the bytes: in a column of their own where what is read is text."""
    pa = pytest.importorskip("pyarrow")
    table = operator.to_arrow("own")
    [row] = table.to_pylist()
    name = {"element": "value", "map value": "value", "user key": "user_key", "timer": "key"}.get(
        place, place
    )
    is_binary = table.schema.field(name).type == pa.binary()
    assert row[name if is_binary else f"{name}_bytes"] == own
    assert is_binary or row[name] is None
    assert is_binary or table.schema.field(f"{name}_bytes").type == pa.binary()


@pytest.mark.parametrize("place", ["key", "value", "user key", "namespace"])
def test_differences(place: str, tmp_path: Path) -> None:
    """In columns of differences too these bytes are apart from text, on the side that has them."""
    pytest.importorskip("pyarrow")
    from support.inside.columns import difference_layout

    own = CLASSES["java.lang.Object"]
    operator_of(tmp_path / "old", place, "java.lang.Object", own, "canonical")
    old = read_savepoint(tmp_path / "old")
    with SavepointWriter.from_existing_savepoint(old, tmp_path / "new") as writer:
        writer.operator("uid").map_entries("own", lambda entry: DELETE)
    new = read_savepoint(tmp_path / "new")
    column = place.replace(" ", "_")
    for before, after, side in ((old, new, "old"), (new, old, "new")):
        states = [savepoint.operator("uid").states for savepoint in (before, after)]
        [batch] = difference_layout(*states).batches(before.differences(after))
        [row] = batch.to_pylist()
        name = f"{side}_value" if place == "value" else column
        shown = row[name]["own"] if isinstance(row[name], dict) else row[name]
        assert (shown, row[f"{name}_bytes"]) == (None, own)
        assert len({*batch.schema.names}) == len(batch.schema.names)


def check_deleted(folder: Path, place: str) -> None:
    def edited(name: str, function: Any) -> list[Any]:
        old = folder / "old"
        with SavepointWriter.from_existing_savepoint(old, folder / name) as writer:
            verb = "map_timers" if place == "timer" else "map_entries"
            getattr(writer.operator("uid"), verb)("own", function)
        operator = read_savepoint(folder / name).operator("uid")
        return [entry for entry in operator.entries() if entry.state == "own"]

    assert edited("deleted", lambda entry: DELETE) == []
    [kept] = edited("kept", lambda entry: [entry])
    assert kept == next(read_savepoint(folder / "old").operator("uid").entries(["own"]))


@pytest.mark.parametrize(("name", "place", "java_class", "own"), [*cells(is_framed=False)])
def test_unframed(name: str, place: str, java_class: str, own: bytes, tmp_path: Path) -> None:
    operator = operator_of(tmp_path / "old", place, java_class, own, name)
    has_other = place not in ("key", "timer")
    named = ["operator 'uid': own: ", java_class, "take a savepoint in canonical format"]
    named.append("can be read: 'read'" if has_other else "can be read: no state")

    def refused(call: Any) -> None:
        with pytest.raises(SavepointError) as caught:
            call()
        assert all(text in str(caught.value) for text in named), str(caught.value)

    refused(lambda: list(operator.entries()))
    refused(lambda: operator.get("a" if has_other else own, "own"))
    refused(operator.key_sizes)
    refused(lambda: convert_to_canonical(tmp_path / "old", tmp_path / "new"))
    refused(lambda: read_savepoint(tmp_path / "old").compare(read_savepoint(tmp_path / "old")))
    assert not (tmp_path / "new").exists()
    if name in CHANGES:
        refused(operator.key_group_bytes)
    else:
        assert operator.key_group_bytes().weights[A] > 0
    assert operator.states[-1].name == "own"
    (report,) = operator_reports(read_savepoint(tmp_path / "old"))
    assert report.unread == ((report.unknown_keys,) if name in CHANGES else ())
    assert all(text in str(report.unknown_keys) for text in named)
    if has_other:
        assert [entry.value for entry in operator.entries(["read"])] == [7]
        assert operator.get("a", "read") == 7
    pytest.importorskip("pyarrow")
    refused(lambda: operator.to_arrow("own"))
    if has_other:
        assert operator.to_arrow("read").column("value").to_pylist() == [7]


def test_what_reads_a_serializer_that_is_not_known(tmp_path: Path) -> None:
    """The error names the class of its snapshot, as an own serializer is given by that."""
    snapshot = sb.snapshot("a.CoderSnapshot", 1)
    state = sb.state("own", "VALUE", sb.list_of(snapshot))
    header = sb.keyed_header(sb.simple("String"), [state])
    content = sb.i32(A) + sb.i16(0) + sb.i32(1) + b"\0\2a" + sb.i32(1) + b"any"
    keyed = sb.native(A, [len(header)], sb.inline(header + content))
    sb.write(tmp_path, [sb.operator([sb.subtask(managed_keyed=keyed)], uid="uid")])
    message = (
        "take a savepoint in canonical format, or pass serializers="
        r"\{'a\.CoderSnapshot': \.\.\.\} to say how it is read; what comes before can be read: no"
    )
    with pytest.raises(SavepointError, match=message):
        list(read_savepoint(tmp_path).operator("uid").entries())


@OWN
def test_operator_state(java_class: str, own: bytes, tmp_path: Path) -> None:
    """An element of a list, of each mode, has its offset; a broadcast state that of its end."""
    snapshot = kryo(java_class)
    lists = [
        sb.meta_info(
            name, 1, {"OPERATOR_STATE_DISTRIBUTION_MODE": mode}, {"VALUE_SERIALIZER": kind}
        )
        for name, mode, kind in (
            ("split", "SPLIT_DISTRIBUTE", snapshot),
            ("union", "UNION", sb.pojo_of("a.P", {"f": snapshot})),
            ("longs", "UNION", LONG),
        )
    ]
    mode = {"OPERATOR_STATE_DISTRIBUTION_MODE": "BROADCAST"}
    broadcasts = [
        sb.meta_info(name, 2, mode, {"VALUE_SERIALIZER": value, "KEY_SERIALIZER": key})
        for name, key, value in (
            ("values", LONG, snapshot),
            ("keys", snapshot, LONG),
            ("two", LONG, snapshot),
        )
    ]
    header = sb.operator_header(lists, broadcasts)
    pojo = b"\2\0" + own
    parts = {
        "split": (0, [own, own]),
        "union": (1, [pojo]),
        "longs": (1, [sb.i64(5)]),
        "values": (2, [sb.i32(1) + sb.i64(3) + own]),
        "keys": (2, [sb.i32(1) + own + sb.i64(3)]),
        "two": (2, [sb.i32(2) + (sb.i64(3) + own) * 2]),
    }
    data, states = header, []
    for name, (code, elements) in parts.items():
        offsets = []
        for element in elements:
            offsets.append(len(data))
            data += element
        states.append((name, code, offsets))
    task = sb.subtask(managed_operator=sb.operator_state(states, sb.inline(data)))
    savepoint = read_savepoint(sb.write(tmp_path, [sb.operator([task], uid="uid")]))
    operator = savepoint.operator("uid")
    read = {entry.state: entry.elements for entry in operator.operator_state()}
    assert read == {
        "split": [own, own],
        "union": [pojo],
        "longs": [5],
        "values": {3: own},
        "keys": parts["keys"][1][0],
        "two": parts["two"][1][0],
    }
    assert [entry.elements for entry in operator.operator_state(["longs"])] == [[5]]
    compared = savepoint.compare(savepoint).operators[0]
    assert compared.operator_states
    assert not any(state.changed or state.only_here for state in compared.operator_states)
