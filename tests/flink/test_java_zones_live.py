"""java.sql's key types in every zone, around every clock change, against the JVM.

Only a JDK is needed, no Flink. The JVM's zone data are compared with this machine's twice: with
those that Python finds first, and with those of the package tzdata. How much was compared is in
each test's properties; `pytest -rP` shows it too.
"""

from __future__ import annotations

import datetime as dt
import subprocess
import zoneinfo
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from support.flink.flink_sql import JAVA_FOLDER, jdk_folder
from support.inside.values import (
    ZONE_NAMES,
    doubtful_spans,
    hash_sql_date,
    hash_sql_time,
    hash_sql_timestamp,
)

from keygroups import InvalidValueError
from keygroups.types import SQL_DATE, SQL_TIME, SQL_TIMESTAMP

pytestmark = pytest.mark.flink

EPOCH = dt.datetime(1970, 1, 1)
END = dt.datetime(2037, 1, 1)
DAY = dt.timedelta(days=1)
DAYS = [EPOCH + DAY * day for day in range((END - EPOCH).days + 1)]
MILLISECOND = dt.timedelta(milliseconds=1)
AROUND = [MILLISECOND * n for n in (-3_600_000, -1_000, -1, 0, 1, 1_000, 3_600_000)]
QUARTERS = {EPOCH + dt.timedelta(minutes=15 * quarter) for quarter in range(96)}


@dataclass(frozen=True)
class Java:
    """The JDK, and `java/SqlTimes.java` in it."""

    jdk: Path

    def ask(self, question: str, items: list[str]) -> list[str]:
        """Return one line for each item."""
        done = subprocess.run(
            [str(self.jdk / "java"), str(JAVA_FOLDER / "SqlTimes.java"), question],
            input="".join(f"{item}\n" for item in items),
            capture_output=True,
            encoding="ascii",
        )
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert len(lines) == len(items)
        return lines


@pytest.fixture(scope="module")
def java() -> Java:
    jdk = jdk_folder()
    if jdk is None:
        pytest.skip("no JDK, whose compiler the program needs")
    return Java(jdk)


@pytest.fixture(params=["first found", "package tzdata"])
def zone_data(request: pytest.FixtureRequest) -> Iterator[None]:
    """This machine's time zone data, from one place or the other."""
    before = zoneinfo.TZPATH
    if request.param == "package tzdata":
        pytest.importorskip("tzdata", reason="the package tzdata is not installed")
        zoneinfo.reset_tzpath(to=[])
    zoneinfo.ZoneInfo.clear_cache()
    yield
    zoneinfo.reset_tzpath(to=before)
    zoneinfo.ZoneInfo.clear_cache()


def pythons_changes(zone: dt.tzinfo) -> Iterator[dt.datetime]:
    """Find the wall-clock times at both ends of what each clock change skips or repeats."""
    offsets = map(zone.utcoffset, DAYS)
    for (low, before), (high, after) in pairwise(zip(DAYS, offsets)):
        if before == after:
            continue
        while high - low > MILLISECOND:
            middle = low + (high - low) // MILLISECOND // 2 * MILLISECOND
            if zone.utcoffset(middle) == before:
                low = middle
            else:
                high = middle
        yield high
        assert before is not None
        assert after is not None
        yield high - abs(after - before)


def wall(millis: str) -> dt.datetime:
    return EPOCH + int(millis) * MILLISECOND


def at(moment: dt.datetime) -> int:
    return (moment - EPOCH) // MILLISECOND


@pytest.mark.slow
def test_every_zone_and_clock_change(
    java: Java, zone_data: None, record_property: Callable[[str, object], None]
) -> None:
    names = sorted(ZONE_NAMES - {"UTC"})
    counts: Counter[str] = Counter(zones=len(names))
    items: list[str] = []
    answers: list[int | None] = []
    keys: list[tuple[str, dt.datetime]] = []
    for name, line in zip(names, java.ask("changes", names)):
        known, *changes = line.split(" ")
        assert known == name  # or Java takes it for another, GMT by rule
        moments = set(map(wall, changes)) | set(pythons_changes(SQL_DATE(name).zone))
        counts["clock changes"] += len(changes) // 2
        around = {moment + step for moment in moments for step in AROUND}
        days = {dt.datetime.combine(m, dt.time()) + DAY * n for m in moments for n in (-1, 0, 1)}
        times = {dt.datetime.combine(EPOCH, moment.time()) for moment in around}
        items.append(f"zone {name}")
        answers.append(None)
        keys.append((name, EPOCH))
        hash_date = partial(hash_sql_date, SQL_DATE(name))
        hash_time = partial(hash_sql_time, SQL_TIME(name))
        hash_timestamp = partial(hash_sql_timestamp, SQL_TIMESTAMP(name))
        keys_of: dict[str, tuple[Callable[[object], int], dict[dt.datetime, object]]] = {
            "date": (hash_date, {moment: moment.date() for moment in days}),
            "time": (hash_time, {moment: moment.time() for moment in times | QUARTERS}),
            "timestamp": (hash_timestamp, {moment: moment for moment in around}),
        }
        for kind, (hash_one, values) in keys_of.items():
            for moment, key in values.items():
                items.append(f"{kind} {at(moment)}")
                keys.append((name, moment))
                try:
                    answers.append(hash_one(key))
                except InvalidValueError:
                    answers.append(None)
    wrong, refused_for_nothing = [], []
    for item, answer, (name, moment), line in zip(items, answers, keys, java.ask("hashes", items)):
        if item.startswith("zone "):
            continue
        code, instants = map(int, line.split(" "))
        doubtful = any(start <= moment < end for start, end in doubtful_spans(name))
        if answer is not None:
            counts[f"SQL_{item.partition(' ')[0].upper()} compared"] += 1
            if answer != code or instants != 1:
                wrong.append((name, item, moment, answer, code, instants))
        elif doubtful:
            counts["refused, releases differ"] += 1
        elif instants != 1:
            counts["refused, not one instant"] += 1
        elif not EPOCH <= moment < END:
            counts["refused, outside the span"] += 1
        else:
            refused_for_nothing.append((name, item, moment))
    for what, count in counts.items():
        record_property(what, count)
        print(f"{what}: {count:,}")
    assert wrong[:10] == []
    assert refused_for_nothing[:10] == []
    assert counts["SQL_TIMESTAMP compared"] > 200_000
    assert counts["SQL_DATE compared"] > 50_000
    assert counts["SQL_TIME compared"] > 50_000
