"""Keys of an operator that become others: against a model in Python, and the bytes of Flink."""

from __future__ import annotations

import pickle
import tracemalloc
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.bytes import savepoint_bytes as sb
from support.bytes.edited_operators import OddSerializer, edit
from support.bytes.framed_entries import bound, framed_entries
from support.bytes.job_points import JOB_POINTS, job_point
from support.bytes.large_savepoints import write as write_large
from support.bytes.real_savepoints import FORMATS, POINTS, point
from support.inside.savepoints import KeyMapping, StepContext
from support.inside.savepoints import files as files_module
from support.inside.savepoints import moved_entries as moved_module
from support.inside.savepoints import spill as spill_module
from support.inside.serializers import UnknownSerializer

from keygroups import assign_to_key_group
from keygroups.errors import (
    InvalidTypeError,
    InvalidValueError,
    KeyGroupsError,
    SavepointError,
    UnsupportedKeyTypeError,
)
from keygroups.savepoint import (
    DELETE,
    AggregatingStateDescriptor,
    EventTimeSessionWindows,
    ListStateDescriptor,
    MapStateDescriptor,
    Operator,
    OperatorEditor,
    ReducingStateDescriptor,
    Savepoint,
    SavepointWriter,
    SlidingEventTimeWindows,
    StateDescriptor,
    StateEntry,
    TimerServiceDescriptor,
    TimeWindow,
    TtlValue,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.state_keys import BYTES, TIME_WINDOW, VOID_NAMESPACE, Serializer, serializer_of
from keygroups.types import BIG_DEC, INT, LONG, SQL_ROW, STRING, TUPLE, KeyType

TIME = 1_700_000_000_044


def shown(entry: StateEntry, key: Any) -> tuple[str, ...]:
    """Return all that an entry has, with a key in place of its own, but no size and subtask."""
    return tuple(
        map(repr, entry._replace(key=key, key_group=-1, subtask=-1, bytes=-1, key_bytes=None))
    )


# --- against a model --------------------------------------------------------------------------

PAIR = TUPLE(LONG, STRING)
OF_TYPE: list[tuple[KeyType, Callable[[int], Any], Callable[[Any], int]]] = [
    (LONG, lambda number: number - 3, lambda key: key + 3),
    (STRING, lambda number: "k" * number, len),
    (PAIR, lambda number: (number, "k" * (number % 3)), lambda key: key[0]),
]
STATES = [
    ValueStateDescriptor("count", LONG),
    ValueStateDescriptor("seen", STRING, has_ttl=True),
    ReducingStateDescriptor("sum", INT),
    AggregatingStateDescriptor("average", TUPLE(LONG, INT)),
    ListStateDescriptor("tags", STRING),
    ListStateDescriptor("used", LONG, has_ttl=True),
    MapStateDescriptor("cities", STRING, STRING),
    TimerServiceDescriptor(),
    TimerServiceDescriptor("by-text", STRING),
]
VALUES: dict[str, Any] = {
    "count": 2**40,
    "seen": "then",
    "sum": -7,
    "average": (5, 2),
    "tags": ["a", "b"],
    "used": [TtlValue(TIME, 5), TtlValue(TIME + 1, 6)],
}
Spot = tuple[str, int, Any]  # a state or a service, a number of a key, a user key or a time
places = st.sets(
    st.tuples(st.sampled_from([*VALUES]), st.integers(0, 9), st.none())
    | st.tuples(st.just("cities"), st.integers(0, 9), st.sampled_from(["rome", "oslo"]))
    | st.tuples(
        st.sampled_from(["user-timers", "by-text"]), st.integers(0, 9), st.integers(-2, 2)
    ),
    min_size=1,
    max_size=30,
)
NUMBERS: dict[str, Callable[[int], int | None]] = {
    "same": lambda number: number,
    "others": lambda number: 2 * number + 1,
    "reversed": lambda number: 9 - number,
    "some go": lambda number: number if number % 3 else None,
    "two become one": lambda number: number // 2,
}


def write_model(
    path: Path, model: set[Spot], key_type: KeyType, make: Callable[[int], Any]
) -> None:
    with SavepointWriter(path) as writer:
        operator = writer.add_operator("op", key_type, STATES, 128, 3)
        for state, number, item in sorted(
            model, key=lambda place: (operator.key_group(make(place[1])), repr(place))
        ):
            key = make(number)
            if state in VALUES:
                operator.write(
                    state, key, VALUES[state], last_access=TIME if state == "seen" else None
                )
            elif state == "cities":
                operator.write(state, key, "c", item)
            else:
                namespace = None if state == "user-timers" else "n" * (item % 3)
                operator.write_timer(key, item, "PROCESSING_TIME", namespace, state)


def read_model(path: Path, key_type: KeyType, number_of: Callable[[Any], int]) -> set[Spot]:
    """Return the entries, after a look at key groups, values and namespaces."""
    model = set()
    operator = read_savepoint(path).operator("op")
    for entry in operator.entries():
        assert operator.states[0].key_type == key_type
        assert entry.key_group == assign_to_key_group(entry.key, 128, key_type)
        state, item = entry.state, entry.user_key
        if entry.kind == "PRIORITY_QUEUE":
            state, item = state.removeprefix("_timer_state/processing_"), entry.timestamp
            assert item is not None
            assert entry.namespace == ("n" * (item % 3) if state == "by-text" else None)
        else:
            assert entry.value == VALUES.get(state, "c")
            assert entry.last_access == (TIME if state == "seen" else None)
        place = (state, number_of(entry.key), item)
        assert place not in model
        model.add(place)
    return model


def check_model(model: set[Spot], old: int, new: int, change: str) -> None:
    old_type, make_old, number_of_old = OF_TYPE[old]
    new_type, make_new, number_of_new = OF_TYPE[new]
    numbers = NUMBERS[change]

    def function(key: Any) -> Any:
        number = numbers(number_of_old(key))
        return DELETE if number is None else make_new(number)

    kept = [place for place in model if numbers(place[1]) is not None]
    expected = {(state, numbers(number), item) for state, number, item in kept}
    with TemporaryDirectory() as folder:
        write_model(Path(folder, "old"), model, old_type, make_old)
        path = Path(folder, "new")

        def verbs(editor: OperatorEditor) -> None:
            editor.map_keys(function, None if old == new else new_type)

        if len(expected) < len(kept):
            with pytest.raises(InvalidValueError, match="each key must come once, got key"):
                edit(Path(folder, "old"), path, "op", verbs)
            assert not path.exists()
            return
        report = edit(Path(folder, "old"), path, "op", verbs)
        if expected:
            assert read_model(path, new_type, number_of_new) == expected
    states = report.operators[0].states
    same = [place for place in kept if old == new and numbers(place[1]) == place[1]]
    counts = [
        sum(counted or 0 for counted in column)
        for column in zip(
            *((state.kept, state.changed, state.deleted, state.added) for state in states)
        )
    ]
    assert counts == [len(same), len(kept) - len(same), len(model) - len(kept), 0]


types_ = st.integers(0, len(OF_TYPE) - 1)


@settings(max_examples=15, deadline=None)
@given(places, types_, types_, st.sampled_from([*NUMBERS]))
@example({("count", 3, None), ("cities", 4, "rome"), ("by-text", 6, 1)}, 0, 1, "some go")
@example({("count", 3, None), ("count", 2, None)}, 1, 1, "two become one")
def test_against_a_model(model: set[Spot], old: int, new: int, change: str) -> None:
    check_model(model, old, new, change)


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(places, types_, types_, st.sampled_from([*NUMBERS]))
def test_against_a_model_at_length(model: set[Spot], old: int, new: int, change: str) -> None:
    check_model(model, old, new, change)


# --- real savepoints --------------------------------------------------------------------------

QUICK = ["2.3.0-rocksresc-native", "1.20.5-sqlrocks-canonical"]


def mappable(savepoint: Savepoint) -> Iterator[Operator]:
    """Yield the operators whose keys can be read, those of classes of the job too."""
    for operator in savepoint.operators:
        if operator.tasks() and operator.states[0].key_serializer.read is not None:
            yield operator


def framed(operator: Operator) -> dict[tuple[int, str], Counter[tuple[bytes, bytes]]]:
    """Return the bytes of all entries by key group and state."""
    entries: dict[tuple[int, str], Counter[tuple[bytes, bytes]]] = defaultdict(Counter)
    for task in operator.tasks():
        for entry in framed_entries(task):
            entries[entry.key_group, entry.state][entry.encoded_key, entry.encoded_value] += 1
    return entries


def check_there_and_back(old: Savepoint, folder: Path) -> int:
    """Give keys another type, which entries then have, and back: these are the bytes of Flink."""
    count = 0
    keys: dict[str, dict[str, Any]] = {}
    with SavepointWriter.from_existing_savepoint(old, folder / "there") as writer:
        for operator in mappable(old):
            keys[operator.operator_id] = {}
            writer.operator(operator.operator_id).map_keys(repr, STRING)
    present = read_savepoint(folder / "there")
    for operator_id, by_text in keys.items():
        operator, expected = old.operator(operator_id), Counter[tuple[str, ...]]()
        for entry in operator.entries():
            by_text[repr(entry.key)] = entry.key
            expected[shown(entry, repr(entry.key))] += 1
        actual = Counter[tuple[str, ...]]()
        for entry in present.operator(operator_id).entries():
            groups = operator.max_parallelism
            assert entry.key_group == assign_to_key_group(entry.key, groups, STRING)
            actual[shown(entry, entry.key)] += 1
        assert actual == expected
        count += len(by_text)
    with SavepointWriter.from_existing_savepoint(present, folder / "back") as writer:
        for operator_id, by_text in keys.items():
            key = old.operator(operator_id).states[0].key_serializer
            if key.key_type is not None:
                writer.operator(operator_id).map_keys(by_text.__getitem__, key)
    back = read_savepoint(folder / "back")
    for operator_id in keys:
        operator = back.operator(operator_id)
        if old.operator(operator_id).states[0].key_type is None:
            continue
        assert framed(operator) == framed(old.operator(operator_id))
        assert {state.name: state for state in operator.states} == {
            state.name: state for state in old.operator(operator_id).states
        }
    return count


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(one.name, marks=[] if one.name in QUICK else pytest.mark.slow)
        for one in (*POINTS, *FORMATS)
    ],
)
def test_there_and_back(name: str, tmp_path: Path) -> None:
    """Of every format and type of key: all states, timers and windows."""
    assert check_there_and_back(point(name).read(), tmp_path) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", [one.name for one in JOB_POINTS if one.kind == "canonical"])
def test_there_and_back_of_jobs(name: str, tmp_path: Path) -> None:
    check_there_and_back(job_point(name).read(), tmp_path)


def headers_of(operator: Operator) -> dict[str, bytes]:
    """Return the types of the key and of each state in the headers."""
    text = {}
    for task in operator.tasks():
        for header in task.format.headers():
            text["key"] = header.key_bytes
            text |= dict(zip([state.name for state in header.states], header.state_bytes))
    return text


@pytest.mark.parametrize(
    ("name", "operator"),
    [("2.3.0-heap-canonical", "by-string"), ("2.3.0-heap-native", "session")],
)
def test_headers_are_those_of_flink(name: str, operator: str, tmp_path: Path) -> None:
    """Of keys that were another type: what Flink wrote of the key, and of timers with it."""
    old = point(name).read()

    def verbs(editor: OperatorEditor) -> None:
        editor.map_keys(lambda key: (key, 5), TUPLE(STRING, INT))
        editor.map_keys(lambda key: key[0], STRING)

    edit(old, tmp_path / "new", operator, verbs)
    new = read_savepoint(tmp_path / "new").operator(operator)
    headers = headers_of(old.operator(operator))
    assert headers_of(new) == headers
    assert any(state.startswith("_timer_state/") for state in headers)
    assert framed(new) == framed(old.operator(operator))


def test_windows_keep_their_timers(tmp_path: Path) -> None:
    """Sessions and sliding windows: the same as if they were written with the new keys."""
    windows: list[tuple[Any, Any]] = [
        (SlidingEventTimeWindows(60_000, 30_000), ListStateDescriptor("window-contents", STRING)),
        (EventTimeSessionWindows(60_000), ReducingStateDescriptor("window-contents", LONG)),
    ]
    start = TIME // 60_000 * 60_000
    window = TimeWindow(start, start + 60_000)
    for number, (assigner, contents) in enumerate(windows):
        value: Any = ["a"] if number == 0 else 7
        for name, key_type, keys in (("old", STRING, ["ann", "bob"]), ("wanted", LONG, [30, 31])):
            groups = {key: assign_to_key_group(key, 128, key_type) for key in keys}
            with SavepointWriter(tmp_path / f"{name}{number}") as writer:
                operator = writer.add_window_operator("op", key_type, assigner, contents, 128, 2)
                for key in sorted(groups, key=groups.__getitem__):
                    operator.write(key, window, value)
        edit(
            tmp_path / f"old{number}",
            tmp_path / f"new{number}",
            "op",
            lambda op: op.map_keys({"ann": 30, "bob": 31}.__getitem__, LONG),
        )
        new, wanted = (
            framed(read_savepoint(tmp_path / f"{name}{number}").operator("op"))
            for name in ("new", "wanted")
        )
        assert new == wanted
        assert {name for _, name in new} > {"window-contents"}


# --- bytes ------------------------------------------------------------------------------------


def place() -> StepContext:
    return StepContext("here", 0, 128, set())


def changed(state: StateDescriptor, function: Any, new: KeyType, key: bytes) -> Any:
    """Return the bytes of the key of an entry; its value is as it was."""
    entries = bound(KeyMapping, function, serializer_of(new), state, place())(5, key, b"value")
    if entries is None:
        return None
    [(key_group, encoded, value)] = entries
    assert value == b"value"
    return key_group, encoded


def state_of(key: KeyType | Serializer, namespace: Serializer, **more: Any) -> StateDescriptor:
    if isinstance(key, KeyType):
        key = serializer_of(key)
    return StateDescriptor("n", "VALUE", key, namespace, serializer_of(LONG), **more)


TEXT = serializer_of(STRING)


@pytest.mark.parametrize("user_key", [b"", sb.i64(9)])
def test_lengths_of_key_and_namespace(user_key: bytes) -> None:
    """Each behind its bytes where both are of no fixed size, else neither.

    Flink: CompositeKeySerializationUtils.isAmbiguousKeyPossible, writeVariableIntBytes: at least
    a byte, the lowest first.
    """
    more = {"user_key_serializer": serializer_of(LONG)} if user_key else {}
    texts, longs = state_of(STRING, TEXT, **more), state_of(LONG, TEXT, **more)
    with_lengths = b"\4one\4" + b"\3ns\3" + user_key
    without = sb.i64(1) + b"\3ns" + user_key
    key_group = assign_to_key_group(1, 128, LONG)
    assert changed(texts, lambda key: len(key) - 2, LONG, with_lengths) == (key_group, without)
    key_group = assign_to_key_group("one", 128, STRING)
    assert changed(longs, lambda key: "one", STRING, without) == (key_group, with_lengths)
    assert changed(texts, lambda key: key, STRING, with_lengths) is None
    long_key = "x" * 300
    _, encoded = changed(texts, lambda key: long_key, STRING, with_lengths)
    # Flink: StringValue.writeString: 301 in 7 bits each, the lowest first.
    assert encoded == b"\xad\x02" + b"x" * 300 + b"\x2e\x01" + b"\3ns\3" + user_key
    window = state_of(STRING, TIME_WINDOW, **more)
    tail = sb.i64(0) + sb.i64(5) + user_key
    key_group = assign_to_key_group("two", 128, STRING)
    assert changed(window, lambda key: "two", STRING, b"\4one" + tail) == (
        key_group,
        b"\4two" + tail,
    )


def test_timers_have_no_lengths() -> None:
    """Flink: TimerSerializer: a time, a key, a namespace."""
    timers = StateDescriptor("_timer_state/x", "PRIORITY_QUEUE", TEXT, TEXT, None)
    key_group = assign_to_key_group("two", 128, STRING)
    assert changed(timers, lambda key: "two", STRING, sb.i64(5) + b"\4one\3ns") == (
        key_group,
        sb.i64(5) + b"\4two\3ns",
    )


@pytest.mark.parametrize(
    ("state", "key"),
    [
        (state_of(STRING, VOID_NAMESPACE), b"\4on"),
        (state_of(STRING, VOID_NAMESPACE), b"\4one"),
        (state_of(STRING, TIME_WINDOW), b"\4one" + bytes(15)),
        (state_of(STRING, TEXT), b"\4one\4"),
        (state_of(STRING, TEXT), b"\4one\4\3ns"),
        (state_of(STRING, TEXT), b"\4one\4\3ns\4"),
        (state_of(STRING, TEXT), b"\4one\5\3ns\3"),
        (state_of(LONG, TEXT), bytes(8) + b"\3n"),
        (StateDescriptor("t", "PRIORITY_QUEUE", TEXT, TIME_WINDOW, None), bytes(8) + b"\4one\0"),
    ],
)
def test_what_is_no_key(state: StateDescriptor, key: bytes) -> None:
    with pytest.raises(SavepointError, match=r"here: of .* in key group 5: no entry: "):
        changed(state, lambda key: "two", STRING, key)


# Flink: BigDecSerializer, BigIntSerializer: BigDecimal.ZERO is a mark, another zero is a number.
OTHER_ZERO = sb.i32(5) + b"\0" + sb.i32(0)


def test_equal_keys_in_other_bytes_are_kept() -> None:
    """As Java wrote them, where the function returns an equal one."""
    state = state_of(BIG_DEC, VOID_NAMESPACE)
    assert changed(state, lambda key: Decimal(0), BIG_DEC, OTHER_ZERO + b"\0") is None
    key_group = assign_to_key_group(Decimal(1), 128, BIG_DEC)
    assert changed(state, lambda key: Decimal(1), BIG_DEC, OTHER_ZERO + b"\0") == (
        key_group,
        sb.i32(2, 0) + b"\0",
    )


def test_a_null_in_a_long_decimal() -> None:
    """A key of SQL is projected, and its NULL has another form there than in a value."""
    row = SQL_ROW("DECIMAL(38, 2)")
    serializer = serializer_of(row)
    assert serializer.write is not None
    assert serializer.write_key is not None
    as_key, as_value = serializer.write_key((None,)), serializer.write((None,))
    assert as_key != as_value
    key_group = assign_to_key_group((None,), 128, row)
    state = state_of(LONG, VOID_NAMESPACE)
    assert changed(state, lambda key: (None,), row, sb.i64(5) + b"\0") == (
        key_group,
        as_key + b"\0",
    )


def test_the_function_is_called_once_for_a_run() -> None:
    """Of equal keys, as the user keys of a map are; pickled it does the same."""
    calls = []

    def function(key: int) -> str:
        calls.append(key)
        return str(key)

    state = state_of(LONG, VOID_NAMESPACE)
    apply = bound(KeyMapping, function, TEXT, state, place())
    for key in (1, 1, 1, 2, 2, 1):
        assert apply(5, sb.i64(key) + b"\0", b"") is not None
    assert calls == [1, 2, 1]
    step = partial(KeyMapping, str, TEXT)
    entry = 5, sb.i64(7) + b"\0", b""
    again = bound(pickle.loads(pickle.dumps(step)), state, place())
    assert again(*entry) == bound(step, state, place())(*entry)


def test_keys_that_cannot_be_read() -> None:
    """One of them, of a type that is read otherwise; or the namespace whose length is needed."""
    for state, key in (
        (state_of(OddSerializer(), VOID_NAMESPACE), b"\x80more\0"),
        (state_of(LONG, OddSerializer()), sb.i64(5) + b"\x80more"),
    ):
        with pytest.raises(
            UnsupportedKeyTypeError, match=r"'n' cannot be mapped, as only the job"
        ):
            changed(state, str, STRING, key)
    state = state_of(OddSerializer(), VOID_NAMESPACE)
    assert changed(state, str, STRING, b"\5\0")[1] == b"\0025\0"


# --- what is refused, and what comes with it ----------------------------------------------------


@pytest.fixture
def users(tmp_path: Path) -> Path:
    """A savepoint of three subtasks with states of some users."""
    with SavepointWriter(tmp_path / "users") as writer:
        states = [
            ValueStateDescriptor("count", LONG),
            MapStateDescriptor("cities", STRING, STRING),
            TimerServiceDescriptor(),
        ]
        operator = writer.add_operator("by-user", STRING, states, 128, 3)
        for number in sorted(range(12), key=lambda number: operator.key_group(f"k{number}")):
            operator.write("count", f"k{number}", number)
            operator.write("cities", f"k{number}", "r", f"rome {number}")
            operator.write_timer(f"k{number}", number)
    return tmp_path / "users"


@pytest.mark.parametrize(
    ("verbs", "error", "match"),
    [
        (lambda op: op.map_keys(5), InvalidTypeError, "function must be callable, got 5"),
        (lambda op: op.map_keys(len, 5), InvalidTypeError, "key_type must be a key type"),
        (lambda op: op.map_keys(len, BYTES), UnsupportedKeyTypeError, "become others of BYTES"),
        (
            lambda op: op.map_keys(len, UnknownSerializer("x.Own")),
            UnsupportedKeyTypeError,
            "x.Own",
        ),
    ],
)
def test_refused_at_once(
    verbs: Callable[[OperatorEditor], object],
    error: type[KeyGroupsError],
    match: str,
    users: Path,
) -> None:
    editor = OperatorEditor(read_savepoint(users).operator("by-user"))
    with pytest.raises(error, match=match):
        verbs(editor)
    assert not editor.is_changed


@pytest.mark.parametrize(
    ("result", "error", "match"),
    [
        (
            5,
            InvalidTypeError,
            r"key 'k\d+' in state '.*': key of type STRING must be a str, got 5",
        ),
        (None, InvalidValueError, r"key 'k\d+' in state '.*': key is None"),
        ([], InvalidTypeError, r"key 'k\d+' in state '.*': key of type STRING must be a str"),
        ("one", InvalidValueError, "each key must come once, got key 'one' in state 'count'"),
        ("k3", InvalidValueError, "each key must come once, got key 'k3' in state 'count'"),
    ],
)
def test_wrong_results(result: Any, error: type[KeyGroupsError], match: str, users: Path) -> None:
    path = users.with_name("new")
    with pytest.raises(error, match=match):
        edit(users, path, "by-user", lambda op: op.map_keys(lambda key: result))
    assert not path.exists()


@pytest.mark.parametrize("error", [OSError("5"), StopIteration(5), InvalidTypeError("5")])
def test_errors_of_a_function(error: Exception, users: Path) -> None:
    """Come through as they are, with a note that names the key, behind those they have."""
    error.__notes__ = ["its own"]

    def fail(key: str) -> str:
        raise error

    path = users.with_name("new")
    with pytest.raises(type(error)) as raised:
        edit(users, path, "by-user", lambda op: op.map_keys(fail))
    assert raised.value is error
    own, note = raised.value.__notes__
    assert own == "its own"
    assert note.startswith("map_keys: key 'k")
    assert raised.value.__cause__ is raised.value.__context__ is None
    del raised.value.__notes__
    assert not path.exists()


def test_maps_and_timers_are_put_together(users: Path) -> None:
    """Two keys become one where they have no entry in common; with one in common they do not."""

    def merged(*gone: str) -> Callable[[OperatorEditor], None]:
        def verbs(editor: OperatorEditor) -> None:
            for name in gone:
                editor.remove_state(name)
            editor.map_keys(lambda key: "all")

        return verbs

    path = users.with_name("new")
    edit(users, path, "by-user", merged("count"))
    entries = [*read_savepoint(path).operator("by-user").entries()]
    assert {entry.key for entry in entries} == {"all"}
    assert sorted(entry.user_key for entry in entries if entry.kind == "MAP") == sorted(
        f"rome {number}" for number in range(12)
    )
    assert sorted(entry.timestamp or 0 for entry in entries if entry.kind != "MAP") == [*range(12)]


def test_verbs_see_what_those_before_leave(users: Path) -> None:
    """Keys are deleted by their old names before, and by the new ones after."""

    def verbs(editor: OperatorEditor) -> None:
        editor.delete_keys(["k1", "nobody"])
        editor.map_keys(lambda key: "u" + key[1:])
        editor.delete_keys(["u2", "k3"])
        editor.map_entries("count", lambda entry: entry.value + len(entry.key))

    report = edit(users, users.with_name("new"), "by-user", verbs)
    entries = read_savepoint(users.with_name("new")).operator("by-user").entries(["count"])
    assert {entry.key: entry.value for entry in entries} == {
        f"u{number}": number + len(f"u{number}") for number in range(12) if number not in (1, 2)
    }
    deleted = report.operators[0].deleted_keys
    assert deleted is not None
    assert (deleted.with_entries, deleted.without_entries) == (2, ("nobody", "k3"))


def test_verbs_see_another_type(users: Path) -> None:
    def verbs(editor: OperatorEditor) -> None:
        editor.map_keys(lambda key: int(key[1:]), LONG)
        assert {state.key_type for state in editor.states} == {LONG}
        with pytest.raises(InvalidTypeError, match="LONG must be an int, got 'k1'"):
            editor.delete_keys(["k1"])
        editor.delete_keys([1, 99])
        editor.map_entries("count", lambda entry: entry._replace(key=entry.key * 2))
        editor.map_keys(lambda key: (key, "x"), PAIR)
        with pytest.raises(InvalidValueError, match="keys of LONG are deleted before they become"):
            editor.delete_keys([(1, "x")])

    report = edit(users, users.with_name("new"), "by-user", verbs)
    new = read_savepoint(users.with_name("new")).operator("by-user")
    numbers = [number for number in range(12) if number != 1]
    for state, keys in (("count", [2 * number for number in numbers]), ("cities", numbers)):
        assert sorted(entry.key for entry in new.entries([state])) == [(key, "x") for key in keys]
    assert {state.key_type for state in new.states} == {PAIR}
    deleted = report.operators[0].deleted_keys
    assert deleted is not None
    assert (deleted.with_entries, deleted.without_entries) == (1, (99,))


@pytest.mark.slow
def test_memory_is_flat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four times the entries, all of which move, take hardly more memory."""
    monkeypatch.setattr(files_module, "CHUNK", 1 << 10)
    monkeypatch.setattr(moved_module, "_BUFFERED", 1 << 14)
    monkeypatch.setattr(spill_module, "_HELD", 1 << 17)
    monkeypatch.setattr(spill_module, "_BUFFERED", 1 << 8)
    peaks = []
    for entries in (3_200, 3_200 * 4):
        folder = tmp_path / str(entries)
        write_large(folder, "canonical", entries)
        savepoint = read_savepoint(folder)
        tracemalloc.start()
        try:
            edit(
                savepoint,
                tmp_path / f"new-{entries}",
                "by-string",
                lambda op: op.map_keys(lambda key: int(key[5:]), LONG),
            )
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0]


OWN = sb.i32(2) + sb.utf("x.Own$Snapshot") + sb.i32(1)  # nobody here knows the class


def test_states_that_only_the_job_reads(tmp_path: Path) -> None:
    """Values stay as bytes; keys, and a namespace whose length is needed, have to be read."""

    def editor_of(name: str, key: bytes, *states: bytes) -> OperatorEditor:
        header = sb.keyed_header(key, states)
        task = sb.subtask(managed_keyed=sb.canonical(3, [0], sb.inline(header)))
        sb.write(tmp_path / name, [sb.operator([task], uid="op")])
        return OperatorEditor(read_savepoint(tmp_path / name).operator("op"))

    editor = editor_of("values", sb.simple("String"), sb.state("n", "VALUE", OWN[4:]))
    editor.map_keys(len, LONG)
    assert editor.states[0].key_type == LONG
    editor = editor_of("keys", OWN, sb.state("n", "VALUE", sb.simple("Long")))
    with pytest.raises(
        UnsupportedKeyTypeError, match="cannot be mapped: only the job can read keys"
    ):
        editor.map_keys(len, LONG)
    longs = sb.simple("Long")
    editor = editor_of("maps", sb.map_of(longs, longs), sb.state("n", "VALUE", longs))
    with pytest.raises(UnsupportedKeyTypeError, match=r"become others of MAP\(LONG, LONG\)"):
        editor.map_keys(repr)
    editor.map_keys(repr, STRING)
    editor = editor_of("windows", longs, sb.state("n", "VALUE", longs, namespace=OWN[4:]))
    with pytest.raises(UnsupportedKeyTypeError, match="keys in state 'n' cannot be mapped: a key"):
        editor.map_keys(str, STRING)
    assert not editor.is_changed
    editor.map_keys(abs)
    timers = sb.state("_timer_state/x", "", OWN[4:], backend_type=3)
    editor = editor_of("timers", longs, timers)
    with pytest.raises(UnsupportedKeyTypeError, match="keys in state '_timer_state/x' cannot be"):
        editor.map_keys(str, STRING)
