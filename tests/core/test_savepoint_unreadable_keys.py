"""Keys that only the job's own classes can read: what of an entry's bytes is theirs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.framed_entries import framed_entries
from support.bytes.real_savepoints import point
from support.html_tables import Tables
from support.inside.serializers import INT, LONG, STRING, KryoSerializer, PojoSerializer, read_long

from keygroups import cli
from keygroups.errors import SavepointError
from keygroups.savepoint import (
    Operator,
    StateDescriptor,
    TimeWindow,
    html_report,
    operator_reports,
    read_savepoint,
)
from keygroups.savepoint.values import Pojo
from keygroups.state_keys import (
    TIME_WINDOW,
    VOID_NAMESPACE,
    composite_key_reader,
    timer_key_changer,
    timer_key_reader,
)

KRYO = KryoSerializer("a.B")
POINTS = [
    "2.3.0-heap-canonical",
    "1.20.5-rocksinc-checkpoint",
    "2.3.0-extraheap-canonical",
    "1.20.5-sqlrocks-canonical",
    "2.3.0-pojo-canonical",
    "2.3.0-pyflink-canonical",
]


def encoded_keys(name: str) -> Iterator[tuple[StateDescriptor, bytes]]:
    """Yield the states of a point, and the bytes of keys as Flink wrote them."""
    for operator in point(name).read().operators:
        states = {state.name: state for state in operator.states}
        for task in operator.tasks():
            for entry in framed_entries(task):
                yield states[entry.state], entry.encoded_key


def test_keys_of_points() -> None:
    """As if their classes were not known: the parts are those that were read, whole.

    That what was read is right is what `test_savepoint_points.py` holds.
    """
    counts: Counter[str] = Counter()
    for name in POINTS:
        for state, data in encoded_keys(name):
            key, namespace, user_key = (
                state.key_serializer,
                state.namespace_serializer,
                state.user_key_serializer,
            )
            assert key.read is not None
            if key.size is not None:  # Flink writes other lengths for one of no fixed size
                continue
            if state.value_serializer is None:
                _, start = read_long(data, 0)
                known = timer_key_reader(key, namespace)(data, start, len(data))
                found = timer_key_reader(KRYO, namespace)(data, start, len(data))
            else:
                start = 0
                known = composite_key_reader(key, namespace, user_key)(data, 0, len(data))
                split = composite_key_reader(KRYO, namespace, user_key)
                found = split(data, 0, len(data))
            encoded = data[start : key.read(data, start)[1]]
            if user_key is None or user_key.size is not None:
                assert found == (encoded, *known[1:])
                counts[f"{state.kind} under {namespace}"] += 1
            else:
                assert found == (None, None, None, data, len(data))
                counts["unknown"] += 1
                last = composite_key_reader(key, namespace, KRYO)
                assert user_key.read is not None
                *parts, rest, remainder, _ = last(data, 0, len(data))
                assert (*parts, remainder) == (*known[:2], None)
                assert user_key.read(rest, 0) == (known[2], len(rest))
    assert counts.keys() >= {
        "unknown",
        "VALUE under STRING",
        "VALUE under VOID_NAMESPACE",
        "MAP under VOID_NAMESPACE",
        "LIST under TIME_WINDOW",
        "PRIORITY_QUEUE under TIME_WINDOW",
        "PRIORITY_QUEUE under VOID_NAMESPACE",
        "REDUCING under GLOBAL_WINDOW",
    }, counts
    assert min(counts.values()) > 10


# The first 258 bytes may be a key, whose length follows in two bytes, with a namespace of one byte
# and its length behind it; or "abc" may be one, with a namespace of the 256 bytes that follow.
TWO_WAYS = b"abc\x03" + b"x" * 254 + b"\x02\x01" + b"\x00\x01"


def test_lengths_that_fit_in_two_ways() -> None:
    """Then nothing is certain, but where the namespace can be read in one of the ways only."""
    read = composite_key_reader(KRYO, KRYO, None)
    assert read(TWO_WAYS, 0, 262) == (None, None, None, TWO_WAYS, 262)
    assert read(b"abc\3xy\2", 0, 7) == (b"abc", b"xy", None, None, 7)
    of_text = composite_key_reader(KRYO, STRING, None)
    assert of_text(TWO_WAYS, 0, 262) == (TWO_WAYS[:258], None, None, None, 262)
    # So where the key can be read: here "ab" is, and only one of the lengths starts behind it.
    after_text = b"\3ab\3" + TWO_WAYS[4:]
    read = composite_key_reader(STRING, KRYO, None)
    assert read(after_text, 0, 262) == ("ab", b"x" * 254 + b"\2\1", None, None, 262)
    of_numbers = composite_key_reader(KRYO, KRYO, INT)
    last = b"\0\0\0\7"
    assert of_numbers(TWO_WAYS + last, 0, 266) == (None, None, 7, TWO_WAYS + last, 266)


@pytest.mark.parametrize(
    ("size", "length"),
    [(0, "00"), (255, "ff"), (256, "0001"), (2**16, "000001"), (2**24, "00000001")],
)
def test_lengths_of_one_to_four_bytes(size: int, length: str) -> None:
    """Behind a key and a namespace that are nothing too."""
    read, key = composite_key_reader(KRYO, KRYO, None), b"x" * size
    data = key + bytes.fromhex(length) + b"\0"
    assert read(data, 0, len(data)) == (key, b"", None, None, len(data))


def test_lengths_of_more_bytes_than_they_take() -> None:
    """Flink writes none: a key of nothing, "abc", and 3 in two bytes are no key and namespace."""
    read = composite_key_reader(KRYO, KRYO, None)
    with pytest.raises(ValueError, match="no namespace behind a key"):
        read(b"\0abc\3\0", 0, 6)


def test_a_key_of_no_bytes_before_a_namespace_of_fixed_size() -> None:
    read = composite_key_reader(KRYO, TIME_WINDOW, None)
    assert read(bytes(16), 0, 16) == (b"", TimeWindow(0, 0), None, None, 16)


def test_a_namespace_that_only_the_job_reads() -> None:
    """Behind a key of fixed size it has no length, behind another one it has."""
    assert composite_key_reader(INT, KRYO, None)(b"\0\0\0\7any", 0, 7) == (
        7,
        b"any",
        None,
        None,
        7,
    )
    assert composite_key_reader(INT, KRYO, INT)(b"\0\0\0\7any\0\0\0\5", 0, 11) == (
        *(7, b"any", 5, None, 11),
    )
    assert composite_key_reader(STRING, KRYO, None)(b"\2a\2any\3", 0, 7) == (
        *("a", b"any", None, None, 7),
    )
    assert composite_key_reader(STRING, KRYO, STRING)(b"\2a\2any\3\2b", 0, 9) == (
        *("a", None, None, b"\2a\2any\3\2b", 9),
    )
    assert timer_key_reader(STRING, KRYO)(b"\2aany", 0, 5) == ("a", b"any", None, None, 5)
    pojo, of_subclass = PojoSerializer("a.P", ["n"], [INT]), b"\4\0\3a.Qany"
    read = composite_key_reader(INT, pojo, None)
    seven = b"\0\0\0\7"
    assert read(seven + of_subclass, 0, 13) == (7, of_subclass, None, None, 13)
    assert read(seven + b"\2\1", 0, 6) == (7, Pojo("a.P", {"n": None}), None, None, 6)


@pytest.mark.parametrize(
    ("parts", "data", "says"),
    [
        ((KRYO, TIME_WINDOW, None), bytes(15), "too few bytes"),
        ((KRYO, VOID_NAMESPACE, LONG), bytes(7), "too few bytes"),
        ((KRYO, VOID_NAMESPACE, LONG), bytes(8), "too few bytes"),
        ((KRYO, STRING, None), b"any\3\2a\1", "no namespace behind a key"),
        ((KRYO, STRING, None), b"any\2\2a\2", "no namespace behind a key"),
        ((KRYO, STRING, None), b"", "no namespace behind a key"),
        ((STRING, KRYO, None), b"\2a\2any\2", "no namespace behind a key"),
        ((STRING, VOID_NAMESPACE, KRYO), b"\2", "too few bytes"),
        ((INT, VOID_NAMESPACE, KRYO), b"\0\0\0\7", "index out of range"),
    ],
)
def test_damaged_keys(parts: tuple[Any, ...], data: bytes, says: str) -> None:
    with pytest.raises((ValueError, IndexError), match=says):
        composite_key_reader(*parts)(data, 0, len(data))


def test_a_changed_key_of_a_timer_goes_before_what_is_behind() -> None:
    """That is the namespace, of which only a fixed size is known."""
    for namespace, behind in (
        (VOID_NAMESPACE, b"\0"),
        (LONG, bytes(8)),
        (KRYO, b""),
        (KRYO, b"n"),
    ):
        assert timer_key_changer(namespace)(b"old" + behind, 3, b"newer") == b"newer" + behind
    for namespace, size in ((VOID_NAMESPACE, 1), (LONG, 8)):
        with pytest.raises(ValueError, match="too few bytes"):
            timer_key_changer(namespace)(b"old" + bytes(size - 1), 3, b"newer")


def test_lengths_beyond_the_key() -> None:
    """In a block more bytes follow, and none of them is a part of it."""
    with pytest.raises(IndexError):
        composite_key_reader(STRING, VOID_NAMESPACE, KRYO)(b"\x04abc\0next", 0, 3)
    with pytest.raises(ValueError, match="too few bytes"):
        composite_key_reader(STRING, KRYO, None)(b"\2a\2any\3", 0, 2)


# A savepoint


def operator_of(folder: Path, key: bytes, entries: list[tuple[bytes, bytes]]) -> Operator:
    data = sb.keyed_header(key, [sb.state("m", "MAP", sb.map_of(sb.simple("String"), KRYO_VALUE))])
    content = sb.canonical_key_group([(0, entries)])
    keyed = sb.canonical(3, [len(data)], sb.inline(data + content))
    task = sb.subtask(managed_keyed=keyed)
    (operator,) = read_savepoint(sb.write(folder, [sb.operator([task])])).operators
    return operator


KRYO_VALUE = sb.kryo_of("a.B")


def test_a_subclass_of_a_pojo(tmp_path: Path) -> None:
    """A key that its serializer cannot read, beside others that it can."""
    pojo = sb.pojo_of("a.P", {"n": sb.simple("Int")})
    plain, of_subclass = b"\2\0" + sb.i32(7), b"\4" + sb.utf("a.Q") + b"any"
    entries = [(b"\3" + key + b"\0\2a", b"\0v") for key in (plain, of_subclass)]
    known, unknown = operator_of(tmp_path, pojo, entries).entries()
    assert (known.key, known.user_key, known.key_bytes) == (Pojo("a.P", {"n": 7}), "a", None)
    assert (unknown.key, unknown.user_key, unknown.value) == (None, None, b"v")
    assert unknown.key_bytes == of_subclass + b"\0\2a"
    windows = composite_key_reader(PojoSerializer("a.P", ["n"], [INT]), TIME_WINDOW, None)
    data = of_subclass + sb.i64(1, 2)
    assert windows(data, 0, len(data)) == (
        *(of_subclass, TimeWindow(1, 2), None, None, len(data)),
    )


def test_the_report_says_why_no_keys_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    operator = operator_of(tmp_path, KRYO_VALUE, [(b"\3any\0\2a", b"\0v")])
    why = r"of m: MAP <KRYO(a.B), STRING, KRYO(a.B)> the bytes do not say where a key ends"
    with pytest.raises(SavepointError) as raised:
        operator.key_sizes()
    assert why in str(raised.value)
    assert cli.main(["savepoint", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert why in shown
    assert "key groups with the most bytes, of" in shown
    assert cli.main(["savepoint", str(tmp_path), "--json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)["reports"]
    assert why in report["unknown_keys"]
    assert report["heaviest_keys"] == []
    savepoint = read_savepoint(tmp_path)
    (of_operator,) = operator_reports(savepoint)
    for html in (of_operator._repr_html_(), html_report(savepoint)):
        assert any(why in text for text in Tables(html).paragraphs)
