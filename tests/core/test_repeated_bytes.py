"""What stands in a savepoint once and is used many times: its bytes may be repeated so often.

A table of what there is by what is done with it. Each is a long key, text or name and many short
things that refer to it, some 70 kB that would become 130 MB: all that is held in memory, printed
and written stays within three times what SECURITY.md says, as there are copies of it while
another is made, whatever the answer is.
"""

from __future__ import annotations

import io
import json
import re
import tracemalloc
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from support.bytes import savepoint_bytes as sb
from support.bytes.changelog_bytes import ADD, change, changelog, inline, logged
from support.bytes.sst_bytes import VALUE, sst, varint
from support.inside.savepoints import STREAM_START

from keygroups.cli import main
from keygroups.errors import KeyGroupsError, SavepointError
from keygroups.savepoint import (
    Operator,
    SavepointWriter,
    change_max_parallelism,
    convert_to_canonical,
    read_savepoint,
)

pa = pytest.importorskip("pyarrow", reason="columns: the extra arrays")
pytest.importorskip("numpy", reason="columns: the extra arrays")
pytest.importorskip("cramjam", reason="a compressed one: the extra savepoint")

SIZE, COUNT = 32_000, 4_000
FREE, TIMES = 1 << 20, 256
STRING, INT = sb.simple("String"), sb.simple("Int")
MAP = sb.state("s", "MAP", sb.map_of(STRING, INT))


def text(length: int, letter: str = "k") -> bytes:
    """An ASCII String of Flink's."""
    return varint(length + 1) + letter.encode() * length


def written(folder: Path, keyed: bytes) -> Path:
    operator = sb.operator([sb.subtask(managed_keyed=keyed)], max_parallelism=1, uid="u")
    return sb.write(folder, [operator])


def user_keys(count: int) -> bytes:
    """Texts of five digits, each with a number."""
    return b"".join(b"\6%05d\0" % n + sb.i32(n) for n in range(count))


def heap(folder: Path, size: int, count: int, compressed: bool = False) -> Path:
    """The hashmap backend's own format: namespace, key, number of user keys, these with values."""
    return written(folder, heap_state(size, count, compressed))


def heap_state(size: int, count: int, compressed: bool = False) -> bytes:
    header = sb.keyed_header(STRING, [MAP], compressed=compressed)
    items = b"\0\0" + sb.i32(1) + b"\0" + text(size) + sb.i32(count) + user_keys(count)
    if compressed:
        starts = range(0, len(items), 60_000)
        chunks = (sb.snappy_chunk(items[start : start + 60_000]) for start in starts)
        items = STREAM_START + b"".join(chunks)
    return sb.native(0, [len(header)], sb.inline(header + sb.i32(0) + items))


def heap_and_changes(folder: Path) -> Path:
    """The same, with a change to another key: then entries are framed before they are read."""
    changes = [
        logged(0, MAP),
        logged(9, sb.state("t", "", sb.timer_of(STRING, sb.NONE), backend_type=3), kind=3),
        change(ADD, 0, text(1) + b"\0", sb.i32(1) + user_keys(1), key_group=0),
    ]
    materialized = [heap_state(SIZE, COUNT)]
    return written(folder, changelog(materialized, [inline(changes, 1)], count=1))


def change_of_a_map(folder: Path) -> Path:
    """A change that puts a whole map under a key."""
    changes = [
        logged(0, MAP),
        logged(9, sb.state("t", "", sb.timer_of(STRING, sb.NONE), backend_type=3), kind=3),
        change(ADD, 0, text(SIZE) + b"\0", sb.i32(COUNT) + user_keys(COUNT), key_group=0),
    ]
    return written(folder, changelog([], [inline(changes, 1)], count=1))


def of_values(folder: Path, value: bytes, *values: bytes, kind: str = "VALUE") -> Path:
    """A canonical savepoint with values of a type, under the keys a, b and so on."""
    header = sb.keyed_header(STRING, [sb.state("s", kind, value)])
    entries = [(b"\0" + text(1, chr(ord("a") + n)) + b"\0", item) for n, item in enumerate(values)]
    key_group = sb.canonical_key_group([(0, entries)])
    return written(folder, sb.canonical(0, [len(header)], sb.inline(header + key_group)))


KRYO = sb.snapshot(
    f"{sb.JAVA}kryo.KryoSerializerSnapshot",
    2,
    sb.utf("java.util.ArrayList") + sb.optional_map({}) * 3,
)
LIST = b"\1\0java.util.ArrayLis\xf4\1"
LIST_AGAIN = b"\1\0\1"


def elements(count: int) -> bytes:
    """How many elements a list of Kryo 5 has, each after its class."""
    return bytes([count + 1 & 0x3F | 0x40]) + varint(count + 1 >> 6)


def kryo_text(folder: Path) -> Path:
    """A list of a text, and of references to it, which take two bytes each."""
    value = LIST + elements(2 * COUNT) + b"\3\1" + b"k" * (SIZE - 1) + b"\xeb"
    value += b"\3\3" * (2 * COUNT - 1)
    return of_values(folder, KRYO, value)


def kryo_lists(folder: Path) -> Path:
    """Lists of two references to the one before."""
    value = LIST + elements(60) + LIST_AGAIN + elements(0)
    for number in range(1, 60):
        value += LIST_AGAIN + elements(2) + (b"\1\0" + varint(number + 2)) * 2
    return of_values(folder, KRYO, value)


def enum_of(*constants: str) -> bytes:
    names = b"".join(map(sb.utf, constants))
    contents = sb.utf("a.E") + sb.i32(len(constants)) + names
    return sb.snapshot(f"{sb.BASE}EnumSerializer$EnumSerializerSnapshot", 3, contents)


def constants(folder: Path) -> Path:
    values = b",".join([sb.i32(0)] * COUNT)
    return of_values(folder, sb.list_of(enum_of("K" * SIZE)), values, kind="LIST")


def subclasses(folder: Path) -> Path:
    """A POJO, each value of which is of a subclass that takes two bytes, its number."""
    values = b",".join([b"\x08\0\2"] * COUNT)
    return of_values(folder, sb.list_of(with_subclass("K" * SIZE)), values, kind="LIST")


def with_subclass(name: str) -> bytes:
    registered = sb.optional_map({name: sb.pojo_of(name, {})})
    maps = sb.optional_map({}) + registered + sb.optional_map({})
    return sb.snapshot(f"{sb.JAVA}PojoSerializerSnapshot", 2, sb.utf("a.P") + maps)


def avro_of(schema: object) -> bytes:
    contents = sb.utf("a.R") + sb.utf(json.dumps(schema))
    return sb.snapshot(
        "org.apache.flink.formats.avro.typeutils.AvroSerializerSnapshot", 2, contents
    )


def symbols(folder: Path) -> Path:
    """An array of Avro's enum, whose symbols take four bytes each."""
    symbol = {"type": "enum", "name": "a.E", "symbols": ["K" * SIZE]}
    array = {"type": "array", "items": symbol}
    schema = {"type": "record", "name": "a.R", "fields": [{"name": "f", "type": array}]}
    return of_values(folder, avro_of(schema), varint(COUNT) + sb.i32(0) * COUNT + b"\0")


def prefixes(folder: Path) -> Path:
    """A file of RocksDB, in a block of which keys share all but their last bytes."""
    records = [
        (b"\0" + text(SIZE // 2) + b"\0" + sb.i32(n), 1, VALUE, b"\0" + sb.i32(n))
        for n in range(COUNT // 4)
    ]
    header = sb.keyed_header(STRING, [sb.state("s", "MAP", sb.map_of(INT, INT))])
    folder.mkdir()
    data = sst(records, "s", per_block=COUNT)
    (folder / "data").write_bytes(data)
    files = [("1.sst", sb.relative("data", len(data)))]
    return written(folder, sb.rocksdb(0, 1, sb.inline(header), files))


SHAPES: dict[str, Callable[[Path], Path]] = {
    "the key of a map on the heap": lambda folder: heap(folder, SIZE, COUNT),
    "the same, compressed": lambda folder: heap(folder, SIZE, COUNT, compressed=True),
    "the same, below changes": heap_and_changes,
    "the key of a map that a change puts": change_of_a_map,
    "a text of Kryo": kryo_text,
    "lists of Kryo": kryo_lists,
    "a constant of an enum": constants,
    "a subclass of a POJO": subclasses,
    "a symbol of Avro": symbols,
    "a prefix of keys in RocksDB": prefixes,
}


def edited(operator: Operator, folder: Path, new: Path) -> None:
    with SavepointWriter.from_existing_savepoint(folder, new) as editor:
        editor.operator("u").delete_keys(["none"])


def exported(suffix: str) -> Callable[[Operator, Path, Path], object]:
    return lambda operator, folder, new: main(
        ["savepoint", str(folder), "--state", "s", "--export", f"{new}.{suffix}"]
    )


def compared(folder: Path) -> None:
    str(read_savepoint(folder).compare(read_savepoint(folder)))


def key_of(operator: Operator) -> Any:
    return next(operator.entries()).key


VERBS: dict[str, Callable[[Operator, Path, Path], object]] = {
    "entries": lambda operator, folder, new: sum(1 for _ in operator.entries()),
    "get": lambda operator, folder, new: operator.get(key_of(operator)),
    "key sizes": lambda operator, folder, new: operator.key_sizes(),
    "batches": lambda operator, folder, new: sum(
        batch.num_rows for batch in operator.to_arrow_batch_reader("s")
    ),
    "Arrow": lambda operator, folder, new: operator.to_arrow("s"),
    "pandas": lambda operator, folder, new: operator.to_pandas("s"),
    "Polars": lambda operator, folder, new: operator.to_polars("s"),
    "compare": lambda operator, folder, new: compared(folder),
    "differences": lambda operator, folder, new: sum(
        1 for _ in read_savepoint(folder).differences(read_savepoint(folder))
    ),
    "convert": lambda operator, folder, new: convert_to_canonical(folder, new),
    "rescale": lambda operator, folder, new: change_max_parallelism(
        folder, 2, new, operators=["u"]
    ),
    "edit": edited,
    "Parquet": exported("parquet"),
    "CSV": exported("csv"),
    "print a key": lambda operator, folder, new: main(
        ["savepoint", str(folder), "--key", key_of(operator)]
    ),
    "print a key as JSON": lambda operator, folder, new: main(
        ["savepoint", str(folder), "--key", key_of(operator), "--json"]
    ),
}


def most_bytes(run: Callable[[], object], folder: Path) -> int:
    """Return the most that a call holds, prints or leaves in a folder; it may refuse."""
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    pa.set_memory_pool(pool)
    tracemalloc.start()
    out = io.StringIO()
    try:
        with redirect_stdout(out), redirect_stderr(out):
            run()
    except KeyGroupsError:
        pass
    finally:
        held: int = tracemalloc.get_traced_memory()[1] + pool.max_memory()
        tracemalloc.stop()
        pa.set_memory_pool(before)
    rest = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return max(held, rest)


@pytest.mark.long
@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_made_of_a_few_bytes(shape: str, tmp_path: Path) -> None:
    folder = SHAPES[shape](tmp_path / "old")
    size = sum(path.stat().st_size for path in folder.iterdir())
    most = 3 * (FREE + TIMES * size)
    for number, (verb, run) in enumerate(VERBS.items()):
        new = tmp_path / f"new-{number}"
        new.mkdir()

        def call(run: Any = run, new: Path = new) -> None:
            (operator,) = read_savepoint(folder).operators
            run(operator, folder, new / "x")

        made = most_bytes(call, new)
        assert made <= most, f"{shape}, {verb}: {made:,} bytes of {size:,}"


@pytest.mark.long
@pytest.mark.parametrize("compressed", [False, True])
def test_long_keys_that_are_read(compressed: bool, tmp_path: Path) -> None:
    """A key of 1,000 bytes with 5,000 user keys: the batches are of some bytes each."""
    count = 5_000
    folder = heap(tmp_path / "old", 1_000, count, compressed)
    (operator,) = read_savepoint(folder).operators
    batches = [*operator.to_arrow_batch_reader()]
    assert sum(batch.num_rows for batch in batches) == count
    assert max(batch.nbytes for batch in batches) < 2 << 20
    convert_to_canonical(folder, tmp_path / "new")
    converted = read_savepoint(tmp_path / "new")
    entries = [*operator.entries()]
    assert {entry.key for entry in entries} == {"k" * 1_000}
    assert [entry.value for entry in entries] == [*range(count)]
    values = [(entry.user_key, entry.value) for entry in converted.operator("u").entries()]
    assert values == [(entry.user_key, entry.value) for entry in entries]
    assert operator.get("k" * 1_000) == {"s": converted.operator("u").get("k" * 1_000, "s")}
    assert operator.key_sizes()[0].entries == count


def test_what_the_error_says(tmp_path: Path) -> None:
    (operator,) = read_savepoint(heap(tmp_path, SIZE, COUNT)).operators
    with pytest.raises(SavepointError) as raised:
        operator.to_arrow()
    message = str(raised.value)
    assert "of s: MAP <STRING, STRING, INT> " in message
    start, present, become, most = (
        int(word.replace(",", "").rstrip(":;"))
        for word in re.findall(
            r"(?<=offset )\d+|[\d,]{6,}(?= bytes would)|[\d,]{6,}(?= and more)|"
            r"(?<=at most )[\d,]+",
            message,
        )
    )
    assert most == FREE + TIMES * present < become
    assert 0 < present < start
    assert message.endswith(
        "take a savepoint in canonical format, which has the key with each user key"
    )


def test_a_change_that_is_refused(tmp_path: Path) -> None:
    (operator,) = read_savepoint(change_of_a_map(tmp_path)).operators
    problem = r"7\d,\d+ bytes would become 128,\d+,000 and more, .*: take a savepoint in canonical"
    with pytest.raises(SavepointError, match=problem):
        next(operator.entries())


@pytest.mark.parametrize(
    ("first", "size", "count", "more"),
    [("", 7_684, 512, 0), ("", 4_136, 899, 1), ("a", 4_650, 785, 0), ("aaaa", 6_922, 551, 1)],
)
def test_keys_that_changes_repeat_up_to_the_bound(
    first: str, size: int, count: int, more: int, tmp_path: Path
) -> None:
    """1 MiB, and 256 bytes for each byte of all changes to a state; one more is refused.

    A key is there once, with its namespace, for each of its user keys; that of a first change
    has one.
    """
    keys = [(text(len(first), "a") + b"\0", 1)] * bool(first) + [(text(size) + b"\0", count)]
    item = b"\2u\0" + sb.i32(7)
    changed = [
        change(ADD, 0, key, sb.i32(number) + item * number, key_group=0) for key, number in keys
    ]
    read = sum(len(data) for _, data in changed)
    assert sum(len(key) * number for key, number in keys) == FREE + TIMES * read + more
    timers = sb.state("t", "", sb.timer_of(STRING, sb.NONE), backend_type=3)
    changed = [logged(0, MAP), logged(9, timers, kind=3), *changed]
    folder = written(tmp_path, changelog([], [inline(changed, 1)], count=1))
    (operator,) = read_savepoint(folder).operators
    if not more:
        entries = [*operator.entries()]
        assert {entry.key for entry in entries} == {*filter(None, [first]), "k" * size}
        return
    with pytest.raises(SavepointError, match=r"bytes would become .* take a savepoint in canon"):
        list(operator.entries())


def scala_enum_of(name: str) -> bytes:
    contents = sb.utf("a.E") + sb.i32(1) + sb.utf(name) + sb.i32(0)
    return sb.snapshot(
        "org.apache.flink.api.scala.typeutils.ScalaEnumSerializerSnapshot", 3, contents
    )


NAMED: dict[str, tuple[Callable[[str], bytes], bytes]] = {
    "enum": (enum_of, sb.i32(0)),
    "Scala's": (scala_enum_of, sb.i32(0)),
    "POJO": (lambda name: sb.pojo_of(name, {}), b"\2"),
    "subclass": (with_subclass, b"\x08\0\2"),
    "field": (lambda name: sb.pojo_of("a.P", {name: INT}), b"\2\1"),
    "Avro": (
        lambda name: avro_of({"type": "enum", "name": "a.R", "symbols": [name]}),
        sb.i32(0),
    ),
    "Avro's field": (
        lambda name: avro_of(
            {"type": "record", "name": "a.R", "fields": [{"name": name, "type": "int"}]}
        ),
        sb.i32(5),
    ),
}


@pytest.mark.parametrize("kind", NAMED)
def test_names_that_values_refer_to(kind: str, tmp_path: Path) -> None:
    """Up to 1,024 characters they are read, and as text in columns."""
    snapshot_of, value = NAMED[kind]
    longest, longer = "K" * 1_024, "K" * 1_025
    (operator,) = read_savepoint(of_values(tmp_path / "1", snapshot_of(longest), value)).operators
    assert longest in repr(next(operator.entries()).value)
    assert operator.to_arrow().num_rows == 1
    (operator,) = read_savepoint(of_values(tmp_path / "2", snapshot_of(longer), value)).operators
    if kind.startswith("Avro"):  # whose schema is parsed with the first value
        assert next(operator.entries()).value == value
        return
    with pytest.raises(SavepointError, match=r"offset \d+: a name of 1,025 characters"):
        str(operator.states)


def test_names_of_states_in_rows(tmp_path: Path) -> None:
    from support.inside.columns import difference_layout, layout_of, record_batches

    for number, (size, is_read) in enumerate({1_024: True, 1_025: False}.items()):
        header = sb.keyed_header(STRING, [sb.state("s" * size, "VALUE", INT)])
        key_group = sb.canonical_key_group([(0, [(b"\0" + text(1) + b"\0", sb.i32(5))])])
        stream = sb.inline(header + key_group)
        folder = written(tmp_path / str(number), sb.canonical(0, [len(header)], stream))
        (operator,) = read_savepoint(folder).operators
        assert operator.to_arrow().num_rows == 1  # it has no column of names
        layout = layout_of(operator.states)

        def rows(operator: Operator = operator, layout: Any = layout) -> list[Any]:
            return [*record_batches(operator.tasks()[0], layout)]

        def layout_of_differences(operator: Operator = operator) -> Any:
            return difference_layout(operator.states, operator.states)

        if is_read:
            assert rows()[0].column("state").to_pylist() == ["s" * size]
            assert layout_of_differences().schema
            continue
        problem = "has a name of 1,025 characters, and rows have names of at most 1,024"
        for refused in (rows, layout_of_differences):
            with pytest.raises(SavepointError, match=problem):
                refused()
