"""Whether a savepoint restores in another job: operators, states, and what mends what.

FORMAT.md, "What Flink checks", has the rules; `test_compatibility.py` has Flink's verdicts about
pairs of serializers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.inside.savepoints import operator_id_of

from keygroups.cli import main
from keygroups.errors import InvalidTypeError, InvalidValueError, SavepointError
from keygroups.savepoint import (
    ListStateDescriptor,
    OperatorRestore,
    Savepoint,
    SavepointWriter,
    TimerServiceDescriptor,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.types import INT, LONG, PYFLINK, STRING

INTS, LONGS, TEXT = map(sb.simple, ("Int", "Long", "String"))
WINDOWS = sb.snapshot(
    "org.apache.flink.streaming.api.windowing.windows."
    "TimeWindow$Serializer$TimeWindowSerializerSnapshot",
    3,
)
SMALL, LARGE = (sb.pojo_of("a.B", dict.fromkeys(fields, LONGS)) for fields in ("a", "ab"))
MODES = ["SPLIT_DISTRIBUTE", "UNION", "BROADCAST"]
Lists = dict[str, bytes]
"""An operator state by its mode."""


def value(made: bytes, namespace: bytes = sb.NONE) -> bytes:
    return sb.state("s", "VALUE", made, namespace=namespace)


def task(
    states: Sequence[bytes], key: bytes = TEXT, lists: Lists | None = None, index: int = 0
) -> bytes:
    keyed = sb.keyed_header(key, states)
    parts: dict[str, Any] = {}
    if states:
        stream = sb.inline(keyed + sb.canonical_key_group([(0, [])]))
        parts["managed_keyed"] = sb.canonical(0, [len(keyed)], stream)
    if lists:
        [(mode, listing)] = lists.items()
        is_map = mode == "BROADCAST"
        header = sb.operator_header(*(([], [listing]) if is_map else ([listing], [])))
        modes: list[tuple[str, int, list[int]]] = [("o", MODES.index(mode), [])]
        parts["managed_operator"] = sb.operator_state(modes, sb.inline(header))
    return sb.subtask(index, **parts)


def listed(made: bytes, mode: str = "SPLIT_DISTRIBUTE") -> Lists:
    snapshots = {"VALUE_SERIALIZER": made}
    if mode == "BROADCAST":
        snapshots["KEY_SERIALIZER"] = LONGS
    kind = 2 if mode == "BROADCAST" else 1
    options = {"OPERATOR_STATE_DISTRIBUTION_MODE": mode}
    return {mode: sb.meta_info("o", kind, options, snapshots)}


def saved(folder: Path, *operators: bytes, version: int = 6) -> Savepoint:
    folder.mkdir(parents=True)
    (folder / "_metadata").write_bytes(sb.metadata(operators, version=version))
    return read_savepoint(folder)


def named(uid: str, made: bytes, **more: Any) -> bytes:
    return sb.operator([made], uid=uid, operator_id=bytes.fromhex(operator_id_of(uid)), **more)


def told(operator: OperatorRestore) -> tuple[Any, ...]:
    """Return the verdict, the reasons and the remedy of an operator, and of its states."""
    states = {
        state.state: (state.verdict, state.reasons, state.remedy) for state in operator.states
    }
    return operator.verdict, operator.reasons, operator.remedy, states


DROP = "remove_state drops it"
CONVERT = f"convert_state('s', to, value) writes it anew; {DROP}"
KEPT = ("the job does not register it: Flink keeps it, and nobody reads it",)
MAPS = [
    sb.state("s", "MAP", sb.map_of(key, made))
    for key, made in [(TEXT, SMALL), (TEXT, LARGE), (SMALL, SMALL), (LARGE, LARGE)]
]
TIMERS = [
    sb.state("_timer_state/event_user-timers", "", sb.timer_of(TEXT, made), backend_type=3)
    for made in (sb.NONE, WINDOWS)
]
STATES: dict[str, tuple[bytes, bytes, str, tuple[str, ...], str]] = {
    "same": (value(INTS), value(INTS), "as_is", (), ""),
    "type": (value(INTS), value(LONGS), "incompatible", ("value: INT -> LONG",), CONVERT),
    "field": (value(SMALL), value(LARGE), "after_migration", ("value, field b: added",), ""),
    "kind": (
        sb.state("s", "LIST", sb.list_of(INTS)),
        value(INTS),
        "incompatible",
        ("the kind LIST is VALUE",),
        DROP,
    ),
    "namespace": (
        value(INTS),
        value(INTS, namespace=WINDOWS),
        "incompatible",
        ("namespaces: VOID_NAMESPACE -> TIME_WINDOW",),
        DROP,
    ),
    "element": (
        sb.state("s", "LIST", sb.list_of(SMALL)),
        sb.state("s", "LIST", sb.list_of(LARGE)),
        "after_migration",
        ("value, field b: added",),
        "",
    ),
    "value of a map": (MAPS[0], MAPS[1], "after_migration", ("value, field b: added",), ""),
    "key of a map": (
        MAPS[2],
        MAPS[3],
        "unknown",
        (
            "user key, field b: added",
            "value, field b: added",
            "user key: RocksDB migrates no map whose keys changed, the hashmap backend does",
        ),
        DROP,
    ),
    "with TTL": (
        value(INTS),
        value(sb.ttl_of(INTS)),
        "after_migration",
        ("it gets a TTL, which Flink converts",),
        "",
    ),
    "without TTL": (
        value(sb.ttl_of(INTS)),
        value(INTS),
        "after_migration",
        ("it loses its TTL, which Flink converts",),
        "",
    ),
    "the job's own": (
        value(sb.kryo_of("a.C")),
        value(sb.kryo_of("a.D")),
        "incompatible",
        ("value: the class a.C is a.D",),
        DROP,
    ),
}


@pytest.mark.parametrize("case", STATES)
def test_states(case: str, tmp_path: Path) -> None:
    old, new, verdict, reasons, remedy = STATES[case]
    if case == "the job's own":
        reasons = (
            *reasons,
            "value, registered class a.C: it takes a job that still has the class",
            "value: classes are registered in another order",
        )
    before, after = (
        saved(tmp_path / f"{side}", named("a", task([state])))
        for side, state in enumerate((old, new))
    )
    report = before.restore_report(after)
    [operator] = report.operators
    assert told(operator) == (verdict, (), "", {"s": (verdict, reasons, remedy)})
    assert report.verdict == verdict
    assert str(operator).splitlines()[0] == f"a: {verdict.replace('_', ' ')}"
    assert report.restores is {"incompatible": False, "unknown": None}.get(verdict, True)


@pytest.mark.parametrize(
    ("version", "verdict", "what"),
    [
        (4, "incompatible", "which Flink 1 refuses"),
        (5, "unknown", "which Flink 2.0 refuses, and 2.3 converts"),
    ],
)
def test_a_ttl_is_converted_by_new_versions(
    version: int, verdict: str, what: str, tmp_path: Path
) -> None:
    """FORMAT.md: seen with 1.20.5 and 2.3.0."""
    head: dict[str, Any] = {"version": version} if version < 5 else {}
    before, after = (
        saved(
            tmp_path / f"{side}",
            sb.operator([task([value(made)])], version=version),
            **{"version": version} | head,
        )
        for side, made in enumerate((INTS, sb.ttl_of(INTS)))
    )
    [operator] = before.restore_report(after).operators
    [state] = operator.states
    assert (state.verdict, state.reasons) == (verdict, (f"it gets a TTL, {what}",))
    assert state.remedy == f"set_ttl('s', True) converts it; {DROP}"


@pytest.mark.parametrize(("version", "kryo"), [(3, 2), (4, 2), (5, 5), (6, 5)])
def test_the_kryo_of_each_version(version: int, kryo: int, tmp_path: Path) -> None:
    """Flink 1 wrote by Kryo 2, and Flink 2 reads by Kryo 5, which reads none of that."""
    made = sb.kryo_of("a.B")
    old = sb.operator([task([value(made)])], version=version)
    before = saved(tmp_path / "0", old, version=version)
    after = saved(tmp_path / "1", sb.operator([task([value(made)])]))
    [operator] = before.restore_report(after).operators
    [state] = operator.states
    reasons = "; ".join(state.reasons)
    assert (f"Kryo {kryo} wrote values that Kryo 5 does not read" in reasons) == (kryo == 2)
    assert (state.verdict == "incompatible") == (kryo == 2)


KEYS = "map_keys(function, key_type) gives it keys of another type"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (TEXT, LONGS, "keys: STRING -> LONG"),
        (SMALL, LARGE, "keys, field b: added, and Flink migrates no keys and namespaces"),
    ],
)
def test_keys_are_never_migrated(old: bytes, new: bytes, reason: str, tmp_path: Path) -> None:
    before, after = (
        saved(tmp_path / f"{side}", named("a", task([value(INTS)], key)))
        for side, key in enumerate((old, new))
    )
    [operator] = before.restore_report(after).operators
    assert told(operator) == ("incompatible", (reason,), KEYS, {"s": ("as_is", (), "")})


def test_timers(tmp_path: Path) -> None:
    before, after = (
        saved(tmp_path / f"{side}", named("a", task([timers])))
        for side, timers in enumerate(TIMERS)
    )
    assert before.restore_report(before).verdict == "as_is"
    [operator] = before.restore_report(after).operators
    [state] = operator.states
    assert state.reasons == ("namespaces: VOID_NAMESPACE -> TIME_WINDOW",)


def test_states_that_one_side_has(tmp_path: Path) -> None:
    """One that was renamed has a state of its types as a candidate."""
    olds = [sb.state("old", "VALUE", INTS), sb.state("gone", "LIST", sb.list_of(INTS)), TIMERS[0]]
    news = [sb.state("new", "VALUE", INTS), sb.state("other", "VALUE", LONGS)]
    before, after = (
        saved(tmp_path / f"{side}", named("a", task(states)))
        for side, states in enumerate((olds, news))
    )
    [operator] = before.restore_report(after).operators
    assert told(operator)[3] == {
        "old": ("as_is", KEPT, f"rename_state gives it the name 'new'; {DROP}"),
        "gone": ("as_is", KEPT, DROP),
        "_timer_state/event_user-timers": ("as_is", KEPT, DROP),
        "new": ("as_is", (), ""),
        "other": ("as_is", (), ""),
    }
    only = {state.state: state.only for state in operator.states}
    assert (only["old"], only["new"]) == ("only_here", "only_there")


def enum(constants: str) -> bytes:
    """Return an enum of some constants."""
    names = b"".join(map(sb.utf, constants))
    snapshot = "org.apache.flink.api.common.typeutils.base.EnumSerializer$EnumSerializerSnapshot"
    return sb.snapshot(snapshot, 3, sb.utf("a.E") + sb.i32(len(constants)) + names)


@pytest.mark.parametrize(
    ("old", "elsewhere", "verdict", "reason"),
    [
        (SMALL, SMALL, "as_is", None),
        (SMALL, LARGE, "as_is", None),
        (SMALL, INTS, "unknown", "it takes a job that still has a.B"),
        (
            sb.pojo_of("a.B", {"a": INTS}),
            SMALL,
            "unknown",
            "class a.B, field a: INT -> LONG, with which the hashmap backend may not read it",
        ),
        (
            SMALL,
            sb.kryo_of("a.B"),
            "unknown",
            "class a.B: POJO(a.B, a LONG) -> KRYO(a.B), "
            "with which the hashmap backend may not read it",
        ),
        (enum("AB"), enum("BAC"), "as_is", None),
        (enum("AB"), enum("A"), "incompatible", "class a.E: constants are removed: B"),
    ],
)
def test_a_state_that_the_job_does_not_register(
    old: bytes, elsewhere: bytes, verdict: str, reason: str | None, tmp_path: Path
) -> None:
    """Flink makes its serializer all the same, of the classes that the job has elsewhere."""
    lists = {name: listed(made) for name, made in (("old", old), ("new", elsewhere))}
    olds = [task([value(old)], lists=lists["old"])]
    befores = [task([value(INTS), sb.state("t", "LIST", sb.list_of(old))]), *olds]
    for number, before in enumerate(befores):
        news = [named("a", task([value(INTS)])), named("b", task([value(elsewhere)]))]
        after = saved(tmp_path / f"{number}-new", *news)
        [operator, _] = (
            saved(tmp_path / f"{number}-old", named("a", before)).restore_report(after).operators
        )
        state = operator.states[-1]
        assert (state.only, state.verdict) == ("only_here", verdict)
        assert state.reasons == (*KEPT, *([] if reason is None else [reason]))


@pytest.mark.parametrize(
    ("old", "new", "verdict", "reasons"),
    [
        (listed(INTS), listed(INTS), "as_is", ()),
        (listed(INTS), listed(LONGS), "incompatible", ("value: INT -> LONG",)),
        (listed(SMALL), listed(LARGE), "after_migration", ("value, field b: added",)),
        (
            listed(INTS),
            listed(INTS, "UNION"),
            "incompatible",
            ("the mode SPLIT_DISTRIBUTE is UNION",),
        ),
        (
            listed(INTS, "BROADCAST"),
            listed(TEXT, "BROADCAST"),
            "incompatible",
            ("value: INT -> STRING",),
        ),
        (listed(INTS), None, "as_is", KEPT),
        (None, listed(INTS), "as_is", ()),
    ],
)
def test_operator_state(
    old: Lists | None, new: Lists | None, verdict: str, reasons: tuple[str, ...], tmp_path: Path
) -> None:
    before, after = (
        saved(tmp_path / f"{side}", named("a", task([value(INTS)], lists=state)))
        for side, state in enumerate((old, new))
    )
    [operator] = before.restore_report(after).operators
    assert told(operator)[3]["o"] == (verdict, reasons, "")


def test_operators(tmp_path: Path) -> None:
    """One without a match is refused, one that is new is not; without state it is skipped."""
    state = task([value(INTS)])
    empty = sb.operator([], uid="empty", operator_id=b"\5" * 16)
    coordinator = sb.operator(
        [], uid="source", operator_id=b"\6" * 16, coordinator=sb.inline(b"abc")
    )
    olds = [named("by-user", state), named("gone", task([], lists=listed(INTS))), empty]
    news = [named("by-users", state), named("new", task([sb.state("t", "VALUE", INTS)]))]
    before = saved(tmp_path / "0", *olds, coordinator)
    after = saved(tmp_path / "1", *news)
    report = before.restore_report(after)
    refused = "the job has no operator of this id: Flink refuses its state, or drops it"
    assert {by.operator: told(by)[:3] for by in report.operators} == {
        "by-user": (
            "incompatible",
            (refused,),
            "change_operator_identifier('by-user', ...) gives it the uid 'by-users'; "
            "remove_operator('by-user') drops its state",
        ),
        "gone": ("incompatible", (refused,), "remove_operator('gone') drops its state"),
        "source": ("incompatible", (refused,), "remove_operator('source') drops its state"),
        "by-users": ("as_is", (), ""),
        "new": ("as_is", (), ""),
    }
    assert [by.only for by in report.operators[2:]] == ["only_here", "only_there", "only_there"]
    assert report.restores is False


def test_at_most_three_names_are_candidates(tmp_path: Path) -> None:
    """Of states of the same types, and of operators with a state of the same name."""
    state = task([value(INTS)])
    others = [sb.state(name, "VALUE", INTS) for name in "bcde"]
    before = saved(tmp_path / "0", named("a", task([sb.state("a", "VALUE", INTS)])))
    after = saved(tmp_path / "1", named("a", task(others)))
    [operator] = before.restore_report(after).operators
    names = "'b' or 'c' or 'd'"
    assert told(operator)[3]["a"][2] == f"rename_state gives it the name {names}; {DROP}"
    before = saved(tmp_path / "2", named("a", state))
    after = saved(tmp_path / "3", *(named(name, state) for name in "bcde"))
    remedy = before.restore_report(after).operators[0].remedy
    assert remedy.partition(";")[0].count(" or ") == 2
    close = saved(tmp_path / "4", *(named(f"clicks-{end}", state) for end in "abcd"))
    before = saved(tmp_path / "5", named("clicks", task([], lists=listed(INTS))))
    remedy = before.restore_report(close).operators[0].remedy
    assert remedy.partition(";")[0].count("'clicks-") == 3


def test_an_operator_with_an_operator_state_of_that_name_is_a_candidate(tmp_path: Path) -> None:
    """Its own name is no more like the old one than any."""
    before = saved(tmp_path / "0", named("xyz", task([], lists=listed(INTS))))
    after = saved(
        tmp_path / "1",
        named("abc", task([], lists=listed(INTS))),
        named("klm", task([value(INTS)])),
    )
    remedy = before.restore_report(after).operators[0].remedy
    assert "'abc'" in remedy
    assert "'klm'" not in remedy


def test_an_error_says_of_which_savepoint_it_is(tmp_path: Path) -> None:
    one, other = (
        task([], lists=listed(made), index=index) for index, made in enumerate((INTS, LONGS))
    )
    operator_id = bytes.fromhex(operator_id_of("a"))
    good = saved(tmp_path / "good", named("a", one))
    bad = saved(
        tmp_path / "bad",
        sb.operator([one, other], operator_id=operator_id, uid="a", parallelism=2),
    )
    for old, new, side in ((bad, good, "this savepoint"), (good, bad, "the other savepoint")):
        with pytest.raises(SavepointError, match=f"^{side}: operator .* has another operator"):
            old.restore_report(new)


def test_max_parallelism(tmp_path: Path) -> None:
    state = task([value(INTS)])
    before, after = (
        saved(tmp_path / f"{most}", named("a", state, max_parallelism=most)) for most in (128, 256)
    )
    [operator] = before.restore_report(after).operators
    reason = "max parallelism 128 is 256 in the job, which Flink refuses if the job sets it"
    assert told(operator)[:3] == (
        "unknown",
        (reason,),
        "set_max_parallelism(256) writes it anew",
    )


def test_classes_of_the_other_savepoint_are_known(tmp_path: Path) -> None:
    """A field of a class was removed: its class is in the job, as another state is of it."""
    inner = sb.pojo_of("a.In", {"a": LONGS})
    old, new = sb.pojo_of("a.B", {"a": LONGS, "in": inner}), SMALL
    before = saved(tmp_path / "0", named("a", task([value(old)])))
    without = saved(tmp_path / "1", named("a", task([value(new)])))
    other = sb.state("t", "MAP", sb.map_of(TEXT, inner))
    with_class = saved(tmp_path / "2", named("a", task([value(new), other])))
    reasons = [
        before.restore_report(job).operators[0].states[0].reasons for job in (without, with_class)
    ]
    assert reasons == [
        ("value, field in: removed, which takes a job that still has a.In",),
        ("value, field in: removed",),
    ]
    listing = saved(tmp_path / "3", named("a", task([value(new)], lists=listed(inner))))
    assert before.restore_report(listing).restores is True


def test_a_job_that_is_declared(tmp_path: Path) -> None:
    """Only its operators are looked at; they are found by name and id too."""
    with SavepointWriter(tmp_path / "old") as writer:
        for uid in ("a", "b"):
            counts = [ValueStateDescriptor("s", INT)]
            writer.add_operator(uid, STRING, counts, 128, 1).write("s", "ann", 5)
    before = read_savepoint(tmp_path / "old")
    [operator] = before.restore_report({"a": (LONG, [ListStateDescriptor("s", INT)])}).operators
    assert told(operator) == (
        "incompatible",
        ("keys: STRING -> LONG",),
        KEYS,
        {"s": ("incompatible", ("the kind VALUE is LIST",), DROP)},
    )
    by_id = {before.operator("b").operator_id: (STRING, [ValueStateDescriptor("s", INT)])}
    assert before.restore_report(by_id).restores is True
    timers = {"c": (STRING, [TimerServiceDescriptor()])}
    [new] = before.restore_report(timers).operators
    assert (new.operator, new.only, new.verdict) == ("c", "only_there", "as_is")


def test_a_job_of_pyflink_is_declared(tmp_path: Path) -> None:
    """Its state is arrays of bytes for Flink, whatever Python makes of them."""
    states = [ValueStateDescriptor("s", LONG)]
    with SavepointWriter(tmp_path / "old") as writer:
        writer.add_operator("a", PYFLINK(LONG), states, 128, 1).write("s", 7, 5)
    before = read_savepoint(tmp_path / "old")
    others = [ValueStateDescriptor("s", STRING)]
    assert before.restore_report({"a": (PYFLINK(LONG), others)}).verdict == "as_is"
    declared = before.as_pyflink({"a": (LONG, states)})
    assert declared.restore_report(before).verdict == "as_is"
    assert declared.restore_report({"a": (PYFLINK(STRING), states)}).restores is False


def test_a_declared_job_is_of_the_newest_flink(tmp_path: Path) -> None:
    """FORMAT.md: 2.3.0 converts state that gets a TTL."""
    states = [ValueStateDescriptor("s", INT, has_ttl=True)]
    before = saved(tmp_path / "0", named("a", task([value(INTS)])))
    [operator] = before.restore_report({"a": (STRING, states)}).operators
    [state] = operator.states
    assert state.reasons == ("it gets a TTL, which Flink converts",)


@pytest.mark.parametrize(
    ("job", "error", "text"),
    [
        (5, InvalidTypeError, "job must be a Savepoint, or map operators to a key type and"),
        ({5: (STRING, [])}, InvalidTypeError, "operator in job must be a str, got 5"),
        ({"a": STRING}, InvalidTypeError, "job must have a key type and descriptors for 'a', got"),
        ({"a": (STRING, [])}, InvalidValueError, "states must be 1 to 32767, got 0"),
    ],
)
def test_jobs_that_are_none(job: Any, error: type[Exception], text: str, tmp_path: Path) -> None:
    with pytest.raises(error, match=f"^{text}"):
        saved(tmp_path / "0", named("a", task([value(INTS)]))).restore_report(job)


# --- shown ----------------------------------------------------------------------------------


def two(tmp_path: Path) -> tuple[Savepoint, Savepoint]:
    states = [value(INTS), sb.state("t", "VALUE", SMALL), sb.state("u", "VALUE", INTS)]
    news = [value(LONGS), sb.state("t", "VALUE", LARGE), sb.state("u", "VALUE", INTS)]
    before = saved(tmp_path / "0", named("a", task(states)), named("b", task(states[:1])))
    return before, saved(tmp_path / "1", named("a", task(news, LONGS)))


def test_as_text(tmp_path: Path) -> None:
    before, after = two(tmp_path)
    report = before.restore_report(after)
    assert str(report).splitlines() == [
        f"savepoint: {tmp_path}/0",
        f"job:       {tmp_path}/1",
        "2 operators, 3 states: Flink refuses it",
        "a: incompatible",
        "  keys: STRING -> LONG",
        f"  -> {KEYS}",
        "  s: incompatible",
        "    value: INT -> LONG",
        f"    -> {CONVERT}",
        "  t: after migration",
        "    value, field b: added",
        "b: incompatible",
        "  the job has no operator of this id: Flink refuses its state, or drops it",
        "  -> remove_operator('b') drops its state",
    ]
    assert repr(report) == "<RestoreReport: 2 operators, 3 states: Flink refuses it>"
    assert str(report.operators[0].states[0]).startswith("s: incompatible\n  value")
    same = before.restore_report(before)
    assert str(same).splitlines()[2:] == ["2 operators, 4 states: it restores"]


def test_as_html(tmp_path: Path) -> None:
    before, after = two(tmp_path)
    text = before.restore_report(after)._repr_html_()
    for cell in ("Flink refuses it", "after migration", "value: INT -&gt; LONG", DROP):
        assert cell in text
    empty = saved(tmp_path / "2", sb.operator([]))
    assert "<table" not in empty.restore_report(empty)._repr_html_()


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = two(tmp_path)
    assert main(["restore", before.path, after.path]) == 1
    assert capsys.readouterr().out == f"{before.restore_report(after)}\n"
    assert main(["restore", before.path, before.path, "--json"]) == 0
    data: Mapping[str, Any] = json.loads(capsys.readouterr().out)
    assert (data["restores"], data["verdict"], data["job"]) == (True, "as_is", before.path)
    assert main(["restore", before.path, after.path, "--json"]) == 1
    operator = json.loads(capsys.readouterr().out)["operators"][0]
    assert operator["states"][0] == {
        "state": "s",
        "kind": "VALUE",
        "only": None,
        "verdict": "incompatible",
        "reasons": ["value: INT -> LONG"],
        "remedy": CONVERT,
    }
    assert (operator["verdict"], operator["remedy"]) == ("incompatible", KEYS)
