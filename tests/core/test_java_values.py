"""Values that Java's own serialization wrote, as the elements of a ListCheckpointed state are.

`tests/vectors/java_streams.json` has the savepoint of such a state that Flink 1.20.5 took of the
job in `tests/support/flink/java/JavaStreams.java`; its elements are those of its method
`elements`.
"""

from __future__ import annotations

import base64
import json
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from support.bytes import java_bytes as java
from support.bytes import savepoint_bytes as sb
from support.inside.serializers import JavaSerializer

from keygroups.errors import InvalidTypeError, InvalidValueError, KeyGroupsError
from keygroups.savepoint import (
    DELETE,
    OperatorStateElement,
    SavepointWriter,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.types import LONG

JAVA, JAVA_START = JavaSerializer(), b"\xac\xed\0\5"
VECTORS = Path(__file__).parents[1] / "vectors" / "java_streams.json"
VALUES = [
    *(5, -(2**63), 7, 2.5, True, "a text, é"),
    *([1, 1], [1, "a", None], [False, 2.0], [1, 2, 3], [None, 1], [], [7], [1, 1], [1]),
    *({"longs": [1, -2], "none": None}, {1: 2}, {"a": 2, "b": 1}, {"a": 1}, {}, {"a": 2.5}),
    *({"a": 1}, {"a": 1}),
]
"""What `elements` has; after them come a BigDecimal, a byte[], a Character and a Short."""


def point(folder: Path) -> Path:
    recorded = json.loads(VECTORS.read_text("ascii"))
    folder.mkdir()
    (folder / "_metadata").write_bytes(base64.b64decode(recorded["metadata"]))
    return folder


def elements(folder: Path) -> list[Any]:
    source = read_savepoint(folder, uids=["source"]).operator("source")
    [state] = source.operator_state()
    assert (state.state, state.mode) == ("_default_", "SPLIT_DISTRIBUTE")
    found: list[Any] = state.elements
    return found


def typed(value: Any) -> Any:
    """Return a value with its class, by which True is not 1 and 2.0 not 2."""
    if isinstance(value, list):
        return [*map(typed, value)]
    if isinstance(value, dict):
        return [typed([*pair]) for pair in value.items()]
    return type(value), value


def boxed(name: str, code: str, data: bytes) -> bytes:
    return java.instance(f"java.lang.{name}", [(code, "value", data)])


def block(*numbers: int) -> bytes:
    return bytes([0x77, 4 * len(numbers)]) + sb.i32(*numbers)


def array_list(*items: bytes, size: int | None = None) -> bytes:
    count = len(items) if size is None else size
    fields = [("I", "size", sb.i32(count))]
    written = block(count) + b"".join(items) + java.END
    return java.instance("java.util.ArrayList", fields, flags=3, after=written)


LONG_5 = boxed("Long", "J", sb.i64(5))


def test_elements_that_flink_wrote(tmp_path: Path) -> None:
    found = elements(point(tmp_path / "old"))
    assert [*map(typed, found[:-4])] == [*map(typed, VALUES)]
    for element, name in zip(
        found[-4:], [b"java.math.BigDecimal", b"[B", b"java.lang.Character", b"java.lang.Short"]
    ):
        assert element.startswith(JAVA_START)
        assert name in element[:32]


def test_a_number_stays_of_its_class(tmp_path: Path) -> None:
    """A Long stays a Long and so on: what Flink 1.20.5 restored of it is in tests/README.md."""
    old = point(tmp_path / "old")

    def changed(element: OperatorStateElement) -> Any:
        value = element.value
        if isinstance(value, bool):
            return not value
        if isinstance(value, (int, float)):
            return 3 if value == 7 else value / 2 if value == 2.5 else 6
        return DELETE if isinstance(value, list) else value

    with SavepointWriter.from_existing_savepoint(old, tmp_path / "new", uids=["source"]) as writer:
        writer.operator("source").map_operator_state("_default_", changed)
    kept = [value for value in VALUES[5:] if not isinstance(value, list)]
    assert [*map(typed, elements(tmp_path / "new")[:-4])] == [
        *map(typed, [6, 6, 3, 1.25, False, *kept])
    ]
    data = (tmp_path / "new" / "_metadata").read_bytes()
    for was, now in [
        (boxed_stream(old, b"Long", 8), sb.i64(6)),
        (boxed_stream(old, b"Integer", 4), sb.i32(3)),
        (boxed_stream(old, b"Boolean", 1), b"\0"),
    ]:
        assert was[: -len(now)] + now in data


def boxed_stream(folder: Path, name: bytes, size: int) -> bytes:
    """Return the first stream of a boxed value in a savepoint, whose last bytes are the value."""
    data = (folder / "_metadata").read_bytes()
    start = data.index(b"\xac\xed\0\5sr\0" + bytes([10 + len(name)]) + b"java.lang." + name)
    return data[start : data.index(b"xp", start) + 2 + size]


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (0, 2**63, "element of operator state '_default_': JAVA: value of type .* must be from"),
        (0, 1.5, "must be an int"),
        (0, True, "must be an int"),
        (2, 2**31, "element of operator state '_default_': JAVA: value of type .* must be from"),
        (3, 1, "must be a float"),
        (4, 1, "must be a bool"),
        (5, 1, "class is not that of a value that was there, got 1"),
        (6, [1, 2], r"class is not that of a value that was there, got \[1, 2\]"),
        (18, {}, "class is not that of a value that was there, got {}"),
        (-1, 3, "class is not that of a value that was there, got 3"),
    ],
)
def test_what_an_element_does_not_become(
    place: int, value: Any, message: str, tmp_path: Path
) -> None:
    old = point(tmp_path / "old")
    wanted = elements(old)[place]
    with (
        pytest.raises((InvalidTypeError, InvalidValueError), match=message),
        SavepointWriter.from_existing_savepoint(old, tmp_path / "new", uids=["source"]) as writer,
    ):
        writer.operator("source").map_operator_state(
            "_default_",
            lambda element: value if typed(element.value) == typed(wanted) else element,
        )


def test_broadcast_entries(tmp_path: Path) -> None:
    """A key and a value of a broadcast state are written over those that were there."""
    snapshot = sb.snapshot(
        "org.apache.flink.runtime.state.JavaSerializer$JavaSerializerSnapshot", 3
    )
    options = {"OPERATOR_STATE_DISTRIBUTION_MODE": "BROADCAST"}
    snapshots = {"KEY_SERIALIZER": snapshot, "VALUE_SERIALIZER": snapshot}
    header = sb.operator_header([], [sb.meta_info("rules", 2, options, snapshots)])
    entry = java.stream(java.text("k")) + java.stream(LONG_5)
    handle = sb.operator_state(
        [("rules", 2, [len(header)])], sb.inline(header + sb.i32(1) + entry)
    )
    old = sb.write(
        tmp_path / "old", [sb.operator([sb.subtask(managed_operator=handle)], uid="source")]
    )
    with SavepointWriter.from_existing_savepoint(old, tmp_path / "new") as writer:
        writer.operator("source").map_operator_state(
            "rules", lambda element: element._replace(key="l", value=6)
        )
    [state] = read_savepoint(tmp_path / "new").operator("source").operator_state()
    assert state.elements == {"l": 6}


# --- what is no such value -----------------------------------------------------------------------

COLL_SER = "java.util.CollSer"
OTHERS = {
    "a set": java.instance(
        COLL_SER, [("I", "tag", sb.i32(2))], flags=3, after=block(0) + java.END
    ),
    "an array": b"\x75" + java.class_of("[I") + sb.i32(1, 5),
    "an enum": java.enum("a.E", "ON"),
    "a class": b"\x76" + java.class_of("a.C"),
    "a list of an object of the job": array_list(java.instance("a.C")),
    "a list of blocks of bytes": array_list(block(1)),
    "a list in another form": java.instance("java.util.Arrays$ArrayList", [("I", "a", sb.i32(1))]),
    "a list without its array": java.instance("java.util.Arrays$ArrayList"),
    "a list of its own kind": java.instance("java.util.CollSer", [("Z", "t", b"\1")]),
    "a tag that is no number": java.instance(COLL_SER, [("L", "tag", java.text("a"))]),
    "a view of nothing": java.instance("java.util.Collections$UnmodifiableMap"),
    "a map of half an entry": java.instance(
        "java.util.TreeMap", flags=3, after=block(1) + java.text("a") + java.END
    ),
    "a Long with two fields": java.instance(
        "java.lang.Long", [("J", "value", sb.i64(1)), ("I", "more", sb.i32(1))]
    ),
    "a Long of another field": java.instance("java.lang.Long", [("I", "number", sb.i32(1))]),
    "an Integer of a bool": boxed("Integer", "Z", b"\1"),
    "a list in itself": java.instance(
        # Handles: the class, the text of the field's type, the object.
        "java.util.Collections$SingletonList",
        [("L", "element", java.reference(2))],
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_others_are_their_bytes(name: str) -> None:
    stream = java.stream(OTHERS[name])
    assert JAVA.decode(stream) == stream
    assert JAVA.encode(stream) == stream
    with pytest.raises(KeyGroupsError):
        JAVA.write_over(5, stream)


def nested(depth: int) -> bytes:
    data = LONG_5
    for _ in range(depth):
        data = java.instance("java.util.Collections$SingletonList", [("L", "element", data)])
    return java.stream(data)


def test_lists_in_lists() -> None:
    """The reader of streams has a depth of its own: 100 lists take 200 levels of it."""
    value = JAVA.decode(nested(49))
    for _ in range(49):
        [value] = value
    assert value == 5
    with pytest.raises(InvalidValueError, match="more than 100 deep"):
        JAVA.decode(nested(101))


def chain(links: int) -> bytes:
    """Return a list of lists of which each has the one before it: the last is the deepest."""
    described = java.class_of("java.util.Collections$SingletonList", [("L", "element")])
    # Handles: the class of the list outside and itself; then the class, its text, and each list.
    items = [b"\x73" + described + java.NULL]
    items += [b"\x73" + java.reference(2) + java.reference(4 + link) for link in range(links)]
    return java.stream(array_list(*items))


def test_lists_that_references_nest() -> None:
    value = JAVA.decode(chain(98))
    assert value[1] == [[None]]
    for _ in range(98):
        [value[-1]] = value[-1]
    assert value[-1] == [None]
    assert JAVA.decode(chain(99)) == chain(99)


SINGLETON = "java.util.Collections$SingletonList"


def from_elsewhere(innermost: bytes, depth: int) -> bytes:
    """Return a list that refers to lists in one another, which its class wrote of itself."""
    one = b"\x73" + java.reference(0)
    # Handles: the class, its text, the innermost list, a class and an object in it, other lists.
    handles = [2, *range(3 if innermost == java.NULL else 5, 2_000)]
    lists = one + innermost + b"".join(one + java.reference(handles[link]) for link in range(149))
    described = java.class_of(SINGLETON, [("L", "element")], annotation=lists)
    return java.stream(b"\x73" + described + java.reference(handles[depth - 2]))


@pytest.mark.parametrize(
    ("innermost", "most", "shown"),
    [
        (java.NULL, 100, "None"),
        (LONG_5, 100, "5"),
        (java.instance("java.util.Collections$EmptyList"), 99, "[]"),
    ],
)
def test_lists_from_elsewhere(innermost: bytes, most: int, shown: str) -> None:
    """The last of them comes first, and is no deeper than a list of others."""
    for depth in (50, most):
        value = JAVA.decode(from_elsewhere(innermost, depth))
        assert repr(value) == "[" * depth + shown + "]" * depth
    for depth in (most + 1, 149):
        stream = from_elsewhere(innermost, depth)
        assert JAVA.decode(stream) == stream


def test_the_highest_of_a_list_counts() -> None:
    """A null and a list are in a list, which references nest."""
    described = java.class_of(SINGLETON, [("L", "element")])
    # Handles: the class of the list outside and itself; the list; the class in it, its text, it.
    inside = sb.i32(2) + block(2) + java.NULL + b"\x73" + described + java.NULL + java.END
    items = [b"\x73" + java.reference(0) + inside]
    items += [
        b"\x73" + java.reference(3) + java.reference(5 + link if link else 2) for link in range(98)
    ]
    value = JAVA.decode(java.stream(array_list(*items[:-1])))
    assert repr(value[-1]) == "[" * 97 + "[None, [None]]" + "]" * 97
    stream = java.stream(array_list(*items))
    assert JAVA.decode(stream) == stream


def repeated(text: str, count: int) -> bytes:
    # Handles: the class and the list, and then the text.
    items = [java.text(text)] + [java.reference(2)] * count
    return java.stream(array_list(*items))


def test_references_may_not_repeat_too_much() -> None:
    """SECURITY.md: at most 256 bytes for each that was read, and 1 MiB."""
    assert JAVA.decode(repeated("ab", 1_000)) == ["ab"] * 1_001
    with pytest.raises(InvalidValueError, match="256 times as many and 1,048,576"):
        JAVA.decode(repeated("a" * 60_000, 1_000))


@pytest.mark.long
def test_a_list_counts_as_all_that_is_in_it() -> None:
    """A list of 1,300 nulls is 1,301: some 65,000 references of 5 bytes each are too many."""
    for count, is_refused in ((64_000, False), (67_000, True)):
        # Handles: of the list outside its class and itself; then the list of nulls.
        nulls = b"\x73" + java.reference(0) + sb.i32(1_300) + block(1_300) + b"\x70" * 1_300
        items = [nulls + java.END] + [java.reference(2)] * count
        stream = java.stream(array_list(*items))
        assert (1_301 * count > (1 << 20) + 256 * len(stream)) == is_refused
        assert (1_302 * count > (1 << 20) + 256 * len(stream)) or not is_refused
        if is_refused:
            with pytest.raises(InvalidValueError, match="256 times as many and 1,048,576"):
                JAVA.decode(stream)
        else:
            assert JAVA.decode(stream) == [[None] * 1_300] * (count + 1)


def test_doubled_lists_are_counted() -> None:
    """Each list has the one before it twice: 40 of them would tell of 2^40 texts."""
    lists = [array_list(java.text("a"))]
    # Handles: of the list outside its class, a text, itself, the class of its array and that; then
    # the class of the lists, and each; the first has a text.
    for link in range(40):
        again = java.reference(6 if not link else 7 + link)
        size = sb.i32(2)
        lists.append(b"\x73" + java.reference(5) + size + block(2) + again + again + java.END)
    items = b"\x75" + java.class_of("[L") + sb.i32(len(lists)) + b"".join(lists)
    stream = java.stream(java.instance("java.util.Arrays$ArrayList", [("[", "a", items)]))
    with pytest.raises(InvalidValueError, match="256 times as many and 1,048,576"):
        JAVA.decode(stream)


def test_a_column_of_them(tmp_path: Path) -> None:
    """Values of any class are their text, as Kryo's are; what is bytes has a column of its own."""
    pytest.importorskip("pyarrow")
    other = java.stream(java.instance("a.C"))
    streams = [*map(java.stream, (LONG_5, array_list(LONG_5, java.text("a")))), other, "5"]
    with SavepointWriter(tmp_path / "old") as writer:
        states = [ValueStateDescriptor("last", JAVA)]
        operator = writer.add_operator("by", LONG, states, 128, 1, sort=True)
        for key, stream in enumerate(streams):
            operator.write("last", key, stream)
    by = read_savepoint(tmp_path / "old").operator("by")
    values = {0: 5, 1: [5, "a"], 2: other, 3: "5"}
    assert {entry.key: entry.value for entry in by.entries()} == values
    rows = by.to_arrow("last").select(["key", "value", "value_bytes"]).to_pylist()
    assert {row["key"]: (row["value"], row["value_bytes"]) for row in rows} == {
        0: ("5", None),
        1: ("[5, 'a']", None),
        2: (None, other),
        3: ("'5'", None),
    }


def test_damaged_streams(tmp_path: Path) -> None:
    """Each is a value, its bytes, or refused, at the cost of its bytes."""
    chosen = Random(44)
    data = (point(tmp_path / "old") / "_metadata").read_bytes()
    streams = [JAVA_START + rest for rest in data.split(JAVA_START)[1:]]
    counts: Counter[str] = Counter()
    for stream in [*streams, chain(50), nested(40), repeated("ab", 100)]:
        for _ in range(20):
            changed = bytearray(stream)
            for _ in range(chosen.randrange(1, 4)):
                changed[chosen.randrange(4, len(changed))] = chosen.choice((0, 1, 2, 0x71, 0xFF))
            decode = partial(decoded, bytes(changed))
            assert calls(decode) < 500 + 40 * len(changed)
            counts[decode()] += 1
    assert min(counts.values()) > 20
    assert {*counts} == {"InvalidValueError", "bytes", "value"}


def decoded(stream: bytes) -> str:
    try:
        value = JAVA.decode(stream)
    except InvalidValueError:
        return "InvalidValueError"
    return "bytes" if value == stream else "value"


def calls(action: Callable[[], object]) -> int:
    """Return the number of calls of functions."""
    used = 0

    def count(*_: object) -> None:
        nonlocal used
        used += 1

    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(None)
    return used
