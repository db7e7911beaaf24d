"""Keyed state that is edited: every verb against a dict in plain Python, and real savepoints.

What the entries of the real ones are is held against Flink in test_savepoint_points.py; what the
library reads of them is the expected side here, with the edit done to it in Python.
"""

from __future__ import annotations

import pickle
import re
import tracemalloc
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.bytes import savepoint_bytes as sb
from support.bytes.edited_operators import Verbs, edit
from support.bytes.framed_entries import bound
from support.bytes.job_points import JOB_POINTS, job_point
from support.bytes.large_savepoints import write as write_large
from support.bytes.real_savepoints import FORMATS, POINTS, point
from support.inside.savepoints import (
    DeleteKeys,
    EditedKeyedState,
    KeyGroupsHandle,
    SetTtl,
    SoughtKeys,
)
from support.inside.savepoints import StepContext as StepPlace
from support.inside.savepoints import files as files_module
from support.inside.savepoints import moved_entries as moved_module
from support.selections import examples

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
    ListStateDescriptor,
    MapStateDescriptor,
    Operator,
    OperatorEditor,
    Savepoint,
    SavepointWriter,
    StateEntry,
    TimeWindow,
    TtlValue,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.state_keys import serializer_of
from keygroups.types import BIG_INT, LONG, STRING

TIME, LATER = 1_700_000_000_044, 1_700_000_099_000


def shown(entry: StateEntry) -> str:
    return repr(entry._replace(bytes=0))


def entries_of(operator: Operator) -> Counter[str]:
    return Counter(map(shown, operator.entries()))


# --- against a dict ---------------------------------------------------------------------------

KEYS = [f"k{number}" for number in range(12)]
StepContext = tuple[str, str, str | None]
Model = dict[StepContext, tuple[Any, int | None]]
STATES = [
    ValueStateDescriptor("count", LONG),
    ValueStateDescriptor("seen", LONG, has_ttl=True),
    ListStateDescriptor("tags", STRING),
    ListStateDescriptor("used", LONG, has_ttl=True),
    MapStateDescriptor("cities", STRING, STRING),
    MapStateDescriptor("stock", STRING, LONG, has_ttl=True),
]
KIND = {state.name: state.kind for state in STATES}
longs = st.integers(-(2**63), 2**63 - 1)
texts = st.text(max_size=3)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "count": longs,
    "seen": longs,
    "tags": st.lists(texts, min_size=1, max_size=3),
    "used": st.lists(longs, min_size=1, max_size=3),
    "cities": st.none() | texts,
    "stock": longs,
}
HAS_TTL = {state.name for state in STATES if state.has_ttl}


@st.composite
def models(draw: st.DrawFn) -> Model:
    model: Model = {}
    for name, values in VALUES.items():
        for key in draw(st.sets(st.sampled_from(KEYS), max_size=5)):
            user_keys: set[Any] = {None}
            if KIND[name] == "MAP":
                user_keys = draw(st.sets(texts, min_size=1, max_size=2))
            for user_key in user_keys:
                model[name, key, user_key] = draw(values), TIME if name in HAS_TTL else None
    return model


def write_model(path: Path, model: Model, parallelism: int) -> None:
    with SavepointWriter(path) as writer:
        operator = writer.add_operator("by-user", STRING, STATES, 128, parallelism)
        for state, key, user_key in sorted(model, key=lambda place: operator.key_group(place[1])):
            value, last_access = model[state, key, user_key]
            operator.write(state, key, value, user_key, last_access)


def read_model(path: Path) -> Model:
    model: Model = {}
    for entry in read_savepoint(path).operator("by-user").entries():
        value, last_access = entry.value, entry.last_access
        if isinstance(value, list) and isinstance(value[0], TtlValue):
            ((last_access),) = {element.last_access for element in value}
            value = [element.value for element in value]
        assert (entry.state, entry.key, entry.user_key) not in model
        model[entry.state, entry.key, entry.user_key] = value, last_access
    return model


Item = tuple[str, "str | None", Any]
CHANGES: dict[str, Callable[[str, str | None, Any], list[Item]]] = {
    "nothing": lambda key, user_key, value: [(key, user_key, value)],
    "another value": lambda key, user_key, value: [
        (key, user_key, value[:1] if isinstance(value, list) else type(value)())
    ],
    "some deleted": lambda key, user_key, value: [] if key < "k3" else [(key, user_key, value)],
    "another key": lambda key, user_key, value: [(key + "x", user_key, value)],
    "one key": lambda key, user_key, value: [("k0", user_key, value)],
    "swapped": lambda key, user_key, value: [
        ({"k0": "k1", "k1": "k0"}.get(key, key), user_key, value)
    ],
    "two keys": lambda key, user_key, value: [
        (key, user_key, value),
        (key + "y", user_key, value),
    ],
    "another user key": lambda key, user_key, value: [
        (key, None if user_key is None else user_key[:1], value)
    ],
}


def applied(change: str, entry: StateEntry) -> Any:
    """Return the result of a function of `map_entries`, now in one form and now in another."""
    value = entry.value
    times = isinstance(value, list) and isinstance(value[0], TtlValue)
    plain = [element.value for element in value] if times else value
    items = CHANGES[change](entry.key, entry.user_key, plain)
    new = [
        entry._replace(
            key=key,
            user_key=user_key,
            value=[TtlValue(value[0].last_access, element) for element in item] if times else item,
        )
        for key, user_key, item in items
    ]
    if not new:
        return DELETE if entry.key_group % 2 else iter(new)
    if len(new) == 1 and new[0][:7] == entry[:7]:
        return new[0].value if entry.key_group % 2 else new[0]
    return new if entry.key_group % 2 else (each for each in new)


Verb = tuple[Any, ...]
state_names = st.sampled_from([*VALUES, "other"])
verbs_of = st.lists(
    st.tuples(st.just("remove_state"), state_names)
    | st.tuples(st.just("rename_state"), state_names, st.sampled_from(["other", "count", "new"]))
    | st.tuples(st.just("set_ttl"), state_names, st.sampled_from([None, TIME, LATER]))
    | st.tuples(st.just("delete_keys"), st.sets(st.sampled_from([*KEYS, "k1x"]), min_size=1))
    | st.tuples(st.just("map_entries"), state_names, st.sampled_from([*CHANGES])),
    min_size=1,
    max_size=4,
)


class Twice(Exception):
    """Two entries of a model have one place."""


class Refused(Exception):
    """A verb that a model does not take."""


def edit_model(model: Model, ttl: dict[str, bool], verb: Verb) -> Model:
    """Return a model after a verb; `ttl` says which states there are, and whether with TTL."""
    what, subject, *arguments = verb
    if what == "delete_keys":
        return {place: value for place, value in model.items() if place[1] not in subject}
    if subject not in ttl:
        raise Refused
    of_state = {place: value for place, value in model.items() if place[0] == subject}
    rest = {place: value for place, value in model.items() if place[0] != subject}
    if what == "remove_state":
        del ttl[subject]
        return rest
    if what == "rename_state":
        (new,) = arguments
        if new in ttl:
            raise Refused
        ttl[new] = ttl.pop(subject)
        return rest | {(new, *place[1:]): value for place, value in of_state.items()}
    if what == "set_ttl":
        (time,) = arguments
        if time is None and not ttl[subject]:
            raise Refused
        ttl[subject] = time is not None
        return rest | {place: (value, time) for place, (value, _) in of_state.items()}
    for (_, key, user_key), (value, time) in of_state.items():
        for new_key, new_user_key, new_value in CHANGES[arguments[0]](key, user_key, value):
            place = (subject, new_key, new_user_key)
            if place in rest:
                raise Twice
            rest[place] = new_value, time
    return rest


def call(editor: OperatorEditor, verb: Verb) -> None:
    what, subject, *arguments = verb
    if what == "set_ttl":
        editor.set_ttl(subject, arguments[0] is not None, arguments[0])
    elif what == "map_entries":
        editor.map_entries(subject, partial(applied, arguments[0]))
    else:
        getattr(editor, what)(subject, *arguments)


def check_model(model: Model, verbs: list[Verb], parallelism: int) -> None:
    if not model:
        return  # no keyed state is there
    with TemporaryDirectory() as folder:
        old, new = Path(folder, "old"), Path(folder, "new")
        write_model(old, model, parallelism)
        ttl = {state.name: state.has_ttl for state in STATES}
        expected: Model | None = model
        try:
            with SavepointWriter.from_existing_savepoint(old, new) as writer:
                editor = writer.operator("by-user")
                for verb in verbs:
                    try:
                        after = edit_model(expected, ttl, verb) if expected is not None else None
                    except Refused:
                        with pytest.raises(InvalidValueError):
                            call(editor, verb)
                        continue
                    except Twice:  # if what follows does not take one of them away
                        expected = None
                        break
                    if not ttl and verb[0] == "delete_keys":
                        with pytest.raises(InvalidValueError, match="no state left"):
                            call(editor, verb)
                        continue
                    call(editor, verb)
                    expected = after
                if expected is None:
                    call(editor, verb)
        except InvalidValueError as error:
            if expected is not None or "each key must come once" not in str(error):
                raise
            assert not new.exists()
            return
        assert expected is not None
        assert read_model(new) == expected


@pytest.mark.long
@examples(6)
@given(models(), verbs_of, st.sampled_from([1, 3]))
def test_against_a_model(model: Model, verbs: list[Verb], parallelism: int) -> None:
    check_model(model, verbs, parallelism)


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(models(), verbs_of, st.sampled_from([1, 2, 7]))
def test_against_a_model_at_length(model: Model, verbs: list[Verb], parallelism: int) -> None:
    check_model(model, verbs, parallelism)


# --- real savepoints --------------------------------------------------------------------------

FORMATS_OF_STATE = [
    "2.3.0-heap-native",
    "2.3.0-rocksresc-native",
    "1.20.5-changelog-checkpoint",
    "1.20.5-sqlrocks-canonical",
    "2.3.0-heaptimers-checkpoint",
]
READABLE = [one.name for one in (*POINTS, *FORMATS)]


def keyed(savepoint: Savepoint) -> list[Operator]:
    return [operator for operator in savepoint.operators if operator.tasks()]


def some_keys(operator: Operator) -> list[Any]:
    """Return every third key, each once."""
    keys = {repr(entry.key): entry.key for entry in operator.entries() if entry.key_bytes is None}
    return [key for _, key in sorted(keys.items())][::3]


def check_deleted(old: Savepoint, path: Path) -> int:
    """Delete every third key of each operator, and hold what is left against what was there."""
    expected, deleted = {}, {}
    with SavepointWriter.from_existing_savepoint(old, path) as writer:
        for operator in keyed(old):
            keys = some_keys(operator)
            doomed = set(map(repr, keys))
            deleted[operator.label] = doomed
            expected[operator.operator_id] = Counter(
                shown(entry) for entry in operator.entries() if repr(entry.key) not in doomed
            )
            writer.operator(operator.operator_id).delete_keys(keys)
    new = read_savepoint(path)
    for operator in keyed(old):
        rest = entries_of(new.operator(operator.operator_id))
        assert rest == expected[operator.operator_id], operator
    for edited in writer.report().operators:
        if edited.deleted_keys is not None:
            assert edited.deleted_keys.with_entries == len(deleted[str(edited.operator)])
            assert edited.deleted_keys.without_entries == ()
    return sum(len(keys) for keys in deleted.values())


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in FORMATS_OF_STATE else pytest.mark.slow)
        for name in READABLE
    ],
)
def test_delete_keys(name: str, tmp_path: Path) -> None:
    """Of every format and type of key: all entries, timers and windows of a key, and no other."""
    assert check_deleted(point(name).read(), tmp_path / "new") > 0


JOBS = [one.name for one in JOB_POINTS if one.kind != "checkpoint"]
QUICK_JOBS = ["1.20.5-sqlup-rocksdb-native"]
OWN_VALUES = [  # Kryo's, without lengths
    *("1.20.5-keys-hashmap-native", "1.20.5-kitchen-hashmap-native"),
    "1.20.5-shop-hashmap-native",
]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in QUICK_JOBS else pytest.mark.slow)
        for name in JOBS
        if name not in OWN_VALUES
    ],
)
def test_delete_keys_of_jobs(name: str, tmp_path: Path) -> None:
    """Keys of the job's own classes too: rows, enums, objects of Kryo, POJOs."""
    assert check_deleted(job_point(name).read(), tmp_path / "new") > 0


def canonical_streams(savepoint: Savepoint) -> dict[tuple[str, int], tuple[Any, bytes]]:
    """Return the offsets and the bytes of keyed state by operator and subtask."""
    streams = {}
    for operator in savepoint.metadata.operators:
        for subtask in operator.subtasks:
            handle = subtask.managed_keyed
            if isinstance(handle, KeyGroupsHandle):
                with savepoint.files.open(handle.stream) as stream:
                    data = stream.read(0, stream.size)
                streams[operator.operator_id, subtask.index] = (handle.offsets, data)
    return streams


def same(entry: StateEntry) -> Any:
    """Return an entry that is equal to what was there, and now and then an equal value."""
    return entry.value if entry.key_group % 2 else [entry._replace(key=entry.key)]


def test_nothing_changed_is_the_same_bytes(tmp_path: Path) -> None:
    """Canonical state whose every value was read, given to a function and compared."""
    old = point("2.3.0-heap-canonical").read()
    mapped = 0
    with SavepointWriter.from_existing_savepoint(old, tmp_path / "new") as writer:
        for operator in keyed(old):
            editor = writer.operator(operator.operator_id)
            for state in operator.states:
                try:
                    editor.map_entries(state.name, same)
                    mapped += 1
                except (InvalidValueError, UnsupportedKeyTypeError):  # timers, merging windows
                    continue
    assert mapped > 40
    assert canonical_streams(read_savepoint(tmp_path / "new")) == canonical_streams(old)
    for edited in writer.report().operators:
        for counts in edited.states:
            assert (counts.changed, counts.deleted, counts.added) == (0, 0, 0)


def test_values_of_windows(tmp_path: Path) -> None:
    """Mapped and deleted in their namespaces, which they keep; timers stay as they are."""
    old = point("2.3.0-heap-canonical").read()

    def shortened(entry: StateEntry) -> Any:
        return DELETE if entry.key_group % 2 else entry.value[:1]

    edit(
        old,
        tmp_path / "new",
        "sliding-list",
        lambda op: op.map_entries("window-contents", shortened),
    )
    expected = Counter(
        shown(entry._replace(value=entry.value[:1] if entry.value else None))
        for entry in old.operator("sliding-list").entries()
        if entry.state != "window-contents" or not entry.key_group % 2
    )
    new = read_savepoint(tmp_path / "new").operator("sliding-list")
    assert entries_of(new) == expected
    assert any(entry.state == "window-contents" for entry in new.entries())
    for change in ({"key": "another"}, {"namespace": TimeWindow(0, 5)}):
        verbs = partial(_map_windows, change)
        with pytest.raises(InvalidValueError, match="window must keep key and namespace"):
            edit(old, tmp_path / "moved", "sliding-list", verbs)


def _map_windows(change: dict[str, Any], editor: OperatorEditor) -> None:
    editor.map_entries("window-contents", lambda entry: entry._replace(**change))


# --- what functions return and raise ------------------------------------------------------------


@pytest.fixture
def users(tmp_path: Path) -> Path:
    """A savepoint of three subtasks with some states of some users."""
    model: Model = {}
    for number, key in enumerate(KEYS):
        model["count", key, None] = number, None
        model["tags", key, None] = [key, key], None
        model["used", key, None] = [number], TIME
        model["cities", key, "rome"] = "r", None
        model["cities", key, "oslo"] = None, None
        model["stock", key, "a"] = number, TIME
    write_model(tmp_path / "users", model, 3)
    return tmp_path / "users"


def mapped(users: Path, state: str, function: Callable[[StateEntry], Any], **more: Any) -> Model:
    path = users.with_name("new")
    edit(users, path, "by-user", lambda op: op.map_entries(state, function, **more))
    return read_model(path)


def test_entries_that_move(users: Path) -> None:
    """To another key, in another subtask: every key group is that of its key."""
    new = mapped(users, "count", lambda entry: entry._replace(key=f"u-{entry.key}"))
    counts = {key: value for (state, key, _), (value, _) in new.items() if state == "count"}
    assert counts == {f"u-{key}": number for number, key in enumerate(KEYS)}
    for state in KIND:
        assert sum(place[0] == state for place in new) == sum(
            place[0] == state for place in read_model(users)
        )


def test_many_entries_that_move(users: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many times as they do not fit what is held."""
    monkeypatch.setattr(moved_module, "_BUFFERED", 64)
    new = mapped(
        users, "tags", lambda entry: [entry, *(entry._replace(key=f"{n}") for n in range(1))]
        if entry.key == "k3"
        else entry._replace(key=entry.key * 2),
    )  # fmt: skip
    assert {key for state, key, _ in new if state == "tags"} == {
        *(key * 2 for key in KEYS if key != "k3"),
        *("k3", "0"),
    }


@pytest.mark.parametrize("state", ["count", "tags", "cities"])
@pytest.mark.parametrize("to", ["k1", "elsewhere"])
def test_one_key_twice(state: str, to: str, users: Path) -> None:
    """One that is there, or that two get: of a LIST, too."""
    with pytest.raises(InvalidValueError, match=f"come once, got key '{to}' in state '{state}'"):
        mapped(users, state, lambda entry: entry._replace(key=to))
    assert not users.with_name("new").exists()


def test_the_same_entry_twice(users: Path) -> None:
    with pytest.raises(InvalidValueError, match="each key must come once, got key 'k0' in state"):
        mapped(users, "count", lambda entry: [entry, entry] if entry.key == "k0" else entry.value)


@pytest.mark.parametrize("to", ["a", "b"])
def test_a_key_that_is_there_first_or_last_of_its_key_group(to: str, tmp_path: Path) -> None:
    """All are in one, and the entry that moved there comes in the order of their bytes."""
    states = [ValueStateDescriptor("count", LONG)]
    with SavepointWriter(tmp_path / "old") as writer:
        operator = writer.add_operator("by-user", STRING, states, 1, 1)
        for key in "abc":
            operator.write("count", key, 7)
    verb = "each key must come once, got key"
    with pytest.raises(InvalidValueError, match=f"{verb} '{to}' in state 'count' twice"):
        edit(
            tmp_path / "old",
            tmp_path / "new",
            "by-user",
            lambda op: op.map_entries(
                "count", lambda entry: entry._replace(key=to) if entry.key == "c" else entry
            ),
        )


class Own(Exception):
    """An error of the user."""


@pytest.mark.parametrize(
    "error", [Own("5"), OSError("5"), StopIteration("5"), InvalidTypeError("5"), KeyError(5)]
)
@pytest.mark.parametrize("is_iterator", [False, True])
def test_errors_of_a_function(error: Exception, is_iterator: bool, users: Path) -> None:
    """Come through as they are, with a note that names the entry, behind those they have."""
    error.__notes__ = ["its own"]

    def fail(entry: StateEntry) -> Any:
        if entry.key == "k7":
            raise error
        return entry.value

    class Failing:
        def __init__(self, entry: StateEntry) -> None:
            self.entries = iter([entry])

        def __iter__(self) -> Failing:
            return self

        def __next__(self) -> StateEntry:
            entry = next(self.entries)
            fail(entry)
            return entry

    if is_iterator and isinstance(error, StopIteration):
        return  # it is the end
    with pytest.raises(type(error)) as raised:
        mapped(users, "cities", Failing if is_iterator else fail)
    assert raised.value is error
    own, note = raised.value.__notes__
    assert own == "its own"
    assert note.startswith("map_entries: key 'k7', user key '")
    assert note.endswith("in state 'cities'")
    assert raised.value.__cause__ is raised.value.__context__ is None
    del raised.value.__notes__
    assert not users.with_name("new").exists()


WRONG_RESULTS: list[tuple[str, Any, type[KeyGroupsError], str]] = [
    ("count", "5", InvalidTypeError, "key 'k0' in state 'count': value of VALUE state"),
    ("count", None, InvalidValueError, "must not be None"),
    ("count", 2**63, InvalidValueError, "key 'k0' in state 'count': value of VALUE state"),
    ("count", [], InvalidTypeError, "value of VALUE state 'count'"),
    ("tags", [], InvalidValueError, "an empty list is no entry"),
    ("tags", [5], InvalidTypeError, "key 'k0' in state 'tags'"),
    ("used", [5], InvalidValueError, "last_access must be epoch milliseconds"),
    ("used", [TtlValue(5, 5)], InvalidValueError, "last_access must be epoch milliseconds, from"),
    (
        "used",
        [TtlValue._make((None, 5))],
        InvalidValueError,
        "last_access must be epoch milliseconds",
    ),
    ("cities", 5, InvalidTypeError, "key 'k0', user key 'oslo' in state 'cities': value of MAP"),
]


@pytest.mark.parametrize(("state", "result", "error", "match"), WRONG_RESULTS)
def test_wrong_results(
    state: str, result: Any, error: type[KeyGroupsError], match: str, users: Path
) -> None:
    """Refused as the writer refuses them, with the name of the entry."""
    is_first = {"k0": True}
    with pytest.raises(error, match=match):
        mapped(
            users,
            state,
            lambda entry: result if is_first.get(entry.key) else entry.value,
        )


WRONG_ENTRIES: list[tuple[dict[str, Any], type[KeyGroupsError], str]] = [
    ({"key": 5}, InvalidTypeError, "key of type STRING must be a str, got 5"),
    ({"key": None}, InvalidValueError, "key is None: assigned key must not be null"),
    ({"user_key": None}, InvalidValueError, "user key of MAP state 'stock' must not be None"),
    ({"user_key": 5}, InvalidTypeError, "user key of MAP state 'stock'"),
    ({"namespace": TimeWindow(0, 5)}, InvalidValueError, "namespace must be None in the MAP"),
    ({"value": "5"}, InvalidTypeError, "value of MAP state 'stock'"),
    ({"last_access": None}, InvalidValueError, "last_access must be epoch milliseconds"),
    ({"last_access": 5}, InvalidValueError, "last_access must be epoch milliseconds, from"),
    ({"state": "count"}, InvalidValueError, "must stay in its state, got one of 'count'"),
]


@pytest.mark.parametrize(("change", "error", "match"), WRONG_ENTRIES)
def test_wrong_entries(
    change: dict[str, Any], error: type[KeyGroupsError], match: str, users: Path
) -> None:
    with pytest.raises(error, match=match):
        mapped(users, "stock", lambda entry: [entry._replace(**change)])


def test_what_is_no_entry(users: Path) -> None:
    with pytest.raises(InvalidTypeError, match="a StateEntry"):
        mapped(users, "count", lambda entry: iter([None]))
    with pytest.raises(InvalidTypeError, match="LONG must be an"):
        mapped(users, "count", lambda entry: (5,))
    with pytest.raises(InvalidTypeError, match="entries must each be a StateEntry, got 5"):
        mapped(users, "count", lambda entry: [entry, 5])


def test_times_that_were_there_stay(users: Path) -> None:
    """A value that comes back has its last access, which may be any that was there."""
    path = users.with_name("early")
    edit(
        users,
        path,
        "by-user",
        lambda op: op.set_ttl("stock", last_access=5, allow_any_last_access=True),
    )
    new = mapped(path, "stock", lambda entry: entry.value + 1)
    assert {value for (state, _, _), value in new.items() if state == "stock"} == {
        (number + 1, 5) for number in range(len(KEYS))
    }
    (path.with_name("new")).rename(path.with_name("next"))
    new = mapped(
        path,
        "stock",
        lambda entry: entry._replace(last_access=7),
        allow_any_last_access=True,
    )
    assert {time for (state, _, _), (_, time) in new.items() if state == "stock"} == {7}


def test_a_value_changed_in_place_is_changed(users: Path) -> None:
    def add(entry: StateEntry) -> Any:
        entry.value.append("more")
        return entry.value

    path = users.with_name("new")
    report = edit(users, path, "by-user", lambda op: op.map_entries("tags", add))
    assert {tuple(value) for (state, *_), (value, _) in read_model(path).items()
            if state == "tags"} == {(key, key, "more") for key in KEYS}  # fmt: skip
    (operator,) = report.operators
    counts = {state.state: state for state in operator.states}
    assert counts["tags"][2:] == (0, len(KEYS), 0, 0)
    assert counts["count"][2:] == (len(KEYS), 0, 0, 0)


# --- time to live -------------------------------------------------------------------------------


def test_nulls_and_time_to_live(users: Path) -> None:
    """The mark of a null, without a time to live; the value behind the time is null with one."""
    path = users.with_name("ttl")
    edit(users, path, "by-user", lambda op: op.set_ttl("cities", last_access=TIME))
    model = read_model(path)
    assert model["cities", "k0", "oslo"] == (None, TIME)
    assert model["cities", "k0", "rome"] == ("r", TIME)
    back = users.with_name("back")
    edit(path, back, "by-user", lambda op: op.set_ttl("cities", has_ttl=False))
    assert read_model(back) == read_model(users)
    assert canonical_streams(read_savepoint(back)) == canonical_streams(read_savepoint(users))


def test_a_null_that_no_serializer_writes() -> None:
    """A MAP of LONG has a null by its mark alone, which a state with a time to live has not."""
    (state,) = MapStateDescriptor("m", STRING, LONG).described(serializer_of(STRING))
    apply = bound(SetTtl(TIME), state, StepPlace("here", 0, 128, set()))
    assert apply(3, b"\2a\0\2u", b"\0" + sb.i64(5)) == (
        (3, b"\2a\0\2u", b"\0" + sb.i64(TIME) + sb.i64(5)),
    )
    with pytest.raises(InvalidValueError, match="key 'a', user key 'u' in state 'm': a null can"):
        apply(3, b"\2a\0\2u", b"\1")


def test_restamped(users: Path) -> None:
    """Each value, element and value in a MAP, whatever it had."""
    path = users.with_name("new")

    def verbs(editor: OperatorEditor) -> None:
        for name in ("used", "stock", "count"):
            editor.set_ttl(name, last_access=LATER)

    edit(users, path, "by-user", verbs)
    expected = {
        place: (value, LATER if place[0] in {"count", *HAS_TTL} else None)
        for place, (value, _) in read_model(users).items()
    }
    assert read_model(path) == expected


# --- what is refused when it is asked for -------------------------------------------------------


@pytest.mark.parametrize(
    ("verbs", "error", "match"),
    [
        (lambda op: op.remove_state("nobody"), InvalidValueError, "which has count, seen, tags"),
        (lambda op: op.remove_state(5), InvalidTypeError, "state must be a str"),
        (lambda op: op.rename_state("nobody", "x"), InvalidValueError, "got 'nobody'"),
        (lambda op: op.rename_state("count", "tags"), InvalidValueError, "of no other state"),
        (lambda op: op.rename_state("count", "count"), InvalidValueError, "of no other state"),
        (lambda op: op.rename_state("count", ""), InvalidValueError, "must not be empty"),
        (lambda op: op.rename_state("count", "default"), InvalidValueError, "keeps for itself"),
        (
            lambda op: op.rename_state("count", "_timer_state/x"),
            InvalidValueError,
            "keeps for itself",
        ),
        (lambda op: op.rename_state("count", 5), InvalidTypeError, "must be a str"),
        (lambda op: op.rename_state("count", "x" * 65536), InvalidValueError, "name of a state"),
        (lambda op: op.set_ttl("count"), InvalidTypeError, "last_access must be an int, got None"),
        (lambda op: op.set_ttl("count", 1), InvalidTypeError, "has_ttl must be a bool"),
        (lambda op: op.set_ttl("count", last_access=5), InvalidValueError, "epoch milliseconds"),
        (lambda op: op.set_ttl("count", last_access=2**63), InvalidValueError, "last_access"),
        (lambda op: op.set_ttl("count", has_ttl=False), InvalidValueError, "no time to live"),
        (
            lambda op: op.set_ttl("seen", has_ttl=False, last_access=5),
            InvalidValueError,
            "last_access must be None without has_ttl, got 5",
        ),
        (
            lambda op: op.set_ttl("seen", last_access=5, allow_any_last_access=1),
            InvalidTypeError,
            "allow_any_last_access must be a bool",
        ),
        (lambda op: op.delete_keys("k1"), InvalidTypeError, "keys must be an iterable of keys"),
        (lambda op: op.delete_keys(5), InvalidTypeError, "keys must be an iterable of keys"),
        (lambda op: op.delete_keys([]), InvalidValueError, "keys must be at least one"),
        (lambda op: op.delete_keys(["k1", 5]), InvalidTypeError, "STRING must be a str, got 5"),
        (lambda op: op.delete_keys([b"k1"]), InvalidTypeError, "STRING must be a str, got b'k1'"),
        (lambda op: op.delete_keys([None]), InvalidValueError, "key"),
        (lambda op: op.map_entries("count", 5), InvalidTypeError, "function must be callable"),
        (
            lambda op: op.map_entries("count", len, allow_any_last_access=1),
            InvalidTypeError,
            "allow_any_last_access must be a bool",
        ),
    ],
)
def test_refused_at_once(
    verbs: Verbs, error: type[KeyGroupsError], match: str, users: Path
) -> None:
    with pytest.raises(error, match=match):
        verbs(OperatorEditor(read_savepoint(users).operator("by-user")))


def test_keys_one_by_one(users: Path) -> None:
    """As all at once, and also by the keys that a function gave before."""
    path = users.with_name("new")

    def verbs(editor: OperatorEditor) -> None:
        editor.delete_keys(["k1"])
        editor.rename_state("count", "n")
        editor.delete_keys(iter(["k2", "k1"]))
        editor.map_entries("n", lambda entry: entry._replace(key=entry.key + "!"))
        editor.delete_keys(["k3", "k4!"])
        assert repr(editor).startswith("<OperatorEditor of <Operator ")

    report = edit(users, path, "by-user", verbs)
    model = read_model(path)
    counts = {key for state, key, _ in model if state == "n"}
    assert counts == {f"{key}!" for key in KEYS if key not in ("k1", "k2", "k4")}
    assert {key for state, key, _ in model if state == "tags"} == set(KEYS) - {"k1", "k2", "k3"}
    deleted = report.operators[0].deleted_keys
    assert deleted is not None
    assert (deleted.with_entries, deleted.without_entries) == (4, ())


def test_a_subtask_that_had_no_entries(tmp_path: Path) -> None:
    """Gets a file of those that move to it."""
    model: Model = {("count", "k0", None): (5, None)}
    write_model(tmp_path / "users", model, 128)
    new = mapped(
        tmp_path / "users", "count", lambda entry: [entry._replace(key=key) for key in KEYS]
    )
    assert new == {("count", key, None): (5, None) for key in KEYS}


def test_no_state_is_left(users: Path) -> None:
    editor = OperatorEditor(read_savepoint(users).operator("by-user"))
    for name in [state.name for state in editor.states]:
        editor.remove_state(name)
    with pytest.raises(InvalidValueError, match="operator by-user has no state left"):
        editor.delete_keys(["k1"])
    with pytest.raises(InvalidValueError, match="which has none, got 'count'"):
        editor.remove_state("count")


def test_no_keyed_state() -> None:
    operator = point("2.3.0-heap-canonical").read().operator("broadcast")
    editor = OperatorEditor(operator)
    assert not editor.is_changed
    with pytest.raises(InvalidValueError, match="operator broadcast has no keyed state to edit"):
        editor.remove_state("x")


CONTENTS, MERGING = "window-contents", "merging-window-set"
EVENT = "_timer_state/event_window-timers"
PROCESSING = "_timer_state/processing_window-timers"
FIRE = "timers would fire on nothing"
NEVER = "a window without its timers never fires"


@pytest.mark.parametrize(
    ("removed", "match"),
    [
        ([CONTENTS, MERGING], FIRE),
        ([CONTENTS, EVENT, PROCESSING], "each window is in both"),
        ([MERGING], "each window is in both"),
        ([EVENT], f"{NEVER}|timers in either"),
        ([EVENT, PROCESSING], NEVER),
        ([CONTENTS, MERGING, EVENT], FIRE),
        ([EVENT, CONTENTS, MERGING], "each window may have its timers in either"),
        ([CONTENTS, MERGING, EVENT, PROCESSING], None),
    ],
)
def test_what_is_of_windows_goes_together(
    removed: list[str], match: str | None, tmp_path: Path
) -> None:
    """Refused before a byte is written; in whatever order, when all is removed it may."""
    old = point("2.3.0-heap-canonical").read()

    def verbs(editor: OperatorEditor) -> None:
        for name in removed:
            editor.remove_state(name)

    if match is not None:
        with pytest.raises(InvalidValueError, match=match):
            edit(old, tmp_path / "new", "session", verbs)
        assert not (tmp_path / "new").exists()
        return
    report = edit(old, tmp_path / "new", "session", verbs)
    assert not read_savepoint(tmp_path / "new").operator("session").tasks()
    (edited,) = (one for one in report.operators if one.operator == "session")
    assert [state.new_name for state in edited.states] == [None] * 4


def test_user_timers_of_a_state_that_is_gone(tmp_path: Path) -> None:
    """They may stay beside other states, and go by themselves, but not be all that is left."""
    old = point("2.3.0-heap-canonical").read()
    names = [state.name for state in old.operator("by-string").states]
    values = [name for name in names if not name.startswith("_timer_state")]

    def verbs(gone: list[str], editor: OperatorEditor) -> None:
        for name in gone:
            editor.remove_state(name)

    with pytest.raises(InvalidValueError, match=FIRE):
        edit(old, tmp_path / "new", "by-string", partial(verbs, values))
    for count, gone in enumerate((values[1:], names[-2:])):
        path = tmp_path / str(count)
        edit(old, path, "by-string", partial(verbs, gone))
        rest = read_savepoint(path).operator("by-string")
        assert {state.name for state in rest.states} == set(names) - set(gone)
        assert {entry.state for entry in rest.entries()} <= set(names) - set(gone)


@pytest.mark.parametrize(
    ("verbs", "match"),
    [
        (lambda op: op.rename_state(CONTENTS, "x"), "must keep its name"),
        (lambda op: op.rename_state(MERGING, "x"), "must keep its name"),
        (lambda op: op.rename_state(EVENT, "x"), "must keep its name"),
        (lambda op: op.set_ttl(EVENT, last_access=TIME), "whose values the job sets, got '_timer"),
        (lambda op: op.set_ttl(MERGING, last_access=TIME), "got 'merging-window-set', which"),
        (lambda op: op.map_entries(EVENT, repr), "whose values the job sets, got '_timer_state"),
        (lambda op: op.map_entries(MERGING, repr), "got 'merging-window-set', which Flink's own"),
    ],
)
def test_timers_and_windows_are_refused(verbs: Verbs, match: str) -> None:
    operator = point("2.3.0-heap-canonical").read().operator("session")
    with pytest.raises(InvalidValueError, match=match):
        verbs(OperatorEditor(operator))


REFUSED: dict[str, Callable[[OperatorEditor], object]] = {
    "keys of another type": lambda op: op.map_keys(repr, STRING),
    "keys of this type": lambda op: op.map_keys(lambda key: key + 1),
    "entries": lambda op: op.map_entries("count", repr),
    "values": lambda op: op.convert_state("count", ValueStateDescriptor("count", STRING)),
    "batches": lambda op: op.map_batches("tags", repr),
    "deleted keys": lambda op: op.delete_keys([5, "five"]),
    "a name that is taken": lambda op: op.rename_state("count", "tags"),
    "a name that is too long": lambda op: op.rename_state("count", "x" * 65_536),
    "no time": lambda op: op.set_ttl("count", False),
    "timers": lambda op: op.map_timers("count", repr),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_verb_that_is_refused_does_nothing(name: str, tmp_path: Path) -> None:
    """The savepoint is that of the other verbs: its header has the types that its bytes have."""
    states = [ValueStateDescriptor("count", LONG), ListStateDescriptor("tags", STRING)]
    with SavepointWriter(tmp_path / "old") as writer:
        operator = writer.add_operator("op", LONG, states, 128, 1, sort=True)
        for key in range(5):
            operator.write("count", key, key)
            operator.write("tags", key, [f"tag-{key}"])

    def others(editor: OperatorEditor) -> None:
        editor.map_batches("count", lambda batch: batch.select(["row", "value"]))
        editor.map_entries("tags", lambda entry: [*entry.value, "new"])
        editor.delete_keys([3])

    def verbs(editor: OperatorEditor) -> None:
        others(editor)
        with pytest.raises(KeyGroupsError):
            REFUSED[name](editor)

    reports = [
        edit(tmp_path / "old", tmp_path / path, "op", each).operators
        for path, each in (("with", verbs), ("without", others))
    ]
    assert reports[0] == reports[1]
    refused, expected = (read_savepoint(tmp_path / path) for path in ("with", "without"))
    assert refused.operator("op").states == expected.operator("op").states
    assert entries_of(refused.operator("op")) == entries_of(expected.operator("op"))


# --- tasks, as Spark runs them ------------------------------------------------------------------


def longer(entry: StateEntry) -> Any:
    """Return something that can be pickled: an entry of another key, and the value."""
    return [entry, entry._replace(key=entry.key + "z")]


@pytest.mark.parametrize("is_anew", [False, True])
@pytest.mark.parametrize("is_twice", [False, True])
def test_tasks_are_pickled_and_tried_again(
    is_twice: bool, is_anew: bool, users: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What they return too; a file of a task that nobody took is not in the savepoint."""
    old, path = read_savepoint(users), tmp_path / "new"
    with SavepointWriter.from_existing_savepoint(old, path) as writer:
        (metadata,) = old.metadata.operators
        editor = writer.operator("by-user")
        editor.map_entries("count", longer)
        editor.delete_keys(["k3", "nobody"])
        wrong: Any = tmp_path
        with pytest.raises(InvalidTypeError, match="folder must be the folder of a new savepoint"):
            editor.edited_keyed_state(wrong, metadata)
        with pytest.raises(InvalidTypeError, match=r"^new must be the metadata of an operator"):
            editor.edited_keyed_state(writer._folder, wrong)
        if is_anew:
            writer.set_max_parallelism(4096)

        def write(edited: EditedKeyedState) -> None:
            for task in edited.tasks if is_twice else ():
                pickle.loads(pickle.dumps(task)).run()
            files = [pickle.loads(pickle.dumps(task)).run() for task in edited.tasks]
            merges = edited.done(pickle.loads(pickle.dumps(files)))
            assert merges
            for merge in merges:
                merge = pickle.loads(pickle.dumps(merge))
                if is_twice:
                    merge.run()
                assert not edited.done([pickle.loads(pickle.dumps(merge.run()))])

        monkeypatch.setattr(writer, "_write_keyed_state", write)
    (operator,) = writer.report().operators
    assert operator.deleted_keys is not None
    assert operator.deleted_keys.with_entries == 1
    assert operator.deleted_keys.without_entries == ("nobody",)
    model = read_model(path)
    counts = {key: value for (state, key, _), (value, _) in model.items() if state == "count"}
    assert counts == {
        f"k{number}{end}": number for number in range(12) for end in ("", "z")
        if (number, end) != (3, "")
    }  # fmt: skip
    (new,) = read_savepoint(path).operators
    assert new.max_parallelism == (4096 if is_anew else old.operators[0].max_parallelism)
    assert len(list(path.iterdir())) == 1 + len(new.tasks())  # `_metadata`, and a file of each


# --- what is large, damaged or unknown ----------------------------------------------------------


@pytest.mark.long
def test_memory_is_flat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four times the entries, hardly more memory, for each verb that reads them."""
    monkeypatch.setattr(files_module, "CHUNK", 1 << 10)

    def verbs(editor: OperatorEditor) -> None:
        editor.delete_keys([f"user-{number:09d}" for number in range(0, 6_400, 50)])
        editor.map_entries("count", lambda entry: entry.value + 1)
        editor.set_ttl("count", last_access=TIME)

    peaks = []
    for entries in (1_600, 1_600 * 4):
        folder = tmp_path / str(entries)
        write_large(folder, "canonical", entries)
        savepoint = read_savepoint(folder)
        tracemalloc.start()
        try:
            edit(savepoint, tmp_path / f"new-{entries}", "by-string", verbs)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


def test_what_is_not_decoded_may_be_damaged(tmp_path: Path) -> None:
    """Values that no edit looks at are not read, and come through as they are."""
    header = sb.keyed_header(sb.simple("String"), [sb.state("count", "VALUE", sb.simple("Long"))])
    group = assign_to_key_group("a", 128, STRING)
    members = [(bytes([group]) + b"\2a\0", b"short")]
    stream = sb.inline(header + sb.canonical_key_group([(0, members)]))
    task = sb.subtask(managed_keyed=sb.canonical(group, [len(header)], stream))
    sb.write(tmp_path / "old", [sb.operator([task], uid="op")])
    old = read_savepoint(tmp_path / "old")

    def written(verbs: Verbs) -> list[bytes]:
        path = tmp_path / "new" / str(len(list(tmp_path.glob("new/*"))))
        edit(old, path, "op", verbs)
        return [data for _, data in canonical_streams(read_savepoint(path)).values()]

    (data,) = written(lambda op: op.rename_state("count", "n"))
    assert b"short" in data
    (data,) = written(lambda op: op.delete_keys(["b"]))
    assert b"short" in data
    assert written(lambda op: op.delete_keys(["a"])) == []
    damaged = f"of count: VALUE <STRING, LONG> in key group {group}: no entry: "
    with pytest.raises(SavepointError, match=re.escape(damaged)):
        written(lambda op: op.map_entries("count", repr))


def test_keys_that_are_not_decoded_may_be_damaged(tmp_path: Path) -> None:
    """Those of a state that no edit looks at, beside one of which entries move."""
    text, number = sb.simple("String"), sb.simple("Long")
    cities_type = sb.map_of(text, number)
    states = [sb.state("count", "VALUE", number), sb.state("cities", "MAP", cities_type)]
    header = sb.keyed_header(text, states)
    group = assign_to_key_group("a", 128, STRING)
    damaged, city = bytes([group]) + b"\5a", bytes([group]) + b"\2a\0\2b"
    members = [(0, [(damaged, sb.i64(5))]), (1, [(city, b"\0" + sb.i64(7))])]
    stream = sb.inline(header + sb.canonical_key_group(members))
    task = sb.subtask(managed_keyed=sb.canonical(group, [len(header)], stream))
    old = sb.write(tmp_path / "old", [sb.operator([task], uid="op")])
    edit(
        old,
        tmp_path / "new",
        "op",
        lambda op: op.map_entries("cities", lambda entry: entry._replace(user_key="c")),
    )
    new = read_savepoint(tmp_path / "new").operator("op")
    (moved,) = new.entries(["cities"])
    assert (moved.key, moved.user_key, moved.value) == ("a", "c", 7)
    (written,) = canonical_streams(read_savepoint(tmp_path / "new")).values()
    assert damaged[1:] + sb.i32(8) + sb.i64(5) in written[1]
    with pytest.raises(SavepointError, match="no entry of count"):
        list(new.entries(["count"]))


def test_damaged_keys_and_elements() -> None:
    """Bytes that are no key, or no list, where an edit has to look."""
    here = StepPlace("here", 0, 128, set())
    (state,) = ListStateDescriptor("tags", STRING).described(serializer_of(STRING))
    delete = bound(DeleteKeys({3: SoughtKeys({b"\2a"}, {})}), state, here)
    for key in (b"", b"\5a", b"\x80"):
        with pytest.raises(SavepointError, match=r"here: of tags: LIST .* group 3: no entry"):
            delete(3, key, b"")
        assert delete(4, key, b"") is None
    stamp = bound(SetTtl(TIME), state, here)
    assert stamp(3, b"\2a\0", b"\2a,\2b") == (
        (3, b"\2a\0", sb.i64(TIME) + b"\2a," + sb.i64(TIME) + b"\2b"),
    )
    assert stamp(3, b"\2a\0", b"") == ((3, b"\2a\0", b""),)  # a list without elements
    for value in (b"\2a;\2b", b"\5a", b"\2a,"):
        with pytest.raises(SavepointError, match=r"here: of tags: LIST .* group 3: no entry"):
            stamp(3, b"\2a\0", value)


def test_a_key_that_java_wrote_in_other_bytes() -> None:
    """BigInteger.ZERO, the very object, is a mark in Flink's bytes; another zero is not.

    Flink: BigIntSerializer.writeBigInteger.
    """
    (state,) = ValueStateDescriptor("n", LONG).described(serializer_of(BIG_INT))
    written = serializer_of(BIG_INT).encode(0)
    other = sb.i32(5) + b"\0"  # the length plus four, then the byte of the number
    assert written == sb.i32(1)
    place = StepPlace("here", 0, 128, set())
    delete = bound(DeleteKeys({3: SoughtKeys({written}, {})}), state, place)
    assert delete(3, other + b"\0", bytes(8)) == ()
    assert place.deleted == {written}
    assert delete(3, sb.i32(2) + b"\0", bytes(8)) is None  # BigInteger.ONE


OWN = "x.Own$Snapshot"  # nobody here knows the class


def unknown_keys(folder: Path, *keys: bytes) -> Savepoint:
    """Return a savepoint whose keys only the job reads, under STRING namespaces if told."""
    snapshot = sb.i32(2) + sb.utf(OWN) + sb.i32(1)
    header = sb.keyed_header(snapshot, [sb.state("count", "VALUE", sb.simple("Long"))])
    members = [(b"\3" + key + b"\0", sb.i64(5)) for key in keys]
    stream = sb.inline(header + sb.canonical_key_group([(0, members)]))
    task = sb.subtask(managed_keyed=sb.canonical(3, [len(header)], stream))
    sb.write(folder, [sb.operator([task], uid="op")])
    return read_savepoint(folder)


def test_keys_that_only_the_job_reads(tmp_path: Path) -> None:
    """Their bytes are given, and compared wherever they are; values may be mapped."""
    old = unknown_keys(tmp_path / "old", b"one", b"other")
    path = tmp_path / "new"

    def verbs(editor: OperatorEditor) -> None:
        editor.delete_keys([b"other", b"none"])
        editor.map_entries("count", lambda entry: entry.value + 1)

    report = edit(old, path, "op", verbs)
    (entry,) = read_savepoint(path).operator("op").entries()
    assert (entry.key, entry.value) == (b"one", 6)
    deleted = report.operators[0].deleted_keys
    assert deleted is not None
    assert (deleted.with_entries, deleted.without_entries) == (1, (b"none",))
    with pytest.raises(UnsupportedKeyTypeError, match="only the job knows the keys of count"):
        edit(
            old,
            tmp_path / "moved",
            "op",
            lambda op: op.map_entries("count", lambda entry: entry._replace(key=b"x")),
        )
    with pytest.raises(UnsupportedKeyTypeError, match="cannot be written here"):
        OperatorEditor(old.operator("op")).delete_keys(["one"])
