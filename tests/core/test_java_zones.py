"""The names of zones that java.sql's key types take, and the spans in which zone data differ.

`test_java_zones_live.py` compares all of them with the JVM.
"""

from __future__ import annotations

import datetime as dt
import pickle
import re
import shutil
import sys
import zoneinfo
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from support.inside.values import ZONE_NAMES, doubtful_spans

from keygroups import InvalidValueError, hash_code
from keygroups.types import SQL_DATE, SQL_TIME, SQL_TIMESTAMP

SQL_TYPES = [SQL_DATE, SQL_TIME, SQL_TIMESTAMP]


@pytest.mark.parametrize("sql_type", SQL_TYPES)
@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("WET", "; write 'Europe/Lisbon' if that is meant"),
        ("EET", "; write 'Europe/Athens' if that is meant"),
        ("EST", "; write 'America/Panama' if that is meant"),
        ("MST", "; write 'America/Phoenix' if that is meant"),
        ("HST", "; write 'Pacific/Honolulu' if that is meant"),
        ("ROC", "; write 'Asia/Taipei' if that is meant"),
        ("GMT+0", "; write 'GMT' if that is meant"),
        ("right/Europe/Berlin", "; write 'Europe/Berlin'"),
        ("posix/Asia/Tokyo", "; write 'Asia/Tokyo'"),
        ("europe/berlin", "; write 'Europe/Berlin'"),  # some file systems find that
        ("utc", "; write 'UTC'"),
        ("localtime", ""),
        ("posixrules", ""),
        ("Factory", ""),
        ("America/Coyhaique", ""),  # since release 2025b only
        ("PST", ""),  # Java's own
        ("", ""),
        ("a\0b", ""),
    ],
)
def test_names_that_java_and_the_tz_database_do_not_share(
    sql_type: Callable[[str], object], name: str, advice: str
) -> None:
    start = "zone must be an IANA time zone that Java knows by the same name, such as "
    with pytest.raises(InvalidValueError, match=f"^{start}'Europe/Berlin', got ") as caught:
        sql_type(name)
    assert str(caught.value).endswith(advice or repr(name))


def test_the_zones_of_old_names() -> None:
    """The hashes are Java's for the names WET and EET, which it takes for these places."""
    assert hash_code(dt.date(1976, 1, 15), SQL_DATE("Europe/Lisbon")) == 1529839020
    noon = dt.datetime(1977, 9, 25, 12)
    assert hash_code(noon, SQL_TIMESTAMP("Europe/Athens")) == -787135816


def test_every_name_has_data() -> None:
    pytest.importorskip("tzdata", reason="the package tzdata is not installed")
    for name in ZONE_NAMES:
        key_type = SQL_DATE(name)
        assert pickle.loads(pickle.dumps(key_type)) == key_type


@pytest.mark.parametrize(
    ("name", "certain", "doubtful"),
    [
        ("America/Vancouver", "2026-10-31T23:59:59", "2026-11-01T00:00:00"),
        ("Europe/Chisinau", "2025-03-29T12:00:00", "2025-03-30T12:00:00"),
        ("Europe/Chisinau", "2025-03-31T00:00:00", "2025-10-26T23:59:59"),
        ("America/Hermosillo", "1970-01-01T01:00:00", "1970-01-01T00:59:59"),
        ("Asia/Manila", "1990-07-30T00:00:00", "1990-07-29T23:59:59"),
    ],
)
def test_spans_in_which_releases_differ(name: str, certain: str, doubtful: str) -> None:
    key_type = SQL_TIMESTAMP(name)
    hash_code(dt.datetime.fromisoformat(certain), key_type)
    with pytest.raises(InvalidValueError, match="where releases of the time zone data differ"):
        hash_code(dt.datetime.fromisoformat(doubtful), key_type)


# The first and the last full hour at which two of the packages tzdata 2024.1, 2024.2, 2025.1,
# 2025.2, 2025.3, 2026.1 and 2026.6 of PyPI give a zone other offsets, up to the end of 2036.
DIFFER = {
    "Africa/Casablanca Africa/El_Aaiun": ("2026-09-20T02", "2036-12-31T17"),
    "America/Asuncion": ("2025-03-23T00", "2036-10-05T00"),
    "America/Bahia_Banderas America/Hermosillo": ("1970-01-01T00", "1970-01-01T00"),
    "America/Mazatlan Mexico/BajaSur": ("1970-01-01T00", "1970-01-01T00"),
    "America/Bogota": ("1992-05-02T01", "1992-05-03T00"),
    "America/Cancun": ("1981-12-23T01", "1997-10-26T01"),
    "America/Edmonton America/Inuvik America/Rainy_River": ("2026-11-01T02", "2036-12-31T17"),
    "America/Vancouver America/Winnipeg": ("2026-11-01T02", "2036-12-31T17"),
    "America/Yellowknife Canada/Central": ("2026-11-01T02", "2036-12-31T17"),
    "Canada/Mountain Canada/Pacific": ("2026-11-01T02", "2036-12-31T17"),
    "America/Ensenada America/Santa_Isabel": ("1970-04-26T03", "1975-10-26T01"),
    "America/Tijuana Mexico/BajaNorte": ("1970-04-26T03", "1975-10-26T01"),
    "America/Havana Cuba": ("2026-11-01T01", "2027-03-14T00"),
    "America/Merida": ("1981-12-23T01", "1982-12-01T23"),
    "Asia/Choibalsan": ("1983-04-01T01", "2008-03-30T23"),
    "Asia/Manila": ("1977-03-28T01", "1990-07-28T23"),
    "Asia/Tehran Iran": ("1978-11-11T00", "1979-05-27T00"),
    "Atlantic/Azores": ("1977-03-27T01", "1993-06-17T01"),
    "Atlantic/Madeira": ("1977-03-27T01", "1986-03-30T01"),
    "Europe/Chisinau Europe/Tiraspol": ("2022-03-27T03", "2036-10-26T03"),
    "Europe/Lisbon Portugal": ("1978-04-02T01", "1985-09-29T01"),
}


def is_doubtful(name: str, moment: dt.datetime) -> bool:
    return any(start <= moment < end for start, end in doubtful_spans(name))


def test_hours_at_which_releases_differ_are_doubtful() -> None:
    for names, hours in DIFFER.items():
        for name in names.split():
            for hour in hours:
                assert is_doubtful(name, dt.datetime.fromisoformat(hour)), (name, hour)
    differing = {name for names in DIFFER for name in names.split()}
    assert {name for name in ZONE_NAMES if doubtful_spans(name)} == differing


def test_each_clock_change_of_moldova_is_doubtful() -> None:
    """On the last Sundays of March and October, from when its law names other hours."""
    for year in range(2022, 2037):
        for end in (dt.datetime(year, 3, 31, 3), dt.datetime(year, 10, 31, 3)):
            sunday = end - dt.timedelta(days=end.isoweekday() % 7)
            assert is_doubtful("Europe/Chisinau", sunday)
            assert not is_doubtful("Europe/Chisinau", sunday + dt.timedelta(days=1))


def test_doubtful_spans_are_in_order_and_in_bounds() -> None:
    for name in ZONE_NAMES:
        ends = [moment for span in doubtful_spans(name) for moment in span]
        assert ends == sorted(ends)
        assert all(dt.datetime(1970, 1, 1) <= end <= dt.datetime(2037, 1, 1) for end in ends)


@pytest.fixture
def own_data(tmp_path: Path) -> Iterator[Path]:
    """A folder that Python looks for time zone data in first."""
    before = zoneinfo.TZPATH
    zoneinfo.reset_tzpath(to=[tmp_path])
    zoneinfo.ZoneInfo.clear_cache()
    yield tmp_path
    zoneinfo.reset_tzpath(to=before)
    zoneinfo.ZoneInfo.clear_cache()


def test_old_data_are_refused(own_data: Path) -> None:
    """Before release 2024a, Almaty was still at UTC+6 in 2024, as Omsk is."""
    pytest.importorskip("tzdata", reason="the package tzdata is not installed")
    (own_data / "Asia").mkdir()
    with (
        files("tzdata").joinpath("zoneinfo", "Asia", "Omsk").open("rb") as omsk,
        (own_data / "Asia" / "Almaty").open("wb") as almaty,
    ):
        shutil.copyfileobj(omsk, almaty)
    with pytest.raises(InvalidValueError, match=re.escape("'Europe/Berlin' needs time zone data")):
        SQL_DATE("Europe/Berlin")
    SQL_DATE("UTC")


def test_missing_data_are_named(own_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ["tzdata", *sys.modules]:  # seems not installed, whoever has loaded some of it
        if name.partition(".")[0] == "tzdata":
            monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InvalidValueError, match="install the package tzdata"):
        SQL_DATE("Europe/Berlin")
    SQL_DATE("UTC")
