"""Reports that are made by hand, as whole texts and as the tables of notebooks."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Any

import pytest
from support.inside.answers import date_text

from keygroups import KeyGroupLoad, KeyGroupRange
from keygroups.job import SubtaskSkew, Vertex, VertexSkew
from keygroups.savepoint import (
    JobFile,
    JobFiles,
    KeyGroupGrowth,
    KeySize,
    MapStateDescriptor,
    OperatorStateSummary,
    OperatorSummary,
    SavepointGrowth,
    SavepointSummary,
    SavepointWriter,
    StateGrowth,
    StateSummary,
    TimeCounts,
    TimerServiceDescriptor,
    ValueStateDescriptor,
    read_savepoint,
)
from keygroups.types import LONG, STRING

AGES = ("within an hour", "within a day", "within 7 days", "within 30 days", "within a year")
WAITS = ("due", "within an hour", "within a day", "within 7 days", "later", "never")
SMALL = StateSummary("count", "VALUE", 1000, None, 1000, 2500)
LARGE = StateSummary(
    *("cities", "MAP", 3000, 3000, 1500, 7500),
    heaviest_keys=(KeySize("ann", 7, 0, 2000, 4500), KeySize(1 << 70, 9, 1, 1, 50)),
    last_access=TimeCounts(0, 1500, (*zip(AGES, (1, 2, 0, 0, 0)), ("older", 1_234_567))),
)
TIMERS = StateSummary(
    *("_timer_state/event_user-timers", "PRIORITY_QUEUE", 10, None, 10, 0),
    timers=TimeCounts(None, None, tuple(zip(WAITS, (0, 0, 0, 0, 0, 10)))),
)
LOST = StateSummary("gone", "VALUE", None, None, None, None, unread="of a class")
OFFSETS = OperatorStateSummary("offsets", "SPLIT_DISTRIBUTE", 4, 1200, 2)
BY_USER = OperatorSummary(
    *("by-user", "0" * 32, 2, 4, 123_456, (SMALL, LARGE, TIMERS), (OFFSETS,)),
    *(KeyGroupLoad(4, (9_999, 1, 0, 0)), None, None, 5000, 0, None),
)
SOURCE = OperatorSummary(
    *("source", "1" * 32, 1, 128, 77, (LOST,), (), None, 3, 2, 0, 44, 0),
    ("state gone: of a class",),
)


def alignments(page: str) -> list[str]:
    """Return a text for each table, with an l or an r for each column."""
    tables = page.split("<table>")[1:]
    return ["".join(re.findall(r'"col" style="text-align:(.)', table)) for table in tables]


def named(page: str) -> list[str]:
    """Return the names of the rows of all tables."""
    return re.findall(r'<th scope="row"[^>]*>(.*?)</th>', page)


def cells(page: str) -> list[str]:
    """Return the texts in a page that are not empty."""
    return [*filter(None, re.split(r"<[^>]*>", page.replace("&#x27;", "'")))]


def assert_shows(report: Any, text: str, columns: list[str], names: list[str]) -> None:
    lines = [line.strip() for line in text.strip("\n").split("\n")]
    assert [line.strip() for line in str(report).split("\n")] == lines
    page = report._repr_html_()
    assert alignments(page) == columns
    assert named(page) == names
    words = [word for line in lines for word in re.split(r"  +", line.rstrip(":")) if word]
    shown = cells(page.replace(" <strong>hot</strong>", ""))
    assert shown == words


SUMMARY = """
2 operators, 4 keyed states, 4,010 entries of 10,000 bytes: /s
ages and waits are counted from 1970-01-01 00:00:00Z

Operators, with bytes of files:
  operator  parallelism  max    bytes  key groups  imbalance  in flight  in _metadata  coordinator  splits  committables
  by-user             2    4  123,456           2       2.00      5,000
  source              1  128       77                                              44            0       3             2

What cannot be read:
source: state gone: of a class

Keyed states, the heaviest first:
  operator  state                           kind    entries  elements   keys  bytes  share
  by-user   cities                          MAP       3,000     3,000  1,500  7,500  75.0%
  by-user   count                           VALUE     1,000            1,000  2,500  25.0%
  by-user   _timer_state/event_user-timers  timers       10               10      0   0.0%
  source    gone                            VALUE         ?         ?      ?      ?      ?

The heaviest keys of each state:
  operator  state   key                     key group  subtask  entries  bytes
  by-user   cities  'ann'                           7        0    2,000  4,500
  by-user   cities  1180591620717411303424          9        1        1     50

Last accesses of state with a TTL:
  operator  state                  first                      last  within an hour  within a day  within 7 days  within 30 days  within a year      older
  by-user   cities  1970-01-01 00:00:00Z  1970-01-01 00:00:01.500Z               1             2              0               0              0  1,234,567

Timers, by when they fire:
  operator  state                           first  last  due  within an hour  within a day  within 7 days  later  never
  by-user   _timer_state/event_user-timers                 0               0             0              0      0     10

Operator states:
  operator  state    mode              elements  bytes  subtasks
  by-user   offsets  SPLIT_DISTRIBUTE         4  1,200         2
"""  # noqa: E501  # Tables of a terminal.


def test_a_summary() -> None:
    """The heaviest state is first, and what one operator's load has to do with it is marked."""
    summary = SavepointSummary("/s", 3, 0, (BY_USER, SOURCE))
    names = ["by-user <strong>hot</strong>", "source", "cities", "count", TIMERS.state, "gone"]
    names += ["&#x27;ann&#x27;", str(1 << 70), "cities", TIMERS.state, "offsets"]
    columns = ["lrrrrrrrrrr", "lllrrrrr", "lllrrrr", "llrrrrrrrr", "llrrrrrrrr", "lllrrr"]
    assert_shows(summary, SUMMARY, columns, names)
    assert repr(summary) == f"<SavepointSummary: {SUMMARY.splitlines()[1]}>"
    assert summary.to_dict()["operators"][1] == {
        **{"operator": "source", "operator_id": "1" * 32, "parallelism": 1},
        **{"max_parallelism": 128, "bytes": 77, "key_group_bytes": None, "imbalance": None},
        **{"splits": 3, "committables": 2, "in_flight_bytes": 0, "inline_bytes": 44},
        **{"coordinator_bytes": 0, "operator_states": [], "unread": ["state gone: of a class"]},
        "states": [
            {
                **{"state": "gone", "kind": "VALUE", "entries": None, "elements": None},
                **{"keys": None, "bytes": None, "heaviest_keys": [], "last_access": None},
                **{"timers": None, "unread": "of a class"},
            }
        ],
    }
    data = summary.to_dict()["operators"][0]
    assert data["operator_states"] == [
        {
            **{"state": "offsets", "mode": "SPLIT_DISTRIBUTE", "elements": 4, "bytes": 1200},
            "subtasks": 2,
        }
    ]
    assert data["states"][1]["heaviest_keys"] == [
        {"key": "ann", "key_group": 7, "subtask": 0, "entries": 2000, "bytes": 4500},
        {"key": 1 << 70, "key_group": 9, "subtask": 1, "entries": 1, "bytes": 50},
    ]
    assert data["imbalance"] == BY_USER.imbalance == 2.0
    assert data["key_group_bytes"] == [9_999, 1, 0, 0]
    assert data["states"][1]["last_access"] == {
        "earliest": 0,
        "latest": 1500,
        "counts": {**dict(zip(AGES, (1, 2, 0, 0, 0))), "older": 1_234_567},
    }


GROWTH = """
1: /a
2: /b

Growth of states, the largest first:
1 states have as many bytes, entries and elements
  operator  state   bytes 1  bytes 2  growth  entries  elements
  by-user   cities      100    2,500  +2,400   +2,999         ?
  by-user   gone          0        ?

Key groups that grew most:
  operator  key group  bytes 1  bytes 2  growth
  by-user          77       10    1,010  +1,000
"""


def test_a_growth() -> None:
    states = (
        StateGrowth("by-user", "0" * 32, "cities", "MAP", (100, 2500), (1, 3000), (1, None)),
        StateGrowth("by-user", "0" * 32, "count", "VALUE", (5, 5), (1, 1), (None, None)),
        StateGrowth("by-user", "0" * 32, "gone", "VALUE", (0, None), (0, None), (0, None)),
    )
    growth = SavepointGrowth(("/a", "/b"), states, (KeyGroupGrowth("by-user", 77, (10, 1010)),))
    page = growth._repr_html_()
    assert str(growth).strip() == GROWTH.strip()
    assert alignments(page) == ["llrrrrr", "llrrr"]
    assert named(page) == ["cities", "gone", "77"]
    assert repr(growth) == "<SavepointGrowth: 3 states at 2 points>"
    assert [state["growth"] for state in growth.to_dict()["states"]] == [2400, 0, None]


def left_out(count: int) -> str:
    return f"; {count} others are left out" if count else ""


@pytest.mark.parametrize("more", [0, 3])
def test_tables_of_at_most_200_rows(more: int) -> None:
    """Of more states, keys or times the first are shown, and how many others there are."""
    names = [f"s{number}" for number in range(200 + more)]
    ages = TimeCounts(0, 1500, (("older", 1),))
    waits = TimeCounts(0, 1500, (("never", 1),))
    states = tuple(
        StateSummary(
            *(name, "VALUE", 1, None, 1, 10 + index),
            heaviest_keys=(KeySize(index, 7, 0, 1, 10),),
            last_access=ages,
            timers=waits,
        )
        for index, name in enumerate(names)
    )
    of_operator = tuple(OperatorStateSummary(name, "UNION", 4, 12, 2) for name in names)
    operators = [
        OperatorSummary(
            *(f"o{number}", f"{number:032x}", 2, 4, 5, (), (), None, None, None, 0, 0, None)
        )
        for number in range(199 + more)
    ]
    first = OperatorSummary(
        *("first", "f" * 32, 2, 4, 123_456, states, of_operator, KeyGroupLoad(4, (4, 3, 2, 1))),
        *(None, None, 0, 0, None),
    )
    summary = SavepointSummary("/s", 3, 0, (first, *operators))
    captions = {
        "Operators, with bytes of files": "",
        "Keyed states, the heaviest first": "",
        "The heaviest keys of each state": "",
        "Last accesses of state with a TTL": "",
        "Timers, by when they fire": "",
        "Operator states": "",
    }
    tables = dict(table.split(":\n", 1) for table in str(summary).split("\n\n")[1:])
    assert [*tables] == [caption + left_out(more) for caption in captions]
    assert [len(table.splitlines()) for table in tables.values()] == [1 + 200] * len(captions)


@pytest.mark.parametrize("more", [0, 3])
def test_growth_of_at_most_200_states(more: int) -> None:
    states = tuple(
        StateGrowth("by-user", "0" * 32, f"s{number}", "MAP", (1, 2), (1, 2), (1, 2))
        for number in range(200 + more)
    )
    groups = tuple(KeyGroupGrowth("by-user", number, (1, 2)) for number in range(200 + more))
    _, of_states, of_groups = str(SavepointGrowth(("/a", "/b"), states, groups)).split("\n\n")
    assert of_states.splitlines()[0] == f"Growth of states, the largest first{left_out(more)}:"
    assert of_groups.splitlines()[0] == f"Key groups that grew most{left_out(more)}:"
    assert [len(table.splitlines()) for table in (of_states, of_groups)] == [202, 202]


def test_key_groups_that_grew_most() -> None:
    """The first five of an operator, by what was added and not by what there is."""
    before, after = (10, 100, 5, 5, 5, 5, 5, 7), (50, 101, 5, 10, 11, 12, 13, 6)

    def summary(weights: tuple[int, ...]) -> SavepointSummary:
        load = KeyGroupLoad(8, weights)
        rest = (load, None, None, 0, 0, None)
        operator = OperatorSummary("by", "0" * 32, 1, 8, 5, (SMALL,), (), *rest)
        return SavepointSummary("/s", 3, 0, (operator,))

    growth = SavepointGrowth.of([summary(before), summary(after)])
    assert [(group.key_group, group.bytes) for group in growth.key_groups] == [
        *((0, (10, 50)), (6, (5, 13)), (5, (5, 12)), (4, (5, 11)), (3, (5, 10))),
    ]


FILES = (
    JobFile("/j/a", 1_234_567, dt.datetime(2026, 1, 2, 3, 4, 59), ("chk-8", "chk-9"), False),
    JobFile("/j/b", 10, None, (), False),
    JobFile("/j/taskowned/c", 30, None, (), True),
    JobFile("/j/d", 20, dt.datetime(2026, 11, 12, 13, 14), (), False),
)
OF_A_JOB = """
/j
4 files of 1,234,627 bytes, 2 checkpoints; 2 files of 30 bytes that none of them needs
file                bytes  written (UTC)     used by
/j/taskowned/c         30  -                 tasks
/j/d                   20  2026-11-12 13:14  nobody
/j/b                   10  -                 nobody
/j/a            1,234,567  2026-01-02 03:04  chk-8, chk-9
"""


def test_files_of_a_job() -> None:
    """Those that nobody needs are first, of these the largest."""
    found = JobFiles("/j", ("chk-8", "chk-9"), (), FILES)
    names = ["/j/taskowned/c", "/j/d", "/j/b", "/j/a"]
    assert_shows(found, OF_A_JOB, ["lrll"], names)
    assert str(found) == OF_A_JOB.strip()
    assert repr(found) == f"<JobFiles: {OF_A_JOB.splitlines()[2]}>"
    lost = str(JobFiles("/j", ("chk-8",), (("chk-9", "no file"),), FILES)).splitlines()
    assert lost[1:3] == [
        "4 files of 1,234,627 bytes, 1 checkpoints; 0 files of 0 bytes that none of them needs",
        "not read, so that nothing is known to be unused: chk-9: no file",
    ]


@pytest.mark.parametrize(
    ("millis", "text"),
    [
        (0, "1970-01-01 00:00:00Z"),
        (999, "1970-01-01 00:00:00.999Z"),
        (1_000, "1970-01-01 00:00:01Z"),
        (1_001, "1970-01-01 00:00:01.001Z"),
        (-1, "1969-12-31 23:59:59.999Z"),
        (253_402_300_799_999, "9999-12-31 23:59:59.999Z"),
        (253_402_300_800_000, "253,402,300,800,000"),
    ],
)
def test_dates(millis: int, text: str) -> None:
    assert date_text(millis) == text


def test_tables_of_an_operator(tmp_path: Path) -> None:
    states = [ValueStateDescriptor("cnt", LONG, has_ttl=True), TimerServiceDescriptor()]
    states.append(MapStateDescriptor("m", STRING, LONG))
    with SavepointWriter(tmp_path / "s") as writer:
        by_user = writer.add_operator("by-user", STRING, states, 128, 2, sort=True)
        by_user.write("cnt", "x", 1, last_access=1_700_000_000_000)
        by_user.write("m", "x", 2, "u")
        by_user.write_timer("x", 1500)
    operator = read_savepoint(tmp_path / "s").operator("by-user")
    timers = ["_timer_state/processing_user-timers", "_timer_state/event_user-timers"]
    table = ["Keyed states", "state", "kind", "key", "namespace", "user key", "value", "TTL"]
    table += ["cnt", "VALUE", "STRING", "LONG", "yes"]
    table += [timers[0], "timers", "STRING", timers[1], "timers", "STRING"]
    table += ["m", "MAP", "STRING", "STRING", "LONG"]
    page = operator.states._repr_html_()  # type: ignore[attr-defined]  # For notebooks.
    assert cells(page) == table
    assert alignments(page) == ["lllllll"]
    assert named(page) == ["cnt", *timers, "m"]
    whole = operator._repr_html_()
    size = f"{operator.subtasks[0].bytes:,}"
    assert alignments(whole) == ["lrrrr", "lllllll"]
    assert cells(whole) == [
        *(
            f"uid by-user, id {operator.operator_id}",
            f"parallelism 2, max parallelism 128, {size} bytes",
        ),
        "Subtasks, with the headers in their files; hot: 1.5 times the mean and more",
        *("subtask", "key groups", "bytes", "x mean", "finished"),
        *("0 ", "hot", "[0, 63]", size, "2.00"),
        *table,
    ]
    page = operator.get("x")._repr_html_()
    assert alignments(page) == ["ll"]
    assert cells(page) == [
        *("States of the key", "state", "value"),
        *("cnt", "TtlValue(last_access=1700000000000, value=1)"),
        *(timers[1], "1500 (1970-01-01 00:00:01.500Z)", "m", "{'u': 2}"),
    ]
    sizes = operator.key_sizes(1)
    page = sizes._repr_html_()  # type: ignore[attr-defined]  # For notebooks.
    assert alignments(page) == ["lrrrr"]
    assert cells(page) == [
        "The keys with the most bytes of keyed state",
        *("key", "key group", "subtask", "entries", "bytes"),
        *("'x'", str(sizes[0].key_group), "0", "3", str(sizes[0].bytes)),
    ]


@pytest.mark.parametrize("size", [100, 101])
def test_names_of_at_most_100_characters(size: int, tmp_path: Path) -> None:
    name = "s" * size
    with SavepointWriter(tmp_path / "s") as writer:
        states = [ValueStateDescriptor(name, LONG)]
        writer.add_operator("by-user", STRING, states, 128, 1).write(name, "x", 1)
    operator = read_savepoint(tmp_path / "s").operator("by-user")
    tables: list[Any] = [operator.states, operator.get("x")]
    for table in tables:
        [shown] = named(table._repr_html_())
        assert (len(shown), "..." in shown) == (100, size > 100)


def test_entries_of_a_notebook(tmp_path: Path) -> None:
    """The table takes nothing from the iterator, which ends where it is closed."""
    with SavepointWriter(tmp_path / "s") as writer:
        states = [MapStateDescriptor("m", STRING, LONG)]
        by_user = writer.add_operator("by-user", STRING, states, 128, 1)
        for number in range(51):
            by_user.write("m", "x", number, f"u{number:02}")
    entries: Any = read_savepoint(tmp_path / "s").operator("by-user").entries()
    page = entries._repr_html_()
    assert alignments(page) == ["lrrllllll"]
    assert page.count("<tr") == 1 + 50
    assert "Entries, the first 50 at most" in page
    assert cells(page)[:10] == [
        *("Entries, the first 50 at most", "state", "key group", "subtask", "key", "namespace"),
        *("user key", "value", "last access", "timestamp"),
    ]
    assert next(entries).user_key == "u00"
    entries.close()
    assert [*entries] == []


def test_where_subtasks_of_a_job_run() -> None:
    """Names of hosts and TaskManagers are aligned to the left, as text and in notebooks."""
    groups = [KeyGroupRange(0, 63), KeyGroupRange(64, 127)]
    subtasks = (
        SubtaskSkew(0, 1_500, 30, 0.75, 1.5, groups[0], None, "host-one", "tm"),
        SubtaskSkew(1, 500, None, 0.25, 0.5, groups[1], None, None, "tm-2"),
    )
    vertex = Vertex("1" * 32, "sum", "RUNNING", 2, 128, True, ())
    skew = VertexSkew(vertex, subtasks, 1.5, (0,), (), "hot", "")
    lines = str(skew).splitlines()[-6:]
    assert lines == [
        "subtask  records  share  x mean  bytes  key groups",
        "      0    1,500  75.0%    1.50     30        0-63  hot",
        "      1      500  25.0%    0.50      ?      64-127",
        "subtask  host      TaskManager",
        "      0  host-one  tm",
        "      1  ?         tm-2",
    ]
    assert alignments(skew._repr_html_())[1] == "lll"
