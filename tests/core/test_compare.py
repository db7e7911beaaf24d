"""Two savepoints compared: what is equal, changed, touched, only here, only there.

Of real points that is counted from what Flink's own classes read in either; what edits change is
known from the edit.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.real_savepoints import POINTS, Point, plain, point, true_entries
from support.bytes.serializer_cases import Case, cases
from support.bytes.source_bytes import file_split, source, versioned
from support.growth import count_bytes
from support.html_tables import shown
from support.inside.savepoints import exact, spill
from support.inside.serializers import AvroSerializer, PojoSerializer

from keygroups import assign_to_key_group
from keygroups.cli import main
from keygroups.errors import InvalidTypeError, InvalidValueError, KeyGroupsError, SavepointError
from keygroups.savepoint import (
    Change,
    EntryDifference,
    FileSplit,
    KafkaOffsets,
    KafkaSplit,
    OperatorComparison,
    Pojo,
    Row,
    Savepoint,
    SavepointComparison,
    SavepointWriter,
    Serializer,
    SpecialOffset,
    SplitDifference,
    StateComparison,
    StateEntry,
    TimeWindow,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.savepoint.comparing import CommittableDifference
from keygroups.savepoint.values import Bitmap, Left, Right
from keygroups.state_keys import BYTES
from keygroups.types import LONG, STRING

KINDS = ("equal", "changed", "touched", "only_here", "only_there")
Counts = dict[tuple[str, str], dict[str, int]]
"""By the id of an operator and the name of a state."""


def counted(comparison: StateComparison) -> dict[str, int]:
    return {kind: number for kind in KINDS if (number := getattr(comparison, kind))}


def compared(here: Point, there: Point) -> tuple[Counts, Counts]:
    """Return the counts of keyed and of operator state, without states that have no entries."""
    report = here.read().compare(there.read())
    keyed, others = (
        {
            (operator.operator_id, state.state): counts
            for operator in report.operators
            for state in getattr(operator, name)
            if (counts := counted(state))
        }
        for name in ("states", "operator_states")
    )
    return keyed, others


def entries(one: Point) -> dict[Any, tuple[Any, Any]]:
    """Return the entries that Flink read: value and times, by all that an entry is found by."""
    found = {}
    for line in true_entries(one.entries, one.archive):
        operator, _, state, kind, _, key, namespace, user_key, value, time, timestamp = line
        if kind == "LIST" and "ttl" in [element[0] for element in value[1] if element]:
            time = tuple(element[1] for element in value[1])
            value = tuple(element[2] for element in value[1])
        found[operator, state, kind, key, namespace, user_key, timestamp] = value, time
    return found


def expected(here: Point, there: Point) -> Counts:
    first, second = entries(here), entries(there)
    counts: dict[tuple[str, str], Counter[str]] = {}
    for place in {**first, **second}:
        if place not in second:
            kind = "only_here"
        elif place not in first:
            kind = "only_there"
        elif first[place][0] != second[place][0]:
            kind = "changed"
        else:
            kind = "equal" if first[place][1] == second[place][1] else "touched"
        counts.setdefault(place[:2], Counter())[kind] += 1
    return {state: dict(found) for state, found in counts.items()}


def elements(one: Point) -> dict[tuple[str, str], Any]:
    """Return the operator state that Flink read: of broadcast state the entries."""
    found: dict[tuple[str, str], Any] = {}
    for line in one.truth("operator_state"):
        place = (line["operator"], line["state"])
        if line["mode"] == "BROADCAST":
            found.setdefault(place, {}).update(plain(line["entries"]))
        else:
            found.setdefault(place, Counter()).update(map(plain, line["elements"]))
    return found


def expected_elements(here: Point, there: Point) -> Counts:
    first, second = elements(here), elements(there)
    counts: Counts = {}
    for place in {**first, **second}:
        left, right = first.get(place, Counter()), second.get(place, Counter())
        if isinstance(left, Counter) and isinstance(right, Counter):
            both = left & right
            found = {
                "equal": both.total(),
                "only_here": (left - both).total(),
                "only_there": (right - both).total(),
            }
        else:
            equal = sum(right.get(key) == value for key, value in left.items())
            common = len(left.keys() & right.keys())
            found = {
                "equal": equal,
                "changed": common - equal,
                "only_here": len(left) - common,
                "only_there": len(right) - common,
            }
        counts[place] = {kind: number for kind, number in found.items() if number}
    return {place: found for place, found in counts.items() if found}


QUICK = [
    ("2.3.0-heap-canonical", "2.3.0-heap-native"),
    ("2.3.0-heap-canonical", "2.3.0-rescaled-canonical"),
    ("2.3.0-heap-canonical", "1.20.5-heap-checkpoint"),
    ("2.3.0-rocksinc-native", "1.17.2-rocksinc-checkpoint"),
    ("1.20.5-heaptimers-canonical", "1.20.5-heaptimers-checkpoint"),
]


def pairs() -> Iterator[Any]:
    """Yield pairs of points to compare: all with the same job, and those with the next ones."""
    names = [one.name for one in POINTS if "pojo" not in one.name]  # Kryo's has the class alone
    for here, there in combinations(names, 2):
        same_job = here.split("-")[1] == there.split("-")[1]
        if same_job or names.index(there) - names.index(here) < 3 or (here, there) in QUICK:
            name = f"{here} {there}"
            if (here, there) in QUICK:
                yield pytest.param(here, there, id=name)
            else:
                yield pytest.param(here, there, id=name, marks=pytest.mark.slow)


@pytest.mark.long
@pytest.mark.parametrize(("here", "there"), [*pairs()])
def test_real_points(here: str, there: str) -> None:
    sides = point(here), point(there)
    keyed, others = compared(*sides)
    assert keyed == expected(*sides)
    assert others == expected_elements(*sides)


# --- states made up ---------------------------------------------------------------------

INTS, LONGS, TEXT = sb.simple("Int"), sb.simple("Long"), sb.simple("String")
Entries = Sequence[tuple[bytes, bytes]]


def canonical(entries: Entries, max_parallelism: int = 128) -> bytes:
    """Return the bytes of key group 3 of a canonical savepoint, its keys in any order."""
    prefix = b"\3" if max_parallelism <= 128 else b"\0\3"
    return sb.canonical_key_group([(0, [(prefix + key, value) for key, value in entries])])


def keyed(
    folder: Path,
    states: Sequence[bytes],
    key_group: bytes,
    *,
    form: Callable[[int, Sequence[int], bytes], bytes] = sb.canonical,
    key: bytes = INTS,
    **of_operator: Any,
) -> Savepoint:
    """Write one operator whose only key group with entries is 3."""
    header = sb.keyed_header(key, states)
    handle = form(3, [len(header)], sb.inline(header + key_group))
    operator = sb.operator([sb.subtask(managed_keyed=handle)], uid="a", **of_operator)
    return read_savepoint(sb.write(folder, [operator]))


def only_state(here: Savepoint, there: Savepoint) -> StateComparison:
    (operator,) = here.compare(there).operators
    (state,) = operator.states
    return state


def keys(*numbers: int) -> list[bytes]:
    return [sb.i32(number) + b"\0" for number in numbers]


ONE = keys(1)[0]


def test_order_of_entries_does_not_count(tmp_path: Path) -> None:
    """The hashmap backend writes entries in the order of its hashes."""
    states = [sb.state("count", "VALUE", INTS)]
    here, there = (
        keyed(tmp_path / str(step), states, canonical([(key, b"abcd") for key in keys(*order)]))
        for step, order in enumerate([(1, 2, 3, 4), (3, 1, 5, 2)])
    )
    state = only_state(here, there)
    assert counted(state) == {"equal": 3, "only_here": 1, "only_there": 1}
    only_here, only_there = state.examples
    assert isinstance(only_here.here, StateEntry)
    assert isinstance(only_there.there, StateEntry)
    assert (only_here.kind, only_here.here.key, only_here.there) == ("only_here", 4, None)
    assert (only_there.kind, only_there.there.key, only_there.here) == ("only_there", 5, None)


@pytest.mark.parametrize(
    ("value", "here", "there", "kind"),
    [
        (sb.simple("Double"), bytes(8), b"\x80" + bytes(7), "changed"),  # 0.0 and -0.0
        (sb.simple("Double"), b"\x7f\xf8" + bytes(6), b"\x7f\xf8" + bytes(6), "equal"),  # NaN
        (
            sb.simple("Double"),
            b"\x7f\xf8" + bytes(6),
            b"\x7f\xf8" + sb.i32(0) + b"\0\1",
            "changed",
        ),
        *(  # BigInteger.TEN is a mark, another 10 its length and 4, and its bytes.
            (value, start + sb.i32(3) + scale, start + sb.i32(5) + number + scale, kind)
            for value, start, scale in (
                (sb.simple("BigInt"), b"", b""),
                (sb.simple("BigDec"), b"", sb.i32(2)),
                (sb.tuple_of(INTS, sb.simple("BigInt")), sb.i32(7), b""),
            )
            for number, kind in ((b"\x0a", "equal"), (b"\x0b", "changed"))
        ),
        (sb.simple("BigDec"), sb.i32(3, 2), sb.i32(3, 1), "changed"),  # 0.10 and 1.0
        (sb.ttl_of(INTS), sb.i64(5) + sb.i32(1), sb.i64(6) + sb.i32(1), "touched"),
        (sb.ttl_of(INTS), sb.i64(5) + sb.i32(1), sb.i64(5) + sb.i32(2), "changed"),
        (sb.ttl_of(INTS), sb.i64(5) + sb.i32(1), sb.i64(6) + sb.i32(2), "changed"),
        (
            sb.map_of(INTS, INTS),
            sb.i32(2, 1) + b"\0" + sb.i32(5, 2) + b"\0" + sb.i32(6),
            sb.i32(2, 2) + b"\0" + sb.i32(6, 1) + b"\0" + sb.i32(5),
            "equal",
        ),
        (
            sb.map_of(INTS, INTS),
            sb.i32(1, 1) + b"\0" + sb.i32(5),
            sb.i32(1, 2) + b"\0" + sb.i32(5),
            "changed",
        ),
        *(
            (
                sb.ttl_of(sb.list_of(sb.map_of(INTS, INTS))),
                sb.i64(5) + sb.i32(1, 2, 1) + b"\0" + sb.i32(5, 2) + b"\0" + sb.i32(6),
                sb.i64(time) + sb.i32(1, 2, 2) + b"\0" + sb.i32(6, 1) + b"\0" + sb.i32(5),
                kind,
            )
            for time, kind in ((5, "equal"), (6, "touched"))
        ),
    ],
)
def test_values(tmp_path: Path, value: bytes, here: bytes, there: bytes, kind: str) -> None:
    sides = (
        keyed(tmp_path / str(step), [sb.state("s", "VALUE", value)], canonical([(ONE, data)]))
        for step, data in enumerate((here, there))
    )
    state = only_state(*sides)
    assert counted(state) == {kind: 1}
    assert state.has_differences == (kind != "equal")
    assert state.differing == state.has_differences
    assert [example.kind for example in state.examples] == [kind] * (kind != "equal")


@pytest.mark.parametrize(
    ("kind", "value", "before", "touched", "changed"),
    [
        ("VALUE", INTS, b"", 0, 4),
        ("VALUE", sb.ttl_of(INTS), b"", 8, 4),
        ("LIST", sb.list_of(INTS), b"", 0, 4),
        ("LIST", sb.list_of(sb.ttl_of(INTS)), b"", 8, 4),
        ("MAP", sb.map_of(INTS, INTS), b"\0", 0, 1 + 4),  # the first says that it is no null
        ("MAP", sb.map_of(INTS, sb.ttl_of(INTS)), b"\0", 8, 1 + 4),
    ],
)
def test_each_byte_of_a_value_counts(
    tmp_path: Path, kind: str, value: bytes, before: bytes, touched: int, changed: int
) -> None:
    """As many entries as a value has bytes, of which each has another one that is not the same."""
    whole = before + bytes(touched + 4)
    entries = keys(*range(len(whole)))
    if kind == "MAP":
        entries = [key + sb.i32(7) for key in entries]
    others = [whole[:at] + b"\1" + whole[at + 1 :] for at in range(len(whole))]
    states = [sb.state("s", kind, value)]
    here = keyed(tmp_path / "here", states, canonical([(entry, whole) for entry in entries]))
    there = keyed(tmp_path / "there", states, canonical([*zip(entries, others)]))
    counts = {"changed": changed, "touched": touched}
    assert counted(only_state(here, there)) == {name: n for name, n in counts.items() if n}


@pytest.mark.parametrize(
    ("here", "there", "kind"),
    [
        ([(5, 1), (6, 2)], [(5, 1), (7, 2)], "touched"),
        ([(5, 1), (6, 2)], [(5, 1), (6, 3)], "changed"),
        ([(5, 1)], [(5, 1), (6, 2)], "changed"),
        ([(5, 1), (6, 2)], [(6, 2), (5, 1)], "changed"),  # a list has an order
    ],
)
def test_elements_with_a_time_to_live(
    tmp_path: Path, here: Sequence[tuple[int, int]], there: Sequence[tuple[int, int]], kind: str
) -> None:
    states = [sb.state("s", "LIST", sb.list_of(sb.ttl_of(INTS)))]
    sides = [
        keyed(
            tmp_path / str(step),
            states,
            canonical([(ONE, b",".join(sb.i64(time) + sb.i32(n) for time, n in elements))]),
        )
        for step, elements in enumerate((here, there))
    ]
    assert counted(only_state(*sides)) == {kind: 1}


def test_nulls_in_a_map(tmp_path: Path) -> None:
    """The hashmap backend writes a null's own form behind its mark, RocksDB does not."""
    states = [sb.state("s", "MAP", sb.map_of(INTS, TEXT))]
    entry = keys(1)[0] + sb.i32(7)
    sides = [
        keyed(tmp_path / str(step), states, canonical([(entry, value)]))
        for step, value in enumerate((b"\1\0", b"\1", b"\0\2a"))
    ]
    assert counted(only_state(*sides[:2])) == {"equal": 1}
    assert counted(only_state(*sides[1:])) == {"changed": 1}


def test_a_null_in_a_map_is_no_byte_of_its_mark(tmp_path: Path) -> None:
    states = [sb.state("s", "MAP", sb.map_of(INTS, sb.simple("Byte")))]
    entry = keys(1)[0] + sb.i32(7)
    sides = [
        keyed(tmp_path / str(step), states, canonical([(entry, value)]))
        for step, value in enumerate((b"\1", b"\0\1"))
    ]
    assert counted(only_state(*sides)) == {"changed": 1}


def case_of(name: str) -> Case:
    return next(case for case in cases() if case.name == name and case.kryo_version == 5)


MAP_OF_AVRO = '{"type": "map", "values": "int"}'


@pytest.mark.parametrize(
    ("value", "here", "there"),
    [
        # A HashMap of b, q and R, as Flink 2.3.0 wrote it, and again after it was read.
        (
            case_of("kryo.HashMap").snapshot,
            "570104030182520206030182620202030182710204",
            "570104030182710204030182520206030182620202",
        ),
        # Flink: AvroSerializer, two items that are a HashMap, in either order.
        (
            sb.snapshot(AvroSerializer.snapshot, 2, sb.utf("a.B") + sb.utf(MAP_OF_AVRO)),
            "02 00000001 61 00000001 00000001 62 00000002 00",
            "02 00000001 62 00000002 00000001 61 00000001 00",
        ),
    ],
)
def test_maps_in_another_order(tmp_path: Path, value: bytes, here: str, there: str) -> None:
    """Java's maps are equal in any order, and a restore makes another one."""
    states = [sb.state("s", "VALUE", value)]
    sides = [
        keyed(tmp_path / str(step), states, canonical([(ONE, bytes.fromhex(data))]))
        for step, data in enumerate((here, there))
    ]
    assert counted(only_state(*sides)) == {"equal": 1}


@pytest.mark.parametrize(
    ("name", "has_fields"),
    [
        ("sql.MAP<STRING NOT NULL, BIGINT>", True),
        ("sql.MULTISET<STRING NOT NULL>", True),
        ("sql.map.0", False),
        ("external.MAP", False),
        ("py.Map.BIGINT", False),
    ],
)
def test_maps_of_sql_in_another_order(tmp_path: Path, name: str, has_fields: bool) -> None:
    case = case_of(name)
    serializer = Serializer.from_snapshot(sb.i32(2) + case.snapshot)
    states = [sb.state("s", "VALUE", case.snapshot)]
    sides = []
    for step, names in enumerate(("ab", "ba")):
        items = {name: ord(name) for name in names}
        value = serializer.encode(Row((items,)) if has_fields else items)
        sides.append(keyed(tmp_path / str(step), states, canonical([(ONE, value)])))
    assert counted(only_state(*sides)) == {"equal": 1}


POJO = [("id", INTS), ("name", TEXT)]


def test_other_serializers_of_values(tmp_path: Path) -> None:
    """A POJO with its fields in another order, one more, and a time to live."""
    one, ann = b"\0" + sb.i32(1), b"\0\4ann"
    pojos = [
        (sb.pojo_of("x.P", dict(POJO)), b"\2" + one + ann),
        (sb.pojo_of("x.P", dict(reversed(POJO))), b"\2" + ann + one),
        (sb.pojo_of("x.P", {**dict(POJO), "more": INTS}), b"\2" + one + ann + b"\1"),
        (sb.ttl_of(sb.pojo_of("x.P", dict(POJO))), sb.i64(5) + b"\2" + one + ann),
    ]
    first, *others = [
        keyed(tmp_path / str(step), [sb.state("s", "VALUE", pojo)], canonical([(ONE, value)]))
        for step, (pojo, value) in enumerate(pojos)
    ]
    states = [only_state(first, other) for other in others]
    assert [counted(state) for state in states] == [{"equal": 1}, {"changed": 1}, {"equal": 1}]
    names = [[change.name for change in state.changes] for state in states]
    assert names == [["value_serializer"], ["value_serializer"], ["has_ttl"]]
    assert all(state.has_differences for state in states)


def test_what_only_the_job_reads(tmp_path: Path) -> None:
    """Its bytes are compared, of the same serializer alone."""
    kryo, other = sb.kryo_of("x.Secret"), sb.kryo_of("x.Other")
    values = [(kryo, b"a"), (kryo, b"a"), (kryo, b"b"), (other, b"a")]
    sides = [
        keyed(tmp_path / str(step), [sb.state("s", "VALUE", item)], canonical([(ONE, value)]))
        for step, (item, value) in enumerate(values)
    ]
    counts = [counted(only_state(sides[0], side)) for side in sides[1:]]
    assert counts == [{"equal": 1}, {"changed": 1}, {"changed": 1}]


def test_what_only_the_job_reads_with_a_time_to_live_in_one_savepoint(tmp_path: Path) -> None:
    """The same bytes behind the time are the same value, others are another."""
    kryo = sb.kryo_of("x.Secret")
    first, *others = (
        keyed(tmp_path / str(step), [sb.state("s", "VALUE", value)], canonical([(ONE, data)]))
        for step, (value, data) in enumerate(
            [
                (kryo, b"a"),
                (sb.ttl_of(kryo), sb.i64(5) + b"a"),
                (sb.ttl_of(kryo), sb.i64(5) + b"b"),
            ]
        )
    )
    counts = [counted(only_state(first, other)) for other in others]
    assert counts == [{"equal": 1}, {"changed": 1}]


def test_values_of_the_same_bytes_are_equal_whatever_they_are(tmp_path: Path) -> None:
    """They are not read, though these are no elements of a list with a time to live."""
    states = [sb.state("s", "LIST", sb.list_of(sb.ttl_of(INTS)))]
    sides = [keyed(tmp_path / name, states, canonical([(ONE, b"no")])) for name in "ab"]
    assert counted(only_state(*sides)) == {"equal": 1}


def test_keys_are_decoded_only_to_be_shown(tmp_path: Path) -> None:
    states = [sb.state("s", "VALUE", INTS)]
    sides = [
        keyed(tmp_path / str(number), states, canonical([(b"no", sb.i32(number))]))
        for number in range(2)
    ]
    assert counted(only_state(sides[0], sides[0])) == {"equal": 1}
    with pytest.raises(SavepointError, match=r"^this savepoint: key group 3: no entry of s: "):
        sides[0].compare(sides[1])


@pytest.mark.parametrize("kind", ["key", "namespace", "kind", "list"])
def test_other_serializers_of_keys(tmp_path: Path, kind: str) -> None:
    """Then no entry has a counterpart."""
    here = keyed(tmp_path / "here", [sb.state("s", "VALUE", INTS)], canonical([(ONE, sb.i32(5))]))
    states, entry, key = {
        "key": (sb.state("s", "VALUE", INTS), sb.i64(1) + b"\0", LONGS),
        "namespace": (
            sb.state("s", "VALUE", INTS, namespace=LONGS),
            sb.i32(1) + sb.i64(0),
            INTS,
        ),
        "kind": (sb.state("s", "MAP", sb.map_of(INTS, INTS)), keys(1)[0] + sb.i32(7), INTS),
        "list": (sb.state("s", "LIST", sb.list_of(INTS)), ONE, INTS),
    }[kind]
    value = b"\0" * (kind == "kind") + sb.i32(5)
    there = keyed(tmp_path / "there", [states], canonical([(entry, value)]), key=key)
    state = only_state(here, there)
    assert counted(state) == {"only_here": 1, "only_there": 1}
    assert state.changes


def test_formats_and_max_parallelisms(tmp_path: Path) -> None:
    """A native file against a canonical one; the key groups of another max parallelism."""
    states = [sb.state("s", "VALUE", INTS)]
    here = keyed(tmp_path / "here", states, canonical([(key, sb.i32(5)) for key in keys(3, 1, 2)]))
    entries = b"".join(b"\0" + sb.i32(key, 5) for key in (2, 3, 4))
    native = keyed(
        tmp_path / "native", states, sb.i32(3) + b"\0\0" + sb.i32(3) + entries, form=sb.native
    )
    wide = keyed(
        tmp_path / "wide",
        states,
        canonical([(key, sb.i32(5)) for key in keys(4, 2, 3)], 4096),
        max_parallelism=4096,
    )
    expected_counts = {"equal": 2, "only_here": 1, "only_there": 1}
    for there in (native, wide):
        assert counted(only_state(here, there)) == expected_counts
    (operator,) = here.compare(wide).operators
    assert operator.changes == (("max_parallelism", 128, 4096),)
    assert counted(only_state(native, wide)) == {"equal": 3}


# --- operator state ---------------------------------------------------------------------


SPLIT_DISTRIBUTE, UNION, BROADCAST = range(3)


def with_operator_state(
    folder: Path,
    mode: int,
    copies: Sequence[Sequence[bytes]],
    coordinator: bytes = b"\0",
    value: bytes = INTS,
) -> Savepoint:
    """Write one operator with a subtask for each list of elements; of a broadcast state a copy."""
    serializers = {"VALUE_SERIALIZER": value}
    lists, broadcasts = [sb.meta_info("s", 1, {}, serializers)], []
    if mode == BROADCAST:
        lists, broadcasts = [], [sb.meta_info("s", 2, {}, {**serializers, "KEY_SERIALIZER": INTS})]
    start = sb.operator_header(lists, broadcasts)
    subtasks = []
    for index, elements in enumerate(copies):
        offsets = [len(start) + sum(map(len, elements[:place])) for place in range(len(elements))]
        stream = sb.inline(start + b"".join(elements))
        handle = sb.operator_state([("s", mode, offsets)], stream)
        subtasks.append(sb.subtask(index, managed_operator=handle))
    parallelism = max(1, len(copies))
    operator = sb.operator(subtasks, uid="a", parallelism=parallelism, coordinator=coordinator)
    return read_savepoint(sb.write(folder, [operator]))


def operator_state(here: Savepoint, there: Savepoint) -> StateComparison:
    (operator,) = here.compare(there).operators
    (state,) = operator.operator_states
    return state


def ints(*numbers: int) -> list[bytes]:
    return [*map(sb.i32, numbers)]


def test_elements_of_lists(tmp_path: Path) -> None:
    """As a whole, each as often as it is there; neither their order nor their subtask counts."""
    here = with_operator_state(tmp_path / "here", SPLIT_DISTRIBUTE, [ints(1, 2), ints(2, 3, 3)])
    there = with_operator_state(
        tmp_path / "there", SPLIT_DISTRIBUTE, [ints(3, 2, 1), [], ints(3, 3, 4)]
    )
    state = operator_state(here, there)
    assert counted(state) == {"equal": 4, "only_here": 1, "only_there": 2}
    elements = [(one.kind, (one.here or one.there)) for one in state.examples]
    assert [(kind, one.value) for kind, one in elements if one is not None] == [
        ("only_here", 2),
        ("only_there", 3),
        ("only_there", 4),
    ]
    union = with_operator_state(tmp_path / "union", UNION, [ints(1, 2), ints(2, 3, 3)])
    state = operator_state(here, union)
    assert counted(state) == {"equal": 5}
    assert state.changes == (("state", "SPLIT_DISTRIBUTE, INT", "UNION, INT"),)


def test_entries_of_a_broadcast_state(tmp_path: Path) -> None:
    """Each subtask has a copy, whose order says nothing."""
    pairs_here, pairs_there = sb.i32(3, 1, 5, 2, 6, 3, 7), sb.i32(3, 3, 7, 1, 8, 4, 9)
    here = with_operator_state(tmp_path / "here", BROADCAST, [[pairs_here], [pairs_here]])
    there = with_operator_state(tmp_path / "there", BROADCAST, [[pairs_there]] * 3)
    state = operator_state(here, there)
    assert counted(state) == {"equal": 1, "changed": 1, "only_here": 1, "only_there": 1}
    shown = [str(example) for example in state.examples]
    assert shown == ["key 1: 5 -> 8", "key 2: 6 -> none", "key 4: none -> 9"]
    lists = with_operator_state(tmp_path / "lists", SPLIT_DISTRIBUTE, [ints(1)])
    state = operator_state(here, lists)  # in which nothing is an entry
    assert counted(state) == {"only_here": 3, "only_there": 1}


@pytest.mark.parametrize(("last", "kind"), [(5, "equal"), (6, "changed")])
def test_maps_in_a_broadcast_state(last: int, kind: str, tmp_path: Path) -> None:
    """A restore leaves them in another order."""
    items = [sb.i32(1) + b"\0" + sb.i32(5), sb.i32(2) + b"\0" + sb.i32(5)]
    other = [items[1], sb.i32(1) + b"\0" + sb.i32(last)]
    here, there = (
        with_operator_state(
            tmp_path / str(step),
            BROADCAST,
            [[sb.i32(1, 7, 2) + b"".join(held)]],
            value=sb.map_of(INTS, INTS),
        )
        for step, held in enumerate((items, other))
    )
    assert counted(operator_state(here, there)) == {kind: 1}


# KafkaSourceEnumStateSerializer.serializeV2, in the frame of SourceCoordinator.toBytes.
KAFKAS = [
    sb.inline(sb.i32(1, 2, 27, 2) + (first + second) + b"\1")
    for first, second in permutations([sb.utf("a") + sb.i32(0, 0), sb.utf("b") + sb.i32(0, 1)])
]


@pytest.mark.parametrize(
    ("here", "there", "found"),
    [
        (b"\0", b"\0", None),
        (sb.inline(b"a"), sb.inline(b"a"), "equal"),
        (sb.inline(b"a"), sb.inline(b"b"), "changed"),
        (sb.inline(b"a"), b"\0", "only_here"),
        (b"\0", sb.inline(b"a"), "only_there"),
        (KAFKAS[0], KAFKAS[1], "equal"),  # two partitions of a hash set, in either order
    ],
)
def test_coordinators(tmp_path: Path, here: bytes, there: bytes, found: str | None) -> None:
    sides = [
        with_operator_state(tmp_path / str(step), SPLIT_DISTRIBUTE, [], coordinator)
        for step, coordinator in enumerate((here, there))
    ]
    report = sides[0].compare(sides[1])
    (operator,) = report.operators
    assert operator.coordinator == found
    assert report.has_differences == (found not in (None, "equal"))
    (operator,) = sides[0].compare(sides[1], states=[]).operators
    assert operator.coordinator is None  # nobody asked for it


def test_splits_of_a_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each partition by itself, beside the bytes that the readers hold."""
    old: dict[tuple[str, int], int | SpecialOffset] = {("clicks", 0): 5, ("clicks", 1): 7}
    new: dict[tuple[str, int], int | SpecialOffset] = {("clicks", 0): 9, ("clicks", 1): 7}
    old["views", 0], new["views", 1] = SpecialOffset.EARLIEST, 3
    for partition in range(2, 5):  # another subtask may have them
        old["clicks", partition] = new["clicks", partition] = 7
    for parallelism, offsets in enumerate((old, new), 1):
        with SavepointWriter(tmp_path / str(parallelism)) as writer:
            writer.add_source("src", KafkaOffsets(offsets), 128, parallelism)
    here, there = (read_savepoint(tmp_path / name) for name in ("1", "2"))
    (operator,) = here.compare(there, ["src"]).operators
    splits = [(split.kind, split.here or split.there) for split in operator.splits]
    assert [
        (kind, split.topic, split.partition)
        for kind, split in splits
        if isinstance(split, KafkaSplit)
    ] == [("changed", "clicks", 0), ("only_here", "views", 0), ("only_there", "views", 1)]
    lines = str(operator).splitlines()
    assert lines[0] == "src: parallelism: 1 -> 2"
    assert "  changed    split clicks/0: offset 5 -> 9" in lines
    assert "  only there split views/1: none -> offset 3, is_assigned True" in lines
    assert ["src", "", "parallelism: 1 -> 2"] in shown(here.compare(there, ["src"])).rows
    (state,) = operator.operator_states
    assert counted(state) == {"equal": 4, "only_here": 2, "only_there": 2}
    assert main(["diff", here.path, there.path, "--operator", "src", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)["operators"][0]["splits"]
    assert [(split["kind"], split["here"] and split["here"]["offset"]) for split in data] == [
        ("changed", 5),
        ("only_here", "EARLIEST"),
        ("only_there", None),
    ]


def test_splits_of_a_source_that_one_savepoint_has(tmp_path: Path) -> None:
    """No split is compared by itself then, nor where their state is not asked for."""
    for folder, offset in (("old", 5), ("new", 9)):
        with SavepointWriter(tmp_path / folder) as writer:
            writer.add_source("src", KafkaOffsets({("clicks", 0): offset}), 128, 1)
    with SavepointWriter(tmp_path / "other") as writer:
        writer.add_operator("op", STRING, [ValueStateDescriptor("count", LONG)], 128, 1)
    old, new, other = (read_savepoint(tmp_path / name) for name in ("old", "new", "other"))
    for here, there in ((old, other), (other, old)):
        assert [operator.splits for operator in here.compare(there).operators] == [(), ()]
    (operator,) = old.compare(new, ["src"], ["SourceReaderState"]).operators
    assert [str(split) for split in operator.splits] == ["split clicks/0: offset 5 -> 9"]
    (operator,) = old.compare(new, ["src"], []).operators
    assert operator.splits == ()


def test_splits_of_files(tmp_path: Path) -> None:
    """Each is found by its id, as one file may be cut into several."""
    sides = []
    for name, positions in (("old", (20, 30)), ("new", (20, 40))):
        elements = [
            versioned(1, file_split(f"000000000{number}", position=(-1, position)))
            for number, position in enumerate(positions)
        ]
        source(tmp_path / name, [elements])
        sides.append(read_savepoint(tmp_path / name))
    (operator,) = sides[0].compare(sides[1]).operators
    assert [str(split) for split in operator.splits] == [
        "split 0000000001: position (-1, 30) -> (-1, 40)"
    ]


def test_splits_of_another_source_that_one_savepoint_has(tmp_path: Path) -> None:
    """They are compared as elements alone."""
    source(tmp_path / "old", [[versioned(7, b"a")]])
    source(tmp_path / "new", [[versioned(7, b"a")], [versioned(7, b"b")]])
    old, new = (read_savepoint(tmp_path / name) for name in ("old", "new"))
    for here, there, kind in ((old, new, "only_there"), (new, old, "only_here")):
        (operator,) = here.compare(there).operators
        assert operator.splits == ()
        assert counted(operator.operator_states[0]) == {"equal": 1, kind: 1}


def test_splits_of_another_source(tmp_path: Path) -> None:
    """Whose bytes are compared."""
    values = {"VALUE_SERIALIZER": BYTES.snapshot_bytes()[4:]}
    info = sb.meta_info("SourceReaderState", 1, {}, values)
    start = sb.operator_header([info], [])
    sides = []
    for name in ("a", "b", ""):
        split = sb.i32(1, len(name)) + name.encode() if name else b""
        stream = sb.inline(start + sb.i32(len(split)) + split)
        handle = sb.operator_state([("SourceReaderState", 0, [len(start)])], stream)
        source = sb.operator([sb.subtask(managed_operator=handle)], uid="a")
        sides.append(read_savepoint(sb.write(tmp_path / f"side {name}", [source])))
    for other in sides[1:]:  # the last one's are no split at all
        (operator,) = sides[0].compare(other).operators
        assert operator.splits == ()
        assert counted(operator.operator_states[0]) == {"only_here": 1, "only_there": 1}


# --- whole savepoints -------------------------------------------------------------------


def written(folder: Path, operators: dict[str, dict[str, int]], maximum: int = 128) -> Savepoint:
    """Write operators by their uids, of a state `count` String -> Long."""
    with SavepointWriter(folder) as writer:
        for uid, counts in operators.items():
            states = [ValueStateDescriptor("count", LONG)]
            operator = writer.add_operator(uid, STRING, states, maximum, 2)
            for key in sorted(counts, key=operator.key_group):
                operator.write("count", key, counts[key])
    return read_savepoint(folder)


def test_operators_of_one_savepoint_alone(tmp_path: Path) -> None:
    here = written(tmp_path / "here", {"a": {"ann": 1}, "b": {"ann": 1, "bob": 2}})
    there = written(tmp_path / "there", {"c": {"ann": 1}, "a": {"ann": 1}})
    report = here.compare(there)
    assert [operator.only for operator in report.operators] == [None, "only_here", "only_there"]
    assert [counted(operator.states[0]) for operator in report.operators] == [
        {"equal": 1},
        {"only_here": 2},
        {"only_there": 1},
    ]
    found = [(one.operator, one.kind) for one in here.differences(there)]
    (b, c) = (operator.operator for operator in report.operators[1:])
    assert found == [(b, "only_here")] * 2 + [(c, "only_there")]


def test_chosen_operators_and_states(tmp_path: Path) -> None:
    here = written(tmp_path / "here", {"a": {"ann": 1}, "b": {"ann": 1}})
    there = written(tmp_path / "there", {"a": {"ann": 2}, "c": {"ann": 2}})
    assert [by.operator for by in here.compare(there, ["c", "a"]).operators] == ["c", "a"]
    assert [by.kind for by in here.differences(there, ["a"], ["count"])] == ["changed"]
    with pytest.raises(InvalidValueError, match=r"operator must be .* got 'd'"):
        here.compare(there, ["d"])
    with pytest.raises(InvalidValueError, match=r"states must be .* got 'sum'"):
        here.compare(there, ["a"], ["count", "sum"])
    with pytest.raises(InvalidTypeError, match="operators must be an iterable of names, got 'a'"):
        here.compare(there, "a")
    with pytest.raises(InvalidTypeError, match="operator must be a str, got 5"):
        here.compare(there, [5])  # type: ignore[list-item]  # a user may do so
    with pytest.raises(InvalidTypeError, match="other must be a Savepoint"):
        here.compare(tmp_path)  # type: ignore[arg-type]


def test_a_name_of_two_operators(tmp_path: Path) -> None:
    names = [
        sb.write(
            tmp_path / str(number),
            [sb.operator([], name="map", uid="", operator_id=bytes([number]) * 16)],
        )
        for number in (1, 2)
    ]
    here, there = map(read_savepoint, names)
    with pytest.raises(InvalidValueError, match=r"must be the same in both .* 0101.*, 0202"):
        here.compare(there, ["map"])


def test_edits_are_found(tmp_path: Path) -> None:
    """What an edit of a real savepoint does, and no more."""
    old = point("2.3.0-heap-canonical").read()
    users = sorted({entry.key for entry in old.operator("by-string").entries(["count"])})
    gone, poisoned = users[:3], users[5]
    with SavepointWriter.from_existing_savepoint(old, tmp_path / "new") as editor:
        by_string = editor.operator("by-string")
        by_string.delete_keys(gone)
        by_string.map_entries(
            "sum", lambda entry: entry._replace(value=-1) if entry.key == poisoned else entry
        )
        by_string.set_ttl("count", True, last_access=1_700_000_000_000)
        by_string.set_ttl("label", True, last_access=1_700_000_000_000)  # it has one already
    new = read_savepoint(tmp_path / "new")
    (compared_one,) = old.compare(new, ["by-string"]).operators
    (count,) = (state for state in compared_one.states if state.state == "count")
    assert [change.name for change in count.changes] == ["has_ttl"]
    differences = [*old.differences(new, ["by-string"])]
    kinds = Counter(one.kind for one in differences)
    lost = Counter(
        line["state"]
        for line in point("2.3.0-heap-canonical").lines("2.3.0-heap-canonical/entries.jsonl")
        if line["operator"] == old.operator("by-string").operator_id and line["key"] in gone
    )
    assert kinds == {"only_here": lost.total(), "changed": 1, "touched": len(users) - len(gone)}
    assert {one.state for one in differences if one.kind == "touched"} == {"label"}
    assert Counter(one.state for one in differences if one.kind == "only_here") == lost
    (changed,) = (one for one in differences if one.kind == "changed")
    assert isinstance(changed.here, StateEntry)
    assert isinstance(changed.there, StateEntry)
    assert (changed.state, changed.here.key, changed.there.value) == ("sum", poisoned, -1)
    assert {one.operator for one in differences} == {"by-string"}


# --- what is damaged, and how much is held ----------------------------------------------


@pytest.mark.parametrize(("damaged", "named"), [(0, "this savepoint"), (1, "the other savepoint")])
def test_errors_name_the_savepoint(tmp_path: Path, damaged: int, named: str) -> None:
    """Of the same folder both may be, so that a path alone does not say which."""
    whole = canonical([(ONE, sb.i32(5))])
    damages = {
        "end too early": whole[:-3],
        "twice": canonical([(ONE, sb.i32(5)), (ONE, sb.i32(6))]),
        "no entry": canonical([(ONE, b"a")]),
    }
    for step, (message, data) in enumerate(damages.items()):
        sides = [
            keyed(tmp_path / f"{step} {side}", [sb.state("s", "VALUE", INTS)], bytes_of_side)
            for side, bytes_of_side in enumerate([data, whole] if damaged == 0 else [whole, data])
        ]
        with pytest.raises(SavepointError, match=f"^{named}: .*{message}"):
            sides[0].compare(sides[1])


def test_subtasks_in_another_order(tmp_path: Path) -> None:
    """The key groups of the first are behind those of the second."""
    header = sb.keyed_header(INTS, [sb.state("s", "VALUE", INTS)])
    sides: list[Savepoint] = []
    for key_groups in [(4, 3), (3, 4)]:
        subtasks = []
        for index, key_group in enumerate(key_groups):
            entries = [(bytes([key_group]) + key, sb.i32(5)) for key in keys(1, 2)]
            stream = sb.inline(header + sb.canonical_key_group([(0, entries)]))
            handle = sb.canonical(key_group, [len(header)], stream)
            subtasks.append(sb.subtask(index, managed_keyed=handle))
        operator = sb.operator(subtasks, uid="a", parallelism=2)
        sides.append(read_savepoint(sb.write(tmp_path / str(len(sides)), [operator])))
    assert counted(only_state(*sides)) == {"equal": 4}


def test_other_serializers_in_another_subtask(tmp_path: Path) -> None:
    for step, state in enumerate(
        [sb.state("s", "VALUE", LONGS), sb.state("s", "LIST", sb.list_of(INTS))]
    ):
        headers = [sb.keyed_header(INTS, [each]) for each in (sb.state("s", "VALUE", INTS), state)]
        subtasks = [
            sb.subtask(index, managed_keyed=sb.canonical(index, [0], sb.inline(header)))
            for index, header in enumerate(headers)
        ]
        one = read_savepoint(
            sb.write(tmp_path / str(step), [sb.operator(subtasks, uid="a", parallelism=2)])
        )
        with pytest.raises(SavepointError, match=r"other serializers of s: .* in subtask 1"):
            one.compare(one)


def test_more_than_memory_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By way of a file, in many runs, the same is found."""
    here = written(tmp_path / "here", {"a": {f"key {n}": n for n in range(300)}})
    changed = {f"key {n}": n + (n % 10 == 0) for n in range(20, 330)}
    there = written(tmp_path / "there", {"a": changed}, 4096)
    expected_counts = {"equal": 252, "changed": 28, "only_here": 20, "only_there": 30}
    assert counted(only_state(here, there)) == expected_counts
    monkeypatch.setattr(spill, "_HELD", 5_000)
    assert counted(only_state(here, there)) == expected_counts
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(SavepointError, match="cannot be written"):
        here.compare(there)


def test_memory_does_not_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes counted: four times the entries of a key group take what a run takes."""
    monkeypatch.setattr(spill, "_HELD", 25_000)
    monkeypatch.setattr(spill, "_BUFFERED", 200)
    used = []
    for count in (300, 1_200):
        states = [sb.state("s", "VALUE", INTS)]
        entries = canonical([(key, b"abcd") for key in keys(*range(count, 0, -1))])
        header = sb.keyed_header(INTS, states)
        path = tmp_path / str(count)
        path.mkdir()
        (path / "keyed").write_bytes(header + entries)
        stream = sb.relative("keyed", len(header + entries))
        handle = sb.canonical(3, [len(header)], stream)
        one = read_savepoint(sb.write(path, [sb.operator([sb.subtask(managed_keyed=handle)])]))
        assert counted(only_state(one, one)) == {"equal": count}
        used.append(count_bytes(lambda one=one: one.compare(one)))  # type: ignore[misc]
    assert used[1] < 2 * used[0]


# --- the command ------------------------------------------------------------------------


@pytest.fixture
def sides(tmp_path: Path) -> tuple[str, str]:
    written(tmp_path / "old", {"a": {"ann": 1, "bob": 2}})
    written(tmp_path / "new", {"a": {"ann": 1, "bob": 3}})
    return str(tmp_path / "old"), str(tmp_path / "new")


def test_command(sides: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    old, new = sides
    assert main(["diff", old, new, "--operator", "a", "--state", "count"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"here:  {old}",
        f"there: {new}",
        "1 operators, 1 with differences",
        "a",
        "  count: VALUE",
        "    1 equal, 1 changed",
        "      changed    key 'bob': 2 -> 3",
    ]
    assert main(["diff", old, new, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["here"], data["there"], data["has_differences"]) == (old, new, True)
    (operator,) = data["operators"]
    (state,) = operator["states"]
    assert (state["equal"], state["changed"], state["changes"]) == (1, 1, [])
    entry = {"key_group": assign_to_key_group("bob", 128), "subtask": 1, "key": "bob"}
    nothing = {"namespace": None, "user_key": None, "last_access": None, "timestamp": None}
    (example,) = state["examples"]
    assert example == {
        "kind": "changed",
        "here": {**entry, **nothing, "value": 2},
        "there": {**entry, **nothing, "value": 3},
    }


def test_command_in_json_has_changes_by_their_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of an operator, and those of a state: a serializer is text, and what is none null."""
    paths = [str(tmp_path / "old"), str(tmp_path / "new")]
    for path, value, maximum in zip(paths, (LONG, STRING), (128, 256)):
        with SavepointWriter(path) as writer:
            names = ["s"] if value is LONG else ["s", "t"]
            states = [ValueStateDescriptor(name, value) for name in names]
            operator = writer.add_operator("a", STRING, states, maximum, 2)
            operator.write("s", "ann", 5 if value is LONG else "5")
    assert main(["diff", *paths, "--json"]) == 0
    (reports,) = json.loads(capsys.readouterr().out)["operators"]
    assert reports["changes"] == [{"name": "max_parallelism", "here": 128, "there": 256}]
    state, added = reports["states"]
    assert state["changes"] == [{"name": "value_serializer", "here": "LONG", "there": "STRING"}]
    only_there = {"name": "state", "here": None, "there": "t: VALUE <STRING, STRING>"}
    assert added["changes"] == [only_there]
    counts = ["equal", "changed", "touched", "only_here", "only_there"]
    assert list(state) == ["state", "kind", "changes", *counts, "examples"]
    assert list(reports) == [
        *("operator", "operator_id", "only", "changes", "states", "operator_states", "splits"),
        *("coordinator", "has_channel_state", "committables"),
    ]


def test_status(sides: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """That of diff, if it is asked for."""
    old, new = sides
    assert main(["diff", old, new]) == 0
    assert main(["diff", old, new, "--exit-code"]) == 1
    assert main(["diff", old, old, "--exit-code"]) == 0
    assert main(["diff", old, f"{new}-gone"]) == 1
    assert main(["diff", old, f"{new}-gone", "--exit-code"]) == 2
    assert main(["diff", old, new, "--operator", "b"]) == 2
    assert capsys.readouterr().err.count("\n") == 3


def test_where_files_are_now(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--moved is for both, and so are --uids."""
    old = point("2.3.0-rocksinc-checkpoint")
    moved = [f"--moved={before}={now}" for before, now in old.moved.items()]
    (tmp_path / "uids").write_text("by-string\n")
    path = str(old.path)
    arguments = ["--uids", str(tmp_path / "uids"), "--operator", "by-string"]
    assert main(["diff", path, path, *moved, *arguments, "--exit-code"]) == 0
    assert "1 operators, all equal" in capsys.readouterr().out


# --- how it is shown --------------------------------------------------------------------


def test_report(tmp_path: Path) -> None:
    here = written(tmp_path / "here", {"a": {f"{n:04}" * 30: n for n in range(200)}})
    there = written(tmp_path / "there", {"a": {f"{n:04}" * 30: n + n % 2 for n in range(150)}})
    here.operator("a")
    report = here.compare(there)
    text = str(report).splitlines()
    assert text[:6] == [
        f"here:  {tmp_path / 'here'}",
        f"there: {tmp_path / 'there'}",
        "1 operators, 1 with differences",
        "a",
        "  count: VALUE",
        "    75 equal, 75 changed, 50 only here",
    ]
    assert text[-1] == "      and 120 more"
    assert max(map(len, text[2:])) <= 80
    page = shown(report)
    assert page.paragraphs == text[:3]
    assert page.rows[0] == ["operator", "state", *(kind.replace("_", " ") for kind in KINDS)]
    assert page.rows[1] == ["a", "count", "75", "75", "0", "50", "0"]
    (state,) = report.operators[0].states
    assert page.rows[3:] == [
        ["a", "count", example.kind.replace("_", " "), str(example)] for example in state.examples
    ]
    styles = [value for name, value in page.attributes if name == "style"]
    left, right = "text-align:left", "text-align:right"
    assert styles[:7] == styles[7:14] == [left, left, *[right] * 5]
    assert {*styles[14:]} == {left}
    assert repr(report) == "<SavepointComparison: 1 operators, 1 with differences>"
    assert str(here.compare(here)).endswith("1 operators, all equal")
    assert not here.compare(here).has_differences
    page = shown(here.compare(here))
    assert page.paragraphs[-1] == "equal: 1 states, 200 entries"
    assert page.rows == []


def test_report_of_several_states(tmp_path: Path) -> None:
    """Those that are equal are summed up, and a property of one stands by its name."""
    sides = []
    for name, value, data in (
        ("here", INTS, sb.i32(5)),
        ("there", sb.ttl_of(INTS), sb.i64(7) + sb.i32(5)),
    ):
        states = [sb.state("s", "VALUE", value), *(sb.state(n, "VALUE", INTS) for n in "tu")]
        of_states = [(keys(1), data), (keys(1, 2), sb.i32(5)), (keys(3), sb.i32(5))]
        entries_of_states = [
            (number, [(b"\3" + key, content) for key in of_state])
            for number, (of_state, content) in enumerate(of_states)
        ]
        sides.append(keyed(tmp_path / name, states, sb.canonical_key_group(entries_of_states)))
    report = sides[0].compare(sides[1])
    assert str(report).splitlines()[3:] == [
        "a",
        "  s: VALUE",
        "    1 equal",
        "    has ttl: False -> True",
        "  equal: 2 states, 3 entries",
    ]
    page = shown(report)
    assert page.captions == ["Properties that differ", "Entries of states that differ"]
    assert page.rows == [
        ["operator", "state", "property"],
        ["a", "s", "has ttl: False -> True"],
        ["operator", "state", *(kind.replace("_", " ") for kind in KINDS)],
        ["a", "s", "1", "0", "0", "0", "0"],
    ]
    assert page.paragraphs[-1] == "equal: 2 states, 3 entries"
    styles = [value for name, value in page.attributes if name == "style"]
    assert set(styles[:6]) == {"text-align:left"}


def test_notebooks_show_fifty_entries(tmp_path: Path) -> None:
    counts = {str(number): number for number in range(5)}
    here = written(tmp_path / "here", {f"{number}": counts for number in range(11)})
    there = written(tmp_path / "there", {"others": counts})
    page = shown(here.compare(there))
    rows = [row for row in page.rows if row[2] == "only here"]
    assert Counter(map(len, rows)) == {3: 11, 4: 50}  # operators, entries
    assert ["operator", "state", "which", "entry"] in page.rows
    assert page.captions[-1] == "Entries that differ; 10 others are left out"


def test_hostile_names(tmp_path: Path) -> None:
    name = "<script>\x1b[2J\u202e"
    here = written(tmp_path / "here", {"a": {name: 1}})
    there = written(tmp_path / "there", {"b": {name: 1}})
    for savepoint in (here, there):
        for operator in savepoint.operators:
            operator.uid = name
    report = here.compare(there)
    assert all(line.isprintable() for line in str(report).splitlines())
    page = report._repr_html_()
    assert "<script" not in page
    assert page.isprintable()


# --- values that are decoded ------------------------------------------------------------


class Money:
    """A value of a serializer of the caller's own, which says what it is equal to."""

    def __init__(self, cents: int) -> None:
        self.cents = cents

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Money) and self.cents == other.cents

    def __hash__(self) -> int:
        return hash(self.cents)


BITMAP = b"\x3a\x30\0\0\1\0\0\0" + b"\0\0\1\0" + b"\x10\0\0\0" + b"\3\0\x0a\0"


@pytest.mark.parametrize(
    ("here", "there"),
    [
        (0.0, -0.0),
        (1, True),
        (1, 1.0),
        ("1", 1),
        ([1], [True]),
        ([1], (1,)),
        ([1, 2], [2, 1]),
        ({1: 0.0}, {1: -0.0}),
        ({1}, {True}),
        (Row((1,)), Row((1,), "-U")),
        (Row((0.0,)), Row((-0.0,))),
        (Pojo("x.A", {"n": 1}), Pojo("x.B", {"n": 1})),
        (Pojo("x.A", {"n": 1}), Pojo("x.A", {"n": True})),
        (Left(1), Right(1)),
        (Left(1), Left(True)),
        (Decimal("1.5"), Decimal("1.50")),
        (Money(1), Money(2)),
        (Bitmap(BITMAP), Bitmap(BITMAP[:-2] + b"\x0b\0")),
    ],
)
def test_values_that_are_not_the_same(here: Any, there: Any) -> None:
    """Some of which are equal in Python."""
    assert exact(here) != exact(there)


@pytest.mark.parametrize(
    ("here", "there"),
    [
        (float("nan"), float("nan")),
        ({1: 2, 3: 4}, {3: 4, 1: 2}),
        ({frozenset({1, 2})}, {frozenset({2, 1})}),
        (Pojo("x.A", {"n": 1, "m": [{2}]}), Pojo("x.A", {"m": [{2}], "n": 1})),
        (Money(1), Money(1)),
        (Bitmap(BITMAP), Bitmap(BITMAP)),
    ],
)
def test_values_that_are_the_same(here: Any, there: Any) -> None:
    """Some of which are not equal in Python."""
    assert exact(here) == exact(there)


@pytest.mark.slow
def test_values_of_every_serializer() -> None:
    """Two values are the same only if Flink read the same in them."""
    count = 0
    for case in cases():
        seen: dict[Any, str] = {}
        for value in case.values:
            try:
                snapshot = b"\0\0\0\2" + case.snapshot
                serializer = Serializer.from_snapshot(snapshot, kryo_version=case.kryo_version)
                decoded = serializer.decode(value.data)
            except KeyGroupsError:  # only the job reads it
                continue
            read_by_flink = json.dumps(value.json, sort_keys=True)
            assert exact(decoded) == exact(serializer.decode(value.data))
            if case.name != "kryo.Optional":  # an empty one is None there, and so is a null
                assert seen.setdefault(exact(decoded), read_by_flink) == read_by_flink
            count += 1
    assert count > 10_000


# --- what is rare -----------------------------------------------------------------------


def test_lists_that_only_the_job_reads(tmp_path: Path) -> None:
    """Their times and elements cannot be told apart: they are changed if the bytes are."""
    subclass = sb.pojo_of("x.P", {"id": INTS})
    unread = b"\4" + sb.utf("x.Q") + b"1"  # a subclass that no snapshot has
    for name, element, values in [
        ("kryo", sb.kryo_of("x.Secret"), (b"a", b"b")),
        ("pojo", subclass, (unread + b"1", unread + b"2")),
    ]:
        states = [sb.state("s", "LIST", sb.list_of(sb.ttl_of(element)))]
        here, there = (
            keyed(tmp_path / f"{name} {step}", states, canonical([(ONE, sb.i64(5) + value)]))
            for step, value in enumerate(values)
        )
        assert counted(only_state(here, there)) == {"changed": 1}
        assert counted(only_state(here, here)) == {"equal": 1}


@pytest.mark.parametrize(
    ("state", "here", "there"),
    [
        (sb.state("s", "LIST", sb.list_of(sb.ttl_of(INTS))), sb.i64(5), sb.i64(6)),
        (sb.state("s", "VALUE", sb.map_of(INTS, INTS)), sb.i32(1, 2), sb.i32(1, 3)),
    ],
)
def test_values_that_are_no_values(
    tmp_path: Path, state: bytes, here: bytes, there: bytes
) -> None:
    sides = [
        keyed(tmp_path / str(step), [state], canonical([(ONE, value)]))
        for step, value in enumerate((here, there))
    ]
    with pytest.raises(SavepointError, match=r"^this savepoint: key group 3: no entry of s: "):
        sides[0].compare(sides[1])


def test_raw_state_and_what_is_in_flight(tmp_path: Path) -> None:
    channel = b"\1" + sb.i32(0, 1, 2, 2) + sb.i64(5, 6) + sb.i64(7) + sb.inline(b"x")
    sides = []
    for data in (b"ab", b"ac"):
        raw = sb.operator_state([("raw", 0, [0, 1])], sb.inline(data))
        subtask = sb.subtask(raw_operator=raw, inputs=[channel])
        operator = sb.operator([subtask], uid="a", coordinator=sb.inline(data))
        sides.append(read_savepoint(sb.write(tmp_path / data.decode(), [operator])))
    report = sides[0].compare(sides[1])
    (compared_one,) = report.operators
    (state,) = compared_one.operator_states
    assert counted(state) == {"equal": 1, "only_here": 1, "only_there": 1}
    assert str(report).splitlines()[3:] == [
        "a",
        "  raw: SPLIT_DISTRIBUTE",
        "    1 equal, 1 only here, 1 only there",
        "      only here  element: b'b'",
        "      only there element: b'c'",
        "  coordinator: changed",
        "  in-flight data of an unaligned checkpoint is not compared",
    ]
    assert shown(report).rows[1:3] == [
        ["a", "", "coordinator: changed"],
        ["a", "", "in-flight data of an unaligned checkpoint is not compared"],
    ]
    same = sides[0].compare(sides[0])
    assert not same.has_differences
    assert str(same).splitlines()[3] == "a: equal"


def test_broadcast_states_that_only_the_job_reads(tmp_path: Path) -> None:
    values = {"VALUE_SERIALIZER": sb.kryo_of("x.Secret"), "KEY_SERIALIZER": INTS}
    start = sb.operator_header([], [sb.meta_info("s", 2, {}, values)])
    sides = []
    for data in (b"a", b"b"):
        encoded = start + sb.i32(2, 5) + data * 2  # two entries, and nothing tells their ends
        handle = sb.operator_state([("s", BROADCAST, [len(start)])], sb.inline(encoded))
        operator = sb.operator([sb.subtask(managed_operator=handle)], uid="a")
        sides.append(read_savepoint(sb.write(tmp_path / data.decode(), [operator])))
    state = operator_state(*sides)
    assert counted(state) == {"changed": 1}
    [example] = map(str, state.examples)
    assert example == r"element: ...\x00\x05aa' -> ...\x00\x05bb'"
    assert example.endswith(r"x05bb'")


@pytest.mark.parametrize("data", [sb.i32(1, 5), sb.i32(1, 5, 6, 7)])
def test_broadcast_states_that_are_damaged(tmp_path: Path, data: bytes) -> None:
    one = with_operator_state(tmp_path, BROADCAST, [[data]])
    with pytest.raises(SavepointError, match=r"^this savepoint: .* (no entry of 's'|are left)"):
        one.compare(one)


def test_texts_of_differences(tmp_path: Path) -> None:
    """What is touched has its times, a timer its own; a long line is cut in its middle."""
    here = StateEntry("s", "MAP", 3, 0, "k", TimeWindow(0, 5), "u" * 90, "v", 5, None, 9)
    there = here._replace(last_access=6)
    line = str(EntryDifference("a", "s", "touched", here, there))
    assert line.endswith(": last access 5 -> last access 6")
    assert len(str(EntryDifference("a", "s", "changed", here, there))) <= 80
    brief, other = here._replace(user_key="u"), here._replace(user_key="u", value="w")
    assert str(EntryDifference("a", "s", "changed", brief, other)) == (
        "key 'k' in TimeWindow(start=0, end=5), user key 'u': 'v' -> 'w'"
    )
    timer = here._replace(kind="PRIORITY_QUEUE", user_key=None, timestamp=7, last_access=None)
    assert str(EntryDifference("a", "s", "only_here", timer, None)) == (
        "key 'k' in TimeWindow(start=0, end=5): at 7 (1970-01-01 00:00:00.007Z) -> none"
    )
    unknown = timer._replace(key=None, namespace=None, timestamp=None, key_bytes=b"ab")
    assert str(EntryDifference("a", "s", "only_there", None, unknown)) == (
        "key bytes b'ab': none -> 'v'"
    )
    known = timer._replace(key_bytes=b"ab")
    assert str(EntryDifference("a", "s", "only_there", None, known)) == (
        "key 'k' in TimeWindow(start=0, end=5): none -> at 7 (1970-01-01 00:00:00.007Z)"
    )
    assert str(Change("only_state", None, "s: VALUE")) == "only state: none -> s: VALUE"
    pojo = PojoSerializer("x.P")
    assert str(Change("value_serializer", pojo, pojo)) == (
        "value serializer: POJO(x.P), with another snapshot"
    )
    split = FileSplit("1", "file:/a", 0, 9, 5, 9, (), None, 3)
    moved = SplitDifference("changed", split, split._replace(position=(5, 7)))
    assert str(moved) == "split 1: position None -> (5, 7)"
    assert str(SplitDifference("only_here", split, None)) == (
        "split 1: path 'file:/a', offset 0, length 9 -> none"
    )
    splits = tuple(SplitDifference("only_here", split, None) for _ in range(25))
    operator = OperatorComparison("a", "0" * 32, "only_here", (), (), (), splits, None, False)
    assert str(operator).splitlines()[0] == "a: only here"
    assert str(operator).splitlines()[-1] == "  and 5 splits more"
    page = shown(SavepointComparison("/a", "/b", (operator,)))
    assert page.rows[1] == ["a", "", "only here"]
    assert page.rows[-1] == ["a", "", "and 5 splits more"]
    assert len(page.rows) == 1 + 1 + 20 + 1


NO_STATE = StateComparison("s", "VALUE", (), 3, 0, 0, 0, 0, ())
NO_OPERATOR = OperatorComparison("a", "0" * 32, None, (), (), (), (), None, False)


@pytest.mark.parametrize(
    ("changes", "has_differences"),
    [
        ({}, False),
        ({"states": (NO_STATE,), "operator_states": (NO_STATE,)}, False),
        ({"coordinator": "equal", "has_channel_state": True}, False),
        *(({"coordinator": name}, True) for name in ("changed", "only_here", "only_there")),
        ({"only": "only_there"}, True),
        ({"changes": (Change("parallelism", 1, 2),)}, True),
        ({"splits": (SplitDifference("changed", None, None),)}, True),
        ({"committables": (CommittableDifference("changed", None, None),)}, True),
        ({"states": (NO_STATE, replace(NO_STATE, changed=1))}, True),
        ({"operator_states": (replace(NO_STATE, only_here=1), NO_STATE)}, True),
    ],
)
def test_what_a_difference_of_operators_is(changes: dict[str, Any], has_differences: bool) -> None:
    operator = replace(NO_OPERATOR, **changes)
    assert operator.has_differences == has_differences
    for operators in ((operator,), (NO_OPERATOR, operator), (operator, NO_OPERATOR)):
        report = SavepointComparison("/a", "/b", operators)
        assert report.has_differences == has_differences


def test_what_a_difference_of_states_is() -> None:
    """Each entry that is not equal counts; a change alone is one too."""
    names = ("changed", "touched", "only_here", "only_there")
    all_counts: dict[str, Any] = dict(zip(names, (1, 20, 300, 4_000)))
    assert replace(NO_STATE, **all_counts).differing == 4_321
    for name in names:
        one_count: dict[str, Any] = {name: 1}
        assert replace(NO_STATE, **one_count).has_differences
    assert not NO_STATE.has_differences
    changed = replace(NO_STATE, changes=(Change("kind", "VALUE", "LIST"),), equal=0)
    assert (changed.has_differences, changed.differing) == (True, 0)
    assert str(changed).splitlines() == ["s: VALUE", "  no entries", "  kind: VALUE -> LIST"]


@pytest.mark.parametrize(("count", "lines"), [(20, 20), (21, 21)])
def test_twenty_splits_of_an_operator_are_shown(count: int, lines: int) -> None:
    split = KafkaSplit("t", 0, 5, None, None, is_assigned=True)
    splits = (SplitDifference("only_here", split, None),) * count
    found = str(replace(NO_OPERATOR, splits=splits)).splitlines()[1:]
    assert len(found) == lines
    assert (found[-1] == "  and 1 splits more") is (count > 20)


@pytest.mark.parametrize(
    ("key_size", "user_key_size", "value_size", "cut_to"),
    [
        (90, 0, 6, 60),  # a line of 80 characters
        (90, 0, 7, 40),
        (90, 0, 26, 40),  # a line of 80 characters again
        (90, 0, 27, 28),
        (90, 0, 90, 28),
        (90, 90, 10, 20),
        (30, 0, 36, None),
    ],
)
def test_keys_and_values_are_cut_until_a_line_fits(
    key_size: int, user_key_size: int, value_size: int, cut_to: int | None
) -> None:
    """Each to 60, 40, 28 or 20 characters, so that as much is seen as a line has room for."""
    sizes = key_size, user_key_size or None, value_size
    texts = [None if size is None else "k" * (size - 2) for size in sizes]
    entry = StateEntry("s", "MAP", 3, 0, texts[0], None, texts[1], texts[2], None, None, 9)
    line = str(EntryDifference("a", "s", "only_here", entry, None))
    assert len(line) <= 80
    shown_sizes = [min(size, cut_to or size) for size in sizes if size is not None]
    labels = "key : , user key " if user_key_size else "key : "
    assert len(line) == len(labels) + sum(shown_sizes) + len(" -> none")
    longest = max(size for size in sizes if size is not None)
    assert ("..." in line) is (cut_to is not None and longest > cut_to)


def test_lines_of_entries_are_as_long_as_there_is_room() -> None:
    """At most 80 characters, of which an operator takes two more than its state alone."""
    entry = StateEntry("s", "MAP", 3, 0, "k" * 90, None, "u" * 90, "v" * 90, None, None, 9)
    long = entry._replace(namespace=TimeWindow(10**12, 10**12 + 5))
    example = EntryDifference("a", "s", "only_here", long, None)
    state = StateComparison("s", "MAP", (), 0, 0, 0, 1, 0, (example,))
    operator = OperatorComparison("a", "0" * 32, None, (), (state,), (), (), None, False)
    assert len(str(example)) == 80
    assert max(map(len, str(state).splitlines())) == 80
    assert max(map(len, str(operator).splitlines())) == 80


def test_lists_of_maps_with_a_time_to_live(tmp_path: Path) -> None:
    """Whose order says nothing, and whose times are told apart."""
    states = [sb.state("s", "LIST", sb.list_of(sb.ttl_of(sb.map_of(INTS, INTS))))]
    pairs_of_map = [sb.i32(1) + b"\0" + sb.i32(5), sb.i32(2) + b"\0" + sb.i32(6)]
    values = [
        sb.i64(time) + sb.i32(2) + b"".join(items)
        for time, items in [(5, pairs_of_map), (5, pairs_of_map[::-1]), (6, pairs_of_map[::-1])]
    ]
    first, second, third = (
        keyed(tmp_path / str(step), states, canonical([(ONE, value)]))
        for step, value in enumerate(values)
    )
    assert counted(only_state(first, second)) == {"equal": 1}
    assert counted(only_state(first, third)) == {"touched": 1}
    assert str(only_state(first, third)).splitlines()[:2] == ["s: LIST", "  1 touched"]


def test_lists_of_maps(tmp_path: Path) -> None:
    """Whose order says nothing, that of the list does."""
    states = [sb.state("s", "LIST", sb.list_of(sb.map_of(INTS, INTS)))]
    pairs_of_map = [sb.i32(1) + b"\0" + sb.i32(5), sb.i32(2) + b"\0" + sb.i32(6)]
    both, back = (sb.i32(2) + b"".join(items) for items in (pairs_of_map, pairs_of_map[::-1]))
    one = sb.i32(1) + pairs_of_map[0]
    first, second, third = (
        keyed(tmp_path / str(step), states, canonical([(ONE, b",".join(elements))]))
        for step, elements in enumerate(((both, one), (back, one), (one, both)))
    )
    assert counted(only_state(first, second)) == {"equal": 1}
    assert counted(only_state(first, third)) == {"changed": 1}


def test_other_operator_states(tmp_path: Path) -> None:
    """Of two that have been chosen from; and of one name that is two states."""
    serializers = {"VALUE_SERIALIZER": INTS}
    infos = [sb.meta_info(name, 1, {}, serializers) for name in ("s", "t")]
    start = sb.operator_header(infos, [])
    handles = [
        sb.operator_state(
            [("s", mode, [len(start)]), ("t", 0, [len(start) + 4])],
            sb.inline(start + sb.i32(1, 2)),
        )
        for mode in (SPLIT_DISTRIBUTE, UNION)
    ]
    one, other = (
        read_savepoint(sb.write(tmp_path / str(len(chosen)), [sb.operator(chosen, parallelism=2)]))
        for chosen in (
            [sb.subtask(0, managed_operator=handles[0])],
            [sb.subtask(index, managed_operator=handle) for index, handle in enumerate(handles)],
        )
    )
    (operator,) = one.compare(one, states=["t"]).operators
    assert [state.state for state in operator.operator_states] == ["t"]
    assert counted(operator.operator_states[0]) == {"equal": 1}
    with pytest.raises(SavepointError, match="another operator state 's' in subtask 1"):
        one.compare(other)
