"""The golden vectors of `tests/vectors`, made by real Flink; its README has the encoding."""

from __future__ import annotations

import re
from typing import Any

import pytest
from support.golden import read
from support.keys.key_encoding import decode_key, decode_key_type

import keygroups
from keygroups import InvalidValueError, KeyGroupRange, UnsupportedKeyTypeError, types
from keygroups.logical_types import parse_logical_type

# A null alone is never a key, so NULL has no line of its own.
# Flink's types that make no key here.
NO_KEY = re.compile("MAP|MULTISET|INTERVAL|VARIANT|DESCRIPTOR|NULL$(?<!NOT NULL)|WITH TIME ZONE")
KEY_TYPES = sorted(name for name in types.__all__ if name.isupper() and name != "NULL")


@pytest.mark.parametrize("name", KEY_TYPES)
def test_keys_hash_as_in_flink(name: str) -> None:
    header, lines = read("keys")
    lines = [line for line in lines if line["type"].partition("(")[0] == name]
    assert lines
    for line in lines:
        key_type = decode_key_type(line["type"])
        key = decode_key(key_type, line["key"])
        found = [
            keygroups.assign_to_key_group(key, mp, key_type) for mp in header["max_parallelisms"]
        ]
        assert (keygroups.hash_code(key, key_type), found) == (
            line["hash"],
            line["key_groups"],
        ), line


def test_no_line_of_the_keys_goes_unread() -> None:
    assert {line["type"].partition("(")[0] for line in read("keys")[1]} == set(KEY_TYPES)


def test_key_groups_follow_from_the_hash_as_in_flink() -> None:
    header, lines = read("keys")
    for line in lines:
        for mp, group in zip(header["max_parallelisms"], line["key_groups"]):
            assert keygroups.compute_key_group_for_key_hash(line["hash"], mp) == group


def test_ranges_are_those_of_flink() -> None:
    for line in read("ranges")[1]:
        mp, parallelism = line["max_parallelism"], line["parallelism"]
        for index, start, end in line["ranges"]:
            found = keygroups.compute_key_group_range_for_operator_index(mp, parallelism, index)
            assert found == KeyGroupRange(start, end)
        for group, index in line["operators"]:
            operator = keygroups.compute_operator_index_for_key_group(mp, parallelism, group)
            assert operator == index


def test_default_max_parallelism_is_that_of_flink() -> None:
    for line in read("default_max_parallelism")[1]:
        found = keygroups.compute_default_max_parallelism(line["parallelism"])
        assert found == line["max_parallelism"]


def test_murmur_is_that_of_flink() -> None:
    for line in read("murmur")[1]:
        assert keygroups.murmur_hash(line["code"]) == line["murmur"]


@pytest.mark.parametrize("line", read("logical_types")[1], ids=lambda line: repr(line["text"]))
def test_logical_types_are_read_as_by_flink(line: dict[str, Any]) -> None:
    text, flink = line["text"], line["type"]
    if flink is None or NO_KEY.search(flink):
        error = InvalidValueError if flink is None else UnsupportedKeyTypeError
        with pytest.raises(error, match=r"^type .*, position \d+: "):
            parse_logical_type(text)
        return
    found = parse_logical_type(text)
    assert parse_logical_type(flink) == found
    assert str(found) == flink.replace(" '...'", "")  # the comments of fields
