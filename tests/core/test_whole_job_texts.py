"""What is shown of a running job, whole: its vertices, and how even one of them reads."""

from __future__ import annotations

import pytest
from support.html_tables import shown

from keygroups import InvalidValueError, KeyGroupRange
from keygroups.job import Job, SubtaskReads, SubtaskSkew, Vertex, VertexSkew

LONG = "n" * 33
CUT = f"{'n' * 16}...{'n' * 13}"  # 32 characters of it
READS = (
    SubtaskReads(0, "RUNNING", 1500, 20_000, "host", "tm"),
    SubtaskReads(1, "RUNNING", 500, None),
)
SUM = Vertex("1" * 32, "sum", "RUNNING", 2, 128, True, READS)
EMPTY = Vertex("2" * 32, LONG, "RUNNING", -1, -1, False, ())
JOB = Job("http://x", "0" * 32, LONG, LONG, (SUM, EMPTY))
OF_JOB = f"""{CUT}, {CUT}, job {"0" * 32}
                          vertex  parallelism  max  records read  bytes read  input
                             sum            2  128         2,000           ?  keyed
{CUT}           -1   -1             0           0"""


def test_a_job() -> None:
    assert str(JOB) == OF_JOB
    names = f"url='http://x', job_id='{'0' * 32}', name={LONG!r}, state={LONG!r}"
    assert repr(JOB) == f"Job({names})"
    page = shown(JOB)
    assert page.left == ["vertex"]
    assert page.paragraphs == [OF_JOB.partition("\n")[0]]
    assert page.rows == [
        ["vertex", "parallelism", "max", "records read", "bytes read", "input"],
        ["sum", "2", "128", "2,000", "?", "keyed"],
        [CUT, "-1", "-1", "0", "0", ""],
    ]


EVEN_KEYS = (
    "128 key groups at this parallelism would give 1.00 if all were alike, so there is a hot key, "
    "or many keys are unluckily together: skew_report tells from the keys"
)
OF_SUM = """sum: uneven keys: the heaviest of 2 subtasks has 1.50 times the mean
remedy: 128 key groups at this parallelism would give 1.00 if all were alike, so
there is a hot key, or many keys are unluckily together: skew_report tells from
the keys
subtask  records  share  x mean   bytes  key groups
      0    1,500  75.0%    1.50  20,000        0-63  hot
      1      500  25.0%    0.50       ?      64-127
subtask  host  TaskManager
      0  host  tm
      1  ?     ?"""


def test_a_vertex() -> None:
    skew = JOB.skew("sum")
    assert str(skew) == OF_SUM
    assert skew == JOB.skew(SUM) == JOB.skew("1" * 32)
    assert (skew.imbalance, skew.hot_subtasks, skew.idle_subtasks) == (1.5, (0,), ())
    assert [(cause.name, cause.share, cause.remedy) for cause in skew.causes] == [
        ("uneven keys", 0.5, EVEN_KEYS)
    ]
    assert skew.subtasks == (
        SubtaskSkew(0, 1500, 20_000, 0.75, 1.5, KeyGroupRange(0, 63), None, "host", "tm"),
        SubtaskSkew(1, 500, None, 0.25, 0.5, KeyGroupRange(64, 127)),
    )
    page = shown(skew)
    assert page.left == ["subtask", "subtask", "host", "TaskManager"]
    assert page.rows == [
        ["subtask", "records", "share", "x mean", "bytes", "key groups", ""],
        ["0", "1,500", "75.0%", "1.50", "20,000", "0-63", "hot"],
        ["1", "500", "25.0%", "0.50", "?", "64-127", ""],
        *(["subtask", "host", "TaskManager"], ["0", "host", "tm"], ["1", "?", "?"]),
    ]
    assert page.paragraphs == [OF_SUM.partition("\n")[0], f"remedy: {EVEN_KEYS}"]


def test_a_vertex_between_two_readings() -> None:
    subtask = SubtaskSkew(0, 3_000, None, 1.0, 1.0, None, 1500.25)
    skew = VertexSkew(EMPTY, (subtask,), 1.0, (), (), "even", "nothing to do", (), 2.0)
    assert str(skew).splitlines() == [
        f"{CUT}: even: the heaviest of -1 subtasks has 1.00",
        "times the mean",
        "remedy: nothing to do",
        "3,000 records in 2.0 s, 1,500.0 a second",
        "subtask  records  records/s   share  x mean  bytes  key groups",
        "      0    3,000    1,500.2  100.0%    1.00      ?           -",
    ]
    page = shown(skew)
    assert page.left == ["subtask"]
    assert page.rows[1] == ["0", "3,000", "1,500.2", "100.0%", "1.00", "?", "-", ""]


@pytest.mark.parametrize("count", [5, 6])
def test_a_vertex_that_is_none(count: int) -> None:
    vertices = tuple(
        Vertex(f"{number:032x}", f"v{number}", "RUNNING", 1, 1, False, ())
        for number in range(count)
    )
    more = ", ..." if count > 5 else ""
    with pytest.raises(InvalidValueError) as caught:
        Job("http://x", "0" * 32, "j", "RUNNING", vertices).vertex("w")
    assert str(caught.value) == (
        "vertex must be the name, part of it, or id of one vertex of 'v0', 'v1', 'v2', 'v3', "
        f"'v4'{more}, got 'w'"
    )
    with pytest.raises(InvalidValueError) as caught:
        Job("http://x", "0" * 32, "j", "CREATED", ()).vertex("w")
    assert str(caught.value) == (
        "vertex must be of a job that has some, got 'w' of one that has none: it is CREATED"
    )
