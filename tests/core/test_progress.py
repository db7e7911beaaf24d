"""What is told of progress, by a clock that stands still unless it is moved."""

from __future__ import annotations

import copy
import os
import pickle
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest
from support.bytes.real_savepoints import point
from support.bytes.sample_savepoints import NewPath, savepoint_folder, written_folder
from support.inside.answers import ProgressLine, default_progress

from keygroups import assign_to_key_group, keys_for_subtasks
from keygroups.errors import InvalidTypeError, InvalidValueError, SavepointError
from keygroups.progress import Progress, ProgressCallback
from keygroups.savepoint import (
    ListStateDescriptor,
    Savepoint,
    SavepointWriter,
    ValueStateDescriptor,
    change_max_parallelism,
    convert_to_canonical,
    operator_reports,
    read_savepoint,
)
from keygroups.savepoint.sql import OperatorId
from keygroups.types import BOOLEAN, INT, STRING

BY_INT = OperatorId.of_uid("by-int")  # Flink 1 says no uid.


class Clock:
    """Seconds that go by each time that it is looked at."""

    def __init__(self, step: float) -> None:
        self.step = step
        self.now = 1_000.0
        self.looks = 0

    def __call__(self) -> float:
        self.looks += 1
        self.now += self.step
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Return the clock of all progress, of which each look takes a second."""
    found = Clock(1)
    monkeypatch.setattr("keygroups.progress.monotonic", found)
    monkeypatch.setattr("keygroups._show.progress.monotonic", found)
    return found


class Told(list[Progress]):
    """Remembers what it is told."""

    __call__ = list.append

    def by_work(self) -> dict[str, list[Progress]]:
        found: dict[str, list[Progress]] = {}
        for progress in self:
            found.setdefault(progress.work, []).append(progress)
        return found

    def check(self) -> None:
        """Check that each piece of work goes on to its end, which is told once."""
        for reports in self.by_work().values():
            assert len({(progress.total, progress.unit) for progress in reports}) == 1
            done = [progress.done for progress in reports]
            assert done == sorted(done)
            assert [count for count in done if count >= reports[0].total] == [reports[0].total]
            assert done[0] >= 0


def write(path: str | os.PathLike[str], progress: ProgressCallback | None = None) -> None:
    """Write 60 entries of 20,000 bytes in three files."""
    with SavepointWriter(path, progress=progress) as writer:
        states = [ValueStateDescriptor("text", STRING)]
        by_int = writer.add_operator("by-int", INT, states, 128, 3)
        for key in sorted(range(60), key=by_int.key_group):
            by_int.write("text", key, "x" * 20_000)


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the folder of what `write` writes."""
    path = tmp_path_factory.mktemp("progress") / "old"
    write(path)
    return str(path)


def bytes_of(folder: str) -> int:
    """Return the bytes of keyed state that a canonical savepoint has in files."""
    return sum(path.stat().st_size for path in Path(folder).iterdir() if path.name != "_metadata")


# --- what is told -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "rocksinc-checkpoint",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("heap-canonical", "heap-native", "rocksinc-native")
        ),
        "changelog-checkpoint",
    ],
)
def test_reading_real_state(name: str, clock: Clock) -> None:
    real, reports = point(f"2.3.0-{name}"), Told()
    savepoint = read_savepoint(real.path, real.moved, progress=reports)
    operator = savepoint.operator("by-string")
    plain = read_savepoint(real.path, real.moved).operator("by-string")
    assert [*operator.entries()] == [*plain.entries()]
    assert operator.key_sizes() == plain.key_sizes()
    reports.check()
    read, weighed = reports.by_work().values()
    assert (read[0].work, weighed[0].work) == ("read by-string", "weigh the keys of by-string")
    assert {progress.unit for progress in reports} == {"bytes"}
    assert len(read) > 1
    reports.clear()
    assert operator.key_group_bytes() == plain.key_group_bytes()
    # Where `_metadata` tells it there is nothing to wait for.
    assert bool(reports) == ("heap" not in name)
    reports.check()


def test_total_is_the_bytes_that_there_are(old: str, clock: Clock) -> None:
    """Those of the key groups, and of a header in each file that is read."""
    reports = Told()
    operator = read_savepoint(old, progress=reports).operator("by-int")
    list(operator.entries())
    assert reports[-1].total == bytes_of(old)
    load = operator.key_group_bytes()
    headers = bytes_of(old) - sum(load.weights)
    reports.clear()
    list(operator.entries(key_groups=[5, 6]))
    assert reports[-1].total == load.weights[5] + load.weights[6] + headers // 3


def test_operator_state(clock: Clock) -> None:
    reports = Told()
    operator = read_savepoint(savepoint_folder(50), progress=reports).operator("source")
    states = [*operator.operator_state()]
    assert sum(len(state.elements) for state in states) == 50
    reports.check()
    assert reports[-1].work == "read the operator state of source"


def test_nothing_to_do_is_not_told(clock: Clock) -> None:
    reports = Told()
    operator = read_savepoint(savepoint_folder(1, 2), progress=reports).operator("0")
    assert [*operator.entries()] == []
    assert [*operator.operator_state()] == []
    assert operator.key_sizes() == []
    assert reports == []


def test_writing(clock: Clock, tmp_path: Path) -> None:
    reports = Told()
    write(tmp_path / "new", reports)
    reports.check()
    assert reports[-1] == Progress("write by-int", 128, 128, "key groups")
    assert len(reports) > 30  # key groups that Flink's hash sends one of the 60 keys to
    reports.clear()
    with SavepointWriter(tmp_path / "closed", progress=reports) as writer:
        writer.add_operator("a", INT, [ValueStateDescriptor("text", STRING)], 4, 2).close()
    assert reports == [("write a", 4, 4, "key groups")]


def test_writing_operator_state_alone_is_not_told(clock: Clock) -> None:
    reports = Told()
    with SavepointWriter(NewPath(), progress=reports) as writer:
        lists = [ListStateDescriptor("list", INT)]
        operator = writer.add_operator("a", None, [], 4, 2, list_states=lists)
        operator.write_operator_state("list", [1, 2, 3])
    assert reports == []


def test_writing_anew(old: str, clock: Clock) -> None:
    size, reports = bytes_of(old), Told()
    path = NewPath().__fspath__()
    change_max_parallelism(old, 256, path, progress=reports)
    reports.check()
    # What gets other key groups is read, and then sorted.
    assert reports[-1] == (f"write {BY_INT}", 2 * size, 2 * size, "bytes")
    assert len(reports) > 30
    reports.clear()
    convert_to_canonical(read_savepoint(old, progress=reports), path + "-again", parallelism=1)
    reports.check()
    assert reports[-1].total == size


def test_sorting_is_counted_as_it_goes(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keygroups.savepoint._state.writing.spill._COUNTED", 10)
    reports, path = Told(), NewPath()
    change_max_parallelism(written_folder(100), 256, path, progress=reports)
    reports.check()
    assert (
        len({progress.done for progress in reports if progress.done > reports[0].total // 2}) > 8
    )


def test_editing(old: str, clock: Clock) -> None:
    reports = Told()
    savepoint = read_savepoint(old, progress=reports)
    with SavepointWriter.from_existing_savepoint(savepoint, NewPath()) as editor:
        editor.operator("by-int").map_keys(lambda key: key + 1)
        editor.add_operator_from(old, "by-int", "copied")
        editor.add_operator("new", INT, [ValueStateDescriptor("text", STRING)], 4, 2)
    reports.check()
    edited, merged, added, copied = (part[0].work for part in reports.by_work().values())
    assert (edited, added, merged) == ("write new", "merge by-int", "edit by-int")
    assert copied.startswith("copy to ")
    assert reports[-1].total == bytes_of(old)


def test_comparing(old: str, clock: Clock) -> None:
    """What is read of both is one piece of work."""
    reports = Told()
    for here, there in ((reports, None), (None, reports)):
        savepoint = read_savepoint(old, progress=here)
        report = savepoint.compare(read_savepoint(old, progress=there), ["by-int"])
        assert not report.has_differences
        reports.check()
        assert reports[-1] == ("compare by-int", 2 * bytes_of(old), 2 * bytes_of(old), "bytes")
        assert len(reports) > 30
        reports.clear()
    savepoint = read_savepoint(old, progress=reports)
    assert [*savepoint.differences(read_savepoint(old), ["by-int"])] == []
    reports.check()


def test_looking_up(old: str, clock: Clock) -> None:
    reports = Told()
    operator = read_savepoint(old, progress=reports).operator("by-int")
    assert len(operator.get(5, "text")) == 20_000
    reports.check()
    key_group = assign_to_key_group(5, 128)
    assert reports[-1].work == "look up a key of by-int"
    assert 20_000 < reports[-1].total < operator.key_group_bytes().weights[key_group] + 1_000


def test_tables(old: str, clock: Clock) -> None:
    pytest.importorskip("pyarrow")
    reports = Told()
    table = read_savepoint(old, progress=reports).operator("by-int").to_arrow("text")
    assert table.num_rows == 60
    reports.check()
    assert reports[-1] == ("read by-int", bytes_of(old), bytes_of(old), "bytes")


def test_reports(old: str, clock: Clock) -> None:
    reports = Told()
    [report] = operator_reports(read_savepoint(old, progress=reports), ["by-int"])
    assert len(report.heaviest_keys) == 5
    assert {progress.work for progress in reports} == {"weigh the keys of by-int"}


def test_searching_keys(clock: Clock) -> None:
    reports = Told()
    keys = keys_for_subtasks(128, 5, n=3, progress=reports)
    assert keys == keys_for_subtasks(128, 5, n=3)
    reports.check()
    assert [*reports] == [("find keys", done, 15, "keys") for done in range(1, 16)]


# --- how often --------------------------------------------------------------------------


def test_at_most_ten_times_a_second(old: str, clock: Clock) -> None:
    clock.step = 0.03
    times: list[float] = []
    operator = read_savepoint(old, progress=lambda _: times.append(clock.now)).operator("by-int")
    begin = clock.now
    list(operator.entries())
    apart = [late - early for early, late in zip([begin, *times], times)]
    assert len(apart) > 5
    assert min(apart[:-1]) >= 0.1


def test_a_moment_of_work_is_told_at_its_end(old: str, clock: Clock) -> None:
    clock.step, reports = 0, Told()
    operator = read_savepoint(old, progress=reports).operator("by-int")
    list(operator.entries())
    assert [progress.done == progress.total for progress in reports] == [True]


def test_nobody_to_tell(old: str, clock: Clock) -> None:
    for progress in (None, False):
        list(read_savepoint(old, progress=progress).operator("by-int").entries())
    write(NewPath())
    keys_for_subtasks(128, 5)
    assert clock.looks == 0


def test_blocks_are_counted_and_not_entries(clock: Clock) -> None:
    """All are in one key group."""

    def looks(entries: int) -> int:
        clock.looks = 0
        operator = read_savepoint(savepoint_folder(entries), progress=Told()).operator("by-int")
        assert len(list(operator.entries())) == entries
        return clock.looks

    assert looks(1_000) <= looks(10) + 1  # so few are all there at once


# --- errors -----------------------------------------------------------------------------


def test_no_end_is_told_after_an_error(old: str, clock: Clock, tmp_path: Path) -> None:
    reports = Told()
    damaged = tmp_path / "damaged"
    shutil.copytree(old, damaged)
    last = max(path for path in damaged.iterdir() if path.name != "_metadata")
    data = last.read_bytes()
    last.write_bytes(data[:-2] + b"\0\0")  # the place of a mark
    savepoint = read_savepoint(damaged, progress=reports)
    with pytest.raises(SavepointError):
        list(savepoint.operator("by-int").entries())
    with pytest.raises(SavepointError):
        change_max_parallelism(savepoint, 256, tmp_path / "new")
    with pytest.raises(InvalidValueError, match="keys of type BOOLEAN were tried"):
        keys_for_subtasks(128, 100, BOOLEAN, progress=reports)
    entries = read_savepoint(old, progress=reports).operator("by-int").entries()
    for _ in range(30):
        next(entries)
    del entries
    assert {progress.work for progress in reports} > {"read by-int", "find keys"}
    assert not [progress for progress in reports if progress.done == progress.total]


def rescaled(savepoint: Savepoint, path: Path) -> None:
    change_max_parallelism(savepoint, 256, path)


def converted(savepoint: Savepoint, path: Path) -> None:
    convert_to_canonical(savepoint, path, parallelism=1)


def mapped(savepoint: Savepoint, path: Path) -> None:
    with SavepointWriter.from_existing_savepoint(savepoint, path) as editor:
        editor.operator("by-int").map_keys(lambda key: key + 1)


def copied(savepoint: Savepoint, path: Path) -> None:
    with SavepointWriter.from_existing_savepoint(savepoint, path) as editor:
        editor.change_operator_identifier("by-int", "by-number")


WORKS: list[tuple[str, Callable[[Savepoint, Path], object]]] = [
    ("read by-int", lambda savepoint, _: list(savepoint.operator("by-int").entries())),
    ("weigh the keys", lambda savepoint, _: savepoint.operator("by-int").key_sizes()),
    (f"write {BY_INT}", rescaled),
    (f"write {BY_INT}", converted),
    ("edit by-int", mapped),
    ("merge by-int", mapped),
    ("copy to", copied),
    ("write by-int", lambda savepoint, path: write(path, savepoint._progress)),
    ("compare by-int", lambda savepoint, _: savepoint.compare(savepoint, ["by-int"])),
    ("look up", lambda savepoint, _: savepoint.operator("by-int").get(5)),
    ("find keys", lambda savepoint, _: keys_for_subtasks(128, 50, progress=savepoint._progress)),
]


ERRORS = (IndexError, ValueError, TypeError, InvalidValueError, SavepointError, KeyboardInterrupt)


def test_what_it_raises_goes_through_arrow(old: str, clock: Clock) -> None:
    pytest.importorskip("pyarrow")
    error = ValueError("full")

    def raises(progress: Progress) -> None:
        raise error

    with pytest.raises(ValueError, match="full") as raised:
        read_savepoint(old, progress=raises).operator("by-int").to_arrow("text")
    assert raised.value is error


@pytest.mark.parametrize("at_the_end", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "cls", [OSError, *(pytest.param(cls, marks=pytest.mark.slow) for cls in ERRORS)]
)
@pytest.mark.parametrize(("work", "does"), WORKS)
def test_what_the_function_raises_goes_through(
    work: str,
    does: Callable[[Savepoint, Path], object],
    cls: type[BaseException],
    at_the_end: bool,
    old: str,
    clock: Clock,
    tmp_path: Path,
) -> None:
    """As it was raised, though each of these is otherwise taken for something else on the way."""
    error = cls("full")

    def raises(progress: Progress) -> None:
        is_end = progress.done == progress.total
        if progress.work.startswith(work) and is_end is at_the_end:
            raise error from EOFError("why")

    savepoint = read_savepoint(old, progress=raises)
    with pytest.raises(cls) as raised:
        does(savepoint, tmp_path / "new")
    assert raised.value is error
    assert isinstance(error.__cause__, EOFError)
    rest = [path.name for path in tmp_path.iterdir()]
    assert rest == []


def test_a_broken_writer_stays_broken(clock: Clock) -> None:
    def raises(progress: Progress) -> None:
        raise EOFError

    def catch(writer: SavepointWriter) -> None:
        states = [ValueStateDescriptor("text", STRING)]
        operator = writer.add_operator("by-int", INT, states, 128, 3)
        with pytest.raises(EOFError):
            operator.write("text", 1, "a")

    with (
        pytest.raises(SavepointError, match="cannot be written after an error"),
        SavepointWriter(NewPath(), progress=raises) as writer,
    ):
        catch(writer)


@pytest.mark.parametrize("progress", [1, "bar", [print], object()])
def test_what_is_no_function(progress: Any, old: str) -> None:
    for call in (
        lambda: read_savepoint(old, progress=progress),
        lambda: SavepointWriter(NewPath(), progress=progress),
        lambda: change_max_parallelism(old, 256, NewPath(), progress=progress),
        lambda: keys_for_subtasks(128, 5, progress=progress),
    ):
        with pytest.raises(InvalidTypeError, match="progress must be a function of a Progress, T"):
            call()
    with pytest.raises(InvalidValueError, match="progress must be left out for a Savepoint"):
        convert_to_canonical(read_savepoint(old), NewPath(), progress=print)


def test_it_is_not_pickled(old: str, clock: Clock) -> None:
    reports = Told()
    savepoint = read_savepoint(old, progress=lambda progress: reports.append(progress))
    operator = savepoint.operator("by-int")
    for another in (pickle.loads(pickle.dumps(savepoint)), copy.deepcopy(savepoint)):
        assert another.operator("by-int") == operator
        list(another.operator("by-int").entries())
    list(pickle.loads(pickle.dumps(operator)).entries())
    assert pickle.loads(pickle.dumps(operator.tasks())) == operator.tasks()
    assert reports == []
    list(operator.entries())
    assert reports


# --- a line, or a bar -------------------------------------------------------------------


class FakeBar:
    """As tqdm's, which is not there for these tests."""

    made: ClassVar[list[FakeBar]] = []

    def __init__(self, **options: Any) -> None:
        self.given = options
        self.n = options["initial"]
        self.is_closed = False
        self.made.append(self)

    def update(self, count: int) -> None:
        self.n += count

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[FakeBar]]:
    """Have tqdm installed, and return the bars that are made."""
    auto = ModuleType("tqdm.auto")
    auto.tqdm = FakeBar  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tqdm", ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", auto)
    yield FakeBar.made
    FakeBar.made.clear()


def test_a_bar_where_tqdm_is(bars: list[FakeBar], old: str, clock: Clock) -> None:
    read_savepoint(old, progress=True).operator("by-int").key_sizes()
    [bar] = bars
    assert bar.given["desc"] == "weigh the keys of by-int"
    assert (bar.given["unit"], bar.given["unit_scale"]) == ("B", True)
    assert bar.given["initial"] > 0  # it comes late
    assert (bar.given["leave"], bar.given["disable"]) == (False, None)  # tqdm's own defaults
    assert (bar.n, bar.is_closed) == (bar.given["total"], True)
    keys_for_subtasks(128, 50, progress=True)
    assert (bars[1].given["unit"], bars[1].n, bars[1].is_closed) == (" keys", 50, True)


def test_a_bar_goes_with_its_work(bars: list[FakeBar], clock: Clock) -> None:
    """None is made for what is done when it is first told of after a while."""
    clock.step, show = 0, default_progress()
    show(Progress("a", 0, 10, "keys"))
    clock.now += 5
    show(Progress("a", 10, 10, "keys"))
    assert bars == []
    for begun in (0, 1):
        show(Progress("b\n", 0, 10, "keys"))
        show(Progress("b\n", 5, 10, "keys"))
        bar = bars[begun]
        assert (bar.given["desc"], bar.given["total"]) == ("b\\n", 10)
        assert (bar.given["initial"], bar.n, bar.is_closed) == (0, 5, False)
        show(Progress("b\n", 10, 10, "keys"))
        assert (bar.n, bar.is_closed) == (10, True)
    assert len(bars) == 2


def test_no_bar_for_what_is_done_soon(bars: list[FakeBar], old: str, clock: Clock) -> None:
    clock.step = 0.01
    read_savepoint(old, progress=True).operator("by-int").key_sizes()
    assert bars == []


def test_a_line_without_tqdm(old: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    assert isinstance(read_savepoint(old, progress=True)._progress, ProgressLine)
