"""Serializers against what Flink itself wrote: snapshots, values and nulls of each version."""

from __future__ import annotations

import json
import re
from collections import defaultdict

import pytest
from flink_values import local_value_of, same, value_of
from serializer_cases import Case, Value, cases

from keygroups.savepoint import Serializer

VERSION_OF_SNAPSHOTS = b"\0\0\0\2"

GROUPS: dict[str, list[Case]] = defaultdict(list)
for case in cases():
    GROUPS[case.group].append(case)

ONLY_READ: dict[str, str] = {
    # case, or the group of cases: why its values, or its snapshot, cannot be written here
}
NOT_READ = {
    # case, or the group of cases: why its values cannot be read here
    "value.custom": "a class of the job's own writes itself",
    "copyable.custom": "a class of the job's own writes itself",
}
AS_BYTES = {
    # case, or the group of cases: why its values are their bytes
    "java": "of a Java object only the end is told",
}
OLDER_SNAPSHOT = {
    "cep.NFAState-1.14.6": "version 1 has no flag for the previous timestamp, version 2 has",
}
OTHER_SIZE = {
    # case: what Flink says of the size, and why it is otherwise here
    "ns.void": "0, and 1 byte is written",
    "ns.queryable": "0, and 1 byte is written",
    "ns.window-1.14.6": "0, and 16 bytes are written",
    "ns.global-1.14.6": "0, and 1 byte is written",
    "window.time-1.14.6": "0, and 16 bytes are written",
    "window.count-1.14.6": "0, and 8 bytes are written",
    "copyable.custom": "12, which only the job's own class tells",
}
LOCAL = ("py.Date", "py.Time")
"""The cases of dates, times and timestamps in the zone of the JVM."""
TWO_SPELLINGS = re.compile('"(bigint|decimal)": "(0|1|10)"')
"""Numbers that Flink writes in two ways, by which object of Java they are."""
NONE = ({"void": True}, {"null_value": True})
"""Values, and no nulls, that are None in Python."""


def has_reason(case: Case, reasons: dict[str, str]) -> bool:
    return not reasons.keys().isdisjoint((str(case), case.name, case.group))


def value_in_python(case: Case, value: Value) -> object:
    """Return what is to be read."""
    if value.json is not None and has_reason(case, AS_BYTES):
        return value.data
    if case.name.startswith(LOCAL):
        return local_value_of(value.json)
    return value_of(value.json)


@pytest.mark.parametrize("group", GROUPS)
def test_snapshots(group: str) -> None:
    for case in GROUPS[group]:
        data = VERSION_OF_SNAPSHOTS + case.snapshot
        serializer = Serializer.from_snapshot(data)
        assert serializer == Serializer.from_snapshot(data), case
        if str(case) in OLDER_SNAPSHOT:
            assert Serializer.from_snapshot(serializer.snapshot_bytes()) == serializer, case
        elif not has_reason(case, ONLY_READ):
            assert serializer.snapshot_bytes() == data, case


@pytest.mark.parametrize("group", GROUPS)
def test_sizes(group: str) -> None:
    for case in GROUPS[group]:
        serializer = Serializer.from_snapshot(VERSION_OF_SNAPSHOTS + case.snapshot)
        if not has_reason(case, OTHER_SIZE):
            assert serializer.size == case.size, case


@pytest.mark.parametrize("group", GROUPS)
def test_values(group: str) -> None:
    for case in GROUPS[group]:
        serializer = Serializer.from_snapshot(VERSION_OF_SNAPSHOTS + case.snapshot)
        for value in case.values:
            if has_reason(case, NOT_READ) or not value.read_by_flink:
                continue
            seen = serializer.decode(value.data)
            assert same(seen, value_in_python(case, value)), (str(case), value.json)


@pytest.mark.parametrize("group", GROUPS)
def test_bytes(group: str) -> None:
    for case in GROUPS[group]:
        serializer = Serializer.from_snapshot(VERSION_OF_SNAPSHOTS + case.snapshot)
        for value in case.values:
            if has_reason(case, NOT_READ) or has_reason(case, ONLY_READ):
                continue
            if not value.read_by_flink:
                continue
            data = serializer.encode(serializer.decode(value.data))
            has_two_spellings = b".BigInt" in case.snapshot or b".BigDec" in case.snapshot
            if has_two_spellings and TWO_SPELLINGS.search(json.dumps(value.json)):
                assert same(serializer.decode(data), serializer.decode(value.data)), str(case)
                continue
            if '"set":' in json.dumps(value.json):  # Python's sets have another order
                assert len(data) == len(value.data), (str(case), value.json)
                assert same(serializer.decode(data), serializer.decode(value.data)), str(case)
            else:
                assert data == value.data, (str(case), value.json)


@pytest.mark.parametrize("group", GROUPS)
def test_nulls(group: str) -> None:
    for case in GROUPS[group]:
        serializer = Serializer.from_snapshot(VERSION_OF_SNAPSHOTS + case.snapshot)
        of_none = any(value.json in NONE for value in case.values)
        assert serializer.takes_null == (case.reads_null or of_none), case
        if case.reads_null and case.null is not None and not has_reason(case, ONLY_READ):
            assert serializer.encode(None) == case.null, case
            assert serializer.decode(case.null) is None, case
