"""State of an asynchronous backend: its header, with each kind and serializers that are not known.

Flink: RegisteredKeyValueStateBackendMetaInfo and RegisteredKeyAndUserKeyValueStateBackendMetaInfo
of the package state.v2. Real points are read in `test_version_points.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.sst_bytes import VALUE, sst
from support.inside.savepoints import KeyGroupsHandle

from keygroups import assign_to_key_group
from keygroups.errors import SavepointError
from keygroups.savepoint import Operator, change_max_parallelism, read_savepoint
from keygroups.types import LONG

STRING, LONGS, INT = sb.simple("String"), sb.simple("Long"), sb.simple("Int")
WINDOW = sb.simple("Long")
TTL = "org.apache.flink.runtime.state.v2.ttl.TtlStateFactory$TtlSerializerSnapshot"
UNKNOWN = sb.snapshot("a.B", 1, b"of the job")
KEY_GROUP = assign_to_key_group(7, 128, key_type=LONG)


def kept(value: bytes) -> bytes:
    """The snapshot of a value with a time to live, which is another class in this package."""
    old = sb.ttl_of(value)
    start = 2 + int.from_bytes(old[:2], "big")
    return sb.utf(TTL) + old[start:]


STATES = {
    "VALUE": (sb.async_state("s", "VALUE", INT), sb.state("s", "VALUE", INT)),
    "REDUCING": (
        sb.async_state("s", "REDUCING", INT, namespace=WINDOW),
        sb.state("s", "REDUCING", INT, namespace=WINDOW),
    ),
    "AGGREGATING": (sb.async_state("s", "AGGREGATING", INT), sb.state("s", "AGGREGATING", INT)),
    "LIST": (sb.async_state("s", "LIST", INT), sb.state("s", "LIST", sb.list_of(INT))),
    "MAP": (
        sb.async_state("s", "MAP", INT, user_key=STRING),
        sb.state("s", "MAP", sb.map_of(STRING, INT)),
    ),
    "kept VALUE": (
        sb.async_state("s", "VALUE", kept(INT)),
        sb.state("s", "VALUE", sb.ttl_of(INT)),
    ),
    "kept LIST": (
        sb.async_state("s", "LIST", kept(INT)),
        sb.state("s", "LIST", sb.list_of(sb.ttl_of(INT))),
    ),
    "kept MAP": (
        sb.async_state("s", "MAP", kept(INT), user_key=STRING),
        sb.state("s", "MAP", sb.map_of(STRING, sb.ttl_of(INT))),
    ),
}
"""Each state as an asynchronous backend says it, and as the others do."""


def operator_of(folder: Path, *states: bytes, key: bytes = b"\0", value: bytes = b"x") -> Operator:
    """Return an operator with an entry of the state `s`: what follows its key, and its value."""
    folder.mkdir(exist_ok=True)
    header = sb.keyed_header(LONGS, states)
    data = sst([(bytes([KEY_GROUP]) + sb.i64(7) + key, 1, VALUE, value)], "s")
    (folder / "1.sst").write_bytes(data)
    files = [("1.sst", sb.relative("1.sst", len(data)))]
    keyed = sb.rocksdb(0, 128, sb.inline(header), files)
    path = sb.write(folder, [sb.operator([sb.subtask(managed_keyed=keyed)])])
    (operator,) = read_savepoint(path).operators
    return operator


@pytest.mark.parametrize("name", STATES)
def test_the_state_is_the_same(name: str, tmp_path: Path) -> None:
    """So is the header that is written of it, byte by byte, which any backend restores."""
    new, old = STATES[name]
    state = operator_of(tmp_path / "new", new).states
    assert state == operator_of(tmp_path / "old", old).states
    change_max_parallelism(tmp_path / "new", 64, tmp_path / "written")
    (operator,) = read_savepoint(tmp_path / "written").operators
    (handle,) = operator._subtasks[0].keyed
    assert isinstance(handle, KeyGroupsHandle)
    with operator._files.open(handle.stream) as stream:
        header = sb.keyed_header(LONGS, [old])
        assert stream.read(0, len(header)) == header


def test_a_map_has_its_user_keys(tmp_path: Path) -> None:
    state = sb.async_state("s", "MAP", INT, user_key=STRING)
    operator = operator_of(tmp_path, state, key=b"\0\2u", value=b"\0" + sb.i32(5))
    assert operator.get(7, "s") == {"u": 5}


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (sb.async_state("s", "VALUE", UNKNOWN), "s: VALUE <LONG, UNKNOWN(a.B)>"),
        (
            sb.async_state("s", "VALUE", INT, namespace=UNKNOWN),
            "s: VALUE <LONG, UNKNOWN(a.B), INT>",
        ),
        (
            sb.async_state("s", "MAP", UNKNOWN, user_key=STRING),
            "s: MAP <LONG, STRING, UNKNOWN(a.B)>",
        ),
        (
            sb.async_state("s", "MAP", INT, user_key=UNKNOWN),
            "s: MAP <LONG, UNKNOWN(a.B), INT>",
        ),
        (
            sb.async_state("s", "MAP", UNKNOWN, user_key=UNKNOWN, namespace=UNKNOWN),
            "s: MAP <LONG, UNKNOWN(a.B), UNKNOWN(a.B), UNKNOWN(a.B)>",
        ),
        (
            sb.async_state(
                "s",
                "MAP",
                sb.snapshot("a.B", 1, sb.utf("USER_KEY_SERIALIZER") + sb.i32(2)),
                user_key=STRING,
            ),
            "s: MAP <LONG, UNKNOWN, UNKNOWN, UNKNOWN(a.B)>",
        ),
    ],
)
def test_one_serializer_that_is_not_known_costs_no_other(
    state: bytes, text: str, tmp_path: Path
) -> None:
    operator = operator_of(tmp_path / "savepoint", state, sb.async_state("t", "VALUE", INT))
    assert [*map(str, operator.states)] == [text, "t: VALUE <LONG, INT>"]
    change_max_parallelism(tmp_path / "savepoint", 64, tmp_path / "new")
    (new,) = read_savepoint(tmp_path / "new").operators
    assert [*map(str, new.states)] == [text, "t: VALUE <LONG, INT>"]


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (sb.async_state("s", "MAP", INT), "MAP state 's' has serializers of other roles"),
        (
            sb.async_state("s", "LIST", INT, user_key=STRING),
            "LIST state 's' has serializers of other roles",
        ),
        (sb.async_state("s", "FOLDING", INT), "state 's' is of no known kind: KEY_VALUE_V2 FOLD"),
        (
            sb.meta_info("s", 5, {"KEYED_STATE_TYPE": "VALUE"}, {"VALUE_SERIALIZER": INT}),
            "backend type 5 is not known, only 0, 1, 2, 3, 4",
        ),
    ],
)
def test_headers_that_flink_does_not_write(state: bytes, message: str, tmp_path: Path) -> None:
    operator = operator_of(tmp_path, state)
    with pytest.raises(SavepointError, match=message):
        print(operator.states)
