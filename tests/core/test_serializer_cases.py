"""Serializers against what Flink itself wrote: snapshots, values and nulls of each version."""

from __future__ import annotations

import json
import re
from collections import defaultdict

import pytest
from support.bytes.flink_values import internal_value, local_value_of, same, value_of
from support.bytes.serializer_cases import Case, Value, cases
from support.inside.serializers import STRING, UnreadableError

from keygroups.errors import UnsupportedKeyTypeError
from keygroups.savepoint import Serializer

VERSION_OF_SNAPSHOTS = b"\0\0\0\2"

GROUPS: dict[str, list[Case]] = defaultdict(list)
for case in cases():
    GROUPS[case.group].append(case)

ONLY_READ: dict[str, str] = {
    # case, or the group of cases: why its values, or its snapshot, cannot be written here
    "multiset.key": "Flink takes each for a row of kind +I, whatever kind was written",
}
NOT_READ = {
    # case, or the group of cases: why its values cannot be read here
    "value.custom": "a class of the job's own writes itself",
    "copyable.custom": "a class of the job's own writes itself",
}
NOT_ALL_READ = {
    # case: which of its values cannot be read here
    "kryo.BitSet-1.20.5": "Flink 1 writes them in two ways, so all but null",
    "kryo.EnumSet": "constants are in the class of an enum only, so all but null",
    "kryo.enum": "constants are in the class of an enum only, so all but null",
    "kryo.enum.jdk": "constants are in the class of an enum only, so all but null",
    "kryo.Plain": "the job's own class has the fields, so all but null",
    "kryo.Simple": "the job's own class has the fields, so all but null",
    "kryo.registered": "the job's own class has the fields, so all but null",
    "pojo.Colls": "those with objects of the job's own classes that Kryo wrote",
    "pojo.Deep": "those with objects of the job's own classes that Kryo wrote",
}
VALUES_ONLY_READ = {
    # case, or the group of cases: why its values cannot be written here
    "kryo": "the class is not told by a value of Python; others: test_job_values.py",
    "pojo.Colls": "it has fields that Kryo writes",
    "pojo.Deep": "it has fields that Kryo writes",
    "pojo.Wide": "it has fields that Kryo writes",
}
AS_BYTES = {
    # case, or the group of cases: why its values are their bytes
    "java": "of an object that is no number, text, list or map only the end is told",
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
    "timer.2": "10, with a namespace of 0 bytes, of which 1 is written",
    "timer.1-1.14.6": "20, with a window of 0 bytes, of which 16 are written",
    "copyable.custom": "12, which only the job's own class tells",
}
OF_JAVA = {"int", "long", "list", "map"}
"""The objects of Java's own streams that are read as values."""
LOCAL = ("py.Date", "py.Time")
"""The cases of dates, times and timestamps in the zone of the JVM."""
TWO_SPELLINGS = re.compile('"(bigint|decimal)": "(0|1|10)"')
"""Numbers that Flink writes in two ways, by which object of Java they are."""
NONE: tuple[object, ...] = ({"void": True}, {"null_value": True}, {"option": []})
"""Values, and no nulls, that are None in Python."""


NOT_WRITTEN = (NOT_READ, ONLY_READ, VALUES_ONLY_READ)


def has_reason(case: Case, reasons: dict[str, str]) -> bool:
    return not reasons.keys().isdisjoint((str(case), case.name, case.group))


def serializer_of(case: Case) -> Serializer:
    data = VERSION_OF_SNAPSHOTS + case.snapshot
    return Serializer.from_snapshot(data, kryo_version=case.kryo_version)


def value_in_python(case: Case, value: Value) -> object:
    """Return the value to be read; of external types of SQL, the value that is inside."""
    if has_reason(case, AS_BYTES) and isinstance(value.json, dict):
        return value_of(value.json) if OF_JAVA.issuperset(value.json) else value.data
    if case.name.startswith(LOCAL):
        return local_value_of(value.json)
    if case.name == "external.RAW":
        return STRING.encode(value.json)
    return internal_value(value.json) if case.group == "external" else value_of(value.json)


@pytest.mark.parametrize("group", GROUPS)
def test_snapshots(group: str) -> None:
    for case in GROUPS[group]:
        serializer = serializer_of(case)
        assert serializer == serializer_of(case), case
        if str(case) in OLDER_SNAPSHOT:
            assert Serializer.from_snapshot(serializer.snapshot_bytes()) == serializer, case
        elif not has_reason(case, ONLY_READ):
            assert serializer.snapshot_bytes() == VERSION_OF_SNAPSHOTS + case.snapshot, case


@pytest.mark.parametrize("group", GROUPS)
def test_sizes(group: str) -> None:
    for case in GROUPS[group]:
        serializer = serializer_of(case)
        if not has_reason(case, OTHER_SIZE):
            assert serializer.size == case.size, case


@pytest.mark.parametrize("group", GROUPS)
def test_values(group: str) -> None:
    for case in GROUPS[group]:
        serializer = serializer_of(case)
        refused = False
        for value in case.values:
            if has_reason(case, NOT_READ) or not value.read_by_flink:
                continue
            try:
                seen = serializer.decode(value.data)
            except UnsupportedKeyTypeError:
                refused = True
                continue
            assert same(seen, value_in_python(case, value)), (str(case), value.json)
        assert refused == has_reason(case, NOT_ALL_READ), case


@pytest.mark.parametrize("group", GROUPS)
def test_values_among_other_bytes(group: str) -> None:
    for case in GROUPS[group]:
        read = serializer_of(case).read
        for value in case.values[:3]:
            if read is None or not value.read_by_flink:
                continue
            try:
                alone, end = read(value.data, 0)
            except UnreadableError:
                continue
            assert end == len(value.data), (str(case), value.json)
            inside, end = read(b"\xff" + value.data + b"\xff", 1)
            assert end == 1 + len(value.data), (str(case), value.json)
            assert same(inside, alone), (str(case), value.json)


@pytest.mark.parametrize("group", GROUPS)
def test_bytes(group: str) -> None:
    for case in GROUPS[group]:
        serializer = serializer_of(case)
        for value in case.values:
            if any(has_reason(case, reasons) for reasons in NOT_WRITTEN):
                continue
            if not value.read_by_flink:
                continue
            decoded = serializer.decode(value.data)
            if has_reason(case, AS_BYTES) and isinstance(decoded, (int, list, dict)):
                continue  # Nothing says of which class it is to be: test_java_values.py.
            data = serializer.encode(decoded)
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
        serializer = serializer_of(case)
        of_none = any(value.json in NONE for value in case.values)
        assert serializer.takes_null == (case.reads_null or of_none), case
        if any(has_reason(case, reasons) for reasons in NOT_WRITTEN[1:]):
            continue
        if case.reads_null and case.null is not None:
            assert serializer.encode(None) == case.null, case
            assert serializer.decode(case.null) is None, case
