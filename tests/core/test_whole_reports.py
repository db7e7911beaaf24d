"""Reports on two savepoints, on faults, restores, edits and files, made by hand: whole texts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.html_tables import shown

from keygroups import types
from keygroups.savepoint import (
    Change,
    Committable,
    ConnectorSplit,
    DeletedKeys,
    EditedOperator,
    EditedState,
    EditReport,
    EntryDifference,
    FaultCount,
    FileSplit,
    JobFile,
    JobFiles,
    KafkaProducerState,
    KafkaSplit,
    KafkaTransaction,
    KafkaWriterState,
    KinesisSplit,
    ListStateDescriptor,
    Operator,
    OperatorComparison,
    OperatorReport,
    OperatorRestore,
    OperatorStateElement,
    OperatorVerification,
    RestoreReport,
    Savepoint,
    SavepointComparison,
    SavepointVerification,
    SavepointWriter,
    SinkState,
    SourceSplits,
    SpecialOffset,
    SplitDifference,
    StateComparison,
    StateEntry,
    StateFault,
    StateRestore,
    UnknownCommittable,
    UnknownSplit,
    UnknownWriterState,
    UnsearchedPlace,
    WrittenState,
    read_savepoint,
    savepoint_files,
)

LONG = "n" * 101
CUT = f"{'n' * 50}...{'n' * 47}"  # 100 characters of it


# --- comparisons ------------------------------------------------------------------------------


def entry(key: object, value: object, **more: Any) -> StateEntry:
    fields = {"namespace": None, "user_key": None, "last_access": None, "timestamp": None}
    return StateEntry("s", "VALUE", 5, 1, key, value=value, **fields | {"bytes": 9} | more)


def differing(kind: str, here: Any, there: Any) -> EntryDifference:
    return EntryDifference("by", "s", kind, here, there)


def state(name: str, *counts: int, changes: Any = (), examples: Any = ()) -> StateComparison:
    equal, changed, touched, here, there = counts
    return StateComparison(name, "VALUE", changes, equal, changed, touched, here, there, examples)


LATER = "v" * 50 + "w" + "v" * 49
ELEMENT = OperatorStateElement("s", "UNION", 0, None, 5)
LARGE = differing("only_here", entry("k" * 100, "v" * 100), None)
LINES = {
    "key 'a': 1 -> 2": differing("changed", entry("a", 1), entry("a", 2)),
    "key 'a': 1 -> none": differing("only_here", entry("a", 1), None),
    "key 'a': none -> 1": differing("only_there", None, entry("a", 1)),
    "key 'a', user key 'u': none -> 1": differing(
        *("only_there", None, entry("a", 1, user_key="u", key_bytes=b"\1"))
    ),
    "key 'a' in 7: 1 -> 2": differing(
        *("changed", entry("a", 1, namespace=7), entry("a", 2, namespace=7))
    ),
    "key bytes b'\\x01': 1 -> none": differing(
        *("only_here", entry(None, 1, key_bytes=b"\1"), None)
    ),
    "key 'a': last access 5 -> last access 6": differing(
        *("touched", entry("a", 1, last_access=5), entry("a", 1, last_access=6))
    ),
    "key 'a': at 1500 (1970-01-01 00:00:01.500Z) -> none": differing(
        *("only_here", entry("a", None, timestamp=1500), None)
    ),
    "element: none -> 5": differing("only_there", None, ELEMENT),
    # Key and value take 60, 40, 28 or 20 characters each, so that the line has 80.
    "key 'kkkkkkkkkkkkk...kkkkkkkkkk': 'vvvvvvvvvvvvv...vvvvvvvvvv' -> none": LARGE,
    f"key 'k': ...{'v' * 20}... -> ...{'v' * 8}w{'v' * 11}...": differing(
        *("changed", entry("k", "v" * 100), entry("k", LATER))
    ),
}


@pytest.mark.parametrize("line", LINES)
def test_lines_of_entries(line: str) -> None:
    assert str(LINES[line]) == line
    assert len(line) <= 80


@pytest.mark.parametrize(
    ("digits", "most"), [(1, 60), (6, 60), (7, 40), (26, 40), (27, 28), (28, 28), (99, 28)]
)
def test_how_much_of_a_key_is_shown(digits: int, most: int) -> None:
    """The most of 60, 40, 28 and 20 characters that make a line of at most 80."""
    line = str(differing("only_here", entry("k" * 100, 10 ** (digits - 1)), None))
    assert line.index(": ") - len("key ") == most
    assert len(line) == len("key : ") + most + min(digits, most) + len(" -> none")
    with_user_key = entry("k" * 100, 1, user_key="u" * 100)
    assert str(differing("only_here", with_user_key, None)).index(", user") - len("key ") == 20


def kafka(partition: int, offset: int, **more: Any) -> KafkaSplit:
    return KafkaSplit("t", partition, offset, None, 0, True, **more)


FILE = FileSplit("id", "/p", 0, 10, None, None, (), None, 0)
SPLITS = {
    "split t/0: offset 5 -> 7": SplitDifference("changed", kafka(0, 5), kafka(0, 7)),
    "split t/1: offset 5, is_assigned True -> none": SplitDifference(
        *("only_here", kafka(1, 5), None)
    ),
    "split c: t/2: none -> offset 5, is_assigned True": SplitDifference(
        *("only_there", None, kafka(2, 5, cluster="c"))
    ),
    "split id: path '/p', offset 0, length 10 -> none": SplitDifference("only_here", FILE, None),
    "split id: position None -> (1, 2)": SplitDifference(
        *("changed", FILE, FILE._replace(position=(1, 2), subtask=1))
    ),
}


@pytest.mark.parametrize("size", [58, 59])
def test_fields_of_splits_take_60_characters(size: int) -> None:
    path = "p" * size
    line = str(SplitDifference("only_here", FILE._replace(path=path), None))
    shown_path = repr(path) if size == 58 else f"'{'p' * 29}...{'p' * 26}'"
    assert line == f"split id: path {shown_path}, offset 0, length 10 -> none"


@pytest.mark.parametrize("line", SPLITS)
def test_lines_of_splits(line: str) -> None:
    assert str(SPLITS[line]) == line


COUNTED = state(
    *("cnt", 1000, 2000, 3, 4, 5),
    changes=(Change("has_ttl", False, True), Change("value_serializer", "LONG", "LONG")),
    examples=(
        *(differing("changed", entry(key, 1), entry(key, 2)) for key in range(50)),
        LARGE,
    ),
)
MANY_SPLITS = (SPLITS["split t/0: offset 5 -> 7"],) * 21
COMPARISON = SavepointComparison(
    *("/a", "/b"),
    (
        OperatorComparison(
            *("by", "0" * 32, None),
            (Change("parallelism", 1, 2), Change("is_fully_finished", False, True)),
            (COUNTED, state("e", 5, 0, 0, 0, 0), state("f", 7, 0, 0, 0, 0)),
            (state("ops", 0, 1, 0, 0, 0),),
            *(MANY_SPLITS, "changed", True),
        ),
        OperatorComparison(LONG, "1" * 32, "only_here", (), (), (), (), "only_here", False),
        OperatorComparison(
            *("same", "2" * 32, None, (), (state("g", 0, 0, 0, 0, 0),), (), (), "equal", False)
        ),
    ),
)
COMPARED = f"""here:  /a
there: /b
3 operators, 2 with differences
by: parallelism: 1 -> 2, is fully finished: False -> True
  cnt: VALUE
    1,000 equal, 2,000 changed, 3 touched, 4 only here, 5 only there
    has ttl: False -> True
    value serializer: LONG, with another snapshot
KEYS
      only here  key 'kkkkkkkkkkkkk...kkkkkkkkkk': 'vvvvvvvvvvvvv...vvvvvvvvvv'
      and 1,961 more
  ops: VALUE
    1 changed
      and 1 more
  equal: 2 states, 12 entries
SPLITS
  and 1 splits more
  coordinator: changed
  in-flight data of an unaligned checkpoint is not compared
{"n" * 40}...{"n" * 26}: only here
  coordinator: only here
"""


def test_a_comparison() -> None:
    keys = [f"      changed    key {key}: 1 -> 2" for key in range(50)]
    splits = ["  changed    split t/0: offset 5 -> 7"] * 20
    expected = COMPARED.replace("KEYS", "\n".join(keys)).replace("SPLITS", "\n".join(splits))
    assert str(COMPARISON) == expected.strip()
    assert repr(COMPARISON) == "<SavepointComparison: 3 operators, 2 with differences>"
    texts = [str(operator) for operator in COMPARISON.operators]
    assert "\n".join(texts[:2]) == expected.partition("differences\n")[2].strip()
    assert texts[2] == "same: equal\n  equal: 1 states, 0 entries\n  coordinator: equal"
    assert str(state("e", 0, 0, 0, 0, 0)) == "e: VALUE\n  no entries"
    page = shown(COMPARISON)
    assert page.paragraphs == [
        *("here:  /a", "there: /b", "3 operators, 2 with differences"),
        "equal: 3 states, 12 entries",
    ]
    assert page.captions == [
        *("Properties that differ", "Entries of states that differ"),
        "Entries that differ; 1,963 others are left out",
    ]
    assert page.left == [
        *("operator", "state", "property", "operator", "state"),
        *("operator", "state", "which", "entry"),
    ]
    assert page.rows[:5] == [
        ["operator", "state", "property"],
        ["by", "", "parallelism: 1 -> 2"],
        ["by", "", "is fully finished: False -> True"],
        ["by", "cnt", "has ttl: False -> True"],
        ["by", "cnt", "value serializer: LONG, with another snapshot"],
    ]
    assert page.rows[5:31] == [
        *[["by", "", "changed    split t/0: offset 5 -> 7"]] * 20,
        *(["by", "", "and 1 splits more"], ["by", "", "coordinator: changed"]),
        ["by", "", "in-flight data of an unaligned checkpoint is not compared"],
        *([LONG, "", "only here"], [LONG, "", "coordinator: only here"]),
        ["operator", "state", "equal", "changed", "touched", "only here", "only there"],
    ]
    assert page.rows[31:] == [
        ["by", "cnt", "1,000", "2,000", "3", "4", "5"],
        ["by", "ops", "0", "1", "0", "0", "0"],
        ["operator", "state", "which", "entry"],
        *(["by", "s", "changed", f"key {key}: 1 -> 2"] for key in range(50)),
    ]


def test_what_makes_a_difference() -> None:
    none = ("by", "0" * 32, None, (), (), (), (), None, False)
    assert not OperatorComparison(*none).has_differences
    for index, value in {
        2: "only_there",
        3: (Change("parallelism", 1, 2),),
        4: (state("s", 0, 0, 0, 0, 1),),
        5: (state("s", 0, 0, 1, 0, 0),),
        6: MANY_SPLITS,
        7: "only_there",
    }.items():
        other: Any = (*none[:index], value, *none[index + 1 :])
        assert OperatorComparison(*other).has_differences
    for counts in ((1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1)):
        assert state("s", 5, *counts).differing == 1
    assert not state("s", 5, 0, 0, 0, 0).has_differences
    assert state("s", 5, 0, 0, 0, 0, changes=(Change("has_ttl", 0, 1),)).has_differences


# --- restores and faults ----------------------------------------------------------------------

RESTORES = RestoreReport(
    *("/s", "/j"),
    (
        OperatorRestore(
            *("by", "0" * 32, None, ("keys are LONG", "and not INT"), "write it anew"),
            (
                StateRestore("a", "VALUE", None, "incompatible", ("it is",), "convert it"),
                StateRestore("b", "MAP", "only_here", "as_is", (), ""),
            ),
            "incompatible",
        ),
        OperatorRestore(
            *("even", "1" * 32, None, (), ""),
            *((StateRestore("c", "VALUE", None, "as_is", (), ""),), "as_is"),
        ),
        OperatorRestore(
            *(LONG, "2" * 32, "only_there", ("r",), "m"),
            (StateRestore(LONG, "VALUE", "only_there", "unknown", ("why",), ""),),
            "after_migration",
        ),
    ),
)
RESTORED = f"""savepoint: /s
job:       /j
3 operators, 4 states: Flink refuses it
by: incompatible
  keys are LONG
  and not INT
  -> write it anew
  a: incompatible
    it is
    -> convert it
{CUT}: unknown
  r
  -> m
  {CUT}: unknown
    why"""


def test_a_restore() -> None:
    assert str(RESTORES) == RESTORED
    assert repr(RESTORES) == "<RestoreReport: 3 operators, 4 states: Flink refuses it>"
    page = shown(RESTORES)
    assert page.paragraphs == RESTORED.splitlines()[:3]
    assert page.left == ["operator", "state", "verdict", "why", "what mends it"]
    assert page.rows[1:] == [
        ["by", "", "incompatible", "keys are LONG; and not INT", "write it anew"],
        ["by", "a", "incompatible", "it is", "convert it"],
        ["by", "b", "as is", "", ""],
        ["even", "c", "as is", "", ""],
        [CUT, "", "after migration", "r", "m"],
        [CUT, CUT, "unknown", "why", ""],
    ]


@pytest.mark.parametrize(
    ("verdict", "restores", "text"),
    [
        ("as_is", True, "it restores"),
        ("reconfigured", True, "it restores"),
        ("after_migration", True, "it restores"),
        ("unknown", None, "not known"),
        ("incompatible", False, "Flink refuses it"),
    ],
)
def test_verdicts(verdict: str, restores: bool | None, text: str) -> None:
    """The worst of an operator and its states is that of all."""
    fine = OperatorRestore("fine", "1" * 32, None, (), "", (), "as_is")
    operator = OperatorRestore("x", "0" * 32, None, (), "", (), verdict)
    report = RestoreReport("/s", "/j", (operator, fine))
    assert (report.verdict, report.restores) == (verdict, restores)
    assert str(report) == f"savepoint: /s\njob:       /j\n2 operators, 0 states: {text}"
    assert shown(report).rows == []


KINDS = {
    "file": "files that are not there as _metadata says",
    "unreadable": "places that cannot be read",
    "foreign_key_group": "keys in a key group that is not their own, where Flink loses them",
    "duplicate": "entries that are there twice",
    "window_without_timer": "windows without a timer, which nothing fires or clears",
    "contents_without_window": "contents of merging windows of which the set has none",
    "timer_without_window": "timers of windows without contents",
    "window_without_contents": "merging windows without contents",
}
FAULTS = SavepointVerification(
    *("/s", 2000, 3000),
    (FaultCount("file", 2, (StateFault("file", "it is gone"),)),),
    (
        OperatorVerification(
            *("by", "0" * 32, 4000),
            (
                FaultCount(
                    *("duplicate", 1200),
                    (
                        StateFault("duplicate", "m", "s", 3, 7, "k", 5),
                        StateFault("duplicate", "", key="k" * 120, namespace="w" * 120),
                    ),
                ),
                FaultCount(
                    *("timer_without_window", 1),
                    (StateFault("timer_without_window", "", state="t"),),
                ),
            ),
            ("keys of a class",),
        ),
        OperatorVerification(LONG, "1" * 32, 5, (), ("u",)),
        OperatorVerification("fine", "2" * 32, 5, (), ()),
    ),
)
LONG_KEY, LONG_WINDOW = (f"'{char * 49}...{char * 46}'" for char in "kw")
FAULTY = f"""verified: /s
2,000 files of 3,000 bytes, 3 operators, 4,010 entries: 1,202 faults
  2 files that are not there as _metadata says
    it is gone
    and 1 more
by: 4,000 entries
  1,200 entries that are there twice
    state s, key 'k', window 5, key group 7, subtask 3: m
    key {LONG_KEY}, window {LONG_WINDOW}
    and 1,198 more
  1 timers of windows without contents
    state t
  not verified: keys of a class
{CUT}: 5 entries
  not verified: u"""


def test_a_verification() -> None:
    assert str(FAULTS) == FAULTY
    assert repr(FAULTS) == f"<SavepointVerification: {FAULTY.splitlines()[1]}>"
    page = shown(FAULTS)
    assert page.captions == ["The first few of each kind"]
    assert page.left == ["operator", "fault", "place"]
    assert page.rows[1:] == [
        ["", "2 files that are not there as _metadata says", "it is gone"],
        ["by", "1,200 entries that are there twice", FAULTY.splitlines()[7].strip()],
        ["by", "1,200 entries that are there twice", FAULTY.splitlines()[8].strip()],
        ["by", "1 timers of windows without contents", "state t"],
    ]
    for kind, text in KINDS.items():
        count = FaultCount(kind, 1, ())
        assert count.text == f"1 {text}"
        is_fault = kind not in ("timer_without_window", "window_without_contents")
        operator = OperatorVerification("by", "0" * 32, 1, (count,), ())
        report = SavepointVerification("/s", 1, 1, (), (operator,))
        assert count.is_fault == operator.has_faults == report.has_faults == is_fault
        result = "1 faults" if is_fault else "no fault"
        assert str(report).splitlines()[1].endswith(f"1 operators, 1 entries: {result}")
        assert SavepointVerification("/s", 1, 1, (count,), ()).has_faults == is_fault


# --- edits and files --------------------------------------------------------------------------

TRANSACTION = KafkaTransaction("tx", 10, 1)
EDITS = EditReport(
    "/new",
    (
        EditedOperator(
            *("by", "was", "/old", False),
            (
                EditedState("a", "a", 1000, 2000, 3000, 4000),
                EditedState("b", "c", 1, 0, 0, 0),
                EditedState("d", None, None, None, None, None),
                EditedState("e", "e", 7, 0, 0, 0),
            ),
            DeletedKeys(5, (1, 2), (UnsearchedPlace("by", "state x of a class"),)),
            *(128, 4096, 2),
            (WrittenState("a", 0, 1000, 20_000), WrittenState("a", 1, 10, 5)),
        ),
        EditedOperator(
            *(None, "out", "/old"),
            committables=(Committable(TRANSACTION, 7, 0, 0, "RECEIVED", 0),),
        ),
        EditedOperator("more", "more", "/other", True, new_max_parallelism=8, parallelism=1),
        EditedOperator("fresh", new_max_parallelism=8, parallelism=1),
        EditedOperator("kept", "kept", "/old", deleted_keys=DeletedKeys(0, (), ())),
    ),
    (*(f"o{number}" for number in range(9)), LONG, "x", "y"),
)
EDITED = f"""savepoint: /new
by: its state changed, max parallelism 128 -> 4096, renamed from was
  a: 1,000 entries kept, 2,000 changed, 3,000 deleted, 4,000 added
  c: 1 entries kept, 0 changed, 0 deleted, 0 added, renamed from b
  d: removed
  a: 1,010 entries, 20,005 bytes, in 2 subtasks
  keys deleted: 5, and 2 that had no entries
  keys may also be where nobody has searched: in the old savepoint /old, in checkpoints that share its files, and here:
    by: state x of a class
out: removed
  1 committable; the sink that had to commit what was prepared is removed
    tx, producer 10, epoch 1
more: copied as it is, from /other
fresh: new
kept: copied as it is
  keys deleted: 0, and 0 that had no entries
  keys may also be where nobody has searched: in the old savepoint /old, in checkpoints that share its files
set max parallelism in the job, to 4096: where it is not set, a new operator in the chain can make Flink lose keyed state
operators without state keep their max parallelism: o0, o1, o2, o3, o4, o5, o6, o7, o8, {CUT} and 2 more; where the job has another for one, as in a chain with an operator that was changed, Flink refuses the restore: name it in operators too"""  # noqa: E501  # Lines of a terminal.


def test_edits() -> None:
    lines = EDITED.splitlines()
    assert str(EDITS) == EDITED
    assert repr(EDITS) == "<EditReport: 5 operators, /new>"
    page = shown(EDITS)
    assert page.captions == [
        *("The operators", "Entries of the states of by", "What was written of by"),
        *("Where keys may also be", "What would have been committed"),
    ]
    assert page.left == [
        *("operator", "change", "state", "becomes", "state", "operator", "place"),
        *("committable", "state"),
    ]
    texts = [0, 6, 7, 10, 15, 16, 17, 18]
    assert page.paragraphs == [lines[index].strip() for index in texts]
    assert page.rows == [
        ["operator", "change"],
        *(lines[index].split(": ", 1) for index in (1, 9, 12, 13, 14)),
        ["state", "becomes", "kept", "changed", "deleted", "added"],
        ["a", "", "1,000", "2,000", "3,000", "4,000"],
        *(["b", "c", "1", "0", "0", "0"], ["d", "removed", "", "", "", ""]),
        ["state", "entries", "bytes", "subtasks"],
        ["a", "1,010", "20,005", "2"],
        *(["operator", "place"], ["by", "state x of a class"]),
        ["committable", "checkpoint", "subtask", "state"],
        ["tx, producer 10, epoch 1", "7", "0", "RECEIVED"],
    ]


def test_edits_of_ten_operators_without_state() -> None:
    names = [f"o{number}" for number in range(10)]
    text = str(EditReport("/new", (), tuple(names)))
    assert f" max parallelism: {', '.join(names)}; where" in text


@pytest.mark.parametrize("more", [0, 3])
def test_files_of_a_table(more: int) -> None:
    """The 50 largest, and 100 characters of a path and of who uses it."""
    files = [JobFile(f"/j/{number}", 10 + number, None, (), False) for number in range(49 + more)]
    report = JobFiles("/j", ("chk-1",), (), (*files, JobFile(LONG, 1000, None, (), True)))
    lines = str(report).splitlines()
    assert lines[3].split() == [CUT, "1,000", "-", "tasks"]
    end = [f"and {more} files more, which are smaller"] if more else []
    assert lines[53:] == end
    assert lines[52].split() == [f"/j/{more}", str(10 + more), "-", "nobody"]
    page = shown(report)
    assert len(page.rows) == 51
    assert page.left == ["file", "written (UTC)", "used by"]
    used = JobFiles("/j", (LONG,), (), (JobFile("/j/a", 1, None, (LONG,), False),))
    assert str(used).splitlines()[3].split() == ["/j/a", "1", "-", CUT]


# --- operators --------------------------------------------------------------------------------


def of_files(folder: Path, *files: tuple[int, list[int], int]) -> Savepoint:
    """Return an operator of two subtasks, in whose files are key groups from a first one on.

    Each file has the first key group, the offset of each key group, and its size.
    """
    subtasks = [
        sb.subtask(
            number,
            managed_keyed=sb.canonical(first, offsets, sb.absolute(f"file:/no/{number}", size)),
        )
        for number, (first, offsets, size) in enumerate(files)
    ]
    sb.write(folder, [sb.operator(subtasks, uid="a", parallelism=2)])
    return read_savepoint(folder)


@pytest.mark.parametrize(("heaviest", "times", "words"), [(30, "1.50", ["hot"]), (29, "1.45", [])])
def test_subtasks_that_are_hot(
    heaviest: int, times: str, words: list[str], tmp_path: Path
) -> None:
    """Those of one and a half times the mean, and more."""
    files = (0, [0], heaviest), (64, [0], 40 - heaviest)
    page = shown(of_files(tmp_path, *files).operators[0])
    assert page.rows[1] == ["0", "[0, 0]", str(heaviest), times, ""]
    assert page.words == words


@pytest.mark.parametrize(
    ("files", "row"),
    [
        (((0, [30], 30), (64, [10], 10)), ["a", "2", "128", "40", "0", "1.00"]),
        (((0, [5], 20), (64, [5], 10)), ["a", "2", "128", "30", "2", "1.50"]),
        # Key groups 62 and 63 are of the first subtask, the next two of the other: 25 and 70.
        (((62, [5, 10, 30, 60], 100),), ["a", "2", "128", "100", "4", "1.47"]),
        (((62, [5, 10, 10, 60], 100),), ["a", "2", "128", "100", "3", "1.89"]),
        (((0, [5, 10, 10, 60], 100),), ["a", "2", "128", "100", "3", "2.00"]),
    ],
)
def test_key_groups_in_use(files: Any, row: list[str], tmp_path: Path) -> None:
    savepoint = of_files(tmp_path, *files)
    assert str(savepoint).splitlines()[2].split() == row
    page = shown(savepoint)
    assert page.rows[1] == row
    assert page.words == ["hot"] * (float(row[-1]) >= 1.5)


def test_key_groups_of_two_files_count_once(tmp_path: Path) -> None:
    """Raw timers of a subtask stand beside its state."""
    state_handle = sb.canonical(0, [5, 10, 30], sb.absolute("file:/no/1", 100))
    timers = sb.canonical(0, [5, 10, 10], sb.absolute("file:/no/2", 50))
    subtask = sb.subtask(0, managed_keyed=state_handle, raw_keyed=timers)
    sb.write(tmp_path, [sb.operator([subtask], uid="a", parallelism=2)])
    row = str(read_savepoint(tmp_path)).splitlines()[2].split()
    assert row == ["a", "2", "128", "150", "3", "2.00"]


def test_files_beside_a_savepoint(tmp_path: Path) -> None:
    """One in a folder whose name begins alike is another's too."""
    for name, is_shared in (("s", False), ("sx", True)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").write_bytes(b"abc")
        stream = sb.absolute(f"{tmp_path}/{name}/a", 3)
        subtask = sb.subtask(0, managed_keyed=sb.canonical(0, [0], stream))
        sb.write(tmp_path / "s", [sb.operator([subtask], uid="a")])
        for path in (tmp_path / "s", (tmp_path / "s").as_uri(), os.path.relpath(tmp_path / "s")):
            [file] = savepoint_files(read_savepoint(path))
            assert (file.bytes, file.is_shared) == (3, is_shared)


# --- sources and sinks ------------------------------------------------------------------------


def report(operator: Operator, source: Any = None, sink: Any = None) -> OperatorReport:
    return OperatorReport(operator, None, (), (), None, source=source, sink=sink)


@pytest.fixture(scope="module")
def without_keys(tmp_path_factory: pytest.TempPathFactory) -> Operator:
    path = tmp_path_factory.mktemp("without") / "savepoint"
    with SavepointWriter(path) as writer:
        states = [ListStateDescriptor("x", types.LONG)]
        writer.add_operator("by", None, (), 128, 1, list_states=states)
    return read_savepoint(path).operators[0]


LATEST = SpecialOffset.LATEST
FIRST = FileSplit("id", "/p", 7, 9, None, None, (), None, 0)
SPLIT_ROWS: list[tuple[Any, list[str]]] = [
    (KafkaSplit("t", 0, 1000, None, 3, True), ["t/0", "1,000", "3"]),
    (
        KafkaSplit("t", 1, LATEST, 9000, None, True),
        ["t/1", "LATEST to 9,000", "none, read to its end"],
    ),
    (
        KafkaSplit("t", 2, None, LATEST, None, cluster="c"),
        ["c: t/2", "not told to LATEST", "none yet"],
    ),
    (KinesisSplit("st", "sh", "49", 0, 1), ["st/sh", "after 49, 0 in it", "1"]),
    (KinesisSplit("st", "sh", "49", -1, 1), ["st/sh", "after 49", "1"]),
    (
        FileSplit("id", "/p", 1000, 2000, None, None, (), None, None),
        ["/p", "byte 1,000, of 1,000 to 3,000", "none yet"],
    ),
    (
        FIRST._replace(length=8993, position=(5000, 6000)),
        ["/p", "byte 5,000, 6,000 records on, of 7 to 9,000", "0"],
    ),
    (FIRST._replace(position=(-1, 1)), ["/p", "byte 7, 1 records on, of 7 to 16", "0"]),
    (FIRST._replace(position=(0, 0)), ["/p", "byte 0, of 7 to 16", "0"]),
    (ConnectorSplit("CDC", 2, 1, "split", "", {}), ["CDC: split", "its start", "2"]),
    (ConnectorSplit("CDC", 2, 1, "split", "lsn 5", {}), ["CDC: split", "lsn 5", "2"]),
    (UnknownSplit(2, 3, b"ab"), ["of another source", "b'ab', version 3", "2"]),
    (KafkaSplit(LONG, 0, 1, None, 0), [f"{'n' * 50}...{'n' * 45}/0", "1", "0"]),
    (FIRST._replace(path=LONG), [CUT, "byte 7, of 7 to 16", "0"]),
]


def test_splits_of_a_source(without_keys: Operator) -> None:
    splits = tuple(split for split, _ in SPLIT_ROWS)
    whole = report(without_keys, SourceSplits(splits, None, None, False, ("/a",) * 2000))
    lines = str(whole).splitlines()
    assert lines[0] == f"== {without_keys.operator_id}: source"
    counted = "the initial discovery of partitions is not finished; 2,000 files were seen"
    assert lines[1] == f"  14 splits; {counted}"
    page = shown(whole)
    assert page.captions == ["Splits of the source"]
    assert page.left == ["split", "goes on at"]
    assert page.rows == [["split", "goes on at", "subtask"], *(row for _, row in SPLIT_ROWS)]
    assert page.paragraphs[-2:] == [lines[1].strip(), "no keyed state"]
    for count, text in {
        **{0: "0 splits", 1: "1 split", 100: "100 splits"},
        **{101: "101 splits, of which 100 follow", 1000: "1,000 splits, of which 100 follow"},
    }.items():
        many = SourceSplits(splits[:1] * count, None, None, True)
        page = shown(report(without_keys, many))
        assert page.paragraphs[-2] == text
        assert len(page.rows) == 1 + min(count, 100)


PREPARED = Committable(TRANSACTION, 7000, 3, 0, "RECEIVED", 0)
SINK = SinkState(
    (
        PREPARED,
        Committable(KafkaTransaction(None, 10, 1), None, 0, 0, "FAILED", 0),
        Committable(UnknownCommittable(2, b"ab"), 1, 0, 0, "RETRY", 0),
        Committable(KafkaTransaction(LONG, 10, 1), 7, 3, 0, "RECEIVED", 0),
    ),
    (
        KafkaProducerState(1, TRANSACTION, 5, ("a", "b")),
        KafkaProducerState(2),
        UnknownWriterState(3, 4, b"ab"),
        KafkaWriterState("pre", 4, precommitted=(("x", 1), ("y", 2))),
        KafkaWriterState(LONG, 5, precommitted=((LONG, 1),)),
        KafkaProducerState(6, KafkaTransaction(LONG, 10, 1), 5, (LONG,)),
    ),
)


def test_what_a_sink_has_open(without_keys: Operator) -> None:
    whole = report(without_keys, sink=SINK)
    lines = str(whole).splitlines()
    assert lines[:2] == [
        f"== {without_keys.operator_id}: sink",
        "  4 committables; a restore commits them",
    ]
    page = shown(whole)
    assert page.captions == ["What a restore commits", "Writers of the sink"]
    assert page.left == ["committable", "state", "transactional ids begin with", "precommitted"]
    assert page.paragraphs[-3:] == [
        *("4 committables; a restore commits them", "6 writers", "no keyed state"),
    ]
    assert page.rows == [
        ["committable", "checkpoint", "subtask", "state"],
        ["tx, producer 10, epoch 1", "7,000", "3", "RECEIVED"],
        ["no transaction, producer 10, epoch 1", "", "0", "FAILED"],
        ["b'ab', version 2", "1", "0", "RETRY"],
        [f"{'n' * 50}...{'n' * 25}, producer 10, epoch 1", "7", "3", "RECEIVED"],
        ["transactional ids begin with", "precommitted", "subtask"],
        ["of FlinkKafkaProducer: a, b", "open: tx, producer 10, epoch 1", "1"],
        ["of FlinkKafkaProducer:", "", "2"],
        ["not known: b'ab', version 4", "", "3"],
        ["pre", "x, y", "4"],
        [CUT, CUT, "5"],
        [
            f"of FlinkKafkaProducer: {CUT}",
            *(f"open: {'n' * 44}...{'n' * 25}, producer 10, epoch 1", "6"),
        ],
    ]
    assert str(report(without_keys, sink=SinkState((), ()))).splitlines()[1:] == [
        "  nothing is to be committed"
    ]
    many = SinkState((PREPARED,) * 101, SINK.writers[:1] * 101)
    page = shown(report(without_keys, sink=many))
    assert page.paragraphs[-3:-1] == [
        "101 committables, of which 100 follow; a restore commits them",
        "101 writers, of which 100 follow",
    ]
    assert len(page.rows) == 2 * 101
    few = SinkState((PREPARED,), SINK.writers[:1])
    assert shown(report(without_keys, sink=few)).paragraphs[-3:-1] == [
        *("1 committable; a restore commits them", "1 writer"),
    ]
    for what, text in (((PREPARED,), "1 committable"), (None, "what it had to commit cannot be")):
        removed = str(EditedOperator(None, "out", "/old", committables=what)).splitlines()
        assert removed[:1] == ["out: removed"]
        assert removed[1].startswith(f"  {text}")
    assert str(report(without_keys)) == f"== {without_keys.operator_id}: no keyed state"
