"""Serializers against what Flink itself wrote: snapshots, values and nulls of each version."""

from __future__ import annotations

import json
from collections import defaultdict

import pytest
from flink_values import same, value_of
from serializer_cases import Case, cases

from keygroups.savepoint import Serializer

VERSION_OF_SNAPSHOTS = b"\0\0\0\2"

GROUPS: dict[str, list[Case]] = defaultdict(list)
for case in cases():
    GROUPS[case.group].append(case)

ONLY_READ = {
    # case, or the group of cases: why its values, or its snapshot, cannot be written here
}
NOT_READ = {
    # case, or the group of cases: why its values cannot be read here
}
OTHER_SIZE = {
    # case: what Flink says of the size, and why it is otherwise here
}


def has_reason(case: Case, reasons: dict[str, str]) -> bool:
    return case.name in reasons or case.group in reasons


def serializer_of(case: Case) -> Serializer:
    data = VERSION_OF_SNAPSHOTS + case.snapshot
    return Serializer.from_snapshot(data, kryo_version=case.kryo_version)


@pytest.mark.parametrize("group", GROUPS)
def test_snapshots(group: str) -> None:
    for case in GROUPS[group]:
        serializer = serializer_of(case)
        assert serializer == serializer_of(case), case
        if not has_reason(case, ONLY_READ):
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
        for value in case.values:
            if has_reason(case, NOT_READ) or not value.read_by_flink:
                continue
            seen = serializer.decode(value.data)
            assert same(seen, value_of(value.json)), (str(case), value.json)


@pytest.mark.parametrize("group", GROUPS)
def test_bytes(group: str) -> None:
    for case in GROUPS[group]:
        serializer = serializer_of(case)
        for value in case.values:
            if has_reason(case, NOT_READ) or has_reason(case, ONLY_READ):
                continue
            if not value.read_by_flink:
                continue
            data = serializer.encode(serializer.decode(value.data))
            if '"set":' in json.dumps(value.json):  # Python's sets have another order
                assert len(data) == len(value.data), (str(case), value.json)
                assert same(serializer.decode(data), serializer.decode(value.data)), str(case)
            else:
                assert data == value.data, (str(case), value.json)


@pytest.mark.parametrize("group", GROUPS)
def test_nulls(group: str) -> None:
    for case in GROUPS[group]:
        serializer = serializer_of(case)
        assert serializer.takes_null == case.reads_null, case
        if case.reads_null and case.null is not None and not has_reason(case, ONLY_READ):
            assert serializer.encode(None) == case.null, case
            assert serializer.decode(case.null) is None, case
