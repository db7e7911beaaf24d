"""The points of `version_points.py`: read whole, looked up, converted, keyed anew and edited."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from support.bytes.version_points import (
    ASYNC,
    KEYS,
    OLD,
    OLD_ROCKSDB,
    expected,
    path_of,
    seen,
    with_keyed_state,
)

from keygroups import assign_to_key_group
from keygroups.savepoint import (
    SavepointEditor,
    change_max_parallelism,
    convert_to_canonical,
    html_report,
    operator_reports,
    read_savepoint,
)
from keygroups.types import STRING

pytest.importorskip("cramjam", reason="blocks are compressed: the extra savepoint")


@pytest.mark.parametrize("name", [*OLD, *ASYNC])
def test_read_whole(name: str) -> None:
    """Each entry, with the key group that its key has; one key's are found by `get`."""
    savepoint = read_savepoint(path_of(name))
    assert seen(savepoint, name) == expected(name)
    for operator in with_keyed_state(savepoint):
        groups = {(one.key, one.key_group) for one in operator.entries()}
        assert groups == {(key, assign_to_key_group(key, 128, key_type=STRING)) for key in KEYS}
        assert sum(operator.key_group_bytes().weights) > 0


@pytest.mark.parametrize("name", [*OLD, *ASYNC])
def test_looked_up_and_reported(name: str) -> None:
    savepoint = read_savepoint(path_of(name))
    for uid, entries in expected(name).items():
        operator = savepoint.operator(uid)
        found = operator.get("ключ")
        named = {state for state, _, key, *_ in entries if key == "ключ"}
        assert found.keys() == named
        if "list" in named:
            number = found["value"]
            assert found["list"] == [f"ключ,{one}" for one in range(1, number + 1)]
            assert len(found["map"]) == number
        assert operator.to_arrow("map" if "map" in named else "window-contents").num_rows > 0
    for report in operator_reports(savepoint):
        assert report.unknown_keys is None
        assert {key.key for key in report.heaviest_keys} == set(KEYS)
    page = html_report(savepoint)
    for operator in with_keyed_state(savepoint):
        assert operator.states[0].name in page


@pytest.mark.parametrize("name", [*OLD, *ASYNC])
def test_converted_and_keyed_anew(name: str, tmp_path: Path) -> None:
    """The entries stay, and are compared as the same; then each is in another key group."""
    convert_to_canonical(path_of(name), tmp_path / "canonical")
    canonical = read_savepoint(tmp_path / "canonical")
    assert not read_savepoint(path_of(name)).compare(canonical).has_differences
    change_max_parallelism(path_of(name), 200, tmp_path / "new")
    new = read_savepoint(tmp_path / "new")
    assert seen(canonical, name) == seen(new, name) == expected(name)
    for operator in with_keyed_state(new):
        groups = {(one.key, one.key_group) for one in operator.entries()}
        assert groups == {(key, assign_to_key_group(key, 200, key_type=STRING)) for key in KEYS}


@pytest.mark.parametrize("name", [*OLD, *ASYNC])
def test_edited(name: str, tmp_path: Path) -> None:
    with SavepointEditor(read_savepoint(path_of(name)), tmp_path / "edited") as editor:
        for uid in expected(name):
            editor.operator(uid).delete_keys(["k0"])
    assert seen(read_savepoint(tmp_path / "edited"), name) == {
        uid: Counter({one: count for one, count in entries.items() if one[2] != "k0"})
        for uid, entries in expected(name).items()
    }


@pytest.mark.parametrize(("name", "compression"), OLD_ROCKSDB.items())
def test_the_old_points_are_of_their_format(name: str, compression: str) -> None:
    """The magic number of format version 0 stands at the end of each file, and no other does."""
    data = (path_of(name) / "_metadata").read_bytes()
    assert bytes.fromhex("57fb808b247547db") in data
    assert bytes.fromhex("f7cff485b741e288") not in data
    assert compression.encode() in data


@pytest.mark.parametrize("name", ASYNC)
def test_the_new_points_are_of_their_kind(name: str) -> None:
    """ForSt alone writes asynchronous state as another backend type; see its header."""
    data = (path_of(name) / "_metadata").read_bytes()
    codes = [data[at - 5 : at - 4] for at in _all(data, b"\0\x10KEYED_STATE_TYPE")]
    assert set(codes) == ({b"\4"} if "forst" in name else {b"\0"})


def _all(data: bytes, part: bytes) -> list[int]:
    found = [data.find(part)]
    while found[-1] >= 0:
        found.append(data.find(part, found[-1] + 1))
    return found[:-1]
