"""What `help()` and `import *` show of savepoints: every name, and each in one subject."""

from __future__ import annotations

import importlib
import pkgutil
import pydoc
import re
from collections import Counter
from types import ModuleType

import pytest

from keygroups import savepoint, state_keys

SUBJECTS = [
    importlib.import_module(f"keygroups.savepoint.{info.name}")
    for info in pkgutil.iter_modules(savepoint.__path__)
    if not info.name.startswith("_")
]
# What `keygroups.savepoint` had in its `__all__` before its help was by subject.
NAMES = re.findall(
    r"\w+",
    """
    DELETE AggregatingStateDescriptor Change CountWindows DeletedKeys EditReport EditedOperator
    EditedState EntryDifference EventTimeSessionWindows FileSplit GlobalWindow KafkaOffsets
    KafkaSplit KeySize ListStateDescriptor MapStateDescriptor Operator OperatorComparison
    OperatorEditor OperatorReport OperatorStateElement OperatorStateEntry OperatorWriter Pojo
    ProcessingTimeSessionWindows ReducingStateDescriptor Row Savepoint
    SavepointComparison SavepointEditor SavepointWriter Serializer SlidingEventTimeWindows
    SlidingProcessingTimeWindows SourceSplits SpecialOffset
    SplitDifference SqlOperatorDescription SqlStateDescription StateComparison StateDescriptor
    StateEntry Subtask TimeWindow TimerServiceDescriptor TimestampData TtlValue
    TumblingEventTimeWindows TumblingProcessingTimeWindows UnknownSplit UnsearchedPlace
    ValueStateDescriptor WindowOperatorWriter change_max_parallelism convert_to_canonical
    describe_sql_state html_report operator_reports read_savepoint relocate
    """,
)


def help_of(module: ModuleType) -> str:
    return pydoc.plain(pydoc.render_doc(module))


def test_help_leads_to_every_subject() -> None:
    """Each has a line of its own in the list: its name, then what it is for."""
    listed = re.search(r"^( {4}[a-z]+  +\S.*\n)+", savepoint.__doc__ or "", re.MULTILINE)
    assert listed is not None
    names = [line.split()[0] for line in listed[0].splitlines()]
    assert sorted(names) == [module.__name__.rpartition(".")[2] for module in SUBJECTS]


def test_help_has_what_a_newcomer_needs() -> None:
    text = help_of(savepoint)
    for name in ("read_savepoint", "class Savepoint", "class Operator", "SavepointWriter("):
        assert name in text
    for name in ("from_existing_savepoint", ".differences(", "change_max_parallelism(", "get("):
        assert name in text
    assert "opened, read or copied" in re.sub(r"\s+\|?\s*", " ", text)  # the places it may lead to


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_in_one_subject(name: str) -> None:
    """And `keygroups.savepoint` has it, the same, or is itself its only place."""
    homes = [module for module in SUBJECTS if name in module.__all__]
    if name == "Serializer":  # it serializes keys and values, in state and out of it
        homes.append(state_keys)
    assert len(homes) <= 1
    assert all(getattr(savepoint, name) is getattr(home, name) for home in homes)
    assert name in savepoint.__all__


def test_all_that_can_be_imported_is_listed() -> None:
    """`import *` has what `dir()` shows, which is all but the subjects and what is private."""
    subjects = {module.__name__.rpartition(".")[2] for module in SUBJECTS}
    names = {name for name in vars(savepoint) if not name.startswith("_")} - subjects
    assert sorted(names) == dir(savepoint) == sorted(savepoint.__all__)
    everything: dict[str, object] = {}
    exec("from keygroups.savepoint import *", everything)
    assert names <= everything.keys()


@pytest.mark.parametrize("module", [savepoint, savepoint.reports])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("RewriteReport", "EditReport"),
        ("RewrittenOperator", "EditedOperator"),
        ("RewrittenState", "WrittenState"),
    ],
)
def test_names_of_before_warn(module: ModuleType, old: str, new: str) -> None:
    """They lead to what has another name now, and are in no list."""
    with pytest.warns(
        DeprecationWarning, match=rf"{module.__name__}\.{old} is {new} now"
    ) as warned:
        assert getattr(module, old) is getattr(module, new)
    assert [warning.filename for warning in warned] == [__file__]  # The caller is named.
    assert old not in dir(module)
    with pytest.raises(AttributeError, match=f"module '{module.__name__}' has no attribute 'no'"):
        module.no  # noqa: B018  # It raises.


def test_no_name_is_told_twice() -> None:
    reports = Counter(name for module in SUBJECTS for name in module.__all__)
    assert [name for name, times in reports.items() if times > 1] == []
