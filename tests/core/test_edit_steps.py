"""What is done to the bytes of single entries, and what a report says of deleted keys."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.edited_operators import OddSerializer
from support.bytes.framed_entries import bound
from support.bytes.real_savepoints import point
from support.inside.savepoints import DeleteKeys, EntryMapping, SetTtl, SoughtKeys, StepContext
from support.inside.serializers import Cursor, UnknownSerializer

from keygroups import assign_to_key_group
from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    SavepointError,
    UnsupportedKeyTypeError,
)
from keygroups.savepoint import (
    DELETE,
    EditReport,
    ListStateDescriptor,
    MapStateDescriptor,
    Operator,
    OperatorEditor,
    SavepointWriter,
    Serializer,
    StateDescriptor,
    StateEntry,
    TimeWindow,
    UnsearchedPlace,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.state_keys import TIME_WINDOW, VOID_NAMESPACE, serializer_of
from keygroups.types import BIG_DEC, LONG, STRING


def place() -> StepContext:
    return StepContext("here", 0, 128, set())


def test_delete_is_one_object() -> None:
    """Which a function may return that was pickled for Spark."""
    assert repr(DELETE) == "DELETE"
    assert pickle.loads(pickle.dumps(DELETE)) is copy.deepcopy(DELETE) is DELETE


def test_keys_without_a_writer() -> None:
    """Their bytes are compared, of those that cannot be read the bytes before the namespace."""
    state = StateDescriptor("count", "VALUE", OddSerializer(), VOID_NAMESPACE, serializer_of(LONG))
    apply = bound(DeleteKeys({None: SoughtKeys({b"\5", b"\x80more"}, {})}), state, place())
    assert apply(3, b"\5\0", b"") == apply(9, b"\x80more\0", b"") == ()
    assert apply(3, b"\6\0", b"") is apply(3, b"\x80mo\0", b"") is None


def test_where_the_key_ends_is_not_told() -> None:
    """Between a key that only the job reads and a namespace of any length."""
    state = StateDescriptor(
        "count", "VALUE", UnknownSerializer("x.Own"), serializer_of(STRING), serializer_of(LONG)
    )
    apply = bound(DeleteKeys({None: SoughtKeys({b"one"}, {})}), state, place())
    with pytest.raises(
        SavepointError, match="cannot be deleted: the bytes do not say where the key ends"
    ):
        apply(3, b"one\2a", bytes(8))


def test_timers_of_keys_that_only_the_job_reads() -> None:
    """The time is before the key there."""
    key = UnknownSerializer("x.Own")
    state = StateDescriptor("_timer_state/x", "PRIORITY_QUEUE", key, VOID_NAMESPACE, None)
    apply = bound(DeleteKeys({None: SoughtKeys({b"one"}, {})}), state, place())
    assert apply(3, bytes(8) + b"one\0", b"") == ()
    assert apply(3, bytes(8) + b"two\0", b"") is None


def test_a_null_without_a_time() -> None:
    """As the hashmap backend may have one in a MAP that loses its time to live."""
    states = MapStateDescriptor("m", STRING, STRING, has_ttl=True).described(serializer_of(STRING))
    apply = bound(SetTtl(None), states[0], place())
    assert apply(3, b"k", b"\1") == ((3, b"k", b"\1"),)
    assert apply(3, b"k", b"\0" + sb.i64(5) + b"\2a") == ((3, b"k", b"\0\2a"),)
    assert apply(3, b"k", b"\0" + sb.i64(5) + b"\0") == ((3, b"k", b"\1"),)


def test_elements_get_the_time_of_a_last_access() -> None:
    """Each of a LIST, whether it had another time or none."""
    for has_ttl, old in ((False, (b"", b"")), (True, (sb.i64(1), sb.i64(2)))):
        described = ListStateDescriptor("l", LONG, has_ttl=has_ttl).described(serializer_of(LONG))
        value = old[0] + sb.i64(7) + b"," + old[1] + sb.i64(8)
        timed = sb.i64(5, 7) + b"," + sb.i64(5, 8)
        assert bound(SetTtl(5), described[0], place())(3, b"k", value) == ((3, b"k", timed),)
    without = sb.i64(7) + b"," + sb.i64(8)
    assert bound(SetTtl(None), described[0], place())(3, b"k", value) == ((3, b"k", without),)


# Flink: BigDecSerializer, BigIntSerializer: BigDecimal.ZERO is a mark, another zero is a number.
ZERO, OTHER_ZERO = sb.i32(1, 0), sb.i32(5) + b"\0" + sb.i32(0)
ONE = sb.i32(2, 0)


def test_equal_values_in_other_bytes_are_kept() -> None:
    """The key and the value as Java wrote them, where the function returns equal ones."""
    types = serializer_of(BIG_DEC)
    assert types.encode(Decimal(0)) == ZERO
    assert types.decode(OTHER_ZERO) == Decimal(0)
    (state,) = ValueStateDescriptor("n", BIG_DEC).described(types)
    key_group = assign_to_key_group(Decimal(0), 128, BIG_DEC)

    def apply(function: Any, value: bytes) -> Any:
        step = bound(EntryMapping, function, False, state, place())
        entries = step(key_group, OTHER_ZERO + b"\0", value)
        return entries if entries is None else [*entries]

    assert apply(lambda entry: Decimal("0"), OTHER_ZERO) is None
    (same,) = apply(lambda entry: entry._replace(key=Decimal("0")), OTHER_ZERO)
    assert same == (key_group, OTHER_ZERO + b"\0", OTHER_ZERO)
    assert apply(lambda entry: Decimal(1), OTHER_ZERO) == [(key_group, OTHER_ZERO + b"\0", ONE)]
    (moved,) = apply(lambda entry: entry._replace(key=Decimal(1)), ZERO)
    assert moved == (assign_to_key_group(Decimal(1), 128, BIG_DEC), ONE + b"\0", ZERO)


def test_another_user_key_in_a_window() -> None:
    state = StateDescriptor(
        "m", "MAP", serializer_of(STRING), TIME_WINDOW, serializer_of(LONG), serializer_of(LONG)
    )
    key_group = assign_to_key_group("a", 128, STRING)
    window = b"\2a" + sb.i64(0) + sb.i64(5)
    old = (key_group, window + sb.i64(7), b"\0" + sb.i64(1))

    def changed(**change: Any) -> Any:
        def function(entry: StateEntry) -> Any:
            assert entry.namespace == TimeWindow(0, 5)
            return entry._replace(**change)

        return bound(EntryMapping, function, False, state, place())(*old)

    assert list(changed(user_key=8)) == [(key_group, window + sb.i64(8), old[2])]
    named = r"^key 'a', user key 7, namespace TimeWindow\(start=0, end=5\) in state 'm': "
    for change in ({"key": "b"}, {"namespace": TimeWindow(0, 6)}):
        with pytest.raises(InvalidValueError, match=f"{named}.* must keep key and namespace, as"):
            list(changed(**change))


def unknown_operator(folder: Path, key: bytes, *states: bytes) -> Operator:
    header = sb.keyed_header(key, states)
    task = sb.subtask(managed_keyed=sb.canonical(3, [0], sb.inline(header)))
    sb.write(folder, [sb.operator([task], uid="op")])
    return read_savepoint(folder).operator("op")


OWN = sb.i32(2) + sb.utf("x.Own$Snapshot") + sb.i32(1)  # nobody here knows the class


def test_states_that_only_the_job_reads(tmp_path: Path) -> None:
    """They may be removed, renamed, mapped and deleted by key; all else takes their values."""
    states = [sb.state("value", "VALUE", OWN), sb.state("list", "LIST", OWN)]
    operator = unknown_operator(tmp_path, sb.simple("String"), *states)
    for name in ("value", "list"):
        editor = OperatorEditor(operator)
        with pytest.raises(UnsupportedKeyTypeError, match=f"state '{name}'"):
            editor.set_ttl(name, last_access=1_700_000_000_000)
        assert not editor.is_changed
        editor.rename_state(name, "new")
        editor.map_entries("new", lambda entry: entry.value)
        editor.delete_keys(["ann"])
        editor.remove_state("new")
        assert editor.is_changed


@pytest.mark.parametrize("snapshot", [sb.kryo_of("x.Own"), sb.ttl_of(sb.kryo_of("x.Own"))])
def test_elements_that_only_the_job_reads_get_no_times(snapshot: bytes, tmp_path: Path) -> None:
    """Nobody knows where they start, with a time to live before them or not; a value is known."""
    lists = sb.state("list", "LIST", sb.list_of(snapshot))
    operator = unknown_operator(
        tmp_path, sb.simple("String"), sb.state("value", "VALUE", snapshot), lists
    )
    editor = OperatorEditor(operator)
    with pytest.raises(UnsupportedKeyTypeError, match="'list' must be of what can be read here"):
        editor.set_ttl("list", last_access=1_700_000_000_000)
    assert not editor.is_changed
    editor.set_ttl("value", last_access=1_700_000_000_000)
    assert editor.is_changed


def test_keys_in_the_order_of_java(tmp_path: Path) -> None:
    longs = sb.simple("Long")
    operator = unknown_operator(
        tmp_path, sb.map_of(longs, longs), sb.state("value", "VALUE", longs)
    )
    with pytest.raises(UnsupportedKeyTypeError, match=r"keys of MAP\(LONG, LONG\) cannot be"):
        OperatorEditor(operator).delete_keys([{1: 2}])


class Code(Serializer):
    """A number below 128, whose bytes as a key are not those as a value."""

    name, versions = "CODE", (1,)

    @classmethod
    def from_contents(cls, cursor: Cursor, version: int, depth: int) -> Serializer:
        return cls()

    @staticmethod
    def read(data: bytes, pos: int) -> tuple[int, int]:
        return data[pos] & 0x7F, pos + 1

    @staticmethod
    def write(value: int) -> bytes:
        return bytes([value])

    @staticmethod
    def write_key(value: int) -> bytes:
        if value > 0x7F:
            raise InvalidValueError(f"must be below 128, got {value}")
        return bytes([value | 0x80])


def test_keys_that_are_not_written_as_values(tmp_path: Path) -> None:
    header = sb.keyed_header(
        sb.snapshot("x.Code$Snapshot", 1), [sb.state("count", "VALUE", sb.simple("Long"))]
    )
    entries = [(b"\3\x85\0", sb.i64(1)), (b"\3\x86\0", sb.i64(2))]
    stream = sb.inline(header + sb.canonical_key_group([(0, entries)]))
    task = sb.subtask(managed_keyed=sb.canonical(3, [len(header)], stream))
    sb.write(tmp_path / "old", [sb.operator([task], uid="op")])
    old = read_savepoint(tmp_path / "old", serializers={"x.Code$Snapshot": Code})
    with SavepointWriter.from_existing_savepoint(old, tmp_path / "new") as writer:
        editor = writer.operator("op")
        with pytest.raises(InvalidValueError, match=r"^key: must be below 128, got 200$"):
            editor.delete_keys([200])
        editor.delete_keys([5])
    (entry,) = writer.savepoint().operator("op").entries()
    assert (entry.key, entry.value) == (6, 2)


# --- the report ---------------------------------------------------------------------------------


def traced(name: str, operator: str, path: Path, key: Any) -> EditReport:
    old = point(name).read()
    with SavepointWriter.from_existing_savepoint(old, path) as writer:
        writer.operator(operator).delete_keys([key])
    return writer.report()


def test_where_else_keys_may_be(tmp_path: Path) -> None:
    """By types: text may hold any key; a LONG only one of LONG; operator state any."""
    report = traced("2.3.0-heap-canonical", "by-long", tmp_path / "new", 2**40)
    (keys,) = (one.deleted_keys for one in report.operators if one.deleted_keys is not None)
    assert (keys.with_entries, keys.without_entries) == (0, (2**40,))
    by_long = {place for operator, place in keys.may_be_in if operator == "by-long"}
    types = {
        f"values of the state {name!r}" for name in ("count", "label", "visits", "pair")
    }  # LONG, STRING and what has them in it
    assert types <= by_long
    assert "values of the state 'flag'" not in by_long
    assert UnsearchedPlace("broadcast", "operator state 'rules'") in keys.may_be_in
    assert UnsearchedPlace("by-string", "keys") in keys.may_be_in
    assert UnsearchedPlace("by-string", "values of the state 'count'") in keys.may_be_in
    assert UnsearchedPlace("by-string", "values of the state 'flag'") not in keys.may_be_in
    assert UnsearchedPlace("by-int", "keys") not in keys.may_be_in
    lines = str(report).splitlines()
    assert "  keys deleted: 0, and 1 that had no entries" in lines
    assert "    broadcast: operator state 'rules'" in lines
    (line,) = (line for line in lines if "nobody has searched" in line)
    assert str(point("2.3.0-heap-canonical").path) in line
    assert line.endswith(", and here:")


def test_where_fields_of_a_key_may_be(tmp_path: Path) -> None:
    """Of a TUPLE(STRING, INT) each is looked for: an INT may be a key, a LONG is neither."""
    operator = point("2.3.0-heap-canonical").read().operator("by-tuple")
    key = next(operator.entries()).key
    report = traced("2.3.0-heap-canonical", "by-tuple", tmp_path / "new", key)
    (keys,) = (edited.deleted_keys for edited in report.operators if edited.deleted_keys)
    assert (keys.with_entries, keys.without_entries) == (1, ())
    assert UnsearchedPlace("by-int", "keys") in keys.may_be_in
    assert UnsearchedPlace("by-long", "keys") not in keys.may_be_in


def delete(*keys: str) -> Callable[[OperatorEditor], object]:
    return lambda editor: editor.delete_keys(keys)


@pytest.mark.parametrize(
    ("edits", "places"),
    [
        ([], {"keys", "values of the state 'name'"}),
        ([delete("ann")], {"values of the state 'name'"}),
        ([delete("bob", "ann")], {"values of the state 'name'"}),
        ([delete("bob"), delete("ann")], {"values of the state 'name'"}),
        ([delete("bob")], {"keys", "values of the state 'name'"}),
        ([lambda editor: editor.remove_state("name")], {"keys"}),
        ([delete("ann"), lambda editor: editor.remove_state("name")], set()),
        (  # The step may make such a key of another one.
            [delete("ann"), lambda editor: editor.map_keys(str.lower)],
            {"keys", "values of the state 'name'"},
        ),
        (  # Other keys are deleted after it.
            [delete("ann"), lambda editor: editor.map_keys(str.lower), delete("bob")],
            {"keys", "values of the state 'name'"},
        ),
        (
            [lambda editor: editor.map_keys(str.lower), delete("ann")],
            {"values of the state 'name'"},
        ),
    ],
)
def test_only_what_nobody_searched_is_named(
    tmp_path: Path, edits: list[Callable[[OperatorEditor], object]], places: set[str]
) -> None:
    states = [ValueStateDescriptor("count", LONG), ValueStateDescriptor("name", STRING)]
    with SavepointWriter(tmp_path / "old") as writer:
        for uid in ("a", "b"):
            operator = writer.add_operator(uid, STRING, states[: 1 + (uid == "b")], 128, 1)
            operator.write("count", "ann", 1)
    old, new = tmp_path / "old", tmp_path / "new"
    with SavepointWriter.from_existing_savepoint(old, new, uids=["a", "b"]) as editor:
        editor.operator("a").delete_keys(["ann"])
        for edit in edits:
            edit(editor.operator("b"))
    [keys] = [by.deleted_keys for by in editor.report().operators if by.operator == "a"]
    assert keys is not None
    assert {place for operator, place in keys.may_be_in if operator == "b"} == places


@pytest.mark.parametrize(
    ("edits", "places"),
    [
        ([], set()),
        ([lambda editor: editor.map_keys(str.lower)], {"keys"}),
        ([lambda editor: editor.map_keys(str.lower), delete("bob")], {"keys"}),
        ([lambda editor: editor.map_keys(str.lower), delete("bob", "ann")], set()),
    ],
)
def test_keys_that_are_deleted_and_may_be_made_anew(
    tmp_path: Path, edits: list[Callable[[OperatorEditor], object]], places: set[str]
) -> None:
    """In the operator itself too: here the key ANN becomes the one that was deleted."""
    with SavepointWriter(tmp_path / "old") as writer:
        states = [ValueStateDescriptor("count", LONG)]
        operator = writer.add_operator("a", STRING, states, 128, 1, sort=True)
        for key in ("ann", "ANN"):
            operator.write("count", key, 1)
    old, new = tmp_path / "old", tmp_path / "new"
    with SavepointWriter.from_existing_savepoint(old, new, uids=["a"]) as editor:
        for edit in (delete("ann"), *edits):
            edit(editor.operator("a"))
    [operator_report] = editor.report().operators
    keys = operator_report.deleted_keys
    assert keys is not None
    assert {place for _, place in keys.may_be_in} == places
    remaining = {entry.key for entry in editor.savepoint().operator("a").entries()}
    assert ("ann" in remaining) <= ("keys" in places)


def test_an_operator_without_keyed_state_is_edited_beside(tmp_path: Path) -> None:
    """Its keyed state is not asked for where only its operator state changes."""
    old, new = tmp_path / "old", tmp_path / "new"
    with SavepointWriter(old) as writer:
        by_user = writer.add_operator("a", STRING, [ValueStateDescriptor("count", LONG)], 128, 1)
        by_user.write("count", "ann", 1)
        lists = [ListStateDescriptor("numbers", LONG)]
        other = writer.add_operator("b", None, None, 128, 1, list_states=lists)
        other.write_operator_state("numbers", [1, 2])
    with SavepointWriter.from_existing_savepoint(old, new, uids=["a", "b"]) as editor:
        editor.operator("a").delete_keys(["ann"])
        editor.operator("b").map_operator_state("numbers", lambda element: element.value + 1)
    [keys] = [by.deleted_keys for by in editor.report().operators if by.operator == "a"]
    assert keys is not None
    assert keys.may_be_in == (UnsearchedPlace("b", "operator state 'numbers'"),)
    numbers = editor.savepoint().operator("b").operator_state()
    assert [state.elements for state in numbers] == [[2, 3]]


def test_an_editor_has_the_name_that_its_operator_gets(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    with SavepointWriter(old) as writer:
        by_user = writer.add_operator("a", STRING, [ValueStateDescriptor("count", LONG)], 128, 1)
        by_user.write("count", "ann", 1)
    with SavepointWriter.from_existing_savepoint(old, new, uids=["a"]) as editor:
        operator = editor.operator("a")
        operator.rename_state("count", "number")
        editor.change_operator_identifier("a", "b")
        assert editor.operator("b") is operator
        assert repr(operator) == "<OperatorEditor of <Operator b>>"
        with pytest.raises(InvalidValueError, match="state must be of b, which has number, got"):
            operator.remove_state("count")
    assert [state.name for state in editor.savepoint().operator("b").states] == ["number"]


def test_in_flight_data_and_what_cannot_be_read(tmp_path: Path) -> None:
    operator = point("2.3.0-heap-canonical").read().operator("by-string")
    unaligned = point("2.3.0-unaligned-checkpoint").read().operators
    header = sb.inline(b"\0\0\0\x63")
    task = sb.subtask(managed_keyed=sb.canonical(3, [4], header))
    channel = b"\1" + sb.i32(0, 1, 2, 2) + sb.i64(5, 6) + sb.i64(7) + sb.inline(b"x")
    tasks = [sb.subtask(0), sb.subtask(1, inputs=[channel])]
    second = sb.operator(tasks, uid="in flight in one", parallelism=2, operator_id=b"x" * 16)
    sb.write(tmp_path, [sb.operator([task], uid="damaged"), second])
    editor = OperatorEditor(operator)
    others = [*unaligned, *read_savepoint(tmp_path).operators]
    assert editor.traces(others) is None
    editor.delete_keys(["ann"])
    traces = editor.traces(others)
    assert traces is not None
    assert UnsearchedPlace("damaged", "keyed state, whose types cannot be read") in traces
    in_flight = "in-flight data of an unaligned checkpoint"
    assert UnsearchedPlace("slow", in_flight) in traces
    assert UnsearchedPlace("in flight in one", in_flight) in traces
    with pytest.raises(InvalidTypeError, match="others must be operators of a savepoint"):
        editor.traces([5])  # type: ignore[list-item]  # a user may do so
    with pytest.raises(InvalidTypeError, match="others must be an iterable of operators, got 5"):
        editor.traces(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("subtask", "start", "count"), [(0, 100, 1), (0, 63, 2), (1, 63, 2)], ids=str
)
def test_key_groups_of_another_subtask(
    subtask: int, start: int, count: int, tmp_path: Path
) -> None:
    """A file that is not where Flink would have it is refused before anything is written.

    Of two subtasks the first has the key groups 0 to 63: a range may be of it in part.
    """
    header = sb.keyed_header(sb.simple("String"), [sb.state("count", "VALUE", sb.simple("Long"))])
    stream = sb.inline(header)
    task = sb.subtask(subtask, managed_keyed=sb.canonical(start, [0] * count, stream))
    sb.write(tmp_path / "old", [sb.operator([task], parallelism=2, uid="op")])
    editor = SavepointWriter.from_existing_savepoint(tmp_path / "old", tmp_path / "new")
    refusal = rf"cannot be written anew: it has .*{start}.* in subtask {subtask}, whose are"
    with pytest.raises(SavepointError, match=refusal), editor as writer:
        writer.operator("op").rename_state("count", "n")
    assert not (tmp_path / "new").exists()
