"""Savepoints that a stranger made up: nothing but their own files is opened, little is done.

Whatever they say, there is an answer or a KeyGroupsError of one line. What Python tells its audit
hooks shows which files are opened, which hosts are called and what is run; the calls of
functions, the processor time and the memory of each are bounded by a multiple of its bytes.
"""

from __future__ import annotations

import json
import re
import resource
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path
from random import Random

import pytest
from support.bytes import flink_connectors
from support.bytes.connector_bytes import CASES as SPLITS
from support.bytes.connector_bytes import COMMITTABLES, ENUMERATORS
from support.bytes.extreme_savepoints import EXTREMES
from support.bytes.hostile_savepoints import watched
from support.bytes.random_savepoints import CLASSES, Files, Maker
from support.bytes.savepoint_calls import CALLS, MORE_CALLS, Call, removed
from support.bytes.source_bytes import coordinator, versioned
from support.growth import count_bytes
from support.inside.savepoints import ReadTask

from keygroups.cli import main
from keygroups.errors import InvalidValueError, KeyGroupsError
from keygroups.savepoint import read_savepoint, sinks, sources

pytest.importorskip("cramjam", reason="some are compressed: the extra savepoint")
pytest.importorskip("fsspec", reason="some name URLs: the extra savepoint")

READERS, COMMITTER = "SourceReaderState", "streaming_committer_raw_states"
CASES = 40
ASKED = 2  # calls on an operator, which take turns; when more: slow
MEASURED = 75  # savepoints; the calls and the memory of one of them are measured, which is slow
STEPS, MORE_STEPS = 20_000, 60  # functions called, for any savepoint and for each of its bytes
MEMORY, MORE_MEMORY = 5 << 20, 100  # bytes, likewise: JSON of 32,768 key groups takes 4.7 MB
SECONDS = 5.0  # processor time; these savepoints of some kB take thousandths
GROWTH, MORE_GROWTH = 50 << 20, 4  # bytes of this process while all are read, and by one's bytes


def is_own(folder: Path, event: str, shown: str) -> bool:
    """Tell whether an event is that a file of a savepoint is opened, or one that is written."""
    path = Path(shown)
    return event == "open" and (path.parent == folder or path.is_relative_to(written_to(folder)))


def written_to(folder: Path) -> Path:
    """Return the folder of what the calls on a savepoint write."""
    return folder.with_name("written")


def read(
    folder: Path,
    counts: Counter[str],
    turn: int = 0,
    asked: int = len(CALLS),
    made: dict[str, Call] = CALLS,
) -> None:
    """Read a savepoint, make the calls whose turn it is, and count what came of it."""
    new = written_to(folder)
    new.mkdir(exist_ok=True)
    try:
        savepoint = read_savepoint(folder, serializers=CLASSES)
        str(savepoint)
    except KeyGroupsError as error:
        assert_says(error, counts)
        return
    for operator in savepoint.operators:
        for number in range(turn, turn + asked):
            try:
                list(made.values())[number % len(made)](savepoint, operator, new / str(number))
            except KeyGroupsError as error:
                assert_says(error, counts)
            else:
                counts["answers"] += 1
    removed(new)


def assert_says(error: KeyGroupsError, counts: Counter[str]) -> None:
    message = str(error)
    assert message
    assert len(message) <= 3_000
    assert message.isprintable()
    counts[type(error).__name__] += 1


def write(folder: Path, files: Files) -> int:
    """Make the folder that of these files, and return how many bytes they are."""
    for path in folder.iterdir():
        path.unlink()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return sum(map(len, files.values()))


def steps(folder: Path, counts: Counter[str]) -> int:
    """Make all calls, and return how many functions they called."""
    used = 0

    def count(*_: object) -> None:
        nonlocal used
        used += 1

    sys.setprofile(count)
    try:
        read(folder, counts)
    finally:
        sys.setprofile(None)
    return used


def peak() -> int:
    """Return the most bytes that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


@pytest.mark.parametrize(
    ("seed", "cases", "asked"),
    [
        (1, CASES, ASKED),
        pytest.param(2, 125 * CASES, 8, marks=pytest.mark.slow),
    ],
)
def test_nothing_but_its_own_files(seed: int, cases: int, asked: int, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    folder = tmp_path / "savepoint"
    folder.mkdir()
    maker = Maker(seed, [str(secret), "/etc/hostname", f"{folder}-2/x", str(folder)])
    counts: Counter[str] = Counter()
    for _ in range(20):  # so that what is imported and made once is there
        write(folder, maker.files())
        read(folder, counts)
    counts.clear()
    grown = 0
    for number in range(cases):
        size = write(folder, maker.files())
        start, before = time.process_time(), peak()
        with watched() as seen:
            read(folder, counts, number, asked)
        assert not [event for event in seen if not is_own(folder, *event)], number
        assert time.process_time() - start < SECONDS, number
        grown += max(0, peak() - before - MORE_GROWTH * size)  # a few are of a hundred MB
        if number % MEASURED == 0:
            assert steps(folder, counts) < STEPS + MORE_STEPS * size, number
        if number % MEASURED == 1:
            assert count_bytes(lambda: read(folder, counts)) < MEMORY + MORE_MEMORY * size, number
    print(f"{cases} savepoints: {dict(counts)}, {grown:,} bytes more")
    assert grown < GROWTH
    assert counts["answers"] > cases / 2
    assert counts["SavepointError"] > cases / 2


OF_CONNECTORS = [
    *(
        flink_connectors.Held(name, version, READERS, versioned(version, data))
        for name, version, data, *_ in SPLITS
    ),
    *(
        flink_connectors.Held(name, version, READERS, coordinator=coordinator(version, data))
        for name, version, data, *_ in ENUMERATORS
    ),
    *(
        flink_connectors.Held(name, version, COMMITTER, versioned(version, data))
        for name, version, data, *_ in COMMITTABLES
    ),
    *(
        held
        for held in (
            *flink_connectors.SPLITS,
            *flink_connectors.ENUMERATORS,
            *flink_connectors.SINKS,
        )
        for _ in range(4)
    ),
]


@pytest.mark.long
def test_connectors(tmp_path: Path) -> None:
    """Of each layout of a split, an enumerator and a committable that is known, by its cases."""
    chosen, counts = Random(44), Counter[str]()
    names = ("source_splits", "sink_state", "reports", "html_report", "compare")
    calls = {name: CALLS[name] for name in names}
    folder = tmp_path / "savepoint"

    def damaged(data: bytes) -> bytes:
        changed = bytearray(data)
        for _ in range(chosen.randrange(3) if data else 0):
            changed[chosen.randrange(len(data))] = chosen.choice((0, 1, 0x7F, 0x80, 0xFF))
        return bytes(changed)

    for held in OF_CONNECTORS:
        size = len(held.element) + len(held.coordinator or b"")
        state = held.coordinator and damaged(held.coordinator)
        held._replace(element=damaged(held.element), coordinator=state).written(folder)
        start = time.process_time()
        with watched() as seen:
            read(folder, counts, 0, len(calls), calls)
        assert not [event for event in seen if not is_own(folder, *event)]
        assert time.process_time() - start < SECONDS
        used = count_bytes(partial(read, folder, counts, 0, len(calls), calls))
        assert used < MEMORY + MORE_MEMORY * size, (held.name, held.version, size)
    print(dict(counts))
    assert min(counts["answers"], counts["InvalidValueError"]) > 100


def test_each_known_layout_is_among_those_of_connectors(tmp_path: Path) -> None:
    """Each version in the table of the help of sources, and each class in that of sinks."""
    splits = [(name, version) for name, version, *_ in SPLITS]
    splits += [(held.name, held.version or 0) for held in flink_connectors.SPLITS]
    enumerators = [(name, version) for name, version, *_ in ENUMERATORS]
    enumerators += [(held.name, held.version or 0) for held in flink_connectors.ENUMERATORS]
    rows = re.findall(
        r"^    (\w[\w ]*?)  +(?:(\w+Serializer) +([\d to]+?)|a union list of pairs)  +"
        r"([\w ]+?)  +\w",
        sources.__doc__ or "",
        re.MULTILINE,
    )
    assert len(rows) == (sources.__doc__ or "").count("Serializer ") + 2
    for name, serializer, versions, of_enumerator in rows:
        assert {it for it in splits if it[0] == name} == {
            (name, version) for version in (span(versions) if serializer else [0])
        }
        known = [] if of_enumerator == "none" else span(of_enumerator)
        assert {it for it in enumerators if it[0] == name} == {(name, it) for it in known}
    assert {name for name, *_ in rows} == {name for name, _ in splits}
    read = set()
    for held in flink_connectors.SINKS:
        state = held.written(tmp_path).sink_state()
        read |= {type(it.committable).__name__ for it in state.committables}
        read |= {type(it).__name__ for it in state.writers}
    parts = {"SinkState", "Committable", "PartFile", "UnknownCommittable", "UnknownWriterState"}
    assert read == {*sinks.__all__} - parts == {held.name for held in flink_connectors.SINKS}


def span(text: str) -> list[int]:
    """Return the versions that a cell of the table has, as 0 or 0 to 3."""
    first, last = (int(number) for number in (text.split(" to ") * 2)[:2])
    return [*range(first, last + 1)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("calls", "asked"),
    [(CALLS, 1), pytest.param(MORE_CALLS, len(MORE_CALLS), marks=pytest.mark.slow)],
)
def test_extremes(calls: dict[str, Call], asked: int, tmp_path: Path) -> None:
    """The calls take turns, so that each is made on a twelfth of the savepoints, or on all."""
    counts: Counter[str] = Counter()
    folder = tmp_path / "savepoint"
    folder.mkdir()
    for number, (name, make) in enumerate(EXTREMES.items()):
        size = write(folder, {"_metadata": make()})
        start = time.process_time()
        read(folder, counts, asked * number, asked, calls)
        assert time.process_time() - start < SECONDS, (name, size)
    print(f"{len(EXTREMES)} savepoints: {dict(counts)}")
    assert counts["answers"] > asked * len(EXTREMES) / 2


HALF = "half of a surrogate pair"


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("state: half of a pair", HALF),
        ("state: other half", HALF),
        ("state: NUL", "a NUL"),
        ("field of a POJO: half of a pair", HALF),
        ("field of a POJO: other half", HALF),
        ("field of a POJO: NUL", "a NUL"),
        ("fields but for NUL", "a NUL"),
    ],
)
def test_names_that_no_column_has(
    name: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are refused before anything is read; the entries are there for who reads them."""
    write(tmp_path, {"_metadata": EXTREMES[name]()})
    (operator,) = read_savepoint(tmp_path).operators
    (entry,) = operator.entries()
    (state,) = operator.states
    assert entry.state == state.name
    monkeypatch.setattr(ReadTask, "columns", None)
    for read in (
        operator.to_arrow_batch_reader,
        operator.to_arrow,
        partial(operator.to_arrow, by_key=True),
        operator.to_pandas,
        operator.to_polars,
    ):
        with pytest.raises(InvalidValueError, match=rf"{problem}, which no column has: read it"):
            read()


def test_an_integer_of_5001_digits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is shown in hexadecimal, and as text in JSON; two of them are two keys."""
    folder = tmp_path / "savepoint"
    folder.mkdir()
    write(folder, {"_metadata": EXTREMES["key: BIG_INT of 5,001 digits"]()})
    assert main(["savepoint", str(folder)]) == 0
    assert f"  {hex(10**5_000)[:40]}" in capsys.readouterr().out
    assert main(["savepoint", str(folder), "--json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)["reports"]
    assert [key["key"] for key in report["heaviest_keys"]] == [hex(10**5_000)]
    for case, shown in (
        ("value", hex(10**5_000)),
        ("element", [hex(10**5_000)]),
        ("user key", [[hex(10**5_000), 1]]),
        ("field of a tuple", [hex(10**5_000), hex(10**5_000)]),
    ):
        write(folder, {"_metadata": EXTREMES[f"{case}: BIG_INT of 5,001 digits"]()})
        assert main(["savepoint", str(folder), "--key", "a", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["states"] == {"s": shown}
