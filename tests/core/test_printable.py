"""Text that others wrote, uids, names and keys, as a person reads it, and as it is elsewhere.

What cannot be printed is told by Unicode's categories, as the module unicodedata has them.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pickle
import pkgutil
import re
import struct
import unicodedata
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from datetime import datetime, timezone
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from support.bytes import java_bytes as java
from support.bytes import savepoint_bytes as sb
from support.inside.answers import diagnose, html_table, subtask_rows
from support.inside.values import exact_repr, show

import keygroups
from keygroups import (
    KeyGroupLoad,
    KeyGroupRange,
    RescalePlan,
    SubtaskKeySelector,
    assign_key_to_parallel_operator,
    assign_to_key_group,
    errors,
    suggest_max_parallelism,
    testing,
    trace_key,
    types,
)
from keygroups.cli import main
from keygroups.errors import printable
from keygroups.flink_exceptions import explain_exception
from keygroups.job import CompletedCheckpoint, Job, SubtaskReads, Vertex
from keygroups.logical_types import parse_logical_type
from keygroups.reports import HotKey, RescaleReport, SkewReport
from keygroups.routing_inference import RoutingCandidate, RoutingInference
from keygroups.savepoint import (
    ChannelState,
    ConnectorSplit,
    FaultCount,
    JobFile,
    JobFiles,
    KafkaSplit,
    KeyGroupGrowth,
    KeySize,
    KinesisSplit,
    KryoEnum,
    KryoFields,
    OperatorId,
    OperatorRestore,
    OperatorStateSummary,
    OperatorSummary,
    OperatorVerification,
    Pickle,
    Pojo,
    RestoreReport,
    Row,
    SavepointFile,
    SavepointGrowth,
    SavepointSummary,
    SavepointVerification,
    SavepointWriter,
    SplitDifference,
    StateFault,
    StateRestore,
    StateSummary,
    TimeCounts,
    ValueStateDescriptor,
    change_max_parallelism,
    describe_sql_state,
    operator_reports,
    read_savepoint,
    values,
)
from keygroups.savepoint.values import Left, Some, TimeWindow, TtlValue

ESCAPED = {
    "\0": r"\x00",
    "\a": r"\x07",
    "\b": r"\x08",
    "\t": r"\t",
    "\n": r"\n",
    "\v": r"\x0b",
    "\r": r"\r",
    "\x1b[2J": r"\x1b[2J",  # a code of terminals: erase all that is shown
    "\x1b]0;owned\a": r"\x1b]0;owned\x07",  # and one: the title of the window
    "\x1c": r"\x1c",
    "\x7f": r"\x7f",
    "\x85": r"\x85",  # NEL, where str.splitlines splits too
    "\x9b": r"\x9b",  # ESC [ in one character
    "\xa0": r"\xa0",
    "\xad": r"\xad",
    "\u061c": r"\u061c",
    "\u200b": r"\u200b",
    "\u200d": r"\u200d",
    "\u200e": r"\u200e",
    "\u200f": r"\u200f",
    "\u2028": r"\u2028",
    "\u2029": r"\u2029",
    **{chr(mark): rf"\u{mark:04x}" for mark in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))},
    "\u3000": r"\u3000",
    "\ud800": r"\ud800",
    chr(0xDCFF): r"\udcff",
    "\ue000": r"\ue000",
    "\ufeff": r"\ufeff",
    "\uffff": r"\uffff",
    "\U000e0001": r"\U000e0001",
    "\U000e0041": r"\U000e0041",
}
READABLE = [
    "",
    "a b",
    "caf\u00e9",
    "cafe\u0301",
    "\u65e5\u672c\u8a9e",
    "\u05d0",
    "\U0001f600",
    r"\x1b",
]
LINE = "LINE"  # after the line break of a name: no line may begin with it
NAME = f"<b>\u00e9&{'|'.join(ESCAPED)}\n{LINE}"
BAD = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"}


def check_shown(text: str, lines: str = "\n") -> None:
    """Check that a text has nothing but what can be printed, and line breaks of our own."""
    bad = {one for one in set(text) if unicodedata.category(one) in BAD} - {" ", *lines}
    assert not bad, ascii(text)
    assert not any(line.startswith(LINE) for line in text.splitlines()), text


@pytest.mark.parametrize("text", ESCAPED)
def test_what_is_escaped(text: str) -> None:
    escaped = f"a{ESCAPED[text]}\\b"
    assert printable(f"a{text}\\b") == escaped
    assert printable(escaped) == escaped


@pytest.mark.parametrize("text", READABLE)
def test_what_is_read(text: str) -> None:
    assert printable(text) == text


def test_every_character() -> None:
    """Of the first two planes, and of the tags in the fourteenth."""
    characters = [*map(chr, range(0x20000)), *map(chr, range(0xE0000, 0xE0200))]
    kept = {one for one in characters if printable(one) == one}
    assert kept == {one for one in characters if unicodedata.category(one) not in BAD} | {" "}


# Values


class Hostile:
    """Prints what no terminal should get."""

    def __repr__(self) -> str:
        return NAME


def public_classes() -> Iterator[type]:
    for info in pkgutil.iter_modules(keygroups.__path__, "keygroups."):
        if "._" in info.name or info.name in ("keygroups.arrays", "keygroups.spark"):
            continue  # nobody's business, or another library's to print
        module = importlib.import_module(info.name)
        values = (getattr(module, name) for name in dir(module))
        yield from (value for value in values if inspect.isclass(value))


HUGE = 10**5_000  # more digits than Python prints
NESTED: list[Any] = [
    HUGE,
    -HUGE,
    (HUGE,),
    (1, HUGE),
    [HUGE, "a", None],
    {HUGE: [HUGE]},
    {HUGE},
    frozenset({HUGE}),
    TtlValue(5, HUGE),
    TimeWindow(HUGE, -HUGE),
    Left((HUGE,)),
    Some({1: HUGE}),
    Pojo("a.B", {"c": HUGE, "d": Left(HUGE)}),
    Row((HUGE, "a"), "-D"),
    {1: [({HUGE}, Row((TtlValue(HUGE, Pojo("a.B", {"c": [HUGE]})),)))]},
]


@pytest.mark.parametrize("value", NESTED, ids=lambda value: type(value).__name__)
def test_repr_of_integers_that_python_does_not_print(value: Any) -> None:
    """It is the value again for Python, as that of others is."""
    text = exact_repr(value)
    assert eval(text, dict(vars(values))) == value
    assert hex(HUGE) in text
    shown = show(value)
    assert len(shown) <= 120
    assert " at 0x" not in shown
    assert "cannot be printed" not in shown


def test_repr_is_that_of_python_where_it_prints() -> None:
    printed: list[Any] = [5, 10**4_299, [10**4_299], (1,), {"a": {1}}, frozenset()]
    for value in printed:
        assert exact_repr(value) == repr(value)
    assert exact_repr(Left(5)) == "Left(value=5)"
    assert exact_repr(TtlValue(5, None)) == "TtlValue(last_access=5, value=None)"


def test_repr_of_what_prints_nothing() -> None:
    class Stubborn:
        def __repr__(self) -> str:
            raise ValueError

    assert "Stubborn object at 0x" in exact_repr([HUGE, Stubborn()])


def open_fields(cls: type) -> set[str]:
    """Return the names of the fields of a record that hold anything: keys and values."""
    hints = getattr(cls, "__annotations__", {})
    return {name for name, hint in hints.items() if re.search(r"\b(Any|object)\b", str(hint))}


RECORDS = [
    value
    for value in {*public_classes(), *filter(inspect.isclass, vars(values).values())}
    if (is_dataclass(value) or hasattr(value, "_fields")) and open_fields(value)
]
RECORDS.sort(key=lambda cls: cls.__name__)


@pytest.mark.parametrize("cls", RECORDS, ids=lambda cls: cls.__name__)
def test_repr_of_public_records(cls: Any) -> None:
    """Whatever has a key or a value that was read can be printed, with a huge integer too."""
    names = getattr(cls, "_fields", None) or [field.name for field in fields(cls)]
    values = [HUGE if name in open_fields(cls) else 0 for name in names]
    if issubclass(cls, tuple):
        record = tuple.__new__(cls, values)
    else:
        record = cls.__new__(cls)
        for name, value in zip(names, values):
            object.__setattr__(record, name, value)
    assert hex(HUGE)[:20] in repr(record) or "too long to print" in repr(record)


def hostile_folder(folder: Path) -> str:
    """Write a savepoint with the name in every place that has one."""
    key, number = sb.simple("String"), sb.simple("Int")
    states = [
        sb.state(NAME, "VALUE", number),
        sb.state(f"{NAME}1", "VALUE", sb.pojo_of(NAME, {NAME: number})),
        sb.state(f"{NAME}2", "LIST", sb.list_of(sb.kryo_of(NAME))),
        sb.state(f"{NAME}3", "VALUE", sb.tuple_of(number, java_class=NAME)),
    ]
    header = sb.keyed_header(key, states)
    listed = sb.meta_info(NAME, 1, {}, {"VALUE_SERIALIZER": number})
    start = sb.operator_header([listed], [])
    operators = []
    for index, groups in enumerate((64, 128)):
        group = assign_to_key_group(NAME, groups)
        entries = [(bytes([group]) + string_value(NAME) + b"\0", sb.i32(5))]
        keyed = sb.inline(header + sb.canonical_key_group([(0, entries)]))
        task = sb.subtask(
            managed_keyed=sb.canonical(group, [len(header)], keyed),
            managed_operator=sb.operator_state(
                [(NAME, 0, [len(start)])], sb.inline(start + sb.i32(5))
            ),
        )
        uid, its_id = f"{NAME}{index}", bytes([index]) * 16
        operators.append(sb.operator([task], max_parallelism=groups, operator_id=its_id, uid=uid))
    operators.append(sb.operator([], name=NAME, operator_id=bytes([2]) * 16))
    savepoint_format = java.instance("T", [("L", "formatType", java.enum("F", NAME))])
    properties = java.stream(java.instance("P", [("L", "checkpointType", savepoint_format)]))
    path = folder / NAME.replace("/", "").encode("utf-8", "replace").decode().replace("\0", "")
    path.mkdir()
    (path / "_metadata").write_bytes(sb.metadata(operators, properties=properties))
    return str(path)


def string_value(text: str) -> bytes:
    """As Flink's StringValue writes it: how many units there are, and one, and each of them."""
    data = text.encode("utf-16-be", "surrogatepass")
    units = [len(data) // 2 + 1, *struct.unpack(f">{len(data) // 2}H", data)]
    return b"".join(map(seven_bits, units))


def seven_bits(number: int) -> bytes:
    rest = number >> 7
    return bytes([number & 0x7F | 0x80]) + seven_bits(rest) if rest else bytes([number])


def hostile_job() -> Job:
    reads = tuple(SubtaskReads(subtask, NAME, 5 * subtask, None) for subtask in range(2))
    vertex = Vertex("0" * 32, NAME, NAME, 2, 128, True, reads)
    began = datetime(2026, 1, 2, tzinfo=timezone.utc)
    checkpoint = CompletedCheckpoint(1, True, NAME, began, 5, False)
    return Job(f"http://{NAME}", NAME, NAME, NAME, (vertex, vertex), (checkpoint,))


def hostile_skew() -> SkewReport:
    load = KeyGroupLoad(8, [90, *[1] * 7])
    rows = subtask_rows(load, [1] * 8, None, 4)
    keys = [HotKey(key, 0, 45, 0.5) for key in (NAME, (NAME, [NAME]), Hostile(), {NAME: NAME})]
    causes, hot = diagnose(rows, {0: keys}, load)
    key_type = types.ROW(types.INT, names=[NAME])
    return SkewReport(key_type, 4, None, load, None, tuple(rows), hot, "", "", causes=causes)


def hostile_values(folder: Path) -> Iterator[object]:
    """Yield values of every public class that says what it is in words of its own."""
    savepoint = read_savepoint(hostile_folder(folder))
    yield from (savepoint, savepoint.files, savepoint.metadata, *savepoint.operators)
    for operator in savepoint.operators:
        yield from (*operator.subtasks, *operator.states, *operator.tasks(), *operator.entries())
        yield from (*operator.key_sizes(), *operator.operator_state())
        yield from (state.value_serializer for state in operator.states)
    yield from operator_reports(savepoint)
    for operator in savepoint.operators:
        about = describe_sql_state(operator)
        yield from (replace(about, kinds=(NAME,), key_columns=(NAME,)), *about.states)
        yield from (replace(one, value_columns=(NAME,)) for one in about.states)
    written = change_max_parallelism(savepoint, 256, folder / "new")
    yield from (written, *written.operators)
    with SavepointWriter.from_existing_savepoint(savepoint, folder / "edited") as writer:
        editor = writer.operator(savepoint.operators[0].operator_id)
        editor.delete_keys([NAME])
        writer.remove_operator(savepoint.operators[-1].operator_id)
    edited = writer.report()
    yield from (editor, edited, *edited.operators)
    other = read_savepoint(folder / "edited")
    compared = savepoint.compare(other)
    yield from (compared, *compared.operators, *savepoint.differences(other))
    for of_operator in compared.operators:
        yield from (*of_operator.states, *of_operator.operator_states, *of_operator.changes)
        yield from (change for state in of_operator.states for change in state.changes)
    yield Pickle(pickle.dumps(NAME))
    yield SplitDifference("changed", KafkaSplit(NAME, 0, 5), KafkaSplit(NAME, 0, 7))
    job = hostile_job()
    yield from (job, *job.vertices, job.skew(job.vertices[0]), *job.savepoints())
    yield from (types.ScalarType(NAME), types.SQL_ROW("BIGINT"), parse_logical_type("BIGINT"))
    yield from (types.TUPLE(types.INT), types.ROW(types.INT, names=[NAME]))
    yield from (types.OBJECTS_HASH(types.INT), types.SCALA_OPTION(types.INT, scala="2.13"))
    yield types.SCALA_EITHER(types.INT, types.STRING, scala="2.12")
    yield types.PYFLINK(protocol=4)
    path, operator_id = ("".join(NAME.split()), "\x1b[2J")
    yield explain_exception(
        f"Failed to rollback to checkpoint/savepoint {path}. Cannot map checkpoint/savepoint "
        f"state for operator {operator_id} to the new program"
    )
    yield ValueStateDescriptor(f"a{NAME}".replace("\ud800", ""), types.LONG)
    yield SubtaskKeySelector(128, 2, types.STRING, prefix=NAME)
    yield from (trace_key(NAME, 128, 4), trace_key((NAME,), 128, 4, types.TUPLE(types.STRING)))
    yield from (Row((NAME,)), Pojo(NAME, {NAME: NAME}), hostile_skew())
    yield from (
        KryoFields({NAME: types.INT}),
        KryoEnum(NAME),
        KinesisSplit(NAME, NAME, NAME, 1, 0),
        ConnectorSplit(NAME, 0, 1, NAME, NAME, {NAME: NAME}),
    )
    fault = StateFault("duplicate", NAME, NAME, 0, 5, NAME, None)
    counted = FaultCount("duplicate", 7, (fault,))
    verified = OperatorVerification(NAME, NAME, 9, (counted,), (NAME,))
    yield from (fault, counted, verified, ChannelState("input", 0, 1, 2, 30))
    state = StateRestore(NAME, "VALUE", None, "unknown", (NAME,), NAME)
    restored = OperatorRestore(NAME, NAME, None, (NAME,), NAME, (state,), "as_is")
    file = JobFile(NAME, 5, None, (NAME,), False)
    yield from (file, JobFiles(NAME, (NAME,), ((NAME, NAME),), (file,)))
    yield SavepointFile(NAME, 5, 4, "keyed state", (NAME,), (0,), False)
    yield from (state, restored, RestoreReport(NAME, NAME, (restored,)))
    heaviest, times = (KeySize(NAME, 5, 0, 1, 20),), TimeCounts(5, 9, (("due", 2),))
    summed = StateSummary(NAME, "LIST", 1, 3, 1, 20, heaviest, times, times, NAME)
    others = OperatorStateSummary(NAME, "UNION", 3, 9, 2)
    parts = (KeyGroupLoad(8, [20] * 8), 1, None, 0, 7, 30, (NAME,))
    summed_up = OperatorSummary(NAME, NAME, 2, 8, 70, (summed,), (others,), *parts)
    summary = SavepointSummary(NAME, 3, 0, (summed_up,))
    growth = SavepointGrowth.of([replace(summary, operators=()), summary])
    yield from (times, summed, others, summed_up, summary, growth, *growth.states)
    yield KeyGroupGrowth(NAME, 5, (20, 30))
    yield from (SavepointVerification(NAME, 3, 70, (), (verified,)), OperatorId("0" * 32))
    yield from (KeyGroupLoad(3, [5, 1, 1]).skew(2), suggest_max_parallelism([2, 3]))
    plan = RescalePlan(8, 2, 3)
    report = RescaleReport(plan, KeyGroupLoad(8, [1] * 8))
    yield from (plan, plan.compare_with_modulo([NAME], types.STRING), report, report.load)
    yield from (report.recommendations, *report.recommendations, KeyGroupRange(0, 3))
    candidate = RoutingCandidate(128, types.ROW(types.INT, names=[NAME]))
    yield candidate
    yield RoutingInference(2, (), 5, 0.1, (NAME,), candidate, ((NAME, 0),))
    yield RoutingInference(2, (candidate,), 5, 0.1, (NAME,), None, ())
    yield from (kind(NAME) for kind in vars(errors).values() if is_error(kind))


def is_error(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, errors.KeyGroupsError)


def is_ours(method: Any) -> bool:
    """Say whether a method is written in this package, as those that Python makes are not."""
    code = getattr(method, "__code__", None)
    folder = Path(keygroups.__file__).parent
    return code is not None and Path(code.co_filename).is_relative_to(folder)


def test_every_value(tmp_path: Path) -> None:
    shown: set[type] = set()
    for value in hostile_values(tmp_path):
        check_shown(str(value))
        check_shown(repr(value))
        shown.update(type(value).__mro__)
        if hasattr(value, "_repr_html_"):
            html = value._repr_html_()
            check_shown(html)
            assert "<b>" not in html
    own = {
        value
        for value in public_classes()
        if any(is_ours(vars(value).get(name)) for name in ("__str__", "__repr__", "_repr_html_"))
    }
    assert not own - shown - {*RECORDS}, "give one of these to hostile_values"


def test_what_tells_of_any_value() -> None:
    check_shown(show(Hostile()))
    check_shown(show([NAME]))
    html = html_table([NAME], [NAME, NAME], [[NAME, Hostile()]], caption=NAME, marks={0: NAME})
    check_shown(html)
    assert unescape(html).count(printable(NAME)) == 7
    with pytest.raises(AssertionError) as caught:
        testing.assert_spread([NAME, NAME, "a"], 128, 4)
    check_shown(str(caught.value))
    own = assign_key_to_parallel_operator(NAME, 128, 4)
    with pytest.raises(AssertionError) as caught:
        testing.assert_subtask(NAME, (own + 1) % 4, 128, 4)
    check_shown(str(caught.value))


# The command


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, str]:
    """Return the texts that the command prints to standard output and to standard error."""
    main(arguments)
    return capsys.readouterr()


def test_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = hostile_folder(tmp_path)
    job = hostile_job()
    monkeypatch.setattr("keygroups.job.read_job", lambda *_, **__: job)
    bounds = ("-m", "128", "-p", "4")
    rewrite = ("--set-max-parallelism", "256", "--output", f"{tmp_path}/new\n{LINE}")
    edit = ("--remove-operator", f"{NAME}0", "--output", f"{tmp_path}/edited\n{LINE}")
    for arguments in (
        ("savepoint", path),
        ("savepoint", path, *rewrite),
        ("savepoint", path, *edit),
        ("savepoint", path, "--moved", f"{NAME}={NAME}"),
        ("savepoint", path, "--relocate", NAME),
        ("savepoint", path, "--operator", "nobody"),
        ("savepoint", path, "--operator", NAME),
        ("savepoint", NAME),
        ("job", "http://localhost"),
        ("job", "http://localhost", "--savepoints"),
        ("job", "http://localhost", "--vertex", NAME),
        ("job", "http://localhost", "--vertex", "nobody"),
        ("trace", NAME, *bounds),
        ("trace", "a", *bounds, "--type", NAME),
        ("trace", "a", NAME, *bounds),
        ("range", NAME, "4", "1"),
        (NAME,),
        ("plan", "8", "2", "3", "--load", NAME),
        ("keys", "128", "4", "--prefix", NAME.replace("\udcff", ""), "--type", "STRING"),
    ):
        out, err = said(capsys, *arguments)
        check_shown(out, "\n\t" if arguments[0] == "keys" else "\n")
        check_shown(err)
        assert err.count("\n") == (not out)


def test_json_has_text_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = hostile_folder(tmp_path)

    def data(*arguments: str) -> Any:
        out, err = said(capsys, *arguments, "--json")
        check_shown(out)
        assert err == ""
        return json.loads(out)

    savepoint = data("savepoint", path)
    assert savepoint["path"] == path
    assert savepoint["kind"] == f"{NAME.lower()} savepoint"
    labels = [f"{NAME}0", f"{NAME}1", NAME]
    assert [one["uid"] or one["name"] for one in savepoint["operators"]] == labels
    for report in savepoint["reports"]:
        assert [one["key"] for one in report["heaviest_keys"]] == [NAME]
        assert report["states"] == [
            f"{NAME}: VALUE <STRING, INT>",
            f"{NAME}1: VALUE <STRING, POJO({NAME}, {NAME} INT)>",
            f"{NAME}2: LIST <STRING, KRYO({NAME})>",
            f"{NAME}3: VALUE <STRING, TUPLE({NAME}, INT)>",
        ]
    new = str(tmp_path / "new")
    written = data("savepoint", path, "--set-max-parallelism", "256", "--output", new)
    assert [one["operator"] for one in written["operators"]] == labels
    assert [one["states"][0]["state"] for one in written["operators"][:2]] == [NAME] * 2
    monkeypatch.setattr("keygroups.job.read_job", lambda *_, **__: hostile_job())
    job = data("job", "http://localhost")
    assert (job["job_id"], job["name"], job["state"]) == (NAME, NAME, NAME)
    for vertex in job["vertices"]:
        assert (vertex["name"], vertex["status"]) == (NAME, NAME)
        assert [one["status"] for one in vertex["subtasks"]] == [NAME, NAME]
    (savepoint,) = data("job", "http://localhost", "--savepoints")["savepoints"]
    assert savepoint["path"] == NAME
    key = NAME.replace("\udcff", "")  # Python makes it of a byte that is no text
    assert data("trace", key, "-m", "128", "-p", "4")["key"] == key
    prefix = ("--prefix", key, "--type", "STRING")
    assert all(one["keys"][0].startswith(key) for one in data("keys", "128", "4", *prefix))


@pytest.mark.parametrize("make", [list, tuple, set, frozenset, dict.fromkeys])
def test_ten_parts_of_a_value_are_shown(make: Any) -> None:
    assert "..." not in show(make(range(10)))
    assert ", 9, ..." in show(make(range(11))).replace(": None", "")


def test_messages_have_at_most_3000_characters() -> None:
    """`str()` of an error promises that."""
    assert str(errors.KeyGroupsError("x" * 3_000)) == "x" * 3_000
    cut = str(errors.KeyGroupsError("x" * 3_001))
    assert (len(cut), "x...x" in cut) == (3_000, True)
